"""The time of one decode step on 1 to 32 GPUs, split by what takes it, and the point where another GPU stops
helping."""

import numpy as np

from engine import catalog
from engine.serving import decoding
from engine.serving.deployment import choice
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, counted, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime
from widgets.serving.two_pools import asked

DEGREES = np.array([1.0, 2, 4, 8, 16, 32])
ROWS = np.arange(6.0)[::-1]
MODELS = [
    catalog.model(key)
    for key in (
        "llama3.2-1b",
        "llama3-8b",
        "qwen3-32b",
        "llama3-70b",
        "llama3.1-405b",
        "mixtral-8x7b",
        "gpt-oss-120b",
        "deepseek-v3",
    )
]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200", "mi300x", "l40s")]
PARTS = ["weights", "keys and values", "beyond reading", "launches", "AllReduce, node", "AllReduce, network"]
HUES = dict(zip(PARTS, ("hbm", "hbm", "ink-faint", "panel", "link", "network")))
RIMS = HUES | {"launches": "idle"}  # in which the GPUs wait: white with a hairline
TONES = [0.85, 0.4, 0.7, 1.0, 0.85, 0.85]
VIEWS_S = [m * 10.0**e for e in range(-4, 2) for m in (1.2, 1.9, 2.9, 3.9, 5.9, 7.9)]
ALGORITHMS = {
    "auto": ("the fastest", 0),
    "ring": ("ring", 1),
    "tree": ("tree", 2),
    "nvls": ("in the switch (NVLS)", 3),
    "one_shot": ("one shot", 4),
}
ROOM = 0.28  # of the axis: up to there a bar has room behind it for its parts in words
SHORT = 8192.0  # tokens: one sequence's cache is then at most some per cent of the weights
EVERY = ("model", "batch", "context", "gpu", "all_reduce", "weights", "cache")


