"""What a model owes to each descriptor: nothing to those it does not read, and what a plain loop says to the others."""

import numpy as np
import pytest
import torch

from thetafield import DomainSet
from thetafield.evaluation.reliance import ROUNDS, reliance
from thetafield.evaluation.scores import evaluate
from thetafield.streams import numpy_stream
from thetafield.training.train import train_field


def turned(count, seed):
    """Domains whose boundary turns with the first factor, which two coordinates describe; the second is noise."""
    stream = np.random.default_rng(seed)
    angle, noise = stream.uniform(-2, 2, count), stream.uniform(size=count)
    domain = np.repeat(np.arange(count), 40)
    x = stream.normal(size=(len(domain), 2))
    y = x[:, 0] * np.cos(angle[domain]) + x[:, 1] * np.sin(angle[domain]) > 0
    z = np.column_stack([np.cos(angle), np.sin(angle), noise])
    names = ["cos", "sin", "noise"]
    return DomainSet.from_arrays(x, y, domain=domain, z=z, descriptors=names, factors=["angle", "angle", "noise"])


@pytest.fixture(scope="module")
def parts():
    return turned(20, 0), turned(9, 1)


@pytest.mark.parametrize(
    ("method", "options"), [("erm-d", {"steps": 300}), ("trees", {"rounds": 20, "min_samples": 5}), ("nda", {})]
)
def test_it_is_what_a_loop_over_domains_finds(parts, method, options):
    kept, held = parts
    model = train_field(kept, method, seed=0, options=options).model
    found = reliance(model, kept, held, seed=3)
    assert list(found) == ["angle", "noise"]
    drawn = numpy_stream(3, "reliance", "domains").integers(len(kept), size=(ROUNDS, len(held)))
    for name, places in (("angle", [0, 1]), ("noise", [2])):
        for place in (0, 5):
            own, grown = held.select([place]), []
            for row in drawn:
                z = own.z.clone()
                z[0, places] = kept.z[row[place], places]
                grown.append(evaluate(model, own.with_descriptors(z, held.descriptors)).macro)
            expected = np.mean(grown) - evaluate(model, own).macro
            assert found[name][place] == pytest.approx(expected, abs=1e-6)
    assert np.mean(found["angle"]) > 10 and abs(np.mean(found["noise"])) < 5


def test_what_a_model_does_not_read_is_worth_nothing(parts):
    kept, held = parts
    model = train_field(kept, "erm", seed=0, options={"steps": 20}).model
    assert reliance(model, kept, held) == {"angle": [0.0] * 9, "noise": [0.0] * 9}


def test_draws_without_a_finite_answer_do_not_count(parts):
    kept, held = parts
    model = train_field(kept, "erm-d", seed=0, options={"steps": 20}).model
    plain = reliance(model, kept, held, seed=3)
    gone = kept.z.clone()
    gone[numpy_stream(3, "reliance", "domains").integers(len(kept), size=(ROUNDS, 9))[0, 0]] = torch.inf
    found = reliance(model, kept.with_descriptors(gone, kept.descriptors), held, seed=3)
    assert np.isfinite(found["angle"]).all() and found["angle"] != plain["angle"]
    nowhere = kept.with_descriptors(torch.full_like(kept.z, torch.inf), kept.descriptors)
    assert reliance(model, nowhere, held)["noise"] == [0.0] * 9


def test_a_hundred_rows_of_a_domain_are_looked_at():
    stream = np.random.default_rng(0)
    large = DomainSet.from_arrays(
        stream.normal(size=(900, 1)),
        stream.choice(["a", "b"], 900),
        domain=np.repeat([0, 1, 2], 300),
        z=np.eye(3)[:, :1],
    )
    model = train_field(large, "erm-d", seed=0, options={"steps": 5}).model
    found = np.array(reliance(model, large, large)["z0"])
    assert len(found) == 3 and np.allclose(ROUNDS * found % 1, 0)  # whole per cents of a hundred rows, a mean of eight
