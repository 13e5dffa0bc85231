"""The engine against published runs: the ratio of ours to theirs for each number, which ones an allowed error
excludes, with the fitted ones marked."""

import numpy as np
from bokeh.models import ColumnDataSource
from bokeh.transform import factor_mark

from engine.validation import agreement
from engine.validation.agreement import LABELS, REACH, SORTS
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

NAMES = [sort.name for sort in SORTS.values()]
OFFERED = {
    key: (sort.name[0].upper() + sort.name[1:], float(i))
    for i, (key, sort) in enumerate(SORTS.items())
    if key not in ("streams", "measured")
}  # one quantity at a time: streams are a single row, and seconds, bytes and rates have no common axis
TITLES = [f"published, {sort.unit}".removesuffix(", ") for sort in SORTS.values()]
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
SIZES, FILLED = np.array([6.0, 7.0, 13.0, 13.0]), np.array([0.45, 0.6, 0.0, 0.0])
ERRORS = {
    0.2: "−80 %",
    0.3: "−70 %",
    0.5: "−50 %",
    0.75: "−25 %",
    0.9: "−10 %",
    1: "the same",
    1.1: "+10 %",
    1.25: "+25 %",
    1.5: "+50 %",
    1.8: "+80 %",
}
LINES = (0.75, 0.9, 1.1, 1.25)
ROOM = 0.68  # of the frame, up to where a name has room on its point's right
UNDER_KEY = 1.8  # above that height the key leaves no room for a name
KEY, TICKS, TITLE = 2.3, 0.172, 0.158  # heights on the picture


