"""A layer of experts over its number of ranks: its two AllToAlls against its arithmetic, and the edge of the
node."""

from functools import cache
from typing import NamedTuple

import numpy as np

from engine import catalog
from engine.base import ops
from engine.executed import spare_experts
from engine.mechanism import experts
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.cluster import OUT_OF_SIGHT, behind, middle_of, slots
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, counted, phrase, share_of, show, sold
from widgets.kit.widget import Widget, hint, once, part, readout, regime

RANKS = 2.0 ** np.arange(9)
MODELS = [
    catalog.model(key)
    for key in (
        "deepseek-v3",
        "mixtral-8x22b",
        "llama4-maverick",
        "qwen3-235b-a22b",
        "gpt-oss-120b",
        "deepseek-v2-lite",
        "kimi-k3",
        "nemotron-3-super",
    )
]
MACHINES = [
    experts.ExpertNode.of(catalog.node(key))
    for key in ("dgx-a100", "h800-8", "dgx-h100", "dgx-b200", "gb200-nvl72")
]
VIEWS_S = [step * 10.0**k for k in range(-4, 2) for step in (1, 1.5, 2, 3, 4, 6)]
SLOTS = 9.0
MOSTLY = 3.0  # the wires' time over the experts'
BELOW = 0.2  # of the view, for what the GPUs hold …
FLOOR = BELOW / (1 + BELOW)  # … and of the picture
HELD_TITLE, HELD_ROW = 0.125, 0.04  # the heights of its words, as shares of the picture
NEVER = 1e9  # ranks
SPARE = (0, 1, 2)
SKEW = 0.8  # as in the lesson: the share of an expert falls with its place as 1/place^0.8
LAYER = ("tokens", "machine", "model", "way", "fp8", "liked", "spare")
EACH = ("ep", *LAYER)


@cache
def fullest_of_all() -> np.ndarray:
    """The fullest GPU over the mean for each model, number of spare places and number of ranks, as a balancer
    leaves it that was run; 1 where there are more ranks than experts."""
    found = []
    for model in MODELS:
        rows = spare_experts.liked(model.experts, SKEW)
        for spare in SPARE:
            for ranks in (int(n) for n in RANKS):
                there = 1 < ranks <= model.experts
                found.append(spare_experts.fullest(rows, ranks, ranks * spare) if there else 1.0)
    return np.array(found)


class Way(NamedTuple):
    """How tokens are sent: each of them once to a node or for each choice, and to how many nodes at most."""

    key: str
    name: str
    once: bool
    nodes: float


WAYS = [
    Way("each", "a message for each choice", False, 256.0),
    Way("once", "once to each node", True, 256.0),
    Way("four", "once to each of 4 nodes at most", True, 4.0),
    Way("two", "once to each of 2 nodes at most", True, 2.0),
]


