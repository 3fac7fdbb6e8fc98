"""How training time grows: seconds over domains and over parameters, with the power that fits."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from thetafield.report.figures.curves import CurvePanel, frame, line_looks
from thetafield.report.style import FAINT, MUTED, styled


def exponent(x: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the power p that fits seconds ∝ x^p over the upper half of the points, where overheads have faded.

    >>> round(exponent([10.0, 100.0, 1000.0], [1.0, 4.0, 40.0]), 2)
    1.0
    """
    first = min(len(x) // 2, len(x) - 2)
    return float(np.polyfit(np.log(x[first:]), np.log(seconds[first:]), 1)[0])


@styled
def growth(panels: Sequence[CurvePanel]) -> Figure:
    """Draw seconds of training on logarithmic axes.

    Args:
        panels: One for each thing that grows.
    """
    figure = Figure(figsize=(10.4, 3.1))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    figure.subplots_adjust(left=0.07, right=0.985, top=0.88, bottom=0.18, wspace=0.2)
    looks = line_looks([curve for panel in panels for curve in panel.curves])
    for ax, panel in zip(axes, panels, strict=True):
        if not panel.curves:
            frame(ax, panel, [])
            continue
        for curve in panel.curves:
            label = curve.label
            if len(curve.x) > 1:
                letter = next((word for word in panel.label.split() if word in ("N", "D")), "x")
                label = rf"{label} $\propto$ {letter}$^{{\mathregular{{{_power(curve.x, curve.mean)}}}}}$"
            ax.plot(curve.x, curve.mean, label=label, **looks[curve.label].style)
        ax.set(xscale="log", yscale="log", xlabel=panel.label, title=panel.title)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.grid(True, which="major", color=FAINT, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(length=0, which="both")
        ax.legend(loc="upper left")
    axes[0].set_ylabel("seconds of training", color=MUTED)
    return figure


def _power(x: Sequence[float], seconds: Sequence[float]) -> str:
    return f"{exponent(x, seconds):.2f}"
