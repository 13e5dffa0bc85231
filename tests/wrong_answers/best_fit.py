"""Wrong answers to the puzzle *a best-fit allocator*, each with some of the words that it gets."""

from engine.puzzles.best_fit import SOLUTION, START

WRONG = {
    "first fit": (START, "of equal ones the lowest"),
    "worst fit": (
        SOLUTION.replace("min(fitting)", "max(fitting)"),
        "the smallest of these that is large enough",
    ),
    "never split": (
        SOLUTION.replace(
            "        if length > size:\n            free.append((start + size, length - size))\n", ""
        ),
        "Split the block",
    ),
    "never merged": (
        SOLUTION.replace("merged(free + [taken.pop(request[1])])", "free + [taken.pop(request[1])]"),
        "merge",
    ),
    "the rest first": (
        SOLUTION.replace(
            "free.append((start + size, length - size))", "free.append((start, length - size))"
        ).replace(
            "taken[name] = (start, size)\n        given.append(start)",
            "taken[name] = (start + length - size, size)\n        given.append(start + length - size)",
        ),
        "what is asked for comes first",
    ),
    "an exact fit is too small": (SOLUTION.replace("length >= size", "length > size"), "just that size"),
    "the highest of equal ones": (
        SOLUTION.replace("(length, start) for", "(length, -start) for").replace(
            "length, start = min(fitting)", "length, start = min(fitting)\n        start = -start"
        ),
        "of equal ones the lowest",
    ),
    "freed blocks are lost": (
        SOLUTION.replace("free = merged(free + [taken.pop(request[1])])", "taken.pop(request[1])"),
        "Free are 40 at 0",
    ),
    "no entry for a free": (
        SOLUTION.replace(
            "            given.append(None)\n            continue\n        _,",
            "            continue\n        _,",
        ),
        "entries for",
    ),
    "nothing": (SOLUTION.replace("    return given\n", ""), "Does it end with a return?"),
    "the lowest address": (
        SOLUTION.replace("min(fitting)", "min(fitting, key=lambda block: block[1])"),
        "do, but choose the smallest of these that is large enough, 20 at 50",
    ),
    "the last freed": (
        SOLUTION.replace("min(fitting)", "fitting[-1]"),
        "20 at 80 would do, but of equal ones the lowest is taken",
    ),
    "only neighbours below": (
        SOLUTION.replace("for start, length in sorted(blocks):", "for start, length in blocks:"),
        "Freed neighbours merge, on both sides and at once",
    ),
    "merged when it is too late": (
        SOLUTION.replace(
            "free = merged(free + [taken.pop(request[1])])", "free = merged(free) + [taken.pop(request[1])]"
        ),
        "Freed neighbours merge, on both sides and at once",
    ),
    "only exact fits": (
        SOLUTION.replace("length >= size", "length == size"),
        "what is not asked for stays free",
    ),
    "too small is large enough": (
        SOLUTION.replace("length >= size", "length >= size - 10"),
        "the 20 at 80 are too few",
    ),
    "all free bytes count": (
        SOLUTION.replace(
            "        if not fitting:\n",
            "        if not fitting and sum(length for start, length in free) >= size:\n            fitting = free and [(length, start) for start, length in free]\n        if not fitting:\n",
        ),
        "be, but they do not touch. None says so",
    ),
    "a gap after each": (
        SOLUTION.replace(
            "free.append((start + size, length - size))", "free.append((start + size + 1, length - size - 1))"
        ),
        "what is asked for comes first in its block, the rest stays free",
    ),
    "the rest is one too long": (
        SOLUTION.replace("free.append((start + size, length - size))", "free.append((start + size, length))"),
        " no block is large enough. None says so",
    ),
    "nothing is taken out": (
        SOLUTION.replace("        free.remove((start, length))\n", ""),
        "block begins at 70, so that what lies there would be written over",
    ),
    "sizes for addresses": (
        SOLUTION.replace("        given.append(start)\n", "        given.append(length)\n"),
        "block begins at 100, so that what lies there would be written over",
    ),
    "the end of it": (
        SOLUTION.replace("        given.append(start)\n", "        given.append(start + size)\n"),
        "what is asked for comes first in its block, the rest stays free",
    ),
    "0 for no room": (
        SOLUTION.replace(
            "            given.append(None)\n            continue\n        length",
            "            given.append(0)\n            continue\n        length",
        ),
        " no block is large enough. None says so",
    ),
    "-1 for no room": (
        SOLUTION.replace(
            "            given.append(None)\n            continue\n        length",
            "            given.append(-1)\n            continue\n        length",
        ),
        " no block is large enough. None says so",
    ),
    "an address for a free": (
        SOLUTION.replace(
            "            free = merged(free + [taken.pop(request[1])])\n            given.append(None)",
            "            given.append(taken[request[1]][0])\n            free = merged(free + [taken.pop(request[1])])",
        ),
        "A free takes nothing, so it has no address",
    ),
    "always from 0": (
        SOLUTION.replace(
            "taken[name] = (start, size)\n        given.append(start)",
            "taken[name] = (0, size)\n        given.append(0)",
        ),
        "free block begins at 0, so that what lies there would be written over",
    ),
    "one after the other": (
        "def addresses(requests, capacity):\n    top, given = 0, []\n    for request in requests:\n        if request[0] == 'free':\n            given.append(None)\n        elif top + request[2] <= capacity:\n            given.append(top)\n            top += request[2]\n        else:\n            given.append(None)\n    return given\n",
        "20 at 80 would do, but of equal ones the lowest is taken",
    ),
    "names and addresses": (
        SOLUTION.replace("    return given\n\n", "    return taken\n\n"),
        "(10, 20), 'c': (30, 30), 'd': (60, 40)}",
    ),
    "stops when it is full": (
        SOLUTION.replace(
            "            given.append(None)\n            continue\n        length",
            "            return given\n        length",
        ),
        "a free has one too, None",
    ),
}
