"""One multiprocessor of a GPU between the memories that feed it: what each level holds, and what it delivers.

Drawn once for lessons 16 to 19; ``lit`` names what a lesson speaks of, and the rest is pale.
"""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.executed.flash_attention import REGISTER_FILE_BYTES
from engine.mechanism import matmul
from engine.one_gpu import tiling

GPU, NEWER = "h100-sxm", "B200"
PARTS = 4  # of a multiprocessor, each with its own warps
TENSOR_MEMORY_BYTES = 262144.0  # of a multiprocessor (CUDA C++ Programming Guide, compute capability 10.0)
LIT = {  # what a lesson speaks of -> the parts of the picture that are drawn in full
    "all": ("hbm", "cache", "chip", "shared", "registers", "units"),
    "registers": ("hbm", "registers"),
    "shared": ("cache", "shared", "registers", "units"),
    "chip": ("hbm", "chip"),
}
HIGH, GAP = 30.0, 34.0


def draw(width: float, lit: str = "all") -> Picture:
    if lit not in LIT:
        raise ValueError(f"lit must be one of {', '.join(LIT)}, got {lit!r}")
    gpu = catalog.gpu(GPU)
    hbm = units.human(gpu.hbm_bytes, "bytes")
    rates = [
        units.human(rate, "bytes_per_s")
        for rate in (matmul.chip(gpu).memory_bytes_per_s, tiling.chip(GPU).l2_bytes_per_s)
    ]
    cache, shared, tensor = (
        units.human(held, "bytes_binary")
        for held in (gpu.l2_bytes, gpu.smem_bytes_per_sm, TENSOR_MEMORY_BYTES)
    )
    registers = units.human(REGISTER_FILE_BYTES / PARTS, "bytes_binary")
    picture = Picture(
        f"Where a value can be on an {gpu.name}: HBM, L2 cache, and one of its {gpu.sms} multiprocessors.",
        "From top to bottom: HBM, the cache that all multiprocessors share, a row of them, and one "
        "enlarged, with its shared memory, its registers and the units that compute.",
        width,
    )

    def look(part: str, full: str, pale: str) -> str:
        return full if part in LIT[lit] else pale

    wide = picture.wide
    picture.box(0, 0, width, HIGH, look("hbm", "hbm", "hbm-pale"), f"HBM, {hbm}", level="hbm")
    y = HIGH + GAP
    _feeds(picture, width, HIGH, y, f"kernels reach {rates[0]}")
    picture.box(0, y, width, HIGH, look("cache", "hbm", "hbm-pale"), f"L2 cache, {cache}", level="cache")
    _feeds(picture, width, y + HIGH, y + HIGH + GAP, f"it hands out about {rates[1]}")
    y += HIGH + GAP
    shown = 22 if wide else 11
    each = width / shown
    for place in range(shown):
        mine = place == shown // 2
        kind = "compute" if mine else look("chip", "compute-pale", "idle")
        picture.box(place * each, y, each - 3, 16, kind, level="chip", mine=mine)
    middle = (shown // 2 + 0.5) * each - 1.5
    top = y + 16 + 22
    picture.line((middle, y + 17), (0, top), ink="axis")
    picture.line((middle, y + 17), (width, top), ink="axis")
    inner, pad = width - 20, 10.0
    picture.text(pad, top + 14, f"one of {gpu.sms} multiprocessors", bold=True)
    y = top + 28
    words = f"shared memory, {shared}: all threads of a block see it"
    picture.box(
        pad, y, inner, HIGH, look("shared", "link", "link-pale"),
        words if wide else f"shared memory, {shared}", level="shared",
    )  # fmt: skip
    y += HIGH + 14
    step = inner / PARTS
    for part in range(PARTS):
        x, w = pad + part * step, step - (6 if part < PARTS - 1 else 0)
        held = f"registers,\n{registers}"
        picture.box(x, y, w, 44, look("registers", "forward", "forward-2"), held, level="registers")
        picture.box(
            x, y + 47, w, 44, look("units", "backward", "backward-2"),
            "tensor core" if wide else "tensor\ncore", level="units",
        )  # fmt: skip
        picture.box(
            x, y + 94, w, 44, look("units", "backward", "backward-2"),
            "fp32 units,\nexponentials" if wide else "fp32,\nexp", level="units",
        )  # fmt: skip
    y += 138 + 12
    newer = f"{NEWER}: tensor memory, {tensor}, for the accumulators"
    picture.box(
        pad,
        y,
        inner,
        HIGH,
        "elsewhere",
        newer if wide else f"{NEWER}: tensor memory, {tensor}",
        level="tensor",
    )
    bottom = y + HIGH + pad
    picture.line((0, top), (width, top), (width, bottom), (0, bottom), (0, top), ink="axis")
    picture.tell(
        f"HBM, {hbm}; kernels reach {rates[0]}",
        f"L2 cache, {cache}; it hands out about {rates[1]}",
        f"one of {gpu.sms} multiprocessors: {words}",
        f"four parts, each with registers, {registers}, a tensor core, fp32 units, exponentials",
        newer,
    )
    return picture


def _feeds(picture: Picture, width: float, above: float, below: float, words: str) -> None:
    """An arrow down from one level to the next, with the rate beside it."""
    x = width / 4
    picture.arrow((x, above + 2), (x, below - 2), ink="hbm")
    picture.text(x + 12, (above + below) / 2, words, ink="ink-soft")
