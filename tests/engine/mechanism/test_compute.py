"""The kernels between the products, counted by hand; products and whole layers are held in test_layout.py and
test_matmul.py."""

from dataclasses import replace

import pytest

from engine import catalog
from engine.calibration import known, products
from engine.catalog.models import described, resized
from engine.mechanism import compute, matmul
from engine.mechanism.shape import shape
from engine.one_gpu import recordings


def test_bytes_between_the_products_of_gpt_2_by_hand():
    """h = 768, 12 heads of 64, 3,072 wide, dropout, one activation, learned positions: no rotation. Forward:
    two norms 4h, two additions 6h and a mask of 1h each with dropout: 4h + 4h + 12h + 2h = 22h; queries, keys
    and values cut out: 4 · 36 · 64; GeLU 4 · 3072."""
    size = shape(catalog.model("gpt2"))
    forward, backward = compute.streamed_bytes(size, 1.0, 1.0, 3072.0)
    assert forward == 22 * 768 + 4 * 36 * 64 + 4 * 3072
    assert backward == 42 * 768 + 4 * 36 * 64 + 6 * 3072


def test_bytes_between_the_products_of_llama_3_8b_by_hand():
    """h = 4096, 32 query and 8 key heads of 128, 14,336 wide and gated, rotation, no dropout; shared by two
    tensor ranks, the hidden state too: 20h/2 + (4 · 48 + 4 · 40) · 128/2 + 6 · 14336/2."""
    size = shape(catalog.model("llama3-8b"))
    forward, backward = compute.streamed_bytes(size, 2.0, 2.0, 14336.0)
    assert forward == pytest.approx((20 * 4096 + (4 * 48 + 4 * 40) * 128 + 6 * 14336) / 2)
    assert backward == pytest.approx((32 * 4096 + (4 * 48 + 4 * 40) * 128 + 10 * 14336) / 2)


def test_bytes_of_eager_pytorch_by_hand():
    """Llama 3 8B. Forward: two norms in fp32 at 36h, two additions at 6h; queries and keys turned in fp32 (20
    a value), keys and values copied from 8 to 32 heads (2 · 2 read, 2 · 2 written); SiLU 4 and its product 6
    a value of width. Backward: norms 92h each, five sums of gradients of 6h; 6 + 12 a value of width."""
    forward, backward = compute.eager_bytes(shape(catalog.model("llama3-8b")), 1.0, 1.0, 14336.0)
    heads = 20 * 40 * 128 + 4 * (8 + 32) * 128
    assert forward == 84 * 4096 + heads + 10 * 14336
    assert backward == 214 * 4096 + heads + 18 * 14336


@pytest.mark.parametrize(("norm", "gated"), [("rms_norm", True), ("layer_norm", False)])
def test_pytorch_itself_moves_those_bytes(norm, gated):
    """Its dispatcher counted a Llama layer with either norm; a LayerNorm belongs to a model without a gate
    here, so what the gate moves is added by hand."""
    found = recordings.load("eager_bytes")
    sizes = {name: found[name] for name in ("hidden", "heads", "kv_heads", "head_dim", "ffn")}
    size = shape(resized(catalog.model("llama3-8b"), gated=gated, **sizes))
    gate = (0.0, 0.0) if gated else (6.0 * found["ffn"], 12.0 * found["ffn"] + 6.0 * found["hidden"])
    for own, extra, seen in zip(
        compute.eager_bytes(size, 1.0, 1.0, float(found["ffn"])), gate, found[norm].values(), strict=True
    ):
        assert own + extra == pytest.approx(seen, rel=0.04)


def test_flash_attention_2_on_an_h100_reaches_what_its_paper_says():
    """335 TFLOP/s, forward and backward, on long sequences (arXiv:2307.08691, section 4.1), in a burst."""
    h100 = catalog.gpu("h100-sxm")
    burst = {"attention": matmul.burst_attention(h100), "flash_2": known.flash_2("h100-sxm")}
    at = replace(matmul.chip(h100), **burst)
    size = shape(catalog.model("llama3-8b"))
    tokens = 16384.0
    forward, backward = compute.core_attention_s(size, tokens, tokens, 1.0, True, at, "compiled")
    rate = 3.5 * 4 * 32 * 128 * tokens * tokens / 2 / (forward + backward)
    assert rate == pytest.approx(335e12, rel=0.05)
    newer = compute.core_attention_s(size, tokens, tokens, 1.0, True, at)
    assert newer[0] < 0.6 * forward
    assert known.flash_2("a100-80") == known.attention("prefill", "a100-80").rates


