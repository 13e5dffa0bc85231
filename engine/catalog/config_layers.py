"""The layers that a config.json describes beyond the short keys of ``config_json``: linear attention and
state spaces, attention over what an indexer picks or over compressed tokens, gates, heads of two sizes,
caches that layers share, latent experts, and layers that are one block alone.

``groups`` gives the tables that ``models.group_from`` reads, or none where the short keys say it all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from engine.catalog import towers

Config = Mapping[str, Any]
Table = dict[str, Any]

# a layer's kind by the names that makers give it
KINDS = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "sliding",
    "linear_attention": "linear",
    "mamba": "state space",
    "minimax_m3_sparse": "sparse",
    "deepseek_sparse_attention": "full",
    "indexed_attention": "full",  # its indexer is in the keys of attention
    "conv": "convolution",
    "hybrid": "side by side",
    "compressed_sparse_attention": "compressed",
    "heavily_compressed_attention": "heavily compressed",
    "moe": "feed-forward",
    "mlp": "dense feed-forward",
}
BY_LETTER = {"M": "state space", "*": "full", "E": "feed-forward", "-": "dense feed-forward"}
BY_RATIO = {0: "window alone", 4: "compressed", 128: "heavily compressed"}
# any of these says that a model's layers need more than the short keys
BEYOND = (
    "full_attention_interval",
    "linear_num_value_heads",
    "linear_attn_config",
    "mamba_num_heads",
    "hybrid_override_pattern",
    "layers_block_type",
    "compress_ratios",
    "index_n_heads",
    "sparse_attention_config",
    "attn_output_gate",
    "global_head_dim",
    "num_global_key_value_heads",
    "moe_latent_size",
    "routed_expert_hidden_size",
    "enable_moe_block",
    "zero_expert_num",
    "hybrid_layer_pattern",
    "swa_num_key_value_heads",
    "num_sliding_attention_heads",
    "layer_group_size",
    "attn_layer_period",
    "attn_layer_indices",
    "mamba_d_ssm",
    "expert_layer_period",
    "mlp_layer_types",
    "mlp_only_layers",
    "moe_layers",
    "moe_layer_end_index",
    "use_double_wide_mlp",
    "per_layer_config",
    "mamba_n_heads",
    "state_size",
    "block_auto_adjust_ff_dim",
)


def reaches_beyond(config: Config) -> bool:
    """Whether the layers need more than the short keys."""
    if any(config.get(key) for key in BEYOND) or (config.get("num_kv_shared_layers") or 0) > 0:
        return True
    if isinstance(config.get("moe_layer_freq"), list):
        return True
    if config.get("expert_ffn_hidden_size") or _type(config) in GATED:
        return True
    if config.get("v_head_dim") and not config.get("kv_lora_rank"):
        return True
    types = config.get("layer_types")
    named = types if isinstance(types, list) else []
    lightning = config.get("attn_type_list")
    some = isinstance(lightning, list) and any(one == 0 for one in lightning)
    return some or any(KINDS.get(str(one), "") not in ("full", "sliding") for one in named)


def whole(config: Config, key: str, otherwise: int | None = None, least: int = 1, most: int = 10**7) -> int:
    """A whole number of the file; ValueError names the key where it is missing or something else."""
    value = config.get(key)
    if value is None and otherwise is not None:
        return otherwise
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is None:
        raise ValueError(f"This config.json has no {key}.")
    if not is_number or not least <= value <= most or value != int(value):
        raise ValueError(
            f"{key} must be a whole number of at least {least} and at most {most:,}, got {str(value)[:40]}."
        )
    return int(value)


def plain(config: Config) -> dict:
    """The file without what reaches beyond the short keys, and with what these need in its place."""
    left_out = (*BEYOND, "text_config", "layer_types", "linear_num_key_heads")
    found = {key: value for key, value in config.items() if key not in left_out}
    if config.get("state_size"):  # a state space alone, without attention and feed-forward blocks
        found = {"intermediate_size": 1, "head_dim": 64} | found | {"num_attention_heads": 1}
    if not any(found.get(key) for key in ("num_hidden_layers", "n_layer", "num_layers", "n_layers")):
        found["num_hidden_layers"] = count(config)
    return found


# what may stand in a file without changing what its layers are made of
HARMLESS = (
    "_num_mtp_layers",
    "_sliding_window_pattern",
    "attn_res_block_size",
    "block_size",
    "chunk_size",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "deepstack_visual_indexes",
    "encoder_no_repeat_ngram_size",
    "ep_size",
    "expand",
    "expert_dtype",
    "expert_intermediate_size",
    "experts_per_token",
    "hidden_act",
    "hidden_activation",
    "hidden_dropout",
    "hidden_dropout_prob",
    "ignore_index",
    "index_kpool_always_select_tail",
    "index_share_for_mtp_iteration",
    "index_skip_topk_offset",
    "index_topk_freq",
    "global_attn_every_n_layers",
    "attention_head_dim",
    "indexer_rope_interleave",
    "initial_context_length",
    "kv_cache_scheme",
    "latent_moe_use_norm",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "logits_soft_cap",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "layer_rope_theta",
    "linear_a_log_max",
    "linear_a_log_min",
    "linear_allow_neg_eigval",
    "linear_attn_alpha_factor",
    "linear_attn_beta_factor",
    "linear_dt_init_floor",
    "linear_dt_max",
    "linear_dt_min",
    "linear_lower_bound",
    "linear_silu",
    "lm_head_multiplier",
    "mamba_chunk_size",
    "mamba_conv_bias",
    "mamba_hidden_act",
    "mamba_norm_before_gate",
    "mamba_proj_bias",
    "mamba_ssm_cache_dtype",
    "mamba_ssm_dtype",
    "mlp_hidden_act",
    "moe_layer_interval",
    "moe_renormalize",
    "moe_router_activation_func",
    "moe_shared_expert_overlap",
    "mtp_hybrid_override_pattern",
    "mtp_layer_types",
    "mtp_layers_block_type",
    "mtp_mlp_layer_types",
    "mtp_share_layers",
    "no_rope_layer_interval",
    "no_rope_layers",
    "mtp_num_hidden_layers",
    "mtp_transformer_layers",
    "n_group",
    "no_repeat_ngram_size",
    "num_heads",
    "num_beam_groups",
    "num_beams",
    "num_expert_group",
    "num_hash_layers",
    "num_logits_to_keep",
    "num_mtp_modules",
    "num_nextn_predict_layers",
    "num_return_sequences",
    "output_hidden_states",
    "pruned_heads",
    "qk_head_dim",
    "qk_layernorm",
    "qk_norm_type",
    "query_pre_attn_scalar",
    "residual_in_fp32",
    "rotary_dim",
    "router_jitter_noise",
    "sliding_window_size",
    "time_step_rank",
    "topk_group",
    "topk_method",
    "use_conv_bias",
    "use_grouped_topk",
    "use_mamba_kernels",
    "vision_soft_tokens_per_image",
    "vocab_size_per_layer_input",
    "problem_type",
)
READ = (
    *BEYOND,
    *towers.READ,
    "attn_layer_offset",
    "block_auto_adjust_ff_dim",
    "block_ffn_dim_multiplier",
    "block_multiple_of",
    "conv_L_cache",
    "conv_dim",
    "conv_dim_out",
    "expert_layer_offset",
    "ffn_hidden_size",
    "full_attn_idxs",
    "hidden_size_per_layer_input",
    "kv_source_layers",
    "linear_head_dim",
    "linear_num_heads",
    "mamba_dt_rank",
    "mamba_expand",
    "mamba_rms_norm",
    "moe_layer_freq",
    "per_layer_config",
    "short_conv_kernel_size",
    "swa_head_dim",
    "swa_num_attention_heads",
    "swa_v_head_dim",
    "block_dim",
    "block_ff_dim",
    "block_use_swiglu",
    "attention_chunk_size",
    "attention_k_eq_v",
    "attn_type_list",
    "conv_kernel",
    "hc_mult",
    "hc_sinkhorn_iters",
    "hc_eps",
    "index_block_size",
    "index_head_dim",
    "index_kpool",
    "index_local_blocks",
    "index_topk",
    "index_topk_blocks",
    "indexer_types",
    "linear_conv_kernel_dim",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "mamba_d_conv",
    "mamba_d_head",
    "mamba_d_state",
    "mamba_head_dim",
    "mamba_n_groups",
    "mamba_n_heads",
    "mla_use_output_gate",
    "mlp_layer_types",
    "mlp_only_layers",
    "n_groups",
    "num_kv_shared_layers",
    "o_groups",
    "o_lora_rank",
    "ssm_state_size",
)
# what the name of a key that says what layers are made of holds
SHAPES = (
    "layer",
    "head",
    "expert",
    "_dim",
    "hidden",
    "intermediate",
    "_rank",
    "lora",
    "interval",
    "pattern",
    "ratio",
    "window",
    "sparse",
    "index",
    "latent",
    "mamba",
    "ssm",
    "linear_",
    "conv",
    "altup",
    "laurel",
    "block_",
    "ffn",
    "n_inner",
    "kv_",
    "per_",
)
NOT_SHAPES = (
    "token",
    "activation",
    "rope",
    "vision",
    "audio",
    "image",
    "video",
    "initializer",
    "loss",
    "init",
    "multiplier",
    "epsilon",
    "_eps",
    "expert_bias",
)
# parts of a model that a file may describe in an object of their own; others change what it is made of
PARTS = ("text_config", "vision_config", "audio_config", "quantization_config", "compression_config")
PARTS = (*PARTS, "generation_config", "rope_config", "img_token_compression_config", "task_specific_params")
# any of these says that a file is not a decoder's, which alone are read
NOT_DECODERS = ("type_vocab_size", "is_encoder_decoder", "encoder_layers", "encoder_ffn_dim")


def unread(config: Config, known: Collection[str]) -> str:
    """The first key of a file that may change what layers are made of, and that is not ``known``; "" where
    all are. The page's script does the same (assets/widget/intake.js)."""
    for key, value in config.items():
        said = isinstance(value, (int, float, list, dict)) and value not in (0, False, [], {})
        shapes = any(part in key for part in SHAPES) and not any(part in key for part in NOT_SHAPES)
        part = isinstance(value, dict) and key.endswith("_config") and key not in PARTS
        harmless = not isinstance(value, bool) and value == HARMLESS_AT.get(key)
        if said and (shapes or part) and key not in known and not harmless:
            return key
    return ""


