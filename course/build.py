"""Builds the static course in build/static: the lessons with mkdocs, each widget's module and page, the
book, the slides and the notebooks.

python -m course.build            the whole site
python -m course.build --fresh    after emptying build/ first
python -m course.build --builder zensical    the same pages by another program, in build/zensical
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

import bokeh

from course import engine_in_page, faults, lessons, puzzle_page, search_index, settings, zensical
from course import own_page as own_pages
from course.drawing import looks
from course.fences import gallery
from course.freshness import DONE
from course.output import announced, book, plain, reading_time, wheel
from course.output.notebooks import write as notebooks
from course.output.slides import page as slides
from engine.base.bar import Bar
from engine.base.built import BUILT, ROOT
from engine.base.progress import tell
from widgets.kit.drawing import tokens
from widgets.kit.drawing.scripts import SCRIPTS
from widgets.kit.page import headers, module
from widgets.kit.page.cache import forget_older
from widgets.kit.widget import all_widgets

OUT = BUILT
NEXT = OUT.parent / f"next-{os.getpid()}"  # where a build is made; the site is touched once it is complete
COMPILED = str(OUT.parent / "compiled")
THEME = ROOT / "site" / "theme"
BOKEH = Path(bokeh.__file__).parent / "server" / "static" / "js" / "bokeh.min.js"
LIBRARIES = {  # which are not part of the theme
    **{f"assets/widget/{name}": path for name, path in SCRIPTS.items()},
    **engine_in_page.SCRIPTS,
    "assets/bokeh.min.js": BOKEH,
    "assets/puzzle/brython.js": puzzle_page.BRYTHON,
}


def write(path: Path, contents: str | bytes) -> None:
    """Write a file, creating its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)


def publish(out: Path) -> None:
    """Update a site from the finished build, file by file; unchanged files keep their date."""
    made = {path.relative_to(NEXT) for path in NEXT.rglob("*") if path.is_file()}
    for name in made:
        if not (out / name).is_file() or not filecmp.cmp(NEXT / name, out / name, shallow=False):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(NEXT / name, out / name)
    for path in sorted(out.rglob("*"), reverse=True):  # files before their folders
        if path.is_file() and path.relative_to(out) not in made:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def write_sheets() -> None:
    """The style sheets that are made from the figures' colours, beside those written by hand. One that would
    not change keeps its date, so that it does not make a finished build look out of date."""
    for sheet, contents in (("tokens.css", tokens.css()), ("looks.css", looks.css())):
        place = THEME / "assets" / "css" / sheet
        if not place.is_file() or place.read_text(encoding="utf-8") != contents:
            place.write_text(contents, encoding="utf-8")


# The programs that can make the lessons' pages. Not --quiet, which would also silence the warnings (such as a
# broken link) that `strict` counts and fails on.
BUILDERS = {
    "mkdocs": [sys.executable, "-m", "course.rendered", "build", "-d", str(NEXT)],
    "zensical": zensical.COMMAND,
}


def write_lessons(builder: str) -> None:
    """One of the programs, in a separate process, because mkdocs keeps state between builds that a watcher
    must not inherit."""
    write_sheets()
    # the constraints already keep mkdocs below 2; Zensical is told of the folder in this way alone
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1", "SITE_DIR": str(NEXT.relative_to(ROOT))}
    with (
        TemporaryFile("w+") as said,
        subprocess.Popen(BUILDERS[builder], cwd=ROOT, env=quiet, stdout=said, stderr=said) as program,
    ):
        try:
            with Bar("Building lessons and figures"):
                make_widgets_ahead(program)
                program.wait()
        except BaseException:  # also when this build is stopped
            program.kill()
            raise
        said.seek(0)
        lines = [line for line in said if not line.startswith("INFO")]
    if program.returncode:
        sys.exit(faults.said_by_mkdocs(lines) or program.returncode)
    if builder == "zensical":
        zensical.finish(NEXT)
    else:
        sys.stderr.writelines(lines)


def make_widgets_ahead(program: subprocess.Popen) -> None:
    """While a program goes through the lessons, make the widgets from the last lesson to the first. Each of
    the two stores what it has made, so neither makes what the other has."""
    with suppress(Exception):  # what fails here fails again where it is needed, and is reported there
        figures = gallery.figures()
        for done, (slug, _) in enumerate(reversed(figures)):
            if program.poll() is not None:
                return
            tell(done, len(figures), "figures")
            module.table(all_widgets()[slug])
            own_page(slug)


def widgets() -> None:
    """Write the widgets' modules, BokehJS of the installed version, and the widgets' own pages."""
    for name, contents in module.files({lesson.number: lesson.name for lesson in lessons.numbered()}).items():
        write(NEXT / "assets" / "widgets" / name, contents)
    for name, source in LIBRARIES.items():
        shutil.copyfile(source, NEXT / name)
    for name, contents in (puzzle_page.files() | engine_in_page.files()).items():
        write(NEXT / name, contents)
    for slug in all_widgets():
        write(NEXT / slug / "index.html", own_page(slug))


def own_page(slug: str) -> str:
    """A widget's own page."""
    return own_pages.own_page(slug, settings.public_home())


