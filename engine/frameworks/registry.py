"""All frameworks, as the modules of this room give them."""

from __future__ import annotations

from functools import cache

from engine.base import check
from engine.base.discovery import modules_of
from engine.frameworks.framework import Framework
from engine.step.constraints import Ability, Constraints

ANY = "any"  # instead of a framework: whatever one of them can run


@cache
def frameworks() -> dict[str, Framework]:
    """Key -> framework, those first that most people use."""
    found = [one.FRAMEWORK for one in modules_of("engine.frameworks") if hasattr(one, "FRAMEWORK")]
    return {each.key: each for each in sorted(found, key=lambda each: (each.place, each.key))}


def trainers() -> dict[str, Framework]:
    """Those that train."""
    return {key: each for key, each in frameworks().items() if not each.serves}


def servers() -> dict[str, Framework]:
    """Those that serve, and that a deployment is written for."""
    return {key: each for key, each in frameworks().items() if each.serves and each.deploys}


@cache
def abilities() -> dict[str, Ability]:
    """Key -> what it can run, of each framework whose layouts the search may be held to."""
    return {each.can.key: each.can for each in frameworks().values() if each.can is not None}


def able(name: str) -> tuple[Ability, ...]:
    """What one framework can run, for ``Constraints``: by its key, or ANY; nothing for no name."""
    if not name:
        return ()
    check.one_of((*abilities(), ANY), framework=name)
    return tuple(abilities().values()) if name == ANY else (abilities()[name],)


def run_by_some() -> Constraints:
    """What is admitted wherever a page says "the planner's" without naming a framework: the planner's own
    page, the missions' answers, lesson 10. Schedules that need code of one's own, such as DualPipe, are
    not."""
    return Constraints(able(ANY))
