"""The numbers of lesson 08, Sequence and context parallel."""

from engine.catalog import gpu, link, model, models, modern
from engine.catalog.hardware import Link
from engine.catalog.models import Model
from engine.executed import tensor
from engine.mechanism import context_parallel, flops, interconnect, memory
from engine.step import layout
from engine.step.layout import Estimate, Layout

llama_405b = model("llama3.1-405b")  # Llama 3 405B
llama_70b = model("llama3-70b")  # Llama 3 70B
llama_8b = model("llama3-8b")  # Llama 3 8B
gpt3 = model("gpt3-175b")  # GPT-3
h100 = gpu("h100-sxm")  # an H100
nvlink = link("nvlink4")  # its NVLink
card = link("ib-ndr")  # one card of InfiniBand NDR
zigzag = context_parallel.ZIGZAG  # each rank has a block from the front and one from the back
contiguous = context_parallel.CONTIGUOUS  # each rank has one piece


def layer_bytes(seq: int, context: int = 1) -> float:
    """Activations of a layer of 405B on eight tensor ranks."""
    return memory.layer_activation_bytes(
        llama_405b, seq, micro_batch=1, tensor=8, context=context, sequence_parallel=1
    )


def stage_bytes(seq: int) -> float:
    """The same for the fullest stage of 16: eight of its 126 layers, sixteen micro-batches under way."""
    return 8 * 16 * layer_bytes(seq)


def alone_bytes(tensor: int) -> float:
    """Activations of a layer of 405B at 8,192 tokens, without sequence parallelism."""
    return memory.layer_activation_bytes(llama_405b, seq=8192, micro_batch=1, tensor=tensor)


def sharded_bytes(of: Model, seq: int, context: int = 1) -> float:
    """Activations of a model on eight tensor ranks, with sequence parallelism."""
    return memory.activation_bytes(of, seq, micro_batch=1, tensor=8, context=context, sequence_parallel=1)


# the share of GPT-3's activations that sequence parallelism saves
saved_share = 1 - sharded_bytes(gpt3, seq=2048) / memory.activation_bytes(
    gpt3, seq=2048, micro_batch=1, tensor=8
)


def layout_405b(cp: int = 1) -> Layout:
    """TP 8 and PP 16 on 16,384 GPUs."""
    return layout.Layout(gpus=16384, tp=8, pp=16, cp=cp, zero=2, schedule="interleaved", interleave=4)


# a layer's AllGathers and ReduceScatters on eight ranks, over its AllReduces
sharded_sends = (
    8
    * interconnect.all_gather_s(8192 * 8192 * 2, 8, 8, interconnect.wires(h100))
    / tensor.layer_all_reduces_s(tokens=8192, hidden=8192, ranks=8, net=interconnect.wires(h100))
)
# 405B on sequences of 8,192 tokens
short_run = layout.estimate(
    llama_405b,
    layout.machine(h100),
    layout.Job(global_batch=2048, seq=8192, software=modern(context="gather")),
    layout_405b(),
)

# optimizer and gradients of each GPU there, both shared out over the copies
shared_out_bytes = short_run.memory_bytes["optimizer"] + short_run.memory_bytes["gradients"]


def long_run(gather_context: bool = True) -> Estimate:
    """The same on sequences of 131,072 tokens, keys gathered or passed around a ring."""
    return layout.estimate(
        llama_405b,
        layout.machine(h100),
        layout.Job(
            global_batch=128, seq=131072, software=modern(context="gather" if gather_context else "ring")
        ),
        layout_405b(cp=16),
    )


def attention_share(of: Model, seq: int) -> float:
    """The share of a forward pass that is attention."""
    return flops.attention_flops_per_token(of, seq) / flops.forward_flops_per_token(of, seq)


def token_flops(seq: int) -> float:
    """Arithmetic for a token of 405B."""
    return flops.training_flops_per_token(llama_405b, seq)


def flash_flops_per_s(head_dim: int = 128) -> float:
    """What FlashAttention reaches on an H100."""
    return context_parallel.flash_flops_per_s(h100, head_dim)


def attention_s(pairs: float, heads: int) -> float:
    """Seconds of attention over so many pairs."""
    return context_parallel.attention_s(pairs, heads, head_dim=128, flops_per_s=flash_flops_per_s())


def pairs(step: int, ranks: int, block: int) -> float:
    """Pairs of a query and a key in a step of the ring."""
    return context_parallel.block_pairs(rank=0, step=step, ranks=ranks, block=block, order=zigzag)


def mean_pairs(ranks: int, block: int) -> float:
    """Their mean over ranks and steps."""
    return context_parallel.mean_pairs(ranks, block, order=zigzag)


# seconds that a step of GPT-3 computes on blocks of 4,096 tokens
step_computes_s = attention_s(pairs(step=1, ranks=8, block=4096), heads=96)


