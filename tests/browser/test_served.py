"""With Python behind the page: the same values, one socket, and a server that goes and comes back."""

import json
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from engine.base import built
from tests import states
from tests.browser.conftest import Visit
from tests.browser.hands import Hand, lessons
from tests.browser.test_equality import differences, in_python
from widgets.kit.widget import all_widgets

WIDGETS = sorted(all_widgets())
LESSON, SLUGS = next(iter(lessons().items()))


SHOWN = """async ([slug, states]) => {
  const { askServer } = await import("/assets/widget/live.js");
  const found = [];
  for (const state of states) found.push(await askServer("test", slug, state, () => {}));
  const plain = (key, value) => ArrayBuffer.isView(value) ? [...value] : value;
  return JSON.stringify(found, plain);
}"""


def test_a_page_has_one_socket_for_all_its_widgets(visit, served):
    window = visit()
    page = window.go(served + LESSON)
    for slug in SLUGS:
        hand = Hand(page, slug)
        name = hand.slider()
        hand.says(**hand.initial() | {name: hand.drag(name, 3)})
    assert len(window.sockets) == 1 and not window.sockets[0].is_closed()
    assert page.evaluate("Bokeh.documents.length") == len(SLUGS) + 1  # theirs and the session's


def test_a_static_page_asks_no_server(visit, static):
    window = visit()
    hand = Hand(window.go(static + LESSON), SLUGS[0])
    hand.drag(hand.slider(), 3)
    assert not window.sockets


def test_the_served_answer_comes_from_python(visit, served):
    """A page whose own arithmetic is taken away still shows the right values, since Python gives them."""
    slug = SLUGS[0]
    window = visit()
    page = window.page
    page.route(
        f"**/assets/widgets/{slug}.js*",
        lambda route: route.fulfill(
            response=(answer := route.fetch()),
            body=answer.text() + "\nconst first = widget.compute; let calls = 0;\n"
            "widget.compute = c => { if (calls++) throw new Error('the page computed'); return first(c); "
            "};\n",
        ),
    )
    hand = Hand(window.go(f"{served}{slug}/"), slug)
    name = hand.slider()
    hand.says(**{name: hand.drag(name, 2)})


def test_every_page_of_the_site_is_served(served):
    """Panel and Bokeh have routes of their own, which come before the site's."""
    pages = [path.parent.relative_to(built.SITE).as_posix() for path in built.SITE.rglob("index.html")]
    assert len(pages) > 90 and "components" in pages
    for page in pages:
        with urlopen(f"{served}{page}/" if page != "." else served) as answer:
            assert answer.status == 200 and b"<html" in answer.read(500), page


@pytest.mark.parametrize("path", ["this/A/css/b", "os/path/__css__/c", "..%2f..%2fetc/passwd/css/d"])
def test_no_address_names_a_module_to_import(served, path):
    with pytest.raises(HTTPError) as error:
        urlopen(f"{served}components/{path}")
    assert error.value.code == 404


@pytest.mark.parametrize("slug", states.daily([slug for slug, cls in all_widgets().items() if cls.in_page]))
def test_a_long_algorithm_runs_in_the_page(visit, served, slug):
    """It shows what Python says, without having asked it: no socket was opened."""
    window = visit()
    hand = Hand(window.go(f"{served}{slug}/"), slug)
    name = hand.slider()
    hand.says(**hand.initial() | {name: hand.drag(name, 3)})
    assert not window.sockets


@pytest.fixture(scope="module")
def session(browser, served):
    """A page whose session is asked about every widget."""
    window = Visit(browser)
    page = window.go(served + LESSON)
    Hand(page, SLUGS[0])
    yield page
    left = window.left()
    window.context.close()
    assert left == []


@pytest.mark.of_the_kit
@pytest.mark.parametrize("slug", WIDGETS)
def test_the_server_says_what_python_says(session, slug):
    """For the same states, the answer over the socket and the widget's own methods; of these and the page,
    test_equality."""
    cls = all_widgets()[slug]
    tried = [states.default(cls), *states.presets(cls), *states.scattered(cls, 10)]
    for state, shown in zip(tried, json.loads(session.evaluate(SHOWN, [slug, tried])), strict=True):
        assert differences(cls, shown | {"hints": {}}, in_python(cls, state, speaks=False)) == []


@pytest.mark.parametrize(
    "path",
    [
        "no-such-page/",
        "assets/no-such-file.js",
        "../mkdocs.yml",
        "%2e%2e/pyproject.toml",
        "..%2f..%2fpyproject.toml",
        "live/no-such",
    ],
)
def test_what_is_not_there_is_a_404(browser, served, path):
    context = browser.new_context()
    answer = context.request.get(served + path)
    assert (
        answer.status in (403, 404) and "hatchling" not in answer.text() and "site_name:" not in answer.text()
    )
    context.close()


def test_a_folder_without_its_slash_leads_to_the_page(visit, origin):
    page = visit().go(origin + LESSON.rstrip("/"))
    assert page.url == origin + LESSON
