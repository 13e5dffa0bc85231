"""The catalogue: GPUs, models, links, nodes and more, each figure with its source and the day it was checked.

The TOML files are read on first use and kept. ``gpu("h100-sxm")`` gives one entry, ``all_gpus()`` gives them
all by key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base.units import HOUR
from engine.catalog import config_json, files, naming
from engine.catalog.hardware import Cluster, Gpu, Host, Link, Node
from engine.catalog.models import Grouping, Model, ModelSizes, Together, described
from engine.catalog.recipes import Recipe, recipe_from
from engine.catalog.software import DEFAULT as DEFAULT_SOFTWARE
from engine.catalog.software import ServingSoftware, Software, TrainingSoftware, changed

if TYPE_CHECKING:
    from engine.catalog.software import Program


ON_DEMAND = "on demand"


@dataclass(frozen=True)
class Price:
    """What one GPU cost per hour at one provider on one day. Dated data: always shown with its date."""

    key: str
    gpu: str
    provider: str
    dollars_per_hour: float
    date: str
    terms: str = ON_DEMAND  # or "spot", or "contract"
    source: str = ""
    checked: str = ""
    note: str = ""


@dataclass(frozen=True)
class PublishedRun:
    """A training run whose GPUs and GPU-hours were published."""

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
        """The duration if all its GPUs had worked all the time."""
        return self.gpu_hours / self.gpus * HOUR


@dataclass(frozen=True)
class Interruptions:
    """How often a long run, or a cluster's jobs of one size, was interrupted."""

    key: str
    name: str
    gpus: int
    mtbf_s: float  # mean time between two interruptions
    note: str = ""
    source: str = ""
    checked: str = ""


@dataclass(frozen=True)
class CompiledStep:
    """One measured training step of a model, without and with torch.compile."""

    key: str
    name: str
    on: str  # GPU, framework, checkpointing: everything that may differ between two measurements
    eager_s: float
    compiled_s: float
    cold_s: float = 0.0  # the first step with an empty cache; 0 where it was not published
    note: str = ""
    source: str = ""
    checked: str = ""


def _build(make: Callable, file: str | Path, key: str, entry: dict):
    """What an entry that was checked describes; an impossible value is reported with its file and line."""
    try:
        return make(key=key, **entry)
    except ValueError as error:
        raise ValueError(f"{files.where(file, key)}: {key!r}: {error}") from None


def _load(file: str, kind: type, **named) -> dict:
    """Every entry of one TOML file. A field in ``named`` holds the key of another entry and is replaced by
    that entry; a list becomes a tuple, so that the entry can be hashed."""
    found = {}
    for key, entry in files.table(file, kind, **named).items():
        fixed = {name: tuple(given) if isinstance(given, list) else given for name, given in entry.items()}
        found[key] = _build(kind, file, key, fixed)
    return found


def _pick(kind: str, entries: dict, key: str):
    if key in entries:
        return entries[key]
    near = naming.near(str(key), entries) or list(entries)[:8]
    raise ValueError(f"{kind} must be a key of the catalogue (near: {', '.join(near)}); got {key!r}")


@lru_cache(None)
def all_gpus() -> dict[str, Gpu]:
    """Every GPU of the catalogue, by key."""
    return _load("gpus.toml", Gpu)


def _of_a_model(entry: dict) -> tuple[type, type]:
    """What an entry may say of a model: its own fields, and its layers in short keys or as groups."""
    return (Model, Grouping) if "groups" in entry else (Model, ModelSizes)


@lru_cache(None)
def all_models() -> dict[str, Model]:
    """Every model of the catalogue, by key."""
    entries = files.table("models.toml", _of_a_model)
    return {key: _build(described, "models.toml", key, entry) for key, entry in entries.items()}


@lru_cache(None)
def all_recipes() -> dict[str, Recipe]:
    """Every recipe of the catalogue, by key."""
    entries = files.table("recipes.toml", Recipe)
    return {key: _build(recipe_from, "recipes.toml", key, entry) for key, entry in entries.items()}


def uniform_recipes() -> dict[str, Recipe]:
    """The recipes under which every parameter of every model takes as many bytes, and whose steps can be
    timed, by key: those that a choice among recipes can offer."""
    return {key: one for key, one in all_recipes().items() if one.is_uniform and not one.untimed}


def _of_software(entry: dict) -> type[Software]:
    """What an entry may say of a program depends on what the program runs."""
    return ServingSoftware if entry.get("runs") == "serving" else TrainingSoftware


