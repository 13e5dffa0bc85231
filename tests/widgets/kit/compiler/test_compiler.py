"""Python run on symbols and written out as JavaScript gives what Python gives on numbers; the rest is refused
in words."""

import json
import math
import re
import sys
from bisect import bisect_left

import numpy as np
import pytest

from engine.base import ops
from engine.base.program import full, program, zeros
from engine.base.sweep import sweep
from tests.cases import in_one_test
from widgets.kit.compiler import writer
from widgets.kit.compiler.fusion import MOST
from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.refusal import NotTranslatable
from widgets.kit.compiler.sweeps import FEW
from widgets.kit.compiler.symbols import control, lookup, merge, over
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.text import choose, lines, phrase, select, show, show_in
from widgets.kit.widget import Widget, compile_widget, document, hint, once, part, readout, regime

RUN = """async ([source, states]) => {
  const helpers = await import("/assets/widget/numbers.js");
  const compute = new Function(...Object.keys(helpers), `return ${source}`)(...Object.values(helpers))(null);
  const plain = (key, value) => ArrayBuffer.isView(value) ? [...value] : value;
  return JSON.stringify(states.map(compute), plain);
}"""
STATES = [
    {"x": x, "y": y, "n": n, "on": on}
    for x, y, n, on in [
        (1.0, 2.0, 0, 0),
        (2.5, 0.75, 1, 1),
        (3.5, -2.0, 2, 1),
        (0.5, 7.0, 2, 0),
        (12.25, -0.125, 1, 1),
        (2.0, 2.0, 0, 1),
    ]
]
TABLE = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])
GRID = np.arange(12.0).reshape(3, 4)


class Thing:
    """A catalogue entry, as far as a formula sees one."""

    def __init__(self, name, size, sizes):
        self.name, self.size, self.sizes, self.inner = name, size, np.array(sizes), None
        self.pair = tuple(sizes)

    def doubled(self, extra):
        return self.size * 2 + extra


THINGS = [Thing("one", 1.5, [1, 2]), Thing("two", 2.5, [3, 4]), Thing("three", 4.0, [5, 6])]


def row(x, y):
    """A column of numbers that depends on both."""
    return np.stack([x, y, x + y, x * y])


