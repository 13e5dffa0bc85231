"""A router: it chooses each token's experts with a bias, weights them without it, and drops a token where an
expert's queue is full."""

from engine.executed.routing import choose, first_state, next_state, push
from engine.puzzles.judging import Slip, box, number, one_for_each, picture, shown, whole

TITLE = "route with a capacity and a bias"
LESSON = "09-expert-parallel"
STATEMENT = """
`scores[t][e]` is how much token `t` likes expert `e`, above 0, and `bias[e]` what balancing has made of expert `e`. Each token, in order, chooses
the `top_k` experts with the largest score **plus bias**. Its weights are the scores of these, without the bias, divided by their
sum. An expert takes `capacity` tokens and turns later ones away: they lose this choice, and the other keeps its weight. Return for each token a list of
`(expert, weight)`, the best choice first.
"""
FUNCTION = "route"
START = '''def route(scores, bias, top_k, capacity):
    """(expert, weight) of each choice of each token."""
    routed = []
    for score in scores:
        order = sorted(range(len(score)), key=lambda e: -score[e])
        routed.append([(e, score[e]) for e in order[:top_k]])
    return routed
'''
HINTS = (
    "Two lists go into a choice, and one into its weight. Sort by score[e] + bias[e], and divide the scores of the chosen by their sum.",
    "Count how many tokens each expert has taken, over all tokens. A full expert's choice is left out; no other expert takes its place.",
    "Compute the weights before you look at the queues: what is turned away is lost, and does not raise the other weights.",
)
SOLUTION = '''def route(scores, bias, top_k, capacity):
    """(expert, weight) of each choice of each token."""
    routed, taken = [], [0] * len(bias)
    for score in scores:
        order = sorted(range(len(score)), key=lambda e: -(score[e] + bias[e]))
        chosen = order[:top_k]
        total = sum([score[e] for e in chosen])
        kept = []
        for e in chosen:
            if taken[e] < capacity:
                taken[e] += 1
                kept.append((e, score[e] / total))
        routed.append(kept)
    return routed
'''
OPEN = (
    "Now balance. After each batch, lower the bias of every expert that was chosen more often than the mean by 0.01, and raise the others. How many "
    "batches does it take until nobody is turned away, and what does a step of 0.1 do?"
)

CASES = (  # tokens, experts, choices of each token, capacity, steps of balancing, seed
    (6, 4, 2, 3, 0, 1),
    (8, 4, 2, 8, 4, 2),
    (12, 4, 2, 5, 3, 3),
    (16, 8, 2, 5, 6, 4),
    (10, 3, 1, 3, 5, 5),
    (6, 4, 3, 4, 2, 6),
)
LONG = 10  # steps of balancing in ``run``
FAVOURED = 4  # how many times more popular the first expert is than the last


def run(function):
    """Route some tokens before and after balancing; returns the result in words, and the figure."""
    tokens, experts, top_k, capacity, _, seed = CASES[3]
    lost = []
    for steps in (0, LONG):
        case = (tokens, experts, top_k, capacity, steps, seed)
        routed = routed_of(function, case, *likings(case))
        lost.append(tokens * top_k - sum([len(each) for each in routed]))
    return (
        f"{tokens} tokens, {experts} experts, {top_k} choices each, capacity {capacity}: {lost[0]} choices are turned away, and {lost[1]} after the biases "
        f"have been balanced for {LONG} steps.",
        drawn(routed, case),
    )


def check(function):
    """Check the reader's routes in all cases, token by token; a Slip at the first wrong one."""
    for case in CASES:
        scores, bias = likings(case)
        compare(routed_of(function, case, scores, bias), case, scores, bias)
    words, picture = run(function)
    return f"Right, for {len(CASES)} routers. {words}", picture


def likings(case):
    """The tokens' scores and the experts' biases."""
    scores = scores_of(case)
    return scores, bias_of(case, scores)


def scores_of(case):
    """The scores of each token, which add up to 1: random numbers of the engine's generator times each
    expert's popularity."""
    tokens, experts, _, _, _, seed = case
    state, found = first_state(seed), []
    for _ in range(tokens):
        drawn = []
        for e in range(experts):
            state = next_state(state)
            drawn.append((1 + state % 1000) * (1 + (FAVOURED - 1) * (experts - 1 - e) / (experts - 1)))
        found.append([round(each / sum(drawn), 4) for each in drawn])
    return found


