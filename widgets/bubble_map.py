"""The bubble over stages and micro-batches, by schedule, and below it the activations that its first stage holds."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog, memory, pipeline
from widgets.kit import figure as fig
from widgets.kit import lanes
from widgets.kit.controls import Choice, Number
from widgets.kit.text import choose, show
from widgets.kit.widget import Widget, hint, part, readout, regime

SCHEDULES = {key: (plan.name, plan) for key, plan in pipeline.SCHEDULES.items()}
STAGES, MICRO_BATCHES = [2, 4, 8, 16, 32, 64], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
P, M = (np.ravel(grid) * 1.0 for grid in np.meshgrid(STAGES, MICRO_BATCHES, indexing="ij"))
X, Y = lanes.doublings(M), lanes.doublings(P)
(LEFT, RIGHT), (BOTTOM, TOP) = lanes.around(X, 0.5), lanes.around(Y, 0.5)
UP = 7.6                                # the bubble's map stands so far above the memory's
SMALL, STARVED = 0.05, 0.45
LLAMA_BYTES = memory.activation_bytes(catalog.model("llama3.1-405b"), 8192, 1, tensor=8, sequence_parallel=1)
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")]
MAPS = ["schedule", "chunks", "ratio", "weight_share"]


class BubbleMap(Widget):
    question = "How many micro-batches does a pipeline need, and what do they cost in memory?"
    schedule = Choice("Schedule", SCHEDULES, "1f1b")
    stages = Number("Stages", 16, 2, 64, stops=range(2, 65), whole=True, log=False)
    micro_batches = Number("Micro-batches", 64, 1, 512, stops=80, whole=True, marks=MICRO_BATCHES)
    chunks = Number("Chunks on a stage", 4, 1, 8, stops=range(1, 9), whole=True, log=False, more=True,
                    help="Stretches of layers that an interleaved schedule gives each stage")
    ratio = Number("Backward over forward", 2, 1, 3, family="times", stops=41, log=False, more=True)
    weight_share = Number("Weight gradient's share", 0.5, 0.1, 0.5, family="percent", stops=41, log=False, more=True,
                          help="Of the backward")
    activation_bytes = Number("Activations of a micro-batch", LLAMA_BYTES, 1e9, 1e12, family="bytes", more=True,
                              help="Of the whole model, on one tensor-parallel rank")
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)

    presets = {"16 stages, 64 micro-batches": {},
               "Llama 3 405B, v = 4": {"schedule": "interleaved", "micro_batches": 16},
               "The same, 1F1B": {"micro_batches": 16}, "GPipe": {"schedule": "gpipe"}, "ZB-H2": {"schedule": "zb-h2"},
               "DualPipe": {"schedule": "dualpipe"}}
    break_it = "Shrink the bubble with more and more micro-batches. Under which schedule does the GPU burst before it is small?"
    assumptions = (
        "Equal stages, messages that take no time, the schedules' closed forms; a dash where a schedule has too few "
        "micro-batches for them. Activations alone: the state comes on top. By default those of Llama 3.1 405B on one "
        "of eight tensor-parallel ranks, 8,192 tokens, nothing recomputed. DualPipe also holds its weights twice.")
    formula = (
        "$$\\text{bubble} = \\frac{I}{m(F+B) + I}, \\qquad \\text{held} = \\text{in flight} \\cdot \\frac{A}{p}$$\n\n"
        "with the idle time $I$ of a step, $(p-1)(F+B)$ for GPipe and 1F1B, divided by $v$ when interleaved, "
        "$(p-1)(F+B-2W)$ for ZB-H1, $(p-1)(F+B-3W)$ for ZB-H2, $(p/2-1)(F\\&B+B-3W)$ for DualPipe; and with $A$ bytes "
        "of activations of one micro-batch in the whole model. In flight are $m$ (GPipe), $p$ (1F1B, ZB-H1), "
        "$p + (p-1)/v$, $2p-1$ or $p+1$ micro-batches.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def used_chunks(self):
        return np.where(self.schedule.interleaved, self.chunks, 1)

    def bubble(self, stages, micro_batches):
        times = pipeline.passes(1.0, self.ratio, self.weight_share)
        return pipeline.idle_share(stages, micro_batches, self.used_chunks(), times.forward_s, times.backward_s,
                                   times.weight_s, self.schedule)

    def enough(self, stages, micro_batches):
        return micro_batches >= pipeline.least_micro_batches(stages, self.schedule)

    def held_bytes(self, stages, micro_batches):
        return pipeline.first_stage_bytes(stages, micro_batches, self.used_chunks(), self.activation_bytes,
                                          self.schedule)

    def over(self):
        return self.held_bytes(self.stages, self.micro_batches) > self.gpu.hbm_bytes

    # -- the picture ------------------------------------------------------------------------------------------------
    @part(*MAPS)
    def bubbles(self):
        share, known = self.bubble(P, M), self.enough(P, M)
        return {"left": LEFT, "right": RIGHT, "bottom": lanes.raised(BOTTOM, UP), "top": lanes.raised(TOP, UP),
                "stages": P, "micro_batches": M, "x": X, "y": lanes.raised(Y, UP), "share": share,
                "strength": np.where(known, share, 0.0), "blank": fig.right_if(~known, LEFT, RIGHT),
                "text": [choose(known[i], show(share[i], "percent", 2), "–") for i in range(P.size)]}

    @hint("bubbles")
    def about_bubbles(self):
        share, known = self.bubble(P, M), self.enough(P, M)
        return [choose(known[i], f"{show(P[i], 'count')} stages, {show(M[i], 'count')} micro-batches: "
                       f"{show(share[i], 'percent')} idle", f"{self.schedule.name} needs more micro-batches for "
                       f"{show(P[i], 'count')} stages") for i in range(P.size)]

    @part("schedule", "chunks", "activation_bytes", "gpu")
    def memories(self):
        held, known = self.held_bytes(P, M), self.enough(P, M)
        over = known & (held > self.gpu.hbm_bytes)
        return {"left": LEFT, "right": RIGHT, "bottom": BOTTOM, "top": TOP, "stages": P, "micro_batches": M,
                "x": X, "y": Y, "held_bytes": held,
                "strength": np.where(known & ~over, fig.share_of(lanes.share(held, self.gpu.hbm_bytes), 0.5), 0.0),
                "over": fig.right_if(over, LEFT, RIGHT), "blank": fig.right_if(~known, LEFT, RIGHT),
                "text": [choose(known[i], show(held[i], "bytes", 2), "–") for i in range(P.size)]}

    @part("stages", "micro_batches", shown=False)
    def chosen(self):
        left, right = lanes.around(lanes.doublings(self.micro_batches), 0.5)
        bottom, top = lanes.around(lanes.doublings(self.stages), 0.5)
        return {"left": [left, left], "right": [right, right], "bottom": [bottom, lanes.raised(bottom, UP)],
                "top": [top, lanes.raised(top, UP)]}

    @part("gpu", "schedule", shown=False)
    def titles(self):
        return {"y": [14.35, 6.75],
                "text": [f"the bubble under {self.schedule.name}, as a share of the step",
                         f"activations on the first stage; hatched: more than one {self.gpu.name} has"],
                "narrow": [f"bubble, {self.schedule.name}",
                           f"activations; hatched: over {show(self.gpu.hbm_bytes, 'bytes')}"]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-1.3, 9.55), (-0.8, 14.7), height=540)
        fig.bare(p)
        block = {"left": "left", "right": "right", "bottom": "bottom", "top": "top", "line_color": color["panel"]}
        for name, hue in (("bubbles", "idle"), ("memories", "hbm")):
            p.quad(**block, source=sources[name], fill_color=color[hue], fill_alpha="strength")
            p.quad(**block | {"right": "blank", "line_color": None}, source=sources[name], fill_color=color["idle"],
                   fill_alpha=0.35, hatch_pattern="dot", hatch_color=color["idle"], hatch_alpha=0.35, hatch_scale=7)
        p.quad(**block | {"right": "over", "line_color": None}, source=sources["memories"], fill_color=color["over"],
               fill_alpha=0.2, hatch_pattern="right_diagonal_line", hatch_color=color["over"], hatch_alpha=0.2,
               hatch_scale=12)
        for name in ("bubbles", "memories"):
            fig.only("wide", p.text("x", "y", text="text", source=sources[name], text_align="center", **fig.TEXT))
        for rise in (0, UP):
            p.line(np.repeat(np.log2(STAGES) + 1.5, 2), np.ravel([(k + 0.5 + rise, k + 1.5 + rise) for k in range(6)]),
                   line_color=color["ink"], line_width=1.8, line_dash=[6, 4])
            fig.only("wide", p.text(7.55, 6.75 + rise, text=value("m ≥ 4p"), **fig.TEXT))
            for count in STAGES:
                y = np.log2(count) + rise
                fig.only("wide", p.text(-0.62, y, text=value(f"p = {count}"), text_align="right", **fig.LABEL))
                fig.only("narrow", p.text(-0.62, y, text=value(str(count)), text_align="right", **fig.LABEL))
        for count in MICRO_BATCHES:
            p.text(np.log2(count), 0.15, text=value(str(count)), text_align="center", **fig.LABEL)
        p.text(4.5, -0.5, text=value("micro-batches m"), text_align="center", **fig.LABEL)
        p.quad(left="left", right="right", bottom="bottom", top="top", source=sources["chosen"], fill_color=None,
               line_color=color["accent"], line_width=3)
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(width, p.text(-0.5, "y", text=column, source=sources["titles"], **fig.BOLD))
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Bubble")
    def idle(self):
        share = self.bubble(self.stages, self.micro_batches)
        enough = self.enough(self.stages, self.micro_batches)
        return choose(enough, show(share, "percent"), "too few micro-batches"), share > STARVED

    @readout("Micro-batches for 5 %", help="The least with a bubble of at most five per cent")
    def needed(self):
        times = pipeline.passes(1.0, self.ratio, self.weight_share)
        return show(pipeline.micro_batches_for(SMALL, self.stages, self.used_chunks(), times.forward_s,
                                               times.backward_s, times.weight_s, self.schedule), "count")

    @readout("In flight", help="Micro-batches whose activations the first stage holds at its fullest")
    def in_flight(self):
        return show(pipeline.in_flight(self.stages, self.micro_batches, self.used_chunks(), self.schedule), "count")

    @readout("Activations, first stage")
    def held(self):
        return show(self.held_bytes(self.stages, self.micro_batches), "bytes"), self.over()

    @regime(target=True)
    def burst(self):
        held = self.held_bytes(self.stages, self.micro_batches)
        return self.over(), (
            f"You found a schedule that pays for its bubble in memory: {self.schedule.name} holds {show(held, 'bytes')} of activations on "
            f"the first stage, and one {self.gpu.name} has {show(self.gpu.hbm_bytes, 'bytes')}. First response: 1F1B "
            f"or ZB-H1, which hold {show(self.activation_bytes, 'bytes')} however many micro-batches; else recompute "
            "(lesson 05).")

    @regime()
    def starving(self):
        share = self.bubble(self.stages, self.micro_batches)
        return share > STARVED, (
            f"The bubble eats {show(share, 'percent')} of the step. First response: more micro-batches, until there "
            "are four for each stage; then interleaving.")

    def summary(self):
        at = self.stages, self.micro_batches
        return (f"Under {self.schedule.name}, {show(self.stages, 'count')} stages with "
                f"{show(self.micro_batches, 'count')} micro-batches idle {show(self.bubble(*at), 'percent')} of a "
                f"step, and the first stage holds up to {show(self.held_bytes(*at), 'bytes')} of activations.")
