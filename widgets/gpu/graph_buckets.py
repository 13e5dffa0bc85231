"""Which batch sizes to capture: the waste by padding, against the number of graphs and their cost."""

import numpy as np

from engine import catalog
from engine.serving import shape_buckets
from engine.serving.shape_buckets import BEST, EVERY, LARGEST, POWERS, SHIPPED
from engine.step.layout import machine
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lanes
from widgets.kit.text import choose, counted, phrase, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

PLANS = {
    "powers": ("powers of two", POWERS),
    "shipped": ("1, 2, 4, then every 8th (vLLM)", SHIPPED),
    "best": ("the best list of so many", BEST),
    "every": ("every size", EVERY),
}
MODELS = [catalog.model(key) for key in ("llama3.2-1b", "llama3-8b")]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")]
SIZES = np.arange(LARGEST + 1.0)
RUN = ("load", "spread", "seed", "plan", "kept")
FLOOR, TICK = -0.09, (-0.07, -0.02)  # in views of rows: the frame's, and a captured size's, below the bars
VIEWS_ROWS = [m * 10.0**e for e in range(2, 7) for m in (1, 1.5, 2, 3, 4, 6, 8)]
VIEWS_SEQUENCES = [10.0, 20.0, 40.0, 60.0, 80.0, 100.0, LARGEST + 1.5]
CROWDED, SLOW_S = 0.1, 600.0  # of the room for caches; of a start


