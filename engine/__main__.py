"""The engine on the command line: ``python -m engine estimate | plan | infer | deploy | check | calibrate |
collective | goodput | cost | models | gpus | recipes | nodes | fabrics | validate | puzzle | exam``.

Prints tables by default, JSON for programs with ``--json``, and with ``--csv`` the rows of what has rows. Bad
input gives one line on standard error and exit status 2. A ``cost`` above its ``--budget`` prints the bill as
usual, one line on standard error, and exits with status 3; so does a ``check`` of what does not fit or cannot
start. A ``puzzle`` that is not right yet exits with status 1.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import stat
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from engine import api, catalog, puzzles
from engine.arguments import BELOW, by_flag, layout_flags, one_line, parser, refused
from engine.base import check, printing, units
from engine.base.bar import Bar
from engine.catalog import entries, models
from engine.catalog.hardware import Gpu
from engine.catalog.models import Model
from engine.catalog.software import DEFAULT, change
from engine.exam import sheet
from engine.frameworks import able
from engine.frameworks.described import Launch
from engine.frameworks.registry import trainers
from engine.launch import cluster_profile, over_a_step, packaged, planned, shown
from engine.launch.verdict import CLOSE, FITS, ILLEGAL, STATUSES, TOO_LARGE, UNKNOWN
from engine.mechanism.seeing import Pictures
from engine.puzzles import puzzle_files
from engine.serving.deployment import Deployments, Limits, Load, agents
from engine.serving.deployment.load import ANY_S
from engine.serving.drafts import Drafts
from engine.serving.sessions import Sessions
from engine.step import own, search
from engine.step.constraints import FREE, Constraints
from engine.step.layout import Estimate, Job, Layout, Machine
from engine.validation import accuracy

NOT_YET = 1  # exit status of ``puzzle --check`` where the answer is not right
OVER_BUDGET = 3  # exit status of ``cost`` when the budget guard refuses; those of ``check`` are in its room
PATIENCE_S = 5.0  # for somebody to write to a pipe
LARGEST_FILE = 4 * 10**6  # bytes of a text to check: four for each character that is read


# -- commands ------------------------------------------------------------------------------------------------
class Result(NamedTuple):
    """What a command found, in the three forms that it can be asked for."""

    data: dict | list  # for --json
    parts: Sequence[printing.Part]  # what is printed otherwise
    rows: Sequence[dict] = ()  # for --csv, where the command has rows
    script: str = ""  # what alone goes to standard output, with the rest on standard error


def of(
    found: printing.Printed,
    more: dict | None = None,
    above: Sequence[printing.Part] = (),
    below: Sequence[printing.Part] = (),
) -> Result:
    """A result of the engine, which prints as it does in Python, and what a command adds to it."""
    return Result(found.as_dict() | (more or {}), [*above, *printing.parts(found), *below], found.rows())


def listed(rows: list[dict], columns: list[str] | None = None) -> Result:
    """Rows of one kind: all of their columns as JSON and CSV; in the table those that are named, or all but
    the source, which is long."""
    shown_of = columns or [key for key in rows[0] if key != "source"]
    return Result(rows, [printing.Table(rows, shown_of)], rows)


def _model(args: Namespace) -> Model:
    """A model of the reader's file, or the one that is named; an assistant's call has it already."""
    if args.model_file:
        return catalog.model_from_file(args.model_file)
    return args.model if isinstance(args.model, Model) else api.model(args.model)


def _gpu(args: Namespace) -> Any:
    """A GPU of the reader's file, or whatever names one to the public functions."""
    return own.gpu_from_file(args.gpu_file) if args.gpu_file else args.gpu


def _machine(args: Namespace, precision: str) -> Machine:
    """A GPU of the catalogue or of a file, which may itself say what its node and its NICs are."""
    node = args.gpus_per_node, args.nic_bytes_per_s, args.oversubscription
    return Machine.of(_gpu(args), precision, *node, args.nic)


def _job(args: Namespace) -> Job:
    changes = dict(change(text) for text in args.changes)
    if args.software is None and getattr(args, "recompute", None) == "selective":
        changes.setdefault("attention", "scores")
    by = catalog.training_software(args.software or DEFAULT, **changes)
    seen = Pictures(args.pictures, args.pixels, args.train_tower) if args.pictures else None
    recipe = catalog.recipe(args.recipe) if args.recipe else None
    return Job(args.global_batch, args.seq, recipe, by, args.imbalance, args.mtp, pictures=seen)


