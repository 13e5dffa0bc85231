"""A number with a unit in a lesson is computed by the engine, or cited, or marked with a reason; any other
fails here.

- computed: `#!n memory.state_bytes(70e9) | TB`, which is the form to prefer;
- cited: its paragraph, list item or table row names where it comes from: a footnote, a link that leads away,
  arXiv, "et al.", a table, figure, section, equation or chapter of a source;
- marked: its paragraph contains a comment that says why the number need not be computed,
  `<!-- figure: the case's own log line -->`.

A unit is one that the engine's formatter knows (bytes, rates, FLOP, time, per cent, times, watts), its word,
or money. Counts (8 GPUs, 70B parameters, 15T tokens) name a case rather than measure it. Code, formulas and a
prediction's answers, which are there to be wrong, are left out; numbers spelled as words are not seen.
"""

import ast
import re
from pathlib import Path

import pytest

from course import lessons, mathml
from course.numbers import FORM, namespace, short_names
from engine.base import units
from engine.serving.deployment import Load

LESSONS = Path(__file__).resolve().parents[2] / "lessons"
MEASURED = (
    "bytes",
    "bytes_binary",
    "bytes_per_s",
    "flops",
    "flops_per_s",
    "flops_per_byte",
    "seconds",
    "percent",
    "times",
    "watts",
)
WORDS = [
    "bytes?",
    "bits?",
    r"(?:nano|micro|milli)?seconds?",
    "minutes?",
    "hours?",
    "days?",
    "weeks?",
    "months?",
    "years?",
    "per ?cent",
    "percent",
    "times",
    "x",
    "watts?",
    "[kMGTPEZ]?FLOPs?(?:/s|/B)?",
    "[kMGTP]?FLOPS",
    "GPU-hours?",
    "GPU-days?",
    "[kMGT]?bit/s",
    "dollars?",
    "[kMG]Hz",
    "hours",
    "µs",
    "us",
]
UNITS = sorted(
    {re.escape(text.strip()) for family in MEASURED for _, text in units.FAMILIES[family]},
    key=len,
    reverse=True,
)
NUMBER = r"[−-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?:\s?(?:thousand|million|billion|trillion))?"
GAP = r"(?:\s|&nbsp;| | |-)?"
DEGREE = "".join(f"(?<!{axis} )" for axis in ("TP", "CP", "EP", "DP", "PP"))  # TP 8 × PP 4 names a layout
QUANTITY = re.compile(
    rf"(?<![\w.]){DEGREE}(?:\$\s?{NUMBER}[kMB]?|(?!\d+B\b){NUMBER}{GAP}(?:{'|'.join(UNITS + WORDS)}))"
    r"(?![\w/])"
)
CITED = re.compile(
    r"\[\^|\]\(https?://|<https?://|arXiv|\bet "
    r"al\.|\b(?:Table|Figure|Fig\.|Section|section|Sec\.|§|Equation|equation|"
    r"eq\.|Chapter|Appendix|data sheet|datasheet)\s?[A-Z\d(]"
)
MARKED = re.compile(r"<!--\s*figure:\s*\S.*?-->", re.DOTALL)


def without(pattern, text: str) -> str:
    """The text with each match blanked out, line by line, so that the lines keep their numbers."""
    pattern = re.compile(pattern, re.DOTALL) if isinstance(pattern, str) else pattern
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def prose(text: str) -> str:
    """A lesson's source with everything blanked out that is not prose. In a widget's fence the words of the
    prediction are prose."""
    text = re.sub(
        r"\A---\n.*?\n---\n",
        lambda front: re.sub(r"^(?!description:|  ).*$", "", front[0], flags=re.MULTILINE),
        text,
        flags=re.DOTALL,
    )

    def fence(found):
        is_widget = found[0].lstrip().startswith(("``` widget", "```widget"))
        kept = [
            line if is_widget and line.lstrip().startswith(("predict:", "why:")) else ""
            for line in found[0].split("\n")
        ]
        return "\n".join(kept)

    text = re.sub(r"^([ ]*)(`{3,}|~{3,}).*?^\1\2[ ]*$", fence, text, flags=re.MULTILINE | re.DOTALL)
    text = without(r"(`+)(?!`).*?(?<!`)\1(?!`)", text)
    text = without(mathml.BLOCK, without(mathml.INLINE, text))
    text = without(r"\]\([^)\s]*\)", text)
    return without(r"<(?!!--)[^>\n]*>", text)


def blocks(text: str):
    """(first line's number, text) of each paragraph, list item and table row."""
    start, gathered = 1, []
    for number, line in enumerate(text.split("\n"), 1):
        begins = re.match(r"\s*(?:[-*+]\s|\d+\.\s|\|)", line)
        if gathered and (not line.strip() or begins):
            yield start, "\n".join(gathered)
            gathered = []
        if line.strip():
            start = start if gathered else number
            gathered.append(line)
    if gathered:
        yield start, "\n".join(gathered)


def loose_numbers(text: str) -> list[tuple[int, str]]:
    """(line, number) of every number with a unit that is neither computed, nor cited, nor marked."""
    source, found = text.split("\n"), []
    for start, block in blocks(prose(text)):
        whole = "\n".join(source[start - 1 : start + block.count("\n")])
        if CITED.search(whole) or MARKED.search(whole):
            continue
        bare = without(r"<!--.*?-->", block)
        found += [(start + bare.count("\n", 0, match.start()), match[0]) for match in QUANTITY.finditer(bare)]
    return found


