"""Says what it was told, to its log and into its outputs: its arguments, what lies behind those that are paths, and who it is
among its ranks."""

import os
import sys

lines = [" ".join(["told:", *sys.argv[1:]])]
for text in sys.argv[1:]:
    if os.path.isdir(text):
        lines.append(" ".join(["folder:", *sorted(os.listdir(text))]))
    elif os.path.isfile(text):
        with open(text) as file:
            lines.append("file: " + file.readline().strip())
for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "NCCL_DEBUG"):
    if name in os.environ:
        lines.append(f"{name}={os.environ[name]}")
print(*lines, sep="\n")
for name, path in sorted(os.environ.items()):
    if name.startswith("AZURE_ML_OUTPUT_") and os.path.isdir(path):
        script, rank = os.path.basename(sys.argv[0]), os.environ.get("RANK", "0")
        with open(os.path.join(path, f"{script}-{rank}.txt"), "w") as file:
            print(*lines, sep="\n", file=file)