def _layout(args: Namespace, gpus: int) -> Layout:
    return Layout(
        gpus,
        args.tp,
        args.pp,
        args.cp,
        args.ep,
        args.zero,
        args.micro_batch,
        args.recompute,
        args.schedule,
        args.interleave,
        args.expert_tp,
        args.shard,
        args.recompute_layers,
        args.first_layers,
        args.last_layers,
        args.offload,
    )


def run_estimate(args: Namespace) -> Result:
    """``estimate``: time and memory of one layout's step."""
    layout = _layout(args, args.gpus)
    found = api.estimate(_model(args), _machine(args, args.precision), _job(args), layout)
    more, below = _corrected(args.profile, found)
    return of(found, more, below=below)


def _corrected(path: str | None, found: Estimate | None) -> tuple[dict, list[str]]:
    """What the reader's own runs make of a step, where there is a profile and a step."""
    profile = api.profile(path) if path else None
    if profile is None or found is None:
        return {}, []
    after = profile.of(found)
    return {"calibrated": after.as_dict()}, ["", cluster_profile.in_words(after)]


def _constraints(args: Namespace) -> Constraints:
    return Constraints(
        able(args.framework or ""),
        args.tp,
        args.pp,
        args.cp,
        args.ep,
        args.micro_batch,
        args.zero,
        args.schedules,
        args.most_chunks,
        args.recompute or "",
        args.leave,
    )


def run_plan(args: Namespace) -> Result:
    """``plan``: the fastest layouts of a job, and with ``--beside`` one of the reader's own."""
    within = _constraints(args)
    export = args.export or ""
    framework = _can(export) if export else args.framework or ""
    asked = {"top": args.top, "within": within, "hsdp": args.hsdp, "framework": framework}
    asked["partial"] = args.partial
    found = api.plan(_model(args), _machine(args, args.precision), _job(args), args.gpus, **asked)
    if export:
        return _exported(found, export)
    more: dict = {} if within == FREE else {"within": str(within)}
    above = [f"Only {name}." for name in more.values()]
    best = found.best
    after, below = _corrected(args.profile, best)
    more |= after
    if not args.beside:
        return of(found, more, above, below)
    mine = api.estimate(best.model, best.at, best.job, _layout(layout_flags(args.beside), args.gpus))
    compared = _beside(mine, best)
    below += ["Yours beside the fastest:", *printing.parts(mine), compared]
    return of(found, {**more, "beside": mine.as_dict() | compared}, above, below)


def _can(export: str) -> str:
    """The key of what a framework can run, of one whose files are written."""
    known = {key: each for key, each in trainers().items() if each.can is not None}
    check.one_of(tuple(known), export=export)
    return known[export].can.key  # pyright: ignore[reportOptionalMemberAccess]


def _exported(found: search.Plan, export: str) -> Result:
    """The fastest layout in a framework's words, and nothing else, for a file; the table goes to standard
    error. Where nothing fits, there is nothing to write."""
    best = found.best
    if not found.fits:
        raise ValueError(
            f"nothing fits on {best.layout.gpus} of these GPUs, so nothing is written: the leanest takes "
            f"{units.human(best.memory_bytes['total'], 'bytes')} of "
            f"{units.human(best.memory_bytes['capacity'], 'bytes')}"
        )
    one = Launch(export, best.model, best.layout.gpus, best.at.precision, job=best.job, layout=best.layout)
    text = planned.written(one, best.layout)
    return of(found, {"exported": text})._replace(script=text)


def _beside(mine: Estimate, best: Estimate) -> dict:
    """By what the step and the memory of a reader's own layout differ from the planner's."""
    ours, theirs = best.as_dict()["memory_bytes"], mine.as_dict()["memory_bytes"]
    return {
        "slower_by": mine.step_s / best.step_s - 1.0,
        "more_time_s": search.by_cause(best, mine),
        "more_memory_bytes": {part: held - ours[part] for part, held in theirs.items()},
    }


def run_infer(args: Namespace) -> Result:
    """``infer``: the latencies and throughput of one replica."""
    found = api.serve(
        _model(args),
        _machine(args, args.precision),
        tp=args.tp,
        batch=args.batch,
        prompt=args.prompt,
        output=args.output,
        kv_precision=args.kv_precision,
        weight_precision=args.weight_precision,
        all_reduce=args.all_reduce,
        pp=args.pp,
        dp=args.dp,
        software=args.software,
    )
    return of(found)


