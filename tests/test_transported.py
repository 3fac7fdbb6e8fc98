"""θ(z) of a transported field for very many descriptors equals carrying them one by one."""

import numpy as np
import pytest
import torch

from thetafield import FieldRegressor
from thetafield.fields import transported
from thetafield.fields.transported import TransportedField
from thetafield.geometry.neighbours import nearest


def one_by_one(field, z):
    """Return θ of every descriptor as a chart of its own, its anchor's generators formed anew for each."""
    _, index = nearest(z, field.anchors)
    latent = field.coder.encode(field.theta)[index[:, 0]]
    return field.coder.decode(field.transport(latent, field.anchors[index[:, 0]], z[:, None])[:, 0])


def a_field(generator, num_anchors, **options):
    torch.manual_seed(0)
    field = TransportedField(2, 11, num_anchors, latent_dim=4, widths=(16, 8), **options).double().eval()
    field.theta.data.normal_(generator=generator)
    field.anchors.uniform_(generator=generator)
    return field


@pytest.mark.parametrize("transport", ["lie", "plain", "linear"])
@pytest.mark.parametrize(("num_anchors", "num_descriptors"), [(7, 1), (7, 500), (200, 500), (1, 70), (300, 20)])
def test_rows_of_one_anchor_equal_one_by_one(transport, num_anchors, num_descriptors, generator):
    field = a_field(generator, num_anchors, transport=transport)
    z = 2 * torch.rand(num_descriptors, 2, dtype=torch.float64, generator=generator) - 0.5
    z[-1] = field.anchors[-1]
    torch.testing.assert_close(field(z), one_by_one(field, z), rtol=1e-12, atol=1e-13)


def test_groups_of_very_different_sizes_and_small_pieces(generator, monkeypatch):
    monkeypatch.setattr(transported, "CHUNK", 20)
    monkeypatch.setattr(transported, "CELLS", 11 * 7)
    monkeypatch.setattr(transported, "WIDEST_ROW", 6)
    field = a_field(generator, 30)
    crowd = field.anchors[3] + 1e-3 * torch.randn(301, 2, dtype=torch.float64, generator=generator)
    z = torch.cat([crowd, torch.rand(100, 2, dtype=torch.float64, generator=generator)])
    z = z[torch.randperm(401, generator=generator)]
    torch.testing.assert_close(field(z), one_by_one(field, z), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("num_anchors", "num_descriptors"), [(50, 20_000), (1500, 2000)])
def test_an_anchors_generators_are_formed_once_for_a_row(num_anchors, num_descriptors, generator, monkeypatch):
    field = a_field(generator, num_anchors)
    z = torch.rand(num_descriptors, 2, dtype=torch.float64, generator=generator)
    encoded, sources, places = [], [], []
    encode, transport = field.coder.encode, field.transport.forward
    monkeypatch.setattr(field.coder, "encode", lambda theta: encoded.append(len(theta)) or encode(theta))

    def counted(latent, source, target):
        sources.append(len(source))
        places.append(target.shape[0] * target.shape[1])
        return transport(latent, source, target)

    monkeypatch.setattr(field.transport, "forward", counted)
    field(z)
    used = len(nearest(z, field.anchors)[1].unique())
    assert sum(encoded) == used
    assert sum(sources) <= max(len(z) // transported.WIDEST_ROW + used, 2 * used)
    assert len(z) <= sum(places) <= 2 * len(z)
    assert max(places) <= transported.CHUNK
    assert len(sources) <= 2 * len(z) // transported.CHUNK + 1


def test_gradients_equal_those_one_by_one(generator, monkeypatch):
    monkeypatch.setattr(transported, "CELLS", 11 * 13)
    field = a_field(generator, 9)
    z = torch.rand(50, 2, dtype=torch.float64, generator=generator).requires_grad_()
    weight = torch.randn(50, 11, dtype=torch.float64, generator=generator)
    parameters = dict(field.named_parameters())
    gradients = [
        torch.autograd.grad((theta(z) * weight).sum(), [z, *parameters.values()])
        for theta in (field, lambda z: one_by_one(field, z))
    ]
    for name, grouped, plain in zip(["z", *parameters], *gradients, strict=True):
        assert plain.any(), name
        torch.testing.assert_close(grouped, plain, rtol=1e-9, atol=1e-12)


def test_no_descriptor_gives_no_theta(generator):
    field = a_field(generator, 3)
    assert field(torch.zeros(0, 2, dtype=torch.float64)).shape == (0, 11)
    assert field(torch.zeros(4, 0, 2, dtype=torch.float64)).shape == (4, 0, 11)


def test_ten_thousand_domains_are_answered_together(monkeypatch):
    """Few rows each, in any order: a handful of calls for θ, and the answers of one domain at a time."""
    rng = np.random.default_rng(0)
    x, z, domain = rng.normal(size=(80, 2)), rng.uniform(size=(8, 2)), np.repeat(np.arange(8), 10)
    options = {"epochs": 1, "widths": (16, 8), "latent_dim": 4, "neighbours": 2, "samples": 8}
    estimator = FieldRegressor("neurallio", options=options, random_state=0).fit(x, x[:, 0], z=z[domain], domain=domain)
    places = rng.uniform(size=(10_000, 2))
    asked = rng.permutation(np.arange(10_000).repeat(rng.integers(1, 6, 10_000)))
    x = rng.normal(size=(len(asked), 2))
    model, calls = estimator.model_, []
    thetas = model.field.thetas
    monkeypatch.setattr(model.field, "thetas", lambda z: calls.append(len(z)) or thetas(z))
    answers = estimator.predict(x, z=places[asked])
    assert sum(calls) == 10_000 and len(calls) < 10
    for place in range(0, 10_000, 500):
        rows = asked == place
        alone = estimator.model_at(places[place])(torch.tensor(x[rows], dtype=torch.float32))
        np.testing.assert_allclose(answers[rows], alone.detach().numpy(), rtol=1e-4, atol=1e-5)
