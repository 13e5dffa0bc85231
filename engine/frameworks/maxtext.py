"""MaxText: ``python3 -m MaxText.train base.yml key=value …``, and a YAML with the same keys.

Names and defaults: AI-Hypercomputer/maxtext src/maxtext/configs/base.yml at commit e591f30c (August 2026):
weights, gradients and both of Adam's moments in fp32, products in bf16, all of a step's sequences per device,
recomputed layers (``remat_policy: full``), and an FSDP axis that takes the chips that no other axis does.

From memory: that ``remat_policy: minimal`` keeps every product's result, which is counted as if nothing were
recomputed; that MaxText computes all logits at once unless ``num_vocab_tiling`` says otherwise.

Left out: pipelines, products in 8 bits, state on the host, and other policies of recomputation, which are
refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import catalog
from engine.catalog.models import Model
from engine.catalog.recipes import Recipe
from engine.frameworks import peft
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure, Where
from engine.frameworks.settings import FALSE, FLAG, NUMBER, TEXT, Draft, Entry, Field, overrides
from engine.frameworks.writing import keys_of
from engine.step.layout import Job, Layout

if TYPE_CHECKING:
    from engine.frameworks.described import Launch

# our name of an axis, and theirs; each is there twice, within a slice and between slices
AXES = {
    "data": ("data",),
    "fsdp": ("fsdp", "fsdp_transpose"),
    "tp": ("tensor", "tensor_transpose", "tensor_sequence"),
    "cp": ("sequence", "context"),
    "pp": ("pipeline",),
    "ep": ("expert",),
}
WIRES = ("ici", "dcn")
FIELDS = {
    "model_name": Field("model", TEXT),
    "per_device_batch_size": Field("each", NUMBER),
    "max_target_length": Field("seq"),
    "gradient_accumulation_steps": Field("accumulated"),
    "remat_policy": Field("remat", TEXT),
    "opt_type": Field("optimizer", TEXT),
    "weight_dtype": Field("weight", TEXT),
    "grad_dtype": Field("gradient", TEXT),
    "mu_dtype": Field("moment", TEXT),
    "dtype": Field("dtype", TEXT),
    "attention": Field("attention", TEXT),
    "num_vocab_tiling": Field("tiles"),
    "quantization": Field("quantised", TEXT),
    "use_qwix_quantization": Field("qwix", FLAG),
    "decoder_layer_input": Field("input", TEXT),
}
KEYS = keys_of(FIELDS)
FIELDS |= {
    f"{wire}_{theirs}_parallelism": Field(f"{wire} {ours} {theirs}", TEXT)
    for wire in WIRES
    for ours, every in AXES.items()
    for theirs in every
}
HOST = "state on the host is not modelled here"
UNMODELLED = {
    "optimizer_memory_host_offload": HOST,
    "parameter_memory_host_offload": HOST,
    "use_dpo": "pairs of answers and a reference model are not modelled",
    "shard_optimizer_over_data": "a state that replicas share is not modelled here",
}
PIPELINES = "pipelines of this trainer are not modelled"
PRODUCTS = "products in 8 bits are not modelled here"
POLICY = "this policy of recomputation is not modelled"
PACKAGES = ("MaxText.", "maxtext.")
SCRIPTS = ("MaxText/train.py", "maxtext/train.py", "pre_train/train.py")
MINE = ("per_device_batch_size", "max_target_length", "remat_policy", "base_emb_dim", "ici_fsdp_parallelism")
OTHERWISE = {
    "deepseek3-671b": "deepseek-v3",
    "deepseek2-16b": "deepseek-v2-lite",
    "deepseek2-236b": "deepseek-v2",
}
OTHERWISE |= {"llama4-17b-16e": "llama4-scout", "llama4-17b-128e": "llama4-maverick", "kimi-k2-1t": "kimi-k2"}
EACH, LENGTH = 12.0, 2048
WIDTHS = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}
MOVES = {"recompute": ("none", "full"), "micro_batch": ()}


class Maxtext(Framework):
    """Its command and its YAML."""

    key = "maxtext"
    name = "MaxText"
    place = 44
    fields = FIELDS
    unmodelled = UNMODELLED
    names_model = "give model_name, or its config.json"
    degrees = tuple(field.name for key, field in FIELDS.items() if key.endswith("_parallelism"))
    new_keys = (Where.ARGUMENT,)
    lightens = (HOST,)

    def claims(self, command: Command) -> Claim:
        """Its module or its script is named."""
        for at, word in enumerate(command.words):
            if word.startswith(PACKAGES) or word.endswith(SCRIPTS):
                return Claim(Sure.NAMED, at + 1)
        return Claim(Sure.NOT)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A YAML with keys that it alone has."""
        found = {entry.key for entry in entries} & set(MINE)
        return Sure.OWN_KEYS if notation == "yaml" and len(found) > 1 else Sure.NOT

    def entries(self, found: list[Entry], bare: list[Entry], words: list[Any]) -> list[Entry]:
        """What is said behind the file."""
        return overrides(words)

    def known_as(self, name: str) -> str:
        """The model of one of its files."""
        return "" if name == "default" else OTHERWISE.get(name, name)

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """Job, layout and precision."""
        sizes = {name: degree(d, name) for name in AXES}
        tp, cp, pp = sizes["tp"], sizes["cp"], sizes["pp"]
        ep = sizes["ep"] if shape.experts else 1
        if pp > 1:
            d.unmodelled.append(first(d, "pp", PIPELINES))
        if gpus % (tp * cp * pp):
            d.refuse(
                f"AssertionError: Number of devices {gpus} does not match the product of the parallelism "
                f"{tp * cp * pp}"
            )
            tp = cp = pp = 1
        dp = gpus // (tp * cp * pp)
        if ep > 1 and (dp * cp * tp) % ep:
            d.refuse(f"AssertionError: ici_expert_parallelism {ep} does not divide {dp * cp * tp} devices")
            ep = 1
        each = d.get("each", EACH)
        micro = max(1, round(each * gpus / dp))
        steps = max(1, d.get("accumulated", 1))
        replicas = sizes["data"]
        shared = dp // replicas if 1 < replicas < dp and dp % replicas == 0 else 0
        zero = 0 if dp * cp < 2 or replicas == dp else 3
        seq = max(1, d.get("seq", LENGTH))
        tiles = d.given("tiles") or 1
        by = catalog.training_software(
            self.key,
            attention="scores" if d.given("attention") == "dot_product" else "fused",
            loss="chunked" if tiles > 1 else "plain",
            loss_chunks=max(1, tiles),
        )
        precision, state = recipe(d)
        layout = Layout(gpus, tp, pp, cp, ep, zero, micro, recomputed(d), shard=shared if zero else 0)
        return Meant(gpus, precision, Job(micro * dp * steps, seq, state, by), layout)

    def moves(self, launch: Launch) -> dict[str, tuple]:
        """Recomputation, and the sequences of a device."""
        return MOVES

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """The settings that set one of our names to a value."""
        assert launch.job is not None and launch.layout is not None
        if name == "recompute":
            return [(KEYS["remat"], "full" if value == "full" else "minimal")]
        if name == "micro_batch":
            a, micro = launch.layout, int(str(value))
            each = micro * a.dp / a.gpus
            steps = launch.job.global_batch // (a.dp * micro)
            return [(KEYS["each"], f"{each:g}"), (KEYS["accumulated"], str(steps))]
        return []


