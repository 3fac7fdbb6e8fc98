"""What to use, in plain words: by how much, how sure, what matters, and where not to trust it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from thetafield.compare.board import Standing
from thetafield.evaluation.pairs import LEVEL, Paired

SURE = 0.01  # p of the signed-rank test below which a difference is called clear
TREES = ("trees", "trees-x")
NAMED = 5  # descriptors in one sentence


@dataclass(frozen=True)
class Reliance:
    """By how much more the recommended method errs where a descriptor is that of another domain.

    Args:
        mean: Over unseen domains, in the unit of the error.
        low: Lower end of the interval of the mean.
        high: Upper end.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """The recommendation and its reasons.

    Args:
        method: Registry name of the recommended method.
        headline: What to use, in one sentence.
        sentences: The reasons, in whole sentences.
        ties: Methods that differ from it by no more than noise.
        rival: The best of the others; None where there is none.
        against: The recommended method against it.
        descriptors_help: Whether reading descriptors helps beyond noise; None where that was not tried.
    """

    method: str
    headline: str
    sentences: tuple[str, ...]
    ties: tuple[str, ...]
    rival: str | None
    against: Paired | None
    descriptors_help: bool | None

    def record(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return asdict(self)


def recommended(board: Sequence[Standing]) -> tuple[Standing, bool | None]:
    """Return the method to use, and whether descriptors help.

    The method of the least mean error, unless it reads descriptors and leads the best method that ignores them by no
    more than one standard error: then that one. Among more readers than ignorers the best reader owes part of its lead
    to having been picked, and a model that needs no descriptor has no descriptor to be wrong about. Elsewhere
    simplicity is no argument: of two methods within noise of each other the one that erred less is still the better
    guess, and a rule that took the simplest of all within noise would, on few domains, recommend a weak method for
    want of proof.

    Args:
        board: Methods that ran, the least error first.
    """
    best = board[0]
    blind = [each for each in board if not each.reads]
    reading = [each for each in board if each.reads]
    if not blind or not reading:
        return best, None
    lead = reading[0].against(blind[0])
    helps = lead.difference < 0 and not lead.within_noise
    beyond = lead.spread is not None and -lead.difference > lead.spread
    return (best if not best.reads or helps or beyond else blind[0]), helps


def judge(
    board: Sequence[Standing], reliance: Mapping[str, Reliance], doubts: Sequence[str], naive: float = math.inf
) -> Verdict:
    """Put the result of a comparison into words.

    Args:
        board: Methods that ran, the least error first.
        reliance: Descriptor → how much the recommended method leans on it; none where it reads no descriptors.
        doubts: Sentences about where the recommended method should not be trusted.
        naive: Error of the best answer that knows neither inputs nor descriptors.
    """
    winner, helps = recommended(board)
    others = [each for each in board if each is not winner]
    rival = others[0] if others else None
    against = None if rival is None else winner.against(rival)
    ties = tuple(each.method for each in others if winner.against(each).within_noise)
    unit = winner.scores.metric
    headline = (
        f"Use {winner.method}: on unseen domains it errs by {amount(winner.error, unit)} "
        f"({LEVEL} % interval {amount(winner.low, unit)} to {amount(winner.high, unit)})."
    )
    sentences = [
        *_worth(winner, naive),
        *([_lead(winner, rival, against)] if rival is not None and against is not None else []),
        *_ties(winner, ties),
        _descriptors(board, helps, winner, rival),
        *_kind(winner, board),
        *_matters(reliance, unit),
        *doubts,
    ]
    return Verdict(
        winner.method,
        headline,
        tuple(sentences),
        ties,
        None if rival is None else rival.method,
        against,
        helps,
    )


def amount(value: float, metric: str) -> str:
    """Return an error with its unit.

    >>> amount(12.345, "error"), amount(0.01234, "mae")
    ('12.3 %', '0.0123')
    """
    return f"{value:.1f} %" if metric == "error" else f"{value:.3g}"


def sureness(paired: Paired, metric: str) -> str:
    """Return what is known about a difference, in brackets' worth of words."""
    # By how much less, or more, as the sentence around it says.
    ends = (-paired.high, -paired.low) if paired.difference < 0 else (paired.low, paired.high)
    spread = " to ".join(f"{end:.2g}" for end in ends)
    unit = " points" if metric == "error" else ""
    p = "too few domains to test" if paired.p is None else f"p {'< 0.001' if paired.p < 0.001 else f'= {paired.p:.2g}'}"
    return f"{LEVEL} % interval {spread}{unit}, better on {100 * paired.better:.0f} % of {paired.domains} domains, {p}"


def _worth(winner: Standing, naive: float) -> list[str]:
    known = f"the best constant answer errs by {amount(naive, winner.scores.metric)}"
    if winner.error >= naive:
        return [f"It is of no use: {known}. On unseen domains neither inputs nor descriptors tell the target."]
    if winner.high >= naive:
        return [f"It may be of no use: {known}, which is within its interval."]
    return []


def _difference(paired: Paired, metric: str) -> str:
    return f"{abs(paired.difference):.2g}{' points' if metric == 'error' else ''}"


def _spread(paired: Paired, metric: str) -> str:
    return f"{paired.spread or 0.0:.2g}{' points' if metric == 'error' else ''}"


def _lead(winner: Standing, rival: Standing, paired: Paired) -> str:
    metric = winner.scores.metric
    known = sureness(paired, metric)
    if paired.within_noise:
        way = "less" if paired.difference < 0 else "more"
        return (
            f"It errs {_difference(paired, metric)} {way} than the best alternative, {rival.method}, which is within "
            f"noise ({known}): on other domains either may come first."
        )
    # The test of ranks asks whether there is a difference; for the winner it speaks where most domains do.
    sure = paired.p is not None and paired.p < SURE and paired.better > 0.5
    clear = "clear" if sure else "likely, not certain"
    return f"It errs {_difference(paired, metric)} less than the best alternative, {rival.method}: {clear} ({known})."


def _ties(winner: Standing, ties: Sequence[str]) -> list[str]:
    if not ties:
        return []
    return [f"Within noise of {winner.method}: {', '.join(ties)}."]


def _descriptors(board: Sequence[Standing], helps: bool | None, winner: Standing, rival: Standing | None) -> str:
    if helps is None:
        missing = "ignores" if board[0].reads else "reads"
        return f"Whether the descriptors help is not known: no method that {missing} them was compared."
    reading = next(each for each in board if each.reads)
    blind = next(each for each in board if not each.reads)
    paired, metric = reading.against(blind), reading.scores.metric
    told = {winner.method, rival.method if rival else None} == {reading.method, blind.method}
    if helps and told:
        return f"The descriptors help: {blind.method} is the best method that ignores them."
    if helps:
        return (
            f"The descriptors help: {reading.method}, the best method that reads them, errs "
            f"{_difference(paired, metric)} less than {blind.method}, the best that ignores them "
            f"({sureness(paired, metric)})."
        )
    known = "" if told else f" ({sureness(paired, metric)})"
    if winner.reads:
        return (
            f"Whether the descriptors help is not certain: {blind.method}, the best method that ignores them, errs "
            f"more by no more than noise{known}, but by more than the standard error of {_spread(paired, metric)}: the "
            "guess is that they do."
        )
    if paired.difference < 0:
        return (
            f"The descriptors do not help: {reading.method}, the best method that reads them, leads {blind.method}, "
            f"the best that ignores them, by no more than the standard error of {_spread(paired, metric)}{known}, so "
            "the simpler one is recommended."
        )
    return (
        f"The descriptors do not help: no method that reads them errs less than {blind.method}, which ignores them "
        f"({reading.method} comes nearest)."
    )


def _kind(winner: Standing, board: Sequence[Standing]) -> list[str]:
    networks = [each for each in board if each.method not in TREES]
    if winner.method not in TREES or not networks:
        return []
    read = "on the inputs and the descriptors" if winner.reads else "on the inputs alone"
    fields = ", fields θ(z) included" if any(each.reads for each in networks) else ""
    if winner.against(networks[0]).within_noise:
        return [f"Boosted trees {read} do as well as any network that was compared{fields}."]
    return [f"Boosted trees win: plain trees {read} suit this table better than any network compared{fields}."]


def _matters(reliance: Mapping[str, Reliance], metric: str) -> list[str]:
    """Return which descriptors matter, the first few by name, and which do not."""
    if len(reliance) < 2:
        return []
    ordered = sorted(reliance.items(), key=lambda pair: -pair[1].mean)
    sure = [(name, each) for name, each in ordered if each.low > 0]
    if not sure:
        return [
            "No descriptor matters by itself: it errs as much, within noise, when it is told that of another domain."
        ]
    points = " points" if metric == "error" else ""
    listed = ", ".join(f"{name} by {each.mean:.2g}{points}" for name, each in sure[:NAMED])
    more = f" and {len(sure) - NAMED} more" if len(sure) > NAMED else ""
    rest = [name for name, _ in ordered if name not in dict(sure)]
    idle = (
        f"; {', '.join(rest[:NAMED])}{' and others' if len(rest) > NAMED else ''} by no more than noise" if rest else ""
    )
    return [f"Told another domain's value of a descriptor, it errs more: {listed}{more}{idle}."]