@pytest.mark.parametrize("wrong", ["tokens", "seq", "imbalance"])
def test_a_layer_takes_only_what_there_is(wrong):
    amounts = {"tokens": 4096.0, "seq": 4096.0, "imbalance": 1.0} | {wrong: 0.0}
    with pytest.raises(ValueError, match=wrong):
        compute.layer(
            shape(catalog.model("gpt2")),
            amounts["tokens"],
            amounts["seq"],
            1,
            1,
            1,
            1,
            amounts["imbalance"],
            True,
            True,
            matmul.chip(catalog.gpu("h100-sxm")),
        )


def test_launches_of_a_layer_by_hand():
    """Two kernels for each product and eight more; experts add 153, and two for each one that a GPU holds, or
    four in 8 bits. Of Qwen3 30B's layer on eight ranks, forward: queries, keys and values, output, and
    experts' two: 8 + 2 · 4 and 153 + 2 · 16 launches of 12 µs. A TPU launches none."""
    h100, tpu = (matmul.chip(catalog.gpu(key)) for key in ("h100-sxm", "tpu-v5e"))
    llama, qwen = (shape(catalog.model(key)) for key in ("llama3-8b", "qwen3-30b-a3b"))
    assert compute.issued_s(llama, 1.0, h100) == (pytest.approx((8 + 2 * 4) * 12e-6), 0.0)
    assert compute.issued_s(qwen, 8.0, h100) == pytest.approx(((8 + 2 * 4) * 12e-6, (153 + 2 * 16) * 12e-6))
    narrow = matmul.chip(catalog.gpu("h100-sxm"), "fp8")
    assert compute.issued_s(qwen, 16.0, narrow)[1] == pytest.approx((153 + 4 * 8) * 12e-6)
    assert compute.issued_s(qwen, 8.0, tpu) == (0.0, 0.0)


def test_fused_experts_neither_move_nor_cast_what_lies_inside_them():
    """Qwen3's expert on eight ranks in 8 bits, 131,072 rows of 2,048 with 768 inside: forward 6 bytes of each
    value inside are not moved and it is not cast, backward 10, and of the gradient twice as many are not
    cast. In 16 bits there are no such kernels."""
    qwen = shape(catalog.model("qwen3-30b-a3b"))
    for precision in ("fp8", "bf16"):
        at = matmul.chip(catalog.gpu("b200"), precision)
        of = (qwen, 16384.0, 4096.0, 1.0, 1.0, 8.0, 1.0, 1.0, True, True, at)
        plain, fused = compute.layer(*of), compute.layer(*of, how="fused")
        inside, narrow = 131072 * 768 / at.experts.permute_bytes_per_s, precision == "fp8"
        saved_f = 6 * inside + compute.cast_s(131072.0, 768.0, at)
        saved_b = 10 * inside + compute.cast_s(131072.0, 1536.0, at)
        assert plain.forward_s - fused.forward_s == pytest.approx(narrow * saved_f, rel=1e-6, abs=1e-12)
        assert plain.backward_s - fused.backward_s == pytest.approx(narrow * saved_b, rel=1e-6, abs=1e-12)


def test_of_latents_only_the_rotary_part_is_turned():
    """DeepSeek-V3, a token and layer: 128 heads, of whose 192 values 64 are turned in place (4 bytes), and
    128 of keys and 128 of values read and written beside a rotary key of 64 that is written (4 and 2)."""
    size = shape(catalog.model("deepseek-v3"))
    forward, _ = compute.streamed_bytes(size, 1.0, 1.0, 0.0)
    assert forward - 20 * 7168 == pytest.approx(128 * (4 * 64 + 4 * (128 + 128) + 2 * 64))


def test_a_state_space_also_moves_its_convolution_and_its_norm():
    """Mamba-2 of Nemotron 3 Nano: 6,144 values convolved (read and written, 4 bytes; 10 backward, with the
    convolution again) and 4,096 normed behind a gate (6 and 10), in 23 of 52 layers."""
    size = shape(catalog.model("nemotron-3-nano"))
    wanted = [23 / 52 * (conv * 6144 + norm * 4096) for conv, norm in ((4, 6), (10, 10))]
    assert size.beside_bytes == pytest.approx(wanted)


def test_recomputing_attention_does_not_repeat_a_state_space():
    """Of Nano's 52 layers six attend."""
    size, at = shape(catalog.model("nemotron-3-nano")), matmul.chip(catalog.gpu("h100-sxm"))
    found = compute.again(size, 8192.0, 8192.0, 1.0, 1.0, 8.0, 1.0, 1.0, True, ("core_attn",), at)
    each = compute.attention_by_kind(size, 8192.0, 8192.0, 1.0, at)
    [attends] = [of_kind for kind, of_kind in zip(size.attended, each) if kind.mixer is None]
    assert found.again_s == pytest.approx(6 / 52 * attends)


