"""A layout as other programs take it: Megatron-LM arguments, a torchtitan TOML, a DeepSpeed JSON.

Keys are those of Megatron Core 0.15, torchtitan 0.2.0 and DeepSpeed 0.19; tests/published/exports.json lists what they
document. What a program cannot be told is said in a comment, or left out where comments are not allowed (JSON).

Numbers may be symbols: what becomes text goes through ``words``, which widgets pass as their own (widgets/kit/text.py).
"""

from __future__ import annotations

from typing import NamedTuple

from engine import memory, ops, pipeline
from engine.pipeline import SCHEDULES
from engine.units import plain

ZERO_3 = 3.0
# Megatron-LM runs 1F1B and its interleaved form; torch.distributed.pipelining has these classes
TORCH_SCHEDULES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "Interleaved1F1B", "zb-h1": "InterleavedZeroBubble",
                   "zb-h2": "ZBVZeroBubble", "dualpipe": "DualPipeV"}
NOT_IN_MEGATRON = ("gpipe", "zb-h1", "zb-h2", "dualpipe")


class Words:
    """Texts of numbers that are known."""

    @staticmethod
    def plain(value) -> str:
        """A whole number in digits alone."""
        return plain(float(value))

    @staticmethod
    def choose(condition, yes: str, no: str) -> str:
        """``yes`` where the condition holds."""
        return yes if condition else no

    @staticmethod
    def select(index, texts) -> str:
        """The text at an index."""
        return texts[int(index)]


class Setting(NamedTuple):
    """One line: a key, its value as text or None for a flag, and whether it is needed at all."""

    key: str
    value: object = None
    when: object = True


class Run(NamedTuple):
    """All that the settings say; numbers or symbols."""

    model: object
    tp: float
    pp: float
    cp: float
    dp: float
    ep: float
    expert_tp: float
    zero: float
    micro_batch: float
    recompute: float
    schedule: float             # index into ``schedules``
    chunks: float
    schedules: tuple            # keys of pipeline.SCHEDULES
    global_batch: float
    seq: float
    tokens: float               # of the run
    fp8: float                  # 1.0 where the matrix products run in fp8

    @property
    def steps(self):
        """Optimizer steps of the run."""
        return ops.ceil(self.tokens / (self.global_batch * self.seq))

    @property
    def micro_batches(self):
        """Of a data-parallel rank in a step."""
        return self.global_batch / (self.dp * self.micro_batch)

    def is_schedule(self, *keys):
        """Whether the pipeline runs by one of these."""
        places = [i for i, key in enumerate(self.schedules) if key in keys]
        return (self.schedule >= places[0]) & (self.schedule <= places[-1]) if len(keys) == 1 else (
            self.is_schedule(keys[0]) | self.is_schedule(*keys[1:]))


def megatron(run: Run, words=Words) -> str:
    """The arguments of Megatron-LM's pretrain_gpt.py that shape model, layout and batch, as a shell array."""
    lines = [words.choose(run.is_schedule(key) & (run.pp > 1),
                          f"  # Megatron-LM has no schedule {key}: this runs 1F1B, and slower than planned\n", "")
             for key in NOT_IN_MEGATRON]
    uneven = (run.pp > 1) & (run.model.layers % (run.pp * run.chunks) != 0) & (run.chunks > 1)
    lines.append(words.choose(
        uneven, "  # chunks do not divide these layers: write the cut as --pipeline-model-parallel-layout\n", ""))
    lines.append(words.choose(run.model.embedding_norm > 0, "  # Megatron-LM has no ALiBi and no norm behind the embedding\n", ""))
    for setting in (*_megatron_model(run, words), *_megatron_layout(run, words.plain)):
        text = f"  --{setting.key}\n" if setting.value is None else f"  --{setting.key} {setting.value}\n"
        lines.append(text if setting.when is True else words.choose(setting.when, text, ""))
    return "ARGS=(\n" + "".join(map(str, lines)) + ")\n"


