"""What one layer leaves behind on each GPU, and which part of it tensor, sequence and context parallelism
divide."""

import numpy as np
from bokeh.models import LinearScale

from engine import catalog
from engine.mechanism import flops, memory
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, select, show, sold
from widgets.kit.widget import Widget, hint, part, readout, regime

MODELS = ("gpt3-175b", "llama3-8b", "llama3-70b", "llama3.1-405b")
PARTS = ["inputs, norms", "attention", "MLP", "scores"]
MADE_OF = ["inputs and norms", *PARTS[1:]]
KEPT = {
    "scores": ("everything", memory.NO_RECOMPUTE),
    "selective": ("all but the scores", memory.SELECTIVE),
    "full": ("the layer's input alone", memory.FULL),
}
GROUPS = [label for label, _ in KEPT.values()]
# two marks for each of KEPT: without and with sequence parallelism
MARK_KEPT, MARK_SP = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
ROWS = np.array([5.0, 4.0, 3.0])  # of the policies, each with its name above it …
MARK_Y = ROWS[MARK_KEPT] - 0.2
BAR_Y = np.array([1.05, 0.0])  # … and of the chosen one's bars below
BAR_NAMES = ["TP: tensor parallelism alone", "TP + SP: with sequence parallelism"]
LOW, HIGH = -0.32, 6.3
HALF = 0.21
ROOM = {"wide": 0.16, "narrow": 0.3}  # of the frame, for a name in a bar
PART_WIDTH = 1.21  # of the lower scale, in bars: their values are written at their ends
ENDS_BYTES = [m * 10.0**e for e in range(3, 17) for m in (1, 3)]
FAR = 12.0  # how many times beyond the smallest and the largest mark the axis goes on, for their labels
SEQ = ("model", "seq", "micro_batch", "tensor", "context")


