"""A test of many cases fails if one of them does, and names each that did."""

import pytest

from tests.cases import in_one_test


@in_one_test("a", [1, 2, 3, 4])
def uneven(a):
    assert a % 2 == 1, f"{a} is even"


def test_each_case_that_fails_is_named_and_the_last_one_is_tried():
    with pytest.raises(AssertionError, match=r"2 of 4 cases:\n\[2\] (.|\n)*\[4\] .*4 is even") as told:
        uneven()
    assert "2 is even" in str(told.value.__cause__)


def test_pairs_ids_and_what_fails_otherwise():
    tried = []

    @in_one_test("a, b", [(1, "x"), (2, "y")], ids=["one", "two"])
    @in_one_test("c", [3, 4], ids=lambda c: f"c{c}")
    def test(a, b, c, fixture):
        tried.append((a, b, c, fixture))
        if c == 4 and a == 1:
            pytest.fail("no")
        if c == 3 and a == 2:
            pytest.skip("a case that is left out would not be seen")

    with pytest.raises(AssertionError) as told:
        test(fixture=5)
    assert tried == [(1, "x", 3, 5), (1, "x", 4, 5), (2, "y", 3, 5), (2, "y", 4, 5)]
    assert "[one] AssertionError: 1 of 2 cases:\n[c4] Failed: no" in str(told.value)
    assert "[two] AssertionError: 1 of 2 cases:\n[c3] Skipped: a case" in str(told.value)


def test_a_test_without_a_case_is_none():
    with pytest.raises(AssertionError, match="no case"):
        in_one_test("a", [])


@in_one_test("word", ["its own"])
def test_a_fixture_comes_beside_a_case(word, tmp_path):
    assert word == "its own" and tmp_path.is_dir()
