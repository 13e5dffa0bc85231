"""One layer on t ranks: its arithmetic divided by t, its four AllReduces, and the node's edge."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.catalog import hardware
from engine.executed import tensor
from engine.mechanism import interconnect
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, part, readout, regime

RANKS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
NAMED_RANKS = ["One rank"] + [f"{t:.0f} ranks" for t in RANKS[1:]]
MANY = RANKS[1:]  # of them AllReduces have something to do
PER_NODE = [1, 2, 4, 8, 16, 32, 64, 72]
VIEWS_S = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]
LEFT, RIGHT, DECADES = 0.85, 88.0, 3
FLOOR_AT = 2.9  # the row of efficiencies, in decades under the top
ROOM_LEFT = 5  # from so many ranks on a label has room on its left, on a phone
NAMED_AT = np.array([2.6, 2.0, 64.0])
BESIDE = 1.41  # from a number of ranks to halfway to the next
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
    nic_bytes_per_s = Number(
        "Network for each GPU",
        50e9,
        1e9,
        400e9,
        family="bytes_per_s",
        marks=(3.125e9, 6.25e9, 12.5e9, 25e9, 100e9),
        more=True,
        help="One way: the bandwidth of the node's cards, divided by its GPUs",
    )
    ffn_ratio = Number("F over h", 3.5, 2, 8, stops=49, log=False, marks=(4,), more=True)
    mlp = Choice("MLP", MLPS, "gated", more=True)
    kv_share = Choice("Key-value heads", KEYS, "grouped", more=True)
    share = Number(
        "Share of the peak reached",
        0.6,
        0.2,
        0.9,
        family="percent",
        stops=71,
        log=False,
        more=True,
        help="By the matrix products alone, whatever their width",
    )
    dots = Dots()

    presets = {
        "70B on H100": {},
        "TP 32": {"ranks": "32"},
        "One 400 Gb/s card a node": {"nic_bytes_per_s": 6.25e9},
        "H100 on PCIe": {"gpu": "h100-pcie"},
        "NVL72": {"gpu": "gb200", "per_node": 72, "ranks": "16"},
        "A small model": {"hidden": 2048},
    }
    break_it = (
        "Add ranks, thin the layer or its wires, until the layer takes longer than on half as many GPUs."
    )
    assumptions = (
        "One layer, forward and backward, causal attention, bf16. Four AllReduces, each by the fastest of "
        "NCCL's algorithms at measured efficiencies, and none hidden. Ranks fill whole nodes, and a ring "
        "that leaves the node uses all its cards. Thinner pieces reach less of the peak; that is left out, "
        "as are norms and everything else that is no product, so small layers look better here than they are."
    )
    formula = (
        r"$$\tau(t) = \frac{6\,T\,((2 + 2k)\,h^2 + m\,hF) + 6\,T\,s\,h}{t\,C} "
        r"+ 4\,\tau_\text{AllReduce}(2\,T\,h \text{ bytes}, t)$$"
        "\n\n$T$ tokens, $m$ matrices in the MLP, $k$ key-value heads for each query head, $C$ what a GPU "
        "reaches. Worth it up to: the largest $t$ on the axis at which the second term is no longer than the "
        "first, over the wires that so many ranks meet. Four AllReduces: Shoeybi et al., arXiv:1909.08053, "
        "section 3."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def layer(self):
        return tensor.layer(self.hidden, self.ffn_ratio, self.batch, self.seq)

    def flops_per_s(self):
        return hardware.achieved_flops_per_s(self.gpu, self.share)

    def wires(self):
        return interconnect.wires(self.gpu, self.per_node, self.nic_bytes_per_s)

    def compute_s(self, ranks):
        at = self.layer()
        return tensor.layer_compute_s(
            at.tokens, at.hidden, at.ffn, at.seq, ranks, self.flops_per_s(), self.mlp, self.kv_share
        )

    def sent_s(self, ranks):
        at = self.layer()
        return tensor.layer_all_reduces_s(at.tokens, at.hidden, ranks, self.wires())

    def whole_s(self, ranks):
        at = self.layer()
        return tensor.layer_s(
            at.tokens,
            at.hidden,
            at.ffn,
            at.seq,
            ranks,
            self.flops_per_s(),
            self.wires(),
            self.mlp,
            self.kv_share,
        )

    def efficiency(self, ranks):
        return tensor.efficiency(self.compute_s(ranks), self.sent_s(ranks))

    def useful_ranks(self):
        return tensor.worthwhile_ranks(RANKS, self.compute_s(RANKS), self.sent_s(RANKS))

    def is_slower(self):
        """Whether the layer takes longer than on half as many GPUs."""
        return self.whole_s(self.ranks) > self.whole_s(np.maximum(self.ranks * 0.5, 1.0))

    def outside(self, ranks):
        return ranks > self.per_node

    def whole_heads(self):
        heads = self.layer().heads
        return tensor.legal_ranks(heads, heads, self.ranks) > 0

    # -- the picture -----------------------------------------------------------------------------------------
    def top(self):
        return fig.fitting_view(np.max(self.whole_s(RANKS)), VIEWS_S, headroom=1.3)

    @part(*COMPUTE, "per_node", "nic_bytes_per_s")
    def times(self):
        return {
            "ranks": RANKS,
            "compute_s": self.compute_s(RANKS),
            "all_reduces_s": self.sent_s(RANKS),
            "layer_s": self.whole_s(RANKS),
            "efficiency": self.efficiency(RANKS),
        }

    @hint("times")
    def of_a_number_of_ranks(self):
        return phrase(
            "{t}: {compute} of arithmetic and {sent} of AllReduces, an efficiency of {share}",
            t=select(np.arange(RANKS.size), NAMED_RANKS),
            compute=show(self.compute_s(RANKS), "seconds"),
            sent=show(self.sent_s(RANKS), "seconds"),
            share=show(self.efficiency(RANKS), "percent"),
        )

    @part(*COMPUTE, "per_node", "nic_bytes_per_s", shown=False)
    def efficiencies(self):
        """The efficiency in words, along the axis."""
        return {
            "ranks": MANY,
            "y": np.broadcast_to(fig.decades_below(self.top(), FLOOR_AT), MANY.shape),
            "text": show(self.efficiency(MANY), "percent", 2),
        }

    @part(*LAYER, *WIRES, shown=False)
    def sent(self):
        """The AllReduces, from one number of ranks to the next."""
        sent_s = self.sent_s(MANY)
        wire = [choose(self.outside(t), "network", "link") for t in MANY]
        return {
            "start": np.append(MANY[:1], MANY[:-1]),
            "end": MANY,
            "start_s": np.append(sent_s[:1], sent_s[:-1]),
            "end_s": sent_s,
            "wire": wire,
        }

    @hint("sent")
    def of_the_all_reduces(self):
        return phrase(
            "Four AllReduces among {t} ranks{where}: {sent}, while each computes for {compute}",
            t=show(MANY, "count"),
            where=select(np.where(self.outside(MANY), 1, 0), [" in one node", " in several nodes"]),
            sent=show(self.sent_s(MANY), "seconds"),
            compute=show(self.compute_s(MANY), "seconds"),
        )

    @part(*COMPUTE, "per_node", "nic_bytes_per_s", "dots", shown=False)
    def names(self):
        measured_too = TpScaling.timed.measured_by.named(self, ", ○ measured")
        return {
            "ranks": NAMED_AT,
            "y": np.stack([self.compute_s(NAMED_AT[0]), self.sent_s(NAMED_AT[1]), self.whole_s(NAMED_AT[2])]),
            "align": ["right", "left", "right"],
            "aside": [0.0, 8.0, 0.0],
            "shift": np.stack(
                [14.0, 16.0, np.where(self.whole_s(NAMED_AT[2]) > self.top() * 0.3, 18.0, -18.0)]
            ),
            "text": ["arithmetic, 1/t", f"4 AllReduces{measured_too}", "the layer"],
            "narrow": ["1/t", "AllReduces", "layer"],
        }

    @part("per_node", "nic_bytes_per_s", *COMPUTE, shown=False)
    def edge(self):
        at = np.minimum(self.per_node * BESIDE, RIGHT)
        return {
            "ranks": at,
            "top": self.top(),
            "bottom": fig.decades_below(self.top(), DECADES),
            "text": choose(at < 60, "beyond the node →", ""),
            "narrow": choose(at < 60, "other nodes →", ""),
        }

    @part(*COMPUTE, "per_node", "nic_bytes_per_s")
    def rule(self):
        useful = self.useful_ranks()
        seen = (useful > 1) & (useful < 64)
        return {
            "ranks": np.clip(useful, 1.0, 64.0),
            "useful_ranks": useful,
            "seen": np.where(seen, 1.0, 0.0),
            "bottom": fig.decades_below(self.top(), FLOOR_AT),
            "y": self.compute_s(np.clip(useful, 1.0, 64.0)),
            "align": choose(useful < ROOM_LEFT, "left", "right"),
            "shift": np.where(useful < ROOM_LEFT, 5.0, -5.0),
            "text": choose(seen, f"worth it while AllReduces ≤ arithmetic: t ≤ {show(useful, 'count')}", ""),
            "narrow": choose(seen, f"AllReduces ≤ 1/t: t ≤ {show(useful, 'count')}", ""),
        }

    @part("ranks", *COMPUTE, "per_node", "nic_bytes_per_s", shown=False)
    def chosen(self):
        return {
            "ranks": self.ranks,
            "layer_s": self.whole_s(self.ranks),
            "bottom": fig.decades_below(self.top(), DECADES),
            "shift": np.where(self.whole_s(self.ranks) > self.top() * 0.5, 19.0, -19.0),
            "text": show(self.whole_s(self.ranks), "seconds"),
        }

    @measured(("tensor_all_reduces", "tensor_layer"), *LAYER, "mlp", "kv_share", "gpu", "per_node")
    def timed(self, of):
        """Four AllReduces of the layer's activations, or a whole layer."""
        at = self.layer()
        same = of.of(gpu=self.gpu, hidden=self.hidden, seq=self.seq, ffn_ratio=self.ffn_ratio)
        cut = of.of(matrices=self.mlp, kv_share=self.kv_share)
        ranks, calls = of.column("ranks"), of.column("calls")
        message = tensor.layer_message_bytes(at.tokens, at.hidden)
        return Seen(
            same & cut & of.near("bytes", message, 0.05) & (ranks <= self.per_node),
            ranks,
            calls * of.measured,
            ranks,
            calls * of.ours,
            of.apart("bytes", message, "bytes", "Its messages held {}."),
        )

    def ranges(self):
        return {"y": [fig.decades_below(self.top(), DECADES), self.top()]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(
            (LEFT, RIGHT),
            (1e-4, 1e-1),
            height=430,
            x_log=True,
            y_log=True,
            x_title="Tensor ranks t",
            y_title="time of one layer",
        )
        fig.ticks(p.xaxis[0], RANKS, "count")
        fig.ticks(p.yaxis[0], [10.0**k for k in range(-8, 3)], "seconds")
        p.ygrid.grid_line_color = None
        edge, times, sent, rule = sources["edge"], sources["times"], sources["sent"], sources["rule"]
        p.quad(
            left="ranks",
            right=RIGHT,
            bottom="bottom",
            top="top",
            source=edge,
            fill_color=color["network"],
            fill_alpha=0.09,
            line_color=None,
        )
        p.segment(
            "ranks", "bottom", "ranks", "top", source=edge, line_color=color["network"], line_dash=[6, 4]
        )
        for width, words in (("wide", "text"), ("narrow", "narrow")):
            named = p.text("ranks", "top", text=words, source=edge, x_offset=6, y_offset=12, **fig.LABEL)
            fig.only(width, named)
        p.segment(
            "ranks",
            "bottom",
            "ranks",
            "y",
            source=rule,
            line_color=color["ink-faint"],
            line_alpha="seen",
            line_dash=[2, 4],
            line_width=2,
        )
        p.line(
            "ranks", "compute_s", source=times, line_color=color["compute"], line_width=2.2, line_dash=[8, 3]
        )
        p.segment(
            "start",
            "start_s",
            "end",
            "end_s",
            source=sent,
            line_width=2.2,
            line_color=fig.hues("wire", {"link": "link", "network": "network"}),
        )
        p.scatter(
            "end",
            "end_s",
            source=sent,
            size=8,
            marker="square",
            line_color=color["panel"],
            fill_color=fig.hues("wire", {"link": "link", "network": "network"}),
        )
        p.line("ranks", "layer_s", source=times, line_color=color["ink"], line_width=2.5)
        p.scatter(
            "ranks", "layer_s", source=times, size=6, fill_color=color["ink"], line_color=color["panel"]
        )
        p.segment("ranks", "bottom", "ranks", "layer_s", source=sources["chosen"], line_color=color["ink"])
        for width, words in (("wide", "text"), ("narrow", "narrow")):
            aside = {"text_align": "align", "x_offset": "shift", "y_offset": -24, "source": rule}
            said = p.text("ranks", "bottom", text=words, **aside, **fig.LABEL | fig.OVER_LINES)
            fig.only(width, said)
        p.scatter(
            "ranks",
            "layer_s",
            source=sources["chosen"],
            size=12,
            fill_color=color["ink"],
            line_color=color["panel"],
        )
        p.text(
            "ranks",
            "layer_s",
            text="text",
            source=sources["chosen"],
            x_offset=5,
            y_offset="shift",
            **fig.BOLD,
        )
        fig.measured(p, sources["timed"])
        over_lines = {
            "text_align": "center",
            "background_fill_color": color["panel"],
            "background_fill_alpha": 0.85,
        }
        p.text("ranks", "y", text="text", source=sources["efficiencies"], **fig.TEXT | over_lines)
        for width, column, row in (("wide", "text", "efficiency"), ("narrow", "narrow", "eff.")):
            fig.only(
                width,
                p.text(
                    "ranks",
                    "y",
                    text=column,
                    source=sources["names"],
                    text_align="align",
                    x_offset="aside",
                    y_offset="shift",
                    **fig.BOLD,
                ),
                p.text(LEFT, "bottom", text=value(row), source=edge, x_offset=5, y_offset=-13, **fig.LABEL),
            )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Layer, both ways", rest=True)
    def layer_time(self):
        return show(self.whole_s(self.ranks), "seconds")

    @readout("Arithmetic")
    def arithmetic(self):
        return show(self.compute_s(self.ranks), "seconds")

    @readout("Four AllReduces")
    def sending(self):
        sent_s = self.sent_s(self.ranks)
        return show(sent_s, "seconds"), sent_s > self.compute_s(self.ranks)

    @readout("Efficiency", rest=True)
    def efficient(self):
        share = self.efficiency(self.ranks)
        return show(share, "percent"), share < 0.5

    @readout("Worth it up to", help="The most ranks whose AllReduces take no longer than their arithmetic")
    def rule_says(self):
        return f"{show(self.useful_ranks(), 'count')} {choose(self.useful_ranks() > 1, 'ranks', 'rank')}"

    @regime(target=True)
    def slower(self):
        half, all_s = self.whole_s(np.maximum(self.ranks * 0.5, 1.0)), self.whole_s(self.ranks)
        return self.is_slower(), (
            f"Twice the GPUs, and slower: cut over {show(self.ranks, 'count')} ranks the layer takes "
            f"{show(all_s, 'seconds')}, over half as many {show(half, 'seconds')}. Its AllReduces grow by "
            "more than its arithmetic shrinks. First response: fewer tensor ranks, and pipeline stages or "
            "FSDP over the rest (lessons 05, 07)."
        )

    @regime()
    def mostly_traffic(self):
        sent_s, compute_s = self.sent_s(self.ranks), self.compute_s(self.ranks)
        return (sent_s > compute_s) & ~self.is_slower(), (
            f"Communication exceeds arithmetic: each GPU sends for {show(sent_s, 'seconds')} and computes "
            f"for {show(compute_s, 'seconds')} in every layer, and nothing hides it. First response: fewer "
            "tensor ranks, and pipeline stages or FSDP over the rest (lessons 05, 07)."
        )

    @regime()
    def beyond_the_node(self):
        inside_s, sent_s = self.sent_s(np.minimum(self.ranks, self.per_node)), self.sent_s(self.ranks)
        return self.outside(self.ranks), (
            f"Over the node's edge: the AllReduces take {show(sent_s, 'seconds')}, where in a node of "
            f"{show(self.per_node, 'count')} {choose(self.per_node > 1, 'GPUs', 'GPU')} they would "
            f"take {show(inside_s, 'seconds')}; the arithmetic is all that still shrinks. "
            "First response: tensor ranks at most as many as a node has GPUs, innermost (lesson 03)."
        )

    @regime()
    def cut_heads(self):
        heads = self.layer().heads
        return self.whole_heads() == 0, (
            f"{show(self.ranks, 'count')} ranks do not divide the {show(heads, 'count')} heads of 128 that h "
            f"= {show(self.hidden, 'count')} has, so attention cannot be cut into whole heads. First "
            "response: a number of ranks that divides them."
        )

    def summary(self):
        ranks, share = self.ranks, self.efficiency(self.ranks)
        one, many = self.whole_s(1.0), self.whole_s(ranks)
        turn = choose(many < one, "cut a layer from", "stretch a layer from")
        rest = choose(self.outside(ranks), ", the rest the network", "")
        return choose(
            ranks == 1,
            f"One GPU alone takes {show(one, 'seconds')} for a layer, all of it arithmetic.",
            f"{show(ranks, 'count')} tensor ranks {turn} {show(one, 'seconds')} to {show(many, 'seconds')}; "
            f"{show(share, 'percent')} of that is arithmetic{rest}.",
        )


TpScaling.serve_as(__name__)
