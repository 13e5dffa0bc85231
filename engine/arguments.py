"""The flags of the command line: the arguments that each command takes. ``python -m engine`` has these
commands, and ``system-ml`` (course/command.py) some more."""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from engine.base import typed
from engine.catalog.software import DEFAULT, switches
from engine.frameworks import registry
from engine.launch import packaged
from engine.mechanism.collectives import OPERATIONS
from engine.mechanism.memory import MODULES, RECOMPUTE
from engine.mechanism.offload import OFFLOADS
from engine.mechanism.pipeline import SCHEDULES
from engine.serving.deployment.finder import CACHES, FORMATS
from engine.serving.sessions import ROUTES
from engine.step.layout import PRECISIONS

LONGEST_MESSAGE = 1000  # characters
BAD_INPUT = 2  # exit status of every command


def one_line(message: object) -> str:
    """A message on one line and short enough to read, whatever the arguments in it contain."""
    words = " ".join(str(message).split())
    return words if len(words) <= LONGEST_MESSAGE else f"{words[:LONGEST_MESSAGE]} …"


def refused(prog: str, message: object) -> int:
    """Say in one line on standard error what is wrong; the exit status."""
    print(f"{prog}: error: {one_line(message)}", file=sys.stderr)
    return BAD_INPUT


# what the public functions call by another name than the command
FLAG_OF = {
    "dollars_per_gpu_hour": "--price",
    "overhead_share": "--overhead",
    "budget_dollars": "--budget",
    "buffer_bytes": "--bytes",
    "host_bytes": "--host-memory",
}


def by_flag(message: object) -> str:
    """A message with the flags that set what it names."""
    return re.sub(rf"\b({'|'.join(FLAG_OF)})\b", lambda found: FLAG_OF[found[0]], str(message))


STATUSES = (
    "Exit status: 0 for an answer, 2 for wrong arguments or a question without one, 3 for a cost above its "
    "budget and a check of what does not fit, 4 and 5 of a check (see its --help), 1 for a puzzle that is "
    "not right yet."
)


ANSWERED = "Exit status: 0 for an answer, 2 for wrong arguments or a question without one"
STATUSES_OF = {
    "check": "Exit status: 0 if it fits or is close (what there is lies within the estimate's band), 3 if it "
    "does not fit, 4 if it will not start, 5 if nobody here can say; 2 if the arguments are wrong.",
    "cost": f"{ANSWERED}, 3 above the budget.",
    "puzzle": f"{ANSWERED}, 1 for a function that is not right yet.",
}

# lines that run as they stand; the files that some of them name are the reader's
JOB = "--gpus 512 --global-batch 1024 --seq 8k"
EXAMPLES_OF = {
    "estimate": (f"--model llama3-70b --gpu H100 {JOB} --tp 8 --pp 4",),
    "plan": (
        f"--model llama3-70b --gpu H100 {JOB}",
        f"--model Qwen/Qwen3-32B --gpu H100 {JOB} --export megatron",
        f"--model llama3-70b --gpu H100 {JOB} --tp 8 --pp 1-8 --beside '--tp 8 --pp 4'",
    ),
    "infer": ("--model llama3.1-8b --gpu H100 --batch 32 --prompt 4k",),
    "deploy": (
        "--model llama3.1-8b --gpu H100 --per-s 8 --ttft-s 1 --tpot-s 50ms",
        "--model llama3.1-8b --gpu H100 --per-s 8 --ttft-s 1 --tpot-s 50ms --export vllm --form compose",
        (
            "--model llama3.1-8b --gpu H100 --per-s 1 --prompt 2k --turns 10 --system 8k --added 1k "
            "--ttft-s 2 --tpot-s 40ms --formats fp8 --host-bytes 200GB --host-bytes-per-s 20GB/s"
        ),
    ),
    "check": ("train.sh ds.json --gpu 4090", "serve.sh --gpu H100"),
    "calibrate": ("train.sh --gpu H100 --gpus 64 --step-s 12.5",),
    "collective": ("--op allreduce --gpu H100 --ranks 64 --bytes 1GiB",),
    "goodput": ("--gpus 16384 --checkpoint-s 90",),
    "exam": ("--seed 7 --key",),
    "cost": ("--gpu H100 --gpus 512 --hours '17.6 days'", "--gpu H100 --model llama3-70b --tokens 15T"),
    "catalogue": ("add config.json --key my-model --name 'My model'",),
    "models": ("", "--csv"),
    "gpus": ("",),
    "recipes": ("",),
    "nodes": ("",),
    "fabrics": ("",),
    "validate": ("", "--by axis"),
    "puzzle": ("", "best_fit"),
}
LINE = 78  # columns of what stands below the flags


