"""Charts, transports, laws and trust."""

import numpy as np
import pytest
import torch

from thetafield.datasets.base import DATASETS
from thetafield.errors import DataError
from thetafield.evaluation import field_laws
from thetafield.geometry.atlas import knn_charts, random_charts
from thetafield.geometry.coder import LeanCoder, PerceptronCoder
from thetafield.geometry.generators import CommutingGenerators
from thetafield.geometry.laws import ParameterTransport, check_laws
from thetafield.geometry.transport import LieTransport
from thetafield.geometry.trust import Trust
from thetafield.testing.oracles import loop_transport
from thetafield.training.train import train_field


def test_charts_equal_a_loop(generator):
    z = torch.rand(30, 3, dtype=torch.float64, generator=generator)
    charts = knn_charts(z, 4)
    for i in range(30):
        order = np.argsort(np.linalg.norm((z - z[i]).numpy(), axis=1), kind="stable")
        assert charts.neighbours[i, 0] == i
        assert charts.neighbours[i].tolist() == order[:5].tolist()
    source, target = charts.edges
    assert source.tolist() == [i for i in range(30) for _ in range(5)]
    assert torch.equal(target.reshape(30, 5), charts.neighbours)


def test_neighbours_are_other_descriptors_and_their_domains_take_turns():
    """Three domains at each of four places: a chart reaches other places, and all their domains are some target."""
    z = torch.tensor([[0.0], [1.0], [3.0], [7.0]]).repeat(3, 1)
    charts = knn_charts(z, 2)
    assert charts.neighbours[:, 0].tolist() == list(range(12))
    assert (z[charts.neighbours[:, 1:]] != z[:, None]).all()
    assert set(charts.neighbours[:, 1:].flatten().tolist()) == {i for i in range(12) if z[i] != 7}
    with pytest.raises(DataError, match="there are 4 with different descriptors"):
        knn_charts(z, 4)


def test_too_many_neighbours_is_said():
    with pytest.raises(DataError, match=r"at least 6 training domains, but there are 5.*neighbours to 4"):
        knn_charts(torch.rand(5, 2), 5)


def test_random_charts_hold_the_anchor_and_distinct_others():
    charts = random_charts(8, 3, torch.tensor([5, 2]))
    assert charts[:, 0].tolist() == [5, 2]
    assert all(len(set(row)) == 4 for row in charts.tolist())


@pytest.mark.parametrize("options", [{}, {"num_generators": 4}, {"gate": False}, {"generators": "commuting"}])
def test_lie_transport_equals_dense_exponentials(options, generator):
    torch.manual_seed(0)
    transport = LieTransport(2, 6, **options).double()
    latent = torch.randn(3, 6, dtype=torch.float64, generator=generator)
    source, target = (torch.rand(3, *k, 2, dtype=torch.float64, generator=generator) * 3 for k in ((), (4,)))
    carried = transport(latent, source, target)
    for b in range(3):
        for k in range(4):
            slow = loop_transport(transport, latent[b], source[b], target[b, k])
            torch.testing.assert_close(carried[b, k], slow, rtol=1e-10, atol=1e-11)


def test_the_first_coordinate_acts_first(generator):
    torch.manual_seed(0)
    transport = LieTransport(2, 4, gate=False, generators="constant").double()
    first, second = transport.generators(torch.zeros(1, 2))[0].detach()
    latent = torch.randn(1, 4, dtype=torch.float64, generator=generator)
    carried = transport(latent, torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, 1, 2, dtype=torch.float64))[0, 0]
    torch.testing.assert_close(carried, torch.matrix_exp(second) @ torch.matrix_exp(first) @ latent[0])


class Isometry(PerceptronCoder):
    """A linear coder with an exact inverse, so that only the transport can break a law."""

    def __init__(self, size):
        super().__init__(size, size, ())
        q = torch.linalg.qr(torch.randn(size, size, dtype=torch.float64)).Q
        self.double()
        with torch.no_grad():
            self.encoder[0].weight.copy_(q)
            self.decoder[0].weight.copy_(q.T)
            self.encoder[0].bias.zero_()
            self.decoder[0].bias.zero_()


def test_all_laws_hold_for_commuting_generators(generator):
    torch.manual_seed(0)
    operator = ParameterTransport(Isometry(6), LieTransport(2, 6, gate=False, generators="commuting").double())
    thetas = torch.randn(9, 6, dtype=torch.float64, generator=generator)
    z = torch.rand(9, 2, dtype=torch.float64, generator=generator)
    laws = check_laws(operator, thetas, z, 50, generator)
    assert laws.num_pairs == 81 and laws.num_triplets == 50
    for law in (laws.identity, laws.associativity, laws.invertibility):
        assert law == pytest.approx(100, abs=1e-9)
    for defect in (laws.identity_defect, laws.associativity_defect, laws.invertibility_defect):
        assert defect == pytest.approx(0, abs=1e-9)


