"""A file from which a widget sets its controls: pasted or dropped by the reader, parsed on the page, never
executed."""

from __future__ import annotations

from typing import NamedTuple

from engine.base.program import Program as Algorithm
from widgets.kit.compiler.programs import Program


class Intake(NamedTuple):
    """What the page needs to read such a file: ``keys`` are the numbers to take from it, and an
    ``engine.base.program`` turns these into values of controls."""

    label: str
    help: str
    keys: tuple[str, ...]
    words: tuple[str, ...]  # a text in the file is represented by its index in this list
    inner: str  # a part of the file whose keys take precedence, if there is one
    rules: tuple  # what each key's value may be
    program: (
        Algorithm  # numbers -> {"fields": values of the controls, "wrong": place in ``complaints`` or −1}
    )
    controls: tuple[str, ...]
    bounds: dict  # smallest and largest values of the controls
    complaints: tuple[str, ...]
    longest: int  # characters; a longer file is refused
    too_long: str
    not_json: str
    not_an_object: str
    shown: int  # characters of a wrong value that a message repeats
    # which keys that are not among ``keys`` may not be passed over: what their names hold and do not hold,
    # objects that are parts of a file, keys that are known, and values at which a key says nothing
    unread: dict
    lengths: dict  # which key lists all of something, at which places its number stands, and what is said
    sets: dict[str, str]  # controls that are set whatever the file says

    def describe(self, controls: dict) -> dict:
        """Everything except the program, for the page's script."""
        raw = {name: controls[name].raw(controls[name].read(text)) for name, text in self.sets.items()}
        return self._asdict() | {
            "program": None,
            "sets": raw,
            "rules": [rule._asdict() for rule in self.rules],
        }

    def javascript(self) -> str:
        """The program as a JavaScript function."""
        program = Program(self.program)
        return f"(() => {{{chr(10).join(program.functions.values())}\nreturn {program.name};}})()"
