"""The numbers of lesson 13, PyTorch internals."""

from functools import cache
from types import SimpleNamespace

import numpy as np

from engine.calibration import launch_costs
from engine.catalog import gpu, model, models
from engine.catalog.hardware import Gpu
from engine.mechanism import matmul, memory
from engine.one_gpu import dispatch, own_timings, profiles, traces
from engine.one_gpu.own_timings import IssuedOperator
from engine.step import layout

llama = model("llama3.2-1b")  # Llama 3.2 1B
llama_8b = model("llama3-8b")  # Llama 3 8B
h100 = gpu("h100-sxm")  # an H100
b200 = gpu("b200")  # a B200
weight_bytes = 2 * models.parameters(llama)  # the weights of Llama 3.2 1B
cache_bytes = memory.kv_bytes(llama, context_tokens=4096)  # its cache for one sequence
# the rate at which products on a B200 read their weights
reached_bytes_per_s = layout.machine(b200).chip.wide.memory_bytes_per_s
streamed_bytes_per_s = matmul.chip(h100).memory_bytes_per_s  # the rate of kernels that only stream
issue_s = launch_costs.ISSUE_S  # seconds to issue an operator
measured_s = dispatch.cited()["dgxc"]["seconds"]  # the same for products of several sizes
all_operators = 16 * traces.layer_operators("inference")  # operators of the 16 layers of Llama 3.2 1B
# what a layer keeps for its backward pass
kept = traces.layer_kept(seq=2048, batch=1, hidden=12288, heads=96)


def kept_bytes(written_out: bool) -> float:
    """Its bytes, with attention written out or in one call."""
    return traces.layer_kept_bytes(seq=2048, batch=1, hidden=12288, heads=96, written_out=written_out)


def product_s(side: int) -> float:
    """Seconds for a square product on an H100."""
    return dispatch.matmul_s(side, h100.bf16_flops_per_s, h100.hbm_bytes_per_s)


def step_s(ops: int, gpu_s: float, sync_every: int = 0) -> float:
    """A step of so many operators, each of so many seconds."""
    return dispatch.step_s(ops, issue_s, gpu_s, sync_every)


def on_h100(kind: str) -> list[IssuedOperator]:
    """Operators timed on an H100."""
    return [row for row in own_timings.launches(kind) if row.device == "H100"]


loops = on_h100("matmul")  # products timed on an H100
# the calls of the table
CALLS = (
    ("matmul", "matmul"),
    ("linear_gelu", "linear, then GELU"),
    ("layer_norm", "layer norm"),
    ("attention", "attention, written out"),
    ("sdpa", "attention, fused"),
)


def counted(call: str, autocast: str, mode: str) -> SimpleNamespace:
    """Operators, visits and nodes of a recorded call."""
    return SimpleNamespace(**traces.counts(call, autocast == "on", mode))


SBH = 2048 * 12288  # s·b·h of the layer in the table
# what each kernel of the recorded step computes, in their order
COMPUTES = (
    "the product of the forward pass",
    "adds up that product's parts",
    "GELU",
    "the sum that is the loss",
    "writes the loss's gradient, a 1",
    "GELU's gradient",
    "the weight's gradient",
    "the bias's gradient, a sum over rows",
    "the update of weight and bias",
)
ran = profiles.measured("linear_step").lanes[1].events  # the kernels of a step recorded on an H100
kernels_ran_s = sum(event.end_s - event.start_s for event in ran)  # how long all of them ran
# each kernel: its name, at most two words of it long, what it computes, when it starts, how long it runs
named_kernels = [
    (event.name.split("_f32")[0], computes, event.start_s, event.end_s - event.start_s)
    for event, computes in zip(ran, COMPUTES, strict=True)
]
eight_b_issue_s = 32 * traces.layer_operators("inference") * issue_s  # to issue Llama 3.1 8B's 32 layers
# the arithmetic of 8,192 tokens of it at half of a B200's peak
eight_b_arithmetic_s = 2 * 8.03e9 * 8192 / (0.5 * b200.bf16_flops_per_s)


def checked_s(gpu_s: float, sync_every: int = 0) -> float:
    """The exercise's step."""
    return dispatch.step_s(ops=2000, issue_s=10e-6, gpu_s=gpu_s, sync_every=sync_every)


def covering_product(on: Gpu) -> float:
    """The side of a square product that lasts as long as its issue."""
    return dispatch.covering_matmul(issue_s, on.bf16_flops_per_s)


def covering_side(on: Gpu) -> float:
    """The side of a square addition that lasts as long as its issue."""
    return np.sqrt(dispatch.covering_add(issue_s, on.hbm_bytes_per_s))


# -- what single sentences say -------------------------------------------------------------------------------
# bytes kept without the softmax, over s·b·h
rows_without_softmax = sum(size for name, size in kept if "softmax" not in name) / (2048 * 12288)
# bytes of the softmax for each score
softmax_bytes = sum(size for name, size in kept if "softmax" in name) / (96 * 2048**2)


@cache
def mlp_kept_autocast() -> float:
    """Kept by a linear and its GELU for 512 tokens under autocast."""
    return traces.kept_bytes("linear_gelu", True, "grad", 512, llama_8b)


mlp_kept_fp32 = traces.kept_bytes("linear_gelu", False, "grad", 512, llama_8b)  # the same in fp32
# kept by a layer's attention for 8,192 tokens in fp32
attention_kept_fp32 = traces.kept_bytes("attention", False, "grad", 8192, llama_8b)
# how far the measured loops are from the longer of the two times, all but one
loops_within = np.sort([abs(it.longer_s / it.loop_s - 1) for it in loops])[-2]
# a step that syncs after each product
synced_step_s = step_s(ops=1000, gpu_s=product_s(side=2048), sync_every=1)
free_step_s = step_s(ops=1000, gpu_s=product_s(side=2048))  # the same without syncs
one_sync_s = step_s(ops=1000, gpu_s=21.7e-6, sync_every=1000) - 1000 * 21.7e-6  # what one sync a step costs
# tokens from which on a B200 keeps its CPU ahead
tokens_to_keep_busy = all_operators * issue_s * 0.5 * b200.bf16_flops_per_s / weight_bytes
# users whose caches take as long to read as the step takes to issue
users_to_keep_busy = (all_operators * issue_s * reached_bytes_per_s - weight_bytes) / cache_bytes
# what the check adds to a step
check_costs = checked_s(gpu_s=20e-6, sync_every=10) / checked_s(gpu_s=20e-6) - 1
# tokens whose attention fills an H100
tokens_that_fill = np.sqrt((3 * 4096 / 64) ** 2 + h100.hbm_bytes / 128) - 3 * 4096 / 64
# kept by written-out attention for 25,000 tokens
attention_kept_25k = traces.kept_bytes("attention", False, "grad", 25000, llama_8b)
# how many times as fast a step of a thousand products of side 1,024 is on a GPU twice as fast
faster_gpu_gains = dispatch.gain_of_faster_gpu(ops=1000, issue_s=issue_s, gpu_s=product_s(side=1024))
no_shorter = 2 if faster_gpu_gains < 1.01 else 0  # the answer of the second prediction
