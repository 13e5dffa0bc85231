"""What a module's behaviour depends on: its own source, the modules of this project that it imports, directly
or indirectly, and the data beside each of them (but for ``*.md``: pages for people, which no module reads).

It is read from the sources without running them. In case of doubt more is included: an import inside a
function counts, and a module that imports a package as a whole depends on everything that its ``__init__``
imports. ``from engine.base import units`` uses nothing of the package but the module, so of
``engine/__init__.py`` and ``engine/base/__init__.py`` only the text counts, not what they import.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[__name__.count(".")]  # where imports begin to look
RECORD = "imports.json"  # in the folder of stored results
PACKAGES = tuple(".".join([*__name__.split(".")[:-4], each]) for each in ("engine", "widgets", "course"))
DISCOVERY = "engine.base.discovery"  # finds what lies beside the module that imports it
STARTED = time.time()  # of this process, before it imports what it compiles


def files(*modules: str) -> frozenset[Path]:
    """Every file that the behaviour of these modules depends on."""
    found, seen, ahead = set(), set(), list(modules)
    while ahead:
        module = ahead.pop()
        if module not in seen and (file := source(module)):
            found |= _around(file)
            ahead += _imported(file)
        seen.add(module)
    return frozenset(found)


@cache
def state(*modules: str) -> str:
    """A name for the current contents of these files."""
    return _digest(files(*modules))


def changed_meanwhile(*modules: str) -> bool:
    """Whether one of these files was saved while this process ran: the process may have imported an earlier
    version, so its results belong to no state that has a name."""
    return any(file.stat().st_mtime > STARTED for file in files(*modules))


@cache
def state_of_all() -> str:
    """A name for the current contents of all packages of this project."""
    found = (file for package in PACKAGES for file in _place(package).rglob("*"))
    return _digest(file for file in found if _is_read(file) and "__pycache__" not in file.parts)


def _digest(files: Iterable[Path]) -> str:
    return hashlib.sha256("".join(sorted(_line(file) for file in files)).encode()).hexdigest()[:16]


@cache
def _line(file: Path) -> str:
    return f"{file.relative_to(ROOT)} {_sum(file)}\n"


@cache
def _sum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _is_ours(module: str) -> bool:
    return f"{module}.".startswith(tuple(f"{package}." for package in PACKAGES))


def _place(module: str) -> Path:
    """Where a module lies: its folder, or its file but for the ending."""
    return ROOT.joinpath(*module.split("."))


@cache
def source(module: str) -> Path | None:
    """The file of a module; None for modules outside this project."""
    if not _is_ours(module):
        return None
    path = _place(module)
    written = path.with_suffix(".py"), path / "__init__.py"
    return next((file for file in written if file.is_file()), None)


@cache
def _imported(file: Path) -> tuple[str, ...]:
    """The modules of this project that a source imports, or finds."""
    found = named(_imports(file), lambda module: source(module) is not None)
    return (*found, *(beside(file) if DISCOVERY in found else ()))


def named(statements: Iterable[Sequence], is_module: Callable[[str], bool]) -> list[str]:
    """The modules that these import statements name."""
    found = []
    for name, wanted in statements:
        if wanted is None:  # `import a.b.c` binds a, and so depends on everything that a provides
            found += [name, name.split(".")[0]]
        elif is_module(f"{name}.{wanted}"):
            found.append(f"{name}.{wanted}")
        else:
            found.append(name)
    return found


def beside(file: Path) -> list[str]:
    """The modules of the package that a module is in."""
    package = ".".join(file.relative_to(ROOT).parts[:-1])
    names = (f"{package}.{one.stem}" for one in sorted(file.parent.iterdir()) if one.stem[0] != "_")
    return [name for name in names if source(name)]


@cache
def _around(file: Path) -> frozenset[Path]:
    """A module's file, and what else the module depends on wherever it is imported."""
    return frozenset({file, *_packages_around(file), *_data_beside(file.parent)})


def _packages_around(file: Path) -> frozenset[Path]:
    folders = [folder for folder in file.parents if ROOT in folder.parents]
    return frozenset(folder / "__init__.py" for folder in folders if (folder / "__init__.py").is_file())


@cache
def _data_beside(folder: Path) -> frozenset[Path]:
    """The files in a module's folder, or below it in folders that are not packages, that are not modules."""
    found = set()
    for path in folder.iterdir():
        if path.is_dir() and path.name != "__pycache__" and not (path / "__init__.py").exists():
            found |= {file for file in path.rglob("*") if _is_read(file)}
        elif _is_read(path) and path.suffix != ".py":
            found.add(path)
    return frozenset(found)


def _is_read(path: Path) -> bool:
    """Whether a module may read this: any file but a README or the grammar, which are there for people."""
    return path.is_file() and path.suffix != ".md"


# -- the import statements, which are slow to find and rarely change -----------------------------------------
def _imports(file: Path) -> list[list]:
    """[module, name] for each `from module import name`, [module, None] for each `import module`."""
    known, key = _known(), _sum(file)
    if key not in known:
        known[key] = _read(file)
    return known[key]


def _read(file: Path) -> list[list]:
    found = statements(ast.walk(ast.parse(file.read_bytes(), str(file))), file)
    return [entry for entry in found if _is_ours(entry[0])]


def statements(nodes: Iterable[ast.AST], file: Path) -> list[list]:
    """The import statements among the nodes of a parsed source, whatever they import."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [[alias.name, None] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{file}:{node.lineno}: write the whole name of what is imported")
            found += [[node.module, alias.name] for alias in node.names]
    return found


@cache
def _known() -> dict[str, list]:
    """{hash of a source: its imports}, as an earlier build found them."""
    if not (folder := os.environ.get("KEEP_COMPILED")):
        return {}
    record = Path(folder, RECORD)
    found = json.loads(record.read_bytes()) if record.is_file() else {}
    atexit.register(_remember, record, found, len(found))
    return found


def _remember(record: Path, found: dict, before: int) -> None:
    """Store the import statements found by this build for the next one."""
    if len(found) > before:
        record.parent.mkdir(parents=True, exist_ok=True)
        unfinished = record.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(found), encoding="utf-8")
        unfinished.replace(record)
