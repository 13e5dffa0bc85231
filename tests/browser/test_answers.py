"""Exercises as a reader answers them, and what is remembered of it: fields, verdicts, the line at the end, the page of progress."""

import json
import re

import pytest
from playwright.sync_api import expect

from engine import missions
from tests.browser.hands import Hand
from tests.browser.test_text_of_numbers import typed_texts

LESSON = "01-why-distributed"
STATE, GPUS = "State of 13B", "H100s that hold it"
JUDGE = """async ([about, texts]) => {
  const { judge } = await import("/assets/js/verdict.js");
  return texts.map(text => judge(text, about));
}"""
FORBIDDEN = """() => {
  for (const name of ["getItem", "setItem", "removeItem"]) {
    const before = Storage.prototype[name];
    Storage.prototype[name] = function (key, ...rest) {
      if (String(key).startsWith("course.")) throw new DOMException("forbidden", "SecurityError");
      return before.call(this, key, ...rest);
    };
  }
}"""


def about(expected: float, family: str, scale: float = 1, within: float = 0.05, label: str = "What is asked", shown: str = "the number", **more) -> dict:
    return {"expected": expected, "family": family, "scale": scale, "within": within, "label": label, "shown": shown} | more


STATE_BYTES = about(1.12e12, "bytes", 1e12)
H100S = about(3, "count", within=0, label=GPUS)
DAYS = about(86400.0 * 14, "seconds", 86400.0)
FIT = about(55, "count", label="Users that fit", side="below")
NEED = about(59, "count", label="Ranks at least", side="above")
STEP = about(7.49e-3, "seconds", 1e-3, 0.15, trap=4.83e-3, hint="The launches are missing.")


# -- verdicts ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("asked, texts", [
    (STATE_BYTES, ["1.12 TB", "1120 GB", "1,120,000 MB", "1.12", "1.1 TB", "1.02 TiB", "1.12e12 B", "1.12 x 10^12 bytes", "~1.12TB"]),
    (H100S, ["3", "3.0", "+3", "3 H100s", "3 h100", "3x", "3 GPUs", "3 GPU", "3 H100 GPUs", "3 weights"]),
    (FIT, ["55", "54", "55 users", "53 sequences"]), (NEED, ["59", "61", "60 GPUs"]), (STEP, ["7.49 ms", "6.5", "8.5 ms"]),
    (DAYS, ["14", "14 days", "2 weeks", "336 hours", "1.21e6 s"]),
    (about(0.3, "percent", 0.01), ["30", "30 %", "30 percent", "29"]),
    (about(3e6, "dollars"), ["$3M", "3 M$", "3 million dollars", "3,000,000", "$ 2.9M"]),
    (about(48214, "count", label="Tokens on each GPU"), ["48,214", "48k tokens", "48 000 tokens", "4.8e4"]),
    (about(-4, "count", within=0), ["-4", "−4"]), (about(0, "count", within=0), ["0"]),
])
def test_right_however_it_is_written(script, asked, texts):
    assert [text for text, verdict in zip(texts, script.evaluate(JUDGE, [asked, texts])) if not verdict["right"]] == []


