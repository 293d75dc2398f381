import argparse
import pathlib

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--cuda", action="store_true")
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--data", type=pathlib.Path, required=True)
parser.add_argument("--save", type=pathlib.Path, required=True)
args = parser.parse_args()

torch.manual_seed(0)
words = (args.data / "train.txt").read_text().split()
known = {word: at for at, word in enumerate(sorted(set(words)))}
tokens = torch.tensor([known[word] for word in words])
layers = torch.nn.Sequential(torch.nn.Embedding(len(known), 8), torch.nn.Linear(8, len(known)))
optimizer = torch.optim.SGD(layers.parameters(), lr=args.lr)
losses = []
for _ in range(20 * args.epochs):
    loss = torch.nn.functional.cross_entropy(layers(tokens[:-1]), tokens[1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
args.save.parent.mkdir(exist_ok=True)
torch.save(layers.state_dict(), args.save)
print(f"{args.model} over {len(known)} words: loss fell is {min(losses) < losses[0]}")
