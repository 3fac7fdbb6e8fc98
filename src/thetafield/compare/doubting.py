"""Where not to trust the recommended method: domains of little trust, stretches of a descriptor, and beyond."""

from collections.abc import Mapping

import numpy as np
from scipy.stats import mannwhitneyu

from thetafield.compare.verdict import Reliance, amount
from thetafield.data.arrays import shown
from thetafield.data.domains import DomainSet

LOW = 0.5  # trust below which a domain is named
NAMED = 3
LIKELY = 0.05  # of the rank test, divided by the number of looks
PART = 3  # a descriptor is looked at in thirds
FEWEST = 4  # domains of a third


def doubts(
    domains: DomainSet,
    judged: np.ndarray,
    errors: np.ndarray,
    trust: np.ndarray,
    metric: str,
    reliance: Mapping[str, Reliance],
) -> list[str]:
    """Return sentences about where errors are large or trust is low.

    Args:
        domains: All domains.
        judged: Positions of those that were held out.
        errors: Error of the recommended method on each of these.
        trust: Trust at each of these.
        metric: "error" or "mae".
        reliance: Descriptor → how much the recommended method leans on it, where it reads any.
    """
    seen = domains.select(judged)
    told = [*_low_trust(seen, errors, trust, metric), *_stretch(seen, errors, metric)]
    return [*told, *_range(domains, reliance)]


def _low_trust(domains: DomainSet, errors: np.ndarray, trust: np.ndarray, metric: str) -> list[str]:
    low = trust < LOW
    if not low.any():
        return []
    if low.all():
        return [
            f"Trust is below {LOW:g} at all {len(low)} domains that were held out ({trust.max():.2g} at most): do not "
            "count on it at new ones."
        ]
    worst = ", ".join(str(shown(domains.ids[at])) for at in np.argsort(trust, kind="stable")[: min(NAMED, low.sum())])
    there, elsewhere = errors[low].mean(), errors[~low].mean()
    told = f"Trust is below {LOW:g} at {low.sum()} of {len(low)} domains (least at {worst})"
    if there <= elsewhere:
        return [
            f"{told}, but errors are no larger there, {amount(there, metric)} against {amount(elsewhere, metric)} "
            "elsewhere: do not go by trust here."
        ]
    return [f"{told}: the error is {amount(there, metric)} there and {amount(elsewhere, metric)} elsewhere."]


def _stretch(domains: DomainSet, errors: np.ndarray, metric: str) -> list[str]:
    """Return the third of one descriptor in which errors are larger by more than chance, if there is one."""
    looks = []
    z = domains.z.double().numpy()
    for name, column in zip(domains.descriptors, z.T, strict=True):
        low, high = np.quantile(column, [1 / PART, 1 - 1 / PART])
        for words, inside in ((f"below {low:.3g}", column < low), (f"above {high:.3g}", column > high)):
            if min(inside.sum(), (~inside).sum()) >= FEWEST:
                p = mannwhitneyu(errors[inside], errors[~inside], alternative="greater").pvalue
                looks.append((float(p), name, words, inside))
    if not looks:
        return []
    p, name, words, inside = min(looks, key=lambda look: look[0])
    if p * len(looks) > LIKELY:
        return []
    there, elsewhere = errors[inside].mean(), errors[~inside].mean()
    return [
        f"Errors are largest where {name} is {words}: {amount(there, metric)} there, "
        f"{amount(elsewhere, metric)} elsewhere."
    ]


def _range(domains: DomainSet, reliance: Mapping[str, Reliance]) -> list[str]:
    if not domains.descriptors:
        return []
    leans = [reliance[name].mean if name in reliance else 0.0 for name in domains.factors]
    order = sorted(range(len(leans)), key=lambda k: -leans[k])[:NAMED]
    z = domains.z.double().numpy()
    listed = ", ".join(f"{domains.descriptors[k]} {z[:, k].min():.4g} to {z[:, k].max():.4g}" for k in order)
    return [f"Nothing is known about domains outside {listed}: expect less of it there, and ask for its trust."]
