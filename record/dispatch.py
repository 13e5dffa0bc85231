"""What PyTorch's dispatcher does with five small calls: the kernels it runs, the graph that grows, and the
tensors it saves.

How this is observed: for each operator and dispatch key with a kernel, torch.library.get_kernel fetches the
kernel, and a function that records the visit and then calls it is registered instead. So every visit really
happened. Which keys have no kernel and are skipped is read from the dispatcher's tables
(torch._C._dispatch_dump_table). Nodes are the results' grad_fn; saved tensors come from
torch.autograd.graph.saved_tensors_hooks. Shapes are written as letters; recording each case at two sizes
verifies the letters. Calls inside a backend's kernel are counted but not listed.

Autocast is that of a GPU. The CPU's leaves softmax and layer norm as they are, while CUDA's runs them in fp32
(torch/include/ATen/ autocast_mode.h: AT_FORALL_FP32, AT_FORALL_FP32_SET_OPT_DTYPE). So the behaviour of
CUDA's kernels is registered for the CPU, and the recorder stops at any other operator for which CUDA's
autocast has a kernel and the CPU's has none.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from functools import cache, partial

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

RUNS_ON = ("torch",)
KEYS = ("AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU")
SIZES = [{"t": 6, "h": 14, "f": 26, "a": 3, "d": 10}, {"t": 9, "h": 16, "f": 38, "a": 5, "d": 12}]
MODES = {"grad": contextlib.nullcontext, "no_grad": torch.no_grad, "inference": torch.inference_mode}


# -- the calls that are traced -------------------------------------------------------------------------------
def leaf(*shape):
    """A tensor of this shape that asks for a gradient."""
    return torch.linspace(-1, 1, math.prod(shape)).reshape(shape).requires_grad_()


def heads(n):
    """Queries, keys and values for attention."""
    return {name: leaf(1, n["a"], n["t"], n["d"]) for name in ("q", "k", "v")}


CASES = {
    "matmul": (
        lambda n: {"x": leaf(n["t"], n["h"]), "w": leaf(n["h"], n["f"])},
        lambda x, w: torch.matmul(x, w),
    ),
    "linear_gelu": (
        lambda n: {"x": leaf(n["t"], n["h"]), "w": leaf(n["f"], n["h"]), "b": leaf(n["f"])},
        lambda x, w, b: F.gelu(F.linear(x, w, b)),
    ),
    "layer_norm": (
        lambda n: {"x": leaf(n["t"], n["h"]), "w": leaf(n["h"]), "b": leaf(n["h"])},
        lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b),
    ),
    "attention": (heads, lambda q, k, v: torch.softmax(q @ k.transpose(-2, -1), -1) @ v),
    "sdpa": (heads, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=1.0)),
}


# -- autocast as on a GPU ------------------------------------------------------------------------------------
def narrow(argument) -> bool:
    """Whether an argument is a tensor with 16 bits a value."""
    return isinstance(argument, torch.Tensor) and argument.dtype in (torch.bfloat16, torch.float16)


def wide(operator):
    """CUDA's autocast kernel for operators that need fp32: cast narrower arguments, then call the operator
    again."""

    def kernel(*args):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
            return operator(*(each.float() if narrow(each) else each for each in args))

    return kernel


def wide_softmax(x, dim, dtype=None):
    """The same for operators with an argument for the format of the result."""
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
        return torch.ops.aten.softmax.int(x, dim, torch.float32 if dtype is None else dtype)


def as_on_a_gpu():
    """Registers these kernels until the returned library is released."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("softmax.int", wide_softmax, "AutocastCPU")
    library.impl("layer_norm", wide(torch.ops.aten.layer_norm.default), "AutocastCPU")
    library.impl("native_layer_norm", wide(torch.ops.aten.native_layer_norm.default), "AutocastCPU")
    return library


