"""The puzzle of lesson 01: all GPUs together have room for a model's training state several times over, and
each of their processes runs out of memory. The answer has a picture of its own, ``whole_on_each``."""

from __future__ import annotations

from course.diagrams.whole_on_each import HIGH, NODE, NODES, state_bytes
from course.drawing.picture import Picture
from engine import catalog
from engine.base import units


def draw(width: float) -> Picture:
    cluster, state = catalog.cluster(NODE, nodes=NODES), state_bytes()
    gpus, hbm = cluster.gpus, cluster.hbm_bytes / cluster.gpus
    size, whole = units.human(state, "bytes"), units.human(cluster.hbm_bytes, "bytes")
    picture = Picture(
        f"The training state of a 70B model beside the memory of {gpus} GPUs.",
        "Two rows to one scale: cells, each the memory of a GPU, and below them the state as one bar.",
        width,
    )
    cell = width / gpus
    has = f"{gpus} GPUs of {units.human(hbm, 'bytes')} have {whole} together"
    y = picture.paragraph(0, 0, has, width, "ink") + 5
    for gpu in range(gpus):
        picture.box(gpu * cell, y, cell, HIGH, "idle", gpu=gpu)
    y += HIGH + 22
    asks = f"training the model keeps {size}"
    y = picture.paragraph(0, y, asks, width, "ink") + 5
    picture.box(0, y, state / hbm * cell, HIGH, "hbm", held=state)
    picture.tell(has, asks)
    return picture
