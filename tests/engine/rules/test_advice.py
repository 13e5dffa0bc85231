"""The rules of thumb against the search held to the same tools: where they agree, and why not where they do
not."""

import pytest

from engine import catalog
from engine.frameworks import run_by_some
from engine.rules import advice
from engine.rules.advice import TOOLS, written
from engine.step import search
from engine.step.layout import Job, Layout, machine
from tests.said import refused

H100 = machine(catalog.gpu("h100-sxm"))
RUNS = {  # model, GPUs, sequences a step, tokens of each
    "8B": ("llama3-8b", 64, 512, 8192),
    "8B wide": ("llama3-8b", 256, 512, 8192),
    "8B long": ("llama3-8b", 16, 64, 32768),
    "13B": ("gpt3-13b", 64, 512, 2048),
    "32B": ("qwen2.5-32b", 128, 512, 4096),
    "70B small": ("llama3-70b", 128, 512, 8192),
    "70B": ("llama3-70b", 512, 512, 8192),
    "70B short": ("llama3-70b", 512, 1024, 4096),
    "70B large": ("llama3-70b", 2048, 2048, 8192),
    "70B long": ("llama3-70b", 512, 64, 131072),
    "175B": ("gpt3-175b", 1024, 1536, 2048),
    "8x7B": ("mixtral-8x7b", 128, 1024, 4096),
    "8x22B": ("mixtral-8x22b", 256, 1024, 4096),
    "405B small": ("llama3.1-405b", 1024, 1024, 8192),
    "405B": ("llama3.1-405b", 16384, 2048, 8192),
}
# Where the rules do not find the search's split: the term that they lose by, at most how much, and what they
# overlook.
DIFFERENCES = {
    ("32B", "3d"): (
        "compute",
        0.05,
        "four tensor ranks and two stages of 32 layers: the one with the output layer works hardly longer",
    ),
    ("70B small", "3d"): (
        "compute",
        0.03,
        (
            "eight tensor ranks leave four stages for sixteen, which share the output layer's work "
            "better, for more AllReduces"
        ),
    ),
    ("70B short", "zero1"): ("compute", 0.03, "as above: four tensor ranks and two stages"),
    ("70B", "context"): (
        "compute",
        0.01,
        (
            "two tensor and two context ranks without a pipeline, where the rules have four context ranks "
            "and two stages: the one with the output layer works longer"
        ),
    ),
    ("70B short", "context"): (
        "compute",
        0.01,
        "two tensor ranks without a pipeline, for two context ranks and two stages, as above",
    ),
    ("70B large", "context"): (
        "compute",
        0.09,
        (
            "as above: of ten layers the stage with the output layer works 12 % longer than the others, "
            "of forty a quarter as much longer"
        ),
    ),
    ("175B", "context"): (
        "compute",
        0.05,
        "four tensor ranks and four stages of 24 layers, for two context ranks and eight stages of twelve",
    ),
    ("8x22B", "context"): (
        "compute",
        0.05,
        "with two context ranks and four stages for four and two, products and attention have twice the rows",
    ),
    ("405B small", "context"): (
        "compute",
        0.07,
        "half the context ranks and stages with twice the tensor ranks: 1,024 rows are padded more",
    ),
    ("405B", "3d"): (
        "pipeline_bubble",
        0.2,
        (
            "whole replicas on sixteen stages must recompute; the rules recompute last and take 64 stages, "
            "whose bubble is as long as the work"
        ),
    ),
    ("405B", "context"): (
        "compute",
        0.03,
        "eight tensor ranks and two context ranks: pieces of 1,024 tokens make thin products",
    ),
}


# Runs that were not looked at when the thresholds were chosen: model, GPUs, sequences, tokens of each, GPU.
UNSEEN = [
    ("qwen2.5-72b", 256, 512, 4096, "h100-sxm"),
    ("mistral-large-2", 512, 512, 8192, "h100-sxm"),
    ("nemotron4-340b", 3072, 2304, 4096, "h100-sxm"),
    ("gemma2-27b", 128, 512, 8192, "h100-sxm"),
    ("llama2-13b", 128, 1024, 4096, "a100-80"),
    ("opt-66b", 256, 512, 2048, "a100-80"),
    ("qwen2.5-14b", 32, 256, 8192, "a100-40"),
    ("olmo2-32b", 256, 1024, 4096, "h200"),
    ("llama3-70b", 256, 512, 8192, "b200"),
    ("llama3.1-405b", 2048, 1024, 8192, "b200"),
]


def verdict(run, tools):
    key, gpus, batch, seq = RUNS[run]
    return advice.verdict(catalog.model(key), H100, Job(batch, seq), gpus, TOOLS[tools])


