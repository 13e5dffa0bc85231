"""Random nonsense from a seed: texts that a link, a file, a shell, a field or a stranger's program might
send. The same seed gives the same cases.

make fuzz                          minutes of it, thirty times as much as `make test` runs
make fuzz FUZZ_SEED=7 FUZZ_TIMES=5
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from random import Random

from engine.base import typed, units

SEED, TIMES = int(os.environ.get("FUZZ_SEED", "1")), float(os.environ.get("FUZZ_TIMES", "1"))

NUMBERS = (
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "8",
    "64",
    "0.5",
    ".5",
    "5.",
    "1e3",
    "1E+3",
    "1e-3",
    "70e9",
    "1e15",
    "1e16",
    "1e300",
    "1e308",
    "1e309",
    "-1e309",
    "5e-324",
    "1e-400",
    "9007199254740993",
    "123456789012345678901234567890",
    "9" * 400,
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "1_000",
    "0x10",
    "0b1",
    "1e",
    "e1",
    "--1",
    "+-1",
    "1 2",
    "1,5",
    "1,000",
    "１２",
    "٣",
    "−3",
    "1/3",
    "1e1e1",
    "1.2.3",
)
NASTY = (
    "",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\x00",
    "\x07",
    "\x1b[31m",
    "\ufeff",
    "\u202e",
    "\u200b",
    "\u0300" * 40,
    "\ud7ff",
    "\U0010ffff",
    "🧨",
    "ß",
    "İ",
    "<script>hacked = 1</script>",
    "<img src=x onerror='hacked = 1'>",
    '"onmouseover="hacked=1',
    "javascript:hacked=1",
    "'); hacked = 1; //",
    "${hacked = 1}",
    "{{7*7}}",
    "%s%n",
    "{0}",
    "{heads}",
    "\\",
    "\\u0000",
    "'",
    '"',
    "`",
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "valueOf",
    "__class__",
    "length",
    "null",
    "None",
    "undefined",
    "true",
    "on",
    "off",
    "../../etc/passwd",
    "/dev/zero",
    "%",
    "%00",
    "%zz",
    "%E0%A4%A",
    "%u0041",
    "&",
    "=",
    "?",
    "#",
    "+",
    ";",
    "-",
    "--",
    "-h",
    "@file",
    "A" * 300,
    "9" * 3000,
    " " * 3000,
    "1" * 3000 + "x",
    "(" * 300,
    "[" * 300,
)

TIMES_OF_DAY = ("days", "day", "h", "hours", "min", "s", "ms", "weeks", "GB", "", "%", "parsecs")
FRUIT = ("banana", "constructor", "__proto__", "GB/s")


def cases(make: Callable[[Random], object], count: int) -> list:
    """``count`` random cases of one kind, or FUZZ_TIMES as many."""
    random, count = Random(f"{SEED} {make.__name__}"), math.ceil(count * TIMES)
    print(f"{count:,} of {make.__name__}, seed {SEED}")
    return [make(random) for _ in range(count)]


def text(random: Random) -> str:
    """One nasty text: a number that is none, a few pieces in a row, or letters from anywhere."""
    kind = random.random()
    if kind < 0.4:
        return random.choice(NUMBERS)
    if kind < 0.9:
        return "".join(random.choices((*NASTY, *NUMBERS), k=random.choice((1, 1, 2, 3))))
    return "".join(
        chr(point)
        for _ in range(random.randrange(30))
        if not 0xD800 <= (point := random.randrange(1, 0x11000)) < 0xE000
    )


def quantity(random: Random, words: list[str]) -> str:
    """What somebody might type for a quantity: digits with commas and points, a unit or half of one, spaces,
    signs, letters."""
    digits = "".join(random.choices("0123456789,.", k=random.randrange(1, 9)))
    amount = random.choice(
        (
            digits,
            digits.strip(","),
            random.choice(NUMBERS),
            f"{random.uniform(0, 2000):.{random.randrange(5)}f}",
            f"{random.randrange(10**9):,}",
        )
    )
    unit = random.choice((*words, *words, "", random.choice(NASTY), "x"))
    unit = random.choice((unit, unit, unit.lower(), unit.upper(), unit[:-1]))
    return "".join(
        (
            random.choice(("", "", "$", "-", "+", "−", " ", "$ ")),
            amount,
            random.choice(("", " ", "  ", "\u00a0")),
            unit,
            random.choice(("", "", " ", ".", "\n")),
        )
    )


def compound(random: Random) -> str:
    """Several numbers in one text: a sum of times, a fraction, a range, or two that have nothing in
    common."""
    parts = [
        f"{random.choice(NUMBERS[:12])}{random.choice(('', ' '))}{random.choice(TIMES_OF_DAY)}"
        for _ in range(random.choice((1, 2, 2, 3)))
    ]
    return random.choice(("", "", "~", "-", "$")) + random.choice(
        (" ", ", ", " and ", "/", " to ", "-")
    ).join(parts)


def typed_text(random: Random) -> tuple[str, str, str]:
    """(text, unit, label): what may be typed where a quantity in this unit is asked for."""
    unit = random.choice(list(typed.FAMILY))
    words = list(typed.WORDS[typed.FAMILY[unit]])
    nouns = [f"{random.choice(('', 'k ', 'M '))}{random.choice((*typed.NOUNS, *FRUIT))}s" for _ in range(4)]
    made = random.choice(
        (
            lambda: quantity(random, words),
            lambda: quantity(random, words),
            lambda: quantity(random, nouns),
            lambda: quantity(random, list(typed.WORDS[random.choice(list(typed.WORDS))])),
            lambda: compound(random),
            lambda: text(random),
        )
    )
    return made(), unit, random.choice(("", "H100s that hold it", "Tokens a second, of each", "GB/s of İ"))


def anything_typed(count: int) -> list[tuple[str, str, str]]:
    """``count`` texts to type into fields of every kind, some of them as the formatter prints them."""
    random = Random(f"{SEED} printed")
    printed = [
        (units.human(10 ** random.uniform(-9, 16), family), family, "")
        for family in units.FAMILIES
        for _ in range(math.ceil(count * TIMES / 60))
    ]
    return printed + cases(typed_text, count)


def anything(random: Random, depth: int = 3):
    """A value as JSON can hold it, of any type."""
    kind = random.randrange(9 if depth else 7)
    if kind == 7:
        return [anything(random, depth - 1) for _ in range(random.randrange(4))]
    if kind == 8:
        return {text(random)[:40]: anything(random, depth - 1) for _ in range(random.randrange(4))}
    return (
        None,
        True,
        False,
        random.choice((0, -1, 1, 10**30, 2**53 + 1)),
        random.uniform(-1e6, 1e6),
        text(random),
        random.randrange(2000),
    )[kind]


def changed(random: Random, values: dict, keys) -> dict:
    """A good object with something wrong in it: values of other types, keys missing, keys that mean something
    elsewhere."""
    values = dict(values)
    for _ in range(random.randrange(1, 4)):
        what = random.random()
        if what < 0.2 and values:
            del values[random.choice(list(values))]
        elif what < 0.9:
            values[random.choice(keys)] = anything(random)
        else:
            values[text(random)[:60]] = anything(random)
    return values
