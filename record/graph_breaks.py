"""What Dynamo does with small functions, call by call: which line ends up in which graph, why graphs end, and
what is guarded.

The backend only records the graphs that it gets and runs them, so nothing here depends on Inductor or on a
GPU.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from record import _compiled_examples as examples

RUNS_ON = ("torch",)
CALLS = 12
WIDTH = 8
LENGTHS = (100, 37, 61, 12, 80, 55, 23, 90, 71, 44, 100, 71)
DYNAMIC = {"automatic": None, "off": False, "on": True}
READS = {
    "item",
    "tolist",
    "numpy",
    "getitem",
    "__bool__",
    "__repr__",
    "__format__",
    "__get__",
    "__len__",
    "__iter__",
}
NOISE = {
    "DIMENSION_DYNAMIC_MARKING_GUARD",
    "NO_TENSOR_ALIASING",
    "TYPE_MATCH",
    "ID_MATCH",
    "DICT_LENGTH",
    "DICT_VERSION",
    "DICT_CONTAINS",
    "NOT_PRESENT_IN_GENERIC_DICT",
    "NO_HASATTR",
    "STORAGE_OVERLAPPING",
}
PYTHON, ALONE = ".", "e"


class Example(NamedTuple):
    """A function as written and as mended, each with the parts of the module that are shown, and the
    arguments of each call."""

    key: str
    name: str
    written: tuple
    mended: tuple = ()
    arguments: Callable = lambda call: ()
    mended_arguments: Callable | None = None
    changing: bool = False


EXAMPLES = [
    Example("mlp", "An MLP", (examples.mlp,)),
    Example("tolerated", "try, a loop, NumPy", (examples.tolerated,)),
    Example("prints", "A print in the middle", (examples.prints,), (examples.prints_mended,)),
    Example("reads_value", "A value read: .item()", (examples.reads_value,), (examples.reads_value_mended,)),
    Example("branch", "An if on a tensor", (examples.branch,), (examples.branch_mended,)),
    Example("mask", "A size that depends on data", (examples.mask,), (examples.mask_mended,)),
    Example(
        "helper",
        "An if in a helper",
        (examples.norm_of, examples.helper),
        (examples.norm_of_mended, examples.helper_mended),
    ),
    Example(
        "extension",
        "A C extension",
        (examples.my_kernel, examples.extension),
        (examples.my_operator, examples.shape, examples.extension_mended),
    ),
    Example("loops", "An if in a loop", (examples.loops,), (examples.loops_mended,)),
    Example(
        "layers",
        "A loop over layers",
        (examples.layer, examples.layers),
        (examples.layer_mended, examples.layers_mended),
    ),
    Example(
        "number",
        "A number that changes",
        (examples.number,),
        (examples.number_mended,),
        lambda call: (0.5 + call,),
        lambda call: (torch.tensor(0.5 + call),),
        changing=True,
    ),
    Example(
        "lengths", "A length that changes", (examples.lengths,), (examples.lengths_mended,), changing=True
    ),
    Example("remembers", "A list that grows", (examples.remembers,), (examples.remembers_mended,)),
    Example("counter", "A counter on the module", (examples.Counter,), (examples.CounterMended,)),
]


def inputs(example: Example, call: int, mended: bool) -> tuple:
    """The same tensors for every call, except for the example whose length changes."""
    rows = LENGTHS[call] if example.key == "lengths" else 4
    x = torch.ones(rows, WIDTH) * torch.linspace(0.1, 2.0, WIDTH)
    if example.key == "lengths" and mended:
        torch._dynamo.mark_dynamic(x, 0)
    weights = [torch.eye(WIDTH) for _ in range(2 if example.key == "mlp" else 1)]
    given = example.mended_arguments if mended and example.mended_arguments else example.arguments
    return x, *weights, *given(call)


# -- the source, and where in it a frame stands --------------------------------------------------------------
def source_of(part) -> tuple[int, list[str]]:
    """(first line in the file, lines) of a function or a class; an operator's function is inside it."""
    part = getattr(part, "_init_fn", part)
    part = inspect.unwrap(part) if callable(part) and not inspect.isclass(part) else part
    lines, first = inspect.getsourcelines(part)
    return first, [re.sub("_mended|Mended", "", line).rstrip() for line in lines]


