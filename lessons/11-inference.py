"""The numbers of lesson 11, Inference."""

import numpy as np

from engine.calibration.known import OPERAND_BYTES
from engine.catalog import gpu, model, models, price
from engine.catalog.hardware import Gpu
from engine.mechanism import flops, memory, roofline
from engine.one_gpu import capture
from engine.serving import decoding, inference, wide
from engine.serving.decoding import DecodeSeconds, FullReplica
from engine.serving.hosted import Hosted
from engine.step import layout

llama = model("llama3-70b")  # Llama 3 70B
small = model("llama3-8b")  # Llama 3 8B
deepseek = model("deepseek-v3")  # DeepSeek-V3
h100 = layout.machine(gpu("h100-sxm"))  # an H100 of a DGX node
on_h100 = Hosted(llama, gpu("h100-sxm"))  # Llama 3 70B on eight of them, in bf16 unless said


h200 = layout.machine(gpu("h200"))  # an H200 of such a node
h200_fp8 = layout.machine(gpu("h200"), "fp8")  # the same with products in fp8
in_groups = model("qwen3-235b-a22b")  # Qwen3 235B, whose layers all attend to every token
linear = model("qwen3.5-397b-a17b")  # Qwen3.5 397B, with linear attention in three layers of four
indexed = model("deepseek-v3.2")  # DeepSeek-V3.2, whose attention reads what an indexer picks


def kept(of: models.Model, context: float = 131072) -> float:
    """The cache and the states of one user."""
    return decoding.user_bytes(of, context=context)


def attends(of: models.Model, context: float = 131072) -> float:
    """Attention's arithmetic for one more token after this many."""
    return flops.next_token_attention_flops(of, context)


states = linear.state_bytes_per_sequence  # of one user of Qwen3.5, whatever the context
saves_from = decoding.saves_from(linear, in_groups)  # from this context on it keeps less than Qwen3 235B
on_l40s = Hosted(small, gpu("l40s"))  # Llama 3 8B on L40S
params = models.parameters(llama)  # parameters of Llama 3 70B
peak = 8 * gpu("h100-sxm").bf16_flops_per_s  # the arithmetic of eight H100s


a_token = on_h100.token  # a step, which brings each user a token
room_for = on_h100.room  # the room that the weights leave to users, and what each takes
reading = on_h100.prompt  # reading one prompt
# a replica where the next prompt follows every answer that ends; with values of one byte products are in fp8
kept_full = on_h100.kept_full
full_step = a_token(users=179, context=8192)  # such a step for as many users of 8k as fit


def a_small_token(users: int, tp: int) -> DecodeSeconds:
    """The same for Llama 3 8B, with 1,024 tokens a user."""
    return Hosted(small, gpu("h100-sxm")).token(users, 1024, tp=tp)


# its weights and one user of 1,024 tokens, read at the bandwidth of the data sheet
small_bytes_s = (
    memory.weight_bytes(models.parameters(small)) + decoding.user_bytes(small, context=1024)
) / gpu("h100-sxm").hbm_bytes_per_s


def an_l40s_token(users: int, stored_bytes: float = 2.0) -> DecodeSeconds:
    """Llama 3 8B on one L40S, with 4,096 tokens a user."""
    return on_l40s.token(users, 4096, tp=1, kv_value_bytes=stored_bytes, weight_bytes=stored_bytes)


def l40s_share(users: int, stored_bytes: float = 2.0) -> float:
    """The share of its arithmetic that this uses."""
    at_peak = on_l40s.gpu.peak_flops_per_s("fp8" if stored_bytes == 1 else "bf16")
    return 2 * models.parameters(small) * users / an_l40s_token(users, stored_bytes).total_s / at_peak


def l40s_users(stored_bytes: float = 2.0) -> float:
    """Users of 4,096 tokens that fit there."""
    return on_l40s.room(4096, tp=1, kv_value_bytes=stored_bytes, weight_bytes=stored_bytes).users


