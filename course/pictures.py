"""The pictures that are stored in the repository because only a browser can make them: a link preview for
each lesson, the tiles of the home page's map, every figure as the page of figures shows it, and the favicon
as a bitmap.

    python -m course.pictures             all of them, after course/build.py, when a title, a question or a
                                          lesson's first figure has changed
    python -m course.pictures lessons     previews and tiles alone; after this, the lessons' names, or fit,
                                          planner and deploy, if not all
    python -m course.pictures figures     the figures alone; after this, their names, if not all
    python -m course.pictures readme      README's picture of a figure in its lesson
    python -m course.pictures dashboards  those in examples/, as the page about components shows them; after
                                          this, their names, if not all
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from PIL import Image, ImageOps, PngImagePlugin
from playwright.sync_api import Browser, Page, Route, ViewportSize, sync_playwright

from course import browsers, lessons
from course.fences import gallery
from course.matches import there
from course.output.paper import SITE, served
from widgets.kit.drawing import tokens
from widgets.kit.widget import all_widgets

ASSETS = Path(__file__).resolve().parents[1] / "site" / "theme" / "assets"
STARTS_WITHIN_MS = 180_000  # a server that imports everything, on a busy machine
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
DASHBOARD: ViewportSize = {"width": 960, "height": 720}
README_PICTURE = Path(__file__).resolve().parents[1] / "docs" / "lesson.png"
WIDTH, HEIGHT = 1200, 630
DRAWN = "() => [...Bokeh.index.roots][0].export('png').canvas.toDataURL()"
# A tile of the map is a figure without its words, because nobody could read words at that size.
TILE, TILE_WIDTH = (320, 200), 560
WORDLESS = (
    "CanvasRenderingContext2D.prototype.fillText = CanvasRenderingContext2D.prototype.strokeText = () => {}"
)
# Lessons for which another figure than the first makes the better picture.
PICTURED = {
    "02-collectives": "ring_allreduce",
    "05-fsdp-and-zero": "fsdp_timeline",
    "08-sequence-and-context": "ring_attention",
    "10-nd-parallelism": "rank_mesh",
    "11-inference": "decode_latency",
    "11b-the-server": "serving_frontier",
    "16-custom-kernels-and-fusion": "flash_attention",
    "18-torch-compile": "compile_break_even",
}
# The tools that the home page shows with a picture of their own, and the figure that it is of.
TOOLS = {"fit": "memory_wall", "planner": "rank_mesh", "deploy": "deployment_planner"}
COURSE = ("System ML", "Parallel training and inference, from first principles", "01-why-distributed")


def cards() -> list[tuple[str, str, str]]:
    """(name, title, question) of every lesson."""
    return [(lesson.name, lesson.title, lesson.question.replace("`", "")) for lesson in lessons.numbered()]


def first_widget(name: str) -> str:
    """The slug of the first figure in a lesson."""
    html = (SITE / name / "index.html").read_text(encoding="utf-8")
    return there(re.search(r'data-widget="(\w+)"', html), f"the first widget of {name}")[1]


def drawn(page: Page, home: str, slug: str) -> str:
    """The widget's picture in its first state, as a data URL."""
    page.goto(f"{home}{slug}/")
    page.locator('figure.widget[data-state="live"]').wait_for()
    return page.evaluate(DRAWN)


def save(picture: bytes, path: Path, says: str) -> None:
    """A small PNG whose metadata says what it shows, so that a test notices when the page says something
    else."""
    told = PngImagePlugin.PngInfo()
    told.add_text("Title", says)
    path.parent.mkdir(exist_ok=True)
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(96, dither=Image.Dither.NONE).save(
        path, optimize=True, pnginfo=told
    )


def told(slug: str) -> str:
    """The description that is stored with a figure's picture: what it was drawn from."""
    widget = all_widgets()[slug]()
    return f"{widget.question} {widget.shown()['summary']}"


def thumbnail(picture: bytes) -> bytes:
    """A figure, scaled to fill a card, on a light background."""
    drawing = Image.open(io.BytesIO(picture)).convert("RGBA")
    ground = Image.new("RGBA", drawing.size, tokens.palette("light")["panel"])
    whole = ImageOps.pad(
        Image.alpha_composite(ground, drawing).convert("RGB"),
        (gallery.WIDTH, gallery.HEIGHT),
        Image.Resampling.LANCZOS,
        color=tokens.palette("light")["panel"],
    )
    kept = io.BytesIO()
    whole.save(kept, "PNG")
    return kept.getvalue()


def figures(browser: Browser, home: str, names: list[str]) -> None:
    """The pictures on the page of figures."""
    page = browser.new_page(viewport={"width": 760, "height": HEIGHT}, color_scheme="light")
    for slug in names or sorted(all_widgets()):
        address = drawn(page, home, slug)
        picture = thumbnail(b64decode(address.partition(",")[2]))
        save(picture, ASSETS / "figures" / f"{slug}.png", told(slug))
    page.close()


