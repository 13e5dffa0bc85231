"""The numbers that formats have around 1, and an update that falls between two of them."""

from __future__ import annotations

import numpy as np

from course.drawing.picture import Picture
from engine.mechanism import precision

SHOWN = (precision.FP32, precision.FP16, precision.BF16, precision.E4M3)
LOW, HIGH = 1 - 3 / 256, 1 + 6 / 256
UPDATE = 1e-3
MOST = 120  # numbers of a row that can still be told apart
ROW = 46.0


def numbers(kind: precision.Format) -> np.ndarray:
    """The numbers of a format that the axis shows, from 1 downwards and upwards."""
    below = precision.gap_at(1 - 1e-9, kind.mantissa_bits, kind.lowest_exponent)
    above = precision.gap_at(1.0, kind.mantissa_bits, kind.lowest_exponent)
    down = 1 - below * np.arange(int((1 - LOW) / below), 0, -1)
    return np.concatenate([down, 1 + above * np.arange(int((HIGH - 1) / above) + 1)])


def kept(kind: precision.Format) -> float:
    """What a format makes of 1 and the update."""
    return float(precision.nearest(1 + UPDATE, kind.mantissa_bits, kind.lowest_exponent))


def draw(width: float) -> Picture:
    picture = Picture(
        "The numbers around 1 that fp32, fp16, bf16 and fp8 have, and what is left of a small update.",
        "A row for each format on one axis, a stroke for each number that the format has. The "
        "dashed line is 1 and the update; beside each format is what they are rounded to.",
        width,
    )
    left = 92.0 if picture.wide else 0.0
    scale = (width - left) / (HIGH - LOW)
    place = lambda value: left + (value - LOW) * scale
    y = 22.0
    asked = f"1 + {UPDATE:g}"
    bottom = y + (ROW if picture.wide else ROW + 6) * len(SHOWN) - 8
    picture.line((place(1 + UPDATE), y - 6), (place(1 + UPDATE), bottom), ink="ink", dashed=True)
    picture.text(place(1 + UPDATE), 8, asked, anchor="middle", bold=True)
    told = []
    for kind in SHOWN:
        found, result = numbers(kind), kept(kind)
        said = "stays 1" if result == 1 else f"becomes {result:.4f}".rstrip("0")
        ink, at = "over" if result == 1 else "ink-soft", y + (12 if picture.wide else 30)
        picture.text(0, y + 3, kind.name, bold=True)
        if picture.wide:
            picture.text(0, y + 20, said, ink=ink)
        else:
            picture.text(width, y + 3, said, anchor="end", ink=ink)
        picture.line((left, at), (width, at), ink="axis")
        if len(found) > MOST:
            picture.box(left, at - 5, width - left, 10, "hbm", format=kind.name)
        else:
            for value in found:
                x = min(max(place(value), left + 1), width - 1)
                picture.box(x - 1, at - 9, 2, 18, "hbm", format=kind.name, value=float(value))
        told.append(f"{kind.name}: {len(found):,} numbers from {LOW:.3f} to {HIGH:.3f}; {asked} {said}")
        y += ROW if picture.wide else ROW + 6
    picture.tell(*told)
    return picture
