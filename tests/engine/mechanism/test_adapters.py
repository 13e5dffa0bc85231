"""Adapters by hand: what is trained, what is frozen and in how many bytes, what a layer keeps, and FLOPs."""

import pytest

from engine import catalog
from engine.catalog import models
from engine.mechanism import adapters, flops, matmul, memory
from engine.mechanism.adapters import Adapter
from engine.mechanism.shape import shape

LLAMA8 = catalog.model("llama3.1-8b")
LLAMA70 = catalog.model("llama3-70b")
LLAMA7 = catalog.model("llama2-7b")
MIXTRAL = catalog.model("mixtral-8x7b")
DEEPSEEK = catalog.model("deepseek-v3")
QV = ("q_proj", "v_proj")


def test_trained_parameters_of_published_configurations():
    # a layer of Llama 3.1 8B, r·(k + n): q, o 8192; k, v 5120; gate, up, down 18432: 81,920 · 16 · 32 layers
    assert adapters.trained_parameters(LLAMA8, Adapter(16)) == 16 * 32 * (2 * 8192 + 2 * 5120 + 3 * 18432)
    # printed so by PEFT and Unsloth (github.com/unslothai/unsloth/issues/465)
    assert adapters.trained_parameters(LLAMA8, Adapter(16)) == 41_943_040
    # … and "trainable params: 4,194,304" of Llama 2 7B with PEFT's usual q_proj and v_proj at r = 8
    assert adapters.trained_parameters(LLAMA7, Adapter(8, QV)) == 4_194_304
    # DoRA adds a length for each of the n columns: 4096 + 2·1024 + 4096 + 2·14336 + 4096 a layer
    more = 32 * (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096)
    assert adapters.trained_parameters(LLAMA8, Adapter(16, kind="dora")) == 41_943_040 + more


def test_matrices_that_are_one_share_one_thin_input():
    apart, one = Adapter(16, ("q_proj", "k_proj", "v_proj")), Adapter(16, ("qkv_proj",))
    assert adapters.trained_parameters(LLAMA8, apart) == 16 * 32 * (3 * 4096 + 4096 + 2 * 1024)
    assert adapters.trained_parameters(LLAMA8, one) == 16 * 32 * (4096 + 4096 + 2 * 1024)
    both = 8 * 16 * 32 * (4096 + 2 * 14336)
    assert adapters.trained_parameters(MIXTRAL, Adapter(16, ("gate_up_proj",))) == both


def test_every_expert_has_an_adapter_of_its_own():
    attention = 8 * 32 * (2 * 8192 + 2 * 5120)
    each = 8 * 32 * 3 * (4096 + 14336)
    assert adapters.trained_parameters(MIXTRAL, Adapter(8)) == attention + 8 * each
    assert adapters.active_parameters(MIXTRAL, Adapter(8)) == attention + 2 * each
    on_a_rank = adapters.layer_parameters(shape(MIXTRAL), Adapter(8), 1.0, 8.0, 1.0)
    assert [32 * part for part in on_a_rank] == [attention, each]


def test_latent_attention_has_names_of_its_own():
    down = Adapter(1, ("q_a_proj", "kv_a_proj_with_mqa"))
    assert adapters.trained_parameters(DEEPSEEK, down) == 61 * (7168 + 1536 + 7168 + 576)
    assert adapters.trained_parameters(DEEPSEEK, Adapter(1, ("kv_b_proj",))) == 61 * (512 + 128 * 256)


def test_without_a_latent_of_queries_they_have_one_matrix():
    """DeepSeek-V2-Lite's config.json has q_lora_rank null: q_proj, 2,048 to 16 heads of 192."""
    lite = catalog.model("deepseek-v2-lite")
    assert adapters.trained_parameters(lite, Adapter(1, ("q_proj",))) == 27 * (2048 + 16 * 192)
    names = [one.name for one in adapters.attention_matrices(lite.attention)]
    assert names[:3] == ["q_proj", "kv_a_proj_with_mqa", "kv_b_proj"] and "q_a_proj" not in names


