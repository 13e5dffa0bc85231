"""The numbers behind System ML: pure functions over floats or numpy arrays, SI units inside.

Knows no widget and no colour; what only the lessons ask is in ``engine.rules``, ``engine.puzzles`` and
``engine.exam``. The most common questions have plain names::

    import engine

    machine = engine.Machine.of("h100-sxm", precision="fp8")
    job = engine.Job(global_batch=1024, seq=8192)
    best = engine.plan("llama3-70b", machine, job, gpus=512).best
    print(best.layout, best.step_s, best.mfu())

A result prints as a short table, shows as one in a notebook, and has ``rows()`` for a data frame.

Behind these names are packages that can be used directly: ``from engine.mechanism import memory``. Each name
is loaded on first use, so that a program pays only for the parts it needs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036  in a clone; pip installs nothing there
    _too_old = "System ML needs Python 3.11 or newer; this is {}.{}.".format(*sys.version_info)
    if sys.argv[:1] == ["-m"]:  # a command is being started: a line, and no traceback
        sys.stderr.write(_too_old + "\n")
        sys.exit(2)
    raise ImportError(_too_old)

if TYPE_CHECKING:
    __version__: str
    from engine.api import (
        Adapter,
        Bill,
        Collective,
        Comparison,
        Constraints,
        Deployment,
        Deployments,
        Drafts,
        Estimate,
        Goodput,
        Gpu,
        Job,
        Layout,
        Limits,
        Link,
        Load,
        Machine,
        Model,
        Node,
        OwnRuns,
        Pictures,
        Plan,
        Recipe,
        Report,
        Served,
        Validation,
        calibrate,
        check_launch,
        collective,
        cost,
        deploy,
        estimate,
        goodput,
        gpu,
        link,
        model,
        node,
        plan,
        profile,
        recipe,
        serve,
        software,
        validate,
    )

__all__ = [
    "Adapter",
    "Bill",
    "Collective",
    "Comparison",
    "Constraints",
    "Deployment",
    "Deployments",
    "Drafts",
    "Estimate",
    "Goodput",
    "Gpu",
    "Job",
    "Layout",
    "Limits",
    "Link",
    "Load",
    "Machine",
    "Model",
    "Node",
    "OwnRuns",
    "Pictures",
    "Plan",
    "Recipe",
    "Report",
    "Served",
    "Validation",
    "calibrate",
    "check_launch",
    "collective",
    "cost",
    "deploy",
    "estimate",
    "goodput",
    "gpu",
    "link",
    "model",
    "node",
    "plan",
    "profile",
    "recipe",
    "serve",
    "software",
    "validate",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("engine.base.edition").version()
    if name in __all__:
        return getattr(import_module("engine.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
