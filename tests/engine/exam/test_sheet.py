"""The sheet of questions: the same number gives the same sheet, and the key is what one gets by hand."""

import re

import pytest

from engine.exam import sheet

BY_HAND = {  # the first words of a question's text -> the answer from the numbers in it
    "A model of": lambda n: 16 * n[0] * 1e9,
    "The gradients of": lambda n: 2 * (n[1] - 1) / n[1] * 2 * n[0] * 1e9,
    "ZeRO stage": lambda n: {1: 4 + 12 / n[1], 2: 2 + 14 / n[1], 3: 16 / n[1]}[n[0]] * n[2] * 1e9,
    "A pipeline of": lambda n: (n[0] - 1) / (n[1] + n[0] - 1),
    "A GPU fails": lambda n: 365.25 * 86400 / (n[0] * n[1]),
    "Two square": lambda n: n[0] / 3,
}
SEEDS = (1, 7, 8, 2026, sheet.MOST_SEED)


def numbers(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"(?<![\w-])\d[\d,]*(?:\.\d+)?", text)]


def test_the_same_number_gives_the_same_sheet_and_its_neighbour_another():
    sheets = [sheet.questions(seed, 12) for seed in (7, 7, 8)]
    assert sheets[0] == sheets[1] != sheets[2]
    assert [each.number for each in sheets[0]] == list(range(1, 13))


def test_every_kind_is_asked_once_before_any_is_asked_twice():
    for seed in SEEDS:
        kinds = [each.working.split()[:4] for each in sheet.questions(seed, len(sheet.TEMPLATES))]
        assert len({tuple(kind) for kind in kinds}) == len(sheet.TEMPLATES)


@pytest.mark.parametrize("begins", BY_HAND)
def test_the_key_is_what_one_works_out_by_hand(begins):
    asked = [each for seed in SEEDS for each in sheet.questions(seed, 40) if each.text.startswith(begins)]
    assert asked
    for each in asked:
        assert each.answer == pytest.approx(BY_HAND[begins](numbers(each.text)), rel=2e-3), each.text


def test_a_sheet_gives_no_answer_away_and_the_key_gives_all():
    asked = sheet.questions(7, 12)
    given, key = (" ".join(sheet.lines(7, asked, with_key)) for with_key in (False, True))
    for each in asked:
        assert each.text in given and each.working not in given and f"{each.shown}: {each.working}" in key
        assert each.answer > 0 and "{" not in each.text + each.working
    assert all(name in key and name not in given for name, _ in sheet.RUBRIC)


@pytest.mark.parametrize(
    ("seed", "many"), [(-1, 12), (1, 0), (sheet.MOST_SEED + 1, 12), (1, sheet.MOST_QUESTIONS + 1)]
)
def test_a_number_out_of_range_is_refused(seed, many):
    with pytest.raises(ValueError, match=r"seed|questions"):
        sheet.questions(seed, many)