def tile(picture: str) -> Image.Image:
    """A figure, trimmed and scaled to fill a tile, on a transparent background."""
    image = Image.open(io.BytesIO(b64decode(picture.partition(",")[2]))).convert("RGBA")
    image = image.crop(image.getbbox())
    image.thumbnail(TILE, Image.Resampling.LANCZOS)
    whole = Image.new("RGBA", TILE)
    whole.paste(image, ((TILE[0] - image.width) // 2, (TILE[1] - image.height) // 2))
    return whole


def tiles(browser: Browser, home: str, names: list[str]) -> None:
    """The tile of each lesson and of each tool in both themes."""
    (ASSETS / "tiles").mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        page = browser.new_page(
            viewport={"width": TILE_WIDTH, "height": HEIGHT}, color_scheme=theme, device_scale_factor=2
        )
        page.add_init_script(WORDLESS)
        for name in names or [*(lesson.name for lesson in lessons.numbered()), *TOOLS]:
            slug = TOOLS.get(name) or PICTURED.get(name) or first_widget(name)
            tile(drawn(page, home, slug)).save(
                ASSETS / "tiles" / f"{name}-{theme}.webp", quality=70, alpha_quality=70, method=6
            )
        page.close()


def previews(browser: Browser, home: str, names: list[str]) -> None:
    """Each lesson's link preview, and the course's."""
    card = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True
    ).get_template("preview-card.html")
    page = browser.new_page(
        viewport={"width": 800, "height": HEIGHT}, color_scheme="light", device_scale_factor=2
    )
    shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    for name, title, question in [*cards(), ("course", COURSE[0], COURSE[1])]:
        if names and name not in names:
            continue
        of = COURSE[2] if name == "course" else name
        html = card.render(
            number=lessons.number_of(name),
            title=title,
            question=question,
            picture=drawn(page, home, first_widget(of)),
        )
        shown.route("**/card", partial(Route.fulfill, body=html, content_type="text/html"))
        shown.goto(f"{home}card")
        shown.evaluate("document.fonts.ready")
        save(shown.screenshot(), ASSETS / "previews" / f"{name}.png", title)


def readme(browser: Browser, home: str) -> None:
    """The picture for README: a figure of the first lesson between its paragraphs."""
    page = browser.new_page(
        viewport={"width": 1280, "height": 800}, color_scheme="light", reduced_motion="reduce"
    )
    page.goto(f"{home}01-why-distributed/?memory_stack.size=70e9#w-memory_stack")
    figure = page.locator('figure[data-widget="memory_stack"][data-state="live"]')
    figure.wait_for()
    figure.evaluate("one => window.scrollTo(0, one.getBoundingClientRect().top + window.scrollY - 110)")
    page.wait_for_timeout(1000)  # figures are laid out when they come into view
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(64, dither=Image.Dither.NONE).save(README_PICTURE, optimize=True)
    page.close()


def program(name: str) -> str:
    """The text of a dashboard, which its stored picture names."""
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


def dashboards(browser: Browser, names: list[str]) -> None:
    """The pictures of the examples, each in its first state."""
    page = browser.new_page(viewport=DASHBOARD, color_scheme="light", reduced_motion="reduce")
    page.set_default_timeout(STARTS_WITHIN_MS)
    for name in names or sorted(path.stem for path in EXAMPLES.glob("*.py")):
        app = [sys.executable, "-m", "panel", "serve", f"{EXAMPLES / name}.py", "--port", "0"]
        with subprocess.Popen(app, stderr=subprocess.PIPE, text=True) as server:
            try:
                said = (re.search(r"running at: (\S+)", line) for line in server.stderr or ())
                page.goto(next(found[1] for found in said if found))
                page.locator("canvas").first.wait_for()
                page.wait_for_timeout(3000)  # until the fonts have loaded and the layout is final
                save(page.screenshot(), ASSETS / "dashboards" / f"{name}.png", program(name))
            finally:
                server.terminate()
    page.close()


def favicon(browser: Browser) -> None:
    """The favicon as a bitmap."""
    page = browser.new_page(viewport={"width": 32, "height": 32})
    page.set_content(
        f'<body style="margin:0"><img width="32" height="32" src="data:image/svg+xml;base64,{icon()}">'
    )
    page.screenshot(path=ASSETS / "images" / "favicon.png", omit_background=True)


def main() -> None:
    """Take the pictures that are named on the command line, or all of them."""
    if not SITE.exists():
        sys.exit("There is no built site; run python -m course.build first.")
    kind, *names = sys.argv[1:] or ["all"]
    with served(SITE) as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browsers.find(playwright.chromium.executable_path), args=browsers.ARGUMENTS
        )
        if kind in ("all", "lessons"):
            tiles(browser, home, names)
            previews(browser, home, names)
        if kind in ("all", "readme"):
            readme(browser, home)
        if kind in ("all", "figures"):
            figures(browser, home, names)
        if kind in ("all", "dashboards"):
            dashboards(browser, names)
        if kind == "all":
            favicon(browser)
        browser.close()


def icon() -> str:
    """The course's icon as base64."""
    return b64encode((ASSETS / "images" / "favicon.svg").read_bytes()).decode()


if __name__ == "__main__":
    main()
