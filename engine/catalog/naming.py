"""Which model of the catalogue a name means: names as people write them, on Hugging Face, in a launch, in a
chat.

An entry is meant by its key, by its checkpoint, and by what stands in its ``also``, in any spelling, and with
words that say how its weights were trained or stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.catalog.models import Model

# words in a name that say how the weights were trained or stored, and nothing of their shape
DROPPED_TEXT = """
meta instruct chat hf base it pt fp8 fp16 bf16 awq gptq int4 int8 w4a16 w8a8 4bit 8bit bnb dynamic
thinking nvfp4 mxfp4 gguf unsloth reasoning instruct2507 2507 2501 2407 2409 1210 0324 0528 0905 hermes
v0.1 v0.2 v0.3 v1 v1.5 pretrain sft peft lora config finetune
"""
DROPPED = frozenset(DROPPED_TEXT.split())


def squashed(name: str) -> str:
    """A name without what people write in different ways; its dots stay, which tell 1.3B from 13B."""
    return "".join(c for c in name.lower() if c.isalnum() or c == ".")


def tail(name: str) -> str:
    """The last part of a path or of a Hugging Face name: meta-llama/Llama-3.1-8B -> llama-3.1-8b."""
    return name.strip().strip("/").replace("\\", "/").split("/")[-1].lower()


def names(models: Mapping[str, Model]) -> dict[str, str]:
    """Squashed name -> key. What an entry is called goes before what it is also called."""
    also = {squashed(one): key for key, model in models.items() for one in model.also}
    stored = {squashed(tail(model.checkpoint)): key for key, model in models.items() if model.checkpoint}
    found = also | stored | {squashed(key): key for key in models}
    dotless: dict[str, list[str]] = {}
    for name, key in found.items():
        dotless.setdefault(name.replace(".", ""), []).append(key)
    return {name: keys[0] for name, keys in dotless.items() if len(set(keys)) == 1} | found


def key_of(name: str, known: Mapping[str, str]) -> str | None:
    """The key that a name means among ``known`` names; None if there is none."""
    bare = tail(name)
    words = [w for w in bare.replace("_", "-").replace(" ", "-").split("-") if w and w not in DROPPED]
    kept = [w for w in words if not (len(w) == 4 and w.isdigit())]
    for some in ([bare], words, kept):
        whole = squashed("".join(some))
        found = known.get(whole) or known.get(whole.replace(".", ""))
        if found:
            return found
    return None


def near(name: str, keys: Mapping[str, object]) -> list[str]:
    """The keys that a name may have meant: those that begin with it, then those that look like it."""
    begins = [key for key in keys if squashed(key).startswith(squashed(name))] if squashed(name) else []
    alike = [key for key in get_close_matches(name, keys, n=3, cutoff=0.4) if key not in begins]
    return (begins + alike)[:4]
