"""Random array expressions and programs of the compiler's grammar, as Python source.

What is written here is exact by the grammar: every operation that the tables call exact, and no other. Of two
zeros numpy's least and most give either, so these have ``+ 0.0`` behind them.
"""

from __future__ import annotations

from random import Random

VALUES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.5,
    -3.0,
    7.0,
    0.1,
    1 / 3,
    -0.7,
    12.25,
    100.0,
    1e-9,
    -1e15,
    3e200,
    1e-300,
)
SHAPES = ((), (3,), (2, 3))
SHAPE_OF = {(): "()", (3,): "(3,)", (2, 3): "(2, 3)"}
LEAVES = {(): ("x", "y", "z"), (3,): ("v", "TABLE"), (2, 3): ("w", "GRID")}


def state(random: Random) -> dict:
    """Values of the controls."""
    values = [value + 0.0 for value in VALUES]  # a control's zero has no sign
    return {name: random.choice((*values, random.uniform(-10, 10))) for name in "xyz"}


def number(random: Random, shape: tuple = (), depth: int = 4) -> str:
    """An exact expression of numbers, of this shape."""
    if not depth or random.random() < 0.12:
        if random.random() < 0.25:
            return (
                f"C({random.choice(VALUES)!r})"
                if not shape
                else f"np.full({shape}, {random.choice(VALUES)!r})"
            )
        return random.choice(LEAVES[shape])

    def same(down=1):
        return number(random, shape, depth - down)

    def smaller():
        return number(random, random.choice([s for s in SHAPES if len(s) <= len(shape)]), depth - 1)

    choices = [
        lambda: f"({same()} {random.choice('+-*/')} {smaller()})",
        lambda: f"({smaller()} {random.choice(('+', '-', '*', '/', '//', '%'))} {same()})",
        lambda: (
            f"np.{random.choice(('add', 'subtract', 'multiply', 'divide', 'floor_divide', 'remainder'))}({same()}, {smaller()})"  # noqa: E501
        ),
        lambda: (
            f"np.{random.choice(('negative', 'positive', 'absolute', 'sign', 'square', 'sqrt', 'floor', 'ceil', 'rint', 'reciprocal'))}({same()})"  # noqa: E501
        ),
        lambda: f"{random.choice(('-', 'abs'))}({same()})",
        lambda: f"(np.{random.choice(('minimum', 'maximum'))}({same()}, {smaller()}) + 0.0)",
        lambda: (
            f"(np.clip({same()}, {random.choice(('None', '-1.5'))}, {random.choice(('2.0', '7'))}) + 0.0)"
        ),
        lambda: f"np.where({truth(random, shape, depth - 1)}, {same()}, {smaller()})",
        lambda: f"np.where({smaller()}, {same()}, {smaller()})",
        lambda: f"({truth(random, shape, depth - 1)} * {same()})",
        lambda: f"({truth(random, shape, depth - 1)} / {same()})",
        lambda: f"np.full_like({LEAVES[shape][0]}, {number(random, (), depth - 1)})",
    ]
    if not shape:
        choices += [
            lambda: f"({row(random, depth)}).{random.choice(('max', 'min'))}() + 0.0",
            lambda: f"np.prod({row(random, depth)})",
            lambda: f"np.{random.choice(('argmax', 'argmin'))}({row(random, depth)}) + 0.0",
            lambda: f"{row(random, depth)}[{random.choice((0, 1, 2, -1))}]",
            lambda: (
                f"lookup({row(random, depth)}, {random.choice(('np.rint(np.clip(x, 0, 2))', 'C(1.0)', '-np.where(y > 1, 1.0, 3.0)', 'np.where(x > y, 2.5, 0.25)'))})"  # noqa: E501
            ),
            lambda: f"np.take({row(random, depth)}, 1)",
            lambda: f"np.sum({truth(random, (3,), depth - 1)}) + 0.0",
        ]
    if shape == (3,):
        choices += [
            lambda: f"np.stack([{number(random, (), depth - 1)}, {number(random, (), depth - 1)}, C(2.0)])",
            lambda: f"np.{random.choice(('max', 'min'))}({number(random, (2, 3), depth - 1)}, axis=0) + 0.0",
            lambda: f"np.prod({number(random, (2, 3), depth - 1)}, axis={random.choice((0, -2))})",
            lambda: f"np.argmax({number(random, (2, 3), depth - 1)}, axis=0) + 0.0",
            lambda: f"np.cumsum({same()})",
            lambda: f"np.{random.choice(('flip', 'ravel'))}({same()})",
            lambda: f"np.roll({same()}, {random.choice((1, 2, -1))})",
            lambda: f"np.concatenate([{same()}[1:], {number(random, (2, 3), depth - 1)}[1][:1]])",
            lambda: f"np.append({same()}[:2], {number(random, (), depth - 1)})",
            lambda: f"np.linspace({number(random, (), depth - 1)}, {number(random, (), depth - 1)}, 3)",
            lambda: f"{number(random, (2, 3), depth - 1)}[{random.choice((0, 1, -1))}]",
            lambda: f"{number(random, (2, 3), depth - 1)}.T[1:].reshape(4)[[1, 0, 3]]",
            lambda: f"lookup({same()}, np.argsort(np.arange(3)) * C(1.0) + np.where(x > y, 0.0, C(-1.0)))",
            lambda: f"np.repeat({same()}[:1], 3)",
            lambda: f"np.tile({number(random, (), depth - 1)}, 3)",
            lambda: f"np.mean(np.stack([{same()}]), axis=0)",
        ]
    if shape == (2, 3):
        choices += [
            lambda: f"np.stack([{number(random, (3,), depth - 1)}, {number(random, (3,), depth - 1)}])",
            lambda: f"np.cumsum({same()}, axis={random.choice((0, 1, -1))})",
            lambda: f"np.cumsum({same()}).reshape(2, 3)",
            lambda: f"np.transpose(np.reshape({same()}, (3, 2)))",
            lambda: f"np.broadcast_to({number(random, (3,), depth - 1)}, (2, 3))",
            lambda: f"({same()} - (np.max({same(2) if depth > 1 else 'w'}, axis=1, keepdims=True) + 0.0))",
            lambda: (
                f"({number(random, (3,), depth - 1)}[None, :] * {number(random, (3,), depth - 1)}[:2, None])"
            ),
            lambda: f"np.swapaxes(np.moveaxis({same()}, 0, 1), 0, 1)",
        ]
    return f"({random.choice(choices)()})"


