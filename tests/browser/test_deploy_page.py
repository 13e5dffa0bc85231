"""What should serve it?, as a reader meets it: presets, a rival, a link, bad input, a phone, no script, the keyboard."""

import re

import pytest
from playwright.sync_api import expect

from engine.serving import deployment_page
from tests.browser.test_shell import AXE, PHONE, axe_faults
from tests.course.test_deploy_page import QUICK_MS, presets

PAGE = "deploy/"
SECONDS = 60_000  # a busy machine is no failure
SMALL = "A small model on one GPU"


def rested(page, state: str = "simulated") -> None:
    expect(page.locator(f"[data-deploy][data-state={state}]")).to_be_visible(timeout=SECONDS)


def test_presets_get_pythons_answer_a_picture_and_commands(visit, origin):
    page = visit().go(f"{origin}{PAGE}")
    took = []
    for title in ("Chat with a 70B", SMALL, "As in MLPerf, on H200"):
        page.get_by_role("button", name=title).click()
        rested(page)
        theirs = deployment_page.simulated(presets()[title])
        expect(page.locator("[data-said]")).to_have_text(theirs["headline"])
        assert page.locator(".deploy-rows tbody tr").count() == len(theirs["found"])
        took.append(int(page.locator("[data-deploy]").get_attribute("data-took")))
    assert min(took) < QUICK_MS, took  # with the way to the worker; each alone is timed in tests/course
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
    expect(page.locator(".deploy-wrong")).to_have_text(deployment_page.expected(asked)["refused"])
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
    page.evaluate(AXE)
    assert axe_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


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
