"""The closing examination: a job drawn from a number, the reader's layout and estimates, and the planner's beside them."""

import numpy as np

from engine import examination as exam
from engine import missions, planner
from widgets.kit import figure as fig
from widgets.kit.cluster import MOST_BOXES, draw_mesh, mesh_row
from widgets.kit.controls import Choice, Number, Switch, degrees
from widgets.kit.text import choose, phrase, plain, select, show
from widgets.kit.widget import Widget, document, once, part, readout, regime

LAYOUT, ESTIMATES, HAND_IN = "Your layout", "Your estimates", "Hand in"
AXES = ("tp", "pp", "cp", "ep")
CHOICES = (*AXES, "zero", "micro_batch", "recompute")
ROOM = 0.19                                     # of a piece of a bar that holds its name
END = 1.34                                      # of the bars: what is longer is cut there
MESH_Y, MEMORY_Y, TIME_Y = np.array([8.7, 7.8, 6.9, 6.0]), np.array([4.4, 3.5]), np.array([1.6, 0.7])
PARTS = ["framework", "weights", "gradients", "optimizer", "activations"]
TERMS = ["arithmetic", "tensor traffic", "pipeline bubble", "context traffic", "expert traffic", "data traffic", "optimizer",
         "stage messages"]
HUES = dict(zip(TERMS, ("compute", "link", "idle", "link", "network", "network", "hbm", "network")))
RECOMPUTED = ["nothing recomputed", "", "all recomputed"]
LOST_BY = ["arithmetic: recomputed layers, or matrices cut thin (lessons 05 and 06)",
           "tensor traffic, which nothing hides (lesson 06)", "the pipeline's bubble (lesson 07)",
           "keys and values passed around (lesson 08)", "tokens on their way to experts (lesson 09)",
           "data traffic that backward does not hide (lessons 04 and 05)", "the optimizer's reads and writes (lesson 05)",
           "messages between stages (lesson 07)"]
UNSAID = {"unsaid": ("choose", -1.0)}           # nothing is chosen for the reader, and none of the resources has this place
BOUND = ["arithmetic (lesson 01)", "the HBM, by what is computed again or updated (lessons 01 and 05)",
         "the link in the node (lessons 06 and 08)", "the network (lessons 03, 04 and 09)", "the pipeline's bubble (lesson 07)"]


def bars(left, right, rows, words) -> dict:
    """Columns of two bars in pieces, cut at the picture's edge."""
    left, right = np.ravel(np.minimum(left, END)), np.ravel(np.minimum(right, END))
    return {"left": left, "right": right, "middle": fig.midpoint(left, right), "y": np.repeat(rows, len(words)),
            "layout": np.repeat(["yours", "the planner's"], len(words)).tolist()}


def names(left, right, words) -> list:
    """The pieces' names where there is room for them."""
    there = np.where(fig.has_room(np.minimum(left, END), np.minimum(right, END), ROOM), 1.0, 0.0)
    return [select(there[row][i], ["", word]) for row in range(2) for i, word in enumerate(words)]