def degree(d: Draft, name: str) -> int:
    """An axis over all wires; -1, for what is left, counts as 1."""
    found = 1
    for wire in WIRES:
        for theirs in AXES[name]:
            text = str(d.given(f"{wire} {name} {theirs}") or "1")
            found *= max(1, int(text)) if text.isdigit() and len(text) < 8 else 1
    return found


def first(d: Draft, name: str, why: str) -> Any:
    """The first setting of an axis, as something that is not modelled."""
    before = len(d.unmodelled)
    for wire in WIRES:
        for theirs in AXES[name]:
            ours = f"{wire} {name} {theirs}"
            if ours in d.settings and len(d.unmodelled) == before:
                peft.leave(d, ours, why)
    return d.unmodelled.pop()


def recomputed(d: Draft) -> str:
    """What is computed again in the backward pass."""
    text = (d.get("remat", "full") or "").lower()
    if (d.given("input") or "device") != "device":
        d.lacks("input", HOST)
    if text == "full":
        return "full"
    if not text.startswith("minimal") or "offload" in text:
        peft.leave(d, "remat", POLICY)
    return "none"


def recipe(d: Draft) -> tuple[str, Recipe]:
    """The format of the products, and the bytes of the state."""
    if (d.given("quantised") or "").lower() not in ("", *FALSE) or d.given("qwix"):
        peft.leave(d, "quantised" if "quantised" in d.settings else "qwix", PRODUCTS)
    optimizer = (d.get("optimizer", "adamw") or "").lower()
    if optimizer not in ("adamw", "adam_pax"):
        peft.leave(d, "optimizer", "this optimizer is not modelled")
    weight = WIDTHS.get(d.get("weight", "float32"), 4.0)
    gradient = WIDTHS.get(d.given("gradient") or "float32", 4.0)
    moment = WIDTHS.get(d.given("moment") or "", weight)
    wide = (d.get("dtype", "bfloat16") or "").lower() == "float32"
    found = replace(
        catalog.recipe("fp32-adam"),
        key="fp32-adam+bf16",
        precision="fp32" if wide else "bf16",
        weight_bytes=weight,
        gradient_bytes=gradient,
        momentum_bytes=moment,
        variance_bytes=weight,
        gathered_bytes=0.0 if wide else 2.0,
    )
    return "fp32" if wide else "bf16", found


FRAMEWORK: Framework = Maxtext()
