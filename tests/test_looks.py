"""What figures show of a field is small, comes back from JSON, and is what the field itself says."""

import json
import lzma

import numpy as np
import pytest
import torch

from thetafield.datasets.base import DATASETS
from thetafield.errors import FormatError
from thetafield.evaluation import evaluate
from thetafield.evaluation.looks import DIRECTIONS, STEPS, Look, believed, look_at, manifold
from thetafield.report.store.reading import read_store
from thetafield.training.train import train_field


@pytest.fixture(scope="module")
def moons():
    return DATASETS["two-moons"](2, num_train=12, num_test=20)


@pytest.fixture(scope="module")
def model(moons):
    return train_field(moons.train, "erm-d", seed=2, options={"steps": 300}, device="cpu").model


@pytest.fixture(scope="module")
def look(model, moons):
    return look_at(model, moons, 2)


def test_a_look_comes_back_from_json(look):
    text = json.dumps(look.record(), allow_nan=False)
    assert len(lzma.compress(text.encode())) < 100_000
    again = Look.of(json.loads(text))
    assert again.directions.keys() == look.directions.keys() == {each.title for each in DIRECTIONS}
    pairs = [
        (look.unseen, again.unseen),
        *((look.directions[name], again.directions[name]) for name in look.directions),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(other.probability, one.probability, atol=0.5 / 255 + 1e-6)
        np.testing.assert_array_equal(other.half_side, one.half_side)
        np.testing.assert_allclose(other.errors, one.errors, atol=5e-5)
    span = np.ptp(look.surface.points)
    np.testing.assert_allclose(again.surface.points, look.surface.points, atol=1e-3 * span)
    np.testing.assert_allclose(again.surface.shares, look.surface.shares, atol=5e-3)


def test_a_look_is_what_the_field_says(look, model, moons):
    """Errors at the four domains are those of the scores; a pixel is the answer of the model at its domain."""
    z = moons.test["random"].z.numpy()
    corners = np.array([[12.5, 12.5], [12.5, 37.5], [37.5, 12.5], [37.5, 37.5]])
    at = [int(((z - corner) ** 2).sum(1).argmin()) for corner in corners]
    np.testing.assert_allclose(look.unseen.errors, evaluate(model, moons.test["random"]).per_domain[at])
    for direction in DIRECTIONS:
        belief = look.directions[direction.title]
        assert len(np.unique(belief.half_side)) == 1 and belief.probability.shape[0] == STEPS
        centre = model.domain_outputs(torch.zeros(STEPS, 1, 2), torch.tensor(direction.descriptors).float())
        middle = belief.probability[:, 44:46, 44:46].mean((1, 2))  # an even grid has its centre between four pixels
        np.testing.assert_allclose(middle, centre.softmax(-1)[:, 0, 1].numpy(), atol=0.02)


def test_the_surface_keeps_distances_of_parameters(model):
    """Projected on three directions, with nearly all of the variance in them, distances go as those of θ."""
    surface = manifold(model, 6)
    axis = torch.linspace(0, 50, 6)
    theta = model.theta(torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)).reshape(36, -1)
    true = torch.cdist(theta.double(), theta.double()).numpy()
    points = torch.from_numpy(surface.points.reshape(36, 3).astype(float))
    shown = torch.cdist(points, points).numpy()
    assert np.abs(surface.points).max() == 1
    shown *= np.sqrt((true**2).sum() * surface.shares.sum() / 100 / (shown**2).sum())
    assert (shown <= true * (1 + 1e-4) + 1e-6).all()
    first = np.square(surface.points[..., 0] - surface.points[..., 0].mean()).sum()
    third = np.square(surface.points[..., 2] - surface.points[..., 2].mean()).sum()
    np.testing.assert_allclose(first / third, surface.shares[0] / surface.shares[2], rtol=1e-3)


def test_there_is_no_surface_of_a_constant_and_no_look_at_other_descriptors(moons):
    constant = train_field(moons.train, "erm", seed=2, options={"steps": 5}, device="cpu").model
    look = look_at(constant, moons, 2)
    assert look.surface is None and Look.of(json.loads(json.dumps(look.record()))).surface is None
    assert np.ptp(believed(constant, moons.train.select([0, 1]), 4).probability) > 0
    noisy = DATASETS["two-moons"](2, num_train=5, num_test=3, noise_coordinates=1)
    assert look_at(constant, noisy, 2) is None
    assert look_at(constant, DATASETS["two-moons-time"](2, num_train=5, num_test=3), 2) is None


def test_a_field_that_is_not_finite_everywhere_has_no_look(model, moons, monkeypatch):
    """Scores know unseen domains alone; what figures show beyond them costs no trial its result."""
    whole = type(model.field).thetas

    def torn(field, z):
        theta = whole(field, z)
        return torch.where((z[:, :1] > 0.9) & (z[:, 1:] < 0.1), torch.inf, theta)  # a corner of Z

    monkeypatch.setattr(type(model.field), "thetas", torn)
    assert np.isfinite(evaluate(model, moons.test["random"].select([0])).per_domain).all()
    assert look_at(model, moons, 2) is None


def unfit(look):
    """Looks that are whole JSON and yet none."""
    for change in (
        {"directions": []},
        {"directions": {"Elsewhere": look.record()["unseen"]}},
        {"directions": dict.fromkeys(look.directions, look.record()["unseen"])},
        {"unseen": look.record()["unseen"] | {"errors": [1.0]}},
    ):
        yield json.dumps(look.record() | change)


def test_a_damaged_look_is_said_in_a_sentence(builder, look):
    spec = builder.trial("paper-table1", "two-moons", "neurallio", 0, [1.0] * 591)
    file = builder.path / "looks" / f"{spec.key}.json"
    file.parent.mkdir()
    (trial,) = read_store(builder.path).trials
    assert read_store(builder.path).look(trial) is None
    for text in ('{"torn', "{}", '{"unseen": 3, "directions": {}, "surface": null}', *unfit(look)):
        file.write_text(text)
        with pytest.raises(FormatError, match="is damaged: delete it"):
            read_store(builder.path).look(trial)
