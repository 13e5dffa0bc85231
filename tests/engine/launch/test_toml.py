"""The TOML reader against tomllib: wherever ours sees no fault, keys and values are the same."""

import random
import time
import tomllib

import pytest

from engine.launch import toml
from engine.launch.texts import LONGEST, Source
from tests.cases import in_one_test
from tests.engine.launch.test_verdict import TITAN

ALL = r'''# everything that TOML has
title = "x # y"
[model]
name = 'llama3'   # why
flavor = "8B"
"quoted.key" = 1
a . b = true
[training]
x = [ 1, 2, # why
  3, { y = [ "]" ] } ]
s = """
several
lines \
   joined""""
t = \'\'\'raw \n
x\'\'\'
inline = { a = 1, b = "c, d", e = { f = 2 }, g.h = 3, i = {} }
esc = "a\tb \u00e9 \U0001F600 \"q\""
numbers = -1
f = +1.5e3
u = 1_000
hex = 0xFf
when = 1979-05-27 07:32:00Z
time = 07:32:00.5
[[block]]
n = 1
[[block]]
n = 2
[block.inside]
n = 3
[a."b c".d]
z = inf
'''.replace("\\'", "'")
PIECES = (
    *("\n", "'", '"', "=", "[", "]", "{", "}", ",", "#", " #", "[[", "]]", '"""', "'''", "\\", "\t", "\r\n"),
    *("x = 1\n", "[y]\n", ".", " ", "_", "0", "1", "-", "e", "\\u12", "[[block]]\n", "[model]\n", "é"),
)
ARRAY = "an array"


def flat(tree, ours: list[str], path: str = "") -> dict:
    """Keys and values; an array is one value, unless we number its tables."""
    if isinstance(tree, dict):
        each = tree.items()
    elif isinstance(tree, list) and any(key.startswith(f"{path}.") for key in ours):
        each = enumerate(tree)
    elif isinstance(tree, list) and tree and not any(tree) and path not in ours:  # headers without a key
        return {}
    else:
        return {path: ARRAY if isinstance(tree, list) else tree}
    found = {}
    for key, value in each:
        found |= flat(value, ours, f"{path}.{key}" if path else str(key))
    return found


def compared(text: str) -> str:
    entries, faults = toml.read(Source("f", text))
    if faults:
        return "fault"
    ours = {entry.key: entry.value for entry in entries}
    try:
        theirs = flat(tomllib.loads(text), list(ours))
    except tomllib.TOMLDecodeError as error:
        raise AssertionError(f"{error}: {text!r}") from None
    assert ours.keys() == theirs.keys(), text
    for key, value in theirs.items():
        if value is ARRAY:
            assert ours[key].startswith("[")
        elif isinstance(value, str):
            assert ours[key] == value, text
        else:
            again = tomllib.loads(f"x = {ours[key]}")["x"]
            assert again == value or again != again
    return "same"


def test_spoilt_files_are_read_as_the_library_reads_them():
    rng = random.Random(3)
    found = []
    for _ in range(2000):
        lines = rng.choice((ALL, ALL, TITAN)).splitlines(keepends=True)
        at = rng.randrange(len(lines))
        text = "".join(lines[at : at + rng.randrange(1, 12)])
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(text) + 1)
            stop, what = min(len(text), at + rng.choice((0, 1, 3, 20))), rng.random()
            text = text[:at] + (rng.choice(PIECES) if what < 0.7 else "") + text[at if what < 0.4 else stop :]
        found.append(compared(text))
    assert found.count("same") > 600


def test_a_number_to_any_base_is_a_number():
    entries, faults = toml.read(Source("f", "a = 0x2000\nb = 0o17\nc = 0b1_01\nd = '0x10'\n"))
    assert not faults
    assert [entry.value for entry in entries] == ["8192", "15", "5", "0x10"]


def test_the_files_themselves():
    assert compared(ALL) == compared(TITAN) == "same"


@in_one_test(
    "text, words",
    [
        ("a = 1\na = 2\n", "f:2: a stands twice"),
        ("[a]\n[a]\n", "f:2: a stands twice"),
        ("a = 1\n[a.b]\n", "f:2: a has a value already"),
        ("a = True\n", "f:1: not a line of TOML: a = True"),
        ("a = 01\n", "f:1: not a line of TOML: a = 01"),
        ('a = """x\n', "f:1: a text in three quotes is never closed"),
        ("a = " + "[" * 300, "f:1: nested too deeply"),
        ("a = {b = 1,\nc = 2}\n", "f:1: not a line of TOML: a = {b = 1,"),
    ],
)
def test_what_is_wrong_is_said(text, words):
    assert str(toml.read(Source("f", text))[1][0]) == words


def test_what_follows_a_line_that_is_no_toml_is_read_and_a_value_is_kept_as_it_stands():
    entries, faults = toml.read(Source("f", "[a]\nb = torch.x(1)  # why\nwords\nc = 2\n"))
    assert [(e.key, e.value) for e in entries] == [("a.b", "torch.x(1)"), ("a.c", "2")]
    assert [fault.line for fault in faults] == [2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "a = [" + "1," * LONGEST,
        'a = """' + "\\\\" * LONGEST,
        "a = {b = 1,\n" * 15_000,
        "x = 1\n" * 30_000,
        "[a]\n" * 50_000,
        "[[a]]\n" * 30_000,
        "a = [" + "{b = 1}, " * 20_000 + "]",
        "a." * LONGEST,
        '"' * LONGEST,
        "a = '''" + "'\n" * LONGEST,
    ],
    ids=lambda text: text[:12].strip(),
)
def test_hostile_texts_end(text):
    began = time.process_time()
    toml.read(Source("f", text[:LONGEST]))
    assert time.process_time() - began < 2.0
