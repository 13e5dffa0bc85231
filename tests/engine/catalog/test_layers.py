"""What a model's layers are made of: each kind counted by hand, and kinds that nobody knows refused."""

import numpy as np
import pytest

import engine
from engine import catalog
from engine.base import check
from engine.catalog import models
from engine.catalog.layers import DenseMlp, ExpertsMlp, GroupedAttention, LatentAttention, LayerGroup, Window
from engine.catalog.models import Model, ModelSizes
from engine.mechanism import flops, memory
from engine.mechanism.shape import shape
from tests.cases import in_one_test
from tests.said import refused

GROUPED = {"kind": "grouped", "heads": 8, "kv_heads": 2, "head_dim": 16}
LATENT = {"kind": "latent", "heads": 8, "kv_lora": 32, "rope_dim": 4, "nope_dim": 12, "v_dim": 10}
DENSE = {"kind": "dense", "width": 256}
EXPERTS = {"kind": "experts", "experts": 8, "top_k": 2, "width": 64, "shared_experts": 1, "shared_width": 48}


def of(*groups, **fields) -> Model:
    """A model of width 64 with these groups."""
    return models.described("x", "X", hidden=64, vocab=100, groups=groups, **fields)


# -- each kind by hand: hidden 64, two norms of 64, vocabulary of 100 twice, one last norm -------------------
ENDS = 2 * 100 * 64 + 64
ATTENTION = 64 * (8 + 2 * 2) * 16 + 8 * 16 * 64
# q 8 heads of 16; latent 32 + 4; up 8 heads of 12 + 10; output 8 heads of 10; the norm of the latent
LATENTS = 64 * 8 * 16 + 64 * 36 + 32 * 8 * 22 + 80 * 64 + 32
MLP = 3 * 64 * 256
UNROUTED = 3 * 64 * 48 + 64 * 8
EXPERT = 3 * 64 * 64


@in_one_test(
    "attention, mlp, total, active, cached",
    [
        (GROUPED, DENSE, ATTENTION + MLP, ATTENTION + MLP, 2 * 2 * 16),
        (GROUPED | {"qkv_bias": True}, DENSE, *[ATTENTION + 12 * 16 + MLP] * 2, 64),
        (LATENT, DENSE, LATENTS + MLP, LATENTS + MLP, 32 + 4),
        (LATENT | {"q_lora": 24}, DENSE, *[LATENTS - 64 * 128 + 24 * (64 + 128) + 24 + MLP] * 2, 36),
        (GROUPED, EXPERTS, ATTENTION + 8 * EXPERT + UNROUTED, ATTENTION + 2 * EXPERT + UNROUTED, 64),
        (
            GROUPED,
            EXPERTS | {"router_bias": True},
            *[ATTENTION + n * EXPERT + UNROUTED + 8 for n in (8, 2)],
            64,
        ),
        # of two matrices up, and of one down, in each expert and in the shared one; and of each choice
        (
            GROUPED,
            EXPERTS | {"biases": True},
            *[ATTENTION + n * (EXPERT + 2 * 64 + 64) + UNROUTED + 2 * 48 + 64 + 8 for n in (8, 2)],
            64,
        ),
        (GROUPED, DENSE | {"gated": False}, *[ATTENTION + 2 * 64 * 256] * 2, 64),
    ],
)
def test_a_kind_counted_by_hand(attention, mlp, total, active, cached):
    model = of({"count": 3, "attention": attention, "mlp": mlp})
    assert model.total_params == ENDS + 3 * (total + 2 * 64)
    assert model.active_params == ENDS + 3 * (active + 2 * 64)
    assert model.cache_bytes_per_token(1.0) == 3 * cached
    assert memory.kv_bytes_per_token(model) == 2 * 3 * cached


def test_windows_keep_and_see_what_is_in_them():
    """Of 100 tokens a window of 10 keeps 10, and sees 9.5 on average with the mask; a chunk of 10 five."""
    whole = {"count": 1, "attention": GROUPED, "mlp": DENSE}
    for more, seen in (({"window": 10}, 10 - 100 / 200), ({"window": 10, "chunked": True}, 5)):
        model = of(whole, {**whole, "count": 2, **more})
        assert memory.kv_bytes(model, 100, 1, 1.0) == 64 * (100 + 2 * 10)
        assert flops.attention_flops_per_token(model, 100) == 2 * 8 * 32 * (50 + 2 * seen)
        assert model.cache_bytes_per_token(1.0) == 64  # a further token grows the one layer without a window
        assert model.window_bytes_per_sequence(1.0) == 64 * 2 * 10


