"""A number's bits in one format: flip any of them, see what it means and how far the next number is, beside
what five other formats make of the number."""

import numpy as np
from bokeh.core.properties import value

from engine.mechanism import precision
from engine.mechanism.precision import FORMATS, INFINITE, SUBNORMAL
from widgets.kit.controls import Bits, Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, plain, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

ROLES = ("sign", "exponent", "mantissa")
KINDS = ["zero", "subnormal", "normal", "infinite", "not a number"]
NAMES = [number_format.name for number_format in FORMATS]
ROWS = np.arange(len(FORMATS))[::-1].astype(float)
FOOT, HEAD = 0.3, 0.3  # of a row's marks, below and above its middle
LOW, HIGH = -1.0, 6.1
LEAST_TYPED, LARGEST_TYPED, DECADES = 1e-45, 3e38, 84
SIZES = np.geomspace(LEAST_TYPED, LARGEST_TYPED, DECADES)
MARKED = (0.1, 1.0, 1.1, 448.0, 65504.0)
POSITIVE = sorted({*(float(f"{size:.2g}") for size in SIZES[1:-1]), LEAST_TYPED, LARGEST_TYPED, *MARKED})
STOPS = [*(-size for size in reversed(POSITIVE)), 0.0, *POSITIVE]
# What stands where across: (first and last place on its own scale), (first and last share of the frame)
RULER = (-1.0, 1.0)
LIST = {"wide": {"became": 0.13, "error": 0.44}, "narrow": {"became": 0.0, "error": 0.42}}
WIDE = (RULER, (0.47, 0.99))
NARROW = (RULER, (0.47, 0.99))
MARK = 0.011  # of the ruler: half the width of the nearest number's line


def around(rows):
    """Columns of the marks of rows."""
    return {"bottom": rows - FOOT, "top": rows + HEAD}


def placed(p, name, ends, shares):
    """A horizontal scale whose ends lie at these shares of the frame's width."""
    unit = (ends[1] - ends[0]) / (shares[1] - shares[0])
    start = ends[0] - shares[0] * unit
    return fig.across(p, name, start, start + unit)


def draw_ruler(p, sources, place):
    color = fig.COLOR
    thin = {"line_color": color["ink-faint"], "line_width": 1}
    asked = {"line_color": color["accent"], "line_width": 2}
    return [
        p.quad(**fig.BOX, source=sources["lines"], fill_color=color["ink-faint"], line_color=None, **place),
        p.segment("x", "low", "x", "high", source=sources["numbers"], **thin, **place),
        p.segment("asked", LOW + 0.62, "asked", HIGH - 0.45, source=sources["marker"], **asked, **place),
        p.quad(**fig.BOX, source=sources["nearest"], fill_color=color["ink"], line_color=None, **place),
    ]


def letter(p, sources, width, ruler):
    """The list: what the value becomes in each format, and how far off that is; the ruler's ends."""
    rows, chosen, marker, at = sources["formats"], sources["chosen"], sources["marker"], LIST[width]
    heading, foot, wide = HIGH - 0.25, LOW + 0.35, width == "wide"
    became, error = ("became", "error") if wide else ("became_short", "short")
    lift = 0 if wide else 9  # a phone has the name above the number
    return [
        p.text(0, "y", text="name", source=rows, y_offset=-lift, **fig.TEXT),
        p.text(0, "y", text="name", source=chosen, y_offset=-lift, **fig.BOLD),
        p.text(at["became"], "y", text=became, source=rows, y_offset=lift, **fig.TEXT),
        p.text(at["became"], "y", text="text", source=chosen, y_offset=lift, **fig.BOLD),
        p.text(at["error"], "y", text=error, source=rows, y_offset=lift, text_align="right", **fig.LABEL),
        p.text(at["became"], heading, text=value("becomes"), **fig.LABEL),
        p.text("asked", heading, text="value", source=marker, text_align="center", **fig.BOLD, **ruler),
        p.text("first", foot, text="from", source=marker, **fig.LABEL, **ruler),
        p.text("last", foot, text="to", source=marker, text_align="right", **fig.LABEL, **ruler),
    ]


