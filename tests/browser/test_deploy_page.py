"""What should serve it?, as a reader meets it: presets, a rival, a link, bad input, a phone, no script, the keyboard."""

import re

import pytest
from playwright.sync_api import expect

from engine.launch.deploy_page import expected, simulated
from tests.browser import axe
from tests.browser.phones import PHONE
from tests.course.test_deploy_page import presets
from tests.representatives import ALL_OF_THEM

PAGE = "deploy/"
SECONDS = 60_000  # a busy machine is no failure
SMALL, PUBLISHED = "A small model on one GPU", "As in MLPerf, on H200"


def rested(page, state: str = "simulated") -> None:
    expect(page.locator(f"[data-deploy][data-state={state}]")).to_be_visible(timeout=SECONDS)


@pytest.mark.of_the_kit
def test_presets_get_pythons_answer_a_picture_and_commands(visit, origin):
    """Of two presets, unless all are asked: tests/course asks each of the page's own program, and how long it
    takes the processor."""
    page = visit().go(f"{origin}{PAGE}")
    for title in sorted(presets(), key=PUBLISHED.__eq__)[0 if ALL_OF_THEM else -2 :]:
        page.get_by_role("button", name=title).click()
        rested(page)
        theirs = simulated(presets()[title])
        expect(page.locator("[data-said]")).to_have_text(theirs["headline"])
        assert page.locator(".deploy-rows tbody tr").count() == len(theirs["found"])
    expect(page.locator("[data-how]")).to_contain_text(f"Simulated: {theirs['simulated']} deployments")
    assert page.locator("path.deploy-published").count() > 1
    page.get_by_role("tab", name="vLLM").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("[data-commands] code").text_content() == theirs["found"][0]["commands"][1]
    page.locator("[data-row]").nth(1).check()
    assert page.locator("[data-commands] code").text_content() == theirs["found"][1]["commands"][1]
    expect(page.locator("text.deploy-name")).to_contain_text(theirs["found"][1]["split"])


def test_the_address_holds_the_question_and_bad_input_loses_nothing(visit, static):
    page = visit().go(f"{static}{PAGE}")
    page.get_by_role("button", name=SMALL).click()
    rested(page)
    field = page.get_by_label("Each further token within")
    field.fill("a while")
    field.blur()
    expect(page.locator(".deploy-wrong")).to_have_count(1)
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("0.01 ms")
    field.blur()
    rested(page, "refused")
    asked = presets()[SMALL] | {"tpot_s": 1e-5}
    expect(page.locator(".deploy-wrong")).to_have_text(expected(asked)["refused"])
    expect(page.get_by_label("Prompt, tokens (median)")).to_have_value("500")
    field.fill("30 ms")
    field.press("Enter")
    rested(page)
    expect(page.locator(".deploy-wrong")).to_have_count(0)
    said = page.locator("[data-said]").text_content()
    expect(page).to_have_url(re.compile("tpot_s=30"))
    other = visit().go(page.url)
    rested(other)
    expect(other.locator("[data-said]")).to_have_text(said)
    expect(other.locator("[name=gpu]")).to_have_value("rtx4090")
    other.goto(f"{static}{PAGE}#gpu=abacus")
    expect(other.locator("[data-how]")).to_contain_text("“abacus” is not known here", timeout=SECONDS)


@pytest.mark.parametrize(("window", "theme"), [({}, "dark"), (PHONE, "light")], ids=["desktop", "phone"])
def test_axe_finds_no_fault_and_nothing_is_wider_than_the_window(visit, static, theme, window):
    page = visit(**window, color_scheme=theme, reduced_motion="reduce").go(f"{static}{PAGE}")
    rested(page)
    assert axe.faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_on_a_phone_the_answer_comes_before_the_form_and_stays_in_view(visit, static):
    page = visit(**PHONE, reduced_motion="reduce").go(f"{static}{PAGE}")
    rested(page)
    said, field = page.locator("[data-said]"), page.locator("[name=tpot_s]")
    assert said.bounding_box()["y"] < page.locator("[name=model]").bounding_box()["y"]
    expect(said).to_be_in_viewport()
    field.scroll_into_view_if_needed()
    field.fill("25 ms")
    field.press("Enter")
    rested(page)
    expect(said).to_be_in_viewport(ratio=1)
    verdict, typed = page.locator("[data-verdict]").bounding_box(), field.bounding_box()
    assert verdict["y"] + verdict["height"] <= typed["y"] + 1  # and covers nothing that is typed
    page.get_by_role("button", name="Why, and how to start it").click()
    expect(page.locator("[data-facts]")).to_be_in_viewport()
    expect(page.locator("[data-answer]")).to_be_focused()


def test_drafts_are_asked_for_and_told(visit, static):
    page = visit().go(f"{static}{PAGE}#drafted=3&accepted=80+%25&step_s=0.5+ms&tpot_s=12+ms")
    rested(page)
    asked = presets()["Chat with a 70B"] | {
        "drafted": 3.0,
        "accepted": 0.8,
        "step_s": 0.0005,
        "tpot_s": 0.012,
    }
    theirs = simulated(asked)
    expect(page.locator("[data-said]")).to_have_text(theirs["headline"])
    assert theirs["found"][0]["drafted"] == 3
    expect(page.locator("[data-facts]")).to_contain_text("3 drafted tokens are checked for each")
    field = page.locator("[name=drafted]")
    field.fill("2.5")
    field.press("Enter")
    rested(page, "refused")
    expect(page.locator(".deploy-wrong")).to_contain_text("drafted must be a whole number")


def test_the_line_is_walked_by_keyboard(visit, static):
    page = visit().go(f"{static}{PAGE}")
    rested(page)
    page.locator(".deploy-picture").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator(".deploy-point").text_content()
    page.keyboard.press("ArrowRight")
    assert "within the stricter limit" in first != page.locator(".deploy-point").text_content()


def test_without_a_script_it_says_what_to_run(visit, static):
    page = visit(java_script_enabled=False).go(f"{static}{PAGE}")
    expect(page.locator(".deploy-without")).to_contain_text("system-ml deploy --model")
    expect(page.locator(".deploy-form")).to_be_hidden()
