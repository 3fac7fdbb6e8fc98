"""Several charts in one answer, and the base below them."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from thetafield.errors import OptionError
from thetafield.evaluation.dials import turn
from thetafield.fields.shrunk import ShrunkField
from thetafield.fields.transported import TransportedField
from thetafield.geometry.atlas import partition_of_unity
from thetafield.predictors.base import Predictor
from thetafield.predictors.perceptron import perceptron
from thetafield.streams import seeded
from thetafield.testing.toys import make_method, toy_problem
from thetafield.training.fit import fit


def atlas(blend, bandwidth=None, seed=0, anchors=9):
    torch.manual_seed(seed)
    field = TransportedField(2, 7, anchors, latent_dim=4, coder="lean", rank=5, blend=blend, bandwidth=bandwidth)
    field.anchors.copy_(torch.rand(anchors, 2))
    field.theta.data.normal_()
    return field.double().eval()


def test_shares_sum_to_one_and_the_last_anchor_has_none():
    distances = torch.rand(50, 6, generator=torch.Generator().manual_seed(0)).sort(1).values
    for bandwidth in (float("inf"), 0.3):
        shares = partition_of_unity(distances, bandwidth)
        assert shares.shape == (50, 5)
        torch.testing.assert_close(shares.sum(1), torch.ones(50))
        assert (shares.diff(dim=1) <= 1e-6).all()  # nearer ones count more
    tied = torch.tensor([[1.0, 2.0, 2.0]])
    assert partition_of_unity(tied)[0, 1] < 1e-30


def test_equally_far_anchors_count_alike():
    assert torch.equal(partition_of_unity(torch.full((1, 4), 3.0)), torch.full((1, 3), 1 / 3))
    assert torch.equal(partition_of_unity(torch.zeros(1, 3)), torch.full((1, 2), 0.5))


@pytest.mark.parametrize("bandwidth", [None, 0.5])
@pytest.mark.parametrize("blend", [2, 4, 8])
@torch.no_grad()
def test_an_atlas_is_continuous_where_one_chart_jumps(blend, bandwidth):
    line = torch.linspace(0, 1, 4001, dtype=torch.float64)[:, None] * torch.tensor([0.9, 0.7]).double() + 0.03

    def largest_jump(field, points):
        return float(field.thetas(points).diff(dim=0).norm(dim=1).max())

    one, several = atlas(1), atlas(blend, bandwidth)
    # Twice as dense a line halves the steps of a continuous field, and leaves a jump as it is.
    assert largest_jump(several, line) < 0.6 * largest_jump(several, line[::2]) + 1e-9
    assert largest_jump(one, line) > 0.9 * largest_jump(one, line[::2])


@torch.no_grad()
def test_an_atlas_is_the_blend_of_its_charts():
    field = atlas(3)
    z = torch.rand(20, 2, dtype=torch.float64)
    distances = torch.cdist(z, field.anchors)
    near = distances.topk(4, largest=False)
    for row in range(len(z)):
        shares = partition_of_unity(near.values[row : row + 1])[0]
        index = near.indices[row, :3]
        target = z[row].expand(3, 1, -1)
        latents = field.transport(field.coder.encode(field.theta[index]), field.anchors[index], target)[:, 0]
        expected = field.coder.decode((shares[:, None] * latents).sum(0, keepdim=True))
        torch.testing.assert_close(field.thetas(z[row : row + 1]), expected)


def test_more_charts_than_anchors_are_as_many_as_there_are():
    field = atlas(8, anchors=3)
    assert torch.isfinite(field(torch.rand(4, 2).double())).all()
    assert torch.isfinite(atlas(8, anchors=1)(torch.rand(4, 2).double())).all()


@pytest.mark.parametrize("base", ["pooled", "reading"])
def test_without_a_share_the_field_is_its_base_bit_for_bit(base):
    method = make_method("neurallio", toy_problem(), base=base, shrink=0.0)
    fit(method)
    field, z = method.field(), torch.rand(5, 2, dtype=torch.float64)
    assert isinstance(field, ShrunkField)
    assert torch.equal(field(z), method.pooled.learned(z))
    turn(field, {"blend": 2, "bandwidth": None, "shrink": 1.0, "reach": None})
    whole = field(z)
    assert not torch.equal(whole, method.pooled.learned(z))
    turn(field, {"blend": 2, "bandwidth": None, "shrink": 0.5, "reach": None})
    torch.testing.assert_close(field(z), (whole + method.pooled.learned(z)) / 2)


def test_far_away_the_field_fades_into_its_base():
    method = make_method("neurallio", toy_problem(), reach=1.0)
    fit(method)
    field = method.field()
    near, far = field.moved.anchors[:1], torch.full((1, 2), 1e4, dtype=torch.float64)
    assert float(field.alpha(near)) == 1.0 and float(field.alpha(far)) == 0.0
    assert not torch.isfinite(field.moved(far)).all()  # a transport over such a distance overflows
    assert torch.equal(field(far), field.base(far))


def test_a_warm_start_is_the_pooled_solution():
    method = make_method("neurallio", toy_problem(), metric=False)
    *before, joint = method.phases()
    assert [phase.name for phase in before] == ["pooled"]
    method.pooled.learned.theta.data.normal_()
    joint.begin()
    assert torch.equal(method.learned.theta, method.pooled.learned.theta.expand_as(method.learned.theta))
    z = torch.rand(3, 2, dtype=torch.float64)
    assert torch.equal(method.learned.coder.centre, method.pooled.learned.theta)
    assert method.field()(z).shape == (3, method.predictor.dim)


def test_a_cold_start_leaves_no_trace_of_the_probes():
    cold, plain = (make_method("neurallio", toy_problem(), base="none", metric=metric) for metric in (True, False))
    assert [phase.name for phase in cold.phases()] == ["probes", "joint"]
    assert [phase.name for phase in plain.phases()] == ["joint"]
    cold.phases()[-1].begin()
    assert torch.equal(cold.learned.theta, plain.learned.theta)


def test_a_frozen_backbone_stays_that_of_the_base():
    def problem():
        toy = toy_problem()
        with seeded(0, "start"):
            backbone = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
            return replace(toy, predictor=Predictor(perceptron([4, 5, 2]), backbone).double())

    method = make_method("neurallio", problem(), freeze=True, base_steps=2, epochs=2, metric=False, neighbours=2)
    _, joint = method.phases()
    assert not any(p is q for p in joint.parameters for q in method.predictor.parameters())
    fit(method)
    alone = make_method("erm", problem(), steps=2, samples=method.pooled.samples)
    fit(alone)
    for name, tensor in method.predictor.backbone.state_dict().items():
        assert torch.equal(tensor, alone.predictor.backbone.state_dict()[name])
    field = method.field()
    field.shrink = 0.0
    z = method.problem.domains.z
    assert torch.equal(field(z), alone.field()(z))
    with pytest.raises(OptionError, match="freeze keeps the backbone of the base, but there is none"):
        make_method("neurallio", toy_problem(), freeze=True)
