"""Autograd's engine: the order in which a graph's nodes run backward, each once and with its whole gradient."""

from engine.executed.backward_walk import consumers, walked
from engine.puzzles.judging import Slip, box, number, picture, shown, something

TITLE = "autograd's engine"
LESSON = "13-pytorch-internals"
STATEMENT = """
A forward pass has recorded a graph: `graph[name]` lists the inputs of each node, and an empty list marks a leaf, a parameter. Run it backward
from `root`, whose gradient is 1. `run(name, gradient)` is a node's backward: it returns one gradient for each of its inputs. A tensor that was
used more than once gets several gradients, and they **add up**. Each node must run once, and only when all of its gradients have arrived. Return
a dictionary with the gradient of each leaf that `root` depends on.
"""
FUNCTION = "backward"
START = '''def backward(graph, root, run):
    """The gradient of each leaf."""
    gradients, ready = {root: 1}, [root]
    while ready:
        name = ready.pop()
        if not graph[name]:
            continue
        for each, gradient in zip(graph[name], run(name, gradients[name])):
            gradients[each] = gradient
            ready.append(each)
    return {name: gradients[name] for name in gradients if not graph[name]}
'''
HINTS = (
    "The code runs a node as soon as one gradient has arrived, and forgets the one before. Add them up first: gradients.get(each, 0) + gradient.",
    "When have all arrived? Count before you start: go through the graph from root, and note for each node how often it is an input of a "
    "node that will run.",
    "left = {name: 0, …}; visit each node that root depends on once, and add 1 to left[each] for each of its inputs. In the loop take 1 away "
    "with each gradient, and append the node to ready when its count is 0.",
)
SOLUTION = '''def backward(graph, root, run):
    """The gradient of each leaf."""
    left, waiting = {root: 0}, [root]
    while waiting:
        for each in graph[waiting.pop()]:
            if each not in left:
                left[each] = 0
                waiting.append(each)
            left[each] += 1
    gradients, ready, leaves = {root: 1}, [root], {}
    while ready:
        name = ready.pop()
        if not graph[name]:
            leaves[name] = gradients[name]
            continue
        for each, gradient in zip(graph[name], run(name, gradients[name])):
            gradients[each] = gradients.get(each, 0) + gradient
            left[each] -= 1
            if left[each] == 0:
                ready.append(each)
    return leaves
'''
OPEN = (
    "PyTorch frees what a node saved as soon as it has run. Let each node hold some bytes, and note the most that is held. Does the order among "
    "nodes that are ready make a difference?"
)

GRAPHS = (  # name, inputs and the slope towards each of them; the root stands first
    (("loss", (("y", 2),)), ("y", (("x", 3), ("w", 5))), ("x", ()), ("w", ())),
    (("loss", (("a", 1), ("b", 1))), ("a", (("x", 2),)), ("b", (("x", 3),)), ("x", (("w", 4),)), ("w", ())),
    (("loss", (("c", 1), ("a", 7))), ("c", (("b", 2),)), ("b", (("a", 3),)), ("a", (("w", 5),)), ("w", ())),
    (("loss", (("y", 1),)), ("y", (("w", 4), ("w", 6))), ("w", ())),
    (("loss", (("y", 3),)), ("y", (("w", 2),)), ("w", ()), ("other", (("y", 9), ("v", 1))), ("v", ())),
    (
        ("loss", (("r3", 1),)),
        ("r3", (("f3", 1), ("r2", 1))),
        ("f3", (("r2", 2), ("w3", 3))),
        ("r2", (("f2", 1), ("r1", 1))),
        ("f2", (("r1", 2), ("w2", 3))),
        ("r1", (("f1", 1), ("x", 1))),
        ("f1", (("x", 2), ("w1", 3))),
        ("x", (("e", 1),)),
        ("w1", ()),
        ("w2", ()),
        ("w3", ()),
        ("e", ()),
    ),
)
SHOWN = 1  # the graph that *run* takes


