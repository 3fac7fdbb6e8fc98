"""NeuralLio's step as nested Python loops with dense exponentials: slow, plain, and what the fast one must equal."""

import torch
from torch import Tensor
from torch.func import functional_call

from thetafield.geometry.transport import LieTransport
from thetafield.methods.chart_batch import ChartBatch
from thetafield.methods.neurallio_paper import NeuralLioPaper


def loop_transport(transport: LieTransport, latent: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Carry one latent (m,) from source (d,) to target (d,) by dense matrix exponentials."""
    if transport.gate is not None:
        mask = transport.gate(source[None])[0]
        source, target = source * mask, target * mask
    generators = transport.generators(source[None])[0]
    scalars = transport.coefficients((target - source)[None, None])[0, 0]
    for scalar, generator in zip(scalars, generators, strict=True):
        latent = torch.linalg.matrix_exp(scalar * generator) @ latent
    return latent


def loop_loss(method: NeuralLioPaper, batch: ChartBatch) -> dict[str, Tensor]:
    """Return the terms of `method.loss` for a block, domain by domain and neighbour by neighbour."""
    field, problem, support = method.learned, method.problem, batch.support
    coder, transport = field.coder, field.transport
    assert isinstance(transport, LieTransport)
    zero = field.theta.new_zeros(())
    own, transported, reconstruction, embedding, consistency = zero, zero, zero, zero, zero
    for row, anchor in enumerate(batch.anchor.tolist()):
        if not batch.weight[row]:
            continue
        i = support.index[anchor]
        theta_i = field.theta[i]
        e_i = coder.encode(theta_i[None])[0]
        reconstruction = reconstruction + (coder.decode(e_i[None])[0] - theta_i).square().mean()
        for position in batch.target[row].tolist():
            j = support.index[position]
            theta_j = field.theta[j]
            own = own + _risk(method, theta_i, batch, anchor)
            e_hat = loop_transport(transport, e_i, problem.domains.z[i], problem.domains.z[j])
            theta_hat = coder.decode(e_hat[None])[0]
            transported = transported + _risk(method, theta_hat, batch, position)
            embedding = embedding + (e_hat - coder.encode(theta_j[None])[0]).square().mean()
            consistency = consistency + (theta_hat - theta_j).square().mean()
    return {
        "own risk": own,
        "transported risk": transported,
        "reconstruction": method.reconstruction * reconstruction,
        "embedding": method.embedding * embedding,
        "consistency": method.consistency * consistency,
    }


def _risk(method: NeuralLioPaper, theta: Tensor, batch: ChartBatch, position: int) -> Tensor:
    """Return the weighted mean loss of one θ on one domain."""
    predictor, support = method.predictor, batch.support
    features = predictor.backbone(support.x[position])
    outputs = functional_call(predictor.template, predictor.spec.views(theta), (features,))
    target, weight = support.y[position], support.weight[position]
    if method.problem.loss == "cross_entropy":
        each = torch.nn.functional.cross_entropy(outputs, target, reduction="none")
    elif method.problem.loss == "absolute_error":
        each = (outputs - target).abs().mean(-1)
    else:
        each = (outputs - target).square().mean(-1)
    return (each * weight).sum()
