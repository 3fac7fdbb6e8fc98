"""Which descriptors drive the shift, dataset by dataset: bars beside each other, for a look at many at once."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thetafield.report.style import FAINT, INK, MUTED, UNSEEN, styled

PER_ROW, BAR, HEAD = 3, 0.24, 0.62


@styled
def relevance_panels(sets: Sequence[tuple[str, Mapping[str, tuple[float, float, float]]]]) -> Figure:
    """Draw the weight of each descriptor for several datasets, the heaviest first.

    Args:
        sets: Title of each dataset, and by the descriptor's name its weight, the least and the most over trials.
    """
    columns = min(PER_ROW, len(sets))
    rows = [sets[i : i + columns] for i in range(0, len(sets), columns)]
    heights = [HEAD + BAR * max(len(weights) for _, weights in row) for row in rows]
    figure = Figure(figsize=((5.6, 8.0, 10.4)[columns - 1], sum(heights)))
    # Widths in inches, so that names have room however many panels stand beside each other.
    width, names = figure.get_figwidth() / columns, 1.35
    top = sum(heights)
    for row, height in zip(rows, heights, strict=True):
        for column, (title, weights) in enumerate(row):
            bars = BAR * len(weights)
            box = (column * width + names, top - 0.34 - bars, width - names - 0.3, bars)
            across, up = figure.get_figwidth(), figure.get_figheight()
            ax = figure.add_axes((box[0] / across, box[1] / up, box[2] / across, box[3] / up))
            _bars(ax, title, weights)
        top -= height
    return figure


def _bars(ax: Axes, title: str, weights: Mapping[str, tuple[float, float, float]]) -> None:
    ordered = sorted(weights.items(), key=lambda pair: -pair[1][0])
    for row, (_, (mean, low, high)) in enumerate(ordered):
        ax.barh(row, mean, height=0.62, color=UNSEEN, alpha=0.85)
        if high > low:
            ax.plot([low, high], [row, row], color=INK, linewidth=1.3, solid_capstyle="butt")
    ax.set_yticks(range(len(ordered)), [_short(name) for name, _ in ordered], size=8)
    ax.set(xlim=(0, 1.02), ylim=(len(ordered) - 0.5, -0.5), xticks=[0, 0.5, 1])
    ax.tick_params(length=0, labelsize=8)
    ax.set_title(title, loc="left", pad=5)
    ax.grid(axis="x", color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines["left"].set_visible(False)
    ax.spines["bottom"].set_color(MUTED)


def _short(name: str, most: int = 20) -> str:
    """Return a name that fits beside its bar.

    >>> _short("elevation"), _short("mean temperature of the coldest month")
    ('elevation', 'mean temperature of…')
    """
    return name if len(name) <= most else f"{name[: most - 1].rstrip()}…"
