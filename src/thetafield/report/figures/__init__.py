"""Figures as pure functions: domains, models and scores in, a matplotlib figure out, no global state."""

from thetafield.report.figures.boundaries import direction_boundaries, unseen_boundaries
from thetafield.report.figures.descriptor_space import descriptor_space
from thetafield.report.figures.error_maps import error_maps
from thetafield.report.figures.manifold import parameter_manifold
from thetafield.report.figures.relevance import relevance_bars

__all__ = [
    "descriptor_space",
    "direction_boundaries",
    "error_maps",
    "parameter_manifold",
    "relevance_bars",
    "unseen_boundaries",
]