def a_deepseek_token(users: int) -> DecodeSeconds:
    """DeepSeek-V3 on 16 H200s, weights and products in fp8, with 4,096 tokens a user."""
    return decoding.split(deepseek, h200_fp8, tp=16, batch=users, context=4096, weight_bytes=1.0)


def a_spread_token(gpus: int, users: int) -> float:
    """The same with the experts spread over so many GPUs, each with so many users of its own."""
    return wide.decode_s(deepseek, h200_fp8, tp=1, dp=gpus, batch=users, context=4096)


def shared_by_weights(tp: int) -> float:
    """Of the memory that weights and caches share, what the weights take."""
    return room_for(context=32768, tp=tp).weights_bytes / memory.server_bytes(gpu("h100-sxm"))


cache_8k = decoding.user_bytes(llama, context=8192)  # a cache of 8,192 tokens
# all of its bytes, read at the bandwidth of the data sheet
sheet_s = (2 * params + 179 * cache_8k) / 8 / gpu("h100-sxm").hbm_bytes_per_s


def brings(users: float, kv_value_bytes: float = 2.0, weight_bytes: float = 2.0) -> float:
    """Tokens per second and GPU, from eight H100s with so many users of 8k."""
    return decoding.tokens_per_s_per_gpu(
        users,
        step_s=a_token(
            users=users, context=8192, kv_value_bytes=kv_value_bytes, weight_bytes=weight_bytes
        ).total_s,
        tp=8,
    )


def most_per_gpu(tp: int, prompt: float, output: float, stored_bytes: float) -> float:
    """Tokens per second and GPU with as many users as bring most."""
    return np.max(
        kept_full(
            users=np.geomspace(1, 2048, 60), prompt=prompt, output=output, tp=tp, stored_bytes=stored_bytes
        ).tokens_per_s_per_gpu
    )


def dollars(served: FullReplica) -> float:
    """Dollars for a million tokens."""
    return decoding.dollars_per_million(
        price_per_hour=price("h100-sxm").dollars_per_hour, tokens_per_s_per_gpu=served.tokens_per_s_per_gpu
    )


def short_name(of: Gpu) -> str:
    """A GPU's name without its form and its memory."""
    return of.name.replace(" SXM", "").replace(" 80 GB", "")


def users_of(context: int, weights: float, cache: float) -> float:
    """Users of such a context on eight H100s, by the bytes of a stored weight and of a cached value."""
    return room_for(context=context, kv_value_bytes=cache, weight_bytes=weights).users


def one_user_s(weights: float, cache: float) -> float:
    """A token for a single user of 8k, by the same bytes."""
    return a_token(users=1, context=8192, kv_value_bytes=cache, weight_bytes=weights).total_s


def brings_when_full(weights: float, cache: float) -> float:
    """Tokens per second and GPU with as many users of 8k as fit, by the same bytes."""
    return brings(users_of(8192, weights, cache), kv_value_bytes=cache, weight_bytes=weights)


