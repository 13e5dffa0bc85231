"""All layouts of a job by memory and time, with the best of them, the front, and what was measured."""

import numpy as np

from engine.step import cases, cloud, page_search
from widgets.composition.planner.shared import CHOICES, CLOUD, DRAWN, EDGE, FRONT, JOB, RANKS, TOP
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import panels, planned
from widgets.kit.drawing.panels import AWAY
from widgets.kit.measured import Seen, measured, of_files
from widgets.kit.text import choose, phrase, select, show, usable
from widgets.kit.widget import hint, once, part

MEASURED = of_files("layout_planner")
BELOW = 0.72  # of the axis of time, below the fastest layout: room for names
X_TICKS = panels.ticks(1e8, 1e16, (1, 3))
Y_TICKS = np.array([*panels.ticks(1e-4, 10, (1, 1.5, 2, 3, 4, 5, 7)), *panels.CLOCK])


class Cloud:
    """All layouts, in the figure that has a ``case`` and an ``outcome``."""

    @once
    def places(self):
        return cloud.shown(self.outcome().cloud.places.count)

    def unit_s(self):
        """The second of the cloud's scale: the fastest step of all, whether it fits or not."""
        return np.where(self.none_legal(), 1.0, self.outcome().found.free_s)

    def sides(self, column, row):
        """The sides of places on the cloud's scales: in HBMs and in those units."""
        at, unit = cloud.sides(column, row), self.outcome().cloud.ideal_s / self.unit_s()
        return at._replace(bottom=at.bottom * unit, top=at.top * unit)

    @once
    def frame(self):
        """The ends of the cloud's scales; always with the HBM in them, and room for its name."""
        seen = self.places()
        whole = self.sides(np.stack([seen["first"], seen["last"]]), np.stack([seen["low"], seen["high"]]))
        none = self.none_legal()
        return (
            np.where(none, 0.1, np.minimum(0.5, whole.left[0])),
            np.where(none, 10.0, np.maximum(3.5, whole.right[1])),
            np.where(none, 4.0, np.maximum(whole.bottom[1], 1.8)),
        )

    def ranges(self):
        left, right, top = self.frame()
        return {"cloud_x": [left, right], "cloud_y": [BELOW, top]}

    @part(*JOB)
    def cloud(self):
        seen = self.places()
        at, ink = self.sides(seen["column"], seen["row"]), panels.density(seen["count"])
        fits = at.right < 1.0 + 0.5 * (1.0 - at.left)
        return at._asdict() | {"layouts": seen["count"], "ink": ink, "too_large": np.where(fits, 0.0, 1.0)}

    @hint("cloud")
    def cloud_said(self):
        seen, found = self.places(), self.outcome()
        best = page_search.layouts_at(found.cloud, seen["place"])
        at = self.sides(seen["column"], seen["row"])
        return phrase(
            "{layouts} layouts from {left} and {bottom} on, to {right} and {top}; the fastest: {named}",
            layouts=show(seen["count"], "count"),
            left=show(at.left * self.cluster().hbm_bytes, "bytes"),
            right=show(at.right * self.cluster().hbm_bytes, "bytes"),
            bottom=show(at.bottom * self.unit_s(), "seconds"),
            top=show(at.top * self.unit_s(), "seconds"),
            named=self.named(best),
        )

    def named(self, a):
        """Layouts in words, row by row."""
        counts = {
            name: show(getattr(a, name), "count")
            for name in ("tp", "pp", "cp", "dp", "ep", "zero", "micro_batch")
        }
        return phrase(
            "TP {tp} · PP {pp} · CP {cp} · DP {dp} · EP {ep} · ZeRO {zero} · micro-batch {micro_batch} · "
            "{schedule} · {recompute}",
            schedule=select(a.schedule, cases.SCHEDULE_TITLES),
            recompute=select(a.recompute, planned.RECOMPUTED),
            **counts,
        )

    def in_cloud(self):
        """Where the layouts of the outcome are, and which of them are in the picture."""
        found, (left, right, top) = self.outcome(), self.frame()
        x, y = found.total_bytes[:DRAWN] / self.cluster().hbm_bytes, found.step_s[:DRAWN] / self.unit_s()
        return x, y, (x >= left) & (x <= right) & (y <= top)

    @part(*JOB)
    def marks(self):
        """The best of the best splits, then the front from its leanest layout."""
        found, (x, y, seen) = self.outcome(), self.in_cloud()
        return {
            "x": np.where(seen, x, AWAY),
            "y": np.where(seen, y, 1.0),
            "step_s": np.where(seen, found.step_s[:DRAWN], 0.0),
            "total_bytes": np.where(seen, found.total_bytes[:DRAWN], 0.0),
        }

    @hint("marks")
    def marks_said(self):
        found, (_, _, seen) = self.outcome(), self.in_cloud()
        known = cases.Layouts(*(np.where(seen, column[:DRAWN], 0.0) for column in found.layouts))
        return phrase(
            "{place}: {named}\n{step}, {memory} on the fullest GPU",
            place=select(np.arange(len(CHOICES)), [*RANKS, *["The front"] * FRONT]),
            named=self.named(known),
            step=show(np.where(seen, found.step_s[:DRAWN], 1.0), "seconds"),
            memory=show(np.where(seen, found.total_bytes[:DRAWN], 1.0), "bytes"),
        )

    @part(*JOB, shown=False)
    def front(self):
        """The front as a line; what lies above the picture is drawn at its top."""
        x, y, _ = self.in_cloud()
        return {"x": x[TOP:], "y": np.minimum(y[TOP:], self.frame()[2])}

    @part(*JOB, shown=False)
    def winner(self):
        """The winner's name and numbers, below its dot."""
        found, (left, right, _), (x, y, seen) = self.outcome(), self.frame(), self.in_cloud()
        there = seen[0] & ~self.none_fits()
        x = np.where(there, x[0], AWAY)
        numbers = f"{self.said(found.step_s[0], 'seconds')}, {self.said(found.total_bytes[0], 'bytes')}"
        return {
            "x": np.stack([x, x]),
            "y": np.where(there, y[0], 1.0) * np.ones(2),
            "below": np.array([22.0, 39.0]),  # pixels
            "text": ["1, the fastest that fits", numbers],
            "style": ["bold", "normal"],
            "side": [panels.side(np.where(there, x, 1.0), left, right)] * 2,
        }

    @part(*JOB, shown=False)
    def hbm(self):
        """The HBM's line with its name below the axis, whose title is at the end that is farther away."""
        left, right, top = self.frame()
        return {
            "x": 1.0,
            "top": top,
            "label": f"HBM {usable(self.cluster().hbm_bytes)}",
            "title": "Memory needed",
            "short_title": "Memory",
            "title_x": np.where(panels.is_before(1.0, left, right, 0.5), 1.0, 0.0),
            "title_side": choose(panels.is_before(1.0, left, right, 0.5), "right", "left"),
        }

    @part(*JOB, shown=False)
    def x_ticks(self):
        left, right, _ = self.frame()
        x = X_TICKS / self.cluster().hbm_bytes
        seen = (x > left) & panels.is_before(x, left, right, 0.94)  # a label at the very end would be cut
        return {
            "x": np.where(seen, x, AWAY),
            "label": panels.only(seen, panels.labels(X_TICKS, "bytes")),
            "short": panels.only(seen, panels.labels(X_TICKS, "bytes", 2)),
        }

    @part(*JOB, shown=False)
    def y_ticks(self):
        top = self.frame()[2]
        y = Y_TICKS / self.unit_s()
        seen = (y > BELOW) & (y < top)
        return {"y": np.where(seen, y, AWAY), "label": panels.only(seen, panels.labels(Y_TICKS, "seconds"))}

    @part(*JOB, shown=False)
    def time_title(self):
        above = self.places()["above"]
        more = f" ({show(np.maximum(above, 0.0), 'count')} slower ones above)"
        return {"label": f"Time of a step{choose(above > 0, more, '')}"}

    @measured("layout_planner", *JOB)
    def published(self, of):
        """Measured layouts of the same job, above the memory that the engine gives them."""
        unit, hbm = self.unit_s(), self.cluster().hbm_bytes
        x = np.array([point.total_bytes for point in of.all]) / hbm
        return Seen(self.was_measured(), x, of.measured / unit, x, of.ours / unit)

    def was_measured(self):
        same = MEASURED.of(
            model=self.model,
            gpu=self.gpu,
            gpus=self.gpus,
            batch_tokens=self.batch_tokens,
            seq=self.seq,
            recipe=self.counted_recipe(),
            narrow=self.precision.narrow,
        )
        return same & ~self.none_legal()

    @part(*JOB, "dots", shown=False)
    def measured_row(self):
        """The name of the nearest measured layout."""
        fits = np.where(self.was_measured() & self.dots, 1.0, 0.0)
        others, nearest = np.sum(fits) - 1, np.argmax(fits)
        more = choose(others > 0, f"; {show(np.maximum(others, 0.0), 'count')} more", "")
        named = [f"○ Measured: {point.said(point.measured)}, {point.what}" for point in MEASURED.all]
        short = [f"○ Measured: {point.said(point.measured)}" for point in MEASURED.all]
        return {
            "text": choose(others >= 0, f"{select(nearest, named)}{more}", ""),
            "short": choose(others >= 0, f"{select(nearest, short)}{more}", ""),
        }

    @staticmethod
    def draw_cloud(p, sources):
        color, at, edge = fig.COLOR, CLOUD.scales(p, (0.05, 64.0), (BELOW, 4.0), True, True), EDGE.scales(p)
        below, beside = at | {"y_range_name": "edge_y"}, at | {"x_range_name": "edge_x"}
        place = fig.BOX | {"line_color": None} | at
        dot = {"line_color": color["panel"], "fill_color": color["ink"], "size": 10} | at
        best, front = (fig.of_rows(list(rows)) for rows in (range(TOP), range(TOP, len(CHOICES))))
        p.quad(
            source=sources["cloud"],
            fill_color=fig.either("too_large", "ink", "idle"),
            fill_alpha="ink",
            **place,
        )
        p.segment([0, 0], [0, 0], [1, 0], [0, 1], line_color=color["axis"], **edge)
        p.segment("x", 0, "x", -0.012, source=sources["x_ticks"], line_color=color["axis"], **below)
        p.segment(0, "y", -0.01, "y", source=sources["y_ticks"], line_color=color["axis"], **beside)
        tick, under = fig.LABEL | {"text": "label"}, {"text_align": "center", "y_offset": 14} | fig.LABEL
        for width, name in (("wide", "label"), ("narrow", "short")):
            fig.only(width, p.text("x", 0, source=sources["x_ticks"], text=name, **under, **below))
        p.text(0, "y", source=sources["y_ticks"], text_align="right", x_offset=-7, **tick, **beside)
        p.text(0, 1, source=sources["time_title"], x_offset=-4, y_offset=-13, **tick, **edge)
        title = {"text_align": "title_side", "y_offset": 33, "source": sources["hbm"]} | fig.LABEL
        for width, column in (("wide", "title"), ("narrow", "short_title")):
            fig.only(width, p.text("title_x", 0, text=column, **title, **edge))
        p.segment("x", BELOW, "x", "top", source=sources["hbm"], line_color=color["hbm"], line_width=2, **at)
        name = {"text": "label", "text_align": "center", "y_offset": 33} | fig.BOLD
        p.text("x", 0, source=sources["hbm"], **name, **below)
        p.step("x", "y", source=sources["front"], mode="after", line_color=color["ink"], line_width=1.5, **at)
        p.scatter("x", "y", source=sources["marks"], view=front, marker="diamond", **dot)
        p.scatter("x", "y", source=sources["marks"], view=best, marker="circle", **dot)
        ring = {"size": 18, "fill_color": None, "line_color": color["accent"], "line_width": 2.5}
        p.scatter("x", "y", source=sources["chosen_mark"], marker="circle", **ring, **at)
        named = {"text": "text", "text_align": "side", "y_offset": "below"} | fig.by_style("style")
        named |= fig.ON_PANEL  # the HBM's line may run below it
        p.text("x", "y", source=sources["winner"], **named, **at)
        fig.measured(p, sources["published"], **at)
