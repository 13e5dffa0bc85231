"""A model from the config.json that Hugging Face keeps beside its weights: Llama, Mistral, Mixtral, Qwen, DeepSeek,
Kimi, Gemma, GPT-2 and what is named like them. The file is parsed as JSON and never executed.

``numbers`` takes the known keys out of the file, and ``fields_of`` makes a model's fields of them. The second is a
program, so a page without Python reads a dropped file by the same rules.
"""

from __future__ import annotations

import json
import math

from engine.program import program

KEYS = ("model_type", "num_hidden_layers", "n_layer", "num_layers", "n_layers", "hidden_size", "n_embd", "d_model",
        "num_attention_heads", "n_head", "n_heads", "num_key_value_heads", "head_dim", "intermediate_size", "n_inner",
        "ffn_dim", "intermediate_size_mlp", "vocab_size", "num_local_experts", "num_experts", "n_routed_experts",
        "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts", "shared_expert_intermediate_size", "first_k_dense_replace",
        "decoder_sparse_step", "interleave_moe_layer_step", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim",
        "qk_nope_head_dim", "v_head_dim", "tie_word_embeddings", "attention_bias", "sliding_window", "use_sliding_window",
        "max_window_layers", "sliding_window_pattern")
# of texts, the place in this list is their number; a text that is not in it counts as not given
TYPES = ("gpt2", "gpt_neox", "bloom", "opt", "falcon", "gemma", "gemma2", "gemma3_text", "qwen2", "qwen2_moe",
         "llama4_text")
PLAIN_MLP = 5               # the types before this place have no gate
TIED = (0, 2, 3, 5, 6, 7)   # those whose embeddings are tied unless the file says otherwise
QKV_BIAS = (8, 9)
GEMMA2, GEMMA3, LLAMA4 = 6, 7, 10

FIELDS = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts", "top_k", "expert_ffn",
          "shared_experts", "shared_ffn", "first_dense_layers", "moe_every", "q_lora", "kv_lora", "rope_dim", "nope_dim",
          "v_dim", "window", "windowed_layers", "gated", "tied", "qkv_bias")
# what a model cannot do without: any one key of each group
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HIDDEN, HEADS = ("hidden_size", "n_embd", "d_model"), ("num_attention_heads", "n_head", "n_heads")
FFN, EXPERTS = ("intermediate_size", "n_inner", "ffn_dim"), ("num_local_experts", "num_experts", "n_routed_experts")
NEEDED = (LAYERS, HIDDEN, HEADS, ("vocab_size",), FFN, ("num_experts_per_tok",))


def _places(*names) -> tuple[int, ...]:
    return tuple(KEYS.index(name) for name in names)


AT_LAYERS, AT_HIDDEN, AT_HEADS, AT_FFN, AT_EXPERTS = (_places(*names) for names in (LAYERS, HIDDEN, HEADS, FFN, EXPERTS))
(TYPE, KV_HEADS, HEAD_DIM, DENSE_FFN, VOCAB, TOP_K, EXPERT_FFN, SHARED, SHARED_FFN, FIRST_DENSE, SPARSE_STEP, MOE_STEP,
 Q_LORA, KV_LORA, ROPE, NOPE, V_DIM, TIE, BIAS, WINDOW, USE_WINDOW, MAX_WINDOW, PATTERN) = _places(
    "model_type", "num_key_value_heads", "head_dim", "intermediate_size_mlp", "vocab_size", "num_experts_per_tok",
    "moe_intermediate_size", "n_shared_experts", "shared_expert_intermediate_size", "first_k_dense_replace",
    "decoder_sparse_step", "interleave_moe_layer_step", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim",
    "qk_nope_head_dim", "v_head_dim", "tie_word_embeddings", "attention_bias", "sliding_window", "use_sliding_window", "max_window_layers",
    "sliding_window_pattern")


def first(given, places, otherwise):
    """The first of these that the file gives."""
    for place in places:
        if not math.isnan(given[place]):
            return given[place]
    return otherwise


def among(value, values):
    """Whether a value is one of some."""
    for one in values:
        if value == one:
            return 1
    return 0


