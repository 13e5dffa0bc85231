"""Which package may import which: the engine computes, widgets draw, the site is no package, and nothing
depends on a particular machine."""

import ast
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

import engine
from engine.base import units
from tests.cases import in_one_test
from widgets.kit.widget import all_widgets

ROOT = Path(__file__).resolve().parents[1]
BINARY = (".woff2", ".png", ".webp", ".ico", ".jpg", ".gz")
NOT_OURS = {".git", ".venv", "build", "dist", "node_modules"}
OURS = ("engine", "widgets", "course", "measure", "record", "kernels")
WIDGETS = sorted(
    p for p in (ROOT / "widgets").rglob("*.py") if "kit" not in p.parts and p.name != "__init__.py"
)


def own_files() -> list[Path]:
    """Every file of the project, without what is installed, built or cached."""
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") and part not in (".ci", ".gitignore", ".github") for part in parts)
        if path.is_file() and not hidden and not NOT_OURS & set(parts) and "__pycache__" not in parts:
            found.append(path)
    return found


# -- imports -------------------------------------------------------------------------------------------------
def test_the_contracts_between_packages_hold():
    """import-linter checks the contracts in pyproject.toml."""
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent)) or shutil.which(
        "lint-imports"
    )
    assert command, "lint-imports is missing: install the extra `test`"
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    written = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    kept = re.search(r"(\d+) kept, 0 broken", done.stdout)
    assert kept and int(kept[1]) == len(written["contracts"]) >= 10, done.stdout


def imports() -> dict[str, set[str]]:
    """What each module of ours imports, at its top or deferred, inside a function, or for an annotation
    alone."""
    graph = grimp.build_graph(*OURS, cache_dir=None)
    return {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one import cycle, in order; an empty list if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_module_imports_itself_by_a_detour():
    found = imports()
    assert len(found) > 200 and cycle(found) == []


def test_a_deferred_import_counts_and_a_ring_is_found():
    deferred = imports()["measure.tile_sweep"]
    assert "kernels.matmul" in deferred, "an import inside a function is no longer seen"
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) and cycle({"a": {"b"}, "b": set()}) == []


def test_what_panel_serve_runs_imports_nothing_of_the_tests():
    """import-linter's contracts cover packages only, and site/ is none."""
    for path in (ROOT / "site").glob("*.py"):
        assert not re.search(
            r"^\s*(?:from|import) (?:tests|bench)\b", path.read_text(encoding="utf-8"), re.MULTILINE
        ), path


def test_the_engine_needs_numpy_and_the_standard_library_alone():
    allowed = set(sys.stdlib_module_names) | {"numpy", "engine"}
    for path in (ROOT / "engine").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else ([node.module] if isinstance(node, ast.ImportFrom) and not node.level else [])
            )
            for name in names:
                assert name.split(".")[0] in allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_importing_the_engine_brings_nothing_of_the_user_interface():
    code = (
        "import sys, pkgutil, importlib, engine\n"
        "for m in pkgutil.walk_packages(engine.__path__, 'engine.'):\n"
        "    if not m.name.endswith('__main__'): importlib.import_module(m.name)\n"
        "print(sorted({'bokeh', 'panel', 'param', 'mkdocs', 'widgets', 'markdown'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        == "[]"
    )


def test_site_is_no_package():
    """`site` is a module of the standard library; an __init__.py in our folder of that name would hide it."""
    assert not list((ROOT / "site").rglob("__init__.py"))


# -- drawing may do arithmetic, a formula belongs to the engine ---------------------------------------------
POWERS = (ast.Pow, ast.MatMult)
COUNTING = (ast.FloorDiv, ast.Mod)  # allowed on whole numbers known at compile time: an index into a list
DRAWING = (ast.Add, ast.Sub, ast.Mult, ast.Div)
# numpy's functions that select, arrange, add up or round. Powers, roots and logarithms are formulas.
CHOOSING = """
where stack array asarray concatenate append take repeat tile reshape ravel transpose flip broadcast_to
arange linspace geomspace zeros ones full zeros_like ones_like full_like
sum mean any all max min argmax argmin argsort cumsum diff maximum minimum clip
abs floor ceil rint sign isfinite isnan ndarray float64 nan inf pi"""
FORMULAS = {"ops": {"sqrt", "log2_ceil"}, "": {"pow"}}  # formulas in other modules: {module: functions}
CALCULATORS = {"math", "cmath", "operator", "statistics", "decimal", "fractions"}
FIGURES = (ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)


