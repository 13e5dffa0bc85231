"""The four numbers to memorise on one ladder: arithmetic, memory, and the wires inside and between nodes.
Equal steps are equal factors, so the way between two rungs is how much is lost from one to the next."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units

DECADES = (10, 16)  # powers of ten, at both ends of the ladder
ROW, TOP, SIDE = 52.0, 12.0, 14.0
SCALE = "FLOPs or bytes a second"


class Rung(NamedTuple):
    """A rate of one GPU, how it is named and written, and how the next rung compares with it."""

    look: str
    name: str
    rate: float
    written: str
    below: str


def rungs() -> list[Rung]:
    """The rates of an H100 in its node, from the fastest to the slowest."""
    gpu, nvlink, card = catalog.gpu("h100-sxm"), catalog.link("nvlink4"), catalog.link("ib-ndr")
    rates = [gpu.bf16_flops_per_s, gpu.hbm_bytes_per_s, nvlink.bytes_per_s, card.bytes_per_s]
    factors = [units.number(above / below) for above, below in itertools.pairwise(rates)]
    return [
        Rung(
            "compute",
            "compute",
            rates[0],
            units.in_unit(rates[0], "TFLOP/s"),
            f"{factors[0]} FLOP for each byte",
        ),
        Rung("hbm", "HBM", rates[1], units.in_unit(rates[1], "TB/s"), f"{factors[1]} times less"),
        Rung(
            "link", "NVLink, one way", rates[2], units.in_unit(rates[2], "GB/s"), f"{factors[2]} times less"
        ),
        Rung("network", "InfiniBand, one way", rates[3], units.in_unit(rates[3], "GB/s"), ""),
    ]


def place(rate: float, width: float) -> float:
    """Where a rate ends on the ladder."""
    low, high = DECADES
    return float((np.log10(rate) - low) / (high - low)) * width


def draw(width: float) -> Picture:
    found = rungs()
    picture = Picture(
        "Four rates of an H100 on one scale: compute, HBM, NVLink and InfiniBand.",
        "Four squares on a logarithmic scale, one below the other and each further left; between two of them "
        "is how much is lost from one to the next.",
        width,
    )
    bottom = TOP + ROW * (len(found) - 1) + 24
    powers = range(DECADES[0] + 1, DECADES[1])
    for power in powers:
        x = place(10.0**power, width)
        picture.line((x, TOP - 12), (x, bottom), ink="ink-faint", dashed=True, thick=0.75)
    for row, rung in enumerate(found):
        y, x = TOP + row * ROW, place(rung.rate, width)
        picture.box(x - SIDE / 2, y - SIDE / 2, SIDE, SIDE, rung.look, rate=rung.rate)
        anchor, away = ("end", -SIDE) if row == 0 else ("start", SIDE)
        picture.text(x + away, y, f"{rung.name} {rung.written}", anchor=anchor, bold=True)
        if rung.below:
            after, half = place(found[row + 1].rate, width), y + ROW / 2
            picture.arrow((x, y + SIDE / 2), (x, half), (after, half), (after, y + ROW - SIDE / 2), thick=1)
            # beside the way down, where no line is: on its left under the first label, else on its right
            beside, anchor = (after - 8, "end") if row == 0 else (x + 8, "start")
            picture.text(beside, half, rung.below, anchor=anchor, ink="ink-soft")
    ticks = [units.human(10.0**power, "bytes_per_s").removesuffix("B/s").strip() for power in powers]
    for power, tick in zip(powers, ticks):
        picture.text(place(10.0**power, width), bottom + 10, tick, anchor="middle", ink="ink-faint")
    picture.text(width / 2, bottom + 28, SCALE, anchor="middle", ink="ink-faint")
    picture.tell(
        *(f"{rung.name} {rung.written}" + (f"; then {rung.below}" if rung.below else "") for rung in found),
        f"{SCALE}: {', '.join(ticks)}",
    )
    return picture
