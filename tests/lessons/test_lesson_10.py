"""Lesson 10 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the engine."""

import pytest

from engine import advice, catalog, cost, layout, mesh, models, reliability, search
from tests.engine import test_advice
from tests.lessons.reading import Lesson
from widgets.kit import prose

LESSON = Lesson("10-nd-parallelism.md")
H100, LLAMA = layout.machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")
YOUNG = "reliability.young_interval_s(60, reliability.mean_time_between_failures_s(16384)) | min"

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    'memory.state_bytes(models.parameters(model("llama3-70b"))) | TB': "1.13 TB",        # 16 · 70.6e9
    'model("llama3-70b").heads': "64",
    "mesh.coordinates(300.0, mesh.sizes(512, tp=8, pp=4)).tp": "4",                      # 300 = 2 · 128 + 5 · 8 + 4
    "mesh.coordinates(300.0, mesh.sizes(512, tp=8, pp=4)).dp": "5",
    "mesh.coordinates(300.0, mesh.sizes(512, tp=8, pp=4)).pp": "2",
    "mesh.coordinates(200.0, mesh.sizes(512, tp=8, pp=4)).dp": "9",
    "(4 - 1) / 32": "9.38 %",
    "(4 - 1) / (20 * 32)": "0.47 %",
    "reliability.LLAMA3_FAILURES_PER_GPU_S * units.YEAR": "0.173",                       # 419 / 16,384 / 54 · 365.25
    "1 / reliability.LLAMA3_FAILURES_PER_GPU_S": "5.8 years",
    "reliability.mean_time_between_failures_s(16384) | h": "3.09 h",
    YOUNG: "19.3 min",                                                                   # √(120 · 11,135) = 1,156 s
    "reliability.wasted_share(": "15.8 %",                                               # 5.19 + 5.19 + 5.39
    '14 * models.parameters(model("llama3.1-405b")) | TB': "5.68 TB",
    '14 * models.parameters(model("llama3.1-405b")) / 2e12 | s': "2.84 s",
    "16384 * (1 - 0.8)": "3,277",
    "16384 * 54 / 6": "147,456",
    "1 / 16 | %": "6.25 %",
    "cost.run_dollars(cost.gpu_hours(512, 21 * 86400), 3, 0.1)": "$852k",
    "cost.run_dollars(cost.gpu_hours(512, 86400), 3, 0.1)": "$40.6k",
    "cost.affordable_s(1e6, 512, 3, 0.1)": "24.7 days",
    'memory.state_bytes(models.parameters(model("llama3.1-405b"))) / 128': "50.7 GB",
    "ranks=128, stage=1": "13 GB",                                                       # 3.17e9 · (4 + 12 / 128)
    "(16 - 1) / (4 * 16)": "23.4 %",
    "reliability.mean_time_between_failures_s(24576)": "2.06 h",
    "600 / (1 - 0.85)": "1.1 h",
    'memory.state_bytes(models.parameters(model("llama3-8b")))': "128 GB",
    "reliability.mean_time_between_failures_s(1024)": "49.5 h",
    "reliability.failures_per_gpu_s(992, 1,": "44 min",                                  # 12 h · 992 / 16,384
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_its_figures_in_order():
    assert LESSON.widgets() == ["rank_mesh", "layout_planner", "goodput", "budget_guard"]


def test_predictions_are_right_where_the_engine_says_so():
    found = dict(zip(LESSON.widgets(), LESSON.right_answers()))
    assert {name: eval(right, prose.namespace()) for name, right in found.items()} == {
        "rank_mesh": 2, "layout_planner": 2, "goodput": 1, "budget_guard": 0}


# -- what the words claim --------------------------------------------------------------------------------------------
def test_no_axis_alone_is_any_good():
    """Data alone does not fit; the others take three times the best, or recompute everything."""
    best = advice.tuned("llama3-70b", 512, 512, 8192).step_s
    with pytest.raises(ValueError):
        advice.tuned("llama3-70b", 512, 512, 8192, "3d", advice.Split(1, 1, 1))
    for split in (advice.Split(64, 1, 1), advice.Split(1, 64, 1)):
        assert advice.tuned("llama3-70b", 512, 512, 8192, "3d", split).step_s > 3 * best
    sharded = advice.tuned("llama3-70b", 512, 512, 8192, "fsdp", advice.Split(1, 1, 1))
    assert sharded.layout.recompute == "full" and sharded.step_s > 1.2 * best


