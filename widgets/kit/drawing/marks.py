"""Checks that what a figure draws fits its parts: columns have one length, and glyphs and hints name columns
that exist."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from bokeh.core.property.vectorization import Field
from bokeh.models import GlyphRenderer

from widgets.kit.controls import BadValue

Thing = TypeVar("Thing")


class Known(dict[str, Thing]):
    """A mapping that, asked for a key that it does not have, says which keys it has."""

    def __missing__(self, key: str) -> NoReturn:
        raise BadValue(f"there is no {key!r}; there are {', '.join(map(str, self))}")


def require_columns(cls: Any, drawn: Iterable[GlyphRenderer]) -> None:
    """BadValue at the first part, glyph or hint of the widget that does not fit the others."""
    for renderer in drawn:
        columns: dict = getattr(renderer.data_source, "data", {})
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise BadValue(f"the columns of {renderer.data_source.name!r} must be of one length: {found}")
        for name, value in renderer.glyph.properties_with_values(include_defaults=False).items():
            if isinstance(value, Field) and value.field not in columns:
                raise BadValue(
                    f"a {type(renderer.glyph).__name__} takes its {name} from a column {value.field!r}; "
                    f"{renderer.data_source.name} has {', '.join(columns)}"
                )
    parts = cls.methods("part_of")
    for method in cls.methods("hint_of").values():
        if method.hint_of not in parts:
            raise BadValue(f"a hint for {method.hint_of!r}; the parts are {', '.join(parts)}")
