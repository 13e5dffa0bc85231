"""A layout in other programs' formats: Megatron-LM arguments, overrides of a Megatron-Bridge recipe, a
torchtitan TOML, a DeepSpeed JSON.

Keys are those of Megatron Core 0.15, Megatron-Bridge 0.6, torchtitan 0.2.0 and DeepSpeed 0.19;
engine/validation/published/exports.json lists the documented ones. Settings that a program does not support
are mentioned in a comment, or left out where comments are not allowed (JSON). Numbers may be symbols: all
text is produced by ``words``, for which widgets pass their own implementation (widgets/kit/text.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base import ops
from engine.base.types import Real, Truth
from engine.base.units import plain
from engine.catalog import models
from engine.mechanism import memory, pipeline
from engine.step import legality

if TYPE_CHECKING:
    from engine.catalog.models import Model
    from engine.step.cases import Layouts
    from engine.step.layout import Layout

ZERO_3 = 3.0
# Megatron-LM runs 1F1B and its interleaved form; these classes of torch.distributed.pipelining have the same
# orders, block by block (test_pipeline_schedules.py)
TORCH_SCHEDULES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "zb-v": "ZBVZeroBubble",
    "dualpipe-v": "DualPipeV",
}
# the models that torchtitan has by name, from this catalogue's keys; of two with one name the last is read
TITAN_MODELS = {
    "llama3-8b": ("llama3", "8B"),
    "llama3-70b": ("llama3", "70B"),
    "llama3.1-8b": ("llama3", "8B"),
    "llama3.1-70b": ("llama3", "70B"),
    "llama3.1-405b": ("llama3", "405B"),
    "llama4-scout": ("llama4", "17bx16e"),
    "llama4-maverick": ("llama4", "17bx128e"),
    "deepseek-v2-lite": ("deepseek_v3", "16B"),
    "deepseek-v3": ("deepseek_v3", "671B"),
    "qwen3-0.6b": ("qwen3", "0.6B"),
    "qwen3-8b": ("qwen3", "8B"),
    "qwen3-14b": ("qwen3", "14B"),
    "qwen3-32b": ("qwen3", "32B"),
    "qwen3-30b-a3b": ("qwen3", "30B-A3B"),
    "qwen3-235b-a22b": ("qwen3", "235B-A22B"),
}
TITAN_NAMES = (("", ""), *TITAN_MODELS.values())


def titan_place(key: str) -> float:
    """A model's place in TITAN_NAMES; 0 for one that torchtitan has not."""
    return 1.0 + list(TITAN_MODELS).index(key) if key in TITAN_MODELS else 0.0


NOT_IN_MEGATRON = ("gpipe", "zb-h1", "zb-h2", "dualpipe", "zb-v", "dualpipe-v")
SPLIT_IN_TORCH = ("zb-v", "dualpipe-v")  # the backward, which PyTorch cannot where it is compiled
NOT_IN_TORCH = ("zb-h1", "zb-h2", "dualpipe")


class Words:
    """Texts for plain numbers."""

    @staticmethod
    def plain(value: Real) -> str:
        """A whole number in bare digits."""
        return plain(float(value))

    @staticmethod
    def choose(condition: Truth, yes: str, no: str) -> str:
        """``yes`` where the condition holds, else ``no``."""
        return yes if condition else no

    @staticmethod
    def select(index: Real, texts: Sequence[str]) -> str:
        """The text at an index."""
        return texts[int(index)]


class Setting(NamedTuple):
    """One line: a key, its value as text (None for a flag), and whether it is needed at all."""

    key: str
    value: Any = None
    when: Truth = True


def cut(layout: Layout | Layouts) -> tuple[Real, Real, Real, Real, Real, Real, Real, Real]:
    """How a layout divides the work, in the order of ``Run``'s fields behind the model."""
    a = layout
    return a.tp, a.pp, a.cp, a.dp, a.ep, a.expert_tp, a.zero, a.micro_batch


