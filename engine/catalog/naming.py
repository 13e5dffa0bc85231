"""Which model or which GPU of the catalogue a name means: names as people write them, on Hugging Face, in a
launch, in a chat, and as drivers and clouds print them.

A model is meant by its key, by its checkpoint, and by what stands in its ``also``, in any spelling, and with
words that say how its weights were trained or stored. A GPU is meant by its key, its name and its ``also``.
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
v0.1 v0.2 v0.3 v1 v1.5 pretrain sft peft lora config finetune gradient qat autoround static block quantized
pertensor safetensors ud
"""
DROPPED = frozenset(DROPPED_TEXT.split())

# how a word begins that says in how many bits weights are stored, before a digit: Q4_K_M, IQ2_XXS, W4AFP8,
# exl3
STORES = ("iq", "tq", "q", "w", "fp", "bf", "int", "nf", "exl", "bpw", "mxfp", "nvfp", "g")
BITS = ("bit", "bpw")  # … and how it ends behind one: 4bit, 3.5bpw
AFTER_BITS = ("k", "s", "m", "l", "xs", "xl", "xxs", "nl", "0", "1", "xxl")  # behind Q4: K_M, K_XL, 0

# … and of a GPU, nothing of the chip: who makes it, and who rents it out
MAKERS = ("nvidia", "geforce", "tesla", "amd", "instinct", "intel", "google", "aws", "ml", "standard")
BETWEEN = "-_/.,:()!"  # what people write between words, beside the space
INSTANCE = "xlarge"  # how the size of a cloud's instance ends: p5.48xlarge is one of the p5


def plain(name: str) -> str:
    """What is compared of a GPU's name: 'NVIDIA GeForce RTX 4090' and 'rtx-4090' are both 'rtx4090'."""
    words = name.lower()
    for mark in BETWEEN:
        words = words.replace(mark, " ")
    return "".join(word for word in words.split() if word not in MAKERS and not word.endswith(INSTANCE))


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


def says_bits(word: str) -> bool:
    """Whether a word says in how many bits weights are stored, as 4bit, Q4, IQ2, FP8, W4A16 and W4AFP8 do."""
    low = word.partition(".")[2] if word.startswith("quantized.") else word
    for end in BITS:
        digits = low.removesuffix(end)
        if digits != low and digits and digits.replace(".", "").isdigit():
            return True
    for begin in STORES:
        rest = low.removeprefix(begin)
        if rest != low and rest[:1].isdigit() and len(rest) < 8 and not (begin == "q" and len(rest) > 1):
            return begin != "g" or rest.isdigit()
    return False


def unstored(words: list[str]) -> list[str]:
    """A name's words without those that say how its weights are stored, which of several files it is (00001
    of 00003), and to how many tokens it was trained on (1048k)."""
    found: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if says_bits(word):
            while at < len(words) and words[at] in AFTER_BITS:
                at += 1
        elif len(word) == 5 and word.isdigit() and words[at : at + 1] == ["of"]:
            at += 2
        elif not (found and word[-1:] == "k" and len(word) > 2 and word[:-1].isdigit()):
            found.append(word)
    return found


def key_of(name: str, known: Mapping[str, str]) -> str | None:
    """The key that a name means among ``known`` names; None if there is none."""
    bare = tail(name)
    made = bare.split("_")[0] if "_" in bare else ""  # google_gemma-3-27b: its maker
    for mark in ("_", " ", ":"):
        bare = bare.replace(mark, "-")
    bare = bare.replace(".w", "-w").removesuffix(".gguf")
    words = [w for w in unstored(bare.split("-")) if w and w not in DROPPED]
    kept = [w for w in words if not (len(w) == 4 and w.isdigit())]
    unmade = kept[1:] if made and kept[:1] == [made] else kept
    for some in ([bare], words, kept, unmade):
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