# known on the page besides the keys that its controls hold
ON_THE_PAGE = (*HARMLESS, "attention_chunk_size")
HARMLESS_AT = {"moe_layer_freq": 1}  # keys that say nothing at this value
UNREAD = "{key} is a key that is not read here, and may change what layers are made of."
DECODERS_ALONE = "{key} must be left out: encoders are not read here, decoders alone."


def require_known(config: Config, keys: tuple[str, ...]) -> None:
    """ValueError for a key that may change what layers are made of, and that neither ``keys`` nor this module
    reads."""
    for key in NOT_DECODERS:
        if config.get(key):
            raise ValueError(DECODERS_ALONE.format(key=key))
    if key := unread(config, (*keys, *READ, *HARMLESS)):
        raise ValueError(UNREAD.format(key=key[:60]))
    every = config.get("moe_layer_freq")
    if every is not None and not isinstance(every, list) and every != 1:
        raise ValueError(f"moe_layer_freq must be 1 or a list of layers, got {str(every)[:40]}.")
    sources = config.get("kv_source_layers")
    if isinstance(sources, list) and sources != list(range(len(sources))):
        raise ValueError(
            "kv_source_layers must name each layer itself: caches that layers share are not read."
        )


def further(config: Config) -> int:
    """Modules that predict further tokens."""
    keys = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
    return max(whole(config, key, 0, 0) for key in keys)


