"""What was compiled once is taken again while no source has changed, so that a change of one lesson builds in seconds.

``KEEP_COMPILED`` names the folder, and only whoever builds the site sets it: everything else compiles anew.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

import bokeh

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("engine", "widgets", "site/tokens.json", "tests/published", "constraints.txt")


@cache
def state_of_the_sources() -> str:
    """A name for all that a compiled widget depends on."""
    digest = hashlib.sha256(bokeh.__version__.encode())
    for name in SOURCES:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".py", ".toml", ".json", ".html", ".txt"):
                digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def kept(name: str, make) -> bytes:
    """What ``make`` gives, or gave when the sources were the same."""
    folder = os.environ.get("KEEP_COMPILED")
    if not folder:
        return make()
    path = Path(folder, f"{state_of_the_sources()}.{name}")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(make())
        unfinished.replace(path)                # at once: two processes may be at it
    return path.read_bytes()


def kept_text(kind: str, source: str, make) -> str:
    """The same for a piece of a lesson: what ``make`` makes of this source, and of nothing else but the code."""
    name = f"{kind}.{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    return kept(name, lambda: make(source).encode()).decode()


def forget_older() -> None:
    """Drop what belongs to other states of the sources."""
    for path in Path(os.environ["KEEP_COMPILED"]).glob("*"):
        if not path.name.startswith(state_of_the_sources()):
            path.unlink()