class Run(NamedTuple):
    """Everything that the settings express; numbers or symbols."""

    model: Model
    tp: float
    pp: float
    cp: float
    dp: float
    ep: float
    expert_tp: float
    zero: float
    micro_batch: float
    recompute: float
    schedule: float  # index into ``schedules``
    chunks: float
    schedules: tuple  # keys of pipeline.SCHEDULES
    global_batch: float
    seq: float
    tokens: float  # tokens of the run
    fp8: float  # 1.0 where the matrix products run in fp8
    loss: str = "plain"  # one of memory.LOSSES
    modules: tuple[str, ...] = ()  # of memory.MODULES, recomputed
    recompute_layers: float = 0.0  # of each stage, under full recomputation; 0 for all
    first_layers: float = 0.0  # layers of the first stage and of the last one; 0 for an even split
    last_layers: float = 0.0
    mtp: float = 0.0  # multi-token prediction modules
    shard: float = 0.0  # GPUs that share one copy of the state (HSDP); 0 for all
    gradient_bytes: float = 0.0  # of a parameter's gradient, where that is known
    gather_context: bool = False  # context parallelism by AllGather instead of a ring
    titan: float = 0.0  # the model's place in TITAN_NAMES
    eager: bool = False  # kernels as PyTorch runs them uncompiled, where the framework brings none of its own

    @property
    def steps(self) -> Real:
        """Optimizer steps of the run."""
        return ops.ceil(self.tokens / (self.global_batch * self.seq))

    @property
    def micro_batches(self) -> Real:
        """Micro-batches of a data-parallel rank in a step."""
        return self.global_batch / (self.dp * self.micro_batch)

    @property
    def is_hybrid(self) -> Truth:
        """Whether parts of the GPUs hold a copy of the state each (HSDP)."""
        return (self.shard > 0) & (self.shard < self.dp * self.cp)

    @property
    def copies(self) -> Real:
        """Copies of the state under ZeRO: one, but for HSDP."""
        return ops.where(self.is_hybrid, self.dp * self.cp / ops.maximum(1.0, self.shard), 1.0)

    @property
    def stage_layers(self) -> pipeline.StageLayers:
        """Layers of a full stage, of the first and of the last."""
        return pipeline.stage_layers(
            self.model.depth * 1.0, self.pp * 1.0, self.chunks * 1.0, self.first_layers, self.last_layers
        )

    def is_schedule(self, *keys: str) -> Truth:
        """Whether the pipeline uses one of these schedules."""
        places = [i for i, key in enumerate(self.schedules) if key in keys]
        if not places:
            return False
        return (
            (self.schedule >= places[0]) & (self.schedule <= places[-1])
            if len(keys) == 1
            else (self.is_schedule(keys[0]) | self.is_schedule(*keys[1:]))
        )


def megatron(run: Run, words: Any = Words) -> str:
    """The arguments of Megatron-LM's pretrain_gpt.py that set model, layout and batch, as a shell array."""
    lines = _lost_in_megatron(run, words)
    lines.append(
        words.choose(
            run.model.embedding_norm > 0,
            "  # Megatron-LM has no ALiBi and no norm behind the embedding\n",
            "",
        )
    )
    lines.append(
        words.choose(
            (_windows(run.model).layers > 0) & ~_has_windows(run)
            | (run.model.norms > 2)
            | (run.model.parallel_block > 0)
            | (run.model.attention.extra_params > 0) & ~_has_head_norms(run.model),
            "  # windows, further norms, sinks, parallel blocks of this model are not in these arguments\n",
            "",
        )
    )
    lines.append(
        words.choose(
            _is_rotary(run.model) & (run.model.rotary_base < 1),
            "  # --rotary-base is yours: Megatron-LM takes 10000\n",
            "",
        )
    )
    for setting in (*_megatron_model(run, words), *_megatron_layout(run, words.plain)):
        if setting.when is False:
            continue
        text = f"  --{setting.key}\n" if setting.value is None else f"  --{setting.key} {setting.value}\n"
        lines.append(text if setting.when is True else words.choose(setting.when, text, ""))
    return "ARGS=(\n" + "".join(map(str, lines)) + ")\n"