# -- which layer is what -------------------------------------------------------------------------------------
def schedule(config: Config, layers: int) -> list[str]:
    """The kind of each layer."""
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return [
            _named("hybrid_override_pattern", one, BY_LETTER)
            for one in _as_long(pattern, "hybrid_override_pattern", layers)
        ]
    ratios = config.get("compress_ratios")
    if isinstance(ratios, list):  # one more for each module that predicts further tokens
        if len(ratios) < layers:
            raise ValueError(
                f"compress_ratios must have {layers} numbers, one for each layer; got {len(ratios)}."
            )
        return [_named("compress_ratios", one, BY_RATIO) for one in ratios[:layers]]
    for key in ("layers_block_type", "layer_types"):
        named = config.get(key)
        if isinstance(named, list):
            return [_named(key, one, KINDS) for one in _as_long(named, key, layers)]
    windows = config.get("hybrid_layer_pattern")
    if isinstance(windows, list):
        kinds = {0: "full", 1: "sliding"}
        listed = _as_long(windows, "hybrid_layer_pattern", layers)
        return [_named("hybrid_layer_pattern", one, kinds) for one in listed]
    if config.get("mamba_d_ssm"):
        return ["side by side"] * layers
    if config.get("attn_layer_period"):
        period, offset = whole(config, "attn_layer_period"), whole(config, "attn_layer_offset", 0, 0)
        return ["full" if place % period == offset else "state space" for place in range(layers)]
    indices = config.get("attn_layer_indices")
    if isinstance(indices, list):
        return ["full" if place in indices else "state space" for place in range(layers)]
    if config.get("layer_group_size"):
        size = whole(config, "layer_group_size")
        last = layers // size * size
        return ["full" if place % size == size - 1 or place >= last else "linear" for place in range(layers)]
    linear = config.get("linear_attn_config")
    if isinstance(linear, dict):
        full = linear.get("full_attn_layers")
        if not isinstance(full, list):
            raise ValueError("linear_attn_config must list full_attn_layers, the layers that attend fully.")
        return ["full" if place + 1 in full else "linear" for place in range(layers)]
    lightning = config.get("attn_type_list")
    if isinstance(lightning, list):
        return ["full" if one else "lightning" for one in _as_long(lightning, "attn_type_list", layers)]
    sparse = config.get("sparse_attention_config")
    if isinstance(sparse, dict) and isinstance(sparse.get("sparse_attention_freq"), list):
        listed = _as_long(sparse["sparse_attention_freq"], "sparse_attention_freq", layers)
        return ["sparse" if one else "full" for one in listed]
    if config.get("state_size") or config.get("mamba_n_heads") or config.get("mamba_num_heads"):
        return ["state space"] * layers
    every = config.get("full_attention_interval")
    if every is not None:
        every = whole(config, "full_attention_interval")
        return ["full" if place % every == every - 1 else "linear" for place in range(layers)]
    return ["full"] * layers


