"""Eight requests on a server with four seats, step by step: in batches that wait for their longest answer,
and with seats that are refilled."""

from __future__ import annotations

from typing import NamedTuple

from course.drawing.picture import Picture
from engine.serving import events, modes

SEATS, LENGTHS = 4, (9, 3, 5, 2, 4, 7, 3, 5)  # steps that each request takes: one reads its prompt
LETTERS = "ABCDEFGH"
HIGH = 20.0


class Stay(NamedTuple):
    """A request's stay in a seat: the step before which it begins, and that after which it is done."""

    seat: int
    begins: int
    ends: int


def in_batches() -> list[Stay]:
    """Each batch begins when the longest of the one before it has ended."""
    found: list[Stay] = []
    begins = 0
    for first in range(0, len(LENGTHS), SEATS):
        batch = LENGTHS[first : first + SEATS]
        found += [Stay(seat, begins, begins + length) for seat, length in enumerate(batch)]
        begins += max(batch)
    return found


def refilled() -> list[Stay]:
    """The same on the engine's server, whose steps all take a second here, and which begins idle."""
    count = len(LENGTHS)
    run = events.serve(
        {
            "came_s": [0.0] * count,
            "prompts": [1] * count,
            "outputs": [*LENGTHS],
            "hits": [0] * count,
            "aged": [0] * count,
            "rounds": events.rounds([*LENGTHS]),
            "counted": count,
        },
        {
            "mode": modes.CHUNKED,
            "instances": 1,
            "prefill_instances": 0,
            "shared": 0,
            "budget": 1000,
            "most_running": SEATS,
            "capacity": 1e6,
            "front_capacity": 1e6,
            "transfer_s": 0.0,
            "swap_s": modes.RECOMPUTE,
            "rows": [1, 1000],
            "rows_s": [1.0, 1.0],
            "pair_s": 0.0,
            "cached_s": 0.0,
            "front_rows_s": [1.0, 1.0],
            "front_pair_s": 0.0,
            "width": 1,
            "draft_s": 0.0,
        },
    )
    found: list[Stay] = []
    free = [0] * SEATS  # from which step on each seat is
    for begins, ends in zip(map(round, run["started"]), map(round, run["last"])):
        seat = next(seat for seat in range(SEATS) if free[seat] <= begins)
        free[seat] = ends
        found.append(Stay(seat, begins, ends))
    return found


def last_step(stays: list[Stay]) -> int:
    """The step after which all are done."""
    return max(stay.ends for stay in stays)


def draw(width: float) -> Picture:
    ways = (("in batches", in_batches()), ("refilled before every step", refilled()))
    steps = [last_step(stays) for _, stays in ways]
    picture = Picture(
        f"Four seats serve eight requests in {steps[0]} steps in batches, and in {steps[1]} if refilled.",
        "Two panels of four rows, a row for each seat, steps from left to right. A box is a step of a "
        "request, its first one reads the prompt; white boxes are seats that nobody uses.",
        width,
    )
    step = width / max(steps)
    y = picture.key(1, [("forward", "reads its prompt"), ("hbm", "writes a token"), ("idle", "nobody")]) + 8
    for (name, stays), ends in zip(ways, steps):
        picture.text(0, y + 8, f"{name}: {ends} steps", bold=True)
        y += 20
        for seat in range(SEATS):
            busy = {at for stay in stays if stay.seat == seat for at in range(stay.begins, stay.ends)}
            for at in set(range(ends)) - busy:
                picture.box(at * step, y + seat * (HIGH + 2), step - 1, HIGH, "idle", way=name, seat=seat)
        for letter, stay in zip(LETTERS, stays):
            top = y + stay.seat * (HIGH + 2)
            for at in range(stay.begins, stay.ends):
                first = at == stay.begins
                look, words = ("forward", letter) if first else ("hbm", "")
                picture.box(at * step, top, step - 1, HIGH, look, words, way=name, request=letter)
        y += SEATS * (HIGH + 2) + 10
        told = ", ".join(
            f"{letter} in steps {stay.begins + 1} to {stay.ends}" for letter, stay in zip(LETTERS, stays)
        )
        picture.tell(f"{name}: {ends} steps; {told}")
    picture.tell("reads its prompt; writes a token; nobody uses the seat")
    return picture
