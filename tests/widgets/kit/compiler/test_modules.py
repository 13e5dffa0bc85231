"""Whole modules of plain Python: what cannot be kept to in JavaScript is refused, with its place."""

import re
from pathlib import Path

import pytest

from widgets.kit.compiler.modules import translate
from widgets.kit.compiler.modules.bundle import RUNTIME, literal, offered
from widgets.kit.compiler.modules.translate import Module
from widgets.kit.compiler.refusal import NotTranslatable

REFUSED = {
    "global": ("def f():\n    global x\n    x = 1\n", 2, "global"),
    "nonlocal": ("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n", 4, "nonlocal"),
    "an unknown name": (
        "def f():\n    return undefined_here\n",
        2,
        "no module here defines, undefined_here,",
    ),
    "async": ("async def f():\n    return 1\n", 1, "async def"),
    "del": ("x = [1]\ndel x[0]\n", 2, "del.*without it"),
    "match": ("match 1:\n    case 1:\n        pass\n", 1, "match.*if and elif"),
    "yield from": ("def f(a):\n    yield from a\n", 2, "yield from"),
    "an operator": ("x = 5 ^ 3\n", 1, r"\^"),
    "an assignment with an operator": ("x = 5\nx <<= 3\n", 2, "<<"),
    "a changeable default": ("def f(a=[]):\n    return a\n", 1, "default that can change.*None"),
    "keywords behind a star": ("def f(*a, **b):\n    return a, b\n", 1, "keyword behind"),
    "a loop's else": (
        "def f(a):\n    for x in a:\n        pass\n    else:\n        return 1\n",
        2,
        "else of a loop",
    ),
    "else and finally": (
        "try:\n    pass\nexcept ValueError:\n    pass\nelse:\n    pass\nfinally:\n    pass\n",
        1,
        "else and finally",
    ),
    "two contexts": ("with a, b:\n    pass\n", 1, "several contexts"),
    "fields elsewhere": (
        "import numpy as m\n@dataclass\nclass A(m.B):\n    a: int\n",
        3,
        r"base's fields above it, m\.B",
    ),
    "a base with work to do": (
        (
            "@dataclass\nclass B:\n    b: int\n    def __post_init__(self):\n        pass\n"
            "@dataclass\nclass A(B):\n    a: int\n"
        ),
        7,
        "base's fields above it, B",
    ),
    "two bases": ("class A(int, str):\n    pass\n", 1, "several bases"),
    "another decorator of a method": ("class A:\n    @other\n    def f(self):\n        pass\n", 3, "@other"),
    "a module that is not there": ("import socket\n", 1, "a page does not have, socket"),
    "a name that is not there": ("from itertools import groupby\n", 1, r"itertools\.groupby"),
    "a module without a name": ("import collections.abc\n", 1, "collections.abc.*import a.b as c"),
    "a target that is called for": ("def f(a):\n    a.g().x += 1\n", 2, "calls for its target"),
    "a conversion": ("x = f'{1!a}'\n", 1, "!a.*!r"),
}


def refused(tmp_path, text: str) -> str:
    file = tmp_path / "m.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(NotTranslatable) as words:
        Module("m", file, offered(*RUNTIME.values()), frozenset()).body()
    return str(words.value).replace(str(file), "m.py")


@pytest.mark.parametrize("what", REFUSED)
def test_what_it_cannot_keep_it_refuses_with_its_place(tmp_path, what):
    text, line, words = REFUSED[what]
    said = refused(tmp_path, text)
    assert said.startswith(f"m.py:{line}: ") and said.endswith("(widgets/kit/compiler/GRAMMAR.md)")
    assert re.search(words, said), said


def test_a_table_holds_numbers_texts_and_tables():
    assert literal({"a": [1, 0.5, float("inf"), True, 'x"']}) == '{"a":[1n,0.5,Infinity,true,"x\\""]}'
    with pytest.raises(NotTranslatable, match="in a table"):
        literal({"a": None})


def test_all_that_is_refused_by_name_is_in_the_list(tmp_path):
    source = Path(translate.__file__).read_text(encoding="utf-8")
    said = set(re.findall(r'self\.refuse\([\w.]+, "([^"]+)"', source)) | set(translate.NAMED.values())
    assert said == set(translate.REFUSED)
