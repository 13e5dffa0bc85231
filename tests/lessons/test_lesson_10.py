"""Lesson 10 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the
engine."""

import os
import subprocess
import sys

import numpy as np
import pytest

from engine import catalog
from engine.catalog import models
from engine.course import accuracy
from engine.mechanism import cost, mesh, placement, reliability
from engine.step import advice, layout, search
from tests import pytorch
from tests.engine.step import test_advice
from tests.lessons.reading import Lesson

LESSON = Lesson("10-nd-parallelism.md")
TP, DP, PP = 0, 2, 3  # places of the axes in placement.AXES
GPU = catalog.gpu("h100-sxm")
H100, LLAMA = layout.machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")
YOUNG = "young_s(checkpoint_s=60) | min"

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
    "reliability.LLAMA3_FAILURES_PER_GPU_S * units.YEAR": "0.173",  # 419 / 16,384 / 54 · 365.25
    "1 / reliability.LLAMA3_FAILURES_PER_GPU_S": "5.8 years",
    "M | h": "3.09 h",
    YOUNG: "19.3 min",  # √(120 · 11,135) = 1,156 s
    "reliability.wasted_share(": "15.8 %",  # 5.19 + 5.19 + 5.39
    "checkpoint_bytes | TB": "5.68 TB",
    "checkpoint_bytes / 2e12 | s": "2.84 s",
    "16384 * (1 - 0.8)": "3,277",
    "16384 * 54 / 6": "147,456",
    "1 / 16 | %": "6.25 %",
    "dollars(gpus=512, seconds=21 * 86400)": "$852k",
    "dollars(gpus=512, seconds=86400)": "$40.6k",
    "lasts_s(budget=1e6, gpus=512)": "24.7 days",
    "memory.state_bytes(parameters_405b) / 128": "50.7 GB",
    "ranks=128, stage=1": "13 GB",  # 3.17e9 · (4 + 12 / 128)
    "(16 - 1) / (4 * 16)": "23.4 %",
    "mtbf_s(24576)": "2.06 h",
    "600 / (1 - 0.85)": "1.1 h",
    "memory.state_bytes(models.parameters(llama_8b))": "128 GB",
    "mtbf_s(1024)": "49.5 h",
    "failures_per_gpu_s=opt_failures": "44 min",  # 12 h · 992 / 16,384
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.truth("rank_mesh") == 7 + 15 + 3
    assert LESSON.right("layout_planner") == 2
    assert LESSON.right("topology_placement") == 2
    assert LESSON.truth("goodput") == pytest.approx(np.sqrt(2 * 60 * 16 * 3.09 * 3600), rel=0.03)
    assert LESSON.truth("budget_guard") == 30.84e6


# -- what the words claim ------------------------------------------------------------------------------------
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
    assert found.best.step_s == pytest.approx(advice.tuned("llama3-70b", 512, 512, 8192).step_s, rel=0.005)


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
        (1, 2, 4, 3),
    ]
    tree = advice.judged("llama3-70b", 512, 512, 8192)
    assert tree.rules.layout.tp == 1 and tree.agree


def test_49_of_60_splits_agree():
    assert len(test_advice.RUNS) * len(advice.TOOLS) == 60 and len(test_advice.DIFFERENCES) == 11
    text = " ".join(LESSON.section("A decision tree").split())
    assert "On fifteen runs and four sets of tools, 49 of 60 splits" in text
    assert (
        len(test_advice.UNSEEN) == 10 and "33 of 40 splits" in text
    )  # counted by tests/engine/step/test_advice.py


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
    assert 0 < found.slower_by < 0.03 and found.rules.mfu() == pytest.approx(0.41, abs=0.01)


def test_the_goodput_of_the_envelope_is_over_90_percent_and_is_what_the_money_is_divided_by():
    mtbf_s = reliability.mean_time_between_failures_s(16384)
    write_s = 14 * models.parameters(catalog.model("llama3.1-405b")) / 2e12
    best = reliability.best_interval_s(write_s, mtbf_s)
    assert reliability.useful_share(best, write_s, mtbf_s, 600) == pytest.approx(0.926, abs=5e-4)


def test_the_groups_of_rank_200_are_those_of_the_solution():
    size = mesh.sizes(512, tp=8, pp=4)
    groups = {
        axis: [rank for rank in range(512) if mesh.peers(float(rank), 200.0, size)._asdict()[axis]]
        for axis in ("tp", "dp", "pp")
    }
    assert groups["tp"] == list(range(200, 208)) and groups["pp"] == [72, 200, 328, 456]
    assert (groups["dp"][0], groups["dp"][-1]) == (128, 248)


def test_twice_the_gpus_cost_the_same():
    """At equal MFU and goodput the bill has no GPUs in it."""
    assert cost.run_dollars(cost.gpu_hours(512, 100), 3) == cost.run_dollars(cost.gpu_hours(1024, 50), 3)


