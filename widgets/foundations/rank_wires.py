"""A job's ranks on eight nodes, numbered in any order of the axes: the traffic of each axis lights the wires
that it takes, and one swap of two ranks tears a group apart."""

import numpy as np
from bokeh.models import Range1d

from engine import catalog
from engine.mechanism import numbering, placement
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, select, show, show_in
from widgets.kit.widget import Widget, hint, once, part, readout, regime

NODES, PER_NODE = 8, 8
GPUS = np.arange(float(NODES * PER_NODE))
COLUMN, ROW = GPUS % PER_NODE, NODES - 1 - np.floor(GPUS / PER_NODE)
SEQ = 8192.0
AXES = ("Tensor", "Expert", "Data")
SHOWN = {"all": ("all axes", 0.0), **{name.lower(): (name.lower(), i + 1.0) for i, name in enumerate(AXES)}}
SECONDS = "seconds"  # the axis of the bars
BAR_Y = np.array([-1.85, -2.85, -3.85])
THICKEST, HAIRLINE = 13.0, 1.0  # pixels: a wire that is busy as long as the arithmetic, and an idle one
FULL = 1.5  # no wire is drawn thicker than one that is busy for this many times the arithmetic
VIEWS = [m * 10.0**e for e in range(-1, 4) for m in (1.0, 2.0, 5.0)]
HALF_WIDTH, HALF_HEIGHT = 0.24, 0.28  # of a GPU's cell
REACH = 0.51  # of a GPU's wires, past the middle between two: no seam is seen where they meet
HUES = {"link": "link", "network": "network"}
JOB = ("model", "tp", "ep", "batch")
PLACE = ("order", "one", "other", "tp", "ep", "model")
EVERY = ("order", "one", "other", *JOB, "machine")


def powers(*values):
    """Options for a choice among powers of two."""
    return {str(n): (str(n), float(n)) for n in values}


