"""Reasons for errors, put to the test: the published cases of a group, computed under another assumption.

An explanation on the page *Validation* is a call of one of these functions, so the page prints what the
assumption changes. A reason without support here is called unknown.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from engine import validation
from engine.step import layout


def mean_error(
    group: str,
    quantity: str = "step_s",
    *,
    case: str = "",
    software: dict[str, Any] | None = None,
    split: dict[str, Any] | None = None,
    **gpu: float,
) -> float:
    """Mean absolute error of a group's training runs, with other fields of the GPU, of the software or of
    the layout. ``case`` selects those whose names contain it.

    >>> mean_error("torchtitan", tdp_w=500.0, hbm_bytes_per_s=2.4e12)
    """
    return _mean_error(
        group,
        quantity,
        case,
        tuple((software or {}).items()),
        tuple((split or {}).items()),
        tuple(gpu.items()),
    )


@lru_cache(None)
def _mean_error(group, quantity, case, software, split, gpu) -> float:
    errors = []
    for each in validation.load():
        if each["group"] != group or quantity not in each["measured"] or case not in each["id"]:
            continue
        chip = replace(validation.gpu_of(each), **dict(gpu))
        at = layout.machine(chip, each.get("precision", "bf16"), **each.get("machine", {}))
        said = layout.estimate(
            validation.model_of(each),
            at,
            validation.job_of(each, **dict(software)),
            layout.Layout(**(each["layout"] | dict(split))),
        )
        found = {"step_s": said.step_s, "total_bytes": said.terms.total_bytes}[quantity]
        errors.append(abs(found / each["measured"][quantity] - 1.0))
    if not errors:
        raise ValueError(
            f"group must be one with {quantity} of training runs, got {group!r} and case {case!r}"
        )
    return sum(errors) / len(errors)


@lru_cache(None)
def mean_signed(group: str, tp: int) -> float:
    """Mean error, with sign, of the step times of a group's runs with this many tensor-parallel ranks."""
    errors = [
        row.error
        for case in validation.load()
        if case["group"] == group and case["kind"] == "step" and case["layout"].get("tp", 1) == tp
        for row in validation.rows_of(case)
        if row.quantity == "step_s"
    ]
    if not errors:
        raise ValueError(f"tp must be one that runs of {group} had, got {tp!r}")
    return sum(errors) / len(errors)


def served(quantity: str, case: str, **changed: Any) -> float:
    """The error of one served case with other fields, such as ``precision``."""
    found = {each["id"]: each for each in validation.load()}[case]
    return next(row.error for row in validation.rows_of(found | changed) if row.quantity == quantity)


@lru_cache(None)
def served_error(start: str = "", **changed: Any) -> float:
    """Mean absolute error of the served latencies that no constant was fitted to, over the cases whose id
    begins with ``start``, with other fields: ``software=None`` gives the time of the steps alone."""
    errors = [
        abs(row.error)
        for case in validation.load()
        if case["kind"] == "serving" and not case["fitted"] and case["id"].startswith(start)
        for row in validation.rows_of(case | changed)
        if row.quantity.endswith("_s") and not row.quantity.startswith("tokens")
    ]
    if not errors:
        raise ValueError(f"start must begin the id of a served latency, got {start!r}")
    return sum(errors) / len(errors)