def below(prog: str, name: str, words: str = "") -> str:
    """What stands below a command's flags: more about it, examples, and its exit statuses."""
    more = EXAMPLES_OF.get(name, ())
    shown = [textwrap.fill(f"{prog} {name} {one}".rstrip(), LINE, **BROKEN) for one in more]
    status = STATUSES_OF.get(name, f"{ANSWERED}.")
    parts = [textwrap.fill(words, LINE)] if words else []
    parts += ["\n".join(["examples:", *shown])] if shown else []
    return "\n\n".join([*parts, textwrap.fill(status, LINE)])


BROKEN: dict[str, Any] = {
    "initial_indent": "  ",
    "subsequent_indent": "    ",
    "break_long_words": False,
    "break_on_hyphens": False,
}


class Quantity(NamedTuple):
    """Reads a number as people type it, with or without a unit: 1GiB, 50ms, 17.6 days. One without a unit is
    in ``unit``."""

    unit: str

    def __call__(self, text: str) -> float:
        """The number that a text says."""
        found = typed.parse(text, self.unit)
        if found.value is None:
            raise argparse.ArgumentTypeError(f"must be a number, such as {EXAMPLES[self.unit]}; got {text!r}")
        return found.value / typed.alone(self.unit) if self.unit == "h" else found.value


def length(text: str) -> int:
    """Tokens of a sequence: 8192, 8,192 or 8k, which are as many."""
    whole, kilo = (text[:-1], 1024) if text[-1:] in "kK" and len(text) > 1 else (text, 1)
    found = typed.parse(whole, "tokens")
    if found.value is None or found.value * kilo != round(found.value * kilo):
        raise argparse.ArgumentTypeError(f"must be a whole number, such as 8192 or 8k; got {text!r}")
    return round(found.value * kilo)


EXAMPLES = {
    "s": "90, 50ms or 2h",
    "B": "1e9, 512MB or 1GiB",
    "B/s": "50e9, 50GB/s or 400 Gb/s",
    "tokens": "15e12 or 15T",
    "h": "422, '17.6 days' or '2 weeks'",
}


_SECONDS = Quantity("s")
BELOW = {"host": "the host's memory", "disk": "the host's disks"}  # tiers of caches under the device


def near_flag(word: str, known: Sequence[str]) -> str:
    """What a misspelt flag may have meant: flags with all of its words, or else the one spelt nearest."""
    flag = word.split("=")[0]
    parts = set(flag.strip("-").split("-"))
    longer = sorted(each for each in known if parts <= set(each.strip("-").split("-")))
    close = longer[:3] or difflib.get_close_matches(flag, known, 1, 0.6)
    return f"; did you mean {' or '.join(close)}?" if close else ""


