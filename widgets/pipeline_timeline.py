"""One step of a pipeline, block by block: who works on which micro-batch, who waits for whom, what a stage holds."""

import numpy as np
from bokeh.core.properties import value

from engine import pipeline
from engine.pipeline_orders import FORWARD, WEIGHT
from engine.pipeline_schedules import CHUNKS, MICRO_BATCHES, STAGES, run
from widgets.kit import figure as fig
from widgets.kit import lanes
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, part, readout, regime

SCHEDULES = {key: (plan.name, plan) for key, plan in pipeline.SCHEDULES.items()}
KINDS = ["forward", "backward", "input gradient", "weight gradient"]
MESSAGES_S = [0.0, *(a * 10.0**k for k in range(-6, -1) for a in (1, 1.5, 2, 3, 5, 7)), 0.1]
WAITS = "waits for stage "
COUNTED = [str(n + 1) for n in range(MICRO_BATCHES)]
LEGIBLE, VISIBLE, HAIR = 0.021, 0.006, 0.0014       # of the chart's width: what two figures take, a hatch, a gap
RUN = ["schedule", "stages", "micro_batches", "chunks", "forward_s", "ratio", "weight_share", "together", "message_s",
       "first_extra", "last_extra", "in_step"]
STARVED, HEAVY, UNEVEN = 0.45, 1.25, 1.1            # from where on a regime is named; p = m = 16 idles 48 %

BLOCK = {"fill_color": fig.COLOR["compute"], "line_color": None}
HATCH = {"fill_color": None, "line_color": None, "hatch_pattern": "right_diagonal_line",
         "hatch_color": fig.COLOR["compute"], "hatch_alpha": 0.6, "hatch_scale": 8, "hatch_weight": 1.2}

OTHER = {"fill_color": fig.COLOR["compute"], "fill_alpha": 0.05, "line_color": fig.COLOR["axis"], "line_dash": [2, 3]}
KEY = [(0.0, "forward", "F", [BLOCK | {"fill_alpha": 0.16}]), (0.15, "backward", "B", [BLOCK | {"fill_alpha": 0.6}]),
       (0.31, "weight gradient", "W", [BLOCK | {"fill_alpha": 0.3}, HATCH]), (0.53, "idle", "idle", [fig.IDLE]),
       (0.68, "another step", "next", [OTHER])]