class GraphBuckets(Widget):
    question = "How many batch sizes are worth a graph of their own?"
    in_page = True
    load = Number(
        "Sequences running",
        24,
        2,
        110,
        stops=60,
        whole=True,
        marks=(8, 16, 48, 96),
        help="On average; the server runs at most 128",
    )
    plan = Choice("Captured sizes", PLANS, "shipped")
    lengths = Number(
        "Lengths captured",
        1,
        1,
        512,
        stops=48,
        whole=True,
        marks=(2, 8, 64),
        help="1 if kernels read the lengths from memory; more if a length is part of the shape",
    )
    kept = Number("Graphs of the best list", 8, 1, 48, stops=range(1, 49), log=False, whole=True, more=True)
    spread = Number(
        "Spread of the answers",
        0.8,
        0.0,
        1.6,
        stops=33,
        log=False,
        more=True,
        help="Standard deviation of the logarithm of the answers' length; 200 tokens on average",
    )
    graph_bytes = Number(
        "Memory of a graph",
        6.4e6,
        1e5,
        100e6,
        family="bytes",
        stops=61,
        marks=(26e6,),
        more=True,
        help="Measured: 6 to 28 MB in vLLM, in one pool",
    )
    graph_s = Number(
        "Time to capture one",
        0.4,
        0.02,
        4.0,
        family="seconds",
        stops=49,
        marks=(0.05,),
        more=True,
        help="Measured: 0.05 to 0.4 s in vLLM",
    )
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
    break_it = (
        "Let shapes multiply: make the graphs take a tenth of the memory that caches live on, or ten minutes "
        "of every start."
    )
    assumptions = (
        f"The server runs at most {LARGEST} sequences, which arrive at random (Poisson), and "
        f"{shape_buckets.STEPS:,} of its decode steps are counted after a warm-up. "
        "Each step runs the smallest captured batch that holds "
        "it. Memory and time of a graph are per graph whatever its batch, from vLLM's logs (pull requests "
        "11349 and 23184). Time lost: the cost model's decode step without caches."
    )
    formula = (
        "$$\\text{waste} = \\frac{\\sum_b c_b\\,(\\lceil b \\rceil - b)}{\\sum_b c_b\\, b}, \\quad "
        "\\text{graphs} = |\\text{sizes}| \\times |\\text{lengths}|$$\n\nfor $c_b$ steps with $b$ sequences "
        "and $\\lceil b \\rceil$ the smallest captured size that holds them. The best list of $n$ sizes: "
        "$F_n(j) = \\min_i\\, F_{n-1}(i) + \\sum_{b=i+1}^{j} c_b\\,(j - b)$."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def fitted(self):
        return shape_buckets.fit(self.load, self.spread, self.seed, self.plan, self.kept)

    def wasted(self):
        return self.fitted()["padded"] / self.fitted()["rows"]

    def least(self):
        return self.fitted()["least"] / self.fitted()["rows"]

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
        return self.cost().memory_bytes / self.room()

    def rows(self):
        """The rows computed in all steps that hold so many sequences: those wanted, and with the padding."""
        found = self.fitted()
        return shape_buckets.rows_computed(found["counts"], found["bucket"])

    def most_rows(self):
        return fig.fitting_view(np.max(self.rows()[1]), VIEWS_ROWS, 1.25)

    def most_sequences(self):
        """How many sequences ran at once at most."""
        return np.max(np.where(self.fitted()["counts"] > 0, SIZES, 0.0))

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*RUN)
    def steps(self):
        wanted, _ = self.rows()
        left, right = lanes.around(SIZES, 0.42)
        return {
            "batch": SIZES,
            "left": left,
            "right": right,
            "bottom": np.zeros(LARGEST + 1),
            "top": wanted,
            "steps": self.fitted()["counts"],
        }

    @part(*RUN)
    def padding(self):
        wanted, computed = self.rows()
        left, right = (fig.gone_unless(computed > wanted, side) for side in lanes.around(SIZES, 0.42))
        return {
            "batch": SIZES,
            "left": left,
            "right": right,
            "bottom": wanted,
            "top": computed,
            "bucket": self.fitted()["bucket"],
        }

    @hint("steps")
    def about_batch(self):
        found = self.fitted()
        return phrase(
            "{batch} sequences: {count} of the steps, run as {bucket}",
            batch=show(SIZES, "count"),
            count=show(found["counts"], "count"),
            bucket=show(found["bucket"], "count"),
        )

    @hint("padding")
    def about_padding(self):
        wanted, computed = self.rows()
        return phrase(
            "{batch} sequences, run as {bucket}: {rows} rows computed for nothing",
            batch=show(SIZES, "count"),
            bucket=show(self.fitted()["bucket"], "count"),
            rows=show(computed - wanted, "count"),
        )

    @part(*RUN)
    def graphs(self):
        sizes, view = self.fitted()["sizes"], self.most_rows()
        low, high = (at * view + 0.0 * sizes for at in TICK)
        return {"x": sizes, "y": fig.midpoint(low, high), "low": low, "high": high}

    @hint("graphs")
    def about_graph(self):
        return phrase("a graph for {size}", size=show(self.fitted()["sizes"], "count"))

    @part(*RUN, shown=False)
    def title(self):
        """What is drawn, and how many of the captured sizes are."""
        sizes, graphs = self.fitted()["sizes"], self.fitted()["graphs"]
        beyond = graphs - np.sum(np.where(sizes <= self.view_sequences(), 1.0, 0.0))
        of_all = f"{show(beyond, 'count')} of {show(graphs, 'count')}"
        further = f"{of_all} captured sizes are larger than is drawn"
        return {
            "text": f"Rows computed in {shape_buckets.STEPS:,} decode steps"
            f"{choose(beyond > 0, f'; {further}', '')}",
            "narrow": choose(
                beyond > 0,
                f"Rows; {show(beyond, 'count')} of {show(graphs, 'count')} sizes not drawn",
                "Rows computed",
            ),
        }

    def view_sequences(self):
        return fig.fitting_view(self.most_sequences(), VIEWS_SEQUENCES, 1.05)

    def ranges(self):
        return {"x": [0.0, self.view_sequences()], "y": [FLOOR * self.most_rows(), self.most_rows()]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, VIEWS_SEQUENCES[-1]), (FLOOR * 2e4, 2e4), height=400, x_title="sequences that run")
        fig.moving_ticks(p.xaxis[0], "count")
        fig.moving_ticks(p.yaxis[0], "count")
        wanted = {"fill_color": color["compute"], "line_color": None}
        padded = {"fill_color": color["compute"], "fill_alpha": 0.22, "line_color": color["compute"]}
        p.quad(**fig.BOX, source=sources["steps"], **wanted)
        p.quad(**fig.BOX, source=sources["padding"], **padded)
        p.segment(0, 0, LARGEST + 1, 0, line_color=color["axis"])
        p.segment("x", "low", "x", "high", source=sources["graphs"], line_color=color["ink"], line_width=2.5)
        looks = [wanted | {"line_color": color["compute"]}, padded]
        looks.append({"fill_color": color["ink"], "line_color": color["ink"]})
        names = ["rows wanted", "padding, computed for nothing", "a captured size"]
        short = ["wanted", "padding", "captured size"]
        fig.packed_key(p, {"wide": names, "narrow": short}, looks, {"wide": 0.91, "narrow": 0.91}, True)
        left = fig.across(p, "title", 0, 1) | fig.still_height(p)
        for width, title in (("wide", "text"), ("narrow", "narrow")):
            words = {"text": title, "source": sources["title"], "x_offset": 4, "level": "annotation"}
            fig.only(width, p.text(0, 0.975, **words, **fig.BOLD, **left))
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Rows computed for nothing", help="Relative to the rows that were needed")
    def waste(self):
        return show(self.wasted(), "percent"), self.wasted() > 0.25

    @readout(
        "Time lost by padding", help="Below some hundred rows, a step's time is that of reading the weights"
    )
    def time(self):
        return show(self.time_lost(), "percent", 2)

    @readout("Memory of the graphs")
    def memory(self):
        room = f"{show(self.crowding(), 'percent')} of the caches' room"
        words = f"{show(self.cost().memory_bytes, 'bytes')}, {room}"
        return words, self.crowding() > CROWDED

    @regime(target=True)
    def too_many(self):
        cost = self.cost()
        return (self.crowding() > CROWDED) | (cost.capture_s > SLOW_S), (
            f"You found too many shapes: {show(cost.graphs, 'count', 4)} graphs take "
            f"{show(cost.memory_bytes, 'bytes')} and {show(cost.capture_s, 'seconds')} of every start. First "
            "response: one dimension of buckets, the other read from memory by the kernel, or left out of "
            "the graph (piecewise)."
        )

    @regime()
    def wasteful(self):
        return self.wasted() > 0.25, (
            f"Padding adds {show(self.wasted(), 'percent')} to the rows that are computed (the best list of "
            f"as many sizes: {show(self.least(), 'percent')}), and {show(self.time_lost(), 'percent', 2)} to "
            "the time. First response: look at that time before you add graphs."
        )

    def summary(self):
        graphs = self.fitted()["graphs"]
        return (
            f"With about {counted(self.load, 'sequence', 'sequences')} running, padding to "
            f"{counted(graphs, 'captured size', 'captured sizes')} adds {show(self.wasted(), 'percent')} "
            f"of rows and {show(self.time_lost(), 'percent', 2)} of time."
        )


GraphBuckets.serve_as(__name__)