# name -> function of (x, y, n: an index of three, on: a truth); the same code runs on numbers and on symbols
NUMBERS = {
    "add and subtract": lambda x, y, n, on: x + y - 3 + (2 - x) - (-y),
    "multiply and divide": lambda x, y, n, on: x * y / 3 / (1 / x),
    "power": lambda x, y, n, on: x**3 + x**2 + x**0.5 + 2**y + np.power(x, y),
    "floor division and remainder": lambda x, y, n, on: x // 0.7 + y // 0.7 + x % 3 + y % 3 + 7 % x,
    "negative and absolute": lambda x, y, n, on: abs(y) - -x + np.absolute(y) + np.sign(y),
    "roots and logarithms": lambda x, y, n, on: (
        np.sqrt(x) + np.log(x) + np.log2(x) + np.log10(x) + np.log1p(x) + np.expm1(y)
    ),
    "exponential": lambda x, y, n, on: np.exp(y) + np.square(y) + np.reciprocal(x),
    "rounding": lambda x, y, n, on: np.stack(
        [np.ceil(y), np.floor(y), np.rint(x), np.rint(y), np.rint(x + 1)]
    ),
    "waves": lambda x, y, n, on: np.sin(x) * np.cos(y) + np.tanh(y) + np.hypot(x, y) + np.arctan2(y, x),
    "least and most": lambda x, y, n, on: np.minimum(x, y) + 10 * np.maximum(x, 3.0) + np.clip(y, -1, 1),
    "comparisons": lambda x, y, n, on: np.stack([x < y, x <= y, x > y, x >= y, x == y, x != y]) * 1.0,
    "logic": lambda x, y, n, on: np.where((x > 1) & (y > 0) | on, 1.0, 0.0) + np.where(~(x > 1), 5.0, 0.0),
    "logical functions": lambda x, y, n, on: np.where(
        np.logical_and(x > 1, on) | np.logical_or(y > 5, x > 9), 2.0, 1.0
    ),
    "where": lambda x, y, n, on: np.where(x > y, x, y) + np.where(on, 1, row(x, y)),
    "finite": lambda x, y, n, on: np.where(np.isfinite(x), x, 0.0),
    "broadcasting": lambda x, y, n, on: row(x, y)[:, None] * TABLE[None, :] + x,
    "broadcasting in the middle": lambda x, y, n, on: (
        (row(x, y)[:, None, None] + TABLE[None, :3, None] * row(y, x)[None, None, :])
        * (row(x, 1.0)[:3, None] * np.stack([x]))[None, :, :]
        + np.stack([y])[None, None, :]
        + (GRID * x).T[:, :, None]
    ),
    "loops with a whole column between": lambda x, y, n, on: (
        (2 * row(x, y) + 1) / np.sum(row(x, y) - 1) + np.cumsum(row(x, y) * 3)
    ),
    "more steps than one loop takes": lambda x, y, n, on: np.sum(
        np.stack([(row(x, y) * 2) / k for k in range(1, 450)]), axis=0
    ),
    "truths in a loop": lambda x, y, n, on: (
        2 * (row(x, y) > 1) + ((row(x, y) > 1) == (row(y, x) > 2)) + np.maximum(row(x, y) < 3, 0.5)
    ),
    "constants": lambda x, y, n, on: x * TABLE + GRID[1, 2],
    "sums": lambda x, y, n, on: (
        np.sum(row(x, y)) + row(x, y).sum() + np.mean(row(x, y)) + np.prod(row(x, 2.0))
    ),
    "sums along an axis": lambda x, y, n, on: np.sum(GRID * x, axis=0),
    "sums along the last axis": lambda x, y, n, on: np.sum(GRID * x + y, axis=-1) + np.mean(GRID * y, axis=1),
    "kept dimensions": lambda x, y, n, on: GRID * x / np.sum(GRID * x, axis=1, keepdims=True),
    "extremes along an axis": lambda x, y, n, on: (
        np.max(GRID * y, axis=1) + np.min(GRID * y, axis=1) + row(x, y).max()
    ),
    "any and all": lambda x, y, n, on: (
        np.where(np.any(row(x, y) > 8), 1.0, 0.0) + np.where(np.all(row(x, y) > 0), 2.0, 0.0)
    ),
    "places of extremes": lambda x, y, n, on: np.argmax(row(x, y)) + 10 * np.argmin(row(x, y)),
    "the first of equals": lambda x, y, n, on: np.argmax(np.stack([x, x, x])) + np.argmin(np.stack([y, y])),
    "running sums": lambda x, y, n, on: np.cumsum(row(x, y)),
    "running sums along an axis": lambda x, y, n, on: (
        np.cumsum(GRID * x, axis=0)[2] + np.cumsum(GRID * x, axis=1)[1]
    ),
    "joining": lambda x, y, n, on: np.concatenate([row(x, y), TABLE, row(y, x)[:2]]),
    "shapes": lambda x, y, n, on: np.transpose(np.reshape(GRID * x, (4, 3)))[1] + np.ravel((GRID * y).T)[3],
    "turning and repeating": lambda x, y, n, on: (
        np.roll(np.flip(row(x, y)), 1) + np.repeat(row(x, y)[:2], 2) + np.tile(y, 4)
    ),
    "slices": lambda x, y, n, on: row(x, y)[1:3] + row(x, y)[::-1][:2] + row(x, y)[[0, 3]],
    "stepping through": lambda x, y, n, on: np.stack([value * i for i, value in enumerate(row(x, y))]),
    "appending": lambda x, y, n, on: np.append(row(x, y), x),
    "even spacing": lambda x, y, n, on: np.linspace(x, y, 5),
    "likeness": lambda x, y, n, on: (
        np.zeros_like(row(x, y)) + np.ones_like(row(x, y)) + np.full_like(row(x, y), y)
    ),
    "a table": lambda x, y, n, on: lookup(TABLE, n) + np.take(TABLE * x, 2),
    "a table of symbols": lambda x, y, n, on: lookup(row(x, y), n),
    "a table at many places": lambda x, y, n, on: lookup(TABLE, np.stack([n, n + 1, n + 2])),
}
TEXTS = {
    "a quantity": lambda x, y, n, on: show(x * 1e12, "bytes"),
    "a quantity with digits": lambda x, y, n, on: show(x * 1.2345e3, "seconds", 4),
    "a quantity in a unit": lambda x, y, n, on: show_in(x * 1e12, "GB"),
    "a sentence": lambda x, y, n, on: (
        f"From {show(y, 'count')} to {show(x, 'times')}, “quoted”\n\\ and \ue100."
    ),
    "a choice of words": lambda x, y, n, on: choose(x > y, f"more: {show(x, 'count')}", "less"),
    "words by index": lambda x, y, n, on: select(n, ["none", "one", f"{show(y, 'percent')}"]),
    "nested": lambda x, y, n, on: choose(on, select(n, ["a", "b", "c"]), choose(x > 2, "d", "e")) + "!",
}


