"""``make dev``: how each kind of change is built, and that a page built alone equals the page of the full
build."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course import watch

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("lessons/05-fsdp-and-zero.md", "lessons"),
        ("lessons/glossary.md", "lessons"),
        ("lessons/index.md", "others"),  # its template counts the minutes of all lessons
        ("lessons/99-new.md", "others"),
        ("widgets/foundations/memory_stack.py", "widgets"),
        ("widgets/foundations/gone.py", "others"),
        ("widgets/kit/widget.py", "others"),
        ("widgets/foundations/__init__.py", "others"),
        ("site/theme/assets/css/type.css", "assets"),
        ("site/theme/assets/widget/view.js", "assets"),
        ("site/theme/main.html", "others"),
        ("engine/mechanism/memory.py", "others"),
        ("mkdocs.yml", "others"),
    ],
)
def test_a_change_is_built_alone_where_that_can_be(site, path, kind):
    found = watch.sort({ROOT / path})
    assert [name for name, members in found._asdict().items() if members] == [kind]


def test_a_new_widget_is_built_alone_too(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "ROOT", tmp_path)
    new = tmp_path / "widgets" / "serving" / "queue_length.py"
    new.parent.mkdir(parents=True)
    new.write_text("")
    assert watch.sort({new}).widgets == {"queue_length"}


def test_what_is_built_alone_is_what_the_whole_build_makes(site, tmp_path):
    code = (
        "import sys; from pathlib import Path; from course import quick\n"
        # as the site's build has kept them
        "quick.engine_in_page.Bundle.script = quick.puzzle_page._files = None\n"
        f"quick.make(Path({str(tmp_path)!r}), {{'05-fsdp-and-zero.md'}}, {{'roofline'}})"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {
        "05-fsdp-and-zero/index.html",
        "01-why-distributed/index.html",  # which shows it
        "roofline/index.html",
        "assets/widgets/roofline.js",
    }
    for name in made:
        assert (tmp_path / name).read_text() == (site / name).read_text(), name


def test_what_the_site_lacks_comes_along(site, tmp_path):
    """Fonts, styles and scripts, where a page is built before the site: as the whole build has them."""
    code = (
        "from pathlib import Path; from course import quick\n"
        f"quick.build.OUT = Path({str(tmp_path)!r})\n"
        f"quick.make(quick.build.OUT, {{'about.md'}}, set())"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    page = (tmp_path / "about" / "index.html").read_text()
    loaded = set(re.findall(r'(?:href|src)="\.\./(assets/[^"?]+)', page))
    fonts = {path.relative_to(site).as_posix() for path in (site / "assets" / "fonts").iterdir()}
    assert len(fonts) >= 8 and len(loaded) > 5
    for name in fonts | loaded | {"assets/css/looks.css", "assets/widget/numbers.js", "assets/bokeh.min.js"}:
        assert (tmp_path / name).read_bytes() == (site / name).read_bytes(), name


def test_a_fault_is_said_and_the_process_fails(tmp_path, monkeypatch, capfd):
    code = (
        "from pathlib import Path; from course import quick\n"
        "quick.build.own_page = lambda slug: 1 / 0\n"
        f"quick.make(Path({str(tmp_path)!r}), set(), {{'roofline'}})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr


def test_a_fault_in_what_a_quick_build_imports_is_one_line(tmp_path):
    """Also where the module that `make dev` was started as would not be imported any more."""
    for name in ("engine", "widgets", "course", "lessons"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    started = tmp_path / "started.py"
    started.write_text(
        "from pathlib import Path\nfrom engine.mechanism import memory\nfrom course import watch\n"
        "if __name__ == '__main__':\n"
        "    watch.LIBRARIES.clear()\n    Path(memory.__file__).write_text('def (')\n"
        "    print(watch.Workshop([]).quick({'about.md'}, set()))\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, started],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "False", done.stderr
    assert re.fullmatch(r"engine/mechanism/memory\.py:1: SyntaxError: .*\n", done.stderr), done.stderr
