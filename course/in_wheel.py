"""The names that the code of this repository has for those who install it. In the wheel the folders
``engine``, ``widgets`` and ``course`` lie in one package, ``system_ml``, which itself has the public names of
``engine``.

``of_module`` rewrites a module of ours, ``of_program`` a program as a reader writes it, and ``of_words`` a
text about either; ``files`` gives everything that the package holds. Imports are found in the syntax tree,
and names in strings by their form. What cannot be rewritten is ``Refused``, with its line.

Needs only the standard library, because a wheel is made without any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import accumulate
from pathlib import Path

from engine.base.extras import NEEDED

PACKAGE = "system_ml"
PARTS = ("engine", "widgets", "course")  # each a package in the repository, and below PACKAGE in the wheel
AT_HOME = ("kernels", "measure", "record", "bench", "tests")  # packages that no wheel holds
ROOT = Path(__file__).resolve().parents[1]
ONE_OF_THEM = f"({'|'.join(PARTS)})"
BEGINS = r"(?<![\w./-])"  # no part of a path, or of a longer name
DOTTED = re.compile(rf"{BEGINS}{ONE_OF_THEM}((?:\.[A-Za-z_]\w*)+)")
WHOLE = re.compile(rf"{BEGINS}(import |-m )engine(?![\w/]|\.\w)")
OUT_OF = re.compile(rf"{BEGINS}from {ONE_OF_THEM} import\b")
PREFIX = re.compile(rf"""(?:^|(?<=["'])){ONE_OF_THEM}\.(?=$|["'{{])""")  # a whole string, or up to a brace
BY_NAME = ("import_module", "find_spec", "__import__", "run_module")  # functions that take a module's name
MAIN = f'''"""``python -m {PACKAGE}`` is the command ``system-ml``."""

import sys

from {PACKAGE}.course.command import main

if __name__ == "__main__":
    sys.exit(main())
'''


class Refused(Exception):
    """What cannot be rewritten, and on which line."""


# -- what the package offers ---------------------------------------------------------------------------------
@cache
def offered() -> frozenset[str]:
    """The public names of ``engine``."""
    tree = ast.parse((ROOT / "engine" / "__init__.py").read_text(encoding="utf-8"))
    [names] = [
        ast.literal_eval(each.value)
        for each in tree.body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__"
    ]
    return frozenset({*names, "__version__"})


@cache
def _is_module(part: str, name: str) -> bool:
    """Whether a part has a room or a module of this name."""
    place = ROOT / part / name
    return place.is_dir() or place.with_suffix(".py").is_file()


def _renamed(found: re.Match) -> str:
    """What a dotted name of the repository is called in the wheel; the same words if it names nothing."""
    part, rest = found[1], found[2]
    first = rest[1:].partition(".")[0]
    if _is_module(part, first):
        return f"{PACKAGE}.{part}{rest}"
    return f"{PACKAGE}{rest}" if part == "engine" and first in offered() else found[0]


def of_words(text: str) -> str:
    """A text (a docstring, Markdown, a command) with the names of our modules and functions in the wheel."""
    if not any(part in text for part in PARTS):
        return text
    named = WHOLE.sub(rf"\g<1>{PACKAGE}", DOTTED.sub(_renamed, text))
    named = OUT_OF.sub(rf"from {PACKAGE}.\1 import", named)
    return re.sub(rf"\b([Aa])n(\s`*{PACKAGE}\b)", r"\1\2", named)


def _of_string(text: str) -> str:
    """A string, or how it is written, with the names in the wheel."""
    return PREFIX.sub(rf"{PACKAGE}.\1.", of_words(text))


# -- a source ------------------------------------------------------------------------------------------------
def of_module(text: str, extra: str = "") -> str:
    """One of our own modules as it stands in the wheel. If it imports what this extra of the package brings,
    it first asks whether that is installed."""
    source = _Source(text)
    source.imports(for_readers=False)
    source.strings()
    if extra:
        source.ask_for(extra)
    return source.result()


def of_program(text: str) -> str:
    """A program that a reader runs: the package stands in the place of ``engine``."""
    source = _Source(text)
    source.imports(for_readers=True)
    source.strings()
    source.attributes()
    return source.result()


class _Source:
    """A source that is being rewritten: the nodes of its syntax tree, and the pieces to replace."""

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.starts = [0, *accumulate(map(len, self.text.splitlines(keepends=True)))]
        self.tree = ast.parse(text)
        self.nodes = list(ast.walk(self.tree))
        self.pieces: list[tuple[int, int, str]] = []

    def place(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends."""
        begin = self.starts[node.lineno - 1] + node.col_offset
        return begin, self.starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    def written(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        begin, end = self.place(node)
        return self.text[begin:end].decode()

    def replace(self, node: ast.expr | ast.stmt, by: str) -> None:
        """Note what stands in a node's place."""
        self.pieces.append((*self.place(node), by))

    def result(self) -> str:
        """The rewritten source."""
        made, at = [], 0
        for begin, end, by in sorted(self.pieces):
            made += [self.text[at:begin], by.encode()]
            at = end
        return b"".join([*made, self.text[at:]]).decode()

    def imports(self, for_readers: bool) -> None:
        """Rewrite the import statements. For readers the public names of ``engine`` are the package's own."""
        for node in self.nodes:
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            names = _imported(node)
            if missing := [name for name in names if name.partition(".")[0] in AT_HOME]:
                raise Refused(f"{node.lineno}: the wheel has no {missing[0]}")
            if not any(_is_ours(name) for name in names):
                continue
            if isinstance(node, ast.ImportFrom):
                public = node.module == "engine" and all(alias.name in offered() for alias in node.names)
                module = PACKAGE if for_readers and public else f"{PACKAGE}.{node.module}"
                self.replace(node, re.sub(r"^from\s+[\w.]+", f"from {module}", self.written(node)))
            else:
                self.replace(node, _import(node, for_readers))

    def attributes(self) -> None:
        """Rewrite the attributes of ``engine`` where a program imports it as a whole."""
        if not any(isinstance(node, ast.Import) and _imported(node) == ["engine"] for node in self.nodes):
            return
        public = {
            node.value
            for node in self.nodes
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in offered()
        }
        for node in self.nodes:
            if isinstance(node, ast.Name) and node.id == "engine":
                if node not in public:
                    raise Refused(f"{node.lineno}: import by its own name what is none of the public names")
                self.replace(node, PACKAGE)

    def strings(self) -> None:
        """Rewrite the names of modules in strings, docstrings included, and in calls that import by name."""
        formatted = [node for node in self.nodes if isinstance(node, ast.JoinedStr)]
        inside = {each for node in formatted for each in ast.walk(node) if each is not node}
        for node in self.nodes:
            if node in inside:
                continue
            if isinstance(node, ast.Call) and _called(node) in BY_NAME:
                for each in node.args:
                    if isinstance(each, ast.Constant) and each.value in PARTS:
                        self.replace(each, f'"{PACKAGE}.{each.value}"')
            elif isinstance(node, (ast.JoinedStr, ast.Constant)):
                self.string(node)

    def string(self, node: ast.expr) -> None:
        """Rewrite one string. Its text in the source is rewritten, and must then have the rewritten value."""
        wanted = [_of_string(text) for text in _texts(node)]
        if wanted == _texts(node):
            return
        made = _of_string(self.written(node))
        if _texts(ast.parse(f"({made})", mode="eval")) != wanted:
            raise Refused(
                f"{node.lineno}: this string names a module; write the name in one piece, after a space"
            )
        if any(isinstance(each, ast.Name) and each.id in PARTS for each in ast.walk(node)):
            raise Refused(f"{node.lineno}: compute what stands in the string's braces above it")
        self.replace(node, made)

    def ask_for(self, extra: str) -> None:
        """On the line of the first import of what the extra brings, and before it, ask for the extra."""
        for node in self.tree.body:
            if any(name.partition(".")[0] in NEEDED[extra] for name in _imported(node)):
                begin, _ = self.place(node)
                asked = f'from {PACKAGE}.engine.base import extras as _extras; _extras.need("{extra}"); '
                self.pieces.append((begin, begin, asked))
                return


def _imported(node: ast.AST) -> list[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def _texts(node: ast.AST) -> list[str]:
    """The texts of a string, between its braces if it has any."""
    return [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in PARTS


def _import(node: ast.Import, for_readers: bool) -> str:
    """The statement that binds in the wheel what this ``import`` binds in the repository."""
    names, as_others = _imported(node), [alias.asname for alias in node.names]
    if for_readers and names == ["engine"] and as_others == [None]:
        return f"import {PACKAGE}"
    if all(name in PARTS and other is None for name, other in zip(names, as_others)):
        return f"from {PACKAGE} import {', '.join(names)}"
    if all(_is_ours(name) and other for name, other in zip(names, as_others)):
        return f"import {', '.join(f'{PACKAGE}.{name} as {other}' for name, other in zip(names, as_others))}"
    raise Refused(f"{node.lineno}: write `from … import …` instead of `{ast.unparse(node)}`")


def _called(node: ast.Call) -> str:
    """The last name of the function that is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


# -- the package ---------------------------------------------------------------------------------------------
def files(root: Path = ROOT) -> Iterator[tuple[str, bytes]]:
    """(path in the package, contents) of everything in the package but the built course. What is refused has
    its file before its line."""
    yield "py.typed", b""  # type checkers read the annotations of a package that has this file
    yield "__main__.py", MAIN.encode()
    for name, path, of_code in sources(root):
        yield name, _rewritten(root, path, of_code)


def sources(root: Path = ROOT) -> Iterator[tuple[str, Path, Callable[[str], str]]]:
    """(path in the package, file of the repository, what rewrites it if it is code) of all that is read."""
    yield "__init__.py", root / "engine" / "__init__.py", of_module
    for part in PARTS:  # widgets/__init__.py asks for what all of its modules need
        of_code = partial(of_module, extra="build") if part == "course" else of_module
        for path in sorted((root / part).rglob("*")):
            name = path.relative_to(root)
            if path.is_file() and "__pycache__" not in name.parts and name.name != "README.md":
                yield name.as_posix(), path, of_code
    for path in sorted((root / "lessons").glob("*.py")):  # the notebooks import them
        yield f"course/of_lessons/{path.name}", path, of_module
    for path in sorted((root / "examples").glob("*.py")):
        yield f"examples/{path.name}", path, of_program


def _rewritten(root: Path, path: Path, of_code: Callable[[str], str]) -> bytes:
    """The contents of a file of the repository as the wheel has them."""
    contents, ways = path.read_bytes(), {".py": of_code, ".md": of_words}
    try:
        return ways.get(path.suffix, _of_data)(contents.decode()).encode()
    except UnicodeDecodeError:  # a picture
        return contents
    except Refused as refused:
        raise Refused(f"{path.relative_to(root).as_posix()}:{refused}") from None


def _of_data(text: str) -> str:
    """Data, which is read by many and so is not rewritten, but refused if it names a module."""
    for at, line in enumerate(text.splitlines(), 1):
        if of_words(line) != line:
            raise Refused(f"{at}: data names a module; let the code that reads it do that")
    return text


def write(folder: Path, root: Path = ROOT) -> None:
    """Write the package into a folder of its own, ``folder / "system_ml"``."""
    for name, contents in files(root):
        place = folder / PACKAGE / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(contents)
