"""The report: each framework's files are read, its own errors are predicted, and every proposed change does
what it promises."""

import json
from dataclasses import replace

import pytest

import engine
from engine import catalog
from engine.frameworks import host_memory, hugging_face, settings
from engine.launch import shown, verdict
from engine.mechanism import memory
from tests.cases import in_one_test

LLAMA_70B = """--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64
 --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear
 --untie-embeddings-and-output-weights --position-embedding-type rope --attention-dropout 0 --hidden-dropout 0
 --vocab-size 128256 --seq-length 8192 --max-position-embeddings 8192""".replace("\n", " \\\n")
MEGATRON = f"""#!/bin/bash
GPUS_PER_NODE=8
NNODES=8
TP=8
PP=2
ARGS=(
  --tensor-model-parallel-size $TP
  --pipeline-model-parallel-size $PP
  --sequence-parallel
  --micro-batch-size 2
  --global-batch-size 512
  --use-distributed-optimizer
  --overlap-grad-reduce
  --bf16
)
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py ${{ARGS[@]}} {LLAMA_70B}
"""
TITAN = """[model]
name = "llama3"
flavor = "8B"

[training]
local_batch_size = 2
seq_len = 8192

[activation_checkpoint]
mode = "full"
"""
DS = (
    '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true},\n'
    ' "zero_optimization": {"stage": 2}}'
)
RUN = (
    "deepspeed --num_gpus=8 train.py --model_name_or_path meta-llama/Llama-2-7b-hf --deepspeed ds.json "
    "--gradient_checkpointing False --model_max_length 2048"
)
FSDP = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: 8
fsdp_config:
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_activation_checkpointing: true
"""
TRAINER = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: "
    "1\ngradient_accumulation_steps: 2\nmax_length: 4096\n"
)
BRIDGE = (
    "torchrun --nproc-per-node 8 run_recipe.py recipe=llama3_8b_pretrain_config "
    "model.tensor_model_parallel_size=2 "
    "train.micro_batch_size=1 train.global_batch_size=128 dataset.sequence_length=8192"
)
VLLM = (
    "CUDA_VISIBLE_DEVICES=0,1 vllm serve --trust-remote-code --tensor_parallel_size 2 "
    "--gpu_memory_utilization=0.98 /models/DeepSeek-R1-Distill-Qwen-14B"
)

READ = {
    "megatron": (
        (MEGATRON, None),
        dict(gpus=64, tp=8, pp=2, zero=1, micro_batch=2),
        dict(global_batch=512, seq=8192),
    ),
    "torchtitan": (
        (TITAN, 16),
        dict(gpus=16, zero=3, micro_batch=2, recompute="full"),
        dict(global_batch=32, seq=8192),
    ),
    "hugging_face": (
        ({"ds.json": DS, "run.sh": RUN}, None),
        dict(gpus=8, zero=2, micro_batch=2),
        dict(global_batch=64),
    ),
    "accelerate": (
        ([FSDP, TRAINER], None),
        dict(gpus=8, zero=3, micro_batch=1, recompute="full"),
        dict(global_batch=16),
    ),
    "bridge": ((BRIDGE, None), dict(gpus=8, tp=2, micro_batch=1, zero=1), dict(global_batch=128, seq=8192)),
}


@pytest.mark.parametrize("name", READ)
def test_each_framework_is_read(name):
    (texts, gpus), layout, job = READ[name]
    report = engine.check_launch(texts, "h100-sxm", gpus)
    assert not report.faults and not report.refused, (report.faults, report.refused)
    assert {key: getattr(report.launch.layout, key) for key in layout} == layout
    assert {key: getattr(report.launch.job, key) for key in job} == job
    assert report.parts and sum(report.parts.values()) == pytest.approx(report.total_bytes)
    assert report.verdict in (verdict.FITS, verdict.CLOSE, verdict.TOO_LARGE)
    json.dumps(report.as_dict(), allow_nan=False)


def test_a_value_is_shown_where_it_is_written():
    report = engine.check_launch({"run.sh": MEGATRON}, "h100-sxm")
    where = {s.name: s.line for s in report.settings}
    assert (where["tp"], where["pp"], where["micro_batch"], where["layers"]) == (4, 5, 10, 16)
    assert all(s.file == "run.sh" for s in report.settings)


@pytest.mark.parametrize(
    ("line", "framework", "tp", "share", "longest"),
    [
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32k", "vllm", 1, 0.92, 32000),
        (
            "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-72B-Instruct -tp 8",
            "vllm",
            8,
            0.92,
            32768,
        ),
        (
            "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2 --context-length 8192",
            "sglang",
            2,
            0.906,
            8192,
        ),
        (
            "trtllm-serve nvidia/Llama-3.1-70B-Instruct-FP8 --tp_size 4 --max_seq_len 4096",
            "trtllm",
            4,
            0.9,
            4096,
        ),
    ],
)
def test_each_server_is_read(line, framework, tp, share, longest):
    launch = engine.check_launch(line, "h200").launch
    s = launch.server
    assert (launch.framework, s.tp, s.share, s.longest) == (framework, tp, share, longest)
    assert launch.gpus == tp and (s.weight_precision == "fp8") == ("FP8" in line)


def test_memory_and_time_are_the_engine_s():
    report = engine.check_launch(TITAN, "h100-sxm", 16)
    found = report.launch
    machine = engine.Machine.of("h100-sxm")
    alone = engine.estimate(found.model, machine, found.job, found.layout)
    assert report.estimate.step_s == alone.step_s and report.total_bytes == alone.memory_bytes["total"]
    assert report.extrapolates == alone.extrapolates


def test_a_server_s_room_is_what_its_share_leaves():
    report = engine.check_launch(VLLM, "rtx4090")
    room, gpu = report.room, catalog.gpu("rtx4090")
    beside = sum(room.parts[name] for name in ("weights", "activations", "framework", "graphs"))
    left = 0.98 * memory.capacity_bytes(gpu) - beside
    assert room.cache_bytes == pytest.approx(left)
    assert room.tokens == pytest.approx(
        left / (2 * 48 * 8 * 128 * 2 / 2), rel=1e-4
    )  # two halves of 48 layers' heads
    assert report.verdict == verdict.TOO_LARGE
    assert "(131072), (12.00 GiB KV cache is needed" in report.refused[0].error


ERRORS = {
    "is not divisible by total_model_size (total_model_size=24)": MEGATRON.replace("PP=2", "PP=3"),
    "Number of layers should be divisible by the pipeline-model-parallel size": MEGATRON.replace(
        "layers 80", "layers 81"
    ),
    "(510) is not divisible by micro batch size (2) times data parallel size (4)": MEGATRON.replace(
        "512", "510"
    ),
    "num_query_groups (8) must be a multiple of tensor_model_parallel_size (16)": MEGATRON.replace(
        "TP=8", "TP=16"
    ),
    "max_position_embeddings (8192) must be greater than or equal to seq_length (16384)": MEGATRON.replace(
        "--seq-length 8192", "--seq-length 16384"
    ),
    "Expert bias for aux-loss-free routing only supports sigmoid score function": MEGATRON.replace(
        "--use-distributed-optimizer", "--use-distributed-optimizer --moe-router-enable-expert-bias"
    ),
    "--overlap-param-gather only supported with distributed optimizer": MEGATRON.replace(
        "--use-distributed-optimizer", "--overlap-param-gather"
    ),
    "Invalid parallel dims: dp_replicate(1) * dp_shard(3) * cp(1) * tp(1) * pp(1) != WORLD_SIZE(8)": TITAN
    + "[parallelism]\ndata_parallel_shard_degree = 3\n",
    "multiple of local batch size times data-parallel degree (24 % (2 * 8) != 0)": TITAN.replace(
        "seq_len", "global_batch_size = 24\nseq_len"
    ),
    "train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 32 != 2 * 4 * 8": {
        "a": DS.replace("{", '{"train_batch_size": 32, ', 1),
        "b": RUN,
    },
    "Total number of attention heads (64) must be divisible by tensor parallel size (3).": "vllm serve "
    "meta-llama/Llama-3.1-70B -tp 3",
    "World size (4) is larger than the number of available GPUs (2)": VLLM.replace("size 2", "size 4"),
    "No available memory for the cache blocks": "vllm serve meta-llama/Llama-3.1-70B -tp 1",
    "increase --mem-fraction-static. Current value: mem_fraction_static=0.5": "python -m "
    "sglang.launch_server --model meta-llama/Llama-3.1-70B --tp 2 --mem-fraction-static 0.5",
}


@pytest.mark.parametrize("words", ERRORS)
def test_what_cannot_start_says_so_in_the_framework_s_words(words):
    report = engine.check_launch(
        ERRORS[words],
        "h100-sxm",
        None if "vllm" in str(ERRORS[words]) else 8 if "WORLD" in words or "local" in words else None,
    )
    assert any(words in refused.error for refused in report.refused), report.refused
    assert report.verdict in (verdict.ILLEGAL, verdict.TOO_LARGE)
    assert shown.headline(report).count("\n") == 0


@pytest.mark.parametrize(
    ("texts", "gpu", "gpus"),
    [
        (MEGATRON, "h100-sxm", None),
        (MEGATRON.replace("size 2", "size 1"), "b200", None),
        (TITAN, "a100-40", 8),
        (TITAN.replace("full", "none"), "h100-sxm", 8),
        ({"ds.json": DS, "run.sh": RUN}, "a100-40", None),
        ([FSDP, TRAINER], "a10g", None),
        ("vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 2", "h100-sxm", None),
        (VLLM, "rtx4090", None),
    ],
    ids=["megatron", "fitting megatron", "titan", "titan none", "deepspeed", "fsdp", "vllm", "vllm 4090"],
)
def test_a_change_is_a_line_that_does_what_it_says(texts, gpu, gpus):
    """Each line stands in no text as given; and what does not fit is offered something that does."""
    report = engine.check_launch(texts, gpu, gpus)
    given = (
        texts if isinstance(texts, str) else "\n".join(texts.values() if isinstance(texts, dict) else texts)
    )
    assert report.changes
    for change in report.changes:
        assert change.lines and all(line.strip("… ") not in given for line in change.lines)
        assert change.saved_bytes == pytest.approx(report.total_bytes - change.total_bytes)
        if report.fits:
            assert change.fits and change.faster_by > 0
    assert any(change.fits for change in report.changes)
    if report.ends == "fails" and len(report.changes) > 1:
        assert report.changes[0].fits


def test_a_change_that_is_not_enough_says_so():
    """16 bytes of each of 70 billion weights fit into no eight GPUs, whatever is edited; those of 8 billion
    do."""
    for text, enough in ((TITAN, True), (TITAN.replace("8B", "70B"), False)):
        changes = engine.check_launch(text.replace("full", "none"), "h100-sxm", 8).changes
        assert changes
        for change in changes:
            assert change.fits == enough
            assert shown.gained(change).endswith("still does not fit") == (not enough)


def test_the_planner_s_text_is_of_one_step():
    """How long to train no text says."""
    assert "  --train-iters 1\n" in engine.check_launch(MEGATRON, "h100-sxm").best_text


def test_texts_may_have_names_without_a_dictionary():
    report = engine.check_launch([("run.sh", RUN), ("ds.json", DS)], "h100-sxm")
    assert {one.file for one in report.settings} == {"run.sh", "ds.json"}


def test_an_object_on_one_line_is_read_between_other_lines():
    """As in an issue: the file of DeepSpeed, and behind it how it is started."""
    report = engine.check_launch(f"{DS.replace(chr(10), '')}\n{RUN}\n", "h100-sxm")
    assert not report.faults and (report.launch.layout.zero, report.launch.gpus) == (2, 8)


@pytest.mark.parametrize(("longest", "words"), [(8192, "of 1024 + 256 tokens"), (512, "of 256 + 256 tokens")])
def test_of_which_requests_a_server_s_rate_is_said(longest, words):
    """Where the texts say nothing of them, and no more than the server takes at once."""
    serves = f"vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len {longest}"
    assert words in "\n".join(shown.lines(engine.check_launch(serves, "h100-sxm")))


def test_stages_of_a_server_hold_a_part_of_the_weights_each():
    """70.55 billion weights of two bytes over four tensor ranks and two stages."""
    serves = "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 -pp 2"
    parts = engine.check_launch(serves, "h100-sxm").room.parts
    assert parts["weights"] == pytest.approx(2 * 70.55e9 / 8, rel=0.01)


def test_an_edited_text_read_again_is_the_change():
    """The first change of a script, made by hand, gives the same report."""
    before = engine.check_launch({"run.sh": MEGATRON}, "h100-sxm")
    change = next(c for c in before.changes if c.what == "micro_batch 1")
    assert change.lines == ("--micro-batch-size 1",)
    after = engine.check_launch(
        {"run.sh": MEGATRON.replace("--micro-batch-size 2", change.lines[0])}, "h100-sxm"
    )
    assert after.total_bytes == change.total_bytes and after.estimate.step_s == change.step_s
    assert not before.fits and after.fits


def test_a_value_is_edited_where_its_variable_is_set():
    report = engine.check_launch({"run.sh": MEGATRON}, "h100-sxm")
    wider = [c for c in report.changes if c.what.startswith("pp 4")]
    assert not wider or wider[0].lines[0] == "PP=4"


@pytest.mark.parametrize("name", READ)
def test_the_planner_s_best_is_no_slower_and_comes_back(name):
    """It fits, nothing that was offered beats it, and its text is read as that layout again."""
    (texts, gpus), _, _ = READ[name]
    report = engine.check_launch(texts, "h100-sxm", gpus)
    best = report.best
    assert best.fits and report.best_text
    times = [c.step_s for c in report.changes if c.fits and c.what.split()[0] != "loss"]
    own = [report.estimate.step_s] if report.fits and name != "bridge" else []
    cut = name in ("hugging_face", "accelerate") or all(t * 1.0001 >= best.step_s for t in (*times, *own))
    assert cut
    if name in ("megatron", "torchtitan"):
        again = engine.check_launch(report.best_text, "h100-sxm", best.layout.gpus)
        assert again.launch.layout == best.layout


def test_copies_of_the_state_are_read_and_tried():
    """Four copies of an 8B on 64 GPUs: 16 bytes a parameter over 16 of them. On 1,024 GPUs the fastest 70B
    keeps two copies, and its file is read as that again."""
    copies = f"{TITAN}\n[parallelism]\ndata_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 16\n"
    found = engine.check_launch({"t.toml": copies}, "h100-sxm", 64)
    assert (found.launch.layout.zero, found.launch.layout.shard) == (3, 16)
    state = sum(found.estimate.memory_bytes[name] for name in ("weights", "gradients", "optimizer"))
    assert state == pytest.approx(16 * 8.03e9 / 16, rel=1e-3)
    large = TITAN.replace("8B", "70B").replace("local_batch_size = 2", "local_batch_size = 1")
    best = engine.check_launch({"t.toml": large}, "h100-sxm", 1024)
    assert best.best.layout.shard == best.best.layout.dp * best.best.layout.cp // 2
    assert engine.check_launch(best.best_text, "h100-sxm", 1024).launch.layout == best.best.layout


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (
            {"a": DS.replace('"stage": 2', '"stage": 3, "offload_optimizer": {"device": "nvme"}'), "b": RUN},
            "on a disk",
        ),
        ([FSDP, TRAINER, "use_peft: true\nload_in_8bit: true\nper_device_train_batch_size: 1\n"], "4 bits"),
        ([FSDP, TRAINER + "finetuning_type: oft\n"], "LoRA"),
        ([FSDP, TRAINER + "load_in_4bit: true\n"], "under an adapter"),
        ([FSDP, TRAINER + "use_peft: true\nlora_target_modules: [q_proj, lm_head]\n"], "lm_head"),
        ('vllm serve Qwen/Qwen3-8B --speculative-config \'{"method": "eagle3", "model": "a/b"}\'', "draft"),
        (
            MEGATRON.replace("--bf16", "--bf16 --optimizer-cpu-offload --optimizer-offload-fraction 0.5"),
            "a part of the optimizer",
        ),
        (TITAN + '[float8]\nenable_float8_linear = true\nrecipe_name = "rowwise"\n', "for each row"),
    ],
)
def test_what_is_not_modelled_gets_no_verdict(texts, why):
    report = engine.check_launch(texts, "h100-sxm")
    assert report.verdict == verdict.UNKNOWN and not report.changes
    assert any(why in one.why for one in report.unmodelled)
    assert "cannot say" in shown.headline(report) and not report.total_bytes and report.estimate is None


def test_one_s_own_machine_and_gpu_count():
    slow = engine.Machine.of("h100-sxm", nic_bytes_per_s=5e9)
    usual, slower = (engine.check_launch(MEGATRON, at) for at in ("h100-sxm", slow))
    assert slower.estimate.step_s > usual.estimate.step_s and slower.total_bytes == usual.total_bytes
    large = replace(catalog.gpu("h100-sxm"), hbm_bytes=96e9, reported_bytes=0.0, name="Ours")
    own = engine.check_launch(MEGATRON, large)
    assert own.capacity_bytes == 96e9 and own.fits and "gpu" in own.extrapolates
    said = engine.check_launch(TITAN, "h100-sxm")
    assert any(a.name == "gpus" for a in said.assumed) and said.launch.gpus == 1


def test_the_lines_name_everything():
    report = engine.check_launch({"run.sh": MEGATRON}, "h100-sxm")
    text = "\n".join(shown.lines(report))
    for part in (
        "GiB on the fullest GPU",
        "Memory of the fullest GPU",
        "The best changes",
        "planner's best",
        "Read:",
        "Assumed:",
    ):
        assert part in text
    assert "run.sh:4: tensor-model-parallel-size 8 → tp 8" in text
    assert all(len(line) < 400 for line in text.splitlines())


def test_what_a_recipe_may_have_set_is_assumed_in_so_many_words():
    """A recipe of Megatron Bridge has values of its own, which an override alone would show."""
    text = "\n".join(shown.lines(engine.check_launch(BRIDGE, "h100-sxm")))
    for part in ("pp 1: not overridden, and the recipe's own value is", "distributed True: as the library's"):
        assert part in text


def test_slurm_s_lines_and_heredocs_count():
    script = (
        "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\ncat <<EOF > ds.json\n"
        '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, '
        '"zero_optimization": {"stage": 3}}\nEOF\n'
        "srun python train.py --model_name_or_path Qwen/Qwen2.5-32B --deepspeed ds.json --max_length 4096\n"
    )
    found = engine.check_launch(script, "h100-sxm").launch
    assert (found.gpus, found.layout.zero, found.model.key) == (32, 3, "qwen2.5-32b")


def test_a_config_beside_it_is_the_model():
    config = {
        "model_type": "llama",
        "num_hidden_layers": 20,
        "hidden_size": 2048,
        "num_attention_heads": 16,
        "intermediate_size": 5504,
        "vocab_size": 32000,
    }
    texts = {
        "ds.json": DS,
        "config.json": json.dumps(config),
        "run.sh": "deepspeed --num_gpus 4 train.py --deepspeed ds.json --max_length 1024",
    }
    found = engine.check_launch(texts, "a100-80").launch
    assert (found.model.depth, found.model.hidden, found.gpus) == (20, 2048, 4)


BLOOM = r"""#!/bin/bash
#SBATCH --nodes=48
#SBATCH --gres=gpu:8
MICRO_BATCH_SIZE=2
ZERO_STAGE=0
GPT_ARGS=" \
    --pp-partition-method 'type:transformer|embedding' --num-layers 70 --hidden-size 14336 \
    --num-attention-heads 112 --seq-length 2048 --max-position-embeddings 2048 \
    --micro-batch-size $MICRO_BATCH_SIZE --global-batch-size 2048 --embed-layernorm --bf16 \
    --position-embedding-type alibi --checkpoint-activations --pad-vocab-size-to 250880 "