@lru_cache(None)
def all_software() -> dict[str, Software]:
    """Every program of the catalogue, by key."""
    entries = files.table("software.toml", _of_software)
    return {key: _build(_of_software(entry), "software.toml", key, entry) for key, entry in entries.items()}


@lru_cache(None)
def all_links() -> dict[str, Link]:
    """Every link of the catalogue, by key."""
    return _load("links.toml", Link)


@lru_cache(None)
def all_nodes() -> dict[str, Node]:
    """Every node of the catalogue, by key."""
    return _load("nodes.toml", Node, gpu=gpu, link=link, nic=link)


@lru_cache(None)
def all_hosts() -> dict[str, Host]:
    """What is known of GPUs' hosts, by the GPU's key."""
    return _load("hosts.toml", Host, link=link)


@lru_cache(None)
def all_prices() -> dict[str, Price]:
    """Every price of the catalogue, by key."""
    return _load("prices.toml", Price)


@lru_cache(None)
def all_runs() -> dict[str, PublishedRun]:
    """Published training runs, by key."""
    return _load("runs.toml", PublishedRun)


@lru_cache(None)
def all_interruptions() -> dict[str, Interruptions]:
    """Published failure rates of long runs, by key."""
    return _load("interruptions.toml", Interruptions)


def oldest_check() -> str:
    """The earliest day on which any of these figures was checked against its source."""
    tables = (
        all_gpus,
        all_links,
        all_nodes,
        all_recipes,
        all_software,
        all_models,
        all_prices,
        all_runs,
        all_interruptions,
    )
    return min(entry.checked for table in tables for entry in table().values() if entry.checked)


@lru_cache(None)
def compiled_steps() -> dict[str, CompiledStep]:
    """Published step times without and with torch.compile, by key."""
    return _load("compiled.toml", CompiledStep)


@lru_cache(None)
def _gpu_names() -> dict[str, str]:
    """Plain name -> key, for all that a GPU is called."""
    called = ((each, name) for each in all_gpus().values() for name in (each.key, each.name, *each.also))
    return {naming.plain(name): each.key for each, name in called}


def gpu(name: str) -> Gpu:
    """The GPU of this key, or of this name as nvidia-smi, a launcher, a cloud or a person writes it.

    Where several share a name, it is the commonest of them, and the result's ``name`` says which: "A100" is
    the SXM card of 80 GB, "H100" the SXM card. An unknown name is a ValueError with the nearest keys.

    >>> chip = engine.gpu("h100-sxm")
    >>> chip.hbm_bytes, chip.hbm_bytes_per_s
    >>> chip.peak_flops_per_s("fp8")
    >>> engine.gpu("NVIDIA H100 80GB HBM3").key, engine.gpu("a100").name
    """
    known = all_gpus()
    if name in known or not isinstance(name, str):
        return _pick("gpu", known, name)
    return _pick("gpu", known, _gpu_names().get(naming.plain(name), name))


@lru_cache(1)
def _model_names() -> dict[str, str]:
    return naming.names(all_models())


def model_key(name: str) -> str | None:
    """The key of the model that a name means, in any spelling; None if there is none."""
    return name if name in all_models() else naming.key_of(name, _model_names())


def model(key: str) -> Model:
    """The model of this key, or of a name that people use for it: the shape of a transformer, from which
    every count follows.

    >>> shape = engine.model("deepseek-v3")
    >>> shape.depth, shape.hidden, shape.experts, shape.top_k
    >>> engine.model("meta-llama/Llama-3.1-8B-Instruct").key
    """
    return _pick("model", all_models(), model_key(str(key)) or key)


def models_together(keys: Sequence[str]) -> Together:
    """Several models as one object whose numbers are arrays, so that a formula evaluates them all at once."""
    return Together([model(key) for key in keys])


def recipe(key: str) -> Recipe:
    """The recipe of this key: what each parameter's training state takes.

    >>> engine.recipe("bf16-adam").bytes_per_param
    """
    return _pick("recipe", all_recipes(), key)


def software(key: str, /, **changes: object) -> Software:
    """The program of this key: what it does beside the model. With other values for what you name, it is one
    of your own.

    >>> engine.software("torchtitan-2024-12").kernels
    >>> mine = engine.software("modern", loss="chunked", loss_chunks=4)
    >>> job = engine.Job(512, 8192, software=mine)
    >>> job.software.loss
    """
    found = _pick("software", all_software(), key)
    return changed(found, **changes) if changes else found