def _megatron_model(run: Run, words) -> list[Setting]:
    model, n = run.model, words.plain
    latent, experts, dense = model.kv_lora > 0, model.experts > 0, model.first_dense_layers
    return [
        Setting("num-layers", n(model.layers)), Setting("hidden-size", n(model.hidden)),
        Setting("ffn-hidden-size", n(ops.where(model.ffn > 0, model.ffn, model.expert_ffn))),
        Setting("num-attention-heads", n(model.heads)),
        Setting("group-query-attention", when=(model.kv_heads < model.heads) & ~latent),
        Setting("num-query-groups", n(model.kv_heads), (model.kv_heads < model.heads) & ~latent),
        Setting("kv-channels", n(model.head_dim), ~latent),
        Setting("seq-length", n(run.seq)), Setting("max-position-embeddings", n(run.seq)),
        Setting("position-embedding-type", words.choose(
            model.embedding_norm > 0, "none", words.choose(model.max_positions > 0, "learned_absolute", "rope"))),
        Setting("normalization", words.choose(model.norm_bias > 0, "LayerNorm", "RMSNorm")),
        Setting("disable-bias-linear", when=model.biases < 1), Setting("add-qkv-bias", when=model.qkv_bias > 0),
        Setting("swiglu", when=model.gated > 0),
        Setting("untie-embeddings-and-output-weights", when=model.tied < 1),
        Setting("multi-latent-attention", when=latent),
        Setting("q-lora-rank", n(model.q_lora), latent & (model.q_lora > 0)),
        Setting("kv-lora-rank", n(model.kv_lora), latent), Setting("qk-head-dim", n(model.nope_dim), latent),
        Setting("qk-pos-emb-head-dim", n(model.rope_dim), latent), Setting("v-head-dim", n(model.v_dim), latent),
        Setting("num-experts", n(model.experts), experts), Setting("moe-router-topk", n(model.top_k), experts),
        Setting("moe-ffn-hidden-size", n(model.expert_ffn), experts),
        Setting("moe-shared-expert-intermediate-size", n(model.shared_experts * model.shared_ffn),
                experts & (model.shared_experts * model.shared_ffn > 0)),
        Setting("moe-layer-freq", f'"([0]*{n(dense)}+[1]*{n(model.layers - dense)})"',
                experts & (dense > 0) & (model.moe_every < 2)),
        Setting("moe-layer-freq", n(model.moe_every), experts & (model.moe_every > 1)),
    ]


def _megatron_layout(run: Run, n) -> list[Setting]:
    experts, several = run.model.experts > 0, run.pp > 1
    stage = pipeline.stage_layers(run.model.layers * 1.0, run.pp * 1.0, run.chunks * 1.0)
    uneven = several & (run.chunks < 2) & (run.model.layers % run.pp != 0)
    sharded, full = run.zero > 1, run.recompute == memory.FULL
    return [
        Setting("tensor-model-parallel-size", n(run.tp)), Setting("sequence-parallel", when=run.tp > 1),
        Setting("pipeline-model-parallel-size", n(run.pp)),
        # Megatron-LM takes either equal chunks or a layout written out, never both
        Setting("num-virtual-stages-per-pipeline-rank", n(run.chunks),
                (run.chunks > 1) & (run.model.layers % (run.pp * run.chunks) == 0)),
        Setting("decoder-first-pipeline-num-layers", n(stage.first), uneven),
        Setting("decoder-last-pipeline-num-layers", n(stage.last), uneven),
        Setting("context-parallel-size", n(run.cp)), Setting("cp-comm-type", "p2p", run.cp > 1),
        Setting("expert-model-parallel-size", n(run.ep), experts),
        Setting("expert-tensor-parallel-size", n(run.expert_tp), experts),
        Setting("moe-grouped-gemm", when=experts), Setting("moe-token-dispatcher-type", "alltoall", experts),
        Setting("use-distributed-optimizer", when=run.zero > 0),
        Setting("use-megatron-fsdp", when=sharded), Setting("ckpt-format", "fsdp_dtensor", sharded),
        Setting("data-parallel-sharding-strategy", "optim_grads", run.zero == 2.0),
        Setting("data-parallel-sharding-strategy", "optim_grads_params", run.zero == ZERO_3),
        Setting("overlap-grad-reduce"), Setting("overlap-param-gather", when=run.zero > 0),
        Setting("recompute-granularity", "full", full), Setting("recompute-method", "uniform", full),
        Setting("recompute-num-layers", "1", full),
        Setting("micro-batch-size", n(run.micro_batch)), Setting("global-batch-size", n(run.global_batch)),
        Setting("train-iters", n(run.steps)), Setting("bf16"), Setting("fp8-format", "hybrid", run.fp8 > 0),
    ]


