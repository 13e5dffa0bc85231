"""Lesson 10 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the
engine."""

import re

import pytest

from course.fences import path
from engine import catalog
from engine.executed import pipeline_schedules
from engine.executed.pipeline_schedules import NOT_OWN
from engine.frameworks import run_by_some
from engine.mechanism import mesh, placement
from engine.mechanism.pipeline_orders import INTERLEAVED, ONE_F_ONE_B
from engine.rules import advice
from engine.step import layout, search
from engine.validation import accuracy
from tests.cases import in_one_test
from tests.engine.rules import test_advice
from tests.lessons.reading import Lesson

LESSON = Lesson("10-nd-parallelism.md")
SEQUENCES = Lesson("08-sequence-and-context.md")
TP, DP, PP = 0, 2, 3  # places of the axes in placement.AXES
GPU = catalog.gpu("h100-sxm")
H100, LLAMA = layout.machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "sum(placement.held_parameters": "5.56B",  # 135.3/32 + 5.3/4
    "state_bytes(mixtral, mixtral_axes) | GB": "89 GB",  # 5.56B · 16
    "mixtral_axes, stage=1) | GB": "35.4 GB",  # 4 · 5.56B + 12 · 1.1B
    "8192 * 16384 * 2": "268 MB",
    "messages_405b.tensor_calls": "504",  # 4 · 126/16 layers · 16 micro-batches
    'sent_405b(innermost="tp").tp.link': "237 GB",  # 504 · 268 MB · 7/4
    'busy_405b(sent_405b(innermost="tp").tp).link': "0.526 s",  # 237 / 450
    'busy_405b(sent_405b(innermost="dp").tp).nic': "4.74 s",  # 237 / 50
    'sent_405b(innermost="tp").dp.nic': "12.6 GB",  # 127/64 · 405.9e9/128 · 2
    "messages_405b.stage_bytes": "33.6 MB",  # 268 / 8
    "memory.state_bytes(models.parameters(llama)) | TB": "1.13 TB",  # 16 · 70.6e9
    "llama.heads": "64",
    "at_rank(300.0).tp": "4",  # 300 = 2 · 128 + 5 · 8 + 4
    "at_rank(300.0).dp": "5",
    "at_rank(300.0).pp": "2",
    "at_rank(200.0).dp": "9",
    "(4 - 1) / 32": "9.38 %",
    "(4 - 1) / (20 * 32)": "0.47 %",
    "memory.state_bytes(parameters_405b) / 128": "50.7 GB",
    "ranks=128, stage=1": "13 GB",  # 3.17e9 · (4 + 12 / 128)
    "(16 - 1) / (4 * 16)": "23.4 %",
    "memory.state_bytes(models.parameters(llama_8b))": "128 GB",
    "(4 - 1) / 8 | %": "37.5 %",
    "512 / (4096 / 32) ?": "4",  # 128 replicas of 32 GPUs
    "(4 - 1) / (512 / (4096 / 32))": "75 %",
    "(4 - 1) / (5 * 4)": "15 %",
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.truth("rank_mesh") == 7 + 15 + 3
    # sixteen times the length: the arithmetic of a token more than doubles, and with it the best step
    longer = LESSON.truth("layout_planner") / LESSON.value("twice_the_batch(gpus=512).step_s")
    assert longer == pytest.approx(30.66 / 13.52, rel=0.02)
    assert LESSON.right("topology_placement") == 2


# -- what the words claim ------------------------------------------------------------------------------------
def test_no_axis_alone_is_any_good():
    """Data alone does not fit; the others take three times the best, or recompute everything."""
    best = advice.tuned("llama3-70b", 512, 512, 8192).step_s
    with pytest.raises(ValueError, match="gpus must be enough"):
        advice.tuned("llama3-70b", 512, 512, 8192, "3d", advice.SequenceSplit(1, 1, 1))
    for alone in (LESSON.value("on_paper(tp=64)"), LESSON.value("on_paper(pp=64)")):
        assert alone.step_s > 3 * best and not run_by_some().allows(LLAMA, alone.layout)
    sharded = advice.tuned("llama3-70b", 512, 512, 8192, "fsdp", advice.SequenceSplit(1, 1, 1))
    assert sharded.layout.recompute == "full" and sharded.step_s > 1.2 * best


def test_the_best_of_the_tools_is_the_best_of_the_whole_search():
    found = search.plan(LLAMA, H100, layout.Job(512, 8192), 512, within=run_by_some())
    best = advice.tuned("llama3-70b", 512, 512, 8192).step_s
    assert found.best.step_s == pytest.approx(best, rel=1e-9)


