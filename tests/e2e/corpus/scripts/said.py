"""Says what it was told: its arguments, what lies behind those that are paths, and who it is among its ranks."""

import os
import sys

print("told:", *sys.argv[1:])
for text in sys.argv[1:]:
    if os.path.isdir(text):
        print("folder:", *sorted(os.listdir(text)))
    elif os.path.isfile(text):
        with open(text) as file:
            print("file:", file.readline().strip())
for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "NCCL_DEBUG"):
    if name in os.environ:
        print(f"{name}={os.environ[name]}")
for name, path in sorted(os.environ.items()):
    if name.startswith("AZURE_ML_OUTPUT_") and os.path.isdir(path):
        script, rank = os.path.basename(sys.argv[0]), os.environ.get("RANK", "0")
        with open(os.path.join(path, f"{script}-{rank}.txt"), "w") as file:
            file.write(" ".join(sys.argv[1:]) + "\n")
