"""GRPO, PPO and DPO: who is there beside the model that is trained, and when, against sums by hand."""

import pytest

import engine
from engine import catalog
from engine.catalog.models import parameters
from engine.frameworks import rollouts
from engine.launch import beside, shown, verdict
from engine.mechanism import memory
from tests.cases import in_one_test

VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_prompt_length=512 "
    "data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 actor_rollout_ref.actor.use_kl_loss=True "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=2 trainer.n_gpus_per_node=8 trainer.nnodes=1 "
)
GRPO = """model_name_or_path: Qwen/Qwen2.5-3B-Instruct
per_device_train_batch_size: 4
num_generations: 4
max_prompt_length: 512
max_completion_length: 1024
bf16: true
"""
OPENRLHF = (
    "python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 2 --ref_num_nodes 1 "
    "--ref_num_gpus_per_node 2 --pretrain Qwen/Qwen2.5-7B-Instruct --micro_train_batch_size 2 "
    "--train_batch_size 64 --zero_stage 2 --bf16 "
)
NEMO_RL = """policy:
  model_name: meta-llama/Llama-3.1-8B-Instruct
  train_global_batch_size: 512
  train_micro_batch_size: 1
  max_total_sequence_length: 4096
  dtensor_cfg:
    activation_checkpointing: false
  generation:
    vllm_cfg:
      gpu_memory_utilization: 0.6
cluster:
  gpus_per_node: 8
  num_nodes: 4
"""
SEVEN = parameters(catalog.model("qwen2.5-7b"))


def check(texts, gpus=None, gpu="h100-sxm"):
    report = engine.check_launch(texts, gpu, gpus)
    assert report.launch is not None, [str(fault) for fault in report.faults]
    return report


def roles(report) -> dict[str, object]:
    return {role.name: role for role in report.launch.roles}


def test_verl_s_roles_and_the_fuller_moment_by_hand():
    """Half of each GPU for the engine while answers are written, beside an eighth of the actor's weights and
    state (14 of its 16 bytes), and an eighth of the reference's two bytes."""
    report = check(VERL)
    assert set(roles(report)) == {"reference", "rollout"} and report.launch.layout.zero == 3
    capacity = memory.capacity_bytes(catalog.gpu("h100-sxm"))
    assert report.parts["rollout"] == pytest.approx(capacity / 2)
    assert report.parts["reference"] == pytest.approx(2 * SEVEN / 8)
    assert report.parts["weights"] + report.parts["optimizer"] == pytest.approx(14 * SEVEN / 8, rel=0.01)
    assert report.parts["gradients"] == report.parts["activations"] == 0.0
    assert sum(report.parts.values()) == pytest.approx(report.total_bytes)
    assert "not modelled" in "\n".join(str(report).splitlines())  # the time of a step


def test_what_goes_to_the_host_meanwhile_is_not_there():
    moved = check(
        VERL
        + "actor_rollout_ref.actor.fsdp_config.param_offload=True "
        + "actor_rollout_ref.actor.fsdp_config.optimizer_offload=True"
    )
    assert moved.total_bytes < check(VERL).total_bytes - 10 * SEVEN / 8
    awake = check(VERL + "actor_rollout_ref.rollout.free_cache_engine=False")
    assert awake.total_bytes > check(VERL).total_bytes


def test_an_engine_whose_weights_are_larger_than_its_share():
    """Qwen2.5 32B over two GPUs takes 32.8 GB of each, and a share of 0.3 of 80 GB is 24 GB."""
    report = check(
        VERL.replace("7B", "32B") + "actor_rollout_ref.rollout.gpu_memory_utilization=0.3", gpu="h800"
    )
    assert report.verdict == verdict.TOO_LARGE and "No available memory for the cache" in str(
        report.refused[0]
    )


@in_one_test(
    "more, expected",
    [
        ("", {"reference"}),
        ("beta: 0.0\n", set()),
        ("use_peft: true\n", set()),  # the adapter's base is the reference
        ("use_vllm: true\nvllm_mode: colocate\n", {"reference", "rollout"}),
        ("use_vllm: true\n", {"reference"}),  # vLLM's server has GPUs of its own
    ],
)
def test_trl_s_grpo(more, expected):
    report = check({"grpo.yaml": GRPO + more}, 1)
    assert report.launch.framework == "trl" and set(roles(report)) == expected
    assert report.launch.job.seq == 1536
    assert report.launch.job.software.loss_share == pytest.approx(1025 / 1536)


