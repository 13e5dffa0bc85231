"""What a chip achieves: products, attention and streaming kernels at the clocks of a long job; limits,
monotony, and figures worked by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.calibration import known
from engine.calibration.attention import fused_s
from engine.calibration.products import TILE, either_s, gemm_s, trained_product_s
from engine.mechanism import matmul
from engine.mechanism.matmul import achievable_share, chip, served_share, stream_s, sustained_share

H100, A100, V100, B200 = (catalog.gpu(key) for key in ("h100-sxm", "a100-80", "v100", "b200"))
AT = chip(H100)
sides = st.integers(1, 100_000).map(float)


def rate(m, n, k, at=AT):
    return 2 * m * n * k / gemm_s(m, n, k, at.product)


def test_a_value_in_16_bits_is_two_bytes():
    assert AT.operand_bytes == AT.wide_bytes == AT.product.operand_bytes == 2


def test_a_product_worked_by_hand():
    """(2048 + padding) rows by 2048 columns and a part of 132 tiles, along 4096 + ramp steps; 3 · 2048 · 4096
    values, roughly, in the shadow of that."""
    p = AT.product
    worked = 2 * ((2048 + p.rows) * 2048 + p.wave * 132 * TILE) * (4096 + p.ramp) / p.flops_per_s
    worked *= 1 + p.slowing * worked / (worked + 1e-3)
    moved = 2 * (2 * 2048 * 4096 + 2048 * 2048) / p.memory_bytes_per_s
    assert gemm_s(2048.0, 2048.0, 4096.0, p) == pytest.approx(p.launch_s + either_s(worked, moved))


def test_several_products_in_one_kernel_share_its_launch_and_its_last_wave():
    one, eight = gemm_s(512.0, 512.0, 512.0, AT.product), gemm_s(512.0, 512.0, 512.0, AT.product, 8.0)
    assert one < eight < 8 * one


def test_skinny_products_are_bound_by_memory():
    """One token through a matrix reads the matrix: 8192² weights of 2 bytes, or of half a byte."""
    for weight_bytes in (2.0, 0.5):
        time = gemm_s(1.0, 8192.0, 8192.0, AT.product, weight_bytes=weight_bytes)
        read_s = 8192**2 * weight_bytes / AT.product.memory_bytes_per_s
        assert read_s < time - AT.product.launch_s < 1.25 * read_s


@given(sides, sides, sides)
def test_never_faster_than_peak_or_memory(m, n, k):
    time = gemm_s(m, n, k, AT.product)
    assert time >= 2 * m * n * k / AT.product.flops_per_s * (1 - 1e-9)
    assert time >= 2 * (m * k + k * n + m * n) / AT.product.memory_bytes_per_s * (1 - 1e-9)
    assert np.isfinite(time)
    assert gemm_s(m, n, 2 * k, AT.product) >= time


@given(sides, sides, sides, st.sampled_from([AT.product, known.gemm("b200", "nvfp4").rates]))
def test_training_is_three_products(rows, k, n, p):
    """To the last bit, also where casting is a part of them."""
    forward, of_input, of_weight = trained_product_s(rows, k, n, 8.0, p)
    assert forward == gemm_s(rows, n, k, p)
    assert of_input == gemm_s(rows, k, n, p)
    assert of_weight == gemm_s(k, n, rows, p, result_bytes=8.0)


def test_large_products_approach_the_sustained_rate():
    assert rate(16384.0, 16384.0, 16384.0) == pytest.approx(
        989e12 * achievable_share(H100, "bf16") * sustained_share(H100), rel=0.03
    )


def test_dense_chips_sustain_less_of_their_best():
    assert sustained_share(V100) > sustained_share(A100) > sustained_share(H100) > sustained_share(B200)
    assert all(0.3 < sustained_share(gpu) <= 1 for gpu in catalog.all_gpus().values())


def test_a_server_keeps_more_of_its_clock_than_a_training_step():
    for gpu in (H100, A100, V100, B200):
        lost = (1 - served_share(gpu)) / (1 - sustained_share(gpu))
        assert lost == pytest.approx(matmul.SERVER_MULTIPLIES * matmul.CLOCKS) and lost < 0.5
    for other in ("mi300x", "tpu-v5e"):
        assert served_share(catalog.gpu(other)) == sustained_share(catalog.gpu(other))
    best = 989e12 * achievable_share(H100, "bf16")
    large = rate(16384.0, 16384.0, 16384.0, AT.served)
    assert large == pytest.approx(best * served_share(H100), rel=0.03)


def test_attention_keeps_more_of_its_clock_the_less_it_fills_the_chip():
    """What our own GPUs kept after seconds of it (700 W): a product 0.855 and 0.83, cuDNN's attention forward
    0.867 and 0.852, FlashAttention-2 forward 0.966 and 0.978. A server keeps a burst's."""
    burst = matmul.burst_attention(H100)
    best = H100.bf16_flops_per_s * achievable_share(H100, "bf16")
    for kernel, fitted, seen in (
        (AT.attention, burst, (0.867, 0.852)),
        (AT.flash_2, known.flash_2(H100.key), (0.966, 0.978)),
    ):
        kept = [long / short for long, short in zip(kernel.flops_per_s, fitted.flops_per_s)]
        assert kept[1] == pytest.approx(matmul.kept_clock(H100, filled=fitted.flops_per_s[1] / best))
        assert kept[1] == pytest.approx(np.mean(seen), abs=0.055)
        assert kept[0] > kept[1] > matmul.kept_clock(H100)  # narrower heads fill less
    assert matmul.kept_clock(H100) == pytest.approx(np.mean([0.855, 0.83]), abs=0.005)
    assert AT.served.attention == burst
    held = replace(H100, tdp_w=500.0)
    assert chip(held).flash_2.flops_per_s[1] < 0.98 * AT.flash_2.flops_per_s[1]
    assert matmul.kept_clock(H100, filled=0.1) == 1.0


