"""Wrong answers to the puzzle *a cache of prefixes*, each with some of the words that it gets."""

from engine.puzzles.shared_prefixes import SOLUTION, START

WRONG = {
    "tokens without their order": (START, "up to the first token that differs"),
    "the answer is forgotten": (
        SOLUTION.replace("for token in tokens:", "for token in tokens[:prompt]:"),
        "answers",
    ),
    "the last token is found too": (
        SOLUTION.replace("known < prompt - 1", "known < prompt"),
        "computed in any case",
    ),
    "always one less": (
        SOLUTION.replace("known < prompt - 1", "known < prompt").replace(
            "append(known)", "append(max(0, known - 1))"
        ),
        "begins with the same 7 tokens",
    ),
    "only the request before": (
        SOLUTION.replace("        node = root\n", "        root = node = {}\n"),
        "an earlier one",
    ),
    "whole requests only": (
        "def held(requests):\n    seen, found = [], []\n    for tokens, prompt in requests:\n"
        "        whole = [len(old) for old in seen if old == tokens[:len(old)]]\n        found.append(min(max(whole, default=0), prompt - 1))\n"
        "        seen.append(tokens)\n    return found\n",
        "gives 3",
    ),
    "found in the answer": (SOLUTION.replace("known < prompt - 1", "known < len(tokens)"), "gives"),
    "anywhere in the tree": (
        SOLUTION.replace(
            "        node = root\n        for token in tokens:\n            node = node.setdefault(token, {})\n",
            "        for token, following in zip(tokens, tokens[1:]):\n            root.setdefault(token, {}).setdefault(following, root)\n",
        ),
        "begins with the same 7 tokens",
    ),
    "what needs prefill": (SOLUTION.replace("append(known)", "append(prompt - known)"), "gives 0"),
    "only the last": (SOLUTION.replace("return found", "return found[-1:]"), "entries for"),
    "shares": (SOLUTION.replace("append(known)", "append(known / prompt)"), "whole number"),
    "nothing": (SOLUTION.replace("return found", "found"), "Does it end with a return?"),
    "never found": (SOLUTION.replace("found.append(known)", "found.append(0)"), "that is what is held"),
    "one more": (
        SOLUTION.replace("found.append(known)", "found.append(known + 1)"),
        "later ones have other keys and values, though they look alike",
    ),
    "the prompt itself": (
        SOLUTION.replace("found.append(known)", "found.append(prompt)"),
        "later ones have other keys and values, though they look alike",
    ),
    "forgotten after each": (
        SOLUTION.replace(
            "    for tokens, prompt in requests:\n",
            "    for tokens, prompt in requests:\n        root = {}\n",
        ),
        "that is what is held",
    ),
    "kept before it is looked for": (
        SOLUTION.replace(
            "        node, known = root, 0\n",
            "        node = root\n        for token in tokens:\n            node = node.setdefault(token, {})\n        node, known = root, 0\n",
        ),
        "later ones have other keys and values, though they look alike",
    ),
    "truths": (
        SOLUTION.replace("found.append(known)", "found.append(known > 0)"),
        "are held, a whole number; False is none",
    ),
    "the sum": (
        SOLUTION.replace("    return found", "    return sum(found)"),
        " a number for each request, and gave 10",
    ),
    "how long the answer is": (
        SOLUTION.replace("found.append(known)", "found.append(len(tokens) - prompt)"),
        "later ones have other keys and values",
    ),
}
