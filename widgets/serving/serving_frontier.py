"""Every way to split a fleet into replicas, by the time per token and the throughput per GPU: the
frontier."""

from typing import Any

import numpy as np

from engine import catalog
from engine.serving import decoding
from engine.serving.deployment import choice
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import isometric
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime
from widgets.serving.two_pools import asked

DEGREES = np.array([1.0, 2, 4, 8, 16, 32])
USERS = decoding.USERS
DOTS = np.searchsorted(USERS, np.unique(np.round(np.geomspace(1, 4096, 37))))  # as many as can be told apart
NAMES = [f"TP {degree:.0f}" for degree in DEGREES]
NAME_DOUBLINGS = (0.6, 0.4)  # how much room a name takes on the two axes
NAMES_UP_TO_S = 0.5  # a curve that ends later has its name here, so that it is not cut
LATE_S, LATEST_S = (
    0.08,
    0.5,
)  # from there on the target's name has no room on its right, on a phone and at all
EARLY_S = 0.008  # up to there the best split's label has no room on its left
TARGETS_S = np.geomspace(1e-3, 1.0, 193)
VIEWS = [m * 10.0**e for e in range(1, 6) for m in (1, 2, 5)]
MODELS = [
    catalog.model(key)
    for key in (
        "llama3-8b",
        "qwen3-32b",
        "llama3-70b",
        "llama3.1-405b",
        "mixtral-8x22b",
        "gpt-oss-120b",
        "deepseek-v3",
    )
]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200", "mi300x")]


NARROWER = "narrower weights, a faster HBM, or speculative decoding"
SHORTER = "a shorter prompt, or other GPUs for the prompts (lesson 12)"  # narrower weights may slow them
PREFILLS = 4.0  # a token of the only user below so many times its prefills: they are what to shorten
FLEET = ("model", "fleet", "gpu", "prompt", "output", "weights", "cache")


