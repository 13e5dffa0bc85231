"""The pictures that are kept in the repository because only a browser can make them: a preview for each lesson's link, and the
favicon as a bitmap.

    python site/pictures.py         after site/build.py, when a title, a question or a lesson's first figure has changed
"""

from __future__ import annotations

import io
import re
import sys
from base64 import b64encode
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from PIL import Image, PngImagePlugin
from playwright.sync_api import sync_playwright

import book
from paper import SITE, served
from tests import browsers

ASSETS = Path(__file__).parent / "theme" / "assets"
WIDTH, HEIGHT = 1200, 630
DRAWN = "() => [...Bokeh.index.roots][0].export('png').canvas.toDataURL()"
COURSE = ("System ML", "Parallel training and inference, from first principles", "01-why-distributed")


def lessons() -> list[tuple[str, str, str]]:
    """(name, title, question) of every lesson."""
    found = []
    for path in sorted((book.ROOT / "lessons").glob("[0-9][0-9]-*.md")):
        text = path.read_text(encoding="utf-8")
        found.append((path.stem, re.search(r"^# (.+)$", text, re.MULTILINE)[1], re.search(r"^# .+\n\n((?:.+\n)+?)\{ \.question \}", text, re.MULTILINE)[1].replace("`", "")))
    return found


def first_widget(name: str) -> str:
    return re.search(r'data-widget="(\w+)"', (SITE / name / "index.html").read_text(encoding="utf-8"))[1]


def drawn(page, home: str, slug: str) -> str:
    """The widget's picture in its first state, as a data address."""
    page.goto(f"{home}{slug}/")
    page.locator('figure.widget[data-state="live"]').wait_for()
    return page.evaluate(DRAWN)


def save(picture: bytes, path: Path, says: str) -> None:
    """A small PNG that tells in its text what it shows, so that a test sees when the page says something else."""
    told = PngImagePlugin.PngInfo()
    told.add_text("Title", says)
    path.parent.mkdir(exist_ok=True)
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(96, dither=Image.Dither.NONE).save(path, optimize=True, pnginfo=told)


def main() -> None:
    if not SITE.exists():
        sys.exit("There is no built site; run site/build.py first.")
    card = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True).get_template("preview-card.html")
    with served(SITE) as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers.find(playwright.chromium.executable_path), args=browsers.ARGUMENTS)
        page = browser.new_page(viewport={"width": 800, "height": HEIGHT}, color_scheme="light", device_scale_factor=2)
        shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name, title, question in [*lessons(), ("course", COURSE[0], COURSE[1])]:
            of = COURSE[2] if name == "course" else name
            html = card.render(number=name[:2] if name[:2].isdigit() else "", title=title, question=question, picture=drawn(page, home, first_widget(of)))
            shown.route("**/card", lambda route: route.fulfill(body=html, content_type="text/html"))
            shown.goto(f"{home}card")
            shown.evaluate("document.fonts.ready")
            save(shown.screenshot(), ASSETS / "previews" / f"{name}.png", title)
        shown.set_viewport_size({"width": 32, "height": 32})
        shown.set_content(f'<body style="margin:0"><img width="32" height="32" src="data:image/svg+xml;base64,{icon()}">')
        shown.screenshot(path=ASSETS / "images" / "favicon.png", omit_background=True)
        browser.close()


def icon() -> str:
    return b64encode((ASSETS / "images" / "favicon.svg").read_bytes()).decode()


if __name__ == "__main__":
    main()
