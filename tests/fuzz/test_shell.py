"""``python -m engine`` with any arguments: exit status 0, 1, 2 or 3, one line about what is wrong, no
traceback, no long wait."""

import contextlib
import io
import time
import warnings

import pytest

from engine.__main__ import main
from tests.engine.test_cli import ALL
from tests.fuzz.cases import NUMBERS, cases, text

LINES = [line.split() for line in ALL if line != "validate"]
FLAGS = sorted(
    {word for line in LINES for word in line if word.startswith("--")}
    | {
        "--json",
        "--help",
        "--all",
        "--cases",
        "--model-file",
        "--precision",
        "--software",
        "--no-overlap",
        "--kv-precision",
        "--top",
        "--weight-precision",
        "--interval-s",
        "--failures-per-gpu-year",
        "--tokens",
        "--mfu",
        "--budget",
        "--price",
        "--overhead",
        "--per-node",
        "--oversubscription",
        "--nic-bytes-per-s",
        "--gpus-per-node",
        "--shard",
        "--expert-tp",
        "--imbalance",
    }
)
PLAUSIBLE = (
    "1",
    "2",
    "4",
    "8",
    "16",
    "64",
    "72",
    "512",
    "1000",
    "1024",
    "4096",
    "8192",
    "16384",
    "100000",
    "1048576",
    "1000000000",
    "0.4",
    "3.5",
    "1e12",
    "none",
    "full",
    "selective",
    "fp8",
    "int4",
    "ring",
    "all_gather",
    "zb-h1",
    "dualpipe",
)
LONGEST_S = 20.0  # of processor time; a search over very many GPUs is the longest


def arguments(random) -> list[str]:
    """A good line with some of its words replaced, dropped, repeated or added."""
    words = list(random.choice(LINES))
    for _ in range(random.randrange(1, 4)):
        place, what = random.randrange(len(words)), random.random()
        if what < 0.35:
            place = random.choice([place for place, word in enumerate(words) if word.isdigit()] or [place])
            words[place] = random.choice(PLAUSIBLE)
        elif what < 0.6:
            words[place] = (
                random.choice(PLAUSIBLE if random.random() < 0.7 else NUMBERS)
                if words[place].isdigit()
                else text(random)
            )
        elif what < 0.7:
            del words[place]
        elif what < 0.9:
            words[place:place] = [random.choice(FLAGS), random.choice((*PLAUSIBLE, *NUMBERS, text(random)))]
        else:
            words.append(random.choice(words))
        words = words or ["plan"]
    return words


def outcome(words: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


def test_any_arguments_end_in_words():
    for words in cases(arguments, 400):
        began = time.process_time()
        try:
            status, out, err = outcome(words)
        except BaseException as error:
            pytest.fail(f"{type(error).__name__}: {error}; arguments {words!a}")
        assert status in (0, 1, 2, 3), words
        assert time.process_time() - began < LONGEST_S, words
        if status == 2:
            assert err.count("\n") == 1 and len(err) < 1200 and not out, (words, err)
        elif status == 0:
            assert not err and out.strip(), words