def _lost_in_megatron(run: Run, words: Any) -> list:
    """Comments on what Megatron Core cannot do of a layout."""
    lines = [
        words.choose(
            run.is_schedule(key) & (run.pp > 1),
            f"  # Megatron-LM has no schedule {key}: this runs 1F1B, and slower than planned\n",
            "",
        )
        for key in NOT_IN_MEGATRON
    ]
    lines.append(
        words.choose(
            _needs_layout(run) & ~_ends_share_the_rest(run),
            "  # no first and last chunk make these layers come out: write another cut\n",
            "",
        )
    )
    if "every_other" in run.modules:
        lines.append("  # Megatron-LM cannot recompute every other product: this recomputes nothing\n")
    if run.recompute_layers and run.recompute_layers % run.chunks:
        lines.append("  # layers are recomputed chunk by chunk, so a few more than planned\n")
    if run.loss == "chunked":
        lines.append("  # Megatron-LM 0.15 has no chunked loss: this one is fused, and keeps more\n")
    return lines


def _is_rotary(model: Model) -> Truth:
    """Whether positions are rotations of queries and keys: neither learned nor ALiBi."""
    return (model.embedding_norm < 1) & (model.max_positions < 1)


def _has_head_norms(model: Model) -> Truth:
    """Whether the parameters that a layer has beside the usual ones are a norm of the queries and one of the
    keys, over the width of a head."""
    kind = model.attention
    return (kind.extra_params == 2 * kind.head_dim) & ~(kind.kv_lora > 0)


class Windows(NamedTuple):
    """The window of a model, and in how many layers it is."""

    layers: Real
    tokens: Real
    chunked: Real


def _windows(model: Model) -> Windows:
    """Nothing but zeros where no layer has a window."""
    found = [(count, window) for count, (_, window) in models.attended(model) if window is not None]
    return Windows(found[0][0], found[0][1].tokens, found[0][1].chunked) if found else Windows(0, 0, 0)


def _full_every(run: Run) -> Real:
    """Every how many layers one has no window."""
    without = run.model.depth - _windows(run.model).layers
    return ops.floor(run.model.depth * 1.0 / ops.maximum(1.0, without * 1.0))


def _has_windows(run: Run) -> Truth:
    """Whether Megatron-LM can say which layers have a sliding window: all, or all but every so many."""
    windows, every = _windows(run.model), _full_every(run)
    without = run.model.depth - windows.layers
    regular = (without < 1) | (ops.floor(run.model.depth * 1.0 / ops.maximum(1.0, every)) == without)
    return (windows.layers > 0) & (windows.chunked < 1) & regular


