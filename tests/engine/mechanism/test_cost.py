"""Money: the bill, its waste, its ceiling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.base.units import DAY
from engine.mechanism import cost, flops
from tests.cases import in_one_test
from tests.said import refused

dollars = st.floats(0, 1e10)
shares = st.floats(0.01, 1)


def test_a_bill_by_hand():
    assert cost.run_dollars(1000, 2) == 2000
    assert cost.run_dollars(1000, 2, overhead_share=0.25) == 2500


def test_deepseek_v3_cost_5_6_million():
    """2.788M H800 hours at 2 dollars (arXiv:2412.19437 Table 1)."""
    assert cost.run_dollars(2.788e6, 2.0) == pytest.approx(5.576e6)


def test_35_percent_of_an_achievable_50_wastes_30_percent_not_65():
    assert cost.waste_share(0.35, 0.50) == pytest.approx(0.30)
    assert cost.wasted_dollars(10e6, 0.35, 0.50) == pytest.approx(3e6)


def test_a_well_tuned_run_wastes_nothing():
    assert cost.waste_share(0.5, 0.5) == 0


@given(dollars, shares, shares)
def test_waste_is_what_the_tuned_run_would_not_have_cost(bill, mfu, achievable):
    mfu, achievable = sorted((mfu, achievable))
    hours = [flops.gpu_hours(1e24, 989e12, m) for m in (mfu, achievable)]
    tuned = bill * hours[1] / hours[0]
    assert cost.wasted_dollars(bill, mfu, achievable) == pytest.approx(bill - tuned, abs=1e-6 * bill + 1e-9)


@given(dollars, st.floats(1, 1e10))
def test_over_budget_is_never_negative_and_zero_within(bill, budget):
    over = cost.over_budget_dollars(bill, budget)
    assert over >= 0 and (over == 0) == (bill <= budget)


@given(st.floats(1, 1e10), st.floats(0.1, 100), st.floats(0, 1))
def test_affordable_hours_cost_the_budget(budget, price, overhead):
    hours = cost.affordable_gpu_hours(budget, price, overhead)
    assert cost.run_dollars(hours, price, overhead) == pytest.approx(budget)


def test_what_a_ceiling_pays_for_by_hand():
    """1,000 dollars at 2 an hour and a quarter on top are 400 GPU-hours: 8 GPUs for 50 hours, 33 for 12."""
    assert cost.gpu_hours(8, 50 * 3600) == 400
    assert cost.affordable_s(1000, 8, 2, 0.25) == pytest.approx(50 * 3600)
    assert cost.affordable_gpus(1000, 12 * 3600, 2, 0.25) == 33
    assert cost.left_dollars(900, 1000) == 100 and cost.left_dollars(1100, 1000) == 0


def test_published_runs_give_their_own_durations():
    """DeepSeek-V3: 2.788M hours on 2,048 GPUs are 57 days (arXiv:2412.19437 section 1: under two months)."""
    runs = catalog.all_runs()
    assert runs["deepseek-v3"].duration_s / DAY == pytest.approx(56.7, abs=0.1)
    assert runs["bloom-176b"].duration_s / DAY == pytest.approx(117.5, abs=0.1)
    for run in runs.values():
        assert (
            cost.gpu_hours(run.gpus, run.duration_s) == pytest.approx(run.gpu_hours)
            and run.gpu in catalog.all_gpus()
        )


@in_one_test(
    "call, complaint",
    [
        (lambda: cost.run_dollars(-1, 2), ("gpu_hours", "0", "-1")),
        (lambda: cost.waste_share(35, 0.5), ("mfu", "0", "1", "35")),
        (lambda: cost.waste_share(0.6, 0.5), ("mfu", "achievable_mfu (0.5)", "0.6")),
        (lambda: cost.over_budget_dollars(1, 0), ("budget_dollars", "0", "0")),
        (lambda: cost.gpu_hours(0, 1), ("gpus", "1", "0")),
        (lambda: cost.affordable_gpus(1, 0, 1), ("duration_s", "0", "0")),
        (lambda: cost.left_dollars(1, -1), ("budget_dollars", "0")),
    ],
)
def test_bad_input_is_named(call, complaint):
    with refused(*complaint):
        call()
