"""The lessons' pages by Zensical, which follows Material for MkDocs: ``make site BUILDER=zensical``.

It is installed in an environment of its own and reads the same mkdocs.yml, templates and Markdown extensions.
``finish`` puts right what it leaves otherwise than mkdocs does; docs/builder.md lists what still differs.
"""

from __future__ import annotations

import json
import os
import re
from html import unescape
from pathlib import Path

from engine.base.built import ROOT

HOME = ROOT / ".venv" / "zensical"
OUT = ROOT / "build" / "zensical"
PROGRAM = HOME / ("Scripts" if os.name == "nt" else "bin") / "zensical"
COMMAND = [str(PROGRAM), "build", "--clean", "--strict", "-f", "mkdocs.yml"]
ARTICLE = re.compile(r"<article.*</article>", re.DOTALL)
CODED = re.compile(r"&#\w+;")
BEYOND = re.compile(r'((?:href|src)=")\.\./\.\./')


def finish(site: Path) -> None:
    """Bring a site that Zensical has written into the form that the rest of the build reads."""
    for page in site.glob("*/index.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(ARTICLE.sub(_with_links, text, count=1), encoding="utf-8")
    found = json.loads((site / "search.json").read_text(encoding="utf-8"))
    docs = [{name: item[name] for name in ("location", "title", "text")} for item in found["items"]]
    index = site / "search" / "search_index.json"
    index.parent.mkdir(exist_ok=True)
    index.write_text(json.dumps({"config": found["config"], "docs": docs}), encoding="utf-8")


def _with_links(article: re.Match[str]) -> str:
    """An article whose links to what is no page (a figure, a picture) lead where they were written to: each
    has one ``../`` too many, and no page of the course is two folders deep."""
    return BEYOND.sub(r"\1../", article[0])


def search(site: Path) -> None:
    """Give the index that the build has enriched to Zensical's own search. That has no weights and does not
    look at tags: it puts titles before text, and what comes first in the index before its equals. So entries
    are sorted by their weights, and what people type to find a section gets entries of its own, whose titles
    begin with it."""
    place = site / "search.json"
    found = json.loads(place.read_text(encoding="utf-8"))
    known = {item["location"]: item for item in found["items"]}
    docs = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    aliases, items = [], []
    for doc in sorted(docs, key=lambda doc: -doc.get("boost", 1)):
        tags = doc.get("tags", [])
        page = known.get(doc["location"].partition("#")[0], {"path": ["Figures"]})
        about = known.get(doc["location"], {"level": 2, "path": page["path"], "location": doc["location"]})
        text = CODED.sub(lambda code: unescape(code[0]), doc["text"])  # which it would show as they are
        item = about | {"title": doc["title"], "text": text, "tags": []}
        if doc["location"] in known:  # the tags of a figure are its controls
            item["text"] += "".join(f"<p>{tag}</p>" for tag in tags)
            aliases += [item | {"title": f"{tag}: {doc['title']}", "text": ""} for tag in tags]
        items.append(item)
    found["items"] = aliases + items
    place.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
