"""Signs that a model may be wrong at a descriptor: without its inputs, and with them."""

from math import prod

import torch
from torch import Tensor

from thetafield.fields.model import FieldModel, Model
from thetafield.geometry.neighbours import Distinct

CELLS = 2**24  # numbers held at once


@torch.no_grad()
def blind_signs(model: Model, z: Tensor) -> Tensor:
    """Return a field's doubts at raw descriptors of shape (b, d), on the CPU; a model without a field has none."""
    if not isinstance(model, FieldModel):
        return torch.zeros(len(z), 0, dtype=torch.double)
    scaled = model.scaler(z.to(model.device, torch.float32))
    part = max(1, CELLS // model.field.theta_dim)
    return torch.cat([model.field.doubts(some) for some in scaled.split(part)]).cpu().double()


@torch.no_grad()
def sighted_signs(model: Model, x: Tensor, weight: Tensor, z: Tensor, outputs: Tensor) -> Tensor:
    """Return what inputs of domains show: whether charts agree on their answers, and how sure these are; on the CPU.

    For classes, the share of answers in which a chart differs from all of them together, and the probability that is
    left to other classes. For numbers, the spread of the charts' answers on the target's scale. A model without a field
    has no charts.

    Args:
        model: The model.
        x: Raw inputs of b domains, shape (b, n, …).
        weight: Weight of each sample, which sum to one in each domain, shape (b, n).
        z: Raw descriptors, shape (b, d).
        outputs: What the model answers, shape (b, n, o).
    """
    if isinstance(model, FieldModel):
        return _chart_signs(model, x, weight, z)
    return _unsure(outputs, weight)[:, model.classes is None :].cpu().double()


def _chart_signs(model: FieldModel, x: Tensor, weight: Tensor, z: Tensor) -> Tensor:
    features_of, found = model.predictor.features, []
    rows = max(1, CELLS // (8 * max(model.field.theta_dim, prod(x.shape[1:]))))
    for some, seen, share in zip(z.split(rows), x.split(rows), weight.split(rows), strict=True):
        scaled = model.scaler(some.to(model.device, torch.float32))
        seen = seen.to(model.device)
        features = features_of(seen if model.inputs is None else model.inputs(seen))
        answer = model.predictor.head(model.field(scaled), features)
        opinions = model.field.opinions(scaled)
        count = opinions.shape[1]
        said = model.predictor.head(opinions.flatten(0, 1), features.repeat_interleave(count, 0))
        said = said.unflatten(0, (-1, count))  # (b, c, n, o)
        share = share.to(answer)
        if model.classes is None:
            spread = (said - answer[:, None]).abs().mean((1, 3))
            found.append((spread * share).sum(1, keepdim=True))
            continue
        differ = (said.argmax(-1) != answer.argmax(-1)[:, None]).to(answer).mean(1)
        found.append(torch.cat([(differ * share).sum(1, keepdim=True), _unsure(answer, share)], 1))
    return torch.cat(found).cpu().double()


def _unsure(answer: Tensor, weight: Tensor) -> Tensor:
    """Return the probability that is left to other classes, shape (b, 1)."""
    return ((1 - torch.softmax(answer, -1).amax(-1)) * weight.to(answer)).sum(1, keepdim=True)


def expected_error(model: Model, z: Tensor) -> Tensor:
    """Return the error to expect at raw descriptors of shape (b, d), on the CPU; equal ones are asked once."""
    assert model.trust.blind is not None
    distinct = Distinct.of(z.cpu())
    points = distinct.points
    return model.trust.blind(blind_signs(model, points), model.scaler(points).double())[distinct.group]


@torch.no_grad()
def trust_at(model: Model, z: Tensor, x: Tensor | None = None) -> Tensor:
    """Return trust at raw descriptors of shape (b, d), on the CPU; inputs of shape (b, …) sharpen a calibrated one."""
    scaled = model.scaler(z.cpu())
    if model.trust.blind is None:
        return model.trust(scaled)
    if x is None:
        return model.trust(scaled, blind=blind_signs(model, z))
    distinct = Distinct.of(z.cpu())
    if not isinstance(model, FieldModel):  # trees answer all rows at once
        outputs, one = model.row_outputs(x, z)[:, None], torch.ones(len(z), 1)
        rows = sighted_signs(model, x[:, None], one, z, outputs)
        signs = torch.zeros(len(distinct.points), rows.shape[1], dtype=rows.dtype)
        signs.index_add_(0, distinct.group, rows / distinct.sizes[distinct.group, None])
        return model.trust(scaled, sighted=signs[distinct.group])
    signs = []
    for start, size, point in zip(distinct.starts.tolist(), distinct.sizes.tolist(), distinct.points, strict=True):
        rows = x[distinct.members[start : start + size]][None].to(torch.float32)
        weight = torch.full((1, size), 1 / size)
        signs.append(_chart_signs(model, rows, weight, point[None]))
    return model.trust(scaled, sighted=torch.cat(signs)[distinct.group])