def test_pairs_are_drawn_where_all_would_be_too_many(generator):
    torch.manual_seed(0)
    operator = ParameterTransport(Isometry(6), LieTransport(2, 6).double())
    thetas = torch.randn(9, 6, dtype=torch.float64, generator=generator)
    z = torch.rand(9, 2, dtype=torch.float64, generator=generator)

    def laws(**most):
        return check_laws(operator, thetas, z, 50, torch.Generator().manual_seed(3), **most)

    whole, some = laws(), laws(most_pairs=80)
    assert laws(most_pairs=81) == whole and some.num_pairs == 80
    assert some.associativity == whole.associativity, "the triplets are the same"
    assert some.invertibility != whole.invertibility
    assert some.invertibility == pytest.approx(whole.invertibility, abs=2)


def test_large_heads_have_their_laws_measured_on_fewer_descriptors(monkeypatch):
    """The parameters that pairs and triplets come to stay below a bound, and a few hundred are taken whatever it is."""
    data = DATASETS["two-moons"](0, num_train=8, num_test=2).train
    model = train_field(data, "neurallio-paper", seed=0, options={"epochs": 2}, device="cpu").model
    z = torch.rand(30, 2)
    dim = model.field.theta_dim
    assert (field_laws(model, z).num_pairs, field_laws(model, z).num_triplets) == (900, 20000)
    monkeypatch.setattr("thetafield.evaluation.laws.DECODED", 700 * dim)
    assert (field_laws(model, z).num_pairs, field_laws(model, z).num_triplets) == (700, 700)
    monkeypatch.setattr("thetafield.evaluation.laws.DECODED", 1)
    assert (field_laws(model, z).num_pairs, field_laws(model, z).num_triplets) == (500, 500)


def test_only_the_identity_is_exact_for_a_generator_field(generator):
    torch.manual_seed(0)
    operator = ParameterTransport(Isometry(6), LieTransport(2, 6).double())
    thetas = torch.randn(9, 6, dtype=torch.float64, generator=generator)
    z = 5 * torch.rand(9, 2, dtype=torch.float64, generator=generator)
    laws = check_laws(operator, thetas, z, 50, generator)
    assert laws.identity_defect == 0
    assert laws.associativity_defect > 1e-3 and laws.invertibility_defect > 1e-3


@pytest.mark.parametrize("rows", [1, 3, 100])
@torch.no_grad()
def test_laws_equal_a_loop(generator, monkeypatch, rows):
    torch.manual_seed(0)
    coder, transport = PerceptronCoder(10, 4, (8,)).double(), LieTransport(2, 4).double()
    operator = ParameterTransport(coder, transport)
    thetas = torch.randn(5, 10, dtype=torch.float64, generator=generator)
    z = torch.rand(5, 2, dtype=torch.float64, generator=generator)
    monkeypatch.setattr("thetafield.geometry.laws.CELLS", 10 * rows)  # parameters of so many heads at once
    laws = check_laws(operator, thetas, z, 7, torch.Generator().manual_seed(3))

    def carry(theta, i, j):
        return coder.decode(loop_transport(transport, coder.encode(theta[None])[0], z[i], z[j])[None])[0]

    def cosine(a, b):
        return float(a @ b / a.norm() / b.norm())

    inverse = [cosine(thetas[i], carry(carry(thetas[i], i, j), j, i)) for i in range(5) for j in range(5)]
    assert laws.invertibility == pytest.approx(100 * np.mean(inverse), rel=1e-9)
    triplets = torch.randint(5, (7, 3), generator=torch.Generator().manual_seed(3)).tolist()
    composed = [cosine(carry(carry(thetas[i], i, j), j, k), carry(thetas[i], i, k)) for i, j, k in triplets]
    assert laws.associativity == pytest.approx(100 * np.mean(composed), rel=1e-9)
    assert laws.identity == pytest.approx(100 * np.mean([cosine(thetas[i], carry(thetas[i], i, i)) for i in range(5)]))


def test_commuting_generators_commute():
    torch.manual_seed(0)
    first, second = CommutingGenerators(6, 2)(torch.zeros(1, 2))[0]
    torch.testing.assert_close(first @ second, second @ first)


def test_trust_falls_with_distance(generator):
    anchors = torch.rand(40, 2, generator=generator)
    trust = Trust.fit(anchors)
    assert torch.equal(trust(anchors), torch.ones(40))
    line = torch.stack([torch.linspace(1, 4, 20), torch.full((20,), 0.5)], 1)
    assert (trust(line).diff() <= 0).all() and trust(line)[-1] < 1e-3


def test_the_lean_coder_starts_at_the_common_start_and_holds_as_many_directions_as_its_rank():
    coder = LeanCoder(30, 4, rank=5).double()
    start = torch.randn(30, dtype=torch.float64)
    coder.start_at(start)
    same = coder.encode(start[None])
    torch.testing.assert_close(same, coder.encoder(torch.zeros(1, 5, dtype=torch.float64)))
    thetas = coder.decode(torch.randn(50, 4, dtype=torch.float64)) - start
    assert torch.linalg.matrix_rank(thetas, atol=1e-9) == 5
    weights = sum(p.numel() for p in coder.parameters())
    assert weights < 12 * 30 + 2 * (5 * 128 + 128 * 4) + 300
