"""Several ranks take the steps of one, and go on where some of them died."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import multiprocessing

from ranked import CASES, Killed, act, kill, made
from thetafield.bench import run_trial
from thetafield.data.shard import Shard
from thetafield.datasets.own_table import OwnTable
from thetafield.errors import DataError, NeedError, OptionError
from thetafield.methods.base import METHODS
from thetafield.ranks import ALONE, Ranks
from thetafield.testing.toys import toy_problem
from thetafield.training import fit
from thetafield.training.checkpoint import NAME, Checkpoint

OPTIONS = {
    "erm": {"steps": 250, "samples": 4},
    "neurallio-paper": {
        "epochs": 20,
        "block": 5,
        "samples": 4,
        "neighbours": 3,
        "widths": (16, 8),
        "latent_dim": 4,
        "hidden": 8,
    },
}
PROCESSES = Path("/proc/self/task")


def check_history(first, second, tolerance):
    assert [list(record) for record in first] == [list(record) for record in second]
    for one, other in zip(first, second, strict=True):
        assert other == {k: pytest.approx(v, tolerance) if isinstance(v, float) else v for k, v in one.items()}


def check_tensors(first, second, tolerance, what):
    assert first.keys() == second.keys()
    for key, value in first.items():
        message = f"{what}: {key} differs by {(value - second[key]).abs().max()}"
        torch.testing.assert_close(value, second[key], rtol=tolerance, atol=tolerance, msg=message)


def test_two_ranks_take_the_steps_of_one(tmp_path):
    """In double precision, for every way that a step is divided; and a checkpoint serves any number of ranks."""
    with pytest.raises(Killed):
        fit(made("paper", ALONE), Checkpoint(tmp_path / "one", {}, every=0.0), kill)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(act, (2, port, tmp_path), 2)
    for case in CASES:
        alone = made(case, ALONE)
        check_history(fit(alone).history, json.loads((tmp_path / f"{case}.json").read_text()), 1e-9)
        check_tensors(load_file(tmp_path / f"{case}.safetensors"), alone.state_dict(), 1e-8, case)
        if case == "paper":
            check_tensors(load_file(tmp_path / "resumed.safetensors"), alone.state_dict(), 1e-8, "from one to several")
            resumed = made("paper", ALONE)
            assert (tmp_path / "several" / NAME).exists()
            fit(resumed, Checkpoint(tmp_path / "several", {}, every=0.0))
            check_tensors(resumed.state_dict(), alone.state_dict(), 1e-8, "from several to one")


def test_every_divisible_method_is_tried():
    divisible = {name for name, method in METHODS if method.divisible}
    assert divisible == {name for name, _, _ in CASES.values()} | {"neurallio-nolie"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Sixty places with a few samples each."""
    path, stream = tmp_path_factory.mktemp("table") / "places.csv", np.random.default_rng(0)
    lines = ["site,u,v,a,b,y"]
    for site in range(60):
        u, v = stream.uniform(size=2)
        for a, b in stream.normal(size=(stream.integers(5, 12), 2)):
            lines.append(f"{site},{u},{v},{a},{b},{'up' if a * np.cos(2 * u) + b * np.sin(2 * v) > 0 else 'down'}")
    path.write_text("\n".join(lines))
    return path


def trial(table, method, out, **more):
    task = OwnTable(str(table), "y", domain="site", descriptors=("u", "v"))
    return run_trial(task, method, seed=0, out=out, options=OPTIONS[method], device="cpu", **more)


@pytest.fixture(scope="module")
def alone(table):
    """Return the folder of a method's trial on one rank."""
    for method in OPTIONS:
        trial(table, method, table.parent / method)
    return table.parent


