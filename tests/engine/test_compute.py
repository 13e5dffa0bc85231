"""The kernels between the products, counted by hand; products and whole layers are held in test_layout.py and test_matmul.py."""

import pytest

from engine import catalog, compute, matmul
from engine.shape import shape


def test_bytes_between_the_products_of_gpt_2_by_hand():
    """h = 768, 12 heads of 64, 3,072 wide, dropout, one activation, learned positions: no rotation. Forward: two norms
    4h, two additions 6h and a mask of 1h each with dropout: 4h + 4h + 12h + 2h = 22h; queries, keys and values cut out:
    4 · 36 · 64; GeLU 4 · 3072."""
    size = shape(catalog.model("gpt2"))
    forward, backward = compute.streamed_bytes(size, 1.0, 1.0, 3072.0)
    assert forward == 22 * 768 + 4 * 36 * 64 + 4 * 3072
    assert backward == 42 * 768 + 4 * 36 * 64 + 6 * 3072


def test_bytes_between_the_products_of_llama_3_8b_by_hand():
    """h = 4096, 32 query and 8 key heads of 128, 14,336 wide and gated, rotation, no dropout; shared by two tensor ranks,
    the hidden state too: 20h/2 + (4 · 48 + 4 · 40) · 128/2 + 6 · 14336/2."""
    size = shape(catalog.model("llama3-8b"))
    forward, backward = compute.streamed_bytes(size, 2.0, 2.0, 14336.0)
    assert forward == pytest.approx((20 * 4096 + (4 * 48 + 4 * 40) * 128 + 6 * 14336) / 2)
    assert backward == pytest.approx((32 * 4096 + (4 * 48 + 4 * 40) * 128 + 10 * 14336) / 2)


@pytest.mark.parametrize("wrong", ["tokens", "seq", "imbalance"])
def test_a_layer_takes_only_what_there_is(wrong):
    amounts = {"tokens": 4096.0, "seq": 4096.0, "imbalance": 1.0} | {wrong: 0.0}
    with pytest.raises(ValueError, match=wrong):
        compute.layer(shape(catalog.model("gpt2")), amounts["tokens"], amounts["seq"], 1, 1, 1, 1, amounts["imbalance"], True, True,
                      matmul.chip(catalog.gpu("h100-sxm")))
