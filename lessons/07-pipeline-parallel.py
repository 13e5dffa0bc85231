"""The numbers of lesson 07, Pipeline parallel."""

from typing import Any

import numpy as np

from engine.base import units
from engine.base.types import Real
from engine.catalog import gpu, link, model, models, modern
from engine.catalog.models import Model
from engine.executed import pipeline_schedules
from engine.executed.placed_by_hand import by_level, published_orders
from engine.mechanism import memory, pipeline, placement
from engine.step import layout
from engine.step.layout import Estimate

llama_405b = model("llama3.1-405b")  # Llama 3 405B
llama_70b = model("llama3-70b")  # Llama 3 70B
llama_8b = model("llama3-8b")  # Llama 3 8B
qwen = model("qwen2.5-7b")  # Qwen2.5 7B
h100 = gpu("h100-sxm")  # an H100
parameters_405b = models.parameters(llama_405b)  # parameters of 405B
work = placement.PlacedStep(llama_405b, global_batch=2048, seq=8192)  # a step of 405B, as messages
axes = placement.sizes(gpus=16384, tp=8, pp=16)  # TP 8 × PP 16 × DP 128
# what one GPU sends in that step
sent = placement.wire_bytes(work, axes, innermost=0, fabric=placement.LeafNetwork(2048))
stage_bytes = placement.messages(work, axes).stage_bytes  # one message between two stages


def run_405b(gpus: int = 16384, schedule: str = "interleaved", interleave: int = 4) -> Estimate:
    """The run of 405B with TP 8 and PP 16."""
    return layout.estimate(
        llama_405b,
        layout.machine(h100),
        layout.Job(global_batch=2048, seq=8192, software=modern(context="gather")),
        layout.Layout(gpus=gpus, tp=8, pp=16, zero=2, schedule=schedule, interleave=interleave),
    )


def rate(gpus: int) -> float:
    """What a GPU of that run achieves."""
    return run_405b(gpus=gpus).model_flops_per_gpu_per_s()


def busy(m: int) -> float:
    """Share of a step that a stage of that run works, by its number of micro-batches."""
    return 1 - pipeline.bubble_share(stages=16, micro_batches=m, chunks=4, key="interleaved")


# activations of one sequence of 405B on eight tensor ranks
stage_activation_bytes = memory.activation_bytes(
    llama_405b, seq=8192, micro_batch=1, tensor=8, sequence_parallel=1
)
played = pipeline_schedules.by_key  # a schedule played unit by unit
F = 0.02  # seconds of a forward on one stage; B is twice that, and W half of B


def of_four(key: str, m: int = 8, last_extra: float = 0.0) -> dict[str, Any]:
    """Four stages under a schedule, played."""
    return played(key, stages=4, micro_batches=m, forward_s=F, input_s=F, weight_s=F, last_extra=last_extra)


# seconds of 1F1B's step if the last of its four stages runs one forward more before its first backward
one_more_s = by_level("1f1b", [*published_orders("1f1b")[:3], "00" + "10" * 6 + "11"])["total_s"]
times_as_long = one_more_s / of_four("1f1b")["step_s"]  # as 1F1B's


def of_sixteen(key: str, chunks: int = 1, message_s: float = 0.0) -> dict[str, Any]:
    """16 stages and 64 micro-batches under a schedule, played."""
    return played(
        key,
        stages=16,
        micro_batches=64,
        chunks=chunks,
        forward_s=F,
        input_s=F,
        weight_s=F,
        message_s=message_s,
    )


def unit_step_s(key: str, chunks: int = 1, message_s: float = 0.0) -> float:
    """Seconds of that step."""
    return of_sixteen(key, chunks=chunks, message_s=message_s)["step_s"]


def in_chunks(v: int, message_s: float) -> float:
    """The same under 1F1B in v chunks."""
    return unit_step_s("interleaved" if v > 1 else "1f1b", chunks=v, message_s=message_s)


def by_formula(key: str, chunks: int) -> float:
    """Its bubble by the closed form."""
    return pipeline.bubble_share(stages=16, micro_batches=64, chunks=chunks, key=key)


def over_1f1b(key: str) -> Real:
    """The step of a schedule over that of 1F1B, with 8 stages and 16 micro-batches."""
    return (
        played(key, stages=8, micro_batches=16)["step_s"]
        / played("1f1b", stages=8, micro_batches=16)["step_s"]
    )