def row(random: Random, depth: int) -> str:
    return number(random, (3,), depth - 1)


def truth(random: Random, shape: tuple = (), depth: int = 3) -> str:
    """An expression of booleans, of this shape or of one that is broadcast to it."""
    depth = max(depth, 0)
    compared = f"({number(random, shape, depth // 2)} {random.choice(('<', '<=', '>', '>=', '==', '!='))} {number(random, shape, depth // 2)})"  # noqa: E501
    if depth < 2 or random.random() < 0.5:
        return compared
    one, other = truth(random, shape, depth - 2), truth(random, shape, depth - 2)
    return random.choice(
        (
            f"({one} & {other})",
            f"({one} | {other})",
            f"(~{one})",
            f"np.logical_and({one}, {other})",
            f"np.logical_or({one}, {other})",
            f"np.logical_not({one})",
            f"np.isfinite({number(random, shape, depth - 2)})",
            f"({one} & np.{random.choice(('any', 'all'))}({truth(random, (3,), depth - 2)}))",
            f"({one} == {other})",
            f"np.where({one}, {other}, {compared})",
        )
    )


# -- elementwise functions -----------------------------------------------------------------------------------
def elementwise(random: Random, depth: int) -> str:
    """An expression of numpy's on numbers or arrays x, y and z, as an elementwise function may hold it."""
    if not depth or random.random() < 0.15:
        return random.choice(("x", "y", "z", repr(random.choice(VALUES[2:]))))
    one, other = elementwise(random, depth - 1), elementwise(random, depth - 1)
    asked = f"({one} {random.choice(('<', '<=', '>', '>=', '==', '!='))} {other})"
    return random.choice(
        (
            *(f"({one} {sign} {other})" for sign in ("+", "-", "*", "/", "//", "%")),
            *(f"np.{name}({one}, {other})" for name in ("minimum", "maximum")),
            *(f"np.{name}({one})" for name in ("sqrt", "abs", "floor", "ceil", "sign", "square", "rint")),
            f"(-{one})",
            f"{one} ** 2",
            f"np.where({asked}, {one}, {other})",
            f"np.where({asked} & ({other} > z), {one}, x)",
            f"np.where(~{asked} | np.isfinite({one}), {other}, y)",
        )
    )


