"""Trainers in their own words: what public examples come to, and published readings of their memory."""

import pytest

import engine
from engine.frameworks import registry, torchtune_configs
from engine.frameworks.torchtune import name_of
from engine.launch import fit_page
from engine.mechanism.adapters import Adapter
from engine.step.layout import recipe_of

GIB = 2.0**30
OLD_LOSS = "compile=True loss=torchtune.modules.loss.CEWithChunkedOutputLoss"
TUNE = "tune run full_finetune_single_device --config llama3_2/3B_full_single_device "


def read(text, gpu: str = "h100-sxm", gpus: int | None = 1):
    report = engine.check_launch(text, gpu, gpus)
    assert report.launch is not None, [str(fault) for fault in report.faults]
    return report


def of(text, gpu: str = "h100-sxm", gpus: int | None = 1):
    """Framework, layout and job."""
    launch = read(text, gpu, gpus).launch
    assert launch is not None and launch.layout is not None and launch.job is not None
    return launch.framework, launch.layout, launch.job


def said(text, **others):
    """All lines about what is wrong."""
    report = engine.check_launch(text, "h100-sxm", others.get("gpus", 1))
    return " ".join([*map(str, report.faults), *(one.error for one in report.refused)])


# -- torchtune -----------------------------------------------------------------------------------------------
def test_torchtune_s_named_configuration():
    """recipes/configs/llama3_1/8B_lora_single_device.yaml at bd2a0fc7: rank 8 on queries, values, output and
    the feed-forward block, batches of 2, eight of them summed, checkpoints."""
    key, layout, job = of("tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device")
    assert (key, layout.micro_batch, job.global_batch, layout.recompute) == ("torchtune", 2, 16, "full")
    targets = ("q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert job.adapter == Adapter(8, targets) and job.software.loss == "widened"


def test_torchtune_s_overrides_go_before_the_configuration():
    line = "tune run --nproc_per_node 4 full_finetune_distributed --config llama3_1/8B_full "
    _, layout, job = of(
        line + "batch_size=4 tokenizer.max_seq_len=8192 enable_activation_offloading=True", gpus=None
    )
    assert (layout.gpus, layout.zero, layout.micro_batch, job.seq) == (4, 3, 4, 8192)
    assert layout.offload == "activations"
    assert read(line + "gradient_acumulation_steps=4", gpus=None).faults  # a slip of the pen is said


def test_torchtune_s_yaml():
    text = (
        "model:\n  _component_: torchtune.models.qwen2_5.qlora_qwen2_5_7b_instruct\n  lora_rank: 16\n"
        "  lora_attn_modules: ['q_proj', 'k_proj']\n  apply_lora_to_mlp: False\nbatch_size: 1\n"
        "optimizer:\n  _component_: torch.optim.AdamW\n"
    )
    key, _, job = of({"x.yaml": text})
    assert key == "torchtune"
    assert job.adapter == Adapter(16, ("q_proj", "k_proj"), base="nf4-double")


@pytest.mark.parametrize(
    ("more", "gib"),
    [("", 60.0), (OLD_LOSS, 42.9), (OLD_LOSS + " enable_activation_checkpointing=True", 24.9)],
)
def test_torchtune_s_own_readings(more, gib):
    """Peak memory of Llama 3.2 3B on an A100, each line with one technique more (pytorch/torchtune README.md,
    Optimization flags): two packed sequences of 4,096."""
    usual = (
        "dataset.packed=True tokenizer.max_seq_len=4096 gradient_accumulation_steps=1 batch_size=2 "
        "optimizer_in_bwd=False optimizer=torch.optim.AdamW "
    )
    if "loss" not in more:
        usual += "loss=torch.nn.CrossEntropyLoss "
    if "checkpointing" not in more:
        usual += "enable_activation_checkpointing=False "
    found = read(TUNE + usual + more, "a100-80")
    assert found.total_bytes / GIB == pytest.approx(gib, rel=0.3)


def test_no_memory_over_a_step_is_drawn_where_a_part_is_on_the_host():
    """The page asks for it with every launch that is estimated."""
    asked = {"gpu": "a100-80", "gpus": 1, "own": {}}
    for more in ("", " enable_activation_offloading=True", " optimizer=torch.optim.SGD"):
        files = [["a.sh", f"{TUNE}{more}"]]
        assert fit_page.answer(files=files, **asked)["verdict"] == "fits"


def test_gradients_of_an_optimizer_in_the_backward_pass_are_those_of_the_largest_part():
    """Of 3.2 billion parameters the output layer has 128,256 words of 3,072 values, more than a layer."""
    parts = read(TUNE + "optimizer_in_bwd=True", "a100-80").parts
    assert parts is not None and parts["gradients"] == pytest.approx(2 * 128_256 * 3072)
    assert "Gradient accumulation is not supported" in said(TUNE + "gradient_accumulation_steps=4")


def test_names_of_models_that_torchtune_builds():
    built = ("lora_llama3_1_8b", "qlora_qwen2_5_0_5b", "qwen2_1_5b", "phi4_14b", "llama3_3_70b")
    assert [name_of(f"torchtune.models.x.{each}") for each in built] == [
        "llama3.1-8b",
        "qwen2.5.0-5b",
        "qwen2-1.5b",
        "phi-4",
        "llama3.3-70b",
    ]


def test_every_configuration_is_read():
    for line in torchtune_configs.LINES.strip().splitlines():
        found = torchtune_configs.config(line.split(" ")[0])
        assert found is not None and found.batch > 0 and found.tp > 0
    assert torchtune_configs.config("llama3_1/8B") is None


# -- ms-swift ------------------------------------------------------------------------------------------------
def test_ms_swift_s_defaults():
    """LoRA of rank 8 with dropout on all linear layers, batches of 1 up to 16 a step, checkpoints
    (swift/arguments)."""
    key, layout, job = of(
        "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct --max_length 2048", gpus=None
    )
    assert (key, layout.gpus, job.global_batch, layout.recompute) == ("ms_swift", 2, 16, "full")
    assert job.adapter == Adapter(8, dropout=0.05)


def test_ms_swift_s_deepspeed_by_name():
    line = "swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type full --max_length 2048 --deepspeed "
    assert of(line + "zero3", gpus=4)[1].zero == 3
    assert of(line + "zero2_offload", gpus=4)[1].offload == "optimizer+gradients"


def test_ms_swift_s_pairs_get_no_verdict():
    assert read("swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B-Instruct").verdict == "cannot say"
    assert "attention implementation" in said(
        "swift sft --model Qwen/Qwen2.5-7B-Instruct --packing true --attn_impl sdpa"
    )


SFT = "swift sft --per_device_train_batch_size 1 --torch_dtype bfloat16 --model "


@pytest.mark.parametrize(
    ("line", "gpus", "gib"),
    [
        ("Qwen/Qwen2.5-7B-Instruct --tuner_type full --max_length 2048", 1, 76),  # full/train.sh
        ("Qwen/Qwen2.5-7B-Instruct --tuner_type lora --max_length 2048", 1, 22),  # lora_sft.sh
        ("Qwen/Qwen2.5-7B-Instruct --max_length 2048 --deepspeed zero2", 2, 18),  # multi-gpu/deepspeed
        ("Qwen/Qwen2.5-7B-Instruct --max_length 2048 --deepspeed zero3", 2, 16),
        ("Qwen/Qwen2.5-3B --tuner_type full --max_length 8192 --use_liger_kernel true", 1, 35),  # agent
    ],
)
def test_memory_that_ms_swift_s_examples_state(line, gpus, gib):
    """The first lines of modelscope/ms-swift examples/train/*.sh at 3602360a."""
    assert read(SFT + line, "h100-sxm", gpus).total_bytes / GIB == pytest.approx(gib, rel=0.2)


def test_what_ms_swift_s_names_say():
    """A name that the model is taught, another head, and a base in 4 bits of another library."""
    assert of(SFT + "Qwen/Qwen2.5-7B --model_name swift-robot")[0] == "ms_swift"
    assert read(SFT + "Qwen/Qwen2.5-7B --task_type seq_cls").verdict == "cannot say"
    assert read(SFT + "Qwen/Qwen2.5-7B-Instruct-AWQ").verdict == "cannot say"


def test_megatron_swift_s_experts_are_not_cut():
    line = (
        "NPROC_PER_NODE=8 megatron sft --load Qwen3-30B-A3B-Base-mcore --tensor_model_parallel_size 2 "
        "--expert_model_parallel_size 8 --micro_batch_size 1 --max_length 8192 --sequence_parallel true"
    )
    _, layout, job = of(line, gpus=None)
    assert (layout.ep, layout.expert_tp, job.global_batch) == (8, 1, 16)


def test_megatron_swift_with_its_optimizer_on_the_host():
    """65 GiB of each of 8 GPUs (modelscope/ms-swift examples/train/megatron/dense/72b_offload.sh)."""
    line = (
        "NPROC_PER_NODE=8 megatron sft --load Qwen2.5-72B-Instruct-mcore --tensor_model_parallel_size 8 "
        "--micro_batch_size 1 --global_batch_size 16 --recompute_granularity full --recompute_method uniform "
        "--recompute_num_layers 1 --max_length 8192 --sequence_parallel true --optimizer_cpu_offload true "
        "--use_precision_aware_optimizer true"
    )
    report = read(line, "a800", None)
    key, layout, _ = of(line, "a800", None)
    assert (key, layout.offload) == ("megatron_swift", "optimizer")
    assert report.total_bytes / GIB == pytest.approx(65, rel=0.2)


# -- Unsloth, Axolotl, LLaMA-Factory -------------------------------------------------------------------------
UNSLOTH = """from unsloth import FastLanguageModel
model, tokenizer = FastLanguageModel.from_pretrained("unsloth/llama-3-8b-bnb-4bit", max_seq_length=4096)
model = FastLanguageModel.get_peft_model(model, r=32, target_modules=["q_proj", "v_proj"])
trainer = SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2, optim="adamw_8bit"))
"""


def test_unsloth_s_program():
    key, layout, job = of(UNSLOTH)
    assert (key, layout.micro_batch, job.seq, layout.recompute) == ("unsloth", 2, 4096, "full")
    assert layout.offload == "activations" and job.software.loss == "chunked"
    assert job.adapter == Adapter(32, ("q_proj", "v_proj"), base="nf4-double")
    assert of(UNSLOTH.replace("r=32", "r=32, use_gradient_checkpointing=True"))[1].offload == "none"
    assert read(UNSLOTH.replace("r=32", "r=32, modules_to_save=['lm_head']")).verdict == "cannot say"
    assert "not a literal" in said(UNSLOTH.replace("batch_size=2", "batch_size=args.batch"))


def test_a_format_that_nobody_asked_for_is_the_gpu_s_own():
    """A T4 multiplies in fp16 alone: what Unsloth takes by itself is no error there, what is asked for is."""
    assert read(UNSLOTH, "t4").verdict != "will not start"
    asked = UNSLOTH.replace("per_device", "bf16=True, per_device")
    assert read(asked, "t4").verdict == "will not start"


def test_a_program_of_the_trainer():
    text = (
        "from transformers import AutoModelForCausalLM, TrainingArguments\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", attn_implementation="eager")\n'
        'config = LoraConfig(r=8, target_modules="all-linear")\n'
        "args = TrainingArguments(per_device_train_batch_size=4, bf16=True, gradient_checkpointing=True)\n"
    )
    key, layout, job = of(text)
    assert (key, layout.micro_batch, layout.recompute) == ("hugging_face", 4, "full")
    assert job.adapter == Adapter(8) and job.software.attention == "scores"