cat <<EOT > ds.json
{
  "train_micro_batch_size_per_gpu": $MICRO_BATCH_SIZE,
  "zero_optimization": {
    "stage": $ZERO_STAGE
  },
  "bf16": {
    "enabled": true
  }
}
EOT
CMD="pretrain_gpt.py --tensor-model-parallel-size 4 --pipeline-model-parallel-size 12 \
    $GPT_ARGS --deepspeed --deepspeed_config ds.json --zero-stage $ZERO_STAGE"
srun bash -c "python -m torch.distributed.run --nproc_per_node 8 $CMD" 2>&1 | tee log
"""


def test_bloom_s_script_is_read_whole():
    """Megatron-DeepSpeed: the command stands in a text that bash is given, the JSON in a here-document."""
    found = engine.check_launch(BLOOM, "a100-80")
    launch, a = found.launch, found.launch.layout
    assert (launch.gpus, a.tp, a.pp, a.zero, a.micro_batch, a.recompute) == (384, 4, 12, 1, 2, "full")
    assert launch.job.recipe.key == "bf16-adam-two-grads" and not launch.job.software.flash
    assert launch.model.depth == 70 and launch.model.vocab == 250880 and launch.model.embedding_norm
    assert found.verdict == verdict.FITS and not found.refused
    line = next(s.line for s in found.settings if s.name == "micro_batch")
    assert BLOOM.splitlines()[line - 1] == "MICRO_BATCH_SIZE=2"


def test_megatron_lm_itself_refuses_what_only_the_fork_knows():
    text = MEGATRON.replace("--bf16", "--bf16 --checkpoint-activations")
    assert "no longer valid" in engine.check_launch(text, "h100-sxm").refused[0].error


def test_pytorch_s_own_loss_keeps_more_than_a_library_s():
    """Counted by PyTorch's profiler: 12 bytes a logit, 16 where ranks share the vocabulary. Compiled, it
    keeps the logits in bf16 and their gradient: PyTorch does not write one over the other."""
    m = catalog.model("llama3.1-8b")
    logits = 2 * 8192 * m.vocab
    assert memory.loss_bytes(m, 8192, 2) == 10 * logits
    assert memory.loss_bytes(m, 8192, 2, pytorch=True) == 12 * logits
    assert memory.loss_bytes(m, 8192, 2, 8, pytorch=True) == 2 * logits
    assert memory.loss_bytes(m, 8192, 2, loss="fused", compiled=True) == 4 * logits
    assert memory.loss_bytes(m, 8192, 2, loss="fused") == 2 * logits


LLAMA_FACTORY = """### model
model_name_or_path: /data/llm/Meta-Llama-3-8B-Instruct
finetuning_type: full
deepspeed: examples/deepspeed/ds_z3_config.json
cutoff_len: 1024
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
fp16: true
"""


def test_a_deepspeed_file_that_is_not_there_is_taken_by_its_name():
    """hiyouga/LlamaFactory#5977: eight RTX 3090 run out of memory with this file, and no smaller batch is
    left."""
    report = engine.check_launch(LLAMA_FACTORY, "rtx3090", 8)
    layout, assumed = report.launch.layout, {one.name: one.why for one in report.assumed}
    assert (layout.zero, layout.recompute) == (3, "full") and "ds_z3_config.json" in assumed["zero"]
    assert not report.fits and report.parts["adam_step"] > 0
    # the one edit that is enough: the same Adam without a tensor of square roots
    assert [change.what for change in report.changes] == ["optimizer adamw_torch_fused"]
    assert report.changes[0].mends and report.best is None
    saved = report.changes[0].saved_bytes
    assert 0 < saved <= 4.0 * host_memory.SUB_GROUP  # another moment may be the fullest then
    assert "then it fits, saves " in "\n".join(shown.lines(report))
    smaller = engine.check_launch(LLAMA_FACTORY, "rtx3090", 4)
    assert smaller.changes and shown.NO_EDIT in shown.lines(smaller)
    unsaid = engine.check_launch(LLAMA_FACTORY.replace("ds_z3_config", "mine"), "rtx3090", 8)
    assert "mine.json is not among these texts" in {one.name: one.why for one in unsaid.assumed}["zero"]
    offloaded = engine.check_launch(LLAMA_FACTORY.replace("z3", "z3_offload"), "rtx3090", 8)
    assert offloaded.launch.layout.offload == "optimizer+gradients+parameters" and offloaded.fits


def test_a_model_takes_as_many_tokens_as_its_config_or_its_name_says():
    coder = engine.check_launch("vllm serve Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8", "h100-sxm")
    assert coder.launch.server.longest == 262144
    config = '{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2, '
    config += '"intermediate_size": 256, "vocab_size": 1000, "max_position_embeddings": 16384}'
    own = engine.check_launch({"run.sh": "vllm serve mine/own", "config.json": config}, "h100-sxm")
    assert own.launch.server.longest == 16384


def test_deepspeed_moves_to_the_host_what_its_json_says():
    """Of stage 2 the state and the gradients; parameters in stage 3 alone; and an error for another place."""
    for stage, said, moves in (
        (2, '"offload_optimizer": {"device": "cpu"}', "optimizer+gradients"),
        (2, '"offload_param": {"device": "cpu"}', "none"),
        (3, '"offload_param": {"device": "cpu"}', "parameters"),
        (3, '"offload_optimizer": {"device": "none"}', "none"),
        (1, '"cpu_offload": true', "optimizer+gradients"),
    ):
        text = DS.replace('"stage": 2', f'"stage": {stage}, {said}')
        found = engine.check_launch({"ds.json": text, "run.sh": RUN}, "h100-sxm")
        assert found.launch.layout.offload == moves, said
    text = DS.replace('"stage": 2', '"stage": 2, "offload_optimizer": {"device": "gpu"}')
    wrong = engine.check_launch({"ds.json": text, "run.sh": RUN}, "h100-sxm")
    assert wrong.verdict == verdict.ILLEGAL and "device must be none, cpu or nvme" in wrong.refused[0].error


def test_liger_s_chunks_by_hand():
    """16 sequences of 16,384 tokens of Qwen2.5 1.5B (151,936 words, width 1,536): 262,144 / 99 tokens are
    2,648, rounded up 4,096, so 64 chunks."""
    assert hugging_face.liger_chunks(catalog.model("qwen2.5-1.5b"), 16 * 16384) == 64
    assert hugging_face.liger_chunks(catalog.model("llama3-8b"), 1) == 1


# -- Megatron-Bridge ---------------------------------------------------------------------------------------
def test_only_documented_overrides_are_read():
    """A key in a group that has none of that name is listed as not read, and changes nothing."""
    plain = engine.check_launch(BRIDGE, "h100-sxm")
    for key, slip in (
        ("tokenizer.tensor_model_parallel_size", False),
        ("model.zero_stage", False),
        ("ddp.pipeline_model_parallel_size", False),
        ("model.pipeline_model_paralel_size", True),
    ):
        report = engine.check_launch(f"{BRIDGE} {key}=4", "h100-sxm")
        assert {one.key: one.why for one in report.ignored} == ({} if slip else {key: settings.NOT_READ})
        assert ["did you mean model.pipeline_model_parallel_size?" in str(f) for f in report.faults] == [
            True
        ] * slip
        assert report.launch.layout == plain.launch.layout and report.total_bytes == plain.total_bytes


def test_an_override_of_the_recipe_s_model_changes_the_model():
    """Half of the layers, and a narrower model; the planner's text has it too."""
    report = engine.check_launch(f"{BRIDGE} model.num_layers=16 model.hidden_size=2048", "h100-sxm")
    model = report.launch.model
    assert (model.depth, model.hidden, model.head_dim, model.heads) == (16, 2048, 64, 32)
    assert not report.ignored and report.total_bytes < engine.check_launch(BRIDGE, "h100-sxm").total_bytes
    again = engine.check_launch(report.best_text, "h100-sxm", 8).launch
    assert (again.model.depth, again.model.hidden) == (16, 2048)
    wrong = engine.check_launch(f"{BRIDGE} model.hidden_size=1000", "h100-sxm")
    assert "must be a multiple of num_attention_heads 32" in str(wrong.faults[0])