class LayoutExam(Widget):
    question = "Can you lay out a job that you have never seen?"
    seed = Number("Spec number", 2026, 1, exam.MOST_SPECS, stops=100, log=False, whole=True,
                  help="1 to 99 are warm-ups: small and dense")
    tp = Choice("Tensor ranks", degrees(1, 2, 4, 8, 16, 32, 64), "1", more=LAYOUT)
    pp = Choice("Pipeline stages", degrees(1, 2, 4, 8, 16, 32, 64), "1", more=LAYOUT)
    cp = Choice("Context ranks", degrees(1, 2, 4, 8, 16, 32, 64), "1", more=LAYOUT)
    ep = Choice("Expert ranks", degrees(1, 2, 4, 8, 16, 32, 64, 128, 256), "1", more=LAYOUT)
    zero = Choice("ZeRO stage", degrees(0, 1, 2, 3), "1", more=LAYOUT)
    micro_batch = Choice("Micro-batch", degrees(*planner.MICRO_BATCHES), "1", more=LAYOUT)
    recompute = Choice("Recompute", {"none": ("nothing", 0.0), "full": ("every layer", 2.0)}, "none", more=LAYOUT)
    memory = Number("Memory of your fullest GPU", 40e9, 1e9, 400e9, family="bytes", more=ESTIMATES)
    binds = Choice("What binds the best layout", UNSAID | {key: (key, float(i)) for i, key in enumerate(exam.RESOURCES)}, "unsaid",
                   more=ESTIMATES)
    days = Number("Days the best layout takes", 30, 1, 1000, more=ESTIMATES)
    handed_in = Switch("Hand in, and see the planner's answer", more=HAND_IN, until="seed")

    sections = (LAYOUT, ESTIMATES, HAND_IN)
    paper = {"seed": "seed", "done": "handed_in", "points": "points", "most": exam.FULL_MARKS,
             "draws": [("Another spec", exam.WARM_UPS, exam.MOST_SPECS), ("A warm-up", 1, exam.WARM_UPS - 1)]}
    presets = {
        "The class's: spec 2026": {}, "A warm-up: spec 8": {"seed": 8},
        "Tensor 8 by reflex: 1917": {"seed": 1917, "tp": 8, "pp": 4, "ep": 8, "memory": 60e9, "days": 100,
                                     "binds": "pipeline bubble", "handed_in": "on"},
        "Worked below: 1917": {"seed": 1917, "tp": 4, "pp": 2, "ep": 8, "memory": 55e9, "binds": "in-node link", "days": 65,
                               "handed_in": "on"}}
    break_it = "Hand in a layout that never starts: what must the axes divide, and what must one GPU hold?"
    assumptions = (
        "Specs are drawn by a seeded generator, the same in every browser. Both layouts are costed by the planner's model of a step, "
        "with bf16 Adam and fused attention; the schedule, and whether experts are cut by tensor ranks, are the fastest that "
        "fit yours. Failures and data loading are left out.")
    formula = (
        "$$\\text{pace} = 10 - \\left\\lfloor \\frac{\\ln (T_{yours} / T_{planner's})}{\\ln 1.07} \\right\\rfloor, \\qquad "
        "\\text{estimate} = 5 - \\left\\lfloor \\frac{\\max(e/x,\\; x/e) - 1}{0.1} \\right\\rfloor$$\n\nwith your estimate $e$ of "
        "$x$, and nothing below 0. Two points for a layout that can be built, three more if it fits. Five for what binds, three "
        "for a resource that costs at least half as much, where arithmetic counts as 5 % of the step.")

    # -- the engine -------------------------------------------------------------------------------------------------
    @once
    def job(self):
        return exam.spec(self.seed)

    def choice(self):
        return exam.Choice(*(getattr(self, name) for name in CHOICES))

    @once
    def found(self):
        return exam.paper(self.job(), self.choice(), self.handed_in)

    @once
    def marks(self):
        return exam.points(self.found(), self.memory, self.binds, self.days)

    def data(self):
        """Whole data ranks: none where the other axes ask for more GPUs than there are."""
        ranks = exam.data_ranks(self.job(), self.tp, self.pp, self.cp)
        return np.where(ranks < 1, 0.0, ranks)

    def misfit(self):
        """What the fault of an illegal layout is in numbers, by ``missions.FAULTS``."""
        job, count = self.job(), lambda value: show(value, "count")
        sequences, stages = f"{count(job.batch)} sequences", f"{count(self.pp)} stages"
        experts = choose(job.model.experts > 0, f"{count(job.model.experts)} experts", "a dense model")
        return select(self.found().fault, [
            f"{count(self.tp)} tensor ranks for {count(job.model.heads)} heads", f"{stages} for {count(job.model.layers)} layers",
            f"axes of {count(exam.mesh_ranks(self.tp, self.pp, self.cp))} ranks for {count(job.gpus)} GPUs",
            f"{count(self.data())} data ranks for {sequences}",
            f"micro-batches of {count(self.micro_batch)} for {sequences} on {count(self.data())} data ranks",
            f"{count(self.cp)} context ranks for {count(job.seq)} tokens", f"chunks for {stages}", f"{sequences} for {stages}",
            f"{count(self.ep)} expert ranks for {experts}",
            f"{count(self.ep)} expert ranks for {count(job.gpus)} GPUs in {stages}"])

    def shows_mine(self):
        return self.handed_in & self.found().legal

    def revealed(self, text):
        """What nobody sees before the examination is handed in."""
        return choose(self.handed_in, text, "–")

    def mine(self, text):
        """The same of a layout that may be none."""
        return choose(self.shows_mine(), text, "–")

    # -- what is drawn ----------------------------------------------------------------------------------------------
    def sizes(self):
        return [self.pp, self.data(), self.cp, self.tp]

    def ways(self):
        """How the groups of each of them send."""
        return exam.crosses(self.job(), self.tp, self.pp, self.cp)

    @part("seed", *AXES[:3], shown=False)
    def stages(self):
        return mesh_row(self.sizes()[0], self.ways()[0])

    @part("seed", *AXES[:3], shown=False)
    def replicas(self):
        return mesh_row(self.sizes()[1], self.ways()[1])

    @part("seed", *AXES[:3], shown=False)
    def pieces(self):
        return mesh_row(self.sizes()[2], self.ways()[2])

    @part("seed", *AXES[:3], shown=False)
    def shards(self):
        return mesh_row(self.sizes()[3], self.ways()[3])

    @part("seed", *AXES[:3])
    def mesh(self):
        sizes, ways = np.stack(self.sizes()), np.stack(self.ways())
        words = {"n": show(sizes, "count"), "way": select(ways, ["in the node", "across nodes", "nothing to send"]),
                 "cut": select(np.where(sizes > MOST_BOXES, 1.0, 0.0), ["", f", {MOST_BOXES} drawn"])}
        names = ["Pipeline stages", "in each of them data ranks", "in each of them context ranks", "in each of them tensor ranks"]
        return {"y": MESH_Y, "ranks": sizes,
                "label": phrase("{name}: {n}, {way}{cut}", name=select(np.arange(4), names), **words),
                "short": phrase("{name} {n}, {way}{cut}", name=select(np.arange(4), ["PP", "DP", "CP", "TP"]), **words)}

    def shown_of(self, both):
        """Figures of the reader's layout and of the planner's, 0 where they are not shown."""
        there = np.stack([self.shows_mine(), self.handed_in])
        return np.where(there[:, None] > 0, both, 0.0)

    @part("seed", *CHOICES, "handed_in")
    def memories(self):
        size = self.shown_of(self.found().parts_bytes[:2])
        left, right = fig.end_to_end(fig.filled(size, self.job().hbm_bytes))
        return {**bars(left, right, MEMORY_Y, PARTS), "ink": np.where(np.ravel(size) > 0, 1.0, 0.0), "bytes": np.ravel(size),
                "part": PARTS * 2, "name": names(left, right, PARTS)}

    def share(self):
        """How much of a GPU each layout takes; 0 where it is not shown."""
        return fig.filled(np.sum(self.shown_of(self.found().parts_bytes[:2]), axis=-1), self.job().hbm_bytes)

    @part("seed", *CHOICES, "handed_in")
    def over(self):
        return {"y": MEMORY_Y, "left": np.ones(2), "right": np.maximum(1.0, np.minimum(self.share(), END)),
                "red": np.where(self.share() > 1, 1.0, 0.0)}

    @part("seed", "memory")
    def estimate(self):
        share = fig.filled(self.memory, self.job().hbm_bytes)
        return {"x": np.minimum(share, END), "share": share, "label": f"you say {show(self.memory, 'bytes')}"}

    @part("seed", *CHOICES, "handed_in")
    def times(self):
        seconds = self.shown_of(self.found().times_s[:2])
        left, right = fig.end_to_end(fig.filled(seconds, self.found().step_s[1]))
        return {**bars(left, right, TIME_Y, TERMS), "ink": np.where(np.ravel(seconds) > 0, 1.0, 0.0),
                "seconds": np.ravel(seconds), "term": TERMS * 2, "name": names(left, right, TERMS)}

    @part("seed", *CHOICES, "handed_in")
    def rows(self):
        """What stands above and behind each bar: yours and the planner's memory, then their steps."""
        sizes, steps = np.sum(self.found().parts_bytes[:2], axis=-1), self.found().step_s
        time_end = fig.filled(np.sum(self.shown_of(self.found().times_s[:2]), axis=-1), self.found().step_s[1])
        unbuilt = choose(self.handed_in, "cannot be built", "")
        titles = [choose(self.shows_mine(), f"yours: {self.named(0)}", "yours"),
                  choose(self.handed_in, f"the planner's: {self.named(1)}", "the planner's")]
        ends = np.maximum(np.append(self.share(), time_end), 1.0)
        return {"y": np.append(MEMORY_Y, TIME_Y), "x": np.minimum(ends, END), "title": [*titles, "yours", "the planner's"],
                "short": ["yours", "the planner's"] * 2,
                "label": [choose(self.shows_mine(), show(sizes[0], "bytes"), unbuilt),
                          choose(self.handed_in, show(sizes[1], "bytes"), ""),
                          choose(self.shows_mine(), show(steps[0], "seconds"), unbuilt),
                          choose(self.handed_in, show(steps[1], "seconds"), "")]}

    def figure(self, sources):
        p = fig.plot((-0.01, 1.6), (0.1, 9.4), height=610)
        fig.bare(p)
        color = fig.COLOR
        draw_mesh(p, sources, MESH_Y)
        for width, label in (("wide", "label"), ("narrow", "short")):
            fig.only(width, p.text(0, "y", text=label, source=sources["mesh"], y_offset=-24, **fig.TEXT))
        for rows in (MEMORY_Y, TIME_Y):         # where the bars will be
            p.quad(left=0, right=1, bottom=rows - 0.2, top=rows + 0.2, fill_color=None, line_color=color["axis"], line_dash="dotted")
        p.hbar(y="y", left="left", right="right", height=0.4, source=sources["memories"], fill_color=color["hbm"], fill_alpha=0.25,
               line_color=color["hbm"], line_width=1.5, line_alpha="ink")
        p.hbar(y="y", left="left", right="right", height=0.4, source=sources["over"],
               **fig.OVER | {"line_alpha": "red"})
        hue = fig.hues("term", HUES)
        p.hbar(y="y", left="left", right="right", height=0.4, source=sources["times"], fill_color=hue, fill_alpha=0.3, line_color=hue,
               line_alpha="ink")
        p.segment(1, MEMORY_Y - 0.27, 1, MEMORY_Y + 0.27, line_color=color["ink"], line_width=2, line_dash=[6, 4])
        above = float(MEMORY_Y[0] + 0.8)
        p.scatter("x", above, source=sources["estimate"], marker="inverted_triangle", size=11, color=color["accent"])
        p.text("x", above, text="label", source=sources["estimate"], x_offset=9, **fig.TEXT)
        p.text(1, MEMORY_Y[1] - 0.5, text=["its HBM"], text_align="center", **fig.LABEL)
        p.text([0, 0], [MEMORY_Y[0] + 0.8, TIME_Y[0] + 0.8], text=["Memory of the fullest GPU", "One step"], **fig.BOLD)
        for width, title in (("wide", "title"), ("narrow", "short")):
            fig.only(width, p.text(0, "y", text=title, source=sources["rows"], y_offset=-26, **fig.LABEL))
        p.text("x", "y", text="label", source=sources["rows"], x_offset=8, **fig.BOLD)
        fig.only("wide", *(p.text("middle", "y", text="name", source=sources[name], text_align="center", **fig.TEXT)
                           for name in ("memories", "times")))
        return p

    # -- what is given ----------------------------------------------------------------------------------------------
    @readout("Model", given=True)
    def model(self):
        size, active = show(self.job().params, "params"), show(self.job().active_params, "params")
        return choose(self.job().model.experts > 0, f"{size} parameters, {active} a token: a mixture of experts", f"{size} parameters, dense")

    @readout("Layers", given=True)
    def layers(self):
        return f"{show(self.job().model.layers, 'count')} of width {show(self.job().model.hidden, 'count')}"

    @readout("Attention", given=True)
    def attention(self):
        m = self.job().model
        return f"{show(m.heads, 'count')} heads of {exam.HEAD_DIM}, {show(m.kv_heads, 'count')} for keys and values"

    @readout("MLP", given=True)
    def mlp(self):
        m = self.job().model
        return choose(m.experts > 0, f"{show(m.experts, 'count')} gated experts of width {show(m.expert_ffn, 'count')}, "
                      f"{show(m.top_k, 'count')} a token", f"gated, width {show(m.ffn, 'count')}")

    @readout("Vocabulary", given=True)
    def vocabulary(self):
        return show(self.job().model.vocab, "count")

    @readout("Cluster", given=True)
    def cluster(self):
        return f"{show(self.job().gpus, 'count')} × {self.job().at.gpu.name}, {show(self.job().at.gpu.gpus_per_node, 'count')} in a node"

    @readout("One GPU", given=True)
    def one_gpu(self):
        return f"{show(self.job().hbm_bytes, 'bytes')} of HBM, {show(self.job().at.peak_flops_per_s, 'flops_per_s')} dense bf16"

    @readout("Wires, one way", given=True)
    def wires(self):
        gpu = self.job().at.gpu
        return f"{show(gpu.link_bytes_per_s, 'bytes_per_s')} in the node, {show(gpu.nic_bytes_per_s, 'bytes_per_s')} out of it"

    @readout("One step", given=True)
    def a_step(self):
        job = self.job()
        return f"{show(job.batch, 'count')} sequences of {show(job.seq, 'count')}: {show(job.step_tokens, 'tokens')}"

    @readout("The run", given=True)
    def the_run(self):
        return f"{show(self.job().tokens, 'tokens')}, {self.job().recipe.name}"

    # -- what comes out ---------------------------------------------------------------------------------------------
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
        return choose(self.found().legal, f"{select(a.schedule[0], planner.SCHEDULE_NAMES)}{cut}", "cannot be built")

    @readout("Points")
    def points(self):
        return self.scored(0)

    @readout("Built, and fits")
    def built(self):
        return self.scored(0, 2), self.lost(0, 2)

    @readout("Pace")
    def pace(self):
        return self.scored(2, 3)

    @readout("Memory")
    def memory_points(self):
        return self.scored(3, 4)

    @readout("What binds")
    def binding_points(self):
        return self.scored(4, 5)

    @readout("Days")
    def days_points(self):
        return self.scored(5, 6)

    @readout("MFU, yours and the planner's")
    def mfu(self):
        yours, planners = (show(self.found().mfu[i], "percent") for i in range(2))
        return choose(self.handed_in, f"{choose(self.shows_mine(), yours, '–')}, {planners}", "–")

    def named(self, place):
        """A layout in words."""
        a = self.found().layouts
        axes = [f"{name.upper()} {show(getattr(a, name)[place], 'count')}" for name in ("tp", "pp", "cp", "dp")]
        ep = choose(a.ep[place] > 1, f" × EP {show(a.ep[place], 'count')}", "")
        return (f"{' × '.join(axes)}{ep}, ZeRO {show(a.zero[place], 'count')}, micro-batch {show(a.micro_batch[place], 'count')}, "
                f"{select(a.schedule[place], planner.SCHEDULE_NAMES)}, {select(a.recompute[place], RECOMPUTED)}")

    @regime()
    def full_marks(self):
        most = show(exam.FULL_MARKS, "count")
        return self.handed_in & (np.sum(self.marks()) >= exam.FULL_MARKS), (
            f"Full marks, {most} of {most}: {self.named(0)} takes {show(self.found().step_s[0], 'seconds')} a step, "
            f"{show(self.found().ratio, 'times')} the planner's.")

    @regime(target=True)
    def never_starts(self):
        job, found = self.job(), self.found()
        unbuilt = (
            f"It never starts, {self.scored(0, 2)}: {select(found.fault, missions.FAULTS)}. You have {self.misfit()} (lesson 10).")
        too_large = (
            f"It never starts, {self.scored(0, 2)}: your fullest GPU needs {show(exam.used_bytes(found), 'bytes')} of "
            f"{show(job.hbm_bytes, 'bytes')}. State is cut by {choose(self.zero > 2, 'tensor ranks and stages', 'a higher ZeRO stage')}, "
            "activations by context and tensor ranks or by recomputing them (lessons 05 and 08).")
        return self.handed_in & ~found.fits, choose(found.legal, too_large, unbuilt)

    @regime()
    def slower(self):
        found = self.found()
        return self.shows_mine() & found.fits & self.lost(2, 3), (
            f"Pace, {self.scored(2, 3)}: your step takes {show(found.ratio, 'times')} the planner's. Most of the difference, "
            f"{show(found.lost_s, 'seconds')}, is {select(found.lost_by, LOST_BY)}.")

    @regime()
    def leaves_the_node(self):
        per_node = self.job().at.gpu.gpus_per_node
        return self.shows_mine() & (self.tp > per_node) & self.lost(2, 3), (
            f"Your {show(self.tp, 'count')} tensor ranks leave the node of {show(per_node, 'count')}: four collectives a layer then go "
            "through the network cards (lessons 03 and 06).")

    @regime()
    def memory_missed(self):
        parts = self.found().parts_bytes[0]
        kinds = ", ".join(f"{name} {show(parts[i], 'bytes')}" for i, name in enumerate(PARTS))
        return self.shows_mine() & self.lost(3, 4), (
            f"Memory, {self.scored(3, 4)}: you said {show(self.memory, 'bytes')}, your layout takes "
            f"{show(exam.used_bytes(self.found()), 'bytes')} ({kinds}; lessons 01 and 05).")

    @regime()
    def binding_missed(self):
        found = self.found()
        share = show(np.max(found.losses), "percent")
        why = choose(found.binding > 0, f"it costs {share} of the best step",
                     f"nothing else costs more than {share} of the best step")
        return self.lost(4, 5), f"What binds, {self.scored(4, 5)}: it is {select(found.binding, BOUND)}, for {why}."

    @regime()
    def days_missed(self):
        job = self.job()
        return self.lost(5, 6), (
            f"Days, {self.scored(5, 6)}: you said {show(self.days, 'count')}, the best layout takes {show(self.found().days, 'count')}. "
            f"That is 6 × ({show(exam.multiplied_params(job), 'params')} parameters without the input embedding + "
            f"{show(exam.attention_params(job), 'params')} for attention) × {show(job.tokens, 'tokens')} at "
            f"{show(self.found().mfu[1], 'percent')} of {show(job.gpus, 'count')} peaks (lesson 01).")

    # -- to take along ----------------------------------------------------------------------------------------------
    @document("Your result", "examination.txt")
    def result(self):
        text = (f"System ML, examination {plain(self.seed)}: {self.scored(0)} points\n"
                f"built and fits {self.scored(0, 2)} · pace {self.scored(2, 3)} · memory {self.scored(3, 4)} · "
                f"what binds {self.scored(4, 5)} · days {self.scored(5, 6)}\n"
                f"mine       {self.mine(self.named(0))}\n"
                f"planner's  {self.named(1)}\n")
        return choose(self.handed_in, text, "Hand in first.")

    def summary(self):
        job = self.job()
        kind = choose(job.model.experts > 0, "mixture of experts", "dense model")
        asked = (f"Spec {plain(self.seed)} is a {kind} of {show(job.params, 'params')} parameters on {show(job.gpus, 'count')} "
                 f"{job.at.gpu.name} with {show(job.hbm_bytes, 'bytes')} each")
        yours = (f"TP {show(self.tp, 'count')} × PP {show(self.pp, 'count')} × CP {show(self.cp, 'count')} × EP "
                 f"{show(self.ep, 'count')}, ZeRO {show(self.zero, 'count')}")
        steps = choose(self.shows_mine(), f"takes {show(self.found().step_s[0], 'seconds')} a step", "cannot be built")
        cannot = f"which cannot be built with {self.misfit()}, "
        return choose(self.handed_in, f"{asked}; your {yours} {steps}, the planner's {self.named(1)} "
                      f"{show(self.found().step_s[1], 'seconds')}, and you have {self.scored(0)} points.",
                      f"{asked}; you chose {yours}, {choose(self.found().legal, '', cannot)}not handed in.")
