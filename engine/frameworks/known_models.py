"""Which model a launch is about: by a name that people use, by the sizes in it, or by a config.json beside
it."""

from __future__ import annotations

from dataclasses import replace

from engine import catalog
from engine.catalog.models import Model
from engine.catalog.naming import near, squashed, tail

# names that take more tokens at once than the model whose shape they have
LONGER = {
    "qwen3-coder-30b-a3b": 262144,
    "qwen3-30b-a3b-instruct-2507": 262144,
    "qwen3-30b-a3b-thinking-2507": 262144,
    "llama-3-8b-instruct-gradient-1048k": 1048576,
    "llama-3-8b-instruct-262k": 262144,
}
# … and the beginning of those that take fewer where they are tuned for chat: Qwen2.5's config.json says
# 32,768 where that of the base says 131,072 (vllm-project/vllm issue 15092: 32B starts on four RTX 4090)
SHORTER, SHORTER_CONTEXT = "qwen2.5", 32768


def named(name: str) -> Model:
    """The catalogue's model of that name; ValueError says what to give instead."""
    key = catalog.model_key(name)
    if key is None:
        alike = near(tail(name), catalog.all_models())
        hint = f" (near: {', '.join(alike)})" if alike else ""
        raise ValueError(
            f"model {tail(name)[:60]!r} is not in the catalogue{hint}: give its config.json as well"
        )
    found = catalog.model(key)
    bare = squashed(tail(name))
    longer = [LONGER[one] for one in LONGER if bare.startswith(squashed(one))]
    if bare.startswith(SHORTER) and "instruct" in bare and "vl" not in key:
        longer = longer or [SHORTER_CONTEXT]
    return replace(found, max_context=longer[0]) if longer else found


def stored_formats(name: str) -> str:
    """How the parts of a checkpoint are stored (``catalog.stored``), where its name says so and they are not
    all alike: what no format of 4 or 8 bits reaches (embeddings, norms, towers) stays in 16. Empty where it
    does not. That 4 bits have a scale for 128 weights is assumed; some have one for 32, which is 8 %
    more."""
    low = tail(name)
    if (
        name.strip().lower().startswith("meta-llama/") and "405b" in low and "fp8" in low
    ):  # 57.75 GiB of 405B on each of 8 GPUs
        return "attention bf16, rest fp8"  # (vllm-project/vllm issue 6746)
    if "w4afp8" in low or "w4a8" in low:
        return "experts int4-128, rest fp8-block"
    if "bnb" in low and "4bit" in low:
        return "rest nf4-double"
    if "gemma-3" in low and ("int4" in low or "qat" in low) and stored_precision(name) == "int4":
        return "rest awq-32"  # Google trained Gemma 3 for such groups (gau-nernst/gemma3-int4's README)
    return {"int4": "rest awq", "int8": "rest int8"}.get(stored_precision(name) or "", "")


def stored_precision(name: str) -> str | None:
    """The format of the weights, where a model's name says it."""
    low = tail(name)
    for mark, precision in (
        ("fp8", "fp8"),
        ("awq", "int4"),
        ("gptq", "int4"),
        ("int4", "int4"),
        ("w4a16", "int4"),
    ):
        if mark in low:
            return "int8" if mark == "gptq" and "int8" in low else precision
    return "int4" if "4bit" in low else "int8" if "int8" in low or "w8a8" in low else None
