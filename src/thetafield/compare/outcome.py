"""What a comparison leaves behind: the verdict and all numbers behind it, as JSON and as a table of domains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thetafield.compare import folder as files
from thetafield.compare.board import Layout, Standing
from thetafield.compare.budget import Allotment
from thetafield.compare.doubting import doubts
from thetafield.compare.trusting import unseen_trust
from thetafield.compare.verdict import Reliance, judge, recommended
from thetafield.data.domains import DomainSet
from thetafield.data.folds import Fold as Positions
from thetafield.evaluation.calibrating import naive_error, naive_unseen
from thetafield.evaluation.pairs import mean_interval
from thetafield.files import write_json


@dataclass(frozen=True, eq=False)
class Compared:
    """All that is known at the end.

    Args:
        name: How results call the data.
        dataset_options: What the data are made from, so that they can be built again.
        domains: All domains.
        parts: Positions (kept, held out) of each fold.
        kind: The kind of folds.
        seed: Root seed.
        board: Methods that ran, the least error first.
        absent: By method: why there is no result.
        allotments: What each method got of the budget.
        refit: Result of the last training, on all domains.
        warnings: What a person should know first.
        seconds: Wall time.
        budget: Minutes that were given.
        command: What was typed.
        device: In words.
        versions: Of what ran.
    """

    name: str
    dataset_options: Mapping[str, Any]
    domains: DomainSet
    parts: Sequence[Positions]
    kind: str
    seed: int
    board: Sequence[Standing]
    absent: Mapping[str, str]
    allotments: Sequence[Allotment]
    refit: Mapping[str, Any]
    warnings: Sequence[str]
    seconds: float
    budget: float
    command: str
    device: str
    versions: Mapping[str, str]


def write_outcome(out: Path, compared: Compared) -> dict[str, Any]:
    """Write `domains.csv` and, last, `result.json`; return what the latter holds."""
    layout = Layout([held for _, held in compared.parts], compared.domains.sizes.numpy())
    judged = layout.judged
    winner, _ = recommended(compared.board)
    reliance = _reliance(winner, layout)
    metric, naive = winner.scores.metric, naive_unseen(compared.domains, compared.parts)
    parts, calibrated = unseen_trust(winner.results, layout.held, naive_error(compared.domains))
    trust = layout.gathered(parts)
    told = doubts(compared.domains, judged, winner.scores.per_domain, trust, metric, reliance)
    verdict = judge(compared.board, reliance, told, naive)
    distance = layout.gathered([result["distance"] for result in winner.results])
    columns = {"fold": _folds(layout)}
    columns |= {"distance": _spread(distance, layout), "trust": _spread(trust, layout)}
    columns |= {f"{metric}_{each.method}": _spread(each.scores.per_domain, layout) for each in compared.board}
    files.write_domains(out, compared.domains, columns)
    result = {
        "dataset": compared.name,
        "dataset_options": dict(compared.dataset_options),
        "method": winner.method,
        "seed": compared.seed,
        "metric": metric,
        "score": winner.scores.score,
        "macro": winner.scores.macro,
        "worst_decile": winner.scores.worst_decile,
        "per_domain": winner.scores.per_domain.tolist(),
        "seen": compared.refit["score"],  # of the last training, on the domains it was trained on
        "train_seconds": compared.refit["train_seconds"],
        "eval_seconds": compared.refit["eval_seconds"],
        "options": compared.refit["options"],
        "verdict": verdict.record(),
        "leaderboard": [each.record() for each in compared.board],
        "absent": dict(compared.absent),
        "pairs": {each.method: vars(winner.against(each)) for each in compared.board if each is not winner},
        "reliance": {name: vars(each) for name, each in reliance.items()},
        "trust": {"calibrated": calibrated},
        "naive": naive,
        "folds": {"kind": compared.kind, "count": len(compared.parts)},
        "data": {
            "rows": len(compared.domains.x),
            "domains": len(compared.domains),
            "judged": len(judged),
            "features": int(np.prod(compared.domains.x.shape[1:])),
            "descriptors": list(compared.domains.descriptors),
            "factors": list(compared.domains.factors),
            "classes": None if compared.domains.classes is None else len(compared.domains.classes),
        },
        "plan": [each.record() for each in compared.allotments],
        "warnings": list(compared.warnings),
        "seconds": compared.seconds,
        "budget": compared.budget,
        "command": compared.command,
        "device": compared.device,
        "versions": dict(compared.versions),
    }
    write_json(out / files.RESULT, result)
    return files.read(out / files.RESULT)


def _reliance(winner: Standing, layout: Layout) -> dict[str, Reliance]:
    """Return by how much more a method errs without each factor, over the domains that were unseen."""
    found = {}
    for name in winner.results[0]["reliance"]:
        grown = layout.gathered([result["reliance"][name] for result in winner.results])
        found[name] = Reliance(float(grown.mean()), *mean_interval([grown]))
    return found


def _folds(layout: Layout) -> np.ndarray:
    """Return in which folds each domain was held out, as text."""
    words: list[list[str]] = [[] for _ in layout.sizes]
    for number, held in enumerate(layout.held, 1):
        for place in held:
            words[place].append(str(number))
    return np.array([" ".join(each) for each in words], dtype=object)


def _spread(values: np.ndarray, layout: Layout) -> np.ndarray:
    """Return values of the judged domains at their place among all, NaN elsewhere."""
    whole = np.full(len(layout.sizes), np.nan)
    whole[layout.judged] = values
    return whole
