"""What the page that checks launches runs: the engine's modules that it needs, in order, and their tables,
as one JavaScript module."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from course.in_page.translate import BUILT_IN_METHODS, Module, method_names
from course.strict_yaml import Refused
from widgets.kit.page.dependencies import ROOT

WANTED = ("engine.launch.paged",)
# what the page has in its own form: site/theme/assets/fit/library.js
LIBRARY = ("engine.catalog.files", "engine.base.program")
TABLES = (
    *(
        f"engine/catalog/{name}.toml"
        for name in ("gpus", "links", "nodes", "models", "recipes", "achievable")
    ),
    *(f"engine/calibration/{name}.toml" for name in ("runs", "systems", "fitted", "residuals")),
)
UNUSED = ("source", "checked", "note", "url", "date")  # of an entry of a table
RUNTIME = ROOT / "site" / "theme" / "assets" / "fit" / "python.js"
OUTPUT = "assets/fit/engine.js"


def files() -> dict[str, str]:
    """File name -> contents of what the page fetches beside the theme's scripts."""
    return {OUTPUT: script()}


@cache
def script() -> str:
    """The JavaScript module: it gives ``modules``."""
    order = ordered()
    known = frozenset((*order, *LIBRARY))
    methods = frozenset(BUILT_IN_METHODS | {name for module in order for name in method_names(_tree(module))})
    body = "\n".join(f"{Module(name, _file(name), known, methods).body()};" for name in order)
    used = set(re.findall(r"(?<![.\w])\$\w+", body))
    given = set(
        re.findall(
            r"^export (?:const|function|class) (\$\w+)", RUNTIME.read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    imports = (
        f'import {{ {", ".join(sorted(used & given))} }} from "./python.js";\n'
        'import { $tables } from "./library.js";\nimport "./numpy.js";\n'
    )
    return f"{imports}$tables({_literal(tables())});\n{body}\nexport const modules = $modules;\n"


def ordered() -> list[str]:
    """All modules that are needed, each after those that it imports."""
    order: list[str] = []
    begun: set[str] = set()

    def visit(name: str) -> None:
        if name in begun or name in LIBRARY:
            return
        begun.add(name)
        for needed in _imports(name):
            visit(needed)
        order.append(name)

    for name in WANTED:
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
            and (node.module or "").partition(".")[0] == "engine"
            and id(node) not in checking
        ):
            inside = [f"{node.module}.{each.name}" for each in node.names]
            found += [each for each in inside if _exists(each)]
            if not all(_exists(each) for each in inside):
                found.append(node.module or "")
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


def tables() -> dict[str, dict]:
    """The engine's tables by file, without what says where an entry comes from."""
    return {name: _used(tomllib.loads((ROOT / name).read_text(encoding="utf-8"))) for name in TABLES}


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
