"""Every layout of a training job compared: the fastest one, what it costs, and why the next ones lose."""

import numpy as np

from engine import catalog, cost, export, own, planner
from widgets.kit import figure as fig
from widgets.kit import text
from widgets.kit.cluster import MOST_BOXES, OUT_OF_SIGHT, draw_mesh, mesh_row
from widgets.kit.controls import Choice, Number
from widgets.kit.own import CLUSTER_FIELDS, MODEL_FIELDS, PRECISIONS, OwnJob
from widgets.kit.text import choose, phrase, select, show, show_in
from widgets.kit.widget import document, hint, once, part, readout, regime

GPU_STOPS = [1, 2, 4, 8, *(m * 2**k for k in range(1, 13) for m in (8, 10, 12))]
DEEPSEEK_TOKENS = 15360 * 4096
BATCH_STOPS = sorted([DEEPSEEK_TOKENS, *(m * 2**k for k in range(12, 27) for m in (1, 1.25, 1.5))])
SEQ_STOPS = [2**k for k in range(10, 18)]
JOB = ("model", "gpus", "gpu", "batch_tokens", "seq", "recipe", "precision", *MODEL_FIELDS, *CLUSTER_FIELDS)
END = 1.36                                      # of the bars: what is longer is cut there
MESH_Y, MEMORY_Y = np.array([9.45, 8.55, 7.65, 6.75]), 5.6
TIMES_Y = np.array([4.3, 3.35, 2.4, 1.45, 0.5])
EACH_Y = np.repeat(TIMES_Y, 8)                  # of each term of each layout
PARTS = ["framework", "weights", "gradients", "optimizer", "activations"]
TERMS = ["arithmetic", "tensor traffic", "pipeline bubble", "context traffic", "expert traffic", "data traffic",
         "optimizer", "stage messages", "memory", "a tie"]
HUES = {"arithmetic": "compute", "tensor traffic": "link", "pipeline bubble": "idle", "context traffic": "link",
        "expert traffic": "network", "data traffic": "network", "optimizer": "hbm", "stage messages": "network"}
RESOURCES = ["arithmetic", "HBM bandwidth", "link bandwidth", "network bandwidth"]
EACH_TERM = TERMS[:8] * 5
RECOMPUTED = ["nothing recomputed", "", "all recomputed"]


