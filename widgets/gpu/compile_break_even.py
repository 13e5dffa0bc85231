"""Compile time against what a step saves: from which step on torch.compile is ahead, and for which shapes it
never is."""

import numpy as np

from engine import catalog
from engine.one_gpu import compilation
from engine.one_gpu.compilation import AUTOMATIC, OFF, ON
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, counted, phrase, show
from widgets.kit.widget import Widget, hint, part, readout, regime

FIRST, LAST = 1.0, 1e7
STEPS = np.round(np.geomspace(FIRST, LAST, 141))
STOPS = fig.one_two_five(FIRST, LAST)
VIEWS = [2.0, 4.0, 10.0]
MODES = [OFF, AUTOMATIC, ON]
NAMES, DASHES = ["off", "automatic", "on"], ["solid", [8, 4], [2, 3]]
LIST_AT = 0.93 - 0.075 * np.arange(3)  # of the frame's height
TIMED = catalog.compiled_steps()
SMALL, LARGE, SHARDED = (TIMED[key] for key in ("llama3.2-1b-b200", "llama3.1-8b-b200", "llama3.1-8b-8xh100"))
COST = ("compile_s", "shapes", "eager_s", "compiled_s", "any_size", "limit")


class CompileBreakEven(Widget):
    question = "From which step on is torch.compile ahead?"
    shapes = Number(
        "Distinct shapes",
        6,
        1,
        1000,
        stops=70,
        whole=True,
        marks=(1, 2, 8, 9, 12, 32, 36, 37, 64),
        help="Input sizes that a run cycles through",
    )
    dynamic = Choice(
        "Dynamic shapes",
        {"off": ("off", OFF), "automatic": ("automatic (default)", AUTOMATIC), "on": ("on", ON)},
        "off",
    )
    steps = Number("Steps in the run", 20000, 10, LAST, stops=80, whole=True, marks=(1000, 100000, 1e6))
    compile_s = Number(
        "One compilation",
        SMALL.cold_s,
        1,
        3600,
        family="seconds",
        stops=60,
        marks=(10, 60, 300, 600),
        more=True,
        help="Measured on a B200 with an empty cache (ml-engineering): 22 s for 1B, 47 s for 8B; "
        "with max-autotune 83 and 168 s",
    )
    eager_s = Number(
        "Step, eager",
        SMALL.eager_s,
        0.001,
        10,
        family="seconds",
        stops=60,
        marks=(LARGE.eager_s, SHARDED.eager_s),
        more=True,
    )
    compiled_s = Number(
        "Step, compiled",
        SMALL.compiled_s,
        0.001,
        10,
        family="seconds",
        stops=60,
        marks=(LARGE.compiled_s, SHARDED.compiled_s),
        more=True,
    )
    any_size = Number(
        "Step of a graph for any size",
        1.05,
        1,
        2,
        family="times",
        stops=41,
        log=False,
        more=True,
        help="Relative to a graph for that size; our assumption, not a measurement",
    )
    limit = Number(
        "Recompile limit",
        compilation.RECOMPILE_LIMIT,
        1,
        256,
        stops=[1, 2, 4, 8, 16, 32, 64, 128, 256],
        whole=True,
        more=True,
    )

    presets = {
        "1B on a B200, six shapes": {},
        "… one shape": {"shapes": 1},
        "8B, 8,192 tokens on a B200": {
            "shapes": 1,
            "eager_s": LARGE.eager_s,
            "compiled_s": LARGE.compiled_s,
            "compile_s": LARGE.cold_s,
        },
        "8B, FSDP on H100s": {
            "shapes": 1,
            "eager_s": SHARDED.eager_s,
            "compiled_s": SHARDED.compiled_s,
            "compile_s": LARGE.cold_s,
            "steps": 100000,
        },
        "64 shapes, on": {"shapes": 64, "dynamic": "on"},
    }
    break_it = (
        "With dynamic shapes off, find the number of shapes from which 20,000 steps no longer pay "
        "the compiler back."
    )
    assumptions = (
        "The shapes take turns, one a step. Every compilation takes as long as the first, and nothing comes "
        "out of a cache on disk. Past the limit a shape without a graph runs eagerly and one with a graph "
        f"keeps it, as recorded with {compilation.recorded_on()}. Step times are published ones: "
        "ml-engineering's of 1B and 8B on a B200 with Transformers recompute the whole forward in the "
        "backward (gradient checkpointing), torchtitan's with FSDP part of it. The time of one compilation "
        "is ml-engineering's first step with an empty cache; torchtitan gives none, so its preset borrows "
        "that of the other 8B."
    )
    formula = (
        "$$n_\\text{even} = \\frac{g\\,\\tau_\\text{compile}}{\\tau_\\text{eager} - "
        "\\bar{\\tau}}$$\n\n$$\\bar{\\tau} = \\frac{g\\,\\tau_\\text{compiled} + "
        "(v-g)\\,\\tau_\\text{eager}}{v}$$\n\n"
        "It pays from step $n_\\text{even}$ on. $g$ graphs at $\\tau_\\text{compile}$ each; "
        "$\\tau_\\text{eager}$ and $\\tau_\\text{compiled}$ are an eager and a compiled step. Off: $g = "
        "\\min(v, 8)$ for $v$ shapes, and what has no graph runs eagerly. Automatic: $g = 2$, the second for "
        "any size, which then serves all; on: $g = 1$. Then $\\bar{\\tau}$ is the compiled step. If "
        "$\\bar{\\tau} \\ge \\tau_\\text{eager}$ there is no such step."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def costs(self):
        return self.eager_s, self.compiled_s, self.any_size, self.limit

    def speed_up(self, steps, dynamic):
        return compilation.speed_up(steps, self.shapes, dynamic, self.compile_s, *self.costs())

    def curves_of(self):
        return [self.speed_up(STEPS, mode) for mode in MODES]

    def pays(self, dynamic):
        return compilation.pays(self.shapes, dynamic, *self.costs())

    def even(self, dynamic):
        return compilation.break_even_steps(self.shapes, dynamic, self.compile_s, *self.costs())

    def even_in_words(self, dynamic):
        return choose(
            self.pays(dynamic), f"ahead from step {show(self.even(dynamic), 'count')}", "never ahead"
        )

    def graphs(self, dynamic):
        return compilation.graphs(self.shapes, dynamic, self.limit)

    def here(self):
        return self.speed_up(self.steps, self.dynamic)

    def left_alone(self):
        """The share of steps without a graph."""
        return compilation.eager_share(self.shapes, self.dynamic, self.limit)

    def best(self):
        return compilation.pace(self.eager_s, self.compiled_s)

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*COST)
    def curves(self):
        off, automatic, on = self.curves_of()
        return {"step": STEPS, "off": off, "automatic": automatic, "on": on}

    @part("dynamic", *COST, shown=False)
    def chosen(self):
        return {"step": STEPS, "y": self.speed_up(STEPS, self.dynamic)}

    @part("dynamic", *COST, shown=False)
    def stops(self):
        return {"x": STOPS, "y": self.speed_up(STOPS, self.dynamic)}

    @hint("stops")
    def of_some_steps(self):
        off, automatic, on = (show(self.speed_up(STOPS, mode), "times") for mode in MODES)
        return phrase(
            "After {steps}: off {off}, automatic {automatic}, on {on}",
            steps=[f"{show(n, 'count')} {'step' if n == 1 else 'steps'}" for n in STOPS],
            off=off,
            automatic=automatic,
            on=on,
        )

    @part("steps", "dynamic", *COST, shown=False)
    def run(self):
        late = self.steps > 2e3
        free = late & (self.steps < 2.5e4)  # at the foot, right of the line: no curve, and room on a phone
        beside = late & (self.steps < 1e6)  # right of the curve, where none of the three runs
        line = (self.here() > 1.0) & (self.here() < 1.0 + 0.1 * self.axis_end())  # eager's, in its way
        under = np.where(line, 1.0, self.here())
        near = 0.08 * self.axis_end()  # the words at the foot, and those of the ceiling
        up = np.where(
            self.here() < near, -29.0, np.where(late & (self.here() > self.best() - near), 14.0, -14.0)
        )
        return {
            "x": self.steps,
            "y": self.here(),
            "label": np.where(beside, under, fig.above_line(self.here(), 1.0, self.axis_end())),
            "text": f"{show(self.here(), 'times')}",
            "side": choose(late & ~beside, "right", "left"),
            "aside": np.where(late & ~beside, -9.0, 9.0),
            "down": np.where(beside, 14.0, up),
            "end": f"after {show(self.steps, 'count')} steps",
            "align": choose(late & ~free, "right", "left"),
            "shift": np.where(late & ~free, -9.0, 9.0),
        }

    @hint("run")
    def of_the_run(self):
        whole = compilation.total_s(self.steps, self.shapes, self.dynamic, self.compile_s, *self.costs())
        compiler = compilation.compiling_s(self.steps, self.shapes, self.dynamic, self.compile_s, self.limit)
        return [
            (
                f"The whole run takes {show(whole, 'seconds')}, of them {show(compiler, 'seconds')} in the "
                f"compiler, and eager {show(self.here(), 'times')} as long"
            )
        ]

    @part("dynamic", *COST, shown=False)
    def crossing(self):
        at = self.even(self.dynamic)
        seen = self.pays(self.dynamic) & (at < LAST)
        return {"x": np.clip(at, FIRST, LAST), "seen": np.where(seen, 1.0, 0.0)}

    @hint("crossing")
    def of_the_crossing(self):
        at, made = self.even(self.dynamic), self.graphs(self.dynamic)
        graphs = choose(made == 1, "one graph", f"{show(made, 'count')} graphs")
        return [
            choose(
                self.pays(self.dynamic) & (at < LAST),
                f"Break-even: {show(at, 'count')} {choose(at > 1, 'steps', 'step')} have saved the "
                f"{show(made * self.compile_s, 'seconds')} that compiling {graphs} took",
                "",
            )
        ]

    @part("dynamic", *COST)
    def ways(self):
        counts = np.stack([self.graphs(mode) for mode in MODES])
        words = [choose(counts[i] > 1, "graphs", "graph") for i in range(3)]
        return {
            "y": LIST_AT,
            "graphs": counts,
            "even": [self.even_in_words(mode) for mode in MODES],
            "text": [
                f"{NAMES[i]}: {show(counts[i], 'count')} {words[i]}, {self.even_in_words(MODES[i])}"
                for i in range(3)
            ],
            "narrow": [
                f"{NAMES[i]}: {choose(self.pays(MODES[i]), show(self.even(MODES[i]), 'params'), 'never')}"
                for i in range(3)
            ],
            "strength": [np.where(self.dynamic == mode, 1.0, 0.75) for mode in MODES],
        }

    @part("eager_s", "compiled_s", shown=False)
    def ceiling(self):
        return {
            "y": self.best(),
            "text": f"a compiled step: {show(self.best(), 'times')}",
            "shift": np.where(self.best() < 1, 27.0, -11.0),
        }

    def axis_end(self):
        return fig.fitting_view(self.best(), VIEWS)

    def ranges(self):
        return {"y": [0.0, self.axis_end()]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(
            (FIRST, LAST),
            (0, VIEWS[1]),
            height=420,
            x_log=True,
            x_title="steps so far",
            y_title="speed-up over eager, compiling included",
        )
        fig.ticks(p.xaxis[0], [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7], "params")
        p.quad(
            left=FIRST, right=LAST, bottom=0, top=1, fill_color=color["ink"], fill_alpha=0.05, line_color=None
        )
        p.line([FIRST, LAST], [1, 1], line_color=color["ink"], line_width=1.5)
        name = {"level": "annotation"} | fig.LABEL | fig.ON_PANEL  # a curve may pass there
        p.text([FIRST], [1], text=["eager"], y_offset=-11, x_offset=6, **name)
        ceiling = sources["ceiling"]
        p.segment(3e4, "y", LAST, "y", source=ceiling, line_color=color["ink-faint"], line_dash=[6, 4])
        fig.only(
            "wide",
            p.text(
                LAST,
                "y",
                text="text",
                source=ceiling,
                text_align="right",
                y_offset="shift",
                x_offset=-6,
                **fig.LABEL | fig.ON_PANEL,
            ),
        )
        p.line(
            "step", "y", source=sources["chosen"], line_color=color["compute"], line_width=7, line_alpha=0.22
        )
        for name, dash in zip(NAMES, DASHES):
            p.line(
                "step",
                name,
                source=sources["curves"],
                line_color=color["compute"],
                line_width=2,
                line_dash=dash,
            )
        fig.stops(p, sources["stops"])
        still = fig.still_height(p)
        ways = sources["ways"]
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(
                width,
                p.text(
                    10,
                    "y",
                    text=column,
                    source=ways,
                    text_alpha="strength",
                    **still,
                    **fig.TEXT | fig.ON_PANEL,
                ),
            )
        for y, dash in zip(LIST_AT, DASHES):
            p.line([1.7, 7], [y, y], line_color=color["compute"], line_width=2, line_dash=dash, **still)
        crossing, run = sources["crossing"], sources["run"]
        p.scatter(
            "x",
            1,
            source=crossing,
            size=10,
            fill_color=color["panel"],
            fill_alpha="seen",
            line_color=color["ink"],
            line_alpha="seen",
            line_width=2,
        )
        p.segment("x", 0, "x", "y", source=run, line_color=color["ink"], line_dash=[4, 3])
        p.scatter("x", "y", source=run, size=11, fill_color=color["compute"], line_color=color["ink"])
        place = {"text_align": "align", "x_offset": "shift", "source": run}
        here = {"text_align": "side", "x_offset": "aside", "y_offset": "down", "source": run}
        p.text("x", "label", text="text", **here, **fig.BOLD | fig.ON_PANEL)
        p.text("x", 0, text="end", y_offset=-12, **place, **fig.TEXT | fig.ON_PANEL)
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Compiled is")
    def ahead(self):
        return self.even_in_words(self.dynamic), self.here() < 1

    @readout("Compiling")
    def compiling(self):
        return show(
            compilation.compiling_s(self.steps, self.shapes, self.dynamic, self.compile_s, self.limit),
            "seconds",
        )

    @readout("Steps without a graph")
    def alone(self):
        return show(self.left_alone(), "percent"), self.left_alone() > 0

    @readout("Over the whole run", rest=True)
    def over(self):
        return show(self.here(), "times"), self.here() < 1

    @regime(target=True)
    def never_pays_back(self):
        beyond = (self.left_alone() > 0) & self.pays(ON)
        return (self.here() < 1) & beyond, (
            f"You found shapes that do not pay back: {show(self.shapes, 'count')} of them, "
            f"{show(self.graphs(self.dynamic), 'count')} graphs, and {show(self.left_alone(), 'percent')} of "
            f"the steps still eager. After {show(self.steps, 'count')} steps the run is at "
            f"{show(self.here(), 'times')} of eager. First response: dynamic shapes, or padding to a few "
            "sizes (lesson 19 does that with buckets)."
        )

    @regime()
    def slower(self):
        return self.compiled_s >= self.eager_s, (
            "The compiled step is no faster: there is nothing to pay back with. Its time is in kernels that "
            "no fusion shortens. First response: profile; leave it eager."
        )

    @regime()
    def too_short(self):
        return (self.here() < 1) & self.pays(self.dynamic) & (self.left_alone() <= 0), (
            f"The run ends too early: it would be {self.even_in_words(self.dynamic)}. First response: "
            "compile one block instead of the whole model, or bring a warm cache."
        )

    def summary(self):
        made, here = self.graphs(self.dynamic), self.here()
        return (
            f"Compiled is {self.even_in_words(self.dynamic)}: over {show(self.steps, 'count')} steps it runs "
            f"at {show(here, 'times')}{choose(here < 0.1, ' of', '')} eager's speed, "
            f"{counted(made, 'compilation', 'compilations')} included."
        )


CompileBreakEven.serve_as(__name__)
