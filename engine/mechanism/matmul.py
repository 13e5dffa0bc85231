"""What one GPU achieves: the measured functions of ``calibration`` at the clocks that a long job sustains,
and those of a server.

``calibration`` timed products, attention and experts one at a time, in bursts at full clocks. Here a ``Chip``
combines them for everything that estimates a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypedDict, TypeVar

from engine.base import check, hashing, ops
from engine.base.types import Real
from engine.calibration import DEFAULT, bands, known, launch_costs
from engine.calibration.products import gemm_s
from engine.catalog import files
from engine.catalog.hardware import WIDER

if TYPE_CHECKING:
    from engine.calibration.attention import Decode, Latent, Prefill
    from engine.calibration.constants import Calibration
    from engine.calibration.grouped import GroupedRates
    from engine.calibration.products import Gemm, Quantise
    from engine.catalog.hardware import Gpu

ELEMENT_BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5}


WHOLE_PROGRAMS = ("tpu", "trainium")  # generations whose compiler makes one program of all kernels


@dataclass(frozen=True, slots=True)
class ServingKernels:
    """A server's kernels: products at its clocks (``served_share``), attention at those of a burst."""

    product: Gemm
    wide: Gemm
    experts: GroupedRates
    attention: Prefill


@dataclass(frozen=True, slots=True)
class Chip:
    """What one GPU achieves: rates after calibration. ``wide`` is the precision that the head and attention
    stay in."""

    matmul_flops_per_s: float  # reached by the largest products
    memory_bytes_per_s: float  # reached by kernels that only move bytes
    operand_bytes: float  # of an element that a matrix product reads
    wide_bytes: float
    casts: float  # 1.0 where operands are cast to a narrower format before each product
    launch_s: float  # from one launch to the next, of kernels that do hardly anything
    issue_s: float  # of the CPU, to launch one; 0 where the compiler makes one program of all kernels
    product: Gemm  # dense products in the precision, as fitted
    wide: Gemm
    attention: Prefill  # fused attention over new tokens, at a long job's clocks, as the two below
    narrow_attention: Prefill  # the same in 8 bits
    flash_2: Prefill  # … and in 16 as PyTorch calls it
    decode: Decode  # attention of one new token over a cache …
    narrow_decode: Decode  # … of 8 bits
    latent: Latent  # the same over a latent cache …
    latent_prefill: Latent  # … and over new tokens of such a model
    experts: GroupedRates  # grouped products and what is around them
    quantise: Quantise  # finding the scale of activations and casting them to 8 bits
    served: ServingKernels  # the same in a server, where the clocks are higher
    hashed: int | None = field(default=None, init=False, repr=False, compare=False)
    __hash__ = hashing.once


class Achievable(TypedDict, total=False):
    """The best measured product on a chip, as a share of its dense peak, by format."""

    bf16: float
    fp8: float


