"""A weight trained in a narrow format: the updates that round away, and three ways to keep them."""

import numpy as np
from bokeh.core.properties import value

from engine.executed import rounded_training as run
from engine.mechanism.precision import FORMATS
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

RIVALS = {  # none is a resource: line style and width tell them apart
    "plain": ("solid", 3),
    "stochastic": ("solid", 1),
    "compensated": ([8, 3], 1.6),
    "master": ([2, 3], 2.2),
}
CURES = "unrounded; by chance, Kahan and fp32 master keep close to it"
TOP, BOTTOM = 2.2, 0.86  # there is room for words under a weight that never moved
CLEAR = 0.09  # between two lines whose words are between them
EARLY, BESIDE = 0.5, 0.29  # of the steps: a stall up to there has room on its right, also with a name there


class LostUpdates(Widget):
    question = "Which updates arrive in a weight of few bits?"
    in_page = True
    rate = Number("Learning rate", 0.01, 1e-5, 0.5, family="real", stops=80, marks=(1e-4, 1e-3, 0.1))
    steps = Number("Steps", 1000, 10, run.MOST_STEPS, stops=60, whole=True)
    format = Choice("Format of the weight", list(FORMATS), "bf16")
    seed = Number("Seed of the chances", 1, 1, 40, stops=40, log=False, whole=True, more=True)

    presets = {
        "bf16": {},
        "fp16": {"format": "fp16"},
        "fp8 E4M3, rate 0.1": {"format": "e4m3", "rate": 0.1, "steps": 100},
        "fp32, 1e−3": {"format": "fp32", "rate": 1e-3, "steps": 4000},
    }
    break_it = "Lower the rate until not one update arrives: the first of them is as large as the rate."
    assumptions = (
        "Gradient descent takes one weight from 1 towards 2, and each update is the rate times the distance "
        "that is left. *To nearest* rounds the update and the sum to the format. *By chance* rounds the sum "
        "up or down with the odds of its distance. *Kahan* keeps in a second number of the format what each "
        "sum has lost. *fp32 master* adds in fp32 and shows the copy in the format, at which the gradient "
        "is taken. The last move may end up to a gap past the dashed line; in E4M3 at a rate of 0.1 it "
        "starts at 1.375, where the sum lies just in the middle, and goes to 1.5, the even neighbour. No "
        "momentum, no noise: a real gradient's noise hides the stall, and does not cure it."
    )
    formula = (
        r"$$w + u \;\to\; w \quad\text{if}\quad |u| < \tfrac12\,2^{\,e-b-m}$$"
        "\n\n"
        "$u$ is an update, $e$ the exponent field of $w$, $b$ its bias, $m$ the bits of the mantissa: "
        "rounding to the nearest number gives back $w$ where the update is under half a gap (from the "
        "middle, where $w$'s last bit is 0; from a power of two towards 0 the gap is half as wide). With $u "
        "= \\eta\\,(2-w)$ descent stalls at a distance of $2^{e-b-m}/(2\\eta)$."
    )

    @once
    def found(self):
        return run.trained(
            self.format.exponent_bits, self.format.mantissa_bits, self.rate, self.steps, self.seed
        )

    def stall(self):
        return run.stall_level(self.format.half_gap_at_one, self.rate)

    def last(self, name):
        return self.found()[name][run.SHOWN - 1]

    # -- the picture -----------------------------------------------------------------------------------------
    @part("rate", "steps", "format", "seed")
    def curves(self):
        found = self.found()
        return {name: found[name] for name in ("step", "exact", *RIVALS)}

    @hint("curves")
    def at_a_step(self):
        found = self.found()
        return phrase(
            "step {s}: exact {e}, to nearest {n}, by chance {c}, Kahan {k}, fp32 master {m}",
            s=show(found["step"], "count"),
            e=show(found["exact"], "real", 5),
            n=show(found["plain"], "real", 5),
            c=show(found["stochastic"], "real", 5),
            k=show(found["compensated"], "real", 5),
            m=show(found["master"], "real", 5),
        )

    @part("rate", "steps", "format", "seed")
    def end(self):
        return {
            "x": self.steps,
            "y": self.last("plain"),
            "text": f"rounded to nearest: {show(self.last('plain'), 'real', 4)}",
            "below": np.where(self.near(), 14.0, -15.0),
            "cures": np.maximum(self.last("exact"), self.last("plain") + CLEAR),
        }

    @part("rate", "format", "steps", "seed")
    def limit(self):
        """The weight from which updates are under half a gap, and words where the rounded one gets there."""
        landed = self.found()["landed"]
        early, near = landed <= EARLY * self.steps, self.near()
        stalls = (landed < self.steps) & ((landed <= BESIDE * self.steps) | ~near)
        return {
            "x0": 0.0,
            "x1": self.steps,
            "y": self.stall(),
            "at": np.where(early, landed, self.steps),
            "text_y": self.last("plain"),
            "align": choose(early, "left", "right"),
            "aside": np.where(early & (landed > 0), 22.0, np.where(early, 6.0, -6.0)),
            "text": choose(
                stalls,
                choose(
                    landed > 0,
                    f"from step {show(landed, 'count')} on updates are under half a gap",
                    "every update is under half a gap",
                ),
                "",
            ),
            "short": choose(stalls & ~near, "under half a gap", ""),
        }

    def near(self):
        """Whether the exact weight ends so little above the rounded one that no name fits between them."""
        above = self.last("exact") - self.last("plain")
        return (above > run.ALIKE) & (above < CLEAR)

    def ranges(self):
        return {"x": [0.0, self.steps * 1.03]}

    def figure(self, sources):
        p = fig.plot((0, 1030), (BOTTOM, TOP), height=400, x_title="step", y_title="the weight")
        fig.moving_ticks(p.xaxis[0], "count")
        fig.ticks(p.yaxis[0], [1, 1.25, 1.5, 1.75, 2], "count")
        color, limit, curves = fig.COLOR, sources["limit"], sources["curves"]
        p.segment("x0", "y", "x1", "y", source=limit, line_color=color["ink-faint"], line_dash=[6, 4])
        for width, text in (("wide", "text"), ("narrow", "short")):
            fig.only(
                width,
                p.text(
                    "at",
                    "text_y",
                    text=text,
                    source=limit,
                    text_align="align",
                    x_offset="aside",
                    y_offset=13,
                    **fig.LABEL | fig.OVER_LINES,
                ),
            )
        p.line("step", "exact", source=curves, line_color=color["axis"], line_alpha=0.35, line_width=9)
        for name, (dash, width) in RIVALS.items():
            p.line("step", name, source=curves, line_color=color["ink"], line_dash=dash, line_width=width)
        p.scatter("x", "y", source=sources["end"], size=8, color=color["ink"])
        p.text(
            "x",
            "y",
            text="text",
            source=sources["end"],
            text_align="right",
            y_offset="below",
            **fig.BOLD | fig.OVER_LINES,
        )
        for width, words in (("wide", CURES), ("narrow", "exact, and the three cures")):
            cures = {"text": value(words), "source": sources["end"], "text_align": "right"}
            fig.only(width, p.text("x", "cures", y_offset=-16, **cures, **fig.LABEL))
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("To nearest, at the end", rest=True)
    def nearest(self):
        return show(self.last("plain"), "real", 5)

    @readout("Exact", rest=True)
    def exact(self):
        return show(self.last("exact"), "real", 5)

    @readout("Steps that moved it")
    def landed(self):
        return f"{show(self.found()['landed'], 'count')} of {show(self.steps, 'count')}", self.found()[
            "landed"
        ] == 0

    @readout("First update", rest=True)
    def first(self):
        return show(self.rate, "real")

    @readout("Half a gap at 1")
    def half_gap(self):
        return show(self.format.half_gap_at_one, "real")

    @readout("With an fp32 master")
    def with_master(self):
        return show(self.last("master"), "real", 5)

    @regime(target=True)
    def nothing_arrives(self):
        return self.found()["landed"] == 0, (
            f"Not one update arrived: rounded to {self.format.name}, {show(self.rate, 'real')} is not more "
            f"than {show(self.format.half_gap_at_one, 'real')}, half of the gap at 1, and each sum rounds "
            "back to 1. First response: an fp32 master copy of the weights."
        )

    @regime()
    def stalled(self):
        return (self.found()["landed"] > 0) & (self.stall() < run.NEARLY) & (
            self.last("exact") > self.stall()
        ), (
            "Training stalls: the closer to the target, the smaller the update, and past about "
            f"{show(self.stall(), 'real')} it is under half a gap. First response: an fp32 master copy; "
            "where memory forbids it, rounding by chance."
        )

    def summary(self):
        nearest, exact = self.last("plain"), self.last("exact")
        where = choose(
            np.abs(nearest - exact) > run.ALIKE * exact,
            f"instead of {show(exact, 'real', 4)}",
            "as in exact arithmetic",
        )
        return (
            f"After {show(self.steps, 'count')} updates, a weight in {self.format.name} is "
            f"{show(nearest, 'real', 4)} {where}; {show(self.found()['landed'] / self.steps, 'percent')} of "
            "them moved it."
        )


LostUpdates.serve_as(__name__)
