"""What failures leave of a run, over the interval between checkpoints: the optimum, and the wall behind
it."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.base.units import DAY, HOUR, MINUTE, YEAR
from engine.mechanism import reliability
from widgets.kit.controls import Number
from widgets.kit.drawing import beside
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

SHORTEST, LONGEST = 10.0, 4 * DAY
INTERVALS = np.geomspace(SHORTEST, LONGEST, 121)
STOPS = np.array(
    [
        *(n * 1.0 for n in (10, 20, 30)),
        *(n * MINUTE for n in (1, 2, 5, 10, 20, 30)),
        *(n * HOUR for n in (1, 2, 5, 10)),
        *(n * DAY for n in (1, 2, 4)),
    ]
)
TICKS = [10.0, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, 4 * DAY]
RUNS = list(catalog.all_interruptions().values())
RAIL, LEADERS, TOP = 1.13, np.array([1.27, 1.41, 1.27]), 1.62
NAMES, NAMED_AT, NAMED_ENDS = (
    ["useful", "writing", "done again", "coming back"],
    np.array([1.25, 1.25, 2.7e4, 2.7e4]) * SHORTEST,
    np.array([beside.LEFT, beside.LEFT, beside.RIGHT, beside.RIGHT]),
)
SPENT = "{useful} of the time useful, {writing} writing, {again} done again, {back} coming back"
HOPELESS = 0.1  # of useful time at best: no advice on intervals is worth giving
MUCH = 0.1  # of the time: a loss worth a sentence
INSIDE = beside.Frame(47.0, 365.0)
ASIDE = beside.around(8.0, 0.0, first=beside.RIGHT)[:2]  # of a line, left of it first
HARDLY = 1.5e-5  # of useful time: from there down it is told in more words
NAMES_PX = np.array([beside.width(name, bold=True) for name in NAMES])
WORDS_PX = {
    width: {name: beside.width(words, bold=True) for name, words in said.items()}
    for width, said in {
        "wide": {
            "chosen": "78.7 % useful",
            "hardly": "under 0.001 % useful",
            "best": "best: 85.3 % at 18.6 min",
            "young": "√(2δM)",
            "restart": "back in 10 min",
            "failure": "a failure every 23.2 min",
            "thin": "on top: coming back, 5.2 %",
        },
        "narrow": {
            "chosen": "78.7 %",
            "hardly": "under 0.001 %",
            "best": "best: 18.6 min",
            "young": "√(2δM)",
            "restart": "back in 10 min",
            "failure": "a failure every 23.2 min",
            "thin": "on top: coming back",
        },
    }.items()
}
ROWS = {"chosen": 0.33, "best": 0.2, "young": 0.07, "failure": 1.54, "restart": 1.065}  # where words stand
TICK = 0.04  # half the height of a tick, where the picture of shares is 1 high
THIN, UNSEEN = 0.06, 0.002  # bands in which a name has no room, and that nobody sees
LLAMA3_PER_YEAR = reliability.LLAMA3_FAILURES_PER_GPU_S * YEAR
EVERY = ("gpus", "checkpoint_s", "interval_s", "restart_s", "per_gpu_year")
CLOCK = ("gpus", "per_gpu_year")


class Goodput(Widget):
    question = "How much of a run do failures leave, and how often should it write a checkpoint?"
    gpus = Number("GPUs", 16384, 8, 1e6, stops=90, whole=True, marks=(512, 2048, 24576, 131072))
    checkpoint_s = Number(
        "Writing a checkpoint",
        60,
        1,
        HOUR,
        family="seconds",
        stops=60,
        marks=(10, 600),
        help="The time that training waits; for a checkpoint written in the background, what is left of it",
    )
    interval_s = Number(
        "Between checkpoints",
        HOUR,
        SHORTEST,
        2 * DAY,
        family="seconds",
        stops=80,
        marks=(MINUTE, 10 * MINUTE, 3 * HOUR, DAY),
    )
    restart_s = Number(
        "Coming back",
        600,
        5,
        4 * HOUR,
        family="seconds",
        stops=60,
        marks=(60, 1800, 3600),
        more=True,
        help="From the failure to the next step: detect, replace, load, start",
    )
    per_gpu_year = Number(
        "Failures per GPU and year", LLAMA3_PER_YEAR, 0.02, 5, stops=60, marks=(0.107, 0.297), more=True
    )

    presets = {
        "Llama 3, 16,384 GPUs": {},
        "512 GPUs": {"gpus": 512, "interval_s": 3 * HOUR},
        "131,072 GPUs, as they are": {"gpus": 131072, "interval_s": 600},
        "… and with fast recovery": {
            "gpus": 131072,
            "checkpoint_s": 5,
            "restart_s": 60,
            "interval_s": MINUTE,
        },
    }
    break_it = "Add GPUs until the next failure comes before the last one is dealt with."
    assumptions = (
        "Failures are independent and come at the same rate at any time, also during a checkpoint or a "
        "restart; each stops the whole job, which goes on from its last checkpoint. The rate is Llama 3's, "
        "419 unexpected interruptions in 54 days on 16,384 GPUs (arXiv:2407.21783, section 3.3.4). Dots are "
        "published runs on so many GPUs as stand beside them: OPT-175B's logbook and Meta's RSC-1 "
        "(arXiv:2410.21680) count failures of all causes. Left out: planned stops, stragglers, and what a "
        "step itself wastes."
    )
    formula = (
        r"$$G = e^{-R/M}\cdot\frac{x}{e^x-1}\cdot\frac{\tau}{\tau+\delta}$$"
        "\n\n"
        r"$$x = \frac{\tau+\delta}{M}, \quad M = \frac{1}{N\,\lambda}, "
        r"\quad \tau_{best} \approx \sqrt{2\,\delta\,M}$$"
        "\n\n"
        "The share of the time not spent coming back, of it the share that is kept, of that the share not "
        "spent on "
        r"writing. $N$ GPUs fail at a rate of $\lambda$ each; $\tau$ is the interval, $\delta$ the time to "
        r"write, $R$ "
        "the time to come back (Daly 2006). For rare failures it is the textbook's "
        r"$1 - \delta/\tau - \tau/2M - R/M$, whose best interval is the root (Young 1974)."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def mtbf_s(self):
        return reliability.mean_time_between_failures_s(self.gpus, reliability.per_s(self.per_gpu_year))

    def shares(self, interval_s):
        return reliability.shares(interval_s, self.checkpoint_s, self.mtbf_s(), self.restart_s)

    def useful(self):
        return self.shares(self.interval_s)[0]

    def best_s(self):
        return reliability.best_interval_s(self.checkpoint_s, self.mtbf_s())

    def best_useful(self):
        return self.shares(self.best_s())[0]

    def lost_s(self):
        return reliability.lost_per_failure_s(self.interval_s, self.checkpoint_s, self.mtbf_s())

    def young_s(self):
        return reliability.young_interval_s(self.checkpoint_s, self.mtbf_s())

    # -- where the words stand -------------------------------------------------------------------------------
    def across(self, interval_s):
        """Where an interval lies, as a share of the frame."""
        return fig.share_of_decades(np.clip(interval_s, SHORTEST, LONGEST), SHORTEST, LONGEST)

    def stem(self, interval_s, low, high):
        """What a vertical line takes of the picture."""
        high_px = (high - low) / TOP * INSIDE.height
        return beside.Boxes(self.across(interval_s), low / TOP, -2.0, 2.0, 0.0, high_px)

    @once
    def words_in_bands(self):
        """Where the words beside the three lines in the bands stand, by the picture's width: each off the
        bands' names, the lines and the words before it. ``clear`` are the names that none of them had to
        cover."""
        names, found = self.names_at(), {}
        hardly = np.where(self.useful() < HARDLY, 1.0, 0.0)
        for width, said in WORDS_PX.items():
            in_bands = beside.words(self.across(names["x"]), names["y"] / TOP, NAMES_PX, NAMED_ENDS)
            lines = (
                self.stem(self.best_s(), 0.0, self.best_useful()),
                self.stem(self.interval_s, 0.0, self.useful()),
            )
            taken, columns = [in_bands, *lines], {}
            chosen_px = fig.between(said["chosen"], said["hardly"], hardly)
            for name, at, px in (
                ("chosen", self.interval_s, chosen_px),
                ("best", self.best_s(), said["best"]),
                ("young", self.young_s(), said["young"]),
            ):
                place = self.across(at), ROWS[name] / TOP
                columns[name], box = beside.spot(*place, px, ASIDE, INSIDE, beside.together(*taken), of=width)
                taken.append(box)
            columns["clear"] = beside.free(in_bands, beside.together(*taken[3:]), INSIDE, width)
            found[width] = columns
        return found

    def words_beside(self, name):
        placed = self.words_in_bands()
        return placed["wide"][name] | placed["narrow"][name]

    # -- the picture -----------------------------------------------------------------------------------------
    @part("gpus", "checkpoint_s", "restart_s", "per_gpu_year")
    def bands(self):
        tops = np.cumsum(self.shares(INTERVALS), axis=-1)
        return {"interval_s": INTERVALS, "useful": tops[:, 0], "writing": tops[:, 1], "again": tops[:, 2]}

    @part("gpus", "checkpoint_s", "restart_s", "per_gpu_year", shown=False)
    def stops(self):
        return {"x": STOPS, "y": self.shares(STOPS)[:, 0]}

    @hint("stops")
    def of_an_interval(self):
        shares = self.shares(STOPS)
        return phrase(
            "Every {interval}: " + SPENT,
            interval=show(STOPS, "seconds"),
            **{
                name: show(shares[:, i], "percent")
                for i, name in enumerate(("useful", "writing", "again", "back"))
            },
        )

    def names_at(self):
        """Where the bands' names stand: each in the middle of its band at one end."""
        bottom, top = fig.stacked(self.shares(NAMED_AT).T)
        middle = np.stack([fig.midpoint(bottom[i, i], top[i, i]) for i in range(4)])
        return {"x": NAMED_AT, "y": middle, "align": ["left", "left", "right", "right"]}

    @part(*EVERY, shown=False)
    def names(self):
        """The bands' names; none where its band is thin, or where the words beside a line cover it."""
        shares, placed = self.shares(NAMED_AT), self.words_in_bands()
        return self.names_at() | {
            width: [choose((shares[i, i] > THIN) & placed[width]["clear"][i], NAMES[i], "") for i in range(4)]
            for width in placed
        }

    @part("gpus", "checkpoint_s", "restart_s", "per_gpu_year", shown=False)
    def thin(self):
        """The name of the uppermost band where it has no room in it, above it."""
        back = self.shares(NAMED_AT[3])[3]
        seen = (back <= THIN) & (back > UNSEEN)
        name = f"on top: {NAMES[3]}"
        return {
            "x": LONGEST,
            "text": choose(seen, f"{name}, {show(back, 'percent', 2)}", ""),
            "short": choose(seen, name, ""),
        }

    @part(*EVERY, shown=False)
    def best(self):
        return {
            "x": np.clip(self.best_s(), SHORTEST, LONGEST),
            "y": self.best_useful(),
            "text": f"best: {show(self.best_useful(), 'percent')} at {show(self.best_s(), 'seconds')}",
            "short": f"best: {show(self.best_s(), 'seconds')}",
        } | self.words_beside("best")

    def spent(self, interval_s):
        shares = self.shares(interval_s)
        useful, writing, again, back = (show(shares[i], "percent") for i in range(4))
        spent = SPENT.format(useful=useful, writing=writing, again=again, back=back)
        return f"every {show(interval_s, 'seconds')}: {spent}"

    @hint("best")
    def of_the_best(self):
        return [f"The best interval, {self.spent(self.best_s())}"]

    @part(*EVERY, shown=False)
    def young(self):
        return {"x": np.clip(self.young_s(), SHORTEST, LONGEST)} | self.words_beside("young")

    @part(*EVERY, shown=False)
    def chosen(self):
        return {
            "x": self.interval_s,
            "y": self.useful(),
            "text": f"{show(self.useful(), 'percent')} useful",
            "short": show(self.useful(), "percent"),
        } | self.words_beside("chosen")

    @hint("chosen")
    def of_the_chosen(self):
        return [f"Your interval, {self.spent(self.interval_s)}"]

    @part()
    def published(self):
        """How often published runs failed, above the bands."""
        return {
            "name": [run.name for run in RUNS],
            "gpus": np.array([float(run.gpus) for run in RUNS]),
            "mtbf_s": np.array([run.mtbf_s for run in RUNS]),
        }

    @hint("published")
    def of_a_published_run(self):
        return [
            f"{run.name}: {show(run.gpus, 'count')} GPUs, a failure every {show(run.mtbf_s, 'seconds')}"
            for run in RUNS
        ]

    def words_on_the_rail(self, name, at_s):
        """Where words beside a tick of the rail stand, and what they take."""
        place, line = (self.across(at_s), ROWS[name] / TOP), self.stem(self.mtbf_s(), RAIL - TICK, TOP - 0.06)
        found = {}
        for width, said in WORDS_PX.items():
            thin = beside.words(1.0, 1.0 / TOP, said["thin"], beside.RIGHT, -8.0, -11.0)
            taken = beside.together(line, thin)
            found |= beside.spot(*place, said[name], ASIDE, INSIDE, taken, of=width)[0]
        return found

    @part(*CLOCK, shown=False)
    def failure(self):
        return {
            "x": np.clip(self.mtbf_s(), SHORTEST, LONGEST),
            "text": f"a failure every {show(self.mtbf_s(), 'seconds')}",
        } | self.words_on_the_rail("failure", self.mtbf_s())

    @part("restart_s", *CLOCK, shown=False)
    def restart(self):
        """The end of the restart; its words keep clear of the failure's line."""
        words = f"back in {show(self.restart_s, 'seconds', 2)}"
        at = np.clip(self.restart_s, SHORTEST, LONGEST)
        return {"x": at, "text": words} | self.words_on_the_rail("restart", self.restart_s)

    @part("gpus", "checkpoint_s", "restart_s", "per_gpu_year", shown=False)
    def pile(self):
        """The time that goes into restarting, marked where that is the wall."""
        back = self.shares(SHORTEST)[3]
        wall = reliability.restarts_pile_up(self.restart_s, self.mtbf_s())
        return {"bottom": np.where(wall, 1.0 - back, 1.0), "seen": np.where(wall, 1.0, 0.0)}

    @staticmethod
    def rail(p, sources):
        """Above the bands, on the same axis of time: when failures come, here and in published runs."""
        color = fig.COLOR
        p.segment(SHORTEST, RAIL, LONGEST, RAIL, line_color=color["axis"])
        at = [run.mtbf_s for run in RUNS]
        p.segment(at, RAIL, at, LEADERS, line_color=color["axis"], line_dash=[2, 3])
        p.scatter(
            "mtbf_s",
            RAIL,
            source=sources["published"],
            size=9,
            fill_color=color["panel"],
            line_color=color["ink"],
            line_width=1.6,
        )
        failure, restart = sources["failure"], sources["restart"]
        p.segment("x", RAIL - TICK, "x", TOP - 0.06, source=failure, line_color=color["ink"], line_width=3)
        p.segment("x", RAIL - TICK, "x", RAIL + TICK, source=restart, line_color=color["ink"], line_width=2)

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((SHORTEST, LONGEST), (0, TOP), height=430, x_log=True, x_title="Between checkpoints")
        fig.ticks(p.xaxis[0], TICKS, "seconds")
        fig.ticks(p.yaxis[0], [0, 0.25, 0.5, 0.75, 1], "percent")
        p.grid.grid_line_color = None
        bands = sources["bands"]
        p.varea("interval_s", 0, "useful", source=bands, fill_color=color["compute"], fill_alpha=0.34)
        p.varea("interval_s", "useful", "writing", source=bands, fill_color=color["network"], fill_alpha=0.4)
        p.varea("interval_s", "writing", "again", source=bands, fill_color=color["compute"], fill_alpha=0.12)
        p.varea("interval_s", "again", 1, source=bands, fill_color=fig.IDLE["fill_color"])
        p.quad(
            left=SHORTEST,
            right=LONGEST,
            bottom="bottom",
            top=1,
            source=sources["pile"],
            **fig.OVER | {"line_alpha": "seen"},
        )
        p.line("interval_s", "useful", source=bands, line_color=color["compute"], line_width=2.5)
        fig.stops(p, sources["stops"])
        self.rail(p, sources)
        self.intervals(p, sources)
        self.labels(p, sources)  # last, so that no line strikes them through
        return p

    @staticmethod
    def intervals(p, sources):
        """The best interval and the chosen one, each up to the curve, and a tick for Young's rule."""
        color = fig.COLOR
        up = {"x0": "x", "y0": 0, "x1": "x", "y1": "y"}
        p.segment(**up, source=sources["best"], line_color=color["accent"], line_dash=[6, 4], line_width=1.6)
        p.segment(**up, source=sources["chosen"], line_color=color["ink"], line_width=2)
        young = up | {"y1": 2 * TICK}
        p.segment(**young, source=sources["young"], line_color=color["accent"], line_width=3)
        best = {"fill_color": color["panel"], "line_color": color["accent"], "line_width": 2}
        p.scatter("x", "y", marker="diamond", size=15, source=sources["best"], **best)
        chosen = {"fill_color": color["ink"], "line_color": color["panel"], "line_width": 1.5}
        p.scatter("x", "y", size=11, source=sources["chosen"], **chosen)

    @staticmethod
    def labels(p, sources):
        """Everything that is written in the picture, over all of its lines."""
        color, failure, restart, best = fig.COLOR, sources["failure"], sources["restart"], sources["best"]
        at, names = [run.mtbf_s for run in RUNS], [f"{run.name}, {run.gpus:,} GPUs" for run in RUNS]
        on_panel, on_band = fig.ON_PANEL | fig.LABEL, fig.ON_PANEL | {"background_fill_alpha": 0.6} | fig.BOLD
        for width in ("wide", "narrow"):
            fig.only(
                width, p.text("x", "y", text=width, text_align="align", source=sources["names"], **on_band)
            )
        fig.only(
            "wide",
            p.text(at[:1], LEADERS[:1], text=names[:1], text_align="right", x_offset=-8, **on_panel),
            p.text(at[1:], LEADERS[1:], text=names[1:], x_offset=-4, y_offset=-9, **on_panel),
        )
        fig.only(
            "narrow",
            p.text(at[:1], LEADERS[:1], text=[RUNS[0].name], text_align="right", x_offset=-5, **on_panel),
        )
        above = {"text_align": "right", "x_offset": -8, "y_offset": -11} | on_panel
        accent = {"text_color": color["accent"]}
        for width, text in (("wide", "text"), ("narrow", "short")):
            placed = beside.placed(width) | fig.ON_PANEL
            fig.only(
                width,
                p.text("x", ROWS["failure"], text="text", source=failure, **placed, **fig.BOLD),
                p.text("x", ROWS["restart"], text="text", source=restart, **placed, **fig.LABEL),
                p.text("x", 1.0, text=text, source=sources["thin"], **above),
                p.text(
                    "x",
                    ROWS["young"],
                    text=value("√(2δM)"),
                    source=sources["young"],
                    **placed,
                    **fig.TEXT | accent,
                ),
                p.text("x", ROWS["best"], text=text, source=best, **placed, **fig.BOLD | accent),
                p.text("x", ROWS["chosen"], text=text, source=sources["chosen"], **placed, **fig.BOLD),
            )

    # -- the words -------------------------------------------------------------------------------------------
    @readout("A failure every", rest=True)
    def every(self):
        return show(self.mtbf_s(), "seconds"), reliability.restarts_pile_up(self.restart_s, self.mtbf_s())

    @readout("Useful", rest=True)
    def useful_now(self):
        return show(self.useful(), "percent")

    @readout("Best interval")
    def best_interval(self):
        return show(self.best_s(), "seconds")

    @readout("Useful at best")
    def useful_at_best(self):
        return show(self.best_useful(), "percent"), self.best_useful() < 0.5

    @readout("As if idle")
    def idle(self):
        return f"{show(reliability.idle_gpus(self.gpus, self.useful()), 'count')} GPUs"

    @regime(target=True)
    def wall(self):
        back = self.shares(self.interval_s)[3]
        return reliability.restarts_pile_up(self.restart_s, self.mtbf_s()), (
            f"Failures overtake the recovery: one comes every {show(self.mtbf_s(), 'seconds')}, coming back "
            f"takes {show(self.restart_s, 'seconds')}, and {show(back, 'percent')} of the time goes into it "
            "at any interval. First response: restart what failed and not the job (spare nodes, state from a "
            "neighbour's memory); checkpoints cannot help here."
        )

    def recovery_is_worst(self):
        _, writing, again, back = self.shares(self.interval_s)
        largest = (back > MUCH) & (back > writing) & (back > again)
        return largest & ~reliability.restarts_pile_up(self.restart_s, self.mtbf_s())

    @regime()
    def recovery(self):
        back = self.shares(self.interval_s)[3]
        return self.recovery_is_worst(), (
            f"Coming back is the largest loss: {show(self.restart_s, 'seconds')} of every "
            f"{show(self.mtbf_s(), 'seconds')} between failures, {show(back, 'percent')} of the time. First "
            "response: spare nodes, and state from a neighbour's memory. The best interval alone leaves "
            f"{show(self.best_useful(), 'percent')} useful, now it is {show(self.useful(), 'percent')}."
        )

    def far(self):
        """Above 0 where the interval is too long, below where too short; 0 where it hardly matters."""
        far = reliability.far_from_best(self.interval_s, self.best_s(), self.useful(), self.best_useful())
        return np.where((self.best_useful() > HOPELESS) & ~self.recovery_is_worst(), far, 0.0)

    @regime()
    def seldom(self):
        return self.far() > 0, (
            f"You write too seldom: each failure throws away {show(self.lost_s(), 'seconds')} on average. "
            f"First response: every {show(self.best_s(), 'seconds', 2)}, "
            f"{show(self.best_useful(), 'percent')} useful instead of {show(self.useful(), 'percent')}."
        )

    @regime()
    def often(self):
        return self.far() < 0, (
            f"You write too often: {show(self.checkpoint_s, 'seconds')} for every "
            f"{show(self.interval_s, 'seconds')} of work. First response: every "
            f"{show(self.best_s(), 'seconds', 2)}, {show(self.best_useful(), 'percent')} useful instead of "
            f"{show(self.useful(), 'percent')}; or write in the background."
        )

    def summary(self):
        return (
            f"{show(self.gpus, 'count')} GPUs fail every {show(self.mtbf_s(), 'seconds')}: checkpoints every "
            f"{show(self.interval_s, 'seconds')} leave {show(self.useful(), 'percent')} useful, every "
            f"{show(self.best_s(), 'seconds')} {show(self.best_useful(), 'percent')}."
        )


Goodput.serve_as(__name__)
