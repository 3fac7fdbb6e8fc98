"""The client of the benchmark of the service: a process of its own, which holds all connections open.

It sends so many requests a second, each counted from the moment it was due; or the next one on each connection as soon
as the last is answered. Its task comes as a line of JSON on standard input, what it found goes to standard output.
"""

import asyncio
import json
import sys
import time

import numpy as np

from service_wire import HOST, Line, http

ROWS = 32
LEAD = 0.5  # seconds in which lines are opened before the first request is due


def question(x: np.ndarray, z: np.ndarray) -> bytes:
    """Return a request for answers."""
    inputs = [
        {"name": name, "shape": list(values.shape), "datatype": "FP32", "data": values.ravel().round(4).tolist()}
        for name, values in (("x", x), ("z", z))
    ]
    return http("/v2/models/m/infer", json.dumps({"id": "q", "inputs": inputs}).encode())


def workload(kind: str, rng: np.random.Generator, ends: np.ndarray, width: int) -> list[bytes]:
    """Return requests with 32 points each.

    one z: each request about one of 100 descriptors, as a service of 100 stations has it. own z: each point with a
    descriptor of its own among 1,000. new z: each request about a descriptor that was never asked for.
    """
    pool = rng.uniform(ends[0], ends[1], (1000, ends.shape[1]))
    count = {"one z": 2000, "own z": 1000, "new z": 40_000}[kind]
    requests = []
    for _ in range(count):
        x = rng.normal(size=(ROWS, width))
        if kind == "one z":
            z = pool[rng.integers(100)][None]
        else:
            z = pool[rng.integers(1000, size=ROWS)] if kind == "own z" else rng.uniform(ends[0], ends[1])[None]
        requests.append(question(x, z))
    return requests


async def load(port: int, requests: list[bytes], connections: int, seconds: float, rate: float = 0) -> dict:
    """Keep all connections busy for some seconds, or send so many requests a second, whatever the answers take."""
    end = time.perf_counter() + seconds + (LEAD if rate else 0)
    sent, taken, wrong, last = 0, [], 0, 0.0

    def choose():
        nonlocal sent
        if time.perf_counter() > end:
            return None
        sent += 1
        return requests[sent % len(requests)]

    def done(status, body, duration):
        nonlocal wrong, last
        last = time.perf_counter()
        taken.append(duration)
        wrong += status != 200 or b'"trust"' not in body

    loop = asyncio.get_running_loop()
    started = time.perf_counter() + (LEAD if rate else 0)
    lines = []
    for k in range(connections):
        due, gap = (started + k / rate, connections / rate) if rate else (None, 0.0)
        lines.append(await loop.create_connection(lambda due=due, gap=gap: Line(choose, done, due, gap), HOST, port))
    while not all(line.closed for _, line in lines):
        await asyncio.sleep(0.02)
    wall = last - started
    times = np.array(taken) * 1000
    return {
        "requests_per_second": round(len(taken) / wall, 1),
        "p50_ms": round(float(np.quantile(times, 0.5)), 2),
        "p99_ms": round(float(np.quantile(times, 0.99)), 2),
        "worst_ms": round(float(times.max()), 2),
        "requests": sent,
        "lost_or_wrong": sent - len(taken) + wrong,
    }


def main() -> None:
    """Run one load in this process, as the line on standard input says."""
    task = json.loads(sys.stdin.readline())
    rng = np.random.default_rng(task["seed"])
    requests = workload(task["kind"], rng, np.array(task["ends"]), task["width"])
    print(json.dumps(asyncio.run(load(task["port"], requests, task["connections"], task["seconds"], task["rate"]))))


if __name__ == "__main__":
    main()
