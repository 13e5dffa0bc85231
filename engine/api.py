"""What ``import engine`` offers: the common questions, by plain names.

Each function takes a model and a machine, either as keys of the catalogue or as your own objects, passes them
to the package that knows the answer, and returns a frozen dataclass. It prints as a short table, shows as one
in a notebook, and ``as_dict()`` and ``rows()`` give its figures under the keys of the command line. SI units
throughout. A bad argument is a ValueError that names the argument, its value and what is allowed.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine import catalog, validation
from engine.base.asked import answers, guard
from engine.catalog import config_json
from engine.catalog.hardware import Gpu
from engine.catalog.hardware import Link as Link
from engine.catalog.hardware import Node as Node
from engine.catalog.models import Model
from engine.catalog.recipes import Recipe as Recipe
from engine.catalog.software import ServingSoftware
from engine.catalog.software import TrainingSoftware as TrainingSoftware
from engine.frameworks import able
from engine.launch import cluster_profile, compared, logs, verdict
from engine.launch import shown as shown  # by which a report prints
from engine.launch.cluster_profile import OwnRuns
from engine.launch.compared import Comparison
from engine.launch.own_job import own_job
from engine.launch.texts import Texts
from engine.launch.verdict import Report as Report
from engine.mechanism import cost as costs
from engine.mechanism import interconnect, reliability
from engine.mechanism.adapters import Adapter as Adapter
from engine.mechanism.cost import Bill
from engine.mechanism.interconnect import Collective
from engine.mechanism.reliability import Goodput
from engine.mechanism.seeing import Pictures as Pictures
from engine.serving import deployment, divided, inference, server_software
from engine.serving.deployment import Deployment as Deployment
from engine.serving.deployment import Deployments, Limits, Load
from engine.serving.drafts import Drafts
from engine.serving.inference import Served, Serving
from engine.step import layout as layouts
from engine.step import search
from engine.step.constraints import FREE, Constraints
from engine.step.layout import Estimate, Job, Layout, Machine
from engine.step.near import with_near
from engine.step.search import Plan
from engine.validation import Validation

LONGEST_NAME = 250  # characters; a system refuses to look for a longer one
guard(Job, Layout, Load, Limits, Drafts, Adapter, Constraints, Pictures)
Machine.of = classmethod(answers(Machine.of.__func__))  # pyright: ignore[reportAttributeAccessIssue]
gpu = answers(catalog.gpu)
link = answers(catalog.link)
node = answers(catalog.node)
recipe = answers(catalog.recipe)
software = answers(catalog.software)


@answers
def estimate(model: Model | str, machine: Machine | Gpu | str, job: Job, layout: Layout) -> Estimate:
    """Time and memory of one training step with the layout that you choose.

    The step time is the sum of everything that is not hidden behind other work: arithmetic, tensor, context
    and expert traffic, the pipeline bubble, exposed gradient traffic and the optimizer. Memory is that of the
    fullest pipeline stage. ``band_s`` and ``memory_band_bytes`` are 80 % bands of the two, from published
    runs that fitted nothing; ``extrapolates`` names what none of them had.

    Leaves out failures, checkpoints, data loading, and stragglers. A layout that cannot be built is a
    ValueError that names the nearest ones that can.

    >>> job = engine.Job(global_batch=512, seq=8192)
    >>> layout = engine.Layout(gpus=64, tp=2)
    >>> step = engine.estimate("llama3-8b", "h100-sxm", job, layout)
    >>> print(f"{step.step_s:.2f} s, {step.mfu():.0%} MFU, {step.binding}")
    >>> step.fits
    """
    _require(Job, job=job)
    _require(Layout, layout=layout)
    return layouts.estimate(_as_model(model), _as_machine(machine), job, layout)


@answers
def plan(
    model: Model | str,
    machine: Machine | Gpu | str,
    job: Job,
    gpus: int,
    *,
    top: int = 5,
    within: Constraints | None = None,
    framework: str = "",
    hsdp: bool = False,
    partial: bool = False,
) -> Plan:
    """The fastest layout that fits on this many GPUs, and the best of the other splits, each with what it
    loses by.

    Every legal tensor × pipeline × context × expert split is tried with every micro-batch, recomputation,
    ZeRO stage and schedule; each result is the one that ``estimate`` gives. Where nothing fits, those with
    the smallest memory are returned, and ``tied`` is 0. ``framework`` limits the search to what one can run
    ("any": to what one of them can), and counts its own program and state where the job names none:
    Megatron-LM sums gradients in fp32. ``counted`` says what was counted. ``within`` limits it to fixed or
    limited axes, to some ZeRO stages and schedules, to so many chunks a stage, or to one way to recompute.
    With ``hsdp``, layouts with several copies of the state are tried as well, each copy shared by the
    data-parallel ranks of one node, or of two, four, and so on.

    ``Constraints(leave=0.05)`` keeps 5 % of the memory free. With ``partial``, the best layouts recompute
    only as many layers as it takes to fit, or parts of each, whichever is faster.

    A batch, a length or a number of GPUs with a large prime factor leaves little to choose from; ``near`` has
    near numbers, and what they would bring.

    Leaves out other sizes of a copy, pipeline chunks without a layer, and contexts
    cut into pieces of under 1,024 tokens. ``estimate`` accepts all of these.

    >>> job = engine.Job(global_batch=1024, seq=8192)
    >>> found = engine.plan("llama3-70b", "h100-sxm", job, gpus=512)
    >>> for each in [found.best, *found.runners_up]:
    ...     at = each.layout
    ...     split = f"TP {at.tp} × PP {at.pp} × CP {at.cp} × DP {at.dp}"
    ...     print(f"{split}: {each.step_s:.1f} s")
    >>> mine = engine.Constraints(tp=(4, 4))
    >>> asked = dict(framework="megatron", within=mine)
    >>> found = engine.plan("llama3-70b", "h100-sxm", job, 512, **asked)
    >>> print(f"{found.best.step_s:.1f} s")
    """
    _require(Job, job=job)
    limits = FREE if within is None else within
    _require(Constraints, within=limits)
    limits = replace(limits, able=able(framework)) if framework else limits
    at = _as_machine(machine)
    job = own_job(framework, job, at.precision)
    shape = _as_model(model)

    def searched(job: Job, gpus: int) -> Plan:
        return search.plan(shape, at, job, gpus, top, within=limits, hsdp=hsdp, partial=partial)

    return with_near(searched, job, gpus, lambda fewer: len(search.splits(shape, job, fewer)))


@answers
def check_launch(
    texts: Texts,
    gpu: Machine | Gpu | str | None = None,
    gpus: int | None = None,
    host_bytes: float | None = None,
) -> Report:
    """Whether what you are about to launch fits, how fast it goes, what is wrong with it, and what to change.

    ``texts`` is one text, several, or texts by name, in any order: scripts and commands, YAML, JSON and TOML,
    programs in Python, Docker, Compose and Kubernetes, of some twenty frameworks (``system-ml check --help``
    lists them). Nothing is run. The report has the memory of the fullest GPU by part and stage, the time with
    its band, the errors that the framework would give, the best changes as edited lines, the planner's best,
    how far it goes as it stands, and what was read, assumed and ignored by line. ``gpus`` is taken from the
    texts where they say it, ``gpu`` is the H100 SXM unless given. ``host_bytes`` is the memory of a node's
    host, for what is offloaded to it; that of the maker's own node unless given.

    The verdict is "fits", "close" (what there is lies within the band), "does not fit", "will not start" or
    "cannot say": something is asked for that the engine does not model, or no text can be read, which is a
    line among ``faults`` and never an error.

    >>> line = "vllm serve meta-llama/Llama-3.1-70B -tp 2"
    >>> report = engine.check_launch(line, gpu="h100-sxm")
    >>> report.verdict, report.room.longest
    >>> for change in report.changes:
    ...     print(change.what, change.fits)
    """
    return verdict.check_launch(texts, gpu, gpus, host_bytes=host_bytes)


@answers
def calibrate(
    texts: Texts,
    log: str = "",
    gpu: Machine | Gpu | str | None = None,
    gpus: int | None = None,
    *,
    step_s: float | None = None,
    tokens_per_s: float | None = None,
    memory_bytes: float | None = None,
) -> Comparison:
    """A run that you measured beside the estimate of its launch: does it lie in the band, and if not, why
    might that be?

    ``texts`` are the launch, as for ``check_launch``. ``log`` is the text of the run's log, of which lines of
    Megatron, torchtitan, the Trainer of transformers, vLLM and SGLang are read. Or give the seconds of a
    step, the tokens a second of all GPUs, or the most bytes that PyTorch reserved on one; what you give goes
    before what the log says. Of a log's steps the first fifth is left out, and the median of the others
    counts.

    Of a training step it says by how much each term alone would have to be longer, and which of the program's
    habits would take away most of the gap. Those are candidates and no findings, because the log has one
    number and many things add up to it. A server is compared for the requests that ran at once.

    Nothing is run or sent. ``entry()`` is what a profile keeps of it (see ``profile``).

    >>> line = "tune run --nproc_per_node 8 full_finetune_distributed "
    >>> line += "--config llama3_1/8B_full"
    >>> found = engine.calibrate(line, gpu="h100-sxm", step_s=0.9)
    >>> found.of("step").ratio, found.of("step").inside
    >>> for term in found.terms:
    ...     print(f"{term.name}: alone {term.times:.1f} times as long")
    """
    found = logs.read(log) if log else logs.FromLog()
    given = {"step_s": step_s, "tokens_per_s": tokens_per_s, "memory_bytes": memory_bytes}
    said = {name: float(value) for name, value in given.items() if value is not None}
    for name, value in said.items():
        if not value > 0.0:
            raise ValueError(f"{name} must be above 0, got {value!r}")
    if tokens_per_s is not None and step_s is None:
        said["step_s"] = 0.0
    if not log and not said:
        raise ValueError("log must be given, or step_s, tokens_per_s or memory_bytes; got none of them")
    return compared.compared(verdict.check_launch(texts, gpu, gpus, ()), replace(found, **said))


@answers
def profile(runs: str | Path | Sequence[dict]) -> OwnRuns:
    """Runs that you measured: a file that ``system-ml calibrate --into`` wrote, or a list of what
    ``calibrate(...).entry()`` gave. Its method ``of`` says what an estimate is after them.

    A run counts if it had the estimate's GPU, program, number format and kind of model (dense, or with
    experts), and if this edition of the engine estimated it. One run corrects nothing: on published runs one
    known run of a cluster took less than a tenth off the error of its others, and a tenth is what we ask.
    Two took it from 9.3 to 7.7 %, so from two on an estimate is corrected. The band shrinks with
    every run, but not below what the runs of one cluster differ by among themselves. For memory and for
    servers published runs do not show that one says something of the next, so they are compared and not
    corrected.

    >>> line = "tune run --nproc_per_node 8 full_finetune_distributed "
    >>> line += "--config llama3_1/8B_full"
    >>> one = engine.calibrate(line, gpu="h100-sxm", step_s=0.90)
    >>> two = engine.calibrate(line, gpu="h100-sxm", step_s=0.92)
    >>> before = engine.check_launch(line, gpu="h100-sxm").estimate
    >>> runs = [one.entry(), two.entry()]
    >>> after = engine.profile(runs).of(before)
    >>> before.step_s, before.band_s
    >>> after.step_s, after.band_s
    """
    if isinstance(runs, (str, Path)):
        return cluster_profile.read(runs)
    return cluster_profile.checked(runs)


@answers
def serve(
    model: Model | str,
    machine: Machine | Gpu | str,
    *,
    tp: int = 1,
    batch: int = 1,
    prompt: int = 1024,
    output: int = 128,
    kv_precision: str | None = None,
    weight_precision: str | None = None,
    all_reduce: str = "auto",
    pp: int = 1,
    dp: int = 1,
    ep: int = 1,
    software: ServingSoftware | str | None = None,
) -> Served:
    """Prefill and decode on one replica: latencies, throughput, and the largest batch that fits.

    Its layers are divided over ``tp`` GPUs, and lie on ``pp`` stages of as many; or ``dp`` groups of ``tp``
    GPUs have requests of their own and share the experts of a mixture, which are spread over all of them.
    With ``ep`` = ``tp`` each of the tensor ranks keeps whole experts (vLLM's --enable-expert-parallel).

    ``batch`` requests of ``prompt`` + ``output`` tokens run together. A decode step reads every weight once,
    and the keys and values of each request; the context is prompt + output/2 on average. Keys and values are
    stored in 16 bits and weights in the machine's precision, unless you say otherwise. A ``software`` adds
    what is known of it, such as vLLM's sampling and scheduling between two steps ("vllm-0.11").

    Leaves out queueing, speculative decoding, and that uneven batches of a pipeline or of groups that share
    experts wait for each other.

    >>> eight = engine.serve("llama3-70b", "h100-sxm", tp=8, batch=32)
    >>> eight.ttft_s, eight.time_per_output_token_s
    >>> eight.largest_batch
    >>> spread = engine.serve("deepseek-v3", "h200", dp=32, batch=4096)
    >>> spread.time_per_output_token_s, spread.tokens_per_s_per_gpu
    """
    at = _as_machine(machine)
    kept = inference.cache_precision(at) if kv_precision is None else kv_precision
    asked = Serving(tp, batch, prompt, output, kept, all_reduce, weight_precision, pp, dp, ep)
    said = divided.infer(_as_model(model), at, asked)
    return said if software is None else server_software.run_by(software, said)


@answers
def deploy(
    model: Model | str,
    machine: Machine | Gpu | str,
    load: Load,
    limits: Limits,
    *,
    gpus: int | None = None,
    formats: Sequence[str] | None = None,
    caches: Sequence[str] = ("bf16",),
    pools: bool = True,
    drafts: Sequence[Drafts] = (),
    dollars_per_gpu_hour: float | None = None,
    top: int = 5,
) -> Deployments:
    """The cheapest deployment that serves a load within its limits, and what the best of other kinds costs
    more.

    Tried are every tensor-parallel degree of a node, pipelines of two and four stages, and for a mixture
    experts spread over up to sixteen nodes with data-parallel attention, in two pools; weights in "bf16",
    "fp8" (products too) and "int4" (weights alone), where the GPU has units for them; each of the ``caches``
    ("bf16", "fp8"); replicas that mix prompts with answers, with every chunk from 256 to 8,192 tokens, and
    two pools in every ratio of up to eight replicas, or of up to five of two kinds; with and without each of
    the ``drafts``. Closed forms say how many replicas each takes; the cheapest are then simulated event by
    event, and only what holds there is returned. A load that no number of GPUs can serve is a ValueError that
    names the limit, the nearest possible value, and what would help. ``engine.launch.commands``
    writes the commands that start a deployment.

    Leaves out spread experts in a single pool, caches divided by position, that batches of a pipeline and
    GPUs that share experts wait for the slowest, and what fewer bits do to the answers.

    >>> chat = engine.Load(per_s=40, prompt=1000, prompt_spread=0.5)
    >>> limits = engine.Limits(ttft_s=1.0, tpot_s=0.03)
    >>> found = engine.deploy(
    ...     "llama3.1-8b", "h100-sxm", chat, limits, top=2
    ... )
    >>> for each in [found.best, *found.runners_up]:
    ...     cost = f"${each.dollars_per_million:.2f} a million tokens"
    ...     print(f"{each.split}, {each.weights}: {cost}")
    >>> found.best.binding, found.best.gpus
    """
    _require(Load, load=load)
    _require(Limits, limits=limits)
    return deployment.deploy(
        _as_model(model),
        _as_machine(machine),
        load,
        limits,
        gpus,
        formats,
        caches,
        pools,
        drafts,
        dollars_per_gpu_hour,
        top,
    )


@answers
def collective(
    op: str, machine: Machine | Gpu | str, *, ranks: int, buffer_bytes: float, per_node: int | None = None
) -> Collective:
    """Time and bandwidths of one collective operation among ``ranks`` GPUs of a cluster.

    Inside one node: as measured with NCCL. Across nodes: the fastest of ring, tree and PAT, where each hop
    takes the time of its link. On a torus: over its axes. ``buffer_bytes`` is the whole buffer. Ranks fill
    one node after the other, unless ``per_node`` says how many are on each. ``extrapolates`` lists what lies
    outside the measurements.

    Leaves out other traffic on the same wires, incast, and the time for a call to reach the GPU.

    >>> reduced = engine.collective(
    ...     "all_reduce", "h100-sxm", ranks=16, buffer_bytes=2**30
    ... )
    >>> reduced.algorithm, reduced.time_s
    >>> print(f"bus bandwidth {reduced.bus_bandwidth / 1e9:.0f} GB/s")
    """
    at = _as_machine(machine)
    return interconnect.collective(op, at.gpu.key, at.wires, ranks, buffer_bytes, per_node)


@answers
def goodput(
    gpus: int,
    *,
    checkpoint_s: float = 60.0,
    restart_s: float = 600.0,
    failures_per_gpu_year: float | None = None,
    interval_s: float | None = None,
) -> Goodput:
    """The useful share of a long run on this many GPUs, where a failure of any one stops them all.

    With M seconds between failures, writing checkpoints takes a share δ/τ of the time, redoing lost work τ/2M
    and restarting R/M (``goodput``, to first order). ``useful_share`` is e^(−R/M) · x/(eˣ − 1) · τ/(τ+δ) with
    x = (τ+δ)/M, which holds at any failure rate. τ is Young's √(2δM) unless ``interval_s`` is given; the rate
    is that of Llama 3's pre-training (arXiv:2407.21783) unless you give your own.

    Leaves out failures of shared parts such as storage, and the time until a failure is noticed, which you
    can count as part of the restart.

    >>> run = engine.goodput(16384)
    >>> print(f"a failure every {run.mtbf_s / 3600:.1f} hours")
    >>> print(f"a checkpoint every {run.interval_s / 60:.0f} minutes")
    >>> print(f"{run.useful_share:.1%} of the time is useful")
    >>> print(run)
    """
    if failures_per_gpu_year is None:
        failures_per_gpu_year = reliability.LLAMA3_FAILURES_PER_GPU_YEAR
    return reliability.run(gpus, checkpoint_s, restart_s, failures_per_gpu_year, interval_s)


@answers
def cost(
    gpu: Gpu | str,
    *,
    gpus: int = 1,
    hours: float | None = None,
    model: Model | str | None = None,
    tokens: float | None = None,
    mfu: float = 0.4,
    dollars_per_gpu_hour: float | None = None,
    overhead_share: float = 0.0,
    budget_dollars: float | None = None,
) -> Bill:
    """What a run costs in dollars, and whether a budget allows it.

    GPU-hours × price × (1 + overhead). Give the hours, or a model and its tokens, from which they follow: 6 ·
    active parameters · tokens at ``mfu`` of the 16-bit peak. The price is the catalogue's latest for that
    GPU, with its date, unless you give one.

    Leaves out anything not counted in ``overhead_share``: storage, network, idle GPUs, failures.

    >>> bill = engine.cost(
    ...     "h100-sxm", gpus=1024, model="llama3-70b", tokens=15e12
    ... )
    >>> print(f"${bill.dollars:,.0f} for {bill.hours / 24:.0f} days")
    >>> bill.dollars_per_gpu_hour, bill.price_date
    """
    return costs.bill(
        _as_gpu(gpu),
        gpus,
        hours,
        None if model is None else _as_model(model),
        tokens,
        mfu,
        dollars_per_gpu_hour,
        overhead_share,
        budget_dollars,
    )


@answers
def validate(cases: str | Path | None = None) -> Validation:
    """The engine compared with published measurements, group by group and row by row, the worst first.

    Uses every case of the course's page *Validation*, or the cases in a folder of your own. Rows that a
    constant was fitted to are marked and reported separately.

    >>> report = engine.validate()
    >>> len(report.compared), sum(row.fitted for row in report.compared)
    >>> for each in report.summaries[:3]:
    ...     print(f"{each.group}, {each.quantity}: {each.mean:.0%}")
    """
    return validation.validate(cases)


# -- arguments -----------------------------------------------------------------------------------------------
def _require(kind: type, **values: object) -> None:
    for name, value in values.items():
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be an engine.{kind.__name__}, got {value!r}")


def _as_gpu(value: Gpu | str) -> Gpu:
    if isinstance(value, str):
        return catalog.gpu(value)
    _require(Gpu, gpu=value)
    return value


@answers
def model(name: str) -> Model:
    """A model of the catalogue, by its key or by a name that people use for it; or one of your own: the path
    of its config.json (or of the folder that holds it) or of a TOML file with the catalogue's keys, or the
    text of a config.json itself.

    >>> shape = engine.model("deepseek-v3")
    >>> shape.depth, shape.hidden, shape.experts, shape.top_k
    >>> engine.model("meta-llama/Llama-3.1-8B-Instruct").key
    """
    if str(name).lstrip().startswith("{"):
        return config_json.model(str(name))
    path = Path(name)
    if len(name) > LONGEST_NAME:
        raise ValueError(f"name must be a key of the catalogue or a path, got {name[:80]!r} …")
    if path.suffix in (".json", ".toml") or os.path.isfile(path / "config.json"):
        return catalog.model_from_file(path if path.suffix in (".json", ".toml") else path / "config.json")
    return catalog.model(name)


def _as_model(value: Model | str) -> Model:
    if isinstance(value, str):
        return model(value)
    _require(Model, model=value)
    return value


def _as_machine(value: Machine | Gpu | str) -> Machine:
    if isinstance(value, Machine):
        return value
    if isinstance(value, (Gpu, str)):
        return Machine.of(_as_gpu(value))
    raise ValueError(f"machine must be an engine.Machine, a Gpu or the key of one, got {value!r}")
