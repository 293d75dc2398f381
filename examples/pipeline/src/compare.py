"""Says how the second of two totals relates to the first."""

import pathlib
import sys

one, two, report = (pathlib.Path(text) for text in sys.argv[1:4])
ratio = float(two.read_text()) / float(one.read_text())
report.parent.mkdir(parents=True, exist_ok=True)
report.write_text(f"the second total is {ratio} times the first\n")
print(report.read_text())
