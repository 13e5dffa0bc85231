"""The rules of lessons 06 to 10: a model split by matrices, layers, tokens and experts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from engine import catalog
from engine.catalog.models import Model
from engine.executed import pipeline_schedules, ranks, ring_attention, tensor
from engine.mechanism import context_parallel, interconnect, matmul, memory, reliability
from engine.rules.held import HeldRule, first
from engine.step import layout
from engine.step.layout import Job, Layout

TOKENS, HIDDEN, FFN, HEADS = 4, 64, 128, 16


# -- lesson 06 -----------------------------------------------------------------------------------------------
@cache
def executed_layer_values(count: int) -> float:
    """Values that a rank sends in an executed attention and MLP, counted twice because the backward pass sums
    as many as the forward pass."""
    x, w, up, down = (ranks.example(rows, columns) * 1.0 for rows, columns in SHAPES)
    attention = tensor.split_attention(x, w, w, w, w, HEADS, count, value_bytes=1.0)
    mlp = tensor.split_product(x, up, down, count, value_bytes=1.0)
    return 2 * float(attention.sent_bytes.mean() + mlp.sent_bytes.mean())


SHAPES = ((TOKENS, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, FFN), (FFN, HIDDEN))


GPUS = ("a100-80", "h100-sxm", "b200")
GATED = tuple(catalog.model(key) for key in ("llama3-8b", "llama3-70b", "llama3.1-405b"))
MLP_MATRICES = 3


def sending_share(model: Model, key: str, count: int, tokens: int) -> float:
    """The rule's ratio of sending to computing in an MLP's forward pass, at the data sheet's rates:
    (t − 1)/(m/2 · F·W/C)."""
    gpu = catalog.gpu(key)
    limit = MLP_MATRICES / 2 * model.ffn * gpu.link_bytes_per_s / gpu.bf16_flops_per_s
    return (count - 1) / limit


def fitted_sending_share(model: Model, key: str, count: int, tokens: int) -> float:
    """Sending over computing with the engine's AllReduce and the rate that its products reach."""
    gpu = catalog.gpu(key)
    message = tensor.layer_message_bytes(tokens, model.hidden)
    sending_s = interconnect.all_reduce_s(message, count, count, interconnect.wires(gpu))
    work = 2 * MLP_MATRICES * tokens * model.hidden * model.ffn / count
    return sending_s / (work / matmul.product_flops_per_s(gpu))


# -- lesson 07 -----------------------------------------------------------------------------------------------
def executed(schedule: str, stages: int, batches: int, chunks: int = 1, **times: Any) -> dict:
    """One step of a pipeline, executed."""
    return pipeline_schedules.by_key(schedule, stages, batches, chunks, **times)


def idle_s(schedule: str, stages: int, batches: int, chunks: int = 1, **times: float) -> float:
    """The idle time of a stage in a step, on average."""
    run = executed(schedule, stages, batches, chunks, **times)
    return float(run["bubble"]) * float(run["step_s"])


def most_held(schedule: str, stages: int, batches: int, chunks: int = 1) -> float:
    """The most micro-batches whose activations any stage holds."""
    return float(np.nanmax(executed(schedule, stages, batches, chunks)["held"]))


FORWARD_S, INPUT_S, WEIGHT_S = 1.0, 1.25, 0.75  # times of a micro-batch on a stage: F, B − W and W


def table_idle_s(schedule: str, stages: int, chunks: int) -> float:
    """The idle time of a schedule by the lesson's table."""
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
    """The idle time of the executed schedule."""
    times = dict(forward_s=FORWARD_S, input_s=INPUT_S, weight_s=WEIGHT_S)
    return idle_s(schedule, stages, 2 * stages, chunks, **times)


def uneven_s(stages: int, batches: int, extra: float) -> float:
    """The rule's time of a step whose last stage has ``extra`` more work, as a share: (m + p − 1)·max(F +
    B)."""
    return (batches + stages - 1) * 3 * (1 + extra)


def executed_uneven_s(stages: int, batches: int, extra: float) -> float:
    """The time of that step with executed 1F1B."""
    return float(executed("1f1b", stages, batches, last_extra=extra)["total_s"])


# -- lesson 08 -----------------------------------------------------------------------------------------------
BLOCK = 64


@cache
def busy_share(count: int, order: int) -> float:
    """The share of the time that a rank works in an executed causal ring, in which each step takes as long as
    its slowest rank."""
    run = ring_attention.ring(*ring_attention.example(1, count * BLOCK), count, order)
    return float(run.pairs.sum() / count / run.pairs.max(axis=1).sum())


