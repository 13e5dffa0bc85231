"""The configurations that torchtune has by name, as facts: recipes/configs of pytorch/torchtune at commit
bd2a0fc7 (April 2026), those that fine-tune.

A line each: name, model, batch_size, gradient_accumulation_steps, lora_rank (0 where the whole model is
trained), the tokenizer's max_seq_len (0 where there is none), tensor_parallel_dim, and marks. All are in bf16
and have LoRA on queries, values, attention's output and the feed-forward block; the optimizer is AdamW
and the loss LinearCrossEntropyLoss unless marked.
"""

from __future__ import annotations

from typing import NamedTuple

CHECKPOINTS, OFFLOADS, HOST, IN_BACKWARD, PAGED, PAGED_8BIT = "c", "o", "h", "b", "p", "q"
OLD_CHUNKS, PAIRS, DORA, OUTPUT, COMPILED, SIMULATED, TEACHER, QUANTISED = (
    "k",
    "d",
    "w",
    "l",
    "m",
    "t",
    "s",
    "4",
)
LINES = """
gemma/2B_full gemma_2b 2 1 0 0 1 c
gemma/2B_lora lora_gemma_2b 4 1 64 0 1 c
gemma/2B_lora_single_device lora_gemma_2b 4 8 64 0 1 c
gemma/2B_qlora_single_device qlora_gemma_2b 4 8 64 0 1 c
gemma/7B_full gemma_7b 1 1 0 0 1 c
gemma/7B_lora lora_gemma_7b 4 1 64 0 1 c
gemma/7B_lora_single_device lora_gemma_7b 8 8 8 0 1 c
gemma/7B_qlora_single_device qlora_gemma_7b 4 8 64 0 1 c
gemma2/27B_full gemma2_27b 1 1 0 0 1 c
gemma2/27B_lora lora_gemma2_27b 4 1 64 0 1 c
gemma2/27B_lora_single_device lora_gemma2_27b 2 8 8 0 1 c
gemma2/27B_qlora_single_device qlora_gemma2_27b 4 8 64 0 1 c
gemma2/2B_full gemma2_2b 2 1 0 0 1 c
gemma2/2B_lora lora_gemma2_2b 4 1 64 0 1 c
gemma2/2B_lora_single_device lora_gemma2_2b 8 8 64 0 1 c
gemma2/2B_qlora_single_device qlora_gemma2_2b 4 8 64 0 1 c
gemma2/9B_full gemma2_9b 1 1 0 0 1 c
gemma2/9B_lora lora_gemma2_9b 4 1 64 0 1 c
gemma2/9B_lora_single_device lora_gemma2_9b 8 8 8 0 1 c
gemma2/9B_qlora_single_device qlora_gemma2_9b 4 8 64 0 1 c
llama2/13B_full llama2_13b 2 1 0 0 1 c
llama2/13B_lora lora_llama2_13b 2 8 8 0 1 l
llama2/13B_qlora_single_device qlora_llama2_13b 2 8 8 0 1 c
llama2/1B_qat_single_device llama2 1 1 0 2048 1 cpbt
llama2/70B_lora lora_llama2_70b 2 1 16 0 1 c
llama2/70B_qlora qlora_llama2_70b 2 1 16 0 1 c
llama2/7B_full llama2_7b 2 1 0 0 1 c
llama2/7B_full_low_memory llama2_7b 2 1 0 0 1 copb
llama2/7B_lora lora_llama2_7b 2 8 8 0 1 -
llama2/7B_lora_dpo lora_llama2_7b 4 8 8 1024 1 cd
llama2/7B_lora_dpo_single_device lora_llama2_7b 4 8 8 1024 1 cd
llama2/7B_lora_single_device lora_llama2_7b 2 8 8 0 1 c
llama2/7B_qat_full llama2_7b 2 1 0 0 1 ct
llama2/7B_qlora qlora_llama2_7b 2 8 8 0 1 c
llama2/7B_qlora_single_device qlora_llama2_7b 2 8 8 0 1 c
llama3/70B_full llama3_70b 2 1 0 0 1 ch
llama3/70B_lora lora_llama3_70b 2 1 16 0 1 c
llama3/8B_dora lora_llama3_8b 2 1 8 0 1 w
llama3/8B_dora_single_device lora_llama3_8b 2 8 8 0 1 cw
llama3/8B_full llama3_8b 2 1 0 0 1 c
llama3/8B_full_single_device llama3_8b 2 1 0 0 1 cqb
llama3/8B_lora lora_llama3_8b 2 8 8 0 1 -
llama3/8B_lora_single_device lora_llama3_8b 2 8 8 0 1 c
llama3/8B_qat_full llama3_8b 2 1 0 0 1 ct
llama3/8B_qat_lora lora_llama3_8b 2 8 8 0 1 t
llama3/8B_qdora_single_device lora_llama3_8b 2 8 8 0 1 cw4
llama3/8B_qlora_single_device qlora_llama3_8b 2 8 8 0 1 c
llama3_1/405B_qlora qlora_llama3_1_405b 1 8 16 0 1 c
llama3_1/70B_full llama3_1_70b 2 1 0 0 1 ch
llama3_1/70B_lora lora_llama3_1_70b 2 1 16 0 1 c
llama3_1/8B_full llama3_1_8b 2 1 0 0 1 c
llama3_1/8B_full_dpo llama3_1_8b 4 8 0 1024 1 cd
llama3_1/8B_full_single_device llama3_1_8b 2 1 0 0 1 cqb
llama3_1/8B_lora lora_llama3_1_8b 2 8 8 0 1 -
llama3_1/8B_lora_dpo lora_llama3_1_8b 4 8 8 1024 1 cd
llama3_1/8B_lora_dpo_single_device lora_llama3_1_8b 4 8 8 1024 1 cd
llama3_1/8B_lora_single_device lora_llama3_1_8b 2 8 8 0 1 c
llama3_1/8B_qat_full llama3_1_8b 2 1 0 0 1 ct
llama3_1/8B_qat_lora lora_llama3_1_8b 2 8 8 0 1 t
llama3_1/8B_qlora_single_device qlora_llama3_1_8b 2 8 8 0 1 c
llama3_2/1B_full llama3_2_1b 4 8 0 0 1 -
llama3_2/1B_full_single_device llama3_2_1b 4 1 0 0 1 qb
llama3_2/1B_lora lora_llama3_2_1b 4 8 64 0 1 -
llama3_2/1B_lora_single_device lora_llama3_2_1b 4 8 64 0 1 -
llama3_2/1B_qat_lora lora_llama3_2_1b 4 8 64 0 1 t
llama3_2/1B_qlora_single_device qlora_llama3_2_1b 4 8 64 0 1 -
llama3_2/3B_full llama3_2_3b 4 8 0 0 1 c
llama3_2/3B_full_single_device llama3_2_3b 4 1 0 0 1 cqb
llama3_2/3B_lora lora_llama3_2_3b 4 8 64 0 1 -
llama3_2/3B_lora_single_device lora_llama3_2_3b 4 8 64 0 1 c
llama3_2/3B_qat_full llama3_2_3b 4 8 0 0 1 ct
llama3_2/3B_qat_lora lora_llama3_2_3b 4 8 64 0 1 t
llama3_2/3B_qlora_single_device qlora_llama3_2_3b 4 8 64 0 1 c
llama3_2/8B_to_1B_KD_lora_distributed lora_llama3_2_1b 4 8 64 0 1 ks
llama3_2/8B_to_1B_KD_lora_single_device lora_llama3_2_1b 4 8 64 0 1 ks
llama3_2_vision/11B_full llama3_2_vision_11b 2 8 0 8192 1 c
llama3_2_vision/11B_full_single_device llama3_2_vision_11b 2 8 0 8192 1 cq
llama3_2_vision/11B_lora lora_llama3_2_vision_11b 2 8 8 8192 1 c
llama3_2_vision/11B_lora_single_device lora_llama3_2_vision_11b 2 8 8 8192 1 c
llama3_2_vision/11B_qlora qlora_llama3_2_vision_11b 2 8 8 8192 1 c
llama3_2_vision/11B_qlora_single_device qlora_llama3_2_vision_11b 2 8 8 8192 1 c
llama3_2_vision/90B_full llama3_2_vision_90b 2 8 0 8192 1 c
llama3_2_vision/90B_lora lora_llama3_2_vision_90b 2 8 8 8192 1 c
llama3_2_vision/90B_qlora qlora_llama3_2_vision_90b 2 8 8 8192 1 c
llama3_3/70B_full llama3_3_70b 2 1 0 0 1 ch
llama3_3/70B_full_multinode llama3_3_70b 4 1 0 1024 8 cm
llama3_3/70B_lora lora_llama3_3_70b 2 1 16 0 1 c
llama3_3/70B_qlora qlora_llama3_3_70b 2 1 16 0 1 c
llama4/maverick_17B_128E_full llama4_maverick_17b_128e 1 1 0 0 8 ch
llama4/scout_17B_16E_full llama4_scout_17b_16e 1 1 0 0 2 ch
llama4/scout_17B_16E_lora lora_llama4_scout_17b_16e 2 1 16 0 1 c
mistral/7B_full mistral_7b 2 1 0 0 1 c
mistral/7B_full_low_memory mistral_7b 2 1 0 0 1 copb
mistral/7B_lora lora_mistral_7b 4 1 64 0 1 cl
mistral/7B_lora_single_device lora_mistral_7b 4 8 64 0 1 cl
mistral/7B_qlora_single_device qlora_mistral_7b 4 8 64 0 1 c
phi3/mini_full phi3_mini 2 8 0 0 1 c
phi3/mini_full_low_memory phi3_mini 2 1 0 0 1 copb
phi3/mini_lora lora_phi3_mini 2 8 8 0 1 -
phi3/mini_lora_single_device lora_phi3_mini 2 8 8 0 1 c
phi3/mini_qlora_single_device qlora_phi3_mini 2 8 8 0 1 c
phi4/14B_full phi4_14b 2 8 0 0 1 c
phi4/14B_full_low_memory phi4_14b 2 1 0 0 1 copb
phi4/14B_lora lora_phi4_14b 2 8 8 0 1 -
phi4/14B_lora_single_device lora_phi4_14b 2 8 8 0 1 c
phi4/14B_qlora_single_device qlora_phi4_14b 2 8 8 0 1 c
qwen2/0.5B_full qwen2_0_5b 2 8 0 0 1 -
qwen2/0.5B_full_single_device qwen2_0_5b 2 8 0 0 1 c
qwen2/0.5B_lora lora_qwen2_0_5b 4 8 32 0 1 c
qwen2/0.5B_lora_single_device lora_qwen2_0_5b 4 8 32 0 1 c
qwen2/1.5B_full qwen2_1_5b 2 1 0 0 1 -
qwen2/1.5B_full_single_device qwen2_1_5b 2 1 0 0 1 cpb
qwen2/1.5B_lora lora_qwen2_1_5b 2 8 32 0 1 c
qwen2/1.5B_lora_single_device lora_qwen2_1_5b 2 8 32 0 1 c
qwen2/1.5_to_0.5B_KD_lora_distributed lora_qwen2_0_5b 8 8 32 0 1 ks
qwen2/1.5_to_0.5B_KD_lora_single_device lora_qwen2_0_5b 8 8 32 0 1 ks
qwen2/7B_full qwen2_7b 2 8 0 0 1 c
qwen2/7B_full_single_device qwen2_7b 2 1 0 0 1 cpb
qwen2/7B_lora lora_qwen2_7b 2 8 8 0 1 -
qwen2/7B_lora_single_device lora_qwen2_7b 2 8 8 0 1 c
qwen2_5/0.5B_full qwen2_5_0_5b 2 8 0 0 1 -
qwen2_5/0.5B_full_single_device qwen2_5_0_5b 2 8 0 0 1 -
qwen2_5/0.5B_lora lora_qwen2_5_0_5b 2 8 32 0 1 -
qwen2_5/0.5B_lora_single_device lora_qwen2_5_0_5b 2 8 32 0 1 -
qwen2_5/1.5B_full qwen2_5_1_5b_instruct 2 1 0 0 1 c
qwen2_5/1.5B_full_single_device qwen2_5_1_5b_instruct 4 1 0 0 1 cpb
qwen2_5/1.5B_lora lora_qwen2_5_1_5b_instruct 2 8 32 0 1 -
qwen2_5/1.5B_lora_single_device lora_qwen2_5_1_5b_instruct 2 8 32 0 1 -
qwen2_5/1.5B_qat_single_device qwen2_5_1_5b_instruct 1 1 0 0 1 cpbt
qwen2_5/14B_lora_single_device lora_qwen2_5_14b_instruct 2 8 8 0 1 c
qwen2_5/14B_to_7B_KD_lora_single_device lora_qwen2_5_7b 2 8 64 0 1 cks
qwen2_5/32B_lora lora_qwen2_5_32b_instruct 2 8 8 0 1 -
qwen2_5/3B_full qwen2_5_3b 2 8 0 0 1 c
qwen2_5/3B_full_single_device qwen2_5_3b 2 1 0 0 1 cpb
qwen2_5/3B_lora lora_qwen2_5_3b 2 8 8 0 1 -
qwen2_5/3B_lora_single_device lora_qwen2_5_3b 2 8 8 0 1 c
qwen2_5/3B_qat_single_device qwen2_5_3b 2 1 0 0 1 cpbt
qwen2_5/72B_lora lora_qwen2_5_72b_instruct 2 1 8 0 1 c
qwen2_5/7B_full qwen2_5_7b_instruct 2 8 0 0 1 c
qwen2_5/7B_full_single_device qwen2_5_7b_instruct 2 1 0 0 1 cpb
qwen2_5/7B_lora lora_qwen2_5_7b_instruct 2 8 8 0 1 -
qwen2_5/7B_lora_single_device lora_qwen2_5_7b_instruct 2 8 8 0 1 c
qwen3/0.6B_full qwen3_0_6b_instruct 2 8 0 0 1 -
qwen3/0.6B_full_single_device qwen3_0_6b_instruct 2 8 0 0 1 -
qwen3/0.6B_lora lora_qwen3_0_6b_instruct 2 8 32 0 1 -
qwen3/0.6B_lora_single_device lora_qwen3_0_6b_instruct 2 8 32 0 1 -
qwen3/0.6B_qat_full qwen3_0_6b_instruct 2 8 0 0 1 t
qwen3/0.6B_qat_lora lora_qwen3_0_6b_instruct 2 8 32 0 1 t
qwen3/1.7B_full qwen3_1_7b_instruct 2 1 0 0 1 -
qwen3/1.7B_full_single_device qwen3_1_7b_instruct 4 1 0 0 1 -
qwen3/1.7B_lora lora_qwen3_1_7b_instruct 2 8 32 0 1 -
qwen3/1.7B_lora_single_device lora_qwen3_1_7b_instruct 2 8 32 0 1 -
qwen3/1.7B_qat_full qwen3_1_7b_instruct 2 1 0 0 1 t
qwen3/1.7B_qat_lora lora_qwen3_1_7b_instruct 2 8 32 0 1 t
qwen3/14B_lora_single_device lora_qwen3_14b_instruct 2 8 8 0 1 c
qwen3/14B_to_8B_KD_lora_single_device lora_qwen3_8b_base 2 8 64 0 1 cks
qwen3/32B_lora lora_qwen3_32b 2 8 8 0 1 -
qwen3/32B_qat_lora lora_qwen3_32b 2 8 8 0 1 t
qwen3/4B_full qwen3_4b_instruct 2 8 0 0 1 c
qwen3/4B_full_single_device qwen3_4b_instruct 2 1 0 0 1 c
qwen3/4B_lora lora_qwen3_4b_instruct 2 8 8 0 1 -
qwen3/4B_lora_single_device lora_qwen3_4b_instruct 2 8 8 0 1 c
qwen3/4B_qat_full qwen3_4b_instruct 2 8 0 0 1 ct
qwen3/4B_qat_lora lora_qwen3_4b_instruct 2 8 8 0 1 t
qwen3/8B_full qwen3_8b_instruct 2 8 0 0 1 c
qwen3/8B_full_single_device qwen3_8b_instruct 2 1 0 0 1 cpb
qwen3/8B_lora lora_qwen3_8b_instruct 2 8 8 0 1 -
qwen3/8B_lora_single_device lora_qwen3_8b_instruct 2 8 8 0 1 c
qwen3/8B_qat_full qwen3_8b_instruct 2 8 0 0 1 ct
qwen3/8B_qat_lora lora_qwen3_8b_instruct 2 8 8 0 1 t
"""


class Config(NamedTuple):
    """One of them."""

    name: str
    model: str
    batch: int
    accumulated: int
    rank: int
    seq: int
    tp: int
    marks: str


def config(name: str) -> Config | None:
    """The configuration of that name."""
    if not name or " " in name:
        return None
    for line in LINES.splitlines():
        if line.startswith(f"{name} "):
            words = line.split(" ")
            batch, accumulated, rank, seq, tp = (int(word) for word in words[2:7])
            return Config(words[0], words[1], batch, accumulated, rank, seq, tp, words[7])
    return None
