"""The statements of lessons 13 to 19 about our own timings, checked against the shipped files."""

import itertools

import numpy as np
import pytest

from engine.calibration import launch_costs
from engine.one_gpu import measurements, own_timings, profiles, tiling


def on_h100(kind: str) -> list[own_timings.IssuedOperator]:
    return [row for row in own_timings.launches(kind) if row.device == "H100"]


def test_a_loop_takes_the_longer_of_issue_and_kernel():
    """Lesson 13's rule, on both GPUs and for both operators: within 3 %, and 9 % for one size of product."""
    rows = [*own_timings.launches("matmul"), *own_timings.launches("add")]
    apart = {(row.device, row.side): abs(row.longer_s / row.loop_s - 1) for row in rows}
    assert len(rows) == 32 and all(far < 0.031 for (_, side), far in apart.items() if side != 4096)
    assert max(apart.values()) < 0.09


def test_the_time_to_issue_lies_between_an_additions_and_a_products():
    issued = {kind: [row.issue_s for row in on_h100(kind)] for kind in ("add", "matmul")}
    assert max(issued["add"]) < launch_costs.ISSUE_S < min(issued["matmul"]) < 15e-6


def test_an_addition_of_a_matrix_to_itself_reads_it_once():
    """8,192² values, read and written in bf16 at 74 % of 3.35 TB/s: 4 · 67.1e6 / 2.48e12 = 108 µs."""
    assert on_h100("add")[-1].ours_kernel_s == pytest.approx(108.3e-6, rel=0.005)


def test_small_kernels_are_longer_than_the_shortest_and_large_products_slower_than_our_share():
    products = on_h100("matmul")
    assert all(row.kernel_s > launch_costs.SHORTEST_S for row in products[:5])
    assert products[-1].side == 8192 and 1.1 < products[-1].kernel_s / products[-1].ours_kernel_s < 1.25


def test_a_replay_costs_once_or_twice_and_a_shortest_kernel_half():
    """The CPUs of two hosts: one is as fast as the constants' launcher, one half as fast."""
    by_name = {(row.device, row.what): row for row in own_timings.graphs()}
    assert len(by_name) == 6
    for (device, what), row in by_name.items():
        if what.startswith("CPU"):
            least, most = {"H100": (2.0, 2.5), "H200": (1.0, 1.1)}[device]
            assert least < row.measured / row.ours < most
        else:
            assert 0.4 < row.measured / row.ours < 0.7
    in_graph = by_name["H100", "GPU, a shortest kernel and its gap in a graph"]
    assert in_graph.measured < by_name["H100", "the same in a stream"].measured


def test_a_gelu_gains_its_passes_or_its_launches():
    """Eight kernels of 12 µs are 96; of the largest tensor 9.66 GB in 18 passes at 2.48 TB/s are 3.90 ms."""
    rows = [row for row in own_timings.gelu() if row[1].device == "H100"]
    assert rows[0][1].ours == pytest.approx(96e-6)
    assert rows[-1][1].ours == pytest.approx(18 * 2 * 2**28 / (0.74 * 3.35e12), rel=0.01)
    gains = [apart.measured / fused.measured for _, apart, fused in rows]
    assert min(gains) > 7.5 and 8.5 < gains[-1] < 9.5
    assert all(abs(apart.error) < 0.35 for _, apart, _ in rows)


def test_attention_in_one_call_gains_more_than_we_say():
    tokens, apart, one = next(row for row in own_timings.attention()[::-1] if row[1].device == "H100")
    assert tokens == 8192 and apart.measured / one.measured > apart.ours / one.ours > 8
    assert all(row.error < 0 for _, *both in own_timings.attention() for row in both)


def test_the_staircase_is_where_the_estimate_has_it():
    """Each size at 83 to 92 % of the ceiling, and a fall wherever the ceiling falls."""
    rows = own_timings.tiles()
    assert all(0.83 < row.triton / row.ceiling < 0.92 for row in rows)
    measured, ceiling = (np.diff([getattr(row, name) for row in rows]) for name in ("triton", "ceiling"))
    steps = np.abs(ceiling) > 1e12
    assert steps.sum() >= 7 and (np.sign(measured) == np.sign(ceiling))[steps].all()
    assert all(row.torch > row.triton for row in rows)


def test_five_tiles_are_in_their_true_order():
    """Two of them have the same estimate and the same speed to within a per cent."""
    chip = tiling.chip("h100-sxm")
    rows = [row for row in tiling.timed_here() if row.tile and row.m == 4096]
    ours = [float(tiling.flops_per_s(row.m, row.n, row.k, row.tile, chip)) for row in rows]
    assert len(rows) == 5 and ours == sorted(ours, reverse=True)
    assert all(later.flops_per_s < 1.01 * row.flops_per_s for row, later in itertools.pairwise(rows))


def test_a_device_that_the_catalogue_lacks_is_left_out(monkeypatch):
    unknown = {"device": "NVIDIA TITAN V", "graphs": {"kernels": 1}}
    monkeypatch.setattr(measurements, "devices", lambda: {"NVIDIA TITAN V": unknown})
    assert own_timings.known("graphs") == [] and list(measurements.of("graphs")) == ["NVIDIA TITAN V"]


def test_what_it_was_made_with_is_one_line():
    assert own_timings.made_with().startswith("PyTorch 2.")


def test_a_kernel_is_called_by_its_own_name():
    names = {
        "void at::native::(anonymous namespace)::reduce_kernel<512, at::ReduceOp>(int)": "reduce_kernel",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(cutlass_80_simt::Params)": (
            "cutlass_80_simt_sgemm_64x64_8x5_tn_align1"
        ),
        "sm80_xmma_gemm_f32f32_cublas": "sm80_xmma_gemm_f32f32_cublas",
    }
    assert {full: profiles.kernel(full) for full in names} == names


def test_the_recorded_step_runs_for_a_thirtieth_of_its_time():
    """Lesson 13: all kernels 32 µs, out of a millisecond from the activation to the end."""
    cpu, stream, autograd = profiles.measured("linear_step").lanes
    assert (cpu.name, stream.name, autograd.name) == ("CPU thread 1", "stream 7", "CPU thread 2")
    assert sum(event.end_s - event.start_s for event in stream.events) == pytest.approx(32.3e-6)
    shown = [event for event in stream.events if event.start_s > 0.83e-3]
    assert len(shown) == 7 and 0.7e-3 < shown[-1].end_s - shown[0].start_s < 1e-3


def test_the_summary_has_each_claim_once_and_its_worst_rows():
    by_claim = {row.what: row for row in own_timings.summary()}
    assert [row.lesson for row in own_timings.summary()] == ["13"] * 2 + ["16"] * 4 + ["17"] + ["19"] * 2
    loop = by_claim["an operator in a loop: the longer of issue and kernel"]
    assert len(loop.errors) == 32 and abs(loop.median) < 0.01
    triton = by_claim["this course's product in Triton, against its ceiling"]
    assert triton.errors == tuple(row.triton / row.ceiling - 1 for row in own_timings.tiles())
    assert max(by_claim["a tiny kernel and its gap"].errors) > 1  # more than twice as long, on the H200
