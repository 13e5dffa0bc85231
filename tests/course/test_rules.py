"""Every boxed rule is compared with a model of the engine, or has a reason why not; and pages print the
results."""

import re

import pytest

from course import lessons
from course.fences import formulas
from course.links.boxes import small_print
from engine import rules

# The boxed rules that are not compared with a model, each with the reason. A new rule needs an entry in
# engine/rules, or a line here.
WITHOUT = {
    "01-why-distributed": {
        "the-time-of-a-run": "the rule 6PD over the definition of MFU",
        "cost-and-waste": "definitions: a price, and what part of it was wasted",
    },
    "02-collectives": {"two-bandwidths": "two definitions"},
    "03-interconnect": {"like-for-like": "a way of reading data sheets"},
    "04-data-parallel": {"what-a-sample-is-worth": "a published fit (arXiv:1812.06162)"},
    "06-tensor-parallel": {"as-small-as-fits-and-inside": "advice; the search over layouts judges it"},
    "08-sequence-and-context": {
        "joining-two-parts-of-a-softmax": "an identity, which test_ring_attention executes"
    },
    "09-expert-parallel": {
        "capacity": "a definition: the rows that an expert may have",
        "balance-first-then-bound": "advice",
    },
    "10-nd-parallelism": {
        "chatty-axes-inside": "an order, which the figure of placement judges",
        "model-parallelism-is-a-price-memory-is-what-it-buys": "advice; the lesson holds it against a search",
    },
    "10b-the-long-run": {
        "which-of-the-two-to-halve": "follows from Young's interval by algebra",
        "price-before-you-start": "advice",
    },
    "11-inference": {
        "when-to-double-the-gpus-of-a-replica": "an inequality, whose right side is the engine's AllReduce",
        "the-size-of-a-replica": "advice",
    },
    "11b-the-server": {
        "what-a-token-pays-for-prompts": "a mean: one prompt for each answer; the engine executes the server",
        "fetch-or-compute-again": "a comparison of two rates",
    },
    "12-disaggregated-serving": {
        "goodput": "a definition",
        "read-with-flops-write-with-bytes": "a comparison with two ridges",
        "a-prompt-is-a-pause": "a way of reading latencies",
        "the-wire-must-carry-what-prefill-makes": "a balance of bytes made and bytes sent",
        "pools-buy-batch-not-capacity": "a statement about when; its numbers are the engine's",
        "the-longest-step-is-the-longest-pause": "advice; its numbers are the engine's",
    },
    "13-pytorch-internals": {"the-highest-key-first": "how PyTorch dispatches, recorded"},
    "14-mixed-precision": {
        "exponent-bits-buy-range-mantissa-bits-buy-precision": "a definition (IEEE 754)",
        "the-smaller-the-block-the-smaller-the-damage": "what three formats do, cited",
        "what-a-format-gains-a-step": "Amdahl's law",
    },
    "15-caching-allocator": {
        "memory-goes-round-inside-the-process": "how the allocator works, replayed",
        "split-from-above-join-sideways-never-across": "how the allocator works, replayed",
        "what-each-gap-means": "a way of reading three numbers",
        "expandable-segments": "a setting",
        "only-wide-models-offload-for-free": "one time over another, both worked out in the lines above it",
    },
    "17-triton": {"think-in-blocks": "a way of thinking"},
    "18-torch-compile": {
        "how-many-graphs": "how torch.compile works, recorded",
        "the-limit": "how torch.compile works, recorded",
    },
    "19-cuda-graphs": {
        "a-graph-pays-back-within-seconds": "a price over what a step saves, both run as the queue above",
        "round-up-but-in-one-dimension": "advice; its numbers are the engine's",
    },
    "examination": {"what-binds": "lesson 10's reading of an estimate"},
    "planner": {"what-the-winner-tells-you-to-buy": "a reading of an estimate"},
    "validation": {"what-these-errors-are-good-for": "a reading of errors"},
}


def test_every_boxed_rule_is_held_or_says_why_not():
    boxed = {(page.name, box.anchor) for page in lessons.pages() for box in page.boxes("rule")}
    entries = {(held.page, held.anchor) for held in rules.ALL}
    without = {(page, f"rule-{name}") for page, names in WITHOUT.items() for name in names}
    assert entries <= boxed, f"no such rule: {sorted(entries - boxed)}"
    assert not entries & without, "these have an entry now: take them off the list"
    assert entries | without == boxed


@pytest.mark.parametrize("page", sorted({entry.page for entry in rules.ALL}))
def test_the_page_prints_under_each_rule_how_far_off_it_is(page, site):
    html = (site / page / "index.html").read_text(encoding="utf-8")
    printed = re.findall(r'<p class="held"[^>]*>(.*?)</p>', html, re.DOTALL)
    lesson = lessons.read(f"{page}.md")
    assert printed == [said for box in lesson.boxes("rule") if (said := small_print(lesson, box.anchor))]


def test_the_sheet_of_formulas_prints_it_too():
    sheet = formulas.render("")
    assert all(small_print(lessons.read(f"{held.page}.md"), held.anchor) in sheet for held in rules.ALL)