def run_deploy(args: Namespace) -> Result:
    """``deploy``: the cheapest deployments for a load, and with ``--export`` the commands that start one."""
    at = _machine(args, "bf16")
    load = Load(
        args.per_s, args.prompt, args.output, args.prompt_spread, args.output_spread, args.prefix_share
    )
    pause_s = ANY_S if args.pause_s is None else args.pause_s
    drafts = () if args.drafted is None else (Drafts(args.drafted, args.accepted, args.draft_s, args.falls),)
    if args.turns is not None:
        return _deployed(
            args, *_agents(args, at, Limits(args.ttft_s, args.tpot_s, args.share, pause_s), drafts)
        )
    with Bar("Searching"):
        found = api.deploy(
            _model(args),
            at,
            load,
            Limits(args.ttft_s, args.tpot_s, args.share, pause_s),
            **_choices(args, drafts),
        )
    return _deployed(args, found)


def _choices(args: Namespace, drafts: tuple[Drafts, ...]) -> dict[str, Any]:
    """Which deployments are looked at, whatever the load."""
    return {
        "gpus": args.gpus,
        "formats": args.formats,
        "caches": args.caches,
        "pools": not args.one_pool,
        "drafts": drafts,
        "dollars_per_gpu_hour": args.price,
        "top": args.top,
    }


def _agents(
    args: Namespace, at: Machine, limits: Limits, drafts: tuple[Drafts, ...]
) -> tuple[Deployments, dict[str, Any]]:
    """The deployments for sessions, and what the caches of the cheapest hold."""
    sessions = Sessions(
        *(args.per_s, args.turns, args.prompt, args.system, args.added, args.output, args.tool_s),
        args.ttft_s + args.output * args.tpot_s,
    )
    tiers = []
    for name in BELOW:
        held, per_s = getattr(args, f"{name}_bytes"), getattr(args, f"{name}_bytes_per_s")
        tiers += [agents.Below(name, held, per_s)] if held else []
    with Bar("Searching"):
        found = agents.deploy(
            _model(args), at, sessions, limits, tuple(tiers), args.route, **_choices(args, drafts)
        )
    held = found.held
    told = {"prompt_tokens": found.load.prompt, "held_share": held.share, "held_at_most": sessions.most}
    return found.found, told | {
        "held_on": held.by_tier,
        "fetched_s": held.fetched_s,
        "device_tokens": found.device_tokens,
    }


def _deployed(args: Namespace, found: Deployments, more: dict[str, Any] | None = None) -> Result:
    """Deployments, and with ``--export`` the commands that start one of them."""
    if not args.export:
        return of(found, more, below=[more] if more else [])
    rows = [found.best, *found.runners_up]
    if not 1 <= args.row <= len(rows):
        raise ValueError(f"row must be from 1 to {len(rows)}, got {args.row}")
    written = packaged.packaged(rows[args.row - 1], args.export, args.form, args.checkpoint or "")
    return of(found, {"commands": written} | (more or {}))._replace(script=written)


def _texts(paths: list[str]) -> dict[str, str]:
    """The files to check, by name; ``-`` is standard input. One that is too large or no text stays so, and
    the report says it."""
    found = {}
    for path in paths:
        try:
            if path == "-":
                data = sys.stdin.buffer.read(LARGEST_FILE + 1)
            else:
                data = _piped(path) if stat.S_ISFIFO(os.stat(path).st_mode) else _stored(path)
        except OSError as error:
            raise ValueError(f"files must be readable, got {path!r}: {error.strerror}") from None
        found["standard input" if path == "-" else path] = data.decode("utf-8", errors="replace")
    return found


def _stored(path: str) -> bytes:
    """The beginning of a file."""
    with open(path, "rb") as file:
        return file.read(LARGEST_FILE + 1)


def _piped(path: str) -> bytes:
    """What comes through a pipe with a name, such as a shell's ``<(…)``. Perhaps nobody ever writes to it, so
    it is not waited for without end."""
    data, until = b"", time.monotonic() + PATIENCE_S
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        while len(data) <= LARGEST_FILE:
            part = pipe.read(
                LARGEST_FILE + 1 - len(data)
            )  # None where there is a writer who has not written yet
            if part:
                data += part
            elif part == b"" and data:
                break
            elif time.monotonic() > until:
                raise ValueError(
                    f"files must be readable, got {path!r}: nobody wrote to it for {PATIENCE_S:g} s"
                )
            else:
                time.sleep(0.02)
    return data


