"""The engine at a shell: ``python -m engine estimate | plan | infer | collective | goodput | cost | models | gpus |
validate``.

Tables by default, ``--json`` for programs. Bad input: one line on standard error and exit status 2. ``cost`` over its
``--budget``: the bill as always, one line on standard error and exit status 3.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from dataclasses import asdict

from engine import catalog, check, cost, flops, interconnect, models, report, units
from engine.collectives import OPERATIONS, algorithm_bandwidth, bus_bandwidth
from engine.layout import PRECISIONS, SOFTWARE, Job, Layout, estimate, machine
from engine.memory import RECOMPUTE
from engine.pipeline import SCHEDULES

OVER_BUDGET = 3         # exit status of ``cost`` where the guard refuses
LONGEST_MESSAGE = 1000  # characters


class Parser(argparse.ArgumentParser):
    """One line for a bad argument instead of the whole usage."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {_line(message)}\n")


def _line(message: object) -> str:
    """A message on one line and of a length to be read, whatever the arguments in it hold."""
    words = " ".join(str(message).split())
    return words if len(words) <= LONGEST_MESSAGE else f"{words[:LONGEST_MESSAGE]} …"


# -- arguments -------------------------------------------------------------------------------------------------------
def _add_model(parser):
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--model", help="key of the catalogue: python -m engine models")
    one.add_argument("--model-file", metavar="TOML", help="a model of your own, in the catalogue's keys")


def _add_machine(parser):
    parser.add_argument("--gpu", required=True, help="key of the catalogue: python -m engine gpus")
    parser.add_argument("--precision", default="bf16", choices=(*PRECISIONS, "int8", "fp4"),
                        help="of the matrix products (bf16)")
    parser.add_argument("--gpus-per-node", type=int, help="that share a scale-up link (the GPU's usual number)")
    parser.add_argument("--nic-bytes-per-s", type=float, help="one way and per GPU (the GPU's usual NIC)")
    parser.add_argument("--oversubscription", type=float, default=1.0, help="of the network between nodes (1)")


def _add_job(parser):
    parser.add_argument("--gpus", type=int, required=True)
    parser.add_argument("--global-batch", type=int, required=True, help="sequences of a step")
    parser.add_argument("--seq", type=int, required=True, help="tokens of a sequence")
    parser.add_argument("--recipe", default="bf16-adam", help="bytes of training state (bf16-adam)")
    parser.add_argument("--imbalance", type=float, default=1.1, help="the fullest expert rank's load over the mean")
    parser.add_argument("--software", choices=tuple(SOFTWARE), help=(
        "what the next four switches are unless said otherwise: modern, all on; 2022, as in Korthikanti et al. (no "
        "fused attention, no overlap); 2021, as in Megatron-LM's SC21 paper (all off). Without it modern, but for "
        "selective recomputation, which is made for attention that is not fused"))
    for flag, text in (("sequence-parallel", "norms and dropout sharded over the tensor ranks"),
                       ("flash", "fused attention"), ("overlap", "data-parallel traffic behind arithmetic"),
                       ("fused", "weight gradients summed inside their product, stage outputs freed once sent")):
        parser.add_argument(f"--{flag}", action=argparse.BooleanOptionalAction, help=text)
    parser.add_argument("--gather-context", action="store_true", help="context parallelism by AllGather, not a ring")


def _add_layout(parser):
    for axis, text in (("tp", "tensor"), ("pp", "pipeline"), ("cp", "context"), ("ep", "expert")):
        parser.add_argument(f"--{axis}", type=int, default=1, help=f"{text} parallel ranks (1)")
    parser.add_argument("--expert-tp", type=int, default=1, help="GPUs that share an expert (1)")
    parser.add_argument("--zero", type=int, default=1, help="ZeRO stage, 3 is FSDP (1)")
    parser.add_argument("--shard", type=int, default=0, help="HSDP: GPUs that share one copy of the state (all)")
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--recompute", default="none", help=f"{', '.join(RECOMPUTE)} (none)")
    parser.add_argument("--schedule", default="1f1b", help=f"{', '.join(SCHEDULES)} (1f1b)")
    parser.add_argument("--interleave", type=int, default=1, help="chunks of layers a stage (1)")


