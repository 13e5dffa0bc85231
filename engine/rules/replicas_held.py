"""The rules of lessons 04 and 05: gradients, shards, and how much of their traffic a pass hides."""

from __future__ import annotations

from functools import cache

import numpy as np

from engine import catalog
from engine.base.types import Real
from engine.catalog import models
from engine.catalog.hardware import Gpu
from engine.catalog.models import Model
from engine.executed import data_parallel, fully_sharded, ranks, ranks_operations
from engine.mechanism import flops, hiding, matmul, start_ups
from engine.rules.held import HeldRule
from engine.step import layout
from engine.step.layout import Job, Layout, Machine

H100, DGX = catalog.gpu("h100-sxm"), catalog.node("dgx-h100")
CARDS = (hiding.SLOWEST_CARD_BYTES_PER_S, 50e9)
MACHINES = (("a100-80", CARDS[0]), *((key, card) for key in ("h100-sxm", "h200", "b200") for card in CARDS))
DENSE = tuple(catalog.model(key) for key in ("llama3-8b", "llama3-70b", "gpt3-175b", "llama3.1-405b"))
GROUPS = (hiding.FEWEST_RANKS, 64, hiding.MOST_RANKS)


# -- tokens that hide ----------------------------------------------------------------------------------------
def exposed_s(model: Model, at: Machine, count: int, tokens: int, zero: int) -> float:
    """The exposed time of sending gradients or shards in the engine's step."""
    return layout.estimate(model, at, Job(count, seq=tokens), Layout(count, zero=zero)).time_s["data_exposed"]


@cache
def fewest_tokens(model: Model, at: Machine, count: int, zero: int = 1) -> int:
    """The shortest sequence on each GPU for which no more is exposed in the engine's step than for the
    longest one."""
    least, low, high = exposed_s(model, at, count, 2**18, zero), 16, 2**18
    while high - low > 1:
        middle = (low + high) // 2
        if exposed_s(model, at, count, middle, zero) > least * (1 + 1e-9):
            low = middle
        else:
            high = middle
    return high


def wire_bytes_per_s(gpu: Gpu, card_bytes_per_s: float) -> float:
    """The rate of a ring through whole nodes: the slower of the link and all cards of a node."""
    return min(gpu.link_bytes_per_s, gpu.gpus_per_node * card_bytes_per_s)


def hiding_tokens(model: Model, machine: tuple[str, float], count: int) -> Real:
    """The rule's number of tokens on each GPU that hide the traffic; ``machine`` is a GPU and its bytes per
    second of the cards."""
    gpu, card = catalog.gpu(machine[0]), machine[1]
    share = models.parameters(model) / models.active_parameters(model)
    rate = matmul.product_flops_per_s(gpu)
    return hiding.tokens_to_hide(count, wire_bytes_per_s(gpu, card), rate, params_per_active=share)


def at(machine: tuple[str, float]) -> Machine:
    """The engine's machine for a GPU's key and its bytes per second of the cards."""
    return layout.machine(catalog.gpu(machine[0]), nic_bytes_per_s=machine[1])


def most_gpus(model: Model, machine: tuple[str, float], count: int) -> float:
    """The rule's number of GPUs, B_crit·W/C_k, for the batch that gives each of ``count`` GPUs just the
    tokens it needs."""
    gpu, card = catalog.gpu(machine[0]), machine[1]
    batch = count * fewest_tokens(model, at(machine), count)
    return batch * wire_bytes_per_s(gpu, card) / matmul.product_flops_per_s(gpu)


# -- buckets -------------------------------------------------------------------------------------------------
def bucket_step(model: Model, tokens: int, count: int) -> tuple[Model, Real, Real, Real, Real, Real]:
    """The arguments of a simulated step on H100s with a card each."""
    card, rate = DGX.nic, matmul.product_flops_per_s(H100)
    return model, tokens, count, rate, card.bytes_per_s, start_ups.hop_s(card)


def exposed_with_s(bucket_bytes: float, model: Model, tokens: int, count: int) -> float:
    """The exposed time of a step that is simulated tensor by tensor, with buckets of this size."""
    buckets = dict(bucket_bytes=bucket_bytes, first_bucket_bytes=bucket_bytes)
    return float(data_parallel.simulate_step(*bucket_step(model, tokens, count), **buckets)["exposed_s"])


