"""A picture as a figure of a page: its wide and its narrow arrangement, a description in words, and a
caption."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from course.drawing.picture import NARROW, WIDE, Picture


def words(picture: Picture) -> str:
    """The text alternative, as a list."""
    lines = "".join(f"<li>{escape(line)}</li>" for line in picture.told)
    return f'<ul class="diagram-words">{lines}</ul>'


def figure(
    name: str, draw: Callable[[float], Picture], caption: str, kind: str = "diagram", below: str = ""
) -> str:
    """The HTML of a figure; ``below`` is placed between the picture and its caption. A browser lays a picture
    out when its reader comes near, so its shape is said beforehand."""
    wide, narrow = draw(WIDE), draw(NARROW)
    shapes = f"--wide: {' / '.join(wide.size)}; --narrow: {' / '.join(narrow.size)}"
    return (
        f'<figure class="{kind}" id="{name}"><div class="diagram-forms" style="{shapes}" data-search-exclude>'
        f"{wide.svg(f'{name}-wide')}{narrow.svg(f'{name}-narrow')}{words(wide)}</div>{below}"
        f"<figcaption>{caption}</figcaption></figure>"
    )
