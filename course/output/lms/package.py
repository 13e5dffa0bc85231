"""Makes the packages from the built site. Each lesson's page gets one script. For cmi5 its policy is
widened as well, because the address to report to is known only when the learning system launches the page.
The course's own pages have neither."""

from __future__ import annotations

import sys
import time
import zipfile
from pathlib import Path

from course import lessons
from course.output.lms import manifests
from widgets.kit.page import headers

ROOT = Path(__file__).resolve().parents[3]
SITE, BUILD = ROOT / "build" / "static", ROOT / "build"
REPORT = Path(__file__).parent / "report"
FOR_HOSTS = ("_headers", "robots.txt", "sitemap-more.xml", "releases.xml", "llms.txt", "404.html")
MADE = (1980, 1, 1, 0, 0, 0)  # date of every file, so that packages of the same course are identical
SCRIPT = '<script type="module" src="../assets/lms/{}.js"></script>'
# the promise in the footer of every page, and what the footer has to say in a package
ALONE = "no request to anyone else; your progress stays in this browser."
WATCHED = "no request to anyone but your learning system, which is told what you answer in a lesson."
HERE, ANYWHERE = "connect-src 'self'", "connect-src *"  # parts of the pages' content policy
SCORM, SCORM_12, CMI5 = "system-ml-scorm2004.zip", "system-ml-scorm12.zip", "system-ml-cmi5.zip"


def of_site(site: Path) -> dict[str, bytes]:
    """Name -> contents of the site's files that go into a package."""
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in sorted(site.rglob("*"))
        if path.is_file() and path.name not in FOR_HOSTS
    }


def with_report(files: dict[str, bytes], system: str) -> dict[str, bytes]:
    """These files, with the scripts that report to this kind of learning system added to the lessons'
    pages."""
    found = {name: told(contents) if name.endswith(".html") else contents for name, contents in files.items()}
    for lesson in lessons.numbered():
        name = manifests.page(lesson)
        found[name] = reporting(found[name].decode(), system).encode()
    for path in sorted(REPORT.glob("*.js")):
        found[f"assets/lms/{path.name}"] = path.read_bytes()
    return found


def told(page: bytes) -> bytes:
    """A page whose footer says to whom results are reported."""
    return page.replace(ALONE.encode(), WATCHED.encode())


def reporting(page: str, system: str) -> str:
    """A lesson's page that reports: its script comes before all others."""
    if headers.META not in page:
        raise ValueError("a lesson's page must have the content policy of widgets/kit/page/headers.py")
    policy = headers.META.replace(HERE, ANYWHERE) if system == "cmi5" else headers.META
    return page.replace(headers.META, policy + SCRIPT.format(system), 1)


def packages(site: Path) -> dict[str, dict[str, bytes]]:
    """Name of a package -> its files."""
    files = of_site(site)
    scorm, older, cmi5 = (with_report(files, system) for system in ("scorm", "scorm12", "cmi5"))
    return {
        SCORM: {"imsmanifest.xml": manifests.scorm(scorm, manifests.SCORM_2004).encode(), **scorm},
        SCORM_12: {"imsmanifest.xml": manifests.scorm(older, manifests.SCORM_12).encode(), **older},
        CMI5: {"cmi5.xml": manifests.cmi5().encode(), **cmi5},
    }


def write(path: Path, files: dict[str, bytes]) -> None:
    """Write a package as a zip file, with the manifest at its root, as both standards require."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, contents in files.items():
            package.writestr(zipfile.ZipInfo(name, MADE), contents, zipfile.ZIP_DEFLATED)


def main() -> None:
    """Write the packages for learning platforms from the built site."""
    if not (SITE / "index.html").exists():
        sys.exit("There is no built site; run python -m course.build first.")
    began = time.perf_counter()
    for name, files in packages(SITE).items():
        write(BUILD / name, files)
        size = (BUILD / name).stat().st_size / 1e6
        print(f"Wrote build/{name}, {len(manifests.lessons.numbered())} lessons, {size:.1f} MB")
    print(f"in {time.perf_counter() - began:.0f} s")
