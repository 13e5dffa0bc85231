"""A cluster with its wires, and what each parallel axis sends over them: one order of the axes is a
mistake."""

import numpy as np

from engine import catalog
from engine.catalog import hardware, models
from engine.mechanism import flops, placement
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.cluster import slots
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, phrase, select, share_of, show, show_in
from widgets.kit.widget import Widget, hint, once, part, readout, regime

NODES_PER_LEAF, MOST_NODES, MOST_GPUS, MOST_NICS = 4.0, 16, 256, 128
BATCH, SEQ = 512.0, 8192.0
ROWS = [axis.name for axis in placement.AXES]
AXIS_OPTIONS = {axis.key: (axis.name, float(at)) for at, axis in enumerate(placement.AXES)}
AXES = ["tensor", "expert", "data", "pipeline"]
ROW_Y = np.array([3.25, 2.2, 1.15, 0.1])
HUES = {"nowhere": "idle", "link": "link", "nic": "network", "spine": "network"}
PLACES = ["alone", "in the node", "across nodes", "across leaves"]
WALL = 1.0  # bars are measured in the step's arithmetic
VIEWS = [m * 10.0**e for e in range(5) for m in (1.25, 2.5, 4.0, 6.0, 10.0)]
MARGIN = 0.01  # of the frame's width, left of the bars
# bottom and top of what is drawn, from the switch inside a node to the spine
SWITCH, LINKS, GPUS, NICS, WIRES, LEAF, UPLINKS, SPINE = (
    (5.0, 5.3),
    (5.3, 6.4),
    (6.4, 6.8),
    (6.8, 7.05),
    (7.05, 8.35),
    (8.35, 8.65),
    (8.65, 9.75),
    (9.75, 10.05),
)
CLUSTER = ("nodes", "gpus_per_node")
LAYOUT = ("model", "tp", "ep", "pp", "innermost", *CLUSTER)
WIRES_ASKED = (*LAYOUT, "nics", "oversubscription", "machine")
EVERY = (*WIRES_ASKED, "mfu")


def powers(*values):
    """Options for a choice among powers of two."""
    return {str(n): (str(n), float(n)) for n in values}


