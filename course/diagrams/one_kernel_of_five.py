"""Five elementwise operations on one tensor as five kernels, and as the one that a compiler makes of them:
what each reads from HBM and writes to it."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.mechanism import matmul

OPERATIONS = ("add", "scale", "tanh", "multiply", "halve")
SHAPE, VALUE_BYTES = (4096, 8192), 2  # a bf16 tensor
GPU = "h100-sxm"
HIGH, MEMORY = 24.0, 22.0


def taken_s(kernels: int) -> float:
    """Seconds in which so many kernels each read and write the tensor, at the rate that kernels reach."""
    return float(
        matmul.stream_s(2 * kernels * SHAPE[0] * SHAPE[1] * VALUE_BYTES, matmul.chip(catalog.gpu(GPU)))
    )


def draw(width: float) -> Picture:
    count = len(OPERATIONS)
    rows, columns = (f"{side:,}" for side in SHAPE)
    picture = Picture(
        f"{count} operations on a tensor of {rows} × {columns}: {count} trips to HBM and back, or one.",
        "Twice a bar of HBM, and under it kernels with an arrow down for what they read and one up for what "
        "they write. First a kernel for each operation, then one for all.",
        width,
    )
    y = 0.0
    forms = (
        (f"eager: {count} kernels", OPERATIONS, taken_s(count)),
        ("compiled: one kernel", (", ".join(OPERATIONS),), taken_s(1)),
    )
    for heading, kernels, seconds in forms:
        took = f"{units.human(seconds, 'seconds')} of traffic"
        picture.text(0, y + 9, heading, bold=True)
        picture.text(width, y + 9, took, anchor="end")
        y += 22
        picture.box(0, y, width, MEMORY, "hbm", "HBM", took_s=seconds)
        step, below = width / len(kernels), y + MEMORY + 34
        for place, name in enumerate(kernels):
            x, wide = place * step, min(step, width * 0.62) if len(kernels) == 1 else step - 8
            shown = name if picture.wide or len(name) > 8 else name[:4]
            picture.box(
                x,
                below,
                wide,
                HIGH,
                "compute",
                shown if picture.wide or len(kernels) == 1 else "",
                kernel=name,
            )
            middle = x + wide / 2
            picture.arrow((middle - 10, y + MEMORY + 1), (middle - 10, below - 1), ink="hbm")
            picture.arrow((middle + 10, below - 1), (middle + 10, y + MEMORY + 1), ink="hbm")
        y = below + HIGH + 20
    picture.tell(
        *(
            f"{heading}: {', '.join(kernels)}; {units.human(s, 'seconds')} of traffic"
            for heading, kernels, s in forms
        )
    )
    picture.tell("each kernel reads the tensor from HBM and writes it back")
    return picture
