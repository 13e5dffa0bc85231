"""The behaviour of real libraries, recorded by `make record` and shipped: one JSON file per subject, with the
libraries' versions."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from engine.base import check

PLACE = Path(__file__).parent


def names() -> list[str]:
    """The recordings that are shipped."""
    return sorted(path.stem for path in PLACE.glob("*.json"))


@cache
def load(name: str) -> dict:
    """The recording of this name: `versions` of the libraries, `made_by`, and the recorder's data."""
    check.one_of(names(), name=name)
    return json.loads((PLACE / f"{name}.json").read_text(encoding="utf-8"))


def made_with(name: str) -> str:
    """The libraries and releases that a recording was made with, as a caption shows them: "PyTorch
    2.13.0"."""
    called = {"torch": "PyTorch", "triton": "Triton"}
    return ", ".join(
        f"{called.get(library, library)} {release}" for library, release in load(name)["versions"].items()
    )
