"""Markdown extension: checks that no prediction is answered by the text above it on its page.

The fence says what would give the answer away (course/fences/prediction.py): the number, in any unit and with
any number of digits, and phrases. Everything that a reader can see above the question is searched: prose,
tables, computed numbers, the texts of earlier figures, and the question itself. A hit stops the build with
file and line.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from markdown import Extension
from markdown.postprocessors import Postprocessor

from course import strict_yaml
from course.lessons import fault
from engine.base import typed, units

if TYPE_CHECKING:
    from markdown.core import Markdown

TOLD = re.compile(r'<i data-told="(?P<told>[^"]*)"></i>(?P<question>.*?</p>)', re.DOTALL)
UNSEEN = re.compile(
    r"<(script|style|noscript|template|annotation|select|textarea)\b.*?</\1>"
    r'|<div class="widget-answers".*?</div>'  # the choices of an earlier prediction are meant to be wrong
    r'|<p class="held".*?</p>',  # how far off a rule is says nothing of what a figure shows
    re.DOTALL,
)
WITHIN_WORDS = re.compile(r"</?(?:a|abbr|b|code|em|i|small|span|strong|sub|sup|mi|mn|mo|mrow|mtext)\b[^>]*>")
TAG = re.compile(r"<[^>]+>")
TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
CELL = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL)
UNIT = re.compile(r"<small>([^<]*)</small>")
NUMBER = (
    r"(?<![\w.,])(?:10(?P<tens>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)"
    r"|(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?P<rest>\.[0-9]+)?(?P<power>·10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?)"
)
AS_GOOD_AS = 0.05  # a number farther from the answer than this does not reveal two digits of it
COUNTED = ("count", "real", "params")
LEAST_ALONE = 100  # a smaller number without a unit may be anything
MEASURED = (
    "bytes",
    "bytes_binary",
    "bytes_per_s",
    "flops",
    "flops_per_s",
    "flops_per_byte",
    "seconds",
    "watts",
)
UNITS = {word for family in (*MEASURED, "percent") for word in typed.words(family) if word}
# a unit after a number, which shows that it is not a count: "280 GB" does not answer "how many users"
MEASURE = re.compile(rf"\s?(?:{'|'.join(map(re.escape, sorted(UNITS)))})(?![\w/])")


def visible(page: str) -> str:
    """The visible text of a piece of HTML, as one line."""
    page = TABLE.sub(lambda found: _with_units(found[0]), UNSEEN.sub(" ", page))
    text = TAG.sub(" ", WITHIN_WORDS.sub("", page))
    return plain(html.unescape(text))


def _with_units(table: str) -> str:
    """A table of computed values, each with the unit from its row's or column's heading."""
    head, *rows = [[cell[1] for cell in CELL.finditer(row[1])] for row in ROW.finditer(table)] or [[]]
    across = [_unit(title) for title in head]
    lines = [
        [row[0], *(f"{cell} {unit or _unit(row[0])}" for cell, unit in zip(row[1:], across[1:]))]
        for row in rows
        if row
    ]
    return "".join(f" {cell} ;" for line in (head, *lines) for cell in line)


def _unit(heading: str) -> str:
    found = UNIT.search(heading)
    return found[1] if found else ""


def plain(text: str) -> str:
    """The text with all spaces, quotation marks and minus signs replaced by one kind each."""
    for sign, usual in {"’": "'", "‘": "'", "“": '"', "”": '"', "−": "-"}.items():
        text = text.replace(sign, usual)
    return " ".join(text.split())


def teller(text: str, told: dict) -> str:
    """The words of a text that give a prediction's answer away; '' if none do."""
    for phrase in told["not_by"]:
        text = _phrase(phrase).sub(" … ", text)
    found = next((match for phrase in told["phrases"] if (match := _phrase(phrase).search(text))), None)
    if found is None and "value" in told:
        found = next(_spellings(text, told["value"], told["family"]), None)
    return text[max(0, found.start() - 30) : found.end() + 30].strip() if found else ""


def unheard(text: str, told: dict) -> str:
    """A phrase of ``not_by`` that does not occur in the text; '' if all of them do."""
    return next((phrase for phrase in told["not_by"] if not _phrase(phrase).search(text)), "")


def _phrase(phrase: str) -> re.Pattern[str]:
    words = r"\s".join(re.escape(word) for word in plain(phrase).split())
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)


def _spellings(text: str, value: float, family: str) -> Iterator[re.Match[str]]:
    """Where the text contains this value, in any unit of its family, with any number of digits."""
    scales = typed.words(family)
    words = "|".join(re.escape(word) for word in sorted(scales, key=len, reverse=True) if word)
    for found in re.finditer(rf"(?P<dollar>\$?){NUMBER}(?:\s?(?P<unit>{words or '(?!)'})(?![\w/]))?", text):
        scale = scales.get(found["unit"] or "")
        scale = scale and scale * 10.0 ** _exponent(found["tens"] or found["power"] or "")
        digits = (found["whole"] or "1").replace(",", "") + (found["rest"] or "")
        alone = not found["unit"] and not found["dollar"]
        counts = family in COUNTED and float(digits) >= LEAST_ALONE and not MEASURE.match(text, found.end())
        says_it = not alone or counts
        if scale is not None and says_it and _rounds(value / scale, digits):
            yield found


def _exponent(power: str) -> int:
    """The exponent of a power of ten as the course prints it: '·10⁴' and '⁴' -> 4."""
    return int("".join(units.DIGITS[sign] for sign in power.removeprefix("·10")) or "0")


def _rounds(value: float, digits: str) -> bool:
    """Whether these digits are the value, rounded, such as 48, 48.4 and 50 for 48.39."""
    shown = float(digits)
    places = len(digits.partition(".")[2])
    zeros = len(digits) - len(digits.rstrip("0")) if not places else 0
    half = 0.5 * 10.0 ** (zeros - places)
    return abs(shown - value) <= half * (1 + 1e-9) and abs(shown - value) <= AS_GOOD_AS * abs(value)


class NothingTold(Postprocessor):
    """Checks the text above each prediction of a page."""

    def run(self, text: str) -> str:
        """Walk the page once, and remove the marks that only this needs."""
        for found in TOLD.finditer(text):
            above = text[: found.start()] + found["question"]
            _require_untold(json.loads(html.unescape(found["told"])), above)
        return TOLD.sub(r"\g<question>", text)


def _require_untold(told: dict, above: str) -> None:
    seen, line = visible(above), strict_yaml.line_of(told["source"], "predict")
    if lost := unheard(seen, told):
        raise fault(told["source"], f"not_by: the text above does not say {lost!r}", line=line)
    if telling := teller(seen, told):
        raise fault(
            told["source"],
            f"the text above answers this prediction: “… {telling} …”. Ask for something else, move the text "
            "below the figure, or, where it means something else, name the phrase in not_by",
            line=line,
        )


class Spoilers(Extension):
    """Registers the check after everything that puts HTML into the page."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Hook of Python-Markdown."""
        md.postprocessors.register(NothingTold(md), "spoilers", 1)


def makeExtension(**options: dict) -> Spoilers:
    """Entry point of Python-Markdown."""
    return Spoilers(**options)
