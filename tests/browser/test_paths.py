"""Reading paths, followed as a reader would: by nothing but the path's own links, from the home page to the
last step."""

import json

import pytest
from playwright.sync_api import expect

from course import lessons
from course.fences import path as paths
from tests.browser.hands import enter
from tests.course.test_paths import FENCES

PATHS = {path.key: path for path in map(paths.read, FENCES)}
TAKE, LINE, BOX = ".path__take button", ".path-line", ".path-next"


def hurried(visit, *figures):
    """A window whose reader leaves pages before all of their tables have come; of all figures only these are there."""
    window = visit(figures=figures)
    window.forgive("ERR_ABORTED")
    return window.page


def take(page, origin, key, chosen=None):
    """Go from the home page through one of its doors to a reading path, and choose it."""
    enter(page, origin)
    door = {"oom": "failure"}.get(key, "synthesis") if chosen is None else "prerequisite"
    page.locator(f".door a[href*='paths/#{door}']").first.click()
    if chosen:
        page.get_by_label("I want to reach").select_option(key)
    else:
        page.locator(f"#{key} summary").click()
    page.locator(f"#{key} {TAKE}").click()


def follow(page, name, steps):
    """Each step says where it is and leads to the next one, above and at the end of the page; returns what
    was gone through."""
    gone = []
    for i in range(steps):
        said = f"Your path: {name}, step {i + 1} of {steps}"
        expect(page.locator(LINE)).to_contain_text(said)
        expect(page.locator(BOX)).to_contain_text(said)
        gone.append(page.url)
        if i < steps - 1:
            above, below = (page.locator(f"{place} a").first for place in (LINE, BOX))
            assert above.get_attribute("href") == below.get_attribute("href")
            (above if i % 2 else below).click()
    expect(page.locator(BOX)).to_contain_text("That was its last step")
    return gone


def stands_on(page, path, gone):
    """Whether each page that was gone through is the step's, at its place."""
    return [url.split("/", 3)[3] for url in gone] == [step.href.removeprefix("../") for step in path.steps]


@pytest.mark.of_the_kit
def test_a_path_from_a_failure_end_to_end(visit, origin):
    """An OOM, from the home page to the allocator, on the static pages and served; then the ticks, and
    leaving."""
    page = hurried(visit)
    take(page, origin, "oom")
    gone = follow(page, "I have an OOM", 5)
    assert stands_on(page, PATHS["oom"], gone)
    page.locator(f"{BOX} a[href$='/paths/']").click()
    expect(page.locator("#oom li[data-seen]")).to_have_count(5)
    expect(page.locator("#slow li[data-seen]")).to_have_count(0)
    expect(page.locator("#oom")).to_contain_text("You are on this path, at step 5 of 5")
    page.locator("#oom").get_by_role("button", name="Leave the path").click()
    expect(page.locator(LINE)).to_have_count(0)
    expect(page.locator("#oom li[data-seen]")).to_have_count(0)
    enter(page, gone[0])
    expect(page.locator("[data-path], h1").first).to_be_visible()
    expect(page.locator(f"{LINE}, {BOX}")).to_have_count(0)


def test_a_chain_of_lessons_and_what_is_read(visit, static):
    """Lesson 09 stands on 01, 02 and 03. Who has read 01 begins with 02, and the chain shows the tick."""
    page = hurried(visit)
    enter(page, f"{static}01-why-distributed/")
    page.get_by_role("button", name="Mark as read").click()
    take(page, static, "to-09", chosen=True)
    expect(page.locator(LINE)).to_contain_text("Your path: To 09 Expert parallel, step 2 of 4")
    assert page.url == f"{static}02-collectives/"
    for lesson in ("03-interconnect", "09-expert-parallel"):
        page.locator(f"{BOX} a").first.click()
        assert page.url == f"{static}{lesson}/"
    expect(page.locator(BOX)).to_contain_text("step 4 of 4")
    page.get_by_role("button", name="Mark as read").click()
    enter(page, f"{static}paths/")
    expect(page.get_by_label("I want to reach")).to_have_value("to-09")
    expect(page.locator("#to-09 a[data-read]")).to_have_text(
        ["01 Why distributed at all?", "09 Expert parallel"]
    )
    enter(page, static)
    expect(page.locator(LINE)).to_contain_text(
        "Go on with step 4 of 4"
    )  # a page that is not on the path leads back
    expect(page.locator(".map__whole")).to_contain_text(f"2 of {len(lessons.numbered())} read")
    expect(page.locator(".map__part").first).to_contain_text("1 of 3 read")
    page.locator(LINE).get_by_role("button", name="Leave the path").click()
    expect(page.locator(LINE)).to_have_count(0)


