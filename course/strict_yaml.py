"""YAML in lessons: a duplicate or unknown key is refused, with its line."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from typing import Any

import yaml

from widgets.kit.controls import BadValue


class Refused(BadValue):
    """A fault in a piece of a lesson, and on which of its lines, counted from 0."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


# the same in C, ten times as fast, where PyYAML was built with it
IN_C = {name: getattr(yaml, f"C{name}", getattr(yaml, name)) for name in ("BaseLoader", "SafeLoader")}


def mapping(text: str, allowed: Collection[str] | None = None, loader: type[Any] = yaml.BaseLoader) -> dict:
    """The mapping in a text, with only these keys; Refused says what is wrong and where."""
    node = _node(text, loader)
    if not isinstance(node, yaml.MappingNode):
        raise Refused("this is no list of lines 'key: value'")
    _require_single_keys(node)
    found = yaml.load(text, Loader=IN_C[loader.__name__])
    require_known(found, allowed, text)
    return found


def require_known(found: Collection[str], allowed: Collection[str] | None, text: str) -> None:
    """Refused at the first key of the text's mapping that is not allowed."""
    unknown = [key for key in found if allowed is not None and key not in allowed]
    if allowed is not None and unknown:
        raise Refused(
            f"unknown key {unknown[0]!r}; allowed are {', '.join(allowed)}", line_of(text, unknown[0])
        )


def line_of(text: str, *keys: str) -> int:
    """The line of a key of the text's mapping; with several keys, of a key in a nested mapping."""
    node, line = _node(text, yaml.BaseLoader), 0
    for name in keys:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        key, node = next(((key, value) for key, value in pairs if key.value == name), (None, None))
        line = key.start_mark.line if key else line
    return line


@lru_cache(64)  # a lesson asks for the line of each of its names
def _node(text: str, loader) -> yaml.Node | None:
    with suppress(yaml.YAMLError):
        return yaml.compose(text, Loader=IN_C[loader.__name__])
    try:
        return yaml.compose(text, Loader=loader)  # for its words about the fault
    except yaml.YAMLError as error:
        mark = getattr(error, "context_mark", None) or getattr(error, "problem_mark", None)
        raise Refused(f"this is not YAML: {str(error).splitlines()[0]}", mark.line if mark else 0) from error


def _require_single_keys(node: yaml.Node) -> None:
    """Refused at a duplicate key, however deep."""
    seen = set()
    for part in node.value if isinstance(node, yaml.CollectionNode) else []:
        if isinstance(node, yaml.MappingNode):
            key, part = part
            if not isinstance(key, yaml.ScalarNode):
                raise Refused("a key must be a word", key.start_mark.line)
            if key.value in seen:
                raise Refused(f"the key {key.value!r} stands twice", key.start_mark.line)
            seen.add(key.value)
        _require_single_keys(part)
