"""P8: how good the best of 100 trials is, beside Optuna (TPE, CMA-ES, GP) and Hyperopt, and what a suggestion costs.

Usage: bench/sweep.py [--seeds 20] [--gp-seeds 20] [--trials 100] [--jobs 1] [--only NAME,...] [--on FUNCTION,...] [--in-flight 1,8] [--keep FILE]
PEREGRINE_SWEEP names our side: the example `sweep` of the planner, else it is built in release. The peers are
installed from the package index; a PEER_PYTHON that has them is taken as it is. Every space is written as a sweep's file has it,
and given to the peers in their own words. With 8 in flight the oldest of them ends, then the next is asked for. Regret is how far the best
is above the known minimum; the tables show its median over the seeds.
"""

import argparse
import itertools
import json
import logging
import math
import os
import statistics
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "peregrine" / "tools"
PEERS = {"optuna": "5.0.0", "hyperopt": "0.3.0", "scipy": None, "cmaes": None, "torch": None}


def uniform(low, high):
    return {"type": "uniform", "min_value": low, "max_value": high}


def log(low, high):
    return {"type": "loguniform", "min_value": math.log(low), "max_value": math.log(high)}


def whole(low, high):
    return {"type": "quniform", "min_value": low, "max_value": high, "q": 1}


def log_whole(low, high):
    return {"type": "qloguniform", "min_value": math.log(low), "max_value": math.log(high), "q": 1}


def choice(*values):
    return {"type": "choice", "values": list(values)}


def branin(v):
    x, y = v["x"], v["y"]
    bowl = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.39788735772973816


A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
P = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
     [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]


def hartmann(v):
    x = [v[f"x{i}"] for i in range(6)]
    hills = (h * math.exp(-sum(a * (x - p * 1e-4) ** 2 for a, x, p in zip(A[i], x, P[i])))
             for i, h in enumerate([1, 1.2, 3, 3.2]))
    return 3.3223680114155147 - sum(hills)


def rosenbrock(v):
    x = [v[f"x{i}"] for i in range(5)]
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def mixed(v):
    """A model to be tuned: the best learning rate depends on the optimizer."""
    shift = {"sgd": 2.0, "momentum": 1.3, "adam": 0.2, "adamw": 0.0}[v["optimizer"]]
    cost = {"sgd": 0.6, "momentum": 0.35, "adam": 0.1, "adamw": 0.0}[v["optimizer"]]
    cost += {"relu": 0.08, "gelu": 0.0, "tanh": 0.3}[v["activation"]]
    cost += 0.5 * (math.log10(v["rate"]) - math.log10(3e-4) - shift) ** 2 + 4 * (v["dropout"] - 0.1) ** 2
    decay = 0.1 * (math.log10(v["decay"]) + 2) ** 2 * (1 if v["optimizer"] == "adamw" else 0.3)
    return cost + decay + 0.03 * (v["layers"] - 6) ** 2 + 0.15 * (math.log2(max(v["width"], 1)) - 8) ** 2


def conditional(v):
    """Three kinds of model, each with parameters of its own; the best of the third is the best of all."""
    m = v["model"]
    scale = 0.2 * (v["sample"] - 0.7) ** 2
    if m["kind"] == "svm":
        return scale + 0.12 + 0.08 * (math.log10(m["c"]) - 1) ** 2 + 0.1 * (math.log10(m["gamma"]) + 2) ** 2
    if m["kind"] == "forest":
        return scale + 0.05 + 0.01 * (m["depth"] - 9) ** 2 + 0.6 * (m["share"] - 0.35) ** 2
    return scale + 0.15 * (math.log10(m["rate"]) + 3) ** 2 + 0.04 * (m["layers"] - 4) ** 2 + 0.8 * (m["dropout"] - 0.25) ** 2


SPACES = {
    "Branin": (branin, {"x": uniform(-5, 10), "y": uniform(0, 15)}),
    "Hartmann-6": (hartmann, {f"x{i}": uniform(0, 1) for i in range(6)}),
    "Rosenbrock-5": (rosenbrock, {f"x{i}": uniform(-2.048, 2.048) for i in range(5)}),
    "mixed": (mixed, {
        "rate": log(1e-6, 1), "decay": log(1e-5, 1), "layers": whole(1, 16), "width": log_whole(16, 2048),
        "optimizer": choice("sgd", "momentum", "adam", "adamw"), "activation": choice("relu", "gelu", "tanh"),
        "dropout": uniform(0, 0.6)}),
    "conditional": (conditional, {
        "sample": uniform(0.1, 1),
        "model": choice(
            {"kind": "svm", "c": log(1e-3, 1e3), "gamma": log(1e-5, 10)},
            {"kind": "forest", "depth": whole(1, 30), "share": uniform(0.05, 1)},
            {"kind": "net", "rate": log(1e-6, 1), "layers": whole(1, 12), "dropout": uniform(0, 0.8)})}),
}


