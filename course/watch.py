"""``make dev``: serves the course, builds what a change affects, and makes open pages reload.

A lesson, a widget, a script or a style is built alone, at once (course/quick.py). Any other change, and what
these quick builds leave out, gets a full build a moment later. Each build and each server is a new process,
since Python cannot reload a changed module reliably; it is forked from one that has already imported all
libraries, which saves most of the start-up time.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import watchfiles

ROOT = Path(__file__).resolve().parents[1]
OUT, NEXT = ROOT / "build" / "static", ROOT / "build" / "quick"
WATCHED = ("engine", "widgets", "course", "lessons", "kernels", "examples", "site", "mkdocs.yml")
LIBRARIES = [
    "panel.command",
    "bokeh.plotting",
    "material.plugins.search.plugin",
    "mkdocs.commands.build",
    "mkdocs.__main__",
    "material.templates",
    "pymdownx.superfences",
    "pymdownx.inlinehilite",
    "pymdownx.snippets",
    "pygments.formatters.html",
    "pygments.lexers.python",
    "latex2mathml.converter",
    "nbformat",
    "numpy.ma",  # numpy imports it when it is first asked for, which takes a quarter of a second
]
QUIET_MS = 1500  # a full build waits until nothing has changed for this long


class Changed(NamedTuple):
    """The changes, sorted by how they are built."""

    lessons: set[str]  # names of files
    widgets: set[str]  # slugs
    assets: set[Path]
    others: set[Path]


def sort(paths: set[Path]) -> Changed:
    """Widgets can be built alone, new ones too; so can ordinary pages and files that are copied as they are,
    if they existed before. Everything else needs the full build."""
    found = Changed(set(), set(), set(), set())
    for path in paths:
        parts = path.relative_to(ROOT).parts
        if not path.is_file():
            found.others.add(path)
        elif parts[0] == "lessons" and (OUT / path.stem / "index.html").is_file() and not _own_template(path):
            found.lessons.add(f"{path.stem}.md")  # also of the Python file beside it
        elif _is_widget(parts):
            found.widgets.add(path.stem)
        elif parts[:3] == ("site", "theme", "assets") and published(path).is_file():
            found.assets.add(path)
        else:
            found.others.add(path)
    return found


def _is_widget(parts: tuple[str, ...]) -> bool:
    """Whether this is the path of a widget's module: widgets/PART/SLUG.py."""
    return len(parts) == 3 and parts[0] == "widgets" and parts[1] != "kit" and parts[2] != "__init__.py"


def _own_template(page: Path) -> bool:
    """Whether a page has its own template, like the home page, and depends on all others."""
    return "\ntemplate:" in page.with_suffix(".md").read_text(encoding="utf-8").partition("\n---")[0]


def published(asset: Path) -> Path:
    """The path of a theme's file on the site."""
    return OUT / asset.relative_to(ROOT / "site" / "theme")


class Filter(watchfiles.DefaultFilter):
    """Ignores files that a build writes, and files that no build reads."""

    def __call__(self, change: watchfiles.Change, path: str) -> bool:
        """Whether a change of this file counts: not of style sheets that the build writes, nor of READMEs."""
        ours = ("/tokens.css", "/looks.css", "/README.md")
        return not path.endswith(ours) and super().__call__(change, path)


