"""The engine against GPUs that we measured ourselves (``make measure``): single operations at full clocks,
work that goes on for seconds, and what PyTorch's allocator reserves. Nothing here set a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from engine import catalog
from engine.calibration import known
from engine.calibration.attention import fused_s
from engine.calibration.products import gemm_s
from engine.catalog.hardware import Gpu
from engine.catalog.models import described
from engine.mechanism import compute, matmul
from engine.mechanism.shape import shape
from engine.one_gpu import allocator_replay, measurements

COLD_BYTES = 64e6  # streaming kernels read operands of this size or more from memory, not from L2
LARGE = 1024  # an operation with at least so many rows, tokens or elements a side counts as large
LIBRARIES = {"flash": "FlashAttention-2", "cudnn": "cuDNN"}
BLOCK = described(
    key="block",
    name="A block of 8,192 tokens",
    layers=1,
    hidden=4096,
    heads=32,
    kv_heads=32,
    head_dim=128,
    ffn=16384,
    vocab=2,
    max_positions=8192,  # the model has no rotary embedding
)


class TimedHere(NamedTuple):
    """One operation: what was measured and what the engine says."""

    gpu: str
    what: str
    size: int  # rows of a product, tokens of a sequence, bytes of a kernel's operand
    measured_s: float
    predicted_s: float

    @property
    def error(self) -> float:
        """How far the prediction is above the measured time, as a share of it."""
        return self.predicted_s / self.measured_s - 1.0


def _of(subject: str) -> Iterator[tuple[Gpu, dict]]:
    for key, found in measurements.on_known(subject):
        yield catalog.gpu(key), found


# -- single operations, at full clocks -----------------------------------------------------------------------
def products() -> Iterator[TimedHere]:
    """Dense products by their number of rows."""
    for gpu, found in _of("products"):
        for dtype, points in found.items():
            rates = known.gemm(gpu.key, dtype).rates
            for at in points:
                seconds = gemm_s(at["m"], at["n"], at["k"], rates)
                yield TimedHere(gpu.key, f"product, {dtype}", at["m"], at["burst_s"], seconds)


def attention() -> Iterator[TimedHere]:
    """Causal attention forward, and forward and backward together, which is what a training step does."""
    for gpu, found in _of("attention"):
        kernels = {"flash": known.flash_2(gpu.key), "cudnn": matmul.burst_attention(gpu)}
        for library, kernel in kernels.items():
            for point in found[library]:
                tokens, heads = point["tokens"], found["heads"]
                forward_s = fused_s(point["batch"], tokens, heads, heads, found["head_dim"], kernel)
                name, both = LIBRARIES[library], forward_s * (1.0 + compute.BACKWARD_OF_FLASH)
                yield TimedHere(gpu.key, f"{name}, forward", tokens, point["forward_s"], forward_s)
                yield TimedHere(gpu.key, f"{name}, both passes", tokens, point["both_s"], both)


def streams() -> Iterator[TimedHere]:
    """Kernels that only move bytes, with operands too large for the L2 cache."""
    for gpu, found in _of("streaming"):
        at = matmul.chip(gpu)
        for kernel, points in found.items():
            for point in points:
                if kernel == "host" or point["operand_bytes"] < COLD_BYTES:
                    continue
                seconds = matmul.stream_s(point["moved_bytes"], at)
                yield TimedHere(gpu.key, kernel, point["operand_bytes"], point["burst_s"], seconds)


class Operation(NamedTuple):
    """The median error, with sign, of an operation's large and small sizes, on each GPU."""

    what: str
    large: dict[str, float]  # by GPU
    small: dict[str, float]


@cache
def operations() -> list[Operation]:
    """Products and attention; ``LARGE`` says what is large."""
    rows = [*products(), *attention()]
    return [
        Operation(
            what,
            _medians(row for row in rows if row.what == what and row.size >= LARGE),
            _medians(row for row in rows if row.what == what and row.size < LARGE),
        )
        for what in dict.fromkeys(row.what for row in rows)
    ]


def _medians(rows: Iterable[TimedHere]) -> dict[str, float]:
    errors: dict[str, list[float]] = {}
    for row in rows:
        errors.setdefault(row.gpu, []).append(row.error)
    return {gpu: float(np.median(found)) for gpu, found in errors.items()}


@cache
def streaming() -> list[TimedHere]:
    """Each streaming kernel at its largest size."""
    last = {(row.gpu, row.what): row for row in streams()}
    return list(last.values())


def _largest(gpu: str, kernel: str) -> dict:
    """The measured row of a streaming kernel, or of a copy between GPU and host, at its largest size."""
    return {of.key: found for of, found in _of("streaming")}[gpu][kernel][-1]


def reached(gpu: str, kernel: str) -> float:
    """The share of the data sheet's memory bandwidth that a streaming kernel reaches at its largest size."""
    found = _largest(gpu, kernel)
    return found["moved_bytes"] / found["burst_s"] / catalog.gpu(gpu).hbm_bytes_per_s