def test_a_packed_base_is_unpacked_matrix_by_matrix():
    """Llama 3.1 8B's largest is 4,096 × 14,336, 117 MB in 16 bits, on two tensor ranks half of it. A base in
    16 bits is multiplied as it lies, and so is one in 8 bits where products take 8."""
    sized = shape(LLAMA8)
    for base in ("nf4", "nf4-double", "fp8"):
        assert adapters.unpacked_bytes(sized, Adapter(base=base), 1.0) == 2 * 4096 * 14336
        assert adapters.unpacked_bytes(sized, Adapter(base=base), 2.0) == 4096 * 14336
    assert adapters.unpacked_bytes(sized, Adapter(), 1.0) == 0
    assert adapters.unpacked_bytes(sized, Adapter(base="fp8"), 1.0, at_16_bits=False) == 0


def test_unpacking_reads_each_weight_and_writes_it_in_16_bits():
    """A layer of Llama 3.1 8B has 218,103,808 weights: in 4.5 bits read, in 16 written, forward and backward;
    A and B take as long over either base."""
    at, sized = matmul.chip(catalog.gpu("h100-sxm")), shape(LLAMA8)
    plain, packed = (
        adapters.layer_s(sized, Adapter(16, base=base), 4096.0, 1.0, 1.0, 1.0, 1.0, at)
        for base in ("bf16", "nf4")
    )
    unpacking_s = 218_103_808 * (4.5 / 8 + 2) / at.memory_bytes_per_s
    assert packed.forward_s - plain.forward_s == pytest.approx(unpacking_s)
    assert packed.backward_s - plain.backward_s == pytest.approx(unpacking_s)
    assert packed.weight_gradient_s == plain.weight_gradient_s


def test_matrices_are_the_model_s_own():
    for model in (LLAMA8, LLAMA7, DEEPSEEK, MIXTRAL, catalog.model("gpt3-175b")):
        found = 0
        for count, (kind, mlp, _) in models.blocks(model):
            each = adapters.matrices(kind, mlp, Adapter(1))
            found += count * sum(one.copies * one.k * one.n for one in each)
        routers = sum(count * mlp.hidden * mlp.experts for count, mlp in models.mlps(model) if mlp.routed)
        active = flops.matmul_parameters(model) - model.vocab * model.hidden - routers
        idle = sum(
            count * (mlp.experts - mlp.top_k) * mlp.expert.matrices
            for count, mlp in models.mlps(model)
            if mlp.routed
        )
        assert found == active + idle


def test_tensor_ranks_share_one_side_of_each_thin_matrix():
    sized = shape(LLAMA8)
    # column: A whole, B split; row: A split, B whole
    whole, half = (adapters.layer_parameters(sized, Adapter(16), tp, 1.0, 1.0)[0] for tp in (1.0, 2.0))
    assert whole == 16 * 81_920
    columns = 3 * 4096 + (4096 + 2 * 1024) / 2 + 2 * 4096 + 14336
    rows = 4096 / 2 + 4096 + 14336 / 2 + 4096
    assert half == 16 * (columns + rows)


def test_four_bits_and_their_scales():
    assert adapters.BASE_BYTES["nf4"] == 4.5 / 8
    assert 8 * adapters.BASE_BYTES["nf4-double"] == pytest.approx(4.127, abs=5e-4)
    saved = 8 * (adapters.BASE_BYTES["nf4"] - adapters.BASE_BYTES["nf4-double"])
    assert saved == pytest.approx(0.373, abs=5e-4)  # arXiv:2305.14314 section 3


