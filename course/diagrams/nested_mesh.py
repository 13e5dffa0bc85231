"""Three axes on 64 GPUs: tensor ranks within a node, replicas of a stage side by side, stages one below the
other."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine.mechanism import mesh

GPUS, TENSOR, STAGES = 64, 8, 4
GAP, ROW, HEAD_ROW = 10.0, 44.0, 24.0


def ranks(stage: int, replica: int) -> list[int]:
    """The ranks of a node: those with its coordinates on the pipeline and the data axis, in Megatron-LM's
    order."""
    size = mesh.sizes(GPUS, tp=TENSOR, pp=STAGES)
    stride = mesh.strides(size)
    first = int(stage * stride.pp + replica * stride.dp)
    return [first + int(stride.tp) * at for at in range(TENSOR)]


def replicas() -> int:
    """The size of the data axis: what the other axes leave of the GPUs."""
    return int(mesh.sizes(GPUS, tp=TENSOR, pp=STAGES).dp)


def draw(width: float) -> Picture:
    picture = Picture(
        f"{GPUS} GPUs as {TENSOR} tensor ranks × {STAGES} stages × {replicas()} replicas.",
        "A column for each replica, a row for each pipeline stage; each box is a node with its eight tensor "
        "ranks. Activations go down a column, gradients are summed along a row.",
        width,
    )
    left = 60.0
    column = (width - left - (replicas() - 1) * 3 * GAP) / replicas()
    for replica in range(replicas()):
        x = left + replica * (column + 3 * GAP)
        picture.text(x + column / 2, 9, f"replica {replica}", anchor="middle", bold=True)
        for stage in range(STAGES):
            y = HEAD_ROW + stage * (ROW + 2 * GAP)
            _node(picture, x, y, column, stage, replica)
            if stage < STAGES - 1:
                picture.arrow(
                    (x + column / 2, y + ROW + 1), (x + column / 2, y + ROW + 2 * GAP - 1), ink="network"
                )
            if replica:
                middle = y + ROW / 2
                picture.line((x - 3 * GAP + 2, middle), (x - 2, middle), ink="network", thick=3)
    for stage in range(STAGES):
        picture.text(0, HEAD_ROW + stage * (ROW + 2 * GAP) + ROW / 2, f"stage {stage + 1}", bold=True)
    bottom = HEAD_ROW + STAGES * (ROW + 2 * GAP)
    for look, words in _key():
        picture.box(0, bottom, 14, 12, look)
        bottom = picture.paragraph(20, bottom - 3, words, width - 20) + 3
    picture.tell(
        *(
            f"replica {replica}: "
            + ", ".join(f"stage {stage + 1} is a node, {_called(stage, replica)}" for stage in range(STAGES))
            for replica in range(replicas())
        ),
        *(words for _, words in _key()),
    )
    return picture


def _key() -> list[tuple[str, str]]:
    return [
        ("link", "tensor ranks of a node: collectives in every layer, over NVLink"),
        ("network", "down: activations to the next stage; across: one gradient sum a step, over the network"),
    ]


def _called(stage: int, replica: int) -> str:
    mine = ranks(stage, replica)
    return f"ranks {mine[0]} to {mine[-1]}"


def _node(picture: Picture, x: float, y: float, column: float, stage: int, replica: int) -> None:
    """A node and its ranks."""
    picture.box(x, y, column, ROW, "plain", stage=stage, replica=replica, ranks=ranks(stage, replica))
    picture.text(x + column / 2, y + 12, _called(stage, replica), anchor="middle", on="plain")
    wide = (column - 2 * 6) / TENSOR
    for at in range(TENSOR):
        picture.box(x + 6 + at * wide, y + 23, wide - 2, 15, "link", rank=ranks(stage, replica)[at])