def on_symbols(functions: dict) -> str:
    """The functions of x, y, n and on, compiled together."""
    graph = Graph()
    given = [control(graph, "x"), control(graph, "y"), control(graph, "n"), control(graph, "on") == 1]
    with np.errstate(all="ignore"):
        return writer.function(graph, {name: function(*given) for name, function in functions.items()})


@pytest.fixture(scope="module")
def on_page(script):
    """What each of the functions above gives in the browser, for each state."""
    code = on_symbols(NUMBERS | TEXTS)
    return json.loads(script.evaluate(RUN, [code, STATES]))


def in_python(function, state):
    return function(np.float64(state["x"]), np.float64(state["y"]), state["n"], bool(state["on"]))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(on_page, name):
    for state, shown in zip(STATES, on_page, strict=True):
        expected = np.asarray(in_python(NUMBERS[name], state), dtype=float)
        np.testing.assert_allclose(
            np.ravel(shown[name]), np.ravel(expected), rtol=1e-12, atol=1e-13, err_msg=str(state)
        )


@pytest.mark.parametrize("name", TEXTS)
def test_texts(on_page, name):
    for state, shown in zip(STATES, on_page, strict=True):
        assert shown[name] == str(in_python(TEXTS[name], state)), state


def test_one_of_several_things(script):
    """Attributes, arrays and methods of the chosen thing, and functions called for each of them."""
    graph = Graph()
    thing = merge(graph, control(graph, "n"), THINGS)
    read = {
        "name": lambda t: t.name,
        "size": lambda t: t.size,
        "sizes": lambda t: t.sizes,
        "call": lambda t: t.doubled(2),
        "of a tuple": lambda t: t.pair[1] * 1.0,
        "each": lambda t: ops.each(t, lambda one: one.size + len(one.name)),
        "over": lambda t: over(lambda each: 7.0 if each.name == "two" else each.size, t),
    }
    assert thing.inner is None
    code = writer.function(graph, {name: function(thing) for name, function in read.items()})
    for state, shown in zip(STATES, json.loads(script.evaluate(RUN, [code, STATES])), strict=True):
        chosen = THINGS[state["n"]]
        assert shown == {name: np.asarray(function(chosen)).tolist() for name, function in read.items()}


def test_one_of_several_things_may_have_a_control_s_value(script):
    """As one's own model does beside those of the catalogue; the others' values stay a table."""
    graph = Graph()
    own = Thing("own", control(graph, "x"), [0, 0])
    thing = merge(graph, control(graph, "n"), [*THINGS[:2], own])
    code = writer.function(graph, {"size": thing.size * 1.0})
    for state, shown in zip(STATES, json.loads(script.evaluate(RUN, [code, STATES])), strict=True):
        assert shown["size"] == (state["x"] if state["n"] == 2 else THINGS[state["n"]].size)


def test_equal_steps_are_computed_once():
    code = on_symbols({"a": lambda x, y, n, on: np.sqrt(x * y), "b": lambda x, y, n, on: np.sqrt(x * y) + 1})
    assert code.count("Math.sqrt") == 1


def test_what_only_the_next_step_reads_is_no_array():
    graph = Graph()
    column = row(control(graph, "x"), control(graph, "y"))
    source = writer.function(graph, {"out": np.sqrt(column * 2 + 1) / np.sum(column * 3)})
    assert (
        source.count("for(let i=0;") == 2 and source.count("new Float64Array(") == 3
    )  # the root, what is summed, the result


ONE_BY_ONE = """async ([source, states]) => {
  const helpers = await import("/assets/widget/numbers.js");
  const made = new Function(...Object.keys(helpers), `return ${source}`)(...Object.values(helpers));
  const text = value => JSON.stringify(value, (key, each) => ArrayBuffer.isView(each) ? [...each] : each);
  const going = made(null), wrong = [];
  for (const state of states) {
    const thrower = { ...state, x: state.x + 1, y: { valueOf() { throw new Error("on purpose"); } } };
    try { going(thrower); wrong.push("nothing was thrown"); } catch { /* what was half computed must not be taken for known */ }
    for (const each of [state, state]) if (text(going(each)) !== text(made(null)(each))) wrong.push(state);
  }
  return wrong;
}"""


def test_what_is_kept_from_the_state_before_is_what_would_be_computed_anew(script):
    """One control moved at a time, to and fro; the same state twice; and after a state that could not be
    computed."""
    home = STATES[0]
    states = [
        state | moved
        for state in (home, STATES[4])
        for name in home
        for value in {other[name] for other in STATES}
        for moved in ({name: value}, {})
    ]
    assert script.evaluate(ONE_BY_ONE, [on_symbols(NUMBERS | TEXTS), states]) == []


