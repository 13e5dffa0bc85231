"""Thousands of spoilt launch files: each gets a report, in time, with a line for each thing that is wrong."""

from tests.engine.launch.test_bad_input import CONTAINERS, answered, spoilt, texts
from tests.fuzz.cases import cases
from tests.widgets.kit.compiler.test_in_page import held


def asked(random) -> tuple:
    """What to check, and on how many GPUs."""
    return texts(random), random.choice((None, None, 1, 7, 8, 64))


def test_no_text_breaks_the_check():
    for given, gpus in cases(asked, 100):
        answered(given, gpus)


def contained(random) -> str:
    """A spoilt compose file, manifest, chart or line of docker."""
    return spoilt(random, CONTAINERS)


def test_no_file_of_containers_breaks_the_check():
    for text in cases(contained, 300):
        answered(text)


def test_the_page_s_own_program_says_of_spoilt_texts_what_python_says(tmp_path, site):
    jobs = {
        f"case {number}": {"files": [["pasted", text]], "gpu": "h100-sxm", "gpus": 0, "own": {}, "also": ()}
        for number, text in enumerate(cases(spoilt, 250))
    }
    held(jobs, tmp_path, site)
