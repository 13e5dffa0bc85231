"""Random functions of plain Python within the compiler's grammar: texts, whole numbers, lists, dicts,
classes."""

from __future__ import annotations

from random import Random

HEAD = '''"""Random functions."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import NamedTuple

WORDS = ("alpha", "beta", "Gamma", "")
RATES = {"alpha": 0.5, "beta": -3.25, "Gamma": 1e16}


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: float = 0.5

    @property
    def name(self):
        return f"{self.left}:{self.right:.3g}"

    def swapped(self):
        return self._replace(left=int(self.right), right=float(self.left))

    def mirrored(self):
        return Pair(int(self.right), float(self.left))


@dataclass(frozen=True)
class Item:
    """A record."""

    key: str
    count: int = 1
    parts: tuple = ()

    def __post_init__(self):
        if self.count > 10**6:
            raise ValueError(f"count must be small, got {self.count}")

    def more(self, by: int = 1):
        return replace(self, count=self.count + by)

    def fewer(self, by: int = 1):
        return Item(self.key, self.count - by, self.parts)

    @classmethod
    def of(cls, key):
        return cls(key, len(key))

    @staticmethod
    def size(parts):
        return sum(len(each) for each in parts)


class Heap:
    """A thing that changes."""

    def __init__(self, start, *more):
        self.held = [start, *more]

    def put(self, value):
        self.held.append(value)
        return self

    def __len__(self):
        return len(self.held)


def steps(start, end):
    while start < end:
        yield start
        start += 3


def several(first, *rest):
    return first + sum(rest)


def scaled(first, scale=2, **named):
    return first * scale + sum(named.values())


'''
FORMATS = ("", ":.3f", ":.2e", ":g", ":.4g", ":>9.2f", ":<8", ":^9", ":+.1f", ":,.2f", ":.1%")
OF_WHOLE = ("", ":d", ":,", ":>6", ":<6", ":+d", ":^7", ":.1f")
OF_TEXT = ("", "!r", ":>8", ":<8", ":^8", ":.2")
TEXTS = ("", "a", "Gamma", "beta 2", "x=1, y=2", "  pad ", "ß", "tab\\t", "12", "-3", "1e3", "naïve", "a'b")


