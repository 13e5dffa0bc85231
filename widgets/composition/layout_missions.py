"""A training job to lay out by hand: can it be built, does it fit, does it reach what is asked?"""

import numpy as np

from engine.exam import missions
from engine.step import cases, search
from widgets.kit.controls import Choice, Number, Switch, degrees
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lettering, planned
from widgets.kit.text import choose, phrase, select, show, usable
from widgets.kit.widget import Widget, hint, once, part, readout, regime

ALL = list(missions.missions().values())
GOALS = ["Memory of the fullest GPU", "MFU", "Days of the run", "Dollars of the run"]
PARTS_SHORT = ["", "weights", "grads", "optim.", "activ."]
TERMS_SHORT = ["arithmetic", "tensor", "bubble", "context", "experts", "data", "optim.", "messages"]
ON_PIECES = dict.fromkeys(planned.RESOURCES, "on-work") | {"hbm": "panel", "idle": "ink"}
MADE_OF = f"from the left: {', '.join(planned.PARTS)}"
OUT = -99.0  # the height of what is not drawn
VIEW = 1.125  # the picture's width
HALF, ROOM = (
    0.031,
    1.12,
)  # of a bar, as a share of the picture; how much longer its scale is than the longer of value and limit


class LayoutMissions(Widget):
    question = "Can you lay this job out by hand?"
    mission = Choice("Mission", ALL, "fit-7b")
    tp = Choice("Tensor ranks", degrees(1, 2, 4, 8, 16, 32, 64), "1")
    pp = Number("Pipeline stages", 1, 1, 128, stops=range(1, 129), whole=True)
    cp = Choice("Context ranks", degrees(1, 2, 4, 8, 16, 32, 64), "1", more=True)
    ep = Choice(
        "Expert ranks",
        degrees(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384),
        "1",
        more=True,
    )
    split = Switch("Split each expert over the tensor ranks", more=True)
    zero = Choice("ZeRO stage", degrees(0, 1, 2, 3), "1", more=True)
    micro_batch = Choice("Micro-batch", degrees(*search.MICRO_BATCHES), "1", more=True)
    recompute = Choice(
        "Recompute", {"none": ("nothing", 0.0), "full": ("every layer", 2.0)}, "none", more=True
    )
    schedule = Choice(
        "Pipeline schedule",
        {
            name.replace(" ", ""): (title, float(i))
            for i, (name, title) in enumerate(zip(cases.SCHEDULE_NAMES, cases.SCHEDULE_TITLES, strict=True))
        },
        "1f1b",
        more=True,
    )

    presets = {
        "A first try": {},
        "The textbook's 70B": {"mission": "classic-70b", "tp": 8, "pp": 4},
        "Llama 3's own 405B": {"mission": "llama3-405b", "tp": 8, "pp": 16, "schedule": "interleaved×4"},
        "DeepSeek-V3's axes": {"mission": "deepseek-v3", "pp": 16, "ep": 64, "schedule": "dualpipe"},
        "Mixtral, experts cut": {"mission": "mixtral", "tp": 2, "pp": 2, "ep": 8, "split": "on"},
    }
    break_it = "Find one choice that cannot be built on any mission: what must the ranks divide?"
    assumptions = (
        "The same model of a step as the planner's, for one layout: the data ranks are what the other axes "
        "leave of the GPUs. Missions ask for a part of what the planner reaches. Failures and data loading "
        "are left out."
    )
    formula = (
        "$$DP = \\frac{GPUs}{TP \\cdot PP \\cdot CP}, \\qquad MFU = \\frac{\\text{model FLOPs of a "
        "step}}{GPUs \\cdot peak \\cdot T_{step}}$$\n\nA layout wins when it can be built, its fullest GPU "
        "holds it and every ceiling is kept."
    )

    def layout(self):
        chunks = cases.chunks_of(self.schedule)
        expert_tp = np.where(self.split & (self.mission.model.experts > 0), self.tp, 1.0)
        return cases.Layouts(
            self.tp,
            self.pp,
            self.cp,
            self.ep,
            expert_tp,
            1.0,
            self.zero,
            self.micro_batch,
            self.recompute,
            self.schedule,
            chunks,
        )

    @once
    def verdict(self):
        return missions.judge(self.mission, self.layout())

    @once
    def ratios(self):
        return missions.ratios(self.mission, self.verdict())

    @once
    def values(self):
        """What the layout reaches: bytes, MFU, days and dollars; nothing where it cannot be built."""
        v = self.verdict()
        return np.where(self.broken(), 0.0, np.stack([v.total_bytes, v.mfu, v.days, v.dollars]))

    def limits(self):
        m = self.mission
        return np.stack([m.hbm_bytes, m.least_mfu, m.most_days, m.most_dollars])

    @once
    def places(self):
        """The heights of the goals that the mission has, from the top, and that of the step below them; those
        of others are out of the picture."""
        limits = self.limits()
        asked = (limits > 0) & (limits < missions.NO_CEILING)
        index = np.cumsum(np.where(asked, 1.0, 0.0))
        return np.where(asked, -index, OUT), -index[-1] - 1.0

    def broken(self):
        return self.verdict().fault >= 0

    def said(self, value, family):
        return choose(self.broken(), "–", show(value, family))

    ALL_CONTROLS = (
        "mission",
        "tp",
        "pp",
        "cp",
        "ep",
        "split",
        "zero",
        "micro_batch",
        "recompute",
        "schedule",
    )

    def ranges(self):
        return {"y": [self.places()[1] - 0.45, -0.4]}

    def half(self):
        """Half the height of a bar: the same number of pixels however many goals there are."""
        low, high = self.ranges()["y"]
        return HALF * (high - low)

    def scales(self):
        """The end of each goal's scale: nothing on it is longer."""
        longer = np.maximum(self.values(), self.limits())
        return np.where(self.places()[0] > OUT, longer, 1.0) * ROOM

    @part(*ALL_CONTROLS)
    def memory(self):
        """What fills the fullest GPU, on the scale of the first goal."""
        size = np.where(self.broken(), 0.0, self.verdict().parts_bytes)
        left, right = fig.end_to_end(size / self.scales()[0])
        y = self.places()[0][0] + 0.0 * size
        return {
            "left": fig.gone_unless(size > 0, left),
            "right": fig.gone_unless(size > 0, right),
            **fig.rows_of(y, self.half()),
            "y": y,
            "bytes": size,
            "part": planned.PARTS,
            **self.named_pieces(
                left, np.minimum(right, self.limits()[0] / self.scales()[0]), planned.PARTS, PARTS_SHORT
            ),
        }

    @staticmethod
    def named_pieces(left, right, names, short):
        """The names of a bar's pieces where there is room, and their middles."""
        return {"x": fig.midpoint(left, right)} | fig.names_in(right - left, VIEW, names, short)

    @hint("memory")
    def memory_said(self):
        return phrase(
            "{part}: {bytes}",
            part=select(np.arange(5), planned.PARTS),
            bytes=show(self.memory()["bytes"], "bytes"),
        )

    @part(*ALL_CONTROLS)
    def goals(self):
        """MFU, days and dollars as bars; the memory's bar is in pieces."""
        y, values = self.places()[0][1:], self.values()[1:]
        right, seen = values / self.scales()[1:], (values > 0) & (y > OUT)
        return {
            "left": fig.gone_unless(seen, 0.0 * right),
            "right": fig.gone_unless(seen, right),
            **fig.rows_of(y, self.half()),
            "value": values,
        }

    @hint("goals")
    def goals_said(self):
        said, asked = self.said_values(), self.said_limits()
        return [f"{GOALS[i]}: {said[i]}, {asked[i]}" for i in range(1, 4)]

    def said_values(self):
        v = self.verdict()
        return [
            self.said(v.total_bytes, "bytes"),
            self.said(v.mfu, "percent"),
            f"{self.said(v.days, 'count')} days",
            self.said(v.dollars, "dollars"),
        ]

    def said_limits(self):
        m = self.mission
        return [
            usable(m.hbm_bytes, m.gpu.hbm_bytes),
            f"at least {show(m.least_mfu, 'percent')}",
            f"at most {show(m.most_days, 'count')} days",
            f"at most {show(m.most_dollars, 'dollars')}",
        ]

    @part(*ALL_CONTROLS, shown=False)
    def limit(self):
        """The tick of each goal, and the side of it on which the goal is reached."""
        y, at = self.places()[0], self.limits() / self.scales()
        at = np.where(y > OUT, at, 0.0)
        least = np.array([0.0, 1.0, 0.0, 0.0])  # the MFU alone must be above its tick
        return {
            "x": at,
            "y": y,
            "from": np.where(least > 0, at, 0.0),
            "to": np.where(least > 0, 1.0, at),
            **fig.rows_of(y, 1.5 * self.half()),
            "label": self.said_limits(),
            "side": fig.inward(at, 0.0, 1.0, 0.16),
        }

    @part(*ALL_CONTROLS, shown=False)
    def named(self):
        """Each goal's name, and the value at the end of its bar."""
        y, scale = self.places()[0], self.scales()
        end, at = self.values() / scale, self.limits() / scale
        return {
            "y": y,
            **fig.value_places(end, at, 0.2),
            "name": GOALS,
            "made_of": [choose(self.broken(), "", MADE_OF), "", "", ""],
            "value": [choose(self.broken(), "", said) for said in self.said_values()],
        }

    @part(*ALL_CONTROLS)
    def over(self):
        """What lies past a ceiling."""
        y, scale = self.places()[0], self.scales()
        past = (self.ratios() > 1) & (y > OUT) & (np.arange(4) != 1)
        return {
            "left": fig.gone_unless(past, self.limits() / scale),
            "right": fig.gone_unless(past, self.values() / scale),
            **fig.rows_of(y, self.half()),
            "red": np.where(past, 1.0, 0.0),
        }

    @part(*ALL_CONTROLS)
    def step(self):
        v = self.verdict()
        seconds = np.where(self.broken(), 0.0, v.times_s)
        a = cases.Layouts(*(np.stack([axis + 0.0]) for axis in self.degrees()))
        kinds = planned.resources(cases.beyond_the_node(missions.case(self.mission), a)[0])
        y = self.places()[1] + 0.0 * seconds
        left, right = fig.end_to_end(seconds / v.step_s / ROOM)
        return planned.pieces(seconds / v.step_s / ROOM) | {
            **fig.rows_of(y, self.half()),
            **self.named_pieces(left, right, planned.TERMS, TERMS_SHORT),
            "y": y,
            "seconds": seconds,
            "term": planned.TERMS,
            "resource": select(kinds, planned.RESOURCES),
        }

    def degrees(self):
        """The layout with its data ranks."""
        a = self.layout()
        return a._replace(dp=missions.data_ranks(self.mission, a.tp, a.pp, a.cp))

    @hint("step")
    def step_said(self):
        return phrase(
            "{term}: {seconds} of the step",
            term=select(np.arange(8), planned.TERMS),
            seconds=show(self.step()["seconds"], "seconds"),
        )

    @part(*ALL_CONTROLS, shown=False)
    def length(self):
        v = self.verdict()
        note = planned.largest(v.times_s / v.step_s, planned.TERMS, "percent")
        return {
            "x": 1.0 / ROOM,
            "y": self.places()[1],
            "name": "One step",
            "value": choose(self.broken(), "", show(v.step_s, "seconds")),
            "note": choose(self.broken(), "cannot be built", note),
        }

    def figure(self, sources):
        p = fig.plot((-0.005, 1.12), (-5.4, -0.4), height=400)
        fig.bare(p)
        color = fig.COLOR
        limits = sources["limit"]
        p.quad(
            left="from",
            right="to",
            bottom="bottom",
            top="top",
            source=limits,
            fill_color=color["grid"],
            line_color=None,
        )
        p.quad(source=sources["memory"], fill_color=color["hbm"], line_color=color["panel"], **fig.BOX)
        p.quad(source=sources["goals"], fill_color=color["ink-soft"], line_color=None, **fig.BOX)
        p.quad(source=sources["over"], **fig.BOX, fill_color=color["panel"], line_color=None)
        p.quad(source=sources["over"], **fig.BOX, **fig.OVER | {"line_alpha": "red"})
        p.quad(source=sources["step"], line_width=1, **fig.BOX, **planned.by_resource())
        p.segment("x", "bottom", "x", "top", source=limits, line_color=color["ink"], line_width=2.5)
        p.text("x", "bottom", text="label", text_align="side", source=limits, y_offset=9, **fig.LABEL)
        for name in ("named", "length"):
            p.text(0, "y", text="name", source=sources[name], y_offset=-30, **fig.BOLD)
        beside = {"x_offset": lettering.width(GOALS[0], bold=True) + 9, "y_offset": -30} | fig.LABEL
        fig.only("wide", p.text(0, "y", text="made_of", source=sources["named"], **beside))
        for width, name in (("wide", "name"), ("narrow", "short")):
            within = {"text": name, "text_align": "center"} | fig.TEXT
            on_hbm = within | {"text_color": color["panel"]}
            by_piece = within | {"text_color": fig.hues("resource", ON_PIECES)}
            fig.only(
                width,
                p.text("x", "y", source=sources["memory"], **on_hbm),
                p.text("x", "y", source=sources["step"], **by_piece),
            )
        fig.values(p, sources["named"], "value", **fig.BOLD)
        p.text("x", "y", text="value", source=sources["length"], x_offset=8, **fig.BOLD)
        p.text(0, "y", text="note", source=sources["length"], y_offset=25, **fig.LABEL)
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Data ranks")
    def data(self):
        layout = self.layout()
        ranks = missions.data_ranks(self.mission, layout.tp, layout.pp, layout.cp)
        return self.said(ranks, "count"), self.broken()

    @readout("Memory", rest=True)
    def bytes(self):
        return self.said(np.sum(self.verdict().parts_bytes), "bytes"), self.ratios()[0] > 1

    @readout("MFU", rest=True)
    def mfu(self):
        return self.said(self.verdict().mfu, "percent"), self.ratios()[1] > 1

    @readout("The run", rest=True)
    def days(self):
        return f"{self.said(self.verdict().days, 'count')} days", self.ratios()[2] > 1

    @readout("The bill", rest=True)
    def bill(self):
        return self.said(self.verdict().dollars, "dollars"), self.ratios()[3] > 1

    @readout("Verdict")
    def outcome(self):
        return choose(self.verdict().won, "won", "not yet"), ~self.verdict().won

    @regime()
    def won(self):
        return self.verdict().won, (
            f"Mission accomplished: {self.mission.name} at {self.said(self.verdict().mfu, 'percent')} MFU, "
            f"{self.said(self.verdict().dollars, 'dollars')} for {show(self.mission.tokens, 'tokens')}."
        )

    @regime(target=True)
    def cannot_be_built(self):
        fault, m = np.maximum(self.verdict().fault, 0.0), self.mission
        layout = self.layout()
        ranks = missions.model_ranks(layout.tp, layout.pp, layout.cp)
        data = missions.data_ranks(m, layout.tp, layout.pp, layout.cp)
        return self.broken(), (
            f"This cannot be built: {select(fault, missions.FAULTS)}. Tensor × pipeline × context take "
            f"{show(ranks, 'count')} of {show(m.gpus, 'count')} GPUs and leave {show(data, 'count')} data "
            f"ranks for {show(m.batch, 'count')} sequences; the model has {show(m.model.depth, 'count')} "
            f"layers and {show(m.model.heads, 'count')} heads."
        )

    @regime()
    def does_not_fit(self):
        return (self.ratios()[0] > 1), (
            "It does not fit: the fullest GPU needs "
            f"{self.said(np.sum(self.verdict().parts_bytes), 'bytes')} of {usable(self.mission.hbm_bytes)}. "
            f"First response: {choose(self.zero > 2, 'model ranks', 'a higher ZeRO stage')} for the state, a "
            "finer cut of the sequence for the activations (lessons 05 and 08)."
        )

    @regime()
    def too_slow(self):
        late = np.max(self.ratios()[1:]) > 1
        return self.verdict().fits & late, (
            f"It fits and is too slow: {self.said(self.verdict().mfu, 'percent')} MFU, "
            f"{self.said(self.verdict().days, 'count')} days, "
            f"{self.said(self.verdict().dollars, 'dollars')}. Look for the longest piece of the step that is "
            "not arithmetic."
        )

    def summary(self):
        m, count = self.mission, lambda value: show(value, "count")
        axes = f"TP {count(self.tp)} × PP {count(self.pp)} × CP {count(self.cp)}, ZeRO {count(self.zero)}"
        takes = f"takes {self.bytes()[0]} of {usable(m.hbm_bytes)} at {self.mfu()[0]} MFU"
        return (
            f"{m.model.name} on {count(m.gpus)} {m.gpu.name}: {axes} "
            f"{choose(self.broken(), 'cannot be built', takes)}."
        )


LayoutMissions.serve_as(__name__)
