"""Performance recipes of Megatron-Bridge by name, as facts: NVIDIA-NeMo/Megatron-Bridge
src/megatron/bridge/perf_recipes at commit 067f987d (August 2026), those that say all of their layout and what
they recompute, which is nothing: Qwen3's.

A line each: model, the rest of the name, tensor, pipeline, context and virtual pipeline ranks, expert and
expert tensor ranks (0 where the recipe has none), micro-batch, global batch, length, and marks.
"""

from __future__ import annotations

from typing import NamedTuple

SEQUENCE, FSDP, WHOLE_GRAPH, AWARE = "s", "m", "g", "a"
LINES = """
qwen3_235b_a22b 256gpu_b200_bf16 1 8 1 4 8 0 1 8192 4096 -
qwen3_235b_a22b 256gpu_b200_fp8cs 1 8 1 0 8 0 1 8192 4096 -
qwen3_235b_a22b 256gpu_b200_fp8mx 1 8 1 3 8 0 1 8192 4096 g
qwen3_235b_a22b 256gpu_b200_fp8mx_large_scale 1 8 1 3 8 0 1 512 4096 g
qwen3_235b_a22b 256gpu_b200_nvfp4 1 8 1 0 8 0 1 8192 4096 -
qwen3_235b_a22b 256gpu_b300_bf16 1 8 1 0 8 0 2 8192 4096 -
qwen3_235b_a22b 256gpu_b300_fp8cs 1 8 1 0 8 0 2 8192 4096 -
qwen3_235b_a22b 256gpu_b300_fp8mx 1 8 1 3 8 0 2 8192 4096 g
qwen3_235b_a22b 256gpu_b300_fp8mx_large_scale 1 8 1 3 8 0 2 512 4096 g
qwen3_235b_a22b 256gpu_b300_nvfp4 1 8 1 0 8 0 2 8192 4096 -
qwen3_235b_a22b 256gpu_gb200_bf16 1 8 1 0 8 0 1 8192 4096 -
qwen3_235b_a22b 256gpu_gb200_fp8cs 1 8 1 0 32 0 1 8192 4096 -
qwen3_235b_a22b 256gpu_gb200_fp8mx 1 8 1 3 32 0 1 8192 4096 g
qwen3_235b_a22b 256gpu_gb200_fp8mx_large_scale 1 8 1 3 32 0 1 512 4096 g
qwen3_235b_a22b 256gpu_gb200_nvfp4 1 8 1 0 32 0 1 8192 4096 -
qwen3_235b_a22b 256gpu_gb300_bf16 1 4 1 0 32 0 2 8192 4096 -
qwen3_235b_a22b 256gpu_gb300_fp8cs 1 4 1 0 32 0 2 8192 4096 -
qwen3_235b_a22b 256gpu_gb300_fp8mx 1 4 1 12 32 0 2 8192 4096 g
qwen3_235b_a22b 256gpu_gb300_fp8mx_large_scale 1 4 1 12 32 0 2 512 4096 g
qwen3_235b_a22b 256gpu_gb300_nvfp4 1 4 1 0 32 0 2 8192 4096 -
qwen3_235b_a22b 256gpu_h100_bf16 2 8 1 4 32 0 1 8192 4096 s
qwen3_235b_a22b 256gpu_h100_fp8cs 2 8 1 4 32 0 1 8192 4096 s
qwen3_235b_a22b 256gpu_h100_fp8cs_large_scale 2 8 1 4 32 0 1 512 4096 s
qwen3_235b_a22b 256gpu_vr200_bf16 1 4 1 0 32 0 2 8192 4096 -
qwen3_235b_a22b 256gpu_vr200_fp8mx 1 4 1 12 32 0 2 8192 4096 g
qwen3_235b_a22b 256gpu_vr200_nvfp4 1 4 1 0 32 0 2 8192 4096 -
qwen3_235b_a22b 64gpu_b200_bf16 1 8 1 4 8 0 1 2048 4096 -
qwen3_235b_a22b 64gpu_b200_fp8cs 1 8 1 0 8 0 1 2048 4096 -
qwen3_235b_a22b 64gpu_b200_fp8mx 1 8 1 0 8 0 1 2048 4096 -
qwen3_235b_a22b 64gpu_b200_nvfp4 1 8 1 0 8 0 1 2048 4096 -
qwen3_235b_a22b 64gpu_b300_bf16 1 8 1 0 8 0 2 2048 4096 -
qwen3_235b_a22b 64gpu_b300_fp8cs 1 8 1 0 8 0 2 2048 4096 -
qwen3_235b_a22b 64gpu_b300_fp8mx 1 8 1 0 8 0 2 2048 4096 -
qwen3_235b_a22b 64gpu_b300_nvfp4 1 8 1 0 8 0 2 2048 4096 -
qwen3_235b_a22b 64gpu_gb200_bf16 1 8 1 0 8 0 1 2048 4096 -
qwen3_235b_a22b 64gpu_gb200_fp8cs 1 8 1 0 32 0 1 2048 4096 -
qwen3_235b_a22b 64gpu_gb200_fp8mx 1 8 1 3 32 0 1 2048 4096 g
qwen3_235b_a22b 64gpu_gb200_nvfp4 1 8 1 0 32 0 1 2048 4096 -
qwen3_235b_a22b 64gpu_gb300_bf16 1 4 1 0 32 0 2 2048 4096 -
qwen3_235b_a22b 64gpu_gb300_fp8cs 1 4 1 0 32 0 2 2048 4096 -
qwen3_235b_a22b 64gpu_gb300_fp8mx 1 4 1 12 32 0 2 2048 4096 g
qwen3_235b_a22b 64gpu_gb300_nvfp4 1 4 1 0 32 0 2 2048 4096 -
qwen3_30b_a3b 16gpu_h100_fp8cs 1 1 1 0 16 0 1 1024 4096 -
qwen3_30b_a3b 16gpu_h100_fp8ds 1 1 1 0 16 0 1 1024 4096 -
qwen3_30b_a3b 8gpu_b200_bf16 1 1 1 0 8 0 4 512 4096 -
qwen3_30b_a3b 8gpu_b200_fp8cs 1 1 1 0 8 0 4 512 4096 -
qwen3_30b_a3b 8gpu_b200_fp8mx 1 1 1 0 8 0 4 512 4096 -
qwen3_30b_a3b 8gpu_b200_nvfp4 1 1 1 0 8 0 4 512 4096 -
qwen3_30b_a3b 8gpu_b300_bf16 1 1 1 0 8 0 8 512 4096 -
qwen3_30b_a3b 8gpu_b300_fp8cs 1 1 1 0 8 0 8 512 4096 -
qwen3_30b_a3b 8gpu_b300_fp8mx 1 1 1 0 8 0 8 512 4096 g
qwen3_30b_a3b 8gpu_b300_nvfp4 1 1 1 0 8 0 8 512 4096 -
qwen3_30b_a3b 8gpu_gb200_bf16 1 1 1 0 8 0 4 512 4096 -
qwen3_30b_a3b 8gpu_gb200_fp8cs 1 1 1 0 8 0 4 512 4096 -
qwen3_30b_a3b 8gpu_gb200_fp8mx 1 1 1 0 8 0 4 512 4096 g
qwen3_30b_a3b 8gpu_gb200_nvfp4 1 1 1 0 8 0 4 512 4096 a
qwen3_30b_a3b 8gpu_gb300_bf16 1 1 1 0 8 0 8 512 4096 -
qwen3_30b_a3b 8gpu_gb300_fp8cs 1 1 1 0 8 0 8 512 4096 -
qwen3_30b_a3b 8gpu_gb300_fp8mx 1 1 1 0 8 0 8 512 4096 g
qwen3_30b_a3b 8gpu_gb300_nvfp4 1 1 1 0 8 0 8 512 4096 -
qwen3_30b_a3b 8gpu_vr200_bf16 1 1 1 0 8 0 8 512 4096 -
qwen3_30b_a3b 8gpu_vr200_fp8mx 1 1 1 0 8 0 4 512 4096 g
qwen3_30b_a3b 8gpu_vr200_nvfp4 1 1 1 0 8 0 8 512 4096 -
"""


