"""What the tests of claims share: a claim is a piece of a lesson's text, and a test runs it under PyTorch."""

from functools import cache

from course import lessons
from tests.lessons.reading import Lesson


@cache
def _text(number: int) -> str:
    [name] = [path.name for path in lessons.LESSONS.glob(f"{number}-*.md")]
    return _plain(Lesson(name).text)


def _plain(text: str) -> str:
    return " ".join(text.replace("**", "").split())


def says(number: int, *claims: str) -> bool:
    """The lesson says each of these, so that a test that runs a claim goes with it. Bold marks do not
    count, and line ends are spaces."""
    missing = [claim for claim in claims if _plain(claim) not in _text(number)]
    assert not missing, f"lesson {number} no longer says: {missing}"
    return True
