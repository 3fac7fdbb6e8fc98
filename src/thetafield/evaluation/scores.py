"""Error of a model on domains it has not seen: micro, macro, worst decile, and each domain's own."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NoReturn, TypeVar

import numpy as np
import torch
from torch import Tensor

from thetafield.data.arrays import shown
from thetafield.data.domains import DomainBatch, DomainSet
from thetafield.errors import DivergenceError
from thetafield.fields.model import THETAS, FieldModel, Model

Setting = TypeVar("Setting")
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

    def listed(self) -> list[float]:
        """Return the error of each domain with the six digits that count, whatever its unit.

        >>> Scores.of("mae", np.array([1.23456789e-7, 250.0]), np.array([1, 1])).listed()
        [1.23457e-07, 250.0]
        """
        return [float(f"{error:.6g}") for error in self.per_domain]


def batches(model: Model, domains: DomainSet) -> Iterator[DomainBatch]:
    """Yield all samples of a few hundred domains at a time, where the model lives."""
    domains = domains.to(model.device)
    index = torch.arange(len(domains), device=model.device)
    heads = THETAS // model.field.theta_dim if isinstance(model, FieldModel) else len(domains)
    for part in index.split(max(1, min(heads, CELLS // (domains.longest * prod(domains.x.shape[1:]))))):
        yield domains.padded(part)


@torch.no_grad()
def answers(model: Model, domains: DomainSet) -> Iterator[tuple[DomainBatch, Tensor]]:
    """Yield all samples of a few hundred domains at a time, with the model's outputs (b, n, o) for them."""
    for batch in batches(model, domains):
        outputs = model.domain_outputs(batch.x, domains.z[batch.index.cpu()])
        finite = _finite(outputs).cpu().numpy()
        if not finite.all():
            _refuse(finite, model, domains.select(batch.index.cpu().numpy()))
        yield batch, outputs


def evaluate(model: Model, domains: DomainSet) -> Scores:
    """Score `model` on raw domains."""
    errors = [domain_errors(outputs, batch, domains) for batch, outputs in answers(model, domains)]
    metric = "error" if domains.classification else "mae"
    return Scores.of(metric, torch.cat(errors).double().cpu().numpy(), domains.sizes.cpu().numpy())


@torch.no_grad()
def errors_of_each(
    model: FieldModel, domains: DomainSet, settings: Sequence[Setting], turn: Callable[[Setting], None]
) -> list[np.ndarray]:
    """Return each domain's error under every setting of a field; the backbone, which they leave alone, runs once.

    Where a setting has no finite answer the error is infinite.

    Args:
        model: The model.
        domains: Raw domains.
        settings: The settings.
        turn: Lets the field have one of them.

    Raises:
        DivergenceError: No setting has finite answers for all domains.
    """
    parts: list[list[Tensor]] = [[] for _ in settings]
    for batch in batches(model, domains):
        features, z = model.domain_features(batch.x), domains.z[batch.index.cpu()]
        for setting, part in zip(settings, parts, strict=True):
            turn(setting)
            outputs = model.head_outputs(features, z)
            part.append(domain_errors(outputs, batch, domains).where(_finite(outputs), torch.inf))
    errors = [torch.cat(part).cpu().numpy() for part in parts]
    finite = [np.isfinite(each) for each in errors]
    if not any(each.all() for each in finite):
        _refuse(finite[0], model, domains)
    return errors


def _finite(outputs: Tensor) -> Tensor:
    """Return which domains have finite answers only."""
    return torch.isfinite(outputs).flatten(1).all(1)


def _refuse(finite: np.ndarray, model: Model, domains: DomainSet) -> NoReturn:
    domain = int(np.argmin(finite))
    z = ", ".join(f"{value:g}" for value in domains.z[domain].tolist())
    raise DivergenceError(
        f"{model.recipe.method} has no finite answer for domain {shown(domains.ids[domain])} (z = {z}), which lies too "
        f"far from the training domains ({int((~finite).sum())} such domains)."
    )


def domain_errors(outputs: Tensor, batch: DomainBatch, domains: DomainSet) -> Tensor:
    """Return the error of each domain of a batch: in per cent for classes."""
    if domains.classification:
        return 100 * ((outputs.argmax(-1) != batch.y).to(outputs) * batch.weight).sum(1).double()
    return ((outputs - batch.y).abs().mean(-1) * batch.weight).sum(1).double()
