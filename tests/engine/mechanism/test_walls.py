"""The walls of lesson 01, the loads of the regime cube, and the AllReduce that is often told wrong."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.catalog import models
from engine.mechanism import flops, walls
from engine.mechanism.memory import kv_bytes_per_token
from tests.cases import in_one_test
from tests.said import refused

H100 = catalog.gpu("h100-sxm")
DAY = 86400.0
LLAMA70, LLAMA8 = catalog.model("llama3-70b"), catalog.model("llama3-8b")
any_model = st.sampled_from(list(catalog.all_models().values()))
any_gpu = st.sampled_from(list(catalog.all_gpus().values()))


def ratios(params=70e9, gpus=1024, **changes):
    case = dict(
        tokens=15e12,
        tokens_per_step=4e6,
        gpu=H100,
        mfu=0.4,
        target_step_s=10,
        deadline_s=90 * DAY,
        dollars_per_gpu_hour=3,
        budget_dollars=10e6,
    )
    return walls.wall_ratios(params, gpus=gpus, **{**case, **changes})


# -- the walls -----------------------------------------------------------------------------------------------
def test_walls_by_hand():
    """70B × 15T on 1,024 H100 at 40 %: 1.12 TB of 81.9 TB; 1.68e18 FLOPs a step; 180 days of 90; $13.3M of
    $10M."""
    assert np.allclose(
        ratios(), [1.12e12 / (1024 * 80e9), 1.68e18 / (1024 * 395.6e12) / 10, 2.0, 1.327], rtol=1e-3
    )


def test_one_gpu_meets_the_memory_wall_at_14_times():
    assert walls.memory_ratio(70e9, H100) == 14


def test_the_first_wall_is_the_one_a_growing_model_meets():
    assert walls.WALLS[walls.first_wall(ratios())] == "deadline"
    assert walls.WALLS[walls.first_wall(ratios(deadline_s=3650 * DAY))] == "budget"
    assert walls.WALLS[walls.first_wall(ratios(gpus=1, tokens=1e9, tokens_per_step=1e3))] == "memory"
    assert (
        walls.first_wall(ratios(5e5, gpus=1, tokens=1e9)) == -1
    )  # half a million parameters: none of this is needed


@given(st.floats(1e6, 1e13), st.integers(1, 10**5))
def test_the_largest_size_is_where_the_first_wall_stands(params, gpus):
    """Just under it no wall is hit, just above it one is: the ratios grow with the parameters."""
    limit = walls.largest_params(params, ratios(params, gpus))
    assert walls.first_wall(ratios(limit * 0.999, gpus)) == -1
    assert walls.first_wall(ratios(limit * 1.001, gpus)) >= 0


@given(st.floats(1e6, 1e12), st.integers(1, 10**5))
def test_more_gpus_move_every_wall_but_the_budget(params, gpus):
    few, many = ratios(params, gpus), ratios(params, 2 * gpus)
    assert np.allclose(many[:3] * 2, few[:3]) and many[3] == pytest.approx(few[3])


@in_one_test(
    "ratio, gpus, expected",
    [(14, 1, 14), (14 / 3, 3, 14), (2.0, 1024, 2048), (2.0001, 1024, 2049), (0.5, 1024, 512), (1e-6, 8, 1)],
)
def test_the_gpus_that_clear_a_wall(ratio, gpus, expected):
    assert walls.gpus_past(ratio, gpus) == expected


def test_the_gpus_named_clear_the_deadline_and_one_less_does_not():
    needed = int(walls.gpus_past(ratios()[2], 1024))
    assert ratios(gpus=needed)[2] <= 1 < ratios(gpus=needed - 1)[2]


def test_a_sweep_is_one_call():
    sweep = ratios(np.array([1e9, 70e9, 405e9]))
    assert sweep.shape == (3, 4)
    assert np.allclose(sweep[1], ratios(70e9))
    assert walls.first_wall(sweep).tolist() == [-1, 2, 2]


# -- the loads -----------------------------------------------------------------------------------------------
def test_training_loads_by_hand():
    params = 70553706496
    expected = [
        16 * params / (1024 * 80e9),
        6 * params * 4e6 / (1024 * 989e12 * 0.4 * 10),
        2 * 2 * params * 1023 / 1024 / (8 * 50e9 * 10),
    ]
    assert np.allclose(walls.training_loads(LLAMA70, H100, 1024, 4e6, 10), expected)
    one_nic = walls.training_loads(LLAMA70, H100, 1024, 4e6, 10, wire_bytes_per_s=50e9, mfu=1)
    assert np.allclose(one_nic, [expected[0], 0.4 * expected[1], 8 * expected[2]])


@in_one_test(
    "gpus, nics, wire",
    [
        (1, None, 450e9),
        (8, None, 450e9),
        (9, None, 400e9),
        (1024, None, 400e9),
        (64, 1, 50e9),
        (64, 2, 100e9),
        (64, 16, 450e9),
        (8, 1, 450e9),
    ],
)
def test_a_ring_has_the_link_in_a_node_and_all_nics_beyond(gpus, nics, wire):
    """DGX H100: NVLink 450 GB/s one way, eight NICs of 50."""
    assert walls.ring_wire_bytes_per_s(H100, gpus, nics) == wire


def test_a_ring_of_gpus_without_a_link_goes_through_a_nic():
    assert walls.ring_wire_bytes_per_s(replace(H100, link_bytes_per_s=0.0), 4) == 50e9


def test_decoding_one_sequence_is_bound_by_bandwidth_and_many_by_memory():
    one = walls.serving_loads(LLAMA8, H100, 1, 1, 1000, 0.02)
    many = walls.serving_loads(LLAMA8, H100, 1, 500, 2000, 0.05)
    assert walls.LOADS[walls.binding_load(one)] == "bandwidth"
    assert walls.LOADS[walls.binding_load(many)] == "memory"
    kv = kv_bytes_per_token(LLAMA8) * 1000
    assert one[0] == pytest.approx((16060522496 + kv) / 80e9)
    weights = 8030261248 - 128256 * 4096 - 65 * 4096  # all but the input embedding and the norms
    assert one[1] == pytest.approx((2 * weights + 4 * 32 * 4096 * 1000) / (989e12 * 0.02))
    assert one[2] == pytest.approx((16060522496 + kv) / (3.35e12 * 0.02))


def test_training_on_many_tokens_is_bound_by_compute():
    assert walls.LOADS[walls.binding_load(walls.training_loads(LLAMA8, H100, 8, 1e7, 100))] == "compute"


@in_one_test("model", list(catalog.all_models().values()), ids=lambda m: m.key)
def test_a_batch_touches_from_the_active_parameters_to_all(model):
    """One token touches what is active (and all embeddings' rows stay counted); a huge batch touches every
    expert."""
    assert walls.touched_parameters(model, 1) == pytest.approx(
        models.active_parameters(model) + model.extra_params
    )
    assert walls.touched_parameters(model, 10**6) == pytest.approx(models.parameters(model))


@given(any_model, any_gpu, st.integers(1, 10**5), st.floats(1, 1e8), st.floats(1e-3, 1e3))
def test_training_loads_are_finite_and_not_negative(model, gpu, gpus, tokens, target_s):
    loads = walls.training_loads(model, gpu, gpus, tokens, target_s)
    assert np.isfinite(loads).all() and (loads >= 0).all()
    assert (loads[2] == 0) == (gpus == 1)


@given(
    any_model,
    any_gpu,
    st.integers(1, 10**4),
    st.integers(1, 10**4),
    st.integers(1, 10**6),
    st.floats(1e-3, 10),
)
def test_serving_loads_are_finite_and_grow_with_the_batch(model, gpu, gpus, batch, context, target_s):
    loads = walls.serving_loads(model, gpu, gpus, batch, context, target_s)
    more = walls.serving_loads(model, gpu, gpus, batch + 1, context, target_s)
    assert np.isfinite(loads).all() and (loads > 0).all() and (more >= loads * (1 - 1e-12)).all()


# -- the AllReduce of 70B, B = 1, T = 8192 -------------------------------------------------------------------
def test_a_step_takes_8_6_s_and_its_allreduce_2_8():
    step = flops.training_flops(70e9, 8192)
    assert step == pytest.approx(3.44e15, rel=1e-3)
    compute_s = flops.run_time_s(step, 1, 1e15, 0.4)
    assert compute_s == pytest.approx(8.6, rel=1e-3)
    assert walls.allreduce_bytes_sent(70e9, 10**6) == pytest.approx(280e9, rel=1e-5)
    allreduce_s = walls.allreduce_s(70e9, 1024, 100e9)
    assert allreduce_s == pytest.approx(2.8, rel=1e-2)
    assert allreduce_s / compute_s == pytest.approx(1 / 3, rel=0.03)


def test_one_rank_sends_nothing():
    assert walls.allreduce_bytes_sent(70e9, 1) == 0
    assert walls.allreduce_s(70e9, 1, 50e9) == 0


@in_one_test(
    "call, complaint",
    [
        (lambda: ratios(gpus=0), ("gpus", "0", "0")),
        (lambda: ratios(target_step_s=-1), ("target_step_s", "0", "-1")),
        (lambda: ratios(deadline_s=0), ("deadline_s", "0")),
        (lambda: ratios(budget_dollars=0), ("budget_dollars", "0")),
        (lambda: walls.allreduce_s(1e9, 1.5, 1e9), ("ranks", "1", "1.5")),
        (lambda: walls.serving_loads(LLAMA8, H100, 1, 0, 1, 1), ("batch", "0", "0")),
        (lambda: walls.training_loads(LLAMA8, H100, 1, 1e6, 0), ("target_step_s", "0", "0")),
    ],
)
def test_bad_input_is_named(call, complaint):
    with refused(*complaint):
        call()
