"""The rules of lessons 06 to 10: a model split by matrices, layers, tokens and experts."""

from __future__ import annotations

from functools import cache

import numpy as np

from engine import catalog
from engine.catalog.models import Model
from engine.course.rules.held import Held
from engine.executed import pipeline_schedules, ranks, ring_attention, tensor
from engine.mechanism import context_parallel, memory, reliability

TOKENS, HIDDEN, FFN, HEADS = 4, 64, 128, 16


# -- lesson 06 -----------------------------------------------------------------------------------------------
@cache
def executed_layer_values(count: int) -> float:
    """Values that a rank sends in an executed attention and MLP, twice: the backward pass sums as many."""
    x, w, up, down = (ranks.example(rows, columns) * 1.0 for rows, columns in SHAPES)
    attention = tensor.split_attention(x, w, w, w, w, HEADS, count, value_bytes=1.0)
    mlp = tensor.split_product(x, up, down, count, value_bytes=1.0)
    return 2 * float(attention.sent_bytes.mean() + mlp.sent_bytes.mean())


SHAPES = ((TOKENS, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, FFN), (FFN, HIDDEN))


# -- lesson 07 -----------------------------------------------------------------------------------------------
def executed(schedule: str, stages: int, batches: int, chunks: int = 1, **times: float) -> dict:
    return pipeline_schedules.by_key(schedule, stages, batches, chunks, **times)


def idle_s(schedule: str, stages: int, batches: int, chunks: int = 1, **times: float) -> float:
    """What a stage idles in a step, on average."""
    run = executed(schedule, stages, batches, chunks, **times)
    return float(run["bubble"]) * float(run["step_s"])


def most_held(schedule: str, stages: int, batches: int, chunks: int = 1) -> float:
    return float(np.nanmax(executed(schedule, stages, batches, chunks)["held"]))


FORWARD_S, INPUT_S, WEIGHT_S = 1.0, 1.25, 0.75  # of a micro-batch on a stage: F, B − W and W


def table_idle_s(schedule: str, stages: int, chunks: int) -> float:
    """The column of idle times of the lesson's table."""
    both, backward = FORWARD_S + INPUT_S + WEIGHT_S, INPUT_S + WEIGHT_S
    return {
        "gpipe": (stages - 1) * both,
        "1f1b": (stages - 1) * both,
        "interleaved": (stages - 1) * both / chunks,
        "zb-h1": (stages - 1) * (both - 2 * WEIGHT_S),
        "zb-h2": (stages - 1) * (both - 3 * WEIGHT_S),
        "zb-v": (stages - 1) * (backward - 2 * WEIGHT_S),
        "dualpipe": (stages / 2 - 1) * (both + backward - 3 * WEIGHT_S),
        "dualpipe-v": (stages - 1) * (both + backward - 3 * WEIGHT_S) / 2,
    }[schedule]


def executed_idle_s(schedule: str, stages: int, chunks: int) -> float:
    times = dict(forward_s=FORWARD_S, input_s=INPUT_S, weight_s=WEIGHT_S)
    return idle_s(schedule, stages, 2 * stages, chunks, **times)


def uneven_s(stages: int, batches: int, extra: float) -> float:
    """(m + p − 1)·max(F + B), with this much more work on the last stage."""
    return (batches + stages - 1) * 3 * (1 + extra)


def executed_uneven_s(stages: int, batches: int, extra: float) -> float:
    return float(executed("1f1b", stages, batches, last_extra=extra)["total_s"])


# -- lesson 08 -----------------------------------------------------------------------------------------------
BLOCK = 64


@cache
def busy_share(count: int, order: int) -> float:
    """How much of its time a rank works in an executed causal ring, each step as long as its slowest."""
    run = ring_attention.ring(*ring_attention.example(1, count * BLOCK), count, order)
    return float(run.pairs.sum() / count / run.pairs.max(axis=1).sum())


def sent_over_ulysses(count: int, heads: int, kv_heads: int) -> float:
    """A ring's bytes over those of Ulysses, both executed."""
    q, k, v = ring_attention.example(heads, 2 * count, kv_heads=kv_heads)
    v = np.repeat(v, q.shape[-1], axis=-1)  # values as wide as keys
    of_ring = ring_attention.ring(q, k, v, count).sent_bytes.mean()
    return float(of_ring / ring_attention.ulysses(q, k, v, count).sent_bytes.mean())


GPTS = tuple(catalog.model(key) for key in ("gpt3-6.7b", "megatron-22b", "gpt3-175b", "mt-nlg-530b"))


def with_sequence_parallelism(model: Model, seq: int, count: int) -> float:
    return seq * model.hidden / count * (34 + 5 * model.heads * seq / model.hidden)