def training_software(key: str, /, **changes: object) -> TrainingSoftware:
    """The program of this key, which must be one that trains."""
    found = _program(TrainingSoftware, "trains", key)
    return changed(found, **changes) if changes else found


def serving_programs() -> tuple[str, ...]:
    """The keys of the programs that serve."""
    return tuple(key for key, each in all_software().items() if isinstance(each, ServingSoftware))


def serving_software(key: str) -> ServingSoftware:
    """The program of this key, which must be one that serves."""
    return _program(ServingSoftware, "serves", key)


def _program(kind: type[Program], does: str, key: str) -> Program:
    found = all_software().get(key)
    if not isinstance(found, kind):
        able = ", ".join(key for key, each in all_software().items() if isinstance(each, kind))
        raise ValueError(f"software must be a program that {does}, one of {able}; got {key!r}")
    return found


@lru_cache(None)
def _modern() -> TrainingSoftware:
    return training_software(DEFAULT_SOFTWARE)


def modern(**changes: object) -> TrainingSoftware:
    """What most training programs of today do, which is the software of a job that names none, with other
    values for what you name."""
    return changed(_modern(), **changes) if changes else _modern()


def link(key: str) -> Link:
    """The link of this key: its bandwidth one way, and the latency of a hop.

    >>> wire = engine.link("nvlink4")
    >>> wire.bytes_per_s, wire.latency_s
    """
    return _pick("link", all_links(), key)


def node(key: str) -> Node:
    """The node of this key: its GPUs, the fabric between them, and the NICs that leave it.

    >>> box = engine.node("dgx-h100")
    >>> box.gpus, box.nic_bytes_per_s_per_gpu
    """
    return _pick("node", all_nodes(), key)


def node_of(gpu_key: str) -> Node:
    """The usual node of a GPU: the first in the catalogue that is built with it."""
    for candidate in all_nodes().values():
        if candidate.gpu.key == gpu_key:
            return candidate
    raise ValueError(f"gpu must be one with a node in the catalogue; got {gpu_key!r}")


@lru_cache(None)
def _usual_node(gpu_key: str) -> Node:
    return node_of(gpu_key)


def usual_link(gpu: Gpu) -> Link:
    """The link between the GPUs of its usual node."""
    return _usual_node(gpu.key).link


def usual_nic(gpu: Gpu) -> Link:
    """A network card of its usual node."""
    return _usual_node(gpu.key).nic


def cluster(node_key: str, nodes: int, oversubscription: float = 1.0) -> Cluster:
    """A cluster of this many equal nodes, its network tapered by ``oversubscription``."""
    return Cluster(node(node_key), nodes, oversubscription)


def price(gpu_name: str, provider: str | None = None) -> Price:
    """The latest known hourly price of a GPU: from the named provider, or on demand from any."""
    key = gpu(gpu_name).key
    of_it = [p for p in all_prices().values() if p.gpu == key]
    known = [p for p in of_it if p.provider == provider or (provider is None and p.terms == ON_DEMAND)]
    if not known:
        priced = sorted({p.gpu for p in all_prices().values()})
        raise ValueError(
            f"gpu must be one with a known price ({', '.join(priced)}); "
            f"got {gpu_name!r}, provider {provider!r}"
        )
    return max(known, key=lambda p: p.date)


def _quantised(config: Path) -> dict | None:
    """What the hf_quant_config.json says that lies beside a config.json, if one does."""
    beside = config.with_name(config.name.replace("config.json", "hf_quant_config.json"))
    if beside == config or not beside.is_file():
        return None
    try:
        found = json.loads(beside.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{beside.name} must be readable JSON: {error}") from None
    return found if isinstance(found, dict) else None


def model_from_file(path: str | Path) -> Model:
    """A model of your own: the config.json of its checkpoint, or a TOML file with the catalogue's keys, flat
    or under one [key] table; instead of the short keys of its layers that may have ``groups`` of them
    (``models.group_from``)."""
    file = Path(path).absolute()
    if file.suffix == ".json":
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"model file must be a readable JSON file, got {str(path)!r}: {error}") from None
        name = file.parent.name if file.stem == "config" else file.stem
        return config_json.model(text, name, name, _quantised(file))
    try:
        entry = files.read(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"model file must be a readable TOML file, got {str(path)!r}: {error}") from None
    key = file.stem
    if len(entry) == 1 and isinstance(next(iter(entry.values())), dict):
        key, entry = next(iter(entry.items()))
    key = entry.pop("key", key)
    entry.setdefault("name", key)
    return _build(described, file, key, files.checked(file, key, entry, _of_a_model(entry)))
