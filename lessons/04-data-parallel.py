"""The numbers of lesson 04, Data parallel."""

from typing import Any

import numpy as np

from engine.base import units
from engine.catalog import gpu, link, model, models, node
from engine.catalog.hardware import Gpu, Link
from engine.catalog.models import Model
from engine.executed import data_parallel, executed_training
from engine.executed.data_parallel import DataParallelStep
from engine.mechanism import collectives, flops, hiding, matmul, memory, roofline, start_ups, walls

llama_8b = model("llama3-8b")  # Llama 3 8B
llama_70b = model("llama3-70b")  # Llama 3 70B
llama_1b = model("llama3.2-1b")  # Llama 3.2 1B
llama_3b = model("llama3.2-3b")  # Llama 3.2 3B
h100 = gpu("h100-sxm")  # an H100
a100 = gpu("a100-80")  # the larger A100
b200 = gpu("b200")  # a B200
cards = node("dgx-h100").outgoing_bytes_per_s  # the eight cards of a DGX node together
a100_cards = node("dgx-a100").outgoing_bytes_per_s  # the same of A100s
b200_cards = node("dgx-b200").outgoing_bytes_per_s  # the same of B200s
card = link("ib-ndr")  # one card of InfiniBand NDR
hdr = link("ib-hdr")  # one card of InfiniBand HDR
ethernet = link("eth-100")  # one card of Ethernet
parameters_1b = models.parameters(llama_1b)  # parameters of 1B
parameters_3b = models.parameters(llama_3b)  # parameters of 3B
task = executed_training.problem()  # the small network that is trained on this page


def run_s(params: int, tokens: float, gpus: int, each: Gpu) -> float:
    """Seconds of a training run at 0.4 of the peak."""
    return flops.run_time_s(
        flops.training_flops(params, tokens), gpus=gpus, peak_flops_per_s=each.bf16_flops_per_s, mfu=0.4
    )


kernels = matmul.product_flops_per_s(h100)  # the FLOP/s of an H100 while its kernels run (lesson 01)


def tokens_to_hide(
    ranks: int, wire_bytes_per_s: float, each: Gpu = h100, gradient_bytes: float = 2.0
) -> float:
    """Tokens on each GPU that hide the AllReduce."""
    return hiding.tokens_to_hide(ranks, wire_bytes_per_s, matmul.product_flops_per_s(each), gradient_bytes)


def opening_tokens_to_hide(wire_bytes_per_s: float) -> float:
    """The same for very many GPUs, as in the opening case."""
    return tokens_to_hide(ranks=10**6, wire_bytes_per_s=wire_bytes_per_s)


def gpus_at(wire_bytes_per_s: float) -> float:
    """The GPUs that a batch of four million tokens feeds in this way."""
    return data_parallel.ranks_at(batch_tokens=4e6, tokens_per_rank=opening_tokens_to_hide(wire_bytes_per_s))


def tree_alpha_s(wire: Link, ranks: int) -> float:
    """The start-up of one AllReduce step if it runs along a tree."""
    return data_parallel.tree_alpha_s(ranks, alpha_s=start_ups.hop_s(wire))


def start_ups_s(buckets: float, ranks: int, alpha_s: float = start_ups.hop_s(card)) -> float:
    """All start-ups of a step's AllReduces."""
    return data_parallel.start_ups_s(buckets, ranks, alpha_s)


deepseek = model("deepseek-v3")  # DeepSeek-V3


def backward_s(params: float, tokens: int) -> float:
    """Seconds of a backward pass on an H100."""
    return flops.backward_flops(params, tokens) / kernels


# the best bucket of Llama 3 8B on eight nodes with all their cards, where the backward pass outlasts the
# bytes
full_nodes_bucket_bytes = data_parallel.best_bucket_bytes(
    data_parallel.gradient_bytes(models.parameters(llama_8b)),
    ranks=64,
    wire_bytes_per_s=cards,
    alpha_s=start_ups.mean_hop_s(node("dgx-h100"), 64),
    backward_s=backward_s(models.parameters(llama_8b), tokens=8192),
)


def bucket_at(tokens: int) -> float:
    """The best bucket of Llama 3 8B on 256 H100s, one in each node, by the tokens on each GPU."""
    return data_parallel.best_bucket_bytes(
        data_parallel.gradient_bytes(models.parameters(llama_8b)),
        ranks=256,
        wire_bytes_per_s=card.bytes_per_s,
        alpha_s=start_ups.hop_s(card),
        backward_s=backward_s(models.parameters(llama_8b), tokens=tokens),
    )


