"""Every deployment of a model for a load, by the speed of a user's answer and the tokens of a GPU: the
cheapest that keeps both limits, and the next."""

import numpy as np

from engine import catalog
from engine.serving import decoding
from engine.serving.deployment import choice
from engine.step.layout import machine
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.guide import Light, Step
from widgets.kit.measured import Dots, Seen, measured
from widgets.kit.text import choose, counted, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime
from widgets.serving.two_pools import asked

MODELS = [
    catalog.model(key)
    for key in (
        *("llama3-8b", "qwen3-32b", "llama3-70b", "llama3.1-405b", "gpt-oss-120b", "deepseek-v3"),
        *(
            "qwen3.5-27b",
            "qwen3.5-35b-a3b",
            "qwen3.5-397b-a17b",
            "gemma4-31b",
            "minimax-m2",
            "nemotron-3-super",
        ),
        *("glm-5", "deepseek-v3.2", "deepseek-v4-flash", "kimi-k2.5", "kimi-linear-48b", "mistral-large-3"),
    )
]
GPUS = [catalog.gpu(key) for key in ("h100-sxm", "h200", "b200", "mi300x")]
WEIGHTS = {
    one.key: ({"fp8": "fp8, products too", "int4": "4 bits"}.get(one.key, one.key), one)
    for one in choice.FORMATS
}
DEGREES = [f"{degree}" for degree in choice.DEGREES]
WRITES = np.array(choice.DEGREES * 2, dtype=float)  # GPUs of a replica that writes, kind by kind
PER_USER = np.array(choice.PER_USER)
SLOWEST, FASTEST = 1.5, 500.0  # tokens a second, in the picture
VIEWS = [m * 10.0**e for e in range(1, 6) for m in (1, 2, 5)]
DECADES = 2.0  # of the picture's height
BOUNDS = [
    "the first token",
    "the time of a token",
    "the longest pause",
    "the load itself",
    "the smallest of its kind",
]
LESS = [f"One less misses {bound}." for bound in BOUNDS[:4]] + ["There is no smaller one of its kind."]
LOAD = ("rate", "prompt", "answer", "spread", "prefix", "model", "gpu", "weights")
ANY_S = 20.0  # a limit that everything keeps
ASKED = ("tpot", "ttft", "pause", "share", *LOAD)


