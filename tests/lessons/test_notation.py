"""One letter means one thing: the tables of notation, and the formulas of lessons and figures held against
them."""

import re

import pytest

from course import lessons
from tests.conftest import ROOT
from tests.lessons import notation
from widgets.kit.widget import all_widgets

TABLE = notation.tables()
PAGES = [ROOT / lesson.file for lesson in lessons.numbered()]
FIRST_FIVE = PAGES[:5]
OWN_LETTERS = [
    page for page in PAGES if "13" <= lessons.number_of(page.name) <= "19"
]  # where papers have theirs
READ = [  # each letter of whose formulas is held against the tables
    page for page in PAGES if page in FIRST_FIVE or "11" <= lessons.number_of(page.name) <= "19"
]


def number(path):
    return lessons.number_of(path.name)


def body(path):
    return path.read_text(encoding="utf-8").split("\n---\n", 1)[1]


def test_symbols_are_found():
    assert notation.symbols(r"\frac{6PD}{N \cdot C_k \cdot \text{MFU}}") == ["P", "D", "N", "C_k"]
    assert notation.symbols(r"\tau_\text{ring} = 2(N-1)\,\alpha") == ["tau_ring", "N", "alpha"]
    assert notation.symbols(r"B_{crit} \le \log_2 N") == ["B_crit", "N"]


def test_lesson_01_opens_with_the_table_of_all_lessons():
    section = body(PAGES[0]).split("## The machine, and the letters")[1].split("\n## ")[0]
    section = "\n".join(map(str.strip, section.splitlines()))  # it is in a fold
    opening = list(notation.rows(section.split("| Letter | Means |")[1], everywhere=True))
    assert opening == [row for row in TABLE if not row.lessons]


def test_no_letter_means_two_things_in_a_lesson():
    for path in PAGES:
        for name in {name for row in TABLE for name in row.symbols}:
            own = [row for row in TABLE if name in row.symbols and number(path) in row.lessons]
            anywhere = [row for row in TABLE if name in row.symbols and not row.lessons]
            assert len(own) <= 1, f"{path.name}: ${name}$ has two rows: {own}"
            taken = own and anywhere and path in READ and path not in OWN_LETTERS
            assert not taken, f"{path.name}: ${name}$ is {anywhere}, not {own}"


@pytest.mark.parametrize("path", READ, ids=number)
def test_every_letter_of_a_formula_is_in_the_table(path):
    text = body(path)
    for place, _, tex in notation.formulas(text):
        for name in notation.symbols(tex):
            said = (
                f"{path.name}: ${name}$ in ${tex}$, {text[:place].count(chr(10)) + 1} lines below the front"
            )
            assert notation.meanings(name, number(path), TABLE), said


@pytest.mark.parametrize("path", READ, ids=number)
def test_a_letter_of_one_lesson_is_explained_where_it_is_first_used(path):
    """In the paragraph of its first formula, or in the one before or behind it, a sentence names it."""
    text = body(path)
    blocks = re.split(r"\n\s*\n", notation.CODE.sub(" ", text))
    own = {name for row in TABLE if number(path) in row.lessons for name in row.symbols}
    for name in own:
        used = [k for k, block in enumerate(blocks) if name in names(block)]
        assert used, f"{path.name} has no ${name}$ any more: take its number from the glossary's row"
        near = "\n\n".join(blocks[max(0, used[0] - 1) : used[0] + 3])
        told = [tex for _, shown, tex in notation.formulas(near) if not shown]
        assert any(name in notation.symbols(tex) for tex in told), f"{path.name}: ${name}$ is not explained"


def names(block):
    return {name for _, _, tex in notation.formulas(block) for name in notation.symbols(tex)}


@pytest.mark.parametrize("path", READ, ids=number)
def test_figures_use_the_letters_of_their_lessons(path):
    for slug in lessons.read(path).widgets:
        found = list(notation.formulas(all_widgets()[slug].formula))
        explained = {name for _, shown, tex in found if not shown for name in notation.symbols(tex)}
        for name in {name for _, _, tex in found for name in notation.symbols(tex)} - explained:
            assert notation.meanings(name, number(path), TABLE), f"{slug}: ${name}$"
