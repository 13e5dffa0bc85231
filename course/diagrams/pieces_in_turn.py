"""Asynchronous tensor parallelism: the forward pass of an MLP on one of eight ranks, with a gather and a sum
that are waited for, and cut into eight pieces that travel while others are multiplied."""

from __future__ import annotations

from typing import NamedTuple

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.mechanism import interconnect, matmul

MODEL, GPU, TOKENS, RANKS = "llama3-70b", "h100-sxm", 8192, 8
LANE, BETWEEN, TITLE = 26.0, 5.0, 20.0
LOOKS = {"gather": "link", "first": "forward", "last": "forward-2", "scatter": "link-pale"}
KEY = [
    ("link", "AllGather of tokens"),
    ("forward", "product with A"),
    ("forward-2", "product with B"),
    ("link-pale", "ReduceScatter of sums"),
]


class Task(NamedTuple):
    """A piece of work: its kind, its number (0 is the whole), and when it runs."""

    kind: str
    piece: int
    start_s: float
    end_s: float


class Times(NamedTuple):
    """Seconds of the four parts when nothing is cut."""

    gather_s: float
    first_s: float
    last_s: float
    scatter_s: float


def times() -> Times:
    """What the parts take: a gated MLP of the model, its tokens shared by the ranks before and after."""
    model, gpu = catalog.model(MODEL), catalog.gpu(GPU)
    sent_s = float(
        interconnect.all_gather_s(TOKENS * model.hidden * 2, RANKS, RANKS, interconnect.wires(gpu))
    )
    product_s = 2 * TOKENS * model.hidden * model.ffn / RANKS / float(matmul.product_flops_per_s(gpu))
    return Times(sent_s, 2 * product_s, product_s, sent_s)


def waited_for(of: Times) -> list[Task]:
    """One after the other."""
    tasks, at = [], 0.0
    for kind, long in zip(LOOKS, of, strict=True):
        tasks.append(Task(kind, 0, at, at + long))
        at += long
    return tasks


def in_pieces(of: Times) -> list[Task]:
    """A rank begins with the tokens that it has. The others' arrive one piece after the other, and each
    piece of sums leaves as soon as it is there; the rank's own, the last, has nowhere to go."""
    tasks, arrived, done = [], 0.0, 0.0
    for piece in range(RANKS):
        if piece:
            tasks.append(Task("gather", piece + 1, arrived, arrived + of.gather_s / (RANKS - 1)))
            arrived = tasks[-1].end_s
        start = max(arrived, done)
        done = start + of.first_s / RANKS
        tasks.append(Task("first", piece + 1, start, done))
    left = done
    for piece in range(RANKS):
        tasks.append(Task("last", piece + 1, done, done + of.last_s / RANKS))
        done = tasks[-1].end_s
        if piece < RANKS - 1:
            left = max(left, done) + of.scatter_s / (RANKS - 1)
            tasks.append(Task("scatter", piece + 1, left - of.scatter_s / (RANKS - 1), left))
    return tasks


def end_s(tasks: list[Task]) -> float:
    """When the last of them is done."""
    return max(task.end_s for task in tasks)


def draw(width: float) -> Picture:
    cases = (("In one piece", waited_for(times())), ("In eight pieces", in_pieces(times())))
    picture = Picture(
        "An MLP on one of eight ranks: communication that is waited for, and communication in pieces.",
        "Two pairs of lanes on one time axis. The upper lane of a pair is what the GPU computes, the lower "
        "one what the wire carries.",
        width,
    )
    scale, y = width / max(end_s(tasks) for _, tasks in cases), 0.0
    for name, tasks in cases:
        heading = f"{name}: {units.human(end_s(tasks), 'seconds')}"
        picture.text(0, y + 9, heading, bold=True)
        y += TITLE
        picture.box(0, y, end_s(tasks) * scale, LANE, "idle", case=name)
        for task in tasks:
            low = task.kind in ("gather", "scatter")
            long = (task.end_s - task.start_s) * scale
            number = str(task.piece) if task.piece and long > 14 and picture.wide else ""
            picture.box(
                task.start_s * scale,
                y + (LANE + BETWEEN if low else 0),
                long,
                LANE,
                LOOKS[task.kind],
                number,
                case=name,
                kind=task.kind,
                piece=task.piece,
            )
        picture.tell(heading)
        y += 2 * LANE + BETWEEN + TITLE
    picture.tell(
        f"pieces {', '.join(str(piece + 1) for piece in range(RANKS))}: the first is computed while the "
        "second arrives, and so on; white in the upper lane is waiting"
    )
    picture.key(y - 6, KEY)
    picture.tell("; ".join(words for _, words in KEY))
    return picture