class DeploymentPlanner(Widget):
    question = "What is the cheapest way to serve this load within its limits?"
    in_page = True
    model = Choice("Model", MODELS, "llama3-70b")
    tpot = Number(
        "Each token, at most",
        0.05,
        0.005,
        0.5,
        family="seconds",
        stops=61,
        marks=(0.01, 0.02, 0.03, 0.05, 0.1),
    )
    rate = Number("Requests per second", 8, 0.1, 1000, stops=61, marks=(1, 2, 4, 8, 16, 32))
    ttft = Number(
        "First token, at most", 1.0, 0.05, 20.0, family="seconds", stops=53, marks=(0.2, 0.5, 2.0), more=True
    )
    pause = Number(
        "Longest pause of an answer, at most",
        ANY_S,
        0.01,
        ANY_S,
        family="seconds",
        stops=61,
        marks=(0.025, 0.03, 0.05, 0.1),
        more=True,
    )
    share = Number(
        "Share of requests that each holds for",
        0.9,
        0.5,
        0.99,
        family="percent",
        stops=[0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99],
        log=False,
        more=True,
    )
    prompt = Number(
        "Prompt, median",
        2000,
        16,
        64_000,
        family="tokens",
        stops=61,
        whole=True,
        marks=(500, 922, 2000, 4000, 8000),
        more=True,
    )
    answer = Number(
        "Answer, median",
        200,
        2,
        8000,
        family="tokens",
        stops=53,
        whole=True,
        marks=(200, 922, 1000),
        more=True,
    )
    spread = asked.spread()
    prefix = Number(
        "Share of a prompt that a prefix cache holds",
        0.0,
        0.0,
        0.95,
        family="percent",
        stops=20,
        log=False,
        more=True,
    )
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    weights = Choice("Weights stored in", WEIGHTS, "bf16", more=True)
    price = asked.price()
    dots = Dots()

    presets = {
        "70B, a chat": {},
        "… 20 ms a token": {"tpot": 0.02},
        "… in fp8": {"weights": "fp8"},
        "An agent, most of its prompt cached": {
            "model": "qwen3-32b",
            "prompt": 12_000,
            "answer": 150,
            "prefix": 0.8,
            "rate": 16,
            "ttft": 1.5,
            "tpot": 0.03,
        },
        "gpt-oss-120b on H200, as in InferenceMAX": {
            "model": "gpt-oss-120b",
            "gpu": "h200",
            "weights": "int4",
            "prompt": 922,
            "answer": 922,
            "spread": 0.0,
            "rate": 16,
            "tpot": 0.015,
        },
        "DeepSeek-V3 on H200, in fp8": {"model": "deepseek-v3", "gpu": "h200", "weights": "fp8"},
    }
    break_it = "Tighten the limits until no number of these GPUs keeps them."
    lights = {
        "frontier": Light("the most for each GPU at every speed, within the limits", ("frontier",)),
        "deployments": Light("every deployment that was judged", ("judged",)),
        "kinds": Light("the cheapest deployment of each kind", ("kinds",)),
        "limit": Light("the slowest answer that is allowed", ("limit",)),
    }
    tour = (
        Step(
            "Each dot is a deployment that keeps up with {rate} requests a second. The cheapest within both "
            "limits takes {gpus}: {split}.",
            {},
            "deployments",
        ),
        Step("With one replica less it would miss {binds}. The next best kind is {second}.", {}, "kinds"),
        Step(
            "At {tpot} a token the slow deployments are out of bounds, and {gpus} are needed: {split}.",
            {"tpot": 0.02},
            "limit",
        ),
        Step(
            "Four times the requests take {gpus}, fewer than four times as many, because many replicas share "
            "the queue and large batches share the weights.",
            {"rate": 32},
            "frontier",
        ),
    )
    assumptions = (
        "Requests at random times (Poisson), log-normal lengths, caches in bf16. Replicas of 1, 2, 4 or 8 "
        "GPUs; one pool with chunks of 256 to 8,192 tokens, or two with every small ratio and each its own "
        "degree. All is closed forms: the queue for a first token (M/G/1, shared by the replicas), the "
        "prompts that come while an answer is written, the room in a batch. A simulation may need a replica "
        "more or less. Leaves out pipelines, spread experts, drafts, and that a model's context ends; the "
        "page *What should serve it?* tries these too, and simulates what it says."
    )
    formula = (
        "$$\\tau(u) + \\frac{u\\,\\tau_\\text{prefill}}{n_\\text{out}} \\le \\tau_\\text{target}$$\n\n"
        "$u$ answers are written at once by a replica, each of $n_\\text{out}$ tokens; $\\tau(u)$ is its "
        "step, and $\\tau_\\text{prefill}$ the time of a prompt, which two pools do not have in that sum. To "
        "it comes what chance adds, for the share of the requests that is promised. The cheapest deployment "
        "is the one with the fewest GPUs for which this and the limit of a first token hold."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def costs(self):
        at = over(lambda gpu, weights: machine(gpu, weights.precision), self.gpu, self.weights)
        lengths = (self.prompt, self.spread, self.answer, self.spread)
        return over(lambda model: choice.costs(model, at, self.weights.bytes, *lengths), self.model)

    @once
    def found(self):
        return choice.found(
            self.rate,
            self.prompt,
            self.spread,
            self.answer,
            self.spread,
            self.prefix,
            self.ttft,
            self.tpot,
            self.pause,
            self.share,
            *self.costs(),
        )

    def none(self):
        return self.found().best < 0

    def alone(self):
        """Whether there is no other kind."""
        return self.found().second < 0

    def of_best(self, column):
        return lookup(column, np.maximum(self.found().best, 0.0))

    def of_second(self, column):
        return lookup(column, np.maximum(self.found().second, 0.0))

    def split_of(self, one):
        """A kind's replicas in words, those that prefill first; ``one`` picks it from a column."""
        found = self.found()
        prefill, decode, front, back = (one(x) for x in (found.prefill, found.decode, found.front, WRITES))
        reads, writes = show(prefill, "count"), f"{show(decode, 'count')} × TP {show(back, 'count')}"
        apart = choose(
            front == back, f"{reads} + {writes}", f"{reads} × TP {show(front, 'count')} + {writes}"
        )
        return choose(prefill > 0, apart, writes)

    # -- the picture -----------------------------------------------------------------------------------------

    @part(*ASKED)
    def judged(self):
        """Each way to cut and to batch, once: with as few replicas as keep up. More of them only lower the
        dot."""
        found = self.found()
        seen = np.where(found.within > 0, 0.55, 0.2)
        return {"x": found.user, "y": found.per_gpu, "ink": np.where(found.least > 0, seen, 0.0)}

    @part(*ASKED)
    def frontier(self):
        return {"x": PER_USER, "y": np.maximum(self.found().frontier, 1e-6)}

    @part(*ASKED)
    def kinds(self):
        found = self.found()
        there = found.gpus > 0
        apart = found.prefill > 0
        return {
            "x": np.where(there, found.kind_user, 1e-9),
            "y": np.where(there, found.kind_gpu, 1e-9),
            "one": np.where(apart, 0.0, 1.0),
            "two": np.where(apart, 1.0, 0.0),
        }

    @hint("kinds")
    def said(self):
        found = self.found()
        reads, writes, front, back = (
            show(column, "count") for column in (found.prefill, found.decode, found.front, WRITES)
        )
        pools = phrase("{r} × TP {f} that read, {w} × TP {b} that write", r=reads, f=front, w=writes, b=back)
        one = phrase("{w} × TP {b}, chunks of {c}", w=writes, b=back, c=show(found.chunk, "tokens"))
        return phrase(
            "{gpus} GPUs: {split}.\n{user} tokens/s for a user, {each} for a GPU. {bound}",
            gpus=show(found.gpus, "count"),
            split=choose(found.prefill > 0, pools, one),
            user=show(found.kind_user, "count"),
            each=show(found.kind_gpu, "count"),
            bound=select(found.bound, LESS),
        )

    def top(self):
        """Above all dots, whatever the limits."""
        highest = np.max(np.where(self.found().within >= 0, self.found().per_gpu, 1.0))
        return fig.fitting_view(highest, VIEWS, headroom=2.0)

    @part(*ASKED)
    def named(self):
        """The cheapest, with a ring, and its name above all dots."""
        x = np.where(self.none(), 1e-9, self.of_best(self.found().kind_user))
        y = np.where(self.none(), 1e-9, self.of_best(self.found().kind_gpu))
        gpus = show(self.of_best(self.found().gpus), "count")
        left = x > 40.0
        return {
            "x": x,
            "y": y,
            "top": fig.decades_below(self.top(), 0.06),
            "label": choose(self.none(), "", f"{self.split_of(self.of_best)}, {gpus} GPUs"),
            "short": choose(self.none(), "", f"{gpus} GPUs"),
            "align": choose(left, "right", "left"),
            "shift": np.where(left, -6.0, 6.0),
        }

    @part("tpot", *[name for name in ASKED if name != "tpot"], shown=False)
    def limit(self):
        speed = 1.0 / self.tpot
        late = speed > 60.0
        return {
            "x": speed,
            "y": fig.decades_below(self.top(), DECADES - 0.1),  # far below what is cheapest, which has names
            "label": f"{show(self.tpot, 'seconds')} a token",
            "align": choose(late, "right", "left"),
            "shift": np.where(late, -6.0, 6.0),
        }

    @measured("deployments", "model", "gpu", "weights", "prompt", "answer")
    def runs(self, of):
        x = 1.0 / of.column("token_s")
        same = of.of(model=self.model, gpu=self.gpu, weights=self.weights.bytes)
        return Seen(
            same & of.near("prompt", self.prompt, 0.1) & of.near("output", self.answer, 0.1),
            x,
            of.measured,
            x,
            of.ours,
        )

    def ranges(self):
        top = self.top()
        return {"y": [fig.decades_below(top, DECADES), top]}

    # -- the words -------------------------------------------------------------------------------------------
    def known(self, words):
        return choose(self.none(), "–", words)

    @readout("It takes")
    def gpus(self):
        return choose(
            self.none(), "no number", counted(self.of_best(self.found().gpus), "GPU", "GPUs")
        ), self.none()

    @readout("A million tokens", help="Written, with the reading of their prompts")
    def cost(self):
        each = np.where(self.none(), 1.0, self.of_best(self.found().kind_gpu))
        return self.known(show(decoding.dollars_per_million(self.price, each), "dollars"))

    @readout(
        "Bound by", help="What would be missed with a replica less, or one of half the GPUs in a pool of one"
    )
    def binds(self):
        return self.known(select(self.of_best(self.found().bound), BOUNDS))

    @readout("Replicas", help="Of two pools those that prefill come first", rest=True)
    def split(self):
        return self.known(self.split_of(self.of_best))

    @readout("Chunk", help="Tokens of a step; of two pools those of prompts that are read at once", rest=True)
    def chunk(self):
        return self.known(show(self.of_best(self.found().chunk), "tokens"))

    @readout("Longest pause", help="Of an answer, about: in the fullest step that it sees", rest=True)
    def longest_pause(self):
        return self.known(show(self.of_best(self.found().kind_pause), "seconds"))

    @readout("A user gets", help="On average", rest=True)
    def user(self):
        return self.known(f"{show(self.of_best(self.found().kind_user), 'count')} tokens/s")

    @readout("A GPU writes", rest=True)
    def each(self):
        return self.known(f"{show(self.of_best(self.found().kind_gpu), 'count')} tokens/s")

    @readout("Next best kind", rest=True)
    def second(self):
        found = self.found()
        most, least = self.of_second(found.gpus), np.maximum(self.of_best(found.gpus), 1.0)
        dearer = show(np.maximum(most / least - 1.0, 0.0), "percent")
        than = choose(most > least, f", {dearer} dearer", ", as cheap")
        return choose(self.alone(), "none", f"{self.split_of(self.of_second)}{than}")

    @readout("The next is bound by", rest=True)
    def second_binds(self):
        return choose(self.alone(), "–", select(self.of_second(self.found().bound), BOUNDS))

    @regime(target=True)
    def impossible(self):
        nobody = f"You found a limit that no number of {self.gpu.name} keeps: even an idle replica"
        return self.none(), select(
            np.max(self.found().why),
            [
                "–",
                (
                    f"You found a model without room: no eight {self.gpu.name} hold it and one of these "
                    "requests. First response: weights in fewer bits, a GPU with more memory, or a pipeline "
                    "over several nodes."
                ),
                (
                    f"{nobody} reads these prompts later than {show(self.ttft, 'seconds')}. First response: "
                    "a looser limit for the first token, shorter prompts, or more of them in a prefix cache."
                ),
                (
                    f"{nobody} writes slower than {show(self.tpot, 'seconds')} a token. First response: a "
                    "looser limit for each token, weights in fewer bits, or a GPU with more bandwidth."
                ),
                (
                    f"You found two limits that no number of {self.gpu.name} keeps at once: what meets one "
                    "of them misses the other, so one of the two has to be looser."
                ),
            ],
        )

    @regime()
    def pools_pay(self):
        return ~self.none() & (self.of_best(self.found().prefill) > 0), (
            f"Two pools are cheapest here, {self.split()}: no prompt stops an answer in them, so more "
            "answers share each reading of the weights."
        )

    @regime()
    def waits_for_work(self):
        found = self.found()
        smallest = self.of_best(found.bound) == choice.SMALLEST
        return ~self.none() & smallest & (self.of_best(found.prefill) < 1), (
            "The smallest deployment of its kind is enough, and part of it waits for work: more requests "
            "would make a token cheaper."
        )

    def summary(self):
        load = f"{counted(self.rate, 'request', 'requests')} a second"
        within = f"{show(self.tpot, 'seconds')} a token"
        gpus = f"{show(self.of_best(self.found().gpus), 'count')} {self.gpu.name}"
        return choose(
            self.none(),
            f"No number of {self.gpu.name} serves {load} of {self.model.name} within {within}.",
            f"{load} of {self.model.name} within {within} take {gpus}, as {self.split()}.",
        )

    def figure(self, sources):
        p = fig.plot(
            (SLOWEST, FASTEST),
            (10, 5000),
            height=440,
            x_title="tokens a second that each user gets",
            y_title="tokens/s per GPU; ● one pool, ■ two",
            x_log=True,
            y_log=True,
        )
        fig.ticks(p.xaxis[0], [2, 5, 10, 20, 50, 100, 200], "count")
        fig.ticks(p.yaxis[0], [0.1, 1, 10, 100, 1000, 10_000], "count")
        color, limit = fig.COLOR, sources["limit"]
        p.quad(
            left=1e-9,
            right="x",
            bottom=1e-9,
            top=1e9,
            source=limit,
            fill_color=color["ink"],
            fill_alpha=0.05,
            line_color=None,
        )
        dots = {"x": "x", "y": "y", "fill_alpha": "ink", "source": sources["judged"]}
        p.scatter(size=4, fill_color=color["ink"], line_color=None, **dots)
        p.step(
            "x", "y", source=sources["frontier"], mode="before", line_color=color["accent"], line_width=2.5
        )
        mark = {
            "size": 10,
            "fill_color": color["accent"],
            "line_color": color["panel"],
            "source": sources["kinds"],
        }
        for marker, alpha in (("circle", "one"), ("square", "two")):
            p.scatter("x", "y", marker=marker, fill_alpha=alpha, line_alpha=alpha, **mark)
        named = sources["named"]
        p.scatter(
            "x", "y", size=19, fill_color=None, line_color=color["accent"], line_width=2.5, source=named
        )
        p.segment("x", "y", "x", "top", source=named, line_color=color["accent"], line_width=1)
        words = {"text_align": "align", "x_offset": "shift", "source": named}
        for width, text in (("wide", "label"), ("narrow", "short")):
            fig.only(width, p.text("x", "top", text=text, **fig.BOLD | words))
        p.segment(
            "x", 1e-9, "x", 1e9, source=limit, line_color=color["ink"], line_dash=[6, 4], line_width=1.5
        )
        p.text(
            "x",
            "y",
            text="label",
            text_align="align",
            x_offset="shift",
            source=limit,
            **fig.ON_PANEL,
            **fig.LABEL,
        )
        fig.measured(p, sources["runs"])
        return p


DeploymentPlanner.serve_as(__name__)
