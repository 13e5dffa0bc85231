"""When torch.compile pays off: compile time against the time saved per step, for inputs of different shapes.

Steps cycle through the shapes. The gain of a compiled step is an input (measured or cited), not modelled.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np

from engine import catalog
from engine.base import check
from engine.base.types import Real, Truth
from engine.one_gpu import measurements, recordings

AUTOMATIC, OFF, ON = 0, 1, 2  # torch.compile's dynamic=None, False and True
RECOMPILE_LIMIT = (
    8  # torch._dynamo.config.recompile_limit, as recorded in engine/one_gpu/recordings/graph_breaks.json
)


# -- how often it compiles -----------------------------------------------------------------------------------
def graphs(shapes: Real, dynamic: Real, limit: Real = RECOMPILE_LIMIT) -> Real:
    """How many graphs are compiled in all.

    With ``dynamic`` off, one per shape, up to the limit. Automatic: one for the first shape, and at the
    second shape one for any size. Always dynamic: one. Leaves out the sizes 0 and 1, which always get their
    own graphs. Source: PyTorch 2.13, torch.compile's ``dynamic`` and ``recompile_limit``; executed in
    record/graph_breaks.py.
    """
    check.whole(shapes=shapes, limit=limit)
    check.one_of((AUTOMATIC, OFF, ON), dynamic=dynamic)
    return np.minimum(
        np.minimum(shapes, limit), np.where(dynamic == OFF, limit, np.where(dynamic == ON, 1, 2))
    )


def compiled_after(steps: Real, shapes: Real, dynamic: Real, limit: Real = RECOMPILE_LIMIT) -> Real:
    """How many graphs have been compiled after this many steps, if each shape appears once before the first
    one comes again."""
    check.whole(0, steps=steps)
    return np.minimum(steps, graphs(shapes, dynamic, limit))


# -- which graph runs which step -----------------------------------------------------------------------------
def kinds(steps: Real, shapes: Real, dynamic: Real, limit: Real = RECOMPILE_LIMIT) -> tuple[Real, Real, Real]:
    """How many of this many steps run (by a graph for their own size, by a graph for any size, without a
    graph).

    A graph for any size serves all later steps, including those of the first shape, because the newest graph
    is tried first. Beyond the limit a shape without a graph runs eagerly; shapes that have a graph keep it.
    Both were recorded.
    """
    check.whole(0, steps=steps)
    made = graphs(shapes, dynamic, limit)
    opened = (dynamic == ON) | ((dynamic == AUTOMATIC) & (made > 1))
    before_it = np.minimum(steps, np.where(dynamic == ON, 0, 1))
    rounds = np.floor(steps / shapes)
    own = np.where(opened, before_it, rounds * made + np.minimum(steps - rounds * shapes, made))
    any_size = np.where(opened, steps - own, 0)
    return own, any_size, steps - own - any_size


def eager_share(shapes: Real, dynamic: Real, limit: Real = RECOMPILE_LIMIT) -> Real:
    """The share of the steps without a graph."""
    return kinds(shapes, shapes, dynamic, limit)[2] / shapes


# -- time ----------------------------------------------------------------------------------------------------
def total_s(
    steps: Real,
    shapes: Real,
    dynamic: Real,
    compile_s: Real,
    eager_s: Real,
    compiled_s: Real,
    any_size: Real = 1.0,
    limit: Real = RECOMPILE_LIMIT,
) -> Real:
    """Time to compile and run this many steps; ``any_size`` is the relative slowdown of a graph for any
    size."""
    check.positive(eager_s=eager_s, compiled_s=compiled_s, any_size=any_size)
    own, open_size, eager = kinds(steps, shapes, dynamic, limit)
    return (
        compiling_s(steps, shapes, dynamic, compile_s, limit)
        + own * compiled_s
        + open_size * compiled_s * any_size
        + eager * eager_s
    )


def saving_s(
    shapes: Real,
    dynamic: Real,
    eager_s: Real,
    compiled_s: Real,
    any_size: Real = 1.0,
    limit: Real = RECOMPILE_LIMIT,
) -> Real:
    """Time saved per step, on average, once everything is compiled; below 0 where compiled code is slower."""
    first, both = (
        total_s(rounds * shapes, shapes, dynamic, 0.0, eager_s, compiled_s, any_size, limit)
        for rounds in (1, 2)
    )
    return eager_s - (both - first) / shapes


def pays(
    shapes: Real,
    dynamic: Real,
    eager_s: Real,
    compiled_s: Real,
    any_size: Real = 1.0,
    limit: Real = RECOMPILE_LIMIT,
) -> Truth:
    """Whether compiling ever pays off."""
    return saving_s(shapes, dynamic, eager_s, compiled_s, any_size, limit) > 0


def break_even_steps(
    shapes: Real,
    dynamic: Real,
    compile_s: Real,
    eager_s: Real,
    compiled_s: Real,
    any_size: Real = 1.0,
    limit: Real = RECOMPILE_LIMIT,
) -> Real:
    """Compile time over the saving of an average step, rounded up to a whole step; at least the number of
    steps that it takes to compile everything.

    Within one cycle of the shapes the exact crossing differs, since its steps are not alike. Only meaningful
    where it ``pays``; otherwise it is a very large number.
    """
    saved_s = saving_s(shapes, dynamic, eager_s, compiled_s, any_size, limit)
    made = graphs(shapes, dynamic, limit)
    return np.maximum(np.ceil(made * compile_s / np.maximum(saved_s, 1e-12 * eager_s)), made)


def speed_up(
    steps: Real,
    shapes: Real,
    dynamic: Real,
    compile_s: Real,
    eager_s: Real,
    compiled_s: Real,
    any_size: Real = 1.0,
    limit: Real = RECOMPILE_LIMIT,
) -> Real:
    """Eager time over compiled time for a run of this many steps, including compilation."""
    return steps * eager_s / total_s(steps, shapes, dynamic, compile_s, eager_s, compiled_s, any_size, limit)


def compiling_s(
    steps: Real, shapes: Real, dynamic: Real, compile_s: Real, limit: Real = RECOMPILE_LIMIT
) -> Real:
    """The time spent in the compiler."""
    check.non_negative(compile_s=compile_s)
    return compiled_after(steps, shapes, dynamic, limit) * compile_s


def pace(eager_s: Real, compiled_s: Real) -> Real:
    """Eager over compiled step time: the speed-up that a run approaches if every step has its graph."""
    check.positive(eager_s=eager_s, compiled_s=compiled_s)
    return eager_s / compiled_s


# -- the cost of a graph break -------------------------------------------------------------------------------
def break_gpu_s(tensor_bytes: int, hbm_bytes_per_s: float) -> float:
    """A graph break's cost on the GPU: the tensor that crosses it is written and read again."""
    check.non_negative(tensor_bytes=tensor_bytes)
    check.positive(hbm_bytes_per_s=hbm_bytes_per_s)
    return 2 * tensor_bytes / hbm_bytes_per_s