def over_the_bus(gpu: str, way: str = "to_device_s") -> float:
    """Bytes per second of the largest copy from or to the host."""
    found = _largest(gpu, "host")
    return found["operand_bytes"] / found[way]


# -- work that goes on ---------------------------------------------------------------------------------------
class SteadyWork(NamedTuple):
    """Work repeated for some seconds: its FLOP/s (for a copy, bytes/s) at the beginning and at the end."""

    gpu: str
    work: str
    burst: float
    steady: float  # the median of the second half
    predicted: float  # the engine's rate for a long job
    sm_hz: float
    power_w: float

    @property
    def share(self) -> float:
        """The steady rate as a share of the rate in a burst."""
        return self.steady / self.burst

    @property
    def error(self) -> float:
        """The relative error of the engine's time."""
        return self.steady / self.predicted - 1.0 if self.predicted else 0.0


WORKS = {
    "bf16": "product, 8,192³, bf16",
    "fp8": "product, 8,192³, fp8",
    "bf16_zeros": "the bf16 product of zeros",
    "attention_cudnn_both": "attention by cuDNN, both passes",
    "attention_flash_both": "attention by FlashAttention-2, both passes",
    "block": "a block of a model, both passes",
    "copy": "copy in memory",
}
SIDE, TOKENS = 8192, 8192


def _expected(gpu: Gpu, work: str) -> float:
    """The engine's FLOP/s or bytes/s for a long job; 0.0 for work that it does not model."""
    if work == "bf16_zeros":
        return 0.0
    at = matmul.chip(gpu, "fp8" if work == "fp8" else "bf16")
    if work == "copy":
        return at.memory_bytes_per_s
    if work.startswith("attention"):
        kernel = at.attention if "cudnn" in work else at.flash_2
        forward_s = fused_s(1.0, TOKENS, 32.0, 32.0, 128.0, kernel)
        return _works(gpu, work)["flops"] / (forward_s * (1.0 + compute.BACKWARD_OF_FLASH))
    if work == "block":
        return _works(gpu, work)["flops"] / _block_s(at)
    return 2.0 * SIDE**3 / gemm_s(SIDE, SIDE, SIDE, at.product)


def _works(gpu: Gpu, work: str) -> dict:
    return next(found["works"][work] for of, found in _of("sustained") if of.key == gpu.key)


def _block_s(at: matmul.Chip) -> float:
    """The time of forward and backward of the measured block. Each norm is one kernel, so the bytes moved are
    those of ``library``; a second kernel adds each gradient to the sum of those before."""
    time = compute.layer(shape(BLOCK), TOKENS, TOKENS, 1.0, 1.0, 1.0, 1.0, 1.0, True, False, at, "library")
    return float(time.forward_s + time.backward_s)


@cache
def steady() -> list[SteadyWork]:
    """Every kind of work on every GPU."""
    return [
        _steady(gpu, name, found["works"][work], _expected(gpu, work))
        for gpu, found in _of("sustained")
        for work, name in WORKS.items()
    ]


def _steady(gpu: Gpu, name: str, found: dict, predicted: float) -> SteadyWork:
    amount = found.get("flops") or found["bytes"]
    late = found["rows"][len(found["rows"]) // 2 :]
    middle = {key: float(np.median([row[key] for row in late])) for key in ("call_s", "sm_hz", "power_w")}
    return SteadyWork(
        gpu.key,
        name,
        amount / found["burst_s"],
        amount / middle["call_s"],
        predicted,
        middle["sm_hz"],
        middle["power_w"],
    )


def works(gpu: str, work: str) -> SteadyWork:
    """One kind of work on one GPU, by its key in ``WORKS``."""
    return next(each for each in steady() if (each.gpu, each.work) == (gpu, WORKS[work]))


# -- the allocator -------------------------------------------------------------------------------------------
class Reserved(NamedTuple):
    """The most bytes allocated and reserved in twelve training steps with sequences of random lengths."""

    spread: float
    seed: int
    expandable: bool
    allocated_bytes: float
    reserved_bytes: float
    replayed_allocated_bytes: float
    replayed_reserved_bytes: float

    @property
    def error(self) -> float:
        """How far the replay's reserved bytes are above the measured ones, as a share of them."""
        return self.replayed_reserved_bytes / self.reserved_bytes - 1.0


@cache
def reserved(key: str = "h100-sxm") -> list[Reserved]:
    """PyTorch's allocator on a GPU against ours, replaying the recorded requests of the same steps."""
    of, gpu = measurements.on(key)["allocator_steps"], catalog.gpu(key)
    found = []
    for run in of["runs"]:
        steps = run["steps"]
        ours = allocator_replay.of_steps(
            len(steps),
            of["length"],
            run["spread"],
            run["seed"],
            gpu.hbm_bytes,
            float(run["expandable"]),
            len(steps),
        )
        found.append(
            Reserved(
                run["spread"],
                run["seed"],
                bool(run["expandable"]),
                max(step["allocated_bytes"] for step in steps),
                max(step["reserved_bytes"] for step in steps),
                ours["peak_allocated_bytes"],
                ours["peak_reserved_bytes"],
            )
        )
    return found
