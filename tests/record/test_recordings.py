"""The shipped recordings are what their recorders give, on the releases they name."""

import json
from importlib import metadata

import pytest

from engine import recordings
from record import __main__ as recorder


def missing(name: str) -> str | None:
    """Why this recording cannot be made again here: a library that is not there, or another release of it."""
    if recorder.python() != (wanted := recordings.load(name)["python"]):
        return f"this is Python {recorder.python()}, the recording was made on {wanted}"
    for library, wanted in recordings.load(name)["versions"].items():
        try:
            if (there := metadata.version(library).split("+")[0]) != wanted:
                return f"{library} {there} is here, the recording was made on {wanted}"
        except metadata.PackageNotFoundError:
            return f"{library} is not installed: make recorder"
    return None


def test_each_recorder_has_its_file_and_each_file_its_recorder():
    assert recordings.names() == recorder.recorders()
    for name in recordings.names():
        assert recordings.load(name)["made_by"] == f"record/{name}.py" and recordings.load(name)["versions"]


@pytest.mark.parametrize("name", recordings.names())
def test_a_fresh_recording_is_the_shipped_one(name):
    if reason := missing(name):
        pytest.skip(reason)
    assert json.loads(json.dumps(recorder.recording(name))) == recordings.load(name)
