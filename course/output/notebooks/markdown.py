"""A lesson's page as Markdown: formulas as LaTeX between dollar signs, links to lessons as links to their
notebooks, pictures embedded as data. Programs that become separate cells (``Cell``) split the text."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from course import html_tree
from course.drawing import alone
from course.html_tree import Element, classes

SPECIAL = re.compile(r"([\\`*_\[\]<$~|])")
OPENING = re.compile(r"^([#+>-]|\d+(?=[.)]))")  # at the start of a line, this would begin a heading or list
LEFT_OUT = {
    "headerlink",
    "lesson-end",
    "page-foot",
    "given",
    "bar",
    "answers",
    "kicker",
    "diagram-words",
    "puzzle-keys",
    "puzzle-doing",
    "puzzle-said",
    "puzzle-printed",
}
SENTENCES = {"drives", "lights"}  # they move a figure of the page
BLOCKS = {
    "p",
    "div",
    "ul",
    "ol",
    "dl",
    "table",
    "pre",
    "figure",
    "blockquote",
    "details",
    "section",
    "hr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "article",
    "nav",
}


@dataclass(frozen=True)
class Cell:
    """A program between two texts; ``kind`` is its purpose."""

    kind: str
    code: str


@dataclass
class Writer:
    """Writes elements as Markdown. ``link`` returns a link's address in a notebook, or '' for plain text.
    ``special`` returns the pieces for an element that is more than text, or None."""

    link: Callable[[str], str]
    special: Callable[[Element, Writer], list[str | Cell] | None]

    # -- inside a line ---------------------------------------------------------------------------------------
    def line(self, element: Element, in_table: bool = False) -> str:
        """The element's contents as one line."""
        parts = [_escaped(element.text)]
        for child in element:
            parts += [self._inline(child, in_table), _escaped(child.tail)]
        return re.sub(r"[ \n\t]+", " ", "".join(parts)).strip(" ")

    def _inline(self, element: Element, in_table: bool) -> str:
        tag, kinds = element.tag, classes(element)
        if kinds & LEFT_OUT or tag in ("button", "input", "script"):
            return ""
        if tag == "math":
            return f"${latex(element, in_table)}$"
        if tag == "code":
            return _code("".join(element.itertext()), in_table)
        if tag == "br":
            return "<br>"
        inside = self.line(element, in_table)
        ends = [_edge(element, 0), _edge(element, -1)]  # Markdown needs spaces outside of the stars
        if not inside:
            return " " if any(ends) else ""
        if tag in ("em", "i", "strong", "b"):
            star = "*" if tag in ("em", "i") else "**"
            inside = f"{star}{inside}{star}"
        elif tag == "small":
            inside = f"({inside})"
        elif tag in ("sup", "sub"):
            inside = f"<{tag}>{inside}</{tag}>"
        elif tag == "a" and not kinds & SENTENCES and (address := self.link(element.get("href", ""))):
            inside = f"[{inside}]({address})"
        elif tag in BLOCKS:
            raise ValueError(f"<{tag} class={element.get('class', '')!r}> stands inside a line")
        return f"{' ' if ends[0] else ''}{inside}{' ' if ends[1] else ''}"

    # -- blocks ----------------------------------------------------------------------------------------------
    def blocks(self, element: Element) -> list[str | Cell]:
        """The pieces for the contents of an element, in order."""
        found: list[str | Cell] = []
        words = Element("p")  # what stands between two blocks
        words.text = element.text
        for child in [*element, None]:
            if child is not None and child.tag not in BLOCKS:
                words.append(child)
                continue
            if line := self.line(words):
                found.append(_begun(line))
            if child is not None:
                found += self._block(child)
                words = Element("p")
                words.text = child.tail
        return found

    def _block(self, element: Element) -> list[str | Cell]:
        tag, kinds = element.tag, classes(element)
        if kinds & LEFT_OUT or tag in ("script", "noscript", "button", "form"):
            return []
        if (found := self.special(element, self)) is not None:
            return found
        if re.fullmatch("h[1-5]", tag):
            return [f"{'#' * int(tag[1])} {self.line(element)}"]
        if "math" in kinds:
            return [f"$${latex(next(element.iter('math')))}$$"]
        if tag == "pre" or "highlight" in kinds:
            return [fenced("".join(element.itertext()))]
        if tag == "figure":
            return self._figure(element)
        if "admonition" in kinds:
            title, *others = element
            return quoted(self.pieces(others, before=f"**{self.line(title)}**"))
        if tag == "blockquote":
            return quoted(self.blocks(element))
        if tag == "details":
            return self._details(element)
        if tag in ("ul", "ol"):
            return [self._list(element)]
        if tag == "dl":
            return [self._terms(element)]
        if tag == "table":
            return [self._table(element)]
        if tag == "hr":
            return ["---"]
        return self.blocks(element)

    def pieces(self, elements: Iterable[Element], before: str = "") -> list[str | Cell]:
        """The pieces of several blocks, after an optional first line."""
        found: list[str | Cell] = [before] if before else []
        return found + [piece for element in elements for piece in self._block(element)]

    def _details(self, element: Element) -> list[str | Cell]:
        """A folded element of the page stays folded, unless it contains a cell, which cannot be folded."""
        summary, *others = element
        inside = self.pieces(others)
        if any(isinstance(piece, Cell) for piece in inside):
            return [f"**{self.line(summary)}**", *inside]
        return folded(self.line(summary), [piece for piece in inside if isinstance(piece, str)])

    def _figure(self, element: Element) -> list[str | Cell]:
        """A picture, its caption, and its description in words. The picture is embedded as data, because
        JupyterLab does not show an attached SVG."""
        [drawn] = html_tree.find(element, "wide-form")
        picture = b64encode(alone.svg(drawn)).decode()
        title = next(drawn.iter("title")).text or ""
        told = [
            f"- {self.line(each)}" for words in html_tree.find(element, "diagram-words") for each in words
        ]
        caption = next(element.iter("figcaption"))
        names = [self._list(each) for each in html_tree.find(element, "trace-names")]
        return [
            f"![{_escaped(title)}](data:image/svg+xml;base64,{picture})",
            *names,
            self.line(caption),
            *folded("The same in words", ["\n".join(told)]),
        ]

    def _list(self, element: Element) -> str:
        items = []
        for at, item in enumerate(element, int(element.get("start", 1))):
            mark = "- " if element.tag == "ul" else f"{at}. "
            pieces = [piece for piece in self.blocks(item) if isinstance(piece, str)]
            items.append(mark + "\n\n".join(pieces).replace("\n", "\n" + " " * len(mark)))
        loose = any("\n\n" in item for item in items)
        return ("\n\n" if loose else "\n").join(re.sub(r"\n +(?=\n)", "\n", item) for item in items)

    def _terms(self, element: Element) -> str:
        rows = [
            f"- **{self.line(each)}**" if each.tag == "dt" else f"  {self.line(each)}" for each in element
        ]
        return "\n".join(rows)

    def _table(self, element: Element) -> str:
        rows = [list(row) for row in element.iter("tr")]
        head, *others = [[self.line(cell, in_table=True) for cell in row] for row in rows]
        if any("colspan" in cell.attrib or "rowspan" in cell.attrib for row in rows for cell in row):
            raise ValueError("a cell over several rows or columns has no place in Markdown")
        right = [re.search(r"text-align: ?(right|center)", cell.get("style", "")) for cell in rows[0]]
        rule = [{"right": "--:", "center": ":-:"}[found[1]] if found else "---" for found in right]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *others))


