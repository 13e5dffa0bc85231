"""The numbers of lesson 09, Expert parallel."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.base import units
from engine.catalog import gpu, link, model, models, modern, node, recipe
from engine.catalog.hardware import Link
from engine.catalog.models import Model
from engine.executed import executed_experts, routing, spare_experts
from engine.mechanism import compute, experts, flops, matmul, memory, shape
from engine.mechanism.experts import Copies, ExpertLayerTime, ExpertNode
from engine.step import layout
from engine.step.layout import Estimate

deepseek = model("deepseek-v3")  # DeepSeek-V3
mixtral = model("mixtral-8x7b")  # Mixtral 8x7B
h100 = gpu("h100-sxm")  # an H100
dgx = experts.ExpertNode.of(node("dgx-h100"))  # nodes of eight H100s
h800s = experts.ExpertNode.of(node("h800-8"))  # nodes of eight H800s
# what an exchange of all with all reaches on an H800's NVLink
h800_nvlink = h800s.net.box.direct_bytes_per_s[2]


def expert_layer(
    ep: int, at: ExpertNode = dgx, node_limit: int = 256, once: bool = False, fp8: bool = False
) -> ExpertLayerTime:
    """An expert layer of DeepSeek-V3 on so many ranks, 4,096 tokens on each."""
    return experts.layer(deepseek, tokens=4096, ep=ep, machine=at, node_limit=node_limit, once=once, fp8=fp8)


# the same as it was trained, on 64 H800s
as_trained = expert_layer(ep=64, at=h800s, node_limit=4, once=True, fp8=True)
# seconds of its arithmetic in a whole layer
layer_s = compute.layer(
    shape.shape(deepseek),
    tokens=4096.0,
    seq=4096.0,
    tp=1.0,
    whole_ranks=1.0,
    ep=64.0,
    expert_tp=1.0,
    imbalance=1.0,
    flash=True,
    fused=True,
    at=matmul.chip(gpu("h800"), "fp8"),
).forward_s


def eight_experts_s(imbalance: float = 1.0) -> float:
    """Seconds of a layer of Mixtral on one node."""
    return experts.total_s(
        experts.layer(
            experts.block(mixtral, experts=8, top_k=2),
            tokens=4096,
            ep=8,
            machine=dgx,
            node_limit=8,
            once=False,
            fp8=False,
            imbalance=imbalance,
        )
    )


def routed(way: int, steps: int) -> dict[str, Any]:
    """512 tokens at eight experts, after some steps of balancing."""
    return routing.route(8, 2, 0.8, 1, way, steps)


load = routed(way=0, steps=0)["load"]  # what each expert gets, without balancing
load_64 = routing.route(64, 1, 0.8, 1, 0, 0)["load"]  # the same for 64 experts, one for each token


def room(tokens: int, top_k: int, of: int) -> float:
    """Rows of room for each of so many experts, a quarter more than the mean."""
    return experts.capacity_rows(tokens, top_k, experts=of, capacity_factor=1.25)


def experts_s(rows: int) -> float:
    """Seconds of 32 experts of DeepSeek-V3 with so many rows each."""
    return experts.experts_s(rows, local=32, hidden=7168, width=2048, gated=1, at=matmul.chip(h100))


def hiding_width(wire: Link) -> float:
    """The width from which the experts hide their AllToAlls."""
    return experts.hiding_width(7 / 8, flops_per_s=h100.bf16_flops_per_s, bytes_per_s=wire.bytes_per_s)


nvlink = link("nvlink4")  # NVLink of an H100
card = link("ib-ndr")  # one card of InfiniBand NDR


def counted_copies(node_limit: int, once: bool) -> tuple[float, ...]:
    """Copies of a token, counted over 64 ranks."""
    return executed_experts.counted_copies(
        executed_experts.limited_choices(
            np.random.default_rng(1).normal(size=(4096, 256)), top_k=8, nodes=8, node_limit=node_limit
        ),
        tokens_per_rank=64,
        experts_per_rank=4,
        ranks=64,
        gpus_per_node=8,
        once=once,
    )


def copies(ep: int, node_limit: int, once: bool) -> Copies:
    """Copies of a token of DeepSeek-V3, expected."""
    return experts.copies(top_k=8, experts=256, ep=ep, per_node=8, node_limit=node_limit, once=once)


nemotron_choices = model("nemotron-3-super").top_k  # experts that a token of Nemotron 3 Super takes
all_experts = models.moe_layers(deepseek) * 256  # experts of DeepSeek-V3 in all layers
# their parameters, on each of 1,024 GPUs
experts_on_each = all_experts * models.expert_parameters(deepseek) / 1024


def v3_step(overlap: bool) -> Estimate:
    """A step of DeepSeek-V3 on 1,024 H100s."""
    return layout.estimate(
        deepseek,
        layout.machine(h100),
        layout.Job(8192, 4096, software=modern(overlaps="data+experts" if overlap else "data")),
        layout.Layout(
            1024,
            tp=2,
            pp=8,
            ep=64,
            zero=1,
            recompute="layernorm+mla_up_proj+moe_act",
            schedule="interleaved",
            interleave=4,
        ),
    )


def cut_experts(ways: int) -> Estimate:
    """A step of Mixtral 8x22B with experts cut in so many ways."""
    return layout.estimate(
        model("mixtral-8x22b"),
        layout.machine(h100),
        layout.Job(1024, 4096),
        layout.Layout(128, tp=4, pp=2, ep=8, zero=1, expert_tp=ways),
    )


# arithmetic for a trillion tokens
trillion_flops = flops.training_flops(models.active_parameters(deepseek), tokens=1e12)
design_experts = 48 * 8 * 3 * 4096 * 2048  # the design's experts, on each GPU
design_rest = 48 * 4 * 4096**2 + 48 * 3 * 4096 * 2048 + 2 * 128256 * 4096  # the design's other parameters


def active_share(of: Model) -> float:
    """The share of a model's parameters that a token uses."""
    return models.active_parameters(of) / models.parameters(of)


