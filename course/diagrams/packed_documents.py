"""Three documents packed into one sequence: what their mask leaves to compute, and how it falls on four ranks
when the sequence is dealt out in zig-zag, and when each document is."""

from __future__ import annotations

import numpy as np

from course.drawing.picture import Picture
from engine.base import units
from engine.mechanism import context_parallel

RANKS, BLOCKS, TOKENS = 4, 16, 131072
DOCUMENTS = (9, 4, 3)  # blocks of each
CELL = 14.0
WAYS = (("zig-zag over the sequence", False), ("zig-zag in each document", True))


def starts() -> np.ndarray:
    """Where the document of each token begins."""
    block = TOKENS // BLOCKS
    edges = np.cumsum([0, *(blocks * block for blocks in DOCUMENTS)])
    return np.repeat(edges[:-1], np.diff(edges))


def held(rank: int, each_document: bool) -> np.ndarray:
    """The places of a rank's tokens in the sequence."""
    block = TOKENS // BLOCKS
    parts = [blocks * block for blocks in DOCUMENTS] if each_document else [TOKENS]
    found, first = [], 0
    for tokens in parts:
        mine = tokens // RANKS
        places = context_parallel.position(
            rank, np.arange(mine, dtype=float), RANKS, mine, context_parallel.ZIGZAG
        )
        found.append(first + np.asarray(places).astype(int))
        first += tokens
    return np.concatenate(found)


def shares(each_document: bool) -> list[float]:
    """Each rank's share of the pairs that the mask lets through."""
    keys = np.arange(TOKENS) - starts() + 1  # what a token may look at
    pairs = [float(keys[held(rank, each_document)].sum()) for rank in range(RANKS)]
    return [each / sum(pairs) for each in pairs]


def seen_share() -> float:
    """The pairs that the documents' mask lets through, over those of a causal mask alone."""
    return float((np.arange(TOKENS) - starts() + 1).sum() / (TOKENS * (TOKENS + 1) / 2))


def draw(width: float) -> Picture:
    part = units.human(seen_share(), "percent", 2)
    picture = Picture(
        f"Three documents in one sequence: their mask leaves {part} of the causal pairs, unevenly.",
        "A triangle: blocks of the sequence as queries from top to bottom, as keys from left to right. Only "
        "the small triangle of each document is computed. Beside it bars: the share of each rank.",
        width,
    )
    picture.text(0, 9, "Three documents, one sequence", bold=True)
    top = 24.0
    document = np.repeat(np.arange(len(DOCUMENTS)), DOCUMENTS)
    for query in range(BLOCKS):
        for keys in range(query + 1):
            same = document[query] == document[keys]
            look = "idle" if not same else "compute-pale" if keys == query else "forward"
            picture.box(keys * CELL, top + query * CELL, CELL, CELL, look, query=query, keys=keys)
    key_y = picture.key(
        top + BLOCKS * CELL + 8, [("forward", "computed"), ("compute-pale", "half of it"), ("idle", "masked")]
    )
    x, y = (BLOCKS * CELL + 60, 0.0) if picture.wide else (0.0, key_y + 8)
    room = width - x - 52 - 46
    for words, each_document in WAYS:
        picture.text(x, y + 9, words[0].upper() + words[1:], bold=True)
        y += 22
        found = shares(each_document)
        for rank, share in enumerate(found):
            picture.text(x, y + 10, f"rank {rank}")
            long = share / max(max(shares(way)) for _, way in WAYS) * room
            picture.box(x + 52, y, long, 20, "forward", rank=rank, each_document=each_document)
            picture.text(x + 52 + long + 6, y + 10, units.human(share, "percent", 2))
            y += 25
        y += 14
        told = ", ".join(f"rank {rank} {units.human(s, 'percent', 2)}" for rank, s in enumerate(found))
        picture.tell(f"{words[0].upper() + words[1:]}: {told}")
    picture.tell("Three documents, one sequence", "computed; half of it, on the diagonal; masked")
    return picture