def test_trl_s_configuration_has_defaults_of_its_own():
    """trl/trainer/sft_config.py and base_config.py at f2cd5771: 1,024 tokens, bf16, checkpoints."""
    text = 'model = AutoModel.from_pretrained("Qwen/Qwen2.5-7B")\nargs = SFTConfig(%s)\n'
    report, (key, layout, job) = read(text % ""), of(text % "")
    assert (key, layout.recompute, layout.micro_batch, job.seq) == ("hugging_face", "full", 8, 1024)
    assert report.launch is not None and report.launch.precision == "bf16"
    assert of(text % "gradient_checkpointing=False")[1].recompute == "none"
    assert of(text % "activation_offloading=True")[1].offload == "activations"
    assert of(text % 'loss_type="chunked_nll"')[2].software.loss == "chunked"


SEEING = SFT + "Qwen/Qwen2.5-VL-7B-Instruct --train_type lora "


def test_pictures_get_a_verdict_only_where_a_sequence_has_a_limit():
    """Without ``--max_length`` a sequence of ms-swift is as long as the model can read (template/base.py at
    005674fa), whatever a picture's size is: a video has many."""
    for line in (SEEING, SEEING + "--max_pixels 602112", "MAX_PIXELS=602112 " + SEEING):
        report = read(line, "h200")
        assert report.verdict == "cannot say" and report.total_bytes == 0
        assert [one.key for one in report.unmodelled] == ["pictures"]
    large = SEEING.replace("VL-7B", "VL-72B")
    assert read(large, "rtx3090").verdict == "does not fit"  # frozen weights alone
    assert read(SEEING + "--max_length 2048 --max_pixels 602112", "h200").verdict == "fits"
    assert read(SFT + "Qwen/Qwen2.5-7B --max_pixels 602112").verdict != "cannot say"  # it reads none