def dropped_share(load: Sequence[float]) -> float:
    """The choices that do not fit, with room for 160 rows at each expert."""
    return routing.dropped_share(load, capacity_rows=160)


def share_of_peak(rows: int) -> float:
    """The share of an H100's peak that 32 experts of DeepSeek-V3 reach with so many rows each."""
    return experts.share_of_peak(
        rows,
        local=32,
        hidden=7168,
        width=2048,
        gated=1,
        time_s=experts_s(rows),
        peak_flops_per_s=h100.bf16_flops_per_s,
    )


# -- what single sentences say -------------------------------------------------------------------------------
wires_8_s = experts.wires_s(expert_layer(ep=8))  # seconds on wires with the experts of a layer on eight GPUs
wires_256_s = experts.wires_s(expert_layer(ep=256))  # … on 256 GPUs
wires_32_s = experts.wires_s(expert_layer(ep=32))  # seconds on wires with the experts of a layer on 32 GPUs
# experts' training state on each of 32 GPUs
state_on_32 = experts.held_bytes(deepseek, ep=32) * recipe("bf16-adam").bytes_per_param / 2
state = memory.state_bytes(models.parameters(deepseek))  # training state of DeepSeek-V3
# H100s that it fills
h100s_for_state = memory.minimum_gpus(memory.state_bytes(models.parameters(deepseek)), h100)
first_expert_rows = np.max(routing.counted(load))  # rows of the fullest expert
# choices that do not fit into its room
dropped = routing.dropped_share(load, capacity_rows=room(tokens=512, top_k=2, of=8))
# time on wires of 256 GPUs over that of 32
wires_grow_to_256 = experts.wires_s(expert_layer(ep=256)) / experts.wires_s(expert_layer(ep=32))
# time on wires of 16 GPUs over that of eight
wires_grow_to_16 = experts.wires_s(expert_layer(ep=16)) / experts.wires_s(expert_layer(ep=8))
# state on each of 16 pipeline stages
stages_alone_state = memory.state_bytes(models.parameters(deepseek) / 16)
# wires with a message for each choice, over the layer's arithmetic
unlimited_over_layer = experts.wires_s(expert_layer(ep=64, at=h800s, node_limit=8)) / layer_s
# seconds that dispatch keeps NVLink busy
nvlink_busy_s = 4096 * 7168 * copies(ep=64, node_limit=4, once=True).link / h800_nvlink
# the MFU by the parameters that a token uses
mfu_by_active = trillion_flops / (180e3 * units.HOUR * gpu("h800").bf16_flops_per_s)
# all parameters over those that a token uses
dense_factor = models.parameters(deepseek) / models.active_parameters(deepseek)
# choices dropped with 64 experts and one choice each
dropped_of_64 = routing.dropped_share(load_64, capacity_rows=room(tokens=512, top_k=1, of=64))
# what each of 64 experts is asked for over the mean, with a skew of 0.8
liked_of_64 = spare_experts.liked(64, 0.8)
# the share of all choices that lies beyond 1.25 times the mean
beyond_room = sum(max(0.0, each - 1.25) for each in liked_of_64) / 64
# seconds in which a card sends the gradients of the design's experts among eight ranks
design_scatter_s = 7 / 8 * 2 * design_experts / link("ib-ndr").bytes_per_s
# seconds of the backward pass of 8,192 tokens at half of the peak; a token uses 5 of 64 + 1 experts
design_backward_s = (
    4 * 8192 * (48 * 5 * 3 * 4096 * 2048 + 48 * 4 * 4096**2 + 128256 * 4096) / (0.5 * h100.bf16_flops_per_s)
)
# tokens a second that the wire allows
wire_tokens_per_s = 1 / (61 * 2 * 3 * 32 * 9 * 7000 / link("nvlink5").bytes_per_s)
# seconds on wires with a message for each choice
each_choice_s = experts.wires_s(expert_layer(ep=16, node_limit=2))
# seconds on wires with one message to each node
once_a_node_s = experts.wires_s(expert_layer(ep=16, node_limit=2, once=True))
# memory of an H100 that the design leaves
left_bytes = h100.hbm_bytes - (4 + 12 / 8) * design_experts - 16 * design_rest / 64