def require_above_0(config: Config) -> None:
    """ValueError for a number below 0 under a key that is read, whether or not these layers need it."""
    for key in READ:
        value = config.get(key)
        if isinstance(value, (int, float)) and value < 0:
            raise ValueError(f"{key} must be at least 0, got {str(value)[:40]}.")


# lists with one value for each layer
FOR_EACH = ("layers_block_type", "layer_types", "attn_type_list", "mlp_layer_types", "moe_layer_freq")
FOR_EACH = (*FOR_EACH, "indexer_types", "hybrid_layer_pattern", "hybrid_override_pattern", "kv_source_layers")


def require_lengths(config: Config, layers: int) -> None:
    """ValueError for a list that must say something of each layer, and has another length."""
    for key in FOR_EACH:
        if isinstance(config.get(key), list):
            _as_long(config[key], key, layers)
    linear = config.get("linear_attn_config")
    if isinstance(linear, dict) and isinstance(linear.get("kda_layers"), list):
        both = [*linear["kda_layers"], *(linear.get("full_attn_layers") or [])]
        if sorted(map(str, both)) != sorted(str(place + 1) for place in range(layers)):
            raise ValueError(
                f"full_attn_layers and kda_layers must name each of the {layers} layers once, from 1 on."
            )


def count(config: Config) -> int:
    """How many layers a file names where it gives no number of them; 0 where it names none."""
    for key in ("hybrid_override_pattern", "layers_block_type", "layer_types"):
        listed = config.get(key)
        if isinstance(listed, (str, list)):
            return len(listed)
    return 0


def _as_long(listed: Any, key: str, layers: int) -> Any:
    if len(listed) != layers:
        raise ValueError(f"{key} must name {layers} layers, one for each; got {len(listed)}.")
    return listed


def _named(key: str, one: Any, kinds: Mapping[Any, str]) -> str:
    if not isinstance(one, (str, int)) or one not in kinds:
        allowed = ", ".join(str(each) for each in kinds)
        raise ValueError(f"{key} must be made of {allowed}; got {str(one)[:40]}.")
    return kinds[one]


