"""Who may know whom: the engine computes, widgets draw, the site is no package, and nothing depends on one machine."""

import ast
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import engine
from widgets.kit.widget import all_widgets

ROOT = Path(__file__).resolve().parents[1]
NOT_OURS = {".git", ".venv", "build", "dist", "node_modules"}
WIDGETS = [ROOT / "widgets" / f"{slug}.py" for slug in sorted(all_widgets())]


def own_files() -> list[Path]:
    """Every file of the project, without what is installed, built or cached."""
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") and part not in (".ci", ".gitignore", ".github") for part in parts)
        if path.is_file() and not hidden and not NOT_OURS & set(parts) and "__pycache__" not in parts:
            found.append(path)
    return found


# -- imports ---------------------------------------------------------------------------------------------------------------
def test_the_contracts_between_packages_hold():
    """The contracts of pyproject.toml, as import-linter reads them."""
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent)) or shutil.which("lint-imports")
    assert command, "lint-imports is missing: install the extra `test`"
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = re.search(r"(\d+) kept, 0 broken", done.stdout)
    assert kept and int(kept[1]) >= 2, done.stdout


def test_the_engine_needs_numpy_and_the_standard_library_alone():
    allowed = set(sys.stdlib_module_names) | {"numpy", "engine"}
    for path in (ROOT / "engine").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else (
                [node.module] if isinstance(node, ast.ImportFrom) and not node.level else [])
            for name in names:
                assert name.split(".")[0] in allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_importing_the_engine_brings_nothing_of_the_user_interface():
    code = ("import sys, pkgutil, importlib, engine\n"
            "for m in pkgutil.walk_packages(engine.__path__, 'engine.'):\n"
            "    if not m.name.endswith('__main__'): importlib.import_module(m.name)\n"
            "print(sorted({'bokeh', 'panel', 'param', 'mkdocs', 'widgets', 'markdown'} & set(sys.modules)))")
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout.strip() == "[]"


def test_site_is_no_package():
    """`site` is a module of the standard library; an __init__.py in our folder of that name would hide it."""
    assert not list((ROOT / "site").rglob("__init__.py"))


# -- widgets compute nothing -----------------------------------------------------------------------------------------------
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
SIGN = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@"}
PICKING = {"where", "stack", "array", "asarray", "concatenate", "arange", "cumsum", "sum", "any", "all", "max", "min", "argmax",
           "argmin", "argsort", "maximum", "minimum", "clip", "broadcast_to", "zeros_like", "ones_like", "full_like", "flip",
           "reshape", "ravel", "repeat", "tile", "append", "take", "transpose", "linspace", "geomspace", "isfinite", "ones", "zeros",
           "full", "ndarray", "float64", "nan"}


def constant(node) -> bool:
    """Whether a node is written down, in figures or as a CONSTANT, so that nothing is computed from a control."""
    if isinstance(node, ast.BinOp):
        return constant(node.left) and constant(node.right)
    if isinstance(node, ast.UnaryOp):
        return constant(node.operand)
    return isinstance(node, ast.Constant) or isinstance(node, ast.Name) and node.id.isupper()


def text_or_list(node) -> bool:
    """Joining texts or lists is no arithmetic."""
    if isinstance(node, ast.BinOp):
        return text_or_list(node.left) or text_or_list(node.right)
    return isinstance(node, (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple)) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str))


def counted_places(tree) -> set:
    """Sums that say a place in a list, `names[i + 1]` or `range(count - 1)`: whole numbers known when it is compiled."""
    found = set()
    for node in ast.walk(tree):
        inside = [node.slice] if isinstance(node, ast.Subscript) else (
            node.args if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range" else [])
        for place in inside:
            found |= {n for n in ast.walk(place) if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Add, ast.Sub))
                      and (constant(n.left) or constant(n.right))}
    return found


