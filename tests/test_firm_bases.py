"""Bases that do not learn samples or domains by heart: dropout in the head, and z read interval by interval."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from thetafield import FieldClassifier
from thetafield.errors import OptionError
from thetafield.fields.knots import knots_between, piecewise
from thetafield.predictors import Predictor
from thetafield.predictors.perceptron import perceptron
from thetafield.testing.toys import make_method, toy_problem
from thetafield.training import fit


@pytest.fixture
def predictor():
    torch.manual_seed(0)
    return Predictor(perceptron([3, 6, 6, 2])).double()


def test_dropout_is_that_of_a_module_with_dropout_before_every_linear_layer_but_the_first(predictor):
    theta, x = predictor.start, torch.randn(40, 3, dtype=torch.float64)
    layers = list(predictor.head_module(theta))
    module = nn.Sequential(*layers[:2], nn.Dropout(0.3), *layers[2:4], nn.Dropout(0.3), *layers[4:])
    torch.manual_seed(1)
    expected = module(x)
    torch.manual_seed(1)
    assert torch.equal(predictor.single(theta, x, 0.3), expected)
    torch.manual_seed(1)
    assert torch.equal(predictor.head(theta[None], x[None], 0.3)[0], expected)


@pytest.mark.parametrize("head", [perceptron([3, 6, 6, 2]), nn.Linear(3, 2)])
def test_one_head_with_a_shift_for_each_domain_is_a_head_for_each(head):
    predictor = Predictor(head).double()
    start, stop = predictor.first_bias.start, predictor.first_bias.stop
    theta, x = predictor.start.clone().requires_grad_(), torch.randn(4, 5, 3, dtype=torch.float64)
    shift = torch.randn(4, stop - start, dtype=torch.float64, requires_grad=True)
    single = predictor.shifted(theta, shift, x)
    several = predictor(theta + nn.functional.pad(shift, (start, predictor.dim - stop)), x)
    torch.testing.assert_close(single, several)
    gradients = [torch.autograd.grad(each.square().sum(), (theta, shift)) for each in (single, several)]
    torch.testing.assert_close(*gradients)
    torch.manual_seed(1)
    dropped = predictor.shifted(theta, 0 * shift, x, 0.3)
    torch.manual_seed(1)
    torch.testing.assert_close(dropped, predictor.single(theta, x.flatten(0, 1), 0.3).unflatten(0, (4, 5)))


def test_a_head_that_is_no_perceptron_reads_z_by_its_own_theta():
    head = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))
    problem = toy_problem()
    problem = replace(problem, predictor=Predictor(head).double())
    method = make_method("erm-d", problem)
    batch = next(iter(method.phases()[-1].batches(0)))
    assert method.predictor.widths is None
    theta = method.learned(problem.domains.z[batch.index])
    torch.testing.assert_close(method.outputs(batch), method.predictor(theta, batch.x))


def test_several_heads_drop_each_their_own(predictor):
    theta, x = predictor.start.expand(2, -1), torch.randn(1, 50, 3, dtype=torch.float64).expand(2, -1, -1)
    torch.testing.assert_close(predictor.head(theta, x, 0.0)[0], predictor.single(theta[0], x[0]))
    many = torch.stack([predictor.head(theta, x, 0.2) for _ in range(400)])
    assert not torch.equal(many[0, 0], many[0, 1])
    linear = Predictor(perceptron([3, 6, 2])).double()  # one hidden layer: the mean over draws is the whole
    theta = linear.start.expand(2, -1)
    many = torch.stack([linear(theta, x, 0.2) for _ in range(2000)])
    assert (many.mean(0) - linear(theta, x)).abs().max() < 0.15 * many.std(0).max()


def test_dropout_needs_layers():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, x):
            return self.inner(x)

    predictor = Predictor(Odd())
    with pytest.raises(OptionError, match="Dropout needs a head whose layers stand one after the other"):
        predictor.single(predictor.start, torch.zeros(4, 3), 0.1)
    nested = Predictor(nn.Sequential(perceptron([3, 4, 4]), nn.ReLU(), nn.Linear(4, 2)))
    with pytest.raises(OptionError, match="Dropout needs a head whose layers stand one after the other"):
        nested.single(nested.start, torch.zeros(4, 3), 0.1)
    alone = Predictor(nn.Linear(3, 2))  # there is nothing to drop
    assert alone.single(alone.start, torch.zeros(4, 3), 0.1).shape == (4, 2)


@pytest.mark.parametrize("name", ["erm", "erm-d", "hypernet"])
def test_methods_drop_in_training_only(name):
    method = make_method(name, toy_problem(), dropout=0.5)
    batch = next(iter(method.phases()[0].batches(0)))
    assert method.train().loss(batch)["risk"] != method.loss(batch)["risk"]
    quiet = method.eval().loss(batch)["risk"]
    assert quiet == method.loss(batch)["risk"]
    method.dropout = 0.0
    assert method.train().loss(batch)["risk"] == quiet


def test_a_coordinate_is_told_interval_by_interval():
    rng = np.random.default_rng(0)
    seen = torch.from_numpy(rng.uniform(size=(60, 3)))
    edges = knots_between(seen, 5)
    assert edges.shape == (3, 6) and (edges.diff() > 0).all()
    torch.testing.assert_close(edges[:, [0, -1]], torch.stack([seen.amin(0), seen.amax(0)], 1))
    z = torch.from_numpy(rng.uniform(-0.5, 1.5, size=(200, 3)))
    told = piecewise(z, edges).unflatten(1, (3, 5))
    for k in range(3):
        inside = (z[:, k] > edges[k, 0]) & (z[:, k] < edges[k, -1])
        # What the parts sum to, each times the width of its interval, is the way from the first edge.
        torch.testing.assert_close(told[inside, k] @ edges[k].diff(), z[inside, k] - edges[k, 0])
        assert ((told[inside, k] >= 0) & (told[inside, k] <= 1)).all()
        assert (told[inside, k].diff() <= 1e-12).all()  # an interval is entered when the one before it is passed
        values = torch.from_numpy(rng.normal(size=6))  # any function that bends at the edges is linear in them
        expected = np.interp(z[inside, k], edges[k], values)
        np.testing.assert_allclose(values[0] + told[inside, k] @ values.diff(), expected, atol=1e-12)


@pytest.mark.parametrize("count", [1, 4])
def test_beyond_the_training_domains_it_goes_on_by_the_whole_range(count):
    """Most domains crowd at one end: the steps there are narrow, and what lies beyond is not a thousand steps away."""
    seen = torch.cat([torch.linspace(0, 0.999, 10), torch.linspace(0.999, 1, 90)])[:, None]
    edges = knots_between(seen, count)
    assert edges.diff().min() >= 0.9 / (8 * count)
    told = piecewise(torch.tensor([[-0.5], [0.0], [1.0], [1.5], [2.0]]), edges)
    torch.testing.assert_close(told[2:, -1], torch.tensor([1.0, 1.5, 2.0]))
    torch.testing.assert_close(told[:2, 0], torch.tensor([-0.5, 0.0]))


def test_coordinates_that_hardly_change_or_never_do_stay_finite():
    near = torch.tensor([0.0, *(1e6 + 0.1 * k for k in range(5))])  # some of which single precision cannot tell apart
    z = torch.stack([torch.full((6,), 0.3), torch.arange(6.0), near], 1)
    edges = knots_between(z, 16)
    assert (edges.diff() > 0).all() and torch.isfinite(piecewise(z, edges)).all()
    assert torch.equal(piecewise(z, edges)[:, :16], torch.zeros(6, 16))


def test_knots_lie_between_the_training_domains():
    method = make_method("erm-d", toy_problem(), knots=4, hidden=())
    torch.testing.assert_close(method.learned.edges, knots_between(method.problem.domains.z, 4))
    before = method.learned(method.problem.domains.z).detach().clone()
    fit(method)
    assert not torch.equal(before, method.learned(method.problem.domains.z))


@pytest.mark.parametrize("base", ["pooled", "knots"])
def test_no_epochs_train_the_base_alone_and_as_it_is_trained_before_the_rest(base):
    small = {"base": base, "base_steps": 20, "tune_steps": 5, "samples": 8, "metric": False}
    alone, whole = (make_method("neurallio", toy_problem(), epochs=epochs, **small) for epochs in (0, 2))
    assert {entry["phase"] for entry in fit(alone).history} == {"pooled"}
    fit(whole)
    z = torch.rand(9, 2, dtype=torch.float64)
    assert torch.equal(alone.field()(z), whole.field().base(z))
    assert not torch.equal(alone.field()(z), whole.field()(z))
    with pytest.raises(OptionError, match="epochs=0 trains the base alone, but base is none"):
        make_method("neurallio", toy_problem(), epochs=0, base="none")


def test_a_step_of_many_domains_draws_fewer_samples_of_each():
    counts = (20, 300, 1000)
    drawn = [make_method("neurallio", toy_problem(num_domains=n), samples=None, block=200).samples for n in counts]
    assert drawn == [250, 2**15 // 300, 64]


@pytest.mark.parametrize("base", ["reading", "knots", "hypernet"])
def test_nothing_of_what_is_carried_gives_back_the_base_exactly(base):
    rng = np.random.default_rng(0)
    domain = np.repeat(np.arange(12), 20)
    x, z = rng.normal(size=(240, 2)), rng.uniform(size=(12, 2))[domain]
    small = {"epochs": 2, "base_steps": 20, "tune_steps": 5, "samples": 8, "select": False, "shrink": 0.0}
    options = small | {"base": base, "base_dropout": 0.3, "base_decay": 1e-3}
    fitted = FieldClassifier("neurallio", options=options, random_state=0).fit(x, x[:, 0] > z[:, 0], z=z, domain=domain)
    field, at = fitted.model_.field, torch.rand(9, 2)
    assert torch.equal(field(at), field.base(at))
    assert not torch.equal(field.base(at)[:4], field.base(at)[5:])


@pytest.mark.parametrize("base", ["pooled", "reading", "knots", "hypernet"])
@pytest.mark.parametrize(("samples", "drawn"), [(5, 5), (200, 64), (0, 64), (None, 64)])
def test_a_base_draws_no_more_than_was_asked_for(base, samples, drawn):
    method = make_method("neurallio", toy_problem(), base=base, samples=samples, select=False)
    assert method.pooled.samples == drawn