def test_pictures_that_fill_a_sequence_are_counted():
    """By hand, for Qwen2.5-VL's tower of width 1,280 and an MLP of 3,420 with a gate: 16 bytes for each value
    of the width and 4 + 2 for each of the MLP's, for four patches a token, in one layer of a frozen tower."""
    report = read(SEEING + "--max_length 2048", "h200")
    assert report.launch is not None and report.launch.job is not None and report.launch.layout is not None
    assert "pictures" in [one.name for one in report.assumed]
    plain = engine.estimate(report.launch.model, "h200", report.launch.job, report.launch.layout)
    added = (report.parts or {})["activations"] - plain.memory_bytes["activations"]
    assert added == pytest.approx(4 * 2048 * (16 * 1280 + 6 * 3420), rel=1e-6)


def test_a_tower_that_is_trained_gets_no_verdict():
    seeing = FACTORY.replace("meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-VL-7B-Instruct")
    seeing += "image_max_pixels: 262144\n"
    assert read({"x.yaml": seeing}).verdict != "cannot say"
    assert read({"x.yaml": seeing + "freeze_vision_tower: false\n"}).verdict == "cannot say"
    assert read(SEEING + "--max_length 2048 --freeze_vit false").verdict == "cannot say"


AXOLOTL = (
    "base_model: NousResearch/Llama-3.2-1B\nmicro_batch_size: 2\nsequence_len: 4096\nsample_packing: true\n"
    "gradient_accumulation_steps: 4\noptimizer: adamw_8bit\nbf16: auto\ngradient_checkpointing: true\n"
)


