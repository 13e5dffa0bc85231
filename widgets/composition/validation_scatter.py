"""The engine against published runs: the error of each number in the row of its source, which ones an allowed
error excludes, with the fitted ones marked."""

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource
from bokeh.transform import factor_mark

from engine.validation import agreement
from engine.validation.agreement import SORTS
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

NAMES = [sort.name for sort in SORTS.values()]
OFFERED = {
    key: (sort.name[0].upper() + sort.name[1:], float(i))
    for i, (key, sort) in enumerate(SORTS.items())
    if key != "measured"
}  # one quantity at a time: seconds, bytes and rates have nothing in common
GROUPS = {
    "all": ("all", 0.0),
    "foreign": ("of which nothing was fitted", 1.0),
    "fitting": ("of which some rows were fitted", 2.0),
}
OF_GROUPS = ["", " in groups of which nothing was fitted", " in groups of which some rows were fitted"]
IN_SHORT = ["", ", groups never fitted", ", groups partly fitted"]
KINDS = ["within", "outside", "fitted a constant", "fitted, and outside"]
MARKS = ["circle", "triangle", "diamond", "diamond"]
HUES = {KINDS[0]: "ink-soft", KINDS[1]: "ink", KINDS[2]: "ink-soft", KINDS[3]: "ink"}
SIZES, FILLED = np.array([6.0, 7.0, 11.0, 11.0]), np.array([0.45, 0.6, 0.0, 0.0])
ERRORS = {"wide": (0.5, 0.75, 1.0, 1.25, 1.5), "narrow": (0.5, 1.0, 1.5)}
STRIP = {"wide": (0.31, 0.89), "narrow": (0.02, 0.98)}  # shares of the frame in which the marks stand
TOP, HEADS, KEY, FOOT, TITLE, BOTTOM = 1.12, 1.025, 1.085, -0.025, -0.063, -0.09
NARROW = 820
UNDER, LOW = (
    0.2,
    0.6,
)  # of a lane: how far below its middle a phone, whose names lie above, has its marks, and their room


