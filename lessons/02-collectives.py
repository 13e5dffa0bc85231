"""The numbers of lesson 02, Collectives."""

import numpy as np

from engine.catalog import gpu, link, model, models, node
from engine.catalog.hardware import Link
from engine.executed import data_parallel, ranks, ranks_operations
from engine.executed.ranks import ExecutedRun
from engine.mechanism import collectives, flops, interconnect, matmul, memory, start_ups, walls

card = link("ib-ndr")  # an InfiniBand card of 400 Gb/s
nvlink = link("nvlink4")  # the NVLink of an H100
dgx = node("dgx-h100")  # a DGX H100 node
dgx_wire = dgx.outgoing_bytes_per_s  # what leaves a DGX H100 node, bytes a second one way
hop_s = start_ups.hop_s  # the start-up of a hop over a wire
call_s = start_ups.start_s(gpu("h100-sxm"))  # what a call of NCCL pays once, on H100s


def fitted_s(buffer: float) -> float:
    """A ring AllReduce in one node, as fitted to measured collectives."""
    return interconnect.ring_s(buffer * 1.0, ranks=8.0, per_node=8.0, net=interconnect.wires(gpu("h100-sxm")))


def nodes_ring_s(buffer: int, ranks: int) -> float:
    """Seconds of a ring through whole nodes, most of whose hops are over NVLink."""
    return start_ups.ring_through_s(buffer, ranks, dgx)


def ring_s(buffer: float, ranks: int, wire: Link = card) -> float:
    """Seconds of a ring AllReduce; each rank has one card unless said."""
    return collectives.ring_all_reduce_s(
        buffer, ranks=ranks, bytes_per_s=wire.bytes_per_s, alpha_s=start_ups.hop_s(wire)
    )


def tree_s(buffer: float, ranks: int) -> float:
    """The same by a double tree."""
    return collectives.tree_all_reduce_s(
        buffer, ranks=ranks, bytes_per_s=card.bytes_per_s, alpha_s=start_ups.hop_s(card)
    )


def crossover(ranks: int, wire: Link = card) -> float:
    """The buffer for which both take as long."""
    return collectives.ring_tree_crossover_bytes(
        ranks, bytes_per_s=wire.bytes_per_s, alpha_s=start_ups.hop_s(wire)
    )


hops_of_1024 = ring_s(buffer=0, ranks=1024)  # what a ring of 1,024 ranks takes for nothing but starts
gradient_70b = memory.weight_bytes(70e9)  # the gradient of 70B in bf16
small = model("llama3-8b")  # Llama 3 8B
params = models.parameters(small)  # the parameters of Llama 3 8B
gradient = memory.weight_bytes(params)  # its gradient in bf16
bucket = 25 * 2**20  # a bucket of PyTorch's


def fourth_chunk(after: int, rank: int) -> int:
    """The fourth chunk of a rank after so many steps of an executed ring."""
    return ranks_operations.all_reduce(ranks.example(ranks=4, cells=4)).values[after, rank, 3]


def of_eight(algorithm: str = "ring") -> ExecutedRun:
    """An executed AllReduce of eight ranks."""
    return ranks_operations.all_reduce(ranks.example(ranks=8, cells=64), algorithm=algorithm)


def of_six(algorithm: str = "ring") -> ExecutedRun:
    """The same of six."""
    return ranks_operations.all_reduce(ranks.example(ranks=6, cells=48), algorithm=algorithm)


def of_64(algorithm: str, nearest_first: bool = True) -> ExecutedRun:
    """The same of 64 ranks on eight nodes."""
    return ranks_operations.all_reduce(
        ranks.example(ranks=64, cells=64), algorithm=algorithm, gpus_per_node=8, nearest_first=nearest_first
    )


def middle(run: ExecutedRun) -> float:
    """Bytes that cross the middle of 64 ranks."""
    return np.sum(run.link_bytes[:32, 32:])


farthest_first = of_64("halving_doubling", nearest_first=False)  # the same by halving from the farthest on
neighbour_first = of_64("halving_doubling")  # the same by halving from the neighbour on


def busiest(run: ExecutedRun) -> float:
    """Bytes that the busiest rank sends."""
    return np.max(run.sent_bytes)


