"""Optimizers of whole matrices, worked by hand."""

import pytest

from engine import catalog
from engine.calibration.products import Gemm
from engine.catalog import models, recipes
from engine.mechanism import optimizers
from engine.mechanism.optimizers import Cut, WeightMatrix
from engine.mechanism.shape import shape
from engine.mechanism.wires import wires
from tests.said import refused

LLAMA, DEEPSEEK = catalog.model("llama3.1-8b"), catalog.model("deepseek-v3")
MUON, SOAP = catalog.recipe("muon"), catalog.recipe("soap")
# a chip that multiplies 10¹² times a second, and takes no time for anything else
PLAIN = Gemm(1e12, 1.0, 1e30, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0)
NET = wires(catalog.gpu("h100-sxm"))
UP = WeightMatrix(4096, 14336, 1.0, 0.0, 1.0, False)  # Llama 3.1 8B: column parallel …
DOWN = WeightMatrix(14336, 4096, 1.0, 1.0, 0.0, False)  # … and row parallel
ROUTER = WeightMatrix(7168, 256, 1.0, 0.0, 0.0, False)


# -- the arithmetic ------------------------------------------------------------------------------------------
def test_newton_schulz_by_hand():
    """2 × 3: a product of 2·2·3·2 = 24 FLOPs, the square of 2 × 2 takes 16, and 24 again: 64. A square of
    4,096 in five steps: 5 · 6 · 4,096³."""
    assert optimizers.newton_schulz_flops(2, 3, 1) == optimizers.newton_schulz_flops(3, 2, 1) == 64
    assert optimizers.newton_schulz_flops(4096, 4096) == 30 * 4096**3


def test_what_newton_schulz_adds_to_training():
    """A square matrix has s·m/B: 5 · 4,096 / 4M tokens are 0.51 %, Keller Jordan's bound."""
    assert optimizers.newton_schulz_share(4096, 4096, 4e6) == pytest.approx(5 * 4096 / 4e6)


@pytest.mark.parametrize(("tokens", "percent"), [(63e6, 0.52), (4e6, 8.2)])
def test_experts_see_fewer_tokens(tokens, percent):
    """DeepSeek-V3: 8 of 256 experts, 2,048 × 7,168: at most 5·2,048·32/B; and (4 + 2·2/7)/6 of it, since the
    matrix is no square."""
    share = optimizers.newton_schulz_share(2048, 7168, tokens, met_share=8 / 256)
    assert 100 * 5 * 2048 * 32 / tokens == pytest.approx(percent, rel=0.01)
    assert share == pytest.approx(5 * 2048 * 32 / tokens * (4 + 2 * 2048 / 7168) / 6)


def test_its_seconds_are_those_of_its_products():
    assert optimizers.newton_schulz_s(4096, 1024, PLAIN) == pytest.approx(
        optimizers.newton_schulz_flops(1024, 4096) / 1e12
    )


# -- which parameters ----------------------------------------------------------------------------------------
def test_the_matrices_of_llama_8b_by_hand():
    """Queries and output 4,096², keys and values 4,096 × 1,024, three of 4,096 × 14,336, in 32 layers; the
    rest is two embeddings of 128,256 × 4,096 and 65 norms."""
    layer = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    assert optimizers.managed_params(LLAMA) == 32 * layer
    assert models.parameters(LLAMA) - 32 * layer == 2 * 128256 * 4096 + 65 * 4096


@pytest.mark.parametrize(
    ("key", "left_out"), [("kimi-k2", 2 * 163840 * 7168), ("deepseek-v3", 2 * 129280 * 7168)]
)
def test_adamw_has_the_embeddings_of_a_large_model_and_hardly_more(key, left_out):
    """1 − 2·V·h/P: 99.77 % of Kimi K2, 99.72 % of DeepSeek-V3."""
    model = catalog.model(key)
    total, managed = models.parameters(model), optimizers.managed_params(model)
    assert managed / total == pytest.approx(1 - left_out / total, abs=2e-6)
    assert total - managed >= left_out


def test_moonlight_has_a_large_vocabulary_for_its_size():
    """16B parameters, 2 · 163,840 · 2,048 of them in embeddings: 95.8 % under Muon (Moonlight-16B-A3B's
    config.json)."""
    moonlight = models.described(
        key="moonlight", name="Moonlight", layers=27, hidden=2048, heads=16, kv_heads=16, head_dim=128,
        ffn=11264, kv_lora=512, rope_dim=64, nope_dim=128, v_dim=128, experts=64, top_k=6, expert_ffn=1408,
        shared_experts=2, shared_ffn=1408, first_dense_layers=1, router_bias=True, vocab=163840,
    )  # fmt: skip
    assert models.parameters(moonlight) == pytest.approx(15.96e9, rel=1e-3)
    assert optimizers.managed_params(moonlight) / models.parameters(moonlight) == pytest.approx(
        0.958, abs=5e-4
    )


