"""Which constants were measured on which GPU: the fitted values as rates, their accuracy, and their range.

``gemm("h100-sxm", "bf16")`` gives the rates that ``products.gemm_s`` needs. A GPU that was never measured
gets the medians of those that were, scaled by its own data sheet, and the result says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from engine import catalog
from engine.base import check
from engine.calibration.attention import Decode, Latent, Prefill
from engine.calibration.exchange import BoxWires, ExchangedRows, Mapped, Wire
from engine.calibration.grouped import GroupedRates
from engine.calibration.products import Gemm, Quantise

PLACE = Path(__file__).parent
with (PLACE / "systems.toml").open("rb") as _file:
    _systems = tomllib.load(_file)
SYSTEMS: dict[str, dict] = _systems["system"]  # name in the tables -> GPU
RELATIVES: dict[str, str] = _systems["relatives"]  # GPU -> a measured one of the same multiprocessors
BOXES: dict[str, str] = _systems["boxes"]  # link -> the measured GPU whose box has the most similar wires

# The size classes by which residuals are reported and bands are kept: up to each bound, and above the last.
ENDLESS = float("inf")
SIZES: dict[str, tuple[str, tuple[tuple[float, str], ...]]] = {
    "gemm": ("m", ((64, "m to 64"), (512, "m to 512"), (4353, "m to 4353"), (ENDLESS, "m above"))),
    "quantise": ("m·k", ((2**20, "to 1 M values"), (ENDLESS, "above 1 M values"))),
    "prefill": ("tokens", ((256, "to 256"), (2048, "to 2048"), (ENDLESS, "above 2048"))),
    "decode": (
        "bytes of keys and values read",
        ((1e6, "to 1 MB"), (1e8, "to 100 MB"), (1e9, "to 1 GB"), (ENDLESS, "above 1 GB")),
    ),
    "latent": ("batch·tokens", ((4096, "to 4 k"), (262144, "to 256 k"), (ENDLESS, "above 256 k"))),
    "experts": ("tokens", ((16, "to 16"), (256, "to 256"), (2048, "to 2048"), (ENDLESS, "above 2048"))),
    "collective": ("bytes", ((2**20 - 1, "below 1 MB"), (ENDLESS, "from 1 MB"))),
    "mapped_all_reduce": ("bytes", ((2**20 - 1, "below 1 MB"), (ENDLESS, "from 1 MB"))),
    "dispatch": ("tokens of a rank", ((128, "to 128"), (ENDLESS, "above 128"))),
    "combine": ("tokens of a rank", ((128, "to 128"), (ENDLESS, "above 128"))),
    "send": ("bytes", ((2**20 - 1, "below 1 MB"), (ENDLESS, "from 1 MB"))),
}


def size_of(kind: str, value: float) -> str:
    """The size class of a value; ``SIZES`` says which quantity it is for each kind."""
    return next(name for bound, name in SIZES[kind][1] if value <= bound)


OPERAND_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0 + 4.0 / 128.0, "nvfp4": 0.5 + 1.0 / 16.0}
QUANTISED_BYTES = {
    "bf16": 0.0,
    "fp8": 0.0,
    "fp8_block": 3.0,
    "nvfp4": 2.5,
}  # read and written, per element of A
WEIGHT_BYTES = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "nvfp4": 0.5 + 1.0 / 16.0,
    "w4a8_mxfp4_mxfp8": 0.5 + 1.0 / 32.0,
    "w4a16_mxfp4": 0.5 + 1.0 / 32.0,
}
PEAK_OF = {
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "fp4",
    "w4a8_mxfp4_mxfp8": "fp8",
    "w4a16_mxfp4": "bf16",
}
WIDER = {"fp4": "fp8", "fp8": "bf16"}
FEWEST_WAVES = 16.0  # multiprocessors; a chip of fewer, large units (a TPU) has no waves of small tiles
FA2 = ("flash_attn", "flash_attn_fa2")
MEDIANS = "medians of the others"


@dataclass(frozen=True, slots=True)
class Sheet:
    """The data-sheet figures that the constants are relative to."""

    key: str
    multiprocessors: float
    l2_bytes: float
    memory_bytes_per_s: float
    peaks: dict[str, float]
    link_bytes_per_s: float

    def peak(self, dtype: str) -> float:
        """The dense peak of a format, or of the next wider one that the chip has."""
        name = PEAK_OF[dtype]
        while not self.peaks.get(name):
            name = WIDER[name]
        return self.peaks[name]


def sheet(gpu_key: str) -> Sheet:
    """The data sheet of a GPU of the catalogue."""
    gpu = catalog.gpu(gpu_key)
    peaks = {
        "bf16": gpu.bf16_flops_per_s or gpu.fp16_flops_per_s or gpu.fp32_flops_per_s,
        "fp8": gpu.fp8_flops_per_s,
        "fp4": gpu.fp4_flops_per_s,
    }
    return Sheet(
        gpu_key,
        float(gpu.sms or 1),
        float(gpu.l2_bytes),
        float(gpu.hbm_bytes_per_s),
        peaks,
        gpu.link_bytes_per_s,
    )


def gemm_rates(c: dict, of: Sheet, dtype: str) -> Gemm:
    """A dense product: ``ceiling`` and ``memory`` are shares of the data sheet."""
    return Gemm(
        flops_per_s=c["ceiling"] * of.peak(dtype),
        multiprocessors=of.multiprocessors,
        memory_bytes_per_s=c["memory"] * of.memory_bytes_per_s,
        launch_s=c["launch_s"],
        rows=c["rows"],
        wave=c["wave"],
        ramp=c["ramp"],
        slowing=c["slowing"],
        operand_bytes=OPERAND_BYTES[dtype],
        quantised_bytes=QUANTISED_BYTES[dtype],
    )


def quantise_rates(c: dict, of: Sheet, scale: str) -> Quantise:
    """Casting to 8 bits with one scale per tensor: bf16 is read twice and written once."""
    return Quantise(c["memory"] * of.memory_bytes_per_s, c["launch_s"], 5.0, c["warm"])


def prefill_rates(c: dict, of: Sheet, family: str) -> Prefill:
    """Shares of the 16-bit peak at four head dimensions, whatever the cache's format."""
    return Prefill(
        flops_per_s=tuple(c[f"share_{d}"] * of.peak("bf16") for d in (64, 128, 256, 512)),
        multiprocessors=of.multiprocessors,
        memory_bytes_per_s=c["memory"] * of.memory_bytes_per_s,
        write_bytes_per_s=c["write"] * of.memory_bytes_per_s,
        launch_s=c["launch_s"],
        block_s=_block_s(c, of),
        ramp_s=c["ramp_s"],
    )