def _edge(element: Element, end: int) -> bool:
    words = "".join(element.itertext())
    return bool(words) and words[end] in " \n"


def _escaped(words: str | None) -> str:
    return re.sub(r"&(?=#?\w+;)", "&amp;", SPECIAL.sub(r"\\\1", words or ""))


def _begun(words: str) -> str:
    """A paragraph, escaped so that Markdown does not read its beginning as a heading or a list."""
    return OPENING.sub(lambda found: found[1] + "\\" if found[1].isdigit() else f"\\{found[1]}", words)


def _code(words: str, in_table: bool) -> str:
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{ticks}{pad}{words.replace('|', chr(92) + '|') if in_table else words}{pad}{ticks}"


def latex(element: Element, in_table: bool = False) -> str:
    """A formula's source, on one line; a bar in a table would end its cell."""
    source = " ".join(element.attrib["alttext"].split())
    return source.replace("|", r"\vert ") if in_table else source


def fenced(code: str, language: str = "") -> str:
    """A program as text."""
    return f"```{language}\n{code.rstrip()}\n```"


def quoted(pieces: Iterable[str | Cell]) -> list[str | Cell]:
    """The pieces as quotations; cells between them stay what they are."""
    found: list[str | Cell] = []
    for piece in pieces:
        if isinstance(piece, Cell):
            found.append(piece)
            continue
        marked = "\n".join(f"> {line}".rstrip() for line in piece.split("\n"))
        if found and isinstance(found[-1], str):
            found[-1] += f"\n>\n{marked}"
        else:
            found.append(marked)
    return found


def folded(title: str, pieces: list[str]) -> list[str | Cell]:
    """Text that a reader unfolds. Its heading is HTML, in which Markdown is not read."""
    title = re.sub(r"\\(.)", r"\1", title).replace("&", "&amp;").replace("<", "&lt;")
    return ["\n\n".join([f"<details><summary>{title}</summary>", *pieces, "</details>"])]
