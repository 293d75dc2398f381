"""Runs COUNT processes through a HyperQueue server and worker in this process; prints jobs per second."""

import os
import sys
import tempfile
import time

import hyperqueue.client
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

hyperqueue.client.create_progress_callback = lambda: (lambda jobs: None)


def batch(count):
    job = Job(max_fails=None)
    for _ in range(count):
        job.program(["/bin/true"], stdout=None, stderr=None)
    return job


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    with LocalCluster(server_dir=None) as cluster:
        cluster.start_worker(WorkerConfig(cores=2))
        client = cluster.client()
        client.wait_for_jobs([client.submit(batch(10))])
        count = int(sys.argv[1])
        begin = time.perf_counter()
        client.wait_for_jobs([client.submit(batch(count))])
        print(count / (time.perf_counter() - begin))
    os.chdir("/")
