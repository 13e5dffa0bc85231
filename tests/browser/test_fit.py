"""Will it fit?, as a reader meets it: an example, a paste, several dropped files, a link, bad input, a phone, no
script, paper."""

import re

import pytest
from playwright.sync_api import expect

from engine.launch import fit_page
from engine.validation import launch_cases
from tests.browser import axe
from tests.browser.phones import PHONE
from tests.representatives import ALL_OF_THEM

PAGE = "fit/"
TITAN = launch_cases.cases()["titan-8b-8"]["texts"]["t.toml"]
DROP = """(place, files) => {
  const data = new DataTransfer();
  for (const [name, text] of files) data.items.add(new File([text], name));
  place.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""
SECONDS = 60_000  # a busy machine is no failure


def said(page, words) -> None:
    expect(page.locator("[data-said]")).to_have_text(words, timeout=SECONDS)


def rested(page) -> None:
    """Everything has been worked out."""
    expect(page.locator("[data-fit][data-verdict]:not([data-busy])")).to_be_visible(timeout=SECONDS)


def text_of(page) -> list[str]:
    return page.locator(".fit-file textarea").evaluate_all("all => all.map(one => one.value)")


def test_a_pasted_file_gets_pythons_answer_line_by_line(visit, origin):
    page = visit().go(f"{origin}{PAGE}")
    page.get_by_label("What you are about to launch").fill(TITAN)
    page.get_by_label("Number of GPUs").fill("8")
    theirs = fit_page.answer([["pasted", TITAN]], gpus=8)
    said(page, theirs["headline"])
    rested(page)
    gib = theirs["total_bytes"] / 2**30
    expect(page.locator(".fit-all td").last).to_have_text(f"{gib:.1f} GiB")
    expect(page.locator(".fit-best summary")).to_have_text(theirs["bestHeadline"])
    row = page.locator(".fit-text tr", has_text="local_batch_size").locator("td").last
    expect(row).to_have_text("→ local_batch 2")
    assert page.locator(".fit-assumed li").count() == len(theirs["assumed"])


def of_each_framework():
    """The published launches that stand for the rest: the first of each framework, and of several files; EVERY=1
    asks all."""
    first = {}
    for case in launch_cases.held():
        first.setdefault((case.framework, len(launch_cases.cases()[case.name]["texts"])), case.name)
    return list(launch_cases.cases()) if ALL_OF_THEM else list(first.values())


@pytest.mark.of_the_kit
@pytest.mark.parametrize("window", [{}, PHONE], ids=["desktop", "phone"])
def test_published_launches_are_pasted_as_a_new_user_would(visit, origin, window):
    """Each file into a field of its own, without its name; GPU and count chosen. The page says Python's verdict."""
    page = visit(**window).go(f"{origin}{PAGE}")
    for name in of_each_framework():
        asked = launch_cases.request(name)
        texts = [text for _, text in asked["files"]]
        page.locator("[data-clear]").click()
        for number, text in enumerate(texts):
            if number:
                page.get_by_role("button", name="Add a file").click()
            page.get_by_label("What you are about to launch").nth(number).click()
            page.keyboard.insert_text(text)
        page.locator("[data-gpu]").select_option(asked["gpu"])
        page.get_by_label("Number of GPUs").fill(str(asked["gpus"] or ""))
        if asked["own"]:
            if not page.get_by_label("Memory, GB").is_visible():
                page.get_by_text("A GPU or a fabric of your own").click()
            page.get_by_label("Memory, GB").fill(f"{asked['own']['hbm_bytes'] / 1e9:g}")
            page.get_by_label("HBM, TB/s").fill(f"{asked['own']['hbm_bytes_per_s'] / 1e12:g}")
        names = [f"pasted {number + 1}" for number in range(len(texts))] if len(texts) > 1 else ["pasted"]
        files = [list(pair) for pair in zip(names, texts)]
        theirs = fit_page.answer(files, asked["gpu"], asked["gpus"], asked["own"])
        assert theirs["verdict"] == fit_page.answer(**asked)["verdict"]  # a file needs no name to be known
        said(page, theirs["headline"])
        rested(page)
        expect(page.locator("[data-fit]")).to_have_attribute("data-verdict", theirs["verdict"])
        expect(page.locator(".fit-all td").last).to_have_text(f"{theirs['total_bytes'] / 2**30:.1f} GiB")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


