"""The verdict of the page's own script on a typed answer: it accepts every way of writing the right number,
names known slips, and never reveals the number. Also checks for every exercise which answers it accepts and
which slips it may mention."""

import html as escapes
import json
import re

import pytest

from course import lessons, slips
from engine.base import typed, units
from tests.course.test_answers import html
from tests.fuzz.cases import anything_typed
from tests.lessons.reading import Lesson

JUDGE = """async ([about, texts]) => {
  const { judge } = await import("/assets/js/verdict.js");
  return texts.map(text => judge(text, about));
}"""


def about(
    expected: float,
    family: str,
    scale: float = 1,
    within: float = 0.05,
    label: str = "What is asked",
    shown: str = "the number",
    unit: str = "",
    speaks: str = "GPUs that send over a wire, forward and backward",
    **more,
) -> dict:
    told = slips.offered(family, scale, within, f"{speaks} {label}", label)
    return {
        "unit": unit,
        "slips": [[slip.factors, slip.words, slip.near] for slip in told],
        "expected": expected,
        "family": family,
        "scale": scale,
        "within": within,
        "label": label,
        "shown": shown,
    } | more


STATE_BYTES = about(1.12e12, "bytes", 1e12)
H100S = about(3, "count", within=0, label="H100s that hold it")
DAYS = about(86400.0 * 14, "seconds", 86400.0)
FIT = about(55, "count", label="Users that fit", side="below")
NEED = about(59, "count", label="Ranks at least", side="above")
STEP = about(7.49e-3, "seconds", 1e-3, 0.15, trap=4.83e-3, hint="The launches are missing.")


@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        (
            STATE_BYTES,
            [
                "1.12 TB",
                "1120 GB",
                "1,120,000 MB",
                "1.12",
                "1.1 TB",
                "1.02 TiB",
                "1.12e12 B",
                "1.12 x 10^12 bytes",
                "~1.12TB",
            ],
        ),
        (H100S, ["3", "3.0", "+3", "3 H100s", "3 h100", "3x", "3 GPUs", "3 GPU", "3 H100 GPUs", "3 weights"]),
        (FIT, ["55", "54", "55 users", "53 sequences"]),
        (NEED, ["59", "61", "60 GPUs"]),
        (STEP, ["7.49 ms", "6.5", "8.5 ms"]),
        (DAYS, ["14", "14 days", "2 weeks", "336 hours", "1.21e6 s"]),
        (about(0.3, "percent", 0.01), ["30", "30 %", "30 percent", "29", "0.3", ".30", "3/10", "1/3.3"]),
        (about(0.7316, "percent", 0.01, 0.1), ["0.732", "73.2", "73.2 %", "0.73", "3/4"]),
        (about(1 / 2001, "percent", 0.01), ["0.0005", "0.05 %", "0.05", "1/2001", "5e-4"]),
        (about(0.125, "count"), ["1/8", "2^-3", "0.125", "12.5 %"]),
        (about(16026, "count", within=0), ["16026", "16,026", "0x3E9A", "0x3e9a", "0b11111010011010"]),
        (about(96.6e9 / 8, "bytes_per_s", 1e9 / 8), ["96.6", "96.6 Gb/s", "96.6 Gbit/s", "12.1 GB/s"]),
        (about(68e6, "bytes", 1e9, 0.01), ["0.068", "68 MB", "6.8e7", "68e6 B"]),
        (about(2.54, "seconds", 1, 0.01), ["2.5", "2.5 s", "2.54"]),
        (about(3e6, "dollars"), ["$3M", "3 M$", "3 million dollars", "3,000,000", "$ 2.9M"]),
        (
            about(48214, "count", label="Tokens on each GPU"),
            ["48,214", "48k tokens", "48 000 tokens", "4.8e4"],
        ),
        (about(-4, "count", within=0), ["-4", "−4"]),
        (about(0, "count", within=0), ["0"]),
    ],
)
def test_right_however_it_is_written(script, asked, texts):
    assert [
        text for text, verdict in zip(texts, script.evaluate(JUDGE, [asked, texts])) if not verdict["right"]
    ] == []


