"""No style sheet contains a selector that makes a browser recompute the styles of a whole page."""

import re

from tests.conftest import ROOT

SHEETS = sorted((ROOT / "site" / "theme" / "assets" / "css").glob("*.css"))
HAS = re.compile(r"(?P<of>[^\s>~+,(){}]*?)(?P<not>:not\()?:has\(")
WHOLE = re.compile(r"html|body|main|article|\.js\b|\.md-(?!typeset|tag)|\.widget-card")


def test_no_style_of_a_whole_page_or_figure_depends_on_what_is_in_it():
    """Whatever comes into an element of which a rule asks :has() may restyle all that the rule names, once
    for each figure. A page's frame has its kind instead (data-kind), a figure's card its class."""
    found, wrong = 0, []
    for sheet in SHEETS:
        for number, line in enumerate(sheet.read_text(encoding="utf-8").splitlines(), 1):
            for has in HAS.finditer(line):
                found += 1
                if WHOLE.match(has["of"]):
                    wrong.append(f"{sheet.name}:{number}: {line.strip()[:80]}")
    assert found >= 4 and not wrong, wrong