class DecodeLatency(Widget):
    question = "How much sooner does the next token arrive with more GPUs?"
    model = Choice("Model", MODELS, "llama3-70b")
    batch = Number("Sequences", 8, 1, 1024, stops=48, whole=True, marks=(1, 8, 64, 256))
    tp = Choice(
        "GPUs that share it", {f"{d:.0f}": (f"{d:.0f}", place) for place, d in enumerate(DEGREES)}, "8"
    )
    context = Number(
        "Context",
        4096,
        256,
        2**20,
        family="tokens",
        stops=49,
        whole=True,
        marks=(4096, 8192, 32768, 131072),
        more=True,
        help="Tokens in each sequence",
    )
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    all_reduce = Choice("AllReduce", ALGORITHMS, "auto", more=True)
    weights = Choice("Weights stored in", asked.WEIGHTS, "bf16", more=True)
    cache = Choice("Cache stored in", asked.WIDTHS, "bf16", more=True)
    dots = Dots()

    presets = {
        "70B on 8 H100s": {},
        "1B, one-shot AllReduces": {
            "model": "llama3.2-1b",
            "batch": 1,
            "all_reduce": "one_shot",
            "context": 1024,
        },
        "70B on 4, fp8 weights": {"weights": "fp8", "tp": "4"},
        "70B on A100s, measured": {"gpu": "a100-80", "batch": 1},
        "70B at 128k": {"context": 131072, "batch": 8},
        "405B on two nodes": {"model": "llama3.1-405b", "tp": "16", "batch": 32},
        "DeepSeek-V3 on 16 H200s": {
            "model": "deepseek-v3",
            "gpu": "h200",
            "tp": "16",
            "weights": "fp8",
            "batch": 64,
        },
    }
    break_it = (
        "Without leaving a node, find a model, a batch and an AllReduce for which more GPUs answer later "
        "than half as many."
    )
    assumptions = (
        "The replica is in a steady state, and its step is captured as a graph, so no kernel waits for the "
        "CPU. What is drawn as launches is each kernel's start on the GPU, and the small kernels between "
        "products (lesson 19). AllReduces are not hidden. With weights in fp8 the products are in fp8 too, "
        "where the GPU has units for them (W8A8); weights of 4 bits are widened for a bf16 product. Leaves "
        "out sampling and the scheduler."
    )
    formula = (
        "$$\\tau = \\frac{\\text{weights}}{t\\, W_\\text{HBM}} + \\frac{\\text{cache}}{\\min(t, a_{kv})\\, "
        "W_\\text{HBM}} + \\tau_\\text{launch} + 2L \\, \\tau_\\text{AllReduce}$$\n\nfor $t$ GPUs of HBM "
        "bandwidth $W_\\text{HBM}$ and $L$ layers. Each product takes the longer of its reading and its "
        "arithmetic. What measured kernels take beyond their reading is drawn apart: below the critical "
        "batch they do not quite reach the memory's rate, beyond it arithmetic takes longer. Past $a_{kv}$ "
        "key and value heads the ranks hold copies; a latent cache (MLA) is whole on every rank."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def split(self):
        at = over(choice.served_on, self.gpu, self.weights)
        how = self.cache, self.weights.bytes, self.all_reduce
        return over(
            lambda model: decoding.split(model, at, DEGREES, self.batch, self.context, *how), self.model
        )

    @once
    def step_s(self):
        split = self.split()
        return np.sum(
            np.stack([split.weights_s, split.cache_s, split.beyond_s, split.launch_s, split.communication_s]),
            axis=0,
        )

    @once
    def users(self):
        return over(
            lambda model: decoding.room(
                model, self.gpu, DEGREES, self.context, self.cache, self.weights.bytes
            ),
            self.model,
        ).users

    def fits(self):
        return self.users() >= self.batch

    def chosen(self, values):
        return lookup(values, self.tp)

    def unless_full(self, text):
        """A figure, or a note that there is none because the sequences do not fit."""
        return choose(self.chosen(self.fits()), text, "does not fit")

    def per_gpu(self):
        return decoding.tokens_per_s_per_gpu(self.batch, self.step_s(), DEGREES)

    def view_s(self):
        fitting = np.where(self.fits(), self.step_s(), 0.0)
        return fig.fitting_view(np.max(fitting), VIEWS_S, headroom=1.45)

    def crosses_nodes(self):
        return self.gpu.gpus_per_node < DEGREES

    # -- the picture -----------------------------------------------------------------------------------------
    def segments(self):
        """Start and end of each part of each degree's bar, and which part it is."""
        split = self.split()
        lengths = np.stack(
            [split.weights_s, split.cache_s, split.beyond_s, split.launch_s, split.communication_s]
        )
        start, end = fig.stacked(np.where(self.fits(), lengths, 0.0))
        wire = np.where(self.crosses_nodes(), 5.0, 4.0)
        kinds = np.stack([np.full(6, float(i)) for i in range(4)] + [wire])
        return np.ravel(start), np.ravel(end), np.ravel(kinds)

    @part(*EVERY)
    def bars(self):
        start, end, kinds = self.segments()
        rows = np.tile(ROWS, 5)
        return {
            "gpus": np.tile(DEGREES, 5),
            "part": [select(kinds[i], PARTS) for i in range(30)],
            "left": start,
            "right": end,
            **fig.rows_of(rows, 0.3),
            "tone": lookup(TONES, kinds),
            "seen": np.where(end > start, 1.0, 0.0),
        }

    @hint("bars")
    def said(self):
        start, end, kinds = self.segments()
        return phrase(
            "{part}: {time} of a step, GPUs: {gpus}",
            part=select(kinds, PARTS),
            time=show(end - start, "seconds"),
            gpus=show(np.tile(DEGREES, 5), "count"),
        )

    def dearest(self):
        """What reading and AllReduces take of the chosen bar, where there is room behind it to say so."""
        split, step_s = self.split(), self.chosen(self.step_s())
        read, sent = (show(self.chosen(each), "seconds") for each in (split.weights_s, split.communication_s))
        return choose(step_s < ROOM * self.view_s(), f"   weights {read}, AllReduces {sent}", "")

    @part("tp", *EVERY)
    def totals(self):
        dearest = self.dearest()
        step_s, users, fits, per_gpu = self.step_s(), self.users(), self.fits(), self.per_gpu()
        stub = np.where(fits, 0.0, self.view_s() * 0.02)
        return {
            "y": ROWS,
            "end": np.where(fits, step_s, stub),
            "start": fig.gone_unless(~fits, np.zeros(6)),
            "past": fig.gone_unless(~fits, stub),
            "time": [choose(fits[i], show(step_s[i], "seconds"), "does not fit") for i in range(6)],
            "label": [
                choose(
                    fits[i],
                    f"{show(step_s[i], 'seconds')}   {show(per_gpu[i], 'count')} tokens/s per GPU"
                    f"{choose(self.tp == i, dearest, '')}",
                    choose(
                        users[i] > 0,
                        f"room for {show(users[i], 'count')} sequence{choose(users[i] > 1, 's', '')}",
                        "the weights do not fit",
                    ),
                )
                for i in range(6)
            ],
        }

    @measured("decode_latency", "model", "batch", "context", "gpu", "weights", "cache")
    def steps(self, of):
        same = of.of(model=self.model, gpu=self.gpu, weights=self.weights.bytes, cache=self.cache)
        alone = (of.column("batch") == 1) & (self.context <= SHORT)  # its cache is negligible
        row = ROWS[0] - fig.doublings(of.column("tp"))
        return Seen(
            same & of.near("batch", self.batch, 0.1) & (alone | of.near("context", self.context, 0.3)),
            of.measured,
            row,
            of.ours,
            row,
            of.apart("context", self.context, "tokens", "Its context held {}."),
        )

    @part("tp")
    def marked(self):
        return fig.rows_of(self.chosen(ROWS), 0.44)

    def ranges(self):
        return {"x": [0.0, self.view_s()]}

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Time per token", rest=True)
    def time(self):
        return self.unless_full(show(self.chosen(self.step_s()), "seconds")), ~self.chosen(self.fits())

    @readout("Each user reads")
    def speed(self):
        return self.unless_full(
            f"{show(decoding.tokens_per_s_per_gpu(1.0, self.chosen(self.step_s()), 1.0), 'count')} tokens/s"
        )

    @readout("Tokens/s per GPU")
    def throughput(self):
        return self.unless_full(show(self.chosen(self.per_gpu()), "count"))

    @readout("Users that fit")
    def room(self):
        users = self.chosen(self.users())
        return show(users, "count"), users < self.batch

    @once
    def of_half(self):
        """Each degree's time over that of half as many GPUs; 0 where the sequences do not fit on those, so
        that there is nothing to compare with."""
        half_fits = np.concatenate([np.zeros(1), np.where(self.fits(), 1.0, 0.0)[:-1]])
        return np.where(half_fits > 0, decoding.against_half(self.step_s()), 0.0)

    def of_half_in_a_node(self):
        return np.where(self.crosses_nodes(), 0.0, self.of_half())

    @readout("Against half the GPUs", rest=True)
    def against_half(self):
        ratio = self.chosen(self.of_half())
        words = choose(
            ratio > 0,
            f"{show(ratio, 'times')} the time",
            choose(self.chosen(DEGREES) > 1, "half do not fit", "–"),
        )
        return self.unless_full(words), self.chosen(self.of_half_in_a_node()) > 1

    @regime(target=True)
    def too_many(self):
        """Whichever bar is chosen, since all of them are drawn."""
        ratios = self.of_half_in_a_node()
        worst = np.argmax(ratios)
        sent_s = lookup(self.split().communication_s, worst)
        too_many = show(lookup(DEGREES, worst), "count")
        return np.max(ratios) > 1, (
            f"You found where sharing stops paying: {too_many} GPUs of a node take "
            f"{show(np.max(ratios), 'times')} the time of half as many, {show(sent_s, 'seconds')} of it in "
            "AllReduces that wait for latency. First response: an AllReduce of one hop, or fewer than "
            f"{too_many} GPUs a replica and more replicas."
        )

    @regime()
    def beyond_the_node(self):
        ratio, sent_s = self.chosen(self.of_half()), self.chosen(self.split().communication_s)
        return self.chosen(np.where(self.crosses_nodes(), 1.0, 0.0)) * ratio > 1, (
            f"Beyond the node the AllReduces go over the network, {show(sent_s, 'seconds')} of each token: "
            f"{show(self.chosen(DEGREES), 'count')} GPUs take {show(ratio, 'times')} the time of half as "
            "many. First response: replicas of one node each."
        )

    @regime()
    def full_cache(self):
        users = self.chosen(self.users())
        cache = (
            f"Beside the weights the HBM holds the cache of {show(users, 'count')} "
            f"sequence{choose(users > 1, 's', '')} of {show(self.context, 'tokens')}, not of "
            f"{show(self.batch, 'count')}. First response: a narrower cache, more GPUs, or a shorter queue "
            "(kv_cache below)."
        )
        return ~self.chosen(self.fits()), choose(
            users > 0,
            cache,
            "Beside the weights there is no room for a single sequence. First response: more GPUs, or "
            "narrower weights.",
        )

    @regime()
    def computing(self):
        split = self.split()
        return self.chosen(split.beyond_s) > self.chosen(split.weights_s), (
            "The batch is past the critical one: arithmetic takes longer than reading the weights, so more "
            "sequences now make everyone wait, as in training."
        )

    def summary(self):
        split, users = self.split(), self.chosen(self.users())
        on = f"{show(self.chosen(DEGREES), 'count')} {self.gpu.name}"
        weights, sent = (
            show(self.chosen(part_s), "seconds") for part_s in (split.weights_s, split.communication_s)
        )
        return choose(
            self.chosen(self.fits()),
            f"On {on}, {self.model.name} takes {show(self.chosen(self.step_s()), 'seconds')} a token, "
            f"{weights} of it to read weights, {sent} in AllReduces.",
            f"{self.model.name} does not fit on {on} with {counted(self.batch, 'sequence', 'sequences')} of "
            f"{show(self.context, 'tokens')}: there is room for "
            f"{choose(users >= 1, show(users, 'count'), 'none')}.",
        )

    def figure(self, sources):
        p = fig.plot((0, 0.08), (-0.6, 7.4), height=400)
        p.ygrid.visible = False
        fig.moving_ticks(p.xaxis[0], "seconds")
        fig.named_rows(
            p.yaxis[0], {f"{d:.0f} GPU{'s' if d > 1 else ''}": row for d, row in zip(DEGREES, ROWS)}
        )
        p.quad(
            left=0,
            right=1e3,
            bottom="bottom",
            top="top",
            source=sources["marked"],
            fill_color=fig.COLOR["accent"],
            fill_alpha=0.1,
            line_color=None,
        )
        bars = {"left": "left", "bottom": "bottom", "top": "top", "source": sources["bars"]}
        p.quad(
            right="right",
            **bars,
            fill_color=fig.hues("part", HUES),
            fill_alpha="tone",
            line_color=fig.hues("part", RIMS),
            line_alpha="seen",
            line_width=0.6,
        )
        fig.measured(p, sources["steps"])
        p.hbar(y="y", left="start", right="past", height=0.6, source=sources["totals"], **fig.OVER)
        fig.only("wide", p.text("end", "y", text="label", x_offset=8, source=sources["totals"], **fig.TEXT))
        fig.only("narrow", p.text("end", "y", text="time", x_offset=6, source=sources["totals"], **fig.TEXT))
        names = {"wide": PARTS, "narrow": PARTS}
        looks = [
            {"fill_color": fig.COLOR[HUES[each]], "fill_alpha": tone, "line_color": fig.COLOR[RIMS[each]]}
            for each, tone in zip(PARTS, TONES)
        ]
        fig.packed_key(p, names, looks, {"wide": 6.9, "narrow": 7.1})
        return p


DecodeLatency.serve_as(__name__)
