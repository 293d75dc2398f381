"""The workers that TF_CONFIG names meet at the first of them. Standard library only."""

import json
import os
import socket
import time

config = json.loads(os.environ["TF_CONFIG"])
workers, index = config["cluster"]["worker"], config["task"]["index"]
host, port = workers[0].rsplit(":", 1)

if index == 0:
    came = {0}
    with socket.create_server(("", int(port))) as meeting:
        while len(came) < len(workers):
            guest, _ = meeting.accept()
            with guest:
                came.add(int(guest.recv(16)))
    assert came == set(range(len(workers))), came
    print(f"all {len(came)} workers came")
else:
    for _ in range(300):
        try:
            with socket.create_connection((host, int(port)), timeout=5) as first:
                first.sendall(str(index).encode())
            break
        except OSError:
            time.sleep(0.1)
    else:
        raise SystemExit(f"worker 0 is not at {workers[0]}")
    print(f"worker {index} met worker 0 at {workers[0]}")