class Drawn:
    """Writes one random function of a whole number, a float and a text."""

    def __init__(self, random: Random, name: str) -> None:
        self.random, self.name, self.lines, self.count, self.loops = random, name, [], 0, 0
        self.names = {"whole": ["i"], "real": ["x"], "text": ["s"], "list": [], "dict": []}

    def source(self) -> str:
        self.lines = [f"def {self.name}(i, x, s):"]
        self.add(1, "q, d, n = [i, 2, -3], {s: i, 'k': 1}, 0")
        self.names["list"], self.names["dict"] = ["q"], ["d"]
        self.names["whole"].append("n")
        for _ in range(self.random.choice((3, 5, 8))):
            self.statement(1)
        kinds = ("whole", "real", "text", "list", "dict", "truth", "record")
        self.add(1, f"return ({', '.join(self.of(kind, 2) for kind in kinds)})")
        return "\n".join(self.lines)

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def pick(self, *several: str) -> str:
        return self.random.choice(several)

    def seldom(self, one: str, other: str) -> str:
        """Now and then something that may raise, else something that does not."""
        return one if self.random.random() < 0.15 else other

    def new(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def known(self, kind: str) -> str:
        return self.random.choice(self.names[kind])

    def own(self, kind: str) -> str:
        """A name that may be assigned."""
        return self.random.choice([name for name in self.names[kind] if name.isidentifier()])

    def of(self, kind: str, depth: int) -> str:
        return getattr(self, kind)(depth)

    # -- statements ------------------------------------------------------------------------------------------
    def statement(self, depth: int) -> None:
        ways = [self.assigned, self.assigned, self.changed, self.changed]
        if depth < 4:
            ways += [self.branch, self.attempt]
        if depth < 4 and self.loops < 2:
            ways.append(self.loop)
        if depth == 1:
            ways += [self.unpacked, self.inner, self.made]
        self.random.choice(ways)(depth)

    def inside(self, depth: int) -> None:
        """Statements that may not run: what they name is not known after them."""
        kept = {kind: list(names) for kind, names in self.names.items()}
        for _ in range(self.random.choice((1, 1, 2))):
            self.statement(depth)
        self.names = kept

    def assigned(self, depth: int) -> None:
        kind = self.random.choice(("whole", "real", "text", "list", "dict"))
        name = self.new() if self.random.random() < 0.6 else self.own(kind)
        self.add(depth, f"{name} = {self.of(kind, 3)}")
        if name not in self.names[kind]:
            self.names[kind].append(name)

    def changed(self, depth: int) -> None:
        q, d = self.known("list"), self.known("dict")
        whole, text = self.whole(2), self.text(2)
        self.add(
            depth,
            self.pick(
                f"{self.own('whole')} {self.pick('+=', '-=', '*=')} {self.whole(1)} % 1000",
                f"{self.own('real')} {self.pick('+=', '-=', '*=')} {self.real(2)}",
                f"{self.own('text')} += {text}[:9]",
                f"{q}.append({whole})",
                f"{q}.insert({self.pick('0', '1', 'len(' + q + ')')}, {whole})",
                f"{q}.extend({self.list(2)}[:20])",
                f"{self.own('list')} += [{whole}]",
                f"{q}.sort({self.pick('', 'reverse=True', 'key=lambda each: -each', 'key=abs')})",
                f"n = {q}.pop({self.pick('', '0', '-1')})",
                f"{q}[{self.pick('0', '-1', 'len(' + q + ') // 2')}] {self.pick('=', '+=')} {whole}",
                f"{d}[{text}] = {whole}",
                f"{d}['k'] = {d}.get({text}, 0) + 1",
                f"{d}.setdefault({text}, {whole})",
                f"n = {d}.pop({text}, {whole})",
                f"{d}.update({self.dict(2)})",
                f"{self.own('dict')} |= {self.dict(1)}",
            ),
        )

    def branch(self, depth: int) -> None:
        self.add(depth, f"if {self.pick(self.truth(2), '(n := ' + self.whole(2) + ') > 2')}:")
        self.inside(depth + 1)
        if self.random.random() < 0.4:
            self.add(depth, f"elif {self.truth(2)}:")
            self.inside(depth + 1)
        if self.random.random() < 0.4:
            self.add(depth, "else:")
            self.inside(depth + 1)

    def attempt(self, depth: int) -> None:
        self.add(depth, "try:")
        self.inside(depth + 1)
        way = self.random.random()
        kind = self.pick("ValueError", "(KeyError, IndexError)", "ZeroDivisionError", "Exception")
        if way < 0.8:
            self.add(depth, f"except {kind}{self.pick('', ' as error')}:")
            if self.random.random() < 0.3:
                self.add(depth + 1, self.pick("raise", "raise ValueError('again')", "return (i, 'left')"))
            else:
                self.inside(depth + 1)
        if 0.5 < way < 0.8:
            self.add(depth, "else:")
            self.inside(depth + 1)
        if way >= 0.65 and not 0.5 < way < 0.8:
            self.add(depth, "finally:")
            self.add(depth + 1, "n = 7")

    def loop(self, depth: int) -> None:
        self.loops += 1
        kept = {kind: list(names) for kind, names in self.names.items()}
        one, other = self.new(), self.new()
        q, d = self.known("list"), self.known("dict")
        head, kinds = self.random.choice(
            (
                (f"for {one} in range({self.pick('4', '1, 6, 2', '5, 0, -1')}):", {"whole": [one]}),
                (f"for {one} in list({q})[:9]:", {"whole": [one]}),
                (
                    f"for {one}, {other} in enumerate({self.text(1)}[:5], 1):",
                    {"whole": [one], "text": [other]},
                ),
                (f"for {one}, {other} in sorted({d}.items()):", {"text": [one], "whole": [other]}),
                (f"for {one}, {other} in zip({q}[:5], WORDS):", {"whole": [one], "text": [other]}),
                (f"for {one} in {self.text(1)}.split({self.pick('', repr(','))}):", {"text": [one]}),
                (f"for {one} in steps({self.pick('0', '2')}, 9):", {"whole": [one]}),
                (f"for {one} in reversed({q}[:4]):", {"whole": [one]}),
            )
        )
        self.add(depth, head)
        for kind, names in kinds.items():
            self.names[kind] += names
        self.statement(depth + 1)
        if self.random.random() < 0.4:
            self.add(depth + 1, f"if {self.truth(1)}:")
            self.add(depth + 2, self.pick("break", "continue"))
        self.statement(depth + 1)
        self.names = kept
        self.loops -= 1

    def unpacked(self, depth: int) -> None:
        one, other = self.new(), self.new()
        way = self.random.random()
        if way < 0.4:
            self.add(depth, f"{one}, *{other} = [{self.whole(1)}, *{self.list(1)}]")
            self.names["whole"].append(one), self.names["list"].append(other)
        elif way < 0.7:
            self.add(depth, f"{one}, {other} = {self.text(1)}, {self.whole(2)}")
            self.names["text"].append(one), self.names["whole"].append(other)
        else:
            self.add(depth, f"({one}, {other}), n = Pair({self.whole(1)}, {self.real(1)}), {self.whole(1)}")
            self.names["whole"].append(one), self.names["real"].append(other)

    def inner(self, depth: int) -> None:
        """A function inside, which sees what is around it."""
        name = self.new()
        kept = {kind: list(names) for kind, names in self.names.items()}
        self.add(depth, f"def {name}(a, b={self.pick('2', '0.5')}, *, c=1):")
        self.names["whole"].append("a")
        if self.random.random() < 0.5:
            self.add(depth + 1, f"if {self.truth(1)}:")
            self.add(depth + 2, f"return {self.whole(1)}")
        self.add(depth + 1, f"return a * {self.pick('c', '1')} + {self.whole(2)}")
        self.names = kept
        made = self.new()
        self.add(depth, f"{made} = {name}({self.whole(1)}{self.pick('', ', c=2', ', 3', ', b=1, c=3')})")
        self.names["whole"].append(made)

    def made(self, depth: int) -> None:
        """Something made of a class, and asked."""
        name = self.new()
        way = self.random.random()
        if way < 0.3:
            by, way = self.pick("", "3", "by=2"), self.pick("more", "fewer")
            self.add(depth, f"{name} = Item({self.text(1)}, count={self.whole(1)}).{way}({by})")
            self.names["whole"].append(f"{name}.count"), self.names["text"].append(f"{name}.key")
        elif way < 0.6:
            right, way = self.pick("", ", right=1.5"), self.pick("swapped", "mirrored")
            self.add(depth, f"{name} = Pair({self.whole(1)}{right}).{way}()")
            self.names["whole"].append(f"{name}.left"), self.names["real"].append(f"{name}.right")
            self.names["text"].append(f"{name}.name")
        else:
            self.add(depth, f"{name} = Heap({self.whole(1)}, 5).put({self.whole(1)}).put(n)")
            self.names["whole"].append(f"len({name})"), self.names["list"].append(f"{name}.held")

    # -- expressions -----------------------------------------------------------------------------------------
    def whole(self, depth: int) -> str:
        if not depth or self.random.random() < 0.2:
            return self.pick(self.known("whole"), self.known("whole"), "0", "1", "-2", "7", "10**20", "255")
        a, b, q, d = self.whole(depth - 1), self.whole(depth - 1), self.list(depth - 1), self.known("dict")
        return self.pick(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b} % 1009)",
            f"({a} // {self.seldom(b, '3')})",
            f"({a} % {self.seldom(b, '-7')})",
            f"(-{a})",
            f"abs({a})",
            f"(abs({a}) % 5) ** 3",
            f"({a} & 255 | 16)",
            f"min({a}, {b})",
            f"max({q}, default={b})",
            f"max({q}, key=lambda each: (each % 7, each))",
            f"sum({q})",
            f"sum(1 for each in {q} if each > {b})",
            f"len({self.of(self.pick('list', 'text', 'dict'), depth - 1)})",
            f"{q}[{self.pick('0', '-1', '1')}]",
            f"{q}.index({self.seldom(b, q + '[-1]')})",
            f"{q}.count({b})",
            f"{d}[{self.seldom(self.text(depth - 1), repr('k'))}]",
            f"{d}.get({self.text(depth - 1)}, {b})",
            f"({a} if {self.truth(depth - 1)} else {b})",
            f"int({self.real(depth - 1)} % 97.0)",
            f"int({self.seldom(self.text(depth - 1), repr(' -3 '))})",
            f"round({self.real(depth - 1)} % 1e6)",
            f"math.floor({self.real(depth - 1)} % 31.0)",
            f"math.ceil({self.real(depth - 1)} % 31.0)",
            f"math.gcd({a}, {b})",
            f"bisect_left([1, 2, 2, 9], {a})",
            f"({a} and {b})",
            f"({a} or {b})",
            f"next((each for each in {q} if each > 1), {b})",
            f"several({a}, {b}{self.pick('', ', 3')})",
            f"scaled({a}{self.pick('', ', 3', ', scale=3', ', k=4', ', scale=1, k=2, m=3')})",
            f"(lambda one, other=2: one - other)({a}{self.pick('', ', ' + b)})",
            f"Item.size([{self.text(depth - 1)}, {q}])",
            f"Item.of({self.text(depth - 1)}).count",
            f"int({self.truth(depth - 1)})",
        )

    def real(self, depth: int) -> str:
        if not depth or self.random.random() < 0.2:
            return self.pick(self.known("real"), self.known("real"), "0.0", "2.5", "-0.125", "1e22", "0.1")
        a, b = self.real(depth - 1), self.real(depth - 1)
        return self.pick(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} / {self.seldom(b, '0.3')})",
            f"({a} // {self.seldom(b, '-0.7')})",
            f"({a} % {self.seldom(b, '2.5')})",
            f"(-{a})",
            f"abs({a})",
            f"min({a}, {b}, 3.5)",
            f"max({a}, {b})",
            f"({a} * {self.whole(depth - 1)})",
            f"({self.whole(depth - 1)} / {self.seldom(self.whole(depth - 1), '7')})",
            f"float({self.whole(depth - 1)})",
            f"float({self.seldom(self.text(depth - 1), repr(' 1e3'))})",
            f"math.sqrt({self.seldom(a, 'abs(' + a + ')')})",
            f"round({a} % 1e9, {self.pick('1', '3')})",
            f"({a} if {self.truth(depth - 1)} else {b})",
            f"RATES[{self.seldom('s', repr('beta'))}]",
            f"sum([{a}, {b}], 0.5)",
            f"({a} or {b})",
        )

    def text(self, depth: int) -> str:
        if not depth or self.random.random() < 0.25:
            return self.pick(self.known("text"), self.known("text"), *(f'"{each}"' for each in TEXTS))
        a, b = self.text(depth - 1), self.text(depth - 1)
        return (
            self.pick(
                f"({a} + {b})",
                f"({a} * (abs({self.whole(depth - 1)}) % 3))",
                f"{a}[{self.pick('1:', ':2', '-2:', '::2', '::-1', '1:-1')}]",
                f"{a}[{self.pick('0', '-1')}]",
                f"{a}.{self.pick('upper()', 'lower()', 'strip()', 'rstrip()', 'lstrip()')}",
                f"{a}.strip({self.pick(repr('ab '), repr('x'))})",
                f"{a}.replace({b} or 'a', {self.pick(repr('_'), b)})",
                f"{self.pick(repr('-'), repr(''), b)}.join({a}.split({self.pick('', repr('a'))}))",
                f"', '.join(str(each) for each in {self.list(depth - 1)})",
                f"{a}.partition({self.pick(repr('='), repr(' '))})[{self.pick('0', '1', '2')}]",
                f"{a}.removeprefix({self.pick(repr('a'), b)})",
                f"({a} if {self.truth(depth - 1)} else {b})",
                f"str({self.of(self.pick('whole', 'real', 'list', 'record', 'truth'), depth - 1)})",
                f"repr({self.of(self.pick('text', 'real', 'dict'), depth - 1)})",
                f"WORDS[{self.whole(depth - 1)} % 4]",
                f"max({a}, {b})",
                f"sorted([{a}, {b}, 'k'])[0]",
                f"Pair({self.whole(depth - 1)}).name",
            )
            if self.random.random() < 0.85
            else self.formatted()
        )

    def formatted(self) -> str:
        """An f-string of names, which hold no quotes."""
        names = {"whole": OF_WHOLE, "real": FORMATS, "text": OF_TEXT}
        plain = {kind: [n for n in self.names[kind] if n.isidentifier()] for kind in names}
        each = [
            f"{{{self.random.choice(plain[kind])}{self.random.choice(names[kind])}}}"
            for kind in self.random.choices(list(names), k=2)
        ]
        return f'f"{each[0]} of {each[1]}"'

    def list(self, depth: int) -> str:
        if not depth or self.random.random() < 0.3:
            return self.known("list")
        q, a = self.list(depth - 1), self.whole(depth - 1)
        return self.pick(
            f"[{a}, {self.whole(depth - 1)}]",
            f"({q} + [{a}])",
            f"([{a}] * (abs({self.whole(depth - 1)}) % 3))",
            f"{q}[{self.pick('1:', ':2', '::-1', '-3:', '::2')}]",
            f"sorted({q}{self.pick('', ', reverse=True', ', key=lambda each: each % 5')})",
            f"[each * 2 for each in {q} if each % 3 != {self.pick('0', '1')}]",
            f"[one + other for one in {q}[:3] for other in (1, {a})]",
            f"sorted({{each % 5 for each in {q}}})",
            f"sorted(set({q}) & {{1, 2, {a}}})",
            f"list(range({self.pick('3', '1, 9, 4', 'len(' + q + ')')}))",
            f"list({self.known('dict')}.values())",
            f"[len(each) for each in {self.text(depth - 1)}.split()]",
            f"[place for place, each in enumerate({q}) if each]",
            f"list(map(abs, {q}))",
            f"[*steps(0, {self.pick('4', '7')}), {a}]",
            f"({q} or [{a}])",
        )

    def dict(self, depth: int) -> str:
        if not depth or self.random.random() < 0.3:
            return self.known("dict")
        d = self.dict(depth - 1)
        return self.pick(
            f"{{{self.text(depth - 1)}: {self.whole(depth - 1)}, 'k': 2}}",
            f"{{**{d}, {self.text(depth - 1)}: 5}}",
            f"({d} | {{'z': {self.whole(depth - 1)}}})",
            f"{{key: value + 1 for key, value in {d}.items()}}",
            "{word: len(word) for word in WORDS if word}",
            f"dict({d}, k={self.whole(depth - 1)})",
            f"dict(zip(WORDS, {self.list(depth - 1)}))",
        )

    def truth(self, depth: int) -> str:
        sign = self.pick("<", "<=", ">", ">=", "==", "!=")
        kind = self.pick("whole", "real", "text") if depth else "whole"
        compared = f"{self.of(kind, max(0, depth - 1))} {sign} {self.of(kind, max(0, depth - 1))}"
        if not depth or self.random.random() < 0.35:
            return f"({compared})"
        a, b = self.truth(depth - 1), self.truth(depth - 1)
        q, text = self.list(depth - 1), self.text(depth - 1)
        return self.pick(
            f"({a} and {b})",
            f"({a} or {b})",
            f"(not {a})",
            f"(0 <= {self.whole(depth - 1)} < 9)",
            f"({self.whole(depth - 1)} {self.pick('in', 'not in')} {q})",
            f"({text} in {self.pick('WORDS', 's', self.known('dict'))})",
            f"({q} == {self.list(depth - 1)})",
            f"({q} < {self.list(depth - 1)})",
            f"bool({self.of(self.pick('whole', 'real', 'text', 'list', 'dict'), depth - 1)})",
            f"any(each > 2 for each in {q})",
            f"all(each > 0 for each in {q})",
            f"{text}.startswith({self.pick(repr('a'), repr(''), '(' + repr('x') + ', ' + repr('be') + ')')})",
            f"{text}.endswith({self.pick(repr('a'), repr('2'))})",
            f"{text}.isdigit()",
            f"isinstance({self.whole(depth - 1)}, {self.pick('int', 'str', '(int, float)')})",
            f"isinstance({self.pick(self.real(depth - 1), text)}, {self.pick('int', 'str', '(str, float)')})",
            f"math.isnan({self.real(depth - 1)})",
            f"({self.record(depth - 1)} == {self.record(depth - 1)})",
        )

    def record(self, depth: int) -> str:
        if not depth:
            return self.pick("Pair(1)", "Item('k')", "(1, 'a')", "None")
        return self.pick(
            f"Pair({self.whole(depth - 1)}, {self.real(depth - 1)})",
            f"Item({self.text(depth - 1)}, {self.whole(depth - 1)} % 1000)",
            f"Item({self.text(depth - 1)}, parts=({self.whole(depth - 1)}, {self.text(depth - 1)}))",
            f"({self.whole(depth - 1)}, {self.text(depth - 1)})",
            f"({self.text(depth - 1)},)",
            "Pair(3)._asdict()",
            "vars(Item('k'))",
        )


def state(random: Random) -> tuple[int, float, str]:
    """What a function is called with."""
    return (
        random.choice((0, 1, -1, 2, 5, 12, -7, 255, 10**18, random.randrange(-50, 50))),
        random.choice((0.0, -0.0, 1.0, -2.5, 0.1, 1e-9, 3e8, 1e300, float("inf"), random.uniform(-9, 9))),
        random.choice(("", "alpha", "beta", "Gamma", "k", "12", " x=1, y=2", "naïve ß", "a b  c", "it's")),
    )
