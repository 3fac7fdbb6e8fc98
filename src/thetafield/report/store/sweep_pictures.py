"""The figures of sweeps: sensitivity, convergence, growth; and a table at a glance."""

from collections.abc import Sequence
from dataclasses import replace

from thetafield.report.figures.convergence import LongRun, convergence
from thetafield.report.figures.curves import Curve, CurvePanel, curve_panels, spans_much
from thetafield.report.figures.growth import growth
from thetafield.report.figures.overview import Mark, overview
from thetafield.report.store.machines import machines
from thetafield.report.store.paper import FAMILY, paper
from thetafield.report.store.picture import Picture, drawable
from thetafield.report.store.reading import Results
from thetafield.report.store.sweeps import Panel, Point
from thetafield.report.store.table import Cell, Table, unit

SHOWN_LOSSES = (10, 30, 50, 70)  # training domains whose losses are drawn, as in the paper


def overview_picture(table: Table) -> Picture | None:
    """Return a comparison at a glance; None where hardly anything is in it."""
    columns = []
    counts = [sum(row.cells[i].value is not None for row in table.rows) for i in range(len(table.columns))]
    # One value alone is worth a panel beside others that compare several.
    telling = [i for i, count in enumerate(counts) if count and max(counts) > 1]
    # All panels share their lines, and one without results says nothing, whatever the paper prints.
    rows = [row for row in table.rows if any(_says_something(row.cells[i]) for i in telling)]
    for position in telling:
        column, marks = table.columns[position], []
        for row in rows:
            cell = row.cells[position]
            beside = cell.printed.mean if cell.printed else None
            marks.append(Mark(drawable(row.title), cell.value, cell.spread or 0.0, beside, cell.word, row.ours))
        columns.append((drawable(column.title), column.unit.replace(", %", " (%)"), marks))
    if not columns:
        return None
    # Where a method is taken apart, what stands beside it is not another one.
    apart = all(row.method.startswith(FAMILY) for row in rows)
    best = "; ".join(
        f"{column.title}: {row.title} {row.cells[i].text}"
        for i, column in enumerate(table.columns)
        for row in table.rows
        if row.cells[i].mark == "best"
    )
    return Picture(
        name=f"{table.name}-overview",
        title="At a glance",
        caption="A dot is the mean over seeds, its line the standard deviation. What lies far beyond the others is "
        "written at the edge, and what has no results is left out.",
        alt=f"The values of the table as dots, one panel for each dataset. The best are: {best}.",
        command=table.command,
        draw=lambda: overview(columns, others="with a part changed" if apart else "other methods"),
    )


def _says_something(cell: Cell) -> bool:
    return cell.value is not None or cell.word not in ("", "–")


def sensitivity_picture(results: Results, panels: Sequence[Panel], title: str) -> Picture:
    """Return the curves of the error over each option."""
    shown = [curves_of(panel, log=True) for panel in panels]
    if logarithmic := spans_much(shown):
        shown = [replace(panel, log_errors=True) for panel in shown]
    measure = unit(panels[0].metric).replace(", %", " (%)")
    return Picture(
        name="sensitivity",
        title=title,
        caption="One option is varied, all others stay. Bands are the standard deviation over seeds"
        + ("; the scale of errors is logarithmic." if logarithmic else "."),
        alt=words_of(panels),
        command=results.command(results.suite),
        draw=(lambda: curve_panels(shown, measure, shared=True)) if any(panel.varies for panel in panels) else None,
        reason="No panel has results at two values yet.",
        narrow=900,
    )


