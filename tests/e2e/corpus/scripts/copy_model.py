import argparse
import pathlib
import shutil

parser = argparse.ArgumentParser()
parser.add_argument("--input_model", type=pathlib.Path, required=True)
parser.add_argument("--custom_model_output", type=pathlib.Path, required=True)
args = parser.parse_args()
for path in args.input_model.iterdir():
    shutil.copy(path, args.custom_model_output / path.name)
    print(f"copied {path.name}")
