"""A layout as the arguments of Megatron-LM's pretrain_gpt.py (Core 0.15). What it does not support stands in
a comment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base import ops
from engine.base.types import Real, Truth
from engine.catalog import models
from engine.catalog.models import Model
from engine.frameworks.megatron.fields import CAN, KEYS
from engine.frameworks.writing import Line, Words, given
from engine.mechanism import memory
from engine.step import legality

if TYPE_CHECKING:
    from engine.step.cases import ExportedRun

ZERO_3 = 3.0
# what validate_args asks for under tensor and context parallelism on Hopper and before
CONNECTIONS = "export CUDA_DEVICE_MAX_CONNECTIONS=1"


def written(run: ExportedRun, words: Any = Words) -> str:
    """The arguments that set model, layout and batch, as a shell array."""
    lines = lost(run, words)
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
    for line in (*_model_lines(run, words), *layout_lines(run, words.plain)):
        if line.when is not False:
            text = f"  --{line.key}\n" if line.value is None else f"  --{line.key} {line.value}\n"
            lines.append(given(line, text, words))
    first = words.choose((run.tp * run.cp > 1) & (run.zero < 2), f"{CONNECTIONS}\n", "")
    return f"{first}ARGS=(\n{''.join(map(str, lines))})\n"


def lost(run: ExportedRun, words: Any) -> list:
    """Comments on what Megatron Core cannot do of a layout."""
    lines = [
        words.choose(
            run.is_schedule(key) & (run.pp > 1),
            f"  # Megatron-LM has no schedule {key}: this runs 1F1B, and slower than planned\n",
            "",
        )
        for key in dict.fromkeys(run.schedules)
        if key not in CAN.schedules
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
    if isinstance(run.model, Model) and not models.in_short_keys(run.model):
        lines.append(
            "  # these arguments have one kind of attention and of experts, and this model has others:\n"
            "  # what they start is another model\n"
        )
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
    return (kind.extra_params == 2 * kind.head_dim) & (kind.kv_lora == 0)


class Windows(NamedTuple):
    """The window of a model, and in how many layers it is."""

    layers: Real
    tokens: Real
    chunked: Real


def _windows(model: Model) -> Windows:
    """Nothing but zeros where no layer has a window."""
    found = [(count, window) for count, (_, window) in models.attended(model) if window is not None]
    return Windows(found[0][0], found[0][1].tokens, found[0][1].chunked) if found else Windows(0, 0, 0)


def _full_every(run: ExportedRun) -> Real:
    """The distance between two layers that have no window."""
    without = run.model.depth - _windows(run.model).layers
    return ops.floor(run.model.depth * 1.0 / ops.maximum(1.0, without * 1.0))


def _has_windows(run: ExportedRun) -> Truth:
    """Whether Megatron-LM can say which layers have a sliding window: all, or all but every so many."""
    windows, every = _windows(run.model), _full_every(run)
    without = run.model.depth - windows.layers
    regular = (without < 1) | (ops.floor(run.model.depth * 1.0 / ops.maximum(1.0, every)) == without)
    return (windows.layers > 0) & (windows.chunked < 1) & regular


def _model_lines(run: ExportedRun, words: Any) -> list[Line]:
    """The arguments that say the model."""
    model, n = run.model, words.plain
    kind, moe, windows = model.attention, model.moe, _windows(model)
    latent, experts = kind.kv_lora > 0, model.experts > 0
    dense, moe_every = ops.each(model, models.expert_places)
    return [
        Line(KEYS["layers"], n(model.depth)),
        Line(KEYS["hidden"], n(model.hidden)),
        Line(KEYS["ffn"], n(ops.where(model.ffn > 0, model.ffn, model.expert_ffn))),
        Line(KEYS["heads"], n(model.heads)),
        Line(KEYS["grouped"], when=(model.kv_heads < model.heads) & ~latent),
        Line(KEYS["kv_heads"], n(model.kv_heads), (model.kv_heads < model.heads) & ~latent),
        Line(KEYS["head_dim"], n(model.head_dim), ~latent),
        Line(KEYS["seq"], n(run.seq)),
        Line(
            KEYS["positions"],
            n(ops.where(model.max_positions > 0, ops.maximum(run.seq, 1.0 * model.max_positions), run.seq)),
        ),
        Line(
            KEYS["position_type"],
            words.choose(
                model.embedding_norm > 0,
                "none",
                words.choose(model.max_positions > 0, "learned_absolute", "rope"),
            ),
        ),
        Line(KEYS["rotary_base"], n(model.rotary_base), _is_rotary(model) & (model.rotary_base > 0)),
        Line(KEYS["normalization"], words.choose(model.norm_bias > 0, "LayerNorm", "RMSNorm")),
        Line(KEYS["norm_epsilon"], "1e-6", model.small_epsilon > 0),  # 1e-5 by default
        Line(KEYS["unbiased"], when=model.biases < 1),
        Line(KEYS["qkv_bias"], when=kind.qkv_bias > 0),
        Line(KEYS["gated"], when=model.gated > 0),
        Line(KEYS["qk_norm"], when=_has_head_norms(model) | latent),  # or of the latents
        Line(KEYS["window"], f"{n(windows.tokens)},0", _has_windows(run)),
        Line(KEYS["full_every"], n(_full_every(run)), _has_windows(run) & (windows.layers < model.depth)),
        Line(KEYS["attention_dropout"], "0.0", model.dropout < 1),  # Megatron-LM drops a tenth by default
        Line(KEYS["hidden_dropout"], "0.0", model.dropout < 1),
        Line(KEYS["vocab"], n(model.vocab)),
        Line(KEYS["untied"], when=model.tied < 1),
        Line(KEYS["latent"], when=latent),
        Line(KEYS["q_lora"], n(kind.q_lora), latent & (kind.q_lora > 0)),
        Line(KEYS["kv_lora"], n(kind.kv_lora), latent),
        Line(KEYS["nope_dim"], n(kind.nope_dim), latent),
        Line(KEYS["rope_dim"], n(kind.rope_dim), latent),
        Line(KEYS["v_dim"], n(kind.v_dim), latent),
        Line(KEYS["experts"], n(model.experts), experts),
        Line(KEYS["top_k"], n(model.top_k), experts),
        Line(KEYS["expert_groups"], n(moe.groups), experts & (moe.groups > 0)),
        Line(KEYS["top_groups"], n(moe.top_groups), experts & (moe.groups > 0)),
        # Megatron-LM refuses a bias beside softmax, its default: it wants scores that do not compete
        Line(KEYS["router_scores"], "sigmoid", experts & (moe.router_bias > 0)),
        Line(KEYS["router_bias"], when=experts & (moe.router_bias > 0)),
        Line(KEYS["expert_ffn"], n(model.expert_ffn), experts),
        Line(
            KEYS["shared_ffn"],
            n(model.shared_experts * model.shared_ffn),
            experts & (model.shared_experts * model.shared_ffn > 0),
        ),
        Line(
            KEYS["moe_every"],
            f'"([0]*{n(dense)}+[1]*{n(model.depth - dense)})"',
            experts & (dense > 0) & (moe_every < 2),
        ),
        Line(KEYS["moe_every"], n(moe_every), experts & (moe_every > 1)),
    ]


def _equal_chunks(run: ExportedRun) -> Truth:
    return legality.equal_chunks(run.model.depth, run.pp, run.chunks)


def _ends_take_slots(run: ExportedRun) -> Truth:
    return legality.ends_take_slots(run.model.depth, run.pp, run.chunks)


def _needs_layout(run: ExportedRun) -> Truth:
    """Whether Megatron-LM has no number for this cut, so that it has to be written out."""
    chunks = (run.chunks > 1) & ~_equal_chunks(run) & ~_ends_take_slots(run)
    return (run.pp > 1) & (chunks | (run.chunks < 2) & ~_equal_chunks(run) & ~_middle_is_even(run))


def _ends_share_the_rest(run: ExportedRun) -> Truth:
    return legality.ends_share_the_rest(run.model.depth, run.pp, run.chunks, run.stage_layers)


def _layout(run: ExportedRun, n: Any) -> Any:
    """--pipeline-model-parallel-layout: the chunks in order, parted by bars, with E for the embedding, t for
    a layer and L for the loss (pipeline_parallel_layer_layout.py)."""
    full, first, last = legality.ends_of_chunks(run.chunks, run.stage_layers)
    last_chunk = f"t*{n(last)}{f'm*{n(run.mtp)}' if run.mtp else ''}L"
    return f'"Et*{n(first)}|(t*{n(full)}|)*{n(run.pp * run.chunks - 2)}{last_chunk}"'


def _middle_is_even(run: ExportedRun) -> Truth:
    return legality.middle_is_even(run.model.depth, run.pp, run.stage_layers)


def layout_lines(run: ExportedRun, n: Any) -> list[Line]:
    """The arguments that say layout, batch and precision."""
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
        Line(KEYS["tp"], n(run.tp)),
        Line(KEYS["sequence_parallel"], when=run.tp > 1),
        Line(KEYS["pp"], n(run.pp)),
        # Megatron-LM accepts either equal chunks or an explicit layout, never both
        Line(
            KEYS["interleave"], n(run.chunks), (run.chunks > 1) & (_equal_chunks(run) | _ends_take_slots(run))
        ),
        Line(KEYS["embedding_counts"], when=_ends_take_slots(run)),
        Line(KEYS["loss_counts"], when=_ends_take_slots(run)),
        Line(KEYS["pipeline_layout"], _layout(run, n), written),
        Line(KEYS["first_layers"], n(stage.first), uneven),
        Line(KEYS["last_layers"], n(stage.last), uneven),
        Line(KEYS["cp"], n(run.cp)),
        Line(KEYS["cp_comm"], "allgather" if run.gather_context else "p2p", run.cp > 1),
        Line(KEYS["ep"], n(run.ep), experts),
        Line(KEYS["expert_tp"], n(run.expert_tp), experts),
        Line("moe-grouped-gemm", when=experts),
        Line("moe-token-dispatcher-type", "alltoall", experts),
        Line(KEYS["distributed"], when=run.zero > 0),
        Line(KEYS["fsdp"], when=sharded),
        Line("ckpt-format", "fsdp_dtensor", sharded),
        Line(KEYS["strategy"], "optim_grads", run.zero == 2.0),
        Line(KEYS["strategy"], "optim_grads_params", run.zero == ZERO_3),
        Line(KEYS["copies"], n(run.copies), run.is_hybrid & (run.zero > 0)),
        Line(KEYS["overlap"]),
        Line(KEYS["overlap_gather"], when=run.zero > 0),
        Line(KEYS["granularity"], "full", full),
        Line(KEYS["recompute_method"], "block" if some else "uniform", full),
        Line(KEYS["recompute_layers"], n(ops.ceil(some / run.chunks)) if some else "1", full),
        Line(KEYS["granularity"], "selective", True if modules else (run.recompute == memory.SELECTIVE)),
        Line(KEYS["recompute_modules"], " ".join(modules), bool(modules)),
        Line(KEYS["mtp"], n(run.mtp), bool(run.mtp)),
        Line(KEYS["fused_loss"], when=run.loss != "plain"),
        Line(KEYS["loss_impl"], "te", run.loss != "plain"),
        Line(KEYS["micro_batch"], n(run.micro_batch)),
        Line(KEYS["global_batch"], n(run.global_batch)),
        Line("train-iters", n(run.steps)),
        Line(KEYS["bf16"]),
        # with --bf16 alone gradients are kept and reduced in fp32
        Line(KEYS["narrow_gradients"], when=(run.gradient_bytes > 0) & (run.gradient_bytes < 4)),
        Line(KEYS["fp8"], "hybrid", run.fp8 > 0),
    ]
