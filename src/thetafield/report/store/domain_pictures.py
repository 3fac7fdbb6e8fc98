"""Figures of single domains on any data: errors where they are, by their distance, by their trust; and relevance."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from thetafield.errors import DataError
from thetafield.report.figures.curves import LINE_COLOURS, Curve, CurvePanel, curve_panels
from thetafield.report.figures.places import Located, located_errors
from thetafield.report.figures.relevances import relevance_panels
from thetafield.report.figures.trust import Trusted, trust_and_error
from thetafield.report.store.contests import REPETITIONS, VARIANTS, Contest, contests
from thetafield.report.store.picture import Picture
from thetafield.report.store.reading import Results
from thetafield.report.store.rebuilt import Rebuilt, coordinates

BINS = 7
MOST_DESCRIPTORS = 8
MAPS = 2  # of a dataset: the best other method, and ours
BEST = "best other"


def domain_pictures(results: Results, rebuilt: Rebuilt) -> list[Picture]:
    """Return the figures of a suite of comparisons; one for which there is nothing says so."""
    found = contests(results)
    if not found:
        return []
    name, command = results.suite, results.command(results.suite)
    trusted = [one for contest in found if (one := _trusted(contest)) is not None]
    # Of a single descriptor there is nothing to weigh.
    relevant = [c for c in found if c.ours is not None and len(c.ours.result.get("relevance") or {}) > 1]
    pictures = [
        Picture(
            name=f"{name}-distance",
            title="Error by the distance to the nearest training domain",
            caption=(
                "Unseen domains in equal parts by their distance in z, scaled to the range of the training domains. A "
                "field is worth having where its curve stays low as the distance grows. Of the first split of data "
                f"from files, of the first {REPETITIONS} seeds of others.{_which(found)}"
            ),
            alt=f"Curves of the error over distance, a panel for each of {', '.join(c.title for c in found)}.",
            command=command,
            draw=lambda: _distance(found, rebuilt),
            narrow=900,
            cost=3 + len(found) // 2,
        ),
    ]
    mapped = [contest for contest in found if contest.dataset != "two-moons"]  # which has a map of its own
    if mapped:
        pictures.append(_mapped(name, mapped, rebuilt, command))
    if relevant:
        pictures.append(_relevance(name, relevant, command))
    if any(contest.ours is not None for contest in found):
        pictures.append(
            Picture(
                name=f"{name}-trust",
                title="Trust, and the error that came of it",
                caption="A dot for each unseen domain; the line is the mean error of equal parts in rising trust."
                + _which(found, best=True),
                alt=f"The error of each unseen domain over its trust, for {', '.join(one.title for one in trusted)}.",
                command=command,
                draw=(lambda: trust_and_error(trusted)) if trusted else None,
                reason="No stored result has the trust of its domains.",
                vector=False,
            )
        )
    return pictures


def _distance(found: Sequence[Contest], rebuilt: Rebuilt) -> Figure:
    panels, reasons = [], []
    for contest in found:
        try:
            panels.append(_distance_panel(contest, rebuilt))
        except DataError as error:
            reasons.append(str(error))
    if not panels:
        raise DataError(reasons[0])
    if len({curve.label for panel in panels for curve in panel.curves}) > len(LINE_COLOURS):
        panels = [_by_part(panel) for panel in panels]
    # What all panels measure stands once in each row; otherwise every panel says it.
    measures = {panel.measure for panel in panels}
    return curve_panels(panels) if len(measures) > 1 else curve_panels(panels, measures.pop())


def _by_part(panel: CurvePanel) -> CurvePanel:
    """Return a panel whose best other line goes by that part, and by its name under the head."""
    others = [curve for curve in panel.curves if not curve.main]
    if not others or len(others) == len(panel.curves):  # nothing to be the best beside
        return panel
    best = replace(others[-1], label=BEST if len(others) > 1 else others[-1].label)
    best = replace(best, remark=f"{BEST}: {others[-1].label}")
    return replace(panel, curves=tuple(best if curve is others[-1] else curve for curve in panel.curves))


def _which(found: Sequence[Contest], best: bool = False) -> str:
    """Say which are shown where a dataset has several variants of ours and nothing else: some, or the best."""
    several = [
        f"{contest.chosen} on {contest.title}" for contest in found if len(contest.places) > 1 and not contest.others
    ]
    if best and several:
        return f" Of several variants of ours, the best is shown: {'; '.join(several)}."
    return f" Of several variants of ours, at most the {VARIANTS} best are shown." if several else ""


def _distance_panel(contest: Contest, rebuilt: Rebuilt) -> CurvePanel:
    means: dict[str, list[list[float]]] = {name: [] for name in contest.places}
    middles = []
    for repetition in contest.repetitions:
        trials = contest.trials(repetition)
        gaps = rebuilt.distances(next(iter(trials.values())))
        parts = np.array_split(np.argsort(gaps, kind="stable"), min(BINS, max(1, len(gaps) // 4)))
        middles.append([float(gaps[part].mean()) for part in parts])
        for name, trial in trials.items():
            rebuilt.check(trial)
            errors = np.asarray(trial.result["per_domain"])
            means[name].append([float(errors[part].mean()) for part in parts])
    length = min(map(len, middles))
    x = np.mean([row[:length] for row in middles], axis=0)
    curves = []
    for name, rows in means.items():
        values = np.array([row[:length] for row in rows])
        spread, main = tuple(_spread(values)), name == contest.main
        curves.append(Curve(name, tuple(x.tolist()), tuple(values.mean(0).tolist()), spread, main))
    label = "distance to training domains"
    return CurvePanel(contest.title, label, tuple(curves), chosen=False, measure=contest.measure)


def _spread(rows: np.ndarray) -> list[float]:
    return rows.std(0, ddof=1).tolist() if len(rows) > 1 else [0.0] * rows.shape[1]


def _mapped(suite: str, found: Sequence[Contest], rebuilt: Rebuilt, command: str) -> Picture:
    return Picture(
        name=f"{suite}-places",
        title="Errors where the domains are",
        caption=(
            "Each unseen domain in its place, with the mean error of the method in the head; training domains are "
            "grey, and where they come one after another in time the last of them are shown. The best of the "
            "others, and ours, under the first split or seed."
        ),
        alt=f"Maps or curves of the error of single domains for {', '.join(c.title for c in found)}.",
        command=command,
        draw=lambda: _places(found, rebuilt),
        cost=1 + len(found) // 3,
    )


def _places(found: Sequence[Contest], rebuilt: Rebuilt) -> Figure:
    sets, reasons = [], []
    for contest in found:
        try:
            sets.append(_located(contest, rebuilt))
        except DataError as error:
            reasons.append(str(error))
    if not sets:
        raise DataError(reasons[-1])
    return located_errors(sets)


def _located(contest: Contest, rebuilt: Rebuilt) -> Located:
    trials = contest.trials(contest.repetitions[0])
    first = next(iter(trials.values()))
    for trial in trials.values():
        rebuilt.check(trial)
    dataset, unseen = rebuilt.dataset(first), rebuilt.unseen(first)
    relevance = (contest.ours.result.get("relevance") or {}) if contest.ours is not None else {}
    axes = coordinates(dataset, relevance)
    columns = [list(dataset.train.descriptors).index(name) for name in axes]
    rest = [name for name in trials if name != contest.chosen]
    return Located(
        title=contest.title,
        axes=axes,
        train=dataset.train.z.numpy()[:, columns],
        unseen=unseen.z.numpy()[:, columns],
        errors={name: np.asarray(trials[name].result["per_domain"]) for name in [*rest, contest.chosen][-MAPS:]},
        ours=contest.chosen if contest.ours is not None else None,
        measure=contest.measure,
    )


def _relevance(suite: str, found: Sequence[Contest], command: str) -> Picture:
    sets = []
    for contest in found:
        trials = contest.places[contest.chosen].trials
        told = [trial.result["relevance"] for trial in trials if trial.result.get("relevance")]
        weights = {name: [one.get(name, 0.0) for one in told] for name in told[0]}
        bars = {name: (float(np.mean(values)), min(values), max(values)) for name, values in weights.items()}
        heaviest = sorted(bars, key=lambda name: -bars[name][0])[:MOST_DESCRIPTORS]
        sets.append((contest.title, {name: bars[name] for name in heaviest}))
    words = "; ".join(f"{title}: {', '.join(f'{n} {bar[0]:.2f}' for n, bar in bars.items())}" for title, bars in sets)
    return Picture(
        name=f"{suite}-relevance",
        title="What drives the shift",
        caption=(
            "The weight of each descriptor in ours, relative to the heaviest: mean over trials, the line from the "
            f"least to the most. At most {MOST_DESCRIPTORS} descriptors of a dataset are shown."
            f"{_which(found, best=True)}"
        ),
        alt=f"A bar for each descriptor. {words}.",
        command=command,
        draw=lambda: relevance_panels(sets),
        narrow=560,
    )


def _trusted(contest: Contest) -> Trusted | None:
    trials = contest.places[contest.chosen].trials if contest.ours is not None else ()
    with_trust = [trial for trial in trials if (trial.result.get("trust") or {}).get("trust")]
    if not with_trust:
        return None
    correlations = [c for t in with_trust if (c := t.result["trust"].get("correlation")) is not None]
    return Trusted(
        title=contest.title,
        trust=np.concatenate([np.asarray(trial.result["trust"]["trust"], float) for trial in with_trust]),
        error=np.concatenate([np.asarray(trial.result["per_domain"], float) for trial in with_trust]),
        correlation=-float(np.mean(correlations)) if correlations else None,  # stored is that of distrust
        measure=contest.measure,
    )
