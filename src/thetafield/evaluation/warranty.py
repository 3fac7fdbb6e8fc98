"""Whether a model's word can be relied on: trust against realised errors, and sets against the truth they promise."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from thetafield.data.domains import DomainSet
from thetafield.evaluation.scores import Scores, answers
from thetafield.fields.doubt import blind_signs, sighted_signs
from thetafield.fields.model import Model

COVERAGE = 0.9


@dataclass(frozen=True)
class Warranty:
    """What was promised on domains, and what came.

    Args:
        calibrated: Whether held-out training domains have told; otherwise trust goes by distance.
        trust: Trust at each domain.
        correlation: Rank correlation of distrust with the realised errors; None where one of them does not vary.
        sighted: Trust at each domain from its inputs, without their targets; None without a calibration.
        sighted_correlation: Rank correlation of that.
        coverage: Share of samples whose sets or intervals at 90 % hold the truth, each domain counting as one.
        size: Mean number of labels in a set, or mean width of an interval.
    """

    calibrated: bool
    trust: list[float]
    correlation: float | None
    sighted: list[float] | None = None
    sighted_correlation: float | None = None
    coverage: float | None = None
    size: float | None = None

    def record(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return asdict(self)


@torch.no_grad()
def warranty(model: Model, domains: DomainSet, scores: Scores) -> Warranty:
    """Compare what a model promises on raw domains with its scores there."""
    z = domains.z.cpu()
    scaled = model.scaler(z)
    if model.trust.blind is None:
        trust = model.trust(scaled).double().numpy()
        return Warranty(False, trust.round(5).tolist(), _correlation(1 - trust, scores))
    signs = blind_signs(model, z)
    expected = model.trust.blind(signs, scaled.double())
    trust = model.trust(scaled, blind=signs).double().numpy()
    seen, held, sizes = [], [], []
    for batch, outputs in answers(model, domains):
        part = batch.index.cpu()
        looks = sighted_signs(model, batch.x, batch.weight, z[part], outputs)
        seen.append(model.trust(scaled[part], sighted=looks))
        if model.conformal is None:
            continue
        threshold = model.conformal.threshold(COVERAGE)
        if model.classes is None:
            half = threshold * expected[part].to(outputs)[:, None, None]
            inside = ((outputs - batch.y).abs() <= half).to(outputs).mean(-1)
            size = (2 * half).expand_as(outputs).mean(-1)
        else:
            likely = -torch.log_softmax(outputs.double(), -1) <= threshold
            inside = likely.gather(-1, batch.y[..., None])[..., 0].to(outputs)
            size = likely.sum(-1).to(outputs)
        held.append((inside * batch.weight).sum(1))
        sizes.append((size * batch.weight).sum(1))
    sighted = torch.cat(seen).double().numpy()
    return Warranty(
        calibrated=True,
        trust=trust.round(5).tolist(),
        correlation=_correlation(1 - trust, scores),
        sighted=sighted.round(5).tolist(),
        sighted_correlation=_correlation(1 - sighted, scores),
        coverage=float(torch.cat(held).mean()) if held else None,
        size=float(torch.cat(sizes).mean()) if sizes else None,
    )


def _correlation(doubt: np.ndarray, scores: Scores) -> float | None:
    if np.ptp(doubt) == 0 or np.ptp(scores.per_domain) == 0:
        return None
    return float(spearmanr(doubt, scores.per_domain).statistic)
