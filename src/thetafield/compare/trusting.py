"""Trust on unseen domains, honestly: what a fold's trust is calibrated by is what the other folds have shown."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from thetafield.evaluation.calibrating import FEWEST, Observed
from thetafield.geometry.trust import FADE, Calibration


def joined(results: Sequence[Mapping[str, Any]]) -> Observed:
    """Return what all folds observed."""
    first, *rest = [Observed(**result["observed"]) for result in results]
    for other in rest:
        first = first.joined(other)
    return first


def unseen_trust(
    results: Sequence[Mapping[str, Any]], held: Sequence[np.ndarray], naive: float
) -> tuple[list[list[float]], bool]:
    """Return trust at each held-out domain, fold by fold, and whether it is calibrated.

    Args:
        results: What the trials of a method came to, fold by fold.
        held: Positions of the domains that each fold holds out; at the edge some are held out twice.
        naive: Error of the best answer that knows neither inputs nor descriptors.
    """
    trusts, calibrated = [], True
    for number, result in enumerate(results):
        distance, reach = np.array(result["distance"]), result["reach"]
        others = joined([other for place, other in enumerate(results) if place != number])
        places = np.concatenate([each for place, each in enumerate(held) if place != number])
        others = others.where(~np.isin(places, held[number]))
        if len(others.errors) < FEWEST:
            trusts.append(np.exp(-0.5 * (distance / reach) ** 2).tolist())
            calibrated = False
            continue
        calibration = Calibration.fit(np.array(others.blind), np.array(others.errors), np.array(others.z))
        blind, z = (torch.tensor(result["observed"][name], dtype=torch.double) for name in ("blind", "z"))
        expected = calibration(blind, z).numpy()
        kept = (naive - expected) / max(naive - float(np.mean(others.attained)), 1e-9)
        trusts.append((kept.clip(0, 1) * np.exp(-0.5 * (distance / (FADE * reach)) ** 2)).tolist())
    return trusts, calibrated
