"""Runs COUNT processes through a HyperQueue server and WORKERS (one of two cores) in this process; prints jobs per second."""

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
        workers = int(sys.argv[2]) if len(sys.argv) > 2 else 1
        for _ in range(workers):
            cluster.start_worker(WorkerConfig(cores=2 // workers))
        client = cluster.client()
        client.wait_for_jobs([client.submit(batch(10))])
        count = int(sys.argv[1])
        begin = time.perf_counter()
        client.wait_for_jobs([client.submit(batch(count))])
        print(count / (time.perf_counter() - begin))
    os.chdir("/")
