"""Which batch sizes to capture: what padding wastes, against the graphs that are kept and what they cost."""

import numpy as np

from engine import catalog, dispatch, shape_buckets
from engine.layout import machine
from engine.shape_buckets import BEST, EVERY, LARGEST, POWERS, SHIPPED
from widgets.kit import figure as fig
from widgets.kit import lanes
from widgets.kit.controls import Choice, Number
from widgets.kit.symbolic import lookup, over
from widgets.kit.text import choose, phrase, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

PLANS = {"powers": ("powers of two", POWERS), "shipped": ("1, 2, 4, then every 8th (vLLM)", SHIPPED),
         "best": ("the best list of so many", BEST), "every": ("every size", EVERY)}
MODELS = [catalog.model(key) for key in ("llama3.2-1b", "llama3-8b")]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")]
SIZES = np.arange(LARGEST + 1.0)
RUN = ("load", "spread", "seed", "plan", "kept")
CROWDED, SLOW_S = 0.1, 600.0    # of the room for caches; of a start


class GraphBuckets(Widget):
    question = "How many batch sizes are worth a graph of their own?"
    in_page = True
    load = Number("Sequences running", 24, 2, 110, stops=60, whole=True, marks=(8, 16, 48, 96),
                  help="On average; the server takes 128 at most")
    plan = Choice("Captured sizes", PLANS, "shipped")
    lengths = Number("Lengths captured", 1, 1, 512, stops=48, whole=True, marks=(2, 8, 64),
                     help="1 where kernels read the lengths from memory; more where a length is part of the shape")
    kept = Number("Graphs of the best list", 8, 1, 48, stops=range(1, 49), log=False, whole=True, more=True)
    spread = Number("Spread of the answers", 0.8, 0.0, 1.6, stops=33, log=False, more=True,
                    help="Standard deviation of the logarithm of their length; 200 tokens on average")
    graph_bytes = Number("Memory of a graph", 6.4e6, 1e5, 100e6, family="bytes", stops=61, marks=(26e6,), more=True,
                         help="Measured: 6 to 28 MB in vLLM, in one pool")
    graph_s = Number("Time to capture one", 0.4, 0.02, 4.0, family="seconds", stops=49, marks=(0.05,), more=True,
                     help="Measured: 0.05 to 0.4 s in vLLM")
    model = Choice("Model", MODELS, "llama3-8b", more=True)
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    seed = Number("Seed", 1, 0, 99, stops=range(100), log=False, whole=True, more=True)

    presets = {
        "vLLM's list": {},
        "Powers of two": {"plan": "powers"},
        "The best eight": {"plan": "best"},
        "Every size": {"plan": "every"},
        "Quiet night": {"load": 3, "plan": "powers"},
        "Rush hour": {"load": 96},
    }
    break_it = ("Let shapes multiply: make the graphs take a tenth of the memory that caches live on, or ten minutes "
                "of every start.")
    assumptions = (f"A server that runs {LARGEST} sequences at most, {shape_buckets.STEPS:,} decode steps after a "
                   "warm-up, Poisson arrivals. "
                   "Each step runs the smallest captured batch that holds it. Memory and time of a graph are per "
                   "graph whatever its "
                   "batch, from vLLM's logs (pull requests 11349 and 23184). Time lost: the cost model's decode step "
                   "without caches.")
    formula = ("$$\\text{waste} = \\frac{\\sum_b c_b\\,(\\lceil b \\rceil - b)}{\\sum_b c_b\\, b}, \\quad "
               "\\text{graphs} = |\\text{sizes}| \\times |\\text{lengths}|$$\n\nfor $c_b$ steps with $b$ sequences "
               "and $\\lceil b \\rceil$ "
               "the smallest captured size that holds them. The best list of $n$ sizes: $F_n(j) = \\min_i\\, "
               "F_{n-1}(i) + "
               "\\sum_{b=i+1}^{j} c_b\\,(j - b)$.")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    @once
    def fitted(self):
        return shape_buckets.fit(self.load, self.spread, self.seed, self.plan, self.kept)

    def wasted(self):
        return dispatch.share(self.fitted()["padded"], self.fitted()["rows"])

    def least(self):
        return dispatch.share(self.fitted()["least"], self.fitted()["rows"])

    @once
    def time_lost(self):
        found, at = self.fitted(), over(machine, self.gpu)
        step_s = over(lambda model: shape_buckets.step_times_s(model, at), self.model)
        return shape_buckets.time_lost(found["counts"], step_s, lookup(step_s, found["bucket"]))

    def cost(self):
        return shape_buckets.cost(self.fitted()["graphs"], self.lengths, self.graph_bytes, self.graph_s)

    @once
    def room(self):
        return over(lambda model: shape_buckets.room_bytes(model, self.gpu), self.model)

    def crowding(self):
        return dispatch.share(self.cost().memory_bytes, self.room())

    def most(self):
        return np.max(self.fitted()["counts"])

    # -- the picture ------------------------------------------------------------------------------------------------
    @part(*RUN)
    def steps(self):
        counts = self.fitted()["counts"]
        left, right = lanes.around(SIZES, 0.42)
        return {"batch": SIZES, "left": left, "right": right, "bottom": np.zeros(LARGEST + 1),
                "top": fig.share_of(fig.filled(counts, self.most()), LARGEST * 0.62), "steps": counts}

    @hint("steps")
    def about_batch(self):
        found = self.fitted()
        return phrase("{batch} sequences: {count} of the steps, run as {bucket}", batch=show(SIZES, "count"),
                      count=show(found["counts"], "count"), bucket=show(found["bucket"], "count"))

    @part(*RUN)
    def stairs(self):
        bucket = self.fitted()["bucket"]
        left, right = lanes.around(SIZES, 0.5)
        return {"left": left, "right": right, "bottom": np.minimum(SIZES, bucket), "top": bucket}

    @part(*RUN)
    def graphs(self):
        sizes = self.fitted()["sizes"]
        return {"x": sizes, "y": sizes}

    @hint("graphs")
    def about_graph(self):
        return phrase("a graph for {size}", size=show(self.fitted()["sizes"], "count"))

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, LARGEST + 1.5), (0, LARGEST + 14), height=430, x_title="sequences that run",
                     y_title="sequences that are computed")
        box = {"left": "left", "right": "right", "bottom": "bottom", "top": "top"}
        p.quad(**box, source=sources["steps"], fill_color=color["hbm"], fill_alpha=0.35, line_color=None)
        p.quad(**box, source=sources["stairs"], **fig.IDLE | {"line_color": None, "fill_alpha": 0.2})
        p.segment(0, 0, LARGEST, LARGEST, line_color=color["ink-faint"], line_dash=[2, 4])
        p.segment("left", "top", "right", "top", source=sources["stairs"], line_color=color["ink"], line_width=1.5)
        p.scatter("x", "y", source=sources["graphs"], size=7, fill_color=color["accent"], line_color=color["panel"])
        fig.key(p, {"a captured size": "accent", "computed for nothing": "idle", "how often, to no scale": "hbm"}, wide=LARGEST + 9,
                narrow=(LARGEST + 10, LARGEST + 3), hatches=[" ", "left_diagonal_line", " "])
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("Rows computed for nothing", help="Over the rows that were wanted")
    def waste(self):
        return show(self.wasted(), "percent"), self.wasted() > 0.25

    @readout("The best list of as many")
    def ideal(self):
        return show(self.least(), "percent")

    @readout("Time lost by padding", help="Below some hundred rows a step is the reading of the weights")
    def time(self):
        return show(self.time_lost(), "percent", 2)

    @readout("Graphs kept")
    def number(self):
        return show(self.cost().graphs, "count", 4)

    @readout("Their memory")
    def memory(self):
        words = f"{show(self.cost().memory_bytes, 'bytes')}, {show(self.crowding(), 'percent')} of the room"
        return words, self.crowding() > CROWDED

    @readout("To capture them")
    def start(self):
        return show(self.cost().capture_s, "seconds"), self.cost().capture_s > SLOW_S

    @regime(target=True)
    def too_many(self):
        cost = self.cost()
        return (self.crowding() > CROWDED) | (cost.capture_s > SLOW_S), (
            f"You found too many shapes: {show(cost.graphs, 'count', 4)} graphs take "
            f"{show(cost.memory_bytes, 'bytes')} and "
            f"{show(cost.capture_s, 'seconds')} of every start. First response: one dimension of buckets, the other "
            "read from "
            "memory by the kernel, or left out of the graph (piecewise).")

    @regime()
    def wasteful(self):
        return self.wasted() > 0.25, (
            f"Padding adds {show(self.wasted(), 'percent')} to the rows that are computed, and "
            f"{show(self.time_lost(), 'percent', 2)} to the time. "
            "First response: look at the second figure before you add graphs.")

    def summary(self):
        each = choose(self.lengths > 1, f", each at {show(self.lengths, 'count')} lengths,", "")
        return (f"With {show(self.load, 'count')} sequences running on average, "
                f"{show(self.fitted()['graphs'], 'count')} captured sizes"
                f"{each} compute {show(self.wasted(), 'percent')} more rows than "
                f"wanted, which makes the steps {show(self.time_lost(), 'percent', 2)} longer, and take "
                f"{show(self.cost().memory_bytes, 'bytes')} and {show(self.cost().capture_s, 'seconds')} to capture.")
