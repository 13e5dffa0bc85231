"""Real models in a cube of three loads: which resource of a cluster each of them runs out of first."""

from types import SimpleNamespace

import numpy as np
from bokeh.transform import factor_mark

from engine import catalog, walls
from widgets.kit import figure as fig
from widgets.kit import isometric
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.symbolic import lookup
from widgets.kit.text import choose, select, show
from widgets.kit.widget import Widget, part, readout, regime

KEYS = ("gpt2-xl", "llama3.1-8b", "gemma3-27b", "llama3.1-70b", "gpt3-175b", "llama3.1-405b", "mixtral-8x7b",
        "gpt-oss-120b", "qwen3-235b-a22b", "deepseek-v3", "kimi-k2")
NAMES = [catalog.model(key).name for key in KEYS]
MODELS = catalog.models_together(KEYS)
FEWEST, MOST = 1e-3, 1e2                                     # loads at the ends of the axes
SIDES = np.where(MODELS.experts > 0, -1, 1)                  # models with experts are named on the left of their dots
TICKS = 10.0 ** np.arange(-3, 3)
AT = isometric.log_share(TICKS, FEWEST, MOST)
FULL = list(TICKS).index(1)
LIMIT = AT[FULL]
TURNS = 9                                                    # steps of the player to a quarter turn
KINDS = ["limit" if tick == 1 else "tick" for tick in TICKS] * 3
TRAINING = ("memory", "compute", "network")
SERVING = ("memory", "compute", "HBM bandwidth")
HUES = {"memory": "hbm", "compute": "compute", "network": "network", "HBM bandwidth": "hbm"}
SHAPES = ("circle", "square", "triangle", "triangle")
RESPONSES_TRAINING = ("cut the state over more GPUs (FSDP and ZeRO, lesson 05)",
                      "more GPUs, or a longer step",
                      "more work for each byte sent: a larger batch, or a layout that sends less (lesson 10)")
RESPONSES_SERVING = ("more GPUs, or a smaller cache (grouped heads, fewer bits)",
                     "more GPUs, or fewer sequences at once",
                     "fewer bytes a step: quantised weights and cache, or more GPUs")