LATER = """async ([[both, first, second], states]) => {
  const helpers = await import("/assets/widget/numbers.js");
  const made = source => new Function(...Object.keys(helpers), `return ${source}`)(...Object.values(helpers))(null);
  const text = value => JSON.stringify(value, (key, each) => ArrayBuffer.isView(each) ? [...each] : each);
  const going = made(both), wrong = [];
  const check = (what, found, source, state) => {
    if (text(found) !== text(made(source)(state))) wrong.push([what, state]);
  };
  for (const [at, state] of states.entries()) {
    if (at % 3) check("first", going(state), first, state);
    if (at % 2) check("later", going.later(state), second, state);
    check("first again", going(state), first, state);
  }
  return wrong;
}"""


def test_what_is_asked_later_stands_on_the_same_steps(script):
    """With or without the first answer before it, and after states in which it was not asked."""

    def first(x, y, on):
        column = np.sqrt(row(x, y) + 20.0)
        return {"sum": np.sum(column), "sine": np.sin(y), "root": column}

    def later(x, y, on):
        column = np.sqrt(row(x, y) + 20.0)
        return {
            "said": phrase("{n}", n=show(column * 2.0, "count")),
            "high": np.max(column),
            "cosine": np.cos(x),
        }

    graph = Graph()
    given = [control(graph, "x"), control(graph, "y"), control(graph, "on") == 1]
    both = writer.function(graph, first(*given), later(*given))
    alone = [writer.function(graph, function(*given)) for function in (first, later)]
    assert both.count("Math.sqrt") == 1
    moves = [state | {name: other[name]} for state in STATES for name in state for other in STATES]
    assert script.evaluate(LATER, [[both, *alone], moves]) == []


def test_a_step_stands_under_the_controls_that_it_hangs_on():
    graph = Graph()
    x, y = control(graph, "x"), control(graph, "y")
    source = writer.function(graph, {"a": np.sqrt(x), "b": np.sqrt(x) + np.log(row(x, y)), "c": np.exp(y)})
    sets = dict(re.findall(r"^const (any\d+)=(.*);$", source, re.MULTILINE))  # several controls, named once
    loops = dict(re.findall(r"(loop\d+)=c=>\{(.*?)\n\}\n\}", source, re.DOTALL))
    under = dict(re.findall(r"^if\((.*?)\)\{\n(.*?)\n\}$", source, re.MULTILINE | re.DOTALL))
    assert {
        sets.get(name, name): [call for call in ("sqrt", "log(", "exp") if call in loops.get(text[:-4], text)]
        for name, text in under.items()
    } == {"moved_x": ["sqrt"], "moved_y": ["exp"], "moved_x||moved_y": ["log("]}


def long_search(x, y, steps=150):
    """A sweep with so many steps in each of its three loops, and conditions between them."""

    def further(value, by):
        found = [np.sqrt(np.absolute(value + by * i / steps)) for i in range(steps)]
        while len(found) > 1:
            pairs = zip(found[::2], [*found[1::2], by])
            found = [0.5 * one + 0.5 * np.maximum(other, 0.25) for one, other in pairs]
        return found[0]

    def measure(point):
        row = further(point["a"] + x, point["a"])
        middle = further(row + point["b"], point["b"])
        inner = further(middle * point["c"], point["c"] + row)
        conditions = (row > 1.9, (middle > 1.7) & (point["b"] < 9.0))
        return conditions, {
            "least": (inner * (6.0 - point["c"]) - inner * inner, middle < row + 0.5),
            "most": (-inner - middle, point["c"] > 1.0),
        }

    rows = {"a": np.stack([x, y + 8.0, x * y, x + 2.0 * y])}
    return sweep(rows, [{"b": (1.0, 2.5, 9.0)}, {"c": (0.5, 1.5, 4.0, 5.0)}], measure)


def in_cells(x, y, more):
    """A contest of each row and one of each of four cells that cut across the rows."""

    def measure(point):
        cost = (point["a"] - point["b"]) * (point["a"] - point["b"]) + x
        cell = np.minimum(np.floor(np.absolute(point["a"] + point["b"]) / 2.0), 3.0)
        return (point["b"] != 4.0,), {"least": (cost, cost < 30.0), "cells": (cost, cost < 30.0, cell, 4)}

    rows = {"a": np.stack([x, y, x, y + more])}
    return sweep(rows, [{"b": (1.0, 2.0, 4.0, 3.0)}], measure)