# -- attention -----------------------------------------------------------------------------------------------
def _full(config: Config, sizes: Config) -> Table:
    """The attention of a layer that sees all before it, or a window of it."""
    heads, biased = int(sizes["heads"]), bool(sizes.get("qkv_bias", 0))
    if sizes["kv_lora"] > 0:
        table: Table = {
            "kind": "latent",
            "heads": heads,
            **{name: int(sizes[name]) for name in ("kv_lora", "q_lora", "rope_dim", "nope_dim", "v_dim")},
        }
        if config.get("mla_use_output_gate"):
            table["gate_width"] = heads * int(sizes["v_dim"])
        return _indexed(config, table)
    width = int(sizes["head_dim"])
    table = {"kind": "grouped", "heads": heads, "kv_heads": int(sizes["kv_heads"]), "head_dim": width}
    table["qkv_bias"] = biased
    if config.get("v_head_dim") not in (None, width):
        table["value_width"] = whole(config, "v_head_dim")
    if config.get("attn_output_gate") or _type(config) in GATED:
        table["gate_width"] = heads * width
    elif config.get("use_attention_gate"):  # one number a head
        table["gate_width"] = heads
    return table


GATED = (
    "qwen3_next",
    "afmoe",
    "muse_glimmer_text",
    "muse_spark_text",
)  # types whose attention has a gate that no key tells of


def _type(config: Config) -> str:
    return str(config.get("model_type") or "")


def _sliding(config: Config, sizes: Config) -> Table:
    """Attention over a window; its heads may have sizes of their own (MiMo-V2, Step-3.5)."""
    table = _full(config, sizes)
    if config.get("num_sliding_attention_heads") or config.get("swa_num_attention_heads"):
        key = "swa_num_attention_heads"
        table["heads"] = whole(config, key if config.get(key) else "num_sliding_attention_heads")
    for name, key in (("kv_heads", "swa_num_key_value_heads"), ("head_dim", "swa_head_dim")):
        if config.get(key):
            table[name] = whole(config, key)
    if config.get("swa_v_head_dim") not in (None, table["head_dim"]):
        table["value_width"] = whole(config, "swa_v_head_dim")
    return table


def _indexed(config: Config, table: Table) -> Table:
    """Latent attention over what an indexer picks, where the file has one."""
    if config.get("index_n_heads") is None:
        return table
    indexer: Table = {"heads": whole(config, "index_n_heads"), "dim": whole(config, "index_head_dim")}
    pooled = whole(config, "index_kpool", 1)
    if pooled > 1:
        indexer |= {"pooled": pooled, "pool_rank": 1}
    return {"kind": "indexed", "over": table, "indexer": indexer, "top": whole(config, "index_topk")}


def _global(config: Config, sizes: Config) -> Table:
    """Full attention beside windows, where its heads have a size of their own (Gemma 4)."""
    table = _full(config, sizes)
    if config.get("global_head_dim") is not None and table["kind"] == "grouped":
        table["head_dim"] = whole(config, "global_head_dim")
        table["kv_heads"] = whole(config, "num_global_key_value_heads", int(sizes["kv_heads"]))
        table["tensors"] = 1 if config.get("attention_k_eq_v") else 2
    return table


def _linear(config: Config) -> Table:
    own = config.get("linear_attn_config")
    if isinstance(own, dict):  # Kimi Delta Attention
        width = whole(own, "head_dim")
        return _alike(whole(own, "num_heads"), width) | {
            "convolution": whole(own, "short_conv_kernel_size", 4),
            "decay": "channel",
            "decay_rank": width,
            "gate_rank": 0 if own.get("use_full_rank_gate") else width,
        }
    if config.get("linear_num_heads") or config.get("linear_head_dim"):  # the same, as transformers writes it
        width = whole(config, "linear_head_dim")
        return _alike(whole(config, "linear_num_heads"), width) | {
            "convolution": whole(config, "linear_conv_kernel_dim", 4),
            "decay": "channel",
            "decay_rank": width,
            "gate_rank": width,
        }
    return {
        "kind": "linear",
        "heads": whole(config, "linear_num_value_heads"),
        "key_heads": whole(config, "linear_num_key_heads"),
        "key_dim": whole(config, "linear_key_head_dim"),
        "value_dim": whole(config, "linear_value_head_dim"),
        "convolution": whole(config, "linear_conv_kernel_dim", 4),
    }


def _lightning(sizes: Config) -> Table:
    return _alike(int(sizes["heads"]), int(sizes["head_dim"])) | {"decay": "fixed"}


def _alike(heads: int, width: int) -> Table:
    """Linear attention whose keys have as many heads as its values, and the same width."""
    return {"kind": "linear", "heads": heads, "key_heads": heads, "key_dim": width, "value_dim": width}