def exposed_by_rule_s(model: Model, tokens: int, count: int) -> float:
    """The exposed time of the simulated step with the rule's bucket."""
    _, _, _, rate, wire, alpha_s = bucket_step(model, tokens, count)
    params = models.parameters(model)
    backward_s = flops.backward_flops(params, tokens) / rate
    gradient = data_parallel.gradient_bytes(params)
    bucket = data_parallel.best_bucket_bytes(gradient, count, wire, alpha_s, backward_s)
    return exposed_with_s(bucket, model, tokens, count)


def least_exposed_s(model: Model, tokens: int, count: int) -> float:
    """The exposed time of the simulated step with the best of 25 bucket sizes from 10 MB to 10 GB."""
    return min(exposed_with_s(float(size), model, tokens, count) for size in np.geomspace(1e7, 1e10, 25))


# -- shards --------------------------------------------------------------------------------------------------
def held_bytes(model: Model, count: int, stage: int) -> float:
    """The bytes that a GPU holds at this ZeRO stage, by the lesson's table."""
    params = models.parameters(model)
    whole, shared = ((16, 0), (4, 12), (2, 14), (0, 16))[stage]
    return whole * params + shared * params / count


def state_bytes(model: Model, count: int, stage: int, shard: int = 0) -> float:
    """Bytes of weights, gradients and optimizer on a GPU in the engine's step."""
    where = Layout(count, zero=stage, shard=shard)
    found = layout.estimate(model, layout.machine(H100), Job(count, 2048), where).memory_bytes
    return found["weights"] + found["gradients"] + found["optimizer"]


def executed_elements(count: int, stage: int) -> float:
    """The elements of a buffer of ``count`` that a rank sends in executed collectives: an AllReduce of
    gradients without ZeRO, its two halves (ReduceScatter and AllGather) from stage 1 on, and one more
    AllGather at stage 3."""
    buffers = ranks.example(count, count)
    gather = ranks_operations.all_gather(list(buffers.T[:, :1]), cell_bytes=1.0)
    scatter = ranks_operations.reduce_scatter(buffers, cell_bytes=1.0)
    runs = (gather, gather, scatter) if stage == 3 else (gather, scatter)
    if stage == 0:
        runs = (ranks_operations.all_reduce(buffers, cell_bytes=1.0),)
    return sum(float(run.sent_bytes.mean()) for run in runs)


PEAK_RANKS, PEAK_LAYERS = 64, 32


def sharded_layer(model: Model, tokens: int) -> fully_sharded.ShardedLayer:
    """A layer of this model, sharded over the H100s of whole nodes."""
    wire = min(DGX.link.bytes_per_s, DGX.outgoing_bytes_per_s)
    hop_s = start_ups.mean_hop_s(DGX, PEAK_RANKS * 1.0)
    return fully_sharded.transformer_layer(
        model, tokens, PEAK_RANKS, matmul.product_flops_per_s(H100), wire, hop_s
    )


def peak_bytes(model: Model, tokens: int, ahead: int) -> float:
    """The rule's peak memory, with three bytes per parameter of a layer for gradients that wait to be
    sent."""
    one, a_layer = sharded_layer(model, tokens), models.layer_parameters(model)
    state = fully_sharded.state_bytes(model, PEAK_LAYERS, PEAK_RANKS)
    return state + PEAK_LAYERS * one.activation_bytes + 2 * (ahead + 1) * a_layer + 3 * a_layer


def executed_peak_bytes(model: Model, tokens: int, ahead: int) -> float:
    """The peak memory of a step that is executed layer by layer."""
    run = fully_sharded.run(sharded_layer(model, tokens), PEAK_LAYERS, ahead)
    return fully_sharded.state_bytes(model, PEAK_LAYERS, PEAK_RANKS) + float(run["peak_bytes"])


def beyond_group_elements(group: int, replicas: int) -> float:
    """The rule's number of elements that a rank sends beyond its group: 2(N−g)/N of its part of a buffer,
    which has one element for each replica."""
    count = group * replicas
    return 2 * (count - group) / count * replicas


