"""Which tests a change touches, read from the sources without running them.

A test file depends on the modules that it imports, directly or indirectly, with the data beside them, and on
the files that its functions read, or that functions which they use read: a lesson, a template, a script. For
code every import counts, wherever it stands. For files single functions are looked at, because hundreds of
modules import one that could read all lessons, and few of them call it.

What is read is known from the words of the sources: a path that is put together from constants
(``ROOT / "lessons" / f"{name}.md"`` is ``lessons/*.md``), the name of a file ("gpus.toml"), of a lesson or of
a widget ("memory_stack"), and the names of modules in code that is handed to another process. Where that
leaves a doubt, a test counts as touched.
"""

from __future__ import annotations

import ast
import hashlib
import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import translate
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from widgets.kit.page import dependencies

PACKAGES = (*dependencies.PACKAGES, "tests", "measure", "record", "kernels", "bench")
SHOWN = ("lessons/", "widgets/", "course/diagrams/")  # what is in these folders is asked for by its bare name
TEXTS = (".md", ".html", ".js", ".yml", ".css", ".xhtml")  # what may name other files
NEEDED = {"site": "the built site", "browser": "a browser"}  # fixtures of tests/conftest.py -> what they make
LAUNCHES = "sync_playwright"  # also starts a browser, wherever it is called
BUILDS = "course.build"  # also makes a site, wherever Python is started with it
FEW = 3  # a bare file name counts as a reference if at most so many files have this name
# reads and uses that cannot change the outcome of a test: (file, definition or "", use or "") -> why
NOT_FOLLOWED = {
    ("widgets/kit/page/dependencies.py", "", ""): "all sources are read, but only to name their state",
    ("course/lessons.py", "kinds_of_fence", ""): "only the names of the fences are read",
    ("course/lessons.py", "places", ""): "all pages are read, but only to say where a fault stands",
    ("widgets/kit/widget.py", "Widget", "all_widgets"): "only where `panel serve` runs a widget's file",
}
FAR = 200  # a reader of so many files reads everything, and counts as the farthest from each of them


# -- reading one source --------------------------------------------------------------------------------------
class Definition(NamedTuple):
    """A function, class, constant or other statement of a module: what it uses and reads."""

    uses: list[str]  # dotted names, such as "lessons.pages"
    words: list[str]  # strings
    paths: list  # expressions that lead to files (``_path``)
    needs: list[str]  # the arguments of a function, which name fixtures
    automatic: bool  # a fixture that every test of its file has
    test: bool


class Source(NamedTuple):
    """The facts that are read from a Python file."""

    imports: list[list]  # [module, name or None] of each import statement
    names: dict[str, list]  # a name that an import binds -> [module, name or None]
    definitions: dict[str, list]  # name -> a Definition's fields; "" for what belongs to no name
    constants: dict[str, list]  # names that stand for a path