def number(node, named: dict):
    """The value of a node that consists only of literal numbers, including numbers that the module has named;
    None for any other node."""
    parts = list(ast.walk(node))
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    if not all(isinstance(part, FIGURES) for part in parts) or not names <= named.keys():
        return None
    value = eval(compile(ast.Expression(node), "figures", "eval"), {}, named)
    return value if isinstance(value, (int, float)) else None


def named_figures(tree) -> dict:
    """The numbers to which a module gives a name, and the units that it imports."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "engine.base.units":
            found |= {alias.name: vars(units)[alias.name] for alias in node.names if alias.name.isupper()}
        if isinstance(node, ast.Assign) and (value := number(node.value, found)) is not None:
            found |= {target.id: value for target in node.targets if isinstance(target, ast.Name)}
    return found


def written(node) -> bool:
    """Whether a node is a literal number or a CONSTANT, and therefore no value of a state."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return all(written(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        return written(node.value)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


def has_unit(value) -> bool:
    """Whether a number is too large or small for a position in a picture, so that it must convert a unit or
    count something."""
    return value is not None and value != 0 and not 1e-3 < abs(value) < 1e3


def factors(node) -> list:
    """The factors of a chain of × and ÷."""
    if isinstance(node, ast.UnaryOp):
        return factors(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return factors(node.left) + factors(node.right)
    return [node]


def of_control(node, controls) -> str:
    """The name of the control that a value is, or is read from, such as self.gpu.hbm_bytes; else nothing."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if getattr(getattr(node, "value", None), "id", "") == "self":
            return node.attr if node.attr in controls else ""
        node = node.value
    return ""


def counted_places(tree) -> set:
    """Operators that compute an index into a list, as in `names[i // 2]` or `range(count - 1)`."""
    found = set()
    for node in ast.walk(tree):
        inside = [node.slice] if isinstance(node, ast.Subscript) else []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range":
            inside = node.args
        found |= {inner for place in inside for inner in ast.walk(place)}
    return found


def arithmetic_faults(node, named: dict, places: set) -> list[str]:
    """What is wrong with one operator and its two sides."""
    in_place = isinstance(node, ast.AugAssign)
    sides = (node.target, node.value) if in_place else (node.left, node.right)
    if all(map(written, sides)) or any(isinstance(side, ast.JoinedStr) for side in sides):
        return []
    if isinstance(node.op, POWERS):
        return ["powers and products of matrices are formulas"]
    if isinstance(node.op, COUNTING) and node not in places:
        return ["// and % count, and only a place in a list is counted here"]
    if isinstance(node.op, DRAWING) and any(has_unit(number(side, named)) for side in sides):
        return ["a figure that large or small has a unit, and units belong in the engine"]
    return []


def chain_faults(node, controls) -> list[str]:
    """What is wrong with a whole chain of × and ÷."""
    values = [factor for factor in factors(node) if not written(factor)]
    different = {ast.unparse(value) for value in values}
    if len({of_control(value, controls) for value in values} - {""}) > 1:
        return ["two controls multiplied or divided are a formula"]
    if len(different) > 2:
        return ["three values multiplied or divided are a formula"]
    if len(different) < len(values):
        return ["a value times itself is a power"]
    return []


def call_faults(node) -> list[str]:
    """What is wrong with a named function: one of numpy's that does more than select, or one that is a
    formula."""
    owner, name = (
        (getattr(node.value, "id", None), node.attr) if isinstance(node, ast.Attribute) else ("", node.id)
    )
    calculates = owner in ("np", "numpy") and name not in CHOOSING.split()
    if calculates or name in FORMULAS.get(owner, ()):
        return ["a function that calculates belongs in the engine"]
    return []


def import_faults(node) -> list[str]:
    """What is wrong with an import."""
    names = {alias.name.split(".")[0] for alias in node.names}
    names |= {(getattr(node, "module", "") or "").split(".")[0]}
    return ["a module that calculates belongs in the engine"] if names & CALCULATORS else []


def faults(source: str, controls=()) -> list[str]:
    """The lines on which a widget calculates what belongs in the engine, and the rule that each breaks.

    Drawing adds, subtracts, multiplies and divides what the engine returned. A formula is what a reader
    might look up: powers, roots and logarithms, figures with a unit, and chains of × and ÷ over more than
    two values or over two controls, since no engine has been asked for those. The rules are about
    functions: a constant of the module or class is no formula of a state, and ``figure`` lays out once what
    does not depend on one.
    """
    tree = ast.parse(source)
    named, places, found = named_figures(tree), counted_places(tree), []
    bodies = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name != "figure"]
    nodes = dict.fromkeys(node for body in bodies for node in ast.walk(body))
    inner = {
        id(side)
        for node in nodes
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div))
        for side in (node.left, node.right)
    }
    for node in [*ast.walk(tree), *nodes]:
        broken = []
        if node in nodes and isinstance(node, (ast.BinOp, ast.AugAssign)):
            broken += arithmetic_faults(node, named, places)
        if node in nodes and isinstance(node, ast.BinOp) and id(node) not in inner:
            broken += chain_faults(node, controls)
        if node in nodes and isinstance(node, (ast.Attribute, ast.Name)):
            broken += call_faults(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            broken += import_faults(node)
        found += [f"line {node.lineno}: {rule}: `{ast.unparse(node)}`" for rule in broken]
    return list(dict.fromkeys(found))


def controls_of(path: Path) -> set[str]:
    """The controls of the widgets that are written in a file, or partly so."""
    return {
        name
        for cls in all_widgets().values()
        if str(path)
        in {inspect.getfile(base) for base in cls.__mro__ if base.__module__.startswith("widgets.")}
        for name in cls.controls()
    }


@in_one_test("path", WIDGETS, ids=[path.stem for path in WIDGETS])
def test_a_widget_leaves_formulas_to_the_engine(path):
    assert faults(path.read_text(encoding="utf-8"), controls_of(path)) == []


BELONGS_IN_THE_ENGINE = {
    "powers and products": ["x = size ** 2", "x = rows @ columns", "x **= 2", "x = 2 ** self.steps"],
    "// and % count": ["x = a // b", "x = rank % 8", "x //= 2"],
    "that large or small": [
        "x = self.size / 1e9",
        "x = 3600 * hours",
        "x = a / 1024**2",
        "x = seconds / DAY",
        "x = tokens * LONG",
        "x = a * -0.001",
        "x += 8192",
        "x = self.bars() / (60 * 60)",
    ],
    "two controls": [
        "x = 6 * self.size * self.tokens",
        "x = self.gpu.hbm_bytes / self.size",
        "x = self.tokens / 2 / self.size",
    ],
    "three values": ["x = held * stages / total", "x = a / b / c", "x = -a * (b - c) * self.size"],
    "times itself": ["x = way * way", "x = 0.5 * a * 2 * a", "x = self.run() * self.run()"],
    "a function that": [
        "x = np.sqrt(a)",
        "x = np.log2(a)",
        "x = np.power(a, 2)",
        "x = np.prod(sizes)",
        "x = np.multiply(a, b)",
        "x = ops.sqrt(a)",
        "x = pow(a, b)",
        "x = list(map(np.exp, a))",
    ],
    "a module that": ["import math", "from math import sqrt", "import numpy as np, operator"],
}
IN_A_WIDGET = "from engine.base.units import DAY\nLONG = 8 * 1024\nclass W:\n    def part(self):\n        "


@in_one_test("rule, line", [(rule, line) for rule, lines in BELONGS_IN_THE_ENGINE.items() for line in lines])
def test_a_formula_is_noticed(rule, line):
    found = faults(IN_A_WIDGET + line, {"size", "tokens", "gpu", "steps"})
    assert len(found) == 1 and found[0].startswith("line 5: ") and rule in found[0]


@in_one_test(
    "line",
    [
        "x = a + b - c",
        "x = part / whole",
        "x = -a",
        "x = 1 - share",
        "x = self.size * 2",
        "x = self.size / self.bars()",
        "x = self.replicas() * self.rates().shared_per_s",
        "x = VIEWS[0] * share",
        "x = 100 * a / b",
        "x = 0.045 * self.view()",
        "x = (low + high) / 2",
        "x = start + (end - start) * way",
        "x = a * b + c * d",
        "x += y",
        "x = 0.1 * 1e9",
        "x = ROWS - 0.3",
        "x = a > 1e9",
        "x = names[i // 2]",
        "x = names[i % 3 + 1]",
        "for i in range(n // 2 - 1): pass",
        "x = np.where(a > b, np.sum(a), np.floor(b))",
        "x = np.cumsum(a, axis=-1) - a",
        "x = f'{a}' + 'b'",
        "x = 'a' + name",
        "x = [a] + [b]",
        "x = fig.TEXT | {}",
    ],
)
def test_drawing_is_left_alone(line):
    assert faults(IN_A_WIDGET + line, {"size", "tokens", "gpu", "steps"}) == []


def test_what_is_laid_out_once_is_left_alone():
    assert (
        faults("LARGEST = 2**20\nclass W:\n    def figure(self, sources):\n        x = a * b * c**2\n") == []
    )


# -- documentation and hygiene -------------------------------------------------------------------------------
MODULES = [
    m.name for m in pkgutil.walk_packages(engine.__path__, "engine.") if not m.name.endswith("__main__")
]


@in_one_test("name", MODULES)
def test_every_public_name_of_the_engine_is_explained(name):
    module = importlib.import_module(name)
    assert inspect.getdoc(module), f"{name} has no docstring"
    for label, thing in vars(module).items():
        if label.startswith("_") or (not inspect.isroutine(thing) and not inspect.isclass(thing)):
            continue
        if getattr(thing, "__module__", name) == name:
            own = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
            assert own and not own.startswith(f"{label}("), f"{name}.{label} has no docstring"
            for method, function in vars(thing).items() if inspect.isclass(thing) else ():
                if inspect.isfunction(function) and not method.startswith("_"):
                    assert function.__doc__, f"{name}.{label}.{method} has no docstring"


MACHINE = re.compile(
    "|".join(
        [
            r"(?<![\w.])/(?:work|root|home|Users|opt|mnt)/\w",
            r"file:///",
            r"[A-Z]:\\\\",
            r"\.\./" + r"shared/",
            r"(?<![\w/])" + r"shared/(?:DESIGN|COURSE|reference)",
            r"(?:index|extra-index)-url",
            r"\bissues (?:show|note|resolved)\b",
        ]
    )
)


def test_nothing_depends_on_one_machine():
    """No file contains an absolute path of a machine, a package host, or anything outside of the
    repository."""
    for path in own_files():
        if path == Path(__file__).resolve() or path.suffix in BINARY:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = MACHINE.search(line)
            assert not found, f"{path.relative_to(ROOT)}:{number} has {found[0]!r}"


def test_a_page_is_waited_for_by_a_function():
    """Playwright evaluates a waiting expression again and again, which the pages' content policy forbids
    except for the first time. Such a test passes until a busy machine makes it look twice."""
    for path in sorted((ROOT / "tests" / "browser").glob("*.py")):
        for waited in re.findall(r'wait_for_function\(\s*f?"([^"]+)"', path.read_text(encoding="utf-8")):
            assert "=>" in waited, f"{path.name}: {waited}"


def test_what_a_lesson_says_is_asked_without_pytorch():
    """A sentence changes oftener than PyTorch does, and whoever changes it has none: a test of words that is
    skipped there is seen to fail by CI alone."""
    for path in sorted((ROOT / "tests" / "lessons").glob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        tests = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        needs = {node.name for node in tests if "machine.torch()" in ast.unparse(node)}
        for node in tests:
            if node.name in needs or needs & {given.arg for given in node.args.args}:
                claims = [ast.unparse(line) for line in ast.walk(node) if isinstance(line, ast.Assert)]
                assert not [line for line in claims if "LESSON.text" in line], f"{path.name}: {node.name}"


CLOCK = re.compile("perf" + r"_counter|performance\.now|time\.time\(|Date\.now|data-took")
LOOKS_AT_THE_CLOCK = {
    "browser/test_player.py": "what plays is held against the clock that it follows",
    "browser/test_warm.py": "the test's own work lasts so long",
    "check.py": "a tool that keeps to a minute, and says what each stage took",
    "chosen.py": "what tests take is noted, to choose those that fit into a minute",
    "engine/one_gpu/test_measure.py": "the clock is the test's own",
    "fuzz/test_page.py": "the least of four, five times what it takes",
}


def test_no_test_holds_a_busy_machine_against_the_page():
    """Durations are measured in processor time, or by make bench, because wall-clock time doubles when
    another program runs."""
    looking = {
        str(path.relative_to(ROOT / "tests"))
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__).resolve() and CLOCK.search(path.read_text(encoding="utf-8"))
    }
    assert looking == set(LOOKS_AT_THE_CLOCK)


def test_a_class_has_a_name_of_its_own_in_the_engine():
    named: dict[str, list[str]] = {}
    for path in sorted((ROOT / "engine").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                named.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert len(named) > 300
    assert {name: places for name, places in named.items() if len(places) > 1} == {}


def test_a_module_has_a_name_of_its_own_in_the_engine():
    """A formula in a lesson finds its module by its last name."""
    names = Counter(path.stem for path in (ROOT / "engine").rglob("*.py") if not path.stem.startswith("_"))
    assert [name for name, times in names.items() if times > 1] == []