def test_the_classic_is_the_smallest_that_fits_without_recomputation():
    def fits(tp, pp):
        return layout.estimate(LLAMA, H100, layout.Job(512, 8192), layout.Layout(512, tp, pp, zero=0)).fits

    assert fits(8, 4) and not any(
        fits(tp, pp) for tp, pp in ((8, 1), (8, 2), (4, 8), (4, 4), (2, 16), (1, 32))
    )


def test_each_tool_takes_away_an_axis_as_the_text_says():
    found = [advice.judged("llama3-70b", 512, 512, 8192, tools).search.layout for tools in advice.TOOLS]
    assert [(a.tp, a.pp, a.cp, a.zero) for a in found] == [
        (8, 4, 1, 0),
        (4, 4, 1, 1),
        (4, 1, 1, 3),
        (2, 1, 2, 3),
    ]


def test_four_context_ranks_tie_with_two_of_each_and_their_two_stages_halve_the_gathers():
    def held_to(tp, pp, cp):
        return advice.tuned("llama3-70b", 512, 512, 8192, only=advice.SequenceSplit(tp, pp, cp))

    best, two_stages, one_stage = held_to(2, 1, 2), held_to(1, 2, 4), held_to(1, 1, 4)
    assert best.step_s < two_stages.step_s < 1.01 * best.step_s
    waits = one_stage.time_s["data_exposed"] - two_stages.time_s["data_exposed"]
    assert waits > 5 * two_stages.time_s["data_exposed"] and waits > one_stage.step_s - two_stages.step_s


def test_47_of_60_splits_agree():
    assert len(test_advice.RUNS) * len(advice.TOOLS) == 60 and len(test_advice.DIFFERENCES) == 13
    text = " ".join(LESSON.section("A decision tree").split())
    assert "On fifteen runs and four sets of tools, 47 of 60 splits" in text
    assert (
        len(test_advice.UNSEEN) == 10 and "32 of 40 splits" in text
    )  # counted by tests/engine/rules/test_advice.py


def test_the_tree_of_the_text_names_the_engines_thresholds():
    tree = LESSON.section("A decision tree")
    assert all(
        f"`#!n {name}" in tree for name in ("advice.EXPOSED", "advice.BUBBLES[0]", "search.LEAST_TOKENS")
    )


