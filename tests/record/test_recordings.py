"""The shipped recordings equal new ones made by their recorders with the releases that they name."""

import hashlib
import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from course import lessons
from engine.one_gpu import measurements, recordings
from measure import __main__ as measure
from record import __main__ as recorder
from tests import machine
from tests.conftest import ROOT
from tests.representatives import ALL_OF_THEM

# Differences of an older release from the recording's: release -> recording -> the changes, a line each
OLDER_FILE = Path(__file__).parent / "older.json"
OLDER = json.loads(OLDER_FILE.read_text(encoding="utf-8"))

# Recording -> a digest of its sources when it was last compared with a new recording. The comparison is
# repeated when a recorder, a kernel, the recording, Python or a library has changed, or with EVERY=1;
# ACCEPT=1 stores the new digest. The shortest recording is made each time, to see that recording works on
# this machine at all.
HELD = Path(__file__).parent / "held.json"
EACH_TIME = "saved_block"


def programs(name: str) -> str:
    """The program of each lesson that the recorder names, which it runs."""
    named = re.findall(r'"(\d\d[\w-]*\.md)"', (ROOT / "record" / f"{name}.py").read_text(encoding="utf-8"))
    fences = [fence for lesson in named for fence in lessons.read(lesson).fences]
    return "\n".join(fence.source for fence in fences if fence.kind == "python")


def made_from(name: str) -> str:
    """A digest of the recorders, the kernels, the lessons' programs, the recording, and what it would be made
    by here."""
    sources = [*sorted((ROOT / "record").glob("*.py")), *sorted((ROOT / "kernels").glob("*.py")), OLDER_FILE]
    shipped = recordings.PLACE / f"{name}.json"
    here = [recorder.python(), programs(name)]
    for library in recordings.load(name)["versions"]:
        try:
            here.append(f"{library} {release(library)}")
        except metadata.PackageNotFoundError:
            here.append(f"no {library}")
    told = b"".join(path.read_bytes() for path in (*sources, shipped)) + " ".join(here).encode()
    return hashlib.sha256(told).hexdigest()


def to_hold() -> list[str]:
    """The recordings to make again."""
    held = {} if ALL_OF_THEM or os.environ.get("ACCEPT") else json.loads(HELD.read_text(encoding="utf-8"))
    return [name for name in recordings.names() if name == EACH_TIME or held.get(name) != made_from(name)]


def skip_unless_recordable(name: str) -> None:
    """Skips the test where this recording cannot be made again: a library is missing, or is of a release that
    nobody has held against the recording's."""
    if recorder.python() != (wanted := recordings.load(name)["python"]):
        pytest.skip(f"this is Python {recorder.python()}, the recording was made on {wanted}")
    for library, wanted in recordings.load(name)["versions"].items():
        machine.torch(library)
        if (there := release(library)) != wanted and there not in OLDER.get(library, {}):
            pytest.skip(f"{library} {there} is here, the recording was made on {wanted}")


def release(library: str) -> str:
    return metadata.version(library).split("+")[0]


def recorded_apart(name: str) -> dict:
    """A recording made in a separate process, because other tests' settings of the compiler would change its
    guards."""
    asked = f"recorder.recording({name!r})"
    code = f"import json; from record import __main__ as recorder; print(json.dumps({asked}))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def expected(name: str) -> list[str]:
    """The expected differences of a new recording: none, or those of the older release that is installed."""
    told = []
    for library, wanted in recordings.load(name)["versions"].items():
        if (there := release(library)) != wanted:
            told.append(f'versions.{library} is "{there}", was "{wanted}"')
            told += OLDER[library][there].get(name, [])
    return told


def test_each_recorder_has_its_file_and_each_file_its_recorder():
    assert recordings.names() == recorder.recorders()
    for name in recordings.names():
        assert recordings.load(name)["made_by"] == f"record/{name}.py" and recordings.load(name)["versions"]


def test_what_is_recorded_and_measured_lies_where_it_is_read():
    assert recorder.SHIPPED == recordings.PLACE and measure.SHIPPED == measurements.PLACE


@pytest.mark.parametrize("name", to_hold())
def test_a_fresh_recording_is_the_shipped_one(name):
    """A profile's times are its machine's and its moment's, and a CPU's kernels are its own: what is compared
    is a recording's shape."""
    skip_unless_recordable(name)
    fresh, shipped = recorded_apart(name), recordings.load(name)
    assert list(recorder.changes(recorder.shape(name, shipped), recorder.shape(name, fresh))) == expected(
        name
    )
    if os.environ.get("ACCEPT"):
        held = json.loads(HELD.read_text(encoding="utf-8")) | {name: made_from(name)}
        HELD.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def test_each_is_held_and_is_made_again_after_any_change(monkeypatch):
    assert sorted(json.loads(HELD.read_text(encoding="utf-8"))) == recordings.names()
    before, read = {name: made_from(name) for name in recordings.names()}, Path.read_bytes
    with monkeypatch.context() as changed:
        changed.setattr(f"{__name__}.release", lambda library: "another")
        assert all(made_from(name) != before[name] for name in before)
    for place in ("record", "kernels", "recordings"):
        with monkeypatch.context() as changed:
            changed.setattr(
                Path, "read_bytes", lambda path, at=place: read(path) + b"#" * (path.parent.name == at)
            )
            assert all(made_from(name) != before[name] for name in before), place
    with monkeypatch.context() as changed:
        changed.setattr(f"{__name__}.programs", lambda name: "another")
        assert all(made_from(name) != before[name] for name in before)
    assert [name for name in before if programs(name)] == ["fsdp_70b"]
    assert {name: made_from(name) for name in before} == before


def test_a_repeated_recording_says_what_changed():
    before = {"versions": {"torch": "2.13.0"}, "lanes": [["a", 1], ["b", 2]], "old": 1, "calls": [1, 2, 3]}
    after = {"versions": {"torch": "2.15.0"}, "lanes": [["a", 1], ["c", 2]], "new": 1, "calls": [1, 2]}
    assert list(recorder.changes(before, after)) == [
        'versions.torch is "2.15.0", was "2.13.0"',
        'lanes[1][0] is "c", was "b"',
        "old is gone",
        "calls has 2 entries, had 3",
        "new is new",
    ]
    assert list(recorder.changes(after, after)) == []


def test_a_shape_keeps_all_but_what_differs_between_machines():
    machine.torch()
    shipped = recordings.load("dispatch")
    counted = {
        call["op"] for trace in shipped["traces"].values() for call in trace["calls"] if call["inside"]
    }
    kept = recorder.shape("dispatch", shipped)
    assert "aten::bmm" in counted and kept.keys() == shipped.keys()
    for name, trace in kept["traces"].items():
        whole = shipped["traces"][name]
        assert [call | {"inside": 0} for call in whole["calls"]] == [
            call | {"inside": 0} for call in trace["calls"]
        ]
        assert trace["events"] == whole["events"] and trace["nodes"] == whole["nodes"]
    assert recorder.shape("graph_breaks", recordings.load("graph_breaks")) == recordings.load("graph_breaks")


def test_a_profiles_events_have_a_name_a_beginning_and_a_duration():
    timed = [name for name in recordings.names() if "lanes" in recordings.load(name)]
    assert timed
    for name in timed:
        for lane in recordings.load(name)["lanes"]:
            starts = [start for _, start, _ in lane["events"]]
            assert starts == sorted(starts) and min(starts) >= 0
            assert all(title and took >= 0 for title, _, took in lane["events"])
