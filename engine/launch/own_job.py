"""A training job as one framework runs it, so that what is planned for it is what its files start."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from engine import catalog
from engine.catalog.recipes import Recipe
from engine.catalog.software import DEFAULT, switches, without_matrices
from engine.frameworks.registry import frameworks, trainers
from engine.step.constraints import Ability
from engine.step.layout import recipe_of
from engine.step.training_job import Job

IN_16_BITS = ("bf16", "fp8")  # formats of products whose state is that of training in 16 bits


def own_job(name: str, job: Job, precision: str) -> Job:
    """The job with the program and the recipe that a framework's files come to (Megatron-LM's ``--bf16`` sums
    gradients in fp32). A program or a recipe that the job names stays, and so does each switch in which its
    software differs from what is usual. Without a framework, or with any of them, nothing changes."""
    one = frameworks().get(name)  # none of that name where any may be meant
    if one is None or not one.program:
        return job
    by, usual = job.software, catalog.modern()
    if by.key == DEFAULT:
        said = {
            field: getattr(by, field) for field in switches() if getattr(by, field) != getattr(usual, field)
        }
        own = one.switches | (one.switches_in_fp8 if precision == "fp8" else {})
        by = catalog.training_software(one.program, **(own | said))
    recipe = job.recipe
    if recipe is None and precision in IN_16_BITS:
        recipe = catalog.recipe(one.recipe_key)
    return replace(job, software=by, recipe=recipe)


class Counted(NamedTuple):
    """What is counted for each number that a page gives a framework (``constraints.AxisLimits``): 0 is none,
    and one more than there are stands for any of them."""

    jobs: tuple[Job, ...]  # that differ in what a step costs
    places: tuple[tuple[float, ...], ...]  # of each number's job among them, by IN_16_BITS
    recipes: tuple[Recipe, ...]  # of each number
    names: tuple[str, ...]  # … and what its program is called


def counted(able: tuple[Ability, ...]) -> Counted:
    """What is counted for these frameworks, by recipes without whole matrices."""
    keys = ["", *(next(key for key, one in trainers().items() if one.can is each) for each in able), ""]
    jobs: list[Job] = []
    places = []
    for key in keys:
        own = [own_job(key, Job(1, 1), precision) for precision in IN_16_BITS]
        alike = [replace(job, recipe=None, software=without_matrices(job.software)) for job in own]
        jobs += [job for job in dict.fromkeys(alike) if job not in jobs]
        places.append(tuple(float(jobs.index(job)) for job in alike))
    usual = [own_job(key, Job(1, 1), IN_16_BITS[0]) for key in keys]
    return Counted(
        tuple(jobs),
        tuple(places),
        tuple(recipe_of(job) for job in usual),
        tuple(job.software.name for job in usual),
    )
