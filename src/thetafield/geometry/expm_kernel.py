"""exp(t_r A_r) ⋯ exp(t_1 A_1)·v as one Triton kernel, and its gradient as another: a whole transport in one launch.

A step's exponentials are some forty products of 32 × 32 matrices one after the other, and their gradients eighty more.
As separate kernels each of them waits for its launch; here a program keeps A and the columns in registers throughout.
It also bounds the norm of its own A, and takes as many steps and terms as that one needs: nothing is read by the host,
and no anchor does the work of the largest. The eager code stays the oracle, and serves every type and width that these
kernels do not.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

COLUMNS = 16  # of one program: the least that a product takes
WARPS = 2
# Three products on tensor cores that make up one in single precision.
PRECISION = tl.constexpr("tf32x3")
MOST_TERMS = tl.constexpr(23)  # of a step of norm 4, in single precision
# Steps of norm 4: of a transport whose terms are kept for its gradient, and of one that only answers. Beyond, exp
# overflows single precision unless A is close to a rotation.
KEPT_STEPS, MOST_STEPS = 16, 512


# Triton reads the source of these functions: `no_type_check` keeps the type checks of the tests from wrapping them.
@triton.jit
@no_type_check
def _product(a, b):
    return tl.dot(a, b, input_precision=PRECISION)


@triton.jit
@no_type_check
def _plan(a, t):
    """Return steps and terms for ‖tA‖, bounded as in `norm_bound`; terms as in `TaylorPlan` for single precision."""
    square = _product(a, a)
    fourth = _product(square, square)
    fifth = _product(fourth, a)
    alpha = tl.maximum(
        tl.exp2(tl.log2(tl.sum(fourth * fourth) + 1e-38) / 8), tl.exp2(tl.log2(tl.sum(fifth * fifth) + 1e-38) / 10)
    )
    norm = tl.minimum(alpha, tl.sqrt(tl.sum(a * a))) * tl.max(tl.abs(t))
    steps = tl.maximum(tl.ceil(norm / 4).to(tl.int32), 1)
    terms = tl.minimum(tl.ceil(tl.maximum(11.0, 8 + 3.75 * norm / steps)).to(tl.int32), MOST_TERMS)
    return steps, terms


@triton.jit
@no_type_check
def _forward(
    matrices, vectors, scale, result, path, plans, columns, count, v_b, v_m, v_c,
    M: tl.constexpr, C: tl.constexpr, STEPS: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    batch, block = tl.program_id(0), tl.program_id(1)
    program = (batch * tl.num_programs(1) + block).to(tl.int64)
    rows, cols, wide = tl.arange(0, M), block * C + tl.arange(0, C), tl.arange(0, C)
    inside = cols < columns
    tile = rows[:, None] * C + wide[None, :]
    value = tl.load(vectors + batch * v_b + rows[:, None] * v_m + cols[None, :] * v_c, mask=inside[None, :], other=0.0)
    for number in range(count):
        a = tl.load(matrices + (batch * count + number) * M * M + rows[:, None] * M + rows[None, :])
        t = tl.load(scale + (batch * columns + cols) * count + number, mask=inside, other=0.0)
        num_steps, num_terms = _plan(a, t)
        t = t / num_steps
        kept = path + (program * count + number) * STEPS * MOST_TERMS * M * C
        for step in range(tl.minimum(num_steps, STEPS)):
            start = value
            for done in range(num_terms):
                if KEEP:
                    tl.store(kept + (step * MOST_TERMS + done) * M * C + tile, value)
                value = start + _product(a, value * (t / (num_terms - done))[None, :])
        # Said aloud, instead of a series that was cut off.
        value = tl.where(num_steps <= STEPS, value, float("nan"))
        if KEEP:
            tl.store(plans + (program * count + number) * 2, num_steps)
            tl.store(plans + (program * count + number) * 2 + 1, num_terms)
    tl.store(result + (batch * columns + cols[None, :]) * M + rows[:, None], value, mask=inside[None, :])


@triton.jit
@no_type_check
def _backward(
    matrices, scale, gradient, path, plans, to_matrices, to_vectors, to_scale, columns, count, g_b, g_m, g_c,
    M: tl.constexpr, C: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    batch, block = tl.program_id(0), tl.program_id(1)
    program = (batch * tl.num_programs(1) + block).to(tl.int64)
    rows, cols, wide = tl.arange(0, M), block * C + tl.arange(0, C), tl.arange(0, C)
    inside = cols < columns
    tile = rows[:, None] * C + wide[None, :]
    g = tl.load(gradient + batch * g_b + rows[:, None] * g_m + cols[None, :] * g_c, mask=inside[None, :], other=0.0)
    for last in range(count):
        number = count - 1 - last
        a_t = tl.load(matrices + (batch * count + number) * M * M + rows[None, :] * M + rows[:, None])
        t = tl.load(scale + (batch * columns + cols) * count + number, mask=inside, other=0.0)
        num_steps = tl.load(plans + (program * count + number) * 2)
        num_terms = tl.load(plans + (program * count + number) * 2 + 1)
        t = t / num_steps
        kept = path + (program * count + number) * STEPS * MOST_TERMS * M * C
        g_a = tl.zeros((M, M), tl.float32)
        g_t = tl.zeros((C,), tl.float32)
        taken = tl.minimum(num_steps, STEPS)
        for back in range(taken):
            # A term is value ← start + (t / j) A value: its gradient goes to start, to A, to t and to the value before.
            g_start = tl.zeros((M, C), tl.float32)
            for undo in range(num_terms):
                before = tl.load(kept + ((taken - 1 - back) * MOST_TERMS + num_terms - 1 - undo) * M * C + tile)
                share = 1.0 / (undo + 1)
                g_start += g
                pulled = _product(a_t, g)
                g_t += tl.sum(pulled * before, axis=0) * share
                g_a += _product(g * (t * share)[None, :], tl.trans(before))
                g = pulled * (t * share)[None, :]
            g = g + g_start
        tl.store(to_scale + (batch * columns + cols) * count + number, g_t / num_steps, mask=inside)
        tl.store(to_matrices + (program * count + number) * M * M + rows[:, None] * M + rows[None, :], g_a)
    tl.store(to_vectors + (batch * M + rows[:, None]) * columns + cols[None, :], g, mask=inside[None, :])


def serves(matrices: Tensor) -> bool:
    """Return whether the kernels take these matrices: single precision, of 16, 32 or 64 rows."""
    return matrices.dtype == torch.float32 and matrices.shape[-1] in (16, 32, 64)


def _carried(matrices: Tensor, vectors: Tensor, scale: Tensor, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the vectors become and, where they are to be kept, all terms and how many there are."""
    batch, m, columns = vectors.shape
    blocks, count = triton.cdiv(columns, COLUMNS), matrices.shape[1]
    steps = KEPT_STEPS if keep else MOST_STEPS
    result = vectors.new_empty(batch, columns, m)
    path = vectors.new_empty(batch * blocks * count * steps * MOST_TERMS.value * m * COLUMNS if keep else 1)
    plans = torch.empty(batch * blocks * count * 2 if keep else 2, dtype=torch.int32, device=vectors.device)
    _forward[(batch, blocks)](
        matrices,
        vectors,
        scale,
        result,
        path,
        plans,
        columns,
        count,
        *vectors.stride(),
        M=m,
        C=COLUMNS,
        STEPS=steps,
        KEEP=keep,
        num_warps=WARPS,
    )
    return result.mT, path, plans


