"""What a server holds for pictures: the tower that reads them, and what it takes to read the largest.

vLLM's profiling run lets the tower read as many of the largest pictures as a step has tokens for, at least
one, and keeps what comes out of it while the layers run (docs.vllm.ai, "Conserving Memory":
--limit-mm-per-prompt, --mm-processor-kwargs). One layer of the tower holds, for each patch, its token four
times, queries, keys and values, queries and keys once more in fp32 for their rotation, and the inside of its
MLP. That is our count: 57 runs of 0.19 (``serving/profiled.py``) hold it only where the sampler takes more
than the tower, and 2.51 GiB of an older release (vllm-project/vllm issue 16570) are 1.5 times of it. So a
verdict that half or twice as much would turn is none.

Widths of towers are those of the checkpoints' config.json, and stand in the catalogue; the most tokens of a
picture are from memory (16,384 for the Qwen models, whose largest picture is 12.8 or 16.8 million pixels; 256
for Gemma 3; 2,448 for Llama 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.base.types import Real

if TYPE_CHECKING:
    from engine.catalog.towers import Tower

OFF = 2.0  # that the count may be off by, either way
VALUE, ROTATED = 2.0, 4.0  # bytes of an activation, and of what is rotated
STREAMS = 4.0


@dataclass(frozen=True)
class Crossed:
    """A tower whose results some layers of the decoder attend to, instead of reading them among the tokens."""

    patches: int  # of the largest picture, in all its tiles
    hidden: int
    width: int  # of its MLP
    kept: int  # layers whose results are kept beside the last one's


# four tiles of 1,601 patches, padded to whole eights; its config.json's intermediate_layers_indices
CROSSED = {"llama3.2-11b-vision": Crossed(4 * 1608, 1280, 5120, 5)}
CROSSES = (
    "eight layers attend to the pictures of all requests at once, and what is cached of these is not modelled"
)


def crossed_bytes(tower: Crossed, requests: float, tp: float) -> tuple[float, float]:
    """What the run holds where it reads a picture for each request, all of them at once (vLLM's
    worker/enc_dec_model_runner.py, ``profile_run``): in one layer, by the count above; and beside it results
    that are kept, and put side by side with the last layer's, and the mask under which a picture's patches
    attend to each other (model_executor/models/mllama.py)."""
    inner = 2.0 * tower.width / tp + (STREAMS + 3.0 / tp) * tower.hidden
    beside = (2.0 * tower.kept + 1.0) * tower.hidden + tower.patches
    patches = requests * tower.patches
    return patches * VALUE * inner, patches * VALUE * beside


def tokens(tower: Tower, step: Real, pixels: Real) -> Real:
    """Tokens of the pictures that the run reads: as many as a step has, at least one picture; ``pixels`` of
    the largest, where the texts say."""
    most = float(tower.most)
    if pixels:
        most = min(most, max(1.0, pixels / (tower.patch**2 * tower.merged)))
    return max(most, step // most * most)


def read_bytes(tower: Tower, read: Real, tp: Real) -> float:
    """The most that a layer of the tower holds for pictures of this many tokens; ``tp`` ranks cut it."""
    inner = (2.0 + tower.gated) * tower.width / tp
    patch = VALUE * (inner + (STREAMS + 3.0 / tp) * tower.hidden) + ROTATED * 2.0 * tower.hidden / tp
    return float(read * tower.merged * patch)


def kept_bytes(tower: Tower, read: Real, hidden: Real) -> float:
    """What comes out of the tower, and waits for the layers."""
    return float(VALUE * read * hidden * tower.outputs)


def none_allowed(text: str) -> bool:
    """Whether ``image=0,video=0``, or the same as JSON, allows no picture and no video."""
    allowed: dict[str, str] = {}
    for part in text.replace("{", "").replace("}", "").split(","):
        name, _, many = part.replace(":", "=").partition("=")
        allowed[name.strip().strip("\"' ")] = many.strip().strip("\"' ")
    return allowed.get("image") == "0" and allowed.get("video") == "0"


def pixels_of(text: str) -> float:
    """The pixels of the largest picture that ``{"max_pixels": 1048576}`` names; 0 where it names none."""
    _, found, rest = text.partition("max_pixels")
    digits = ""
    for c in rest.lstrip("\"' :="):
        if not c.isdigit():
            break
        digits += c
    return float(digits) if found and 0 < len(digits) < 13 else 0.0
