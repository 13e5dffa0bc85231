"""How accurate an answer is: an 80 % band from runs that were not used for fitting, and a list of what lies
outside everything measured.

``bands.toml`` is written by ``make calibrate`` and holds only summaries.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PLACE = FOLDER / "bands.toml"
BARE = "latency of kernels"  # what is asked of a server where no program is named
FIRST = "first token"  # the class of served runs that timed it
SPANS = ("tp", "pp", "cp", "ep", "zero", "micro_batch", "gpus")


@lru_cache(1)
def runs() -> dict:
    """The contents of bands.toml."""
    with PLACE.open("rb") as file:
        return tomllib.load(file)


@lru_cache(1)
def _generations() -> dict[str, str]:
    with (FOLDER / "systems.toml").open("rb") as file:
        found = tomllib.load(file)["generations"]
    return {gpu: name for name, gpus in found.items() for gpu in gpus}


def generation(gpu_key: str) -> str:
    """The generation of a GPU of the catalogue; "other" for one that is not in it."""
    return _generations().get(gpu_key, "other")


def kind(generation: str, moe: bool) -> str:
    """The class of training runs from which an estimate's accuracy is taken."""
    return f"{generation} {'moe' if moe else 'dense'}"


def collective_kind(crosses_nodes: bool, size: float) -> str:
    """The class of collectives of this size."""
    return (
        f"{'across nodes' if crosses_nodes else 'inside a node'}, {'below' if size < 2**20 else 'from'} 1 MB"
    )


@lru_cache(None)
def band(what: str, kind: str = "all") -> tuple[float, float]:
    """The ends of an 80 % band of measured over predicted, from runs that were not used for fitting. Where a
    class has too few runs, the band of all runs of that kind (step, memory, latency, throughput,
    collective)."""
    found = runs()["band"][what]
    entry = found.get(kind) or found["all"]
    return entry["low"], entry["high"]


@lru_cache(None)
def beyond(what: str, ends: tuple[float, float]) -> tuple[float, float]:
    """The band of an answer that lies outside everything measured in some respect: wider by the factor with
    which bands of this kind hold for classes that they were not made from."""
    low, high = ends
    middle, wide = (low * high) ** 0.5, runs()["beyond"][what]
    return middle * (low / middle) ** wide, middle * (high / middle) ** wide


@lru_cache(None)
def step(gpu_key: str, moe: bool) -> tuple[float, float]:
    """The band of a training step."""
    return band("step", kind(generation(gpu_key), moe))


@lru_cache(None)
def seen(gpu_key: str, moe: bool) -> dict[str, Any]:
    """What the runs of a class cover: formats, and the smallest and largest value of each axis; empty where
    there are none."""
    return runs()["seen"].get(kind(generation(gpu_key), moe), {})


def outside_serving(gpu_key: str, experts: bool, tp: float, batch: float) -> tuple[str, ...]:
    """The arguments that lie outside all measurements of served models."""
    seen = runs()["seen"]["serving"]
    outside = ["gpu"] if generation(gpu_key) not in seen["generation"] else []
    outside += ["experts"] if experts and "yes" not in seen["experts"] else []
    sizes = {"tp": tp, "batch": batch}
    outside += [name for name, size in sizes.items() if not seen[name][0] <= size <= seen[name][1]]
    return tuple(outside)


@lru_cache(1)
def tie() -> float:
    """Two layouts of one job whose step times differ by less than this factor cannot be told apart: their
    bands overlap even after the error that both share is taken out."""
    entry = runs()["apart"]["layouts"]
    return entry["p90"] / entry["p10"]