def test_a_device_of_its_own_for_the_engine_leaves_one_less_to_train():
    report = check({"grpo.yaml": GRPO + "use_vllm: true\nvllm_device: auto\n"}, 8)
    assert report.launch.gpus == 7


def test_dpo_holds_a_reference_and_reads_two_answers():
    """16 bytes of 7.24 billion parameters are 116 GB, and the reference has 14.5 GB beside them."""
    line = (
        "accelerate launch scripts/run_dpo.py --model_name_or_path mistralai/Mistral-7B-v0.1 --bf16 true "
        "--per_device_train_batch_size 1 --max_length 1024 --gradient_checkpointing true"
    )
    report = check(line, 1, "a100-80")
    assert report.launch.layout.micro_batch == 2 and not report.fits
    assert report.parts["reference"] == pytest.approx(2 * 7.24e9, rel=0.01)


def test_openrlhf_s_actor_on_its_own_gpus():
    """Two GPUs: 15.2 GB of weights and half of 12 bytes a parameter are 61 GB, of 48."""
    report = check(OPENRLHF, 4, "rtx-6000-ada")
    assert report.launch.gpus == 2 and report.verdict == verdict.TOO_LARGE
    assert report.parts["weights"] + report.parts["optimizer"] == pytest.approx(61e9, rel=0.01)
    together = check(
        OPENRLHF + "--colocate_all_models --vllm_num_engines 2 --vllm_gpu_memory_utilization 0.4", 2
    )
    assert set(roles(together)) == {"reference", "critic", "rollout"}
    # without a critic's own optimizer it would be 14 bytes less of each parameter
    grouped = check(OPENRLHF + "--colocate_all_models --advantage_estimator group_norm", 2)
    assert set(roles(grouped)) == {"reference"}


def test_openrlhf_pins_what_the_host_keeps_and_writes_scores_unless_told():
    """A 72.7B on eight GPUs: 12 bytes of state; of each GPU's 9.09 billion parameters the gradients in fp32,
    as nine pinned buffers of 2^32 bytes and one of 2^29, those in 16 bits, and a pinned copy of 2^35. That is
    1.61 TB; a host of 1.4 TB ran out, and less so once nothing was pinned (OpenRLHF issue 632)."""
    line = (
        "python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 8 "
        "--pretrain Qwen/Qwen2.5-72B-Instruct --micro_train_batch_size 1 --train_batch_size 128 "
        "--zero_stage 3 --bf16 --adam_offload --gradient_checkpointing"
    )
    params = 72.7e9
    by_hand = (12 + 2) * params + 8 * (9 * 2.0**32 + 2.0**29 + 2.0**35)
    small = engine.check_launch(line, "h100-sxm", 8, host_bytes=1.4e12)
    assert small.hosted_bytes == pytest.approx(by_hand, rel=0.01) and small.verdict == verdict.TOO_LARGE
    assert engine.check_launch(line, "h100-sxm", 8, host_bytes=2.0e12).fits
    fused = engine.check_launch(f"{line} --flash_attn", "h100-sxm", 8, host_bytes=2.0e12)
    assert small.launch.job.software.attention == "scores" and fused.launch.job.software.attention == "fused"


def test_nemo_rl_moves_its_policy_away_while_answers_are_written():
    report = check({"grpo.yaml": NEMO_RL, "run.sh": "uv run examples/run_grpo_math.py --config grpo.yaml"})
    assert report.launch.gpus == 32 and set(roles(report)) == {"reference", "rollout"}
    held = dict.fromkeys(("weights", "gradients", "optimizer", "activations", "overhead"), 1.0)
    writing = beside.moments(report.launch, report.estimate.at, held).writing
    assert writing["weights"] == writing["optimizer"] == 0.0
    assert writing["rollout"] == pytest.approx(0.6 * memory.capacity_bytes(catalog.gpu("h100-sxm")))


def test_the_share_of_answers():
    assert rollouts.answers_share(512, 1024) == pytest.approx(1025 / 1536)
    assert rollouts.answers_share(0, 10) == 1.0


