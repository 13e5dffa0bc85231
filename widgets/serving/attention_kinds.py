"""What a conversation costs as it grows, under six kinds of attention: what a user keeps, what the next token
computes, how long a step takes."""

import numpy as np

from engine import catalog
from engine.mechanism import flops
from engine.serving import decoding
from engine.serving.deployment import choice
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import isometric
from widgets.kit.text import choose, counted, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime
from widgets.serving.two_pools import asked

# key of the catalogue: (its kind in a word, in a few)
KINDS = {
    "qwen3-235b-a22b": ("grouped", "every token's keys and values, shared by groups of heads"),
    "gpt-oss-120b": ("windows", "every other layer sees the latest 128 tokens alone"),
    "deepseek-v3": ("latent", "one latent vector a token, for all heads (MLA)"),
    "deepseek-v3.2": ("indexer", "latent vectors, of which an indexer picks 2,048 to read"),
    "qwen3.5-397b-a17b": ("linear", "three layers of four keep a state of fixed size"),
    "deepseek-v4-flash": ("compressed", "one entry for 4 or 128 tokens, and a window of 128"),
}
MODELS = [catalog.model(key) for key in KINDS]
WORDS, MEANINGS = ([said[i] for said in KINDS.values()] for i in range(2))
SHORT = [model.name.split("-A")[0] for model in MODELS]  # without the active parameters
NAMES = [f"{name}: {word}" for name, word in zip(SHORT, WORDS)]
GROUPED, LINEAR = WORDS.index("grouped"), WORDS.index("linear")
GPUS = [catalog.gpu(key) for key in ("h200", "b200", "mi300x")]
TP = 8.0  # GPUs of a server
FP8 = next(each for each in choice.FORMATS if each.key == "fp8")

SHORTEST, LONGEST = 256, 2**20
CONTEXTS = np.geomspace(SHORTEST, LONGEST, 37)  # three to a doubling
STOPS = fig.one_two_five(SHORTEST, LONGEST)
LEFT = 40  # room for the names of the scale
NAMED_AT, RIGHT = 1.35 * LONGEST, 90.0 * LONGEST  # the names stand behind the curves
NAME = 0.062  # of the frame's height, from one name to the next
MEASURES = {
    "cache": ("what a user keeps", 0),
    "flops": ("FLOPs of a token", 1),
    "time": ("time of a step", 2),
}
FAMILIES = ["bytes", "flops", "seconds"]
LOWEST, HIGHEST, DECADES = [1e6, 1e7, 1e-3], [1e12, 1e14, 1.0], [6.0, 7.0, 3.0]  # of each measure's axis
HUES = ["hbm", "compute", "ink"]
TITLES = [
    "a user's cache and states, on all GPUs",
    "arithmetic of attention for one more token",
    "time of a step: one token for every user",
]
EVERY = ("measure", "users", "gpu", "cache")


