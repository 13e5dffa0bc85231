"""A model and a cluster of one's own beside those of the catalogue: options that are one or the other, and
their numbers.

Everything here works on numbers and on symbols. One's own model has the catalogue's fields; one's own GPU
reaches the same shares of its peak figures as the H100 SXM, since it has not been measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np

from engine import catalog
from engine.base import ops
from engine.base.types import Real
from engine.catalog import files
from engine.catalog.config_json import BOUNDS
from engine.catalog.hardware import Gpu
from engine.catalog.models import (
    AT_MOST,
    KINDS,
    LATENT,
    NUMBER,
    Model,
    contradiction,
    described,
    in_short_keys,
    sizes_of,
)
from engine.mechanism.interconnect import Wires, wires
from engine.mechanism.matmul import Chip, chip, supported_precision
from engine.mechanism.memory import capacity_bytes
from engine.mechanism.scaled_chip import scaled_chip
from engine.step import layout as layouts
from engine.step.layout import Machine

LIKE = "h100-sxm"  # whose shares of peak and bandwidth one's own GPU reaches


@dataclass(frozen=True)
class ModelOption:
    """A model to choose; ``own`` is 1.0 if the fields given beside it apply."""

    key: str
    name: str
    own: float
    model: Model


@dataclass(frozen=True)
class GpuOption:
    """A GPU to choose."""

    key: str
    name: str
    own: float
    gpu: Gpu

    def chip(self, precision: Precision) -> Chip:
        """The rates that it reaches in a precision, or in the next wider one that it has units for."""
        return chip(self.gpu, precision.key)

    def peak_flops_per_s(self, precision: Precision) -> float:
        """The dense peak that MFU is relative to."""
        return self.gpu.peak_flops_per_s(supported_precision(self.gpu, precision.key))


class Precision(NamedTuple):
    """The format of the matrix products; ``narrow`` is 1.0 for fp8."""

    key: str
    narrow: float


class OwnCluster(NamedTuple):
    """What the planner needs to know about the machines."""

    chip: Chip
    wires: Wires
    hbm_bytes: float
    peak_flops_per_s: float


def model_options() -> list[ModelOption]:
    """One's own model, then those of the catalogue whose layers the page's controls can describe."""
    own = replace(catalog.model("llama3.1-8b"), key="own", name="My own model", rotary_base=0)
    return [
        ModelOption("own", own.name, 1.0, own),
        *(
            ModelOption(key, model.name, 0.0, model)
            for key, model in catalog.all_models().items()
            if in_short_keys(model)
        ),
    ]


def gpu_options() -> list[GpuOption]:
    """One's own GPU, then those of the catalogue that have a 16-bit peak and a network."""
    own = replace(catalog.gpu(LIKE), name="My own GPU")
    return [
        GpuOption("own", own.name, 1.0, own),
        *(
            GpuOption(key, gpu.name, 0.0, gpu)
            for key, gpu in catalog.all_gpus().items()
            if (gpu.bf16_flops_per_s or gpu.fp16_flops_per_s) and gpu.nic_bytes_per_s
        ),
    ]


HEADS = np.arange(1.0, BOUNDS["heads"][1] + 1.0)


def fitted(fields: dict) -> dict:
    """The fields of the nearest possible model: no field exceeds the one that AT_MOST names for it, and the
    key heads divide the query heads."""
    found = fields | {
        name: ops.minimum(1.0 * fields[name], 1.0 * fields[most]) for name, most in AT_MOST.items()
    }
    divides = (np.remainder(found["heads"], HEADS) == 0) & (found["kv_heads"] >= HEADS)
    return found | {"kv_heads": np.max(np.where(divides, HEADS, 1.0))}


def model(option: ModelOption, fields: dict) -> Model:
    """The option's model; if it is one's own, the model with these fields. ValueError for fields that
    contradict each other, even where checks are off: if more layers had a window than there are layers, the
    number of layers without one would be negative, and so would the bytes and seconds of a search. ``fitted``
    gives fields without such contradictions."""
    return ops.each(option, lambda one: _own(one.model, fields) if one.own else _unnamed(one.model))