class Nodes:
    """The backward of each node of a graph, with a record of its calls."""

    def __init__(self, listed):
        self.graph = {name: [each for each, _ in inputs] for name, inputs in listed}
        self.slopes = {name: [slope for _, slope in inputs] for name, inputs in listed}
        self.root, self.ran, self.whole = listed[0][0], [], {}
        walked(self.graph, self.root, self.right)

    def right(self, name, gradient):
        """A node's backward in the engine's walk: its gradient is the whole one."""
        self.whole[name] = gradient
        return [gradient * slope for slope in self.slopes[name]]

    def run(self, name, gradient):
        """A node's backward in the reader's walk; a Slip if it runs twice, too early, or not at all."""
        if name not in self.graph:
            raise Slip(f"run({shown(name)}, …): there is no such node.")
        if not self.graph[name]:
            raise Slip(
                f"{name} is a leaf: it has no backward to run, its gradient is the result.", self.drawn(name)
            )
        if not number(gradient):
            raise Slip(f"run({name!r}, {shown(gradient)}): a gradient is a number.", self.drawn(name))
        if name not in self.whole:
            raise Slip(f"{name} ran, and {self.root} does not depend on it.", self.drawn(name))
        if name in [each for each, _ in self.ran]:
            raise Slip(
                f"{name} ran twice. Its gradients must all have arrived, and been added, before it runs.",
                self.drawn(name),
            )
        if abs(gradient - self.whole[name]) > 1e-9:
            raise Slip(self.too_early(name, gradient), self.drawn(name))
        self.ran.append((name, gradient))
        return [gradient * slope for slope in self.slopes[name]]

    def too_early(self, name, gradient):
        """Why a node ran with another gradient than its whole one."""
        before = [each for each, _ in self.ran]
        users = [each for each in self.whole if name in self.graph[each]]
        missing = [each for each in users if each not in before]
        where = f"{name} ran with the gradient {shown(gradient)}; in all it is {self.whole[name]}"
        if name == self.root:
            return f"{where}, because the root's gradient with respect to itself is 1."
        if missing:
            return f"{where}: {' and '.join(missing)} had not run yet, and {'uses' if len(missing) == 1 else 'use'} {name} too."
        if len(users) == 1 and self.graph[users[0]].count(name) == 1:
            return f"{where}, what {users[0]} sent."
        return f"{where}. The gradients that {' and '.join(users)} sent add up."

    def drawn(self, wrong=""):
        """The picture of the walk so far: each node at the place at which it ran."""
        order = [each for each, _ in self.ran] + ([wrong] if wrong else [])
        lines = []
        for at in range(len(order)):
            look = "wrong" if wrong and at == len(order) - 1 else "compute"
            words = "" if look == "wrong" else self.ran[at][1]
            lines.append((order[at], [box(at, at + 1, words, look)]))
        key = {"compute": "runs backward, with this gradient"}
        if wrong:
            key["wrong"] = "may not run now"
        return picture(lines, key, "The nodes in the order in which they ran.", "nodes")


def run(function):
    """Run the reader's walk through the second graph; returns the result in words, and the picture."""
    nodes, given = walk(function, GRAPHS[SHOWN])
    said = ", ".join([f"{name} {given[name]}" for name in sorted(given)])
    order = ", ".join([name for name, _ in nodes.ran])
    return f"In the order {order}. Gradients: {said}.", nodes.drawn()


def check(function):
    """Check the reader's walk through all graphs; a Slip at the first wrong step."""
    for listed in GRAPHS:
        walk(function, listed)
    words, picture_of_it = run(function)
    return f"Right, for {len(GRAPHS)} graphs, each node once. {words}", picture_of_it


def walk(function, listed):
    """The nodes as the reader's function ran them, and the gradients that it gave; a Slip if any is wrong."""
    nodes = Nodes(listed)
    call = f"{FUNCTION}(graph, {nodes.root!r}, run)"
    copied = {name: list(inputs) for name, inputs in nodes.graph.items()}
    given = something(function(copied, nodes.root, nodes.run), call)
    if not isinstance(given, dict):
        raise Slip(
            f"{call} must give a dictionary, leaf -> gradient, and gave {shown(given)}.", nodes.drawn()
        )
    wanted = walked(nodes.graph, nodes.root, nodes.right)
    for name in wanted:
        if name not in given:
            raise Slip(
                f"The leaf {name} has no gradient in what came back; it should have {wanted[name]}. Did it never become ready?",
                nodes.drawn(),
            )
        if not number(given[name]) or abs(given[name] - wanted[name]) > 1e-9:
            users = [each for each in consumers(nodes.graph, nodes.root) if name in nodes.graph[each]]
            one = len(users) == 1 and nodes.graph[users[0]].count(name) == 1
            why = (
                f"{users[0]} sent it, and run gives its gradients in the order of graph[{users[0]!r}]"
                if one
                else f"what {' and '.join(users)} sent adds up"
            )
            raise Slip(
                f"The gradient of {name} is {wanted[name]}, not {shown(given[name])}: {why}.", nodes.drawn()
            )
    for name in given:
        if name not in wanted:
            raise Slip(
                f"{shown(name)} is no leaf that {nodes.root} depends on, so it is not in the result.",
                nodes.drawn(),
            )
    return nodes, given