def faults(source: str) -> list[str]:
    """The lines on which a widget computes: arithmetic on anything but constants, or numpy's functions that calculate.

    It is about functions: constants of the module or class are no formula of a control, and `figure` lays places on the
    picture out once. What only chooses, stacks or accumulates is allowed. Everything else belongs to the engine (physics)
    or to widgets/kit (layout).
    """
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name != "figure"]
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    nodes = [*imports, *dict.fromkeys(node for function in functions for node in ast.walk(function))]
    places, found = counted_places(tree), []
    for node in nodes:
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ARITHMETIC) and node not in places:
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            if not all(constant(side) for side in sides) and not any(text_or_list(side) for side in sides):
                found.append(f"line {node.lineno}: `{SIGN[type(node.op)]}` in {ast.unparse(node)}")
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("np", "numpy") and node.attr not in PICKING:
            found.append(f"line {node.lineno}: np.{node.attr}")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {alias.name.split(".")[0] for alias in node.names} | {(getattr(node, "module", "") or "").split(".")[0]}
            found += [f"line {node.lineno}: imports {name}" for name in names & {"math", "operator", "statistics", "decimal"}]
    return found


@pytest.mark.parametrize("path", WIDGETS, ids=[path.stem for path in WIDGETS])
def test_a_widget_does_no_arithmetic_of_its_own(path):
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("line", ["x = self.size * 2", "x = a / b", "x = size ** 2", "x = 1 - share", "x = np.sqrt(a)", "import math",
                                  "x += y", "x = np.multiply(a, b)", "from math import sqrt", "x = names[round(a * b)]",
                                  "x = VIEWS[0] * share"])
def test_arithmetic_is_noticed(line):
    assert faults(f"class W:\n    def part(self):\n        {line}\n")


@pytest.mark.parametrize("line", ["x = 0.1 * 1e9", "x = ROWS - 0.3", "x = a > b", "x = np.where(a > b, 1, 0)", "x = f'{a}' + 'b'", "x = names[i + 1]",
                                  "x = fig.TEXT | {}", "x = [a] + [b]", "x = -1", "x = 'a' + name", "for i in range(n - 1): pass"])
def test_what_is_no_arithmetic_is_left_alone(line):
    assert not faults(f"class W:\n    def part(self):\n        {line}\n")
    assert not faults("class W:\n    def figure(self, sources):\n        x = a * b\n")


# -- documentation and hygiene ---------------------------------------------------------------------------------------------
MODULES = [m.name for m in pkgutil.walk_packages(engine.__path__, "engine.") if not m.name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_of_the_engine_is_explained(name):
    module = importlib.import_module(name)
    assert inspect.getdoc(module), f"{name} has no docstring"
    for label, thing in vars(module).items():
        if label.startswith("_") or not inspect.isroutine(thing) and not inspect.isclass(thing):
            continue
        if getattr(thing, "__module__", name) == name:
            own = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
            assert own and not own.startswith(f"{label}("), f"{name}.{label} has no docstring"
            for method, function in vars(thing).items() if inspect.isclass(thing) else ():
                if inspect.isfunction(function) and not method.startswith("_"):
                    assert function.__doc__, f"{name}.{label}.{method} has no docstring"


MACHINE = re.compile("|".join([r"(?<![\w.])/(?:work|root|home|Users|opt|mnt)/\w", r"file:///", r"[A-Z]:\\\\",
                               r"\.\./" + r"shared/", r"(?<![\w/])" + r"shared/(?:DESIGN|COURSE|reference)",
                               r"(?:index|extra-index)-url", r"\bissues (?:show|note|resolved)\b"]))


def test_nothing_depends_on_one_machine():
    """No absolute path of a machine, no package host, and nothing that stands beside the repository."""
    for path in own_files():
        if path == Path(__file__).resolve() or path.suffix in (".woff2", ".png", ".ico", ".jpg", ".gz"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = MACHINE.search(line)
            assert not found, f"{path.relative_to(ROOT)}:{number} has {found[0]!r}"
