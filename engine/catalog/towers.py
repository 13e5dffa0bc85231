"""Towers beside a decoder, which turn pictures or sound into tokens: their widths, their parameters, and how
a config.json describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.base import check
from engine.base.types import Real

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Tower:
    """A tower that reads pictures: a transformer over patches, which all attend to each other, and what makes
    tokens of the decoder's width of its results."""

    layers: int
    hidden: int
    width: int  # of its MLP
    gated: bool = False
    merged: int = 1  # patches that become one token
    patch: int = 16  # pixels of a patch's side
    most: int = 0  # tokens of the largest picture; 0 where it is not known
    outputs: int = 1  # that are kept for each token: its own, and those of some layers below
    left_out: int = 0  # parameters that the catalogue's entry lacks

    def __post_init__(self) -> None:
        if not check.is_trusted():
            check.whole(layers=self.layers, hidden=self.hidden, width=self.width)
            check.whole(merged=self.merged, patch=self.patch, outputs=self.outputs)
            check.whole(0, most=self.most, left_out=self.left_out)

    @property
    def layer_params(self) -> Real:
        """Weights of one layer: 4·h² of attention, and two matrices of the MLP, three with a gate."""
        return 4 * self.hidden**2 + (2 + self.gated) * self.hidden * self.width

    def patches(self, pixels: Real) -> Real:
        """Patches of a picture with so many pixels."""
        return pixels / self.patch**2

    def tokens(self, pixels: Real) -> Real:
        """Tokens that the decoder reads of it."""
        return self.patches(pixels) / self.merged


# -- from a config.json --------------------------------------------------------------------------------------
# what a tower's file may call itself, by what it is made of
GATED = ("pixtral", "qwen2_5_vl", "qwen2_5_vl_vision", "gemma4_vision", "exaone4_5_vision", "ovis2_vision")
PLAIN = ("siglip_vision_model", "siglip2_vision_model", "clip_vision_model", "internvl_vision")
PLAIN = (*PLAIN, "idefics3_vision", "qwen2_vl", "qwen2_vl_vision", "qwen3_vl", "qwen3_vl_vision", "qwen3_5")
PLAIN = (*PLAIN, "qwen3_vl_moe", "qwen3_vl_moe_vision", "qwen3_5_vision", "qwen3_5_moe", "qwen3_5_moe_vision")
PLAIN = (*PLAIN, "kimi_k25_vision", "kimi_k3_vision", "minimax_m3_vl_vision", "llama4_vision_model")
PLAIN = (*PLAIN, "muse_glimmer_vision")
VISION = (*GATED, *PLAIN)
WHISPER = ("whisper", "voxtral_encoder", "qwen2_audio_encoder")
AUDIO = (*WHISPER, "gemma4_audio", "gemma3n_audio")
UNSURE = 0.04  # of a model: half of a tower whose kind is not known is then less than 2 %
SIDES = ("downsample_factor", "scale_factor")  # patches along each side that become one
PROJECTORS = ("projector_hidden_size", "projection_hidden_size", "merged_hidden_size", "projection_dim")
READ = (*SIDES, *PROJECTORS, "downsample_ratio", "out_hidden_size", "projector_layernorm_eps")


def _first(own: Config, *keys: str) -> int:
    return next((_whole(own, key) for key in keys if own.get(key)), 0)


def _whole(own: Config, key: str) -> int:
    value = own[key]
    value = value[0] if isinstance(value, list) and value else value
    most = 64 if "merge" in key or key in SIDES else 10**6
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= most:
        raise ValueError(f"{key} must be a whole number from 1 to {most:,}, got {str(value)[:40]}.")
    return int(value)


def _list(own: Config, key: str) -> list[Any]:
    found = own.get(key) or []
    if not isinstance(found, list):
        raise ValueError(f"{key} must be a list, got {str(found)[:40]}.")
    return found


def _missing(part: str, *keys: str) -> ValueError:
    return ValueError(f"{part} has no {keys[0]} (nor {', '.join(keys[1:])}).")


DEPTHS = ("depth", "num_hidden_layers", "vt_num_hidden_layers")
HIDDENS = ("embed_dim", "vt_hidden_size", "hidden_size")
WIDTHS = ("vt_intermediate_size", "intermediate_size", "mlp_dim")


def of_config(config: Config) -> Tower | None:
    """The tower of a file's ``vision_config``; None where it has none."""
    own = config.get("vision_config")
    if not isinstance(own, dict) or not own:
        return None
    layers, hidden, width = _first(own, *DEPTHS), _first(own, *HIDDENS), _first(own, *WIDTHS)
    ratio = own.get("mlp_ratio")
    if not width and isinstance(ratio, (int, float)) and 0 < ratio < 100:
        width = int(ratio * hidden)
    for found, keys in ((layers, DEPTHS), (hidden, HIDDENS), (width, WIDTHS)):
        if not found:
            raise _missing("vision_config", *keys)
    kind = str(own.get("model_type") or "")
    return Tower(
        layers,
        hidden,
        width,
        kind in GATED or "gemma4" in kind,
        _merged(config, own),
        _first(own, "patch_size") or 16,
        _first(config, "mm_tokens_per_image") or _first(own, "default_output_length"),
        1 + len(_list(own, "deepstack_visual_indexes")),
    )


