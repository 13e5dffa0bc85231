"""A training job as one framework runs it, so that what is planned for it is what its files start."""

from __future__ import annotations

from dataclasses import replace

from engine import catalog
from engine.catalog.software import DEFAULT, switches
from engine.frameworks.registry import frameworks
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