class ServingFrontier(Widget):
    question = "How should a fleet be split: fewer fast replicas, or many slow ones?"
    target = Number(
        "Time per token, at most",
        0.03,
        1e-3,
        1.0,
        family="seconds",
        stops=73,
        marks=(0.01, 0.02, 0.04, 0.05, 0.1),
    )
    traffic = Number("Tokens to serve, per second", 8000, 100, 1e7, stops=61, marks=(1e3, 8e3, 2e4, 1e5))
    model = Choice("Model", MODELS, "llama3-70b")
    fleet = Number("GPUs", 64, 1, 4096, stops=[2**k for k in range(13)], whole=True, more=True)
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    prompt = Number(
        "Prompt", 2048, 16, 131072, family="tokens", stops=53, whole=True, marks=(2048, 8192), more=True
    )
    output = Number(
        "Answer", 256, 16, 16384, family="tokens", stops=41, whole=True, marks=(256, 512, 1024), more=True
    )
    weights = Choice("Weights stored in", asked.WEIGHTS, "bf16", more=True)
    cache = Choice("Cache stored in", asked.WIDTHS, "bf16", more=True)
    price = asked.price()
    dots = Dots()

    presets = {
        "70B, a chat": {},
        "70B, read aloud": {"target": 0.2, "traffic": 1.5e4},
        "70B, an agent in a hurry": {"target": 0.012, "traffic": 2000},
        "70B on 8 H200, as in MLPerf": {
            "gpu": "h200",
            "fleet": 8,
            "weights": "fp8",
            "cache": "fp8",
            "prompt": 294,
            "output": 293,
            "target": 0.04,
            "traffic": 2e4,
        },
        "8B on 8 GPUs": {"model": "llama3-8b", "fleet": 8},
        "405B in fp8": {"model": "llama3.1-405b", "weights": "fp8", "target": 0.06},
        "DeepSeek-V3 on H200": {"model": "deepseek-v3", "gpu": "h200", "weights": "fp8", "target": 0.05},
    }
    break_it = "Tighten the target until no split of these GPUs meets it."
    assumptions = (
        "A queue that never runs dry keeps every replica full, all users are alike, and each token pays its "
        "share of the prefills. A curve ends where the cache is full. With weights in fp8 the products are "
        "in fp8 too, where the GPU has units for them (W8A8); weights of 4 bits are widened for a bf16 "
        "product and do not speed up prefills. Leaves out bursts and their waiting (lesson 12), speculative "
        "decoding, expert parallelism and pipelines."
    )
    formula = (
        "$$\\tau = \\tau_\\text{step}(t, u) + \\frac{u \\, \\tau_\\text{prefill}}{n_{out}}, \\qquad X = "
        "\\frac{u}{\\tau \\, t}$$\n\n$u$ users share a replica of $t$ GPUs; $\\tau$ is the time from one of "
        "a user's tokens to the next, $X$ the tokens that each GPU writes in a second. The frontier is the "
        "most that any $(t, u)$ writes within each $\\tau$; the best split has whole users."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def at(self):
        return over(choice.served_on, self.gpu, self.weights)

    @once
    def steady(self):
        at = self.at()
        return over(
            lambda model: decoding.steady(
                model,
                at,
                DEGREES[:, None],
                USERS[None, :],
                self.prompt,
                self.output,
                self.cache,
                self.weights.bytes,
            ),
            self.model,
        )

    @once
    def token_s(self):
        return self.steady().token_s

    @once
    def brings(self):
        """Tokens per second and GPU, for replicas no larger than the fleet."""
        return np.where(DEGREES[:, None] <= self.fleet, self.steady().tokens_per_s_per_gpu, 0.0)

    @once
    def grid_users(self):
        """Users at each point of the curves; none if the replica does not fit in the fleet, or the model in
        the replica."""
        return np.where(self.brings() > 0, self.steady().batch, 0.0)

    @once
    def meeting(self):
        """Each degree's best replica within the target."""
        at, grid = self.at(), self.steady()
        in_fleet = decoding.FullReplica(grid.batch, grid.token_s, self.brings(), grid.first_s)
        return over(
            lambda model: decoding.steady_within(
                self.target,
                in_fleet,
                model,
                at,
                DEGREES,
                self.prompt,
                self.output,
                self.cache,
                self.weights.bytes,
            ),
            self.model,
        )

    def best(self, values):
        return lookup(values, np.argmax(self.meeting().tokens_per_s_per_gpu))

    def best_brings(self):
        return self.best(self.meeting().tokens_per_s_per_gpu)

    def is_for_prompts(self):
        """Whether prefills have a large part even of a token of the only user."""
        return np.min(self.token_s()) < PREFILLS * np.min(self.steady().first_s) / self.output

    def none_meets(self):
        return self.best_brings() <= 0

    def best_degree(self):
        return self.best(DEGREES)

    def best_users(self):
        return self.best(self.meeting().batch)

    def users_in_words(self):
        return f"{show(self.best_users(), 'count')} user{choose(self.best_users() > 1, 's', '')}"

    def replicas(self):
        return decoding.replicas(self.fleet, self.best_degree())

    def fleet_brings(self):
        return decoding.fleet_tokens_per_s(self.fleet, self.best_degree(), self.best_brings())

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*FLEET)
    def curves(self):
        """One line for each degree, its points from one user to a full cache."""
        shown = np.maximum(self.brings(), 1e-3)
        return {
            f"{axis}{i}": values[i]
            for i in range(6)
            for axis, values in (("x", self.token_s()), ("y", shown))
        }

    @part(*FLEET)
    def names(self):
        x, y = np.minimum(self.token_s()[:, -1], NAMES_UP_TO_S), np.maximum(self.brings()[:, -1], 1e-3)
        return {
            "x": x,
            "y": isometric.apart_on_logs(x, y, *NAME_DOUBLINGS),
            "name": NAMES,
            "short": [f"{degree:.0f}" for degree in DEGREES],
        }

    @part(*FLEET)
    def points(self):
        return {
            "x": np.ravel(self.token_s()[:, DOTS]),
            "y": np.maximum(np.ravel(self.brings()[:, DOTS]), 1e-3),
        }

    @hint("points")
    def said(self):
        return phrase(
            "{degree}, users a replica: {users}; {time} a token, {brings} tokens/s per GPU",
            degree=select(np.repeat(np.arange(6.0), len(DOTS)), NAMES),
            users=show(np.ravel(self.steady().batch[:, DOTS]), "count"),
            time=show(np.ravel(self.token_s()[:, DOTS]), "seconds"),
            brings=show(np.ravel(self.brings()[:, DOTS]), "count"),
        )

    @part(*FLEET)
    def frontier(self):
        return {
            "target": TARGETS_S,
            "most": np.maximum(
                decoding.best_within(TARGETS_S, self.token_s(), self.grid_users(), DEGREES), 1e-3
            ),
        }

    @part(*FLEET, shown=False)
    def frontier_name(self):
        """Beside the foot of the band, where nothing else is, if there is room."""
        first_s = np.min(np.where(self.brings()[:, 0] > 0, self.token_s()[:, 0], 1.0))
        top = fig.fitting_view(np.max(self.brings()), VIEWS, headroom=1.6)
        return {
            "x": first_s,
            "y": fig.decades_below(top, 2.25),
            "text": choose(first_s > EARLY_S, "band: the best split", choose(first_s > 2e-3, "the best", "")),
        }

    @measured("serving_frontier", *FLEET)
    def runs(self, of):
        same = of.of(model=self.model, gpu=self.gpu, weights=self.weights.bytes, cache=self.cache)
        x = of.column("token_s")
        return Seen(
            same & of.near("prompt", self.prompt, 0.1) & of.near("output", self.output, 0.1),
            x,
            of.measured,
            x,
            of.ours,
            of.apart("fleet", self.fleet, "count", "It ran on {} GPUs."),
        )

    @part("target")
    def limit(self):
        return {"x": self.target}

    @part("target", *FLEET)
    def limit_name(self):
        top = fig.fitting_view(np.max(self.brings()), VIEWS, headroom=1.6)
        return {
            "x": self.target,
            "label_at": fig.decades_below(top, 0.1),
            "align": choose(self.target > LATEST_S, "right", "left"),
            "shift": np.where(self.target > LATEST_S, -6.0, 6.0),
            "narrow_at": fig.decades_below(top, 2.4),
            "narrow_align": choose(self.target > LATE_S, "right", "left"),
            "narrow_shift": np.where(self.target > LATE_S, -6.0, 6.0),
            "label": f"target: {show(self.target, 'seconds')}",
        }

    @part("target", "traffic", *FLEET)
    def chosen(self):
        met = self.best_brings() > 0
        gpus, brings = show(self.fleet, "count"), show(self.fleet_brings(), "count")
        return {
            "x": np.where(met, self.best(self.meeting().token_s), self.target),
            "y": np.maximum(self.best_brings(), 1e-3),
            "label": choose(met, f"TP {show(self.best_degree(), 'count')}, {self.users_in_words()}", ""),
            "split": choose(met, f"{gpus} GPUs as {self.split()[0]}", ""),
            "each": choose(met, f"{self.users_in_words()} on each", ""),
            "serves": choose(met, f"{brings} tokens/s, {show(self.traffic, 'count')} asked for", ""),
            "align": choose(self.target < EARLY_S, "left", "right"),
            "shift": np.where(self.target < EARLY_S, 12.0, -12.0),
        }

    def ranges(self):
        top = fig.fitting_view(np.max(self.brings()), VIEWS, headroom=1.6)
        return {"y": [fig.decades_below(top, 2.5), top]}

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Best split")
    def split(self):
        none = self.none_meets()
        return choose(
            none, "none", f"{show(self.replicas(), 'count')} × TP {show(self.best_degree(), 'count')}"
        ), none

    @readout("Users on each replica", rest=True)
    def users(self):
        return choose(self.none_meets(), "–", show(self.best_users(), "count"))

    @readout("Tokens/s per GPU", rest=True)
    def per_gpu(self):
        return show(self.best_brings(), "count")

    @readout("The fleet writes", rest=True)
    def total(self):
        return f"{show(self.fleet_brings(), 'count')} tokens/s", self.fleet_brings() < self.traffic

    @readout("GPUs that this traffic needs", help="In whole replicas of the best split")
    def needed(self):
        brings = np.maximum(self.best_brings(), 1e-9)
        needed, fleet = decoding.gpus_for(self.traffic, brings, self.best_degree()), show(self.fleet, "count")
        there_are = choose(needed > self.fleet, f", there are {fleet}", f" of the {fleet}")
        return choose(self.none_meets(), "no number", f"{show(needed, 'count')}{there_are}")

    @readout("A million tokens")
    def cost(self):
        brings = np.maximum(self.best_brings(), 1e-9)
        return choose(
            self.none_meets(), "–", show(decoding.dollars_per_million(self.price, brings), "dollars")
        )

    @regime(target=True)
    def impossible(self):
        return self.none_meets(), (
            f"You found a target that no split meets: {show(self.target, 'seconds')} a token is sooner than "
            f"one user alone is served. First response: {choose(self.is_for_prompts(), SHORTER, NARROWER)}; "
            "more replicas change nothing."
        )

    @regime()
    def too_little(self):
        return (self.fleet_brings() < self.traffic) & ~self.none_meets(), (
            f"The fleet writes {show(self.fleet_brings(), 'count')} of {show(self.traffic, 'count')} "
            "tokens/s within the target. First response: more replicas of the same split, or a looser target "
            "that lets more users share a step."
        )

    def summary(self):
        on = f"{show(self.fleet, 'count')} {self.gpu.name}"
        within = f"{show(self.target, 'seconds')} a token"
        return choose(
            self.none_meets(),
            f"No split of {on} serves {self.model.name} within {within}.",
            f"Within {within}, {on} serve most as {self.split()[0]}: "
            f"{show(self.fleet_brings(), 'count')} tokens/s for the {show(self.traffic, 'count')} asked.",
        )

    def figure(self, sources):
        p = fig.plot(
            (1e-3, 1.0),
            (1, 2e4),
            height=430,
            x_title="time from one token to the next",
            y_title="tokens/s per GPU; TP 8: replicas of 8 GPUs",
            x_log=True,
            y_log=True,
        )
        fig.ticks(p.xaxis[0], [1e-3, 0.01, 0.1, 1], "seconds")
        fig.ticks(p.yaxis[0], [0.1, 1, 10, 100, 1000, 10_000], "count")
        color = fig.COLOR
        p.quad(
            left="x",
            right=10,
            bottom=1e-4,
            top=1e6,
            source=sources["limit"],
            fill_color=color["ink"],
            fill_alpha=0.05,
            line_color=None,
        )
        p.line(
            "target",
            "most",
            source=sources["frontier"],
            line_color=color["accent"],
            line_width=9,
            line_alpha=0.22,
        )
        for i in range(6):
            p.line(
                f"x{i}",
                f"y{i}",
                source=sources["curves"],
                line_color=color["compute"],
                line_width=1.6,
                line_alpha=0.3 + 0.12 * i,
            )
        p.scatter(
            "x",
            "y",
            source=sources["points"],
            size=3,
            fill_color=color["compute"],
            line_color=None,
            fill_alpha=0.5,
        )
        for width, text in (("wide", "name"), ("narrow", "short")):
            fig.only(
                width,
                p.text("x", "y", text=text, x_offset=7, source=sources["names"], **fig.ON_PANEL, **fig.LABEL),
            )
        p.segment(
            "x",
            1e-4,
            "x",
            1e6,
            source=sources["limit"],
            line_color=color["ink"],
            line_width=2,
            line_dash=[6, 4],
        )
        band = {"text": "text", "source": sources["frontier_name"], "x_offset": -14, "text_align": "right"}
        fig.only("wide", p.text("x", "y", **band, **fig.LABEL | fig.ON_PANEL))
        named = {"text": "label", "source": sources["limit_name"]} | fig.ON_PANEL | fig.BOLD
        fig.only("wide", p.text("x", "label_at", text_align="align", x_offset="shift", **named))
        aside = {"text_align": "narrow_align", "x_offset": "narrow_shift"}
        fig.only("narrow", p.text("x", "narrow_at", **aside, **named))
        fig.measured(p, sources["runs"])
        p.scatter(
            "x",
            "y",
            source=sources["chosen"],
            size=13,
            fill_color=color["compute"],
            line_color=color["panel"],
            line_width=2,
        )
        beside: dict[str, Any] = {"x": "x", "y": "y", "source": sources["chosen"]} | fig.ON_PANEL
        for line, up, style in (
            ("split", -48, fig.BOLD),
            ("each", -31, fig.LABEL),
            ("serves", -14, fig.BOLD),
        ):
            words = {"text": line, "text_align": "align", "x_offset": "shift", "y_offset": up}
            fig.only("wide", p.text(**words, **beside, **style))
        words = {"text": "label", "text_align": "right", "x_offset": -12, "y_offset": -14}
        fig.only("narrow", p.text(**words, **beside, **fig.BOLD))
        return p


ServingFrontier.serve_as(__name__)