def read(text: str, file: str) -> Source:
    """The facts of a Python source; none where it is no Python, which ruff will say."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return Source([], {}, {}, {})
    names: dict[str, list] = {}
    definitions: dict[str, Definition] = {}
    constants: dict[str, list] = {}
    imports: list[list] = []
    for node in tree.body:
        nodes = list(ast.walk(node))
        imports += dependencies.statements(nodes, Path(file))
        for each in nodes:
            if isinstance(each, ast.Import):
                names |= {a.asname or a.name.split(".")[0]: [a.name, None] for a in each.names}
            elif isinstance(each, ast.ImportFrom):
                names |= {a.asname or a.name: [each.module, a.name] for a in each.names}
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        found, bound = _definition(node, nodes), _bound(node, nodes)
        for name, value in bound.items():
            if value is not None and (path := _path(value, {})):
                constants[name] = path
                found.paths[:] = [each for each in found.paths if each != path]  # read where the name is used
        for name in bound or [""]:
            definitions[name] = _both(definitions[name], found) if name in definitions else found
    return Source(imports, names, definitions, constants)


def _both(one: Definition, other: Definition) -> Definition:
    """The union of two definitions: of a name that is defined twice, or of statements without a name."""
    return Definition(*(a + b if isinstance(a, list) else a or b for a, b in zip(one, other, strict=True)))


def _bound(node: ast.stmt, nodes: list[ast.AST]) -> dict[str, ast.expr | None]:
    """The names that a statement binds, with their values where each has one of its own."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name: None}
    found: dict[str, ast.expr | None] = {}
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
                found |= {a.id: b for a, b in pairs if isinstance(a, ast.Name)}
            elif isinstance(target, ast.Name):
                found[target.id] = node.value
    stored = (n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return dict.fromkeys(stored) | found


def _definition(node: ast.stmt, nodes: list[ast.AST]) -> Definition:
    function = isinstance(node, ast.FunctionDef)
    skipped: set[int] = set()  # docstrings, and the parts of an expression that is a path as a whole
    local: dict[str, list] = {}  # names of a function that stand for a path
    for each in nodes:
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            skipped.add(id(each.value))
        elif function and isinstance(each, ast.Assign) and (path := _path(each.value, local)):
            local |= {target.id: path for target in each.targets if isinstance(target, ast.Name)}
        elif isinstance(each, ast.arguments):
            plain = [*each.posonlyargs, *each.args]
            given = [
                *zip(plain[len(plain) - len(each.defaults) :], each.defaults),
                *zip(each.kwonlyargs, each.kw_defaults),
            ]
            local |= {a.arg: path for a, value in given if value and (path := _path(value, {}))}
            skipped |= {id(value) for _, value in given}
    uses, words, paths = set(), set(), []
    for each in nodes:
        if isinstance(each, ast.Constant):
            if isinstance(each.value, str) and id(each) not in skipped:
                words.add(each.value)
        elif isinstance(each, ast.JoinedStr):
            words.add(_piece(each))
        elif isinstance(each, LEADS):
            if isinstance(each, (ast.Attribute, ast.Name)) and (dotted := _dotted(each)):
                uses.add(dotted)
            if isinstance(each, ast.Name) and (each.id in local or not isinstance(each.ctx, ast.Load)):
                continue
            if id(each) not in skipped and (path := _path(each, local)):
                paths.append(path)
                skipped |= {id(inner) for inner in ast.walk(each) if isinstance(inner, LEADS)}
    decorators = " ".join(ast.unparse(each) for each in getattr(node, "decorator_list", ()))
    is_fixture = "fixture" in decorators
    is_test = function and node.name.startswith("test")
    needs = (
        [a.arg for a in node.args.args + node.args.kwonlyargs] if function and (is_fixture or is_test) else []
    )
    if "getfixturevalue" in {use.rpartition(".")[2] for use in uses}:
        needs += [word for word in words if word.isidentifier()]
        needs += re.findall(r"\w+", decorators)
    return Definition(sorted(uses), sorted(words), paths, needs, "autouse=True" in decorators, is_test)


def _dotted(node: ast.expr) -> str:
    """The dotted name a.b.c of a node; nothing if the node is not a chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def _piece(node: ast.expr | None) -> str:
    """A string, with * for its unknown parts."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(each) for each in node.values)
    return "*"


LEADS = (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.Call)  # expressions that may be a path
LEADING = {  # methods of a path -> what they make of it, and what comes before their argument
    "glob": ("join", ""),
    "joinpath": ("join", ""),
    "rglob": ("join", "**/"),
    "with_name": ("beside", ""),
    "with_suffix": ("ending", ""),
}
MODULES_OF = ("walk_packages", "iter_modules")


def _path(node: ast.expr, local: dict[str, list]) -> list | None:
    """An expression that leads to files, as nested lists that ``Tree.pattern`` evaluates; None for any other:
    ["name", N], ["file"], ["up", path, steps], ["join", path, text], ["beside", path, text],
    ["ending", path, text], ["modules", path], ["module", text], ["own", text], ["package", N]."""
    if isinstance(node, ast.Name):
        return local.get(node.id) or (["name", node.id] if node.id.isupper() else None)
    if isinstance(node, ast.Attribute):
        if node.attr == "parent":
            return _on(node.value, local, "up", 1)
        dotted = _dotted(node)
        if node.attr == "__path__" and dotted:
            return ["package", dotted.rpartition(".")[0]]
        return ["name", dotted] if dotted and node.attr.isupper() else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        parents = isinstance(node.value, ast.Attribute) and node.value.attr == "parents"
        return _on(node.value.value, local, "up", node.slice.value + 1) if parents else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        piece = _piece(node.right)
        return _on(node.left, local, "join", "?" if piece == "*" else piece)
    return _called(node, local) if isinstance(node, ast.Call) else None


def _called(node: ast.Call, local: dict[str, list]) -> list | None:
    """The nested lists of ``_path`` for a call."""
    first = node.args[0] if node.args else None
    if isinstance(node.func, ast.Attribute):
        of, name = node.func.value, node.func.attr
        if name in ("resolve", "absolute"):
            return _path(of, local)
        if name in LEADING and first is not None:
            kind, before = LEADING[name]
            return _on(of, local, kind, before + "/".join(map(_piece, node.args)))
    else:
        name = _dotted(node.func)
    if first is None:
        return None
    if name in MODULES_OF:
        return _searched(first, local)
    if name == "import_module":
        return _imported(first)
    if name != "Path":
        return None
    path = ["file"] if _dotted(first) == "__file__" else _path(first, local)
    for more in node.args[1:]:
        path = path and ["join", path, _piece(more)]
    return path


def _searched(where: ast.expr, local: dict[str, list]) -> list | None:
    """The modules of the folder that `pkgutil` is given: [str(PATH)], package.__path__ or __path__."""
    if isinstance(where, ast.List) and where.elts:
        where = where.elts[0]
    if isinstance(where, ast.Call) and _dotted(where.func) == "str" and where.args:
        where = where.args[0]
    return ["modules", ["up", ["file"], 1]] if _dotted(where) == "__path__" else _on(where, local, "modules")


def _imported(name: ast.expr) -> list | None:
    """The modules that `import_module` may be asked for."""
    if isinstance(name, ast.JoinedStr) and isinstance(first := name.values[0], ast.FormattedValue):
        own = _dotted(first.value) == "__name__"
        return ["own", "".join(map(_piece, name.values[1:]))] if own else None
    return None if _piece(name) == "*" else ["module", _piece(name)]


def _on(node: ast.expr, local: dict[str, list], *does) -> list | None:
    before = _path(node, local)
    return before and [does[0], before, *does[1:]]


# -- the graph -----------------------------------------------------------------------------------------------
class Touched(NamedTuple):
    """The test files that a change touches."""

    near: dict[str, int]  # file -> how many steps lead from it to the change
    pages: dict[str, set[str]]  # file -> its functions that need a browser or the built site
    only_pages: set[str]  # files of which no other function is touched


class Tree:
    """The files of the project, and which of them depends on which. Files that are gone may be among them."""

    def __init__(self, root: Path, files: Iterable[str], known: dict[str, list] | None = None):
        self.root, self.files = root, sorted(set(files))
        self.known = known if known is not None else {}  # hash of a source -> its facts
        self.sources = {file: self._source(file) for file in self.files if file.endswith(".py")}
        self.modules = {self._module(file): file for file in self.sources}
        self.by_name = defaultdict(list)
        for file in self.files:
            self.by_name[PurePosixPath(file).name].append(file)
            if file.startswith(SHOWN) and re.search("[-_]", stem := PurePosixPath(file).stem):
                self.by_name[stem].append(file)
        self.matched: dict[str, list[str]] = {}
        self.data: dict[str, list[str]] = {}
        self.packages = {each.rpartition("/")[0] for each in self.sources}
        self.all = set(self.files)

    def _source(self, file: str) -> Source:
        try:
            text = (self.root / file).read_bytes()
        except FileNotFoundError:
            return Source([], {}, {}, {})
        key = hashlib.sha256(text).hexdigest()
        if key not in self.known:
            self.known[key] = read(text.decode(), file)
        return Source(*self.known[key])

    @staticmethod
    def _module(file: str) -> str:
        return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    # -- names
    def place(self, file: str, dotted: str) -> tuple[str, str] | None:
        """Where a name that a file uses is defined: (file, name), with no name for a whole module."""
        source, (first, *rest) = self.sources[file], dotted.split(".")
        if first in source.definitions:
            return file, first
        if first not in source.names:
            return None
        module, name = source.names[first]
        if name is None:
            at = module if module in self.modules and not rest else module.split(".")[0]
        elif f"{module}.{name}" in self.modules:
            at = f"{module}.{name}"
        else:
            return self.place(self.modules[module], name) if module in self.modules else None
        while rest and f"{at}.{rest[0]}" in self.modules:
            at = f"{at}.{rest.pop(0)}"
        if at not in self.modules:
            return None
        return self.place(self.modules[at], rest[0]) if rest else (self.modules[at], "")

    # -- paths
    def pattern(self, file: str, path: list) -> str | None:
        """The files that an expression leads to, as a pattern from the root; "" for the root itself."""
        kind, *rest = path
        if kind == "file":
            return file
        if kind == "name":
            place = self.place(file, rest[0])
            found = place and self.sources[place[0]].constants.get(place[1])
            return self.pattern(place[0], found) if place and found else None
        if kind == "module":
            return self.modules.get(rest[0]) or rest[0].replace(".", "/") + ".py"
        if kind == "own":
            inner = rest[0].lstrip(".").replace(".", "/")
            return f"{file.removesuffix('.py').removesuffix('/__init__')}/{inner}.py"
        if kind == "package":
            place = self.place(file, rest[0])
            return PurePosixPath(place[0]).parent.as_posix() if place else None
        before = self.pattern(file, rest[0])
        if before is None:
            return None
        at = PurePosixPath(before)
        if kind == "up":
            for _ in range(rest[1]):
                at = at.parent
        elif kind == "join":
            at = at / rest[1].strip("/")
        elif kind == "beside":
            at = at.parent / rest[1]
        elif kind == "modules":
            at = at / "*.py"
        elif at.name:
            at = at.with_suffix(rest[1] if rest[1].startswith(".") else ".*")
        return "" if at == PurePosixPath(".") else at.as_posix()

    def matches(self, pattern: str) -> list[str]:
        """The files of a pattern, or below the folder that it names."""
        if pattern not in self.matched:
            alternatives = sorted({pattern, pattern.replace("**/", "")})
            fits = re.compile("|".join(map(translate, alternatives))).match
            found = [each for each in self.files if fits(each)]
            self.matched[pattern] = found or [each for each in self.files if each.startswith(f"{pattern}/")]
        return self.matched[pattern]

    def reads(self, file: str, definition: Definition) -> Iterator[tuple[str, bool, int]]:
        """(file, whether its code runs, how far away it is) for what a definition reads or starts."""
        for path in definition.paths:
            pattern = self.pattern(file, path)
            if pattern is None or pattern == "" or pattern == file or pattern.endswith("/?"):
                continue  # whoever asks for a file by its name has the name among its words
            pattern = pattern.replace("?", "*")
            if pattern.startswith("*") and "." not in pattern:  # ROOT / name: one of those that it names
                every = (word for each in self.sources[file].definitions.values() for word in each[1])
                found = [
                    one
                    for word in set(every)
                    if re.fullmatch(r"\w[\w./-]*", word)
                    for one in self.matches(word)
                ]
                found = found if pattern == "*" else self.files
            else:
                found = self.matches(pattern)
            runs = path[0] in ("modules", "module", "own")
            steps = 1 if len(found) == 1 else 2 if len(found) < FAR else 4
            yield from ((each, runs, steps) for each in found)
        for word in definition.words:
            yield from self.said(word)

    def said(self, word: str) -> Iterator[tuple[str, bool, int]]:
        """The files that a string names."""
        if "import " in word:
            for module, _, name in IMPORTED.findall(word):
                inner = f"{module}.{name}"
                if at := self.modules.get(inner) or self.modules.get(module):
                    yield at, True, 1
        if len(word) > 120:
            return
        if word in self.modules and "." in word:
            yield self.modules[word], True, 1
        plain = word.partition("?")[0].removeprefix("./").strip("/")
        if plain in self.all:
            yield plain, False, 1
        called = self.by_name.get(plain.rpartition("/")[2], ()) if plain else ()
        if len(called) <= FEW:
            yield from ((file, file.endswith(".py"), 1) for file in called if file != plain)

    # -- what depends on what
    @cached_property
    def edges(self) -> dict[tuple, list[tuple[tuple, int]]]:
        """Who depends on a node, and how many steps away. Nodes are ("text", file), ("code", file) and
        ("name", file, definition)."""
        into: dict[tuple, list[tuple[tuple, int]]] = defaultdict(list)
        for one, other, steps in chain(self._of_modules(), self._of_definitions(), self._of_texts()):
            into[other].append((one, steps))
        return into

    def _of_modules(self) -> Iterator[tuple[tuple, tuple, int]]:
        """The edges from whole modules to what they depend on; a conftest.py is treated fixture by fixture
        instead."""
        for file, source in self.sources.items():
            code, folder = ("code", file), PurePosixPath(file).parent
            yield code, ("text", file), 0
            yield code, ("name", file, ""), 1
            for package in (f"{each}/__init__.py" for each in (folder, *folder.parents)):
                if package in self.sources and package != file:
                    yield code, ("text", package), 2
            if file.startswith(("engine/", "widgets/")):  # those of course/ are read by few, who name them
                yield from ((code, ("text", data), 2) for data in self.beside(folder.as_posix()))
            if not file.endswith("conftest.py"):
                named = dependencies.named(source.imports, lambda name: name in self.modules)
                for module in named:
                    if module in self.modules:
                        yield code, ("code", self.modules[module]), 1
                if (
                    dependencies.DISCOVERY in named
                ):  # it finds, and each of its functions may use, what lies beside
                    package = folder.as_posix().replace("/", ".")
                    beside = [
                        self.modules[each] for each in self.modules if each.rpartition(".")[0] == package
                    ]
                    for node in (code, *(("name", file, name) for name in source.definitions)):
                        yield from ((node, ("code", other), 1) for other in beside if other != file)

    def _of_definitions(self) -> Iterator[tuple[tuple, tuple, int]]:
        """The edges from single functions, classes and constants to what they use and read."""
        for file, source in self.sources.items():
            conftest = file.endswith("conftest.py")
            for name, fields in source.definitions.items():
                node, definition = ("name", file, name), Definition(*fields)
                if conftest:
                    yield node, ("text", file), 0
                left_out = {use for at, whose, use in NOT_FOLLOWED if at == file and whose in ("", name)}
                for use in definition.uses:
                    place = None if use in left_out else self.place(file, use)
                    if place and place != (file, name):
                        yield node, ("name", *place), 1
                        if conftest and place[0] != file:
                            yield node, ("code", place[0]), 1
                for fixture in self.fixtures(file, definition):
                    yield node, ("name", *fixture), 1
                if "" not in left_out:
                    yield from self._of_reading(node, definition)

    def _of_reading(self, node: tuple, definition: Definition) -> Iterator[tuple[tuple, tuple, int]]:
        for other, runs, steps in self.reads(node[1], definition):
            yield node, ("text", other), steps
            if runs and other in self.sources:
                yield node, ("code", other), steps
                for name in self.sources[other].definitions:
                    yield node, ("name", other, name), steps

    def _of_texts(self) -> Iterator[tuple[tuple, tuple, int]]:
        """The edges from pages, templates, scripts and settings to the files that they name."""
        for file in self.files:
            if file.endswith(TEXTS) and (self.root / file).is_file():
                for other, runs, steps in self.mentions(file):
                    if other != file:
                        yield (
                            ("text", file),
                            ("code" if runs and other in self.sources else "text", other),
                            steps,
                        )

    def beside(self, folder: str) -> list[str]:
        """The files in a module's folder, or below it in folders that are not packages, but no modules."""
        if folder not in self.data:
            inner = {f"{each}/" for each in self.packages if each.startswith(f"{folder}/")}
            found = (
                each for each in self.files if each.startswith(f"{folder}/") and not each.endswith(".py")
            )
            self.data[folder] = [each for each in found if not each.startswith(tuple(inner))]
        return self.data[folder]

    def mentions(self, file: str) -> Iterator[tuple[str, bool, int]]:
        """What a text names: a page the file of its numbers, its widgets, pictures, quoted files and the
        engine's modules; a template or a script those that it includes; the settings their extensions."""
        key = hashlib.sha256((file + "\0").encode() + (self.root / file).read_bytes()).hexdigest()
        if key not in self.known:
            text = (self.root / file).read_text(encoding="utf-8")
            page = file.endswith(".md")  # a link of a page is a link; what it quotes and shows is part of it
            words = set(re.findall(r'--8<-- "([^":]+)' if page else r"""["'(]([\w./-]{3,80})["')]""", text))
            dotted = set() if page else set(re.findall(r"\b(?:course|widgets|engine)(?:\.\w+)+", text))
            named = set(re.findall(r"^ *(?:name|draw): *([\w-]+)", text, re.MULTILINE)) if page else set()
            lesson = file.startswith("lessons/")
            owners = set(re.findall(r"(?<![\w.])([a-z]\w+)\.[a-z]\w*", text)) if lesson else set()
            self.known[key] = [sorted(words | dotted), sorted(named), sorted(owners)]
        words, named, owners = self.known[key]
        if (numbers := f"{file.removesuffix('.md')}.py") in self.sources:  # beside a page of lessons/
            yield numbers, True, 1
        for word in words:
            yield from self.said(word)
        for name in named:
            yield from (
                (each, True, 1) for each in self.by_name.get(f"{name}.py", ()) if each.startswith(SHOWN)
            )
        for owner in owners:
            yield from ((each, True, 1) for each in self.short.get(owner, ()))

    @cached_property
    def short(self) -> dict[str, list[str]]:
        """The engine's modules by their last names, as lessons use them."""
        found = defaultdict(list)
        for module, file in self.modules.items():
            if module.startswith("engine."):
                found[module.rpartition(".")[2]].append(file)
        return found

    # -- tests
    def fixtures(self, file: str, definition: Definition) -> Iterator[tuple[str, str]]:
        """The places of the fixtures that a test or a fixture requests."""
        for name in definition.needs:
            for holder in (file, *self.conftests(file)):
                if holder in self.sources and (place := self.place(holder, name)):
                    yield place
                    break

    def conftests(self, file: str) -> list[str]:
        """The conftest.py files for a test, from the nearest to tests/conftest.py."""
        around = [(parent / "conftest.py").as_posix() for parent in PurePosixPath(file).parents]
        return [each for each in around if each in self.sources and each != file]

    @cached_property
    def pages(self) -> dict[tuple[str, str], str]:
        """The definitions in tests/ that need a browser or the built site -> which of them."""
        found: dict[tuple[str, str], str] = {}
        users: dict[tuple[str, str], list] = defaultdict(list)
        for file, source in self.sources.items():
            if not file.startswith("tests/"):
                continue
            always = [
                (file, name) for name, fields in source.definitions.items() if Definition(*fields).automatic
            ]
            for name, fields in source.definitions.items():
                definition, at = Definition(*fields), (file, name)
                if file == "tests/conftest.py" and name in NEEDED:
                    found[at] = NEEDED[name]
                elif any(use.split(".")[-1] == LAUNCHES for use in definition.uses):
                    found[at] = NEEDED["browser"]
                elif BUILDS in definition.words and file != "tests/touched.py":
                    found[at] = NEEDED["site"]
                for place in [
                    *filter(None, (self.place(file, use) for use in definition.uses)),
                    *self.fixtures(file, definition),
                    *(always if definition.test else ()),
                ]:
                    if place[0].startswith("tests/"):
                        users[place].append(at)
        for wanted in (NEEDED["browser"], NEEDED["site"]):  # who needs both is said to need the browser
            ahead = [at for at, needs in found.items() if needs == wanted]
            while ahead:
                for user in users[ahead.pop()]:
                    if user not in found:
                        found[user] = wanted
                        ahead.append(user)
        return found

    @cached_property
    def tests(self) -> dict[str, list[str]]:
        """Test file -> its test functions."""
        return {
            file: [name for name, fields in source.definitions.items() if Definition(*fields).test]
            for file, source in self.sources.items()
            if file.startswith("tests/") and PurePosixPath(file).name.startswith("test_")
        }

    def touched(self, changed: Iterable[str]) -> Touched:
        """The tests that depend on one of these files."""
        changed = set(changed)
        steps = self._steps(changed)
        near: dict[str, int] = {}
        pages: dict[str, set[str]] = {}
        only: set[str] = set()
        for file, functions in self.tests.items():
            pages[file] = {name for name in functions if (file, name) in self.pages}
            automatic = [
                n for n, fields in self.sources[file].definitions.items() if Definition(*fields).automatic
            ]
            whole = [steps.get(("code", file)), *(steps.get(("name", file, name)) for name in automatic)]
            plain = [*whole, *(steps.get(("name", file, n)) for n in functions if n not in pages[file])]
            paged = [*whole, *(steps.get(("name", file, n)) for n in pages[file])]
            if len(pages[file]) < len(functions) and (found := [one for one in plain if one is not None]):
                near[file] = 0 if self._own(file, changed) else 1 + min(found)
            elif pages[file] and (found := [one for one in paged if one is not None]):
                near[file] = 1 + min(found)
                only.add(file)
        return Touched(near, {file: pages[file] for file in near}, only)

    @staticmethod
    def _own(test: str, changed: set[str]) -> bool:
        """Whether a test file is itself changed, or is named after a changed file."""
        name = PurePosixPath(test).stem.removeprefix("test_")
        return test in changed or any(name == PurePosixPath(each).stem.replace("-", "_") for each in changed)

    def _steps(self, changed: set[str]) -> dict[tuple, int]:
        """The nodes that depend on a changed file -> the least number of steps to it."""
        found: dict[tuple, int] = {}
        ahead: list[tuple[int, tuple]] = [(0, ("text", file)) for file in changed]
        while ahead:
            steps, node = heapq.heappop(ahead)
            if node in found:
                continue
            found[node] = steps
            for user, more in self.edges.get(node, ()):
                if user not in found:
                    heapq.heappush(ahead, (steps + more, user))
        return found


IMPORTED = re.compile(rf"\b(?:from|import)\s+((?:{'|'.join(PACKAGES)})(?:\.\w+)*)(\s+import\s+(\w+))?")
