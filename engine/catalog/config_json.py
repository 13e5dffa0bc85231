"""A model from the config.json that Hugging Face keeps beside its weights: Llama, Mistral, Mixtral, Qwen,
DeepSeek, Kimi, Gemma, GPT-2 and others with the same key names. The file is parsed as JSON and never
executed.

``numbers`` takes the known keys out of the file, and ``fields_of`` turns them into a model's fields. The
latter is a program, so a page without Python reads a dropped file by the same rules.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from engine.base.program import program
from engine.catalog import config_layers, stored, towers
from engine.catalog.models import AT_MOST, KINDS, Model, described

KEYS = (
    "model_type",
    "num_hidden_layers",
    "n_layer",
    "num_layers",
    "n_layers",
    "hidden_size",
    "n_embd",
    "d_model",
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "n_inner",
    "ffn_dim",
    "ffn_hidden_size",
    "expert_ffn_hidden_size",
    "intermediate_size_mlp",
    "vocab_size",
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "n_shared_experts",
    "shared_expert_intermediate_size",
    "first_k_dense_replace",
    "decoder_sparse_step",
    "interleave_moe_layer_step",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "qk_nope_head_dim",
    "v_head_dim",
    "tie_word_embeddings",
    "attention_bias",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "sliding_window_pattern",
    "layer_types",
    "num_experts_per_token",
    "top_k_experts",
    "num_shared_experts",
    "moe_shared_expert_intermediate_size",
    "qkv_bias",
    "hidden_act",
    "mlp_hidden_act",
    "moe_num_experts",
    "moe_k",
    "moe_topk",
    "dense_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
    "moe_num_shared_experts",
    "num_dense_layers",
    "moe_layer_start_index",
    "tie_embedding",
    # keys that only models with linear attention or state-space layers have
    "full_attention_interval",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "mamba_num_heads",
    "hybrid_override_pattern",
)
# A text is represented by its place in this list; one that is not listed counts as not given. Types of models
# whose files leave out what other files say; then activation functions.
TYPES = (
    "gpt2",
    "gpt_neox",
    "bloom",
    "opt",
    "falcon",
    "gemma",
    "gemma2",
    "gemma3_text",
    "qwen2",
    "qwen2_moe",
    "llama4_text",
    "gemma4_text",
    "nemotron_h",
    "apertus",
    "minimax",
    "starcoder2",
    "phi",
    "gptj",
    "gpt_neo",
    "gpt_bigcode",
    "codegen",
    "mpt",
    "biogpt",
    "xglm",
    "cohere",
    "cohere2",
    "ernie4_5",
    "ernie4_5_moe",
    "smollm3",
    "lfm2",
    "lfm2_moe",
    "lfm3",
    "vaultgemma",
    "gemma3n_text",
    "minicpm3",
    "recurrent_gemma",
    "bitnet",
    "bert-generation",
    "git",
    "relu2",
    "squared_relu",
    "xielu",
    "gelu_new",
)


def _types(*names: str) -> tuple[int, ...]:
    return tuple(TYPES.index(name) for name in names)


# without a gate in an MLP: types, and activation functions that no type uses with one
PLAIN_MLP = _types(
    *("gpt2", "gpt_neox", "bloom", "opt", "falcon", "nemotron_h", "apertus", "starcoder2", "phi", "gptj"),
    *("gpt_neo", "gpt_bigcode", "codegen", "mpt", "biogpt", "xglm", "bert-generation", "git"),
)
PLAIN_ACTS = _types("relu2", "squared_relu", "xielu", "gelu_new")
# types whose embeddings are tied unless the file says otherwise
TIED = _types(
    *("gpt2", "bloom", "opt", "gemma", "gemma2", "gemma3_text", "gemma4_text", "falcon", "cohere", "cohere2"),
    *("ernie4_5", "ernie4_5_moe", "smollm3", "lfm2", "lfm2_moe", "lfm3", "starcoder2", "vaultgemma"),
    *("gemma3n_text", "minicpm3", "recurrent_gemma", "gpt_neo", "gpt_bigcode", "mpt", "biogpt", "xglm"),
)
QKV_BIASED = _types("qwen2", "qwen2_moe")
GEMMA2, GEMMA3, LLAMA4 = _types("gemma2", "gemma3_text", "llama4_text")
BITNET = TYPES.index("bitnet")  # which has a gate all the same
TEXTS = ("model_type", "hidden_act", "mlp_hidden_act")

FIELDS = (
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "ffn",
    "vocab",
    "experts",
    "top_k",
    "expert_ffn",
    "shared_experts",
    "shared_ffn",
    "first_dense_layers",
    "moe_every",
    "q_lora",
    "kv_lora",
    "rope_dim",
    "nope_dim",
    "v_dim",
    "window",
    "windowed_layers",
    "gated",
    "tied",
    "qkv_bias",
)
# of these pairs no model has more of the first than of the second
LESS = tuple(FIELDS.index(name) for name in AT_MOST)
MORE = tuple(FIELDS.index(name) for name in AT_MOST.values())
# the sizes that every model needs: any one key of each group will do
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HIDDEN, HEADS = ("hidden_size", "n_embd", "d_model"), ("num_attention_heads", "n_head", "n_heads")
FFN, EXPERTS = (
    ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
)
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_k", "moe_topk")
NEEDED = (LAYERS, HIDDEN, HEADS, ("vocab_size",), FFN, CHOSEN)
TIES = "tie_word_embeddings"
INNER = "text_config"  # the language model's own part, where the file describes several

# the smallest and largest values of a model's fields that a planner can handle
BOUNDS = {
    "layers": (1, 200),
    "hidden": (128, 32768),
    "heads": (1, 256),
    "kv_heads": (1, 256),
    "head_dim": (16, 512),
    "ffn": (0, 131072),
    "vocab": (256, 524288),
    "experts": (0, 1024),
    "top_k": (0, 32),
    "expert_ffn": (0, 32768),
    "shared_experts": (0, 16),
    "shared_ffn": (0, 32768),
    "first_dense_layers": (0, 32),
    "moe_every": (1, 8),
    "q_lora": (0, 8192),
    "kv_lora": (0, 4096),
    "rope_dim": (0, 256),
    "nope_dim": (16, 512),
    "v_dim": (16, 512),
    "window": (0, 131072),
    "windowed_layers": (0, 200),
}
HOLDS = {
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "intermediate_size_mlp": "ffn",
    "vocab_size": "vocab",
    "moe_intermediate_size": "expert_ffn",
    "n_shared_experts": "shared_experts",
    "num_shared_experts": "shared_experts",
    "shared_expert_intermediate_size": "shared_ffn",
    "moe_shared_expert_intermediate_size": "shared_ffn",
    "shared_intermediate_size": "shared_ffn",
    "share_expert_dim": "shared_ffn",
    "moe_num_shared_experts": "shared_experts",
    "dense_intermediate_size": "ffn",
    "expert_ffn_hidden_size": "expert_ffn",
    "num_dense_layers": "first_dense_layers",
    "moe_layer_start_index": "first_dense_layers",
    "first_k_dense_replace": "first_dense_layers",
    "decoder_sparse_step": "moe_every",
    "interleave_moe_layer_step": "moe_every",
    "q_lora_rank": "q_lora",
    "kv_lora_rank": "kv_lora",
    "qk_rope_head_dim": "rope_dim",
    "qk_nope_head_dim": "nope_dim",
    "v_head_dim": "v_dim",
    "max_window_layers": "windowed_layers",
    "sliding_window_pattern": "windowed_layers",
    **dict.fromkeys(LAYERS, "layers"),
    **dict.fromkeys(HIDDEN, "hidden"),
    **dict.fromkeys(HEADS, "heads"),
    **dict.fromkeys(FFN, "ffn"),
    **dict.fromkeys(EXPERTS, "experts"),
    **dict.fromkeys(CHOSEN, "top_k"),
}
LAYER_TYPES = ("sliding_attention", "full_attention", "chunked_attention")  # the first is counted
LINEAR = KEYS[KEYS.index("full_attention_interval") :]
FLAGS = ("tie_word_embeddings", "tie_embedding", "attention_bias", "qkv_bias", "use_sliding_window")
MOST_WINDOW = 10**7  # a window may be given without being used


class Rule(NamedTuple):
    """What the value of a key may be; null always counts as not given."""

    kind: str  # "number", "flag", "text", "layers", "pattern" or "absent"
    least: int
    most: int
    allowed: str  # in words
    names: tuple[str, ...] = ()  # allowed names of layers


def _rule(key: str) -> Rule:
    if key in TEXTS:
        return Rule("text", 0, 0, "a text in quotes")
    if key in LINEAR:
        return Rule("absent", 0, 0, "left out: layers of linear attention and state spaces are not modelled")
    if key == "layer_types":
        return Rule("layers", 0, 0, f"a list of {', '.join(LAYER_TYPES)}", LAYER_TYPES)
    if key in FLAGS:
        return Rule("flag", 0, 1, "true or false")
    if key == "sliding_window_pattern":
        return Rule("pattern", *BOUNDS[HOLDS[key]], "a whole number from 0 to 200, or a text such as LLLG")
    least, most = (0, MOST_WINDOW) if key == "sliding_window" else BOUNDS[HOLDS[key]]
    return Rule("number", least, most, f"a whole number from {least:,} to {most:,}")


RULES = tuple(_rule(key) for key in KEYS)


def _places(*names) -> tuple[int, ...]:
    return tuple(KEYS.index(name) for name in names)


AT_LAYERS, AT_HIDDEN, AT_HEADS, AT_FFN, AT_EXPERTS, AT_CHOSEN = (
    _places(*names) for names in (LAYERS, HIDDEN, HEADS, FFN, EXPERTS, CHOSEN)
)
TYPE, ACT, MLP_ACT = _places(*TEXTS)
KV_HEADS, HEAD_DIM, VOCAB = _places("num_key_value_heads", "head_dim", "vocab_size")
LLAMA4_FFN, DENSE_FFN = _places("intermediate_size_mlp", "dense_intermediate_size")
AT_EXPERT_FFN = _places("moe_intermediate_size", "expert_ffn_hidden_size")
AT_SHARED = _places("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
SHARED_MLP = KEYS.index("shared_intermediate_size")
AT_SHARED_FFN = _places(
    *("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size"),
    "share_expert_dim",
)
AT_FIRST_DENSE = _places("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
AT_STEP = _places("decoder_sparse_step", "interleave_moe_layer_step")
Q_LORA, KV_LORA, ROPE, NOPE, V_DIM = _places(
    "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"
)
AT_TIE, AT_BIAS = _places("tie_word_embeddings", "tie_embedding"), _places("attention_bias", "qkv_bias")
WINDOW, USE_WINDOW, MAX_WINDOW, PATTERN, LAYERS_GIVEN = _places(
    "sliding_window", "use_sliding_window", "max_window_layers", "sliding_window_pattern", "layer_types"
)


def first(given: list[float], places: Sequence[int], otherwise: float) -> float:
    """The first of these keys that the file gives, or the default."""
    for place in places:
        if not math.isnan(given[place]):
            return given[place]
    return otherwise


def among(value: float, values: tuple[int, ...]) -> int:
    """Whether a value is among these."""
    for one in values:
        if value == one:
            return 1
    return 0


def windowed(given: list[float], kind: float, layers: float) -> float:
    """How many layers attend to a window only."""
    if math.isnan(given[WINDOW]) or first(given, [USE_WINDOW], 1) == 0:
        return 0
    if not math.isnan(given[LAYERS_GIVEN]):
        return given[LAYERS_GIVEN]
    if kind == GEMMA2:
        return math.floor(layers / 2)
    pattern = first(given, [PATTERN], 6 if kind == GEMMA3 else 0)
    if pattern > 0:
        return layers - math.floor(layers / pattern)
    if not math.isnan(given[MAX_WINDOW]):
        return max(0, layers - given[MAX_WINDOW])
    return layers


def several(given: list[float]) -> float:
    """How many experts there are, if more than one."""
    experts = first(given, AT_EXPERTS, 0)
    return experts if experts > 1 else 0


def unnumbered(given: list[float]) -> bool:
    """Whether a file describes experts, and does not say how many there are."""
    said = first(given, AT_CHOSEN, 0) > 0 and first(given, AT_EXPERT_FFN, 0) > 0
    return said and math.isnan(first(given, AT_EXPERTS, math.nan))


def gated(given: list[float], kind: float) -> int:
    """Whether an MLP has a gate."""
    if kind == BITNET:
        return 1
    return 1 - max(among(kind, PLAIN_MLP), among(first(given, [MLP_ACT, ACT], -1), PLAIN_ACTS))


@program(fields=len(FIELDS), wrong=())
def fields_of(given: list[float]) -> dict[str, Any]:
    """A model's FIELDS from the numbers of KEYS (NaN: not given), and the index into COMPLAINTS of what is
    wrong, or −1."""
    kind = first(given, [TYPE], -1)
    layers, hidden, heads = first(given, AT_LAYERS, 0), first(given, AT_HIDDEN, 0), first(given, AT_HEADS, 0)
    vocab, ffn = first(given, [VOCAB], 0), first(given, AT_FFN, 4.0 * hidden if kind == 0 else 0)
    experts, top_k = several(given), first(given, AT_CHOSEN, 0)
    kv_lora = first(given, [KV_LORA], 0)
    # a latent cache is read by all query heads, whatever the file says of key heads
    kv_heads = heads if kv_lora > 0 else first(given, [KV_HEADS], heads)
    wrong = -1
    if kv_lora == 0 and math.isnan(given[HEAD_DIM]) and heads > 0 and hidden % heads != 0:
        wrong = 7
    if kv_lora == 0 and kv_heads > 0 and heads % kv_heads != 0:
        wrong = 6
    if experts > 0 and top_k < 1:
        wrong = 5
    if ffn < 1 and not (experts > 0 and first(given, AT_EXPERT_FFN, 0) > 0):
        wrong = 4
    if vocab < 1:
        wrong = 3
    if heads < 1:
        wrong = 2
    if hidden < 1:
        wrong = 1
    if layers < 1:
        wrong = 0
    expert_ffn, shared, shared_ffn, first_dense, every = 0, 0, 0, 0, 1
    if experts > 0:
        expert_ffn = first(given, AT_EXPERT_FFN, ffn)
        first_dense = first(given, AT_FIRST_DENSE, 0)
        every = first(given, AT_STEP, 1)
        shared = first(given, AT_SHARED, 0)
        shared_ffn = expert_ffn if shared > 0 else 0
        if kind == LLAMA4:
            shared, shared_ffn, ffn = 1, expert_ffn, first(given, [LLAMA4_FFN], ffn)
        if first(given, AT_SHARED_FFN, 0) > 0:
            shared, shared_ffn = 1, first(given, AT_SHARED_FFN, 0)
        ffn = first(given, [DENSE_FFN], ffn)
        if first_dense == 0 and every == 1:
            ffn = 0
    else:
        top_k = 0
        ffn = first(given, [SHARED_MLP], ffn)
    window_layers = windowed(given, kind, layers)
    head_dim = first(given, [HEAD_DIM], math.floor(hidden / max(1, heads)) if kv_lora == 0 else 128)
    fields = [
        layers,
        hidden,
        heads,
        kv_heads,
        head_dim,
        ffn,
        vocab,
        experts,
        top_k,
        expert_ffn,
        shared,
        shared_ffn,
        first_dense,
        every,
        first(given, [Q_LORA], 0),
        kv_lora,
        first(given, [ROPE], 64),
        first(given, [NOPE], 128),
        first(given, [V_DIM], 128),
        given[WINDOW] if window_layers > 0 else 0,
        window_layers,
        gated(given, kind),
        first(given, AT_TIE, among(kind, TIED)),
        first(given, AT_BIAS, among(kind, QKV_BIASED)),
    ]
    if wrong < 0:
        for i in range(len(LESS)):
            if fields[LESS[i]] > fields[MORE[i]]:
                wrong = 8 + i
        if unnumbered(given):
            wrong = 8 + len(LESS)
    return {"fields": fields, "wrong": wrong}


# -- also done by the page's script, assets/widget/intake.js -----------------------------------------------
LONGEST = 5 * 10**6  # characters; a longer file is refused
TOO_LONG = (
    "A config.json has a few kilobytes, and 3 MB where it lists each quantised matrix; this text is longer."
)
TOO_DEEP = "something nested very deeply"
NOT_JSON = "This is not JSON"
NOT_AN_OBJECT = "A config.json holds one object in braces."
# what is said where one of AT_MOST is passed, in the words of the file
PASSED = {
    "windowed_layers": "layer_types must name at most {layers} layers with a window, got {windowed_layers}.",
    "first_dense_layers": "first_k_dense_replace must be at most the {layers} layers, got "
    "{first_dense_layers}.",
    "top_k": "num_experts_per_tok must be at most the {experts} experts, got {top_k}.",
    "kv_heads": "num_key_value_heads must be at most the {heads} attention heads, got {kv_heads}.",
}


def _lacks(names: tuple[str, ...]) -> str:
    return (
        f"This config.json has no {names[0]}" + (f" (nor {', '.join(names[1:])})" if names[1:] else "") + "."
    )


COMPLAINTS = (
    *(_lacks(names) for names in NEEDED),
    "num_key_value_heads must divide the {heads} attention heads, got {kv_heads}.",
    "hidden_size must be a multiple of the {heads} attention heads where no head_dim is given, got {hidden}.",
    *(PASSED[name] for name in AT_MOST),
    _lacks(EXPERTS),
)
WRONG_LENGTH = "layer_types must name {layers} layers, one for each; got {given}."
SHOWN = 40  # characters of a wrong value that a message repeats


def _parsed(text: str):
    """The text parsed as strict JSON: Python's own extensions are refused, and numbers too long for an int
    become infinite."""

    def refuse(constant):
        raise json.JSONDecodeError(constant, text, text.index(constant))

    try:
        return json.loads(
            text,
            parse_constant=refuse,
            parse_int=lambda digits: int(digits) if len(digits) < SHOWN else float(digits),
        )
    except json.JSONDecodeError as wrong:
        raise ValueError(f"{NOT_JSON}: line {wrong.lineno}, column {wrong.colno}.") from None
    except RecursionError:
        raise ValueError(f"{NOT_JSON}.") from None


def _written(value) -> str:
    """A value as the file writes it, cut off where it is long."""
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    try:
        return json.dumps(int(value) if whole else value, ensure_ascii=False, separators=(",", ":"))[:SHOWN]
    except RecursionError:
        return TOO_DEEP


def _number(key: str, value, rule: Rule) -> float:
    """A value of the file as a number: NaN where it is not given, ValueError where the rule forbids it."""
    if value is None:
        return math.nan
    if rule.kind == "text" and isinstance(value, str):
        return float(TYPES.index(value)) if value in TYPES else math.nan
    if rule.kind == "flag" and isinstance(value, bool):
        return float(value)
    if rule.kind == "pattern" and isinstance(value, str) and re.fullmatch("L+G", value):
        return float(len(value))
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    counted = rule.kind in ("number", "pattern")
    if counted and rule.least <= number <= rule.most and number == int(number):
        return float(number)
    if rule.kind == "layers" and isinstance(value, list) and all(one in rule.names for one in value):
        return float(value.count(rule.names[0]))
    raise ValueError(f"{key} must be {rule.allowed}, got {_written(value)}.")


def merged(config: dict) -> dict:
    """A file with the keys of the language model's own part in place of the others; but whether embeddings
    are tied is said of the whole, if it is."""
    inner = config.get(INNER)
    tie = {TIES: config[TIES]} if config.get(TIES) is not None else {}
    return {**config, **inner, **tie} if isinstance(inner, dict) else config


def numbers(config: dict) -> list[float]:
    """The numbers of KEYS; NaN for what is not given."""
    inner = config.get(INNER)
    if inner is not None and not isinstance(inner, dict):
        raise ValueError(f"{INNER} must be an object in braces, got {_written(inner)}.")
    config = merged(config)
    found = [_number(key, config.get(key), rule) for key, rule in zip(KEYS, RULES)]
    layers, listed = first(found, AT_LAYERS, 0), config.get("layer_types")
    if isinstance(listed, list) and layers and len(listed) != layers:
        raise ValueError(WRONG_LENGTH.format(layers=f"{layers:.0f}", given=len(listed)))
    return found


def read(text: str) -> dict[str, float]:
    """A model's fields from the text of a config.json, as the page reads it; ValueError says what is wrong
    with it, and names a key that needs more than the short keys."""
    config = _config(text)
    numbers(config)
    if key := config_layers.unread(merged(config), PAGE_KNOWS):
        raise ValueError(config_layers.UNREAD.format(key=key[:60]))
    return sizes(config)


def _config(text: str) -> dict:
    if len(text) > LONGEST:
        raise ValueError(TOO_LONG)
    config = _parsed(text)
    if not isinstance(config, dict):
        raise ValueError(NOT_AN_OBJECT)
    return config


PAGE_KNOWS = (
    *KEYS,
    *config_layers.ON_THE_PAGE,
)  # keys whose meaning the short keys can tell, or that have none


def sizes(config: dict) -> dict[str, float]:
    """A model's fields from the object of a config.json."""
    found = fields_of(numbers(config))
    fields: dict[str, float] = dict(zip(FIELDS, found["fields"].tolist()))
    if found["wrong"] >= 0:
        raise ValueError(
            COMPLAINTS[int(found["wrong"])].format(**{name: f"{value:.0f}" for name, value in fields.items()})
        )
    for name, (least, most) in BOUNDS.items():
        if not least <= fields[name] <= most:
            raise ValueError(
                f"It gives {name.replace('_', ' ')} as {fields[name]:.0f}, where {least} to {most} is "
                "allowed."
            )
    return fields


CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length")
USUAL_CONTEXT = 2048  # tokens, where a file says nothing


def context(config: dict) -> int:
    """The most tokens that a model takes at once."""
    for key in CONTEXT:
        value = config.get(key)
        if value is not None:
            return _above_0(key, value)
    return USUAL_CONTEXT


def _above_0(key: str, value: Any) -> int:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value < 10**9:
        raise ValueError(f"{key} must be above 0 and below 10^9, got {_written(value)}.")
    return int(value)


WITHOUT_ROTATION = ("gpt2", "opt", "bloom")
USUAL_BASE, USUAL_EPSILON = 10_000, 1e-6  # of transformers' LlamaConfig, where a file says nothing
LARGE_EPSILON = 1e-5


def rotary_base(config: dict) -> int:
    """The base of the rotary position embeddings; 0 without them."""
    if config.get("model_type") in WITHOUT_ROTATION:
        return 0
    own = config.get("rope_parameters")
    full = own.get("full_attention") if isinstance(own, dict) else None
    own = full if isinstance(full, dict) else own
    value = own.get("rope_theta") if isinstance(own, dict) else None
    value = config.get("rope_theta") if value is None else value
    return USUAL_BASE if value is None else _above_0("rope_theta", value)


def small_epsilon(config: dict) -> bool:
    """Whether the norms add 1e-6 and not 1e-5."""
    usual = LARGE_EPSILON if config.get("model_type") in WITHOUT_ROTATION else USUAL_EPSILON
    value = config.get("rms_norm_eps", config.get("layer_norm_epsilon", usual))
    return isinstance(value, float) and value < LARGE_EPSILON


