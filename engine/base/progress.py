"""How far it is with what takes its time.

Whatever is long says so with ``tell``; that costs nothing and shows nothing unless somebody listens, as a
``Bar`` of the command line does (engine/base/bar.py).
"""

from __future__ import annotations

from typing import Any

listeners: list[Any] = []  # each has ``told``; the last one listens


def tell(done: int, total: int, words: str = "") -> None:
    """How many of how many steps are done, and in words what they are, for whoever listens."""
    if listeners:
        listeners[-1].told = (done, total, words)
