"""A training job to lay out by hand: can it be built, does it fit, does it reach what is asked?"""

import numpy as np

from engine import missions, planner
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number, Switch, degrees
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

ALL = list(missions.missions().values())
GOALS_Y, MEMORY_Y, TIME_Y = np.array([3.5, 2.6, 1.7]), 4.6, 0.5
END = 1.3
PARTS = ["framework", "weights", "gradients", "optimizer", "activations"]
TERMS = ["arithmetic", "tensor traffic", "pipeline bubble", "context traffic", "expert traffic", "data traffic", "optimizer",
         "stage messages"]
HUES = dict(zip(TERMS, ("compute", "link", "idle", "link", "network", "network", "hbm", "network")))


class LayoutMissions(Widget):
    question = "Can you lay this job out by hand?"
    mission = Choice("Mission", ALL, "fit-7b")
    tp = Choice("Tensor ranks", degrees(1, 2, 4, 8, 16, 32, 64), "1")
    pp = Number("Pipeline stages", 1, 1, 128, stops=range(1, 129), whole=True)
    cp = Choice("Context ranks", degrees(1, 2, 4, 8, 16, 32, 64), "1", more=True)
    ep = Choice("Expert ranks", degrees(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384), "1", more=True)
    split = Switch("Split each expert over the tensor ranks", more=True)
    zero = Choice("ZeRO stage", degrees(0, 1, 2, 3), "1", more=True)
    micro_batch = Choice("Micro-batch", degrees(*planner.MICRO_BATCHES), "1", more=True)
    recompute = Choice("Recompute", {"none": ("nothing", 0.0), "full": ("every layer", 2.0)}, "none", more=True)
    schedule = Choice("Pipeline schedule", {name.replace(" ", ""): (name, float(i)) for i, name in
                                            enumerate(planner.SCHEDULE_NAMES)}, "1f1b", more=True)

    presets = {"A first try": {}, "The textbook's 70B": {"mission": "classic-70b", "tp": 8, "pp": 4},
               "Llama 3's own 405B": {"mission": "llama3-405b", "tp": 8, "pp": 16, "schedule": "interleaved×4"},
               "DeepSeek-V3's axes": {"mission": "deepseek-v3", "pp": 16, "ep": 64, "schedule": "dualpipe", "recompute": "full"},
               "Mixtral, experts cut": {"mission": "mixtral", "tp": 2, "pp": 2, "ep": 8, "split": "on"}}
    break_it = "Fill the memory past the line: which single choice does it on any mission?"
    assumptions = (
        "The same model of a step as the planner's, for one layout: the data ranks are what the other axes leave of the GPUs. "
        "Missions ask for a part of what the planner reaches. Failures and data loading are left out.")
    formula = (
        "$$DP = \\frac{GPUs}{TP \\cdot PP \\cdot CP}, \\qquad MFU = \\frac{\\text{model FLOPs of a step}}{GPUs \\cdot peak "
        "\\cdot T_{step}}$$\n\nA layout wins when it can be built, its fullest GPU holds it and every ceiling is kept.")

    def layout(self):
        chunks = planner.chunks_of(self.schedule)
        expert_tp = np.where(self.split & (self.mission.model.experts > 0), self.tp, 1.0)
        return planner.Layouts(self.tp, self.pp, self.cp, self.ep, expert_tp, 1.0, self.zero, self.micro_batch, self.recompute,
                               self.schedule, chunks)

    @once
    def verdict(self):
        return missions.judge(self.mission, self.layout())

    @once
    def ratios(self):
        return missions.ratios(self.mission, self.verdict())

    def broken(self):
        return self.verdict().fault >= 0

    def said(self, value, family):
        return choose(self.broken(), "–", show(value, family))

    ALL_CONTROLS = ("mission", "tp", "pp", "cp", "ep", "split", "zero", "micro_batch", "recompute", "schedule")

    @part(*ALL_CONTROLS)
    def memory(self):
        size = np.where(self.broken(), 0.0, self.verdict().parts_bytes)
        share = fig.filled(size, self.mission.hbm_bytes)
        left, right = fig.end_to_end(share)
        return {"left": np.minimum(left, END), "right": np.minimum(right, END), "middle": fig.midpoint(left, np.minimum(right, END)),
                "bytes": size, "part": PARTS, "name": [choose((share[i] < 0.17) | (left[i] > END), "", PARTS[i]) for i in range(5)]}

    @hint("memory")
    def memory_said(self):
        return phrase("{part}: {bytes}", part=select(np.arange(5), PARTS), bytes=show(self.memory()["bytes"], "bytes"))

    @part(*ALL_CONTROLS)
    def over(self):
        ratios = self.ratios()
        return {"y": np.append(MEMORY_Y, GOALS_Y), "left": np.ones(4), "right": np.maximum(np.minimum(ratios, END), 1.0),
                "red": np.where(ratios > 1, 1.0, 0.0)}

    @part(*ALL_CONTROLS)
    def goals(self):
        ratios = self.ratios()[1:]
        asked = [self.mission.least_mfu > 0, self.mission.most_days < missions.NO_CEILING,
                 self.mission.most_dollars < missions.NO_CEILING]
        v, m = self.verdict(), self.mission
        values = [self.said(v.mfu, "percent"), f"{self.said(v.days, 'count')} days", self.said(v.dollars, "dollars")]
        limits = [f"at least {show(m.least_mfu, 'percent')}", f"at most {show(m.most_days, 'count')}",
                  f"at most {show(m.most_dollars, 'dollars')}"]
        return {"y": GOALS_Y, "right": np.minimum(ratios, 1.0), "taken": ratios,
                "name": ["MFU, asked over reached", "Days", "Dollars"],
                "label": [choose(asked[i], f"{values[i]}, {limits[i]}", f"{values[i]}, no limit") for i in range(3)],
                "short": values}

    @part(*ALL_CONTROLS)
    def room(self):
        share = self.ratios()[0]
        size = np.sum(self.verdict().parts_bytes)
        return {"x": np.maximum(np.minimum(share, END), 1.0),
                "label": f"{self.said(size, 'bytes')} of {show(self.mission.hbm_bytes, 'bytes')}",
                "short": self.said(size, "bytes")}

    @part(*ALL_CONTROLS)
    def step(self):
        v = self.verdict()
        share = np.where(self.broken(), 0.0, fig.filled(v.times_s, v.step_s))
        left, right = fig.end_to_end(share)
        return {"left": left, "right": right, "x": fig.midpoint(left, right), "seconds": np.where(self.broken(), 0.0, v.times_s),
                "term": TERMS, "name": [choose(share[i] < 0.2, "", TERMS[i]) for i in range(8)]}

    @hint("step")
    def step_said(self):
        return phrase("{term}: {seconds} of the step", term=select(np.arange(8), TERMS), seconds=show(self.step()["seconds"], "seconds"))

    @part(*ALL_CONTROLS)
    def length(self):
        return {"x": 1.0, "label": f"{self.said(self.verdict().step_s, 'seconds')} a step"}

    def figure(self, sources):
        p = fig.plot((-0.01, 1.9), (0.0, 5.4), height=400)
        fig.bare(p)
        color = fig.COLOR
        p.quad(left="left", right="right", bottom=MEMORY_Y - 0.2, top=MEMORY_Y + 0.2, source=sources["memory"],
               fill_color=color["hbm"], fill_alpha=0.25, line_color=color["hbm"], line_width=1.5)
        p.hbar(y="y", left=0, right="right", height=0.34, source=sources["goals"], fill_color=color["accent"], fill_alpha=0.3,
               line_color=None)
        p.hbar(y="y", left="left", right="right", height=0.4, source=sources["over"],
               **fig.OVER | {"line_alpha": "red"})
        rows = np.append(MEMORY_Y, GOALS_Y)
        p.segment(np.ones(4), rows - 0.27, np.ones(4), rows + 0.27, line_color=color["ink"], line_width=2)
        hue = fig.hues("term", HUES)
        p.quad(left="left", right="right", bottom=TIME_Y - 0.2, top=TIME_Y + 0.2, source=sources["step"], fill_color=hue,
               fill_alpha=0.3, line_color=hue)
        p.text([0, 0], [MEMORY_Y, TIME_Y], text=["Memory of the fullest GPU", "The step"], y_offset=-26, **fig.BOLD)
        p.text(0, "y", text="name", source=sources["goals"], y_offset=-24, **fig.BOLD)
        p.text("x", TIME_Y, text="label", source=sources["length"], x_offset=8, **fig.BOLD)
        for width, label in (("wide", "label"), ("narrow", "short")):
            fig.only(width, p.text("x", MEMORY_Y, text=label, source=sources["room"], x_offset=8, **fig.BOLD),
                     p.text("x", "y", text=label, source=sources["beside"], x_offset=8, **fig.TEXT))
        fig.only("wide", p.text("middle", MEMORY_Y, text="name", source=sources["memory"], text_align="center", **fig.TEXT),
                 p.text("x", TIME_Y, text="name", source=sources["step"], text_align="center", **fig.TEXT))
        return p

    @part(*ALL_CONTROLS)
    def beside(self):
        return {"x": np.maximum(np.minimum(self.ratios()[1:], END), 1.0), "y": GOALS_Y, "label": self.goals()["label"],
                "short": self.goals()["short"]}

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Data ranks")
    def data(self):
        return self.said(missions.data_ranks(self.mission, self.layout()), "count"), self.broken()

    @readout("Memory")
    def bytes(self):
        return self.said(np.sum(self.verdict().parts_bytes), "bytes"), self.ratios()[0] > 1

    @readout("MFU")
    def mfu(self):
        return self.said(self.verdict().mfu, "percent"), self.ratios()[1] > 1

    @readout("The run")
    def days(self):
        return f"{self.said(self.verdict().days, 'count')} days", self.ratios()[2] > 1

    @readout("The bill")
    def bill(self):
        return self.said(self.verdict().dollars, "dollars"), self.ratios()[3] > 1

    @readout("Verdict")
    def outcome(self):
        return choose(self.verdict().won, "won", "not yet"), ~self.verdict().won

    @regime()
    def won(self):
        return self.verdict().won, (
            f"Mission accomplished: {self.mission.name} at {self.said(self.verdict().mfu, 'percent')} MFU, "
            f"{self.said(self.verdict().dollars, 'dollars')} for {show(self.mission.tokens, 'tokens')}.")

    @regime()
    def cannot_be_built(self):
        fault, m = np.maximum(self.verdict().fault, 0.0), self.mission
        ranks, data = missions.model_ranks(self.layout()), missions.data_ranks(m, self.layout())
        return self.broken(), (
            f"This cannot be built: {select(fault, missions.FAULTS)}. Tensor × pipeline × context take "
            f"{show(ranks, 'count')} of {show(m.gpus, 'count')} GPUs and leave {show(data, 'count')} data ranks for "
            f"{show(m.batch, 'count')} sequences; the model has {show(m.model.layers, 'count')} layers and "
            f"{show(m.model.heads, 'count')} heads.")

    @regime(target=True)
    def does_not_fit(self):
        return (self.ratios()[0] > 1), (
            f"It does not fit: the fullest GPU needs {self.said(np.sum(self.verdict().parts_bytes), 'bytes')} of "
            f"{show(self.mission.hbm_bytes, 'bytes')}. First response: "
            f"{choose(self.zero > 2, 'model ranks', 'a higher ZeRO stage')} for the state, a finer cut of the "
            "sequence for the activations (lessons 05 and 08).")

    @regime()
    def too_slow(self):
        late = np.max(self.ratios()[1:]) > 1
        return self.verdict().fits & late, (
            f"It fits and is too slow: {self.said(self.verdict().mfu, 'percent')} MFU, {self.said(self.verdict().days, 'count')} "
            f"days, {self.said(self.verdict().dollars, 'dollars')}. Look for the longest piece of the step that is not arithmetic.")

    def summary(self):
        m = self.mission
        return (f"{m.model.name} on {show(m.gpus, 'count')} {m.gpu.name}: tensor {show(self.tp, 'count')} × pipeline "
                f"{show(self.pp, 'count')} × context {show(self.cp, 'count')} with ZeRO {show(self.zero, 'count')} "
                + choose(self.broken(), f"cannot be built ({show(m.hbm_bytes, 'bytes')} a GPU).",
                         f"takes {self.bytes()[0]} of {show(m.hbm_bytes, 'bytes')} and reaches {self.mfu()[0]} MFU."))
