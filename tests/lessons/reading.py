"""What the tests of a lesson read of it: its parts, its computed numbers, its widgets and exercises."""

import re
import textwrap
from pathlib import Path

import yaml

from widgets.kit import prose

LESSONS = Path(__file__).resolve().parents[2] / "lessons"
PREDICTION = ("predict", "answers", "right", "why")


class Lesson:
    """A lesson's source, and questions about it."""

    def __init__(self, name: str):
        self.name, self.number = name, int(name[:2])
        self.text = (LESSONS / name).read_text(encoding="utf-8")
        self.computed = re.findall(r"`#!n (.+?)`", self.text)
        self.fences = [yaml.load(fence, Loader=yaml.BaseLoader)
                       for fence in re.findall(r"^``` widget\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)]

    def shows(self, part: str) -> str:
        """What the reader sees of the first number whose expression holds this part."""
        found = [expression for expression in self.computed if part in expression]
        assert found, f"the lesson no longer computes {part}"
        return prose.evaluate(found[0])

    def code(self, language: str) -> list[str]:
        """The blocks of code in a language, without their indentation."""
        blocks = re.findall(rf"^( *)``` {language}\n(.*?)^\1```$", self.text, re.MULTILINE | re.DOTALL)
        return [textwrap.dedent(code) for _, code in blocks]

    def section(self, title: str) -> str:
        """The text under one heading of the second level."""
        return re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", self.text, re.MULTILINE | re.DOTALL)[1]

    def places(self) -> dict[str, int]:
        """Where each of the parts that every lesson has begins; -1 for one that is missing."""
        return {mark: self.text.find(mark) for mark in (
            f"lesson: {self.number}\n", "{ .question }", '!!! case "Opening case"', "\n## ", "!!! rule",
            '!!! breaks "Where it breaks"', "## On the back of an envelope", "## Exercises", "!!! exercise", "## Takeaway",
            "## Sources")}

    def places_in_order(self) -> bool:
        places = list(self.places().values())
        return -1 not in places and places == sorted(places)

    def widgets(self) -> list[str]:
        return [fence["name"] for fence in self.fences]

    def every_widget_asks_first(self) -> bool:
        return all(fence.get(key) for fence in self.fences for key in PREDICTION)

    def right_answers(self) -> list[str]:
        """The expressions that say which answer is right."""
        return [fence["right"] for fence in self.fences]

    def exercises(self) -> list[str]:
        return self.section("Exercises").split("!!! exercise")[1:]

    def every_exercise_is_solved(self) -> bool:
        """A solution to each, with a computed number in it."""
        return all("??? solution" in text and "`#!n " in text.split("??? solution")[1] for text in self.exercises())

    def sentences(self, title: str) -> int:
        return len(re.findall(r"[.?!](?:\s|$)", self.section(title).strip()))
