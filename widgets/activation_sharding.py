"""What one layer leaves behind on each GPU: which part tensor, sequence and context parallelism divide."""

import numpy as np

from engine import catalog, flops, memory
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.symbolic import lookup
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, part, readout, regime

MODELS = ("gpt3-175b", "llama3-8b", "llama3-70b", "llama3.1-405b")
PARTS = ["inputs, norms", "attention", "MLP", "scores"]
KEPT = {"scores": ("everything", memory.NO_RECOMPUTE), "selective": ("all but the scores", memory.SELECTIVE),
        "full": ("the layer's input alone", memory.FULL)}
GROUPS = ["scores kept", "no scores", "input alone"]
# two bars for each of KEPT: without and with sequence parallelism, four parts in each, from the bottom up
BAR_KEPT, BAR_SP = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
BARS = ["TP", "+ SP"] * 3
BAR_X = np.array([0.5, 1.4, 2.9, 3.8, 5.3, 6.2])
MIDDLES = np.array([0.95, 3.35, 5.75])
HALF = 0.4
LEFT, RIGHT = BAR_X - HALF, BAR_X + HALF
BAND_LEFT, BAND_RIGHT = MIDDLES - 1.05, MIDDLES + 1.05
X = (-0.25, 6.95)
ALPHAS = np.array([0.62, 0.4, 0.22, 0.06])
LEGEND_X, LEGEND_Y = np.array([0.0, 2.5, 4.25, 5.45]), 0.98
VIEWS_BYTES = [10e6, 30e6, 100e6, 300e6, 1e9, 2e9, 4e9, 10e9, 30e9, 100e9, 300e9, 1e12, 3e12, 10e12]
SEQ = ("model", "seq", "micro_batch", "tensor", "context")