# tokens written in the time of reading a prompt of 2,000
tokens_in_a_prompt = round(reading(prompt=2000).total_s / a_token(users=1, context=2000).total_s)
# the critical batch of an H100 by its data sheet
critical_users = gpu("h100-sxm").bf16_flops_per_s / gpu("h100-sxm").hbm_bytes_per_s
# users for whom an H20's arithmetic takes as long as an H100's reading
h20_ahead_users = round(gpu("h20").bf16_flops_per_s / gpu("h100-sxm").hbm_bytes_per_s)
# an AllReduce of eight users' tokens on eight H100s, as a ring
ring_reduce_s = decoding.reduce_s(8 * 8192 * 2.0, tp=8, choice=1, net=h100.wires)
one_shot_reduce_s = decoding.reduce_s(8 * 8192 * 2.0, tp=8, choice=4, net=h100.wires)  # the same in one hop
# a token whose kernels the CPU launches one by one
eager_token_s = capture.token_s("eager", llama, gpu("h100-sxm"), tp=8)
# memory that weights in fp8 free on each GPU
freed_by_fp8 = room_for(8192).weights_bytes - room_for(8192, weight_bytes=1.0).weights_bytes
# the share of a GPU that the weights fill at TP 2
weights_at_tp_2 = room_for(context=8192, tp=2).weights_bytes / gpu("h100-sxm").hbm_bytes
# the share of a GPU that the weights fill at TP 4
weights_at_tp_4 = room_for(context=8192, tp=4).weights_bytes / gpu("h100-sxm").hbm_bytes
# the critical batch of 256 experts of which a token uses eight
experts_critical_users = gpu("h200").bf16_flops_per_s / gpu("h200").hbm_bytes_per_s * 256 / 8
# its tokens a second from each GPU
deepseek_per_gpu = decoding.tokens_per_s_per_gpu(256, a_deepseek_token(users=256).total_s, tp=16)
# attention's share in reading 131,072 tokens
attention_of_prefill = reading(prompt=131072).attention_s / reading(prompt=131072).total_s
# the share of the data sheet's rate that is taken for reading caches alone
fastest_read = h100.chip.decode.memory_bytes_per_s / gpu("h100-sxm").hbm_bytes_per_s
# tokens a second and GPU by the rule, at the data sheet's rate
rule_brings = gpu("h100-sxm").hbm_bytes_per_s / (2 * params / 179 + cache_8k)
# the same of a full node, with the prefills
full_brings = kept_full(users=179, prompt=6144, output=2048).tokens_per_s_per_gpu
# dollars of a million tokens on a full node
full_dollars = dollars(kept_full(users=179, prompt=6144, output=2048))
# dollars of a million tokens with one user on the node
alone_dollars = dollars(kept_full(users=1, prompt=6144, output=2048))
# the critical batch of an L40S
l40s_critical = roofline.critical_batch(gpu("l40s").bf16_flops_per_s, gpu("l40s").hbm_bytes_per_s)
# users that fit with weights and cache in fp8
both_fp8_users = room_for(context=32768, tp=4, kv_value_bytes=1.0, weight_bytes=1.0).users
# a token for sixteen users on eight GPUs over the same on four
eight_over_four = a_token(users=16, context=4096).total_s / a_token(users=16, context=4096, tp=4).total_s
# users of 8k with the weights in fp8, and with the caches in fp8
users_in_fp8 = [users_of(8192, weights=1.0, cache=2.0), users_of(8192, weights=2.0, cache=1.0)]
latent_intensity = attends(deepseek) / kept(deepseek)  # attention's FLOPs for each byte of a latent cache
indexed_over_all = kept(indexed) / kept(deepseek)  # a user's cache with an indexer over that without
# the share of their arithmetic that eight GPUs use for one user of 4,096 tokens
used_by_one = 2 * params / a_token(users=1, context=4096).total_s / peak
NVFP4_BYTES = OPERAND_BYTES["nvfp4"]  # bytes of a weight in NVFP4, its scale included
# such a full step with the cache in fp8
narrow_step = a_token(users=179, context=8192, kv_value_bytes=1.0)
# a step for twenty users of 131,072 tokens, with the cache in fp8
lawyers_step = a_token(users=20, context=131072, kv_value_bytes=1.0)


def attention_s(users: int, context: int, value_bytes: float) -> float:
    """Seconds of a step on eight H100s in which attention reads the caches."""
    size = decoding.shape(llama)
    return inference.attention_s(size, users, context, tp=8, value_bytes=value_bytes, at=h100.chip)


def read_share(value_bytes: float) -> float:
    """The share of the memory's rate at which eight H100s read the caches of 179 users of 8,192 tokens."""
    cached = 179 * decoding.user_bytes(llama, context=8192, kv_value_bytes=value_bytes)
    return cached / 8 / attention_s(179, 8192, value_bytes) / gpu("h100-sxm").hbm_bytes_per_s
