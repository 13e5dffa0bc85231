"""A picture: marks and texts, added one after the other, with a description in words.

A picture is drawn twice, WIDE for a column of text and NARROW for a phone, so that its texts have their
proper size in both. Units are CSS pixels; y counts downwards. A text that would be cut off or overlap another
is a ValueError, so any picture that is built is legible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

from course.drawing import looks, text

WIDE, NARROW = 660.0, 340.0
HEAD = 4.0  # half the width of an arrow's head


class Label(NamedTuple):
    """A text: its words, its middle line, its left and right end, and the look or ground that it is on."""

    words: str
    left: float
    right: float
    y: float
    ink: str
    on: str

    def meets(self, other: Label) -> bool:
        """Whether two texts touch."""
        apart = text.SIZE * text.HEIGHT
        level = abs(self.y - other.y) < apart - 0.01
        return level and self.left < other.right - 0.01 and other.left < self.right - 0.01


class Mark(NamedTuple):
    """A box: its position, its look, and its meaning (for tests and for text alternatives)."""

    left: float
    top: float
    right: float
    bottom: float
    look: str
    about: dict


@dataclass
class Picture:
    """``title`` and ``about`` are read by screen readers; ``told`` are the lines that say everything it
    shows."""

    title: str
    about: str
    width: float = WIDE
    marks: list[Mark] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    _drawn: list[str] = field(default_factory=list)
    height: float = 0.0

    @property
    def wide(self) -> bool:
        """Whether this is the arrangement for a column of text."""
        return self.width == WIDE

    def tell(self, *lines: str) -> None:
        """Add lines to the text alternative."""
        self.told += lines

    # -- primitives ------------------------------------------------------------------------------------------
    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        look: str,
        words: str = "",
        bold: bool = False,
        **about: Any,
    ) -> None:
        """A box with a text in its middle."""
        if look not in looks.LOOKS:
            raise ValueError(f"there is no look {look!r}; there are {', '.join(looks.LOOKS)}")
        if w <= 0 or h <= 0:
            raise ValueError(f"a box must have a size, got {w:g} × {h:g}")
        self.marks.append(Mark(x, y, x + w, y + h, look, about))
        self._draw(
            f'<rect class="m-{look}" x="{x:.2f}" y="{y:.2f}" width="{w:.2f}" height="{h:.2f}"/>', y + h
        )
        lines = words.split("\n") if words else []
        for at, line in enumerate(lines):
            if text.width(line, bold) > w:
                raise ValueError(f"{line!r} is {text.width(line, bold):.0f} wide, its box {w:.0f}")
            middle = y + h / 2 + (at - (len(lines) - 1) / 2) * text.LINE
            self.text(x + w / 2, middle, line, anchor="middle", on=look, bold=bold)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        anchor: str = "start",
        ink: str = "ink",
        on: str = "",
        bold: bool = False,
    ) -> None:
        """A line of text whose middle is at this height, on the page or on a look."""
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        long = text.width(words, bold)
        label = Label(words, x - shift * long, x + (1 - shift) * long, y, ink, on)
        if label.left < -0.5 or label.right > self.width + 0.5 or y < text.SIZE / 2:
            raise ValueError(
                f"{words!r} is cut by the edge of the picture: it lies from {label.left:.0f} to "
                f"{label.right:.0f}, with its middle at the height {y:g}"
            )
        if other := next((one for one in self.labels if one.meets(label)), None):
            raise ValueError(f"{words!r} lies on {other.words!r}")
        self.labels.append(label)
        kind = f"on-{on}" if on else f"t-{ink}"
        kind += " bold" if bold else ""
        end = f' text-anchor="{anchor}"' if anchor != "start" else ""
        at = y + text.BASELINE * text.SIZE
        self._draw(f'<text class="{kind}" x="{x:.2f}" y="{at:.2f}"{end}>{escape(words)}</text>', y + 9)

    def paragraph(self, x: float, y: float, words: str, room: float, ink: str = "ink-soft") -> float:
        """A text wrapped to as many lines as it needs, from this height on; returns the height below it."""
        for line in text.wrapped(words, room):
            self.text(x, y + text.LINE / 2, line, ink=ink)
            y += text.LINE
        return y

    def line(
        self, *points: tuple[float, float], ink: str = "axis", dashed: bool = False, thick: float = 1
    ) -> None:
        """A line through points."""
        if ink not in looks.LINES:
            raise ValueError(f"there is no line {ink!r}; there are {', '.join(looks.LINES)}")
        path = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        dashes = ' stroke-dasharray="2 4"' if dashed else ""
        self._draw(
            f'<polyline class="l-{ink}" fill="none" stroke-width="{thick:g}"{dashes} points="{path}"/>',
            max(y for _, y in points),
        )

    def area(
        self, top: list[tuple[float, float]], bottom: list[tuple[float, float]], look: str, **about: Any
    ) -> None:
        """The area between two lines, each given from left to right. It has an outline only if its look is
        pale: an outline in the page's colour would hide a narrow peak."""
        if look not in looks.LOOKS:
            raise ValueError(f"there is no look {look!r}; there are {', '.join(looks.LOOKS)}")
        around = [*top, *reversed(bottom)]
        across, down = [x for x, _ in around], [y for _, y in around]
        self.marks.append(Mark(min(across), min(down), max(across), max(down), look, about))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in around)
        thick = 0 if looks.LOOKS[look].line == "paper" else 1
        self._draw(f'<polygon class="m-{look}" stroke-width="{thick}" points="{path}"/>', max(down))

    def arrow(self, *points: tuple[float, float], ink: str = "ink-soft", thick: float = 1.5) -> None:
        """A line through points with an arrowhead at its end; its last stretch must be vertical or
        horizontal."""
        (before_x, before_y), (x, y) = points[-2:]
        length = ((x - before_x) ** 2 + (y - before_y) ** 2) ** 0.5
        along = ((x - before_x) / length, (y - before_y) / length)
        back = (x - 2 * HEAD * along[0], y - 2 * HEAD * along[1])
        self.line(*points[:-1], back, ink=ink, thick=thick)
        sides = [(back[0] + side * HEAD * along[1], back[1] - side * HEAD * along[0]) for side in (1, -1)]
        path = " ".join(f"{at_x:.2f},{at_y:.2f}" for at_x, at_y in ((x, y), *sides))
        self._draw(f'<polygon class="h-{ink}" points="{path}"/>', y)

    def bracket(self, left: float, right: float, y: float, words: str, ink: str = "ink") -> None:
        """Mark the extent of something, with its name below."""
        self.line((left, y - 4), (left, y + 4), ink=ink)
        self.line((right, y - 4), (right, y + 4), ink=ink)
        self.line((left, y), (right, y), ink=ink)
        half = text.width(words) / 2
        middle = min(max((left + right) / 2, half), self.width - half)
        self.text(middle, y + 14, words, anchor="middle", ink=ink)

    def key(self, y: float, entries: list[tuple[str, str]], x: float = 0) -> float:
        """The meaning of looks, in as many rows as needed; returns the height below them."""
        left = x
        for look, words in entries:
            long = 20 + text.width(words) + 16
            if left > x and left + long - 16 > self.width:
                left, y = x, y + text.LINE + 3
            self.box(left, y, 14, 12, look)
            self.text(left + 20, y + 6, words, ink="ink-soft")
            left += long
        return y + text.LINE + 3

    # -- what comes out --------------------------------------------------------------------------------------
    def _draw(self, element: str, bottom: float) -> None:
        self._drawn.append(element)
        self.height = max(self.height, bottom)

    @property
    def size(self) -> tuple[str, str]:
        """The picture's width and height, as written into the SVG."""
        return f"{self.width:g}", f"{self.height + 3:.0f}"

    def svg(self, name: str) -> str:
        """The picture as an element of a page."""
        kind, (width, height) = "wide-form" if self.wide else "narrow-form", self.size
        words = f'<title id="{name}-title">{escape(self.title)}</title>'
        words += f'<desc id="{name}-about">{escape(self.about)}</desc>'
        return (
            f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{name}-title" '
            f'aria-describedby="{name}-about">{words}{"".join(self._drawn)}</svg>'
        )
