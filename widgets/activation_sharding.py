"""What one layer leaves behind on each GPU: which part tensor, sequence and context parallelism divide."""

import numpy as np

from engine import catalog, flops, memory
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.symbolic import lookup
from widgets.kit.text import choose, select, show
from widgets.kit.widget import Widget, part, readout, regime

MODELS = ("gpt3-175b", "llama3-8b", "llama3-70b", "llama3.1-405b")
PARTS = ["inputs, norms", "attention", "MLP", "scores"]
KEPT = {"scores": ("everything", memory.NO_RECOMPUTE), "selective": ("all but the scores", memory.SELECTIVE),
        "full": ("the layer's input alone", memory.FULL)}
GROUPS = [["all, scores too", "no scores", "input alone"],
          ["all, with the scores", "no scores (FlashAttention)", "input alone (full recompute)"]]
# two bars for each of KEPT: without and with sequence parallelism, four parts in each, from the bottom up
BAR_KEPT, BAR_SP = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
BAR_X = np.array([0.5, 1.4, 2.9, 3.8, 5.3, 6.2])
MIDDLES = np.array([0.95, 3.35, 5.75])
HALF = 0.4
ALPHAS = np.tile([0.62, 0.4, 0.22, 0.06], 6)
VIEWS_BYTES = [10e6, 30e6, 100e6, 300e6, 1e9, 2e9, 4e9, 10e9, 30e9, 100e9, 300e9, 1e12, 3e12, 10e12]
SEQ = ("model", "seq", "micro_batch", "tensor", "context")