# -- the dispatcher's own tables -----------------------------------------------------------------------------
@cache
def kernels(operator: str) -> dict[str, str]:
    """Key -> kind of kernel that the dispatcher calls for it; keys that it skips are left out."""
    found = {}
    for line in torch._C._dispatch_dump_table(operator).splitlines():
        key, _, rest = line.partition(": ")
        if key in (*KEYS, "AutocastCUDA") and not rest.startswith("fallthrough"):
            found[key] = rest.rsplit("[", 1)[1].rstrip("]")
    if "AutocastCPU" not in found and found.pop("AutocastCUDA", None):
        raise AssertionError(f"{operator}: CUDA's autocast has a kernel, which this recording does not have")
    return {key: kind for key, kind in found.items() if key in KEYS}


def operators(run) -> list[str]:
    """Every operator that a call dispatches, all overloads."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    names = sorted({event.name for event in seen.events() if event.name.startswith("aten::")})
    return [
        name if overload == "default" else f"{name}.{overload}"
        for name in names
        for overload in getattr(torch.ops.aten, name.removeprefix("aten::")).overloads()
    ]


def written(tensor, letters: dict) -> dict:
    """Shape, as letters, and format of a tensor."""
    letter = {size: name for name, size in letters.items()}
    return {
        "shape": [letter[size] for size in tensor.shape if size > 1],
        "dtype": str(tensor.dtype).removeprefix("torch."),
    }


def address(tensor) -> int:
    """Where a tensor's storage begins, by which storages are told apart."""
    return tensor.untyped_storage().data_ptr()


# -- one trace -----------------------------------------------------------------------------------------------
class Trace:
    """Records what happens inside its `with` block."""

    def __init__(self, inputs: dict, letters: dict):
        self.inputs, self.letters = inputs, letters
        self.calls, self.events, self.nodes = [], [], []
        self._open = []  # (call, key, kind) of the visits in progress
        self._kept = []  # all results, so that no address is reused
        self._called = {
            address(t): (-1, name) for name, t in inputs.items()
        }  # storage -> who made it, and a name
        self._storages, self._number = {}, {}

    def __enter__(self):
        self.library = torch.library.Library("aten", "IMPL")
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.saved, lambda packed: packed)
        self.hooks.__enter__()
        return self

    def __exit__(self, *error):
        self.hooks.__exit__(*error)
        self.library._destroy()

    def watch(self, wanted: list[str]) -> None:
        # all kernels are fetched before the first is replaced, because what one key calls may depend on
        # another key's kernel
        taken = [
            (operator, key, kind, torch.library.get_kernel(operator, key))
            for operator in wanted
            for key, kind in kernels(operator).items()
        ]
        for operator, key, kind, kernel in taken:
            self.library.impl(
                operator.removeprefix("aten::"),
                partial(self.visit, operator.split(".")[0], key, kind, kernel),
                key,
                with_keyset=True,
                allow_override=True,
            )

    def visit(self, name, key, kind, kernel, keyset, *args, **named):
        if self._open and self._open[-1][1] == "CPU" and self._open[-1][2] != "math kernel":
            self.calls[self._open[-1][0]]["inside"] += 1  # of a backend's kernel
            return self.quietly(kernel, keyset, args, named)
        call = self.entered(name, key, kind)
        try:
            result = kernel.call_boxed(keyset, *args, **named)
        finally:
            self._open.pop()
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.returned(call, tensor, args)
        return result

    def quietly(self, kernel, keyset, args, named):
        result = kernel.call_boxed(keyset, *args, **named)
        self._kept.append(result)
        return result

    def entered(self, name: str, key: str, kind: str) -> int:
        """The call that this visit belongs to: the enclosing one, if that is the same operator at an earlier
        key."""
        around = self._open[-1] if self._open else None
        if around and self.calls[around[0]]["op"] == name and KEYS.index(key) > KEYS.index(around[1]):
            call = around[0]
        else:
            call = len(self.calls)
            self.calls.append(
                {"op": name, "depth": self.calls[around[0]]["depth"] + 1 if around else 0, "inside": 0}
            )
        self._open.append((call, key, kind))
        self.events.append({"what": "visit", "call": call, "key": key, "kernel": kind})
        return call

    def returned(self, call: int, tensor, args) -> None:
        self._kept.append(tensor)
        op, at = self.calls[call]["op"].removeprefix("aten::"), address(tensor)
        if self._called.get(at, (call, ""))[0] >= call:  # made in this call, not only used by it
            copied = op in ("to", "_to_copy")
            self._called[at] = call, f"copy of {self._called[address(args[0])][1]}" if copied else op
        if tensor.grad_fn is not None and tensor.grad_fn not in self._number:
            self.add_node(call, tensor.grad_fn)

    def add_node(self, call: int, node) -> None:
        self._number[node] = len(self.nodes)
        self.nodes.append(
            {
                "name": type(node).__name__,
                "call": call,
                "to": [self.called(earlier) for earlier, _ in node.next_functions if earlier is not None],
            }
        )
        self.events.append({"what": "node", "call": call, "node": self._number[node]})

    def called(self, node):
        """A node's number, or the name of the input whose gradient it accumulates."""
        if node in self._number:
            return self._number[node]
        return next(name for name, tensor in self.inputs.items() if tensor is node.variable)

    def saved(self, tensor):
        if self._open:
            storage = self._storages.setdefault(address(tensor), len(self._storages))
            self._kept.append(tensor)
            self.events.append(
                {
                    "what": "save",
                    "call": self._open[-1][0],
                    "storage": storage,
                    "of": self._called.get(address(tensor), (0, "statistic"))[1],
                    **written(tensor, self.letters),
                }
            )
        return tensor


