"""What the tests of a lesson read of it: its parts, its computed numbers, its widgets and exercises."""

import re
import textwrap

from course import lessons, numbers, strict_yaml
from course.fences import prediction, table
from course.lessons import LESSONS as LESSONS
from widgets.kit.widget import all_widgets


def _in_one_line(code: str) -> str:
    """Code without the spaces and commas that a formatter puts in or leaves out."""
    return re.sub(r",(?=[)\]])", "", re.sub(r"\s", "", code))


class Lesson:
    """A lesson's source, or that of a page without a number, and questions about it."""

    def __init__(self, name: str):
        self.name, self.source = name, lessons.read(name)
        self.number = self.source.front.get("lesson")
        self.text = self.source.text
        self.whole = f"{self.text}\n{self.source.code}"  # with the file of its numbers
        self.computed = self.source.inline()
        self.fences = self.source.options("widget")

    def shows(self, part: str) -> str:
        """What the reader sees of the first number whose expression holds this part. Where that is a name
        of the lesson's file, its definition is looked at."""
        code = {each.name: each.expression for each in self.source.code_contents.definitions}

        def spelled_out(source: str) -> str:
            expression = numbers.form(source)["expression"].strip()
            return source.replace(expression, code.get(expression.removesuffix("()"), expression), 1)

        found = [
            source
            for source in self.computed
            if part in source or _in_one_line(part) in _in_one_line(spelled_out(source))
        ]
        assert found, f"the lesson no longer computes {part}"
        with lessons.on(self.source):
            return numbers.evaluate(found[0])

    def value(self, expression: str):
        """The value of an expression that may use the lesson's names."""
        with lessons.on(self.source):
            return eval(expression, numbers.names(expression))

    def tables(self) -> list[str]:
        """Its tables of computed values, as HTML."""
        with lessons.on(self.source):
            return [table.render(fence.source) for fence in self.source.fences if fence.kind == "table"]

    def code(self, language: str) -> list[str]:
        """The blocks of code in a language, without their indentation."""
        blocks = re.findall(rf"^( *)``` {language}\n(.*?)^\1```$", self.text, re.MULTILINE | re.DOTALL)
        return [textwrap.dedent(code) for _, code in blocks]

    def section(self, title: str) -> str:
        """The text under one heading of the second level."""
        return re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", self.text, re.MULTILINE | re.DOTALL)[1]

    def places(self) -> dict[str, int]:
        """Where each of the parts that every lesson has begins; -1 for one that is missing."""
        return {
            mark: self.text.find(mark)
            for mark in (
                f"lesson: {self.number}\n",
                "{ .question }",
                '!!! case "Opening case"',
                "\n## ",
                "!!! rule",
                '!!! breaks "Where it breaks"',
                "## On the back of an envelope",
                "## Exercises",
                "!!! exercise",
                "## Takeaway",
                "## Sources",
            )
        }

    def places_in_order(self) -> bool:
        places = list(self.places().values())
        return -1 not in places and places == sorted(places)

    def widgets(self) -> list[str]:
        return [fence["name"] for fence in self.fences]

    def every_widget_asks_first(self) -> bool:
        return all(fence.get("predict") and fence.get("why") for fence in self.fences)

    def asked(self, widget: str) -> dict:
        """What the fence of a widget asks, with what is right."""
        [source] = [
            fence.source
            for fence in self.source.fences
            if fence.kind == "widget" and fence.source.startswith(f"name: {widget}\n")
        ]
        options = strict_yaml.mapping(source)
        shown = all_widgets()[options.pop("name")]()
        shown.set_state({key: value for key, value in options.items() if key not in prediction.KEYS})
        with lessons.on(self.source):
            return prediction.asked(options, shown, source)

    def truth(self, widget: str) -> float:
        """The number that a widget's prediction asks for."""
        return self.asked(widget)["value"]

    def right(self, widget: str) -> int:
        """Which of the answers that a widget offers the engine says is right."""
        return self.asked(widget)["right"]

    def exercises(self) -> list[str]:
        return self.section("Exercises").split("!!! exercise")[1:]

    def every_exercise_is_solved(self) -> bool:
        """A solution to each, with a computed number in it."""
        return all(
            "??? solution" in text and "`#!n " in text.split("??? solution")[1] for text in self.exercises()
        )

    def sentences(self, title: str) -> int:
        return len(re.findall(r"[.?!](?:\s|$)", self.section(title).strip()))
