"""Wrong answers to the puzzle *pick the sizes to capture*, each with some of the words that it gets."""

from engine.puzzles.pick_buckets import SOLUTION, START

WRONG = {
    "equal steps": (START, "The best sizes pad"),
    "powers of two": (
        "def sizes_to_capture(counts, kept):\n    return [2 ** (7 - i) for i in range(min(kept, 8))][::-1]\n",
        "The best sizes pad",
    ),
    "the commonest batches": (
        "def sizes_to_capture(counts, kept):\n    order = sorted(range(1, 128), key=lambda b: -counts[b])\n    return sorted(order[:kept - 1] + [128])\n",
        "The best sizes pad",
    ),
    "the largest is left out": (
        SOLUTION.replace("return sizes[::-1]", "return sizes[:0:-1] or [1]"),
        "128 must be among them",
    ),
    "too many": (
        "def sizes_to_capture(counts, kept):\n    return list(range(1, 129))\n",
        "you may capture 2",
    ),
    "equal counts": (
        "def sizes_to_capture(counts, kept):\n    total, found, seen = sum(counts), [], 0\n    for b in range(1, 129):\n        seen += counts[b]\n"
        "        if seen * kept >= total * (len(found) + 1) and len(found) < kept - 1:\n            found.append(b)\n    return found + [128]\n",
        "The best sizes pad",
    ),
    "a fraction": (START.replace("//", "/"), "whole numbers from 1 to 128"),
    "zero": (START.replace("(i + 1)", "i"), "whole numbers from 1 to 128"),
    "nothing": (START.replace("return [", "found = ["), "Does it end with a return?"),
    "halved from the top": (
        "def sizes_to_capture(counts, kept):\n    sizes = [128]\n    while len(sizes) < kept:\n        sizes.append(max(1, sizes[-1] // 3))\n    return sizes\n",
        "all run with 128",
    ),
    "the smallest batches": (
        "def sizes_to_capture(counts, kept):\n    return list(range(1, kept)) + [128]\n",
        "all run with 128",
    ),
    "the largest batches": (
        "def sizes_to_capture(counts, kept):\n    return list(range(129 - kept, 129))\n",
        "all run with 127",
    ),
    "only the largest": (
        "def sizes_to_capture(counts, kept):\n    return [128]\n",
        "one more never pads more",
    ),
    "the mean": (
        "def sizes_to_capture(counts, kept):\n    mean = sum(b * counts[b] for b in range(129)) // sum(counts)\n    return [mean] * (kept > 1) + [128]\n",
        "all run with 128",
    ),
    "the median": (
        "def sizes_to_capture(counts, kept):\n    seen = 0\n    for b in range(1, 129):\n        seen += counts[b]\n        if 2 * seen >= sum(counts):\n            return [b] * (kept > 1) + [128]\n",
        "all run with 128",
    ),
    "the commonest alone": (
        "def sizes_to_capture(counts, kept):\n    return [counts.index(max(counts))] * (kept > 1) + [128]\n",
        "all run with 128",
    ),
    "steps, not rows": (
        SOLUTION.replace("j * (steps[j] - steps[i]) - (rows[j] - rows[i])", "(steps[j] - steps[i])"),
        "one more never pads more",
    ),
    "rows, not what they lack": (
        SOLUTION.replace("j * (steps[j] - steps[i]) - (rows[j] - rows[i])", "(rows[j] - rows[i])"),
        "one more never pads more",
    ),
    "padded as if all were one": (
        SOLUTION.replace(
            "j * (steps[j] - steps[i]) - (rows[j] - rows[i])", "(j - i) * (steps[j] - steps[i])"
        ),
        "all run with 128",
    ),
    "greedy, one after the other": (
        "def sizes_to_capture(counts, kept):\n    def padded(sizes):\n        return sum(n * (min(s for s in sizes if s >= b) - b) for b, n in enumerate(counts))\n    sizes = [128]\n    while len(sizes) < kept:\n        sizes.append(min(range(1, 128), key=lambda s: padded(sizes + [s])))\n    return sizes\n",
        "all run with 79",
    ),
    "one graph short": (
        SOLUTION.replace("range(kept)", "range(max(1, kept - 1))"),
        "one more never pads more",
    ),
    "one too many": (SOLUTION.replace("range(kept)", "range(kept + 1)"), "you may capture 2"),
    "counted from 0": (
        SOLUTION.replace("sizes.append(j)", "sizes.append(j - 1)"),
        "128 must be among them, or the largest batches fit into none",
    ),
    "as many as there are batches": (
        "def sizes_to_capture(counts, kept):\n    return [b for b in range(len(counts)) if counts[b]]\n",
        "you may capture 2",
    ),
    "the counts": (
        "def sizes_to_capture(counts, kept):\n    return sorted(counts)[-kept:]\n",
        "sizes are whole numbers from 1 to 128",
    ),
    "the padding": (
        SOLUTION.replace("return sizes[::-1]", "return least[-1]"),
        " a list of batch sizes, and gave 502545",
    ),
    "one size": (
        "def sizes_to_capture(counts, kept):\n    return 128\n",
        "ive a list of batch sizes, and gave 128",
    ),
    "texts": (
        "def sizes_to_capture(counts, kept):\n    return [str(128)]\n",
        "sizes are whole numbers from 1 to 128",
    ),
    "past the largest": (
        "def sizes_to_capture(counts, kept):\n    return [64, 256][-kept:]\n",
        "sizes are whole numbers from 1 to 128",
    ),
}
