"""Wrong answers to the puzzle *hide the AllReduce*, each with some of the words that it gets."""

from engine.puzzles.hide_buckets import SOLUTION, START

WRONG = {
    "each on its own": (START, "for start-ups"),
    "all at once": (START.replace("[1] * len(sizes)", "[len(sizes)]"), "before its first AllReduce"),
    "always three": (
        START.replace("[1] * len(sizes)", "[3] * (len(sizes) // 3) + [1] * (len(sizes) % 3)"),
        "could be through at",
    ),
    "whatever is ready": (
        "def buckets(ready, sizes, start_up, per_mb):\n    counts, done, free = [], 0, 0\n    while done < len(sizes):\n"
        "        now = max(free, ready[done])\n        count = len([r for r in ready[done:] if r <= now])\n"
        "        free = now + start_up + per_mb * sum(sizes[done:done + count])\n        counts.append(count)\n        done += count\n"
        "    return counts\n",
        "could be through at",
    ),
    "a cap for all": (
        "def buckets(ready, sizes, start_up, per_mb):\n    counts, held = [0], 0\n    for size in sizes:\n"
        "        if held >= 30:\n            counts.append(0)\n            held = 0\n        counts[-1] += 1\n        held += size\n    return counts\n",
        "could be through at",
    ),
    "as if there were no queue": (
        SOLUTION.replace("max(ends[i], ready[j - 1])", "ready[j - 1]"),
        "could be through at",
    ),
    "as if the gradients were there": (
        SOLUTION.replace("max(ends[i], ready[j - 1])", "ends[i]"),
        "could be through at",
    ),
    "start-ups forgotten": (SOLUTION.replace("start + start_up +", "start +"), "could be through at"),
    "the order of the forward pass": (SOLUTION.replace("counts[::-1]", "counts"), "could be through at"),
    "the last is left over": (START.replace("len(sizes)", "(len(sizes) - 1)"), "gradients into buckets"),
    "places for counts": (START.replace("[1] * len(sizes)", "list(range(len(sizes)))"), "at least 1"),
    "megabytes for counts": (START.replace("[1] * len(sizes)", "[sum(sizes)]"), "gradients into buckets"),
    "nothing": (SOLUTION.replace("return counts", "counts"), "Does it end with a return?"),
    "ready at the first of them": (SOLUTION.replace("ready[j - 1]", "ready[i]"), "takes 1 ms for start-ups"),
    "the longest": (
        SOLUTION.replace("end, i = min(options)", "end, i = max(options)"),
        "takes 1 ms for start-ups",
    ),
    "a start-up for each gradient": (
        SOLUTION.replace("start + start_up + per_mb", "start + start_up * (j - i) + per_mb"),
        "takes 8 ms for start-ups",
    ),
    "one too many": (
        SOLUTION.replace("    return counts[::-1]", "    return counts[::-1] + [1]"),
        "s 9 gradients into buckets; there are 8",
    ),
    "empty buckets": (
        SOLUTION.replace("    return counts[::-1]", "    return [0] + counts[::-1]"),
        "is how many gradients a bucket holds, a whole number and at least 1",
    ),
    "two by two": (
        SOLUTION.replace(
            "    return counts[::-1]", "    return [2] * (len(sizes) // 2) + [1] * (len(sizes) % 2)"
        ),
        "takes 1.5 ms for start-ups",
    ),
    "in two halves": (
        SOLUTION.replace(
            "    return counts[::-1]",
            "    half = max(1, len(sizes) // 2)\n    return [half] + [len(sizes) - half] * (len(sizes) > half)",
        ),
        "takes 2 ms for start-ups",
    ),
    "halves of counts": (
        SOLUTION.replace("    return counts[::-1]", "    return [each / 2 for each in counts[::-1]]"),
        "is how many gradients a bucket holds, a whole number and at least 1",
    ),
    "how many buckets": (
        SOLUTION.replace("    return counts[::-1]", "    return len(counts)"),
        " must give a list of counts, and gave 6",
    ),
    "the bandwidth is forgotten": (
        SOLUTION.replace("+ per_mb * sum(sizes[i:j])", ""),
        "takes 1 ms for start-ups",
    ),
    "nothing is sent before the end": (
        SOLUTION.replace("start = max(ends[i], ready[j - 1])", "start = max(ends[i], ready[-1])"),
        "takes 1 ms for start-ups",
    ),
}