def _either(config: Config, names: tuple[str, ...], otherwise: int | None = None) -> int:
    """A whole number that makers give one of these names; a missing one is named by the first."""
    for key in names:
        if config.get(key) is not None:
            return whole(config, key)
    return whole(config, names[0], otherwise)


def _state_space(config: Config, sizes: Config) -> Table:
    if config.get("state_size") and not config.get("num_heads"):  # Mamba as Falcon-Mamba has it
        return {
            "kind": "state space",
            "heads": whole(config, "intermediate_size"),
            "head_dim": 1,
            "state": whole(config, "state_size"),
            "convolution": whole(config, "conv_kernel", 4),
            "step_rank": whole(config, "time_step_rank"),
        }
    if config.get("mamba_dt_rank"):  # Mamba, whose every channel is a head
        return {
            "kind": "state space",
            "heads": whole(config, "mamba_expand", 2) * int(sizes["hidden"]),
            "head_dim": 1,
            "state": whole(config, "mamba_d_state"),
            "convolution": whole(config, "mamba_d_conv", 4),
            "step_rank": whole(config, "mamba_dt_rank"),
        }
    alone = ("num_heads", "head_dim") if config.get("state_size") else ()
    return {
        "kind": "state space",
        "heads": _either(config, ("mamba_num_heads", "mamba_n_heads", *alone[:1])),
        "head_dim": _either(config, ("mamba_head_dim", "mamba_d_head", *alone[1:])),
        "state": _either(config, ("ssm_state_size", "mamba_d_state", "state_size")),
        "groups": _either(config, ("n_groups", "mamba_n_groups"), 1),
        "convolution": _either(config, ("conv_kernel", "mamba_d_conv"), 4),
    }


def _compressed(config: Config, sizes: Config, kind: str) -> Table:
    table: Table = {
        "kind": "compressed",
        "heads": int(sizes["heads"]),
        "head_dim": int(sizes["head_dim"]),
        "query_rank": whole(config, "q_lora_rank"),
        "groups": whole(config, "o_groups"),
        "output_rank": whole(config, "o_lora_rank"),
        "window": whole(config, "sliding_window"),
        "extra_params": _streams(config, int(sizes["hidden"])),
    }
    if kind == "window alone":
        return table
    if kind == "heavily compressed":
        return table | {"ratio": 128}
    return table | {
        "ratio": 4,
        "index_heads": whole(config, "index_n_heads"),
        "index_dim": whole(config, "index_head_dim"),
        "top": whole(config, "index_topk"),
    }


def _streams(config: Config, hidden: int) -> int:
    """Parameters of a layer that mix several residual streams (manifold-constrained hyper-connections):
    before attention and before the feed-forward block (2 + n)·n·(n·hidden + 1) + 3."""
    streams = whole(config, "hc_mult", 1, most=64)
    return 2 * ((2 + streams) * streams * (streams * hidden + 1) + 3) if streams > 1 else 0


def _sparse(config: Config, sizes: Config) -> Table:
    own = config.get("sparse_attention_config")
    found = own if isinstance(own, dict) else config
    block = _either(found, ("sparse_block_size", "index_block_size"), 128)
    blocks = _either(found, ("sparse_topk_blocks", "index_topk_blocks"), 16)
    local = whole(found, "sparse_local_block", whole(found, "index_local_blocks", 1, 0), 0)
    return {
        "kind": "indexed",
        "over": _full(config, sizes),
        "top": block * (blocks + local),
        "indexer": {
            "heads": _either(found, ("sparse_num_index_heads", "index_n_heads"), 4),
            "dim": _either(found, ("sparse_index_dim", "index_head_dim"), 128),
            "weighs_heads": False,
        },
    }


def attention(config: Config, sizes: Config, kind: str) -> Table:
    """The table of a kind of layer's attention."""
    if kind in ("compressed", "heavily compressed", "window alone"):
        return _compressed(config, sizes, kind)
    if kind == "linear" and (config.get("mamba_n_heads") or config.get("mamba_num_heads")):
        kind = "state space"  # as transformers names the layers of Granite and Nemotron
    if kind == "linear" and not any(config.get(key) for key in STATED):
        kind = "lightning"
    if kind == "linear":
        return _linear(config)
    if kind == "lightning":
        return _lightning(sizes)
    if kind == "state space":
        return _state_space(config, sizes)
    if kind == "convolution":
        return {"kind": "convolution", "convolution": whole(config, "conv_L_cache", 3)}
    if kind == "sparse":
        return _sparse(config, sizes)
    if kind in ("feed-forward", "dense feed-forward"):
        return {"kind": "none"}
    return _global(config, sizes) if kind == "full" else _sliding(config, sizes)


