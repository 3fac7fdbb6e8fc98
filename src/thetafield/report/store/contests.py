"""Whom to look at closely on each dataset of a suite: the simplest method, the best of the others, and ours."""

from thetafield.datasets.base import DATASETS
from thetafield.datasets.source import source_of
from thetafield.report.store.grid import Line, Place, grid
from thetafield.report.store.items import Trial, in_order
from thetafield.report.store.pairing import best_of
from thetafield.report.store.paper import FAMILY, is_ours
from thetafield.report.store.picture import drawable
from thetafield.report.store.reading import Results
from thetafield.report.store.table import apart, unit

REPETITIONS = 2  # whose domains are made again; data from files take up to a second each, and one must do
VARIANTS = 4  # of ours that are looked at where a suite has nothing else


class Contest:
    """The methods to look at on one dataset: the simplest, the best of the others, and ours last.

    Args:
        title: The dataset.
        places: Their trials by name.
        chosen: The name of ours, or of the best of several of ours; of the last where none is ours.
    """

    def __init__(self, title: str, places: dict[str, Place], chosen: str) -> None:
        self.title, self.places, self.chosen = title, places, chosen

    @property
    def dataset(self) -> str:
        """Registry name of the dataset."""
        return next(iter(self.places.values())).trials[0].dataset

    @property
    def ours(self) -> Trial | None:
        """A trial of ours."""
        trial = self.places[self.chosen].trials[0]
        return trial if is_ours(trial.method) else None

    @property
    def others(self) -> list[str]:
        """The names of those that are not ours: of the simplest, and of the best if that is another one."""
        return [name for name, place in self.places.items() if not is_ours(place.trials[0].method)]

    @property
    def main(self) -> str | None:
        """The name of ours; None where several of ours stand beside each other, or none is here."""
        return self.chosen if len(self.places) - len(self.others) == 1 else None

    @property
    def repetitions(self) -> list[tuple[int, object]]:
        """The first few of those that all methods share."""
        shared = set.intersection(*({t.repetition for t in place.trials} for place in self.places.values()))
        ordered = sorted(shared, key=in_order)
        made = self.dataset in DATASETS and source_of(DATASETS[self.dataset]) is None
        return ordered[: REPETITIONS if made else 1]

    def trials(self, repetition: tuple[int, object]) -> dict[str, Trial]:
        """Return one trial of each method."""
        return {
            name: next(trial for trial in place.trials if trial.repetition == repetition)
            for name, place in self.places.items()
        }

    @property
    def measure(self) -> str:
        """What the errors are."""
        first = next(iter(self.places.values())).trials[0]
        return unit(first.result["metric"]).replace(", %", " (%)")


def contests(results: Results) -> list[Contest]:
    """Return what to look at on each dataset of a suite."""
    layout, found = grid(results), []
    for column in layout.columns:
        places = {line: place for line in layout.lines if (place := layout.at(line, column)).trials}
        others = [line for line in places if not line.method.startswith(FAMILY)]
        # The paper's method, under whatever setting, before ours: the last one is the one that it is about.
        ours = sorted((line for line in places if is_ours(line.method)), key=lambda line: line.method == FAMILY)
        best = best_of({line: places[line] for line in others}, places[ours[-1]]) if ours else None
        ranked = ours[-1:] if others or not ours else _ranked({line: places[line] for line in ours})
        shown = [*others[:1], *([best] if best else []), *(line for line in ours if line in ranked[-VARIANTS:])]
        shown = list(dict.fromkeys(shown))
        if not shown:
            continue
        names = dict(zip(shown, map(drawable, apart(shown)), strict=True))
        named = {names[line]: places[line] for line in shown}
        contest = Contest(drawable(column), named, names[(ranked or shown)[-1]])
        if contest.repetitions:  # methods that share no seed and split are looked at nowhere together
            found.append(contest)
    return found


def _ranked(places: dict[Line, Place]) -> list[Line]:
    """Return variants of one method, which are each other's rivals, the best last: on what all were run on."""
    shared = set.intersection(*({trial.repetition for trial in place.trials} for place in places.values()))
    scores = {
        line: sum(trial.result["score"] for trial in place.trials if trial.repetition in shared)
        for line, place in places.items()
    }
    return sorted(places, key=lambda line: -scores[line])
