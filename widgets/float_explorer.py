"""A number's bits in six formats: flip any of them, and see what it means and how far the next number is."""

import numpy as np

from engine import precision
from engine.precision import FORMATS, INFINITE, SUBNORMAL, ZERO
from widgets.kit import figure as fig
from widgets.kit.controls import Bits, Choice, Number
from widgets.kit.text import choose, phrase, plain, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

ROLES = ("sign", "exponent", "mantissa")
KINDS = ["zero", "subnormal", "normal", "infinite", "not a number"]
NAMES = [number_format.name for number_format in FORMATS]
SHORT = [name.split()[-1] for name in NAMES]
LOWEST = np.array([f.smallest_octave for f in FORMATS], dtype=float)
NORMAL_FROM = np.array([f.lowest_exponent for f in FORMATS], dtype=float)
HIGHEST = np.array([f.largest_octave for f in FORMATS])
ROWS = np.arange(len(FORMATS))[::-1].astype(float)
AT = {-126: "2⁻¹²⁶", -64: "2⁻⁶⁴", -14: "2⁻¹⁴", 16: "2¹⁶", 64: "2⁶⁴", 127: "2¹²⁷"}
LINE, ASKED_AT, NEAR = 7.6, 7.18, "near"       # where the line of neighbours lies and what is under it, and its scale
UPRIGHT = 1.5708                               # of a dash, in radians