@pytest.mark.parametrize("state", STATES)
def test_a_contest_in_groups_is_held_in_the_page_as_in_python(script, state):
    """The lowest cost of each cell, its row and combination, and how many there are, ties included; a second
    sweep over other rows uses the same loops."""
    graph = Graph()
    x, y = control(graph, "x"), control(graph, "y")
    both = [in_cells(x, y, more) for more in (0.0, 1.0)]
    outputs = {f"{i}{name}": found._asdict() for i, one in enumerate(both) for name, found in one.items()}
    code = writer.function(graph, outputs)
    assert code.count("const search0=") == 1 and "search1" not in code
    page = json.loads(script.evaluate(RUN, [code, [state]]))[0]
    for i, more in enumerate((0.0, 1.0)):
        for name, found in in_cells(np.float64(state["x"]), np.float64(state["y"]), more).items():
            for what, column in found._asdict().items():
                given = np.array([np.nan if v is None else v for v in page[f"{i}{name}"][what]], dtype=float)
                np.testing.assert_array_equal(given, column, err_msg=f"{i} {name}.{what}")


@pytest.mark.parametrize("steps", [10, 150, 500])
def test_a_search_of_many_steps_stands_in_several_functions(script, steps):
    """Browsers leave a function unoptimized that is too long; the numbers are Python's either way."""
    graph = Graph()
    found = long_search(control(graph, "x"), control(graph, "y"), steps)
    code = writer.function(graph, {name: least._asdict() for name, least in found.items()})
    functions = re.findall(r"^const part.*?=>\{\n(.*?)^\};", code, re.MULTILINE | re.DOTALL)
    assert bool(functions) == (steps > FEW)
    assert all(len(re.findall(r"^const s\d+=(?!kept)", text, re.MULTILINE)) <= MOST for text in functions)
    shown = json.loads(script.evaluate(RUN, [code, STATES]))
    for state, page in zip(STATES, shown, strict=True):
        for name, least in long_search(np.float64(state["x"]), np.float64(state["y"]), steps).items():
            for what, column in least._asdict().items():
                given = np.array([np.nan if v is None else v for v in page[name][what]], dtype=float)
                np.testing.assert_allclose(given, column, rtol=1e-12, err_msg=f"{name}.{what} {state}")
    assert any(page["least"]["count"][i] for page in shown for i in range(4))


def chained(value, steps):
    """A calculation of so many steps, each of which needs the one before."""
    for i in range(steps):
        value = np.sqrt(np.absolute(value) + i / steps)
    return value


def chained_search(x, steps):
    def measure(point):
        cost = chained(point["a"] + point["b"] + x, steps)
        return (), {"least": (cost, cost > 0.0)}

    return sweep({"a": np.stack([x, 2.0 * x])}, [{"b": (2.0, 1.0, 3.0)}], measure)


@pytest.mark.parametrize("calculation", [chained, lambda x, n: chained_search(x, n)["least"].cost])
def test_a_chain_may_be_longer_than_functions_can_call_one_another(script, calculation):
    graph, steps = Graph(), 3 * sys.getrecursionlimit()
    code = writer.function(graph, {"end": calculation(control(graph, "x"), steps)})
    page = json.loads(script.evaluate(RUN, [code, STATES]))
    for state, shown in zip(STATES, page, strict=True):
        np.testing.assert_allclose(shown["end"], calculation(np.float64(state["x"]), steps), rtol=1e-12)


def test_a_constant_keeps_every_bit():
    for value in (0.1, 1 / 3, 6.02214076e23, 1e-300, -2.5, 3.0, 2.0**60):
        assert float(writer.literal(value)) == value
    with pytest.raises(ValueError, match="nan"):
        writer.literal(math.nan)