def test_an_example_a_change_a_link_and_the_issue_text(visit, static):
    window = visit(permissions=["clipboard-read", "clipboard-write"])
    page = window.go(f"{static}{PAGE}")
    page.get_by_role("button", name="vLLM that does not start").click()
    said(page, re.compile("does not fit"))
    rested(page)
    page.get_by_role("button", name="Copy as issue text").click()
    expect(page.locator("[data-take] [role=status]")).to_have_text("The report is copied.")
    theirs = fit_page.answer(**launch_cases.request("vllm-8b-3090-29k"))
    assert page.evaluate("navigator.clipboard.readText()") == theirs["text"]
    page.get_by_role("button", name="Make this change").first.click()
    said(page, re.compile("fits, with room"))
    rested(page)
    changed = text_of(page)
    assert changed == list(theirs["edits"][0].values())
    page.get_by_role("button", name="Copy a link").click()
    expect(page).to_have_url(re.compile("#launch="))
    other = visit().go(page.url)
    said(other, re.compile("fits, with room"))
    assert text_of(other) == changed
    assert other.locator("[data-gpu]").input_value() == "rtx3090"


def test_several_files_are_dropped_and_read_together(visit, static):
    page = visit().go(f"{static}{PAGE}")
    expect(page.locator(".fit-file")).to_have_count(1)
    case = launch_cases.request("llama-7b-v100-zero2")
    page.locator("[data-fit]").evaluate(DROP, case["files"])
    expect(page.locator(".fit-file")).to_have_count(len(case["files"]))
    rested(page)
    names = page.locator(".fit-file input").evaluate_all("all => all.map(one => one.value)")
    assert names == [name for name, _ in case["files"]]
    page.locator("[data-clear]").click()
    assert text_of(page) == [""]
    expect(page.locator("[data-found]")).to_be_empty()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("model.safetensors", "PK\x03\x04\0\0\0\0rubbish", "this is not a text"),
        ("log.txt", "x" * 10_000_000, "this one has 10,000,000: nothing of it was read"),
        ("notes.txt", "Dear all, we start on Monday.", "no launch of a framework that is known here"),
    ],
    ids=["binary", "ten megabytes", "prose"],
)
def test_bad_files_are_refused_in_a_line(visit, static, name, text, words):
    page = visit().go(f"{static}{PAGE}")
    expect(page.locator(".fit-file")).to_have_count(1)
    page.locator("[data-fit]").evaluate(DROP, [[name, text]])
    expect(page.locator("[data-said]")).to_contain_text(
        "Cannot say: nothing here can be checked", timeout=SECONDS
    )
    if name != "notes.txt":
        expect(page.locator(".fit-errors")).to_contain_text(words)
    else:
        expect(page.locator(".fit-errors li")).to_have_count(1)
        assert text_of(page) == [text]


def test_a_wrong_count_is_said_and_nothing_is_lost(visit, static):
    page = visit().go(f"{static}{PAGE}")
    page.get_by_label("What you are about to launch").fill(TITAN)
    page.get_by_label("Number of GPUs").fill("eight")
    said(page, re.compile("must be a whole number from 1"))
    assert text_of(page) == [TITAN]
    page.goto(f"{static}{PAGE}#launch=broken!")
    said(page, re.compile("The link's files are damaged|What you paste|must be a whole"))