def test_the_best_of_the_tools_is_the_best_of_the_whole_search():
    found = search.plan(LLAMA, H100, layout.Job(512, 8192), 512)
    assert found.best.step_s == pytest.approx(advice.tuned("llama3-70b", 512, 512, 8192).step_s)


def test_the_classic_is_the_smallest_that_fits_without_recomputation():
    def fits(tp, pp):
        return layout.estimate(LLAMA, H100, layout.Job(512, 8192), layout.Layout(512, tp, pp, zero=0)).fits
    assert fits(8, 4) and not any(fits(tp, pp) for tp, pp in ((8, 1), (8, 2), (4, 8), (4, 4), (2, 16), (1, 32)))


def test_each_tool_takes_away_an_axis_as_the_text_says():
    found = [advice.judged("llama3-70b", 512, 512, 8192, tools).search.layout for tools in advice.TOOLS]
    assert [(a.tp, a.pp, a.cp, a.zero) for a in found] == [(8, 4, 1, 0), (4, 4, 1, 1), (4, 1, 1, 3), (2, 2, 4, 2)]
    tree = advice.judged("llama3-70b", 512, 512, 8192)
    assert tree.rules.layout.tp == 1 and 0 < tree.slower_by < 0.005      # "as good as"


def test_fifty_of_sixty_splits_agree():
    assert len(test_advice.RUNS) * len(advice.TOOLS) == 60 and len(test_advice.DIFFERENCES) == 10
    text = " ".join(LESSON.section("A decision tree").split())
    assert "On fifteen runs and four sets of tools, fifty of sixty splits" in text
    assert len(test_advice.UNSEEN) == 10 and "30 of 40 splits" in text     # counted by tests/engine/test_advice.py


def test_the_tree_of_the_text_names_the_engines_thresholds():
    tree = LESSON.section("A decision tree")
    assert all(f"`#!n {name}" in tree for name in ("advice.EXPOSED", "advice.BUBBLES[0]", "search.LEAST_TOKENS"))


def test_405b_is_refused_for_its_bubble():
    """TP 4 × CP 4 × PP 16 leaves 32 micro-batches: 15 / (4 · 32) with four chunks, and 7 · 16 of 126 layers are the most."""
    found = advice.judged("llama3.1-405b", 16384, 2048, 8192).search.layout
    assert (found.tp, found.cp, found.pp, found.interleave, 2048 // found.dp) == (4, 4, 16, 4, 32)
    assert 15 / (7 * 32) > advice.BUBBLES[0]


def test_405b_is_metas_own_layout_and_its_mfu():
    """TP 8, PP 16, DP 128 at 41 % (arXiv:2407.21783 Table 4)."""
    found = advice.judged("llama3.1-405b", 16384, 2048, 8192, "zero1")
    assert found.agree and advice.written(found.search.layout) == "TP 8 × PP 16 × DP 128"
    assert found.search.mfu() == pytest.approx(0.41, abs=0.01)


def test_the_goodput_of_the_envelope_is_over_90_percent_and_is_what_the_money_is_divided_by():
    mtbf_s = reliability.mean_time_between_failures_s(16384)
    write_s = 14 * models.parameters(catalog.model("llama3.1-405b")) / 2e12
    best = reliability.best_interval_s(write_s, mtbf_s)
    assert reliability.useful_share(best, write_s, mtbf_s, 600) == pytest.approx(0.926, abs=5e-4)


def test_the_groups_of_rank_200_are_those_of_the_solution():
    size = mesh.sizes(512, tp=8, pp=4)
    groups = {axis: [rank for rank in range(512) if mesh.peers(float(rank), 200.0, size)._asdict()[axis]]
              for axis in ("tp", "dp", "pp")}
    assert groups["tp"] == list(range(200, 208)) and groups["pp"] == [72, 200, 328, 456]
    assert (groups["dp"][0], groups["dp"][-1]) == (128, 248)


def test_twice_the_gpus_cost_the_same():
    """At equal MFU and goodput the bill has no GPUs in it."""
    assert cost.run_dollars(cost.gpu_hours(512, 100), 3) == cost.run_dollars(cost.gpu_hours(1024, 50), 3)


def test_the_designs_percentage_is_what_the_interval_leaves():
    mtbf_s = reliability.mean_time_between_failures_s(1024)
    useful = reliability.useful_share(reliability.best_interval_s(60, mtbf_s), 60, mtbf_s, 600)
    assert useful == pytest.approx(0.971, abs=5e-4)
