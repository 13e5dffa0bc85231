"""The numbers of lesson 10, nD parallelism."""

import numpy as np

from engine import frameworks, validation
from engine.catalog import gpu, link, model, models, modern
from engine.executed import pipeline_schedules
from engine.mechanism import flops, memory, mesh, placement, wires
from engine.mechanism.placement import ByWire
from engine.rules import advice
from engine.rules.advice import AdviceVerdict
from engine.step import constraints, home, layout, search
from engine.step.layout import Estimate
from engine.step.search import Plan
from engine.validation import accuracy
from engine.validation.accuracy import AxisError

llama = model("llama3-70b")  # Llama 3 70B
llama_8b = model("llama3-8b")  # Llama 3 8B
parameters_405b = models.parameters(model("llama3.1-405b"))  # parameters of Llama 3 405B
h100 = layout.machine(gpu("h100-sxm"))  # an H100 of a DGX node
wires_at_work = wires.wires(gpu("h100-sxm"))  # what collectives reach on its wires
job = layout.Job(global_batch=512, seq=8192)  # the opening case


def alone(tp: int = 1, pp: int = 1, cp: int = 1, tools: str = "context") -> Estimate:
    """The opening case held to one split."""
    return advice.tuned(
        "llama3-70b",
        gpus=512,
        global_batch=512,
        seq=8192,
        tools=tools,
        only=advice.SequenceSplit(tp=tp, pp=pp, cp=cp),
    )


def tried(cp: int, pp: int) -> Estimate:
    """The opening case with all state sharded, in as many chunks as there can be."""
    chunks = max(advice.chunks(llama, pp))
    return layout.estimate(
        llama,
        h100,
        job,
        layout.Layout(
            gpus=512,
            cp=cp,
            pp=pp,
            zero=3,
            schedule="interleaved" if chunks > 1 else "1f1b",
            interleave=chunks,
        ),
    )


def exposed_share(cp: int, pp: int) -> float:
    """The share of that step for which gathers and gradients make it wait."""
    return tried(cp, pp).time_s["data_exposed"] / tried(cp, pp).step_s


def on_paper(tp: int = 1, pp: int = 1) -> Estimate:
    """The opening case held to one split, whether a framework can run it or not."""
    return search.plan(
        llama,
        h100,
        job,
        gpus=512,
        top=1,
        within=constraints.Constraints(
            tp=(tp, tp), pp=(pp, pp), cp=(1, 1), zero=(0,), schedules=advice.SCHEDULES
        ),
    ).best


def judged(tools: str = "context") -> AdviceVerdict:
    """What the decision tree and the search say about it, with the software of a time."""
    return advice.judged("llama3-70b", gpus=512, global_batch=512, seq=8192, tools=tools)


classic = judged(tools="3d").search  # the fastest with whole replicas


def planned(global_batch: int, gpus: int = 512) -> Plan:
    """The planner's search, among what one of the frameworks can run."""
    return search.plan(
        llama, h100, layout.Job(global_batch, seq=8192), gpus=gpus, top=1, within=frameworks.run_by_some()
    )


def twice_the_batch(gpus: int) -> Estimate:
    """The planner's layout for 1,024 sequences in a step."""
    return planned(1024, gpus).best


work = placement.PlacedStep(llama, global_batch=512, seq=8192)  # the opening case, as messages
axes = placement.sizes(gpus=512, tp=8, pp=4)  # TP 8 × PP 4 × DP 16
sent = placement.messages(work, axes)  # how often one GPU sends in a step


def inside(axis: str) -> int:
    """The place of the axis whose ranks are neighbours."""
    return placement.OfAxes._fields.index(axis)


def placed_s(innermost: str) -> placement.OfAxes:
    """The seconds of each axis in a step, with the ranks of one axis as neighbours."""
    return placement.axis_times_s(
        work, axes, innermost=inside(innermost), gpu=gpu("h100-sxm"), fabric=placement.LeafNetwork(64)
    )


def tensor_s(tp: int) -> float:
    """Seconds of the tensor AllReduces on 64 GPUs with 512 sequences."""
    return placement.axis_times_s(
        placement.PlacedStep(llama, global_batch=512, seq=8192),
        placement.sizes(gpus=64, tp=tp),
        innermost=0,
        gpu=gpu("h100-sxm"),
        fabric=placement.LeafNetwork(8),
    ).tp


work_405b = placement.PlacedStep(
    model("llama3.1-405b"), global_batch=2048, seq=8192
)  # a step of Llama 3.1 405B
axes_405b = placement.sizes(gpus=16384, tp=8, pp=16)  # the sizes of its axes


