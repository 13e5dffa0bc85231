"""Tensor parallel executed against the dense product, its bytes and times by hand, and bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.executed import tensor
from engine.mechanism import interconnect
from tests.cases import in_one_test

NET = interconnect.wires(catalog.gpu("h100-sxm"))


@settings(max_examples=40, deadline=None)
@given(
    ranks=st.sampled_from([1, 2, 4, 8]),
    order=st.sampled_from(tensor.ORDERS),
    tokens=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_the_cut_product_is_the_dense_one(ranks, order, tokens, seed):
    split = tensor.split_product(*tensor.matrices(tokens, 8, 16, seed), ranks, order)
    assert split.max_difference <= 1e-12 * max(1.0, np.abs(split.dense).max())


def test_small_numbers_by_hand():
    """f = ReLU, X = [1 2], A = [[1 -1] [0 1]], B = [[1] [3]]: X·A = [1 1], Y = 4 = 1 (rank 0) + 3 (rank
    1)."""
    split = tensor.split_product([[1, 2]], [[1, -1], [0, 1]], [[1], [3]], 2, f=lambda v: np.maximum(v, 0))
    assert [part.item() for part in split.partial] == [1, 3] and split.result.item() == 4


def test_f_of_the_parts_is_not_f_of_the_sum():
    """Why row first must be joined before f: X·A = [1 1] is [1 -1] + [0 2], whose ReLUs sum to [1 2]."""
    relu = lambda v: np.maximum(v, 0)
    x, a = np.array([[1.0, 2.0]]), np.array([[1.0, -1.0], [0.0, 1.0]])
    parts = [x[:, i : i + 1] @ a[i : i + 1] for i in (0, 1)]
    assert np.array_equal(sum(map(relu, parts)), [[1, 2]]) and np.array_equal(relu(sum(parts)), [[1, 1]])


def test_the_example_is_worked_with_one_digit_in_whatever_way_it_is_cut():
    """X·A = [-3 1 1 1; -2 4 1 -3] by hand, ReLU, times B; no difference, since whole numbers add exactly."""
    for order in tensor.ORDERS:
        for ranks in (1, 2, 4):
            split = tensor.split_product(*tensor.EXAMPLE, ranks, order, tensor.relu)
            assert split.result.tolist() == [[-4, 1, -2, -1], [-5, -1, 3, 2]] and split.last_places == 0
            assert all(np.abs(piece).max() <= 9 for piece in (*split.products, *split.inner, *split.partial))


def test_what_each_rank_held():
    x, a, b = (np.array(matrix) for matrix in tensor.EXAMPLE)
    right, wrong = (
        tensor.held(tensor.split_product(x, a, b, 2, order, tensor.relu), 4) for order in tensor.ORDERS
    )
    assert right.products_held[:, 0].tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [0] * 4, [0] * 4]
    assert (right.products.sum(axis=0) == x @ a).all() and (wrong.products.sum(axis=0) == x @ a).all()
    assert (wrong.products[0] == x[:, :2] @ a[:2]).all() and wrong.products_held[:2].all()
    assert (right.partial[1] == np.maximum(x @ a, 0)[:, 2:] @ b[2:]).all() and right.partial_held[:2].all()
    assert wrong.partial_held[:, 0].tolist() == right.products_held[:, 0].tolist()
    for held in (right, wrong):
        assert (held.inner == np.maximum(x @ a, 0)).all() and (held.partial.sum(axis=0) == held.dense).all()
        assert not held.products_held[2:].any() and not held.partial_held[2:].any()


def test_no_room_for_the_ranks_is_refused():
    with pytest.raises(ValueError, match="ranks"):
        tensor.held(tensor.split_product(*tensor.EXAMPLE, 4), 2)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_bytes_sent_equal_the_formulas(ranks):
    pieces = tensor.matrices(4, 8, 16)
    right, wrong = (tensor.split_product(*pieces, ranks, order) for order in tensor.ORDERS)
    assert right.sent_bytes == pytest.approx(np.full(ranks, tensor.column_row_bytes(4, 8, ranks)))
    assert wrong.sent_bytes == pytest.approx(np.full(ranks, tensor.row_column_bytes(4, 8, 16, ranks)))
    assert [len(right.joins), len(wrong.joins)] == [1, 2]


def test_the_wrong_order_sends_four_and_a_half_times_as_much():
    assert tensor.row_column_bytes(1e4, 8192, 4 * 8192, 8) / tensor.column_row_bytes(
        1e4, 8192, 8
    ) == pytest.approx(4.5)


def test_a_gated_mlp_would_have_to_join_two_products_before_f():
    """F = 3.5h and three matrices: (2·2·3.5 + 1) / 2 = 7.5 times as much."""
    wrong = tensor.row_column_bytes(1e4, 8192, 28672, 8, matrices_of_mlp=3)
    assert wrong / tensor.column_row_bytes(1e4, 8192, 8) == pytest.approx(7.5)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_attention_with_whole_heads(ranks):
    draw = np.random.default_rng(1).standard_normal
    split = tensor.split_attention(draw((5, 8)), *(draw((8, 8)) for _ in range(4)), heads=4, ranks=ranks)
    assert split.max_difference < 1e-12
    assert split.sent_bytes == pytest.approx(np.full(ranks, tensor.column_row_bytes(5, 8, ranks)))


def test_attention_sees_no_later_token():
    draw = np.random.default_rng(1).standard_normal
    x, weights = draw((5, 8)), [draw((8, 8)) for _ in range(3)]
    later = x.copy()
    later[3:] += 1
    assert np.array_equal(tensor.attention(x, *weights, 2)[:3], tensor.attention(later, *weights, 2)[:3])
    assert tensor.attention(x, *weights, 2)[0] == pytest.approx(x[0] @ weights[2]), (
        "the first token sees itself alone"
    )


# -- time ----------------------------------------------------------------------------------------------------
def test_how_many_ranks_by_hand():
    """F = 28,672, bf16 H100: 1 + 28,672·450e9/989e12 = 14.0 on NVLink; 1 + 28,672·50e9/989e12 = 2.45 on a
    NIC."""
    assert tensor.largest_useful_ranks(28672, 450e9, 989e12) == pytest.approx(14.05, abs=0.01)
    assert tensor.largest_useful_ranks(28672, 50e9, 989e12) == pytest.approx(2.45, abs=0.01)


def test_at_that_many_ranks_arithmetic_and_traffic_are_equal():
    ranks = tensor.largest_useful_ranks(28672, 450e9, 989e12)
    arithmetic_s = 4 * 1e4 * 8192 * 28672 / ranks / 989e12
    assert arithmetic_s == pytest.approx(2 * (ranks - 1) / ranks * 2 * 1e4 * 8192 / 450e9)


def test_a_layers_flops_are_six_a_parameter():
    """12·h² parameters with F = 4h: 72·T·h², and 6·T·s·h for causal attention (Megatron's 72·(s/6h)/2)."""
    assert tensor.layer_flops(1e4, 4096, 16384, 2048) == pytest.approx(
        72 * 1e4 * 4096**2 * (1 + 2048 / (12 * 4096))
    )


def test_grouped_keys_take_an_eighth_of_two_of_the_four_matrices():
    """Llama 3 70B: 6·8,192·(2.25·8,192² + 3·8,192·28,672) + 6·8,192³ = 45.4 TFLOP."""
    assert tensor.layer_flops(8192, 8192, 28672, 8192, 3, 1 / 8) == pytest.approx(45.35e12, rel=1e-3)


def test_worthwhile_is_the_last_number_of_ranks_that_sends_no_longer_than_it_computes():
    ranks = np.array([1.0, 2.0, 4.0, 8.0])
    assert tensor.worthwhile_ranks(ranks, 8 / ranks, np.array([0.0, 1.0, 2.0, 3.0])) == 4
    assert tensor.worthwhile_ranks(ranks, 8 / ranks, np.array([0.0, 9.0, 9.0, 9.0])) == 1


def test_one_rank_pays_no_traffic_and_beyond_the_node_it_is_more():
    """Between two nodes each NIC carries an eighth of the buffer once, which NVLink's share inside hides;
    between four it carries it twice."""
    one, eight, sixteen, more = (
        tensor.layer_all_reduces_s(8192.0, 8192.0, float(t), NET) for t in (1, 8, 16, 32)
    )
    assert one == 0 and eight < sixteen and more > 1.3 * eight
    assert tensor.layer_s(8192.0, 8192.0, 28672.0, 4096.0, 8.0, 4e14, NET) == pytest.approx(
        tensor.layer_compute_s(8192.0, 8192.0, 28672.0, 4096.0, 1.0, 4e14) / 8 + eight
    )


def test_a_layer_by_its_ratios():
    assert tensor.layer(8192, 3.5, 2, 4096) == (8192, 8192, 28672, 4096, 64)


def test_efficiency_is_one_ranks_time_over_t_times_that_of_t():
    compute_s, sent_s = 8e-3 / 8, 1e-3
    assert tensor.efficiency(compute_s, sent_s) == 0.5 == 8e-3 / (8 * (compute_s + sent_s))


def test_which_ranks_get_whole_heads():
    assert [float(tensor.legal_ranks(64, 8, t)) for t in (1, 2, 3, 8, 16, 64, 128)] == [1, 1, 0, 1, 1, 1, 0]


# -- bad input -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (dict(ranks=3), "divide"),
        (dict(ranks=0), "ranks"),
        (dict(order="x"), "order"),
        (dict(b=np.ones((3, 3))), "multiplied"),
    ],
)
def test_bad_products_are_refused(change, said):
    x, a, b = tensor.matrices()
    with pytest.raises(ValueError, match=said):
        tensor.split_product(**{**dict(x=x, a=a, b=b, ranks=2), **change})