class ValidationScatter(Widget):
    question = "How far is this course's engine from what others measured?"
    quantity = Choice("Published numbers", OFFERED, "steps")
    most = Number("Error at most", 0.1, 0.01, 1.0, family="percent", stops=64, marks=(0.05, 0.1, 0.25, 0.5))
    groups = Choice(
        "Groups",
        GROUPS,
        "all",
        help="A group is one table of one source, such as NVIDIA's dense runs on H100s in bf16",
    )

    presets = {
        "Training steps": {},
        "Groups never fitted": {"groups": "foreign", "most": 0.25},
        "Memory": {"quantity": "memory"},
        "Collectives": {"quantity": "collectives"},
        "Serving latency": {"quantity": "latency", "most": 0.25},
    }
    break_it = "Allow so little error that fewer than half of the rows are within it."
    assumptions = (
        "Each mark is a published number, in the row of its source. Left of the middle the engine's is too "
        "small: its time too short, its rate too low. Hollow diamonds set a constant of the engine and "
        "stay out of every share and mean. What a source leaves open (a micro-batch, the virtual stages) was "
        "filled in here. Numbers that are arithmetic in the source as well are counted, not measured, and "
        "stand apart."
    )
    formula = (
        "$$e = \\frac{\\text{ours}}{\\text{published}} - 1, \\qquad \\bar e = \\frac{1}{n} \\sum_{i=1}^{n} "
        "|e_i|$$\n\n"
        "A row is within an error of $m$ when $|e| \\le m$: between $-m$ and $+m$ on the picture. The "
        "sum runs over the rows that fitted nothing."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def seen(self):
        rows, all_of_them = agreement.columns(), agreement.figures()
        return agreement.seen(
            self.quantity,
            self.place(),
            self.most,
            rows.published,
            rows.ratio,
            rows.error,
            rows.sort,
            rows.lane,
            rows.apart,
            rows.x,
            rows.fitted,
            all_of_them.slot,
            all_of_them.height,
        )

    def figure_of(self, name):
        """A number of the chosen rows that the allowed error does not move."""
        return lookup(getattr(agreement.figures(), name), self.place())

    def place(self):
        return agreement.place(self.quantity, self.groups)

    def within(self):
        return self.seen()["within"]

    def share(self):
        return self.within() / np.maximum(self.figure_of("count"), 1.0)

    def allowed(self):
        return show(self.most, "percent")

    def some(self):
        return self.figure_of("count") > 0

    # -- the picture -----------------------------------------------------------------------------------------
    @part("quantity", "groups", "most")
    def points(self):
        seen = self.seen()
        known = np.where(seen["kind"] >= 0, seen["kind"], 0)
        lane = lookup(agreement.figures().height, self.place())
        return {
            "x": seen["x"],
            "y": seen["y"],
            "low": seen["y"] - seen["apart"] * (1 - LOW) - lane * UNDER,
            "published": seen["published"],
            "ours": seen["ours"],
            "error": seen["error"],
            "kind": select(seen["kind"], KINDS),
            "size": lookup(SIZES, known),
            "filled": lookup(FILLED, known),
        }

    @hint("points")
    def about_points(self):
        return select(self.seen()["row"], agreement.columns().told)

    @part("quantity", "groups", "most", shown=False)
    def lanes(self):
        """Each source's name, and how many of its numbers are met."""
        rows, all_of_them = agreement.lane_rows(self.place()), agreement.figures()
        middle, lane = lookup(all_of_them.middle, rows), lookup(all_of_them.height, self.place())
        tested = lookup(all_of_them.lane_count, rows)
        met = phrase(
            "{met} of {of}", met=show(self.seen()["met"], "count"), of=show(np.maximum(tested, 0.0), "count")
        )
        return {
            "y": middle,
            "low": middle - lane * UNDER,
            "over": middle + lane * UNDER,
            "name": select(rows, all_of_them.lane_name),
            "met": select(np.where(tested > 0, 1.0, 0.0), ["", met]),
        }

    @part("most", shown=False)
    def band(self):
        left, right = agreement.band(self.most)
        return {"left": left, "right": right, "head": f"within {self.allowed()}", "end": 1.0}

    def figure(self, sources):
        p = fig.plot((0, 1), (BOTTOM, TOP), height=590)
        fig.taller_on_phone(p, NARROW)
        fig.bare(p)
        for width in STRIP:
            fig.only(width, *self.strip(p, sources, width))
        return p

    def strip(self, p, sources, width):
        """The glyphs of one width: a phone's rows have their names above the marks."""
        color, wide, (start, end) = fig.COLOR, width == "wide", STRIP[width]
        unit = end - start
        place = fig.across(p, f"errors, {width}", -start / unit, (1 - start) / unit)
        looks = {
            "marker": factor_mark("kind", MARKS, KINDS),
            "size": "size",
            "fill_color": fig.hues("kind", HUES),
            "line_color": fig.hues("kind", HUES),
            "fill_alpha": "filled",
            "line_width": 1.2,
            "line_alpha": 0.85,
        }
        band, lanes, height = sources["band"], sources["lanes"], "y" if wide else "low"
        edge = {"source": band, "line_color": color["accent"], "line_width": 1.5, "line_dash": [7, 4]} | place
        errors = np.array(ERRORS[width])
        said = [
            "0" if ratio == 1 else f"{ratio - 1:+.0%}".replace("%", " %").replace("-", "−")
            for ratio in errors
        ]
        names = ColumnDataSource(
            {"x": agreement.along(errors), "y": np.full(len(errors), FOOT), "name": said}
        )
        entries = ColumnDataSource(
            {
                "x": np.array([0.0, 0.16, 0.33]) if wide else np.array([0.02, 0.27, 0.55]),
                "y": np.full(3, KEY),
                "kind": KINDS[:3],
                "size": SIZES[:3] + 2,
                "filled": FILLED[:3],
            }
        )
        scale = place if wide else {}
        return [
            p.quad(
                left="left",
                right="right",
                bottom=0,
                top=1,
                source=band,
                fill_color=color["accent"],
                fill_alpha=0.1,
                line_color=None,
                **place,
            ),
            p.segment(0, height, 1, height, source=lanes, line_color=color["grid"], **place),
            p.segment("x", 0, "x", 1, source=names, line_color=color["grid"], line_dash=[2, 4], **place),
            p.segment("left", 0, "left", 1, **edge),
            p.segment("right", 0, "right", 1, **edge),
            p.segment(
                agreement.along(1.0),
                0,
                agreement.along(1.0),
                1,
                line_color=color["ink-soft"],
                line_width=1.5,
                **place,
            ),
            p.scatter("x", height, source=sources["points"], **looks, **place),
            p.text(0, "y" if wide else "over", text="name", source=lanes, **fig.TEXT, **fig.ON_PANEL),
            p.text(1, "y" if wide else "over", text="met", source=lanes, text_align="right", **fig.LABEL),
            p.text("end", HEADS, text="head", source=band, text_align="right", **fig.BOLD),
            p.text("x", "y", text="name", source=names, text_align="center", **fig.LABEL, **place),
            p.text(
                agreement.along(1.0),
                TITLE,
                text=value("ours, against what was published"),
                text_align="center",
                **fig.LABEL,
                **place,
            ),
            p.scatter("x", "y", source=entries, **looks, **scale),
            p.text("x", "y", text="kind", x_offset=10, source=entries, **fig.LABEL, **scale),
        ]

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Fitted nothing", rest=True)
    def rows(self):
        return f"{show(self.figure_of('count'), 'count')} rows"

    @readout("Within the error allowed")
    def inside(self):
        share = choose(self.some(), show(self.share(), "percent", 2), "no rows")
        return share, self.some() & (self.share() < 0.5)

    @readout("Mean error")
    def mean(self):
        return choose(self.some(), show(self.figure_of("mean"), "percent"), "no rows")

    @readout("Half are within", rest=True)
    def half(self):
        return choose(self.some(), show(self.figure_of("half"), "percent", 2), "no rows")

    @readout("With sign, on the whole", rest=True)
    def lean(self):
        return choose(self.some(), show(self.figure_of("lean"), "percent", 2), "no rows")

    @readout("Fitted rows, mean error", rest=True)
    def fitted(self):
        mean = show(self.figure_of("fitted_mean"), "percent", 2)
        return choose(
            self.figure_of("fitted") > 0, f"{mean} of {show(self.figure_of('fitted'), 'count')}", "none"
        )

    @readout("Worst row")
    def worst(self):
        return select(self.place(), agreement.figures().worst)

    def what(self):
        return f"{select(self.quantity, NAMES)}{select(self.groups, OF_GROUPS)}"

    @regime(target=True)
    def half_outside(self):
        return self.some() & (self.share() < 0.5), (
            f"You found where the engine stops telling two runs apart: within {self.allowed()} are only "
            f"{show(self.within(), 'count')} of {show(self.figure_of('count'), 'count')} rows of "
            f"{self.what()}. It takes {show(self.figure_of('half'), 'percent', 2)} to hold half. First "
            "response: when two layouts differ by less than that here, measure both."
        )

    @regime()
    def nothing_to_test(self):
        return (
            ~self.some(),
            f"There are no rows here: {self.what()} that fitted nothing do not exist. Choose other groups.",
        )

    def summary(self):
        these = f"{select(self.quantity, NAMES)}{select(self.groups, IN_SHORT)}"
        return choose(
            self.some(),
            f"The engine meets {show(self.within(), 'count')} of {show(self.figure_of('count'), 'count')} "
            f"unfitted numbers ({these}) within {self.allowed()}.",
            f"No published number is left to say what the engine meets within {self.allowed()} ({these}).",
        )


ValidationScatter.serve_as(__name__)
