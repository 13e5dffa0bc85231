"""The four ideas of PyTorch in one picture, as one call meets them: tensor, dispatcher, autograd, stream; and
how long the CPU and the GPU take for it, as timed on an H100."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine.base import units
from engine.one_gpu import own_timings

SIDE, GPU = 256, "H100"
STATIONS = (
    ("tensor", "x: sizes and strides over bytes, and a set of keys"),
    ("dispatcher", "runs the highest key first: Autocast casts, and calls again"),
    ("autograd", "makes a node of the backward graph, keeps x and w"),
    ("CUDA", "allocates the result, chooses a kernel, launches it"),
)
HIGH, GAP = 24.0, 14.0


def times_s() -> tuple[float, float]:
    """Seconds that the CPU took to issue a product of this side, and the GPU to run it, as measured."""
    [row] = [each for each in own_timings.launches("matmul") if (each.device, each.side) == (GPU, SIDE)]
    return row.issue_s, row.kernel_s


def draw(width: float) -> Picture:
    issue_s, run_s = times_s()
    told = f"{SIDE} × {SIDE} by {SIDE} × {SIDE}, timed on an {GPU}"
    call = "torch.matmul(x, w)"
    cpu = f"on the CPU: {units.human(issue_s, 'seconds')}"
    gpu = f"on the GPU: {units.human(run_s, 'seconds')}"
    picture = Picture(
        f"{call} on its way to the GPU: {len(STATIONS)} stations on the CPU, a queue, a kernel.",
        "Boxes one below the other, joined by arrows, each with what happens there. Beside them two bars to "
        "one scale: the time of the CPU and that of the GPU.",
        width,
    )
    box, y = 92.0, 0.0
    right = width - 128 if picture.wide else width
    picture.text(0, y + 9, call, bold=True)
    y += 24
    first = y
    for name, does in STATIONS:
        picture.box(0, y, box, HIGH, "plain", name, station=name)
        end = picture.paragraph(box + 12, y + (4 if picture.wide else -4), does, right - box - 12)
        below = max(y + HIGH, end) + GAP if not picture.wide else y + HIGH + GAP
        picture.arrow((box / 2, y + HIGH), (box / 2, below))
        y = below
    last = y - GAP
    picture.box(0, y, box, HIGH, "other-step", "stream", station="stream")
    picture.paragraph(
        box + 12, y + 4, "a queue: the CPU goes on, the kernel waits for its turn", right - box - 12
    )
    picture.arrow((box / 2, y + HIGH), (box / 2, y + HIGH + 2 * GAP))
    y += HIGH + 2 * GAP
    picture.box(0, y, box, HIGH, "compute", "kernel", station="kernel")
    picture.text(box + 12, y + HIGH / 2, told, ink="ink-soft")
    if picture.wide:
        x, scale = width - 104, (last - first) / issue_s
        picture.box(x, first, 14, issue_s * scale, "other-step", took_s=issue_s)
        picture.box(x, y, 14, max(run_s * scale, 1), "compute", took_s=run_s)
        for top, words in ((first + 11, cpu), (y + 3, gpu)):
            for line, half in enumerate(words.split(": ")):
                picture.text(x + 20, top + 17 * line, half + (":" if line == 0 else ""))
    else:
        picture.text(0, y + HIGH + 14, f"{cpu}; {gpu}")
    picture.tell(call, *(f"{name}: {does}" for name, does in STATIONS))
    picture.tell(
        "stream: a queue: the CPU goes on, the kernel waits for its turn", f"kernel: {told}", f"{cpu}; {gpu}"
    )
    return picture