class Ours:
    """The planner's sampler behind a pipe."""

    def __init__(self, space, seed, trials, in_flight, algorithm="bayesian"):
        limits = {"max_total_trials": trials, "max_concurrent_trials": in_flight}
        sweep = {"search_space": space, "sampling_algorithm": algorithm, "limits": limits,
                 "objective": {"goal": "minimize", "primary_metric": "loss"}}
        self.line = subprocess.Popen([os.environ["PEREGRINE_SWEEP"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.say({"sweep": sweep, "seed": seed})
        self.spent = 0.0

    def say(self, value):
        self.line.stdin.write(json.dumps(value) + "\n")
        self.line.stdin.flush()

    def ask(self):
        told = json.loads(self.line.stdout.readline())
        self.spent += told["ms"]
        return told["number"], told["values"]

    def tell(self, number, value):
        self.say({"number": number, "value": value})

    def close(self):
        self.line.stdin.close()
        self.line.wait(60)
        self.line.stdout.close()


class Timed:
    """A peer in this process: what it spends is measured here."""

    spent = 0.0

    def ask(self):
        began = time.process_time()
        asked = self.suggest()
        self.spent += 1e3 * (time.process_time() - began)
        return asked

    def close(self):
        pass


class Optuna(Timed):
    def __init__(self, space, seed, sampler):
        import optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.space, self.study = space, optuna.create_study(sampler=sampler(optuna.samplers, seed))

    def suggest(self):
        trial = self.study.ask()
        return trial, {name: self.one(trial, name, expression) for name, expression in self.space.items()}

    def one(self, trial, name, e):
        low, high = e.get("min_value"), e.get("max_value")
        if e["type"] == "choice":
            if not isinstance(e["values"][0], dict):
                return trial.suggest_categorical(name, e["values"])
            at = trial.suggest_categorical(name, list(range(len(e["values"]))))
            return {k: self.one(trial, f"{name}.{at}.{k}", v) if isinstance(v, dict) else v for k, v in e["values"][at].items()}
        if e["type"] == "uniform":
            return trial.suggest_float(name, low, high)
        if e["type"] == "loguniform":
            return trial.suggest_float(name, math.exp(low), math.exp(high), log=True)
        if e["type"] == "quniform":
            return trial.suggest_int(name, low, high)
        return trial.suggest_int(name, round(math.exp(low)), round(math.exp(high)), log=True)

    def tell(self, trial, value):
        began = time.process_time()
        self.study.tell(trial, value)
        self.spent += 1e3 * (time.process_time() - began)


class Hyperopt(Timed):
    def __init__(self, space, seed):
        import hyperopt
        import numpy
        logging.getLogger("hyperopt").setLevel(logging.ERROR)
        self.h, self.chance = hyperopt, numpy.random.default_rng(seed)
        self.space = {name: self.one(name, expression) for name, expression in space.items()}
        self.domain = hyperopt.base.Domain(lambda values: 0, self.space)
        self.trials = hyperopt.Trials()

    def one(self, name, e):
        hp, low, high = self.h.hp, e.get("min_value"), e.get("max_value")
        if e["type"] == "choice":
            inner = [{k: self.one(f"{name}.{at}.{k}", v) if isinstance(v, dict) else v for k, v in value.items()}
                     if isinstance(value, dict) else value for at, value in enumerate(e["values"])]
            return hp.choice(name, inner)
        more = [e["q"]] if "q" in e else []
        return getattr(hp, e["type"])(name, low, high, *more)

    def suggest(self):
        self.trials.refresh()
        ids = self.trials.new_trial_ids(1)
        docs = self.h.tpe.suggest(ids, self.domain, self.trials, int(self.chance.integers(2**31 - 1)))
        self.trials.insert_trial_docs(docs)
        self.trials.refresh()
        doc = next(doc for doc in self.trials._dynamic_trials if doc["tid"] == ids[0])
        values = {name: value[0] for name, value in doc["misc"]["vals"].items() if value}
        return doc, self.h.space_eval(self.space, values)

    def tell(self, doc, value):
        doc["state"], doc["result"] = self.h.JOB_STATE_DONE, {"loss": value, "status": "ok"}


def optuna(make):
    return lambda space, seed, trials, in_flight: Optuna(space, seed, make)


PLAYERS = {
    "Peregrine": Ours,
    "random": lambda *args: Ours(*args, algorithm="random"),
    "Optuna GP": optuna(lambda s, seed: s.GPSampler(seed=seed, deterministic_objective=True)),
    "Optuna TPE": optuna(lambda s, seed: s.TPESampler(seed=seed)),
    "Optuna CMA-ES": optuna(lambda s, seed: s.CmaEsSampler(seed=seed)),
    "Hyperopt TPE": lambda space, seed, trials, in_flight: Hyperopt(space, seed),
}


def play(name, space, seed, trials, in_flight):
    """The least cost, and the milliseconds that a suggestion took."""
    warnings.filterwarnings("ignore")
    function, ranges = SPACES[space]
    player = PLAYERS[name](ranges, seed, trials, in_flight)
    flying, least = [], math.inf
    try:
        for _ in range(trials):
            flying.append(player.ask())
            if len(flying) == in_flight:
                least = min(least, finish(player, flying, function))
        while flying:
            least = min(least, finish(player, flying, function))
    finally:
        player.close()
    return least, player.spent / trials


def finish(player, flying, function):
    mark, values = flying.pop(0)
    value = function(values)
    player.tell(mark, value)
    return value


def measure(options):
    kept = json.loads(Path(options.keep).read_text()) if options.keep and Path(options.keep).exists() else {}
    names = [name for name in PLAYERS if not options.only or name in options.only]
    cells = itertools.product(options.in_flight, names, options.on or SPACES)
    with ProcessPoolExecutor(options.jobs) as pool:
        played = {}
        for in_flight, name, space in cells:
            seeds = range(options.gp_seeds if name == "Optuna GP" else options.seeds)
            played[in_flight, name, space] = [pool.submit(play, name, space, seed, options.trials, in_flight) for seed in seeds]
        for (in_flight, name, space), games in played.items():
            cell = kept[f"{in_flight}|{name}|{space}"] = [game.result() for game in games]
            shown = statistics.median(regret for regret, _ in cell)
            print(f"{in_flight} {name} {space}: {shown:.3g}, {statistics.mean(ms for _, ms in cell):.1f} ms", file=sys.stderr, flush=True)
            if options.keep:
                Path(options.keep).write_text(json.dumps(kept))
    return kept


def show(kept):
    for in_flight in sorted({key.split("|")[0] for key in kept}, key=int):
        print(f"\n| {in_flight} in flight | " + " | ".join(SPACES) + " | ms a suggestion |\n|---|" + "---|" * (len(SPACES) + 1))
        for name in PLAYERS:
            cells = {space: kept.get(f"{in_flight}|{name}|{space}") for space in SPACES}
            if not any(cells.values()):
                continue
            shown = [f"{statistics.median(r for r, _ in cell):.2g} ({len(cell)})" if cell else "" for cell in cells.values()]
            ms = statistics.mean(ms for cell in cells.values() for _, ms in cell or [])
            print(f"| {name} | " + " | ".join(shown) + f" | {ms:.1f} |")


def peers():
    """A Python with Optuna and Hyperopt, made once."""
    if os.environ.get("PEER_PYTHON"):
        return os.environ["PEER_PYTHON"]
    folder = CACHE / f"optuna-{PEERS['optuna']}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        wanted = [f"{name}=={version}" if version else name for name, version in PEERS.items()]
        subprocess.run([python, "-m", "pip", "install", "-q", "setuptools<81", *wanted], check=True)
        (folder / "ready").touch()
    return str(python)


def ours():
    built = HERE.parent / "target" / "release" / "examples" / "sweep"
    if not os.environ.get("PEREGRINE_SWEEP"):
        command = ["cargo", "build", "-q", "--release", "-p", "peregrine-planner", "--example", "sweep"]
        subprocess.run(command, check=True, cwd=HERE.parent)
    return os.environ.get("PEREGRINE_SWEEP") or str(built)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words = lambda text: text.split(",")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--gp-seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1, help="how many sweeps at once")
    parser.add_argument("--only", type=words)
    parser.add_argument("--on", type=words)
    parser.add_argument("--in-flight", type=lambda text: [int(n) for n in text.split(",")], default=[1, 8])
    parser.add_argument("--keep", help="a file of figures, added to and shown whole")
    parser.add_argument("--show", action="store_true", help="only what is kept")
    options = parser.parse_args()
    mine = {"Peregrine", "random"}
    if not options.show and not set(options.only or PLAYERS) <= mine and not os.environ.get("SWEEP_INSIDE"):
        one = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "SWEEP_INSIDE")}
        env = {**os.environ, **one, "PEREGRINE_SWEEP": ours()}
        sys.exit(subprocess.run([peers(), __file__, *sys.argv[1:]], env=env).returncode)
    if options.show:
        return show(json.loads(Path(options.keep).read_text()))
    os.environ["PEREGRINE_SWEEP"] = ours()
    show(measure(options))


if __name__ == "__main__":
    main()
