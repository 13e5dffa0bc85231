"""The recorded traces, against what the dispatcher is known to do, and what they keep against the paper that
counts it."""

import numpy as np
import pytest

from engine import catalog
from engine.mechanism import memory
from engine.one_gpu import recordings, traces
from tests.cases import in_one_test

LLAMA = catalog.model("llama3-8b")  # hidden 4096, 32 heads of 128, feed-forward 14336


def trace(*case):
    return recordings.load("dispatch")["traces"][traces.name(*case)]


def visited(found, op):
    calls = [i for i, call in enumerate(found["calls"]) if call["op"] == op]
    return [
        event["key"] for event in found["events"] if event["what"] == "visit" and event["call"] == calls[-1]
    ]


def test_a_product_is_a_composite_over_mm():
    """matmul has no gradient of its own: it calls mm above autograd, and mm makes the node."""
    found = trace("matmul", False, "grad")
    assert [call["op"] for call in found["calls"]] == ["aten::matmul", "aten::mm"]
    assert visited(found, "aten::matmul") == ["AutogradCPU"] and visited(found, "aten::mm") == [
        "AutogradCPU",
        "CPU",
    ]
    assert [node["name"] for node in found["nodes"]] == ["MmBackward0"] and found["nodes"][0]["to"] == [
        "x",
        "w",
    ]


def test_no_grad_still_visits_autograd_and_inference_mode_does_not():
    assert visited(trace("matmul", False, "no_grad"), "aten::mm") == ["AutogradCPU", "CPU"]
    assert visited(trace("matmul", False, "inference"), "aten::mm") == ["CPU"]
    for mode in ("no_grad", "inference"):
        assert traces.counts("linear_gelu", True, mode)["nodes"] == 0
        assert traces.kept_bytes("linear_gelu", True, mode, 4096, LLAMA) == 0


def test_a_view_visits_the_key_that_keeps_track_of_views():
    assert visited(trace("linear_gelu", False, "grad"), "aten::t") == [
        "AutogradCPU",
        "ADInplaceOrView",
        "CPU",
    ]


def test_autocast_casts_before_autograd_so_that_the_casts_have_gradients():
    found = trace("linear_gelu", True, "grad")
    assert found["events"][0]["key"] == "AutocastCPU"
    assert sum(node["name"] == "ToCopyBackward0" for node in found["nodes"]) == 3  # x, w and b


def test_what_a_product_keeps_by_hand():
    """1,000 tokens into x·w: x alone is counted, 4 bytes · 1000 · 4096; under autocast the copies of x and w,
    2 bytes each."""
    assert traces.kept_bytes("matmul", False, "grad", 1000, LLAMA) == 4 * 1000 * 4096
    assert traces.kept_bytes("matmul", True, "grad", 1000, LLAMA) == 2 * 1000 * 4096 + 2 * 4096 * 14336


def test_attention_written_out_keeps_the_scores_and_the_fused_one_does_not():
    """fp32: q, k, v of t·h values each, and a·t² scores once; fused: q, k, v, the output and a sum for each
    row."""
    t, h, a = 2000, 4096, 32
    assert traces.kept_bytes("attention", False, "grad", t, LLAMA) == 4 * (3 * t * h + a * t * t)
    assert traces.kept_bytes("sdpa", False, "grad", t, LLAMA) == 4 * (4 * t * h + a * t)


def test_autocast_is_a_gpus():
    """CUDA's autocast takes softmax and layer norm to fp32 (autocast_mode.h). So written-out attention keeps
    bf16 copies of q, k and v, the scores' softmax in fp32, and its bf16 copy for the product: 6 bytes a
    score, more than fp32's 4."""
    t, h, a = 2000, 4096, 32
    assert traces.kept_bytes("attention", True, "grad", t, LLAMA) == 2 * 3 * t * h + (4 + 2) * a * t * t
    assert visited(trace("layer_norm", True, "grad"), "aten::layer_norm") == ["AutocastCPU", "AutogradCPU"]
    assert (
        traces.counts("layer_norm", True, "grad")["visits"] == 4
        and traces.counts("layer_norm", False, "grad")["visits"] == 3
    )


