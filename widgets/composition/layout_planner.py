"""Every layout of a training job compared: the fastest one, what it costs, and why the next ones lose."""

import numpy as np

from engine import catalog
from engine.calibration import bands
from engine.mechanism import cost
from engine.step import cases, cloud, export, own, page_search, planner, search
from engine.step.constraints import ANY, FRAMEWORKS, NAMED, RANGED, Limits
from widgets.kit import text
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, degrees
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import panels, planned
from widgets.kit.drawing.cluster import MOST_BOXES, mesh_row
from widgets.kit.drawing.panels import AWAY, Panel, Place
from widgets.kit.guide import Light, Step
from widgets.kit.measured import Dots, Seen, measured, of_files
from widgets.kit.own_job import CLUSTER_FIELDS, MODEL_FIELDS, PRECISIONS, OwnJob
from widgets.kit.text import choose, phrase, select, show, usable
from widgets.kit.widget import document, hint, once, part, readout, regime

GPU_STOPS = [1, 2, 4, 8, *(m * 2**k for k in range(1, 13) for m in (8, 10, 12))]
DEEPSEEK_TOKENS = 15360 * 4096
BATCH_STOPS = sorted([DEEPSEEK_TOKENS, *(m * 2**k for k in range(12, 27) for m in (1, 1.25, 1.5))])
SEQ_STOPS = [2**k for k in range(10, 18)]
LIMITS = "your framework and limits"  # the fold of these controls
RANGES = [f"{axis}_{end}" for axis in RANGED for end in ("from", "to")]
WITHIN = ("framework", *RANGES, "zero_stage", "most_chunks", "recomputation")
JOB = (
    *("model", "gpus", "gpu", "batch_tokens", "seq", "recipe", "precision"),
    *WITHIN,
    *MODEL_FIELDS,
    *CLUSTER_FIELDS,
)
MEASURED = of_files("layout_planner")
TOP, FRONT = page_search.TOP, cloud.FRONT
DRAWN = TOP + FRONT  # layouts with a dot
RANKS = [str(place + 1) for place in range(TOP)]
CHOICES = {
    rank: (f"{rank}, the fastest" if rank == "1" else f"{rank} of the next best", float(i))
    for i, rank in enumerate(RANKS)
} | {
    letter: (f"{letter} of the front, leanest first", float(TOP + i))
    for i, letter in enumerate("abcdefghijklmnop"[:FRONT])
}
TERMS = [*planned.TERMS, "memory", "no difference"]
SPEEDS = ["arithmetic", "HBM bandwidth", "link bandwidth", "network bandwidth"]

# The picture's parts, by their sides in pixels: the cloud, the chosen layout, and the rows of the next best
WIDE, NARROW = 640, 1120
PARTS = {"wide": (278, 606, 258, 630, 0, 226), "narrow": (762, 1086, 330, 702, 0, 306)}
UP = {
    width: [(low / height, high / height) for low, high in zip(sides[::2], sides[1::2])]
    for (width, sides), height in zip(PARTS.items(), (WIDE, NARROW))
}
CLOUD, CHOSEN, MESH, NEXT, LOSSES, EDGE = (
    Panel(name, Place(wide, UP["wide"][part]), Place(narrow, UP["narrow"][part]))
    for name, part, wide, narrow in (
        ("cloud", 0, (0.075, 0.585), (0.155, 0.97)),
        ("chosen", 1, (0.645, 0.995), (0.0, 0.985)),
        ("mesh", 1, (0.745, 0.995), (0.24, 0.985)),
        ("next", 2, (0.0, 1.0), (0.0, 1.0)),
        ("losses", 2, (0.36, 0.76), (0.0, 0.74)),
        ("edge", 0, (0.075, 0.585), (0.155, 0.97)),
    )
)
MESH_Y, MEMORY_Y, STEP_Y, HALF = np.array([280.0, 242.0, 204.0, 166.0]), 106.0, 38.0, 9.0
NEXT_Y, NEXT_TITLE_Y, MEASURED_Y, NEXT_HALF = np.array([4.3, 3.4, 2.5, 1.6]), 5.5, 0.5, 0.2
SIDES = {side: side for side in ("left", "right", "bottom", "top")}
MOMENT = 1e-12  # seconds: less than any step
BELOW = 0.72  # of the axis of time, below the fastest layout: room for names
X_TICKS = panels.ticks(1e8, 1e16, (1, 3))
Y_TICKS = np.array([*panels.ticks(1e-4, 10, (1, 1.5, 2, 3, 4, 5, 7)), *panels.CLOCK])


def _ends(label: str, *sizes: int) -> tuple[Choice, Choice]:
    """Two controls that limit an axis, or leave it to the search."""
    least, most = (
        Choice(f"{label}, {end}", {"any": ("any", 0.0)} | degrees(*sizes), "any", more=LIMITS)
        for end in ("at least", "at most")
    )
    return least, most


