"""Commands and files as each framework reads them: what its own documents say that a value means."""

import re

import pytest

from engine.frameworks import registry
from engine.launch import reading
from tests.cases import in_one_test
from tests.engine.launch.test_verdict import LLAMA_70B, TITAN


def launch(text, gpus=None):
    """What was read, without any fault."""
    found = reading.read(text, gpus)
    assert found.launch and not found.faults, [str(fault) for fault in found.faults]
    return found.launch


# -- servers -------------------------------------------------------------------------------------------------
@in_one_test(
    "words, tokens", [("16384", 16384), ("32k", 32_000), ("32K", 32_768), ("1m", 10**6), ("1M", 2**20)]
)
def test_a_number_of_tokens_in_thousands_or_in_units_of_1024(words, tokens):
    """vLLM's human_readable_int: a small letter is decimal, a capital one binary."""
    command = f"vllm serve Qwen/Qwen3-Coder-30B-A3B-Instruct --max-model-len {words}"
    assert launch(command).server.longest == tokens


@in_one_test("size", ["4B", "8B", "14B", "32B", "30B-A3B", "235B-A22B"])
def test_qwen3_takes_a_thinking_and_an_answer(size):
    """max_position_embeddings of each one's config.json, which vLLM serves unless told otherwise: 32,768
    tokens to write, and 8,192 for the prompt."""
    assert launch(f"vllm serve Qwen/Qwen3-{size}").server.longest == 40_960


@in_one_test(
    "name, tokens",
    [
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", 262_144),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507-FP8", 262_144),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", 262_144),
    ],
)
def test_a_later_checkpoint_of_a_shape_takes_more_tokens(name, tokens):
    """max_position_embeddings of each one's config.json: 256 Ki tokens since July 2025."""
    assert launch(f"vllm serve {name}").server.longest == tokens


@in_one_test(
    "command, share",
    [
        ("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.7", 0.7),
        ("python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --mem-fraction-static 0.7", 0.7),
        ("trtllm-serve Qwen/Qwen3-8B --kv_cache_free_gpu_memory_fraction 0.7", 0.7),
        ("trtllm-serve Qwen/Qwen3-8B --free_gpu_memory_fraction 0.7", 0.7),
    ],
)
def test_a_server_takes_the_share_that_it_is_given(command, share):
    assert launch(command).server.share == share


# -- Megatron-LM ---------------------------------------------------------------------------------------------
def megatron(more: str, gpus: int = 8, sizes: str = LLAMA_70B):
    return launch(f"torchrun --nproc_per_node {gpus} pretrain_gpt.py --bf16 {sizes} {more}")


def test_its_script_is_enough_to_know_it_by():
    """Of the arguments that name it one alone is there, the number of layers."""
    assert megatron("").framework == "megatron"


def test_a_batch_that_is_not_given_is_a_micro_batch_of_each_data_rank():
    """validate_args: global_batch_size = micro_batch_size · data_parallel_size. Eight GPUs are one such rank
    of eight tensor ranks, or four of two."""
    for tp, ranks in ((8, 1), (2, 4)):
        job = megatron(f"--tensor-model-parallel-size {tp} --micro-batch-size 3").job
        assert job.global_batch == 3 * ranks


@in_one_test(
    "pattern, dense",
    [
        ("([0]*1+[1]*3)", 1),
        ("([0]*3+[1]*1)", 3),  # the last layer alone
        ("(0,0,1,1)", 2),
        ("1", 0),
    ],
)
def test_experts_stand_where_the_pattern_has_a_one(pattern, dense):
    small = LLAMA_70B.replace("--num-layers 80", "--num-layers 4")
    found = megatron(f'--num-experts 8 --moe-router-topk 2 --moe-layer-freq "{pattern}"', sizes=small)
    groups = {bool(group.mlp.routed): group.count for group in found.model.layers}
    assert groups.get(False, 0) == dense and groups[True] == 4 - dense
    assert not any(one.name == "moe_every" for one in found.assumed)


def test_a_method_is_refused_where_single_operators_are_recomputed():
    """validate_args in its own words."""
    method = "--recompute-granularity selective --recompute-method block"
    errors = [one.error for one in megatron(method).refused]
    words = "recompute method is not yet supported for selective recomputing granularity"
    assert any(words in error for error in errors)
    assert not megatron("--recompute-granularity selective").refused


# -- torchtitan ----------------------------------------------------------------------------------------------
def test_what_its_older_switch_compiles_is_said():
    """In 2024 training.compile compiled each layer, and not the loss."""
    found = launch(TITAN.replace("[training]", "[training]\ncompile = true"), 16)
    said = {one.name: one.why for one in found.assumed}
    assert found.job.software.loss == "plain" and re.search("as in 2024, .* the layers alone", said["loss"])
    assert "loss" not in {one.name for one in launch(TITAN, 16).assumed}


@pytest.mark.parametrize(("tp", "each"), [(4, "4"), (2, "2"), (1, "1")])
def test_fewer_tensor_ranks_leave_each_of_more_data_ranks_less_of_the_batch(tp, each):
    """16 GPUs in two stages: of 8 sequences a step two data ranks take four each, four two, and eight one."""
    layout = "[parallelism]\npipeline_parallel_degree = 2\ntensor_parallel_degree = 4\n"
    text = TITAN.replace("local_batch_size = 2", "local_batch_size = 4\nglobal_batch_size = 8") + layout
    edits = dict(registry.frameworks()["torchtitan"].edit("tp", tp, launch(text, 16)))
    assert edits["parallelism.tensor_parallel_degree"] == str(tp)
    assert edits["training.local_batch_size"] == each
