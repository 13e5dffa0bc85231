"""The rules of lesson 18, held against a simulation of the CPU's and the GPU's lane, and against steps that
are counted one by one."""

from __future__ import annotations

from types import SimpleNamespace

from engine import catalog
from engine.calibration import launch_costs
from engine.one_gpu import compilation, dispatch, guards
from engine.rules.held import HeldRule

GPUS = tuple(catalog.gpu(key) for key in ("a100-80", "h100-sxm", "b200"))
CHAINS = 32  # in one step, one after the other
LAYERS, KERNELS, GUARDS_S = 32, 13, 30e-6
PAYING = tuple(step for step in catalog.compiled_steps().values() if step.compiled_s < step.eager_s)
DTYPE = "bfloat16"


# -- what fusion saves ---------------------------------------------------------------------------------------
def chain_s(gpu: catalog.Gpu, operations: int, tensor_bytes: float) -> float:
    """The rule's time of one chain: max(2·k·S/W, k·τ)."""
    return operations * max(2 * tensor_bytes / gpu.hbm_bytes_per_s, launch_costs.ISSUE_S)


def chain_in_a_queue_s(gpu: catalog.Gpu, operations: int, tensor_bytes: float) -> float:
    """The time of one chain in a step of CHAINS chains that is simulated launch by launch."""
    kernel_s = 2 * tensor_bytes / gpu.hbm_bytes_per_s
    run = dispatch.run(CHAINS * operations, launch_costs.ISSUE_S, kernel_s, 0, dispatch.QUEUE)
    return float(run["total_s"]) / CHAINS


# -- the price of a break ------------------------------------------------------------------------------------
def broken_step_s(kernel_s: float, tensor_bytes: int) -> float:
    """The rule's time of a step with a graph break in each layer, each of which adds one launch:
    max(τ_GPU + b·2S/W, τ_CPU + b·(n·τ_issue + τ_guards))."""
    crossing_s = compilation.break_gpu_s(tensor_bytes, GPUS[1].hbm_bytes_per_s)
    gpu_s = LAYERS * (KERNELS * kernel_s + crossing_s)
    cpu_s = LAYERS * (
        KERNELS * launch_costs.ISSUE_S + compilation.break_cpu_s(1, launch_costs.ISSUE_S, GUARDS_S)
    )
    return max(gpu_s, cpu_s)


def broken_in_a_queue_s(kernel_s: float, tensor_bytes: int) -> float:
    """The time of the step of ``broken_step_s``, simulated launch by launch: a kernel starts once it has been
    launched and the kernel before it has ended."""
    crossing_s = compilation.break_gpu_s(tensor_bytes, GPUS[1].hbm_bytes_per_s)
    layer = [(launch_costs.ISSUE_S, kernel_s)] * KERNELS + [(launch_costs.ISSUE_S + GUARDS_S, crossing_s)]
    issued_s, ended_s = 0.0, 0.0
    for issue_s, runs_s in layer * LAYERS:
        issued_s += issue_s
        ended_s = max(issued_s, ended_s) + runs_s
    return ended_s


# -- break-even ----------------------------------------------------------------------------------------------
def even_step(times: SimpleNamespace, shapes: int, dynamic: int, compile_s: float) -> float:
    """The rule's number of steps until compiling has paid for itself: g·τ_compile/(τ_eager − τ̄)."""
    made = int(compilation.graphs(shapes, dynamic))
    left_eager = shapes - made if dynamic == compilation.OFF else 0
    mean_s = ((shapes - left_eager) * times.compiled_s + left_eager * times.eager_s) / shapes
    return made * compile_s / (times.eager_s - mean_s)


def first_step_ahead(times: SimpleNamespace, shapes: int, dynamic: int, compile_s: float) -> int:
    """The step from which on a run with torch.compile is ahead, found by looking up its calls one by one."""
    graphs: list = []
    compiled: list[int] = []
    lost_s, step, behind = 0.0, 0, 0
    while step - behind <= shapes:  # until the run has been ahead for a whole round of the shapes
        call = (DTYPE, 2 + step % shapes)
        step += 1
        found, made = looked_up(call, graphs, compiled, dynamic)
        lost_s += made * compile_s - (0.0 if found is None else times.eager_s - times.compiled_s)
        behind = step if lost_s > 0 else behind
    return behind + 1


def looked_up(call: tuple[str, int], graphs: list, compiled: list[int], dynamic: int) -> tuple:
    """The graph that runs this call, or None if it runs eagerly; and whether the call compiled a graph."""
    if dynamic == compilation.AUTOMATIC:
        found, _, made, _ = guards.call_graph(call, graphs, compiled, compilation.RECOMPILE_LIMIT)
        return found, made
    made = call not in graphs and len(graphs) < compilation.RECOMPILE_LIMIT
    if made:
        graphs.append(call)
    return (graphs.index(call) if call in graphs else None), made


RULES = (
    HeldRule(
        "18-torch-compile",
        "rule-what-fusion-saves",
        chain_s,
        chain_in_a_queue_s,
        {"gpu": GPUS, "operations": (1, 2, 5, 16), "tensor_bytes": (1e5, 1e6, 2e7, 1e8, 1e9)},
        f"{CHAINS} chains in a row, of 1 to 16 operations on tensors of 0.1 MB to 1 GB, A100 to B200",
        "a CPU and a GPU, run launch by launch",
        0.04,
        because="What is left out is the first launch or the last kernel of a step.",
    ),
    HeldRule(
        "18-torch-compile",
        "rule-the-price-of-a-break",
        broken_step_s,
        broken_in_a_queue_s,
        {"kernel_s": (3e-6, 8e-6, 12e-6, 15e-6, 20e-6, 60e-6), "tensor_bytes": (8192, 10**6, 2**24, 2**26)},
        f"{LAYERS} layers of {KERNELS} kernels of 3 to 60 µs, a break in each with 8 kB to 67 MB across it, "
        "on an H100",
        "a CPU and a GPU, run launch by launch",
        0.01,
    ),
    HeldRule(
        "18-torch-compile",
        "rule-break-even",
        even_step,
        first_step_ahead,
        {
            "times": PAYING,
            "shapes": (1, 4, 8, 12),
            "dynamic": (compilation.OFF, compilation.AUTOMATIC),
            "compile_s": (5.0, 22.0),
        },
        "the published steps that gain, 1 to 12 shapes and compilations of 5 s and 22 s",
        "steps counted one by one",
        0.03,
    ),
)
