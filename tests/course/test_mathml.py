"""Formulas become MathML; prices and code do not; a fault in a formula stops the build with its place."""

import re
from html import unescape

import markdown
import pytest

from course import fonts, mathml
from course import lessons as locate


def html(text: str) -> str:
    return markdown.Markdown(extensions=["tables", "course.mathml", "course.fences"]).convert(text)


def formulas(text: str) -> list[str]:
    """The LaTeX of each formula that was found."""
    return re.findall(r'<math alttext="([^"]*)"', html(text))


def test_a_formula_in_a_sentence():
    out = html(r"The state is $16\Psi$ bytes.")
    assert '<math alttext="16\\Psi"' in out and 'display="inline"' in out
    assert re.search(r"<mn>16</mn>\s*<mi>(Ψ|&#x0*3A8;)</mi>", out)
    assert "$" not in out


def test_a_displayed_formula_may_span_lines_and_stands_apart_from_text():
    out = html("Before.\n\n$$\nT = \\frac{S}{B}\n  + \\alpha\n$$\n\nAfter.")
    assert 'class="math"' in out and 'display="block"' in out and "<mfrac>" in out
    assert "<p>Before.</p>" in out and "<p>After.</p>" in out


def test_a_displayed_formula_needs_no_blank_lines_around_it():
    out = html("Before\n$$x$$\nafter")
    assert out.index("Before") < out.index("<math") < out.index("after")


@pytest.mark.parametrize(
    "text",
    [
        "A run costs $3M, another $5M.",
        "Between $3M–$5M.",
        r"It costs \$5 and \$6.",
        "In code `$x$` stays.",
        "    $x$ in an indented block",
        "```\n$x$ and\n$$y$$\n```",
        "Nothing: $$ and $ $ here",
    ],
)
def test_what_is_not_a_formula_is_left_alone(text):
    assert formulas(text) == []
    assert "$" in html(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A $10M run needs ($x$) and $y$.", ["x", "y"]),
        ("$a$ and $b$", ["a", "b"]),
        ("$a$, costs \\$4, $b$", ["a", "b"]),
        ("- item $N-1$\n- $(N-1)/N$", ["N-1", "(N-1)/N"]),
        ("| a | b |\n|---|---|\n| $x_1$ | $p \\mid q$ |", ["x_1", "p \\mid q"]),
        ("## Heading $\\alpha$", ["\\alpha"]),
        ("$a\n+ b$ over two lines", ["a\n+ b"]),
        ("**bold $x_i$ and _it $y_i$_**", ["x_i", "y_i"]),
    ],
)
def test_formulas_are_found_where_they_stand(text, found):
    assert formulas(text) == found


def test_angle_brackets_stay_text():
    out = html("$a < b$")
    assert 'alttext="a &lt; b"' in out and "<mo>&lt;</mo>" in out.replace("&#x0003C;", "&lt;")


def test_aligned_lines_become_a_table():
    assert mathml.to_mathml(r"\begin{aligned} a &= b \\ &= c \end{aligned}").count("<mtr>") == 2


@pytest.mark.parametrize("latex", [r"\frac{1}{", r"a & b", r"\nosuchcommand x", r"\left( x"])
def test_a_faulty_formula_stops_the_build(latex):
    with pytest.raises(locate.LessonFault, match=re.escape(latex.strip())):
        mathml.to_mathml(latex)


def test_a_fault_names_file_and_line(tmp_path):
    lessons = tmp_path / "lessons"
    lessons.mkdir()
    (lessons / "07-a.md").write_text("one\ntwo $\\bad x$\n", encoding="utf-8")
    assert str(locate.fault(r"\bad x", "no", lessons)) == "lessons/07-a.md:2: no"
    assert "in a lesson" in str(locate.fault("nowhere", "no", lessons))


def test_a_mark_stays_with_its_formula():
    """No line ends between them; words behind a formula may go to the next one."""
    out = markdown.Markdown(extensions=["course.mathml"]).convert("For $N$, $P$ and the $g$-th ($W$).")
    assert len(re.findall(r'<span class="formula-and-mark"><math.*?</math>(?:,|-th|\)\.)</span>', out)) == 3
    assert "</math> and" in out


def test_bars_in_pairs_are_fences_without_space_around_them():
    out = html(r"$|u| < |v|$")
    assert re.findall(r'form="(\w+)"', out) == ["prefix", "postfix"] * 2
    assert "form=" not in html(r"$a | b$")


ITALICS = (("a", "z", 0x1D44E), ("A", "Z", 0x1D434), ("α", "ω", 0x1D6FC), ("Α", "Ω", 0x1D6E2))


def drawn(tag: str, text: str) -> set[int]:
    """The characters of the math font that a browser uses for a text; a name of one letter is italic."""
    if tag != "mi" or len(text) != 1:
        return {ord(letter) for letter in text}
    if text == "h":
        return {0x210E}
    for first, last, italic in ITALICS:
        if first <= text <= last:
            return {ord(text) - ord(first) + italic}
    return {ord(text)}


def test_the_math_font_has_every_sign_of_every_formula(site):
    """A sign that it lacks is a box with a question mark on a machine without another math font."""
    shown, missing = set(), set()
    for page in site.glob("*/index.html"):
        for formula in re.findall(r"<math.*?</math>", page.read_text(encoding="utf-8"), re.DOTALL):
            for tag, text in re.findall(r"<(m[inot]\w*)[^>]*>([^<]*)</", formula):
                signs = drawn(tag, "".join(unescape(text).split()))
                shown |= signs
                missing |= {(page.parent.name, chr(sign)) for sign in signs - fonts.MATH}
    assert not missing and len(shown) > 100
