"""The layers of a pipeline's GPUs: one run of layers each, or two runs that lie half a model apart."""

from __future__ import annotations

from course.drawing.picture import Picture

GPUS, LAYERS, CHUNKS = 4, 16, 2
HIGH, GAP = 24.0, 8.0


def runs(chunks: int) -> list[list[tuple[int, int]]]:
    """For each GPU the first and last layer of each of its virtual stages."""
    long = LAYERS // (GPUS * chunks)
    firsts = [[(chunk * GPUS + gpu) * long + 1 for chunk in range(chunks)] for gpu in range(GPUS)]
    return [[(first, first + long - 1) for first in mine] for mine in firsts]


def draw(width: float) -> Picture:
    picture = Picture(
        f"{LAYERS} layers on {GPUS} GPUs: one stage each, or {CHUNKS} virtual stages each.",
        "A column for each GPU; above one box of layers in each, below two, the second of which continues "
        "where the last GPU's first one ends.",
        width,
    )
    each = (width - (GPUS - 1) * GAP) / GPUS
    for gpu in range(GPUS):
        picture.text(gpu * (each + GAP) + each / 2, 9, f"GPU {gpu + 1}", anchor="middle", ink="ink-soft")
    y = 24.0
    for heading, chunks in (("one stage each", 1), (f"{CHUNKS} virtual stages each (VPP {CHUNKS})", CHUNKS)):
        picture.text(0, y + 8, heading, bold=True)
        y += 20
        for chunk in range(chunks):
            for gpu, mine in enumerate(runs(chunks)):
                first, last = mine[chunk]
                left, look = gpu * (each + GAP), "forward-2" if chunk else "forward"
                words = f"layers {first}–{last}" if picture.wide else f"{first}–{last}"
                picture.box(left, y, each, HIGH, look, words, first=first, last=last, gpu=gpu)
                if gpu:
                    picture.arrow((left - GAP, y + HIGH / 2), (left, y + HIGH / 2), ink="ink-soft")
            y += HIGH + (18 if chunk + 1 < chunks else 12)
            if chunk + 1 < chunks:  # from the last GPU's stage back to the first GPU's next one
                turn = y - 9
                picture.arrow(
                    (width - each / 2, y - 18),
                    (width - each / 2, turn),
                    (each / 2, turn),
                    (each / 2, y),
                    ink="ink-soft",
                )
        for gpu, mine in enumerate(runs(chunks)):
            picture.tell(
                f"{heading}: GPU {gpu + 1} holds "
                + " and ".join(f"layers {first}–{last}" for first, last in mine)
            )
    picture.tell(
        *(f"{first}–{last}" for chunks in (1, CHUNKS) for mine in runs(chunks) for first, last in mine)
    )
    return picture
