"""Trust on unseen domains, honestly: what a fold's trust is calibrated by is what the other folds have shown."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from thetafield.evaluation.calibrating import FEWEST, Observed
from thetafield.geometry.trust import FADE, TINY, Calibration


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
    whole = joined(results)
    if not whole.z[0]:
        return [[1.0] * len(result["distance"]) for result in results], False
    others = []
    for number in range(len(results)):
        left = [place for place in range(len(results)) if place != number]
        places = np.concatenate([held[place] for place in left])
        others.append(joined([results[place] for place in left]).where(~np.isin(places, held[number])))
    if min(len(each.errors) for each in others) < FEWEST:
        return [np.exp(-0.5 * (np.array(r["distance"]) / r["reach"]) ** 2).tolist() for r in results], False
    # Where trust is low is learned from the others, how low it is from all: a fold with large errors lowers the mean
    # of the others, and would be trusted for that.
    level, attained = float(np.mean(whole.errors)), float(np.mean(whole.attained))
    trusts = []
    for result, seen in zip(results, others, strict=True):
        calibration = Calibration.fit(np.array(seen.blind), np.array(seen.errors), np.array(seen.z))
        blind, z = (torch.tensor(result["observed"][name], dtype=torch.double) for name in ("blind", "z"))
        expected = calibration(blind, z).numpy() * level / max(float(np.mean(seen.errors)), TINY)
        kept = (naive - expected) / max(naive - attained, TINY)
        far = np.exp(-0.5 * (np.array(result["distance"]) / (FADE * result["reach"])) ** 2)
        trusts.append((kept.clip(0, 1) * far).tolist())
    return trusts, True
