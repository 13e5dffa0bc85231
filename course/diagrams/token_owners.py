"""Context parallelism under a causal mask: who holds which tokens, and who has how much to compute."""

from __future__ import annotations

import numpy as np

from course.drawing.picture import Picture
from engine.base import units
from engine.mechanism import context_parallel

RANKS, SEQUENCE = 4, 131072
BLOCKS = 2 * RANKS
ORDERS = ((context_parallel.CONTIGUOUS, "in order"), (context_parallel.ZIGZAG, "zig-zag"))
CELL = 19.0


def owners(order: int) -> list[int]:
    """The rank of each of the sequence's blocks."""
    mine = SEQUENCE // RANKS
    found = [0] * BLOCKS
    for rank in range(RANKS):
        for token in (0, mine // 2):
            place = int(context_parallel.position(rank, token, RANKS, mine, order))
            found[place * BLOCKS // SEQUENCE] = rank
    return found


def shares(order: int) -> list[float]:
    """Each rank's share of all query-key pairs that the mask allows."""
    mine = SEQUENCE / RANKS
    pairs = [
        sum(float(context_parallel.block_pairs(rank, step, RANKS, mine, order)) for step in range(RANKS))
        for rank in range(RANKS)
    ]
    return [each / float(np.sum(pairs)) for each in pairs]


def draw(width: float) -> Picture:
    picture = Picture(
        "Blocks dealt out in order leave the first rank idle; dealt out in zig-zag they give each the same "
        "work.",
        f"Two triangles: the {BLOCKS} blocks of a sequence as queries from top to bottom, as keys from left "
        f"to right. A row belongs to one of {RANKS} ranks. Filled is what the causal mask lets through.",
        width,
    )
    x, y = 0.0, 0.0
    for order, words in ORDERS:
        _triangle(picture, x, y, order, words)
        x, y = (width / 2 + 12, 0.0) if picture.wide else (0.0, picture.height + 16)
    bottom = picture.height + 8
    picture.key(bottom, [("forward", "computed"), ("compute-pale", "half of it"), ("idle", "masked")])
    picture.tell("computed; half of it, on the diagonal; masked")
    return picture


def _triangle(picture: Picture, x: float, y: float, order: int, words: str) -> None:
    picture.text(x, y + 9, f"Blocks {words}", bold=True)
    left, top = x + 50, y + 24
    for query, rank in enumerate(owners(order)):
        at = top + query * CELL
        picture.text(x, at + CELL / 2, f"rank {rank}", ink="ink-soft")
        for keys in range(BLOCKS):
            look = "idle" if keys > query else "compute-pale" if keys == query else "forward"
            picture.box(
                left + keys * CELL, at, CELL, CELL, look, rank=rank, query=query, keys=keys, order=order
            )
    right = left + BLOCKS * CELL + 12
    picture.text(right, y + 9 + 15, "work", ink="ink-soft")
    lines = [f"{rank}: {units.human(share, 'percent', 2)}" for rank, share in enumerate(shares(order))]
    for rank, line in enumerate(lines):
        picture.text(right, top + 20 + rank * 20, line)
    held = ", ".join(f"block {at + 1} to rank {rank}" for at, rank in enumerate(owners(order)))
    picture.tell(f"Blocks {words}: {held}; work of each rank, {', '.join(f'rank {line}' for line in lines)}")
