"""A report as lines of text, for a terminal or a tracker."""

from __future__ import annotations

from engine import catalog
from engine.base import printing
from engine.base.units import human
from engine.calibration import bands, known
from engine.catalog.models import parameters
from engine.frameworks.registry import frameworks
from engine.launch import over_a_step
from engine.launch.verdict import CLOSE, ILLEGAL, TOO_LARGE, UNKNOWN, Change, Report
from engine.step.layout import written as in_words

WIDTH = 40  # characters of the widest bar
GIB = 2.0**30


NO_EDIT = "No edit of these lines alone makes it fit: it takes more GPUs, or larger ones."


def hopeless(report: Report) -> bool:
    """Whether it does not fit and nothing was found that would be enough."""
    enough = any(change.fits for change in report.changes)
    return not report.fits and report.estimate is not None and not report.refused and not enough


def gib(size: float) -> str:
    """Bytes as the programs' own messages give them."""
    return f"{size / GIB:.1f} GiB"


def lines(report: Report, over: over_a_step.Over | None = None) -> list[str]:
    """The whole report; with what the allocator makes of a step, if that was asked."""
    found = [str(fault) for fault in report.faults if fault.misspelt]
    found.append(headline(report))
    if report.launch is not None:
        found += ["", *about(report)]
    if report.parts:
        found += ["", *bars(report)]
    if over is not None:
        found.append(f"  {over_a_step.words(over, report.capacity_bytes)}")
    found += rate(report)
    found += reach(report)
    if report.refused:
        found += ["", "What the framework will say:"]
        found += [f"  {_at(r.file, r.line)}{r.error}" for r in report.refused]
    if hopeless(report):
        found += ["", NO_EDIT]
    if report.changes:
        found += ["", "The best changes:"]
        for number, change in enumerate(report.changes, 1):
            found += changed(number, change)
    if report.best is not None:
        found += ["", best_headline(report)]
        found += [f"  {line}" for line in report.best_text.rstrip().splitlines()]
    return [*found, *sources(report)]


@printing.parts.register
def _parts(report: Report) -> list[printing.Part]:
    """The same with the memory over a step, each line a part."""
    return [*lines(report, over_a_step.of_report(report))]


def headline(report: Report) -> str:
    """The verdict in one sentence."""
    held, limit = gib(report.total_bytes), gib(report.capacity_bytes)
    launch, room = report.launch, report.room
    if launch is None:
        why = f": {report.faults[0]}" if report.faults else ""
        return f"Cannot say: nothing here can be checked{why}"
    gpus = catalog.all_gpus()
    gpu = gpus[report.gpu].name if report.gpu in gpus else report.gpu
    name = f"{frameworks()[launch.framework].name}, {launch.model.name} on {launch.gpus} × {gpu}"
    if report.verdict == UNKNOWN:
        one = report.unmodelled[0]
        return f"{name}: cannot say: {one.key} {one.value}: {one.why}."
    if report.verdict == ILLEGAL:
        return f"{name}: will not start: {report.refused[0].error}"
    if launch.server and room:
        if room.cache_bytes <= 0:
            return (
                f"{name}: does not fit: it needs {held} of each GPU before its cache, and may take {limit}."
            )
        if report.verdict == TOO_LARGE:
            return (
                f"{name}: does not fit: a request of {launch.server.longest:,} tokens needs "
                f"{gib(room.needed_bytes)} of cache on each GPU, and {gib(room.cache_bytes)} are left."
            )
        return f"{name}: fits, with room for {room.tokens:,} tokens in its cache."
    if report.partly:
        return f"{name}: does not fit: the weights alone take {held} of each GPU, of {limit}."
    if report.verdict == TOO_LARGE and report.refused:
        return f"{name}: does not fit: {report.refused[0].error}"
    if report.verdict == CLOSE:
        low, high = (gib(size) for size in report.total_band_bytes)
        side = "a little less" if report.fits else "more"
        return f"{name}: close: {held} on the fullest GPU, {low} to {high}, is {side} than its {limit}."
    return f"{name}: {report.verdict}: {held} on the fullest GPU, of {limit}."


def about(report: Report) -> list[str]:
    """What will run."""
    launch = report.launch
    if launch is None:
        return []
    model = launch.model
    size = human(float(parameters(model)), "params")
    shape = f"{model.name}: {size} parameters in {model.depth} layers of {model.hidden:,}"
    if launch.layout is None or launch.job is None:
        return [shape]
    a, job = launch.layout, launch.job
    sequences = "sequence" if job.global_batch == 1 else "sequences"
    extras = [f"ZeRO-{a.zero}" if a.zero else "", f"schedule {a.schedule}" if a.pp > 1 else ""]
    extras += [
        f"recompute {a.recompute}"
        + (f" of {a.recompute_layers} layers a stage" if a.recompute_layers else "")
    ]
    return [
        shape,
        f"{in_words(a)}; {', '.join(word for word in extras if word)}; {launch.precision}",
        f"{job.global_batch} {sequences} of {job.seq:,} tokens a step, {a.micro_batch} at a time",
    ]


