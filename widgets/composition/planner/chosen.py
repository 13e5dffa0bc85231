"""The layout that is shown: how it cuts the work, what fills its fullest GPU, and where its time goes."""

import numpy as np

from engine.step import cases
from widgets.composition.planner.shared import CHOSEN, FRONT, JOB, MESH, MOMENT, RANKS, TOP
from widgets.kit.compiler.symbols import lookup
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import planned
from widgets.kit.drawing.cluster import MOST_BOXES
from widgets.kit.drawing.panels import AWAY
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import hint, once, part

MESH_Y, MEMORY_Y, STEP_Y, HALF = np.array([280.0, 242.0, 204.0, 166.0]), 106.0, 38.0, 9.0


class Chosen:
    """The layout shown, in the figure that has a ``case`` and an ``outcome``."""

    def place(self):
        """The row of the chosen layout; that of the winner where there is no such layout."""
        there = np.isfinite(lookup(self.outcome().step_s, self.chosen))
        return np.where(there, self.chosen, 0.0)

    def of_chosen(self, column):
        return lookup(column, self.place())

    @once
    def degrees(self):
        """The chosen layout's; ones where none is legal."""
        return cases.Layouts(
            *(
                np.where(self.none_legal(), least, self.of_chosen(column))
                for column, least in zip(self.outcome().layouts, (1.0,) * 6 + (0.0, 1.0, 0.0, 0.0, 1.0))
            )
        )

    def sizes(self):
        a = self.degrees()
        return [a.pp, a.dp, a.cp, a.tp]

    @once
    def ways(self):
        a = cases.Layouts(*(np.stack([axis]) for axis in self.degrees()))
        return cases.crosses(self.case(), a)

    @part(*JOB, "chosen", shown=False)
    def boxes(self):
        return planned.mesh_boxes(self.sizes(), self.ways(), MESH_Y, HALF)

    @part(*JOB, "chosen", shown=False)
    def zoom(self):
        return planned.zoom(self.sizes(), MESH_Y, HALF)

    @part(*JOB, "chosen")
    def mesh(self):
        wires = np.stack(self.ways())
        counts = [show(size, "count") for size in self.sizes()]
        return {
            "left": np.zeros(4),
            "right": np.ones(4),
            "bottom": MESH_Y - HALF,
            "top": MESH_Y + HALF,
            "y": MESH_Y,
            "axis": [f"{axis} {count}" for axis, count in zip(planned.AXES, counts)],
            "wire": select(wires, planned.AT["short"]),
        }

    @hint("mesh")
    def mesh_said(self):
        names = [
            "Pipeline {}: ",
            "in each stage data {}: ",
            "in each replica context {}: ",
            "for each of its pieces tensor {}: ",
        ]
        said = []
        for name, size, way in zip(names, self.sizes(), self.ways()):
            count = show(size, "count")
            cut = choose(size > MOST_BOXES, f", {MOST_BOXES} of {count} drawn", "")
            said.append(f"{name.format(count)}{select(way, planned.AT['wires'])}{cut}")
        return said

    @part(*JOB, "chosen", shown=False)
    def title(self):
        a, none = self.degrees(), self.none_legal()
        counts = {
            name: show(getattr(a, name), "count")
            for name in ("tp", "pp", "cp", "dp", "ep", "zero", "micro_batch")
        }
        fastest = choose(self.none_fits(), "1, the leanest; none fits", "1, the fastest that fits")
        place, schedule = self.place(), select(a.schedule, cases.SCHEDULE_TITLES)
        kept = choose(
            place < TOP, f"{select(place, RANKS + RANKS[:1] * FRONT)}, one of the next best", "On the front"
        )
        return {
            "y": np.array([362.0, 343.0, 324.0, 306.0]),
            "style": ["bold", "bold", "normal", "normal"],
            "text": [
                choose(none, "No layout is legal", choose(place < 1, fastest, kept)),
                choose(
                    none, "", f"TP {counts['tp']} × PP {counts['pp']} × CP {counts['cp']} × DP {counts['dp']}"
                ),
                choose(
                    none, "", f"EP {counts['ep']}, ZeRO {counts['zero']}, micro-batch {counts['micro_batch']}"
                ),
                choose(none, "", f"{schedule}, {select(a.recompute, planned.RECOMPUTED)}"),
            ],
        }

    @once
    def sizes_bytes(self):
        """What the fullest GPU of the chosen layout holds, by part."""
        parts = self.outcome().parts_bytes
        return np.where(self.none_legal(), 0.0, np.stack([self.of_chosen(parts[:, i]) for i in range(5)]))

    @part(*JOB, "chosen")
    def memory(self):
        size, hbm = self.sizes_bytes(), self.cluster().hbm_bytes
        return planned.pieces(size / hbm) | {"bytes": size, "part": planned.PARTS}

    @hint("memory")
    def memory_said(self):
        return phrase(
            "{part}: {bytes}",
            part=select(np.arange(5), planned.PARTS),
            bytes=show(self.sizes_bytes(), "bytes"),
        )

    @part(*JOB, "chosen")
    def over(self):
        """Where the HBM ends in the memory bar, and what lies beyond."""
        size, hbm = self.sizes_bytes(), self.cluster().hbm_bytes
        total = np.sum(size)
        limit = 1.0 / np.maximum(total / hbm, 1.0)
        return {
            "limit": limit,
            "left": limit,
            "right": np.where(total > hbm, 1.0, limit),
            "red": np.where(total > hbm, 1.0, 0.0),
            "label": f"Fullest GPU: {self.said(total, 'bytes')} of {show(hbm, 'bytes')}",
            "note": choose(self.none_legal(), "", planned.largest(size, planned.PARTS, "bytes")),
        }

    @once
    def seconds(self):
        """What the chosen layout's step is spent on, by term."""
        times = self.outcome().times_s
        found = np.stack([self.of_chosen(times[:, i]) for i in range(len(planned.TERMS))])
        return np.where(self.none_legal(), 0.0, found)

    @part(*JOB, "chosen")
    def times(self):
        seconds = self.seconds()
        a = cases.Layouts(*(np.stack([axis]) for axis in self.degrees()))
        kinds = planned.resources(cases.beyond_the_node(self.case(), a)[0])
        return planned.pieces(seconds / np.maximum(np.sum(seconds), MOMENT), 1.0) | {
            "seconds": seconds,
            "term": planned.TERMS,
            "resource": select(kinds, planned.RESOURCES),
        }

    @hint("times")
    def times_said(self):
        return phrase(
            "{term}: {seconds} of the step",
            term=select(np.arange(len(planned.TERMS)), planned.TERMS),
            seconds=show(self.seconds(), "seconds"),
        )

    @part(*JOB, "chosen", shown=False)
    def length(self):
        step_s = np.sum(self.seconds())
        share = self.seconds() / np.maximum(step_s, MOMENT)
        return {
            "label": f"One step: {self.said(step_s, 'seconds')}",
            "note": choose(self.none_legal(), "", planned.largest(share, planned.TERMS, "percent")),
        }

    @part(*JOB, "chosen", shown=False)
    def chosen_mark(self):
        x, y, seen = self.in_cloud()
        there = self.of_chosen(np.where(seen, 1.0, 0.0)) > 0
        return {"x": np.where(there, self.of_chosen(x), AWAY), "y": np.where(there, self.of_chosen(y), 1.0)}

    @staticmethod
    def draw_chosen(p, sources):
        color, at, boxes = fig.COLOR, CHOSEN.scales(p, y=(0, 372)), MESH.scales(p, y=(0, 372))
        row = {"bottom": MEMORY_Y - HALF, "top": MEMORY_Y + HALF}
        p.text(0, "y", text="text", source=sources["title"], **fig.by_style("style"), **at)
        planned.draw_boxes(p, sources["boxes"], sources["zoom"], **boxes)
        p.quad(source=sources["mesh"], fill_alpha=0, line_alpha=0, **fig.BOX, **boxes)
        p.text(0, "y", text="axis", source=sources["mesh"], y_offset=-7, **fig.BOLD, **at)
        p.text(0, "y", text="wire", source=sources["mesh"], y_offset=8, **fig.LABEL, **at)
        planned.draw_pieces(p, sources["memory"], MEMORY_Y, HALF, "hbm", **at)
        past = {"left": "left", "right": "right", "source": sources["over"]} | row | at
        p.quad(**past, fill_color=color["panel"], line_color=None)
        p.quad(**past, **fig.OVER | {"line_alpha": "red"})
        limit = {"source": sources["over"], "line_color": color["ink"], "line_width": 2}
        p.segment("limit", MEMORY_Y - 14, "limit", MEMORY_Y + 14, **limit, **at)
        planned.draw_pieces(p, sources["times"], STEP_Y, HALF, **at)
        for y, source in ((MEMORY_Y, "over"), (STEP_Y, "length")):
            p.text(0, y, text="label", source=sources[source], y_offset=-22, **fig.BOLD, **at)
            p.text(0, y, text="note", source=sources[source], y_offset=20, **fig.LABEL, **at)
