"""ZeRO's four stages side by side: what each leaves on a GPU, and the traffic that it costs."""

import numpy as np
from bokeh.core.properties import value
from bokeh.models import Range1d

from engine import catalog
from engine.executed import zero
from engine.mechanism import matmul
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lettering
from widgets.kit.text import choose, phrase, select, show, sold
from widgets.kit.widget import Widget, hint, part, readout, regime

STAGES = np.arange(4.0)
NAMES = ["data parallel", "stage 1", "stage 2", "stage 3"]
SHARED = ["shares nothing", "shares the optimizer", "and gradients", "and weights"]
SLABS, SENT = ["weights", "gradients", "optimizer"], ["gather weights", "sum gradients", "sum across"]
SLABS_SHORT, SENT_SHORT = ["weights", "grads", "optim."], ["gather", "sum", "across"]
# The rows of both panels, from the top: a bar, and its name above it. What is held stands over what is sent.
HELD_AT, SENT_AT = 8.3 - STAGES, 3.0 - STAGES
FOOT, HEAD, NAME = 0.36, 0.08, 0.31
HELD_MIDDLES, SENT_MIDDLES = (fig.midpoint(rows - FOOT, rows + HEAD) for rows in (HELD_AT, SENT_AT))
BESIDE_NAME = np.array([lettering.width(name, bold=True) + 9 for name in NAMES])
LOW, HIGH = -0.55, 9.75
HEADINGS = {"state": 9.45, "wires": 4.15}
HEADLINES = {
    "wide": {
        "state": "Training state on each GPU: weights, gradients, optimizer",
        "wires": "Wires busy in a step: gather weights, sum gradients, sum across groups",
    },
    "narrow": {"state": "State: weights, gradients, optimizer", "wires": "Wires: gather, sum, across"},
}
ABOVE = 0.72  # a row's middle: the name of what limits it
VALUE = 0.1  # of the frame: a value at the end of a bar
VIEWS_BYTES = [m * 10.0**e for e in range(8, 14) for m in (1.2, 1.6, 2.4, 4.0, 6.0, 8.0)]
VIEWS_S = [m * 10.0**e for e in range(-5, 7) for m in (1.2, 1.6, 2.4, 4.0, 6.0, 8.0)]
TIME = "time"  # the scale of the lower panel
RANK_STOPS = [1, 2, 4, *range(8, 64, 8), *range(64, 256, 16), *range(256, 1024, 64), *range(1024, 4097, 256)]
ALL = 2.0**20
GROUPS = {"all": ("all GPUs", ALL), "8": ("8, one node", 8.0), "16": ("16", 16.0), "64": ("64", 64.0)}
GPUS = [catalog.gpu(key) for key in ("a100-40", "a100-80", "h100-sxm", "h200", "b200")]
RECIPES = [
    catalog.recipe(key)
    for key in ("bf16-adam", "bf16-adam-fp32-grads", "fp32-adam", "adam-8bit", "sgd-momentum")
]
STATE = ("size", "ranks", "group", "recipe", "gpu")
TRAFFIC = (*STATE, "tokens", "micro_batches", "network")


def pieces(lengths, limit, view, rows, names, short):
    """Columns of the pieces of each row's bar, with their names where there is room within the limit."""
    left, right = (np.ravel(side) for side in fig.end_to_end(lengths))
    within = np.minimum(right, limit)
    return {
        "of": list(np.repeat(NAMES, 3)),
        "what": names * 4,
        "left": left,
        "right": right,
        "x": fig.midpoint(left, within),
        "y": np.repeat(fig.midpoint(rows - FOOT, rows + HEAD), 3),
        "bottom": np.repeat(rows - FOOT, 3),
        "top": np.repeat(rows + HEAD, 3),
        **fig.names_in(within - left, view, names * 4, short * 4),
    }


def value_places(end, limit, view):
    """A value is behind its bar, unless its limit would run through it there: ``crossed``. Then it follows
    the row's name, so that nobody reads it as the limit's value. On a phone it always ends the line of the
    name, since the bar is full of names."""
    crossed = (end < limit) & (end > limit - VALUE * view)
    return {"x": fig.gone_unless(~crossed, end), "edge": view, "crossed": np.where(crossed, 1.0, 0.0)}


def with_values(names, values, crossed):
    """What follows each row's name where there is room: with the value that has none behind its bar."""
    return [choose(crossed[i] > 0, f"{name}, {values[i]}", name) for i, name in enumerate(names)]


ROOM_BEHIND = 0.8  # of the axis: up to there a limit of its own is named beside its mark


