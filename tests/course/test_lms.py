"""The packages for a learning system, read as such a system does: the lists of files are complete and
correct, each lesson is a unit, and only pages in a package report results."""

import os
import re
import xml.etree.ElementTree as etree
from pathlib import Path
from urllib.parse import unquote

import pytest

from course import lessons
from course.output.lms import manifests, package

EDITIONS = {package.SCORM: manifests.SCORM_2004, package.SCORM_12: manifests.SCORM_12}
SS = f"{{{manifests.SCORM_2004.spaces['xmlns:imsss']}}}"
CMI5 = f"{{{manifests.CMI5}}}"
LESSONS = lessons.numbered()


@pytest.fixture(scope="module")
def packages(site):
    return package.packages(site)


def namespaces(name: str) -> tuple[str, str]:
    """How the schemas' names begin in a package of SCORM."""
    spaces = EDITIONS[name].spaces
    return f"{{{spaces['xmlns']}}}", f"{{{spaces['xmlns:adlcp']}}}"


@pytest.mark.parametrize("name", EDITIONS)
def test_the_manifest_lists_each_file_once_and_each_is_there(packages, name):
    files, (cp, _) = packages[name], namespaces(name)
    root = etree.fromstring(files["imsmanifest.xml"])
    listed = [unquote(one.get("href")) for one in root.iter(f"{cp}file")]
    assert sorted(listed) == sorted(set(files) - {"imsmanifest.xml"})
    resources = {one.get("identifier"): one for one in root.iter(f"{cp}resource")}
    for resource in resources.values():
        own = [one.get("href") for one in resource.iter(f"{cp}file")]
        assert resource.get("href") in (None, *own) and resource.get("type") == "webcontent"
        assert all(one.get("identifierref") in resources for one in resource.iter(f"{cp}dependency"))


@pytest.mark.parametrize("name", EDITIONS)
def test_every_lesson_is_a_unit_that_a_system_may_launch(packages, name):
    edition, (cp, adlcp) = EDITIONS[name], namespaces(name)
    root = etree.fromstring(packages[name]["imsmanifest.xml"])
    assert [root.findtext(f"{cp}metadata/{cp}{name}") for name in ("schema", "schemaversion")] == [
        "ADL SCORM",
        edition.version,
    ]
    names = [one.get("identifier") for one in root.iter() if one.get("identifier")]
    assert len(names) == len(set(names)) and all(re.fullmatch(r"[A-Za-z_][\w.-]*", name) for name in names)
    [course] = root.iter(f"{cp}organization")
    assert course.get("identifier") == root.find(f"{cp}organizations").get("default")
    resources = {one.get("identifier"): one for one in root.iter(f"{cp}resource")}
    leaves = [item for item in course.iter(f"{cp}item") if item.find(f"{cp}item") is None]
    launched = [resources[item.get("identifierref")] for item in leaves]
    assert [item.findtext(f"{cp}title") for item in leaves] == [lesson.heading for lesson in LESSONS]
    assert [one.get("href") for one in launched] == [manifests.page(lesson) for lesson in LESSONS]
    assert {one.get(edition.kind.replace("adlcp:", adlcp)) for one in launched} == {"sco"}
    if not edition.sequenced:
        assert {float(item.findtext(f"{adlcp}masteryscore")) for item in leaves} == {100 * manifests.PASSED}
        assert b"imsss" not in packages[name]["imsmanifest.xml"]
        return
    for item in leaves:
        primary = item.find(f"{SS}sequencing/{SS}objectives/{SS}primaryObjective")
        assert primary.get("satisfiedByMeasure") == "true"
        assert float(primary.findtext(f"{SS}minNormalizedMeasure")) == manifests.PASSED
    objectives = [one.get("objectiveID") for one in root.iter(f"{SS}primaryObjective")]
    assert len(objectives) == len(set(objectives)) == len(LESSONS)


