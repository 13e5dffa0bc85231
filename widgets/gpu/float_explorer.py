"""A number's bits in six formats: flip any of them, and see what it means and how far the next number is."""

import numpy as np
from bokeh.core.properties import value

from engine.mechanism import precision
from engine.mechanism.precision import FORMATS, INFINITE, SUBNORMAL
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Bits, Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, plain, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

ROLES = ("sign", "exponent", "mantissa")
KINDS = ["zero", "subnormal", "normal", "infinite", "not a number"]
NAMES = [number_format.name for number_format in FORMATS]
SHORT = [name.split()[-1] for name in NAMES]
ROWS = np.arange(len(FORMATS))[::-1].astype(float)
FOOT, HEAD, NAME = 0.34, 0.06, 0.3  # of a row's marks, below and above its middle; the height of its name
LOW, HIGH = -1.0, 6.1
# A format's bits stand around the border between exponent and mantissa, at 0: range to the left, precision to
# the right.
BIT_ROW = np.repeat(np.arange(len(FORMATS)), [f.bits for f in FORMATS])
BIT_AT = np.concatenate([np.arange(f.bits) - 1.0 - f.exponent_bits for f in FORMATS])
BIT_OF = np.concatenate([np.arange(f.bits) for f in FORMATS])  # the same, from the sign on
LEAST_OCTAVE = np.array([f.smallest_octave for f in FORMATS], dtype=float)
NORMAL_FROM = np.array([f.lowest_exponent for f in FORMATS], dtype=float)
LARGEST_OCTAVE = np.array([f.largest_octave for f in FORMATS])
# What stands where across: (first and last place on its own scale), (first and last share of the frame)
BITS, RULER, RANGE = (-9.0, 23.0), (-1.0, 1.0), (-150.0, 130.0)
WIDE = {"bits": (BITS, (0.005, 0.35)), "ruler": (RULER, (0.39, 0.82)), "range": (RANGE, (0.86, 0.995))}
NARROW = {"bits": (BITS, (0.01, 0.42)), "ruler": (RULER, (0.47, 0.99))}
MARK = 0.011  # of the ruler: half the width of the nearest number's line
ON_ROW = fig.ON_PANEL | {"background_fill_alpha": 1.0}


def around(rows):
    """Columns of the marks of rows."""
    return {"bottom": rows - FOOT, "top": rows + HEAD}


def placed(p, name, ends, shares):
    """A horizontal scale whose ends lie at these shares of the frame's width."""
    unit = (ends[1] - ends[0]) / (shares[1] - shares[0])
    start = ends[0] - shares[0] * unit
    return fig.across(p, name, start, start + unit)


def draw_bits(p, sources, place):
    color, ink = fig.COLOR, fig.COLOR["ink"]
    box = fig.BOX | {"source": sources["bits"]}
    border = {"line_color": color["accent"], "line_width": 2}
    return [
        p.quad(**box, fill_color=color["panel"], line_color=color["axis"], line_width=0.6, **place),
        p.quad(**box, fill_color=ink, fill_alpha="bit", line_color=color["axis"], line_width=0.6, **place),
        p.segment(0, ROWS - FOOT - 0.05, 0, ROWS + HEAD + 0.05, **border, **place),
    ]


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


def draw_ranges(p, sources, place):
    color, ranges = fig.COLOR, sources["ranges_of"]
    rows = {"bottom": "bottom", "top": "top", "source": ranges}
    asked = {"line_color": color["accent"], "line_width": 2}
    return [
        p.quad(
            left="low", right="high", **rows, fill_color=color["panel"], line_color=color["axis"], **place
        ),
        p.quad(left="normal", right="high", **rows, fill_color=color["ink-faint"], line_color=None, **place),
        p.segment("octave", LOW + 0.62, "octave", HIGH - 0.45, source=sources["marker"], **asked, **place),
    ]


def letter(p, sources, places, width):
    """The names of rows and columns, what the value became in each format, and the ruler's ends."""
    rows, chosen, marker = sources["formats"], sources["chosen"], sources["marker"]
    bits, ruler = places["bits"], places["ruler"]
    heading, foot = HIGH - 0.25, LOW + 0.35
    aside, right = {"x_offset": 5}, {"text_align": "right", "x_offset": -5}
    wide = width == "wide"
    exponent, error, became = ("exponent", "error", "became") if wide else ("exp.", "short", "became_short")
    told = [
        p.text(BITS[0], "y", text="name", source=rows, **fig.BOLD, **bits),
        p.text(0, heading, text=value(exponent), **right, **fig.LABEL, **bits),
        p.text(0, heading, text=value("mantissa"), **aside, **fig.LABEL, **bits),
        p.text("asked", heading, text="value", source=marker, text_align="center", **fig.BOLD, **ruler),
        p.text("first", foot, text="from", source=marker, **fig.LABEL, **ruler),
        p.text("last", foot, text="to", source=marker, text_align="right", **fig.LABEL, **ruler),
        p.text(RULER[0], "y", text=became, source=rows, **ON_ROW, **fig.TEXT, **ruler),
        p.text(RULER[0], "named", text="text", source=chosen, **ON_ROW, **fig.BOLD, **ruler),
        p.text(RULER[1], "y", text=error, source=rows, text_align="right", **ON_ROW, **fig.LABEL, **ruler),
    ]
    if width == "wide":
        ends = {"text_align": "center", **fig.LABEL, **places["range"]}
        middle = fig.midpoint(*RANGE)
        told.append(p.text(middle, heading, text=value("range"), **ends))
        told.append(p.text(middle, foot, text=value("2⁻¹⁴⁹ to 2¹²⁸"), **ends))
    return told