@in_one_test(
    "key, kernel, words",
    [
        ("AutocastCPU", "kernel", "autocast's kernel"),
        ("ADInplaceOrView", "kernel", "the kernel that keeps track of views"),
        ("CPU", "kernel", "the CPU's kernel"),
        ("AutogradCPU", "math kernel", "a composite's kernel: it only calls others"),
        ("AutogradCPU", "autograd kernel", "autograd's kernel"),
        ("CPU", "default backend kernel", "a kernel for every backend"),
    ],
)
def test_a_kernel_is_its_keys(key, kernel, words):
    assert traces.WHOSE[int(traces.whose(traces.KEYS.index(key), traces.KERNELS.index(kernel)))] == words


def test_composites_are_counted_apart():
    """linear under autocast: linear itself and three casts' `to` are composites; gelu, t, addmm and three
    _to_copy are not."""
    assert traces.counts("linear_gelu", True, "grad")["composites"] == 4


def test_an_update_in_a_loop_starts_eight_kernels_a_weight():
    """AdamW: decay, lerp of m, scale and addcmul of v, sqrt, div, add of eps, addcdiv; the step's count is on
    the CPU."""
    assert traces.layer_operators("update") == 9 * 8


@pytest.mark.parametrize(("s", "b", "h", "a"), [(2048, 1, 12288, 96), (512, 4, 1024, 16)])
def test_a_real_layer_keeps_what_korthikanti_counts(s, b, h, a):
    """arXiv:2205.05198, equation 1: s·b·h·(34 + 5·a·s/h); and each of two norms a mean and a deviation in
    bf16."""
    assert traces.layer_kept_bytes(s, b, h, a) == s * b * h * 34 + 5 * a * s * s * b + 8 * s * b
    fused = traces.layer_kept_bytes(s, b, h, a, written_out=False)
    assert fused == s * b * h * 34 + 8 * s * b + 4 * a * s * b  # the square is gone, a row's sum is left


def test_the_layer_of_lesson_01_is_the_recorded_one():
    gpt = catalog.model("gpt3-175b")
    for written_out in (True, False):
        counted = memory.layer_activation_bytes(gpt, 2048, 1, flash=not written_out)
        kept = traces.layer_kept_bytes(2048, 1, gpt.hidden, gpt.heads, written_out)
        assert kept == pytest.approx(counted, rel=2e-3)  # the norms' statistics and the softmax's sums


def test_tables_hold_every_event():
    tables = traces.tables()
    for case in range(len(traces.CASES)):
        for autocast in (0, 1):
            for mode in range(len(traces.MODES)):
                row = traces.index(case, autocast, mode)
                there = trace(traces.CASES[case], bool(autocast), traces.MODES[mode])["events"]
                at = np.concatenate(
                    [part["event"][row] for part in (tables.visits, tables.nodes, tables.kept)]
                )
                assert sorted(at[~np.isnan(at)]) == list(range(len(there))) and tables.events[row] == len(
                    there
                )


def test_amounts_are_added_up_by_call():
    found = traces.summed(np.array([0, 2, 2, np.nan]), np.array([5.0, 1.0, 2.0, 9.0]), np.arange(3.0))
    assert found.tolist() == [5, 0, 3]


def test_an_unknown_phase_is_refused():
    with pytest.raises(ValueError, match="phase"):
        traces.layer_operators("sideways")


def test_columns_are_padded_to_the_longest_and_never_empty():
    np.testing.assert_array_equal(traces._padded([[1, 2], [3]]), [[1, 2], [3, np.nan]])
    assert np.isnan(traces._padded([[], []])).all() and traces._padded([[], []]).shape == (2, 1)
