"""Several modules of plain Python as one JavaScript module: those that a page calls, all that these import,
each after what it imports, and the tables that they read."""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from widgets.kit.compiler.modules.names import BUILT_IN_METHODS, method_names
from widgets.kit.compiler.modules.translate import Module
from widgets.kit.compiler.operations import HELPERS
from widgets.kit.compiler.programs import Program
from widgets.kit.compiler.refusal import refuse

# what translated modules stand on, each on those before it: Python itself, its library, arrays of numpy
RUNTIME = {name: Path(__file__).with_name(name) for name in ("python.js", "library.js", "numpy.js")}


@dataclass(frozen=True)
class Bundle:
    """The modules of a page. ``source`` gives the file of a module, ``imports`` the modules that it imports
    when it runs. ``programs`` are modules of loops over numbers, each with the function from which the
    compiler of programs begins. ``stand_ins`` is a script in which a page has modules of its own."""

    wanted: tuple[str, ...]
    source: Callable[[str], Path]
    imports: Callable[[str], Iterable[str]]
    programs: Mapping[str, str]
    stand_ins: Path

    def order(self) -> list[str]:
        """All modules that are needed, each after those that it imports."""
        found: list[str] = []
        begun = set(modules_of(self.stand_ins))

        def visit(name: str) -> None:
            if name in begun:
                return
            begun.add(name)
            for needed in () if name in self.programs else self.imports(name):
                visit(needed)
            found.append(name)

        for name in self.wanted:
            visit(name)
        return found

    def script(self, tables: Mapping[str, Any], runtime: str, numbers: str) -> str:
        """The JavaScript module, which exports ``modules``. It imports the runtime from the folder
        ``runtime`` and the functions of numbers.js from ``numbers``."""
        order, scripts = self.order(), [*RUNTIME.values(), self.stand_ins]
        known = {**dict.fromkeys([*order, *modules_of(self.stand_ins)]), **offered(*RUNTIME.values())}
        trees = [ast.parse(self.source(name).read_text(encoding="utf-8")) for name in order]
        methods = BUILT_IN_METHODS | {name for tree in trees for name in method_names(tree)}
        body = "\n".join(
            program(name, self.programs[name])
            if name in self.programs
            else f"{Module(name, self.source(name), known, methods).body()};"
            for name in order
        )
        used = {*re.findall(r"(?<![.\w])\$\w+", body), "$tables"}
        lines = []
        for file in scripts:
            names = ", ".join(sorted(used & exported(file)))
            lines.append(f'import {f"{{ {names} }} from " if names else ""}"{runtime}/{file.name}";')
        if helpers := [name for name in HELPERS if re.search(rf"(?<![.\w]){name}\(", body)]:
            lines.append(f'import {{ {", ".join(helpers)} }} from "{numbers}";')
        return "\n".join([*lines, f"$tables({literal(tables)});", body, "export const modules = $modules;\n"])


def program(module: str, function: str) -> str:
    """The JavaScript of a module whose functions the compiler of programs writes: of one, and of those that
    it calls."""
    made = importlib.import_module(module)
    root: Any = getattr(made, function)
    root = getattr(root, "in_page", root)
    marked: Any = root if hasattr(root, "algorithm") else SimpleNamespace(algorithm=root, outputs=None)
    written = Program(marked)
    constants = {k: v for k, v in vars(made).items() if k.isupper() and isinstance(v, int | float)}
    entries = [f"${name}: {literal(value)}" for name, value in constants.items()]
    entries += [
        f"${function if each is root else each.__name__}: $compiled({name})"
        for each, name in written.names.items()
        if each.__module__ == module
    ]
    texts = "\n".join(written.functions.values())
    return f'$modules["{module}"] = (() => {{\n{texts}\nreturn {{ {", ".join(entries)} }};\n}})();'


# -- what the runtime offers ---------------------------------------------------------------------------------
@cache
def exported(script: Path) -> frozenset[str]:
    """The names that a script of the runtime exports."""
    text = script.read_text(encoding="utf-8")
    return frozenset(re.findall(r"^export (?:const|function|class) (\$\w+)", text, re.MULTILINE))


@cache
def modules_of(script: Path) -> dict[str, frozenset[str]]:
    """The modules that a script of the runtime stands for (``$module``) or adds to (``$more``), each with
    the names that it offers."""
    text, found = script.read_text(encoding="utf-8"), {}
    for head in re.finditer(r'\$(?:module|more)\("([\w.]+)", \{', text):
        found[head[1]] = frozenset(_keys(text, head.end()))
    return found


def offered(*scripts: Path) -> dict[str, frozenset[str]]:
    """All modules of these scripts, each with the names that it offers."""
    found: dict[str, frozenset[str]] = {}
    for script in scripts:
        for name, names in modules_of(script).items():
            found[name] = found.get(name, frozenset()) | names
    return found


def _keys(text: str, begin: int) -> Iterable[str]:
    """The keys of an object in JavaScript, each with a dollar before it."""
    depth, outside = 1, "{"
    for sign in text[begin:]:
        depth += (sign in "{[(") - (sign in ")]}")
        if not depth:
            break
        outside += sign if depth == 1 else ""
    return re.findall(r"[{,]\s*\$(\w+)\s*[:)]", outside)


def literal(value: Any) -> str:
    """A table as JavaScript: whole numbers are BigInts."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(literal, value)) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value)
    if not isinstance(value, int | float):
        refuse(f"{value!r} in a table", "numbers, texts, lists and tables", "a bundle")
    if isinstance(value, int):
        return f"{value}n"
    return "Infinity" if value == float("inf") else repr(value)