# The library's own recipes for training from nothing (src/megatron/bridge/recipes at the same commit), of
# models of the catalogue: the stem of each, and the rest of its name before ``_config``
LIBRARY = """
deepseek-v2 deepseek_v2 128gpu_h100_bf16
deepseek-v2-lite deepseek_v2_lite 8gpu_h100_bf16
deepseek-v3 deepseek_v3 1024gpu_h100_bf16
deepseek-v4-flash deepseek_v4_flash 32gpu_h100_bf16
deepseek-v4-pro deepseek_v4_pro 32gpu_gb300_bf16
k-exaone-236b exaone_moe_236b_a23b 64gpu_h100_bf16
gemma2-2b gemma2_2b 2gpu_h100_bf16
gemma2-9b gemma2_9b 8gpu_h100_bf16
gemma2-27b gemma2_27b 16gpu_h100_bf16
gemma3-1b gemma3_1b 1gpu_h100_bf16
glm-4.5 glm45_355b 128gpu_h100_bf16
glm-4.5-air glm45_air_106b 32gpu_h100_bf16
gpt3-175b gpt3_175b 32gpu_h100_bf16
gpt-oss-20b gpt_oss_20b 16gpu_h100_bf16
gpt-oss-120b gpt_oss_120b 64gpu_h100_bf16
kimi-k2 kimi_k2 512gpu_h100_bf16
llama2-7b llama2_7b 2gpu_h100_bf16
llama3-8b llama3_8b 2gpu_h100_bf16
llama3-70b llama3_70b 32gpu_h100_bf16
llama3.1-8b llama31_8b 2gpu_h100_bf16
llama3.1-70b llama31_70b 32gpu_h100_bf16
llama3.1-405b llama31_405b 256gpu_h100_bf16
llama3.2-1b llama32_1b 1gpu_h100_bf16
llama3.2-3b llama32_3b 1gpu_h100_bf16
nemotron-3-nano nemotron_3_nano 8gpu_h100_bf16
nemotron-3-super nemotron_3_super 16gpu_h100_bf16
nemotron-3-ultra nemotron_3_ultra 24gpu_h100_bf16
qwen2.5-0.5b qwen25_500m 1gpu_h100_bf16
qwen2.5-1.5b qwen25_1p5b 1gpu_h100_bf16
qwen2.5-7b qwen25_7b 2gpu_h100_bf16
qwen2.5-14b qwen25_14b 4gpu_h100_bf16
qwen2.5-32b qwen25_32b 16gpu_h100_bf16
qwen2.5-72b qwen25_72b 32gpu_h100_bf16
qwen3-0.6b qwen3_600m 1gpu_h100_bf16
qwen3-1.7b qwen3_1p7b 1gpu_h100_bf16
qwen3-4b qwen3_4b 2gpu_h100_bf16
qwen3-8b qwen3_8b 4gpu_h100_bf16
qwen3-14b qwen3_14b 8gpu_h100_bf16
qwen3-32b qwen3_32b 16gpu_h100_bf16
qwen3-30b-a3b qwen3_30b_a3b 8gpu_h100_bf16
qwen3-235b-a22b qwen3_235b_a22b 256gpu_h100_bf16
qwen3-next-80b-a3b qwen3_next_80b_a3b 32gpu_h100_bf16
qwen3.5-35b-a3b qwen35_text_35b_a3b 8gpu_gb200_bf16
"""
OF_THE_LIBRARY = {
    words[0]: f"{words[1]}_pretrain_{words[2]}_config"
    for words in (line.split(" ") for line in LIBRARY.strip().splitlines())
}
STEMS = {words[1]: words[0] for words in (line.split(" ") for line in LIBRARY.strip().splitlines())}


class BridgeRecipe(NamedTuple):
    """One of them; ``sizes`` are by our names."""

    name: str
    sizes: dict[str, int]
    marks: str


NAMES = ("tp", "pp", "cp", "interleave", "ep", "expert_tp", "micro_batch", "global_batch", "seq")


def recipe(name: str) -> BridgeRecipe | None:
    """The recipe of that name, with or without its ending."""
    bare = name.removesuffix("_config")
    for line in LINES.strip().splitlines():
        words = line.split(" ")
        if f"{words[0]}_pretrain_{words[1]}" == bare:
            numbers = {ours: int(word) for ours, word in zip(NAMES, words[2:11])}
            return BridgeRecipe(bare, {ours: number for ours, number in numbers.items() if number}, words[11])
    return None


def named_by(model: str, task: str, gpus: int, gpu: str, precision: str) -> str:
    """The name that the performance scripts make of their arguments."""
    return f"{model}_{task}_{gpus}gpu_{gpu}_{precision.replace('_', '')}"