class ActivationSharding(Widget):
    question = "What does a layer leave behind on each GPU, and which axis divides it?"
    seq = Number("Sequence", 8192, 1024, 2**20, family="tokens", stops=[k * 2**n for n in range(10, 20) for k in (
        1, 1.25, 1.5, 1.75)] + [2**20], whole=True)
    context = Number("Context ranks", 1, 1, 64, stops=[1, 2, 4, 8, 16, 32, 64], whole=True)
    kept = Choice("Kept for the backward pass", KEPT, "selective")
    tensor = Number("Tensor ranks", 8, 1, 16, stops=[1, 2, 4, 8, 16], whole=True, more=True)
    micro_batch = Number("Sequences in a micro-batch", 1, 1, 8, stops=list(range(1, 9)), whole=True, more=True)
    model = Choice("Model", [catalog.model(key) for key in MODELS], "llama3.1-405b", more=True)
    gpu = Choice("GPU", [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")], "h100-sxm", more=True)

    presets = {"405B, 8k": {}, "405B, 128k, no CP": {"seq": 131072}, "405B, 128k, CP 16": {"seq": 131072, "context": 16},
               "GPT-3, 2k, as in 2022": {"model": "gpt3-175b", "seq": 2048, "kept": "scores", "gpu": "a100-80"},
               "8B, 1M tokens": {"model": "llama3-8b", "seq": 2**20, "context": 64}}
    break_it = "Take the 405B model to 128k tokens without context parallelism."
    assumptions = (
        "Bytes of one dense layer in bf16 for one micro-batch, by Korthikanti et al.; the plain bar is tensor "
        "parallelism alone, + SP adds sequence parallelism over the same ranks. The dashed line is all of a GPU's HBM "
        "over the model's layers: whatever the number of pipeline stages, the first holds that many layers' "
        "activations under 1F1B. Left out: weights and optimizer, logits, what stands rebuilt under full recompute, and "
        "FlashAttention's row statistics.")
    formula = (
        "$$M = s\\,b\\,h\\left(10 + \\frac{24}{t} + \\frac{5\\,a\\,s}{h\\,t}\\right) \\;\\xrightarrow{SP}\\; "
        "\\frac{s\\,b\\,h}{t}\\left(34 + \\frac{5\\,a\\,s}{h}\\right) \\;\\xrightarrow{CP}\\; \\frac{1}{c}(\\dots)$$\n\n"
        "for a GPT with dropout: $s$ tokens, $b$ sequences, width $h$, $a$ heads, $t$ tensor and $c$ context ranks "
        "(Korthikanti et al., arXiv:2205.05198, Table 2). Selective recompute and FlashAttention drop the term with "
        "$a$; full recompute keeps $2\\,sbh$. Llama has no dropout, fewer keys and a third MLP matrix, and its own "
        "coefficients.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def layout(self):
        return self.model, self.seq, self.micro_batch, self.tensor, self.context

    def slabs(self):
        """[bar, part]"""
        return np.stack([memory.layer_activation_slabs(*self.layout(), sp, kept, 0)
                         for kept, sp in zip(BAR_KEPT, BAR_SP)])

    def bars(self):
        """Of each bar, the whole."""
        return np.sum(self.slabs(), axis=1)

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
        """High enough for the ceiling and for all bars that keep no scores; those may leave the picture."""
        return fig.fitting_view(np.maximum(self.bars()[2], self.ceiling()), VIEWS_BYTES, headroom=1.2)

    # -- the picture ------------------------------------------------------------------------------------------------
    @part(*SEQ)
    def parts(self):
        slabs = self.slabs()
        bottom, top = (np.ravel(edge) for edge in fig.stacked_rows(slabs))
        return {"part": np.tile(PARTS, 6), "bytes": np.ravel(slabs), "left": np.repeat(BAR_X - HALF, 4),
                "right": np.repeat(BAR_X + HALF, 4), "bottom": bottom, "top": top, "alpha": ALPHAS}

    @part(*SEQ, "gpu", shown=False)
    def totals(self):
        whole, view = self.bars(), self.view_bytes()
        beyond = whole > view
        return {"x": BAR_X, "y": np.minimum(whole, fig.share_of(view, 0.955)),
                "text": [f"{choose(beyond[i], '▲ ', '')}{show(whole[i], 'bytes')}" for i in range(6)],
                "narrow": [show(whole[i], "bytes", 2) for i in range(6)]}

    @part(*SEQ, "kept", "gpu")
    def over(self):
        mine, whole = BAR_KEPT == self.kept, self.bars()
        pierced = mine & (whole > self.ceiling())
        return {"left": BAR_X - HALF, "right": BAR_X + HALF, "bottom": np.minimum(self.ceiling(), whole), "top": whole,
                "alpha": np.where(pierced, fig.OVER["fill_alpha"], 0.0), "line": np.where(pierced, 1.0, 0.0),
                "hatch": np.where(pierced, fig.OVER["hatch_alpha"], 0.0)}

    @part("kept", shown=False)
    def band(self):
        middle = lookup(MIDDLES, self.kept)
        return {"left": middle - 1.05, "right": middle + 1.05}

    @part("model", "gpu")
    def limit(self):
        return {"hbm": self.ceiling(), "text": f"{show(self.gpu.hbm_bytes, 'bytes')} over "
                                               f"{show(self.model.layers, 'count')} layers"}

    def ranges(self):
        return {"y": [0.0, self.view_bytes()]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-0.25, 7.2), (0, VIEWS_BYTES[5]), height=430)
        fig.moving_ticks(p.yaxis[0], "bytes")
        fig.only("wide", p.yaxis[0])
        fig.hide(p.xaxis[0])
        fixed = fig.fixed_height(p, (-0.17, 1.12))
        p.quad(left="left", right="right", bottom=-0.15, top=1.0, source=sources["band"], fill_color=color["idle"],
               fill_alpha=0.09, line_color=None, **fixed)
        p.quad(left="left", right="right", bottom="bottom", top="top", source=sources["parts"],
               fill_color=color["hbm"], fill_alpha="alpha", line_color=color["hbm"], line_width=1.2)
        p.quad(left="left", right="right", bottom="bottom", top="top", source=sources["over"],
               **fig.OVER | {"fill_alpha": "alpha", "line_alpha": "line", "hatch_alpha": "hatch"})
        return p
