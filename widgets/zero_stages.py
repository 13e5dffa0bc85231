"""ZeRO's four stages side by side: what each leaves on a GPU, and what it sends for that."""

import numpy as np

from engine import catalog, hardware, memory, zero
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, part, readout, regime

STAGES = np.arange(4.0)
NAMES = ["data parallel", "stage 1", "stage 2", "stage 3"]
SHARED = ["shares nothing", "optimizer", "+ gradients", "+ weights"]
SLABS, SHORT = ["weights", "gradients", "optimizer"] * 4, ["weights", "grads", "optim."] * 4
SENT, SENT_SHORT = ["gather weights", "sum gradients", "sum across"] * 4, ["gather", "sum", "across"] * 4
HALF = 0.34                                     # half a column's width
SIDES = {"left": np.repeat(STAGES - HALF, 3), "right": np.repeat(STAGES + HALF, 3)}
COLUMN = {"of": list(np.repeat(NAMES, 3)), "x": np.repeat(STAGES, 3)} | SIDES
EDGES = {"from": STAGES - 0.5, "to": STAGES + 0.5}
TOP = 1.7                                       # how many HBMs of a stack are in view …
ROOT, WALL, DEEPEST = -0.42, -1.62, 1.25        # … and under it the traffic: where it starts, the arithmetic, its times
LOW, HIGH = -2.2, 1.92
THIN = 0.16                                     # a slab below this has no room for its name …
CROSSED = 1 - THIN                              # … and one that starts below this has it under the HBM's line
RANK_STOPS = [1, 2, 4, *range(8, 64, 8), *range(64, 256, 16), *range(256, 1024, 64), *range(1024, 4097, 256)]
ALL = 2.0**20
GROUPS = {"all": ("all GPUs", ALL), "8": ("8, one node", 8.0), "16": ("16", 16.0), "64": ("64", 64.0)}
GPUS = [catalog.gpu(key) for key in ("a100-40", "a100-80", "h100-sxm", "h200", "b200")]
RECIPES = [catalog.recipe(key) for key in ("bf16-adam", "bf16-adam-fp32-grads", "fp32-adam", "adam-8bit",
                                           "sgd-momentum")]
MFU = 0.4
STATE = ("size", "ranks", "group", "recipe", "gpu")
TRAFFIC = (*STATE, "tokens", "micro_batches", "network")


