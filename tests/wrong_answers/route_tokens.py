"""Wrong answers to the puzzle *route with a capacity and a bias*, each with some of the words that it gets."""

from engine.puzzles.route_tokens import SOLUTION, START

WRONG = {
    "neither bias nor capacity": (START, "divided by their sum"),
    "no bias": (SOLUTION.replace("score[e] + bias[e]", "score[e]"), "score plus bias"),
    "the bias weighs too": (
        SOLUTION.replace(
            "        order =",
            "        score = [score[e] + bias[e] for e in range(len(bias))]\n        order =",
        ).replace("score[e] + bias[e])", "score[e])"),
        "without the bias",
    ),
    "weights that are scores": (SOLUTION.replace("score[e] / total", "score[e]"), "divided by their sum"),
    "divided by all scores": (
        SOLUTION.replace("sum([score[e] for e in chosen])", "sum(score)"),
        "divided by their sum",
    ),
    "no capacity": (SOLUTION.replace("if taken[e] < capacity:", "if True:"), "is full"),
    "room for one more": (SOLUTION.replace("taken[e] < capacity", "taken[e] <= capacity"), "is full"),
    "the next best instead": (
        SOLUTION.replace("order[:top_k]", "[e for e in order if taken[e] < capacity][:top_k]"),
        "no other expert takes its place",
    ),
    "the other weight grows": (
        SOLUTION.replace(
            "        kept = []\n",
            "        total = sum([score[e] for e in chosen if taken[e] < capacity])\n        kept = []\n",
        ),
        "keeps its weight",
    ),
    "the whole token is lost": (
        SOLUTION.replace(
            "            if taken[e] < capacity:",
            "            if all([taken[each] < capacity for each in chosen]):",
        ),
        "still has room",
    ),
    "a new queue for each token": (
        SOLUTION.replace("        chosen =", "        taken = [0] * len(bias)\n        chosen ="),
        "is full",
    ),
    "the worst first": (SOLUTION.replace("-(score", "(score"), "score plus bias"),
    "experts alone": (
        SOLUTION.replace("kept.append((e, score[e] / total))", "kept.append(e)"),
        "must be a pair",
    ),
    "nothing": (SOLUTION.replace("    return routed\n", ""), "Does it end with a return?"),
    "one expert each": (
        SOLUTION.replace("order[:top_k]", "order[:1]"),
        "expert 0 still has room and takes it, whatever the others do",
    ),
    "one expert more": (
        SOLUTION.replace("order[:top_k]", "order[:top_k + 1]"),
        "The largest score plus bias come first",
    ),
    "the bias twice": (
        SOLUTION.replace("-(score[e] + bias[e])", "-(score[e] + 2 * bias[e])"),
        "The largest score plus bias come first",
    ),
    "the bias taken off": (
        SOLUTION.replace("-(score[e] + bias[e])", "-(score[e] - bias[e])"),
        "The largest score plus bias come first",
    ),
    "one place less": (
        SOLUTION.replace("taken[e] < capacity", "taken[e] < capacity - 1"),
        "expert 0 still has room and takes it, whatever the others do",
    ),
    "the last come first": (
        SOLUTION.replace("for score in scores:", "for score in reversed(scores):"),
        "The largest score plus bias come first",
    ),
    "weights and experts": (
        SOLUTION.replace("kept.append((e, score[e] / total))", "kept.append((score[e] / total, e))"),
        "(0.5452812202097236, 2) is none",
    ),
    "the places of tokens": (
        SOLUTION.replace("routed.append(kept)", "routed.append(chosen)"),
        " a pair (expert, weight), and 2 is none",
    ),
}