# any of these says how large the states of linear attention are; without, they are as the heads of the rest
STATED = ("linear_num_value_heads", "linear_num_key_heads", "linear_attn_config", "linear_num_heads")
STATED = (
    *STATED,
    "linear_key_head_dim",
    "linear_head_dim",
    "linear_value_head_dim",
    "full_attention_interval",
)


# -- feed-forward --------------------------------------------------------------------------------------------
def _experts(config: Config, sizes: Config) -> Table:
    latent = config.get("moe_latent_size") or config.get("routed_expert_hidden_size")
    idle = config.get("zero_expert_num")
    table: Table = {
        "kind": "experts",
        "experts": int(sizes["experts"]),
        "top_k": int(sizes["top_k"]),
        "width": int(sizes["expert_ffn"]),
        "shared_experts": int(sizes["shared_experts"]),
        "shared_width": int(sizes["shared_ffn"]),
        "gated": bool(sizes["gated"]),
    }
    if latent:
        key = "moe_latent_size" if config.get("moe_latent_size") else "routed_expert_hidden_size"
        table["latent"] = whole(config, key)
    if config.get("enable_moe_block"):  # Gemma 4 has a dense block beside the experts
        table |= {"shared_experts": 1, "shared_width": whole(config, "intermediate_size")}
    if idle:
        table["idle_experts"] = whole(config, "zero_expert_num")
    return table


def _routed(config: Config, sizes: Config, place: int, layers: int) -> bool:
    """Whether the layer at a place has experts."""
    if not sizes["experts"]:
        return False
    listed = config.get("mlp_layer_types")
    if isinstance(listed, list):
        kinds = {"dense": "", "sparse": "sparse", "moe": "sparse", "hash_moe": "sparse"}
        return bool(_named("mlp_layer_types", _as_long(listed, "mlp_layer_types", layers)[place], kinds))
    listed = config.get("moe_layer_freq")
    if isinstance(listed, list):
        return bool(_as_long(listed, "moe_layer_freq", layers)[place])
    if isinstance(config.get("moe_layers"), list) and config["moe_layers"]:
        return place in config["moe_layers"]
    if config.get("expert_layer_period"):
        offset = whole(config, "expert_layer_offset", 0, 0)
        return place % whole(config, "expert_layer_period") == offset
    alone = config.get("mlp_only_layers")
    if isinstance(alone, list) and place in alone:
        return False
    if config.get("moe_layer_end_index") and place > whole(config, "moe_layer_end_index"):
        return False
    first, every = int(sizes["first_dense_layers"]), int(sizes["moe_every"])
    return place >= first and (place - first) % every == every - 1


def _reuses_index(config: Config, place: int) -> bool:
    """Whether a layer reads what an earlier layer's indexer picked (GLM-5.2)."""
    listed = config.get("indexer_types")
    if not isinstance(listed, list) or place >= len(listed):
        return False
    return _named("indexer_types", listed[place], {"full": "full", "shared": "shared"}) == "shared"


DENSE_WIDTHS = ("dense_intermediate_size", "intermediate_size_mlp", "intermediate_size", "ffn_hidden_size")


