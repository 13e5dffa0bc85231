"""A data-parallel step on two streams: the backward pass, and the AllReduce of its gradients behind it."""

import numpy as np

from engine import catalog
from engine.base.units import MIB
from engine.catalog import models
from engine.executed import data_parallel
from engine.executed.data_parallel import EMBEDDING, FORWARD_PASS, NOT_OWN
from engine.mechanism import flops, hiding, matmul, start_ups
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, counted, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

VIEWS_S = [step * 10.0**power for power in (-2, -1, 0) for step in (1, 1.5, 2, 3, 5, 7.5)]
VIEWS_S += [10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 180.0, 300.0, 600.0]
PASSES = {"forward": "compute", "backward": "compute-deep"}
COMPUTE, NETWORK = (1.2, 1.95), (0.0, 0.75)  # bottom and top of the two lanes
EVERY = ["model", "tokens", "wire_bytes_per_s", "bucket", "ranks", "alpha_s", "gpu", "gradient_bytes"]
NUMBERS = ["", *map(str, range(1, data_parallel.MOST_LAYERS))]
LARGEST = 8192 * MIB
NOT_OF_YOURS = "not for the puzzle"  # what is said of the model where a reader's buckets are drawn
BUCKET_STOPS = sorted(
    {
        25 * MIB,
        *(
            MIB * part * 2**power
            for power in range(14)
            for part in (1, 1.25, 1.5, 1.75)
            if MIB * part * 2**power <= LARGEST
        ),
    }
)
WIRE = catalog.link("ib-ndr")
ETHERNET = catalog.link("eth-100")
FULL_NODES = {
    "wire_bytes_per_s": 400e9,
    "ranks": 64,
    "alpha_s": start_ups.mean_hop_s(catalog.node("dgx-h100")),
}