def best_bucket_bytes(of: Model, ranks: int, wire: Link, tree: bool = False) -> float:
    """The best bucket where the backward pass and the bytes take equally long."""
    return data_parallel.best_bucket_bytes(
        data_parallel.gradient_bytes(models.parameters(of)),
        ranks,
        wire_bytes_per_s=wire.bytes_per_s,
        alpha_s=tree_alpha_s(wire, ranks) if tree else start_ups.hop_s(wire),
    )


# seconds of the opening case's AllReduce
opening_all_reduce_s = collectives.ring_all_reduce_s(
    data_parallel.gradient_bytes(70e9), ranks=10**6, bytes_per_s=100e9, alpha_s=0
)
# seconds of the AllReduce for 8B's embedding
embedding_all_reduce_s = collectives.ring_all_reduce_s(
    2 * models.embedding_parameters(llama_8b),
    ranks=256,
    bytes_per_s=card.bytes_per_s,
    alpha_s=start_ups.hop_s(card),
)
# seconds of the AllReduce in the envelope
all_reduce_1b_s = collectives.ring_all_reduce_s(
    data_parallel.gradient_bytes(parameters_1b), ranks=128, bytes_per_s=a100_cards, alpha_s=0
)
# how far the weights of four ranks end from those of one
off_by = np.max(np.abs(executed_training.train(task, ranks=4).weights - executed_training.train_alone(task)))


def ddp(
    bucket_bytes: float = data_parallel.BUCKET_BYTES, tokens: int = 16384, ranks: int = 256
) -> dict[str, Any]:
    """A step of 8B on 256 H100s, one in each node, with a card each."""
    return data_parallel.simulate_step(
        llama_8b,
        tokens=tokens,
        ranks=ranks,
        flops_per_s=kernels,
        wire_bytes_per_s=card.bytes_per_s,
        alpha_s=start_ups.hop_s(card),
        bucket_bytes=bucket_bytes,
    )


a100_hop_s = start_ups.mean_hop_s(node("dgx-a100"), 128)  # the mean start-up of a hop of its rings
late = ddp(tokens=8192)  # the same with one sequence on each GPU
# the envelope's step
ddp_1b = data_parallel.simulate_step(
    llama_1b,
    tokens=8192,
    ranks=128,
    flops_per_s=matmul.product_flops_per_s(a100),
    wire_bytes_per_s=a100_cards,
    alpha_s=a100_hop_s,
)


def ddp_3b(cards: int, tokens: int = 8192) -> dict[str, Any]:
    """The design's step, with so many cards in a node and tokens on each GPU."""
    return data_parallel.simulate_step(
        llama_3b,
        tokens=tokens,
        ranks=384,
        flops_per_s=kernels,
        wire_bytes_per_s=cards * card.bytes_per_s,
        alpha_s=tree_alpha_s(card, ranks=384),
        bucket_bytes=256 * units.MIB,
    )


def days_3b(cards: int, tokens: int = 8192) -> float:
    """Its days, with what is exposed added to each step."""
    return (
        run_s(parameters_3b, tokens=9e12, gpus=384, each=h100)
        / units.DAY
        * (
            1
            + ddp_3b(cards=cards, tokens=tokens)["exposed_s"]
            / run_s(parameters_3b, tokens=tokens, gpus=1, each=h100)
        )
    )


def accumulated(micro_batches: int) -> DataParallelStep:
    """A step of several micro-batches over Ethernet."""
    return data_parallel.step(
        8e9,
        micro_batch_tokens=2048,
        ranks=64,
        flops_per_s=kernels,
        wire_bytes_per_s=ethernet.bytes_per_s,
        alpha_s=0,
        micro_batches=micro_batches,
    )


# what the exercise's two old nodes need
old_nodes_need = tokens_to_hide(ranks=16, wire_bytes_per_s=ethernet.bytes_per_s)
break_even_tokens = 4 / 6 * opening_tokens_to_hide(100e9)  # the tokens of the first exercise


def slowest_s(ranks: int) -> float:
    """The slowest of so many ranks."""
    return data_parallel.slowest_s(ranks, mean_s=0.5, deviation_s=0.01)


