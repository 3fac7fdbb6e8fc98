"""Which descriptors drive the shift: a bar for each, with its range over a bootstrap of the domains."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from thetafield.report.style import FAINT, INK, MUTED, UNSEEN, styled


@styled
def relevance_bars(relevance: Mapping[str, tuple[float, float, float]]) -> Figure:
    """Draw the weight of each descriptor in the transfer metric, the heaviest first.

    Args:
        relevance: By the descriptor's name: its weight relative to the heaviest, with the lower and the upper end.
    """
    ordered = sorted(relevance.items(), key=lambda pair: -pair[1][0])
    figure = Figure(figsize=(7.2, 0.55 + 0.34 * len(ordered)))
    ax = figure.subplots()
    longest = max(map(len, relevance))
    figure.subplots_adjust(
        left=min(0.4, 0.03 + 0.0135 * longest), right=0.93, top=0.98, bottom=0.42 / (0.55 + 0.34 * len(ordered))
    )
    for row, (_, (weight, low, high)) in enumerate(ordered):
        ax.barh(row, weight, height=0.62, color=UNSEEN, alpha=0.85)
        if high > low:
            ax.plot([low, high], [row, row], color=INK, linewidth=1.6, solid_capstyle="butt")
            for end in (low, high):
                ax.plot([end, end], [row - 0.16, row + 0.16], color=INK, linewidth=1.6)
        ax.text(max(weight, high) + 0.015, row, f"{weight:.2f}", va="center", color=MUTED, fontsize=8.5)
    ax.set(xlim=(0, 1.08), ylim=(len(ordered) - 0.5, -0.5), xlabel="weight in the metric of transfer")
    ax.set_yticks(range(len(ordered)), [name for name, _ in ordered])
    ax.set_xticks([0, 0.5, 1])
    ax.tick_params(length=0)
    ax.grid(axis="x", color=FAINT, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines["left"].set_visible(False)
    return figure
