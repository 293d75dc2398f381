"""Says hello, and leaves a file in ./outputs, which is kept without being asked."""

import argparse
import os
import pathlib
import platform

parser = argparse.ArgumentParser()
parser.add_argument("--name", required=True)
name = parser.parse_args().name

print(f"hello, {name}")
print(f"this is job {os.environ['AZUREML_RUN_ID']} on {platform.node()}, Python {platform.python_version()}")

outputs = pathlib.Path("outputs")
outputs.mkdir(exist_ok=True)
(outputs / "greeting.txt").write_text(f"hello, {name}\n")
