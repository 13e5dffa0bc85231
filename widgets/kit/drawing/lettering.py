"""The width of words in the figures' own font, so that neighbouring marks can be kept clear of them.

The widths are those of the fonts in site/theme/assets/fonts (course/fonts.py writes both).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SIZE = 13.0  # pixels, for all texts in figures
ROOT = Path(__file__).resolve().parents[3]
FONTS = (
    "site/theme/assets/fonts",
    "course/packed/static/assets/fonts",
)  # in a clone; where a wheel is installed
FACES = {
    "Course Sans": (("course-sans", 400), ("course-sans-semibold", 600)),
    "Course Mono": (("course-mono", 400),),
}


@cache
def _widths(weight: str) -> dict[str, float]:
    return json.loads(Path(__file__).with_name("widths.json").read_text(encoding="utf-8"))[weight]


@cache
def faces() -> str:
    """The fonts as a style sheet that needs no other file; nothing where there are none, as in a wheel
    without the course."""
    folder = next((ROOT / each for each in FONTS if (ROOT / each).is_dir()), None)
    if folder is None:
        return ""
    return "".join(
        f"@font-face {{ font-family: '{family}'; font-weight: {weight}; src: "
        f"url(data:font/woff2;base64,{b64encode((folder / f'{file}.woff2').read_bytes()).decode()}) "
        "format('woff2'); }\n"
        for family, files in FACES.items()
        for file, weight in files
    )


def unknown(words: str) -> list[str]:
    """The characters that the figures' font does not have."""
    return sorted(set(words) - set(_widths("regular")))


def width(words: str, size: float = SIZE, bold: bool = False) -> float:
    """The width of a text in pixels."""
    widths = _widths("bold" if bold else "regular")
    return size * sum(widths.get(letter, 1.0) for letter in words)


def in_rows(lengths: Sequence[float], room: float, gap: float) -> list[tuple[float, int]]:
    """(position, row) of items placed one after the other, with each row as full as possible."""
    places, at, row = [], 0.0, 0
    for length in lengths:
        if at and at + length > room:
            at, row = 0.0, row + 1
        places.append((at, row))
        at += length + gap
    return places
