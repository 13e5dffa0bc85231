"""An adapter as the trainers around PEFT are told of it: TRL's ModelConfig, LLaMA-Factory, Axolotl and PEFT's
own examples, each with keys of its own.

Names and defaults: huggingface/trl trl/trainer/model_config.py; hiyouga/LlamaFactory
src/llamafactory/hparams/finetuning_args.py and model_args.py; axolotl-ai-cloud/axolotl
src/axolotl/utils/schemas/peft.py; huggingface/peft examples/sft and src/peft/utils/constants.py. As
remembered in November 2026, none of them at a commit.

Left out: dropout in front of A and what changes only how A·B starts or is scaled, which is ignored; 8-bit
bases, and whole matrices that are trained beside an adapter, which are refused.
"""

from __future__ import annotations

from engine.catalog import models
from engine.catalog.models import Model
from engine.frameworks.settings import FLAG, TEXT, Draft, Field, Ignored
from engine.mechanism import adapters
from engine.mechanism.adapters import ALL_LINEAR, Adapter

MOST_NAMES = 16  # of a list of matrices
FIELDS = {
    "use_peft": Field("peft", FLAG),
    "use_peft_lora": Field("peft", FLAG),
    "adapter": Field("adapter", TEXT),
    "lora_r": Field("rank"),
    "lora_rank": Field("rank"),
    "lora_target_modules": Field("targets", TEXT),
    "lora_target": Field("targets", TEXT),
    "lora_target_linear": Field("every", FLAG),
    "use_dora": Field("dora", FLAG),
    "peft_use_dora": Field("dora", FLAG),
    "load_in_4bit": Field("four_bits", FLAG),
    "use_4bit_quantization": Field("four_bits", FLAG),
    "quantization_bit": Field("bits"),
    "use_bnb_nested_quant": Field("double", FLAG),
    "use_nested_quant": Field("double", FLAG),
    "double_quantization": Field("double", FLAG),
    "lora_alpha": Field("alpha", TEXT),
    "lora_dropout": Field("lora_dropout", TEXT),
    "use_rslora": Field("rslora", FLAG),
}
LISTS = "lora_target_modules", "lora_target"
FIELDS |= {f"{key}.{place}": Field(f"target {place}", TEXT) for key in LISTS for place in range(MOST_NAMES)}
ADAPTER = "adapters other than LoRA and DoRA are not modelled"
TRAINED = "matrices that are trained whole beside an adapter are not modelled"
QUANTISED = "quantised weights in training are modelled in 4 bits under an adapter alone"
MIXED = "adapters of linear attention and state spaces are not modelled"
UNMODELLED = {
    "peft_config": ADAPTER,
    "load_in_8bit": QUANTISED,
    "use_8bit_quantization": QUANTISED,
    "lora_modules_to_save": TRAINED,
    "additional_target": TRAINED,
    "modules_to_save": TRAINED,
}
ALL = ("all", ALL_LINEAR)
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
}
USUAL = ("q_proj", "v_proj")  # PEFT's choice for Llama, Mistral, Qwen and their relatives
FACTORY, TRL, PEFT = 8, 16, 8  # ranks, where none is given


def adapter(d: Draft, shape: Model) -> Adapter | None:
    """The adapter that the settings ask for; None where the whole model is trained. What PEFT would refuse is
    noted, and what is not modelled."""
    kind, asked, named = d.given("finetuning") or "full", d.given("peft"), (d.given("adapter") or "").lower()
    four = bool(d.given("four_bits")) or d.given("bits") == 4
    if kind not in ("full", "none", "lora"):
        _leave(d, "finetuning", ADAPTER)
    if named not in ("", "none", "lora", "qlora"):
        _leave(d, "adapter", ADAPTER)
    if d.given("bits") not in (None, 4):
        _leave(d, "bits", QUANTISED)
    if kind != "lora" and not asked and named not in ("lora", "qlora"):
        if four:
            _leave(d, "four_bits" if d.given("four_bits") else "bits", QUANTISED)
        return None
    usual = FACTORY if kind == "lora" else TRL if asked else PEFT
    rank = max(1, d.get("rank", usual))
    base, rest = "bf16", "bf16"
    if four:
        # LLaMA-Factory and Axolotl quantise scales unless told otherwise, TRL and PEFT's examples if told to;
        # these alone cast what stays unquantised to fp32 (``prepare_model_for_kbit_training``)
        base = "nf4-double" if d.get("double", not asked) else "nf4"
        rest = "fp32" if asked else "bf16"
    targets = _targets(d, kind)
    if models.has_mixers(shape):
        _leave(d, "finetuning" if kind == "lora" else "peft" if asked else "adapter", MIXED)
        return None
    found = Adapter(rank, targets, "dora" if d.given("dora") else "lora", base, rest)
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


def _leave(d: Draft, name: str, why: str) -> None:
    """Note a setting whose effect is not modelled."""
    d.unmodelled.append(Ignored(*d.settings[name].entry[:4], why))


def _targets(d: Draft, kind: str) -> tuple[str, ...]:
    """The matrices that get an adapter, by our names."""
    if d.given("every"):
        d.given("targets")
        return (ALL_LINEAR,)
    text = d.given("targets") or ""
    for mark in "[]()'\",":
        text = text.replace(mark, " ")
    listed = [d.given(f"target {place}") for place in range(MOST_NAMES)]
    names = [name for name in (*text.split(), *listed) if name]
    if not names:
        usual = (ALL_LINEAR,) if kind == "lora" else USUAL
        d.assume("targets", ", ".join(usual), "its default")
        return usual
    found = []
    for name in names:
        if name in ALL:
            return (ALL_LINEAR,)
        ours = ALIASES.get(name, name)
        if ours in adapters.NAMES or ours in adapters.JOINED:
            found.append(ours)
        else:
            given = [
                each for each in d.settings if each.startswith("target") and name in d.settings[each].value
            ]
            _leave(d, given[0], f"an adapter of {name[:60]} is not modelled")
    return tuple(found) or (ALL_LINEAR,)


def written(one: Adapter | None) -> str:
    """An adapter in TRL's keys; in LLaMA-Factory's where the base lies in 4 bits and the rest in 16."""
    if one is None:
        return ""
    packed = one.base in ("nf4", "nf4-double")
    yes = "true" if one.base == "nf4-double" else "false"
    dora = "use_dora: true\n" if one.kind == "dora" else ""
    if packed and one.rest == "bf16":
        names = "all" if ALL_LINEAR in one.targets else ",".join(one.targets)
        told = f"finetuning_type: lora\nlora_rank: {one.rank}\nlora_target: {names}\n"
        return f"{told}quantization_bit: 4\ndouble_quantization: {yes}\n{dora}"
    names = ALL_LINEAR if ALL_LINEAR in one.targets else f"[{', '.join(one.targets)}]"
    told = f"use_peft: true\nlora_r: {one.rank}\nlora_target_modules: {names}\n{dora}"
    if packed:
        told = f"{told}load_in_4bit: true\nuse_bnb_nested_quant: {yes}\n"
    if one.base == "fp8":
        told = f"{told}# a base in fp8 has no setting here\n"
    return told
