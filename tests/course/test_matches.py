import re

import pytest

from course import numbers
from course.matches import there


def test_a_match_is_given_back():
    assert there(re.search("b+", "abba"), "a b")[0] == "bb"


def test_a_missing_match_is_named():
    with pytest.raises(ValueError, match=r"^the heading is missing$"):
        there(re.search("^#", "no heading"), "the heading")


def test_a_number_without_an_expression_says_so():
    with pytest.raises(ValueError, match=r"^an expression in '' is missing$"):
        numbers.form("")