def test_gate_and_up_may_be_one_matrix():
    """The same parameters, but 4,096 × 28,672 as Megatron-Core has it."""
    apart, joined = (optimizers.matrices(LLAMA, joined) for joined in (False, True))
    assert joined.dense_params == apart.dense_params and joined.largest == 2 * apart.largest
    assert (4096, 28672) in [one[:2] for one in joined.all]


def test_a_shared_expert_rises_from_the_hidden_state_and_falls_back_to_it():
    """DeepSeek-V3, tables of config.json: 7,168 to 2,048 and back. Tensor ranks cut the narrow side."""
    found = optimizers.matrices(catalog.model("deepseek-v3")).all
    shared = [one for one in found if not one.routed and 2048 in one[:2]]
    sides = {(*one[:2], one.cuts_inputs, one.cuts_outputs) for one in shared}
    assert sides == {(7168, 2048, 0.0, 1.0), (2048, 7168, 1.0, 0.0)}
    assert sum(one.count for one in shared) == pytest.approx(3 * 58 / 61)


@pytest.mark.parametrize(
    "key", ["qwen3-next-80b-a3b", "deepseek-v4-flash", "nemotron-3-super", "gpt-oss-120b"]
)
def test_every_matrix_of_other_kinds_of_layers_is_found(key):
    """What is left are embeddings, biases, convolutions and norms: less than 1 % beyond the embeddings."""
    model = catalog.model(key)
    total, managed = models.parameters(model), optimizers.managed_params(model)
    ends = models.embedding_parameters(model) + models.head_parameters(model)
    assert 0 <= total - managed - ends < 0.01 * total


# -- bytes ---------------------------------------------------------------------------------------------------
def test_muon_keeps_eight_bytes_where_adam_keeps_twelve():
    """16 bytes for each of 8.03B parameters, but 12 for the 6.98B in matrices: 100.6 GB for 128.5."""
    slabs = optimizers.state_slabs(LLAMA, MUON)
    total = models.parameters(LLAMA)
    assert sum(slabs) == 16 * total - 4 * optimizers.managed_params(LLAMA)
    assert slabs[:4] == (2 * total, 2 * total, 4 * total, 4 * total)


def test_soap_takes_three_times_adams_state_of_a_square():
    """8 bytes for both moments, and 8 for each of m² + n²."""
    assert optimizers.two_sided_bytes(1000, 1000, 8, 8) == 3 * 8e6
    assert optimizers.two_sided_bytes(1000, 3000, 8, 8) == 24e6 + 8 * 10e6
    square = models.described(
        key="s", name="s", layers=1, hidden=64, heads=1, kv_heads=1, head_dim=64, ffn=64, vocab=10
    )  # seven matrices of 64 × 64
    more = sum(optimizers.state_slabs(square, SOAP)) - 16 * models.parameters(square)
    assert more == 7 * 2 * 8 * 64**2


def test_a_recipe_without_matrices_has_its_own_formula():
    with refused("recipe", "bf16-adam"):
        optimizers.state_slabs(LLAMA, catalog.recipe("bf16-adam"))


def test_bytes_of_a_stage_by_hand():
    """32 layers on 8 ranks that own whole matrices: 8 bytes for an eighth of the matrices, 12 for an eighth
    of the rest. On 1,024 ranks one still has a whole matrix of 4,096 × 14,336."""
    total, managed = models.parameters(LLAMA), optimizers.managed_params(LLAMA)
    eight = Cut(32.0, 1.0, 1.0, 1.0, 8.0, 8.0)
    kept, shared = optimizers.held_bytes(shape(LLAMA), MUON, total, eight, False, False)
    assert kept == pytest.approx(8 * managed + 12 * (total - managed))
    assert shared == pytest.approx(kept / 8)
    many = eight._replace(shard=1024.0, expert_shard=1024.0)
    owned, parts = (
        optimizers.held_bytes(shape(LLAMA), MUON, total, many, False, by)[1] for by in (False, True)
    )
    assert owned == pytest.approx(8 * 4096 * 14336 + 12 * (total - managed) / 1024)
    assert parts == pytest.approx(kept / 1024)


