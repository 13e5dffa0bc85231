"""What each stage of a pipeline computes for one micro-batch, forward and backward: the layers shared out
evenly, and with two of them moved away from the output layer."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.catalog import models
from engine.mechanism import flops, matmul

MODEL, GPU, TOKENS = "llama3-8b", "h100-sxm", 8192
CASES = (("Eight layers on each stage", (8, 8, 8, 8)), ("9, 9, 8 and 6 layers", (9, 9, 8, 6)))
BAR, STEP, TITLE = 22.0, 27.0, 20.0


def passes_s(params: float) -> float:
    """Seconds of a forward and a backward through so many parameters."""
    return float(flops.training_flops(params, TOKENS) / matmul.product_flops_per_s(catalog.gpu(GPU)))


def stage_s(layers: tuple[int, ...]) -> list[tuple[float, float]]:
    """For each stage the seconds of its layers and of the output layer."""
    model = catalog.model(MODEL)
    layer_s, head_s = passes_s(models.layer_parameters(model)), passes_s(models.head_parameters(model))
    return [(held * layer_s, head_s if at == len(layers) - 1 else 0.0) for at, held in enumerate(layers)]


def draw(width: float) -> Picture:
    name = catalog.model(MODEL).name
    picture = Picture(
        f"{name} on four stages: the time of a micro-batch on each, with the layers shared out in two ways.",
        "Two groups of four bars on one axis of time. A line marks the slowest stage of each group; white is "
        "the time for which a stage waits in every turn.",
        width,
    )
    longest = max(sum(each) for _, layers in CASES for each in stage_s(layers))
    left, room = (70.0, 64.0) if picture.wide else (60.0, 58.0)
    scale, y = (width - left - room) / longest, 0.0
    for words, layers in CASES:
        times = stage_s(layers)
        pace = max(sum(each) for each in times)
        heading = f"{words}: a micro-batch leaves every {units.human(pace, 'seconds')}"
        picture.text(0, y + 9, heading if picture.wide else words, bold=True)
        picture.tell(heading)
        y += TITLE
        for at, (own_s, head_s) in enumerate(times):
            picture.text(0, y + BAR / 2, f"stage {at + 1}")
            picture.box(left, y, own_s * scale, BAR, "forward", stage=at, case=words, seconds=own_s)
            if head_s:
                picture.box(
                    left + own_s * scale,
                    y,
                    head_s * scale,
                    BAR,
                    "backward",
                    stage=at,
                    case=words,
                    seconds=head_s,
                )
            waits = pace - own_s - head_s
            if waits > 1e-6:
                picture.box(
                    left + (own_s + head_s) * scale, y, waits * scale, BAR, "idle", stage=at, case=words
                )
            shown = units.human(own_s + head_s, "seconds")
            picture.text(left + pace * scale + 6, y + BAR / 2, shown)
            picture.tell(f"stage {at + 1}: {shown}")
            y += STEP
        y += 10
    key = [("forward", "its layers"), ("backward", "output layer"), ("idle", "waits")]
    picture.key(y - 4, key)
    picture.tell("; ".join(words for _, words in key))
    return picture
