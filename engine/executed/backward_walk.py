"""The walk of autograd's engine through a graph, run: each node once, when all of its gradients have arrived.

Lists and dictionaries alone, because a puzzle of lesson 13 runs these lines in the page.
"""

from __future__ import annotations

from typing import Any


def consumers(graph: dict, root: str) -> dict:
    """Name -> how many gradients a node gets, for all nodes that the root depends on."""
    waiting, seen = [root], {root: 0}
    while waiting:
        for name in graph[waiting.pop()]:
            if name not in seen:
                seen[name] = 0
                waiting.append(name)
            seen[name] += 1
    return seen


def walked(graph: dict, root: str, run: Any) -> dict:
    """The gradient of each leaf. ``graph`` has the inputs of each node, none for a leaf, and ``run(name,
    gradient)`` gives a gradient for each input.

    torch/csrc/autograd/engine.cpp does the same with a count of dependencies; leaves out streams, hooks and
    the order among nodes that are ready.
    """
    left, sums, leaves = consumers(graph, root), {root: 1}, {}
    ready = [root]
    while ready:
        name = ready.pop()
        if not graph[name]:
            leaves[name] = sums[name]
            continue
        for each, gradient in zip(graph[name], run(name, sums[name])):
            sums[each] = sums.get(each, 0) + gradient
            left[each] -= 1
            if left[each] == 0:
                ready.append(each)
    return leaves
