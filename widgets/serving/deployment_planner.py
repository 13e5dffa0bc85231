"""The kinds of deployment of a model for a load, cheapest first: the GPUs of each, and how near it
comes to each promise."""

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource

from engine import catalog
from engine.serving import decoding
from engine.serving.deployment import choice
from engine.step.layout import machine
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import cells, panels
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing.panels import Panel, Place
from widgets.kit.drawing.ranking import in_order
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
SLOWEST, FASTEST = 1.5, 500.0  # tokens a second, in the small picture
SPEEDS = np.array([2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0])  # its ticks …
LEVELS = 10.0 ** np.arange(-1.0, 6.0)  # … and those of its height
VIEWS = [m * 10.0**e for e in range(1, 6) for m in (1, 2, 5)]
DECADES = 2.0  # of the small picture's height
KINDS = choice.KINDS
ROWS = {"wide": (0.36, 0.915), "narrow": (0.29, 0.91)}  # the heights between which the list lies
FRONT = {"wide": (0.065, 0.235), "narrow": (0.055, 0.183)}  # … and the small picture
LONGEST = 0.7  # share of its column that the longest bar takes; then come its dollars
KEPT = 0.75  # share of its axis at which a promise lies
BOXED, SPLIT = 40, 48  # GPUs of the longest bar up to which each is a box, and up to which each replica is
BOUNDS = [
    "the first token",
    "the time of a token",
    "the longest pause",
    "the load itself",
    "the smallest of its kind",
]
MISSING = [
    "",
    "no room for the model",
    "first token late, even idle",
    "tokens slow, even idle",
    "not all at once",
]
BROKEN = np.array(
    [[0, 0, 1, 0, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=float
)  # by promise and by why there is no such deployment: whether the promise is what cannot be kept
LESS = [f"One less misses {bound}." for bound in BOUNDS[:4]] + ["There is no smaller one of its kind."]
BIG, LIGHTER = "large dot: what one replica less would miss", "lighter GPUs only read prompts"
LOAD = ("rate", "prompt", "answer", "spread", "prefix", "model", "gpu", "weights")
ANY_S = 20.0  # a limit that everything keeps


def _panel(name: str, wide: tuple, narrow: tuple, down: tuple[float, float]) -> Panel:
    """A column of the list, on a wide picture and on a phone, moved down by shares of a row: on a phone a row
    has its name above its marks."""
    places = []
    for across, (low, high), by in zip((wide, narrow), ROWS.values(), down):
        lower = by * (high - low) / KINDS
        places.append(Place(across, (low - lower, high - lower)))
    return Panel(name, *places)


BARS = _panel("bars", (0.3, 0.56), (0.0, 0.42), (0.0, 0.2))
PROMISES = [
    _panel("first", (0.59, 0.715), (0.45, 0.6), (0.2, 0.2)),
    _panel("token", (0.735, 0.86), (0.65, 0.8), (0.2, 0.2)),
    _panel("pause", (0.88, 1.0), (0.85, 1.0), (0.2, 0.2)),
]
WHOLE = _panel("rows", (0.0, 1.0), (0.0, 1.0), (0.0, 0.0))
NAMES = _panel("names", (0.0, 1.0), (0.0, 1.0), (0.0, -0.25))
SMALL = Panel("front", Place((0.06, 1.0), FRONT["wide"]), Place((0.17, 1.0), FRONT["narrow"]))
ASKED = ("tpot", "ttft", "pause", "share", *LOAD)


class DeploymentPlanner(Widget):
    question = "What is the cheapest way to serve this load within its limits?"
    in_page = True
    on_phone = "model"
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
        "kinds": Light("the cheapest deployment of each kind, and its GPUs", ("kinds", "readers")),
        "marks": Light("how near each comes to its promises", ("marks",)),
        "limit": Light("the promises", ("limit",)),
        "frontier": Light("the most for each GPU at every speed, within the limits", ("frontier",)),
    }
    tour = (
        Step(
            "Each row is the cheapest deployment of its kind that keeps every promise at {rate} requests a "
            "second. The first row costs least: {gpus}, as {split}.",
            {},
            "kinds",
        ),
        Step(
            "The large dot is the promise that decides: with one replica less, the first row would miss "
            "{binds}. The next best kind is {second}.",
            {},
            "marks",
        ),
        Step(
            "At {tpot} a token some kinds cannot keep the promise, and {gpus} are needed: {split}.",
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

    def split_of(self, one, say=str.format):
        """A kind's replicas in words, those that prefill first; ``one`` picks it from a column. For several
        kinds ``say`` is ``phrase``."""
        found = self.found()
        prefill, decode, front, back = (one(x) for x in (found.prefill, found.decode, found.front, WRITES))
        reads, degree = show(prefill, "count"), show(front, "count")
        writes = say("{n} × TP {d}", n=show(decode, "count"), d=show(back, "count"))
        apart = choose(
            front == back,
            say("{r} that read + {w}", r=reads, w=writes),
            say("{r} × TP {d} that read + {w}", r=reads, d=degree, w=writes),
        )
        return choose(prefill > 0, apart, writes)

    # -- the picture -----------------------------------------------------------------------------------------
    @once
    def order(self):
        """The kinds, cheapest first, and those that do not exist last. Among equally cheap ones the two that
        were chosen lead."""
        found, kind = self.found(), np.arange(float(KINDS))
        leads = np.where(kind == found.best, 0.5, np.where(kind == found.second, 0.25, 0.0))
        return in_order(np.where(found.gpus > 0, found.gpus - leads, 1e9))

    def in_row(self, column):
        """A column of kinds, in the list's order."""
        return lookup(column, self.order())

    @once
    def rows(self):
        """Of each row the middle, the GPUs, whether it exists, a GPU's length, and GPUs that only read."""
        found = self.found()
        gpus = self.in_row(found.gpus)
        y = KINDS - 0.5 - np.arange(float(KINDS))
        there = gpus > 0
        unit = LONGEST / np.maximum(np.max(gpus), 1.0)
        reads = self.in_row(found.prefill) * self.in_row(found.front)
        return y, gpus, there, unit, reads

    @part(*ASKED)
    def kinds(self):
        """The GPUs of a row that write, or all of them if its replicas do both."""
        y, gpus, there, unit, reads = self.rows()
        first = np.where(np.arange(KINDS) == 0, 1.0, 0.0)
        return {
            "left": fig.gone_unless(there, reads * unit),
            "right": fig.gone_unless(there, gpus * unit),
            "bottom": y - 0.24,
            "top": y + 0.24,
            "first": first,
        }

    @part(*ASKED)
    def readers(self):
        """The GPUs of a row that only read prompts."""
        y, _, there, unit, reads = self.rows()
        seen = there & (reads > 0)
        return {
            "left": fig.gone_unless(seen, 0.0 * reads),
            "right": fig.gone_unless(seen, reads * unit),
            "bottom": y - 0.24,
            "top": y + 0.24,
            "first": np.where(np.arange(KINDS) == 0, 1.0, 0.0),
        }

    @part(*ASKED)
    def boxes(self):
        """The gaps between GPUs, wider ones between replicas."""
        y, gpus, _, unit, reads = self.rows()
        front, back = (self.in_row(x) for x in (self.found().front, WRITES))
        number, apart, inside = cells.in_pools(gpus, reads, front, back, SPLIT)
        longest = np.max(gpus)
        seen = inside & ((longest <= BOXED) | (apart & (longest <= SPLIT)))
        low, high = (np.repeat(y + side, SPLIT - 1) for side in (-0.24, 0.24))
        return {
            "x": np.ravel(fig.gone_unless(seen, number * unit)),
            "bottom": low,
            "top": high,
            "width": np.ravel(np.where(apart, 3.0, 1.0)),
        }

    @hint("kinds")
    def said(self):
        found = self.found()
        columns = (found.prefill, found.decode, found.front, WRITES)
        reads, writes, front, back = (show(self.in_row(column), "count") for column in columns)
        pools = phrase("{r} × TP {f} that read, {w} × TP {b} that write", r=reads, f=front, w=writes, b=back)
        chunk = show(self.in_row(found.chunk), "tokens")
        one = phrase("{w} × TP {b}, chunks of {c}", w=writes, b=back, c=chunk)
        return phrase(
            "{gpus} GPUs: {split}.\n{user} tokens/s for a user, {each} for a GPU. {bound}",
            gpus=show(self.in_row(found.gpus), "count"),
            split=choose(self.in_row(found.prefill) > 0, pools, one),
            user=show(self.in_row(found.kind_user), "count"),
            each=show(self.in_row(found.kind_gpu), "count"),
            bound=select(self.in_row(found.bound), LESS),
        )

    @part(*ASKED, "price")
    def named(self):
        """The words of each row."""
        y, _, there, unit, _ = self.rows()
        found, degree = self.found(), show(self.in_row(WRITES), "count")
        two = self.order() >= KINDS // 2
        none = choose(two, phrase("two pools, TP {d}", d=degree), phrase("TP {d}", d=degree))
        name = choose(there, self.split_of(self.in_row, phrase), none)
        first = np.arange(KINDS) == 0
        cost = decoding.dollars_per_million(self.price, self.in_row(found.kind_gpu))
        return {
            "y": y,
            "left": 0.0 * y,
            "right": 0.0 * y + 1.0,
            "end": np.where(there, self.in_row(found.gpus) * unit, 0.0),
            "name": name,
            "cost": choose(there, show(cost, "dollars"), ""),
            "why": select(self.in_row(found.why), MISSING),
            "style": choose(first & there, "bold", "normal"),
            "answer": np.where(first & there, 0.1, 0.0),
        }

    def free(self):
        """Whether nothing is promised about a pause."""
        return self.pause >= ANY_S

    def promised(self):
        """Each promise, and what each row's deployment keeps of it: by promise and row."""
        found = self.found()
        kept = np.stack([self.in_row(x) for x in (found.first_s, found.token_s, found.kind_pause)])
        there = self.in_row(found.gpus) > 0
        longest = np.max(np.where(there, kept[2], 0.0))
        ends = [self.ttft, self.tpot, np.where(self.free(), np.maximum(longest, 1e-3), self.pause)]
        return kept, np.stack(ends), there

    @part(*ASKED)
    def marks(self):
        """A dot for each promise and row, a large one where one replica less would miss it."""
        kept, ends, there = self.promised()
        bound = self.in_row(self.found().bound)[None, :] == np.arange(3.0)[:, None]
        seen = there[None, :] & (kept >= 0)
        y = self.rows()[0]
        return {
            "x": np.ravel(fig.gone_unless(seen, kept / ends[:, None] * KEPT)),
            "y": np.tile(y, 3),
            "size": np.ravel(np.where(bound, 13.0, 7.0)),
            "binds": np.ravel(np.where(bound, 1.0, 0.0)),
            "label": choose(np.ravel(seen), show(np.ravel(kept), "seconds"), ""),
        }

    @part(*ASKED)
    def broken(self):
        """What no deployment of a kind keeps."""
        why = self.in_row(self.found().why)
        seen = np.ravel(np.stack([lookup(each, why) for each in BROKEN])) > 0
        y = np.tile(self.rows()[0], 3)
        left = fig.gone_unless(seen, 0.0 * y)
        return {"left": left, "right": fig.right_if(seen, left, 1.0), "bottom": y - 0.2, "top": y + 0.2}

    @part("tpot", "ttft", "pause", shown=False)
    def limit(self):
        free = np.where(self.free(), np.array([0.0, 0.0, 1.0]), np.zeros(3)) > 0
        limits = show(np.stack([self.ttft, self.tpot, self.pause]), "seconds")
        return {
            "x": np.where(free, fig.FAR_LEFT, KEPT + np.zeros(3)),
            "end": np.where(free, fig.FAR_LEFT, np.ones(3)),
            "at": np.ones(3),
            "label": choose(free, "any", limits),
        }

    @part(*ASKED)
    def frontier(self):
        top = self.top()
        most = np.clip(self.found().frontier, fig.decades_below(top, DECADES), top)
        return {"x": np.clip(PER_USER, SLOWEST, FASTEST), "y": most}

    @part(*ASKED)
    def chosen(self):
        """The answer, and the slowest that is promised, in the small picture."""
        found, top = self.found(), self.top()
        return {
            "x": np.where(self.none(), 1e-9, self.of_best(found.kind_user)),
            "y": np.where(self.none(), 1e-9, self.of_best(found.kind_gpu)),
            "low": fig.decades_below(top, DECADES),
            "top": top,
            "slowest": 1.0 / self.tpot,
        }

    @part(*ASKED)
    def levels(self):
        top = self.top()
        seen = (top >= LEVELS) & (fig.decades_below(top, DECADES) <= LEVELS)
        return {"y": LEVELS, "label": panels.only(seen, panels.labels(LEVELS, "count"))}

    def top(self):
        """Above the whole frontier, whatever the limits."""
        highest = np.max(np.where(self.found().within >= 0, self.found().per_gpu, 1.0))
        return fig.fitting_view(highest, VIEWS, headroom=1.5)

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
        return {"front_y": [fig.decades_below(top, DECADES), top]}

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
        p = fig.plot((0, 1), (0, 1), height=500)
        fig.taller_on_phone(p, 720)
        fig.bare(p)
        self.list_of(p, sources)
        for i, name in enumerate(("first token", "time of a token", "longest pause")):
            self.promise(p, sources, i, name, ("first", "token", "pause")[i])
        self.small(p, sources)
        return p

    def list_of(self, p, sources):
        """Each row's name, and its GPUs as a bar of dollars."""
        color, rows, bars = fig.COLOR, NAMES.scales(p, y=(0, KINDS)), BARS.scales(p, y=(0, KINDS))
        named = sources["named"]
        p.hbar(
            "y",
            height=0.94,
            left="left",
            right="right",
            source=named,
            fill_color=color["accent"],
            fill_alpha="answer",
            line_color=None,
            **WHOLE.scales(p, y=(0, KINDS)),
        )
        for source, alpha in (("readers", 0.45), ("kinds", 0.9)):
            p.quad(
                **fig.BOX,
                source=sources[source],
                fill_color=fig.either("first", "ink-soft", "accent"),
                fill_alpha=alpha,
                line_color=None,
                **bars,
            )
        p.segment(
            "x",
            "bottom",
            "x",
            "top",
            source=sources["boxes"],
            line_color=color["panel"],
            line_width="width",
            **bars,
        )
        p.text("left", "y", text="name", source=named, **fig.by_style("style"), **rows)
        p.text("end", "y", text="cost", x_offset=6, source=named, **fig.by_style("style"), **bars)
        over = {"source": named, "level": "annotation"} | fig.ON_PANEL | fig.LABEL
        fig.only(
            "wide",
            p.text("left", "y", text="why", source=named, **fig.LABEL, **bars),
            p.text(0, 0.985, text=value("kind of deployment"), **fig.LABEL),
            p.text(0.3, 0.985, text=value("GPUs, and dollars for"), **fig.LABEL),
            p.text(0.3, 0.945, text=value("a million tokens"), **fig.LABEL),
            p.text(0, 0.325, text=value(f"{BIG}; {LIGHTER}"), **fig.LABEL),
        )
        fig.only(
            "narrow",
            p.text("right", "y", text="why", text_align="right", **over, **rows),
            p.text(0, 0.985, text=value("dollars a million"), **fig.LABEL),
            p.text(0, 0.955, text=value("tokens"), **fig.LABEL),
            p.text(0, 0.268, text=value(BIG), **fig.LABEL),
            p.text(0, 0.243, text=value(LIGHTER), **fig.LABEL),
        )

    def promise(self, p, sources, i, name, short):
        """The axes of one promise, a short one in each row."""
        color, place = fig.COLOR, PROMISES[i].scales(p, y=(0, KINDS))
        of_rows = fig.of_rows(list(range(i * KINDS, (i + 1) * KINDS)))
        one, limit, marks = fig.of_rows([i]), sources["limit"], sources["marks"]
        p.quad(
            left="x",
            right="end",
            bottom=0.2,
            top=KINDS + 0.2,
            source=limit,
            view=one,
            fill_color=color["ink"],
            fill_alpha=0.06,
            line_color=None,
            **place,
        )
        p.segment(0, "y", 1, "y", source=marks, view=of_rows, line_color=color["axis"], **place)
        p.quad(**fig.BOX, source=sources["broken"], view=of_rows, **fig.OVER, **place)
        edge = {"line_color": color["ink"], "line_dash": [6, 4], "line_width": 1.5}
        p.segment("x", 0.2, "x", KINDS + 0.2, source=limit, view=one, **edge, **place)
        p.scatter(
            "x",
            "y",
            size="size",
            source=marks,
            view=of_rows,
            fill_color=fig.either("binds", "ink-soft", "accent"),
            line_color=color["panel"],
            **place,
        )
        label = {"text_align": "right", "source": limit, "view": one} | fig.LABEL
        heads = {"x_range_name": place["x_range_name"]}
        fig.only(
            "wide",
            p.text(0, "y", text="label", y_offset=-15, source=marks, view=of_rows, **fig.LABEL, **place),
            p.text(0, 0.985, text=value(name), **fig.LABEL, **heads),
            p.text("at", 0.945, text="label", **label, **heads),
        )
        fig.only(
            "narrow",
            p.text(0, 0.985, text=value(short), **fig.LABEL, **heads),
            p.text("at", 0.955, text="label", **label, **heads),
        )

    def small(self, p, sources):
        """How much a GPU writes at each speed, within the limits."""
        color, chosen = fig.COLOR, sources["chosen"]
        place = SMALL.scales(p, (SLOWEST, FASTEST), (10, 1000), log_x=True, log_y=True)
        p.quad(
            left=SLOWEST,
            right="slowest",
            bottom="low",
            top="top",
            source=chosen,
            fill_color=color["ink"],
            fill_alpha=0.06,
            line_color=None,
            **place,
        )
        p.segment(SLOWEST, "low", FASTEST, "low", source=chosen, line_color=color["axis"], **place)
        edge = {"line_color": color["ink"], "line_dash": [6, 4], "line_width": 1.5}
        p.segment("slowest", "low", "slowest", "top", source=chosen, **edge, **place)
        line = {"line_color": color["accent"], "line_width": 2.5}
        p.step("x", "y", source=sources["frontier"], mode="before", **line, **place)
        dot = {"size": 11, "fill_color": color["accent"], "line_color": color["panel"]}
        p.scatter("x", "y", source=chosen, **dot, **place)
        p.text(
            SLOWEST,
            "y",
            text="label",
            x_offset=-6,
            text_align="right",
            source=sources["levels"],
            **fig.LABEL,
            **place,
        )
        ticks = ColumnDataSource({"x": SPEEDS, "label": [f"{each:g}" for each in SPEEDS]})
        at = {"x_range_name": place["x_range_name"], "text_align": "center", "source": ticks}
        for width, low, head, words in (
            ("wide", 0.02, 0.265, "the most tokens/s of a GPU (up) for each tokens/s of a user (across)"),
            ("narrow", 0.02, 0.208, "tokens/s of a GPU (up), of a user (across)"),
        ):
            fig.only(
                width,
                p.text("x", low, text="label", **at, **fig.LABEL),
                p.text(0, head, text=value(words), **fig.LABEL),
            )
        fig.measured(p, sources["runs"], **place)


DeploymentPlanner.serve_as(__name__)
