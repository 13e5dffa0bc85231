"""What a kernel's picture shows of an address beyond an array: what exists is the program's, and only what
does not is wrong."""

from engine import puzzles
from engine.puzzles import kernel_add, kernel_product, kernel_softmax


def drawn(name, code):
    """Line -> boxes of the picture that this code gets."""
    found = puzzles.tried(name, code, "run")
    assert not found["right"]
    return dict(found["drawn"]["picture"]["lines"])


def test_a_load_beyond_a_vector_is_wrong_only_where_nothing_is():
    """Program 3 wants 48 to 63 of 50: 48 and 49 are there, the other fourteen are not."""
    lines = drawn(
        "kernel_add", kernel_add.SOLUTION.replace("x_ptr + offsets, mask=inside", "x_ptr + offsets")
    )
    assert lines["x"][-2:] == [[48, 50, "3", "compute"], [50, 64, "outside", "wrong"]]


def test_a_store_beyond_a_vector_is_wrong_only_where_nothing_is():
    code = kernel_add.SOLUTION.replace("x + y, mask=inside", "tl.where(inside, x + y, 0.0)").replace(
        "mask=inside)", "mask=inside, other=0.0)"
    )
    lines = drawn("kernel_add", code)
    assert lines["z"][-2:] == [[48, 50, "3", "compute"], [50, 64, "outside", "wrong"]]
    assert not [box for name in ("x", "y") for box in lines[name] if box[3] == "wrong"]


def test_below_a_matrix_a_line_of_its_own_is_wrong():
    """Program 4 of 5 rows of 13 loads a block of 16: elements 65 to 67, where a sixth row would begin."""
    code = kernel_softmax.SOLUTION.replace(', mask=inside, other=-float("inf")', "")
    lines = drawn("kernel_softmax", code)
    assert lines["x, outside"] == [[0, 3, "outside", "wrong"]]
    assert [box[3] for name, boxes in lines.items() for box in boxes].count("wrong") == 1


def test_before_an_array_a_line_of_its_own_is_wrong():
    code = kernel_add.SOLUTION.replace("tl.program_id(0) * BLOCK +", "-2 +")
    lines = drawn("kernel_add", code)
    assert lines["x, outside"] == [[0, 2, "outside", "wrong"]]
    assert lines["x"][0] == [0, 14, "0", "hbm"]


def test_a_product_without_masks_keeps_what_exists():
    start = kernel_product.START
    lines = drawn("kernel_product", start)
    assert [name for name, boxes in lines.items() for box in boxes if box[3] == "wrong"] == ["b, outside"]