def test_heads_must_divide():
    x, w = np.ones((2, 8)), np.ones((8, 8))
    with pytest.raises(ValueError, match="4 heads"):
        tensor.split_attention(x, w, w, w, w, heads=4, ranks=8)


GOOD = dict(tokens=1e4, hidden=4096, ffn=16384, seq=2048, ranks=8, flops_per_s=4e14)


@in_one_test("bad", [float("nan"), float("inf"), -1, "seven"], ids=str)
@in_one_test("name", GOOD)
def test_bad_numbers_are_refused(name, bad):
    with pytest.raises(ValueError, match="must be"):
        tensor.layer_s(**{**GOOD, name: bad}, net=NET)


def test_gelu_is_the_value_times_the_normal_distribution():
    """x · Φ(x), which the tanh form meets within 0.0005 (Hendrycks and Gimpel, section 2)."""
    values = np.linspace(-4, 4, 33)
    exact = [x * 0.5 * (1 + math.erf(x / 2**0.5)) for x in values]
    assert tensor.gelu(values) == pytest.approx(exact, abs=5e-4)


@in_one_test("name", ["tokens", "hidden", "ffn", "ranks", "value_bytes", "matrices_of_mlp"])
@in_one_test("bad", [0, -1, float("nan"), "seven"], ids=str)
def test_bytes_of_the_other_order_refuse_bad_numbers(name, bad):
    good = dict(tokens=8, hidden=8, ffn=32, ranks=2, value_bytes=2, matrices_of_mlp=2)
    with pytest.raises(ValueError, match=name):
        tensor.row_column_bytes(**good | {name: bad})
