"""The numbers of lesson 19, CUDA Graphs and TensorRT."""

from typing import Any

from engine.calibration import launch_costs
from engine.catalog import gpu, model, models
from engine.catalog.models import Model
from engine.one_gpu import capture, measurements, own_timings, replay
from engine.serving import shape_buckets
from engine.serving.shape_buckets import Cost
from engine.step import layout

llama = model("llama3-8b")  # Llama 3 8B
llama_70b = model("llama3-70b")  # Llama 3 70B
llama_1b = model("llama3.2-1b")  # Llama 3.2 1B
llama2 = model("llama2-7b")  # Llama 2 7B
h100 = gpu("h100-sxm")  # an H100
b200 = gpu("b200")  # a B200
a100 = gpu("a100-80")  # an A100
reached = layout.machine(h100).chip  # the rates that an H100 really reaches, as in lesson 16


def weight_bytes(of: Model) -> int:
    """Weights that a token reads."""
    return 2 * (models.parameters(of) - models.embedding_parameters(of))


def read_s(of: Model, gpus: int) -> float:
    """The least seconds in which each of so many H100s reads its share of them."""
    return weight_bytes(of) / gpus / h100.hbm_bytes_per_s


token_s = capture.token_s  # seconds for one token of each user


def fused_s(tp: int) -> float:
    """A token of Llama 3 70B in a graph of fused kernels."""
    return token_s("compiled", llama_70b, h100, tp=tp, captured=1)


# the least seconds to read the weights of Llama 3.2 1B
weights_s = 2 * models.parameters(llama_1b) / h100.hbm_bytes_per_s
kernels_per_step = capture.kernels_per_step  # kernels of one token
launches = kernels_per_step("eager", layers=32)  # kernels of one token of Llama 3 8B
eager_s = token_s("eager", llama, h100)  # one token of Llama 3 8B on an H100
# the same kernels, and how long each takes
kernels = capture.kernels("eager", llama, layout.machine(h100), tp=1.0, batch=1.0, context=1024.0)


def fit(load: int, plan: int, kept: int) -> dict[str, Any]:
    """Batches around this size, and the captured sizes that they run at."""
    return shape_buckets.fit(load, 0.8, 1, plan, kept)


served = fit(load=96, plan=1, kept=8)  # the figure's batches


def graphs(lengths: int) -> Cost:
    """A graph for each batch size and each length."""
    return shape_buckets.cost(sizes=19, lengths=lengths, graph_bytes=6.4e6, graph_s=0.4)


# the same with graphs that each take more memory
larger_graphs = shape_buckets.cost(sizes=19, lengths=128, graph_bytes=25 * 2**20, graph_s=0.05)
# a tiny kernel of a graph on an H100
tiny_s = next(row for row in own_timings.graphs() if row.device == "H100" and "graph" in row.what)
# the CPU's time for a replay there
replay_s = next(row for row in own_timings.graphs() if row.device == "H100" and row.what.startswith("CPU"))
# the same kernel in a stream
least_s = next(row for row in own_timings.graphs() if row.device == "H100" and "stream" in row.what).measured
norm_s = measurements.on("h100-sxm")["streaming"]["rms_norm"][0]["burst_s"]  # a norm of few rows there


def short_s(kernel_s: float) -> tuple[float, ...]:
    """A kernel of this length with the gap behind it, in a stream and in a graph."""
    return (kernel_s + launch_costs.STREAM_GAP_S, kernel_s + launch_costs.GRAPH_GAP_S)


room_bytes = shape_buckets.room_bytes(llama, h100)  # what an H100 has left beside the weights


def in_a_layer(way: str, kind: str) -> int:
    """Kernels of a kind in one layer, as recorded."""
    return capture.counted(way)["layer_kinds"].count(kind)


def issued_s(of: Model, tp: int) -> float:
    """The CPU's time to issue an eager step."""
    return kernels_per_step("eager", layers=of.depth, tp=tp) * launch_costs.ISSUE_S


def pass_of_512_s(way: str, captured: int) -> float:
    """A forward pass of Llama 3.2 1B over 512 tokens on a B200."""
    return token_s(way, llama_1b, b200, batch=512, context=1.0, captured=captured)


def extra_rows(plan: int, kept: int) -> float:
    """Rows that padding adds to batches around 24, over those that were asked for."""
    found = fit(load=24, plan=plan, kept=kept)
    return found["padded"] / found["rows"]


def extra_time(plan: int, kept: int) -> float:
    """The time that padding adds to them, for Llama 3 8B on an H100."""
    return shape_buckets.lost("llama3-8b", "h100-sxm", fit(load=24, plan=plan, kept=kept))


# -- what single sentences say -------------------------------------------------------------------------------
# the share of a step in which the GPUs wait
gpus_wait = capture.waiting_share(capture.trial("eager", llama_70b, b200, tp=8))
# the launch of a kernel that still keeps an H100 busy
slowest_cpu_s = capture.enough_s(kernels, layers=32, gap_s=launch_costs.STREAM_GAP_S)
# tokens a second of Llama 2 on an A100, compiled and captured
llama2_tokens_per_s = 1 / token_s("compiled", llama2, a100, captured=1, context=100.0)
# the CPU's time to launch an 8B's graph
graph_launch_s = launch_costs.GRAPH_LAUNCH_S + launch_costs.NODE_LAUNCH_S * launches
# the CPU's time to launch an eager step of 70B
eager_issue_s = kernels_per_step("eager", layers=80, tp=8) * launch_costs.ISSUE_S
# the CPU's time for 1B over that of reading its weights
cpu_over_reading = kernels_per_step("eager", layers=16) * launch_costs.ISSUE_S / weights_s
# the CPU's time for the fused kernels of 1B
fused_issue_s = kernels_per_step("compiled", layers=16) * launch_costs.ISSUE_S
gpu_alone_s = capture.gpu_s(kernels, layers=32, gap_s=launch_costs.STREAM_GAP_S)  # the GPU's own time
# the step with a CPU twice as fast
faster_cpu_s = token_s("eager", llama, h100, issue_s=launch_costs.ISSUE_S / 2)
twice_the_gpus = fused_s(tp=4) / fused_s(tp=8)  # the time on four GPUs over that on eight
# what the shorter gaps of a graph save in a step
graph_gaps_s = launches * (launch_costs.STREAM_GAP_S - launch_costs.GRAPH_GAP_S)
small_in_graph_s = launch_costs.SHORTEST_S + launch_costs.GRAPH_GAP_S  # a small kernel of a graph and its gap
graph_saves_s = 16 * 32 * small_in_graph_s  # what fusing saves the GPU in a graph
# fusion where the CPU sets the pace, over fusion in a graph
fusion_worth = launch_costs.ISSUE_S / (launch_costs.SHORTEST_S + launch_costs.GRAPH_GAP_S)
# lengths of graphs that fill a tenth of the room
lengths_for_a_tenth = shape_buckets.lengths_that_fill(0.1, room_bytes, sizes=19, graph_bytes=6.4e6)
too_many = replay.replay(4, 6, 4, 1, 1)  # a graph captured with four rows, given a batch of six
