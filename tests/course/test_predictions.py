"""A prediction's fence: the right answer is computed, a fault stops the build with its line, and no text
above the question answers it."""

import json
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from markdown import Markdown

from course import lessons as locate
from course import numbers, spoilers, strict_yaml
from course.fences import prediction
from engine.base import typed, units
from engine.mechanism import memory
from tests.lessons.reading import Lesson
from widgets.kit.widget import all_widgets

ASKED = "predict: How large?\nasks: memory.state_bytes(70e9) | TB\nwhy: Because."
CHOICE = "predict: Which?\nanswers: [one, two]\nright: min(1, 2)\ntold_by: [it is the second]\nwhy: Because."


def source(lines: str, name: str = "memory_stack") -> str:
    return f"name: {name}\n{lines}"


def asked(lines: str, name: str = "memory_stack", **controls) -> dict:
    options = strict_yaml.mapping(lines)
    widget = all_widgets()[name]()
    widget.set_state(controls)
    return prediction.asked(options, widget, source(lines, name))


# -- what is right -------------------------------------------------------------------------------------------
def test_a_number_is_computed_and_knows_its_unit():
    found = asked(ASKED)
    assert found["kind"] == "number" and found["value"] == 16 * 70e9 and found["shown"] == "1.12 TB"
    assert (found["family"], found["scale"], found["hint"]) == ("bytes", 1e12, "in TB")


def test_a_slider_goes_from_quantity_to_quantity():
    found = asked(ASKED + "\nslider: [10 GB, 1 PB]")
    assert found["kind"] == "slider" and found["ends"] == (10e9, 1e15)


def test_the_widget_is_asked_in_the_fences_state_with_some_controls_changed():
    lines = (
        'predict: How many?\nasks: readout("gpus_needed", size=405e9) | count\ntold_by: ["{} GPUs"]\nwhy: So.'
    )
    needed = memory.minimum_gpus(memory.state_bytes(405e9), _h100())
    assert asked(lines)["value"] == needed
    assert asked(lines.replace(", size=405e9", ""), size="405e9")["value"] == needed
    assert f'"{needed:.0f} GPUs"' in asked(lines)["told"]


def test_a_part_of_the_widget_is_asked_too():
    lines = 'predict: How much?\nasks: np.max(part("stack")["top"]) | GB\nwhy: So.'
    [name] = list(all_widgets()["memory_stack"].methods("part_of"))[:1]
    columns = all_widgets()["memory_stack"]().shown()["parts"][name]
    column = next(
        key for key, values in columns.items() if hasattr(values, "dtype") and values.dtype.kind == "f"
    )
    found = asked(lines.replace('"stack"', f'"{name}"').replace('"top"', f'"{column}"'))
    assert found["value"] == pytest.approx(float(columns[column].max()))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.12 TB", 1.12e12),
        ("48.4 %", 0.484),
        ("16", 16),
        ("5.31B", 5.31e9),
        ("5 B", 5),
        ("$3.2M", 3.2e6),
        ("81 GPUs", 81),
        ("3.09 h", 3.09 * 3600),
        ("12 ms", 0.012),
        ("2.32×", 2.32),
        ("3,486", 3486),
    ],
)
def test_a_readout_is_read_as_the_quantity_that_it_says(text, value):
    assert prediction.quantity(text) == pytest.approx(value)


def test_a_point_is_on_an_axis_that_the_figure_shows():
    lines = 'predict: Where?\nasks: readout("best_interval") | min\npoint: x\nwhy: So.'
    found = asked(lines, "goodput")
    assert (found["kind"], found["axis"], found["per"]) == ("point", "x", 1.0)