def _block_s(c: dict, of: Sheet) -> float:
    """The time of a thread block in addition to its work; 0 on a chip that has no waves of small tiles."""
    return c["block_s"] if of.multiprocessors >= FEWEST_WAVES else 0.0


def decode_rates(c: dict, of: Sheet, family: str) -> Decode:
    """``walk`` is a share of the memory bandwidth per multiprocessor."""
    return Decode(
        flops_per_s=c["arithmetic"] * of.peak("bf16"),
        multiprocessors=of.multiprocessors,
        memory_bytes_per_s=c["memory"] * of.memory_bytes_per_s,
        walk_bytes_per_s=c.get("walk", 1.0) * of.memory_bytes_per_s / of.multiprocessors,
        launch_s=c["launch_s"],
        block_s=_block_s(c, of),
        ramp_s=c["ramp_s"],
        join_s=c["join_s"],
        warm=c["warm"],
        packs_always=0.0 if family.split(".")[0] in FA2 else 1.0,
    )


def latent_rates(c: dict, of: Sheet, phase: str) -> Latent:
    """Latent attention: shares of the 16-bit peak and of the memory's bandwidth."""
    return Latent(
        flops_per_s=c["arithmetic"] * of.peak("bf16"),
        multiprocessors=of.multiprocessors,
        memory_bytes_per_s=c["memory"] * of.memory_bytes_per_s,
        walk_bytes_per_s=c.get("walk", 1e6) * of.memory_bytes_per_s / of.multiprocessors,
        launch_s=c["launch_s"],
        block_s=_block_s(c, of),
        ramp_s=c["ramp_s"],
    )


