"""A parameter field as the parts that the page computes θ(z) with, exactly."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from thetafield.explorer.arrays import Arrays
from thetafield.explorer.networks import describe_perceptron
from thetafield.fields.base import CELLS, FIELDS, ParameterField
from thetafield.fields.constant import ConstantField
from thetafield.fields.film import FilmField
from thetafield.fields.flow import FlowField
from thetafield.fields.hypernet import HypernetField
from thetafield.fields.interpolated import InterpolatedField
from thetafield.fields.modulated import ModulatedField
from thetafield.fields.sequence import SequenceField
from thetafield.fields.shrunk import ShrunkField
from thetafield.fields.table import TableField
from thetafield.fields.transported import TransportedField
from thetafield.geometry.coder import Coder, LeanCoder, PerceptronCoder
from thetafield.geometry.flow import LinearFlow, NeuralFlow
from thetafield.geometry.generators import CommutingGenerators, ConstantGenerators, GeneratorField
from thetafield.geometry.transport import LieTransport, LinearTransport, PlainTransport, Transport

Part = dict[str, Any]


def describe_field(field: ParameterField, arrays: Arrays) -> Part | None:
    """Return the parts of a field, or None where the page does not know its kind."""
    describe = KINDS.get(field.kind)
    if describe is None or FIELDS[field.kind] is not type(field):
        return None
    part = describe(field, arrays)
    return None if part is None else {"kind": field.kind, "theta_dim": field.theta_dim} | part


def describe_charts(field: ParameterField, arrays: Arrays) -> Part | None:
    """Return how the charts of a field share in its answers; None where it is one function of z without charts.

    Distances are Euclidean where descriptors are charted: along the metric's directions, times their weights.
    """
    if isinstance(field, ShrunkField):
        return describe_charts(field.moved, arrays)
    if isinstance(field, TransportedField):
        count = min(field.blend, len(field.anchors) - 1)
        rule = {"rule": "partition", "count": count, "bandwidth": field.bandwidth} if count > 1 else {"rule": "nearest"}
        return rule | {
            "seen": _seen(field.transport, arrays),
            "weights": arrays.add(field.chart_weights),
            "anchors": arrays.add(field.charted(field.anchors)),
            "spacing": field.spacing,
        }
    if isinstance(field, InterpolatedField):
        rule = {"rule": "inverse", "count": field.neighbours, "power": field.power}
        return rule | {"seen": None, "weights": None, "anchors": arrays.add(field.anchors)}
    if isinstance(field, TableField):
        return {"rule": "nearest", "seen": None, "weights": None, "anchors": arrays.add(field.anchors)}
    return None


def _constant(field: ConstantField, arrays: Arrays) -> Part:
    return {"theta": arrays.add(field.theta)}


def _modulated(field: ModulatedField, arrays: Arrays) -> Part:
    return {
        "theta": arrays.add(field.theta),
        "start": field.first_bias[0],
        "encoder": describe_perceptron(field.encoder, arrays),
        "shift": describe_perceptron(field.shift, arrays),
        "mean": arrays.add(field.mean),
        "std": arrays.add(field.std),
        "edges": None if field.edges is None else arrays.add(field.edges),
    }


def _film(field: FilmField, arrays: Arrays) -> Part:
    return {
        "theta": arrays.add(field.theta),
        "encoder": describe_perceptron(field.encoder, arrays),
        "modulation": describe_perceptron(field.modulation, arrays),
        "layers": [list(layer) for layer in field.layers],
    }


def _hypernet(field: HypernetField, arrays: Arrays) -> Part:
    return {
        "theta": arrays.add(field.theta),
        "encoder": describe_perceptron(field.encoder, arrays),
        "decoder": describe_perceptron(field.decoder, arrays),
    }


def _table(field: TableField, arrays: Arrays) -> Part:
    return {"theta": arrays.add(field.theta)}


def _sequence(field: SequenceField, arrays: Arrays) -> Part:
    return {"theta": arrays.add(field.theta), "times": arrays.add(field.anchors[:, 0])}


def _flow(field: FlowField, arrays: Arrays) -> Part | None:
    flow, coder = field.flow, _coder(field.coder, arrays)
    part = {
        "times": arrays.add(field.anchors[:, 0]),
        "latents": arrays.add(_encoded(field.coder, field.theta)[0]),
        "coder": coder,
    }
    if isinstance(flow, LinearFlow):
        return part | {"flow": {"matrix": arrays.add(flow.generator), "net": None, "step": None}}
    if isinstance(flow, NeuralFlow):
        return part | {"flow": {"matrix": None, "net": describe_perceptron(flow.net, arrays), "step": flow.step}}
    return None


def _shrunk(field: ShrunkField, arrays: Arrays) -> Part | None:
    base, moved = describe_field(field.base, arrays), describe_field(field.moved, arrays)
    if base is None or moved is None:
        return None
    return {
        "base": base,
        "moved": moved,
        "centre": arrays.add(field.centre),
        "shrink": field.shrink,
        "reach": field.reach,
    }


def _transported(field: TransportedField, arrays: Arrays) -> Part | None:
    coder, transport = _coder(field.coder, arrays), _transport(field.transport, field.anchors, arrays)
    if coder is None or transport is None:
        return None
    # Latents are far smaller than the parameters they stand for, and the encoder can stay behind.
    latents, lost = _encoded(field.coder, field.theta)
    return {
        "anchors": arrays.add(field.anchors),
        "latents": arrays.add(latents),
        "lost": arrays.add(lost),
        "coder": coder,
        "transport": transport,
    }


@torch.no_grad()
def _encoded(coder: Coder, thetas: Tensor) -> tuple[Tensor, Tensor]:
    """Return the anchors' latents, shape (N, m), and how far the coder misses their θ, shape (N,)."""
    latents, lost = [], []
    for theta in thetas.split(max(1, CELLS // thetas.shape[1])):
        latents.append(coder.encode(theta))
        lost.append((coder.decode(latents[-1]) - theta).norm(dim=1))
    return torch.cat(latents), torch.cat(lost)


def _coder(coder: Coder, arrays: Arrays) -> Part | None:
    if isinstance(coder, LeanCoder):
        return {
            "decoder": describe_perceptron(coder.decoder, arrays),
            "basis": describe_perceptron(coder.basis, arrays),
        }
    if isinstance(coder, PerceptronCoder):
        return {"decoder": describe_perceptron(coder.decoder, arrays), "basis": None}
    return None


def _seen(transport: Transport, arrays: Arrays) -> Part | None:
    if not transport.projected:
        return None
    return {name: arrays.add(getattr(transport, name)) for name in ("directions", "frequencies", "phases")}


def _transport(transport: Transport, anchors: Tensor, arrays: Arrays) -> Part | None:
    gate = transport.gate
    part: Part = {
        "seen": _seen(transport, arrays),
        "gate": None
        if gate is None
        else {"linear": describe_perceptron(gate.linear, arrays), "weight": arrays.add(gate.weight)},
    }
    if isinstance(transport, PlainTransport):
        return part | {"kind": "plain", "net": describe_perceptron(transport.net, arrays)}
    if isinstance(transport, LinearTransport):
        return part | {"kind": "linear", "net": describe_perceptron(transport.net, arrays)}
    if not isinstance(transport, LieTransport):
        return None
    generators, linear = transport.generators, transport.coefficients.linear
    part |= {
        "kind": "lie",
        "coefficients": describe_perceptron(linear, arrays) if isinstance(linear, torch.nn.Linear) else None,
    }
    if isinstance(generators, GeneratorField) and len(anchors) > _hidden(generators):
        return part | {
            "net": describe_perceptron(generators.net, arrays),
            "matrices": None,
            "shape": list(generators.shape),
        }
    if not isinstance(generators, GeneratorField | ConstantGenerators | CommutingGenerators):
        return None
    # Generators depend on the source alone: those of few anchors take less than the network that emits them.
    source = transport.gated(anchors, anchors[:, None])[0] if isinstance(generators, GeneratorField) else anchors[:1]
    with torch.no_grad():
        matrices = generators(source)
    return part | {"net": None, "matrices": arrays.add(matrices), "shape": list(matrices.shape[1:])}


def _hidden(generators: GeneratorField) -> int:
    last = generators.net[-1]
    assert isinstance(last, torch.nn.Linear)
    return last.in_features


KINDS: dict[str, Callable[..., Part | None]] = {
    "constant": _constant,
    "modulated": _modulated,
    "film": _film,
    "hypernet": _hypernet,
    "table": _table,
    "interpolated": _table,
    "sequence": _sequence,
    "flow": _flow,
    "transported": _transported,
    "shrunk": _shrunk,
}