class PipelineTimeline(Widget):
    question = "What does each stage of a pipeline wait for, and what does it have to hold meanwhile?"
    in_page = True
    schedule = Choice("Schedule", SCHEDULES, "1f1b")
    stages = Number("Stages", 4, 2, STAGES, stops=range(2, STAGES + 1), log=False, whole=True)
    micro_batches = Number("Micro-batches", 8, 1, MICRO_BATCHES, stops=range(1, MICRO_BATCHES + 1), log=False,
                           whole=True)
    chunks = Number("Chunks on a stage", 2, 1, CHUNKS, stops=range(1, CHUNKS + 1), log=False, whole=True, more=True,
                    help="Stretches of layers that an interleaved schedule gives each stage")
    ratio = Number("Backward over forward", 2, 1, 3, family="times", stops=41, log=False, more=True)
    weight_share = Number("Weight gradient's share", 0.5, 0.1, 0.6, family="percent", stops=51, log=False, more=True,
                          help="Of the backward; the rest is the input gradient, for which the stage before waits")
    message_s = Number("Message to the next stage", 0, 0, 0.1, family="seconds", stops=MESSAGES_S, more=True)
    first_extra = Number("Embedding", 0, 0, 1, family="percent", stops=51, log=False, more=True,
                         help="What it adds to the first stage, in stages")
    last_extra = Number("Output layer", 0, 0, 1, family="percent", stops=51, log=False, more=True,
                        help="What it adds to the last stage, in stages")
    together = Number("Forward beside backward", 1, 0.6, 1, family="percent", stops=41, log=False, more=True,
                      help="How long DualPipe's pairs take, of one after the other; less where messages hide")
    in_step = Switch("All stages end the step together", more=True,
                     help="As they must where the gradients' norm is taken over the whole model before the update")
    forward_s = Number("Forward of a stage", 0.02, 0.001, 1, family="seconds", more=True)

    presets = {
        "4 stages, 8 micro-batches": {},
        "The same, GPipe": {"schedule": "gpipe"},
        "The same, ZB-H2": {"schedule": "zb-h2"},
        "p = m = 16": {"stages": 16, "micro_batches": 16},
        "Llama 3 405B, v = 4": {"schedule": "interleaved", "stages": 16, "micro_batches": 16, "chunks": 4,
                                "forward_s": 0.106, "message_s": 7e-4},
        "DualPipe, as published": {"schedule": "dualpipe", "stages": 8, "micro_batches": 20},
    }
    break_it = "Starve the pipeline: 16 stages and 16 micro-batches, or fewer micro-batches than stages."
    assumptions = (
        "Each stage makes its passes in the order of the schedule; a pass starts when its input has arrived. Messages "
        "take a fixed time and do not get in each other's way. The embedding and the output layer lengthen all passes "
        "of their stage. Bars: the most micro-batches whose activations a stage holds at a time, each counted as a "
        "whole stage's; after an input gradient 32/34 of it stays for the weight gradient (arXiv:2401.10241, Table 1).")
    formula = (
        "$$\\text{bubble} = \\frac{(p-1)(F+B)}{(m+p-1)(F+B)} = \\frac{p-1}{m+p-1}$$\n\n"
        "for GPipe and 1F1B: $p$ stages, $m$ micro-batches, a forward of $F$ and a backward of $B$, of which $W$ are "
        "weight gradients. Instead of $(p-1)(F+B)$ a step waits $(p-1)(F+B)/v$ when interleaved, $(p-1)(F+B-2W)$ under "
        "ZB-H1, $(p-1)(F+B-3W)$ under ZB-H2 and $(p/2-1)(F\\&B+B-3W)$ under DualPipe. The picture does not use them: "
        "it runs the schedule.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def passes(self):
        return pipeline.passes(self.forward_s, self.ratio, self.weight_share)

    def textbook_s(self):
        """1F1B with equal stages and no messages: the chart is at least as wide."""
        times = self.passes()
        return pipeline.step_s(self.stages, self.micro_batches, 1, times.forward_s, times.backward_s, times.weight_s,
                               pipeline.SCHEDULES["1f1b"])

    def found(self):
        times = self.passes()
        return run(self.schedule.order, self.stages, self.micro_batches, self.chunks, times.forward_s, times.input_s,
                   times.weight_s, self.together, self.message_s, self.first_extra, self.last_extra,
                   np.where(self.in_step, 1.0, 0.0), fig.share_of(self.textbook_s(), LEGIBLE),
                   fig.share_of(self.textbook_s(), VISIBLE))

    def width_s(self):
        return np.maximum(self.found()["total_s"], self.textbook_s())

    def formula_share(self):
        """The bubble of the closed form, for the stages and micro-batches that were run."""
        found, times = self.found(), self.passes()
        chunks = np.where(self.schedule.interleaved, self.chunks, 1)
        return pipeline.idle_share(found["stages"], found["micro_batches"], chunks, times.forward_s, times.backward_s,
                                   times.weight_s, self.schedule)

    def formula_holds(self):
        found = self.found()
        return found["micro_batches"] >= pipeline.least_micro_batches(found["stages"], self.schedule)

    def most_held(self):
        """Of the stage that holds the most."""
        held = self.found()["held"]
        return np.max(np.where(held > 0, held, 0.0))

    def times_1f1b(self):
        found = self.found()
        return pipeline.against_1f1b(self.most_held(), found["stages"], found["micro_batches"])

    def slowest(self):
        """How long the busiest stage works, over the average."""
        found = self.found()
        busy_s = np.where(found["busy_s"] > 0, found["busy_s"], 0.0)
        return pipeline.imbalance(np.max(busy_s), np.sum(busy_s), found["stages"])

    def marks(self, stage, start_s, end_s, half=0):
        """Where blocks are drawn."""
        bottom, top = lanes.edges(stage, self.found()["stages"], half)
        return {"left": lanes.share(start_s, self.width_s()), "right": lanes.share(end_s, self.width_s()),
                "bottom": bottom, "top": top}

    # -- the picture ------------------------------------------------------------------------------------------------
    @part(*RUN)
    def blocks(self):
        found = self.found()
        kind = found["kind"]
        strength = np.where(kind == FORWARD, 0.16, np.where(kind == WEIGHT, 0.3, 0.6))
        return {"stage": lanes.from_one(found["stage"]), "micro_batch": lanes.from_one(found["batch"]),
                "pass": select(kind, KINDS), "start_s": found["start_s"], "end_s": found["end_s"], "strength": strength,
                **self.marks(found["stage"], found["start_s"], lanes.apart(
                    found["start_s"], found["end_s"], fig.share_of(self.width_s(), HAIR)), found["beside"])}

    @hint("blocks")
    def about_block(self):
        found = self.found()
        return phrase("{kind} of micro-batch {batch} on stage {stage}{beside}: {start} to {end}",
                      kind=select(found["kind"], ["Forward", "Backward", "Input gradient", "Weight gradient"]),
                      batch=show(lanes.from_one(found["batch"]), "count"),
                      stage=show(lanes.from_one(found["stage"]), "count"),
                      beside=select(found["beside"], ["", ", beside a backward", ", beside a forward"]),
                      start=show(found["start_s"], "seconds"), end=show(found["end_s"], "seconds"))

    @part(*RUN)
    def idle(self):
        found = self.found()
        return {"stage": lanes.from_one(found["idle_stage"]),
                **self.marks(found["idle_stage"], found["idle_start_s"], found["idle_end_s"]),
                "start_s": found["idle_start_s"], "end_s": found["idle_end_s"]}

    @hint("idle")
    def about_idle(self):
        found = self.found()
        wire_s = found["idle_wire_s"]
        sent = np.where(wire_s > 0, 0.0, wire_s)        # no number, and so no text, where nothing is on its way
        return phrase("Stage {stage} idles for {time}: it {waits}{other}{what}{batch}{comma}{wire}{sent}",
                      stage=show(lanes.from_one(found["idle_stage"]), "count"),
                      time=show(lanes.lasting(found["idle_start_s"], found["idle_end_s"]), "seconds"),
                      waits=select(found["idle_kind"], [WAITS, WAITS, WAITS, WAITS, "has done its part of this step"]),
                      other=show(lanes.from_one(found["idle_from"]), "count"),
                      what=select(found["idle_kind"], [f"’s {name} of micro-batch " for name in KINDS] + [""]),
                      batch=show(lanes.from_one(found["idle_batch"]), "count"),
                      comma=select(sent, [", "]), wire=show(wire_s, "seconds"),
                      sent=select(sent, [" of it for the message"]))

    @part(*RUN, shown=False)
    def weights(self):
        found = self.found()
        return self.marks(found["weight_stage"], found["weight_start_s"], found["weight_end_s"])

    @part(*RUN, shown=False)
    def gaps(self):
        found = self.found()
        return self.marks(found["gap_stage"], found["gap_start_s"], found["gap_end_s"])

    @part(*RUN, shown=False)
    def others(self):
        found = self.found()
        return self.marks(found["other_stage"], found["other_start_s"], found["other_end_s"])

    @hint("others")
    def about_others(self):
        found = self.found()
        return phrase("Stage {stage} works on the {which} step",
                      stage=show(lanes.from_one(found["other_stage"]), "count"),
                      which=select(found["other_next"], ["previous", "next"]))

    @part(*RUN, shown=False)
    def numbers(self):
        found = self.found()
        return {"x": lanes.share(found["number_at_s"], self.width_s()),
                "y": lanes.within(found["number_stage"], found["stages"], found["number_beside"]),
                "text": select(found["number_batch"], COUNTED)}

    @part(*RUN)
    def stage_rows(self):
        found = self.found()
        held = found["held"]
        stage = np.where(held > 0, np.arange(STAGES), held)
        bottom, top = lanes.edges(stage, found["stages"], filled=0.5)
        return {"y": lanes.within(stage, found["stages"]), "bottom": bottom, "top": top,
                "right": lanes.bar_end(held, np.maximum(self.most_held(), fig.share_of(found["stages"], 2))),
                "held": held, "busy_s": found["busy_s"], "number": show(lanes.from_one(stage), "count"),
                "name": phrase("stage {n}", n=show(lanes.from_one(stage), "count")), "amount": show(held, "count", 2)}

    @part(*RUN, shown=False)
    def step_end(self):
        found = self.found()
        at = lanes.share(found["step_s"], self.width_s())
        alone = found["step_s"] < found["total_s"]
        return {"x": at, "middle": fig.midpoint(0.0, at),
                "text": f"{self.schedule.name}: {choose(alone, 'a step every ', '')}{show(found['step_s'], 'seconds')}",
                "seen": np.where(at < 0.97, 0.8, 0.0),
                "ghost": choose(at < 0.97, f"1F1B: {show(self.textbook_s(), 'seconds')}", "")}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-0.095, 1.29), (-0.13, 1.12), height=450)
        fig.room_left(p, -0.012, 60)
        fig.bare(p)
        block = {"left": "left", "right": "right", "bottom": "bottom", "top": "top"}
        p.quad(**block, source=sources["others"], **OTHER)
        p.quad(**block, source=sources["idle"], fill_color=color["idle"], fill_alpha=0.12, line_color=None)
        p.quad(**block, source=sources["gaps"], **fig.IDLE | {"fill_color": None})
        p.quad(**block, source=sources["blocks"], fill_alpha="strength", **BLOCK)
        p.quad(**block, source=sources["weights"], **HATCH)
        fig.only("wide", p.text("x", "y", text="text", source=sources["numbers"], text_align="center", **fig.TEXT))
        rows = sources["stage_rows"]
        fig.only("wide", p.text(-0.012, "y", text="name", source=rows, text_align="right", **fig.LABEL))
        fig.only("narrow", p.text(-0.02, "y", text="number", source=rows, text_align="right", **fig.LABEL))
        p.quad(**block | {"left": lanes.BARS}, source=rows, fill_color=color["hbm"], fill_alpha=0.3,
               line_color=color["hbm"])
        p.text("right", "y", text="amount", source=rows, x_offset=5, **fig.TEXT)
        for width, words in (("wide", "activations held"), ("narrow", "held")):
            fig.only(width, p.text(lanes.BARS, 1.07, text=value(words), **fig.TEXT | {"text_color": color["hbm"]}))
        end = sources["step_end"]
        p.segment(1, 0, 1, 1, source=end, line_color=color["ink-faint"], line_alpha="seen", line_dash=[2, 4],
                  line_width=2)
        p.segment(0, -0.03, "x", -0.03, source=end, line_color=color["ink"], line_width=1.5)
        for place in (0, "x"):
            p.segment(place, -0.05, place, -0.01, source=end, line_color=color["ink"], line_width=1.5)
        p.text("middle", -0.03, text="text", source=end, text_align="center", y_offset=14, **fig.BOLD)
        fig.only("wide", p.text(1, -0.03, text="ghost", source=end, text_align="right", y_offset=14, **fig.LABEL))
        lanes.key(p, KEY)
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Bubble", help="The idle share of a step, over all stages")
    def bubble(self):
        share = self.found()["bubble"]
        return show(share, "percent"), share > STARVED

    @readout("By the formula", help="For equal stages and messages that take no time")
    def by_formula(self):
        return choose(self.formula_holds(), show(self.formula_share(), "percent"), "too few micro-batches")

    @readout("Step")
    def step(self):
        return show(self.found()["step_s"], "seconds")

    @readout("Activations held", help="By the stage that holds the most, in micro-batches")
    def held(self):
        most = self.most_held()
        return show(most, "count"), self.times_1f1b() > HEAVY

    @regime(target=True)
    def starved(self):
        found = self.found()
        return found["bubble"] > STARVED, (
            f"You starved the pipeline: with {show(found['micro_batches'], 'count')} micro-batches for "
            f"{show(found['stages'], 'count')} stages, a stage idles {show(found['bubble'], 'percent')} of the step. "
            "First response: more micro-batches (a larger batch, or smaller ones), then interleaving; or fewer stages "
            "(lesson 10).")

    @regime()
    def heavy(self):
        more = self.times_1f1b()
        return more > HEAVY, (
            f"Memory is the price: the fullest stage holds the activations of {show(self.most_held(), 'count')} "
            f"micro-batches, {show(more, 'times')} what 1F1B holds. First response: 1F1B or ZB-H1; or recompute "
            "activations (lesson 05).")

    @regime()
    def uneven(self):
        return self.slowest() > UNEVEN, (
            f"Uneven stages: the busiest works {show(self.slowest(), 'times')} as long as the average, and all others "
            "wait for it in every turn. First response: take layers off it, as Llama 3 did with one at each end.")

    @regime()
    def paired(self):
        found = self.found()
        return (found["stages"] > self.stages) | (found["micro_batches"] > self.micro_batches), (
            "DualPipe sends micro-batches from both ends: it needs an even number of stages and two micro-batches for "
            f"each. It is drawn with {show(found['stages'], 'count')} stages and "
            f"{show(found['micro_batches'], 'count')} micro-batches.")

    def summary(self):
        found = self.found()
        return (f"Under {self.schedule.name}, {show(found['stages'], 'count')} stages with "
                f"{show(found['micro_batches'], 'count')} micro-batches take {show(found['step_s'], 'seconds')} for a "
                f"step and idle {show(found['bubble'], 'percent')} of it; the fullest stage holds the activations of "
                f"{show(self.most_held(), 'count')} micro-batches.")
