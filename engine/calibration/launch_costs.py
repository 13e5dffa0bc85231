"""What launches cost, for all lessons: the CPU's time to issue a kernel and the GPU's gap between two. They
are different quantities on different lanes, so a step takes the longer lane, never the sum.

All are others' measurements but one: EXPERT_KERNELS is fitted. What a training or serving step charges for
each kernel between its products (``constants.Calibration.launch_s``) is the GPU's side: a short kernel and
the gap after it, which a server's graph makes shorter (``served_s``).
"""

from __future__ import annotations

from engine.base import check, ops
from engine.base.types import Real

ISSUE_S = 12e-6
"""CPU time per kernel in eager PyTorch: Python, dispatcher, allocator and launch. NVIDIA's sample log has
11.3 to 17.75 µs for a small product, five of eight readings between 11.3 and 13
(NVIDIA/dgxc-benchmarking, cpu_overhead); a whole forward pass of Llama 3.2 1B on a B200, 8.1 ms for 658
kernels, has 12.3 (stas00/ml-engineering, training/performance)."""
STREAM_GAP_S, GRAPH_GAP_S = 0.9e-6, 0.5e-6
"""The GPU's gap between one kernel's end and the next one's start, launched one by one and as nodes of a
graph: 3.8 and 3.4 µs for a kernel of 2.9 µs (NVIDIA, "Getting started with CUDA graphs", V100)."""
SHORT_KERNEL_S = 2.9e-6
"""What that kernel took: 500,000 values, each times a constant. With the gap it is what a training or serving
step charges for each kernel between its products. On the H100 that we measured (``make measure``) one of
PyTorch's norms took 5.1 µs with its gap and a softmax 3.7: what a step launches lies around these 3.8."""
SHORTEST_S = 2e-6
"""A kernel with hardly any work, without a gap: an assumption, with which the loop of lesson 13 and the small
kernels of lesson 19 open. With a gap it is 2.9 µs in a stream and 2.5 in a graph. On our H100 the least
addition took 1.9 to 2.1 µs and 1.3, gap included, and a small product 2.9 to 6.6 (own_timings.py): the
assumption is too long for the least kernel, and too short for much of what a layer launches."""
CAPTURED_ROWS = 512.0
"""Tokens of the largest step that a server captures as a graph (vLLM's default, lesson 19). A longer one is
launched kernel by kernel."""
LAUNCH_FOR_ANOTHER_S = 4.2e-6
"""What a collective waits for each GPU where one thread launches it on all of them, one after another. With
all GPUs in one thread of nccl-tests, 8 bytes on 2, 4 and 8 A100 take 10, 17 and 34 µs (NVIDIA/nccl-tests,
issue 123, 2022), which is this for each GPU."""
GRAPH_LAUNCH_S, NODE_LAUNCH_S = 2.5e-6, 1e-9
"""CPU time to launch a graph without branches, and for each of its kernels (NVIDIA, "Constant time launch for
straight-line graphs", 2024: 2.5 µs and about 1 ns per node)."""

LAYER_KERNELS, PRODUCT_KERNELS = 8.0, 2.0
"""Kernels of a dense layer's forward pass with the vendors' software: so many, and so many for each product.
The backward pass has twice as many."""
EXPERT_KERNELS, HELD_KERNELS = 153.0, 2.0
"""What a layer of experts adds to them, counted as launches of ISSUE_S each: Python that cuts tokens into
experts' rows, and for each expert that a GPU holds two products, with a cast of each one's input in 8 bits
(Transformer Engine's multi_stream_cublas_gemm and split_quantize are loops over experts). The first is fitted
on one run, Qwen3 30B with one sequence a micro-batch and eight experts on each of 16 H100 (Megatron Bridge
26.06), whose layers take the CPU and the GPU 9.5 ms forward and backward. Judged by the rest of Megatron
Bridge's runs without a graph of the whole step: on H100, three of Qwen3 within 2 %, one with 16 experts on
each 17 % too slow, and five of gpt-oss 6 to 12 % too fast (before the GPU waited for them, 9 to 23). Two
older runs of Qwen3 on H100 took 1.5 and 2.1 times as long all the same."""


def step_s(issue_s: Real, run_s: Real) -> Real:
    """A step whose launches take the CPU ``issue_s`` and whose kernels, gaps included, take the GPU
    ``run_s``: the two lanes run side by side, so the longer one. Leaves out the first launch and the last
    kernel."""
    check.non_negative(issue_s=issue_s, run_s=run_s)
    return ops.maximum(issue_s, run_s)


def served_s(launch_s: Real, rows: Real) -> Real:
    """The time of a short kernel and the gap after it in a server's step over ``rows`` tokens. ``launch_s``
    includes the gap in a stream; a step captured in a graph has the shorter gap of a graph."""
    return launch_s - ops.where(rows <= CAPTURED_ROWS, STREAM_GAP_S - GRAPH_GAP_S, 0.0)
