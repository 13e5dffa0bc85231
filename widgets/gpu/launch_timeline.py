"""A decode step on CPU and GPU: kernel by kernel, fused, and replayed as a graph, and which of the two
waits."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.calibration import launch_costs
from engine.one_gpu import capture, recordings
from engine.serving import decoding
from engine.step.layout import machine
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lanes
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

MODELS = [catalog.model(key) for key in ("llama3.2-1b", "llama3-8b", "llama3-70b", "llama3.1-405b")]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")]
WAYS = [("eager", 0), ("compiled", 0), ("eager", 1), ("compiled", 1)]
NAMES = ["eager", "compiled", "eager graph", "compiled graph"]
LAYERS_SHOWN = 2
BATCHES = capture.BATCHES
VIEWS_S = [m * 10.0**e for e in range(-5, 0) for m in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)]
HUES = {"small kernel": "compute", "product": "hbm", "attention": "accent", "AllReduce": "link"}
KINDS = list(HUES)  # in the order of capture.KINDS
DRAWN = (1, 2, 0, 3)  # their order in the bars of whole steps, from the left
RUN = ("model", "issue", "batch", "gpu", "tp", "context", "small")


class LaunchTimeline(Widget):
    question = "Is the GPU waiting for the CPU to say what comes next?"
    model = Choice("Model", MODELS, "llama3-8b")
    issue = Number(
        "CPU time to issue a kernel",
        launch_costs.ISSUE_S,
        1e-6,
        40e-6,
        family="seconds",
        stops=60,
        marks=(4e-6, 6e-6, 8e-6, 30e-6),
        help="Python, dispatcher and driver, until the launch is queued",
    )
    batch = Number("Sequences", 1, 1, 1024, stops=48, whole=True, marks=(8, 64, 256))
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    tp = Choice("GPUs that share the model", {str(n): (str(n), n) for n in (1, 2, 4, 8)}, "1", more=True)
    context = Number(
        "Context",
        1024,
        128,
        131072,
        family="tokens",
        stops=61,
        whole=True,
        marks=(1024, 8192, 32768),
        more=True,
        help="Tokens in each sequence",
    )
    small = Number(
        "A small kernel on the GPU",
        launch_costs.SHORTEST_S,
        1e-6,
        6e-6,
        family="seconds",
        stops=51,
        log=False,
        more=True,
        help="A kernel that moves hardly any bytes, without the gap behind it; an assumption",
    )

    presets = {
        "8B, one H100": {},
        "70B on 8 H100s": {"model": "llama3-70b", "tp": "8"},
        "70B on 8 B200s": {"model": "llama3-70b", "tp": "8", "gpu": "b200"},
        "1B on a B200": {"model": "llama3.2-1b", "gpu": "b200"},
        "8B, 64 chats": {"batch": 64, "context": 4096},
        "8B, a slow host": {"issue": 30e-6, "gpu": "a100-80"},
    }
    break_it = (
        "Make the graph worth nothing: bring the eager step within 3 % of the same kernels in a graph. Keep "
        "the issue at 12 µs, and the caches in memory."
    )
    assumptions = (
        f"The kernels of a step were counted as {recordings.made_with('decode_kernels')} runs them: "
        f"{capture.kernels_per_layer('eager')} a layer eagerly, {capture.kernels_per_layer('compiled')} "
        "after Inductor's fusion (with its CPU backend; a GPU's may differ by a kernel or two). Fused or "
        "not, a launch costs the CPU the same. Every step starts with an idle GPU, as it does when the CPU "
        "reads the token. 0.9 µs between kernels in a stream, 0.5 µs in a graph (NVIDIA, V100): the GPU's "
        "own time, not waiting. Products and attention take what published timings of single operations on "
        "the chip come to."
    )
    formula = (
        "$$\\tau \\approx \\max\\left[n \\, \\tau_\\text{issue},\\; "
        "\\sum_{i=1}^{n} (\\tau_i + \\tau_\\text{gap})\\right]$$\n\n"
        "for $n$ kernels of $\\tau_i$ with a gap $\\tau_\\text{gap}$ between them. The CPU stops mattering "
        "where the two are equal: $\\tau_\\text{issue} = \\frac{1}{n}\\sum (\\tau_i + \\tau_\\text{gap})$. A "
        "graph replaces $n\\,\\tau_\\text{issue}$ by $2.5\\ \\text{µs} + n \\cdot 1\\ \\text{ns}$. What is "
        "drawn is the run of the queue, kernel by kernel."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def found_at(self, way, batch):
        at = over(machine, self.gpu)
        return over(
            lambda model: capture.kernels(way, model, at, self.tp, batch, self.context, self.small),
            self.model,
        )

    @once
    def eager(self):
        return self.found_at("eager", self.batch)

    @once
    def compiled(self):
        return self.found_at("compiled", self.batch)

    @once
    def runs(self):
        """All four ways, run."""
        return capture.four(self.eager(), self.compiled(), self.model.depth, self.issue, LAYERS_SHOWN)

    def totals(self):
        return self.runs()["total_s"]

    @once
    def gpu_alone(self):
        """What the GPU needs in each of the four ways when it never waits."""
        kernels = {"eager": self.eager(), "compiled": self.compiled()}
        gaps = (launch_costs.STREAM_GAP_S, launch_costs.GRAPH_GAP_S)
        return np.stack(
            [capture.gpu_s(kernels[way], self.model.depth, gaps[captured]) for way, captured in WAYS]
        )

    @once
    def enough_batch(self):
        """The first batch at which the GPU alone needs as long as the CPU; 0 where none does."""
        found = self.found_at("eager", BATCHES)
        enough = capture.enough_s(found, self.model.depth, launch_costs.STREAM_GAP_S) >= self.issue
        return np.where(np.max(np.where(enough, 1.0, 0.0)) > 0, lookup(BATCHES, np.argmax(enough)), 0.0)

    @once
    def spent(self):
        """The same by purpose, a row for each of the four ways, and added up from left to right in
        the order of DRAWN."""
        kernels = {"eager": self.eager(), "compiled": self.compiled()}
        gaps = (launch_costs.STREAM_GAP_S, launch_costs.GRAPH_GAP_S)
        by_kind = [
            capture.by_kind_s(kernels[way], self.model.depth, gaps[captured]) for way, captured in WAYS
        ]
        return np.stack([np.cumsum(np.stack([each[kind] for kind in DRAWN])) for each in by_kind])

    def enough(self):
        return capture.enough_s(self.eager(), self.model.depth, launch_costs.STREAM_GAP_S)

    def gained(self):
        """Eager over the same kernels in a graph."""
        return self.totals()[0] / self.totals()[2]

    def waiting_share(self):
        return capture.waiting_share(self.runs())[0]

    def fits(self):
        return (
            over(lambda model: decoding.room(model, self.gpu, self.tp, self.context), self.model).users
            >= self.batch
        )

    def view_s(self):
        return fig.fitting_view(np.max(self.runs()["last_s"]), VIEWS_S, headroom=1.01)

    # -- the picture -----------------------------------------------------------------------------------------
    def rows(self, lane, start_s, end_s, half):
        """Where blocks are drawn: the CPU's in the upper half of their lane, the GPU's in the lower."""
        bottom, top = lanes.edges(lane, 4, half, filled=0.72)
        return {"left": start_s / self.view_s(), "right": end_s / self.view_s(), "bottom": bottom, "top": top}

    @part(*RUN)
    def gpu_blocks(self):
        runs = self.runs()
        return {
            **self.rows(runs["lane"], runs["start_s"], runs["end_s"], 2),
            "what": select(runs["what"], KINDS),
            "start_s": runs["start_s"],
            "end_s": runs["end_s"],
        }

    @hint("gpu_blocks")
    def about_kernel(self):
        runs = self.runs()
        return phrase(
            "{what}, layer {layer}: {long} on the GPU, from {start}; issued at {issued}",
            what=select(runs["what"], KINDS),
            layer=show(runs["layer"], "count"),
            long=show(runs["end_s"] - runs["start_s"], "seconds"),
            start=show(runs["start_s"], "seconds"),
            issued=show(runs["issued_s"], "seconds"),
        )

    @part(*RUN)
    def cpu_blocks(self):
        runs = self.runs()
        apart = lanes.apart(runs["cpu_from_s"], runs["cpu_to_s"], self.view_s() * 0.0012)
        return {**self.rows(runs["cpu_lane"], runs["cpu_from_s"], apart, 1), "end_s": runs["cpu_to_s"]}

    @part(*RUN, shown=False)
    def ground(self):
        bottom, top = lanes.edges(np.arange(4.0), 4, 2, filled=0.72)
        return {
            "left": np.zeros(4),
            "right": self.runs()["last_s"] / self.view_s(),
            "bottom": bottom,
            "top": top,
        }

    @part(*RUN)
    def tokens(self):
        totals, alone = self.totals(), self.gpu_alone()
        longest = np.max(totals)
        bottom, top = lanes.edges(np.arange(4.0), 4, 0, filled=0.5)
        _, above = lanes.edges(np.arange(4.0), 4, 0, filled=0.72)
        return {
            "y": lanes.middle(np.arange(4.0), 4),
            "above": above,
            "bottom": bottom,
            "top": top,
            "step_s": totals,
            "gpu_s": alone,
            "works": lanes.bar_end(np.minimum(alone, totals), longest),
            "right": lanes.bar_end(totals, longest),
            "waits": np.where(totals > alone, 1.0, 0.0),
            "name": select(np.arange(4.0), NAMES),
            "time": show(totals, "seconds"),
        }

    @part(*RUN, shown=False)
    def work(self):
        """What the GPU does in a whole step: one bar for each of the four ways and each purpose."""
        totals, to_s = self.totals(), np.ravel(self.spent())
        from_s = np.ravel(np.stack([np.concatenate([np.zeros(1), self.spent()[i][:-1]]) for i in range(4)]))
        step_s, longest = np.repeat(totals, 4), np.max(totals)
        bottom, top = lanes.edges(np.repeat(np.arange(4.0), 4), 4, 0, filled=0.5)
        return {
            "left": lanes.bar_end(np.minimum(from_s, step_s), longest),
            "right": lanes.bar_end(np.minimum(to_s, step_s), longest),
            "bottom": bottom,
            "top": top,
            "what": select(np.tile(np.array(DRAWN, dtype=float), 4), KINDS),
        }

    @hint("tokens")
    def about_token(self):
        return phrase(
            "{name}: a token every {time}; the GPU alone needs {gpu}",
            name=select(np.arange(4.0), NAMES),
            time=show(self.totals(), "seconds"),
            gpu=show(self.gpu_alone(), "seconds"),
        )

    @part(*RUN, shown=False)
    def scale(self):
        return {
            "x": np.ones(1),
            "text": [show(self.view_s(), "seconds")],
            "all_reduce_key": fig.in_key(self.tp > 1) * np.ones(1),
        }

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-0.2, 1.32), (-0.13, 1.35), height=450)
        fig.bare(p)
        fig.room_left(p, -0.012, 100)
        p.quad(**fig.BOX, source=sources["ground"], **fig.IDLE)
        p.quad(**fig.BOX, source=sources["cpu_blocks"], fill_color=color["ink-faint"], line_color=None)
        p.quad(**fig.BOX, source=sources["gpu_blocks"], fill_color=fig.hues("what", HUES), line_color=None)
        rows = sources["tokens"]
        p.quad(**fig.BOX | {"left": "works"}, source=rows, **fig.IDLE | {"line_alpha": "waits"})
        p.quad(**fig.BOX, source=sources["work"], fill_color=fig.hues("what", HUES), line_color=None)
        fig.only(
            "wide",
            p.text("right", "y", text="time", source=rows, x_offset=5, **fig.TEXT),
            p.text(-0.012, "y", text="name", source=rows, text_align="right", **fig.LABEL),
        )
        fig.only(
            "narrow",
            p.text(lanes.BARS, "above", text="time", source=rows, y_offset=-2, **fig.TEXT),
            p.text(0, "above", text="name", source=rows, y_offset=-7, **fig.LABEL),
        )
        fig.only("wide", p.text(lanes.BARS, 1.03, text=value("a token"), **fig.LABEL))
        p.segment(0, -0.02, "x", -0.02, source=sources["scale"], line_color=color["ink"], line_width=1.5)
        p.text("x", -0.02, text="text", source=sources["scale"], text_align="right", y_offset=14, **fig.LABEL)
        p.text(0, -0.02, text=value("the first two layers"), y_offset=14, **fig.LABEL)
        fig.key(
            p,
            {
                "the CPU issues": "ink-faint",
                "product": "hbm",
                "attention": "accent",
                "small kernel": "compute",
                "GPU waits": "idle",
                "AllReduce": "link",
            },
            wide=1.27,
            narrow=1.31,
            places={"AllReduce": (sources["scale"], "all_reduce_key")},
        )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Eager, a token", rest=True)
    def eager_step(self):
        return show(self.totals()[0], "seconds"), self.waiting_share() > 0.3

    @readout(
        "GPU waits for launches, eager",
        help="Gaps between kernels do not count, because they remain whatever the CPU does",
        rest=True,
    )
    def waits(self):
        return show(self.waiting_share(), "percent"), self.waiting_share() > 0.3

    @readout("As a compiled graph", rest=True)
    def graph_step(self):
        return show(self.totals()[3], "seconds")

    @readout("Kernels, eager and fused", rest=True)
    def kernels(self):
        kernels = self.runs()["kernels"]
        return f"{show(kernels[0], 'count', 4)} and {show(kernels[1], 'count', 4)}"

    @readout(
        "The CPU keeps up below",
        help="Eagerly, at this batch: issuing a kernel must take no longer than the mean kernel with its gap",
    )
    def enough_issue(self):
        return f"{show(self.enough(), 'seconds')} a kernel"

    @readout(
        "The CPU stops mattering from",
        help="Eagerly, at this issue time: the batch at which the GPU takes as long as the CPU",
    )
    def enough_sequences(self):
        batch = self.enough_batch()
        some = choose(batch > 1, f"{show(batch, 'count', 4)} sequences", "1 sequence")
        return choose(batch > 0, some, "no batch up to 2,048")

    @readout("Capturing alone, over eager")
    def speedup(self):
        return show(self.gained(), "times")

    @regime(target=True)
    def nothing_gained(self):
        return self.fits() & (self.gained() < 1.03) & (self.issue >= 11.9e-6), (
            f"You found where the CPU stops mattering: a batch of {show(self.batch, 'count')} keeps the GPU "
            f"at work, gaps included, for {show(self.gpu_alone()[0], 'seconds')} a step, longer than the CPU "
            f"needs to issue its {show(self.runs()['kernels'][0], 'count', 4)} kernels. A graph gains "
            f"{show(self.gained(), 'times')}. First response: spend the effort on the kernels (lesson 16), "
            "not on their launches."
        )

    @regime()
    def cpu_bound(self):
        return self.waiting_share() > 0.3, (
            "The CPU sets the pace: eagerly the GPU waits for launches for "
            f"{show(self.waiting_share(), 'percent')} of the step, and a faster one would only wait longer. "
            f"First response: {self.first_response()}."
        )

    def first_response(self):
        """Whichever of the two cures is the faster one, then both."""
        _, compiled, captured, both = (show(self.totals()[i], "seconds") for i in range(4))
        return choose(
            self.totals()[1] < self.totals()[2],
            f"compile the step, which leaves fewer kernels to launch ({compiled}), then capture it ({both})",
            f"capture the step ({captured}), and compile it too ({both})",
        )

    @regime()
    def too_big(self):
        return self.fits() == 0, (
            f"{self.model.name} and {show(self.batch, 'count')} caches do not fit into "
            f"{show(self.tp, 'count')} × {self.gpu.name}: these times are out of reach. First response: more "
            "GPUs (lesson 06), or fewer sequences."
        )

    def summary(self):
        totals = self.totals()
        return (
            f"A step of {self.model.name} takes {show(totals[0], 'seconds')} eagerly "
            f"({show(self.waiting_share(), 'percent')} waiting for launches), as a compiled graph "
            f"{show(totals[3], 'seconds')}."
        )


LaunchTimeline.serve_as(__name__)
