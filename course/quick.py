"""Builds only the pages that a few changed files affect directly: a lesson, or a widget and the lessons that
show it.

It is meant for ``make dev`` and leaves the rest as it was: other pages' menus, the search, the book, the
slides. The full build that follows updates them. Fonts, styles and scripts that the site does not have yet
are copied too, so that the page looks as it will after the full build.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from mkdocs.commands.build import _build_page, _populate_page
from mkdocs.config import load_config
from mkdocs.structure.files import get_files, set_exclusions
from mkdocs.structure.nav import get_navigation

from course import build, engine_in_page, faults, own_page, puzzle_page, rendered, settings
from course.output import reading_time
from widgets.kit.controls import BadValue
from widgets.kit.page import module
from widgets.kit.widget import PARTS, all_widgets


def make(out: Path, lessons: set[str], widgets: set[str]) -> None:
    """Write the pages of these lessons (by file name) and the files of these widgets into a folder; if that
    fails, exit with 1 and a message."""
    os.environ["KEEP_COMPILED"] = build.COMPILED
    about = ""  # the widget that is being built
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    logging.getLogger("mkdocs.commands.build").addFilter(_is_no_heading)
    try:
        rendered.keep()
        for about in widgets:
            write_widget(out, about)
        about = ""
        write_lessons(out, lessons | showing(widgets))
    except Exception as error:
        print(faults.one_line(error, file_of(about)), file=sys.stderr)
        sys.exit(1)


def _is_no_heading(record: logging.LogRecord) -> bool:
    """A filter for mkdocs' log: drops the announcement of an error that is raised afterwards, and printed
    then."""
    return not record.getMessage().startswith(("Error reading page", "Error building page"))


def file_of(slug: str) -> str:
    """The file of a widget, from the root."""
    found = next(PARTS.glob(f"*/{slug}.py"), None) if slug else None
    return found.relative_to(build.ROOT).as_posix() if found else ""


def showing(widgets: set[str]) -> set[str]:
    """The lessons that show one of these widgets."""
    found = [address for slug in widgets for address, _ in own_page.lessons_with(slug)]
    return {f"{address.removeprefix('../').split('/')[0]}.md" for address in found}


def write_widget(out: Path, slug: str) -> None:
    """A widget's module and its own page."""
    if slug not in all_widgets():
        raise BadValue("no class in this module is a Widget")
    cls = all_widgets()[slug]
    build.write(out / "assets" / "widgets" / f"{slug}.js", module.module(cls))
    if numbers := module.table(cls):
        build.write(out / "assets" / "widgets" / f"{slug}.table", numbers)
    name = f"{slug}/index.html"
    build.write(out / name, build.with_head(build.own_page(slug), name))


def write_lessons(out: Path, names: set[str]) -> None:
    """The pages of some lessons, made as in mkdocs' own build, reading only the titles of the others."""
    build.write_sheets()
    for name, source in build.LIBRARIES.items():
        if not (build.OUT / name).is_file():
            build.write(out / name, source.read_bytes())
    for name, contents in (puzzle_page.files() | engine_in_page.files()).items():
        kept = build.OUT / name
        if not kept.is_file() or kept.read_text(encoding="utf-8") != contents:
            build.write(out / name, contents)
    config = load_config(str(settings.FILE))
    config["site_dir"] = str(out)
    config.plugins.on_startup(command="build", dirty=True)
    config = config.plugins.on_config(config)
    env, files = config.theme.get_env(), get_files(config)
    files.add_files_from_theme(env, config)
    files = config.plugins.on_files(files, config=config)
    set_exclusions(files, config)
    nav = config.plugins.on_nav(get_navigation(files, config), config=config, files=files)
    pages = [file.page for file in files.documentation_pages() if file.page]
    for page in pages:
        page.read_source(config)
    for file in files:
        wanted = file.inclusion.is_included() and not file.is_documentation_page()
        if wanted and not (build.OUT / file.dest_uri).is_file():
            file.copy_file()
    chosen = [page for page in pages if page.file.src_uri in names]
    for page in chosen:
        _populate_page(page, config, files)
    env = config.plugins.on_env(env, config=config, files=files)
    for page in chosen:
        _build_page(page, config, files.documentation_pages(), nav, env)
    read = reading_time.Times(out, build.OUT)
    for page in chosen:
        written = Path(page.file.abs_dest_path)
        read.fill(written)
        name = written.relative_to(out).as_posix()
        build.write(written, build.with_head(written.read_text(encoding="utf-8"), name))
