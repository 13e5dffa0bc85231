"""How a training step is laid out over GPUs, whether that layout is legal, and its cost: ``estimate``.

The axes, innermost first: tensor (tp), context (cp), data (dp), pipeline (pp). The GPUs that the other three
leave are data-parallel ranks. Experts are spread over ep groups of expert_tp GPUs, taken from the tensor,
context and data ranks of a stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine import catalog
from engine.base import check, printing
from engine.base.types import Real
from engine.calibration import DEFAULT, bands, known
from engine.catalog import models
from engine.catalog.hardware import Gpu, Link
from engine.catalog.models import Model, divisors
from engine.catalog.recipes import Recipe
from engine.mechanism import adapters, compute, flops, memory, offload, seeing
from engine.mechanism.interconnect import Wires, wires
from engine.mechanism.matmul import Chip, chip, supported_precision
from engine.mechanism.memory import BY_MODULE, FULL, NO_RECOMPUTE, SELECTIVE, recompute_of
from engine.mechanism.pipeline import SCHEDULES, TURNS, stage_layers
from engine.mechanism.scaled_chip import scaled_chip
from engine.mechanism.shape import shape
from engine.step import legality
from engine.step.legality import Facts
from engine.step.step import Axes, Terms, overhead_bytes, sizes, stages_bytes, step
from engine.step.training_job import Job, whole

if TYPE_CHECKING:
    from engine.calibration.constants import Calibration

DEFAULT_RECIPE = "bf16-adam"
PRECISIONS = legality.TRAINED
LEAST_NIC_BYTES_PER_S = 1e7  # a tenth of Gigabit Ethernet: a smaller number is probably in another unit


@dataclass(frozen=True)
class Layout:
    """Which GPU does what: the degree of each kind of parallelism, and the choices that go with it.

    ``tp``, ``pp``, ``cp`` and ``ep`` are tensor, pipeline, context and expert ranks; ``expert_tp`` GPUs share
    an expert. The rest of ``gpus`` are data-parallel ranks, ``dp``. ``zero`` is the ZeRO stage (3 is FSDP),
    ``shard`` the GPUs that share one copy of the state in HSDP (0 for all), ``interleave`` the chunks of
    layers per pipeline stage. ``recompute`` is "none", "selective" (the core attention), "full" (of
    ``recompute_layers`` layers per stage, or all), or modules by Megatron's names, such as
    "layernorm+moe_act+mla_up_proj". If the layers do not divide evenly, the first and last stages get fewer,
    unless ``first_layers`` or ``last_layers`` say how many they hold. ``offload`` moves the optimizer, what
    layers keep for their backward pass, or both, to the host's memory, on GPUs whose host is known.

    >>> layout = engine.Layout(gpus=512, tp=8, pp=4, micro_batch=2)
    >>> layout.dp, layout.stage_gpus
    """

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
    shard: int = 0  # HSDP: GPUs that share one copy of the state under ZeRO; 0 for all
    recompute_layers: int = 0  # of each stage, under recompute "full"; 0 for all
    first_layers: int = 0  # of the first pipeline stage, if given; 0 for an even split
    last_layers: int = 0  # of the last pipeline stage, likewise
    offload: str = "none"  # what the host's memory holds: "optimizer", "activations", or both joined by +

    def __post_init__(self) -> None:
        for name in ("gpus", "tp", "pp", "cp", "ep", "micro_batch", "interleave", "expert_tp"):
            whole(name, getattr(self, name))
        for name in ("zero", "shard", "recompute_layers", "first_layers", "last_layers"):
            whole(name, getattr(self, name), 0)
        if self.zero > 3:
            raise ValueError(f"zero must be one of 0, 1, 2, 3; got {self.zero!r}")

    @property
    def dp(self) -> int:
        """Data-parallel ranks: the GPUs that tensor, pipeline and context parallelism leave."""
        return self.gpus // (self.tp * self.pp * self.cp)

    @property
    def stage_gpus(self) -> int:
        """GPUs that hold one pipeline stage, over all replicas."""
        return self.gpus // self.pp


@dataclass(frozen=True)
class Machine:
    """One GPU working in one precision, and the wires around it; create it with ``Machine.of``.

    ``chip`` and ``wires`` hold the rates that kernels and collectives reach, which are below the catalogue's
    peaks.
    """

    gpu: Gpu
    precision: str
    chip: Chip
    wires: Wires

    @classmethod
    def of(
        cls,
        gpu: Gpu | str,
        precision: str = "bf16",
        gpus_per_node: int | None = None,
        nic_bytes_per_s: float | None = None,
        oversubscription: float = 1.0,
        nic: Link | str | None = None,
    ) -> Machine:
        """A GPU of the catalogue (or its key), or your own, in a node and behind NICs of your choice.

        Your own is one of the catalogue with other figures (``replace(engine.gpu("h100-sxm"), tdp_w=500.0)``)
        and reaches the same shares of its peaks. ``nic_bytes_per_s`` is one way and per GPU;
        ``oversubscription`` 2 halves what the network between nodes carries. ``nic`` names the kind of card
        (``efa-100``), which decides how long a message takes before its first byte arrives. A precision for
        which the GPU has no units is a ValueError.

        >>> machine = engine.Machine.of("h100-sxm", precision="fp8")
        >>> machine.peak_flops_per_s, machine.chip.matmul_flops_per_s
        """
        found = catalog.gpu(gpu) if isinstance(gpu, str) else gpu
        if nic_bytes_per_s is not None and 0 < nic_bytes_per_s < LEAST_NIC_BYTES_PER_S:
            raise ValueError(
                f"nic_bytes_per_s must be at least {LEAST_NIC_BYTES_PER_S:,.0f} bytes a second (a NIC of "
                f"400 Gb/s has 50,000,000,000), got {nic_bytes_per_s:g}"
            )
        card = catalog.link(nic) if isinstance(nic, str) else nic
        return of_gpu(found, precision, gpus_per_node, nic_bytes_per_s, oversubscription, card)

    @property
    def peak_flops_per_s(self) -> float:
        """The GPU's dense peak in the machine's precision, as its data sheet gives it."""
        return self.gpu.peak_flops_per_s(self.precision)

    @property
    def rates_from(self) -> str:
        """Whose timed kernels its rates follow: "measured", "as the H100 SXM" for a GPU with the same
        multiprocessors, or "medians of the others"."""
        return known.rates_from(self.gpu.key)


@lru_cache(256)
def machine(
    gpu: Gpu,
    precision: str = "bf16",
    gpus_per_node: Real | None = None,
    nic_bytes_per_s: Real | None = None,
    oversubscription: Real = 1.0,
    calibration: Calibration = DEFAULT,
    nic: Link | None = None,
) -> Machine:
    """A catalogue GPU with calibrated rates; its node and NICs may differ from the usual ones. ValueError
    where it has no units for the precision: there is no silent fallback."""
    gpu.peak_flops_per_s(precision)
    return Machine(
        gpu,
        precision,
        chip(gpu, precision, calibration),
        wires(gpu, gpus_per_node, nic_bytes_per_s, oversubscription, calibration, nic),
    )


def of_gpu(
    gpu: Gpu,
    precision: str = "bf16",
    gpus_per_node: int | None = None,
    nic_bytes_per_s: float | None = None,
    oversubscription: float = 1.0,
    nic: Link | None = None,
) -> Machine:
    """A GPU of the catalogue, or one's own, in one precision. One's own reaches the same shares of its peaks
    as the GPU whose key it has, and less under a lower power limit."""
    if gpu.key not in catalog.all_gpus():
        raise ValueError(f"gpu must have the key of a GPU of the catalogue that it is like, got {gpu.key!r}")
    like = catalog.gpu(gpu.key)
    if gpu == like:
        return machine(gpu, precision, gpus_per_node, nic_bytes_per_s, oversubscription, nic=nic)
    gpu.peak_flops_per_s(precision)
    peak = supported_precision(like, precision)
    faster = getattr(gpu, f"{peak}_flops_per_s") / getattr(like, f"{peak}_flops_per_s")
    wider = gpu.hbm_bytes_per_s / like.hbm_bytes_per_s
    held = chip(replace(like, tdp_w=gpu.tdp_w), precision)
    net = wires(
        like,
        gpus_per_node or gpu.gpus_per_node,
        nic_bytes_per_s or gpu.nic_bytes_per_s,
        oversubscription,
        nic=nic,
        link_bytes_per_s=gpu.link_bytes_per_s if gpu.link_bytes_per_s != like.link_bytes_per_s else None,
    )
    return Machine(gpu, precision, scaled_chip(held, faster, wider), net)


# -- legality ------------------------------------------------------------------------------------------------
def require_legal(model: Model, job: Job, layout: Layout) -> None:
    """ValueError with the reason and the nearest legal values if the layout cannot be built."""
    a = layout
    legality.require_ends(model.depth, a.pp, a.first_layers, a.last_layers)
    legality.require_recompute(model, a.recompute, a.recompute_layers, a.pp)
    if a.schedule not in SCHEDULES:
        raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}; got {a.schedule!r}")
    legality.require(facts(model, job, layout))
    legality.require_mixers(model, a.tp, a.cp)
    if job.adapter:
        adapters.require(model, job.adapter)
    if job.pictures:
        seeing.require(model, job.pictures, job.seq, {"tp": a.tp, "pp": a.pp, "cp": a.cp})
    _require_one_name(a)
    if a.shard:
        _require_copies(model, a)
    if job.recipe is not None:
        legality.require_whole_matrices(job.recipe, job.software, a.zero, a.shard, a.tp)


def _require_copies(model: Model, a: Layout) -> None:
    """ValueError unless HSDP's copies of the dense parameters and of the experts are whole."""
    ranks, held = a.dp * a.cp, a.ep * a.expert_tp
    legal = divisors(ranks)
    if a.shard not in legal:
        raise ValueError(legality.must("shard", a.shard, f"divide the {ranks} data-parallel ranks", legal))
    if model.experts and legality.cuts_copies_of_experts(a.tp * a.shard, held):
        legal = [each for each in legal if not legality.cuts_copies_of_experts(a.tp * each, held)]
        why = f"leave all experts in each copy (its {a.tp * a.shard} GPUs, {held} of them for one set)"
        raise ValueError(legality.must("shard", a.shard, why, legal))