def torchtitan(run: Run, words=Words) -> str:
    """A job file of torchtitan: training, parallelism and activation checkpointing. Its flavor of the model is the
    reader's to name."""
    n, names = words.plain, [f'"{TORCH_SCHEDULES[key]}"' for key in run.schedules]
    replicated = run.zero < 1
    looped = ops.where(run.is_schedule("zb-h1", "zb-h2", "dualpipe"), 2.0, run.chunks)  # stages that a rank holds there
    parts, stages = run.model.layers + 2.0, run.pp * looped     # embedding and output count as a layer each
    per_stage = ops.ceil(parts / stages)
    refused = words.choose(ops.ceil(parts / per_stage) == stages, "",
                           "   # makes too few stages, which torchtitan refuses: name the modules of each stage")
    sections = {
        "training": [
            Setting("local_batch_size", n(run.global_batch / run.dp)),
            Setting("global_batch_size", n(run.global_batch)), Setting("seq_len", n(run.seq)),
            Setting("steps", n(run.steps)), Setting("mixed_precision_param", '"bfloat16"')],
        "parallelism": [
            Setting("data_parallel_replicate_degree", n(ops.where(replicated, run.dp, 1.0))),
            Setting("data_parallel_shard_degree", n(ops.where(replicated, 1.0, run.dp))),
            Setting("fsdp_reshard_after_forward", words.choose(run.zero == ZERO_3, '"always"', '"never"')),
            Setting("tensor_parallel_degree", n(run.tp)), Setting("context_parallel_degree", n(run.cp)),
            Setting("pipeline_parallel_degree", n(run.pp)),
            Setting("pipeline_parallel_schedule", words.select(run.schedule, names), run.pp > 1),
            Setting("pipeline_parallel_layers_per_stage", f"{n(per_stage)}{refused}", run.pp > 1),
            Setting("pipeline_parallel_microbatch_size", n(run.micro_batch), run.pp > 1),
            Setting("expert_parallel_degree", n(run.ep), run.model.experts > 0),
            Setting("expert_tensor_parallel_degree", n(run.expert_tp), run.model.experts > 0)],
        "activation_checkpoint": [Setting("mode", words.choose(run.recompute == memory.FULL, '"full"', '"none"'))],
        "quantize.linear.float8": [Setting("recipe_name", '"tensorwise"', run.fp8 > 0)],
    }
    lines = ["# [model] name, flavor and hf_assets_path are yours\n"]
    for section, settings in sections.items():
        head = f"\n[{section}]\n"
        needed = settings[0].when
        lines.append(head if needed is True else words.choose(needed, head, ""))
        for key, value, when in settings:
            text = f"{key} = {value}\n"
            lines.append(text if when is True else words.choose(when, text, ""))
    return "".join(map(str, lines))


NOT_IN_DEEPSPEED = """DeepSpeed's JSON knows data-parallel ranks alone. This layout has tensor, pipeline, context or expert ranks,
which are built in code there: take the Megatron-LM arguments or the torchtitan file.
"""


def deepspeed(run: Run, words=Words) -> str:
    """What DeepSpeed's JSON holds of a layout: batch, precision and ZeRO stage, counted over the data-parallel ranks.
    Its other axes are built in code, and ZeRO 2 and 3 do not go with its pipeline: a layout that has them is not written."""
    n = words.plain
    accumulated = n(run.micro_batches)
    alone = run.tp * run.pp * run.cp * run.ep <= 1
    return words.choose(alone, f"""{{
  "train_batch_size": {n(run.global_batch)},
  "train_micro_batch_size_per_gpu": {n(run.micro_batch)},
  "gradient_accumulation_steps": {accumulated},
  "bf16": {{"enabled": true}},
  "gradient_clipping": 1.0,
  "zero_optimization": {{
    "stage": {n(run.zero)},
    "overlap_comm": {words.choose(run.zero > 1, "true", "false")},
    "reduce_scatter": true,
    "contiguous_gradients": true
  }},
  "activation_checkpointing": {{
    "partition_activations": false
  }}
}}
""", NOT_IN_DEEPSPEED)
