"""How long does a report of 200 stored trials take, tables, figures and page, the first time and again?

Run: python benchmarks/report.py --runs results/runs.jsonl.xz --out results/cpu/report.json
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from thetafield.bench.packing import unpack
from thetafield.files import write_json

SUITE, TRIALS = "paper-table1", 200


def main() -> None:
    """Report a part of the stored runs twice."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=Path, required=True, help="A packed store.")
    parser.add_argument("--data-dir", type=Path, help="Where datasets lie, for the figures that show them.")
    parser.add_argument("--out", type=Path, help="File of the seconds.")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        unpack(arguments.runs, store)
        count = _keep(store)
        command = [sys.executable, "-m", "thetafield", "report", str(store), "--out", str(Path(folder) / "report")]
        command += ["--data-dir", str(arguments.data_dir)] if arguments.data_dir else []
        seconds = []
        for _ in range(2):
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds.append(round(time.perf_counter() - started, 2))
    found = {"command": " ".join(["python", *sys.argv]), "trials": count, "first": seconds[0], "again": seconds[1]}
    print(json.dumps(found))
    if arguments.out:
        write_json(arguments.out, found)


def _keep(store: Path) -> int:
    """Leave the first trials of one suite that have results, and return their number."""
    suite = json.loads((store / "suites" / f"{SUITE}.json").read_text())
    done = [entry for entry in suite["trials"] if (store / "results" / f"{entry['key']}.json").exists()][:TRIALS]
    kept = {entry["key"] for entry in done}
    for kind in ("results", "histories", "absent", "failures"):
        for file in (store / kind).glob("*.json"):
            if file.stem not in kept:
                file.unlink()
    shutil.rmtree(store / "suites")
    write_json(store / "suites" / f"{SUITE}.json", suite | {"trials": done})
    return len(done)


if __name__ == "__main__":
    main()