def run_check(args: Namespace) -> Result:
    """``check``: what a launch script asks for, whether it runs, and what would be faster."""
    return checked(_texts(args.files), _gpu(args), args.gpus, args.profile, args.host_memory)


def checked(
    texts: dict[str, str],
    gpu: Gpu | str | None,
    gpus: int | None,
    profile: str | None = None,
    host_bytes: float | None = None,
) -> Result:
    """What these texts, by name, ask for, whether it runs, and what would be faster."""
    found = api.check_launch(texts, gpu, gpus, host_bytes)
    over = over_a_step.of_report(found)
    data = {"headline": shown.headline(found), **found.as_dict()}
    data["over_a_step"] = over.as_dict() if over else None
    more, below = _corrected(profile, found.estimate)
    return Result(data | more, [*shown.lines(found, over), *below], found.rows())


def run_calibrate(args: Namespace) -> Result:
    """``calibrate``: a measured run beside its estimate, and with ``--into`` into a profile."""
    log = "".join(_texts([args.log]).values()) if args.log else ""
    measured = {name: getattr(args, name) for name in ("step_s", "tokens_per_s", "memory_bytes")}
    found = api.calibrate(_texts(args.files), log, _gpu(args), args.gpus, **measured)
    if not args.into:
        return of(found)
    run = found.entry()
    if run is None:
        raise ValueError("into takes training steps; of memory and servers one run says little of the next")
    count = cluster_profile.added(args.into, run)
    return of(found, {"profile_runs": count}, below=["", f"Runs in {args.into} now: {count}."])


def run_collective(args: Namespace) -> Result:
    """``collective``: the time of one collective."""
    at = _machine(args, args.precision)
    return of(api.collective(args.op, at, ranks=args.ranks, buffer_bytes=args.bytes, per_node=args.per_node))


def run_goodput(args: Namespace) -> Result:
    """``goodput``: what failures and checkpoints cost, and the best interval between checkpoints."""
    found = api.goodput(
        args.gpus,
        checkpoint_s=args.checkpoint_s,
        restart_s=args.restart_s,
        failures_per_gpu_year=args.failures_per_gpu_year,
        interval_s=args.interval_s,
    )
    return of(found)


def run_cost(args: Namespace) -> Result:
    """``cost``: the bill for a run, and whether it keeps to the budget."""
    if args.hours is None and not (args.model and args.tokens is not None):
        raise ValueError("cost needs --hours, or --model and --tokens; got neither")
    bill = api.cost(
        args.gpu,
        gpus=args.gpus,
        hours=args.hours,
        model=args.model,
        tokens=args.tokens,
        mfu=args.mfu,
        dollars_per_gpu_hour=args.price,
        overhead_share=args.overhead,
        budget_dollars=args.budget,
    )
    return of(bill)


def _refused(bill: dict) -> str:
    """The guard's message: that it refuses, and by how much the bill exceeds the budget."""
    over, budget = bill["over_budget_dollars"], bill["budget_dollars"]
    percent = 100.0 * over / budget
    times = f" ({units.human(over / budget, 'percent')})" if math.isfinite(percent) else ""
    return (
        f"refused: {units.human(over, 'dollars')}{times} over the budget of {units.human(budget, 'dollars')}"
    )


def run_models(args: Namespace) -> Result:
    """``models``: the catalogue's models."""
    rows = [
        {
            "key": m.key,
            "name": m.name,
            "year": m.year,
            "parameters": int(models.parameters(m)),
            "active_parameters": int(models.active_parameters(m)),
            "layers": m.depth,
            "hidden": m.hidden,
            "heads": m.heads,
            "kv_heads": m.kv_heads,
            "experts": m.experts,
            "vocab": m.vocab,
            "source": m.source,
        }
        for m in catalog.all_models().values()
    ]
    return listed(rows)


