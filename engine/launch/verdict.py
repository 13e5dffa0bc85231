"""Whether a launch fits, how fast it goes, what is wrong with it, and what to change: ``check_launch``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, islice

from engine import catalog
from engine.base import check, printing
from engine.calibration import bands
from engine.catalog import models
from engine.catalog.hardware import Gpu
from engine.frameworks.described import ROLLOUT, Launch, Server
from engine.frameworks.registry import frameworks
from engine.frameworks.settings import NOT_KNOWN, Assumed, Fault, Ignored, Refused, Setting
from engine.launch import beside, changes, pictured, planned, reading
from engine.launch import reach as far
from engine.launch.changes import Edited
from engine.launch.reach import Extent
from engine.launch.reading import MOST_GPUS, LaunchReading
from engine.launch.texts import Texts
from engine.mechanism import adapters, memory
from engine.mechanism.shape import shape
from engine.serving import compressed, draft_memory, in_file, inference, paged, server_software, wide
from engine.serving.inference import Served, Serving
from engine.step import layout as layouts
from engine.step import own
from engine.step.layout import Estimate, Machine

# close: what there is lies within the estimate's band
FITS, CLOSE, TOO_LARGE = "fits", "close", "does not fit"
ILLEGAL, UNKNOWN = "will not start", "cannot say"
STATUSES = {FITS: 0, CLOSE: 0, TOO_LARGE: 3, ILLEGAL: 4, UNKNOWN: 5}  # exit statuses of ``check``
USUAL = "h100-sxm"  # the GPU that is taken where none is named
PROMPT, OUTPUT = 1024, 256  # tokens of a request, where a server's texts do not say
CHANGES = 3
MOST_READ = 2_000_000  # characters that are read again, all edits together
BLOCKS = (
    "how many blocks for states there are is known to a fifth, which decides here: ask for fewer requests"
)
HOST = "it keeps more in the host's memory than its maker's nodes have: say how much yours has"
KILLED = "exitcode: -9 (SIGKILL)"  # as torchrun reports a process that the kernel kills
A_NODE = 8  # GPUs that one host has, if there are no more of them
LESS, MORE = 1.2, 1.1
LEAST = 4096  # tokens of a context below which no program goes by itself
PAIRED = 8  # single changes that are tried in pairs, where none is enough by itself
BETTER = 0.99  # a change must save at least this much of the time to be worth a line
GIB = 2.0**30
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory."
ALSO = ("changes", "best", "reach")  # what takes longer than the verdict


@dataclass(frozen=True)
class Change:
    """One edit (or two) of the texts, and what it does: seconds of a step or tokens a second, and bytes of
    the fullest GPU, before and after."""

    lines: tuple[str, ...]  # as they stand in the edited text
    what: str  # in our words: "recompute full"
    fits: bool
    total_bytes: float
    saved_bytes: float
    step_s: float | None = None
    faster_by: float | None = None  # of the rate; below 0 where it costs time
    tokens_per_s: float | None = None
    texts: dict[str, str] | None = None  # all texts with the change made, by name
    mends: bool = False  # whether it fits with this change, and did not without it

    def as_dict(self) -> dict:
        """All figures, under the keys of the command line."""
        return {
            "lines": list(self.lines),
            "what": self.what,
            "fits": self.fits,
            "total_bytes": self.total_bytes,
            "saved_bytes": self.saved_bytes,
            "step_s": self.step_s,
            "tokens_per_s": self.tokens_per_s,
            "faster_by": self.faster_by,
        }


@dataclass(frozen=True)
class ServerRoom:
    """A server's memory: what each GPU holds, and how many tokens its cache has room for."""

    parts: dict[str, float]
    allowed_bytes: float  # what the server may take of a GPU
    cache_bytes: float
    tokens: int  # of all requests on a replica together
    needed_bytes: float  # of one request of the greatest length, on each GPU
    longest: int  # the longest request that the cache holds
    blocks: int = 0  # of the cache, where states lie in them too
    less: float = 0.0  # bytes by which what is beside the cache may be less …
    more: float = 0.0  # … and more
    doubt: str = ""  # why
    short_bytes: float = 0.0  # more than the GPU has, while weights are loaded or graphs captured


