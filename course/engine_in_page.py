"""The part of the engine that the pages *Will it fit?* and *What should serve it?* run: its modules as
JavaScript (widgets/kit/compiler/modules), with the tables of the catalogue."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from widgets.kit.compiler.modules.bundle import RUNTIME, Bundle
from widgets.kit.compiler.modules.names import running
from widgets.kit.page import dependencies
from widgets.kit.page.cache import digest, kept

ROOT = dependencies.ROOT


class Page(NamedTuple):
    """What a page calls, and the tables that this reads."""

    wanted: str
    tables: tuple[str, ...]


CATALOG = tuple(
    f"engine/catalog/{name}.toml"
    for name in ("gpus", "hosts", "links", "nodes", "models", "recipes", "software", "achievable")
)
FITTED = tuple(f"engine/calibration/{name}.toml" for name in ("bands", "systems", "fitted", "residuals"))
PAGES = {
    "fit": Page("engine.launch.fit_page", (*CATALOG, *FITTED)),
    "deploy": Page("engine.launch.deploy_page", (*CATALOG, "engine/catalog/prices.toml", *FITTED)),
}
# long loops over numbers are too slow as objects: these modules are programs, from this function on
PROGRAMS = {"engine.serving.events": "served", "engine.serving.deployment.closed_forms": "judge"}
STAND_INS = ROOT / "site" / "theme" / "assets" / "fit" / "stand_ins.js"
SCRIPTS = {f"assets/fit/{name}": file for name, file in RUNTIME.items()}  # beside the pages' own
UNUSED = ("source", "checked", "note", "url", "inferred")  # keys of a table's entry that a page does not need


def files() -> dict[str, str]:
    """File name -> contents of the scripts that the pages fetch in addition to the theme's."""
    return {f"assets/{page}/engine.js": script(page) for page in PAGES}


def script(page: str) -> str:
    """The JavaScript module of a page, which exports ``modules``."""
    of = Bundle((PAGES[page].wanted,), _source, _imports, PROGRAMS, STAND_INS)
    name = f"{page}.engine.{digest(STAND_INS.read_text(encoding='utf-8'))}"
    make = lambda: of.script(_tables(page), "../fit", "../widget/numbers.js")
    return kept(name, lambda: make().encode(), (__name__, *of.order())).decode()


def _source(module: str) -> Path:
    """The file of a module, from the folder in which the build runs if it is below that."""
    whole = dependencies.source(module) or Path(module)
    return whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else whole


def _imports(module: str) -> Iterable[str]:
    """The engine's modules that a module imports when it runs."""
    file = dependencies.source(module)
    if not file:
        return []
    tree = ast.parse(file.read_text(encoding="utf-8"))
    statements = dependencies.statements(running(tree.body), file)
    ours = [each for each in statements if f"{each[0]}.".startswith("engine.")]
    found = dependencies.named(ours, lambda name: dependencies.source(name) is not None)
    beside = dependencies.beside(file) if dependencies.DISCOVERY in found else []
    return [each for each in (*found, *beside) if each != module]


def _tables(page: str) -> dict[str, Any]:
    """The engine's tables by file, without what says where an entry comes from."""
    return {
        name: _used(tomllib.loads((ROOT / name).read_text(encoding="utf-8"))) for name in PAGES[page].tables
    }


def _used(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {key: _used(value) for key, value in entry.items() if key not in UNUSED}
    return [_used(each) for each in entry] if isinstance(entry, list) else entry
