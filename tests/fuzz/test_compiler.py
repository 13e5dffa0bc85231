"""Random array expressions, programs and modules of the compiler's grammar: node gives what Python gives, to
the last bit.

One process of node runs all cases of a test. An operation that the tables of operations.py do not call exact
is tried by itself, within what they promise.
"""

import ast
import importlib.util
import sys
from bisect import bisect_left
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests import node
from tests.fuzz import expressions, modules
from tests.fuzz.cases import SEED, TIMES
from widgets.kit.compiler import operations, writer
from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.modules.bundle import RUNTIME, offered
from widgets.kit.compiler.modules.names import BUILT_IN_METHODS, method_names
from widgets.kit.compiler.modules.translate import Module
from widgets.kit.compiler.refusal import NotTranslatable
from widgets.kit.compiler.symbols import control, lookup

EXPRESSIONS, PROGRAMS, ELEMENTWISE, FUNCTIONS, POINTS = 300, 200, 200, 300, 60
STATES = 4
TABLE, GRID = np.array([0.5, -2.0, 3.25]), np.array([[1.0, -0.5, 2.0], [0.0, 4.0, -7.5]])
RAISED = (ZeroDivisionError, ValueError, IndexError, OverflowError)


def times(count: int) -> int:
    return max(1, round(count * TIMES))


def same(one, other) -> bool:
    """Whether two columns are equal to the last bit; any NaN equals any other."""
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    return (
        one.shape == other.shape
        and ((one.view(np.int64) == other.view(np.int64)) | (np.isnan(one) & np.isnan(other))).all()
    )


def evaluated(source: str, x, y, z):
    """The expression on numbers, or on symbols."""
    v = np.stack([x, y, z])
    given = {"x": x, "y": y, "z": z, "v": v, "w": np.stack([v, v * 2.0]), "TABLE": TABLE, "GRID": GRID}
    return eval(source, {"np": np, "lookup": lookup, "C": np.float64} | given)


def on_symbols(source: str) -> str:
    graph = Graph()
    return writer.function(graph, {"out": evaluated(source, *(control(graph, name) for name in "xyz"))})


def test_random_expressions():
    random, jobs, sources, refused = Random(f"{SEED} expressions"), [], [], 0
    while len(sources) < times(EXPRESSIONS):
        source = expressions.number(random, random.choice(expressions.SHAPES), random.choice((2, 3, 4, 5)))
        with np.errstate(all="ignore"):
            try:
                code, fault = on_symbols(source), ""
            except ValueError as refusal:  # a constant that came out as NaN, or an index past the end
                code, fault = "", str(refusal)
        if fault:
            assert "constant of the widget" in fault, source
            refused += 1
            continue
        sources.append(source)
        jobs.append((code, [expressions.state(random) for _ in range(STATES)]))
    wrong = []
    for source, (_, states), answers in zip(sources, jobs, node.run(jobs)):
        for state, answer in zip(states, answers):
            with np.errstate(all="ignore"):
                try:
                    expected = np.ravel(evaluated(source, *(np.float64(state[name]) for name in "xyz")))
                except IndexError:
                    expected = None
            found = answer.get("out")
            if (expected is None) != ("error" in answer) or not (
                expected is None or same(np.ravel(found), expected)
            ):
                wrong.append(f"{source}\n  at {state}: node {answer}, Python {expected}")
                break
    assert refused < len(sources) / 2
    assert not wrong, f"{len(wrong)} of {len(sources)} expressions differ:\n" + "\n".join(
        sorted(wrong, key=len)[:5]
    )