def facts(model: Model, job: Job, a: Layout) -> Facts:
    """The facts about a layout that the rules need, in whole numbers."""
    return Facts(
        model.heads,
        model.depth,
        model.experts,
        job.global_batch,
        job.seq,
        a.gpus,
        a.tp,
        a.pp,
        a.cp,
        a.dp,
        a.ep,
        a.expert_tp,
        a.micro_batch,
        a.interleave,
        SCHEDULES[a.schedule],
    )


def _require_one_name(a: Layout) -> None:
    """ValueError if schedule and chunks contradict each other: several chunks need the schedule
    "interleaved", that schedule needs several chunks, and a V-shaped schedule has two."""
    interleaved = SCHEDULES[a.schedule].interleaved
    if SCHEDULES[a.schedule].folded:
        if a.interleave != TURNS:
            raise ValueError(
                f"interleave must be {TURNS} under schedule {a.schedule}, the two chunks of its V, got "
                f"{a.interleave}; nearest legal: {TURNS}"
            )
        return
    if a.interleave > 1 and not interleaved:
        raise ValueError(
            f"interleave must be 1 under schedule {a.schedule}, got {a.interleave}; nearest legal: "
            "schedule interleaved"
        )
    if interleaved and a.interleave < 2:
        raise ValueError(legality.interleaving(a.schedule, a.pp, a.interleave))


