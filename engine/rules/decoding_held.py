"""The rules of lesson 11 and its second page: a decode step, and drafts."""

from __future__ import annotations

from engine import catalog
from engine.catalog import models
from engine.catalog.models import Model
from engine.mechanism import roofline
from engine.rules.held import HeldRule, first
from engine.serving import decoding, drafts, inference
from engine.serving.inference import StepTime
from engine.step import layout

MODELS = tuple(catalog.model(key) for key in ("llama3-8b", "llama3-70b"))
SIZES = (1, 2, 4, 8)
GPUS = ("a100-80", "h100-sxm", "h200", "b200")


def step(model: Model, key: str, gpus: int, users: float, context: float) -> StepTime:
    """The engine's decode step."""
    return inference.decode_step(model, layout.machine(catalog.gpu(key)), gpus, users, context)


def critical_batch(model: Model, key: str, gpus: int) -> float:
    """The number of users from which on, by the data sheet, arithmetic takes longer than reading the
    weights."""
    gpu = catalog.gpu(key)
    return roofline.critical_batch(gpu.bf16_flops_per_s, gpu.hbm_bytes_per_s)


def half_doubled_batch(model: Model, key: str, gpus: int) -> float:
    """Half of the number of users for which the products take twice as long as for one user."""
    one_s = step(model, key, gpus, 1, 1).weights_s
    return first(lambda users: step(model, key, gpus, users, 1).weights_s >= 2 * one_s, 4096) / 2


def most_tokens_per_s(model: Model, key: str, gpus: int, users: int, context: int) -> float:
    """The rule's upper bound on tokens per second and GPU: W/(2P/u + s·κ)."""
    read = 2 * models.parameters(model) / users + decoding.user_bytes(model, context)
    return catalog.gpu(key).hbm_bytes_per_s / read


def tokens_per_s(model: Model, key: str, gpus: int, users: int, context: int) -> float:
    """Tokens per second and GPU in the engine's decode step."""
    return users / step(model, key, gpus, users, context).total_s / gpus


def catching_up(model: Model, key: str, gpus: int, users: int) -> float:
    """The rule's number of cached tokens, of all users together, with which reading the caches takes as long
    as reading the weights."""
    return 2 * models.parameters(model) / decoding.token_bytes(model)


def caught_up(model: Model, key: str, gpus: int, users: int) -> float:
    """The number of cached tokens, of all users, with which attention takes as long as the products in the
    engine's step."""

    def so_long(context: int) -> bool:
        found = step(model, key, gpus, users, context)
        return found.attention_s >= found.weights_s

    return users * first(so_long, 2**22)


ANSWERS = [400] * 50


def drawn_speed_up(accepted: float, drafted: int, draft_cost: float) -> float:
    """The speed-up of answers whose accepted drafts are drawn at random: tokens per step, over the length of
    a step relative to one without drafts."""
    rounds = drafts.Drafts(drafted, accepted, draft_cost).rounds(ANSWERS, 1)
    return sum(ANSWERS) / sum(rounds) / (drafted * draft_cost + 1)


ON = "Llama 3 8B and 70B on 1 to 8 GPUs, A100 to B200"
RULES = (
    HeldRule(
        "11-inference",
        "rule-the-critical-batch",
        critical_batch,
        half_doubled_batch,
        {"model": MODELS, "key": GPUS, "gpus": SIZES},
        ON,
        "half the batch that doubles the time of a step's products in our estimate (by the rule, twice the "
        "critical batch does)",
        0.35,
    ),
    HeldRule(
        "11-inference",
        "rule-tokens-per-second-and-gpu",
        most_tokens_per_s,
        tokens_per_s,
        {"model": MODELS, "key": GPUS, "gpus": SIZES, "users": (1, 8, 32, 64), "context": (1000, 8000)},
        f"{ON}, with 1 to 64 users of 1,000 or 8,000 tokens",
        "our estimate of a decode step",
        0.9,
    ),
    HeldRule(
        "11-inference",
        "rule-when-the-caches-catch-up",
        catching_up,
        caught_up,
        {"model": MODELS, "key": GPUS, "gpus": SIZES, "users": (8, 32, 64)},
        f"{ON}, with 8 to 64 users",
        "the cached tokens with which attention takes as long as products in our estimate of a step",
        0.4,
    ),
    HeldRule(
        "11b-the-server",
        "rule-speculative-decoding-arxiv-2211-17192-equation-1-and-theorem-3-8",
        drafts.speculative_speed_up,
        drawn_speed_up,
        {"accepted": (0.5, 0.6, 0.7, 0.8, 0.9), "drafted": (1, 2, 4, 8), "draft_cost": (0.02, 0.1)},
        "1 to 8 drafts that are kept with 50 % to 90 %",
        "20,000 tokens whose drafts are drawn one by one",
        0.02,
    ),
)