@pytest.mark.parametrize("optimizer", ["adamw_torch_fused", "adafactor", "adamw_8bit"])
def test_an_optimizer_that_takes_no_roots_is_not_exchanged(optimizer):
    report = engine.check_launch(f"{LLAMA_FACTORY}optim: {optimizer}\n", "rtx3090", 8)
    assert report.fits and not any("optimizer" in change.what for change in report.changes)


@pytest.mark.parametrize("optimizer", ["muon", "schedule_free_sgd_new", "apollo"])
def test_an_optimizer_that_nobody_here_knows_is_not_taken_for_adam(optimizer):
    report = engine.check_launch(f"{LLAMA_FACTORY}optim: {optimizer}\n", "h200", 8)
    known = "sgd" in optimizer
    assert (report.verdict == verdict.UNKNOWN) != known
    assert known or "this optimizer is not modelled" in str(report)


def test_a_launch_that_fits_is_offered_no_other_optimizer():
    """It would be neither faster nor of use."""
    report = engine.check_launch(LLAMA_FACTORY, "h200", 8)
    assert report.fits and all("optimizer" not in each.what for each in report.changes)


# -- Megatron's attention and its narrow state ---------------------------------------------------------------
@in_one_test(
    "more, kernel",
    [
        ("", "fused"),
        ("--attention-backend flash", "fused"),
        ("--attention-backend unfused", "scores"),
        ("--transformer-impl local", "scores"),
        ("--transformer-impl local --use-flash-attn", "fused"),
        ("--transformer-impl transformer_engine", "fused"),
    ],
)
def test_the_scores_are_kept_where_attention_is_not_fused(more, kernel):
    report = engine.check_launch(MEGATRON.replace("--bf16", f"--bf16 {more}"), "h100-sxm")
    assert report.launch.job.software.attention == kernel and not report.ignored


