"""Packs the right answers, so that nobody who looks at a notebook reads them by accident."""

from __future__ import annotations

import base64
import json
import zlib

WIDTH = 100  # letters of a line


def pack(contents: dict) -> str:
    """The contents as lines of letters."""
    packed = zlib.compress(json.dumps(contents, ensure_ascii=False, sort_keys=True).encode(), 9)
    text = base64.b64encode(packed).decode()
    return "\n".join(text[at : at + WIDTH] for at in range(0, len(text), WIDTH))


def unpack(text: str) -> dict:
    """The inverse of ``pack``."""
    return json.loads(zlib.decompress(base64.b64decode("".join(text.split()))))
