"""Held-out domains: random, blocked, at the edge and forward in time; reproducible, never splitting a domain."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from thetafield.data import DomainSet
from thetafield.data.folds import domain_folds, most_folds
from thetafield.datasets import DATASETS
from thetafield.errors import DataError, OptionError

KINDS = ("random", "blocked", "edge")


@pytest.fixture(scope="module")
def moons():
    return DATASETS["two-moons"](0, num_train=37, num_test=1).train


@pytest.fixture(scope="module")
def timed():
    train = DATASETS["two-moons-time"](0, num_train=9, num_test=1).train
    return train.select([5, 2, 7, 0, 1, 6, 3, 4, 8])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 3, 4])
def test_folds_part_the_domains(moons, kind, count):
    folds = domain_folds(moons, count, seed=3, kind=kind)
    assert len(folds) == count
    for kept, held in folds:
        assert sorted([*kept, *held]) == list(range(37)) and len(kept) and len(held)
    again = domain_folds(moons, count, seed=3, kind=kind)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(folds, again, strict=True))
    if (kind, count) in (("random", 3), ("random", 4), ("blocked", 4)):
        assert sorted(i for _, held in folds for i in held) == list(range(37))
        sizes = [len(held) for _, held in folds]
        assert max(sizes) - min(sizes) <= 1


def test_one_fold_holds_out_a_quarter(moons):
    for kind in KINDS:
        [(_, held)] = domain_folds(moons, 1, kind=kind)
        assert 9 <= len(held) <= 10


def test_only_the_random_kind_follows_the_seed(moons):
    for kind in KINDS:
        one, two = (domain_folds(moons, 3, seed=s, kind=kind)[0][1].tolist() for s in (0, 1))
        assert (one != two) == (kind == "random")


def test_blocked_folds_are_regions(moons):
    """No kept domain lies inside the box of a held-out region; however many are asked for, each is a quarter."""
    z = moons.z.numpy()
    folds = domain_folds(moons, 4, kind="blocked")
    assert all(9 <= len(held) <= 10 for _, held in folds)
    assert [held.tolist() for _, held in domain_folds(moons, 2, kind="blocked")] == [h.tolist() for _, h in folds[:2]]
    first, second = (z[held] for _, held in folds[:2])
    assert ((first.max(0) < second.min(0)) | (second.max(0) < first.min(0))).any()  # one of each half
    with pytest.raises(DataError, match="5 blocked folds were asked for, but these 37 domains allow 4"):
        domain_folds(moons, 5, kind="blocked")
    for kept, held in folds:
        low, high = z[held].min(0), z[held].max(0)
        inside = ((z[kept] >= low) & (z[kept] <= high)).all(1)
        assert not inside.any()


def test_edge_folds_are_extrapolation(moons):
    """Each holds out all that lies farthest along a principal direction, one way and then the other."""
    z = moons.z.numpy().astype(float)
    scaled = (z - z.min(0)) / np.ptp(z, axis=0)
    values, vectors = np.linalg.eigh(np.cov(scaled.T))
    axes = vectors[:, np.argsort(-values)].T
    for number, (kept, held) in enumerate(domain_folds(moons, 4, kind="edge")):
        along = scaled @ axes[number // 2]
        sign = 1 if along[held].mean() > along[kept].mean() else -1
        assert (sign * along[held]).min() >= (sign * along[kept]).max()
    first, second, third, fourth = (set(held.tolist()) for _, held in domain_folds(moons, 4, kind="edge"))
    assert not first & second and not third & fourth and first & third | first & fourth
    line = DomainSet.from_arrays(np.zeros((8, 1)), np.arange(8) % 2, z=np.arange(8.0)[:, None])
    assert [held.tolist() for _, held in domain_folds(line, 2, kind="edge")] == [[6, 7], [0, 1]]
    with pytest.raises(DataError, match="3 edge folds were asked for, but these 8 domains allow 2"):
        domain_folds(line, 3, kind="edge")


@pytest.mark.parametrize("kind", ["blocked", "edge"])
def test_one_fold_is_the_first_of_four(moons, kind):
    [(_, one)] = domain_folds(moons, 1, kind=kind)
    assert one.tolist() == domain_folds(moons, 4, kind=kind)[0][1].tolist()


def test_the_past_never_sees_the_future(timed):
    """Each fold looks about a quarter ahead, and no domain is held out twice."""
    order = np.argsort(timed.z[:, 0].numpy())
    [(kept, held)] = domain_folds(timed, 1, kind="time")
    assert sorted(held) == sorted(order[-3:]) and sorted(kept) == sorted(order[:-3])
    first, second = domain_folds(timed, 2, kind="time")
    assert [sorted(part) for part in first] == [sorted(order[:4]), sorted(order[4:7])]
    assert [sorted(part) for part in second] == [sorted(order[:7]), sorted(order[7:])]


def test_descriptors_that_say_the_same_have_edges_once():
    degrees = torch.linspace(0, 90, 12)[:, None]
    both = torch.cat([degrees, torch.deg2rad(degrees)], 1)
    assert most_folds(both, "edge") == most_folds(degrees, "edge") == 2
    assert most_folds(torch.ones(4, 2), "edge") == 0


def test_a_date_is_an_order():
    days = np.array(["2020-03-01", "2021-02-01", "2020-01-01", "2022-06-01", "2020-12-01", "2021-11-01"])
    domain = np.repeat(np.arange(6), 3)
    day = days.astype("datetime64[D]")[domain]
    frame = {"y": np.arange(18) % 2, "x": np.arange(18.0), "place": domain, "day": day, "height": domain * 1.0}
    dated = DomainSet.from_frame(pa.table(frame), target="y", domain="place", descriptors=["day"], features=["x"])
    [(kept, held)] = domain_folds(dated, 1, kind="time")
    assert set(dated.ids[held].tolist()) == {3, 5} and len(kept) == 4
    both = DomainSet.from_frame(
        pa.table(frame), target="y", domain="place", descriptors=["day", "height"], features=["x"]
    )
    with pytest.raises(DataError, match="there are 4"):
        domain_folds(both, 1, kind="time")


def test_what_cannot_be_held_out(moons, timed):
    with pytest.raises(DataError, match="need at least 2 domains, but there are 1"):
        domain_folds(moons.select([0]), 1)
    with pytest.raises(DataError, match="3 time folds were asked for, but these 5 domains allow 2"):
        domain_folds(timed.select(range(5)), 3, kind="time")
    with pytest.raises(
        DataError, match=r"one ordered descriptor, a number or a date, but there are 2 \(scale, rotation\)"
    ):
        domain_folds(moons, 1, kind="time")
    with pytest.raises(OptionError, match="one of random, blocked, edge, time, but got 'hull'"):
        domain_folds(moons, 1, kind="hull")
    assert [len(part) for part in domain_folds(moons.select([0, 1]), 1, kind="blocked")[0]] == [1, 1]
    bare = DomainSet.from_arrays(np.zeros((4, 1)), np.arange(4) % 2, domain=[0, 0, 1, 1])
    with pytest.raises(DataError, match="blocked folds need descriptors"):
        domain_folds(bare, 2, kind="blocked")
    assert len(domain_folds(bare, 2)) == 2
