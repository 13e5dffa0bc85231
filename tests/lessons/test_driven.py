"""What a sentence says of the figure that it sets is so in the state that it sets
(lessons 01 to 05, and 07)."""

import re

import numpy as np
import pytest

from course.links import figures
from engine.executed.placed_by_hand import NO_ROOM
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
    "07-pipeline-parallel.md": {
        "as many micro-batches as stages": lambda home, now: 45 < number(now, "bubble") < 50,
        "four times as many": lambda home, now: (
            now.micro_batches == 4 * now.stages and number(now, "bubble") < 20
        ),
        "GPipe makes all forwards": lambda home, now: number(now, "held") == now.micro_batches,
        "**one forward, one backward**": lambda home, now: (
            number(now, "held") == now.stages and number(now, "bubble") == number(home, "bubble")
        ),
        "ask stage 1 for a backward at once": lambda home, now: "needs B1 of stage 2 first" in now.summary(),
        "the first micro-batch has come back": lambda home, now: (
            all_may(now, 0) and now.found()["held"].tolist() == [4, 3, 2, 1]
        ),
        "run four forwards on the last stage": lambda home, now: (
            now.found()["hand_why"][0] == NO_ROOM and number(now, "so_far") == 180
        ),
        "goes round the GPUs twice": lambda home, now: np.nanmax(now.found()["place"]) == 2 * now.stages - 1,
        "**ZB-H1**": lambda home, now: (
            number(now, "held") == 4 and number(now, "bubble") < number(home, "bubble")
        ),
        "ZB-H2 in the timeline": lambda home, now: number(now, "bubble") == 0 and not now.in_step,
        "Let all stages end the step together": lambda home, now: number(now, "bubble") > 0 and now.in_step,
        "build ZB-H1": lambda home, now: now.placed() == "0 of 96 passes",
        "shards the weights as well": lambda home, now: "G1" in list(now.shown()["parts"]["hand"]["name"]),
        "In the steady state": lambda home, now: sum(now.found()["beside"] > 0) > now.micro_batches,
        "the timeline plays them": lambda home, now: now.schedule.name == "ZB-V",
        "an output layer worth three tenths of a stage": lambda home, now: (
            now.slowest() > 1.2 and number(now, "bubble") > 24
        ),
    },
}


def all_may(at, slot: int) -> bool:
    """Whether each stage can place a forward (0)."""
    return all(at.found()["hand_why"][4 * stage + slot] == 0 for stage in range(4))


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
