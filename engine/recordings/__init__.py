"""What real libraries did, recorded by `make record` and shipped: one JSON file a subject, its versions inside."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from engine import check

PLACE = Path(__file__).parent


def names() -> list[str]:
    """The recordings that are shipped."""
    return sorted(path.stem for path in PLACE.glob("*.json"))


@cache
def load(name: str) -> dict:
    """The recording of that name: `versions` of the libraries, `made_by` and what its recorder put in."""
    check.one_of(names(), name=name)
    return json.loads((PLACE / f"{name}.json").read_text(encoding="utf-8"))


def made_with(name: str) -> str:
    """The libraries and releases a recording ran on, as a caption says them: "PyTorch 2.13.0"."""
    called = {"torch": "PyTorch", "triton": "Triton"}
    return ", ".join(f"{called.get(library, library)} {release}" for library, release in load(name)["versions"].items())