def bus(buffer: int, time_s: float) -> float:
    """Bus bandwidth of an AllReduce over eight GPUs."""
    return collectives.bus_bandwidth("all_reduce", ranks=8, buffer_bytes=buffer, time_s=time_s)


b200_bus = bus(buffer=2**33, time_s=17.9e-3)  # bus bandwidth of the log of eight B200s
in_one = ring_s(buffer=4e9, ranks=8, wire=nvlink)  # seconds for the exercise's buffer in one piece
in_a_thousandth = ring_s(buffer=4e6, ranks=8, wire=nvlink)  # seconds for a thousandth of it
# seconds of Llama 3 8B's backward pass over 8,192 tokens on an H100, at the rate that its kernels reach
backward_s = flops.backward_flops(params, tokens=8192) / matmul.product_flops_per_s(gpu("h100-sxm"))
# how many buckets PyTorch fills with whole tensors
calls = data_parallel.simulate_step(
    small, tokens=8192, ranks=32, flops_per_s=1e15, wire_bytes_per_s=dgx_wire, alpha_s=0, bucket_bytes=bucket
)["buckets"]

# -- what single sentences say -------------------------------------------------------------------------------
roce_hop_s = hop_s(link("roce-200"))  # the start-up of a hop over RoCE at 200 Gb/s
# the last cell of all four ranks' buffers, added up
summed_cell = np.sum(ranks.example(ranks=4, cells=4), axis=0)[3]
ring_of_eight_bytes = np.sum(of_eight().link_bytes)  # bytes that the ring of eight ranks sends in all
# the least that any algorithm sends
least_of_eight_bytes = collectives.least_total_bytes("all_reduce", ranks=8, buffer_bytes=64 * 4)
# buffers that the busiest rank of the double tree sends
tree_busiest_buffers = busiest(of_eight("double_tree")) / (64 * 4)
tree_of_eight_bytes = np.sum(of_eight("double_tree").link_bytes)  # bytes that the double tree sends in all
# what beginning with the farthest rank sends across the middle, over beginning with the neighbour
order_costs = middle(farthest_first) / middle(neighbour_first)
# the measured time of 16 MiB over the formula's
formula_too_kind_by = 123.8e-6 / (ring_s(buffer=2**24, ranks=8, wire=nvlink) + call_s)
# seconds of the AllReduce for the whole gradient, with all cards of each node
rings_together_s = walls.allreduce_s(params, ranks=32, wire_bytes_per_s=dgx_wire)
# the hops of a ring that leaves its node eight times
worst_order_hops_s = 8 * hop_s(card) + 54 * hop_s(nvlink)
a_call_s = collectives.ring_link_bytes(gradient / calls, ranks=32) / dgx_wire  # seconds of a call's bytes
# bytes that all ranks send together, at the least, to add 1 GB on eight of them
least_for_a_gb = collectives.least_total_bytes("all_reduce", ranks=8, buffer_bytes=1e9)
# how much longer it takes to send everything through one rank
by_way_of_rank_0 = (2 * 7 * 1e9) / (collectives.wire_share("all_reduce", ranks=8) * 1e9)
# a thousand calls of 4 MB over a single one of 4 GB
a_thousand_calls = 1000 * fitted_s(buffer=4e6) / fitted_s(buffer=4e9)
# the ring's time over the tree's for four bytes
tree_gains_small = ring_s(buffer=4, ranks=256) / tree_s(buffer=4, ranks=256)
# by how much the two differ for 16 GB
tree_gains_large = abs(1 - ring_s(buffer=16e9, ranks=256) / tree_s(buffer=16e9, ranks=256))
# buffers that the busiest of six ranks sends by halving and doubling
halving_of_six_buffers = busiest(of_six("halving_doubling")) / (48 * 4)
ring_of_six_buffers = busiest(of_six()) / (48 * 4)  # buffers that each of six ranks sends in a ring
halving_over_ring = busiest(of_six("halving_doubling")) / busiest(of_six())  # the first over the second
# bytes that each of 512 ranks sends for a gradient of 13B in bf16
ring_13b_bytes = collectives.ring_link_bytes(memory.weight_bytes(13e9), ranks=512)
# seconds of that AllReduce at the node's border
sum_13b_s = walls.allreduce_s(params=13e9, ranks=512, wire_bytes_per_s=dgx_wire)
hop_outside_over_inside = hop_s(card) / hop_s(nvlink)  # a hop through the network over one inside the node
