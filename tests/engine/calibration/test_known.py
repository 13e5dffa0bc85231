"""The fitted constants, the accuracy that they state, and what happens outside of the measured range."""

import math
import re
from dataclasses import replace

import pytest

from engine import catalog
from engine.calibration import attention, known, products
from engine.calibration.fit.kinds import KINDS
from tests.cases import in_one_test
from tests.said import refused

MEASURED = {"a100-80", "h100-sxm", "b200", "gb200", "gb300", "l40s", "rtx-pro-6000"}


@in_one_test("kind", [kind.name for kind in KINDS])
def test_every_constant_is_a_share_or_a_time(kind):
    for key, chips in known.fitted()["constants"][kind].items():
        assert set(chips) <= MEASURED
        for gpu, constants in chips.items():
            assert known.known(kind, key, gpu).measured
            for name, value in constants.items():
                assert value > 0 and math.isfinite(value), (key, gpu, name)
                if name.endswith("_s") and not name.startswith("bytes"):
                    assert value < 2e-3, (key, gpu, name)
                if name in ("ceiling", "memory") and kind in ("gemm", "decode", "experts"):
                    assert 0.05 <= value <= 1.0, (key, gpu, name)


@pytest.mark.parametrize(
    ("kind", "most"),
    [("gemm", 0.12), ("prefill", 0.12), ("decode", 0.12), ("latent", 0.12), ("experts", 0.12)],
)
def test_held_out_rows_are_met_in_the_median(kind, most):
    said = known.residuals()["total"]["held_out"][kind]
    assert said["rows"] > 3000
    assert said["above_floor"] <= most and said["median_error"] <= most


def test_held_out_collectives_are_met_in_the_median():
    said = known.residuals()["by_size"]["collective"]
    assert said["nccl.from 1 MB"]["median_error"] <= 0.10
    assert said["nccl.below 1 MB"]["median_error"] <= 0.25


@in_one_test("kind", [kind.name for kind in KINDS])
def test_eighty_percent_bands_hold_some_eighty_percent(kind):
    said = known.residuals()["total"]["held_out"][kind]
    assert 0.75 <= said["coverage"] <= 0.90


def test_bands_are_bands():
    for said in ("band", "band_elsewhere"):
        for kind, entries in known.residuals()[said].items():
            assert "all" in entries, kind
            for name, (low, high) in entries.items():
                assert 0 < low < high, (kind, name)


def test_every_size_has_a_class():
    for kind, (_, bounds) in known.SIZES.items():
        assert [bound for bound, _ in bounds] == sorted(bound for bound, _ in bounds)
        assert known.size_of(kind, 1e30) == bounds[-1][1] and known.size_of(kind, 0.0) == bounds[0][1]


def test_a_measured_gpu_extrapolates_nothing_within_its_ranges():
    found = known.gemm("h100-sxm", "bf16")
    assert found.extrapolates(m=4096, n=4096, k=4096) == []
    assert found.extrapolates(m=4096, n=4096, k=1e6) == ["k"]
    with refused("input", "m, n, k", "'batch'"):
        found.extrapolates(batch=1)


@pytest.mark.parametrize(("gpu", "by"), [("h200", "h100-sxm"), ("b300", "gb300"), ("rtx4090", "l40s")])
def test_a_relative_lends_its_shares(gpu, by):
    found = known.gemm(gpu, "bf16")
    assert not found.measured and found.by == by
    assert found.extrapolates(m=64) == ["gpu"]
    own = known.gemm(by, "bf16").rates
    sheets = catalog.gpu(gpu).hbm_bytes_per_s / known.sheet(by).memory_bytes_per_s
    assert found.rates.memory_bytes_per_s == pytest.approx(own.memory_bytes_per_s * sheets)


def test_a_stranger_gets_the_medians_of_the_others_and_a_wider_band():
    found = known.gemm("mi300x", "bf16")
    assert found.by == "medians of the others" and "gpu" in found.extrapolates(m=64)
    assert found.rates.flops_per_s < catalog.gpu("mi300x").bf16_flops_per_s
    low, high = known.gemm("h100-sxm", "bf16").band(4096)
    wider = found.band(4096)
    assert wider[0] <= low and wider[1] >= high


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        ("h100-sxm", "measured"),
        ("rtx-pro-6000", "measured"),
        ("h200-nvl", "as the H100 SXM"),
        ("rtx-6000-ada", "as the L40S"),
        ("rtx-a6000", "medians of the others"),
        ("vr200", "medians of the others"),
    ],
)
def test_a_gpu_says_whose_rates_it_has(gpu, said):
    assert known.rates_from(gpu) == said


