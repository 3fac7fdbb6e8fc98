"""A tiny suite, and ways to run it and to look at what came of it."""

import json

from thetafield.bench.attempt import attempt
from thetafield.bench.engine import run_suite
from thetafield.bench.plan import once
from thetafield.bench.suite import load_suite

SUITE = """
title = "Tiny"

[[grid]]
datasets = [{ name = "two-moons-time", options = { num_train = 6, num_test = 3 }, label = "moons" }]
methods = [
  { name = "erm", options = { steps = 40, samples = 4 } },
  { name = "erm-d", options = { steps = 40, samples = 4 } },
  { name = "trees", options = { rounds = 5 } },
]
seeds = 2
"""
TIMES = ("train_seconds", "eval_seconds", "trial_seconds", "finished", "suite")


class Here:
    """Workers that are this process: a trial runs when somebody waits for it."""

    attempts, device, limit, crowded = 2, "cpu", 3, False

    def __init__(self):
        self.tasks, self.ran = [], []

    def room(self):
        return self.limit - len(self.tasks)

    def start(self, task):
        self.tasks.append(task)

    def wait(self, seconds):
        task = self.tasks.pop(0)
        self.ran.append(task.spec.key)
        return [(task.spec.key, self.attempt(task))]

    def attempt(self, task):
        return attempt(task)

    def thin(self, key):
        return False

    def stop(self):
        self.tasks = []


def written(folder, text=SUITE):
    path = folder / "tiny.toml"
    path.write_text(text)
    return load_suite(str(path))


def bench(suite, folder, workers=None, trials=None, **settings):
    """Run a suite in this process and return how it stands, with the workers."""
    workers = workers or Here()
    plan = run_suite(suite, trials or once(suite.trials), folder, lambda count: workers, **settings)
    return plan, workers


def results(folder):
    """What trials came to, without what differs from run to run."""
    found = {}
    for path in sorted((folder / "results").iterdir()):
        content = json.loads(path.read_text())
        found[path.stem] = {name: value for name, value in content.items() if name not in TIMES}
        assert json.loads((folder / "histories" / path.name).read_text()) is not None
    return found