def run_gpus(args: Namespace) -> Result:
    """``gpus``: the catalogue's GPUs."""
    rows = [asdict(gpu) for gpu in catalog.all_gpus().values()]
    return listed(
        rows,
        [
            "key",
            "name",
            "year",
            "hbm_bytes",
            "hbm_bytes_per_s",
            "bf16_flops_per_s",
            "fp8_flops_per_s",
            "link_name",
            "link_bytes_per_s",
            "nic_bytes_per_s",
            "gpus_per_node",
        ],
    )


def run_recipes(args: Namespace) -> Result:
    """``recipes``: the catalogue's recipes of training state."""
    rows = [
        printing.flat({**asdict(r), "bytes_per_param": r.bytes_per_param})
        for r in catalog.all_recipes().values()
    ]
    shown_of = ["key", "name", "precision", "weight_bytes", "gradient_bytes", "master_bytes"]
    return listed(rows, [*shown_of, "momentum_bytes", "variance_bytes", "bytes_per_param"])


def run_nodes(args: Namespace) -> Result:
    """``nodes``: the catalogue's nodes."""
    rows = [
        {
            "key": node.key,
            "name": node.name,
            "gpu": node.gpu.key,
            "gpus": node.gpus,
            "link": node.link.key,
            "link_bytes_per_s": node.link.bytes_per_s,
            "nic": node.nic.key,
            "nics": node.nics,
            "nic_bytes_per_s_per_gpu": node.nic_bytes_per_s_per_gpu,
            "source": node.source,
        }
        for node in catalog.all_nodes().values()
    ]
    return listed(rows)


def run_fabrics(args: Namespace) -> Result:
    """``fabrics``: the catalogue's links."""
    rows = [
        {
            "key": link.key,
            "name": link.name,
            "one_way_bytes_per_s": link.bytes_per_s,
            "marketing_bytes_per_s": link.marketing_bytes_per_s,
            "latency_s": link.latency_s,
            "source": link.source,
        }
        for link in catalog.all_links().values()
    ]
    return listed(rows)


def run_validate(args: Namespace) -> Result:
    """``validate``: published runs beside what the engine says of them."""
    if args.by == "kind" and not args.all and not args.cases:
        short = accuracy.short_dict()
        return Result(short, accuracy.in_short(), short["kinds"])
    if args.by == "axis":
        axes = accuracy.as_dict()
        return Result(axes, accuracy.parts(), axes["axes"])
    outcome = api.validate(args.cases)
    tables: list[printing.Part] = [outcome.groups(), outcome.worst(None if args.all else 2)]
    return Result(outcome.as_dict(), tables, outcome.rows())


def run_puzzle(args: Namespace) -> Result:
    """``puzzle``: the list of puzzles, the start of one as a file, or the verdict on an answer."""
    if args.name is None:
        if args.check:
            raise ValueError(f"--check needs the name of a puzzle: {', '.join(puzzles.names())}")
        return listed(puzzle_files.listed())
    if args.csv:
        raise ValueError("--csv is for the list of puzzles, which has no name before it")
    if args.check:
        with Bar("Running your function"):
            found = puzzle_files.judged(args.name, Path(args.check))
        return Result(found, puzzle_files.lines(found))
    file = puzzle_files.written(args.name, Path.cwd())
    return Result({"file": str(file)}, [f"{file.name} is written: fill it in, then --check {file.name}"])


def run_exam(args: Namespace) -> Result:
    """``exam``: a sheet of questions drawn from a number, or its key."""
    asked = sheet.questions(args.seed, args.questions)
    shown_of = [each._asdict() for each in asked]
    if not args.key:
        shown_of = [{name: each[name] for name in ("number", "lesson", "text")} for each in shown_of]
    data: dict = {"seed": args.seed, "questions": shown_of}
    return Result(
        data | ({"rubric": dict(sheet.RUBRIC)} if args.key else {}), sheet.lines(args.seed, asked, args.key)
    )


def run_catalogue(args: Namespace) -> Result:
    """``catalogue``: the entry of models.toml for a config.json."""
    model = catalog.model_from_file(args.file)
    source = f"{Path(args.file).name} of its checkpoint, read on {date.today().isoformat()}"
    named = replace(model, key=args.key or model.key, name=args.name or model.name, source=source)
    text = entries.entry(named)
    return Result({"key": named.key, "parameters": int(named.total_params), "entry": text}, [text.rstrip()])