def _megatron_model(run: Run, words) -> list[Setting]:
    model, n = run.model, words.plain
    kind, moe, windows = model.attention, model.moe, _windows(model)
    latent, experts = kind.kv_lora > 0, model.experts > 0
    dense, moe_every = ops.each(model, models.expert_places)
    return [
        Setting("num-layers", n(model.depth)),
        Setting("hidden-size", n(model.hidden)),
        Setting("ffn-hidden-size", n(ops.where(model.ffn > 0, model.ffn, model.expert_ffn))),
        Setting("num-attention-heads", n(model.heads)),
        Setting("group-query-attention", when=(model.kv_heads < model.heads) & ~latent),
        Setting("num-query-groups", n(model.kv_heads), (model.kv_heads < model.heads) & ~latent),
        Setting("kv-channels", n(model.head_dim), ~latent),
        Setting("seq-length", n(run.seq)),
        Setting(
            "max-position-embeddings",
            n(ops.where(model.max_positions > 0, ops.maximum(run.seq, 1.0 * model.max_positions), run.seq)),
        ),
        Setting(
            "position-embedding-type",
            words.choose(
                model.embedding_norm > 0,
                "none",
                words.choose(model.max_positions > 0, "learned_absolute", "rope"),
            ),
        ),
        Setting("rotary-base", n(model.rotary_base), _is_rotary(model) & (model.rotary_base > 0)),
        Setting("normalization", words.choose(model.norm_bias > 0, "LayerNorm", "RMSNorm")),
        Setting("norm-epsilon", "1e-6", model.small_epsilon > 0),  # 1e-5 by default
        Setting("disable-bias-linear", when=model.biases < 1),
        Setting("add-qkv-bias", when=kind.qkv_bias > 0),
        Setting("swiglu", when=model.gated > 0),
        Setting("qk-layernorm", when=_has_head_norms(model) | latent),  # or of the latents
        Setting("window-size", f"{n(windows.tokens)},0", _has_windows(run)),
        Setting(
            "window-attn-skip-freq", n(_full_every(run)), _has_windows(run) & (windows.layers < model.depth)
        ),
        Setting("attention-dropout", "0.0", model.dropout < 1),  # Megatron-LM drops a tenth by default
        Setting("hidden-dropout", "0.0", model.dropout < 1),
        Setting("vocab-size", n(model.vocab)),
        Setting("untie-embeddings-and-output-weights", when=model.tied < 1),
        Setting("multi-latent-attention", when=latent),
        Setting("q-lora-rank", n(kind.q_lora), latent & (kind.q_lora > 0)),
        Setting("kv-lora-rank", n(kind.kv_lora), latent),
        Setting("qk-head-dim", n(kind.nope_dim), latent),
        Setting("qk-pos-emb-head-dim", n(kind.rope_dim), latent),
        Setting("v-head-dim", n(kind.v_dim), latent),
        Setting("num-experts", n(model.experts), experts),
        Setting("moe-router-topk", n(model.top_k), experts),
        Setting("moe-router-num-groups", n(moe.groups), experts & (moe.groups > 0)),
        Setting("moe-router-group-topk", n(moe.top_groups), experts & (moe.groups > 0)),
        # Megatron-LM refuses a bias beside softmax, its default: it wants scores that do not compete
        Setting("moe-router-score-function", "sigmoid", experts & (moe.router_bias > 0)),
        Setting("moe-router-enable-expert-bias", when=experts & (moe.router_bias > 0)),
        Setting("moe-ffn-hidden-size", n(model.expert_ffn), experts),
        Setting(
            "moe-shared-expert-intermediate-size",
            n(model.shared_experts * model.shared_ffn),
            experts & (model.shared_experts * model.shared_ffn > 0),
        ),
        Setting(
            "moe-layer-freq",
            f'"([0]*{n(dense)}+[1]*{n(model.depth - dense)})"',
            experts & (dense > 0) & (moe_every < 2),
        ),
        Setting("moe-layer-freq", n(moe_every), experts & (moe_every > 1)),
    ]


def _equal_chunks(run: Run) -> Truth:
    return legality.equal_chunks(run.model.depth, run.pp, run.chunks)


def _ends_take_slots(run: Run) -> Truth:
    return legality.ends_take_slots(run.model.depth, run.pp, run.chunks)


def _needs_layout(run: Run) -> Truth:
    """Whether Megatron-LM has no number for this cut, so that it has to be written out."""
    chunks = (run.chunks > 1) & ~_equal_chunks(run) & ~_ends_take_slots(run)
    return (run.pp > 1) & (chunks | (run.chunks < 2) & ~_equal_chunks(run) & ~_middle_is_even(run))


def _ends_share_the_rest(run: Run) -> Truth:
    return legality.ends_share_the_rest(run.model.depth, run.pp, run.chunks, run.stage_layers)