def listing(parts: tuple) -> tuple[list[str], dict[int, int]]:
    """The lines shown, and the row of each line of the file."""
    shown, row_of = [], {}
    for part in parts:
        first, lines = source_of(part)
        shown += [""] if shown else []
        row_of |= {first + i: len(shown) + i for i in range(len(lines))}
        shown += lines
    return shown, row_of


def rows_in(trace: str, row_of: dict) -> list[int]:
    """The rows that a stack trace goes through, outermost first."""
    lines = [int(n) for n in re.findall(rf'{re.escape(examples.__file__)}", line (\d+)', trace)]
    return [row_of[line] for line in lines if line in row_of]


# -- eager: how many operations each row has -----------------------------------------------------------------
class CountOps(TorchFunctionMode):
    """Counts the calls of torch functions by the row that makes them."""

    def __init__(self, row_of):
        super().__init__()
        self.row_of, self.ops = row_of, Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func.__name__ not in READS:
            frame = inspect.currentframe().f_back
            while frame and not (
                frame.f_code.co_filename == examples.__file__ and frame.f_lineno in self.row_of
            ):
                frame = frame.f_back
            if frame:
                self.ops[self.row_of[frame.f_lineno]] += 1
        return func(*args, **(kwargs or {}))


def eager_ops(target, given: tuple, row_of: dict) -> Counter:
    """Row -> number of operations. Not counted for torch.cond, which compiles itself: a graph contains it or
    it fails."""
    if "cond" in getattr(getattr(target, "__code__", None), "co_names", ()):
        return Counter()
    with CountOps(row_of) as counted, quiet():
        target(*given)
    return counted.ops


# -- compiled ------------------------------------------------------------------------------------------------
class Log(logging.Handler):
    """Keeps Dynamo's messages about breaks, guards and recompilations."""

    KINDS = ("graph_breaks", "guards", "recompiles")

    def __init__(self):
        super().__init__()
        self.said = []

    def emit(self, record):
        self.said.append((record.name.rsplit("__", 1)[-1], record.getMessage()))

    def take(self, kind: str) -> list[str]:
        return [text for name, text in self.said if name == kind]


@contextlib.contextmanager
def listening():
    """Dynamo's log, taken from its loggers instead of the terminal."""
    log = Log()
    torch._logging.set_logs(**dict.fromkeys(Log.KINDS, True))
    loggers = [
        each
        for name, each in logging.root.manager.loggerDict.items()
        if name.startswith("torch") and isinstance(each, logging.Logger) and each.handlers
    ]
    before = [each.handlers for each in loggers]
    for each in loggers:
        each.handlers = [log]
    try:
        yield log
    finally:
        for each, handlers in zip(loggers, before):
            each.handlers = handlers
        torch._logging.set_logs()


def quiet():
    """Hide what the examples print."""
    return contextlib.redirect_stdout(io.StringIO())


def run(parts: tuple, given: list[tuple], dynamic, log: Log) -> dict:
    """The calls of one function: its graphs, and which of them each call compiled and ran."""
    shown, row_of = listing(parts)
    target = target_of(parts)
    ops = eager_ops(target, given[0], row_of)
    target = target_of(parts)
    graphs, ran, calls, breaks = [], [], [], {}

    def backend(module, _):
        number = len(graphs)
        graphs.append({"ops": ops_of(module, row_of), "guards": [], "checks": 0})

        def compiled(*args):
            ran.append(number)
            return module.forward(*args)

        return compiled

    torch._dynamo.reset()
    compiled = torch.compile(target, backend=backend, dynamic=dynamic)
    for arguments in given:
        before = len(graphs)
        ran.clear()
        log.said.clear()
        with quiet():
            compiled(*arguments)
        checked = [text for text in log.take("guards") if "TENSOR_MATCH" in text]
        for graph, text in zip(graphs[before:], checked):
            graph["guards"], graph["checks"] = guards_in(text)
        breaks |= breaks_in(log, row_of)
        in_graphs = Counter(row for number in ran for row, _ in graphs[number]["ops"])
        all_ops = ops | in_graphs
        calls.append(
            {
                "compiled": list(range(before, len(graphs))),
                "ran": list(ran),
                "why": why_anew(log),
                "rows": "".join(state_of(row, graphs, ran, ops, in_graphs) for row in range(len(shown))),
                "in_graphs": sum((in_graphs & all_ops).values()),
                "ops": sum(all_ops.values()),
            }
        )
    return {
        "graphs": [graph | {"ops": by_row(graph["ops"])} for graph in graphs],
        "breaks": [{"row": row, "why": why} for row, why in sorted(breaks.items())],
        "calls": calls,
    }


