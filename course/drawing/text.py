"""The width of a picture's texts before any browser has laid them out, from the letter widths of the font
that the site ships (widgets/kit/drawing/lettering.py)."""

from __future__ import annotations

from widgets.kit.drawing import lettering

SIZE = lettering.SIZE  # of every text in a picture; none is smaller
HEIGHT = 1.2  # of a line, from top to bottom, in multiples of the size
LINE = 17.0  # from one line to the next
BASELINE = 0.36  # how far below the middle of a line its baseline is, in multiples of the size


def width(words: str, bold: bool = False) -> float:
    """The width of a line in a picture's units."""
    if unknown := lettering.unknown(words):
        raise ValueError(f"the figures' font has no {' '.join(unknown)}, which stands in {words!r}")
    return lettering.width(words, SIZE, bold)


def wrapped(words: str, room: float, bold: bool = False) -> list[str]:
    """The lines of a text in this much room; a word that is too long for it is a ValueError."""
    lines: list[str] = []
    for word in words.split(" "):
        if width(word, bold) > room:
            raise ValueError(f"{word!r} is {width(word, bold):.0f} wide and has room for {room:.0f}")
        if lines and width(f"{lines[-1]} {word}", bold) <= room:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word)
    return lines


def shortened(words: str, room: float) -> str:
    """The text, or as much of its beginning as fits, with an ellipsis, like in a profiler; '' if not even
    four letters would be left."""
    if width(words) <= room:
        return words
    kept = words
    while kept and width(f"{kept}…") > room:
        kept = kept[:-1]
    return f"{kept}…" if len(kept) >= 4 else ""
