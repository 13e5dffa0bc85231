"""Every layout of a training job compared: the fastest one, what it costs, and why the next ones lose."""

import numpy as np

from engine import catalog
from engine.base import ops
from engine.mechanism import cost
from engine.step import cases, near, own, planner, search
from engine.step.constraints import AxisLimits
from widgets.composition.planner.chosen import Chosen
from widgets.composition.planner.cloud import Cloud
from widgets.composition.planner.next_best import NextBest
from widgets.composition.planner.shared import CHOICES, COUNTED, LIMITED, NARROW, WIDE, WITHIN
from widgets.composition.planner.words import Words
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, degrees
from widgets.kit.drawing import figure as fig
from widgets.kit.guide import Light, Step
from widgets.kit.measured import Dots
from widgets.kit.own_job import PRECISIONS, OwnJob
from widgets.kit.text import show
from widgets.kit.widget import once

GPU_STOPS = [1, 2, 4, 8, *(m * 2**k for k in range(1, 13) for m in (8, 10, 12))]
DEEPSEEK_TOKENS = 15360 * 4096
BATCH_STOPS = sorted([DEEPSEEK_TOKENS, *(m * 2**k for k in range(12, 27) for m in (1, 1.25, 1.5))])
SEQ_STOPS = [2**k for k in range(10, 18)]
UNIFORM = list(catalog.uniform_recipes().values())
LIMITS = "your framework and limits"  # the fold of these controls


def _ends(label: str, *sizes: int) -> tuple[Choice, Choice]:
    """Two controls that limit an axis, or leave it to the search."""
    least, most = (
        Choice(f"{label}, {end}", {"any": ("any", 0.0)} | degrees(*sizes), "any", more=LIMITS)
        for end in ("at least", "at most")
    )
    return least, most


# the parts of the picture, in planner/, from the last to the first
class LayoutPlanner(Words, NextBest, Chosen, Cloud, OwnJob):
    question = "Which layout trains your model fastest, and why do the others lose?"
    in_page = True
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
    recipe = Choice(
        "Optimizer recipe",
        {"own": ("the framework’s own", 0.0)}
        | {each.key: (each.name, float(place)) for place, each in enumerate(UNIFORM, 1)},
        "own",
        more=True,
    )
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
        {"any": ("one of these", LIMITED.of_any.framework)}
        | {each.key: (each.name, float(place)) for place, each in enumerate(LIMITED.able, 1)}
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
    leave = Number(
        "Memory left free",
        0.0,
        0.0,
        0.3,
        family="percent",
        stops=31,
        log=False,
        more=LIMITS,
        marks=(0.05, 0.1),
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
        "cuts": Light("how the layout cuts the work", ("mesh", "zoom", "boxes", "title")),
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
        "1 to 64, full recomputation or none and eight schedules, each costed by the engine's one model of a "
        "step; of them those that one of the frameworks can run, unless you choose otherwise. A framework "
        "that you choose is counted with its own state and program; without one, 16 bytes a parameter, for "
        "mixed-precision Adam. Tensor ranks stand innermost, then context, data and pipeline. Failures, data "
        "loading and stragglers are left out. A GPU of your own is taken to reach the same shares of its "
        "peak and bandwidth as the H100 SXM."
    )
    formula = (
        "$$\\tau = \\tau_\\text{compute} + \\tau_\\text{tensor} + \\tau_\\text{bubble} + "
        "\\tau_\\text{context} + \\tau_\\text{expert} + \\tau_\\text{optimizer} + \\tau_\\text{messages} + "
        "\\tau_\\text{exposed data}$$\n\nThe search takes the smallest $\\tau$ among the layouts whose "
        "fullest stage fits the HBM. MFU counts model FLOPs with causal attention; HFU adds what is computed "
        "again."
    )

    @once
    def cluster(self):
        """The chosen GPU with its node, of whose memory a share stays free."""
        found = self.machines()
        return found._replace(hbm_bytes=found.hbm_bytes * (1.0 - self.leave))

    @once
    def counted_recipe(self):
        """The recipe whose bytes are counted: the one chosen, or the framework's."""
        named = len(COUNTED.recipes) - 1.0 + self.recipe
        return ops.select(np.where(self.recipe < 1, self.framework, named), [*COUNTED.recipes, *UNIFORM])

    @once
    def sequences(self):
        """The sequences of a step: as many as the tokens give, or near them a number that layouts divide."""
        return near.snapped(cases.sequences(self.batch_tokens, self.seq), self.gpus)["sequences"]

    def whole(self):
        """For each framework, whether it cannot cut the model into stages."""
        return tuple(
            ops.each(self.model, lambda option, able=able: float(option.key in able.whole))
            for able in LIMITED.able
        )

    @once
    def case(self):
        machines = self.cluster()
        return cases.Case(
            self.job_model(),
            machines.chip,
            machines.wires,
            machines.hbm_bytes,
            self.counted_recipe(),
            self.gpus,
            self.sequences(),
            self.seq,
            AxisLimits(*(getattr(self, name) for name in WITHIN), LIMITED.able, self.whole()),
            COUNTED.jobs,
            lookup(np.array(COUNTED.places).ravel(), 2.0 * self.framework + self.precision.narrow),
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
        named = (self.framework > 0) & (self.framework < LIMITED.of_any.framework)
        return named | (sum(getattr(self, name) for name in WITHIN[1:]) > 0)

    def none_legal(self):
        return self.outcome().found.legal < 1

    def none_fits(self):
        return self.outcome().found.fitting < 1

    def figure(self, sources):
        p = fig.plot((0, 1), (0, 1), height=WIDE)
        fig.bare(p)
        fig.taller_on_phone(p, NARROW)
        self.draw_cloud(p, sources)
        self.draw_chosen(p, sources)
        self.draw_next(p, sources)
        return p


LayoutPlanner.serve_as(__name__)
