"""Adapters in the words of TRL, LLaMA-Factory, Axolotl and PEFT, and launches whose outcome is public."""

from dataclasses import replace

import pytest

import engine
from engine.frameworks import axolotl, llama_factory, peft
from engine.launch import shown
from engine.mechanism.adapters import Adapter

LLAMA = "model_name_or_path: meta-llama/Llama-3.1-8B\nper_device_train_batch_size: 1\nbf16: true\n"
AXOLOTL = (
    "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 1\nper_device_train_batch_size: 1\nbf16: true\n"
)
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def read(text, gpus=1):
    return engine.check_launch({"args.yaml": text}, "h100-sxm", gpus)


def adapter_of(report):
    assert report.launch is not None and report.launch.job is not None
    return report.launch.job.adapter


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (LLAMA + "use_peft: true\n", Adapter(16, ("q_proj", "v_proj"))),
        (LLAMA + "use_peft: true\nlora_r: 64\nlora_target_modules: all-linear\n", Adapter(64)),
        (
            LLAMA + "use_peft: true\nlora_target_modules: [q_proj, k_proj, v_proj, o_proj]\n",
            Adapter(16, ATTENTION),
        ),
        (
            LLAMA + "use_peft: true\nlora_target_modules:\n- w1\n- w2\n",
            Adapter(16, ("gate_proj", "down_proj")),
        ),
        (
            LLAMA + "use_peft: true\nload_in_4bit: true\n",
            Adapter(16, ("q_proj", "v_proj"), base="nf4", rest="fp32"),
        ),
        (LLAMA + "finetuning_type: lora\n", Adapter(8)),
        (LLAMA + "finetuning_type: lora\nlora_target: q_proj,v_proj\n", Adapter(8, ("q_proj", "v_proj"))),
        (
            LLAMA + "finetuning_type: lora\nlora_rank: 32\nuse_dora: true\nquantization_bit: 4\n",
            Adapter(32, kind="dora", base="nf4-double"),
        ),
        (
            AXOLOTL + "adapter: qlora\nload_in_4bit: true\nlora_r: 32\nlora_target_linear: true\n",
            Adapter(32, base="nf4-double"),
        ),
        (
            AXOLOTL
            + "adapter: lora\nlora_r: 4\nlora_target_modules: 'layers.[\\d]+.(mlp|self_attn).(up|q)_proj'\n",
            Adapter(4, ("up_proj", "q_proj")),
        ),
        (LLAMA + "use_peft: true\nlora_target_modules: ['*.q_proj']\n", Adapter(16, ("q_proj",))),
        (LLAMA + "finetuning_type: full\n", None),
        (LLAMA + "use_peft: false\n", None),
    ],
)
def test_words_of_four_trainers(text, meant):
    report = read(text)
    adapter = adapter_of(report)  # each program has a dropout of its own, which is not asked here
    assert (replace(adapter, dropout=0.0) if adapter else None) == meant
    assert not report.unmodelled and report.verdict in ("fits", "close", "does not fit")


@pytest.mark.parametrize(
    ("one", "written"),
    [
        (Adapter(32), peft.written),
        (Adapter(8, ATTENTION, "dora"), peft.written),
        (Adapter(16, base="nf4", rest="fp32"), peft.written),
        (Adapter(16, ("q_proj",), base="nf4-double"), llama_factory.written),
        (Adapter(16, ("q_proj",), "dora"), llama_factory.written),
        (None, llama_factory.written),
        (None, peft.written),
    ],
)
def test_what_is_written_is_read_back(one, written):
    assert adapter_of(read(LLAMA + "gradient_checkpointing: true\n" + written(one))) == one


@pytest.mark.parametrize("one", [Adapter(32), Adapter(8, ATTENTION, "dora"), Adapter(16, base="nf4"), None])
def test_what_is_written_for_axolotl_is_read_back(one):
    text = "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 1\nsequence_len: 512\n"
    assert adapter_of(read(text + axolotl.written(one))) == one


def test_no_matrix_of_that_name():
    report = read(LLAMA + "use_peft: true\nlora_target_modules: kv_b_proj\n")
    assert (
        report.verdict == "will not start"
        and "Target modules {kv_b_proj} not found" in report.refused[0].error
    )


