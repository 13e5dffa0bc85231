"""What a server holds for pictures: the tower that reads them, and what it takes to read the largest.

vLLM's profiling run lets the tower read as many of the largest pictures as a step has tokens for, at least
one, or the largest video if that has more, and keeps what comes out of it while the layers run (docs.vllm.ai,
"Conserving Memory": --limit-mm-per-prompt, --mm-processor-kwargs). One layer of the tower holds, for each
patch, its pixels, its token four times and the inside of its MLP, which is more than queries, keys and values
are. That is our count. A log of 0.23 that reads 114,688 tokens of a video has 2 % more, and the 2.51 GiB of a
release with the first engine (vllm-project/vllm issue 16570) are 1.9 times of it. So a verdict that half or
twice as much would turn is none.

The Qwen models' largest video has sixteen frames as large as the largest picture, two of which are as many
tokens as that, and no more tokens than the context has room for: 98,304 in 0.8 (vllm-project/vllm issue
15264, beside one picture), 114,688 in 0.23, each of 128,000 (model_executor/models/qwen2_vl.py,
``get_num_frames_with_most_features``). Qwen3-VL's was counted like that only in 0.11 (qwen3_vl.py,
``do_resize``), and has fewer tokens than a picture today.

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

TURNS = "what it takes to read the largest pictures is known to a factor of two, which decides here"
OFF = 2.0  # that the count may be off by, either way
VALUE = 2.0  # bytes of an activation
STREAMS = 4.0
COLOURS, FRAMES = 3.0, 2.0  # values of a pixel, and frames that a patch spans
MOST_FRAMES = 16  # of a video
# whose videos have frames as large as pictures: how their keys begin, and in which releases that is so
VIDEOS = {"qwen2.5-vl": ((0, 8), (9, 0)), "qwen3-vl": ((0, 11), (0, 11))}
WITHOUT_PICTURE = (0, 10)  # since which release no room is kept for a picture beside the video


@dataclass(frozen=True)
class Crossed:
    """A tower whose results some layers of the decoder attend to, instead of reading them as tokens."""

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
    inner = 2.0 * tower.width / tp + STREAMS * tower.hidden
    beside = (2.0 * tower.kept + 1.0) * tower.hidden + tower.patches
    patches = requests * tower.patches
    return patches * VALUE * inner, patches * VALUE * beside


def largest(tower: Tower, pixels: Real) -> float:
    """Tokens of the largest picture, which has ``pixels`` where the texts say."""
    most = float(tower.most)
    return min(most, max(1.0, pixels / (tower.patch**2 * tower.merged))) if pixels else most


def tokens(tower: Tower, step: Real, pixels: Real) -> Real:
    """Tokens of the pictures that the run reads: as many as a step has, at least one picture."""
    most = largest(tower, pixels)
    return max(most, step // most * most)


def video_tokens(key: str, tower: Tower, context: int, pixels: float, release: tuple[int, int]) -> float:
    """Tokens of the largest video that the model of this key reads in a context; 0 where it is no larger than
    a picture."""
    of = next((VIDEOS[name] for name in VIDEOS if key.startswith(name)), None)
    if of is None or not of[0] <= release <= of[1]:
        return 0.0
    picture = largest(tower, pixels)
    room = context - (picture if release < WITHOUT_PICTURE else 0.0)
    return min(MOST_FRAMES / FRAMES, room // picture) * picture


def read_bytes(tower: Tower, read: Real, tp: Real) -> float:
    """The most that a layer of the tower holds for pictures of this many tokens; ``tp`` ranks cut it."""
    pixels = COLOURS * FRAMES * tower.patch**2
    inner = (2.0 + tower.gated) * tower.width / tp
    return float(read * tower.merged * VALUE * (inner + STREAMS * tower.hidden + pixels))


def kept_bytes(tower: Tower, read: Real, hidden: Real) -> float:
    """What comes out of the tower, and waits for the layers."""
    return float(VALUE * read * hidden * tower.outputs)


def allowed(text: str, name: str) -> bool:
    """Whether ``image=0,video=0``, or the same as JSON, allows an "image" or a "video"."""
    limits: dict[str, str] = {}
    for part in text.replace("{", "").replace("}", "").split(","):
        key, _, many = part.replace(":", "=").partition("=")
        limits[key.strip().strip("\"' ")] = many.strip().strip("\"' ")
    return limits.get(name) != "0"


def pixels_of(text: str) -> float:
    """The pixels of the largest picture that ``{"max_pixels": 1048576}`` names; 0 where it names none."""
    _, found, rest = text.partition("max_pixels")
    digits = ""
    for c in rest.lstrip("\"' :="):
        if not c.isdigit():
            break
        digits += c
    return float(digits) if found and 0 < len(digits) < 13 else 0.0
