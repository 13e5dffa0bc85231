"""The rules of lesson 01: a model's memory, its arithmetic, and the time to read it."""

from __future__ import annotations

from engine import catalog
from engine.catalog import models
from engine.catalog.models import Model
from engine.mechanism import flops, memory
from engine.rules.held import HeldRule
from engine.serving import inference
from engine.step import layout
from engine.step.layout import Job, Layout

H100 = catalog.gpu("h100-sxm")
# decoders whose every layer reads all keys, and that have no tower beside them
DENSE = tuple(
    one for one in catalog.all_models().values() if not (one.experts or one.mixes or one.extra_params)
)
LARGE = tuple(one for one in DENSE if models.parameters(one) >= 6e9)
LLAMAS = tuple(catalog.model(key) for key in ("llama3-8b", "llama3-70b", "llama3.1-405b"))


def state_bytes(model: Model) -> float:
    """Bytes of weights, gradients and optimizer on a GPU that holds all of them, in the engine's step."""
    found = layout.estimate(model, layout.machine(H100), Job(8, 2048), Layout(8, zero=0)).memory_bytes
    return found["weights"] + found["gradients"] + found["optimizer"]


def kept_bytes(model: Model, seq: int, recompute: int) -> float:
    """The bytes that a layer keeps for its backward pass, by the engine's count."""
    return memory.layer_activation_bytes(model, seq, 1, recompute=recompute)


def read_s(model: Model, gpus: int, key: str) -> float:
    """The time to read bf16 weights once, at the data sheet's rate."""
    return 2 * models.parameters(model) / (gpus * catalog.gpu(key).hbm_bytes_per_s)


def token_s(model: Model, gpus: int, key: str) -> float:
    """The time of one token of one user in the engine's decode step."""
    return inference.decode_step(model, layout.machine(catalog.gpu(key)), gpus, 1, 1000).total_s


RULES = (
    HeldRule(
        "01-why-distributed",
        "rule-sixteen-bytes-a-parameter",
        lambda model: 16 * models.parameters(model),
        state_bytes,
        {"model": DENSE},
        f"the {len(DENSE)} dense models of the catalogue",
        "the state in the engine's step",
    ),
    HeldRule(
        "01-why-distributed",
        "rule-activations",
        lambda model, seq: 34 * seq * model.hidden,
        lambda model, seq: kept_bytes(model, seq, memory.NO_RECOMPUTE),
        {"model": LARGE, "seq": (2048, 8192)},
        f"the {len(LARGE)} dense models of the catalogue from 6B on",
        "the engine's count, tensor by tensor",
        1.0,
        because="Gemma's MLPs, eight times as wide as the model, keep the most.",
    ),
    HeldRule(
        "01-why-distributed",
        "rule-activations",
        lambda model, seq: 2 * seq * model.hidden,
        lambda model, seq: kept_bytes(model, seq, memory.FULL),
        {"model": LARGE, "seq": (2048, 8192)},
        "full recomputation",
        "the same count",
    ),
    HeldRule(
        "01-why-distributed",
        "rule-six-p-d",
        lambda model, seq: 6 * models.parameters(model),
        lambda model, seq: flops.training_flops_per_token(model, seq),
        {"model": LARGE, "seq": (2048, 4096, 8192)},
        f"the {len(LARGE)} dense models of the catalogue from 6B on, with 2,048 to 8,192 tokens",
        "a count of every matrix product",
        0.17,
        because="Attention over the sequence is what 6PD leaves out.",
    ),
    HeldRule(
        "01-why-distributed",
        "rule-a-token-costs-a-read",
        read_s,
        token_s,
        {"model": LLAMAS[:2], "gpus": (1, 2, 4, 8), "key": ("a100-80", "h100-sxm", "h200", "b200")},
        "Llama 3 8B and 70B on 1 to 8 GPUs, A100 to B200, with one user",
        "the engine's decode step",
        7.0,
        because="The rest is AllReduces, launches and the rate that memory reaches.",
    ),
)