class Parser(argparse.ArgumentParser):
    """A parser that answers a bad argument with one line instead of the whole usage: a flag that nobody knows
    before one that is missing, with what is near it."""

    commands: argparse._SubParsersAction[Parser]  # of the parser that has commands

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  overloads
        """Look at the flags first."""
        given = sys.argv[1:] if args is None else list(args)
        known = list(self._option_string_actions)
        if not hasattr(self, "commands"):
            for word in given:
                if word == "--":
                    break
                flag = word.split("=")[0]
                if word.startswith("--") and " " not in flag and flag not in known:
                    self.error(f"there is no flag {flag}{near_flag(flag, known)}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the line and exit."""
        sys.exit(refused(self.prog, message))


def _add_model(parser):
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument(
        "--model", help="a key or a usual name, which the command models lists, or the path of a config.json"
    )
    one.add_argument("--model-file", metavar="FILE", help="a model of your own: its config.json, or TOML")


def _add_machine(parser):
    _add_node(parser)
    parser.add_argument(
        "--precision",
        default="bf16",
        choices=(*PRECISIONS, "int8", "fp4"),
        help="number format of the matrix products (bf16)",
    )


def _add_node(parser):
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--gpu", help="a key or a usual name, such as H100; the command gpus lists them")
    one.add_argument("--gpu-file", metavar="TOML", help="a GPU of your own: `like` a key, and what differs")
    parser.add_argument(
        "--gpus-per-node", type=int, help="GPUs that share a scale-up link (the GPU's usual number)"
    )
    parser.add_argument(
        "--nic-bytes-per-s", type=Quantity("B/s"), help="bandwidth one way and per GPU (its usual NIC)"
    )
    parser.add_argument(
        "--nic", help="the kind of NIC, such as efa-100; the command fabrics lists them (its usual one)"
    )
    parser.add_argument(
        "--oversubscription",
        type=float,
        default=1.0,
        help="oversubscription of the network between nodes (1)",
    )


def _add_launch(parser):
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="read together as one launch; - is standard input"
    )
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--gpu", help="a key or a usual name of it (h100-sxm)")
    one.add_argument("--gpu-file", metavar="TOML", help="a GPU of your own: `like` a key, and what differs")
    parser.add_argument("--gpus", type=int, help="how many, where the texts do not say")


def _add_profile(parser):
    parser.add_argument(
        "--profile", metavar="TOML", help="runs of your own, from calibrate --into: the estimate after them"
    )


def _add_sessions(parser):
    """What makes of requests the turns of sessions."""
    some = parser.add_argument_group("agents: requests that are turns of sessions")
    some.add_argument(
        "--turns",
        type=float,
        help="turns of a session on average. Then --per-s counts sessions, --prompt is what one begins with, "
        "and --prefix-share is a result",
    )
    some.add_argument("--system", type=length, default=0, help="tokens that all sessions begin with (0)")
    some.add_argument("--added", type=length, default=512, help="tokens that come with each turn (512)")
    some.add_argument(
        "--tool-s", type=_SECONDS, default=5.0, help="from an answer to the next turn, on average (5)"
    )
    some.add_argument(
        "--route",
        choices=ROUTES,
        default=ROUTES[0],
        help="a turn goes to its session's replica, or to any (session)",
    )
    for name, what in BELOW.items():
        some.add_argument(
            f"--{name}-bytes", type=Quantity("B"), default=0.0, help=f"for caches in {what} of each GPU (0)"
        )
        some.add_argument(
            f"--{name}-bytes-per-s", type=Quantity("B/s"), default=0.0, help=f"from {what} to a GPU (0)"
        )