def test_axolotl_s_yaml():
    key, layout, job = of({"x.yaml": AXOLOTL})
    assert (key, layout.micro_batch, job.global_batch, layout.recompute) == ("axolotl", 2, 8, "full")
    # 2 for the weights, 2 for the gradients, and one byte for each moment with its scales
    assert recipe_of(job).bytes_per_param == pytest.approx(6, abs=0.1)
    fsdp = "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n  offload_params: false\n"
    assert of({"x.yaml": AXOLOTL + fsdp}, gpus=8)[1].zero == 3
    cut = "plugins:\n- axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n"
    assert of({"x.yaml": AXOLOTL + cut})[2].software.loss_chunks > 8
    assert of({"x.yaml": AXOLOTL + "activation_offloading: true\n"})[1].offload == "activations"
    galore = AXOLOTL.replace("adamw_8bit", "galore_adamw_8bit")
    assert read({"x.yaml": galore}).verdict == "cannot say"
    assert read({"x.yaml": AXOLOTL + "rl: dpo\n"}).verdict == "cannot say"


def test_experts_of_gpt_oss_are_no_linear_layers():
    """examples/gpt-oss/gpt-oss-20b-sft-lora-singlegpu.yaml: lora_target_linear finds attention alone."""
    text = AXOLOTL.replace("NousResearch/Llama-3.2-1B", "openai/gpt-oss-20b") + "adapter: lora\nlora_r: 8\n"
    job = of({"x.yaml": text + "lora_target_linear: true\n"})[2]
    assert job.adapter == Adapter(8, ("q_proj", "k_proj", "v_proj", "o_proj"))