class AttentionKinds(Widget):
    question = "What does a longer conversation cost, under each kind of attention?"
    context = Number(
        "Context",
        131072,
        SHORTEST,
        LONGEST,
        family="tokens",
        stops=49,
        whole=True,
        marks=(1024, 8192, 131072),
    )
    measure = Choice("Show", MEASURES, "cache")
    model = Choice(
        "Look at", {key: (name, i) for i, (key, name) in enumerate(zip(KINDS, NAMES))}, "qwen3.5-397b-a17b"
    )
    users = Number("Users at once", 32, 1, 1024, stops=41, whole=True, marks=(1, 32, 256), more=True)
    gpu = Choice("Eight of", GPUS, "b200", more=True)
    cache = Choice("Cache stored in", asked.WIDTHS, "bf16", more=True)

    presets = {
        "A document of 131,072 tokens": {},
        "A chat of 4,096": {"context": 4096},
        "What it computes": {"measure": "flops"},
        "A step for 32 users": {"measure": "time"},
        "A million tokens, one user": {"context": LONGEST, "measure": "time", "users": 1},
    }
    break_it = "Find a context at which linear attention keeps more than attention over every token does."
    assumptions = (
        "These are whole models of different size and depth, since people choose among models and not among "
        "kinds. Eight GPUs share one copy, with matrices in fp8. A user keeps caches without waste, and a "
        "state in fp32. A token's arithmetic is that of scores, indexers and states, with latent vectors "
        "read as they are; products with weights are not in it. The time of linear attention, indexers and "
        "compressed entries is a roofline that was not held against a measurement here; MLA and indexers "
        "are whole on each GPU. A curve of time ends where the caches no longer fit. The indexer's keys are "
        "counted in the width of the cache."
    )
    formula = (
        "$$M_\\text{user} = M_\\text{state} + s\\,\\kappa$$\n\n"
        "$s$ tokens of $\\kappa$ bytes, and a state of fixed size where layers have one: $4\\,a\\,d_k\\,d_v$ "
        "bytes a layer of linear attention with $a$ heads. Of two models the one with the state keeps less "
        "from $s = M_\\text{state}/(\\kappa' - \\kappa)$ on. Kinds: GQA (arXiv:2305.13245), windows, latent "
        "(DeepSeek-V2, arXiv:2405.04434), indexer (DeepSeek-V3.2, arXiv:2512.02556), linear (gated delta "
        "rule, arXiv:2412.06464), compressed (DeepSeek-V4's report)."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def at(self):
        return over(lambda gpu: choice.served_on(gpu, FP8), self.gpu)

    def kept_bytes(self, model, context):
        return decoding.user_bytes(model, context, self.cache)

    def step_s(self, model, context):
        return decoding.split(model, self.at(), TP, self.users, context, self.cache, FP8.bytes, 0).total_s

    def fits(self, model, context):
        return decoding.room(model, self.gpu, TP, context, self.cache, FP8.bytes).users >= self.users

    def height(self, model, context):
        """What is drawn upwards, at these contexts."""
        found = np.where(
            self.measure == 0,
            self.kept_bytes(model, context),
            np.where(
                self.measure == 1,
                flops.next_token_attention_flops(model, context),
                self.step_s(model, context),
            ),
        )
        return fig.share_of_decades(found, lookup(LOWEST, self.measure), lookup(HIGHEST, self.measure))

    @once
    def lasts(self):
        """The context at which each curve ends: the last that all users' caches leave room for."""
        ends = []
        for model in MODELS:
            seen = (self.measure < 2) | self.fits(model, CONTEXTS)
            ends.append(np.max(np.where(seen, CONTEXTS, SHORTEST)))
        return np.stack(ends)

    @once
    def heights(self):
        """Each curve: its contexts and its heights, a row for each model."""
        ends = self.lasts()
        x = [np.minimum(CONTEXTS, ends[i]) for i in range(6)]
        return x, [self.height(model, x[i]) for i, model in enumerate(MODELS)]

    @once
    def here(self):
        """Of each model at this context: what a user keeps, what the next token computes, how long a step
        takes, whether it has room."""
        columns = [
            [self.kept_bytes(m, self.context * 1.0) for m in MODELS],
            [flops.next_token_attention_flops(m, self.context * 1.0) for m in MODELS],
            [self.step_s(m, self.context * 1.0) for m in MODELS],
            [np.where(self.fits(m, self.context * 1.0), 1.0, 0.0) for m in MODELS],
        ]
        return [np.stack(column) for column in columns]

    def chosen(self, column):
        return lookup(column, self.model)

    def crossing(self):
        """From this context on, linear attention keeps less than attention over every token."""
        return decoding.saves_from(MODELS[LINEAR], MODELS[GROUPED], self.cache)

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*EVERY)
    def curves(self):
        x, y = self.heights()
        return {f"x{i}": x[i] for i in range(6)} | {f"y{i}": y[i] for i in range(6)}

    @part("model", *EVERY)
    def bold(self):
        x, y = self.heights()
        mine = fig.row_of(y, self.model)
        return {"x": fig.row_of(x, self.model)} | {
            f"y{i}": np.where(self.measure == i, mine, -1.0) for i in range(3)
        }

    @part("model", *EVERY, shown=False)
    def names(self):
        x, y = self.heights()
        end = np.stack([row[-1] for row in y])
        place = isometric.apart(np.zeros(6), end, 1.0, NAME)
        mine = np.arange(6) == self.model
        return {
            "from_x": np.stack([row[-1] for row in x]),
            "from_y": end,
            "x": NAMED_AT + np.zeros(6),
            "y": place,
            "wide": NAMES,
            "narrow": WORDS,
            "style": [choose(mine[i], "bold", "normal") for i in range(6)],
        }

    @part("model", "context", *EVERY)
    def marks(self):
        fit = (self.measure < 2) | (self.here()[3] > 0)
        y = np.stack([self.height(model, self.context * 1.0) for model in MODELS])
        return {
            "x": fig.gone_on_log_unless(fit, self.context + np.zeros(6)),
            "y": y,
            "size": np.where(np.arange(6) == self.model, 13.0, 7.0),
            "hue": [select(self.measure, HUES) for _ in range(6)],
        }

    @hint("marks")
    def of_a_model(self):
        kept, computed, step_s, fit = self.here()
        takes = [choose(fit[i] > 0, f"takes {show(step_s[i], 'seconds')}", "has no room") for i in range(6)]
        return [
            f"{NAMES[i]}, {MEANINGS[i]}. A user keeps {show(kept[i], 'bytes')}; the next token takes "
            f"{show(computed[i], 'flops')} of attention; a step of all users {takes[i]}"
            for i in range(6)
        ]

    @part("context", shown=False)
    def line(self):
        return {"x": self.context, "text": show(self.context, "tokens")}

    @part("measure", shown=False)
    def scale(self):
        """Ticks of the vertical axis, whose quantity changes: a text for each power of ten."""
        steps, decades, lowest = np.arange(8.0), lookup(DECADES, self.measure), lookup(LOWEST, self.measure)
        values = fig.decades_below(lowest, -steps)
        texts = [[show(values[i], family) for family in FAMILIES] for i in range(8)]
        return {
            "y": np.where(steps <= decades, steps / decades, -1.0),
            "text": [select(self.measure, texts[i]) for i in range(8)],
        }

    @part("measure", "cache", shown=False)
    def equal(self):
        """Where a state begins to pay, on the curves of what a user keeps."""
        at = self.crossing()
        return {
            "x": fig.gone_on_log_unless(self.measure == 0, at),
            "y": fig.share_of_decades(self.kept_bytes(MODELS[LINEAR], at), LOWEST[0], HIGHEST[0]),
            "text": f"equal at {show(at, 'tokens')}",
        }

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((LEFT, RIGHT), (-0.03, 1.12), height=430, x_log=True, x_title="Context, tokens")
        fig.ticks(p.xaxis[0], [1024, 8192, 65536, 2**20], "count")
        fig.hide(p.yaxis[0])
        p.ygrid.visible = False
        scale, names, equal = sources["scale"], sources["names"], sources["equal"]
        p.segment(LEFT, "y", LONGEST, "y", source=scale, line_color=color["grid"])
        p.text(1.15 * LEFT, "y", text="text", y_offset=-8, source=scale, **fig.LABEL)
        p.text(1.15 * LEFT, 1.08, text="text", source=sources["title"], **fig.BOLD)
        chosen = sources["line"]
        p.segment("x", 0, "x", 1, source=chosen, line_color=color["ink-faint"], line_dash=[6, 4])
        for i in range(6):
            p.line(f"x{i}", f"y{i}", source=sources["curves"], line_color=color["ink-faint"], line_width=1.6)
        p.segment("from_x", "from_y", 0.93 * NAMED_AT, "y", source=names, line_color=color["grid"])
        for i, hue in enumerate(HUES):
            p.line("x", f"y{i}", source=sources["bold"], line_color=color[hue], line_width=3.2)
        p.scatter(
            "x",
            "y",
            size="size",
            source=sources["marks"],
            fill_color=fig.hues("hue", {h: h for h in HUES}),
            line_color=color["panel"],
        )
        mark = {"marker": "diamond", "size": 12, "fill_color": color["panel"], "line_color": color["ink"]}
        p.scatter("x", "y", source=equal, line_width=2, **mark)
        p.text("x", "y", text="text", x_offset=12, y_offset=16, source=equal, **fig.ON_PANEL, **fig.LABEL)
        for width in ("wide", "narrow"):
            fig.only(width, p.text(NAMED_AT, "y", text=width, source=names, **fig.by_style("style")))
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @part("measure", shown=False)
    def title(self):
        return {"text": select(self.measure, TITLES)}

    @readout("A user keeps")
    def kept(self):
        return show(self.chosen(self.here()[0]), "bytes")

    @readout("Attention of a token")
    def computed(self):
        return show(self.chosen(self.here()[1]), "flops")

    @readout("A step takes")
    def step(self):
        _, _, step_s, fit = self.here()
        room = self.chosen(fit) > 0
        return choose(room, show(self.chosen(step_s), "seconds"), "does not fit"), ~room

    @readout(
        "Against its weights",
        help="Attention's arithmetic, over that of all products with weights",
        rest=True,
    )
    def against_weights(self):
        return show(self.share(), "times")

    def share(self):
        weights = np.array([flops.forward_flops(flops.matmul_parameters(model), 1) for model in MODELS])
        return self.chosen(self.here()[1]) / self.chosen(weights)

    @regime(target=True)
    def state_outweighs(self):
        kept = self.here()[0]
        linear, grouped = show(kept[LINEAR], "bytes"), show(kept[GROUPED], "bytes")
        return kept[LINEAR] > kept[GROUPED], (
            f"You found it: with {show(self.context, 'tokens')} {SHORT[LINEAR]} keeps {linear}, "
            f"because its states are as large for one token as for a million; {SHORT[GROUPED]} keeps "
            f"{grouped}."
        )

    @regime()
    def no_room(self):
        return self.chosen(self.here()[3]) < 1, (
            f"Eight {self.gpu.name} have no room for {counted(self.users, 'user', 'users')} of "
            f"{show(self.context, 'tokens')} beside {select(self.model, SHORT)}."
        )

    @regime()
    def attention_outweighs(self):
        return self.share() > 1, (
            f"For each token attention computes {show(self.share(), 'times')} what all products with weights "
            "do: the context, and no longer the size of the model, is what a token costs."
        )

    def summary(self):
        kept, computed, step_s, fit = self.here()
        other = np.where(self.model == GROUPED, float(LINEAR), float(GROUPED))
        mine, its = select(self.model, SHORT), select(other, SHORT)
        tokens = show(self.context, "tokens")
        pair = [
            [show(lookup(column, at), family) for at in (self.model, other)]
            for column, family in zip((kept, computed, step_s), FAMILIES)
        ]
        timed = [
            choose(lookup(fit, at) > 0, f"takes {pair[2][i]} a step", "has no room")
            for i, at in enumerate((self.model, other))
        ]
        return choose(
            self.measure == 0,
            f"A user of {tokens} keeps {pair[0][0]} in {mine}, {pair[0][1]} in {its}.",
            choose(
                self.measure == 1,
                f"After {tokens} the next takes {pair[1][0]} of attention in {mine}, {pair[1][1]} in {its}.",
                f"With {counted(self.users, 'user', 'users')} of {tokens}, {mine} {timed[0]}, "
                f"{its} {timed[1]}.",
            ),
        )


AttentionKinds.serve_as(__name__)
