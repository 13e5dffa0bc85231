"""Ollama: ``ollama run name:tag``, and a Modelfile.

It runs llama.cpp's files and puts as many layers on the GPUs as it thinks fit, so it starts wherever the
host's memory is enough. Its library's tags are read as names (ollama.com/library): without a tag, and where
a tag says no format, weights are in Q4_K_M. A Modelfile: ollama/ollama docs/modelfile.md (FROM, PARAMETER
num_ctx and num_gpu). From memory: the default context of 4,096 tokens (which newer ones raise on large
cards), and OLLAMA_CONTEXT_LENGTH.
"""

from __future__ import annotations

from typing import Any

from engine import catalog
from engine.frameworks import llamacpp
from engine.frameworks.framework import Claim, Command, Framework, Sure
from engine.frameworks.settings import TEXT, Draft, Entry, Field

FIELDS = {
    "model": Field("model", TEXT),
    "num_ctx": Field("longest"),
    "num_gpu": Field("on_gpu", TEXT),
    "num_batch": Field("chunk"),
}
STARTS = ("run", "serve", "create", "pull")
LENGTH = 4096
# a name of the library that means another model by its tag
MEANT = {
    "deepseek-r1-1.5b": "deepseek-r1-distill-qwen-1.5b",
    "deepseek-r1-7b": "deepseek-r1-distill-qwen-7b",
    "deepseek-r1-14b": "deepseek-r1-distill-qwen-14b",
    "deepseek-r1-32b": "deepseek-r1-distill-qwen-32b",
    "deepseek-r1-70b": "deepseek-r1-distill-llama-70b",
    "deepseek-r1-671b": "deepseek-v3",
    "gemma3": "gemma3-4b",
    "gpt-oss": "gpt-oss-20b",
    "llama3.1": "llama3.1-8b",
    "llama3.2": "llama3.2-3b",
    "llama3.3": "llama3.1-70b",
    "llama3": "llama3-8b",
    "mistral": "mistral-7b",
    "qwen2.5": "qwen2.5-7b",
    "qwen3": "qwen3-8b",
}


class Ollama(llamacpp.LlamaCpp):
    """It never asks for more layers than fit, unless told to."""

    key = "ollama"
    name = "Ollama"
    place = 76
    fields = FIELDS
    unmodelled: dict[str, str] = {}
    names_model = "write it behind `ollama run`, or give its config.json"
    separator = "_"
    in_parts = True
    environment = {"OLLAMA_CONTEXT_LENGTH": Field("length")}

    def claims(self, command: Command) -> Claim:
        """``ollama run``, or a line of a Modelfile with a model that is known."""
        words = command.words
        for at, word in enumerate(words[:6]):
            if word.split("/")[-1] == "ollama" and words[at + 1 : at + 2] == ["run"]:
                return Claim(Sure.NAMED, at + 2)
        if len(words) == 2 and words[0] == "FROM" and (_known(words[1]) or words[1].endswith(".gguf")):
            return Claim(Sure.NAMED, 1)
        if len(words) == 3 and words[0] == "PARAMETER" and words[1] in FIELDS:
            return Claim(Sure.NAMED, 1)
        return Claim(Sure.NOT)

    def entries(self, found: list[Entry], bare: list[Entry], words: list[Any]) -> list[Entry]:
        """The model, or one parameter."""
        if words and words[0].text == "PARAMETER" and len(bare) == 2:
            return [bare[1]._replace(key=bare[0].value)]
        return [entry._replace(key="model") for entry in bare[:1]]

    def known_as(self, name: str) -> str:
        """The model of the library."""
        return _known(name) or name

    def usual_context(self, d: Draft) -> int:
        """Its own, of which it does without no token."""
        length = d.given("length")
        if not length:
            d.assume("longest", LENGTH, "its default; newer ones raise it on large cards")
        return length or LENGTH


def _known(name: str) -> str | None:
    """The catalogue's key of a name of the library."""
    bare = name.strip().lower().split("/")[-1].replace(":", "-").removesuffix("-latest")
    for short, meant in MEANT.items():
        if bare == short or (short[-1] == "b" and bare.startswith(f"{short}-")):
            return catalog.model_key(meant)
    return catalog.model_key(name)


FRAMEWORK: Framework = Ollama()
