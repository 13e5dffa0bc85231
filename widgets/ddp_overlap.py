"""A data-parallel step on two streams: the backward pass, and the AllReduce of its gradients behind it."""

import numpy as np

from engine import catalog, data_parallel, hardware, models
from engine.data_parallel import EMBEDDING, FORWARD_PASS
from engine.units import MIB
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

VIEWS_S = [step * 10.0**power for power in (-2, -1, 0) for step in (1, 1.5, 2, 3, 5, 7.5)]
VIEWS_S += [10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 180.0, 300.0, 600.0]
COMPUTE, NETWORK = (1.2, 1.95), (0.0, 0.75)         # bottom and top of the two lanes
EVERY = ["model", "tokens", "wire_bytes_per_s", "bucket", "ranks", "alpha_s", "gpu", "mfu", "gradient_bytes"]
NUMBERS = ["", *map(str, range(1, data_parallel.MOST_LAYERS))]
LARGEST = 8192 * MIB
BUCKET_STOPS = sorted({25 * MIB, *(MIB * part * 2**power for power in range(14) for part in (1, 1.25, 1.5, 1.75)
                                   if MIB * part * 2**power <= LARGEST)})
WIRE = catalog.link("ib-ndr")
ETHERNET = catalog.link("eth-100")


class DdpOverlap(Widget):
    question = "Does the AllReduce hide behind the backward pass?"
    tokens = Number("Tokens per GPU", 8192, 128, 131072, family="tokens", marks=(1024, 2048, 4096, 16384, 32768),
                    help="In one micro-batch")
    wire_bytes_per_s = Number("Wire, one way", WIRE.bytes_per_s, 1.25e9, 450e9, family="bytes_per_s",
                              marks=(12.5e9, 25e9, 100e9, 400e9), help="What a ring has for each GPU")
    bucket = Number("Bucket", 25 * MIB, MIB, LARGEST, family="bytes_binary", stops=BUCKET_STOPS,
                    help="PyTorch's bucket_cap_mb; its default is 25")
    model = Choice("Model", [catalog.model(key) for key in ("gpt2-xl", "llama3.2-1b", "llama3-8b", "llama3-70b")],
                   "llama3-8b", more=True)
    ranks = Number("GPUs", 64, 2, 4096, whole=True, more=True, stops=[2**k for k in range(1, 13)])
    gpu = Choice("GPU", [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")], "h100-sxm", more=True)
    mfu = Number("MFU of one GPU", 0.4, 0.1, 0.7, family="percent", stops=61, log=False, more=True,
                 help="The share of the peak that it reaches alone")
    alpha_s = Number("Start-up of a hop", WIRE.latency_s, 1e-6, 1e-4, family="seconds", more=True)
    gradient_bytes = Choice("Gradients sent in", {"bf16": ("bf16", 2.0), "fp32": ("fp32", 4.0)}, "bf16", more=True)

    presets = {
        "8B, one card a GPU": {},
        "Its best bucket": {"bucket": 640 * MIB},
        "Eight full nodes": {"wire_bytes_per_s": 400e9},
        "100 Gb/s Ethernet": {"wire_bytes_per_s": ETHERNET.bytes_per_s},
        "70B, 100 GB/s": {"model": "llama3-70b", "wire_bytes_per_s": 100e9, "bucket": 1024 * MIB},
    }
    break_it = "Put a small batch on slow Ethernet: 1,024 tokens on 12.5 GB/s. Which bucket saves it?"
    assumptions = (
        "Forward $2PT$ and backward $4PT$ FLOPs at the MFU, spread over the layers by their weights; an embedding "
        "takes no time. Tensors become ready one by one and fill buckets by PyTorch's rule, the first of 1 MiB. Each "
        "bucket is one ring AllReduce, and they go one after the other. Left out: what NCCL takes from the arithmetic, "
        "the optimizer, trees (fewer start-ups for many GPUs). Thin lines lead from a full bucket to its AllReduce.")
    formula = (
        r"$$T_\text{AllReduce}(S) = 2(N-1)\,\alpha + \frac{2(N-1)}{N}\frac{S}{W} \qquad "
        r"\text{tokens} > \frac{u\,C}{W} \cdot \frac{N-1}{N} \cdot \frac{g}{2}$$" "\n\n"
        "The right one says when the bytes alone fit behind the backward pass: $W$ is the wire, $C$ the peak, $u$ the "
        r"MFU, $g$ the bytes of a gradient. The best bucket is near $\sqrt{G (N-1)\,\alpha W}$ for a gradient of $G$ "
        "bytes. The picture is neither formula but a simulation of two CUDA streams: a task starts when the one before "
        "it on its stream and all that it needs have ended.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def flops_per_s(self):
        return hardware.achieved_flops_per_s(self.gpu, self.mfu)

    @once
    def run(self):
        return data_parallel.simulate_step(
            self.model, self.tokens, self.ranks, self.flops_per_s(), self.wire_bytes_per_s, self.alpha_s, self.bucket,
            bytes_per_gradient=self.gradient_bytes)

    def needed_tokens(self):
        peak = hardware.peak_with_fallback(self.gpu)
        return data_parallel.tokens_to_hide(self.ranks, self.wire_bytes_per_s, peak, self.mfu, self.gradient_bytes)

    def all_gradient_bytes(self):
        return data_parallel.gradient_bytes(models.parameters(self.model), self.gradient_bytes)

    def best_bucket(self):
        return data_parallel.best_bucket_bytes(self.all_gradient_bytes(), self.ranks, self.wire_bytes_per_s,
                                               self.alpha_s)

    def start_ups_s(self):
        return data_parallel.start_ups_s(self.run()["buckets"], self.ranks, self.alpha_s)

    def exposed_share(self):
        found = self.run()
        return data_parallel.share(found["exposed_s"], found["step_s"])

    # -- the picture ------------------------------------------------------------------------------------------------
    @part(*EVERY)
    def layers(self):
        found = self.run()
        layer = found["layer"]
        return {"left": found["layer_start_s"], "right": found["layer_end_s"], "duration_s": found["layer_s"],
                "bottom": np.full_like(layer, COMPUTE[0]), "top": np.full_like(layer, COMPUTE[1]), "layer": layer,
                "alpha": np.where(layer == FORWARD_PASS, 0.14, 0.42)}

    @part(*EVERY)
    def buckets(self):
        found = self.run()
        length_s = found["bucket_s"]
        return {"left": found["bucket_start_s"], "right": found["bucket_end_s"], "duration_s": length_s,
                "bottom": np.full_like(length_s, NETWORK[0]), "top": np.full_like(length_s, NETWORK[1]),
                "full_s": found["bucket_full_s"], "bucket_bytes": found["bucket_bytes"]}

    @part(*EVERY)
    def idle(self):
        found = self.run()
        seen = found["exposed_s"] > 0
        near_end = found["step_s"] > fig.share_of(self.view_s(), 0.8)
        return {"left": found["compute_s"], "right": found["step_s"], "bottom": COMPUTE[0], "top": COMPUTE[1],
                "floor": NETWORK[0], "at": np.where(near_end, found["step_s"], found["compute_s"]),
                "align": choose(near_end, "right", "left"),
                "text": choose(seen, f"exposed: {show(found['exposed_s'], 'seconds')}", "all hidden")}

    @part(*EVERY)
    def titles(self):
        found = self.run()
        compute, wire = show(found["compute_s"], "seconds"), show(found["wire_s"], "seconds")
        buckets = show(found["buckets"], "count")
        return {"y": np.array([COMPUTE[1], NETWORK[0]]), "shift": np.array([-14.0, 14.0]),
                "text": [f"compute stream: forward, then backward from the last layer, {compute}",
                         f"communication stream: {buckets} AllReduces, {wire}"],
                "narrow": [f"compute: {compute}", f"{buckets} AllReduces: {wire}"]}

    def view_s(self):
        return fig.fitting_view(self.run()["step_s"], VIEWS_S, headroom=1.02)

    def ranges(self):
        return {"x": [0.0, self.view_s()]}

    def named(self, layer):
        """A layer's name, for columns of numbers as the simulation gives them."""
        kind = np.where(layer == EMBEDDING, 1.0, np.where(layer == FORWARD_PASS, 2.0, 0.0))
        kind = np.where(layer > self.model.layers, 3.0, kind)
        kinds = ["layer ", "the embedding", "all layers", "the output layer"]
        return phrase("{kind}{number}", kind=select(kind, kinds),
                      number=select(np.where(kind == 0.0, layer, 0.0), NUMBERS))

    @hint("layers")
    def of_a_layer(self):
        found, last = self.run(), self.model.layers
        forward = np.where(found["layer"] == FORWARD_PASS, 1.0, 0.0)
        return phrase("{pass_} {what}: {time}. {waits}", time=show(found["layer_s"], "seconds"),
                      pass_=select(forward, ["Backward pass,", "Forward pass,"]),
                      what=self.named(found["layer"]),
                      waits=select(np.where(found["layer"] > last, 2.0, forward), [
                          "Waits for the layer above.", "Waits for nothing.", "Waits for the loss."]))

    @hint("buckets")
    def of_a_bucket(self):
        found = self.run()
        waits = np.where(found["bucket_waits_s"] > 0, 1.0, 0.0)
        return phrase("AllReduce of {size}: {time}. Full with {layer} at {full}; starts {later} later{why}.",
                      size=show(found["bucket_bytes"], "bytes"), time=show(found["bucket_s"], "seconds"),
                      layer=self.named(found["bucket_layer"]), full=show(found["bucket_full_s"], "seconds"),
                      later=show(found["bucket_waits_s"], "seconds"),
                      why=select(waits, ["", ", after the one before it"]))

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, 1.5), (-0.42, 2.62), height=330, x_title="time from the start of the step")
        p.min_border_left = p.min_border_right = 20         # half of the first and of the last tick's words
        fig.moving_ticks(p.xaxis[0], "seconds")
        fig.hide(p.yaxis[0])
        p.ygrid.grid_line_color = None
        p.segment("full_s", COMPUTE[0], "left", NETWORK[1], source=sources["buckets"], line_color=color["network"],
                  line_alpha=0.55)
        box = {"left": "left", "right": "right", "bottom": "bottom", "top": "top"}
        p.quad(**box, source=sources["layers"], fill_color=color["compute"], fill_alpha="alpha",
               line_color=color["compute"], line_width=0.8)
        p.quad(**box, source=sources["buckets"], fill_color=color["network"], fill_alpha=0.42,
               line_color=color["network"], line_width=0.8)
        p.quad(**box, source=sources["idle"], **fig.IDLE)
        p.segment("left", "floor", "left", "top", source=sources["idle"], line_color=color["ink"], line_dash=[4, 4])
        p.text("at", "top", text="text", text_align="align", y_offset=-36, source=sources["idle"], **fig.BOLD)
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(width, p.text(0, "y", text=column, source=sources["titles"], y_offset="shift", x_offset=2,
                                   **fig.TEXT))
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Step")
    def step(self):
        return show(self.run()["step_s"], "seconds")

    @readout("Exposed")
    def exposed(self):
        return show(self.run()["exposed_s"], "seconds"), self.exposed_share() > 0.1

    @readout("Spent on start-ups")
    def start_ups(self):
        return show(self.start_ups_s(), "seconds")

    @readout("Best bucket, by the rule")
    def best(self):
        return show(self.best_bucket(), "bytes_binary")

    @readout("Tokens needed to hide")
    def needed(self):
        return show(self.needed_tokens(), "tokens"), self.needed_tokens() > self.tokens

    @regime(target=True)
    def wire_bound(self):
        needed = self.needed_tokens()
        return needed > self.tokens, (
            f"You found the wire's wall: at {show(self.wire_bytes_per_s, 'bytes_per_s')} the bytes alone need "
            f"{show(needed, 'tokens')} on each GPU to hide, and there are {show(self.tokens, 'tokens')}. No bucket "
            "helps. First response: a larger micro-batch. Accumulating under no_sync hides no more, but the exposed "
            "time then comes once in many micro-batches.")

    @regime()
    def too_many(self):
        found = self.run()
        many = data_parallel.share(self.start_ups_s(), found["wire_s"])
        return (many > 0.2) & (found["exposed_s"] > 0), (
            f"Start-ups are {show(many, 'percent', 2)} of the wire's time: {show(found['buckets'], 'count')} buckets "
            f"are too many. First response: larger ones, about {show(self.best_bucket(), 'bytes_binary')}.")

    def summary(self):
        found = self.run()
        return (f"With {show(self.tokens, 'tokens')} on each of {show(self.ranks, 'count')} GPUs, a step of "
                f"{self.model.name} computes for {show(found['compute_s'], 'seconds')} and sends "
                f"{show(self.all_gradient_bytes(), 'bytes')} of gradients in {show(found['buckets'], 'count')} buckets "
                f"for {show(found['wire_s'], 'seconds')}, of which {show(found['exposed_s'], 'seconds')} are exposed.")