def test_a_format_that_the_chip_lacks_is_named():
    assert known.gemm("h100-sxm", "nvfp4").extrapolates(m=64) == ["gpu", "format"]
    assert known.gemm("a100-80", "fp8").extrapolates(m=64) == ["gpu", "format"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: known.known("gem", "bf16", "b200"), "kind must be one of gemm"),
        (
            lambda: known.gemm("b200", "int8"),
            "key of gemm must be one of bf16, fp8, fp8_block, nvfp4; got 'int8'",
        ),
        (lambda: known.gemm("b2000"), "gpu must be a key of the catalogue"),
        (lambda: known.attention("decoding", "b200"), "kind must be one of prefill, decode"),
        (lambda: known.attention("decode", "b200", "fp4"), "cache must be one of bf16, fp8"),
    ],
)
def test_what_is_not_known_is_refused(call, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        call()


@in_one_test("gpu", sorted(catalog.all_gpus()))
def test_every_gpu_of_the_catalogue_gets_an_answer(gpu):
    """Numbers that are possible, whoever lends the constants: never faster than the data sheet."""
    sheet = known.sheet(gpu)
    rates = known.gemm(gpu).rates
    assert products.gemm_s(8192.0, 8192.0, 8192.0, rates) > 2.0 * 8192.0**3 / sheet.peak("bf16")
    decode = known.attention("decode", gpu)
    read = 2.0 * 64.0 * 8.0 * 128.0 * 32768.0 * 2.0
    seconds = attention.decode_s(64.0, 32768.0, 32.0, 8.0, 128.0, decode.rates)
    assert read / sheet.memory_bytes_per_s < seconds < 3.0 * read / sheet.memory_bytes_per_s
    assert known.attention("prefill", gpu, "fp8").key.endswith(".fp8")


@in_one_test(
    "kind, bits, block, scale_bits",
    [
        ("bf16", 16, 1, 0),
        ("fp8", 8, 1, 0),  # one scale for a whole tensor
        ("nvfp4", 4, 16, 8),
        ("w4a16_mxfp4", 4, 32, 8),
        ("w4a8_mxfp4_mxfp8", 4, 32, 8),
    ],
)
def test_an_expert_s_stored_weight_has_its_bits_and_a_part_of_its_block_s_scale(
    kind, bits, block, scale_bits
):
    """32 values of MXFP4 share a scale of 8 bits (OCP Microscaling Formats 1.0, table 1), 16 of NVFP4."""
    keys = [key for key in known.fitted()["constants"]["experts"] if key.split(".")[0] == kind]
    assert keys
    for key in keys:
        found = known.known("experts", key, "b200").rates.weight_bytes
        assert found == pytest.approx((bits + scale_bits / block) / 8)


def test_a_cast_inside_of_the_product_reads_16_bits_and_writes_its_own():
    """Those of a block format alone are cast there; of the operands, DeepSeek's 128 values of 8 bits have a
    scale of 32 (arXiv:2412.19437, section 3.3), and NVIDIA's 16 of 4 bits have one of 8."""
    rates = {kind: known.gemm("b200", kind).rates for kind in ("bf16", "fp8", "fp8_block", "nvfp4")}
    cast = {kind: rate.quantised_bytes for kind, rate in rates.items()}
    assert cast == {"bf16": 0, "fp8": 0, "fp8_block": 2 + 1, "nvfp4": 2 + 1 / 2}
    read = {kind: rate.operand_bytes for kind, rate in rates.items()}
    assert read == {"bf16": 2, "fp8": 1, "fp8_block": 1 + 4 / 128, "nvfp4": 1 / 2 + 1 / 16}


def test_a_relative_is_in_the_catalogue_and_was_not_measured():
    for gpu, by in known.RELATIVES.items():
        assert gpu in catalog.all_gpus() and by in MEASURED and gpu not in MEASURED


def test_ranks_of_a_mesh_have_the_wires_between_them(monkeypatch):
    """Of the seven wires of a GPU two ranks use one, four ranks three, and eight all. With wires to three
    others alone, four ranks use all of them, and there are no more to be used."""
    full = known.collective("mi300x").rates.reduce_bytes_per_s[2]
    assert known.collective("mi300x").rates.reduce_bytes_per_s == pytest.approx(
        (full / 7, full * 3 / 7, full)
    )
    link = replace(catalog.usual_link(catalog.gpu("mi300x")), peers=3)
    monkeypatch.setattr(catalog, "usual_link", lambda gpu: link)
    assert known.collective("mi300x").rates.reduce_bytes_per_s == pytest.approx((full / 3, full, full))
