"""Uses what the environment holds and the machine does not: two packages of the conda file's pip section."""

import sys

import inflect
from tabulate import tabulate

engine = inflect.engine()
rows = [(word, engine.plural(word)) for word in sys.argv[1:]]
print(f"Python {sys.version.split()[0]} from {sys.prefix}")
print(tabulate(rows, headers=("one", "many")))