def _layout(run: Run, n: Any) -> Any:
    """--pipeline-model-parallel-layout: the chunks in order, parted by bars, with E for the embedding, t for
    a layer and L for the loss (pipeline_parallel_layer_layout.py)."""
    full, first, last = legality.ends_of_chunks(run.chunks, run.stage_layers)
    last_chunk = f"t*{n(last)}{f'm*{n(run.mtp)}' if run.mtp else ''}L"
    return f'"Et*{n(first)}|(t*{n(full)}|)*{n(run.pp * run.chunks - 2)}{last_chunk}"'


def _middle_is_even(run: Run) -> Truth:
    return legality.middle_is_even(run.model.depth, run.pp, run.stage_layers)


def _megatron_layout(run: Run, n) -> list[Setting]:
    experts, several = run.model.experts > 0, run.pp > 1
    stage = run.stage_layers
    uneven = several & (run.chunks < 2) & (run.model.depth % run.pp != 0)
    if run.first_layers or run.last_layers:
        uneven = several
    written = _needs_layout(run) & _ends_share_the_rest(run)
    uneven = uneven & ~written if written is not False else uneven
    sharded, full, some = run.zero > 1, run.recompute == memory.FULL, run.recompute_layers
    modules = [name for name in run.modules if name != "every_other"]
    return [
        Setting("tensor-model-parallel-size", n(run.tp)),
        Setting("sequence-parallel", when=run.tp > 1),
        Setting("pipeline-model-parallel-size", n(run.pp)),
        # Megatron-LM accepts either equal chunks or an explicit layout, never both
        Setting(
            "num-virtual-stages-per-pipeline-rank",
            n(run.chunks),
            (run.chunks > 1) & (_equal_chunks(run) | _ends_take_slots(run)),
        ),
        Setting("account-for-embedding-in-pipeline-split", when=_ends_take_slots(run)),
        Setting("account-for-loss-in-pipeline-split", when=_ends_take_slots(run)),
        Setting("pipeline-model-parallel-layout", _layout(run, n), written),
        Setting("decoder-first-pipeline-num-layers", n(stage.first), uneven),
        Setting("decoder-last-pipeline-num-layers", n(stage.last), uneven),
        Setting("context-parallel-size", n(run.cp)),
        Setting("cp-comm-type", "allgather" if run.gather_context else "p2p", run.cp > 1),
        Setting("expert-model-parallel-size", n(run.ep), experts),
        Setting("expert-tensor-parallel-size", n(run.expert_tp), experts),
        Setting("moe-grouped-gemm", when=experts),
        Setting("moe-token-dispatcher-type", "alltoall", experts),
        Setting("use-distributed-optimizer", when=run.zero > 0),
        Setting("use-megatron-fsdp", when=sharded),
        Setting("ckpt-format", "fsdp_dtensor", sharded),
        Setting("data-parallel-sharding-strategy", "optim_grads", run.zero == 2.0),
        Setting("data-parallel-sharding-strategy", "optim_grads_params", run.zero == ZERO_3),
        Setting("num-distributed-optimizer-instances", n(run.copies), run.is_hybrid & (run.zero > 0)),
        Setting("overlap-grad-reduce"),
        Setting("overlap-param-gather", when=run.zero > 0),
        Setting("recompute-granularity", "full", full),
        Setting("recompute-method", "block" if some else "uniform", full),
        Setting("recompute-num-layers", n(ops.ceil(some / run.chunks)) if some else "1", full),
        Setting(
            "recompute-granularity", "selective", True if modules else (run.recompute == memory.SELECTIVE)
        ),
        Setting("recompute-modules", " ".join(modules), bool(modules)),
        Setting("mtp-num-layers", n(run.mtp), bool(run.mtp)),
        Setting("cross-entropy-loss-fusion", when=run.loss != "plain"),
        Setting("cross-entropy-fusion-impl", "te", run.loss != "plain"),
        Setting("micro-batch-size", n(run.micro_batch)),
        Setting("global-batch-size", n(run.global_batch)),
        Setting("train-iters", n(run.steps)),
        Setting("bf16"),
        # with --bf16 alone gradients are kept and reduced in fp32
        Setting("grad-reduce-in-bf16", when=(run.gradient_bytes > 0) & (run.gradient_bytes < 4)),
        Setting("fp8-format", "hybrid", run.fp8 > 0),
    ]