def break_cpu_s(launches: int, launch_s: float, guards_s: float) -> float:
    """A graph break's cost on the CPU: separate kernel launches, Python code and guards."""
    check.non_negative(launches=launches, launch_s=launch_s, guards_s=guards_s)
    return launches * launch_s + guards_s


# -- measured steps ------------------------------------------------------------------------------------------
def timed_steps() -> list[SimpleNamespace]:
    """Steps without and with compilation: first published ones, then those measured for this course, as their
    names say. Those whose gradients were not cleared before each step are left out: they also added into old
    ones (measure/compiled.py, until November 2026)."""
    cited = [
        SimpleNamespace(name=step.name, on=step.on, eager_s=step.eager_s, compiled_s=step.compiled_s)
        for step in catalog.compiled_steps().values()
    ]
    measured = [
        SimpleNamespace(
            name=f"A block, {case['tokens']:,} tokens",
            on=f"{device}, measured here",
            eager_s=case["eager_s"],
            compiled_s=case["compiled_s"],
        )
        for device, found in measurements.of("compiled").items()
        for case in found.values()
        if "gradients" in case
    ]
    return cited + measured


# -- the recording -------------------------------------------------------------------------------------------
def recorded_on() -> str:
    """The release that the recording was made with, as captions show it."""
    return recordings.made_with("graph_breaks")


@cache
def example(key: str) -> dict:
    """One function of the recording, as written and as mended."""
    found = {each["key"]: each for each in recordings.load("graph_breaks")["examples"]}
    check.one_of(found, key=key)
    return found[key]


def run(key: str, version: str = "written", dynamic: str = "automatic") -> dict:
    """The twelve recorded calls of a function. A function whose arguments never change was recorded once for
    all settings of ``dynamic``."""
    runs = example(key)[version]["runs"]
    return runs.get(dynamic, runs["automatic"])


def recorded(key: str, what: str, version: str = "written", dynamic: str = "automatic", call: int = 1) -> int:
    """A count for lessons: graphs (compiled so far), ran, ops, in_graphs (of one call), checks or breaks."""
    found = run(key, version, dynamic)
    at = found["calls"][call - 1]
    counts = {
        "graphs": sum(len(each["compiled"]) for each in found["calls"][:call]),
        "ran": len(at["ran"]),
        "ops": at["ops"],
        "in_graphs": at["in_graphs"],
        "breaks": len(found["breaks"]),
        "checks": sum(found["graphs"][number]["checks"] for number in at["ran"]),
    }
    check.one_of(counts, what=what)
    return counts[what]
