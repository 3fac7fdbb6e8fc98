"""Descriptors that go round: found where transfer says so, left alone where it does not."""

from dataclasses import replace

import pytest
import torch

from thetafield.fields.transported import TransportedField
from thetafield.geometry import metric as metric_module
from thetafield.geometry.metric import Metric, learn_metric
from thetafield.geometry.transfer import Pairs
from thetafield.geometry.winding import Chart, best_wound, wound


def round_risks(z, around, period, other=None, noise=0.02):
    """Risks of models that serve domains at the same angle, whatever the number of turns between them."""
    angle = 2 * torch.pi * (z @ around) / period
    apart = (angle[:, None] - angle[None]).div(2).sin().mul(3).square()
    if other is not None:
        apart = apart + (other * (z[:, None] - z[None])).square().sum(2)
    stream = torch.Generator().manual_seed(0)
    return 0.5 - 0.45 * torch.exp(-apart) + noise * torch.randn(len(z), len(z), generator=stream)


def descriptors(width, count=50, seed=0):
    return torch.rand(count, width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("width", "period"), [(1, 0.4), (2, 0.17), (6, 0.4)])
def test_a_period_is_found_among_noise(width, period):
    z = descriptors(width)
    around = torch.eye(width)[-1]
    metric = learn_metric(z, round_risks(z, around, period))
    assert metric.kind == "round" and abs(metric.period - period) < 0.02 * period
    assert metric.relevance.argmax() == width - 1 and (metric.relevance[:-1] < 0.1).all()
    assert metric.explained > 0.8
    # The metric says that a turn is no distance at all.
    turned = z + period * around
    assert torch.cdist(metric(z), metric(turned)).diagonal().max() < 0.02 * metric(z).norm(dim=1).max() + 0.01


def test_a_coordinate_that_a_descent_let_fall_is_found_again(monkeypatch):
    z = descriptors(2, 60)
    risks = round_risks(z, torch.tensor([0.0, 1.0]), 0.4, other=torch.tensor([1.5, 0.0]))
    sound = learn_metric(z, risks)
    assert sound.kind == "round" and sound.relevance[0] > 0.03

    def falling(pairs, straight, axes, weight):
        charts = best_wound(pairs, straight, axes, weight)
        return [*charts[:-1], replace(charts[-1], straight=torch.zeros_like(charts[-1].straight))]

    monkeypatch.setattr(metric_module, "best_wound", falling)
    mended = learn_metric(z, risks)
    assert mended.explained > sound.explained - 0.01
    torch.testing.assert_close(mended.relevance, sound.relevance, atol=0.01, rtol=0)


def test_what_goes_round_may_be_a_mixture():
    z = descriptors(3, 70)
    around = torch.tensor([0.8, -0.6, 0.0])
    metric = learn_metric(z, round_risks(z, around, 0.4))
    assert metric.kind == "turned round" and abs(metric.period - 0.4) < 0.02
    found = metric.directions[metric.frequencies > 0]
    assert len(found) == 2 and (found @ around).abs().min() > 0.98


def test_a_helix_keeps_what_runs_on():
    z = descriptors(1, 60)
    straight = 4 * (z - z.T).square()
    angle = 2 * torch.pi * (z - z.T) / 0.3
    risks = 0.5 - 0.45 * torch.exp(-straight - (3 * (angle / 2).sin()) ** 2)
    metric = learn_metric(z, risks)
    assert metric.kind == "round" and len(metric.weights) == 2  # there is room for d + 1 rows, and two go round
    assert abs(metric.period - 0.3) < 0.01


def test_one_that_does_not_come_back_stays_straight():
    z = descriptors(2, 50)
    near = torch.exp(-((5 * (z[:, 1:] - z[:, 1])) ** 2))
    risks = 0.5 - 0.45 * near + 0.02 * torch.randn(50, 50, generator=torch.Generator().manual_seed(1))
    metric = learn_metric(z, risks)
    assert metric.kind == "diagonal" and metric.period is None


def test_squares_of_a_chart_are_those_of_a_plain_loop():
    stream = torch.Generator().manual_seed(0)
    apart = torch.randn(7, 3, generator=stream, dtype=torch.float64)
    chart = Chart(torch.randn(2, 3, generator=stream, dtype=torch.float64), torch.tensor([1.0, 2.0, 0.0]).double(), 0.7)
    for delta, square in zip(apart, chart.squares(apart), strict=True):
        size = float(chart.around.norm())
        chord = 0.7 * 2 / size * float(torch.sin(delta @ chart.around / 2))
        assert abs(float((chart.straight @ delta).square().sum()) + chord**2 - float(square)) < 1e-12


def test_distances_of_a_metric_are_those_of_its_chart():
    z = descriptors(2, 40).double()
    metric = learn_metric(z, round_risks(z, torch.tensor([0.0, 1.0]).double(), 0.4, torch.tensor([1.5, 0.0])))
    one, two = torch.triu_indices(40, 40, 1)
    pairs = Pairs(one, two, z[one] - z[two], torch.zeros(len(one)))
    frequency = float(metric.frequencies.max())
    chart = Chart(
        torch.diag(torch.tensor([float(metric.weights[0]), 0.0])).double(), torch.tensor([0.0, frequency]).double(), 1.0
    )
    apart = (metric(z)[one] - metric(z)[two]).square().sum(1)
    torch.testing.assert_close(apart, chart.squares(pairs.apart), rtol=1e-4, atol=1e-6)


def test_a_field_is_the_same_after_a_turn():
    torch.manual_seed(0)
    field = TransportedField(2, 5, 12, latent_dim=4, coder="lean", rank=3, projected=True)
    field.anchors.copy_(torch.rand(12, 2))
    torch.nn.init.normal_(field.theta)
    ends = torch.zeros(2)
    field.adopt(
        Metric(
            kind="round",
            directions=torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]),
            weights=torch.tensor([0.2, 1.0, 1.0]),
            frequencies=torch.tensor([0.0, 2 * torch.pi / 0.4, 2 * torch.pi / 0.4]),
            phases=torch.tensor([0.0, 0.0, torch.pi / 2]),
            reach=1.0,
            explained=1.0,
            relevance=ends,
            low=ends,
            high=ends,
        )
    )
    z = torch.rand(20, 2)
    turn = torch.tensor([0.0, 0.4])
    torch.testing.assert_close(field(z), field(z + turn), rtol=1e-3, atol=1e-4)
    assert not torch.allclose(field(z), field(z + turn / 2), atol=1e-2)
    field.forget_metric()
    assert not torch.allclose(field(z), field(z + turn), atol=1e-2)
    assert torch.equal(field.transport.seen(z)[:, :2], z)


def test_coordinates_without_a_frequency_stay_as_they_are():
    z = descriptors(3)
    assert torch.equal(wound(z, torch.eye(3), torch.zeros(3), torch.zeros(3)), z)