# -- the estimate --------------------------------------------------------------------------------------------
WHY_EXPOSED = {
    "tensor": "every product waits for the AllGather before it and the next for the ReduceScatter behind it",
    "pipeline_bubble": "the first micro-batch must reach the last stage, and the last come back",
    "context": "what remains of passing keys and values around behind the attention over the block at hand",
    "expert": "tokens must arrive before an expert can start, and come back before the next layer can",
    "data_exposed": "gradients and gathered weights beyond the arithmetic they hide behind, at least the "
    "last layer's",
    "optimizer": "one pass over this GPU's share of the state, at the speed of its memory",
    "other": "activations on their way between stages while nothing else is ready",
}

WHY_OF_MATRICES = (
    "one pass over this GPU's share of the state, and what makes each of its matrices orthogonal"
)

STAGES = ("first", "second", "last")  # kinds of pipeline stages; those between are as the second
MEASURED_SCHEDULES = ("1f1b", "interleaved")  # all measured runs used one of these


@dataclass(frozen=True, slots=True)
class Estimate(printing.Printed):
    """The cost of a step; the seconds in ``terms`` add up to ``step_s``."""

    model: Model
    at: Machine
    job: Job
    layout: Layout
    terms: Terms

    @property
    def step_s(self) -> float:
        """Seconds of one training step."""
        return self.terms.step_s

    @property
    def band_s(self) -> tuple[float, float]:
        """An 80 % band of the step time: the 10th and 90th percentile over published runs of this GPU's
        generation that were not used for fitting; over all generations where there are too few, and wider
        where something lies outside of them (but an MFU that none reached, which takes long to find)."""
        low, high = bands.step(self.at.gpu.key, self.model.experts > 0)
        if self._outside():
            low, high = bands.beyond("step", (low, high))
        step_s = self.terms.step_s
        return step_s * low, step_s * high

    @property
    def memory_band_bytes(self) -> tuple[float, float]:
        """An 80 % band of the fullest GPU's memory, from published readings that were not used for
        fitting: the same for all GPUs, as there are some fifty of them."""
        low, high = bands.band("memory")
        return self.terms.total_bytes * low, self.terms.total_bytes * high

    @property
    def extrapolates(self) -> tuple[str, ...]:
        """The arguments that lie outside all runs behind the band, by name; ``gpu`` where no run of its
        generation was measured, ``mfu`` where none reached as much."""
        outside = self._outside()
        seen = bands.seen(self.at.gpu.key, self.model.experts > 0)
        if seen and self.mfu() > seen["most_mfu"].get(self.at.precision, 1.0):
            outside.append("mfu")
        return tuple(outside)

    def _outside(self) -> list[str]:
        """What ``extrapolates`` names, but for the MFU."""
        seen = bands.seen(self.at.gpu.key, self.model.experts > 0)
        if not seen:
            return ["gpu"]
        a = self.layout
        outside = [name for name in bands.SPANS if not seen[name][0] <= getattr(a, name) <= seen[name][1]]
        if self.at.precision not in seen["precision"]:
            outside.append("precision")
        if a.schedule not in MEASURED_SCHEDULES:
            outside.append("schedule")
        if a.offload != "none":
            outside.append("offload")
        if self.job.adapter:
            outside.append("adapter")
        if self.job.pictures:
            outside.append("pictures")
        if self.model.mixes and models.has_untimed(self.model):  # kernels of which no timing was found
            outside.append("attention")
        return outside

    @property
    def fits(self) -> bool:
        """Whether the fullest pipeline stage fits the memory that a training job can use on a GPU."""
        return self.terms.total_bytes <= memory.capacity_bytes(self.at.gpu)

    @property
    def tokens(self) -> int:
        """Tokens per step."""
        return self.job.global_batch * self.job.seq

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second, over all GPUs."""
        return self.tokens / self.step_s

    @property
    def trained_params(self) -> int:
        """Parameters that the step changes: all of the model's, or the adapter's."""
        if self.job.adapter:
            return int(adapters.trained_parameters(self.model, self.job.adapter))
        return int(shape(self.model).total_params)

    def _training_flops_per_token(self, causal: bool) -> float:
        """Model FLOPs of a token: 4 for each frozen weight and 6 for each that is trained."""
        size = shape(self.model)
        found = float(flops.training_flops_per_token(size, float(self.job.seq), causal))
        if self.job.adapter:
            found -= float(adapters.saved_flops_per_token(size, self.job.adapter, size.matmul_params))
        return found + self._seen_flops_per_token

    @property
    def _seen_flops_per_token(self) -> float:
        """FLOPs of the tower that reads pictures, shared among all tokens."""
        if not self.job.pictures:
            return 0.0
        return float(seeing.flops_per_sequence(self.model, self.job.pictures)) / self.job.seq

    def model_flops_per_gpu_per_s(self, causal: bool = True) -> float:
        """Model FLOPs per GPU and second, counting causal attention as causal or over the whole sequence
        (PaLM, Megatron). Under an adapter those that its training needs."""
        size, seq = shape(self.model), float(self.job.seq)
        per_token = self._training_flops_per_token(causal)
        if self.job.mtp:
            per_token += self.job.mtp * float(flops.mtp_flops_per_token(size, seq, causal))
        return per_token * self.tokens_per_s / self.layout.gpus

    def mfu(self, causal: bool = True) -> float:
        """Model FLOPs utilisation: model FLOPs per second as a share of the dense peak in the precision of
        the matrix products."""
        return self.model_flops_per_gpu_per_s(causal) / self.at.peak_flops_per_s

    def mfu_of_6pd(self) -> float:
        """Like ``mfu``, but with 6·P·D for the model FLOPs: six for each active parameter and token, and none
        for attention."""
        active = models.active_parameters(self.model)
        done = flops.training_flops(active, tokens=self.tokens_per_s)
        return done / (self.layout.gpus * self.at.peak_flops_per_s)

    def hfu(self) -> float:
        """Like ``mfu``, but recomputed work counts again. Unfused attention computes the whole score matrix;
        with fused attention there is nothing for selective recomputation to repeat."""
        code, modules = recompute_of(self.layout.recompute)
        size, seq, causal = shape(self.model), float(self.job.seq), self.job.software.flash
        if causal:  # fused attention always repeats its scores
            code = NO_RECOMPUTE if code == SELECTIVE else code
            modules = tuple(name for name in modules if name != "core_attn")
        if code == BY_MODULE or self.layout.recompute_layers:
            again = compute.repeated_flops_per_token(size, seq, causal, modules)
            if code == FULL:
                stage = stage_layers(size.depth, float(self.layout.pp), float(self.layout.interleave))
                everything = flops.hardware_flops_per_token(size, seq, causal, FULL)
                again = everything - flops.training_flops_per_token(size, seq, causal)
                again = again * min(1.0, self.layout.recompute_layers / stage.full)
            hardware = flops.training_flops_per_token(size, seq, causal) + again
        else:
            hardware = flops.hardware_flops_per_token(size, seq, causal, code)
        if self.job.adapter:
            hardware = hardware - adapters.saved_flops_per_token(size, self.job.adapter, size.matmul_params)
        if self.job.mtp:
            hardware = hardware + self.job.mtp * flops.mtp_flops_per_token(size, seq, causal)
        hardware = float(hardware) + self._seen_flops_per_token
        return hardware * self.tokens_per_s / self.layout.gpus / self.at.peak_flops_per_s

    @property
    def time_s(self) -> dict[str, float]:
        """Seconds of the step by term; they add up to ``step_s``."""
        return {
            name.removesuffix("_s"): value
            for name, value in self.terms._asdict().items()
            if name.endswith("_s") and name != "step_s"
        }

    @property
    def memory_bytes(self) -> dict[str, float]:
        """Bytes on the fullest pipeline stage, by part."""
        a = axes(self.job, self.layout, self.at.gpu.key)
        with check.trusted():
            size = shape(self.model)
            stage = max(stages_bytes(size, self.job, recipe_of(self.job), a, *sizes(size, a)), key=sum)
        return {
            **stage._asdict(),
            "overhead": overhead_bytes(self.job, a.zero),
            "total": self.terms.total_bytes,
            "capacity": memory.capacity_bytes(self.at.gpu),
        }

    @property
    def bytes_by_stage(self) -> dict[str, float]:
        """Bytes of a GPU of each kind of pipeline stage that there is; of the fullest alone without
        stages."""
        a = axes(self.job, self.layout, self.at.gpu.key)
        if self.layout.pp == 1:
            return {"every": float(self.terms.total_bytes)}
        with check.trusted():
            size = shape(self.model)
            stages = stages_bytes(size, self.job, recipe_of(self.job), a, *sizes(size, a))
        beside = float(overhead_bytes(self.job, a.zero))
        found = {name: float(sum(held)) + beside for name, held in zip(STAGES, stages)}
        return {name: size for name, size in found.items() if self.layout.pp > 2 or name != "second"}

    @property
    def _why(self) -> dict[str, str]:
        """Why each term is exposed."""
        return WHY_EXPOSED if recipe_of(self.job).is_uniform else WHY_EXPOSED | {"optimizer": WHY_OF_MATRICES}

    @property
    def binding(self) -> str:
        """What binds the layout: "memory" if it does not fit, else the name of its longest term."""
        times = self.time_s
        return max(times, key=lambda name: times[name]) if self.fits else "memory"

    def as_dict(self) -> dict:
        """All figures of the estimate, under the keys that the command line prints."""
        times = self.time_s
        trained = {"trained_parameters": self.trained_params} if self.job.adapter else {}
        return {
            "model": self.model.key,
            "gpu": self.at.gpu.key,
            "gpus": self.layout.gpus,
            "precision": self.at.precision,
            "software": self.job.software.key,
            "layout": layout_dict(self.layout),
            "parameters": int(shape(self.model).total_params),
            **trained,
            "step_s": self.step_s,
            "band_s": list(self.band_s),
            "extrapolates": list(self.extrapolates),
            "rates_from": self.at.rates_from,
            "tokens_per_s": self.tokens_per_s,
            "tokens_per_s_per_gpu": self.tokens_per_s / self.layout.gpus,
            "model_flops_per_gpu_per_s": self.model_flops_per_gpu_per_s(),
            "mfu": self.mfu(),
            "hfu": self.hfu(),
            "mfu_non_causal": self.mfu(causal=False),
            "memory_bytes": self.memory_bytes,
            "memory_band_bytes": list(self.memory_band_bytes),
            "fits": self.fits,
            "time_s": times,
            "binding": self.binding,
            "exposed_because": {name: why for name, why in self._why.items() if times[name]},
            "gpu_hours_per_trillion_tokens": 1e12 / self.tokens_per_s * self.layout.gpus / 3600.0,
        }

    def rows(self) -> list[dict]:
        """One row, with a column for each choice of the layout."""
        figures = self.as_dict()
        return [printing.flat({**figures.pop("layout"), **figures})]


@printing.parts.register
def _parts(found: Estimate) -> list[printing.Part]:
    """The step and its memory, with their parts; of the layout what is not as usual."""
    said = found.as_dict()
    held, why = said["memory_bytes"], said["exposed_because"]
    names = ["step_s", "band_s", "tokens_per_s", "mfu", "binding", "memory_band_bytes", "fits"]
    names += ["extrapolates", "rates_from"]
    times = [
        {"part": name, "time_s": seconds, "exposed_because": why.get(name, "")}
        for name, seconds in said["time_s"].items()
        if seconds
    ]
    return [
        {name: said[name] for name in ("model", "gpu", "gpus", "precision")}
        | printing.beyond(said["layout"], usual_layout()),
        {name: said[name] for name in names},
        printing.Table(times, ["part", "time_s", "exposed_because"], {"exposed_because": ""}),
        printing.Table(
            [{"part": name, "memory_bytes": size} for name, size in held.items()], ["part", "memory_bytes"]
        ),
    ]


def usual_layout() -> dict:
    """What a layout is where nobody says otherwise; its data parallelism is always worth a word."""
    return {key: value for key, value in layout_dict(Layout(1)).items() if key != "dp"}


def layout_dict(layout: Layout) -> dict:
    """The degrees and choices of a layout, as the command line prints them."""
    return {
        "tp": layout.tp,
        "pp": layout.pp,
        "cp": layout.cp,
        "dp": layout.dp,
        "ep": layout.ep,
        "expert_tp": layout.expert_tp,
        "zero": layout.zero,
        "shard": layout.shard,
        "micro_batch": layout.micro_batch,
        "recompute": layout.recompute,
        "recompute_layers": layout.recompute_layers,
        "first_layers": layout.first_layers,
        "last_layers": layout.last_layers,
        "offload": layout.offload,
        "schedule": layout.schedule,
        "interleave": layout.interleave,
    }


def axes(job: Job, layout: Layout, gpu_key: str = "") -> Axes:
    """Job and layout as floats. The GPU matters only for what is offloaded to its host."""
    code, modules = recompute_of(layout.recompute)
    return Axes(
        float(job.seq),
        float(job.global_batch),
        float(layout.tp),
        float(layout.pp),
        float(layout.cp),
        float(layout.dp),
        float(layout.ep),
        float(layout.expert_tp),
        float(layout.zero),
        float(layout.shard),
        float(layout.micro_batch),
        float(code),
        SCHEDULES[layout.schedule],
        float(layout.interleave),
        modules,
        float(layout.recompute_layers),
        float(layout.first_layers),
        float(layout.last_layers),
        None if layout.offload == "none" else offload.offload(layout.offload, gpu_key),
    )


@lru_cache(1)
def default_recipe() -> Recipe:
    """The recipe for a job that does not name one."""
    return catalog.recipe(DEFAULT_RECIPE)


def recipe_of(job: Job) -> Recipe:
    """The job's recipe, or the default one."""
    return job.recipe or default_recipe()


def estimate(model: Model, at: Machine, job: Job, layout: Layout) -> Estimate:
    """Time and memory of one training step of ``model`` on ``layout.gpus`` GPUs like ``at``."""
    recipe = recipe_of(job)
    legality.require_trainable(at.precision, recipe)
    if job.recipe is not None:
        legality.require_matrices(recipe, job.software, at.precision, layout.offload, job.adapter)
    with check.trusted():  # require_legal has checked everything
        require_legal(model, job, layout)
        terms = step(shape(model), job, recipe, at.chip, at.wires, axes(job, layout, at.gpu.key))
    return Estimate(model, at, job, layout, terms)


def written(layout: Layout) -> str:
    """A layout in the usual notation: TP 8 × PP 4 × DP 16."""
    axes = [("TP", layout.tp), ("CP", layout.cp), ("PP", layout.pp), ("EP", layout.ep), ("DP", layout.dp)]
    return " × ".join(f"{name} {size}" for name, size in axes if size > 1) or "one GPU"
