"""Every public function annotates its arguments and its result; pyright checks the annotations (`python -m
pyright`)."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.cases import in_one_test

ROOT = Path(__file__).resolve().parents[1]
CHECKED = ("engine", "course", "widgets/kit", "lessons")
BESIDE_READERS = ROOT / "engine/puzzles"  # run in the page beside the reader's code, as plain as it
FILES = [
    path
    for folder in CHECKED
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.parent != BESIDE_READERS
]


def is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def public_functions(body: list[ast.stmt], before: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """(qualified name, function) of a module's public functions and its public classes' methods."""
    for node in body:
        if isinstance(node, ast.ClassDef) and is_public(node.name):
            yield from public_functions(node.body, f"{before}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and is_public(node.name):
            yield before + node.name, node


def unannotated(source: str) -> list[str]:
    """The missing annotations of a module's public functions, each as 'function(argument)' or 'function
    ->'."""
    found = []
    for name, function in public_functions(ast.parse(source).body):
        own = function.args
        arguments = [*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg]
        found += [
            f"{name}({argument.arg})"
            for argument in arguments
            if argument and argument.annotation is None and argument.arg not in ("self", "cls")
        ]
        found += [f"{name} ->"] if function.returns is None else []
    return found


def object_fields(source: str) -> list[str]:
    """Fields of classes that are declared as `object`, with which a type checker allows nothing to be
    done."""
    return [
        f"{node.name}.{ast.unparse(field.target)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and ast.unparse(field.annotation) == "object"
    ]


@in_one_test("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_every_public_function_is_annotated(path):
    source = path.read_text(encoding="utf-8")
    assert unannotated(source) == []
    assert object_fields(source) == []


def test_what_is_left_open_is_found():
    source = (
        "class A:\n    cost: object\n    def f(self, x: int, *rest, y=1) -> int: ...\n"
        "    def _g(self, x): ...\nclass _B:\n    def f(self, x): ...\ndef h(): ...\n"
    )
    assert unannotated(source) == ["A.f(y)", "A.f(rest)", "h ->"]
    assert object_fields(source) == ["A.cost"]
