"""Pipelines in serving, by hand."""

import numpy as np
import pytest

from engine import catalog
from engine.mechanism import interconnect, memory
from engine.mechanism.shape import shape
from engine.serving import inference, stages, step_costs
from engine.step.layout import Machine

LARGE, HUGE = catalog.model("llama3-70b"), catalog.model("llama3.1-405b")
H100, L40S = Machine.of("h100-sxm"), Machine.of("l40s")


def test_one_stage_is_no_pipeline():
    size = shape(LARGE)
    assert stages.largest_share(size, 1.0) == 1
    assert stages.handed_s(size, 64.0, 4.0, 1.0, H100.wires) == 0
    assert stages.weight_bytes_per_gpu(LARGE, H100, 4, 1.0) == inference.weight_bytes_per_gpu(LARGE, H100, 4)


def test_a_stage_holds_its_layers_and_one_end():
    """126 layers on 4 stages: 32 of them on the fullest, and an embedding of 128,256 · 16,384 in 16 bits."""
    size = shape(HUGE)
    assert stages.largest_share(size, 4.0) == 32 / 126
    layers = float(size.total_params) - 2 * 128256 * 16384
    found = stages.weight_bytes_per_gpu(HUGE, H100, 8, 4.0)
    assert found == pytest.approx((layers * 32 / 126 + 128256 * 16384) * 2 / 8, rel=1e-6)


def test_a_batch_takes_the_layers_time_and_is_handed_on_by_each_stage():
    """64 rows of 8,192 values of 2 bytes, half of them from each of a stage's two GPUs."""
    one, four = step_costs.costs(LARGE, H100, 2), step_costs.costs(LARGE, H100, 2, pp=4)
    at = list(one.rows).index(64)
    sent_s = 4 * interconnect.send_s(64 * 8192 * 2 / 2, False, H100.wires)
    assert four.rows_s[at] == pytest.approx(one.rows_s[at] + sent_s)
    assert (four.cached_s, four.pair_s, four.kv_bytes) == (one.cached_s, one.pair_s, one.kv_bytes)


def test_a_stage_of_another_node_is_further_away():
    near, far = step_costs.costs(LARGE, H100, 4, pp=2), step_costs.costs(LARGE, H100, 8, pp=2)
    alone = step_costs.costs(LARGE, H100, 8)
    assert far.rows_s[0] - alone.rows_s[0] == pytest.approx(
        2 * interconnect.send_s(8192 * 2 / 8, True, H100.wires)
    )
    assert near.rows_s[0] - step_costs.costs(LARGE, H100, 4).rows_s[0] < far.rows_s[0] - alone.rows_s[0]


def test_each_batch_has_its_part_of_the_room_that_the_fullest_stage_leaves():
    """80 layers on 2 stages of 4 GPUs: each holds 40 layers of every token, of two batches."""
    two = step_costs.costs(LARGE, H100, 4, pp=2)
    free = memory.server_bytes(H100.gpu) - stages.weight_bytes_per_gpu(LARGE, H100, 4, 2.0)
    assert two.capacity == np.floor(free / (two.kv_bytes / 4))
    assert 1.35 < two.capacity / step_costs.costs(LARGE, H100, 4).capacity < 1.5


def test_without_nvlink_stages_serve_more_than_tensor_ranks():
    """Four L40S: the AllReduces over PCIe of four full steps take longer than all the work of one GPU."""
    by_ranks, by_stages = step_costs.costs(LARGE, L40S, 4, 1024), step_costs.costs(LARGE, L40S, 1, 1024, pp=4)
    at = list(by_ranks.rows).index(2048)
    assert by_stages.rows_s[at] / 4 < 0.8 * by_ranks.rows_s[at]


def test_405b_in_16_bits_needs_two_nodes():
    assert step_costs.costs(HUGE, H100, 8, 1024).capacity == 0
    assert step_costs.costs(HUGE, H100, 8, 1024, pp=2).capacity > 100_000
