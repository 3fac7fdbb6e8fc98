"""What each of several ranks does in test_ranks: all that a fresh process is too dear for."""

import json
import os
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from thetafield.data.shard import Shard
from thetafield.errors import DivergenceError
from thetafield.ranks import Ranks
from thetafield.testing.toys import make_method, toy_problem
from thetafield.training.checkpoint import NAME, Checkpoint
from thetafield.training.fit import fit

MANY = {"num_domains": 13}
LAZY = {"block": 3, "neighbours": 2, "samples": 4, "epochs": 3}
OURS = LAZY | {"metric": False}
POOLED = ("erm", "irm", "erm-d", "film", "hypernet", "cida", "nda", "interpolate")
CASES = {
    # θ in parts: charts of a block are fewer than domains.
    "paper": ("neurallio-paper", MANY, LAZY),
    "all samples": ("neurallio", MANY, OURS | {"block": 4, "samples": 0, "base": "reading"}),
    "random charts": ("neurallio-paper", MANY, LAZY | {"charts": False, "keep": "last"}),
    "regression": ("neurallio", MANY | {"regression": True}, OURS),
    "no generators": ("neurallio-plain", MANY, LAZY),
    "on the disk": ("neurallio", MANY, OURS),
    # θ whole with every rank: all domains in a part's support, or one entry for each of its edges.
    "few domains": ("neurallio", {}, {"epochs": 3, "metric": False, "base": "none"}),
    "few domains, smaller parts": ("neurallio-paper", {"num_domains": 8}, {"block": 4, "epochs": 3}),
    **{name: (name, {"num_domains": 7}, {}) for name in POOLED},
}


def made(case, ranks):
    name, data, options = CASES[case]
    problem = toy_problem(**data)
    domains = replace(problem.domains, on_disk=case == "on the disk")
    return make_method(name, replace(problem, domains=Shard.of(domains, ranks)), **options)


class Killed(Exception):
    pass


def kill(progress):
    """Stop a run as a kill would: after its second epoch, before that is written."""
    if progress.done == 2:
        raise Killed


def act(rank, count, port, folder):
    """Train every case, resume a run of one rank, leave one of several for one, and see a run diverge."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank)}
    torch.set_num_threads(1)
    ranks = Ranks.started()
    ranks.join(torch.device("cpu"))
    check_exchange(ranks)
    for case in CASES:
        method = made(case, ranks)
        history = fit(method).history
        if ranks.first:
            save_file(method.state_dict(), folder / f"{case}.safetensors")
            (folder / f"{case}.json").write_text(json.dumps(history))
    resumed = made("paper", ranks)
    assert (folder / "one" / NAME).exists()
    fit(resumed, Checkpoint(folder / "one", {}, every=0.0))
    if ranks.first:
        save_file(resumed.state_dict(), folder / "resumed.safetensors")
    with pytest.raises(Killed):
        fit(made("paper", ranks), Checkpoint(folder / "several", {}, every=0.0), kill)
    problem = toy_problem()
    with pytest.raises(DivergenceError):
        fit(make_method("erm", replace(problem, domains=Shard.of(problem.domains, ranks)), lr=1e200, steps=200))
    ranks.leave()


def check_exchange(ranks):
    """Rows of every type that samples are stored as come from wherever they lie; parts become a whole."""
    stream = torch.Generator().manual_seed(0)
    own, index = ranks.part(11), torch.randint(11, (2, 5), generator=stream) * (ranks.rank + 1) % 11
    for dtype in (torch.uint8, torch.int16, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.bool):
        table = (torch.randn((11, 3), generator=stream) * 50).abs().to(dtype)
        for whole in (table, table[:, 0].contiguous()):
            assert torch.equal(ranks.fetched(whole[own], own.start, index), whole[index])
            collected = ranks.collected(whole[own], 11)
            assert torch.equal(collected, whole if ranks.first else whole[own])
    assert ranks.agreed([ranks.rank == 1, False, True], index.device) == [True, False, True]
    assert ranks.in_turn(lambda: ranks.rank) == ranks.rank
