"""Programs with records, and with functions that Python runs on arrays."""

from typing import NamedTuple

import numpy as np
import pytest

from engine.base.program import elementwise, for_each, mean, program
from tests import node
from widgets.kit.compiler import writer
from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.refusal import NotTranslatable
from widgets.kit.compiler.symbols import control


class Order(NamedTuple):
    size: float
    lines: list[float]


class Stock:
    def __init__(self, sold, least, orders):
        self.sold, self.least, self.orders = sold, least, orders


class Doubling:
    def __init__(self, value):
        self.value = max(value, 2 * value)


def sell(stock: Stock, order: Order):
    stock.sold += order.size
    stock.least = min(stock.least, order.size)
    stock.orders.append(order)
    order.lines.append(stock.sold)


@program(sold=(), least=(), lines=20, sizes=20)
def trade(x, count):
    stock, lines = Stock(0.0, orders=[], least=9.0), []
    for i in range(int(count)):
        sell(stock, Order(x + i, lines=lines))
    stock.orders[0] = Order(stock.orders[1].size, lines)
    sizes = [stock.orders[i].size for i in range(len(stock.orders))]
    return {"sold": stock.sold, "least": stock.least, "lines": lines, "sizes": sizes}


@elementwise
def risen(price, rate, floor):
    return np.where((price > floor) & ~(rate < 0.0), price / rate, np.sqrt(price) ** 2 - floor)


@elementwise
def outlook(order: Order, rate, floor):
    found = for_each(risen, (order.lines,), rate, floor)
    return Order(mean(found) + order.size % rate, found)


@program(size=(), lines=4)
def foreseen(x, rate):
    found = outlook(Order(x, [x, 2.0, -1.0, 4.0]), rate, 1.5)
    return {"size": found.size, "lines": found.lines}


def answers(run, *states):
    graph = Graph()
    names = [f"n{i}" for i in range(len(states[0]))]
    code = writer.function(graph, run(*(control(graph, name) for name in names)))
    return node.run([(code, [dict(zip(names, state)) for state in states])])[0]


def test_records_are_made_read_and_changed():
    for state, found in zip(((0.5, 3.0), (-2.0, 12.0)), answers(trade, (0.5, 3.0), (-2.0, 12.0))):
        for name, expected in trade(*state).items():
            np.testing.assert_array_equal(found[name], expected)


def test_what_python_computes_over_arrays_a_page_computes_one_by_one():
    """Also where Python's own floats would raise: at a rate of 0."""
    states = np.array([(0.5, 2.0), (3.0, 0.0), (7.0, -1.0), (2.5, 0.25)])
    x, rate = states.T
    lines = np.stack([x, *np.full((3, 4), [[2.0], [-1.0], [4.0]])])
    with np.errstate(all="ignore"):
        expected = outlook(Order(x, lines), rate, 1.5)
    for i, found in enumerate(answers(foreseen, *states.tolist())):
        np.testing.assert_allclose(found["size"], expected.size[i], 1e-15)
        np.testing.assert_array_equal(found["lines"], expected.lines[:, i])


@elementwise
def branching(x):
    return x if x > 0 else -x


@elementwise
def joining(x):
    return np.where(x & 1.0, x, 0.0)


@program(value=())
def by_branching(x):
    return {"value": branching(x)}


@program(value=())
def by_joining(x):
    return {"value": joining(x)}


@program(value=())
def of_half_an_order(x):
    return {"value": Order(x).size}


@program(value=())
def of_no_record(x):
    return {"value": Doubling(x).value}


@program(value=())
def of_no_member(x):
    return {"value": Order(x, [x]).price}


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (by_branching, r"elementwise function branches on.*np\.where"),
        (by_joining, r"x & 1\.0 of numbers.*compare them first"),
        (of_half_an_order, r"Order\(\) without all its fields"),
        (of_no_record, r"Doubling\(x\)"),
        (of_no_member, r"Order\(x, \[x\]\)\.price.*size, lines"),
    ],
)
def test_what_a_page_could_not_keep_to_is_refused(run, words):
    graph = Graph()
    with pytest.raises(NotTranslatable, match=rf"test_records\.py:\d+: .*{words}"):
        writer.function(graph, run(control(graph, "x")))
