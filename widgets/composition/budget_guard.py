"""A run is priced before it starts, and refused if it exceeds its ceiling: GPUs over days, with the ceiling
as a line."""

import numpy as np

from engine import catalog
from engine.base.units import DAY, HOUR, YEAR
from engine.mechanism import cost
from widgets.kit.controls import Number
from widgets.kit.drawing import beside
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, show
from widgets.kit.widget import Widget, hint, part, readout, regime

GPUS, DURATIONS_S = (1.0, 1e5), (HOUR, 2 * YEAR)
FRAME = {"x": (0.7, 1.6e5), "y": (HOUR / 1.6, 3.2 * YEAR)}  # marks at the controls' ends are whole
ALONG = np.geomspace(*FRAME["x"], 81)
STOPS = fig.one_two_five(*GPUS)
BILLS = np.geomspace(10, 1e9, 9)
LAST_FOOT = 2e4  # a line that ends further right on the lower edge has no room for its name
RUNS = list(catalog.all_runs().values())
RUN_GPUS, RUN_TIMES_S = (
    np.array([run.gpus for run in RUNS], dtype=float),
    np.array([run.duration_s for run in RUNS]),
)
DEEPSEEK, LLAMA = catalog.all_runs()["deepseek-v3"], catalog.all_runs()["llama3.1-405b"]
LEADS = {  # where a run's name stands: times the run's GPUs, times its duration, and its alignment
    "llama3.1-405b": (1.0, 5.6, "center"),
    "deepseek-v3": (1.0, 3.6, "right"),
    "bloom-176b": (1.0, 3.2, "center"),
    "nanochat": (1.8, 1.0, "left"),
}
INSIDE = beside.Frame(56.0, 375.0)
WORDS_PX = {
    "wide": beside.width("$29.6M, 29.6× of the ceiling", bold=True),
    "narrow": beside.width("100 days left"),
}
BILL_PX = beside.width("$100k")
SPOTS = beside.around(13.0, 16.0, 44.0, first=beside.RIGHT)
ON_TINT = fig.ON_PANEL | {"background_fill_alpha": 1.0}
RATE = ("price", "overhead")
EVERY = ("gpus", "duration_s", "ceiling", *RATE)


def across(gpus):
    """Where so many GPUs lie, as a share of the frame."""
    return fig.share_of_decades(gpus, *FRAME["x"])


def up(duration_s):
    """Where such a duration lies, as a share of the frame."""
    return fig.share_of_decades(duration_s, *FRAME["y"])


def names_of_runs():
    """What the published runs' names take of the picture."""
    boxes = []
    for run, gpus, time_s in zip(RUNS, RUN_GPUS, RUN_TIMES_S):
        right, above, align = LEADS[run.key]
        at = across(gpus * right), up(time_s * above)
        boxes.append(beside.words(*at, beside.width(run.name), beside.ALIGN.index(align), aside_of(run)))
    return beside.together(*boxes)


def aside_of(run):
    """How many pixels a run's name stands right of the end of its line."""
    _, above, align = LEADS[run.key]
    return {"left": 4.0, "right": -4.0 if above == 1 else 10.0}.get(align, 0.0)


NAMES = names_of_runs()
CEILING_PX = beside.width("ceiling $100M", bold=True)
DOTS = beside.marks(across(RUN_GPUS), up(RUN_TIMES_S), 12.0)


