"""Gradients against the range of a format: what a loss scale saves and costs, and the loop that finds it."""

import numpy as np

from engine.executed import rounded_training as run
from engine.mechanism.precision import BF16, E4M3, E5M2, FP16
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime


def raised(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


VIEWS = [0.15, 0.3, 0.6]  # shares of the gradients in one octave that fit on the upper half
NAMED = {-48: "2⁻⁴⁸", -32: "2⁻³²", -16: "2⁻¹⁶", 0: "1", 16: "2¹⁶", 32: "2³²"}
PATH, SCALES, STEPS = (
    (0.05, 0.32),
    (-20.0, 36.0),
    "steps",
)  # the lower picture: its heights, and the scales there
FATES = {"becomes zero": "idle", "subnormal": "ink-faint", "normal": "ink", "too large": "over"}
SAID = ["lost to zero", "subnormal", "normal", "too large"]
OCTAVES = [f"from 2{raised(k)} to 2{raised(k + 1)}" for k in range(run.FIRST_OCTAVE, run.LAST_OCTAVE)]
OCTAVES[0] = f"below 2{raised(run.FIRST_OCTAVE + 1)}"  # the ends hold whatever lies beyond them, too
OCTAVES[-1] = f"from 2{raised(run.LAST_OCTAVE - 1)} on"
GRADIENTS = ("median", "spread", "scale", "format", "seed")


class LossScaling(Widget):
    question = "Which gradients does a format hold, and what does a loss scale change?"
    scale = Number("Loss scale", 1, 1, 2.0**40, family="real", stops=[2.0**k for k in range(41)])
    spread = Number(
        "Spread",
        run.MULTIBOX_SPREAD,
        1,
        9,
        stops=81,
        log=False,
        help="In octaves: the standard deviation of the exponents of two",
    )
    format = Choice("Format of the gradients", [FP16, BF16, E5M2, E4M3], "fp16")
    median = Number(
        "Median gradient, as a power of two",
        run.MULTIBOX_MEDIAN,
        -45,
        0,
        family="real",
        stops=91,
        log=False,
        more=True,
    )
    interval = Number(
        "Good steps before the scaler doubles", 2000, 50, 4000, stops=60, marks=(1000,), whole=True, more=True
    )
    seed = Number("Seed of the gradients", 1, 1, 40, stops=40, log=False, whole=True, more=True)

    presets = {
        "Multibox SSD, no scale": {},
        "Multibox SSD, times 8": {"scale": 8},
        "Multibox SSD, times 32,768": {"scale": 32768},
        "GradScaler's first, 65,536": {"scale": 65536},
        "bf16": {"format": "bf16"},
        "fp8 E5M2, 32,768": {"format": "e5m2", "scale": 32768},
    }
    break_it = (
        "Find gradients for which no scale serves: what keeps the largest in range loses more than a "
        "hundredth of the rest."
    )
    assumptions = (
        "The sizes of the gradients are drawn from a log-normal distribution, fitted to what NVIDIA's "
        "mixed-precision guide says of a Multibox SSD. There, of all activation gradients "
        f"{show(run.MULTIBOX_VANISHING, 'percent')} become zero in fp16, "
        f"{show(run.MULTIBOX_STAYING, 'percent')} do not, and the rest is zero in any format. Here that rest "
        f"is left out, and so the first are {show(run.MULTIBOX_LOST, 'percent')}, which the draw comes near "
        "to. Times 32,768 all but 0.1 % survive. 2,048 gradients are drawn and rounded one by one; the "
        "largest is that of a hundred million. Below runs torch.amp.GradScaler's loop for 20,000 steps, each "
        "with a largest gradient drawn anew: in training, gradients change."
    )
    formula = (
        r"$$\text{lost:}\; s\,|g| \le 2^{\,\ell-m-1} \qquad \text{too large:}\; s\,|g| > \text{largest} "
        r"\qquad s = 2^{\lfloor \log_2(\text{largest} / \max|g|) \rfloor}$$"
        "\n\n"
        "$g$ is a gradient, $s$ the loss scale, $\\ell$ the smallest exponent of normal numbers, $m$ the "
        "bits of the mantissa. The chain rule is linear: a loss times $s$ has gradients times $s$. They are "
        "divided by $s$ in fp32 before the optimizer sees them (Micikevicius et al., arXiv:1710.03740, "
        "section 3.2)."
    )

    @once
    def found(self):
        return run.scaled(
            self.median,
            self.spread,
            self.scale,
            self.format.exponent_bits,
            self.format.mantissa_bits,
            self.format.largest,
            self.seed,
        )

    @once
    def scaler(self):
        return run.dynamic_scale(
            self.median, self.spread, self.format.largest, run.FIRST_SCALE, self.interval, self.seed
        )

    def share(self, fate):
        return self.found()["shares"][fate]

    def too_large(self):
        return self.found()["top"] >= self.format.largest_octave

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*GRADIENTS)
    def histogram(self):
        found = self.found()
        names = ("lost", "small", "whole", "over")
        _, tops = fig.stacked(np.stack([found[name] for name in names]))
        return {
            "left": run.OCTAVE_STARTS,
            "right": run.OCTAVE_ENDS,
            **{name: tops[i] for i, name in enumerate(names)},
            "none": np.zeros_like(tops[0]),
        }

    @hint("histogram")
    def of_an_octave(self):
        """How many gradients it has, and what becomes of them; where a limit lies within it, of most."""
        found = self.found()
        shares = np.stack([found[name] for name in ("lost", "small", "whole", "over")])
        every, most = np.sum(shares, axis=0), np.max(shares, axis=0)
        return phrase(
            "{share} of the gradients are {octave}{fate}",
            share=show(every, "percent"),
            octave=OCTAVES,
            fate=select(
                np.where(every > 0, np.argmax(shares, axis=0) + np.where(every > most, 4, 0), 8),
                [*(f", {fate}" for fate in SAID), *(f", most of them {fate}" for fate in SAID), ""],
            ),
        )

    @part(*GRADIENTS)
    def window(self):
        ends = np.stack(
            [self.format.vanishing_octave, self.format.lowest_exponent, self.format.largest_octave]
        )
        inside = (ends >= run.FIRST_OCTAVE) & (ends <= run.LAST_OCTAVE)
        return {
            "x": np.clip(ends, run.FIRST_OCTAVE, run.LAST_OCTAVE),
            "seen": np.where(inside, 1.0, 0.0),
            "text": [f"{show(self.share(run.LOST), 'percent')} become zero", "normal", "too large"],
            "narrow": [f"{show(self.share(run.LOST), 'percent')} → 0", "", ""],
        }

    @part("format")
    def beyond(self):
        """What of the window goes on past the picture."""
        low, high = (
            self.format.vanishing_octave < run.FIRST_OCTAVE,
            self.format.largest_octave > run.LAST_OCTAVE,
        )
        return {
            "x": [run.FIRST_OCTAVE, run.LAST_OCTAVE],
            "text": [
                choose(low, f"← down to {show(self.format.smallest, 'real')}", ""),
                choose(high, f"up to {show(self.format.largest, 'real')} →", ""),
            ],
        }

    @part(*GRADIENTS)
    def largest(self):
        return {"x": self.found()["top"], "text": "largest"}

    def height(self, octave):
        """The height of a loss scale in the lower picture."""
        return fig.between(*PATH, (octave - SCALES[0]) / (SCALES[1] - SCALES[0]))

    @part("median", "spread", "format", "interval", "seed")
    def path(self):
        found = self.scaler()
        return {"step": found["step"], "y": self.height(found["octave"]), "octave": found["octave"]}

    @hint("path")
    def of_the_path(self):
        found = self.scaler()
        there = 0 * found["step"]  # no number, and so no text, past the last corner
        return phrase(
            "{at}{step}{scaler}{scale}",
            at=select(there, ["At step "]),
            scaler=select(there, [" the dynamic scale is 2 to the power of "]),
            step=show(found["step"], "count"),
            scale=show(found["octave"], "count"),
        )

    @part("median", "spread", "format", "interval", "seed", shown=False)
    def path_end(self):
        found = self.scaler()
        return {
            "step": run.SCALER_STEPS,
            "y": self.height(found["last"]),
            "text": show(found["last_scale"], "real"),
        }

    def ranges(self):
        view = fig.fitting_view(self.found()["highest"], VIEWS)
        return {"y": [-view, view]}

    def figure(self, sources):
        p = fig.plot((run.FIRST_OCTAVE - 1, run.LAST_OCTAVE + 1), (-VIEWS[0], VIEWS[0]), height=520)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        color, bars, still = fig.COLOR, sources["histogram"], fig.still_height(p)
        styles = {"lost": fig.IDLE, "over": fig.OVER | {"line_color": None}}
        for low, high, token in (
            ("none", "lost", "idle"),
            ("lost", "small", "ink-faint"),
            ("small", "whole", "ink"),
            ("whole", "over", "over"),
        ):
            p.quad(
                left="left",
                right="right",
                bottom=low,
                top=high,
                source=bars,
                **styles.get(high, {"fill_color": color[token], "line_color": None}),
            )
        p.segment([run.FIRST_OCTAVE], [0.5], [run.LAST_OCTAVE], [0.5], line_color=color["axis"], **still)
        p.text(
            list(NAMED),
            [0.47] * len(NAMED),
            text=list(NAMED.values()),
            text_align="center",
            **still,
            **fig.LABEL,
        )
        window, largest = sources["window"], sources["largest"]
        p.segment(
            "x",
            0.5,
            "x",
            0.91,
            source=window,
            line_color=color["ink"],
            line_alpha="seen",
            line_dash=[6, 4],
            **still,
        )
        for width, words, height, rows, align, offset, style in (
            ("wide", "text", 0.885, [0], "right", -6, fig.BOLD),
            ("narrow", "narrow", 0.85, [0], "right", -6, fig.BOLD | fig.OVER_LINES),
            ("wide", "text", 0.885, [1, 2], "left", 6, fig.LABEL),
        ):
            label = p.text(
                "x",
                height,
                text=words,
                text_alpha="seen",
                source=window,
                view=fig.of_rows(rows),
                text_align=align,
                x_offset=offset,
                **still,
                **style,
            )
            fig.only(width, label)
        for width, y in (("wide", 0.885), ("narrow", 0.43)):
            for row, align in ((0, "left"), (1, "right")):
                fig.only(
                    width,
                    p.text(
                        "x",
                        y,
                        text="text",
                        source=sources["beyond"],
                        view=fig.of_rows([row]),
                        text_align=align,
                        **still,
                        **fig.LABEL,
                    ),
                )
        p.segment("x", 0.5, "x", 0.68, source=largest, line_color=color["ink"], line_width=2, **still)
        p.text(
            "x", 0.70, text="text", source=largest, text_align="center", **still, **fig.BOLD | fig.OVER_LINES
        )
        fig.key(p, FATES, 0.965, 0.98, own_heights=True)
        self.draw_path(p, sources, still)
        return p

    def draw_path(self, p, sources, still):
        """The scale that the scaler uses, over its steps."""
        color, across = fig.COLOR, fig.across(p, STEPS, -600, 21_800) | still
        for octave in (0.0, 16.0, 32.0):
            y = self.height(octave)
            p.segment([0], [y], [run.SCALER_STEPS], [y], line_color=color["grid"], **across)
            p.text([run.SCALER_STEPS], [y], text=[NAMED[octave]], x_offset=6, **across, **fig.LABEL)
        p.text([0], [0.385], text=["the dynamic scale over 20,000 steps, from 65,536"], **across, **fig.LABEL)
        p.line("step", "y", source=sources["path"], line_color=color["accent"], line_width=2, **across)
        p.text(
            "step",
            "y",
            text="text",
            source=sources["path_end"],
            text_align="right",
            y_offset=-13,
            **across,
            **fig.BOLD,
        )
        p.text(
            [0, run.SCALER_STEPS],
            [0.02, 0.02],
            text=["0", "20,000"],
            text_align="center",
            **across,
            **fig.LABEL | fig.ON_PANEL,
        )

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Lost to zero, of those not zero")
    def lost(self):
        return show(self.share(run.LOST), "percent"), self.share(run.LOST) > 0.05

    @readout("Subnormal", rest=True)
    def subnormal(self):
        return show(self.share(run.SMALL), "percent")

    @readout("The largest gradient", rest=True)
    def top(self):
        return choose(self.too_large(), "too large", "in range"), self.too_large()

    @readout(
        "Scale that the largest allows", help="The largest that keeps it in range, or the largest of fp32"
    )
    def best(self):
        return show(self.found()["best_scale"], "real")

    @readout("Lost at that scale", rest=True)
    def lost_at_best(self):
        return show(self.found()["lost_at_best"], "percent"), self.found()["lost_at_best"] > 0.01

    @readout("Steps that the scaler skips", help="Out of 20,000")
    def skipped(self):
        return show(self.scaler()["skipped"], "count")

    @regime(target=True)
    def no_scale_serves(self):
        return self.found()["lost_at_best"] > 0.01, (
            "No scale serves: the largest that keeps the largest gradient in the range of "
            f"{self.format.name} still loses {show(self.found()['lost_at_best'], 'percent')} of them. First "
            f"response: bf16, whose window is {show(BF16.range_octaves, 'count')} octaves wide, not "
            f"{show(self.format.range_octaves, 'count')}; or scales by block."
        )

    @regime()
    def overflow(self):
        return self.too_large(), (
            "The step is lost: at this scale the largest gradient is too large for the format. A scaler "
            f"skips the step and halves the scale; {show(self.found()['best_scale'], 'real')} would do."
        )

    @regime()
    def underflow(self):
        return self.share(run.LOST) > 0.05, (
            f"Gradients vanish: {show(self.share(run.LOST), 'percent')} of those that are not zero become so "
            f"in {self.format.name}, and no error says so. It costs what those would have taught: the "
            "network of the first preset diverged at a scale of 1, and matched fp32 at 8, with over half of "
            "these still lost. First response: "
            f"{choose(self.found()['lost_at_best'] < self.share(run.LOST), 'a loss scale, or bf16', 'bf16')}."
        )

    def summary(self):
        times = choose(self.scale == 1, "Unscaled", f"Times {show(self.scale, 'real')}")
        return (
            f"{times}, {self.format.name} turns {show(self.share(run.LOST), 'percent')} of nonzero gradients "
            f"to 0, {show(self.share(run.SMALL), 'percent')} are subnormal; the largest is {self.top()[0]}."
        )


LossScaling.serve_as(__name__)
