"""The numbers of lesson 01, Why distributed at all?."""

import numpy as np

from engine import catalog
from engine.base import units
from engine.catalog import gpu, link, model, models, node, price, recipe
from engine.mechanism import cost, flops, hiding, matmul, memory, roofline, walls, wires

h100 = gpu("h100-sxm")  # an H100
peak = h100.bf16_flops_per_s  # the FLOP/s of its data sheet in bf16
dgx = node("dgx-h100")  # a DGX node of eight H100s
dgx_wire = dgx.outgoing_bytes_per_s  # what leaves it, bytes a second one way
card = link("ib-ndr")  # a network card of that node
at_work = matmul.chip(h100)  # an H100 at work: what its kernels reach in a long run
wires_at_work = wires.wires(h100)  # what collectives reach on its wires
cluster = catalog.cluster("dgx-h100", nodes=8)  # eight of these nodes
llama = model("llama3-70b")  # Llama 3 70B
params = models.parameters(llama)  # its parameters
deepseek = model("deepseek-v3")  # DeepSeek-V3
llama31 = model("llama3.1-70b")  # Llama 3.1 70B
small = model("llama3-8b")  # Llama 3 8B
gpt3 = model("gpt3-175b")  # GPT-3
llama_405b = model("llama3.1-405b")  # Llama 3.1 405B
# what one sequence of 8,192 tokens leaves behind, with FlashAttention
activations = memory.activation_bytes(llama, seq=8192, micro_batch=1)
# what is left of them with full recomputation
stored_inputs = memory.activation_bytes(llama, seq=8192, micro_batch=1, recompute=memory.FULL)


def rule_of_thumb(layers: int, hidden: int, seq: int, bytes_per_value: int) -> int:
    """The rules of thumb, for one sequence."""
    return memory.rule_of_thumb_activation_bytes(
        layers, hidden, seq=seq, batch=1, bytes_per_value=bytes_per_value
    )


one_layer = memory.layer_activation_bytes(llama, seq=8192, micro_batch=1)  # the activations of one layer
logits = memory.logits_peak_bytes(llama, seq=8192, micro_batch=1)  # the logits at their worst
a_64th = memory.sharded_state_bytes(params, ranks=64, stage=3)  # a 64th of the training state
run_70b = flops.training_flops(params=70e9, tokens=15e12)  # FLOPs of a run of 70B on 15 trillion tokens


def run_s(work: float, gpus: int = 1, mfu: float = 0.4) -> float:
    """Seconds that so many FLOPs take on H100s."""
    return flops.run_time_s(work, gpus=gpus, peak_flops_per_s=peak, mfu=mfu)


hours_70b = flops.gpu_hours(run_70b, peak_flops_per_s=peak, mfu=0.4)  # GPU-hours of the 70B run
# users that keep an H100's arithmetic as busy as the reading of weights
critical_batch = roofline.critical_batch(peak, h100.hbm_bytes_per_s)
a_cache = memory.kv_bytes(llama, context_tokens=8192)  # the KV cache of a user with 8,192 tokens
# tokens on each of 64 H100s from which on the AllReduce hides (lesson 04)
enough_tokens = hiding.tokens_to_hide(
    ranks=64, wire_bytes_per_s=dgx_wire, flops_per_s=matmul.product_flops_per_s(h100)
)
params_405b = models.parameters(llama_405b)  # parameters of Llama 3.1 405B
run_405b = flops.training_flops(params_405b, tokens=15.6e12)  # FLOPs of its run
hours_405b = flops.gpu_hours(run_405b, peak_flops_per_s=peak, mfu=0.41)  # its GPU-hours
run_7b = flops.training_flops(params=7e9, tokens=2e12)  # FLOPs of a run of 7B on two trillion tokens
fp32_state = memory.state_bytes(params=7e9, recipe=recipe("fp32-adam"))  # training state of 7B in fp32
beside_7b = gpu("rtx4090").hbm_bytes - memory.weight_bytes(7e9)  # what 7B in fp16 leaves on an RTX 4090


def mfu_of(work: float) -> float:
    """The MFU of 64 H100s that do so much in a second."""
    return flops.mfu(work, time_s=1, gpus=64, peak_flops_per_s=peak)


logged = flops.training_flops(models.parameters(small), tokens=620e3)  # FLOPs for the tokens in the log
# what 64 H100s do in four weeks
four_weeks = flops.flops_in_time(28 * units.DAY, gpus=64, peak_flops_per_s=peak, mfu=0.4)