class _Cascade(torch.autograd.Function):
    @staticmethod
    def forward(ctx, matrices: Tensor, vectors: Tensor, scale: Tensor) -> Tensor:
        matrices, scale = matrices.contiguous(), scale.contiguous()
        result, path, plans = _carried(matrices, vectors, scale, keep=True)
        ctx.save_for_backward(matrices, scale, path, plans)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, ...]:
        matrices, scale, path, plans = ctx.saved_tensors
        batch, m, columns = gradient.shape
        blocks, count = triton.cdiv(columns, COLUMNS), matrices.shape[1]
        to_matrices = gradient.new_empty(batch, blocks, count, m, m)
        to_vectors, to_scale = gradient.new_empty(batch, m, columns), torch.empty_like(scale)
        _backward[(batch, blocks)](
            matrices,
            scale,
            gradient,
            path,
            plans,
            to_matrices,
            to_vectors,
            to_scale,
            columns,
            count,
            *gradient.stride(),
            M=m,
            C=COLUMNS,
            STEPS=KEPT_STEPS,
            num_warps=WARPS,
        )
        return to_matrices[:, 0] if blocks == 1 else to_matrices.sum(1), to_vectors, to_scale


def cascade(matrices: Tensor, vectors: Tensor, scale: Tensor) -> Tensor:
    """Return ∏ₖ exp(t_jk A_k) v_j, the first matrix acting first, in one launch.

    Args:
        matrices: A_k of each batch entry, shape (b, r, m, m).
        vectors: The columns v_j, shape (b, m, c).
        scale: The scalars t_jk, shape (b, c, r).
    """
    if torch.is_grad_enabled() and any(t.requires_grad for t in (matrices, vectors, scale)):
        return _Cascade.apply(matrices, vectors, scale)
    return _carried(matrices.contiguous(), vectors, scale.contiguous(), keep=False)[0]
