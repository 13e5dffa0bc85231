"""The closing examination: a job drawn from a number, the reader's layout and estimates, and the planner's
beside them."""

import numpy as np

from engine.base.units import DAY
from engine.exam import examination as exam
from engine.exam import missions
from engine.frameworks.registry import abilities
from engine.step import cases, search
from widgets.kit.controls import Choice, Number, Switch, degrees
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import planned
from widgets.kit.drawing.cluster import MOST_BOXES
from widgets.kit.drawing.panels import Panel, Place
from widgets.kit.text import choose, counted, phrase, plain, select, show, usable
from widgets.kit.widget import Widget, document, hint, once, part, readout, regime

LAYOUT, ESTIMATES, HAND_IN = "Your layout", "Your estimates", "Hand in"
AXES = ("tp", "pp", "cp", "ep")
CHOICES = (*AXES, "zero", "micro_batch", "recompute")
# The picture's parts, by their sides in pixels: the mesh, and the bars of both layouts
WIDE, NARROW = 370, 590
MESH, LABELS, BARS = (
    Panel(name, Place(*wide), Place(*narrow))
    for name, wide, narrow in (
        ("mesh", ((0.1, 0.46), (0.0, 1.0)), ((0.22, 0.985), (345 / NARROW, 1.0))),
        ("labels", ((0.0, 0.46), (0.0, 1.0)), ((0.0, 0.985), (345 / NARROW, 1.0))),
        ("bars", ((0.54, 0.9), (0.0, 1.0)), ((0.0, 0.78), (0.0, 340 / NARROW))),
    )
)
MESH_Y, HALF = np.array([262.0, 200.0, 138.0, 76.0]), 10.0
MEMORY_Y, TIME_Y, HEAD_Y = np.array([246.0, 198.0]), np.array([86.0, 38.0]), np.array([322.0, 140.0])
BARS_Y = np.append(MEMORY_Y, TIME_Y)
SOFTWARE = ["any", *(able.name for able in abilities().values())]


def of_zero(able) -> str:
    """Which stages of ZeRO a framework has, and which of them beside a pipeline."""
    every, piped = (" and ".join(map(str, stages)) for stages in (able.stages, able.stages_of_a_pipeline))
    return f"ZeRO {every}" + (f", {piped} with pipeline stages" if piped not in ("", every) else "")


HAS = ["whatever there is", *(of_zero(able) for able in abilities().values())]
# what a reader chose, by Choice's fields, and the lesson that says what it costs
CHOSEN = [
    ("tensor ranks", "lesson 06"),
    ("pipeline stages", "lesson 07"),
    ("context ranks", "lesson 08"),
    ("expert ranks", "lesson 09"),
    ("ZeRO", "lesson 05"),
    ("micro-batch", "lesson 04"),
    ("recomputation", "lesson 05"),
]
NUMBERED = [(name, what) for name, (what, _) in zip(AXES, CHOSEN)]
LOST_BY = [
    "arithmetic of the slowest stage",
    "tensor traffic",
    "the pipeline's bubble",
    "keys and values passed around",
    "tokens on their way to experts",
    "data traffic that backward does not hide",
    "the optimizer's reads and writes",
    "messages between stages",
]
UNSAID = {
    "unsaid": ("choose", -1.0)
}  # nothing is chosen for the reader, and none of the resources has this place
BOUND = [
    "arithmetic (lesson 01)",
    "the HBM, by what is computed again or updated (lessons 01 and 05)",
    "the link in the node (lessons 06 and 08)",
    "the network (lessons 03, 04 and 09)",
    "the pipeline's bubble (lesson 07)",
]


def bars(sizes, scale, rows, words) -> dict:
    """Columns of two bars in pieces on one scale."""
    left, right = fig.end_to_end(sizes / scale)
    seen = np.ravel(sizes > 0)
    return {
        "left": fig.gone_unless(seen, np.ravel(left)),
        "right": fig.gone_unless(seen, np.ravel(right)),
        **fig.rows_of(np.repeat(rows, len(words)), HALF),
        "layout": np.repeat(["yours", "the planner's"], len(words)).tolist(),
    }