def _parser() -> Parser:
    parser = Parser(prog="python -m engine", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser, metavar="command")

    def command(name, run, text, *groups):
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.add_argument("--json", action="store_true", help="for programs")
        for add in groups:
            add(sub)
        sub.set_defaults(run=run)
        return sub

    command("estimate", run_estimate, "time and memory of one training step",
            _add_model, _add_machine, _add_job, _add_layout)
    sub = command("plan", run_plan, "the fastest layout of all, and what the others lose by",
                  _add_model, _add_machine, _add_job)
    sub.add_argument("--top", type=int, default=5, help="how many splits to show (5)")
    sub = command("infer", run_infer, "latency and throughput of serving", _add_model, _add_machine)
    sub.add_argument("--tp", type=int, default=1)
    sub.add_argument("--batch", type=int, default=1, help="sequences served together (1)")
    sub.add_argument("--prompt", type=int, default=1024, help="tokens (1024)")
    sub.add_argument("--output", type=int, default=128, help="tokens (128)")
    sub.add_argument("--weight-precision", help="as stored, where it is not that of the products (int4, int8, fp8, …)")
    sub.add_argument("--kv-precision", help="of the cache (16 bits)")
    sub.add_argument("--all-reduce", default="auto", help="auto, ring, tree, nvls or one_shot (auto)")
    sub = command("collective", run_collective, "time and bandwidth of one collective operation", _add_machine)
    sub.add_argument("--op", required=True, help=", ".join(OPERATIONS))
    sub.add_argument("--ranks", type=int, required=True)
    sub.add_argument("--bytes", type=float, required=True, help="of the whole buffer")
    sub.add_argument("--per-node", type=int, help="of the ranks (as many as a node holds)")
    sub = command("goodput", run_goodput, "what failures leave of a long run")
    sub.add_argument("--gpus", type=int, required=True)
    sub.add_argument("--checkpoint-s", type=float, default=60.0, help="that writing one takes (60)")
    sub.add_argument("--restart-s", type=float, default=600.0, help="from a failure to the next step (600)")
    sub.add_argument("--failures-per-gpu-year", type=float, help="(Llama 3's: 0.17)")
    sub.add_argument("--interval-s", type=float, help="between checkpoints (Young's optimum)")
    sub = command("cost", run_cost, "what a run costs, and whether the budget allows it")
    sub.add_argument("--gpu", required=True)
    sub.add_argument("--gpus", type=int, default=1)
    sub.add_argument("--hours", type=float, help="of the run; or --model and --tokens")
    sub.add_argument("--model", help="key of the catalogue")
    sub.add_argument("--tokens", type=float, help="that the model is trained on")
    sub.add_argument("--mfu", type=float, default=0.4, help="share of the 16-bit peak (0.4)")
    sub.add_argument("--price", type=float, help="dollars per GPU-hour (the catalogue's latest)")
    sub.add_argument("--overhead", type=float, default=0.0, help="storage, network, idle GPUs, as a share (0)")
    sub.add_argument("--budget", type=float, help="dollars; above it the guard refuses, with exit status 3")
    command("models", run_models, "the catalogue's models")
    command("gpus", run_gpus, "the catalogue's accelerators")
    sub = command("validate", run_validate, "the engine against published runs, worst first")
    sub.add_argument("--cases", metavar="DIR", help="the published cases (tests/published of the repository)")
    sub.add_argument("--all", action="store_true", help="every row, not only each group's worst")
    return parser


# -- commands --------------------------------------------------------------------------------------------------------
def _model(args):
    return catalog.model_from_file(args.model_file) if args.model_file else catalog.model(args.model)


def _machine(args):
    return machine(catalog.gpu(args.gpu), args.precision, args.gpus_per_node, args.nic_bytes_per_s,
                   args.oversubscription)


def _job(args) -> Job:
    switches = dict(SOFTWARE[args.software or "modern"])
    if args.software is None and getattr(args, "recompute", None) == "selective":
        switches["flash"] = False
    switches |= {name: getattr(args, name) for name in switches if getattr(args, name) is not None}
    return Job(args.global_batch, args.seq, catalog.recipe(args.recipe), **switches, gather_context=args.gather_context,
               imbalance=args.imbalance)