FACTORY = (
    "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\nper_device_train_batch_size: 1\nbf16: true\n"
)


def test_llama_factory_s_defaults():
    key, layout, job = of({"launch.sh": "llamafactory-cli train x.yaml", "x.yaml": FACTORY})
    assert (key, layout.recompute, job.seq, job.adapter) == ("llama_factory", "full", 2048, Adapter(8))
    pure = of({"x.yaml": FACTORY + "finetuning_type: full\npure_bf16: true\n"})[2]
    assert recipe_of(pure).bytes_per_param == 8
    assert of({"x.yaml": FACTORY + "use_unsloth: true\n"})[1].offload == "activations"
    assert read({"x.yaml": FACTORY + "use_galore: true\n"}).verdict == "cannot say"
    assert "only compatible with the LoRA" in said(
        {"x.yaml": FACTORY + "finetuning_type: full\nquantization_bit: 4\n"}
    )


# -- NeMo Automodel ------------------------------------------------------------------------------------------
AUTOMODEL = """recipe: TrainFinetuneRecipeForNextTokenPrediction
step_scheduler:
  global_batch_size: 64
  local_batch_size: 8
distributed:
  strategy: fsdp2
  tp_size: 1
  dp_size: none
model:
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained
  pretrained_model_name_or_path: meta-llama/Llama-3.2-1B
loss_fn:
  _target_: nemo_automodel.components.loss.masked_ce.MaskedCrossEntropy
optimizer:
  _target_: torch.optim.Adam
"""


def test_automodel_s_yaml():
    key, layout, job = of({"x.yaml": AUTOMODEL}, gpus=8)
    assert (key, layout.zero, layout.micro_batch, job.global_batch) == ("automodel", 3, 8, 64)
    assert recipe_of(job).bytes_per_param == 8
    summed = AUTOMODEL.replace("global_batch_size: 64", "global_batch_size: 128")
    assert read({"x.yaml": summed}, gpus=8).verdict == "cannot say"
    lora = "peft:\n  _target_: nemo_automodel.components._peft.lora.PeftConfig\n  dim: 16\n"
    lora += "  target_modules: '*_proj'\n"
    assert of({"x.yaml": summed + lora}, gpus=8)[2].adapter == Adapter(16)
    assert "must be divisible" in said({"x.yaml": AUTOMODEL.replace("tp_size: 1", "tp_size: 3")}, gpus=8)


@pytest.mark.parametrize("key", ["axolotl", "llama_factory", "ms_swift", "unsloth", "torchtune", "automodel"])
def test_a_slip_of_the_pen_is_said(key):
    text = {
        "axolotl": {"x.yaml": AXOLOTL + "gradient_checkpointingg: true\n"},
        "llama_factory": {"x.yaml": FACTORY + "disable_gradient_checkpointin: true\n"},
        "ms_swift": "swift sft --model Qwen/Qwen2.5-7B --target_moduless all-linear",
        "unsloth": UNSLOTH.replace("max_seq_length", "max_seq_lenght"),
        "torchtune": TUNE + "enable_activation_checkpointin=True",
        "automodel": {"x.yaml": AUTOMODEL.replace("  dp_size: none", "  sequence_paralell: true")},
    }[key]
    report = read(text)
    assert of(text)[0] == key and "did you mean" in " ".join(map(str, report.faults))
    assert key in registry.trainers()


# -- MaxText -------------------------------------------------------------------------------------------------
MAXTEXT = (
    "python3 -m MaxText.train MaxText/configs/base.yml run_name=x model_name=llama2-70b "
    "per_device_batch_size=4 ici_fsdp_parallelism=-1 ici_tensor_parallelism=4 remat_policy=full"
)


