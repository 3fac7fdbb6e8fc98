"""A block of anchors with their charts: what a step of NeuralLio sees."""

from dataclasses import dataclass

from torch import Tensor

from thetafield.data.batch import DomainBatch
from thetafield.geometry.atlas import gather_rows


@dataclass(frozen=True)
class ChartBatch:
    """A block of anchors with their charts, over samples of all the domains in them.

    Args:
        support: Samples of the domains that edges lead to.
        target: Position of each edge's target in the support, shape (b, k + 1); column 0 is the anchor itself.
        weight: One for each anchor, zero for those that only fill up the last block of an epoch, shape (b,).
        shared: Whether edges to one domain share its entry in the support. Otherwise there is one for each edge, in
            their order, so that their number does not depend on the charts.
    """

    support: DomainBatch
    target: Tensor
    weight: Tensor
    shared: bool

    @property
    def anchor(self) -> Tensor:
        """Position of each anchor in the support, shape (b,)."""
        return self.target[:, 0]

    def at_anchors(self, values: Tensor) -> Tensor:
        """Return the rows of the anchors, shape (b, ...), of values that the support has one of each."""
        if self.shared:
            return gather_rows(values, self.anchor)
        return values.unflatten(0, self.target.shape)[:, 0]

    def at_targets(self, values: Tensor) -> Tensor:
        """Return the rows of all edges' targets, shape (b · (k + 1), ...)."""
        return gather_rows(values, self.target.flatten()) if self.shared else values
