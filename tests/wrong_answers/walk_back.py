"""Wrong answers to the puzzle *autograd's engine*, each with some of the words that it gets."""

from engine.puzzles.walk_back import SOLUTION, START

WRONG = {
    "the start": (START, "x ran with the gradient 3; in all it is 5: a had not run yet, and uses x too."),
    "sums but too early": (
        SOLUTION.replace(
            "            if left[each] == 0:\n                ready.append(each)",
            "            ready.append(each)",
        ),
        "x ran with the gradient 3; in all it is 5: a had not run yet, and uses x too.",
    ),
    "never ready": (
        SOLUTION.replace("            if left[each] == 0:\n", "            if left[each] == 1:\n"),
        "The leaf w has no gradient in what came back; it should have 10. Did it never become ready?",
    ),
    "the last gradient alone": (
        SOLUTION.replace("gradients.get(each, 0) + gradient", "gradient"),
        "x ran with the gradient 2; in all it is 5. The gradients that b and a sent add up.",
    ),
    "the first gradient alone": (
        SOLUTION.replace(
            "gradients[each] = gradients.get(each, 0) + gradient", "gradients.setdefault(each, gradient)"
        ),
        "x ran with the gradient 3; in all it is 5. The gradients that b and a sent add up.",
    ),
    "the largest": (
        SOLUTION.replace("gradients.get(each, 0) + gradient", "max(gradients.get(each, 0), gradient)"),
        "x ran with the gradient 3; in all it is 5. The gradients that b and a sent add up.",
    ),
    "the mean": (
        SOLUTION.replace(
            "gradients.get(each, 0) + gradient", "(gradients.get(each, gradient) + gradient) / 2"
        ),
        "x ran with the gradient 2.5; in all it is 5. The gradients that b and a sent add up.",
    ),
    "the product": (
        SOLUTION.replace("gradients.get(each, 0) + gradient", "gradients.get(each, 1) * gradient"),
        "x ran with the gradient 6; in all it is 5. The gradients that b and a sent add up.",
    ),
    "the root's is 0": (
        SOLUTION.replace("{root: 1}, [root], {}", "{root: 0}, [root], {}"),
        "loss ran with the gradient 0; in all it is 1, because the root's gradient with respect to itself is 1.",
    ),
    "counted once each": (
        SOLUTION.replace("            left[each] += 1\n", "            left[each] = 1\n"),
        "x ran with the gradient 3; in all it is 5: a had not run yet, and uses x too.",
    ),
    "all of the graph counted": (
        SOLUTION.replace(
            "    left, waiting = {root: 0}, [root]\n    while waiting:\n        for each in graph[waiting.pop()]:\n            if each not in left:\n                left[each] = 0\n                waiting.append(each)\n            left[each] += 1\n",
            "    left = {name: 0 for name in graph}\n    for name in graph:\n        for each in graph[name]:\n            left[each] += 1\n",
        ),
        "The leaf w has no gradient in what came back; it should have 6. Did it never become ready?",
    ),
    "visited again": (
        SOLUTION.replace(
            "            if each not in left:\n                left[each] = 0\n                waiting.append(each)\n            left[each] += 1",
            "            waiting.append(each)\n            left[each] = left.get(each, 0) + 1",
        ),
        "The leaf w has no gradient in what came back; it should have 20. Did it never become ready?",
    ),
    "leaves run too": (
        SOLUTION.replace(
            "        if not graph[name]:\n            leaves[name] = gradients[name]\n            continue\n",
            "",
        ),
        "w is a leaf: it has no backward to run, its gradient is the result.",
    ),
    "every node's": (
        SOLUTION.replace(
            "            leaves[name] = gradients[name]\n            continue\n", "            continue\n"
        ).replace("    return leaves", "    return gradients"),
        "'loss' is no leaf that loss depends on, so it is not in the result.",
    ),
    "no leaves": (
        SOLUTION.replace("            leaves[name] = gradients[name]\n", ""),
        "The leaf w has no gradient in what came back; it should have 10. Did it never become ready?",
    ),
    "names alone": (
        SOLUTION.replace("    return leaves", "    return list(leaves)"),
        "backward(graph, 'loss', run) must give a dictionary, leaf -> gradient, and gave ['w', 'x'].",
    ),
    "none": (
        SOLUTION.replace("    return leaves", "    leaves"),
        "backward(graph, 'loss', run) gave None. Does it end with a return?",
    ),
    "gradients as texts": (
        SOLUTION.replace("leaves[name] = gradients[name]", "leaves[name] = str(gradients[name])"),
        "The gradient of w is 10, not '10': y sent it, and run gives its gradients in the order of graph['y'].",
    ),
    "inputs backwards": (
        SOLUTION.replace("zip(graph[name], run", "zip(reversed(graph[name]), run"),
        "The gradient of w is 10, not 6: y sent it, and run gives its gradients in the order of graph['y'].",
    ),
    "run with 1": (
        SOLUTION.replace("run(name, gradients[name])", "run(name, 1)"),
        "y ran with the gradient 1; in all it is 2, what loss sent.",
    ),
    "depth first by recursion": (
        "def backward(graph, root, run):\n    leaves = {}\n\n    def go(name, gradient):\n        if not graph[name]:\n            leaves[name] = leaves.get(name, 0) + gradient\n            return\n        for each, part in zip(graph[name], run(name, gradient)):\n            go(each, part)\n\n    go(root, 1)\n    return leaves\n",
        "x ran with the gradient 2; in all it is 5: b had not run yet, and uses x too.",
    ),
    "in the graph's order reversed": (
        "def backward(graph, root, run):\n    gradients = {root: 1}\n    for name in reversed(list(graph)):\n        if graph[name] and name in gradients:\n            for each, part in zip(graph[name], run(name, gradients[name])):\n                gradients[each] = gradients.get(each, 0) + part\n    return {name: gradients[name] for name in gradients if not graph[name]}\n",
        "The leaf w has no gradient in what came back; it should have 10. Did it never become ready?",
    ),
    "every node of the graph": (
        "def backward(graph, root, run):\n    gradients = {name: 0 for name in graph}\n    gradients[root] = 1\n    for name in graph:\n        if graph[name]:\n            for each, part in zip(graph[name], run(name, gradients[name])):\n                gradients[each] += part\n    return {name: gradients[name] for name in graph if not graph[name]}\n",
        "other ran, and loss does not depend on it.",
    ),
}