class LayoutPlanner(OwnJob):
    question = "Which layout trains your model fastest, and why do the others lose?"
    model = Choice("Model", own.model_options(), "llama3-70b")
    gpus = Number("GPUs", 512, 1, 49152, stops=GPU_STOPS, whole=True)
    gpu = Choice("GPU", own.gpu_options(), "h100-sxm")
    batch_tokens = Number("Tokens of a step", 2**23, 2**12, 1.5 * 2**26, stops=BATCH_STOPS, family="tokens", more=True)
    seq = Number("Sequence", 8192, 1024, 131072, stops=SEQ_STOPS, whole=True, family="tokens", more=True)
    tokens = Number("Tokens of the run", 15e12, 1e9, 100e12, family="tokens", more=True, marks=(1e12, 2e12, 14.8e12))
    recipe = Choice("Optimizer recipe", list(catalog.recipes().values()), "bf16-adam", more=True)
    precision = Choice("Matrix products in", PRECISIONS, "bf16", more=True)
    price = Number("Price of a GPU-hour", catalog.price("h100-sxm").dollars_per_hour, 0.2, 20, family="dollars", more=True,
                   marks=(2.0,))

    presets = {
        "8B on one node": {"model": "llama3.1-8b", "gpus": 8, "batch_tokens": 2**20, "tokens": 1e12}, "70B on 512": {},
        "405B on 16,384": {"model": "llama3.1-405b", "gpus": 16384, "batch_tokens": 2**24},
        "DeepSeek-V3 on 2,048 H800": {"model": "deepseek-v3", "gpus": 2048, "gpu": "h800", "batch_tokens": DEEPSEEK_TOKENS,
                                      "seq": 4096, "tokens": 14.8e12, "price": 2.0},
        "405B on one node": {"model": "llama3.1-405b", "gpus": 8, "batch_tokens": 2**20},
        "A 33B of my own": {"model": "own", "gpus": 64, "layers": 64, "hidden": 6144, "heads": 48, "batch_tokens": 2**22,
                            "ffn": 24576, "window": 4096, "windowed_layers": 32, "tokens": 2e12},
        "A MoE of my own": {
            "model": "own", "gpu": "own", "gpus": 256, "layers": 48, "hidden": 7168, "heads": 64, "kv_heads": 64,
            "experts": 64, "top_k": 8, "expert_ffn": 2048, "shared_experts": 1, "shared_ffn": 2048, "kv_lora": 512,
            "first_dense_layers": 2, "q_lora": 1536, "rope_dim": 64, "nope_dim": 128, "v_dim": 128, "window": 4096,
            "windowed_layers": 24}}
    break_it = "Take GPUs away from the 70B until no layout is left that fits."
    assumptions = (
        "Every legal tensor × pipeline × context × expert × data split, with ZeRO 0 to 3, micro-batches of 1 to 64, full "
        "recomputation or none and six schedules, each costed by the engine's one model of a step. Tensor ranks stand "
        "innermost, then context, data and pipeline. Failures, data loading and stragglers are left out. An own GPU "
        "reaches the shares of its peak and bandwidth that the H100 SXM reaches.")
    formula = (
        "$$T = T_{compute} + T_{tensor} + T_{bubble} + T_{context} + T_{expert} + T_{optimizer} + T_{messages} + "
        "T_{data}^{exposed}$$\n\nThe search takes the smallest $T$ among the layouts whose fullest stage fits the HBM. "
        "MFU counts model FLOPs with causal attention; HFU adds what is computed again.")

    # -- the engine -------------------------------------------------------------------------------------------------
    @once
    def case(self):
        machines = self.cluster()
        return planner.Case(self.job_model(), machines.chip, machines.wires, machines.hbm_bytes, self.recipe, self.gpus,
                            planner.sequences(self.batch_tokens, self.seq), self.seq)

    @once
    def outcome(self):
        return planner.outcome(self.case(), self.cluster().peak_flops_per_s)

    def layouts(self):
        return self.outcome().found.layouts

    def run(self):
        return planner.run_time_s(self.tokens, self.outcome().tokens_per_s)

    def dollars(self):
        return cost.run_dollars(planner.gpu_hours(self.run(), self.gpus), self.price)

    def none_legal(self):
        return self.outcome().found.legal < 1

    def none_fits(self):
        return self.outcome().found.fitting < 1

    # -- what is drawn ----------------------------------------------------------------------------------------------
    @part(*JOB, shown=False)
    def stages(self):
        return self.boxes(0, self.layouts().pp[0])

    @part(*JOB, shown=False)
    def replicas(self):
        a = self.layouts()
        return self.boxes(1, a.dp[0])

    @part(*JOB, shown=False)
    def pieces(self):
        return self.boxes(2, self.layouts().cp[0])

    @part(*JOB, shown=False)
    def shards(self):
        return self.boxes(3, self.layouts().tp[0])

    def boxes(self, row, count):
        return mesh_row(count, planner.crosses(self.case(), self.layouts())[row])

    @part(*JOB)
    def mesh(self):
        a, wires = self.layouts(), [select(way, ["in the node", "across nodes", "nothing to send"])
                                    for way in planner.crosses(self.case(), self.layouts())]
        none = self.none_legal()
        pp, dp, cp, tp = (choose(none, "–", show(np.where(none, 1.0, axis[0]), "count")) for axis in (a.pp, a.dp, a.cp, a.tp))
        cuts = [choose(axis[0] > MOST_BOXES, f", {MOST_BOXES} of {size} drawn", "")
                for axis, size in zip((a.pp, a.dp, a.cp, a.tp), (pp, dp, cp, tp))]
        names = [f"Pipeline {pp}: ", f"in each stage data {dp}: ", f"in each replica context {cp}: ", f"for each of its pieces tensor {tp}: "]
        shorts = [f"PP {pp} ", f"DP {dp} ", f"CP {cp} ", f"TP {tp} "]
        return {"y": MESH_Y, "label": [f"{names[i]}{wires[i]}{cuts[i]}" for i in range(4)],
                "short": [f"{shorts[i]}{wires[i]}{cuts[i]}" for i in range(4)]}

    @part(*JOB)
    def memory(self):
        size, hbm = self.outcome().parts_bytes[0], self.cluster().hbm_bytes
        left, right = fig.end_to_end(fig.filled(size, hbm))
        thin = fig.filled(size, hbm) < 0.17
        return {"left": np.minimum(left, END), "right": np.minimum(right, END), "middle": fig.midpoint(left, right),
                "bytes": size, "part": PARTS, "name": [choose(thin[i], "", PARTS[i]) for i in range(5)]}

    @hint("memory")
    def memory_said(self):
        part = self.memory()
        return phrase("{part}: {bytes}", part=select(np.arange(5), PARTS), bytes=show(part["bytes"], "bytes"))

    @part(*JOB)
    def room(self):
        share = np.where(self.none_legal(), 0.0, fig.filled(self.outcome().total_bytes[0], self.cluster().hbm_bytes))
        return {"x": np.maximum(np.minimum(share, END), 1.0),
                "label": f"{self.fullest()[0]} of {show(self.cluster().hbm_bytes, 'bytes')}", "short": self.fullest()[0]}

    @part(*JOB)
    def over(self):
        share = fig.filled(self.outcome().total_bytes[0], self.cluster().hbm_bytes)
        share = np.where(self.none_legal(), 0.0, share)
        return {"left": 1.0, "right": np.where(share > 1, np.minimum(share, END), 1.0), "red": np.where(share > 1, 1.0, 0.0)}

    @part(*JOB)
    def times(self):
        seconds = self.outcome().times_s
        left, right = fig.end_to_end(fig.filled(seconds, self.outcome().step_s[0]))
        return {"left": np.ravel(np.minimum(left, END)), "right": np.ravel(np.minimum(right, END)), "y": EACH_Y,
                "bottom": EACH_Y - 0.17, "top": EACH_Y + 0.17, "seconds": np.ravel(seconds),
                "term": EACH_TERM}

    @hint("times")
    def times_said(self):
        seconds = self.times()["seconds"]
        return phrase("{term}: {seconds} of the step", term=select(np.tile(np.arange(8), 5), TERMS[:8]),
                      seconds=show(seconds, "seconds"))

    @part(*JOB)
    def winner_terms(self):
        share = fig.filled(self.outcome().times_s[0], self.outcome().step_s[0])
        left, right = fig.end_to_end(share)
        return {"x": fig.midpoint(left, right), "seconds": self.outcome().times_s[0],
                "name": [choose(share[i] < 0.2, "", TERMS[i]) for i in range(8)]}

    @part(*JOB)
    def rows(self):
        a = self.layouts()
        counts = {name: show(getattr(a, name), "count") for name in ("tp", "pp", "cp", "dp", "ep", "zero", "micro_batch")}
        return {"y": TIMES_Y, "step_s": self.outcome().step_s, "total_bytes": self.outcome().total_bytes,
                "layout": phrase("TP {tp} · PP {pp} · CP {cp} · DP {dp} · EP {ep} · ZeRO {zero} · micro-batch {micro_batch} · "
                                 "{schedule} · {recompute}", schedule=select(a.schedule, planner.SCHEDULE_NAMES),
                                 recompute=select(a.recompute, RECOMPUTED), **counts),
                "short": phrase("TP{tp} PP{pp} CP{cp} DP{dp} EP{ep} Z{zero}", **{n: counts[n] for n in list(counts)[:6]})}

    @part(*JOB)
    def winner(self):
        step_s = self.outcome().step_s[:1]
        return {"x": fig.filled(step_s, step_s), "y": TIMES_Y[:1], "label": phrase("{s} a step", s=show(step_s, "seconds"))}

    @part(*JOB)
    def runners_up(self):
        found = self.outcome()
        slower, lost = show(found.slower_by[1:], "percent"), select(found.lost_by[1:], TERMS)
        end = np.minimum(fig.filled(found.step_s[1:], found.step_s[0]), END)
        return {"x": np.where(self.none_fits(), OUT_OF_SIGHT, end), "y": TIMES_Y[1:], "slower_by": found.slower_by[1:],
                "label": phrase("+{slower}: {lost}", slower=slower, lost=lost), "short": phrase("+{slower}", slower=slower)}

    @part(*JOB)
    def too_large(self):
        """Where nothing fits the rows are ranked by what they need."""
        found = self.outcome()
        end = np.minimum(fig.filled(found.step_s[1:], found.step_s[0]), END)
        need = show(found.total_bytes[1:], "bytes")
        return {"x": np.where(self.none_fits(), end, OUT_OF_SIGHT), "y": TIMES_Y[1:], "total_bytes": found.total_bytes[1:],
                "label": phrase("needs {need}", need=need), "short": need}

    def figure(self, sources):
        p = fig.plot((-0.01, 1.66), (0.1, 10.25), height=702)
        fig.bare(p)
        color = fig.COLOR
        draw_mesh(p, sources, MESH_Y)
        p.quad(left="left", right="right", bottom=MEMORY_Y - 0.2, top=MEMORY_Y + 0.2, source=sources["memory"],
               fill_color=color["hbm"], fill_alpha=0.25, line_color=color["hbm"], line_width=1.5)
        p.quad(left="left", right="right", bottom=MEMORY_Y - 0.2, top=MEMORY_Y + 0.2, source=sources["over"],
               **fig.OVER | {"line_alpha": "red"})
        p.segment(1, MEMORY_Y - 0.32, 1, MEMORY_Y + 0.32, line_color=color["ink"], line_width=2, line_dash=[6, 4])
        hue = fig.hues("term", HUES)
        p.quad(left="left", right="right", bottom="bottom", top="top", source=sources["times"], fill_color=hue, fill_alpha=0.3,
               line_color=hue)
        p.segment(1, TIMES_Y[-1] - 0.3, 1, TIMES_Y[0] + 0.3, line_color=color["axis"], line_dash="dotted")
        p.text(0, MEMORY_Y, text=["Memory of the fullest GPU"], y_offset=-26, **fig.BOLD)
        for width, label in (("wide", "label"), ("narrow", "short")):
            fig.only(width, p.text("x", MEMORY_Y, text=label, source=sources["room"], x_offset=8, **fig.BOLD))
        for width, label, short, loss in (("wide", "label", "layout", "label"), ("narrow", "short", "short", "short")):
            fig.only(width, p.text(0, "y", text=label, source=sources["mesh"], y_offset=-24, **fig.BOLD),
                     p.text(0, "y", text=short, source=sources["rows"], y_offset=-23, **fig.LABEL),
                     p.text("x", "y", text=loss, source=sources["runners_up"], x_offset=8, **fig.TEXT),
                     p.text("x", "y", text=loss, source=sources["too_large"], x_offset=8, **fig.TEXT))
        p.text("x", "y", text="label", source=sources["winner"], x_offset=8, **fig.BOLD)
        fig.only("wide", p.text("middle", MEMORY_Y, text="name", source=sources["memory"], text_align="center", **fig.TEXT),
                 p.text("x", TIMES_Y[0], text="name", source=sources["winner_terms"], text_align="center", **fig.TEXT))
        return p

    # -- the words --------------------------------------------------------------------------------------------------
    def said(self, value, family):
        """A figure of the winner; a dash where there is none."""
        return choose(self.none_legal(), "–", show(np.where(self.none_legal(), 1.0, value), family))

    @readout("Winner")
    def layout(self):
        a = self.layouts()
        tp, pp, cp, dp, ep = (self.said(axis[0], "count") for axis in (a.tp, a.pp, a.cp, a.dp, a.ep))
        experts = choose(a.ep[0] > 1, f" × EP {ep}", "")
        return f"TP {tp} × PP {pp} × CP {cp} × DP {dp}{experts}"

    @readout("Step")
    def step(self):
        return self.said(self.outcome().step_s[0], "seconds")

    @readout("MFU")
    def mfu(self):
        return self.said(self.outcome().mfu, "percent")

    @readout("HFU")
    def hfu(self):
        return self.said(self.outcome().hfu, "percent")

    @readout("Memory of the fullest GPU")
    def fullest(self):
        return self.said(self.outcome().total_bytes[0], "bytes"), self.none_fits()

    @readout("Tokens a second")
    def tokens_a_second(self):
        return self.said(self.outcome().tokens_per_s, "count")

    @readout("The run")
    def duration(self):
        return self.said(self.run(), "seconds")

    @readout("GPU-hours")
    def hours(self):
        return self.said(planner.gpu_hours(self.run(), self.gpus), "params")

    @readout("The bill")
    def bill(self):
        return self.said(self.dollars(), "dollars")

    @readout("Binds")
    def binds(self):
        share = self.said(planner.binding_share(self.outcome()), "percent")
        words = select(planner.binding(self.outcome()), [f"{term}, {share} of the step" for term in TERMS[:8]] + ["memory", "–"])
        return words, self.none_fits()

    @readout("A tenth faster takes")
    def ten_percent(self):
        needs = self.outcome().needed
        texts = [choose(needs[i] < planner.NEVER, f"{show(np.minimum(needs[i], 9.0), 'times')} the {RESOURCES[i]}", "") for i in range(4)]
        join = [choose(planner.any_before(needs, i), choose(needs[i] < planner.NEVER, " or ", ""), "") for i in range(4)]
        found = f"{texts[0]}{join[1]}{texts[1]}{join[2]}{texts[2]}{join[3]}{texts[3]}"
        return choose(np.min(needs) < planner.NEVER, found, "no one resource alone")

    @readout("Layouts compared")
    def compared(self):
        return f"{show(self.outcome().found.legal, 'count')}, {show(self.outcome().found.fitting, 'count')} fit"

    @regime(target=True)
    def nothing_fits(self):
        return self.none_fits() & ~self.none_legal(), (
            f"You found the memory wall: of {show(self.outcome().found.legal, 'count')} layouts none fits; the leanest takes "
            f"{self.said(self.outcome().total_bytes[0], 'bytes')} of {show(self.cluster().hbm_bytes, 'bytes')}. First "
            "response: more GPUs to shard over, or a recipe with fewer bytes a parameter (lesson 05).")

    @regime()
    def nothing_legal(self):
        return self.none_legal(), (
            f"No layout is legal: {show(self.gpus, 'count')} GPUs cannot be divided so that heads, layers and the "
            f"{show(planner.sequences(self.batch_tokens, self.seq), 'count')} sequences of a step come out whole. First "
            "response: a number of GPUs and of sequences with the same small factors.")

    @regime()
    def memory_costs_time(self):
        found = self.outcome().found
        share = planner.lost_to_memory(self.outcome())
        return (share > 0.02) & ~self.none_fits(), (
            f"Memory costs time here: with room without end the fastest layout would take "
            f"{self.said(found.free_s, 'seconds')} a step, {show(np.where(share > 0, share, 0.0), 'percent')} less.")

    @regime()
    def tight(self):
        left, hbm = planner.headroom(self.case(), self.outcome()), self.cluster().hbm_bytes
        return (fig.filled(self.outcome().total_bytes[0], hbm) > 0.97) & ~self.none_fits() & ~self.none_legal(), (
            f"Tight: the fullest GPU has {show(np.where(left > 0, left, 0.0), 'bytes')} of {show(hbm, 'bytes')} left, less than "
            "the estimate can be wrong by. First response: measure it, or take a layout with more room.")

    @regime()
    def hidden_traffic(self):
        found = self.outcome()
        factor = np.minimum(found.needed[0], planner.FACTORS[-1])
        waits = np.where(found.uncovered_s > 0, found.uncovered_s, 0.0)
        share = self.said(planner.binding_share(found), "percent")
        return (factor > 1.3) & (fig.filled(waits, found.step_s[0]) > 0.03) & (planner.binding(found) < 1), (
            f"More lies behind the arithmetic than shows: it takes {share} of the step, yet a step a tenth shorter "
            f"{choose(found.needed[0] < planner.NEVER, 'takes', 'is not to be had with')} {show(factor, 'times')} its speed. At "
            f"that pace {show(waits, 'seconds')} of {select(found.uncovered, TERMS)} no longer hide.")

    @regime()
    def too_thin(self):
        share = planner.waiting_share(self.outcome())
        return share > 0.35, (
            f"Spread too thin: {show(np.where(share > 0, share, 0.0), 'percent')} of even the best step is waiting for "
            "wires and bubbles. First response: more tokens in a step, or fewer GPUs.")

    # -- for other programs -----------------------------------------------------------------------------------------
    def settings(self, write):
        """The winner in another program's words."""
        run = planner.run(self.case(), self.layouts(), self.tokens, self.precision.narrow)
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

    def summary(self):
        cluster = f"{show(self.gpus, 'count')} {self.gpu.name}"
        no_fit = (f"None of {show(self.outcome().found.legal, 'count')} layouts for {self.model.name} fits {cluster}: the leanest, "
                  f"{self.layout()}, needs {self.fullest()[0]} of {show(self.cluster().hbm_bytes, 'bytes')} on the fullest GPU.")
        return choose(
            self.none_legal(), f"No layout of a step of {show(self.batch_tokens, 'tokens')} on {cluster} is legal.",
            choose(self.none_fits(), no_fit, (
                f"On {cluster} the best of {show(self.outcome().found.legal, 'count')} layouts for {self.model.name} is "
                f"{self.layout()}: a step of {show(self.batch_tokens, 'tokens')} takes {self.step()} at {self.mfu()} MFU, "
                f"{self.fullest()[0]} on the fullest GPU of {show(self.cluster().hbm_bytes, 'bytes')}, and "
                f"{show(self.tokens, 'tokens')} take {self.duration()} and {self.bill()}.")))