class LayoutExam(Widget):
    question = "Can you lay out a job that you have never seen?"
    seed = Number(
        "Spec number",
        2026,
        1,
        exam.MOST_SPECS,
        stops=100,
        log=False,
        whole=True,
        help="1 to 99 are warm-ups with small, dense models",
        slider=False,
    )
    tp = Choice("Tensor ranks", degrees(1, 2, 4, 8, 16, 32, 64), "2", more=LAYOUT)
    pp = Choice("Pipeline stages", degrees(1, 2, 4, 8, 16, 32, 64), "1", more=LAYOUT)
    cp = Choice("Context ranks", degrees(1, 2, 4, 8, 16, 32, 64), "1", more=LAYOUT)
    ep = Choice("Expert ranks", degrees(1, 2, 4, 8, 16, 32, 64, 128, 256), "1", more=LAYOUT)
    zero = Choice("ZeRO stage", degrees(0, 1, 2, 3), "1", more=LAYOUT)
    micro_batch = Choice("Micro-batch", degrees(*search.MICRO_BATCHES), "1", more=LAYOUT)
    recompute = Choice(
        "Recompute", {"none": ("nothing", 0.0), "full": ("every layer", 2.0)}, "none", more=LAYOUT
    )
    memory = Number("Memory of your fullest GPU", 40e9, 1e9, 400e9, family="bytes", more=ESTIMATES)
    binds = Choice(
        "What binds the best layout",
        UNSAID | {key: (key, float(i)) for i, key in enumerate(exam.RESOURCES)},
        "unsaid",
        more=ESTIMATES,
    )
    run_s = Number("Run with the best layout", 30 * DAY, DAY, 1000 * DAY, family="seconds", more=ESTIMATES)
    handed_in = Switch("Hand in, and see the planner's answer", more=HAND_IN, until="seed")

    sections = (LAYOUT, ESTIMATES, HAND_IN)
    paper = {
        "name": "exam",
        "seed": "seed",
        "done": "handed_in",
        "points": "points",
        "most": exam.FULL_MARKS,
        "draws": [("Another spec", exam.WARM_UPS, exam.MOST_SPECS), ("A warm-up", 1, exam.WARM_UPS - 1)],
    }
    presets = {
        "The class's: spec 2026": {},
        "A warm-up: spec 8": {"seed": 8},
        "Tensor 8 by reflex: 1917": {
            "seed": 1917,
            "tp": 8,
            "pp": 4,
            "ep": 8,
            "memory": 60e9,
            "run_s": 120 * DAY,
            "binds": "pipeline bubble",
            "handed_in": "on",
        },
        "Worked below: 1917": {
            "seed": 1917,
            "tp": 2,
            "pp": 2,
            "ep": 8,
            "memory": 80e9,
            "binds": "in-node link",
            "run_s": 72 * DAY,
            "handed_in": "on",
        },
    }
    break_it = "Hand in a layout that never starts: what must the axes divide, and what must one GPU hold?"
    assumptions = (
        "Specs are drawn by a seeded generator, the same in every browser. Both layouts are costed by the "
        "planner's model of a step, with bf16 Adam and fused attention, among what the spec's software can "
        "run; the schedule, and whether experts are cut by tensor ranks, are the fastest that fit yours. "
        "Where the planner's MFU is above the most that was published for such chips, pace and days are "
        "graded at that. Failures and data loading are left out."
    )
    formula = (
        "$$\\text{pace} = 10 - \\left\\lfloor \\frac{\\ln (T_{yours} / T_{best})}{\\ln 1.07} "
        "\\right\\rfloor, \\qquad \\text{estimate} = 5 - \\left\\lfloor \\frac{\\max(e/x,\\; x/e) - 1}{0.1} "
        "\\right\\rfloor$$\n\nwith your estimate $e$ of $x$, and nothing below 0. Two points for a layout "
        "that can be built, three more if it fits. Five for what binds, three for a resource that costs at "
        "least half as much, where arithmetic counts as 5 % of the step."
    )

    # -- the engine ------------------------------------------------------------------------------------------
    @once
    def job(self):
        return exam.spec(self.seed)

    def choice(self):
        return exam.ChosenLayout(*(getattr(self, name) for name in CHOICES))

    @once
    def found(self):
        return exam.paper(self.job(), self.choice(), self.handed_in)

    @once
    def marks(self):
        return exam.points(self.found(), self.memory, self.binds, self.run_s)

    def data(self):
        """Whole data ranks: none where the other axes ask for more GPUs than there are."""
        ranks = missions.data_ranks(self.job(), self.tp, self.pp, self.cp)
        return np.where(ranks < 1, 0.0, ranks)

    def misfit(self):
        """What is wrong with an illegal layout, in numbers, by ``missions.FAULTS``."""
        job, count = self.job(), lambda value: show(value, "count")
        sequences, stages = f"{count(job.batch)} sequences", f"{count(self.pp)} stages"
        experts = choose(job.model.experts > 0, f"{count(job.model.experts)} experts", "a dense model")
        return select(
            self.found().fault,
            [
                f"{count(self.tp)} tensor ranks for {count(job.model.heads)} heads",
                f"{stages} for {count(job.model.depth)} layers",
                (
                    f"axes of {count(missions.model_ranks(self.tp, self.pp, self.cp))} ranks for "
                    f"{count(job.gpus)} GPUs"
                ),
                f"{count(self.data())} data ranks for {sequences}",
                (
                    f"micro-batches of {count(self.micro_batch)} for {sequences} on {count(self.data())} "
                    "data ranks"
                ),
                f"{count(self.cp)} context ranks for {count(job.seq)} tokens",
                f"chunks for {stages}",
                f"{sequences} for {stages}",
                f"{count(self.ep)} expert ranks for {experts}",
                f"{count(self.ep)} expert ranks for {count(job.gpus)} GPUs in {stages}",
                f"cut experts for {experts}",
                f"a layout that {self.software_name()} cannot run",
            ],
        )

    def reason(self):
        """The same with the software's own reason."""
        return choose(self.found().fault < len(missions.FAULTS), self.misfit(), self.refusal())

    def software_name(self):
        return select(self.job().software, SOFTWARE)

    def refusal(self):
        """Why the software cannot run it."""
        name = self.software_name()
        return select(
            exam.refused(self.job(), self.choice()),
            [
                f"{name} has {select(self.job().software, HAS)}",
                (
                    f"tensor ranks must divide the {show(self.job().model.kv_heads, 'count')} heads of keys "
                    f"and values in {name}"
                ),
                (
                    f"{name} cannot share {show(self.job().model.depth, 'count')} layers out among "
                    f"{show(self.pp, 'count')} stages"
                ),
                (
                    f"{name} borrows whole groups of tensor and context ranks for its experts, so expert "
                    "ranks must be a multiple of both together"
                ),
            ],
        )

    def shows_mine(self):
        return self.handed_in & self.found().legal

    def revealed(self, text):
        """A text that is hidden until the examination is handed in."""
        return choose(self.handed_in, text, "–")

    def mine(self, text):
        """A text about the reader's own layout; a dash while that is not shown."""
        return choose(self.shows_mine(), text, "–")

    # -- what is drawn ---------------------------------------------------------------------------------------
    def sizes(self):
        return [self.pp, self.data(), self.cp, self.tp]

    def ways(self):
        """How the groups of each of them send."""
        return exam.crosses(self.job(), self.tp, self.pp, self.cp)

    @part("seed", *AXES[:3], shown=False)
    def boxes(self):
        return planned.mesh_boxes(self.sizes(), self.ways(), MESH_Y, HALF)

    @part("seed", *AXES[:3], shown=False)
    def zoom(self):
        return planned.zoom(self.sizes(), MESH_Y, HALF)

    @part("seed", *AXES[:3])
    def mesh(self):
        sizes, ways = self.sizes(), np.stack(self.ways())
        return {
            "left": np.zeros(4),
            "right": np.ones(4),
            **fig.rows_of(MESH_Y, HALF),
            "y": MESH_Y,
            "ranks": np.stack(sizes),
            "axis": [f"{axis} {show(size, 'count')}" for axis, size in zip(planned.AXES, sizes)],
            "wire": select(ways, planned.AT["short"]),
        }

    @hint("mesh")
    def of_an_axis(self):
        sizes = np.stack(self.sizes())
        names = [
            "Pipeline stages",
            *(f"In each of them {kind} ranks" for kind in ("data", "context", "tensor")),
        ]
        return phrase(
            "{name}: {n}, {way}{cut}",
            name=select(np.arange(4), names),
            n=show(sizes, "count"),
            way=select(np.stack(self.ways()), planned.AT["wires"]),
            cut=select(np.where(sizes > MOST_BOXES, 1.0, 0.0), ["", f", {MOST_BOXES} drawn"]),
        )

    def shown_of(self, both):
        """Figures of the reader's layout and of the planner's, 0 where they are not shown."""
        there = np.stack([self.shows_mine(), self.handed_in])
        return np.where(there[:, None] > 0, both, 0.0)

    def sizes_bytes(self):
        return self.shown_of(self.found().parts_bytes[:2])

    def seconds(self):
        return self.shown_of(self.found().times_s[:2])

    @once
    def whole_bytes(self):
        """What is as long as the picture: the largest of both layouts' memory, the estimate and the HBM."""
        most = np.max(np.sum(self.sizes_bytes(), axis=-1))
        return np.maximum(np.maximum(most, self.job().hbm_bytes), self.memory)

    def whole_s(self):
        """The longer step."""
        return np.maximum(np.max(np.sum(self.seconds(), axis=-1)), self.found().step_s[1])

    @part("seed", *CHOICES, "handed_in", "memory")
    def memories(self):
        size = self.sizes_bytes()
        return {
            **bars(size, self.whole_bytes(), MEMORY_Y, planned.PARTS),
            "bytes": np.ravel(size),
            "part": planned.PARTS * 2,
        }

    def of_pieces(self, size, words, family, of):
        """Each piece of two bars in words, with its share; nothing for one that is not shown."""
        share = size / np.maximum(np.sum(size, axis=-1), 1e-9)[:, None]
        return [
            choose(
                size[row][i] > 0,
                f"{whose} {word}: {show(size[row][i], family)}, {show(share[row][i], 'percent')} {of}",
                "",
            )
            for row, whose in enumerate(["Your", "The planner’s"])
            for i, word in enumerate(words)
        ]

    @hint("memories")
    def of_a_piece_of_memory(self):
        return self.of_pieces(self.sizes_bytes(), planned.PARTS, "bytes", "of what the fullest GPU holds")

    @part("seed", *CHOICES, "handed_in", "memory")
    def over(self):
        """What lies past the HBM, of both."""
        size, scale = np.sum(self.sizes_bytes(), axis=-1), self.whole_bytes()
        past = size > self.job().hbm_bytes
        limit = self.job().hbm_bytes / scale
        return {
            "left": fig.gone_unless(past, limit),
            "right": fig.gone_unless(past, size / scale),
            **fig.rows_of(MEMORY_Y, HALF),
            "red": np.where(past, 1.0, 0.0),
        }

    @part("seed", *CHOICES, "memory", "handed_in")
    def estimate(self):
        """The HBM, and what the reader said, on the scale of the memory."""
        share, limit = self.memory / self.whole_bytes(), self.job().hbm_bytes / self.whole_bytes()
        return {
            "x": share,
            "y": MEMORY_Y[0] + 4.2 * HALF,
            "share": self.memory / self.job().hbm_bytes,
            "limit": limit,
            "label": f"you say {show(self.memory, 'bytes')}",
            "hbm": usable(self.job().hbm_bytes, self.job().at.gpu.hbm_bytes),
            "side": fig.inward(share, 0.0, 1.0, 0.2),
            "hbm_side": fig.inward(limit, 0.0, 1.0, 0.2),
        }

    @hint("estimate")
    def of_the_estimate(self):
        share = show(self.estimate()["share"], "percent")
        said = f"Your estimate of the fullest GPU’s memory: {share} of its HBM"
        return [choose(self.handed_in, said, "")]

    @part("seed", *CHOICES, "handed_in")
    def times(self):
        seconds = self.seconds()
        leaves = exam.beyond_the_node(self.job(), self.found())
        return {
            **bars(seconds, self.whole_s(), TIME_Y, planned.TERMS),
            "seconds": np.ravel(seconds),
            "term": planned.TERMS * 2,
            "resource": select(np.ravel(planned.resources(leaves)), planned.RESOURCES),
        }

    @hint("times")
    def of_a_piece_of_time(self):
        return self.of_pieces(self.seconds(), planned.TERMS, "seconds", "of the step")

    @part("seed", *CHOICES, "handed_in", "memory")
    def rows(self):
        """The texts above and after each bar: your memory and the planner's, then the steps."""
        sizes, steps = np.sum(self.sizes_bytes(), axis=-1), self.found().step_s
        unbuilt = choose(self.handed_in, "cannot be built", "")
        yours, best = "yours", choose(self.handed_in, f"the planner’s: {self.axes_of(1)}", "the planner’s")
        limit = self.job().hbm_bytes / self.whole_bytes()
        filled, steps_end = sizes / self.whole_bytes(), np.sum(self.seconds(), axis=-1) / self.whole_s()
        ends, limits = np.append(filled, steps_end), np.append(limit * np.ones(2), np.ones(2) * fig.FAR_LEFT)
        return {
            "y": BARS_Y,
            **fig.value_places(ends, limits, 0.2),
            "title": [yours, best, yours, "the planner’s"],
            "label": [
                choose(self.shows_mine(), show(sizes[0], "bytes"), unbuilt),
                self.when_handed_in(show(sizes[1], "bytes")),
                choose(self.shows_mine(), show(steps[0], "seconds"), unbuilt),
                self.when_handed_in(show(steps[1], "seconds")),
            ],
        }

    def when_handed_in(self, words):
        return choose(self.handed_in, words, "")

    @part("seed", *CHOICES, "handed_in", shown=False)
    def standing(self):
        """What to do at each part of the form, and how it stands with what was done."""
        built = choose(self.found().legal, "this one can be built", "this one cannot be built")
        fault = choose(self.found().legal, "", self.misfit())
        steps = ["1. Lay it out: ", "2. Say how much memory it fills", "3. Hand in, and see what is true"]
        named = ["Your mesh: ", "Memory of the fullest GPU", "One step"]
        first, said, third = (choose(self.handed_in, *both) for both in zip(named, steps))
        return {"mesh": f"{first}{built}", "fault": fault, "memory": said, "step": third}

    @part("handed_in", shown=False)
    def blanks(self):
        """Empty bars, until something is known of them."""
        hidden = ~self.handed_in & (BARS_Y > 0)
        ends = {"left": fig.gone_unless(hidden, 0.0), "right": fig.gone_unless(hidden, 1.0)}
        unknown = {"y": BARS_Y, "text": [choose(self.handed_in, "", "?")] * len(BARS_Y)}
        return ends | unknown | fig.rows_of(BARS_Y, HALF)

    def figure(self, sources):
        p = fig.plot((0, 1), (0, 1), height=WIDE)
        fig.bare(p)
        fig.taller_on_phone(p, NARROW)
        color, sides = fig.COLOR, fig.BOX
        boxes, labels = (panel.scales(p, y=(38, 340)) for panel in (MESH, LABELS))
        at = BARS.scales(p, y=(0, 340))
        planned.draw_boxes(p, sources["boxes"], sources["zoom"], **boxes)
        p.quad(source=sources["mesh"], fill_alpha=0, line_alpha=0, **sides, **boxes)
        p.text(0, "y", text="axis", source=sources["mesh"], y_offset=-7, **fig.BOLD, **labels)
        p.text(0, "y", text="wire", source=sources["mesh"], y_offset=8, **fig.LABEL, **labels)
        steps = sources["standing"]
        p.text(0, 322, text="mesh", source=steps, **fig.BOLD, **labels)
        p.text(0, 303, text="fault", source=steps, **fig.TEXT, **labels)
        p.quad(source=sources["blanks"], **sides, **fig.IDLE, **at)
        p.quad(source=sources["memories"], fill_color=color["hbm"], line_color=color["panel"], **sides, **at)
        p.quad(source=sources["over"], **sides, fill_color=color["panel"], line_color=None, **at)
        p.quad(source=sources["over"], **sides, **fig.OVER | {"line_alpha": "red"}, **at)
        p.quad(source=sources["times"], line_width=1, **sides, **planned.by_resource(), **at)
        said = sources["estimate"]
        limit = {"line_color": color["ink"], "line_width": 2}
        for y in MEMORY_Y:
            p.segment("limit", y - 14, "limit", y + 14, source=said, **limit, **at)
        below = {"text_align": "hbm_side", "y_offset": 9} | fig.LABEL
        p.text("limit", MEMORY_Y[1] - 15, text="hbm", source=said, **below, **at)
        p.segment(
            "x", MEMORY_Y[0] - HALF, "x", "y", source=said, line_color=color["ink"], line_dash=[4, 3], **at
        )
        above = {"text_align": "side", "y_offset": -8} | fig.TEXT
        p.text("x", "y", text="label", source=said, **above, **at)
        p.text(0, HEAD_Y[0], text="memory", source=steps, **fig.BOLD, **at)
        p.text(0, HEAD_Y[1], text="step", source=steps, **fig.BOLD, **at)
        p.text(0.5, "y", text="text", source=sources["blanks"], text_align="center", **fig.TEXT, **at)
        p.text(0, "y", text="title", source=sources["rows"], y_offset=-21, **fig.LABEL, **at)
        fig.values(p, sources["rows"], "label", **fig.BOLD, **at)
        return p

    # -- what is given ---------------------------------------------------------------------------------------
    @readout("Model", given=True)
    def model(self):
        size, active = show(self.job().params, "params"), show(self.job().active_params, "params")
        return choose(
            self.job().model.experts > 0,
            f"{size} parameters, {active} a token: a mixture of experts",
            f"{size} parameters, dense",
        )

    @readout("Layers", given=True)
    def layers(self):
        return f"{show(self.job().model.depth, 'count')} of width {show(self.job().model.hidden, 'count')}"

    @readout("Attention", given=True)
    def attention(self):
        m = self.job().model
        return (
            f"{show(m.heads, 'count')} heads of {exam.HEAD_DIM}, {show(m.kv_heads, 'count')} for keys "
            "and values"
        )

    @readout("MLP", given=True)
    def mlp(self):
        m = self.job().model
        return choose(
            m.experts > 0,
            f"{show(m.experts, 'count')} gated experts of width {show(m.expert_ffn, 'count')}, "
            f"{show(m.top_k, 'count')} a token",
            f"gated, width {show(m.ffn, 'count')}",
        )

    @readout("Vocabulary", given=True)
    def vocabulary(self):
        return show(self.job().model.vocab, "count")

    @readout("Cluster", given=True)
    def cluster(self):
        return (
            f"{show(self.job().gpus, 'count')} × {self.job().at.gpu.name}, "
            f"{show(self.job().at.gpu.gpus_per_node, 'count')} in a node"
        )

    @readout("One GPU", given=True)
    def one_gpu(self):
        return (
            f"HBM {usable(self.job().hbm_bytes, self.job().at.gpu.hbm_bytes)}; "
            f"{show(self.job().at.peak_flops_per_s, 'flops_per_s')} dense bf16"
        )

    @readout("Wires, one way", given=True)
    def wires(self):
        gpu = self.job().at.gpu
        return (
            f"{show(gpu.link_bytes_per_s, 'bytes_per_s')} in the node, "
            f"{show(gpu.nic_bytes_per_s, 'bytes_per_s')} out of it"
        )

    @readout("One step", given=True)
    def a_step(self):
        job = self.job()
        return (
            f"{show(job.batch, 'count')} sequences of {show(job.seq, 'count')}: "
            f"{show(job.step_tokens, 'tokens')}"
        )

    @readout("Software", given=True)
    def software(self):
        return f"{self.software_name()}: {select(self.job().software, HAS)}"

    @readout("The run", given=True)
    def the_run(self):
        return f"{show(self.job().tokens, 'tokens')}, {self.job().recipe.name}"

    # -- what comes out --------------------------------------------------------------------------------------
    def scored(self, first, last=None):
        """Points of one part, or of several."""
        parts = self.marks()[first:] if last is None else self.marks()[first:last]
        most = show(sum(exam.MOST[first:last]), "count")
        return self.revealed(f"{show(np.sum(parts), 'count')} of {most}")

    def lost(self, first, last):
        return self.handed_in & (np.sum(self.marks()[first:last]) < sum(exam.MOST[first:last]))

    @readout("Data ranks that are left")
    def data_ranks(self):
        return show(self.data(), "count")

    @readout("The schedule you get")
    def schedule(self):
        a = self.found().layouts
        cut = choose(a.expert_tp[0] > 1, ", experts cut by tensor ranks", "")
        return choose(
            self.found().legal, f"{select(a.schedule[0], cases.SCHEDULE_TITLES)}{cut}", "cannot be built"
        )

    @readout("Points")
    def points(self):
        return self.scored(0)

    @readout("Built, and fits", rest=True)
    def built(self):
        return self.scored(0, 2), self.lost(0, 2)

    @readout("Pace", rest=True)
    def pace(self):
        return self.scored(2, 3)

    @readout("Memory", rest=True)
    def memory_points(self):
        return self.scored(3, 4)

    @readout("What binds", rest=True)
    def binding_points(self):
        return self.scored(4, 5)

    @readout("Days", rest=True)
    def days_points(self):
        return self.scored(5, 6)

    @readout("MFU, yours and the planner's", rest=True)
    def mfu(self):
        yours, planners = (show(self.found().mfu[i], "percent") for i in range(2))
        return choose(self.handed_in, f"{choose(self.shows_mine(), yours, '–')}, {planners}", "–")

    @readout("The most that was published", rest=True)
    def published(self):
        return self.revealed(show(self.job().most_mfu, "percent"))

    def axes_of(self, place):
        """A layout's cuts."""
        a = self.found().layouts
        axes = [
            f"{name.upper()} {show(getattr(a, name)[place], 'count')}" for name in ("tp", "pp", "cp", "dp")
        ]
        ep = choose(a.ep[place] > 1, f" × EP {show(a.ep[place], 'count')}", "")
        return f"{' × '.join(axes)}{ep}"

    def named(self, place):
        """A layout in words."""
        a = self.found().layouts
        return (
            f"{self.axes_of(place)}, ZeRO {show(a.zero[place], 'count')}, micro-batch "
            f"{show(a.micro_batch[place], 'count')}, {select(a.schedule[place], cases.SCHEDULE_TITLES)}, "
            f"{select(a.recompute[place], planned.RECOMPUTED)}"
        )

    @regime()
    def full_marks(self):
        most = show(exam.FULL_MARKS, "count")
        return self.handed_in & (np.sum(self.marks()) >= exam.FULL_MARKS), (
            f"Full marks, {most} of {most}: {self.named(0)} takes {show(self.found().step_s[0], 'seconds')} "
            f"a step, {show(self.found().ratio, 'times')} the best that is asked for."
        )

    @regime(target=True)
    def never_starts(self):
        job, found = self.job(), self.found()
        rule = choose(
            found.fault < len(missions.FAULTS), f"{select(found.fault, exam.FAULTS)}. You have ", ""
        )
        why = f"{rule}{self.reason()}"
        unbuilt = f"It never starts, {self.scored(0, 2)}: {why} (lesson 10)."
        too_large = (
            f"It never starts, {self.scored(0, 2)}: your fullest GPU needs "
            f"{show(exam.used_bytes(found), 'bytes')} of {usable(job.hbm_bytes)}. State is cut by "
            f"{choose(self.zero > 0, 'tensor ranks and stages', 'a higher ZeRO stage')}, activations by "
            "context and tensor ranks or by recomputing them (lessons 05 and 08)."
        )
        return self.handed_in & ~found.fits, choose(found.legal, too_large, unbuilt)

    @regime()
    def slower(self):
        found = self.found()
        return self.shows_mine() & found.fits & self.lost(2, 3), (
            f"Pace, {self.scored(2, 3)}: your step takes {show(found.ratio, 'times')} the best. "
            f"{self.blame()} Most of the difference, {show(found.lost_s, 'seconds')}, is "
            f"{select(found.lost_by, LOST_BY)}."
        )

    def blame(self):
        """The one choice that alone would close most of the gap."""
        found = self.found()
        instead = show(found.instead, "count")
        changes = [
            *(f"{instead} {what} instead of {show(getattr(self, name), 'count')}" for name, what in NUMBERED),
            f"ZeRO {instead} instead of {show(self.zero, 'count')}",
            f"a micro-batch of {instead} instead of {show(self.micro_batch, 'count')}",
            choose(found.instead > 0, "every layer recomputed", "nothing recomputed"),
        ]
        words = [
            f"With {change} ({lesson}), and all else as it is, it would take "
            f"{show(found.instead_s, 'seconds')} instead of {show(found.step_s[0], 'seconds')}."
            for change, (_, lesson) in zip(changes, CHOSEN, strict=True)
        ]
        ranks = counted(found.layouts.tp[1], "tensor rank", "tensor ranks")
        stages = counted(found.layouts.pp[1], "stage", "stages")
        pieces = counted(found.layouts.cp[1], "context rank", "context ranks")
        pairs = [
            f"With {one} and {other} together (lessons {lessons}) it would take "
            f"{show(found.instead_s, 'seconds')} instead of {show(found.step_s[0], 'seconds')}."
            for one, other, lessons in ((ranks, stages, "06 and 07"), (stages, pieces, "07 and 08"))
        ]
        alone = "No such change of one or two numbers helps: the planner's split is another one throughout."
        return select(found.blamed, [*words, *pairs, alone])

    @regime()
    def leaves_the_node(self):
        per_node = self.job().at.gpu.gpus_per_node
        return self.shows_mine() & (self.tp > per_node) & self.lost(2, 3), (
            f"Your {show(self.tp, 'count')} tensor ranks leave the node of {show(per_node, 'count')}: four "
            "collectives a layer then go through the network cards (lessons 03 and 06)."
        )

    @regime()
    def memory_missed(self):
        parts = self.found().parts_bytes[0]
        kinds = ", ".join(f"{name} {show(parts[i], 'bytes')}" for i, name in enumerate(planned.PARTS))
        return self.shows_mine() & self.lost(3, 4), (
            f"Memory, {self.scored(3, 4)}: you said {show(self.memory, 'bytes')}, your layout takes "
            f"{show(exam.used_bytes(self.found()), 'bytes')} ({kinds}; lessons 01 and 05)."
        )

    @regime()
    def binding_missed(self):
        found = self.found()
        share = show(np.max(found.losses), "percent")
        why = choose(
            found.binding > 0,
            f"it costs {share} of the best step",
            f"nothing else costs more than {share} of the best step",
        )
        return self.lost(
            4, 5
        ), f"What binds, {self.scored(4, 5)}: it is {select(found.binding, BOUND)}, for {why}."

    @regime()
    def days_missed(self):
        job = self.job()
        return self.lost(5, 6), (
            f"Days, {self.scored(5, 6)}: you said {show(self.run_s, 'seconds')}, the best layout takes "
            f"{counted(self.found().days, 'day', 'days')}. That is 6 × "
            f"({show(exam.multiplied_params(job), 'params')} parameters without the input embedding + "
            f"{show(exam.attention_params(job), 'params')} for attention) × {show(job.tokens, 'tokens')} at "
            f"{show(self.found().mfu[2], 'percent')} of {show(job.gpus, 'count')} peaks"
            f"{self.by_what_was_published()} (lesson 01)."
        )

    def by_what_was_published(self):
        """A remark where the planner's step is faster than anything published."""
        found = self.found()
        return choose(
            exam.is_held_back(found),
            f", the most that was published for such chips (the planner's layout would need "
            f"{show(found.mfu[1], 'percent')})",
            "",
        )

    # -- to take along ---------------------------------------------------------------------------------------
    @document("Your result", "examination.txt")
    def result(self):
        text = (
            f"System ML, examination {plain(self.seed)}: {self.scored(0)} points\n"
            f"built and fits {self.scored(0, 2)} · pace {self.scored(2, 3)} · memory {self.scored(3, 4)} · "
            f"what binds {self.scored(4, 5)} · days {self.scored(5, 6)}\n"
            f"mine       {self.mine(self.named(0))}\n"
            f"planner's  {self.named(1)}\n"
        )
        return choose(self.handed_in, text, "Hand in first.")

    def summary(self):
        job, found = self.job(), self.found()
        spec, gpus = f"Spec {plain(self.seed)}", show(job.gpus, "count")
        asked = f"{spec}, {show(job.params, 'params')} parameters on {gpus} {job.at.gpu.name}"
        yours = (
            f"TP {show(self.tp, 'count')} × PP {show(self.pp, 'count')} × CP {show(self.cp, 'count')} × EP "
            f"{show(self.ep, 'count')}, ZeRO {show(self.zero, 'count')}"
        )
        mine, best = (show(found.step_s[rank], "seconds") for rank in (0, 1))
        steps = choose(self.shows_mine(), f"takes {mine} a step", "cannot be built")
        return choose(
            self.handed_in,
            f"{spec}: your layout {steps}, the planner's takes {best}, and you have {self.scored(0)} points.",
            choose(
                found.legal,
                f"{asked}: {yours} can be handed in.",
                f"On {gpus} GPUs, {yours} cannot be built: {self.reason()}.",
            ),
        )


LayoutExam.serve_as(__name__)