def test_every_chip_of_the_file_is_in_the_catalogue():
    assert set(matmul._achievable()) - {"gpu", "tpu"} <= set(catalog.all_gpus())


def test_attention_gains_with_length_and_width_and_pays_for_the_mask():
    def speed(seq, dim, causal):
        pairs = 16 * seq * seq * (1 - 0.5 * causal)
        return 4 * dim * pairs / fused_s(1.0, seq, 16.0, 16.0, dim, AT.attention, causal=causal)

    assert speed(512.0, 128.0, 0.0) < speed(16384.0, 128.0, 0.0)
    assert speed(8192.0, 64.0, 0.0) < speed(8192.0, 256.0, 0.0)
    assert speed(1024.0, 128.0, 1.0) < speed(1024.0, 128.0, 0.0)


def test_attention_is_never_faster_than_its_format_s_peak():
    """On any chip, in any format; twice as wide values are twice the bytes."""
    for gpu in catalog.all_gpus().values():
        for precision in [each for each in matmul.ELEMENT_BYTES if getattr(gpu, f"{each}_flops_per_s")]:
            at = chip(gpu, precision)
            wide = precision if at.casts == 0 else matmul.supported_precision(gpu, "bf16")
            peak = getattr(gpu, f"{wide}_flops_per_s")
            kernels = (*at.attention.flops_per_s, at.decode.flops_per_s, at.narrow_decode.flops_per_s)
            kernels = (*kernels, at.latent.flops_per_s, at.latent_prefill.flops_per_s)
            assert max(kernels) <= 1.2 * peak, (gpu.key, precision)  # as far as the fit itself goes over
    narrow, wide = chip(A100), chip(A100, "tf32")
    assert wide.attention.flops_per_s[1] == pytest.approx(narrow.attention.flops_per_s[1] / 2)
    assert wide.attention.memory_bytes_per_s == narrow.attention.memory_bytes_per_s / 2


def test_narrow_precisions_are_faster_and_cast():
    fp8 = chip(H100, "fp8")
    assert fp8.matmul_flops_per_s > 1.6 * AT.matmul_flops_per_s and fp8.wide == AT.product
    assert (fp8.operand_bytes, fp8.casts, AT.casts) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gemm_s(0.0, 1.0, 1.0, AT.product), "m must be greater than 0, got 0"),
        (lambda: trained_product_s(1.0, -1.0, 1.0, 2.0, AT.product), "k must be greater than 0"),
        (lambda: stream_s(-1.0, AT), "moved_bytes must be at least 0"),
        (
            lambda: fused_s(1.0, 1.0, 1.0, 1.0, 64.0, AT.attention, causal=2.0),
            "causal must be between 0 and 1, got 2",
        ),
        (lambda: chip(H100, "fp7"), "precision must be one of"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
