"""A table of parameters of which a training step touches a few rows."""

import torch
from torch import Tensor, nn

from thetafield.typing import Indices, Thetas


class RowTable:
    """Rows of a table, taken as leaves of their own while an optimiser updates rows instead of the whole table.

    The gradient of a table is as large as the table. With a million domains and a few hundred of them in a batch, it
    and the update of all rows would be all the work of a step, and momentum would move rows that the batch has not
    seen.

    Args:
        table: One row per domain, shape (N, D).
    """

    def __init__(self, table: nn.Parameter) -> None:
        self.table = table
        self.lazy = False
        self.index: Indices | None = None
        self.taken: Thetas | None = None

    def take(self, index: Indices) -> Thetas:
        """Return the rows at `index`; where updates are lazy, as a leaf whose gradient is that of the rows alone."""
        if not (self.lazy and torch.is_grad_enabled()):
            return self.table[index]
        self.index, self.taken = index, self.table.detach()[index].requires_grad_()
        return self.taken

    def summed(self) -> Tensor:
        """Return the gradient of the rows taken last; a row taken several times gets the sum each time."""
        assert self.index is not None and self.taken is not None and self.taken.grad is not None
        same = (self.index[:, None] == self.index[None]).to(self.taken.dtype)
        return same @ self.taken.grad
