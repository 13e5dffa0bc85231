"""Rail wiring: the card of GPU i in every node goes to leaf i, and all leaves go to the spine."""

from __future__ import annotations

from course.drawing.picture import Picture

NODES, PER_NODE, MARKED = 2, 8, 3
SPINE, LEAVES, GPUS, LINK = 0.0, 66.0, 196.0, 226.0
HIGH, LEAF = 24.0, 26.0


def draw(width: float) -> Picture:
    picture = Picture(
        "Rails: one leaf switch for the GPUs of the same number in all nodes.",
        "On top the spine, below it eight leaf switches L0 to L7, at the bottom two nodes of eight GPUs "
        "numbered 0 to 7, joined by NVLink. A line leads from GPU i of each node to leaf Li and from each "
        "leaf to the spine. Those of rail 3 are drawn strong.",
        width,
    )
    apart = width / PER_NODE
    gap = 16.0
    room = (width - gap * (NODES - 1)) / NODES
    cell = room / PER_NODE

    def leaf_at(rail: int) -> float:
        return (rail + 0.5) * apart

    def gpu_at(node: int, rail: int) -> float:
        return node * (room + gap) + (rail + 0.5) * cell

    for rail in sorted(range(PER_NODE), key=lambda rail: rail == MARKED):
        strong = rail == MARKED
        picture.line((leaf_at(rail), SPINE + HIGH), (leaf_at(rail), LEAVES), ink="axis")
        for node in range(NODES):
            picture.line(
                (gpu_at(node, rail), GPUS),
                (leaf_at(rail), LEAVES + LEAF),
                ink="network" if strong else "axis",
                thick=3.0 if strong else 1.0,
            )
    picture.box(0, SPINE, width, HIGH, "plain", "spine", level="spine")
    for rail in range(PER_NODE):
        look = "network-pale" if rail == MARKED else "plain"
        picture.box(
            leaf_at(rail) - 0.42 * apart,
            LEAVES,
            0.84 * apart,
            LEAF,
            look,
            f"L{rail}",
            level="leaf",
            rail=rail,
        )
    for node in range(NODES):
        for rail in range(PER_NODE):
            look = "network-pale" if rail == MARKED else "plain"
            left = gpu_at(node, rail) - cell / 2
            picture.box(left, GPUS, cell, LEAF, look, str(rail), level="gpu", node=node, rail=rail)
        left = node * (room + gap)
        picture.box(left, LINK, room, HIGH, "link-pale", "NVLink", level="link", node=node)
        picture.text(left + room / 2, LINK + HIGH + 14, f"node {node}", anchor="middle", ink="ink-soft")
    picture.tell(
        *(f"leaf L{rail}: GPU {rail} of node 0 and of node 1" for rail in range(PER_NODE)),
        "inside each node all GPUs reach each other over NVLink; all leaves reach each other over the spine",
    )
    return picture
