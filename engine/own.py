"""A model and a cluster of one's own beside those of the catalogue: an option that may be either, and its numbers.

Everything here works on numbers and on symbols. An own model has the catalogue's fields; an own GPU reaches the same
shares of its figures as the H100 SXM does, since nobody has measured it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import NamedTuple

from engine import catalog, ops
from engine.hardware import Gpu
from engine.interconnect import Wires, wires
from engine.matmul import Chip, chip, supported_precision
from engine.models import Model

KINDS = {name: kind for name, kind in Model.__annotations__.items() if kind in ("int", "bool")}  # a model's numbers
LIKE = "h100-sxm"       # whose shares of peak and bandwidth an own GPU reaches


@dataclass(frozen=True)
class ModelOption:
    """A model to choose; ``own`` is 1.0 where the fields given beside it count."""

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

    def chip(self, precision) -> Chip:
        """What it achieves in a precision, or in the next wider one where it has no units for it."""
        return chip(self.gpu, precision.key)

    def peak_flops_per_s(self, precision) -> float:
        """The dense peak that MFU counts by."""
        return self.gpu.peak_flops_per_s(supported_precision(self.gpu, precision.key))


class Precision(NamedTuple):
    """What the matrix products run in; ``narrow`` is 1.0 for fp8."""

    key: str
    narrow: float


class Cluster(NamedTuple):
    """What the planner needs to know of the machines."""

    chip: Chip
    wires: Wires
    hbm_bytes: float
    peak_flops_per_s: float


def model_options() -> list[ModelOption]:
    """One's own, then all of the catalogue."""
    own = replace(catalog.model("llama3.1-8b"), key="own", name="My own model")
    return [ModelOption("own", own.name, 1.0, own),
            *(ModelOption(key, model.name, 0.0, model) for key, model in catalog.models().items())]


def gpu_options() -> list[GpuOption]:
    """One's own, then those of the catalogue that have a 16-bit peak and a network."""
    own = replace(catalog.gpu(LIKE), name="My own GPU")
    return [GpuOption("own", own.name, 1.0, own),
            *(GpuOption(key, gpu.name, 0.0, gpu) for key, gpu in catalog.gpus().items()
              if (gpu.bf16_flops_per_s or gpu.fp16_flops_per_s) and gpu.nic_bytes_per_s)]


def model(option, fields: dict) -> Model:
    """The option's model; with these fields where it is one's own."""
    known = {name: getattr(option.model, name) for name in KINDS}
    given = {name: value > 0 if KINDS[name] == "bool" else value for name, value in fields.items()}
    own = {name: ops.where(option.own > 0, value, known[name]) for name, value in given.items()}
    return Model(key="own", name="own", **known | own)


def as_model(thing) -> Model:
    """A model whose numbers may be symbols, from one that is not known yet; a model as it is."""
    if isinstance(thing, Model):
        return thing
    return Model(key="own", name="own", **{name: getattr(thing, name) for name in KINDS})


def cluster(option, precision, hbm_bytes, flops_per_s, hbm_bytes_per_s, link_bytes_per_s, nic_bytes_per_s,
            gpus_per_node) -> Cluster:
    """The option's GPU, node and NIC; with these figures where it is one's own."""
    like, own = catalog.gpu(LIKE), option.own > 0
    faster = ops.where(own, flops_per_s / like.bf16_flops_per_s, 1.0)
    wider = ops.where(own, hbm_bytes_per_s / like.hbm_bytes_per_s, 1.0)
    gpu = option.gpu
    node = SimpleNamespace(
        gpus_per_node=ops.where(own, gpus_per_node, gpu.gpus_per_node), sums_in_switch=gpu.sums_in_switch,
        link_bytes_per_s=ops.where(own, link_bytes_per_s, gpu.link_bytes_per_s),
        nic_bytes_per_s=ops.where(own, nic_bytes_per_s, gpu.nic_bytes_per_s))
    return Cluster(scaled_chip(option.chip(precision), faster, wider), wires(node),
                   ops.where(own, hbm_bytes, gpu.hbm_bytes), option.peak_flops_per_s(precision) * faster)


def scaled_chip(at: Chip, faster=1.0, wider=1.0) -> Chip:
    """The chip with that many times the arithmetic and that many times the memory bandwidth."""
    return Chip(at.matmul_flops_per_s * faster, at.wide_flops_per_s * faster, at.attention_flops_per_s * faster,
                at.memory_bytes_per_s * wider, at.multiprocessors, at.operand_bytes, at.wide_bytes, at.casts,
                at.launch_s, at.softmax_d)


def scaled_wires(net: Wires, link=1.0, nic=1.0) -> Wires:
    """The wires with so many times the bandwidth in the node and out of it; hops take as long as before."""
    return Wires(net.gpus_per_node, net.link_bytes_per_s * link, net.nic_bytes_per_s * nic,
                 net.switch_bytes_per_s * link, net.link_hop_s, net.network_hop_s, net.start_s)
