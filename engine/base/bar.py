"""A bar on standard error for work that takes long and reports its progress with ``progress.tell``.

It appears after ``AFTER_S``, only on a terminal, and disappears at the end: programs and pipes that read the
output never see it.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

from engine.base import progress

AFTER_S = 1.0  # work that is done sooner needs no bar
EVERY_S = 0.2
WIDTH = 24  # characters of the bar itself


class Bar:
    """``with Bar("Searching"):`` shows the time that passes, and how far the work inside reports to be."""

    def __init__(self, what: str, to: TextIO | None = None) -> None:
        self.what, self.to = what, sys.stderr if to is None else to
        self.told: tuple[int, int, str] | None = None
        self.ended, self.shown = threading.Event(), 0
        self.drawing: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.began = time.monotonic()
        progress.listeners.append(self)
        if self.to.isatty() and os.environ.get("TERM") != "dumb":
            self.drawing = threading.Thread(target=self.draw, daemon=True)
            self.drawing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        progress.listeners.remove(self)
        self.ended.set()
        if self.drawing:
            self.drawing.join()
            self.put("")

    def draw(self) -> None:
        """Draw the bar again and again until the work is done; runs in a thread of its own."""
        wait = AFTER_S
        while not self.ended.wait(wait):
            self.put(self.line())
            wait = EVERY_S

    def line(self) -> str:
        """What the bar says now."""
        passed = f"{time.monotonic() - self.began:.0f} s"
        if self.told is None:
            return f"{self.what} ... {passed}"
        done, total, words = self.told
        full = round(WIDTH * min(1.0, done / max(1, total)))
        counted = f"{done} of {total} {words}".strip()
        return f"{self.what} [{'#' * full}{'.' * (WIDTH - full)}] {counted}, {passed}"

    def put(self, line: str) -> None:
        """Write a line over the one that was shown last. The rest of that one is overwritten with blanks,
        which works on any terminal."""
        line = line[: shutil.get_terminal_size().columns - 1]
        try:
            self.to.write("\r" + line.ljust(self.shown) + ("" if line else "\r"))
            self.to.flush()
        except (OSError, ValueError):  # a closed terminal
            self.ended.set()
        self.shown = len(line)
