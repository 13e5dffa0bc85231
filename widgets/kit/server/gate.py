"""What a page may say over its socket: it asks once for its document, and then changes the one property
``question`` of the one model in it.

Bokeh's protocol can do far more: add models, send buffers, replace the document. A page never does, so
whoever does is not a page. What is refused here never reaches Bokeh.
"""

from __future__ import annotations

import json
from typing import Any

MOST_BYTES = 64 * 1024  # of a whole message; a page's has some hundred
FRAMES = 3  # of a message without buffers: header, metadata, content
LONGEST_TEXT = 200
MOST_VALUES = 100  # controls of a widget, with room to spare
PULL, PATCH = "PULL-DOC-REQ", "PATCH-DOC"


class NotOurs(ValueError):
    """No page of the course sends this."""


class Gate:
    """Puts a page's frames together, and lets a message through once it is one of the two kinds."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self.bytes, self.pulled = 0, False

    def take(self, frame: str | bytes, model: str | None) -> list[str]:
        """The frames of a whole message, or none yet; ``model`` is the id of the page's own model. NotOurs
        where no page would send it."""
        if model is None:
            raise NotOurs("nothing is read before the session is open")
        if not isinstance(frame, str):
            raise NotOurs("a message is text")
        self.bytes += len(frame.encode(errors="replace"))
        if self.bytes > MOST_BYTES:
            raise NotOurs(f"a message has at most {MOST_BYTES} bytes")
        self.frames.append(frame)
        if len(self.frames) < FRAMES:
            return []
        whole, self.frames, self.bytes = self.frames, [], 0
        header, metadata, content = map(_parsed, whole)
        self.check(header, metadata, content, model)
        return whole

    def check(self, header: Any, metadata: Any, content: Any, model: str) -> None:
        """NotOurs, unless these are the parts of a pull or of a question."""
        kind = header.get("msgtype") if isinstance(header, dict) else None
        if kind not in (PULL, PATCH):
            raise NotOurs("a message is a pull or a patch")
        if header.keys() - {"msgid", "msgtype", "num_buffers"} or header.get("num_buffers", 0) != 0:
            raise NotOurs("a message has no buffers")
        if not _is_text(header.get("msgid")) or metadata != {}:
            raise NotOurs("a header has an id and a kind, and no more")
        if kind == PATCH:
            _check_change(content, model)
        elif self.pulled:
            raise NotOurs("a page pulls its document once")
        elif content != {}:
            raise NotOurs("a pull is empty")
        else:
            self.pulled = True


def _check_change(content: Any, model: str) -> None:
    """NotOurs, unless a patch changes ``question`` of this model to a flat map, and nothing else."""
    match content:
        case {
            "events": [
                {
                    "kind": "ModelChanged",
                    "model": {"id": named, **more},
                    "attr": "question",
                    "new": new,
                    **rest,
                }
            ],
            **others,
        } if named == model and not (more or rest or others):
            for key, value in _entries(new):
                if key == "values":
                    for _, inner in _entries(value):
                        _check_plain(inner)
                else:
                    _check_plain(value)
        case _:
            raise NotOurs("a patch changes the question of the page's own model")


def _entries(value: Any) -> list[tuple[str, Any]]:
    """Keys and values of a dict as Bokeh writes it."""
    match value:
        case {"type": "map", "entries": [*pairs], **more} if not more and len(pairs) <= MOST_VALUES:
            if all(isinstance(pair, list) and len(pair) == 2 and _is_text(pair[0]) for pair in pairs):
                return [(key, inner) for key, inner in pairs]
    raise NotOurs("a question is a map of short names")


def _check_plain(value: Any) -> None:
    """NotOurs, unless it is a number, a short text, a truth value or nothing."""
    if not (value is None or isinstance(value, (bool, int, float)) or _is_text(value)):
        raise NotOurs("a value is a number or a short text")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def _parsed(part: str) -> Any:
    try:
        return json.loads(part)
    except (ValueError, RecursionError):
        raise NotOurs("a part of a message is JSON") from None
