"""A small autograd: record what each call keeps, walk back over the calls, run hooks."""

from engine.executed.reverse_mode import recorded, walked_back
from engine.puzzles.judging import Slip, box, number, picture, shown, something

TITLE = "a small autograd"
LESSON = "13-pytorch-internals"
STATEMENT = """
`program` is a list of calls, `(result, operator, inputs)`, where `result` and `inputs` are names and `operator` is `"add"`, `"mul"` (of two
inputs) or `"exp"` (of one). `leaves` gives the values of the names that no call makes. Run the calls, then return a dictionary with the
gradient of the **last** result with respect to each leaf, 0.0 for a leaf on which it does not depend. `hooks` maps some names to functions. When
a tensor's gradient is **complete**, call its hook once with it; what the hook returns takes the gradient's place. The hook of a tensor without
a gradient is not called.
"""
FUNCTION = "gradients"
START = '''import math

def gradients(program, leaves, hooks):
    """The gradient of the last result for each leaf."""
    values, nodes = dict(leaves), []
    for result, operator, inputs in program:      # record
        x = [values[name] for name in inputs]
        if operator == "add":
            values[result], kept = x[0] + x[1], []
        elif operator == "mul":
            values[result], kept = x[0] * x[1], x
        else:
            values[result] = math.exp(x[0])
            kept = [values[result]]
        nodes.append((result, operator, inputs, kept))

    grads = {nodes[-1][0]: 1.0}
    for result, operator, inputs, kept in nodes:  # walk back
        grad = grads[result]
        if operator == "add":
            parts = [grad, grad]
        elif operator == "mul":
            parts = [grad * kept[1], grad * kept[0]]
        else:
            parts = [grad * kept[0]]
        for name, part in zip(inputs, parts):
            grads[name] = part
    return {leaf: grads[leaf] for leaf in leaves}
'''
HINTS = (
    "The walk begins at the last call: take `reversed(nodes)`. A call whose result has no gradient is not on the way to the last result.",
    "A tensor that is used twice gets a part from each use, and its gradient is their sum. The second part must not replace the first.",
    "When the walk reaches the call that made a tensor, all later uses have run: its gradient is complete, and its hook's turn has come. Leaves "
    "are made by no call, so their hooks run after the walk.",
)
SOLUTION = '''import math

def gradients(program, leaves, hooks):
    """The gradient of the last result for each leaf."""
    values, nodes = dict(leaves), []
    for result, operator, inputs in program:      # record
        x = [values[name] for name in inputs]
        if operator == "add":
            values[result], kept = x[0] + x[1], []
        elif operator == "mul":
            values[result], kept = x[0] * x[1], x
        else:
            values[result] = math.exp(x[0])
            kept = [values[result]]
        nodes.append((result, operator, inputs, kept))

    grads = {nodes[-1][0]: 1.0}

    def complete(name):
        if name in hooks:
            grads[name] = hooks[name](grads[name])
        return grads[name]

    for result, operator, inputs, kept in reversed(nodes):
        if result not in grads:
            continue
        grad = complete(result)
        if operator == "add":
            parts = [grad, grad]
        elif operator == "mul":
            parts = [grad * kept[1], grad * kept[0]]
        else:
            parts = [grad * kept[0]]
        for name, part in zip(inputs, parts):
            grads[name] = grads.get(name, 0.0) + part
    return {leaf: complete(leaf) if leaf in grads else 0.0 for leaf in leaves}
'''
OPEN = (
    "Free what a node keeps as soon as it has run, and walk back twice: PyTorch refuses the second walk unless you ask for `retain_graph`. What would "
    "DDP, which sends a gradient as soon as it is complete, hang on your hook?"
)

PROGRAMS = (  # the leaves' values, the calls, and what each hook multiplies by
    ({"x": 2.0, "w": 3.0}, "y=mul x w", {}),
    ({"x": 2.0, "w": 3.0, "b": 1.0}, "p=mul x w; y=add p b; z=exp y", {}),
    ({"x": 3.0}, "y=mul x x", {}),
    ({"x": 0.5, "w": 2.0}, "p=mul x w; q=exp p; z=add q p", {}),
    ({"x": 1.5, "w": 2.0, "u": 5.0}, "p=mul x w; s=exp u; z=mul p x", {}),
    ({"x": 2.0, "w": 3.0}, "p=mul x w; y=mul p x", {"x": 1.0}),
    ({"x": 2.0, "w": 3.0}, "p=mul x w; y=exp w; z=mul p y", {"p": 0.5, "w": 2.0}),
    ({"x": 0.5, "w": 2.0}, "p=mul x w; q=exp p; r=mul q p; z=add r q", {"p": 3.0, "z": 2.0}),
    ({"x": 1.0, "u": 4.0}, "s=mul u u; y=add x x", {"s": 2.0, "u": 2.0, "x": 1.0}),
)


PLACE = "What a hook returns takes the gradient's place, also for what lies further back."


def run(function):
    """Run the reader's function for the fourth program; returns the result in words, and the figure."""
    leaves, text, factors = PROGRAMS[3]
    found, _ = answered(function, leaves, text, factors)
    said = ", ".join([f"{leaf}: {found[leaf]:.4g}" for leaf in leaves])
    return f"Of {text}, with {worded(leaves)}: {said}.", drawn(found, leaves, text, factors)


def check(function):
    """Check the reader's function for all programs; a Slip at the first wrong answer."""
    for leaves, text, factors in PROGRAMS:
        compare(function, leaves, text, factors)
    words, picture = run(function)
    return (
        f"Right, for {len(PROGRAMS)} programs, with hooks and with names that are used twice. {words}",
        picture,
    )


