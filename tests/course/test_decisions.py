"""The sheets of the decision log: one for each mission, in its own words, with the figure's own controls."""

import re

from course import lessons
from course.fences import decisions
from engine.exam import missions
from widgets.kit.widget import all_widgets


def test_every_mission_has_a_sheet_that_asks_what_it_asks(site):
    page = (site / "decision-log" / "index.html").read_text(encoding="utf-8")
    sheets = re.findall(r'<section class="sheet" id="([^"]+)".*?</section>', page, re.DOTALL)
    assert len(sheets) == len(set(sheets)) == len(missions.missions()) + 2
    for sheet, mission in zip(decisions.sheets(), missions.missions().values()):
        assert mission.name in sheet["name"] and sheet["brief"] == mission.brief
        assert f"{mission.gpu.name}" in sheet["asks"] and sheet["key"] in sheets


def test_the_fields_are_the_controls_of_the_figure():
    for sheet, slug in (
        (decisions.sheets()[0], decisions.MISSION),
        (decisions.sheets()[-2], decisions.EXAMINATION),
    ):
        labels = {control.label for control in all_widgets()[slug].controls().values()}
        assert set(sheet["fields"]) < labels and len(sheet["fields"]) >= 9
        assert len(sheet["results"]) >= 1


def test_every_lesson_s_open_exercise_can_be_chosen():
    chosen = {choice.split()[0] for choice in decisions.designs()}
    assert chosen == {lesson.number for lesson in lessons.numbered()}
