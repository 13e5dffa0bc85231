"""The layers that a config.json describes beyond the short keys of ``config_json``: linear attention and
state spaces, attention over what an indexer picks or over compressed tokens, gates, heads of two sizes,
caches that layers share, latent experts, and layers that are one block alone.

``groups`` gives the tables that ``models.group_from`` reads, or none where the short keys say it all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    "compressed_sparse_attention": "compressed",
    "heavily_compressed_attention": "heavily compressed",
    "moe": "feed-forward",
    "mlp": "feed-forward",
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
)


def reaches_beyond(config: Config) -> bool:
    """Whether the layers need more than the short keys."""
    if any(config.get(key) for key in BEYOND) or (config.get("num_kv_shared_layers") or 0) > 0:
        return True
    types = config.get("layer_types")
    named = types if isinstance(types, list) else []
    lightning = config.get("attn_type_list")
    some = isinstance(lightning, list) and any(one == 0 for one in lightning)
    return some or any(KINDS.get(str(one), "") not in ("full", "sliding") for one in named)


def whole(config: Config, key: str, otherwise: int | None = None, least: int = 1) -> int:
    """A whole number of the file; ValueError names the key where it is missing or something else."""
    value = config.get(key)
    if value is None and otherwise is not None:
        return otherwise
    is_whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
    if value is None:
        raise ValueError(f"This config.json has no {key}.")
    if not is_whole or not least <= value < 10**7:
        raise ValueError(f"{key} must be a whole number of at least {least}, got {str(value)[:40]}.")
    return int(value)


def plain(config: Config) -> dict:
    """The file without what reaches beyond the short keys, and with what these need in its place."""
    left_out = (*BEYOND, "text_config", "layer_types", "linear_num_key_heads")
    found = {key: value for key, value in config.items() if key not in left_out}
    if not found.get("num_hidden_layers"):
        found["num_hidden_layers"] = count(config)
    return found


# what may stand in a file without changing what its layers are made of
HARMLESS = (
    "attn_res_block_size",
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
    "hidden_size_per_layer_input",
    "ignore_index",
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
    "mamba_hidden_act",
    "mamba_proj_bias",
    "mamba_ssm_cache_dtype",
    "mamba_ssm_dtype",
    "mlp_hidden_act",
    "moe_layer_freq",
    "moe_renormalize",
    "moe_router_activation_func",
    "moe_shared_expert_overlap",
    "mtp_hybrid_override_pattern",
    "mtp_layers_block_type",
    "mtp_num_hidden_layers",
    "mtp_transformer_layers",
    "n_group",
    "no_repeat_ngram_size",
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
    "qk_norm_type",
    "query_pre_attn_scalar",
    "residual_in_fp32",
    "rotary_dim",
    "router_jitter_noise",
    "shared_intermediate_size",
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
)


def require_known(config: Config, keys: tuple[str, ...]) -> None:
    """ValueError for a key that may change what layers are made of, and that neither ``keys`` nor this module
    reads."""
    for key, value in config.items():
        said = isinstance(value, (int, float, list, dict)) and value not in (0, False, [], {})
        shapes = any(part in key for part in SHAPES) and not any(part in key for part in NOT_SHAPES)
        if said and shapes and key not in keys and key not in READ and key not in HARMLESS:
            raise ValueError(f"{key} is a key that is not read here, and may change what layers are made of.")
    if config.get("hidden_size_per_layer_input"):
        raise ValueError("hidden_size_per_layer_input must be 0: embeddings of each layer are not read here.")
    if config.get("audio_config"):
        raise ValueError("audio_config must be left out: audio towers are not read here.")


def tower(config: Config) -> int:
    """Parameters of the tower that reads images, and of what brings its patches to the model's width: layers
    of 4·h² + 2·h·i (3·h·i with a gate) and mergers of 2×2 patches. 0 without one."""
    own = config.get("vision_config")
    if not isinstance(own, dict):
        return 0
    layers = own.get("depth") or own.get("num_hidden_layers") or own.get("vt_num_hidden_layers")
    hidden = own.get("vt_hidden_size") or own.get("hidden_size")
    width = own.get("vt_intermediate_size") or own.get("intermediate_size")
    if not (layers and hidden and width):
        return 0
    gates = 3 if "gemma" in str(own.get("model_type")) else 2
    merged = hidden * (own.get("spatial_merge_size") or 1) ** 2
    out = own.get("out_hidden_size") or config.get("hidden_size") or hidden
    mergers = 1 + len(own.get("deepstack_visual_indexes") or [])
    places = own.get("num_position_embeddings") or 2 * (own.get("position_embedding_size") or 0)
    found = layers * (4 * hidden * hidden + gates * hidden * width) + places * hidden
    return int(found + mergers * (merged * merged * (merged > hidden) + merged * out))


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
    every = config.get("full_attention_interval")
    if every is not None:
        every = whole(config, "full_attention_interval")
        return ["full" if place % every == every - 1 else "linear" for place in range(layers)]
    return ["full"] * layers


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
    if one not in kinds:
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
    if config.get("attn_output_gate"):
        table["gate_width"] = heads * width
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
    if config.get("global_head_dim") is not None:
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


def _either(config: Config, names: tuple[str, str], otherwise: int | None = None) -> int:
    """A whole number that makers give one of two names; a missing one is named by the first."""
    for key in names:
        if config.get(key) is not None:
            return whole(config, key)
    return whole(config, names[0], otherwise)


def _state_space(config: Config) -> Table:
    return {
        "kind": "state space",
        "heads": _either(config, ("mamba_num_heads", "mamba_n_heads")),
        "head_dim": _either(config, ("mamba_head_dim", "mamba_d_head")),
        "state": _either(config, ("ssm_state_size", "mamba_d_state")),
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
    streams = whole(config, "hc_mult", 1)
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
    if kind == "linear":
        return _linear(config)
    if kind == "lightning":
        return _lightning(sizes)
    if kind == "state space":
        return _state_space(config)
    if kind == "sparse":
        return _sparse(config, sizes)
    if kind in ("feed-forward", "dense feed-forward"):
        return {"kind": "none"}
    return _global(config, sizes) if kind == "full" else _full(config, sizes)


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


def _routed(config: Config, sizes: Config, place: int) -> bool:
    """Whether the layer at a place has experts."""
    if not sizes["experts"]:
        return False
    listed = config.get("mlp_layer_types")
    if isinstance(listed, list):
        return place < len(listed) and listed[place] != "dense"
    alone = config.get("mlp_only_layers")
    if isinstance(alone, list) and place in alone:
        return False
    first, every = int(sizes["first_dense_layers"]), int(sizes["moe_every"])
    return place >= first and (place - first) % every == every - 1


def _reuses_index(config: Config, place: int) -> bool:
    """Whether a layer reads what an earlier layer's indexer picked (GLM-5.2)."""
    listed = config.get("indexer_types")
    if not isinstance(listed, list) or place >= len(listed):
        return False
    return _named("indexer_types", listed[place], {"full": "full", "shared": "shared"}) == "shared"


