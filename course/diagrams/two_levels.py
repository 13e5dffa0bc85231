"""An AllReduce on two levels, executed: what each GPU of two nodes holds before, between and after its three
parts."""

from __future__ import annotations

from typing import NamedTuple

from course.drawing.picture import Picture
from engine.executed import ranks, ranks_operations

NODES, PER_NODE = 2, 4
GPUS = NODES * PER_NODE
CELLS = GPUS  # of a buffer: a piece for each GPU of a node, and in it a part for each node
ROW, WIDTH, BETWEEN_NODES = 17.0, 20.0, 12.0
LOOKS = {1: "hbm-pale", PER_NODE: "link", GPUS: "network"}  # how many GPUs' numbers a sum contains


class State(NamedTuple):
    """A moment between two parts: its name, and the name, colour and wire of the part that follows."""

    after: int  # steps of the run
    name: str
    part: str = ""
    wire: str = ""
    ink: str = "link"


STATES = (
    State(0, "before", "ReduceScatter", "over NVLink"),
    State(PER_NODE - 1, "its node's sum", "AllReduce", "over the cards", "network"),
    State(PER_NODE - 1 + 2 * (NODES - 1), "the sum of all", "AllGather", "over NVLink"),
    State(2 * (PER_NODE - 1) + 2 * (NODES - 1), "after"),
)


def summed(state: State, gpu: int, piece: int) -> int:
    """How many GPUs' numbers a GPU holds in a piece: its own, its node's or all; 0 where what it holds is of
    no further use."""
    run = ranks_operations.all_reduce(ranks.example(GPUS, CELLS), "two_level", gpus_per_node=PER_NODE)
    width = CELLS // PER_NODE
    held = run.contributions[state.after, gpu, piece * width : (piece + 1) * width]
    fewest = int(held.min())
    return fewest if fewest in LOOKS and (state.after == 0 or fewest > 1) else 0


def draw(width: float) -> Picture:
    picture = Picture(
        "An AllReduce on two levels: a node adds up before anything leaves it.",
        "Four tables, a row for each of four GPUs in node 0 and node 1, a column for each quarter of the "
        "buffer, and between them three arrows: ReduceScatter over NVLink, AllReduce over the cards, "
        "AllGather over NVLink.",
        width,
    )
    left, panel = 52.0, PER_NODE * WIDTH
    gap = (width - left - len(STATES) * panel) / (len(STATES) - 1) if picture.wide else 0.0
    high = 22 + GPUS * ROW + (NODES - 1) * BETWEEN_NODES
    for at, state in enumerate(STATES):
        x = left + at * (panel + gap) if picture.wide else left
        y = 0.0 if picture.wide else at * (high + 44)
        picture.text(x, y + 9, state.name, bold=True)
        for gpu in range(GPUS):
            node, local = divmod(gpu, PER_NODE)
            row = y + 22 + gpu * ROW + node * BETWEEN_NODES
            if local == 0 and not (picture.wide and at):
                picture.text(0, row + PER_NODE * ROW / 2, f"node {node}", ink="ink-soft")
            for piece in range(PER_NODE):
                of = summed(state, gpu, piece)
                look = LOOKS.get(of, "elsewhere")
                picture.box(x + piece * WIDTH, row, WIDTH, ROW, look, state=at, gpu=gpu, piece=piece, of=of)
        if state.part:
            _part(picture, state, x + panel, y, gap, high)
        of = max(summed(state, 0, piece) for piece in range(PER_NODE))
        quarters = sum(summed(state, 0, piece) == of for piece in range(PER_NODE))
        picture.tell(
            f"{state.name}: each GPU holds {quarters} of {PER_NODE} quarters, with the numbers of {of} GPUs"
        )
    return picture


def _part(picture: Picture, state: State, x: float, y: float, gap: float, high: float) -> None:
    """The arrow to the next table, with what happens and over which wire."""
    if picture.wide:
        middle = y + 22 + (high - 22) / 2
        picture.text(x + gap / 2, middle - 14, state.part, anchor="middle")
        picture.arrow((x + 8, middle), (x + gap - 8, middle), ink=state.ink)
        picture.text(x + gap / 2, middle + 15, state.wire, anchor="middle", ink="ink-soft")
    else:
        middle = x - PER_NODE * WIDTH / 2
        picture.arrow((middle, y + high + 4), (middle, y + high + 36), ink=state.ink)
        picture.text(middle + 14, y + high + 20, f"{state.part} {state.wire}")
