"""The numbers of the page Validation."""

from functools import cache
from typing import Any

from engine import validation
from engine.catalog import gpu, model, serving_software
from engine.catalog.mixers import StateSpace
from engine.one_gpu import measurements, tiling
from engine.one_gpu.tiling import Published
from engine.serving import decoding, inference
from engine.step import layout
from engine.validation import Summary, accuracy, agreement, explanations, fitted_steps, launch_cases, own_gpus
from engine.validation.accuracy import AxisError


def source(name: str) -> AxisError:
    """The training steps of one source."""
    return next(each for each in accuracy.families() if each.axis == name)


def on_axes(*axes: str) -> list[AxisError]:
    """Training steps by class and by value of these axes, where there are five or more."""
    return [
        each for each in accuracy.by_axis(fewest=5) if each.axis.startswith(axes) and ":" not in each.kind
    ]


mamba_backward = StateSpace.backward  # the backward pass of Mamba-2 over its forward pass
goals = len(accuracy.goals())  # goals in the table
goals_met = sum(each.met for each in accuracy.goals())  # goals that are met
# what the goals that are missed are about
goals_missed = "; ".join(each.what for each in accuracy.goals() if not each.met) or "none"
transformer = serving_software("faster-transformer")  # FasterTransformer
on_triton = serving_software("faster-transformer-on-triton")  # the same behind Triton
vllm = serving_software("vllm-0")  # vLLM 0.5 to 0.7
regret = accuracy.regret()[0]  # the regret over all sources
# the regret over one of them
in_fp8 = next(each for each in accuracy.regret() if each.family == "NVIDIA on H100, dense fp8")
ran = accuracy.ran()[0]  # all runs that ran
tpus = next(each for each in accuracy.ran() if each.family.startswith("tpu-v6e"))  # the runs on TPU v6e


def gb200(**changes: Any) -> float:
    """The mean error of DeepSeek-V3 on GB200 in bf16, if something were otherwise."""
    return explanations.mean_error("NVIDIA on GB200, experts", case="dsv3_bf16", **changes)


def without(group: str, **job: Any) -> float:
    """A group's mean error, if its software were another."""
    return explanations.mean_error(group, software=job)


def reached(kernel: str) -> float:
    """What share of its bandwidth a kernel reaches on an H100."""
    return own_gpus.reached("h100-sxm", kernel)


measured_on = measurements.on("h100-sxm")  # what make measure wrote on an H100


def missing_s(row: str) -> float:
    """How much longer a published run took than ours."""
    return validation.row(row).measured - validation.row(row).predicted


def falcon_in_16(row: str) -> float:
    """A first token of Falcon 180B if its products ran in bf16."""
    return explanations.served("ttft_s", row, precision="bf16")


@cache
def excess_before() -> float:
    """How much more misfit the three constants of a training step had that shipped before."""
    return fitted_steps.excess(matmul_sustained=0.845, matmul_power=0.14, memory_share=0.75)


def read_share(value_bytes: float) -> float:
    """The share of the memory's rate at which eight H100s read the caches of 179 users of 8,192 tokens."""
    return (
        179
        * decoding.user_bytes(model("llama3-70b"), context=8192, kv_value_bytes=value_bytes)
        / 8
        / inference.attention_s(
            decoding.shape(model("llama3-70b")),
            179,
            8192,
            8,
            value_bytes,
            layout.machine(gpu("h100-sxm")).chip,
        )
        / gpu("h100-sxm").hbm_bytes_per_s
    )


def pass_in_words(case: str) -> str:
    """The model, the work and the way of a published pass."""
    return {
        "gptfast_llama7b_a100_eager": "Llama 7B, a token, A100, eager",
        "gptfast_llama7b_a100_graph": "the same, compiled, as a graph",
        "mleng_llama1b_b200_compiled": "Llama 3.2 1B, 512 tokens, B200, compiled",
        "mleng_llama1b_b200_graph": "the same, as a graph",
    }[case]


def ceiling_flops_per_s(of: Published) -> float:
    """How fast tiles of 128 × 256 can compute a product on an H100."""
    tile = tiling.Tile(128, 256, 64, 3, 8)
    return tiling.flops_per_s(of.m, of.n, of.k, tile=tile, at=tiling.chip("h100-sxm"))


def largest_allowed(of: Summary) -> float | None:
    """The largest error that a group of runs may have, where one is set."""
    return validation.TARGETS.get((of.group, of.quantity), (0, None))[1]


# -- what single sentences say -------------------------------------------------------------------------------
timed_steps = sum(each.runs for each in accuracy.families())  # timed training steps
not_asked = sum(accuracy.left_out().values())  # runs that could not be asked


@cache
def answers_right() -> float:
    """Answers of yes or no that are right."""
    return sum(row.error == 0 for row in agreement.answers())


# the rate of a norm and a copy, mixed one to four
norm_mixture = 1 / (0.2 / reached("rms_norm") + 0.8 / reached("copy"))


@cache
def launches_right() -> float:
    """Launches judged rightly."""
    return sum(each.right for each in launch_cases.held())


@cache
def torchtitan_library() -> float:
    """The mean error of torchtitan if its kernels were a library's."""
    return explanations.mean_error("torchtitan", software={"kernels": "library"})


# the error of a served batch with no software's time
vllm_without = explanations.served_error("vllm072_8b_a100-80_w4_10240", software=None)
# how far the throughputs lie apart
throughput_span = agreement.span("throughput, TensorRT-LLM 0.6", "tokens_per_s_per_gpu")


@cache
def ttft_predicted_s() -> float:
    """Our first token of Llama 2 7B at a prompt of 128."""
    return validation.row("trtllm06_ttft_h100_llama-2-7b_128").predicted


@cache
def fp8_without_overlap() -> float:
    """The mean error of dense fp8 runs if tensor parallelism did not overlap."""
    return explanations.mean_error("NVIDIA on H100, dense fp8", software={"overlaps": "data"})


# the mean error of AllReduces below 64 MB on eight H100s
small_sums_error = agreement.group_error("AllReduce below 64 MB", case="8xh100")
questions = len(agreement.answers())  # questions of yes or no
launches = len(launch_cases.held())  # launches judged
of_strangers = launch_cases.tally_of_strangers()  # launches of strangers, counted
