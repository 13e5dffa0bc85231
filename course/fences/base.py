"""What all fences share: their options are strict YAML, and any error stops the build with file and line.
Without this, pymdownx would silently show a failed fence as plain text."""

from __future__ import annotations

from collections.abc import Callable, Collection

from course import faults, strict_yaml
from course.lessons import LessonFault, fault
from course.strict_yaml import Refused
from widgets.kit.controls import BadValue


def options(source: str, allowed: Collection[str] | None = None, needed: Collection[str] = ()) -> dict:
    """The options of a fence: only the allowed keys, and all needed ones; Refused otherwise."""
    found = strict_yaml.mapping(source, allowed)
    if missing := [key for key in needed if key not in found]:
        raise Refused(f"this fence needs a line '{missing[0]}: …'")
    return found


def require_empty(source: str) -> None:
    """Refused unless a fence that takes no options is empty."""
    if source.strip():
        raise Refused("this fence takes no options")


def formatter(render: Callable[[str], str]) -> Callable:
    """A pymdownx superfences formatter that shows the result of ``render`` for a fence's source."""

    def format(source, language, css_class, options, md, **kwargs) -> str:
        try:
            return render(source)
        except LessonFault:  # from something inside the fence, already with its place
            raise
        except Exception as error:
            if line_of_code := faults.of_code(error):
                raise LessonFault(line_of_code) from error
            line = getattr(error, "line", 0) if isinstance(error, Refused) else 0
            words = str(error) if isinstance(error, BadValue) else f"{type(error).__name__}: {error}"
            known = isinstance(error, BadValue)
            message = words if known else f"cannot make this {language}: {words}"
            raise fault(source if source.strip() else f"``` {language}", message, line=line) from error

    return format
