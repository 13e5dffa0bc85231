"""Exercises as a reader answers them, and what is remembered of it: fields, verdicts, the line at the end,
the page of progress."""

import json

from playwright.sync_api import expect

from engine.exam import missions
from tests.browser.hands import Hand

LESSON = "01-why-distributed"
STATE, GPUS = "State of 13B", "H100s that hold it"
FORBIDDEN = """() => {
  for (const name of ["getItem", "setItem", "removeItem"]) {
    const before = Storage.prototype[name];
    Storage.prototype[name] = function (key, ...rest) {
      if (String(key).startsWith("course.")) throw new DOMException("forbidden", "SecurityError");
      return before.call(this, key, ...rest);
    };
  }
}"""


# -- a lesson ------------------------------------------------------------------------------------------------
def field(page, label: str):
    return page.locator(".answer", has=page.get_by_label(label, exact=True))


def answer(page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).fill(text)
    page.get_by_label(label, exact=True).press("Enter")


def end(page):
    return page.locator("[data-lesson-end]")


def kept(page) -> dict:
    return page.evaluate(
        "Object.fromEntries(Object.entries(localStorage).filter(([key]) => key.startsWith('course.')))"
    )


def table(page) -> list[str]:
    return page.locator("[data-progress-table] [data-cell]").all_text_contents()


def test_exercises_are_answered_counted_saved_cleared_and_taken_back(visit, static, tmp_path):
    """One reader's tour: tries, a solution, right answers, a prediction, a target; the progress page before,
    after and between."""
    window = visit()
    window.forgive("ERR_ABORTED")  # the tour leaves pages while they still ask
    page = window.go(f"{static}{LESSON}/")
    said, solution = (
        field(page, STATE).get_by_role("status"),
        page.locator("#exercise-the-least-number-of-h100s > details"),
    )
    expect(end(page)).to_contain_text("exercises 0 of 6")
    answer(page, STATE, "3 days")
    answer(page, STATE, "104 GB")
    expect(said).to_contain_text("factor of 2")
    assert "208" not in said.inner_text() and said.get_by_role("button").count() == 0
    field(page, STATE).get_by_role("button", name="Check").click()  # the same again is no second try
    assert said.get_by_role("button").count() == 0
    answer(page, STATE, "<b onclick=alert(1)>300 GB")
    answer(page, STATE, "300 GB")
    said.get_by_role("button", name="Show the solution").click()
    expect(solution).to_have_attribute("open", "")
    expect(solution.locator("summary")).to_be_focused()
    answer(page, STATE, "205 GB")
    expect(said).to_have_text("Right: 208 GB. Yours is 1.4 % below.")
    expect(page.get_by_label(STATE, exact=True)).to_have_attribute("aria-invalid", "false")
    expect(end(page)).to_contain_text("exercises 0 of 6")  # one of two numbers
    answer(page, GPUS, "3")
    expect(end(page)).to_contain_text("exercises 1 of 6")
    expect(page.locator(".exercise[data-done]")).to_have_count(1)
    page.get_by_label(GPUS, exact=True).fill("4")
    expect(field(page, GPUS)).not_to_have_attribute("data-verdict", "right")
    page.get_by_role("button", name="I have worked this out").click()
    page.locator("[data-predict] [data-answer=other]").first.click()
    page.locator("[data-predict] [data-answer=right]").first.click()  # the second choice is not the first
    page.locator("[data-predict]:has([data-answer])").nth(1).locator("[data-answer=right]").click()
    expect(end(page)).to_contain_text("Predictions 2 of 5, 1 right at first")
    hand = Hand(page, "memory_stack")
    hand.field("size").fill("2B")
    hand.field("size").press("Enter")
    hand.choose("gpu", hand.cls.controls()["gpu"].keys.index("mi455x"))
    hand.field("size").fill("40B")
    hand.field("size").press("Enter")  # past the wall by the reader's own hand
    expect(end(page)).to_contain_text("targets found 1 of 5")
    page.get_by_role("button", name="Mark as read").click()
    expect(end(page)).to_contain_text("You have read this lesson")
    expect(
        page.locator(f"a.md-nav__link[data-read][href*='{LESSON}'], a.md-nav__link--active[data-read]").first
    ).to_be_attached()

    page.reload()
    expect(page.get_by_label(STATE, exact=True)).to_have_value("205 GB")
    expect(field(page, GPUS)).to_have_attribute("data-verdict", "right")
    expect(page.get_by_role("button", name="I have worked this out")).to_have_attribute(
        "aria-pressed", "true"
    )

    end(page).get_by_role("link", name="Your progress").click()
    row = page.locator("tr", has=page.locator(f"a[href*='{LESSON}']"))
    expect(row.locator("[data-cell=read]")).to_have_text("✓")
    expect(row.locator("[data-cell=predictions]")).to_have_text("2 of 5")
    expect(row.locator("[data-cell=first]")).to_have_text("1 of 5")
    expect(row.locator("[data-cell=targets]")).to_have_text("1 of 5")
    expect(row.locator("[data-cell=exercises]")).to_have_text("1 of 6")
    expect(page.locator("tfoot [data-cell=read]")).to_have_text("1 of 21")
    expect(page.locator("[data-missions-won]")).to_have_text(f"0 of {len(missions.missions())}")
    page.evaluate("""() => {
      for (const [seed, paper] of [[2026, { points: 31, of: 40 }], [7, { points: 0, of: 40, seen: true }], ["x", 3]]) {
        localStorage.setItem(`course.exam.${seed}`, JSON.stringify(paper));
      }
      dispatchEvent(new Event("course-kept"));
    }""")
    expect(page.locator("[data-exams]")).to_have_text("seed 2026: 31 of 40 points")
    before, words = kept(page), table(page)
    assert len(before) >= 8

    with page.expect_download() as download:
        page.get_by_role("button", name="Save to a file").click()
    saved = tmp_path / "progress.json"
    download.value.save_as(saved)
    assert {f"course.{key}": value for key, value in json.loads(saved.read_text())["kept"].items()} == before
    page.get_by_role("button", name="Clear everything").click()
    expect(page.locator("[data-clear]")).to_be_hidden()
    page.get_by_role("button", name="No, keep").click()
    assert kept(page) == before
    page.get_by_role("button", name="Clear everything").click()
    page.get_by_role("button", name="Yes, clear").click()
    assert kept(page) == {} and table(page) != words
    for name, text, complaint in [
        ("a.json", "{", "not a file that this page has saved"),
        ("b.json", '{"course": "System ML", "version": 9}', "version 9"),
        ("c.json", '{"course": "System ML", "version": 1, "kept": {"read": [1]}}', "changed since"),
        ("d.json", '{"course": "System ML", "version": 1, "kept": 3}', "no progress"),
        ("e.json", "x" * 1_100_000, "larger"),
    ]:
        page.locator("[data-import]").set_input_files(
            {"name": name, "mimeType": "application/json", "buffer": text.encode()}
        )
        expect(page.locator(".progress-said")).to_contain_text(complaint)
        expect(page.locator(".progress-said")).to_contain_text("Nothing was changed")
        assert kept(page) == {}
    page.locator("[data-import]").set_input_files(saved)
    expect(page.locator(".progress-said")).to_contain_text("Taken in")
    assert kept(page) == before and table(page) == words


