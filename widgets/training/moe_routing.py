"""Tokens choose their experts: queues, a capacity, dropped tokens, and the fullest expert, for which all
others wait."""

import numpy as np

from engine import catalog
from engine.executed import routing
from engine.mechanism import experts
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.cluster import middle_of, slots
from widgets.kit.guide import Light, Step
from widgets.kit.text import choose, phrase, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

MODELS = [catalog.model(key) for key in ("mixtral-8x7b", "gpt-oss-20b", "llama4-scout", "deepseek-v2-lite")]
MACHINES = [
    experts.ExpertNode.of(catalog.node(key)) for key in ("dgx-a100", "dgx-h100", "dgx-b200", "gb200-nvl72")
]
VIEWS = [
    2.5,
    4.0,
    6.0,
    9.0,
    14.0,
    20.0,
    30.0,
    64.0,
]  # loads over the mean that fit on the upper half of the picture
NUMBERS = np.arange(1.0, routing.MOST_EXPERTS + 1)
SEEN = routing.TOKENS // routing.EVERY
NAMED = 16.0  # up to so many experts have room for their numbers
LINES, TOKENS_AT, ROWS = (0.27, 0.44), 0.25, np.array([0.135, 0.04])  # of the picture's height
VALUE = 0.058  # of half the frame's height: a bar's value above it
NOTE = 0.945  # of the frame's half: above all bars
IDLE_ROOM = {"wide": 0.14, "narrow": 0.2}  # of the row, for the words in the wait
APART = np.array([-8.0, 8.0])  # pixels between the names of two lines that lie close
ROUTER = ("experts", "top_k", "skew", "seed", "balancing", "steps")
COUNTED = (*ROUTER, "capacity_factor")
TIMED = (*COUNTED, "model", "machine", "tokens")


