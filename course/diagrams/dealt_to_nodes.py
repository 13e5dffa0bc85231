"""The same 32 ranks on four nodes, dealt out in blocks and one by one: where the first tensor group is."""

from __future__ import annotations

from course.drawing.picture import Picture

NODES, EACH, TENSOR = 4, 8, 8
HIGH, ROW, TITLE = 24.0, 30.0, 24.0
WAYS = (("In blocks: ranks 0 to 7 on the first node", False), ("One by one: rank 1 on the second node", True))


def ranks(node: int, cyclic: bool) -> list[int]:
    """The ranks on a node."""
    if cyclic:
        return [node + NODES * at for at in range(EACH)]
    return [node * EACH + at for at in range(EACH)]


def nodes_of_group(cyclic: bool) -> int:
    """On how many nodes the first tensor group is."""
    return sum(any(rank < TENSOR for rank in ranks(node, cyclic)) for node in range(NODES))


def draw(width: float) -> Picture:
    picture = Picture(
        f"{NODES * EACH} ranks on {NODES} nodes: the first tensor group on one of them, or on all.",
        "Two groups of four rows. A row is a node with its eight ranks; the ranks of the first tensor group "
        "are coloured.",
        width,
    )
    left = 58.0
    each, y = (width - left) / EACH, 0.0
    for words, cyclic in WAYS:
        picture.text(0, y + 9, words, bold=True)
        y += TITLE
        for node in range(NODES):
            picture.text(0, y + HIGH / 2, f"node {node}")
            for at, rank in enumerate(ranks(node, cyclic)):
                look = "plain" if rank >= TENSOR else "network" if cyclic else "link"
                picture.box(left + at * each, y, each - 3, HIGH, look, str(rank), rank=rank, node=node)
            y += ROW
        told = "; ".join(f"node {node}: {', '.join(map(str, ranks(node, cyclic)))}" for node in range(NODES))
        picture.tell(f"{words}: {told}")
        y += 10
    key = [("link", "a tensor group on NVLink"), ("network", "the same on network cards")]
    picture.key(y - 4, key)
    picture.tell("; ".join(words for _, words in key))
    return picture
