"""A cluster with its wires, and what each parallel axis sends over them: one order of the axes is a mistake."""

import numpy as np

from engine import catalog, flops, hardware, models, placement
from widgets.kit import figure as fig
from widgets.kit.cluster import slots
from widgets.kit.controls import Choice, Number
from widgets.kit.symbolic import lookup
from widgets.kit.text import choose, select, show, show_in
from widgets.kit.widget import Widget, part, readout, regime

NODES_PER_LEAF, MOST_NODES, MOST_GPUS, MOST_NICS = 4.0, 16, 256, 128
BATCH, SEQ = 512.0, 8192.0
ROWS = [axis.name for axis in placement.AXES]
AXIS_OPTIONS = {axis.key: (axis.name, float(axis.index)) for axis in placement.AXES}
AXES = ["tensor", "expert", "data", "pipeline"]
ROW_Y = np.array([3.25, 2.2, 1.15, 0.1])
HUES = {"nowhere": "idle", "link": "link", "nic": "network", "spine": "network"}
PLACES = ["alone", "in the node", "across nodes", "across leaves"]
WALL = 0.5                          # where on the picture's width a bar is as long as the step's arithmetic
BEYOND = (10.0, 100.0)              # times the arithmetic, marked on the logarithmic part behind it
# bottom and top of what is drawn, from the switch inside a node to the spine
SWITCH, LINKS, GPUS, NICS, WIRES, LEAF, UPLINKS, SPINE = (
    (5.0, 5.3), (5.3, 6.4), (6.4, 6.8), (6.8, 7.05), (7.05, 8.35), (8.35, 8.65), (8.65, 9.75), (9.75, 10.05))
CLUSTER = ("nodes", "gpus_per_node")
LAYOUT = ("model", "tp", "ep", "pp", "innermost", *CLUSTER)
WIRES_ASKED = (*LAYOUT, "nics", "oversubscription", "machine")
EVERY = (*WIRES_ASKED, "mfu")


def powers(*values):
    """Options for a choice among powers of two."""
    return {str(n): (str(n), float(n)) for n in values}


