"""Thousands of spoilt launch files: each gets a report, in time, with a line for each thing that is wrong."""

from tests.engine.launch.test_bad_input import answered, texts
from tests.fuzz.cases import cases


def asked(random) -> tuple:
    """What to check, and on how many GPUs."""
    return texts(random), random.choice((None, None, 1, 7, 8, 64))


def test_no_text_breaks_the_check():
    for given, gpus in cases(asked, 100):
        answered(given, gpus)