def test_frozen_bytes_of_8b():
    # 32 · 218,103,808 matrix weights in NF4 with quantised scales: 3.6 GB; 8,192 norm weights stay in 16 bits
    dense, routed = adapters.frozen_layer_bytes(shape(LLAMA8), Adapter(8, base="nf4-double"))
    assert 32 * dense == pytest.approx(32 * (218_103_808 * 4.126953125 / 8 + 8_192 * 2))
    assert routed == 0
    # a base in 16 bits is the whole layer at 2 bytes
    assert (
        adapters.frozen_layer_bytes(shape(LLAMA8), Adapter())[0] == 2 * shape(LLAMA8).dense_params_per_layer
    )


def kept(adapter, **more):
    return memory.kept_per_token(LLAMA8, 4096, 1, 1, memory.NO_RECOMPUTE, 1, 0, adapter=adapter, **more)


def test_what_a_layer_keeps():
    h, f = 4096, 14336
    needed = 4 * h + 2 * (4096 + 2 * 1024) + 2 * 4096 + 2 * 2 * f  # norms', attention's, SiLU's operands
    everything = needed + 2 * 2 * h + 2 * f  # and the inputs of q, k, v, of gate and up, and of down
    assert kept(None) == everything
    assert kept(Adapter(16)) == everything + 7 * 2 * 16  # every input is read for the gradient of an A
    assert kept(Adapter(16, QV)) == needed + 2 * h + 2 * 2 * 16  # one norm's output alone
    assert kept(Adapter(16, ("o_proj",))) == needed + 2 * 16  # o's input is kept for attention anyway
    assert kept(Adapter(16, ("down_proj",))) == needed + 2 * f + 2 * 16
    # DoRA: two results of n values each
    assert kept(Adapter(16, QV, "dora")) == kept(Adapter(16, QV)) + 2 * 2 * (4096 + 1024)


def test_inputs_of_experts_are_kept_for_their_adapters_alone():
    def of(adapter):
        return memory.kept_per_token(MIXTRAL, 4096, 1, 1, memory.NO_RECOMPUTE, 1, 0, adapter=adapter)

    only, both = of(Adapter(16, QV)), of(Adapter(16, (*QV, "gate_proj")))
    assert both - only == 2 * (2 * 4096 + 2 * 16)  # two experts: a copy of the token, and x·A


def test_four_flops_a_weight_and_token():
    n = flops.matmul_parameters(LLAMA70)
    saved = adapters.saved_flops_per_token(LLAMA70, Adapter(16), n)
    assert (6 * n - saved) / n == pytest.approx(4, rel=0.01)
    assert 6 * n - saved == 4 * n + 6 * adapters.trained_parameters(LLAMA70, Adapter(16))


def test_slots_of_a_server():
    # a slot holds the greatest rank for all matrices: 8 of rank 64 beside Llama 3.1 8B, 2 bytes a value
    assert adapters.server_bytes(LLAMA8, 8, 64) == 8 * 2 * 4 * 41_943_040
    assert adapters.server_bytes(LLAMA8, 0, 64) == 0
    assert 0.5 < adapters.server_bytes(LLAMA8, 1, 16, 2) / adapters.server_bytes(LLAMA8, 1, 16) < 0.7


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (dict(rank=0), "rank"),
        (dict(targets=()), "targets"),
        (dict(targets=("query",)), "targets"),
        (dict(kind="ia3"), "kind"),
        (dict(base="int4"), "base"),
        (dict(rest="fp8"), "rest"),
    ],
)
def test_bad_adapters_are_named(bad, told):
    with pytest.raises(ValueError, match=told):
        Adapter(**bad)


def test_one_name_is_enough():
    assert Adapter(8, "q_proj") == Adapter(8, ("q_proj",))  # type: ignore[arg-type]


def test_a_target_that_the_model_has_not():
    with pytest.raises(ValueError, match="targets must name matrices of"):
        adapters.require(LLAMA8, Adapter(16, ("kv_b_proj",)))
    with pytest.raises(ValueError, match="linear attention"):
        adapters.require(catalog.model("qwen3-next-80b-a3b"), Adapter(16))