COMMANDS = {
    "estimate": run_estimate,
    "plan": run_plan,
    "infer": run_infer,
    "deploy": run_deploy,
    "check": run_check,
    "calibrate": run_calibrate,
    "collective": run_collective,
    "goodput": run_goodput,
    "cost": run_cost,
    "models": run_models,
    "catalogue": run_catalogue,
    "gpus": run_gpus,
    "recipes": run_recipes,
    "nodes": run_nodes,
    "fabrics": run_fabrics,
    "validate": run_validate,
    "puzzle": run_puzzle,
    "exam": run_exam,
}


def require_finite(result: object, key: str = "result") -> None:
    """ValueError if a number in the result has overflowed."""
    if isinstance(result, dict):
        for name, value in result.items():
            require_finite(value, name)
    elif isinstance(result, (list, tuple)):
        for value in result:
            require_finite(value, key)
    elif isinstance(result, float) and not math.isfinite(result):
        raise ValueError(f"arguments must give finite results; {key} would be {result}")


def main(arguments: list[str] | None = None) -> int:
    """Answer one command line and give its exit status."""
    top = parser(" ".join((__doc__ or "").split("\n\n")[0].split()))
    args = top.parse_args(arguments)
    return answer(args, f"{top.prog} {args.command}")


LOOKS_EVERY = 0.3  # between two looks at the files of ``check --watch``


def watched(args: Namespace, prog: str, rounds: float = math.inf) -> int:
    """``check --watch``: answer again whenever a file has changed; the last exit status."""
    seen, status = None, 0
    while rounds > 0:
        stamps = [_stamp(path) for path in args.files]
        if stamps != seen:
            if seen is not None:
                printed(f"\n{'─' * 40}\n")
            seen, status = stamps, answered(args, prog)
            rounds -= 1
        try:
            time.sleep(LOOKS_EVERY if rounds > 0 else 0.0)
        except KeyboardInterrupt:
            break
    return status


def _stamp(path: str) -> tuple[int, int]:
    """What changes when a file is written; nothing for one that is not there, or standard input."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def answer(args: Namespace, prog: str) -> int:
    """Run a command, print what it found, and give the exit status; again and again where that is asked."""
    return watched(args, prog) if getattr(args, "watch", False) else answered(args, prog)


def answered(args: Namespace, prog: str) -> int:
    """Run a command, print what it found, and give the exit status."""
    try:
        found = COMMANDS[args.command](args)
        require_finite(found.data)
    except ArithmeticError as error:  # a number overflowed, or underflowed and was divided by
        return refused(prog, f"arguments must give finite results, not {error}")
    except ValueError as error:
        return refused(prog, by_flag(error))
    if found.script and not args.json and not getattr(args, "csv", False):
        print(printing.text(found.parts, _width()), file=sys.stderr)
        printed(found.script.rstrip("\n"))
    else:
        printed(_form(args, found))
    result = found.data
    if isinstance(result, dict) and result.get("within_budget") is False:
        print(_refused(result), file=sys.stderr)
        return OVER_BUDGET
    if isinstance(result, dict) and STATUSES.get(result.get("verdict", "")):
        print(one_line(result["headline"]), file=sys.stderr)
        return STATUSES[result["verdict"]]
    return NOT_YET if isinstance(result, dict) and result.get("right") is False else 0


def printed(text: str) -> None:
    """Print it; a reader that closed the pipe before the end, such as head, is no fault."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _form(args: Namespace, found: Result) -> str:
    if args.json:
        return json.dumps(found.data, indent=1, ensure_ascii=False, allow_nan=False)
    if getattr(args, "csv", False):
        return printing.as_csv(found.rows)
    verdict = found.data.get("verdict", "") if isinstance(found.data, dict) else ""
    return coloured(printing.text(found.parts, _width()), verdict)


COLOURS = {FITS: 32, CLOSE: 33, TOO_LARGE: 31, ILLEGAL: 31, UNKNOWN: 33}  # of a terminal


def coloured(text: str, verdict: str) -> str:
    """A report with its verdict in colour where a terminal shows it, unless NO_COLOR is set."""
    if verdict not in COLOURS or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return text.replace(f": {verdict}", f": \x1b[1;{COLOURS[verdict]}m{verdict}\x1b[0m", 1)


def _width() -> float:
    """Columns of the terminal; what another program reads has a line for each row, however long."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else math.inf


def speak_utf8() -> None:
    """What is printed has letters that a pipe in Windows does not take otherwise."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    speak_utf8()
    sys.exit(main())
