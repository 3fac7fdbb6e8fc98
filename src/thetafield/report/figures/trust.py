"""Whether trust is deserved: the error of unseen domains over the trust that the field had there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from thetafield.report.style import FAINT, INK, PAPER, UNSEEN, styled

PER_ROW, PANEL = 3, 3.0
BINS = 8


@dataclass(frozen=True)
class Trusted:
    """The unseen domains of one dataset.

    Args:
        title: The dataset.
        trust: Trust of each domain, in [0, 1].
        error: Its error.
        correlation: Rank correlation of the two, below zero where errors grow as trust falls; None where it was not
            stored.
        measure: What the errors are.
    """

    title: str
    trust: np.ndarray
    error: np.ndarray
    correlation: float | None
    measure: str


@styled
def trust_and_error(sets: Sequence[Trusted]) -> Figure:
    """Draw a panel for each dataset: a dot for each domain, and the mean error of equal parts in rising trust.

    Args:
        sets: The datasets.
    """
    rows, columns = -(-len(sets) // PER_ROW), min(PER_ROW, len(sets))
    figure = Figure(figsize=((5.6, 8.0, 10.4)[columns - 1], 0.1 + PANEL * rows))
    axes = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(
        left=0.68 / figure.get_figwidth(), right=0.985, top=1 - 0.4 / figure.get_figheight(), wspace=0.24, hspace=0.5
    )
    figure.subplots_adjust(bottom=0.55 / figure.get_figheight())
    for ax, one in zip(axes.flat, sets, strict=False):
        ax.scatter(one.trust, one.error, s=9, color=UNSEEN, alpha=0.35, linewidths=0)
        order = np.argsort(one.trust, kind="stable")
        parts = np.array_split(order, min(BINS, len(order)))
        means = [(one.trust[part].mean(), one.error[part].mean()) for part in parts]
        ax.plot(*np.transpose(means), color=INK, marker="o", markersize=5, markeredgecolor=PAPER, linewidth=1.6)
        words = "" if one.correlation is None else f", correlation {one.correlation:+.2f}".replace("-", "−")
        ax.set_title(f"{one.title}{words}")
        ax.set(xlabel="trust", ylabel=one.measure, xlim=(-0.03, 1.03))
        ax.set_ylim(0, max(1e-9, 1.05 * float(np.percentile(one.error, 99.5))))
        ax.grid(axis="y", color=FAINT, linewidth=0.7)
        ax.set_axisbelow(True)
        ax.tick_params(length=0)
    for ax in axes.flat[len(sets) :]:
        ax.set_axis_off()
    return figure
