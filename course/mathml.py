r"""Markdown extension: LaTeX between dollar signs becomes MathML when the site is built, so no page needs a
script for it.

    $16\Psi$ inside a sentence, and on lines of its own
    $$ T = \frac{6 P D}{N \cdot C} $$

A price is not math. Inline, the opening $ is not followed by a space; the closing $ is not preceded by a
space or opening bracket and not followed by a digit ("from $3M to $5M" stays text). \$ is always a dollar
sign. Code is left alone. In a table cell write \mid or \vert for a bar.
"""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as etree
from typing import TYPE_CHECKING

from latex2mathml.converter import convert
from markdown import Extension
from markdown.blockprocessors import BlockProcessor
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString

from course.lessons import fault
from course.matches import there

if TYPE_CHECKING:
    from re import Match
    from xml.etree.ElementTree import Element

    from markdown.core import Markdown

INLINE = r"(?<![\\$])\$(?=[^\s$])((?:\\.|[^$\\])*?)(?<=[^\s(\[{])\$(?![\d$])"
MARK = r"((?:-th)?[.,;:?!)]*)"  # a line must not break between a formula and these characters
SPLIT = re.compile(r"\\(begin|end)\{aligned\}")  # latex2mathml supports the same environment as split
BAR = '<mo stretchy="false">&#x0007C;</mo>'
BLOCK = re.compile(r"(?:^|\n) {0,3}\$\$(.+?)\$\$[ \t]*(?=\n|$)", re.DOTALL)


def to_mathml(latex: str, display: str = "inline") -> str:
    """The MathML of one formula, with its LaTeX as alternative text; a fault in it stops the build."""
    latex = latex.strip()
    try:
        mathml = convert(SPLIT.sub(r"\\\1{split}", latex), display=display)
    except Exception as error:  # latex2mathml raises many types, some of them bare IndexErrors
        raise fault(
            latex, f"this is not LaTeX that can be set: {latex} ({type(error).__name__} {error})"
        ) from error
    if unknown := re.search(
        r"<m[io]>(\\[a-zA-Z]+|&)</m[io]>", mathml
    ):  # latex2mathml leaves a command that it does not support in the result
        raise fault(latex, f"{unknown[1]} has no meaning to latex2mathml here: {latex}")
    return fenced(mathml).replace("<math ", f'<math alttext="{html.escape(latex)}" ', 1)


def fenced(mathml: str) -> str:
    """Marks bars in pairs as an opening and a closing fence. Without this, a browser treats a bar as an
    operator with space on both sides, and |u| would look like | u |."""
    parts = mathml.split(BAR)
    forms = [BAR.replace("<mo ", f'<mo form="{form}" ') for form in ("prefix", "postfix")]
    if len(parts) % 2 == 0:
        return mathml
    return parts[0] + "".join(forms[i % 2] + part for i, part in enumerate(parts[1:]))


class InlineMath(InlineProcessor):
    """$…$ within a paragraph, a heading, a list item or a table cell."""

    def handleMatch(self, m: Match[str], data: str) -> tuple[str, int, int]:
        formula, mark = to_mathml(m[1]), html.escape(m[2])
        together = f'<span class="formula-and-mark">{formula}{mark}</span>' if mark else formula
        return self.md.htmlStash.store(together), m.start(0), m.end(0)


class BlockMath(BlockProcessor):
    """$$…$$ on lines of its own: a displayed formula, which scrolls by itself if the screen is too narrow."""

    def test(self, parent: Element, block: str) -> bool:
        return BLOCK.search(block) is not None

    def run(self, parent: Element, blocks: list[str]) -> None:
        block = blocks.pop(0)
        match = there(BLOCK.search(block), "$$…$$")
        if before := block[: match.start()].strip("\n"):
            self.parser.parseBlocks(parent, [before])
        formula = etree.SubElement(parent, "div", {"class": "math", "data-search-exclude": ""})
        formula.text = AtomicString(self.parser.md.htmlStash.store(to_mathml(match[1], "block")))
        if after := block[match.end() :].strip("\n"):
            blocks.insert(0, after)


class MathMLExtension(Extension):
    """Makes formulas between dollars MathML."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.ESCAPED_CHARS.append("$")
        md.inlinePatterns.register(
            InlineMath(INLINE + MARK, md), "mathml", 185
        )  # after code (190), before escapes (180)
        md.parser.blockprocessors.register(BlockMath(md.parser), "mathml", 75)  # after indented code (80)


def makeExtension(**options: dict) -> MathMLExtension:
    return MathMLExtension(**options)
