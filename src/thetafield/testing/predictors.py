"""The conformance suite of predictors."""

import torch

from thetafield.predictors.base import PREDICTORS


def check_predictor(name: str, input_shape: tuple[int, ...] = (6,), num_outputs: int = 3) -> None:
    """Assert what every predictor owes: many θ at once equals one by one, θ is a bijection, modules stand alone."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        predictor = PREDICTORS[name](input_shape, num_outputs).double().eval()
        theta = predictor.start + 0.1 * torch.randn(4, predictor.dim, dtype=torch.float64)
        x = torch.randn(4, 5, *input_shape, dtype=torch.float64)
    theta.requires_grad_(True)
    outputs = predictor(theta, x)
    assert outputs.shape == (4, 5, num_outputs)
    singles = torch.stack([predictor.module(theta[b])(x[b]) for b in range(4)])
    torch.testing.assert_close(outputs, singles, rtol=1e-10, atol=1e-12)
    (gradient,) = torch.autograd.grad(outputs.square().sum(), theta)
    assert bool(gradient.any(1).all()), "some θ gets no gradient"
    assert torch.equal(predictor.spec.flatten(predictor.spec.views(theta)), theta)
    assert sum(p.numel() for p in predictor.module(theta[0]).parameters()) == predictor.dim + sum(
        p.numel() for p in predictor.backbone.parameters()
    )
    if predictor.steady:
        predictor.train()
        alone = torch.cat([predictor.features(part) for part in x.split(1)])
        torch.testing.assert_close(
            alone,
            predictor.features(x),
            rtol=1e-10,
            atol=1e-12,
            msg="the backbone says that it is steady, but its features change from one batch to the next",
        )
