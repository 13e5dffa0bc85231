"""Write the static course into build/static: the lessons by mkdocs, each widget's module and page, and the book.

    python site/build.py            the whole site
    python site/build.py --fresh    after emptying build/ first
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import book
import bokeh
from jinja2 import Environment, FileSystemLoader

import search_index
from widgets.kit import export, headers, kept, markup, tokens
from widgets.kit.locate import address
from widgets.kit.widget import all_widgets

ROOT = Path(__file__).resolve().parents[1]
LESSONS, OUT = ROOT / "lessons", ROOT / "build" / "static"
NEXT = OUT.parent / f"next-{os.getpid()}"  # where a build is made: what readers see is touched only once it is whole
DONE = OUT.parent / "static.done"  # touched by a build that came to its end; older than a source means stale
THEME = ROOT / "site" / "theme"
ALONE_SHEETS = ("tokens.css", "type.css", "widget.css", "alone.css")


def lessons_with(slug: str) -> list[tuple[str, str]]:
    """(address, title) of every lesson that shows a widget."""
    found = []
    for path in sorted(LESSONS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if re.search(rf"^name: {slug}\s*$", text, re.MULTILINE):
            title = re.search(r"^(?:title: |# )(.+)$", text, re.MULTILINE)
            found.append((f"../{address(path.name)}#w-{slug}", title[1].strip() if title else path.stem))
    return found


def write(path: Path, contents: str | bytes) -> None:
    """Write a file, its folders too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)


def publish() -> None:
    """Bring the site up to date with the finished build, file by file: what is the same keeps its date."""
    made = {path.relative_to(NEXT) for path in NEXT.rglob("*") if path.is_file()}
    for name in made:
        if not (OUT / name).is_file() or not filecmp.cmp(NEXT / name, OUT / name, shallow=False):
            (OUT / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(NEXT / name, OUT / name)
    for path in sorted(OUT.rglob("*"), reverse=True):  # files before their folders
        if path.is_file() and path.relative_to(OUT) not in made:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def lessons() -> None:
    """mkdocs, in a process of its own: it keeps state between builds that a watcher must not inherit."""
    (THEME / "assets" / "css" / "tokens.css").write_text(tokens.css(), encoding="utf-8")
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # the constraints hold mkdocs below 2 as it is
    # not --quiet: that would also silence the warnings (a link to nowhere) that `strict` counts and fails on
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "-d", str(NEXT)], cwd=ROOT, env=quiet, stderr=subprocess.PIPE, text=True)
    sys.stderr.writelines(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("INFO"))
    if done.returncode:
        sys.exit(done.returncode)


def widgets() -> None:
    """The modules, BokehJS of the installed version, and the pages of the widgets alone."""
    for name, contents in export.files().items():
        write(NEXT / "assets" / "widgets" / name, contents)
    script = Path(bokeh.__file__).parent / "server" / "static" / "js" / "bokeh.min.js"
    shutil.copyfile(script, NEXT / "assets" / "bokeh.min.js")
    page = Environment(loader=FileSystemLoader([Path(markup.__file__).parent, THEME]), autoescape=True).get_template("alone.html")
    home = book.public_home()
    for slug, cls in all_widgets().items():
        widget, shown_in = cls(), lessons_with(slug)
        of_a_lesson = re.match(r"\.\./(\d\d-[\w-]+)/", shown_in[0][0]) if shown_in else None
        write(NEXT / slug / "index.html", page.render(
            title=widget.question, description=widget.shown()["summary"], lessons=shown_in, sheets=ALONE_SHEETS,
            home=home, address=f"{home}{slug}/" if home else "", picture=of_a_lesson[1] if of_a_lesson else "course",
            figure=markup.figure(widget, f"w-{slug}", level=2)))


def the_book() -> None:
    """All lessons on one page, made of the pages that mkdocs has written."""
    for name, contents in book.pages(NEXT).items():
        write(NEXT / name, contents)


def for_robots() -> None:
    """robots.txt, and the pages that mkdocs knows nothing of: widgets and the book. They have a sitemap of their own, because
    whatever stands in sitemap.xml is taken for one of Material's pages when a reader goes there."""
    home = book.settings()["site_url"]
    listed = "".join(f"  <url><loc>{home}{name}/</loc></url>\n" for name in ("book", *all_widgets()))
    write(NEXT / "sitemap-more.xml", '<?xml version="1.0" encoding="UTF-8"?>\n'
          f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{listed}</urlset>\n')
    write(NEXT / "robots.txt", f"User-agent: *\nAllow: /\nSitemap: {home}sitemap.xml\nSitemap: {home}sitemap-more.xml\n")


def ahead(text: str, up: str) -> str:
    """Links to all that a page's widgets stand on, so that it is fetched while the page is still being read, behind what the page
    itself needs: not when one script after the other asks for it."""
    versions = re.findall(r'<figure class="widget"[^>]* data-widget="(\w+)"[^>]* data-version="(\w+)"', text)
    if not versions:
        return ""
    kit = [f"assets/widget/{path.name}" for path in sorted((THEME / "assets" / "widget").glob("*.js"))]
    modules = [*kit, "assets/widgets/shared.js", *(f"assets/widgets/{slug}.js?v={version}" for slug, version in versions)]
    return f'<link rel="preload" as="script" fetchpriority="low" href="{up}assets/bokeh.min.js">' + "".join(
        f'<link rel="modulepreload" fetchpriority="low" href="{up}{name}">' for name in modules)


def heads() -> None:
    """What each page may load and who may frame it: in the pages, and in files for the hosts that send headers. And what it
    will load."""
    folders = []
    for page in sorted(NEXT.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        up = "../" * (len(page.relative_to(NEXT).parts) - 1)
        text = text.replace('<meta charset="utf-8">', f'<meta charset="utf-8">{headers.META}', 1)
        page.write_text(text.replace("</head>", f"{ahead(text, up)}</head>", 1), encoding="utf-8")
        if page.name == "index.html":
            folders.append("/" + page.parent.relative_to(NEXT).as_posix().removeprefix(".") + "/")
    write(NEXT / "_headers", headers.underscore([folder.replace("//", "/") for folder in folders]))
    write(OUT.parent / "headers.conf", headers.nginx())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="empty the output first")
    options = parser.parse_args()
    began = time.perf_counter()
    os.environ["KEEP_COMPILED"] = str(OUT.parent / "compiled")      # for mkdocs too, which runs in a process of its own
    kept.forget_older()
    if options.fresh:
        shutil.rmtree(OUT, ignore_errors=True)
    try:
        lessons()
        search_index.enrich(NEXT, lessons_with)
        widgets()
        the_book()
        for_robots()
        heads()
        publish()
    finally:
        shutil.rmtree(NEXT, ignore_errors=True)
    DONE.touch()
    print(f"Built {OUT.relative_to(ROOT)} in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