def parsed(text):
    """The calls of a program, from its text."""
    calls = [each.strip().split("=") for each in text.split(";")]
    return [(result, said.split()[0], said.split()[1:]) for result, said in calls]


def worded(leaves):
    """The leaves' values in words."""
    return ", ".join([f"{leaf} = {leaves[leaf]:g}" for leaf in leaves])


def noting(name, factor, seen):
    """A hook that notes its call and multiplies the gradient by a factor."""

    def hook(grad):
        seen.append((name, grad))
        return grad * factor

    return hook


def answered(function, leaves, text, factors):
    """The reader's gradients, and the calls of hooks."""
    seen = []
    hooks = {name: noting(name, factors[name], seen) for name in factors}
    try:
        found = function(parsed(text), dict(leaves), hooks)
    except KeyError as error:
        raise Slip(
            f"Of “{text}”: your code looks up {error}, and there is nothing yet. Walk back from the last call, and leave out a call whose "
            "result has no gradient; a leaf on which the result does not depend gets 0.0."
        ) from None
    something(found, f"{FUNCTION}(…)")
    if not isinstance(found, dict):
        raise Slip(f"{FUNCTION}(…) must give a dictionary, leaf to gradient, and gave {shown(found)}.")
    for leaf in leaves:
        if leaf not in found:
            raise Slip(f"Of “{text}”: the dictionary lacks the leaf {leaf}.")
        if not number(found[leaf]):
            raise Slip(f"Of “{text}”: the gradient of {leaf} must be a number, and is {shown(found[leaf])}.")
    if len(found) > len(leaves):
        raise Slip(
            f"Of “{text}”: return the leaves' gradients alone; there are {len(found)} entries for {len(leaves)} leaves."
        )
    return found, seen


def right(leaves, text, factors):
    """Gradients and calls of hooks, by the engine."""
    hooks = {name: noting(name, factors[name], []) for name in factors}
    grads, calls = walked_back(recorded(parsed(text), leaves), leaves, hooks)
    return {leaf: grads.get(leaf, 0.0) for leaf in leaves}, calls


def compare(function, leaves, text, factors):
    """Raise a Slip unless gradients and calls of hooks are those of the engine."""
    found, seen = answered(function, leaves, text, factors)
    wanted, calls = right(leaves, text, factors)
    where = f"Of “{text}”, with {worded(leaves)}"
    for name in factors:
        mine = [grad for each, grad in seen if each == name]
        due = [grad for each, grad in calls if each == name]
        if not due and mine:
            raise Slip(
                f"{where}: {name} has no gradient, because the last result does not depend on it. Its hook must not run."
            )
        if due and not mine:
            raise Slip(f"{where}: the hook of {name} never ran.")
        if due and len(mine) > 1:
            raise Slip(
                f"{where}: the hook of {name} ran {len(mine)} times. It runs once, when all parts of the gradient have been added up."
            )
        if due and not close(mine[0], due[0]):
            unchanged = [
                grad for each, grad in right(leaves, text, dict.fromkeys(factors, 1.0))[1] if each == name
            ]
            if close(mine[0], unchanged[0]):
                raise Slip(f"{where}: {name} got {mine[0]:.6g}, as if no hook had run before. {PLACE}")
            raise Slip(
                f"{where}: the hook of {name} got {mine[0]:.6g}, and the complete gradient is {due[0]:.6g}. Wait until every use of {name} has "
                "sent its part."
            )
    for leaf in leaves:
        if not close(found[leaf], wanted[leaf]):
            raise Slip(
                f"{where}: the gradient of {leaf} must be {wanted[leaf]:.6g} and is {found[leaf]:.6g}. {why(leaf, found, text, factors)}",
                drawn(found, leaves, text, factors),
            )


def close(one, other):
    """Whether two numbers agree but for rounding."""
    return abs(one - other) <= 1e-9 * max(1.0, abs(other))


def why(leaf, found, text, factors):
    """The words for the reader's likely mistake."""
    uses = [name for _, _, inputs in parsed(text) for name in inputs]
    again = [name for name in uses if uses.count(name) > 1]
    if factors and not (leaf in again and len(factors) == 1 and leaf in factors):
        return PLACE
    if again:
        return f"{again[0]} is used twice: each use sends a part, and the parts add up."
    return "Each factor of a product gets the gradient times the other factor, a sum passes it on, exp multiplies it by its own result."


def drawn(found, leaves, text, factors):
    """The picture of the calls in their order, and below them the leaves' gradients, yours and the right
    ones."""
    calls, wanted = parsed(text), right(leaves, text, factors)[0]
    forward = [
        box(2 * at, 2 * at + 2, f"{calls[at][0]} = {calls[at][1]}", "plain") for at in range(len(calls))
    ]
    names = list(leaves)
    yours = [
        box(
            2 * at,
            2 * at + 2,
            f"{names[at]}: {found[names[at]]:.4g}",
            "compute" if close(found[names[at]], wanted[names[at]]) else "wrong",
        )
        for at in range(len(names))
    ]
    due = [
        box(2 * at, 2 * at + 2, f"{names[at]}: {wanted[names[at]]:.4g}", "hbm") for at in range(len(names))
    ]
    lines = [("calls", forward), ("yours", yours), ("right", due)]
    return picture(
        lines,
        {},
        "The calls from left to right, and below them the gradients of the leaves, yours and the right ones.",
    )