class ActivationSharding(Widget):
    question = "What does a layer leave behind on each GPU, and which axis divides it?"
    seq = Number("Sequence", 8192, 1024, 2**20, family="tokens", stops=[k * 2**n for n in range(10, 20) for k in (
        1, 1.25, 1.5, 1.75)] + [2**20], whole=True)
    context = Choice("Context ranks", {str(n): (str(n), float(n)) for n in (1, 2, 4, 8, 16, 32, 64)}, "1")
    kept = Choice("Kept for the backward pass", KEPT, "selective")
    tensor = Number("Tensor ranks", 8, 1, 16, stops=[1, 2, 4, 8, 16], whole=True, more=True)
    micro_batch = Number("Sequences in a micro-batch", 1, 1, 8, stops=list(range(1, 9)), whole=True, more=True)
    model = Choice("Model", [catalog.model(key) for key in MODELS], "llama3.1-405b", more=True)
    gpu = Choice("GPU", [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")], "h100-sxm", more=True)

    presets = {"405B, 8k": {}, "405B, 128k, no CP": {"seq": 131072},
               "405B, 128k, CP 16": {"seq": 131072, "context": "16"},
               "GPT-3, 2k, as in 2022": {"model": "gpt3-175b", "seq": 2048, "kept": "scores", "gpu": "a100-80"},
               "8B, 1M tokens": {"model": "llama3-8b", "seq": 2**20, "context": "64"}}
    break_it = "Take the 405B model to 128k tokens without context parallelism."
    assumptions = (
        "Bytes of one dense layer in bf16 for one micro-batch, by Korthikanti et al.; the plain bar is tensor "
        "parallelism alone, + SP adds sequence parallelism over the same ranks. The dashed line is all of a GPU's HBM "
        "over the model's layers: with at least as many micro-batches as pipeline stages, the first holds that many "
        "layers' activations under 1F1B. Left out: weights and optimizer, logits, what stands rebuilt under full "
        "recompute, "
        "and FlashAttention's row statistics. Selective recompute repeats both products of attention; FlashAttention "
        "repeats one: half of the share shown for all but the scores.")
    formula = (
        "$$M = s\\,b\\,h\\left(10 + \\frac{24}{t} + \\frac{5\\,a\\,s}{h\\,t}\\right) \\;\\xrightarrow{SP}\\; "
        "\\frac{s\\,b\\,h}{t}\\left(34 + \\frac{5\\,a\\,s}{h}\\right) \\;\\xrightarrow{CP}\\; "
        "\\frac{1}{c}(\\dots)$$\n\nfor a GPT with dropout: $s$ tokens, $b$ sequences, width $h$, $a$ heads, $t$ "
        "tensor and $c$ context ranks (Korthikanti et al., arXiv:2205.05198, Table 2). Selective recompute and "
        "FlashAttention drop the term with $a$; full recompute keeps $2\\,sbh$. Llama has no dropout, fewer keys and "
        "a third MLP matrix, and its own coefficients.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def layout(self):
        return self.model, self.seq, self.micro_batch, self.tensor, self.context

    def slabs(self):
        """[part, bar]"""
        return np.stack([memory.layer_activation_slabs(*self.layout(), sp, kept, 0)
                         for kept, sp in zip(BAR_KEPT, BAR_SP)], axis=-1)

    def bars(self):
        """Of each bar, the whole."""
        return np.sum(self.slabs(), axis=0)

    def chosen(self, sequence_parallel):
        """The layer's bytes as chosen, without (0) or with (1) sequence parallelism."""
        return memory.layer_activation_bytes(*self.layout(), sequence_parallel, self.kept, 0)

    def all_layers(self):
        return memory.activation_bytes(*self.layout(), 1, self.kept, 0)

    def against(self):
        return memory.against_hbm(self.all_layers(), self.gpu)

    def ceiling(self):
        return memory.hbm_of_each_layer(self.gpu, self.model.layers)

    def ranks_needed(self):
        alone = memory.activation_bytes(self.model, self.seq, self.micro_batch, self.tensor, 1, 1, self.kept, 0)
        return memory.minimum_gpus(alone, self.gpu)

    def view_bytes(self):
        """High enough for the ceiling and for all bars that keep no scores; those with scores may be cut off."""
        return fig.fitting_view(np.maximum(self.bars()[2], self.ceiling()), VIEWS_BYTES, headroom=1.2)

    def cut(self):
        """Where a bar is cut off that would leave the picture."""
        return fig.share_of(self.view_bytes(), 0.85)

    # -- the picture ------------------------------------------------------------------------------------------------
    @part(*SEQ, "gpu")
    def parts(self):
        bottom, top = (np.minimum(edge, self.cut()) for edge in fig.stacked(self.slabs()))
        return {"part": np.repeat(PARTS, 6), "bar": np.tile(BARS, 4), "bytes": np.ravel(self.slabs()),
                "left": np.tile(LEFT, 4), "right": np.tile(RIGHT, 4), "bottom": np.ravel(bottom),
                "top": np.ravel(top), "alpha": np.repeat(ALPHAS, 6)}

    @hint("parts")
    def of_a_part(self):
        return phrase("{part}: {bytes} a layer, {bar}, {group}", part=select(np.repeat(range(4), 6), PARTS),
                      bytes=show(np.ravel(self.slabs()), "bytes"), group=select(np.tile(BAR_KEPT, 4), GROUPS),
                      bar=select(np.tile(BAR_SP, 4), ["tensor parallel", "tensor and sequence parallel"]))

    @part(*SEQ, "gpu", shown=False)
    def totals(self):
        whole, top = self.bars(), self.cut()
        drawn = np.minimum(whole, top)
        crowded = np.repeat(fig.reaches(drawn[::2], drawn[1::2], fig.share_of(self.view_bytes(), 0.06)), 2)
        return {"x": BAR_X, "y": drawn, "shift": np.where(crowded & (BAR_SP == 0), -25.0, -10.0),
                "text": [f"{choose(whole[i] > top, '▲ ', '')}{show(whole[i], 'bytes')}" for i in range(6)],
                "narrow": [show(whole[i], "bytes", 2) for i in range(6)]}

    @part(*SEQ, "kept", "gpu")
    def over(self):
        whole = self.bars()
        pierced = (BAR_KEPT == self.kept) & (whole > self.ceiling())
        return {"bar": BARS, "left": LEFT, "right": fig.right_if(pierced, LEFT, RIGHT),
                "bottom": np.minimum(self.ceiling(), whole), "top": np.minimum(whole, self.cut()),
                "line": np.where(pierced, 1.0, 0.0)}

    @part("kept", shown=False)
    def band(self):
        return {"left": lookup(BAND_LEFT, self.kept), "right": lookup(BAND_RIGHT, self.kept)}

    @part("model", "gpu")
    def limit(self):
        return {"hbm_for_a_layer": self.ceiling()}

    @part(*SEQ, "gpu", shown=False)
    def named(self):
        """The dashed line's name, clear of the small bars' own labels."""
        low = fig.share_of(self.view_bytes(), 0.1)
        text = f"{self.gpu.name} over {show(self.model.layers, 'count')} layers"
        return {"y": np.maximum(self.ceiling(), low), "text": text, "narrow": choose(self.ceiling() < low, "", text)}

    def ranges(self):
        return {"y": [0.0, self.view_bytes()]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(X, (0, VIEWS_BYTES[5]), height=440)
        fig.moving_ticks(p.yaxis[0], "bytes")
        fig.only("wide", p.yaxis[0])
        fig.named_places(p.xaxis[0], dict(zip(BAR_X, BARS)) | {x: f"\n{group}" for x, group in zip(MIDDLES, GROUPS)})
        still = fig.still_height(p)
        p.quad(left="left", right="right", bottom=0, top=0.92, source=sources["band"], fill_color=color["idle"],
               fill_alpha=0.1, line_color=None, **still)
        sides = {"left": "left", "right": "right", "bottom": "bottom", "top": "top"}
        p.quad(**sides, source=sources["parts"], fill_color=color["hbm"], fill_alpha="alpha", line_color=color["hbm"])
        p.quad(**sides, source=sources["over"], **fig.OVER | {"line_alpha": "line"})
        for width, column, shift in (("wide", "text", -10), ("narrow", "narrow", "shift")):
            fig.only(width, p.text("x", "y", text=column, source=sources["totals"], text_align="center",
                                   y_offset=shift, **fig.BOLD))
            fig.only(width, p.text(X[1], "y", text=column, source=sources["named"], text_align="right", y_offset=-10,
                                   **fig.LABEL))
        p.segment(X[0], "hbm_for_a_layer", X[1], "hbm_for_a_layer", source=sources["limit"], line_color=color["ink"],
                  line_width=2, line_dash=[6, 4])
        self.legend(p, still)
        return p

    def legend(self, p, still):
        """The parts' names over their tints, above everything."""
        p.scatter(LEGEND_X, np.full(4, LEGEND_Y), marker="square", size=13, fill_color=fig.COLOR["hbm"],
                  fill_alpha=ALPHAS, line_color=fig.COLOR["hbm"], **still)
        p.text(LEGEND_X, np.full(4, LEGEND_Y), text=PARTS, x_offset=12, **fig.TEXT, **still)

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("A layer, TP alone")
    def tensor_alone(self):
        return show(self.chosen(0), "bytes"), self.chosen(0) > self.ceiling()

    @readout("A layer, TP + SP")
    def with_sequence(self):
        return show(self.chosen(1), "bytes"), self.against() > 1

    @readout("All layers")
    def whole(self):
        return show(self.all_layers(), "bytes"), self.against() > 1

    @readout("Against the HBM")
    def of_hbm(self):
        return show(self.against(), "percent"), self.against() > 1

    @readout("Ranks for activations alone")
    def needed(self):
        return f"at least {show(self.ranks_needed(), 'count')}", self.ranks_needed() > self.context

    @readout("Recomputed, unfused")
    def again(self):
        return show(flops.recomputed_share(self.model, self.seq, recompute=self.kept), "percent")

    @regime(target=True)
    def wall(self):
        return self.against() > 1, (
            f"You found the activation wall: {show(self.all_layers(), 'bytes')} of activations, "
            f"{show(self.against(), 'times')} the HBM of one {self.gpu.name}, before a single weight. First response: "
            f"{show(self.ranks_needed(), 'count')} context ranks or more for activations alone, and "
            "more for the weights and optimizer beside them; or "
            f"recompute more and pay for it in time (lesson 05).")

    @regime()
    def whole_part(self):
        return (self.chosen(0) > self.ceiling()) & (self.against() <= 1), (
            "Sequence parallelism makes the difference: under tensor parallelism alone every rank keeps the whole of "
            f"the block inputs and norms, and {show(self.chosen(0), 'bytes')} a layer do not fit; shared out over the "
            f"same ranks, {show(self.chosen(1), 'bytes')} do, for hardly more on the wire.")

    def summary(self):
        return (f"One layer of {self.model.name} keeps {show(self.chosen(0), 'bytes')} on each GPU under "
                f"{show(self.tensor, 'count')}-way tensor parallelism and {show(self.chosen(1), 'bytes')} with "
                f"sequence parallelism, for {show(self.seq, 'tokens')} over {show(self.context, 'count')} context "
                f"{choose(self.context > 1, 'ranks', 'rank')}; all its layers take {show(self.against(), 'percent')} "
                f"of the HBM of one {self.gpu.name}.")
