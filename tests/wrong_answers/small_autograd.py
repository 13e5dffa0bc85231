"""Wrong answers to the puzzle *a small autograd*, each with some of the words that it gets."""

from engine.puzzles.small_autograd import SOLUTION, START

ADDS = "grads[name] = grads.get(name, 0.0) + part"
LAST = "    return {leaf: complete(leaf) if leaf in grads else 0.0 for leaf in leaves}\n"
MUL = "parts = [grad * kept[1], grad * kept[0]]"
HOOK = "            grads[name] = hooks[name](grads[name])"


def changed(one: str, other: str) -> str:
    assert one in SOLUTION, one
    return SOLUTION.replace(one, other)


WRONG = {
    "forwards": (
        START.replace("grads[name] = part", "grads[name] = grads.get(name, 0.0) + part"),
        "Walk back from the last call",
    ),
    "the start, turned round": (START.replace("in nodes:  #", "in reversed(nodes):  #"), "x is used twice"),
    "the second part replaces the first": (changed(ADDS, "grads[name] = part"), "the parts add up"),
    "the first part stays": (changed(ADDS, "grads.setdefault(name, part)"), "the parts add up"),
    "the own factor": (changed(MUL, "parts = [grad * kept[0], grad * kept[1]]"), "times the other factor"),
    "a product passes it on": (changed(MUL, "parts = [grad, grad]"), "times the other factor"),
    "a product without the gradient": (changed(MUL, "parts = [kept[1], kept[0]]"), "times the other factor"),
    "exp keeps its input": (
        changed("kept = [values[result]]", "kept = x"),
        "exp multiplies it by its own result",
    ),
    "exp passes it on": (changed("parts = [grad * kept[0]]", "parts = [grad]"), "by its own result"),
    "a sum is halved": (
        changed("parts = [grad, grad]", "parts = [grad / 2, grad / 2]"),
        "a sum passes it on",
    ),
    "from nothing": (changed("nodes[-1][0]: 1.0", "nodes[-1][0]: 0.0"), "must be 3 and is 0"),
    "no hooks": (changed("if name in hooks:", "if False:"), "the hook of x never ran"),
    "hooks of leaves alone": (
        changed("grad = complete(result)", "grad = grads[result]"),
        "the hook of p never ran",
    ),
    "hooks of results alone": (
        changed("complete(leaf) if leaf in grads", "grads[leaf] if leaf in grads"),
        "the hook of x never ran",
    ),
    "what a hook returns is lost": (
        changed(HOOK, "            hooks[name](grads[name])"),
        "takes the gradient's place",
    ),
    "a hook at every part": (
        changed(ADDS, ADDS + "\n            complete(name)")
        .replace("grad = complete(result)", "grad = grads[result]")
        .replace("complete(leaf) if", "grads[leaf] if"),
        "It runs once, when all parts",
    ),
    "a hook at the first part": (
        changed(
            ADDS,
            ADDS
            + "\n            if name in hooks and name not in done:\n                done.add(name)\n                complete(name)",
        )
        .replace("grad = complete(result)", "grad = grads[result]")
        .replace("complete(leaf) if", "grads[leaf] if")
        .replace("    grads = {nodes", "    done = set()\n    grads = {nodes"),
        "Wait until every use of x has sent its part",
    ),
    "a hook without a gradient": (
        changed(
            LAST,
            "    for leaf in leaves:\n        grads.setdefault(leaf, 0.0)\n    return {leaf: complete(leaf) for leaf in leaves}\n",
        ),
        "Its hook must not run",
    ),
    "no gradient is an error": (
        changed("        if result not in grads:\n            continue\n", ""),
        "looks up 's'",
    ),
    "no leaf is left out": (changed(" if leaf in grads else 0.0", ""), "looks up 'u'"),
    "leaves without a gradient are missing": (
        changed(LAST, "    return {leaf: complete(leaf) for leaf in leaves if leaf in grads}\n"),
        "lacks the leaf u",
    ),
    "none for nothing": (changed("else 0.0 for", "else None for"), "must be a number, and is None"),
    "all gradients": (
        changed(
            LAST,
            LAST.replace("return {", "grads.update({").replace("leaves}", "leaves})") + "    return grads\n",
        ),
        "return the leaves' gradients alone",
    ),
    "a list": (changed(LAST, "    return [complete(leaf) for leaf in leaves]\n"), "must give a dictionary"),
    "no return": (changed(LAST, ""), "Does it end with a return?"),
}
