"""Public launch files with a published outcome: those that the readers were built on, out of
``published/launches.toml``, and those of strangers, which were collected before anybody here had seen them,
out of ``published/strangers.toml``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from engine import catalog
from engine.catalog import files
from engine.catalog.hardware import Gpu
from engine.frameworks.registry import frameworks
from engine.launch.verdict import GIB, check_launch

PLACE = Path(__file__).parent / "published" / "launches.toml"
STRANGERS = PLACE.with_name("strangers.toml")
# GPUs that are in no catalogue, by what they are like and what differs: torchtitan's H100s have 96 GB of
# HBM2e at 2.4 TB/s and are held to 500 W; an RTX 3070 has 8 GB; the A100 40 GB is a PCIe card as well
LIKE = {"h100-96": "h100-sxm", "rtx3070": "rtx3090", "a100-40-pcie": "a100-40"}
OWN = {
    "h100-96": {"hbm_bytes": 102e9, "hbm_bytes_per_s": 2.4e12, "tdp_w": 500.0},
    "rtx3070": {"hbm_bytes": 8.59e9, "hbm_bytes_per_s": 448e9},
    "a100-40-pcie": {"hbm_bytes": 42.3e9, "link_bytes_per_s": 31.5e9},
}


@lru_cache(1)
def cases() -> dict[str, dict[str, Any]]:
    """Every case, by name."""
    return files.read(PLACE)


@lru_cache(1)
def strangers() -> dict[str, dict[str, Any]]:
    """Every launch of a stranger, by name."""
    return files.read(STRANGERS)


def request(name: str) -> dict[str, Any]:
    """A case in the form of a request to ``engine.launch.fit_page.answer``."""
    case = cases()[name] if name in cases() else strangers()[name]
    return {
        "files": [list(pair) for pair in case["texts"].items()],
        "gpu": LIKE.get(case["gpu"], case["gpu"]),
        "gpus": case["gpus"] or 0,
        "own": OWN.get(case["gpu"], {}),
    }


def gpu_of(case: dict[str, Any]) -> Gpu | str:
    """The GPU of a case: the catalogue's, or its own."""
    own = OWN.get(case["gpu"])
    return replace(catalog.gpu(LIKE[case["gpu"]]), reported_bytes=0.0, **own) if own else case["gpu"]


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
    def judged(self) -> bool:
        """Whether the engine says how it ends."""
        return self.ours in ("runs", "fails")

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


@lru_cache(1)
def strangers_held() -> tuple[JudgedLaunch, ...]:
    """Every launch of a stranger, with the engine's answer."""
    return tuple(_held(name, case) for name, case in strangers().items())


class StrangersTally(NamedTuple):
    """How many launches of strangers there are, how many the engine judges, and how many of these rightly."""

    launches: int
    judged: int
    right: int


def tally_of_strangers() -> StrangersTally:
    """The launches of strangers, counted."""
    found = [one.right for one in strangers_held() if one.judged]
    return StrangersTally(len(strangers_held()), len(found), sum(found))


def wrong_about() -> list[JudgedLaunch]:
    """The launches of strangers that end otherwise than the engine says."""
    return [one for one in strangers_held() if one.judged and not one.right]


def not_judged() -> list[JudgedLaunch]:
    """Those of which the engine cannot say how they end."""
    return [one for one in strangers_held() if not one.judged]


def by_framework() -> list[tuple[str, list[JudgedLaunch]]]:
    """The launches of strangers by who starts them, those with most first."""
    found: dict[str, list[JudgedLaunch]] = {}
    for one in strangers_held():
        found.setdefault(one.framework or "not read", []).append(one)
    return sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0]))


def _held(name: str, case: dict[str, Any]) -> JudgedLaunch:
    host = case["host_gib"] * GIB if "host_gib" in case else None
    found = check_launch(case["texts"], gpu_of(case), case["gpus"], (), host)
    memory, cache = case.get("memory_gib", 0.0), case.get("cache_tokens", 0)
    ours = found.total_bytes
    if case.get("counts") == "allocated":  # by PyTorch, without what lies outside of its tensors
        ours = ours - (found.parts or {}).get("overhead", 0.0)
    return JudgedLaunch(
        name,
        frameworks()[found.launch.framework].name if found.launch else "",
        f"{case['gpus']} × {case['gpu']}",
        case["outcome"],
        found.ends,
        memory,
        ours / GIB if memory else 0.0,
        cache,
        found.room.tokens if cache and found.room else 0,
        case.get("why", case.get("cause", "")).strip(),
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
