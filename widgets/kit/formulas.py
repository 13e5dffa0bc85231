"""The Markdown fence for the sheet of formulas: the boxed rules of all lessons, each as its lesson has it.

    ``` formulas
    ```

Nothing is written twice: a rule is read out of its lesson when the page is built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment
from markdown import Markdown
from markupsafe import Markup
from mkdocs.config import load_config

from widgets.kit import boxes
from widgets.kit.locate import LESSONS

RULE = re.compile(r'^!!! rule "(?:Rule: )?(?P<title>.+)"\n(?P<body>(?:\n|    .*\n)+)', re.MULTILINE)
LINK = re.compile(r"\]\(((?:\d\d-)?[\w-]+)\.md(#[\w-]*)?\)")

PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""
<nav class="formulas-contents" aria-label="Lessons on this sheet"><ul>
{% for lesson in lessons %}<li><a href="#{{ lesson.name }}">{{ lesson.title }}</a></li>
{% endfor %}</ul></nav>
{% for lesson in lessons %}<section class="formulas wide">
<h2 id="{{ lesson.name }}">{{ lesson.title }}<a class="headerlink" href="#{{ lesson.name }}" title="Link to this section">#</a></h2>
<div class="formulas-sheet">
{% for rule in lesson.rules %}<div class="admonition rule">
<p class="admonition-title"><a href="../{{ lesson.name }}/#{{ rule.anchor }}">{{ rule.title[0] | upper }}{{ rule.title[1:] }}</a></p>
{{ rule.html }}
</div>
{% endfor %}</div></section>
{% endfor %}""")


@dataclass(frozen=True)
class Rule:
    """One boxed rule: its title, its place in the lesson, its text as Markdown."""

    title: str
    anchor: str
    source: str

    @property
    def html(self) -> Markup:
        """The rule as the lesson shows it; links to lessons lead there from the sheet."""
        text = LINK.sub(lambda link: f"](../{link[1]}/{link[2] or ''})", self.source)
        return Markup(_converter().reset().convert(text))


@cache
def _converter() -> Markdown:
    """As mkdocs converts a lesson, but for what belongs to the lesson: a box's own address, a word's first use."""
    config = load_config(str(LESSONS.parent / "mkdocs.yml"))
    extensions = [name for name in config.markdown_extensions if name not in ("widgets.kit.boxes", "widgets.kit.glossary")]
    return Markdown(extensions=extensions, extension_configs=config.mdx_configs)


def rules(text: str) -> list[Rule]:
    """The boxed rules of one lesson's source, in their order."""
    return [Rule(found["title"], boxes.address("rule", found["title"]), re.sub(r"^    ", "", found["body"], flags=re.MULTILINE).strip() + "\n")
            for found in RULE.finditer(text)]


def lessons(folder: Path = LESSONS) -> list[dict]:
    """Every lesson that has rules: file name, numbered title, rules."""
    found = []
    for path in sorted(folder.glob("[0-9][0-9]-*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# (.+)$", text, re.MULTILINE)[1]
        if has := rules(text):
            found.append({"name": path.stem, "title": f"{path.stem[:2]} {title}", "rules": has})
    return found


def format(source, language, css_class, options, md, **kwargs) -> Markup:
    """The pymdownx superfences formatter."""
    return PAGE.render(lessons=lessons()).strip()
