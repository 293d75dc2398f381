"""Writes the numbers from 1 to a count into a file."""

import pathlib
import sys

count, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
(folder / "numbers.txt").write_text("\n".join(str(n) for n in range(1, count + 1)))
print(f"wrote {count} numbers")
