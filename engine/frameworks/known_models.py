"""Which model a launch is about: by a name that people use, by the sizes in it, or by a config.json beside
it."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache

from engine import catalog
from engine.catalog.models import Model

# words in a name that say how the weights were trained or stored, and nothing of their shape
DROPPED_TEXT = """
meta instruct chat hf base it pt fp8 fp16 bf16 awq gptq int4 int8 w4a16 w8a8 4bit 8bit bnb dynamic
instruct2507 2507 2501 2407 2409 1210 0324 0528 0905 hermes v0.1 v0.2 v0.3 v1 v1.5 pretrain sft peft
lora config finetune
"""
DROPPED = frozenset(DROPPED_TEXT.split())
# names of models that have another's shape
SAME = {
    "llama3.3-70b": "llama3.1-70b",
    "deepseek-r1": "deepseek-v3",
    "deepseek-v3.1": "deepseek-v3",
    "deepseek-r1-distill-qwen-1.5b": "qwen2.5-1.5b",
    "deepseek-r1-distill-qwen-7b": "qwen2.5-7b",
    "deepseek-r1-distill-qwen-14b": "qwen2.5-14b",
    "deepseek-r1-distill-qwen-32b": "qwen2.5-32b",
    "deepseek-r1-distill-llama-8b": "llama3.1-8b",
    "deepseek-r1-distill-llama-70b": "llama3.1-70b",
    "qwq-32b": "qwen2.5-32b",
    "qwen2-7b": "qwen2.5-7b",
    "qwen2-72b": "qwen2.5-72b",
    "qwen3-coder-30b-a3b": "qwen3-30b-a3b",
    "llama-4-scout-17b-16e": "llama4-scout",
    "llama-4-maverick-17b-128e": "llama4-maverick",
    "codellama-70b": "llama2-70b",
    "llama-30b": "llama-33b",
    "mistral-large-2407": "mistral-large-2",
}


# names that take more tokens at once than the model whose shape they have
LONGER = {
    "qwen3-coder-30b-a3b": 262144,
    "qwen3-30b-a3b-instruct-2507": 262144,
    "qwen3-30b-a3b-thinking-2507": 262144,
}


def squashed(name: str) -> str:
    """A name without what people write in different ways."""
    return "".join(c for c in name.lower() if c.isalnum())


@lru_cache(1)
def known() -> dict[str, str]:
    """Squashed name -> key of the catalogue."""
    models = catalog.all_models()
    stored = {squashed(tail(model.checkpoint)): key for key, model in models.items() if model.checkpoint}
    return stored | {squashed(key): key for key in models} | {squashed(k): v for k, v in SAME.items()}


def tail(name: str) -> str:
    """The last part of a path or of a Hugging Face name: meta-llama/Llama-3.1-8B -> llama-3.1-8b."""
    return name.strip().strip("/").replace("\\", "/").split("/")[-1].lower()


def key_of(name: str) -> str | None:
    """The catalogue's key for a name that people use; None if there is none."""
    bare = tail(name)
    if bare in catalog.all_models():
        return bare
    words = [w for w in bare.replace("_", "-").split("-") if w and w not in DROPPED]
    kept = [w for w in words if not (len(w) == 4 and w.isdigit())]
    for some in ([bare], words, kept):
        found = known().get(squashed("".join(some)))
        if found:
            return found
    return None


def named(name: str) -> Model:
    """The catalogue's model of that name; ValueError says what to give instead."""
    key = key_of(name)
    if key is None:
        near = get_close_matches(tail(name), catalog.all_models(), 3, 0.5)
        hint = f" (near: {', '.join(near)})" if near else ""
        raise ValueError(
            f"model {tail(name)[:60]!r} is not in the catalogue{hint}: give its config.json as well"
        )
    found = catalog.model(key)
    longer = [LONGER[one] for one in LONGER if squashed(tail(name)).startswith(squashed(one))]
    return replace(found, max_context=longer[0]) if longer else found


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
