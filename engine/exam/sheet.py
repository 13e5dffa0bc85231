"""A sheet of questions drawn from a number, so that each student or each class can have its own, with a key
that works every answer out and says how to mark it.

A question is a template: what is drawn, the text with what was drawn in it, the function of the engine that
answers, and the working in words. The same number always gives the same sheet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from engine import catalog
from engine.base import check, units
from engine.exam.examination import LEHMER, PRIME, roll
from engine.mechanism import collectives, flops, memory, pipeline, reliability, roofline

MOST_QUESTIONS = 40
MOST_SEED = 10**6
WITHIN = 0.05  # of the answer: what still counts as the right number
LINE = "_" * 40
RUBRIC = (
    ("Which rule", "the rule of the course is written down, and its letters are named"),
    (
        "The number",
        f"within {WITHIN:.0%} of the key; one factor of a thousand in the unit still gives half a point",
    ),
    ("What it leaves out", "one thing that makes the real number larger or smaller is named, and which way"),
)


class Template(NamedTuple):
    """A kind of question: the lesson that it belongs to, what is drawn, its text, its answer in SI and the
    family of units, and the working."""

    lesson: str
    drawn: dict[str, tuple[Any, ...]]
    text: str
    answer: Callable[..., float]
    family: str
    working: str
    said: dict[str, str]  # of what is drawn, the family in which a number is written


class Question(NamedTuple):
    """A question as it stands on the sheet, and what the key says of it."""

    number: int
    lesson: str
    text: str
    answer: float
    shown: str
    working: str


SIZES = (1e9, 3e9, 7e9, 8e9, 13e9, 32e9, 70e9, 123e9)
GPUS = ("a100-80", "h100-sxm", "h200", "b200")
RANKS = (4, 8, 16, 32, 64)
TEMPLATES = (
    Template(
        "01",
        {"size": SIZES},
        "A model of {size} parameters is trained with Adam in mixed precision. How many bytes of training"
        " state does it keep, without activations?",
        lambda size: memory.state_bytes(size),
        "bytes",
        "sixteen bytes for each parameter: 16 · {size}",
        {"size": "params"},
    ),
    Template(
        "01",
        {"size": SIZES, "tokens": (0.5e12, 1e12, 2e12, 15e12)},
        "How many FLOPs does it take to train a dense model of {size} parameters on {tokens}?",
        lambda size, tokens: flops.training_flops(size, tokens),
        "flops",
        "six FLOPs for each parameter and token: 6 · {size} · {tokens}",
        {"size": "params", "tokens": "tokens"},
    ),
    Template(
        "01",
        {"size": SIZES[2:], "gpu": GPUS, "gpus": (256, 512, 1024, 4096), "mfu": (0.35, 0.4, 0.45)},
        "A dense model of {size} parameters sees 1T tokens on {gpus} GPUs ({gpu}) at an MFU of {mfu} of "
        "the dense bf16 peak. How long does the run take?",
        lambda size, gpu, gpus, mfu: flops.run_time_s(
            flops.training_flops(size, 1e12), gpus, catalog.gpu(gpu).peak_flops_per_s("bf16"), mfu
        ),
        "seconds",
        "6 · {size} · 10¹² FLOPs, divided by {gpus} · {mfu} · the peak of one GPU",
        {"size": "params", "mfu": "percent"},
    ),
    Template(
        "01",
        {"gpu": GPUS},
        "From how many FLOPs per byte of HBM on is a kernel in bf16 limited by the arithmetic of a GPU "
        "({gpu})?",
        lambda gpu: roofline.ridge_flops_per_byte(
            catalog.gpu(gpu).peak_flops_per_s("bf16"), catalog.gpu(gpu).hbm_bytes_per_s
        ),
        "flops_per_byte",
        "the ridge: the dense bf16 peak divided by the bandwidth of HBM",
        {},
    ),
    Template(
        "02",
        {"size": SIZES[:5], "ranks": RANKS},
        "The gradients of {size} parameters, two bytes each, are summed by a ring AllReduce over {ranks} "
        "ranks. How many bytes does each rank send?",
        lambda size, ranks: collectives.ring_link_bytes(2.0 * size, ranks),
        "bytes",
        "2 (n − 1)/n of the buffer, with n = {ranks} and a buffer of 2 · {size} bytes",
        {"size": "params"},
    ),
    Template(
        "02",
        {"buffer": (1e6, 64e6, 1e9, 16e9), "ranks": RANKS, "wire": (25e9, 50e9, 450e9)},
        "A ring AllReduce of {buffer} over {ranks} ranks, each with {wire} one way; a hop takes 5 µs. How"
        " long does it take?",
        lambda buffer, ranks, wire: collectives.ring_all_reduce_s(buffer, ranks, wire, 5e-6),
        "seconds",
        "2 (n − 1) hops of 5 µs, and 2 (n − 1)/n of the buffer at {wire}",
        {"buffer": "bytes", "wire": "bytes_per_s"},
    ),
    Template(
        "05",
        {"size": SIZES[2:], "ranks": RANKS, "stage": (1, 2, 3)},
        "ZeRO stage {stage} over {ranks} ranks, sixteen-byte Adam, {size} parameters. How many bytes of "
        "state does each rank hold?",
        lambda size, ranks, stage: memory.sharded_state_bytes(size, None, ranks, stage),
        "bytes",
        "4P + 12P/N in stage 1, 2P + 14P/N in stage 2, 16P/N in stage 3, with P = {size} and N = {ranks}",
        {"size": "params"},
    ),
    Template(
        "07",
        {"stages": (4, 8, 16), "batches": (8, 16, 32, 64)},
        "A pipeline of {stages} stages runs {batches} micro-batches by 1F1B. What share of the time does "
        "a GPU wait?",
        lambda stages, batches: pipeline.bubble_share(stages, batches),
        "percent",
        "the bubble: (p − 1)/(m + p − 1), with p = {stages} and m = {batches}",
        {},
    ),
    Template(
        "10b",
        {"gpus": (1024, 4096, 16384, 65536), "rate": (0.05, 0.1, 0.2)},
        "A GPU fails {rate} times a year, and a failure of any stops the run. How long does a run on "
        "{gpus} GPUs go between two failures?",
        lambda gpus, rate: reliability.mean_time_between_failures_s(gpus, reliability.per_s(rate)),
        "seconds",
        "a year divided by {gpus} · {rate}",
        {"rate": "real"},
    ),
    Template(
        "10b",
        {"write": (30.0, 60.0, 120.0, 300.0), "hours": (2.0, 3.0, 8.0, 24.0)},
        "A checkpoint takes {write} to write, and a failure comes every {hours} hours. How often should "
        "the run write, by Young's rule?",
        lambda write, hours: reliability.young_interval_s(write, hours * units.HOUR),
        "seconds",
        "√(2 δ M), with δ = {write} and M = {hours} hours",
        {"write": "seconds", "hours": "real"},
    ),
    Template(
        "11",
        {"model": ("llama3-8b", "llama3-70b"), "context": (4096, 8192, 32768), "users": (1, 16, 64)},
        "{users} sequences of {context} tokens each, of {model}, with keys and values in 16 bits. How "
        "many bytes do their caches take?",
        lambda model, context, users: memory.kv_bytes(catalog.model(model), context, users),
        "bytes",
        "2 · layers · KV heads · head dimension · 2 bytes for each token, times {context} tokens and "
        "{users} sequences",
        {},
    ),
    Template(
        "11",
        {"gpu": GPUS},
        "From how many sequences in a batch on does decoding with 16-bit weights stop being limited by "
        "the reading of weights, on one GPU ({gpu})? Leave the caches out.",
        lambda gpu: roofline.critical_batch(
            catalog.gpu(gpu).peak_flops_per_s("bf16"), catalog.gpu(gpu).hbm_bytes_per_s
        ),
        "count",
        "the critical batch: peak · bytes of a weight / (2 · bandwidth of HBM)",
        {},
    ),
    Template(
        "16",
        {"side": (512, 1024, 2048, 4096, 8192)},
        "Two square matrices of {side} × {side} are multiplied in bf16, and each is read once and the "
        "product written once. How many FLOPs is that for each byte?",
        lambda side: roofline.matmul_flops_per_byte(side, side, side),
        "flops_per_byte",
        "2n³ FLOPs over 3 · 2n² bytes: n/3, with n = {side}",
        {},
    ),
)


def questions(seed: int, many: int) -> list[Question]:
    """The questions of the sheet with this number, in the order of the lessons: every kind once before any is
    asked twice."""
    check.whole(seed=seed, questions=many)
    if seed > MOST_SEED or many > MOST_QUESTIONS:
        raise ValueError(
            f"seed must be at most {MOST_SEED:,} and questions {MOST_QUESTIONS}, got {seed} and {many}"
        )
    dice = [float((seed * LEHMER + 12345) % PRIME)]
    roll(dice, 2)  # discarded, because neighbouring seeds begin with similar numbers
    roll(dice, 2)
    left: list[int] = []
    chosen: list[tuple[int, Template, dict[str, Any]]] = []
    while len(chosen) < many:
        left = left or list(range(len(TEMPLATES)))
        at = left.pop(roll(dice, len(left)))
        template = TEMPLATES[at]
        chosen.append(
            (at, template, {name: each[roll(dice, len(each))] for name, each in template.drawn.items()})
        )
    chosen.sort(key=lambda one: one[0])
    return [_asked(number, template, drawn) for number, (_, template, drawn) in enumerate(chosen, 1)]


def _asked(number: int, template: Template, drawn: dict[str, Any]) -> Question:
    words = {name: _written(name, value, template.said.get(name, "")) for name, value in drawn.items()}
    answer = float(template.answer(**drawn))
    return Question(
        number,
        template.lesson,
        template.text.format(**words),
        answer,
        units.human(answer, template.family),
        template.working.format(**words),
    )


def _written(name: str, value: Any, family: str) -> str:
    """What was drawn, as the sheet has it."""
    if name == "gpu":
        return catalog.gpu(value).name
    if name == "model":
        return catalog.model(value).name
    return units.human(value, family) if family else f"{value:,}"


def lines(seed: int, asked: list[Question], key: bool) -> list[str]:
    """The sheet as text, or with ``key`` its answers and the rubric."""
    out = [
        f"Sheet {seed}: {'key and rubric' if key else 'write the rule, then the number with its unit'}",
        "",
    ]
    for each in asked:
        out.append(f"{each.number}. (lesson {each.lesson}) {each.text}")
        out += [f"   {each.shown}: {each.working}"] if key else [f"   {LINE}"]
        out.append("")
    if key:
        out.append("Three points for each question:")
        out += [f"- {name}: {words}." for name, words in RUBRIC]
    return out
