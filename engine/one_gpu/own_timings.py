"""What lessons 13 to 19 say about a GPU, beside what `make measure` found on one: a row for each comparison.

Products, attention and streaming in general, and the allocator, are in engine/validation/own_gpus.py. A
device that the catalogue does not know is left out. The engine's side of a row is what the lesson would say,
with no constant fitted to these files. A time on the CPU's clock depends on the host, which no file names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engine import catalog
from engine.calibration import launch_costs
from engine.executed import flash_attention
from engine.mechanism import fusion, matmul
from engine.one_gpu import dispatch, measurements, tiling

H100 = "h100-sxm"
WRITTEN_OUT = 4  # operators of measure/fusion.py's attention: product, scaling, softmax, product
GELU_READS = (1, 1, 2, 1, 1, 1, 1, 2)  # tensors that each of a GELU's eight kernels reads


class HeldTiming(NamedTuple):
    """One quantity, as measured and as the engine computes it, in the same unit."""

    device: str
    what: str
    measured: float
    ours: float

    @property
    def error(self) -> float:
        """How far the engine's value is above the measured one, as a share of it."""
        return self.ours / self.measured - 1


class IssuedOperator(NamedTuple):
    """An operator on square bf16 matrices: the CPU's time to issue it, its kernel alone, the time that each
    takes in a loop, and the engine's kernel."""

    device: str
    side: int
    issue_s: float
    kernel_s: float
    loop_s: float
    ours_kernel_s: float

    @property
    def longer_s(self) -> float:
        """Seconds by lesson 13's rule: the longer of issuing and of the kernel."""
        return max(self.issue_s, self.kernel_s)


class ProductOfRows(NamedTuple):
    """A product with ``rows`` rows: the FLOP/s of lesson 17's kernel, of torch's product, and the ceiling
    that the lesson computes for its tile."""

    device: str
    rows: int
    triton: float
    torch: float
    ceiling: float


def known(subject: str) -> list[tuple[str, str, dict]]:
    """(short name, key, measurements) of each device that is in the catalogue."""
    return [(key.split("-")[0].upper(), key, found) for key, found in measurements.on_known(subject)]


def made_with() -> str:
    """What the H100 was measured with, for captions."""
    found = measurements.on(H100)
    return f"PyTorch {found['versions']['torch'].split('+')[0]}, {found['date']}"


def launches(kind: str) -> list[IssuedOperator]:
    """Lesson 13's loop of "add" or "matmul". An addition there adds a matrix to itself: it reads one tensor,
    not two."""
    return [
        IssuedOperator(
            name,
            point["side"],
            point["issue_s"],
            point["kernel_s"],
            point["op_s"],
            float(
                dispatch.add_s(point["side"] ** 2 * 2 / 3, gpu.hbm_bytes_per_s)
                if kind == "add"
                else dispatch.matmul_s(point["side"], gpu.bf16_flops_per_s, gpu.hbm_bytes_per_s)
            ),
        )
        for name, key, found in known("launches")
        for gpu in [catalog.gpu(key)]
        for point in found[kind]
    ]


def graphs() -> list[HeldTiming]:
    """Lesson 19's constants: the CPU time of a replay, and the time of a kernel with hardly any work,
    including the gap behind it."""
    rows = []
    for name, _, found in known("graphs"):
        ours_s = launch_costs.GRAPH_LAUNCH_S + launch_costs.NODE_LAUNCH_S * found["kernels"]
        shortest_s = launch_costs.SHORTEST_S + launch_costs.GRAPH_GAP_S
        rows += [
            HeldTiming(
                name, f"CPU, one replay of {found['kernels']} kernels", found["graph_launch_cpu_s"], ours_s
            ),
            HeldTiming(
                name, "GPU, a shortest kernel and its gap in a graph", found["graph_s_per_kernel"], shortest_s
            ),
        ]
    for name, _, found in known("launches"):
        shortest_s = launch_costs.SHORTEST_S + launch_costs.STREAM_GAP_S
        measured_s = min(point["kernel_s"] for point in found["add"])
        rows.append(HeldTiming(name, "the same in a stream", measured_s, shortest_s))
    return sorted(rows, key=lambda row: row.device)


