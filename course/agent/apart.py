"""A process of its own that answers one call after another. What takes too long, or too much memory, ends
with it, and the next call gets a new one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from importlib import import_module, util
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from course.agent import tools

MOST_BYTES = 4 * 1024**3  # of address space, where the system can be told


def work(calls: Connection) -> None:
    """What the process does: answer (name, arguments) with ("said", text, data) or ("refused", words)."""
    sys.stdout = sys.stderr  # standard output is the protocol's
    _limit_memory()
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            calls.send(_answered(*calls.recv()))


def _answered(name: str, given: object) -> tuple:
    try:
        answer = tools.call(name, given)
    except tools.Refused as refused:
        return "refused", str(refused)
    except MemoryError:
        return "refused", "this takes more memory than an answer may"
    except RecursionError:
        return "refused", "the arguments are nested too deeply"
    return "said", answer.text, answer.data


def _limit_memory() -> None:
    if util.find_spec("resource") is None:  # Windows
        return
    resource: Any = import_module("resource")
    with contextlib.suppress(ValueError, OSError):
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, most))


class Apart:
    """The process, and a thread that hands on what it says: ``tell(self, answer)``, with None when it has
    ended."""

    def __init__(self, tell: Callable[[Apart, tuple | None], None]) -> None:
        context = get_context("spawn")
        self.calls, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        Thread(target=self._listen, args=(tell,), daemon=True).start()

    def _listen(self, tell: Callable[[Apart, tuple | None], None]) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                tell(self, self.calls.recv())
        tell(self, None)

    def ask(self, name: str, given: object) -> None:
        """Begin a call."""
        self.calls.send((name, given))

    def end(self) -> None:
        """Give up whatever it is doing."""
        self.process.kill()
        self.process.join()