MACHINES_IN_WORDS = "on A100s to B200s in whole nodes, with 25 or 50 GB/s of cards for each GPU"
RULES = (
    HeldRule(
        "04-data-parallel",
        "rule-tokens-enough-to-hide",
        hiding_tokens,
        lambda model, machine, count: fewest_tokens(model, at(machine), count),
        {"model": DENSE, "machine": MACHINES, "count": GROUPS},
        f"dense models of 8B to 405B on {GROUPS[0]} to {GROUPS[-1]} GPUs, {MACHINES_IN_WORDS}",
        "the engine's full step",
        hiding.ERROR / (1 - hiding.ERROR),
    ),
    HeldRule(
        "04-data-parallel",
        "rule-the-best-bucket",
        exposed_by_rule_s,
        least_exposed_s,
        {"model": DENSE[:1], "tokens": (4096, 8192, 16384), "count": (16, 64, 256, 1024)},
        "what is exposed of Llama 3 8B's gradient with 4,096 to 16,384 tokens on each of 16 to 1,024 H100s, "
        "which have a card each",
        "the best bucket of a simulation, tensor by tensor",
        0.05,
    ),
    HeldRule(
        "04-data-parallel",
        "rule-the-most-gpus-for-data-parallelism",
        most_gpus,
        lambda model, machine, count: count,
        {"model": DENSE, "machine": MACHINES, "count": GROUPS[1:]},
        f"dense models of 8B to 405B and batches for {GROUPS[1]} or {GROUPS[2]} GPUs, {MACHINES_IN_WORDS}",
        "the engine's full step",
        0.12,
    ),
    HeldRule(
        "05-fsdp-and-zero",
        "rule-what-each-stage-leaves",
        held_bytes,
        state_bytes,
        {"model": DENSE, "count": (8, 64, 512), "stage": (0, 1, 2, 3)},
        "the bytes of dense models of 8B to 405B on 8 to 512 GPUs",
        "the engine's step",
    ),
    HeldRule(
        "05-fsdp-and-zero",
        "rule-what-each-stage-leaves",
        lambda count, stage: (3 if stage == 3 else 2) * count * (count - 1) / count,
        executed_elements,
        {"count": (2, 3, 8, 32), "stage": (0, 1, 2, 3)},
        "the elements that 2 to 32 ranks send",
        "executed collectives",
    ),
    HeldRule(
        "05-fsdp-and-zero",
        "rule-enough-work-behind-each-gather",
        hiding_tokens,
        lambda model, machine, count: fewest_tokens(model, at(machine), count, 3),
        {"model": DENSE, "machine": MACHINES, "count": GROUPS},
        f"dense models of 8B to 405B on {GROUPS[0]} to {GROUPS[-1]} GPUs, {MACHINES_IN_WORDS}",
        "the engine's full step",
        1.4,
        because="Each gather has a start-up to hide as well, and that counts for 8B on hundreds of GPUs.",
    ),
    HeldRule(
        "05-fsdp-and-zero",
        "rule-the-peak-of-fsdp",
        peak_bytes,
        executed_peak_bytes,
        {"model": DENSE[:2], "tokens": (2048, 4096, 8192, 16384), "ahead": (0, 1, 2)},
        f"{PEAK_LAYERS} layers of Llama 3 8B's and 70B's size on {PEAK_RANKS} H100s, 2,048 to 16,384 tokens, "
        "0 to 2 layers ahead and three bytes a parameter waiting",
        "the step executed layer by layer",
        0.03,
    ),
    HeldRule(
        "05-fsdp-and-zero",
        "rule-hybrid-sharding",
        lambda model, shard: 16 * models.parameters(model) / shard,
        lambda model, shard: state_bytes(model, 64, 3, shard),
        {"model": DENSE, "shard": (8, 16, 32)},
        "the bytes of dense models of 8B to 405B on 64 GPUs in groups of 8 to 32",
        "the engine's step",
    ),
    HeldRule(
        "05-fsdp-and-zero",
        "rule-hybrid-sharding",
        beyond_group_elements,
        lambda group, replicas: executed_elements(replicas, 0),
        {"group": (2, 8, 32), "replicas": (2, 4, 8, 32)},
        "the elements that leave a group, with 2 to 32 groups",
        "executed collectives",
    ),
)
