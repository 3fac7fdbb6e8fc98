"""Error of a model on domains it has not seen: micro, macro, worst decile, and each domain's own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

from thetafield.data.arrays import shown
from thetafield.data.domains import DomainBatch, DomainSet
from thetafield.errors import DivergenceError
from thetafield.fields.model import Model

CELLS = 2**22  # numbers of the inputs scored at once


@dataclass(frozen=True)
class Scores:
    """Errors in per cent for classes, mean absolute errors for numbers.

    Args:
        metric: "error" or "mae".
        score: Micro average over all samples, as the paper reports.
        macro: Mean over domains.
        worst_decile: Mean over the worst tenth of the domains.
        per_domain: Error of each domain, shape (N,).
    """

    metric: str
    score: float
    macro: float
    worst_decile: float
    per_domain: np.ndarray

    @classmethod
    def of(cls, metric: str, per_domain: np.ndarray, sizes: np.ndarray) -> "Scores":
        """Summarise per-domain errors.

        >>> Scores.of("error", np.array([0.0, 10.0]), np.array([300, 100])).score
        2.5
        """
        worst = np.sort(per_domain)[-math.ceil(len(per_domain) / 10) :]
        return cls(
            metric=metric,
            score=float(np.average(per_domain, weights=sizes)),
            macro=float(per_domain.mean()),
            worst_decile=float(worst.mean()),
            per_domain=per_domain,
        )


@torch.no_grad()
def answers(model: Model, domains: DomainSet) -> Iterator[tuple[DomainBatch, Tensor]]:
    """Yield all samples of a few hundred domains at a time, with the model's outputs (b, n, o) for them."""
    domains = domains.to(model.device)
    index = torch.arange(len(domains), device=model.device)
    for part in index.split(max(1, CELLS // (domains.longest * prod(domains.x.shape[1:])))):
        batch = domains.padded(part)
        outputs = model.domain_outputs(batch.x, domains.z[part])
        finite = torch.isfinite(outputs).flatten(1).all(1)
        if not bool(finite.all()):
            domain = int(part[int((~finite).int().argmax())])
            z = ", ".join(f"{value:g}" for value in domains.z[domain].tolist())
            raise DivergenceError(
                f"{model.recipe.method} has no finite answer for domain {shown(domains.ids[domain])} (z = {z}), which "
                f"lies too far from the training domains ({int((~finite).sum())} such domains)."
            )
        yield batch, outputs


def evaluate(model: Model, domains: DomainSet) -> Scores:
    """Score `model` on raw domains."""
    errors = []
    for batch, outputs in answers(model, domains):
        wrong = (
            (outputs.argmax(-1) != batch.y).to(outputs)
            if domains.classification
            else (outputs - batch.y).abs().mean(-1)
        )
        errors.append((wrong * batch.weight).sum(1))
    per_domain = torch.cat(errors).double().cpu().numpy()
    sizes = domains.sizes.cpu().numpy()
    if domains.classification:
        return Scores.of("error", 100 * per_domain, sizes)
    return Scores.of("mae", per_domain, sizes)
