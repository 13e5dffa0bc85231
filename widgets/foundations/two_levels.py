"""An AllReduce on two levels as it runs: each node adds up over NVLink, a part of the sum crosses between
nodes, and the whole is handed round inside."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from bokeh.transform import linear_cmap

from engine import catalog
from engine.executed import ranks_frames, ranks_operations
from engine.executed.ranks import example
from engine.executed.ranks_frames import Frames, Ways
from engine.mechanism import collectives, start_ups
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import ring
from widgets.kit.guide import Light
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, executed, hint, part, readout, regime

MOST = 16  # GPUs, and chunks
STEPS = 16  # of the longest run
GPU, CHUNK = np.divmod(np.arange(MOST * MOST), MOST)
GPUS = np.arange(MOST)
NUMBERED = 8  # up to so many GPUs every number is written
WRITTEN = [i * MOST + j for i in range(NUMBERED) for j in range(NUMBERED)]  # places with a number
ACROSS, UP = (0.0, 1.0), (0.0, 1.0)  # the grid of GPUs and chunks
APART = 0.9  # of a row: the room between two nodes, where the next one's name stands
BARS = {"inside": (1.08, 1.4), "outside": (1.52, 1.84)}  # what has come to each GPU, by wire
WIRES = ("NVLink", "card")
NODE = catalog.node("dgx-h100")
HUES = ["hbm", "link", "network"]
LOOKS = {"its own, or a part of a sum": "hbm", "its node's sum": "link", "the sum of all": "network"}
PARTS = [
    "own numbers",
    "ReduceScatter in each node",
    "AllReduce across the nodes",
    "AllGather in each node",
    "AllReduce done",
]
BAR = {"y": -0.07, "height": 0.04, "line_color": None}
CUTS = ((2.0, 2.0), (2.0, 4.0), (2.0, 8.0), (4.0, 2.0), (4.0, 4.0))  # nodes, GPUs in each


@dataclass(frozen=True)
class Cut:
    """A number of nodes, with so many GPUs in each."""

    nodes: float
    gpus: float

    @property
    def key(self) -> str:
        return f"{self.nodes:.0f}x{self.gpus:.0f}"

    @property
    def name(self) -> str:
        return f"{self.nodes:.0f} nodes of {self.gpus:.0f}"


@cache
def ran(nodes: int, gpus: int) -> dict:
    """The executed collective, a chunk for each GPU."""
    count = nodes * gpus
    run = ranks_operations.all_reduce(example(count, count), "two_level", gpus_per_node=gpus)
    found = ranks_frames.frames(run, MOST, STEPS, changes=3)._asdict()
    return found | ranks_frames.ways(run, gpus, MOST, STEPS)._asdict()


class TwoLevels(Widget):
    question = "How much of a sum has to leave a node, if the node adds up first?"
    in_page = True
    cut = Choice("GPUs", [Cut(*at) for at in CUTS], "2x4")
    size = Number("Buffer", 1e9, 1e3, 16e9, family="bytes", marks=(1e6,))
    play = Player("Run the AllReduce", frames=STEPS, seconds_per_frame=1.3, default=1.5)

    presets = {
        "Two nodes of four": {},
        "Nodes added up": {"play": 3},
        "Four nodes of four": {"cut": "4x4"},
        "Four nodes of two": {"cut": "4x2"},
        "64 kB": {"size": 64e3},
    }
    break_it = "Make NVLink take longer than the cards, although it is nine times as fast."
    lights = {
        "sums": Light("what each GPU holds, and how many GPUs' numbers are in it", ("cells", "numbers")),
        "messages": Light("what is on its way to another GPU", ("messages",)),
        "wires": Light("what has come to each GPU over NVLink, and through its card", ("arrived",)),
    }
    assumptions = (
        "Executed on real arrays: a row is a GPU, and the buffer has a chunk for each. What came with the "
        "last step has a dark outline. Each GPU has a card of its own. The three parts run one after the "
        "other, by rings, at the full rates of a DGX H100's wires and with the start-ups of small "
        "messages; if they overlap, the longer level hides the shorter one."
    )
    formula = (
        "$$\\tau = \\frac{2(g-1)}{g}\\cdot\\frac{S}{W_\\text{link}} + \\frac{2(m-1)}{m}\\cdot"
        "\\frac{S}{g\\,W_\\text{card}} + 2(g-1)\\,\\alpha_\\text{link} + 2(m-1)\\,\\alpha_\\text{card}$$\n\n"
        "$m$ nodes of $g$ GPUs, a buffer of $S$ bytes. Inside a node each GPU sends $2(g-1)/g$ of the "
        "buffer, through its card only $2(m-1)/m$ of a $g$-th."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @executed("cut")
    def run(self):
        return ran(int(self.cut.nodes), int(self.cut.gpus))

    def frames(self):
        found = self.run()
        return Frames(*(found[name] for name in Frames._fields))

    def ways(self):
        found = self.run()
        return Ways(*(found[name] for name in Ways._fields))

    def count(self):
        return self.cut.nodes * self.cut.gpus

    def first_steps(self):
        """The steps of the ReduceScatter in the nodes, and of the AllGather."""
        return self.cut.gpus - 1

    def across_steps(self):
        return collectives.ring_steps(self.cut.nodes, self.cut.nodes)

    def steps(self):
        return 2 * self.first_steps() + self.across_steps()

    def moment(self):
        return np.minimum(self.play, self.steps())

    def part_now(self):
        """Which of the parts is running, or has just ended."""
        after, now = self.first_steps(), np.ceil(self.moment())
        across = np.where(now > after, 1.0, 0.0) + np.where(now > after + self.across_steps(), 1.0, 0.0)
        return np.where(self.moment() >= self.steps(), 4.0, np.where(now > 0, 1.0 + across, 0.0))

    def arrived_bytes(self):
        return ranks_frames.arrived_bytes(self.ways(), MOST, self.moment(), self.count(), self.size)

    def inside_bytes(self):
        """What each GPU sends over NVLink."""
        return collectives.ring_link_bytes(self.size, self.cut.gpus)

    def card_bytes(self):
        """What each GPU sends through its card."""
        part = collectives.gpu_part_bytes(self.size, self.cut.gpus)
        return collectives.ring_link_bytes(part, self.cut.nodes)

    def inside_s(self, size=None):
        size = self.size if size is None else size
        wire = NODE.link
        return collectives.ring_all_reduce_s(size, self.cut.gpus, wire.bytes_per_s, start_ups.hop_s(wire))

    def across_s(self, size=None):
        size = self.size if size is None else size
        part, wire = collectives.gpu_part_bytes(size, self.cut.gpus), NODE.nic
        return collectives.ring_all_reduce_s(part, self.cut.nodes, wire.bytes_per_s, start_ups.hop_s(wire))

    def time_s(self, size=None):
        return self.inside_s(size) + self.across_s(size)

    def start_share(self):
        return self.time_s(0.0) / self.time_s()

    def ring_s(self):
        link, card = NODE.link, NODE.nic
        return collectives.ring_through_nodes_s(
            self.size,
            self.count(),
            self.cut.gpus,
            link.bytes_per_s,
            start_ups.hop_s(link),
            card.bytes_per_s,
            start_ups.hop_s(card),
        )

    # -- the picture -----------------------------------------------------------------------------------------
    def row(self, gpu, share=0.86):
        """(bottom, top) of a GPU's row; the nodes stand apart."""
        return self.placed(gpu + APART * (np.floor(gpu / self.cut.gpus) + 1), share)

    def placed(self, place, share=0.86):
        """The same of a place among the rows and the nodes' names over them."""
        return ring.row(place, self.count() + APART * self.cut.nodes, *UP, share)

    def chunk(self, first, many=1.0):
        """(left, right) of neighbouring chunks."""
        left, _ = ring.column(first, self.count(), *ACROSS)
        _, right = ring.column(first + many - 1, self.count(), *ACROSS)
        return left, right

    @part("cut", "play")
    def cells(self):
        shown = ranks_frames.cells_at(self.frames(), MOST, self.moment())
        left, right = self.chunk(CHUNK)
        bottom, top = self.row(GPU)
        there = shown.shares > 0
        sums = shown.shares * self.count()
        return {
            "gpu": GPU,
            "chunk": CHUNK,
            "value": shown.values,
            "sums": sums,
            "left": np.where(there, left, 0.0),
            "right": np.where(there, right, 0.0),
            "bottom": np.where(there, bottom, 0.0),
            "top": np.where(there, top, 0.0),
            "kind": np.where(shown.shares > 0.99, 2.0, np.where(sums > self.cut.gpus - 0.5, 1.0, 0.0)),
            "fill": np.where(there, ring.shade(shown.shares), 0.0),
            "line": np.where(there, 0.8, 0.0),
            "rim": np.where(there & shown.fresh, 1.0, 0.0),
            "width": np.where(there & shown.fresh, 2.5, 1.0),
        }

    @hint("cells")
    def of_a_cell(self):
        shown = ranks_frames.cells_at(self.frames(), MOST, self.moment())
        sums = shown.shares * self.count()
        return choose(
            shown.shares > 0,
            phrase(
                "GPU {gpu}, chunk {chunk}: {value}, {sum}{fresh}",
                gpu=show(GPU, "count"),
                chunk=show(CHUNK, "count"),
                value=show(shown.values, "count"),
                sum=choose(sums < 1.5, "its own", phrase("the sum over {n} GPUs", n=show(sums, "count"))),
                fresh=choose(shown.fresh, "; came with the last step", ""),
            ),
            "",
        )

    @part("cut", "play", shown=False)
    def numbers(self):
        shown = ranks_frames.cells_at(self.frames(), MOST, self.moment())
        there = (shown.shares > 0) & (self.count() <= NUMBERED)
        return {
            "x": fig.midpoint(*self.chunk(CHUNK))[WRITTEN],
            "y": fig.midpoint(*self.row(GPU))[WRITTEN],
            "text": choose(there[WRITTEN], show(shown.values[WRITTEN], "count"), ""),
        }

    @part("cut", "play", shown=False)
    def messages(self):
        found = ranks_frames.messages_at(self.frames(), MOST, self.moment())
        way = ranks_frames.way_at(self.ways(), MOST, self.moment())
        left, right = self.chunk(found.chunks, way.cells)
        made = ring.eased(ranks_frames.way_made(self.moment()))
        (low, high), (to_low, to_high) = self.row(way.sources, 0.6), self.row(GPUS, 0.6)
        seen = np.where(found.travels, 1.0, 0.0)
        return {
            "left": np.where(found.travels, left, 0.0),
            "right": np.where(found.travels, right, 0.0),
            "bottom": fig.between(low, to_low, made),
            "top": fig.between(high, to_high, made),
            "kind": 1.0 + way.leaves,
            "seen": seen,
            "tint": 0.45 * seen,
        }

    @part("cut", "play", "size", shown=False)
    def arrived(self):
        inside, outside = self.arrived_bytes()
        there = self.count() > GPUS
        bottom, top = self.row(GPUS, 0.5)
        most = np.maximum(self.inside_bytes(), self.card_bytes())
        return {
            "gpu": GPUS,
            "bottom": bottom,
            "top": top,
            "inside": fig.between(*BARS["inside"], inside / most),
            "outside": fig.between(*BARS["outside"], outside / most),
            "seen": np.where(there, 1.0, 0.0),
            "track": np.where(there, 0.2, 0.0),
        }

    @hint("arrived")
    def of_a_gpu(self):
        inside, outside = self.arrived_bytes()
        return choose(
            self.count() > GPUS,
            phrase(
                "To GPU {gpu} have come {inside} over NVLink and {outside} through its card",
                gpu=show(GPUS, "count"),
                inside=show(inside, "bytes"),
                outside=show(outside, "bytes"),
            ),
            "",
        )

    @part("cut", shown=False)
    def names(self):
        """The GPUs at the left of their rows, and the nodes over theirs."""
        there, node = self.count() > GPUS, np.floor(GPUS / self.cut.gpus)
        first = there & (node * self.cut.gpus == GPUS)
        return {
            "y": fig.midpoint(*self.row(GPUS)),
            "above": fig.midpoint(*self.placed(GPUS + APART * node - 0.05)),
            "gpu": choose(there, show(GPUS, "count"), ""),
            "node": choose(first, phrase("node {n}", n=show(node, "count")), ""),
            "head": choose(first & (GPUS < 1), "GPU", ""),
        }

    @part("cut", "play", "size", shown=False)
    def heads(self):
        """What the bars are, and what has come."""
        most = [show(np.max(found), "bytes") for found in self.arrived_bytes()]
        return {
            "x": [fig.midpoint(*bar) for bar in BARS.values()],
            "name": list(WIRES),
            "text": [f"{wire} {size}" for wire, size in zip(WIRES, most)],
        }

    @part("cut", "play", shown=False)
    def line(self):
        return {"text": f"{select(self.part_now(), PARTS)}, {self.step_text()}"}

    @part("cut", "play", shown=False)
    def progress(self):
        """The three parts on the bar below, and how far the run has come."""
        first = self.first_steps() / self.steps()
        return {
            "left": [np.zeros_like(first), first, 1 - first],
            "right": [first, 1 - first, np.ones_like(first)],
            "kind": np.array([1.0, 2.0, 1.0]),
            "now": np.broadcast_to(self.moment() / self.steps(), (3,)),
        }

    def step_text(self):
        return f"step {show(np.ceil(self.moment()), 'count')} of {show(self.steps(), 'count')}"

    def ends(self):
        return {"play": self.steps()}

    def figure(self, sources):
        p = fig.plot((-0.2, 1.86), (-0.1, 1.26), height=520)
        fig.bare(p)
        color = fig.COLOR
        hue = linear_cmap("kind", [color[token] for token in HUES], 0, 2)
        cells, messages, arrived = sources["cells"], sources["messages"], sources["arrived"]
        rim = {"line_color": fig.either("rim", "hbm", "ink"), "line_alpha": "line", "line_width": "width"}
        p.quad(**fig.BOX, source=cells, fill_color=hue, fill_alpha="fill", **rim)
        bare = {"line_color": None}
        p.quad(**fig.BOX, source=messages, fill_color=color["panel"], fill_alpha="seen", **bare)
        edge = {"line_color": hue, "line_alpha": "seen", "line_width": 2.5}
        p.quad(**fig.BOX, source=messages, fill_color=hue, fill_alpha="tint", **edge)
        for token, wire in (("link", "inside"), ("network", "outside")):
            left, right = BARS[wire]
            bar = {"left": left, "bottom": "bottom", "top": "top", "source": arrived, **bare}
            p.quad(right=right, fill_color=color["idle"], fill_alpha="track", **bar)
            p.quad(right=wire, fill_color=color[token], fill_alpha="seen", **bar)
        self.write(p, sources)
        progress = sources["progress"]
        p.hbar(left="left", right="right", source=progress, fill_color=hue, fill_alpha=0.3, **BAR)
        mark = {"line_color": color["ink"], "fill_color": color["ink"], "line_width": 3}
        p.scatter("now", BAR["y"], marker="dash", angle=np.pi / 2, size=26, source=progress, **mark)
        return p

    def write(self, p, sources):
        """The numbers, the names, and what is going on."""
        center = fig.TEXT | {"text_align": "center"}
        fig.only("wide", p.text("x", "y", text="text", source=sources["numbers"], **center))
        names, heads = sources["names"], sources["heads"]
        p.text(-0.04, "y", text="gpu", source=names, **fig.LABEL | {"text_align": "right"})
        p.text(-0.04, "above", text="head", source=names, **fig.LABEL | {"text_align": "right"})
        p.text(0, "above", text="node", source=names, **fig.BOLD)
        for width, words in (("wide", "text"), ("narrow", "name")):
            fig.only(
                width, p.text("x", 1.03, text=words, source=heads, **fig.BOLD | {"text_align": "center"})
            )
        p.text(-0.18, 1.12, text="text", source=sources["line"], **fig.BOLD)
        fig.key(p, LOOKS, 1.22, 1.24, phone_px=300)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Over a GPU's NVLink")
    def inside(self):
        return show(self.inside_bytes(), "bytes")

    @readout("Through its card")
    def card(self):
        return show(self.card_bytes(), "bytes")

    @readout("Steps")
    def hops(self):
        ring_takes = collectives.ring_steps(self.count(), self.count())
        return f"{show(self.steps(), 'count')}, a ring takes {show(ring_takes, 'count')}"

    @readout("Time inside the nodes", rest=True)
    def takes_inside(self):
        return show(self.inside_s(), "seconds")

    @readout("Time across them", rest=True)
    def takes_across(self):
        return show(self.across_s(), "seconds")

    @readout("One after the other", rest=True)
    def takes(self):
        return show(self.time_s(), "seconds")

    @readout("Rings through the nodes", rest=True, help="One for each card of a node, each with its share")
    def ring_takes(self):
        return show(self.ring_s(), "seconds")

    @regime(target=True)
    def inside_longer(self):
        return self.inside_s() > self.across_s(), (
            f"NVLink takes {show(self.inside_s(), 'seconds')}, the cards {show(self.across_s(), 'seconds')}. "
            f"The {show(self.cut.gpus, 'count')} cards of a node share what leaves it, and NVLink carries "
            f"{show(self.inside_bytes() / self.card_bytes(), 'times')} the bytes: the border of a node is no "
            "longer what limits the sum."
        )

    @regime()
    def latency(self):
        return self.start_share() > 0.5, (
            f"Start-ups are {show(self.start_share(), 'percent')} of {show(self.time_s(), 'seconds')}. Rings "
            f"through the nodes would take {show(self.ring_s(), 'seconds')}: they have more hops."
        )

    def summary(self):
        return (
            f"Over {show(self.cut.nodes, 'count')} nodes of {show(self.cut.gpus, 'count')}, each GPU sends "
            f"{show(self.inside_bytes(), 'bytes')} over NVLink and {show(self.card_bytes(), 'bytes')} "
            f"through its card to sum {show(self.size, 'bytes')}."
        )


TwoLevels.serve_as(__name__)