# -- processes -----------------------------------------------------------------------------------------------
def _forks():
    """A way to start processes that have all libraries imported, but nothing of this project."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    return context


@contextmanager
def _by_itself() -> Iterator[None]:
    """Inside this block, a new process imports what it runs, but not the module that this process was started
    as: its imports take time and may contain an error."""
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name, None) for name in ("__spec__", "__file__")}
    main.__spec__ = main.__file__ = None
    try:
        yield
    finally:
        vars(main).update(kept)


def _make(lessons: set[str], widgets: set[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from course import faults  # noqa: PLC0415  imported here, so that the new process gets its current state

    try:
        from course import quick  # noqa: PLC0415
    except Exception as error:  # in a module that it imports, or in the data that such a module reads
        sys.exit(faults.one_line(error))
    quick.make(NEXT, lessons, widgets)


def _serve(arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir(ROOT)
    sys.argv = ["panel", *arguments]  # it reads them there, whatever arguments its main gets
    from panel.command import main  # noqa: PLC0415  only where a server runs

    main()


class Workshop:
    """The server, and the builds that run beside it."""

    def __init__(self, arguments: list[str], whole: list[str] | None = None) -> None:
        self.forks, self.arguments = _forks(), arguments
        self.whole = whole or [sys.executable, "-m", "course.faults", "course.build"]
        self.server: Any = None
        self.build: Any = None
        self.about: set[str] = set()  # the files that a full build is due for
        self.owed = False  # whether a full build is due, because something has changed since the last one
        self.stale = False  # whether the server runs an older state of the code
        os.environ["COURSE_RELOAD"] = "1"  # for every server from now on

    # -- the server
    def start(self) -> None:
        """Start a server with the current state of the code."""
        self.server = self.forks.Process(target=_serve, args=(self.arguments,))
        with _by_itself():
            self.server.start()
        self.stale = False

    def stop(self) -> None:
        """End the server."""
        self.server.kill()  # it has no state that needs saving
        self.server.join()

    def close(self) -> None:
        """End the build, if there is one, and the server."""
        self.interrupt()
        self.stop()

    # -- what changed
    def take(self, paths: set[Path]) -> None:
        """Build what can be built alone; the rest is due in a full build."""
        began, changed = time.perf_counter(), sort(paths)
        self.interrupt()
        self.owed = True
        self.about |= {path.name for path in changed.others}
        self.stale |= bool(changed.widgets or any(path.suffix != ".html" for path in changed.others))
        for asset in changed.assets:
            shutil.copyfile(asset, published(asset))
        if (changed.lessons or changed.widgets) and not self.quick(changed.lessons, changed.widgets):
            self.owed = False  # there is no point in a full build before the fault is fixed
            return
        if changed.widgets and not changed.others:
            self.stop()
            publish()
            self.start()
        publish()
        names = sorted(changed.lessons | changed.widgets | {path.name for path in changed.assets})
        if names:
            print(f"{', '.join(names)}: {time.perf_counter() - began:.1f} s", flush=True)

    def quick(self, lessons: set[str], widgets: set[str]) -> bool:
        """Build some lessons and widgets in a new process; returns whether that worked."""
        shutil.rmtree(NEXT, ignore_errors=True)
        maker = self.forks.Process(target=_make, args=(lessons, widgets))
        with _by_itself():
            maker.start()
        maker.join()
        return maker.exitcode == 0

    # -- the whole build
    def catch_up(self) -> None:
        """While nothing changes: start the full build that is due, and check whether it has finished."""
        if self.build and self.build.poll() is not None:
            done, self.build = self.build.returncode == 0, None
            self.about.clear()
            if done and self.stale:
                self.stop()
                self.start()
        if self.owed:
            self.owed = False
            if self.about:
                print(f"{', '.join(sorted(self.about))}: building what depends on it ...", flush=True)
            silent = os.environ | {"TERM": "dumb"}  # no progress bar, which would run into our own lines
            # Behind all else, and out of Ctrl-C's reach. A function called in the child could say the same,
            # but Python then forks with callbacks of its own, and a signal that arrives in one is lost.
            behind = ["nice", "-n", "10", *self.whole]
            self.build = subprocess.Popen(behind, cwd=ROOT, env=silent, process_group=0)

    def interrupt(self) -> None:
        """End a running build, and remember that a full build is still due."""
        if self.build and self.build.poll() is None:
            self.build.terminate()
            self.build.wait()
            self.owed = True
        self.build = None


def publish() -> None:
    """Move what was built to the site; unchanged files keep their date."""
    for file in [path for path in NEXT.rglob("*") if path.is_file()]:
        place = OUT / file.relative_to(NEXT)
        if not place.is_file() or place.read_bytes() != file.read_bytes():
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
    shutil.rmtree(NEXT, ignore_errors=True)


def watch(arguments: list[str], opened: Callable[[multiprocessing.Process], None]) -> None:
    """Serve the course and follow changes until interrupted. ``opened`` is called with the first server."""
    workshop = Workshop(arguments)
    workshop.start()
    try:
        opened(workshop.server)
        for changes in watchfiles.watch(
            *(ROOT / name for name in WATCHED),
            watch_filter=Filter(),
            step=50,
            rust_timeout=QUIET_MS,
            yield_on_timeout=True,
        ):
            if changes:
                workshop.take({Path(path) for _, path in changes})
            else:
                workshop.catch_up()
    finally:
        workshop.close()
