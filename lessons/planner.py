"""The numbers of the page The planner."""

from functools import cache

from engine import frameworks
from engine.catalog import gpu, model, models
from engine.exam import missions
from engine.mechanism import memory
from engine.rules import advice
from engine.step import layout, own, search
from engine.step.layout import Estimate, Machine

llama = model("llama3-70b")  # Llama 3 70B
h100 = layout.machine(gpu("h100-sxm"))  # an H100 of a DGX node
twice_as_fast = own.faster(h100, 2.0)  # the same with twice the arithmetic and nothing else faster


def best_on(at: Machine) -> Estimate:
    """The fastest layout that some framework can run of the opening state's job, on 512 of them."""
    return search.plan(
        llama, at, layout.Job(1024, 8192), gpus=512, top=1, within=frameworks.run_by_some()
    ).best


# -- what single sentences say -------------------------------------------------------------------------------


@cache
def layout_twice_as_fast() -> str:
    """The best layout on GPUs twice as fast, in words."""
    return advice.written(best_on(twice_as_fast).layout)


@cache
def layout_h100() -> str:
    """The best layout on H100s, in words."""
    return advice.written(best_on(h100).layout)


# activations of DeepSeek-V3 for a token and layer
deepseek_kept = memory.kept_per_token(model("deepseek-v3"), 4096, 1, 1, 0, 1, 1)
whole_7b = 4 * models.parameters(model("llama2-7b"))  # weights and gradients of Llama 2 7B, whole
a100_usable_bytes = memory.capacity_bytes(gpu("a100-40"))  # memory of a 40 GB A100 that software can fill
missing_bytes = missions.by_hand("fit-7b").total_bytes - a100_usable_bytes  # what the first mission lacks
