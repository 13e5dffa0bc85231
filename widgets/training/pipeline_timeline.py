"""One step of a pipeline, block by block: which stage works on which micro-batch, which one waits, and what
each stage holds."""

import numpy as np
from bokeh.core.properties import value

from engine.executed.pipeline_schedules import CHUNKS, MICRO_BATCHES, NOT_OWN, STAGES, run
from engine.mechanism import pipeline
from engine.mechanism.pipeline_orders import WEIGHT
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lanes, passes
from widgets.kit.guide import Light, Step
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, counted, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

SCHEDULES = {key: (plan.name, plan) for key, plan in pipeline.SCHEDULES.items()}
KINDS = ["forward", "backward", "input gradient", "weight gradient"]
MESSAGES_S = [0.0, *(a * 10.0**k for k in range(-6, -1) for a in (1, 1.5, 2, 3, 5, 7)), 0.1]
WAITS = "waits for stage "
COUNTED = [str(n + 1) for n in range(MICRO_BATCHES)]
RUN = [
    "schedule",
    "stages",
    "micro_batches",
    "chunks",
    "forward_s",
    "ratio",
    "weight_share",
    "together",
    "message_s",
    "first_extra",
    "last_extra",
    "in_step",
]
LINE, FARTHEST = -0.03, 1.25  # the height of the step's line; where a longer run is drawn at most
STARVED, HEAVY, UNEVEN = 0.45, 1.25, 1.1  # from where on a regime is named; p = m = 16 idles 48 %

# A forward is solid, a backward deeper in tone, and what is put off, the weight gradient, an outline; passes
# through later chunks of a stage are paler. Idle is the ground itself, with a hairline round it.
PALE, FAINT = 0.42, 0.16
LOOKS = {  # an outline of all passes that look alike -> its hue and strength
    "forward": ("compute", 1.0),
    "backward": ("compute-deep", 1.0),
    "later_forward": ("compute", PALE),
    "later_backward": ("compute-deep", PALE),
    "weight": ("compute", FAINT),
}
LOOK = ["forward", "backward", "later_forward", "later_backward", "weight"]  # as passes.py counts them
ON = {
    "forward": "on-work",
    "backward": "on-deep",
    "later_forward": "ink",
    "later_backward": "ink",
    "weight": "ink",
}
WAITING = {"fill_color": None, "line_color": fig.COLOR["ink-soft"], "line_dash": [3, 3]}
GAP = {"fill_color": None, "line_color": fig.COLOR["idle"], "line_width": 0.6}

OTHER = {
    "fill_color": fig.COLOR["compute"],
    "fill_alpha": 0.05,
    "line_color": fig.COLOR["axis"],
    "line_dash": [2, 3],
}
KEY = [
    ("forward", "F", {"fill_color": fig.COLOR["compute"], "line_color": None}),
    ("backward", "B", {"fill_color": fig.COLOR["compute-deep"], "line_color": None}),
    ("idle", "idle", GAP),
    (
        "weight gradient",
        "W",
        {"fill_color": fig.COLOR["compute"], "fill_alpha": FAINT, "line_color": fig.COLOR["compute"]},
    ),
    ("another step", "next", OTHER),
]


