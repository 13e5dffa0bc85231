"""Elementwise kernels, separate and fused: what they move over HBM, and how long a chain of them takes on one
GPU.

A kernel reads its inputs from HBM and writes its output there. Between two kernels of a chain every value
makes that round trip; a fused kernel keeps it in a register. One kernel takes the longest of three times:
moving its bytes, doing its arithmetic, and launching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.base import check, ops
from engine.base.types import Real
from engine.calibration import DEFAULT, launch_costs

if TYPE_CHECKING:
    from engine.catalog.hardware import Gpu
    from engine.catalog.models import Model

REGISTERS_A_THREAD = 255.0  # CUDA C++ Programming Guide, technical specifications per compute capability
OTHER_REGISTERS = 31.0  # addresses, counters and constants of an elementwise kernel: an assumption
ELEMENTS_A_THREAD = 8.0  # one 16-byte load of 2-byte values
REGISTER_BYTES = 4.0


class Kernel(NamedTuple):
    """The time of one launch, in seconds for each resource."""

    memory_s: float
    arithmetic_s: float
    launch_s: float

    @property
    def takes_s(self) -> Real:
        """Seconds of the kernel: the longest of moving its bytes, computing, and being launched."""
        return ops.maximum(ops.maximum(self.memory_s, self.arithmetic_s), self.launch_s)


class Fusion(NamedTuple):
    """A chain of kernels, separate and fused: the time of each separate kernel, of the fused kernel, and of
    the matrix product before both."""

    product: Kernel  # the matrix product alone, writing out its result
    one: Kernel  # each of the chain's kernels
    fused: Kernel  # the whole chain, and the product if there is one
    apart_bytes: float
    fused_bytes: float
    flops: float  # of either version
    apart_s: float
    fused_s: float

    @property
    def longest_s(self) -> Real:
        """Seconds of the slower version: spilled registers can make the fused one slower."""
        return ops.maximum(self.apart_s, self.fused_s)


class Between(NamedTuple):
    """The work at one place between the products of a layer: the values that it works on, and the bytes that
    each value costs in PyTorch's separate kernels and in a fused one."""

    name: str
    values: float
    apart_bytes_a_value: float
    fused_bytes_a_value: float

    @property
    def apart_bytes(self) -> float:
        """Bytes that separate kernels move between them."""
        return self.values * self.apart_bytes_a_value

    @property
    def fused_bytes(self) -> float:
        """Bytes that one fused kernel moves instead."""
        return self.values * self.fused_bytes_a_value


def between_products(model: Model, tokens: float) -> tuple[Between, ...]:
    """The kernels of a Llama layer's forward pass that are neither products nor attention, in bf16.

    Bytes a value, apart: a residual sum reads two and writes one (6); RMSNorm goes to fp32 and back, kernel
    by kernel (36: the cast 6, the square 8, the mean 4, the product with its inverse root 8, the cast 6, the
    weight 4); SiLU and the product with the gate 4 and 6; rotary embedding is a negation, a concatenation,
    two products and a sum, ten passes (20). Fused, each reads what others wrote and writes what others read:
    the sum with its norm two and two, SiLU and gate two and one, rotary one and one. Leaves out the rows'
    statistics, the norms' weights and the tables of angles."""
    check.whole(tokens=tokens)
    rows = (model.heads + model.kv_heads) * model.head_dim
    return (
        Between("two residual sums and RMSNorms", 2 * tokens * model.hidden, 6.0 + 36.0, 8.0),
        Between("SiLU and gate", tokens * model.ffn, 4.0 + 6.0, 6.0),
        Between("rotary, queries and keys", tokens * rows, 20.0, 4.0),
    )


def between_products_bytes(model: Model, tokens: float) -> tuple[float, float]:
    """Bytes of everything between the products of one layer: (kernel by kernel, fused)."""
    found = between_products(model, tokens)
    return sum(each.apart_bytes for each in found), sum(each.fused_bytes for each in found)


def chain_bytes(elements: Real, operations: Real, reads: Real = 1.0, value_bytes: Real = 2.0) -> Real:
    """Bytes with one kernel per operation: each reads ``reads`` tensors and writes one."""
    check.positive(elements=elements, operations=operations, reads=reads, value_bytes=value_bytes)
    return operations * (reads + 1.0) * elements * value_bytes


def fused_bytes(elements: Real, inputs: Real = 1.0, value_bytes: Real = 2.0) -> Real:
    """Bytes of one fused kernel: every input once, the output once."""
    check.positive(elements=elements, inputs=inputs, value_bytes=value_bytes)
    return (inputs + 1.0) * elements * value_bytes


