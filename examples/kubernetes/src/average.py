"""Every rank has a number; rank 0 gathers them at the address all were given and keeps their average."""

import os
import socket
import sys
import time
from pathlib import Path

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
meeting = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
number = float(10 * (rank + 1))

if rank == 0:
    numbers = [number]
    with socket.create_server(("", meeting[1])) as listener:
        while len(numbers) < world:
            with listener.accept()[0] as other:
                numbers.append(float(other.recv(64).decode()))
    average = sum(numbers) / world
    Path(sys.argv[1], "average.txt").write_text(f"{average}\n")
    print(f"the average of {world} ranks is {average}")
else:
    for _ in range(100):
        try:
            with socket.create_connection(meeting) as first:
                first.sendall(str(number).encode())
            break
        except OSError:
            time.sleep(0.2)
    print(f"rank {rank} sent {number}")
