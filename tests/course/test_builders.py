"""Two programs can make the pages: mkdocs.yml, the templates and the extensions keep to what both have."""

import ast
import json
import re

import pytest
import yaml

from course import build, settings, zensical
from tests import builders
from tests.conftest import ROOT

TEMPLATES = sorted((ROOT / "site" / "theme").rglob("*.html"))
OURS = {"course/rendered.py", "course/quick.py"}  # which run mkdocs itself
# what Zensical's templates lack, or understand otherwise (docs/builder.md)
LACKING = {
    r"\.(startswith|endswith|split|strip)\(": "a method of a text",
    r"\bwordcount\b": "a filter that is not there",
    r"page\.(file|is_homepage|is_page|is_link)\b": "a member of a page that is not there",
    r"\bin nav\b(?!\.)": "the navigation itself",
    r"for page in": "a loop whose item is called page",
    r"\| replace\([^()]*,[^()]*, *\d": "a third argument",
}


def test_templates_keep_to_what_both_programs_have():
    assert len(TEMPLATES) > 8
    for path in TEMPLATES:
        text = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        code = " ".join(re.findall(r"\{[{%].*?[%}]\}", text, re.DOTALL))
        assert {what for form, what in LACKING.items() if re.search(form, code)} == set(), path.name


def test_only_what_runs_mkdocs_imports_it():
    found = set()
    for path in (ROOT / "course").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if any(name.split(".")[0] in ("mkdocs", "material") for name in names):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == OURS


def test_settings_are_read_as_mkdocs_reads_them():
    from mkdocs.config import load_config

    config = load_config(str(settings.FILE))
    names, options = settings.extensions()
    assert names == list(config.markdown_extensions) and all(
        (options.get(name) or {}) == (given or {}) for name, given in config.mdx_configs.items()
    )
    assert [settings.of(name) for name in ("site_url", "nav", "site_description")] == [
        config[name] for name in ("site_url", "nav", "site_description")
    ]
    assert "!relative" not in settings.FILE.read_text(encoding="utf-8")


def test_links_that_lead_to_no_page_are_put_right(tmp_path):
    (tmp_path / "a").mkdir()
    page = tmp_path / "a" / "index.html"
    page.write_text(
        '<link href="../../x.css"><article><a href="../../tool/">t</a><img src="../b.png"></article>'
    )
    entry = {"location": "a/", "title": "A", "text": "words", "level": 1, "path": ["Home"], "tags": []}
    (tmp_path / "search.json").write_text(json.dumps({"config": {}, "items": [entry]}))
    zensical.finish(tmp_path)
    assert (
        page.read_text()
        == '<link href="../../x.css"><article><a href="../tool/">t</a><img src="../b.png"></article>'
    )
    zensical.search(tmp_path)
    assert json.loads((tmp_path / "search.json").read_text())["items"] == [entry]


def test_zensical_s_search_gets_weights_as_an_order_and_other_words_as_titles(tmp_path):
    own = [
        {"location": name, "title": name, "text": "", "level": 1, "path": ["Home"], "tags": []}
        for name in "ab"
    ]
    (tmp_path / "search.json").write_text(json.dumps({"config": {}, "items": own}))
    docs = [
        {"location": "a", "title": "A", "text": "first", "boost": 0.5},
        {"location": "b", "title": "B", "text": "N&#x02212;1 &lt; 2", "boost": 2, "tags": ["OOM"]},
        {"location": "a#w-c", "title": "C", "text": "", "boost": 1, "tags": ["Batch"]},
    ]
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "search_index.json").write_text(json.dumps({"docs": docs}))
    zensical.search(tmp_path)
    items = json.loads((tmp_path / "search.json").read_text())["items"]
    assert [(each["location"], each["title"]) for each in items] == [
        ("b", "OOM: B"),
        ("b", "B"),
        ("a#w-c", "C"),
        ("a", "A"),
    ]
    assert items[1]["text"] == "N−1 &lt; 2<p>OOM</p>" and items[2]["path"] == ["Home"]


def test_a_week_compares_the_two():
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "every.yml").read_text(encoding="utf-8"))
    assert "make builders" in [step.get("run") for step in flow["jobs"]["builders"]["steps"]]
    assert set(build.BUILDERS) == set(builders.SITES)


def test_a_difference_is_seen(tmp_path, monkeypatch):
    """In words, links and titles, and of a picture how much."""
    for name, said in (("mkdocs", "one two"), ("zensical", "one three")):
        folder = tmp_path / name / "a"
        folder.mkdir(parents=True)
        html = f'<title>{said}</title><article><p>{said}</p><a href="{said[-1]}">go</a></article>'
        (folder / "index.html").write_text(html)
    monkeypatch.setattr(builders, "SITES", {name: tmp_path / name for name in ("mkdocs", "zensical")})
    assert [each.split(":")[0] for each in builders.told("a")] == ["words", "links", "title"]
    white, half = builders.Image.new("RGB", (10, 10), "white"), builders.Image.new("RGB", (10, 10), "white")
    half.paste("black", (0, 0, 10, 5))
    assert builders.differs(white, half) == 0.5 and builders.differs(white, white) == 0.0
    assert builders.differs(white, white.crop((0, 0, 10, 8))) == pytest.approx(0.2)
