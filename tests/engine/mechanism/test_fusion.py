"""Elementwise chains apart and fused: bytes and times by hand, and where fusing brings nothing."""

from types import SimpleNamespace

import numpy as np
import pytest

from engine import catalog
from engine.calibration import DEFAULT
from engine.mechanism import fusion, matmul
from tests.cases import in_one_test

H100 = catalog.gpu("h100-sxm")
ROUND = SimpleNamespace(
    hbm_bytes_per_s=1e12 / DEFAULT.memory_share, fp32_flops_per_s=10e12, bf16_flops_per_s=100e12
)  # 1 TB/s reached: ridges of 10 and 100 FLOP/B


def compared(elements=1e9, operations=5, flops=2, kept=2, inner=0.0, gpu=ROUND, launch_s=4e-6):
    return fusion.compared(elements, operations, flops, kept, inner, gpu, launch_s)


def test_a_chain_by_hand():
    """10⁹ elements of 2 bytes: 4 GB and 4 ms a kernel, five of them; fused one. Arithmetic: 0.2 ms each, 1 ms
    fused."""
    found = compared()
    assert found.apart_bytes == 20e9 and found.fused_bytes == 4e9
    assert found.one == pytest.approx((4e-3, 0.2e-3, 4e-6)) and found.fused.arithmetic_s == pytest.approx(
        1e-3
    )
    assert found.apart_s == pytest.approx(20e-3) and found.fused_s == pytest.approx(4e-3)
    assert fusion.gain(found) == pytest.approx(5) and found.flops == 10e9


def test_heavy_arithmetic_gains_nothing():
    """2 passes · 2 bytes · 10 FLOP/B: 40 FLOPs on each element are the ridge. Five operations of 8 have 40
    together, and gain all of 5; from there it shrinks (16 each: 80 together, 2.5), and is nothing where each
    has 40."""
    assert fusion.break_even_flops_per_element(ROUND) == pytest.approx(40)
    assert fusion.gain(compared(flops=40)) == pytest.approx(1) and fusion.gain(
        compared(flops=8)
    ) == pytest.approx(5)
    assert fusion.gain(compared(flops=16)) == pytest.approx(2.5)
    assert fusion.break_even_flops_per_element(H100) == pytest.approx(80 / 0.74)


def test_bytes_move_at_the_rate_that_every_lesson_asks():
    assert fusion.reached_bytes_per_s(H100) == matmul.chip(H100).memory_bytes_per_s == 0.74 * 3.35e12


def test_short_tensors_gain_launches():
    """10⁵ elements: 0.4 µs of bytes under a launch of 4 µs; five launches become one."""
    found = compared(elements=1e5)
    assert found.apart_s == pytest.approx(20e-6) and found.fused_s == pytest.approx(4e-6)
    assert fusion.launch_bound_elements(ROUND, 4e-6) == pytest.approx(1e6)


def test_an_epilogue_by_hand():
    """10⁸ results of a product 10⁴ × 100 × 10⁴: 20 GFLOP, 0.2 ms; operands 4 MB, result 0.2 GB in 0.2 ms.
    Then two operations of 0.4 ms each; as its epilogue they add 0.04 ms of arithmetic and no bytes."""
    found = compared(elements=1e8, operations=2, inner=100.0)
    assert fusion.product_bytes(1e8, 100) == 4e6
    assert found.product.memory_s == pytest.approx(0.204e-3) and found.product.arithmetic_s == pytest.approx(
        0.2e-3
    )
    assert found.apart_s == pytest.approx(0.204e-3 + 0.8e-3)
    assert found.fused_bytes == 204e6 and found.fused_s == pytest.approx(0.24e-3)
    assert found.flops == pytest.approx(20e9 + 0.4e9)


def test_registers_by_hand():
    """31 + 8·28 = 255 fit; each value more is written and read as 4 bytes."""
    assert fusion.registers_a_thread(28) == 255 and fusion.spilled_bytes(1e6, 28) == 0
    assert fusion.spilled_bytes(1e6, 30) == 16e6
    assert compared(kept=40).fused_bytes == 4e9 + 96e9 and fusion.gain(compared(kept=40)) < 1
    assert (
        compared(kept=40).longest_s == compared(kept=40).fused_s
        and compared().longest_s == compared().apart_s
    )


def test_gelu_written_out():
    """x³, two products, a sum of two tensors, a product, tanh, a sum with a number, a half of x, a product of
    two: eight kernels that read ten tensors and write eight; fused one and one."""
    kernels_reads = [1, 1, 2, 1, 1, 1, 1, 2]
    moved = sum(fusion.chain_bytes(1e6, 1, reads) for reads in kernels_reads)
    assert moved == 2e6 * 18 and moved / fusion.fused_bytes(1e6) == 9


def test_what_lies_between_the_products_of_a_layer_by_hand():
    """Llama 3 8B, one token: 8,192 values in two sums and norms at 42 and 8 bytes, 14,336 behind the gate at
    10 and 6, 40 heads of 128 rotated at 20 and 4."""
    model = catalog.model("llama3-8b")
    apart, fused = fusion.between_products_bytes(model, 1)
    assert apart == 8192 * 42 + 14336 * 10 + 5120 * 20 == 589_824
    assert fused == 8192 * 8 + 14336 * 6 + 5120 * 4 == 172_032
    assert fusion.between_products_bytes(model, 8192) == (8192 * apart, 8192 * fused)
    with pytest.raises(ValueError, match="tokens"):
        fusion.between_products(model, 0.5)


def test_one_operation_is_fused_already():
    found = compared(operations=1)
    assert found.apart_s == found.fused_s and found.apart_bytes == found.fused_bytes


def test_more_operations_never_gain_less_and_fusing_never_costs_without_spills():
    operations = np.arange(1.0, 17.0)
    for flops in (1, 10, 100):
        gains = [fusion.gain(compared(operations=k, flops=flops)) for k in operations]
        assert min(gains) >= 1 - 1e-12 and (np.diff(gains) >= -1e-12).all()


@in_one_test(
    "bad, named",
    [
        (dict(elements=0), "elements"),
        (dict(operations=1.5), "operations"),
        (dict(flops=-1), "flops_per_element"),
        (dict(inner=-1.0), "inner"),
        (dict(launch_s=-1), "launch_s"),
        (dict(kept=float("nan")), "values_kept"),
    ],
)
def test_bad_input_is_named(bad, named):
    with pytest.raises(ValueError, match=named):
        compared(**bad)


def test_it_broadcasts():
    found = compared(elements=np.array([1e6, 1e9]))
    assert found.apart_s.shape == (2,) and fusion.gain(found).shape == (2,)
