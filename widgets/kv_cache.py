"""What the users of a model keep in HBM: the cache beside the weights, and what makes room for more of them."""

import numpy as np

from engine import catalog, decoding
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.symbolic import over
from widgets.kit.text import choose, phrase, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

MODELS = [catalog.model(key) for key in ("llama2-7b", "llama3-8b", "qwen3-32b", "llama3-70b", "qwen2.5-72b", "llama3.1-405b",
                                         "mixtral-8x22b", "gemma3-27b", "gpt-oss-120b", "deepseek-v3")]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200", "mi300x", "l40s", "rtx4090")]
WIDTHS = {"bf16": ("bf16", 2.0), "fp8": ("fp8", 1.0), "int4": ("4 bits", 0.5)}
ROWS = {"as it is": 5, "fp8 cache": 4, "4-bit cache": 3, "fp8 weights": 2, "twice the GPUs": 1, "no shared heads": 0}
PLACES = np.array([*ROWS.values()], float)
VIEWS_BYTES = [m * 10.0**e for e in range(9, 15) for m in (1.2, 1.6, 2.4, 3.9, 5.9, 7.9)]
EVERY = ("model", "context", "users", "gpus", "gpu", "cache", "weights")


class KvCache(Widget):
    question = "How many users fit, before their memories of the conversation fill the GPUs?"
    model = Choice("Model", MODELS, "llama3-70b")
    context = Number("Context of each", 8192, 256, 2**20, family="tokens", stops=61, whole=True,
                     marks=(2048, 4096, 8192, 32768, 131072, 2**20))
    users = Number("Users at once", 128, 1, 8192, stops=61, whole=True, marks=(1, 16, 64, 128, 256, 1024))
    gpus = Choice("GPUs", {str(n): (str(n), n) for n in (1, 2, 4, 8, 16, 32)}, "8", more=True,
                  help="One copy of the model, shared by tensor parallelism")
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    cache = Choice("Cache stored in", WIDTHS, "bf16", more=True)
    weights = Choice("Weights stored in", WIDTHS, "bf16", more=True)

    presets = {
        "70B, chats of 8k": {},
        "70B, documents of 128k": {"context": 131072, "users": 16},
        "Llama 2 7B on one card": {"model": "llama2-7b", "gpus": "1", "context": 4096, "users": 32},
        "405B in fp8": {"model": "llama3.1-405b", "weights": "fp8", "users": 64},
        "DeepSeek-V3 on 16 H200s": {"model": "deepseek-v3", "gpu": "h200", "gpus": "16", "weights": "fp8", "users": 1024},
        "8B on an RTX 4090": {"model": "llama3-8b", "gpu": "rtx4090", "gpus": "1", "users": 8},
    }
    break_it = "Keep the users and lengthen their conversations until the cache no longer fits."
    assumptions = ("Bytes on each GPU. Every user holds a whole context, in pages without waste; 2 GB stay with the framework. "
                   "Past the key and value heads, tensor ranks hold copies; a latent cache (MLA) is whole on every rank. "
                   "Leaves out activations, shared prefixes and the scales of quantised formats.")
    formula = ("$$\\text{cache} = 2 \\, L \\, h_{kv} \\, d \\, b \\, s \\, u / \\min(t_p, h_{kv})$$\n\nfor $u$ users of $s$ tokens, "
               "$L$ layers with $h_{kv}$ key and value heads of size $d$, $b$ bytes a value, on $t_p$ GPUs. Grouped queries (GQA) "
               "lower $h_{kv}$; latent attention keeps $L\\,(d_c + d_r)\\,b$ a token instead (DeepSeek-V2, arXiv:2405.04434). A layer "
               "with a window keeps no more than its window.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    @once
    def rooms(self):
        """What stands on each GPU in each row's case: as it is, then with one thing changed."""
        cases = [(self.gpus, self.cache, self.weights, 0), (self.gpus, np.minimum(self.cache, 1.0), self.weights, 0),
                 (self.gpus, np.minimum(self.cache, 0.5), self.weights, 0), (self.gpus, self.cache, np.minimum(self.weights, 1.0), 0),
                 (decoding.doubled(self.gpus), self.cache, self.weights, 0), (self.gpus, self.cache, self.weights, 1)]
        return over(lambda model: decoding.rooms(model, self.gpu, self.context, cases), self.model)

    def filled(self):
        rooms = self.rooms()
        return decoding.filled_bytes(rooms, self.users)

    def over_hbm(self):
        return self.filled() > self.gpu.hbm_bytes

    def users_that_fit(self):
        return self.rooms().users

    def view_bytes(self):
        return fig.fitting_view(np.maximum(np.max(self.filled()[:5]), self.gpu.hbm_bytes), VIEWS_BYTES, headroom=1.2)

    # -- the picture ------------------------------------------------------------------------------------------------
    @part("model", "context", "gpus", "gpu", "cache", "weights")
    def weights_held(self):
        rooms = self.rooms()
        return {"row": list(ROWS), "left": np.zeros(6), "right": rooms.weights_bytes, **fig.rows_of(PLACES, 0.3)}

    @part(*EVERY)
    def caches(self):
        held = self.filled()
        limit = np.minimum(held, np.maximum(self.gpu.hbm_bytes, self.rooms().weights_bytes))
        return {"row": list(ROWS), "left": self.rooms().weights_bytes, "right": held, "over_from": limit, "y": PLACES,
                **fig.rows_of(PLACES, 0.3)}

    @hint("weights_held")
    def said_of_weights(self):
        return phrase("weights: {size} on each GPU", size=show(self.rooms().weights_bytes, "bytes"))

    @hint("caches")
    def said_of_caches(self):
        rooms = self.rooms()
        return phrase("{row}: {user} for each user on each GPU; {users} would fit", row=list(ROWS),
                      user=show(rooms.user_bytes, "bytes"), users=show(rooms.users, "count"))

    @part(*EVERY)
    def labels(self):
        users, held, view = self.users_that_fit(), self.filled(), self.view_bytes()
        at = np.minimum(fig.share_of(view, 0.72), held)
        return {"x": fig.clear_of(at, self.gpu.hbm_bytes, fig.share_of(view, 0.2)), "y": PLACES,
                "label": [f"{show(users[i], 'count')} fit" for i in range(6)]}

    @part("gpu")
    def ceiling(self):
        return {"x": self.gpu.hbm_bytes, "label": f"HBM of one {self.gpu.name}, {show(self.gpu.hbm_bytes, 'bytes')}",
                "short": f"HBM, {show(self.gpu.hbm_bytes, 'bytes')}"}

    def ranges(self):
        return {"x": [0.0, self.view_bytes()]}

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("A token takes")
    def token(self):
        return show(over(lambda model: decoding.token_bytes(model, self.cache), self.model), "bytes")

    @readout("A user takes")
    def user(self):
        return show(over(lambda model: decoding.user_bytes(model, self.context, self.cache), self.model), "bytes")

    @readout("Users that fit")
    def fitting(self):
        return show(self.users_that_fit()[0], "count"), self.users_that_fit()[0] < self.users

    @readout("Weights on each GPU")
    def weight(self):
        return show(self.rooms().weights_bytes[0], "bytes"), self.rooms().weights_bytes[0] > self.gpu.hbm_bytes

    @readout("Sharing heads saves")
    def shared(self):
        return show(over(decoding.own_heads, self.model), "times")

    @regime(target=True)
    def exhausted(self):
        fit = self.users_that_fit()
        return (fit[0] < self.users) & (fit[0] > 0), (
            f"You found the end of the cache: {show(fit[0], 'count')} of {show(self.users, 'count')} users fit, the others wait in the "
            f"queue or are put out. First response: a cache in fp8 makes it {show(fit[1], 'count')}; then more GPUs or replicas.")

    @regime()
    def no_room(self):
        return self.users_that_fit()[0] < 1, (
            "Not one user fits beside the weights. First response: narrower weights, or more GPUs for one copy.")

    def summary(self):
        return (f"{show(self.users, 'count')} user{choose(self.users > 1, 's', '')} of {self.model.name} with "
                f"{show(self.context, 'tokens')} each keep {self.user()} apiece; beside the weights {show(self.gpus, 'count')} "
                f"{self.gpu.name} hold {show(self.users_that_fit()[0], 'count')} of them.")

    def figure(self, sources):
        p = fig.plot((0, 1.6e11), (-0.6, 6.4), height=400)
        fig.moving_ticks(p.xaxis[0], "bytes")
        fig.named_rows(p.yaxis[0], ROWS)
        p.ygrid.visible = False
        hbm = fig.COLOR["hbm"]
        p.quad(left="left", right="right", bottom="bottom", top="top", source=sources["weights_held"], fill_color=hbm, fill_alpha=0.45,
               line_color=hbm)
        p.quad(left="left", right="right", bottom="bottom", top="top", source=sources["caches"], fill_color=hbm, fill_alpha=0.14,
               line_color=hbm, hatch_pattern="right_diagonal_line", hatch_color=hbm, hatch_alpha=0.5, hatch_scale=10)
        p.hbar(y="y", left="over_from", right="right", height=0.6, source=sources["caches"], **fig.OVER | {"line_color": None})
        p.segment("x", -0.6, "x", 5.5, source=sources["ceiling"], line_color=fig.COLOR["ink"], line_dash=[6, 4], line_width=2)
        for width, text in (("wide", "label"), ("narrow", "short")):
            fig.only(width, p.text("x", 5.65, text=text, text_align="center", source=sources["ceiling"], **fig.BOLD))
        p.text("x", "y", text="label", x_offset=8, source=sources["labels"], **fig.ON_PANEL, **fig.BOLD)
        fig.key(p, {"weights": "hbm", "users' cache": "hbm"}, wide=6.2, narrow=(6.2,), hatches=[" ", "right_diagonal_line"])
        return p
