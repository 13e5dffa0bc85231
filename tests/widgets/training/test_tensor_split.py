"""tensor_split by hand: who holds which numbers after each step, what joins them, and what it costs."""

import numpy as np
import pytest

from engine.executed import tensor
from tests.widgets.reading import Reader
from widgets.training.tensor_split import MOST, TensorSplit

X, A, B = (np.array(matrix, dtype=float) for matrix in tensor.EXAMPLE)
F = np.maximum(X @ A, 0)
Y = [["−4", "1", "−2", "−1"], ["−5", "−1", "3", "2"]]
ROWS_FIRST = {"order": "row-column"}


shown = Reader(TensorSplit).shown


def blocks(found, name):
    """[rank, row, column]: the numbers that are in sight, None for the others."""
    part = found["parts"][name]
    texts = [text if seen > 0.5 else None for text, seen in zip(part["text"], part["seen"])]
    return np.reshape(np.array(texts, dtype=object), (-1, 2, 4)).tolist()


def written(values):
    return [[f"{value:.0f}".replace("-", "−") for value in row] for row in values]


NONE = [[None] * 4] * 2


# -- what the ranks hold -------------------------------------------------------------------------------------
def test_before_anything_is_cut_only_one_gpu_has_a_product():
    found = shown(play=0)
    assert all(
        block == NONE for name in ("inputs", "products", "partial", "joined") for block in blocks(found, name)
    )
    assert blocks(found, "dense") == [Y]


def test_by_columns_every_rank_has_all_of_x_and_its_own_columns_of_the_product():
    found = shown(play=3)
    assert blocks(found, "inputs") == [written(X)] * 2 + [NONE] * 2
    assert blocks(found, "products")[:2] == [
        [row[:2] + [None] * 2 for row in written(F)],
        [[None] * 2 + row[2:] for row in written(F)],
    ]
    assert blocks(found, "partial") == [NONE] * MOST and blocks(found, "joined") == [NONE]


def test_f_is_applied_in_the_third_step_and_not_before():
    assert blocks(shown(play=2), "products")[0] == [["−3", "1", None, None], ["−2", "4", None, None]]
    assert blocks(shown(play=3), "products")[0] == [["0", "1", None, None], ["0", "4", None, None]]


@pytest.mark.parametrize("count", [2, 4])
def test_by_columns_the_parts_are_added_once(count):
    found = shown(ranks=count)
    each = np.split(np.arange(4), count)
    assert blocks(found, "partial") == [written(F[:, own] @ B[own]) for own in each] + [NONE] * (MOST - count)
    assert blocks(found, "joined") == [Y] and blocks(found, "inner_joined") == [NONE]


@pytest.mark.parametrize("count", [2, 4])
def test_by_rows_the_parts_are_added_before_f_and_the_columns_gathered(count):
    found = shown(ranks=count, **ROWS_FIRST)
    each = np.split(np.arange(4), count)
    own_of_x = [
        [[value if column in own else None for column, value in enumerate(row)] for row in written(X)]
        for own in each
    ]
    assert blocks(found, "inputs") == own_of_x + [NONE] * (MOST - count)
    assert blocks(found, "products") == [written(X[:, own] @ A[own]) for own in each] + [NONE] * (
        MOST - count
    )
    assert blocks(found, "inner_joined") == [written(F)] and blocks(found, "joined") == [Y]
    assert [[value is not None for value in block[0]] for block in blocks(found, "partial")[:count]] == [
        [column in own for column in range(4)] for own in each
    ]


def test_what_is_joined_travels_in_the_step_that_joins_it():
    def moving(name, **texts):
        return bool(np.any(shown(**texts)["parts"][name]["seen"]))

    assert moving("partial_moving", play=4.5) and not moving("products_moving", play=2.5)
    assert moving("products_moving", play=2.5, **ROWS_FIRST) and not moving(
        "products_moving", play=3, **ROWS_FIRST
    )


def test_products_stand_under_the_columns_that_made_them():
    parts = shown(ranks=4)["parts"]
    for weights, made in (("weights_a", "products"), ("weights_b", "partial")):
        assert np.allclose(parts[weights]["left"][:4], parts[made]["left"][:4])


@pytest.mark.parametrize(
    ("order", "rows", "columns"),
    [("column-row", "weights_b", "weights_a"), ("row-column", "weights_a", "weights_b")],
)
def test_each_ranks_pieces_have_one_shade(order, rows, columns):
    parts = shown(ranks=4, order=order)["parts"]
    shades = parts[columns]["shade"][:4]
    assert (np.diff(shades) > 0).all() and np.allclose(parts[columns]["shade"], np.tile(shades, 4))
    assert np.allclose(parts[rows]["shade"], np.repeat(shades, 4))


# -- equal, and at what cost ---------------------------------------------------------------------------------
def test_whole_numbers_are_equal_in_every_bit_and_gelus_within_the_last_places():
    assert shown()["readouts"]["off_by"]["text"] == "0"
    for order in ("column-row", "row-column"):
        for count in (2, 4):
            off = shown(function="gelu", order=order, ranks=count)["readouts"]["off_by"]["text"]
            assert (
                off == "0" or float(off.split()[0]) <= 4
            )  # each of four additions rounds by at most half a place


def test_bytes_by_hand():
    """GPT-3: h = 12,288, F = 4h. 2·(1/2)·2,048·h·2 bytes = 50.3 MB; (1/2)·2,048·9h·2 = 226 MB."""
    cost = shown()["parts"]["cost"]
    assert cost["sent_bytes"] == pytest.approx([2048 * 12288 * 2, 2048 * 9 * 12288], rel=1e-9)
    assert shown(**ROWS_FIRST)["readouts"]["against"]["text"] == "4.5×"


def test_a_gated_mlp_pays_more_for_the_wrong_order():
    assert shown(model="llama3-70b", **ROWS_FIRST)["readouts"]["against"]["text"] == "7.5×"


@pytest.mark.parametrize(("texts", "met"), [({}, set()), (ROWS_FIRST, {"exchanges_twice"})])
def test_the_wrong_order_is_named(texts, met):
    found = shown(**texts)
    assert {name for name, regime in found["regimes"].items() if regime["met"]} == met
    assert found["readouts"]["sends"]["alarm"] == bool(met)