# the design's least number of H100s
least_gpus = walls.gpus_past(
    walls.deadline_ratio(
        parameters_3b,
        tokens=9e12,
        gpus=1,
        peak_flops_per_s=h100.bf16_flops_per_s,
        mfu=0.4,
        deadline_s=14 * units.DAY,
    ),
    gpus=1,
)
# activations of 3B, with the logits at their worst
activations_3b = memory.activation_bytes(llama_3b, seq=8192, micro_batch=1) + memory.logits_peak_bytes(
    llama_3b, seq=8192, micro_batch=1
)

# -- what single sentences say -------------------------------------------------------------------------------
# seconds that one H100 needs for the training of Llama 3 8B
llama_8b_alone_s = run_s(models.parameters(llama_8b), tokens=15e12, gpus=1, each=h100)
# all parameters of DeepSeek-V3 over those that a token uses
experts_factor = models.parameters(deepseek) / models.active_parameters(deepseek)
# the tokens that hide the AllReduce if the GPUs ran at their peak
peak_rule_tokens = roofline.ridge_flops_per_byte(h100.bf16_flops_per_s, bytes_per_s=cards)
start_ups_512_s = start_ups_s(ddp()["buckets"], ranks=512)  # start-ups of a step's buckets on 512 GPUs
start_ups_256_s = start_ups_s(ddp()["buckets"], ranks=256)  # start-ups of a step's buckets on 256 GPUs
# tokens that hide the AllReduce of a gradient in fp32 on whole nodes
fp32_tokens_to_hide = tokens_to_hide(ranks=64, wire_bytes_per_s=cards, gradient_bytes=4)
# what a token is worth at twice the critical batch
worth_of_a_token = data_parallel.useful_share(batch=1024 * 8192, critical_batch=4e6)
# the GPUs that a batch of four million tokens feeds on whole nodes, to two digits
useful_gpus = units.round_significant(gpus_at(cards), 2)
# tokens that hide the AllReduce on the envelope's A100s
a100_tokens_to_hide = tokens_to_hide(ranks=128, wire_bytes_per_s=a100_cards, each=a100)
# start-ups of the envelope's buckets if the AllReduces run along trees
tree_start_ups_s = start_ups_s(buckets=49, ranks=128, alpha_s=tree_alpha_s(hdr, ranks=128))
# the share of the envelope's arithmetic that counts
envelope_counts = data_parallel.useful_share(batch=128 * 8192, critical_batch=4e6)
# tokens that hide the AllReduce on eight nodes of B200s
b200_tokens_to_hide = tokens_to_hide(ranks=64, wire_bytes_per_s=b200_cards, each=b200)
# the best bucket of 70B on 1,024 ranks by trees
tree_bucket_bytes = best_bucket_bytes(llama_70b, ranks=1024, wire=card, tree=True)
# tokens that hide the AllReduce in fp32 on 16,384 GPUs
fp32_on_16384_tokens = tokens_to_hide(ranks=16384, wire_bytes_per_s=cards, gradient_bytes=4)
# the same on 128 ranks with one card each
fp32_on_128_tokens = tokens_to_hide(ranks=128, wire_bytes_per_s=card.bytes_per_s, gradient_bytes=4)
# the share of the design's arithmetic that counts
design_counts = data_parallel.useful_share(batch=384 * 8192, critical_batch=4e6)
# what the design holds with a whole sequence: state, activations and the framework
design_bytes = memory.state_bytes(parameters_3b) + activations_3b + memory.FRAMEWORK_BYTES
# the same with micro-batches of half a sequence
design_halved_bytes = memory.state_bytes(parameters_3b) + activations_3b / 2 + memory.FRAMEWORK_BYTES
# activations of 3B with full recomputation
recomputed_3b = memory.activation_bytes(llama_3b, seq=8192, micro_batch=1, recompute=2)
ocean = link("eth-10")  # the wire between two sites
# seconds of an AllReduce of Llama 3 8B's gradient between two sites
ocean_all_reduce_s = collectives.ring_all_reduce_s(
    data_parallel.gradient_bytes(models.parameters(llama_8b)),
    ranks=2,
    bytes_per_s=ocean.bytes_per_s,
    alpha_s=0,
)
# seconds of a step of 8B with 8,192 tokens on each GPU
local_step_s = run_s(models.parameters(llama_8b), tokens=8192, gpus=1, each=h100)
# the share of the time that one such AllReduce in 500 steps takes
ocean_share = ocean_all_reduce_s / (ocean_all_reduce_s + 500 * local_step_s)
# bytes a second if four bits of each parameter are sent once in 500 steps
streaming_bytes_per_s = models.parameters(llama_8b) / 2 / (500 * local_step_s)
