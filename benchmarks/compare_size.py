"""How long `thetafield compare` takes on a large table, and how much memory all its processes hold together.

Run: python benchmarks/compare_size.py --out results/cpu/compare-size.json
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from thetafield.files import write_json

LOOK = 0.5  # seconds between two looks at the memory


def table(rows: int, domains: int, features: int) -> pa.Table:
    """Return rows whose boundary turns with the first of three descriptors."""
    stream = np.random.default_rng(0)
    domain = np.sort(stream.integers(domains, size=rows))
    z = stream.uniform(size=(domains, 3))[domain]
    x = stream.normal(size=(rows, features))
    angle = 3 * z[:, 0]
    y = x[:, 0] * np.cos(angle) + x[:, 1] * np.sin(angle) + 0.3 * x[:, 2] + 0.4 * stream.normal(size=rows) > 0
    columns = {"domain": domain, **{f"z{i}": z[:, i] for i in range(3)}, **{f"x{i}": x[:, i] for i in range(features)}}
    return pa.table(columns | {"y": np.where(y, "yes", "no")})


def family(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # it has ended
            continue
        for child in children:
            found += family(int(child))
    return found


def held(pid: int) -> int:
    """Return the bytes that a family of processes holds, shared pages counted once for each of them in part (PSS)."""
    total = 0
    for member in family(pid):
        try:
            lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def main() -> None:
    """Make the table, run the command, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--domains", type=int, default=200)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parquet.write_table(table(arguments.rows, arguments.domains, arguments.features), folder / "t.parquet")
        words = [sys.executable, "-m", "thetafield", "compare", str(folder / "t.parquet"), "--target", "y"]
        words += ["--domain", "domain", "--descriptors", "z0,z1,z2", "--out", str(folder / "out"), "--json"]
        words += [] if arguments.budget is None else ["--budget", str(arguments.budget)]
        words += [] if arguments.jobs is None else ["--jobs", str(arguments.jobs)]
        started, peak = time.perf_counter(), 0
        with (folder / "said").open("w") as said:
            running = subprocess.Popen(words, stdout=said)
            while running.poll() is None:
                peak = max(peak, held(running.pid))
                time.sleep(LOOK)
        seconds = time.perf_counter() - started
        if running.returncode:
            sys.exit(running.returncode)
        result = json.loads((folder / "said").read_text())
        page = (folder / "out" / "index.html").stat().st_size
    content = {
        "command": "python " + " ".join(sys.argv),
        "rows": arguments.rows,
        "domains": arguments.domains,
        "features": arguments.features,
        "budget": result["budget"],
        "seconds": round(seconds, 1),
        "peak_memory_mb": round(peak / 1e6),
        "page_bytes": page,
        "verdict": result["verdict"]["headline"],
        "leaderboard": result["leaderboard"],
        "absent": result["absent"],
        "plan": result["plan"],
        "warnings": result["warnings"],
        "device": result["device"],
        "versions": result["versions"],
    }
    print(json.dumps({key: content[key] for key in ("seconds", "peak_memory_mb", "verdict", "warnings")}, indent=2))
    if arguments.out:
        write_json(arguments.out, content)


if __name__ == "__main__":
    main()
