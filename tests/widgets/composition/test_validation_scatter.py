"""validation_scatter: its shares, means and marks are those of the published rows, in numpy."""

import numpy as np

from engine.base import units
from engine.validation import agreement
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.composition.validation_scatter import KINDS, OFFERED, ValidationScatter

READER = Reader(ValidationScatter)
shown, readouts = READER.shown, READER.readouts


@in_one_test("quantity", OFFERED)
@in_one_test("most", [0.01, 0.07, 0.1, 0.25, 1.0])
def test_the_readouts_are_numpys(quantity, most):
    errors = np.array(
        [
            row.predicted / row.measured - 1
            for row in agreement.rows()
            if not row.fitted and agreement.is_among(row, quantity)
        ]
    )
    within, said = int(np.sum(np.abs(errors) <= most)), readouts(quantity=quantity, most=most)
    assert said["rows"] == f"{len(errors)} rows"
    assert said["inside"] == units.human(within / len(errors), "percent", 2)
    assert f"The engine meets {within} of {len(errors)} " in shown(quantity=quantity, most=most)["summary"]
    assert said["mean"] == units.human(np.abs(errors).mean(), "percent")
    assert said["half"] == units.human(np.median(np.abs(errors)), "percent", 2)
    assert shown(quantity=quantity, most=most)["regimes"]["half_outside"]["met"] == (2 * within < len(errors))


def test_fitted_rows_are_drawn_and_not_counted():
    points = shown()["parts"]["points"]
    fitted = [kind for kind in points["kind"] if kind in KINDS[2:]]
    assert len(points["x"]) == 350 and len(fitted) == 24 and readouts()["rows"] == "326 rows"
    assert set(points["filled"][np.isin(points["kind"], KINDS[2:])]) == {0.0}  # hollow


def test_a_mark_is_outside_where_its_place_leaves_the_band():
    for most in (0.05, 0.25):
        parts = shown(most=most)["parts"]
        points, band = parts["points"], parts["band"]
        inside = (points["x"] >= band["left"]) & (points["x"] <= band["right"])
        assert (inside == np.isin(points["kind"], [KINDS[0], KINDS[2]])).all()


def test_a_mark_names_its_run_both_numbers_and_its_source():
    said = next(text for text in ValidationScatter().hints()["points"] if "sc21_t2_174.6B_zero3_384" in text)
    assert not lacks(said, "81.6 s", "62 s", "24 % less", "fitted nothing", "2104.04473")


def test_a_row_says_its_source_and_how_many_of_its_numbers_are_met():
    lanes = shown(quantity="memory", most=0.05)["parts"]["lanes"]
    for name, met in zip(lanes["name"], lanes["met"]):
        rows = [row for row in agreement.among("memory") if row.group == name]
        assert met == (f"{sum(abs(row.error) <= 0.05 for row in rows)} of {len(rows)}" if rows else "")
    assert [name for name in lanes["name"] if name] == list(agreement.lanes("memory"))


def test_a_phones_marks_lie_below_the_name_of_their_row_and_in_it():
    for quantity in OFFERED:
        page = shown(quantity=quantity)["parts"]
        lanes, points = page["lanes"], page["points"]
        high = agreement.lane_height(len(agreement.lanes(quantity)))
        middle = lanes["y"][lanes["y"] >= 0]
        nearest = middle[np.argmin(np.abs(points["y"][:, None] - middle[None, :]), axis=1)]
        assert (points["low"] < nearest + 0.05 * high).all() and (points["low"] > nearest - 0.5 * high).all()


def test_groups_without_a_row_say_so():
    page = shown(quantity="throughput", groups="fitting")
    assert page["regimes"]["nothing_to_test"]["met"] and not page["regimes"]["half_outside"]["met"]
    assert page["readouts"]["inside"]["text"] == "no rows" and page["summary"].startswith(
        "No published number"
    )
    assert readouts(quantity="steps", groups="foreign")["fitted"] == "none"


def test_one_quantity_at_a_time():
    assert set(OFFERED) == set(agreement.SORTS) - {"measured"}
