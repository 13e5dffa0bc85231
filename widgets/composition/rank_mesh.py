"""Every GPU in its node, and for one of them its peers on each parallel axis: what the order of the axes
decides."""

import numpy as np

from engine.mechanism import mesh
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.cluster import OUT_OF_SIGHT, grid
from widgets.kit.text import choose, counted, phrase, select, show
from widgets.kit.widget import Widget, hint, part, readout, regime

MOST_GPUS, MOST_NODES = 512, 128
RANKS = np.arange(float(MOST_GPUS))
ROWS = np.array([-0.1, -0.185, -0.27, -0.355, -0.44])
LIT = 0.55  # how strongly a peer is coloured: its letter stays readable in both themes
LETTERS = ["", "", "T", "C", "E", "D", "P"]
AXES = {axis: (name, float(place)) for place, (axis, name) in enumerate(zip(mesh.ByAxis._fields, mesh.NAMES))}
HUES = {"alone": "idle", "link": "link", "network": "network", "over": "over"}
LAYOUT = ("tp", "pp", "order", "cp", "ep", "folded", "gpus")
PLACE = (*LAYOUT, "per_node")
WIDE = "it is larger than a node"


def powers(*values):
    """Options for a choice among powers of two."""
    return {str(n): (str(n), float(n)) for n in values}