class TopologyPlacement(Widget):
    question = "Which wires does each parallel axis use?"
    innermost = Choice(
        "Innermost axis",
        AXIS_OPTIONS,
        "tp",
        help="Its ranks are neighbours; the other axes keep the order tensor, expert, data, pipeline",
    )
    tp = Choice("Tensor ranks", powers(1, 2, 4, 8, 16, 32), "8")
    oversubscription = Number(
        "Oversubscription",
        1,
        1,
        8,
        family="times",
        stops=71,
        log=False,
        help="Bandwidth from the nodes to a leaf switch, over the leaf's bandwidth to the spine",
    )
    nodes = Choice("Nodes", powers(2, 4, 8, 16), "8", more=True)
    gpus_per_node = Choice("GPUs in a node", powers(4, 8, 16), "8", more=True)
    nics = Choice("NICs in a node", powers(1, 2, 4, 8), "8", more=True)
    pp = Choice("Pipeline stages", powers(1, 2, 4, 8), "2", more=True)
    ep = Choice("Expert ranks", powers(1, 2, 4, 8), "1", more=True)
    model = Choice(
        "Model",
        [catalog.model(key) for key in ("llama3-8b", "llama3-70b", "mixtral-8x22b")],
        "llama3-70b",
        more=True,
    )
    machine = Choice(
        "Node",
        [catalog.node(key) for key in ("dgx-a100", "dgx-h100", "dgx-b200")],
        "dgx-h100",
        more=True,
        help="Its GPU, link and NIC; their numbers are set separately",
    )
    mfu = Number(
        "MFU",
        0.4,
        0.2,
        0.6,
        family="percent",
        stops=41,
        log=False,
        more=True,
        help="The share of the peak at which the step's arithmetic runs",
    )
    follow = Choice("Group shown", AXIS_OPTIONS, "tp", more=True)
    dots = Dots()

    on_phone = "tp"
    presets = {
        "Tensor innermost": {},
        "16 tensor ranks, nodes of 16": {"tp": "16", "gpus_per_node": "16"},
        "No tensor parallelism": {"tp": "1", "follow": "dp"},
        "Leaves oversubscribed fourfold": {"oversubscription": 4, "follow": "pp"},
        "One NIC in a node": {"nics": "1"},
        "Mixtral 8x22B, experts in the node": {
            "model": "mixtral-8x22b",
            "tp": "1",
            "ep": "8",
            "innermost": "ep",
        },
    }
    break_it = "Move tensor parallelism across the node's edge."
    assumptions = (
        "One step of 512 sequences of 8,192 tokens, one sequence a micro-batch, without ZeRO, recomputation "
        "or sequence parallelism. A wire fills with the share of the step's arithmetic, at the MFU, for "
        "which its bytes keep it busy at its full one-way rate, averaged over the GPUs; red is what tensor "
        "parallelism sends out of the node. The bars are slower: collectives with start-up and measured "
        "efficiencies, each by its fastest algorithm, none hidden. Wired by node: each leaf switch serves "
        "all NICs of four nodes, not one rail of many. Expert ranks are taken out of the data ranks, and "
        "tensor ranks cut experts too. Ranks that do not fit are cut; memory is not asked."
    )
    formula = (
        r"$$V_{TP} = 4\,L\,m\,\frac{2(t-1)}{t}\,s\,h\,b, \qquad V_{DP} = "
        r"\frac{2(d-1)}{d}\,\frac{P\,b}{t\,p}$$"
        "\n\n"
        "bytes that a GPU of a dense model sends in a step: four AllReduces in each of its $L$ layers and "
        "for each of its $m$ micro-batches of $s$ tokens of width $h$ (Shoeybi et al., arXiv:1909.08053), "
        "against one AllReduce of its share of the $P$ gradients; $t$, $d$ and $p$ ranks, $b = 2$ bytes. A "
        "ring with $g$ ranks in each node sends $1/g$ of its bytes through the NICs."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def gpus(self):
        return placement.gpus(self.nodes, self.gpus_per_node)

    def sizes(self):
        return placement.fitted_sizes(self.gpus(), self.tp, self.ep, self.pp, self.model.experts)

    def fabric(self):
        return placement.LeafNetwork(
            self.nodes,
            self.gpus_per_node,
            self.nics,
            self.machine.nic.bytes_per_s,
            self.oversubscription,
            NODES_PER_LEAF,
        )

    def work(self):
        return placement.PlacedStep(self.model, BATCH, SEQ)

    def ways(self):
        fabric = placement.LeafNetwork(self.nodes, self.gpus_per_node, nodes_per_leaf=NODES_PER_LEAF)
        return placement.ways(self.sizes(), self.innermost, fabric)

    @once
    def sent(self):
        return placement.wire_bytes(self.work(), self.sizes(), self.innermost, self.fabric())

    @once
    def times_s(self):
        gpu, fabric = self.machine.gpu, self.fabric()
        return np.stack(placement.axis_times_s(self.work(), self.sizes(), self.innermost, gpu, fabric))

    @once
    def compute_s(self):
        work = flops.training_flops(models.active_parameters(self.model), self.work().tokens)
        return flops.run_time_s(work, self.gpus(), hardware.peak_with_fallback(self.machine.gpu), self.mfu)

    def ratios(self):
        return self.times_s() / self.compute_s()

    @once
    def busy(self):
        """The share of the step for which each wire is busy: with tensor parallelism, and with all else."""
        sent, fabric, gpu = self.sent(), self.fabric(), self.machine.gpu
        others = placement.total_bytes(placement.OfAxes(*sent[1:], placement.ByWire(0.0, 0.0, 0.0)))
        return (
            placement.busy_share(sent.tp, gpu, fabric, self.compute_s()),
            placement.busy_share(others, gpu, fabric, self.compute_s()),
        )

    def busy_words(self, wire):
        seconds = placement.busy_s(placement.total_bytes(self.sent()), self.machine.gpu, self.fabric())
        return f"at least {show_in(seconds[wire], 's', 2)}"

    def wires_in_words(self, sent):
        """What each GPU sends, for each of placement.WAYS."""
        link, nic, spine = (show(amount, "bytes") for amount in sent)
        out = f"{choose(sent.link > 0, f'{link} over NVLink, ', '')}{nic} through NICs"
        return [
            "alone, sends nothing",
            f"in the node: {link} over NVLink",
            out,
            f"{out}, {spine} of it over the spine",
        ]

    def is_across(self):
        return self.ways().tp >= 2

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*LAYOUT, "follow")
    def ranks(self):
        groups = placement.groups(np.arange(float(MOST_GPUS)), self.sizes(), self.innermost)
        first = fig.row_of(np.stack(groups), self.follow)
        return {
            **slots(self.nodes, self.gpus_per_node, MOST_GPUS).narrowed(0.84).sides(),
            "member": np.where(first == 0, 1.0, 0.0),
        }

    @hint("ranks")
    def of_a_gpu(self):
        """Where each GPU stands on every axis, and in which node."""
        gpu = np.arange(float(MOST_GPUS))
        tensor, expert, data, stage = (
            show(at, "count") for at in placement.coordinates(gpu, self.sizes(), self.innermost)
        )
        return phrase(
            "GPU {gpu} in node {node}: tensor rank {tensor}, expert rank {expert}, data rank {data}, "
            "pipeline stage {stage}",
            gpu=show(gpu, "count"),
            node=show(np.floor(gpu / self.gpus_per_node), "count"),
            tensor=tensor,
            expert=expert,
            data=data,
            stage=stage,
        )

    @part("nodes")
    def boxes(self):
        return slots(self.nodes, 1.0, MOST_NODES, margin=0.03).sides()

    @part("nodes")
    def leaves(self):
        leaves = placement.leaves(self.nodes, NODES_PER_LEAF)
        return slots(leaves, 1.0, 4, margin=0.03).sides()

    @part("nodes", "nics")
    def cards(self):
        return slots(self.nodes, self.nics, MOST_NICS).narrowed(0.6).sides()

    @part(*EVERY)
    def links(self):
        tensor, others = self.busy()
        return slots(self.nodes, self.gpus_per_node, MOST_GPUS).narrowed(0.6).filled(tensor.link, others.link)

    @part(*EVERY)
    def wires(self):
        tensor, others = self.busy()
        return slots(self.nodes, self.nics, MOST_NICS).narrowed(0.6).filled(tensor.nic, others.nic)

    def of_wires(self, wire, named, of):
        """How busy wires of a kind are, each with its number: they fill alike."""
        tensor, others = (share[wire] for share in self.busy())
        words = choose(
            tensor + others > 0,
            f"busy for {show(tensor + others, 'percent')} of the arithmetic's time, "
            f"{show(tensor, 'percent')} for tensor parallelism",
            "nothing is sent over it",
        )
        return [f"{named} {number}: {words}" for number in range(of)]

    @hint("links")
    def of_a_link(self):
        return self.of_wires(0, "NVLink of GPU", MOST_GPUS)

    @hint("node_links")
    def of_a_nodes_links(self):
        return self.of_wires(0, "NVLinks of node", MOST_NODES)

    @hint("wires")
    def of_a_card(self):
        return self.of_wires(1, "NIC", MOST_NICS)

    @hint("node_wires")
    def of_a_nodes_cards(self):
        return self.of_wires(1, "NICs of node", MOST_NODES)

    @hint("uplinks")
    def of_an_uplink(self):
        return self.of_wires(2, "Uplinks of leaf switch", 4)

    @part(*EVERY)
    def node_links(self):
        """All of a node's as one, for a phone: they fill alike."""
        tensor, others = self.busy()
        return slots(self.nodes, 1.0, MOST_NODES).narrowed(0.8).filled(tensor.link, others.link)

    @part(*EVERY)
    def node_wires(self):
        tensor, others = self.busy()
        return slots(self.nodes, 1.0, MOST_NODES).narrowed(0.8).filled(tensor.nic, others.nic)

    @part(*EVERY)
    def uplinks(self):
        tensor, others = self.busy()
        leaves = slots(placement.leaves(self.nodes, NODES_PER_LEAF), 1.0, 4)
        wide = leaves.narrowed(1.0 / self.oversubscription)
        return wide.filled(tensor.spine, others.spine)

    @part("model", "machine", *CLUSTER, shown=False)
    def job(self):
        """What is trained, on what."""
        count, gpu = show(self.gpus(), "count"), self.machine.gpu.name
        batch = f"{show(BATCH, 'count')} sequences of {show(SEQ, 'count')} tokens"
        return {
            "wide": f"One step of {self.model.name} on {count} {gpu}: {batch}",
            "narrow": f"{self.model.name} on {count} {gpu}",
        }

    @part(*WIRES_ASKED, "follow")
    def names(self):
        group = select(self.follow, ["tensor", "expert", "data", "pipeline"])
        return {
            "y": [fig.midpoint(*level) for level in (SPINE, UPLINKS, LEAF, WIRES, GPUS, LINKS, SWITCH)],
            "name": [
                "Spine",
                f"uplinks, {self.busy_words(2)}",
                "Leaf switches",
                f"NICs, {self.busy_words(1)}",
                f"filled: one {group} group",
                f"NVLinks, {self.busy_words(0)}",
                "NVSwitch",
            ],
            "short": ["Spine", "", "Leaves", "NICs", "GPUs", "NVLink", "NVSwitch"],
        }

    def dots_named(self):
        return TopologyPlacement.timed.measured_by.named(self, "; ○ measured")

    @part(*EVERY, "dots")
    def bars(self):
        sizes, ways, sent, times = self.sizes(), self.ways(), self.sent(), self.times_s()
        end = self.ratios()
        across = np.stack([np.where(self.is_across(), 1.0, 0.0), 0.0, 0.0, 0.0])
        within = np.where(across > 0, 0.0, end)
        places = [select(way, PLACES) for way in ways]
        wires = [select(way, self.wires_in_words(found)) for way, found in zip(ways, sent)]
        return {
            "y": ROW_Y,
            "kind": [select(way, placement.WAYS) for way in ways],
            "seconds": times,
            "within": within,
            "end": end,
            "red": np.where(end > within, 1.0, 0.0),
            "name": [f"{row} {show(size, 'count')}" for row, size in zip(ROWS, sizes)],
            "wires": [f"{wires[0]}{self.dots_named()}", *wires[1:]],
            "place": places,
            "label": [show_in(times[i], "s") for i in range(4)],
            **fig.value_places(end, WALL, 0.18 * self.view()),
        }

    @hint("bars")
    def of_an_axis(self):
        ratios, sizes = self.ratios(), self.sizes()
        each = [share_of(ratios[i]) for i in range(4)]
        return [
            choose(
                sizes[i] > 1,
                f"{ROWS[i]}, {show(sizes[i], 'count')} ranks: communicates for {each[i]} the "
                "arithmetic's time",
                "",
            )
            for i in range(4)
        ]

    @measured("tensor_all_reduces", "model", "tp", "ep", "pp", "innermost", *CLUSTER, "machine", "mfu")
    def timed(self, of):
        """The tensor ranks' AllReduces of a step, each as long as it was measured in a node."""
        sent = placement.messages(self.work(), self.sizes())
        fits = of.of(gpu=self.machine.gpu, ranks=self.sizes().tp, bytes=sent.tensor_bytes)
        spent_s = [sent.tensor_calls * each_s for each_s in (of.measured, of.ours)]
        ends = [each / self.compute_s() for each in spent_s]
        row = np.full(len(of.all), ROW_Y[0])
        alone = ~self.is_across() & (sent.tensor_expert_calls <= 0)  # nothing else is in the bar
        return Seen(fits & alone, ends[0], row, ends[1], row)

    def view(self):
        """The bars' axis, in steps of arithmetic."""
        return fig.fitting_view(np.maximum(np.max(self.ratios()), 1.0), VIEWS, 1.2)

    @part(*EVERY)
    def wall(self):
        spent, sent = show_in(self.compute_s(), "s"), show_in(np.sum(self.times_s()), "s")
        return {
            "x": WALL,
            "align": fig.inward(WALL, 0.0, self.view(), 0.25),
            "label": f"arithmetic of the step, {spent}; on wires {sent}",
            "narrow": f"arithmetic of the step, {spent}",
        }

    def ranges(self):
        return {"x": [-MARGIN * self.view(), self.view()]}

    @staticmethod
    def tubes(p, source, span, inside, place):
        """Wires that fill from the left: with what tensor parallelism sends, red out of the node, then the
        others. Those that carry anything have their hue as outline, for a share may be a hairline."""
        color, across = fig.COLOR, {"bottom": span[0], "top": span[1], "source": source, **place}
        own = color["link" if inside else "network"]
        solid = {"fill_color": own, "line_color": None}
        outline = {"left": "left", "right": "end", "fill_color": None, "line_color": own, "line_width": 1}
        bare = {"fill_color": color["panel"], "line_color": color["axis"], "line_alpha": 0.5}
        over = {"line_width": 0.8, "line_alpha": "first"}
        return [
            p.quad(left="left", right="end", **across, **bare),
            *(p.quad(**outline, **across, line_alpha=carries) for carries in ("first", "second")),
            p.quad(left="left", right="middle", **across, **solid if inside else fig.OVER | over),
            p.quad(left="middle", right="right", **across, **solid),
        ]

    def figure(self, sources):
        p = fig.plot((-MARGIN * VIEWS[0], VIEWS[0]), (-0.45, 10.85), height=645)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.grid.visible = False
        self.draw_cluster(p, sources)
        color, bars, wall = fig.COLOR, sources["bars"], sources["wall"]
        hue = fig.hues("kind", HUES)
        bar = {"y": "y", "height": 0.36, "source": bars}
        p.hbar(left=0, right="within", **bar, fill_color=hue, line_color=None)
        p.hbar(left="within", right="end", **bar, **fig.OVER | {"line_alpha": "red"})
        line = {"line_color": color["compute"], "line_width": 3}
        p.segment("x", ROW_Y[-1] - 0.3, "x", ROW_Y[0] + 0.62, source=wall, **line)
        for row in ROW_Y[1:]:  # the lines of text between the bars stay free
            free = {"left": 0, "right": 1e9, "bottom": row + 0.2, "top": row + 0.78}
            p.quad(**free, fill_color=color["panel"], line_color=None)
        name = fig.BOLD | {"text_color": color["compute"], "text_align": "align"}
        for width, label in (("wide", "label"), ("narrow", "narrow")):
            fig.only(width, p.text("x", 4.22, text=label, source=wall, **name))
        fig.measured(p, sources["timed"])
        p.text(0, "y", text="name", source=bars, y_offset=-21, **fig.BOLD)
        fig.values(p, bars, "label", **fig.BOLD)
        for width, column in (("wide", "wires"), ("narrow", "place")):
            aside = {"x_offset": 88, "y_offset": -21}
            fig.only(width, p.text(0, "y", text=column, source=bars, **aside, **fig.LABEL))
        return p

    def draw_cluster(self, p, sources):
        """Nodes, their GPUs and their wires, on a horizontal scale of their own."""
        color, place = fig.COLOR, fig.across(p, "cluster", -0.012, 1.3)
        switch = {"fill_color": color["idle"], "fill_alpha": 0.16, "line_color": color["axis"], **place}
        sides = {"left": "left", "right": "right"}
        ground = {"fill_color": color["ink"], "fill_alpha": 0.03, "line_color": color["line"], **place}
        node = {"bottom": SWITCH[0] - 0.1, "top": NICS[1] + 0.08}
        p.quad(**sides, **node, source=sources["boxes"], **ground)
        p.quad(left=0, right=1, bottom=SPINE[0], top=SPINE[1], **switch)
        for name, (low, high) in (("boxes", SWITCH), ("leaves", LEAF), ("cards", NICS)):
            p.quad(**sides, bottom=low, top=high, source=sources[name], **switch)
        for name, span in (
            ("links", LINKS),
            ("wires", WIRES),
            ("uplinks", UPLINKS),
            ("node_links", LINKS),
            ("node_wires", WIRES),
        ):
            tubes = self.tubes(p, sources[name], span, "links" in name.split("_"), place)
            if name != "uplinks":
                fig.only("narrow" if "node" in name else "wide", *tubes)
        ranks = {**sides, "bottom": GPUS[0], "top": GPUS[1], "source": sources["ranks"], **place}
        p.quad(**ranks, fill_color=color["panel"], line_color=None)
        p.quad(**ranks, fill_color=color["ink"], fill_alpha="member", line_color=color["axis"])
        for width, column in (("wide", "name"), ("narrow", "short")):
            fig.only(width, p.text(1.015, "y", text=column, source=sources["names"], **fig.LABEL, **place))
        for width in ("wide", "narrow"):
            fig.only(width, p.text(0, 10.55, text=width, source=sources["job"], **fig.BOLD, **place))

    # -- the words -------------------------------------------------------------------------------------------
    @readout("All axes, nothing hidden")
    def together(self):
        return show_in(np.sum(self.times_s()), "s"), np.sum(self.ratios()) > 1

    @readout("Through NICs, each GPU")
    def through_nics(self):
        return show(placement.total_bytes(self.sent()).nic, "bytes")

    @readout("Copies of each expert", rest=True)
    def copies(self):
        copies = show(placement.levels(self.sizes()).copies, "count")
        return choose(self.model.experts > 0, copies, "–")

    @regime(target=True)
    def tensor_across(self):
        return self.is_across(), (
            "Tensor parallelism crosses the node's edge: its AllReduces take "
            f"{show_in(self.times_s()[0], 's')} of a step that computes for "
            f"{show_in(self.compute_s(), 's')}, and every layer waits for them. First response: make it "
            f"innermost, and no larger than a node's {show(self.gpus_per_node, 'count')} GPUs (lesson 06)."
        )

    @regime()
    def spine_narrow(self):
        busy = placement.busy_s(placement.total_bytes(self.sent()), self.machine.gpu, self.fabric())
        return busy.spine > busy.nic, (
            f"The spine is the narrow place: its wires are busy for {show_in(busy.spine, 's')}, the NICs for "
            f"{show_in(busy.nic, 's')}. First response: keep under one leaf what talks most, and let the "
            "pipeline cross."
        )

    @regime()
    def all_exposed(self):
        total = np.sum(self.ratios())
        return total > 1, (
            f"Communication outweighs arithmetic: {show_in(np.sum(self.times_s()), 's')} against "
            f"{show_in(self.compute_s(), 's')}, {show(total, 'times')}, if nothing hides it. First response: "
            "fewer tensor ranks, or the order of the axes that keeps the longest bar in the node."
        )

    def summary(self):
        torn = choose(self.ways().tp > 1, ", since tensor groups leave the node", "")
        return (
            f"With the {select(self.innermost, AXES)} axis innermost, a step computes for "
            f"{show_in(self.compute_s(), 's')} and communicates for "
            f"{show_in(np.sum(self.times_s()), 's')}{torn}."
        )


TopologyPlacement.serve_as(__name__)