@pytest.mark.parametrize("width", [1440, 390])
def test_the_slim_line_cuts_no_link_and_covers_no_place(visit, static, width):
    """One row; on a wide page the longest link whole, though the path's name gives way; below it the place
    that was gone to, and the contents mark that very place."""
    page = visit(viewport={"width": width, "height": 900}).page
    steps = [
        {"url": step.href.removeprefix("../"), "title": f"{step.of}: {step.title}"}
        for step in PATHS["slow"].steps
    ]
    longest = max(range(1, len(steps)), key=lambda i: len(steps[i]["title"]))
    steps[longest - 1]["url"] = "05-fsdp-and-zero/#when-it-hides"
    kept = {"key": "x", "name": "A name that is far too long " * 6, "at": 0, "seen": [], "steps": steps}
    page.add_init_script(f"localStorage.setItem('course.path', {json.dumps(json.dumps(kept))})")
    enter(page, f"{static}{steps[longest - 1]['url']}")
    lead = page.locator(".path-line__lead")
    expect(lead).to_have_text(f"Next: {steps[longest]['title']}")
    assert page.locator(LINE).bounding_box()["height"] <= 45
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert width < 1000 or lead.evaluate("lead => lead.scrollWidth <= lead.clientWidth")
    page.wait_for_function("""() => {
        const below = document.querySelector("#when-it-hides").getBoundingClientRect().top
          - document.querySelector(".md-header").getBoundingClientRect().bottom;
        const marked = [...document.querySelectorAll(".md-nav--secondary .md-nav__link--active")].at(-1);
        return below >= 0 && below < 40 && marked?.hash === "#when-it-hides";
    }""")


def test_a_pair_that_ends_at_a_figure_in_its_state(visit, static):
    """Two steps of this path are on one page: the second is reached without loading it anew."""
    page = hurried(visit, "prefill_decode")
    take(page, static, "prefill-against-decode")
    gone = follow(page, "Prefill against decode", 3)
    assert stands_on(page, PATHS["prefill-against-decode"], gone)
    figure = page.locator("figure.widget[data-widget=prefill_decode]")
    expect(figure).to_have_attribute("data-state", "live")
    assert figure.get_by_role("combobox").first.input_value()
    page.locator(BOX).get_by_role("button", name="Finish the path").click()
    expect(page.locator(f"{LINE}, {BOX}")).to_have_count(0)


@pytest.mark.parametrize(
    "kept",
    [
        "no JSON",
        "[]",
        '{"name": "x", "steps": [], "seen": []}',
        '{"name": 3, "steps": [{"url": 1}], "seen": []}',
        json.dumps(
            {
                "key": "x",
                "name": "<img src=x onerror=alert(1)>",
                "at": 7,
                "seen": [],
                "steps": [
                    {"url": "javascript:alert(1)", "title": "a"},
                    {"url": "https://elsewhere.example/", "title": "b"},
                ],
            }
        ),
    ],
)
def test_whatever_is_kept_it_harms_nothing(visit, static, kept):
    """A damaged path is none, and one that was forged leads nowhere but home."""
    page = visit().page
    page.add_init_script(f"localStorage.setItem('course.path', {json.dumps(kept)})")
    enter(page, f"{static}glossary/")
    expect(page.locator("h1")).to_be_visible()
    assert page.locator(f"{LINE} img").count() == 0
    for link in page.locator(f"{LINE} a, {BOX} a").all():
        assert link.evaluate("link => link.href") == static


def test_without_a_script_the_paths_are_lists_of_links(visit, static):
    page = visit(java_script_enabled=False).go(f"{static}paths/")
    assert page.locator("details.path").count() == len(lessons.numbered()) + len(PATHS)
    assert page.locator("#to-09 a").count() == 4 and page.locator("#oom li a").count() == 5
    assert page.locator(TAKE).count() == 0
