"""One stage of eight GPUs, counted twice: as tensor and data ranks by attention, as expert ranks by the
experts."""

from __future__ import annotations

from course.drawing.picture import Picture

GPUS, TENSOR, EXPERTS = 8, 4, 16
HIGH, TITLE, BETWEEN = 40.0, 36.0, 16.0


def held(folded: bool) -> list[str]:
    """What each GPU holds of the experts: all of a few, or a part of many."""
    if folded:
        each = EXPERTS // GPUS
        return [f"E{gpu * each}\nE{gpu * each + 1}" for gpu in range(GPUS)]
    each = EXPERTS // (GPUS // TENSOR)
    return [f"¼ of E\n{gpu // TENSOR * each}–{gpu // TENSOR * each + each - 1}" for gpu in range(GPUS)]


def draw(width: float) -> Picture:
    picture = Picture(
        f"Eight GPUs of a stage: {TENSOR} tensor ranks for attention, two ways to hold {EXPERTS} experts.",
        "Three rows of eight boxes, one for each GPU: attention, the experts on the same mesh, and the "
        "experts on a mesh of their own.",
        width,
    )
    heads = ["¼ of\nheads" for _ in range(GPUS)]
    rows = (
        (f"Attention: {TENSOR} tensor ranks, 2 data ranks", "compute-pale", heads, TENSOR),
        (
            "Experts on the same mesh: 2 expert ranks, each expert cut in four",
            "hbm-pale",
            held(False),
            TENSOR,
        ),
        ("Experts folded: 8 expert ranks, each expert whole", "hbm", held(True), 1),
    )
    y = 0.0
    each = width / GPUS
    for words, look, labels, together in rows:
        y = picture.paragraph(0, y, words, width, ink="ink") + 4
        for gpu, label in enumerate(labels):
            gap = 5.0 if (gpu + 1) % together == 0 else 1.0
            picture.box(gpu * each, y, each - gap, HIGH, look, label, gpu=gpu, row=words)
        picture.tell(f"{words}: " + "; ".join(label.replace("\n", " ") for label in labels))
        y += HIGH + BETWEEN
    return picture