def micro_batches_for(key: str, stages: int = 8, chunks: int = 1) -> float:
    """micro-batches for a bubble of a twentieth of the step, by schedule."""
    return pipeline.micro_batches_for(
        share=0.05,
        stages=stages,
        chunks=chunks,
        forward_s=1.0,
        backward_s=2.0,
        weight_gradient_s=1.0,
        plan=pipeline.schedule(key),
    )


def output_layers(of: Model) -> float:
    """The output layer, counted in layers."""
    return models.head_parameters(of) / models.layer_parameters(of)


def on_slow_cards(pp: int, schedule: str = "1f1b", interleave: int = 1) -> Estimate:
    """70B on 128 H100s with one slow card a node."""
    return layout.estimate(
        llama_70b,
        layout.machine(h100, nic_bytes_per_s=12.5e9 / 8),
        layout.Job(global_batch=256, seq=4096),
        layout.Layout(gpus=128, tp=8, pp=pp, zero=1, schedule=schedule, interleave=interleave),
    )


# the same in eight stages of two chunks
in_eight_stages = on_slow_cards(pp=8, schedule="interleaved", interleave=2)


def named(key: str, chunks: int) -> str:
    """A schedule's name, with its chunks where one may choose them."""
    return pipeline.schedule(key).name + (f", v = {chunks}" if chunks > 2 else "")


def idle_played(key: str, chunks: int) -> str:
    """The idle share of that step, in words."""
    return units.human(of_sixteen(key, chunks=chunks)["bubble"], "percent")


def idle_by_formula(key: str, chunks: int) -> str:
    """The same by the closed form."""
    return units.human(by_formula(key, chunks=chunks), "percent")


def held_most(key: str, chunks: int) -> float:
    """Micro-batches whose activations the fullest of its stages holds."""
    return float(np.nanmax(of_sixteen(key, chunks=chunks)["held"]))


# -- what single sentences say -------------------------------------------------------------------------------
# the forward of a stage of 405B, by the planner's estimate
stage_forward_s = (run_405b().time_s["compute"] + run_405b().time_s["tensor"]) / 16 / 3
# what messages of a millisecond add to GPipe's step
gpipe_grows_s = unit_step_s("gpipe", message_s=0.001) - unit_step_s("gpipe")
# what they add to the step of 1F1B
one_f_one_b_grows_s = unit_step_s("1f1b", message_s=0.001) - unit_step_s("1f1b")
# what is idle if ZB-H2 updates within the step
idle_in_step = played("zb-h2", stages=8, micro_batches=32, in_step=1)["bubble"]
# the bubble with four chunks and 16 micro-batches
interleaved_bubble = pipeline.bubble_share(stages=16, micro_batches=16, chunks=4, key="interleaved")
# the run of 405B as the timeline plays it, with messages that nothing hides
with_messages = played(
    "interleaved",
    stages=16,
    micro_batches=16,
    chunks=4,
    forward_s=stage_forward_s,
    input_s=stage_forward_s,
    weight_s=stage_forward_s,
    message_s=stage_bytes / link("ib-ndr").bytes_per_s,
)
# seconds of the weight gradients of a stage: ZB-H1 waits for 15 (F + B - 2W)
stage_weight_s = (
    3 * stage_forward_s - run_405b(schedule="zb-h1", interleave=1).time_s["pipeline_bubble"] / 15
) / 2
# their share of a backward pass
weight_share = stage_weight_s / (2 * stage_forward_s)


def zb_idle(key: str) -> float:
    """What is idle in the run of 405B under a zero-bubble schedule with its 16 micro-batches."""
    return float(
        played(
            key,
            stages=16,
            micro_batches=16,
            forward_s=stage_forward_s,
            input_s=2 * stage_forward_s - stage_weight_s,
            weight_s=stage_weight_s,
        )["bubble"]
    )


# the bubble's share in the estimate of 405B
bubble_405b = run_405b().time_s["pipeline_bubble"] / run_405b().step_s
rate_405b = run_405b().model_flops_per_gpu_per_s()  # the model's FLOP/s of each GPU
# the bubble with 32 micro-batches
half_the_gpus_bubble = pipeline.bubble_share(stages=16, micro_batches=32, chunks=4, key="interleaved")
# the model's FLOP/s of each of 8,192 GPUs
half_the_gpus_rate = run_405b(gpus=8192).model_flops_per_gpu_per_s()
rate_lost = 1 - rate(16384) / rate(8192)  # the rate lost from 8,192 to 16,384 GPUs
bubble_lost = 1 - busy(16) / busy(32)  # what the longer bubble alone loses of it