def experts_rates(c: dict, of: Sheet, kernel: str) -> GroupedRates:
    """Grouped products, by format and kernel: "nvfp4.cutlass"."""
    dtype = kernel.split(".")[0]
    waves = of.multiprocessors >= FEWEST_WAVES
    return GroupedRates(
        flops_per_s=c["ceiling"] * of.peak(dtype),
        multiprocessors=of.multiprocessors,
        memory_bytes_per_s=c["memory"] * of.memory_bytes_per_s,
        permute_bytes_per_s=c["permute"] * of.memory_bytes_per_s,
        token_bytes_per_s=c["token"] * of.memory_bytes_per_s,
        launch_s=c["launch_s"],
        expert_s=c["expert_s"],
        pace_s=c["pace_s"] if waves else 0.0,
        padding=c["padding"],
        weight_bytes=WEIGHT_BYTES[dtype],
    )


def fabric_rates(c: dict, of: Sheet, library: str) -> BoxWires:
    """Bus bandwidths in shares of the link's one-way bandwidth."""
    rates = {
        kind: tuple(c[f"{kind}_{n}"] * of.link_bytes_per_s for n in (2, 4, 8))
        for kind in ("reduce", "gather", "direct")
    }
    return BoxWires(
        start_s=c["start_s"],
        hop_s=c["hop_s"],
        direct_s=c["direct_s"],
        middle_s=c["middle_s"],
        middle=c["middle"],
        late_s=c["late_s"],
        late_direct_s=c["late_direct_s"],
        low=c["low"],
        direct_low=c["direct_low"],
        reduce_bytes_per_s=rates["reduce"],
        gather_bytes_per_s=rates["gather"],
        direct_bytes_per_s=rates["direct"],
    )


def wire_rates(c: dict, of: Sheet, where: str) -> Wire:
    """The path between two GPUs; the rate is absolute, since the network is not known."""
    return Wire(c["bytes_per_s"], c["start_s"], c["late_s"])


def mapped_rates(c: dict, of: Sheet, framework: str) -> Mapped:
    """A framework's own AllReduce, in shares of the link's bandwidth."""
    link = of.link_bytes_per_s
    return Mapped(c["start_s"], c["rank_s"], c["second_s"], c["one_shot"] * link, c["two_shot"] * link)


def rows_rates(c: dict, of: Sheet, key: str) -> ExchangedRows:
    """Tokens between expert ranks, as shares of the link. Rows have the format that the key names; DeepEP
    dispatches rows of 8 bits and combines rows of 16."""
    sixteen = key.endswith((".bf16", ".combine"))
    return ExchangedRows(
        bytes_per_s=c["link"] * of.link_bytes_per_s,
        copier_bytes_per_s=c.get("copier", 1.0) * of.link_bytes_per_s,
        start_s=c["start_s"],
        row_s=c["row_s"],
        token_bytes=2.0 if sixteen else 0.5 + 1.0 / 16.0 if key.endswith(".nvfp4") else 1.0 + 1.0 / 32.0,
    )


BUILDERS: dict[str, Callable[[dict, Sheet, str], Any]] = {
    "gemm": gemm_rates,
    "quantise": quantise_rates,
    "prefill": prefill_rates,
    "decode": decode_rates,
    "latent": latent_rates,
    "experts": experts_rates,
    "collective": fabric_rates,
    "send": wire_rates,
    "mapped_all_reduce": mapped_rates,
    "dispatch": rows_rates,
    "combine": rows_rates,
}


# -- what was fitted -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class KnownRates:
    """Rates for one kind of operation on one GPU, and how far to trust them."""

    rates: Any
    kind: str
    key: str
    gpu: str
    measured: bool  # False: this GPU's data sheet with a relative's constants or the others' medians
    by: str  # whose constants these are
    own_format: bool  # False: the chip lacks the format, and a wider one's peak is used
    ranges: dict[str, tuple[float, float]]  # of the inputs that it was fitted on

    def extrapolates(self, **inputs: float) -> list[str]:
        """What lies outside the measured range, by name: inputs, "gpu", "format" (the chip lacks it)."""
        outside = [] if self.measured else ["gpu"]
        if not self.own_format:
            outside.append("format")
        for name, value in inputs.items():
            if name not in self.ranges:
                raise ValueError(f"input must be one of {', '.join(self.ranges)}; got {name!r}")
            low, high = self.ranges[name]
            if value < low or value > high:
                outside.append(name)
        return outside

    def band(self, size: float) -> tuple[float, float]:
        """The 10th and 90th percentile of measured over predicted time on held-out rows, at this size (see
        ``SIZES``). Wider for a GPU that was not measured."""
        found = residuals()["band" if self.measured else "band_elsewhere"][self.kind]
        name = size_of(self.kind, size)
        low, high = next(
            found[n] for n in (f"{self.key}.{self.gpu}.{name}", f"{self.key}.{name}", "all") if n in found
        )
        return low, high


