"""How well a transport obeys the group laws, at θ level (as in the paper) and in latent space."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from thetafield.geometry.coder import Coder
from thetafield.geometry.transport import Transport
from thetafield.typing import Descriptors, Latents, Thetas

CHUNK = 4096  # latents carried at once
CELLS = 2**26  # numbers of parameters held at once


@dataclass(frozen=True)
class Laws:
    """Mean cosine (in %) between parameters that a law says are equal, and mean relative latent defect (in %)."""

    identity: float
    associativity: float
    invertibility: float
    identity_defect: float
    associativity_defect: float
    invertibility_defect: float
    num_pairs: int
    num_triplets: int


class ParameterTransport:
    """T: Θ × Z × Z → Θ, decode(T(encode(θ), z_i, z_j)), and its latent part alone."""

    def __init__(self, coder: Coder, transport: Transport) -> None:
        self.coder = coder
        self.transport = transport

    def latent(self, latent: Latents, source: Descriptors, target: Descriptors) -> Latents:
        """Carry latents from source to target, pair by pair."""
        return self.transport(latent, source, target[:, None])[:, 0]

    def recoded(self, latent: Latents) -> Latents:
        """Return encode(decode(e)): what the next transport starts from once a θ has been put down."""
        return self.coder.encode(self.coder.decode(latent))


@torch.no_grad()
def check_laws(
    operator: ParameterTransport,
    thetas: Thetas,
    z: Descriptors,
    num_triplets: int,
    generator: torch.Generator,
    *,
    most_pairs: int | None = None,
) -> Laws:
    """Measure the laws over *all* pairs of descriptors, or as many as are wanted at most, and a sample of triplets.

    Args:
        operator: The transport at θ level.
        thetas: θ(z) at each descriptor.
        z: The descriptors, usually of test domains.
        num_triplets: Number of triplets to draw.
        generator: Source of the triplets, on the CPU.
        most_pairs: Number of pairs to draw where there are more; None takes all.
    """
    count = len(z)
    latents = operator.coder.encode(thetas)
    triplets = torch.randint(count, (num_triplets, 3), generator=generator).to(z.device)
    if most_pairs is None or count**2 <= most_pairs:
        pairs = torch.cartesian_prod(torch.arange(count), torch.arange(count)).to(z.device)
    else:
        pairs = torch.randint(count, (most_pairs, 2), generator=generator).to(z.device)

    # Transports at θ level and in latent space share their first leg, and only cosines need decoded parameters.
    def identity(index: Tensor) -> tuple[Tensor, Tensor]:
        i = index[:, 0]
        stayed = operator.latent(latents[i], z[i], z[i])
        return _cosine(thetas[i], operator.coder.decode(stayed)), _defect(stayed, latents[i])

    def inverse(index: Tensor) -> tuple[Tensor, Tensor]:
        i, j = index.unbind(1)
        there = operator.latent(latents[i], z[i], z[j])
        back = operator.latent(operator.recoded(there), z[j], z[i])
        return _cosine(thetas[i], operator.coder.decode(back)), _defect(operator.latent(there, z[j], z[i]), latents[i])

    def composition(index: Tensor) -> tuple[Tensor, Tensor]:
        i, j, k = index.unbind(1)
        halfway = operator.latent(latents[i], z[i], z[j])
        stepwise = operator.latent(operator.recoded(halfway), z[j], z[k])
        direct = operator.latent(latents[i], z[i], z[k])
        cosine = _cosine(operator.coder.decode(stepwise), operator.coder.decode(direct))
        return cosine, _defect(operator.latent(halfway, z[j], z[k]), direct)

    rows = min(CHUNK, max(1, CELLS // thetas.shape[1]))
    same = _mean(identity, torch.arange(count, device=z.device)[:, None], rows)
    round_trip = _mean(inverse, pairs, rows)
    composed = _mean(composition, triplets, rows)
    return Laws(
        identity=same[0],
        associativity=composed[0],
        invertibility=round_trip[0],
        identity_defect=same[1],
        associativity_defect=composed[1],
        invertibility_defect=round_trip[1],
        num_pairs=len(pairs),
        num_triplets=num_triplets,
    )


def _mean(law: Callable[[Tensor], tuple[Tensor, Tensor]], index: Tensor, rows: int) -> tuple[float, float]:
    """Average cosine and defect over `index` in pieces of so many rows, in per cent."""
    pieces = [law(part) for part in index.split(rows)]
    cosine, defect = (torch.cat(column) for column in zip(*pieces, strict=True))
    return 100 * float(cosine.mean()), 100 * float(defect.mean())


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return torch.cosine_similarity(a, b, dim=-1)


def _defect(got: Tensor, expected: Tensor) -> Tensor:
    return (got - expected).norm(dim=-1) / expected.norm(dim=-1)