def test_linear_attention_gets_no_verdict():
    text = LLAMA.replace("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-Next-80B-A3B-Instruct")
    on_288_gb = engine.check_launch({"sft.yaml": text + "use_peft: true\n"}, "b300", 1)
    assert on_288_gb.verdict == "cannot say" and on_288_gb.estimate is None
    on_80_gb = read(text + "use_peft: true\n")  # 80B parameters in 16 bits are sure to be too much
    assert on_80_gb.verdict == "does not fit" and "the weights alone take" in shown.headline(on_80_gb)


def test_the_best_keeps_the_adapter():
    report = read(LLAMA + "finetuning_type: lora\nquantization_bit: 4\ncutoff_len: 4096\n", 8)
    assert report.best is not None and "quantization_bit: 4" in report.best_text


def test_peft_s_own_example_of_70b():
    """64 GB of each of 8 H100s, by PEFT's guide to DeepSpeed (docs/source/accelerate/deepspeed.md): Llama 2
    70B, r = 8 on all matrices, stage 3, eight sequences of 2,048 and checkpoints."""
    launch = (
        "accelerate launch --num_processes 8 train.py --model_name_or_path meta-llama/Llama-2-70b-hf "
        "--max_seq_length 2048 --bf16 True --per_device_train_batch_size 8 --gradient_accumulation_steps 4 "
        "--gradient_checkpointing True --use_peft_lora True --lora_r 8 --lora_target_modules all-linear "
        "--use_4bit_quantization False --deepspeed ds_z3.json\n"
    )
    report = engine.check_launch(launch, "h100-sxm")
    assert report.verdict == "fits" and report.estimate is not None and report.estimate.layout.zero == 3
    assert report.total_bytes == pytest.approx(64e9, rel=0.2)


def test_dora_of_70b_over_sequences_of_20k():
    """Out of memory on 8 H200 (github.com/hiyouga/LlamaFactory/issues/6999): DoRA of rank 16 on every matrix
    of Llama 3.3 70B under stage 3, two sequences of 20,480."""
    text = (
        "model_name_or_path: meta-llama/Llama-3.3-70B-Instruct\nfinetuning_type: lora\nlora_rank: 16\n"
        "lora_target: all\nuse_dora: true\ndeepspeed: ds_z3_config.json\ncutoff_len: 20480\n"
        "per_device_train_batch_size: 2\ngradient_accumulation_steps: 8\nbf16: true\n"
    )
    dora = engine.check_launch({"dora.yaml": text}, "h200", 8)
    lora = engine.check_launch({"lora.yaml": text.replace("use_dora: true", "use_dora: false")}, "h200", 8)
    assert dora.verdict in ("close", "does not fit")  # without fragmentation, which this job has
    assert dora.total_bytes > lora.total_bytes


def test_52k_tokens_of_8b():
    """Out of memory on an H100 (github.com/hiyouga/LlamaFactory/issues/5545): QLoRA of Llama 3.1 8B with one
    sequence of 51,974 tokens, whose logits alone are 26.7 GB in fp32."""
    text = (
        "model_name_or_path: meta-llama/Llama-3.1-8B-Instruct\nfinetuning_type: lora\nlora_target: all\n"
        "quantization_bit: 4\ncutoff_len: 51974\nper_device_train_batch_size: 1\n"
        "gradient_accumulation_steps: 8\nbf16: true\n"
    )
    assert engine.check_launch({"qlora.yaml": text}, "h100-sxm", 1).total_bytes > 70e9


def test_adapters_beside_a_server():
    """Four slots of rank 64 for every matrix of Llama 3.1 8B: 4 · 2 bytes · 4 · 41,943,040."""
    line = "vllm serve meta-llama/Llama-3.1-8B --enable-lora --max-loras 4 --max-lora-rank 64"
    report, bare = (engine.check_launch(each, "h100-sxm") for each in (line, line.split(" --enable")[0]))
    assert report.verdict == "fits" and report.parts is not None and bare.parts is not None
    assert report.parts["adapters"] == 4 * 2 * 4 * 41_943_040
    assert bare.parts["cache"] - report.parts["cache"] == pytest.approx(report.parts["adapters"])
    assert "adapters" in report.extrapolates and "adapters" not in bare.parts
    usual = engine.check_launch(line.split(" --max-loras")[0], "h100-sxm")
    assert usual.parts is not None and usual.parts["adapters"] == 2 * 41_943_040
    sglang = "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B --enable-lora"
    assert engine.check_launch(sglang, "h100-sxm").verdict == "cannot say"