def sent_over_ulysses(count: int, heads: int, kv_heads: int) -> float:
    """The bytes sent by an executed ring, over those sent by an executed Ulysses."""
    q, k, v = ring_attention.example(heads, 2 * count, kv_heads=kv_heads)
    v = np.repeat(v, q.shape[-1], axis=-1)  # values as wide as keys
    of_ring = ring_attention.ring(q, k, v, count).sent_bytes.mean()
    return float(of_ring / ring_attention.ulysses(q, k, v, count).sent_bytes.mean())


def hiding_tokens(model: Model, key: str, beyond: bool) -> float:
    """The rule's number of tokens on each rank that hide the ring's traffic: 2·a_kv/a·C/W, where C is the
    rate that attention reaches."""
    gpu = catalog.gpu(key)
    wire = gpu.nic_bytes_per_s if beyond else gpu.link_bytes_per_s
    rate = context_parallel.flash_flops_per_s(gpu, model.head_dim)
    return context_parallel.hidden_from_tokens(
        model.heads, model.kv_heads, rate, wire, context_parallel.ZIGZAG
    )


def fewest_hiding_tokens(model: Model, key: str, beyond: bool) -> int:
    """The smallest number of tokens on each rank whose keys and values the engine sends within the time of
    the attention of one step of the ring."""
    gpu = catalog.gpu(key)
    net, rate = interconnect.wires(gpu), context_parallel.flash_flops_per_s(gpu, model.head_dim)

    def hidden(tokens: int) -> bool:
        block = context_parallel.kv_block_bytes(tokens, model.kv_heads, model.head_dim)
        attention_s = context_parallel.attention_s(tokens**2 / 2, model.heads, model.head_dim, rate)
        return interconnect.send_s(block, beyond, net) <= attention_s

    return first(hidden, 2**20)


GPTS = tuple(catalog.model(key) for key in ("gpt3-6.7b", "megatron-22b", "gpt3-175b", "mt-nlg-530b"))


def with_sequence_parallelism(model: Model, seq: int, count: int) -> float:
    """Bytes that a layer keeps on each rank, by the rule."""
    return seq * model.hidden / count * (34 + 5 * model.heads * seq / model.hidden)


# -- lesson 10 -----------------------------------------------------------------------------------------------
SEQUENCES, TENSOR_RANKS = 512, 8
H100S = layout.machine(catalog.gpu("h100-sxm"))


def bubble_of_arithmetic(model: Model, gpus: int, stages: int, chunks: int) -> float:
    """The rule's bubble over arithmetic, (p − 1)/(v·m), for m micro-batches of each replica."""
    micro_batches = SEQUENCES * TENSOR_RANKS * stages / gpus
    return (stages - 1) / (chunks * micro_batches)


def estimated_bubble(model: Model, gpus: int, stages: int, chunks: int) -> float:
    """The bubble over arithmetic in the engine's step."""
    schedule = "interleaved" if chunks > 1 else "1f1b"
    where = Layout(gpus, tp=TENSOR_RANKS, pp=stages, interleave=chunks, schedule=schedule)
    times = layout.estimate(model, H100S, Job(SEQUENCES, 4096), where).time_s
    return times["pipeline_bubble"] / times["compute"]


