"""How a training step is laid out over GPUs, whether that is legal, and what it costs: ``estimate``.

The axes, innermost first: tensor (tp), context (cp), data (dp), pipeline (pp). DP is what remains of the GPUs. Experts
are spread over ep groups of expert_tp GPUs, taken from the tensor, context and data ranks of a stage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from engine import catalog, check, flops
from engine.calibration import DEFAULT
from engine.hardware import Gpu
from engine.interconnect import Wires, wires
from engine.matmul import Chip, chip
from engine.memory import RECOMPUTE
from engine.pipeline import SCHEDULES, least_micro_batches
from engine.recipes import Recipe
from engine.shape import shape
from engine.step import Axes, Terms, overhead_bytes, sizes, stages_bytes, step

DEFAULT_RECIPE = "bf16-adam"
# What training software of a time did: the switches of a Job, by name.
SOFTWARE = {
    "modern": {"sequence_parallel": True, "flash": True, "overlap": True, "fused": True},
    "2022": {"sequence_parallel": True, "flash": False, "overlap": False, "fused": True},       # arXiv:2205.05198
    "2021": {"sequence_parallel": False, "flash": False, "overlap": False, "fused": False},     # arXiv:2104.04473
}
PRECISIONS = ("bf16", "fp16", "fp8", "fp32", "tf32")


@dataclass(frozen=True)
class Job:
    """What is to be done in a step, and how the software does it."""

    global_batch: int                       # sequences
    seq: int                                # tokens of each
    recipe: Recipe | None = None            # bytes of state; bf16 mixed Adam (16 bytes) unless said otherwise
    sequence_parallel: bool = True          # with tensor parallelism, shard norms and dropout too
    flash: bool = True                      # fused attention
    overlap: bool = True                    # data-parallel traffic (and interleaved stages' messages) behind arithmetic
    fused: bool = True                      # weight gradients summed inside their product; sent stage outputs freed
    gather_context: bool = False            # context parallelism by AllGather instead of a ring
    imbalance: float = 1.1                  # the fullest expert rank's load over the mean

    def __post_init__(self):
        _whole("global_batch", self.global_batch)
        _whole("seq", self.seq)
        check.between(1, 1000, imbalance=self.imbalance)


@dataclass(frozen=True)
class Layout:
    """Which GPU does what."""

    gpus: int
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    zero: int = 1
    micro_batch: int = 1
    recompute: str = "none"
    schedule: str = "1f1b"
    interleave: int = 1
    expert_tp: int = 1
    shard: int = 0                          # HSDP: GPUs that share one copy of the state under ZeRO; 0 for all

    @property
    def dp(self) -> int:
        return self.gpus // (self.tp * self.pp * self.cp)

    @property
    def stage_gpus(self) -> int:
        """GPUs that hold one pipeline stage, all replicas."""
        return self.gpus // self.pp


@dataclass(frozen=True)
class Machine:
    """One GPU at work in one precision, and the wires around it."""

    gpu: Gpu
    precision: str
    chip: Chip
    wires: Wires

    @property
    def peak_flops_per_s(self) -> float:
        return self.gpu.peak_flops_per_s(self.precision)


@lru_cache(256)
def machine(gpu, precision="bf16", gpus_per_node=None, nic_bytes_per_s=None, oversubscription=1.0, calibration=DEFAULT):
    """A catalogue GPU made ready; its node and NICs can be others than the usual ones. ValueError where it has no units
    for the precision: nothing falls back unasked."""
    gpu.peak_flops_per_s(precision)
    return Machine(gpu, precision, chip(gpu, precision, calibration),
                   wires(gpu, gpus_per_node, nic_bytes_per_s, oversubscription, calibration))


# -- legality --------------------------------------------------------------------------------------------------------
def _whole(name: str, value, at_least: int = 1) -> None:
    """As ``check.whole``, for one Python int, in a tenth of the time."""
    if value.__class__ is not int or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {value!r}")


def divisors(number: int) -> list[int]:
    """All divisors, ascending; of a number above 10¹⁰ those that are or leave a factor of at most 100,000."""
    small = [d for d in range(1, min(math.isqrt(number), 100_000) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def _nearest(value: int, legal) -> str:
    """The legal values on both sides of the one that was asked for, as text."""
    below = [v for v in legal if v < value]
    above = [v for v in legal if v > value]
    return " and ".join(str(v) for v in below[-1:] + above[:1]) or "none"


def _refuse(name: str, value, why: str, legal) -> None:
    raise ValueError(f"{name} must {why}, got {value}; nearest legal: {_nearest(value, legal)}")


def require_legal(model, job: Job, layout: Layout) -> None:
    """ValueError with the reason and the nearest legal values where the layout cannot be built."""
    a = layout
    _whole("gpus", a.gpus), _whole("tp", a.tp), _whole("pp", a.pp), _whole("cp", a.cp), _whole("ep", a.ep)
    _whole("micro_batch", a.micro_batch), _whole("interleave", a.interleave), _whole("expert_tp", a.expert_tp)
    _whole("zero", a.zero, 0), _whole("shard", a.shard, 0)
    if a.zero > 3:
        raise ValueError(f"zero must be one of 0, 1, 2, 3; got {a.zero!r}")
    if a.recompute not in RECOMPUTE:
        raise ValueError(f"recompute must be one of {', '.join(RECOMPUTE)}; got {a.recompute!r}")
    if a.schedule not in SCHEDULES:
        raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}; got {a.schedule!r}")
    if model.heads % a.tp:
        _refuse("tp", a.tp, f"divide the {model.heads} attention heads", divisors(model.heads))
    if a.pp * a.interleave > model.layers:
        _refuse("pp", a.pp, f"leave each of its {a.interleave} chunks a stage at least one of {model.layers} layers",
                range(1, model.layers // a.interleave + 1))
    ranks = a.tp * a.pp * a.cp
    if a.gpus % ranks:
        why = (f"be a multiple of tp × pp × cp = {a.tp} × {a.pp} × {a.cp} = {ranks}" if ranks <= a.gpus else
               f"be at least tp × pp × cp = {a.tp} × {a.pp} × {a.cp} = {ranks}")
        _refuse("gpus", a.gpus, why, [ranks * (a.gpus // ranks), ranks * (a.gpus // ranks + 1)][a.gpus < ranks:])
    _require_legal_batch(job, a)
    _require_legal_schedule(job, a)
    _require_legal_experts(model, a)
    if a.cp > 1 and job.seq % (2 * a.cp):
        _refuse("cp", a.cp, f"cut the sequence of {job.seq} in 2 × cp equal pieces", divisors(max(1, job.seq // 2)))
    if a.shard and (a.dp * a.cp) % a.shard:
        _refuse("shard", a.shard, f"divide the {a.dp * a.cp} data-parallel ranks", divisors(a.dp * a.cp))


def _require_legal_batch(job: Job, a: Layout) -> None:
    sequences, remainder = divmod(job.global_batch, a.dp)
    if remainder:
        _refuse("global_batch", job.global_batch, f"be a multiple of dp = {a.dp}",
                [a.dp * sequences, a.dp * (sequences + 1)][sequences < 1:])
    if sequences % a.micro_batch:
        _refuse("micro_batch", a.micro_batch, f"divide the {sequences} sequences of each data-parallel rank",
                divisors(sequences))


def _require_legal_schedule(job: Job, a: Layout) -> None:
    if a.interleave > 1 and not SCHEDULES[a.schedule].interleaved:
        raise ValueError(f"interleave must be 1 under schedule {a.schedule}, got {a.interleave}; nearest legal: "
                         "schedule interleaved")
    if SCHEDULES[a.schedule].interleaved and (a.interleave < 2 or a.pp < 2):
        raise ValueError("schedule interleaved must have pp and interleave of at least 2, got "
                         f"pp {a.pp} and interleave {a.interleave}; nearest legal: schedule 1f1b")
    if a.schedule == "dualpipe" and a.pp % 2:
        _refuse("pp", a.pp, "be even under schedule dualpipe", [a.pp - 1, a.pp + 1][a.pp < 2:])
    schedule = SCHEDULES[a.schedule]
    if schedule.least_per_stage and a.pp > 1:
        least = int(least_micro_batches(float(a.pp), schedule))
        micro_batches = job.global_batch // (a.dp * a.micro_batch)
        if micro_batches < least:
            raise ValueError(f"schedule {a.schedule} must have at least {least} micro-batches a step for {a.pp} stages, got "
                             f"{micro_batches}; nearest legal: global_batch {least * a.dp * a.micro_batch}")


def _require_legal_experts(model, a: Layout) -> None:
    if not model.experts:
        if a.ep > 1 or a.expert_tp > 1:
            raise ValueError(f"ep and expert_tp must be 1 for a model without experts, got {a.ep} and {a.expert_tp}; "
                             "nearest legal: 1")
        return
    if model.experts % a.ep:
        _refuse("ep", a.ep, f"divide the {model.experts} experts", divisors(model.experts))
    if a.stage_gpus % (a.ep * a.expert_tp):
        _refuse("ep", a.ep, f"times expert_tp ({a.expert_tp}) divide the {a.stage_gpus} GPUs of a stage",
                [d for d in divisors(a.stage_gpus) if model.experts % d == 0])
    if a.tp % a.expert_tp:
        _refuse("expert_tp", a.expert_tp, f"divide tp = {a.tp}", divisors(a.tp))


# -- the estimate ----------------------------------------------------------------------------------------------------
WHY_EXPOSED = {
    "tensor": "every product waits for the AllGather before it and the next for the ReduceScatter behind it",
    "pipeline_bubble": "the first micro-batch must reach the last stage, and the last come back",
    "context": "what remains of passing keys and values around behind the attention over the block at hand",
    "expert": "tokens must arrive before an expert can start, and come back before the next layer can",
    "data_exposed": "gradients and gathered weights beyond the arithmetic they hide behind, at least the last layer's",
    "optimizer": "one pass over this GPU's share of the state, at the speed of its memory",
    "other": "activations on their way between stages while nothing else is ready",
}


@dataclass(frozen=True)
class Estimate:
    """What a step costs; seconds in ``terms`` add up to ``step_s``."""

    model: object
    at: Machine
    job: Job
    layout: Layout
    terms: Terms

    @property
    def step_s(self) -> float:
        return self.terms.step_s

    @property
    def fits(self) -> bool:
        return self.terms.total_bytes <= self.at.gpu.hbm_bytes

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.job.global_batch * self.job.seq

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.step_s

    def model_flops_per_gpu_per_s(self, causal: bool = True) -> float:
        """Model FLOPs per GPU and second; causal attention counted as such, or over the whole sequence (PaLM,
        Megatron)."""
        per_token = float(flops.training_flops_per_token(shape(self.model), float(self.job.seq), causal))
        return per_token * self.tokens_per_s / self.layout.gpus

    def mfu(self, causal: bool = True) -> float:
        """Of the dense peak in the precision of the matrix products."""
        return self.model_flops_per_gpu_per_s(causal) / self.at.peak_flops_per_s

    def hfu(self) -> float:
        """As ``mfu``, with what is computed again counted again; unfused attention computes the whole score matrix, and
        fused attention has nothing that selective recomputation would repeat."""
        repeated = "none" if self.job.flash and self.layout.recompute == "selective" else self.layout.recompute
        hardware = flops.hardware_flops_per_token(shape(self.model), float(self.job.seq), self.job.flash,
                                                  RECOMPUTE[repeated])
        return float(hardware) * self.tokens_per_s / self.layout.gpus / self.at.peak_flops_per_s

    @property
    def time_s(self) -> dict[str, float]:
        return {name.removesuffix("_s"): value for name, value in self.terms._asdict().items()
                if name.endswith("_s") and name != "step_s"}

    @property
    def memory_bytes(self) -> dict[str, float]:
        """Of the fullest pipeline stage."""
        a = axes(self.job, self.layout)
        with check.trusted():
            size = shape(self.model)
            stage = max(stages_bytes(size, self.job, recipe_of(self.job), a, *sizes(size, a)), key=sum)
        return {**stage._asdict(), "overhead": overhead_bytes(self.job, a), "total": self.terms.total_bytes,
                "capacity": self.at.gpu.hbm_bytes}

    @property
    def binding(self) -> str:
        """Memory where the layout does not fit, else the longest term."""
        times = self.time_s
        return max(times, key=times.get) if self.fits else "memory"

    def as_dict(self) -> dict:
        """Everything, in the keys of the command line."""
        times = self.time_s
        return {
            "model": self.model.key, "gpu": self.at.gpu.key, "gpus": self.layout.gpus, "precision": self.at.precision,
            "layout": layout_dict(self.layout), "parameters": int(shape(self.model).total_params),
            "step_s": self.step_s, "tokens_per_s": self.tokens_per_s,
            "tokens_per_s_per_gpu": self.tokens_per_s / self.layout.gpus,
            "model_flops_per_gpu_per_s": self.model_flops_per_gpu_per_s(), "mfu": self.mfu(), "hfu": self.hfu(),
            "mfu_non_causal": self.mfu(causal=False),
            "memory_bytes": self.memory_bytes, "fits": self.fits, "time_s": times, "binding": self.binding,
            "exposed_because": {name: why for name, why in WHY_EXPOSED.items() if times[name]},
            "gpu_hours_per_trillion_tokens": 1e12 / self.tokens_per_s * self.layout.gpus / 3600.0,
        }


def layout_dict(layout: Layout) -> dict:
    """The degrees and choices of a layout, as the command line prints them."""
    return {"tp": layout.tp, "pp": layout.pp, "cp": layout.cp, "dp": layout.dp, "ep": layout.ep,
            "expert_tp": layout.expert_tp, "zero": layout.zero, "shard": layout.shard,
            "micro_batch": layout.micro_batch, "recompute": layout.recompute, "schedule": layout.schedule,
            "interleave": layout.interleave}


def axes(job: Job, layout: Layout) -> Axes:
    """Job and layout in floats."""
    return Axes(float(job.seq), float(job.global_batch), float(layout.tp), float(layout.pp), float(layout.cp),
                float(layout.dp), float(layout.ep), float(layout.expert_tp), float(layout.zero), float(layout.shard),
                float(layout.micro_batch), float(RECOMPUTE[layout.recompute]), SCHEDULES[layout.schedule],
                float(layout.interleave))


@lru_cache(1)
def default_recipe() -> Recipe:
    """The recipe of a job that names none."""
    return catalog.recipe(DEFAULT_RECIPE)


def recipe_of(job: Job) -> Recipe:
    """The job's recipe, or the default one."""
    return job.recipe or default_recipe()


def estimate(model, at: Machine, job: Job, layout: Layout) -> Estimate:
    """Time and memory of one training step of ``model`` on ``layout.gpus`` GPUs like ``at``."""
    with check.trusted():       # require_legal knows what it refuses
        require_legal(model, job, layout)
        terms = step(shape(model), job, recipe_of(job), at.chip, at.wires, axes(job, layout))
    return Estimate(model, at, job, layout, terms)
