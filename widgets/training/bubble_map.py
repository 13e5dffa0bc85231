"""The bubble over micro-batches, a curve for each number of stages, and below it the activations that the
first stage holds."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.mechanism import memory, pipeline
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import beside, panels
from widgets.kit.drawing import figure as fig
from widgets.kit.guide import Light
from widgets.kit.text import choose, counted, show, usable
from widgets.kit.widget import Widget, hint, part, readout, regime

SCHEDULES = {key: (plan.name, plan) for key, plan in pipeline.SCHEDULES.items()}
STAGES, MICRO_BATCHES = [2, 4, 8, 16, 32, 64], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
P, M = (np.ravel(grid) * 1.0 for grid in np.meshgrid(STAGES, MICRO_BATCHES, indexing="ij"))
CURVE = np.geomspace(
    MICRO_BATCHES[0], MICRO_BATCHES[-1], 55
)  # micro-batches along a curve, six for each doubling
SMALL, STARVED = 0.05, 0.45
GONE = 1e-6  # micro-batches: far left of the axis
FOUR = 4  # micro-batches for each stage: the rule of thumb
X_RANGE, Y_RANGE = (0.5, 720), (-0.9, 1.24)  # the bubble's panel from 0 to 1, the memory's below it
TITLE = -0.135  # the height of the lower panel's title
BELOW = (0.02, 0.335)  # of the frame's height: the memory's panel
ABOVE = 0.06  # of it: no name lies on the line of no bubble
APART = 0.07  # of the bubble's panel: as close as the names of two curves may stand
VIEWS_BYTES = [m * 10.0**e for e in range(9, 15) for m in (1.5, 3, 4.5, 6, 9)]  # thirds of them are round
THIRDS = np.array([0.0, 1 / 3, 2 / 3])  # of the memory's panel: its ticks
INSIDE = beside.Frame(47.0, 476.0)
SPOTS = beside.around(8.0, 13.0, 17.0, first=beside.RIGHT)
USUAL, ITS_RIVAL = pipeline.SCHEDULES["1f1b"], pipeline.SCHEDULES["gpipe"]
TICK_PX, TICK_UP = beside.width("1.33 TB"), -9.0
RIVAL_PX, AMOUNT_PX = beside.width(ITS_RIVAL.name), beside.width("67.1 GB", bold=True)
STOPS = np.array(MICRO_BATCHES) * 1.0
AT = [f"{m} micro-batch{'es' if m > 1 else ''}" for m in MICRO_BATCHES]
OF_IT = "of activations on the first stage"
CELLS = [f"{p:.0f} stages, {m:.0f} micro-batch{'es' if m > 1 else ''}" for p, m in zip(P, M)]
LLAMA_BYTES = memory.activation_bytes(catalog.model("llama3.1-405b"), 8192, 1, tensor=8, sequence_parallel=1)
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")]
THIN = fig.ON_PANEL | {"background_fill_alpha": 0.6}  # over thin curves, which go on behind it
OPAQUE = fig.ON_PANEL | {"background_fill_alpha": 1.0}  # a label over a hatch
MAPS = ["schedule", "chunks", "ratio", "weight_share"]
HELD = ["schedule", "chunks", "activation_bytes", "stages", "micro_batches", "gpu"]
NAMES = [f"{count} stages" for count in STAGES]
OTHERS = [f"p{count}" for count in STAGES]  # a column for each curve


class BubbleMap(Widget):
    question = "How many micro-batches does a pipeline need, and what do they cost in memory?"
    schedule = Choice("Schedule", SCHEDULES, "1f1b")
    stages = Number("Stages", 16, 2, 64, stops=range(2, 65), whole=True, log=False)
    micro_batches = Number("Micro-batches", 64, 1, 512, stops=80, whole=True, marks=MICRO_BATCHES)
    chunks = Number(
        "Chunks on a stage",
        4,
        1,
        8,
        stops=range(1, 9),
        whole=True,
        log=False,
        more=True,
        help="Chunks of layers per stage in an interleaved schedule",
    )
    ratio = Number("Backward over forward", 2, 1, 3, family="times", stops=41, log=False, more=True)
    weight_share = Number(
        "Weight gradient's share",
        0.5,
        0.1,
        0.5,
        family="percent",
        stops=41,
        log=False,
        more=True,
        help="As a share of the backward pass",
    )
    activation_bytes = Number(
        "Activations of a micro-batch",
        LLAMA_BYTES,
        1e9,
        1e12,
        family="bytes",
        more=True,
        help="Of the whole model, on one tensor-parallel rank",
    )
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)

    on_phone = "schedule"
    presets = {
        "16 stages, 64 micro-batches": {},
        "As many micro-batches as stages": {"micro_batches": 16},
        "The same, interleaved with v = 4": {"schedule": "interleaved", "micro_batches": 16},
        "GPipe, 16 micro-batches": {"schedule": "gpipe", "micro_batches": 16},
        "ZB-H2, on an H200": {"schedule": "zb-h2", "gpu": "h200"},
        "DualPipe": {"schedule": "dualpipe"},
        "ZB-V": {"schedule": "zb-v"},
    }
    break_it = (
        "Shrink the bubble with more and more micro-batches. Under which schedules does the GPU run out of "
        "memory before the bubble is small?"
    )
    assumptions = (
        "Equal stages, messages that take no time, the schedules' closed forms; a curve begins where a "
        "schedule has enough micro-batches for them. Grey dots: four micro-batches for each stage. "
        "Activations alone; the state comes on top. By default they are those of "
        "Llama 3.1 405B on one of eight tensor-parallel ranks, 8,192 tokens, nothing recomputed. DualPipe "
        "also holds its weights twice."
    )
    formula = (
        "$$\\text{bubble} = \\frac{I}{m(F+B) + I}, \\qquad \\text{held} = \\text{in flight} \\cdot "
        "\\frac{A}{p}$$\n\n"
        "with the idle time $I$ of a step, $(p-1)(F+B)$ for GPipe and 1F1B, divided by $v$ when interleaved, "
        "$(p-1)(F+B-2W)$ for ZB-H1, $(p-1)(F+B-3W)$ for ZB-H2, $(p/2-1)(F\\&B+B-3W)$ for DualPipe, "
        "$(p-1)(B-2W)$ for ZB-V, $(p-1)(F\\&B+B-3W)/2$ for DualPipeV, where $F\\&B$ is the time of a forward "
        "and a backward that run side by side; and with $A$ bytes "
        "of activations of one micro-batch in the whole model. In flight are $m$ (GPipe), $p$ (1F1B, ZB-H1, "
        "ZB-V), $p + (p-1)/v$, $2p-1$, $p+1$ or $p+\\tfrac12$ micro-batches."
    )

    lights = {
        "bubbles": Light(
            "the bubble, a curve for each number of stages", ("bubbles", "curves", "curve", "names", "fours")
        ),
        "memories": Light(
            "the activations that the first stage holds", ("memories", "load", "beside_it", "limit")
        ),
    }

    # -- the engine, asked -----------------------------------------------------------------------------------
    def used_chunks(self):
        return pipeline.chunks_of(self.schedule, self.chunks)

    def bubble(self, stages, micro_batches):
        times = pipeline.passes(1.0, self.ratio, self.weight_share)
        return pipeline.idle_share(
            stages,
            micro_batches,
            self.used_chunks(),
            times.forward_s,
            times.backward_s,
            times.weight_s,
            self.schedule,
        )

    def enough(self, stages, micro_batches):
        return micro_batches >= pipeline.least_micro_batches(stages, self.schedule)

    def held_bytes(self, stages, micro_batches):
        return pipeline.first_stage_bytes(
            stages, micro_batches, self.used_chunks(), self.activation_bytes, self.schedule
        )

    def usable_bytes(self):
        return memory.capacity_bytes(self.gpu)

    def over(self):
        return self.held_bytes(self.stages, self.micro_batches) > self.usable_bytes()

    # -- the picture -----------------------------------------------------------------------------------------
    def from_least(self, stages, micro_batches):
        """The number of micro-batches, but at least the fewest for which the schedule's closed forms hold."""
        return np.maximum(micro_batches, pipeline.least_micro_batches(stages, self.schedule))

    def share_at(self, stages):
        """The bubble along a curve, which begins with the fewest micro-batches."""
        return self.bubble(stages, self.from_least(stages, CURVE))

    def is_usual(self):
        return self.schedule.order == USUAL.order

    def rivals_bytes(self, micro_batches):
        """What the first stage would hold under the schedule drawn beside: 1F1B, or GPipe beside 1F1B."""
        of = (self.stages, micro_batches, 1.0, self.activation_bytes)
        usual, its_rival = (pipeline.first_stage_bytes(*of, plan) for plan in (USUAL, ITS_RIVAL))
        return np.where(self.is_usual(), its_rival, usual)

    def rival(self):
        return choose(self.is_usual(), ITS_RIVAL.name, USUAL.name)

    def view_bytes(self):
        """The upper end of the memory's axis: above what the GPU has and what the first stage holds."""
        held = self.held_bytes(self.stages, self.from_least(self.stages, self.micro_batches))
        return fig.fitting_view(np.maximum(held, self.usable_bytes()), VIEWS_BYTES, headroom=1.25)

    def ranges(self):
        return {"held": panels.range_of(0.0, self.view_bytes(), BELOW)}

    def in_view(self, micro_batches, held):
        """A curve of memory up to where it leaves the panel."""
        inside = held <= self.view_bytes()
        x, y = (np.max(np.where(inside, each, 0.0)) for each in (micro_batches, held))
        return {"x": np.minimum(micro_batches, np.maximum(x, micro_batches[0])), "y": np.minimum(held, y)}

    def places(self):
        return {f"{name}_x": self.from_least(p * 1.0, CURVE) for name, p in zip(OTHERS, STAGES)}

    def seen(self, stages, micro_batches):
        """The place of a stop on the axis; out of sight where there are too few micro-batches."""
        return np.where(self.enough(stages, micro_batches), micro_batches, GONE)

    @part(*MAPS, shown=False)
    def curves(self):
        return self.places() | {f"{name}_y": self.share_at(p * 1.0) for name, p in zip(OTHERS, STAGES)}

    @part(*MAPS, "stages", shown=False)
    def curve(self):
        return {"x": self.from_least(self.stages, CURVE), "y": self.share_at(self.stages)}

    @part(*HELD, shown=False)
    def load(self):
        at = self.from_least(self.stages, CURVE)
        return self.in_view(at, self.held_bytes(self.stages, at))

    @part(*HELD, shown=False)
    def beside_it(self):
        return self.in_view(CURVE, self.rivals_bytes(CURVE))

    @part(*HELD, shown=False)
    def rivals_name(self):
        """The other schedule's name, where its curve ends or leaves the panel."""
        curve = self.beside_it()
        at = self.across(curve["x"][-1]), self.up(curve["y"][-1])
        taken = beside.together(self.own_point(), self.words_held("wide")[1], self.ceiling(), self.scale())
        places = {}
        for width in ("wide", "narrow"):
            places |= beside.spot(*at, RIVAL_PX, SPOTS, INSIDE, taken, of=width)[0]
        return {"x": curve["x"][-1], "y": curve["y"][-1], "text": self.rival(), **places}

    @part(*MAPS)
    def bubbles(self):
        share = self.bubble(P, M)
        return {"stages": P, "micro_batches": M, "x": self.seen(P, M), "y": share, "share": share}

    @hint("bubbles")
    def about_bubbles(self):
        share, known = self.bubble(P, M), self.enough(P, M)
        return [choose(known[i], f"{CELLS[i]}: {show(share[i], 'percent')} idle", "") for i in range(P.size)]

    @part(*HELD)
    def memories(self):
        """Stops on the two curves: first those of the schedule, then those of its rival."""
        held, other = self.held_bytes(self.stages, STOPS), self.rivals_bytes(STOPS)
        bytes_ = np.append(held, other)
        x = np.append(self.seen(self.stages, STOPS), STOPS)
        return {
            "micro_batches": np.append(STOPS, STOPS),
            "x": np.where(bytes_ <= self.view_bytes(), x, GONE),
            "y": bytes_,
            "held_bytes": bytes_,
        }

    @hint("memories")
    def about_memories(self):
        held, known = self.held_bytes(self.stages, STOPS), self.enough(self.stages, STOPS)
        other = self.rivals_bytes(STOPS)
        of = f"{show(self.stages, 'count')} stages"
        said = [
            choose(known[i], f"{self.schedule.name}, {of}, {AT[i]}: {show(held[i], 'bytes')} {OF_IT}", "")
            for i in range(STOPS.size)
        ]
        return said + [
            f"{self.rival()}, {of}, {AT[i]}: {show(other[i], 'bytes')} {OF_IT}" for i in range(STOPS.size)
        ]

    @part("schedule", *MAPS[1:], shown=False)
    def names(self):
        """A curve's name stands where it begins."""
        p = np.array(STAGES) * 1.0
        first = pipeline.least_micro_batches(p, self.schedule)
        share = self.bubble(p, first)
        together = np.where(first[0] == first[-1], APART, 0.0)  # where all begin above one another
        return {
            "x": first,
            "y": np.maximum(fig.spread(share, together), ABOVE),
            "text": NAMES,
            "number": list(map(str, STAGES)),
        }

    @part(*MAPS, shown=False)
    def fours(self):
        p = np.array(STAGES) * 1.0
        return {"x": FOUR * p, "y": self.bubble(p, FOUR * p)}

    @part(*MAPS, "activation_bytes", "stages", "micro_batches", "gpu", shown=False)
    def chosen(self):
        at = self.stages, self.micro_batches
        near = self.micro_batches > MICRO_BATCHES[-3]  # the right edge
        crowded = pipeline.least_micro_batches(STAGES[-1], self.schedule) > 1  # names stand along the line
        return {
            "x": self.seen(*at),
            "y": self.bubble(*at),
            "foot": 0.0,
            "held": self.held_bytes(*at),
            "share": f"{show(self.bubble(*at), 'percent', 2)} idle",
            "amount": show(self.held_bytes(*at), "bytes"),
            "align": choose(near, "right", "left"),
            "off": np.where(near, -9.0, 9.0),
            "up": np.where(crowded, -26.0, -16.0),
            **self.words_held("wide")[0],
            **self.words_held("narrow")[0],
        }

    def across(self, micro_batches):
        """Where so many micro-batches lie, as a share of the frame."""
        return fig.share_of_decades(micro_batches, *X_RANGE)

    def up(self, held):
        """Where so many bytes lie, as a share of the frame."""
        return fig.between(*BELOW, held / self.view_bytes())

    def own_point(self):
        held = self.held_bytes(self.stages, self.micro_batches)
        return beside.marks(self.across(self.micro_batches), self.up(held), 11.0)

    def ceiling(self):
        """What the line of what the GPU has takes of the picture."""
        return beside.Boxes(0.0, self.up(self.usable_bytes()), 0.0, 1000.0, -1.0, 1.0)

    def scale(self):
        """What the names of the memory's ticks take."""
        return beside.words(0.0, self.up(self.view_bytes() * THIRDS), TICK_PX, beside.LEFT, 4.0, TICK_UP)

    def words_held(self, width):
        """Where the bytes of the chosen point stand, off the line of the ceiling and inside the panel."""
        at = self.across(self.micro_batches), self.up(self.held_bytes(self.stages, self.micro_batches))
        axis = beside.Boxes(0.0, BELOW[0], 0.0, 1000.0, -20.0, 0.0)
        title = beside.Boxes(0.0, BELOW[1], 0.0, 1000.0, 0.0, 30.0)
        taken = beside.together(self.ceiling(), axis, title)
        return beside.spot(*at, AMOUNT_PX, SPOTS, INSIDE, taken, of=width)

    @part(*HELD, shown=False)
    def ticks(self):
        """The lower panel's scale, from zero."""
        at = self.view_bytes() * THIRDS
        return {"y": at, "text": ["0", *(show(at[i], "bytes") for i in (1, 2))]}

    @part(*HELD, shown=False)
    def limit(self):
        return {
            "y": self.usable_bytes(),
            "top": self.view_bytes(),
            "text": f"{self.gpu.name}: {usable(self.usable_bytes())}",
            "short": usable(self.usable_bytes()),
            "title": f"idle share of a step, {self.schedule.name}",
            "narrow": f"idle share by stages, {self.schedule.name}",
        }

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(X_RANGE, Y_RANGE, height=530, x_log=True, x_title="micro-batches m")
        fig.second_scale(p, "held")
        below = {"y_range_name": "held"}
        fig.ticks(p.xaxis[0], MICRO_BATCHES, "count")
        fig.ticks(p.yaxis[0], [0, 0.25, 0.5, 0.75, 1], "percent")
        p.yaxis[0].axis_line_color = p.yaxis[0].major_tick_line_color = None
        p.grid.visible = False
        left, right = X_RANGE
        for share in (0, 0.25, 0.5, 0.75, 1):
            p.segment(left, share, right, share, line_color=color["axis" if share == 0 else "grid"])
        limit = sources["limit"]
        p.quad(left, right, "y", "top", source=limit, **fig.OVER | {"line_color": None}, **below)
        for name in OTHERS:
            p.line(
                f"{name}_x", f"{name}_y", source=sources["curves"], line_color=color["axis"], line_width=1.2
            )
        ticks = sources["ticks"]
        p.segment(left, "y", right, "y", source=ticks, line_color=color["grid"], **below)
        other = {"line_color": color["hbm"], "line_width": 1.6, "line_dash": [6, 4]}
        p.line("x", "y", source=sources["beside_it"], **other, **below)
        p.segment(left, "y", right, "y", source=limit, line_color=color["over"], line_width=1.5, **below)
        p.line("x", "y", source=sources["curve"], line_color=color["ink"], line_width=3)
        p.line("x", "y", source=sources["load"], line_color=color["hbm"], line_width=3, **below)
        p.scatter("x", "y", source=sources["fours"], size=6, fill_color=color["ink-soft"], line_color=None)
        chosen = sources["chosen"]
        p.segment("x", "foot", "x", "y", source=chosen, line_color=color["ink"], line_dash=[2, 3])
        for y, hue, where in (("y", "ink", {}), ("held", "hbm", below)):
            dot = {"fill_color": color[hue], "line_color": color["panel"], "line_width": 1.5}
            p.scatter("x", y, source=chosen, size=11, **dot, **where)
        share = {"text_align": "align", "x_offset": "off", "y_offset": "up"} | fig.BOLD | THIN
        p.text("x", "y", text="share", source=chosen, **share)
        for width in ("wide", "narrow"):
            placed = beside.placed(width) | OPAQUE
            fig.only(
                width,
                p.text("x", "held", text="amount", source=chosen, **placed, **fig.BOLD, **below),
                p.text("x", "y", text="text", source=sources["rivals_name"], **placed, **fig.LABEL, **below),
            )
        fig.stops(p, sources["bubbles"])
        p.scatter("x", "y", source=sources["memories"], size=1, fill_alpha=0, line_alpha=0, **below)
        for width, text in (("wide", "text"), ("narrow", "number")):
            before = {"text_align": "right", "x_offset": -5}
            fig.only(width, p.text("x", "y", text=text, source=sources["names"], **before, **fig.LABEL))
        for width, text in (("wide", "title"), ("narrow", "narrow")):  # on a phone p stands at no curve
            fig.only(width, p.text(left, 1.2, text=text, source=limit, x_offset=4, **fig.BOLD))
        p.text(
            left,
            TITLE,
            text=value("activations on the first stage"),
            x_offset=4,
            **fig.BOLD | {"text_color": color["hbm"]},
        )
        p.text(
            left, "y", text="text", source=ticks, x_offset=4, y_offset=TICK_UP, **fig.LABEL | OPAQUE, **below
        )
        words = fig.TEXT | {"text_color": color["over"]}
        for width, text in (("wide", "text"), ("narrow", "short")):
            named = p.text(right, TITLE, text=text, source=limit, text_align="right", x_offset=-4, **words)
            fig.only(width, named)
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Micro-batches for 5 %", help="The fewest with a bubble of at most five per cent")
    def needed(self):
        times = pipeline.passes(1.0, self.ratio, self.weight_share)
        return show(
            pipeline.micro_batches_for(
                SMALL,
                self.stages,
                self.used_chunks(),
                times.forward_s,
                times.backward_s,
                times.weight_s,
                self.schedule,
            ),
            "count",
        )

    @readout("In flight", help="Micro-batches whose activations the first stage holds at its peak")
    def in_flight(self):
        return show(
            pipeline.in_flight(self.stages, self.micro_batches, self.used_chunks(), self.schedule), "count"
        )

    @regime(target=True)
    def burst(self):
        held = self.held_bytes(self.stages, self.micro_batches)
        response = choose(
            self.activation_bytes > self.usable_bytes(),
            "recompute (lesson 05), since one micro-batch for each stage is too much already",
            f"1F1B or ZB-H1, which hold {show(self.activation_bytes, 'bytes')} however many micro-batches; "
            "else recompute (lesson 05)",
        )
        return self.over(), (
            f"You found a schedule that pays for its bubble in memory: {self.schedule.name} holds "
            f"{show(held, 'bytes')} of activations on the first stage, and one {self.gpu.name} has "
            f"{usable(self.usable_bytes())}. First response: {response}."
        )

    @regime()
    def starving(self):
        share = self.bubble(self.stages, self.micro_batches)
        return share > STARVED, (
            f"The bubble is {show(share, 'percent')} of the step. First response: more micro-batches, until "
            "there are four for each stage; then interleaving."
        )

    def summary(self):
        at = self.stages, self.micro_batches
        least = pipeline.least_micro_batches(self.stages, self.schedule)
        of = f"{show(self.stages, 'count')} stages"
        return choose(
            self.enough(*at),
            f"{of} with {counted(self.micro_batches, 'micro-batch', 'micro-batches')} idle "
            f"{show(self.bubble(*at), 'percent')} of a step under {self.schedule.name}, and the first holds "
            f"{show(self.held_bytes(*at), 'bytes')}.",
            f"{of} under {self.schedule.name} need at least {show(least, 'count')} micro-batches, with which "
            f"the first holds {show(self.held_bytes(self.stages, least), 'bytes')}.",
        )


BubbleMap.serve_as(__name__)
