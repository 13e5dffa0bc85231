"""The hops of an AllReduce that wait for one another: by a ring and by a tree, for two numbers of ranks."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.mechanism import collectives, start_ups

CARD = catalog.link("ib-ndr")
RANKS = (8, 64)
HIGH, ROW = 20.0, 46.0


def hops(algorithm: str, ranks: int) -> int:
    """How many messages wait for one another."""
    cost_s = {"ring": collectives.ring_all_reduce_s, "tree": collectives.tree_all_reduce_s}[algorithm]
    return round(float(cost_s(0.0, ranks, 1.0, 1.0)))


def said(algorithm: str, ranks: int) -> str:
    """The label of a row: the algorithm, its hops and their time."""
    count = hops(algorithm, ranks)
    took = units.human(count * start_ups.hop_s(CARD), "seconds")
    return f"{ranks} ranks, {algorithm}: {count} hops, {took}"


def draw(width: float) -> Picture:
    picture = Picture(
        "A ring's hops grow with the ranks, a tree's with their logarithm.",
        "Four rows of small boxes, a box for each hop that must wait for the one before it, all of the same "
        "width: the ring's rows are far longer than the tree's.",
        width,
    )
    most = max(hops("ring", ranks) for ranks in RANKS)
    step = width / most
    y = 0.0
    for ranks in RANKS:
        for algorithm in ("ring", "tree"):
            picture.text(0, y + 9, said(algorithm, ranks), bold=algorithm == "ring")
            for hop in range(hops(algorithm, ranks)):
                picture.box(
                    hop * step, y + 20, step, HIGH, "network-pale", hop=hop, ranks=ranks, algorithm=algorithm
                )
            y += ROW
        y += 10
    picture.tell(*(said(algorithm, ranks) for ranks in RANKS for algorithm in ("ring", "tree")))
    return picture