# -- what is refused, and the words --------------------------------------------------------------------------
REFUSED = {
    "if": (lambda x: 1 if x > 0 else 2, r"Python if.*np\.where"),
    "and": (lambda x: (x > 0) and (x < 1), r"and, or.*&"),
    "min": (lambda x: min(x, 3), r"np\.minimum"),
    "max": (lambda x: max(x, x + 1), r"np\.maximum"),
    "float": (lambda x: float(x), r"float\(\)"),
    "math": (lambda x: math.sqrt(x), r"math\.\*.*numpy"),
    "int": (lambda x: int(x), r"int\(\).*np\.floor"),
    "round": (lambda x: round(x), r"round\(\).*np\.rint"),
    "range": (lambda x: list(range(x)), r"range\(\)"),
    "index": (lambda x: [1, 2, 3][x], r"lookup"),
    "asarray": (lambda x: np.asarray(x), r"np\.asarray.*np\.stack"),
    "array": (lambda x: np.array([x, x]), r"np\.array.*np\.stack"),
    "f-string": (lambda x: f"{x:.1f}", r"f-string.*show"),
    "bare f-string": (lambda x: f"{x}", r"f-string.*show"),
    "str": (lambda x: str(x), r"str\(\).*show"),
    "an unknown ufunc": (lambda x: np.arcsinh(x), r"np\.arcsinh.*operations\.py"),
    "an unknown function": (lambda x: np.median(np.stack([x, x])), r"np\.median.*operations\.py"),
    "iteration": (lambda x: list(x), "cannot be iterated"),
    "an array as text": (lambda x: f"{show(np.stack([x, x]), 'count')}", "phrase"),
    "one index into a column": (
        lambda x: choose(x > 1, show(np.stack([x, x]), "count"), ""),
        "a choice among .2,. texts by one index.*give each row its index",
    ),
    "a text compared": (lambda x: show(x, "count") == "3", "comparison.* on a text.*compare the numbers"),
    "a choice compared": (lambda x: merge(x.graph, x, THINGS) == THINGS[0], "a choice cannot be compared"),
}


def test_one_index_into_a_column_is_refused_in_python_too():
    with pytest.raises(ValueError, match="an index for each row"):
        choose(True, ["a", "b"], "")


@in_one_test("what", REFUSED)
def test_refused(what):
    function, words = REFUSED[what]
    with pytest.raises(NotTranslatable, match=words):
        function(control(Graph(), "x"))


class Tried(Widget):
    """A small widget whose methods the tests below replace."""

    size = Number("Size", 3.0, 1.0, 9.0)
    kind = Choice("Kind", {"a": ("A", 1.0), "b": ("B", 2.0)}, "a")
    on = Switch("On")

    @part("size", "kind")
    def bars(self):
        return {"top": self.size * self.kind}

    @readout("Size")
    def size_shown(self):
        return show(self.size, "count")

    @regime(target=True)
    def large(self):
        return self.size > 5, "Large."

    def summary(self):
        return choose(self.on, "On.", "Off.")


def test_a_widget_is_compiled(script):
    code, table = compile_widget(Tried)
    assert table.size == 0 and "return {};" in code  # nothing is said by its marks
    shown = json.loads(script.evaluate(RUN, [code, [{"size": 6, "kind": 1, "on": 1}]]))[0]
    assert shown == {
        "parts": {"bars": {"top": 12}},
        "readouts": {"size_shown": {"text": "6", "alarm": False}},
        "regimes": {"large": {"met": True, "text": "Large."}},
        "documents": {},
        "ranges": {},
        "ends": {},
        "summary": "On.",
    }


@pytest.mark.parametrize("declared", [("size",), ("size", "kind", "on"), ("kind",)])
def test_a_part_that_reads_other_controls_than_it_declares_is_refused(declared):
    class Wrong(Tried):
        @part(*declared)
        def bars(self):
            return {"top": self.size * self.kind}

    with pytest.raises(NotTranslatable, match=r"bars declares the controls .* but reads \['kind', 'size'\]"):
        compile_widget(Wrong)


def test_a_constant_that_is_no_number_is_refused():
    class Wrong(Tried):
        @part("size")
        def bars(self):
            return {"top": np.stack([self.size, np.inf])}

    with pytest.raises(ValueError, match="inf"):
        compile_widget(Wrong)


def test_a_tabulated_part_reads_its_row(script):
    class Executed(Tried):
        steps = Number("Steps", 2, 1, 5, stops=5, log=False, whole=True)

        @part("steps", "on", tabulated=True)
        def bars(self):
            steps = int(self.steps)  # cannot be traced, and need not be
            return {"top": [float(i) for i in range(steps)], "name": ["on" if self.on else "off"] * steps}

    code, table = compile_widget(Executed)
    run = RUN.replace("(null)", "(new Float64Array(given))").replace(
        "[source, states]", "[source, states, given]"
    )
    for steps in range(1, 6):
        for on in (0, 1):
            state = {"size": 3, "kind": 0, "on": on, "steps": steps}
            shown = json.loads(script.evaluate(run, [code, [state], table.tolist()]))[0]["parts"]["bars"]
            assert [v for v in shown["top"] if v is not None] == list(
                range(steps)
            )  # the padding, NaN, is null in JSON
            assert [t for t in shown["name"] if t] == [("off", "on")[on]] * steps