def test_maxtext_s_line():
    """Four sequences of each of 128 chips are 16 of each of 32 groups of tensor ranks."""
    key, layout, job = of(MAXTEXT, gpu="tpu-v5p", gpus=128)
    assert (key, layout.tp, layout.zero, layout.micro_batch) == ("maxtext", 4, 3, 16)
    assert (job.global_batch, job.seq, recipe_of(job).bytes_per_param) == (512, 2048, 16)
    for more in ("ici_pipeline_parallelism=2", "quantization=int8", "optimizer_memory_host_offload=True"):
        assert read(f"{MAXTEXT} {more}", gpu="tpu-v5p", gpus=128).verdict == "cannot say"
    policy = MAXTEXT.replace("policy=full", "policy=save_qkv_proj")
    assert read(policy, gpu="tpu-v5p", gpus=128).verdict == "cannot say"
    assert "does not match the product" in said(MAXTEXT, gpus=6)
    assert "did you mean" in said(f"{MAXTEXT} per_device_batch_sizes=2", gpus=8)


# -- Megatron-Bridge's performance scripts -------------------------------------------------------------------
def test_a_performance_recipe_by_its_arguments():
    """src/megatron/bridge/perf_recipes/qwen/b300/qwen3_moe.py at 067f987d: EP 8, 8 × 4,096 tokens, 512 a
    step; in MXFP8 a whole step is one CUDA graph, and experts are padded for it."""
    line = "uv run python scripts/performance/setup_experiment.py -m qwen -mr qwen3_30b_a3b -ng 8 -g b300 -c "
    _, layout, job = of(line + "bf16", gpu="b300", gpus=None)
    assert (layout.gpus, layout.ep, layout.micro_batch, layout.recompute) == (8, 8, 8, "none")
    assert (job.global_batch, job.seq, recipe_of(job).gradient_bytes) == (512, 4096, 2)
    assert read(line + "fp8_mx", gpu="b300", gpus=None).verdict == "cannot say"
    _, layout, job = of(line + "bf16 train.micro_batch_size=2", gpu="b300", gpus=None)
    assert (layout.micro_batch, job.global_batch) == (2, 512)
    large = line.replace("qwen3_30b_a3b -ng 8", "qwen3_235b_a22b --num_gpus 256 --gpus_per_node 8") + "bf16"
    assert of(large, gpu="b200", gpus=None)[1].gpus == 256
    unknown = line.replace("qwen3_30b_a3b", "llama3_8b") + "bf16"
    assert read(unknown, gpu="b300", gpus=None).verdict == "cannot say"


# the techniques of torchtune's README at 7d470bfae, each on top of those before it: full fine-tuning of 3B on
# an A100, batches of 2 texts of 4,096 tokens; GiB that are active at most
TECHNIQUES = {
    "dataset.packed=True compile=False loss=torchtune.modules.loss.CrossEntropyLoss": 60.0,
    "compile=True": 51.0,
    "loss=torchtune.modules.loss.CEWithChunkedOutputLoss": 42.9,
    "enable_activation_checkpointing=True": 24.9,
    "optimizer_in_bwd=True": 23.1,
    "enable_activation_offloading=True": 21.8,
}


def test_the_memory_of_torchtune_s_techniques_is_within_a_tenth():
    """Nothing was fitted to these. PyTorch counts its tensors alone, so what lies outside of it is left
    out."""
    plain = {"enable_activation_checkpointing": "False", "optimizer_in_bwd": "False"}
    plain |= {"enable_activation_offloading": "False", "optimizer": "torch.optim.AdamW"}
    plain |= {"tokenizer.max_seq_len": "4096", "gradient_accumulation_steps": "1", "batch_size": "2"}
    line = "tune run full_finetune_single_device --config llama3_2/3B_full_single_device"
    for words, published in TECHNIQUES.items():
        plain |= dict(word.split("=") for word in words.split())
        report = read(" ".join([line, *(f"{key}={value}" for key, value in plain.items())]), "a100-80")
        assert report.parts is not None
        ours = (report.total_bytes - report.parts["overhead"]) / 2**30
        assert ours == pytest.approx(published, rel=0.1), (words, ours)