def _add_load(parser):
    parser.add_argument("--per-s", type=float, required=True, help="requests a second")
    parser.add_argument("--prompt", type=length, default=1024, help="median tokens of a prompt (1024)")
    parser.add_argument("--output", type=length, default=128, help="median tokens of an answer (128)")
    parser.add_argument(
        "--prompt-spread", type=float, default=0.0, help="standard deviation of the prompt's logarithm (0)"
    )
    parser.add_argument("--output-spread", type=float, default=0.0, help="the same of the answer's (0)")
    parser.add_argument(
        "--prefix-share", type=float, default=0.0, help="of each prompt, what a prefix cache holds (0)"
    )
    _add_sessions(parser)
    parser.add_argument("--ttft-s", type=_SECONDS, required=True, help="limit for a first token, in seconds")
    parser.add_argument(
        "--tpot-s", type=_SECONDS, required=True, help="limit from one token to the next, in seconds"
    )
    parser.add_argument(
        "--pause-s",
        type=_SECONDS,
        help="limit for the longest pause between two tokens of an answer, in seconds (any)",
    )
    parser.add_argument(
        "--share", type=float, default=0.9, help="of the requests, that each limit holds for (0.9)"
    )
    parser.add_argument("--gpus", type=int, help="GPUs at most (any number)")
    parser.add_argument(
        "--formats",
        type=several_words,
        help=f"of the weights, joined by commas: {', '.join(FORMATS)} (all the GPU has units for)",
    )
    parser.add_argument(
        "--caches",
        type=several_words,
        default=("bf16",),
        help=f"the same of the cache: {', '.join(CACHES)} (bf16)",
    )
    parser.add_argument("--one-pool", action="store_true", help="do not try pools apart")
    parser.add_argument("--drafted", type=int, help="drafted tokens a step, to be tried beside none")
    parser.add_argument("--accepted", type=float, default=0.7, help="how often a draft is kept (0.7)")
    parser.add_argument(
        "--falls", type=float, default=1.0, help="by which factor less often each further draft is kept (1)"
    )
    parser.add_argument("--draft-s", type=_SECONDS, default=0.0, help="seconds of drafting in each step (0)")
    parser.add_argument("--price", type=float, help="dollars per GPU-hour (the catalogue's latest)")
    parser.add_argument("--top", type=int, default=5, help="how many kinds to show (5)")
    parser.add_argument(
        "--export", metavar="PROGRAM", help=f"the commands that start it: {', '.join(registry.servers())}"
    )
    parser.add_argument(
        "--form",
        default=packaged.SCRIPT,
        choices=packaged.FORMS,
        help="of what is exported: a script, a file for docker compose, objects of Kubernetes (script)",
    )
    parser.add_argument("--checkpoint", help="the name of the checkpoint that is served (the public one)")
    parser.add_argument("--row", type=int, default=1, help="which of those shown to export (1, the cheapest)")


def operation(text: str) -> str:
    """A collective as people write it: allreduce, all-reduce, AllReduce."""
    plain = text.lower().replace("-", "").replace("_", "").replace(" ", "")
    return next((each for each in OPERATIONS if each.replace("_", "") == plain), text)


def several_words(text: str) -> tuple[str, ...]:
    """Words joined by commas."""
    return tuple(word.strip() for word in text.split(","))


def _add_job(parser):
    parser.add_argument("--gpus", type=int, required=True)
    parser.add_argument("--global-batch", type=int, required=True, help="sequences per step")
    parser.add_argument("--seq", type=length, required=True, help="tokens per sequence, as 8192 or 8k")
    parser.add_argument(
        "--recipe", help="recipe of the training state (bf16-adam; with --framework that framework's own)"
    )
    parser.add_argument(
        "--imbalance", type=float, default=1.1, help="the fullest expert rank's load over the mean (1.1)"
    )
    parser.add_argument("--mtp", type=int, default=0, help="modules of multi-token prediction (0)")
    parser.add_argument("--pictures", type=float, default=0.0, help="pictures in each sequence (0)")
    parser.add_argument("--pixels", type=float, default=2.0**20, help="of each picture (1048576)")
    parser.add_argument(
        "--train-tower", action="store_true", help="the tower that reads them is trained, too"
    )
    parser.add_argument(
        "--software",
        metavar="KEY",
        help=(
            "the program that trains, such as megatron-core-0.8; a wrong one lists them all "
            f"({DEFAULT}; with selective recomputation, which is meant for attention that is not fused, "
            "attention=scores)"
        ),
    )
    parser.add_argument(
        "--with",
        dest="changes",
        metavar="FIELD=VALUE",
        action="append",
        default=[],
        help=(
            "what this program does otherwise, as often as you like: overlaps=data+tensor, loss=fused, "
            f"kernels=compiled; the fields are {', '.join(switches())}"
        ),
    )