def test_scores_take_what_they_take():
    """Heads of a rank x s^2 values of 2 bytes, and what softmax and dropout keep of them, in each layer."""
    fused, scores = (
        engine.check_launch(MEGATRON.replace("--bf16", f"--bf16 {more}"), "h100-sxm")
        for more in ("", "--attention-backend unfused")
    )
    assert scores.parts["activations"] > 1.5 * fused.parts["activations"]


@in_one_test("key", ["main-grads-dtype", "main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype"])
def test_a_narrow_state_needs_the_optimizer_that_is_told_of_it(key):
    alone = engine.check_launch(MEGATRON.replace("--bf16", f"--bf16 --{key} bf16"), "h100-sxm")
    assert alone.verdict == verdict.ILLEGAL and "can only be fp32 when not using" in alone.refused[0].error
    told = f"--bf16 --use-precision-aware-optimizer --{key} bf16"
    aware = engine.check_launch(MEGATRON.replace("--bf16", told), "h100-sxm")
    plain = engine.check_launch(MEGATRON, "h100-sxm")
    assert not aware.refused and aware.total_bytes < plain.total_bytes


def test_gradients_summed_in_bf16_stay_so_whatever_the_state_is():
    more = "--bf16 --grad-reduce-in-bf16"
    plain = engine.check_launch(MEGATRON.replace("--bf16", more), "h100-sxm")
    aware = engine.check_launch(
        MEGATRON.replace("--bf16", f"{more} --use-precision-aware-optimizer --exp-avg-dtype bf16"), "h100-sxm"
    )
    assert aware.parts["gradients"] == plain.parts["gradients"]
    assert aware.parts["optimizer"] < plain.parts["optimizer"]


