"""The recorded dispatcher traces as tables: one row per trace, columns of calls, visits, nodes and saved
tensors.

The data that record/dispatch.py wrote, in arrays that a page can look up. Sizes were recorded as letters, so
a saved tensor's bytes can be computed for any sizes. Leaves out everything that the recording does.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.base import check
from engine.base.types import Real
from engine.one_gpu import recordings

if TYPE_CHECKING:
    from engine.catalog.models import Model

CASES = ("matmul", "linear_gelu", "layer_norm", "attention", "sdpa")
FORMATS = ("fp32", "autocast")
MODES = ("grad", "no_grad", "inference")
KEYS = ("AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU")
KERNELS = ("kernel", "math kernel", "default backend kernel", "autograd kernel", "backend fallback")
LETTERS = ("t", "h", "f", "a", "d")  # tokens, hidden, feed-forward, heads, values per head
PARTS = ("calls", "visits", "nodes", "edges", "kept")
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "bool": 1}
COMPOSITE = KERNELS.index("math kernel")  # an operator composed of others
WEIGHTS = ("w", "b")
WHOSE = (
    "autocast's kernel",
    "autograd's kernel",
    "the kernel that keeps track of views",
    "the CPU's kernel",  # by KEYS
    "a composite's kernel: it only calls others",
    "a kernel for every backend",
    "autograd's kernel",
    "a fallback",
)


class TraceTables(NamedTuple):
    """The traces as tables of [trace, row], NaN where a trace has fewer rows. Texts are indices into
    ``words``."""

    calls: dict  # op, depth, inside, event (of the first visit)
    visits: dict  # event, call, op, key, kernel
    nodes: dict  # event, call, name
    edges: dict  # event, call (of the node), to (the call of the node before it)
    kept: dict  # event, call, slot (among those of its call), of, item, a power for each letter, and
    #                         counted: 1 where it is not a weight and not yet counted
    events: np.ndarray  # [trace]: number of events
    operators: np.ndarray  # [trace]: number of calls
    words: tuple  # all texts


def name(case: str, autocast: bool, mode: str) -> str:
    """The recording's name of a trace."""
    return f"{case} {FORMATS[autocast]} {mode}"


def index(case: Real, autocast: Real, mode: Real) -> Real:
    """The row of a trace: its case, 1 under autocast, and its mode."""
    return (case * len(FORMATS) + autocast) * len(MODES) + mode


def columns(case: float, autocast: bool, mode: float) -> dict[str, np.ndarray]:
    """The columns of one trace by their names, "visits.event", "calls.op" and so on; NaN where it has fewer
    rows."""
    row = int(index(case, autocast, mode))
    return {
        f"{part}.{column}": values[row]
        for part in PARTS
        for column, values in getattr(tables(), part).items()
    }


@cache
def tables() -> TraceTables:
    """All traces."""
    found = recordings.load("dispatch")["traces"]
    traces = [
        found[name(case, autocast, mode)] for case in CASES for autocast in (False, True) for mode in MODES
    ]
    words: dict[str, int] = {}

    def word(text):
        return words.setdefault(text, len(words))

    rows = [_rows(trace, word) for trace in traces]
    parts = [
        {column: _padded([row[part][column] for row in rows]) for column in rows[0][part]} for part in PARTS
    ]
    events, operators = (np.array([float(len(trace[of])) for trace in traces]) for of in ("events", "calls"))
    return TraceTables(*parts, events=events, operators=operators, words=tuple(words))


def _rows(trace: dict, word) -> dict:
    """One trace's columns."""
    events = list(enumerate(trace["events"]))
    visits = [(at, each) for at, each in events if each["what"] == "visit"]
    first = {each["call"]: at for at, each in reversed(visits)}
    nodes = [(at, trace["nodes"][each["node"]]) for at, each in events if each["what"] == "node"]
    edges = [
        (at, node["call"], trace["nodes"][to]["call"])
        for at, node in nodes
        for to in node["to"]
        if isinstance(to, int)
    ]
    kept, seen = [(at, each) for at, each in events if each["what"] == "save"], set()
    counted = []
    for _, each in kept:
        counted.append(float(each["of"] not in WEIGHTS and each["storage"] not in seen))
        seen.add(each["storage"])
    return {
        "calls": {
            "op": [word(call["op"]) for call in trace["calls"]],
            "depth": [call["depth"] for call in trace["calls"]],
            "inside": [call["inside"] for call in trace["calls"]],
            "event": [first[i] for i in range(len(trace["calls"]))],
        },
        "visits": {
            "event": [at for at, _ in visits],
            "call": [each["call"] for _, each in visits],
            "op": [word(trace["calls"][each["call"]]["op"]) for _, each in visits],
            "key": [KEYS.index(each["key"]) for _, each in visits],
            "kernel": [KERNELS.index(each["kernel"]) for _, each in visits],
        },
        "nodes": {
            "event": [at for at, _ in nodes],
            "call": [node["call"] for _, node in nodes],
            "name": [word(node["name"]) for _, node in nodes],
        },
        "edges": {
            "event": [at for at, _, _ in edges],
            "call": [call for _, call, _ in edges],
            "to": [to for _, _, to in edges],
        },
        "kept": {
            "event": [at for at, _ in kept],
            "call": [each["call"] for _, each in kept],
            "of": [word(each["of"]) for _, each in kept],
            "slot": [
                [other["call"] for _, other in kept[:place]].count(each["call"])
                for place, (_, each) in enumerate(kept)
            ],
            "item": [ITEM_BYTES[each["dtype"]] for _, each in kept],
            "counted": counted,
        }
        | {letter: [each["shape"].count(letter) for _, each in kept] for letter in LETTERS},
    }