class BudgetGuard(Widget):
    question = "What will this run cost, and does the budget allow it?"
    gpus = Number("GPUs", 512, *GPUS, stops=90, whole=True, marks=(8, 64, 384, 2048, 16384))
    duration_s = Number(
        "For", 21 * DAY, *DURATIONS_S, family="seconds", stops=90, marks=(4 * HOUR, 7 * DAY, 54 * DAY)
    )
    ceiling = Number("Ceiling", 1e6, 50, 2e8, family="dollars", stops=70, marks=(100, 10e6, 100e6))
    price = Number(
        "A GPU-hour",
        catalog.price("h100-sxm").dollars_per_hour,
        0.3,
        15,
        family="dollars",
        stops=50,
        marks=(2, 2.21, 12.29),
        more=True,
        help="Prices change fast, so look yours up",
    )
    overhead = Number(
        "Overhead",
        0.1,
        0,
        1,
        family="percent",
        stops=41,
        log=False,
        more=True,
        help="Storage, network and idle GPUs, as a share of the bill",
    )

    presets = {
        "512 GPUs, three weeks": {},
        "nanochat, $100": {"gpus": 8, "duration_s": 4 * HOUR, "ceiling": 100, "overhead": 0},
        "DeepSeek-V3 at its own price": {
            "gpus": DEEPSEEK.gpus,
            "duration_s": DEEPSEEK.duration_s,
            "ceiling": 6e6,
            "price": catalog.price("h800").dollars_per_hour,
            "overhead": 0,
        },
        "Llama 3.1 405B at $3": {
            "gpus": LLAMA.gpus,
            "duration_s": LLAMA.duration_s,
            "ceiling": 100e6,
            "overhead": 0,
        },
    }
    break_it = "Let the run take a week longer. Does it still start?"
    assumptions = (
        "Every GPU is paid for all the time, working or not, at one price. Overhead comes on top, as a "
        "share. Not in it: people, data, the experiments before the run, and the runs that fail. Slanted "
        "lines are equal bills; dots are published runs by their GPUs and GPU-hours (Llama 3.1 model card; "
        "arXiv:2412.19437, Table 1; arXiv:2211.02001, Table 1; nanochat's README), not by what was paid."
    )
    formula = (
        r"$$\text{dollars} = N \cdot \tau_\text{run} \cdot \text{price} \cdot (1 + \text{overhead}) \le "
        r"\text{ceiling}$$"
        "\n\n"
        "Dollars are GPUs times hours times the price of a GPU-hour, and the overhead on top. The guard "
        "compares before the first GPU starts. On axes that are both logarithmic, equal bills are straight "
        "lines: twice the GPUs for half the time cost the same."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def gpu_hours(self):
        return cost.gpu_hours(self.gpus, self.duration_s)

    def bill(self):
        return cost.run_dollars(self.gpu_hours(), self.price, self.overhead)

    def over(self):
        return cost.over_budget_dollars(self.bill(), self.ceiling)

    def pays_for_s(self):
        return cost.affordable_s(self.ceiling, self.gpus, self.price, self.overhead)

    def refused(self):
        return self.over() > 0

    # -- the picture -----------------------------------------------------------------------------------------
    @part("ceiling", *RATE)
    def limit(self):
        along_s = cost.affordable_s(self.ceiling, ALONG, self.price, self.overhead)
        return {"gpus": ALONG, "longest_s": np.clip(along_s, *FRAME["y"])}

    def ends_of(self, dollars):
        """Where the line of a bill enters and leaves the frame."""
        one_gpu_s = cost.affordable_s(dollars, 1.0, self.price, self.overhead)
        return fig.hyperbola_ends(one_gpu_s, FRAME["x"], FRAME["y"])

    def longest_s(self):
        """What the ceiling pays for, at the stops."""
        return cost.affordable_s(self.ceiling, STOPS, self.price, self.overhead)

    @part("ceiling", *RATE, shown=False)
    def stops(self):
        return {"x": STOPS, "y": np.clip(self.longest_s(), *FRAME["y"])}

    @hint("stops")
    def of_the_ceiling(self):
        longest_s = self.longest_s()
        seen = (longest_s >= FRAME["y"][0]) & (longest_s <= FRAME["y"][1])
        counts = [show(n, "count") + (" GPU" if n == 1 else " GPUs") for n in STOPS]
        return [
            choose(seen[i], f"The ceiling pays for {counts[i]} over {show(longest_s[i], 'seconds')}", "")
            for i in range(len(STOPS))
        ]

    @part(*EVERY, shown=False)
    def limit_line(self):
        """The ceiling, and its name unless the run lies on it."""
        (x0, y0), (x1, y1) = self.ends_of(self.ceiling)
        name = f"ceiling {show(self.ceiling, 'dollars')}"
        run = beside.marks(across(self.gpus), up(self.duration_s), 18.0)
        end = np.where(x0 > 300, beside.RIGHT, beside.LEFT)
        named = {}
        for width, right in (("wide", 52.0), ("narrow", 18.0)):
            box = beside.words(across(x0), up(y0), CEILING_PX, end, np.where(x0 > 300, -8.0, right), 14.0)
            alone = beside.free(beside.together(box), beside.together(run), INSIDE, width)[0]
            named[width] = choose(alone, name, "")
        return named | {
            "x0": x0,
            "y0": y0,
            "x1": x1,
            "y1": y1,
            "align": choose(x0 > 300, "right", "left"),
            "shift": np.where(x0 > 300, -8.0, 52.0),  # right of its line, which falls less on a wide picture
            "narrow_shift": np.where(x0 > 300, -8.0, 18.0),
        }

    def names_of_bills(self):
        """What the names of the bills take of the picture: each at the right end of its line, or at the lower
        one."""
        _, (x1, y1) = self.ends_of(BILLS)
        at_right = y1 > FRAME["y"][0] * 1.01
        end = np.where(at_right, beside.RIGHT, beside.LEFT)
        aside, down = np.where(at_right, -4.0, 5.0), np.where(at_right, 12.0, -9.0)
        return beside.words(across(x1), up(y1), BILL_PX, end, aside, down)

    @part("ceiling", *RATE, shown=False)
    def bills(self):
        """Lines of equal bills, from edge to edge, with their names at the right or the lower one, unless the
        ceiling runs there or a published run's name stands there."""
        (x0, y0), (x1, y1) = self.ends_of(BILLS)
        boxes = self.names_of_bills()
        at_right = y1 > FRAME["y"][0] * 1.01
        struck = at_right & (self.ceiling < BILLS) & (self.ceiling > 0.3 * BILLS)
        named = ~struck & (at_right | (x1 < LAST_FOOT))
        clear = {width: named & beside.free(boxes, NAMES, INSIDE, width) for width in ("wide", "narrow")}
        return {
            "x0": x0,
            "y0": y0,
            "x1": x1,
            "y1": y1,
            "align": [choose(at_right[i], "right", "left") for i in range(len(BILLS))],
            "shift": np.where(at_right, -4.0, 5.0),
            "down": np.where(at_right, 12.0, -9.0),
        } | {
            width: [choose(clear[width][i], show(bill, "dollars"), "") for i, bill in enumerate(BILLS)]
            for width in clear
        }

    @part(*RATE)
    def published(self):
        """What published runs would cost at this price."""
        return {
            "name": [run.name for run in RUNS],
            "gpus": RUN_GPUS,
            "duration_s": RUN_TIMES_S,
            "dollars": self.published_dollars(),
        }

    def published_dollars(self):
        return cost.run_dollars(cost.gpu_hours(RUN_GPUS, RUN_TIMES_S), self.price, self.overhead)

    @hint("published")
    def of_a_published_run(self):
        dollars = self.published_dollars()
        within = cost.over_budget_dollars(dollars, self.ceiling) <= 0
        return [
            f"{run.name}: {show(run.gpus, 'count')} GPUs over {show(run.duration_s, 'seconds')}; "
            f"at this price and overhead {show(dollars[i], 'dollars')}, "
            f"{choose(within[i], 'within', 'past')} the ceiling"
            for i, run in enumerate(RUNS)
        ]

    def words_at(self, width):
        """Where the words of this run stand: off the published runs and the names of bills."""
        taken = beside.together(NAMES, DOTS, self.names_of_bills())
        at = across(self.gpus), up(self.duration_s)
        return beside.spot(*at, WORDS_PX[width], SPOTS, INSIDE, taken, lines=2, of=width)[0]

    @part(*EVERY)
    def run(self):
        bill = show(self.bill(), "dollars")
        days = show(np.abs(self.pays_for_s() - self.duration_s), "seconds")
        return {
            "gpus": self.gpus,
            "duration_s": self.duration_s,
            "dollars": self.bill(),
            "longest_s": np.clip(self.pays_for_s(), *FRAME["y"]),
            "red": np.where(self.refused(), 1.0, 0.0),
            "text": f"{bill}, {show(self.bill() / self.ceiling, 'percent')} of the ceiling",
            "short": bill,
            "left": choose(self.refused(), "refused", f"{days} left"),
            **self.words_at("wide"),
            **self.words_at("narrow"),
        }

    @hint("run")
    def of_this_run(self):
        left = show(cost.left_dollars(self.bill(), self.ceiling), "dollars")
        over = show(self.over(), "dollars")
        return [
            (
                f"Your run: {show(self.gpus, 'count')} {choose(self.gpus > 1, 'GPUs', 'GPU')} over "
                f"{show(self.duration_s, 'seconds')}, {show(self.gpu_hours(), 'count')} GPU-hours, "
                f"{choose(self.refused(), f'{over} past the ceiling', f'with {left} left under the ceiling')}"
            )
        ]

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(FRAME["x"], FRAME["y"], height=430, x_log=True, y_log=True, x_title="GPUs")
        fig.ticks(p.xaxis[0], [1, 10, 100, 1000, 1e4], "count")
        fig.ticks(p.yaxis[0], [HOUR, DAY, 7 * DAY, 30 * DAY, YEAR], "seconds")
        p.grid.visible = False
        ends, limit = {"x0": "x0", "y0": "y0", "x1": "x1", "y1": "y1"}, sources["limit_line"]
        past = {"fill_color": color["ink"], "fill_alpha": 0.06}
        p.varea("gpus", "longest_s", FRAME["y"][1], source=sources["limit"], **past)
        p.segment(**ends, source=sources["bills"], line_color=color["line"])
        p.segment(**ends, source=limit, line_color=color["over"], line_width=2.5)
        fig.stops(p, sources["stops"])
        bills = {"text_align": "align", "x_offset": "shift", "y_offset": "down"}
        for width in ("wide", "narrow"):
            fig.only(width, p.text("x1", "y1", text=width, source=sources["bills"], **bills, **fig.LABEL))
        ceiling = ON_TINT | fig.BOLD | {"text_color": color["over"], "text_align": "align"}
        for width, shift in (("wide", "shift"), ("narrow", "narrow_shift")):
            fig.only(
                width, p.text("x0", "y0", text=width, source=limit, x_offset=shift, y_offset=14, **ceiling)
            )
        self.draw_published(p, sources["published"])
        self.draw_run(p, sources["run"])
        return p

    @staticmethod
    def draw_published(p, source):
        """Published runs, each with a line to its name."""
        ink = fig.COLOR["ink-soft"]
        for run, gpus, time_s in zip(RUNS, RUN_GPUS, RUN_TIMES_S):
            right, above, align = LEADS[run.key]
            at = gpus * right, time_s * above
            p.segment(gpus, time_s, *at, line_color=ink, line_width=1)
            p.text(*at, text=[run.name], text_align=align, x_offset=aside_of(run), **ON_TINT, **fig.LABEL)
        dot = {"fill_color": fig.COLOR["panel"], "line_color": ink, "line_width": 1.6}
        p.scatter("gpus", "duration_s", size=8, source=source, **dot)

    @staticmethod
    def draw_run(p, run):
        """The run, its way to the ceiling, and its bill beside it."""
        color, at = fig.COLOR, {"x": "gpus", "y": "duration_s", "source": run}
        way = {"line_color": color["ink"], "line_width": 2}
        p.segment("gpus", "duration_s", "gpus", "longest_s", source=run, **way)
        p.scatter(**at, size=15, fill_color=color["ink"], line_color=color["panel"], line_width=1.5)
        cross = {"fill_color": None, "line_color": color["over"], "line_width": 4, "line_alpha": "red"}
        p.scatter(**at, size=24, marker="x", **cross)
        for width, text in (("wide", "text"), ("narrow", "short")):
            first, second = (beside.placed(width, line) | ON_TINT for line in range(2))
            fig.only(
                width,
                p.text(**at, text=text, **first, **fig.BOLD),
                p.text(**at, text="left", **second, **fig.LABEL),
            )

    # -- the words -------------------------------------------------------------------------------------------
    @readout("GPU-hours")
    def hours(self):
        return show(self.gpu_hours(), "count")

    @readout("Each day costs")
    def a_day(self):
        return show(cost.run_dollars(cost.gpu_hours(self.gpus, DAY), self.price, self.overhead), "dollars")

    @readout("The ceiling pays for")
    def pays_for(self):
        return show(self.pays_for_s(), "seconds"), self.refused()

    @regime(target=True)
    def refusal(self):
        fewer = cost.affordable_gpus(self.ceiling, self.duration_s, self.price, self.overhead)
        or_fewer = choose(fewer < 1, "", f", or take {show(fewer, 'count')} GPUs for the whole time")
        return self.refused(), (
            f"Refused: {show(self.over(), 'dollars')} over the ceiling of {show(self.ceiling, 'dollars')}, "
            f"{show(self.over() / self.ceiling, 'percent')} too much. First response: stop after "
            f"{show(self.pays_for_s(), 'seconds')}{or_fewer}; before you ask for more money, "
            "look for lost MFU (lesson 01) and lost goodput (above)."
        )

    def summary(self):
        verdict = choose(
            self.refused(),
            f"{show(self.over(), 'dollars')} over the ceiling, and refused",
            f"{show(cost.left_dollars(self.bill(), self.ceiling), 'dollars')} under the ceiling, and allowed",
        )
        gpus = f"{show(self.gpus, 'count')}{choose(self.gpus > 1, ' GPUs', ' GPU')}"
        return (
            f"{gpus} for {show(self.duration_s, 'seconds')} cost {show(self.bill(), 'dollars')}: {verdict}."
        )


BudgetGuard.serve_as(__name__)