class RankMesh(Widget):
    question = "Which GPUs talk to which, and over which wire?"
    tp = Choice("Tensor ranks", powers(1, 2, 4, 8, 16, 32), "8")
    order = Choice("Order, innermost first", list(mesh.ORDERS), mesh.USUAL.key)
    rank = Number(
        "Rank shown", 0, 0, MOST_GPUS - 1, stops=MOST_GPUS, log=False, whole=True, help="Or click a GPU"
    )
    pp = Choice("Pipeline stages", powers(1, 2, 4, 8, 16, 32), "4", more=True)
    cp = Choice("Context ranks", powers(1, 2, 4, 8, 16), "1", more=True)
    ep = Choice(
        "Expert ranks",
        powers(1, 2, 4, 8, 16, 32, 64),
        "1",
        more=True,
        help="Neighbouring data ranks, which also hold different experts",
    )
    folded = Switch("Fold the experts' ranks", more=True)
    gpus = Choice("GPUs", powers(64, 128, 256, 512), "512", more=True)
    per_node = Choice("GPUs in a node", powers(4, 8, 16, 32, 64), "8", more=True)
    shade = Choice("Shaded by place on", AXES, "pp", more=True)

    tap = {"cells": "rank"}
    presets = {
        "70B on 512: TP 8 × PP 4 × DP 16": {},
        "TP 16, nodes of 64": {"tp": "16", "per_node": "64"},
        "Long context: TP 8 × CP 8": {"cp": "8", "pp": "1"},
        "Experts: EP 8 in the node": {"tp": "1", "ep": "8", "shade": "ep"},
        "TP 8 and EP 8, side by side": {"ep": "8", "pp": "1"},
        "TP 8 and EP 8, folded": {"ep": "8", "pp": "1", "folded": "on"},
    }
    break_it = "Put a tensor-parallel group on more than one node: a degree can do it, and so can an order."
    assumptions = (
        "Ranks are numbered node by node, as launchers do. Data parallelism takes the GPUs that the other "
        "axes leave; wishes that do not fit are cut. Expert ranks are neighbours among the data ranks, or, "
        "folded, among all ranks of their stage, whatever attention makes of them. "
        "Letters mark the chosen rank's peers: T tensor, C context, E expert, D data, P pipeline; their "
        "colour is the wire between them and it, NVLink in the node, the network across, red where tensor "
        "parallelism leaves its node. Equal shading: equal place on an axis."
    )
    formula = (
        r"$$c_a = \left\lfloor \frac{r}{s_a} \right\rfloor \bmod n_a, \qquad s_a = "
        r"\prod_{b\ \text{inside}\ a} n_b$$"
        "\n\nThe coordinate of rank $r$ on axis $a$, whose size is $n_a$: its stride $s_a$ is the product of "
        "the sizes further in. Two ranks are peers on an axis if they differ in that coordinate alone. A "
        "group stays in a node "
        r"of $g$ GPUs if $n_a s_a \le g$."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def sizes(self):
        return mesh.sizes(self.gpus, self.tp, self.pp, self.cp, self.ep, self.folded)

    def picked(self):
        """The chosen rank, or the last there is."""
        return np.minimum(self.rank, self.gpus - 1.0)

    def nodes(self):
        return mesh.nodes(self.sizes(), self.order, self.per_node, self.folded)

    def is_across(self):
        return self.nodes().tp > 1

    def relation(self):
        return mesh.relation(RANKS, self.picked(), self.sizes(), self.order, self.folded)

    def torn_peers(self):
        """The tensor peers, where their group left its node."""
        peers = mesh.peers(RANKS, self.picked(), self.sizes(), self.order).tp
        return peers & (self.picked() != RANKS) & self.is_across()

    def way(self, size, nodes):
        """0 for an axis of one rank, 1 for one inside a node, 2 across nodes."""
        return np.where(size > 1, np.where(nodes > 1, 2, 1), 0)

    # -- the picture -----------------------------------------------------------------------------------------
    @part("gpus", "per_node", shown=False)
    def boxes(self):
        nodes = mesh.node(self.gpus, self.per_node)
        return grid(nodes, 1.0, MOST_NODES, MOST_GPUS, self.per_node, margin=0.05).sides()

    @part(*PLACE, "shade")
    def cells(self):
        sizes = self.sizes()
        at = np.stack(mesh.coordinates(RANKS, sizes, self.order, self.folded))
        return {
            **grid(self.gpus, self.per_node, MOST_GPUS, MOST_GPUS, self.per_node).sides(),
            "rank": RANKS,
            **dict(zip(sizes._fields, at)),
            "tone": fig.tone(fig.row_of(at, self.shade), fig.row_of(np.stack(sizes), self.shade)),
        }

    @part(*PLACE, "rank")
    def lit(self):
        relation, cells = self.relation(), grid(self.gpus, self.per_node, MOST_GPUS, MOST_GPUS, self.per_node)
        near = mesh.node(RANKS, self.per_node) == mesh.node(self.picked(), self.per_node)
        peer = (relation > 1) & ~self.torn_peers()
        return {
            **cells.sides(),
            "itself": np.where(relation == 1, 1.0, 0.0),
            "link": np.where(peer & near, LIT, 0.0),
            "network": np.where(peer & ~near, LIT, 0.0),
            "letter": select(relation, LETTERS),
        }

    @part(*PLACE, "rank", shown=False)
    def torn_apart(self):
        """The tensor peers in other nodes, framed in red."""
        torn = self.torn_peers()
        sides = grid(self.gpus, self.per_node, MOST_GPUS, MOST_GPUS, self.per_node).sides()
        return {
            name: np.where(torn, sides[name], OUT_OF_SIGHT) for name in ("left", "right", "bottom", "top")
        }

    @hint("cells")
    def said(self):
        at = self.cells()
        here = {name: show(at[name], "count") for name in ("rank", "tp", "cp", "dp", "pp")}
        return phrase(
            "rank {rank}, node {node}\ntp {tp} · cp {cp} · dp {dp} · pp {pp}\n{relation}",
            node=show(mesh.node(RANKS, self.per_node), "count"),
            **here,
            relation=select(
                self.relation(),
                ["not a peer", "the rank shown", *(f"its {name} peer" for name in mesh.NAMES)],
            ),
        )

    @part(*PLACE)
    def axes(self):
        sizes, nodes, strides = self.sizes(), self.nodes(), mesh.strides(self.sizes(), self.order)
        strides = strides._replace(
            ep=np.where(self.folded, mesh.folded_stride(sizes, self.order), strides.ep)
        )
        ways = [self.way(size, over) for size, over in zip(sizes, nodes)]
        wires = [select(way, ["alone", "link", "network"]) for way in ways]
        wires[0] = choose(self.is_across(), "over", wires[0])
        return {
            "y": ROWS,
            "size": np.stack(sizes),
            "nodes": np.stack(nodes),
            "stride": np.stack(strides),
            "wire": wires,
            "letter": LETTERS[2:],
            "name": [f"{name} {show(size, 'count')}" for name, size in zip(mesh.NAMES, sizes)],
            "where": [
                select(
                    way,
                    [
                        "alone, sends nothing",
                        f"in one node, {self.apart(stride)}",
                        f"across {show(over, 'count')} nodes, {self.apart(stride)}",
                    ],
                )
                for way, over, stride in zip(ways, nodes, strides)
            ],
            "short": [
                select(way, ["alone", "in one node", f"across {show(over, 'count')} nodes"])
                for way, over in zip(ways, nodes)
            ],
        }

    @staticmethod
    def apart(stride):
        """Neighbours, or every so-manieth GPU; of the powers of two only 2 and 32 have endings of their
        own."""
        ending = choose(stride == 2, "nd", choose(stride == 32, "nd", "th"))
        return choose(stride > 1, f"every {show(stride, 'count')}{ending} GPU", "side by side")

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, 1), (-0.5, 1.005), height=510)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.grid.grid_line_color = None
        p.quad(
            **fig.BOX,
            source=sources["boxes"],
            fill_color=color["ink"],
            fill_alpha=0.03,
            line_color=color["line"],
        )
        p.quad(
            **fig.BOX,
            source=sources["cells"],
            fill_color=color["ink"],
            fill_alpha="tone",
            line_color=color["axis"],
            line_alpha=0.35,
            line_width=0.8,
        )
        lit = sources["lit"]
        for name in ("link", "network"):
            p.quad(
                **fig.BOX,
                source=lit,
                fill_color=color[name],
                fill_alpha=name,
                line_color=color[name],
                line_alpha=name,
            )
        p.quad(
            **fig.BOX, source=sources["torn_apart"], fill_color=None, line_color=color["over"], line_width=2.5
        )
        p.quad(**fig.BOX, source=lit, fill_color=color["ink"], fill_alpha="itself", line_color=None)
        p.text("x", "y", text="letter", text_align="center", source=lit, **fig.BOLD)
        axes = sources["axes"]
        hue = fig.hues("wire", HUES)
        p.scatter(
            0.028, "y", marker="square", size=20, source=axes, fill_color=hue, fill_alpha=0.75, line_color=hue
        )
        p.text(0.028, "y", text="letter", text_align="center", source=axes, **fig.BOLD)
        fig.only(
            "wide",
            p.text(0.05, "y", text="name", source=axes, **fig.BOLD),
            p.text(0.17, "y", text="where", source=axes, **fig.LABEL),
        )
        fig.only(
            "narrow",
            p.text(0.075, "y", text="name", source=axes, **fig.BOLD),
            p.text(0.4, "y", text="short", source=axes, **fig.LABEL),
        )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Data ranks", rest=True)
    def data_ranks(self):
        return show(self.sizes().dp, "count")

    @readout("Nodes", rest=True)
    def how_many_nodes(self):
        return show(mesh.node(self.gpus, self.per_node), "count")

    @readout("A tensor group is on")
    def tensor_nodes(self):
        nodes = self.nodes().tp
        return f"{show(nodes, 'count')}{choose(nodes > 1, ' nodes', ' node')}", nodes > 1

    @readout("Peers of the rank shown")
    def peers(self):
        return show(np.sum(np.where(self.relation() > 1, 1.0, 0.0)), "count")

    def place(self):
        at = mesh.coordinates(self.picked(), self.sizes(), self.order)
        return (
            f"{show(self.picked(), 'count')}: tp {show(at.tp, 'count')}, cp {show(at.cp, 'count')}, "
            f"dp {show(at.dp, 'count')}, pp {show(at.pp, 'count')}"
        )

    @readout("The rank shown")
    def coordinates(self):
        return self.place()

    @regime(target=True)
    def torn(self):
        nodes, stride = self.nodes().tp, mesh.strides(self.sizes(), self.order).tp
        return self.is_across(), (
            f"Tensor parallelism left its node: each group of {show(self.sizes().tp, 'count')} is on "
            f"{show(nodes, 'count')} nodes, because "
            f"{choose(stride > 1, 'another axis is further in', WIDE)}, and four collectives a layer wait "
            "for the network. First response: tensor innermost and no larger than a node (lessons 03 and 06)."
        )

    @regime()
    def context_across(self):
        sizes, nodes = self.sizes(), self.nodes()
        return (sizes.cp > 1) & (nodes.cp > 1), (
            "Context parallelism crosses nodes: its ring passes keys and values over the network between "
            f"{show(nodes.cp, 'count')} of them. That is fine while attention over a block lasts longer than "
            "its transfer (lesson 08)."
        )

    @regime()
    def experts_across(self):
        sizes, nodes = self.sizes(), self.nodes()
        return (sizes.ep > 1) & (nodes.ep > 1), (
            "Expert parallelism crosses nodes: every layer's AllToAll goes over the network between "
            f"{show(nodes.ep, 'count')} of them. First response: fewer expert ranks, or tokens limited to a "
            "few nodes (lesson 09)."
        )

    def summary(self):
        sizes, nodes = self.sizes(), self.nodes()
        tensor = choose(sizes.tp > 1, f"tensor {self.told(sizes.tp, nodes.tp)}, ", "")
        context = choose(sizes.cp > 1, f"context {self.told(sizes.cp, nodes.cp)}, ", "")
        stages = choose(sizes.pp > 1, f"pipeline {self.told(sizes.pp, nodes.pp)}, ", "")
        experts = choose(sizes.ep > 1, f", experts {self.told(sizes.ep, nodes.ep)}", "")
        return (
            f"Peers of rank {show(self.picked(), 'count')} of {counted(self.gpus, 'GPU', 'GPUs')}: "
            f"{tensor}{context}{stages}data {self.told(sizes.dp, nodes.dp)}{experts}."
        )

    def told(self, size, nodes):
        """How many peers a rank has on an axis, and where."""
        peers, far = show(size - 1, "count"), show(size - size / nodes, "count")
        elsewhere = choose(size > nodes, f"{peers} ({far} elsewhere)", f"{peers} elsewhere")
        return select(self.way(size, nodes), ["none", f"{peers} in its node", elsewhere])


RankMesh.serve_as(__name__)
