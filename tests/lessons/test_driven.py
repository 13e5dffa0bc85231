"""What a sentence says of the figure that it sets is so in the state that it sets (01 to 05, 13 to 15)."""

import re

import pytest

from course.links import figures
from engine.one_gpu import traces
from tests.lessons.reading import Lesson


def number(widget, name: str) -> float:
    """The first number of a readout."""
    shown = widget.shown()["readouts"][name]["text"]
    return float(re.findall(r"[\d.,]+", shown)[0].replace(",", ""))


def fits(at) -> bool:
    return "which fits" in at.summary()


# lesson -> the words of a link -> what is so, of the figure as its fence has it and as the link sets it
SAYS = {
    "01-why-distributed.md": {
        "Sum gradients in fp32": lambda home, now: number(now, "each_parameter") == 18,
        "keep Adam's means in eight bits": lambda home, now: round(number(now, "each_parameter")) == 10,
        "fails by a few percent": lambda home, now: 80 < number(now, "total") < 84 and not fits(now),
        "Recomputation": lambda home, now: fits(now) and not fits(home) and now.batch == home.batch,
        "Twice as many GPUs": lambda home, now: now.gpus == 2 * home.gpus,
    },
    "02-collectives.md": {
        "ReduceScatter": lambda home, now: "ReduceScatter" in now.summary(),
        "AllGather": lambda home, now: "AllGather" in now.summary(),
        "after the third step": lambda home, now: "after step 3 of 6" in now.summary(),
        "a single chunk": lambda home, now: number(now, "busy") == 1,
        "eight of the GPUs into each machine": lambda home, now: (
            number(now, "ring") == pytest.approx(2.04, abs=0.01) and number(now, "tree") < 56.6
        ),
        "At a gigabyte on 64 ranks": lambda home, now: (
            now.ranks == 64 and 0.98 < number(now, "ring") / number(now, "tree") < 1
        ),
        "eight": lambda home, now: number(now, "least") == 1.75 and "14" in now.summary(),
    },
    "03-interconnect.md": {
        "nearly double the step": lambda home, now: 1.7 < number(now, "step") / number(home, "step") < 2,
        "number all ranks across the nodes": lambda home, now: number(now, "step") > 2 * number(home, "step"),
        "they cross between nodes": lambda home, now: (
            now.shows == 3 and home.times().data < home.times().tensor
        ),
    },
    "04-data-parallel.md": {
        "buckets of 96 MiB": lambda home, now: 0.4 < exposed_s(now) / exposed_s(home) < 0.6,
        "Buckets four times as large": lambda home, now: exposed_s(now) < 1.25 * exposed_s_at(home, 96),
        "1,024 tokens on slow Ethernet": lambda home, now: exposed_s(now) > 1 > 10 * now.run()["compute_s"],
        "with one sequence on each GPU": lambda home, now: now.tokens == 8192 == home.tokens / 2,
        "A single node": lambda home, now: number(now, "loss_speed_up") > 0.95 * 8,
        "a model of 70B": lambda home, now: "1.12 TB" in now.summary(),
    },
    "05-fsdp-and-zero.md": {
        "512 GPUs instead of 64": lambda home, now: held(now, 1) > 0.95 * held(home, 1),
        "ten times as large": lambda home, now: held(now, 3) < 80 < held(now, 2) < held(now, 1),
        "three layers ahead": lambda home, now: (
            number(now, "step") == number(home, "step") and number(now, "held") > number(home, "held")
        ),
        "a quarter of the tokens": lambda home, now: (
            now.tokens == home.tokens / 4 < number(now, "needed") * 1e3
        ),
        "Switch recomputation on": lambda home, now: number(now, "held") < number(home, "held") / 2,
    },
    "13-pytorch-internals.md": {
        "autocast off": lambda home, now: number(home, "operators") - number(now, "operators") == 6,
        "`no_grad`": lambda home, now: (
            visited(now, "addmm") == ["Autograd", "CPU"] and number(now, "graph") == 0
        ),
        "`inference_mode`": lambda home, now: visited(now, "addmm") == ["CPU"],
        "fused attention": lambda home, now: (
            number(now, "operators") < traces.counts("attention", False, "grad")["operators"] / 2
        ),
        "matrices of 512": lambda home, now: now.idle_share() > 0.5 and now.waits_share() < 0.01,
        "matrices of 4,096": lambda home, now: now.idle_share() < 0.01,
    },
    "14-mixed-precision.md": {
        "a gradient of 2·10⁻⁸": lambda home, now: now.shown()["readouts"]["means"]["text"] == "0",
        "70,000": lambda home, now: now.shown()["readouts"]["means"]["text"] == "infinity",
        "both": lambda home, now: number(now, "means") == pytest.approx(70_000, rel=0.004),
        "a rate of 0.01": lambda home, now: 1 < number(now, "nearest") < 1.7 and number(home, "nearest") == 1,
        "fp16": lambda home, now: number(now, "nearest") > 1.9,
        "8": lambda home, now: 0.2 < number(now, "lost") / number(home, "lost") < 1,
        "32,768": lambda home, now: number(now, "lost") < 1,
        "The same gradients in bf16": lambda home, now: now.scale == 1 and number(now, "lost") == 0,
    },
    "15-caching-allocator.md": {
        "one length": lambda home, now: number(now, "peaks") < 1.1,
        "a little spread": lambda home, now: number(now, "peaks") > 1.35,
        "60 GB": lambda home, now: number(now, "retries") > 0 and not now.run()["failed"],
        "Switch it on": lambda home, now: number(now, "peaks") < 1.1 < number(home, "peaks"),
    },
}


def visited(at, operator: str) -> list[str]:
    """The keys at which an operator's kernels were visited."""
    marks = at.shown()["parts"]["visits"]
    return [
        key.removesuffix("CPU") or key
        for name, key, seen in zip(marks["operator"], marks["key"], marks["seen"])
        if name == f"aten::{operator}" and seen
    ]


def exposed_s(at) -> float:
    return float(at.run()["exposed_s"])


def exposed_s_at(home, mib: int) -> float:
    home.set_raw({"bucket": mib * 2**20})
    return exposed_s(home)


def held(at, stage: int) -> float:
    """GB under a stage, from the figure's headline."""
    return [float(each) for each in re.findall(r"([\d.]+) GB", at.summary().partition("leave")[2])][stage - 1]


CASES = [(lesson, words) for lesson, says in SAYS.items() for words in says]


def links(lesson: str):
    """(words, the figure as its fence has it, the figure as the link sets it) of each link that sets one."""
    body = Lesson(lesson).source.body
    for found in re.finditer(figures.LINK, body):
        slug = found["slug"] or figures.nearest(body, found.start())
        home, (state, _) = figures.of_fence(body, slug), figures.told(found["state"])
        as_it_is = figures.in_state(slug, home, {}) if home else figures.all_widgets()[slug]()
        yield found["words"], as_it_is, figures.in_state(slug, state, home)


@pytest.mark.parametrize("lesson", SAYS)
def test_each_of_these_lessons_has_three_such_sentences_and_each_is_held(lesson):
    said = [words for words, _, _ in links(lesson)]
    assert len(said) >= 3 and set(said) == set(SAYS[lesson])


@pytest.mark.parametrize(("lesson", "words"), CASES)
def test_the_state_shows_what_the_sentence_says(lesson, words):
    [(home, now)] = [(home, now) for each, home, now in links(lesson) if each == words]
    assert SAYS[lesson][words](home, now)
