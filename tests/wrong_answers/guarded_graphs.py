"""Wrong answers to the puzzle *guards, and a cache of graphs*, each with some of the words that it gets."""

from engine.puzzles.guarded_graphs import SOLUTION, START

WRONG = {
    "a graph for each size": (START, "Its guards hold: nothing is compiled"),
    "one for everything": (
        SOLUTION.replace("None if differs and size > 1 else size", "None"),
        "Graphs: 0 for float32 100. No guards hold",
    ),
    "the oldest first": (
        SOLUTION.replace(
            "                found = number", "                found = number if found is None else found"
        ),
        "the newest runs",
    ),
    "0 and 1 too": (
        SOLUTION.replace(" and size > 1", ""),
        "Graphs: 0 for float32 16, 1 for float32 1. No guards hold",
    ),
    "no limit": (SOLUTION.replace(" and len(graphs) < limit", ""), "may be compiled"),
    "nothing runs beyond the limit": (
        SOLUTION.replace(
            "        found = None\n",
            "        found = None\n        if len(graphs) == limit:\n            ran.append(None)\n            continue\n",
        ),
        "guards hold",
    ),
    "the limit is one less": (SOLUTION.replace("< limit", "< limit - 1"), "still be compiled"),
    "any dtype": (SOLUTION.replace("(dtype, size) or", "(graphs[number][0], size) or"), "guard on the dtype"),
    "each dtype on its own": (
        SOLUTION.replace(
            "each != size for each in compiled", "each != size and kind == dtype for kind, each in compiled"
        ).replace("compiled.append(size)", "compiled.append((dtype, size))"),
        "1 for float16 of any size above 1",
    ),
    "the last is thrown away": (
        SOLUTION.replace(
            "            graphs.append((dtype",
            "            graphs[:] = graphs[:-1]\n            graphs.append((dtype",
        ),
        "must run",
    ),
    "guards for numbers": (
        SOLUTION.replace("ran.append(found)", "ran.append(graphs[found] if found is not None else None)"),
        "number of a graph",
    ),
    "only what was compiled": (
        SOLUTION.replace("        ran.append(found)", "            ran.append(found)"),
        "entries for",
    ),
    "nothing": (SOLUTION.replace("    return ran\n", ""), "Does it end with a return?"),
    "the first two have their own": (
        SOLUTION.replace("differs = any([each != size for each in compiled])", "differs = len(compiled) > 1"),
        "nothing is compiled",
    ),
    "any size from the start": (
        SOLUTION.replace("differs = any([each != size for each in compiled])", "differs = True"),
        "size 100 came before, so the size is left open",
    ),
    "one graph more": (
        SOLUTION.replace("len(graphs) < limit", "len(graphs) <= limit"),
        "no graph's guards hold",
    ),
    "the last size alone": (
        SOLUTION.replace(
            "any([each != size for each in compiled])", "bool(compiled) and compiled[-1] != size"
        ),
        "nothing is compiled",
    ),
    "counted from one": (
        SOLUTION.replace("ran.append(found)", "ran.append(None if found is None else found + 1)"),
        "for this size alone",
    ),
    "-1 for none": (
        SOLUTION.replace("ran.append(found)", "ran.append(-1 if found is None else found)"),
        "no graph's guards hold",
    ),
    "the sizes": (SOLUTION.replace("ran.append(found)", "ran.append(size)"), "for this size alone"),
    "the graphs": (SOLUTION.replace("return ran", "return graphs"), "gave 1 entries for 3 calls"),
    "one for any size is never found": (
        SOLUTION.replace(" or (graphs[number] == (dtype, None) and size > 1)", ""),
        "nothing is compiled",
    ),
    "how many": (
        SOLUTION.replace("return ran", "return len(graphs)"),
        "with an entry for each call, and gave 1",
    ),
}
