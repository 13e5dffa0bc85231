"""What more GPUs bring a data-parallel run: where their time goes as N grows, and the memory that no N frees."""

import numpy as np

from engine import catalog, collectives, data_parallel, hardware, memory
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.text import choose, show
from widgets.kit.widget import Widget, part, readout, regime

MOST = 2**14
RANK_STOPS = sorted({n for k in range(15) for n in (2**k, 5 * 2**k // 4, 3 * 2**k // 2, 7 * 2**k // 4) if n <= MOST})
RANKS = np.array(RANK_STOPS, dtype=float)
FLOOR, CEILING, ROOF = -0.74, -0.24, 1.13           # the memory's band stands below the shares
MOST_MEMORIES, WORST = 100.0, 2.0                   # the band ends at a state of so many GPUs' memory: fig.past_wall
NAMES = ["useful arithmetic", "arithmetic past the critical batch", "exposed AllReduce", "waiting for the slowest"]
SHORT = ["useful", "past critical", "exposed", "waiting"]
NAMED_AT = np.array([1.3, MOST, MOST, MOST])        # where the areas' names stand, in the order of NAMES …
NAMED_FOR = np.array([8.0, MOST, MOST, MOST])       # … and where the areas must be thick enough for them
THIN = 0.06
MODEL = ["size", "step_tokens", "wire_bytes_per_s", "gpu", "mfu", "critical_batch", "deviation", "algorithm", "alpha_s"]
NETWORK = catalog.link("ib-ndr")


class DdpScaling(Widget):
    question = "What do more GPUs bring, and what do they leave as it is?"
    ranks = Number("GPUs", 512, 1, MOST, stops=RANK_STOPS, whole=True)
    step_tokens = Number("Tokens per GPU", 8192, 256, 262144, family="tokens", marks=(1024, 4096, 32768))
    size = Number("Model size", 3e9, 0.1e9, 1e12, family="params", stops=80, marks=(1e9, 8e9, 70e9))
    wire_bytes_per_s = Number("Wire beyond the node", 400e9, 1e9, 800e9, family="bytes_per_s",
                              marks=(1.25e9, 12.5e9, 50e9), more=True,
                              help="One way, for a ring: all cards of a node together. Inside, the GPU's own link")
    critical_batch = Number("Critical batch", 4e6, 1e5, 1e8, family="tokens", marks=(1e6, 16e6), more=True)
    gpu = Choice("GPU", [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")], "h100-sxm", more=True)
    mfu = Number("MFU of one GPU", 0.4, 0.1, 0.7, family="percent", stops=61, log=False, more=True,
                 help="The share of the peak that it reaches alone")
    deviation = Number("Spread of step times", 0.01, 0, 0.1, family="percent", stops=41, log=False, more=True,
                       help="Standard deviation of a rank's computing time, from step to step")
    algorithm = Choice("AllReduce starts as", {"tree": ("a tree", 0), "ring": ("a ring", 1)}, "tree", more=True)
    alpha_s = Number("Start-up of a hop", NETWORK.latency_s, 1e-6, 1e-4, family="seconds", more=True)

    presets = {
        "3B on 512 H100s": {},
        "One node": {"ranks": 8},
        "Small batch on Ethernet": {"ranks": 64, "step_tokens": 1024, "wire_bytes_per_s": 12.5e9},
        "Llama 3 8B": {"size": 8e9, "ranks": 1024, "critical_batch": 16e6},
        "70B": {"size": 70e9},
    }
    break_it = "Enlarge the model until its state no longer fits. Then try to bring it back by adding GPUs."
    assumptions = (
        "Each GPU keeps its tokens per step as others are added (weak scaling), all in one micro-batch; bf16 "
        "gradients in buckets of 25 MiB behind the backward pass. A sample of a batch $B$ is worth $1/(1 + "
        "B/B_\\text{crit})$ of one in a tiny batch; the critical batch grows as the loss falls, and four million "
        "tokens is about Kaplan's fit at a loss of 2.3 nats. Step times spread normally, anew in each step. State of "
        "bf16 mixed Adam, without activations; the memory bar is linear up to the HBM and logarithmic beyond.")
    formula = (
        r"$$\text{share} = \frac{T_1}{T_\text{slowest} + T_\text{exposed}} \cdot \frac{1}{1 + B/B_\text{crit}}, \qquad "
        r"B = N \cdot \text{tokens}$$" "\n\n" r"$T_1$ is the computing time, the same for any $N$; "
        r"$T_\text{slowest} = T_1 (1 + d\,z_N)$ with $z_N \approx \Phi^{-1}((N - 3/8)/(N + 1/4))$, the slowest of $N$ "
        r"normal values in deviations $d$ (Blom 1958); $T_\text{exposed}$ is what of the AllReduce ends after the "
        r"backward pass. Steps and samples to a loss trade as $S/S_\text{min} = 1 + B_\text{crit}/B$ (McCandlish et "
        r"al., arXiv:1812.06162, eq. 2.11); $B_\text{crit}$ by Kaplan et al., arXiv:2001.08361, eq. 1.4. State: $16P$ "
        "bytes, whatever $N$.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    def wire(self, ranks):
        """(bytes per second, start-up) of a ring: the link within a node, what leaves a node beyond."""
        outside = np.minimum(self.wire_bytes_per_s, self.gpu.link_bytes_per_s)
        rate, alpha_s = collectives.flat_wire(ranks, self.gpu.gpus_per_node, self.gpu.link_bytes_per_s,
                                              self.alpha_s, outside, self.alpha_s)
        return rate, np.where(self.algorithm == 1, alpha_s, data_parallel.tree_alpha_s(ranks, alpha_s))

    def step(self, ranks):
        flops_per_s = hardware.achieved_flops_per_s(self.gpu, self.mfu)
        return data_parallel.step(self.size, self.step_tokens, ranks, flops_per_s, *self.wire(ranks))

    def batch_tokens(self, ranks):
        return data_parallel.batch_tokens(ranks, self.step_tokens)

    def shares(self, ranks):
        return data_parallel.shares(self.step(ranks), self.batch_tokens(ranks), ranks, self.critical_batch,
                                    self.deviation)

    def useful_alone(self):
        return data_parallel.useful_share(self.step_tokens, self.critical_batch)

    def progress(self):
        return data_parallel.progress(self.shares(self.ranks).useful, self.ranks, self.useful_alone())

    def critical_ranks(self):
        return data_parallel.ranks_at(self.critical_batch, self.step_tokens)

    def state_bytes(self):
        return memory.state_bytes(self.size)

    def gpus(self):
        return choose(self.ranks > 1, f"{show(self.ranks, 'count')} GPUs do", "1 GPU does")

    def held(self):
        return memory.against_hbm(self.state_bytes(), self.gpu)

    def height(self, ratio):
        """Where a ratio to the HBM stands in the memory's band."""
        return fig.between(FLOOR, CEILING, fig.filled(fig.past_wall(ratio), WORST))

    # -- the picture ------------------------------------------------------------------------------------------------
    @part(*MODEL)
    def areas(self):
        _, tops = fig.stacked(np.stack(self.shares(RANKS)))
        return {"ranks": RANKS, "zero": np.zeros(len(RANKS)), "useful": tops[0], "computing": tops[1],
                "sending": tops[2], "whole": tops[3]}

    @part(*MODEL, shown=False)
    def names(self):
        lengths = np.stack(self.shares(NAMED_FOR))
        bottom, top = (np.stack([ends[i][i] for i in range(4)]) for ends in fig.stacked(lengths))
        middle, seen = fig.midpoint(bottom, top), [lengths[i][i] > THIN for i in range(4)]
        return {"ranks": NAMED_AT, "y": middle, "align": ["left", "right", "right", "right"],
                "shift": [0.0, -8.0, -8.0, -8.0],
                "name": [choose(seen[i], name, "") for i, name in enumerate(NAMES)],
                "narrow": [choose(seen[i], name, "") for i, name in enumerate(SHORT)]}

    @part("ranks", *MODEL)
    def chosen(self):
        found = self.shares(self.ranks)
        left = self.ranks > 200
        return {"ranks": self.ranks, "useful": found.useful, "roof": 1.0,
                "text": f"{self.gpus()} the work of {show(self.progress(), 'count')}",
                "narrow": f"the work of {show(self.progress(), 'count')}",
                "align": choose(left, "right", "left"), "shift": np.where(left, -8.0, 8.0)}

    @part("step_tokens", "critical_batch")
    def critical(self):
        at = self.critical_ranks()
        seen = (at >= 1) & (at <= MOST)
        return {"ranks": np.clip(at, 1.0, MOST), "seen": np.where(seen, 1.0, 0.0),
                "align": choose(at > 200, "right", "left"), "shift": np.where(at > 200, -8.0, 8.0),
                "text": choose(seen, f"batch = critical at N = {show(at, 'count')}", ""),
                "narrow": choose(seen, "critical batch", "")}

    @part("size", "gpu")
    def state(self):
        wall, top = self.height(1.0), self.height(np.minimum(self.held(), MOST_MEMORIES))
        return {"inside": np.minimum(wall, top), "top": np.maximum(wall, top), "wall": wall,
                "over": np.where(self.held() > 1, 1.0, 0.0),
                "text": f"state on each GPU, for any N: {show(self.state_bytes(), 'bytes')}",
                "narrow": f"state, for any N: {show(self.state_bytes(), 'bytes')}",
                "hbm": f"{choose(self.held() > 1, 'past the ', '')}HBM of one {self.gpu.name}: "
                       f"{show(self.gpu.hbm_bytes, 'bytes')}"}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((1, MOST), (FLOOR, ROOF), height=470, x_log=True, x_title="GPUs",
                     y_title="where a GPU's time goes")
        fig.ticks(p.xaxis[0], [1, 8, 64, 512, 4096], "count")
        fig.ticks(p.yaxis[0], [0, 0.25, 0.5, 0.75, 1], "percent")
        areas = {"x": "ranks", "source": sources["areas"]}
        p.varea(y1="zero", y2="useful", fill_color=color["compute"], fill_alpha=0.42, **areas)
        p.varea(y1="useful", y2="computing", fill_color=color["compute"], fill_alpha=0.12, hatch_pattern="dot",
                hatch_color=color["compute"], hatch_alpha=0.35, hatch_scale=8, **areas)
        p.varea(y1="computing", y2="sending", fill_color=color["network"], fill_alpha=0.42, **areas)
        p.varea(y1="sending", y2="whole", **areas, **_area(fig.IDLE))
        for column, ink, width in (("useful", "compute", 2.5), ("computing", "compute", 1.2),
                                   ("sending", "network", 1.2)):
            p.line("ranks", column, source=sources["areas"], line_color=color[ink], line_width=width)
        state = {"left": 1, "right": MOST, "source": sources["state"]}
        p.quad(bottom=FLOOR, top="inside", fill_color=color["hbm"], fill_alpha=0.28, line_color=color["hbm"], **state)
        p.quad(bottom="wall", top="top", line_alpha="over", **state, **fig.OVER)
        p.segment(1, "wall", MOST, "wall", source=sources["state"], line_color=color["ink"], line_width=2,
                  line_dash=[6, 4])
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(width, p.text(1.3, FLOOR, text=column, source=sources["state"], y_offset=-14, **fig.BOLD))
        p.text(MOST, "top", text="hbm", source=sources["state"], text_align="right", x_offset=-8, y_offset=-12,
               **fig.TEXT)
        p.segment("ranks", 0, "ranks", 1, source=sources["critical"], line_color=color["ink-faint"], line_alpha="seen",
                  line_dash=[2, 4], line_width=2)
        p.segment("ranks", 0, "ranks", "roof", source=sources["chosen"], line_color=color["ink"], line_width=1.5)
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            aside = {"text": column, "text_align": "align", "x_offset": "shift"}
            fig.only(width, p.text("ranks", 0, source=sources["critical"], y_offset=12, **aside, **fig.TEXT),
                     p.text("ranks", "roof", source=sources["chosen"], y_offset=-12, **aside, **fig.BOLD))
        p.scatter("ranks", "useful", source=sources["chosen"], size=11, fill_color=color["compute"],
                  line_color=color["panel"])
        for width, column in (("wide", "name"), ("narrow", "narrow")):
            fig.only(width, p.text("ranks", "y", text=column, source=sources["names"], text_align="align",
                                   x_offset="shift", **fig.TEXT))
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Speed-up in tokens")
    def tokens_speed_up(self):
        return show(data_parallel.progress(self.shares(self.ranks).computing, self.ranks), "times")

    @readout("Efficiency")
    def efficiency(self):
        share = self.shares(self.ranks).computing
        return show(share, "percent"), share < 0.5

    @readout("Speed-up toward the loss")
    def loss_speed_up(self):
        return f"{show(self.progress(), 'times')}"

    @readout("Global batch")
    def batch(self):
        tokens = self.batch_tokens(self.ranks)
        return show(tokens, "tokens"), tokens > self.critical_batch

    @readout("State per GPU")
    def per_gpu(self):
        return show(self.state_bytes(), "bytes"), self.held() > 1

    @regime(target=True)
    def memory_wall(self):
        return self.held() > 1, (
            f"You found the wall that no N removes: every GPU keeps a whole copy of "
            f"{show(self.state_bytes(), 'bytes')}, and one {self.gpu.name} has {show(self.gpu.hbm_bytes, 'bytes')}. "
            "First response: stop keeping copies (FSDP and ZeRO, lesson 05).")

    @regime()
    def past_critical(self):
        batch = self.batch_tokens(self.ranks)
        worth = data_parallel.useful_share(batch, self.critical_batch)
        most = data_parallel.most_progress(self.critical_batch, self.step_tokens)
        return batch > self.critical_batch, (
            f"Past the critical batch: of the arithmetic {show(worth, 'percent', 2)} is useful, and no number of GPUs "
            f"passes {show(most, 'times')}. "
            "First response: fewer tokens on each GPU, as far as the wire allows, or other axes (lesson 10).")

    @regime()
    def on_the_wire(self):
        exposed = self.shares(self.ranks).exposed
        return exposed > 0.2, (
            f"The wire sets the pace: {show(exposed, 'percent', 2)} of the step is AllReduce that nothing hides. "
            "First response: a larger micro-batch on each GPU.")

    def summary(self):
        found = self.shares(self.ranks)
        return (f"{self.gpus()} a step of {show(self.batch_tokens(self.ranks), 'tokens')}, "
                f"{show(self.step_tokens, 'tokens')} on each; {show(found.computing, 'percent', 2)} of the time is "
                f"arithmetic and {show(found.useful, 'percent', 2)} useful arithmetic, the work of "
                f"{show(self.progress(), 'count')}, and each keeps {show(self.state_bytes(), 'bytes')} of state.")


def _area(style):
    """A box's style for an area, which has no outline."""
    return {name: value for name, value in style.items() if not name.startswith("line")}
