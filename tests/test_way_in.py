"""What a newcomer reads first stays short and true: README, CONTRIBUTING, the list of changes, `make`."""

import re
import subprocess
from pathlib import Path

from tests.cases import in_one_test

ROOT = Path(__file__).resolve().parents[1]
PACKAGED = sorted((ROOT / "engine").glob("*/__init__.py"))  # each room of the engine
ROOMS = [
    *(file.parent.relative_to(ROOT).as_posix() for file in PACKAGED),
    *(
        "engine",
        "widgets",
        "widgets/kit",
        "widgets/kit/compiler",
        "course",
        "course/diagrams",
        "course/output",
    ),
    *(f"course/output/{room}" for room in ("lms", "notebooks", "slides")),
    *("site", "tests", "tests/browser", "record", "measure", "kernels", "bench", "deploy", "examples"),
]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_make_lists_every_target_with_what_it_does():
    makefile = text("Makefile")
    wanted = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split()
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"^  make ([a-z]+) +\S", said, re.MULTILINE)
    assert sorted(listed) == sorted(wanted), "its line in `make help` is what stands behind ## at the target"
    assert re.search(r"\n\nTest it\n  make ", said), "targets stand in groups"


def test_readme_takes_at_most_seventy_lines():
    assert len(text("README.md").splitlines()) <= 70


def test_contributing_takes_at_most_eight_kilobytes():
    assert len(text("CONTRIBUTING.md").encode()) <= 8000


def test_a_release_has_at_most_ten_lines():
    """A change that a user would want to read about takes one line; the rest is in the commits."""
    for section in re.split(r"^## ", text("CHANGELOG.md"), flags=re.MULTILINE)[1:]:
        title, _, changes = section.partition("\n")
        lines = [line for line in changes.splitlines() if line.strip()]
        assert 1 <= len(lines) <= 10, f"{title}: {len(lines)} lines"
        long = [line for line in lines if len(line) > 250 or not line.startswith("- ")]
        assert not long, f"{title}: a line is a change, in 250 characters"


@in_one_test("room", ROOMS)
def test_a_room_says_what_it_is_for(room):
    """On one page: what lives there, what may not, and how to add one."""
    assert text(f"{room}/README.md").startswith("# ")


@in_one_test("page", ["README.md", "CONTRIBUTING.md", *(f"{room}/README.md" for room in ROOMS)])
def test_a_link_leads_to_a_file(page):
    for address in re.findall(r"\]\((?!https?:)([^)#\s]+)", text(page)):
        assert (ROOT / page).parent.joinpath(address).exists(), f"{page}: {address}"