def run_estimate(args):
    layout = Layout(args.gpus, args.tp, args.pp, args.cp, args.ep, args.zero, args.micro_batch, args.recompute,
                    args.schedule, args.interleave, args.expert_tp, args.shard)
    result = estimate(_model(args), _machine(args), _job(args), layout).as_dict()
    return result, report.lines(result)


def run_plan(args):
    from engine import search
    result = search.plan(_model(args), _machine(args), _job(args), args.gpus, args.top).as_dict()
    columns = [*result["best"]["layout"], "step_s", "mfu", "total_bytes", "fits", "slower_by", "lost_by"]
    rows = [{**row["layout"], **row, "total_bytes": row["memory_bytes"]["total"]}
            for row in [{**result["best"], "slower_by": 0.0, "lost_by": "-"}, *result["runners_up"]]]
    counts = {key: result[key] for key in ("layouts", "fitting", "search_s", "layouts_per_s")}
    return result, report.lines(counts) + [""] + report.table(rows, columns)


def run_infer(args):
    from engine import inference
    kv_precision = args.kv_precision or ("bf16" if args.precision in ("fp8", "int8", "fp4") else args.precision)
    serving = inference.Serving(args.tp, args.batch, args.prompt, args.output, kv_precision, args.all_reduce,
                                args.weight_precision)
    result = inference.infer(_model(args), _machine(args), serving)
    return result, report.lines(result)


def run_collective(args):
    net = _machine(args).wires
    check.one_of(OPERATIONS, op=args.op)
    check.whole(2, ranks=args.ranks)
    check.positive(bytes=args.bytes)
    per_node = min(args.ranks, int(net.gpus_per_node)) if args.per_node is None else args.per_node
    check.whole(per_node=per_node)
    if per_node > min(args.ranks, net.gpus_per_node):
        raise ValueError(f"per_node must be at most ranks and the node's {net.gpus_per_node:.0f} GPUs, got {per_node}")
    ranks, per_node = float(args.ranks), float(per_node)
    time_s = interconnect.collective_s(args.op, args.bytes, ranks, per_node, net)
    result = {"op": args.op, "gpu": args.gpu, "ranks": args.ranks, "per_node": int(per_node), "bytes": args.bytes,
              "time_s": time_s, "algorithm_bandwidth": algorithm_bandwidth(args.bytes, time_s),
              "bus_bandwidth": bus_bandwidth(args.op, ranks, args.bytes, time_s),
              "algorithm": interconnect.algorithm(args.op, args.bytes, ranks, per_node, net)}
    return result, report.lines(result)


def run_goodput(args):
    from engine import reliability
    known = {} if args.failures_per_gpu_year is None else {"failures_per_gpu_year": args.failures_per_gpu_year}
    run = reliability.run(args.gpus, args.checkpoint_s, args.restart_s, interval_s=args.interval_s, **known)
    result = {"gpus": run.gpus, "checkpoint_s": args.checkpoint_s, "restart_s": args.restart_s,
              "mean_time_between_failures_s": run.mtbf_s, "interval_s": run.interval_s, "wasted_share": run.wasted,
              "goodput": run.goodput, "failures_per_day": run.failures_per_day,
              "best_interval_s": float(reliability.best_interval_s(args.checkpoint_s, run.mtbf_s)),
              "useful_share": float(reliability.useful_share(run.interval_s, args.checkpoint_s, run.mtbf_s,
                                                             args.restart_s))}
    return result, report.lines(result)


