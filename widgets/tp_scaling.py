"""One layer on t ranks: its arithmetic divided by t, its four AllReduces, and the node's edge."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog, hardware, interconnect, tensor
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.text import choose, show
from widgets.kit.widget import Widget, part, readout, regime

RANKS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
MANY = RANKS[1:]                                                # of them AllReduces have something to do
PER_NODE = [1, 2, 4, 8, 16, 32, 64, 72]
VIEWS_S = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]
LEFT, RIGHT, DECADES = 0.85, 84.0, 3
FLOOR_AT = 2.9                                                  # the row of efficiencies, in decades under the top
NAMED_AT = np.array([2.6, 2.0, 64.0])
BESIDE = 1.41                                                   # from a number of ranks to halfway to the next
CHIPS = ("a100-80", "a100-pcie", "h100-sxm", "h100-pcie", "b200", "gb200", "mi300x", "l40s")
KEYS = {"full": ("one a query head", 1.0), "grouped": ("one for eight", 0.125)}
MLPS = {"plain": ("two matrices", 2), "gated": ("gated, three", 3)}
LAYER = ["hidden", "ffn_ratio", "batch", "seq"]
COMPUTE = [*LAYER, "mlp", "kv_share", "gpu", "share"]
WIRES = ["gpu", "per_node", "nic_bytes_per_s"]


class TpScaling(Widget):
    question = "Over how many GPUs is it worth cutting a layer?"
    ranks = Choice("Tensor ranks", {f"{t:.0f}": (f"{t:.0f}", float(t)) for t in RANKS}, "8")
    hidden = Number("Hidden width h", 8192, 1024, 32768, stops=list(range(1024, 32769, 512)), whole=True)
    gpu = Choice("GPU", [catalog.gpu(key) for key in CHIPS], "h100-sxm")
    seq = Number("Tokens of a sequence", 8192, 128, 131072, whole=True, marks=(2048, 4096, 32768), more=True)
    batch = Number("Sequences at once", 1, 1, 64, whole=True, more=True)
    per_node = Number("GPUs in a node", 8, 1, 72, stops=PER_NODE, whole=True, more=True)
    nic_bytes_per_s = Number("Network for each GPU", 50e9, 1e9, 400e9, family="bytes_per_s",
                             marks=(3.125e9, 6.25e9, 12.5e9, 25e9, 100e9), more=True,
                             help="One way: what its node's cards carry, divided by its GPUs")
    ffn_ratio = Number("F over h", 3.5, 2, 8, stops=49, log=False, marks=(4,), more=True)
    mlp = Choice("MLP", MLPS, "gated", more=True)
    kv_share = Choice("Key-value heads", KEYS, "grouped", more=True)
    share = Number("Share of the peak reached", 0.6, 0.2, 0.9, family="percent", stops=71, log=False, more=True,
                   help="By the products alone, whatever their width")

    presets = {"70B on H100": {}, "TP 32": {"ranks": "32"}, "One 400 Gb/s card a node": {"ranks": "16",
               "nic_bytes_per_s": 6.25e9}, "H100 on PCIe": {"gpu": "h100-pcie"},
               "NVL72": {"gpu": "gb200", "per_node": 72, "ranks": "16"}, "A small model": {"hidden": 2048}}
    break_it = "Add ranks, or make the layer thinner, until a GPU sends for longer than it computes."
    assumptions = (
        "One layer, forward and backward, causal attention, bf16. Four AllReduces, each by "
        "the fastest of NCCL's algorithms at measured efficiencies, and none hidden. Ranks fill whole nodes, and a "
        "ring that leaves the node uses all its cards. Thinner pieces reach less of the peak; that is left out, as are "
        "norms and everything else that is no product, so small layers look better here than they are.")
    formula = (
        r"$$T(t) = \frac{6\,n\,((2 + 2k)\,h^2 + m\,hF) + 6\,n\,s\,h}{t\,C} "
        r"+ 4\,T_\text{AllReduce}(2\,n\,h \text{ bytes}, t)$$"
        "\n\n$n$ tokens, $m$ matrices in the MLP, $k$ key-value heads for each query head, $C$ what a GPU "
        "reaches. Worth it up to: the largest $t$ on the axis at which the second term is no longer than the first, "
        "over the wires that so many ranks meet. Four AllReduces: Shoeybi et al., arXiv:1909.08053, section 3.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def layer(self):
        return tensor.layer(self.hidden, self.ffn_ratio, self.batch, self.seq)

    def flops_per_s(self):
        return hardware.achieved_flops_per_s(self.gpu, self.share)

    def wires(self):
        return interconnect.wires(self.gpu, self.per_node, self.nic_bytes_per_s)

    def compute_s(self, ranks):
        at = self.layer()
        return tensor.layer_compute_s(at.tokens, at.hidden, at.ffn, at.seq, ranks, self.flops_per_s(), self.mlp,
                                      self.kv_share)

    def sent_s(self, ranks):
        at = self.layer()
        return tensor.layer_all_reduces_s(at.tokens, at.hidden, ranks, self.wires())

    def whole_s(self, ranks):
        at = self.layer()
        return tensor.layer_s(at.tokens, at.hidden, at.ffn, at.seq, ranks, self.flops_per_s(), self.wires(), self.mlp,
                              self.kv_share)

    def efficiency(self, ranks):
        return tensor.efficiency(self.compute_s(ranks), self.sent_s(ranks))

    def useful_ranks(self):
        return tensor.worthwhile_ranks(RANKS, self.compute_s(RANKS), self.sent_s(RANKS))

    def outside(self, ranks):
        return ranks > self.per_node

    def whole_heads(self):
        heads = self.layer().heads
        return tensor.legal_ranks(heads, heads, self.ranks) > 0

    # -- the picture ------------------------------------------------------------------------------------------------
    def top(self):
        return fig.fitting_view(self.compute_s(1.0), VIEWS_S, headroom=1.05)

    @part(*COMPUTE, "per_node", "nic_bytes_per_s")
    def times(self):
        return {"ranks": RANKS, "compute_s": self.compute_s(RANKS), "all_reduces_s": self.sent_s(RANKS),
                "layer_s": self.whole_s(RANKS), "efficiency": self.efficiency(RANKS)}

    @part(*COMPUTE, "per_node", "nic_bytes_per_s", shown=False)
    def efficiencies(self):
        """The same in words, along the axis; one rank has no other."""
        return {"ranks": MANY, "y": np.broadcast_to(fig.decades_below(self.top(), FLOOR_AT), MANY.shape),
                "text": show(self.efficiency(MANY), "percent", 2)}

    @part(*LAYER, *WIRES, shown=False)
    def sent(self):
        """The AllReduces, from one number of ranks to the next."""
        sent_s = self.sent_s(MANY)
        wire = [choose(self.outside(t), "network", "link") for t in MANY]
        return {"start": np.append(MANY[:1], MANY[:-1]), "end": MANY, "start_s": np.append(sent_s[:1], sent_s[:-1]),
                "end_s": sent_s, "wire": wire}

    @part(*COMPUTE, "per_node", "nic_bytes_per_s", shown=False)
    def names(self):
        return {"ranks": NAMED_AT, "y": np.stack([self.compute_s(NAMED_AT[0]), self.sent_s(NAMED_AT[1]),
                                                  self.whole_s(NAMED_AT[2])]),
                "align": ["right", "left", "right"], "shift": [14.0, 16.0, -18.0],
                "text": ["arithmetic, 1/t", "4 AllReduces", "the layer"], "narrow": ["1/t", "AllReduces", "layer"]}

    @part("per_node", *COMPUTE, shown=False)
    def edge(self):
        at = np.minimum(fig.share_of(self.per_node, BESIDE), RIGHT)
        return {"ranks": at, "top": self.top(), "bottom": fig.decades_below(self.top(), DECADES),
                "text": choose(at < 60, "beyond the node →", "")}

    @part(*COMPUTE, "per_node", "nic_bytes_per_s")
    def rule(self):
        useful = self.useful_ranks()
        seen = (useful > 1) & (useful < 64)
        return {"ranks": np.clip(useful, 1.0, 64.0), "useful_ranks": useful, "seen": np.where(seen, 1.0, 0.0),
                "bottom": fig.decades_below(self.top(), FLOOR_AT), "y": self.compute_s(np.clip(useful, 1.0, 64.0)),
                "text": choose(seen, f"worth it: t ≤ {show(useful, 'count')}", "")}

    @part("ranks", *COMPUTE, "per_node", "nic_bytes_per_s", shown=False)
    def chosen(self):
        return {"ranks": self.ranks, "layer_s": self.whole_s(self.ranks),
                "bottom": fig.decades_below(self.top(), DECADES), "text": show(self.whole_s(self.ranks), "seconds")}

    def ranges(self):
        return {"y": [fig.decades_below(self.top(), DECADES), self.top()]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((LEFT, RIGHT), (1e-4, 1e-1), height=430, x_log=True, y_log=True, x_title="Tensor ranks t",
                     y_title="time of one layer")
        fig.ticks(p.xaxis[0], RANKS, "count")
        fig.ticks(p.yaxis[0], [10.0**k for k in range(-8, 3)], "seconds")
        p.ygrid.grid_line_color = None
        edge, times, sent, rule = sources["edge"], sources["times"], sources["sent"], sources["rule"]
        p.quad(left="ranks", right=RIGHT, bottom="bottom", top="top", source=edge, fill_color=color["network"],
               fill_alpha=0.09, line_color=None)
        p.segment("ranks", "bottom", "ranks", "top", source=edge, line_color=color["network"], line_dash=[6, 4])
        p.text("ranks", "top", text="text", source=edge, x_offset=6, y_offset=12, **fig.LABEL)
        p.segment("ranks", "bottom", "ranks", "y", source=rule, line_color=color["ink-faint"], line_alpha="seen",
                  line_dash=[2, 4], line_width=2)
        p.text("ranks", "bottom", text="text", source=rule, text_align="right", x_offset=-5, y_offset=-24, **fig.LABEL)
        p.line("ranks", "compute_s", source=times, line_color=color["compute"], line_width=2.2, line_dash=[8, 3])
        p.segment("start", "start_s", "end", "end_s", source=sent, line_width=2.2,
                  line_color=fig.hues("wire", {"link": "link", "network": "network"}))
        p.scatter("end", "end_s", source=sent, size=8, marker="square", line_color=color["panel"],
                  fill_color=fig.hues("wire", {"link": "link", "network": "network"}))
        p.line("ranks", "layer_s", source=times, line_color=color["ink"], line_width=2.5)
        p.scatter("ranks", "layer_s", source=times, size=6, fill_color=color["ink"], line_color=color["panel"])
        p.segment("ranks", "bottom", "ranks", "layer_s", source=sources["chosen"], line_color=color["ink"])
        p.scatter("ranks", "layer_s", source=sources["chosen"], size=12, fill_color=color["ink"],
                  line_color=color["panel"])
        p.text("ranks", "layer_s", text="text", source=sources["chosen"], x_offset=3, y_offset=-19, **fig.BOLD)
        over_lines = {"text_align": "center", "background_fill_color": color["panel"], "background_fill_alpha": 0.85}
        p.text("ranks", "y", text="text", source=sources["efficiencies"], **fig.TEXT | over_lines)
        for width, column, row in (("wide", "text", "efficiency"), ("narrow", "narrow", "eff.")):
            fig.only(width, p.text("ranks", "y", text=column, source=sources["names"], text_align="align",
                                   y_offset="shift", **fig.BOLD),
                     p.text(LEFT, "bottom", text=value(row), source=edge, x_offset=5, y_offset=-13, **fig.LABEL))
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Layer, both ways")
    def layer_time(self):
        return show(self.whole_s(self.ranks), "seconds")

    @readout("Arithmetic")
    def arithmetic(self):
        return show(self.compute_s(self.ranks), "seconds")

    @readout("Four AllReduces")
    def sending(self):
        sent_s = self.sent_s(self.ranks)
        return show(sent_s, "seconds"), sent_s > self.compute_s(self.ranks)

    @readout("Efficiency")
    def efficient(self):
        share = self.efficiency(self.ranks)
        return show(share, "percent"), share < 0.5

    @readout("Worth it up to")
    def rule_says(self):
        return f"{show(self.useful_ranks(), 'count')} {choose(self.useful_ranks() > 1, 'ranks', 'rank')}"

    @regime(target=True)
    def mostly_traffic(self):
        sent_s, compute_s = self.sent_s(self.ranks), self.compute_s(self.ranks)
        return sent_s > compute_s, (
            f"Communication exceeds arithmetic: each GPU sends for {show(sent_s, 'seconds')} and computes for "
            f"{show(compute_s, 'seconds')} in every layer, and nothing hides it. First response: fewer tensor ranks, "
            "and pipeline stages or FSDP over the rest (lessons 05, 07).")

    @regime()
    def beyond_the_node(self):
        inside_s, sent_s = self.sent_s(np.minimum(self.ranks, self.per_node)), self.sent_s(self.ranks)
        return self.outside(self.ranks), (
            f"Over the node's edge: the AllReduces take {show(sent_s, 'seconds')}, where in a node of "
            f"{show(self.per_node, 'count')} {choose(self.per_node > 1, 'GPUs', 'GPU')} they would "
            f"take {show(inside_s, 'seconds')}; the arithmetic is all that still shrinks. "
            "First response: tensor ranks at most as many as a node has GPUs, innermost (lesson 03).")

    @regime()
    def cut_heads(self):
        heads = self.layer().heads
        return self.whole_heads() == 0, (
            f"{show(self.ranks, 'count')} ranks do not divide the {show(heads, 'count')} heads of 128 that "
            f"h = {show(self.hidden, 'count')} has, so attention cannot be cut into whole heads. First response: a "
            "number of ranks that divides them.")

    def summary(self):
        ranks, share = self.ranks, self.efficiency(self.ranks)
        through = choose(self.outside(ranks), ' through the network', '')
        return (f"A layer of width {show(self.hidden, 'count')} takes {show(self.whole_s(ranks), 'seconds')} on "
                f"{show(ranks, 'count')} {self.gpu.name}, {show(self.compute_s(ranks), 'seconds')} of arithmetic and "
                f"{show(self.sent_s(ranks), 'seconds')} of AllReduces{through}: "
                f"{show(share, 'percent')} of the time is arithmetic, and one GPU would take "
                f"{show(self.whole_s(1.0), 'seconds')}.")