def test_bytes_of_gpt_oss_s_operators_by_hand():
    """Forward: a bias of 2,880 values weighted (4 bytes written), added (6 read, 4 written), joined (4 and 4)
    and rounded (4 and 2) are 28 bytes each; two halves of 2,880 clamped (4 each) and joined (4 and 4) are 16.
    Backward 36 and 20. A model without biases has none of it."""
    oss, qwen = (shape(catalog.model(key)) for key in ("gpt-oss-120b", "qwen3-30b-a3b"))
    assert compute.operator_bytes(oss, 2880.0, 2880.0) == (44 * 2880, 56 * 2880)
    assert compute.operator_bytes(qwen, 2048.0, 768.0) == (0.0, 0.0)


def test_operators_and_sorting_cost_their_bytes():
    """gpt-oss on B200, 16,384 tokens, eight expert ranks: 65,536 rows, a stream of 6 TB/s."""
    oss, at = shape(catalog.model("gpt-oss-120b")), matmul.chip(catalog.gpu("b200"))

    def layer(ep, **how):
        return compute.layer(oss, 16384.0, 4096.0, 1.0, 1.0, ep, 1.0, 1.0, True, True, at, **how)

    plain, operators, sort = layer(8.0), layer(8.0, how="operators"), layer(8.0, sorts_rows=True)
    row_s = 65536 * 2880 / at.memory_bytes_per_s
    assert operators.forward_s - plain.forward_s == pytest.approx(44 * row_s)
    assert operators.backward_s - plain.backward_s == pytest.approx(56 * row_s)
    for part in ("forward_s", "backward_s"):
        assert getattr(sort, part) - getattr(plain, part) == pytest.approx(8 * row_s)
    assert layer(128.0, sorts_rows=True) == layer(128.0)  # one expert a rank: nothing to sort


def test_merging_two_hidden_states_is_a_product_and_backward_two_of_its_size():
    """2h × h for each token: 4h² FLOPs forward; backward the gradients of the input and of the weight."""
    size, at = shape(catalog.model("deepseek-v3")), matmul.chip(catalog.gpu("h100-sxm"))
    forward_s, backward_s = compute.joined(size, 65536.0, 1.0, at)
    assert 0.5 < 4 * 7168**2 * 65536 / 989e12 / forward_s < 1.0
    assert backward_s / forward_s == pytest.approx(2.0, rel=0.15)


@pytest.mark.parametrize(
    ("key", "share"), [("llama3-8b", 1 / 2), ("mixtral-8x7b", 0.0), ("deepseek-v3", 3 / (61 + 3))]
)
def test_a_recomputed_mlp_repeats_its_pair_of_a_layer_s_collectives(key, share):
    """One of two pairs in a dense layer, none in a layer of experts, which has but the attention's: in
    DeepSeek-V3 three of 61 + 3."""
    size, at = shape(catalog.model(key)), matmul.chip(catalog.gpu("h100-sxm"))
    found = compute.again(size, 4096.0, 4096.0, 8.0, 8.0, 1.0, 1.0, 1.0, True, ("mlp",), at)
    assert found.tensor == pytest.approx(share)


def test_experts_one_by_one_are_dense_layers():
    """Grok's, one of eight on a GPU with a quarter of its width, 8,192 rows: the products of a dense layer of
    that width, in 8 bits as in 16. Beside them 6 bytes of each of 8,192 values inside, and 27 of each value
    of the 2,048 rows that the GPU sends."""
    sizes = dict(layers=64, hidden=6144, heads=48, kv_heads=8, head_dim=128, ffn=0, vocab=131072)
    experts = dict(experts=8, top_k=2, expert_ffn=32768)
    grok = shape(described("grok", "Grok", **sizes, **experts))
    for precision in ("bf16", "fp8"):
        at = matmul.chip(catalog.gpu("h100-sxm"), precision)
        how = (grok, 4096.0, 8192.0, 4.0, 4.0, 8.0, 4.0, 1.0, True, True, at)
        found_s = compute.layer(*how, how="one-by-one").experts_s
        products_s = [
            products.trained_product_s(8192.0, k, n, 8.0, at.product)[0]
            for k, n in ((6144.0, 16384.0), (8192.0, 6144.0))
        ]
        casts_s = compute.cast_s(8192.0, 6144.0, at) + compute.cast_s(8192.0, 8192.0, at)
        moved = 8192 * 6 * 8192 + 2048 * 27 * 6144
        assert found_s == pytest.approx(sum(products_s) + casts_s + moved / at.memory_bytes_per_s)
