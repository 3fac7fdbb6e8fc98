"""What held-out training domains teach about errors on unseen ones: trust, and sets that cover."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thetafield.data.domains import DomainSet
from thetafield.evaluation.scores import answers, domain_errors, evaluate
from thetafield.evenly import evenly
from thetafield.fields.conformal import Conformal
from thetafield.fields.doubt import blind_signs, sighted_signs
from thetafield.fields.model import Model
from thetafield.geometry.trust import Calibration

QUANTILES = 101  # of each domain's strangeness
EASIEST = 0.1  # quantile of errors on training domains, below which a place is trusted fully
FEWEST = 10  # held-out domains below which nine of ten cannot be told


@dataclass(frozen=True)
class Observed:
    """What models that had not seen some domains did there.

    Args:
        z: Raw descriptor of each held-out domain, shape (n, d).
        errors: Error of each.
        attained: Error on the easiest of the domains that a model was trained on, for each held-out domain.
        blind: Signs of the field at each, shape (n, s).
        sighted: Signs of its inputs, shape (n, t).
        strangeness: Quantiles of how strange the truth looked: −log p of a label, |y − ŷ| of numbers; shape (n, q).
    """

    z: list[list[float]]
    errors: list[float]
    attained: list[float]
    blind: list[list[float]]
    sighted: list[list[float]]
    strangeness: list[list[float]]

    def joined(self, other: "Observed") -> "Observed":
        """Return both, one after the other."""
        mine, theirs = vars(self), vars(other)
        return Observed(**{name: mine[name] + theirs[name] for name in mine})

    def where(self, kept: np.ndarray) -> "Observed":
        """Return the domains for which `kept` holds."""
        places = np.flatnonzero(kept)
        return Observed(**{name: [values[place] for place in places] for name, values in vars(self).items()})


def observe(model: Model, kept: DomainSet, held: DomainSet) -> Observed:
    """Look at a model on domains it has not seen, and on some that it has."""
    seen = kept.select(evenly(len(kept), len(held)))
    sighted, strangeness, errors = [], [], []
    levels = torch.linspace(0, 1, QUANTILES, dtype=torch.double)
    for batch, outputs in answers(model, held):
        errors.append(domain_errors(outputs, batch, held).cpu())
        sighted.append(sighted_signs(model, batch.x, batch.weight, held.z[batch.index.cpu()], outputs))
        strange = _strangeness(model, outputs, batch.y)
        strange = strange.where(batch.weight[..., None] > 0, torch.nan).flatten(1)  # padding says nothing
        strangeness.append(strange.nanquantile(levels.to(strange), dim=1).T.cpu())
    return Observed(
        z=held.z.tolist(),
        errors=torch.cat(errors).tolist(),
        attained=[float(np.quantile(evaluate(model, seen).per_domain, EASIEST))] * len(held),
        blind=blind_signs(model, held.z).tolist(),
        sighted=torch.cat(sighted).tolist(),
        strangeness=torch.cat(strangeness).tolist(),
    )


def calibrate(model: Model, observed: Observed, domains: DomainSet) -> None:
    """Let a model, trained on all domains, know what was observed of models trained on a part of them."""
    errors, attained = np.array(observed.errors), float(np.mean(observed.attained))
    if len(errors) < FEWEST:
        return
    z = model.scaler(torch.tensor(observed.z)).cpu().double()
    model.trust = model.trust.calibrated(
        Calibration.fit(np.array(observed.blind), errors, z.numpy()),
        Calibration.fit(np.array(observed.sighted), errors, z.numpy()),
        attained,
        naive_error(domains),
    )
    strangeness = torch.tensor(observed.strangeness, dtype=torch.double)
    if model.classes is None:  # intervals are as wide as the error that is expected there
        assert model.trust.blind is not None
        expected = model.trust.blind(torch.tensor(observed.blind, dtype=torch.double), z)
        strangeness = strangeness / expected[:, None]
    model.conformal = Conformal.fit(strangeness)


def naive_error(domains: DomainSet) -> float:
    """Return the mean error over domains of the best answer that knows neither inputs nor descriptors."""
    answer = domains.y.mode().values if domains.classification else domains.y.median(0).values
    return float(np.mean(_constant_errors(domains, answer)))


def naive_unseen(domains: DomainSet, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the mean error, over held-out domains, of the best constant answer on the rows of the domains kept.

    Args:
        domains: All domains.
        parts: Positions (kept, held out), fold by fold.
    """
    errors = []
    for kept, held in parts:
        seen, unseen = domains.select(kept), domains.select(held)
        answer = seen.y.mode().values if domains.classification else seen.y.median(0).values
        errors.append(_constant_errors(unseen, answer))
    return float(np.mean(np.concatenate(errors)))


def _constant_errors(domains: DomainSet, answer: Tensor) -> np.ndarray:
    """Return the error of one answer everywhere, domain by domain."""
    if domains.classification:
        wrong = 100.0 * (domains.y != answer).double()
    else:
        wrong = (domains.y - answer).abs().double().mean(-1)
    totals = np.add.reduceat(wrong.cpu().numpy(), domains.offsets[:-1].cpu().numpy())
    return totals / domains.sizes.cpu().numpy()


def _strangeness(model: Model, outputs: Tensor, y: Tensor) -> Tensor:
    """Return how strange the truth looks to a model, shape (b, n, targets) or (b, n, 1)."""
    if model.classes is None:
        return (outputs - y).abs().double()
    return -torch.log_softmax(outputs.double(), -1).gather(-1, y[..., None])