STAGES, BATCHES = (2, 4, 8, 16), (1, 2, 4, 8, 16, 32, 64)
RULES = (
    HeldRule(
        "06-tensor-parallel",
        "rule-four-allreduces-a-layer-and-whole-heads",
        lambda count: 4 * 2 * (count - 1) / count * TOKENS * HIDDEN,
        executed_layer_values,
        {"count": (2, 4, 8, 16)},
        "2 to 16 ranks",
        "an attention and an MLP, cut and executed",
    ),
    HeldRule(
        "06-tensor-parallel",
        "rule-tensor-ranks-up-to-about-f-w-c",
        sending_share,
        fitted_sending_share,
        {"model": GATED, "key": GPUS, "count": (2, 4, 8), "tokens": (4096, 16384)},
        "the share of sending in the MLPs of Llama 3 8B to 405B on 2 to 8 GPUs of a node, A100 to B200, with "
        "4,096 or 16,384 tokens",
        "the engine's AllReduces and products",
        0.9,
        because="Products reach two thirds of the data sheet's rate, and NVSwitch adds for H100s and B200s.",
    ),
    HeldRule(
        "07-pipeline-parallel",
        "rule-the-bubble",
        lambda schedule, stages, batches: (stages - 1) / (batches + stages - 1),
        lambda schedule, stages, batches: float(executed(schedule, stages, batches)["bubble"]),
        {"schedule": ("gpipe", "1f1b"), "stages": STAGES, "batches": BATCHES},
        "GPipe and 1F1B with 2 to 16 stages and 1 to 64 micro-batches",
        "the executed schedules",
    ),
    HeldRule(
        "07-pipeline-parallel",
        "rule-memory-under-1f1b",
        lambda stages, batches: min(stages, batches),
        lambda stages, batches: float(executed("1f1b", stages, batches)["held"][0]),
        {"stages": STAGES, "batches": BATCHES},
        "2 to 16 stages and 1 to 64 micro-batches",
        "the executed schedule",
    ),
    HeldRule(
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
    HeldRule(
        "07-pipeline-parallel",
        "rule-interleaving",
        lambda stages, chunks, groups: stages + (stages - 1) / chunks,
        lambda stages, chunks, groups: most_held("interleaved", stages, groups * stages, chunks),
        {"stages": STAGES, "chunks": (2, 4), "groups": (2, 4)},
        "the micro-batches in flight with 2 to 4 chunks",
        "the executed schedule",
    ),
    HeldRule(
        "07-pipeline-parallel",
        "rule-what-zero-bubble-schedules-wait-for",
        table_idle_s,
        executed_idle_s,
        {
            "schedule": ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2"),
            "stages": (4, 8, 16),
            "chunks": (2,),
        },
        "4 to 16 stages and twice as many micro-batches, backward passes twice as long as forward ones",
        "the executed schedules",
    ),
    HeldRule(
        "07-pipeline-parallel",
        "rule-what-schedules-from-both-ends-wait-for",
        table_idle_s,
        executed_idle_s,
        {"schedule": ("zb-v", "dualpipe", "dualpipe-v"), "stages": (4, 8, 16), "chunks": (2,)},
        "4 to 16 stages and twice as many micro-batches, backward passes twice as long as forward ones",
        "the executed schedules",
        0.1,
        because="ZB-V is exact, and the two DualPipes idle less than the table says.",
    ),
    HeldRule(
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
    HeldRule(
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
    HeldRule(
        "08-sequence-and-context",
        "rule-tokens-that-hide-the-ring",
        hiding_tokens,
        fewest_hiding_tokens,
        {"model": (GPTS[2], *GATED), "key": GPUS, "beyond": (True,)},
        "GPT-3 175B and Llama 3 8B to 405B over the network cards of A100s to B200s",
        "the engine's messages and attention",
        0.25,
    ),
    HeldRule(
        "08-sequence-and-context",
        "rule-tokens-that-hide-the-ring",
        hiding_tokens,
        fewest_hiding_tokens,
        {"model": (GPTS[2], *GATED), "key": GPUS, "beyond": (False,)},
        "their NVLink",
        "the same",
        4.0,
        because="There a message's start-up counts as well.",
    ),
    HeldRule(
        "08-sequence-and-context",
        "rule-deal-the-tokens-out-in-zig-zag",
        lambda count, order: count / (2 * count - 1) if order == context_parallel.CONTIGUOUS else 1.0,
        busy_share,
        {"count": (2, 4, 8, 16), "order": (context_parallel.CONTIGUOUS, context_parallel.ZIGZAG)},
        f"2 to 16 ranks with {BLOCK} tokens each",
        "the executed rings",
        0.005,
    ),
    HeldRule(
        "08-sequence-and-context",
        "rule-ulysses-ends-at-the-heads",
        lambda count, heads, kv_heads: count * kv_heads / (heads + kv_heads),
        sent_over_ulysses,
        {"count": (2, 4, 8), "heads": (8, 16), "kv_heads": (8,)},
        "2 to 8 ranks",
        "a ring and Ulysses, executed",
    ),
    HeldRule(
        "10-nd-parallelism",
        "rule-sequences-run-out-before-gpus-do",
        bubble_of_arithmetic,
        estimated_bubble,
        {
            "model": GATED[1:2] + GPTS[2:3],
            "gpus": (128, 256, 512, 1024),
            "stages": (2, 4, 8),
            "chunks": (1, 2),
        },
        f"the bubble of Llama 3 70B and GPT-3 175B with {SEQUENCES} sequences on 128 to 1,024 H100s, "
        f"{TENSOR_RANKS} tensor ranks, 2 to 8 stages and 1 or 2 chunks",
        "the engine's full step",
        0.35,
        because="A stage that idles also waits for the AllReduces of the others.",
    ),
    HeldRule(
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
