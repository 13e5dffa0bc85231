"""What widgets show, packed for the wire and cached by state, because readers of one course drag over the
same stops."""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from widgets.kit.widget import Widget, all_widgets

MOST_BYTES = 24_000_000


class Packed(NamedTuple):
    """A JSON text in which {"$": [start, length]} stands for a run of the numbers and {"$": index} for one of
    them.

    Two pieces instead of one per column, because Bokeh's protocol sends every array as two messages of its
    own.
    """

    text: str
    numbers: np.ndarray

    @property
    def bytes(self) -> int:
        """Bytes that the answer takes in memory: of a text with an exponent or an arrow, Python keeps two
        for each character."""
        return sys.getsizeof(self.text) + sys.getsizeof(self.numbers)


def bytes_of(state: tuple) -> int:
    """Bytes that a state takes in memory."""
    return sum(sys.getsizeof(part) + sum(map(sys.getsizeof, part)) for part in state)


def packed(value: Any) -> Packed:
    """A value of dicts, lists, texts and numbers, packed for the wire."""
    columns, length = [], 0

    def keep(numbers) -> int:
        nonlocal length
        columns.append(np.atleast_1d(np.asarray(numbers, dtype=float)).ravel())
        length += columns[-1].size
        return length - columns[-1].size

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(inner) for inner in value]
        if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "fi":
            return {"$": [keep(value), value.size]}
        if isinstance(value, (np.generic, np.ndarray)):
            return plain(value.tolist())
        if isinstance(value, float) and not np.isfinite(value):  # JSON cannot express it
            return {"$": keep(value)}
        return value

    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
    return Packed(text, np.concatenate([np.zeros(0), *columns]))


class Answers:
    """What each widget shows in each recently requested state. One widget of each kind serves all readers,
    because a request contains the whole state."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self.widgets, self.homes, self.kept = {}, {}, OrderedDict()

    def widget(self, slug: str) -> Widget:
        """The widget of this slug, made on first use."""
        if slug not in self.widgets:
            self.widgets[slug] = all_widgets()[slug]()
            self.homes[slug] = self.widgets[slug].raw_state()
        return self.widgets[slug]

    def shown(self, slug: str, values: dict) -> Packed:
        """What the widget shows; a control without a value has its default. Bad values are refused with the
        widget's own words."""
        widget, state = self.widget(slug), (slug, *sorted(values.items()))
        if state in self.kept:
            self.kept.move_to_end(state)
            return self.kept[state]
        widget.set_raw(self.homes[slug] | values)
        return self.keep(state, packed(widget.shown()))

    def keep(self, state: tuple, answer: Packed) -> Packed:
        """Remember an answer, and forget the least recently used ones if all together are too large."""
        self.kept[state] = answer
        self.bytes += bytes_of(state) + answer.bytes
        while self.bytes > self.most_bytes:  # the least recently used goes first
            gone, its_answer = self.kept.popitem(last=False)
            self.bytes -= bytes_of(gone) + its_answer.bytes
        return answer

    def forget(self) -> None:
        """Keep no answer any more; the next reader's are computed again."""
        self.kept.clear()
        self.bytes = 0
