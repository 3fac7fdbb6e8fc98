"""exp(tA)·v as one Triton kernel, and its gradient as another: what `expm_action` does term by term, in one launch.

A step's exponentials are some forty products of 32 × 32 matrices one after the other, and their gradients eighty more.
As separate kernels each of them waits for its launch; here a program keeps A and the columns in registers throughout.
The eager code stays the oracle, and serves every type and width that these kernels do not.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

COLUMNS = 16  # of one program: the least that a product takes


@triton.jit
def _forward(
    matrix, vectors, scale, result, columns, num_steps, num_terms, M: tl.constexpr, C: tl.constexpr
):  # fmt: skip
    batch, block = tl.program_id(0), tl.program_id(1)
    rows, cols = tl.arange(0, M), block * C + tl.arange(0, C)
    inside = cols < columns
    square = batch * M * M + rows[:, None] * M + rows[None, :]
    place = (batch * M + rows[:, None]) * columns + cols[None, :]
    a = tl.load(matrix + square)
    value = tl.load(vectors + place, mask=inside[None, :], other=0.0)
    t = tl.load(scale + batch * columns + cols, mask=inside, other=0.0) / num_steps
    for _ in range(num_steps):
        start = value
        for done in range(num_terms):
            value = start + tl.dot(a, value * (t / (num_terms - done))[None, :], input_precision="ieee")
    tl.store(result + place, value, mask=inside[None, :])


@triton.jit
def _backward(
    matrix, vectors, scale, gradient, path, to_matrix, to_vectors, to_scale,
    columns, num_steps, num_terms, M: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    batch, block = tl.program_id(0), tl.program_id(1)
    rows, cols, wide = tl.arange(0, M), block * C + tl.arange(0, C), tl.arange(0, C)
    inside = cols < columns
    square = batch * M * M + rows[:, None] * M + rows[None, :]
    place = (batch * M + rows[:, None]) * columns + cols[None, :]
    a = tl.load(matrix + square)
    a_t = tl.load(matrix + batch * M * M + rows[None, :] * M + rows[:, None])
    value = tl.load(vectors + place, mask=inside[None, :], other=0.0)
    t = tl.load(scale + batch * columns + cols, mask=inside, other=0.0) / num_steps
    # Forward once more; every intermediate value is kept in this program's part of `path`.
    own = path + (batch * tl.num_programs(1) + block).to(tl.int64) * num_steps * num_terms * M * C
    tile = rows[:, None] * C + wide[None, :]
    for step in range(num_steps):
        start = value
        for done in range(num_terms):
            tl.store(own + (step * num_terms + done) * M * C + tile, value)
            value = start + tl.dot(a, value * (t / (num_terms - done))[None, :], input_precision="ieee")
    tl.debug_barrier()
    # Backward: each term is value ← start + (t / j) A value, so its gradient goes to start, to A, to t and to value.
    g = tl.load(gradient + place, mask=inside[None, :], other=0.0)
    g_a = tl.zeros((M, M), tl.float32)
    g_t = tl.zeros((C,), tl.float32)
    for back in range(num_steps):
        step = num_steps - 1 - back
        g_start = tl.zeros((M, C), tl.float32)
        for undo in range(num_terms):
            done = num_terms - 1 - undo
            before = tl.load(own + (step * num_terms + done) * M * C + tile)
            g_start += g
            share = 1.0 / (num_terms - done)
            back_g = tl.dot(a_t, g, input_precision="ieee")
            g_t += tl.sum(back_g * before, axis=0) * share
            g_a += tl.dot(g * (t * share)[None, :], tl.trans(before), input_precision="ieee")
            g = back_g * (t * share)[None, :]
        g = g + g_start
    tl.store(to_vectors + place, g, mask=inside[None, :])
    tl.store(to_scale + batch * columns + cols, g_t / num_steps, mask=inside)
    part = (batch * tl.num_programs(1) + block).to(tl.int64) * M * M
    tl.store(to_matrix + part + rows[:, None] * M + rows[None, :], g_a)


def serves(matrix: Tensor) -> bool:
    """Return whether the kernels take this matrix: single precision, of 16, 32 or 64 rows."""
    return matrix.dtype == torch.float32 and matrix.shape[-1] in (16, 32, 64)


class _Action(torch.autograd.Function):
    """exp(t_j A) v_j for batches of A (b, m, m), v (b, m, c) and t (b, c)."""

    @staticmethod
    def forward(ctx, matrix: Tensor, vectors: Tensor, scale: Tensor, num_steps: int, num_terms: int) -> Tensor:  # noqa: ANN001
        matrix, vectors, scale = matrix.contiguous(), vectors.contiguous(), scale.contiguous()
        batch, m, columns = vectors.shape
        result = torch.empty_like(vectors)
        grid = (batch, triton.cdiv(columns, COLUMNS))
        _forward[grid](matrix, vectors, scale, result, columns, num_steps, num_terms, M=m, C=COLUMNS, num_warps=4)
        ctx.save_for_backward(matrix, vectors, scale)
        ctx.plan = (num_steps, num_terms)
        return result

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN001
        matrix, vectors, scale = ctx.saved_tensors
        num_steps, num_terms = ctx.plan
        batch, m, columns = vectors.shape
        blocks = triton.cdiv(columns, COLUMNS)
        path = vectors.new_empty(batch * blocks * num_steps * num_terms * m * COLUMNS)
        to_matrix = vectors.new_empty(batch, blocks, m, m)
        to_vectors, to_scale = torch.empty_like(vectors), torch.empty_like(scale)
        _backward[(batch, blocks)](
            matrix, vectors, scale, gradient.contiguous(), path, to_matrix, to_vectors, to_scale,
            columns, num_steps, num_terms, M=m, C=COLUMNS, num_warps=4,
        )  # fmt: skip
        return to_matrix[:, 0] if blocks == 1 else to_matrix.sum(1), to_vectors, to_scale, None, None


def action(matrix: Tensor, vectors: Tensor, scale: Tensor, num_steps: int, num_terms: int) -> Tensor:
    """Return exp(t_j A) v_j in one launch; see :func:`thetafield.geometry.expm.expm_action`."""
    return _Action.apply(matrix, vectors, scale, num_steps, num_terms)