def _own(like: Model, fields: dict) -> Model:
    """A model with these fields, and for the rest those of another."""
    found = {name: getattr(like, name) for name in KINDS if name in Model.__annotations__} | sizes_of(like)
    found |= {name: value > 0 if KINDS[name] == "bool" else value for name, value in fields.items()}
    known = all(isinstance(found[name], NUMBER) for name in (*AT_MOST, *AT_MOST.values(), "kv_lora", *LATENT))
    if known and (wrong := contradiction(found)):
        raise ValueError(wrong)
    return described("own", "own", **found)


def _unnamed(known: Model) -> Model:
    return replace(known, key="own", name="own", checkpoint="", stored="")


def cluster(
    option: GpuOption,
    precision: Precision,
    hbm_bytes: Real,
    flops_per_s: Real,
    hbm_bytes_per_s: Real,
    link_bytes_per_s: Real,
    nic_bytes_per_s: Real,
    gpus_per_node: Real,
) -> OwnCluster:
    """The option's GPU, node and NIC; if the GPU is one's own, with these figures."""
    like, own = catalog.gpu(LIKE), option.own > 0
    faster = ops.where(own, flops_per_s / like.bf16_flops_per_s, 1.0)
    wider = ops.where(own, hbm_bytes_per_s / like.hbm_bytes_per_s, 1.0)
    gpu = option.gpu
    net = wires(
        gpu,
        ops.where(own, gpus_per_node, gpu.gpus_per_node),
        ops.where(own, nic_bytes_per_s, gpu.nic_bytes_per_s),
        link_bytes_per_s=ops.where(own, link_bytes_per_s, gpu.link_bytes_per_s),
    )
    return OwnCluster(
        scaled_chip(option.chip(precision), faster, wider),
        net,
        ops.where(own, hbm_bytes, capacity_bytes(gpu)),
        option.peak_flops_per_s(precision) * faster,
    )


class OwnGpu(TypedDict, total=False):
    """What a file may say about one's own GPU: which GPU of the catalogue it resembles, and the figures that
    differ."""

    like: str
    name: str
    hbm_bytes: float
    hbm_bytes_per_s: float
    bf16_flops_per_s: float
    fp16_flops_per_s: float
    fp8_flops_per_s: float
    link_bytes_per_s: float
    nic_bytes_per_s: float
    gpus_per_node: int
    tdp_w: float


def gpu_from_file(path: str | Path) -> Gpu:
    """One's own GPU from a TOML file with the keys of OwnGpu. It keeps the key of the GPU that it is ``like``
    (the H100 SXM unless given), since it reaches the same shares of its peaks."""
    file = Path(path).absolute()
    try:
        entry = files.read(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"gpu file must be a readable TOML file, got {str(path)!r}: {error}") from None
    given = files.checked(file, file.stem, entry, OwnGpu)
    like = catalog.gpu(given.pop("like", LIKE))
    for name, value in given.items():
        if isinstance(value, (int, float)) and not value > 0:
            raise ValueError(f"{files.where(file, '', name)}: {name} must be above 0, got {value!r}")
    whole = {"reported_bytes": 0.0} if "hbm_bytes" in given else {}
    return replace(like, **{"name": "My own GPU", **whole, **given})


def machine(gpu: Gpu, precision: str = "bf16", net: Wires | None = None) -> Machine:
    """A GPU of the catalogue, or one's own (``layout.of_gpu``); ``net`` are the wires around it, if they are
    known."""
    found = layouts.of_gpu(gpu, precision)
    return found if net is None else replace(found, wires=net)


def faster(at: Machine, times: Real) -> Machine:
    """The machine with ``times`` times the arithmetic, and nothing else faster."""
    return replace(at, chip=scaled_chip(at.chip, faster=times))
