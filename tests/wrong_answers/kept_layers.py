"""Wrong answers to the puzzle *what a step holds*, each with some of the words that it gets."""

from engine.puzzles.kept_layers import SOLUTION, START

WRONG = {
    "the start": (
        START,
        "during the backward of layer 2 a step holds 27, not 36. The layers behind it have had their backward passes, and keep nothing any more.",
    ),
    "inputs never kept": (
        SOLUTION.replace("        now += inputs[i]\n", "        now += 0\n"),
        "after the forward of layer 0 a step holds 9, not 8. Each layer so far keeps its input and what is inside.",
    ),
    "nothing inside kept": (
        SOLUTION.replace("        if not recompute:\n            now += inside[i]\n", ""),
        "after the forward of layer 0 a step holds 9, not 1. Without recompute a layer keeps what is inside it, too.",
    ),
    "always kept": (
        SOLUTION.replace(
            "        if not recompute:\n            now += inside[i]\n", "        now += inside[i]\n"
        ),
        "after the forward of layer 0 a step holds 1, not 9. With recompute a layer keeps its input alone.",
    ),
    "the other way round": (
        SOLUTION.replace("if not recompute:", "if recompute:"),
        "after the forward of layer 0 a step holds 9, not 1. Without recompute a layer keeps what is inside it, too.",
    ),
    "not rebuilt": (
        SOLUTION.replace(
            "        if recompute:\n            now += inside[i]\n        amounts.append(now)\n        now -= inputs[i] + inside[i]",
            "        amounts.append(now)\n        now -= inputs[i] + (0 if recompute else inside[i])",
        ),
        "during the backward of layer 3 a step holds 12, not 4. What is inside layer 3 exists again while its backward pass runs.",
    ),
    "forward order": (
        SOLUTION.replace("reversed(range(len(inputs)))", "range(len(inputs))"),
        "during the backward of layer 2 a step holds 10, not 11. No layer has freed anything yet, and only layer 2 is rebuilt now.",
    ),
    "freed first": (
        SOLUTION.replace(
            "        amounts.append(now)\n        now -= inputs[i] + inside[i]",
            "        now -= inputs[i] + inside[i]\n        amounts.append(now)",
        ),
        "during the backward of layer 3 a step holds 36, not 27. A layer's own activations are still there during its backward pass; it frees them afterwards.",
    ),
    "the input stays": (
        SOLUTION.replace("now -= inputs[i] + inside[i]", "now -= inside[i]"),
        "during the backward of layer 2 a step holds 27, not 28. The layers behind it have had their backward passes, and keep nothing any more.",
    ),
    "what is inside stays": (
        SOLUTION.replace("now -= inputs[i] + inside[i]", "now -= inputs[i]"),
        "during the backward of layer 2 a step holds 27, not 35. The layers behind it have had their backward passes, and keep nothing any more.",
    ),
    "nothing is freed": (
        SOLUTION.replace("        now -= inputs[i] + inside[i]\n", ""),
        "during the backward of layer 2 a step holds 27, not 36. The layers behind it have had their backward passes, and keep nothing any more.",
    ),
    "rebuilt for good": (
        SOLUTION.replace(
            "now -= inputs[i] + inside[i]", "now -= inputs[i] + (0 if recompute else inside[i])"
        ),
        "during the backward of layer 2 a step holds 11, not 19. The layers behind it have had their backward passes, and keep nothing any more.",
    ),
    "all rebuilt at once": (
        SOLUTION.replace(
            "    for i in reversed", "    now += sum(inside) if recompute else 0\n    for i in reversed"
        ).replace(
            "        if recompute:\n            now += inside[i]\n        amounts.append(now)\n",
            "        amounts.append(now)\n",
        ),
        "during the backward of layer 3 a step holds 12, not 36. No layer has freed anything yet, and only layer 3 is rebuilt now.",
    ),
    "only forward": (
        SOLUTION.replace(
            "    for i in reversed(range(len(inputs))):\n        if recompute:\n            now += inside[i]\n        amounts.append(now)\n        now -= inputs[i] + inside[i]\n",
            "",
        ),
        "held([1, 1, 1, 1], [8, 8, 8, 8], False) gave 4 entries for 8 passes, a forward and a backward one for each layer.",
    ),
    "only the peak": (
        SOLUTION.replace("    return amounts", "    return max(amounts)"),
        "held([1, 1, 1, 1], [8, 8, 8, 8], False) must give a list of numbers, and gave 36.",
    ),
    "one layer's alone": (
        SOLUTION.replace(
            "        amounts.append(now)\n    for i in reversed",
            "        amounts.append(inputs[i] + (0 if recompute else inside[i]))\n    for i in reversed",
        ),
        "after the forward of layer 1 a step holds 18, not 9. Each layer so far keeps its input and what is inside.",
    ),
    "first layer's sizes": (
        SOLUTION.replace("now += inputs[i]\n", "now += inputs[0]\n"),
        "after the forward of layer 1 a step holds 17, not 18. Each layer so far keeps its input and what is inside.",
    ),
    "none": (
        SOLUTION.replace("    return amounts", "    amounts"),
        "held([1, 1, 1, 1], [8, 8, 8, 8], False) gave None. Does it end with a return?",
    ),
    "texts": (
        SOLUTION.replace("    return amounts", "    return [str(each) for each in amounts]"),
        "What is held must be a number; '9' is none.",
    ),
    "half of it": (
        SOLUTION.replace("    return amounts", "    return amounts[: len(inputs)]"),
        "held([1, 1, 1, 1], [8, 8, 8, 8], False) gave 4 entries for 8 passes, a forward and a backward one for each layer.",
    ),
    "twice the input": (
        SOLUTION.replace(
            "        if recompute:\n            now += inside[i]\n        amounts.append(now)",
            "        if recompute:\n            now += inside[i]\n        amounts.append(now + inputs[i])",
        ),
        "during the backward of layer 3 a step holds 36, not 37. No layer has freed anything yet, and only layer 3 runs now.",
    ),
    "the backward first": (
        SOLUTION.replace("    return amounts", "    return amounts[len(inputs):] + amounts[:len(inputs)]"),
        "after the forward of layer 0 a step holds 9, not 36. Each layer so far keeps its input and what is inside.",
    ),
}
