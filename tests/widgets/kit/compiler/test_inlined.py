"""What is read once stands where it is read, and nothing changes its value by that."""

import pytest

from tests.cases import in_one_test
from widgets.kit.compiler.inlined import LONGEST, inlined, is_whole, numbered


def test_what_is_read_once_goes_where_it_is_read():
    steps = [("e1", "(a1+a2)"), ("e2", "(2*e1)"), ("e3", "(e2-e2)")]
    assert inlined(steps, {"e3"}) == [("e2", "(2*(a1+a2))"), ("e3", "(e2-e2)")]


def test_what_others_read_keeps_its_name():
    assert inlined([("e1", "(a1+a2)"), ("e2", "(2*e1)")], {"e1", "e2"}) == [
        ("e1", "(a1+a2)"),
        ("e2", "(2*e1)"),
    ]


def test_a_choice_is_not_torn_apart():
    assert inlined([("e1", "c.x?1:2"), ("e2", "e1+3")], {"e2"}) == [("e2", "(c.x?1:2)+3")]


@pytest.mark.parametrize("code", ["stop(v1,[1])", "v1.map((_,i)=>v2[i])", "[1,2]", "{}"])
def test_what_may_end_or_makes_something_new_is_not_moved(code):
    steps = [("v3", code), ("v4", "f(v3)")]
    assert inlined(steps, {"v4"}) == steps


def test_a_line_does_not_grow_without_end():
    chain = [("e0", "(a1+1)"), *((f"e{n}", f"(e{n - 1}+a{n})") for n in range(1, 900))]
    lines = inlined(chain, {"e899"})
    assert 10 < len(lines) < 30 and max(len(code) for _, code in lines) < LONGEST + 20


@in_one_test("code", ["(a+b)", "f(a)", "Math.max(a,b)", "x", "1.5", "v1[i]", "((a)+(b))", "f(g(a),[1])"])
def test_these_need_no_parentheses(code):
    assert is_whole(code)


@in_one_test("code", ["a+b", "(a)+(b)", "f(a)+1", "-a", "a?b:c", "f(a)[0]+1", "!a"])
def test_these_do(code):
    assert not is_whole(code)


def test_steps_are_numbered_as_they_come_and_texts_stay():
    code = 'v70=f(v7,e900);v7="v70 of \\"v7\\"";s12.e3=v70+columns7.v7;'
    assert numbered(code) == 'v0=f(v1,e2);v1="v70 of \\"v7\\"";s3.e3=v0+columns7.v7;'
