"""What more GPUs bring a data-parallel run: where their time goes as N grows, and the memory that no N
frees."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.executed import data_parallel
from engine.mechanism import collectives, matmul, memory, start_ups
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, phrase, show, sold
from widgets.kit.widget import Widget, hint, part, readout, regime

MOST = 2**14
AXIS = (0.88, MOST * 1.14)  # a mark at either end is whole
MANY = 2**12  # whoever has added GPUs up to here has seen that it does not help
HIDDEN = 0.02  # of the step: an AllReduce that shows less leaves room for fewer tokens
RANK_STOPS = sorted(
    {n for k in range(15) for n in (2**k, 5 * 2**k // 4, 3 * 2**k // 2, 7 * 2**k // 4) if n <= MOST}
)
RANKS = np.array(RANK_STOPS, dtype=float)
SHELF, ROOF = -0.2, 1.28  # under the shares stands the memory, as deep as there are cards, and its name
FLOOR, MEMORY_TOP = -0.86, -0.34
VIEWS = [1.25, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0]  # of the memory, in cards
MOST_CARDS = 16  # that are drawn one by one
THICK = 0.15  # a card that has room for its name
NAMES = ["useful", "lost: the batch is too large", "exposed AllReduce", "waiting for the slowest"]
SHORT = ["useful", "batch too large", "exposed", "waiting"]
NAMED_AT = np.array([1.3, MOST, MOST, MOST])  # where the areas' names stand, in the order of NAMES …
NAMED_FOR = np.array([8.0, MOST, MOST, MOST])  # … and where the areas must be thick enough for them
THIN, UNSEEN = 0.06, 0.002
MODEL = [
    "size",
    "step_tokens",
    "wire_bytes_per_s",
    "gpu",
    "critical_batch",
    "deviation",
    "algorithm",
    "alpha_s",
]
NETWORK = catalog.link("ib-ndr")


class DdpScaling(Widget):
    question = "What do more GPUs bring, and what do they leave as it is?"
    ranks = Number("GPUs", 512, 1, MOST, stops=RANK_STOPS, whole=True)
    step_tokens = Number("Tokens per GPU", 8192, 256, 262144, family="tokens", marks=(1024, 4096, 32768))
    size = Number("Model size", 3e9, 0.1e9, 1e12, family="params", stops=80, marks=(1e9, 8e9, 70e9))
    wire_bytes_per_s = Number(
        "Wire beyond the node",
        400e9,
        1e9,
        800e9,
        family="bytes_per_s",
        marks=(1.25e9, 12.5e9, 50e9),
        more=True,
        help="One way, for a ring, over all cards of a node; inside a node, the GPU's own link",
    )
    critical_batch = Number("Critical batch", 4e6, 1e5, 1e8, family="tokens", marks=(1e6, 16e6), more=True)
    gpu = Choice(
        "GPU", [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")], "h100-sxm", more=True
    )
    deviation = Number(
        "Spread of step times",
        0.01,
        0,
        0.1,
        family="percent",
        stops=41,
        log=False,
        more=True,
        help="Standard deviation of a rank's compute time from step to step",
    )
    algorithm = Choice(
        "AllReduce starts as", {"tree": ("a tree", 0), "ring": ("a ring", 1)}, "tree", more=True
    )
    alpha_s = Number(
        "Start-up between nodes", start_ups.hop_s(NETWORK), 1e-6, 1e-4, family="seconds", more=True
    )
    dots = Dots()

    presets = {
        "3B on 512 H100s": {},
        "One node": {"ranks": 8},
        "Small batch on Ethernet": {"ranks": 64, "step_tokens": 1024, "wire_bytes_per_s": 12.5e9},
        "Llama 3 8B": {"size": 8e9, "ranks": 1024, "critical_batch": 16e6},
        "8B, as NVIDIA measured": {"size": 8e9, "ranks": 128, "step_tokens": 131072, "critical_batch": 16e6},
        "70B": {"size": 70e9},
    }
    break_it = (
        "Enlarge the model until its state no longer fits. Then try to bring it back by adding GPUs, "
        "thousands."
    )
    assumptions = (
        "Each GPU keeps its tokens per step as others are added (weak scaling), all in one micro-batch; bf16 "
        "gradients in buckets of 25 MiB behind the backward pass. A sample of a batch $B$ is worth $1/(1 + "
        "B/B_\\text{crit})$ of one in a tiny batch; the critical batch grows as the loss falls, and four "
        "million tokens is about Kaplan's fit at a loss of 2.3 nats. Step times spread normally, anew in "
        "each step. State of bf16 mixed Adam, without activations."
    )
    formula = (
        r"$$\text{share} = \frac{\tau_\text{compute}}{\tau_\text{slowest} + \tau_\text{exposed}} \cdot "
        r"\frac{1}{1 + B/B_\text{crit}}, \qquad B = N\,T$$"
        "\n\n"
        r"$T$ is the tokens on each GPU, $B_\text{crit}$ the critical batch; $\tau_\text{compute}$ is the "
        r"same for any $N$; $\tau_\text{slowest} = \tau_\text{compute} (1 + \sigma z_N)$ with $z_N \approx "
        r"\Phi^{-1}((N - 3/8)/(N + 1/4))$, the slowest of $N$ normal values in standard deviations $\sigma$ "
        r"(Blom 1958); $\tau_\text{exposed}$ is what of the AllReduce ends after the backward pass. The "
        r"steps to a loss, over the least number of steps, are $1 + B_\text{crit}/B$ (McCandlish et al., "
        r"arXiv:1812.06162, eq. 2.11); $B_\text{crit}$ by Kaplan et al., arXiv:2001.08361, eq. 1.4. State: "
        r"$16P$ "
        "bytes, whatever $N$."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def wire(self, ranks):
        """(bytes per second, start-up) of a ring: the link within a node, what leaves a node beyond."""
        outside = np.minimum(self.wire_bytes_per_s, self.gpu.link_bytes_per_s)
        near_s, per_node = start_ups.link_hop_s(self.gpu), self.gpu.gpus_per_node
        rate, far_s = collectives.flat_wire(
            ranks, per_node, self.gpu.link_bytes_per_s, near_s, outside, self.alpha_s
        )
        ring_s = start_ups.ring_hop_s(ranks, per_node, near_s, self.alpha_s)
        return rate, np.where(self.algorithm == 1, ring_s, data_parallel.tree_alpha_s(ranks, far_s))

    def step(self, ranks):
        flops_per_s = matmul.product_flops_per_s(self.gpu)
        return data_parallel.step(self.size, self.step_tokens, ranks, flops_per_s, *self.wire(ranks))

    def batch_tokens(self, ranks):
        return data_parallel.batch_tokens(ranks, self.step_tokens)

    def shares(self, ranks):
        return data_parallel.shares(
            self.step(ranks), self.batch_tokens(ranks), ranks, self.critical_batch, self.deviation
        )

    def useful_alone(self):
        return data_parallel.useful_share(self.step_tokens, self.critical_batch)

    def progress(self):
        return data_parallel.progress(self.shares(self.ranks).useful, self.ranks, self.useful_alone())

    def critical_ranks(self):
        return data_parallel.ranks_at(self.critical_batch, self.step_tokens)

    def state_bytes(self):
        return memory.state_bytes(self.size)

    def of_thin_bands(self):
        """What stands over the areas for those that are too thin for a name at their right end."""
        found = self.shares(MOST * 1.0)
        exposed, waiting = ((share <= THIN) & (share > UNSEEN) for share in (found.exposed, found.waiting))
        comma = choose(exposed & waiting, ", ", "")
        named = [
            f"{lead}{choose(exposed, names[2], '')}{comma}{choose(waiting, names[3], '')}"
            for lead, names in (("thin, on top: ", NAMES), ("top: ", SHORT))
        ]
        return [choose(exposed | waiting, words, "") for words in named]

    def gpus(self):
        return choose(self.ranks > 1, f"{show(self.ranks, 'count')} GPUs do", "1 GPU does")

    def held(self):
        return memory.against_hbm(self.state_bytes(), self.gpu)

    def height(self, cards):
        """Where so many cards of memory end, over the floor of the lower panel."""
        view = fig.fitting_view(np.maximum(self.held(), 1.0), VIEWS, 1.2)
        return fig.between(FLOOR, MEMORY_TOP, cards / view)

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*MODEL)
    def areas(self):
        _, tops = fig.stacked(np.stack(self.shares(RANKS)))
        return {
            "ranks": RANKS,
            "zero": np.zeros(len(RANKS)),
            "useful": tops[0],
            "computing": tops[1],
            "sending": tops[2],
            "whole": tops[3],
        }

    @hint("areas")
    def of_a_number_of_ranks(self):
        useful, past, exposed, waiting = (show(share, "percent") for share in self.shares(RANKS))
        return phrase(
            "{ranks}: {useful} of the time useful, {past} past the critical batch, {exposed} in exposed "
            "AllReduces, {waiting} waiting for the slowest",
            ranks=[f"{show(n, 'count')} {'GPU' if n == 1 else 'GPUs'}" for n in RANKS],
            useful=useful,
            past=past,
            exposed=exposed,
            waiting=waiting,
        )

    @part(*MODEL, shown=False)
    def names(self):
        lengths = np.stack(self.shares(NAMED_FOR))
        bottom, top = (np.stack([ends[i][i] for i in range(4)]) for ends in fig.stacked(lengths))
        middle, seen = fig.midpoint(bottom, top), [lengths[i][i] > THIN for i in range(4)]
        return {
            "ranks": NAMED_AT,
            "y": middle,
            "align": ["left", "right", "right", "right"],
            "shift": [0.0, -8.0, -8.0, -8.0],
            "name": [choose(seen[i], name, "") for i, name in enumerate(NAMES)],
            "narrow": [choose(seen[i], name, "") for i, name in enumerate(SHORT)],
        }

    @part(*MODEL, shown=False)
    def thin(self):
        wide, narrow = self.of_thin_bands()
        return {"wide": wide, "narrow": narrow}

    @part("ranks", *MODEL)
    def chosen(self):
        found = self.shares(self.ranks)
        left = self.ranks > 200
        return {
            "ranks": self.ranks,
            "useful": found.useful,
            "roof": 1.0,
            "text": f"{self.gpus()} the work of {show(self.progress(), 'count')}",
            "narrow": f"the work of {show(self.progress(), 'count')}",
            "align": choose(left, "right", "left"),
            "shift": np.where(left, -8.0, 8.0),
        }

    @hint("chosen")
    def of_the_chosen(self):
        found = self.shares(self.ranks)
        many = choose(self.ranks > 1, "GPUs", "GPU")
        return [
            (
                f"Your {show(self.ranks, 'count')} {many}: {show(found.useful, 'percent')} of the time "
                f"useful, {show(found.surplus, 'percent')} past the critical batch, "
                f"{show(found.exposed, 'percent')} in exposed AllReduces, {show(found.waiting, 'percent')} "
                "waiting for the slowest"
            )
        ]

    @part("step_tokens", "critical_batch")
    def critical(self):
        at = self.critical_ranks()
        seen = (at >= 1) & (at <= MOST)
        return {
            "ranks": np.clip(at, 1.0, MOST),
            "seen": np.where(seen, 1.0, 0.0),
            "align": choose(at > 200, "right", "left"),
            "shift": np.where(at > 200, -8.0, 8.0),
            "text": choose(seen, f"batch = critical at N = {show(at, 'count')}", ""),
            "narrow": choose(seen, "critical batch", ""),
        }

    @part("size", "gpu")
    def state(self):
        held, card = self.held(), self.height(1.0)
        state, hbm = show(self.state_bytes(), "bytes"), sold(self.gpu.hbm_bytes)
        of_hbm = choose(held > 1, show(held, "times"), f"{show(held, 'percent')} of")
        return {
            "inside": self.height(np.minimum(held, 1.0)),
            "top": self.height(np.maximum(held, 1.0)),
            "left": fig.gone_on_log_unless(held > 1, 1.0),
            "right": fig.gone_on_log_unless(held > 1, MOST),
            "wall": card,
            "text": f"State on each GPU, for any number of them: {state}, {of_hbm} the HBM",
            "narrow": f"State on each GPU: {state}, {of_hbm} the HBM",
            "hbm": choose(card > FLOOR + THICK, f"HBM of one {self.gpu.name}, {hbm}", ""),
        }

    @part("size", "gpu", shown=False)
    def cards(self):
        """The edges between the cards that the state would fill."""
        number = np.arange(2.0, MOST_CARDS + 1)
        seen = (number < self.held()) & (self.held() <= MOST_CARDS)
        return {
            "left": fig.gone_on_log_unless(seen, 1.0),
            "right": fig.gone_on_log_unless(seen, MOST),
            "y": self.height(number),
        }

    @hint("state")
    def of_the_state(self):
        held = self.held()
        filled = choose(held > 1, f"{show(held, 'times')} the HBM", f"{show(held, 'percent')} of the HBM")
        return [f"Weights, gradients and optimizer state take {filled} of each GPU, however many there are"]

    @measured("ddp_scaling", *MODEL)
    def runs(self, of):
        """What published runs kept of their speed, from where the curve has their smaller one."""
        ranks, start = of.column("ranks"), self.shares(of.column("base")).computing
        return Seen(
            of.of(gpu=self.gpu)
            & of.near("size", self.size, 0.15)
            & of.near("step_tokens", self.step_tokens, 0.3),
            ranks,
            start * of.measured,
            ranks,
            start * of.ours,
            of.apart("step_tokens", self.step_tokens, "tokens", "Each GPU took {}."),
        )

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot(AXIS, (FLOOR, ROOF), height=490, x_log=True, x_title="GPUs")
        fig.ticks(p.xaxis[0], [1, 8, 64, 512, 4096], "count")
        fig.ticks(p.yaxis[0], [0, 0.25, 0.5, 0.75, 1], "percent")
        p.grid.visible = False
        p.text(1, 1.21, text=value("Where a GPU's time goes"), **fig.BOLD)
        for width in ("wide", "narrow"):
            thin = p.text(MOST, 1.21, text=width, source=sources["thin"], text_align="right", **fig.LABEL)
            fig.only(width, thin)
        areas = {"x": "ranks", "source": sources["areas"]}
        for low, high, look in (
            ("zero", "useful", {"fill_color": color["compute"], "fill_alpha": 0.85}),
            ("useful", "computing", {"fill_color": color["compute"], "fill_alpha": 0.25}),
            ("computing", "sending", {"fill_color": color["network"], "fill_alpha": 0.85}),
            ("sending", "whole", {"fill_color": color["panel"]}),
        ):
            p.varea(y1=low, y2=high, **look, **areas)
        for column, ink, width in (
            ("useful", "compute", 2.5),
            ("computing", "compute", 1.2),
            ("sending", "network", 1.2),
            ("whole", "axis", 1),
        ):
            p.line("ranks", column, source=sources["areas"], line_color=color[ink], line_width=width)
        self.draw_memory(p, sources)
        p.segment(
            "ranks",
            0,
            "ranks",
            1,
            source=sources["critical"],
            line_color=color["ink-faint"],
            line_alpha="seen",
            line_dash=[2, 4],
            line_width=2,
        )
        p.segment(
            "ranks", 0, "ranks", "roof", source=sources["chosen"], line_color=color["ink"], line_width=1.5
        )
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            aside = {"text": column, "text_align": "align", "x_offset": "shift"}
            fig.only(
                width,
                p.text("ranks", 0, source=sources["critical"], y_offset=12, **aside, **fig.TEXT),
                p.text("ranks", "roof", source=sources["chosen"], y_offset=-12, **aside, **fig.BOLD),
            )
        p.scatter(
            "ranks",
            "useful",
            source=sources["chosen"],
            size=11,
            fill_color=color["compute"],
            line_color=color["panel"],
        )
        fig.measured(p, sources["runs"])
        for width, column in (("wide", "name"), ("narrow", "narrow")):
            fig.only(
                width,
                p.text(
                    "ranks",
                    "y",
                    text=column,
                    source=sources["names"],
                    text_align="align",
                    x_offset="shift",
                    **fig.ON_PANEL,
                    **fig.TEXT,
                ),
            )
        return p

    @staticmethod
    def draw_memory(p, sources):
        """The panel below, on the same axis of GPUs: a state that no number of them makes smaller."""
        color, state = fig.COLOR, sources["state"]
        whole = {"left": 1, "right": MOST, "bottom": FLOOR, "source": state}
        p.quad(top="wall", **whole, fill_color=color["panel"], line_color=color["axis"])
        p.quad(top="inside", **whole, fill_color=color["hbm"], line_color=None)
        p.quad(left="left", right="right", bottom="wall", top="top", source=state, **fig.OVER)
        edge = {"line_color": color["panel"], "line_width": 2}
        p.segment("left", "y", "right", "y", source=sources["cards"], **edge)
        wall = {"line_color": color["ink"], "line_width": 2, "line_dash": [6, 4]}
        p.segment(1, "wall", MOST, "wall", source=state, **wall)
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(width, p.text(1, MEMORY_TOP, text=column, source=state, y_offset=-13, **fig.BOLD))
        below = {"text_align": "right", "x_offset": -8, "y_offset": 13, "background_fill_alpha": 1.0}
        p.text(MOST, "wall", text="hbm", source=state, **fig.ON_PANEL | below, **fig.TEXT)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Speed-up in tokens")
    def tokens_speed_up(self):
        return show(data_parallel.progress(self.shares(self.ranks).computing, self.ranks), "times")

    @readout("Speed-up toward the loss")
    def loss_speed_up(self):
        return f"{show(self.progress(), 'times')}"

    @readout("Global batch")
    def batch(self):
        tokens = self.batch_tokens(self.ranks)
        return show(tokens, "tokens"), tokens > self.critical_batch

    @regime(target=True)
    def not_freed(self):
        return (self.held() > 1) & (self.ranks >= MANY), (
            f"You found the wall that no N removes: on {show(self.ranks, 'count')} GPUs, too, each keeps a "
            f"whole copy of {show(self.state_bytes(), 'bytes')}, and one {self.gpu.name} has "
            f"{sold(self.gpu.hbm_bytes)}. First response: stop keeping copies (FSDP and ZeRO, lesson 05)."
        )

    @regime()
    def memory_wall(self):
        return (self.held() > 1) & (self.ranks < MANY), (
            f"The state does not fit: {show(self.state_bytes(), 'bytes')} on each GPU, and one "
            f"{self.gpu.name} has {sold(self.gpu.hbm_bytes)}. Add GPUs, and see whether that helps."
        )

    @regime()
    def past_critical(self):
        batch, found = self.batch_tokens(self.ranks), self.shares(self.ranks)
        worth = data_parallel.useful_share(batch, self.critical_batch)
        most = data_parallel.most_progress(self.critical_batch, self.step_tokens)
        response = choose(
            found.exposed < HIDDEN,
            "fewer tokens on each GPU, as far as the wire allows, or other axes (lesson 10)",
            "fewer GPUs on this axis, and others for the rest (lesson 10)",
        )
        return batch > self.critical_batch, (
            f"Past the critical batch: {show(found.computing, 'percent', 2)} of the time is arithmetic, "
            f"{show(worth, 'percent', 2)} of that is useful, so {show(found.useful, 'percent', 2)} of the "
            f"time is. No number of GPUs passes {show(most, 'times')}. First response: {response}."
        )

    @regime()
    def on_the_wire(self):
        exposed = self.shares(self.ranks).exposed
        return exposed > 0.2, (
            f"The wire sets the pace: {show(exposed, 'percent', 2)} of the step is AllReduce that nothing "
            "hides. First response: a larger micro-batch on each GPU."
        )

    def summary(self):
        state = show(self.state_bytes(), "bytes")
        keeps = choose(self.ranks == 1, f"keeps {state}", f"each of them keeps {state}")
        return f"{self.gpus()} the work of {show(self.progress(), 'count')}, and {keeps} of state."


DdpScaling.serve_as(__name__)
