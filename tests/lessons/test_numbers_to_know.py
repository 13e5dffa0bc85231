"""Numbers to know: the sheet has forty of them, each with its origin, and they agree with hand and source."""

import re

import pytest

from course import lessons, numbers
from course.diagrams import four_numbers
from engine import catalog
from engine.base import units
from engine.one_gpu import measurements
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

PAGE = Lesson("numbers.md")
SHEET = PAGE.section("Forty to estimate with")
ROWS = [
    [cell.strip() for cell in re.split(r" \| (?![A-Za-zµ%/$]+(?:, \d)?`)", row)]
    for row in re.findall(r"^\| (.+) \|$", SHEET, re.MULTILINE)
    if not row.endswith("| from")
]
ORIGINS = {"sheet", "sweep", "fit", "measured", "NCCL", "run", "price"}

# worked by hand, or read in the source: the beginning of a row -> what the reader must see
BY_HAND = {
    "**Peak, dense bf16**": "**989 TFLOP/s**",
    "A large product": "80 %",  # ml-engineering: 794 of 989
    "The products of a training step": "65 %",
    "Norms": "74 %",
    "Ridge": "295",  # 989e12 / 3.35e12
    "A short kernel": "1.94 µs to 5.11 µs",  # engine/one_gpu/measurements, an addition of 64 × 64 and a norm
    "Network, the whole node": "400 GB/s",  # 8 · 50
    "Training state": "16 B",
    "… on disk": "12 B",  # 4 + 4 + 4
    "Training, a parameter and token": "6 FLOP",
    "Generating": "2 FLOP",
    "Activations": "34 B",
    "… recomputed": "2 B",
    "KV cache": "328 kB",  # 2 · 80 · 8 · 128 · 2
    "MFU on 16,384": "40 %",  # 400 / 989
    "One failure": "51,000",  # 54 · 24 · 16,384 / 419 = 50,677
    "An H100": "$3",
    "… large cloud": "$10.8",
}


def shown(cell: str) -> str:
    with lessons.on(PAGE.source):
        return re.sub(r"`#!n (.*?)`", lambda found: numbers.evaluate(found[1]), cell)


OF_A_LESSON = re.compile(r"\[\d\d[a-z]?\]\(\d\d[a-z]?-[\w-]+\.md(#[\w-]+)?\)")


def test_there_are_forty_and_each_says_where_it_is_from():
    assert len(ROWS) == 40
    for _, value, origin in ROWS:
        assert value and (origin in ORIGINS or OF_A_LESSON.fullmatch(origin))
    explained = set(re.findall(r"^\*(\w+)\*:|\. \*(\w+)\*:", SHEET, re.MULTILINE))
    assert {word.lower() for pair in explained for word in pair if word} == {it.lower() for it in ORIGINS}


@in_one_test("what, value", BY_HAND.items())
def test_a_number_is_that_worked_by_hand(what, value):
    [found] = [row for row in ROWS if row[0].startswith(what)]
    assert shown(found[1]) == value


def test_four_rows_are_bold_and_are_those_of_the_ladder():
    """Both the name and the number, so that they are seen among forty."""
    bold = [row[1].strip("*") for row in ROWS if row[0].startswith("**")]
    assert all(row[1].startswith("**") == row[0].startswith("**") for row in ROWS)
    assert [shown(value) for value in bold] == [rung.written for rung in four_numbers.rungs()]


def test_what_is_measured_is_of_the_h100_that_the_table_names():
    """Two of its rows were a V100's kernel and a log's that names no GPU: those are what lessons charge."""
    measured = [row for row in ROWS if row[2] == "measured"]
    assert [shown(row[0]).partition(" (")[2] for row in measured] == [
        "lessons charge 3.8 µs, a V100's)",
        "lessons charge 12 µs, of an unnamed machine)",
    ]
    assert set(PAGE.value("short_s")) <= {
        row["burst_s"] for rows in _on_h100("streaming").values() for row in rows if "burst_s" in row
    }
    assert set(PAGE.value("issues_s")) <= {
        row["issue_s"] for kind in ("add", "matmul") for row in _on_h100("launches")[kind]
    }


def _on_h100(what: str) -> dict:
    return measurements.on("h100-sxm")[what]


def test_a_hops_start_up_is_said_to_be_that_of_the_protocol_it_belongs_to():
    """NCCL's for small messages; it was called the one for bulk data."""
    net = PAGE.value("machine").wires.network
    assert PAGE.value("start_ups.hop_s(dgx.nic)") == net.short_s < net.long_s
    assert re.search(r"\*NCCL\*: [^.*]*small messages", SHEET) and "bulk" not in SHEET


# worked by hand: a part of an expression of the plan for 512 H100s -> what the reader must see
PLAN = {
    "work | FLOP": "5.25·10²³ FLOP",  # 512 · 30 · 86,400 · 0.4 · 989e12
    "flops.compute_optimal_params(work)": "66B",  # √(5.25e23 / 120)
    "tokens | tokens": "1.24T tokens",  # 5.25e23 / (6 · 70.6e9)
    "memory.sharded_state_bytes(params, ranks=512": "2.2 GB",  # 16 · 70.6 / 512
    "hiding_tokens": "1,607",  # 643.9e12 / 400e9 · 511/512
    "511 * start_ups": "0.509 ms",
    "* 8 / 6 /": "7.18 s",  # 8 · 70.6e9 · 8,192 / 643.9e12
    "between_failures_s | days": "4.1 days",  # 50,677 / 512 / 24
    "round(days * units.DAY": "7",
    "cost.run_dollars": "$1.11M",  # 368,640 · 3
}


@pytest.mark.parametrize(("part", "seen"), PLAN.items())
def test_the_plan_for_512_gpus_is_the_one_worked_by_hand(part, seen):
    assert PAGE.shows(part) == seen


def test_the_plan_fits_the_memory_and_the_days():
    run, days = PAGE.value("run"), PAGE.value("days")
    for found in (run(), run(tp=4, recompute="none")):
        assert found.fits and found.terms.total_bytes < 80e9
        assert PAGE.value("run_s")(found) < days * units.DAY * PAGE.value("useful")
    assert run(tp=4, recompute="none").step_s < run().step_s


def test_a_larger_buffer_is_faster_and_more_nodes_are_slower():
    bus, small, large = (PAGE.value(name) for name in ("bus", "small", "large"))
    for gpus in (8, 64):
        assert bus("all_reduce", gpus, small) < bus("all_reduce", gpus, large) < 480e9  # NVLink SHARP's best
    assert bus("all_reduce", 64, large) < bus("all_reduce", 8, large)
    assert bus("all_to_all", 64, large) == pytest.approx(50e9, rel=0.1)  # a card for each GPU


def test_a_price_is_confirmed_and_has_its_day():
    named = [row[0] for row in ROWS if row[2] == "price"]
    assert len(named) == 2 and all(re.search(r"\d{4}-\d\d", shown(words)) for words in named)
    assert PAGE.value("rent") == catalog.price("h100-sxm")  # with which the lessons count, too
    for price in (PAGE.value("rent"), catalog.price("h100-sxm", "Google Cloud on demand")):
        assert price.checked
