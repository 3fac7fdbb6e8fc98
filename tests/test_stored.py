"""Domains on the disk: the same draws as in memory, and nothing half-written."""

from pathlib import Path

import numpy as np
import pytest
import torch

from thetafield.data.domains import DomainSet
from thetafield.data.stored import open_domains, store_domains
from thetafield.datasets import DATASETS
from thetafield.errors import DataError, FormatError
from thetafield.evaluation import evaluate
from thetafield.training import train_field

STATM = Path("/proc/self/statm")


@pytest.fixture
def moons():
    return DATASETS["two-moons"](0, num_train=7, num_test=3)


def same(first, second):
    for part in ("x", "y", "z", "offsets"):
        assert torch.equal(getattr(first, part), getattr(second, part)), part
    assert first.ids.tolist() == second.ids.tolist() and first.classes.tolist() == second.classes.tolist()
    assert (first.descriptors, first.factors, first.features) == (second.descriptors, second.factors, second.features)


def test_pieces_come_back_as_one(moons, tmp_path):
    train = moons.train
    store_domains((train.select([i, i + 1]) for i in (0, 2, 4)), tmp_path / "set")
    opened = open_domains(tmp_path / "set")
    assert opened.on_disk and len(opened) == 6
    same(opened, train.select(range(6)))
    from safetensors.torch import load_file

    assert torch.equal(load_file(tmp_path / "set/x.safetensors")["x"], opened.x)  # an ordinary safetensors file


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.float64])
def test_types_are_kept(moons, tmp_path, dtype):
    x = (moons.train.x.abs() * 10).to(dtype).reshape(-1, 1, 2)
    domains = DomainSet(**{**vars(moons.train), "x": x, "features": None})
    store_domains([domains], tmp_path / "set")
    opened = open_domains(tmp_path / "set")
    assert opened.x.dtype == dtype and torch.equal(opened.x, x)


def test_draws_and_training_are_the_same_as_in_memory(moons, tmp_path):
    store_domains([moons.train], tmp_path / "set")
    opened = open_domains(tmp_path / "set")
    index = torch.tensor([4, 0, 6])
    batches = [d.draw(index, 5, torch.Generator().manual_seed(0)) for d in (moons.train, opened)]
    assert torch.equal(batches[0].x, batches[1].x) and torch.equal(batches[0].y, batches[1].y)
    assert torch.equal(moons.train.padded(index).x, opened.padded(index).x)
    options = {"steps": 20, "samples": 8}
    models = [train_field(d, "erm", seed=0, options=options, device="cpu").model for d in (moons.train, opened)]
    assert torch.equal(models[0].field.theta, models[1].field.theta)
    assert evaluate(models[1], opened).score == evaluate(models[0], moons.train).score
    moved = opened.to("cpu", torch.float64)
    assert moved.on_disk and moved.x.dtype == torch.float32 and moved.z.dtype == torch.float64
    assert not opened.select([1, 2]).on_disk
    with pytest.raises(DataError, match="trained on as they are stored"):
        train_field(opened, "erm", seed=0, options=options, standardise=True)


@pytest.mark.skipif(not STATM.exists(), reason="this system does not say how many pages a process holds")
def test_a_draw_touches_only_what_it_needs(tmp_path):
    """The set may be far larger than what is read: an address space limit would not allow all of it."""
    rows, width = 2000, 512
    parts = (
        DomainSet(
            x=torch.full((rows, width), float(i), dtype=torch.float16),
            y=torch.zeros(rows, dtype=torch.int64),
            z=torch.tensor([[float(i)]]),
            offsets=torch.tensor([0, rows]),
            ids=np.array([i]),
            descriptors=("t",),
            factors=("t",),
            classes=np.array([0, 1]),
        )
        for i in range(60)
    )
    store_domains(parts, tmp_path / "set")
    domains = open_domains(tmp_path / "set")
    before = resident_pages()
    batch = domains.draw(torch.tensor([3, 59]), 4, torch.Generator().manual_seed(0))
    assert batch.x[0].unique().tolist() == [3.0] and batch.x[1].unique().tolist() == [59.0]
    read = (resident_pages() - before) * 4096
    assert read < 0.25 * domains.x.numel() * 2


def resident_pages():
    return int(STATM.read_text().split()[1])


@pytest.mark.parametrize("name", ["x.safetensors", "y.safetensors", "z.safetensors", "domains.json"])
@pytest.mark.parametrize("damage", ["gone", "short", "empty"])
def test_a_damaged_folder_is_refused(moons, tmp_path, name, damage):
    store_domains([moons.train], tmp_path / "set")
    file = tmp_path / "set" / name
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(content[: len(content) // 2] if damage == "short" else b"")
    with pytest.raises(FormatError, match="damaged"):
        open_domains(tmp_path / "set")


def test_a_stop_in_the_middle_leaves_the_older_set(moons, tmp_path):
    store_domains([moons.train], tmp_path / "set")

    def broken():
        yield moons.train.select([0])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store_domains(broken(), tmp_path / "set")
    same(open_domains(tmp_path / "set"), moons.train)
    with pytest.raises(FormatError, match="no domains to store"):
        store_domains([], tmp_path / "other")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["set"]