def test_the_designs_percentage_is_what_the_interval_leaves():
    mtbf_s = reliability.mean_time_between_failures_s(1024)
    useful = reliability.useful_share(reliability.best_interval_s(60, mtbf_s), 60, mtbf_s, 600)
    assert useful == pytest.approx(0.971, abs=5e-4)


# -- which axis has which wire -------------------------------------------------------------------------------
def seconds(tp: int, innermost: int):
    """Tensor-parallel AllReduces of the opening case in one step."""
    sizes, fabric = placement.sizes(64, tp=tp), placement.Fabric(8)
    return placement.axis_times_s(placement.Work(LLAMA, 64, 8192), sizes, innermost, GPU, fabric).tp


def test_the_opening_case_moves_the_same_bytes_in_more_than_nine_times_the_time():
    work, sizes, fabric = placement.Work(LLAMA, 64, 8192), placement.sizes(64, tp=8), placement.Fabric(8)
    inside, across = (placement.wire_bytes(work, sizes, innermost, fabric).tp for innermost in (TP, DP))
    assert inside.link == pytest.approx(across.nic) and inside.nic == across.link == 0
    assert 9 < seconds(8, DP) / seconds(8, TP) < 11


def test_512_gpus_send_for_each_the_tensor_traffic_of_64():
    few = placement.wire_bytes(
        placement.Work(LLAMA, 64, 8192), placement.sizes(64, tp=8), TP, placement.Fabric(8)
    )
    many = placement.wire_bytes(
        placement.Work(LLAMA, 512, 8192), placement.sizes(512, tp=8, pp=4), TP, placement.Fabric(64)
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
    work = placement.Work(catalog.model("llama3.1-405b"), 2048, 8192)
    sizes, fabric = placement.sizes(16384, tp=8, pp=16), placement.Fabric(2048)
    sent = placement.wire_bytes(work, sizes, TP, fabric)
    assert sent.tp.nic == 0
    assert placement.busy_s(sent.dp, GPU, fabric).nic < 0.1 * 6.15
    assert sent.pp.nic < sent.dp.nic < 0.1 * sent.tp.link


def test_the_three_axes_of_the_table_are_sorted_by_what_they_send():
    sent = placement.wire_bytes(
        placement.Work(LLAMA, 512, 8192), placement.sizes(512, tp=8, pp=4), TP, placement.Fabric(64)
    )
    totals = [sum(sent[axis][:2]) for axis in (TP, DP, PP)]
    assert totals == sorted(totals, reverse=True)


def test_the_axis_that_is_inside_is_the_fastest_it_can_be_and_tensor_loses_most():
    """The table of three orders: an axis that leaves the node takes longer, tensor by seconds."""
    work, sizes, fabric = (
        placement.Work(LLAMA, 512, 8192),
        placement.sizes(512, tp=8, pp=4),
        placement.Fabric(64),
    )
    took = {at: placement.axis_times_s(work, sizes, at, GPU, fabric) for at in (TP, DP, PP)}
    for axis in (TP, DP, PP):
        assert took[axis][axis] == min(took[at][axis] for at in took)
    assert took[DP].tp - took[TP].tp > 5 * (took[TP].dp - took[DP].dp)


# -- what two GPUs should have in common ---------------------------------------------------------------------
# Rank 1 computes one wrong number. Plain replicas differ in their weights then; ZeRO's weights, which an
# owner hands out, are equal although they are wrong, and gradients of the same sequences differ.
CORRUPTED = """
dist.init_process_group("gloo")
rank = dist.get_rank()
right = torch.ones(4, dtype=torch.bfloat16)
broken = right.clone()
broken[2] += 0.5 * rank
owned = broken.clone()
dist.broadcast(owned, src=1)
found = [replicas_agree([it], None) for it in (right, broken, owned, broken * 2)]
if rank == 0:
    print(*found, owned.equal(right))
dist.destroy_process_group()
"""


def test_weights_from_an_owner_agree_though_they_are_wrong_and_gradients_do_not(tmp_path):
    pytorch.needed()
    [check] = [block for block in LESSON.code("python") if "def replicas_agree" in block]
    (tmp_path / "check.py").write_text(check + CORRUPTED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "check.py"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split() == ["True", "False", "True", "False", "False"], done.stderr[-2000:]


# -- how far the search is to be trusted ---------------------------------------------------------------------
def test_the_engine_is_right_with_tensor_ranks_and_says_too_little_without():
    signed = {each.axis: each.signed for each in accuracy.by_axis() if each.kind == "hopper dense"}
    assert all(abs(signed[axis]) < 0.02 for axis in ("tp 2", "tp 4", "tp 8", "zero 1"))
    assert signed["tp 1"] < -0.05 and signed["zero 3"] < -0.05


def test_only_the_last_two_tools_shard_all_state():
    stages = [LESSON.value("judged")(tools).search.layout.zero for tools in advice.TOOLS]
    assert [stage == 3 for stage in stages] == [False, False, True, True]
