"""Launches of strangers: how many are judged, and how many rightly; and that none is slow, an error,
or judged by the order of its texts."""

import time

import pytest

import engine
from engine.validation import launch_cases

CASES = launch_cases.strangers()
LEAST_JUDGED, LEAST_RIGHT = 71, 61


@pytest.fixture(scope="module")
def held():
    return {one.name: one for one in launch_cases.strangers_held()}


def test_every_launch_has_its_source_and_what_happened():
    assert len(CASES) == 83
    for name, case in CASES.items():
        assert case["url"].startswith("https://") and case["outcome"] in ("runs", "fails"), name
        assert case["texts"] and case["gpus"] > 0 and case["framework"], name


def test_most_are_judged_and_most_of_these_rightly(held, capsys):
    judged = [one for one in held.values() if one.judged]
    right = [one for one in judged if one.right]
    wrong, silent = launch_cases.wrong_about(), launch_cases.not_judged()
    with capsys.disabled():
        print(f"\n{len(judged)} of {len(held)} judged, {len(right)} right")
        print("wrong: " + ", ".join(one.name for one in wrong))
        print("cannot say: " + ", ".join(one.name for one in silent))
    assert len(judged) >= LEAST_JUDGED and len(right) >= LEAST_RIGHT
    assert len(judged) < LEAST_JUDGED + 3 and len(right) < LEAST_RIGHT + 3, "raise what is asked here"


@pytest.mark.parametrize("name", CASES)
def test_none_is_a_traceback_or_slow_and_the_order_of_its_texts_is_nothing(name):
    case = CASES[name]
    gpu, texts = launch_cases.gpu_of(case), case["texts"]
    began = time.process_time()
    one = engine.launch.verdict.check_launch(texts, gpu, case["gpus"], ())
    assert time.process_time() - began < 2.0
    turned = dict(reversed(list(texts.items())))
    other = engine.launch.verdict.check_launch(turned, gpu, case["gpus"], ())
    assert (one.verdict, one.total_bytes) == (other.verdict, other.total_bytes)
    assert one.verdict != "cannot say" or one.unmodelled or one.faults
