"""Public launch files with a published outcome, out of ``published/launches.toml``."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parent / "published" / "launches.toml"
LIKE = "h100-sxm"
# GPUs that are in no catalogue, by what differs from LIKE: torchtitan's H100s have 96 GB of HBM2e at 2.4 TB/s
OWN = {"h100-96": {"hbm_bytes": 102e9, "hbm_bytes_per_s": 2.4e12}}


@lru_cache(1)
def cases() -> dict[str, dict[str, Any]]:
    """Every case, by name."""
    return tomllib.loads(PLACE.read_text(encoding="utf-8"))


def request(name: str) -> dict[str, Any]:
    """A case as ``engine.launch.paged.answer`` takes it."""
    case = cases()[name]
    return {
        "files": [list(pair) for pair in case["texts"].items()],
        "gpu": LIKE if case["gpu"] in OWN else case["gpu"],
        "gpus": case["gpus"] or 0,
        "own": OWN.get(case["gpu"], {}),
    }
