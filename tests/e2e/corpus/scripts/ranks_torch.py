import argparse
import pathlib

import torch
import torch.distributed as ranks

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--learning-rate", type=float, required=True)
parser.add_argument("--data-dir", type=pathlib.Path, required=True)
args = parser.parse_args()

ranks.init_process_group("gloo")
total = torch.tensor([float(ranks.get_rank() + 1)])
ranks.all_reduce(total)
files = sorted(path.name for path in args.data_dir.iterdir())
print(f"rank {ranks.get_rank()} of {ranks.get_world_size()}: sum {total.item():.0f}, lr {args.learning_rate}, data {files}")
ranks.destroy_process_group()