def gelu() -> list[tuple[int, HeldTiming, HeldTiming]]:
    """Lesson 16's activation by elements: in eight kernels, and in one."""
    rows = []
    for name, key, found in known("fusion"):
        at = matmul.chip(catalog.gpu(key))

        def kernel_s(elements: float, reads: int, at=at) -> float:
            moved = fusion.chain_bytes(elements, 1, reads)
            return max(launch_costs.ISSUE_S, float(matmul.stream_s(moved, at)))

        for point in found["gelu"]:
            apart_s = sum(kernel_s(point["elements"], reads) for reads in GELU_READS)
            rows.append(
                (
                    point["elements"],
                    HeldTiming(name, "eight kernels", point["apart_s"], apart_s),
                    HeldTiming(name, "one kernel", point["fused_s"], kernel_s(point["elements"], 1)),
                )
            )
    return rows


def attention() -> list[tuple[int, HeldTiming, HeldTiming]]:
    """Lesson 16's attention by tokens: with its scores in HBM, and in tiles, which were timed in bursts."""
    rows = []
    for name, key, found in known("fusion"):
        gpu = catalog.gpu(key)
        at = replace(matmul.chip(gpu), attention=matmul.burst_attention(gpu))
        for point in found["attention"]:
            tokens, heads, width = point["tokens"], point["heads"], point["head_dim"]
            scaling_s = float(matmul.stream_s(4.0 * heads * tokens**2, at))
            standard_s = flash_attention.standard_s(tokens, width, heads, at) + scaling_s
            tiled_s = float(flash_attention.tiled_arithmetic_s(tokens, width, heads, at))
            issue_s = launch_costs.ISSUE_S
            rows.append(
                (
                    tokens,
                    HeldTiming(
                        name, "written out", point["standard_s"], max(WRITTEN_OUT * issue_s, standard_s)
                    ),
                    HeldTiming(name, "one call", point["tiled_s"], max(issue_s, tiled_s)),
                )
            )
    return rows


def tiles() -> list[ProductOfRows]:
    """Lesson 17's staircase, for the chips that the lesson covers."""
    tile = tiling.Tile(128, 256, 64, 3, 8)
    return [
        ProductOfRows(
            name,
            row["rows"],
            row["flops_per_s"],
            row["torch_flops_per_s"],
            float(tiling.flops_per_s(row["rows"], found["n"], found["k"], tile, tiling.chip(key))),
        )
        for name, key, found in known("tile_sweep")
        if key in tiling.chips()
        for row in found["by_rows"]
    ]


class ClaimErrors(NamedTuple):
    """The engine's errors in one claim of a lesson, with their sign, over all rows and GPUs."""

    lesson: str
    what: str
    errors: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the errors."""
        return float(np.median(self.errors))


def summary() -> list[ClaimErrors]:
    """All comparisons above, a row for each claim; errors are those of the engine's time."""
    loops = [*launches("matmul"), *launches("add")]
    rows = [
        (
            "13",
            "an operator in a loop: the longer of issue and kernel",
            [r.longer_s / r.loop_s for r in loops],
        ),
        ("13", "the kernel alone", [r.ours_kernel_s / r.kernel_s for r in loops]),
        ("16", "a GELU in eight kernels", [1 + apart.error for _, apart, _ in gelu()]),
        ("16", "a GELU in one kernel", [1 + fused.error for _, _, fused in gelu()]),
        ("16", "attention written out", [1 + apart.error for _, apart, _ in attention()]),
        ("16", "attention in one call", [1 + tiled.error for _, _, tiled in attention()]),
        (
            "17",
            "this course's product in Triton, against its ceiling",
            [r.triton / r.ceiling for r in tiles()],
        ),
        ("19", "CPU time of a replay", [1 + r.error for r in graphs() if r.what.startswith("CPU")]),
        ("19", "a tiny kernel and its gap", [1 + r.error for r in graphs() if not r.what.startswith("CPU")]),
    ]
    return [ClaimErrors(lesson, what, tuple(ratio - 1 for ratio in ratios)) for lesson, what, ratios in rows]
