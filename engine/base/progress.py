"""Progress reports of work that takes long.

Such work reports with ``tell``. A report costs nothing and shows nothing unless somebody listens, as a
``Bar`` of the command line does (engine/base/bar.py).
"""

from __future__ import annotations

from typing import Any

listeners: list[Any] = []  # objects with a method ``told``; only the last one is called


def tell(done: int, total: int, words: str = "") -> None:
    """Report to whoever listens how many of how many steps are done, and what the steps are, in words."""
    if listeners:
        listeners[-1].told = (done, total, words)
