"""Reverse-mode differentiation of a short program of numbers, as an autograd engine does it: what each call
keeps, and the walk back over the calls.

A program is a list of (result, operator, inputs), names throughout; its last result is differentiated. Plain
Python with ``math`` alone, because a puzzle's page runs it too.
"""

from __future__ import annotations

import math
from typing import Any

OPERATORS = ("add", "mul", "exp")


def called(operator: str, inputs: list[float]) -> tuple[float, tuple[float, ...]]:
    """The result of an operator for its inputs' values, and the values that its gradient will need."""
    if operator == "add":
        return inputs[0] + inputs[1], ()
    if operator == "mul":
        return inputs[0] * inputs[1], (inputs[0], inputs[1])
    result = math.exp(inputs[0])
    return result, (result,)


def passed_back(operator: str, kept: Any, grad: float) -> list[float]:
    """The gradients of an operator's inputs, from its result's: x + y passes the gradient on, x·y multiplies
    it by the other factor, exp(x) by its own result."""
    if operator == "add":
        return [grad, grad]
    if operator == "mul":
        return [grad * kept[1], grad * kept[0]]
    return [grad * kept[0]]


def recorded(program: Any, leaves: dict[str, float]) -> list:
    """The nodes that the calls of a program leave behind: (result, operator, inputs, kept)."""
    values, nodes = dict(leaves), []
    for result, operator, inputs in program:
        values[result], kept = called(operator, [values[name] for name in inputs])
        nodes.append((result, operator, inputs, kept))
    return nodes


def walked_back(nodes: list, leaves: Any, hooks: dict) -> tuple[dict, list]:
    """The gradient of every tensor that the last result depends on, and the calls of hooks, (name, gradient).

    A tensor's gradient is complete once all nodes that used it have run; the latest node first sees to that.
    Then its hook runs once, and what the hook returns takes the gradient's place."""
    grads, calls = {nodes[-1][0]: 1.0}, []
    for result, operator, inputs, kept in reversed(nodes):
        if result not in grads:
            continue
        hooked(grads, result, hooks, calls)
        for name, part in zip(inputs, passed_back(operator, kept, grads[result])):
            grads[name] = grads.get(name, 0.0) + part
    for leaf in leaves:
        if leaf in grads:
            hooked(grads, leaf, hooks, calls)
    return grads, calls


def hooked(grads: dict, name: str, hooks: dict, calls: list) -> None:
    """Run the hook of a tensor whose gradient is complete, if it has one."""
    if name in hooks:
        calls.append((name, grads[name]))
        grads[name] = hooks[name](grads[name])
