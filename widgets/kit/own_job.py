"""The controls for a model and a cluster of one's own: a base class for widgets that accept any job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.catalog import config_json, config_layers
from engine.step import own
from widgets.kit.controls import Number, Switch
from widgets.kit.intake import Intake
from widgets.kit.widget import Widget, once

if TYPE_CHECKING:
    from engine.catalog.models import Model

MODEL, CLUSTER = "own model", "own cluster"  # the folds that hold them
CONFIG_JSON = Intake(
    "config.json",
    "Paste the config.json of a model, or drop the file here: Llama, Mistral, Mixtral, Qwen, DeepSeek and "
    "what is named like them. It is parsed in this browser and sent nowhere.",
    config_json.KEYS,
    config_json.TYPES,
    config_json.INNER,
    config_json.RULES,
    config_json.fields_of,
    config_json.FIELDS,
    config_json.BOUNDS,
    config_json.COMPLAINTS,
    config_json.LONGEST,
    config_json.TOO_LONG,
    config_json.NOT_JSON,
    config_json.NOT_AN_OBJECT,
    config_json.SHOWN,
    {
        "holds": config_layers.SHAPES,
        "not_holds": config_layers.NOT_SHAPES,
        "parts": config_layers.PARTS,
        "known": config_json.PAGE_KNOWS,
        "harmless_at": config_layers.HARMLESS_AT,
        "said": config_layers.UNREAD,
    },
    {"list": "layer_types", "of": config_json.AT_LAYERS, "said": config_json.WRONG_LENGTH},
    {"model": "own"},
)
PRECISIONS = {
    "bf16": ("bf16", own.Precision("bf16", 0.0)),
    "fp8": ("fp8, where the chip has it", own.Precision("fp8", 1.0)),
}


def _count(label, default, field, **options) -> Number:
    return Number(label, default, *config_json.BOUNDS[field], stops=25, whole=True, more=MODEL, **options)


def _rate(label, default, low, high, family) -> Number:
    return Number(label, default, low, high, family=family, stops=33, more=CLUSTER)


class OwnJob(Widget):
    """A model and a GPU of the catalogue, or one's own; the controls ``model``, ``gpu`` and ``precision`` are
    the subclass's."""

    intake = CONFIG_JSON

    layers = _count("Layers", 32, "layers")
    hidden = _count("Hidden width", 4096, "hidden", marks=(7168,))
    heads = _count("Attention heads", 32, "heads", marks=(64, 128))
    kv_heads = _count("KV heads", 8, "kv_heads")
    head_dim = _count("Head width", 128, "head_dim")
    ffn = _count("FFN width (0: experts alone)", 14336, "ffn", log=False)
    vocab = _count("Vocabulary", 128256, "vocab")
    experts = _count("Experts (0: dense)", 0, "experts", log=False, marks=(8, 64, 256))
    top_k = _count("Experts a token meets", 0, "top_k", log=False)
    expert_ffn = _count("Expert width", 0, "expert_ffn", log=False, marks=(2048,))
    shared_experts = _count("Shared experts", 0, "shared_experts", log=False)
    shared_ffn = _count("Shared expert width", 0, "shared_ffn", log=False, marks=(2048,))
    first_dense_layers = _count("Leading dense layers", 0, "first_dense_layers", log=False)
    moe_every = _count("Experts in every … layer", 1, "moe_every", log=False)
    q_lora = _count("Latent query rank", 0, "q_lora", log=False, marks=(1536,))
    kv_lora = _count("Latent KV rank (0: ordinary attention)", 0, "kv_lora", log=False, marks=(512,))
    rope_dim = _count("Rotary part of a latent head", 64, "rope_dim", log=False)
    nope_dim = _count("Other part of a latent head", 128, "nope_dim")
    v_dim = _count("Value width of a latent head", 128, "v_dim")
    window = _count("Attention window", 0, "window", log=False, marks=(4096,))
    windowed_layers = _count("Layers with that window", 0, "windowed_layers", log=False)
    gated = Switch("Gated MLP", True, more=MODEL)
    tied = Switch("Tied embeddings", False, more=MODEL)
    qkv_bias = Switch("Bias on queries, keys, values", False, more=MODEL)
    own_hbm = _rate("Own HBM", 80e9, 8e9, 2e12, "bytes")
    own_flops = _rate("Own dense bf16 peak", 989e12, 10e12, 50e15, "flops_per_s")
    own_bandwidth = _rate("Own HBM bandwidth", 3.35e12, 0.2e12, 50e12, "bytes_per_s")
    own_link = _rate("Own link, one way", 450e9, 10e9, 5e12, "bytes_per_s")
    own_nic = _rate("Own NIC, one way per GPU", 50e9, 1e9, 1e12, "bytes_per_s")
    own_node = Number("Own GPUs per node", 8, 1, 1024, whole=True, stops=25, marks=(72,), more=CLUSTER)

    model: own.ModelOption  # defined by the widget, like the next two
    gpu: own.GpuOption
    precision: own.Precision

    def job_model(self) -> Model:
        """The chosen model, or the nearest to the fields that can be."""
        fields = {name: getattr(self, name) for name in MODEL_FIELDS}
        return own.model(self.model, own.fitted(fields))

    def cluster(self) -> own.OwnCluster:
        """The machines that a figure plans for."""
        return self.machines()

    @once
    def machines(self) -> own.OwnCluster:
        """The chosen GPU with its node, or the figures in the fields."""
        return own.cluster(
            self.gpu,
            self.precision,
            self.own_hbm,
            self.own_flops,
            self.own_bandwidth,
            self.own_link,
            self.own_nic,
            self.own_node,
        )


MODEL_FIELDS = tuple(name for name, control in OwnJob.controls().items() if control.more == MODEL)
CLUSTER_FIELDS = tuple(name for name, control in OwnJob.controls().items() if control.more == CLUSTER)
