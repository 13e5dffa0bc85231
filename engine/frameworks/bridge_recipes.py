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
