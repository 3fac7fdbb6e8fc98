"""The prediction service under load: requests a second, latency, lost answers, and what malformed requests do to it.

The service is a process of its own, and so is the client, which holds all connections open. It sends 1,000 requests a
second, each counted from the moment it was due; or the next one on each connection as soon as the last is answered.
Both share this machine's cores.

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
import time
from pathlib import Path
from statistics import median

import numpy as np

ROWS = 32
LEAD = 0.5  # seconds in which lines are opened before the first request is due
RATE = 1000  # requests a second that the service has to bear
HOST = "127.0.0.1"
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


def http(path: str, body: bytes = b"", method: str = "POST") -> bytes:
    """Return a request as it goes over the wire."""
    return f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def question(x: np.ndarray, z: np.ndarray) -> bytes:
    """Return a request for answers."""
    inputs = [
        {"name": name, "shape": list(values.shape), "datatype": "FP32", "data": values.ravel().round(4).tolist()}
        for name, values in (("x", x), ("z", z))
    ]
    return http("/v2/models/m/infer", json.dumps({"id": "q", "inputs": inputs}).encode())


class Line(asyncio.Protocol):
    """One connection: sends a request, waits for the whole response, and says how long it took."""

    def __init__(self, choose, done, due=None, gap=0.0):
        self.choose, self.done, self.due, self.gap = choose, done, due, gap
        self.buffer, self.sent, self.closed = b"", 0.0, False

    def connection_made(self, transport):
        """Begin."""
        self.transport = transport
        self.send()

    def send(self):
        """Send the next request, or close."""
        if self.due is not None and self.due > time.perf_counter():
            asyncio.get_running_loop().call_later(self.due - time.perf_counter(), self.send)
            return
        request = self.choose()
        if request is None:
            self.closed = True
            self.transport.close()
            return
        self.sent = time.perf_counter()
        if self.due is not None:  # a request that was sent late, since the line was busy, has waited all the same
            self.sent, self.due = self.due, self.due + self.gap
        self.transport.write(request)

    def data_received(self, data):
        """Read on until the response is whole."""
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.buffer.find(b"content-length: ")
        size = int(self.buffer[at + 16 : self.buffer.index(b"\r\n", at)])
        if len(self.buffer) < head + 4 + size:
            return
        status, body = int(self.buffer[9:12]), self.buffer[head + 4 :]
        self.buffer = b""
        self.done(status, body, time.perf_counter() - self.sent)
        self.send()

    def connection_lost(self, error):
        """Note a line that the service has cut, as after a body that is too large."""
        if not self.closed:
            self.done(0, b"", time.perf_counter() - self.sent)
            self.closed = True


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


def malformed(rng: random.Random, good: bytes) -> bytes:
    """Return a request that is wrong in one of many ways."""
    body = good.split(b"\r\n\r\n", 1)[1]
    content = json.loads(body)
    path, method = "/v2/models/m/infer", "POST"
    junk = rng.choice([None, 1, -1.5, "y", [], {}, [[]], True, "NaN", 10**30, [1, "a"], {"a": 1}])
    way = rng.randrange(9)
    if way == 0:
        body = body[: rng.randrange(len(body))]
    elif way == 1:
        body = bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    elif way == 2:
        at = rng.randrange(len(body))
        body = body[:at] + rng.choice([b"NaN", b"}", b'"', b"\xff", b"[", b"1e999"]) + body[at + 1 :]
        if _valid(body):
            body = b"[" + body
    elif way == 3:
        path = rng.choice(["/v2/models/other/infer", "/v2/models/", "/x", "/v2/models/m/infer/x", "/field?z=a,b"])
        method = "GET" if path.startswith("/field") else "POST"
    elif way == 4:
        content["inputs"][rng.randrange(2)][rng.choice(["name", "shape", "datatype", "data"])] = junk
        body = json.dumps(content).encode()
    elif way == 5:
        del content["inputs"][rng.randrange(2)]
        body = json.dumps(content).encode()
    elif way == 6:
        content["inputs"] = junk
        body = json.dumps(content).encode()
    elif way == 7:
        content["inputs"][0]["data"][rng.randrange(10)] = rng.choice([None, "1", True, [1.0], {}, 1e300])
        body = json.dumps(content).encode()
    else:
        method = rng.choice(["GET", "PUT", "DELETE", "PATCH"])
    return http(path, body, method)


def _valid(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


async def fuzz(port: int, requests: list[bytes], connections: int = 8) -> dict[int, int]:
    """Send each request once, on a few connections; return how often each status came, 0 for a line that was cut."""
    counts: dict[int, int] = {}
    left = list(requests)

    def done(status, body, duration):
        if status >= 400 and b'"error"' not in body and b"Invalid HTTP" not in body:
            status = -status
        counts[status] = counts.get(status, 0) + 1

    loop, lines = asyncio.get_running_loop(), []
    choose = lambda: left.pop() if left else None  # noqa: E731
    while left or not all(line.closed for line in lines):
        lines = [line for line in lines if not line.closed]
        while left and len(lines) < connections:
            lines.append((await loop.create_connection(lambda: Line(choose, done), HOST, port))[1])
        await asyncio.sleep(0.01)
    return counts


def used(pid: int) -> tuple[float, float]:
    """Return the seconds in which a process has run, and in which it was ready to run but others had the cores."""
    spent = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(run) for run, *_ in spent) / 1e9, sum(int(wait) for _, wait, _ in spent) / 1e9


def resident(pid: int) -> float:
    """Return a process's memory in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def client() -> None:
    """Run one load in this process, as the parent's line on standard input says."""
    task = json.loads(sys.stdin.readline())
    rng = np.random.default_rng(task["seed"])
    requests = workload(task["kind"], rng, np.array(task["ends"]), task["width"])
    print(json.dumps(asyncio.run(load(task["port"], requests, task["connections"], task["seconds"], task["rate"]))))


