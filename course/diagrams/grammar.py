"""The grammar of the figures: what solid, white, hatched and red mean, and how a bar that is too long is
drawn."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine.base import units

HEIGHT, STEP = 24.0, 34.0
LIMIT_BYTES, FITS_BYTES, TOO_MUCH_BYTES, FAR_TOO_MUCH_BYTES = 80e9, 61e9, 104e9, 820e9
RESOURCES = (("compute", "compute"), ("hbm", "HBM"), ("link", "link"), ("network", "network"))


def draw(width: float) -> Picture:
    """Rows that read from the top: hues, idle time, a limit that is kept, passed, and passed by far."""
    picture = Picture(
        "The grammar of a figure.",
        "Work is solid in the hue of its resource, idle time white with a hairline. What is past a limit is "
        "red and hatched, and a bar that is longer than its axis is broken and says its number.",
        width,
    )
    left = 120.0 if picture.wide else 0.0
    y = _work(picture, left, 0)
    y = _idle(picture, left, y)
    _limits(picture, left, y)
    return picture


def _name(picture: Picture, left: float, y: float, words: str) -> float:
    """A row's name, left of it or above it; returns the row's top."""
    if left:
        picture.text(0, y + HEIGHT / 2, words, bold=True)
        return y
    picture.text(0, y + 8, words, bold=True)
    return y + 18


def _work(picture: Picture, left: float, y: float) -> float:
    y = _name(picture, left, y, "Work")
    each = (picture.width - left) / len(RESOURCES)
    for place, (look, words) in enumerate(RESOURCES):
        picture.box(left + place * each, y, each - 2, HEIGHT, look, words, resource=look)
    picture.tell(
        f"Work is solid: {', '.join(words for _, words in RESOURCES)}, each in a hue of its own that means "
        "nothing else."
    )
    return y + STEP


def _idle(picture: Picture, left: float, y: float) -> float:
    y = _name(picture, left, y, "Idle")
    third = (picture.width - left) / 3
    for place, (look, words) in enumerate((("compute", "works"), ("idle", "waits"), ("compute", "works"))):
        picture.box(left + place * third, y, third - 2, HEIGHT, look, words)
    picture.tell("Idle time is white with a hairline: what works stands out, what waits does not.")
    return y + STEP


def _limits(picture: Picture, left: float, y: float) -> None:
    """Three bars against one card's memory."""
    room = 70.0  # for the numbers at the ends
    limit_px = 0.62 * (picture.width - left - room)
    px = limit_px / LIMIT_BYTES
    rows = (
        ("Fits", FITS_BYTES, FITS_BYTES),
        ("Does not fit", TOO_MUCH_BYTES, TOO_MUCH_BYTES),
        ("Longer than the axis", FAR_TOO_MUCH_BYTES, 1.5 * LIMIT_BYTES),
    )
    top = y + 18
    limit = f"{units.human(LIMIT_BYTES, 'bytes')}: the limit"
    picture.text(left + limit_px, y + 8, limit, anchor="middle", ink="ink-soft")
    y = top + 4
    for words, bytes_, shown in rows:
        y = _name(picture, left, y, words)
        inside = min(shown, LIMIT_BYTES) * px
        picture.box(left, y, inside, HEIGHT, "hbm", held=bytes_)
        end = left + shown * px
        if shown > LIMIT_BYTES:
            _over(picture, left + limit_px, y, end)
        if bytes_ > shown:
            _break(picture, end - 22, y)
        picture.text(end + 6, y + HEIGHT / 2, units.human(bytes_, "bytes"))
        picture.line((left + limit_px, y - 5), (left + limit_px, y + HEIGHT + 5), ink="ink", thick=1.5)
        told = "is broken by two strokes, and " if bytes_ > shown else ""
        picture.tell(f"{words}: {units.human(bytes_, 'bytes')}, which {told}stands at the bar's end.")
        y += STEP
    picture.tell(f"{limit}: what is past it is red and hatched, and no word stands on the hatch.")


def _over(picture: Picture, left: float, y: float, right: float) -> None:
    picture.box(left, y, right - left, HEIGHT, "past")
    x = left + 8
    while x < right:
        picture.line((max(left, x - HEIGHT), y + min(HEIGHT, x - left)), (x, y), ink="over", thick=0.6)
        x += 8


def _break(picture: Picture, x: float, y: float) -> None:
    """Two slanted strokes over a gap, as ``fig.torn`` has them."""
    picture.line((x + 4, y + HEIGHT + 3), (x + 10, y - 3), ink="ink", thick=1.5)
    picture.line((x + 9, y + HEIGHT + 3), (x + 15, y - 3), ink="ink", thick=1.5)