def _add_layout(parser):
    for axis, text in (("tp", "tensor"), ("pp", "pipeline"), ("cp", "context"), ("ep", "expert")):
        parser.add_argument(f"--{axis}", type=int, default=1, help=f"{text} parallel ranks (1)")
    parser.add_argument("--expert-tp", type=int, default=1, help="GPUs that share an expert (1)")
    parser.add_argument("--zero", type=int, default=1, help="ZeRO stage, 3 is FSDP (1)")
    parser.add_argument(
        "--shard", type=int, default=0, help="for HSDP, the GPUs that share one copy of the state (all)"
    )
    parser.add_argument("--micro-batch", type=int, default=1, help="sequences in a micro-batch (1)")
    parser.add_argument(
        "--recompute",
        default="none",
        help=f"{', '.join(RECOMPUTE)}, or modules joined by +: {', '.join(MODULES)} (none)",
    )
    parser.add_argument(
        "--recompute-layers",
        type=int,
        default=0,
        help="layers of each stage to recompute, with --recompute full (all)",
    )
    parser.add_argument(
        "--first-layers", type=int, default=0, help="layers of the first stage (an even split)"
    )
    parser.add_argument("--last-layers", type=int, default=0, help="layers of the last stage (an even split)")
    parser.add_argument("--schedule", default="1f1b", help=f"{', '.join(SCHEDULES)} (1f1b)")
    parser.add_argument("--interleave", type=int, default=1, help="chunks of layers per stage (1)")
    parser.add_argument(
        "--offload", default="none", help=f"what the host's memory holds: {', '.join(OFFLOADS)} (none)"
    )


def one_or_range(text: str) -> tuple[int, int]:
    """8, or 1-8."""
    least, _, most = text.partition("-")
    return int(least), int(most or least)


def percent(text: str) -> float:
    """5% or 0.05, which are as much."""
    return float(text.removesuffix("%")) / 100.0 if text.endswith("%") else float(text)


def wholes(text: str) -> tuple[int, ...]:
    """Whole numbers joined by commas."""
    return tuple(int(word) for word in text.split(","))


def _add_constraints(parser):
    limits = parser.add_argument_group("only layouts within")
    limits.add_argument(
        "--framework",
        metavar="FRAMEWORK",
        choices=(*registry.abilities(), registry.ANY),
        help=f"those that it can run, or one of them: {', '.join((*registry.abilities(), registry.ANY))}",
    )
    for axis, text in (("tp", "tensor"), ("pp", "pipeline"), ("cp", "context"), ("ep", "expert")):
        limits.add_argument(f"--{axis}", type=one_or_range, metavar="N|N-M", help=f"{text} parallel ranks")
    limits.add_argument(
        "--micro-batch", type=one_or_range, metavar="N|N-M", help="sequences in a micro-batch"
    )
    limits.add_argument("--zero", type=wholes, metavar="N,N", help="ZeRO stages, such as 0,1")
    limits.add_argument(
        "--schedules", type=several_words, metavar="NAME,NAME", help=f"of {', '.join(SCHEDULES)} (all)"
    )
    limits.add_argument("--most-chunks", type=int, default=0, help="chunks of layers on a stage (any number)")
    limits.add_argument("--recompute", choices=("none", "full"), help="all layers or none (either)")
    limits.add_argument(
        "--leave", type=percent, default=0.0, help="of the memory, what stays free, as 5%% or 0.05 (0)"
    )
    limits.add_argument(
        "--partial",
        action="store_true",
        help="recompute only as many layers as it takes, or parts of each, not all or none",
    )
    limits.add_argument("--hsdp", action="store_true", help="try several copies of the state (HSDP) as well")
    limits.add_argument(
        "--export",
        metavar="FRAMEWORK",
        help=(
            "plan for it, and print the fastest layout in its words alone; the table goes to standard error: "
            f"{', '.join(key for key, each in registry.trainers().items() if each.can)}"
        ),
    )
    limits.add_argument(
        "--beside",
        metavar="LAYOUT",
        help='a layout of yours in estimate\'s flags, as in "--tp 8 --pp 4", and what it loses by',
    )


