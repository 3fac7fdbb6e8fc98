"""Every method's loss against a slow, plainly written reference: values and gradients, in double precision."""

import copy
import math

import pytest
import torch
from torch import nn

from plain import assert_same, body, head, sample_loss
from thetafield.data.domains import DomainBatch
from thetafield.errors import OptionError
from thetafield.testing.toys import make_method, toy_problem

F = nn.functional


def first_batch(method):
    return next(iter(method.phases()[-1].batches(0)))


def loop_risks(method, batch, theta=None):
    theta = method.learned.theta if theta is None else theta
    return [sample_loss(method, head(method, theta, x), y) for x, y in zip(batch.x, batch.y, strict=True)]


both = pytest.mark.parametrize("regression", [False, True])


@both
def test_erm(regression):
    method = make_method("erm", toy_problem(regression=regression))
    batch = first_batch(method)
    assert_same(method.loss(batch), {"risk": sum(loop_risks(method, batch)) / 6}, [method.learned.theta])


@both
def test_erm_d_equals_concatenation(regression):
    """Shifting the first bias by Wψ(z) is concatenating ψ(z) to the input."""
    method = make_method("erm-d", toy_problem(regression=regression))
    batch, field = first_batch(method), method.learned
    weights = method.predictor.spec.views(field.theta)
    risks = []
    for e, (x, y) in enumerate(zip(batch.x, batch.y, strict=True)):
        z = (method.problem.domains.z[e] - field.mean) / field.std
        psi = field.encoder(z).expand(len(x), -1)
        wide = torch.cat([weights["0.weight"], field.shift.weight], 1)
        h = torch.relu(torch.cat([x, psi], 1) @ wide.T + weights["0.bias"])
        h = torch.relu(h @ weights["2.weight"].T + weights["2.bias"])
        risks.append(sample_loss(method, h @ weights["4.weight"].T + weights["4.bias"], y))
    assert_same(method.loss(batch), {"risk": sum(risks) / 6}, list(field.parameters()))


@both
def test_hypernet(regression):
    method = make_method("hypernet", toy_problem(regression=regression))
    batch, field = first_batch(method), method.learned
    risks = []
    for e, (x, y) in enumerate(zip(batch.x, batch.y, strict=True)):
        latent = field.encoder(2 * method.problem.domains.z[e] - 1)
        risks.append(sample_loss(method, head(method, field.theta + field.decoder(latent), x), y))
    assert_same(method.loss(batch), {"risk": sum(risks) / 6}, list(field.parameters()))


@both
def test_film_modulates_the_hidden_units(regression):
    """Scaling rows and shifting biases is (1 + γ)·u + β on every hidden unit."""
    method = make_method("film", toy_problem(regression=regression))
    batch, field = first_batch(method), method.learned
    weights = method.predictor.spec.views(field.theta)
    risks = []
    for e, (x, y) in enumerate(zip(batch.x, batch.y, strict=True)):
        modulation = field.modulation(field.encoder(2 * method.problem.domains.z[e] - 1))
        gamma, beta = modulation[: 6 + 5], modulation[6 + 5 :]
        u = x @ weights["0.weight"].T + weights["0.bias"]
        h = torch.relu((1 + gamma[:6]) * u + beta[:6])
        u = h @ weights["2.weight"].T + weights["2.bias"]
        h = torch.relu((1 + gamma[6:]) * u + beta[6:])
        risks.append(sample_loss(method, h @ weights["4.weight"].T + weights["4.bias"], y))
    assert_same(method.loss(batch), {"risk": sum(risks) / 6}, list(field.parameters()))


