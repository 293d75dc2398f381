"""Counts to twelve, a step every half second, and goes on from its last checkpoint."""

import sys
import time
from pathlib import Path

checkpoint = Path(sys.argv[1], "step.txt")
done = int(checkpoint.read_text()) if checkpoint.exists() else 0
print(f"begins after step {done}", flush=True)
for step in range(done + 1, 13):
    time.sleep(0.5)
    checkpoint.write_text(str(step))
    print(f"step {step}", flush=True)