class MoeRouting(Widget):
    question = "What happens when tokens prefer some experts?"
    skew = Number(
        "Skew",
        0.8,
        0,
        2,
        stops=41,
        log=False,
        help="The e-th most popular expert's share of first choices falls as 1/e to this power",
    )
    capacity_factor = Number(
        "Capacity factor",
        1.25,
        0.5,
        8,
        family="times",
        stops=64,
        marks=(1.0, 2.0, 4.0),
        help="The most tokens an expert accepts, relative to an even load",
    )
    balancing = Choice(
        "Balancing",
        {
            "off": ("off", routing.OFF),
            "loss": ("auxiliary loss", routing.AUXILIARY),
            "bias": ("bias, without a loss", routing.BIAS),
        },
        "off",
    )
    experts = Choice("Experts", {str(n): (str(n), float(n)) for n in (8, 16, 32, 64)}, "8", more=True)
    top_k = Number("Experts of each token", 2, 1, 8, stops=8, log=False, whole=True, more=True)
    steps = Number("Steps of balancing", 60, 0, 120, stops=121, log=False, whole=True, more=True)
    seed = Number("Seed of the tokens", 1, 1, 40, stops=40, log=False, whole=True, more=True)
    tokens = Number("Tokens on each GPU", 4096, 16, 65536, stops=64, marks=(1024, 8192), more=True)
    model = Choice("Sizes of an expert from", MODELS, "mixtral-8x7b", more=True)
    machine = Choice("Node", MACHINES, "dgx-h100", more=True)

    presets = {
        "2 of 8 experts": {},
        "Balanced by the loss": {"balancing": "loss"},
        "Nothing dropped": {"capacity_factor": 4.0},
        "Switch: 1 of 64, balanced by the loss": {"experts": "64", "top_k": 1, "balancing": "loss"},
        "gpt-oss-20b: 4 of 32": {"experts": "32", "top_k": 4, "model": "gpt-oss-20b"},
        "DeepSeek-V2-Lite: 6 of 64": {
            "experts": "64",
            "top_k": 6,
            "model": "deepseek-v2-lite",
            "balancing": "loss",
            "capacity_factor": 4.0,
        },
    }
    break_it = (
        "Make the router drop more than a quarter of what the tokens asked for. Then let it keep everything, "
        "and see who waits."
    )
    lights = {
        "loads": Light("how many tokens choose each expert", ("bars",)),
        "dropped": Light("the choices that a full expert drops", ("dropped", "overflow")),
        "times": Light("how long one layer takes on the fullest GPU and on an average one", ("times",)),
    }
    tour = (
        Step(
            "If no expert were more popular than another, chance alone would make the queues uneven: the "
            "fullest has {most}, and {lost} of the choices are dropped.",
            {"skew": 0},
            "loads",
        ),
        Step(
            "With a skew of {skew} tokens prefer some experts: the fullest is chosen by {most}. It takes no "
            "more than its capacity, and {lost} of all choices are dropped.",
            {},
            "dropped",
        ),
        Step(
            "At a capacity factor of {capacity_factor} all are kept. Now the GPU of the fullest expert sets "
            "the pace: the layer takes {layer_time}, if all were even {even_time}.",
            {"capacity_factor": 4},
            "times",
        ),
        Step(
            "An auxiliary loss makes the router share out its choices: the fullest expert has {most}, and "
            "at the old capacity {lost} are dropped.",
            {"balancing": "loss"},
            "loads",
        ),
        Step(
            "A bias for each expert, moved after each step, does about the same without a term in the loss: "
            "{most}.",
            {"balancing": "bias"},
            "loads",
        ),
    )
    assumptions = (
        "512 tokens are routed by a router whose taste is a bias for each expert and random noise; lines "
        "show every eighth of them. They queue in order, and a full expert takes no more: that choice is "
        "dropped, and the token goes on without it. Balancing first trains the biases on other tokens, 64 in "
        "a step, by the auxiliary loss or by DeepSeek's rule, with nothing that pulls back; what unevenness "
        "is left is chance. The times are of one layer's forward pass with one expert on each GPU and the "
        "loads in these proportions, bf16, every choice a message, nothing overlapped. No shared expert."
    )
    formula = (
        r"$$R_\text{capacity} = \left\lceil c\,\frac{k\,T}{E}\right\rceil \qquad L_{aux} = E \sum_{e} "
        r"f_e\,P_e$$"
        "\n\n"
        "$R_\\text{capacity}$ rows is an expert's capacity, $c$ the capacity factor, $T$ tokens with $k$ "
        "choices among $E$ experts (Fedus et al., arXiv:2101.03961, section 2.2). $f_e$ is the expert's part "
        "of the choices, $P_e$ its mean probability. The loss is 1 where all are even. $f_e$ is a count and "
        "has no slope; the router descends along $P_e$ and pays most for the experts with the largest $f_e$."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def run(self):
        return routing.route(self.experts, self.top_k, self.skew, self.seed, self.balancing, self.steps)

    def load(self):
        return self.run()["load"]

    def capacity(self):
        return experts.capacity_rows(routing.TOKENS, self.top_k, self.experts, self.capacity_factor)

    @once
    def dropped(self):
        return routing.dropped_share(self.load(), self.capacity())

    @once
    def imbalance(self):
        return routing.imbalance(self.load(), self.experts)

    def layer(self, imbalance):
        """Seconds with so much over the mean: there, the expert, back."""
        block = experts.block(self.model, self.experts, self.top_k)
        return experts.layer(
            block, self.tokens, self.experts, self.machine, self.experts, False, False, imbalance
        )

    @once
    def layers(self):
        """(of the fullest GPU, of an average one)."""
        return [self.layer(share) for share in routing.worked(self.load(), self.capacity(), self.experts)]

    def layer_s(self):
        return experts.total_s(self.layers()[0])

    def even_s(self):
        return experts.total_s(self.layer(1.0))

    def slower(self):
        return self.layer_s() / self.even_s()

    def efficiency(self):
        done, _ = routing.worked(self.load(), self.capacity(), self.experts)
        rows = experts.rows_of(self.tokens, self.top_k, done)
        return experts.share_of_peak(
            rows,
            1.0,
            self.model.hidden,
            self.model.expert_ffn,
            self.model.gated,
            self.layers()[0].experts_s,
            self.machine.gpu.bf16_flops_per_s,
        )

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*COUNTED)
    def bars(self):
        load, mean = self.load(), routing.mean_load(self.load(), self.experts)
        number = np.where(np.isfinite(load), NUMBERS, load)
        named = np.where(self.experts <= NAMED, 1.0, 0.0)
        return {
            **slots(1.0, self.experts, routing.MOST_EXPERTS).narrowed(0.72).sides(),
            "middle": middle_of(np.arange(float(routing.MOST_EXPERTS)), self.experts),
            "tokens": load,
            "bottom": fig.where_known(0.0, load),
            "kept": routing.kept(load, self.capacity()) / mean,
            "top": load / mean,
            "over": np.where(load > self.capacity(), 1.0, 0.0),
            "name": show(number, "count"),
            "amount": show(load, "count"),
            "named": np.isfinite(load) * named,
            **self.value_places(load / mean),
        }

    def value_places(self, top):
        """Each bar's value stands above it, or within it where a limit's line would run through it there."""
        room, within = VALUE * self.view(), top < 0
        for line, other in ((1.0, self.capacity_factor), (self.capacity_factor, 1.0)):
            struck = (top < line) & (top > line - room)
            within = within | (struck & ~((other < top) & (other > top - 1.3 * room)))
        return {"above": fig.gone_unless(~within, top), "within": fig.gone_unless(within, top)}

    def view(self):
        return fig.fitting_view(self.imbalance(), VIEWS)

    @hint("bars")
    def of_an_expert(self):
        load = self.load()
        return phrase(
            "expert {e}: {asked} tokens choose it, {dropped} of them are dropped",
            e=show(NUMBERS, "count"),
            asked=show(load, "count"),
            dropped=show(load - routing.kept(load, self.capacity()), "count"),
        )

    @part(*COUNTED, shown=False)
    def lines(self):
        found = self.run()
        over = found["place"] >= self.capacity()
        drawn = np.isfinite(found["place"])
        return {
            "from": middle_of(found["token"], SEEN),
            "to": middle_of(found["expert"], self.experts),
            "kept": np.where(drawn & ~over, np.where(self.top_k > 4, 0.2, 0.45), 0.0),
            "dropped": np.where(over, 0.9, 0.0),
        }

    @part("experts", "top_k", "capacity_factor")
    def limits(self):
        even = experts.mean_rows(routing.TOKENS, self.top_k, self.experts)
        return {
            "y": np.stack([self.capacity_factor, 1.0]),
            "text": [f"capacity {show(self.capacity(), 'count')}", f"even {show(even, 'count')}"],
            "short": [f"cap {show(self.capacity(), 'count')}", f"even {show(even, 'count')}"],
            "shift": np.where(
                self.capacity_factor < 1.0, APART[::-1], np.where(self.capacity_factor < 1.5, APART, 0.0)
            ),
        }

    @part(*TIMED)
    def times(self):
        fullest, average = self.layers()
        whole = experts.total_s(fullest)
        work = np.stack([fullest.experts_s, average.experts_s])
        wire = choose(self.experts > experts.in_a_node(self.experts, self.machine.net), "network", "link")
        each = show(self.tokens, "count")
        layer = f"one layer of {self.model.name}, forward, {each} tokens a GPU"
        return {
            "y": ROWS,
            "wire": [wire, wire],
            "who": ["fullest GPU", "average GPU"],
            "short": ["fullest", "average"],
            "said": [f"{layer}: dispatch, experts, combine in {show(whole, 'seconds')}", ""],
            "said_short": [f"{each} tokens a GPU: {show(whole, 'seconds')} a layer", ""],
            **fig.waiting(whole, fullest.dispatch_s, work, fullest.combine_s),
        }

    @part(*COUNTED, shown=False)
    def drop(self):
        """How much is dropped, above the bars."""
        words = f"{show(self.dropped(), 'percent')} of all choices are dropped"
        return {"y": NOTE * self.view(), "text": choose(self.dropped() > 0, words, "nothing is dropped")}

    @part(*TIMED, shown=False)
    def idle(self):
        """How long the average GPU waits, within its wait."""
        fullest, average = self.layers()
        whole = experts.total_s(fullest)
        start, wait = (fullest.dispatch_s + average.experts_s) / whole, fullest.experts_s - average.experts_s
        share = wait / whole
        amount = show(share, "percent")
        words = {"wide": f"idle {amount}", "narrow": amount}
        return {
            "x": start + fig.midpoint(0.0, share),
            "y": ROWS[1],
            **{width: choose(share > room, words[width], "") for width, room in IDLE_ROOM.items()},
        }

    def ranges(self):
        return {"y": [-self.view(), self.view()]}

    def figure(self, sources):
        p = fig.plot((-0.01, 1.26), (-VIEWS[1], VIEWS[1]), height=580)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        fixed = fig.still_height(p)
        color, bars, times = fig.COLOR, sources["bars"], sources["times"]
        place = {"left": "left", "right": "right", "source": bars}
        p.segment(
            "from",
            LINES[0],
            "to",
            LINES[1],
            source=sources["lines"],
            line_color=color["ink-faint"],
            line_alpha="kept",
            **fixed,
        )
        p.segment(
            "from",
            LINES[0],
            "to",
            LINES[1],
            source=sources["lines"],
            line_color=color["over"],
            line_alpha="dropped",
            line_dash=[4, 3],
            line_width=1.5,
            name="dropped",
            **fixed,
        )
        tokens = middle_of(np.arange(SEEN), SEEN)
        p.scatter(tokens, np.full(SEEN, TOKENS_AT), size=4, fill_color=color["ink"], line_color=None, **fixed)
        for width, words in (("wide", f"{routing.TOKENS} tokens"), ("narrow", "tokens")):
            fig.only(width, p.text([1.01], [TOKENS_AT], text=[words], **fixed, **fig.LABEL))
        p.text([1.01], [0.465], text=["experts"], **fixed, **fig.LABEL)
        p.text(
            "middle",
            0.465,
            text="name",
            source=bars,
            text_align="center",
            text_alpha="named",
            **fixed,
            **fig.LABEL,
        )
        p.quad(bottom="bottom", top="kept", **place, fill_color=color["compute"], line_color=None)
        p.quad(bottom="kept", top="top", **place, name="overflow", **fig.OVER | {"line_alpha": "over"})
        limits = {"x0": 0.0, "x1": 1.0, "y0": "y", "y1": "y", "source": sources["limits"]}
        p.segment(**limits, line_color=color["ink"], line_dash=[6, 4], line_width=1.4)
        amount = {"text": "amount", "source": bars, "text_align": "center", "text_alpha": "named"} | fig.TEXT
        on_bar = amount | fig.BOLD | {"text_color": color["on-work"]}  # bold, to be read on a hue
        fig.only(
            "wide",
            p.text("middle", "above", y_offset=-9, **amount | fig.OVER_LINES),
            p.text("middle", "within", y_offset=10, **on_bar),
        )
        for width, limit, who in (("wide", "text", "who"), ("narrow", "short", "short")):
            fig.only(
                width,
                p.text(1.01, "y", text=limit, source=sources["limits"], y_offset="shift", **fig.TEXT),
                p.text(1.01, "y", text=who, source=times, **fixed, **fig.TEXT),
            )
        drop = {"text_align": "right"} | fig.BOLD | {"text_font_size": "15px"}
        p.text(1.0, "y", text="text", source=sources["drop"], **drop)
        row = {"y": "y", "height": 0.066, "source": times} | fixed
        hue = fig.hues("wire", {"link": "link", "network": "network"})
        for left, right in (("start", "sent"), ("waited", "end")):
            p.hbar(left=left, right=right, **row, fill_color=hue, line_color=None)
        p.hbar(left="sent", right="computed", **row, fill_color=color["compute"], line_color=None)
        p.hbar(left="computed", right="waited", **row, **fig.IDLE)
        for width in IDLE_ROOM:
            idle = p.text(
                "x", "y", text=width, source=sources["idle"], text_align="center", **fixed, **fig.BOLD
            )
            fig.only(width, idle)
        for width, said in (("wide", "said"), ("narrow", "said_short")):
            fig.only(width, p.text(0.0, "y", text=said, source=times, y_offset=-30, **fixed, **fig.LABEL))
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Fullest expert", rest=True)
    def most(self):
        return f"{show(self.imbalance(), 'times')} the mean", self.imbalance() > 2

    @readout("Dropped", rest=True)
    def lost(self):
        return show(self.dropped(), "percent"), self.dropped() > 0.25

    @readout("Layer, forward")
    def layer_time(self):
        return show(self.layer_s(), "seconds"), self.slower() > 2

    @readout("If all were even", rest=True)
    def even_time(self):
        return show(self.even_s(), "seconds")

    @readout("Auxiliary loss", help="1 if all experts are chosen equally often")
    def loss(self):
        return show(self.run()["loss"], "count")

    @readout(
        "Of the peak, at the fullest expert",
        help="The share reached by its products, which is low with few rows per expert",
    )
    def reached(self):
        return show(self.efficiency(), "percent"), self.efficiency() < 0.2

    @regime(target=True)
    def overflow(self):
        response = choose(
            self.balancing > 0, "raise the capacity", "balance the router, then raise the capacity"
        )
        return self.dropped() > 0.25, (
            f"The queues overflow: {show(self.dropped(), 'percent')} of the choices are dropped, and the "
            f"tokens go on without what those experts know. First response: {response}."
        )

    @regime()
    def straggler(self):
        response = choose(self.balancing > 0, "", "balance the router; ")
        return self.slower() > 1.5, (
            f"The fullest expert sets the time: {show(self.layer_s(), 'seconds')} instead of "
            f"{show(self.even_s(), 'seconds')} if all were even, and the other GPUs wait. First response: "
            f"{response}a lower capacity, which trades the time for dropped tokens."
        )

    @regime()
    def starved(self):
        return self.efficiency() < 0.2, (
            f"The experts starve: so few rows reach one that even the fullest works at "
            f"{show(self.efficiency(), 'percent')} of the GPU's peak. First response: more tokens for each "
            "expert, or several experts in one grouped product."
        )

    def summary(self):
        late, lost = self.layer_s() > 1.005 * self.even_s(), self.dropped() > 0
        even = choose(late, f"not {show(self.even_s(), 'seconds')}", "as if even")
        return (
            f"The fullest of {show(self.experts, 'count')} experts is asked "
            f"{show(self.imbalance(), 'times')} the mean: "
            f"{choose(lost, show(self.dropped(), 'percent'), 'nothing')} is dropped; the layer takes "
            f"{show(self.layer_s(), 'seconds')}, {even}."
        )


MoeRouting.serve_as(__name__)