# -- what single sentences say -------------------------------------------------------------------------------
# H100s that the training state of 70B fills
h100s_for_70b = memory.minimum_gpus(memory.state_bytes(70e9), h100)
# that state over the memory of one H100
state_70b_over_hbm = memory.against_hbm(memory.state_bytes(70e9), h100)
# what the rule gives for GPT-3, if the width of the model is forgotten
rule_for_gpt3_bytes = rule_of_thumb(layers=gpt3.depth, hidden=1, seq=2048, bytes_per_value=2)
# state, stored inputs, the larger of a layer and the logits, and the framework on one of 64 GPUs
on_one_of_64_bytes = a_64th + stored_inputs + max(one_layer, logits) + memory.FRAMEWORK_BYTES
# activations of two sequences in a model of 3B
activations_3b = memory.activation_bytes(models.typical(3e9), seq=8192, micro_batch=2)
# their logits at their worst
logits_3b = memory.logits_peak_bytes(models.typical(3e9), seq=8192, micro_batch=2)
# the FLOPs of attention over those of the parameters, at 8,192 tokens
attention_share = flops.attention_flops_per_token(llama, seq=8192) / (2 * params)
# seconds of the AllReduce for a gradient of 70B, on whole DGX nodes
sum_70b_s = walls.allreduce_s(params=70e9, ranks=1e6, wire_bytes_per_s=dgx_wire)
# GPU-hours on 2,048 GPUs at the lower MFU, over those on 1,024
hours_at_twice_the_gpus = 2 * run_s(run_70b, gpus=2048, mfu=0.35) / run_s(run_70b, gpus=1024)
# what the hours of the 70B run cost
dollars_70b = cost.run_dollars(hours_70b, price("h100-sxm").dollars_per_hour)
# H100s that the weights of 70B fill in bf16
h100s_for_the_weights = memory.minimum_gpus(memory.weight_bytes(70e9), h100)
# what two H100s have left for caches beside the weights
left_for_caches = 2 * memory.server_bytes(h100) - memory.weight_bytes(params)
# users of 8,192 tokens whose caches fit there
users_on_two = roofline.held_sequences(llama, context_tokens=8192, gpu=h100, gpus=2)
# FLOPs of a user's token for each byte of the cache
decode_flops_per_byte = flops.forward_flops_per_token(llama, seq=8192, causal=0) / a_cache
# FLOPs that an H100 could do while it reads a byte
ridge = roofline.ridge_flops_per_byte(peak, bytes_per_s=h100.hbm_bytes_per_s)
# the share of the peak that one user's token reaches
one_user_of_the_peak = roofline.decode_flops_per_byte(1) * h100.hbm_bytes_per_s / peak
# FLOPs for each byte in a product of a prompt of 4,096 tokens
prefill_flops_per_byte = roofline.matmul_flops_per_byte(rows=4096, inner=8192, columns=28672)
params_deepseek = models.parameters(model("deepseek-v3"))  # parameters of DeepSeek-V3
# its state over that of Llama 3.1 70B
state_over_llama = models.parameters(deepseek) / models.parameters(llama31)
# the FLOPs of its tokens over those of Llama 3.1 70B
flops_over_llama = models.active_parameters(deepseek) / models.active_parameters(llama31)
# H100s that the training state of 405B fills
h100s_for_405b = memory.minimum_gpus(memory.state_bytes(params_405b), h100)
# what the hours of its run cost
dollars_405b = cost.run_dollars(hours_405b, price("h100-sxm").dollars_per_hour)
# H100s that the training state of 13B fills
h100s_for_13b = memory.minimum_gpus(memory.state_bytes(13e9), h100)
# activations of one sequence of 4,096 tokens in Llama 2 13B
activations_13b = memory.activation_bytes(model("llama2-13b"), seq=4096, micro_batch=1)
h100s_for_7b = memory.minimum_gpus(memory.state_bytes(7e9), h100)  # H100s that the training state of 7B fills
# H100s that train 7B in a month at half of the peak
h100s_for_a_month = np.ceil(run_s(run_7b, mfu=0.5) / (30 * units.DAY))
# dollars that a well-tuned run would have saved
wasted_dollars = cost.wasted_dollars(dollars=10e6, mfu=0.35, achievable_mfu=0.5)
# what the well-tuned run would have cost
well_tuned_dollars = 10e6 - cost.wasted_dollars(dollars=10e6, mfu=0.35, achievable_mfu=0.5)
# the training state of 7B in fp32 over the memory of an A100
fp32_state_over_a100 = memory.against_hbm(fp32_state, gpu("a100-80"))
# bytes of the KV cache for a token of Llama 2 7B
cache_7b_per_token = memory.kv_bytes_per_token(model("llama2-7b"))
# tokens whose cache fits beside its weights
tokens_beside_7b = (beside_7b) / memory.kv_bytes_per_token(model("llama2-7b"))
# the HFU of the log, with full recomputation
logged_hfu = flops.hfu(8 / 6 * logged, time_s=1, gpus=64, peak_flops_per_s=peak)
# the MFU of the log with causal attention counted
mfu_with_attention = mfu_of(620e3 * flops.training_flops_per_token(small, seq=8192))
