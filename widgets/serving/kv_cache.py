"""How many users fit on a card: their caches beside the weights, and ways to make room for more of them."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.mechanism import memory
from engine.serving import decoding
from widgets.kit.compiler.symbols import over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import cells, lettering
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, counted, phrase, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime
from widgets.serving.two_pools import asked

MODELS = [
    catalog.model(key)
    for key in (
        "llama2-7b",
        "llama3-8b",
        "qwen3-32b",
        "llama3-70b",
        "qwen2.5-72b",
        "llama3.1-405b",
        "mixtral-8x22b",
        "gemma3-27b",
        "gpt-oss-120b",
        "deepseek-v3",
        "deepseek-v3.2",
        "deepseek-v4-pro",
        "qwen3.5-397b-a17b",
        "nemotron-3-super",
    )
]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200", "mi300x", "l40s", "rtx4090")]
ROWS = {
    "as it is": 5,
    "fp8 cache": 4,
    "4-bit cache": 3,
    "fp8 weights": 2,
    "twice the GPUs": 1,
    "no shared heads": 0,
}
PLACES = np.array([*ROWS.values()], float)
BARS = {"bottom": PLACES - 0.36, "top": PLACES + 0.12}  # a row's name stands above its bar
MIDDLES = fig.midpoint(BARS["bottom"], BARS["top"])
FEET, HEADS = BARS["bottom"] - 0.07, BARS["top"] + 0.07  # of a line across a bar
BESIDE_NAME = np.array([lettering.width(name, bold=True) + 10 for name in ROWS])
WITH_COUNTS = 1.1  # the frame's width, in cards: what fits is written beside the card
ROOM = {"wide": 0.17, "narrow": 0.18}  # of the frame, for the name of the weights
HELD = ("model", "context", "gpus", "gpu", "cache", "weights")
EVERY = (*HELD, "users")


class KvCache(Widget):
    question = "How many users fit, before their memories of the conversation fill the GPUs?"
    model = Choice("Model", MODELS, "llama3-70b")
    context = Number(
        "Context of each",
        8192,
        256,
        2**20,
        family="tokens",
        stops=61,
        whole=True,
        marks=(2048, 4096, 8192, 32768, 131072, 2**20),
    )
    users = Number("Users at once", 128, 1, 8192, stops=61, whole=True, marks=(1, 16, 64, 128, 256, 1024))
    gpus = Choice(
        "GPUs",
        {str(n): (str(n), n) for n in (1, 2, 4, 8, 16, 32)},
        "8",
        more=True,
        help="One copy of the model, shared by tensor parallelism",
    )
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    cache = Choice("Cache stored in", asked.WIDTHS, "bf16", more=True)
    weights = Choice("Weights stored in", asked.WIDTHS, "bf16", more=True)

    presets = {
        "70B, chats of 8,192 tokens": {},
        "70B, documents of 131,072 tokens": {"context": 131072, "users": 8},
        "Llama 2 7B on one card": {"model": "llama2-7b", "gpus": "1", "context": 4096, "users": 24},
        "405B in fp8": {"model": "llama3.1-405b", "weights": "fp8", "users": 48},
        "DeepSeek-V3 on 16 H200s": {
            "model": "deepseek-v3",
            "gpu": "h200",
            "gpus": "16",
            "weights": "fp8",
            "users": 128,
        },
        "DeepSeek-V4 at a million tokens": {
            "model": "deepseek-v4-pro",
            "gpu": "b200",
            "gpus": "16",
            "weights": "fp8",
            "context": 2**20,
            "users": 4,
        },
        "8B on an RTX 4090": {"model": "llama3-8b", "gpu": "rtx4090", "gpus": "1", "users": 4},
    }
    break_it = "Keep the users and lengthen their conversations until the cache no longer fits."
    assumptions = (
        "The bar is one of the cards that share a copy of the model, with the HBM that its driver reports. "
        "Weights and caches may fill what the data sheet says, less 2 GB for the framework; the rest, some "
        "8 %, is what kernels need meanwhile. Every user holds a whole context, in pages without waste. "
        "Past the key and value heads, tensor ranks hold copies; a latent cache (MLA) is whole on every "
        "rank. Leaves out activations, shared prefixes and the scales of quantised formats."
    )
    formula = (
        "$$\\text{cache} = 2 \\, L \\, a_{kv} \\, d \\, b_{kv} \\, s \\, u / \\min(t, a_{kv})$$\n\nfor $u$ "
        "users of $s$ tokens, $L$ layers with $a_{kv}$ key and value heads of size $d$, $b_{kv}$ bytes a "
        "value, on $t$ GPUs. Grouped queries (GQA) lower $a_{kv}$; latent attention keeps $L\\,(d_c + "
        "d_r)\\,b_{kv}$ a token (DeepSeek-V2, arXiv:2405.04434): a latent vector of $d_c$ numbers and "
        "$d_r$ for the position. A layer with a window keeps no more than its window; one of linear "
        "attention or a state space keeps a matrix a head, whatever $s$."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def rooms(self):
        """The memory on each GPU in each row's case: as it is, then with one thing changed."""
        cases = [
            (self.gpus, self.cache, self.weights, 0),
            (self.gpus, np.minimum(self.cache, 1.0), self.weights, 0),
            (self.gpus, np.minimum(self.cache, 0.5), self.weights, 0),
            (self.gpus, self.cache, np.minimum(self.weights, 1.0), 0),
            (self.gpus * 2.0, self.cache, self.weights, 0),
            (self.gpus, self.cache, self.weights, 1),
        ]
        return over(lambda model: decoding.rooms(model, self.gpu, self.context, cases), self.model)

    def card_bytes(self):
        return memory.card_bytes(self.gpu)

    def fit(self):
        """The users that fit, in each row."""
        return self.rooms().users

    def filled_bytes(self):
        """Bytes in use on a full card, in each row; no more than it has, where the weights alone are too
        large."""
        return np.minimum(decoding.filled_bytes(self.rooms(), self.fit()), self.card_bytes())

    def weights_on_card(self):
        return np.minimum(self.rooms().weights_bytes, self.card_bytes())

    def view_bytes(self):
        return WITH_COUNTS * self.card_bytes()

    def users_of_a_cell(self):
        return cells.worth(self.rooms().user_bytes, memory.server_bytes(self.gpu))

    # -- the picture -----------------------------------------------------------------------------------------
    @part("gpu", shown=False)
    def cards(self):
        return {"right": self.card_bytes() + 0.0 * PLACES, **BARS}

    @part(*HELD)
    def weights_held(self):
        return {
            "row": list(ROWS),
            "left": np.zeros(6),
            "right": self.weights_on_card(),
            "y": MIDDLES,
            "torn": fig.broken(self.rooms().weights_bytes > self.card_bytes()),
            **BARS,
        }

    @part(*HELD)
    def caches(self):
        return {
            "row": list(ROWS),
            "left": self.weights_on_card(),
            "right": self.filled_bytes(),
            "users": self.fit(),
            **BARS,
        }

    @part(*HELD, shown=False)
    def gaps(self):
        rooms, each = self.rooms(), self.users_of_a_cell()
        return cells.gaps(
            rooms.weights_bytes,
            rooms.user_bytes * each,
            rooms.users / each,
            self.view_bytes(),
            *BARS.values(),
        )

    @part(*EVERY)
    def asked(self):
        """Where the caches of the users asked for would end, on the cards that have room for them."""
        end = decoding.filled_bytes(self.rooms(), self.users)
        return {"x": fig.gone_unless(self.fit() >= self.users, end), "foot": FEET, "head": HEADS}

    @part(*HELD)
    def labels(self):
        fit, each = self.fit(), self.rooms().user_bytes
        return {
            "y": PLACES,
            "bar": MIDDLES,
            "x": self.view_bytes() + 0.0 * PLACES,
            "name": list(ROWS),
            "beside": BESIDE_NAME,
            "each": [f"{show(each[i], 'bytes')} a user on each GPU" for i in range(6)],
            "label": [show(fit[i], "count") for i in range(6)],
        }

    @part(*HELD, shown=False)
    def named(self):
        """The name of the grey in the first row, if there is room for it."""
        size, share = self.rooms().weights_bytes[0], self.weights_on_card()[0] / self.view_bytes()
        return {
            "x": 0.0,
            "y": MIDDLES[0],
            "text": choose(share > ROOM["wide"], f"weights, {show(size, 'bytes')}", ""),
            "narrow": choose(share > ROOM["narrow"], "weights", ""),
        }

    @part(*EVERY, shown=False)
    def heading(self):
        each, asked = self.users_of_a_cell(), show(self.users, "count")
        gpus, size = show(self.gpus, "count"), show(self.card_bytes(), "bytes")
        filled = show(memory.server_bytes(self.gpu), "bytes")
        cell = choose(each > 1, f"{show(each, 'count')} users", "one user")
        line = choose(
            np.max(self.fit()) >= self.users,
            f"the black line is at the {asked} asked for",
            f"no card has room for the {asked} asked for",
        )
        return {
            "left": 0.0,
            "right": self.view_bytes(),
            "card": f"HBM of {choose(self.gpus > 1, f'each of {gpus}', 'one')} {self.gpu.name}: {size}, of "
            f"which a server fills {filled}",
            "short": f"HBM of {choose(self.gpus > 1, f'each of {gpus} GPUs', 'one GPU')}, {size}",
            "cell": f"Each cell is {cell}; {line}.",
            "cell_short": f"A cell: {cell}. Line: {asked} asked for.",
        }

    @part(*EVERY, shown=False)
    def card_end(self):
        """Where the server's share of the first card ends, red if those asked for go past it."""
        return {"x": fig.gone_unless(self.exhausted()[0], memory.server_bytes(self.gpu))}

    @hint("weights_held")
    def said_of_weights(self):
        return phrase("weights: {size} on each GPU", size=show(self.rooms().weights_bytes, "bytes"))

    @hint("caches")
    def said_of_caches(self):
        rooms = self.rooms()
        return phrase(
            "{row}: {user} for each user on each GPU; {users} fit",
            row=list(ROWS),
            user=show(rooms.user_bytes, "bytes"),
            users=show(rooms.users, "count"),
        )

    def ranges(self):
        return {"x": [0.0, self.view_bytes()]}

    def figure(self, sources):
        p = fig.plot((0, WITH_COUNTS * 80e9), (-0.45, 6.75), height=440)
        fig.moving_ticks(p.xaxis[0], "bytes")
        fig.hide(p.yaxis[0])
        p.ygrid.visible = False
        color, sides = fig.COLOR, {"bottom": "bottom", "top": "top", "right": "right"}
        edge = {"fill_color": color["panel"], "line_color": color["axis"]}
        p.quad(left=0, **sides, source=sources["cards"], **edge)
        for name, hue in (("weights_held", "ink-faint"), ("caches", "hbm")):
            p.quad(left="left", **sides, source=sources[name], fill_color=color[hue], line_color=None)
        cells.draw_gaps(p, sources["gaps"])
        asked = {"y0": "foot", "y1": "head", "source": sources["asked"]}
        p.segment(x0="x", x1="x", **asked, line_color=color["panel"], line_width=6)
        p.segment(x0="x", x1="x", **asked, line_color=color["ink"], line_width=3)
        end = {"source": sources["card_end"], "line_color": color["over"], "line_width": 4}
        p.segment("x", FEET[0], "x", HEADS[0], **end)
        fig.torn(p, sources["weights_held"], "right", "y")
        self.letter(p, sources)
        return p

    @staticmethod
    def letter(p, sources):
        rows, heading, named = sources["labels"], sources["heading"], sources["named"]
        on_grey = fig.BOLD | {"text_color": fig.COLOR["panel"], "x_offset": 8}
        p.text(0, "y", text="name", source=rows, y_offset=-20, **fig.BOLD)
        p.text(0, "y", text="each", source=rows, x_offset="beside", y_offset=-20, **fig.LABEL)
        count = fig.BOLD | {"text_align": "right", "text_font_size": "16px"}
        p.text("x", "bar", text="label", source=rows, **count)
        for width, card, cell, weights in (
            ("wide", "card", "cell", "text"),
            ("narrow", "short", "cell_short", "narrow"),
        ):
            fig.only(
                width,
                p.text("left", 6.5, text=card, source=heading, **fig.BOLD),
                p.text("left", 6.1, text=cell, source=heading, **fig.LABEL),
                p.text("x", "y", text=weights, source=named, **on_grey),
            )
        fit = fig.BOLD | {"text_align": "right"}
        p.text("right", 6.5, text=value("users that fit"), source=heading, **fit)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("A token takes")
    def token(self):
        return show(over(lambda model: decoding.token_bytes(model, self.cache), self.model), "bytes")

    @readout(
        "A user's tokens, in all", help="On all GPUs together, without the copies that some keep", rest=True
    )
    def user(self):
        return show(
            over(lambda model: decoding.user_bytes(model, self.context, self.cache), self.model), "bytes"
        )

    @readout("Sharing heads saves", help="Of the cache, against a key and value of its own for each head")
    def shared(self):
        return show(over(decoding.own_heads, self.model), "times")

    @regime(target=True)
    def exhausted(self):
        fit = self.fit()
        response = choose(
            self.cache > 1,
            f"a cache in fp8 makes it {show(fit[1], 'count')}; then more GPUs or replicas",
            "more GPUs or replicas",
        )
        return (fit[0] < self.users) & (fit[0] > 0), (
            f"You found the end of the cache: {show(fit[0], 'count')} of {show(self.users, 'count')} users "
            f"fit, the others wait in the queue or are put out. First response: {response}."
        )

    @regime()
    def no_room(self):
        return self.fit()[0] < 1, (
            "Not one user fits beside the weights. First response: narrower weights, or more GPUs for one "
            "copy."
        )

    def summary(self):
        fit = self.fit()
        hold = f"{show(self.gpus, 'count')} {self.gpu.name} {choose(self.gpus > 1, 'hold', 'holds')}"
        fp8 = "with the cache in fp8"
        narrower = choose(fit[1] > 0, f", and {show(fit[1], 'count')} {fp8}", f", not even {fp8}")
        return (
            f"{hold} {choose(fit[0] > 0, counted(fit[0], 'user', 'users'), 'no user')} of {self.model.name} "
            f"with {show(self.context, 'count')} tokens{choose(fit[0] == 1, '', ' each')}"
            f"{choose(self.cache > 1, narrower, '')}."
        )


KvCache.serve_as(__name__)
