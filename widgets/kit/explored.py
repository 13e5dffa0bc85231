"""An estimate as a small figure for a notebook: what its step is spent on, and what fills the fullest GPU.

``explore(engine.estimate(…))`` in the last line of a cell shows two bars with their parts. It is plain HTML,
so a notebook asks nothing for it of any network, and it is seen where no kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import numpy as np

from engine.base import units
from engine.step import cases
from engine.step.layout import Estimate, axes
from widgets.kit.drawing import planned, tokens

LEAST = 0.005  # a part that is smaller is only named
STYLE = """<style>
.explored { max-width: 640px; font: 14px/1.4 system-ui, sans-serif; }
.explored p { margin: 8px 0 2px; }
.explored div { display: flex; height: 22px; border: 1px solid gray; }
.explored i { border-right: 1px solid white; }
.explored ul { margin: 4px 0 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: 2px 14px; }
.explored li { margin: 0; }
.explored b { display: inline-block; width: 10px; height: 10px; margin-right: 5px; }
</style>"""
HELD = dict(zip(("overhead", "weights", "gradients", "optimizer", "activations"), planned.PARTS))


class Piece(NamedTuple):
    """A part of a bar: its name, its size as text, its share of the bar, and the name of its colour."""

    name: str
    size: str
    share: float
    colour: str


class Explored:
    """Shows an estimate in a notebook; printed, it says the same in lines."""

    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate

    def time(self) -> list[Piece]:
        """The terms of the step, in the colours of what they wait for."""
        found = self.estimate
        leaves = cases.beyond_the_node(found.at, axes(found.job, found.layout, found.at.gpu.key))
        colours = np.ravel(planned.resources(leaves)).astype(int)
        named = zip(planned.TERMS, found.time_s.values(), colours)
        return [
            Piece(name, units.human(seconds, "seconds"), seconds / found.step_s, planned.RESOURCES[colour])
            for name, seconds, colour in named
            if seconds > 0.0
        ]

    def memory(self) -> list[Piece]:
        """The parts of the fullest GPU's memory, as shares of the larger of what there is and what is asked
        for."""
        held = self.estimate.memory_bytes
        whole = max(held["total"], held["capacity"])
        return [
            Piece(words, units.human(held[name], "bytes"), held[name] / whole, "hbm")
            for name, words in HELD.items()
            if held[name] > 0.0
        ]

    def titles(self) -> tuple[str, str]:
        """What the two bars are, with their whole."""
        held, band = self.estimate.memory_bytes, self.estimate.band_s
        low, high = (units.human(end, "seconds") for end in band)
        total, there = (units.human(held[name], "bytes") for name in ("total", "capacity"))
        verdict = "" if self.estimate.fits else ": it does not fit"
        step = f"A step of {units.human(self.estimate.step_s, 'seconds')} ({low} to {high})"
        return step, f"{total} of the {there} of the fullest GPU{verdict}"

    def __str__(self) -> str:
        lines = []
        for title, pieces in zip(self.titles(), (self.time(), self.memory())):
            lines += [title, *(f"  {each.name}: {each.size}, {each.share:.1%}" for each in pieces)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        bars = [_bar(title, pieces) for title, pieces in zip(self.titles(), (self.time(), self.memory()))]
        return f'{STYLE}<section class="explored">{"".join(bars)}</section>'


def _bar(title: str, pieces: Iterable[Piece]) -> str:
    hue = tokens.palette("light")
    pieces = list(pieces)
    drawn = "".join(
        f'<i title="{escape(each.name)}: {each.size}"'
        f' style="width: {each.share:.2%}; background: {hue[each.colour]}"></i>'
        for each in pieces
        if each.share > LEAST
    )
    listed = "".join(
        f'<li><b style="background: {hue[each.colour]}"></b>{escape(each.name)} {each.size}</li>'
        for each in pieces
    )
    return f"<p><strong>{escape(title)}</strong></p><div>{drawn}</div><ul>{listed}</ul>"


def explore(estimate: Estimate) -> Explored:
    """An estimate as a small figure: the last line of a notebook's cell."""
    if not isinstance(estimate, Estimate):
        raise ValueError(f"estimate must be what engine.estimate gives, got {type(estimate).__name__}")
    return Explored(estimate)