@lru_cache(None)
def fitted() -> dict:
    """The contents of fitted.toml: kind → key → GPU → constants."""
    with (PLACE / "fitted.toml").open("rb") as file:
        return tomllib.load(file)


@lru_cache(None)
def residuals() -> dict:
    """The contents of residuals.toml: the errors on rows that were not used for fitting."""
    with (PLACE / "residuals.toml").open("rb") as file:
        return tomllib.load(file)


def medians(entries: list[dict]) -> dict[str, float]:
    """The median of each constant, over the chips that have it."""
    names = {name: None for entry in entries for name in entry}
    return {name: median(e[name] for e in entries if name in e) for name in names}


def known(kind: str, key: str, gpu_key: str, nearest: str | None = None) -> KnownRates:
    """The rates of a kind ("gemm") by key ("bf16") on a GPU. Where it was not measured: a relative's shares
    of this GPU's own data sheet (or those of ``nearest``, if given), or else the medians of all others."""
    kinds = fitted()["constants"]
    if kind not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)}; got {kind!r}")
    if key not in kinds[kind]:
        raise ValueError(f"key of {kind} must be one of {', '.join(kinds[kind])}; got {key!r}")
    chips = kinds[kind][key]
    relative = RELATIVES.get(gpu_key, "") if nearest is None else nearest
    by = gpu_key if gpu_key in chips else relative
    constants = chips[by] if by in chips else medians(list(chips.values()))
    of = sheet(gpu_key)
    ranges = {name: tuple(span) for name, span in fitted()["ranges"][kind][key].items()}
    return KnownRates(
        rates=BUILDERS[kind](constants, of, key),
        kind=kind,
        key=key,
        gpu=gpu_key,
        measured=gpu_key in chips,
        by=by if by in chips else MEDIANS,
        own_format=kind not in ("gemm", "experts") or bool(of.peaks[PEAK_OF[key.split(".")[0]]]),
        ranges=ranges,
    )


def rates_from(gpu_key: str) -> str:
    """Whose timed products stand behind a GPU's rates: its own, those of a GPU with the same multiprocessors,
    or the medians of all that were timed; the last two scaled by its own data sheet."""
    by = gemm(gpu_key).by
    if by == gpu_key:
        return "measured"
    gpus = catalog.all_gpus()
    return f"as the {gpus[by].name}" if by in gpus else MEDIANS


def gemm(gpu_key: str, dtype: str = "bf16") -> KnownRates:
    """A dense product: bf16, fp8 (one scale per tensor, cast beforehand), fp8_block or nvfp4 (cast inside the
    timing)."""
    return known("gemm", dtype, gpu_key)


def quantise(gpu_key: str) -> KnownRates:
    """Casting activations to 8 bits with one scale a tensor."""
    return known("quantise", "tensor", gpu_key)


def families(kind: str, gpu_key: str) -> list[str]:
    """The kernels (and formats) of a kind that were measured on a GPU or on its relative."""
    of = {gpu_key, RELATIVES.get(gpu_key, gpu_key)}
    return [key for key, chips in fitted()["constants"][kind].items() if of & set(chips)]


def attention(kind: str, gpu_key: str, cache: str = "bf16") -> KnownRates:
    """Prefill or decode by the kernel that vLLM chooses on this GPU for the usual head dimensions; without a
    measured relative, by the family that most GPUs share."""
    check.one_of(("prefill", "decode"), kind=kind)
    check.one_of(("bf16", "fp8"), cache=cache)
    rare = ("triton_attn", "flash_attn_fa4")
    usual = [k for k in families(kind, gpu_key) if k.endswith(f".{cache}") and not k.startswith(rare)]
    if not usual:
        found = fitted()["constants"][kind]
        usual = sorted(
            (k for k in found if k.endswith(f".{cache}") and not k.startswith(rare)),
            key=lambda k: -len(found[k]),
        )
    return known(kind, usual[0], gpu_key)