def message_s(kv_heads: int) -> float:
    """Seconds of a block of 4,096 tokens through a card."""
    return context_parallel.message_s(
        context_parallel.kv_block_bytes(4096, kv_heads, head_dim=128),
        bytes_per_s=card.bytes_per_s,
        latency_s=card.latency_s,
    )


def hidden_from(heads: int, kv_heads: int, wire: Link, head_dim: int = 128) -> float:
    """Tokens on a rank from which attention hides the ring."""
    return context_parallel.hidden_from_tokens(
        heads, kv_heads, flops_per_s=flash_flops_per_s(head_dim), bytes_per_s=wire.bytes_per_s, order=zigzag
    )


def hidden_from_with_start_up(of: Model, wire: Link) -> float:
    """The same, start-up counted."""
    return context_parallel.hidden_from_tokens_with_latency(
        of.heads,
        of.kv_heads,
        of.head_dim,
        flops_per_s=flash_flops_per_s(of.head_dim),
        bytes_per_s=wire.bytes_per_s,
        latency_s=wire.latency_s,
        order=zigzag,
    )


def ring_bytes(ranks: int, kv_heads: int, head_dim: int = 128) -> float:
    """What a rank sends around the ring in a layer."""
    return context_parallel.ring_sent_bytes(seq=131072, ranks=ranks, kv_heads=kv_heads, head_dim=head_dim)


def ulysses_bytes(heads: int, kv_heads: int, head_dim: int = 128) -> float:
    """The same for Ulysses, on eight ranks."""
    return context_parallel.ulysses_sent_bytes(
        seq=131072, ranks=8, heads=heads, kv_heads=kv_heads, head_dim=head_dim
    )


# activations of 8B for a million tokens
million = memory.activation_bytes(llama_8b, seq=2**20, micro_batch=1)
# what full recomputation keeps of them
million_recomputed = memory.activation_bytes(llama_8b, seq=2**20, micro_batch=1, recompute=memory.FULL)
# the same with the layer at work
million_peak = memory.peak_activation_bytes(llama_8b, seq=2**20, micro_batch=1, recompute=memory.FULL)


def design(tp: int, cp: int, pp: int = 1, zero: int = 3) -> Estimate:
    """70B on 64 H100s and half a million tokens."""
    return layout.estimate(
        llama_70b,
        layout.machine(h100),
        layout.Job(global_batch=8, seq=524288),
        layout.Layout(gpus=64, tp=tp, pp=pp, cp=cp, zero=zero, recompute="full"),
    )


linear_state_bytes = model("qwen3.5-397b-a17b").layers[0].attention.state_bytes  # a linear layer's state


def of_model(of: Model, wire: Link) -> float:
    """Tokens on a rank from which a model's attention hides the ring, start-ups left out."""
    return hidden_from(of.heads, of.kv_heads, wire=wire, head_dim=of.head_dim)


def ring_of(of: Model) -> float:
    """What each of eight ranks sends around the ring in a layer of a model."""
    return ring_bytes(ranks=8, kv_heads=of.kv_heads, head_dim=of.head_dim)


def ulysses_of(of: Model) -> float:
    """The same for Ulysses."""
    return ulysses_bytes(heads=of.heads, kv_heads=of.kv_heads, head_dim=of.head_dim)


def ring_over_ulysses(of: Model) -> float:
    """The first over the second."""
    return context_parallel.ring_over_ulysses(ranks=8, heads=of.heads, kv_heads=of.kv_heads)


# the share of its time for which a rank of eight works, with contiguous blocks
busy_of_eight = context_parallel.ring_busy_share(ranks=8, block=16384, order=contiguous)


# -- what single sentences say -------------------------------------------------------------------------------
# the FLOPs of a token at 131,072 over those at 8,192
arithmetic_grows = token_flops(seq=131072) / token_flops(seq=8192)
# bytes of a block with one key head
block_bytes = context_parallel.kv_block_bytes(block=8192, kv_heads=1, head_dim=128)
# seconds of a layer's attention on 16 ranks
attention_405b_s = attention_s(mean_pairs(ranks=16, block=8192), heads=16)
# what full recomputation adds to the FLOPs of 8B
recompute_adds = flops.recomputed_share(llama_8b, seq=2**20, recompute=memory.FULL)
# pairs of all ranks and steps, in stripes
striped_pairs = 3 * (pairs(step=0, ranks=3, block=4) + 2 * pairs(step=1, ranks=3, block=4))
# the share of time in which ranks work, with contiguous blocks
contiguous_busy = context_parallel.ring_busy_share(ranks=3, block=4, order=contiguous)
# seconds of a layer's attention on eight ranks
attention_of_eight_s = attention_s(mean_pairs(ranks=8, block=16384), heads=64)
state_70b = memory.state_bytes(models.parameters(llama_70b))  # training state of Llama 3 70B
state_on_64 = memory.state_bytes(models.parameters(llama_70b)) / 64  # that state on each of 64 GPUs
