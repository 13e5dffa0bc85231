"""How a layout of a training job is drawn, in the planner and in other figures where a layout is chosen: its
mesh as boxes in boxes, what fills its fullest GPU, and what its step is spent on.

The columns also work on symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.base.types import Real, Truth
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.cluster import MOST_BOXES, WIRES, mesh_row
from widgets.kit.text import Words, choose, select, show

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure

PARTS = ["framework", "weights", "gradients", "optimizer", "activations"]
TERMS = [  # in the order of ``cases.TERMS``
    "arithmetic",
    "tensor traffic",
    "pipeline bubble",
    "context traffic",
    "expert traffic",
    "data traffic",
    "optimizer",
    "stage messages",
]
RESOURCES = ["compute", "hbm", "idle", "link", "network"]
KINDS = np.array(
    [0, 3, 2, 3, 3, 3, 1, 3], dtype=float
)  # the place in RESOURCES of each of TERMS, as long as its traffic stays in the node
RECOMPUTED = ["nothing recomputed", "", "all recomputed"]
AXES = ["PP", "DP", "CP", "TP"]  # of a mesh, from the outside in
AT = {"wires": ["in the node", "across nodes", "nothing to send"], "short": ["node", "network", "no wire"]}
HUES = dict(zip(RESOURCES, RESOURCES))


def resources(leaves: Truth) -> Real:
    """The place in RESOURCES of each of TERMS; ``leaves`` says whose traffic leaves the node."""
    return np.where((KINDS == 3.0) & leaves, 4.0, KINDS + 0.0 * leaves)


def pieces(lengths: Real, limit: Real = 1.0) -> dict:
    """Columns of a bar in pieces, against a limit: where they begin and end, as shares of the picture, which
    is as long as the longer of the two."""
    whole = np.maximum(np.sum(lengths), limit)
    left, right = fig.end_to_end(lengths / whole)
    seen = lengths > 0
    return {"left": fig.gone_unless(seen, left), "right": fig.gone_unless(seen, right)}


def largest(sizes: Real, names: Sequence[str], family: str) -> Words:
    """The two largest of some sizes, in words."""
    index = np.arange(len(names))
    first = np.argmax(sizes)
    rest = np.where(index == first, -1.0, sizes)
    second = np.argmax(rest)
    one = f"{select(first, names)} {show(np.max(sizes), family)}"
    other = f", {select(second, names)} {show(np.max(rest), family)}"
    return f"{one}{choose(np.max(rest) > 0, other, '')}"


def zoom(counts: Sequence[Real], rows: Real, half: float) -> dict:
    """Columns of the lines that lead from the first box of a row to the ends of the row below it."""
    boxes = np.stack([np.maximum(np.minimum(count, float(MOST_BOXES)), 1.0) for count in counts[:-1]])
    return {
        "x0": np.concatenate([0.0 * boxes, 1.0 / boxes]),
        "x1": np.concatenate([0.0 * boxes, 0.0 * boxes + 1.0]),
        "y0": np.concatenate([rows[:-1] - half] * 2),
        "y1": np.concatenate([rows[1:] + half] * 2),
    }


def mesh_boxes(sizes: Sequence[Real], wires: Sequence[Real], rows: Real, half: float) -> dict:
    """Columns of the boxes of a mesh, a row of them for each of AXES; ``wires`` are indices into WIRES."""
    of_axes = [mesh_row(size, wire) for size, wire in zip(sizes, wires)]
    return {
        "left": np.concatenate([axis["left"] for axis in of_axes]),
        "right": np.concatenate([axis["right"] for axis in of_axes]),
        "bottom": np.repeat(rows - half, MOST_BOXES),
        "top": np.repeat(rows + half, MOST_BOXES),
        "wire": [wire for axis in of_axes for wire in axis["wire"]],
    }


def draw_boxes(p: figure, boxes: ColumnDataSource, zoom: ColumnDataSource, **scales: Any) -> list[Any]:
    """The mesh: boxes in the hue of the wires that they use, and the lines between its rows."""
    alone = {"one": "panel"}  # a single box has nothing to send
    return [
        p.segment("x0", "y0", "x1", "y1", source=zoom, line_color=fig.COLOR["line"], **scales),
        p.quad(
            left="left",
            right="right",
            bottom="bottom",
            top="top",
            source=boxes,
            fill_color=fig.hues("wire", WIRES | alone),
            line_color=fig.hues("wire", dict.fromkeys(WIRES, "panel") | {"one": "idle"}),
            **scales,
        ),
    ]


def draw_pieces(
    p: figure, source: ColumnDataSource, y: Any, half: float, resource: str = "", **scales: Any
) -> Any:
    """The bar of ``pieces``: in one resource's hue, or by the column ``resource``."""
    look = (
        {"fill_color": fig.COLOR[resource], "line_color": fig.COLOR["panel"]} if resource else by_resource()
    )
    return p.quad(
        left="left",
        right="right",
        bottom=y - half,
        top=y + half,
        source=source,
        line_width=1,
        **look,
        **scales,
    )


def by_resource() -> dict[str, Any]:
    """Pieces in the hues of the column ``resource``: work is solid, idle time is empty."""
    return {
        "fill_color": fig.hues("resource", HUES | {"idle": "panel"}),
        "line_color": fig.hues("resource", HUES | {"idle": "idle"}),
    }