def test_kinds_stand_beside_each_other_in_one_model():
    """Sizes that the short keys of an entry cannot say: two kinds of attention, two widths of experts."""
    model = of(
        {"count": 2, "attention": LATENT, "mlp": DENSE},
        {"count": 3, "attention": GROUPED, "mlp": EXPERTS},
        {"count": 1, "attention": GROUPED, "mlp": EXPERTS | {"width": 32}},
    )
    small = 3 * 64 * 32
    assert model.depth == 6
    assert model.total_params == ENDS + 6 * 2 * 64 + 2 * (LATENTS + MLP) + 4 * (ATTENTION + UNROUTED) + 8 * (
        3 * EXPERT + small
    )
    assert model.cache_bytes_per_token(1.0) == 2 * 36 + 4 * 64
    assert models.moe_layers(model) == 4 and models.dense_layers(model) == 2
    with refused("x has layers that the short keys of a model do not describe"):
        models.sizes_of(model)
    size = shape(model)
    assert [part.share for part in size.routed] == [3 / 6, 1 / 6]
    assert sum(part.share for part in (*size.dense, *size.routed)) == pytest.approx(1.0)
    found = 6 * (size.dense_params_per_layer + size.routed_params_per_layer) + ENDS
    assert found == pytest.approx(model.total_params, rel=1e-15)


def test_it_is_estimated_and_served():
    mixed = of(
        {"count": 2, "attention": LATENT, "mlp": DENSE},
        {"count": 2, "attention": GROUPED, "mlp": EXPERTS, "window": 16},
    )
    for way in (engine.Layout(4), engine.Layout(4, 2), engine.Layout(4, ep=2), engine.Layout(4, cp=2)):
        assert 0 < engine.estimate(mixed, "h100-sxm", engine.Job(8, 128), way).step_s < 1
    assert 0 < engine.serve(mixed, "h100-sxm", tp=2).decode.total_s < 1


# -- what is refused -----------------------------------------------------------------------------------------
@in_one_test(
    "group, complaint",
    [
        ({"attention": {"kind": "mamba"}}, ("attention", "grouped", "latent", "'mamba'")),
        ({"mlp": {"kind": "hashed"}}, ("mlp", "dense", "experts", "'hashed'")),
        ({"mlp": {}}, ("mlp", "dense", "experts", "''")),
        ({"attention": GROUPED | {"state": 4}}, ("grouped attention", "head_dim", "'state'")),
        ({"attention": GROUPED | {"kv_heads": 3}}, ("kv_heads", "1, 2, 4, 8", "3")),
        ({"attention": LATENT | {"v_dim": 0}}, ("v_dim", "1", "0")),
        ({"state": 3}, ("a group of layers", "count", "state")),
        ({"count": 0}, ("count", "1", "0")),
        ({"window": -1}, ("window", "1", "-1")),
    ],
)
def test_an_unknown_kind_or_size_is_refused_by_name(group, complaint):
    with refused(*complaint):
        of({"count": 1, "attention": GROUPED, "mlp": DENSE} | group)


def test_a_file_may_have_groups_instead_of_short_keys(tmp_path):
    path = tmp_path / "mine.toml"
    text = """
    hidden = 64
    vocab = 100
    [[groups]]
    count = 2
    attention = { kind = "KIND", heads = 8, kv_heads = 2, head_dim = 16 }
    mlp = { kind = "dense", width = 256 }
    """
    path.write_text(text.replace("KIND", "grouped"))
    assert catalog.model_from_file(path).total_params == ENDS + 2 * (ATTENTION + MLP + 128)
    path.write_text(text.replace("KIND", "lightning"))
    with refused("mine.toml:1: 'mine': the kind of attention", "'lightning'"):
        catalog.model_from_file(path)


# -- the catalogue's models ----------------------------------------------------------------------------------
def test_llama_4_maverick_layer_by_layer():
    """Of 48, every second has experts and every fourth no chunks (its config.json): 24 dense ones in chunks,
    12 with experts in chunks, 12 with experts and without."""
    found = {
        (group.mlp.routed, group.window): (group.count, group.first)
        for group in catalog.model("llama4-maverick").layers
    }
    chunks = Window(8192, True)
    assert found == {(False, chunks): (24, 0), (True, chunks): (12, 1), (True, None): (12, 3)}


