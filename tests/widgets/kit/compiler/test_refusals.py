"""What means another thing in JavaScript is refused, with file, line and what to write instead; where Python
raises, so does the page."""

import math
import re
from bisect import bisect_left

import numpy as np
import pytest

from engine.base.program import program
from tests import node
from widgets.kit.compiler import grammar, operations, writer
from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.programs import Program
from widgets.kit.compiler.refusal import NotTranslatable
from widgets.kit.compiler.symbols import control, lookup, merge
from widgets.kit.compiler.texts import text
from widgets.kit.controls import Number
from widgets.kit.text import select, show
from widgets.kit.widget import Widget, compile_widget, part


def column(x):
    return np.stack([x, x * 2.0, x - 1.0])


# -- array expressions ---------------------------------------------------------------------------------------
EXPRESSIONS = {
    "initial=": (lambda x: np.max(column(x), initial=7), r"initial= of np\.max"),
    "where=": (lambda x: np.sum(column(x), where=[True, False, True]), r"where= of np\.sum"),
    "out=": (lambda x: np.add(x, 1.0, out=np.zeros(())), r"out= of np\.add"),
    "dtype=": (lambda x: np.stack([x, x], dtype=int), r"dtype= of np\.stack"),
    "endpoint=": (lambda x: np.linspace(x, 2.0, 5, endpoint=False), r"endpoint= of np\.linspace"),
    "keywords of a ufunc's reduce": (lambda x: np.add.reduce(column(x), initial=3.0), r"initial= of np\.sum"),
    "too many arguments": (lambda x: np.sum(column(x), 0, None), r"np\.sum with 3 arguments"),
    "two axes at once": (lambda x: np.sum(column(x)[None, :], axis=(0, 1)), "one axis after the other"),
    "astype(int)": (lambda x: x.astype(int), r"\.astype\(int64\).*np\.floor"),
    "and of numbers": (lambda x: np.logical_and(x, 2), r"np\.logical_and.*compare them first"),
    "& of numbers": (lambda x: x & 1, r"np\.bitwise_and.*compare them first"),
    "not of a number": (lambda x: ~x, r"np\.invert.*compare them first"),
    "any of numbers": (lambda x: np.any(column(x)), r"np\.any of numbers.*x != 0"),
    "all of numbers": (lambda x: column(x).all(), r"np\.all of numbers.*x != 0"),
    "truths added": (lambda x: (x > 0) + (x > 1), r"np\.add on truths.*np\.where"),
    "a truth negated": (lambda x: -(x > 0), r"np\.negative on truths"),
    "a root of a truth": (lambda x: np.sqrt(x > 0), r"np\.sqrt on truths"),
    "whole numbers divided": (lambda x: np.argmax(column(x)) // 2, r"np\.floor_divide of whole numbers"),
    "a condition alone": (lambda x: np.where(x > 0), r"np\.where with a condition alone"),
    "a whole number past 2**53": (lambda x: x + (2**53 + 1), r"9007199254740993.*past 2\*\*53"),
    "float32": (lambda x: x * np.float32(0.1), "64 bits"),
    "no number": (lambda x: x + np.stack([x, None]), "64 bits"),
    "the least of nothing": (lambda x: np.min(column(x)[:0]), r"np\.min of no numbers"),
    "a table of rows": (lambda x: lookup(np.ones((2, 2)), x), r"a table of shape \(2, 2\)"),
    "linspace between columns": (lambda x: np.linspace(column(x), 1.0, 3), "give two numbers"),
    "another method": (lambda x: x.argsort(), r"\.argsort of an array"),
    "a truth as an index": (lambda x: lookup(column(x), x > 0), "index of truths.*np.where"),
    "a table to a program": (
        lambda x: doubled(np.stack([column(x), column(x)])),
        r"table given to doubled\(\)",
    ),
}
TEXTS = {
    "upper": lambda t: t.upper(),
    "a slice": lambda t: t[:2],
    "a format": lambda t: f"{t:>8}",
    "the length": lambda t: len(t),
    "the truth": lambda t: 1 if t else 0,
    "a search": lambda t: "GB" in t,
    "an order": lambda t: t < "3 GB",
    "an f-string's length": lambda t: len(f"{t}"),
    "an f-string's format": lambda t: f"{f'{t}':>8}",
    "an f-string in capitals": lambda t: text(t.graph, f"{t} GPUs".upper()),
    "an f-string cut": lambda t: text(t.graph, f"{t} GPUs"[:4]),
    "an f-string replaced": lambda t: text(t.graph, f"{t} GPUs".replace("0", "1").replace("2", "1")),
}


@program(twice=9)
def doubled(values):
    return {"twice": [values[i] * 2 for i in range(len(values))]}


@pytest.mark.parametrize("what", EXPRESSIONS)
def test_an_expression_is_refused_with_its_line(what):
    function, words = EXPRESSIONS[what]
    with pytest.raises(NotTranslatable, match=rf"test_refusals\.py:\d+: .*{words}.*GRAMMAR"):
        function(control(Graph(), "x"))


@pytest.mark.parametrize("what", TEXTS)
def test_a_text_is_no_string(what):
    graph = Graph()
    for _ in range(3):
        x = control(graph, "x")
        made = show(x + 1.0, "bytes")
    with pytest.raises(NotTranslatable, match=r"test_refusals\.py:\d+: .* on? .*text"):
        TEXTS[what](made)


def test_an_unknown_unit_is_refused_as_it_is_on_numbers():
    for value in (1.0, control(Graph(), "x")):
        with pytest.raises(ValueError, match="family must be one of"):
            show(value, "parsecs")


def test_a_misspelt_control_says_which_there_are():
    class Misspelt(Widget):
        size = Number("Size", 3.0, 1.0, 9.0)

        @part("size")
        def bars(self):
            return {"top": self.sise}

        def summary(self):
            return ""

    with pytest.raises(
        AttributeError, match=r"test_refusals\.py:\d+: Misspelt has no 'sise'.*controls are size.*bars"
    ):
        compile_widget(Misspelt)


# name -> (function of a control, its values); what numpy gives is what node gives
EXACT = {
    "floor division": (lambda x: (x * 0.4) // 0.1, (2.5, -2.5, 0.0)),
    "division by a zero": (lambda x: x // 0.0 + 1.0 / x, (2.5, -2.5)),
    "the remainder's zero": (lambda x: 1.0 / (x % -2.5), (2.5, 5.0)),
    "a sign": (lambda x: 1.0 / np.sign(x * -0.0), (2.5,)),
    "rounded to a zero": (lambda x: 1.0 / np.rint(x), (-0.3, 0.3)),
    "cumsum of a table": (lambda x: np.cumsum(np.stack([column(x), column(x + 1)])), (2.5,)),
    "a kept mean": (lambda x: np.mean(np.stack([column(x), column(x)]), axis=0, keepdims=True), (2.5,)),
    "an open clip": (lambda x: np.clip(x, None, 2), (2.5, 1.5)),
    "even spacing": (lambda x: np.linspace(x, 0.1, 7), (2.5, 0.7)),
    "one step": (lambda x: np.linspace(x, 0.1, 1), (2.5,)),
    "the first NaN": (lambda x: np.argmax(np.sqrt(column(x))) + 0.0, (0.5, 2.5)),
    "NaN is true": (lambda x: np.where(np.sqrt(x), 1.0, 2.0), (-1.0, 0.0, 1.0)),
    "powers of 1": (lambda x: np.power(x / x, np.sqrt(x - 4.0)), (2.5, 1.0)),
    "an index from the end": (lambda x: lookup(column(x), np.rint(x)), (-1.0, 2.0, -3.0)),
    "an index between": (lambda x: lookup(column(x), x), (1.7, 0.2)),
    "-0 as a constant": (lambda x: x * -0.0, (2.5,)),
}


@pytest.mark.parametrize("what", EXACT)
def test_an_expression_is_exact(what):
    function, values = EXACT[what]
    graph = Graph()
    with np.errstate(all="ignore"):
        code = writer.function(graph, {"out": function(control(graph, "x"))})
        answers = node.run([(code, [{"x": x} for x in values])])[0]
        for x, answer in zip(values, answers):
            expected = np.ravel(function(np.float64(x)))
            ours = np.ravel(answer["out"])
            assert np.array_equal(ours, expected, equal_nan=True), (x, answer)
            assert np.array_equal(np.signbit(ours), np.signbit(expected)) or np.isnan(expected).any()


def test_an_index_out_of_range_stops_the_page():
    graph = Graph()
    x = control(graph, "x")
    code = writer.function(graph, {"entry": lookup(column(x), x), "word": select(x, ["a", "b", "c"])})
    for answer in node.run([(code, [{"x": 3.0}, {"x": -4.0}])])[0]:
        assert "out of range for 3 entries" in answer["error"]


def test_of_a_truth_among_options_a_truth_is_made():
    graph = Graph()
    assert merge(graph, control(graph, "n"), [True, False]).truth
    assert not merge(graph, control(graph, "n"), [True, 2.0]).truth


# -- programs ------------------------------------------------------------------------------------------------
RATES = [1.0, 2.0, 3.0]
BIG = 2**60


def with_default(x, n=7.5):
    return x * n


def starred(*x):
    return x


def sometimes(x):
    if x > 0:
        return 1.0


def nothing(q):
    q.append(1.0)


def shown(q):
    q.append(2.0)
    return q[0]


def doubles(x):
    return x * 2


def refused():
    """name -> (function, words): one thing in each that would not be the same on the page."""

    def log_of_two_arguments(x):
        return {"y": math.log(x, 2)}

    def round_to_digits(x):
        return {"y": round(x, 1)}

    def bisect_from(x):
        return {"y": bisect_left([1.0, 2.0], x, 3)}

    def truth_of_a_list(x):
        q = [x]
        return {"y": 1 if q else 0}

    def while_a_list(x):
        q = [x]
        while q:
            q.pop()
        return {"y": 0}

    def while_a_list_and_a_count(x):
        q, n = [x], 0
        while q and n < 10:
            n += 1
        return {"y": n}

    def lists_compared(x):
        return {"y": 1 if [x, 2.0] == [1.0, 2.0] else 0}

    def lists_compared_in_a_call(x):
        q = [x]
        return {"y": 1 if same(q, q) else 0}

    def lists_joined(x):
        q = [x] + [1.0]
        return {"y": q[0]}

    def a_list_repeated(x):
        q = [0, 1] * 2
        return {"y": q[0] + x}

    def repeated_a_list(x):
        q = 2 * [0, x]
        return {"y": q[0]}

    def a_default(x):
        return {"y": with_default(x)}

    def a_star(x):
        return {"y": starred(x)[0]}

    def infinity_as_a_word(x):
        return {"y": min(x, float("inf"))}

    def a_text(x):
        word = 'a "word"'
        return {"y": x if word else 0}

    def a_large_constant(x):
        return {"y": x + 9007199254740993}

    def a_large_constant_of_the_module(x):
        return {"y": x + BIG}

    def a_float_as_an_index(x):
        q = [1.0, 2.0]
        return {"y": q[x]}

    def range_of_a_float(x):
        y = 0.0
        for i in range(x):
            y += i
        return {"y": y}

    def a_value_on_some_ways(x):
        return {"y": sometimes(x)}

    def the_value_of_nothing(x):
        q = [x]
        y = nothing(q)
        return {"y": y}

    def the_value_of_append(x):
        q = [x]
        y = q.append(x)
        return {"y": y}

    def no_value_yet(x):
        for i in range(int(x)):
            y = i
        return {"y": y}

    def two_kinds(x):
        y = 0.0
        if x > 1:
            y = [x]
        return {"y": y}

    def sometimes_whole(x):
        n = 3
        if x > 1:
            n = x
        return {"y": n * n}

    def a_constant_written_to(x):
        RATES[0] = x
        return {"y": RATES[0]}

    def a_constant_written_to_elsewhere(x):
        return {"y": shown(RATES) + x}

    def called_twice_in_a_chain(x):
        return {"y": 1 if 0 < doubles(x) < 3 else 0}

    def or_of_floats(x):
        return {"y": x or 2.0}

    def too_many_values(x):
        a, b = (x, x, x)
        return {"y": a + b}

    def too_few_arguments(x):
        return {"y": same(x)}

    def another_method(x):
        q = [x]
        q.sort()
        return {"y": q[0]}

    def other_outputs(x):
        return {"z": x}

    def made_of_other_outputs(x):
        return named(x)

    def a_list_for_outputs(x):
        return [x]

    def a_step_of_a_name(x):
        y = 0
        for i in range(0, 5, int(x)):
            y = i
        return {"y": y}

    def a_step_of_zero(x):
        y = 0
        for i in range(0, 5, 0):
            y = i
        return {"y": y + x}

    def two_names_in_a_range(x):
        q = [i + j for i, j in range(3)]
        return {"y": q[0] + x}

    captured = 3.0

    def a_captured_name(x):
        return {"y": x + captured}

    words = {
        log_of_two_arguments: r"math\.log\(\) with 2 arguments.*1 here",
        round_to_digits: r"round\(\) with 2 arguments",
        bisect_from: r"bisect_left\(\) with 3 arguments",
        truth_of_a_list: r"a list where a number is needed \(q\).*len",
        while_a_list: r"a list where a number is needed \(q\)",
        while_a_list_and_a_count: r"of two kinds \(a list and a number\)",
        lists_compared: r"a (list|tuple) where a number is needed",
        lists_compared_in_a_call: r"a list where a number is needed",
        lists_joined: r"a list where a number is needed",
        a_list_repeated: r"a list where a number is needed",
        repeated_a_list: r"a list where a number is needed",
        a_default: r"a default argument.*pass every argument",
        a_star: r"an argument with a star",
        infinity_as_a_word: r"float\('inf'\).*math\.inf",
        a_text: r"a text.*numbers",
        a_large_constant: r"9007199254740993, past 2\*\*53",
        a_large_constant_of_the_module: r"past 2\*\*53",
        a_float_as_an_index: r"a float for a place or a count \(x\).*int",
        range_of_a_float: r"a float for a place or a count \(x\).*int",
        a_value_on_some_ways: r"returns on some ways only",
        the_value_of_nothing: r"nothing\(\), which returns nothing",
        the_value_of_append: r"the value of append\(\), which is None",
        no_value_yet: r"y, which may have no value yet",
        two_kinds: r"of two kinds",
        sometimes_whole: r"sometimes whole and sometimes floats.*int",
        a_constant_written_to: r"RATES of a module, which is written to",
        a_constant_written_to_elsewhere: r"RATES of a module, which is written to",
        called_twice_in_a_chain: r"a call in the middle of a chain.*a name",
        or_of_floats: r"conditional expression",
        too_many_values: r"3 values for 2 names",
        too_few_arguments: r"1 arguments for the 2 of same\(\)",
        another_method: r"sort\(\) with 0 arguments.*append",
        other_outputs: r"a return of z where y are declared",
        made_of_other_outputs: r"the dict has z",
        a_list_for_outputs: r"anything but a dict",
        a_step_of_a_name: r"a step that is not written down",
        a_step_of_zero: r"not 0",
        two_names_in_a_range: r"several names for the numbers of a range",
        a_captured_name: r"captured",
    }
    return [pytest.param(function, words[function], id=function.__name__) for function in words]


def same(p, q):
    return p == q


def named(x):
    return {"z": x}


@pytest.mark.parametrize(("function", "words"), refused())
def test_a_program_is_refused_with_its_line(function, words):
    with pytest.raises(NotTranslatable, match=rf"test_refusals\.py:\d+: .*{words}.*GRAMMAR"):
        Program(program(y=())(function), ((),))


def agreeing():
    """Functions of x and some values for it: both sides give the same, or both stop."""

    def floor_division(x):
        return {"y": (x * 0.4) // 0.1}

    def division(x):
        return {"y": x / (x - 2.5)}

    def remainder(x):
        return {"y": x % (x - 2.5)}

    def root(x):
        return {"y": math.sqrt(-x)}

    def logarithm(x):
        return {"y": math.log2(x)}

    def out_of_range(x):
        q = [1.0, 2.0, 4.0]
        return {"y": q[int(x)]}

    def stored_out_of_range(x):
        q = [1.0, 2.0, 4.0]
        q[int(x)] = 8.0
        return {"y": q[0] + 2 * q[2] + len(q)}

    def popped(x):
        q = [1.0]
        for _ in range(int(abs(x))):
            q.pop()
        return {"y": len(q)}

    def removed(x):
        q = [1.0, 2.0, 2.0]
        q.remove(x)
        return {"y": len(q) + q[0]}

    def least_of_none(x):
        q = [i + 0.0 for i in range(int(x))]
        return {"y": max(q)}

    def to_a_whole_number(x):
        return {"y": int(x * 1e308 * 10)}

    def least_of_nan(x):
        nan = math.inf - math.inf
        return {"y": min(x, nan) + max(x, nan, 1.0)}

    def nan_is_true(x):
        nan = math.inf - math.inf
        return {"y": 1.0 if nan else x}

    def the_nan_of_math_is_true(x):
        return {"y": 1.0 if math.nan else x}

    def a_whole_number_to_a_negative_power(x):
        return {"y": (int(x) * 1.0) ** -1}

    def two_names_of_one_list(x):
        p = [x]
        q = p
        q.append(2.0)
        return {"y": len(p)}

    def a_power(x):
        return {"y": x**0.5}

    def zero_to_a_power(x):
        return {"y": (x - 2.5) ** -1.0}

    def too_large(x):
        return {"y": math.exp(x * 1000)}

    def powers(x):
        return {"y": int(x) ** 7 % 11}

    def unpacked(x):
        q = [x, x]
        if x > 1:
            q.append(x)
        a, b = q
        return {"y": a + b}

    def from_the_end(x):
        q = [1.0, 2.0, 4.0]
        k = 0
        k -= int(abs(x))
        return {"y": q[k]}

    def in_a_chain(x):
        q = [3.0]
        q[len(q) - 1] = q.pop(0) + x if len(q) > 5 else x
        return {"y": q[0]}

    return [
        (floor_division, (2.5, -2.5)),
        (division, (2.5, 1.0)),
        (remainder, (2.5, 1.0)),
        (root, (2.5, -4.0)),
        (logarithm, (0.0, -1.0, 4.0)),
        (out_of_range, (0.0, 2.0, 3.0, -1.0, -3.0, -4.0)),
        (stored_out_of_range, (0.0, 3.0, -1.0, -4.0)),
        (popped, (0.0, 1.0, 2.0)),
        (removed, (1.0, 2.0, 9.0)),
        (least_of_none, (0.0, 3.0)),
        (to_a_whole_number, (0.0, 1.0)),
        (least_of_nan, (1.0,)),
        (nan_is_true, (1.0,)),
        (the_nan_of_math_is_true, (2.5,)),
        (a_whole_number_to_a_negative_power, (2.5, 0.0)),
        (two_names_of_one_list, (2.5,)),
        (a_power, (4.0, -4.0)),
        (zero_to_a_power, (2.5, 3.5)),
        (too_large, (1.0, -1.0)),
        (powers, (3.0, -3.0, 0.0)),
        (unpacked, (1.0, 2.0)),
        (from_the_end, (1.0, 3.0, 4.0)),
        (in_a_chain, (1.0,)),
    ]


def answered(run, x) -> float | None:
    """The answer of a program; None where it raises an error or becomes complex."""
    try:
        return float(run.algorithm(x)["y"])
    except (ArithmeticError, ValueError, IndexError, TypeError):
        return None


@pytest.mark.parametrize(("function", "values"), agreeing(), ids=lambda value: getattr(value, "__name__", ""))
def test_both_give_the_same_or_both_stop(function, values):
    run, graph = program(y=())(function), Graph()
    code = writer.function(graph, run(control(graph, "x")))
    for x, answer in zip(values, node.run([(code, [{"x": x} for x in values])])[0]):
        expected = answered(run, x)
        assert ("error" in answer) == (expected is None), (x, answer, expected)
        assert expected is None or np.array_equal(answer["y"], expected, equal_nan=True), (
            x,
            answer,
            expected,
        )


def test_a_product_of_whole_numbers_past_the_doubles_stops_the_page():
    """A linear congruential generator of modulus 2**31 leaves them; Python's whole numbers grow on."""

    def drawn(x):
        state = int(x)
        for _ in range(3):
            state = (state * 1103515245 + 12345) % 2147483648
        return {"y": state}

    graph = Graph()
    code = writer.function(graph, {"y": program(y=())(drawn)(control(graph, "x"))["y"]})
    answers = node.run([(code, [{"x": 3.0}, {"x": 2147483647.0}])])[0]
    assert all("past 2^53" in answer["error"] for answer in answers)


# -- the tables ----------------------------------------------------------------------------------------------
def test_the_grammar_has_the_tables_of_the_code():
    """Made anew by python -m widgets.kit.compiler.grammar."""
    document = grammar.DOCUMENT.read_text(encoding="utf-8")
    assert grammar.written(document) == document
    for call in operations.CALLS.values():
        assert f"`{call.name}`" in document and call.written.count("{}") == len(call.takes)


def test_each_helper_is_there():
    """Whatever generated code may call is exported by numbers.js."""
    source = f"(table=>c=>({{missing:[{','.join(operations.HELPERS)}].length-{len(operations.HELPERS)}}}))"
    assert node.run([(source, [{}])])[0] == [{"missing": 0.0}]
    written = [o.written for o in operations.ELEMENTWISE.values()] + [
        c.written for c in operations.CALLS.values()
    ]
    called = {name for text in written for name in re.findall(r"(?<![\w.])([a-z_]\w*)\(", text)}
    assert called <= set(operations.HELPERS)