def bias_of(case, scores):
    """The biases after some steps of the engine's rule on these tokens."""
    tokens, experts, top_k, _, steps, _ = case
    bias = [0.0] * experts
    for _ in range(steps):
        load = [0] * experts
        for score in scores:
            for e in chosen_by(score, bias, top_k):
                load[e] += 64 / tokens  # the rule is for batches of 64
        push(bias, load, experts, top_k)
    return bias


def chosen_by(score, bias, top_k):
    """The experts that the engine chooses for a token."""
    chosen = [0] * top_k
    choose(chosen, [score[e] + bias[e] for e in range(len(score))], len(score), top_k)
    return chosen


def routed_of(function, case, scores, bias):
    """The reader's routes: pairs of (expert, weight) for each token."""
    tokens, experts, top_k, capacity, _, _ = case
    call = f"{FUNCTION}(scores, bias, top_k={top_k}, capacity={capacity})"
    given = one_for_each(
        function([list(score) for score in scores], list(bias), top_k, capacity),
        call,
        "a list with the choices of each token",
        tokens,
        "tokens; a token that is turned away everywhere has an empty list",
    )
    for choices in given:
        if not isinstance(choices, (list, tuple)):
            raise Slip(
                f"{call}: each entry must be a list of (expert, weight), and {shown(choices)} is none."
            )
        for each in choices:
            if (
                not isinstance(each, (list, tuple))
                or len(each) != 2
                or not whole(each[0])
                or not number(each[1])
            ):
                raise Slip(f"{call}: each choice must be a pair (expert, weight), and {shown(each)} is none.")
    return given


def compare(routed, case, scores, bias):
    """Raise a Slip at the first token that the reader's function sends to other experts than the engine."""
    tokens, experts, top_k, capacity, _, _ = case
    taken = [0] * experts
    for t in range(tokens):
        chosen = chosen_by(scores[t], bias, top_k)
        full = [e for e in chosen if taken[e] >= capacity]
        wanted = [e for e in chosen if e not in full]
        for e in wanted:
            taken[e] += 1
        mine = [e for e, _ in routed[t]]
        if mine != wanted:
            raise Slip(
                f"Token {t} of {tokens}, top {top_k}, capacity {capacity}: {misrouted(mine, wanted, chosen, full)}",
                drawn(routed, case, t),
            )
        total = sum([scores[t][e] for e in chosen])
        for e, weight in routed[t]:
            if abs(weight - scores[t][e] / total) > 1e-9:
                raise Slip(
                    f"Token {t} of {tokens}, bias {shown([round(each, 2) for each in bias])}: the weight of expert {e} must be {scores[t][e] / total:.4f} and is "
                    f"{weight:.4f}. It is the score, without the bias, divided by their sum over the {top_k} chosen; a choice that is turned away does not "
                    "change that: the other keeps its weight."
                )


def misrouted(mine, wanted, chosen, full):
    """The words that explain why a token belongs to other experts."""
    if full and [e for e in mine if e in full]:
        return f"expert {[e for e in mine if e in full][0]} is full by then and turns it away."
    if full and [e for e in mine if e not in chosen]:
        return f"expert {full[0]} turns it away, and no other expert takes its place; you also have {shown([e for e in mine if e not in chosen])}."
    if not [e for e in mine if e not in wanted] and len(mine) < len(wanted):
        missing = [e for e in wanted if e not in mine]
        return f"expert {missing[0]} still has room and takes it, whatever the others do."
    return (
        f"it must go to {shown(wanted)}, and goes to {shown(mine)}. The largest score plus bias come first."
    )


def drawn(routed, case, wrong=-1):
    """The picture of each expert's queue: the tokens that it accepts, in order, beside its capacity."""
    _, experts, _, capacity, _, _ = case
    lines = []
    for e in range(experts):
        queue = [t for t in range(len(routed)) if e in [choice[0] for choice in routed[t]]]
        boxes = []
        for place in range(len(queue)):
            look = "wrong" if queue[place] == wrong or place >= capacity else "compute"
            boxes.append(box(place, place + 1, queue[place], look))
        if len(queue) < capacity:
            boxes.append(box(len(queue), capacity, "", "idle"))
        lines.append((f"expert {e}", boxes))
    key = {"compute": "a token", "idle": "room that is left"}
    if wrong >= 0:
        key["wrong"] = f"token {wrong}, or beyond the capacity"
    return picture(lines, key, "The tokens in the queue of each expert.")
