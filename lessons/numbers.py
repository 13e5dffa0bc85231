"""The numbers of the page Numbers to know."""

import re

from engine.base import units
from engine.calibration import launch_costs
from engine.catalog import gpu, model, models, node, price, recipe
from engine.catalog.upkeep import CatalogueEntry
from engine.mechanism import collectives, flops, hiding, interconnect, memory, reliability, roofline
from engine.one_gpu import measurements, own_timings
from engine.step import layout
from engine.step.layout import Estimate

h100 = gpu("h100-sxm")  # an H100
dgx = node("dgx-h100")  # a node of eight
machine = layout.machine(h100)  # an H100 in such a node, at work in bf16
small = 16e6  # bytes of a small buffer
large = 256e6  # and of a large one


def bus(op: str, gpus: int, size: float) -> float:
    """Bus bandwidth of a collective, as nccl-tests counts it."""
    return interconnect.collective(op, "h100-sxm", machine.wires, gpus, size).bus_bandwidth


# bus bandwidth in the middle of the log of lesson 02
logged_16_mib = collectives.bus_bandwidth("all_reduce", ranks=8, buffer_bytes=2**24, time_s=123.8e-6)


def least_s(gpus: int) -> float:
    """Seconds of an AllReduce of eight bytes."""
    return interconnect.collective("all_reduce", "h100-sxm", machine.wires, gpus, 8).time_s


def checked(entry: CatalogueEntry) -> str:
    """The day on which an entry was last held against its source; "assumed" where it has none, since a usual
    machine is meant."""
    if entry.checked:
        return entry.checked
    return "assumed" if re.search("an assumption|taken as|assumed", entry.note) else "not confirmed"


gpt3 = model("gpt3-175b")  # GPT-3


def activation_bytes(recompute: int) -> float:
    """What GPT-3 keeps for the backward pass: bytes a token, layer and unit of width, with FlashAttention."""
    return memory.layer_activation_bytes(gpt3, seq=1, micro_batch=1, recompute=recompute) / gpt3.hidden


kv_bytes = memory.kv_bytes_per_token(model("llama3-70b"))  # the KV cache of one token
eager_s = launch_costs.ISSUE_S  # seconds that the CPU is said to need to issue one operator
# the same for additions and products, timed on an H100
issues_s = [
    row.issue_s for kind in ("add", "matmul") for row in own_timings.launches(kind) if row.device == "H100"
]
# a short kernel with the gap behind it, timed there: the least addition and a norm of few rows
short_s = [measurements.on("h100-sxm")["streaming"][kind][0]["burst_s"] for kind in ("add", "rms_norm")]
llama = model("llama3-70b")  # Llama 3 70B
params = models.parameters(llama)  # its parameters
kernels = machine.chip.matmul_flops_per_s  # the FLOP/s of an H100 while its kernels run
# seconds in which a gather brings one layer over the wires of 512 GPUs
layer_gather_s = 511 / 512 * memory.weight_bytes(models.layer_parameters(llama)) / dgx.outgoing_bytes_per_s
# what a sequence of 8k leaves for the backward pass, recomputed
a_sequence_bytes = memory.peak_activation_bytes(llama, seq=8192, micro_batch=1, recompute=memory.FULL)
# tokens on each of 512 GPUs that hide an AllReduce
hiding_tokens = hiding.tokens_to_hide(
    ranks=512, wire_bytes_per_s=dgx.outgoing_bytes_per_s, flops_per_s=kernels
)
days = 30  # days in which 512 GPUs are yours
# the FLOPs that they do in them at an MFU of 0.4
work = flops.flops_in_time(days * units.DAY, gpus=512, peak_flops_per_s=h100.bf16_flops_per_s, mfu=0.4)
tokens = work / (6 * params)  # the tokens that Llama 3 70B can see for that


def run(tp: int = 1, recompute: str = "full") -> Estimate:
    """A step of it on 512 H100s as the engine estimates it."""
    return layout.estimate(
        llama,
        machine,
        layout.Job(global_batch=512, seq=8192),
        layout.Layout(gpus=512, tp=tp, zero=3, recompute=recompute),
    )


def run_s(found: Estimate) -> float:
    """Seconds that the run takes at this pace."""
    return tokens / found.tokens_per_s


# seconds between two failures among 512 GPUs
between_failures_s = reliability.mean_time_between_failures_s(512)
# the best time between checkpoints, a minute each
write_s = reliability.best_interval_s(60, between_failures_s)
# the share of the time that counts, with ten minutes to come back
useful = reliability.useful_share(write_s, 60, between_failures_s, 600)
rent = price("h100-sxm")  # the price of an H100 with which all lessons count: the latest known

# -- what single sentences say -------------------------------------------------------------------------------
# FLOPs for each byte at an H100's ridge
h100_ridge = roofline.ridge_flops_per_byte(h100.bf16_flops_per_s, h100.hbm_bytes_per_s)
# bytes a parameter on disk, with moments
on_disk_bytes = recipe("fp32-adam").bytes_per_param - recipe("fp32-adam").gradient_bytes
# GPU-hours between failures of Llama 3, to two digits
hours_a_failure = units.round_significant(1 / (3600 * reliability.LLAMA3_FAILURES_PER_GPU_S), 2)
layer_bytes = memory.weight_bytes(models.layer_parameters(llama))  # weights of one layer
# seconds of its forward pass
layer_forward_s = flops.forward_flops(models.layer_parameters(llama), 8192) / kernels
plan_mfu = run().mfu_of_6pd()  # the plan's MFU by 6PD
plan_s = run_s(run())  # seconds of the plan's run
plan_mfu_attention = run().mfu()  # its MFU with attention counted
tp_4_mfu = run(tp=4, recompute="none").mfu_of_6pd()  # the MFU by 6PD with TP 4 and no recomputation
tp_4_s = run_s(run(tp=4, recompute="none"))  # seconds of that run
# tokens a second of the plan, to two digits
plan_tokens_per_s = units.round_significant(run().tokens_per_s, 2)