def sent_405b(innermost: str) -> placement.OfAxes:
    """What each axis sends in it over each wire."""
    return placement.wire_bytes(
        work_405b, axes_405b, innermost=inside(innermost), fabric=placement.LeafNetwork(2048)
    )


def busy_405b(wires: ByWire) -> ByWire:
    """The seconds that this takes."""
    return placement.busy_s(wires, gpu("h100-sxm"), placement.LeafNetwork(2048))


messages_405b = placement.messages(work_405b, axes_405b)  # the messages of such a step
mixtral = model("mixtral-8x22b")  # Mixtral 8x22B
mixtral_state = memory.state_bytes(models.parameters(mixtral))  # bytes of Mixtral's training state
narrow = placement.LeafNetwork(16, oversubscription=2)  # the narrow network of an exercise
mixtral_axes = placement.sizes(gpus=128, ep=8, pp=4)  # the sizes of Mixtral's axes
mixtral_work = placement.PlacedStep(mixtral, global_batch=256, seq=4096)  # a step of Mixtral there
# what each axis sends in it over each wire
mixtral_sent = placement.wire_bytes(mixtral_work, mixtral_axes, innermost=inside("ep"), fabric=narrow)


def mixtral_s(innermost: str) -> placement.OfAxes:
    """The seconds of each axis in it."""
    return placement.axis_times_s(
        mixtral_work, mixtral_axes, innermost=inside(innermost), gpu=gpu("h100-sxm"), fabric=narrow
    )


def sent_bytes(axis: int) -> float:
    """What it sends along an axis, with tensor ranks as neighbours."""
    return sum(placement.wire_bytes(work, axes, innermost=0, fabric=placement.LeafNetwork(64))[axis][:2])


def at_rank(rank: float) -> mesh.ByAxis:
    """The coordinates of a rank in TP 8 × DP 16 × PP 4."""
    return mesh.coordinates(rank, mesh.sizes(gpus=512, tp=8, pp=4))


def trusted(axis: str) -> AxisError:
    """The engine's error on published steps of dense models on Hopper GPUs."""
    return next(each for each in accuracy.by_axis() if (each.kind, each.axis) == ("hopper dense", axis))


# NVIDIA's step of Llama 3.1 70B on 512 H100s, and the engine's
measured = validation.row("dgxc_llama31_70b_2504_bf16_512")
# tree and search about the run of the envelope, with ZeRO-1 and no context ranks
meta = advice.judged("llama3.1-405b", gpus=16384, global_batch=2048, seq=8192, tools="zero1")
# tree and search about 8B on 64 H100s
small = advice.judged("llama3-8b", gpus=64, global_batch=512, seq=8192)
# the same run with TP 8
small_tp8 = advice.tuned(
    "llama3-8b",
    gpus=64,
    global_batch=512,
    seq=8192,
    tools="context",
    only=advice.SequenceSplit(tp=8, pp=1, cp=1),
)

# layouts of BLOOM's sweep, all with the same 181B model: run -> split
SWEEP = {
    "15_181B_dp24tp8pp2_mbs1": "TP 8 × PP 2, micro-batch 1",
    "16_181B_dp24tp8pp2_mbs2": "TP 8 × PP 2, micro-batch 2",
    "14_181B_dp12tp8pp4_mbs4": "TP 8 × PP 4, micro-batch 4",
    "12_181B_dp6tp8pp8_mbs4": "TP 8 × PP 8, micro-batch 4",
    "20_181B_dp16tp4pp6_mbs2": "TP 4 × PP 6, micro-batch 2",
    "18_181B_dp8tp4pp12_mbs2": "TP 4 × PP 12, micro-batch 2",
    "22_181B_dp8tp2pp24_mbs1": "TP 2 × PP 24, micro-batch 1",
}


def launched(overlaps: str = "data") -> Estimate:
    """The run that is debugged, as it was meant: TP 8 × PP 4 × DP 16, ZeRO-1, four chunks a stage."""
    return layout.estimate(
        llama,
        h100,
        layout.Job(global_batch=512, seq=8192, software=modern(overlaps=overlaps)),
        layout.Layout(gpus=512, tp=8, pp=4, zero=1, schedule="interleaved", interleave=4),
    )


good_s = launched().step_s  # its step, if nothing is wrong
exposed_part_s = launched(overlaps="").step_s - good_s  # what gradients that nothing hides add
# how much longer a pipeline takes, played, if one of its stages has a GPU at five sixths of its clock
late = (
    pipeline_schedules.by_key("interleaved", stages=4, micro_batches=32, chunks=4, last_extra=0.2)["step_s"]
    / pipeline_schedules.by_key("interleaved", stages=4, micro_batches=32, chunks=4)["step_s"]
)
# what that GPU costs the run: arithmetic and bubble grow, messages do not
late_s = (late - 1) * (launched().time_s["compute"] + launched().time_s["pipeline_bubble"])


