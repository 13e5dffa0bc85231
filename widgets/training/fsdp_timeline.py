"""A step of FSDP, layer by layer: when the wire and the arithmetic are busy, and what is in memory
meanwhile."""

import numpy as np

from engine import catalog
from engine.executed import fully_sharded, zero
from engine.executed.fully_sharded import BACKWARD, FORWARD, GATHER, MOST_LAYERS, NOT_OWN, SCATTER
from engine.mechanism import matmul, start_ups
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, select, show, sold
from widgets.kit.widget import Widget, hint, once, part, readout, regime

ROUND = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.4, 8.0)
VIEWS_S = [m * 10.0**e for e in range(-3, 3) for m in ROUND]
VIEWS_BYTES = [m * 10.0**e for e in range(8, 13) for m in ROUND]
NAMES = [f"{n}" for n in range(MOST_LAYERS + 1)]
BLOCK, NARROW_BLOCK = 0.022, 0.055  # a block below this share of the axis has no room for its number
# Places from the bottom up; the memory below has an axis of its own, which starts at 0 and whose view ends at
# ROOF.
LOW, ROOF, KEY, FREE, HIGH = -4.0, 186.0, 208.0, 296.0, 440.0
# of the lanes, by kind of task: bottom, middle, top
LANES = [(394.0, 407.0, 420.0), (336.0, 349.0, 362.0), (336.0, 349.0, 362.0), (234.0, 247.0, 260.0)]
TITLES = np.array([LANES[GATHER][2], LANES[FORWARD][2], FREE + 9, LANES[SCATTER][2]])
SLABS = {"state": 1.0, "gathered": 0.75, "gradients": 0.45, "activations": 0.2}  # and how dark they are
KEY_AT = [(4, 18), (62, 76), (146, 160), (232, 246)]  # where their swatches and names begin, in pixels
MODELS = [catalog.model(key) for key in ("llama3.2-1b", "llama3-8b", "llama3-70b", "llama3.1-405b")]
GPUS = [catalog.gpu(key) for key in ("a100-40", "a100-80", "h100-sxm", "h200", "b200")]
NODE = catalog.node("dgx-h100")
EVERY = ("tokens", "wire_bytes_per_s", "prefetch", "layers", "model", "ranks", "recompute", "gpu", "alpha_s")


def by_kind(kind, values):
    """What each task has for its kind."""
    return np.where(
        kind == GATHER,
        values[GATHER],
        np.where(
            kind == FORWARD, values[FORWARD], np.where(kind == BACKWARD, values[BACKWARD], values[SCATTER])
        ),
    )


