"""The rules of lessons 09 and 12 about experts' messages and about pools of replicas."""

from __future__ import annotations

from functools import cache

import numpy as np

from engine import catalog
from engine.catalog.models import Model
from engine.mechanism import experts
from engine.rules.held import HeldRule
from engine.serving import pools, queues

EXPERTS = tuple(
    catalog.model(key)
    for key in ("mixtral-8x7b", "llama4-maverick", "gpt-oss-120b", "deepseek-v3", "qwen3-235b-a22b")
)
TARGET_S, ARRIVALS = 1.0, 400_000


# -- lesson 09 -----------------------------------------------------------------------------------------------
def sending_share(model: Model, ranks: int, tokens: int) -> float:
    """The rule's ratio of sending to computing, f*/f: the time of both AllToAlls over that of the experts'
    arithmetic, at the data-sheet rates of an H100 and its wires."""
    gpu = catalog.gpu("h100-sxm")
    wire = gpu.link_bytes_per_s if ranks <= 8 else gpu.nic_bytes_per_s
    crossing = 7 / 8  # the share of the tokens that leave a GPU in a node of eight, or one node of eight
    return experts.hiding_width(crossing, gpu.bf16_flops_per_s, wire) / model.expert_ffn


def fitted_sending_share(model: Model, ranks: int, tokens: int) -> float:
    """Sending over computing in the engine's layer, which sends a message for each chosen expert."""
    machine = experts.ExpertNode.of(catalog.node("dgx-h100"))
    routed = experts.block(model, model.experts, model.top_k)
    found = experts.layer(routed, tokens, ranks, machine, ranks, False, False)
    return float(experts.wires_s(found) / found.experts_s)


# -- lesson 12 -----------------------------------------------------------------------------------------------
@cache
def gaps() -> np.ndarray:
    """Times between memoryless (Poisson) arrivals, with a mean of 1."""
    return np.random.default_rng(0).exponential(size=ARRIVALS)


def mean_first_token_s(load: float, prompt_s: float) -> float:
    """The mean time of waiting plus service at one server, computed request by request: a request waits as
    long as the one before it waited and was served, minus the time between their arrivals."""
    ahead_s = np.cumsum(prompt_s - gaps() * prompt_s / load)
    waits_s = ahead_s - np.minimum(np.minimum.accumulate(ahead_s), 0.0)
    return float(waits_s.mean()) + prompt_s


def busiest(prompt_s: float) -> float:
    """The highest load of the simulated server at which its mean time meets the target."""
    low, high = 0.0, 1.0
    for _ in range(20):
        load = (low + high) / 2
        low, high = (load, high) if mean_first_token_s(load, prompt_s) <= TARGET_S else (low, load)
    return low


def best_share(reading_s: float, replicas: int) -> float:
    """The share of the replicas that read prompts in the best split; writing an answer takes one replica a
    second."""
    alike = pools.Rates(1 / reading_s, 1e9, 1.0, 1.0, reading_s, 1.0)
    return float(pools.best_split(alike, replicas).prefillers) / replicas


RULES = (
    HeldRule(
        "09-expert-parallel",
        "rule-the-expert-s-width-against-the-wire",
        sending_share,
        fitted_sending_share,
        {"model": EXPERTS, "ranks": (8, 64), "tokens": (8192, 32768)},
        "sending over computing in a layer of five models on 8 and 64 H100s, 8,192 or 32,768 tokens on each",
        "the engine's AllToAlls and grouped products",
        0.6,
        because="Grouped products reach half to two thirds of the peak, so a narrower expert hides as much.",
        claims=lambda model, ranks, tokens: model.experts >= ranks,
    ),
    HeldRule(
        "12-disaggregated-serving",
        "rule-how-busy-a-prefill-pool-may-be-on-average",
        lambda prompt_s: queues.prefill_rate(prompt_s, TARGET_S) * prompt_s,
        busiest,
        {"prompt_s": (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)},
        f"prompts that take 5 to 70 % of the target, {ARRIVALS:,} at random",
        "a queue, run request by request",
        0.005,
    ),
    HeldRule(
        "12-disaggregated-serving",
        "rule-split-by-work",
        lambda reading_s, replicas: pools.prefill_share(reading_s, 1.0),
        best_share,
        {"reading_s": (0.1, 0.25, 0.5, 1.0, 2.0), "replicas": (16, 32, 64, 128)},
        "16 to 128 replicas, reading a tenth to twice of an answer's work",
        "the best of all splits",
        0.4,
        because="Replicas come whole.",
    ),
)
