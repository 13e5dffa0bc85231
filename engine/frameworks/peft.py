"""An adapter as PEFT and the trainers around it are told of it; those with keys of their own have them in
their own modules, and end here.

Names and defaults: huggingface/trl trl/trainer/model_config.py; huggingface/peft examples/sft,
src/peft/tuners/lora/config.py and src/peft/utils/constants.py. As remembered in November 2026, none of them
at a commit.

Left out: what changes only how A·B starts or is scaled, which is ignored; 8-bit bases, and whole matrices
that are trained beside an adapter, which are refused.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.catalog import models
from engine.catalog.models import Model
from engine.frameworks.settings import FLAG, TEXT, Draft, Field, Ignored
from engine.mechanism import adapters
from engine.mechanism.adapters import ALL_LINEAR, Adapter

MOST_NAMES = 16  # of a list of matrices
FIELDS = {
    "use_peft": Field("peft", FLAG),
    "use_peft_lora": Field("peft", FLAG),
    "lora_r": Field("rank"),
    "lora_target_modules": Field("targets", TEXT),
    "use_dora": Field("dora", FLAG),
    "load_in_4bit": Field("four_bits", FLAG),
    "use_4bit_quantization": Field("four_bits", FLAG),
    "use_bnb_nested_quant": Field("double", FLAG),
    "use_nested_quant": Field("double", FLAG),
    "lora_alpha": Field("alpha", TEXT),
    "lora_dropout": Field("lora_dropout", TEXT),
    "use_rslora": Field("rslora", FLAG),
    "LoraConfig.r": Field("rank"),
    "LoraConfig.target_modules": Field("targets", TEXT),
    "BitsAndBytesConfig.bnb_4bit_use_double_quant": Field("double", FLAG),
    "prepare_model_for_kbit_training": Field("prepared", FLAG),
}
IN_A_CALL = "LoraConfig.", "BitsAndBytesConfig."
FIELDS[IN_A_CALL[0]] = Field("peft", FLAG)  # that it is called
FIELDS |= {
    f"{IN_A_CALL[0]}{key}": FIELDS[key] for key in ("use_dora", "lora_alpha", "lora_dropout", "use_rslora")
}
FIELDS[f"{IN_A_CALL[1]}load_in_4bit"] = Field("four_bits", FLAG)


def listed(key: str) -> dict[str, Field]:
    """The keys of a list of matrices, one for each place in it."""
    return {f"{key}.{place}": Field(f"target {place}", TEXT) for place in range(MOST_NAMES)}


FIELDS |= listed("lora_target_modules")
ADAPTER = "adapters other than LoRA and DoRA are not modelled"
TRAINED = "matrices that are trained whole beside an adapter are not modelled"
QUANTISED = "quantised weights in training are modelled in 4 bits under an adapter alone"
MIXED = "adapters of linear attention and state spaces are not modelled"
UNMODELLED = {
    "peft_config": ADAPTER,
    "load_in_8bit": QUANTISED,
    "use_8bit_quantization": QUANTISED,
    "lora_modules_to_save": TRAINED,
    "modules_to_save": TRAINED,
}
UNMODELLED |= {f"{IN_A_CALL[0]}modules_to_save": TRAINED, f"{IN_A_CALL[1]}load_in_8bit": QUANTISED}
ALL = ("all", ALL_LINEAR)
# in the names of checkpoints that are stored in 4 bits, by bitsandbytes or in another way
PACKED, OTHERWISE_PACKED = "bnb-4bit", ("-awq", "-gptq", "-int4", "-int8")
# our names of matrices that have another in some models or programs
ALIASES = {
    "w1": "gate_proj",
    "w2": "down_proj",
    "w3": "up_proj",
    "fc1": "up_proj",
    "fc2": "down_proj",
    "out_proj": "o_proj",
    "output_proj": "o_proj",
    "query_key_value": "qkv_proj",
    "W_pack": "qkv_proj",
    "kv_a_proj": "kv_a_proj_with_mqa",
    "linear_qkv": "qkv_proj",
    "linear_proj": "o_proj",
    "linear_fc1": "gate_up_proj",
    "linear_fc2": "down_proj",
}
USUAL = ("q_proj", "v_proj")  # PEFT's choice for Llama, Mistral, Qwen and their relatives
TRL, PEFT = 16, 8  # ranks, where none is given
TRL_DROPS = 0.05  # share of an adapter's inputs


class Usual(NamedTuple):
    """What a trainer takes where nobody says otherwise."""

    rank: int
    targets: tuple[str, ...] = USUAL
    double: bool = True  # whether the scales of a base in 4 bits are quantised too
    rest: str = "bf16"  # what beside such a base stays unquantised
    dropout: float = 0.0  # in front of A


def adapter(d: Draft, shape: Model) -> Adapter | None:
    """The adapter that TRL and PEFT are asked for; None where the whole model is trained. Scales of 4 bits
    are quantised if it is said, and what stays unquantised is cast to fp32
    (``prepare_model_for_kbit_training``)."""
    four = bool(d.given("four_bits"))
    called = "peft" in d.settings and d.settings["peft"].key == IN_A_CALL[0]
    prepared = d.given("prepared")
    if not d.given("peft"):
        if four:
            leave(d, "four_bits", QUANTISED)
        return None
    rest = "fp32" if prepared or not called else "bf16"
    usual = Usual(PEFT if called else TRL, double=False, rest=rest, dropout=0.0 if called else TRL_DROPS)
    return made(d, shape, usual, four, "peft")


def made(d: Draft, shape: Model, usual: Usual, four: bool, blamed: str) -> Adapter | None:
    """The adapter of these settings; what PEFT would refuse is noted, and what is not modelled, at the
    setting that is ``blamed``."""
    rank = max(1, d.get("rank", usual.rank))
    name = str(d.given("model") or "").lower()
    if PACKED in name and not four:
        d.assume("base", "4 bits", "as the model's name says")
    elif any(mark in name for mark in OTHERWISE_PACKED):
        leave(d, "model", QUANTISED)
    four = four or PACKED in name
    base, rest = "bf16", "bf16"
    if four:
        base, rest = "nf4-double" if d.get("double", usual.double) else "nf4", usual.rest
    targets = _targets(d, usual.targets)
    if models.has_mixers(shape):
        leave(d, blamed, MIXED)
        return None
    kind = "dora" if d.given("dora") else "lora"
    found = Adapter(rank, targets, kind, base, rest, dropped(d, usual.dropout))
    try:
        adapters.require(shape, found)
    except ValueError:
        d.refuse(
            f"ValueError: Target modules {{{', '.join(targets)}}} not found in the base model. Please check "
            "the target modules and try again.",
            "targets",
        )
        return None
    return found


def dropped(d: Draft, usual: float) -> float:
    """The share of an adapter's inputs that is dropped; what is no share is taken as none."""
    text = d.given("lora_dropout")
    if text is None:
        return usual
    digits = text.replace(".", "", 1)
    return min(1.0, float(text)) if digits.isdigit() and len(text) < 12 else 0.0


