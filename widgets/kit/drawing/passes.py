"""The passes of a pipeline's schedule as shapes: a rectangle for each pass, for the pointer, and one outline
for all passes that look alike.

A schedule has up to 8,192 passes, and a picture of so many marks, each painted by itself, takes longer than a
frame. So all of one look are a single outline, which goes from rectangle to rectangle along the foot of a
lane, and from lane to lane along the left edge: forth and back, so that nothing is filled on the way. (A path
of many closed pieces takes a browser a time that grows with the square of their number.) Passes too narrow
for a gap between them become one rectangle with their neighbours.
"""

from __future__ import annotations

import math
from typing import Any

from engine.base.program import program
from engine.executed.pipeline_schedules import BLOCKS, CHUNKS, MICRO_BATCHES, STAGES
from engine.mechanism.pipeline import TURNS
from engine.mechanism.pipeline_orders import FORWARD, WEIGHT

FILLED = 0.84  # of a lane's height
HAIR = 0.0014  # share of the chart's width: the gap after a pass, if the pass is wide enough for a gap
OUTLINED = 0.01  # narrower passes would be all outline
NARROW = 0.006  # narrower stretches of idle time are not drawn
ONE_FIGURE, TWO_FIGURES = 0.017, 0.029  # widths that a number of one or two digits takes
ONCE = STAGES * MICRO_BATCHES  # passes of one kind through all stages
LATER = (CHUNKS - 1) * ONCE  # passes through the second and further chunks of stages
PUT_OFFS = TURNS * ONCE  # weight gradients of their own: those of a V, which has two chunks on a stage
CORNERS = 6  # the most of a rectangle
ENDS = 2 * STAGES  # of lanes
NUMBERS, SEEN = 1600, 4096
FIRST_FORWARD, FIRST_BACKWARD, LATER_FORWARD, LATER_BACKWARD, PUT_OFF = 0, 1, 2, 3, 4  # looks


@program(
    left=BLOCKS,
    right=BLOCKS,
    bottom=BLOCKS,
    top=BLOCKS,
    idle_left=BLOCKS,
    idle_right=BLOCKS,
    idle_bottom=BLOCKS,
    idle_top=BLOCKS,
    other_left=2 * STAGES,
    other_right=2 * STAGES,
    other_bottom=2 * STAGES,
    other_top=2 * STAGES,
    gap_left=SEEN,
    gap_right=SEEN,
    gap_bottom=SEEN,
    gap_top=SEEN,
    edge_left=NUMBERS,
    edge_right=NUMBERS,
    edge_bottom=NUMBERS,
    edge_top=NUMBERS,
    edge_look=NUMBERS,
    number_x=NUMBERS,
    number_y=NUMBERS,
    number=NUMBERS,
    number_look=NUMBERS,
    forward_x=CORNERS * ONCE + ENDS,
    forward_y=CORNERS * ONCE + ENDS,
    backward_x=CORNERS * ONCE + ENDS,
    backward_y=CORNERS * ONCE + ENDS,
    later_forward_x=CORNERS * LATER + ENDS,
    later_forward_y=CORNERS * LATER + ENDS,
    later_backward_x=CORNERS * LATER + ENDS,
    later_backward_y=CORNERS * LATER + ENDS,
    weight_x=CORNERS * PUT_OFFS + ENDS,
    weight_y=CORNERS * PUT_OFFS + ENDS,
)
def shapes(
    stage: list[float],
    kind: list[float],
    batch: list[float],
    place: list[float],
    beside: list[float],
    start_s: list[float],
    end_s: list[float],
    idle_stage: list[float],
    idle_start_s: list[float],
    idle_end_s: list[float],
    other_stage: list[float],
    other_start_s: list[float],
    other_end_s: list[float],
    stages: float,
    width_s: float,
) -> dict[str, Any]:
    """Where the passes of pipeline_schedules.run are drawn, in a unit square with a lane for each stage.

    One row per pass: its sides. ``idle_…`` and ``other_…``: those of idle stretches and of other steps;
    ``gap_…``: of the idle stretches that are wide enough for an outline, ``edge_…`` of the pale passes that
    are, with their look. ``number_…``: where a micro-batch's number has room, and on which look. The outlines
    are those of forwards and backwards, first through the first chunk of each stage and then through later
    ones, and of weight gradients.
    """
    lanes = int(stages)
    sides, idle, others, gaps = boxes(), boxes(), boxes(), boxes()
    edges, numbers = [[], [], [], [], []], [[], [], [], []]
    outlines = [[[], []], [[], []], [[], []], [[], []], [[], []]]
    lane = [-1, -1, -1, -1, -1]  # of each look's last rectangle
    joined = [0, 0, 0, 0, 0]  # whether another rectangle may join it
    two_figures = 0
    for number in range(len(stage)):
        if math.isnan(stage[number]):
            break
        two_figures = max(two_figures, batch[number])
    legible = ONE_FIGURE if two_figures < 9 else TWO_FIGURES
    for number in range(len(stage)):
        if math.isnan(stage[number]):
            break
        half = beside[number]
        left, right = start_s[number] / width_s, end_s[number] / width_s
        whole = right - left
        bottom, top = foot(stage[number], lanes, half), head(stage[number], lanes, half)
        if whole > 4 * HAIR:
            right -= HAIR
        put(sides, left, right, bottom, top)
        look = look_of(kind[number], place[number] >= lanes)
        base = foot(stage[number], lanes, 0)
        xs, ys = outlines[look][0], outlines[look][1]
        if lane[look] != stage[number]:
            back(xs, ys)
            go(xs, ys, 0, base)
            lane[look], joined[look] = int(stage[number]), 0
        if joined[look] and whole <= 4 * HAIR and left - xs[len(xs) - 1] < HAIR / 2:
            xs[len(xs) - 1] = right
            xs[len(xs) - 2] = right
        else:
            add(xs, ys, left, right, bottom, top, base)
        joined[look] = 0 if half else 1
        if look > FIRST_BACKWARD and whole > OUTLINED and len(edges[0]) < NUMBERS:
            put(edges, left, right, bottom, top)
            edges[4].append(look)
        if whole >= legible and len(numbers[0]) < NUMBERS:
            numbers[0].append((left + right) / 2)
            numbers[1].append((bottom + top) / 2)
            numbers[2].append(batch[number])
            numbers[3].append(look)
    for outline in outlines:
        back(outline[0], outline[1])
    for number in range(len(idle_stage)):
        if math.isnan(idle_stage[number]):
            break
        bottom, top = foot(idle_stage[number], lanes, 0), head(idle_stage[number], lanes, 0)
        left, right = idle_start_s[number] / width_s, idle_end_s[number] / width_s
        put(idle, left, right, bottom, top)
        if right - left >= NARROW and len(gaps[0]) < SEEN:
            put(gaps, left, right, bottom, top)
    for number in range(len(other_stage)):
        if math.isnan(other_stage[number]):
            break
        bottom, top = foot(other_stage[number], lanes, 0), head(other_stage[number], lanes, 0)
        put(others, other_start_s[number] / width_s, other_end_s[number] / width_s, bottom, top)
    return {
        "left": sides[0],
        "right": sides[1],
        "bottom": sides[2],
        "top": sides[3],
        "idle_left": idle[0],
        "idle_right": idle[1],
        "idle_bottom": idle[2],
        "idle_top": idle[3],
        "other_left": others[0],
        "other_right": others[1],
        "other_bottom": others[2],
        "other_top": others[3],
        "gap_left": gaps[0],
        "gap_right": gaps[1],
        "gap_bottom": gaps[2],
        "gap_top": gaps[3],
        "edge_left": edges[0],
        "edge_right": edges[1],
        "edge_bottom": edges[2],
        "edge_top": edges[3],
        "edge_look": edges[4],
        "number_x": numbers[0],
        "number_y": numbers[1],
        "number": numbers[2],
        "number_look": numbers[3],
        "forward_x": outlines[FIRST_FORWARD][0],
        "forward_y": outlines[FIRST_FORWARD][1],
        "backward_x": outlines[FIRST_BACKWARD][0],
        "backward_y": outlines[FIRST_BACKWARD][1],
        "later_forward_x": outlines[LATER_FORWARD][0],
        "later_forward_y": outlines[LATER_FORWARD][1],
        "later_backward_x": outlines[LATER_BACKWARD][0],
        "later_backward_y": outlines[LATER_BACKWARD][1],
        "weight_x": outlines[PUT_OFF][0],
        "weight_y": outlines[PUT_OFF][1],
    }


