"""Products in tiles and waves, attention and streaming kernels: limits, monotony, and figures worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog, matmul
from engine.matmul import (RAMP_K, TILE_FLOPS, achievable_share, chip, fused_attention_s, product_s, stream_s,
                           sustained_share, trained_product_s, waves)

H100, A100, V100, B200 = (catalog.gpu(key) for key in ("h100-sxm", "a100-80", "v100", "b200"))
AT = chip(H100)
sides = st.integers(1, 100_000).map(float)


def rate(m, n, k, at=AT):
    return 2 * m * n * k / product_s(m, n, k, 1.0, at.matmul_flops_per_s, 2.0, 2.0, at)


def test_few_rows_are_padded_to_sixteens():
    """17 rows cost the arithmetic of 32, half of 64's; at a rate so low that memory never counts."""
    took = {rows: product_s(rows, 8192.0, 8192.0, 1.0, 1e12, 2.0, 2.0, AT) for rows in (17.0, 32.0, 64.0)}
    assert took[17.0] == took[32.0] == took[64.0] / 2


def test_a_value_in_16_bits_is_two_bytes():
    assert AT.operand_bytes == AT.wide_bytes == 2


def test_one_tile_too_many_is_a_wave_too_many():
    assert waves(132.0, 4096.0, 132.0) == 1 and waves(133.0, 4096.0, 132.0) == 2
    wide, wider = rate(128 * 11, 128 * 12, 8192), rate(128 * 7, 128 * 19, 8192)      # 132 and 133 tiles
    assert wider < 0.6 * wide


def test_a_product_worked_by_hand():
    """16 × 16 tiles on 132 multiprocessors: 2 waves of 132 tiles of 2·128·128·(4096 + 64) FLOPs."""
    by_hand = 2 * 132 * TILE_FLOPS * (4096 + RAMP_K) / AT.matmul_flops_per_s
    assert product_s(2048.0, 2048.0, 4096.0, 1.0, AT.matmul_flops_per_s, 2.0, 2.0, AT) == pytest.approx(by_hand)


def test_skinny_products_are_bound_by_memory():
    """One token through a matrix reads the matrix: 8192² weights of 2 bytes."""
    time = product_s(1.0, 8192.0, 8192.0, 1.0, AT.matmul_flops_per_s, 2.0, 2.0, AT)
    assert time == pytest.approx(8192**2 * 2 / AT.memory_bytes_per_s, rel=0.01)


@given(sides, sides, sides)
def test_never_faster_than_peak_or_memory(m, n, k):
    time = product_s(m, n, k, 1.0, AT.matmul_flops_per_s, 2.0, 2.0, AT)
    assert time >= 2 * m * n * k / AT.matmul_flops_per_s * (1 - 1e-9)
    assert time >= 2 * (m * k + k * n + m * n) / AT.memory_bytes_per_s * (1 - 1e-9)
    assert np.isfinite(time)
    # cutting k in two saves at most the ramp of the second half
    assert product_s(m, n, 2 * k, 1.0, AT.matmul_flops_per_s, 2.0, 2.0, AT) >= time * (1 - RAMP_K / matmul.SPLIT_K)


@given(sides, sides, sides)
def test_training_is_three_products(rows, k, n):
    forward, of_input, of_weight = trained_product_s(rows, k, n, 1.0, AT.matmul_flops_per_s, 2.0, 8.0, AT)
    assert forward == product_s(rows, n, k, 1.0, AT.matmul_flops_per_s, 2.0, 2.0, AT)
    assert of_input == product_s(rows, k, n, 1.0, AT.matmul_flops_per_s, 2.0, 2.0, AT)
    if k >= 128:
        assert of_weight == product_s(k, n, rows, 1.0, AT.matmul_flops_per_s, 2.0, 8.0, AT)


def test_large_products_approach_the_sustained_rate():
    assert rate(16384.0, 16384.0, 16384.0) == pytest.approx(
        989e12 * achievable_share(H100, "bf16") * sustained_share(H100), rel=0.03)


def test_dense_chips_sustain_less_of_their_best():
    assert sustained_share(V100) > sustained_share(A100) > sustained_share(H100) > sustained_share(B200)
    assert all(0.3 < sustained_share(gpu) <= 1 for gpu in catalog.gpus().values())


def test_every_chip_of_the_file_is_in_the_catalogue():
    assert {key for key in matmul._achievable() if key} <= set(catalog.gpus())


def test_attention_gains_with_length_and_width_and_pays_for_the_mask():
    def speed(seq, dim, causal):
        return 4 * dim * 1e9 / fused_attention_s(1e9, seq, dim, dim, causal, AT)
    assert speed(512.0, 128.0, 0.0) < speed(16384.0, 128.0, 0.0)
    assert speed(8192.0, 64.0, 0.0) < speed(8192.0, 256.0, 0.0)
    assert speed(1024.0, 128.0, 1.0) < speed(1024.0, 128.0, 0.0)


def test_narrow_precisions_are_faster_and_cast():
    fp8 = chip(H100, "fp8")
    assert fp8.matmul_flops_per_s > 1.6 * AT.matmul_flops_per_s and fp8.wide_flops_per_s == AT.matmul_flops_per_s
    assert (fp8.operand_bytes, fp8.casts, AT.casts) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize("call, words", [
    (lambda: product_s(0.0, 1.0, 1.0, 1.0, 1e12, 2.0, 2.0, AT), "m must be greater than 0, got 0"),
    (lambda: trained_product_s(1.0, -1.0, 1.0, 1.0, 1e12, 2.0, 2.0, AT), "k must be greater than 0"),
    (lambda: stream_s(-1.0, AT), "moved_bytes must be at least 0"),
    (lambda: fused_attention_s(1.0, 1.0, 1.0, 1.0, 2.0, AT), "causal must be between 0 and 1, got 2"),
    (lambda: waves(1.0, 1.0, 0.0), "multiprocessors must be greater than 0"),
    (lambda: chip(H100, "fp7"), "precision must be one of"),
])
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
