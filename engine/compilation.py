"""When torch.compile pays: compile time against what a step saves, for inputs whose shapes differ.

Steps come in turn with each of the shapes. What a compiled step gains is an input (measured or cited), not a model.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np

from engine import catalog, check, measurements, recordings

AUTOMATIC, OFF, ON = 0, 1, 2            # torch.compile's dynamic=None, False and True
RECOMPILE_LIMIT = 8                     # torch._dynamo.config.recompile_limit; engine/recordings/graph_breaks.json has it


# -- how often it compiles ------------------------------------------------------------------------------------------
def graphs(shapes, dynamic, limit=RECOMPILE_LIMIT):
    """How many graphs are compiled in all.

    One for each shape when ``dynamic`` is off, up to the limit. Automatically: one for the first shape, and at the
    second one that leaves the size open. Always open: one. Leaves out the sizes 0 and 1, which always get their own.
    Source: PyTorch 2.13, torch.compile's ``dynamic`` and ``recompile_limit``; executed in record/graph_breaks.py.
    """
    check.whole(shapes=shapes, limit=limit)
    check.one_of((AUTOMATIC, OFF, ON), dynamic=dynamic)
    return np.minimum(np.minimum(shapes, limit), np.where(dynamic == OFF, limit, np.where(dynamic == ON, 1, 2)))


def compiled_after(steps, shapes, dynamic, limit=RECOMPILE_LIMIT):
    """How many of them after so many steps: each new shape comes once before the first comes again."""
    check.whole(0, steps=steps)
    return np.minimum(steps, graphs(shapes, dynamic, limit))


# -- who runs what ---------------------------------------------------------------------------------------------------
def kinds(steps, shapes, dynamic, limit=RECOMPILE_LIMIT):
    """(steps by a graph for their own size, by one for any size, without any) out of so many steps.

    As soon as there is a graph for any size it serves all steps, those of the first shape as well: the newest graph is
    tried first. Beyond the limit a shape that has no graph runs eagerly; those that have one keep it. Both recorded.
    """
    check.whole(0, steps=steps)
    made = graphs(shapes, dynamic, limit)
    opened = (dynamic == ON) | ((dynamic == AUTOMATIC) & (made > 1))
    before_it = np.minimum(steps, np.where(dynamic == ON, 0, 1))
    rounds = np.floor(steps / shapes)
    own = np.where(opened, before_it, rounds * made + np.minimum(steps - rounds * shapes, made))
    any_size = np.where(opened, steps - own, 0)
    return own, any_size, steps - own - any_size


def eager_share(shapes, dynamic, limit=RECOMPILE_LIMIT):
    """The share of the steps that no graph serves."""
    return kinds(shapes, shapes, dynamic, limit)[2] / shapes


# -- time ------------------------------------------------------------------------------------------------------------
def total_s(steps, shapes, dynamic, compile_s, eager_s, compiled_s, any_size=1.0, limit=RECOMPILE_LIMIT):
    """Compiling and running so many steps; ``any_size`` is how much longer a step of the open graph takes."""
    check.positive(eager_s=eager_s, compiled_s=compiled_s, any_size=any_size)
    own, open_size, eager = kinds(steps, shapes, dynamic, limit)
    return (compiling_s(steps, shapes, dynamic, compile_s, limit)
            + own * compiled_s + open_size * compiled_s * any_size + eager * eager_s)


def saving_s(shapes, dynamic, eager_s, compiled_s, any_size=1.0, limit=RECOMPILE_LIMIT):
    """What a step saves on average once everything is compiled; below 0 where compiled code is slower."""
    first, both = (total_s(rounds * shapes, shapes, dynamic, 0.0, eager_s, compiled_s, any_size, limit)
                   for rounds in (1, 2))
    return eager_s - (both - first) / shapes


def pays(shapes, dynamic, eager_s, compiled_s, any_size=1.0, limit=RECOMPILE_LIMIT):
    """Whether it ever comes out ahead."""
    return saving_s(shapes, dynamic, eager_s, compiled_s, any_size, limit) > 0


def break_even_steps(shapes, dynamic, compile_s, eager_s, compiled_s, any_size=1.0, limit=RECOMPILE_LIMIT):
    """Compile time over the saving of an average step, the next whole step; at least as many as it takes to compile.

    Within one round of the shapes the exact crossing differs, since the steps of a round are not alike. Only
    meaningful where it ``pays``; elsewhere it is a very large number.
    """
    saved_s = saving_s(shapes, dynamic, eager_s, compiled_s, any_size, limit)
    made = graphs(shapes, dynamic, limit)
    return np.maximum(np.ceil(made * compile_s / np.maximum(saved_s, 1e-12 * eager_s)), made)


def speed_up(steps, shapes, dynamic, compile_s, eager_s, compiled_s, any_size=1.0, limit=RECOMPILE_LIMIT):
    """Eager time over compiled time for a run of so many steps, compiling included."""
    return steps * eager_s / total_s(steps, shapes, dynamic, compile_s, eager_s, compiled_s, any_size, limit)


def compiling_s(steps, shapes, dynamic, compile_s, limit=RECOMPILE_LIMIT):
    """The time that goes into the compiler."""
    check.non_negative(compile_s=compile_s)
    return compiled_after(steps, shapes, dynamic, limit) * compile_s


def pace(eager_s, compiled_s):
    """How many compiled steps fit into an eager one: the speed-up that a run tends to if every step has its graph."""
    check.positive(eager_s=eager_s, compiled_s=compiled_s)
    return eager_s / compiled_s


# -- what a break costs ----------------------------------------------------------------------------------------------
def break_gpu_s(tensor_bytes, hbm_bytes_per_s):
    """What a graph break gives the GPU to do: the tensor that crosses it is written and read again."""
    check.non_negative(tensor_bytes=tensor_bytes)
    check.positive(hbm_bytes_per_s=hbm_bytes_per_s)
    return 2 * tensor_bytes / hbm_bytes_per_s


def break_cpu_s(launches, launch_s, guards_s):
    """What it gives the CPU to do: kernels launched apart, Python run and guards checked."""
    check.non_negative(launches=launches, launch_s=launch_s, guards_s=guards_s)
    return launches * launch_s + guards_s


def step_s(gpu_s, cpu_s):
    """A step takes the longer of the two: the CPU works ahead of the GPU, so the shorter one hides behind it.

    Leaves out waits: where the CPU reads a value, the two no longer overlap.
    """
    check.non_negative(gpu_s=gpu_s, cpu_s=cpu_s)
    return np.maximum(gpu_s, cpu_s)


# -- what was timed --------------------------------------------------------------------------------------------------
def timed_steps() -> list[SimpleNamespace]:
    """Steps without and with compilation: as published, then as measured by this course, which their names say."""
    cited = [SimpleNamespace(name=step.name, on=step.on, eager_s=step.eager_s, compiled_s=step.compiled_s)
             for step in catalog.compiled_steps().values()]
    measured = [SimpleNamespace(name=f"A block, {case['tokens']:,} tokens", on=f"{device}, measured here",
                                eager_s=case["eager_s"], compiled_s=case["compiled_s"])
                for device, found in measurements.of("compiled").items() for case in found.values()]
    return cited + measured


# -- what was recorded ------------------------------------------------------------------------------------------------
def recorded_on() -> str:
    """The release that the recording ran on, as captions say it."""
    return recordings.made_with("graph_breaks")


@cache
def example(key: str) -> dict:
    """One function of the recording, as written and as mended."""
    found = {each["key"]: each for each in recordings.load("graph_breaks")["examples"]}
    check.one_of(found, key=key)
    return found[key]


def captured(in_graphs, ops):
    """The share of a call's operations that run in graphs."""
    return in_graphs / ops


def run(key: str, version: str = "written", dynamic: str = "automatic") -> dict:
    """Its twelve calls; a function whose arguments never change was recorded once for all settings of ``dynamic``."""
    runs = example(key)[version]["runs"]
    return runs.get(dynamic, runs["automatic"])


def recorded(key: str, what: str, version: str = "written", dynamic: str = "automatic", call: int = 1):
    """A count for lessons: graphs (compiled so far), ran, ops, in_graphs (of one call), checks or breaks."""
    found = run(key, version, dynamic)
    at = found["calls"][call - 1]
    counts = {"graphs": sum(len(each["compiled"]) for each in found["calls"][:call]), "ran": len(at["ran"]),
              "ops": at["ops"], "in_graphs": at["in_graphs"], "breaks": len(found["breaks"]),
              "checks": sum(found["graphs"][number]["checks"] for number in at["ran"])}
    check.one_of(counts, what=what)
    return counts[what]