def measure(service: Service, model: dict, kind: str, seed: int, connections: int, seconds: float, rate: float) -> dict:
    """Run one load in a second process."""
    ends = [model["parameters"]["lowest"], model["parameters"]["highest"]]
    width = model["inputs"][0]["shape"][1]
    task = {"port": service.port, "kind": kind, "seed": seed, "ends": ends, "width": width}
    task |= {"connections": connections, "seconds": seconds, "rate": rate}
    command = [sys.executable, __file__, "--client"]
    before = used(service.process.pid)
    done = subprocess.run(command, input=json.dumps(task) + "\n", capture_output=True, text=True, check=True)
    ran, waited = np.subtract(used(service.process.pid), before)
    found = json.loads(done.stdout)
    found["service_cpu_ms_per_request"] = round(1000 * ran / found["requests"], 3)
    found["service_waited_for_a_core"] = round(waited / (ran + waited), 3)  # of its time: 0 on a machine of one's own
    return found


def fetch(port: int, path: str) -> bytes:
    """Return what a GET answers."""
    from urllib.request import urlopen

    with urlopen(f"http://{HOST}:{port}{path}") as answer:
        return answer.read()


def summary(runs: list[dict]) -> dict:
    """Return the best and the median of repeated runs: the machine may be shared."""
    best = min(runs, key=lambda run: (-round(run["requests_per_second"], -2), run["p99_ms"]))
    middle = {key: median(run[key] for run in runs) for key in MIDDLE}
    return {"best": best, "median": middle, "lost_or_wrong": sum(r["lost_or_wrong"] for r in runs), "runs": len(runs)}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--field", default="out/two-moons-neurallio-0")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--malformed", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.client:
        client()
        return
    from thetafield.files import write_json

    words = {key: value for key, value in vars(options).items() if key not in ("client", "out")}
    command = " ".join(f"--{key} {value}" for key, value in words.items())
    record = {"command": f"python benchmarks/serving.py {command} --out {options.out}", "rows": ROWS}
    record["machine"] = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()}
    with Service(options.field) as service:
        model = json.loads(fetch(service.port, "/v2/models/m"))
        for kind, connections, rate in (
            ("one z", 64, RATE),
            ("one z", options.connections, 0),
            ("one z", 64, 0),
            ("own z", options.connections, 0),
            ("new z", options.connections, 0),
        ):
            runs = [
                measure(service, model, kind, seed, connections, options.seconds, rate)
                for seed in range(options.repeats)
            ]
            name = f"{kind}, {connections} connections, " + (
                f"{rate} requests a second" if rate else "as fast as it can"
            )
            record[name] = summary(runs)
            print(name, json.dumps(record[name]), flush=True)
        rng = random.Random(0)
        good = workload("one z", np.random.default_rng(0), np.array([model["parameters"]["lowest"]] * 2), 2)[:50]
        requests = [malformed(rng, rng.choice(good)) for _ in range(options.malformed)]
        asyncio.run(fuzz(service.port, requests[: options.malformed // 10]))  # what is taken once is taken
        before = resident(service.process.pid)
        counts = asyncio.run(fuzz(service.port, requests))
        record["malformed"] = {
            "requests": len(requests),
            "by_status": {str(status): counts[status] for status in sorted(counts)},
            "megabytes_before": round(before, 1),
            "megabytes_after": round(resident(service.process.pid), 1),
        }
        print(json.dumps(record["malformed"]))
    if options.out:
        write_json(options.out, record)


if __name__ == "__main__":
    main()