class ActivationSharding(Widget):
    question = "What does a layer leave behind on each GPU, and which axis divides it?"
    seq = Number(
        "Sequence",
        8192,
        1024,
        2**20,
        family="tokens",
        stops=[k * 2**n for n in range(10, 20) for k in (1, 1.25, 1.5, 1.75)] + [2**20],
        whole=True,
    )
    context = Choice("Context ranks", {str(n): (str(n), float(n)) for n in (1, 2, 4, 8, 16, 32, 64)}, "1")
    kept = Choice("Kept for the backward pass", KEPT, "selective")
    tensor = Number("Tensor ranks", 8, 1, 16, stops=[1, 2, 4, 8, 16], whole=True, more=True)
    micro_batch = Number(
        "Sequences in a micro-batch", 1, 1, 8, stops=list(range(1, 9)), whole=True, more=True
    )
    model = Choice("Model", [catalog.model(key) for key in MODELS], "llama3.1-405b", more=True)
    gpu = Choice(
        "GPU", [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")], "h100-sxm", more=True
    )

    presets = {
        "405B, 8,192 tokens": {},
        "405B, 131,072 tokens over 16 context ranks": {"seq": 131072, "context": "16"},
        "405B, the layer's input alone": {"kept": "full"},
        "GPT-3, 2,048 tokens, as in 2022": {
            "model": "gpt3-175b",
            "seq": 2048,
            "kept": "scores",
            "gpu": "a100-80",
        },
        "8B, 1,048,576 tokens over 64 context ranks": {"model": "llama3-8b", "seq": 2**20, "context": "64"},
    }
    break_it = "Take the 405B model to 128k tokens without context parallelism."
    assumptions = (
        "Bytes of one dense layer in bf16 for one micro-batch, by Korthikanti et al.; TP is tensor "
        "parallelism alone, + SP adds sequence parallelism over the same ranks. The dashed line is all of a "
        "GPU's HBM over the model's layers: with at least as many micro-batches as pipeline stages, the "
        "first holds that many layers' activations under 1F1B. Left out: weights and optimizer, logits, what "
        "is rebuilt under full recompute, and FlashAttention's row statistics. If all but the scores is "
        "kept, the share recomputed is that of both products of attention; FlashAttention, which repeats one "
        "of them, adds half as much."
    )
    formula = (
        "$$M = s\\,b\\,h\\left(10 + \\frac{24}{t} + \\frac{5\\,a\\,s}{h\\,t}\\right) \\;\\xrightarrow{SP}\\; "
        "\\frac{s\\,b\\,h}{t}\\left(34 + \\frac{5\\,a\\,s}{h}\\right) \\;\\xrightarrow{CP}\\; "
        "\\frac{1}{c}(\\dots)$$\n\nfor a GPT with dropout: $s$ tokens, $b$ sequences, width $h$, $a$ heads, "
        "$t$ tensor and $c$ context ranks (Korthikanti et al., arXiv:2205.05198, Table 2). Selective "
        "recompute and FlashAttention drop the term with $a$; full recompute keeps $2\\,sbh$. Llama has no "
        "dropout, fewer keys and a third MLP matrix, and its own coefficients."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def layout(self):
        return self.model, self.seq, self.micro_batch, self.tensor, self.context

    def layers(self):
        """What a layer leaves behind: for each of KEPT, without and with sequence parallelism."""
        return np.stack(
            [
                memory.layer_activation_bytes(*self.layout(), sp, kept, 0)
                for kept, sp in zip(MARK_KEPT, MARK_SP)
            ]
        )

    def slabs(self):
        """[bar, part] of the chosen policy: without and with sequence parallelism."""
        return np.stack([memory.layer_activation_slabs(*self.layout(), sp, self.kept, 0) for sp in (0, 1)])

    def chosen(self, sequence_parallel):
        """The layer's bytes as chosen, without (0) or with (1) sequence parallelism."""
        return memory.layer_activation_bytes(*self.layout(), sequence_parallel, self.kept, 0)

    def all_layers(self):
        return memory.activation_bytes(*self.layout(), 1, self.kept, 0)

    def against(self):
        return memory.against_hbm(self.all_layers(), self.gpu)

    def ceiling(self):
        return memory.hbm_of_each_layer(self.gpu, self.model.depth)

    def ranks_needed(self):
        alone = memory.activation_bytes(
            self.model, self.seq, self.micro_batch, self.tensor, 1, 1, self.kept, 0
        )
        return memory.minimum_gpus(alone, self.gpu)

    def ends_bytes(self):
        """The ends of the axis: round numbers beyond all marks and the ceiling."""
        marks = np.append(self.layers(), self.ceiling())
        low = fig.fitting_view(np.min(marks) / FAR, ENDS_BYTES, 1.0)
        return low / 3.0, fig.fitting_view(np.max(marks), ENDS_BYTES, FAR)

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*SEQ)
    def layer(self):
        held = self.layers()
        words = [show(held[i], "bytes") for i in range(6)]
        return {
            "kept": list(np.repeat(GROUPS, 2)),
            "x": held,
            "y": MARK_Y,
            "bytes": held,
            "label": [f"{words[i]} TP{('', ' + SP')[MARK_SP[i]]}" for i in range(6)],
            "short": words,
            "align": ["left", "right"] * 3,
            "shift": np.tile([10.0, -10.0], 3),
        }

    @part(*SEQ, shown=False)
    def saved(self):
        """The line between the two marks of each policy, which is as long as what it saves."""
        held = self.layers()
        return {"x0": held[1::2], "x1": held[::2], "y": MARK_Y[::2]}

    @hint("layer")
    def of_a_layer(self):
        return phrase(
            "{bytes} a layer, {how}, {kept}",
            bytes=show(self.layers(), "bytes"),
            how=select(MARK_SP, ["tensor parallel", "tensor and sequence parallel"]),
            kept=select(MARK_KEPT, GROUPS),
        )

    @part(*SEQ, "kept")
    def parts(self):
        held = self.slabs()
        left, right = fig.end_to_end(held / self.chosen(0))
        room = {width: np.ravel(right - left) > share for width, share in ROOM.items()}
        return {
            "part": PARTS * 2,
            "bytes": np.ravel(held),
            "left": np.ravel(left),
            "right": np.ravel(right),
            "bottom": np.repeat(BAR_Y - HALF, 4),
            "top": np.repeat(BAR_Y + HALF, 4),
            "x": np.ravel(fig.midpoint(left, right)),
            "y": np.repeat(BAR_Y, 4),
            "name": [choose(room["wide"][i], name, "") for i, name in enumerate(PARTS * 2)],
            "short": [choose(room["narrow"][i], name, "") for i, name in enumerate(PARTS * 2)],
        }

    @hint("parts")
    def of_a_part(self):
        return phrase(
            "{part}: {bytes} a layer, {how}",
            part=PARTS * 2,
            bytes=show(np.ravel(self.slabs()), "bytes"),
            how=select(np.repeat([0, 1], 4), ["tensor parallel", "tensor and sequence parallel"]),
        )

    @part(*SEQ, "kept", shown=False)
    def wholes(self):
        one, other = self.chosen(0), self.chosen(1)
        return {
            "x": np.sum(self.slabs(), axis=1) / one,
            "y": BAR_Y,
            "label": [show(one, "bytes"), show(other, "bytes")],
        }

    @part("kept", shown=False)
    def band(self):
        title = f"What it is made of, keeping {select(self.kept, GROUPS)}"
        pieces = select(self.kept, [", ".join(MADE_OF), ", ".join(MADE_OF[:3]), MADE_OF[0]])
        return {"y": ROWS[0] - self.kept, "title": f"{title}: {pieces}", "short": title}

    @part(*SEQ, "gpu")
    def limit(self):
        low, high = self.ends_bytes()
        size = show(self.ceiling(), "bytes")
        layers = show(self.model.depth, "count")
        far_right = fig.share_of_decades(self.ceiling(), low, high) > 0.5
        return {
            "hbm_for_a_layer": self.ceiling(),
            "text": f"{size} a layer: {sold(self.gpu.hbm_bytes)}, over {layers} layers",
            "short": f"HBM: {size} a layer",
            "align": choose(far_right, "right", "left"),
            "shift": np.where(far_right, -7.0, 7.0),
        }

    def ranges(self):
        return {"x": list(self.ends_bytes())}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((3e6, 3e10), (LOW, HIGH), height=450, x_log=True, x_axis_location="above")
        decades = [10.0**e for e in range(3, 18)]
        fig.ticks(p.xaxis[0], decades, "bytes")
        fig.hide(p.yaxis[0])
        p.grid.visible = False
        p.segment(decades, 2.5, decades, HIGH, line_color=color["grid"])
        shares = fig.across(p, "shares", 0, PART_WIDTH)
        p.extra_x_scales = {"shares": LinearScale()}
        band = {"fill_color": color["ink"], "fill_alpha": 0.05, "line_color": None}
        p.hbar(y="y", left=0, right=PART_WIDTH, height=0.96, source=sources["band"], **band, **shares)
        saved = {"line_color": color["hbm"], "line_width": 3}
        p.segment("x0", "y", "x1", "y", source=sources["saved"], **saved)
        limit = {"line_color": color["ink"], "line_width": 2, "line_dash": [6, 4]}
        p.segment("hbm_for_a_layer", 2.5, "hbm_for_a_layer", 6.25, source=sources["limit"], **limit)
        p.scatter(
            "x", "y", size=13, source=sources["layer"], fill_color=color["hbm"], line_color=color["panel"]
        )
        gap = {"line_color": color["panel"], "line_width": 1.2}
        p.quad(**fig.BOX, source=sources["parts"], fill_color=color["hbm"], **gap, **shares)
        self.letter(p, sources, shares)
        return p

    @staticmethod
    def letter(p, sources, shares):
        layer, limit, parts = sources["layer"], sources["limit"], sources["parts"]
        in_bar = fig.TEXT | {"text_color": fig.COLOR["panel"], "text_align": "center"}
        aside = {"text_align": "align", "x_offset": "shift"}
        names = fig.ON_PANEL | fig.BOLD | {"background_fill_alpha": 1.0}
        p.text(np.zeros(3), ROWS + 0.24, text=GROUPS, x_offset=4, **names, **shares)
        for width, title in (("wide", "title"), ("narrow", "short")):
            fig.only(
                width, p.text(0, 2.08, text=title, source=sources["band"], x_offset=4, **fig.BOLD, **shares)
            )
        p.text(np.zeros(2), BAR_Y + 0.42, text=BAR_NAMES, x_offset=4, **fig.LABEL, **shares)
        p.text("x", "y", text="label", source=sources["wholes"], x_offset=8, **fig.BOLD, **shares)
        over_line = fig.ON_PANEL | {"background_fill_alpha": 1.0} | aside
        for width, name, ceiling, mark in (
            ("wide", "name", "text", "label"),
            ("narrow", "short", "short", "short"),
        ):
            fig.only(
                width,
                p.text("x", "y", text=name, source=parts, **in_bar, **shares),
                p.text("hbm_for_a_layer", 5.9, text=ceiling, source=limit, **aside, **fig.BOLD),
                p.text("x", "y", text=mark, source=layer, **over_line, **fig.TEXT),
            )

    # -- the words -------------------------------------------------------------------------------------------
    @readout("A layer, TP alone")
    def tensor_alone(self):
        return show(self.chosen(0), "bytes"), self.chosen(0) > self.ceiling()

    @readout("All layers, TP + SP")
    def whole(self):
        return show(self.all_layers(), "bytes"), self.against() > 1

    @readout("Recomputed, unfused")
    def again(self):
        return show(flops.recomputed_share(self.model, self.seq, recompute=self.kept), "percent")

    @regime(target=True)
    def wall(self):
        return self.against() > 1, (
            f"You found the activation wall: {show(self.all_layers(), 'bytes')} of activations, "
            f"{show(self.against(), 'times')} the HBM of one {self.gpu.name}, before a single weight. First "
            f"response: {show(self.ranks_needed(), 'count')} context ranks or more for activations alone, "
            "and more for the weights and optimizer beside them; or recompute more and pay for it in time "
            "(lesson 05)."
        )

    @regime()
    def whole_part(self):
        return (self.chosen(0) > self.ceiling()) & (self.against() <= 1), (
            "Sequence parallelism makes the difference: under tensor parallelism alone every rank keeps the "
            f"whole of the block inputs and norms, and {show(self.chosen(0), 'bytes')} a layer do not fit; "
            f"shared out over the same ranks, {show(self.chosen(1), 'bytes')} do, for hardly more on the "
            "wire."
        )

    def summary(self):
        alone, both = (show(self.chosen(way), "bytes") for way in (0, 1))
        return choose(
            self.tensor > 1,
            f"Sequence parallelism cuts what a layer of {self.model.name} leaves on each GPU from {alone} to "
            f"{both}.",
            f"Without a second tensor rank, a layer of {self.model.name} leaves {alone} on each GPU.",
        )


ActivationSharding.serve_as(__name__)