def bars(report: Report) -> list[str]:
    """The memory of the fullest GPU by part, against what there is."""
    assert report.parts is not None
    top = max(report.capacity_bytes, report.total_bytes, 1.0)
    found = ["Memory of the fullest GPU:"]
    for name, size in report.parts.items():
        found.append(f"  {name:<12}{gib(size):>11}  {'█' * round(WIDTH * size / top)}".rstrip())
    found.append(f"  {'all':<12}{gib(report.total_bytes):>11}  of {gib(report.capacity_bytes)}")
    if report.stages:
        each = [f"{name} {gib(size)}" for name, size in report.stages.items()]
        found.append(f"  By stage of the pipeline: {', '.join(each)}")
    if report.estimate:
        low, high = report.total_band_bytes
        found.append(f"  80 % of comparable runs lie between {gib(low)} and {gib(high)}")
    return found


def rate(report: Report) -> list[str]:
    """Seconds of a step or tokens a second, with the band, and what lies outside of the calibration."""
    found = []
    if report.launch and report.launch.roles:
        return ["", "The time of a step is not said: how long answers take to write is not modelled."]
    if report.estimate:
        e = report.estimate
        low, high = (human(seconds, "seconds") for seconds in e.band_s)
        per_gpu = e.tokens_per_s / e.layout.gpus
        found = [
            "",
            (
                f"Step: {human(e.step_s, 'seconds')}, in 80 % of comparable runs {low} to {high}; "
                f"{per_gpu:,.0f} tokens/s on each GPU, {100 * e.mfu():.0f} % MFU"
            ),
        ]
    elif report.served:
        s = report.served
        low, high = s.band_tokens_per_s
        found = [
            "",
            (
                f"Rate: {s.tokens_per_s:,.0f} output tokens/s ({low:,.0f} to {high:,.0f}) with "
                f"{s.serving.batch} requests of {s.serving.prompt} + {s.serving.output} tokens; a token "
                f"every {human(s.time_per_output_token_s, 'seconds')}"
            ),
        ]
    if report.extrapolates:
        found.append(f"Outside of all measured runs: {', '.join(report.extrapolates)}")
        by = known.rates_from(report.gpu)
        if "gpu" in report.extrapolates and by != "measured":
            found.append(f"No kernels were timed on this GPU: shares of its data sheet, {by}")
    return found


def reach(report: Report) -> list[str]:
    """How far it could go as it stands, in a line; nothing where that was not asked."""
    launch, of = report.launch, report.reach
    if launch is None or of is None or not (of.longest or of.users or of.card):
        return []
    what = "request" if launch.server else "sequence"
    told = [f"the longest {what} that fits has {of.longest:,} tokens"] if of.longest else []
    if not of.longest and not report.refused:
        told.append(f"no {what} fits")
    if launch.server and of.users:
        told.append(f"of the greatest length {of.users:,} fit at once")
    if of.card:
        told.append(f"the smallest card that holds it is the {catalog.all_gpus()[of.card].name}")
    return ["", f"As it stands, {'; '.join(told)}."]


def best_headline(report: Report) -> str:
    """What the planner found, in one line; empty where it found nothing."""
    e = report.best
    if e is None:
        return ""
    said = f"The planner's best here: {in_words(e.layout)}, {human(e.step_s, 'seconds')} a step"
    mine = report.estimate
    if mine is None or not report.fits or mine.layout == e.layout or mine.step_s >= e.step_s * bands.tie():
        return said
    return f"{said}, less than {100 * (bands.tie() - 1):.0f} % from yours: too close to rank"


def gained(change: Change) -> str:
    """What a change gains and costs."""
    gains = ["then it fits" if change.tokens_per_s is None else "then it starts"] if change.mends else []
    if change.saved_bytes:
        gains.append(f"{'saves' if change.saved_bytes > 0 else 'takes'} {gib(abs(change.saved_bytes))}")
    if change.faster_by is not None and abs(change.faster_by) >= 0.005:
        gains.append(f"{100 * abs(change.faster_by):.0f} % {'faster' if change.faster_by > 0 else 'slower'}")
    if not change.fits:
        gains.append("still does not fit")
    return ", ".join(gains) or "as fast"


def changed(number: int, change: Change) -> list[str]:
    """One change: its lines, and what it gains and costs."""
    return [f"  {number}. {change.what}: {gained(change)}", *(f"       {line}" for line in change.lines)]


def sources(report: Report) -> list[str]:
    """What was read, assumed and ignored, line by line."""
    found = []
    for title, rows in (
        ("Wrong in the texts:", [str(fault) for fault in report.faults if not fault.misspelt]),
        ("Not modelled:", [f"{_at(i.file, i.line)}{i.key} {i.value}: {i.why}" for i in report.unmodelled]),
        (
            "Read:",
            [f"{_at(s.file, s.line)}{s.key} {s.entry.value} → {s.name} {s.value}" for s in report.settings],
        ),
        ("Assumed:", [f"{a.name} {a.value}: {a.why}" for a in report.assumed]),
        ("Ignored:", [f"{_at(i.file, i.line)}{i.key} {i.value}: {i.why}" for i in report.ignored]),
    ):
        if rows:
            found += ["", title, *(f"  {row}" for row in rows)]
    return found


def _at(file: str, line: int) -> str:
    return f"{file}:{line}: " if line else ""
