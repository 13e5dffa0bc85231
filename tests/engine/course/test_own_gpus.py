"""The engine against the GPUs that we measured ourselves. Nothing was fitted on them."""

import numpy as np
import pytest

from engine import catalog
from engine.calibration import launch_costs
from engine.course import own_gpus
from engine.mechanism import hierarchy, matmul
from engine.one_gpu import measurements

GPUS = ("h100-sxm", "h200")


def errors(rows, gpu, what, least=0):
    found = [row.error for row in rows if (row.gpu, row.what) == (gpu, what) and row.size >= least]
    assert len(found) >= 5
    return np.abs(found)


def test_every_measured_gpu_is_one_of_the_catalogue():
    assert set(measurements.devices()) == set(measurements.CHIPS)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("dtype", "median", "worst"), [("bf16", 0.03, 0.07), ("fp8", 0.05, 0.17)])
def test_large_products_are_as_close_as_the_fit(gpu, dtype, median, worst):
    found = errors(own_gpus.products(), gpu, f"product, {dtype}", own_gpus.LARGE)
    assert np.median(found) <= median and found.max() <= worst


@pytest.mark.parametrize("gpu", GPUS)
def test_a_training_step_finds_its_attention_within_a_few_percent(gpu):
    assert errors(own_gpus.attention(), gpu, "cuDNN, both passes").max() <= 0.08
    long = errors(own_gpus.attention(), gpu, "FlashAttention-2, both passes", own_gpus.LARGE)
    assert np.median(long) <= 0.09


@pytest.mark.parametrize("gpu", GPUS)
def test_work_under_the_power_limit_is_slower_than_a_burst(gpu):
    for work in ("bf16", "fp8", "block"):
        at = own_gpus.works(gpu, work)
        assert 0.80 < at.share < 0.92 and at.power_w > 670.0 and at.sm_hz < 1.6e9
    assert own_gpus.works(gpu, "copy").share > 0.98
    zeros, numbers = own_gpus.works(gpu, "bf16_zeros"), own_gpus.works(gpu, "bf16")
    assert zeros.steady > 1.15 * numbers.steady and zeros.power_w < 0.7 * numbers.power_w


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("work", "allowed"), [("bf16", 0.07), ("block", 0.07), ("fp8", 0.17)])
def test_a_long_job_is_no_faster_by_our_account_than_one_gpu_alone(gpu, work, allowed):
    assert 0.0 <= own_gpus.works(gpu, work).error <= allowed


def test_clocks_are_a_part_of_what_a_step_loses_and_fall_with_the_share_of_time_that_multiplies():
    """A copy keeps its clock, a product loses most; the products of a block, in proportion to their share."""
    parts = []
    for gpu in GPUS:
        product, block = own_gpus.works(gpu, "bf16"), own_gpus.works(gpu, "block")
        parts.append((1 - product.share) / (1 - matmul.sustained_share(catalog.gpu(gpu))))
        multiplies = block.burst / product.burst  # of the block's time, at first
        others = 1 / block.burst - 1 / product.burst  # seconds for each of its FLOPs
        lost = 1 - (1 / product.burst) / (1 / block.steady - others)
        assert 0.75 < multiplies < 0.9 and own_gpus.works(gpu, "copy").share > 0.999
        assert lost == pytest.approx(multiplies * (1 - product.share), abs=0.03)
    assert np.mean(parts) == pytest.approx(matmul.CLOCKS, abs=0.02)


def test_streaming_kernels_lie_around_the_one_share_that_the_engine_has():
    for gpu in GPUS:
        signs = {row.what: row.error > 0 for row in own_gpus.streaming() if row.gpu == gpu}
        assert signs["copy"] and signs["add"] and not signs["softmax"]


def test_our_allocator_reserves_what_pytorchs_does():
    found = own_gpus.reserved()
    assert len(found) == 8
    for run in found:
        assert abs(run.error) <= (0.01 if run.expandable else 0.075)
        missing = run.allocated_bytes - run.replayed_allocated_bytes
        assert 66e6 < missing < 68e6  # the same in every run: no tensor of the steps
    assert sum(abs(run.error) <= 0.011 for run in found) >= 7


def test_the_floor_of_a_kernel_lies_among_what_a_step_launches():
    for device, found in measurements.of("streaming").items():
        least = {name: points[0]["burst_s"] for name, points in found.items() if name != "host"}
        assert least["add"] < launch_costs.SHORT_KERNEL_S + launch_costs.STREAM_GAP_S < least["rms_norm"], (
            device
        )


@pytest.mark.parametrize("gpu", GPUS)
def test_a_small_copy_from_the_host_starts_as_the_pyramid_says(gpu):
    chip = hierarchy.hierarchies()[gpu]
    [device] = [device for device in measurements.devices() if measurements.CHIPS[device] == gpu]
    smallest = measurements.of("streaming")[device]["host"][0]
    bytes_s = smallest["operand_bytes"] / chip.host.bytes_per_s
    assert chip.host_start_s == pytest.approx(smallest["to_device_s"] - bytes_s, rel=0.02)