STAGES, BATCHES = (2, 4, 8, 16), (1, 2, 4, 8, 16, 32, 64)
RULES = (
    Held(
        "06-tensor-parallel",
        "rule-four-allreduces-a-layer-and-whole-heads",
        lambda count: 4 * 2 * (count - 1) / count * TOKENS * HIDDEN,
        executed_layer_values,
        {"count": (2, 4, 8, 16)},
        "2 to 16 ranks",
        "an attention and an MLP, cut and executed",
    ),
    Held(
        "07-pipeline-parallel",
        "rule-the-bubble",
        lambda schedule, stages, batches: (stages - 1) / (batches + stages - 1),
        lambda schedule, stages, batches: float(executed(schedule, stages, batches)["bubble"]),
        {"schedule": ("gpipe", "1f1b"), "stages": STAGES, "batches": BATCHES},
        "GPipe and 1F1B with 2 to 16 stages and 1 to 64 micro-batches",
        "the executed schedules",
    ),
    Held(
        "07-pipeline-parallel",
        "rule-memory-under-1f1b",
        lambda stages, batches: min(stages, batches),
        lambda stages, batches: float(executed("1f1b", stages, batches)["held"][0]),
        {"stages": STAGES, "batches": BATCHES},
        "2 to 16 stages and 1 to 64 micro-batches",
        "the executed schedule",
    ),
    Held(
        "07-pipeline-parallel",
        "rule-interleaving",
        lambda stages, chunks, groups: (stages - 1) / (chunks * groups * stages + stages - 1),
        lambda stages, chunks, groups: float(
            executed("interleaved", stages, groups * stages, chunks)["bubble"]
        ),
        {"stages": STAGES, "chunks": (1, 2, 4), "groups": (1, 2, 4)},
        "the bubble with 2 to 16 stages, 1 to 4 chunks and micro-batches in whole groups",
        "the executed schedule",
    ),
    Held(
        "07-pipeline-parallel",
        "rule-interleaving",
        lambda stages, chunks, groups: stages + (stages - 1) / chunks,
        lambda stages, chunks, groups: most_held("interleaved", stages, groups * stages, chunks),
        {"stages": STAGES, "chunks": (2, 4), "groups": (2, 4)},
        "the micro-batches in flight with 2 to 4 chunks",
        "the executed schedule",
    ),
    Held(
        "07-pipeline-parallel",
        "rule-what-zero-bubble-schedules-wait-for",
        table_idle_s,
        executed_idle_s,
        {
            "schedule": ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "dualpipe", "dualpipe-v"),
            "stages": (4, 8, 16),
            "chunks": (2,),
        },
        "4 to 16 stages and twice as many micro-batches, backward passes twice as long as forward ones",
        "the executed schedules",
        0.1,
        because="All but the two DualPipes are exact, and these idle less than the table says.",
    ),
    Held(
        "07-pipeline-parallel",
        "rule-the-slowest-stage-sets-the-pace",
        uneven_s,
        executed_uneven_s,
        {"stages": STAGES, "batches": BATCHES, "extra": (0.05, 0.1, 0.2, 0.5)},
        "2 to 16 stages, 4 micro-batches a stage, up to half a stage more work on the last one",
        "the executed schedule",
        0.1,
        claims=lambda stages, batches, extra: batches >= 4 * stages,
    ),
    Held(
        "08-sequence-and-context",
        "rule-sequence-parallelism",
        with_sequence_parallelism,
        lambda model, seq, count: memory.layer_activation_bytes(
            model, seq, 1, tensor=count, sequence_parallel=1, flash=0
        ),
        {"model": GPTS, "seq": (2048, 8192, 32768), "count": (2, 4, 8, 16)},
        "GPT models of 6.7B to 530B on 2 to 16 ranks",
        "the engine's count, tensor by tensor",
    ),
    Held(
        "08-sequence-and-context",
        "rule-deal-the-tokens-out-in-zig-zag",
        lambda count, order: count / (2 * count - 1) if order == context_parallel.CONTIGUOUS else 1.0,
        busy_share,
        {"count": (2, 4, 8, 16), "order": (context_parallel.CONTIGUOUS, context_parallel.ZIGZAG)},
        f"2 to 16 ranks with {BLOCK} tokens each",
        "the executed rings",
        0.005,
    ),
    Held(
        "08-sequence-and-context",
        "rule-ulysses-ends-at-the-heads",
        lambda count, heads, kv_heads: count * kv_heads / (heads + kv_heads),
        sent_over_ulysses,
        {"count": (2, 4, 8), "heads": (8, 16), "kv_heads": (8,)},
        "2 to 8 ranks",
        "a ring and Ulysses, executed",
    ),
    Held(
        "10b-the-long-run",
        "rule-how-often-to-write-young-1974",
        lambda checkpoint_s, mtbf_s: (2 * checkpoint_s * mtbf_s) ** 0.5,
        reliability.best_interval_s,
        {"checkpoint_s": (5.0, 30.0, 120.0), "mtbf_s": (3600.0, 4 * 3600.0, 24 * 3600.0, 7 * 24 * 3600.0)},
        "checkpoints of 5 s to 2 min and a failure every hour to every week",
        "the best interval with failures at random",
        0.1,
    ),
)