# -- the order of files --------------------------------------------------------------------------------------
def test_auto_takes_the_trainer_s_value_in_whatever_order():
    """DeepSpeed's "auto" is the trainer's to fill (huggingface/transformers integrations/deepspeed.py)."""
    ds = DS.replace('"bf16": {"enabled": true}', '"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}')
    assert "auto" in ds
    run = RUN if "--bf16" in RUN else RUN.rstrip() + " --bf16 true\n"
    both = [
        engine.check_launch(texts, "h100-sxm", 8)
        for texts in ({"ds.json": ds, "run.sh": run}, {"run.sh": run, "ds.json": ds})
    ]
    assert {one.launch.precision for one in both} == {"bf16"}
    assert both[0].total_bytes == both[1].total_bytes and both[0].estimate.step_s == both[1].estimate.step_s
    assert not both[0].faults and not both[1].faults


def test_megatron_s_optimizer_on_the_host_leaves_its_gradients():
    """Core's HybridDeviceOptimizer moves master copies and moments."""
    here, there = (
        engine.check_launch(MEGATRON.replace("--bf16", f"--bf16 {more}"), "h100-sxm")
        for more in ("", "--optimizer-cpu-offload")
    )
    assert there.launch.layout.offload == "optimizer" and there.parts["optimizer"] == 0.0
    assert there.parts["gradients"] == here.parts["gradients"]
    assert there.estimate.step_s > here.estimate.step_s


