"""The parameter manifold: θ(z) over all of Z, projected on its first three principal components."""

import numpy as np
import torch
from matplotlib.colors import Colormap, LightSource, Normalize
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D
from sklearn.decomposition import PCA

from thetafield.datasets.two_moons import RANGE
from thetafield.fields.model import FieldModel
from thetafield.report.style import FAINT, MUTED, ROTATION, SCALE, styled

TURN = 20.0  # units of rotation in a full turn


@styled
def parameter_manifold(model: FieldModel, mesh: int = 100) -> Figure:
    """Draw the surface z ↦ PCA(θ(z)) twice: coloured by scale and by rotation.

    Args:
        model: A field model of the moons.
        mesh: Descriptors per side of the mesh over Z.
    """
    axis = torch.linspace(0, RANGE, mesh)
    scale, rotation = torch.meshgrid(axis, axis, indexing="ij")
    theta = model.theta(torch.stack([scale, rotation], -1)).reshape(mesh * mesh, -1)
    pca = PCA(n_components=3, svd_solver="arpack", random_state=0)
    surface = pca.fit_transform(theta.cpu().numpy()).reshape(mesh, mesh, 3)
    shares = 100 * pca.explained_variance_ratio_
    figure = Figure(figsize=(10.4, 5.0))
    views = (
        ("coloured by scale", SCALE, Normalize(0, RANGE), scale.numpy(), "scale"),
        ("coloured by rotation", ROTATION, Normalize(0, 360), 18 * (rotation.numpy() % TURN), "angle (°)"),
    )
    for column, (title, colours, norm, values, label) in enumerate(views):
        ax = figure.add_subplot(1, 2, column + 1, projection="3d")
        _surface(ax, surface, colours(norm(values)))
        ax.set_title(title, y=1.0)
        for name, share in zip("xyz", shares, strict=True):
            ax.set(**{f"{name}label": f"component {'xyz'.index(name) + 1} ({share:.0f} %)"})
        _colour_bar(figure, column, colours, norm, label)
    figure.subplots_adjust(left=0.0, right=1.0, top=0.95, bottom=0.1, wspace=0.0)
    return figure


def _surface(ax: Axes3D, surface: np.ndarray, colours: np.ndarray) -> None:
    # Every tenth line of the mesh is darkened in the faces themselves: lines of their own would shine through.
    colours = colours.copy()
    step = max(2, len(surface) // 10)
    colours[::step, :, :3] *= 0.8
    colours[:, ::step, :3] *= 0.8
    light = LightSource(azdeg=300, altdeg=60)
    x, y, height = np.moveaxis(surface, -1, 0)
    ax.plot_surface(
        x, y, height, facecolors=colours, rstride=1, cstride=1, linewidth=0, antialiased=False, lightsource=light
    )
    ax.view_init(elev=32, azim=-58)
    ax.set_box_aspect((1, 1, 0.62), zoom=1.12)
    for part in (ax.xaxis, ax.yaxis, ax.zaxis):
        part.set_ticks([])
        part.set_pane_color("#f6f7f9")
        part.line.set_color(FAINT)
        part.label.set(color=MUTED, size=8.5)


def _colour_bar(figure: Figure, column: int, colours: Colormap, norm: Normalize, label: str) -> None:
    place = figure.add_axes((0.14 + 0.5 * column, 0.075, 0.22, 0.022))
    place.imshow(np.linspace(0, 1, 256)[None], aspect="auto", cmap=colours, extent=(norm.vmin, norm.vmax, 0, 1))
    place.set(yticks=[], xticks=np.linspace(norm.vmin or 0, norm.vmax or 1, 3))
    place.set_xlabel(label, labelpad=1)
    place.spines[:].set_visible(False)