def target_of(parts: tuple):
    """The function to call, in a fresh module, with a fresh list for an example that keeps state."""
    examples.HISTORY.clear()
    return parts[-1]() if inspect.isclass(parts[-1]) else parts[-1]


def ops_of(module, row_of: dict) -> list[tuple[int, str]]:
    """(row, operation) of each node that computes something."""
    nodes = [node for node in module.graph.nodes if node.op.startswith("call")]
    named = [
        (
            rows_in(node.meta.get("stack_trace") or "", row_of),
            getattr(node.target, "__name__", str(node.target)),
        )
        for node in nodes
    ]
    return [(rows[-1], name) for rows, name in named if rows and name not in READS]


def by_row(ops: list[tuple[int, str]]) -> dict[str, str]:
    """Row -> the names of its operations."""
    return {
        str(row): ", ".join(name for at, name in ops if at == row)
        for row in dict.fromkeys(row for row, _ in ops)
    }


def state_of(row: int, graphs: list, ran: list, ops: Counter, in_graphs: Counter) -> str:
    """A row's letter for one call: the number of the graph it ran in (the first is 1), e for eager, . for no
    operation."""
    for place, number in enumerate(ran, 1):
        if any(row == at for at, _ in graphs[number]["ops"]):
            return str(place)
    return ALONE if ops[row] else PYTHON


def breaks_in(log: Log, row_of: dict) -> dict[int, str]:
    """Row -> why the graph ends there, in Dynamo's words."""
    found = {}
    for text in log.take("graph_breaks"):
        place = re.search(r"user code at (.+):(\d+)", text)
        if place and place[1] == examples.__file__ and int(place[2]) in row_of:
            reason = text.split("Graph Break Reason:", 1)[1].strip()
            said = [line.strip() for line in reason.splitlines() if line.strip()]
            said = [line for line in said if not line.startswith("Encountered graph break")]
            found[row_of[int(place[2])]] = re.sub(r" Graph break encountered:$|\.$", "", said[0])
    return found


def why_anew(log: Log) -> str:
    """The first guard that failed, if a call recompiled."""
    for text in log.take("recompiles"):
        if failed := re.search(r"- \d+/\d+: (.+)", text):
            return re.sub(r"\s+#.*", "", failed[1]).strip()
    return ""


def guards_in(text: str) -> tuple[list[str], int]:
    """(guards on the function's own values, in plain words; the number of all guards) in a tree of guards."""
    leaves = re.findall(r"\+- ([A-Z_]{4,}): (.+)", text)
    leaves = [(kind, re.split(r"\s{2,}#|  # ", said)[0].strip()) for kind, said in leaves]
    own = [
        plain(said)
        for kind, said in leaves
        if kind not in NOISE
        and re.search(r"\b[LG]\['(?!__)", said)
        and "torch" not in re.findall(r"\[G?L?\['?(\w+)", said)[:1]
    ]
    return list(dict.fromkeys(said for said in own if said)), len(leaves)


def plain(said: str) -> str:
    """A guard in plain words."""
    tensor = re.match(
        r"check_tensor\((.+?), \w+, DispatchKeySet\(.*?\), torch\.(\w+), .*?size=(\[.*?\])", said
    )
    text = f"{tensor[1]}: {tensor[2]} {tensor[3].replace('None', 'any')}" if tensor else said
    text = re.sub(r"[LG]\['(\w+)'\]", r"\1", text)
    return "" if re.search(r"0x|\bid\(|___|__", text) else text


def record() -> dict:
    """The recording, as its JSON file holds it."""
    shown = []
    with listening() as log, torch.no_grad():
        for example in EXAMPLES:
            versions = {}
            for version, parts in (("written", example.written), ("mended", example.mended)):
                if not parts:
                    continue
                given = [inputs(example, call, version == "mended") for call in range(CALLS)]
                modes = DYNAMIC if example.changing else {"automatic": None}
                versions[version] = {
                    "source": listing(parts)[0],
                    "runs": {mode: run(parts, given, dynamic, log) for mode, dynamic in modes.items()},
                }
            shown.append({"key": example.key, "name": example.name, **versions})
    config = torch._dynamo.config
    return {
        "recompile_limit": config.recompile_limit,
        "examples": shown,
        "accumulated_recompile_limit": config.accumulated_recompile_limit,
    }