def test_405b_has_pieces_of_1024_tokens_by_the_tree_and_eight_tensor_ranks_by_the_search():
    found = advice.judged("llama3.1-405b", 16384, 2048, 8192)
    tree, best = found.rules.layout, found.search.layout
    assert (tree.tp, tree.cp, 8192 // tree.cp) == (4, 8, 1024) and (best.tp, best.cp) == (8, 2)
    assert found.lost_by == "compute" and 0 < found.slower_by < 0.03


def test_405b_is_metas_own_layout_and_its_mfu():
    """TP 8, PP 16, DP 128 at 41 % (arXiv:2407.21783 Table 4)."""
    found = advice.judged("llama3.1-405b", 16384, 2048, 8192, "zero1")
    assert advice.written(found.rules.layout) == "TP 8 × PP 16 × DP 128"
    assert found.agree and found.rules.mfu() == pytest.approx(0.41, abs=0.01)


def test_the_groups_of_rank_200_are_those_of_the_solution():
    size = mesh.sizes(512, tp=8, pp=4)
    groups = {
        axis: [rank for rank in range(512) if mesh.peers(float(rank), 200.0, size)._asdict()[axis]]
        for axis in ("tp", "dp", "pp")
    }
    assert groups["tp"] == list(range(200, 208)) and groups["pp"] == [72, 200, 328, 456]
    assert (groups["dp"][0], groups["dp"][-1]) == (128, 248)


# -- which axis has which wire -------------------------------------------------------------------------------
def seconds(tp: int, innermost: int):
    """Tensor-parallel AllReduces of the opening case in one step."""
    sizes, fabric = placement.sizes(64, tp=tp), placement.LeafNetwork(8)
    return placement.axis_times_s(placement.PlacedStep(LLAMA, 64, 8192), sizes, innermost, GPU, fabric).tp


def test_the_opening_case_moves_the_same_bytes_in_more_than_nine_times_the_time():
    work, sizes, fabric = (
        placement.PlacedStep(LLAMA, 64, 8192),
        placement.sizes(64, tp=8),
        placement.LeafNetwork(8),
    )
    inside, across = (placement.wire_bytes(work, sizes, innermost, fabric).tp for innermost in (TP, DP))
    assert inside.link == pytest.approx(across.nic) and inside.nic == across.link == 0
    assert 9 < seconds(8, DP) / seconds(8, TP) < 11


def test_512_gpus_send_for_each_the_tensor_traffic_of_64():
    few = placement.wire_bytes(
        placement.PlacedStep(LLAMA, 64, 8192), placement.sizes(64, tp=8), TP, placement.LeafNetwork(8)
    )
    many = placement.wire_bytes(
        placement.PlacedStep(LLAMA, 512, 8192),
        placement.sizes(512, tp=8, pp=4),
        TP,
        placement.LeafNetwork(64),
    )
    assert few.tp.link == pytest.approx(many.tp.link)


def test_mixtral_does_not_fit_without_zero_and_does_with_its_first_stage():
    mixtral, cut = catalog.model("mixtral-8x22b"), placement.sizes(128, ep=8, pp=4)
    assert (
        placement.state_bytes(mixtral, cut) > GPU.hbm_bytes > 2 * placement.state_bytes(mixtral, cut, stage=1)
    )


def test_sixteen_tensor_ranks_on_nodes_of_eight_take_twice_as_long():
    assert seconds(16, TP) / seconds(8, TP) == pytest.approx(2.1, abs=0.2)


def test_tensor_parallelism_stays_inside_for_405b_and_the_rest_need_not():
    work = placement.PlacedStep(catalog.model("llama3.1-405b"), 2048, 8192)
    sizes, fabric = placement.sizes(16384, tp=8, pp=16), placement.LeafNetwork(2048)
    sent = placement.wire_bytes(work, sizes, TP, fabric)
    assert sent.tp.nic == 0
    assert placement.busy_s(sent.dp, GPU, fabric).nic < 0.1 * 6.15
    assert sent.pp.nic < sent.dp.nic < 0.1 * sent.tp.link


def test_the_three_axes_of_the_table_are_sorted_by_what_they_send():
    sent = placement.wire_bytes(
        placement.PlacedStep(LLAMA, 512, 8192),
        placement.sizes(512, tp=8, pp=4),
        TP,
        placement.LeafNetwork(64),
    )
    totals = [sum(sent[axis][:2]) for axis in (TP, DP, PP)]
    assert totals == sorted(totals, reverse=True)


def test_the_axis_that_is_inside_is_the_fastest_it_can_be_and_tensor_loses_most():
    """The table of three orders: an axis that leaves the node takes longer, tensor by seconds."""
    work, sizes, fabric = (
        placement.PlacedStep(LLAMA, 512, 8192),
        placement.sizes(512, tp=8, pp=4),
        placement.LeafNetwork(64),
    )
    took = {at: placement.axis_times_s(work, sizes, at, GPU, fabric) for at in (TP, DP, PP)}
    for axis in (TP, DP, PP):
        assert took[axis][axis] == min(took[at][axis] for at in took)
    assert took[DP].tp - took[TP].tp > 5 * (took[TP].dp - took[DP].dp)


# -- how far the search is to be trusted ---------------------------------------------------------------------
def test_the_engine_is_right_with_tensor_ranks_and_says_too_little_without():
    signed = {each.axis: each.signed for each in accuracy.by_axis() if each.kind == "hopper dense"}
    assert all(abs(signed[axis]) < 0.02 for axis in ("tp 2", "tp 4", "tp 8", "zero 1"))
    assert signed["tp 1"] < -0.05 and signed["zero 3"] < -0.05


def test_only_the_last_two_tools_shard_all_state():
    stages = [LESSON.value("judged")(tools).search.layout.zero for tools in advice.TOOLS]
    assert [stage == 3 for stage in stages] == [False, False, True, True]


def test_the_estimates_put_the_sweep_in_its_measured_order_but_for_the_two_best():
    """And the prediction of the planner's figure asks for more than the engine can resolve."""
    rows = [LESSON.value(f'validation.row("bloom_prequel_{key}")') for key in LESSON.value("SWEEP")]
    by_measured = sorted(range(len(rows)), key=lambda at: rows[at].measured)
    by_estimate = sorted(range(len(rows)), key=lambda at: rows[at].predicted)
    assert by_measured[2:] == by_estimate[2:] and by_measured[:2] == by_estimate[1::-1]
    best = sorted(row.measured for row in rows)
    assert best[1] / best[0] < 1.02 < LESSON.value("bands.tie()") < best[-1] / best[0]
    longer = LESSON.truth("layout_planner") / LESSON.value("twice_the_batch(gpus=512).step_s")
    assert longer > LESSON.value("bands.tie()")


def test_from_the_first_tool_to_the_last_a_step_gets_a_fifth_shorter_which_may_just_be_ranked():
    first, *_, last = (LESSON.value("judged")(tools).search.step_s for tools in advice.TOOLS)
    assert 1 - last / first == pytest.approx(0.2, abs=0.02)
    assert 1 < first / last / LESSON.value("bands.tie()") < 1.1


def test_the_bad_run_is_the_good_one_and_three_faults_the_largest_of_them_its_order():
    good, order, late, exposed = (
        LESSON.value(part)
        for part in (
            "good_s",
            "tensor_part_s(order=True) - tensor_part_s(order=False)",
            "late_s",
            "exposed_part_s",
        )
    )
    assert order > late > exposed > 0
    assert LESSON.value("bad_s(order=True, slow=True, exposed=True)") == pytest.approx(
        good + order + late + exposed
    )
    assert LESSON.value("bad_s(order=False, slow=True, exposed=True)") / good == pytest.approx(1.19, abs=0.01)
    assert LESSON.value("tensor_part_s(order=True)") > 0.5 * (good + order + late + exposed)
    # one of four stages a fifth slower: the whole pipeline is, nearly
    assert LESSON.value("late") == pytest.approx(1.2, abs=0.01)


# -- the axis that runs out ----------------------------------------------------------------------------------
@pytest.mark.parametrize("chunks", [1, 2])
def test_half_the_micro_batches_double_the_bubbles_part_of_the_arithmetic(chunks):
    """Run block by block: the idle time of a step is the same, and the work half as long."""
    parts = []
    for batches in (16, 8):
        found = pipeline_schedules.run(
            INTERLEAVED if chunks > 1 else ONE_F_ONE_B, 4, batches, chunks, 1, 1, 1, 1, 0, 0, 0, 1, NOT_OWN
        )
        parts.append(found["bubble"] / (1 - found["bubble"]))
    assert parts == pytest.approx([3 / (16 * chunks), 3 / (8 * chunks)])


def test_old_addresses_lead_to_the_second_page():
    """What stood on this page before has its place there, and the link under its old anchor goes to it."""
    places = path.anchors("10b-the-long-run.md")
    text = re.sub(r"\s+", " ", LESSON.text)
    moved = re.findall(r"\]\(10b-the-long-run\.md#([\w-]+)\)\{ #([\w-]+) data-moved \}", text)
    moved += re.findall(r'href="\.\./10b-the-long-run/#([\w-]+)" id="([\w-]+)" data-moved', text)
    assert len(moved) == 6 and all(old == new and new in places for new, old in moved)


def test_four_tensor_ranks_and_eight_stages_overflow_by_less_than_a_gigabyte():
    found = layout.estimate(LLAMA, H100, layout.Job(512, 8192), layout.Layout(512, 4, 8, zero=0))
    assert 0 < found.memory_bytes["total"] - LESSON.value('memory.capacity_bytes(gpu("h100-sxm"))') < 1e9


def test_every_row_of_the_tree_s_table_is_a_tie():
    [table] = [one for one in LESSON.source.fences if one.kind == "table" and "advice.judged" in one.source]
    rows = LESSON.value(table.source.split("rows: >-")[1].split("columns:")[0].strip())
    assert len(rows) == 6 and max(row.slower_by for row in rows) < LESSON.value("bands.tie() - 1")


def test_of_each_expert_of_the_design_there_are_as_many_copies_as_it_says():
    """EP 8 × PP 4 × DP 32: the data ranks are 8 expert ranks by 4 copies."""
    axes = LESSON.value("mixtral_axes")
    assert (axes.ep, axes.dp, axes.pp) == (8, 32, 4) and placement.levels(axes).copies == 4
    assert "EP 8 × PP 4 × DP 32" in LESSON.text and "DP 4 " not in LESSON.text


def test_405b_takes_less_under_zero_2_by_its_gradients():
    def fullest(zero):
        cut = layout.Layout(16384, 8, 16, zero=zero, schedule="interleaved", interleave=4)
        job = layout.Job(2048, 8192)
        return layout.estimate(catalog.model("llama3.1-405b"), H100, job, cut).memory_bytes["total"]

    assert fullest(1) - fullest(2) == pytest.approx(LESSON.value("2 * parameters_405b / 128"), rel=0.02)
    assert fullest(1) == pytest.approx(LESSON.value('meta.rules.memory_bytes["total"]'))


def test_sequence_parallelism_is_why_a_step_s_tensor_traffic_takes_longer_than_its_all_reduces():
    plain = layout.Job(512, 8192, software=catalog.modern(sequence_parallel=False))
    classic = LESSON.value("classic")
    without = layout.estimate(LLAMA, H100, plain, classic.layout).time_s["tensor"]
    assert without == pytest.approx(LESSON.value('placed_s(innermost="tp").tp'))
    assert classic.time_s["tensor"] / without == pytest.approx(SEQUENCES.value("sharded_sends"), rel=1e-3)
