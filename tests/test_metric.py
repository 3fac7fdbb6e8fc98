"""The transfer metric: what it finds, what it leaves out, and what it says about itself."""

import pytest
import torch

from thetafield.errors import DataError
from thetafield.geometry.metric import learn_metric, transferability


def risks_under(chart, z, noise=0.02, seed=0):
    """Risks of models that serve domains nearby under a known map, and are useless far away."""
    stream = torch.Generator().manual_seed(seed)
    near = torch.exp(-(torch.cdist(z @ chart.T, z @ chart.T) ** 2))
    return 0.5 - 0.45 * near + noise * torch.randn(len(z), len(z), generator=stream)


def descriptors(width, count=40, seed=0):
    return torch.rand(count, width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("width", [2, 5, 12])
def test_the_coordinates_that_matter_are_found_among_noise(width):
    z = descriptors(width)
    chart = torch.zeros(2, width)
    chart[0, 1], chart[1, 0] = 8.0, 2.0
    metric = learn_metric(z, risks_under(chart, z))
    assert metric.kind == "diagonal"
    assert metric.relevance.argmax() == 1 and metric.relevance[1] == 1
    assert 0.1 < metric.relevance[0] < 0.5  # truly a quarter
    assert (metric.relevance[2:] < 0.05).all()
    assert len(metric.weights) == 2
    assert metric.explained > 0.5
    assert 0.5 / 8 < metric.reach < 2 / 8


def test_relevance_lies_within_its_bootstrap():
    z = descriptors(3)
    metric = learn_metric(z, risks_under(torch.tensor([[0.0, 6.0, 0.0], [2.0, 0.0, 0.0]]), z, noise=0.1))
    assert (metric.low <= metric.high).all()
    assert metric.low[1] > 0.9 and metric.high[2] < metric.low[1]
    assert metric.low[0] <= metric.relevance[0] + 0.05 and metric.relevance[0] <= metric.high[0] + 0.05


def test_mixed_directions_are_taken_where_they_tell_more():
    z = descriptors(4, 60)
    direction = torch.tensor([[6.0, -6.0, 0.0, 0.0]])
    metric = learn_metric(z, risks_under(direction, z))
    assert metric.kind == "turned"
    assert metric.explained > learn_metric(z, risks_under(direction, z), rotate=False).explained + 0.1
    heaviest = metric.directions[metric.weights.argmax()]
    assert abs(float(heaviest @ direction[0]) / float(direction.norm())) > 0.95
    torch.testing.assert_close(metric.directions @ metric.directions.T, torch.eye(len(metric.weights)))


def test_distances_of_the_metric_are_those_of_its_map():
    z = descriptors(3)
    metric = learn_metric(z, risks_under(torch.tensor([[0.0, 8.0, 0.0]]), z))
    assert metric(z).shape == (40, len(metric.weights))
    apart = torch.cdist(metric(z), metric(z))
    assert torch.corrcoef(torch.stack([apart.flatten(), torch.cdist(z[:, 1:2], z[:, 1:2]).flatten()]))[0, 1] > 0.99


def test_transfer_is_symmetric_and_standardised():
    risks = torch.rand(9, 9, generator=torch.Generator().manual_seed(1)).double()
    transfer = transferability(risks)
    apart = ~torch.eye(9, dtype=torch.bool)
    torch.testing.assert_close(transfer, transfer.T)
    assert abs(float(transfer[apart].mean())) < 1e-9 and abs(float(transfer[apart].std()) - 1) < 1e-6
    # A model that does better elsewhere transfers better there.
    better = risks.clone()
    better[2, 5] -= 0.5
    assert transferability(better)[2, 5] > transfer[2, 5]


def test_the_same_domains_give_the_same_metric():
    z = descriptors(4)
    risks = risks_under(torch.tensor([[0.0, 8.0, 0.0, 1.0]]), z)
    first, second = (learn_metric(z, risks, seed=3) for _ in range(2))
    assert torch.equal(first.weights, second.weights) and torch.equal(first.low, second.low)


def test_constant_risks_say_nothing_and_break_nothing():
    z = descriptors(2)
    metric = learn_metric(z, torch.full((40, 40), 0.3))
    assert torch.isfinite(metric.weights).all() and metric.explained < 0.05
    assert metric.kind == "even"


def test_weights_that_tell_no_more_than_even_ones_stay_even():
    z = descriptors(6)
    metric = learn_metric(z, risks_under(2 * torch.eye(6), z, noise=0.1))
    assert metric.kind == "even" and torch.equal(metric.weights, torch.ones(6))


def test_too_few_domains_are_named():
    with pytest.raises(DataError, match="at least 5 domains, but there are 4"):
        learn_metric(descriptors(2, 4), torch.rand(4, 4))


def test_many_domains_are_fitted_on_a_sample_of_pairs():
    z = descriptors(2, 200)
    metric = learn_metric(z, risks_under(torch.tensor([[0.0, 8.0]]), z), rotate=False)
    assert metric.relevance[1] == 1 and metric.relevance[0] < 0.05
