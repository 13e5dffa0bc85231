"""The part of the engine that a page runs: the modules that it needs, in order, and their tables, as one
JavaScript module for each such page."""

from __future__ import annotations

import ast
import importlib
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from course.in_page.names import BUILT_IN_METHODS, method_names
from course.in_page.translate import Module
from course.strict_yaml import Refused
from widgets.kit.compiler.operations import HELPERS
from widgets.kit.compiler.programs import Program
from widgets.kit.page.cache import digest, kept
from widgets.kit.page.dependencies import DISCOVERY, ROOT, beside


class Bundle(NamedTuple):
    """The bundle of one page: the modules that it calls, and the tables that these read."""

    wanted: tuple[str, ...]
    tables: tuple[str, ...]


CATALOG = tuple(
    f"engine/catalog/{name}.toml"
    for name in ("gpus", "links", "nodes", "models", "recipes", "software", "achievable")
)
FITTED = tuple(f"engine/calibration/{name}.toml" for name in ("bands", "systems", "fitted", "residuals"))
BUNDLES = {
    "fit": Bundle(("engine.launch.fit_page",), (*CATALOG, *FITTED)),
    "deploy": Bundle(("engine.launch.deploy_page",), (*CATALOG, "engine/catalog/prices.toml", *FITTED)),
}
# the modules that the page replaces by its own code in site/theme/assets/fit/library.js
LIBRARY = tuple(
    f"engine.{name}"
    for name in ("catalog.files", "base.discovery", "base.hashing", "base.printing", "base.program")
)
# long loops over numbers are too slow as objects: the widgets' compiler writes out this function and those
# that it calls
COMPILED = {"engine.serving.events": "served", "engine.serving.deployment.loops": "judge"}
UNUSED = ("source", "checked", "note", "url", "inferred")  # keys of an entry that a page does not need
RUNTIME = tuple(ROOT / "site" / "theme" / "assets" / "fit" / name for name in ("python.js", "library.js"))


def files() -> dict[str, str]:
    """File name -> contents of the scripts that the pages fetch in addition to the theme's."""
    return {f"assets/{page}/engine.js": script(page) for page in BUNDLES}


def script(page: str) -> str:
    """The JavaScript module of a page, which exports ``modules``."""
    name = f"{page}.engine.{digest(*(place.read_text(encoding='utf-8') for place in RUNTIME))}"
    return kept(
        name, lambda: _script(page).encode(), (__name__, *BUNDLES[page].wanted, *ordered(page))
    ).decode()


def _script(page: str) -> str:
    order = ordered(page)
    known = frozenset((*order, *LIBRARY, *COMPILED))
    methods = frozenset(BUILT_IN_METHODS | {name for module in order for name in method_names(_tree(module))})
    body = "\n".join(
        compiled(name) if name in COMPILED else f"{Module(name, _file(name), known, methods).body()};"
        for name in order
    )
    used = set(re.findall(r"(?<![.\w])\$\w+", body))
    imports = "".join(
        f'import {{ {", ".join(names)} }} from "../fit/{place.name}";\n'
        for place in RUNTIME
        if (names := sorted((used | {"$tables"}) & _given(place)))
    )
    return (
        f'{imports}import "../fit/numpy.js";\n{_helpers(body)}$tables({_literal(tables(page))});\n{body}\n'
        "export const modules = $modules;\n"
    )


def _given(file: Path) -> set[str]:
    """The names that a file of the runtime exports."""
    text = file.read_text(encoding="utf-8")
    return set(re.findall(r"^export (?:const|function|class) (\$\w+)", text, re.MULTILINE))


def _helpers(body: str) -> str:
    """The import statement for the helpers that compiled programs call."""
    used = [name for name in HELPERS if re.search(rf"(?<![.\w]){name}\(", body)]
    return f'import {{ {", ".join(used)} }} from "../widget/numbers.js";\n' if "$compiled(" in body else ""


def compiled(name: str) -> str:
    """The JavaScript of a module whose functions the widgets' compiler writes, with the functions that they
    call."""
    module = importlib.import_module(name)
    root = getattr(module, COMPILED[name])
    marked: Any = root if hasattr(root, "algorithm") else SimpleNamespace(algorithm=root, outputs=None)
    program = Program(marked)
    constants = {
        key: value for key, value in vars(module).items() if key.isupper() and isinstance(value, int | float)
    }
    functions = {
        function.__name__: written
        for function, written in program.names.items()
        if function.__module__ == name
    }
    entries = [f"${key}: {_literal(value)}" for key, value in constants.items()]
    entries += [f"${key}: $compiled({written})" for key, written in functions.items()]
    texts = "\n".join(program.functions.values())
    return f'$modules["{name}"] = (() => {{\n{texts}\nreturn {{ {", ".join(entries)} }};\n}})();'


def ordered(page: str) -> list[str]:
    """All modules that are needed, each after those that it imports."""
    order: list[str] = []
    begun: set[str] = set()

    def visit(name: str) -> None:
        if name in begun or name in LIBRARY:
            return
        begun.add(name)
        for needed in () if name in COMPILED else _imports(name):
            visit(needed)
        order.append(name)

    for name in BUNDLES[page].wanted:
        visit(name)
    return order


def _imports(name: str) -> list[str]:
    """The engine's modules that a module imports when it runs."""
    found = []
    checking = {
        id(inner)
        for node in _tree(name).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(_tree(name)):
        if (
            isinstance(node, ast.ImportFrom)
            and f"{node.module}.".startswith("engine.")
            and id(node) not in checking
        ):
            inside = [f"{node.module}.{each.name}" for each in node.names]
            found += [each for each in inside if _exists(each)]
            if not all(_exists(each) for each in inside):
                found.append(node.module or "")
            if node.module == DISCOVERY:
                found += [each for each in beside(ROOT.joinpath(_file(name))) if each != name]
    return found


def _exists(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def _file(name: str) -> Path:
    place = ROOT.joinpath(*name.split("."))
    whole = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
    return whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else whole


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(_file(name).read_text(encoding="utf-8"))


def tables(page: str) -> dict[str, dict]:
    """The engine's tables by file, without what says where an entry comes from."""
    return {
        name: _used(tomllib.loads((ROOT / name).read_text(encoding="utf-8"))) for name in BUNDLES[page].tables
    }


def _used(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {key: _used(value) for key, value in entry.items() if key not in UNUSED}
    return [_used(each) for each in entry] if isinstance(entry, list) else entry


def _literal(value) -> str:
    """A table as JavaScript: whole numbers are BigInts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}n"
    if isinstance(value, float):
        return "Infinity" if value == float("inf") else repr(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_literal, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value)
    raise Refused(f"a page's table cannot hold {value!r}")