@pytest.mark.parametrize("tools", TOOLS)
@pytest.mark.parametrize("run", RUNS)
def test_the_rules_find_the_searchs_split_or_the_difference_is_explained(run, tools):
    found = verdict(run, tools)
    assert found.rules.fits and found.search.fits and found.slower_by >= -1e-12
    if (run, tools) not in DIFFERENCES:
        assert found.agree, (
            f"{written(found.rules.layout)}, not {written(found.search.layout)}: +{found.slower_by:.1%}"
        )
    else:
        term, at_most, why = DIFFERENCES[run, tools]
        assert not found.agree and len(why) > 5
        assert found.lost_by == term and found.slower_by <= at_most


def test_on_runs_they_have_not_seen_the_rules_cost_one_percent():
    """32 of 40 splits are the search's; 0.7 % of time lost on average, 14.9 % at worst (what lesson 10
    says)."""
    found = [
        advice.judged(model, gpus, batch, seq, tools, gpu)
        for model, gpus, batch, seq, gpu in UNSEEN
        for tools in TOOLS
    ]
    slower = [one.slower_by for one in found]
    assert len(found) == 40 and sum(one.agree for one in found) == 32
    assert sum(slower) / 40 == pytest.approx(0.007, abs=0.0005) and max(slower) == pytest.approx(
        0.149, abs=0.001
    )


@pytest.mark.parametrize(
    ("run", "tools", "layout"),
    [
        ("70B", "3d", "TP 8 × PP 4 × DP 16"),  # the classic
        ("70B", "zero1", "TP 4 × PP 4 × DP 32"),
        ("70B", "fsdp", "TP 4 × DP 128"),
        ("8B", "fsdp", "DP 64"),
        ("175B", "3d", "TP 4 × PP 16 × DP 16"),
    ],
)
def test_layouts_that_the_lesson_names(run, tools, layout):
    found = verdict(run, tools)
    assert written(found.rules.layout) == written(found.search.layout) == layout


@pytest.mark.parametrize("tools", TOOLS)
@pytest.mark.parametrize("run", RUNS)
def test_no_layout_of_the_rules_or_of_their_search_beats_the_planner(run, tools):
    """One of the frameworks can run each of them, so the planner, which asks for no more, finds no worse."""
    key, gpus, batch, seq = RUNS[run]
    model, found = catalog.model(key), verdict(run, tools)
    planners = search.plan(model, H100, Job(batch, seq), gpus, within=run_by_some()).best
    for ours in (found.rules, found.search):
        assert run_by_some().allows(model, ours.layout) and ours.step_s >= planners.step_s * (1 - 1e-12)


@pytest.mark.parametrize("run", RUNS)
def test_with_all_tools_the_search_of_the_rules_is_the_planner_s(run):
    key, gpus, batch, seq = RUNS[run]
    best = search.plan(catalog.model(key), H100, Job(batch, seq), gpus, within=run_by_some()).best
    assert verdict(run, "context").search.step_s == pytest.approx(best.step_s, rel=1e-9)


@pytest.mark.parametrize(("run", "at_most"), [("405B", 0.08), ("8x22B", 0.04), ("8B", 0.001)])
def test_what_the_other_schedules_would_add(run, at_most):
    key, gpus, batch, seq = RUNS[run]
    best = search.plan(catalog.model(key), H100, Job(batch, seq), gpus).best
    assert 0 <= verdict(run, "context").search.step_s / best.step_s - 1 <= at_most


def test_the_rules_find_llama_3s_own_layout():
    """arXiv:2407.21783 Table 4. Sixteen tensor ranks would be faster, but no framework cuts eight heads of
    keys and values into sixteen."""
    found = verdict("405B", "zero1")
    assert found.agree and written(found.rules.layout) == "TP 8 × PP 16 × DP 128"


def test_each_tool_makes_the_70b_faster():
    times = [verdict("70B", tools).search.step_s for tools in TOOLS]
    assert times == sorted(times, reverse=True) and times[0] / times[-1] == pytest.approx(1.26, abs=0.02)


def test_candidates_are_in_the_order_of_the_rule_and_keep_to_it():
    candidates = advice.splits(catalog.model("llama3-70b"), H100, Job(512, 8192), 512, TOOLS["context"])
    assert [c.cost for c in candidates] == sorted(c.cost for c in candidates) and candidates[0] == (
        1,
        1,
        1,
        1,
    )
    assert max(c.tp for c in candidates) == 8 and max(c.cp for c in candidates) == 8


def test_written_as_people_say_it():
    assert written(Layout(512, tp=8, pp=4)) == "TP 8 × PP 4 × DP 16" and written(Layout(1)) == "one GPU"


@pytest.mark.parametrize("call", [advice.advise, advice.fastest])
def test_a_model_that_fits_in_no_way_is_refused(call):
    with refused("gpus", "llama3.1-405b", "8"):
        call(catalog.model("llama3.1-405b"), H100, Job(64, 8192), 8, TOOLS["3d"])
