"""A table of parameters of which a training step touches a few rows."""

import torch
from torch import Tensor, nn

from thetafield.geometry.atlas import gather_rows
from thetafield.ranks import ALONE, Ranks
from thetafield.typing import Indices, Thetas


class RowTable:
    """Rows of a table, taken as leaves of their own while an optimiser updates rows instead of the whole table.

    The gradient of a table is as large as the table. With a million domains and a few hundred of them in a batch, it
    and the update of all rows would be all the work of a step, and momentum would move rows that the batch has not
    seen.

    Args:
        table: One row per domain, shape (N, D).
        ranks: Who shares the table: each rank keeps its own rows in `table` and lets go of the others.
    """

    def __init__(self, table: nn.Parameter, ranks: Ranks = ALONE) -> None:
        self.table, self.ranks = table, ranks
        self.shape = tuple(table.shape)  # of the whole table
        self.lazy = False
        self.index: Indices | None = None
        self.taken: Thetas | None = None
        own = ranks.part(len(table))
        self.start = own.start
        if ranks.several:
            table.data = table.data[own].clone()

    def take(self, index: Indices) -> Thetas:
        """Return the rows at `index`; where updates are lazy, as a leaf whose gradient is that of the rows alone.

        Ranks that share the table all take at once, as many rows each.
        """
        if not (self.lazy and torch.is_grad_enabled()):
            assert not self.ranks.several
            return gather_rows(self.table, index) if torch.is_grad_enabled() else self.table[index]
        rows = self.table.detach()
        rows = self.ranks.fetched(rows, self.start, index) if self.ranks.several else rows[index]
        self.index, self.taken = index, rows.requires_grad_()
        return self.taken

    def pending(self) -> tuple[Indices, Thetas, Tensor]:
        """Return which rows of `table` any rank has taken last, repeated or not, with their values and gradients."""
        assert self.index is not None and self.taken is not None and self.taken.grad is not None
        if not self.ranks.several:
            return self.index, self.taken.detach(), self.taken.grad
        index, gradient = self.ranks.gathered(self.index) - self.start, self.ranks.gathered(self.taken.grad)
        here = ((index >= 0) & (index < len(self.table))).nonzero()[:, 0]
        return index[here], self.table.detach()[index[here]], gradient[here]


def summed(index: Indices, gradient: Tensor) -> Tensor:
    """Return the gradients of rows that may be repeated, each with the sum over all of the same index."""
    return (index[:, None] == index[None]).to(gradient.dtype) @ gradient