def the_book() -> None:
    """All lessons on one page, made from the pages that mkdocs has written."""
    for name, contents in book.pages(NEXT).items():
        write(NEXT / name, contents)


def decks() -> None:
    """A deck of slides for each lesson, made from its page."""
    for name, contents in slides.pages(NEXT).items():
        write(NEXT / name, contents)


def the_notebooks() -> None:
    """Each lesson as a notebook, made from its page."""
    for name, contents in notebooks.files(NEXT).items():
        write(NEXT / name, contents)


def the_package() -> None:
    """The package that the notebooks install, without the built course."""
    write(NEXT / wheel.address(), wheel.made())


def for_readers() -> None:
    """Each page as Markdown, and llms.txt, which lists them."""
    for name, contents in plain.files(NEXT).items():
        write(NEXT / name, contents)


def for_robots() -> None:
    """robots.txt, the feed of releases, the days in the sitemap, and the pages that mkdocs does not know:
    widgets, the book and the slides. They have a separate sitemap, because Material treats every page in
    sitemap.xml as one of its own when a reader goes there."""
    listing = NEXT / "sitemap.xml"
    write(listing, announced.with_days(listing.read_text(encoding="utf-8")))
    write(NEXT / announced.FEED, announced.feed())
    home = settings.of("site_url")
    shown = [lesson.slides.rstrip("/") for lesson in lessons.numbered()]
    listed = "".join(f"  <url><loc>{home}{name}/</loc></url>\n" for name in ("book", *all_widgets(), *shown))
    write(
        NEXT / "sitemap-more.xml",
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{listed}</urlset>\n',
    )
    write(
        NEXT / "robots.txt",
        f"User-agent: *\nAllow: /\nSitemap: {home}sitemap.xml\nSitemap: {home}sitemap-more.xml\n",
    )


def ahead(text: str, up: str) -> str:
    """Links to everything that a page's widgets need, so that it is fetched while the page is still being
    read, after the page's own files, rather than one script after another."""
    versions = re.findall(r'<figure class="widget"[^>]* data-widget="(\w+)"[^>]* data-version="(\w+)"', text)
    if not versions:
        return ""
    names = {path.name for path in (THEME / "assets" / "widget").glob("*.js")} | set(SCRIPTS)
    kit = [f"assets/widget/{name}" for name in sorted(names)]
    modules = [
        *kit,
        "assets/widgets/shared.js",
        "assets/widgets/answers.js",
        *(f"assets/widgets/{slug}.js?v={version}" for slug, version in versions),
    ]
    return f'<link rel="preload" as="script" fetchpriority="low" href="{up}assets/bokeh.min.js">' + "".join(
        f'<link rel="modulepreload" fetchpriority="low" href="{up}{name}">' for name in modules
    )


def with_head(text: str, name: str) -> str:
    """The page of this name (its file, from the site's root) with its content policy, what other programs are
    told of it, and its preload links in the head."""
    folder, up = name.removesuffix("index.html").strip("/"), "../" * name.count("/")
    text = text.replace('<meta charset="utf-8">', f'<meta charset="utf-8">{headers.META}', 1)
    about = announced.described(folder, text, up)
    return text.replace("</head>", f"{about}{ahead(text, up)}</head>", 1)


def heads() -> None:
    """Write into each page what it may load, who may frame it and what to preload; the first two also go into
    files for hosts that send headers."""
    folders = []
    for page in sorted(NEXT.rglob("*.html")):
        if page.relative_to(NEXT).as_posix() == headers.FRAME:  # has a policy of its own
            continue
        name = page.relative_to(NEXT).as_posix()
        page.write_text(with_head(page.read_text(encoding="utf-8"), name), encoding="utf-8")
        if page.name == "index.html":
            folders.append("/" + page.parent.relative_to(NEXT).as_posix().removeprefix(".") + "/")
    write(NEXT / "_headers", headers.underscore([folder.replace("//", "/") for folder in folders]))
    write(OUT.parent / "headers.conf", headers.nginx())


def main() -> None:
    """Build the site, or say in a line what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="empty the output first")
    parser.add_argument("--builder", choices=BUILDERS, default="mkdocs", help="what makes the lessons' pages")
    options = parser.parse_args()
    out = zensical.OUT if options.builder == "zensical" else OUT
    began, now = time.perf_counter(), time.time()
    os.environ["KEEP_COMPILED"] = COMPILED  # also for mkdocs, which runs in a separate process
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that unfinished work is cleaned up
    if options.fresh:
        shutil.rmtree(out, ignore_errors=True)
    try:
        write_lessons(options.builder)
        read = reading_time.Times(NEXT)
        for page in lessons.pages():
            read.fill(NEXT / page.address / "index.html")
        with Bar("Building search, figures' pages and the book"):
            search_index.enrich(NEXT, own_pages.lessons_with)
            if options.builder == "zensical":
                zensical.search(NEXT)
            widgets()
            the_book()
            decks()
            the_notebooks()
            the_package()
            for_readers()
            for_robots()
            heads()
            publish(out)
    except Exception as error:
        sys.exit(faults.one_line(error))
    finally:
        shutil.rmtree(NEXT, ignore_errors=True)
    forget_older(now - 1)
    if out == OUT:
        DONE.touch()
    print(f"Built {out.relative_to(ROOT)} in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
