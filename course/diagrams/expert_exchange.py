"""Expert parallelism: tokens go to the rank of their expert, and their answers come back."""

from __future__ import annotations

import numpy as np

from course.drawing.picture import Picture
from engine.executed import executed_experts

RANKS, TOKENS = 4, 2  # tokens on each rank; one expert on each
SEED = 4
ROW, GROUP = 21.0, 24.0


def choices() -> list[int]:
    """The expert that each token chooses: the one with the highest of its random scores."""
    scores = np.random.default_rng(SEED).normal(size=(RANKS * TOKENS, RANKS))
    return [int(row[0]) for row in executed_experts.top_choices(scores, 1)]


def loads() -> list[int]:
    """How many tokens each expert gets."""
    return [choices().count(expert) for expert in range(RANKS)]


def draw(width: float) -> Picture:
    picture = Picture(
        f"{RANKS * TOKENS} tokens go to their experts and come back: two AllToAlls, and one expert with "
        f"{max(loads())} of them.",
        "Three columns: the tokens on their ranks, the expert of each rank beside them, and the answers on "
        "the tokens' ranks again. Lines lead from each token to its expert and back.",
        width,
    )
    token, expert = (70.0, 120.0) if picture.wide else (64.0, 76.0)
    gap = (width - 2 * token - expert) / 2
    top = 42.0
    middle, right = token + gap, token + gap + expert + gap
    for x, wide, words in ((0.0, token, "tokens"), (middle, expert, "experts"), (right, token, "answers")):
        picture.text(x + wide / 2, 9, words, anchor="middle", bold=True)
    for x in (token, middle + expert):
        picture.text(x + gap / 2, 9, "AllToAll", anchor="middle", ink="ink-soft")
    heights = [top + rank * (TOKENS * ROW + GROUP) for rank in range(RANKS)]
    for at, chosen in enumerate(choices()):
        rank = at // TOKENS
        y = heights[rank] + at % TOKENS * ROW + ROW / 2
        there = heights[chosen] + TOKENS * ROW / 2
        ink = "axis" if chosen == rank else "network"
        picture.arrow((token + 1, y), (middle - 2, there + (at - RANKS * TOKENS / 2) * 2), ink=ink)
        picture.arrow((middle + expert + 2, there + (at - RANKS * TOKENS / 2) * 2), (right - 1, y), ink=ink)
        for x, words in ((0.0, f"t{at + 1}"), (right, f"t{at + 1}")):
            picture.box(x, y - ROW / 2, token, ROW - 2, "compute-pale", words, token=at, expert=chosen)
    for rank, load in enumerate(loads()):
        tokens = f"{load} token" + ("" if load == 1 else "s")
        picture.text(0, heights[rank] - 10, f"rank {rank}", ink="ink-soft")
        picture.box(
            middle, heights[rank], expert, TOKENS * ROW - 2, "hbm", f"expert {rank}\n{tokens}", load=load
        )
    for rank in range(RANKS):
        mine = ", ".join(
            f"t{at + 1} to expert {choices()[at]}" for at in range(rank * TOKENS, (rank + 1) * TOKENS)
        )
        picture.tell(f"rank {rank}: tokens {mine}, by AllToAll; answers come back by AllToAll")
    picture.tell(
        "experts: "
        + ", ".join(
            f"expert {rank}, {load} token{'' if load == 1 else 's'}" for rank, load in enumerate(loads())
        )
    )
    return picture
