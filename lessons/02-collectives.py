"""The numbers of lesson 02, Collectives."""

import numpy as np

from engine.catalog import gpu, link, model, models, node
from engine.catalog.hardware import Link
from engine.executed import data_parallel, ranks, ranks_operations
from engine.executed.ranks import ExecutedRun
from engine.mechanism import collectives, flops, interconnect, matmul, memory, start_ups, walls
from engine.one_gpu import recordings

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


def of_eight() -> ExecutedRun:
    """An executed ring AllReduce of eight ranks."""
    return ranks_operations.all_reduce(ranks.example(ranks=8, cells=64))


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

hung_step = recordings.load("hung_step")  # the dumps of four processes of which one has a batch less
hung_with = hung_step["versions"]["torch"]  # the release of PyTorch that wrote them


def hung(call: int) -> dict:
    """A call of that run as rank 0's dump has it, counted from one."""
    entry = hung_step["ranks"][0]["entries"][call - 1]
    return {"input_sizes": str(entry["input_sizes"]), "called_from": entry["called_from"]}


def recorded_as(rank: int, call: int) -> str:
    """What a rank's dump says of a call."""
    said = ["done" if entry["retired"] else "waiting" for entry in hung_step["ranks"][rank]["entries"]]
    return said[call - 1] if call <= len(said) else "no entry"


def last_enqueued(rank: int) -> int:
    """The last collective that a rank has called."""
    return hung_step["ranks"][rank]["pg_status"]["last_enqueued_collective"]


# -- what single sentences say -------------------------------------------------------------------------------
# the last cell of all four ranks' buffers, added up
summed_cell = np.sum(ranks.example(ranks=4, cells=4), axis=0)[3]
ring_of_eight_bytes = np.sum(of_eight().link_bytes)  # bytes that the ring of eight ranks sends in all
# the least that any algorithm sends
least_of_eight_bytes = collectives.least_total_bytes("all_reduce", ranks=8, buffer_bytes=64 * 4)
# the measured time of 16 MiB over the formula's
formula_too_kind_by = 123.8e-6 / (ring_s(buffer=2**24, ranks=8, wire=nvlink) + call_s)
# seconds of the AllReduce for the whole gradient, with all cards of each node
rings_together_s = walls.allreduce_s(params, ranks=32, wire_bytes_per_s=dgx_wire)
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
# bytes that each of 512 ranks sends for a gradient of 13B in bf16
ring_13b_bytes = collectives.ring_link_bytes(memory.weight_bytes(13e9), ranks=512)
# seconds of that AllReduce at the node's border
sum_13b_s = walls.allreduce_s(params=13e9, ranks=512, wire_bytes_per_s=dgx_wire)
hop_outside_over_inside = hop_s(card) / hop_s(nvlink)  # a hop through the network over one inside the node
# the buffer up to which reading all others' buffers beats a double tree over the NVLink of eight: one hop and
# seven buffers against six hops and two buffers
one_shot_wins_below_bytes = (6 - 1) * hop_s(nvlink) * nvlink.bytes_per_s / (7 - 2)
# seconds of a ring of 64 ranks with a cable at half of its rate
slow_cable_s = collectives.ring_all_reduce_s(
    1e9, ranks=64, bytes_per_s=card.bytes_per_s / 2, alpha_s=hop_s(card)
)