def boxes() -> list[list[float]]:
    """No boxes yet: their left, right, lower and upper sides."""
    return [[], [], [], []]


def put(sides: list[list[float]], left: float, right: float, bottom: float, top: float) -> None:
    """Append a box."""
    sides[0].append(left)
    sides[1].append(right)
    sides[2].append(bottom)
    sides[3].append(top)


def go(xs: list[float], ys: list[float], x: float, y: float) -> None:
    """Append a point to an outline."""
    xs.append(x)
    ys.append(y)


def back(xs: list[float], ys: list[float]) -> None:
    """From the end of a lane back to its beginning."""
    if len(xs) > 0:
        go(xs, ys, 0, ys[len(ys) - 1])


def add(
    xs: list[float], ys: list[float], left: float, right: float, bottom: float, top: float, base: float
) -> None:
    """Append a rectangle to an outline, which runs along the base before and after it."""
    go(xs, ys, left, base)
    go(xs, ys, left, top)
    go(xs, ys, right, top)
    go(xs, ys, right, bottom)
    if bottom > base:
        go(xs, ys, left, bottom)
        go(xs, ys, left, base)


def look_of(kind: float, is_later: bool) -> int:
    """The number of a pass's look."""
    if kind == WEIGHT:
        return PUT_OFF
    if kind == FORWARD:
        return LATER_FORWARD if is_later else FIRST_FORWARD
    return LATER_BACKWARD if is_later else FIRST_BACKWARD


def foot(lane: float, lanes: int, half: float) -> float:
    """The lower side of a lane's marks, or of its upper half (1)."""
    centre = 1 - (lane + 0.5) / lanes
    return centre if half == 1 else centre - FILLED / 2 / lanes


def head(lane: float, lanes: int, half: float) -> float:
    """The upper side of a lane's marks, or of its lower half (2)."""
    centre = 1 - (lane + 0.5) / lanes
    return centre if half == 2 else centre + FILLED / 2 / lanes
