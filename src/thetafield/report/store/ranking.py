"""Whom to pick before the data are known: how far each method stays behind the best, over many datasets."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from thetafield.report.store.table import Cell, Column, Row, Table, apart, marked

NEAR = 1.02  # times the least error of all, up to which a method is near the best
SEVERAL = 4  # datasets from which on it says something to be near on many


@dataclass(frozen=True)
class Standings:
    """How methods stand beside each other on the datasets of a table.

    Args:
        rows: The rows that have a number.
        columns: The columns that have one, above zero.
        ratios: Error over the least error of the column, shape (rows, columns); NaN where a row has none, or one that
            lacks repetitions that others have, which is one of other data.
    """

    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    ratios: np.ndarray

    @property
    def complete(self) -> np.ndarray:
        """The positions of the rows that lack no dataset."""
        return np.flatnonzero(~np.isnan(self.ratios).any(1))

    @property
    def near(self) -> np.ndarray:
        """On how many datasets each row is near the best."""
        return (self.ratios <= NEAR).sum(1)

    @property
    def say(self) -> bool:
        """Whether they say something: of several datasets, and of ours beside others."""
        return len(self.columns) >= SEVERAL and len({row.ours for row in self.rows}) == 2


def standings(table: Table) -> Standings:
    """Read off a table of errors how its methods stand beside each other."""
    rows = [row for row in table.rows if any(cell.value is not None for cell in row.cells)]
    means = np.array([[np.nan if cell.value is None else cell.value for cell in row.cells] for row in rows])
    whole = np.array([[cell.whole for cell in row.cells] for row in rows], bool)
    shape = (len(rows), len(table.columns))
    means = np.where(whole.reshape(shape), means.reshape(shape), np.nan)
    least = np.nanmin(np.vstack([means, np.full(shape[1], np.inf)]), 0)
    known = np.flatnonzero((least > 0) & (least < np.inf))  # of no error at all nothing is a multiple
    return Standings(tuple(rows), tuple(table.columns[k] for k in known), means[:, known] / least[known])


def ranking(table: Table, found: Standings) -> Table:
    """Return the methods that ran on all datasets, the one that stays least behind the best of each first.

    Args:
        table: What they were read off.
        found: How its methods stand.
    """
    whole = found.complete
    ratios = found.ratios[whole]
    behind = [_behind(line) for line in ratios]
    ranks = rankdata(ratios, axis=0).mean(1)
    columns = (
        Column("Behind the best", "% on average"),
        Column("At worst", "%, and where", ""),
        Column("Rank", f"mean of {len(found.columns)}"),
        Column("Near the best", f"within {100 * (NEAR - 1):.0f} %, datasets", "high"),
    )
    rows, names = [], apart(found.rows)
    for i in np.argsort(behind, kind="stable"):
        worst = int(ratios[i].argmax())
        most = 100 * (float(ratios[i, worst]) - 1)
        cells = (
            Cell(value=behind[i], decimals=1),
            Cell(word=f"{most:.0f}, {found.columns[worst].title}", value=most),
            Cell(value=float(ranks[i]), decimals=1),
            Cell(value=float(found.near[whole[i]]), decimals=0),
        )
        row = found.rows[whole[i]]
        rows.append(Row(names[whole[i]], cells, ours=row.ours, method=row.method))
    return Table(
        name=f"{table.name}-ranking",
        title="Whom to pick before the data are known",
        head="Method",
        columns=columns,
        rows=marked(rows, columns),
        about=(
            "How much more each method errs than the best one of each dataset (geometric mean), which is picked with "
            f"hindsight.{_fewer(found, whole)}"
        ),
        command=table.command,
    )


def _behind(ratios: np.ndarray) -> float:
    """Return by how many per cent a row stays behind the best, on average over the datasets that it has."""
    return 100 * (float(np.exp(np.nanmean(np.log(ratios)))) - 1)


def _fewer(found: Standings, whole: np.ndarray) -> str:
    """Say how rows that lack some datasets stand on the others, beside the best of those that lack none."""
    said, names = [], apart(found.rows)
    for i, name in enumerate(names):
        has = ~np.isnan(found.ratios[i])
        if not has.all() and has.sum() >= SEVERAL:
            there = {names[k]: _behind(found.ratios[k, has]) for k in whole}
            first = min(there, key=there.__getitem__, default=None)
            beside = f", {there[first]:.1f} of {first}" if first is not None else ""
            said.append(f"{name} ({has.sum()} datasets: {_behind(found.ratios[i]):.1f}{beside})")
    return f" Not on all datasets: {'; '.join(said)}." if said else ""
