"""Makes the program with which a page judges a puzzle: the functions of the puzzle's module and everything
that they call in the engine, as one text of plain Python that imports nothing but ``math``.

The page's Python (Brython) has no numpy and no packages. So functions are copied out of their files without
annotations, docstrings and decorators, each after the things that it uses. Two different things of the same
name, or a module that is not the engine's, stop the build. The engine's checks of arguments (``check.…(…)``)
are left out, because here the arguments come from the puzzle itself. ``ops`` and ``np`` are replaced by
versions for plain numbers.
"""

from __future__ import annotations

import ast
import json
import symtable
from functools import cache
from pathlib import Path

import brython

from course.strict_yaml import Refused
from engine import puzzles
from engine.puzzles import judging
from widgets.kit.page import headers
from widgets.kit.page.cache import kept
from widgets.kit.page.dependencies import ROOT

DATA = Path(brython.__file__).parent / "data"
BRYTHON = DATA / "brython.js"
LIBRARY = DATA / "brython_stdlib.js"
JUDGES = ("tried", "as_json")
TASKS = ("run", "check", "FUNCTION")
# The engine's formulas work on numbers and on arrays. On the page these names stand in for numpy's and work
# on plain numbers; Matrix implements as much of an array as a product needs.
STAND_INS = {
    "ops": """
class ops:
    where = staticmethod(lambda condition, yes, no: yes if condition else no)
    minimum = staticmethod(lambda a, b: min(a, b))
    maximum = staticmethod(lambda a, b: max(a, b))
    floor = staticmethod(lambda a: float(math.floor(a)))
    sqrt = staticmethod(lambda a: math.sqrt(a))""",
    "np": """
class Matrix(list):
    def __matmul__(self, other):
        columns = [[row[j] for row in other] for j in range(len(other[0]))]
        of = lambda row, column: sum([row[k] * column[k] for k in range(len(row))])
        return Matrix([[of(row, column) for column in columns] for row in self])

class np:
    exp = staticmethod(lambda a: math.exp(a))
    expm1 = staticmethod(lambda a: math.expm1(a))
    log1p = staticmethod(lambda a: math.log1p(a))
    asarray = staticmethod(lambda rows: Matrix([list(row) for row in rows]))
    mod = staticmethod(lambda a, b: a % b)
    where = staticmethod(lambda condition, yes, no: yes if condition else no)
    isfinite = staticmethod(lambda a: -math.inf < a < math.inf)

    @staticmethod
    def maximum(rows, least):
        if not isinstance(rows, list):
            return max(rows, least)
        return Matrix([[max(a, least) for a in row] for row in rows])""",
    "bisect_left": """
def bisect_left(ascending, value):
    place = 0
    while place < len(ascending) and ascending[place] < value:
        place += 1
    return place""",
}
ANSWER = """def answer(code, task):
    return as_json(tried(code, FUNCTION, check if task == 'check' else run, NAMES))"""


def files() -> dict[str, str]:
    """File name -> contents of the files that a page with a puzzle fetches in addition to the theme's scripts
    and Brython."""
    made = kept("puzzles", lambda: json.dumps(_files()).encode(), (__name__, *puzzles.modules()))
    return json.loads(made)


def _files() -> dict[str, str]:
    judges = {f"assets/puzzle/puzzles/{name}.txt": script(name) for name in puzzles.names()}
    return {headers.FRAME: headers.frame(), "assets/puzzle/math.js": math(), **judges}


def script(name: str) -> str:
    """The Python text that judges a puzzle."""
    taken = Taken()
    for judge in JUDGES:
        taken.take(f"{judging.__name__}", judge)
    for task in TASKS:
        taken.take(f"{puzzles.__name__}.{name}", task)
    if hasattr(puzzles.puzzle(name), "NAMES"):
        taken.take(f"{puzzles.__name__}.{name}", "NAMES")
    else:
        taken.texts.append("NAMES = None")
    return "\n\n".join(["import math", *taken.texts, ANSWER]) + "\n"


def math() -> str:
    """JavaScript that defines Brython's own ``math`` module, taken from Brython's library."""
    text = LIBRARY.read_text(encoding="utf-8")
    modules, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    return f"__BRYTHON__.use_VFS=true;__BRYTHON__.update_VFS({json.dumps({'math': modules['math']})});\n"


class Taken:
    """The texts that have been copied out of modules so far, in an order in which they can be run."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.known: dict[str, tuple[str, str]] = {}  # a name -> its module, and its name in that module
        self.begun: set[tuple[str, int]] = set()  # statements copied so far; one may define several names

    def take(self, module: str, name: str) -> None:
        """Copy the definition of a module's name, after the definitions of everything that it uses."""
        statement = _defined(module).get(name)
        if name in STAND_INS and isinstance(statement, (ast.Import, ast.ImportFrom)):
            if name not in self.known:
                self.known[name] = (module, name)
                self.texts.append(STAND_INS[name].strip())
            return
        if statement is None:
            raise Refused(f"{module} has no {name} that a page could run")
        if isinstance(statement, ast.Import):
            raise Refused(f"{module} imports {name}, which a page does not have")
        if isinstance(statement, ast.ImportFrom):
            self._take_imported(statement, name)
            return
        if self.known.setdefault(name, (module, name)) != (module, name):
            raise Refused(
                f"{name} is in {module} and in {self.known[name][0]}: a page has one place for both"
            )
        if (module, statement.lineno) in self.begun:
            return
        self.begun.add((module, statement.lineno))
        text = ast.unparse(Bare().visit(ast.parse(ast.unparse(statement))))
        for used in sorted(_names(text) & _defined(module).keys() - {name}):
            self.take(module, used)
        self.texts.append(text)

    def _take_imported(self, statement: ast.ImportFrom, name: str) -> None:
        source, [original] = (
            statement.module or "",
            [each.name for each in statement.names if (each.asname or each.name) == name],
        )
        if not source.startswith("engine."):
            raise Refused(f"{name} comes from {source}, which a page does not have")
        self.take(source, original)
        if name != original and name not in self.known:
            self.known[name] = (source, original)
            self.texts.append(f"{name} = {original}")


class Bare(ast.NodeTransformer):
    """Removes annotations, docstrings, decorators, checks of arguments, and conditions that contain only
    checks."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list, node.returns = [], None
        for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            each.annotation = None
        node.body = _without_docstring(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list, node.body = [], _without_docstring(node.body)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="check"))):
                return None
        return node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        self.generic_visit(node)
        return node if node.body else None


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    said = first.value if isinstance(first, ast.Expr) else None
    is_text = isinstance(said, ast.Constant) and isinstance(said.value, str)
    return (body[1:] if is_text else body) or [ast.Pass()]


def _names(text: str) -> set[str]:
    """The names that a piece of code uses from its module or from Python, without a function's own
    variables."""
    module = symtable.symtable(text, "a statement", "exec")
    found, look = (
        {each.get_name() for each in module.get_symbols() if each.is_referenced()},
        module.get_children(),
    )
    while look:
        scope = look.pop()
        found |= {each.get_name() for each in scope.get_symbols() if each.is_global()}
        look.extend(scope.get_children())
    return found


@cache
def _defined(module: str) -> dict[str, ast.stmt]:
    """Name -> the statement of a module that defines it, except for ``math``, which the page has anyway."""
    file = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    found: dict[str, ast.stmt] = {}
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            found[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            found |= {
                node.id: statement
                for target in statement.targets
                for node in ast.walk(target)
                if isinstance(node, ast.Name)
            }
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            found |= {each.asname or each.name: statement for each in statement.names}
    return {name: statement for name, statement in found.items() if name != "math"}