def _padded(columns: list[list]) -> np.ndarray:
    length = max(1, *map(len, columns))
    return np.array([[*map(float, column), *[np.nan] * (length - len(column))] for column in columns])


def whose(key: Real, kernel: Real) -> Real:
    """An index into WHOSE, which says whose kernel a visit ran: known by the kernel's key, or else by its
    kind."""
    return np.where(kernel > 0, kernel + len(KEYS) - 1, key)


def tensor_bytes(kept: dict, tokens: Real, hidden: Real, ffn: Real, heads: Real, head_dim: Real) -> Real:
    """The bytes of saved tensors: bytes per item, times each size as often as its letter is in the shape."""
    if not check.is_trusted():
        check.positive(tokens=tokens, hidden=hidden, ffn=ffn, heads=heads, head_dim=head_dim)
    return (
        kept["item"]
        * tokens ** kept["t"]
        * hidden ** kept["h"]
        * ffn ** kept["f"]
        * heads ** kept["a"]
        * head_dim ** kept["d"]
    )


def summed(call: Real, amounts: Real, calls: Real) -> Real:
    """The amounts of each call, added up."""
    mine = np.expand_dims(call, 0) == np.expand_dims(calls, 1)
    return np.sum(np.where(mine, np.expand_dims(amounts, 0), 0.0), axis=1)


def before(call: Real, slot: Real, amounts: Real) -> Real:
    """For each of some tensors, the sum of the amounts of the tensors that the same call keeps in earlier
    slots."""
    same = np.expand_dims(call, 0) == np.expand_dims(call, 1)
    earlier = np.expand_dims(slot, 0) < np.expand_dims(slot, 1)
    return np.sum(np.where(same & earlier, np.expand_dims(amounts, 0), 0.0), axis=1)


def kept_bytes(case: str, autocast: bool, mode: str, tokens: Real, model: Model) -> Real:
    """The bytes that a trace saves for the backward pass at these sizes: each storage once, without the
    weights themselves."""
    row = index(CASES.index(case), int(autocast), MODES.index(mode))
    counts = tables().kept["counted"][row] > 0
    kept = {column: values[row][counts] for column, values in tables().kept.items()}
    return np.sum(tensor_bytes(kept, tokens, model.hidden, model.ffn, model.heads, model.head_dim))


def counts(case: str, autocast: bool, mode: str) -> dict[str, int]:
    """The numbers of operators that a trace calls, kernels it runs (composite ones among them), nodes it
    makes, and calls inside kernels."""
    trace = recordings.load("dispatch")["traces"][name(case, autocast, mode)]
    what = [event["what"] for event in trace["events"]]
    return {
        "operators": len(trace["calls"]),
        "visits": what.count("visit"),
        "nodes": what.count("node"),
        "composites": sum(event.get("kernel") == KERNELS[COMPOSITE] for event in trace["events"]),
        "inside": sum(call["inside"] for call in trace["calls"]),
    }


# -- a whole layer -------------------------------------------------------------------------------------------
def layer_kept(
    seq: Real, batch: Real, hidden: Real, heads: Real, written_out: bool = True
) -> list[tuple[str, float]]:
    """(name, bytes) of each tensor that the recorded GPT layer saves (record/saved_block.py), at these
    sizes."""
    sizes = {
        "s": seq,
        "b": batch,
        "h": hidden,
        "a": heads,
        "d": hidden / heads,
        "3h": 3 * hidden,
        "4h": 4 * hidden,
        "ab": heads * batch,
        "sb": seq * batch,
    }
    rows = recordings.load("saved_block")["kept"]["written out" if written_out else "fused"]
    return [
        (row["name"], ITEM_BYTES[row["dtype"]] * math.prod([sizes[letter] for letter in row["shape"]]))
        for row in rows
    ]


def layer_kept_bytes(seq: Real, batch: Real, hidden: Real, heads: Real, written_out: bool = True) -> float:
    """The sum over all of these tensors."""
    return float(sum(size for _, size in layer_kept(seq, batch, hidden, heads, written_out)))


def layer_operators(phase: str) -> int:
    """The number of kernels that a layer of Hugging Face's Llama starts: "inference", "forward", "backward"
    or "update"."""
    check.one_of(("inference", "forward", "backward", "update"), phase=phase)
    return recordings.load("layer_ops")[phase]["kernels"]
