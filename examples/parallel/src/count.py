"""Counts words. `init` runs once in each process, `run` once for each mini-batch, which is a list of paths."""

import argparse
import os


def init():
    global least
    parser = argparse.ArgumentParser()
    parser.add_argument("--least", type=int, default=1)
    least = parser.parse_args().least


def run(mini_batch):
    counted = []
    for path in mini_batch:
        with open(path, encoding="utf-8") as file:
            words = [word for word in file.read().split() if len(word) >= least]
        counted.append(f"{os.path.basename(path)},{len(words)}")
    return counted
