"""The page of the engine's API contains every public name, with the docstring from the engine."""

import re

import pytest

import engine
from course.fences import api
from course.lessons import LESSONS, LessonFault

TEXT = (LESSONS / "engine.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^``` api\n(.+)\n```$", TEXT, re.MULTILINE)
FUNCTIONS = [name for name in engine.__all__ if name[0].islower()]


def test_every_function_and_what_they_are_given_is_on_the_page():
    given = {"Machine", "Job", "Adapter", "Pictures", "Layout", "Load", "Limits", "Drafts"}
    assert {name.partition(".")[0] for name in SHOWN} == {*FUNCTIONS, *given}
    assert [name.partition(".")[0] for name in SHOWN] == re.findall(r"^### (\w+)$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("name", SHOWN)
def test_a_signature_and_an_example_fit_the_column(name):
    thing = api.find(name)
    program, printed = api.example(thing.__doc__)
    lines = [*api.signature(name, thing).splitlines(), *program.splitlines(), *printed.splitlines()]
    assert program and printed and max(map(len, lines)) <= api.WIDTH, max(lines, key=len)


def test_what_an_example_prints_is_computed():
    assert api.example(">>> engine.gpu('h100-sxm').hbm_bytes\n>>> print(1 + 1)\n")[1] == "80000000000.0\n2"


def test_what_comes_back_is_named_with_what_it_holds():
    words = api.answer(engine.estimate)
    assert words.startswith("`Estimate`: the cost of a step") and "`step_s`" in words and "`mfu()`" in words
    assert api.answer(engine.gpu) == api.answer(engine.Layout) == ""


def test_a_signature_says_what_goes_by_name():
    text = api.signature("collective", engine.collective)
    assert text.splitlines()[3] == "    *," and text.endswith(") -> Collective")
    assert api.signature("gpu", engine.gpu) == "system_ml.gpu(name: str) -> Gpu"
    assert api.signature("software", engine.software).endswith("(key: str, **changes: object) -> Software")
    assert "    software: TrainingSoftware = ...," in api.signature("Job", engine.Job).splitlines()


def test_an_unknown_name_stops_the_build_with_the_names_there_are():
    with pytest.raises(LessonFault, match=r"'estimates' is not one of .*estimate"):
        api.format("estimates", "api", "api", {}, None)
