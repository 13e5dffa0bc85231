"""The page of figures: each figure is there once, its stored picture is up to date, and the page is light."""

import re

import pytest
from PIL import Image

from course import pictures
from course.fences import gallery
from tests.conftest import ROOT
from widgets.kit.widget import all_widgets

MOST = 45_000  # most bytes of a picture
BASELINES = ROOT / "tests" / "browser" / "baselines"


def test_every_figure_is_there_once():
    assert sorted(slug for slug, _ in gallery.figures()) == sorted(all_widgets())
    assert all(shown_in and shown_in != "on no page yet" for _, shown_in in gallery.figures())
    assert set(gallery.drawn()) <= set(all_widgets()), "pictures of figures that are no more"


@pytest.mark.parametrize("slug", sorted(all_widgets()))
def test_a_figure_has_been_drawn(slug):
    """What only a browser can make of a new figure: its picture, and an account of where its words stand."""
    made = [gallery.STORED / f"{slug}.png", BASELINES / f"{slug}.txt"]
    assert all(path.exists() for path in made), f"make figure NAME={slug}"


@pytest.mark.parametrize("slug", gallery.drawn())
def test_a_picture_is_of_what_its_figure_says_today(slug):
    path = gallery.STORED / f"{slug}.png"
    assert path.stat().st_size < MOST
    with Image.open(path) as picture:
        assert picture.size == (gallery.WIDTH, gallery.HEIGHT)
        assert picture.info["Title"] == pictures.told(slug), f"make figure NAME={slug}"


@pytest.mark.parametrize("name", sorted(path.stem for path in pictures.EXAMPLES.glob("*.py")))
def test_a_dashboard_is_pictured_as_it_is_written_today(name):
    """A figure in it may have moved since; its program has not."""
    path = pictures.ASSETS / "dashboards" / f"{name}.png"
    assert path.stat().st_size < 3 * MOST
    with Image.open(path) as picture:
        told = picture.info["Title"]
    assert told == pictures.program(name), f"python -m course.pictures dashboards {name}"


def test_the_fence_takes_no_options():
    with pytest.raises(Exception, match="this fence takes no options"):
        gallery.render("columns: 3")


def test_the_page_is_light_and_its_links_lead_to_the_figures(site):
    html = (site / "figures" / "index.html").read_text(encoding="utf-8")
    assert 'class="widget"' not in html, "no figure is alive there"
    assert len(html) < 120_000
    gallery_of = re.findall(
        r'<a href="\.\./(\w+)/"><img src="\.\./([\w./-]+)" alt="" [^>]*loading="lazy">', html
    )
    assert sorted(slug for slug, _ in gallery_of) == gallery.drawn()
    for slug, picture in gallery_of:
        assert (site / slug / "index.html").exists() and (site / picture).exists()


def test_the_page_says_numbers_as_the_figures_do(site):
    html = (site / "figures" / "index.html").read_text(encoding="utf-8")
    for text in ("8,192", "3.51", "1.4·10⁻⁴⁵"):
        assert text in html
