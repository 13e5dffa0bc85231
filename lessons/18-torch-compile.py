"""The numbers of lesson 18, torch.compile."""

from typing import Any

from engine import catalog
from engine.calibration import launch_costs
from engine.catalog import gpu, model, models
from engine.executed import flash_attention
from engine.mechanism import fusion, matmul
from engine.one_gpu import capture, compilation, recordings

b200_1b = catalog.compiled_steps()["llama3.2-1b-b200"]  # a published training step of Llama 3.2 1B on a B200
# the two times of 1B, with which the figure opens
training = dict(eager_s=b200_1b.eager_s, compiled_s=b200_1b.compiled_s)
scoring = dict(eager_s=0.0081, compiled_s=0.0034)  # the forward pass of 1B alone
b200_8b = catalog.compiled_steps()["llama3.1-8b-b200"]  # a published training step of Llama 3.1 8B
torchtitan = dict(eager_s=2 * 8192 / 5762, compiled_s=2 * 8192 / 6667)  # a step of 8B on eight H100s


def ahead(
    times: dict[str, float], shapes: int = 1, dynamic: int = compilation.OFF, compile_s: int = 22, **more: Any
) -> float:
    """The step from which on compiling has paid, with dynamic shapes off unless said."""
    return compilation.break_even_steps(shapes=shapes, dynamic=dynamic, compile_s=compile_s, **times, **more)


def ahead_s(times: dict[str, float], compile_s: int = 22) -> float:
    """Seconds until then, with one shape."""
    return compilation.total_s(
        ahead(times, compile_s=compile_s), shapes=1, dynamic=compilation.OFF, compile_s=compile_s, **times
    )


def speed_up(
    steps: float, shapes: int, dynamic: int = compilation.OFF, compile_s: int = 22, **more: Any
) -> float:
    """The speed-up of this training over so many steps."""
    return compilation.speed_up(
        steps=steps, shapes=shapes, dynamic=dynamic, compile_s=compile_s, **training, **more
    )


# what an average step of 40 shapes saves
saved_s = compilation.saving_s(shapes=40, dynamic=compilation.OFF, **scoring)


recorded = compilation.recorded  # a count of what was recorded of the functions on this page


h100 = gpu("h100-sxm")  # an H100
reached = matmul.chip(h100)  # the rates that an H100 really reaches
one_pass_s = matmul.stream_s(2 * 4096 * 8192 * 2, reached)  # a tensor of 4096 × 8192, read and written once
# what a break costs the CPU
break_cpu_s = compilation.break_cpu_s(launches=1, launch_s=launch_costs.ISSUE_S, guards_s=30e-6)
# what it costs the GPU
break_gpu_s = compilation.break_gpu_s(
    tensor_bytes=4096 * 8192 * 2, hbm_bytes_per_s=reached.memory_bytes_per_s
)
params = models.parameters(model("llama3-8b"))  # the parameters of Llama 3 8B
prefill_s = 2 * params * 8192 / h100.bf16_flops_per_s  # a prefill of 8,192 tokens, at best
# a decode step of 16 users, compiled (lesson 19)
decode_s = capture.token_s("compiled", model("llama3-8b"), h100, batch=16)
# what the CPU takes to launch its kernels
decode_issue_s = capture.kernels_per_step("compiled", layers=32) * launch_costs.ISSUE_S
on_b200 = matmul.chip(gpu("b200"))  # the rates that a B200 really reaches
# seconds between a layer's products, apart and fused, as lesson 16 counts them
between_s = [
    matmul.stream_s(moved, on_b200) for moved in fusion.between_products_bytes(model("llama3-8b"), 8192)
]
# an eager layer of 8B, as in lesson 16
layer_s = (
    2 * 8192 * models.layer_parameters(model("llama3-8b")) / on_b200.matmul_flops_per_s
    + flash_attention.tiled_arithmetic_s(seq=8192, head_dim=128, heads=32, at=on_b200)
    + between_s[0]
)
fusible = (between_s[0] - between_s[1]) / layer_s  # what fusing saves of it


def with_20_shapes(steps: float, dynamic: int, compile_s: int = 22) -> float:
    """The same with 20 shapes, if kernels for any size take a twentieth longer."""
    return speed_up(steps, shapes=20, dynamic=dynamic, compile_s=compile_s, any_size=1.05)


# -- what single sentences say -------------------------------------------------------------------------------
# the name that Inductor gave its kernel
inductor_name = recordings.load("inductor_triton")["kernel"][0].split()[1].partition("(")[0]
# compilations that many modules may have together
limit_together = recordings.load("graph_breaks")["accumulated_recompile_limit"]
# the step at which 12 shapes have paid with automatic dynamic shapes
twelve_shapes_pay = ahead(training, shapes=12, dynamic=compilation.AUTOMATIC, any_size=1.05)
# the speed-up over a million steps with automatic dynamic shapes
dynamic_speed_up = speed_up(steps=1e6, shapes=32, dynamic=compilation.AUTOMATIC, any_size=1.05)
# the step at which compiling has paid with a warm cache
warm_pays = ahead(training, shapes=20, dynamic=compilation.ON, compile_s=5, any_size=1.05)
# the same where the cache misses
cold_pays = ahead(training, shapes=20, dynamic=compilation.ON, any_size=1.05)
helper_graphs = recorded("helper", "ran")  # graphs that a call of the function with a helper runs
