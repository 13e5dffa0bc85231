"""A run is priced before it starts, and refused where it passes its ceiling: GPUs over days, the ceiling a line."""

import numpy as np

from engine import catalog, cost
from engine.units import DAY, HOUR, YEAR
from widgets.kit import figure as fig
from widgets.kit.controls import Number
from widgets.kit.text import choose, show
from widgets.kit.widget import Widget, part, readout, regime

GPUS, DURATIONS_S = (1.0, 1e5), (HOUR, 2 * YEAR)
ALONG = np.geomspace(*GPUS, 81)
BILLS = np.array([1e2, 1e4, 1e6, 1e8])
RUNS = list(catalog.runs().values())
DEEPSEEK, LLAMA = catalog.runs()["deepseek-v3"], catalog.runs()["llama3.1-405b"]
SIDE = {"llama3.1-405b": ("right", -4, -15), "deepseek-v3": ("left", 8, 10), "bloom-176b": ("right", -8, -10),
        "nanochat": ("left", 9, -8)}           # where a dot's name stands
RATE = ("price", "overhead")
EVERY = ("gpus", "duration_s", "ceiling", *RATE)


class BudgetGuard(Widget):
    question = "What will this run cost, and does the budget allow it?"
    gpus = Number("GPUs", 512, *GPUS, stops=90, whole=True, marks=(8, 64, 384, 2048, 16384))
    duration_s = Number("For", 21 * DAY, *DURATIONS_S, family="seconds", stops=90, marks=(4 * HOUR, 7 * DAY, 54 * DAY))
    ceiling = Number("Ceiling", 1e6, 50, 2e8, family="dollars", stops=70, marks=(100, 10e6, 100e6))
    price = Number("A GPU-hour", 3, 0.3, 15, family="dollars", stops=50, marks=(2, 2.21, 12.29), more=True,
                   help="Prices age fast: look yours up")
    overhead = Number("Overhead", 0.1, 0, 1, family="percent", stops=41, log=False, more=True,
                      help="Storage, network and GPUs that stand by, as a share of the bill")

    presets = {"512 GPUs, three weeks": {},
               "nanochat, $100": {"gpus": 8, "duration_s": 4 * HOUR, "ceiling": 100, "overhead": 0},
               "DeepSeek-V3 at its own price": {"gpus": DEEPSEEK.gpus, "duration_s": DEEPSEEK.duration_s,
                                                "ceiling": 6e6, "price": 2, "overhead": 0},
               "Llama 3.1 405B at $3": {"gpus": LLAMA.gpus, "duration_s": LLAMA.duration_s, "ceiling": 100e6,
                                        "overhead": 0}}
    break_it = "Let the run take a week longer. Does it still start?"
    assumptions = (
        "Every GPU is paid for all the time, working or not, at one price. Overhead comes on top, as a share. Not in "
        "it: people, data, the experiments before the run, and the runs that fail. Slanted lines are equal bills; dots "
        "are published runs by their GPUs and GPU-hours (Llama 3.1 model card; arXiv:2412.19437, Table 1; "
        "arXiv:2211.02001, Table 1; nanochat's README), not by what was paid.")
    formula = (
        r"$$D = N \cdot t \cdot c \cdot (1 + o), \qquad D \le D_{max}$$" "\n\n"
        "Dollars are GPUs times hours times the price of a GPU-hour, and the overhead on top. The guard compares "
        "before the first GPU starts. On axes that are both logarithmic, equal bills are straight lines: twice the "
        "GPUs for half the time cost the same.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
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

    # -- the picture ------------------------------------------------------------------------------------------------
    @part("ceiling", *RATE)
    def limit(self):
        along_s = cost.affordable_s(self.ceiling, ALONG, self.price, self.overhead)
        return {"gpus": ALONG, "longest_s": np.clip(along_s, DURATIONS_S[0], DURATIONS_S[1])}

    @part("ceiling", *RATE, shown=False)
    def limit_name(self):
        one_gpu_s = cost.affordable_s(self.ceiling, 1.0, self.price, self.overhead)
        _, (x, y) = fig.hyperbola_ends(one_gpu_s, GPUS, DURATIONS_S)
        return {"x": x, "y": y, "align": choose(x > 300, "right", "left"),
                "text": f"ceiling {show(self.ceiling, 'dollars')}"}

    @part(*RATE, shown=False)
    def bills(self):
        """Lines of equal bills, from edge to edge."""
        one_gpu_s = cost.affordable_s(BILLS, 1.0, self.price, self.overhead)
        (x0, y0), (x1, y1) = fig.hyperbola_ends(one_gpu_s, GPUS, DURATIONS_S)
        return {"x0": x0, "y0": y0, "x1": x1, "y1": y1, "text": [show(bill, "dollars") for bill in BILLS]}

    @part(*EVERY)
    def run(self):
        return {"gpus": self.gpus, "duration_s": self.duration_s, "dollars": self.bill(),
                "red": np.where(self.refused(), 1.0, 0.0),
                "align": choose(self.gpus > 3000, "right", "left"), "shift": np.where(self.gpus > 3000, -12.0, 12.0),
                "text": f"{show(self.bill(), 'dollars')}{choose(self.refused(), ' refused', '')}"}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(GPUS, DURATIONS_S, height=400, x_log=True, y_log=True, x_title="GPUs")
        fig.ticks(p.xaxis[0], [1, 10, 100, 1000, 1e4], "count")
        fig.ticks(p.yaxis[0], [HOUR, 10 * HOUR, 4 * DAY, 40 * DAY, 2 * YEAR], "seconds")
        p.grid.grid_line_color = None
        over = {key: fig.OVER[key] for key in fig.OVER if not key.startswith("line")} | {"hatch_scale": 28}
        on_panel = fig.ON_PANEL | {"background_fill_alpha": 1.0}       # labels stand on the hatching
        p.varea("gpus", "longest_s", DURATIONS_S[1], source=sources["limit"], **over)
        p.segment("x0", "y0", "x1", "y1", source=sources["bills"], line_color=color["axis"], line_alpha=0.5,
                  line_dash=[2, 4])
        p.text("x0", "y0", text="text", source=sources["bills"], x_offset=5, y_offset=16, **on_panel, **fig.LABEL)
        p.line("gpus", "longest_s", source=sources["limit"], line_color=color["over"], line_width=2)
        p.text("x", "y", text="text", source=sources["limit_name"], text_align="align", y_offset=-22, **on_panel,
               **fig.BOLD | {"text_color": color["over"]})
        at = [run.gpus for run in RUNS], [run.duration_s for run in RUNS]
        p.scatter(*at, size=8, fill_color=color["panel"], line_color=color["ink-soft"], line_width=1.6)
        for run, x, y in zip(RUNS, *at):
            p.text(x, y, text=[run.name], text_align=SIDE[run.key][0], x_offset=SIDE[run.key][1],
                   y_offset=SIDE[run.key][2], **on_panel, **fig.LABEL)
        run = sources["run"]
        p.segment("gpus", DURATIONS_S[0], "gpus", "duration_s", source=run, line_color=color["ink"], line_dash=[3, 3])
        p.segment(GPUS[0], "duration_s", "gpus", "duration_s", source=run, line_color=color["ink"], line_dash=[3, 3])
        p.scatter("gpus", "duration_s", size=15, source=run, fill_color=color["ink"], line_color=color["panel"],
                  line_width=1.5)
        p.scatter("gpus", "duration_s", size=24, marker="x", source=run, fill_color=None,
                  line_color=color["over"], line_width=4,
                  line_alpha="red")
        p.text("gpus", "duration_s", text="text", text_align="align", x_offset="shift", y_offset=16, source=run,
               **on_panel, **fig.BOLD)
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Bill")
    def total(self):
        return show(self.bill(), "dollars"), self.refused()

    @readout("GPU-hours")
    def hours(self):
        return show(self.gpu_hours(), "count")

    @readout("Of the ceiling")
    def against(self):
        return show(cost.against_budget(self.bill(), self.ceiling), "percent"), self.refused()

    @readout("Each day costs")
    def a_day(self):
        return show(cost.run_dollars(cost.gpu_hours(self.gpus, DAY), self.price, self.overhead), "dollars")

    @readout("The ceiling pays for")
    def pays_for(self):
        return show(self.pays_for_s(), "seconds")

    @regime(target=True)
    def refusal(self):
        fewer = cost.affordable_gpus(self.ceiling, self.duration_s, self.price, self.overhead)
        return self.refused(), (
            f"Refused: {show(self.over(), 'dollars')} over the ceiling of {show(self.ceiling, 'dollars')}, "
            f"{show(cost.over_budget_share(self.bill(), self.ceiling), 'percent')} too much. First response: stop "
            f"after {show(self.pays_for_s(), 'seconds')}, or take {show(fewer, 'count')} GPUs for the whole time; "
            "before you ask for more money, look for lost MFU (lesson 01) and lost goodput (above).")

    def summary(self):
        verdict = choose(self.refused(), f"{show(self.over(), 'dollars')} over the ceiling, and refused",
                         f"{show(cost.left_dollars(self.bill(), self.ceiling), 'dollars')} under the ceiling, and "
                         "allowed")
        gpus = f"{show(self.gpus, 'count')}{choose(self.gpus > 1, ' GPUs', ' GPU')}"
        return (f"This run takes {gpus} for {show(self.duration_s, 'seconds')}, "
                f"{show(self.gpu_hours(), 'count')} GPU-hours at {show(self.price, 'dollars')} and "
                f"{show(self.overhead, 'percent')} on top, and costs {show(self.bill(), 'dollars')}: {verdict}.")
