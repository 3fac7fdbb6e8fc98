"""The prediction service under load: requests a second, latency, lost answers, and what malformed requests do to it.

The service is a process of its own, and so is the client (service_load.py), which sends 1,050 requests a second, or as
many as are answered. Both share this machine's cores.

Run: python benchmarks/serving.py --field out/two-moons-neurallio-0 --out results/cpu/serving.json
"""

import argparse
import asyncio
import json
import os
import platform
import random
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import numpy as np

import service_load
from service_load import ROWS, workload
from service_malformed import fuzz, malformed
from service_wire import HOST
from thetafield.files import write_json

RATE = 1050  # requests a second: at least 1,000 have to be borne, and those under way at the end count for none
MIDDLE = ("requests_per_second", "p50_ms", "p99_ms", "service_cpu_ms_per_request", "service_waited_for_a_core")


class Service:
    """`thetafield serve` as a process, on a free port."""

    def __init__(self, field: str, words=()):
        command = [sys.executable, "-m", "thetafield", "serve", field, "--port", "0", "--name", "m", *words]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        line = self.process.stderr.readline()
        found = re.search(r"http://127.0.0.1:(\d+)/", line)
        if not found:
            sys.exit(line)
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


def used(pid: int) -> tuple[float, float]:
    """Return the seconds in which a process has run, and in which it was ready to run but others had the cores."""
    spent = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(run) for run, *_ in spent) / 1e9, sum(int(wait) for _, wait, _ in spent) / 1e9


def resident(pid: int) -> float:
    """Return a process's memory in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def fetch(port: int, path: str) -> bytes:
    """Return what a GET answers."""
    with urlopen(f"http://{HOST}:{port}{path}") as answer:
        return answer.read()


def loads(connections: int) -> dict[str, tuple[str, int, float]]:
    """Return the loads that are measured: descriptors, connections and requests a second; 0 waits for answers alone."""
    kinds = [
        ("one z", 64, RATE),
        ("own z", 64, RATE),
        ("new z", 64, RATE),
        ("one z", connections, 0),
        ("one z", 64, 0),
        ("own z", connections, 0),
        ("new z", connections, 0),
    ]
    pace = {RATE: f"{RATE} requests a second", 0: "as fast as it can"}
    return {f"{kind}, {count} connections, {pace[rate]}": (kind, count, rate) for kind, count, rate in kinds}


def measure(service: Service, model: dict, kind: str, connections: int, rate: float, seed: int, seconds: float) -> dict:
    """Run one load in a second process."""
    ends = [model["parameters"]["lowest"], model["parameters"]["highest"]]
    width = model["inputs"][0]["shape"][1]
    task = {"port": service.port, "kind": kind, "seed": seed, "ends": ends, "width": width}
    task |= {"connections": connections, "seconds": seconds, "rate": rate}
    command = [sys.executable, service_load.__file__]
    before = used(service.process.pid)
    done = subprocess.run(command, input=json.dumps(task) + "\n", capture_output=True, text=True, check=True)
    ran, waited = np.subtract(used(service.process.pid), before)
    found = json.loads(done.stdout)
    found["service_cpu_ms_per_request"] = round(1000 * ran / found["requests"], 3)
    found["service_waited_for_a_core"] = round(waited / (ran + waited), 3)  # of its time: 0 on a machine of one's own
    return found


def summary(runs: list[dict]) -> dict:
    """Return the best and the median of repeated runs: the machine may be shared."""
    best = min(runs, key=lambda run: (-round(run["requests_per_second"], -2), run["p99_ms"]))
    middle = {key: median(run[key] for run in runs) for key in MIDDLE}
    return {"best": best, "median": middle, "lost_or_wrong": sum(r["lost_or_wrong"] for r in runs), "runs": len(runs)}


def endured(service: Service, model: dict, count: int) -> dict:
    """Send malformed requests, and return how they were answered and what memory they took."""
    rng = random.Random(0)
    good = workload("one z", np.random.default_rng(0), np.array([model["parameters"]["lowest"]] * 2), 2)[:50]
    requests = [malformed(rng, rng.choice(good)) for _ in range(count)]
    asyncio.run(fuzz(service.port, requests[: count // 10]))  # what is taken once is taken
    before = resident(service.process.pid)
    counts = asyncio.run(fuzz(service.port, requests))
    return {
        "requests": len(requests),
        "by_status": {str(status): counts[status] for status in sorted(counts)},
        "megabytes_before": round(before, 1),
        "megabytes_after": round(resident(service.process.pid), 1),
    }


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--field", default="out/two-moons-neurallio-0")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--malformed", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    words = {key: value for key, value in vars(options).items() if key != "out"}
    command = " ".join(f"--{key} {value}" for key, value in words.items())
    record = {"command": f"python benchmarks/serving.py {command} --out {options.out}", "rows": ROWS}
    record["machine"] = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()}
    with Service(options.field) as service:
        model = json.loads(fetch(service.port, "/v2/models/m"))
        for name, load in loads(options.connections).items():
            runs = [measure(service, model, *load, seed, options.seconds) for seed in range(options.repeats)]
            record[name] = summary(runs)
            print(name, json.dumps(record[name]), flush=True)
        record["malformed"] = endured(service, model, options.malformed)
        print(json.dumps(record["malformed"]))
    if options.out:
        write_json(options.out, record)


if __name__ == "__main__":
    main()