def registers_a_thread(values_kept: Real) -> Real:
    """Registers needed if this many values of each of a thread's elements are alive at once, in fp32."""
    check.non_negative(values_kept=values_kept)
    return OTHER_REGISTERS + ELEMENTS_A_THREAD * values_kept


def spilled_bytes(elements: Real, values_kept: Real) -> Real:
    """Bytes of the values that do not fit a thread's registers, written to memory and read back once. Leaves
    out that L1 and L2 catch part of them."""
    check.positive(elements=elements)
    spilled = ops.maximum(registers_a_thread(values_kept) - REGISTERS_A_THREAD, 0.0) / ELEMENTS_A_THREAD
    return 2.0 * REGISTER_BYTES * spilled * elements


def product_bytes(elements: Real, inner: Real, value_bytes: Real = 2.0) -> Real:
    """Bytes of the two operands of a square matrix product with this many results."""
    check.positive(elements=elements, value_bytes=value_bytes)
    check.non_negative(inner=inner)
    return 2.0 * ops.sqrt(elements) * inner * value_bytes


def reached_bytes_per_s(gpu: Gpu) -> Real:
    """The bandwidth of HBM that kernels reach if they only move bytes: the rate of ``matmul.Chip``, for any
    GPU."""
    return DEFAULT.memory_share * gpu.hbm_bytes_per_s


def kernel(
    moved_bytes: Real,
    vector_flops: Real,
    gpu: Gpu,
    launch_s: Real = launch_costs.ISSUE_S,
    matrix_flops: Real = 0.0,
) -> Kernel:
    """The kernel's bytes at the rate that kernels reach; its arithmetic at the peak of the fp32 units and of
    the tensor cores, one after the other, because an epilogue begins when its product is done. Leaves out
    that products reach some four fifths of theirs, and that only a multiply-add counts as two FLOPs: pure
    additions or multiplications reach half of the peak."""
    check.non_negative(
        moved_bytes=moved_bytes, vector_flops=vector_flops, launch_s=launch_s, matrix_flops=matrix_flops
    )
    return Kernel(
        moved_bytes / reached_bytes_per_s(gpu),
        vector_flops / gpu.fp32_flops_per_s + matrix_flops / gpu.bf16_flops_per_s,
        launch_s,
    )


def compared(
    elements: Real,
    operations: Real,
    flops_per_element: Real,
    values_kept: Real,
    inner: Real,
    gpu: Gpu,
    launch_s: Real = launch_costs.ISSUE_S,
    value_bytes: Real = 2.0,
) -> Fusion:
    """A chain of operations on one tensor, separate and fused. With ``inner`` above 0 it follows a matrix
    product, and is fused into that product's kernel as an epilogue."""
    check.positive(flops_per_element=flops_per_element)
    check.whole(operations=operations)
    is_product = ops.where(inner > 0, 1.0, 0.0)
    operands = product_bytes(elements, inner, value_bytes)
    written = elements * value_bytes
    matrix_flops = 2.0 * elements * inner
    product = kernel(operands + is_product * written, 0.0, gpu, is_product * launch_s, matrix_flops)
    apart_bytes = chain_bytes(elements, operations, 1.0, value_bytes)
    one = kernel(apart_bytes / operations, flops_per_element * elements, gpu, launch_s)
    moved = operands + written * (2.0 - is_product) + spilled_bytes(elements, values_kept)
    fused = kernel(moved, operations * flops_per_element * elements, gpu, launch_s, matrix_flops)
    return Fusion(
        product,
        one,
        fused,
        operands + is_product * written + apart_bytes,
        moved,
        operations * flops_per_element * elements + matrix_flops,
        product.takes_s + operations * one.takes_s,
        fused.takes_s,
    )


def gain(found: Fusion) -> Real:
    """How many times as fast the fused kernel is."""
    return found.apart_s / found.fused_s


def break_even_flops_per_element(gpu: Gpu, passes: Real = 2.0, value_bytes: Real = 2.0) -> Real:
    """FLOPs per element from which one kernel is bound by arithmetic rather than by its passes over HBM:
    passes · bytes · ridge of the fp32 units. If the operations of a chain together have more FLOPs than this,
    fusing them gains less; if each operation alone has as many, fusing gains nothing."""
    check.positive(passes=passes, value_bytes=value_bytes)
    return passes * value_bytes * gpu.fp32_flops_per_s / reached_bytes_per_s(gpu)


def launch_bound_elements(
    gpu: Gpu, launch_s: Real = launch_costs.ISSUE_S, passes: Real = 2.0, value_bytes: Real = 2.0
) -> Real:
    """Elements below which moving a kernel's bytes takes less time than its launch."""
    check.positive(launch_s=launch_s, passes=passes, value_bytes=value_bytes)
    return launch_s * reached_bytes_per_s(gpu) / (passes * value_bytes)
