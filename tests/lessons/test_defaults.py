"""What a page says of a program's default has the program's version and a date beside it, as in
"(vLLM 0.33, November 2026)", so that a reader can see how old it is, and this test can."""

import calendar
import datetime
import re

import pytest

from course import lessons

PROGRAMS = "vLLM|SGLang|TensorRT-LLM|Dynamo|LMCache|PyTorch|Triton|Megatron-LM|torchtitan|DeepSpeed|NCCL"
MONTHS = [*calendar.month_name][1:]
STAMP = re.compile(
    rf"(?P<program>{PROGRAMS}) (?P<version>\d[\w.]*(?: rc\d+)?),? \(?"
    rf"(?P<month>{'|'.join(MONTHS)}) (?P<year>20\d\d)"
)
DATED = re.compile(rf"\b\d+\.\d[\w.]*(?: rc\d+)?,? \(?(?:{'|'.join(MONTHS)}) 20\d\d")
# "by default", "the default", "its default is", "defaults to", "unless you say otherwise"
DEFAULT = re.compile(r"\bdefaults?\b|unless you (?:say|set)", re.IGNORECASE)
SENTENCE = re.compile(r"(?<=[.?!;])\s+")
OLD = datetime.timedelta(days=9 * 30.44)


def paragraphs(text: str) -> list[str]:
    """The blocks of a page's text, a table with its head as one; fences and front matter are not text."""
    body = re.sub(r"^---\n.*?\n---\n|^( *)``` ?\w*\n.*?^\1```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.split(r"\n\s*\n", body)


def stamps(text: str) -> list[tuple[str, datetime.date]]:
    """Each stamp of a text: the program with its version, and the first day of its month."""
    return [
        (
            f"{found['program']} {found['version']}",
            datetime.date(int(found["year"]), MONTHS.index(found["month"]) + 1, 1),
        )
        for found in STAMP.finditer(text)
    ]


def unstamped(text: str) -> list[str]:
    """Sentences that name programs and speak of a default, of which some have no stamp in the paragraph."""
    found = []
    for block in paragraphs(text):
        stamped = {each.split()[0] for each, _ in stamps(block)}
        for sentence in SENTENCE.split(block):
            named = set(re.findall(rf"\b(?:{PROGRAMS})\b", sentence))
            if DEFAULT.search(sentence) and not named <= stamped:
                found.append(sentence)
    return found


def unread(text: str) -> list[str]:
    """Releases with a month beside them that are no stamp: no program's name stands in front."""
    read = [found.span() for found in STAMP.finditer(text)]
    return [
        found[0]
        for found in DATED.finditer(text)
        if not any(first <= found.start() and found.end() <= last for first, last in read)
    ]


def old(text: str, today: datetime.date) -> list[str]:
    """What was read more than nine months ago."""
    return [f"{each} ({day:%B %Y})" for each, day in stamps(text) if today - day > OLD]


def test_what_is_found():
    said = "vLLM reads 8,192 tokens a step by default (vLLM 0.33, November 2026)."
    assert stamps(said) == [("vLLM 0.33", datetime.date(2026, 11, 1))]
    assert unstamped(said) == [] and unstamped("The default of vLLM is 8,192.") != []
    assert unstamped(said.replace("(vLLM", "(SGLang")) != []
    assert unstamped("The default is 8,192.") == []  # of no program
    assert old(said, datetime.date(2027, 7, 1)) == []
    assert old(said, datetime.date(2027, 9, 1)) == ["vLLM 0.33 (November 2026)"]
    assert unread(said) == [] and unread("off (2.9 to 2.15, September 2026)") == ["2.15, September 2026"]
    assert stamps("| TensorRT-LLM 1.4 rc4 (October 2026) |")[0][0] == "TensorRT-LLM 1.4 rc4"


@pytest.mark.parametrize("page", lessons.pages(), ids=lambda page: page.name)
def test_each_statement_about_a_default_says_of_which_version_and_when(page):
    assert unstamped(page.text) == []


@pytest.mark.parametrize("page", lessons.pages(), ids=lambda page: page.name)
def test_no_version_has_a_date_that_the_list_of_old_ones_would_not_see(page):
    assert unread(page.text) == []


def test_those_that_are_older_than_nine_months_are_listed():
    """At the end of the run, as what was skipped: a build does not break because time has passed."""
    found = {page.name: old(page.text, datetime.date.today()) for page in lessons.pages()}
    assert any(stamps(page.text) for page in lessons.pages())
    if late := [f"{name}: {', '.join(each)}" for name, each in found.items() if each]:
        pytest.skip(f"older than nine months, look again: {'; '.join(late)}")
