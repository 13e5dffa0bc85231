"""The numbers of lesson 03, Interconnect."""

import numpy as np

from engine.catalog import gpu, link, model, models, node, recipe
from engine.executed import ranks, ranks_operations
from engine.executed.ranks import ExecutedRun
from engine.mechanism import (
    collectives,
    flops,
    hierarchy,
    interconnect,
    matmul,
    memory,
    numbering,
    placement,
    start_ups,
)

h100 = gpu("h100-sxm")  # an H100
peak = h100.bf16_flops_per_s  # the FLOP/s of its data sheet in bf16
nvlink = link("nvlink4")  # its NVLink
card = link("ib-ndr")  # an InfiniBand card of 400 Gb/s
cards = 2 * card.bytes_per_s  # what two of them carry
dgx = node("dgx-h100")  # a DGX H100 node
dgx_wire = dgx.outgoing_bytes_per_s  # what leaves it, bytes a second one way
nvlink5 = link("nvlink5")  # the NVLink of a B200
pyramid = hierarchy.hierarchies()["h100-sxm"]  # the eight levels of an H100 and its share of a node
small = model("llama3-8b")  # Llama 3 8B
# seconds of Llama 3 8B's backward pass over 8,192 tokens, at the rate that an H100's kernels reach
backward_s = flops.backward_flops(models.parameters(small), tokens=8192) / matmul.product_flops_per_s(h100)


def executed(algorithm: str = "ring", nearest_first: bool = True) -> ExecutedRun:
    """An executed AllReduce of 64 ranks on eight nodes."""
    return ranks_operations.all_reduce(
        ranks.example(ranks=64, cells=64), algorithm=algorithm, gpus_per_node=8, nearest_first=nearest_first
    )


def all_to_all_s(nodes: int = 8, nodes_per_leaf: int = 4, oversubscription: int = 1) -> float:
    """Seconds of an AllToAll of a gigabyte on each GPU, at least."""
    return placement.all_to_all_floor_s(
        1e9, placement.LeafNetwork(nodes, nodes_per_leaf=nodes_per_leaf, oversubscription=oversubscription)
    )


def ring_s(buffer: float, ranks: int, bytes_per_s: float, alpha_s: float = 0) -> float:
    """Seconds of a ring AllReduce, without start-ups unless said."""
    return collectives.ring_all_reduce_s(buffer, ranks=ranks, bytes_per_s=bytes_per_s, alpha_s=alpha_s)


hop_s = start_ups.hop_s  # the start-up of a hop over a wire


def mean_hop_s(ranks: int) -> float:
    """The start-up of a hop on average in a ring through DGX nodes."""
    return start_ups.mean_hop_s(dgx, ranks)


def nodes_ring_s(buffer: float, ranks: int) -> float:
    """Seconds of an AllReduce by a ring through whole nodes."""
    return start_ups.ring_through_s(buffer, ranks, dgx)


net = interconnect.wires(h100)  # the wires around an H100 as they were measured


def fitted_ring_s(buffer: float, ranks: int) -> float:
    """The same as fitted to measured collectives."""
    return interconnect.ring_s(buffer * 1.0, ranks * 1.0, per_node=8.0, net=net)


def nccl_s(buffer: float, ranks: int) -> float:
    """The same by the fastest algorithm that NCCL has."""
    return interconnect.all_reduce_s(buffer * 1.0, ranks * 1.0, per_node=8.0, net=net)


gradient = memory.weight_bytes(70e9)  # the gradient of 70B in bf16


def two_levels_s(buffer: float, ranks: int = 64) -> float:
    """Seconds of an AllReduce on two levels."""
    return collectives.two_level_all_reduce_s(
        buffer,
        ranks=ranks,
        ranks_per_node=8,
        link_bytes_per_s=nvlink.bytes_per_s,
        link_alpha_s=hop_s(nvlink),
        nic_bytes_per_s=card.bytes_per_s,
        nic_alpha_s=hop_s(card),
    )


# what each card carries of 1 GB over four nodes of four, if a ring for each card goes through all of them
a_card_of_rings = collectives.ring_link_bytes(1e9, ranks=16) / 4

small_gradient = memory.weight_bytes(models.parameters(small))  # the gradient of Llama 3 8B in bf16
buffer = 8192**2 * 2  # the buffer of the opening case


def as_rings_s(per_node: int) -> float:
    """Its 2,560 AllReduces over 8 GPUs by a ring as it runs, with so many of them in a node."""
    return 2560 * interconnect.ring_s(buffer, ranks=8, per_node=per_node, net=net)


def fastest_s(per_node: int) -> float:
    """The same by the fastest algorithm."""
    return 2560 * interconnect.all_reduce_s(buffer, ranks=8, per_node=per_node, net=net)


def step_s() -> float:
    """Seconds of the opening case's step, ranks numbered along the nodes, nothing hidden."""
    job = model("llama3-70b")
    sizes = placement.fitted_sizes(64.0, 8.0, 1.0, 1.0, job.experts)
    levels = placement.levels(sizes)
    at = numbering.groups(numbering.rank_on(np.arange(64.0), levels), levels, 8.0)
    fabric = placement.LeafNetwork(8.0, 8.0, 8.0, card.bytes_per_s, 1.0, 8.0)
    work = placement.PlacedStep(job, 64.0, 8192.0)
    return numbering.step_times_s(work, sizes, at, h100, fabric).step


# what a checkpoint of 70B holds: master copy and Adam's two means, twelve bytes a parameter
saved_bytes = memory.state_bytes(70e9, recipe("fp32-adam")) - 70e9 * recipe("fp32-adam").gradient_bytes
a_slice = saved_bytes / 64  # a rank's share of it

# -- what single sentences say -------------------------------------------------------------------------------
# seconds of a square product of as many bytes
product_s = hierarchy.square_matmul_s(payload_bytes=1e9, peak_flops_per_s=peak)
# the product behind which the network hides
network_needs_bytes = hierarchy.hidden_from_bytes(pyramid, peak_flops_per_s=peak)[6]
# seconds of an eighth of the gradient across eight nodes, through one card
an_eighth_across_s = ring_s(buffer=gradient / 8, ranks=8, bytes_per_s=card.bytes_per_s)
# the AllToAll over 128 nodes on a spine of a quarter of the ports
narrow_all_to_all_s = all_to_all_s(nodes=128, nodes_per_leaf=32, oversubscription=4)
# seconds of the small gradient's AllReduce inside the node
small_inside_s = ring_s(small_gradient, ranks=8, bytes_per_s=nvlink.bytes_per_s)
# seconds of a rail's eighth of 1 GB over 16 nodes
a_rail_s = ring_s(buffer=1e9 / 8, ranks=16, bytes_per_s=card.bytes_per_s)
# seconds of the small gradient's ring over 512 GPUs with two cards in a node
two_cards_512_s = ring_s(small_gradient, ranks=512, bytes_per_s=cards, alpha_s=mean_hop_s(512))
