"""The same eight ranks along a node and across the nodes: the groups that talk are chosen by how the ranks
are numbered. It opens lesson 03 as a puzzle, so it names no wire and shows none by its hue."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.mechanism import interconnect

NODES = PER_NODE = 8
CALLS, BUFFER_BYTES = 2560, 2.0 * 8192**2
TITLES = {8: "numbered along the nodes", 1: "numbered across the nodes"}
CELL, GAP = 21.0, 5.0


def group_s(per_node: int) -> float:
    """Seconds of a step's AllReduces over eight GPUs, with this many of them in a node."""
    net = interconnect.wires(catalog.gpu("h100-sxm"))
    return CALLS * float(interconnect.all_reduce_s(BUFFER_BYTES, 8.0, float(per_node), net))


def draw(width: float) -> Picture:
    picture = Picture(
        "A group of eight GPUs inside one node, and the same group with a GPU in each of eight nodes.",
        "Twice eight rows of eight cells: a row is a node, a cell a GPU. One group of eight is filled: first "
        "a row, then a column.",
        width,
    )
    left, top, half = 54.0 if picture.wide else 0.0, 24.0, width / 2
    step = CELL if picture.wide else (half - 12 - left) / PER_NODE
    for place, (per_node, title) in enumerate(TITLES.items()):
        x = left * (1 - place) + place * (half + left / 2)
        picture.text(x, 9, title if picture.wide else title.removeprefix("numbered "), bold=True)
        for node in range(NODES):
            y = top + node * (CELL + GAP)
            if picture.wide and not place:
                picture.text(0, y + CELL / 2, f"node {node + 1}", ink="ink-soft")
            for gpu in range(PER_NODE):
                member = node == 0 if per_node == PER_NODE else gpu == 0
                picture.box(
                    x + gpu * step,
                    y,
                    step,
                    CELL,
                    "compute" if member else "idle",
                    group=per_node,
                    member=member,
                )
        below = top + NODES * (CELL + GAP) + 12
        picture.text(x, below, f"its AllReduces: {units.human(group_s(per_node), 'seconds')}", bold=True)
        picture.text(x, below + 17, "a step", ink="ink-soft")
    picture.tell(
        *(
            f"{title}: its AllReduces take {units.human(group_s(per_node), 'seconds')} a step"
            for per_node, title in TITLES.items()
        ),
        ", ".join(f"node {node + 1}" for node in range(NODES)),
    )
    return picture
