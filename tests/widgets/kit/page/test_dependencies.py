"""What is compiled again: exactly what a changed file has a part in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from widgets.kit.page import dependencies
from widgets.kit.page.cache import PARTS, forget_older, kept

ROOT = Path(__file__).resolve().parents[4]
COMPILE = """
from course import numbers
from course.fences import widget
from widgets.kit.page import module
from widgets.kit.widget import all_widgets

for slug in ("memory_stack", "float_explorer"):
    module.module(all_widgets()[slug])
numbers.computed("memory.state_bytes(70e9)")
widget.format("name: memory_stack\\n", "", "", {}, None)
"""


@pytest.fixture
def tree(tmp_path):
    """A copy of the code that may be changed, with what Python has compiled of it."""
    for name in dependencies.PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "lessons", tmp_path / "lessons")
    return tmp_path


def compiled_anew(tree: Path) -> set[str]:
    """The names of what a fresh process had to make, as memory_stack.js, float_explorer.js, value, fence."""
    before = set((tree / "kept").glob("*"))
    environment = os.environ | {"PYTHONPATH": str(tree), "KEEP_COMPILED": str(tree / "kept")}
    subprocess.run([sys.executable, "-c", COMPILE], cwd=tree, env=environment, check=True)
    made = {path.name.split(".", 1)[1] for path in set((tree / "kept").glob("*")) - before}
    kinds = {"memory_stack.js", "float_explorer.js", "value", "fence"}
    return {kind for kind in kinds if any(name.startswith(kind) for name in made)}


def change(path: Path) -> None:
    assert path.is_file()
    path.write_text(f"{path.read_text(encoding='utf-8')}\n# changed\n", encoding="utf-8")


def test_only_what_a_changed_file_has_a_part_in_is_made_again(tree):
    everything = {"memory_stack.js", "float_explorer.js", "value", "fence"}
    assert compiled_anew(tree) == everything

    change(tree / "engine/executed/ring_attention.py")  # which none of them knows
    change(tree / "widgets/foundations/three_walls.py")
    change(tree / "widgets/gpu/float_explorer.py")  # one widget's own file
    assert compiled_anew(tree) == {"float_explorer.js"}

    change(tree / "engine/mechanism/memory.py")  # imported by the other, and named in the lesson
    assert compiled_anew(tree) == {"memory_stack.js", "value", "fence"}

    change(tree / "engine/base/units.py")  # imported by what they import
    assert compiled_anew(tree) == everything

    change(tree / "engine/catalog/gpus.toml")  # data, behind a loader
    assert compiled_anew(tree) == {"memory_stack.js", "value", "fence"}

    change(tree / "course/templates/widget.html")
    assert "fence" in compiled_anew(tree)


def test_every_module_that_compiling_a_widget_loads_is_among_its_files():
    """But for what the packages around them import for themselves: no module is asked for through those."""
    code = (
        "import sys\n"
        "from widgets.kit.page import module\n"
        "import widgets.composition.layout_planner as planner\n"
        "module.module(planner.LayoutPlanner)\n"
        "print(*(name for name in sys.modules if name.split('.')[0] in ('engine', 'widgets', 'course')))"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {dependencies.source(name) for name in said.stdout.split()}
    found = dependencies.files("widgets.composition.layout_planner", "widgets.kit.page.module")
    inits = [file for file in found if file.name == "__init__.py"]
    behind = dependencies.files(*(".".join(file.parent.relative_to(ROOT).parts) for file in inits))
    assert loaded - found <= behind
    assert len(found) > 50


def test_a_package_taken_as_a_whole_brings_what_it_imports(tmp_path, monkeypatch):
    for name, text in {
        "engine/__init__.py": "from engine import far\n",
        "engine/far.py": "",
        "engine/near.py": "",
        "widgets/__init__.py": "",
        "widgets/whole.py": "import engine\n",
        "widgets/part.py": "def late():\n    from engine import near\n",
        "widgets/words.txt": "data",
        "widgets/README.md": "for people",
        "widgets/data/README.md": "for people",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(dependencies, "ROOT", tmp_path)
    dependencies.source.cache_clear()
    try:
        names = lambda *modules: {
            file.relative_to(tmp_path).as_posix() for file in dependencies.files(*modules)
        }
        around = {"widgets/__init__.py", "engine/__init__.py", "widgets/words.txt"}
        assert names("widgets.whole") == around | {"widgets/whole.py", "engine/far.py"}
        assert names("widgets.part") == around | {"widgets/part.py", "engine/near.py"}
    finally:
        dependencies.source.cache_clear()


def test_what_a_kept_result_was_made_of_is_kept_with_it(tmp_path, monkeypatch):
    """A page's numbers are wanted again when the page changes; until then nobody asks for them."""
    monkeypatch.setenv("KEEP_COMPILED", str(tmp_path))
    made = []

    def keep(name: str, *parts: str) -> bytes:
        def make() -> bytes:
            made.append(name)
            return b"".join(keep(*part.split()) for part in parts) + name.encode()

        return kept(name, make, ())

    whole = "page", "fence number", "word"
    assert keep(*whole) == keep(*whole) == b"numberfencewordpage"
    assert made == ["page", "fence", "number", "word"]
    keep("alone")

    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    keep(*whole)
    forget_older(2)
    left = {path.name.split(".", 1)[1].removesuffix(PARTS) for path in tmp_path.iterdir()}
    assert left == {"page", "fence", "number", "word"}
    keep("number"), keep("fence", "number")
    assert made[4:] == ["alone"]


def test_what_was_made_of_a_source_saved_meanwhile_is_not_kept(tmp_path, monkeypatch):
    """Else the next build would take what the old source gave for the new one's."""
    monkeypatch.setenv("KEEP_COMPILED", str(tmp_path))
    module = "engine.base.units"
    monkeypatch.setattr(dependencies, "STARTED", dependencies.source(module).stat().st_mtime - 1)
    assert kept("page", lambda: b"old", (module,)) == b"old"
    assert kept("page", lambda: b"new", (module,)) == b"new"
    monkeypatch.undo()
    monkeypatch.setenv("KEEP_COMPILED", str(tmp_path))
    assert kept("page", lambda: b"kept", (module,)) == b"kept"
    assert kept("page", lambda: b"not asked for", (module,)) == b"kept"
