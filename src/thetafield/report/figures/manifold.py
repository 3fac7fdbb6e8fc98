"""The parameter manifold: θ(z) over all of Z, projected on its first three principal components."""

import numpy as np
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D
from scipy.ndimage import zoom

from thetafield.datasets.two_moons import RANGE
from thetafield.evaluation.looks import Surface
from thetafield.report.style import FAINT, MUTED, ROTATION, SCALE, styled

FINER, LINES = 4, 11
TURN = 20.0  # units of rotation in a full turn


@styled
def parameter_manifold(surface: Surface) -> Figure:
    """Draw the surface of θ(z) twice: coloured by scale and by rotation.

    Args:
        surface: θ over a mesh of Z, projected on its three main directions.
    """
    points = zoom(surface.points, (FINER, FINER, 1))  # so that edges of faces do not show
    axis = np.linspace(0, RANGE, len(points))
    scale, rotation = np.meshgrid(axis, axis, indexing="ij")
    figure = Figure(figsize=(10.4, 4.9))
    views = (
        ("Coloured by scale", SCALE, Normalize(0, RANGE), scale, "scale"),
        ("Coloured by rotation", ROTATION, Normalize(0, 360), 18 * (rotation % TURN), "angle (°)"),
    )
    for column, (title, colours, norm, values, label) in enumerate(views):
        ax = figure.add_subplot(1, 2, column + 1, projection="3d")
        _surface(ax, points, colours(norm(values)))
        ax.set_title(title, y=0.95)
        for name, share in zip("xyz", surface.shares, strict=True):
            ax.set(**{f"{name}label": f"component {'xyz'.index(name) + 1} ({share:.0f} %)"})
        _colour_bar(figure, column, colours, norm, label)
    figure.subplots_adjust(left=-0.01, right=0.95, top=1.02, bottom=0.14, wspace=0.04)
    return figure


def _surface(ax: Axes3D, points: np.ndarray, colours: np.ndarray) -> None:
    # Lines of equal scale are darkened in the faces themselves: lines of their own would shine through the surface.
    colours = colours.copy()
    for row in np.linspace(0, len(points) - 2, LINES).round().astype(int):
        colours[row : row + 2, :, :3] *= 0.82
    x, y, height = np.moveaxis(points, -1, 0)
    ax.plot_surface(x, y, height, facecolors=colours, rstride=1, cstride=1, linewidth=0, antialiased=False, shade=False)
    ax.view_init(elev=32, azim=-58)
    ax.set_box_aspect((1, 1, 0.62), zoom=1.08)
    for part in (ax.xaxis, ax.yaxis, ax.zaxis):
        part.set_ticks([])
        part.set_pane_color("#f6f7f9")
        part.line.set_color(FAINT)
        part.label.set(color=MUTED, size=8.5)
        part.labelpad = -11  # there are no numbers between it and the axis


def _colour_bar(figure: Figure, column: int, colours: Colormap, norm: Normalize, label: str) -> None:
    place = figure.add_axes((0.125 + 0.485 * column, 0.085, 0.22, 0.022))
    place.imshow(np.linspace(0, 1, 256)[None], aspect="auto", cmap=colours, extent=(norm.vmin, norm.vmax, 0, 1))
    place.set(yticks=[], xticks=np.linspace(norm.vmin or 0, norm.vmax or 1, 3))
    place.set_xlabel(label, labelpad=1)
    place.spines[:].set_visible(False)