# what tensor ranks on eight nodes add to them
order_s = placed_s(innermost="dp").tp - placed_s(innermost="tp").tp


def tensor_part_s(order: bool) -> float:
    """Seconds of tensor collectives, with ranks dealt out one by one or in blocks."""
    return launched().time_s["tensor"] + order_s * order


def bad_s(order: bool, slow: bool, exposed: bool) -> float:
    """The step with some of the three faults."""
    return good_s + order_s * order + late_s * slow + exposed_part_s * exposed


gather_bytes = 8192 * 8192 * 2  # activations of a sequence, as a tensor group gathers them
# seconds of such an AllGather over eight nodes, one rank on each, all at once
gather_outside_s = gather_bytes * 7 / 8 / wires_at_work.nic_bytes_per_s


def attention_at(seq: int) -> float:
    """The share of a forward pass that is attention."""
    return flops.attention_flops_per_token(llama, seq) / flops.forward_flops_per_token(llama, seq)


# the best layout for 64 sequences of 131,072 tokens
layout_of_long = advice.written(
    search.plan(
        llama, h100, layout.Job(64, seq=131072), gpus=512, top=1, within=frameworks.run_by_some()
    ).best.layout
)


def on_nvlink_s(axis: int) -> float:
    """Seconds that what a GPU sends along an axis takes on NVLink, at its full rate."""
    return sent_bytes(axis) / link("nvlink4").bytes_per_s


def on_a_card_s(axis: int) -> float:
    """The same through one network card."""
    return sent_bytes(axis) / link("ib-ndr").bytes_per_s


def fullest_bytes(tp: int, pp: int) -> float:
    """What the fullest of 512 GPUs holds with whole replicas."""
    return layout.estimate(llama, h100, job, layout.Layout(gpus=512, tp=tp, pp=pp, zero=0)).memory_bytes[
        "total"
    ]


def found_by(verdict: AdviceVerdict) -> str:
    """The search's layout, in words."""
    return f"{advice.written(verdict.search.layout)}, ZeRO {verdict.search.layout.zero}"


def run_in_words(verdict: AdviceVerdict) -> str:
    """The run that was asked about."""
    found = verdict.search
    gpus, batch, seq = found.layout.gpus, found.job.global_batch, found.job.seq
    return f"{found.model.name}, {gpus:,} GPUs, {batch:,} sequences of {seq:,}"


def in_words(error: AxisError) -> str:
    """An axis and its size."""
    return error.axis.replace("tp", "TP").replace("zero", "ZeRO")


# which answer tells how busy tensor parallelism keeps the links of a node
links_busy = int(np.digitize(home.loads("tp").interconnect, [0.1, 0.5]))
# which answer is nearest to the time of sixteen tensor ranks over that of eight
as_long = int(np.argmin(np.abs(np.array([0.5, 1, 2]) - tensor_s(tp=16) / tensor_s(tp=8))))


# -- what single sentences say -------------------------------------------------------------------------------
state = memory.state_bytes(models.parameters(llama))  # training state of Llama 3 70B
usable_bytes = memory.capacity_bytes(gpu("h100-sxm"))  # memory of an H100 that software can fill
# state on each GPU of the 405B run
state_405b = memory.sharded_state_bytes(params=parameters_405b / 128, ranks=128, stage=1)
# seconds of the tensor axis's traffic over NVLink
tensor_inside_s = busy_405b(sent_405b(innermost="tp").tp).link
tensor_outside_s = busy_405b(sent_405b(innermost="dp").tp).nic  # the same through a card
# seconds of the data axis's traffic through a card
data_outside_s = busy_405b(sent_405b(innermost="tp").dp).nic
state_8b = memory.state_bytes(models.parameters(llama_8b))  # training state of Llama 3 8B
# H100s that the state of Mixtral fills
h100s_for_mixtral = memory.minimum_gpus(mixtral_state, gpu("h100-sxm"))
# parameters that a GPU of the Mixtral run holds
held_params = sum(placement.held_parameters(mixtral, mixtral_axes))
evenly_bytes = memory.state_bytes(models.parameters(mixtral)) / 32  # its state divided by 32
# seconds of the opening case's arithmetic at the peak
ideal_s = on_paper(tp=64).step_s * on_paper(tp=64).mfu()
# the error of the estimate in the sweep that is the most too short
shortest = min(validation.row(f"bloom_prequel_{key}").error for key in SWEEP)
