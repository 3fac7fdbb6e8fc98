"""The conformance suite of transports."""

from collections.abc import Callable

import torch

from thetafield.geometry.transport import Transport


def check_transport(make: Callable[[int, int], Transport], exact_identity: bool) -> None:
    """Assert what every transport owes: shapes, batched equals one by one, gradients everywhere, identity.

    Args:
        make: Builds the transport from (descriptor dim, latent dim).
        exact_identity: Whether T(z → z) must be the identity.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transport = make(3, 4).double()
        latent = torch.randn(5, 4, dtype=torch.float64)
        source, target = torch.rand(5, 3, dtype=torch.float64), torch.rand(5, 2, 3, dtype=torch.float64)
    carried = transport(latent, source, target)
    assert carried.shape == (5, 2, 4)
    for b in range(5):
        for k in range(2):
            single = transport(latent[b : b + 1], source[b : b + 1], target[b : b + 1, k : k + 1])[0, 0]
            torch.testing.assert_close(single, carried[b, k], rtol=1e-10, atol=1e-12)
    gradients = torch.autograd.grad(carried.square().sum(), list(transport.parameters()))
    assert all(bool(g.any()) for g in gradients), "a parameter of the transport gets no gradient"
    order = torch.tensor([4, 2, 0, 1, 3])
    torch.testing.assert_close(transport(latent[order], source[order], target[order]), carried[order])
    transport.adopt(transport.measure(source, target))
    transport.train()
    torch.testing.assert_close(transport(latent, source, target), carried, rtol=1e-10, atol=1e-12)
    if exact_identity:
        stayed = transport(latent, source, source[:, None])[:, 0]
        assert torch.equal(stayed, latent), "T(z → z) is not the identity"