def _merged(config: Config, own: Config) -> int:
    """Patches that become one token."""
    if kernel := _first(own, "merge_kernel_size"):
        return kernel**2
    for part in (own, config):
        if side := _first(part, "spatial_merge_size", "merge_size", "pooling_kernel_size", *SIDES):
            return side**2
    ratio = (
        config.get("downsample_ratio") or config.get("pixel_shuffle_ratio") or own.get("pixel_shuffle_ratio")
    )
    if isinstance(ratio, float) and 0.0 < ratio < 1.0:
        return round(1.0 / ratio) ** 2
    patches = (_first(own, "image_size") // max(1, _first(own, "patch_size"))) ** 2
    tokens = _first(config, "mm_tokens_per_image")
    return max(1, patches // tokens) if tokens else 1


def parameters(config: Config, tower: Tower | None, decoder: Real) -> int:
    """Parameters of a file's towers, and of what brings their results to the decoder's width."""
    found = _sounds(config)
    if tower is None:
        return found
    own = config["vision_config"]
    kind = str(own.get("model_type") or "")
    heads, shared = _first(own, "num_attention_heads", "num_heads"), _first(own, "num_key_value_heads")
    layer = tower.layer_params - (2 * tower.hidden**2 * (heads - shared) // heads if shared and heads else 0)
    places = _first(own, "num_position_embeddings") or 2 * _first(own, "position_embedding_size")
    places = places or _first(own, "pos_emb_height") * _first(own, "pos_emb_width")
    pixels = 3 * tower.patch**2 * (_first(own, "temporal_patch_size") or 1)
    total = tower.layers * layer + (places + pixels) * tower.hidden + _projector(config, tower, kind)
    if kind and kind not in VISION and total > UNSURE * decoder:
        some = ", ".join(VISION[:: len(VISION) // 5])
        raise ValueError(
            f"vision_config.model_type must be a tower that is read here ({some}, …), got {kind[:40]!r}."
        )
    return found + total


def _projector(config: Config, tower: Tower, kind: str) -> int:
    """What makes tokens of the tower's results."""
    own, hidden = config["vision_config"], tower.hidden
    to = int(config.get("hidden_size") or hidden)
    merged, side = hidden * tower.merged, own.get("spatial_merge_size") or own.get("merge_kernel_size")
    if kind == "pixtral":
        joined = merged * hidden if config.get("spatial_merge_size") else 0
        return joined + hidden * to + to * to
    if kind == "minimax_m3_vl_vision":
        return hidden * to + to * to + tower.merged * to * to + to * to
    if side:
        to = _first(own, "out_hidden_size") or to
        if own.get("embed_dim"):
            to = _first(own, "hidden_size")
        return tower.outputs * (merged * merged * (tower.merged > 1) + merged * to)
    if "gemma" in kind or "gemma" in str(config.get("model_type")) or kind == "idefics3_vision":
        return (hidden if "gemma" in str(config.get("model_type")) else merged) * to
    inner = _first(config, "projector_hidden_size") or to
    return merged * inner + inner * to


def _sounds(config: Config) -> int:
    """Parameters of the tower that reads sound: Whisper's encoder, or a conformer (Gemma)."""
    own = config.get("audio_config")
    if not isinstance(own, dict) or not own:
        return 0
    kind = str(own.get("model_type") or "")
    if kind not in AUDIO:
        raise ValueError(f"audio_config.model_type must be one of {', '.join(AUDIO)}, got {kind[:40]!r}.")
    depths = ("encoder_layers", "num_hidden_layers", "conf_num_hidden_layers")
    hiddens = ("d_model", "hidden_size")
    layers, hidden = _first(own, *depths), _first(own, *hiddens)
    to = int(config.get("hidden_size") or hidden)
    for found, keys in ((layers, depths), (hidden, hiddens)):
        if not found:
            raise _missing("audio_config", *keys)
    if kind not in WHISPER:  # attention 5·h² with its places, two MLPs of four widths, a convolution
        return layers * 24 * hidden**2 + hidden * to
    width = _first(own, "encoder_ffn_dim", "intermediate_size") or 4 * hidden
    mel, places = _first(own, "num_mel_bins") or 128, _first(own, "max_source_positions") or 1500
    ends = 3 * hidden * (mel + hidden) + places * hidden
    joined = width * to + to * to if kind == "voxtral_encoder" else hidden * to
    return layers * (4 * hidden**2 + 2 * hidden * width) + ends + joined