@pytest.mark.parametrize(
    ("asked", "text", "words"),
    [
        (STATE_BYTES, "1.22 TB", "Close, a little too high: the answer must be within 5 %"),
        (STATE_BYTES, "1.03", "Close, a little too low"),
        (STATE_BYTES, "1.25 TB", "Too high, by more than rounding explains."),
        (STATE_BYTES, "0.95", "Too low, by more than rounding explains."),
        (STEP, "5.7 ms", "Close, a little too low: the answer must be within 15 %"),
        (STEP, "5.5 ms", "Too low, by more than rounding explains."),
        (STEP, "4.9", "The launches are missing."),
        (STEP, "7.49 s", "factor of 1,000: look at the prefix of your unit (ms, µs)"),
        (FIT, "56 users", "Close, a little too high: so many no longer fit"),
        (FIT, "52", "Close, a little too low: the answer"),
        (FIT, "55.4", "Which way must this one be rounded"),
        (FIT, "70", "Too high, by more"),
        (FIT, "55 <b>", "no unit that is known"),
        (NEED, "58", "Close, a little too low: so few are not enough"),
        (NEED, "59k ranks", "factor of 1,000: look at the prefix of your unit (k, M, B, T)"),
        (STATE_BYTES, "1.12 GB", "Off by a factor of 1,000: look at the prefix"),
        (STATE_BYTES, "1.12 PB", "factor of 1,000"),
        (STATE_BYTES, "1120", "factor of 1,000"),
        (STATE_BYTES, "1.12 MB", "factor of 1,000,000"),
        (STATE_BYTES, "1.23 TiB", "Too high"),
        (STATE_BYTES, "1.12 TiB", "binary (GiB) where decimal"),
        (STATE_BYTES, "8.96 TB", "bits, or bytes"),
        (STATE_BYTES, "0.56 TB", "factor of 2"),
        (STATE_BYTES, "2.24 TB", "factor of 2"),
        (STATE_BYTES, "-1.12 TB", "sign"),
        (STATE_BYTES, "300 GB/s", "That is a bandwidth; this needs an amount of data."),
        (STATE_BYTES, "2 TB 3", "These are two numbers"),
        (STATE_BYTES, "NaN", "no number"),
        (STATE_BYTES, "1/0", "divided by 0"),
        (
            STATE_BYTES,
            "1 TB",
            "Right as far as it goes, but the answer must be within 5 %, so give one digit more.",
        ),
        (
            about(2.54, "seconds", 1, 0.01, unit="s"),
            "3",
            "Right as far as it goes, but the answer must be within 1 %",
        ),
        (about(208e9, "bytes", 1e9, unit="GB"), "300", "Read as 300 GB. Too high"),
        (about(0.3, "percent", 0.01, unit="%"), "0.1", "Read as 10 %. Too low"),
        (about(0.3, "percent", 0.01, unit="%"), "0.1 %", "Too low, by more than a factor of ten."),
        (about(0.3, "percent", 0.01, unit="%"), "1", "Read as 1 %. Too low"),
        (about(13.4e9 / 8, "bytes_per_s", 1e9 / 8), "13.4 GB/s", "Off by a factor of 8: bits, or bytes?"),
        (
            about(13.4, "count", label="Gb/s for a model"),
            "13.4 GB/s",
            "That is a bandwidth; this needs a number.",
        ),
        (about(7, "count", within=0, label="GPUs"), "7 bananas", "not what is counted here"),
        (about(0.3, "percent", 0.01), "300 %", "Too high, by"),
        (about(0.3, "percent", 0.01), "300", "Too high, by"),
        (about(0.003, "percent", 0.01), "30", "Off by a factor of 100: a share, or a percentage?"),
        (about(0.3, "percent", 0.01), "15 %", "factor of 2: is something counted twice"),
        (DAYS, "28", "factor of 2: is something counted twice"),
        (about(0.010, "seconds", 1e-3), "20 ms", "factor of 2: both directions of a wire"),
        (
            about(0.010, "seconds", 1e-3, label="The backward pass"),
            "20 ms",
            "factor of 2: is something counted twice",
        ),
        (about(30e9, "bytes", 1e9, label="fp16 weights"), "60 GB", "factor of 2: two bytes a value, or one?"),
        (about(0.010, "seconds", 1e-3, speaks="operators"), "20 ms", "factor of 2: is something counted"),
        (STATE_BYTES, "40 TB", "Too high, by more than a factor of ten"),
        (STATE_BYTES, "0.4 TB", "Too low, by"),
        (STATE_BYTES, "3 days", "That is a time; this needs an amount of data"),
        (STATE_BYTES, "3 GB/s", "That is a bandwidth"),
        (STATE_BYTES, "$3M", "That is an amount of money"),
        (STATE_BYTES, "8 Tb", "bits to some and bytes to others"),
        (STATE_BYTES, "3 parsecs", "no unit that is known"),
        (STATE_BYTES, "about a lot", "No number"),
        (STATE_BYTES, " ", "first"),
        (STATE_BYTES, "1,12 TB", "No number"),
        (STATE_BYTES, "<img src=x onerror=alert(1)>", "No number"),
        (STATE_BYTES, "9" * 200, "No number"),
        (H100S, "2.6", "Which way must this one be rounded"),
        (H100S, "3 GB", "That is an amount of data; this needs a number"),
        (H100S, "6", "Too high."),
        (DAYS, "14 h", "seconds, minutes, hours or days"),
        (about(1.5, "seconds"), "0.5 s", "forward pass"),
        (about(100.0, "count"), "800", "node of eight"),
        (about(100, "count", within=0), "104", "must be exact"),
        (about(100, "count", within=0), "110", "Too high."),
        (about(0, "count", within=0), "5", "Too high"),
    ],
)
def test_a_wrong_answer_is_told_what_it_looks_like_and_never_the_number(script, asked, text, words):
    [verdict] = script.evaluate(JUDGE, [asked, [text]])
    assert words in verdict["said"] and asked["shown"] not in verdict["said"] and not verdict["right"]
    assert verdict["counts"] == (
        not re.search("; this needs|No number|no unit|first|bits to some|as far as it goes", verdict["said"])
    )