# what is not Megatron-LM's name with underscores, in one of the groups of ``bridge_key``
BRIDGE_KEYS = {
    "num-virtual-stages-per-pipeline-rank": "model.virtual_pipeline_model_parallel_size",
    "decoder-first-pipeline-num-layers": "model.num_layers_in_first_pipeline_stage",
    "decoder-last-pipeline-num-layers": "model.num_layers_in_last_pipeline_stage",
    "ckpt-format": "checkpoint.ckpt_format",
}
OF_THE_PRECISION = ("bf16", "fp8-format", "grad-reduce-in-bf16")


def bridge_key(key: str) -> str:
    """Megatron-Bridge's name of one of Megatron-LM's arguments."""
    name = key.replace("-", "_")
    if key in BRIDGE_KEYS:
        return BRIDGE_KEYS[key]
    if "batch" in key or key == "train-iters":
        return f"train.{name}"
    shared = "distributed" in key or "overlap" in key or "fsdp" in key or "sharding" in key
    return f"ddp.{name}" if shared else f"model.{name}"


def bridge(run: Run, recipe: str = "") -> str:
    """The overrides that give a Megatron-Bridge recipe this layout and batch.

    The recipe, which brings the model, is the one that is named, or the one that is called like the model.
    Its own switches are said as well, because they are on unless an override turns them off.
    """
    named = recipe or f"{run.model.key.replace('.', '').replace('-', '_')}_pretrain_config"
    mixed = "bf16_with_fp8_current_scaling_mixed" if run.fp8 else "bf16_mixed"
    given = {
        bridge_key(setting.key): "true" if setting.value is None else setting.value
        for setting in _megatron_layout(run, Words.plain)
        if setting.when and setting.key not in OF_THE_PRECISION
    }
    if "model.recompute_modules" in given:
        given["model.recompute_modules"] = f"[{given['model.recompute_modules'].replace(' ', ',')}]"
    if run.zero < 1:
        given |= {"ddp.use_distributed_optimizer": "false", "ddp.overlap_param_gather": "false"}
    given |= {
        "model.seq_length": plain(float(run.seq)),
        "dataset.sequence_length": plain(float(run.seq)),
        "mixed_precision": mixed,
    }
    if 0 < run.gradient_bytes < 4:
        given["mixed_precision.grad_reduce_in_fp32"] = "false"
    lost = "".join([line.lstrip() for line in _lost_in_megatron(run, Words)])
    lines = [f"python run_recipe.py --recipe {named}", *(f"  {key}={given[key]}" for key in given)]
    return lost + " \\\n".join(lines) + "\n"


def _any_is_needed(settings: list[Setting]) -> Truth:
    found: Truth = False
    for setting in settings:
        if setting.when is True:
            return True
        if setting.when is not False:
            found = setting.when if found is False else found | setting.when
    return found