def test_a_line_and_an_assumption_are_corrected_where_they_are_listed(visit, static):
    page = visit().go(f"{static}{PAGE}")
    page.get_by_label("What you are about to launch").fill(TITAN)
    page.get_by_label("Number of GPUs").fill("8")
    rested(page)
    line = page.get_by_role("textbox", name=re.compile(r"Line \d+: ")).filter(has_text="local_batch_size")
    line.fill("local_batch_size = 1")
    line.press("Enter")
    changed = TITAN.replace("local_batch_size = 2", "local_batch_size = 1")
    said(page, fit_page.answer([["pasted", changed]], gpus=8)["headline"])
    assert text_of(page) == [changed]
    rested(page)
    expect(line).to_be_focused()  # in an answer that is new altogether
    page.keyboard.type(" # half typed")
    line.evaluate("field => { field.dataset.old = ''; }")
    page.get_by_label("Number of GPUs").evaluate("field => field.dispatchEvent(new Event('change'))")
    expect(page.locator("[data-old]")).to_have_count(0, timeout=SECONDS)  # another answer has come
    rested(page)
    expect(line).to_be_focused()
    expect(line).to_contain_text("# half typed")
    page.keyboard.press("Escape")
    page.get_by_role("textbox", name=re.compile("^tp, which is assumed")).fill("2")
    page.keyboard.press("Enter")
    files = fit_page.corrected([["pasted", changed]], 8, "tp", "2")
    said(page, fit_page.answer(files, gpus=8)["headline"])
    assert text_of(page) == [text for _, text in files]


def test_a_gpu_of_one_s_own_and_memory_over_a_step(visit, static):
    page = visit().go(f"{static}{PAGE}")
    page.get_by_label("What you are about to launch").fill(TITAN)
    page.get_by_label("Number of GPUs").fill("8")
    page.get_by_text("A GPU or a fabric of your own").click()
    page.get_by_label("Memory, GB").fill("64")
    page.get_by_label("HBM, TB/s").fill("1,6")
    own = {"hbm_bytes": 64e9, "hbm_bytes_per_s": 1.6e12}
    theirs = fit_page.answer([["pasted", TITAN]], "h100-sxm", 8, own)
    said(page, theirs["headline"])
    rested(page)
    expect(page.get_by_role("img", name=re.compile("Memory over one step"))).to_be_visible()
    expect(page.locator("[data-found]")).to_contain_text(theirs["overWords"])
    page.get_by_label("GPUs in a node").fill("1.5")
    said(page, "GPUs in a node must be a whole number.")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("window", [{}, PHONE], ids=["desktop", "phone"])
def test_axe_finds_no_fault_and_nothing_is_wider_than_the_window(visit, static, theme, window):
    page = visit(**window, color_scheme=theme, reduced_motion="reduce").go(f"{static}{PAGE}")
    page.get_by_role("button", name="Megatron-LM that runs out of memory").click()
    rested(page)
    assert axe.faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_a_script_it_says_what_to_run(visit, static):
    page = visit(java_script_enabled=False).go(f"{static}{PAGE}")
    expect(page.locator(".fit-without")).to_contain_text("system-ml check FILE")
    expect(page.locator(".fit-form")).to_be_hidden()


def test_it_is_worked_by_keyboard(visit, static):
    page = visit().go(f"{static}{PAGE}")
    for name in ("Alpaca on one A100", "Megatron-LM that runs out of memory"):
        page.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        said(page, re.compile("does not fit"))
        rested(page)
        if name.startswith("Alpaca"):
            expect(page.locator("[data-found]")).to_contain_text("No edit of these lines alone makes it fit")
    change = page.get_by_role("button", name="Make this change").first
    change.focus()
    page.keyboard.press("Enter")
    rested(page)
    assert text_of(page) != [launch_cases.cases()["llama2-7b-a100-40"]["texts"]["run.sh"]]
    expect(page.locator("[data-said]")).to_be_focused()  # what the change has brought
