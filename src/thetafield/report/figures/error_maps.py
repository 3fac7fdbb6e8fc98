"""Where in Z a method errs: one map per method on one colour scale."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from thetafield.data.domains import DomainSet
from thetafield.evaluation import Scores
from thetafield.report.style import ERROR, INK, PAPER, styled


@styled
def error_maps(scores: Mapping[str, Scores], mesh: DomainSet, train: DomainSet) -> Figure:
    """Draw the error of each mesh domain as a cell of a map over Z.

    Args:
        scores: Scores on the mesh by the method's title.
        mesh: Test domains on a square mesh, scale outermost.
        train: Training domains, drawn as dots.
    """
    side = round(len(mesh) ** 0.5)
    axis = mesh.z[:, 1].cpu().numpy()[:side]
    half = (axis[1] - axis[0]) / 2
    extent = (axis[0] - half, axis[-1] + half, axis[0] - half, axis[-1] + half)
    # The scale ends at the worst domain but one in a hundred, so that one freak cell does not wash out the rest.
    highest = float(np.percentile(np.concatenate([s.per_domain for s in scores.values()]), 99))
    top = max(5.0, 5 * np.ceil(highest / 5))
    figure = Figure(figsize=(10.4, 3.05))
    axes = figure.subplots(1, len(scores), sharey=True, squeeze=False)[0]
    figure.subplots_adjust(left=0.05, right=0.925, top=0.895, bottom=0.145, wspace=0.07)
    dots = train.z.cpu().numpy()
    for ax, (title, score) in zip(axes, scores.items(), strict=True):
        cells = score.per_domain.reshape(side, side).T
        image = ax.imshow(cells, origin="lower", extent=extent, cmap=ERROR, vmin=0, vmax=top)
        ax.scatter(dots[:, 0], dots[:, 1], s=11, color=INK, edgecolors=PAPER, linewidths=0.7)
        ax.set(xlim=extent[:2], ylim=extent[2:], xlabel="scale", title=f"{title}: {score.macro:.1f} %")
        ax.set(xticks=[0, 25, 50], yticks=[0, 25, 50])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("rotation")
    # Beside the last map and exactly as tall as it.
    bar = figure.colorbar(image, cax=axes[-1].inset_axes((1.07, 0, 0.06, 1)), label="error in the domain (%)")
    bar.outline.set_visible(False)
    return figure