def layout_flags(text: str) -> argparse.Namespace:
    """A layout written in the flags of ``estimate``."""
    one = Parser(prog="--beside", allow_abbrev=False)
    _add_layout(one)
    return one.parse_args(shlex.split(text))


def parser(description: str, prog: str = "python -m engine") -> Parser:
    """The commands and their flags."""
    top = Parser(prog=prog, description=description, epilog=STATUSES)
    top.commands = top.add_subparsers(dest="command", required=True, parser_class=Parser, metavar="command")

    def command(name, text, *groups, rows=""):
        sub = top.commands.add_parser(
            name,
            help=text,
            description=textwrap.fill(text, LINE),
            epilog=below(prog, name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        form = sub.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="print JSON, for programs")
        if rows:
            form.add_argument("--csv", action="store_true", help=f"print {rows} as CSV, for spreadsheets")
        for add in groups:
            add(sub)
        return sub

    command(
        "estimate",
        "time and memory of one training step",
        _add_model,
        _add_machine,
        _add_job,
        _add_layout,
        _add_profile,
    )
    sub = command(
        "plan",
        "the fastest layout of all, and what the others lose by",
        _add_model,
        _add_machine,
        _add_job,
        _add_profile,
        rows="the best layout of each split",
    )
    sub.add_argument("--top", type=int, default=5, help="how many splits to show (5)")
    _add_constraints(sub)
    sub = command("infer", "latency and throughput of serving", _add_model, _add_machine)
    sub.add_argument("--tp", type=int, default=1, help="tensor parallel ranks (1)")
    sub.add_argument("--pp", type=int, default=1, help="pipeline stages (1)")
    sub.add_argument("--dp", type=int, default=1, help="groups of GPUs that share a mixture's experts (1)")
    sub.add_argument("--batch", type=int, default=1, help="sequences served together (1)")
    sub.add_argument("--prompt", type=length, default=1024, help="prompt tokens per request (1024)")
    sub.add_argument("--output", type=length, default=128, help="output tokens per request (128)")
    sub.add_argument(
        "--weight-precision", help="format of the stored weights, if not --precision (int4, int8, fp8, …)"
    )
    sub.add_argument("--kv-precision", help="number format of the KV cache (16 bits)")
    sub.add_argument("--all-reduce", default="auto", help="auto, ring, tree, nvls or one_shot (auto)")
    sub.add_argument(
        "--software", help="adds what is known of a server, such as vllm-0; a wrong one lists them all (none)"
    )
    _add_load(
        command(
            "deploy",
            "the cheapest deployment that serves a load within its limits, and what the others lose by",
            _add_model,
            _add_node,
            rows="the cheapest deployment of each kind",
        )
    )
    sub = command(
        "check", "what scripts and configuration files would launch: does it fit, how fast, what to change"
    )
    started = ", ".join(each.name for each in registry.frameworks().values())
    sub.epilog = below(
        prog,
        "check",
        f"Reads what starts {started}: scripts, YAML, JSON, TOML, Python, Docker, Compose and Kubernetes, in "
        "any order.",
    )
    _add_launch(sub)
    _add_profile(sub)
    sub.add_argument(
        "--host-memory",
        type=Quantity("B"),
        help="of a node's host, as 1TiB, for what is offloaded to it (as in its maker's own node)",
    )
    sub.add_argument("--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")
    sub = command(
        "calibrate",
        "a run that you measured beside its estimate: how far apart, and what could be the reason",
        _add_launch,
    )
    sub.add_argument(
        "--log",
        metavar="FILE",
        help="of the run: lines of Megatron, torchtitan, the Trainer, vLLM or SGLang; - is standard input",
    )
    sub.add_argument("--step-s", type=float, help="seconds of a step, instead of a log or before it")
    sub.add_argument("--tokens-per-s", type=float, help="the same in tokens a second, of all GPUs")
    sub.add_argument("--memory-bytes", type=float, help="the most that PyTorch reserved on a GPU")
    sub.add_argument(
        "--into", metavar="TOML", help="add the run to this profile, which --profile takes into account"
    )
    sub = command("collective", "time and bandwidth of one collective operation", _add_machine)
    sub.add_argument(
        "--op", required=True, type=operation, help=f"{', '.join(OPERATIONS)}; allreduce and all-reduce, too"
    )
    sub.add_argument("--ranks", type=int, required=True)
    sub.add_argument("--bytes", type=Quantity("B"), required=True, help="size of the whole buffer, as 1GiB")
    sub.add_argument("--per-node", type=int, help="ranks on each node (as many as a node holds)")
    sub = command("goodput", "what failures leave of a long run")
    sub.add_argument("--gpus", type=int, required=True)
    sub.add_argument("--checkpoint-s", type=_SECONDS, default=60.0, help="time to write a checkpoint (60)")
    sub.add_argument(
        "--restart-s", type=_SECONDS, default=600.0, help="time from a failure to the next step (600)"
    )
    sub.add_argument("--failures-per-gpu-year", type=float, help="failure rate (Llama 3's: 0.17)")
    sub.add_argument("--interval-s", type=_SECONDS, help="time between checkpoints (Young's optimum)")
    sub = command("exam", "a sheet of questions drawn from a number, and its key")
    sub.add_argument("--seed", type=int, required=True, help="the number; the same gives the same sheet")
    sub.add_argument("--questions", type=int, default=12, help="how many (12)")
    sub.add_argument("--key", action="store_true", help="the answers with their working, and a rubric")
    sub = command("cost", "what a run costs, and whether the budget allows it")
    sub.add_argument("--gpu", required=True)
    sub.add_argument("--gpus", type=int, default=1, help="how many (1)")
    sub.add_argument(
        "--hours",
        type=Quantity("h"),
        help="duration of the run, as 422 or '17.6 days'; or give --model and --tokens",
    )
    sub.add_argument("--model", help="a key of the catalogue")
    sub.add_argument("--tokens", type=Quantity("tokens"), help="tokens, as 15T, that the model is trained on")
    sub.add_argument("--mfu", type=float, default=0.4, help="share of the 16-bit peak (0.4)")
    sub.add_argument("--price", type=float, help="dollars per GPU-hour (the catalogue's latest)")
    sub.add_argument(
        "--overhead", type=float, default=0.0, help="storage, network, idle GPUs, as a share (0)"
    )
    sub.add_argument("--budget", type=float, help="dollars; above it the guard refuses, with exit status 3")
    command("models", "the catalogue's models", rows="them")
    sub = command("catalogue", "a model's entry for engine/catalog/models.toml, from its config.json")
    sub.add_argument("add", choices=("add",), help="add: print the entry, to be put at the end of the table")
    sub.add_argument("file", help="its config.json, or a TOML file of your own")
    sub.add_argument("--key", help="the entry's key (the file's folder)")
    sub.add_argument("--name", help="its name")
    command("gpus", "the catalogue's accelerators", rows="them")
    command("recipes", "the bytes that each kind of training state takes", rows="them")
    command("nodes", "the catalogue's nodes", rows="them")
    command("fabrics", "the catalogue's links, in nodes and between them", rows="them")
    sub = command("validate", "how far off the engine is, on published runs", rows="every row")
    sub.add_argument(
        "--cases",
        metavar="DIR",
        help="folder of published cases (engine/validation/published of the repository)",
    )
    sub.add_argument("--all", action="store_true", help="every row, not only each group's worst")
    sub.add_argument(
        "--by",
        choices=("kind", "group", "axis"),
        default="kind",
        help="kind: how far off each kind of answer is; group: each source; axis: goals, bands, axes (kind)",
    )
    sub = command(
        "puzzle", "a function to write: without a name the list, with one a file to fill in", rows="the list"
    )
    sub.add_argument("name", nargs="?", help="of a puzzle")
    sub.add_argument("--check", metavar="FILE", help="judge a file that has been filled in")
    return top
