"""The search: the same numbers as the estimate to the last digit, the whole space, and no paper's layout
faster."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from bench.cost_model import PRESETS
from engine import catalog, validation
from engine.base import check
from engine.mechanism import memory
from engine.mechanism.pipeline import SCHEDULES, TURNS
from engine.mechanism.shape import shape
from engine.step import search
from engine.step.layout import Job, Layout, estimate, machine, recipe_of, require_legal
from engine.step.step import step
from tests.said import refused

H100 = machine(catalog.gpu("h100-sxm"))
CASES = {
    "dense": ("llama3-70b", "h100-sxm", 512, Job(1024, 8192)),
    "experts": ("mixtral-8x7b", "h100-sxm", 64, Job(256, 4096)),
    "latent attention": ("deepseek-v3", "h800", 256, Job(1920, 4096)),
    "unfused, odd counts": (
        "gpt3-175b",
        "a100-80",
        384,
        Job(1536, 2048, software=catalog.modern(attention="scores", overlaps="", gradients="separate")),
    ),
}


def test_a_small_search_is_one_grid_and_in_a_large_one_rows_without_a_pipeline_stand_alone():
    """Most of a grid is about schedules, of which one GPU a copy has none."""
    small = search.blocks(catalog.model("gpt2"), Job(32, 1024), 4)
    assert len(small) == 1 and {1, 2} <= set(small[0].rows[:, search.PP])
    key, _, gpus, job = CASES["dense"]
    large = search.blocks(catalog.model(key), job, gpus)
    every = search.rows(catalog.model(key), job, gpus)
    assert len(large) > 1 and np.array_equal(np.concatenate([one.rows for one in large]), every)
    assert all(len({*(one.rows[:, search.PP] == 1)}) == 1 for one in large)


@pytest.mark.parametrize("hsdp", [False, True], ids=["one copy", "copies"])
@pytest.mark.parametrize("case", CASES)
def test_the_search_says_what_the_estimate_says_to_the_last_digit(case, hsdp):
    key, gpu, gpus, job = CASES[case]
    model, at = catalog.model(key), machine(catalog.gpu(gpu))
    chance = random.Random(0)
    every = search.rows(model, job, gpus, hsdp_gpus_per_node=8 if hsdp else 0)
    for block in search.blocks(model, job, gpus, every[(every[:, search.SHARD] > 0) == hsdp]):
        with check.trusted():
            terms = step(shape(model), job, recipe_of(job), at.chip, at.wires, block.axes())
        legal = np.broadcast_to(block.legal(block.axes()), block.shape)
        places = np.argwhere(legal)
        for place in chance.sample(list(places), min(40, len(places))):
            cell = np.ravel_multi_index(tuple(place[:-1]), block.shape[:-1])
            layout = block.layout(place[-1], cell)
            scalar = estimate(model, at, job, layout).terms  # also: what the search calls legal is legal
            for name, value in terms._asdict().items():
                assert np.broadcast_to(value, block.shape)[tuple(place)] == getattr(scalar, name), (
                    layout,
                    name,
                )


def chunks_of(plan):
    return search.INTERLEAVES if plan.interleaved else (TURNS if plan.folded else 1,)


def test_the_space_is_the_whole_one():
    """Every layout that require_legal lets through, counted one by one for a small cluster."""
    model, job, gpus = catalog.model("llama3.2-1b"), Job(16, 4096), 4
    found = 0
    for tp in (1, 2, 4):
        for pp in (1, 2, 4):
            for cp in (1, 2, 4):
                if tp * pp * cp > gpus:
                    continue
                for micro_batch in (1, 2, 4, 8, 16):
                    for recompute in ("none", "full"):
                        for zero in range(4):
                            for key, plan in SCHEDULES.items():
                                for v in chunks_of(plan):
                                    layout = Layout(gpus, tp, pp, cp, 1, zero, micro_batch, recompute, key, v)
                                    alone = layout.dp * cp == 1
                                    if (alone and zero) or (pp == 1 and key != "1f1b"):
                                        continue  # the same layout under another name
                                    try:
                                        require_legal(model, job, layout)
                                        found += 1
                                    except ValueError:
                                        pass
    assert search.plan(model, H100, job, gpus).layouts == found


def test_nothing_legal_is_faster_than_the_winner():
    model, job = catalog.model("llama3-8b"), Job(128, 8192)
    plan = search.plan(model, H100, job, 16)
    blocks = search.blocks(model, job, 16)
    for block in blocks:
        seconds, total_bytes, legal = search.evaluate(block, H100)
        fits = legal & (total_bytes <= memory.capacity_bytes(H100.gpu))
        if fits.any():
            assert np.broadcast_to(seconds, block.shape)[fits].min() >= plan.best.step_s
    assert plan.best.fits and all(other.step_s >= plan.best.step_s for other in plan.runners_up)
    assert len({(e.layout.tp, e.layout.pp, e.layout.cp) for e in (plan.best, *plan.runners_up)}) == 5


@pytest.mark.parametrize("hsdp", [False, True], ids=["one copy", "copies"])
@pytest.mark.parametrize(("key", "gpu", "gpus", "batch", "seq"), PRESETS)
def test_leaving_out_what_cannot_matter_changes_nothing(key, gpu, gpus, batch, seq, hsdp):
    """The seconds of some layouts are not worked out; all that a plan says is the same, to the last digit."""
    model, at, job = catalog.model(key), machine(catalog.gpu(gpu)), Job(batch, seq)
    some = search.plan(model, at, job, gpus, top=12, hsdp=hsdp)
    every = search.plan(model, at, job, gpus, top=12, seen=lambda *layouts: None, hsdp=hsdp)
    assert replace(some, seconds=0.0) == replace(every, seconds=0.0)


def test_copies_of_the_state_are_tried_on_one_node_and_on_twice_as_many_again():
    """64 H100, 8 a node: TP 2 leaves 4 ranks of 32 on a node, so copies on 4, 8 or 16 ranks; TP 8 one rank of
    8, so 2 or 4. They can only make the fastest step faster, and do so for a 70B on 512 GPUs."""
    model, job = catalog.model("llama3-8b"), Job(128, 8192)
    rows = search.rows(model, job, 64, hsdp_gpus_per_node=8)
    for tp, shards in ((2, {0, 4, 8, 16}), (8, {0, 2, 4})):
        alone = rows[(rows[:, search.TP] == tp) & (rows[:, search.PP] == 1)]
        assert set(alone[:, search.SHARD].tolist()) == shards
    seventy, on = catalog.model("llama3-70b"), Job(1024, 8192)
    one, several = (search.plan(seventy, H100, on, 512, hsdp=hsdp) for hsdp in (False, True))
    assert one.best.layout.shard == 0 < several.best.layout.shard
    assert several.best.step_s < one.best.step_s and several.layouts > one.layouts


@pytest.mark.parametrize("gpus", [1, 6, 8, 96])
def test_nor_where_little_fits(gpus):
    model, job = catalog.model("llama3-70b"), Job(96, 8192)
    some = search.plan(model, H100, job, gpus)
    every = search.plan(model, H100, job, gpus, seen=lambda *layouts: None)
    assert replace(some, seconds=0.0) == replace(every, seconds=0.0)


def test_what_the_others_lost_by():
    plan = search.plan(catalog.model("llama3-70b"), H100, Job(1024, 8192), 512)
    for other in plan.runners_up:
        why = search.lost_by(plan.best, other)
        gap = other.step_s - plan.best.step_s
        assert why["slower_by"] == pytest.approx(gap / plan.best.step_s) and why["lost_by"] in other.time_s
        assert why["lost_s"] >= gap / len(other.time_s)
    json.dumps(plan.as_dict(), allow_nan=False)


PAPERS = [
    "sc21_t1_39.1B",
    "sc21_t2_174.6B_ptdp_768",
    "llama3_405b_t4_16384_cp1",
    "dgxc_llama31_70b_2504_bf16_512",
    "dgxc_llama31_405b_2502_bf16_576",
    "dgxc_grok1_2505_512_bf16",
    "bloom_final_throughput",
    "megascale_t2_megatron_1024",
]


@pytest.mark.parametrize("name", PAPERS)
def test_no_paper_chose_a_faster_layout(name):
    case = next(case for case in validation.load() if case["id"] == name and case["kind"] == "step")
    model, job = (validation.model_of(case), validation.job_of(case))
    at = machine(catalog.gpu(case["gpu"]), case.get("precision", "bf16"), **case.get("machine", {}))
    theirs = estimate(model, at, job, Layout(**case["layout"]))
    ours = search.plan(model, at, job, theirs.layout.gpus, top=1).best
    assert ours.fits
    if theirs.fits:
        assert ours.step_s <= theirs.step_s


def test_where_nothing_fits_the_leanest_is_shown():
    plan = search.plan(catalog.model("llama3.1-405b"), H100, Job(8, 8192), 8)
    assert plan.fitting == 0 and not plan.best.fits and plan.best.binding == "memory"
    assert plan.best.terms.total_bytes <= min(other.terms.total_bytes for other in plan.runners_up)


def test_one_gpu_has_a_plan_too():
    """Nothing is cut, so micro-batch and recomputation are all that can be chosen: 6 sizes, twice."""
    gpt2, job = catalog.model("gpt2"), Job(32, 1024)
    plan = search.plan(gpt2, H100, job, 1)
    every = [
        estimate(gpt2, H100, job, Layout(1, micro_batch=size, recompute=recompute))
        for size in (1, 2, 4, 8, 16, 32)
        for recompute in ("none", "full")
    ]
    assert plan.layouts == len(every) and plan.fitting == sum(each.fits for each in every)
    assert plan.best.step_s == min(each.step_s for each in every if each.fits)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: search.plan(catalog.model("gpt2"), H100, Job(7, 1024), 0), ("gpus", "1")),
        (lambda: search.plan(catalog.model("gpt2"), H100, Job(7, 1024), 8, top=0), ("top",)),
        (lambda: search.plan(catalog.model("gpt2"), H100, Job(7, 1024), 10**30), ("gpus", "1", "1e+07")),
        (
            lambda: search.plan(catalog.model("gpt2"), H100, Job(1, 1023), 1009),
            ("global_batch", "a multiple"),
        ),
    ],
)
def test_bad_input_is_named(call, words):
    with refused(*words):
        call()


def test_the_search_is_fast():
    """The budget is 2 million layouts a second on one quiet core (make bench); here, that it is not ten times
    slower."""
    model, job = catalog.model("llama3-70b"), Job(1024, 8192)
    rate = max(_rate(search.plan(model, H100, job, 512)) for _ in range(5))
    assert rate > 2e5


def _rate(plan) -> float:
    return plan.layouts / plan.seconds
