"""What is typed into a page is read as Python reads it, and a widget's field takes whatever the course
prints."""

import pytest

from engine.base import typed, units
from tests.engine.base.test_typed import NOT_READ, READ
from tests.fuzz.cases import anything_typed
from tests.said import lacks
from widgets.kit.widget import all_widgets

READINGS = """async calls => {
  const { parse } = await import("/assets/widget/typed.js");
  return calls.map(([text, unit, label]) => {
    const { value, half, digits, bare, refused } = parse(text, unit, label);
    return [value, half, digits, bare, refused];
  });
}"""
FIELDS = """async calls => {
  const { readTyped } = await import("/assets/widget/controls.js");
  const { human } = await import("/assets/widget/numbers.js");
  const labels = control => control.grid.map(stop => human(stop, control.family));
  return calls.map(([control, texts, shown]) =>
    (texts ?? labels(control)).map(text => readTyped(control, text, shown)));
}"""
NUMBERS = [
    (slug, control)
    for slug, cls in sorted(all_widgets().items())
    for control in cls.controls().values()
    if control.kind == "number"
]


def differing(script, calls: list) -> list:
    """The calls that page and Python read otherwise."""
    pages = script.evaluate(READINGS, calls)
    ours = [list(typed.parse(*call)) for call in calls]
    for page in pages:
        page[:2] = [None if each is None else float(each) for each in page[:2]]  # JSON has one kind of number
    return [(call, page, own) for call, page, own in zip(calls, pages, ours, strict=True) if page != own]


def test_page_and_python_read_alike(script):
    """Value, precision and the words of each refusal: what the tables know, what is printed, and nonsense."""
    known = [(text, unit, "") for text, unit, _ in READ] + [(text, unit, "") for text, unit in NOT_READ]
    every_word = [
        (f"1.5{gap}{form(word)}", family, "")
        for family in units.FAMILIES
        for word in typed.words(family)
        for gap, form in (("", str), (" ", str.lower), (" ", str.upper))
    ]
    assert differing(script, known + every_word) == []
    calls = anything_typed(800)
    assert differing(script, calls) == []
    read = sum(typed.parse(*call).value is not None for call in calls)
    assert len(calls) / 5 < read < 4 * len(calls) / 5


def field(slug: str, name: str, texts: list[str] | None, shown: float | None = None) -> tuple:
    control = all_widgets()[slug].controls()[name]
    return control.describe(), texts, control.default if shown is None else shown


@pytest.mark.parametrize(
    ("slug", "name", "text", "value"),
    [
        ("allocator_replay", "memory", "80", 80e9),  # the field's own unit is understood
        ("allocator_replay", "memory", "96 GiB", 96 * 2**30),
        ("allocator_replay", "memory", "80e9", 80e9),
        ("launch_timeline", "issue", "12", 12e-6),
        ("launch_timeline", "issue", "5 us", 5e-6),
        ("allocator_replay", "length", "12,288", 12288.0),  # as the page prints its greatest
        ("allocator_replay", "length", "12,288 tokens", 12288.0),
        ("allocator_replay", "length", "8.19k", 8190.0),
        ("allocator_replay", "length", "8,190", 8190.0),
        ("allocator_replay", "length", "8\u00a0192", 8192.0),
        ("activation_sharding", "seq", "1,024 tokens", 1024.0),
        ("kv_cache", "context", "1024", 1024.0),  # never 1,024 thousand, though that is in bounds
        ("memory_stack", "size", "13", 13e9),  # 13 parameters are out of bounds
        ("memory_stack", "size", "13e9", 13e9),
        ("memory_stack", "size", "2^33", 2.0**33),
        ("prefill_decode", "wire", "10 Gb/s", 1.25e9),
        ("prefill_decode", "wire", "10 GB/s", 10e9),
        ("prefill_decode", "wire", "10", 10e9),
        ("three_walls", "deadline_s", "3 days 4 h", 76 * 3600.0),
        ("three_walls", "deadline_s", "15.8", 15.8 * 86400),
        ("three_walls", "budget_dollars", "$1.2M", 1.2e6),
        ("three_walls", "budget_dollars", "12", 12e6),
        ("three_walls", "mfu", "1/8", 0.125),
        ("three_walls", "mfu", "12.5 %", 0.125),
        ("three_walls", "mfu", "0.4", 0.4),
        ("three_walls", "mfu", "40", 0.4),
        ("allocator_replay", "spread", "0.4", 0.004),  # this fits as it is shown, in per cent
        ("ddp_scaling", "ranks", "64 GPUs", 64.0),
        ("ddp_scaling", "ranks", "0x40", 64.0),
        ("bubble_map", "ratio", "1.5×", 1.5),
        ("training_step", "gpus", "2^14", 16384.0),
        ("float_explorer", "value", "1.4e−45", 1.4e-45),
        ("float_explorer", "value", "1.4·10⁻⁴⁵", 1.4e-45),
    ],
)
def test_a_field_takes_what_engineers_type(script, slug, name, text, value):
    [[found]] = script.evaluate(FIELDS, [field(slug, name, [text])])
    assert found == {"value": pytest.approx(value, rel=1e-12)}