@pytest.mark.parametrize("path", [page.path for page in lessons.pages()], ids=lambda path: path.name)
def test_every_number_with_a_unit_is_computed_cited_or_marked(path):
    loose = [
        f"lessons/{path.relative_to(LESSONS)}:{line}: {number}"
        for line, number in loose_numbers(path.read_text(encoding="utf-8"))
    ]
    assert not loose, (
        "compute these with `#!n …`, cite them, or mark them <!-- figure: why -->:\n" + "\n".join(loose)
    )


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("An H100 holds 80 GB.", ["80 GB"]),
        ("It takes 3.35 TB/s and 989 TFLOP/s.", ["3.35 TB/s", "989 TFLOP/s"]),
        ("About 500 years at 40 % or 40%.", ["500 years", "40 %", "40%"]),
        ("It is 14x, 9× or 14 times as much.", ["14x", "9×", "14 times"]),
        ("A run of $10M, or \\$3, or $2.5 million.", ["$10M", "$3", "$2.5 million"]),
        ("An 80 GB card, an 80-GB card, an 80&nbsp;GB card.", ["80 GB", "80-GB", "80&nbsp;GB"]),
        ("16 bytes a parameter", ["16 bytes"]),
        ("6.3e24 FLOPs in 8.6 s, not 8.4 ms", ["6.3e24 FLOPs", "8.6 s", "8.4 ms"]),
        ("| H100 | 80 GB |", ["80 GB"]),
        (
            "``` widget\nname: w\npredict: In 80 GB?\nanswers: [5 GB, 6 GB]\nwhy: It has 90 GB.\n```",
            ["80 GB", "90 GB"],
        ),
        ("---\ntitle: 3 GB\ndescription: In 4 GB.\n---\nText", ["4 GB"]),
    ],
)
def test_a_loose_number_is_seen(text, numbers):
    found = [number for _, number in loose_numbers(text)]
    assert [re.match(re.escape(n), f) is not None for n, f in zip(numbers, found, strict=True)] == [
        True
    ] * len(numbers), found


@pytest.mark.parametrize(
    "text",
    [
        'It holds `#!n gpu("h100-sxm").hbm_bytes | GB` and `80 GB`.',
        "TP 8 × PP 4 × DP 16.",
        "A model of 70B parameters on 64 GPUs sees 15T tokens in 2026, lesson 05, 8 nodes of 8.",
        "The state is $16 \\text{ GB}$ large.",
        "$$\nM = 80\\,GB\n$$",
        "```\n80 GB\n```",
        "~~~ text\nOOM: 80 GB\n~~~",
        "    \n",
        "[a page](80-GB.md)",
        "They report 38 % (Korthikanti et al. 2022).",
        "It is 80 GB [^1].",
        "At 52 % ([report](https://example.org/x)).",
        "Table 5 gives 1.5 s.",
        "arXiv:1910.02054 has 120 GB.",
        "The log says 79 GB. <!-- figure: quoted from the log -->",
        '<div style="width: 80 s">text</div>',
    ],
)
def test_what_is_no_loose_number_is_left_alone(text):
    assert loose_numbers(text) == []


def test_a_citation_covers_its_paragraph_alone_and_lines_are_counted():
    text = (
        "One 1 GB.\n\nTwo 2 GB, Table 3.\n\n- three 3 GB\n- four 4 GB, arXiv\n- five\n  5 GB\n\n"
        "| 6 GB | Table 1 |\n| 7 GB |\n"
    )
    assert loose_numbers(text) == [(1, "1 GB"), (5, "3 GB"), (8, "5 GB"), (11, "7 GB")]


def test_a_mark_needs_a_reason():
    assert loose_numbers("It is 80 GB. <!-- figure: -->") == [(1, "80 GB")]


# -- expressions that one can read ---------------------------------------------------------------------------
LONGEST = 60


def calls(expression: str) -> int:
    return sum(isinstance(node, ast.Call) for node in ast.walk(ast.parse(expression.strip(), mode="eval")))


@pytest.mark.parametrize("page", lessons.pages(), ids=lambda page: page.name)
def test_an_expression_is_short_and_calls_once(page):
    """What is longer gets a name in the file beside the lesson (lessons/README.md)."""
    found = [FORM.match(source) for source in page.inline()]
    expressions = [each[part] for each in found for part in ("expression", "trap") if each[part]]
    assert [each for each in expressions if len(" ".join(each.split())) > LONGEST or calls(each) > 1] == []


# -- the engine's modules, by their last names ---------------------------------------------------------------
def test_two_modules_of_one_name_are_refused():
    with pytest.raises(ValueError, match=r"engine\.a\.moe and engine\.b\.moe"):
        short_names(["engine.a.moe", "engine.a.flops", "engine.b.moe"])


def test_readers_of_launch_files_fits_and_the_insides_of_a_room_have_no_name_in_a_formula():
    modules = [
        "engine.launch.reading",
        "engine.frameworks.vllm",
        "engine.calibration.fit.report",
        "engine.__main__",
        "engine.serving.deployment.finder",
        "engine.step.layout",
    ]
    assert short_names(modules) == {"layout": "engine.step.layout"}
    assert namespace()["deployment"].Load is Load