class FloatExplorer(Widget):
    question = "What do the bits of a number mean, and what do six formats make of it?"
    value = Number("Value", 1.1, 1e-45, 3e38, family="real", stops=168, marks=(0.1, 1.0, 448.0, 65504.0),
                   help="Type any positive decimal; its sign is a bit")
    format = Choice("Format", list(FORMATS), "bf16")
    flips = Bits("Bits of the pattern: press one to flip it", 32, "cells", ROLES)

    presets = {"1.1 in bf16": {}, "0.1 in fp16": {"value": 0.1, "format": "fp16"},
               "0.1 in fp8 E4M3": {"value": 0.1, "format": "e4m3"},
               "A gradient of 2e−8 in fp16": {"value": 2e-8, "format": "fp16"}, "70,000 in fp16": {"value": 70000, "format": "fp16"}}
    break_it = "Turn a number into no number: flip a single bit of one that fits, so that infinity or NaN is left."
    assumptions = (
        "Rounding goes to the nearest number, from the middle to the even one, as IEEE 754 has it. TF32 is drawn with the 19 bits "
        "that a tensor core reads; it is stored in 32. E4M3 has no infinity and stops at 448, as PyTorch casts since 2.12. The rows "
        "below show the value that was asked for, whatever was flipped.")
    formula = (
        r"$$x = (-1)^s \left(1 + \frac{f}{2^m}\right) 2^{\,e - b} \qquad e = 0:\; x = (-1)^s\,\frac{f}{2^m}\,2^{\,1-b}$$" "\n\n"
        "$s$ is the sign bit, $e$ the exponent field, $f$ the mantissa field of $m$ bits, and $b$ the bias, $2^{k-1} - 1$ for $k$ "
        "exponent bits. The gap to the next number is $2^{e-b-m}$ (IEEE 754-2019, section 3.4; OFP8 1.0).")

    @once
    def found(self):
        chosen = self.format
        return precision.explored(self.value, self.flips, chosen.exponent_bits, chosen.mantissa_bits, chosen.largest,
                                  chosen.has_infinity)

    def number(self, value):
        return show(value, "real", 6)

    def exact(self, value):
        """With as many digits as tell neighbours in fp32 apart."""
        return show(value, "real", 9)

    # -- the picture ----------------------------------------------------------------------------------------------------
    @part("value", "format", "flips")
    def cells(self):
        found = self.found()
        return {"bit": found["bit"], "role": found["role"], "turned": found["turned"]}

    @part("value", "format", "flips")
    def neighbours(self):
        found = self.found()
        return {"place": found["place"], "kind": found["around_kind"],
                "text": phrase("{v}{note}", v=self.exact(found["around"]),
                               note=select(found["around_kind"], ["", "", "", "infinity", "NaN"]))}

    @part("value", "format", "flips", shown=False)
    def asked(self):
        found = self.found()
        return {"place": found["asked"], "seen": found["seen"], "text": choose(found["seen"] > 0, "asked", "")}

    @part("value", "format", "flips", shown=False)
    def here(self):
        return {"place": 0.0, "text": choose(self.found()["kind"] > 2, f"{self.meaning()}: nothing beside it", "")}

    @part("value")
    def formats(self):
        found = precision.in_every_format(self.value)
        became = phrase("{v}{note}", v=self.number(found["size"]),
                        note=select(found["kind"], [": lost", ", subnormal", "", "too large"]))
        return {"y": ROWS, "name": NAMES, "short": SHORT, "low": LOWEST, "normal": NORMAL_FROM, "high": HIGHEST, "became": became,
                "error": show(found["error"], "percent"),
                "over": np.where((found["kind"] == INFINITE) | (found["kind"] == ZERO), 1.0, 0.0)}

    @hint("formats")
    def of_a_format(self):
        found = precision.in_every_format(self.value)
        return phrase("{name}: {kind}, off by {error}", name=NAMES,
                      kind=select(found["kind"], [*KINDS[:INFINITE], "beyond the largest"]),
                      error=show(found["error"], "percent"))

    @part("format", shown=False)
    def chosen(self):
        return {"y": fig.row_of(ROWS, self.position()), "low": self.format.smallest_octave, "high": self.format.largest_octave}

    def position(self):
        return precision.position(self.format.exponent_bits, self.format.mantissa_bits)

    @part("value", shown=False)
    def marker(self):
        return {"x": precision.octave_of(self.value)}

    def figure(self, sources):
        p = fig.plot((-222, 215), (-0.7, 9.5), height=460)
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        fig.named_places(p.xaxis[0], AT)
        color, rows = fig.COLOR, sources["formats"]
        p.segment("x", -0.5, "x", 5.5, source=sources["marker"], line_color=color["accent"], line_width=2)
        p.hbar(y="y", left="normal", right="high", height=0.42, source=rows, fill_color=color["ink-faint"], fill_alpha=0.25,
               line_color=color["ink-faint"])
        p.hbar(y="y", left="low", right="normal", height=0.42, source=rows, **fig.IDLE)
        p.hbar(y="y", left="low", right="high", height=0.42, source=sources["chosen"], fill_color=None, line_color=color["ink"],
               line_width=2)
        for width, name in (("wide", "name"), ("narrow", "short")):
            fig.only(width, p.text(-160, "y", text=name, source=rows, text_align="right", **fig.TEXT))
        p.text(135, "y", text="became", source=rows, **fig.TEXT)
        fig.only("wide", p.text([135], [6.05], text=["nearest number"], **fig.LABEL),
                 p.text([-152], [6.05], text=["from the smallest to the largest, subnormal numbers hatched"], **fig.LABEL))
        self.draw_line(p, sources)
        return p

    def draw_line(self, p, sources):
        """The numbers beside it, on a scale of their own where a gap has the length 1."""
        color = fig.COLOR
        near = fig.across(p, NEAR, -2.9, 2.9)
        p.segment([-2.6], [LINE], [2.6], [LINE], line_color=color["axis"], **near)
        p.scatter("place", LINE, size=11, marker="dash", angle=UPRIGHT, fill_color=color["ink"], line_color=color["ink"], line_width=2,
                  source=sources["neighbours"], **near)
        fig.only("wide", p.text("place", LINE, text="text", y_offset=-18, text_align="center", source=sources["neighbours"], **near,
                                **fig.TEXT))
        fig.only("narrow", p.text("place", LINE, text="text", y_offset=-10, x_offset=4, angle=0.9,
                                  source=sources["neighbours"], **near, **fig.TEXT))
        p.scatter("place", LINE, size=11, fill_color=color["ink"], line_color=color["ink"], source=sources["here"], **near)
        p.text("place", LINE, text="text", y_offset=-18, text_align="center", source=sources["here"], **near, **fig.TEXT)
        p.scatter("place", ASKED_AT, size=11, marker="triangle", fill_color=color["accent"], line_color=None,
                  fill_alpha="seen", source=sources["asked"], **near)
        p.text("place", LINE, text="text", y_offset=28, text_align="center", source=sources["asked"], **near, **fig.LABEL)

    # -- the words ------------------------------------------------------------------------------------------------------
    def meaning(self):
        found = self.found()
        infinite = choose(found["number"] > 0, "infinity", "−infinity")
        return select(found["kind"], [self.exact(found["number"])] * INFINITE + [infinite, "not a number"])

    @readout("Means")
    def means(self):
        return self.meaning(), self.found()["kind"] > 2

    @readout("Kind")
    def kind(self):
        return select(self.found()["kind"], KINDS)

    @readout("Against the value", help="The relative difference from what was asked for")
    def off(self):
        return choose(self.found()["kind"] > 2, "–", show(self.found()["error"], "percent"))

    @readout("Gap to the next")
    def gap(self):
        return choose(self.found()["kind"] > 2, "–", show(self.found()["gap"], "real"))

    @readout("Pattern, as a whole number")
    def pattern(self):
        return plain(self.found()["pattern"])

    @readout("Largest")
    def largest(self):
        return self.number(self.format.largest)

    @readout("Smallest above 0")
    def smallest(self):
        return show(self.format.smallest, "real")

    @regime(target=True)
    def no_number(self):
        found = self.found()
        return (found["kind"] > 2) & (found["turns"] == 1) & (found["fits"] == 1), (
            f"One flip was enough: all exponent bits are 1, and the pattern means {self.meaning()}. A bit that flips in memory "
            "does just that. First response: check for NaN after each step, and memory with error correction.")

    @regime()
    def overflow(self):
        return self.found()["fits"] == 0, (
            f"Beyond the range: {self.number(self.value)} is more than {self.number(self.format.largest)}, the largest number of "
            f"{self.format.name}. First response: a scale, or a format with more exponent bits.")

    @regime()
    def underflow(self):
        return self.found()["kind"] <= SUBNORMAL, (
            f"Below the normal numbers of {self.format.name}: gaps no longer shrink with the number, the last of them is "
            f"{show(self.format.smallest, 'real')}, and half of that is lost. First response: a scale.")

    def summary(self):
        found = self.found()
        flipped = choose(found["turns"] > 0, f" with {show(found['turns'], 'count')} of its bits flipped", "")
        return (f"{self.number(self.value)} as {self.format.name}{flipped} means {self.meaning()}; the format spends "
                f"{show(self.format.stored_bytes, 'bytes')}, and at 1 its numbers are {show(self.format.epsilon, 'percent')} apart.")
