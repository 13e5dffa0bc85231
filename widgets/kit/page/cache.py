"""Compiled results are reused while nothing that they depend on has changed, so that a change of one lesson
or one widget builds in seconds.

``KEEP_COMPILED`` names the folder; it is set only by the site build. Everything else compiles afresh.

A result may be made of others: a page is made of its fences and numbers. As long as the page is taken from
the cache, its fences and numbers are not asked for, but once the page changes they are needed again. So a
list of the results that went into each result is stored with it, and using a result counts as using those.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import bokeh
import numpy as np

from widgets.kit.page import dependencies

PINNED = dependencies.ROOT / "constraints.txt"
PARTS = ".parts"  # the ending of a file that lists the results of which a result was made

_noting: list[set[str]] = []  # the names used so far in the making of a result, the innermost last


@cache
def _libraries() -> str:
    """A name for the versions of everything outside this project."""
    digest = hashlib.sha256(f"{platform.python_version()} {bokeh.__version__} {np.__version__}".encode())
    if PINNED.is_file():
        digest.update(PINNED.read_bytes())
    return digest.hexdigest()[:8]


def kept(name: str, make: Callable[[], bytes], modules: tuple[str, ...]) -> bytes:
    """The result of ``make``, or the stored one if these modules and all their dependencies are unchanged. A
    result is not stored if one of them is saved while it is made."""
    folder = os.environ.get("KEEP_COMPILED")
    if not folder:
        return make()
    path = Path(folder, f"{_libraries()}{dependencies.state(*modules)}.{name}")
    try:
        made = path.read_bytes()
    except FileNotFoundError:  # missing, or just removed by another process
        with _noted() as parts:
            made = make()
        if dependencies.changed_meanwhile(*modules):
            return made
        _store(path, made)
        if parts:
            _store(path.with_name(path.name + PARTS), "\n".join(sorted(parts)).encode())
    _use(path)
    return made


@contextmanager
def _noted() -> Iterator[set[str]]:
    """The names of the stored results that are used inside this block."""
    _noting.append(set())
    try:
        yield _noting[-1]
    finally:
        _noting.pop()


def _use(path: Path) -> None:
    """Note that a result is in use, and all results of which it was made, so that ``forget_older`` keeps
    them."""
    list_of_parts = path.with_name(path.name + PARTS)
    names = [path.name]
    if list_of_parts.exists():
        names += [list_of_parts.name, *list_of_parts.read_text(encoding="utf-8").split("\n")]
    for name in names:
        with suppress(FileNotFoundError):
            os.utime(path.with_name(name))
    for noted in _noting[-1:]:
        noted.update(names)


def _store(path: Path, contents: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_bytes(contents)
    unfinished.replace(path)  # atomically, because two processes may do this at once


def digest(*texts: str) -> str:
    """A short name for some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def kept_text(kind: str, source: str, make: Callable[[str], str], modules: tuple[str, ...]) -> str:
    """``kept`` for a piece of a lesson, if the result of ``make`` depends only on this source and on the
    code."""
    name = f"{kind}.{digest(source)}"
    return kept(name, lambda: make(source).encode(), modules).decode()


def forget_older(than: float) -> None:
    """Delete the results that have not been used since ``than`` (seconds since 1970): they belong to an older
    state."""
    for path in Path(os.environ["KEEP_COMPILED"]).glob("*.*"):
        if path.stat().st_mtime < than and path.name != dependencies.RECORD:
            path.unlink(missing_ok=True)
