"""Boosted trees as plain arrays: what is saved of them, and how they answer, whichever library has grown them."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from thetafield.fields.direct import Answers

ROWS = 2**13  # rows that walk together: more of them leave the fast memory
IMPOSSIBLE = 1e-12  # probability of a class that no training sample has


class Forest(Answers):
    """Sums of trees, as log-probabilities of classes or as targets.

    The nodes of all trees are one list. A node sends a row to `left` if its feature is at most the threshold, and to
    `right` otherwise; a leaf sends it to itself.

    Args:
        arrays: Of the nodes, each of shape (nodes,): the `feature` that a node looks at, the largest value that goes
            left (`threshold`), whether a missing value does (`missing_left`), the nodes that follow (`left`, `right`),
            and what a leaf adds (`value`). Of the trees, each of shape (trees,): the first node (`roots`) and which of
            the sums it adds to (`column`). And what the sums begin with (`baseline`), and the classes that training
            samples had, none for numbers (`labels`).
        num_outputs: Classes or target columns.
        read_descriptor: Whether the descriptor is among the columns.
    """

    kind = "forest"

    def __init__(self, arrays: Mapping[str, Tensor], *, num_outputs: int, read_descriptor: bool) -> None:
        self.arrays = dict(arrays)
        self.num_outputs, self.read_descriptor = num_outputs, read_descriptor

    @property
    def config(self) -> dict[str, Any]:
        """What is not a tensor, as plain JSON values."""
        return {"num_outputs": self.num_outputs, "read_descriptor": self.read_descriptor}

    def __call__(self, x: Tensor, z: Tensor) -> Tensor:
        """Return outputs (M, o)."""
        table = columns(x, z, self.read_descriptor).double()
        sums = torch.cat([self._sums(rows) for rows in table.split(ROWS)])
        labels = self.arrays["labels"]
        if not len(labels):
            return sums
        answer = sums.new_full((len(sums), self.num_outputs), IMPOSSIBLE)
        if sums.shape[1] == 1 and len(labels) == 2:  # one sum tells two classes apart
            sums = torch.cat([torch.zeros_like(sums), sums], 1)
        answer[:, labels] = torch.softmax(sums, 1).clamp(min=IMPOSSIBLE)
        return answer.log()

    def _sums(self, table: Tensor) -> Tensor:
        """Walk all rows through one tree after the other; rows that have come to a leaf walk no further."""
        of = self.arrays
        sums = of["baseline"].expand(len(table), -1).clone()
        count, cells = len(table), table.T.flatten()
        for root, column in zip(of["roots"].tolist(), of["column"].tolist(), strict=True):
            walking, ended = torch.arange(count), torch.full((count,), root)
            node = ended.clone()
            while len(walking):
                seen = cells[of["feature"][node] * count + walking]
                go_left = torch.where(seen.isnan(), of["missing_left"][node], seen <= of["threshold"][node])
                node = torch.where(go_left, of["left"][node], of["right"][node])
                ended[walking] = node
                inside = of["left"][node] != node
                walking, node = walking[inside], node[inside]
            sums[:, column] += of["value"][ended]
        return sums


def columns(x: Tensor, z: Tensor, read_descriptor: bool) -> Tensor:
    """Return the table that trees see: flattened inputs and, if asked for, the row's descriptor."""
    flat = x.detach().cpu().flatten(1)
    return torch.cat([flat, z.detach().to(flat)], 1) if read_descriptor else flat
