"""Every public function and class, with everything in the place of every argument that cannot be there: a
ValueError that names the argument and the value, and never another error, a NaN, or no answer at all."""

from __future__ import annotations

import contextlib
import inspect
import math

import numpy as np
import pytest

import engine
from engine.base import asked
from tests.cases import in_one_test

JOB, LAYOUT = engine.Job(global_batch=512, seq=8192), engine.Layout(gpus=64, tp=2)
LOAD, LIMITS = engine.Load(per_s=4, prompt=100), engine.Limits(ttft_s=1.0, tpot_s=0.03)
OF = {"model": "llama3-8b", "machine": "h100-sxm"}
GOOD = {
    "estimate": OF | {"job": JOB, "layout": LAYOUT},
    "plan": OF | {"job": JOB, "gpus": 8},
    "serve": OF,
    "deploy": OF | {"load": LOAD, "limits": LIMITS},
    "check_launch": {"texts": "vllm serve meta-llama/Llama-3.1-8B -tp 2"},
    "calibrate": {"texts": "tune run full_finetune_single_device --config llama3_1/8B_full", "step_s": 3.0},
    "profile": {"runs": []},
    "collective": {"op": "all_reduce", "machine": "h100-sxm", "ranks": 16, "buffer_bytes": 2**30},
    "goodput": {"gpus": 1024},
    "cost": {"gpu": "h100-sxm", "gpus": 8, "hours": 5.0, "model": "llama3-8b", "tokens": 1e9},
    "validate": {},
    "gpu": {"name": "h100-sxm"},
    "model": {"name": "llama3-8b"},
    "link": {"key": "nvlink4"},
    "node": {"key": "dgx-h100"},
    "recipe": {"key": "fp8-lm"},
    "Machine": {"gpu": "h100-sxm"},
    "Job": {"global_batch": 512, "seq": 8192},
    "Layout": {"gpus": 64},
    "Load": {"per_s": 40.0},
    "Limits": {"ttft_s": 1.0, "tpot_s": 0.03},
    "Drafts": {"drafted": 4, "accepted": 0.7, "step_s": 0.002},
    "Adapter": {},
    "Constraints": {},
    "Pictures": {"each": 4, "pixels": 1024 * 1024},
}
NO_NUMBER = [
    math.nan,
    math.inf,
    -math.inf,
    "8",
    "x",
    True,
    1e30,
    10**30,
    1e300,
    1e308,
    -1e308,
    {},
    [1, 2],
    (3,),
]
NO_NUMBER += [np.array([1.0, 2.0]), np.array(["8"]), object(), np.float32("nan"), 1j]
NO_TEXT = [math.nan, 7, True, [1, 2], np.array([1.0]), object(), b"x"]
NEVER = {int: [*NO_NUMBER, 0.5], float: NO_NUMBER, str: NO_TEXT, bool: [1, "x", math.nan, [1], {}]}


def function(name: str):
    return engine.Machine.of if name == "Machine" else getattr(engine, name)


def arguments():
    """Each function with each of its arguments, and the values that can never stand there."""
    for name, good in GOOD.items():
        assert good is not None
        hints = asked.typing.get_type_hints(function(name)) if not inspect.isclass(function(name)) else {}
        hints = hints or asked.typing.get_type_hints(engine.__getattr__(name))
        for argument in inspect.signature(function(name)).parameters:
            hint = hints.get(argument)
            kinds = set(asked.typing.get_args(hint)) | {hint}
            never = [NEVER[kind] for kind in NEVER if kind in kinds]
            if not never and hint is not None:
                never = [[math.nan, 7, True, object()]]  # of a class or a list
            for value in never[0] if never else []:
                yield name, argument, value


def test_every_public_name_is_asked():
    answers = {
        "Bill",
        "Collective",
        "Comparison",
        "Deployment",
        "Deployments",
        "Estimate",
        "Goodput",
        "OwnRuns",
        "Plan",
        "Report",
        "Served",
    }
    of_the_catalogue = {"Gpu", "Link", "Model", "Node", "Recipe", "Validation"}
    assert set(engine.__all__) - answers - of_the_catalogue - {"software"} == set(GOOD)
    for name, good in GOOD.items():
        if name != "validate":
            function(name)(**good)


@in_one_test("name, argument, value", list(arguments()))
def test_what_can_never_be_an_argument_is_refused(name, argument, value):
    with pytest.raises(ValueError, match=" got ") as refused:
        function(name)(**GOOD[name] | {argument: value})
    said = str(refused.value)
    assert argument in said, said
    assert len(said) < 1000


BELOW = [
    (name, argument)
    for name, argument, value in arguments()
    if value is NO_NUMBER[0] and argument != "overhead_share"
]


@in_one_test("name, argument", BELOW)
def test_less_than_nothing_is_refused(name, argument):
    if name == "Drafts":  # what they are worth, deploy says
        drafts = engine.Drafts(**GOOD[name] | {argument: -1})
        with pytest.raises(ValueError, match=argument):
            engine.deploy(**GOOD["deploy"], drafts=[drafts])
        return
    with pytest.raises(ValueError, match=argument):
        function(name)(**GOOD[name] | {argument: -1})


def finite(answer) -> bool:
    rows = [value for row in answer.rows() for value in (row.values() if isinstance(row, dict) else row)]
    return all(math.isfinite(value) for value in rows if isinstance(value, float))


LARGEST = {"gpus": 10**7, "ranks": 10**7, "batch": 10**12, "prompt": 10**12, "output": 10**12, "mfu": 1.0}
CLOSED = ("serve", "collective", "goodput", "cost")


@in_one_test(
    "name, argument",
    [
        (name, argument)
        for name in CLOSED
        for argument, hint in inspect.signature(function(name)).parameters.items()
    ],
)
def test_what_is_answered_is_a_number(name, argument):
    """At the largest value that is taken, alone."""
    hint = str(inspect.signature(function(name)).parameters[argument].annotation)
    if not hint.startswith(("int", "float")):
        return
    value = LARGEST.get(argument, asked.MOST.get(argument, 10**12 if hint.startswith("int") else 1e18))
    with contextlib.suppress(ValueError):  # too large for this model, say
        assert finite(function(name)(**GOOD[name] | {argument: value}))