def run_cost(args):
    gpu = catalog.gpu(args.gpu)
    check.whole(gpus=args.gpus)
    if args.hours is not None:
        check.positive(hours=args.hours)
        gpu_hours = args.gpus * args.hours
    elif args.model and args.tokens is not None:
        check.positive(tokens=args.tokens)
        needed = flops.training_flops(models.active_parameters(catalog.model(args.model)), args.tokens)
        gpu_hours = flops.gpu_hours(needed, gpu.peak_flops_per_s("bf16"), args.mfu)
    else:
        raise ValueError("cost needs --hours, or --model and --tokens; got neither")
    price = args.price if args.price is not None else catalog.price(args.gpu).dollars_per_hour
    dollars = float(cost.run_dollars(gpu_hours, price, args.overhead))
    result = {"sentence": _priced(gpu, args.gpus, gpu_hours, price, args.overhead, dollars), "gpu": args.gpu,
              "gpus": args.gpus, "gpu_hours": float(gpu_hours), "hours": float(gpu_hours / args.gpus),
              "dollars_per_gpu_hour": price, "dollars": dollars}
    if args.price is None:
        result["price_date"] = catalog.price(args.gpu).date
    if args.budget is not None:
        over = float(cost.over_budget_dollars(dollars, args.budget))
        result |= {"budget_dollars": args.budget, "over_budget_dollars": over, "within_budget": over <= 0.0}
    return result, [result["sentence"], *report.lines({key: result[key] for key in result if key != "sentence"})]


def _priced(gpu, gpus, gpu_hours, price, overhead, dollars) -> str:
    """The sentence with which a run begins."""
    on_top = f" and {units.human(overhead, 'percent')} on top" if overhead else ""
    return (f"This run takes {gpus:,} {gpu.name} for {units.human(gpu_hours / gpus * units.HOUR, 'seconds')}, "
            f"{units.number(gpu_hours)} GPU-hours at {units.human(price, 'dollars')}{on_top}: "
            f"{units.human(dollars, 'dollars')}.")


def _refused(result) -> str:
    """What the guard says, and by how much."""
    over = result["over_budget_dollars"]
    return (f"refused: {units.human(over, 'dollars')} ({units.human(over / result['budget_dollars'], 'percent')}) over "
            f"the budget of {units.human(result['budget_dollars'], 'dollars')}")


def run_models(args):
    rows = [{"key": m.key, "name": m.name, "year": m.year, "parameters": int(models.parameters(m)),
             "active_parameters": int(models.active_parameters(m)), "layers": m.layers, "hidden": m.hidden,
             "heads": m.heads, "kv_heads": m.kv_heads, "experts": m.experts, "vocab": m.vocab, "source": m.source}
            for m in catalog.models().values()]
    return rows, report.table(rows, [key for key in rows[0] if key != "source"])


def run_gpus(args):
    rows = [asdict(gpu) for gpu in catalog.gpus().values()]
    return rows, report.table(rows, ["key", "name", "year", "hbm_bytes", "hbm_bytes_per_s", "bf16_flops_per_s",
                                     "fp8_flops_per_s", "link_name", "link_bytes_per_s", "nic_bytes_per_s",
                                     "gpus_per_node"])


def run_validate(args):
    from engine import validation
    outcome = validation.validate(args.cases)
    return outcome.as_dict(), outcome.lines(everything=args.all)


def _require_finite(result, key="result") -> None:
    """ValueError where a number in the result has overflowed."""
    if isinstance(result, dict):
        for name, value in result.items():
            _require_finite(value, name)
    elif isinstance(result, (list, tuple)):
        for value in result:
            _require_finite(value, key)
    elif isinstance(result, float) and not math.isfinite(result):
        raise ValueError(f"arguments must give finite results; {key} would be {result}")


def _bad(args, message) -> int:
    print(f"python -m engine {args.command}: error: {_line(message)}", file=sys.stderr)
    return 2


def main(arguments=None) -> int:
    args = _parser().parse_args(arguments)
    try:
        result, text = args.run(args)
        _require_finite(result)
    except ArithmeticError as error:    # a number that overflowed, or vanished and was divided by
        return _bad(args, f"arguments must give finite results, not {error}")
    except ValueError as error:
        return _bad(args, error)
    try:
        as_json = json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)
        print(as_json if args.json else "\n".join(text), flush=True)
    except BrokenPipeError:     # a reader such as head has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(result, dict) and result.get("within_budget") is False:
        print(_refused(result), file=sys.stderr)
        return OVER_BUDGET
    return 0


if __name__ == "__main__":
    sys.exit(main())