def test_where_nothing_may_be_kept_all_works_and_says_so(visit, static):
    window = visit()
    window.context.add_init_script(f"({FORBIDDEN})()")
    page = window.go(f"{static}{LESSON}/")
    answer(page, STATE, "208 GB")
    expect(field(page, STATE).get_by_role("status")).to_have_text("Right: 208 GB.")
    block = page.locator("[data-predict]:has([data-answer])").first
    block.locator("[data-answer=right]").click()
    expect(block.locator("[data-why]")).to_be_visible()
    expect(end(page)).to_contain_text("keeps nothing")
    end(page).get_by_role("link", name="Your progress").click()
    expect(page.locator(".progress-said")).to_contain_text("no progress to show")
    page.get_by_role("button", name="Save to a file").click()
    expect(page.locator(".progress-said")).to_contain_text("nothing to save")


def test_without_a_script_no_field_is_shown_and_on_paper_each_is_a_line(visit, static):
    window = visit(java_script_enabled=False)
    window.forgive(" csp")
    page = window.go(f"{static}{LESSON}/")
    assert (
        page.locator(".answer").count() > 5
        and page.locator(".answer:visible, .answer-open:visible").count() == 0
    )
    page.emulate_media(media="print")
    expect(page.locator(".answer input").first).to_be_visible()
    assert page.locator(".answer button:visible, .answer-open:visible").count() == 0