class FloatExplorer(Widget):
    question = "What do the bits of a number mean, and what do six formats make of it?"
    value = Number(
        "Value",
        1.1,
        -LARGEST_TYPED,
        LARGEST_TYPED,
        family="real",
        stops=STOPS,
        help="Type any decimal, 0 and negative ones too",
    )
    format = Choice("Format", list(FORMATS), "bf16")
    tap = {"formats": "format"}
    flips = Bits("Bits of the pattern: press one to flip it", 32, "cells", ROLES)

    presets = {
        "1.1 in bf16": {},
        "0.1 in fp16": {"value": 0.1, "format": "fp16"},
        "0.1 in fp8 E4M3": {"value": 0.1, "format": "e4m3"},
        "A gradient of 2e−8 in fp16": {"value": 2e-8, "format": "fp16"},
        "0, and its nearest neighbours": {"value": 0, "format": "fp16"},
        "70,000 in fp16: too large": {"value": 70000, "format": "fp16"},
    }
    break_it = (
        "Turn a number into no number: flip a single bit of one that fits, so that infinity or NaN is left."
    )
    assumptions = (
        "A value is rounded to the nearest number, and from the exact middle to the even one (IEEE 754). "
        "TF32 is drawn with the 19 bits that a tensor core reads, though it is stored in 32. E4M3 has no "
        "infinity and stops at 448, as PyTorch casts since 2.12. The rows show the value that was asked "
        "for; the chosen one has the bits that were flipped."
    )
    formula = (
        r"$$x = \pm \left(1 + \frac{f}{2^m}\right) 2^{\,e - b} \qquad e = 0:\; x = "
        r"\pm\,\frac{f}{2^m}\,2^{\,1-b}$$"
        "\n\n"
        "$x$ is the number, with a bit for its sign, $e$ the exponent field, $f$ the mantissa field of $m$ "
        "bits, and $b$ the bias, $2^{k-1} - 1$ for $k$ exponent bits. The gap to the next number is "
        "$2^{e-b-m}$ (IEEE 754-2019, section 3.4; OFP8 1.0)."
    )

    @once
    def found(self):
        chosen = self.format
        return precision.explored(
            self.value,
            self.flips,
            chosen.exponent_bits,
            chosen.mantissa_bits,
            chosen.largest,
            chosen.has_infinity,
        )

    @once
    def ruler(self):
        chosen = self.format
        return precision.ruler(self.value, chosen.mantissa_bits, chosen.lowest_exponent)

    def number(self, value):
        return show(value, "real", 6)

    def exact(self, value):
        """A value in nine digits, which tell any two neighbours in fp32 apart."""
        return show(value, "real", 9)

    def chosen_row(self):
        return precision.position(self.format.exponent_bits, self.format.mantissa_bits)

    # -- the picture -----------------------------------------------------------------------------------------
    @part("value", "format", "flips")
    def cells(self):
        """The buttons of the pattern."""
        found = self.found()
        return {"bit": found["bit"], "role": found["role"], "turned": found["turned"]}

    @part("value", "format")
    def numbers(self):
        """The formats' numbers around the value, each a thin line on the ruler."""
        found = self.ruler()
        rows = len(FORMATS) - 1.0 - found["row"]
        return {"x": found["place"], "y": rows, "low": rows - FOOT, "high": rows + HEAD}

    @part("value", "format")
    def lines(self):
        """Whole rows of the ruler, drawn where its numbers lie too close to be told apart."""
        found = self.ruler()
        return {"left": found["start"], "right": found["end"], **around(ROWS)}

    @part("value", "format")
    def nearest(self):
        near = self.ruler()["near"]
        return {"left": near - MARK, "right": near + MARK, **around(ROWS)}

    @part("value", "format")
    def formats(self):
        """What the value becomes, in digits enough for its error; the chosen format's row says all of its
        own."""
        found = precision.in_every_format(self.value)
        kinds, beyond = found["kind"], found["kind"] == INFINITE
        sizes, errors = (np.where(beyond, 0.0, found[name]) for name in ("size", "error"))
        became, became_short, off, short = [], [], [], []
        zero = choose(self.value == 0, "0", "0, lost")
        for i in range(len(FORMATS)):
            size, error = self.number(sizes[i]), show(np.abs(errors[i]), "percent", 2)
            for told, subnormal in ((became, ", subnormal"), (became_short, "")):
                words = select(kinds[i], [zero, f"{size}{subnormal}", size, "too large"])
                told.append(choose(self.chosen_row() == i, "", words))
            off.append(choose(beyond[i] | (self.chosen_row() == i), "", f"off by {error}"))
            short.append(choose(beyond[i] | (self.chosen_row() == i), "", error))
        told = {"became": became, "became_short": became_short, "error": off, "short": short}
        return {
            "y": ROWS,
            "name": [choose(self.chosen_row() == i, "", name) for i, name in enumerate(NAMES)],
        } | told

    @hint("numbers")
    def of_a_number(self):
        found = self.ruler()
        return phrase(
            "{name}: {number}",
            name=select(found["row"], NAMES),
            number=self.number(self.value + found["place"] * found["reach"]),
        )

    @hint("lines")
    def of_a_format(self):
        found = precision.in_every_format(self.value)
        return phrase(
            "{name}: {kind}, off by {error}",
            name=NAMES,
            kind=select(found["kind"], [*KINDS[:INFINITE], "beyond the largest"]),
            error=show(found["error"], "percent"),
        )

    @part("value", "format", "flips")
    def chosen(self):
        row = fig.row_of(ROWS, self.chosen_row())
        return {"y": row, "name": self.format.name, "text": self.meaning()}

    @part("value", "format", shown=False)
    def marker(self):
        """The value on the ruler and among the ranges, and the ruler's ends."""
        reach = self.ruler()["reach"]
        return {
            "asked": 0.0,
            "first": RULER[0],
            "last": RULER[1],
            "value": self.number(self.value),
            "from": show(self.value - reach, "real", 2),
            "to": show(self.value + reach, "real", 2),
        }

    def figure(self, sources):
        p = fig.plot((0, 1), (LOW, HIGH), height=430)
        fig.bare(p)
        color = fig.COLOR
        band = {"fill_color": color["ink"], "fill_alpha": 0.05, "line_color": None}
        p.hbar(y="y", left=0, right=1, height=0.98, source=sources["chosen"], **band)
        for width, where in (("wide", WIDE), ("narrow", NARROW)):
            ruler = placed(p, f"ruler, {width}", *where)
            fig.only(width, *draw_ruler(p, sources, ruler), *letter(p, sources, width, ruler))
        return p

    # -- the words -------------------------------------------------------------------------------------------
    def meaning(self):
        found = self.found()
        infinite = choose(found["number"] > 0, "infinity", "−infinity")
        return select(found["kind"], [self.exact(found["number"])] * INFINITE + [infinite, "not a number"])

    @readout("Means")
    def means(self):
        return self.meaning(), self.found()["kind"] > 2

    @readout("Gap to the next")
    def gap(self):
        return choose(self.found()["kind"] > 2, "–", show(self.found()["gap"], "real"))

    @readout("Pattern, as a whole number")
    def pattern(self):
        return plain(self.found()["pattern"])

    @regime(target=True)
    def no_number(self):
        found = self.found()
        return (found["kind"] > 2) & (found["turns"] == 1) & (found["fits"] == 1), (
            f"One flip was enough: all exponent bits are 1, and the pattern means {self.meaning()}. A bit "
            "that flips in memory does just that. First response: check for NaN after each step, and memory "
            "with error correction."
        )

    @regime()
    def overflow(self):
        return self.found()["fits"] == 0, (
            f"Beyond the range: {self.number(self.value)} is more than {self.number(self.format.largest)}, "
            f"the largest number of {self.format.name}. First response: a scale, or a format with more "
            "exponent bits."
        )

    @regime()
    def underflow(self):
        return (self.found()["kind"] <= SUBNORMAL) & (self.value != 0), (
            f"Below the normal numbers of {self.format.name}: gaps no longer shrink with the number, the "
            f"last of them is {show(self.format.smallest, 'real')}, and half of that is lost. First "
            "response: a scale."
        )

    def summary(self):
        found = self.found()
        flipped = choose(found["turns"] > 0, f" with {show(found['turns'], 'count')} of its bits flipped", "")
        off = choose(
            (found["turns"] > 0) | (found["kind"] > 2), "", f", {show(found['error'], 'percent', 2)} off"
        )
        return (
            f"{self.number(self.value)} as {self.format.name}{flipped} means {self.meaning()}{off}; in its "
            f"{show(self.format.stored_bytes, 'bytes')}, numbers near 1 are "
            f"{show(self.format.epsilon, 'percent', 2)} apart."
        )


FloatExplorer.serve_as(__name__)