@in_one_test(
    "key, groups",
    [
        ("llama3-8b", [(32, GroupedAttention, DenseMlp, 0, 0)]),
        ("mixtral-8x7b", [(32, GroupedAttention, ExpertsMlp, 0, 0)]),
        ("deepseek-v3", [(3, LatentAttention, DenseMlp, 0, 0), (58, LatentAttention, ExpertsMlp, 0, 3)]),
        ("gemma3-12b", [(40, GroupedAttention, DenseMlp, 1024, 0), (8, GroupedAttention, DenseMlp, 0, 5)]),
        ("mistral-7b", [(32, GroupedAttention, DenseMlp, 4096, 0)]),
    ],
)
def test_the_groups_of_a_model(key, groups):
    found = [
        (g.count, type(g.attention), type(g.mlp), g.window.tokens if g.window else 0, g.first)
        for g in catalog.model(key).layers
    ]
    assert found == groups


@in_one_test("model", catalog.all_models().values(), ids=lambda m: m.key)
def test_short_keys_give_a_model_back(model):
    """Or say that they do not describe it, as of linear attention."""
    if models.in_short_keys(model):
        assert models.resized(model) == model
    else:
        with refused(model.key, "short keys"):
            models.sizes_of(model)


def test_where_experts_stand():
    asked = ("llama3-8b", "mixtral-8x7b", "llama4-scout", "deepseek-v3", "llama4-maverick")
    found = [models.expert_places(catalog.model(key)) for key in asked]
    assert found == [(0, 1), (0, 1), (0, 1), (3, 1), (0, 2)]


def test_models_taken_together_have_all_kinds_of_layers():
    """Each lacks what another has: no dense layers, no experts, no window, no latents."""
    keys = ["llama3-8b", "mixtral-8x7b", "deepseek-v3", "gemma3-27b", "mistral-7b", "llama4-maverick"]
    together = catalog.models_together(keys)
    each = [catalog.model(key) for key in keys]
    for function in (
        flops.matmul_parameters,
        models.moe_layers,
        lambda model: flops.training_flops_per_token(model, 8192),
        lambda model: memory.activation_bytes(model, 4096, 1),
        lambda model: shape(model).products,
        lambda model: shape(model).kv_width,
    ):
        assert np.allclose(function(together), [function(model) for model in each], rtol=1e-13)


def test_of_sizes_in_an_array_each_kind_has_the_layers_that_the_numbers_have():
    """12 layers: of the eight behind four dense ones every second has experts, and six or none have a window.
    Where these stand is not known of an array; as many as may be have both."""
    sizes = dict(hidden=64, heads=8, kv_heads=2, head_dim=16, ffn=256, experts=8, top_k=2, expert_ffn=64)
    more = dict(window=32, first_dense_layers=4, moe_every=2)
    layers, windowed = np.array([12.0, 12.0]), np.array([6.0, 0.0])
    with check.trusted():
        groups = ModelSizes(layers=layers, windowed_layers=windowed, **sizes, **more).groups()
    counts = {(group.window is not None, group.mlp.family): list(group.count) for group in groups}
    dense, experts = DenseMlp.family, ExpertsMlp.family
    assert counts == {
        (False, dense): [12 - 6 - 4 + 4, 12 - 4],
        (False, experts): [0, 4],
        (True, dense): [2, 0],
        (True, experts): [4, 0],
    }


def test_a_width_of_latents_that_is_no_plain_number_decides_as_one_does():
    """0 stands for keys and values of their own, and even one value for latents."""
    ranks = (0, 1, 32)

    def parameters(kv_lora):
        sizes = dict(layers=1, hidden=64, heads=8, kv_heads=8, head_dim=16, ffn=256)
        more = dict(q_lora=0, rope_dim=4, nope_dim=12, v_dim=10)
        with check.trusted():
            return ModelSizes(**sizes, **more, kv_lora=kv_lora).groups()[0].attention.parameters

    assert [parameters(np.array(float(rank))) for rank in ranks] == [parameters(rank) for rank in ranks]


@in_one_test("model", catalog.all_models().values(), ids=lambda m: m.key)
def test_a_mixture_says_how_wide_its_shared_experts_are_or_has_none(model):
    for group in model.layers:
        if isinstance(group.mlp, ExpertsMlp):
            assert (group.mlp.shared_experts > 0) == (group.mlp.shared_width > 0)


def test_a_model_needs_layers():
    with refused("layers", "at least one group"):
        Model("x", "X", (), 64, 100)
    assert LayerGroup(1, GroupedAttention(64, 8, 2, 16), DenseMlp(64, 256)).norms == 2
