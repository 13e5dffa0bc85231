"""The manifest of a package, which a learning system reads first: imsmanifest.xml (SCORM 2004, 4th
edition, or SCORM 1.2) or cmi5.xml, made from the lessons' titles and descriptions."""

from __future__ import annotations

import xml.etree.ElementTree as etree
from collections.abc import Iterable
from typing import NamedTuple

from course import lessons, settings
from course.lessons import Lesson
from course.output import book

PASSED = 0.6  # the share of the exercises' numbers that must be right, unless a learning system sets another
COURSE = "System ML"


class Edition(NamedTuple):
    """What an edition of SCORM calls things: its version, the attribute for a resource's kind, its
    schemas."""

    version: str
    kind: str
    spaces: dict[str, str]

    @property
    def sequenced(self) -> bool:
        """Whether its manifest says in which order lessons may be taken, and what is enough to pass."""
        return "xmlns:imsss" in self.spaces


SCORM_2004 = Edition(
    "2004 4th Edition",
    "adlcp:scormType",
    {
        "xmlns": "http://www.imsglobal.org/xsd/imscp_v1p1",
        "xmlns:adlcp": "http://www.adlnet.org/xsd/adlcp_v1p3",
        "xmlns:imsss": "http://www.imsglobal.org/xsd/imsss",
    },
)
SCORM_12 = Edition(
    "1.2",
    "adlcp:scormtype",
    {
        "xmlns": "http://www.imsproject.org/xsd/imscp_rootv1p1p2",
        "xmlns:adlcp": "http://www.adlnet.org/xsd/adlcp_rootv1p2",
    },
)
CMI5 = "https://w3id.org/xapi/profiles/cmi5/v1/CourseStructure.xsd"


class Part(NamedTuple):
    """A part of the course, and its lessons."""

    title: str
    lessons: list[Lesson]


def parts() -> list[Part]:
    """The parts that have lessons, as in the navigation."""
    numbered = {lesson.name: lesson for lesson in lessons.numbered()}
    found = [
        Part(title, [numbered[name] for name in names if name in numbered]) for title, names in book.parts()
    ]
    return [part for part in found if part.lessons]


def home() -> str:
    """The beginning of the course's identifiers: its public address, if the build was given one."""
    return settings.public_home() or "urn:system-ml:"


def written(root: etree.Element) -> str:
    """The document as text."""
    etree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{etree.tostring(root, encoding="unicode")}\n'


def _below(parent: etree.Element, name: str, text: str = "", **attributes: str) -> etree.Element:
    child = etree.SubElement(parent, name, attributes)
    child.text = text or None
    return child


# -- SCORM -------------------------------------------------------------------------------------
def scorm(files: Iterable[str], edition: Edition) -> str:
    """The text of imsmanifest.xml; ``files`` are all other files of the package."""
    files = sorted(files)
    root = etree.Element("manifest", {"identifier": "system-ml", "version": "1", **edition.spaces})
    metadata = _below(root, "metadata")
    _below(metadata, "schema", "ADL SCORM")
    _below(metadata, "schemaversion", edition.version)
    organizations = _below(root, "organizations", default="course")
    course = _below(organizations, "organization", identifier="course")
    _below(course, "title", COURSE)
    resources = _below(root, "resources")
    for number, part in enumerate(parts(), 1):
        group = _below(course, "item", identifier=f"part-{number}")
        _below(group, "title", part.title)
        for lesson in part.lessons:
            _item(group, lesson, edition)
            _resource(resources, lesson, edition)
        _any_order(group, edition)
    _any_order(course, edition)
    pages = {page(lesson) for part in parts() for lesson in part.lessons}
    common = _below(resources, "resource", identifier="common", type="webcontent")
    common.set(edition.kind, "asset")
    for name in files:
        if name not in pages:
            _below(common, "file", href=name)
    return written(root)


def page(lesson: Lesson) -> str:
    """A lesson's page in the package."""
    return f"{lesson.name}/index.html"


def _item(parent: etree.Element, lesson: Lesson, edition: Edition) -> None:
    item = _below(parent, "item", identifier=f"item-{lesson.number}", identifierref=f"lesson-{lesson.number}")
    _below(item, "title", lesson.heading)
    if not edition.sequenced:
        _below(item, "adlcp:masteryscore", f"{100 * PASSED:.0f}")
        return
    sequencing = _below(item, "imsss:sequencing")
    objectives = _below(sequencing, "imsss:objectives")
    primary = _below(
        objectives,
        "imsss:primaryObjective",
        objectiveID=f"exercises-{lesson.number}",
        satisfiedByMeasure="true",
    )
    _below(primary, "imsss:minNormalizedMeasure", str(PASSED))
    _below(sequencing, "imsss:deliveryControls", completionSetByContent="true", objectiveSetByContent="true")


def _resource(parent: etree.Element, lesson: Lesson, edition: Edition) -> None:
    resource = _below(
        parent, "resource", identifier=f"lesson-{lesson.number}", type="webcontent", href=page(lesson)
    )
    resource.set(edition.kind, "sco")
    _below(resource, "file", href=page(lesson))
    _below(resource, "dependency", identifierref="common")


def _any_order(parent: etree.Element, edition: Edition) -> None:
    """Add the rule that lessons may be taken in any order, which SCORM 1.2 takes for granted."""
    if not edition.sequenced:
        return
    sequencing = _below(parent, "imsss:sequencing")
    _below(sequencing, "imsss:controlMode", choice="true", flow="true")


# -- cmi5 --------------------------------------------------------------------------------------
def cmi5() -> str:
    """cmi5.xml: a block for each part, an assignable unit for each lesson."""
    about = settings.of("site_description")
    root = etree.Element("courseStructure", xmlns=CMI5)
    _said(_below(root, "course", id=f"{home()}course"), COURSE, about)
    for number, part in enumerate(parts(), 1):
        block = _below(root, "block", id=f"{home()}part-{number}")
        titles = "; ".join(lesson.title for lesson in part.lessons)
        _said(block, part.title, f"Lessons {part.lessons[0].number} to {part.lessons[-1].number}: {titles}.")
        for lesson in part.lessons:
            unit = _below(
                block,
                "au",
                id=f"{home()}{lesson.name}",
                moveOn="Completed",
                masteryScore=str(PASSED),
                launchMethod="AnyWindow",
            )
            _said(unit, lesson.heading, str(lesson.front["description"]).strip())
            _below(unit, "url", page(lesson))
    return written(root)


def _said(parent: etree.Element, title: str, description: str) -> None:
    for name, text in (("title", title), ("description", description)):
        _below(_below(parent, name), "langstring", text, lang="en")
