"""Ridges, ceilings and the intensities of real work."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.mechanism import roofline
from tests.said import refused

H100 = catalog.gpu("h100-sxm")
PEAK, HBM, NIC = H100.bf16_flops_per_s, H100.hbm_bytes_per_s, H100.nic_bytes_per_s
positive = st.floats(1e-3, 1e9)


def test_h100_ridges():
    assert roofline.ridge_flops_per_byte(PEAK, HBM) == pytest.approx(295, rel=0.002)
    assert roofline.ridge_flops_per_byte(PEAK, NIC) == pytest.approx(19780)


def test_roof_is_flat_behind_the_ridge_and_slopes_before_it():
    ridge = roofline.ridge_flops_per_byte(PEAK, HBM)
    roof = roofline.attainable_flops_per_s(ridge * np.array([0.5, 1, 2]), PEAK, HBM)
    assert np.allclose(roof, PEAK * np.array([0.5, 1, 1]))


@given(positive, positive, positive, positive, positive)
def test_binding_is_the_lowest_ceiling(intensity, sent, peak, hbm, link):
    ceilings = roofline.ceilings_flops_per_s(intensity, sent, peak, hbm, link)
    lowest = ceilings[roofline.binding_ceiling(ceilings)]
    assert lowest == min(peak, intensity * hbm, sent * link)


def test_binding_names():
    decode = roofline.ceilings_flops_per_s(roofline.decode_flops_per_byte(1), 1e9, PEAK, HBM, NIC)
    prefill = roofline.ceilings_flops_per_s(
        roofline.matmul_flops_per_byte(8192, 8192, 8192), 1e9, PEAK, HBM, NIC
    )
    allreduce = roofline.ceilings_flops_per_s(
        1e9, roofline.allreduce_flops_per_byte_sent(1000, 64), PEAK, HBM, NIC
    )
    names = [roofline.CEILINGS[roofline.binding_ceiling(c)] for c in (decode, prefill, allreduce)]
    assert names == ["memory", "compute", "network"]


def test_decode_needs_a_batch_of_the_ridge():
    """bf16 decode does one FLOP a byte for each sequence: 295 sequences until an H100 computes as long as it
    reads."""
    assert roofline.decode_flops_per_byte(1) == 1
    assert roofline.decode_flops_per_byte(295) == 295
    assert roofline.decode_flops_per_byte(1, bytes_per_weight=0.5) == 4


def test_decode_attention_does_not_care_for_the_batch_but_for_the_group():
    assert roofline.decode_attention_flops_per_byte(1) == 1
    assert roofline.decode_attention_flops_per_byte(8) == 8
    assert roofline.decode_attention_flops_per_byte(8, bytes_per_value=1) == 16


@given(positive, positive, positive)
def test_matmul_lies_below_each_side(m, k, n):
    """In bf16 it is 1/(1/m + 1/k + 1/n): below the smallest side, and a third of it when all are equal."""
    intensity = roofline.matmul_flops_per_byte(m, k, n)
    assert min(m, k, n) / 3 * 0.999 <= intensity <= min(m, k, n)
    assert intensity == pytest.approx(roofline.matmul_flops_per_byte(n, m, k))


def test_thin_matmul_is_decode():
    assert roofline.matmul_flops_per_byte(8, 8192, 8192) == pytest.approx(
        roofline.decode_flops_per_byte(8), rel=0.003
    )


def test_allreduce_intensity_by_hand():
    """1,000 tokens, 2 ranks, bf16: 6,000 FLOPs for each parameter, of whose gradient 2 bytes are sent."""
    assert roofline.allreduce_flops_per_byte_sent(1000, 2) == 3000
    assert roofline.allreduce_flops_per_byte_sent(1000, 10**6) == pytest.approx(1500, rel=1e-5)


@given(st.floats(1, 1e7), st.integers(2, 10**6))
def test_allreduce_intensity_grows_with_tokens_and_falls_with_ranks(tokens, ranks):
    here = roofline.allreduce_flops_per_byte_sent(tokens, ranks)
    assert roofline.allreduce_flops_per_byte_sent(2 * tokens, ranks) == pytest.approx(2 * here)
    assert roofline.allreduce_flops_per_byte_sent(tokens, ranks + 1) <= here


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: roofline.allreduce_flops_per_byte_sent(1000, 1), ("ranks", "2", "1")),
        (lambda: roofline.ridge_flops_per_byte(0, 1), ("peak_flops_per_s", "0", "0")),
        (lambda: roofline.decode_flops_per_byte(-1), ("batch", "0", "-1")),
        (lambda: roofline.matmul_flops_per_byte(1, 2, float("nan")), ("columns", "finite")),
    ],
)
def test_bad_input_is_named(call, complaint):
    with refused(*complaint):
        call()


def test_the_batch_that_fills_a_chip_is_whole():
    """989e12 / 3.35e12 = 295.2 FLOPs a byte: 296 sequences of bf16 weights, 148 of fp8."""
    assert roofline.critical_batch(PEAK, HBM) == 296
    assert roofline.critical_batch(PEAK, HBM, bytes_per_weight=1) == 148


def test_the_lowest_ceiling_leaves_its_share_of_the_peak():
    assert roofline.attained_share(np.array([[4.0, 2.0, 3.0], [4.0, 8.0, 9.0]]), 4.0) == pytest.approx(
        [0.5, 1.0]
    )


def test_the_batch_that_the_memory_holds():
    """Llama 3 70B on two H100s: 2 · 78 GB less 141.1 of weights, 2.68 GB a user at 8,192 tokens: 5. Not on
    one."""
    llama70 = catalog.model("llama3-70b")
    assert roofline.held_sequences(llama70, 8192, H100, 2) == 5
    assert roofline.held_sequences(llama70, 8192, H100, 8) == 179
    assert roofline.held_sequences(llama70, 8192, H100, 1) == 0
    assert roofline.held_sequences(llama70, 8192, H100, 1, bytes_per_weight=1, bytes_per_kv_value=1) == 5


def test_query_heads_that_share_a_key():
    assert roofline.query_heads_per_kv_head(catalog.model("llama3-70b")) == 8
    assert roofline.query_heads_per_kv_head(catalog.model("gpt3-175b")) == 1