def graph(tensor) -> list[str]:
    """The names of the nodes behind a result, each once."""
    seen, left = {}, [tensor.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            seen[node] = type(node).__name__
            left += [earlier for earlier, _ in node.next_functions]
    return sorted(name for name in seen.values() if name != "AccumulateGrad")


def traced(case: str, autocast: bool, mode: str, letters: dict) -> dict:
    """The trace of one case: every visit of the dispatcher, the graph, and what is saved."""
    inputs_of, call = CASES[case]
    with MODES[mode](), torch.autocast("cpu", torch.bfloat16, enabled=autocast), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about replacing kernels, which is intended
        inputs = inputs_of(letters)
        wanted, unwatched = operators(lambda: call(**inputs)), graph(call(**inputs))
        torch.clear_autocast_cache()
        with Trace(inputs, letters) as trace:
            trace.watch(wanted)
            watched = graph(call(**inputs))
    if not watched == unwatched == sorted(node["name"] for node in trace.nodes):
        raise AssertionError(f"{case}: watching changed the graph from {unwatched} to {watched}")
    return {"calls": trace.calls, "events": trace.events, "nodes": trace.nodes}


def portable(trace: dict) -> dict:
    """A trace without how many operators each kernel calls in turn: a CPU without 16-bit instructions
    multiplies a batch of 16-bit matrices in a loop, with calls for each."""
    return trace | {"calls": [{"op": call["op"], "depth": call["depth"]} for call in trace["calls"]]}


def shape(recording: dict) -> dict:
    """What every CPU's recording has."""
    return recording | {"traces": {name: portable(trace) for name, trace in recording["traces"].items()}}


def record() -> dict:
    """The recording, as its JSON file holds it."""
    library, found = as_on_a_gpu(), {}
    for case in CASES:
        for autocast in (False, True):
            for mode in MODES:
                small, large = (traced(case, autocast, mode, letters) for letters in SIZES)
                if portable(small) != portable(large):
                    raise AssertionError(
                        f"{case}: the trace depends on the sizes in a way that letters do not say"
                    )
                found[f"{case} {'autocast' if autocast else 'fp32'} {mode}"] = small
    library._destroy()
    kernels.cache_clear()
    return {"traces": found}