class AlltoallCost(Widget):
    question = "Over how many GPUs may experts be spread?"
    ep = Choice(
        "Expert ranks",
        {f"{n:.0f}": (f"{n:.0f}", float(i)) for i, n in enumerate(RANKS)},
        "8",
        help="GPUs that share the experts of a layer; click on a bar to choose",
    )
    tokens = Number("Tokens a GPU", 4096, 16, 65536, family="count", stops=64, marks=(128, 1024, 8192))
    machine = Choice("Node", MACHINES, "dgx-h100")
    model = Choice("Model", MODELS, "deepseek-v3", more=True)
    way = Choice("A token travels", WAYS, "each", more=True)
    fp8 = Switch("FP8: products and dispatch", more=True)
    liked = Choice(
        "The router likes",
        {"alike": ("all experts alike", 0.0), "unlike": ("some far more than others", 1.0)},
        "alike",
        more=True,
        help="Alike, or with shares that fall as 1/place to the power of 0.8, the favourites anywhere",
    )
    spare = Choice(
        "Spare places on a GPU",
        {f"{n}": ("none" if not n else f"{n}", float(n)) for n in SPARE},
        "0",
        more=True,
        help="Room for copies of the experts that are asked for most",
    )
    dots = Dots()

    on_phone = "ep"
    presets = {
        "Experts in one node": {},
        "EP 64, each choice a message": {"ep": "64"},
        "DeepSeek-V3 as trained": {"ep": "64", "machine": "h800-8", "way": "four", "fp8": "on"},
        "EP 64 in a rack of 72": {"ep": "64", "machine": "gb200-nvl72"},
        "Mixtral 8x22B": {"model": "mixtral-8x22b"},
        "1,024 tokens in a node, FP8": {"tokens": 1024, "fp8": "on"},
        "Latent experts: Kimi K3": {"model": "kimi-k3", "ep": "64"},
        "Favourites, a spare place on each GPU": {"ep": "64", "way": "four", "liked": "unlike", "spare": "1"},
        "Decoding, 128 tokens a GPU": {"tokens": 128, "ep": "64", "way": "once"},
    }
    tap = {"places": "ep"}
    break_it = "Let the ranks leave the node, until the AllToAlls take three times as long as the experts."
    assumptions = (
        "One MoE layer, forward, with 16-bit rows unless FP8 is on (then dispatch has 8 bits and combine "
        "16). A limit on nodes is taken as used up. NVLink and NICs work "
        "at once, at measured shares of their rates; nothing is overlapped with arithmetic, no packet waits "
        "for another. The experts of a GPU are one grouped product, with padded tiles and every expert's "
        "weights read; the shared expert, the activation and the products into a latent and back are in it, "
        "attention is not. Weights are those "
        "of all layers: pipeline stages would divide them. Where experts are liked unlike, all wait for the "
        "fullest GPU; spare places have copies of the favourites, dealt out and packed by a balancer that "
        "knows each load exactly."
    )
    formula = (
        r"$$\tau_\text{AllToAll} = \frac{(b_d + b_c)\,c\,T\,h}{W} \qquad \tau_\text{experts} = "
        r"\frac{6\,T\,k\,h\,f}{C} \qquad f^* = \frac{b_d + b_c}{6}\cdot\frac{c}{k}\cdot\frac{C}{W}$$"
        "\n\n"
        "$T$ tokens of width $h$, $c$ copies of each over a wire of $W$ bytes a second, $b_d$ and $b_c$ "
        "bytes a value there and back; $k$ experts of width $f$ with a gate, at $C$ FLOP/s. At the width "
        "$f^*$ both take equally long. With $g$ of $n$ ranks in a node, $c = k\\,(1 - g/n)$ copies leave it."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def ranks(self):
        """The expert-parallel ranks that were chosen, but no more than there are experts."""
        return np.minimum(lookup(RANKS, self.ep), self.model.experts)

    def fullest(self, index):
        """The fullest GPU over the mean, where so many ranks share the experts."""
        model = ops.each(self.model, lambda model: 1.0 * MODELS.index(model))
        place = (model * len(SPARE) + self.spare) * RANKS.size + index
        return 1.0 + self.liked * (lookup(fullest_of_all(), place) - 1.0)

    def fullest_here(self):
        return self.fullest(fig.doublings(self.ranks()))

    def layer(self, ranks):
        return experts.layer(
            self.model,
            self.tokens,
            ranks,
            self.machine,
            self.way.nodes,
            self.way.once,
            self.fp8,
            self.fullest(fig.doublings(ranks)),
            self.spare,
        )

    @once
    def here(self):
        return self.layer(self.ranks())

    def ratio(self):
        return experts.wires_s(self.here()) / self.here().experts_s

    def per_node(self):
        return experts.in_a_node(256.0, self.machine.net)

    def leaves(self):
        return self.ranks() > self.per_node()

    def held_by(self, ranks):
        return experts.held_bytes(self.model, ranks, spare=self.spare)

    def held(self):
        return self.held_by(self.ranks())

    def there(self):
        """Which numbers of ranks there are: no more than experts."""
        return self.model.experts >= RANKS

    def fit_from(self):
        """The fewest ranks of which each has HBM for its experts."""
        fits = self.there() & (self.held_by(RANKS) <= self.machine.gpu.hbm_bytes)
        return np.min(np.where(fits, RANKS, NEVER))

    def fed_by_more(self):
        """Whether the experts' products reach more of the peak on twice the ranks."""
        twice = np.minimum(2.0 * self.ranks(), np.minimum(self.model.experts, RANKS[-1]))
        fullest = self.fullest(fig.doublings(twice))
        time_s = self.layer(twice).experts_s
        reached = experts.layer_share_of_peak(
            self.model, self.tokens, self.machine, self.fp8, fullest, time_s
        )
        return (twice > self.ranks()) & (reached > self.efficiency())

    def efficiency(self):
        return experts.layer_share_of_peak(
            self.model, self.tokens, self.machine, self.fp8, self.fullest_here(), self.here().experts_s
        )

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*LAYER)
    def bars(self):
        found = self.layer(RANKS)
        there = np.where(self.there(), 1.0, 0.0)
        work, wires = (there * each for each in (found.experts_s, experts.wires_s(found)))
        columns = slots(SLOTS, 2.0, 18).narrowed(0.86)
        sides = columns.sides()
        return {
            "ranks": RANKS,
            "work_left": sides["left"][0::2],
            "work_right": sides["right"][0::2],
            "left": sides["left"][1::2],
            "right": sides["right"][1::2],
            "bottom": np.zeros_like(there),
            "work": work,
            "dispatch": there * found.dispatch_s,
            "top": wires,
            "over": np.where(wires > work, 1.0, 0.0),
            "wire": [choose(n > self.per_node(), "network", "link") for n in RANKS],
        }

    @hint("bars")
    def of_a_number_of_ranks(self):
        found = self.layer(RANKS)
        return phrase(
            "{n} ranks: dispatch {there}, combine {back}, experts {work}",
            n=show(RANKS, "count"),
            there=show(found.dispatch_s, "seconds"),
            back=show(found.combine_s, "seconds"),
            work=show(found.experts_s, "seconds"),
        )

    @part("model", shown=False)
    def places(self):
        """The places at which a click chooses a number of ranks."""
        at = middle_of(np.arange(SLOTS), SLOTS, margin=0.0)
        return {"x": np.where(self.there(), at, OUT_OF_SIGHT)}

    @part("model", "machine", "spare")
    def weights(self):
        """What each GPU holds of the experts, and from how many ranks its HBM is enough."""
        held, there = self.held_by(RANKS), self.there()
        gpu, first = self.machine.gpu, show(self.fit_from(), "count")
        wide = f"{gpu.name} ({sold(gpu.hbm_bytes)}) has room from {first} ranks on"
        never = self.fit_from() >= NEVER
        return {
            "ranks": RANKS,
            "x": middle_of(np.arange(SLOTS), SLOTS, margin=0.0),
            "held_bytes": held,
            "text": [choose(there[i], show(held[i], "bytes"), "") for i in range(RANKS.size)],
            "title": [
                f"expert weights on each GPU: {choose(never, 'too much on any number of ranks', wide)}",
                *[""] * (RANKS.size - 1),
            ],
            "short": [
                choose(never, "expert weights on a GPU", f"expert weights on a GPU, fit from {first}"),
                *[""] * (RANKS.size - 1),
            ],
        }

    @part(*EACH)
    def chosen(self):
        found = self.here()
        work, wires = found.experts_s, experts.wires_s(found)
        index, tokens = fig.doublings(self.ranks()), show(self.tokens, "count")
        return {
            "x": middle_of(index, SLOTS, margin=0.0),
            "top": np.maximum(work, wires),
            "left": behind(index, SLOTS, -1, margin=0.0),
            "right": behind(index, SLOTS, margin=0.0),
            "text": f"{show(wires, 'seconds')} on wires",
            "work": f"{show(work, 'seconds')} of experts",
            "layer": f"one MoE layer of {self.model.name}, forward, {tokens} tokens a GPU",
            "layer_short": f"a layer of {self.model.name}, forward",
            "held": show(self.held(), "bytes"),
            "inward": fig.inward(middle_of(index, SLOTS, margin=0.0), 0.0, 1.0, 0.1),
        }

    @part("machine")
    def edge(self):
        index = fig.doublings(self.per_node())
        return {
            "x": behind(index, SLOTS, margin=0.0),
            "align": choose(index > SLOTS / 2, "right", "left"),
            "shift": np.where(index > SLOTS / 2, -7.0, 7.0),
            "text": f"nodes of {show(self.machine.net.gpus_per_node, 'count')} end here",
        }

    @measured("alltoall_cost", *LAYER)
    def exchanges(self, of):
        """DeepEP's dispatch and combine, on the bar with their number of ranks."""
        same = of.of(model=self.model, node=self.machine, way=self.way, fp8=np.where(self.fp8, 1.0, 0.0))
        sides = slots(SLOTS, 2.0, 18).narrowed(0.86).sides()
        bar = fig.midpoint(sides["left"][1::2], sides["right"][1::2])
        x = bar[fig.doublings(of.column("ranks")).astype(int)]
        return Seen(
            same & of.near("tokens", self.tokens, 0.1) & (self.liked < 1) & (self.spare < 1),
            x,
            of.measured,
            x,
            of.ours,
            of.apart("tokens", self.tokens, "count", "Each GPU sent {} tokens."),
        )

    def ranges(self):
        found = self.layer(RANKS)
        fits = np.where(self.there(), np.maximum(found.experts_s, experts.wires_s(found)), 0.0)
        view = fig.fitting_view(np.max(fits), VIEWS_S, headroom=1.45)
        return {"y": [-BELOW * view, view]}

    def figure(self, sources):
        p = fig.plot((-0.005, 1.005), (-BELOW * VIEWS_S[8], VIEWS_S[8]), height=470, x_title="Expert ranks")
        fig.key(
            p,
            {"experts": "compute", "AllToAlls, in the node": "link", "AllToAlls, network": "network"},
            wide=0.92,
            narrow=0.92,
            own_heights=True,
        )
        fig.moving_ticks(p.yaxis[0], "seconds")
        p.yaxis[0].bounds = (0, VIEWS_S[-1])
        fig.named_rows(p.xaxis[0], {f"{n:.0f}": middle_of(i, SLOTS, margin=0.0) for i, n in enumerate(RANKS)})
        color, bars, chosen, edge = fig.COLOR, sources["bars"], sources["chosen"], sources["edge"]
        hue = fig.hues("wire", {"link": "link", "network": "network"})
        fixed = fig.still_height(p)
        p.quad(
            left="left",
            right="right",
            bottom=0,
            top=1,
            source=chosen,
            fill_color=color["ink"],
            fill_alpha=0.05,
            line_color=None,
            **fixed,
        )
        p.segment("x", FLOOR, "x", 1, source=edge, line_color=color["ink"], line_dash=[6, 4], **fixed)
        p.segment(-0.005, 0, 1.005, 0, line_color=color["axis"])
        p.quad(
            left="work_left",
            right="work_right",
            bottom="bottom",
            top="work",
            source=bars,
            fill_color=color["compute"],
            line_color=None,
        )
        wires = {"left": "left", "right": "right", "source": bars}
        p.quad(bottom="bottom", top="top", **wires, fill_color=hue, line_color=None)
        p.segment("left", "dispatch", "right", "dispatch", source=bars, line_color=color["panel"])
        named = {"text": "text", "text_align": "align", "x_offset": "shift", "source": edge}
        for width, height in (
            ("wide", 0.76),
            ("narrow", 0.66),
        ):  # over the bars; on a phone below the last bar's words
            fig.only(width, p.text("x", height, **named, **fixed, **fig.LABEL | fig.OVER_LINES))
        weights, floor = sources["weights"], {"y": HELD_TITLE, **fixed}
        for width, title, layer in (("wide", "title", "layer"), ("narrow", "short", "layer_short")):
            fig.only(
                width,
                p.text(0.0, text=title, source=weights, **floor, **fig.LABEL),
                p.text(0.0, 0.975, text=layer, source=chosen, level="annotation", **fixed, **fig.BOLD),
            )
        row = {"y": HELD_ROW, **fixed} | fig.TEXT
        fig.only("wide", p.text("x", text="text", source=weights, text_align="center", **row))
        fig.only("narrow", p.text("x", text="held", source=chosen, text_align="inward", **row))
        fig.measured(p, sources["exchanges"])
        p.scatter("x", 0, source=sources["places"], size=1, fill_alpha=0, line_alpha=0)
        p.text(
            "x",
            "top",
            text="text",
            source=chosen,
            text_align="inward",
            y_offset=-26,
            **fig.BOLD | fig.OVER_LINES,
        )
        p.text(
            "x",
            "top",
            text="work",
            source=chosen,
            text_align="inward",
            y_offset=-10,
            **fig.TEXT | fig.OVER_LINES,
        )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Dispatch", rest=True)
    def dispatch(self):
        return show(self.here().dispatch_s, "seconds")

    @readout("Experts' arithmetic", rest=True)
    def arithmetic(self):
        return show(self.here().experts_s, "seconds")

    @readout("Combine", rest=True)
    def combine(self):
        return show(self.here().combine_s, "seconds")

    @readout("AllToAlls over arithmetic")
    def over(self):
        return show(self.ratio(), "times"), self.ratio() > 1

    @readout("Of the peak", help="The share reached by the experts' products")
    def reached(self):
        return show(self.efficiency(), "percent"), self.efficiency() < 0.2

    @readout("Experts held, bf16 weights")
    def holds(self):
        return show(self.held(), "bytes"), self.held() > self.machine.gpu.hbm_bytes

    @readout("Fullest GPU over the mean", rest=True)
    def uneven(self):
        return show(self.fullest_here(), "times"), self.fullest_here() > 1.5

    @regime()
    def waits_for_the_fullest(self):
        return self.fullest_here() > 1.5, (
            f"All GPUs wait for one: the fullest has {show(self.fullest_here(), 'times')} the mean. "
            "First response: in training, balance the router; in a server, a spare place on each GPU for a "
            "copy of a favourite."
        )

    @regime(target=True)
    def mostly_wires(self):
        return self.leaves() & (self.ratio() > MOSTLY), (
            f"A layer of wires: dispatch and combine take {show(experts.wires_s(self.here()), 'seconds')}, "
            f"{show(self.ratio(), 'times')} the experts' {show(self.here().experts_s, 'seconds')}, so a GPU "
            "sends for most of the layer. First response: send a token once to each node and to few nodes, "
            "in fewer bits; then overlap with another micro-batch."
        )

    @regime()
    def off_node(self):
        return self.leaves() & (self.ratio() > 1) & (self.ratio() <= MOSTLY), (
            f"The experts have left the node: dispatch and combine take "
            f"{show(experts.wires_s(self.here()), 'seconds')}, {show(self.ratio(), 'times')} the experts' "
            f"{show(self.here().experts_s, 'seconds')}. First response: send a token once to each "
            "node and to few nodes, in fewer bits; then overlap with another micro-batch."
        )

    @regime()
    def too_large(self):
        return self.held() > self.machine.gpu.hbm_bytes, (
            f"The experts do not fit: {show(self.held(), 'bytes')} of bf16 weights for a GPU of "
            f"{sold(self.machine.gpu.hbm_bytes)}. First response: more expert ranks, or pipeline stages, "
            "which divide the layers (lesson 07)."
        )

    @regime()
    def starved(self):
        more = choose(
            self.fed_by_more(), ", or more expert ranks, so that each expert sees those of more GPUs", ""
        )
        return self.efficiency() < 0.2, (
            f"The experts starve: their products reach {show(self.efficiency(), 'percent')} of the peak, "
            "since so few rows reach each that reading its weights takes longer. First response: more "
            f"tokens{more}."
        )

    def summary(self):
        wires, work = (
            show(time_s, "seconds") for time_s in (experts.wires_s(self.here()), self.here().experts_s)
        )
        return (
            f"With {counted(self.ranks(), 'expert rank', 'expert ranks')} a layer of {self.model.name} "
            f"sends for {wires}, {share_of(self.ratio())} the {work} that it computes."
        )


AlltoallCost.serve_as(__name__)
