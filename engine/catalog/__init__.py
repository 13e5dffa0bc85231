"""The catalogue: things with their figures, each with its source and the day it was checked.

The TOML files are read when first asked for and kept. ``gpu("h100-sxm")`` gives one thing, ``gpus()`` all, by key.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from engine.hardware import Cluster, Gpu, Link, Node
from engine.models import Model
from engine.recipes import Recipe
from engine.units import HOUR


@dataclass(frozen=True)
class Price:
    """What one GPU cost for an hour, somewhere, on a day. Dated data: shown with its date, never asserted."""

    key: str
    gpu: str
    provider: str
    dollars_per_hour: float
    date: str
    source: str = ""
    checked: str = ""
    note: str = ""


@dataclass(frozen=True)
class Run:
    """A training run of which GPUs and GPU-hours were published."""

    key: str
    name: str
    gpu: str
    gpus: int
    gpu_hours: float
    source: str = ""
    checked: str = ""
    note: str = ""

    @property
    def duration_s(self) -> float:
        """If all its GPUs had worked all the time."""
        return self.gpu_hours / self.gpus * HOUR


@dataclass(frozen=True)
class Sweep:
    """A collective that somebody timed at many sizes: points to draw a model against."""

    key: str
    name: str
    gpu: str
    ranks: int
    sizes_bytes: tuple[float, ...]
    times_s: tuple[float, ...]
    note: str = ""
    source: str = ""
    checked: str = ""


@dataclass(frozen=True)
class Interruptions:
    """How often a long run, or a cluster's jobs of one size, was interrupted."""

    key: str
    name: str
    gpus: int
    mtbf_s: float                   # between two interruptions, on average
    note: str = ""
    source: str = ""
    checked: str = ""


@dataclass(frozen=True)
class CompiledStep:
    """One step of a model as it was timed, without and with torch.compile."""

    key: str
    name: str
    on: str                         # GPU, framework, checkpointing: what two steps may differ in
    eager_s: float
    compiled_s: float
    cold_s: float = 0.0             # the first step with an empty cache; 0 where nobody says
    note: str = ""
    source: str = ""
    checked: str = ""


def _read(path: Path) -> dict:
    with path.open("rb") as file:
        return tomllib.load(file)


def _build(kind, key: str, fields: dict):
    """A dataclass from a TOML table; a wrong or missing key is named."""
    try:
        return kind(key=key, **fields)
    except TypeError as error:
        raise ValueError(f"{kind.__name__.lower()} {key!r}: {str(error).replace('__init__()', '').strip()}") from None


def _load(file: str, kind, **resolve) -> dict:
    """Every entry of one TOML file; ``resolve`` turns a field that names another thing into that thing."""
    entries = _read(Path(__file__).with_name(file))
    for fields in entries.values():
        fields.update({name: find(fields[name]) for name, find in resolve.items() if name in fields})
    return {key: _build(kind, key, fields) for key, fields in entries.items()}


def _pick(kind: str, entries: dict, key: str):
    if key in entries:
        return entries[key]
    near = get_close_matches(str(key), entries, n=3, cutoff=0.4) or list(entries)[:8]
    raise ValueError(f"{kind} must be a key of the catalogue (near: {', '.join(near)}); got {key!r}")


@lru_cache(None)
def gpus() -> dict[str, Gpu]:
    """Key -> Gpu, all of them."""
    return _load("gpus.toml", Gpu)


@lru_cache(None)
def models() -> dict[str, Model]:
    """Key -> Model, all of them."""
    return _load("models.toml", Model)


@lru_cache(None)
def recipes() -> dict[str, Recipe]:
    """Key -> Recipe, all of them."""
    return _load("recipes.toml", Recipe)


@lru_cache(None)
def links() -> dict[str, Link]:
    """Key -> Link, all of them."""
    return _load("links.toml", Link)


@lru_cache(None)
def nodes() -> dict[str, Node]:
    """Key -> Node, all of them."""
    return _load("nodes.toml", Node, gpu=gpu, link=link, nic=link)


@lru_cache(None)
def prices() -> dict[str, Price]:
    """Key -> Price, all of them."""
    return _load("prices.toml", Price)


@lru_cache(None)
def sweeps() -> dict[str, Sweep]:
    """Published measurements of collectives over size, by key."""
    return _load("measured.toml", Sweep)


@lru_cache(None)
def runs() -> dict[str, Run]:
    """Published training runs, by key."""
    return _load("runs.toml", Run)


@lru_cache(None)
def interruptions() -> dict[str, Interruptions]:
    """Published failure rates of long runs, by key."""
    return _load("interruptions.toml", Interruptions)


@lru_cache(None)
def compiled_steps() -> dict[str, CompiledStep]:
    """Published steps without and with torch.compile, by key."""
    return _load("compiled.toml", CompiledStep)


def gpu(key: str) -> Gpu:
    """The GPU of this key; an unknown one is a ValueError that names near ones."""
    return _pick("gpu", gpus(), key)


def model(key: str) -> Model:
    """The model of this key."""
    return _pick("model", models(), key)


def models_together(keys) -> SimpleNamespace:
    """Several models as one whose numbers are arrays, so that each formula takes them all at once. Texts are left out."""
    several = [model(key) for key in keys]
    numbers = [field.name for field in fields(Model) if not isinstance(getattr(several[0], field.name), str)]
    return SimpleNamespace(**{name: np.array([getattr(one, name) for one in several]) for name in numbers})


def recipe(key: str) -> Recipe:
    """The recipe of this key."""
    return _pick("recipe", recipes(), key)


def link(key: str) -> Link:
    """The link of this key."""
    return _pick("link", links(), key)


def node(key: str) -> Node:
    """The node of this key."""
    return _pick("node", nodes(), key)


def node_of(gpu_key: str) -> Node:
    """The usual node of a GPU: the first in the catalogue that is built of it."""
    for candidate in nodes().values():
        if candidate.gpu.key == gpu_key:
            return candidate
    raise ValueError(f"gpu must be one with a node in the catalogue; got {gpu_key!r}")


def cluster(node_key: str, nodes: int, oversubscription: float = 1.0) -> Cluster:
    """So many nodes of one kind, their network tapered by ``oversubscription``."""
    return Cluster(node(node_key), nodes, oversubscription)


def price(gpu_key: str, provider: str | None = None) -> Price:
    """The latest known hourly price of a GPU, from one provider or from any."""
    known = [p for p in prices().values() if p.gpu == gpu_key and provider in (None, p.provider)]
    if not known:
        priced = sorted({p.gpu for p in prices().values()})
        raise ValueError(f"gpu must be one with a known price ({', '.join(priced)}); "
                         f"got {gpu_key!r}, provider {provider!r}")
    return max(known, key=lambda p: p.date)


def model_from_file(path) -> Model:
    """A model of one's own: a TOML file with the catalogue's keys, flat or under one [key] table."""
    try:
        fields = _read(Path(path))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"model file must be a readable TOML file, got {str(path)!r}: {error}") from None
    key = Path(path).stem
    if len(fields) == 1 and isinstance(next(iter(fields.values())), dict):
        key, fields = next(iter(fields.items()))
    key = fields.pop("key", key)
    fields.setdefault("name", key)
    return _build(Model, key, fields)
