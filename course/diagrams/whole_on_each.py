"""Eight nodes have room for a model's training state several times over, and none of their GPUs has room for
it once."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.mechanism import memory

PARAMS, NODE, NODES = 70e9, "dgx-h100", 8
HIGH = 26.0


def state_bytes() -> float:
    """The training state of the opening case's model."""
    return float(memory.state_bytes(PARAMS))


def draw(width: float) -> Picture:
    cluster, state = catalog.cluster(NODE, nodes=NODES), state_bytes()
    gpus, hbm = cluster.gpus, cluster.hbm_bytes / cluster.gpus
    size, whole = units.human(state, "bytes"), units.human(cluster.hbm_bytes, "bytes")
    times = units.number(cluster.hbm_bytes / state, 2)
    picture = Picture(
        f"The training state of a 70B model fits {times} times into {gpus} GPUs, and not into one.",
        "Two rows to one scale, in which a cell is the HBM of one GPU: the state in the whole cluster, and "
        "the state on a single GPU.",
        width,
    )
    cell = width / gpus
    long = state / hbm * cell
    together = f"{gpus} GPUs together have {whole}: the state of a 70B model, {size}, fits {times} times"
    y = picture.paragraph(0, 0, together, width, "ink") + 5
    for gpu in range(gpus):
        picture.box(gpu * cell, y, cell, HIGH, "idle", gpu=gpu)
    picture.box(0, y, long, HIGH, "hbm", size if picture.wide else "", held=state)
    y += HIGH + 22
    alone = f"data parallelism asks each GPU for all of it, and each has {units.human(hbm, 'bytes')}"
    y = picture.paragraph(0, y, alone, width, "ink") + 5
    picture.box(0, y, long, HIGH, "past", asked=state)
    picture.box(0, y, cell, HIGH, "hbm", held=hbm)
    beyond = "does not fit"
    picture.text(long + 8, y + HIGH / 2, beyond, ink="over")
    picture.tell(f"{together}; the state alone: {size}", alone, beyond)
    return picture