def _width(config: Config, sizes: Config) -> int:
    """Width of a dense block: of that of Liquid's models, two thirds, rounded up."""
    width = int(sizes["ffn"]) or next((whole(config, key) for key in DENSE_WIDTHS if config.get(key)), 0)
    if not config.get("block_auto_adjust_ff_dim"):
        return width
    times = config.get("block_ffn_dim_multiplier") or 1.0
    if not isinstance(times, (int, float)) or not 0 < times <= 16:
        raise ValueError(f"block_ffn_dim_multiplier must be above 0 and at most 16, got {str(times)[:40]}.")
    fitted = int(2 * width / 3) * float(times)
    multiple = whole(config, "block_multiple_of", 256)
    return int(-(-int(fitted) // multiple) * multiple)


def _halves(config: Config, sizes: Config, kind: str, routed: bool) -> list[tuple[Table, str, int]]:
    """What stands in one layer of the file: (attention, its feed-forward block in a word, norms) of each of
    our layers."""
    if kind == "side by side":  # a state space beside attention, before one block (Falcon-H1)
        space = _state_space(config, sizes) | {"normed": bool(config.get("mamba_rms_norm"))}
        return [(space, "none", 0), (_full(config, sizes), "dense", 2)]
    if config.get("expert_ffn_hidden_size"):  # attention and a dense block twice, experts beside (LongCat)
        return [(_full(config, sizes), "dense", 2), (_full(config, sizes), "both", 2)]
    if kind == "feed-forward":
        return [(attention(config, sizes, kind), "experts", 1)]
    if kind == "dense feed-forward":
        return [(attention(config, sizes, kind), "dense", 1)]
    if config.get("state_size"):
        return [(attention(config, sizes, kind), "none", 1)]
    return [(attention(config, sizes, kind), "experts" if routed else "dense", 2)]


OWN_SIZES = {"head_dim": "head_dim", "num_key_value_heads": "kv_heads", "num_attention_heads": "heads"}


def _own_sizes(config: Config, place: int) -> Table:
    """Sizes of a layer's heads that differ from those of the rest."""
    listed = config.get("per_layer_config")
    own: Table = {}
    if isinstance(listed, dict):
        own = listed.get(f"{place:02d}") or listed.get(str(place)) or {}
    for key in own:
        if key not in OWN_SIZES:
            raise ValueError(f"per_layer_config may name {', '.join(OWN_SIZES)} of a layer, got {key[:40]}.")
    return {OWN_SIZES[key]: whole(own, key) for key in own}


def groups(config: Config, sizes: Config) -> list[Table]:
    """The tables of a model's groups of layers, for the ``sizes`` that ``config_json`` found in the same
    file."""
    layers = int(sizes["layers"])
    kinds = schedule(config, layers)
    alone = any(kind in ("feed-forward", "dense feed-forward") for kind in kinds)
    shared = whole(config, "num_kv_shared_layers", 0, 0)
    gated, width = bool(sizes["gated"]), _width(config, sizes)
    blocks: dict[str, Table] = {
        "dense": {"kind": "dense", "width": width, "gated": gated},
        "wide": {"kind": "dense", "width": 2 * width, "gated": gated},
        "none": {"kind": "dense", "width": 0, "gated": gated},
    }
    if not sizes["experts"] and any(kind == "feed-forward" for kind in kinds):
        raise ValueError("This config.json has no n_routed_experts, but names layers of experts.")
    if sizes["experts"]:
        blocks["experts"] = _experts(config, sizes)
        blocks["both"] = blocks["experts"] | {"shared_experts": 1, "shared_width": width}
    names: list[str] = []
    found: list[Table] = []
    places = 0
    for place, kind in enumerate(kinds):
        routed = not alone and _routed(config, sizes, place, layers)
        borrows = shared > 0 and place >= layers - shared
        for mixed, block, norms in _halves(config, sizes, kind, routed):
            if borrows:
                mixed["tensors"] = 0
            if borrows and config.get("use_double_wide_mlp"):
                block = "wide"
            if _reuses_index(config, place):
                mixed.pop("indexer", None)
            mixed |= _own_sizes(config, place)
            if alone:
                block = block if mixed["kind"] == "none" else "none"
            table: Table = {"attention": mixed, "mlp": blocks[block], "norms": 1 if alone else norms}
            if kind == "sliding":
                chunks = config.get("sliding_window") is None and config.get("attention_chunk_size")
                table["window"] = whole(config, "attention_chunk_size" if chunks else "sliding_window")
                table["chunked"] = bool(chunks)
            if (name := str(table)) in names:
                found[names.index(name)]["count"] += 1
            else:
                names.append(name)
                found.append({"count": 1, **table, "first": places})
            places += 1
    return found


def layer_embeddings(config: Config, sizes: Config) -> int:
    """Parameters of embeddings that each layer has of its own (Gemma 3n, Gemma 4): the table, what brings a
    token's width to theirs, and in each layer a gate, the way back and a norm."""
    width = whole(config, "hidden_size_per_layer_input", 0, 0)
    layers, hidden = int(sizes["layers"]), int(sizes["hidden"])
    vocab = whole(config, "vocab_size_per_layer_input", int(sizes["vocab"]))
    return layers * width * (vocab + hidden) + width + layers * (2 * hidden * width + hidden) * (width > 0)