@lru_cache(None)
def _achievable() -> dict:
    """Best shares by key, and the medians for chips that were never measured: a TPU is no GPU, and its
    products are the compiler's."""
    shares = files.table("achievable.toml", Achievable)
    medians: dict[str, dict[str, float]] = {"gpu": {}, "tpu": {}}
    for kin, middles in medians.items():
        for kind in ("bf16", "fp8"):
            known = sorted(each[kind] for key, each in shares.items() if kind in each and _kin(key) == kin)
            middles[kind] = known[len(known) // 2] if known else medians["gpu"][kind]
    return shares | medians


def _kin(gpu_key: str) -> str:
    """The kind of measured chips that stand for one that was not measured."""
    return "tpu" if bands.generation(gpu_key) == "tpu" else "gpu"


FIT = 0.05  # how far large products are off from the fit, in the median
SWEEP = (4096.0, 8192.0, 16384.0)  # sides of the square products that the best is looked for among
FITTED = {"bf16": "bf16", "fp8": "fp8", "fp4": "nvfp4"}  # formats by the names of ``calibration``


@lru_cache(None)
def _fitted_share(gpu_key: str, precision: str) -> float:
    """The best product of a sweep by the measured function, as a share of the peak; 0.0 where the chip was
    not measured in this format."""
    if precision not in FITTED:
        return 0.0
    gemm = known.gemm(gpu_key, FITTED[precision])
    if not (gemm.measured and gemm.own_format):
        return 0.0
    return _best_of_a_sweep(gemm.rates) / known.sheet(gpu_key).peak(FITTED[precision])


def _best_of_a_sweep(rates: Gemm) -> float:
    return max(2.0 * side**3 / gemm_s(side, side, side, rates) for side in SWEEP)


def achievable_share(gpu: Gpu, precision: str) -> float:
    """The best matrix product on this chip, as a share of its dense peak.

    There are two measurements: a published sweep, and the products that ``calibration`` is fitted on. Each is
    what somebody reached at the clocks of their own chip. If the two differ by more than the fit is off, the
    lower one counts, because a long job cannot rely on more. Without a sweep it is the median of the other
    chips (the fitted products of the L40S alone are below what served models reach).
    """
    kind = "fp8" if precision in ("fp8", "int8", "fp4") else "bf16"
    shares = _achievable()
    listed, fitted = shares.get(gpu.key, {}).get(kind, 0.0), _fitted_share(gpu.key, precision)
    if not listed:
        return shares[_kin(gpu.key)][kind]
    return fitted if 0.0 < fitted < (1.0 - FIT) * listed else listed


def sustained_share(gpu: Gpu, calibration: Calibration = DEFAULT, filled: float = 1.0) -> float:
    """The share of the best product that a training step sustains: lower on chips with much arithmetic for
    their power.

    share · (filled · peak per watt in TFLOP/s)^−power, with the 16-bit peak (or fp32's) and the board's
    power; at most 1. ``filled`` is a kernel's FLOP/s over those of the best product.
    """
    peak = gpu.bf16_flops_per_s or gpu.fp16_flops_per_s or gpu.fp32_flops_per_s
    dense = filled * peak / 1e12 / gpu.tdp_w if gpu.tdp_w else filled
    return min(1.0, calibration.matmul_sustained * dense**-calibration.matmul_power)


SERVER_MULTIPLIES = 0.43
"""How much of the time a full server multiplies: the FLOPs of the published ones, over those of the best
product in the same time (the mean of "throughput, TensorRT-LLM 1.0"; they lie between 0.16 and 0.77)."""
CLOCKS = 0.83
"""How much of what ``sustained_share`` takes off is clocks: on our own H100 and H200 a product that goes on
for seconds loses 0.145 and 0.17 of a burst's rate, where ``sustained_share`` takes off 0.189."""


def kept_clock(gpu: Gpu, calibration: Calibration = DEFAULT, filled: float = 1.0) -> float:
    """The share of a burst's clock, and so of its arithmetic, that a kernel keeps in a long job: 1 − clocks ·
    (1 − the share that it would sustain). A kernel that reaches fewer of the best product's FLOP/s keeps
    more.

    Our own H100 and H200 keep 0.855 and 0.83 for products, 0.884 and 0.881 for cuDNN's attention (both
    passes), and 0.99 and 1.0 for FlashAttention-2, which reaches half as much. This formula says 0.84, 0.88
    and 0.94.
    """
    return 1.0 - CLOCKS * (1.0 - sustained_share(gpu, calibration, filled))


def served_share(gpu: Gpu, calibration: Calibration = DEFAULT) -> float:
    """The share of the best product that a server sustains: 1 − (share of time in which it multiplies) · (1 −
    a long job's clock).

    The more of its time a chip multiplies, the lower its clock. On our own H100 a kernel that only moves
    bytes keeps the full clock; a product that runs without pause loses 0.145 of its rate; and the products of
    a transformer block, which take 0.81 of the time, lose 0.12. Leaves out that a server which mostly reads
    prompts multiplies more than one that writes long answers. Other makers' chips, whose clocks we did not
    measure, keep a training step's share.
    """
    if gpu.vendor != "NVIDIA":
        return sustained_share(gpu, calibration)
    return 1.0 - SERVER_MULTIPLIES * (1.0 - kept_clock(gpu, calibration))


def supported_precision(gpu: Gpu, precision: str) -> str:
    """The precision itself, or the next wider one that the chip has units for."""
    check.one_of(ELEMENT_BYTES, precision=precision)
    while not getattr(gpu, f"{precision}_flops_per_s"):
        if precision == "fp32":
            raise ValueError(f"gpu must have a peak in fp32 or wider formats; {gpu.key!r} has none")
        precision = WIDER[precision]
    return precision


@lru_cache(256)  # every formula about a GPU at work asks for it; a reader's own GPUs come and go
def chip(gpu: Gpu, precision: str = "bf16", calibration: Calibration = DEFAULT) -> Chip:
    """The GPU at work in one precision (in the next wider one where it has no such unit)."""
    precision = supported_precision(gpu, precision)
    wide = precision if ELEMENT_BYTES[precision] >= 2.0 else supported_precision(gpu, "bf16")
    peak = getattr(gpu, f"{precision}_flops_per_s")
    wide_peak = getattr(gpu, f"{wide}_flops_per_s")
    sustained, served = sustained_share(gpu, calibration), served_share(gpu, calibration)
    best, wide_best = peak * achievable_share(gpu, precision), wide_peak * achievable_share(gpu, wide)
    rate, wide_rate = best * sustained, wide_best * sustained
    burst = burst_attention(gpu, wide)
    return Chip(
        matmul_flops_per_s=float(rate),
        memory_bytes_per_s=float(gpu.hbm_bytes_per_s * calibration.memory_share),
        operand_bytes=ELEMENT_BYTES[precision],
        wide_bytes=ELEMENT_BYTES[wide],
        casts=1.0 if precision != wide else 0.0,
        launch_s=float(calibration.launch_s),
        issue_s=0.0 if bands.generation(gpu.key) in WHOLE_PROGRAMS else launch_costs.ISSUE_S,
        product=_gemm(gpu.key, precision, rate),
        wide=_gemm(gpu.key, wide, wide_rate),
        attention=_long(burst, gpu, wide_best, calibration),
        narrow_attention=_long(
            _in_format(known.attention("prefill", gpu.key, "fp8").rates, gpu, wide),
            gpu,
            wide_best,
            calibration,
        ),
        flash_2=_long(_in_format(known.flash_2(gpu.key), gpu, wide), gpu, wide_best, calibration),
        decode=_in_format(known.attention("decode", gpu.key).rates, gpu, wide),
        narrow_decode=_in_format(known.attention("decode", gpu.key, "fp8").rates, gpu, wide),
        latent=_in_format(known.known("latent", "decode.bf16", gpu.key).rates, gpu, wide),
        latent_prefill=_in_format(known.known("latent", "prefill.bf16", gpu.key).rates, gpu, wide),
        experts=_experts(gpu.key, precision, peak, sustained, rate),
        quantise=known.quantise(gpu.key).rates,
        served=ServingKernels(
            _gemm(gpu.key, precision, best * served),
            _gemm(gpu.key, wide, wide_best * served),
            _experts(gpu.key, precision, peak, served),
            burst,
        ),
    )


def burst_attention(gpu: Gpu, wide: str = "bf16") -> Prefill:
    """Fused attention over new tokens as it was measured and fitted: in bursts, at full clocks."""
    return _in_format(known.attention("prefill", gpu.key).rates, gpu, supported_precision(gpu, wide))


def _long(rates: Prefill, gpu: Gpu, best: float, calibration: Calibration) -> Prefill:
    """The rates of attention with arithmetic at a long job's clocks; a kernel keeps the more of the clock,
    the less it fills the chip. Bytes and starts take as long as before."""
    kept = (each * kept_clock(gpu, calibration, min(1.0, each / best)) for each in rates.flops_per_s)
    return replace(rates, flops_per_s=tuple(kept))


def product_flops_per_s(gpu: Gpu, precision: str = "bf16") -> Real:
    """The rate at which a long training step runs the products of a large layer: the rate of a ``Chip``, and
    so of ``layout.estimate``. Rules of thumb use it for a GPU at work, while MFU describes the time of a
    whole step."""
    return ops.each(gpu, lambda of: chip(of, precision).matmul_flops_per_s)


# the measured kernels whose rates stand for a layer of experts in a format; the first that a GPU has
EXPERT_KERNELS = {"fp4": ("nvfp4.cutlass",), "fp8": ("fp8.cutlass",), "int8": ("fp8.cutlass",)}


@lru_cache(None)
def _gemm(gpu_key: str, precision: str, flops_per_s: float) -> Gemm:
    """The fitted dense products, scaled so that the best product of a sweep reaches ``flops_per_s``."""
    rates = known.gemm(gpu_key, FITTED.get(precision, "fp8" if precision == "int8" else "bf16")).rates
    faster = flops_per_s / _best_of_a_sweep(rates)
    return replace(rates, flops_per_s=rates.flops_per_s * faster, operand_bytes=ELEMENT_BYTES[precision])


@lru_cache(None)
def _experts(
    gpu_key: str, precision: str, peak: float, sustained: float, most: float = float("inf")
) -> GroupedRates:
    """The fitted grouped products, at the clocks of ``sustained``, in a format with this peak; at ``most`` at
    this rate. In a long job they are no faster than one large dense product, which keeps the tensor cores as
    busy: what the fit leaves to their rate beyond it, it takes from that of the rows."""
    keys = EXPERT_KERNELS.get(precision, ("bf16.cutlass", "bf16.default"))
    measured = known.families("experts", gpu_key)
    key = next((key for key in keys if key in measured), keys[0])
    rates = known.known("experts", key, gpu_key).rates
    as_fast = peak / known.sheet(gpu_key).peak(key.split(".")[0])
    return replace(
        rates,
        flops_per_s=min(rates.flops_per_s * as_fast * sustained, most),
        weight_bytes=max(rates.weight_bytes, ELEMENT_BYTES[precision]),
    )


Kernel = TypeVar("Kernel", "Prefill", "Decode", "Latent")


def _in_format(rates: Kernel, gpu: Gpu, wide: str) -> Kernel:
    """The rates of attention in the format that a step uses for it.

    The kernels were measured in 16 bits. With wider values, arithmetic is slower in proportion to the peak,
    and memory moves twice the bytes.
    """
    faster = getattr(gpu, f"{wide}_flops_per_s") / known.sheet(gpu.key).peak("bf16")
    flops = rates.flops_per_s
    return replace(
        rates,
        flops_per_s=tuple(each * faster for each in flops) if isinstance(flops, tuple) else flops * faster,
        memory_bytes_per_s=rates.memory_bytes_per_s * (ELEMENT_BYTES["bf16"] / ELEMENT_BYTES[wide]),
    )


def stream_s(moved_bytes: Real, at: Chip) -> Real:
    """Seconds of a kernel that only moves bytes, such as a norm, an activation or the optimizer."""
    if not check.is_trusted():
        check.non_negative(moved_bytes=moved_bytes)
    return moved_bytes / at.memory_bytes_per_s
