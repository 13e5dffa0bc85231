"""Each reason that the page gives for a miss changes what it should, and each that it rules out does not."""

import pytest

from engine import validation
from engine.validation import explanations
from tests.said import refused


def test_nothing_assumed_is_the_groups_own_error():
    for group in ("torchtitan", "DeepSpeed ZeRO-3, 2021", "BLOOM, layouts compared"):
        rows = [r for c in validation.load() if c["group"] == group for r in validation.rows_of(c)]
        times = [abs(row.error) for row in rows if row.quantity == "step_s"]
        assert explanations.mean_error(group) == pytest.approx(sum(times) / len(times))


def test_one_card_a_node_explains_most_of_deepspeeds_error():
    """And gathering weights again to recompute explains some of the rest."""
    group = "DeepSpeed ZeRO-3, 2021"
    all_cards, once = ({"zero_nics": 1.0}, {"gathers_again": False})
    assert explanations.mean_error(group, software=all_cards) > 3 * explanations.mean_error(group)
    assert explanations.mean_error(group, software=once) > 2 * explanations.mean_error(group)


def test_one_card_a_node_explains_what_blooms_sweep_loses_with_its_data_parallel_ranks():
    """It was read off other runs, on another cluster. With all cards the error grows with the ranks; with one
    it is the same at 4 and at 12 of them."""

    def errors(job):
        return [
            explanations.mean_error("BLOOM, layouts compared", case=case, software=job)
            for case in ("11_181B_dp4tp8pp12_mbs4", "14_181B_dp12tp8pp4_mbs4")
        ]

    few, many = errors({"zero_nics": 1.0})
    assert many > few + 0.05
    few, many = errors({})
    assert many == pytest.approx(few, abs=0.01)


def test_the_capped_chip_does_not_explain_torchtitan():
    capped = explanations.mean_error("torchtitan", tdp_w=500.0, hbm_bytes_per_s=2.4e12)
    assert 0.85 * explanations.mean_error("torchtitan") < capped


def test_hidden_tensor_traffic_explains_why_fp8_s_error_followed_the_tensor_ranks():
    """Without it these runs are too fast with one rank and far too slow with eight."""
    group, waits = "NVIDIA on H100, dense fp8", {"overlaps": "data"}
    assert -0.08 < explanations.mean_signed(group, tp=1) < 0
    for size in ("405b", "nemotron15b"):
        told, not_told = (explanations.mean_error(group, case=size, software=job) for job in ({}, waits))
        assert told < 0.6 * not_told


def test_an_unknown_group_is_refused():
    with pytest.raises(ValueError, match="group must be one with step_s"):
        explanations.mean_error("nobody's")
    with refused("tp", "torchtitan", "3"):
        explanations.mean_signed("torchtitan", tp=3)
