"""Seeded nonsense: what a link, a file, a shell, a field or a stranger's program might send. The same seed gives the same cases.

    make fuzz                          minutes of it, thirty times as much as `make test` runs
    make fuzz FUZZ_SEED=7 FUZZ_TIMES=5
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from random import Random

SEED, TIMES = int(os.environ.get("FUZZ_SEED", "1")), float(os.environ.get("FUZZ_TIMES", "1"))

NUMBERS = ("0", "-0", "1", "-1", "2", "3", "7", "8", "64", "0.5", ".5", "5.", "1e3", "1E+3", "1e-3", "70e9", "1e15", "1e16", "1e300",
           "1e308", "1e309", "-1e309", "5e-324", "1e-400", "9007199254740993", "123456789012345678901234567890", "9" * 400,
           "nan", "NaN", "inf", "-inf", "Infinity", "1_000", "0x10", "0b1", "1e", "e1", "--1", "+-1", "1 2", "1,5", "1,000", "１２", "٣",
           "−3", "1/3", "1e1e1", "1.2.3")
NASTY = ("", " ", "\t", "\n", "\r\n", "\x00", "\x07", "\x1b[31m", "\ufeff", "\u202e", "\u200b", "\u0300" * 40, "\ud7ff", "\U0010ffff", "🧨", "ß",
         "İ", "<script>hacked = 1</script>", "<img src=x onerror='hacked = 1'>", "\"onmouseover=\"hacked=1", "javascript:hacked=1",
         "'); hacked = 1; //", "${hacked = 1}", "{{7*7}}", "%s%n", "{0}", "{heads}", "\\", "\\u0000", "'", '"', "`", "__proto__", "constructor",
         "prototype", "toString", "hasOwnProperty", "valueOf", "__class__", "length", "null", "None", "undefined", "true", "on", "off",
         "../../etc/passwd", "/dev/zero", "%", "%00", "%zz", "%E0%A4%A", "%u0041", "&", "=", "?", "#", "+", ";", "-", "--", "-h", "@file",
         "A" * 300, "9" * 3000, " " * 3000, "1" * 3000 + "x", "(" * 300, "[" * 300)


def cases(make: Callable[[Random], object], count: int) -> list:
    """So many of one kind, times what was asked for."""
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
    return "".join(chr(point) for _ in range(random.randrange(30)) if not 0xD800 <= (point := random.randrange(1, 0x11000)) < 0xE000)


def quantity(random: Random, words: list[str]) -> str:
    """What somebody might type for a quantity: digits with commas and points, a unit or half of one, spaces, signs, letters."""
    digits = "".join(random.choices("0123456789,.", k=random.randrange(1, 9)))
    amount = random.choice((digits, digits.strip(","), random.choice(NUMBERS), f"{random.uniform(0, 2000):.{random.randrange(5)}f}",
                            f"{random.randrange(10**9):,}"))
    unit = random.choice((*words, *words, "", random.choice(NASTY), "x"))
    unit = random.choice((unit, unit, unit.lower(), unit.upper(), unit[:-1]))
    return "".join((random.choice(("", "", "$", "-", "+", "−", " ", "$ ")), amount, random.choice(("", " ", "  ", "\u00a0")), unit,
                    random.choice(("", "", " ", ".", "\n"))))


def anything(random: Random, depth: int = 3):
    """A value as JSON can hold it, of any type."""
    kind = random.randrange(9 if depth else 7)
    if kind == 7:
        return [anything(random, depth - 1) for _ in range(random.randrange(4))]
    if kind == 8:
        return {text(random)[:40]: anything(random, depth - 1) for _ in range(random.randrange(4))}
    return (None, True, False, random.choice((0, -1, 1, 10**30, 2**53 + 1)), random.uniform(-1e6, 1e6), text(random),
            random.randrange(2000))[kind]


def changed(random: Random, values: dict, keys) -> dict:
    """A good object with something wrong in it: values of other types, keys missing, keys that mean something elsewhere."""
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
