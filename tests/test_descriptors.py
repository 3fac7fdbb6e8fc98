"""Scaling, the paper's three imperfections, and the 2-Moons domains they are applied to."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from thetafield import DomainSet
from thetafield.data.descriptors import (
    DescriptorScaler,
    add_noise,
    add_projections,
    check_descriptors,
    drop_coordinates,
)
from thetafield.datasets import DATASETS
from thetafield.errors import DataError

two_moons = DATASETS["two-moons"]


def plain(num_domains=9, width=2, seed=0):
    z = np.random.default_rng(seed).uniform(-1, 3, size=(num_domains, width))
    return DomainSet.from_arrays(
        np.arange(2.0 * num_domains), np.arange(2.0 * num_domains), domain=np.repeat(np.arange(num_domains), 2), z=z
    )


def same(a, b):
    assert a.descriptors == b.descriptors
    for name in ("x", "y", "z", "offsets"):
        assert torch.equal(getattr(a, name), getattr(b, name)), name


def test_scaler_reads_training_descriptors_only():
    train, unseen = torch.tensor([[0.0, -10.0], [50.0, 10.0]]), torch.tensor([[100.0, 0.0], [-25.0, 20.0]])
    scaler = DescriptorScaler.fit(train)
    assert scaler(train).tolist() == [[0, 0], [1, 1]]
    assert scaler(unseen).tolist() == [[2, 0.5], [-0.5, 1.5]]
    assert scaler(unseen.reshape(1, 2, 2)).shape == (1, 2, 2)


def test_scaler_takes_one_domain_as_the_origin():
    scaler = DescriptorScaler.fit(torch.tensor([[3.0, 4.0]]))
    assert scaler(torch.tensor([[3.0, 4.0], [5.0, 4.0]])).tolist() == [[0, 0], [2, 0]]


def test_a_coordinate_that_does_not_vary_in_training_tells_nothing():
    scaler = DescriptorScaler.fit(torch.tensor([[3.0, 4.0], [2.0, 4.0]]))
    assert scaler(torch.tensor([[2.5, 4.0], [2.5, 900.0]])).tolist() == [[0.5, 0], [0.5, 0]]


def test_a_descriptor_with_one_value_is_refused_and_a_part_of_a_factor_is_not():
    z = np.array([[3.0, 4.0], [2.0, 4.0]])
    given = {"domain": np.arange(2), "z": z, "descriptors": ["a", "b"]}
    apart = DomainSet.from_arrays(np.eye(2), np.arange(2), **given)
    with pytest.raises(DataError, match=r"Descriptor 'b' has the same value \(4\) in all 2 domains"):
        check_descriptors(apart)
    check_descriptors(DomainSet.from_arrays(np.eye(2), np.arange(2), **given, factors=["date", "date"]))
    check_descriptors(apart.select([0]))


def test_scaler_refuses_another_width():
    scaler = DescriptorScaler.fit(torch.tensor([[3.0, 4.0], [2.0, 5.0]]))
    with pytest.raises(DataError, match="z has width 3, but the field was fitted with 2 descriptors"):
        scaler(torch.zeros(1, 3))


def test_noise_is_appended_within_the_range_of_the_first_coordinate():
    domains = plain(200)
    noisy = add_noise(domains, 3, seed=1)
    assert noisy.descriptors == ("z0", "z1", "noise0", "noise1", "noise2")
    assert noisy.factors == ("z0", "z1", "noise", "noise", "noise")
    assert torch.equal(noisy.z[:, :2], domains.z)
    extra, low, high = noisy.z[:, 2:], domains.z[:, 0].min(), domains.z[:, 0].max()
    assert ((extra >= low) & (extra <= high)).all()
    assert extra.std() == pytest.approx(float(high - low) / 12**0.5, rel=0.1)
    correlation = np.corrcoef(noisy.z.numpy().T)
    assert abs(correlation[2:, :2]).max() < 0.25
    same(noisy, add_noise(domains, 3, seed=1))
    assert not torch.equal(noisy.z, add_noise(domains, 3, seed=2).z)


def test_redundant_coordinates_are_linear_in_the_true_ones():
    domains = plain()
    redundant = add_projections(domains, 3, seed=1)
    assert redundant.descriptors == ("z0", "z1", "projection0", "projection1", "projection2")
    assert redundant.factors == ("z0", "z1", "mixed", "mixed", "mixed")
    assert torch.equal(redundant.z[:, :2], domains.z)
    true, extra = domains.z.double(), redundant.z[:, 2:].double()
    matrix = torch.linalg.lstsq(true, extra).solution
    assert_allclose(true @ matrix, extra, atol=1e-5)
    assert torch.linalg.matrix_rank(redundant.z, rtol=1e-5) == 2
    # The projection does not depend on the domains: other domains, or fewer, go through the same matrix.
    assert_allclose(add_projections(domains.select([4, 2]), 3, seed=1).z, redundant.z[[4, 2]], rtol=1e-6)


def test_dropped_coordinates_are_a_nested_family_of_eight_projections():
    domains = plain()
    whole = drop_coordinates(domains, 0, seed=1)
    assert whole.descriptors == tuple(f"projection{i}" for i in range(8))
    assert whole.factors == ("mixed",) * 8
    before = set(whole.descriptors)
    for count in range(1, 8):
        left = drop_coordinates(domains, count, seed=1)
        assert left.z.shape == (9, 8 - count)
        assert set(left.descriptors) < before
        columns = [whole.descriptors.index(name) for name in left.descriptors]
        assert_allclose(left.z, whole.z[:, columns], rtol=1e-6)
        before = set(left.descriptors)
    for count in (-1, 8):
        with pytest.raises(DataError, match=f"Of 8 coordinates 0 to 7 can be dropped, but {count} were asked for"):
            drop_coordinates(domains, count, seed=1)


def test_moons_have_the_sizes_of_the_paper():
    data = two_moons(seed=0)
    groups = {"train": data.train, **data.test}
    assert {name: len(domains) for name, domains in groups.items()} == {"train": 50, "random": 150, "mesh": 441}
    for domains in groups.values():
        assert (domains.sizes == 1000).all()
        assert (domains.y.reshape(-1, 1000).sum(1) == 500).all()
        assert domains.x.shape == (1000 * len(domains), 2)
        assert (domains.descriptors, domains.factors) == (("scale", "rotation"),) * 2
        assert ((domains.z >= 0) & (domains.z <= 50)).all()
    assert data.train.z[0].tolist() == [0, 0]
    mesh = data.test["mesh"].z
    assert mesh[[0, 1, 21, -1]].tolist() == [[0, 0], [0, 2.5], [2.5, 0], [50, 50]]
    ids = np.concatenate([domains.ids for domains in groups.values()])
    assert len(np.unique(ids)) == 641


@pytest.mark.parametrize("group", ["train", "random", "mesh"])
def test_moons_are_scaled_and_turned_as_the_descriptor_says(group):
    data = two_moons(seed=3, num_train=8, num_test=8)
    domains = data.train if group == "train" else data.test[group]
    angle = np.linspace(0, np.pi, 500)
    moons = [np.stack([np.cos(angle), np.sin(angle)], 1), np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], 1)]
    for i in np.linspace(0, len(domains) - 1, 8).astype(int):
        scale, rotation = domains.z[i].tolist()
        turn = np.deg2rad(18 * rotation)
        forward = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        x = domains.x[1000 * i : 1000 * (i + 1)].double().numpy() @ forward / (1 + 0.1 * scale)
        y = domains.y[1000 * i : 1000 * (i + 1)].numpy()
        for label, moon in enumerate(moons):
            points = x[y == label]
            assert_allclose(points.mean(0), moon.mean(0), atol=5 * 0.1 / 500**0.5)
            assert_allclose(np.cov(points.T), np.cov(moon.T) + 0.1**2 * np.eye(2), atol=0.03)
            assert (points - moon).std() == pytest.approx(0.1, rel=0.12)


def test_a_quarter_turn_is_counter_clockwise():
    domain = two_moons(seed=0, num_train=1, num_test=1).test["mesh"].select([2])
    assert domain.z.tolist() == [[0, 5]]
    upper = domain.x[:500]
    # The upper moon spans the half circle above the axis; after 90° it spans the half circle to the left.
    assert_allclose(upper.mean(0), [-2 / np.pi, 0], atol=0.03)


def test_same_seed_same_moons():
    data, again, other = two_moons(seed=5), two_moons(seed=5), two_moons(seed=6)
    same(data.train, again.train)
    for name in data.test:
        same(data.test[name], again.test[name])
    assert not torch.equal(data.train.z[1:], other.train.z[1:])
    assert not torch.equal(data.train.x, other.train.x)
    assert not torch.equal(data.test["mesh"].x, other.test["mesh"].x)
    assert not torch.equal(data.train.x[:1000], data.test["mesh"].x[:1000])


def test_the_number_of_domains_changes_nothing_else():
    data, fewer = two_moons(seed=5, num_train=20, num_test=30), two_moons(seed=5, num_train=7, num_test=9)
    same(data.train.select(np.arange(7)), fewer.train)
    same(data.test["random"].select(np.arange(9)), fewer.test["random"])
    same(data.test["mesh"], fewer.test["mesh"])


@pytest.mark.parametrize(
    "imperfection", [{"noise_coordinates": 2}, {"redundant_coordinates": 2}, {"dropped_coordinates": 3}], ids=str
)
def test_imperfect_training_domains_do_not_depend_on_the_test_domains(imperfection):
    few = two_moons(seed=5, num_train=6, num_test=10, **imperfection)
    many = two_moons(seed=5, num_train=6, num_test=150, **imperfection)
    clean = two_moons(seed=5, num_train=6, num_test=10)
    same(few.train, many.train)
    assert torch.equal(few.train.x, clean.train.x)
    assert few.train.descriptors == few.test["mesh"].descriptors == few.test["random"].descriptors
    assert few.train.z.shape[1] == (5 if "dropped_coordinates" in imperfection else 4)


def test_one_imperfection_at_a_time():
    with pytest.raises(DataError, match="one imperfection at a time"):
        two_moons(seed=0, noise_coordinates=1, dropped_coordinates=0)