@pytest.mark.parametrize("asked, text, words", [
    (STATE_BYTES, "1.22 TB", "Close, a little too high: asked is within 5 %"), (STATE_BYTES, "1.03", "Close, a little too low"),
    (STATE_BYTES, "1.25 TB", "Too high, by more than rounding explains."), (STATE_BYTES, "0.95", "Too low, by more than rounding explains."),
    (STEP, "5.7 ms", "Close, a little too low: asked is within 15 %"), (STEP, "5.5 ms", "Too low, by more than rounding explains."),
    (STEP, "4.9", "The launches are missing."), (STEP, "7.49 s", "factor of 1,000: look at the prefix of your unit (ms, µs)"),
    (FIT, "56 users", "Close, a little too high: so many no longer fit"), (FIT, "52", "Close, a little too low: asked"),
    (FIT, "55.4", "Which way must this one be rounded"), (FIT, "70", "Too high, by more"), (FIT, "55 <b>", "no unit that is known"),
    (NEED, "58", "Close, a little too low: so few are not enough"), (NEED, "59k ranks", "factor of 1,000: look at the prefix of your unit (k, M, B, T)"),
    (STATE_BYTES, "1.12 GB", "Off by a factor of 1,000: look at the prefix"), (STATE_BYTES, "1.12 PB", "factor of 1,000"),
    (STATE_BYTES, "1120", "factor of 1,000"), (STATE_BYTES, "1.12 MB", "factor of 1,000,000"),
    (STATE_BYTES, "1.23 TiB", "Too high"), (STATE_BYTES, "1.12 TiB", "binary (GiB) where decimal"), (STATE_BYTES, "8.96 TB", "bits, or bytes"),
    (STATE_BYTES, "0.56 TB", "factor of 2"), (STATE_BYTES, "2.24 TB", "factor of 2"), (STATE_BYTES, "-1.12 TB", "sign"),
    (STATE_BYTES, "40 TB", "Too high, by more than a factor of ten"), (STATE_BYTES, "0.4 TB", "Too low, by"),
    (STATE_BYTES, "3 days", "That is a time; asked is an amount of data"), (STATE_BYTES, "3 GB/s", "That is a bandwidth"),
    (STATE_BYTES, "$3M", "That is an amount of money"), (STATE_BYTES, "8 Tb", "bits to some and bytes to others"),
    (STATE_BYTES, "3 parsecs", "no unit that is known"), (STATE_BYTES, "about a lot", "No number"), (STATE_BYTES, " ", "first"),
    (STATE_BYTES, "1,12 TB", "No number"), (STATE_BYTES, "<img src=x onerror=alert(1)>", "No number"), (STATE_BYTES, "9" * 200, "No number"),
    (H100S, "2.6", "Which way must this one be rounded"), (H100S, "3 GB", "That is an amount of data; asked is a number"), (H100S, "6", "Too high."),
    (about(0.3, "percent", 0.01), "0.3", "Off by a factor of 100"), (DAYS, "14 h", "seconds, minutes, hours or days"),
    (about(1.5, "seconds"), "0.5 s", "forward pass"), (about(100.0, "count"), "800", "node of eight"),
    (about(100, "count", within=0), "104", "asked exactly"), (about(100, "count", within=0), "110", "Too high."), (about(0, "count", within=0), "5", "Too high"),
])
def test_a_wrong_answer_is_told_what_it_looks_like_and_never_the_number(script, asked, text, words):
    [verdict] = script.evaluate(JUDGE, [asked, [text]])
    assert words in verdict["said"] and asked["shown"] not in verdict["said"] and not verdict["right"]
    assert verdict["counts"] == (not re.search("; asked is|No number|no unit|first|bits to some", verdict["said"]))


@pytest.mark.parametrize("asked", [STATE_BYTES, H100S, DAYS, about(0.0, "count", within=0), about(-0.3, "percent", 0.01)])
def test_whatever_is_typed_there_are_words_for_it(script, asked):
    texts = [text for text, _ in typed_texts(600)]
    said = [verdict["said"] for verdict in script.evaluate(JUDGE, [asked, texts])]
    assert [(text, words) for text, words in zip(texts, said) if not words or re.search("undefined|NaN|Infinity|null", words)] == []


# -- a lesson ----------------------------------------------------------------------------------------------------------------
def field(page, label: str):
    return page.locator(".answer", has=page.get_by_label(label, exact=True))


def answer(page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).fill(text)
    page.get_by_label(label, exact=True).press("Enter")


def end(page):
    return page.locator("[data-lesson-end]")


def kept(page) -> dict:
    return page.evaluate("Object.fromEntries(Object.entries(localStorage).filter(([key]) => key.startsWith('course.')))")


def table(page) -> list[str]:
    return page.locator("[data-progress-table] [data-cell]").all_text_contents()


