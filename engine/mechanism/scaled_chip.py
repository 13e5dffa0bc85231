"""A chip with more arithmetic or a wider memory than one that was measured: each of its rates grows with what
limits it."""

from __future__ import annotations

from dataclasses import fields

from engine.base.types import Real
from engine.calibration.attention import Decode, Latent, Prefill
from engine.calibration.grouped import GroupedRates
from engine.calibration.products import Gemm, Quantise
from engine.mechanism.matmul import Chip, ServingKernels

# which fields of a dataclass of rates grow with the arithmetic, and which with the memory's bandwidth
FASTER, WIDER = (
    {"flops_per_s"},
    {
        "memory_bytes_per_s",
        "permute_bytes_per_s",
        "token_bytes_per_s",
        "walk_bytes_per_s",
        "write_bytes_per_s",
    },
)


def _scaled(kind, rates, faster: Real, wider: Real):
    """The rates of one kind of kernel, multiplied by ``faster`` or ``wider``. The chip may be a symbol."""
    scaled = {field.name: getattr(rates, field.name) for field in fields(kind)}
    for names, times in ((FASTER, faster), (WIDER, wider)):
        scaled |= {name: _times(value, times) for name, value in scaled.items() if name in names}
    return kind(**scaled)


def _times(rate, times: Real):
    return tuple(each * times for each in rate) if isinstance(rate, tuple) else rate * times


def scaled_chip(at: Chip, faster: Real = 1.0, wider: Real = 1.0) -> Chip:
    """The chip with ``faster`` times the arithmetic and ``wider`` times the memory bandwidth."""
    return Chip(
        at.matmul_flops_per_s * faster,
        at.memory_bytes_per_s * wider,
        at.operand_bytes,
        at.wide_bytes,
        at.casts,
        at.launch_s,
        at.issue_s,
        _scaled(Gemm, at.product, faster, wider),
        _scaled(Gemm, at.wide, faster, wider),
        _scaled(Prefill, at.attention, faster, wider),
        _scaled(Prefill, at.narrow_attention, faster, wider),
        _scaled(Prefill, at.flash_2, faster, wider),
        _scaled(Decode, at.decode, faster, wider),
        _scaled(Decode, at.narrow_decode, faster, wider),
        _scaled(Latent, at.latent, faster, wider),
        _scaled(Latent, at.latent_prefill, faster, wider),
        _scaled(GroupedRates, at.experts, faster, wider),
        _scaled(Quantise, at.quantise, faster, wider),
        ServingKernels(
            _scaled(Gemm, at.served.product, faster, wider),
            _scaled(Gemm, at.served.wide, faster, wider),
            _scaled(GroupedRates, at.served.experts, faster, wider),
            _scaled(Prefill, at.served.attention, faster, wider),
        ),
    )
