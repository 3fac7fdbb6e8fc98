"""Adam for one player: shared parameters by torch's fused kernel, tables row by row."""

from math import prod
from typing import Any

import torch
from torch import Tensor

from thetafield.fields.rows import RowTable, summed
from thetafield.kernels import kernel
from thetafield.methods.phase import Player
from thetafield.ranks import ALONE, Ranks

EPS = 1e-8
LARGE_TABLE = 2**30  # entries from which the first moment is kept in sixteen bits


class RowAdam:
    """Adam on the rows that a step has taken; the others keep their values and their moments.

    Every row counts its own updates, so that the correction of its moments is right whenever it first comes up. The
    second moment moves by a thousandth at a time and needs all its digits; the first one does well with eight, and
    takes half the memory where the table is large.

    Args:
        rows: The table.
        lr: Step size, shape ().
        weight_decay: L2 coefficient.
        betas: Averaging factors.
    """

    def __init__(self, rows: RowTable, lr: Tensor, weight_decay: float, betas: tuple[float, float]) -> None:
        table = rows.table
        self.rows, self.lr, self.weight_decay, self.betas = rows, lr, weight_decay, betas
        small = prod(rows.shape) < LARGE_TABLE
        self.first = torch.zeros_like(table, dtype=table.dtype if small else torch.bfloat16)
        self.second = torch.zeros_like(table)
        self.updates = table.new_zeros(len(table))

    @torch.no_grad()
    def step(self) -> None:
        """Update the rows taken last; equal rows get equal updates, so that it does not matter which is written."""
        index, values, gradient = self.rows.pending()
        fused = kernel("thetafield.training.adam_kernel") if gradient.is_cuda else None
        if fused is not None and fused.serves(self.rows.table, len(index)):
            state = (self.rows.table, self.first, self.second, self.updates)
            fused.update(*state, index, gradient, self.lr, self.weight_decay, self.betas, EPS)
            return
        gradient = torch.add(summed(index, gradient), values, alpha=self.weight_decay)
        updates = self.updates[index] + 1
        first = torch.lerp(self.first[index].to(values.dtype), gradient, 1 - self.betas[0])
        second = torch.lerp(self.second[index], gradient.square(), 1 - self.betas[1])
        size = self.lr / (1 - self.betas[0] ** updates)
        spread = (second / (1 - self.betas[1] ** updates)[:, None]).sqrt_().add_(EPS)
        self.rows.table.index_copy_(0, index, values - size[:, None] * first / spread)
        self.first.index_copy_(0, index, first.to(self.first.dtype))
        self.second.index_copy_(0, index, second)
        self.updates.index_copy_(0, index, updates)

    def tensors(self) -> dict[str, Tensor]:
        """Return all that the next update depends on."""
        return {"first": self.first, "second": self.second, "updates": self.updates}


class PlayerAdam:
    """All updates of one player, with step sizes that live on the device.

    Args:
        player: The player.
        device: Where its parameters are.
        ranks: Who else follows the same loss, each with a part of it.
    """

    def __init__(self, player: Player, device: torch.device, ranks: Ranks = ALONE) -> None:
        cuda = device.type == "cuda"
        rates = player.rates or (1.0,) * len(player.parameters)
        self.device, self.ranks = device, ranks
        # torch's fused kernels read a step size in single precision on a GPU.
        dtype = torch.float32 if cuda else torch.float64
        self.sizes: list[tuple[Tensor, float]] = []

        def size(rate: float) -> Tensor:
            self.sizes.append((torch.zeros((), dtype=dtype, device=device), rate * player.lr))
            return self.sizes[-1][0]

        groups: list[dict[str, Any]] = [
            {"params": [p for p, own in zip(player.parameters, rates, strict=True) if own == rate], "lr": size(rate)}
            for rate in dict.fromkeys(rates)
        ]
        self.shared = None
        if groups:
            self.shared = torch.optim.Adam(
                groups, betas=player.betas, weight_decay=player.weight_decay, fused=True, capturable=cuda
            )
        self.rows = [RowAdam(rows, size(1.0), player.weight_decay, player.betas) for rows in player.tables]
        self.leaves = list(player.parameters)
        for rows in player.tables:
            rows.lazy = True

    def update(self, loss: Tensor, factor: Tensor) -> None:
        """Follow the gradient of a loss with step sizes of `factor` times their largest."""
        if self.shared is not None:
            self.shared.zero_grad(set_to_none=True)
        leaves = [row.rows.taken for row in self.rows if row.rows.taken is not None]
        loss.backward(inputs=[*self.leaves, *leaves])
        self.ranks.sum_gradients(self.leaves)
        for size, largest in self.sizes:
            torch.mul(factor, largest, out=size)
        if self.shared is not None:
            self.shared.step()
        for row in self.rows:
            row.step()

    def close(self) -> None:
        """Give the tables back to whoever reads them next."""
        for row in self.rows:
            row.rows.lazy, row.rows.taken, row.rows.index = False, None, None
        for parameter in self.leaves:
            parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """Return all that the next update depends on, by name."""
        stored = {} if self.shared is None else self.shared.state_dict()["state"]
        shared = {f"{number}/{key}": value for number, entry in stored.items() for key, value in entry.items()}
        rows = {f"rows{n}/{key}": value for n, row in enumerate(self.rows) for key, value in row.tensors().items()}
        return shared | rows

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on from stored tensors."""
        entries: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            owner, key = name.split("/")
            if owner.startswith("rows"):
                self.rows[int(owner.removeprefix("rows"))].tensors()[key].copy_(tensor)
            else:
                entries.setdefault(int(owner), {})[key] = tensor
        if self.shared is not None:
            sizes = [group["lr"] for group in self.shared.param_groups]
            self.shared.load_state_dict(self.shared.state_dict() | {"state": entries})
            for group, size in zip(self.shared.param_groups, sizes, strict=True):
                group["lr"] = size  # loading makes copies, but the schedule writes to these
