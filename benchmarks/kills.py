"""A bench that is killed (kill -9) at random moments, over and over, against one that runs through.

Run: python benchmarks/kills.py --kills 20 --out results/cpu/kills.json
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from thetafield.files import write_json

SUITE = """
[[grid]]
datasets = [{ name = "two-moons-time", options = { num_train = 8, num_test = 4 } }]
methods = [
  { name = "erm", options = { steps = 2000, samples = 8 } },
  { name = "nda", options = { steps = 500, tune_steps = 300, samples = 8 } },
  { name = "neurallio", options = { epochs = 40, samples = 8, base_steps = 200, neighbours = 3, latent_dim = 4 } },
  { name = "trees", options = { rounds = 10 } },
]
seeds = 10

[[grid]]
datasets = [{ name = "two-moons-time", options = { num_train = 8, num_test = 4 } }]
methods = [{ name = "erm", options = { samples = 8, steps = 400 } }]
seeds = 3
tune = 3
keep = true
"""
TIMES = {"train_seconds", "eval_seconds", "trial_seconds", "finished", "seconds"}


def without_times(content):
    """Return what must be the same in two runs."""
    if isinstance(content, dict):
        return {name: without_times(value) for name, value in content.items() if name not in TIMES}
    return [without_times(value) for value in content] if isinstance(content, list) else content


def read(store: Path) -> dict:
    """Return all that a store holds; a broken file would end this."""
    found = {}
    for path in sorted(store.rglob("*.json")):
        if not path.name.startswith(".") and path.parent.name in ("results", "histories", "failures", "absent"):
            found[str(path.relative_to(store))] = without_times(json.loads(path.read_text()))
    for path in sorted(store.glob("fields/*/*")):
        found[str(path.relative_to(store))] = path.read_bytes().hex()
    return found


def main() -> None:
    """Kill, resume, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--within", type=float, nargs=2, default=(2.0, 12.0), metavar=("FROM", "TO"), help="seconds")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    moments, kills = random.Random(arguments.seed), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kills.toml").write_text(SUITE)
        program = [sys.executable, "-m", "thetafield", "bench", "kills.toml", "--device", "cpu", "--json"]
        killed = [*program, "--store", "killed", "--jobs", str(arguments.jobs), "--checkpoint-every", "0"]
        for _ in range(arguments.kills):
            process = subprocess.Popen(killed, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            moment, started = moments.uniform(*arguments.within), time.perf_counter()
            try:
                process.communicate(timeout=moment)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            stored = read(folder / "killed")
            done = sum(path.startswith("results/") for path in stored)
            under_way = len(list((folder / "killed/work").glob("*/*/checkpoint.safetensors")))
            seconds = round(time.perf_counter() - started, 2)
            kills.append(
                {"seconds": seconds, "done": done, "checkpoints": under_way, "killed": process.returncode != 0}
            )
            print(kills[-1], flush=True)
        subprocess.run(killed, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        serial = [*program, "--store", "serial", "--jobs", "1"]
        subprocess.run(serial, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        one, other = read(folder / "killed"), read(folder / "serial")
        left = [str(path.relative_to(folder)) for path in (folder / "killed/work").iterdir()]
    differing = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    content = {
        "command": "python " + " ".join(sys.argv),
        "trials": sum(path.startswith("results/") for path in other),
        "kills": sum(kill["killed"] for kill in kills),
        "kills_with_trials_under_way": sum(kill["killed"] and kill["checkpoints"] > 0 for kill in kills),
        "differing": differing,
        "left_behind": left,
        "moments": kills,
    }
    write_json(arguments.out, content)
    print(json.dumps({key: value for key, value in content.items() if key != "moments"}))
    sys.exit(bool(differing or left))


if __name__ == "__main__":
    main()
