"""Imperfect descriptors: what each coordinate still says of the domain, above the errors that come of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import SubplotSpec

from thetafield.report.figures.curves import LEFT, RIGHT, WIDTH, CurvePanel, draw_panels, panels_height
from thetafield.report.style import MUTED, SCALE, bare, styled

TOP, ACROSS = 2.35, 4  # inches of the upper row; tiles beside each other
GAP = 0.09  # between columns, as a part of their width


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of a descriptor over the true space.

    Args:
        label: What stands above it.
        values: Its value on a mesh, shape (scale, rotation).
    """

    label: str
    values: np.ndarray


@dataclass(frozen=True)
class Construction:
    """How an imperfect descriptor is made.

    Args:
        title: What is done.
        coordinates: What comes of it.
    """

    title: str
    coordinates: tuple[Coordinate, ...]


@styled
def imperfection(constructions: Sequence[Construction], panels: Sequence[CurvePanel], measure: str) -> Figure:
    """Draw a column for each imperfection: its coordinates above, the error over its degree below.

    Args:
        constructions: Those of the panels, in the same order.
        panels: Errors over the degree of each imperfection.
        measure: What is on the vertical axes.
    """
    below = panels_height(panels)
    figure = Figure(figsize=(WIDTH, TOP + below))
    upper, lower = figure.subfigures(2, 1, height_ratios=(TOP, below))
    columns = upper.add_gridspec(1, len(panels), left=LEFT, right=RIGHT, wspace=GAP, top=0.8, bottom=0.08)
    for place, construction in zip(columns, constructions, strict=True):
        _tiles(upper, place, construction)
    # Errors from a tenth of a per cent to a half: on a linear scale the good methods would lie on each other.
    draw_panels(lower, [replace(panel, log_errors=True) for panel in panels], measure, shared=True, gap=GAP)
    return figure


def _tiles(figure: SubFigure, place: SubplotSpec, construction: Construction) -> None:
    """Draw the coordinates of one construction, each from its own least to its own greatest value."""
    down = -(-len(construction.coordinates) // ACROSS)
    grid = place.subgridspec(max(down, 2), ACROSS, hspace=0.38, wspace=0.1)
    head = figure.add_subplot(place)
    head.set_axis_off()
    head.set_title(construction.title, pad=19)
    for spot, coordinate in zip(grid, construction.coordinates, strict=False):
        ax = figure.add_subplot(spot)
        bare(ax)
        ax.imshow(coordinate.values.T, origin="lower", cmap=SCALE)
        ax.set_title(coordinate.label, size=8, weight="normal", pad=3)
        if spot.is_first_col() and spot.is_last_row():
            ax.set_xlabel("scale", size=7.5, color=MUTED, labelpad=2)
            ax.set_ylabel("rotation", size=7.5, color=MUTED, labelpad=2)