def torchtitan(run: Run, words: Any = Words) -> str:
    """A torchtitan job file: training, parallelism and activation checkpointing. The reader has to fill in
    the flavor of the model."""
    n, names = words.plain, [f'"{TORCH_SCHEDULES.get(key, "1F1B")}"' for key in run.schedules]
    replicated, operators = run.zero < 1, "every_other" in run.modules
    # one forward pass takes a local batch, which only a pipeline cuts further; the rest of the global batch
    # is accumulated (torchtitan/train.py)
    local_batch = ops.where(run.pp > 1, run.global_batch / run.dp, run.micro_batch)
    stages = run.pp * run.chunks
    parts = run.model.depth + 2.0  # embedding and output count as one layer each
    per_stage = ops.ceil(parts / stages)
    refused = words.choose(
        legality.fills_every_stage(parts, stages),
        "",
        "   # makes too few stages, which torchtitan refuses: name the modules of each stage",
    )
    copies = ops.where(replicated, run.dp, run.copies)
    known = run.titan > 0
    split = run.is_schedule(*SPLIT_IN_TORCH) & (run.pp > 1)
    whole = run.is_schedule(*(key for key in run.schedules if key not in SPLIT_IN_TORCH)) | (run.pp < 2)
    # the layers, and with them the loss where the planner's is fused
    compiled = False if run.eager and run.loss != "fused" else whole
    sections = {
        "model": [
            Setting("name", words.select(run.titan, [f'"{name}"' for name, _ in TITAN_NAMES]), known),
            Setting("flavor", words.select(run.titan, [f'"{flavor}"' for _, flavor in TITAN_NAMES]), known),
            Setting("converters", '["quantize.linear.float8"]', run.fp8 > 0),
        ],
        "training": [
            Setting("local_batch_size", n(local_batch)),
            Setting("global_batch_size", n(run.global_batch)),
            Setting("seq_len", n(run.seq)),
            Setting("steps", n(run.steps)),
            Setting("mixed_precision_param", '"bfloat16"'),
        ],
        "parallelism": [
            Setting("data_parallel_replicate_degree", n(copies)),
            Setting("data_parallel_shard_degree", n(run.dp / copies)),
            Setting("fsdp_reshard_after_forward", words.choose(run.zero == ZERO_3, '"always"', '"never"')),
            Setting("tensor_parallel_degree", n(run.tp)),
            Setting("context_parallel_degree", n(run.cp)),
            Setting(
                "context_parallel_rotate_method",
                '"allgather"' if run.gather_context else '"alltoall"',
                run.cp > 1,
            ),
            Setting("pipeline_parallel_degree", n(run.pp)),
            Setting("pipeline_parallel_schedule", words.select(run.schedule, names), run.pp > 1),
            Setting("pipeline_parallel_layers_per_stage", f"{n(per_stage)}{refused}", run.pp > 1),
            Setting("pipeline_parallel_microbatch_size", n(run.micro_batch), run.pp > 1),
            Setting("expert_parallel_degree", n(run.ep), run.model.experts > 0),
            Setting("expert_tensor_parallel_degree", n(run.expert_tp), run.model.experts > 0),
        ],
        "activation_checkpoint": [
            Setting("mode", words.choose(run.recompute == memory.FULL, '"full"', '"none"'), not operators),
            Setting("mode", '"selective"', operators),
            Setting("selective_ac_option", '"op"', operators),
        ],
        "compile": [
            Setting("enable", "true", compiled),
            Setting("components", '["model"]', compiled if run.loss != "fused" else False),
        ],
        "quantize.linear.float8": [
            Setting("recipe_name", '"tensorwise"', run.fp8 > 0),
            Setting("filter_fqns", '["output"]', run.fp8 > 0),  # which the engine counts in 16 bits
        ],
    }
    lines = [
        words.choose(
            known,
            "# [model] hf_assets_path is yours; the flavor has shape, vocabulary, rotary base and norms\n",
            "# [model] name, flavor and hf_assets_path are yours, and with them all that shapes the model\n",
        )
    ]
    for lost, why in (
        (
            (run.zero == 1.0) & (run.pp < 2),
            "torchtitan has no ZeRO-1: this keeps the weights and shares gradients and state, ZeRO-2",
        ),
        (
            (run.pp > 1)
            & ((run.zero == 2.0) | (run.zero == 1.0) & (run.gradient_bytes > 0) & (run.gradient_bytes < 4)),
            "under a pipeline torchtitan sums whole gradients in fp32 until the last micro-batch: ZeRO-1",
        ),
        (replicated & (run.cp > 1), "torchtitan shares the state over context ranks too"),
        (
            False if operators else (run.recompute == memory.SELECTIVE) | (run.recompute == memory.BY_MODULE),
            "torchtitan recomputes whole layers or operators, not these modules",
        ),
        *(
            (
                run.is_schedule(key) & (run.pp > 1),
                f"PyTorch has no schedule {key}: this runs 1F1B, and slower than planned",
            )
            for key in NOT_IN_TORCH
        ),
        (
            split,
            (
                "PyTorch does not split a compiled backward (pytorch/pytorch#161904): this is not compiled, "
                "and slower than planned"
            ),
        ),
        (run.recompute_layers > 0, "torchtitan recomputes every layer, or every second one"),
        (run.loss == "chunked", "torchtitan's loss is not computed in chunks"),
        (run.mtp > 0, "torchtitan has no multi-token prediction"),
        ((run.first_layers > 0) | (run.last_layers > 0), "torchtitan shares the layers out by itself"),
    ):
        if lost is not False:
            lines.append(words.choose(lost, f"# {why}\n", ""))
    for section, settings in sections.items():
        head = f"\n[{section}]\n"
        needed = _any_is_needed(settings)
        lines.append(head if needed is True else words.choose(needed, head, ""))
        for key, value, when in settings:
            text = f"{key} = {value}\n"
            lines.append(text if when is True else words.choose(when, text, ""))
    return "".join(map(str, lines))