def leave(d: Draft, name: str, why: str) -> None:
    """Note a setting whose effect is not modelled; one that nobody gave is an assumption all the same."""
    if name in d.settings:
        d.unmodelled.append(Ignored(*d.settings[name].entry[:4], why))
    else:
        d.unmodelled.append(Ignored(name, "", "", 0, why))


def expanded(text: str) -> str:
    """A pattern such as ``(mlp|self_attn).(up|down|q|v)_proj`` as the names that it stands for."""
    at = text.rfind(")_proj")
    begin = text.rfind("(", 0, at) if at > 0 else -1
    if begin < 0:
        return text
    return " ".join(f"{stem}_proj" for stem in text[begin + 1 : at].split("|"))


def _targets(d: Draft, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The matrices that get an adapter, by our names."""
    if d.given("every"):
        d.given("targets")
        return (ALL_LINEAR,)
    text = expanded(d.given("targets") or "")
    for mark in "[]()'\",":
        text = text.replace(mark, " ")
    listed = [d.given(f"target {place}") for place in range(MOST_NAMES)]
    names = [name for name in (*text.split(), *listed) if name]
    if not names:
        d.assume("targets", ", ".join(usual), "its default")
        return usual
    found = []
    for name in names:
        bare = name.lstrip("*.")
        if name in ALL or bare in ("_proj", "proj", ""):
            return (ALL_LINEAR,)
        ours = ALIASES.get(bare, bare)
        if ours in adapters.NAMES or ours in adapters.JOINED:
            found.append(ours)
        else:
            given = [
                each for each in d.settings if each.startswith("target") and name in d.settings[each].value
            ]
            leave(d, given[0], f"an adapter of {name[:60]} is not modelled")
    return tuple(found) or (ALL_LINEAR,)


def written(one: Adapter | None) -> str:
    """An adapter in TRL's keys."""
    if one is None:
        return ""
    dora = "use_dora: true\n" if one.kind == "dora" else ""
    names = ALL_LINEAR if ALL_LINEAR in one.targets else f"[{', '.join(one.targets)}]"
    told = f"use_peft: true\nlora_r: {one.rank}\nlora_target_modules: {names}\n{dora}"
    told = f"{told}lora_dropout: {one.dropout:g}\n"
    if one.base in ("nf4", "nf4-double"):
        yes = "true" if one.base == "nf4-double" else "false"
        told = f"{told}load_in_4bit: true\nuse_bnb_nested_quant: {yes}\n"
    if one.base == "fp8":
        told = f"{told}# a base in fp8 has no setting here\n"
    return told