class DdpOverlap(Widget):
    question = "Does the AllReduce hide behind the backward pass?"
    tokens = Number(
        "Tokens per GPU",
        16384,
        128,
        131072,
        family="tokens",
        marks=(1024, 2048, 4096, 8192, 32768),
        help="Per micro-batch",
    )
    wire_bytes_per_s = Number(
        "Wire, one way",
        WIRE.bytes_per_s,
        1.25e9,
        450e9,
        family="bytes_per_s",
        marks=(12.5e9, 25e9, 100e9, 400e9),
        help="Bandwidth of a ring for each GPU",
    )
    bucket = Number(
        "Bucket",
        25 * MIB,
        MIB,
        LARGEST,
        family="bytes_binary",
        stops=BUCKET_STOPS,
        help="PyTorch's bucket_cap_mb; its default is 25",
    )
    model = Choice(
        "Model",
        [catalog.model(key) for key in ("gpt2-xl", "llama3.2-1b", "llama3-8b", "llama3-70b")],
        "llama3-8b",
        more=True,
    )
    ranks = Number("GPUs", 256, 2, 4096, whole=True, more=True, stops=[2**k for k in range(1, 13)])
    gpu = Choice(
        "GPU", [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")], "h100-sxm", more=True
    )
    alpha_s = Number(
        "Start-up of a hop",
        start_ups.hop_s(WIRE),
        1e-7,
        1e-4,
        family="seconds",
        more=True,
        help="Over a card for each GPU; 1 µs on average in full nodes, where most hops are over NVLink",
    )
    gradient_bytes = Choice(
        "Gradients sent in", {"bf16": ("bf16", 2.0), "fp32": ("fp32", 4.0)}, "bf16", more=True
    )

    own = tuple(NOT_OWN)
    given = {"own": own}  # a reader's buckets, as data_parallel.own_step reads them

    presets = {
        "8B, one GPU in each node": {},
        "Buckets of 96 MiB": {"bucket": 96 * MIB},
        "Eight full nodes": FULL_NODES,
        "100 Gb/s Ethernet": {"wire_bytes_per_s": ETHERNET.bytes_per_s, "tokens": 65536},
        "70B, 100 GB/s": {"model": "llama3-70b", "wire_bytes_per_s": 100e9, "bucket": 1024 * MIB},
    }
    break_it = "Put a small batch on slow Ethernet: 1,024 tokens on 12.5 GB/s. Which bucket saves it?"
    assumptions = (
        "Forward $2PT$ and backward $4PT$ FLOPs at the rate that the GPU reaches on large products, spread "
        "over the layers by their weights; an embedding takes no time. Tensors become ready one by one and "
        "fill buckets by PyTorch's rule: at its default of 25 MiB the first one has 1 MiB, else it is like "
        "the others. Each bucket is one ring AllReduce, and they go one after the other. Left out: what NCCL "
        "takes from the arithmetic, the optimizer, trees (fewer start-ups for many GPUs). Thin lines lead "
        "from a full bucket to its AllReduce."
    )
    formula = (
        r"$$\tau_\text{AllReduce} = 2(N-1)\,\alpha + \frac{2(N-1)}{N}\frac{S}{W} \qquad "
        r"T > \frac{C_k}{W} \cdot \frac{N-1}{N} \cdot \frac{S}{2P}$$"
        "\n\n"
        "The right one says when the bytes alone fit behind the backward pass: $T$ tokens on each GPU, $W$ "
        r"the wire, $C_k$ the rate of the kernels, $S$ the bytes of the gradient of $P$ parameters, $2P$ in "
        r"bf16. The best bucket is near $\sqrt{S (N-1)\,\alpha W}$ if these "
        "bytes take as long as the backward pass, and smaller where the pass is longer. The picture is "
        "neither formula but a simulation of two CUDA streams: a task starts when the one before it on its "
        "stream and all that it needs have ended."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def flops_per_s(self):
        return matmul.product_flops_per_s(self.gpu)

    @once
    def run(self):
        return data_parallel.simulate_step(
            self.model,
            self.tokens,
            self.ranks,
            self.flops_per_s(),
            self.wire_bytes_per_s,
            self.alpha_s,
            self.bucket,
            bytes_per_gradient=self.gradient_bytes,
            own=self.own,
        )

    def is_own(self):
        """Whether a reader's buckets are drawn."""
        return self.run()["own"] > 0

    def needed_tokens(self):
        return hiding.tokens_to_hide(
            self.ranks, self.wire_bytes_per_s, self.flops_per_s(), self.gradient_bytes
        )

    def needed_with_start_ups(self):
        """Tokens whose backward pass lasts as long as all AllReduces: what the bucket's size adds."""
        return hiding.tokens_lasting(self.run()["wire_s"], models.parameters(self.model), self.flops_per_s())

    def all_gradient_bytes(self):
        return data_parallel.gradient_bytes(models.parameters(self.model), self.gradient_bytes)

    def backward_s(self):
        return flops.backward_flops(models.parameters(self.model), self.tokens) / self.flops_per_s()

    def best_bucket(self):
        return data_parallel.best_bucket_bytes(
            self.all_gradient_bytes(), self.ranks, self.wire_bytes_per_s, self.alpha_s, self.backward_s()
        )

    def start_ups_s(self):
        return data_parallel.start_ups_s(self.run()["buckets"], self.ranks, self.alpha_s)

    def exposed_share(self):
        found = self.run()
        return found["exposed_s"] / found["step_s"]

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*EVERY)
    def layers(self):
        found = self.run()
        layer = found["layer"]
        return {
            "left": found["layer_start_s"],
            "right": found["layer_end_s"],
            "duration_s": found["layer_s"],
            "bottom": np.full_like(layer, COMPUTE[0]),
            "top": np.full_like(layer, COMPUTE[1]),
            "layer": layer,
            "pass": select(np.where(layer == FORWARD_PASS, 0, 1), list(PASSES)),
        }

    @part(*EVERY)
    def buckets(self):
        found = self.run()
        length_s = found["bucket_s"]
        return {
            "left": found["bucket_start_s"],
            "right": found["bucket_end_s"],
            "duration_s": length_s,
            "bottom": np.full_like(length_s, NETWORK[0]),
            "top": np.full_like(length_s, NETWORK[1]),
            "full_s": found["bucket_full_s"],
            "bucket_bytes": found["bucket_bytes"],
        }

    @part(*EVERY)
    def idle(self):
        found = self.run()
        seen = found["exposed_s"] > 0
        near_end = found["compute_s"] > self.view_s() * 0.4
        exposed, last = (show(found[name], "seconds") for name in ("exposed_s", "last_s"))
        return {
            "left": found["compute_s"],
            "right": found["step_s"],
            "bottom": COMPUTE[0],
            "top": COMPUTE[1],
            "floor": NETWORK[0],
            "at": np.where(near_end, found["step_s"], found["compute_s"]),
            "align": choose(near_end, "right", "left"),
            "edge": self.view_s(),
            "text": choose(
                seen, f"exposed: {exposed}, of which the last bucket's {last} never hide", "all hidden"
            ),
            "short": choose(seen, f"exposed: {exposed}, last bucket {last}", "all hidden"),
        }

    @part(*EVERY)
    def titles(self):
        found = self.run()
        compute, wire = show(found["compute_s"], "seconds"), show(found["wire_s"], "seconds")
        buckets = show(found["buckets"], "count")
        return {
            "y": np.array([COMPUTE[1], NETWORK[0]]),
            "shift": np.array([-14.0, 14.0]),
            "text": [
                choose(
                    self.is_own(),
                    f"compute stream: the puzzle's backward pass, {compute}",
                    f"compute stream: forward, then backward from the last layer, {compute}",
                ),
                f"communication stream: {buckets} AllReduces, {wire}",
            ],
            "narrow": [f"compute: {compute}", f"{buckets} AllReduces: {wire}"],
        }

    def view_s(self):
        return fig.fitting_view(self.run()["step_s"], VIEWS_S, headroom=1.02)

    def ranges(self):
        return {"x": [0.0, self.view_s()]}

    def named(self, layer):
        """A layer's name, for columns of numbers as the simulation gives them."""
        kind = np.where(layer == EMBEDDING, 1.0, np.where(layer == FORWARD_PASS, 2.0, 0.0))
        kind = np.where(layer > self.model.depth, 3.0, kind)
        kinds = ["layer ", "the embedding", "all layers", "the output layer"]
        return phrase(
            "{kind}{number}",
            kind=select(kind, kinds),
            number=select(np.where(kind == 0.0, layer, 0.0), NUMBERS),
        )

    @hint("layers")
    def of_a_layer(self):
        found, last = self.run(), self.model.depth
        forward = np.where(found["layer"] == FORWARD_PASS, 1.0, 0.0)
        return phrase(
            "{pass_} {what}: {time}. {waits}",
            time=show(found["layer_s"], "seconds"),
            pass_=select(forward, ["Backward pass,", "Forward pass,"]),
            what=self.named(found["layer"]),
            waits=select(
                np.where(found["layer"] > last, 2.0, forward),
                ["Waits for the layer above.", "Waits for nothing.", "Waits for the loss."],
            ),
        )

    @hint("buckets")
    def of_a_bucket(self):
        found = self.run()
        waits = np.where(found["bucket_waits_s"] > 0, 1.0, 0.0)
        return phrase(
            "AllReduce of {size}: {time}. Full with {layer} at {full}; starts {later} later{why}.",
            size=show(found["bucket_bytes"], "bytes"),
            time=show(found["bucket_s"], "seconds"),
            layer=self.named(found["bucket_layer"]),
            full=show(found["bucket_full_s"], "seconds"),
            later=show(found["bucket_waits_s"], "seconds"),
            why=select(waits, ["", ", after the one before it"]),
        )

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, 1.5), (-0.42, 2.62), height=330, x_title="time from the start of the step")
        p.min_border_left = p.min_border_right = 20  # half of the first and of the last tick's words
        fig.moving_ticks(p.xaxis[0], "seconds")
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        p.segment(
            "full_s",
            COMPUTE[0],
            "left",
            NETWORK[1],
            source=sources["buckets"],
            line_color=color["network"],
            line_alpha=0.55,
        )
        p.quad(
            **fig.BOX,
            source=sources["layers"],
            fill_color=fig.hues("pass", PASSES),
            line_color=color["panel"],
            line_width=0.6,
        )
        p.quad(
            **fig.BOX,
            source=sources["buckets"],
            fill_color=color["network"],
            line_color=color["panel"],
            line_width=0.6,
        )
        p.quad(**fig.BOX, source=sources["idle"], **fig.IDLE)
        p.segment(
            "left", "floor", "left", "top", source=sources["idle"], line_color=color["ink"], line_dash=[4, 4]
        )
        above = {"y_offset": -36, "source": sources["idle"]} | fig.BOLD
        fig.only("wide", p.text("at", "top", text="text", text_align="align", **above))
        fig.only("narrow", p.text("edge", "top", text="short", text_align="right", **above))
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(
                width,
                p.text(
                    0, "y", text=column, source=sources["titles"], y_offset="shift", x_offset=2, **fig.TEXT
                ),
            )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Step", rest=True)
    def step(self):
        return show(self.run()["step_s"], "seconds")

    @readout("Exposed")
    def exposed(self):
        return show(self.run()["exposed_s"], "seconds"), self.exposed_share() > 0.1

    @readout("Spent on start-ups", rest=True)
    def start_ups(self):
        return show(self.start_ups_s(), "seconds")

    @readout("Best bucket, by the rule")
    def best(self):
        return choose(self.is_own(), NOT_OF_YOURS, show(self.best_bucket(), "bytes_binary"))

    @readout(
        "Tokens that hide all but the last bucket",
        help="A backward pass as long as all AllReduces, start-ups included; the rule counts the bytes alone",
    )
    def needed(self):
        needed = self.needed_tokens()
        with_start_ups = show(self.needed_with_start_ups(), "tokens")
        words = f"{with_start_ups}; for the bytes alone {show(needed, 'tokens')}"
        words = choose(self.is_own(), NOT_OF_YOURS, words)
        return words, (needed > self.tokens) & (self.run()["own"] < 1)

    def bytes_show(self):
        """Whether the bytes alone outlast the backward pass."""
        return (self.needed_tokens() > self.tokens) & (self.run()["own"] < 1)

    def has_too_many(self):
        """Whether start-ups are much of what the step waits for, and larger buckets would save some."""
        found = self.run()
        outlasts = (found["wire_s"] > self.backward_s()) & (found["own"] < 1)
        return (self.start_up_share() > 0.2) & outlasts & (self.best_bucket() > self.bucket)

    def start_up_share(self):
        return self.start_ups_s() / self.run()["wire_s"]

    @regime(target=True)
    def wire_bound(self):
        best, share = show(self.best_bucket(), "bytes_binary"), show(self.start_up_share(), "percent", 2)
        larger = f" Buckets of {best} save start-ups, now {share} of the wire's time, and nothing else."
        return self.bytes_show(), (
            f"You found the wire's wall: at {show(self.wire_bytes_per_s, 'bytes_per_s')} the bytes alone "
            f"need {show(self.needed_tokens(), 'tokens')} on each GPU to hide, and there are "
            f"{show(self.tokens, 'tokens')}. No bucket hides them. First response: a larger micro-batch. "
            "Accumulating under no_sync hides no more, but the exposed time then comes once in many "
            f"micro-batches.{choose(self.has_too_many(), larger, '')}"
        )

    @regime()
    def too_many(self):
        """Of buckets, where that is the whole trouble."""
        found = self.run()
        return self.has_too_many() & ~self.bytes_show(), (
            f"Start-ups are {show(self.start_up_share(), 'percent', 2)} of the wire's time, and the wire is "
            f"what the step waits for: {show(found['buckets'], 'count')} buckets are too many. First "
            f"response: larger ones, about {show(self.best_bucket(), 'bytes_binary')}."
        )

    def summary(self):
        found = self.run()
        yours = choose(self.is_own(), "As you cut it, ", "")
        return (
            f"{yours}{counted(found['buckets'], 'bucket takes', 'buckets take')} "
            f"{show(found['wire_s'], 'seconds')} on the wire, and {show(found['exposed_s'], 'seconds')} of "
            f"it is exposed after {show(found['compute_s'], 'seconds')} of compute."
        )


DdpOverlap.serve_as(__name__)