def torchrun(table, method, out, *words):
    """Start two ranks as a person does."""
    settings = [f"{k}={','.join(map(str, v)) if isinstance(v, tuple) else v}" for k, v in OPTIONS[method].items()]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *words]
    command += ["-m", "thetafield", "train", str(table), method, "--target", "y", "--domain", "site"]
    command += ["--descriptors", "u,v", "--device", "cpu", "--out", str(out), "--resume", "--checkpoint-every", "0"]
    command += [word for setting in settings for word in ("--set", setting)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(path, launcher):
    while not path.exists():
        assert launcher.poll() is None, launcher.communicate()[1]
        time.sleep(0.01)


def check_trials(first, second):
    check_history(*(json.loads((folder / "history.json").read_text()) for folder in (first, second)), 1e-4)
    fields = [load_file(folder / "field" / "field.safetensors") for folder in (first, second)]
    torch.testing.assert_close(fields[0]["field/theta"], fields[1]["field/theta"], rtol=1e-4, atol=1e-5)
    assert not (second / NAME).exists()


@pytest.mark.parametrize("method", list(OPTIONS))
def test_torchrun_ends_where_one_process_does(table, alone, method, tmp_path):
    launcher = torchrun(table, method, tmp_path / "two")
    output, errors = launcher.communicate()
    assert launcher.returncode == 0, errors
    assert output.count("over 15 unseen domains") == 1, "both ranks speak"
    check_trials(alone / method, tmp_path / "two")
    assert json.loads((tmp_path / "two/result.json").read_text())["device"].startswith("2 × ")


@pytest.mark.skipif(not PROCESSES.exists(), reason="this system does not list processes as files")
def test_a_killed_rank_comes_back(table, alone, tmp_path):
    out = tmp_path / "killed"
    launcher = torchrun(table, "neurallio-paper", out, "--max-restarts", "1")
    wait_for(out / NAME, launcher)
    os.kill(worker(launcher.pid, rank=1), signal.SIGKILL)
    _, errors = launcher.communicate()
    assert launcher.returncode == 0, errors
    assert "exitcode: -9" in errors, errors
    check_trials(alone / "neurallio-paper", out)


def worker(launcher, rank):
    """Return the process of a rank."""
    lists = [path.read_text() for path in Path(f"/proc/{launcher}/task").glob("*/children")]
    for child in " ".join(lists).split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError(f"rank {rank} does not run")


def test_one_rank_goes_on_where_two_were_stopped(table, alone, tmp_path):
    out = tmp_path / "stopped"
    launcher = torchrun(table, "neurallio-paper", out)
    wait_for(out / NAME, launcher)
    launcher.send_signal(signal.SIGINT)
    _, errors = launcher.communicate()
    assert errors.count("--resume goes on from there") == 1, errors
    assert (out / NAME).exists() and not (out / "result.json").exists()
    trial(table, "neurallio-paper", out, resume=True)
    check_trials(alone / "neurallio-paper", out)


def test_a_method_that_needs_one_rank_says_so(tmp_path):
    told = []
    for rank in ("0", "1"):
        environment = os.environ | {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"}
        words = [sys.executable, "-m", "thetafield", "train", "two-moons", "vrex", "--out", str(tmp_path / "out")]
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        assert done.returncode == 2 and not done.stdout
        told.append(done.stderr)
    assert told[0].count("\n") == 1 and "V-REx looks at all domains together and trains on one rank" in told[0]
    assert not told[1] and not (tmp_path / "out").exists()
    with pytest.raises(NeedError, match="torchrun started 2"):
        METHODS["trees"].check_ranks(Ranks(2, 0))


def test_what_ranks_cannot_do(tmp_path):
    domains = toy_problem().domains
    with pytest.raises(DataError, match="7 ranks for 6 training domains"):
        Shard.of(domains, Ranks(7, 0))
    with pytest.raises(OptionError, match="Tuning runs on one rank"):
        run_trial("two-moons", "erm", seed=0, out=tmp_path, tune_draws=2, ranks=Ranks(2, 0))
    with pytest.raises(OptionError, match="'cuda:1', but 2 ranks need a GPU each"):
        Ranks(2, 0).device(torch.device("cuda:1"))
    with pytest.raises(OptionError, match="GPUs on this host for more ranks"):
        Ranks(999, 998, 998).device(torch.device("cuda"))


def test_parts_cover_all_and_a_shard_holds_its_own():
    domains = toy_problem(num_domains=7).domains
    shards = [Shard.of(domains, Ranks(3, rank)) for rank in range(3)]
    assert torch.equal(torch.cat([shard.x for shard in shards]), domains.x)
    assert all(len(shard) == 7 and torch.equal(shard.offsets, domains.offsets) for shard in shards)
    assert Shard.of(domains, ALONE) is domains
    stream = torch.random.get_rng_state()
    whole = domains.draw(torch.arange(7), 4)
    drawn = []
    for shard in shards:
        torch.random.set_rng_state(stream)
        drawn.append(shard.draw_own(4))
    for name in ("x", "y", "weight", "index"):
        assert torch.equal(torch.cat([getattr(batch, name) for batch in drawn]), getattr(whole, name))