class RankWires(Widget):
    question = "Which wires does each axis take, if you number the ranks like this?"
    order = Choice(
        "Ranks numbered along",
        list(numbering.ORDERS),
        numbering.USUAL.key,
        help="The first axis is the innermost: its ranks are neighbours, and the nodes are filled in turn",
    )
    one = Number(
        "Rank on GPU", 0, 0, 63, stops=64, log=False, whole=True, help="Or drag a rank onto another GPU"
    )
    other = Number("Swaps with GPU", 0, 0, 63, stops=64, log=False, whole=True)
    shows = Choice("Traffic shown", SHOWN, "all", more=True)
    model = Choice(
        "Model",
        [catalog.model(key) for key in ("llama3-8b", "llama3-70b", "mixtral-8x22b")],
        "llama3-70b",
        more=True,
    )
    tp = Choice("Tensor ranks", powers(1, 2, 4, 8), "8", more=True)
    ep = Choice("Expert ranks", powers(1, 2, 4, 8), "1", more=True)
    batch = Number(
        "Sequences in a step",
        64,
        64,
        2048,
        stops=[64, 128, 256, 512, 1024, 2048],
        only="a power of two",
        more=True,
    )
    machine = Choice(
        "Node", [catalog.node(key) for key in ("dgx-a100", "dgx-h100", "dgx-b200")], "dgx-h100", more=True
    )

    carry = {"cells": ("one", "other")}
    presets = {
        "Opening case": {},
        "Two ranks swapped": {"one": 7, "other": 8},
        "Experts in the node": {"model": "mixtral-8x22b", "tp": "1", "ep": "8", "batch": 512},
        "Experts across the nodes": {
            "model": "mixtral-8x22b",
            "tp": "1",
            "ep": "8",
            "batch": 512,
            "order": "data-tensor-expert",
        },
    }
    break_it = "Double the step by the order of the axes alone. How near does a single swap come?"
    assumptions = (
        "Eight nodes of eight GPUs with a card each, on one switch; nothing hidden. A wire is as thick as "
        "its bytes keep it busy at its full rate. The bars are longer: collectives as they run, each by its "
        "fastest algorithm. Every axis waits for its slowest group. Sequences of 8,192 tokens, one at a "
        "time. Arithmetic runs at the rate that kernels reach. Cards carry the least that an AllReduce on "
        "two levels sends. Pipelines, ZeRO, recomputation and memory are left out."
    )
    formula = (
        r"$$\text{rank} = t + T\,(e + E\,d)$$"
        "\n\n"
        "The job counts a rank's tensor place $t$ of $T$ first, then its expert place $e$ of $E$, then its "
        "data place $d$, and puts two ranks into one group where the other places are equal. The order of "
        "the axes says which rank the launcher's next GPU gets. Of an AllReduce of $S$ bytes over $m$ nodes "
        r"the $k$ members in one node send $\frac{2(m-1)}{m}\,S$ to other nodes, each through its own card, "
        r"and each exchanges $\frac{2(k-1)}{k}\,S$ over NVLink."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def sizes(self):
        return placement.fitted_sizes(float(len(GPUS)), self.tp, self.ep, 1.0, self.model.experts)

    def fabric(self):
        return placement.LeafNetwork(
            float(NODES), float(PER_NODE), float(PER_NODE), self.machine.nic.bytes_per_s, 1.0, float(NODES)
        )

    def work(self):
        return placement.PlacedStep(self.model, self.batch, SEQ)

    @once
    def ranks(self):
        return self.ranks_of(self.order, numbering.Swap(self.one, self.other))

    @once
    def groups(self):
        return self.groups_of(self.ranks())

    @once
    def times(self):
        return self.times_of(self.ranks())

    @once
    def usual(self):
        """The same job in Megatron-LM's order, nothing swapped."""
        return self.times_of(self.ranks_of(numbering.USUAL, numbering.Swap()))

    @once
    def unswapped(self):
        return self.times_of(self.ranks_of(self.order, numbering.Swap()))

    def ranks_of(self, order, swap):
        return numbering.rank_on(GPUS, placement.levels(self.sizes()), order, swap)

    def groups_of(self, ranks):
        return numbering.groups(ranks, placement.levels(self.sizes()), float(PER_NODE))

    def times_of(self, ranks):
        at = self.groups_of(ranks)
        return numbering.step_times_s(self.work(), self.sizes(), at, self.machine.gpu, self.fabric())

    def against_usual(self):
        return self.times().step / self.usual().step

    @once
    def busy(self):
        """Seconds for which each GPU's NVLink and card are busy, with the traffic of each axis."""
        sent = numbering.wire_bytes(self.work(), self.sizes(), self.groups())
        return [
            placement.busy_s(wires, self.machine.gpu, self.fabric()) for wires in (sent.tp, sent.ep, sent.dp)
        ]

    def busy_shown(self):
        """The same, of the axes that are shown together."""
        found = []
        for wire in range(2):
            each = np.stack([busy[wire] for busy in self.busy()])
            found.append(fig.row_of(np.stack([np.sum(each, axis=0), *each]), self.shows))
        return found

    def seconds(self):
        at = self.times()
        return np.stack([at.tensor, at.expert, at.data])

    def over_cards(self):
        """Whether cards are what each axis waits for: they are busy for longer than any NVLink."""
        return [np.max(busy.nic) > np.max(busy.link) for busy in self.busy()]

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*PLACE, "shows")
    def cells(self):
        of, mine = self.groups(), self.one
        first = fig.row_of(
            np.stack([of.tensor.first, of.tensor.first, of.expert.first, of.data.first]), self.shows
        )
        picked = np.sum(np.where(mine == GPUS, first, 0.0))
        moved = (self.one != self.other) & ((self.one == GPUS) | (self.other == GPUS))
        return {
            "x": COLUMN,
            "y": ROW,
            "left": COLUMN - HALF_WIDTH,
            "right": COLUMN + HALF_WIDTH,
            "bottom": ROW - HALF_HEIGHT,
            "top": ROW + HALF_HEIGHT,
            "rank": show(self.ranks(), "count"),
            "member": np.where(first == picked, 1.0, 0.0),
            "rim": np.where(moved, 3.0, 1.0),
        }

    @hint("cells")
    def of_a_gpu(self):
        link, card = self.busy_shown()
        return phrase(
            "Rank {rank} on GPU {gpu}, which is GPU {local} of node {node}\nin a step its NVLink is busy for "
            "{link}, its card for {card}",
            rank=show(self.ranks(), "count"),
            gpu=show(GPUS, "count"),
            local=show(COLUMN, "count"),
            node=show(NODES - 1 - ROW, "count"),
            link=show(link, "seconds"),
            card=show(card, "seconds"),
        )

    @part(*EVERY, "shows")
    def wires(self):
        link, card = (
            HAIRLINE + THICKEST * np.minimum(each / self.times().compute, FULL) for each in self.busy_shown()
        )
        return {
            "x": COLUMN,
            "y": ROW,
            "left": COLUMN - REACH,
            "right": COLUMN + REACH,
            "below": ROW - REACH,
            "above": ROW + REACH,
            "link": link,
            "card": card,
        }

    @part(*EVERY, "shows", shown=False)
    def key(self):
        """How long the wires of each kind are busy, over the lattice."""
        link, card = self.busy_shown()
        return {
            "x": np.array([-0.4, 3.6]),
            "kind": ["link", "network"],
            "wide": [
                f"NVLink in each node: busy for {self.span(link)}",
                f"cards to the other nodes: {self.span(card)}",
            ],
            "narrow": [f"NVLink {self.span(link)}", f"cards {self.span(card)}"],
        }

    def span(self, seconds):
        """From the least busy wire to the busiest."""
        low, high = np.min(seconds), np.max(seconds)
        most = show_in(high, "s", 2)
        return choose(high > 1.01 * low, f"{show(low, 'count', 2)} to {most}", most)

    @part(*EVERY)
    def bars(self):
        end, of = self.seconds(), self.groups()
        sizes = self.sizes()
        ranks = np.stack([sizes.tp, sizes.ep, sizes.dp])
        nodes = [np.max(group.spread.nodes) for group in (of.tensor, of.expert, of.data)]
        cards = self.over_cards()
        return {
            "y": BAR_Y,
            "end": end,
            "kind": [choose(over, "network", "link") for over in cards],
            "name": [f"{AXES[i]} {show(ranks[i], 'count')}" for i in range(3)],
            "where": [
                choose(ranks[i] > 1, self.place(nodes[i], cards[i]), "alone, sends nothing") for i in range(3)
            ],
            "label": [choose(ranks[i] > 1, show_in(end[i], "s"), "") for i in range(3)],
        }

    def place(self, nodes, over):
        far = f"a group on {show(nodes, 'count')} nodes, waits for {choose(over, 'cards', 'NVLink')}"
        return choose(nodes > 1, far, "each group in one node, over NVLink")

    @hint("bars")
    def of_an_axis(self):
        end = self.seconds()
        return [
            choose(end[i] > 0, f"{AXES[i]}: its collectives take {show_in(end[i], 's')} of a step", "")
            for i in range(3)
        ]

    @part(*EVERY)
    def arithmetic(self):
        x = self.times().compute
        return {
            "x": x,
            "align": fig.inward(x, 0.0, self.view(), 0.3),
            "label": f"arithmetic of the step: {show_in(x, 's')}",
        }

    def view(self):
        return fig.fitting_view(np.maximum(np.max(self.seconds()), self.times().compute), VIEWS, 1.15)

    def ranges(self):
        return {SECONDS: [-0.01 * self.view(), self.view()]}

    def figure(self, sources):
        p = fig.plot((-1.25, 7.6), (-4.25, 8.6), height=560)
        fig.bare(p)
        color = fig.COLOR
        rows = np.arange(float(NODES))
        ground = {"fill_color": color["ink"], "fill_alpha": 0.05, "line_color": None}
        p.quad(np.full(NODES, -0.5), np.full(NODES, 7.5), rows - 0.4, rows + 0.4, **ground)
        wires = sources["wires"]
        p.segment("x", "below", "x", "above", source=wires, line_color=color["network"], line_width="card")
        p.segment("left", "y", "right", "y", source=wires, line_color=color["link"], line_width="link")
        cells = sources["cells"]
        p.quad(**fig.BOX, source=cells, fill_color=color["panel"], line_color=None)
        p.quad(
            **fig.BOX,
            source=cells,
            fill_color=color["ink"],
            fill_alpha="member",
            line_color=color["ink"],
            line_width="rim",
        )
        ink = fig.either("member", "ink", "panel")
        p.text("x", "y", text="rank", source=cells, text_align="center", **fig.TEXT | {"text_color": ink})
        names = {"wide": [f"node {int(NODES - 1 - row)}" for row in rows]}
        names["narrow"] = [name.removeprefix("node ") for name in names["wide"]]
        for width, words in names.items():
            right = {"text_align": "right"} | fig.LABEL
            fig.only(width, p.text(np.full(NODES, -0.62), rows, text=words, **right))
            key = sources["key"]
            fig.only(width, p.text("x", 8.2, text=width, x_offset=12, source=key, **fig.TEXT))
        hue = fig.hues("kind", HUES)
        p.scatter("x", 8.2, marker="square", size=12, source=sources["key"], fill_color=hue, line_color=None)
        self.draw_bars(p, sources)
        return p

    def draw_bars(self, p, sources):
        color, bars, mark = fig.COLOR, sources["bars"], sources["arithmetic"]
        p.extra_x_ranges = {**p.extra_x_ranges, SECONDS: Range1d(start=0, end=20, name=SECONDS)}
        place = {"x_range_name": SECONDS}
        hue = fig.hues("kind", HUES)
        p.hbar(y="y", left=0, right="end", height=0.36, source=bars, fill_color=hue, line_color=None, **place)
        line = {"line_color": color["compute"], "line_width": 3}
        for row in BAR_Y:
            p.segment("x", row - 0.28, "x", row + 0.28, source=mark, **line, **place)
        name = fig.BOLD | {"text_color": color["compute"], "text_align": "align"}
        p.text("x", BAR_Y[0] + 0.92, text="label", source=mark, **name, **place)
        p.text(0, "y", text="name", source=bars, y_offset=-20, **fig.BOLD, **place)
        p.text("end", "y", text="label", x_offset=6, source=bars, **fig.BOLD | fig.ON_PANEL, **place)
        p.text(0, "y", text="where", source=bars, x_offset=78, y_offset=-20, **fig.LABEL, **place)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("A step, nothing hidden")
    def step(self):
        return show_in(self.times().step, "s"), self.against_usual() >= 2

    @readout("Against the usual order", help="Tensor, expert, data, nothing swapped: Megatron-LM's default")
    def against(self):
        return show(self.against_usual(), "times")

    @readout("What binds")
    def binds(self):
        at = np.argmax(self.seconds())
        wires = [choose(over, "cards", "NVLink") for over in self.over_cards()]
        return select(at, [f"{axis.lower()}, on {wire}" for axis, wire in zip(AXES, wires)])

    @readout("All communication", rest=True)
    def communication(self):
        return show_in(self.times().communication, "s")

    @readout("Tensor groups with ranks on several nodes", rest=True)
    def torn_groups(self):
        of = self.groups().tensor
        torn = np.sum(np.where(of.spread.nodes > 1, 1.0, 0.0) / of.spread.ranks)
        return show(torn, "count")

    @regime(target=True)
    def doubled(self):
        return self.against_usual() >= 2, (
            f"A step takes {show(self.against_usual(), 'times')} as long as in the usual order. It is the "
            "same code and it sends the same bytes, so no line of the log says that anything is wrong. First "
            "response: number the ranks along the axis that sends most, and print the hosts of every group "
            "at every start."
        )

    @regime()
    def torn(self):
        as_numbered, now = self.unswapped(), self.times()
        return now.step > 1.01 * as_numbered.step, (
            f"Two ranks changed places, and a step takes {show_in(now.step, 's')} instead of "
            f"{show_in(as_numbered.step, 's')}. A torn group is as slow as the node on which it has "
            "the fewest cards, and all the others wait for it. First response: put the rank back."
        )

    def summary(self):
        sizes, of, now = self.sizes(), self.groups(), self.times()
        inner = choose(sizes.tp > 1, "tensor ", choose(sizes.ep > 1, "expert ", "data "))
        spread = [group.spread.nodes for group in (of.tensor, of.expert, of.data)]
        nodes = np.max(np.where(sizes.tp > 1, spread[0], np.where(sizes.ep > 1, spread[1], spread[2])))
        whole = choose(nodes > 1, f"on {show(nodes, 'count')} nodes each", "in one node each")
        torn = now.step > 1.01 * self.unswapped().step
        return (
            f"With {choose(torn, '', inner)}groups {choose(torn, 'torn by a swap', whole)}, a step computes "
            f"for {show_in(now.compute, 's')} and communicates for {show_in(now.communication, 's')}."
        )


RankWires.serve_as(__name__)