def imported(path, head: str, texts: list[str]):
    """A module of these texts."""
    path.write_text(head + "\n\n" + "\n\n\n".join(texts) + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def programs(path, count: int) -> tuple[list, list[str]]:
    """``count`` random programs, written into a module and imported from it."""
    random = Random(f"{SEED} programs")
    texts = [expressions.Programmed(random, f"p{i}").text() for i in range(count)]
    made = imported(path, expressions.HEAD, texts)
    return [getattr(made, f"p{i}") for i in range(count)], texts


def in_python(run, state) -> dict | None:
    """What the program gives; None where it raises."""
    given = [state["x"], state["y"], state["z"], 2.0]
    try:
        found = run.algorithm(state["x"], state["y"], state["z"], given)
        column = np.full(60, np.nan)
        column[: len(found["values"])] = found["values"]
        return {name: float(found[name]) for name in ("total", "turns")} | {"values": column}
    except RAISED:
        return None


def test_random_programs(tmp_path):
    runs, texts = programs(tmp_path / "random_programs.py", times(PROGRAMS))
    random, jobs, known, refused = Random(f"{SEED} states"), [], [], []
    for run, text in zip(runs, texts):
        graph = Graph()
        x, y, z = (control(graph, name) for name in "xyz")
        try:
            code = writer.function(graph, run(x, y, z, np.stack([x, y, z, 2.0])))
        except NotTranslatable as words:
            refused.append(f"{words}\n{text}")
            continue
        known.append((run, text))
        jobs.append((code, [expressions.state(random) for _ in range(STATES)]))
    wrong, gave = [], 0
    for (run, text), (_, states), answers in zip(known, jobs, node.run(jobs)):
        for state, answer in zip(states, answers):
            expected = in_python(run, state)
            gave += expected is not None
            if "past 2^53" in answer.get("error", ""):
                continue  # where Python's whole numbers grow on, the page stops
            fits = (
                "error" in answer
                if expected is None
                else "error" not in answer
                and all(
                    same(np.asarray(answer[name]) + 0.0, np.asarray(expected[name]) + 0.0)
                    for name in expected
                )
            )
            if not fits:
                wrong.append(f"{text}\n  at {state}: node {answer}, Python {expected}")
                break
    assert not wrong, f"{len(wrong)} of {len(known)} programs differ:\n" + "\n".join(
        sorted(wrong, key=len)[:3]
    )
    assert len(refused) < len(runs) / 20, f"{len(refused)} refused:\n" + "\n".join(refused[:3])
    assert gave > len(jobs) * STATES / 3  # most of them come to their end


def test_random_elementwise_functions(tmp_path):
    """Python asks each about arrays, the page about one number after the other."""
    random = Random(f"{SEED} elementwise")
    drawn = [expressions.elementwise(random, random.choice((2, 3, 4))) for _ in range(times(ELEMENTWISE))]
    texts = [
        f"@elementwise\ndef e{i}(x, y, z):\n    return {source} + 0.0 * x\n\n\n"
        f"@program(value=())\ndef p{i}(x, y, z):\n    return {{'value': e{i}(x, y, z)}}"
        for i, source in enumerate(drawn)
    ]
    head = "import numpy as np\n\nfrom engine.base.program import elementwise, program"
    made = imported(tmp_path / "random_elementwise.py", head, texts)
    jobs, expected = [], []
    for i in range(len(drawn)):
        graph, states = Graph(), [expressions.state(random) for _ in range(STATES)]
        code = writer.function(graph, getattr(made, f"p{i}")(*(control(graph, name) for name in "xyz")))
        jobs.append((code, states))
        with np.errstate(all="ignore"):
            columns = (np.array([state[name] for state in states]) for name in "xyz")
            expected.append(getattr(made, f"e{i}")(*columns))
    for source, (_, states), answers, column in zip(drawn, jobs, node.run(jobs), expected):
        found = [answer.get("value", answer.get("error")) for answer in answers]
        assert same(np.array(found, dtype=float) + 0.0, column + 0.0), (source, states, found, column)


# each function of a translated module, called with numbers and a text: what Python's repr shows of its result
CALLED = """async ([source, calls]) => {
  const python = await import("/assets/fit/python.js"), library = await import("/assets/fit/library.js");
  await import("/assets/fit/numpy.js");
  const offered = { ...python, ...library };
  const made = new Function(...Object.keys(offered), `return ${source}`)(...Object.values(offered));
  return calls.map(([name, whole, real, text]) => {
    try { return python.$py_repr(made[`$${name}`](BigInt(whole), real, text)); }
    catch (error) { return error.constructor.$made?.$__name__ ?? `JavaScript: ${error.message}`; }
  });
}"""


def repr_of(function, given) -> str:
    """What Python shows of a function's result, or the name of what it raises."""
    try:
        return repr(function(*given))
    except Exception as error:
        return type(error).__name__


def test_random_modules(tmp_path):
    random = Random(f"{SEED} modules")
    texts = [modules.Drawn(random, f"f{i}").source() for i in range(times(FUNCTIONS))]
    made = imported(tmp_path / "random_modules.py", modules.HEAD, texts)
    known, tree = offered(*RUNTIME.values()), ast.parse(Path(made.__file__).read_text(encoding="utf-8"))
    body = Module(made.__name__, Path(made.__file__), known, BUILT_IN_METHODS | {*method_names(tree)}).body()
    calls = [(f"f{i}", *modules.state(random)) for i in range(len(texts)) for _ in range(STATES)]
    expected = [repr_of(getattr(made, name), given) for name, *given in calls]
    answers = node.page().evaluate(CALLED, [body, [(n, str(i), x, s) for n, i, x, s in calls]])
    wrong = {
        name: f"{texts[int(name[1:])]}\n  at {given}:\n  node   {answer}\n  Python {shown}"
        for (name, *given), answer, shown in zip(calls, answers, expected, strict=True)
        if answer != shown
    }
    assert not wrong, f"{len(wrong)} of {len(texts)} functions differ:\n" + "\n".join(
        sorted(wrong.values(), key=len)[:5]
    )
    assert sum(shown[0] == "(" for shown in expected) > len(calls) / 2  # most of them come to their end


def test_the_runtime_offers_what_it_is_read_to_offer():
    """The names of modules that stand in JavaScript are read out of its text."""
    given = node.page().evaluate(
        """async () => {
          const { $modules } = await import("/assets/fit/python.js");
          await import("/assets/fit/numpy.js");
          const names = of => Object.keys(of).map(each => each.slice(1));
          return Object.entries($modules).map(([name, of]) => [name, names(of)]);
        }""",
        None,
    )
    there, read = {name: frozenset(names) - {"__name__"} for name, names in given}, offered(*RUNTIME.values())
    assert {name: there[name] for name in read} == read and len(there["numpy"]) > 50


CLOSE = [
    operation for operation in operations.ELEMENTWISE.values() if operation.precision == operations.CLOSE
]


def points(random: Random, count: int):
    """Numbers of every size."""
    for _ in range(count):
        kind = random.random()
        size = random.uniform(-4, 4) if kind < 0.5 else random.uniform(-1, 1) * 10 ** random.uniform(-9, 9)
        yield random.choice((size, size, random.choice(expressions.VALUES)))


@pytest.mark.parametrize("operation", CLOSE, ids=lambda operation: operation.name)
def test_a_function_of_a_library_is_as_near_as_promised(operation):
    random = Random(f"{SEED} {operation.name}")
    states = [dict(zip("xyz", islice(points(random, 3), 3))) for _ in range(times(POINTS))]
    graph = Graph()
    given = [control(graph, name) for name in "xyz"[: operation.arity]]
    answers = node.run([(writer.function(graph, {"out": operation.function(*given)}), states)])[0]
    for state, answer in zip(states, answers):
        with np.errstate(all="ignore"):
            expected = operation.function(*(np.float64(state[name]) for name in "xyz"[: operation.arity]))
            off = abs(answer["out"] - expected)
        assert same(answer["out"], expected) or off <= 4 * np.spacing(abs(expected)), (
            state,
            answer,
            expected,
        )


def test_a_sum_is_as_near_as_promised():
    random, graph = Random(f"{SEED} sums"), Graph()
    x, y, z = (control(graph, name) for name in "xyz")
    column = np.linspace(x, y, 300) * z + x
    states = [expressions.state(random) for _ in range(times(POINTS))]
    answers = node.run([(writer.function(graph, {"sum": np.sum(column), "all": column}), states)])[0]
    for state, answer in zip(states, answers):
        with np.errstate(all="ignore"):
            expected, size = np.sum(answer["all"]), np.sum(np.abs(answer["all"]))
        assert same(answer["sum"], expected) or abs(answer["sum"] - expected) <= 300 * size * 2.0**-53, state


def test_the_tools_of_this_test():
    """Bits are compared as bits."""
    assert same(np.nan, -np.nan) and not same(0.0, -0.0) and not same(1.0, np.nextafter(1.0, 2.0))
    assert bisect_left([1.0], 1.0) == 0
