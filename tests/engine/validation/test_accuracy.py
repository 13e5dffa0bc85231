"""The table of goals: the errors allowed, the errors found, and that no goal is left out."""

import math

import pytest

from engine.base import printing
from engine.calibration import bands, known
from engine.validation import accuracy
from tests.cases import in_one_test
from tests.said import lacks


def test_a_goal_is_met_where_the_error_is_at_most_what_is_allowed():
    assert accuracy.Goal("a", "mean", 3, 0.1, 0.1).met
    assert not accuracy.Goal("a", "mean", 3, 0.1, 0.101).met
    assert [accuracy.Covered("a", 3, share).met for share in (0.74, 0.75, 0.9, 0.91)] == [
        False,
        True,
        True,
        False,
    ]


def test_the_table_has_what_was_asked_for_with_the_figures_of_the_files():
    goals = {goal.what: goal for goal in accuracy.goals()}
    assert len(goals) == len(accuracy.RUNS) + len(accuracy.OPERATIONS)
    assert goals["training steps, Blackwell"].found == bands.runs()["goal"]["blackwell"]["mean_error"]
    products = known.residuals()["total"]["held_out"]["gemm"]
    assert goals["matrix products, above the launch"].found == products["above_floor"]
    assert all(goal.rows > 20 for goal in goals.values())


def test_every_band_that_an_answer_may_use_is_judged():
    covered = {each.what for each in accuracy.coverage()}
    for what, kinds in bands.runs()["band"].items():
        for kind in kinds:
            assert kind == "all" or f"{what}: {kind}" in covered
    single = known.residuals()["total"]["held_out"]
    for key, what in accuracy.OPERATIONS:
        [found] = [each for each in accuracy.coverage() if each.what == f"operation: {what}"]
        assert found.rows == single[key]["rows"] and 0.7 < found.share < 0.9


def test_operations_keep_their_goals():
    """Whole runs may still miss theirs, and the page says so; single operations must not fall back."""
    for goal in accuracy.goals():
        assert goal.measure == "mean" or goal.met, goal


@in_one_test(
    "what, most",
    [("hopper and ampere dense", 0.12), ("hopper and ampere moe", 0.24), ("blackwell", 0.24),
     ("tpu", 0.21), ("memory", 0.12), ("latency", 0.18), ("throughput", 0.15)],
)  # fmt: skip
def test_whole_runs_do_not_get_worse(what, most):
    assert bands.runs()["goal"][what]["mean_error"] <= most


def test_an_axis_with_as_many_runs_as_are_asked_for_is_told():
    every = accuracy.by_axis()
    most = sorted({each.runs for each in every})
    for fewest in (most[0], most[len(most) // 2], most[-1]):
        told = accuracy.by_axis(fewest)
        assert told == tuple(each for each in every if each.runs >= fewest)
        assert min(each.runs for each in told) == fewest


def test_the_axes_of_every_class_are_told():
    kinds = {each.kind for each in accuracy.by_axis()}
    assert {"hopper dense", "hopper moe", "blackwell dense", "blackwell moe", "tpu dense"} <= kinds
    hopper = {each.axis for each in accuracy.by_axis() if each.kind == "hopper dense"}
    assert {"tp 1", "tp 8", "zero 1", "zero 3", "cp 2", "precision fp8"} <= hopper
    assert not any(axis.startswith("gpus") for axis in hopper)


def test_what_a_choice_would_have_cost_is_told_of_every_source_that_varied_the_layout_alone():
    everything, *sources = accuracy.regret()
    assert everything.family == "all" and {"BLOOM, layouts compared", "NVIDIA on H100, dense fp8"} <= {
        each.family for each in sources
    }
    assert everything.jobs == sum(each.jobs for each in sources) >= 25
    assert everything.layouts == sum(each.layouts for each in sources) >= 2 * everything.jobs
    for each in accuracy.regret():
        assert 0.0 <= each.mean <= each.worst and each.mean <= each.spread and each.tied <= each.jobs
        assert each.chance == pytest.approx(each.spread / 2, abs=1e-4) or each.layouts > 2 * each.jobs


def test_the_choice_costs_far_less_than_the_worst_layout_and_the_tie_holds_the_best():
    everything = accuracy.regret()[0]
    assert everything.mean < everything.spread / 2.0
    assert everything.tied == everything.jobs


def test_of_runs_that_ran_nearly_all_are_judged_to_fit():
    everything, *sources = accuracy.ran()
    assert everything.runs == sum(each.runs for each in sources) > 400
    assert everything.fit == sum(each.fit for each in sources) >= 0.96 * everything.runs
    by_name = {each.family: each for each in sources}
    for name in (
        "Bridge deepseek-v3",
        "Bridge llama3.1-405b",
        "Bridge qwen3-30b-a3b",
        "BLOOM, layouts compared",
    ):
        assert by_name[name].fit == by_name[name].runs, name


def test_the_command_prints_regret_and_fits():
    said = printing.text(accuracy.parts(), math.inf)
    everything, *_ = accuracy.ran()
    assert not lacks(said, "Regret", "mean_regret_share", everything.runs, everything.fit)