class PipelineTimeline(Widget):
    question = "What does each stage of a pipeline wait for, and what does it have to hold meanwhile?"
    in_page = True
    schedule = Choice("Schedule", SCHEDULES, "1f1b")
    stages = Number("Stages", 4, 2, STAGES, stops=range(2, STAGES + 1), log=False, whole=True)
    micro_batches = Number(
        "Micro-batches", 8, 1, MICRO_BATCHES, stops=range(1, MICRO_BATCHES + 1), log=False, whole=True
    )
    chunks = Number(
        "Chunks on a stage",
        2,
        1,
        CHUNKS,
        stops=range(1, CHUNKS + 1),
        log=False,
        whole=True,
        more=True,
        help="Chunks of layers per stage in an interleaved schedule",
    )
    ratio = Number("Backward over forward", 2, 1, 3, family="times", stops=41, log=False, more=True)
    weight_share = Number(
        "Weight gradient's share",
        0.5,
        0.1,
        0.6,
        family="percent",
        stops=51,
        log=False,
        more=True,
        help="Share of the backward pass; the previous stage waits for the rest, the input gradient",
    )
    message_s = Number("Message to the next stage", 0, 0, 0.1, family="seconds", stops=MESSAGES_S, more=True)
    first_extra = Number(
        "Embedding",
        0,
        0,
        1,
        family="percent",
        stops=51,
        log=False,
        more=True,
        help="The work it adds to the first stage, in stages",
    )
    last_extra = Number(
        "Output layer",
        0,
        0,
        1,
        family="percent",
        stops=51,
        log=False,
        more=True,
        help="The work it adds to the last stage, in stages",
    )
    together = Number(
        "Forward beside backward",
        1,
        0.6,
        1,
        family="percent",
        stops=41,
        log=False,
        more=True,
        help="Time of DualPipe's and DualPipeV's pairs over one pass after the other; lower if messages hide",
    )
    in_step = Switch(
        "All stages end the step together",
        more=True,
        help="Required if the gradient norm is computed over the whole model before the update",
    )
    forward_s = Number("Forward of a stage", 0.02, 0.001, 1, family="seconds", more=True)
    dots = Dots()
    own = tuple(NOT_OWN)
    given = {"own": own}  # a reader's schedule, as pipeline_orders.own_order reads it

    on_phone = "schedule"
    presets = {
        "4 stages, 8 micro-batches": {},
        "The same, GPipe": {"schedule": "gpipe"},
        "The same, ZB-H2": {"schedule": "zb-h2"},
        "16 stages, 24 micro-batches": {"stages": 16, "micro_batches": 24},
        "Llama 3 405B, v = 4": {
            "schedule": "interleaved",
            "stages": 16,
            "micro_batches": 16,
            "chunks": 4,
            "forward_s": 0.106,
            "message_s": 7e-4,
        },
        "DualPipe, as published": {"schedule": "dualpipe", "stages": 8, "micro_batches": 20},
        "4 stages in a V, ZB-V": {"schedule": "zb-v"},
        "Its half, DualPipeV": {"schedule": "dualpipe-v", "micro_batches": 10},
        "12 stages, 64 micro-batches: BLOOM": {"stages": 12, "micro_batches": 64},
    }
    break_it = "Starve the pipeline, until its stages idle for almost half of the step."
    lights = {
        "idle": Light("the stretches in which a stage waits", ("gaps",)),
        "blocks": Light(
            "the passes that each stage makes", (*(f"{look}s" for look in LOOK), "edges", "numbers")
        ),
        "weights": Light("the weight gradients, which nobody waits for", ("weights", "edges")),
        "held": Light("the activations that each stage holds, at the right", ("stage_rows",)),
    }
    tour = (
        Step(
            "{stages} stages work on {micro_batches} micro-batches under 1F1B. The line has to fill and to "
            "drain, so a stage idles {bubble} of the step.",
            {},
            "idle",
        ),
        Step(
            "GPipe makes all forwards first. It waits exactly as long, {bubble}, but its stages hold the "
            "activations of {held} micro-batches until the backwards come.",
            {"schedule": "gpipe"},
            "held",
        ),
        Step(
            "1F1B again, with {micro_batches} micro-batches: the same wait beside more work is {bubble} of "
            "the step, and the memory has not grown.",
            {"micro_batches": 32},
            "idle",
        ),
        Step(
            "Interleaved, each stage has {chunks} chunks of layers and makes shorter passes, so the line "
            "fills sooner: {bubble}. The price is more messages, and activations of {held} micro-batches.",
            {"schedule": "interleaved"},
        ),
        Step(
            "ZB-H1 makes the weight gradients separately, where a stage would wait: {bubble} idle, and no "
            "more activations than 1F1B holds.",
            {"schedule": "zb-h1"},
            "weights",
        ),
        Step(
            "Now starve it: {stages} stages and only {micro_batches} micro-batches. Filling and draining "
            "take {bubble} of the step. The first remedy is more micro-batches.",
            {"stages": 16, "micro_batches": 16},
            "idle",
        ),
    )
    assumptions = (
        "Each stage makes its passes in the order of the schedule; a pass starts when its input has arrived. "
        "Messages take a fixed time and do not get in each other's way. The embedding and the output layer "
        "lengthen all passes of their stage. Bars: the most micro-batches whose activations a stage holds at "
        "a time, each counted as a whole stage's; after an input gradient 32/34 of it stays for the weight "
        "gradient (arXiv:2401.10241, Table 1)."
    )
    formula = (
        "$$\\text{bubble} = \\frac{(p-1)(F+B)}{(m+p-1)(F+B)} = \\frac{p-1}{m+p-1}$$\n\n"
        "for GPipe and 1F1B: $p$ stages, $m$ micro-batches, a forward of $F$ and a backward of $B$, of which "
        "$W$ are weight gradients. Instead of $(p-1)(F+B)$ a step waits $(p-1)(F+B)/v$ when interleaved, "
        "$(p-1)(F+B-2W)$ under ZB-H1, $(p-1)(F+B-3W)$ under ZB-H2, $(p/2-1)(F\\&B+B-3W)$ under DualPipe, "
        "half of $(p-1)(F\\&B+B-3W)$ under DualPipeV, and $(p-1)(B-2W)$ under ZB-V as long as a forward "
        "takes no longer than an input gradient. The picture does not use them: it runs the schedule."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def passes(self):
        return pipeline.passes(self.forward_s, self.ratio, self.weight_share)

    def textbook_s(self):
        """1F1B with equal stages and no messages: the chart is at least as wide."""
        times = self.passes()
        return pipeline.step_s(
            self.stages,
            self.micro_batches,
            1,
            times.forward_s,
            times.backward_s,
            times.weight_s,
            pipeline.SCHEDULES["1f1b"],
        )

    @once
    def found(self):
        times = self.passes()
        return run(
            self.schedule.order,
            self.stages,
            self.micro_batches,
            self.chunks,
            times.forward_s,
            times.input_s,
            times.weight_s,
            self.together,
            self.message_s,
            self.first_extra,
            self.last_extra,
            np.where(self.in_step, 1.0, 0.0),
            self.own,
        )

    def width_s(self):
        """Of the chart, with room for the passes that a reader's schedule waits for."""
        found = self.found()
        waits_s = np.where(found["own"] > 1, self.passes().backward_s, 0.0)
        return np.maximum(found["total_s"] + waits_s, self.textbook_s())

    def schedule_name(self):
        return choose(self.found()["own"] > 0, "your schedule", self.schedule.name)

    def formula_share(self):
        """The bubble of the closed form, for the stages and micro-batches that were run."""
        found, times = self.found(), self.passes()
        chunks = pipeline.chunks_of(self.schedule, self.chunks)
        return pipeline.idle_share(
            found["stages"],
            found["micro_batches"],
            chunks,
            times.forward_s,
            times.backward_s,
            times.weight_s,
            self.schedule,
        )

    def formula_holds(self):
        found = self.found()
        return found["micro_batches"] >= pipeline.least_micro_batches(found["stages"], self.schedule)

    def most_held(self):
        """The micro-batches that the fullest stage holds at its peak."""
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

    @once
    def shapes(self):
        """The boxes of all passes and of the idle time between them."""
        found = self.found()
        columns = ("stage", "kind", "batch", "place", "beside", "start_s", "end_s")
        idle, others = (
            [found[f"{of}_{column}"] for column in ("stage", "start_s", "end_s")] for of in ("idle", "other")
        )
        return passes.shapes(
            *(found[column] for column in columns), *idle, *others, found["stages"], self.width_s()
        )

    def sides(self, of=""):
        shapes = self.shapes()
        return {side: shapes[of + side] for side in ("left", "right", "bottom", "top")}

    def outline(self, look):
        shapes = self.shapes()
        return {"x": shapes[f"{look}_x"], "y": shapes[f"{look}_y"]}

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*RUN)
    def blocks(self):
        found = self.found()
        return {
            "stage": found["stage"] + 1,
            "micro_batch": found["batch"] + 1,
            "pass": select(found["kind"], KINDS),
            "start_s": found["start_s"],
            "end_s": found["end_s"],
            **self.sides(),
        }

    @hint("blocks")
    def about_block(self):
        found = self.found()
        return phrase(
            "{kind} of micro-batch {batch} on stage {stage}{beside}: {start} to {end}",
            kind=select(found["kind"], ["Forward", "Backward", "Input gradient", "Weight gradient"]),
            batch=show(found["batch"] + 1, "count"),
            stage=show(found["stage"] + 1, "count"),
            beside=select(found["beside"], ["", ", beside a backward", ", beside a forward"]),
            start=show(found["start_s"], "seconds"),
            end=show(found["end_s"], "seconds"),
        )

    @part(*RUN)
    def idle(self):
        found = self.found()
        return {
            "stage": found["idle_stage"] + 1,
            **self.sides("idle_"),
            "start_s": found["idle_start_s"],
            "end_s": found["idle_end_s"],
        }

    @hint("idle")
    def about_idle(self):
        found = self.found()
        wire_s = found["idle_wire_s"]
        sent = np.where(wire_s > 0, 0.0, wire_s)  # no number, and so no text, where nothing is on its way
        return phrase(
            "Stage {stage} idles for {time}: it {waits}{other}{what}{batch}{comma}{wire}{sent}",
            stage=show(found["idle_stage"] + 1, "count"),
            time=show(found["idle_end_s"] - found["idle_start_s"], "seconds"),
            waits=select(found["idle_kind"], [WAITS, WAITS, WAITS, WAITS, "has done its part of this step"]),
            other=show(found["idle_from"] + 1, "count"),
            what=select(found["idle_kind"], [f"’s {name} of micro-batch " for name in KINDS] + [""]),
            batch=show(found["idle_batch"] + 1, "count"),
            comma=select(sent, [", "]),
            wire=show(wire_s, "seconds"),
            sent=select(sent, [" of it for the message"]),
        )

    @part(*RUN, shown=False)
    def forwards(self):
        return self.outline("forward")

    @part(*RUN, shown=False)
    def backwards(self):
        return self.outline("backward")

    @part(*RUN, shown=False)
    def later_forwards(self):
        return self.outline("later_forward")

    @part(*RUN, shown=False)
    def later_backwards(self):
        return self.outline("later_backward")

    @part(*RUN, shown=False)
    def weights(self):
        return self.outline("weight")

    @part(*RUN, shown=False)
    def edges(self):
        return {**self.sides("edge_"), "look": select(self.shapes()["edge_look"], LOOK)}

    @part(*RUN, shown=False)
    def gaps(self):
        return self.sides("gap_")

    @part(*RUN, shown=False)
    def others(self):
        return self.sides("other_")

    @hint("others")
    def about_others(self):
        found = self.found()
        return phrase(
            "Stage {stage} works on the {which} step",
            stage=show(found["other_stage"] + 1, "count"),
            which=select(found["other_next"], ["previous", "next"]),
        )

    @part(*RUN, shown=False)
    def stuck(self):
        """The pass that a stage of a reader's schedule waits for without end."""
        found, width_s = self.found(), self.width_s()
        bottom, top = lanes.edges(found["stuck_stage"], found["stages"], filled=passes.FILLED)
        left = found["stuck_s"] / width_s
        right = left + np.where(found["stuck_kind"] > 0, self.passes().backward_s, self.forward_s) / width_s
        return {
            "left": left,
            "right": right,
            "bottom": bottom,
            "top": top,
            "x": fig.midpoint(left, right),
            "y": lanes.within(found["stuck_stage"], found["stages"]),
            "text": phrase("{number}?", number=show(found["stuck_batch"] + 1, "count")),
        }

    @hint("stuck")
    def about_stuck(self):
        found = self.found()
        said = phrase(
            "Stage {stage} is stuck here: the {kind} of micro-batch {batch} waits for stage {other} "
            "without end",
            stage=show(found["stuck_stage"] + 1, "count"),
            kind=select(found["stuck_kind"], KINDS),
            batch=show(found["stuck_batch"] + 1, "count"),
            other=show(found["stuck_from"] + 1, "count"),
        )
        return choose(found["stuck_batch"] >= 0, said, "")

    @part(*RUN, shown=False)
    def numbers(self):
        shapes = self.shapes()
        return {
            "x": shapes["number_x"],
            "y": shapes["number_y"],
            "text": select(shapes["number"], COUNTED),
            "look": select(shapes["number_look"], LOOK),
        }

    @part(*RUN)
    def stage_rows(self):
        found = self.found()
        held = found["held"]
        stage = np.where(held >= 0, np.arange(STAGES), held)
        bottom, top = lanes.edges(stage, found["stages"], filled=0.5)
        return {
            "y": lanes.within(stage, found["stages"]),
            "bottom": bottom,
            "top": top,
            "right": lanes.bar_end(held, np.maximum(self.most_held(), found["stages"] * 2)),
            "held": held,
            "busy_s": found["busy_s"],
            "number": show(stage + 1, "count"),
            "name": phrase("stage {n}", n=show(stage + 1, "count")),
            "amount": show(held, "count", 2),
        }

    @measured("pipeline_timeline", *RUN)
    def runs(self, of):
        """Runs with such a pipeline, at the length of this one's step times measured over ours."""
        length = self.found()["step_s"] / self.width_s()
        fits = of.of(schedule=self.schedule, stages=self.stages)
        on_line = np.full(len(of.all), LINE)
        return Seen(
            fits & of.near("micro_batches", self.micro_batches, 0.1) & of.near("chunks", self.chunks, 0.25),
            np.minimum(length * of.longer, FARTHEST),
            on_line,
            np.full(len(of.all), 1.0) * length,
            on_line,
            phrase(
                "{batches}{chunks}",
                batches=of.apart("micro_batches", self.micro_batches, "count", "It had {} micro-batches."),
                chunks=of.apart("chunks", self.chunks, "count", "It had {} chunks on a stage."),
            ),
        )

    @part(*RUN, shown=False)
    def step_end(self):
        found = self.found()
        at = found["step_s"] / self.width_s()
        alone = found["step_s"] < found["total_s"]
        return {
            "x": at,
            "middle": fig.midpoint(0.0, at),
            "text": f"{choose(found['own'] > 0, 'Your schedule', self.schedule.name)}"
            f"{choose(found['own'] > 1, ', stuck', '')}: "
            f"{choose(alone, 'a step every ', '')}{show(found['step_s'], 'seconds')}, "
            f"{show(found['bubble'], 'percent')} of it idle",
            "seen": np.where(at < 0.97, 0.8, 0.0),
            "narrow": f"{show(found['step_s'], 'seconds')}, {show(found['bubble'], 'percent')} of it idle",
            "weight_key": fig.in_key(np.max(np.where(found["kind"] == WEIGHT, 1.0, 0.0)) > 0),
            "other_key": fig.in_key(np.max(np.where(found["other_stage"] >= 0, 1.0, 0.0)) > 0),
            "ghost": choose(at < 0.97, f"1F1B: {show(self.textbook_s(), 'seconds')}", ""),
        }

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-0.095, 1.29), (-0.13, 1.12), height=450)
        fig.room_left(p, -0.012, 60)
        fig.bare(p)
        p.quad(**fig.BOX, source=sources["others"], **OTHER)
        p.quad(**fig.BOX, source=sources["gaps"], **GAP)
        for look, (hue, strength) in LOOKS.items():
            p.patch(
                "x",
                "y",
                source=sources[f"{look}s"],
                fill_color=color[hue],
                fill_alpha=strength,
                line_color=None,
            )
        hues = {look: hue for look, (hue, _) in LOOKS.items()}
        p.quad(
            **fig.BOX,
            source=sources["edges"],
            fill_color=None,
            line_color=fig.hues("look", hues),
            line_width=1,
        )
        p.quad(**fig.BOX, source=sources["stuck"], **WAITING)
        p.text("x", "y", text="text", source=sources["stuck"], text_align="center", **fig.TEXT)
        number = fig.TEXT | {"text_color": fig.hues("look", ON)}
        fig.only(
            "wide", p.text("x", "y", text="text", source=sources["numbers"], text_align="center", **number)
        )
        rows = sources["stage_rows"]
        fig.only("wide", p.text(-0.012, "y", text="name", source=rows, text_align="right", **fig.LABEL))
        fig.only("narrow", p.text(-0.02, "y", text="number", source=rows, text_align="right", **fig.LABEL))
        p.quad(
            **fig.BOX | {"left": lanes.BARS},
            source=rows,
            fill_color=color["hbm"],
            fill_alpha=0.3,
            line_color=color["hbm"],
        )
        p.text("right", "y", text="amount", source=rows, x_offset=5, **fig.TEXT)
        for width, words in (("wide", "activations held"), ("narrow", "held")):
            fig.only(
                width, p.text(lanes.BARS, 1.07, text=value(words), **fig.TEXT | {"text_color": color["hbm"]})
            )
        end = sources["step_end"]
        p.segment(
            1,
            0,
            1,
            1,
            source=end,
            line_color=color["ink-faint"],
            line_alpha="seen",
            line_dash=[2, 4],
            line_width=2,
        )
        p.segment(0, LINE, "x", LINE, source=end, line_color=color["ink"], line_width=1.5)
        fig.measured(p, sources["runs"])
        for place in (0, "x"):
            p.segment(place, -0.05, place, -0.01, source=end, line_color=color["ink"], line_width=1.5)
        for width, words in (("wide", "text"), ("narrow", "narrow")):
            below = {"text_align": "center", "y_offset": 14} | fig.BOLD
            fig.only(width, p.text("middle", -0.03, text=words, source=end, **below))
        fig.only(
            "wide", p.text(1, -0.03, text="ghost", source=end, text_align="right", y_offset=14, **fig.LABEL)
        )
        later = {"weight gradient": (end, "weight_key"), "another step": (end, "other_key")}
        lanes.key(p, KEY, places=later)
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Bubble", help="The idle share of a step, over all stages")
    def bubble(self):
        share = self.found()["bubble"]
        return show(share, "percent"), share > STARVED

    @readout("By the formula", help="For equal stages and instant messages", rest=True)
    def by_formula(self):
        return choose(self.formula_holds(), show(self.formula_share(), "percent"), "too few micro-batches")

    @readout("Step")
    def step(self):
        return show(self.found()["step_s"], "seconds")

    @readout("Activations held", help="On the stage that holds the most, in micro-batches")
    def held(self):
        most = self.most_held()
        return show(most, "count"), self.times_1f1b() > HEAVY

    @regime(target=True)
    def starved(self):
        found = self.found()
        return found["bubble"] > STARVED, (
            f"You starved the pipeline: with {show(found['micro_batches'], 'count')} micro-batches for "
            f"{show(found['stages'], 'count')} stages, a stage idles {show(found['bubble'], 'percent')} of "
            "the step. First response: more micro-batches (a larger batch, or smaller ones), then "
            "interleaving; or fewer stages (lesson 10)."
        )

    @regime()
    def heavy(self):
        more = self.times_1f1b()
        return more > HEAVY, (
            "Memory is the price: the fullest stage holds the activations of "
            f"{show(self.most_held(), 'count')} micro-batches, {show(more, 'times')} what 1F1B holds. First "
            "response: 1F1B or ZB-H1; or recompute activations (lesson 05)."
        )

    @regime()
    def uneven(self):
        return self.slowest() > UNEVEN, (
            f"Uneven stages: the busiest works {show(self.slowest(), 'times')} as long as the average, and "
            "all others wait for it in every turn. First response: take layers off it, as Llama 3 did with "
            "one at each end."
        )

    @regime()
    def paired(self):
        found = self.found()
        return (found["stages"] > self.stages) | (found["micro_batches"] > self.micro_batches), (
            f"{self.schedule.name} runs two passes side by side, which takes two micro-batches for each stage"
            f"{choose(self.schedule.weight_copies > 1, ', and an even number of stages', '')}. It is drawn "
            f"with {show(found['stages'], 'count')} stages and "
            f"{show(found['micro_batches'], 'count')} micro-batches."
        )

    def summary(self):
        found = self.found()
        stages = show(found["stages"], "count")
        wait = choose(
            self.slowest() > 1.0001, f"On average the {stages} stages wait", f"Each of {stages} stages waits"
        )
        words = (
            f"{wait} for {show(found['bubble'], 'percent')} of a step of "
            f"{counted(found['micro_batches'], 'micro-batch', 'micro-batches')} under "
            f"{self.schedule_name()}; the fullest holds {show(self.most_held(), 'count')}."
        )
        return choose(
            found["own"] > 1,
            "Your schedule cannot go on: its stages wait for each other, at the passes with a question mark.",
            words,
        )


PipelineTimeline.serve_as(__name__)