@dataclass(frozen=True)
class Report(printing.Printed):
    """What can be said of a launch before it is launched."""

    verdict: str  # one of STATUSES
    launch: Launch | None
    gpu: str
    faults: tuple[Fault, ...]
    refused: tuple[Refused, ...] = ()
    parts: dict[str, float] | None = None  # bytes of the fullest GPU
    total_bytes: float = 0.0
    capacity_bytes: float = 0.0
    passing_bytes: float = 0.0  # that the optimizer's step takes and gives back
    estimate: Estimate | None = None
    room: ServerRoom | None = None
    served: Served | None = None
    stages: dict[str, float] | None = (
        None  # bytes of a GPU of each kind of pipeline stage, where there are some
    )
    partly: bool = False  # the parts are only those that are sure, and already too large
    hosted_bytes: float = 0.0  # that a node's host holds for training …
    host_bytes: float = 0.0  # … and has; 0 where nobody says
    extrapolates: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    best: Estimate | None = None
    best_text: str = ""
    reach: Extent | None = None  # how far it could go, where that was asked

    @property
    def fits(self) -> bool:
        """Whether it starts and the fullest GPU's memory is enough, by the estimate itself where it is
        close."""
        enough = self.total_bytes <= self.capacity_bytes
        return self.verdict == FITS or (self.verdict == CLOSE and enough)

    @property
    def ends(self) -> str:
        """Whether it "runs" or "fails", by the estimate itself where it is close; or that nobody can say."""
        return self.verdict if self.verdict == UNKNOWN else "runs" if self.fits else "fails"

    @property
    def status(self) -> int:
        """The exit status of the command."""
        return STATUSES[self.verdict]

    @property
    def total_band_bytes(self) -> tuple[float, float]:
        """An 80 % band of the memory, from published runs that fitted nothing."""
        low, high = bands.band("memory")
        return low * self.total_bytes, high * self.total_bytes

    @property
    def close(self) -> bool:
        """Whether the capacity lies within the band, so that it could as well be the other way."""
        return self.verdict == CLOSE

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings that were read; none without a launch."""
        return self.launch.settings if self.launch else ()

    @property
    def assumed(self) -> tuple[Assumed, ...]:
        """What was assumed because no text says it; nothing without a launch."""
        return self.launch.assumed if self.launch else ()

    @property
    def ignored(self) -> tuple[Ignored, ...]:
        """The settings that do not matter to the estimate; none without a launch."""
        return self.launch.ignored if self.launch else ()

    @property
    def unmodelled(self) -> tuple[Ignored, ...]:
        """The settings that would matter but are not modelled; none without a launch."""
        return self.launch.unmodelled if self.launch else ()

    def as_dict(self) -> dict:
        """All of it in plain values, under the keys of the command line."""
        found = self.launch
        result: dict = {
            "verdict": self.verdict,
            "framework": frameworks()[found.framework].name if found else None,
            "model": found.model.key if found else None,
            "gpu": self.gpu,
            "gpus": found.gpus if found else None,
            "precision": found.precision if found else None,
            "faults": [str(fault) for fault in self.faults],
            "refused": [{"error": r.error, "file": r.file, "line": r.line} for r in self.refused],
            "memory_bytes": self.parts,
            "total_bytes": self.total_bytes,
            "stage_bytes": self.stages,
            "capacity_bytes": self.capacity_bytes,
            "hosted_bytes": self.hosted_bytes,
            "host_bytes": self.host_bytes,
        }
        if self.estimate:
            e = self.estimate
            result |= {
                "layout": layouts.layout_dict(e.layout),
                "total_band_bytes": list(self.total_band_bytes),
                "step_s": e.step_s,
                "band_s": list(e.band_s),
                "tokens_per_s": e.tokens_per_s,
                "tokens_per_s_per_gpu": e.tokens_per_s / e.layout.gpus,
                "mfu": e.mfu(),
                "time_s": e.time_s,
            }
        if self.room:
            result |= {"cache_tokens": self.room.tokens, "longest_request": self.room.longest}
        if self.served:
            result |= {
                "tokens_per_s": self.served.tokens_per_s,
                "band_tokens_per_s": list(self.served.band_tokens_per_s),
                "time_per_output_token_s": self.served.time_per_output_token_s,
                "batch": self.served.serving.batch,
            }
        best = self.best
        result |= {
            "reach": self.reach.as_dict() if self.reach else None,
            "extrapolates": list(self.extrapolates),
            "changes": [change.as_dict() for change in self.changes],
            "best": {
                "layout": layouts.layout_dict(best.layout),
                "step_s": best.step_s,
                "text": self.best_text,
            }
            if best
            else None,
            "read": [
                {"name": s.name, "value": s.value, "key": s.key, "file": s.file, "line": s.line}
                for s in self.settings
            ],
            "assumed": [{"name": a.name, "value": a.value, "why": a.why} for a in self.assumed],
            "ignored": [_ignored(i) for i in self.ignored],
            "unmodelled": [_ignored(i) for i in self.unmodelled],
        }
        return result

    def rows(self) -> list[dict]:
        """A row for the launch as it stands, and one for each change."""
        step_s = self.estimate.step_s if self.estimate else None
        tokens_per_s = self.served.tokens_per_s if self.served else None
        held = self.total_bytes
        as_is = Change((), "as it stands", self.fits, held, 0.0, step_s, 0.0, tokens_per_s)
        return [printing.flat(each.as_dict()) for each in (as_is, *self.changes)]


def _ignored(one: Ignored) -> dict:
    return {"key": one.key, "value": one.value, "file": one.file, "line": one.line, "why": one.why}


def check_launch(
    texts: Texts,
    gpu: Machine | Gpu | str | None = None,
    gpus: int | None = None,
    also: tuple[str, ...] = ALSO,
    host_bytes: float | None = None,
) -> Report:
    """The report on what these texts would launch; see ``engine.check_launch``. ``also`` are those of ALSO
    that are wanted: a page asks for the verdict first."""
    if host_bytes is not None:
        check.positive(host_bytes=host_bytes)
    if gpus is not None and (gpus.__class__ is not int or not 1 <= gpus <= MOST_GPUS):
        raise ValueError(f"gpus must be a whole number from 1 to {MOST_GPUS:,}, got {gpus!r}")
    base = _gpu(gpu)
    given = reading.read(texts, gpus)
    launch = given.launch
    if launch is None:
        return Report(
            UNKNOWN, None, base.key, tuple(given.faults), capacity_bytes=memory.capacity_bytes(base)
        )
    if gpu is None:
        words = "no text is asked which GPU: the course's reference machine"
        launch = replace(launch, assumed=(*launch.assumed, Assumed("gpu", USUAL, words)))
    found = judged(launch, gpu, host_bytes)
    if found.parts is None or found.partly:
        return found
    if "changes" in also:
        found = replace(found, changes=_changes(found, given, gpu, gpus, host_bytes))
    if "reach" in also and not isinstance(gpu, (Machine, Gpu)):
        fits = lambda one, on: judged(one, on, host_bytes).fits
        found = replace(found, reach=far.of(found.launch, found.gpu, found.room, fits))
    if "best" in also and found.estimate and launch.job:
        best = planned.best(launch, found.estimate.at)
        if (
            best
            and judged(replace(launch, layout=best.layout, refused=()), gpu).total_bytes
            > found.capacity_bytes
        ):
            best = None  # the optimizer's step takes more than the search knows
        found = replace(found, best=best, best_text=planned.written(launch, best.layout) if best else "")
    return found


def _changes(
    found: Report,
    given: LaunchReading,
    gpu: Machine | Gpu | str | None,
    gpus: int | None,
    host_bytes: float | None = None,
) -> tuple[Change, ...]:
    """The best changes of what was read."""
    length = sum(len(source.given) for source in given.sources)
    edits = islice(changes.neighbours(given, gpus, _fitting(found)), max(4, MOST_READ // max(1, length)))
    options = [(edit, judged(edit.launch, gpu, host_bytes)) for edit in edits]
    return best_of(found, options, gpu, gpus, PAIRED if length < MOST_READ // 100 else 0, host_bytes)


def _gpu(gpu: Machine | Gpu | str | None) -> Gpu:
    if isinstance(gpu, Machine):
        return gpu.gpu
    if isinstance(gpu, Gpu):
        return gpu
    if gpu is None or isinstance(gpu, str):
        return catalog.gpu(gpu or USUAL)
    raise ValueError(f"gpu must be an engine.Machine, a Gpu or the key of one, got {gpu!r}")


def machine_of(gpu: Machine | Gpu | str | None, precision: str) -> Machine:
    """The machine in the launch's precision; with a Machine's own wires."""
    return own.machine(_gpu(gpu), precision, gpu.wires if isinstance(gpu, Machine) else None)


def judged(launch: Launch, gpu: Machine | Gpu | str | None, host_bytes: float | None = None) -> Report:
    """Memory, time and verdict of one launch, on nodes whose host has so much memory, if that is said."""
    base = _gpu(gpu)
    refused, faults = list(launch.refused), launch.faults
    report = Report(ILLEGAL, launch, base.key, faults, capacity_bytes=memory.capacity_bytes(base))
    try:
        if launch.server:
            return served(launch, gpu, report)
        at = machine_of(gpu, format_of(launch, base))
        return trained(launch, at, of_the_host(launch, at, report, host_bytes))
    except (ValueError, ArithmeticError) as error:
        if not refused:
            refused.append(Refused(f"ValueError: {error}"))
        if launch.unmodelled and not launch.refused:
            return replace(report, verdict=UNKNOWN)
        return replace(report, refused=tuple(refused), verdict=ILLEGAL)


def format_of(launch: Launch, gpu: Gpu) -> str:
    """The format of the products. One that nobody asked for is the other of 16 bits on a GPU without it."""
    assumed = any(one.name == "precision" and one.value == "bf16" for one in launch.assumed)
    return "fp16" if assumed and not gpu.bf16_flops_per_s else launch.precision


def of_the_host(launch: Launch, at: Machine, report: Report, host_bytes: float | None) -> Report:
    """The report with what a node's host holds, and has: where nobody says, as in the maker's own node, which
    is an assumption."""
    on_node = min(launch.gpus, max(A_NODE, int(at.gpu.gpus_per_node)))
    hosted = frameworks()[launch.framework].hosted_bytes(launch) * on_node
    if not hosted or host_bytes:
        return replace(report, hosted_bytes=hosted, host_bytes=host_bytes or 0.0)
    hosts = catalog.all_hosts()
    usual = hosts[at.gpu.key].memory_bytes * int(at.gpu.gpus_per_node) if at.gpu.key in hosts else 0.0
    has = f"{usual / GIB:,.0f} GiB" if usual else "enough"
    words = (
        f"its maker's node; training keeps {hosted / GIB:,.0f} GiB there"
        if usual
        else (f"nobody says how much it has; training keeps {hosted / GIB:,.0f} GiB there")
    )
    assumed = Assumed("host's memory", has, words)
    launch = replace(launch, assumed=(*launch.assumed, assumed))
    return replace(report, launch=launch, hosted_bytes=hosted, host_bytes=usual)


def trained(launch: Launch, at: Machine, report: Report) -> Report:
    """A training launch, estimated."""
    assert launch.job is not None and launch.layout is not None
    said = report.launch.assumed if report.launch else ()
    found = layouts.estimate(launch.model, at, launch.job, launch.layout)
    held = found.memory_bytes
    total, capacity = held.pop("total"), held.pop("capacity")
    seen = pictured.added_bytes(launch)
    if seen:
        held["activations"] = held["activations"] + seen
        total = total + seen
    passing = frameworks()[launch.framework].passing_bytes(launch, float(held["optimizer"]))
    if passing > held["activations"]:  # which are gone by then
        held["adam_step"] = passing - held["activations"]
        total = total + held["adam_step"]
    buckets = frameworks()[launch.framework].buckets_bytes(launch, float(held["gradients"]))
    if buckets:
        held["buckets"] = buckets
        total = total + buckets
    over = report.hosted_bytes > report.host_bytes > 0.0
    if over and len(said) > len(launch.assumed):  # only what is assumed of the host is too little
        known = Ignored("host's memory", "", "", 0, HOST)
        launch = replace(launch, unmodelled=(*launch.unmodelled, known))
        report = replace(report, launch=launch)
    if launch.unmodelled:
        return unless_sure(launch, report, float(held["weights"]))
    refused = launch.refused
    if over:
        words = f"{KILLED}: training keeps {report.hosted_bytes / GIB:,.0f} GiB in the host's memory"
        refused = (*refused, Refused(f"{words}, which has {report.host_bytes / GIB:,.0f}"))
    if launch.roles or launch.handed:
        held = beside.moments(launch, at, held).fullest
        total = sum(held.values())
        for role in launch.roles:
            if role.name == ROLLOUT and beside.too_small(role, at.gpu):
                takes = beside.weights_bytes(role) / GIB
                words = f"the engine's weights take {takes:.1f} GiB of each GPU, more than its share of it"
                said = f"ValueError: No available memory for the cache blocks: {words}."
                refused = (*refused, Refused(said))
    if seen and report.launch:
        known = report.launch
        report = replace(report, launch=replace(known, assumed=(*known.assumed, pictured.assumed(launch))))
    low, high = bands.band("memory")
    sure = FITS if high * total <= capacity else TOO_LARGE if low * total > capacity else CLOSE
    return replace(
        report,
        verdict=ILLEGAL if launch.refused else TOO_LARGE if refused else sure,
        refused=refused,
        parts={name: float(size) for name, size in held.items()},
        total_bytes=float(total),
        capacity_bytes=float(capacity),
        passing_bytes=passing,
        stages=found.bytes_by_stage if found.layout.pp > 1 and not launch.roles else None,
        estimate=found,
        extrapolates=_outside(at, found.extrapolates),
    )


def unless_sure(launch: Launch, report: Report, weights_bytes: float) -> Report:
    """The report on a launch of which something is not modelled: no verdict and no figures, unless the
    weights alone are too large and nothing of what is not modelled could make them less."""
    lightens = (*frameworks()[launch.framework].lightens, NOT_KNOWN)
    less = any(one.why in lightens for one in launch.unmodelled)
    if launch.refused:
        return replace(report, verdict=ILLEGAL, refused=launch.refused)
    if less or weights_bytes <= report.capacity_bytes:
        return replace(report, verdict=UNKNOWN)
    return replace(
        report, verdict=TOO_LARGE, parts={"weights": weights_bytes}, total_bytes=weights_bytes, partly=True
    )


def _outside(at: Machine, names: tuple[str, ...]) -> tuple[str, ...]:
    """What lies outside of the calibration; one's own GPU always does."""
    return names if at.gpu == catalog.gpu(at.gpu.key) else tuple(dict.fromkeys(("gpu", *names)))