class FsdpTimeline(Widget):
    question = "When does FSDP gather, when does it wait, and what does it hold?"
    tokens = Number("Tokens per GPU", 4096, 128, 65536, whole=True, marks=(512, 1024, 2048, 8192, 16384))
    wire_bytes_per_s = Number(
        "Wire, one way",
        400e9,
        5e9,
        900e9,
        family="bytes_per_s",
        marks=(12.5e9, 50e9, 100e9, 200e9, 450e9),
        help="Bandwidth per GPU of a ring through the GPUs that share the state",
    )
    prefetch = Number(
        "Prefetch depth",
        1,
        0,
        4,
        log=False,
        stops=5,
        whole=True,
        help="How many layers ahead of its use a layer's weights are gathered",
    )
    layers = Number("Layers", 8, 2, MOST_LAYERS, log=False, stops=MOST_LAYERS - 1, whole=True, more=True)
    model = Choice("Layers of", MODELS, "llama3-8b", more=True)
    recompute = Switch("Recompute activations", False, more=True)
    ranks = Number(
        "GPUs that share the state", 64, 2, 1024, stops=[2**k for k in range(1, 11)], whole=True, more=True
    )
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    alpha_s = Number(
        "Start-up of a hop",
        start_ups.mean_hop_s(NODE),
        1e-7,
        1e-4,
        family="seconds",
        more=True,
        help="On average: in nodes of eight, seven hops of a ring are over NVLink and one over a card",
    )

    own = tuple(NOT_OWN)
    given = {"own": own}  # a reader's step, as fully_sharded.own_order reads it

    presets = {
        "8 layers of Llama 3 8B": {},
        "Nothing ahead": {"prefetch": 0},
        "… recomputed": {"recompute": "on"},
        "All 32 layers": {"layers": 32},
        "One 400 Gb/s card a node, 16,384 tokens": {"wire_bytes_per_s": 50e9, "tokens": 16384},
        "70B's layers in one node": {
            "model": "llama3-70b",
            "ranks": 8,
            "wire_bytes_per_s": 450e9,
            "alpha_s": start_ups.hop_s(NODE.link),
            "tokens": 8192,
        },
    }
    break_it = "Slow the wire, or take tokens away, until the wire sets the pace whatever is gathered ahead."
    assumptions = (
        "One micro-batch through equal layers, without embedding and output layer. Forward 2 and backward 4 "
        "FLOPs a parameter and token at the rate that the GPU reaches on large products, recomputation 2 "
        "more; bf16 weights and gradients; FlashAttention. Gathers and reduce-scatters are rings on one "
        "stream, in the order of issue. Each layer is gathered twice; weights are freed after each use. Left "
        "out: what NCCL takes from the arithmetic, the optimizer, fragmentation."
    )
    formula = (
        r"$$\tau_\text{gather} = (N-1)\,\alpha + \frac{N-1}{N}\frac{2P/L}{W} \qquad \tau_\text{forward} = "
        r"\frac{2\,(P/L)\,T}{C_k} \qquad T > \frac{C_k}{W}\cdot\frac{N-1}{N}$$"
        "\n\n"
        r"for each of $L$ layers with $P$ parameters together, $T$ tokens on each of $N$ GPUs, a wire $W$ "
        r"and kernels at a rate $C_k$. The third says when a gather is shorter than the forward pass that "
        r"hides it; a gather and a reduce-scatter against the backward pass give the same. With $k$ layers "
        r"ahead at most $k+1$ are gathered. The picture is a simulation of two streams (FSDP, "
        r"arXiv:2304.11277, section 3.3): a task starts when the one before it on its stream and all that it "
        r"needs have ended."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def flops_per_s(self):
        return matmul.product_flops_per_s(self.gpu)

    def layer(self):
        again = np.where(self.recompute, 1.0, 0.0)
        return fully_sharded.transformer_layer(
            self.model,
            self.tokens,
            self.ranks,
            self.flops_per_s(),
            self.wire_bytes_per_s,
            self.alpha_s,
            again,
        )

    @once
    def run(self):
        return fully_sharded.run(self.layer(), self.layers, self.prefetch, self.own)

    @once
    def without_prefetch(self):
        return fully_sharded.run(self.layer(), self.layers, 0)

    def is_own(self):
        """Whether a reader's step is drawn."""
        return self.run()["own"] > 0

    def state_bytes(self):
        return fully_sharded.state_bytes(self.model, self.layers, self.ranks)

    def peak_bytes(self):
        return np.sum(np.stack([self.run()["peak_bytes"], self.state_bytes()]))

    def needed_tokens(self):
        return zero.tokens_to_hide(self.tokens, self.run()["network_s"], self.run()["compute_s"])

    def wire_bound(self):
        return self.run()["network_s"] > self.run()["compute_s"]

    def view_s(self):
        return fig.fitting_view(self.run()["total_s"], VIEWS_S, headroom=1.02)

    def view_bytes(self):
        return fig.fitting_view(self.peak_bytes(), VIEWS_BYTES, headroom=1.16)

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*EVERY)
    def tasks(self):
        step = self.run()
        kind, start, end = step["kind"], step["start_s"], step["end_s"]
        rooms = [end - start > self.view_s() * share for share in (BLOCK, NARROW_BLOCK)]
        number, narrow = (select(np.where(room, step["layer"], 0), ["", *NAMES[1:]]) for room in rooms)
        low, middle, high = (by_kind(kind, places) for places in zip(*LANES))
        return {
            "what": select(kind, list(fully_sharded.KINDS)),
            "layer": step["layer"],
            "left": start,
            "right": end,
            "bottom": low,
            "middle": middle,
            "top": high,
            "center": fig.midpoint(start, end),
            "number": number,
            "narrow": narrow,
        }

    @part(*EVERY)
    def waits(self):
        """Where the wire works and the arithmetic is idle."""
        step = self.run()
        low, _, high = LANES[FORWARD]
        return {
            "left": step["idle_from_s"],
            "right": step["idle_to_s"],
            "kind": step["idle_kind"],
            "layer": step["idle_layer"],
            "bottom": np.full_like(step["idle_to_s"], low),
            "top": np.full_like(step["idle_to_s"], high),
        }

    @part(*EVERY)
    def frees(self):
        """Where a layer's gathered weights are dropped."""
        step = self.run()
        used = (step["kind"] == FORWARD) | (step["kind"] == BACKWARD)
        return {
            "x": step["end_s"],
            "layer": step["layer"],
            "y": np.full_like(step["end_s"], FREE),
            "seen": np.where(used, 1.0, 0.0),
        }

    @part(*EVERY)
    def memory(self):
        step = self.run()
        start = step["level_s"]
        state = np.full_like(start, self.state_bytes())
        held = [step[f"{name}_bytes"] for name in ("gathered", "gradients", "activations")]
        _, tops = fig.stacked(np.stack([state, *held]))
        return {
            "left": start,
            "right": np.append(start[1:], start[-1:]),
            "bottom": np.zeros_like(start),
            "state": tops[0],
            "gathered": tops[1],
            "gradients": tops[2],
            "top": tops[3],
        }

    @part(*EVERY)
    def peak(self):
        over = self.peak_bytes() > self.gpu.hbm_bytes
        return {
            "bytes": self.peak_bytes(),
            "label": f"peak {show(self.peak_bytes(), 'bytes')}"
            + choose(over, f", over one GPU's {sold(self.gpu.hbm_bytes)}", ""),
        }

    @part(*EVERY, shown=False)
    def titles(self):
        step, at = self.run(), self.layer()
        gather, scatter = show(at.gather_s, "seconds"), show(at.scatter_s, "seconds")
        wait = choose(step["exposed_s"] > 0, f"{show(step['exposed_s'], 'seconds')} of waiting", "no waiting")
        return {
            "y": TITLES,
            "text": [
                f"gather: {gather} a layer of {self.model.name}",
                f"compute: {show(step['compute_s'], 'seconds')}, and {wait} for the wire",
                "free: gathered weights are dropped",
                f"reduce-scatter: {scatter} a layer, on the same wire",
            ],
            "narrow": [f"gather: {gather} a layer", f"compute, {wait}", "free", f"reduce-scatter: {scatter}"],
        }

    def ranges(self):
        return {
            "x": [0.0, self.view_s()],
            "bytes": [self.view_bytes() * (LOW / ROOF), self.view_bytes() * (HIGH / ROOF)],
        }

    @hint("tasks")
    def of_a_task(self):
        step = self.run()
        found = step["waits_kind"]
        waits = select(
            np.where(
                found < 0,
                0,
                np.where(
                    found == GATHER,
                    1,
                    np.where(
                        found == FORWARD,
                        2,
                        np.where(found == BACKWARD, 3, np.where(found == SCATTER, 4, found)),
                    ),
                ),
            ),
            [
                "It starts at once.",
                "It waited for the gather of layer ",
                "It waited for the forward pass of layer ",
                "It waited for the backward pass of layer ",
                "It waited for the reduce-scatter of layer ",
            ],
        )
        return phrase(
            "{what}, layer {n}: {time}. {waits}{of}",
            what=select(step["kind"], ["Gather", "Forward pass", "Backward pass", "Reduce-scatter"]),
            n=select(step["layer"], NAMES),
            time=show(step["last_s"], "seconds"),
            waits=waits,
            of=select(step["waits_layer"], ["", *(f"{name}." for name in NAMES[1:])]),
        )

    @hint("waits")
    def of_a_wait(self):
        step = self.run()
        return phrase(
            "Exposed: {time} in which the arithmetic waits for the {what} of layer {n}.",
            time=show(step["idle_s"], "seconds"),
            what=select(step["idle_kind"], list(fully_sharded.KINDS)),
            n=select(step["idle_layer"], NAMES),
        )

    @hint("memory")
    def of_a_moment(self):
        step = self.run()
        return phrase(
            "From {time}: {gathered} of gathered weights, {gradients} of gradients, {kept} of activations.",
            time=show(step["level_s"], "seconds"),
            gathered=show(step["gathered_bytes"], "bytes"),
            gradients=show(step["gradients_bytes"], "bytes"),
            kept=show(step["activations_bytes"], "bytes"),
        )

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, VIEWS_S[6]), (LOW, HIGH), height=530, x_title="time from the start of the step")
        fig.second_scale(p, "bytes")
        fig.moving_ticks(p.xaxis[0], "seconds")
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        p.quad(
            left="left",
            right="right",
            bottom=LANES[SCATTER][0],
            top=LANES[GATHER][2],
            source=sources["waits"],
            fill_color=color["idle"],
            fill_alpha=0.14,
            line_color=None,
        )
        p.quad(**fig.BOX, source=sources["waits"], **fig.IDLE)
        hue, ink = (
            fig.hues("what", dict(zip(fully_sharded.KINDS, tokens)))
            for tokens in (
                ("network", "compute", "compute-deep", "network"),
                ("on-work", "on-work", "on-deep", "on-work"),
            )
        )
        p.quad(**fig.BOX, source=sources["tasks"], fill_color=hue, line_color=color["panel"], line_width=0.6)
        for width, column in (("wide", "number"), ("narrow", "narrow")):
            fig.only(
                width,
                p.text(
                    "center",
                    "middle",
                    text=column,
                    source=sources["tasks"],
                    text_align="center",
                    **fig.TEXT | {"text_color": ink},
                ),
            )
        p.scatter(
            "x",
            "y",
            source=sources["frees"],
            marker="inverted_triangle",
            size=9,
            fill_color=color["hbm"],
            fill_alpha="seen",
            line_color=None,
        )
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(
                width,
                p.text(0, "y", text=column, source=sources["titles"], y_offset=-11, x_offset=2, **fig.TEXT),
            )
        self.hold(p, sources)
        return p

    @staticmethod
    def hold(p, sources):
        """The memory, its peak and the names of its parts."""
        color, below = fig.COLOR, "bottom"
        for column, (_, alpha) in zip(("state", "gathered", "gradients", "top"), SLABS.items()):
            p.quad(
                left="left",
                right="right",
                bottom=below,
                top=column,
                source=sources["memory"],
                y_range_name="bytes",
                fill_color=color["hbm"],
                fill_alpha=alpha,
                line_color=None,
            )
            below = column
        for (swatch_at, name_at), (name, alpha) in zip(KEY_AT, SLABS.items()):
            swatch = fig.TEXT | {"text_color": color["hbm"], "text_outline_color": color["hbm"]}
            p.text(0, KEY, text=["■"], x_offset=swatch_at, text_alpha=alpha, **swatch)
            p.text(0, KEY, text=[name], x_offset=name_at, **fig.LABEL)
        p.step(
            "left",
            "top",
            source=sources["memory"],
            mode="after",
            y_range_name="bytes",
            line_color=color["hbm"],
        )
        at_peak = {"source": sources["peak"], "y_range_name": "bytes"}
        p.ray(0, "bytes", length=0, angle=0, **at_peak, line_color=color["ink-faint"], line_dash=[6, 4])
        p.text(0, "bytes", text="label", **at_peak, x_offset=2, y_offset=-10, **fig.BOLD)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Step", rest=True)
    def step(self):
        return show(self.run()["total_s"], "seconds")

    @readout("Exposed")
    def exposed(self):
        step = self.run()
        return (
            f"{show(step['exposed_s'], 'seconds')}, {show(step['exposed_share'], 'percent', 2)}",
            step["exposed_share"] > 0.25,
        )

    @readout("With nothing ahead")
    def alone(self):
        return show(self.without_prefetch()["total_s"], "seconds")

    @readout("Peak memory", rest=True)
    def held(self):
        return show(self.peak_bytes(), "bytes"), self.peak_bytes() > self.gpu.hbm_bytes

    @readout(
        "Tokens that hide all but both ends",
        help="The first gather and the last reduce-scatter have no arithmetic to hide behind",
    )
    def needed(self):
        return show(self.needed_tokens(), "tokens"), self.wire_bound()

    @regime(target=True)
    def wire_sets_the_pace(self):
        step = self.run()
        return self.wire_bound(), (
            f"You found it: the wire sets the pace. It works for {show(step['network_s'], 'seconds')} and "
            f"the arithmetic for {show(step['compute_s'], 'seconds')}; {show(step['exposed_s'], 'seconds')} "
            "are exposed, and a deeper prefetch costs memory and wins nothing. First response: "
            f"{self.needed()[0]} or more in a micro-batch, or a shard group on a faster wire (HSDP)."
        )

    @regime()
    def nothing_ahead(self):
        return (self.prefetch < 1) & ~self.wire_bound(), (
            "Each gather starts when the layer before it is done, so that the arithmetic waits for every one "
            f"of them: {show(self.run()['exposed_s'], 'seconds')} in all. First response: gather one layer "
            "ahead."
        )

    @regime()
    def activations_fill_it(self):
        return self.peak_bytes() > self.gpu.hbm_bytes, (
            f"The peak of {show(self.peak_bytes(), 'bytes')} passes what one {self.gpu.name} has, "
            f"{sold(self.gpu.hbm_bytes)}, though the state is only {show(self.state_bytes(), 'bytes')}: "
            "sharding does not touch activations. First response: recompute them, or a smaller micro-batch."
        )

    def summary(self):
        step = self.run()
        ahead = f"Gathered {show(self.prefetch, 'count')} ahead"
        order = choose(self.prefetch > 0, ahead, "With nothing ahead")
        return (
            f"{choose(self.is_own(), 'In your order', order)}, {show(self.layers, 'count')} layers "
            f"take {show(step['total_s'], 'seconds')}, {show(step['exposed_s'], 'seconds')} of it waiting "
            f"for the wire, and hold {show(self.peak_bytes(), 'bytes')} at the peak."
        )


FsdpTimeline.serve_as(__name__)