def convergence_picture(results: Results, panels: Sequence[Panel]) -> Picture:
    """Return the three panels of convergence."""
    domains, epochs = panels
    bounds = tuple((float(count), float(bound)) for count, bound in paper()["convergence"].items())
    left = curves_of(domains, bounds=bounds)
    name = _main(domains) or _main(epochs)
    at = {int(point.x): point for point in domains.lines.get(name, ()) if point.place.trials}
    counts = [count for count in (SHOWN_LOSSES if at.keys() & SHOWN_LOSSES else at) if count in at]
    losses = {count: values for count in counts if (values := _losses(results, at[count]))}
    long = None
    trained = [point for point in epochs.lines.get(name, ()) if point.place.trials]
    if len(trained) > 1:
        long = LongRun(_losses(results, trained[-1]), curves_of(epochs).curves)
    measure = unit(domains.metric).replace(", %", " (%)")
    return Picture(
        name="convergence",
        title="Convergence",
        caption=(
            "Left: error on unseen domains over the number of training domains; marks are what the paper's text "
            f"states. Middle: the loss of {name} in the last phase of its first training. Right: errors after "
            f"trainings of several lengths, and in grey the loss of the longest one of {name}."
        ),
        alt=words_of(panels),
        command=results.command(results.suite),
        draw=(lambda: convergence(left, losses, long, measure, drawable(name)))
        if domains.varies or losses or long
        else None,
        reason="There are neither results at two sizes nor stored losses yet.",
        narrow=900,
    )


def _main(panel: Panel) -> str:
    """Return the line that single trainings are looked at of: ours, or the first."""
    return _ours(panel) or next((label for label, points in panel.lines.items() if _finished(points)), "")


def _ours(panel: Panel) -> str:
    """Return the line that is ours: of several, such as ours without a part, the first."""
    lines = panel.lines.items()
    found = (k for k, points in lines if _finished(points) and getattr(points[0].place.item, "method", "") == FAMILY)
    return next(found, "")


def _finished(points: Sequence[Point]) -> bool:
    return any(point.place.trials for point in points)


def growth_picture(results: Results, panels: Sequence[Panel]) -> Picture:
    """Return seconds over domains and over parameters."""
    shown = []
    for panel in panels:
        drawn = curves_of(panel)
        long = tuple(curve for curve in drawn.curves if len(curve.x) > 1)
        where = f" ({' and '.join(found)})" if (found := machines(panel.trials)) else ""
        note = f"no two stored trials differ\nin their {panel.name}"
        shown.append(replace(drawn, title=drawn.title + where, curves=long, note=note))
    return Picture(
        name="scaling",
        title="Growth of the time of training",
        caption="Seconds of whole trainings, the least over seeds. "
        "The power is fitted to the upper half of the points.",
        alt=words_of(panels),
        command=results.command(results.suite),
        draw=(lambda: growth(shown)) if any(panel.curves for panel in shown) else None,
        reason="No two stored trials differ in their size yet.",
    )


def curves_of(panel: Panel, log: bool = False, bounds: tuple[tuple[float, float], ...] = ()) -> CurvePanel:
    """Return the lines of a panel as they are drawn, wherever there are results."""
    curves, ours = [], _ours(panel)
    for label, points in panel.lines.items():
        cells = [(point.x, cell) for point in points if (cell := panel.cell(point)) is not None]
        if cells:
            curves.append(
                Curve(
                    drawable(label),
                    tuple(x for x, _ in cells),
                    tuple(cell.value or 0.0 for _, cell in cells),
                    tuple(cell.spread or 0.0 for _, cell in cells),
                    main=label == ours,
                )
            )
    here = {x for curve in curves for x in curve.x}
    stated = tuple(bound for bound in bounds if bound[0] in here)
    return CurvePanel(panel.title, panel.label, tuple(curves), log, bounds=stated)


def _losses(results: Results, point: Point) -> list[tuple[float, float]]:
    """Return epochs and losses of the last phase of the first trial at a point."""
    records = results.history(point.place.trials[0])
    last = records[-1].get("phase") if records else None
    return [(float(r["epoch"]), r["loss"]) for r in records if r.get("phase") == last and r.get("loss") is not None]


def words_of(panels: Sequence[Panel]) -> str:
    """Say in words what the curves do: where each begins and ends."""
    said = []
    for panel in panels:
        for label, points in panel.lines.items():
            cells = [(point.x, cell) for point in points if (cell := panel.cell(point)) is not None]
            if cells:
                (first, start), (last, end) = cells[0], cells[-1]
                said.append(f"{label} over {panel.label}: {start.text} at {first:,.10g}, {end.text} at {last:,.10g}")
    return "; ".join(said) + "." if said else "Nothing to show yet: there are no results of this suite."
