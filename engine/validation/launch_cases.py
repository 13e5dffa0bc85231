"""Public launch files with a published outcome, out of ``published/launches.toml``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine import catalog
from engine.catalog import files
from engine.catalog.hardware import Gpu
from engine.frameworks.registry import frameworks
from engine.launch.verdict import GIB, check_launch

PLACE = Path(__file__).parent / "published" / "launches.toml"
LIKE = "h100-sxm"
# GPUs that are in no catalogue, by what differs from LIKE: torchtitan's H100s have 96 GB of HBM2e at 2.4 TB/s
# and are held to 500 W
OWN = {"h100-96": {"hbm_bytes": 102e9, "hbm_bytes_per_s": 2.4e12, "tdp_w": 500.0}}


@lru_cache(1)
def cases() -> dict[str, dict[str, Any]]:
    """Every case, by name."""
    return files.read(PLACE)


def request(name: str) -> dict[str, Any]:
    """A case in the form of a request to ``engine.launch.fit_page.answer``."""
    case = cases()[name]
    return {
        "files": [list(pair) for pair in case["texts"].items()],
        "gpu": LIKE if case["gpu"] in OWN else case["gpu"],
        "gpus": case["gpus"] or 0,
        "own": OWN.get(case["gpu"], {}),
    }


def gpu_of(case: dict[str, Any]) -> Gpu | str:
    """The GPU of a case: the catalogue's, or its own."""
    own = OWN.get(case["gpu"])
    return replace(catalog.gpu(LIKE), reported_bytes=0.0, **own) if own else case["gpu"]


@dataclass(frozen=True)
class JudgedLaunch:
    """The published outcome of a launch, and the engine's answer for it."""

    name: str
    framework: str
    hardware: str
    outcome: str  # "runs" or "fails"
    ours: str
    memory_gib: float  # of the fullest GPU, as published; 0 where none was published
    our_memory_gib: float
    cache_tokens: int  # capacity of a server's cache, as published
    our_cache_tokens: int
    why: str  # the known cause, where the engine's number is far off

    @property
    def right(self) -> bool:
        """Whether the launch ended as the engine says."""
        return self.outcome == self.ours

    @property
    def error(self) -> float | None:
        """The relative error of the memory, or else of a server's cache; None where neither is published."""
        if self.memory_gib:
            return self.our_memory_gib / self.memory_gib - 1.0
        return self.our_cache_tokens / self.cache_tokens - 1.0 if self.cache_tokens else None


@lru_cache(1)
def held() -> tuple[JudgedLaunch, ...]:
    """Every case, with the engine's answer."""
    return tuple(_held(name, case) for name, case in cases().items())


def _held(name: str, case: dict[str, Any]) -> JudgedLaunch:
    found = check_launch(case["texts"], gpu_of(case), case["gpus"], ())
    memory, cache = case.get("memory_gib", 0.0), case.get("cache_tokens", 0)
    return JudgedLaunch(
        name,
        frameworks()[found.launch.framework].name if found.launch else "",
        f"{case['gpus']} × {case['gpu']}",
        case["outcome"],
        found.ends,
        memory,
        found.total_bytes / GIB if memory else 0.0,
        cache,
        found.room.tokens if cache and found.room else 0,
        case.get("why", "").strip(),
    )


def far_off() -> list[JudgedLaunch]:
    """The cases that are far off, each with what is known of its cause."""
    return [each for each in held() if each.why]


def mean_error(quantity: str, far: bool = True) -> float:
    """The mean absolute error of the cases that publish this quantity (``memory_gib`` or ``cache_tokens``);
    with ``far`` False, cases that are far off are left out."""
    cases = [each for each in held() if getattr(each, quantity) and (far or not each.why)]
    errors = [abs(each.error) for each in cases if each.error is not None]
    return sum(errors) / len(errors)