class ZeroStages(Widget):
    question = "What does each stage of ZeRO save, and what does it send for that?"
    size = Number("Model size", 7.5e9, 0.1e9, 1e12, family="params", marks=(1.5e9, 13e9, 70e9, 405e9))
    ranks = Number("GPUs", 64, 1, 4096, stops=RANK_STOPS, whole=True)
    tokens = Number("Tokens per GPU", 2048, 64, 32768, whole=True, marks=(128, 512, 4096, 8192),
                    help="Of one micro-batch: what there is to compute between two gathers of the same weights")
    stage = Choice("Stage", {str(n): (name, float(n)) for n, name in enumerate(NAMES)}, "3", more=True,
                   help="Which column the words are about; a click on its name chooses it too")
    network = Number("Network of each GPU", 50e9, 0.5e9, 100e9, family="bytes_per_s", marks=(1.5625e9, 12.5e9, 25e9),
                     more=True, help="One way; a ring through a whole node has that of all its GPUs")
    micro_batches = Number("Micro-batches in a step", 1, 1, 32, log=False, stops=32, whole=True, more=True,
                           help="Gradients are accumulated over them")
    group = Choice("One copy of the state on", GROUPS, "all", more=True,
                   help="HSDP: groups share a copy each, and sum their gradients across")
    recipe = Choice("Optimizer recipe", RECIPES, "bf16-adam", more=True)
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)

    presets = {"7.5B on 64": {}, "7B on 8": {"size": 7e9, "ranks": 8},
               "13B on 16 A100 40 GB": {"size": 13e9, "ranks": 16, "gpu": "a100-40", "network": 25e9, "tokens": 4096},
               "70B on 64": {"size": 70e9, "tokens": 4096},
               "One 100 Gb/s card a node": {"network": 1.5625e9, "tokens": 8192},
               "… with HSDP": {"network": 1.5625e9, "tokens": 8192, "group": "8"}}
    tap = {"columns": "stage"}
    break_it = "Leave stage 3 with too little work behind each gather."
    assumptions = (
        "Training state alone: no activations, no gathered layers, no fragmentation. Stacks are in units of the GPU's "
        "HBM, traffic in units of the step's arithmetic at 40 % MFU; what an arrow leads is cut off. A dashed line is "
        "where the tightest pass is full: gradients hide behind backward passes, two thirds of the arithmetic, weights "
        "of stages 1 and 2 behind one forward pass, sums across groups behind the last backward pass. Wires run at "
        "their one-way rates without start-up, a ring through whole nodes with all their NICs. Stages 2 and 3 scatter "
        "gradients for every micro-batch, stage 3 gathers weights twice for each. A bar within "
        "its line can hide, if it is issued early enough; one beyond it cannot.")
    formula = (
        r"$$M_0 = 16\Psi \qquad M_1 = 4\Psi + \frac{12\Psi}{N} \qquad M_2 = 2\Psi + \frac{14\Psi}{N} \qquad "
        r"M_3 = \frac{16\Psi}{N}$$" "\n\n"
        r"bytes for $\Psi$ parameters under 16-byte Adam on $N$ GPUs (ZeRO, arXiv:1910.02054, section 5). Elements "
        r"sent by each GPU for one micro-batch: $2\Psi$, $2\Psi$, $2\Psi$ and $3\Psi$, each times $(N-1)/N$ (section "
        r"7); the arithmetic is $6\,\Psi\,T$ FLOPs for $T$ tokens. With groups of $S$ GPUs (HSDP) $S$ stands for $N$, "
        r"and $2(R-1)/R\cdot\Psi/S$ elements more cross between the $R = N/S$ groups.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def shared(self):
        return zero.shard_group(self.ranks, self.group, STAGES)

    def parts_bytes(self):
        return zero.state_parts_bytes(self.size, self.recipe, self.shared(), STAGES)

    def state_bytes(self):
        return np.sum(self.parts_bytes(), axis=-1)

    def traffic(self):
        return zero.step_traffic(self.size, self.ranks, self.group, STAGES, self.recipe, self.gpu, self.network,
                                 self.micro_batches)

    def arithmetic_s(self):
        return zero.arithmetic_s(self.size, self.tokens, hardware.peak_with_fallback(self.gpu), MFU, self.micro_batches)

    def behind(self):
        return zero.behind_passes(self.traffic(), STAGES, self.arithmetic_s(), self.micro_batches)

    def can_hide_s(self):
        """Where a stage's wires would be as busy as the passes they can hide behind."""
        return zero.can_hide_s(self.traffic(), STAGES, self.arithmetic_s(), self.micro_batches)

    def lit(self):
        return STAGES == self.stage

    def emphasis(self):
        return np.where(self.lit(), 0.42, 0.16)

    def of_stage(self, values):
        """The chosen stage's."""
        return np.sum(np.where(self.lit(), values, 0.0))

    def passes_words(self):
        """How many times Ψ each stage sends, in words."""
        counts = np.sum(np.stack(zero.passes(STAGES, self.micro_batches)), axis=0)
        return [f"{show(count, 'count')}Ψ" for count in counts]

    # -- the picture ------------------------------------------------------------------------------------------------
    @part(*STATE, "stage")
    def slabs(self):
        held = self.parts_bytes()
        sides = [fig.stacked(memory.against_hbm(held[i], self.gpu)) for i in range(4)]
        bottom, top = (np.minimum(np.concatenate(side), TOP) for side in zip(*sides))
        room = fig.has_room(bottom, top, THIN)
        name, short = ([choose(room[i], words[i], "") for i in range(12)] for words in (SLABS, SHORT))
        return COLUMN | {
                "what": SLABS, "bottom": bottom, "top": top,
                "middle": fig.midpoint(bottom, np.where(bottom < CROSSED, np.minimum(top, 1.0), top)),
                "alpha": np.repeat(self.emphasis(), 3), "name": name, "short": short,
                "amount": [show(held[i, j], "bytes") for i in range(4) for j in range(3)]}

    @part(*STATE)
    def stacks(self):
        held, share = self.state_bytes(), memory.against_hbm(self.state_bytes(), self.gpu)
        top, cut = np.minimum(share, TOP), share > TOP
        return {"stage": NAMES, "x": STAGES, "wall": np.minimum(top, 1.0), "top": top,
                "past": np.where(top > 1, 1.0, 0.0),
                "amount": [f"{choose(cut[i], '↑ ', '')}{show(held[i], 'bytes')}" for i in range(4)]}

    @part(*TRAFFIC, "stage")
    def roots(self):
        """What hangs below: gathered weights, scattered gradients, and what crosses between HSDP's groups."""
        sent = self.traffic()
        bytes_sent, seconds = np.stack(sent[:3], axis=-1), np.stack(sent[3:], axis=-1)
        sides = [fig.stacked(zero.against_arithmetic(seconds[i], self.arithmetic_s())) for i in range(4)]
        top, bottom = (fig.between(ROOT, WALL, np.minimum(np.concatenate(side), DEEPEST)) for side in zip(*sides))
        room = fig.has_room(bottom, top, THIN)
        name, short = ([choose(room[i], words[i], "") for i in range(12)] for words in (SENT, SENT_SHORT))
        inside = np.where(self.shared() <= self.gpu.gpus_per_node, 1, 0)
        return COLUMN | {
                "what": SENT, "top": top, "bottom": bottom,
                "middle": fig.midpoint(bottom, top), "alpha": np.repeat(self.emphasis(), 3), "name": name,
                "short": short,
                "wire": [select(at, ["network", wire]) for at in inside for wire in ("link", "link", "network")],
                "amount": [show(bytes_sent[i, j], "bytes") for i in range(4) for j in range(3)]}

    @part(*TRAFFIC)
    def columns(self):
        seconds = self.traffic().total_s
        ratio = zero.against_arithmetic(seconds, self.arithmetic_s())
        wall = fig.between(ROOT, WALL, np.minimum(zero.against_arithmetic(self.can_hide_s(), self.arithmetic_s()),
                                                  DEEPEST))
        end = fig.between(ROOT, WALL, np.minimum(ratio, DEEPEST))
        times = [f"{choose(ratio[i] > DEEPEST, '↓ ', '')}{show(seconds[i], 'seconds')}" for i in range(4)]
        return {"stage": NAMES, "shared": SHARED, "x": STAGES, "y": np.full(4, fig.midpoint(0.0, ROOT)), "end": end,
                **EDGES, "limit": wall, "wall": np.maximum(end, wall), "seconds": seconds,
                "past": np.where(self.behind().pressure > 1, 1.0, 0.0),
                "passes": self.passes_words(), "time": times,
                "label": [f"{passes} · {time}" for passes, time in zip(self.passes_words(), times)]}

    @part("stage", shown=False)
    def chosen(self):
        return {"x": self.stage}

    @part("gpu")
    def ceiling(self):
        return {"label": f"HBM of one {self.gpu.name}, {show(self.gpu.hbm_bytes, 'bytes')}",
                "short": f"{show(self.gpu.hbm_bytes, 'bytes')} of HBM"}

    @part(*TRAFFIC)
    def floor(self):
        """How long each stage's wires may be busy: the passes they can hide behind."""
        limit = zero.against_arithmetic(self.can_hide_s(), self.arithmetic_s())
        can_hide = show(self.can_hide_s()[3], "seconds")
        return {"y": fig.between(ROOT, WALL, np.minimum(limit[3], DEEPEST)),
                "label": f"what arithmetic can hide, {can_hide}", "short": f"can hide {can_hide}"}

    @hint("slabs")
    def of_a_slab(self):
        return phrase("{column}: {amount} of {what} on each GPU", column=COLUMN["of"], what=SLABS,
                      amount=show(np.ravel(self.parts_bytes()), "bytes"))

    @hint("roots")
    def of_traffic(self):
        sent = self.traffic()
        amounts, times = (np.ravel(np.stack(half, axis=-1)) for half in (sent[:3], sent[3:]))
        return phrase("{column}, {what}: {amount} sent by each GPU in {time}", column=COLUMN["of"], what=SENT,
                      amount=show(amounts, "bytes"), time=show(times, "seconds"))

    def figure(self, sources):
        p = fig.plot((-0.5, 3.5), (LOW, HIGH), height=540)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        color, stacks, columns = fig.COLOR, sources["stacks"], sources["columns"]
        p.vbar(x="x", width=0.92, bottom=LOW, top=HIGH, source=sources["chosen"], fill_color=color["ink"],
               fill_alpha=0.05, line_color=None)
        slab = {"left": "left", "right": "right", "bottom": "bottom", "top": "top", "fill_alpha": "alpha"}
        p.quad(**slab, source=sources["slabs"], fill_color=color["hbm"], line_color=color["hbm"], line_width=1.2)
        hue = fig.hues("wire", {"link": "link", "network": "network"})
        p.quad(**slab, source=sources["roots"], fill_color=hue, line_color=hue, line_width=1.2)
        for source, start, end in ((stacks, "wall", "top"), (columns, "end", "wall")):
            p.vbar(x="x", width=2 * HALF, bottom=start, top=end, source=source, **fig.OVER | {"line_alpha": "past"})
        for name in ("slabs", "roots"):
            for width, column in (("wide", "name"), ("narrow", "short")):
                fig.only(width, p.text("x", "middle", text=column, source=sources[name], text_align="center",
                                       **fig.TEXT))
        p.text("x", "top", text="amount", source=stacks, text_align="center", y_offset=-11, **fig.BOLD)
        p.text("x", "y", text="stage", source=columns, text_align="center", y_offset=-9, **fig.BOLD)
        fig.only("wide", p.text("x", "y", text="shared", source=columns, text_align="center", y_offset=9, **fig.LABEL))
        self.walls(p, sources)
        fig.only("wide", p.text("x", "end", text="label", source=columns, text_align="center", y_offset=12, **fig.TEXT))
        for column, down in (("passes", 11), ("time", 27)):
            fig.only("narrow", p.text("x", "end", text=column, source=columns, text_align="center", y_offset=down,
                                      **fig.TEXT))
        return p

    @staticmethod
    def walls(p, sources):
        """The HBM above, one line; below, in each column, the arithmetic that its wires can hide behind."""
        color, over_bars = fig.COLOR, {"background_fill_color": fig.COLOR["panel"], "background_fill_alpha": 0.85}
        dashed = {"line_width": 2, "line_dash": [6, 4]}
        p.segment(-0.5, 1.0, 3.5, 1.0, line_color=color["hbm"], **dashed)
        p.segment("from", "limit", "to", "limit", source=sources["columns"], line_color=color["compute"], **dashed)
        for name, height, hue, offset in (("ceiling", 1.0, "hbm", -10), ("floor", "y", "compute", 11)):
            for width, column in (("wide", "label"), ("narrow", "short")):
                style = fig.BOLD | {"text_color": color[hue]} | over_bars
                fig.only(width, p.text(3.48, height, text=column, source=sources[name], text_align="right",
                                       y_offset=offset, **style))

    # -- the words --------------------------------------------------------------------------------------------------
    def stage_name(self):
        return select(self.stage, NAMES)

    def held(self):
        return self.of_stage(self.state_bytes())

    def wire_s(self):
        return self.of_stage(self.traffic().total_s)

    @readout("State per GPU")
    def state(self):
        return show(self.held(), "bytes"), self.held() > self.gpu.hbm_bytes

    @readout("Largest model by its state")
    def largest(self):
        largest = zero.largest_params(self.gpu.hbm_bytes, self.recipe, self.shared(), STAGES)
        return show(self.of_stage(largest), "params")

    @readout("Sent per GPU and step")
    def sent(self):
        return show(self.of_stage(self.traffic().total_bytes), "bytes")

    @readout("Wires busy")
    def wires(self):
        return show(self.wire_s(), "seconds"), self.of_stage(self.behind().pressure) > 1

    @readout("Could hide from", help="The tokens in a micro-batch at which each pass lasts as long as its traffic")
    def hides_from(self):
        needed = zero.tokens_to_hide(self.tokens, self.of_stage(self.behind().pressure), 1.0)
        return show(needed, "tokens")

    @regime(target=True)
    def little_work(self):
        more = choose(self.group < self.ranks, "spread only what crosses between the groups",
                      "do not help, since each gathers anew")
        return (self.stage >= 3) & (self.of_stage(self.behind().pressure) > 1), (
            "You found it: there is too little work behind the wires. Stage 3 keeps the wires busy for "
            f"{show(self.wire_s(), 'seconds')} and the GPU computes for {show(self.arithmetic_s(), 'seconds')}; in at "
            f"least one pass the wires outlast the arithmetic. First response: more tokens in a micro-batch, "
            f"{self.hides_from()} at least; "
            f"more micro-batches {more}. Or a smaller shard group on faster wires (HSDP), or stage 1 where it fits.")

    @regime()
    def too_large(self):
        needed = self.of_stage(zero.ranks_to_fit(self.size, self.gpu.hbm_bytes, self.recipe, STAGES))
        return self.held() > self.gpu.hbm_bytes, (
            f"The state does not fit: {self.stage_name()} keeps {show(self.held(), 'bytes')} on a GPU of "
            f"{show(self.gpu.hbm_bytes, 'bytes')}. First response: "
            + choose(needed < 1, "a higher stage, since this one would not fit on any number of GPUs.",
                     f"share each copy among at least {show(needed, 'count')} GPUs"
                     + choose(self.stage < 3, ", or take a higher stage.", ".")))

    def summary(self):
        held = [show(amount, "bytes") for amount in self.state_bytes()]
        return (f"On {show(self.ranks, 'count')} GPUs {show(self.size, 'params')} parameters keep {held[0]} of state "
                f"on each under data parallelism, {held[1]} under ZeRO stage 1, {held[2]} under stage 2 and {held[3]} "
                f"under stage 3; in a step of {show(self.arithmetic_s(), 'seconds')} of arithmetic, "
                f"{self.stage_name()} keeps the wires busy for {show(self.wire_s(), 'seconds')}.")
