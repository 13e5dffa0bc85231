"""In which format the parts of a checkpoint are stored: its words in the catalogue, and how they follow from
what a config.json, or the hf_quant_config.json beside it, says of quantisation.

A text such as "experts mxfp4, rest fp8-block" names a format for some parts; what it does not name, and all
norms, routers and towers, stay in 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# bytes of a stored value with its share of the scales, and of the zero points where there are some
BYTES = {
    "bf16": 2.0,
    "fp8": 1.0,  # one scale for a matrix, or for each of its rows
    "fp8-block": 1.0 + 4.0 / 128**2,  # an fp32 scale for 128 × 128
    "mxfp8": 1.0 + 1.0 / 32,
    "int8": 1.0,
    "mxfp4": 0.5 + 1.0 / 32,
    "nvfp4": 0.5 + 1.0 / 16,
    "int4-32": 0.5 + 2.0 / 32,  # a 16-bit scale for 32 values
    "int4-64": 0.5 + 2.0 / 64,
    "int4-128": 0.5 + 2.0 / 128,
    "int4": 0.5,  # a scale for each row
    "awq": 0.5 + 2.5 / 128,  # a 16-bit scale and a 4-bit zero point for 128
    "awq-32": 0.5 + 2.5 / 32,
    "awq-64": 0.5 + 2.5 / 64,
    "nf4": 0.5 + 4.0 / 64,  # an fp32 scale for 64 (arXiv:2305.14314)
    "nf4-double": 0.5 + 1.0 / 64 + 4.0 / (64 * 256),  # scales in 8 bits, with one of fp32 for 256 of them
}
PARTS = ("experts", "shared", "dense", "attention", "output", "ends")
REST = PARTS[:-1]  # embedding and output layer stay in 16 bits unless they are named


def parsed(text: str) -> dict[str, str]:
    """Part -> format, for all PARTS; ValueError names what is not known."""
    found: dict[str, str] = {}
    if not isinstance(text, str):
        raise ValueError(f"formats must be a text such as 'experts mxfp4, rest fp8-block'; got {text!r}")
    for said in text.split(",") if text else []:
        part, _, kind = said.strip().partition(" ")
        if part not in (*PARTS, "rest") or kind not in BYTES:
            raise ValueError(
                f"stored must be parts ({', '.join((*PARTS, 'rest'))}) with a format ({', '.join(BYTES)}) "
                f"each, such as 'experts mxfp4, rest fp8-block'; got {said.strip()!r}"
            )
        found[part] = kind
    rest = found.pop("rest", "bf16")
    for part in REST:
        found.setdefault(part, found.get("attention", rest) if part == "output" else rest)
    found.setdefault("ends", "bf16")
    return found


# -- from the files ------------------------------------------------------------------------------------------
# what the name of a module holds, by the part that it belongs to; the first that fits
MARKS = {
    "shared": ("shared_expert",),
    "experts": ("experts",),
    "output": ("o_proj", "attn.wo"),
    "attention": ("self_attn", "linear_attn", ".attn", "mixer."),
    "dense": ("mlp*", "mlp.(", "mlp\\.(", "mlp.gate_proj", "mlp.down_proj", "mlp.up_proj"),
    "ends": ("lm_head", "embed_tokens"),
}
SMALL = ("norm", "gate_bias", "indexer", "conv1d", "bias", "router", "vision", "visual", "mtp")
# what ModelOpt calls a format
ALGORITHMS = {
    **dict.fromkeys(("NVFP4", "W4A16_NVFP4", "W4A4_NVFP4", "NVFP4_AWQ"), "nvfp4"),
    **dict.fromkeys(("FP8", "FP8_PER_CHANNEL_PER_TOKEN"), "fp8"),
    **dict.fromkeys(("FP8_PB_WO", "FP8_BLOCK_SCALES"), "fp8-block"),
    **dict.fromkeys(("MXFP8", "W8A8_MXFP8"), "mxfp8"),
    **dict.fromkeys(("MXFP4", "W4A8_MXFP4_FP8", "W4A16_MXFP4"), "mxfp4"),
    **dict.fromkeys(("W4A8_AWQ", "W4A16_AWQ", "INT4_AWQ"), "awq"),
    "INT8_SQ": "int8",
}
IN_GROUPS = ("awq", "gptq", "auto-round", "auto_round")  # methods of 4 or 8 bits with zero points


def of_config(config: Mapping[str, Any], beside: Mapping[str, Any] | None = None) -> str:
    """The formats that a config.json says, with the object of the hf_quant_config.json ``beside`` it where
    there is one; empty where all is in 16 bits. ValueError for a method that is not known."""
    said = config.get("quantization_config")
    own: dict[str, Any] = dict(said) if isinstance(said, dict) else {}
    more = beside.get("quantization") if beside else None
    if isinstance(more, dict):
        own |= more
    if not own:
        return ""
    if isinstance(own.get("quantized_layers"), dict):
        return _written(_of_layers(own["quantized_layers"]), "fp8-block" if own.get("fmt") else "bf16")
    if own.get("moe_quant_algo"):
        return f"experts {_algorithm(own['moe_quant_algo'])}, rest fp8-block"
    if own.get("quant_method") == "mxfp4":
        return "experts mxfp4"
    if own.get("quant_method") == "mxfp8" and not own.get("quant_algo"):
        own["quant_algo"] = "MXFP8"
    groups = own.get("config_groups")
    if isinstance(groups, dict) and len(groups) > 1 and not own.get("quant_algo"):
        return _of_groups(groups)
    kind = _kind(own)
    if config.get("expert_dtype") == "fp4":
        return f"experts mxfp4, rest {kind}"
    layers = config.get("num_hidden_layers")
    return _written(_kept(own, layers if isinstance(layers, int) else 1, kind), kind)


def _written(parts: Mapping[str, str], rest: str) -> str:
    """The words for these formats, without what ``parsed`` takes anyway."""
    usual = dict.fromkeys(REST, rest) | {"output": parts.get("attention", rest), "ends": "bf16"}
    said = [f"{part} {kind}" for part, kind in parts.items() if kind != usual[part]]
    return ", ".join([*said, f"rest {rest}"])


def _algorithm(name: Any) -> str:
    if name not in ALGORITHMS:
        raise ValueError(f"quant_algo must be one of {', '.join(ALGORITHMS)}; got {str(name)[:40]!r}")
    return ALGORITHMS[name]


def _kind(own: Mapping[str, Any]) -> str:
    """The format of what is quantised."""
    method = str(own.get("quant_method") or "").lower()
    if own.get("quant_algo"):
        return _algorithm(own["quant_algo"])
    if method in ("fp8", "fbgemm_fp8"):
        return "fp8-block" if own.get("weight_block_size") else "fp8"
    if method == "bitsandbytes":
        if not own.get("load_in_4bit"):
            return "int8"
        return "nf4-double" if own.get("bnb_4bit_use_double_quant") else "nf4"
    if method in IN_GROUPS:
        bits, size = (
            own.get("bits") or own.get("w_bit") or 4,
            own.get("group_size") or own.get("q_group_size"),
        )
        kinds = {128: "awq", None: "awq", -1: "int4", 64: "awq-64", 32: "awq-32"}
        if bits not in (4, 8) or (bits == 4 and size not in kinds):
            raise ValueError(
                "quantization_config must have bits of 4 or 8, and a group_size of 32, 64, 128 or -1; "
                f"got bits {str(bits)[:20]} and group_size {str(size)[:20]}"
            )
        return "int8" if bits == 8 else kinds[size]
    if method in ("compressed-tensors", "modelopt"):
        groups = own.get("config_groups")
        first = next(iter(groups.values()), {}) if isinstance(groups, dict) else {}
        return _of_group(first, str(own.get("format") or first.get("format") or ""))
    raise ValueError(
        "quantization_config must have a quant_method of fp8, mxfp4, mxfp8, compressed-tensors, modelopt, "
        f"{', '.join(IN_GROUPS[:3])} or bitsandbytes; got {method[:40]!r}"
    )


def _of_group(group: Mapping[str, Any], form: str) -> str:
    weights = group.get("weights") or {}
    bits, size = weights.get("num_bits"), weights.get("group_size")
    if "mxfp4" in form:
        return "mxfp4"
    if bits == 8 and weights.get("type") == "float" and weights.get("strategy") in ("block", "group"):
        return "fp8-block" if weights.get("strategy") == "block" else "mxfp8"
    if bits == 8:
        return "fp8" if weights.get("type") == "float" else "int8"
    if bits == 4 and weights.get("type") == "float":
        return "nvfp4"
    if bits == 4 and f"int4-{size}" in BYTES:
        return f"int4-{size}"
    raise ValueError(f"config_groups must have weights of 4 or 8 bits in groups; got {str(weights)[:60]}")


def _of_groups(groups: Mapping[str, Any]) -> str:
    """The formats of several groups, by the modules that each names."""
    found: dict[str, str] = {}
    for group in groups.values():
        kind = _of_group(group, str(group.get("format") or ""))
        for target in map(str, group.get("targets") or []):
            part = _part(target) or next((each for mark, each in LOOSE.items() if mark in target), "")
            if not part:
                raise ValueError(
                    f"config_groups must target attention, ffn, mlp or experts; got {target[:60]}"
                )
            for one in (
                REST if part == "rest" else ("experts", "shared", "dense") if part == "ffn" else (part,)
            ):
                found.setdefault(one, kind)
    return _written(found, "bf16")


LOOSE = {"attn": "attention", "attention": "attention", "ffn": "ffn", "mlp": "ffn", "Linear": "rest"}


def _part(name: str) -> str:
    """The part that a module belongs to; empty for what is small, and for what is not known."""
    if any(small in name for small in SMALL):
        return ""
    return next((part for part, marks in MARKS.items() if any(mark in name for mark in marks)), "")


def _of_layers(listed: Mapping[str, Any]) -> dict[str, str]:
    """The format of each part, where a file lists what is quantised layer by layer."""
    found: dict[str, str] = {}
    for name, how in listed.items():
        part = _part(name) or ("dense" if ".mlp." in name else "")
        if part and isinstance(how, dict):
            found.setdefault(part, _algorithm(how.get("quant_algo")))
    return found


def _kept(own: Mapping[str, Any], layers: int, kind: str) -> dict[str, str]:
    """The parts that stay in 16 bits: those of which at least half of the layers are listed as left alone. Of
    an attention that is listed matrix by matrix, the output's may be missing."""
    key = next(
        (each for each in ("ignore", "exclude_modules", "modules_to_not_convert") if own.get(each)), ""
    )
    listed = own.get(key) or []
    if not isinstance(listed, list):
        raise ValueError(f"{key} must be a list of modules, got {str(listed)[:40]}.")
    rules = own.get("dynamic")  # of GPTQModel: what it leaves alone begins with a minus
    listed = (
        [*listed, *(key[2:] for key in rules if key.startswith("-:"))] if isinstance(rules, dict) else listed
    )
    places: dict[str, set[str]] = {}
    for name in map(str, listed):
        part = _part(name)
        numbers = [word for word in name.replace("*", "").split(".") if word.isdigit()]
        places.setdefault(part, set()).add(numbers[0] if numbers else "all")
    found = {
        part: "bf16"
        for part, each in places.items()
        if part and part != "ends" and ("all" in each or 2 * len(each) >= layers)
    }
    by_matrix = "attention" in found and not any(
        name.rstrip(".*").endswith(("attn", "mixer")) for name in map(str, listed)
    )
    if by_matrix and "output" not in found:
        found["output"] = kind
    elif "attention" not in found:
        found.pop("output", None)
    if own.get("quant_method") == "compressed-tensors" and "lm_head" not in str(listed):
        found["ends"] = kind
    return found
