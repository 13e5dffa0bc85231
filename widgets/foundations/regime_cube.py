"""Real models by three loads, in a cube and as rows of dots beside it: which resource of a cluster each of
them runs out of first."""

import numpy as np
from bokeh.transform import factor_mark

from engine import catalog
from engine.base import ops, units
from engine.mechanism import walls
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import isometric
from widgets.kit.drawing.panels import Panel, Place
from widgets.kit.drawing.ranking import ranks
from widgets.kit.guide import Light, Step
from widgets.kit.text import choose, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

KEYS = (
    "gpt2-xl",
    "llama3.1-8b",
    "gemma3-27b",
    "llama3.1-70b",
    "gpt3-175b",
    "llama3.1-405b",
    "mixtral-8x7b",
    "gpt-oss-120b",
    "qwen3-235b-a22b",
    "deepseek-v3",
    "kimi-k2",
)
NAMES = [catalog.model(key).name for key in KEYS]
MODELS = catalog.models_together(KEYS)
FEWEST, MOST = 1e-3, 1e2  # loads at the ends of the axes
COUNT = len(KEYS)
SIDES = np.where(MODELS.experts > 0, -1, 1)  # models with experts are named on the left of their dots
TICKS = 10.0 ** np.arange(-3, 3)
AT = isometric.log_share(TICKS, FEWEST, MOST)
LIMIT = AT[list(TICKS).index(1)]
# -- places on the picture: the cube, and beside it, on a phone above it, the rows ---------------------------
CUBE = Place((0.0, 0.48), (0.0, 1.0)), Place((0.0, 1.0), (0.0, 0.48))
ROWS = Panel("rows", Place((0.645, 0.825), (0.09, 0.85)), Place((0.37, 0.8), (0.53, 0.95)))
TICKED = {"wide": [1, 3, 5], "narrow": [1, 3, 5]}
KEY_AT = {"wide": [-0.6, 0.06, 0.76], "narrow": [-0.78, -0.2, 0.36]}  # along the rows' axis, over them
LEFT, RIGHT = {"wide": -0.06, "narrow": -0.06}, {"wide": 1.92, "narrow": 1.45}
APART = np.array([0.24, 0.0, -0.24])  # of a row: memory over compute over network, so that none hides another
JOB = ("task", "gpus", "gpu", "tokens", "step_s", "mfu", "batch", "context", "token_s")
TURNS = 9  # steps of the player to a quarter turn
TRAINING = ("memory", "compute", "network")
SERVING = ("memory", "compute", "HBM bandwidth")
SERVING_SHORT = ("memory", "compute", "bandwidth")
HUES = {"memory": "hbm", "compute": "compute", "network": "network", "HBM bandwidth": "hbm"}
SHAPES = ("circle", "square", "triangle", "triangle")
RESPONSES_TRAINING = (
    "cut the state over more GPUs (FSDP and ZeRO, lesson 05)",
    "more GPUs, or a longer step",
    "more work for each byte sent: a larger batch, or a layout that sends less (lesson 10)",
)
RESPONSES_SERVING = (
    "more GPUs, or a smaller cache (grouped heads, fewer bits)",
    "more GPUs, or fewer sequences at once",
    "fewer bytes a step: quantised weights and cache, or more GPUs",
)


BAND = {"fill_color": fig.COLOR["ink"], "fill_alpha": 0.07, "line_color": None, "level": "underlay"}