def groups(config: Config, sizes: Config) -> list[Table]:
    """The tables of a model's groups of layers, for the ``sizes`` that ``config_json`` found in the same
    file."""
    layers = int(sizes["layers"])
    kinds = schedule(config, layers)
    alone = any(kind in ("feed-forward", "dense feed-forward") for kind in kinds)
    shared = whole(config, "num_kv_shared_layers", 0, 0)
    dense: Table = {"kind": "dense", "width": int(sizes["ffn"]), "gated": bool(sizes["gated"])}
    nothing: Table = {"kind": "dense", "width": 0, "gated": bool(sizes["gated"])}
    names: list[str] = []
    found: list[Table] = []
    for place, kind in enumerate(kinds):
        routed = kind == "feed-forward" or (not alone and _routed(config, sizes, place))
        borrows = shared > 0 and place >= layers - shared
        reuses = _reuses_index(config, place)
        name = f"{kind} {routed} {borrows} {reuses}"
        if name in names:
            found[names.index(name)]["count"] += 1
            continue
        names.append(name)
        mixed = attention(config, sizes, kind)
        if borrows:
            mixed["tensors"] = 0
        if reuses:
            mixed.pop("indexer", None)
        empty = alone and kind not in ("feed-forward", "dense feed-forward")
        table: Table = {
            "count": 1,
            "attention": mixed,
            "mlp": _experts(config, sizes) if routed else nothing if empty else dense,
            "norms": 1 if alone else 2,
            "first": place,
        }
        if kind == "sliding":
            table["window"] = whole(config, "sliding_window")
        found.append(table)
    return found