def test_the_readout_that_says_it_is_named_with_its_state():
    """The fence's own words, or what it asks, where that is a readout; none beside a mark that it would put
    in the wrong state."""
    idle = "predict: How long?\nasks: 15 / len(range(47)) | %\nwhy: So.\n"
    idle += 'seen: readout("bubble", stages=16, micro_batches=32)'
    seen = json.loads(asked(idle, "pipeline_timeline")["seen"])
    assert seen == {
        "readout": "bubble",
        "state": {"stages": "16", "micro_batches": "32"},
        "words": "Stages to 16, Micro-batches to 32",
    }
    lines = 'predict: How much?\nasks: readout("state", size=405e9) | TB\nwhy: So.'
    assert json.loads(asked(lines)["seen"])["readout"] == "state"
    assert asked(lines + "\nmark: y\nper: 1e12 * len('abc')")["seen"] == ""
    assert asked(ASKED)["seen"] == ""


def _h100():
    from engine import catalog

    return catalog.gpu("h100-sxm")


# -- what is refused -----------------------------------------------------------------------------------------
POINT = 'predict: Where?\nasks: readout("best_interval") | min\npoint: x\nwhy: So.'
WRONG = {  # lines, words of the message, the line of the fence that is named
    "nothing but a question": ("predict: How many?", "missing: asks, why", 1),
    "no reason": ("predict: How many?\nasks: memory.state_bytes(70e9) | TB", "missing: why", 1),
    "a choice that names nothing": (
        CHOICE.replace("told_by: [it is the second]\n", ""),
        "must not answer this",
        1,
    ),
    "a written truth": (
        ASKED.replace("memory.state_bytes(70e9)", "1.12e12"),
        "not be written down: 1.12e12",
        2,
    ),
    "a written choice": (CHOICE.replace("min(1, 2)", "1"), "right must ask the engine or the widget", 3),
    "an unknown name": (ASKED.replace("memory.", "memroy."), "'memroy' is not defined", 2),
    "an unknown unit": (ASKED.replace("| TB", "| parsec"), "unit must be one of", 2),
    "an unknown readout": (
        ASKED.replace("memory.state_bytes(70e9)", 'readout("stat")'),
        "memory_stack has no 'stat'",
        2,
    ),
    "an unknown control": (
        ASKED.replace("memory.state_bytes(70e9)", 'readout("state", sise=3)'),
        "no control 'sise'",
        2,
    ),
    "a value past its control": (
        ASKED.replace("memory.state_bytes(70e9)", 'readout("state", size=1)'),
        "size must be",
        2,
    ),
    "zero": (ASKED.replace("memory.state_bytes(70e9)", "0 * memory.state_bytes(70e9)"), "must be above 0", 2),
    "no number": (ASKED.replace("memory.state_bytes(70e9)", "memory"), "gives a number", 2),
    "infinity": (ASKED.replace("memory.state_bytes(70e9)", "np.inf"), "finite", 2),
    "a small count alone": (
        "predict: How many?\nasks: len('abc') | count\nwhy: So.",
        "3 stands in every text: name what would tell it",
        2,
    ),
    "a slider without ends": (ASKED + "\nslider: yes", "slider must be [lowest, highest]", 4),
    "a slider in another unit": (ASKED + "\nslider: [1 s, 10 s]", "two quantities above 0", 4),
    "a slider that does not reach": (
        ASKED + "\nslider: [1 GB, 1 TB]",
        "does not reach what is right, 1.12 TB",
        4,
    ),
    "a slider of answers": (CHOICE + "\nslider: [1 GB, 1 TB]", "has no slider", 6),
    "slider and point": (ASKED + "\nslider: [1 GB, 9 TB]\npoint: y", "a slider or a point, not both", 5),
    "an axis that is none": (ASKED + "\nmark: z", "mark must be x or y, got 'z'", 4),
    "an axis that is not drawn": (ASKED + "\nmark: x", "memory_stack shows no x axis", 4),
    "a place past the axis": (ASKED + "\nmark: y\nper: 1e-9 * len('a')", "is not on the y axis", 4),
    "per of nothing": (ASKED + "\nper: 1e9", "per is of an axis", 4),
    "seen of no readout": (ASKED + "\nseen: memory.state_bytes(70e9)", "seen must be a readout", 4),
    "seen of another": (ASKED + '\nseen: readout("statt")', "memory_stack has no 'statt'", 4),
    "seen elsewhere": (
        ASKED + '\nseen: readout("state", size=71e9)',
        "seen says 1.14e+12, and asks comes to 1.12e+12",
        4,
    ),
    "seen beside a mark": (
        ASKED + '\nmark: y\nper: 1e12 * len("abc")\nseen: readout("state", size=70e9)',
        "in the fence's own state",
        6,
    ),
    "a choice seen in no readout": (CHOICE + "\nseen: memory.state_bytes(70e9)", "seen must be a readout", 6),
    "a choice seen elsewhere": (
        CHOICE + '\nasks: memory.state_bytes(70e9) | TB\nseen: readout("state", size=71e9)',
        "seen says 1.14e+12, and asks comes to 1.12e+12",
        7,
    ),
    "phrases that are none": (
        CHOICE.replace("[it is the second]", "it is"),
        "told_by must be a list of phrases",
        4,
    ),
    "a stand-in for nothing": (CHOICE.replace("it is the second", '"{} of them"'), "has no asks", 4),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_faulty_prediction_is_refused_with_its_line(what, tmp_path, monkeypatch):
    lines, words, line = WRONG[what]
    (tmp_path / "lessons").mkdir()
    text = f"# A page\n\n``` widget\n{source(lines)}\n```\n"
    (tmp_path / "lessons" / "09-x.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(locate.fault, "__defaults__", (tmp_path / "lessons",))
    with pytest.raises(locate.LessonFault) as stopped:
        html(text)
    assert words in str(stopped.value)
    assert str(stopped.value).startswith(f"lessons/09-x.md:{4 + line}: "), stopped.value


# -- what stands above ---------------------------------------------------------------------------------------
def html(text: str) -> str:
    extensions = ["course.fences", "tables", "md_in_html", "course.spoilers"]
    return Markdown(extensions=extensions).convert(text)


def page(above: str, lines: str = ASKED, below: str = "") -> str:
    return f"# A page\n\n{above}\n\n``` widget\n{source(lines)}\n```\n\n{below}\n"


TELLS = [
    "The state takes 1.12 TB.",
    "The state takes 1.12&nbsp;TB.",
    "The state takes 1,120 GB.",
    "The state takes 1.1 TB, more than …",
    "It takes **1.12** TB.",
    "It takes 1120 GB.",
    "| Model | State |\n|---|--:|\n| 70B | 1.12 TB |",
    (
        "<table><thead><tr><th>70B</th> <th>State <small>TB</small></th></tr></thead> "
        "<tbody><tr><th>it</th> <td>1.12</td></tr></tbody></table>"
    ),
    (
        "<table><thead><tr><th>model</th> <th>70B</th></tr></thead> "
        "<tbody><tr><th>State <small>TB</small></th> <td>1.12</td></tr></tbody></table>"
    ),
]
TELLS_NOT = [
    "",
    "The state takes 1.4 TB.",
    "A wire carries 1.12 TB/s.",
    "1.12 of them, 21.12 TB, 1.129 TB, 1.12 TBit",
    "<div class='hidden' title='1.12 TB'></div>",
    "<noscript>1.12 TB</noscript>",
]


@pytest.mark.parametrize("above", TELLS)
def test_a_text_that_tells_the_number_stops_the_build(above, tmp_path, monkeypatch):
    text = page(above)
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "09-x.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(locate.fault, "__defaults__", (tmp_path / "lessons",))
    with pytest.raises(locate.LessonFault) as stopped:
        html(text)
    line = text[: text.index("predict:")].count("\n") + 1
    assert re.match(rf"lessons/09-x\.md:{line}: the text above answers this prediction: ", str(stopped.value))


@pytest.mark.parametrize("above", TELLS_NOT)
def test_other_numbers_do_not(above):
    made = html(page(above, below="The state takes 1.12 TB."))
    assert "data-predict" in made and "data-told" not in made


def test_a_question_must_not_hold_its_answer():
    with pytest.raises(locate.LessonFault, match="answers this"):
        html(page("", ASKED.replace("How large?", "Is it 1.12 TB?")))


def test_what_an_earlier_prediction_offers_tells_nothing_but_its_reason_does():
    other = source(CHOICE.replace("one", "1.12 TB"), "roofline")
    first = f"``` widget\n{other}\n```"
    html(page(first))
    with pytest.raises(locate.LessonFault, match="answers this"):
        html(page(first.replace("Because.", "It is 1.12 TB.")))


def test_phrases_tell_a_choice():
    html(page("It is the first.", CHOICE))
    for above in ("It is the second.", "… it\nis **the** second of them"):
        with pytest.raises(locate.LessonFault, match="answers this"):
            html(page(above, CHOICE))


def test_a_count_is_not_told_by_a_measure():
    asks = "predict: How many users?\nasks: 280 * len('a') | count\nwhy: So."
    html(page("They send 280 GB in 280 s, at 280 GB/s.", asks))
    for above in ("Of 280 users …", "… and 280.", "They are 280 s in number: 280 in all."):
        with pytest.raises(locate.LessonFault, match="answers this"):
            html(page(above, asks))


def test_a_choice_is_told_by_its_own_words_too():
    asks = CHOICE.replace("[one, two]", "[twice as long, half as long again]").replace(
        "told_by: [it is the second]\n", ""
    )
    html(page("One takes twice as long.", asks))
    with pytest.raises(locate.LessonFault, match=r"answers this.*takes half as long again"):
        html(page("The other takes\nhalf as *long* again.", asks))
    html(page("It takes half as long again.", asks + "\nnot_by: [it takes half as long again]"))


def test_the_same_number_may_mean_something_else():
    kept = ASKED + "\nnot_by: [a disk of 1.12 TB]"
    html(page("Take a disk of 1.12 TB.", kept))
    with pytest.raises(locate.LessonFault, match="answers this"):
        html(page("Take a disk of 1.12 TB. The state takes 1.12 TB.", kept))
    with pytest.raises(locate.LessonFault, match=r"does not say 'a disk of 1\.12 TB'"):
        html(page("Take a tape.", kept))


@given(
    st.floats(1.1, 9e12),
    st.sampled_from(["bytes", "seconds", "flops_per_s", "params", "tokens", "percent", "dollars"]),
    st.integers(2, 4),
)
@example(995e9, "percent", 2)  # 10¹²×, a power of ten alone
def test_whatever_the_course_prints_is_found(value, family, digits):
    """In any family, to any number of digits, in the middle of a sentence."""
    assume(family != "params" or value >= 1000)  # a smaller one stands without a unit, and may be anything
    told = {"phrases": [], "not_by": [], "value": value, "family": family}
    text = spoilers.plain(f"It is {units.human(value, family, digits)}, as one sees.")
    assert spoilers.teller(text, told)


def test_no_answer_is_said_twice_where_nothing_runs():
    """Without scripts a page shows the right value and then the reason, so the reason does not begin with
    that value."""
    seen = 0
    for page in locate.pages():
        for fence in page.options("widget"):
            if "asks" not in fence:
                continue
            seen += 1
            if begins := re.match(r"(?:It is )?`#!n ([^`]+)`\.", fence["why"].strip()):
                read = Lesson(f"{page.name}.md")
                with locate.on(page):
                    shown = numbers.evaluate(begins[1])
                assert shown != read.asked(fence["name"]).get("shown"), f"{page.name}: {fence['name']}"
    assert seen > 20


def in_its_state(page, fence: dict) -> tuple[dict, dict]:
    """A fence's prediction, and the figure in the state that it has after the question is answered."""
    found = Lesson(f"{page.name}.md").asked(fence["name"])
    widget = all_widgets()[fence["name"]]()
    controls = widget.controls()
    widget.set_state({name: value for name, value in fence.items() if name in controls})
    if found["seen"]:
        widget.set_state(json.loads(found["seen"])["state"])
    return found, widget.shown()


SAME_WORDS = {"an error": "yes, by the copy", "no shorter": "1×"}


def test_a_choice_opens_its_figure_where_a_readout_agrees():
    """Six figures of lessons 13 to 19 opened in another state, and contradicted the answer just above them:
    'about 2 times' over 'Fused is faster by 8×'. What is computed for ``asks`` the fence itself compares."""
    seen = set()
    for page in locate.pages():
        for fence in page.options("widget"):
            if "answers" in fence and "seen" in fence:
                found, shown = in_its_state(page, fence)
                said = shown["readouts"][json.loads(found["seen"])["readout"]]["text"]
                right = str(fence["answers"][found["right"]])
                assert "asks" in fence or said == SAME_WORDS.get(right, right), (page.name, said, right)
                seen.add(fence["name"])
    assert seen >= {
        "eager_overhead",
        "float_explorer",
        "fusion",
        "program_blocks",
        "graph_breaks",
        "captured_addresses",
    }


# -- what the question itself gives away ---------------------------------------------------------------------
COUNTS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
SPOKEN = {word: float(count) for count, word in enumerate(COUNTS, start=2)} | {"half": 0.5, "quarter": 0.25}
QUANTITY = re.compile(spoilers.NUMBER + r"(?:\s?(?P<unit>[A-Za-zµ/%]+))?")


def numbers_of(question: str, family: str) -> set[float]:
    """The numbers in a question: as written, and in each unit that the number or the answer may have."""
    found = {value for word, value in SPOKEN.items() if re.search(rf"\b{word}\b", question)}
    for each in QUANTITY.finditer(question):
        digits = float((each["whole"] or "1").replace(",", "") + (each["rest"] or ""))
        scales = [
            typed.words(kind).get(each["unit"] or "") for kind in (family, "bytes", "seconds", "params")
        ]
        found |= {digits, *(digits * scale for scale in scales if scale)}
    return found


def one_step_from(question: str, family: str, value: float) -> list[tuple[float, float]]:
    """Pairs of a question's numbers whose product or quotient is the answer to within 1 %."""
    given = numbers_of(question, family)
    return [
        (one, other)
        for one in given
        for other in given - {one, 1.0}
        if any(abs(found / value - 1.0) < 0.01 for found in (one * other, one / other))
    ]


def test_no_answer_is_one_product_or_quotient_of_the_numbers_in_its_question():
    """Lesson 07 asked for the micro-batches with four chunks, and gave those without: a quarter of them."""
    seen = 0
    for page in locate.pages():
        for fence in page.options("widget"):
            if "asks" in fence and "answers" not in fence:
                asked_for = Lesson(f"{page.name}.md").asked(fence["name"])
                with locate.on(page):
                    question = re.sub(r"`#!n (.*?)`", lambda one: numbers.evaluate(one[1]), fence["predict"])
                question = spoilers.visible(question)
                hit = one_step_from(question, asked_for["family"], asked_for["value"])
                assert not hit, (page.name, fence["name"], hit)
                seen += 1
    assert seen > 20


@pytest.mark.parametrize(
    ("question", "family", "value"),
    [
        ("They need 589 micro-batches. How many with four chunks?", "count", 148.0),
        ("Each holds 12 GB. How much do eight hold?", "bytes", 96e9),
        ("A step takes 3 s. How long do 20 take?", "seconds", 60.0),
        ("Of 40 GPUs, what share are 8?", "percent", 0.2),
    ],
)
def test_such_an_answer_would_be_found(question, family, value):
    assert one_step_from(question, family, value)