def test_the_course_structure_has_every_lesson_in_its_part(packages):
    files = packages[package.CMI5]
    root = etree.fromstring(files["cmi5.xml"])
    assert root.tag == f"{CMI5}courseStructure" and root[0].tag == f"{CMI5}course"
    names = [one.get("id") for one in root.iter() if one.get("id")]
    assert len(names) == len(set(names)) and all(re.match(r"[a-z]+:\S+$", name) for name in names)
    units = list(root.iter(f"{CMI5}au"))
    assert [unit.findtext(f"{CMI5}url") for unit in units] == [manifests.page(lesson) for lesson in LESSONS]
    assert all(unit.findtext(f"{CMI5}url") in files for unit in units)
    for one in (root[0], *root.iter(f"{CMI5}block"), *units):  # in the order that the schema requires
        assert [child.tag for child in one][:2] == [f"{CMI5}title", f"{CMI5}description"]
        assert all(one.findtext(f"{CMI5}{name}/{CMI5}langstring") for name in ("title", "description"))
    assert {unit.get("moveOn") for unit in units} == {"Completed"}
    assert {float(unit.get("masteryScore")) for unit in units} == {manifests.PASSED}


def test_only_a_package_s_lessons_report_and_only_cmi5_asks_elsewhere(packages, site):
    systems = (
        (package.SCORM, "scorm", "'self'"),
        (package.SCORM_12, "scorm12", "'self'"),
        (package.CMI5, "cmi5", "*"),
    )
    for name, script, asks in systems:
        for lesson in LESSONS:
            page = packages[name][manifests.page(lesson)].decode()
            assert page.index(f"assets/lms/{script}.js") < page.index("assets/widget/runtime.js")
            assert f"connect-src {asks};" in page and page.count("Content-Security-Policy") == 1
            assert package.WATCHED in page and package.ALONE not in page
            assert package.ALONE in (site / manifests.page(lesson)).read_text(encoding="utf-8")
        assert f"assets/lms/{script}.js" in packages[name]
        glossary = packages[name]["glossary/index.html"].decode()
        assert "assets/lms" not in glossary and "connect-src 'self'" in glossary
    of_the_course = [path for path in site.rglob("*") if path.suffix in (".html", ".js")]
    words = re.compile(r"assets/lms|API_1484_11|connect-src \*|X-Experience-API")
    assert len(of_the_course) > 100
    assert [path for path in of_the_course if words.search(path.read_text(encoding="utf-8"))] == []


def test_a_page_without_the_policy_is_refused():
    with pytest.raises(ValueError, match="must have the content policy"):
        package.reporting("<html></html>", "scorm")


def test_a_package_of_the_same_course_is_the_same(packages, tmp_path):
    files = dict(list(packages[package.CMI5].items())[:20])
    for name in ("one.zip", "two.zip"):
        package.write(tmp_path / name, files)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


# Of a weekly run (.github/workflows/every.yml), which fetches the schemas: ADL's with its sample of a system,
# AICC's with the specification of cmi5. No schema of SCORM 1.2 is among them.
SCHEMAS = os.environ.get("SCHEMAS")
IMPORTS = {
    "http://www.w3.org/XML/1998/namespace": "xml",
    manifests.SCORM_2004.spaces["xmlns"]: "imscp_v1p1",
    manifests.SCORM_2004.spaces["xmlns:adlcp"]: "adlcp_v1p3",
    manifests.SCORM_2004.spaces["xmlns:imsss"]: "imsss_v1p0",
}


@pytest.mark.skipif(not SCHEMAS, reason="SCHEMAS names no folder with the published schemas")
@pytest.mark.parametrize("name", [package.SCORM, package.CMI5])
def test_a_package_is_valid_by_the_published_schema(packages, name, tmp_path):
    from lxml import etree as lxml

    if name == package.CMI5:
        schema, written = Path(SCHEMAS, "CourseStructure.xsd"), packages[name]["cmi5.xml"]
    else:
        lines = [
            f'<xs:import namespace="{space}" schemaLocation="{SCHEMAS}/{file}.xsd"/>'
            for space, file in IMPORTS.items()
        ]
        schema, written = tmp_path / "all.xsd", packages[name]["imsmanifest.xml"]
        schema.write_text(
            f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{"".join(lines)}</xs:schema>'
        )
    checks = lxml.XMLSchema(lxml.parse(str(schema)))
    assert checks.validate(lxml.fromstring(written)), checks.error_log
    root = lxml.fromstring(written)
    root[0].tag = "{urn:nobody}other"
    assert not checks.validate(root)  # it does look