def model(
    text: str, key: str = "config.json", name: str = "the model of config.json", beside: dict | None = None
) -> Model:
    """A model from the text of a config.json; ``beside`` is the object of the hf_quant_config.json that lies
    there, if one does."""
    # Python's json writes Infinity, which JSON does not know
    config = _config(text.replace("Infinity", "1e308"))
    config = merged(config)
    config_layers.require_known(config, KEYS)
    beyond = config_layers.reaches_beyond(config)
    found = sizes(config_layers.plain(config) if beyond else config)
    config_layers.require_lengths(config, int(found["layers"]))
    whole: dict[str, Any] = {
        field: bool(v) if KINDS[field] == "bool" else int(v) for field, v in found.items() if field in KINDS
    }
    if beyond:
        whole = {"hidden": whole["hidden"], "vocab": whole["vocab"], "tied": whole["tied"]}
        whole["groups"] = config_layers.groups(config, found)
    config_layers.require_above_0(config)
    tower = towers.of_config(config)
    made = described(
        key=key,
        name=name,
        max_context=context(config),
        rotary_base=rotary_base(config),
        small_epsilon=small_epsilon(config),
        mtp_modules=config_layers.further(config),
        tower=tower,
        stored=stored.of_config(config, beside),
        **whole,
    )
    extra = towers.parameters(config, tower, made.total_params) + config_layers.layer_embeddings(
        config, found
    )
    return replace(made, extra_params=extra) if extra else made