class ZeroStages(Widget):
    question = "What does each stage of ZeRO save, and what does it send for that?"
    size = Number("Model size", 7.5e9, 0.1e9, 1e12, family="params", marks=(1.5e9, 13e9, 70e9, 405e9))
    ranks = Number("GPUs", 64, 1, 4096, stops=RANK_STOPS, whole=True)
    tokens = Number(
        "Tokens per GPU",
        2048,
        64,
        32768,
        whole=True,
        marks=(128, 512, 4096, 8192),
        help="Per micro-batch: the work between two gathers of the same weights",
    )
    stage = Choice(
        "Stage",
        {str(n): (name, float(n)) for n, name in enumerate(NAMES)},
        "3",
        more=True,
        help="The row that the text describes; clicking its name also selects it",
    )
    network = Number(
        "Network of each GPU",
        50e9,
        0.5e9,
        100e9,
        family="bytes_per_s",
        marks=(1.5625e9, 12.5e9, 25e9),
        more=True,
        help="One way and per GPU; a ring through a whole node has the bandwidth of all its GPUs",
    )
    micro_batches = Number(
        "Micro-batches in a step",
        1,
        1,
        32,
        log=False,
        stops=32,
        whole=True,
        more=True,
        help="Gradients are accumulated over these",
    )
    group = Choice(
        "One copy of the state on",
        GROUPS,
        "all",
        more=True,
        help="Each group shares one copy of the state, and gradients are summed across groups (HSDP)",
    )
    recipe = Choice("Optimizer recipe", RECIPES, "bf16-adam", more=True)
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)

    presets = {
        "7.5B on 64": {},
        "7B on 8": {"size": 7e9, "ranks": 8},
        "13B on 16 A100 40 GB": {
            "size": 13e9,
            "ranks": 16,
            "gpu": "a100-40",
            "network": 25e9,
            "tokens": 4096,
        },
        "70B on 64": {"size": 70e9, "tokens": 4096},
        "One 200 Gb/s card a node": {"network": 3.125e9, "tokens": 32768},
        "… in groups of eight": {"network": 3.125e9, "tokens": 32768, "group": "8"},
    }
    tap = {"rows": "stage"}
    break_it = "Leave stage 3 with too little work behind each gather."
    assumptions = (
        "Training state alone: no activations, no gathered layers, no fragmentation. The step's arithmetic "
        "runs at the rate that the GPU reaches on large products. An orange mark is how much can hide: "
        "gradients hide behind backward passes, which are two thirds of the arithmetic, weights of stages 1 "
        "and 2 behind one forward pass, the sums of hybrid sharding behind the last backward pass. Wires run "
        "at their one-way rates without start-up, a ring through whole nodes with all their NICs. Stages "
        "2 and 3 scatter gradients for every micro-batch, stage 3 gathers weights twice for each. A bar "
        "within its line can hide, if it is issued early enough; one beyond it cannot."
    )
    formula = (
        r"$$M_0 = 16P \qquad M_1 = 4P + \frac{12P}{N} \qquad M_2 = 2P + \frac{14P}{N} \qquad "
        r"M_3 = \frac{16P}{N}$$"
        "\n\n"
        r"bytes under each stage for $P$ parameters with 16-byte Adam on $N$ GPUs (ZeRO, arXiv:1910.02054, "
        r"section 5). Elements sent by each GPU for one micro-batch: $2P$, $2P$, $2P$ and $3P$, each times "
        r"$(N-1)/N$ (section 7); the arithmetic is $6\,P\,T$ FLOPs for $T$ tokens. With groups of $g$ GPUs "
        r"(HSDP) $g$ takes the place of $N$, and $2(N-g)/N\cdot P/g$ elements more cross between the $N/g$ "
        r"groups."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def shared(self):
        return zero.shard_group(self.ranks, self.group, STAGES)

    def parts_bytes(self):
        return zero.state_parts_bytes(self.size, self.recipe, self.shared(), STAGES)

    def state_bytes(self):
        return np.sum(self.parts_bytes(), axis=-1)

    def traffic(self):
        return zero.step_traffic(
            self.size, self.ranks, self.group, STAGES, self.recipe, self.gpu, self.network, self.micro_batches
        )

    def arithmetic_s(self):
        return zero.arithmetic_s(
            self.size, self.tokens, matmul.product_flops_per_s(self.gpu), self.micro_batches
        )

    def behind(self):
        return zero.behind_passes(self.traffic(), STAGES, self.arithmetic_s(), self.micro_batches)

    def exposed_s(self, group):
        """What each stage waits in a step with shard groups of this size."""
        sent = zero.step_traffic(
            self.size, self.ranks, group, STAGES, self.recipe, self.gpu, self.network, self.micro_batches
        )
        return zero.exposed_s(sent, STAGES, self.arithmetic_s(), self.micro_batches)

    def can_hide_s(self):
        """How long each stage's wires may be busy in a step and still be hidden behind its passes."""
        return zero.can_hide_s(self.traffic(), STAGES, self.arithmetic_s(), self.micro_batches)

    def lit(self):
        return self.stage == STAGES

    def of_stage(self, values):
        """The chosen stage's."""
        return np.sum(np.where(self.lit(), values, 0.0))

    def passes_words(self):
        """How many times P each stage sends, in words."""
        counts = np.sum(np.stack(zero.passes(STAGES, self.micro_batches)), axis=0)
        return [f"{show(count, 'count')}P" for count in counts]

    def view_bytes(self):
        return fig.fitting_view(np.max(np.append(self.state_bytes(), self.gpu.hbm_bytes)), VIEWS_BYTES, 1.2)

    def view_s(self):
        longest = np.max(np.append(self.traffic().total_s, self.can_hide_s()))
        return fig.fitting_view(longest, VIEWS_S, 1.2)

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*STATE)
    def slabs(self):
        limit = np.repeat(1.0, 12) * self.gpu.hbm_bytes
        return pieces(self.parts_bytes(), limit, self.view_bytes(), HELD_AT, SLABS, SLABS_SHORT)

    @part(*STATE)
    def stacks(self):
        """The whole of what each stage holds, and the part of it past the HBM."""
        held, hbm = self.state_bytes(), self.gpu.hbm_bytes
        places = value_places(held, hbm, self.view_bytes() + 0.0 * held)
        amount = [show(held[i], "bytes") for i in range(4)]
        return {
            "stage": NAMES,
            "bytes": held,
            **places,
            "beside": BESIDE_NAME,
            "shared": with_values(SHARED, amount, places["crossed"]),
            "named": HELD_AT + NAME,
            "y": HELD_MIDDLES,
            "left": fig.gone_unless(held > hbm, hbm),
            "right": fig.gone_unless(held > hbm, held),
            "bottom": HELD_AT - FOOT,
            "top": HELD_AT + HEAD,
            "amount": amount,
        }

    @part(*TRAFFIC)
    def roots(self):
        """What each stage sends: gathered weights, summed gradients, and what crosses HSDP's groups."""
        seconds, limit = np.stack(self.traffic()[3:], axis=-1), np.repeat(self.can_hide_s(), 3)
        inside = np.where(self.shared() <= self.gpu.gpus_per_node, 1, 0)
        return {
            **pieces(seconds, limit, self.view_s(), SENT_AT, SENT, SENT_SHORT),
            "wire": [select(at, ["network", wire]) for at in inside for wire in ("link", "link", "network")],
        }

    @part(*TRAFFIC)
    def columns(self):
        """The whole of each stage's traffic, and what arithmetic can hide of it."""
        seconds, limit = self.traffic().total_s, self.can_hide_s()
        past = self.behind().pressure > 1
        apart = (limit > limit[0]) & ~past & (limit < ROOM_BEHIND * self.view_s())
        passes = [f"sends {count}" for count in self.passes_words()]
        places = value_places(seconds, limit, self.view_s() + 0.0 * seconds)
        label = [show(seconds[i], "seconds") for i in range(4)]
        return {
            "stage": NAMES,
            "seconds": seconds,
            "limit": limit,
            **places,
            "y": SENT_MIDDLES,
            "left": fig.gone_unless(past, limit),
            "right": fig.gone_unless(past, seconds),
            "bottom": SENT_AT - FOOT,
            "top": SENT_AT + HEAD,
            "low": SENT_AT - FOOT - 0.07,
            "high": SENT_AT + HEAD + 0.07,
            "past": np.where(past, 1.0, 0.0),
            "hides": [choose(apart[i], f"behind {show(limit[i], 'seconds')}", "") for i in range(4)],
            "passes": passes,
            "sends": with_values(passes, label, places["crossed"]),
            "named": SENT_AT + NAME,
            "beside": BESIDE_NAME,
            "label": label,
        }

    @part("stage", shown=False)
    def chosen(self):
        return {"held": HELD_AT[0] - self.stage + 0.04, "sent": SENT_AT[0] - self.stage + 0.04}

    @part(shown=False)
    def rows(self):
        """The stages' names, which can be clicked."""
        return {"x": np.zeros(4), "y": HELD_AT + NAME, "name": NAMES}

    @part(*STATE, shown=False)
    def ceiling(self):
        """The HBM, a mark across each bar; its name stands over the first."""
        hbm = self.gpu.hbm_bytes
        size = sold(hbm)
        return {
            "x": hbm + 0.0 * STAGES,
            "low": HELD_AT - FOOT - 0.06,
            "high": HELD_AT + HEAD + 0.06,
            "above": HELD_AT[0] + ABOVE + 0.0 * STAGES,
            "label": [f"HBM of one {self.gpu.name}, {size}", "", "", ""],
            "short": [f"HBM, {size}", "", "", ""],
            "align": [fig.inward(hbm, 0.0, self.view_bytes(), 0.3)] * 4,
        }

    @part(*TRAFFIC, shown=False)
    def floor(self):
        """The name of what arithmetic can hide, over the first row."""
        limit = self.can_hide_s()[0]
        return {
            "x": limit,
            "y": SENT_AT[0] + ABOVE,
            "label": f"the passes it hides behind take {show(limit, 'seconds')}",
            "short": f"can hide {show(limit, 'seconds')}",
            "align": fig.inward(limit, 0.0, self.view_s(), 0.3),
        }

    @hint("slabs")
    def of_a_slab(self):
        return phrase(
            "{column}: {amount} of {what} on each GPU",
            column=list(np.repeat(NAMES, 3)),
            what=SLABS * 4,
            amount=show(np.ravel(self.parts_bytes()), "bytes"),
        )

    @hint("roots")
    def of_traffic(self):
        sent = self.traffic()
        amounts, times = (np.ravel(np.stack(half, axis=-1)) for half in (sent[:3], sent[3:]))
        return phrase(
            "{column}, {what}: {amount} sent by each GPU in {time}",
            column=list(np.repeat(NAMES, 3)),
            what=SENT * 4,
            amount=show(amounts, "bytes"),
            time=show(times, "seconds"),
        )

    def ranges(self):
        return {"x": [0.0, self.view_bytes()], TIME: [0.0, self.view_s()]}

    def figure(self, sources):
        p = fig.plot((0, 1.6e11), (LOW, HIGH), height=560)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.grid.visible = False
        p.extra_x_ranges = {TIME: Range1d(start=0, end=1, name=TIME)}
        color, whole, time = fig.COLOR, fig.across(p, "whole", 0, 1), {"x_range_name": TIME}
        for place in ("held", "sent"):
            band = {"fill_color": color["ink"], "fill_alpha": 0.05, "line_color": None}
            p.hbar(y=place, left=0, right=1, height=0.98, source=sources["chosen"], **band, **whole)
        gap = {"line_color": color["panel"], "line_width": 1.2}
        slabs, stacks, columns, ceiling = (
            sources[name] for name in ("slabs", "stacks", "columns", "ceiling")
        )
        p.quad(**fig.BOX, source=slabs, fill_color=color["hbm"], **gap)
        p.quad(**fig.BOX, source=stacks, fill_color=color["panel"], line_color=None)
        p.quad(**fig.BOX, source=stacks, **fig.OVER)
        hue = fig.hues("wire", {"link": "link", "network": "network"})
        p.quad(**fig.BOX, source=sources["roots"], fill_color=hue, **gap, **time)
        p.quad(**fig.BOX, source=columns, fill_color=color["panel"], line_color=None, **time)
        p.quad(**fig.BOX, source=columns, **fig.OVER, **time)
        limit = {"y0": "low", "y1": "high", "source": columns, **time}
        p.segment(x0="limit", x1="limit", **limit, line_color=color["panel"], line_width=6)
        p.segment(x0="limit", x1="limit", **limit, line_color=color["compute"], line_width=3)
        p.segment("x", "low", "x", "high", source=ceiling, line_color=color["ink"], line_width=3)
        self.letter(p, sources)
        return p

    @staticmethod
    def letter(p, sources):
        """The names: of both panels, of their rows, of the parts of a bar, and the values at its end."""
        ceiling = sources["ceiling"]
        in_bar = fig.TEXT | {"text_color": fig.COLOR["panel"], "text_align": "center"}
        lower = {"x_range_name": TIME}
        held = sources["rows"]
        p.text("x", "y", text="name", source=held, x_offset=1, **fig.BOLD)
        p.text(np.zeros(4), SENT_AT + NAME, text=NAMES, x_offset=1, **fig.BOLD)
        for panel, height in HEADINGS.items():
            for width, words in HEADLINES.items():
                fig.only(width, p.text(0, height, text=value(words[panel]), x_offset=1, **fig.BOLD))
        columns, stacks, beside = (
            sources["columns"],
            sources["stacks"],
            {"x": 0, "x_offset": "beside", "y": "named"},
        )
        fig.only(
            "narrow", p.text(np.zeros(4), HELD_AT + NAME, text=SHARED, x_offset=BESIDE_NAME, **fig.LABEL)
        )
        fig.only("narrow", p.text(text="passes", source=columns, **beside, **fig.LABEL, **lower))
        fig.only("wide", p.text("limit", "y", text="hides", x_offset=8, source=columns, **fig.LABEL, **lower))
        for source, said, named, scale in (
            (columns, "label", "sends", lower),
            (stacks, "amount", "shared", {}),
        ):
            told = {"text": said, "source": source} | fig.BOLD | scale
            last = {"y": "named", "text_align": "right", "x_offset": -1} | told
            fig.only(
                "wide",
                p.text("x", "y", x_offset=9, **told),
                p.text(text=named, source=source, **beside, **fig.LABEL, **scale),
            )
            fig.only("narrow", p.text("edge", **last))
        for width, column, label in (("wide", "name", "label"), ("narrow", "short", "short")):
            fig.only(
                width,
                p.text("x", "y", text=column, source=sources["slabs"], **in_bar),
                p.text("x", "y", text=column, source=sources["roots"], **in_bar, **lower),
                p.text("x", "above", text=label, source=ceiling, text_align="align", **fig.LABEL),
                p.text(
                    "x", "y", text=label, source=sources["floor"], text_align="align", **fig.LABEL, **lower
                ),
            )

    # -- the words -------------------------------------------------------------------------------------------
    def stage_name(self):
        return select(self.stage, NAMES)

    def held(self):
        return self.of_stage(self.state_bytes())

    def wire_s(self):
        return self.of_stage(self.traffic().total_s)

    @readout("Largest model by its state")
    def largest(self):
        largest = zero.largest_params(self.gpu.hbm_bytes, self.recipe, self.shared(), STAGES)
        return show(self.of_stage(largest), "params")

    @readout("Sent per GPU and step")
    def sent(self):
        return show(self.of_stage(self.traffic().total_bytes), "bytes")

    @readout(
        "Could hide from", help="The tokens per micro-batch at which each pass takes as long as its traffic"
    )
    def hides_from(self):
        needed = zero.tokens_to_hide(self.tokens, self.of_stage(self.behind().pressure), 1.0)
        return show(needed, "tokens")

    @regime(target=True)
    def little_work(self):
        more = choose(
            self.group < self.ranks,
            "spread only what crosses between the groups",
            "do not help, since each gathers anew",
        )
        here = self.exposed_s(self.group)
        by_node = here[3] > self.exposed_s(self.gpu.gpus_per_node * 1.0)[3]
        by_stage = here[3] > here[1]
        others = choose(
            by_node,
            choose(
                by_stage,
                ". Or a shard group in one node (HSDP), or stage 1 where it fits",
                ". Or a shard group in one node (HSDP)",
            ),
            choose(by_stage, ". Or stage 1 where it fits", ""),
        )
        return (self.stage >= 3) & (self.of_stage(self.behind().pressure) > 1), (
            "You found it: there is too little work behind the wires. Stage 3 keeps the wires busy for "
            f"{show(self.wire_s(), 'seconds')} and the GPU computes for "
            f"{show(self.arithmetic_s(), 'seconds')}; in at least one pass the wires outlast the arithmetic. "
            f"First response: more tokens in a micro-batch, {self.hides_from()} at least; more micro-batches "
            f"{more}{others}."
        )

    @regime()
    def too_large(self):
        needed = self.of_stage(zero.ranks_to_fit(self.size, self.gpu.hbm_bytes, self.recipe, STAGES))
        return self.held() > self.gpu.hbm_bytes, (
            f"The state does not fit: {self.stage_name()} keeps {show(self.held(), 'bytes')} on a GPU of "
            f"{sold(self.gpu.hbm_bytes)}. First response: "
            + choose(
                needed < 1,
                "a higher stage, since this one would not fit on any number of GPUs.",
                f"share each copy among at least {show(needed, 'count')} GPUs"
                + choose(self.stage < 3, ", or take a higher stage.", "."),
            )
        )

    def summary(self):
        held = [show(amount, "bytes") for amount in self.state_bytes()]
        return choose(
            self.ranks > 1,
            f"Of {held[0]} of state, ZeRO stages 1, 2 and 3 leave {held[1]}, {held[2]} and {held[3]} on each "
            f"of {show(self.ranks, 'count')} GPUs.",
            f"On 1 GPU there is nobody to share {held[0]} of state with, at any stage of ZeRO.",
        )


ZeroStages.serve_as(__name__)
