"""Tables of what a method has beside its error: the laws of its transport, its times, and what its trust was worth."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from thetafield.report.store.cells import beside, column_cells, has_ours
from thetafield.report.store.cost import choosing
from thetafield.report.store.grid import Line, grid
from thetafield.report.store.items import Item, Trial
from thetafield.report.store.machines import elsewhere, machines
from thetafield.report.store.paper import FAMILY, LAWS, Printed, is_ours, printed_law, printed_seconds
from thetafield.report.store.reading import Results
from thetafield.report.store.table import Cell, Column, Notes, Row, Table, marked

Read = Callable[[str], Callable[[Trial], float | None]]


def law_table(results: Results, title: str) -> Table:
    """Return how well the transports obey the laws of a group, the paper's cosines beside ours."""
    heads = [(law, Column(law.capitalize(), "cosine of θ, %", "high", True)) for law in LAWS]
    heads += [(f"{law}_defect", Column(f"{law.capitalize()}, defect", "of the latents, %", "low")) for law in LAWS]

    def read(key: str) -> Callable[[Trial], float | None]:
        return lambda trial: (trial.result.get("laws") or {}).get(key)

    about = (
        "Cosines compare whole parameter vectors, which have much in common to begin with, so they are kind; the "
        "defect, the relative distance between the two latent codes, is not."
    )
    return by_method(results, "laws", title, heads, read, printed_law, about, "percent")


def time_table(results: Results, title: str) -> Table:
    """Return the seconds of choosing options, of training and of testing, the paper's beside ours."""
    found = machines(results.trials)
    better = "low" if len(found) < 2 else ""  # times of several machines have no best
    heads = [
        ("choosing", Column("choosing, s", "of options, before it trains", "")),
        ("train_seconds", Column("training, s", "", better, True)),
        ("eval_seconds", Column("testing, s", "", better, True)),
    ]

    def read(key: str) -> Callable[[Trial], float | None]:
        return lambda trial: choosing(trial.result) if key == "choosing" else trial.result[key]

    about = f"Seconds of one trial on {' and '.join(found) or 'this machine'}; the paper's are on an RTX 3090."
    placed = [
        replace(trial, labels={**trial.labels, "method_label": trial.row + where})
        for trial, where in zip(results.trials, elsewhere(results.trials), strict=True)
    ]
    return by_method(replace(results, trials=tuple(placed)), "runtime", title, heads, read, printed_seconds, about)


def trust_table(results: Results) -> Table:
    """Return what trust was worth: does distrust rise with the error, and do sets at 90 % hold the truth."""
    heads = [
        ("correlation", Column("Correlation", "of distrust and error, by z", "")),
        ("sighted_correlation", Column("Correlation", "by z and inputs", "")),
        ("coverage", Column("Coverage", "% of the truths, 90 promised", "")),
        ("size", Column("Size", "labels, or width", "")),
    ]

    def read(key: str) -> Callable[[Trial], float | None]:
        factor = 100 if key == "coverage" else 1
        return lambda trial: None if (v := (trial.result.get("trust") or {}).get(key)) is None else factor * v

    told = [trial for trial in results.trials if is_ours(trial.method) and trial.result.get("trust")]
    ours = [trial for trial in told if trial.method == FAMILY] or told
    about = (
        "Trust of ours, fixed before unseen domains were looked at: by descriptors alone, or by their inputs too, "
        "without targets. A correlation of 1 would order them by their error."
    )
    part = replace(results, trials=tuple(ours), gaps=())
    name, title = f"{results.suite}-trust", "What trust was worth"
    made = by_method(part, name, title, heads, read, lambda item, key: None, about, "share")
    if len({row.title for row in made.rows}) != 1:
        return made
    # Of one method, a row for each dataset, which has no part of its own where there is one alone.
    [only, *_] = grid(part).columns
    rows = tuple(replace(row, title=row.group or only, group="", ours=False) for row in made.rows)
    return replace(made, head="Data", rows=rows)


def by_method(
    results: Results,
    name: str,
    title: str,
    heads: Sequence[tuple[str, Column]],
    read: Read,
    printed: Callable[[Item, str], Printed | None],
    about: str,
    metric: str = "seconds",
) -> Table:
    """Return a table with a part for each dataset, a row for each method, a column for each thing that is measured."""
    layout, notes = grid(results), Notes()
    rows: list[Row] = []
    for at in layout.columns:
        placed = {line: place for line in layout.lines if (place := layout.at(line, at)).item is not None}
        items = {line: place.item for line, place in placed.items()}
        parts = [
            beside(column_cells(placed, notes, read(key), metric), items, lambda item, key=key: printed(item, key))
            for key, _ in heads
        ]
        rows += [
            _row(line, at if len(layout.columns) > 1 else "", items[line], [p[line] for p in parts]) for line in placed
        ]
    columns = tuple(
        replace(column, paper=any(row.cells[i].printed for row in rows)) for i, (_, column) in enumerate(heads)
    )
    return Table(
        name=name,
        title=title,
        head="Method",
        columns=columns,
        rows=marked(rows, columns, by_part=True),
        notes=notes.texts,
        about=f"{about} {'The least' if metric == 'seconds' else 'Mean ± standard deviation'} over seeds.",
        command=results.command(results.suite),
    )


def _row(line: Line, part: str, item: Item | None, cells: Sequence[Cell]) -> Row:
    return Row(line.title, tuple(cells), part, has_ours([item] if item else []), line.method)
