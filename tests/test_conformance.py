"""The shipped suites, run over everything that is registered."""

from functools import partial

import pytest

from thetafield.datasets import DATASETS
from thetafield.datasets.root import AbsentError
from thetafield.geometry.transport import LieTransport, LinearTransport, PlainTransport
from thetafield.methods import METHODS
from thetafield.predictors import PREDICTORS
from thetafield.testing import check_dataset, check_method, check_predictor, check_transport


@pytest.mark.parametrize("name", METHODS.names())
def test_method(name):
    check_method(name)


def test_every_method_can_be_tuned():
    assert all(entry.space for _, entry in METHODS)


@pytest.mark.parametrize("name", DATASETS.names())
def test_dataset(name):
    try:
        check_dataset(name)
    except AbsentError as absent:
        pytest.skip(str(absent))


@pytest.mark.parametrize("name", PREDICTORS.names())
def test_predictor(name):
    check_predictor(name, {"convnet": (3, 16, 16), "temporal": (24, 3)}.get(name, (6,)))


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize(
    ("kind", "exact"),
    [
        (LieTransport, True),
        (partial(LieTransport, num_generators=2), True),
        (partial(LieTransport, generators="constant"), True),
        (partial(LieTransport, generators="commuting"), True),
        (PlainTransport, False),
        (LinearTransport, False),
    ],
)
def test_transport(kind, exact, gate):
    check_transport(partial(kind, gate=gate), exact_identity=exact)


def test_the_suites_can_fail():
    with pytest.raises(AssertionError, match="not the identity"):
        check_transport(PlainTransport, exact_identity=True)