class LayoutPlanner(OwnJob):
    question = "Which layout trains your model fastest, and why do the others lose?"
    model = Choice("Model", own.model_options(), "llama3-70b")
    gpus = Number("GPUs", 512, 1, 49152, stops=GPU_STOPS, whole=True)
    gpu = Choice("GPU", own.gpu_options(), "h100-sxm")
    batch_tokens = Number(
        "Tokens of a step", 2**23, 2**12, 1.5 * 2**26, stops=BATCH_STOPS, family="tokens", more=True
    )
    seq = Number("Sequence", 8192, 1024, 131072, stops=SEQ_STOPS, whole=True, family="tokens", more=True)
    tokens = Number(
        "Tokens of the run", 15e12, 1e9, 100e12, family="tokens", more=True, marks=(1e12, 2e12, 14.8e12)
    )
    recipe = Choice("Optimizer recipe", list(catalog.all_recipes().values()), "bf16-adam", more=True)
    precision = Choice("Matrix products in", PRECISIONS, "bf16", more=True)
    price = Number(
        "Price of a GPU-hour",
        catalog.price("h100-sxm").dollars_per_hour,
        0.2,
        20,
        family="dollars",
        more=True,
        marks=(catalog.price("h800").dollars_per_hour,),
    )
    framework = Choice(
        "Framework",
        {"any": ("one of these", float(NAMED.index(ANY)))}
        | {key: (each.name, float(NAMED.index(key))) for key, each in FRAMEWORKS.items()}
        | {"none": ("none: all that is modelled", 0.0)},
        "any",
        more=LIMITS,
    )
    tp_from, tp_to = _ends("Tensor ranks", 1, 2, 4, 8, 16, 32, 64)
    pp_from, pp_to = _ends("Pipeline stages", 1, 2, 4, 8, 16, 32, 64)
    cp_from, cp_to = _ends("Context ranks", 1, 2, 4, 8, 16, 32)
    ep_from, ep_to = _ends("Expert ranks", 1, 2, 4, 8, 16, 32, 64, 128)
    zero_stage = Choice(
        "ZeRO stage",
        {"any": ("any", 0.0)} | {str(stage): (str(stage), stage + 1.0) for stage in search.ZERO_STAGES},
        "any",
        more=LIMITS,
    )
    most_chunks = Choice(
        "Chunks of layers on a stage",
        {"any": ("any", 0.0)}
        | {str(most): (f"at most {most}" if most > 1 else "1", float(most)) for most in (1, 2, 4, 8)},
        "any",
        more=LIMITS,
    )
    recomputation = Choice(
        "Recomputation",
        {"any": ("any", 0.0), "none": ("none", 1.0), "full": ("every layer", 2.0)},
        "any",
        more=LIMITS,
    )
    chosen = Choice("Layout shown", CHOICES, "1", more=True)
    dots = Dots()
    tap = {"marks": "chosen"}

    presets = {
        "8B on one node": {"model": "llama3.1-8b", "gpus": 8, "batch_tokens": 2**20, "tokens": 1e12},
        "70B on 512": {},
        "405B on 16,384": {"model": "llama3.1-405b", "gpus": 16384, "batch_tokens": 2**24},
        "DeepSeek-V3 on 2,048 H800": {
            "model": "deepseek-v3",
            "gpus": 2048,
            "gpu": "h800",
            "batch_tokens": DEEPSEEK_TOKENS,
            "seq": 4096,
            "tokens": 14.8e12,
            "price": catalog.price("h800").dollars_per_hour,
        },
        "70B on 64: most do not fit": {"gpus": 64},
        "A 33B of my own": {
            "model": "own",
            "gpus": 64,
            "layers": 64,
            "hidden": 6144,
            "heads": 48,
            "batch_tokens": 2**22,
            "ffn": 24576,
            "window": 4096,
            "windowed_layers": 32,
            "tokens": 2e12,
        },
        "A MoE of my own": {
            "model": "own",
            "gpu": "own",
            "gpus": 256,
            "layers": 48,
            "hidden": 7168,
            "heads": 64,
            "kv_heads": 64,
            "experts": 64,
            "top_k": 8,
            "expert_ffn": 2048,
            "shared_experts": 1,
            "shared_ffn": 2048,
            "kv_lora": 512,
            "first_dense_layers": 2,
            "q_lora": 1536,
            "rope_dim": 64,
            "nope_dim": 128,
            "v_dim": 128,
            "window": 4096,
            "windowed_layers": 24,
        },
    }
    break_it = "Take GPUs away from the 70B until no layout is left that fits."
    lights = {
        "cuts": Light(
            "how the layout cuts the work",
            ("mesh", "zoom", "stages", "replicas", "pieces", "shards", "title"),
        ),
        "memory": Light("what fills the fullest GPU", ("memory", "over")),
        "times": Light(
            "where the time of the best layouts goes",
            ("times", "length", "losses", "runners_up", "zero", "next_title"),
        ),
        "layouts": Light("all layouts, by memory and time", ("cloud", "marks", "front", "winner", "hbm")),
    }
    tour = (
        Step(
            "Of all ways to cut {model} for {gpus} GPUs {legal} can be built. The engine estimates every "
            "one, and each is somewhere in this cloud. The fastest of those that fit is {best}.",
            {},
            "layouts",
        ),
        Step(
            "Its step takes {step}, nearly all of it arithmetic. Below are the next best, and beside each "
            "of them how much slower it is and why.",
            {},
            "times",
        ),
        Step(
            "With {gpus} GPUs each has to hold more, and the cloud moves past the HBM: {fitting} of {legal} "
            "layouts still fit, and the winner fills {fullest} of the fullest GPU.",
            {"gpus": 64},
            "layouts",
        ),
        Step(
            "{gpus} GPUs finish the same batch in {step}. But less of it is arithmetic, and the MFU falls "
            "to {mfu}.",
            {"gpus": 12288},
            "times",
        ),
        Step(
            "On {gpus} GPUs nothing fits. Even the leanest layout needs {fullest} on its fullest GPU.",
            {"gpus": 8},
            "memory",
        ),
    )
    assumptions = (
        "Every legal tensor × pipeline × context × expert × data split, with ZeRO 0 to 3, micro-batches of "
        "1 to 64, full "
        "recomputation or none and eight schedules, each costed by the engine's one model of a step; of them "
        "those that one of the frameworks can run, unless you choose otherwise. Tensor "
        "ranks stand "
        "innermost, then context, data and pipeline. Failures, data loading and stragglers are left out. An "
        "own GPU "
        "reaches the shares of its peak and bandwidth that the H100 SXM reaches."
    )
    formula = (
        "$$\\tau = \\tau_\\text{compute} + \\tau_\\text{tensor} + \\tau_\\text{bubble} + "
        "\\tau_\\text{context} + \\tau_\\text{expert} + \\tau_\\text{optimizer} + "
        "\\tau_\\text{messages} + "
        "\\tau_\\text{exposed data}$$\n\nThe search takes the smallest $\\tau$ among the layouts whose "
        "fullest stage "
        "fits the HBM. "
        "MFU counts model FLOPs with causal attention; HFU adds what is computed again."
    )

    # -- the engine ------------------------------------------------------------------------------------------
    @once
    def case(self):
        machines = self.cluster()
        return cases.Case(
            self.job_model(),
            machines.chip,
            machines.wires,
            machines.hbm_bytes,
            self.recipe,
            self.gpus,
            cases.sequences(self.batch_tokens, self.seq),
            self.seq,
            Limits(*(getattr(self, name) for name in WITHIN)),
        )

    @once
    def outcome(self):
        return planner.outcome(self.case(), self.cluster().peak_flops_per_s)

    def layouts(self):
        return self.outcome().layouts

    def run(self):
        return self.tokens / self.of_chosen(self.outcome().tokens_per_s)

    def dollars(self):
        return cost.run_dollars(cost.gpu_hours(self.gpus, self.run()), self.price)

    def legal(self):
        return show(self.outcome().found.legal, "count")

    def fitting(self):
        return show(self.outcome().found.fitting, "count")

    def is_limited(self):
        """Whether a framework or a limit is chosen."""
        named = (self.framework > 0) & (self.framework < float(NAMED.index(ANY)))
        return named | (sum(getattr(self, name) for name in WITHIN[1:]) > 0)

    def none_legal(self):
        return self.outcome().found.legal < 1

    def none_fits(self):
        return self.outcome().found.fitting < 1

    # -- what is drawn: the cloud ----------------------------------------------------------------------------
    @once
    def places(self):
        return cloud.shown(self.outcome().cloud.places.count)

    def unit_s(self):
        """The second of the cloud's scale: the fastest step of all, whether it fits or not."""
        return np.where(self.none_legal(), 1.0, self.outcome().found.free_s)

    def sides(self, column, row):
        """The sides of places on the cloud's scales: in HBMs and in those units."""
        at, unit = cloud.sides(column, row), self.outcome().cloud.ideal_s / self.unit_s()
        return at._replace(bottom=at.bottom * unit, top=at.top * unit)

    @once
    def frame(self):
        """The ends of the cloud's scales; always with the HBM in them, and room for its name."""
        seen = self.places()
        whole = self.sides(np.stack([seen["first"], seen["last"]]), np.stack([seen["low"], seen["high"]]))
        none = self.none_legal()
        return (
            np.where(none, 0.1, np.minimum(0.5, whole.left[0])),
            np.where(none, 10.0, np.maximum(3.5, whole.right[1])),
            np.where(none, 4.0, np.maximum(whole.bottom[1], 1.8)),
        )

    def ranges(self):
        left, right, top = self.frame()
        return {"cloud_x": [left, right], "cloud_y": [BELOW, top]}

    @part(*JOB)
    def cloud(self):
        seen = self.places()
        at, ink = self.sides(seen["column"], seen["row"]), panels.density(seen["count"])
        fits = at.right < 1.0 + 0.5 * (1.0 - at.left)
        return at._asdict() | {
            "layouts": seen["count"],
            "fits": np.where(fits, ink, 0.0),
            "too_large": np.where(fits, 0.0, ink),
        }

    @hint("cloud")
    def cloud_said(self):
        seen, found = self.places(), self.outcome()
        best = page_search.layouts_at(found.cloud, seen["place"])
        at = self.sides(seen["column"], seen["row"])
        return phrase(
            "{layouts} layouts from {left} and {bottom} on, to {right} and {top}; the fastest: {named}",
            layouts=show(seen["count"], "count"),
            left=show(at.left * self.cluster().hbm_bytes, "bytes"),
            right=show(at.right * self.cluster().hbm_bytes, "bytes"),
            bottom=show(at.bottom * self.unit_s(), "seconds"),
            top=show(at.top * self.unit_s(), "seconds"),
            named=self.named(best),
        )

    def named(self, a):
        """Layouts in words, row by row."""
        counts = {
            name: show(getattr(a, name), "count")
            for name in ("tp", "pp", "cp", "dp", "ep", "zero", "micro_batch")
        }
        return phrase(
            "TP {tp} · PP {pp} · CP {cp} · DP {dp} · EP {ep} · ZeRO {zero} · micro-batch {micro_batch} · "
            "{schedule} · {recompute}",
            schedule=select(a.schedule, cases.SCHEDULE_NAMES),
            recompute=select(a.recompute, planned.RECOMPUTED),
            **counts,
        )

    def in_cloud(self):
        """Where the layouts of the outcome are, and which of them are in the picture."""
        found, (left, right, top) = self.outcome(), self.frame()
        x, y = found.total_bytes[:DRAWN] / self.cluster().hbm_bytes, found.step_s[:DRAWN] / self.unit_s()
        return x, y, (x >= left) & (x <= right) & (y <= top)

    @part(*JOB)
    def marks(self):
        """The best of the best splits, then the front from its leanest layout."""
        found, (x, y, seen) = self.outcome(), self.in_cloud()
        return {
            "x": np.where(seen, x, AWAY),
            "y": np.where(seen, y, 1.0),
            "step_s": np.where(seen, found.step_s[:DRAWN], 0.0),
            "total_bytes": np.where(seen, found.total_bytes[:DRAWN], 0.0),
        }

    @hint("marks")
    def marks_said(self):
        found, (_, _, seen) = self.outcome(), self.in_cloud()
        known = cases.Layouts(*(np.where(seen, column[:DRAWN], 0.0) for column in found.layouts))
        return phrase(
            "{place}: {named}\n{step}, {memory} on the fullest GPU",
            place=select(np.arange(len(CHOICES)), [*RANKS, *["The front"] * FRONT]),
            named=self.named(known),
            step=show(np.where(seen, found.step_s[:DRAWN], 1.0), "seconds"),
            memory=show(np.where(seen, found.total_bytes[:DRAWN], 1.0), "bytes"),
        )

    @part(*JOB, shown=False)
    def front(self):
        """The front as a line; what lies above the picture is drawn at its top."""
        x, y, _ = self.in_cloud()
        return {"x": x[TOP:], "y": np.minimum(y[TOP:], self.frame()[2])}

    @part(*JOB, shown=False)
    def winner(self):
        """The winner's name and numbers, below its dot."""
        found, (left, right, _), (x, y, seen) = self.outcome(), self.frame(), self.in_cloud()
        there = seen[0] & ~self.none_fits()
        numbers = f"{self.said(found.step_s[0], 'seconds')}, {self.said(found.total_bytes[0], 'bytes')}"
        return {
            "x": np.where(there, x[0], AWAY),
            "y": np.where(there, y[0], 1.0),
            "name": "1, the fastest that fits",
            "numbers": numbers,
            "side": panels.side(np.where(there, x[0], 1.0), left, right),
        }

    @part(*JOB, shown=False)
    def hbm(self):
        """The HBM's line with its name below the axis, whose title is at the end that is farther away."""
        left, right, top = self.frame()
        return {
            "x": 1.0,
            "top": top,
            "label": f"HBM {usable(self.cluster().hbm_bytes)}",
            "title": "Memory needed",
            "short_title": "Memory",
            "title_x": np.where(panels.is_before(1.0, left, right, 0.5), 1.0, 0.0),
            "title_side": choose(panels.is_before(1.0, left, right, 0.5), "right", "left"),
        }

    @part(*JOB, shown=False)
    def x_ticks(self):
        left, right, _ = self.frame()
        x = X_TICKS / self.cluster().hbm_bytes
        seen = (x > left) & panels.is_before(x, left, right, 0.94)  # a label at the very end would be cut
        return {
            "x": np.where(seen, x, AWAY),
            "label": panels.only(seen, panels.labels(X_TICKS, "bytes")),
            "short": panels.only(seen, panels.labels(X_TICKS, "bytes", 2)),
        }

    @part(*JOB, shown=False)
    def y_ticks(self):
        top = self.frame()[2]
        y = Y_TICKS / self.unit_s()
        seen = (y > BELOW) & (y < top)
        return {"y": np.where(seen, y, AWAY), "label": panels.only(seen, panels.labels(Y_TICKS, "seconds"))}

    @part(*JOB, shown=False)
    def time_title(self):
        above = self.places()["above"]
        more = f" ({show(np.maximum(above, 0.0), 'count')} slower ones above)"
        return {"label": f"Time of a step{choose(above > 0, more, '')}"}

    @measured("layout_planner", *JOB)
    def published(self, of):
        """Measured layouts of the same job, above the memory that the engine gives them."""
        unit, hbm = self.unit_s(), self.cluster().hbm_bytes
        x = np.array([point.total_bytes for point in of.all]) / hbm
        return Seen(self.was_measured(), x, of.measured / unit, x, of.ours / unit)

    def was_measured(self):
        same = MEASURED.of(
            model=self.model,
            gpu=self.gpu,
            gpus=self.gpus,
            batch_tokens=self.batch_tokens,
            seq=self.seq,
            recipe=self.recipe,
            narrow=self.precision.narrow,
        )
        return same & ~self.none_legal()

    @part(*JOB, "dots", shown=False)
    def measured_row(self):
        """The name of the nearest measured layout."""
        fits = np.where(self.was_measured() & self.dots, 1.0, 0.0)
        others, nearest = np.sum(fits) - 1, np.argmax(fits)
        more = choose(others > 0, f"; {show(np.maximum(others, 0.0), 'count')} more", "")
        named = [f"○ Measured: {point.said(point.measured)}, {point.what}" for point in MEASURED.all]
        short = [f"○ Measured: {point.said(point.measured)}" for point in MEASURED.all]
        return {
            "text": choose(others >= 0, f"{select(nearest, named)}{more}", ""),
            "short": choose(others >= 0, f"{select(nearest, short)}{more}", ""),
        }

    # -- what is drawn: the chosen layout --------------------------------------------------------------------
    def place(self):
        """The row of the chosen layout; that of the winner where there is no such layout."""
        there = np.isfinite(lookup(self.outcome().step_s, self.chosen))
        return np.where(there, self.chosen, 0.0)

    def of_chosen(self, column):
        return lookup(column, self.place())

    @once
    def degrees(self):
        """The chosen layout's; ones where none is legal."""
        return cases.Layouts(
            *(
                np.where(self.none_legal(), least, self.of_chosen(column))
                for column, least in zip(self.outcome().layouts, (1.0,) * 6 + (0.0, 1.0, 0.0, 0.0, 1.0))
            )
        )

    def sizes(self):
        a = self.degrees()
        return [a.pp, a.dp, a.cp, a.tp]

    @once
    def ways(self):
        a = cases.Layouts(*(np.stack([axis]) for axis in self.degrees()))
        return cases.crosses(self.case(), a)

    @part(*JOB, "chosen", shown=False)
    def stages(self):
        return mesh_row(self.sizes()[0], self.ways()[0])

    @part(*JOB, "chosen", shown=False)
    def replicas(self):
        return mesh_row(self.sizes()[1], self.ways()[1])

    @part(*JOB, "chosen", shown=False)
    def pieces(self):
        return mesh_row(self.sizes()[2], self.ways()[2])

    @part(*JOB, "chosen", shown=False)
    def shards(self):
        return mesh_row(self.sizes()[3], self.ways()[3])

    @part(*JOB, "chosen", shown=False)
    def zoom(self):
        return planned.zoom(self.sizes(), MESH_Y, HALF)

    @part(*JOB, "chosen")
    def mesh(self):
        wires = np.stack(self.ways())
        counts = [show(size, "count") for size in self.sizes()]
        return {
            "left": np.zeros(4),
            "right": np.ones(4),
            "bottom": MESH_Y - HALF,
            "top": MESH_Y + HALF,
            "y": MESH_Y,
            "axis": [f"{axis} {count}" for axis, count in zip(planned.AXES, counts)],
            "wire": select(wires, planned.AT["short"]),
        }

    @hint("mesh")
    def mesh_said(self):
        names = [
            "Pipeline {}: ",
            "in each stage data {}: ",
            "in each replica context {}: ",
            "for each of its pieces tensor {}: ",
        ]
        said = []
        for name, size, way in zip(names, self.sizes(), self.ways()):
            count = show(size, "count")
            cut = choose(size > MOST_BOXES, f", {MOST_BOXES} of {count} drawn", "")
            said.append(f"{name.format(count)}{select(way, planned.AT['wires'])}{cut}")
        return said

    @part(*JOB, "chosen", shown=False)
    def title(self):
        a, none = self.degrees(), self.none_legal()
        counts = {
            name: show(getattr(a, name), "count")
            for name in ("tp", "pp", "cp", "dp", "ep", "zero", "micro_batch")
        }
        fastest = choose(self.none_fits(), "1, the leanest; none fits", "1, the fastest that fits")
        place, schedule = self.place(), select(a.schedule, cases.SCHEDULE_NAMES)
        kept = choose(
            place < TOP, f"{select(place, RANKS + RANKS[:1] * FRONT)}, one of the next best", "On the front"
        )
        return {
            "y": np.array([362.0, 343.0, 324.0, 306.0]),
            "text": [
                choose(none, "No layout is legal", choose(place < 1, fastest, kept)),
                choose(
                    none, "", f"TP {counts['tp']} × PP {counts['pp']} × CP {counts['cp']} × DP {counts['dp']}"
                ),
                choose(
                    none, "", f"EP {counts['ep']}, ZeRO {counts['zero']}, micro-batch {counts['micro_batch']}"
                ),
                choose(none, "", f"{schedule}, {select(a.recompute, planned.RECOMPUTED)}"),
            ],
        }

    @once
    def sizes_bytes(self):
        """What the fullest GPU of the chosen layout holds, by part."""
        parts = self.outcome().parts_bytes
        return np.where(self.none_legal(), 0.0, np.stack([self.of_chosen(parts[:, i]) for i in range(5)]))

    @part(*JOB, "chosen")
    def memory(self):
        size, hbm = self.sizes_bytes(), self.cluster().hbm_bytes
        return planned.pieces(size / hbm) | {"bytes": size, "part": planned.PARTS}

    @hint("memory")
    def memory_said(self):
        return phrase(
            "{part}: {bytes}",
            part=select(np.arange(5), planned.PARTS),
            bytes=show(self.sizes_bytes(), "bytes"),
        )

    @part(*JOB, "chosen")
    def over(self):
        """Where the HBM ends in the memory bar, and what lies beyond."""
        size, hbm = self.sizes_bytes(), self.cluster().hbm_bytes
        total = np.sum(size)
        limit = 1.0 / np.maximum(total / hbm, 1.0)
        return {
            "limit": limit,
            "left": limit,
            "right": np.where(total > hbm, 1.0, limit),
            "red": np.where(total > hbm, 1.0, 0.0),
            "label": f"Fullest GPU: {self.said(total, 'bytes')} of {show(hbm, 'bytes')}",
            "note": choose(self.none_legal(), "", planned.largest(size, planned.PARTS, "bytes")),
        }

    @once
    def seconds(self):
        """What the chosen layout's step is spent on, by term."""
        times = self.outcome().times_s
        found = np.stack([self.of_chosen(times[:, i]) for i in range(len(planned.TERMS))])
        return np.where(self.none_legal(), 0.0, found)

    @part(*JOB, "chosen")
    def times(self):
        seconds = self.seconds()
        a = cases.Layouts(*(np.stack([axis]) for axis in self.degrees()))
        kinds = planned.resources(cases.beyond_the_node(self.case(), a)[0])
        return planned.pieces(seconds / np.maximum(np.sum(seconds), MOMENT), 1.0) | {
            "seconds": seconds,
            "term": planned.TERMS,
            "resource": select(kinds, planned.RESOURCES),
        }

    @hint("times")
    def times_said(self):
        return phrase(
            "{term}: {seconds} of the step",
            term=select(np.arange(len(planned.TERMS)), planned.TERMS),
            seconds=show(self.seconds(), "seconds"),
        )

    @part(*JOB, "chosen", shown=False)
    def length(self):
        step_s = np.sum(self.seconds())
        share = self.seconds() / np.maximum(step_s, MOMENT)
        return {
            "label": f"One step: {self.said(step_s, 'seconds')}",
            "note": choose(self.none_legal(), "", planned.largest(share, planned.TERMS, "percent")),
        }

    @part(*JOB, "chosen", shown=False)
    def chosen_mark(self):
        x, y, seen = self.in_cloud()
        there = self.of_chosen(np.where(seen, 1.0, 0.0)) > 0
        return {"x": np.where(there, self.of_chosen(x), AWAY), "y": np.where(there, self.of_chosen(y), 1.0)}

    # -- what is drawn: the next best ------------------------------------------------------------------------
    @once
    def slower(self):
        """Seconds that each of the next best loses (or gains, below zero) to the winner, by term."""
        found = self.outcome()
        more_s = found.times_s[1:TOP] - found.times_s[:1]
        there = np.isfinite(found.step_s[1:TOP])[:, None] & ~self.none_fits()
        return np.where(there, more_s, 0.0)

    @part(*JOB)
    def losses(self):
        left, right, _ = panels.diverging(self.slower() / self.winner_s())
        rows = np.repeat(NEXT_Y, len(planned.TERMS))
        a = cases.Layouts(*(column[1:TOP] for column in self.outcome().layouts))
        kinds = planned.resources(cases.beyond_the_node(self.case(), a))
        return {
            "left": fig.gone_unless(np.ravel(right > left), np.ravel(left)),
            "right": fig.gone_unless(np.ravel(right > left), np.ravel(right)),
            "bottom": rows - NEXT_HALF,
            "top": rows + NEXT_HALF,
            "more_s": np.ravel(self.slower()),
            "term": planned.TERMS * (TOP - 1),
            "resource": select(np.ravel(kinds), planned.RESOURCES),
        }

    @hint("losses")
    def losses_said(self):
        more_s = np.ravel(self.slower())
        return phrase(
            "{rank}: {seconds} {way} of {term} than the winner",
            rank=select(np.repeat(np.arange(1.0, TOP), len(planned.TERMS)), RANKS),
            seconds=show(np.abs(more_s), "seconds"),
            way=select(np.where(more_s < 0, 1.0, 0.0), ["more", "less"]),
            term=select(np.tile(np.arange(len(planned.TERMS)), TOP - 1), planned.TERMS),
        )

    @part(*JOB)
    def runners_up(self):
        """The next best; where nothing fits they are ranked by what they need."""
        found = self.outcome()
        a = cases.Layouts(*(column[1:TOP] for column in found.layouts))
        ends = panels.diverging(self.slower() / self.winner_s())[1]
        rows = [self.runner_up(place) for place in range(1, TOP)]
        return {
            "x": np.max(ends, axis=-1) + 0.0 * found.step_s[0],
            "y": NEXT_Y,
            "step_s": found.step_s[1:TOP],
            "total_bytes": found.total_bytes[1:TOP],
            "slower_by": found.slower_by[1:TOP],
            "layout": self.named(a),
            "name": [name for name, _, _ in rows],
            "label": [label for _, label, _ in rows],
            "short": [short for _, _, short in rows],
        }

    def runner_up(self, place):
        """The name of a runner-up, and what it loses or needs, in many words and in few; empty where there is
        none."""
        found = self.outcome()
        there = np.isfinite(found.step_s[place])

        def known(column):
            return np.where(there, column[place], 0.0)

        axes = ("tp", "pp", "cp", "dp", "ep", "zero")
        tp, pp, cp, dp, ep, zero = (show(known(getattr(found.layouts, axis)), "count") for axis in axes)
        slower, need = show(known(found.slower_by), "percent"), show(known(found.total_bytes), "bytes")
        lost = select(known(found.lost_by), TERMS)
        none = self.none_fits()
        return (
            choose(there, f"{RANKS[place]}   TP{tp} PP{pp} CP{cp} DP{dp} EP{ep} Z{zero}", ""),
            choose(there, choose(none, f"needs {need}", f"+{slower}: {lost}"), ""),
            choose(there, choose(none, need, f"+{slower}"), ""),
        )

    def winner_s(self):
        return np.where(self.none_legal(), 1.0, self.outcome().step_s[0])

    @part(*JOB, shown=False)
    def zero(self):
        """The winner's step in each row."""
        at = panels.diverging(self.slower() / self.winner_s())[2]
        there = np.isfinite(self.outcome().step_s[1:TOP]) & ~self.none_fits()
        return {
            "x": np.where(there, at, fig.FAR_LEFT),
            "low": NEXT_Y - 1.5 * NEXT_HALF,
            "high": NEXT_Y + 1.5 * NEXT_HALF,
        }

    @part(*JOB, shown=False)
    def next_title(self):
        best = self.said(self.outcome().step_s[0], "seconds")
        apart = show(bands.tie() - 1.0, "percent", 2)
        tied = f"the model cannot rank what is less than {apart} apart"
        long = f"Places 2 to {TOP}, against the first’s {best}: {tied}"
        alone = ~np.isfinite(self.outcome().step_s[1])
        leanest = choose(self.none_fits(), "The next leanest", long)
        short = choose(self.none_fits(), "The next leanest", f"Places 2 to {TOP}, against {best}")
        return {"label": choose(alone, "", leanest), "short": choose(alone, "", short)}

    def figure(self, sources):
        p = fig.plot((0, 1), (0, 1), height=WIDE)
        fig.bare(p)
        fig.taller_on_phone(p, NARROW)
        self.draw_cloud(p, sources)
        self.draw_chosen(p, sources)
        self.draw_next(p, sources)
        return p

    @staticmethod
    def draw_cloud(p, sources):
        color, at, edge = fig.COLOR, CLOUD.scales(p, (0.05, 64.0), (BELOW, 4.0), True, True), EDGE.scales(p)
        below, beside = at | {"y_range_name": "edge_y"}, at | {"x_range_name": "edge_x"}
        place = SIDES | {"line_color": None} | at
        dot = {"line_color": color["panel"], "fill_color": color["ink"], "size": 10} | at
        best, front = (fig.of_rows(list(rows)) for rows in (range(TOP), range(TOP, len(CHOICES))))
        p.quad(source=sources["cloud"], fill_color=color["ink"], fill_alpha="fits", **place)
        p.quad(source=sources["cloud"], fill_color=color["idle"], fill_alpha="too_large", **place)
        p.segment([0, 0], [0, 0], [1, 0], [0, 1], line_color=color["axis"], **edge)
        p.segment("x", 0, "x", -0.012, source=sources["x_ticks"], line_color=color["axis"], **below)
        p.segment(0, "y", -0.01, "y", source=sources["y_ticks"], line_color=color["axis"], **beside)
        tick, under = fig.LABEL | {"text": "label"}, {"text_align": "center", "y_offset": 14} | fig.LABEL
        for width, name in (("wide", "label"), ("narrow", "short")):
            fig.only(width, p.text("x", 0, source=sources["x_ticks"], text=name, **under, **below))
        p.text(0, "y", source=sources["y_ticks"], text_align="right", x_offset=-7, **tick, **beside)
        p.text(0, 1, source=sources["time_title"], x_offset=-4, y_offset=-13, **tick, **edge)
        title = {"text_align": "title_side", "y_offset": 33, "source": sources["hbm"]} | fig.LABEL
        for width, column in (("wide", "title"), ("narrow", "short_title")):
            fig.only(width, p.text("title_x", 0, text=column, **title, **edge))
        p.segment("x", BELOW, "x", "top", source=sources["hbm"], line_color=color["hbm"], line_width=2, **at)
        name = {"text": "label", "text_align": "center", "y_offset": 33} | fig.BOLD
        p.text("x", 0, source=sources["hbm"], **name, **below)
        p.step("x", "y", source=sources["front"], mode="after", line_color=color["ink"], line_width=1.5, **at)
        p.scatter("x", "y", source=sources["marks"], view=front, marker="diamond", **dot)
        p.scatter("x", "y", source=sources["marks"], view=best, marker="circle", **dot)
        ring = {"size": 18, "fill_color": None, "line_color": color["accent"], "line_width": 2.5}
        p.scatter("x", "y", source=sources["chosen_mark"], marker="circle", **ring, **at)
        named = {"text_align": "side", "source": sources["winner"]} | at
        named |= fig.ON_PANEL  # the HBM's line may run below it
        p.text("x", "y", text="name", y_offset=22, **fig.BOLD | named)
        p.text("x", "y", text="numbers", y_offset=39, **fig.LABEL | named)
        fig.measured(p, sources["published"], **at)

    @staticmethod
    def draw_chosen(p, sources):
        color, at, boxes = fig.COLOR, CHOSEN.scales(p, y=(0, 372)), MESH.scales(p, y=(0, 372))
        row = {"bottom": MEMORY_Y - HALF, "top": MEMORY_Y + HALF}
        for rows, style in (([2, 3], fig.LABEL), ([0, 1], fig.BOLD)):
            p.text(0, "y", text="text", source=sources["title"], view=fig.of_rows(rows), **style, **at)
        planned.draw_boxes(p, sources, MESH_Y, HALF, **boxes)
        p.quad(source=sources["mesh"], fill_alpha=0, line_alpha=0, **SIDES, **boxes)
        p.text(0, "y", text="axis", source=sources["mesh"], y_offset=-7, **fig.BOLD, **at)
        p.text(0, "y", text="wire", source=sources["mesh"], y_offset=8, **fig.LABEL, **at)
        planned.draw_pieces(p, sources["memory"], MEMORY_Y, HALF, "hbm", **at)
        past = {"left": "left", "right": "right", "source": sources["over"]} | row | at
        p.quad(**past, fill_color=color["panel"], line_color=None)
        p.quad(**past, **fig.OVER | {"line_alpha": "red"})
        limit = {"source": sources["over"], "line_color": color["ink"], "line_width": 2}
        p.segment("limit", MEMORY_Y - 14, "limit", MEMORY_Y + 14, **limit, **at)
        planned.draw_pieces(p, sources["times"], STEP_Y, HALF, **at)
        for y, source in ((MEMORY_Y, "over"), (STEP_Y, "length")):
            p.text(0, y, text="label", source=sources[source], y_offset=-22, **fig.BOLD, **at)
            p.text(0, y, text="note", source=sources[source], y_offset=20, **fig.LABEL, **at)

    @staticmethod
    def draw_next(p, sources):
        at, rows = LOSSES.scales(p, y=(0, 6)), NEXT.scales(p, y=(0, 6))
        p.segment("x", "low", "x", "high", source=sources["zero"], line_color=fig.COLOR["axis"], **at)
        p.quad(source=sources["losses"], line_width=1, **SIDES, **planned.by_resource(), **at)
        for width, label, long, above in (("wide", "label", "text", 0), ("narrow", "short", "short", -19)):
            fig.only(
                width,
                p.text(0, NEXT_TITLE_Y, text=label, source=sources["next_title"], **fig.BOLD, **rows),
                p.text(
                    0, "y", text="name", source=sources["runners_up"], y_offset=above, **fig.LABEL, **rows
                ),
                p.text("x", "y", text=label, source=sources["runners_up"], x_offset=8, **fig.TEXT, **at),
                p.text(0, MEASURED_Y, text=long, source=sources["measured_row"], **fig.LABEL, **rows),
            )

    # -- the words -------------------------------------------------------------------------------------------
    def said(self, value, family):
        """A figure of the winner; a dash where there is none."""
        return choose(self.none_legal(), "–", show(np.where(self.none_legal(), 1.0, value), family))

    @readout("Step", help="of the layout shown")
    def step(self):
        return self.said(self.of_chosen(self.outcome().step_s), "seconds")

    @readout("MFU", help="model FLOPs a second, as a share of all peaks")
    def mfu(self):
        return self.said(self.of_chosen(self.outcome().mfu), "percent")

    @readout("Fullest GPU", help="its memory, with what the framework needs", rest=True)
    def fullest(self):
        total = self.of_chosen(self.outcome().total_bytes)
        return self.said(total, "bytes"), self.none_fits()

    @readout("The bill", help="of the whole run, without failures")
    def bill(self):
        return self.said(self.dollars(), "dollars")

    @readout("Layout", rest=True)
    def layout(self):
        a = self.layouts()
        tp, pp, cp, dp, ep = (
            self.said(self.of_chosen(axis), "count") for axis in (a.tp, a.pp, a.cp, a.dp, a.ep)
        )
        experts = choose(self.of_chosen(a.ep) > 1, f" × EP {ep}", "")
        return f"TP {tp} × PP {pp} × CP {cp} × DP {dp}{experts}"

    @readout("HFU", help="with what is computed again", rest=True)
    def hfu(self):
        return self.said(self.of_chosen(self.outcome().hfu), "percent")

    @readout("Tokens a second", rest=True)
    def tokens_a_second(self):
        return self.said(self.of_chosen(self.outcome().tokens_per_s), "count")

    @readout("The run", rest=True)
    def duration(self):
        return self.said(self.run(), "seconds")

    @readout("GPU-hours", rest=True)
    def hours(self):
        return self.said(cost.gpu_hours(self.gpus, self.run()), "params")

    @readout("Binds", rest=True)
    def binds(self):
        """The winner's longest term."""
        share = self.said(np.max(self.outcome().times_s[0]) / self.outcome().step_s[0], "percent")
        return select(
            planner.binding(self.outcome()),
            [f"{term}, {share} of the step" for term in planned.TERMS] + ["memory", "–"],
        )

    @readout("A tenth faster takes", rest=True)
    def ten_percent(self):
        needs = self.outcome().needed
        texts = [
            choose(
                needs[i] < planner.NEVER, f"{show(np.minimum(needs[i], 9.0), 'times')} the {SPEEDS[i]}", ""
            )
            for i in range(4)
        ]
        join = [
            choose(planner.any_before(needs, i), choose(needs[i] < planner.NEVER, " or ", ""), "")
            for i in range(4)
        ]
        found = f"{texts[0]}{join[1]}{texts[1]}{join[2]}{texts[2]}{join[3]}{texts[3]}"
        return choose(np.min(needs) < planner.NEVER, found, "no one resource alone")

    @readout("Layouts compared", rest=True)
    def compared(self):
        return f"{self.legal()}, {self.fitting()} fit"

    @regime(target=True)
    def nothing_fits(self):
        return self.none_fits() & ~self.none_legal(), (
            f"You found the memory wall: of {show(self.outcome().found.legal, 'count')} layouts none fits; "
            "the leanest takes "
            f"{self.said(self.outcome().total_bytes[0], 'bytes')} of "
            f"{usable(self.cluster().hbm_bytes)}. First "
            "response: more GPUs to shard over, or a recipe with fewer bytes a parameter (lesson 05)."
        )

    @regime()
    def nothing_legal(self):
        return self.none_legal(), (
            f"No layout is legal: {show(self.gpus, 'count')} GPUs cannot be divided so that heads, layers "
            "and the "
            f"{show(cases.sequences(self.batch_tokens, self.seq), 'count')} sequences of a step come out "
            f"whole{choose(self.is_limited(), ' within your limits', '')}. First "
            f"response: {choose(self.is_limited(), 'fewer limits, or ', '')}a number of GPUs and of "
            "sequences with the same small factors."
        )

    @regime()
    def limits_cost(self):
        """What your framework and limits cost against the search without them, by cause."""
        found = self.outcome()
        share, (term, more_s) = planner.slower_than_anyhow(found), planner.lost_to_limits(found)
        there = np.isfinite(share) & ~self.none_legal() & ~self.none_fits()
        known = np.where(there, share, 0.0)
        tied = (1.0 + known) < bands.tie()
        a = cases.Layouts(*(np.where(there, column[-1], 1.0) for column in found.layouts))
        tp, pp, cp, dp, ep = (show(size, "count") for size in (a.tp, a.pp, a.cp, a.dp, a.ep))
        best_s = np.where(there, found.step_s[planner.ANYHOW], 1.0)
        return there & (known >= planner.A_TIE) & self.is_limited(), (
            f"Your limits cost {show(known, 'percent')}: without them TP {tp} × PP {pp} × CP {cp} × DP {dp}"
            f"{choose(a.ep > 1, f' × EP {ep}', '')} takes {show(best_s, 'seconds')} a step. The largest "
            f"cause is {select(np.where(there, term, 0.0), TERMS)}, "
            f"{show(np.where(there & (more_s > 0), more_s, 0.0), 'seconds')} more"
            f"{choose(tied, '; the model cannot tell two steps apart that are so close.', '.')}"
        )

    @regime()
    def memory_costs_time(self):
        found = self.outcome().found
        share = planner.lost_to_memory(self.outcome())
        return (share > 0.02) & ~self.none_fits(), (
            f"Memory costs time here: with unlimited memory the fastest layout would take "
            f"{self.said(found.free_s, 'seconds')} a step, "
            f"{show(np.where(share > 0, share, 0.0), 'percent')} less."
        )

    @regime()
    def tight(self):
        left, hbm = self.case().hbm_bytes - self.outcome().total_bytes[0], self.cluster().hbm_bytes
        return (self.outcome().total_bytes[0] / hbm > 0.97) & ~self.none_fits() & ~self.none_legal(), (
            f"Tight: of {usable(hbm)} the fullest GPU has "
            f"{show(np.where(left > 0, left, 0.0), 'bytes')} left, less than "
            "the estimate can be wrong by. First response: measure it, or take a layout with more room."
        )

    @regime()
    def hidden_traffic(self):
        found = self.outcome()
        factor = np.minimum(found.needed[0], planner.FACTORS[-1])
        waits = np.where(found.uncovered_s > 0, found.uncovered_s, 0.0)
        share = self.said(np.max(found.times_s[0]) / found.step_s[0], "percent")
        return (factor > 1.3) & (waits / found.step_s[0] > 0.03) & (planner.binding(found) < 1), (
            f"More lies behind the arithmetic than shows: it takes {share} of the step, yet for a step a "
            f"tenth shorter it {choose(found.needed[0] < planner.NEVER, 'takes', 'would take more than')} "
            f"{show(factor, 'times')} its speed. At "
            f"that pace {show(waits, 'seconds')} of {select(found.uncovered, TERMS)} no longer hide."
        )

    @regime()
    def too_thin(self):
        share = planner.waiting_share(self.outcome())
        return share > 0.35, (
            f"Spread too thin: {show(np.where(share > 0, share, 0.0), 'percent')} of even the best step is "
            "waiting for "
            "wires and bubbles. First response: more tokens in a step, or fewer GPUs."
        )

    # -- for other programs ----------------------------------------------------------------------------------
    def settings(self, write):
        """The layout shown in another program’s words."""
        shown = cases.Layouts(*(np.stack([axis]) for axis in self.degrees()))
        run = cases.run(self.case(), shown, self.tokens, self.precision.narrow)
        run = run._replace(titan=self.model.titan)
        return choose(self.none_legal(), "No layout is legal.", write(run, text))

    @document("Megatron-LM arguments", "layout.sh")
    def megatron(self):
        return self.settings(export.megatron)

    @document("torchtitan TOML", "layout.toml")
    def torchtitan(self):
        return self.settings(export.torchtitan)

    @document("DeepSpeed JSON", "layout.json")
    def deepspeed(self):
        return self.settings(export.deepspeed)

    def best(self):
        """The winner's axes."""
        a = self.layouts()
        tp, pp, cp, dp, ep = (self.said(axis[0], "count") for axis in (a.tp, a.pp, a.cp, a.dp, a.ep))
        return f"TP {tp} × PP {pp} × CP {cp} × DP {dp}{choose(a.ep[0] > 1, f' × EP {ep}', '')}"

    def summary(self):
        found, legal = self.outcome(), self.legal()
        memory, step = self.said(found.total_bytes[0], "bytes"), self.said(found.step_s[0], "seconds")
        hbm = show(self.cluster().hbm_bytes, "bytes")  # the picture says that it is the usable one
        return choose(
            self.none_legal(),
            f"No layout of a step of {show(self.batch_tokens, 'tokens')} is legal on "
            f"{show(self.gpus, 'count')} {self.gpu.name}.",
            choose(
                self.none_fits(),
                f"None of {legal} layouts fits: the leanest, {self.best()}, needs {memory} of {hbm}.",
                f"The best of {legal} layouts, {self.best()}, takes {step} a step and {memory} of {hbm}.",
            ),
        )


LayoutPlanner.serve_as(__name__)
