"""A model cut into stages, and one batch on its way through them: one node works, the others wait."""

from __future__ import annotations

from course.drawing import strips
from course.drawing.picture import Picture
from engine import catalog
from engine.base import units

NODES, MODEL = 16, "llama3.1-405b"
ROW = 14.0
MOMENT = 0.45  # of a pass, into it
LOOKED_AT = 5  # the node that works at the moment shown


def executed() -> strips.Run:
    """One batch, forwards through all stages and back."""
    return strips.run("1f1b", NODES, 1)


def draw(width: float) -> Picture:
    shown, layers = executed(), catalog.model(MODEL).depth
    busy = units.human(1 / NODES, "percent")
    cut = f"{layers} layers, cut into {NODES} stages"
    picture = Picture(
        f"{cut}: one node works and {NODES - 1} wait.",
        "A row for each node, time from left to right. The forward pass goes down the rows one after the "
        "other, the backward pass comes up again. At any moment one row alone has a block.",
        width,
    )
    left = 58.0
    scale = (width - left) / shown.total_s
    picture.text(0, 10, cut, bold=True)
    top = picture.key(24, [("forward", "forward"), ("backward", "backward"), ("idle", "waits")]) + 2
    for node in range(NODES):
        y = top + node * ROW
        picture.box(left, y, shown.total_s * scale, ROW, "idle", stage=node)
        if node in (0, LOOKED_AT - 1, NODES - 1):
            picture.text(0, y + ROW / 2, f"node {node + 1}")
    for each in shown.passes:
        y = top + each.stage * ROW
        picture.box(
            left + each.start_s * scale,
            y,
            (each.end_s - each.start_s) * scale,
            ROW,
            each.look,
            **each._asdict(),
        )
    bottom = top + NODES * ROW
    at = left + (LOOKED_AT - 1 + MOMENT) * strips.FORWARD_S * scale
    picture.line((at, top), (at, bottom + 6), ink="ink", dashed=True, thick=1.5)
    here = f"at this moment node {LOOKED_AT} works, {NODES - 1} wait: {busy} of what you bought"
    end = picture.paragraph(
        at if picture.wide else left, bottom + 8, here, width - (at if picture.wide else left), "ink"
    )
    picture.height = max(picture.height, end)
    picture.tell(
        cut,
        *(
            f"node {one.stage + 1}: {strips.PASSES[one.kind]} from "
            f"{units.human(one.start_s, 'seconds')} to {units.human(one.end_s, 'seconds')}"
            for one in shown.passes
        ),
        here,
        "forward; backward; waits",
    )
    return picture