def test_a_misspelt_override_is_the_first_line():
    report = check(VERL + "actor_rollout_ref.rolout.gpu_memory_utilization=0.4")
    said = shown.lines(report)[0]
    assert "rolout" in said and "did you mean actor_rollout_ref.rollout.gpu_memory_utilization" in said


def test_a_program_that_calls_the_trainer():
    text = (
        "from trl import GRPOConfig, GRPOTrainer\n"
        "args = GRPOConfig(per_device_train_batch_size=4, max_prompt_length=2048, "
        "max_completion_length=1024, bf16=True)\n"
        'GRPOTrainer(model="Qwen/Qwen3-4B", reward_funcs=f, args=args, train_dataset=data).train()\n'
    )
    report = check({"train.py": text}, 1, "a100-80")
    assert report.launch.framework == "trl" and report.launch.model.key == "qwen3-4b"
    assert report.launch.job.seq == 3072 and set(roles(report)) == {"reference"} and not report.fits


def test_ms_swift_s_grpo():
    """A base in 16 bits over four GPUs, and half of each for the engine that writes."""
    line = (
        "NPROC_PER_NODE=4 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-72B-Instruct --train_type lora "
        "--use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.55 "
        "--vllm_tensor_parallel_size 4 --max_length 2048 --max_completion_length 1024 "
        "--deepspeed zero3_offload --offload_model true --sleep_level 1 --move_model_batches 16"
    )
    report = check(line, None, "a100-80")
    assert set(roles(report)) == {"rollout"} and report.launch.leaves and report.launch.job.seq == 3072
    share = 0.55 * memory.capacity_bytes(catalog.gpu("a100-80"))
    assert report.parts["rollout"] == pytest.approx(share) and report.fits
    full = check(line.replace("lora", "full"), None, "a100-80")
    assert "reference" in roles(full)
    dpo = check("swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B-Instruct", 1, "a100-80")
    assert dpo.verdict == verdict.UNKNOWN and "GRPO alone" in dpo.unmodelled[0].why


def test_an_adapter_is_merged_where_all_weights_are_gathered():
    """72.7 billion parameters are 145 GB in 16 bits on each GPU, whatever shards them: with eight A100 for
    training and four for vLLM it runs out of memory in ``_move_model_to_vllm`` (a comment of March 2025 in
    huggingface/trl pull request 3133). ms-swift gathers a sixteenth at a time if it is told to."""
    seventy_two = parameters(catalog.model("qwen2.5-72b"))
    trl = GRPO.replace("3B", "72B") + "use_vllm: true\nuse_peft: true\ngradient_checkpointing: true\n"
    stage = '{"zero_optimization": {"stage": %d}}'
    report = check({"grpo.yaml": trl, "ds.json": stage % 3}, 8, "a100-80")
    assert report.verdict == "does not fit" and report.parts["gathered"] == 2 * seventy_two
    assert report.parts["activations"] == 0.0
    whole = check({"grpo.yaml": trl.replace("use_peft: true", ""), "ds.json": stage % 3}, 64, "a100-80")
    two = check({"grpo.yaml": trl, "ds.json": stage % 2}, 8, "a100-80")
    without = check({"grpo.yaml": trl.replace("use_vllm: true", ""), "ds.json": stage % 3}, 8, "a100-80")
    assert [one.launch.handed for one in (report, whole, two, without)] == [1.0, 0.0, 0.0, 0.0]
    assert without.verdict == "fits"
    swift = (
        "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-72B-Instruct --use_vllm true "
        "--vllm_gpu_memory_utilization 0.4 --vllm_tensor_parallel_size 8 --sleep_level 1 --deepspeed zero3"
    )
    at_once, parted = (check(swift + more, None, "a100-80") for more in ("", " --move_model_batches 16"))
    assert at_once.verdict == "does not fit" and parted.fits
    held = parted.estimate.memory_bytes | {}
    handing = beside.moments(parted.launch, parted.estimate.at, held).handing
    assert handing["gathered"] == pytest.approx(2 * seventy_two / 16)
    assert handing["rollout"] == pytest.approx(1e9 + 2 * seventy_two / 8)  # it sleeps, and wakes its weights
