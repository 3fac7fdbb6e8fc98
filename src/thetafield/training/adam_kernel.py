"""One update of the rows that a step has taken, as one Triton kernel: what `RowAdam` does in some twenty."""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

COLUMNS = 512  # of one program


@triton.jit
@no_type_check
def _update(
    table,
    first,
    second,
    updates,
    index,
    gradient,
    lr,
    count,
    dim,
    weight_decay,
    beta1,
    beta2,
    eps,
    ROWS: tl.constexpr,
    C: tl.constexpr,
):
    position = tl.program_id(0)
    positions = tl.arange(0, ROWS)
    mine = tl.load(index + position)
    same = (tl.load(index + positions, mask=positions < count, other=-1) == mine) & (positions < count)
    # A row that was taken several times is updated once, where it comes first, by the sum of its gradients.
    if tl.min(tl.where(same, positions, ROWS)) == position:
        cols = tl.program_id(1) * C + tl.arange(0, C)
        inside = cols < dim
        # Offsets are sums with `mine`, which has 64 bits: thousands of rows of millions of entries need them.
        place = mine * dim + cols
        g = tl.load(gradient + (mine * 0 + position) * dim + cols, mask=inside, other=0.0)
        if tl.sum(same.to(tl.int32)) > 1:
            for other in range(position + 1, count):
                if tl.load(index + other) == mine:
                    g += tl.load(gradient + (mine * 0 + other) * dim + cols, mask=inside, other=0.0)
        value = tl.load(table + place, mask=inside, other=0.0)
        g += weight_decay * value
        m = tl.load(first + place, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(second + place, mask=inside, other=0.0)
        m = m + (1 - beta1) * (g - m)
        v = v + (1 - beta2) * (g * g - v)
        times = tl.load(updates + mine) + 1
        size = tl.load(lr) / (1 - tl.exp2(times * tl.log2(beta1)))
        spread = tl.sqrt(v / (1 - tl.exp2(times * tl.log2(beta2)))) + eps
        tl.store(table + place, value - size * m / spread, mask=inside)
        tl.store(first + place, m.to(first.dtype.element_ty), mask=inside)
        tl.store(second + place, v, mask=inside)


@triton.jit
@no_type_check
def _count(updates, index, count, ROWS: tl.constexpr):
    positions = tl.arange(0, ROWS)
    rows = tl.load(index + positions, mask=positions < count, other=0)
    times = tl.load(updates + rows, mask=positions < count, other=0.0)
    tl.debug_barrier()
    tl.store(updates + rows, times + 1, mask=positions < count)


def update(
    table: Tensor,
    first: Tensor,
    second: Tensor,
    updates: Tensor,
    index: Tensor,
    gradient: Tensor,
    lr: Tensor,
    weight_decay: float,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """Move the rows of `table` at `index` by Adam, with the gradients of the rows as they were taken.

    Args:
        table: All rows, shape (N, D).
        first: First moments, shape (N, D).
        second: Second moments, shape (N, D).
        updates: How often each row was updated, shape (N,).
        index: The rows taken, repeated or not, shape (s,).
        gradient: Their gradients, shape (s, D).
        lr: Step size, shape ().
        weight_decay: L2 coefficient.
        betas: Averaging factors.
        eps: What is added to the spread.
    """
    count, dim = gradient.shape
    rows = triton.next_power_of_2(count)
    grid = (count, triton.cdiv(dim, COLUMNS))
    # The table is a parameter: its storage is written, not its graph.
    _update[grid](
        table.detach(),
        first,
        second,
        updates,
        index,
        gradient.contiguous(),
        lr,
        count,
        dim,
        weight_decay,
        *betas,
        eps,
        ROWS=rows,
        C=COLUMNS,
    )
    _count[(1,)](updates, index, count, ROWS=rows)


def serves(table: Tensor, taken: int) -> bool:
    """Return whether the kernel takes this table: single precision, and not more rows at once than a program holds."""
    return table.dtype == torch.float32 and 0 < taken <= 16_384
