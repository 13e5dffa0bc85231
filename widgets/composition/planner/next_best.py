"""The next best layouts, and what each of them loses to the winner."""

import numpy as np

from engine.calibration import bands
from engine.step import cases
from widgets.composition.planner.shared import JOB, LOSSES, NEXT, RANKS, TERMS, TOP
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import panels, planned
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import hint, once, part

NEXT_Y, NEXT_TITLE_Y, MEASURED_Y, NEXT_HALF = np.array([4.3, 3.4, 2.5, 1.6]), 5.5, 0.5, 0.2


class NextBest:
    """The next best, in the figure that has a ``case`` and an ``outcome``."""

    @once
    def slower(self):
        """Seconds that each of the next best loses (or gains, below zero) to the winner, by term."""
        found = self.outcome()
        more_s = found.times_s[1:TOP] - found.times_s[:1]
        there = np.isfinite(found.step_s[1:TOP])[:, None] & ~self.none_fits()
        return np.where(there, more_s, 0.0)

    @part(*JOB)
    def losses(self):
        left, right, _ = panels.diverging(self.slower() / self.winner_s())
        rows = np.repeat(NEXT_Y, len(planned.TERMS))
        a = cases.Layouts(*(column[1:TOP] for column in self.outcome().layouts))
        kinds = planned.resources(cases.beyond_the_node(self.case(), a))
        return {
            "left": fig.gone_unless(np.ravel(right > left), np.ravel(left)),
            "right": fig.gone_unless(np.ravel(right > left), np.ravel(right)),
            "bottom": rows - NEXT_HALF,
            "top": rows + NEXT_HALF,
            "more_s": np.ravel(self.slower()),
            "term": planned.TERMS * (TOP - 1),
            "resource": select(np.ravel(kinds), planned.RESOURCES),
        }

    @hint("losses")
    def losses_said(self):
        more_s = np.ravel(self.slower())
        return phrase(
            "{rank}: {seconds} {way} of {term} than the winner",
            rank=select(np.repeat(np.arange(1.0, TOP), len(planned.TERMS)), RANKS),
            seconds=show(np.abs(more_s), "seconds"),
            way=select(np.where(more_s < 0, 1.0, 0.0), ["more", "less"]),
            term=select(np.tile(np.arange(len(planned.TERMS)), TOP - 1), planned.TERMS),
        )

    @part(*JOB)
    def runners_up(self):
        """The next best; where nothing fits they are ranked by what they need."""
        found = self.outcome()
        a = cases.Layouts(*(column[1:TOP] for column in found.layouts))
        ends = panels.diverging(self.slower() / self.winner_s())[1]
        rows = [self.runner_up(place) for place in range(1, TOP)]
        return {
            "x": np.max(ends, axis=-1) + 0.0 * found.step_s[0],
            "y": NEXT_Y,
            "step_s": found.step_s[1:TOP],
            "total_bytes": found.total_bytes[1:TOP],
            "slower_by": found.slower_by[1:TOP],
            "layout": self.named(a),
            "name": [name for name, _, _ in rows],
            "label": [label for _, label, _ in rows],
            "short": [short for _, _, short in rows],
        }

    def runner_up(self, place):
        """The name of a runner-up, and what it loses or needs, in many words and in few; empty where there is
        none."""
        found = self.outcome()
        there = np.isfinite(found.step_s[place])

        def known(column):
            return np.where(there, column[place], 0.0)

        axes = ("tp", "pp", "cp", "dp", "ep", "zero")
        tp, pp, cp, dp, ep, zero = (show(known(getattr(found.layouts, axis)), "count") for axis in axes)
        slower, need = show(known(found.slower_by), "percent"), show(known(found.total_bytes), "bytes")
        lost = select(known(found.lost_by), TERMS)
        none = self.none_fits()
        return (
            choose(there, f"{RANKS[place]}   TP{tp} PP{pp} CP{cp} DP{dp} EP{ep} Z{zero}", ""),
            choose(there, choose(none, f"needs {need}", f"+{slower}: {lost}"), ""),
            choose(there, choose(none, need, f"+{slower}"), ""),
        )

    def winner_s(self):
        return np.where(self.none_legal(), 1.0, self.outcome().step_s[0])

    @part(*JOB, shown=False)
    def zero(self):
        """The winner's step in each row."""
        at = panels.diverging(self.slower() / self.winner_s())[2]
        there = np.isfinite(self.outcome().step_s[1:TOP]) & ~self.none_fits()
        return {
            "x": np.where(there, at, fig.FAR_LEFT),
            "low": NEXT_Y - 1.5 * NEXT_HALF,
            "high": NEXT_Y + NEXT_HALF,  # no higher: on a phone the layout's name stands above the bar
        }

    @part(*JOB, shown=False)
    def next_title(self):
        best = self.said(self.outcome().step_s[0], "seconds")
        apart = show(bands.tie() - 1.0, "percent", 2)
        tied = f"the model cannot rank what is less than {apart} apart"
        long = f"Places 2 to {TOP}, against the first’s {best}: {tied}"
        alone = ~np.isfinite(self.outcome().step_s[1])
        leanest = choose(self.none_fits(), "The next leanest", long)
        short = choose(self.none_fits(), "The next leanest", f"Places 2 to {TOP}, against {best}")
        return {"label": choose(alone, "", leanest), "short": choose(alone, "", short)}

    @staticmethod
    def draw_next(p, sources):
        at, rows = LOSSES.scales(p, y=(0, 6)), NEXT.scales(p, y=(0, 6))
        p.segment("x", "low", "x", "high", source=sources["zero"], line_color=fig.COLOR["axis"], **at)
        p.quad(source=sources["losses"], line_width=1, **fig.BOX, **planned.by_resource(), **at)
        for width, label, long, above in (("wide", "label", "text", 0), ("narrow", "short", "short", -19)):
            fig.only(
                width,
                p.text(0, NEXT_TITLE_Y, text=label, source=sources["next_title"], **fig.BOLD, **rows),
                p.text(
                    0, "y", text="name", source=sources["runners_up"], y_offset=above, **fig.LABEL, **rows
                ),
                p.text("x", "y", text=label, source=sources["runners_up"], x_offset=8, **fig.TEXT, **at),
                p.text(0, MEASURED_Y, text=long, source=sources["measured_row"], **fig.LABEL, **rows),
            )