def test_what_several_ask_for_is_asked_once_for_each_state():
    asked = []

    class Asking(Tried):
        @once
        def answer(self):
            asked.append(self.size)
            return self.size * 2

        @part("size")
        def bars(self):
            return {"top": self.answer(), "bottom": self.answer()}

    widget = Asking(size=4)
    assert widget.shown()["parts"]["bars"] == {"top": 8, "bottom": 8} and asked == [4]
    widget.size = 5
    assert widget.shown()["parts"]["bars"]["top"] == 10 and asked == [4, 5]
    assert compile_widget(Asking).function.count("c.size*2") == 1


# -- whole algorithms ----------------------------------------------------------------------------------------
WEIGHTS = (0.5, 0.25)


def halved(value):
    """A function that an algorithm calls."""
    for weight in WEIGHTS:
        value = value * weight if value > 1 else -value
    return value, math.floor(value)


@program(values=40, places=40, total=(), turns=())
def wandering(start, count, given):
    """Every statement and expression that an algorithm may use."""
    count, values, places = int(count), [], zeros(count)
    held, new = full(2, 7), [[0.0, 1.0] for _ in range(2)]
    total = turns = 0
    for i in range(count):
        if i % 3 == 2 and not i > 20:
            continue
        if i == 25 or total > 1e6:
            break
        else:
            value, low = halved(start + i // 2 - given[i % len(given)])
        values.append(max(value, low, -3) + abs(min(given)) ** 2)
        places[i] = -i if 1 <= i < 4 else math.sqrt(i)
        total += value
        new[i % 2][1] -= low / 2
    for i in range(count - 1, 0, -2):
        total += places[i] * float(-i % 5)
    while turns < 10:
        turns += 1
        if turns * 2 > count:
            break
    held.insert(1, turns)
    held.remove(7)
    held.append(values.pop())
    held.append(held.pop(1))
    total += bisect_left([1, 3, 3, 7], turns) + 10 * bisect_left([1, 3, 3, 7], 3)
    total -= 2.0 * held[0] + held[1] + len(held) + new[0][1] + new[1][1] + int(-2.5) + round(2.5)
    return {"values": values, "places": places, "total": total, "turns": turns}


def test_an_algorithm_runs_on_the_page_as_it_does_here(script):
    graph, table = Graph(), np.array([1.5, -2.0, 0.25])
    called = wandering(control(graph, "x"), control(graph, "y"), table * control(graph, "x"))
    states = [{"x": x, "y": y} for x in (0.5, 3.0, 11.25) for y in (1, 2, 7, 40)]
    shown = json.loads(script.evaluate(RUN, [writer.function(graph, called), states]))
    for state, page in zip(states, shown, strict=True):
        here = wandering(state["x"], state["y"], table * state["x"])
        for name, expected in here.items():
            ours = np.array([np.nan if v is None else v for v in np.atleast_1d(page[name])], dtype=float)
            np.testing.assert_allclose(
                ours, np.atleast_1d(expected), rtol=1e-12, err_msg=f"{name} at {state}"
            )


def two_lows(x):
    return {"low": [x, 2.0], "high": x + 1.0}


@program(high=(), low=3)
def made_elsewhere(x):
    """An algorithm that returns what a function made, on one of two ways."""
    if x > 3:
        return {"high": x, "low": [x]}
    return two_lows(x)


def test_an_algorithm_returns_what_a_function_made(script):
    graph = Graph()
    code = writer.function(graph, made_elsewhere(control(graph, "x")))
    few, one = json.loads(script.evaluate(RUN, [code, [{"x": 1.5}, {"x": 4}]]))
    assert few == {"high": 2.5, "low": [1.5, 2, None]}
    assert one == {"high": 4, "low": [4, None, None]}


@program(twice=3)
def doubled_in_place(values):
    """An algorithm that writes into its argument."""
    for i in range(3):
        values[i] *= 2
    return {"twice": values}


def test_an_algorithm_does_not_change_what_it_is_given(script):
    graph = Graph()
    given = np.stack([control(graph, "x"), control(graph, "y"), control(graph, "x")])
    twice = doubled_in_place(given)["twice"]
    code = writer.function(
        graph, {"twice": twice, "again": doubled_in_place(given * 1)["twice"], "given": given}
    )
    page = json.loads(script.evaluate(RUN, [code, [{"x": 1, "y": 2}]]))[0]
    assert page == {"twice": [2, 4, 2], "again": [2, 4, 2], "given": [1, 2, 1]}


def refused_algorithms():
    """Functions with one thing in each that has no counterpart on the page."""

    def a_slice(x):
        return {"y": [x, x][0:1]}

    def from_the_end(x):
        return {"y": [x, x][-1]}

    def a_word(x):
        return {"y": sorted([x])}

    def numpy_inside(x):
        return {"y": np.sort([x])}

    def a_lambda(x):
        return {"y": (lambda: x)()}

    def membership(x):
        return {"y": x in (1, 2)}

    def by_name(x):
        return {"y": round(x, ndigits=2)}

    def no_dict(x):
        return x

    return [a_slice, from_the_end, a_word, numpy_inside, a_lambda, membership, by_name, no_dict]


@in_one_test("algorithm", refused_algorithms(), ids=lambda f: f.__name__)
def test_an_algorithm_that_the_page_cannot_run_is_refused_with_its_line(algorithm):
    graph = Graph()
    with pytest.raises(NotTranslatable, match=r"test_compiler\.py:\d+: .*GRAMMAR\.md"):
        writer.function(graph, {"y": program(y=2)(algorithm)(control(graph, "x"))})


def test_an_algorithm_must_give_what_it_says():
    with pytest.raises(ValueError, match="must give y; got z"):
        program(y=())(lambda: {"z": 1.0})()
    with pytest.raises(ValueError, match="at most 2 numbers, got 3"):
        program(y=2)(lambda: {"y": [1, 2, 3]})()


@program(at=8, kind=8)
def counted(count):
    """An algorithm that returns ``count`` rows, at most eight."""
    return {"at": [float(i) for i in range(int(count))], "kind": [i % 2 for i in range(int(count))]}


class Listed(Tried):
    """A part whose rows are an algorithm's, and what each of them says."""

    @part("size")
    def bars(self):
        rows = counted(self.size)
        return {"left": rows["at"], "right": rows["at"] + 1}

    @hint("bars")
    def said(self):
        rows = counted(self.size)
        return phrase(
            "{kind} {n} of {size}{end}",
            kind=select(rows["kind"], ["Even", "Odd"]),
            n=choose(rows["at"] == 0, "0, the first,", phrase("{n}", n=show(rows["at"], "count"))),
            size=show(self.size, "count"),
            end=["."] * 7 + ["!"],
        )


OFFSET = -3  # a constant with a sign, which must not run into the one before it


@program(y=())
def moved(x):
    return {"y": x - OFFSET}


class Moved(Tried):
    """A program that takes away a negative constant."""

    @part("size")
    def bars(self):
        return {"left": moved(self.size)["y"], "right": self.size}


def test_a_negative_constant_keeps_its_distance(script):
    state = {"size": 2, "kind": 0, "on": 0}
    (shown,) = json.loads(script.evaluate(RUN, [compile_widget(Moved).function, [state]]))
    assert shown["parts"]["bars"]["left"] == moved(2)["y"] == 5


class Written(Listed):
    """A document of the same rows."""

    @document("Rows", "rows.txt")
    def rows(self):
        rows = counted(self.size)
        said = phrase("row {n}", n=show(rows["at"], "count"))
        return f"{lines(choose(rows['kind'] == 1, said, ''))}!"


def test_a_document_has_a_line_for_each_row_that_has_a_text(script):
    states = [{"size": n, "kind": 0, "on": 0} for n in (1, 2, 6)]
    shown = json.loads(script.evaluate(RUN, [compile_widget(Written).function, states]))
    told = [page["documents"]["rows"] for page in shown]
    assert told == ["!", "row 1!", "row 1\nrow 3\nrow 5!"]
    assert told == [Written(size=n).shown()["documents"]["rows"] for n in (1, 2, 6)]


def test_rows_end_with_the_algorithm_and_say_what_they_are(script):
    compiled = compile_widget(Listed)
    states = [{"size": n, "kind": 0, "on": 0} for n in range(1, 9)]
    shown, hints = (
        json.loads(script.evaluate(run, [compiled.function, states]))
        for run in (RUN, RUN.replace("map(compute)", "map(compute.later)"))
    )
    for n, (page, said) in enumerate(zip(shown, hints, strict=True), 1):
        here = Listed(size=n)
        assert page["parts"]["bars"] == {k: v.tolist() for k, v in here.shown()["parts"]["bars"].items()}
        assert page["parts"]["bars"]["right"] == list(range(1, n + 1))
        assert said["bars"][:n] == here.hints()["bars"][:n]
        assert (
            said["bars"][n - 1]
            == f"{('Even', 'Odd')[(n - 1) % 2]} {n - 1 or '0, the first,'} of {n}{'!' if n == 8 else '.'}"
        )