def test_experts_of_a_stage_by_hand():
    """Four layers of DeepSeek-V3's mean on 64 expert ranks, their state shared by two: 8 bytes of 256/64
    experts' three matrices a layer."""
    cut = Cut(4.0, 1.0, 1.0, 64.0, 128.0, 2.0)
    found = optimizers.matrices(DEEPSEEK)
    assert found.routed_params == pytest.approx(58 / 61 * 256 * 3 * 2048 * 7168)
    assert found.largest_routed == 2048 * 7168
    assert optimizers._held(found, cut)[1] == pytest.approx(4 * 58 / 61 * 4 * 3 * 2048 * 7168)


def test_whole_matrices_do_not_divide():
    assert optimizers.owned(100.0, 2, 30.0) == 50 and optimizers.owned(100.0, 8, 30.0) == 30


def test_pages_that_an_update_waits_for():
    """4 GB too much over a link of 50 GB/s, there and back: 160 ms."""
    assert optimizers.spilled_bytes(84e9, 80e9) == 4e9 and optimizers.spilled_bytes(70e9, 80e9) == 0
    assert optimizers.paged_s(4e9, 50e9) == pytest.approx(0.16)


# -- traffic -------------------------------------------------------------------------------------------------
def test_whole_matrices_cost_no_traffic_unless_the_momentum_is_gathered():
    """4 bytes of gradient and 4 of weight; two more make Moonlight's 1.25."""
    wide = recipes.Recipe("w", "w", "bf16", 4, 4, 4, 4, 4)
    adam = optimizers.layer_wise_bytes(1e9, wide)
    assert adam == 8e9 and optimizers.layer_wise_bytes(1e9, wide, 1) == 1.25 * adam


@pytest.mark.parametrize(
    ("mode", "up", "square"),
    [
        ("duplicated", 4 * 4096 * 14336, 4 * 4096**2),
        ("blockwise", 0, 0),
        ("distributed", 5 * 2 * 4096**2, 5 * 2 * 4096**2),
    ],
)
def test_what_tensor_ranks_send_for_a_matrix(mode, up, square):
    """Gathered in fp32, or five sums of 4,096² in bf16, which for a square matrix are more."""
    own = WeightMatrix(4096, 4096, 1.0, 0.0, 1.0, False)
    assert optimizers.tensor_bytes(UP, 8, mode) == optimizers.tensor_bytes(DOWN, 8, mode) == up
    assert optimizers.tensor_bytes(own, 8, mode) == square
    assert optimizers.tensor_bytes(UP, 1, mode) == optimizers.tensor_bytes(ROUTER, 8, mode) == 0


def test_the_work_of_tensor_ranks_by_mode():
    """8 ranks. Duplicated: all of it, and a gather. Blockwise: 4,096 × 1,792, whose short side is the part's.
    Distributed: 4,096 long sides over 1,792 values, and the square of the sum on every rank."""
    whole = optimizers.newton_schulz_flops(4096, 14336) / 1e12
    seconds = {mode: optimizers.orthogonal_s(UP, 8.0, mode, 5, PLAIN, NET) for mode in optimizers.MODES}
    sent = [optimizers.tensor_bytes(UP, 8, mode) / 450e9 for mode in optimizers.MODES]
    assert (
        seconds["duplicated"] == pytest.approx(whole, rel=1e-3)
        and seconds["duplicated"] > whole + sent[0] / 2
    )
    assert seconds["blockwise"] == pytest.approx(optimizers.newton_schulz_flops(1792, 4096) / 1e12)
    apart = 5 * (2 * 4096**2 * 1792 + 2 * 4096**3 + 2 * 4096**2 * 1792) / 1e12
    assert seconds["distributed"] == pytest.approx(apart, rel=2e-3) and seconds["distributed"] > apart
    assert optimizers.orthogonal_s(UP, 1.0, "distributed", 5, PLAIN, NET) == pytest.approx(whole)
    assert optimizers.orthogonal_s(ROUTER, 8.0, "blockwise", 5, PLAIN, NET) == pytest.approx(
        optimizers.newton_schulz_flops(7168, 256) / 1e12
    )


def test_bad_input_is_refused():
    with refused("rows", "0"):
        optimizers.newton_schulz_flops(0, 3)
    with refused("mode", "sideways", "blockwise"):
        optimizers.tensor_bytes(UP, 8, "sideways")
    with refused("ranks", "0"):
        optimizers.owned(1.0, 0, 1.0)