def test_interpolate_averages_the_nearest_heads():
    method = make_method("interpolate", toy_problem(), neighbours=3, power=2.0)
    field = method.field()
    with torch.no_grad():
        field.theta.normal_()
    z = torch.rand(4, 2, dtype=torch.float64)
    for query, theta in zip(z, field(z), strict=True):
        distance = (field.anchors - query).norm(dim=1)
        near = distance.argsort()[:3].tolist()
        weights = [1 / float(distance[i]) ** 2 for i in near]
        expected = sum(w * field.theta[i] for w, i in zip(weights, near, strict=True)) / sum(weights)
        torch.testing.assert_close(theta, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(field(field.anchors), field.theta)


@both
def test_nda_tunes_each_copy_on_its_own_domain(regression):
    method = make_method("nda", toy_problem(regression=regression))
    batch = first_batch(method)
    with torch.no_grad():
        method.learned.theta.normal_()
    risks = [loop_risks(method, batch, method.learned.theta[e])[e] for e in range(6)]
    assert_same(method.loss(batch), {"risk": sum(risks)}, [method.learned.theta])


@both
def test_irm_penalty_equals_double_backward(regression):
    method = make_method("irm", toy_problem(regression=regression), penalty=7.0)
    batch = first_batch(method)
    theta = method.learned.theta
    penalties = []
    for x, y in zip(batch.x, batch.y, strict=True):
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        outputs = head(method, theta, x) * scale
        halves = [
            torch.autograd.grad(sample_loss(method, outputs[s::2], y[s::2]), scale, create_graph=True)[0]
            for s in (0, 1)
        ]
        penalties.append(halves[0] * halves[1])
    reference = {"risk": sum(loop_risks(method, batch)) / 6, "penalty": 7 * sum(penalties) / 6}
    assert_same(method.loss(batch), reference, [theta])


def test_irm_and_vrex_anneal_with_weight_one_and_then_begin_a_new_adam():
    for name in ("irm", "vrex"):
        method = make_method(name, toy_problem(), steps=30, anneal_steps=10, penalty=50.0)
        light, full = method.phases()
        assert (light.steps, full.steps) == (10, 20)
        batch = first_batch(method)
        a, b = light.players[0].loss(batch)["penalty"], full.players[0].loss(batch)["penalty"]
        torch.testing.assert_close(50 * a, b)


@both
def test_vrex(regression):
    method = make_method("vrex", toy_problem(regression=regression), penalty=3.0)
    batch = first_batch(method)
    risks = loop_risks(method, batch)
    mean = sum(risks) / 6
    reference = {"risk": mean, "penalty": 3 * sum((r - mean) ** 2 for r in risks) / 6}
    assert_same(method.loss(batch), reference, [method.learned.theta])


def test_groupdro_weights_follow_a_hand_computed_sequence():
    method = make_method("groupdro", toy_problem(), eta=0.5)
    weights = [1.0] * 6
    for batch in list(method.phases()[0].batches(0))[:3]:
        risks = loop_risks(method, batch)
        weights = [q * math.exp(0.5 * float(r.detach())) for q, r in zip(weights, risks, strict=True)]
        weights = [q / sum(weights) for q in weights]
        terms = method.loss(batch)
        reference = {"weighted risk": sum(q * r for q, r in zip(weights, risks, strict=True))}
        assert_same(terms, reference, [method.learned.theta])
        assert method.group_weights.tolist() == pytest.approx(weights, rel=1e-12)


@both
def test_mixup_ring(regression):
    method = make_method("mixup", toy_problem(regression=regression))
    batch = first_batch(method)
    ring, share = torch.tensor([2, 0, 5, 1, 4, 3]), torch.rand(6, dtype=torch.float64)
    risks = []
    for p in range(6):
        i, j, lam = ring[p], ring[(p + 1) % 6], share[p]
        outputs = head(method, method.learned.theta, lam * batch.x[i] + (1 - lam) * batch.x[j])
        if regression:
            risks.append(sample_loss(method, outputs, lam * batch.y[i] + (1 - lam) * batch.y[j]))
        else:
            both_losses = [F.cross_entropy(outputs, batch.y[k]) for k in (i, j)]
            risks.append(lam * both_losses[0] + (1 - lam) * both_losses[1])
    fast = method.mixed_risks(batch, ring, share)
    assert_same({"risk": fast.mean()}, {"risk": sum(risks) / 6}, [method.learned.theta])


def test_mixup_draws_a_share_for_every_pair():
    method = make_method("mixup", toy_problem(), alpha=0.2)
    batch = first_batch(method)
    torch.manual_seed(0)
    first = method.loss(batch)["risk"]
    assert not torch.equal(first, method.loss(batch)["risk"])


@both
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_mldg_equals_explicit_copies_with_a_fresh_adam(regression, weight_decay):
    method = make_method("mldg", toy_problem(regression=regression), beta=0.7, lr=0.01, weight_decay=weight_decay)
    batch = first_batch(method)
    pairs = [(0, 4), (3, 1), (5, 4), (2, 1)]
    total = torch.zeros_like(method.learned.theta)
    for i, j in pairs:
        network = copy.deepcopy(method.learned.theta).detach().requires_grad_()
        adam = torch.optim.Adam([network], lr=0.01, weight_decay=weight_decay)
        loop_risks(method, batch, network)[i].backward()
        total += network.grad / 6
        adam.step()
        (meta,) = torch.autograd.grad(loop_risks(method, batch, network)[j], network)
        total += 0.7 * meta / 6
    terms = method.paired(batch, torch.tensor([i for i, _ in pairs]), torch.tensor([j for _, j in pairs]))
    (gradient,) = torch.autograd.grad(sum(terms.values()), method.learned.theta)
    torch.testing.assert_close(gradient, total, rtol=1e-9, atol=1e-12)
    expected = sum(loop_risks(method, batch)[i] for i, _ in pairs) / 6
    torch.testing.assert_close(terms["risk"], expected)


def adversarial_parts(method, batch):
    theta = method.learned.theta
    features = [body(method, theta, x) for x in batch.x]
    return features, sum(loop_risks(method, batch)) / 6


@both
@pytest.mark.parametrize("penalty", [0.0, 0.4])
def test_dann(regression, penalty):
    method = make_method("dann", toy_problem(regression=regression), adversary=0.6, gradient_penalty=penalty)
    batch = first_batch(method)
    features, risk = adversarial_parts(method, batch)
    total, slopes, count = 0, [], batch.weight.numel()
    for e, h in enumerate(features):
        for row in h:
            each = F.cross_entropy(method.discriminator(row)[None], torch.tensor([e]))
            slopes.append(torch.autograd.grad(each, row, create_graph=True)[0].square().sum())
            total = total + each / count
    loss = total + penalty * sum(slopes) / count
    predictor, watcher = method.phases()[0].players
    assert_same(predictor.loss(batch), {"risk": risk, "adversary": -0.6 * loss}, predictor.parameters)
    assert_same(watcher.loss(batch), {"discriminator": loss}, watcher.parameters)


def test_dann_players_take_turns_predictor_first():
    method = make_method("dann", toy_problem(), discriminator_steps=2)
    (phase,) = method.phases()
    assert [phase.acting(step) for step in range(6)] == [(0,), (1,), (1,), (0,), (1,), (1,)]
    assert all(player.betas == (0.5, 0.9) for player in phase.players)


def test_cdann_weighs_classes_equally_and_conditions_on_the_class():
    method = make_method("cdann", toy_problem(), adversary=0.6)
    batch = first_batch(method)
    features, risk = adversarial_parts(method, batch)
    labels = batch.y.flatten().tolist()
    total = 0
    for e, h in enumerate(features):
        for row, y in zip(h, batch.y[e], strict=True):
            weight = 1 / (labels.count(int(y)) * 2)
            seen = row + method.condition.weight[y]
            total = total + weight * F.cross_entropy(method.discriminator(seen)[None], torch.tensor([e]))
    predictor, watcher = method.phases()[0].players
    assert_same(predictor.loss(batch), {"risk": risk, "adversary": -0.6 * total}, predictor.parameters)
    assert_same(watcher.loss(batch), {"discriminator": total}, watcher.parameters)


def test_cdann_with_a_class_missing_from_the_batch():
    method = make_method("cdann", toy_problem())
    batch = first_batch(method)
    lone = DomainBatch(batch.x, torch.ones_like(batch.y), batch.weight, batch.index)
    weights = method.sample_weights(lone)
    assert torch.isfinite(method.loss(lone)["adversary"])
    assert float(weights.sum()) == pytest.approx(1 / 2)


def test_cdann_on_numbers_embeds_the_target_linearly():
    method = make_method("cdann", toy_problem(regression=True))
    batch = first_batch(method)
    features, _ = adversarial_parts(method, batch)
    total = 0
    for e, (h, y) in enumerate(zip(features, batch.y, strict=True)):
        logits = method.discriminator(h + y @ method.condition.weight.T + method.condition.bias)
        total = total + F.cross_entropy(logits, torch.full((len(h),), e)) / 6
    (_, watcher) = method.phases()[0].players
    assert_same(watcher.loss(batch), {"discriminator": total}, watcher.parameters)


@both
def test_urm(regression):
    method = make_method("urm", toy_problem(regression=regression), adversary=0.3)
    batch = first_batch(method)
    features, risk = adversarial_parts(method, batch)
    h = torch.cat(features)
    encoder, watcher = method.phases()[0].players

    def bce(values, target):
        p = torch.sigmoid(method.discriminator(values))
        return -(target * p.log() + (1 - target) * (1 - p).log()).mean()

    assert_same(encoder.loss(batch), {"risk": risk, "adversary": 0.3 * bce(h, 1.0)}, encoder.parameters)
    torch.manual_seed(4)
    terms = watcher.loss(batch)
    torch.manual_seed(4)
    noise = torch.rand_like(torch.stack(features)).flatten(0, 1)
    reference = {"noise": bce(noise, 1.0), "features": 0.3 * bce(h.detach(), 0.0)}
    assert_same(terms, reference, watcher.parameters)


@both
def test_cida(regression):
    method = make_method("cida", toy_problem(regression=regression), adversary=0.8)
    batch, field = first_batch(method), method.learned
    risks, errors = [], []
    for e, (x, y) in enumerate(zip(batch.x, batch.y, strict=True)):
        theta = field(method.problem.domains.z[e : e + 1])[0]
        z = (method.problem.domains.z[e] - field.mean) / field.std
        risks.append(sample_loss(method, head(method, theta, x), y))
        errors.append((method.discriminator(body(method, theta, x)) - z).square().mean())
    watcher, predictor = method.phases()[0].players
    reference = {"risk": sum(risks) / 6, "adversary": -0.8 * sum(errors) / 6}
    assert_same(predictor.loss(batch), reference, predictor.parameters)
    assert_same(watcher.loss(batch), {"discriminator": sum(errors) / 6}, watcher.parameters)
    assert method.phases()[0].acting(0) == (0, 1)


def test_penalised_methods_share_one_schedule_over_the_switch():
    light, full = make_method("vrex", toy_problem(), steps=400, anneal_steps=100).phases()
    assert light.schedule(1.0) == pytest.approx(full.schedule(0.0))
    assert full.schedule(1.0) == pytest.approx(0)
    with pytest.raises(OptionError, match="must be fewer than steps"):
        make_method("irm", toy_problem(), steps=50, anneal_steps=50)


def test_an_epoch_holds_a_turn_of_every_player():
    (phase,) = make_method("dann", toy_problem(), steps=400, discriminator_steps=150).phases()
    assert phase.steps_per_epoch >= 151
    for steps in (1, 99, 151, 1051, 2049):
        (phase,) = make_method("erm", toy_problem(), steps=steps).phases()
        assert sum(1 for epoch in range(phase.epochs) for _ in phase.batches(epoch)) == steps


def test_ablations_refuse_options_they_would_ignore():
    with pytest.raises(OptionError, match="has no generators"):
        make_method("neurallio-plain", toy_problem(), generators="commuting")
