"""The version in pyproject.toml agrees with every other file that states a version."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import engine
from course import command
from engine.base import edition

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def released() -> list[tuple[str, str]]:
    """Version and date of each release in the list of changes, newest first, without the unreleased section
    at the top."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *others = re.findall(r"^## (.+)$", text, re.MULTILINE)
    sections = others if first.startswith("Unreleased") else [first, *others]
    found = [re.fullmatch(r"(\d+\.\d+\.\d+) — (\d{4}-\d\d-\d\d)", section) for section in sections]
    assert all(found), sections
    return [one.groups() for one in found]


def test_the_changelog_has_a_dated_section_for_it_and_for_each_before_it():
    assert released()[0][0] == VERSION
    versions = [tuple(map(int, version.split("."))) for version, _ in released()]
    days = [day for _, day in released()]
    assert versions == sorted(set(versions), reverse=True) and days == sorted(days, reverse=True)


def test_the_citation_and_the_manifest_name_it():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], str(citation["date-released"])) == released()[0]
    assert f"system-ml:{VERSION}\n" in (ROOT / "deploy/kubernetes/course.yaml").read_text(encoding="utf-8")


def test_the_command_says_it_however_old_what_is_installed(capsys, monkeypatch):
    with pytest.raises(SystemExit):
        command.main(["--version"])
    assert capsys.readouterr().out == f"system-ml {VERSION}\n" and engine.__version__ == VERSION
    monkeypatch.setattr(edition, "PROJECT", ROOT / "nowhere" / "pyproject.toml")
    monkeypatch.setattr(edition.metadata, "version", lambda name: {"system-ml-course": "9.9.9"}[name])
    assert edition.version() == engine.__version__ == "9.9.9"