# -- a server ------------------------------------------------------------------------------------------------
def served(launch: Launch, gpu: Machine | Gpu | str | None, report: Report) -> Report:
    """A server, with its cache and a full batch of requests."""
    assert launch.server is not None
    base = _gpu(gpu)
    s = frameworks()[launch.framework].settled(launch.server, base)
    launch = replace(launch, server=s, assumed=settled(launch.assumed, s))
    precision, stored = launch.precision, s.weight_precision
    if not getattr(base, f"{precision}_flops_per_s", 0.0):  # weights are widened before the product
        precision = "bf16" if base.bf16_flops_per_s else "fp16"
        stored = stored or launch.precision
    at = machine_of(gpu, precision)
    room = room_of(launch, at, stored)
    if s.yields or s.shortens:
        launch, room = _yielded(launch, at, stored, room)
        s = launch.server or s
    refused = [*launch.refused, *shortage(launch, room)]
    found = (
        ("memory", room.doubt, turns(room)),
        ("pictures", s.crosses, bool(s.crosses) and room.cache_bytes + room.less > 0),
        ("requests", BLOCKS, nearly(launch, room)),
    )
    place = next(((one.file, one.line) for one in launch.settings if one.name == "model"), ("", 0))
    undecided = tuple(Ignored(key, "", *place, why) for key, why, so in found if so)
    launch = replace(launch, unmodelled=(*launch.unmodelled, *undecided))
    if launch.unmodelled:
        return unless_sure(launch, replace(report, launch=launch), room.parts["weights"])
    report = replace(
        report,
        launch=launch,
        verdict=ILLEGAL if launch.refused else TOO_LARGE if refused else FITS,
        refused=tuple(refused),
        parts=room.parts,
        total_bytes=sum(room.parts.values())
        if room.cache_bytes > 0
        else room.allowed_bytes - room.cache_bytes,
        capacity_bytes=room.allowed_bytes,
        room=room,
    )
    prompt = min(PROMPT, max(1, s.longest // 2))
    output = max(1, min(OUTPUT, s.longest - prompt))
    batch = min(s.requests, room.tokens // (prompt + output))
    away = s.drafts or s.on_host_bytes or s.on_gpu < 1.0 or s.experts_away
    framework = frameworks()[launch.framework]
    if batch < 1 or s.pp > 1 or s.dp > 1 or away or not framework.timed:
        return report
    answer = inference.infer(
        launch.model, at, Serving(s.tp, batch, prompt, output, s.kv_precision, weight_precision=stored)
    )
    if program := framework.timed_as(s.release):
        answer = server_software.run_by(program, answer)
    outside = (*answer.extrapolates, *(("adapters",) if s.adapters else ()))  # which take time, too
    return replace(report, served=answer, extrapolates=_outside(at, outside))


def _yielded(
    launch: Launch, at: Machine, stored: str | float | None, room: ServerRoom
) -> tuple[Launch, ServerRoom]:
    """What is launched where a program does without tokens of its context, and then without layers on the
    GPUs, until the rest fits."""
    s = launch.server
    assert s is not None
    depth = int(launch.model.depth)
    if s.shortens and room.needed_bytes > room.cache_bytes:
        s = replace(s, longest=max(min(s.longest, LEAST), room.longest // 256 * 256))
        lowered = Assumed("longest", s.longest, "lowered until it fits")
        others = tuple(one for one in launch.assumed if one.name != lowered.name)
        launch = replace(launch, server=s, assumed=(*others, lowered))
        room = room_of(launch, at, stored)
    layers = depth
    while s.yields and layers > 0 and room.needed_bytes > room.cache_bytes:
        layers -= 1
        launch = replace(launch, server=replace(s, on_gpu=layers / depth))
        room = room_of(launch, at, stored)
    if layers < depth:
        words = f"of {depth}: as many as fit, if the host's memory holds the others"
        launch = replace(launch, assumed=(*launch.assumed, Assumed("layers on the GPUs", layers, words)))
    return launch, room


def settled(assumed: tuple[Assumed, ...], s: Server) -> tuple[Assumed, ...]:
    """What was assumed, with what the program makes of the GPU."""
    values = {"requests": s.requests, "share": s.share}
    return tuple(
        one
        if values.get(one.name, one.value) == one.value
        else Assumed(one.name, values[one.name], "its default on this GPU")
        for one in assumed
    )


def room_of(launch: Launch, at: Machine, stored: str | float | None) -> ServerRoom:
    """What a server's GPU holds: its part of the weights, the framework's own, and the cache in what is left
    of its share. A pipeline's stages share both evenly; groups that share experts have caches of their
    own."""
    s = launch.server
    assert s is not None
    size = shape(launch.model)
    if s.formats:
        stored = models.bytes_of_a_weight(launch.model, s.formats)
    weights = (
        wide.weight_bytes_per_gpu(launch.model, at, s.tp, s.dp, stored)
        if s.dp > 1
        else inference.weight_bytes_per_gpu(launch.model, at, s.tp, stored) / s.cut
    )
    if s.bytes_each:
        weights = in_file.weight_bytes(launch.model, s.bytes_each, s.on_gpu, s.experts_away, s.pp)
    loaded = 2.0 * models.parameters(launch.model) / (s.tp * s.cut) if s.loaded_whole else 0.0
    weights = max(0.0, float(weights) - s.on_host_bytes)
    capacity = float(memory.capacity_bytes(at.gpu))
    own = frameworks()[launch.framework].holds(s, launch.model, at.gpu)
    weights = weights + own.beyond
    beside = dict(own.inside)
    if s.adapters:
        slots = adapters.server_bytes(launch.model, s.adapters, s.adapter_rank, s.tp) / s.cut
        beside["adapters"] = float(slots)
    if s.drafts and s.drafts.model:
        beside["drafts"] = draft_memory.model_bytes(s.drafts.model, float(s.tp))
    elif s.drafts and s.drafts.modules:
        each = weights * s.tp * s.cut / float(models.parameters(launch.model))
        beside["drafts"] = s.drafts.modules * draft_memory.module_bytes(launch.model, each, float(s.tp))
    held = sum(beside.values()) + weights
    rest = capacity - held
    cache = s.share * rest if s.of_rest else s.share * capacity - held
    cache = s.cache_bytes or cache
    left = capacity - held - cache + own.spare
    value = s.cached_bytes or memory.BYTES_PER_VALUE[s.kv_precision]
    token = float(memory.kv_bytes_per_token(size, value)) / (
        float(inference.kv_shards(size, float(s.tp))) * s.cut
    )
    needed = _request_bytes(size, s, value, s.longest) + _drafted(launch, value, s.longest)
    longest, blocks = (s.longest if needed <= cache else _longest(launch, size, cache, value)), 0
    if own.in_blocks and compressed.compresses(launch.model):
        entries = compressed.blocks(launch.model, s.cut)
        step = s.chunk or s.longest
        of_one, blocks = entries.of_request(s.longest, step), max(0, int(cache // entries.each_bytes))
        needed = of_one * entries.each_bytes
        beside_entries = of_one - -(-s.longest // compressed.BLOCK)
        longest = min(s.longest, max(0, (blocks - beside_entries) * compressed.BLOCK))
        tokens, blocks = blocks * s.longest // of_one, 0
    elif own.in_blocks and paged.has_states(size):
        modules = s.drafts.modules if s.drafts else 0
        of = paged.blocks(size, value, float(s.tp), s.cut, float(modules))
        blocks = max(0, int(cache // of.each_bytes))
        needed = of.of_request(s.longest) * of.each_bytes
        room = (blocks - of.states) // of.attention * of.tokens
        tokens, longest = blocks // of.attention * of.tokens, min(s.longest, max(0, room))
    else:
        states = s.requests * _request_bytes(size, s, value, 0)  # of linear attention, whatever the length
        each = token * s.on_gpu + _drafted(launch, value, 1)
        tokens = max(0, int((cache - states) // each)) if each else 0
    return ServerRoom(
        {"weights": weights, **beside, "cache": max(0.0, float(cache))},
        float(capacity if s.of_rest or s.cache_bytes else s.share * capacity),
        float(cache),
        tokens,
        needed,
        longest,
        blocks,
        own.less,
        own.more,
        own.doubt,
        max(
            loaded - capacity,
            held + s.cache_bytes - capacity if s.cache_bytes else 0.0,
            own.graphs_outside - left if cache > 0 else 0.0,
        ),
    )


def _drafted(launch: Launch, value: float, tokens: int) -> float:
    """What is kept of a request on a GPU for what drafts its tokens."""
    s = launch.server
    if s is None or s.drafts is None:
        return 0.0
    if s.drafts.model:
        return draft_memory.cached_bytes(s.drafts.model, value, float(tokens), float(s.tp))
    return s.drafts.modules * draft_memory.module_cached_bytes(
        launch.model, value, float(tokens), float(s.tp)
    )


def _request_bytes(size, s: Server, value: float, tokens: int) -> float:
    """What a request of this many tokens keeps on a GPU."""
    if s.cache_away:
        return 0.0
    return float(inference.kept_bytes(size, float(tokens), 1.0, value, float(s.tp))) / s.cut * s.on_gpu


def _longest(launch: Launch, size, cache: float, value: float) -> int:
    """The longest request whose cache fits, by halving."""
    s = launch.server
    assert s is not None
    low, high = 0, s.longest
    while low < high:
        middle = (low + high + 1) // 2
        fits = _request_bytes(size, s, value, middle) + _drafted(launch, value, middle) <= cache
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def turns(room: ServerRoom) -> bool:
    """Whether what is known to a factor alone decides if the cache is large enough."""
    least, most = room.cache_bytes - room.more, room.cache_bytes + room.less
    return least < most and (room.needed_bytes <= least) != (room.needed_bytes <= most)


def nearly(launch: Launch, room: ServerRoom) -> bool:
    """Whether the blocks for states are about as many as the requests: published counts are up to a sixth
    less and a tenth more."""
    s = launch.server
    assert s is not None
    most = frameworks()[launch.framework].too_many(s, room.blocks)
    return bool(room.blocks and most) and room.blocks / LESS < s.requests <= room.blocks * MORE


def shortage(launch: Launch, room: ServerRoom) -> list[Refused]:
    """The error with which a server ends that has too little room, in its words."""
    s = launch.server
    assert s is not None
    of = frameworks()[launch.framework]
    said = of.too_small(s, room.longest, room.needed_bytes, room.cache_bytes)
    if not said and room.blocks and room.blocks < s.requests:
        said = of.too_many(s, room.blocks)
    if not said and room.short_bytes > 0:
        said = f"{OUT_OF_MEMORY} ({room.short_bytes / GIB:.2f} GiB more than there are)"
    place = next(((x.file, x.line) for x in launch.settings if x.name in ("longest", "share")), ("", 0))
    return [Refused(said, *place)] if said else []


def _fitting(report: Report) -> int:
    """The longest request that would fit a server that cannot take its longest; in whole 256 tokens."""
    if report.room is None:
        return 0
    return report.room.longest // 256 * 256


# -- the best changes ----------------------------------------------------------------------------------------
def best_of(
    base: Report,
    options: list[tuple[Edited, Report]],
    gpu: Machine | Gpu | str | None,
    gpus: int | None,
    paired: int = PAIRED,
    host_bytes: float | None = None,
) -> tuple[Change, ...]:
    """The best few: of a launch that fits the fastest, of another those that make it fit, alone or two
    together; where none does, those that save most."""
    fitting = [pair for pair in options if pair[1].fits]
    if base.fits:
        good = [pair for pair in fitting if _rate(pair[1]) * BETTER > _rate(base)]
        return tuple(change(base, *pair) for pair in sorted(good, key=_fastest)[:CHANGES])
    if len(fitting) < CHANGES and base.estimate:
        saving = sorted(
            (p for p in options if p[1].total_bytes < base.total_bytes), key=lambda p: p[1].total_bytes
        )
        for first, second in combinations(saving[:paired], 2):
            if first[0].what[0][0] != second[0].what[0][0]:
                both = changes.again(first[0], second[0].what[0], gpus)
                if both:
                    options.append((both, judged(both.launch, gpu, host_bytes)))
        fitting = [pair for pair in options if pair[1].fits]
    if fitting:
        return tuple(change(base, *pair) for pair in sorted(fitting, key=_simplest)[:CHANGES])
    less = [pair for pair in options if pair[1].parts and pair[1].total_bytes < base.total_bytes]
    return tuple(change(base, *pair) for pair in sorted(less, key=lambda p: p[1].total_bytes)[:CHANGES])


def _rate(report: Report) -> float:
    """Tokens a second for each GPU."""
    gpus = report.launch.gpus if report.launch else 1
    if report.served and report.launch and report.launch.server:
        return report.served.tokens_per_s * report.launch.server.replicas / gpus
    return report.estimate.tokens_per_s / gpus if report.estimate else 0.0


def _fastest(pair: tuple[Edited, Report]) -> tuple:
    return (-_rate(pair[1]), pair[0].lines)


def _simplest(pair: tuple[Edited, Report]) -> tuple:
    """Single changes first, then the faster."""
    return (len(pair[0].what), -_rate(pair[1]), pair[0].lines)


def change(base: Report, edit: Edited, report: Report) -> Change:
    """What an edit gains and costs."""
    before, after = _rate(base), _rate(report)
    return Change(
        edit.lines,
        " and ".join(f"{name} {value}" for name, value in edit.what),
        report.fits,
        report.total_bytes,
        base.total_bytes - report.total_bytes,
        report.estimate.step_s if report.estimate else None,
        after / before - 1.0 if before and after else None,
        report.served.tokens_per_s if report.served else None,
        edit.texts,
        report.fits and not base.fits,
    )