def training_arguments(run: Run, words: Any = Words) -> str:
    """What DeepSpeed's JSON cannot hold of a layout, as TrainingArguments in YAML: the batch, recomputation,
    the length of a sequence (of TRL's SFTConfig) and the loss."""
    n = words.plain
    lines = [
        f"per_device_train_batch_size: {n(run.micro_batch)}\n",
        f"gradient_accumulation_steps: {n(run.micro_batches)}\n",
        words.choose(
            run.recompute == memory.FULL, "gradient_checkpointing: true\n", "gradient_checkpointing: false\n"
        ),
        f"max_length: {n(run.seq)}\n",
        "bf16: true\n",
        "deepspeed: ds_config.json\n",
    ]
    if run.loss != "plain":
        lines.append("use_liger_kernel: true\n")
    return "".join(map(str, lines))


NOT_IN_DEEPSPEED = """DeepSpeed's JSON knows data-parallel ranks alone. This layout has tensor, pipeline, context or expert ranks,
which are built in code there: take the Megatron-LM arguments or the torchtitan file.
"""  # noqa: E501


def deepspeed(run: Run, words: Any = Words) -> str:
    """The part of a layout that DeepSpeed's JSON expresses: batch, precision and ZeRO stage, counted over the
    data-parallel ranks. Its other axes are set in code, and ZeRO 2 and 3 do not work with its pipeline, so a
    layout that combines them is not written."""
    n = words.plain
    accumulated = n(run.micro_batches)
    alone = run.tp * run.pp * run.cp * run.ep <= 1
    return words.choose(
        alone,
        f"""{{
  "train_batch_size": {n(run.global_batch)},
  "train_micro_batch_size_per_gpu": {n(run.micro_batch)},
  "gradient_accumulation_steps": {accumulated},
  "bf16": {{"enabled": true}},
  "gradient_clipping": 1.0,
  "zero_optimization": {{
    "stage": {n(run.zero)},
    "overlap_comm": {words.choose(run.zero > 0, "true", "false")},
    "reduce_scatter": true,
    "contiguous_gradients": true
  }},
  "activation_checkpointing": {{
    "partition_activations": false
  }}
}}
""",
        NOT_IN_DEEPSPEED,
    )
