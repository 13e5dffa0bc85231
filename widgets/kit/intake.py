"""A file of the reader's from which a widget takes its controls: pasted or dropped, parsed on the page, never executed."""

from __future__ import annotations

from typing import NamedTuple

from widgets.kit.program import Program


class Intake(NamedTuple):
    """What the page needs for it: numbers are taken from the file by ``keys``, an ``engine.program`` makes controls of them."""

    label: str
    help: str
    keys: tuple[str, ...]
    words: tuple[str, ...]          # a text in the file counts as its place in here
    inner: str                      # a part of the file whose keys go first, where it has one
    rules: tuple                    # what each key's value may be
    program: object                 # numbers -> {"fields": values of the controls, "wrong": place in ``complaints`` or −1}
    controls: tuple[str, ...]
    bounds: dict                    # least and most of the controls
    complaints: tuple[str, ...]
    longest: int                    # characters that are read at all
    too_long: str
    not_json: str
    not_an_object: str
    shown: int                      # characters of a wrong value that are repeated
    sets: dict[str, str]            # controls that are set whatever the file says

    def describe(self, controls: dict) -> dict:
        """Everything but the program, for the page's script."""
        raw = {name: controls[name].raw(controls[name].read(text)) for name, text in self.sets.items()}
        return self._asdict() | {"program": None, "sets": raw, "rules": [rule._asdict() for rule in self.rules]}

    def javascript(self) -> str:
        """The program as a function."""
        program = Program(self.program)
        return f"(() => {{{chr(10).join(program.functions.values())}\nreturn {program.name};}})()"