@pytest.mark.parametrize(
    "asked", [STATE_BYTES, H100S, DAYS, about(0.0, "count", within=0), about(-0.3, "percent", 0.01)]
)
def test_whatever_is_typed_there_are_words_for_it(script, asked):
    texts = [text for text, _, _ in anything_typed(600)]
    said = [verdict["said"] for verdict in script.evaluate(JUDGE, [asked, texts])]
    assert [
        (text, words)
        for text, words in zip(texts, said)
        if not words or re.search("undefined|NaN|Infinity|null", re.sub("“.*?”", "", words))
    ] == []


# -- every exercise of the course ----------------------------------------------------------------------------
ATTRIBUTE = re.compile(r' (?:data-)?([\w-]+)="([^"]*)"')
ALL = """async forms => {
  const { judge } = await import("/assets/js/verdict.js");
  return forms.map(([about, texts]) => texts.map(text => judge(text, about)));
}"""


def forms() -> list[tuple[str, dict]]:
    """Each field of each exercise as made by the build: the words of its question, and the data for the
    page's script."""
    found = []
    for page in lessons.numbered():
        lesson = Lesson(f"{page.name}.md")
        with lessons.on(lesson.source):
            for text in lesson.exercises():
                page = html(f"!!! exercise{text}")
                question = re.sub("<[^>]+>", " ", page[: page.find("<form")])
                for form in re.findall("<form.*?</form>", page, re.DOTALL):
                    data = {
                        name: escapes.unescape(value) for name, value in ATTRIBUTE.findall(form.split(">")[0])
                    }
                    label = escapes.unescape(re.search(r'answer-asked">(.*?)</span>', form)[1])
                    numbers = {
                        name: float(data[name])
                        for name in ("expected", "scale", "within", "trap")
                        if name in data
                    }
                    about = data | numbers | {"label": label, "slips": json.loads(data["slips"])}
                    found.append((f"{question} {label}", about))
    return found


@pytest.fixture(scope="module")
def fields() -> list[tuple[str, dict]]:
    return forms()


def written(about: dict) -> list[str]:
    """Ways to write the right answer: as in the solution, without its unit, in SI, as a share."""
    shown, expected, scale = about["shown"], about["expected"], about["scale"]
    texts = [shown, shown.replace(" ", "\u00a0"), f"{expected!r}", f"{expected / scale:.12g}"]
    if about["family"] == "percent":
        texts += [f"{expected:.3g}", f"{100 * expected:.3g} %", f"{expected:.12f}"]
    if about["unit"]:
        texts += [f"{expected / scale:.12g} {about['unit']}", f"{expected / scale:.12g}{about['unit']}"]
    if about["family"] == "bytes":
        texts += [
            f"{expected / 1e9:.12g} GB",
            f"{expected / 2**30:.12g} GiB",
            f"{expected * 8 / 1e9:.12g} Gbit",
        ]
    if about["family"] == "seconds":
        texts += [f"{expected * 1e6:.12g} us", f"{expected / 86400:.12g} days", f"{expected:.12g} s"]
    return texts


def test_every_exercise_takes_what_its_solution_shows(script, fields):
    verdicts = script.evaluate(ALL, [(about, written(about)) for _, about in fields])
    wrong = [
        (about["label"], text, verdict["said"])
        for (_, about), found in zip(fields, verdicts, strict=True)
        for text, verdict in zip(written(about), found, strict=True)
        if not verdict["right"]
    ]
    assert wrong == [] and len(fields) > 180