def windowed(given, kind, layers):
    """How many layers see a window alone."""
    if math.isnan(given[WINDOW]) or first(given, [USE_WINDOW], 1) == 0:
        return 0
    if kind == GEMMA2:
        return math.floor(layers / 2)
    pattern = first(given, [PATTERN], 6 if kind == GEMMA3 else 0)
    if pattern > 0:
        return layers - math.floor(layers / pattern)
    if not math.isnan(given[MAX_WINDOW]):
        return max(0, layers - given[MAX_WINDOW])
    return layers


@program(fields=len(FIELDS), missing=())
def fields_of(given):
    """A model's FIELDS from the numbers of KEYS (NaN: not given), and the place in NEEDED of what is missing, or −1."""
    kind = first(given, [TYPE], -1)
    layers, hidden, heads = first(given, AT_LAYERS, 0), first(given, AT_HIDDEN, 0), first(given, AT_HEADS, 0)
    vocab, ffn = first(given, [VOCAB], 0), first(given, AT_FFN, 4 * hidden if kind == 0 else 0)
    experts, top_k = first(given, AT_EXPERTS, 0), first(given, [TOP_K], 0)
    if experts < 2:
        experts = 0
    missing = -1
    if experts > 0 and top_k < 1:
        missing = 5
    if ffn < 1 and not (experts > 0 and first(given, [EXPERT_FFN], 0) > 0):
        missing = 4
    if vocab < 1:
        missing = 3
    if heads < 1:
        missing = 2
    if hidden < 1:
        missing = 1
    if layers < 1:
        missing = 0
    expert_ffn, shared, shared_ffn, first_dense, every = 0, 0, 0, 0, 1
    if experts > 0:
        expert_ffn = first(given, [EXPERT_FFN], ffn)
        first_dense = first(given, [FIRST_DENSE], 0)
        every = first(given, [SPARSE_STEP, MOE_STEP], 1)
        shared = first(given, [SHARED], 0)
        shared_ffn = expert_ffn if shared > 0 else 0
        if kind == LLAMA4:
            shared, shared_ffn, ffn = 1, expert_ffn, first(given, [DENSE_FFN], ffn)
        if first(given, [SHARED_FFN], 0) > 0:
            shared, shared_ffn = 1, given[SHARED_FFN]
        if first_dense == 0 and every == 1:
            ffn = 0
    else:
        top_k = 0
    window_layers = windowed(given, kind, layers)
    kv_lora = first(given, [KV_LORA], 0)
    return {"fields": [
        layers, hidden, heads, first(given, [KV_HEADS], heads),
        first(given, [HEAD_DIM], math.floor(hidden / max(1, heads))), ffn, vocab, experts, top_k, expert_ffn, shared,
        shared_ffn, first_dense, every, first(given, [Q_LORA], 0), kv_lora, first(given, [ROPE], 64), first(given, [NOPE], 128), first(given, [V_DIM], 128),
        given[WINDOW] if window_layers > 0 else 0, window_layers, 0 if kind >= 0 and kind < PLAIN_MLP else 1,
        first(given, [TIE], among(kind, TIED)), first(given, [BIAS], among(kind, QKV_BIAS))], "missing": missing}


# -- what the page's script (assets/widget/intake.js) does too ---------------------------------------------------------
NOT_JSON = "This is not JSON."
NOT_AN_OBJECT = "A config.json holds one object in braces."
MISSING = tuple(f"This config.json has no {names[0]}" + (f" (nor {', '.join(names[1:])})" if names[1:] else "") + "."
                for names in NEEDED)


def numbers(config: dict) -> list[float]:
    """The numbers of KEYS; NaN for what is not given. The language model's own part where there are several."""
    inner = config.get("text_config")
    config = {**config, **inner} if isinstance(inner, dict) else config
    return [_number(config.get(key)) for key in KEYS]


def _number(value) -> float:
    if isinstance(value, str):
        return float(TYPES.index(value)) if value in TYPES else math.nan
    if isinstance(value, (bool, int, float)):
        return float(value)
    return math.nan


def read(text: str) -> dict[str, float]:
    """A model's fields from the text of a config.json; ValueError says what is wrong with it."""
    try:
        config = json.loads(text)
    except json.JSONDecodeError:
        raise ValueError(NOT_JSON) from None
    if not isinstance(config, dict):
        raise ValueError(NOT_AN_OBJECT)
    found = fields_of(numbers(config))
    if found["missing"] >= 0:
        raise ValueError(MISSING[int(found["missing"])])
    return dict(zip(FIELDS, found["fields"].tolist()))