class FloatExplorer(Widget):
    question = "What do the bits of a number mean, and what do six formats make of it?"
    value = Number(
        "Value",
        1.1,
        1e-45,
        3e38,
        family="real",
        stops=168,
        marks=(0.1, 1.0, 448.0, 65504.0),
        help="Type any positive decimal; the sign is one of the bits",
    )
    format = Choice("Format", list(FORMATS), "bf16")
    flips = Bits("Bits of the pattern: press one to flip it", 32, "cells", ROLES)

    presets = {
        "1.1 in bf16": {},
        "0.1 in fp16": {"value": 0.1, "format": "fp16"},
        "0.1 in fp8 E4M3": {"value": 0.1, "format": "e4m3"},
        "A gradient of 2e−8 in fp16": {"value": 2e-8, "format": "fp16"},
        "70,000 in fp16: too large": {"value": 70000, "format": "fp16"},
    }
    break_it = (
        "Turn a number into no number: flip a single bit of one that fits, so that infinity or NaN is left."
    )
    assumptions = (
        "Rounding goes to the nearest number, from the middle to the even one, as IEEE 754 has it. TF32 is "
        "drawn with the 19 bits that a tensor core reads; it is stored in 32. E4M3 has no infinity and stops "
        "at 448, as PyTorch casts since 2.12. The rows show the value that was asked for; the chosen one has "
        "the bits that were flipped."
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

    @part("value", "format", "flips")
    def bits(self):
        """The bits of all formats; the chosen one's as they were flipped."""
        chosen = self.chosen_row() == BIT_ROW
        bit = np.where(chosen, lookup(self.found()["bit"], np.where(chosen, BIT_OF, 0.0)), self.plain_bits())
        return {"left": BIT_AT, "right": BIT_AT + 1.0, **around(ROWS[BIT_ROW]), "bit": bit}

    def plain_bits(self):
        return precision.patterns(self.value)["bit"]

    @hint("bits")
    def of_a_bit(self):
        roles = np.where(BIT_OF < 1, 0, np.where(BIT_AT < 0, 1, 2))
        return phrase(
            "{name}, bit {place}, {role}",
            name=select(BIT_ROW, NAMES),
            place=show(1.0 + BIT_OF, "count"),
            role=select(roles, ROLES),
        )

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
        sizes, errors = (np.where(beyond, 0.0, np.abs(found[name])) for name in ("size", "error"))
        became, became_short, off, short = [], [], [], []
        for i in range(len(FORMATS)):
            size, error = self.number(sizes[i]), show(errors[i], "percent", 2)
            for told, subnormal in ((became, ", subnormal"), (became_short, "")):
                words = select(kinds[i], ["0, lost", f"{size}{subnormal}", size, "too large"])
                told.append(choose(self.chosen_row() == i, "", words))
            off.append(choose(beyond[i], "", f"off by {error}"))
            short.append(choose(beyond[i] | (self.chosen_row() == i), "", error))
        told = {"became": became, "became_short": became_short, "error": off, "short": short}
        return {"y": ROWS + NAME, "name": NAMES} | told

    @part(shown=False)
    def ranges_of(self):
        return {"low": LEAST_OCTAVE, "normal": NORMAL_FROM, "high": LARGEST_OCTAVE, **around(ROWS)}

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
        return {"y": row, "named": row + NAME, "text": self.meaning()}

    @part("value", "format", shown=False)
    def marker(self):
        """The value on the ruler and among the ranges, and the ruler's ends."""
        reach = self.ruler()["reach"]
        return {
            "octave": fig.doublings(self.value),
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
        for width, parts in (("wide", WIDE), ("narrow", NARROW)):
            places = {name: placed(p, f"{name}, {width}", *where) for name, where in parts.items()}
            fig.only(
                width,
                *draw_bits(p, sources, places["bits"]),
                *draw_ruler(p, sources, places["ruler"]),
                *(draw_ranges(p, sources, places["range"]) if "range" in places else ()),
                *letter(p, sources, places, width),
            )
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
        return self.found()["kind"] <= SUBNORMAL, (
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