def test_each_stage_is_said_and_the_fullest_is_the_total():
    report = engine.check_launch(MEGATRON.replace("PP=2", "PP=4"), "h100-sxm")
    assert set(report.stages) == {"first", "second", "last"}
    assert max(report.stages.values()) == pytest.approx(report.total_bytes)
    assert report.stages["first"] > report.stages["second"]  # the embedding, and more micro-batches in flight
    assert "By stage of the pipeline: first" in "\n".join(shown.lines(report))
    two = engine.check_launch(MEGATRON, "h100-sxm").stages
    assert set(two) == {"first", "last"} and engine.check_launch(TITAN, "h100-sxm").stages is None


@pytest.mark.parametrize("report", ["small_server", "no_room", "fits", "refused", "unknown"])
def test_the_headline_says_the_verdict_that_the_exit_status_is_that_of(report):
    """A server that cannot hold one request does not fit, as a job that is too large does not."""
    serve = "vllm serve Qwen/Qwen3-8B --max-model-len"
    text, status = {
        "small_server": (f"{serve} 40960 --gpu-memory-utilization 0.75", 3),
        "no_room": (f"{serve} 2048 --gpu-memory-utilization 0.5", 3),
        "fits": (f"{serve} 2048", 0),
        "refused": (f"{serve} 2048 --tensor-parallel-size 3", 4),
        "unknown": (f"{serve} 2048 --num-gpu-blocks-override 100", 5),
    }[report]
    found = engine.check_launch(text, gpu="rtx-3090")
    said = shown.headline(found).split(": ", 1)[1]
    assert found.status == verdict.STATUSES[found.verdict] == status, said
    assert said.startswith(found.verdict)