def test_exercises_are_answered_counted_saved_cleared_and_taken_back(visit, static, tmp_path):
    """One reader's tour: tries, a solution, right answers, a prediction, a target; the progress page before, after and between."""
    window = visit()
    window.forgive("ERR_ABORTED")       # the tour leaves pages while they still ask
    page = window.go(f"{static}{LESSON}/")
    said, solution = field(page, STATE).get_by_role("status"), page.locator("#exercise-the-least-number-of-h100s > details")
    expect(end(page)).to_contain_text("exercises 0 of 7")
    answer(page, STATE, "3 days")
    answer(page, STATE, "104 GB")
    expect(said).to_contain_text("factor of 2")
    assert "208" not in said.inner_text() and said.get_by_role("button").count() == 0
    field(page, STATE).get_by_role("button", name="Check").click()      # the same again is no second try
    assert said.get_by_role("button").count() == 0
    answer(page, STATE, "<b onclick=alert(1)>300 GB")
    answer(page, STATE, "300 GB")
    said.get_by_role("button", name="Show the solution").click()
    expect(solution).to_have_attribute("open", "")
    expect(solution.locator("summary")).to_be_focused()
    answer(page, STATE, "205 GB")
    expect(said).to_have_text("Right: 208 GB. Yours is 1.4 % below.")
    expect(page.get_by_label(STATE, exact=True)).to_have_attribute("aria-invalid", "false")
    expect(end(page)).to_contain_text("exercises 0 of 7")               # one of two numbers
    answer(page, GPUS, "3")
    expect(end(page)).to_contain_text("exercises 1 of 7")
    expect(page.locator(".exercise[data-done]")).to_have_count(1)
    page.get_by_label(GPUS, exact=True).fill("4")
    expect(field(page, GPUS)).not_to_have_attribute("data-verdict", "right")
    page.get_by_role("button", name="I have worked this out").click()
    page.locator("[data-predict] [data-answer=other]").first.click()
    page.locator("[data-predict] [data-answer=right]").first.click()    # the second choice is not the first
    page.locator("[data-predict]").nth(1).locator("[data-answer=right]").click()
    expect(end(page)).to_contain_text("Predictions 2 of 5, 1 right at first")
    hand = Hand(page, "memory_stack")
    hand.field("size").fill("2B")
    hand.field("size").press("Enter")
    hand.button("70B on H100").click()                                  # past the wall by the reader's own hand
    expect(end(page)).to_contain_text("targets found 1 of 5")
    page.get_by_role("button", name="Mark as read").click()
    expect(end(page)).to_contain_text("You have read this lesson")
    expect(page.locator(f"a.md-nav__link[data-read][href*='{LESSON}'], a.md-nav__link--active[data-read]").first).to_be_attached()

    page.reload()
    expect(page.get_by_label(STATE, exact=True)).to_have_value("205 GB")
    expect(field(page, GPUS)).to_have_attribute("data-verdict", "right")
    expect(page.get_by_role("button", name="I have worked this out")).to_have_attribute("aria-pressed", "true")

    end(page).get_by_role("link", name="Your progress").click()
    row = page.locator("tr", has=page.locator(f"a[href*='{LESSON}']"))
    expect(row.locator("[data-cell=read]")).to_have_text("✓")
    expect(row.locator("[data-cell=predictions]")).to_have_text("2 of 5")
    expect(row.locator("[data-cell=first]")).to_have_text("1 of 5")
    expect(row.locator("[data-cell=targets]")).to_have_text("1 of 5")
    expect(row.locator("[data-cell=exercises]")).to_have_text("1 of 7")
    expect(page.locator("tfoot [data-cell=read]")).to_have_text("1 of 19")
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
    for name, text, complaint in [("a.json", "{", "not a file that this page has saved"), ("b.json", '{"course": "System ML", "version": 9}', "version 9"),
                                  ("c.json", '{"course": "System ML", "version": 1, "kept": {"read": [1]}}', "changed since"),
                                  ("d.json", '{"course": "System ML", "version": 1, "kept": 3}', "no progress"), ("e.json", "x" * 1_100_000, "larger")]:
        page.locator("[data-import]").set_input_files({"name": name, "mimeType": "application/json", "buffer": text.encode()})
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
    page.locator("[data-predict] [data-answer=right]").first.click()
    expect(page.locator("[data-why]").first).to_be_visible()
    expect(end(page)).to_contain_text("keeps nothing")
    end(page).get_by_role("link", name="Your progress").click()
    expect(page.locator(".progress-said")).to_contain_text("no progress to show")
    page.get_by_role("button", name="Save to a file").click()
    expect(page.locator(".progress-said")).to_contain_text("nothing to save")


def test_without_a_script_no_field_is_shown_and_on_paper_each_is_a_line(visit, static):
    window = visit(java_script_enabled=False)
    window.forgive(" csp")
    page = window.go(f"{static}{LESSON}/")
    assert page.locator(".answer").count() > 5 and page.locator(".answer:visible, .answer-open:visible").count() == 0
    page.emulate_media(media="print")
    expect(page.locator(".answer input").first).to_be_visible()
    assert page.locator(".answer button:visible, .answer-open:visible").count() == 0
