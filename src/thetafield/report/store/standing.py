"""What stands: where ours is clearly ahead, and how many of the paper's values are reached."""

from collections.abc import Iterable, Sequence

from thetafield.report.store.pairing import Duel
from thetafield.report.store.ranking import NEAR, Standings
from thetafield.report.store.shortfalls import worse
from thetafield.report.store.table import Table


def ahead(duels: Sequence[Duel], title: str) -> Iterable[str]:
    """Yield a sentence for each of ours: on which datasets it clearly errs less than the best other method."""
    for name in dict.fromkeys(duel.ours for duel in duels):
        fought = [duel for duel in duels if duel.ours == name]
        won = [duel for duel in fought if duel.is_won]
        if won:
            listed = ", ".join(f"{duel.column} ({_against(duel)})" for duel in won)
            count = "the only dataset" if len(fought) == 1 else f"{len(won)} of {len(fought)} datasets"
            yield f"{title}: {name} clearly errs less than the best other method on {count}: {listed}."


def _against(duel: Duel) -> str:
    return f"{duel.ours_error:.{duel.digits}f} against {duel.rival_error:.{duel.digits}f} of {duel.rival}"


def matched(table: Table, title: str) -> Iterable[str]:
    """Yield a sentence for each of ours: how many of the values that the paper prints of its method it reaches."""
    for row in table.rows:
        pairs = [
            (column, cell)
            for column, cell in zip(table.columns, row.cells, strict=True)
            if cell.value is not None and cell.printed is not None and cell.printed.mean is not None
        ]
        reached = sum(worse(column, cell) <= 0 for column, cell in pairs)
        if row.ours and reached:
            values = "the only value" if len(pairs) == 1 else f"{reached} of the {len(pairs)} values"
            yield f"{title}: {row.title} reaches {values} that the paper prints of its method."


def near(found: Standings, title: str) -> Iterable[str]:
    """Yield a sentence for each of ours that is near the least error on more datasets than any other method.

    Who is told the data has to pick a method before it knows which one is the best there.
    """
    if not found.say:
        return
    others = max(int(count) for count, row in zip(found.near, found.rows, strict=True) if not row.ours)
    for count, row in zip(found.near, found.rows, strict=True):
        if row.ours and count > others:
            yield (
                f"{title}: {row.title} errs at most {100 * (NEAR - 1):.0f} % more than the best method on {count} of "
                f"{len(found.columns)} datasets, any other method on {others} at most."
            )