@pytest.mark.parametrize(
    ("slug", "name", "text", "words"),
    [
        ("training_step", "gpus", "100", ("power of two", "1 to 16,384")),
        ("ddp_scaling", "ranks", "13.4 GB/s", ("a bandwidth", "a number")),
        ("ddp_scaling", "ranks", "7 bananas", ("“bananas”",)),
        ("ddp_scaling", "ranks", "", ("Type a number",)),
        ("ddp_scaling", "ranks", "NaN", ("“NaN”", "no number")),
        ("ddp_scaling", "ranks", "3.5", ("GPUs", "“3.5”", "whole number")),
        ("ddp_scaling", "ranks", "2 to 4", ("two numbers",)),
        ("allocator_replay", "memory", "3 days", ("a time", "an amount of data")),
        ("allocator_replay", "memory", "900", ("900 GB", "16 GB to 180 GB")),
        ("allocator_replay", "memory", "900 GB", ("“900 GB”", "16 GB to 180 GB")),
        pytest.param(
            *("allocator_replay", "memory", "1" * 10**6, ("80 characters",)),
            id="a million digits",  # which older releases of pytest would hand to every child as its name
        ),
    ],
)
def test_a_field_says_why_it_refuses(script, slug, name, text, words):
    [[found]] = script.evaluate(FIELDS, [field(slug, name, [text])])
    assert not lacks(found["refused"], *words) and "value" not in found and len(found["refused"]) < 300


def test_every_label_of_a_slider_can_be_typed(script):
    """The text that a slider shows at a stop, typed into its field whatever that shows now, leads to the
    stop; or to one with the same text, where the text has too few digits to tell them apart."""
    calls = [
        (control.describe(), None, shown)
        for _, control in NUMBERS
        for shown in (control.default, control.limits[1])
    ]
    wrong = []
    for (about, _, shown), found in zip(calls, script.evaluate(FIELDS, calls), strict=True):
        texts = [units.human(stop, about["family"]) for stop in about["grid"]]
        for stop, text, each in zip(about["grid"], texts, found, strict=True):
            value = each.get("value")
            alike = {
                other
                for other, same in zip([*about["grid"], shown], [*texts, units.human(shown, about["family"])])
                if same == text
            }
            if value not in alike or (len(alike) == 1 and value != stop):
                wrong.append((about["label"], text, stop, each))
    assert wrong == []
    assert len(calls) > 400


def test_what_a_field_shows_means_what_it_shows(script):
    """A value between the stops, as a link or a preset sets it, is kept when its own text is typed again."""
    calls = [
        field("allocator_replay", "length", ["1.54k tokens"], 1540.0),
        field("three_walls", "step_target_s", ["16.7 min"], 1000.0),
    ]
    assert script.evaluate(FIELDS, calls) == [[{"value": 1540}], [{"value": 1000}]]
