"""What a sentence says of the figure that it sets is so in the state that it sets."""

import re

import numpy as np
import pytest

from course.links import figures
from engine import catalog
from engine.exam import incident_cases as cases
from engine.executed.incident import CORRUPT, SKIPPED
from engine.executed.placed_by_hand import NO_ROOM
from engine.one_gpu import compilation, traces
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
        "after the third step": lambda home, now: now.part_now() == 1 and now.moment() == now.first_steps(),
        "On their way": lambda home, now: (
            now.part_now() == 2 and set(now.shown()["parts"]["messages"]["kind"][:8]) == {2}
        ),
        "eight GPUs in each node": lambda home, now: (
            number(now, "card") == 125
            and now.inside_s() > now.across_s()
            and home.inside_s() < home.across_s()
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
        "LoRA": lambda home, now: (
            number(home, "ranks") == 2 and fits(now) and number(now, "total") < number(home, "total") / 5
        ),
        "QLoRA": lambda home, now: fits(now) and number(now, "total") < 14,
        "16,384 tokens and nothing recomputed": lambda home, now: (
            not fits(now) and now.slider() == "sequence" and now.seq == 16384
        ),
    },
    "06-tensor-parallel.md": {
        "rows first": lambda home, now: number(now, "against") > 2 * number(home, "against"),
        "GeLU": lambda home, now: now.shown()["readouts"]["off_by"]["text"] != "0",
        "sixteen ranks": lambda home, now: (
            now.ranks == 16 and 1 < number(home, "layer_time") / number(now, "layer_time") < 2
        ),
        "a single 400 Gb/s card": lambda home, now: number(now, "layer_time") > number(home, "layer_time"),
        "Sixteen ranks in an NVL72 rack": lambda home, now: (
            number(now, "efficient") < 50 and sending_s(now, 16) < 1.2 * sending_s(now, 8)
        ),
        "model thin": lambda home, now: 45 < number(now, "efficient") < 55,
    },
    "08-sequence-and-context.md": {
        "131,072 tokens": lambda home, now: now.seq == 131072 == 16 * home.seq,
        "the layer's input": lambda home, now: (
            number(now, "tensor_alone") == round(2 * 8192 * now.model.hidden / 1e6)
        ),
        "**zig-zag** order": lambda home, now: number(now, "computing") == 100 > number(home, "computing"),
    },
    "09-expert-parallel.md": {
        "drop nothing": lambda home, now: number(now, "lost") == 0 < number(home, "lost"),
        "a further term in the loss": lambda home, now: number(now, "most") < number(home, "most"),
        "a bias": lambda home, now: number(now, "most") < number(home, "most"),
        "one node": lambda home, now: number(now, "over") < 1 and now.shown()["regimes"]["too_large"]["met"],
        "two": lambda home, now: number(now, "over") > 1 and now.ranks() == 16,
        "favourites on 64 ranks": lambda home, now: 6 < number(now, "uneven") < 7,
        "A spare place on each": lambda home, now: (
            number(now, "uneven") < 1.05 and now.held() == pytest.approx(1.25 * at_64(home).held())
        ),
        "Kimi K3": lambda home, now: (
            number(now, "dispatch") == number(at_64(home), "dispatch") and now.model.key == "kimi-k3"
        ),
    },
    "10-nd-parallelism.md": {
        "the data axis inside": lambda home, now: number(now, "together") > number(home, "together"),
        "sixteen tensor ranks": lambda home, now: number(now, "together") > number(home, "together"),
        "eight expert ranks": lambda home, now: now.nodes().ep == 8,
        "Folded": lambda home, now: now.nodes().ep == 1 and "experts 7 in its node" in now.summary(),
        "On 64 GPUs": lambda home, now: "PP 1 " in now.summary() and "PP 2 " in home.summary(),
        "With sequences of 131,072 tokens": lambda home, now: "CP 32 " in now.summary(),
    },
    "16-custom-kernels-and-fusion.md": {
        "200 FLOPs in each operation": lambda home, now: now.gain() < 1.01 < home.gain() / 7,
        "a token is decoded alone": lambda home, now: (
            now.shown()["regimes"]["launch_bound"]["met"]
            and not home.shown()["regimes"]["launch_bound"]["met"]
        ),
        "each of them keeps 40 values alive": lambda home, now: now.spills() and not home.spills(),
        "heads of 256": lambda home, now: now.moves_more() and not home.moves_more(),
        "an A100's smaller SRAM": lambda home, now: (
            now.tile() < home.tile() and now.tiled(8192) > home.tiled(8192)
        ),
    },
    "17-triton.md": {
        "Row by row": lambda home, now: number(now, "in_all") > 2 * number(home, "in_all"),
        "In one group of nine rows": lambda home, now: number(now, "in_all") > number(home, "in_all"),
        "an L2 that holds both matrices": lambda home, now: number(now, "in_all") == 2 * 81,
        "With 128 tokens more": lambda home, now: now.idle() > 0.3 > 0.1 > home.idle() and now.m == 2176,
        "Small square tiles": lambda home, now: now.idle() < 0.1 and now.kind() == 1 and now.m == 2176,
        "Six stages": lambda home, now: bool(now.refused()),
        "a tile twice as large": lambda home, now: now.shown()["regimes"]["spills"]["met"],
    },
    "18-torch-compile.md": {
        "`try`, comprehensions and NumPy": lambda home, now: number(now, "ran") == 1,
        "A `print`": lambda home, now: number(now, "ran") == 2,
        "an `if` in a loop": lambda home, now: number(now, "ran") == 0,
        "a loop over layers": lambda home, now: number(now, "ran") == 3,
        "A counter on the module": lambda home, now: number(now, "ran") == 0 < number(home, "ran"),
        "ten lengths with dynamic shapes off": lambda home, now: (
            compilation.recorded("lengths", "graphs", dynamic="off", call=9) == 8
        ),
        "a single shape": lambda home, now: "step 549" in now.shown()["readouts"]["ahead"]["text"],
        "64 shapes and dynamic shapes on": lambda home, now: now.graphs(now.dynamic) == 1,
    },
    "19-cuda-graphs.md": {
        "the opening case": lambda home, now: now.waiting_share() > 0.6,
        "256 sequences on one H100": lambda home, now: now.gained() < 1.1 < home.gained(),
        "Copied in place": lambda home, now: right(now) and not right(home),
        "A longer batch handed over": lambda home, now: not right(now) and "none" in error(now),
        "give their memory to somebody else": lambda home, now: right(now) and number(now, "overwritten") > 0,
        "Powers of two": lambda home, now: now.wasted() > 2 * home.wasted() and now.time_lost() < 0.02,
    },
    "11-inference.md": {
        "four times the context": lambda home, now: 0.2 < now.fit()[0] / home.fit()[0] < 0.3,
        "Two GPUs": lambda home, now: 0 < now.fit()[0] < 0.05 * home.fit()[0],
        "short chats": lambda home, now: kept_by(now, "qwen3.5-397b-a17b") > kept_by(now, "qwen3-235b-a22b"),
        "over a ring": lambda home, now: number(now, "against_half") > 1,
        "64 users on two nodes": lambda home, now: step_s(now, 16) > step_s(now, 8),
    },
    "11b-the-server.md": {
        "At 8,192 tokens": lambda home, now: number(now, "pause") > 5 * number(home, "pause"),
        "At 256": lambda home, now: (
            number(now, "pause") < number(home, "pause") < 61
            and number(now, "first_most") > number(home, "first_most")
        ),
        "longer answers": lambda home, now: now.output == 1024 == 4 * home.output,
        "a token every 12 ms": lambda home, now: number(now, "per_gpu") < number(home, "per_gpu") / 2,
    },
    "12-disaggregated-serving.md": {
        "in chunks": lambda home, now: number(now, "pause") < number(home, "pause") / 5,
        "GPUs of their own": lambda home, now: number(now, "pause") < number(home, "pause") / 5,
        "a wire of 10 Gb/s": lambda home, now: "there is room for" in now.summary(),
        "Documents": lambda home, now: number(now, "best_split") > 8,
        "answers that think for long": lambda home, now: number(now, "best_split") <= 2,
    },
    "10b-the-long-run.md": {
        "An hour between checkpoints": lambda home, now: (
            now.gpus == 16384 and number(now, "best_interval") < 30 < now.interval_s / 60
        ),
        "131,072 GPUs": lambda home, now: number(now, "useful_now") < 60 and now.gpus == 131072,
        "three seconds": lambda home, now: number(now, "useful_now") == 92.6 and now.checkpoint_s == 3,
        "flight recorders' dumps": lambda home, now: (
            now.hangs() and now.found()["cause"] == SKIPPED and "36/35" in now.of_dumps()
        ),
        "each rank's own times": lambda home, now: (
            not now.hangs()
            and np.argmin(now.seen()["inside_s"]) == now.found()["rank"]
            and np.argmax(now.seen()["compute_s"]) == now.found()["rank"]
        ),
        "all replicas compute one batch": lambda home, now: (
            cases.computes_wrongly(now.seen()) and now.found()["cause"] == CORRUPT
        ),
        "Four weeks": lambda home, now: "refused" in now.summary() and "refused" not in home.summary(),
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


def step_s(at, gpus: int) -> float:
    """Seconds of a step on so many GPUs, whichever are chosen."""
    return float(at.step_s()[[1, 2, 4, 8, 16, 32].index(gpus)])


def kept_by(at, key: str) -> float:
    """Bytes that a user of a model keeps."""
    return float(at.kept_bytes(catalog.model(key), at.context))


def sending_s(at, ranks: int) -> float:
    """Milliseconds of the AllReduces over so many tensor ranks."""
    at.set_state({"ranks": str(ranks)})
    return number(at, "sending")


def at_64(home):
    """The experts of this figure over 64 ranks."""
    home.set_state({"ep": "64"})
    return home


def exposed_s(at) -> float:
    return float(at.run()["exposed_s"])


def exposed_s_at(home, mib: int) -> float:
    home.set_raw({"bucket": mib * 2**20})
    return exposed_s(home)


def held(at, stage: int) -> float:
    """GB under a stage, from the figure's headline."""
    return [float(each) for each in re.findall(r"([\d.]+) GB", at.summary().partition("leave")[2])][stage - 1]


def right(at) -> bool:
    """Whether a replay gives every answer right."""
    return not at.shown()["readouts"]["right"]["alarm"]


def error(at) -> str:
    """The error that a replay raises, if any."""
    return at.shown()["readouts"]["error"]["text"]


CASES = [(lesson, words) for lesson, says in SAYS.items() for words in says]


def links(lesson: str):
    """(words, the figure as its fence has it, the figure as the link sets it) of each link that sets one."""
    body = Lesson(lesson).source.body
    for found in re.finditer(figures.LINK, body):
        slug = found["slug"] or figures.nearest(body, found.start())
        home, (state, _) = figures.of_fence(body, slug), figures.told(found["state"])
        as_it_is = figures.in_state(slug, home, {}) if home else figures.all_widgets()[slug]()
        yield found["words"], as_it_is, figures.in_state(slug, state, home)


def all_may(at, slot: int) -> bool:
    """Whether each stage can place a forward (0)."""
    return all(at.found()["hand_why"][4 * stage + slot] == 0 for stage in range(4))


def visited(at, operator: str) -> list[str]:
    """The keys at which an operator's kernels were visited."""
    marks = at.shown()["parts"]["visits"]
    return [
        key.removesuffix("CPU") or key
        for name, key, seen in zip(marks["operator"], marks["key"], marks["seen"])
        if name == f"aten::{operator}" and seen
    ]


@pytest.mark.parametrize("lesson", SAYS)
def test_each_lesson_has_three_such_sentences_and_each_is_held(lesson):
    said = [words for words, _, _ in links(lesson)]
    assert len(said) >= 3 and set(said) == set(SAYS[lesson])


@pytest.mark.parametrize(("lesson", "words"), CASES)
def test_the_state_shows_what_the_sentence_says(lesson, words):
    [(home, now)] = [(home, now) for each, home, now in links(lesson) if each == words]
    assert SAYS[lesson][words](home, now)
