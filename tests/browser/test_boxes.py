"""What is held of the boxes of texts (boxes.py), on boxes made by hand."""

from math import cos, pi, sin

from tests.browser import boxes
from tests.browser.boxes import Seen, Text

PICTURE = Seen(0, 0, 300, 200)


def text(words: str, x: float, y: float, width: float = 40, height: float = 10, turn: float = 0.0) -> Text:
    corners = [(0, 0), (width, 0), (width, height), (0, height)]
    turned = [(x + a * cos(turn) - b * sin(turn), y + a * sin(turn) + b * cos(turn)) for a, b in corners]
    return Text(words, tuple(turned), PICTURE)


def test_texts_beside_each_other_are_no_fault():
    assert boxes.faults([text("one", 10, 10), text("two", 50, 10), text("three", 10, 20)]) == []


def test_a_text_on_another_is_a_fault_that_names_both():
    (fault,) = boxes.faults([text("one", 10, 10), text("two", 45, 15)])
    assert "“one” (10–50, 10–20) lies on “two” (45–85, 15–25)" in fault


def test_a_turned_text_is_held_to_its_own_box_and_not_to_the_square_around_it():
    slanted = text("slanted", 10, 60, width=70, turn=-pi / 4)
    assert boxes.faults([slanted, text("below it", 50, 60)]) == []
    assert len(boxes.faults([slanted, text("across it", 35, 38)])) == 1


def test_what_is_cut_is_a_fault_and_what_is_kept_outside_is_none():
    assert len(boxes.faults([text("cut", 280, 10)])) == 1
    assert boxes.faults([text("a pixel out", 261, 10)]) == []
    assert (
        boxes.read([{"text": "gone", "corners": [[400, 1], [440, 1], [440, 9], [400, 9]], "seen": PICTURE}])
        == []
    )


def test_an_account_is_read_as_it_was_written():
    found = {
        "1280, at rest": boxes.account([text("80 GB of HBM", 10.4, 10), text("−3", 100, -2.2)]),
        "390, target": [],
    }
    assert boxes.parsed(boxes.written(found)) == found


def test_a_few_pixels_are_another_machine_and_more_a_difference():
    kept = boxes.account([text("one", 10, 10), text("one", 10, 50), text("two", 10, 90)])
    near = boxes.account([text("one", 14, 8), text("one", 12, 52), text("two", 10, 90, width=44)])
    assert boxes.differences(kept, near) == []
    moved = boxes.account([text("one", 10, 10), text("one", 10, 60), text("three", 10, 90)])
    assert [each[0] + each.split()[-1] for each in boxes.differences(kept, moved)] == [
        "-one",
        "+one",
        "-two",
        "+three",
    ]


def test_a_line_through_the_words_is_a_fault_and_the_grid_is_none():
    corners = ((0, 0), (40, 0), (40, 10), (0, 10))
    crossed = Text("GPU runs", corners, PICTURE, (("#d55e00", 13.0), ("#eaeae8", 9.0), ("#000000", 2.0)))
    assert boxes.struck([crossed], {"#eaeae8"}) == [
        "“GPU runs” (0–40, 0–10) is struck through by 13 px of #d55e00"
    ]
    assert boxes.faults([crossed]) == []