class ValidationScatter(Widget):
    question = "How far is this course's engine from what others measured?"
    quantity = Choice("Published numbers", OFFERED, "steps")
    most = Number("Error at most", 0.1, 0.01, 1.0, family="percent", stops=64, marks=(0.05, 0.1, 0.25, 0.5))
    groups = Choice(
        "Groups",
        GROUPS,
        "all",
        help="A group is one table of one source, such as NVIDIA's H100 recipes in bf16",
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
        "Each point is one published number; its height is the engine's divided by it. Hollow diamonds set a "
        "constant of the engine, so they stay out of every share and mean. Times below the line are too "
        "short, rates below it too low. What a source leaves open (a micro-batch, the virtual stages) was "
        "filled in here. Numbers that are arithmetic in the source as well are counted, not measured, and "
        "stand apart."
    )
    formula = (
        "$$e = \\frac{\\text{ours}}{\\text{published}} - 1, \\qquad \\bar e = \\frac{1}{n} \\sum_{i=1}^{n} "
        "|e_i|$$\n\n"
        "A row is within an error of $m$ when $|e| \\le m$: between $1 - m$ and $1 + m$ on the picture. The "
        "sum runs over the rows that fitted nothing."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def seen(self):
        rows = agreement.columns()
        return agreement.seen(
            self.quantity,
            self.groups,
            self.most,
            rows.published,
            rows.ratio,
            rows.error,
            rows.sort,
            rows.foreign,
            rows.fitted,
            rows.low,
            rows.high,
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
        return {
            "x": seen["x"],
            "y": seen["y"],
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

    @part("most", shown=False)
    def band(self):
        low, high = agreement.band(self.most)
        name = f"within {show(self.most, 'percent')}"
        return {"low": low, "high": high, "name": name, "down": np.where(high > UNDER_KEY, 9.0, -9.0)}

    @part("quantity", shown=False)
    def scale(self):
        rows, all_of_them = agreement.tick_rows(self.quantity), agreement.figures()
        x, name = lookup(all_of_them.ticks, rows), select(rows, all_of_them.tick_words)
        every_other = select(rows, all_of_them.tick_short)
        return {"x": x, "name": name, "short": every_other, "align": fig.inward(x, 0.0, 1.0)}

    @part("quantity", "groups", "most", shown=False)
    def met(self):
        inside, of = show(self.within(), "count"), show(self.figure_of("count"), "count")
        return {"x": 1.0, "text": choose(self.some(), f"within {self.allowed()}: {inside} of {of}", "")}

    @part("quantity", shown=False)
    def title(self):
        return {"x": 1.0, "name": select(self.quantity, TITLES)}

    @part("quantity", "groups", shown=False)
    def labels(self):
        """The worst row of each of the worst groups, by name."""
        x, y = (
            np.stack([lookup(column[:, i], self.place()) for i in range(LABELS)])
            for column in (agreement.figures().label_x, agreement.figures().label_y)
        )
        names, short = (
            [select(self.place(), texts[i]) for i in range(LABELS)]
            for texts in (agreement.figures().labels, agreement.figures().short)
        )
        return {
            "x": x,
            "y": y,
            "name": names,
            "short": short,
            "align": [choose(x[i] > ROOM, "right", "left") for i in range(LABELS)],
            "right": np.where(x > ROOM, -10.0, 10.0),
            "short_align": [choose(x[i] > 0.5, "right", "left") for i in range(LABELS)],
            "short_right": np.where(x > 0.5, -10.0, 10.0),
        }

    def figure(self, sources):
        p = fig.plot((-0.02, 1.02), REACH, height=470, y_title="ours, against what was published", y_log=True)
        fig.hide(p.xaxis[0])
        p.grid.visible = False
        fig.named_places(p.yaxis[0], ERRORS)
        color = fig.COLOR
        p.quad(
            left=-1,
            right=2,
            bottom="low",
            top="high",
            source=sources["band"],
            fill_color=color["accent"],
            fill_alpha=0.1,
            line_color=None,
        )
        p.segment("x", REACH[0], "x", REACH[1], source=sources["scale"], line_color=color["grid"])
        for height in LINES:
            p.segment(-1, height, 2, height, line_color=color["axis"], line_dash=[2, 4], line_alpha=0.7)
        p.segment(-1, 1, 2, 1, line_color=color["ink-soft"], line_width=1.5)
        for edge in ("low", "high"):
            p.segment(
                -1,
                edge,
                2,
                edge,
                source=sources["band"],
                line_color=color["accent"],
                line_width=2,
                line_dash=[7, 4],
            )
        named = {"source": sources["labels"]} | fig.ON_PANEL | fig.LABEL
        for width, name, side, shift, down in (
            ("wide", "name", "align", "right", 12),
            ("narrow", "short", "short_align", "short_right", 0),
        ):
            words = {"text": name, "text_align": side, "x_offset": shift, "y_offset": down}
            fig.only(width, p.text("x", "y", **words, **named))
        looks = {
            "marker": factor_mark("kind", MARKS, KINDS),
            "size": "size",
            "fill_color": fig.hues("kind", HUES),
            "line_color": fig.hues("kind", HUES),
            "fill_alpha": "filled",
            "line_width": 1.4,
            "line_alpha": 0.85,
        }
        p.scatter("x", "y", source=sources["points"], **looks)
        of_band = {"text": "name", "source": sources["band"], "y_offset": "down"} | fig.ON_PANEL
        of_band |= fig.TEXT | {"text_color": color["accent"]}
        fig.only("wide", p.text(0, "high", **of_band))
        fig.only("narrow", p.text(1, "high", text_align="right", **of_band))
        ticks = {"source": sources["scale"], "text_align": "align"} | fig.ON_PANEL | fig.LABEL
        for width, name in (("wide", "name"), ("narrow", "short")):
            fig.only(width, p.text("x", TICKS, text=name, **ticks))
        p.text(
            "x", TITLE, text="name", source=sources["title"], text_align="right", **fig.ON_PANEL, **fig.LABEL
        )
        met = {"text": "text", "source": sources["met"], "text_align": "right"} | fig.BOLD
        fig.only("wide", p.text("x", KEY, **met))
        for width, left, step in (("wide", 0.0, 0.16), ("narrow", 0.0, 0.27)):
            entries = ColumnDataSource(
                {
                    "x": left + step * np.arange(3),
                    "y": np.full(3, KEY),
                    "kind": KINDS[:3],
                    "size": SIZES[:3] + 2,
                    "filled": FILLED[:3],
                }
            )
            fig.only(
                width,
                p.scatter("x", "y", source=entries, **looks),
                p.text("x", "y", text="kind", x_offset=10, source=entries, **fig.LABEL),
            )
        return p

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
