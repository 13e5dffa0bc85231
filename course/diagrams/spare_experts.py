"""What the GPUs of a server have to compute when each holds its share of the experts, and when each has room
for one more: copies of the experts that are asked for most."""

from __future__ import annotations

import numpy as np

from course.drawing.picture import Picture
from engine.base import units
from engine.executed import routing, spare_experts

EXPERTS, GPUS, SKEW, SEED = 64, 8, 0.8, 1
BAR, STEP = 18.0, 22.0
WAYS = (("8 experts on each GPU", 0), ("and one spare place on each", GPUS))


def loads() -> list[float]:
    """The rows that each expert is asked for by the lesson's router, its favourites anywhere among them."""
    rows = routing.counted(routing.route(EXPERTS, 1, SKEW, SEED, routing.OFF, 0)["load"])[:EXPERTS]
    return [float(one) for one in np.random.default_rng(SEED).permutation(rows)]


def of_gpus(spare: int) -> list[float]:
    """The rows of each GPU."""
    return spare_experts.on_gpus(loads(), GPUS, spare)


def fullest(spare: int) -> float:
    """The fullest GPU over the mean."""
    return spare_experts.fullest(loads(), GPUS, spare)


def draw(width: float) -> Picture:
    picture = Picture(
        f"Eight GPUs with {EXPERTS} experts: the fullest has {units.human(fullest(0), 'times', 2)} the mean, "
        f"and {units.human(fullest(GPUS), 'times', 2)} with one spare place on each.",
        "Two groups of eight bars: the rows of each GPU. A line marks the mean.",
        width,
    )
    x, y = 0.0, 0.0
    for words, spare in WAYS:
        _group(picture, x, y, words, spare, width / 2 - 12 if picture.wide else width)
        x, y = (width / 2 + 12, 0.0) if picture.wide else (0.0, picture.height + 14)
    return picture


def _group(picture: Picture, x: float, y: float, words: str, spare: int, room: float) -> None:
    rows, before = of_gpus(spare), of_gpus(0)
    mean = sum(rows) / len(rows)
    picture.text(x, y + 9, words, bold=True)
    told = f"the fullest has {units.human(fullest(spare), 'times', 2)} the mean"
    picture.text(x, y + 27, told, ink="ink-soft")
    left, top = x + 52, y + 42
    scale = (room - 52 - 8) / max(before)
    for gpu, load in enumerate(rows):
        picture.text(x, top + gpu * STEP + BAR / 2, f"GPU {gpu}")
        picture.box(left, top + gpu * STEP, load * scale, BAR, "forward", gpu=gpu, spare=spare, rows=load)
    bottom = top + len(rows) * STEP
    picture.line((left + mean * scale, top - 4), (left + mean * scale, bottom), ink="ink", thick=1.5)
    picture.text(left + mean * scale, bottom + 9, "mean", anchor="middle", ink="ink-soft")
    picture.tell(f"{words}: {told}", "GPU " + ", GPU ".join(str(gpu) for gpu in range(GPUS)), "mean")
