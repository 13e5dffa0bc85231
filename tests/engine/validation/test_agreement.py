"""The errors of validation, sorted and counted: held against the published files themselves, read without the
engine."""

import json
from collections import Counter

import numpy as np
import pytest

from engine import validation
from engine.validation import agreement
from tests.cases import in_one_test

PUBLISHED = validation.CASES
# what a file's case of a kind measures, read by hand off engine/validation/published/README.md
MEASURED_KINDS = {"step", "collective", "serving", "wide", "attention", "stream", "token", "mixer"}

SHOWN = [sort for sort in agreement.SORTS if sort != "measured"]


def cases() -> list[dict]:
    """Every list of cases among the files (exports.json is a table of flags)."""
    contents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(PUBLISHED.glob("*.json"))]
    return [case for content in contents if isinstance(content, list) for case in content]


def test_every_published_number_is_counted_once():
    """1,085 numbers: 924 measured, 158 counted, 3 that say whether a layout fits."""
    numbers = [(case["kind"], value) for case in cases() for value in case["measured"].values()]
    verdicts = sum(isinstance(value, bool) for _, value in numbers)
    measured = sum(kind in MEASURED_KINDS for kind, _ in numbers) - verdicts
    assert (len(numbers), verdicts, measured) == (1085, 3, 924)
    assert len(agreement.rows()) == len(numbers) - verdicts
    assert len(agreement.among("measured")) + len(agreement.among("measured", fitted=True)) == measured
    assert len(agreement.among("counted")) == len(numbers) - verdicts - measured
    sorts = Counter(agreement.sort_of(row) for row in agreement.rows())
    assert sum(sorts.values()) == len(agreement.rows()) and set(sorts) == set(agreement.SORTS) - {"measured"}


def test_fitted_rows_are_those_that_the_files_mark():
    marked = sum(
        len(case["fitted"]) if isinstance(case["fitted"], list) else bool(case["fitted"]) for case in cases()
    )
    assert marked == 93 == len(agreement.among("measured", fitted=True))
    assert not agreement.among("counted", fitted=True)


def test_neighbours_and_strangers_part_the_rows_that_fitted_nothing():
    neighbours, strangers = agreement.among("measured", "fitting"), agreement.among("measured", "foreign")
    assert set(neighbours) | set(strangers) == set(agreement.among("measured")) and not set(neighbours) & set(
        strangers
    )
    fitting = {case["group"] for case in cases() if case["fitted"]}
    assert {row.group for row in neighbours} <= fitting and not {row.group for row in strangers} & fitting


def test_latencies_by_hand():
    """207 serving latencies, each error worked out from the row's two numbers."""
    errors = [
        row.predicted / row.measured - 1
        for row in validation.validate().compared
        if row.group.startswith("latency of ") and not row.fitted
    ]
    assert len(errors) == 207
    assert agreement.mean_error("latency") == pytest.approx(sum(map(abs, errors)) / 207)
    assert agreement.lean("latency") == pytest.approx(sum(errors) / 207)
    assert agreement.share_within(0.1, "latency") == sum(abs(error) <= 0.1 for error in errors) / 207
    assert agreement.half_within("latency") == pytest.approx(sorted(map(abs, errors))[103])


def test_a_groups_mean_drops_out_between_its_rows():
    """By hand: of three serving groups each ratio over its group's mean."""
    rests = []
    for group in ("throughput, TensorRT-LLM 1.0", "throughput, TensorRT-LLM 0.6", "experts over many GPUs"):
        ratios = np.array([row.predicted / row.measured for row in agreement.rows() if row.group == group])
        rests += list(np.abs(ratios / ratios.mean() - 1))
    assert agreement.half_apart("throughput") == pytest.approx(np.median(rests))


def test_the_engine_is_worse_on_strangers():
    """What the page warns of; should it ever turn, the page is to be written anew."""
    assert agreement.mean_error("measured", "foreign") > 1.25 * agreement.mean_error("measured", "fitting")


def seen(sort: str, groups: str = "all", most: float = 0.1) -> dict:
    """What the picture shows, without its padding."""
    rows, at = agreement.columns(), agreement.KEYS.index(sort)
    found = agreement.seen(
        float(at),
        float(agreement.place(at, agreement.GROUPS.index(groups))),
        most,
        rows.published,
        rows.ratio,
        rows.error,
        rows.sort,
        rows.lane,
        rows.apart,
        rows.x,
        rows.fitted,
        agreement.figures().slot,
        agreement.figures().height,
    )
    return {
        name: column if np.ndim(column) == 0 else column[~np.isnan(column)] for name, column in found.items()
    }