class RegimeCube(Widget):
    question = "Which resource does each model run out of first: memory, compute or bandwidth?"
    task = Choice("Task", {"training": ("training", 0), "serving": ("serving", 1)}, "training")
    gpus = Number("GPUs", 256, 1, 16384, whole=True, marks=(8, 64, 512, 1024))
    focus = Choice("Model", {key: (NAMES[i], i) for i, key in enumerate(KEYS)}, "llama3.1-70b")
    gpu = Choice("GPU", list(catalog.all_gpus().values()), "h100-sxm", more=True)
    tokens = Number("Tokens in a training step", 4e6, 1e4, 1e8, family="tokens", more=True, marks=(1e6, 16e6))
    step_s = Number("Training step wanted", 20, 0.5, 240, family="seconds", more=True, marks=(10,))
    mfu = Number(
        "MFU",
        0.4,
        0.05,
        0.8,
        family="percent",
        stops=76,
        log=False,
        more=True,
        help="Model FLOPs utilisation: the share of the peak spent on the model's own arithmetic",
    )
    batch = Number("Sequences served together", 64, 1, 4096, whole=True, more=True, marks=(1, 8, 512))
    context = Number(
        "Context of each, in tokens", 8192, 128, 131072, whole=True, more=True, marks=(512, 32768)
    )
    token_s = Number("Time for each token wanted", 0.02, 0.002, 0.5, family="seconds", more=True)
    tilt = Number("Tilt", 24, 8, 50, stops=43, log=False, more=True)
    turn = Player("Turn the cube", frames=TURNS, default=4.2, tween=10)

    drag = {"x": ("turn", -0.03), "y": ("tilt", 0.3)}
    tap = {"models": "focus", "rows": "focus"}
    presets = {
        "Train on 256 H100s": {},
        "8,192 GPUs, steps of 1 s": {"gpus": 8192, "step_s": 1},
        "8 GPUs, small steps": {"gpus": 8, "tokens": 65536},
        "Serve on 8": {"task": "serving", "gpus": 8},
        "Serve many short chats": {"task": "serving", "gpus": 8, "batch": 512, "context": 512},
    }
    break_it = "Find a job that none of the eleven models can meet."
    lights = {
        "chosen": Light(
            "the model in focus and what it needs of each resource",
            ("dots", "drops", "values", "titles", "rows"),
        ),
        "limit": Light("the box in which a cluster has enough of everything", ("limit",)),
    }
    tour = (
        Step(
            "Each axis is the share of one resource that a model asks for; on the dashed box it asks for all "
            "there is. Training on {gpus} GPUs, {focus} comes nearest to the wall of compute: {compute}.",
            {},
            "chosen",
        ),
        Step(
            "{focus} has many more parameters than it uses for a token. It is nearest to the wall of "
            "memory: {memory}.",
            {"focus": "kimi-k2"},
            "chosen",
        ),
        Step(
            "{gpus} GPUs divide the arithmetic of {focus}, but every node still sends all gradients. The "
            "network is what it needs the most of: {bandwidth}.",
            {"gpus": 8192},
            "chosen",
        ),
        Step(
            "Ask for a step in {step_s}, and the same bytes have less time: the network is at {bandwidth} "
            "of what there is.",
            {"gpus": 8192, "step_s": 1},
            "chosen",
        ),
        Step(
            "Serving on {gpus} GPUs has axes of its own. All weights and caches are read for every token, "
            "and HBM bandwidth binds: {bandwidth}.",
            {"task": "serving", "gpus": 8},
            "chosen",
        ),
        Step(
            "With {batch} short chats at a time each weight that is read serves them all. Compute binds "
            "again: {compute}.",
            {"task": "serving", "gpus": 8, "batch": 512, "context": 512},
            "chosen",
        ),
    )
    assumptions = (
        "A load of 100 % uses all there is: what is outside the dashed box, or past the line, cannot be met. "
        "In each row the filled mark is the largest load, which binds; a load beyond the axis is drawn at "
        "its end. Training is plain data parallel with its state cut evenly over all HBM and nothing hidden; "
        "serving sends nothing between GPUs."
    )
    formula = (
        r"$$\text{memory} = \frac{16\,P}{N\,M_\text{HBM}}, \qquad \text{compute} = "
        r"\frac{6\,P_\text{active}\,B}{N\,C \cdot \text{MFU} \cdot \tau_\text{step}}, \qquad "
        r"\text{network} = \frac{2\,\frac{N-1}{N}\,2\,P}{W\,\tau_\text{step}}$$"
        "\n\n"
        r"$P$ parameters of bf16 mixed Adam, of which $P_\text{active}$ work on a token; $N$ GPUs of "
        r"$M_\text{HBM}$ bytes and $C$ FLOP/s in bf16; $B$ tokens in a step of $\tau_\text{step}$ seconds. "
        "$W$ is what the rings of the gradients' AllReduce have, one way: the link within a node; across "
        "nodes all NICs of a node together, or the link where it is slower. The largest load binds.\n\n"
        r"Serving, with bf16 weights and $M_\text{cache}$ bytes of caches for $b$ sequences, and a token in "
        r"$\tau_\text{token}$: memory is $(2P + M_\text{cache})/N M_\text{HBM}$, compute $b$ times a token's "
        r"forward FLOPs over $N C\,\tau_\text{token}$, and the reading $(2P_\text{touched} + M_\text{cache})"
        r"/N W_\text{HBM}\,\tau_\text{token}$."
    )

    # -- what the engine says --------------------------------------------------------------------------------
    @once
    def loads(self):
        """Memory, compute, bandwidth: a row for each model."""
        return self.loads_of(MODELS)

    def loads_of(self, models):
        return np.where(self.task == 1, self.serving_loads(models), self.training_loads(models))

    def training_loads(self, models):
        return walls.training_loads(models, self.gpu, self.gpus, self.tokens, self.step_s, mfu=self.mfu)

    def serving_loads(self, models):
        return walls.serving_loads(models, self.gpu, self.gpus, self.batch, self.context, self.token_s)

    def in_focus(self):
        """The chosen model alone."""
        return ops.select(self.focus, [catalog.model(key) for key in KEYS])

    def chosen(self):
        """The loads of the model in focus."""
        return self.loads_of(self.in_focus())

    def turn_degrees(self):
        return isometric.quarter_turn(self.turn, TURNS)

    def resource(self, index):
        return choose(self.task == 1, select(index, SERVING), select(index, TRAINING))

    def share_of_all(self, load):
        """A load in words: a share, or past all there is a multiple."""
        return choose(load >= 1, show(load, "times", 2), show(load, "percent", 2))

    def of_all(self, load):
        """A load in words, as a share of what there is."""
        return f"{self.share_of_all(load)}{choose(load >= 1, '', ' of')} what there is"

    @once
    def points(self):
        return isometric.log_share(self.loads(), FEWEST, MOST)

    def point(self):
        return isometric.log_share(self.chosen(), FEWEST, MOST)

    # -- what is drawn ---------------------------------------------------------------------------------------
    @part("turn", "tilt")
    def walls(self):
        return isometric.segments(isometric.walls(AT), self.turn_degrees(), self.tilt)

    @part("turn", "tilt")
    def limit(self):
        return isometric.segments(isometric.box(LIMIT), self.turn_degrees(), self.tilt)

    @part("turn", "tilt", *JOB, "focus", shown=False)
    def scale_ends(self):
        """What the three scales end at, and what they begin with, where no value of the model in focus is."""
        at = self.point()
        x, y, _ = isometric.project(isometric.ENDS, self.turn_degrees(), self.tilt)
        return {
            "x": x,
            "y": y,
            "text": [
                *[choose(at[axis] > 0.85, "", units.human(MOST, "times")) for axis in range(3)],
                choose(at[2] < 0.15, "", units.human(FEWEST, "percent")),
            ],
            "align": ["left", "right", "right", "right"],
            "right": [4.0, -4.0, -6.0, -6.0],
            "down": [9.0, 9.0, 0.0, 0.0],
        }

    @part("turn", "tilt", "task")
    def titles(self):
        x, y, _ = isometric.project(isometric.TITLES, self.turn_degrees(), self.tilt)
        return {
            "x": x,
            "y": y,
            "name": [self.resource(axis) for axis in range(3)],
            "align": ["left", "right", "left"],
            "right": [12.0, -12.0, 12.0],
        }

    @part("turn", "tilt", *JOB)
    def dots(self):
        x, y, toward = isometric.project(self.points(), self.turn_degrees(), self.tilt)
        order, loads = isometric.back_to_front(toward), self.loads()
        binding = lookup(walls.binding_load(loads), order)
        over = lookup(np.max(loads, axis=-1), order) > 1
        return isometric.in_order({"x": x, "y": y}, order) | {
            "bound": [self.resource(binding[i]) for i in range(COUNT)],
            "rim": [choose(over[i], "over", "within") for i in range(COUNT)],
            "weight": np.where(over, 2.0, 0.5),
        }

    @hint("dots")
    def about_dots(self):
        """What each model needs and which of its needs binds, from the back of the cube to its front."""
        _, _, toward = isometric.project(self.points(), self.turn_degrees(), self.tilt)
        order, loads = isometric.back_to_front(toward), self.loads()
        rows = [[lookup(loads[:, axis], order)[i] for axis in range(3)] for i in range(COUNT)]
        return [f"{select(order[i], NAMES)}: {self.needs(np.stack(rows[i]))}" for i in range(COUNT)]

    @part("turn", "tilt", *JOB, "focus")
    def models(self):
        """Each model's loads; the one in focus is named beside its dot, and the rows name them all."""
        loads = self.loads()
        binding = walls.binding_load(loads)
        x, y, _ = isometric.project(self.points(), self.turn_degrees(), self.tilt)
        leftward = [(SIDES[i] < 0) | (x[i] > 0.2) for i in range(COUNT)]
        return {
            "name": NAMES,
            "memory": loads[:, 0],
            "compute": loads[:, 1],
            "bandwidth": loads[:, 2],
            "bound": [self.resource(binding[i]) for i in range(COUNT)],
            "x": x,
            "y": y,
            "short": [choose(self.focus == i, NAMES[i], "") for i in range(COUNT)],
            "align": [choose(leftward[i], "right", "left") for i in range(COUNT)],
            "right": np.where(np.stack(leftward), -14.0, 14.0),
            "style": [choose(self.focus == i, "bold", "normal") for i in range(COUNT)],
        }

    # -- the rows --------------------------------------------------------------------------------------------
    def heights(self):
        """The place of each model among the rows: the largest of all loads on top."""
        return ranks(np.max(self.loads(), axis=-1)) + 0.5

    @part(*JOB, "focus")
    def rows(self):
        """The load that binds each model, and what it comes to."""
        loads = self.loads()
        binding, largest = walls.binding_load(loads), np.max(loads, axis=-1)
        amounts = [self.share_of_all(largest[i]) for i in range(COUNT)]
        return {
            "name": NAMES,
            "x": isometric.log_share(largest, FEWEST, MOST),
            "y": self.heights() + lookup(APART, binding),
            "middle": self.heights(),
            "bound": [self.resource(binding[i]) for i in range(COUNT)],
            "amount": amounts,
            "told": [f"{self.short(binding[i])} {amounts[i]}" for i in range(COUNT)],
            "style": [choose(self.focus == i, "bold", "normal") for i in range(COUNT)],
        }

    @part("task", "tokens", "step_s", "batch", "token_s", shown=False)
    def asked(self):
        """The job that the loads are of, over the rows."""
        step = f"a step of {show(self.tokens, 'tokens')} in {show(self.step_s, 'seconds')}"
        chats = f"{show(self.batch, 'count')} sequences, a token in {show(self.token_s, 'seconds')}"
        job = choose(self.task == 1, chats, step)
        return {"text": [f"load of {job}; past the line is more than there is"]}

    def short(self, index):
        return choose(self.task == 1, select(index, SERVING_SHORT), select(index, TRAINING))

    @hint("rows")
    def about_rows(self):
        loads = self.loads()
        return [f"{NAMES[i]}: {self.needs(loads[i])}" for i in range(COUNT)]

    def needs(self, loads):
        """All three loads of a model in words, and which of them binds."""
        each = [f"{self.resource(axis)} {self.share_of_all(loads[axis])}" for axis in range(3)]
        return f"{each[0]}, {each[1]}, {each[2]}; {self.resource(walls.binding_load(loads))} binds"

    @part(*JOB, shown=False)
    def loads_of_rows(self):
        """All three loads of each model, as hollow marks."""
        return {
            "x": np.ravel(self.points()),
            "y": np.repeat(self.heights(), 3) + np.tile(APART, COUNT),
            "resource": [self.resource(axis) for axis in range(3)] * COUNT,
        }

    @part(*JOB, "focus", shown=False)
    def band(self):
        return {"y": lookup(self.heights(), self.focus)}

    @part("task", shown=False)
    def kinds(self):
        """The three resources, over the rows."""
        places = {f"{width}_x": np.array(at) for width, at in KEY_AT.items()}
        return {"name": [self.resource(axis) for axis in range(3)], **places}

    @part(*JOB, shown=False)
    def none_met(self):
        """The ground that is marked as over the limit when none of the models can be trained."""
        seen = self.least() > 1
        return {"left": fig.gone_unless(seen, LIMIT), "right": fig.gone_unless(seen, 1.0)}

    def least(self):
        """The binding load of the model that asks for least."""
        return np.min(np.max(self.loads(), axis=-1))

    @part("turn", "tilt", *JOB, "focus", shown=False)
    def ring(self):
        """Round the dot of the model in focus."""
        x, y, _ = isometric.project(self.points(), self.turn_degrees(), self.tilt)
        return {"x": lookup(x, self.focus), "y": lookup(y, self.focus)}

    @part("turn", "tilt", *JOB, "focus")
    def drops(self):
        return isometric.segments(isometric.drop_lines(self.point()), self.turn_degrees(), self.tilt)

    @part("turn", "tilt", *JOB, "focus")
    def values(self):
        loads = self.chosen()
        point = isometric.log_share(loads, FEWEST, MOST)
        x, y, _ = isometric.project(isometric.readings(point), self.turn_degrees(), self.tilt)
        return {
            "x": x,
            "y": y,
            "name": [self.share_of_all(loads[axis]) for axis in range(3)],
            "align": ["left", "right", "right"],
            "right": [6.0, -6.0, -8.0],
            "down": [9.0, 9.0, 0.0],
        }

    # -- what is said ----------------------------------------------------------------------------------------
    def memory(self):
        return self.share_of_all(self.chosen()[0])

    def compute(self):
        return self.share_of_all(self.chosen()[1])

    def bandwidth(self):
        return self.share_of_all(self.chosen()[2])

    @readout("Training is bound by")
    def training(self):
        loads = self.training_loads(self.in_focus())
        return f"{select(walls.binding_load(loads), TRAINING)}, {self.share_of_all(np.max(loads))}"

    @readout("Serving is bound by")
    def serving(self):
        loads = self.serving_loads(self.in_focus())
        return f"{select(walls.binding_load(loads), SERVING)}, {self.share_of_all(np.max(loads))}"

    @regime(target=True)
    def nothing_can_be_met(self):
        largest = np.max(self.loads(), axis=-1)
        easiest = np.argmin(largest)
        binding = lookup(walls.binding_load(self.loads()), easiest)
        return self.least() > 1, (
            f"You found a job for nobody: even {select(easiest, NAMES)} asks for "
            f"{self.share_of_all(self.least())} the {self.resource(binding)} that there is. First response: "
            f"{self.response(binding)}."
        )

    @regime()
    def another_binds(self):
        """Another resource binds the model in focus than does in the widget's first state."""
        chosen, first = self.chosen(), lookup(BINDING_AT_FIRST, self.focus)
        now = walls.binding_load(chosen)
        return (now != first) | ((self.task == 1) & (now == 2)), (
            f"You moved the wall of {select(self.focus, NAMES)}: now {self.resource(now)} binds, at "
            f"{self.of_all(np.max(chosen))}, where it was {select(first, TRAINING)} when training on "
            f"{show(RegimeCube.gpus, 'count')} H100s. First response: {self.response(now)}."
        )

    @regime()
    def cannot_be_met(self):
        chosen = self.chosen()
        load, binding = np.max(chosen), walls.binding_load(chosen)
        return load > 1, (
            f"The wall is {self.resource(binding)}: {select(self.focus, NAMES)} asks for "
            f"{self.of_all(load)}. First response: {self.response(binding)}."
        )

    def response(self, binding):
        return choose(self.task == 1, select(binding, RESPONSES_SERVING), select(binding, RESPONSES_TRAINING))

    def summary(self):
        chosen = self.chosen()
        gpus = choose(self.gpus > 1, f"{show(self.gpus, 'count')} × {self.gpu.name}", f"one {self.gpu.name}")
        return (
            f"{choose(self.task == 1, 'Serving', 'Training')} {select(self.focus, NAMES)} on {gpus} is "
            f"bound by {self.resource(walls.binding_load(chosen))}, at {self.of_all(np.max(chosen))}."
        )

    def figure(self, sources):
        p = fig.plot((-1.7, 1.7), (-0.92, 0.92), height=460)
        fig.bare(p)
        fig.taller_on_phone(p, 610)
        fig.same_scales(p, 1.08, 0.92, places=CUBE)
        self.draw_cube(p, sources)
        self.draw_rows(p, sources, ROWS.scales(p, (0.0, 1.0), (0.0, float(COUNT))))
        return p

    def draw_cube(self, p, sources):
        color, ends = fig.COLOR, ("x0", "y0", "x1", "y1")
        over_lines = {"background_fill_color": color["panel"], "background_fill_alpha": 0.7}
        p.segment(*ends, source=sources["walls"], line_color=color["line"])
        p.segment(*ends, source=sources["limit"], line_color=color["ink-faint"], line_dash=[6, 4])
        at_end = {"text": "text", "text_align": "align", "x_offset": "right", "y_offset": "down"}
        p.text("x", "y", source=sources["scale_ends"], **at_end, **fig.LABEL)
        p.segment(*ends, source=sources["drops"], line_color=color["ink"], line_width=1.5, line_dash=[3, 3])
        beside = {"text": "name", "text_align": "align", "x_offset": "right"}
        p.scatter("x", "y", source=sources["titles"], size=12, line_color=None, **_kinds("name"))
        p.text("x", "y", source=sources["titles"], **beside, **fig.BOLD)
        rim = {"line_color": fig.hues("rim", {"over": "ink", "within": "panel"}), "line_width": "weight"}
        p.scatter("x", "y", source=sources["dots"], size=14, **_kinds("bound"), **rim)
        ring = {"size": 24, "fill_color": None, "line_color": color["ink"], "line_width": 1.5}
        p.scatter("x", "y", marker="circle", source=sources["ring"], **ring)
        named = fig.TEXT | over_lines | {"text_font_style": "style", "source": sources["models"]}
        p.text("x", "y", text="short", text_align="align", x_offset="right", **named)
        p.text("x", "y", source=sources["values"], y_offset="down", **beside, **fig.BOLD, **over_lines)

    def draw_rows(self, p, sources, scales):
        color, rows = fig.COLOR, sources["rows"]
        p.hbar("y", left=-0.84, right=1.62, height=0.94, source=sources["band"], **scales, **BAND)
        p.quad("left", "right", COUNT, 0, source=sources["none_met"], **scales, **fig.OVER)
        middles = np.arange(COUNT) + 0.5
        p.segment(0, middles, 1, middles, line_color=color["grid"], **scales)
        p.segment(LIMIT, 0, LIMIT, COUNT, line_color=color["ink"], line_width=1.5, **scales)
        hollow = {"fill_color": color["panel"], "line_width": 1.5, "source": sources["loads_of_rows"]}
        marks = {
            "marker": factor_mark("resource", SHAPES, list(HUES)),
            "line_color": fig.hues("resource", HUES),
        }
        p.scatter("x", "y", size=9, **hollow, **marks, **scales)
        p.scatter("x", "y", size=13, source=rows, line_color=color["panel"], **_kinds("bound"), **scales)
        styled = fig.TEXT | {"text_font_style": "style", "source": rows} | scales
        past = {"text_align": "right"} | fig.BOLD | scales
        fig.only("wide", p.text(RIGHT["wide"], COUNT + 1.6, text="text", source=sources["asked"], **past))
        for width, amount in (("wide", "told"), ("narrow", "amount")):
            kinds, at = sources["kinds"], f"{width}_x"
            head = COUNT + 0.7
            fig.only(
                width,
                p.text(LEFT[width], "middle", text="name", text_align="right", **styled),
                p.text(RIGHT[width], "middle", text=amount, text_align="right", **styled),
                p.scatter(at, head, size=11, source=kinds, line_color=None, **_kinds("name"), **scales),
                p.text(at, head, text="name", x_offset=10, source=kinds, **fig.TEXT, **scales),
                *(self.tick(p, i, scales) for i in TICKED[width]),
            )

    def tick(self, p, i, scales):
        """A tick of the rows' axis: per cent up to all there is, then multiples."""
        words = units.human(float(TICKS[i]), "percent" if TICKS[i] <= 1 else "times")
        return p.text([AT[i]], [-0.45], text=[words], text_align="center", **fig.LABEL, **scales)


def _kinds(column):
    """The mark and the hue of the resource that a column names."""
    return {"marker": factor_mark(column, SHAPES, list(HUES)), "fill_color": fig.hues(column, HUES)}


BINDING_AT_FIRST = walls.binding_load(RegimeCube().loads())


RegimeCube.serve_as(__name__)