# FlashAttention-2 on an H100: up to 335 TFLOP/s of 989, forward and backward (arXiv:2307.08691, section 4.1).
# The backward pass takes 2.7 times as long for 2.5 times the FLOPs, so the forward pass alone is faster.
FLASH_2_SHARE = 335.0 / 989.4 * (1.0 + 2.7) / (1.0 + 2.5)
HOPPERS_OWN = "flash_attn_fa3.bf16"


def flash_2(gpu_key: str) -> Prefill:
    """FlashAttention-2 over new tokens. The kernels measured on Hopper are faster, so
    their rates are scaled down to the published one; on other GPUs it is the measured kernel, or nearly as
    fast."""
    rates = attention("prefill", gpu_key).rates
    if HOPPERS_OWN not in families("prefill", gpu_key):
        return rates
    slower = FLASH_2_SHARE / fitted()["constants"]["prefill"][HOPPERS_OWN]["h100-sxm"]["share_128"]
    return replace(rates, flops_per_s=tuple(slower * rate for rate in rates.flops_per_s))


def box_of(gpu_key: str) -> str:
    """The GPU whose measured box is used for this GPU: itself if it was measured, else the one with the most
    similar wires. Cards whose driver has no peer-to-peer transfer go through the host's memory, like the L40S
    of the measured box."""
    if gpu_key in fitted()["constants"]["collective"]["nccl"]:
        return gpu_key
    gpu = catalog.gpu(gpu_key)
    if not gpu.peer_to_peer:
        return BOXES["through the host"]
    if catalog.usual_link(gpu).peers:
        return BOXES["a mesh"]
    return BOXES.get(gpu.link_name, "")


def _between(kind: str, key: str, gpu_key: str) -> KnownRates:
    """Constants of the wires of a box, relative to this GPU's own link."""
    return known(kind, key, gpu_key, box_of(gpu_key))


def collective(gpu_key: str) -> KnownRates:
    """Rates of NCCL inside one box or NVLink domain. In a mesh, two or four ranks can use only the wires
    between them, which are a part of the wires from a GPU to all its peers."""
    found = _between("collective", "nccl", gpu_key)
    peers = 0 if found.measured else catalog.usual_link(catalog.gpu(gpu_key)).peers
    if not peers:
        return found
    rates = {}
    for name in ("reduce_bytes_per_s", "gather_bytes_per_s", "direct_bytes_per_s"):
        full = getattr(found.rates, name)[2]
        rates[name] = (full / peers, full * 3.0 / peers, full * min(1.0, 7.0 / peers))
    return replace(found, rates=replace(found.rates, **rates))


def mapped_all_reduce(gpu_key: str, framework: str = "trtllm") -> KnownRates:
    """Rates of a serving framework's own AllReduce inside one box. Over wires on which it was not measured,
    it is no faster than that box's all-to-all exchange."""
    found = _between("mapped_all_reduce", framework, gpu_key)
    if found.by != MEDIANS:
        return found
    most = collective(gpu_key).rates.direct_bytes_per_s[2]
    rates = replace(
        found.rates,
        one_shot_bytes_per_s=min(found.rates.one_shot_bytes_per_s, most),
        two_shot_bytes_per_s=min(found.rates.two_shot_bytes_per_s, most),
    )
    return replace(found, rates=rates)


def neighbour(gpu_key: str) -> KnownRates:
    """One message between two GPUs of the same box: A100's or H100's constants, relative to the link."""
    nearest = "a100-80" if box_of(gpu_key) == "a100-80" else "h100-sxm"
    found = known("send", "one node", nearest)
    link = sheet(gpu_key).link_bytes_per_s
    wire = link / max(1, catalog.usual_link(catalog.gpu(gpu_key)).peers)  # of a mesh: one of several
    rate = min(found.rates.bytes_per_s * link / sheet(nearest).link_bytes_per_s, wire)
    rates = replace(found.rates, bytes_per_s=rate)
    return replace(found, rates=rates, gpu=gpu_key, measured=gpu_key == nearest)