@in_one_test("sort", SHOWN)
@in_one_test("groups", agreement.GROUPS)
def test_the_picture_shows_each_row_in_the_lane_of_its_group(sort, groups):
    found, lanes = seen(sort, groups), agreement.lanes(sort, groups)
    rows = [agreement.rows()[int(i)] for i in found["row"]]
    assert rows == [row for row in agreement.rows() if agreement.is_among(row, sort, groups)]
    assert found["ours"] == pytest.approx([row.predicted for row in rows])
    high = agreement.lane_height(len(lanes))
    for row, x, y in zip(rows, found["x"], found["y"]):
        assert 0 < x < 1 and (x < agreement.along(1.0)) == (row.predicted < row.measured)
        assert abs(y - (1 - (lanes.index(row.group) + 0.5) * high)) < 0.45 * high
    tested = agreement.among(sort, groups)
    assert found["within"] == sum(abs(row.error) <= 0.1 for row in tested) == sum(found["met"])
    for lane, met in zip(lanes, found["met"]):
        assert met == sum(abs(row.error) <= 0.1 for row in tested if row.group == lane)


def test_each_row_is_on_the_picture_of_one_quantity():
    assert sorted(row for sort in SHOWN for row in seen(sort)["row"]) == list(range(len(agreement.rows())))


def test_a_place_across_is_a_factor():
    """Twice and half as much lie equally far from the same, and the reach's ends are the picture's."""
    half, same, twice = (agreement.along(ratio) for ratio in (0.5, 1.0, 2.0))
    assert twice - same == pytest.approx(same - half)
    assert [agreement.along(ratio) for ratio in agreement.REACH] == pytest.approx([0, 1])
    assert agreement.band(0.25) == pytest.approx((agreement.along(0.75), agreement.along(1.25)))
    assert agreement.band(1.0) == pytest.approx((0, 1))


@in_one_test("sort", SHOWN)
def test_lanes_go_from_the_group_that_is_met_best(sort):
    def missed(group):
        rows = [row for row in agreement.rows() if row.group == group and agreement.sort_of(row) == sort]
        return np.mean([abs(row.error) for row in rows if not row.fitted] or [abs(row.error) for row in rows])

    errors = [missed(group) for group in agreement.lanes(sort)]
    assert errors == sorted(errors) and len(errors) <= agreement.LANES


def test_marks_that_would_cover_each_other_are_stacked():
    """Of the 57 large AllReduces no two have one place."""
    found = seen("collectives")
    places = list(zip(found["x"].round(4), found["y"].round(4)))
    assert len(set(places)) == len(places)


def test_each_sort_and_choice_of_groups_has_its_place():
    """All choices of one sort, then those of the next."""
    many = len(agreement.GROUPS)
    places = [agreement.place(float(sort), float(i)) for sort in range(3) for i in range(many)]
    assert places == list(range(3 * many))


def test_words_have_the_unit_of_their_row():
    said = {row.quantity: agreement.written(row, row.measured) for row in agreement.rows()}
    for quantity, ending in {
        "step_s": ("s",),
        "total_bytes": ("GB",),
        "tokens_per_s": ("tokens/s",),
        "flops_per_s": ("FLOP/s",),
        "parameters": ("B", "T"),
        "days": ("days",),
        "wasted": ("%",),
        "ttft_s": ("s",),
    }.items():
        assert said[quantity].endswith(ending), said[quantity]
    assert (
        agreement.off(0.0) == "the same"
        and agreement.off(-0.25) == "25 % less"
        and agreement.signed(0.804) == "+80 %"
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: agreement.among("nonsense"), "sort must be one of"),
        (lambda: agreement.among("steps", "some"), "groups must be one of"),
        (lambda: agreement.share_within(0.1, "passes", "fitting"), "rows must be"),
        (lambda: agreement.span("nobody", "step_s"), "rows must be"),
    ],
)
def test_what_is_not_there_is_said(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# -- what the page says of one row or group ------------------------------------------------------------------
def test_a_row_s_miss_has_its_sign():
    row = agreement.among("measured")[0]
    assert agreement.miss(row.case) == agreement.signed(row.error)


def test_a_group_s_error_is_over_its_cases():
    """Of the small AllReduces those on eight H100s are some, and their mean is their own."""
    rows = [row for row in agreement.among("collectives") if row.group == "AllReduce below 64 MB"]
    some = [abs(row.error) for row in rows if "8xh100" in row.case]
    assert 0 < len(some) < len(rows)
    assert agreement.group_error("AllReduce below 64 MB", case="8xh100") == pytest.approx(
        sum(some) / len(some)
    )
    assert agreement.group_error("AllReduce below 64 MB") == pytest.approx(
        sum(abs(row.error) for row in rows) / len(rows)
    )


def test_a_group_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="rows must be greater than 0"):
        agreement.group_error("no such group")


def test_the_answers_of_yes_or_no_have_no_ratio():
    assert len(agreement.answers()) == 3
    assert not {row.case for row in agreement.answers()} & {row.case for row in agreement.rows()}
