"""ZeRO's stages as a whole: the tables of the paper, traffic against executed runs, wires and arithmetic by
hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.executed import executed_training as executed
from engine.executed import zero
from engine.mechanism import hiding, memory
from tests.cases import in_one_test

ADAM, H100 = catalog.recipe("bf16-adam"), catalog.gpu("h100-sxm")
STAGES = np.arange(4.0)


# -- what fits -----------------------------------------------------------------------------------------------
def test_the_largest_model_of_each_stage_is_the_papers():
    """arXiv:1910.02054 Table 2, 64 GPUs of 32 GB, "Max Theoretical Model Size": the table cuts after one
    digit."""
    assert zero.largest_params(32e9, ADAM, 64, STAGES) / 1e9 == pytest.approx([2, 7.6, 14.4, 128], abs=0.05)


def test_parts_add_up_to_the_state():
    """7.5B on 64 under stage 2: 15 GB of weights, 15/64 of gradients, 90/64 of optimizer."""
    parts = zero.state_parts_bytes(7.5e9, ADAM, 64, STAGES)
    assert parts[2] == pytest.approx([15e9, 15e9 / 64, 90e9 / 64])
    assert parts.sum(axis=-1) == pytest.approx(memory.sharded_state_bytes(7.5e9, ADAM, 64, STAGES))


def test_ranks_to_fit_by_hand():
    """13B, 40 GB: whole state 208 GB. Stage 1 keeps 52 GB whole: never. Stage 2: 26 + 182/N, 13. Stage 3:
    208/40, 6."""
    assert zero.ranks_to_fit(13e9, 40e9, ADAM, STAGES).tolist() == [0, 0, 13, 6]
    assert zero.ranks_to_fit(5e9, 80e9, ADAM, STAGES).tolist() == [1, 1, 1, 1]  # 80 GB fill 80 GB


@settings(max_examples=100, deadline=None)
@given(params=st.floats(1e8, 1e12), hbm=st.floats(1e9, 1e12), stage=st.integers(0, 3))
def test_that_many_fit_and_one_less_do_not(params, hbm, stage):
    needed = float(zero.ranks_to_fit(params, hbm, ADAM, stage))
    if not needed:
        assert zero.whole_bytes(params, ADAM, stage) >= hbm * (1 - 1e-12)
        return
    assert memory.sharded_state_bytes(params, ADAM, needed, stage) <= hbm * (1 + 1e-9)
    assert needed == 1 or memory.sharded_state_bytes(params, ADAM, needed - 1, stage) > hbm * (1 - 1e-9)


# -- what a step sends ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("stage", executed.STAGES)
def test_bytes_are_those_of_executed_ranks(stage):
    task = executed.problem()
    sent = executed.train(task, 8, stage, steps=1).sent_elements
    traffic = zero.step_traffic(task.parameters, 8, 8, stage, ADAM, H100, 50e9)
    assert traffic.total_bytes == pytest.approx(2 * sent[0]) and traffic.replicas_bytes == 0


def test_traffic_by_hand():
    """7.5B on 64: P·63/64 elements of two bytes, 14.77 GB, a pass; rings through whole nodes have 8 · 50
    GB/s."""
    traffic = zero.step_traffic(7.5e9, 64, 64, STAGES, ADAM, H100, 50e9)
    assert traffic.total_bytes / (15e9 * 63 / 64) == pytest.approx([2, 2, 2, 3])
    assert traffic.total_s == pytest.approx(traffic.total_bytes / 400e9)
    assert traffic.gradients_bytes / traffic.total_bytes == pytest.approx([1, 1 / 2, 1 / 2, 1 / 3])


def test_accumulation_spares_the_stages_that_keep_the_gradient():
    """Four micro-batches: 2 and 1 + 1 passes as before, 4 + 1 of stage 2, 4 · 3 of stage 3."""
    gradients, weights = zero.passes(STAGES, 4)
    assert gradients.tolist() == [2, 1, 4, 4] and weights.tolist() == [0, 1, 1, 8]


def test_hybrid_sharding_by_hand():
    """8 × 8: three passes of 7/8 · 15 GB over NVLink, then 2 · 7/8 · 15 GB/8 through one NIC a GPU."""
    traffic = zero.step_traffic(7.5e9, 64, 8, 3, ADAM, H100, 50e9)
    assert traffic.weights_s + traffic.gradients_s == pytest.approx(3 * 7 / 8 * 15e9 / 450e9)
    assert traffic.replicas_s == pytest.approx(2 * 7 / 8 * 15e9 / 8 / 50e9)


def test_groups_of_all_are_no_groups():
    whole = zero.step_traffic(7.5e9, 64, 64, STAGES, ADAM, H100, 50e9)
    assert np.array_equal(zero.step_traffic(7.5e9, 64, 4096, STAGES, ADAM, H100, 50e9), whole)
    assert zero.step_traffic(7.5e9, 64, 8, 0, ADAM, H100, 50e9).total_s == whole.total_s[0], (
        "stage 0 shares nothing"
    )


@in_one_test(
    "ranks, stride, rate",
    [
        (8, 1, 450e9),
        (64, 1, 400e9),
        (4, 2, 450e9),
        (16, 4, 100e9),
        (8, 8, 50e9),
        (2, 64, 50e9),
        (1, 1, 450e9),
    ],
)
def test_the_wire_of_a_group(ranks, stride, rate):
    assert zero.ring_wire_bytes_per_s(ranks, stride, H100, 50e9) == rate


def test_the_tokens_to_hide_are_those_of_the_formula():
    traffic = zero.step_traffic(7.5e9, 64, 64, 3, ADAM, H100, 50e9)
    arithmetic = zero.arithmetic_s(7.5e9, 2048, 0.4 * 989e12)
    assert zero.tokens_to_hide(2048, traffic.total_s, arithmetic) == pytest.approx(
        hiding.tokens_to_hide(64, 400e9, 0.4 * 989e12)
    )
    assert traffic.total_s / arithmetic == pytest.approx(
        hiding.tokens_to_hide(64, 400e9, 0.4 * 989e12) / 2048
    )


def test_accumulating_does_not_change_how_stage_three_hides():
    once, four = (
        zero.step_traffic(7e9, 64, 64, 3, ADAM, H100, 50e9, m).total_s
        / zero.arithmetic_s(7e9, 1024, 0.4 * 989e12, m)
        for m in (1, 4)
    )
    assert once == pytest.approx(four)


# -- each part behind its own pass ---------------------------------------------------------------------------
def behind(stage, group=64, nic=50e9, tokens=2048, micro_batches=1):
    traffic = zero.step_traffic(7.5e9, 64, group, stage, ADAM, H100, nic, micro_batches)
    return traffic, stage, zero.arithmetic_s(7.5e9, tokens, 0.4 * 989e12, micro_batches), micro_batches


@pytest.mark.parametrize("micro_batches", [1, 8])
def test_all_stages_hide_from_lesson_fours_tokens(micro_batches):
    """2P against 4PT, P against 2PT twice, 2P against 4PT: 0.4 · 989e12 / 400e9 · 63/64 = 973.5, accumulated
    or not."""
    at = zero.behind_passes(*behind(STAGES, micro_batches=micro_batches))
    assert 2048 * at.pressure == pytest.approx([0.4 * 989e12 / 400e9 * 63 / 64] * 4)


@pytest.mark.parametrize(
    ("stage", "group", "seconds"), [(1, 64, 1.8966), (3, 8, 1.8477), (3, 64, 24.6226), (0, 64, 2.0519)]
)
def test_exposed_by_hand(stage, group, seconds):
    """Forward 0.1553, backward 0.3106; a pass over one card 1.18125. Stage 1: 1.18125 - 0.1553 and - 0.3106.
    HSDP: 2.1 + 2 · 0.02917 - 0.3106. Stage 3: 8 · (3 · 1.18125 - 0.4659). Stage 0: 2.3625 - 0.3106."""
    assert zero.exposed_s(*behind(stage, group, 12.5e9 / 8, 4096, 8)) == pytest.approx(seconds, abs=1e-4)
    *alone, one = behind(stage, group, 12.5e9 / 8, 4096, 1)
    assert zero.exposed_s(*alone) == zero.exposed_s(*alone, one)  # a single micro-batch, where none is said


def test_wires_as_busy_as_can_hide_have_a_full_pass():
    """Stages 0 and 1: 4PT and 2 · 2PT of 6PT; stage 3: all. One GPU sends nothing, and anything could
    hide."""
    traffic, stage, arithmetic, _ = behind(STAGES)
    assert zero.can_hide_s(traffic, stage, arithmetic) / arithmetic == pytest.approx([2 / 3, 2 / 3, 2 / 3, 1])
    alone = zero.step_traffic(7.5e9, 1, 1, STAGES, ADAM, H100, 50e9)
    assert zero.can_hide_s(alone, STAGES, 2.0).tolist() == [2, 2, 2, 2]


# -- bad input -----------------------------------------------------------------------------------------------
@in_one_test("bad", [float("nan"), float("inf"), -1, "seven"], ids=str)
@in_one_test(
    "call",
    [
        lambda x: zero.largest_params(x, ADAM, 8, 3),
        lambda x: zero.whole_bytes(x, ADAM, 1),
        lambda x: zero.whole_bytes(1e9, ADAM, x),
        lambda x: zero.ranks_to_fit(1e9, x, ADAM, 1),
        lambda x: zero.shard_group(x, 8, 1),
        lambda x: zero.shard_group(8, x, 1),
        lambda x: zero.passes(1, x),
        lambda x: zero.passes(x),
        lambda x: zero.ring_wire_bytes_per_s(8, 1, H100, x),
        lambda x: zero.ring_wire_bytes_per_s(x, 1, H100, 1e9),
        lambda x: zero.step_traffic(x, 8, 8, 3, ADAM, H100, 1e9),
        lambda x: zero.arithmetic_s(1e9, x, 1e15),
        lambda x: zero.arithmetic_s(1e9, 1, 1e15, x),
        lambda x: zero.tokens_to_hide(1.0, x, 1.0),
        lambda x: zero.tokens_to_hide(1.0, 1.0, x),
        lambda x: zero.tokens_to_hide(x, 1.0, 1.0),
    ],
)
def test_bad_numbers_are_refused(call, bad):
    with pytest.raises(ValueError, match="must be"):
        call(bad)