# -- programs ------------------------------------------------------------------------------------------------
class Programmed:
    """Writes one random program, with a helper function that it calls."""

    def __init__(self, random: Random, name: str):
        self.random, self.name, self.lines = random, name, []
        self.floats, self.wholes, self.lists = ["x", "y", "z"], [], ["given"]
        self.count = self.loops = 0

    def text(self) -> str:
        pick = self.random.choice
        self.helper()
        self.lines += ["@program(values=60, total=(), turns=())", f"def {self.name}(x, y, z, given):"]
        for line in ("n = int(abs(y)) % 7", "total = 0.0", "turns = 0", "q = []", "p = full(4, x)"):
            self.add(1, line)
        self.floats, self.wholes = ["x", "y", "z", "total"], ["n", "turns"]
        self.lists = ["q", "p", "given"]
        for _ in range(pick((3, 5, 8))):
            self.statement(1)
        self.add(1, "if len(q) < 60:")
        self.add(2, f"q.append({self.number(2)})")
        self.add(1, 'return {"values": q, "total": total, "turns": turns}')
        return "\n".join(self.lines)

    def helper(self) -> None:
        kept = self.floats, self.wholes, self.lists
        self.floats, self.wholes, self.lists = ["a"], ["k"], ["r"]
        self.lines += [f"def {self.name}_helper(a, k, r):"]
        if self.random.random() < 0.5:
            self.add(1, f"if {self.condition(1)}:")
            self.add(2, f"return {self.number(2)}, {self.whole(1)}")
        if self.random.random() < 0.5:
            self.add(1, f"r[{self.index('r')}] = {self.number(1)}")
        self.add(1, f"return {self.number(2)}, {self.whole(2)}")
        self.lines.append("")
        self.floats, self.wholes, self.lists = kept

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def new(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def statement(self, depth: int) -> None:
        pick, r = self.random.choice, self.random.random()
        if r < 0.16:
            self.add(depth, f"total {pick(('+=', '-=', '='))} {self.number(2)}")
        elif r < 0.22:
            self.add(depth, f"turns = ({self.whole(2)}) % 1009")
        elif r < 0.32:
            self.add(depth, "if len(q) < 50:")
            self.add(depth + 1, f"q.{pick(('append(', 'insert(0, ', 'insert(n, '))}{self.number(2)})")
        elif r < 0.38:
            self.add(depth, f"p[{self.index('p')}] {pick(('=', '+=', '*='))} {self.number(2)}")
        elif r < 0.42:
            self.add(depth, "if len(q) > 0:" if self.random.random() < 0.9 else "if True:")
            self.add(
                depth + 1,
                pick(("total = q.pop()", "total += q.pop(0)", "q.remove(q[len(q) // 2])", "q.pop()")),
            )
        elif r < 0.50:
            names = self.new(), self.new()
            self.add(depth, f"{names[0]}, {names[1]} = {self.number(2)}, {self.whole(2)}")
            if depth == 1:
                self.floats.append(names[0]), self.wholes.append(names[1])
        elif r < 0.58:
            names = self.new(), self.new()
            self.add(
                depth, f"{names[0]}, {names[1]} = {self.name}_helper({self.number(1)}, {self.whole(1)}, p)"
            )
            if depth == 1:
                self.floats.append(names[0]), self.wholes.append(names[1])
        elif r < 0.66 and depth == 1:
            name = self.new()
            made = pick(
                (
                    f"[{self.number(1)} for _ in range(n)]",
                    f"[{self.number(1)}, {self.number(1)}]",
                    "zeros(n + 1)",
                    f"[{self.number(1)}] * 3",
                )
            )
            self.add(depth, f"{name} = {made}")
            self.lists.append(name)
        elif r < 0.80:
            self.add(depth, f"if {self.condition(2)}:")
            self.statement(depth + 1)
            if self.random.random() < 0.5:
                self.add(depth, "else:")
                self.statement(depth + 1)
        elif r < 0.92 and self.loops < 2:
            self.loops += 1
            name = self.new()
            kind = self.random.random()
            if kind < 0.5:
                self.add(depth, f"for {name} in range({pick(('n', '1, n', 'n, 0, -1', '0, 6, 2', '2'))}):")
                self.wholes.append(name)
            elif kind < 0.75:
                self.add(depth, f"for {name} in {pick(('given', 'p'))}:")
                self.floats.append(name)
            else:
                self.add(depth, f"{name} = 0")
                self.add(depth, f"while {name} < 5 and {self.condition(1)}:")
                self.add(depth + 1, f"{name} += 1")
                self.wholes.append(name)
            self.statement(depth + 1)
            if self.random.random() < 0.4:
                self.add(depth + 1, f"if {self.condition(1)}:")
                self.add(depth + 2, pick(("break", "continue")))
            self.statement(depth + 1)
            if kind < 0.75 or depth > 1:  # it may have no value where the loop did not run
                (self.wholes if kind < 0.5 or kind >= 0.75 else self.floats).remove(name)
            self.loops -= 1
        else:
            self.add(depth, f"turns += {pick(('1', 'n', 'len(q)'))}")

    def index(self, name: str) -> str:
        pick = self.random.choice
        return pick(
            ("0", "1", f"len({name}) - 1", f"({self.whole(1)}) % len({name})", "k" if name == "r" else "n")
        )

    def number(self, depth: int) -> str:
        """A float."""
        pick = self.random.choice
        if not depth or self.random.random() < 0.15:
            return pick((*self.floats, *self.floats, repr(pick(VALUES[2:])), "RATE"))
        a, b = self.number(depth - 1), self.number(depth - 1)
        lists = pick(self.lists)
        return pick(
            (
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {b})",
                f"({a} / {b})",
                f"({a} // {b})",
                f"({a} % {b})",
                f"(-{a})",
                f"abs({a})",
                f"min({a}, {b})",
                f"max({a}, {b}, 0.5)",
                f"min({lists})",
                f"max({lists})",
                f"float({self.whole(depth - 1)})",
                f"math.sqrt(abs({a}))" if self.random.random() < 0.9 else f"math.sqrt({a})",
                f"({a} if {self.condition(depth - 1)} else {b})",
                f"({a} * {self.whole(depth - 1)})",
                f"({self.whole(depth - 1)} / {b})",
                f"({a} if math.isnan({b}) else {b})",
                f"{lists}[{self.index(lists)}]",
                f"RATES[{self.whole(depth - 1)} % 3]",
                f"math.fabs({a})",
            )
        )

    def whole(self, depth: int) -> str:
        """A whole number."""
        pick = self.random.choice
        if not depth or self.random.random() < 0.2:
            return (
                pick((*self.wholes, *self.wholes, str(pick((0, 1, 2, 3, 7, -2, 12))), "COUNT"))
                if self.wholes
                else "2"
            )
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        return pick(
            (
                f"({a} + {b})",
                f"({a} - {b})",
                f"(({a} * {b}) % 1009)",
                f"({a} // {b})" if self.random.random() < 0.3 else f"({a} // 3)",
                f"({a} % {pick(('5', '-4', b))})",
                f"(-{a})",
                f"abs({a})",
                f"min({a}, {b})",
                f"max({a}, {b})",
                f"len({pick(self.lists)})",
                f"(round({self.number(depth - 1)} / 1e3) % 1009)",
                f"(int({self.number(depth - 1)} % 97.0))",
                f"(math.floor({self.number(depth - 1)} % 31.0))",
                f"(math.ceil({self.number(depth - 1)} % 31.0))",
                f"bisect_left(ASCENDING, {self.number(depth - 1)})",
                f"(abs({a}) % 6) ** 2",
                f"({a} if {self.condition(depth - 1)} else {b})",
                f"({a} and {b})",
                f"({a} or {b})",
                f"int({self.condition(depth - 1)})",
            )
        )

    def condition(self, depth: int) -> str:
        """A condition for an ``if``."""
        pick, sign = self.random.choice, self.random.choice(("<", "<=", ">", ">=", "==", "!="))
        compared = f"{self.number(max(depth - 1, 0))} {sign} {self.number(max(depth - 1, 0))}"
        if not depth or self.random.random() < 0.4:
            return compared
        return pick(
            (
                f"not {self.whole(depth - 1)} > 1",
                f"({self.condition(depth - 1)} and {self.condition(depth - 1)})",
                f"({self.condition(depth - 1)} or {self.condition(depth - 1)})",
                f"{self.number(depth - 1)}",
                f"not {self.number(depth - 1)}",
                f"bool({self.number(depth - 1)})",
                f"0 <= {self.whole(depth - 1)} < 5",
                compared,
            )
        )


HEAD = '''"""Random programs."""

import math
from bisect import bisect_left

from engine.base.program import full, program, zeros

RATE, RATES, COUNT, ASCENDING = -2.5, (0.5, 1.25, -4.0), 5, [-1.0, 0.0, 0.5, 3.0, 3.0, 12.0]
'''