class RegimeCube(Widget):
    question = "Which resource does each model run out of first: memory, compute or bandwidth?"
    task = Choice("Task", {"training": ("training", 0), "serving": ("serving", 1)}, "training")
    gpus = Number("GPUs", 256, 1, 16384, whole=True, marks=(8, 64, 512, 1024))
    focus = Choice("Model", {key: (NAMES[i], i) for i, key in enumerate(KEYS)}, "llama3.1-70b")
    gpu = Choice("GPU", list(catalog.gpus().values()), "h100-sxm", more=True)
    tokens = Number("Tokens in a training step", 4e6, 1e4, 1e8, family="tokens", more=True, marks=(1e6, 16e6))
    step_s = Number("Training step wanted", 20, 0.5, 240, family="seconds", more=True, marks=(10,))
    mfu = Number("MFU", 0.4, 0.05, 0.8, family="percent", stops=76, log=False, more=True,
                 help="Model FLOPs utilisation: the share of the peak that the mathematics uses")
    batch = Number("Sequences served together", 64, 1, 4096, whole=True, more=True, marks=(1, 8, 512))
    context = Number("Context of each, in tokens", 8192, 128, 131072, whole=True, more=True, marks=(512, 32768))
    token_s = Number("Time for each token wanted", 0.02, 0.002, 0.5, family="seconds", more=True)
    tilt = Number("Tilt", 24, 8, 50, stops=43, log=False, more=True)
    turn = Player("Turn the cube", frames=TURNS, default=4.2, tween=10)

    drag = {"x": ("turn", -0.03), "y": ("tilt", 0.3)}
    tap = {"models": "focus"}
    presets = {"Train on 256 H100s": {}, "8,192 GPUs, steps of 1 s": {"gpus": 8192, "step_s": 1},
               "8 GPUs, small steps": {"gpus": 8, "tokens": 65536}, "Serve on 8": {"task": "serving", "gpus": 8},
               "Serve many short chats": {"task": "serving", "gpus": 8, "batch": 512, "context": 512}}
    break_it = "Find a setting in which another resource binds the chosen model than at first."
    assumptions = ("A load of 1× uses all there is: what lies outside the dashed box has a red rim and cannot be met. "
                   "Training is plain data parallel with its state cut evenly over all HBM and nothing hidden; "
                   "serving sends nothing between GPUs.")
    formula = (r"$$\ell_{memory} = \frac{16\,P}{N\,H}, \qquad \ell_{compute} = \frac{6\,P_a\,T}{N\,C\,u\,t}, \qquad "
               r"\ell_{network} = \frac{2\,\frac{N-1}{N}\,2\,P}{W\,t}$$" "\n\n"
               "$P$ parameters of bf16 mixed Adam, of which $P_a$ work on a token; $N$ GPUs of $H$ bytes and $C$ "
               "FLOP/s in bf16 at an MFU of $u$; $T$ tokens in a step of $t$ seconds. $W$ is what the rings of the gradients' "
               "AllReduce have, one way: the link within a node; across nodes all NICs of a node together, or the link "
               "where it is slower. The largest load binds. Loads beyond the axes stand at their ends.\n\n"
               r"Serving: $\ell_{memory} = (2P + KV)/NH$, $\ell_{compute} = b\,F/NCt$, "
               r"$\ell_{HBM} = (2P_{touched} + KV)/NBt$ "
               "with bf16 weights and cache, $b$ sequences, $F$ forward FLOPs a token at the peak, $B$ the HBM's "
               "bytes/s.")

    # -- what the engine says ------------------------------------------------------------------------------------------
    def loads(self, models=MODELS):
        """Memory, compute, bandwidth: a row for each model."""
        return np.where(self.task == 1, self.serving_loads(models), self.training_loads(models))

    def training_loads(self, models):
        return walls.training_loads(models, self.gpu, self.gpus, self.tokens, self.step_s, mfu=self.mfu)

    def serving_loads(self, models):
        return walls.serving_loads(models, self.gpu, self.gpus, self.batch, self.context, self.token_s)

    def in_focus(self):
        """The chosen model alone."""
        return SimpleNamespace(**{name: lookup(column, self.focus) for name, column in vars(MODELS).items()})

    def chosen(self):
        """The loads of the model in focus."""
        return self.loads(self.in_focus())

    def turn_degrees(self):
        return isometric.quarter_turn(self.turn, TURNS)

    def resource(self, index):
        return choose(self.task == 1, select(index, SERVING), select(index, TRAINING))

    def points(self):
        return isometric.log_share(self.loads(), FEWEST, MOST)

    def point(self):
        return isometric.log_share(self.chosen(), FEWEST, MOST)

    # -- what is drawn -------------------------------------------------------------------------------------------------
    @part("turn", "tilt")
    def walls(self):
        return isometric.segments(isometric.walls(AT), self.turn_degrees(), self.tilt)

    @part("turn", "tilt")
    def limit(self):
        return isometric.segments(isometric.box(LIMIT), self.turn_degrees(), self.tilt)

    @part("turn", "tilt", "task", "gpus", "gpu", "tokens", "step_s", "mfu", "batch", "context", "token_s", "focus")
    def ticks(self):
        """The scales; the place at which the model in focus is read stays free for its own value."""
        x, y, _ = isometric.project(isometric.scales(AT), self.turn_degrees(), self.tilt)
        point = self.point()
        hidden = [isometric.near(AT, point[axis], 0.13) for axis in range(3)]
        names = [choose(hidden[axis][i], "", show(TICKS[i], "times")) for axis in range(3) for i in range(len(AT))]
        names[len(AT)] = ""  # the second axis starts where the third does
        names[FULL] = choose(hidden[0][FULL], "", "1×, all")
        return {"x": np.ravel(x), "y": np.ravel(y), "name": names, "kind": KINDS,
                "align": ["left"] * 6 + ["right"] * 12, "right": [6.0] * 6 + [-6.0] * 6 + [-8.0] * 6,
                "down": [9.0] * 12 + [0.0] * 6}

    @part("turn", "tilt", "task")
    def titles(self):
        x, y, _ = isometric.project(isometric.TITLES, self.turn_degrees(), self.tilt)
        return {"x": x, "y": y, "name": [self.resource(axis) for axis in range(3)],
                "align": ["left", "right", "left"], "right": [12.0, -12.0, 12.0]}

    @part("turn", "tilt", "task", "gpus", "gpu", "tokens", "step_s", "mfu", "batch", "context", "token_s")
    def stems(self):
        return isometric.segments(isometric.stems(self.points()), self.turn_degrees(), self.tilt)

    @part("turn", "tilt", "task", "gpus", "gpu", "tokens", "step_s", "mfu", "batch", "context", "token_s")
    def dots(self):
        x, y, toward = isometric.project(self.points(), self.turn_degrees(), self.tilt)
        order, loads = isometric.back_to_front(toward), self.loads()
        binding = lookup(walls.binding_load(loads), order)
        over = lookup(np.max(loads, axis=-1), order) > 1
        return isometric.in_order({"x": x, "y": y}, order) | {
            "bound": [self.resource(binding[i]) for i in range(len(NAMES))],
            "rim": [choose(over[i], "over", "within") for i in range(len(NAMES))], "weight": np.where(over, 2.0, 0.5)}

    @part("turn", "tilt", "task", "gpus", "gpu", "tokens", "step_s", "mfu", "batch", "context", "token_s", "focus")
    def models(self):
        """Each model's loads, and its name beside its dot; on a phone the one in focus and the two ends are named."""
        loads = self.loads()
        largest, binding = np.max(loads, axis=-1), walls.binding_load(loads)
        ends = [np.argmax(largest), np.argmin(largest)]
        told = [(self.focus == i) | (ends[0] == i) | (ends[1] == i) for i in range(len(NAMES))]
        x, y, _ = isometric.project(self.points(), self.turn_degrees(), self.tilt)
        return {"name": NAMES, "memory": loads[:, 0], "compute": loads[:, 1], "bandwidth": loads[:, 2],
                "bound": [self.resource(binding[i]) for i in range(len(NAMES))], "x": x, "y": y,
                "start": isometric.beside(x, SIDES, 0.04),
                "at": isometric.apart(isometric.beside(x, SIDES, 0.3), y, 0.55, 0.078),
                "short": [choose(told[i], NAMES[i], "") for i in range(len(NAMES))],
                "style": [choose(self.focus == i, "bold", "normal") for i in range(len(NAMES))],
                "align": ["right" if side < 0 else "left" for side in SIDES],
                "right": np.where(SIDES < 0, -12.0, 12.0), "gap": np.where(SIDES < 0, -3.0, 3.0)}

    @part("turn", "tilt", "task", "gpus", "gpu", "tokens", "step_s", "mfu", "batch", "context", "token_s", "focus")
    def drops(self):
        return isometric.segments(isometric.drop_lines(self.point()), self.turn_degrees(), self.tilt)

    @part("turn", "tilt", "task", "gpus", "gpu", "tokens", "step_s", "mfu", "batch", "context", "token_s", "focus")
    def values(self):
        loads = self.chosen()
        point = isometric.log_share(loads, FEWEST, MOST)
        x, y, _ = isometric.project(isometric.readings(point), self.turn_degrees(), self.tilt)
        return {"x": x, "y": y, "name": [show(loads[axis], "times") for axis in range(3)],
                "align": ["left", "right", "right"], "right": [6.0, -6.0, -8.0], "down": [9.0, 9.0, 0.0]}

    # -- what is said --------------------------------------------------------------------------------------------------
    def load_of(self, axis):
        load = self.chosen()[axis]
        return show(load, "times"), load > 1

    @readout("Memory load")
    def memory(self):
        return self.load_of(0)

    @readout("Compute load")
    def compute(self):
        return self.load_of(1)

    @readout("Bandwidth load")
    def bandwidth(self):
        return self.load_of(2)

    @readout("Training is bound by")
    def training(self):
        loads = self.training_loads(self.in_focus())
        return f"{select(walls.binding_load(loads), TRAINING)}, {show(np.max(loads), 'times')}"

    @readout("Serving is bound by")
    def serving(self):
        loads = self.serving_loads(self.in_focus())
        return f"{select(walls.binding_load(loads), SERVING)}, {show(np.max(loads), 'times')}"

    @regime(target=True)
    def another_binds(self):
        """Another resource binds the model in focus than does in the widget's first state."""
        chosen, first = self.chosen(), lookup(BINDING_AT_FIRST, self.focus)
        now = walls.binding_load(chosen)
        return (now != first) | ((self.task == 1) & (now == 2)), (
            f"You moved the wall of {select(self.focus, NAMES)}: now {self.resource(now)} binds, at "
            f"{show(np.max(chosen), 'times')} of what there is, where it was {select(first, TRAINING)} when "
            f"training on {show(RegimeCube.gpus, 'count')} H100s. First response: {self.response(now)}.")

    @regime()
    def cannot_be_met(self):
        chosen = self.chosen()
        load, binding = np.max(chosen), walls.binding_load(chosen)
        return load > 1, (f"The wall is {self.resource(binding)}: {select(self.focus, NAMES)} asks for "
                          f"{show(load, 'times')} of what there is. First response: {self.response(binding)}.")

    def response(self, binding):
        return choose(self.task == 1, select(binding, RESPONSES_SERVING), select(binding, RESPONSES_TRAINING))

    def summary(self):
        chosen = self.chosen()
        loads = [show(chosen[axis], "times") for axis in range(3)]
        serving = f"a token every {show(self.token_s, 'seconds')} for {show(self.batch, 'count')} sequences"
        training = f"steps of {show(self.tokens, 'tokens')} in {show(self.step_s, 'seconds')}"
        gpus = choose(self.gpus > 1, f"{show(self.gpus, 'count')} × {self.gpu.name}", f"one {self.gpu.name}")
        return (f"{choose(self.task == 1, 'Serving', 'Training')} {select(self.focus, NAMES)} on {gpus}, "
                f"{choose(self.task == 1, serving, training)}, asks for {loads[0]} of the memory, {loads[1]} of the "
                f"arithmetic and {loads[2]} of the {choose(self.task == 1, 'HBM bandwidth', 'network bandwidth')}: "
                f"{self.resource(walls.binding_load(chosen))} binds.")

    def figure(self, sources):
        p = fig.plot((-1.7, 1.7), (-0.92, 0.92), height=540)
        fig.same_scales(p, 1.08, 0.92)
        p.grid.visible = False
        for axis in p.axis:
            fig.hide(axis)
        color, ends = fig.COLOR, ("x0", "y0", "x1", "y1")
        over_lines = {"background_fill_color": color["panel"], "background_fill_alpha": 0.7}
        p.segment(*ends, source=sources["walls"], line_color=color["line"])
        p.segment(*ends, source=sources["limit"], line_color=color["over"], line_dash=[6, 4])
        p.segment(*ends, source=sources["stems"], line_color=color["ink-faint"], line_alpha=0.45)
        p.segment(*ends, source=sources["drops"], line_color=color["ink"], line_dash=[3, 3])
        beside = {"text": "name", "text_align": "align"}
        fig.only("wide", p.segment("x", "y", "start", "at", source=sources["models"], line_color=color["ink-faint"]),
                 p.text("x", "y", source=sources["ticks"], x_offset="right", y_offset="down", **beside, **fig.TEXT | {
                     "text_color": fig.hues("kind", {"limit": "over", "tick": "ink-soft"})}))
        kinds = {"marker": factor_mark("name", SHAPES, list(HUES)), "fill_color": fig.hues("name", HUES)}
        p.scatter("x", "y", source=sources["titles"], size=12, line_color=None, **kinds)
        p.text("x", "y", source=sources["titles"], x_offset="right", **beside, **fig.BOLD)
        p.scatter("x", "y", source=sources["dots"], marker=factor_mark("bound", SHAPES, list(HUES)), size=14,
                  fill_color=fig.hues("bound", HUES), line_width="weight",
                  line_color=fig.hues("rim", {"over": "over", "within": "panel"}))
        named = fig.TEXT | over_lines | {"text_align": "align", "text_font_style": "style", "source": sources["models"]}
        fig.only("wide", p.text("start", "at", text="name", x_offset="gap", **named))
        fig.only("narrow", p.text("x", "y", text="short", x_offset="right", **named))
        reading = {"x_offset": "right", "y_offset": "down", **beside, **fig.BOLD, **over_lines}
        p.text("x", "y", source=sources["values"], **reading)
        return p


BINDING_AT_FIRST = walls.binding_load(RegimeCube().loads())
