"""How much work fits into the minutes given: lengths of training, and how many settings each method may try."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from thetafield.compare.pace import START, Pace
from thetafield.evaluation import choosing
from thetafield.methods.base import METHODS
from thetafield.methods.space import draw_settings
from thetafield.options import checked, schema
from thetafield.streams import numpy_stream

LENGTHS = ("steps", "tune_steps", "base_steps", "epochs", "rounds")  # options that training time is proportional to
# Rows of a batch that are enough, and samples of a domain in it at least: where models of single domains are tuned, and
# where charts are trained, more of each. In the same time, many small batches do better than few large ones.
BATCH, FEWEST_SAMPLES, FEWEST_OF_ONE = 1024, 4, 16
BATCH_OF_CHARTS, FEWEST_OF_CHARTS = 4096, 64
LEAST = 0.5  # share of those samples that are drawn of wide inputs at least
SAMPLES = 250  # of a domain, where a method decides by itself
WIDE = 128  # numbers of a sample up to which all that holds
SAFETY = 1.15  # machines are busy, and some settings take longer than others
INNER = 0.75  # part of the domains that selection trains on
SCORING = 1.15  # the last training is scored in more ways than those of selection
Given = Mapping[str, Any]
NOTHING: Mapping[str, Any] = {}
MOST_OF_ALL = 2.0  # equal shares that the least of a method may take
OF_BACKBONES = ("freeze",)  # choices that there are where domains share a part of the predictor
RELATED = ("freeze",)  # of what a method lets the data choose beside what it starts from, the part that pays most
KIND = ("base",)  # of what it starts from, the same
BARE = ("bare", "kind")  # depths at which nothing is trained but what it starts from


@dataclass(frozen=True)
class Rung:
    """How thoroughly a method is trained and tuned.

    Args:
        share: Share of its default length, or of that of its start alone; below one, and of a start alone, it is given
            and not up for choice.
        draws: Settings to draw beside the defaults.
        folds: How many times domains are held out for them.
        depth: What a method that lets the data choose leaves to them: "all", "related", "start" (what it starts from),
            "bare" (the same, and nothing else is trained), "kind" (of that, the kind alone) or "none".
    """

    share: float
    draws: int = 0
    folds: int = 1
    depth: str = "none"


# From the most thorough down: what is drawn is worth more than the last half of the epochs, and a second look at held-
# out domains more than many draws.
DRAWN = (
    *(Rung(1.0, draws, folds) for draws, folds in ((12, 3), (12, 2), (8, 2), (8, 1), (5, 1))),
    *(Rung(share, draws) for share, draws in ((0.5, 5), (0.5, 3), (0.25, 3), (0.25, 2), (0.1, 2), (0.1, 0), (0.05, 0))),
)
CHOSEN = (
    *(Rung(share, depth=depth) for depth in ("all", "related") for share in (1.0, 0.5)),
    *(Rung(share, depth="start") for share in (0.5, 0.25, 0.1, 0.05)),
    *(Rung(share, depth="bare") for share in (1.0, START)),
    Rung(START, depth="kind"),
    Rung(0.05),
)


@dataclass(frozen=True)
class Allotment:
    """What a method gets of the budget.

    Args:
        method: Registry name.
        options: Its fixed options.
        rung: How thoroughly it is tuned; None where not even the least fits.
        seconds: About how long one fold takes.
    """

    method: str
    options: Mapping[str, Any]
    rung: Rung | None
    seconds: float

    @property
    def tuned(self) -> bool:
        """Whether anything of it is chosen on held-out domains."""
        return self.rung is not None and (self.rung.draws > 0 or self.rung.depth != "none")

    def record(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_record(cls, content: Mapping[str, Any]) -> "Allotment":
        """Return what was recorded."""
        rung = None if content["rung"] is None else Rung(**content["rung"])
        return cls(content["method"], content["options"], rung, content["seconds"])


@dataclass(frozen=True)
class Load:
    """What costs depend on beside the method.

    Args:
        domains: Number of domains of a fold's training.
        kind: The kind of folds.
        folds: Most folds of that kind inside a fold.
        seed: Root seed of the draws.
        reading: Seconds that a fold takes to be read.
        cells: Numbers of one sample's input.
        backbone: Whether the predictor has a part that all domains share.
    """

    domains: int
    kind: str
    folds: int
    seed: int
    reading: float = 0.0
    cells: int = 1
    backbone: bool = True


def lengths(method: str, given: Given = NOTHING) -> dict[str, int]:
    """Return the options of a method that its training time is proportional to, as given or by default.

    Not those that a method decides by the data: they are cut no shorter.
    """
    known = {name: given.get(name, default) for name, (_, default) in schema(METHODS[method]).items()}
    return {name: known[name] for name in known if name in LENGTHS and known[name] is not None}


def shortened(method: str, share: float, given: Given = NOTHING) -> dict[str, int]:
    """Return the options of a training of a share of the whole length.

    >>> shortened("nda", 0.1)
    {'steps': 200, 'tune_steps': 50}
    """
    own = lengths(method, given)
    # What epochs start from is cheap beside them, and of little worth if it is cut as short.
    least = {name: START if "epochs" in own and name != "epochs" else 0.0 for name in own}
    return {name: math.ceil(max(share, least[name]) * length) for name, length in own.items()}


def bare(method: str, given: Given = NOTHING) -> dict[str, int]:
    """Return the options under which a method trains what it starts from alone; none where what is given forbids it.

    >>> bare("neurallio"), bare("neurallio", {"epochs": 5}), bare("erm")
    ({'epochs': 0}, {}, {})
    """
    entry = METHODS[method]
    return {"epochs": 0} if entry.alone and "epochs" not in given and entry.has_start(given) else {}


def thrifty(method: str, domains: int, cells: int = 1, start: bool = False) -> dict[str, int]:
    """Return the samples of a domain in a batch, where the default ones of so many domains are more than enough.

    Wide inputs, such as series, are dear: a batch of them is as much smaller.

    Args:
        method: Registry name of the method.
        domains: Number of domains.
        cells: Numbers of one sample's input.
        start: Whether nothing but what it starts from is trained.

    >>> thrifty("erm", 30), thrifty("erm", 160), thrifty("erm", 160, cells=600), thrifty("nda", 160)
    ({}, {'samples': 6}, {'samples': 2}, {'samples': 16})
    """
    known = schema(METHODS[method])
    default = known.get("samples", (int, 0))[1]
    default = SAMPLES if default is None else default
    charts = bool(METHODS[method].choices) and not start
    batch = (BATCH_OF_CHARTS if charts else BATCH) * (narrow := min(1.0, WIDE / cells))
    if default * domains <= 2 * batch:
        return {}
    single = "tune_steps" in known and not start
    fewest = FEWEST_OF_CHARTS if charts else FEWEST_OF_ONE if single else FEWEST_SAMPLES
    return {"samples": min(default, max(math.ceil(fewest * max(narrow, LEAST)), int(batch) // domains))}


def fixed_options(method: str, rung: Rung, load: Load, given: Given = NOTHING) -> dict[str, Any]:
    """Return what a rung leaves no choice about: what a person gave, though not longer than the rung allows."""
    entry = METHODS[method]
    fixed: dict[str, Any] = {**thrifty(method, load.domains, load.cells, rung.depth in BARE), **given}
    if rung.share < 1 or rung.depth in BARE:
        fixed |= shortened(method, rung.share, given)
    if entry.choices:
        defaults = {name: default for name, (_, default) in schema(entry).items()}
        others = set(entry.choices) - set(entry.foundations)
        settled = {"all": (), "related": others - set(RELATED), "start": others, "bare": others, "none": ()}
        settled["kind"] = others | set(entry.foundations) - set(KIND)
        closed = {*settled[rung.depth], *(() if load.backbone else OF_BACKBONES)} & {*entry.choices, *entry.foundations}
        fixed |= {name: defaults[name] for name in sorted(closed) if name not in fixed}
        if rung.depth in BARE:
            fixed |= bare(method, given)
        if rung.depth == "none":
            fixed["select"] = False
    return fixed


def cost(method: str, rung: Rung, pace: Pace, load: Load, given: Given = NOTHING) -> float:
    """Return about how many seconds a fold takes at a rung."""
    trainings = pace.start(rung.share) if rung.depth in BARE else pace.seconds(rung.share)
    fixed, selection = fixed_options(method, rung, load, given), 0.0
    if rung.draws:
        own = lengths(method, given)
        shares = [rung.share]
        for number in range(rung.draws):
            drawn = draw_settings(METHODS[method].space, numpy_stream(load.seed, "tune", number), fixed)
            shares.append(sum(drawn.get(name, rung.share * own[name]) / own[name] for name in own) / max(1, len(own)))
        selection = rung.folds * sum(map(pace.seconds, shares))
        trainings = pace.seconds(max(shares))
    if rung.depth != "none" and fixed.get("select", True):
        selection = _choice(method, rung, pace, fixed, load, given)
    return load.reading + SAFETY * (INNER * selection + SCORING * trainings)


def _choice(method: str, rung: Rung, pace: Pace, fixed: Mapping[str, Any], load: Load, given: Given) -> float:
    """Return about how many seconds a choice inside a fold takes."""
    entry, few = METHODS[method], load.domains < choosing.FEW
    if load.domains < choosing.FEWEST:
        return 0.0
    full = checked(entry, dict(fixed), method)
    starts, others = map(len, choosing.open_options(method, full, fixed, few))
    folds = choosing.fold_count(load.kind, load.domains, load.folds)
    whole = pace.seconds(rung.share)
    short = whole if few else pace.seconds(rung.share / choosing.SHORTER)
    longest = whole if not few and "epochs" not in fixed else 0.0
    alone = pace.start(rung.share) * (starts + 1) if starts else 0.0
    if rung.depth in BARE:
        return folds * alone
    # With charts to follow, more samples of a domain are drawn for what they start from too.
    few_drawn = {**thrifty(method, load.domains, load.cells, start=True), **given}.get("samples")
    drawn, least = (min(number or SAMPLES, FEWEST_OF_CHARTS) for number in (fixed.get("samples"), few_drawn))
    alone *= drawn / least
    return folds * (short * (1 + bool(starts) + others) + alone + longest)


def _has_bare(method: str, load: Load, given: Given) -> bool:
    """Return whether there is anything to choose of what a method starts from, and it can be trained alone."""
    fixed = {**given, **bare(method, given)}
    full = checked(METHODS[method], dict(fixed), method)
    starts, _ = choosing.open_options(method, full, fixed, load.domains < choosing.FEW)
    return bool(bare(method, given) and starts)


def rungs(method: str, load: Load, given: Given = NOTHING) -> list[Rung]:
    """Return what there is to choose from for a method, the most thorough first."""
    if METHODS[method].choices:
        if load.domains >= choosing.FEWEST and given.get("select", True):
            return [rung for rung in CHOSEN if rung.depth not in BARE or _has_bare(method, load, given)]
        return [Rung(share) for share in (1.0, 0.5, 0.25, 0.1, 0.05)]  # so few domains choose nothing
    left = set(METHODS[method].space) - set(given)
    found = [Rung(rung.share, rung.draws if left else 0, min(rung.folds, load.folds)) for rung in DRAWN]
    # At a given length there has to be something else to draw.
    found = [r for r in found if r.share == 1 or not r.draws or left - set(LENGTHS)]
    return list(dict.fromkeys(found))


def least_cost(method: str, pace: Pace, load: Load, given: Given = NOTHING) -> float:
    """Return about how many seconds a fold takes at the least thorough rung."""
    return cost(method, rungs(method, load, given)[-1], pace, load, given)


def allotted(
    paces: Mapping[str, Pace], total: float, load: Load, given: Mapping[str, Given] = NOTHING
) -> list[Allotment]:
    """Share seconds of one fold out among methods: alike, and what one cannot use goes to the others.

    Args:
        paces: How long each method trains.
        total: Seconds that one fold of all methods together may take.
        load: What costs depend on beside the method.
        given: By method: options that a person has fixed.
    """

    def priced(method: str) -> list[tuple[Rung, float]]:
        own, found = given.get(method, NOTHING), list[tuple[Rung, float]]()
        for rung in rungs(method, load, own):
            price = cost(method, rung, paces[method], load, own)
            if not found or price < found[-1][1]:  # nobody takes less for more
                found.append((rung, price))
        return found

    prices = {method: priced(method)[::-1] for method in paces}  # the least thorough first
    place, left = dict[str, int](), total
    for method in sorted(paces, key=lambda method: prices[method][0][1]):
        # One whose least takes more than twice its share would leave the others untuned.
        if prices[method][0][1] <= min(left, MOST_OF_ALL * total / len(paces)):
            place[method] = 0
            left -= prices[method][0][1]
    climbing = {method for method in place if len(prices[method]) > 1}
    while climbing:  # always the one whose next rung is the cheapest, so that all come as far as the time allows
        method = min(sorted(climbing), key=lambda method: prices[method][place[method] + 1][1])
        more = prices[method][place[method] + 1][1] - prices[method][place[method]][1]
        if more > left:
            climbing.remove(method)
            continue
        place[method] += 1
        left -= more
        if place[method] + 1 == len(prices[method]):
            climbing.remove(method)
    found = []
    for method in paces:
        if method not in place:
            found.append(Allotment(method, {}, None, prices[method][0][1]))
            continue
        rung, seconds = prices[method][place[method]]
        found.append(Allotment(method, fixed_options(method, rung, load, given.get(method, NOTHING)), rung, seconds))
    return found