class TopologyPlacement(Widget):
    question = "Which wires does each parallel axis use?"
    innermost = Choice("Innermost axis", AXIS_OPTIONS, "tp",
                       help="Its ranks are neighbours; the other axes keep the order tensor, expert, data, pipeline")
    tp = Choice("Tensor ranks", powers(1, 2, 4, 8, 16, 32), "8")
    oversubscription = Number("Oversubscription", 1, 1, 8, family="times", stops=71, log=False,
                              help="What the nodes can send to a leaf switch, over what the leaf can send to the spine")
    nodes = Choice("Nodes", powers(2, 4, 8, 16), "8", more=True)
    gpus_per_node = Choice("GPUs in a node", powers(4, 8, 16), "8", more=True)
    nics = Choice("NICs in a node", powers(1, 2, 4, 8), "8", more=True)
    pp = Choice("Pipeline stages", powers(1, 2, 4, 8), "2", more=True)
    ep = Choice("Expert ranks", powers(1, 2, 4, 8), "1", more=True)
    model = Choice("Model", [catalog.model(key) for key in ("llama3-8b", "llama3-70b", "mixtral-8x22b")], "llama3-70b",
                   more=True)
    machine = Choice("Node", [catalog.node(key) for key in ("dgx-a100", "dgx-h100", "dgx-b200")], "dgx-h100", more=True,
                     help="Its GPU, link and NIC; how many of each is set apart")
    mfu = Number("MFU", 0.4, 0.2, 0.6, family="percent", stops=41, log=False, more=True,
                 help="The share of the peak at which the step's arithmetic runs")
    follow = Choice("Group shown", AXIS_OPTIONS, "tp", more=True)

    presets = {"Tensor innermost": {}, "Data innermost": {"innermost": "dp"}, "Pipeline innermost": {"innermost": "pp"},
               "16 tensor ranks, nodes of 8": {"tp": "16"}, "One NIC in a node": {"nics": "1"},
               "Mixtral 8x22B, experts in the node": {"model": "mixtral-8x22b", "tp": "1", "ep": "8",
                                                      "innermost": "ep"}}
    break_it = "Move tensor parallelism across the node's edge."
    assumptions = (
        "One step of 512 sequences of 8,192 tokens, one sequence a micro-batch, without ZeRO, recomputation or "
        "sequence parallelism. A wire fills with the share of the step's arithmetic, at the MFU, for which its bytes "
        "keep it busy at its full one-way rate, averaged over the GPUs; red is what tensor parallelism sends out of "
        "the node. The bars are slower: collectives with start-up and measured efficiencies, each by its fastest "
        "algorithm, none hidden. They are linear up to the arithmetic and logarithmic beyond. Wired by node: each leaf "
        "switch serves all NICs of four nodes, not one rail of many. Ranks that do not fit are cut; memory is not asked.")
    formula = (
        r"$$V_{TP} = 4\,l\,m\,\frac{2(t-1)}{t}\,s\,h\,b, \qquad V_{DP} = \frac{2(d-1)}{d}\,\frac{P\,b}{t\,p}$$" "\n\n"
        "bytes that a GPU of a dense model sends in a step: four AllReduces in each of its $l$ layers and for each of "
        "its $m$ micro-batches of $s$ tokens of width $h$ (Shoeybi et al., arXiv:1909.08053), against one AllReduce of "
        "its share of the $P$ gradients; $t$, $d$ and $p$ ranks, $b = 2$ bytes. A ring with $g$ ranks in each node "
        "sends $1/g$ of its bytes through the NICs.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def gpus(self):
        return placement.gpus(self.nodes, self.gpus_per_node)

    def sizes(self):
        return placement.fitted_sizes(self.gpus(), self.tp, self.ep, self.pp, self.model.experts)

    def fabric(self):
        return placement.Fabric(self.nodes, self.gpus_per_node, self.nics, self.machine.nic.bytes_per_s,
                                self.oversubscription, NODES_PER_LEAF)

    def work(self):
        return placement.Work(self.model, BATCH, SEQ)

    def ways(self):
        fabric = placement.Fabric(self.nodes, self.gpus_per_node, nodes_per_leaf=NODES_PER_LEAF)
        return placement.ways(self.sizes(), self.innermost, fabric)

    def sent(self):
        return placement.wire_bytes(self.work(), self.sizes(), self.innermost, self.fabric())

    def times_s(self):
        gpu, fabric = self.machine.gpu, self.fabric()
        return np.stack(placement.axis_times_s(self.work(), self.sizes(), self.innermost, gpu, fabric))

    def compute_s(self):
        work = flops.training_flops(models.active_parameters(self.model), self.work().tokens)
        return flops.run_time_s(work, self.gpus(), hardware.peak_with_fallback(self.machine.gpu), self.mfu)

    def ratios(self):
        return placement.against_compute(self.times_s(), self.compute_s())

    def busy(self):
        """Of each wire: the share that tensor parallelism keeps it busy, and all the others."""
        sent, fabric, gpu = self.sent(), self.fabric(), self.machine.gpu
        others = placement.total_bytes(placement.ByAxis(*sent[1:], placement.ByWire(0.0, 0.0, 0.0)))
        return (placement.busy_share(sent.tp, gpu, fabric, self.compute_s()),
                placement.busy_share(others, gpu, fabric, self.compute_s()))

    def busy_words(self, wire):
        seconds = placement.busy_s(placement.total_bytes(self.sent()), self.machine.gpu, self.fabric())
        return f"busy {show_in(seconds[wire], 's', 2)}"

    def wires_in_words(self, sent):
        """What each GPU sends, for each of placement.WAYS."""
        link, nic, spine = (show(amount, "bytes") for amount in sent)
        out = f"{choose(sent.link > 0, f'{link} over NVLink, ', '')}{nic} through NICs"
        return ["alone, sends nothing", f"in the node: {link} over NVLink", out, f"{out}, {spine} of it over the spine"]

    def is_across(self):
        return self.ways().tp >= 2

    # -- the picture ------------------------------------------------------------------------------------------------
    @part(*LAYOUT, "follow")
    def ranks(self):
        sizes = self.sizes()
        strides = placement.strides(sizes, self.innermost)
        first = placement.group(np.arange(float(MOST_GPUS)), lookup(np.stack(sizes), self.follow),
                                lookup(np.stack(strides), self.follow))
        return {**slots(self.nodes, self.gpus_per_node, MOST_GPUS).narrowed(0.84).sides(),
                "member": np.where(first == 0, 1.0, 0.0)}

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
        wide = leaves.narrowed(placement.uplink_share(self.oversubscription))
        return wide.filled(tensor.spine, others.spine)

    @part(*WIRES_ASKED, "follow")
    def names(self):
        group = select(self.follow, ["tensor", "expert", "data", "pipeline"])
        return {"y": [fig.midpoint(*level) for level in (SPINE, UPLINKS, LEAF, WIRES, GPUS, LINKS, SWITCH)],
                "name": ["Spine", f"uplinks {self.busy_words(2)}", "Leaf switches", f"NICs {self.busy_words(1)}",
                         f"filled: one {group} group", f"NVLinks {self.busy_words(0)}", "NVSwitch"],
                "short": ["Spine", "", "Leaves", "NICs", "GPUs", "NVLink", "NVSwitch"]}

    @part(*EVERY)
    def bars(self):
        sizes, ways, sent, times = self.sizes(), self.ways(), self.sent(), self.times_s()
        end = fig.share_of(fig.past_wall(self.ratios()), WALL)
        across = np.stack([np.where(self.is_across(), 1.0, 0.0), 0.0, 0.0, 0.0])
        within = np.where(across > 0, 0.0, np.minimum(end, WALL))
        places = [select(way, PLACES) for way in ways]
        return {"y": ROW_Y, "kind": [select(way, placement.WAYS) for way in ways],
                "seconds": times, "within": within, "end": end, "red": np.where(end > within, 1.0, 0.0),
                "name": [f"{row} {show(size, 'count')}" for row, size in zip(ROWS, sizes)],
                "wires": [select(way, self.wires_in_words(wires)) for way, wires in zip(ways, sent)], "place": places,
                "label": [show_in(times[i], "s") for i in range(4)]}

    @part("model", "machine", "mfu", *CLUSTER)
    def wall(self):
        return {"x": WALL, "label": f"arithmetic of the step, {show_in(self.compute_s(), 's')}"}

    @staticmethod
    def tubes(p, source, span, inside):
        """Wires that fill from the left: with what tensor parallelism sends, red out of the node, then the others."""
        color, across = fig.COLOR, {"bottom": span[0], "top": span[1], "source": source, "line_width": 0.8}
        own = color["link" if inside else "network"]
        tensor = {"fill_color": own, "fill_alpha": 0.75, "line_color": own} if inside else fig.OVER
        return [p.quad(left="left", right="end", **across, fill_color=color["idle"], fill_alpha=0.07,
                       line_color=color["axis"], line_alpha=0.4),
                p.quad(left="left", right="middle", **tensor | across, line_alpha="first"),
                p.quad(left="middle", right="right", **across, fill_color=own, fill_alpha=0.35, line_color=own,
                       line_alpha="second")]

    @staticmethod
    def scale(p):
        """The arithmetic as a line, and tens of it behind; both leave the lines of text between the bars free."""
        color, low, high = fig.COLOR, ROW_Y - 0.3, ROW_Y + 0.25
        p.segment(np.full(4, WALL), low, np.full(4, WALL), high, line_color=color["compute"], line_width=2.5)
        places = [float(fig.share_of(fig.past_wall(times), WALL)) for times in BEYOND]
        for place in places:
            p.segment(np.full(4, place), low, np.full(4, place), high, line_color=color["axis"], line_dash="dotted")
        labels = [f"{times:.0f}×" for times in BEYOND]
        for width, first in (("wide", 0), ("narrow", 1)):       # on a phone the arithmetic's own label covers the first
            fig.only(width, p.text(places[first:], 4.22, text=labels[first:], text_align="center", **fig.LABEL))
        p.text(WALL, -0.42, text=["← linear | logarithmic →"], text_align="center", **fig.LABEL)

    def figure(self, sources):
        p = fig.plot((-0.012, 1.3), (-0.65, 10.2), height=615)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        color, bars, wall, names = fig.COLOR, sources["bars"], sources["wall"], sources["names"]
        switch = {"fill_color": color["idle"], "fill_alpha": 0.16, "line_color": color["axis"]}
        p.quad(left="left", right="right", bottom=SWITCH[0] - 0.1, top=NICS[1] + 0.08, source=sources["boxes"],
               fill_color=color["ink"], fill_alpha=0.03, line_color=color["line"])
        p.quad(left="left", right="right", bottom=SWITCH[0], top=SWITCH[1], source=sources["boxes"], **switch)
        p.quad(left="left", right="right", bottom=LEAF[0], top=LEAF[1], source=sources["leaves"], **switch)
        p.quad(left=0, right=1, bottom=SPINE[0], top=SPINE[1], **switch)
        p.quad(left="left", right="right", bottom=NICS[0], top=NICS[1], source=sources["cards"], **switch)
        for name, span in (("links", LINKS), ("wires", WIRES), ("uplinks", UPLINKS), ("node_links", LINKS),
                           ("node_wires", WIRES)):
            tubes = self.tubes(p, sources[name], span, "links" in name.split("_"))
            if name != "uplinks":
                fig.only("narrow" if "node" in name else "wide", *tubes)
        ranks = {"left": "left", "right": "right", "bottom": GPUS[0], "top": GPUS[1], "source": sources["ranks"]}
        p.quad(**ranks, fill_color=color["panel"], line_color=None)
        p.quad(**ranks, fill_color=color["ink"], fill_alpha="member", line_color=color["axis"])
        hue = fig.hues("kind", HUES)
        over_lines = {"background_fill_color": color["panel"], "background_fill_alpha": 0.8}
        p.hbar(y="y", left=0, right="within", height=0.36, source=bars, fill_color=hue, fill_alpha=0.35, line_color=hue,
               line_width=1.5)
        p.hbar(y="y", left="within", right="end", height=0.36, source=bars, **fig.OVER | {"line_alpha": "red"})
        self.scale(p)
        p.text("x", 4.22, text="label", source=wall, text_align="center", **fig.BOLD | {"text_color": color["compute"]})
        p.text(0, "y", text="name", source=bars, y_offset=-21, **fig.BOLD)
        p.text("end", "y", text="label", source=bars, x_offset=8, **fig.BOLD)
        for width, column, places in (("wide", "name", "wires"), ("narrow", "short", "place")):
            fig.only(width, p.text(1.015, "y", text=column, source=names, **fig.LABEL),
                     p.text(0, "y", text=places, source=bars, x_offset=88, y_offset=-21,
                                   **fig.LABEL | over_lines))
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Tensor")
    def tensor_time(self):
        return show_in(self.times_s()[0], "s"), self.is_across()

    @readout("Data")
    def data_time(self):
        return show_in(self.times_s()[2], "s"), self.ratios()[2] > 1

    @readout("Pipeline")
    def pipeline_time(self):
        return show_in(self.times_s()[3], "s"), self.ratios()[3] > 1

    @readout("All axes, nothing hidden")
    def together(self):
        return show_in(np.sum(self.times_s()), "s"), np.sum(self.ratios()) > 1

    @readout("Arithmetic")
    def arithmetic(self):
        return show_in(self.compute_s(), "s")

    @readout("Through NICs, each GPU")
    def through_nics(self):
        return show(placement.total_bytes(self.sent()).nic, "bytes")

    @regime(target=True)
    def tensor_across(self):
        return self.is_across(), (
            f"Tensor parallelism crosses the node's edge: its AllReduces take {show_in(self.times_s()[0], 's')} of a "
            f"step that computes for {show_in(self.compute_s(), 's')}, and every layer waits for them. First response: "
            f"make it innermost, and no larger than a node's {show(self.gpus_per_node, 'count')} GPUs (lesson 06).")

    @regime()
    def spine_narrow(self):
        busy = placement.busy_s(placement.total_bytes(self.sent()), self.machine.gpu, self.fabric())
        return busy.spine > busy.nic, (
            f"The spine is the narrow place: its wires are busy for {show_in(busy.spine, 's')}, the NICs for "
            f"{show_in(busy.nic, 's')}. First response: keep under one leaf what talks most, and let the pipeline "
            "cross.")

    @regime()
    def all_exposed(self):
        total = np.sum(self.ratios())
        return total > 1, (
            f"Communication outweighs arithmetic: {show_in(np.sum(self.times_s()), 's')} against "
            f"{show_in(self.compute_s(), 's')}, {show(total, 'times')}, if nothing hides it. First response: fewer "
            "tensor ranks, or the order of the axes that keeps the longest bar in the node.")

    def summary(self):
        sizes, times = self.sizes(), self.times_s()
        each = [choose(sizes[i] > 1, f", {show_in(times[i], 's')} among {show(sizes[i], 'count')} {AXES[i]} ranks", "")
                for i in range(4)]
        return (f"On {show(self.gpus(), 'count')} GPUs in nodes of {show(self.gpus_per_node, 'count')}, with "
                f"{select(self.innermost, AXES)} parallelism innermost, a step of "
                f"{self.model.name} computes for {show_in(self.compute_s(), 's')} and communicates for "
                f"{show_in(np.sum(times), 's')}{each[0]}{each[1]}{each[2]}{each[3]}; tensor "
                f"parallelism stands {select(self.ways().tp, PLACES)}.")
