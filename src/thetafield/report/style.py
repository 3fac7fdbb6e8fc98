"""One look for all figures: colours that colour-blind readers can tell apart, and one set of matplotlib settings."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure

INK, MUTED, FAINT, PAPER = "#1f2430", "#667085", "#d5d9e0", "#ffffff"
# Blue and vermilion of Okabe and Ito, the pair that every kind of colour vision keeps apart.
CLASS_COLOURS = ("#0072b2", "#d55e00")
UNSEEN = "#0072b2"
ERROR: Colormap = LinearSegmentedColormap.from_list(
    "error", ["#fbf7ef", "#f6d7a8", "#eb9c5c", "#c8553d", "#862b45", "#3d1238"]
)
# Pale tints of the class colours, so that points in the full colours stand out on them.
PROBABILITY: Colormap = LinearSegmentedColormap.from_list(
    "probability", ["#a3cde9", "#cfe4f2", "#faf9f7", "#f9dbc8", "#f3bb95"]
)
SCALE: Colormap = LinearSegmentedColormap.from_list("scale", ["#d3eadf", "#84cbbf", "#3a9fb5", "#24618e", "#1d2f5c"])
# Cyclic: a full turn ends in the colour it began with.
ROTATION: Colormap = LinearSegmentedColormap.from_list(
    "rotation", ["#2b6cb0", "#5bb5c5", "#f2e2a0", "#e8964a", "#b8436b", "#6a4fa3", "#2b6cb0"]
)

PIXELS_PER_INCH = 100  # of the page: a figure 10 inches wide is shown 1,000 CSS pixels wide

SETTINGS: dict[str, Any] = {
    # The first family found is used; DejaVu, which comes with matplotlib, fills in for glyphs that it lacks.
    "font.family": ["sans-serif", "DejaVu Sans"],
    "font.sans-serif": ["Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlepad": 7,
    "axes.labelsize": 9.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": PAPER,
    "figure.dpi": PIXELS_PER_INCH,
    "image.interpolation": "nearest",
    "svg.hashsalt": "thetafield",  # the same figure gives the same bytes
}

P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Return `draw` under the settings of this module; the caller's own settings are left as they were."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context(SETTINGS):
            return draw(*args, **kwargs)

    return drawn


def bare(ax: Axes) -> None:
    """Turn `ax` into a picture: a thin frame without ticks, square."""
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set(visible=True, color=FAINT)