def test_no_exercise_takes_another_dimension_or_another_thing(script, fields):
    texts = ["7 bananas", "3 parsecs", "", "NaN", "two", "3 4", "1/0", "5 GB of 80 GB", "9" * 1000]
    other = {"bytes": "14 days", "bytes_binary": "14 days", "seconds": "14 GB"}
    asked = [
        [*texts, other.get(about["family"], "13.4 GB" if about["family"] == "bytes_per_s" else "13.4 GB/s")]
        for _, about in fields
    ]
    verdicts = script.evaluate(ALL, [(about, each) for (_, about), each in zip(fields, asked)])
    for (_, about), found in zip(fields, verdicts, strict=True):
        assert not any(verdict["right"] or verdict["counts"] for verdict in found), about["label"]
        assert all(typed.KINDS[about["family"]] in verdict["said"] for verdict in found), about["label"]


SPEAKS = {  # words of a hint -> the families in which it makes sense, and words that a question must have
    "bits, or bytes": (slips.BYTES, ""),
    "GiB": (slips.BYTES, ""),
    "directions of a wire": (("bytes", "bytes_per_s", "seconds"), slips.WIRES),
    "two bytes a value": (("bytes", "bytes_binary"), ""),
    "are two FLOPs": (("flops", "flops_per_s"), ""),
    "forward pass": (slips.OF_A_PASS, slips.PASSES),
    "node of eight": (slips.OF_A_NODE, slips.NODES),
    "a percentage": (("percent",), ""),
    "hours or days": (("seconds",), ""),
    "prefix of your unit": (tuple(slips.PREFIXES), ""),
}


def test_no_hint_speaks_of_what_the_question_does_not(fields):
    """Of wires where something is sent, of bits where bytes are counted, of milliseconds where nobody waits
    for days: every hint that any field may give."""
    heard = set()
    for question, about in fields:
        for factors, words, near in about["slips"]:
            assert factors and 0 < near <= max(0.02, about["within"]), about["label"]
            for phrase, (families, speaks) in SPEAKS.items():
                if phrase in words:
                    heard.add(phrase)
                    assert about["family"] in families, (about["label"], words)
                    assert re.search(speaks, question), (about["label"], words)
            if about["family"] == "seconds" and about["scale"] >= units.MINUTE:
                assert not re.search("wire|ms, µs", words), (about["label"], words)
        if not about["within"]:
            assert len(about["slips"]) == 1, about["label"]
    assert heard >= set(SPEAKS) - {"are two FLOPs"}


def test_each_slip_of_each_exercise_is_told_and_gives_nothing_away(script, fields):
    """Every factor of every field, in both directions, typed with its unit: a hint comes, and not the
    number."""

    def off(about, factor):
        return f"{about['expected'] * factor / about['scale']:.12g} {about['unit']}".strip()

    tried = [
        (about, words.replace("{by}", units.number(factor)), [off(about, factor), off(about, 1 / factor)])
        for _, about in fields
        for factors, words, _ in about["slips"]
        for factor in factors
    ]
    verdicts = script.evaluate(ALL, [(about, texts) for about, _, texts in tried])
    told = 0
    for (about, words, texts), found in zip(tried, verdicts, strict=True):
        for text, verdict in zip(texts, found, strict=True):
            if about["expected"] == 0 or verdict["right"]:  # a factor of 1.024 may be within the tolerance
                continue
            known = [each.replace("{by}", "") for _, each, _ in about["slips"]] + [about.get("hint", "-")]
            assert words in verdict["said"] or any(each[:18] in verdict["said"] for each in known), (
                about["label"],
                text,
                verdict["said"],
            )
            told += words in verdict["said"]
            shown = rf"(?<![\d.,]){re.escape(about['shown'])}(?![\d.,])"
            assert not re.search(shown, verdict["said"].split(". ", 1)[-1]), (about["label"], text)
    assert told > 1000


def test_hints_of_known_wrong_ways_fit_what_is_asked(fields):
    """A wrong way's value is of the same quantity: no more than a thousand times off."""
    traps = [about for _, about in fields if "trap" in about]
    assert len(traps) >= 3
    for about in traps:
        assert 1e-3 < about["trap"] / about["expected"] < 1e3 and about["hint"].endswith(("?", "."))


def test_how_far_a_right_percentage_is_off_is_said_in_points(script):
    [verdict] = script.evaluate(JUDGE, [about(0.19, "percent", 0.01, shown="19 %"), ["18.7"]])
    assert verdict["right"] and verdict["said"] == "Right: 19 %. Yours is 0.3 percentage points below."
