"""A reader corrects an assumed value in the list of assumptions: the changed text is read with that value."""

import pytest

from engine.launch import changes, fit_page, reading
from engine.validation import launch_cases

FILES = {
    name: [list(pair) for pair in launch_cases.cases()[name]["texts"].items()]
    for name in launch_cases.cases()
}


@pytest.mark.parametrize(
    ("case", "name", "value"),
    [
        ("titan-llama2-13b-none", "tp", "2"),
        ("titan-8b-8", "global_batch", "64"),
        ("titan-8b-8", "shard", "4"),
        ("alpaca-7b-one-a100", "accumulated", "4"),
        ("alpaca-7b-one-a100", "checkpointing", "true"),
        ("llama2-7b-a100-40", "cp", "2"),
        ("bloom-176b", "attention_dropout", "0.0"),
        ("vllm-8b-h100", "longest", "4096"),
        ("vllm-llama2-7b-a100", "share", "0.5"),
        ("sglang-235b-h100", "requests", "64"),
    ],
)
def test_what_is_written_is_read_back(case, name, value):
    files = fit_page.corrected(FILES[case], 0, name, value)
    assert files is not None and files != FILES[case]
    reread = reading.read([(file, text) for file, text in files], None).launch
    setting = next(one for one in reread.settings if one.name == name)
    assert str(setting.value).lower() == value and setting.line > 0
    assert name not in {one.name for one in reread.assumed}


@pytest.mark.parametrize("value", ["", "two\nlines", "x" * 300])
def test_what_is_no_value_is_not_written(value):
    assert fit_page.corrected(FILES["titan-8b-8"], 0, "tp", value) is None


def test_what_no_text_can_hold_is_not_offered():
    found = fit_page.answer(FILES["titan-8b-8"], "", 8, {}, ())
    open_names = {one["name"] for one, open_ in zip(found["assumed"], found["open"]) if open_}
    assert "tp" in open_names and "gpu" not in open_names
    assert fit_page.corrected(FILES["titan-8b-8"], 8, "gpu", "a100-80") is None
    assert changes.corrected(reading.read("nothing", None), "tp", "2") is None
