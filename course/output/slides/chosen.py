"""Chooses the parts of a lesson that are on its slides, and their order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

from course import html_tree
from course.html_tree import Element
from course.lessons import Lesson
from course.output.slides.sentences import parted, words
from widgets.kit.widget import all_widgets

MOST = 20  # slides in a deck, if the kinds that it can spare are enough for that
ON_A_SLIDE = 55  # most words of a rule or a question on a slide; the speaker says the rest
OF_AN_ANSWER = 50
OF_A_SYMPTOM = 28
OF_A_CASE = 80
ALONG = 35  # a paragraph of at most so many words is put on the slide of the paragraph before
DOMAIN = ("Checked against", "Good to")  # the first words of a rule's small print
SYMPTOM, RESPONSE = "Symptom:", "First response:"
SPARED_FIRST = ("trace", "picture", "property")  # kinds of slides that a long deck can do without
FREE = ("div", "table", "ul", "ol", "pre", "figure")  # elements that are not prose: each counts as COUNTED
COUNTED = 12  # words that an element of FREE counts as


@dataclass(frozen=True)
class Slide:
    """One slide: what is seen, what a key reveals, and what the speaker may say."""

    kind: str
    section: str  # of the lesson, shown in small print above the slide
    title: Markup = Markup()
    body: Markup = Markup()
    answers: tuple[Markup, ...] = ()  # the choices of a poll
    right: int = -1  # the index of the right choice
    reveal: Markup = Markup()
    notes: Markup = Markup()
    figure: str = ""  # the address of a widget in its state, from the home page
    summary: str = ""  # the widget's words in that state


# -- a lesson's pieces ---------------------------------------------------------------------------------------
def pieces(element: Element) -> Iterator[Element]:
    """Headings, figures, boxes and paragraphs of a page in order, including those inside a wide part of the
    page."""
    for child in element:
        wraps = child.tag == "div" and not html_tree.classes(child) & {"admonition", "math"}
        if wraps and html_tree.classes(child) & {"wide", "widget-block"}:
            yield from pieces(child)
        else:
            yield child


def of_lesson(lesson: Lesson, article: Element, part: str) -> list[Slide]:
    """All slides of a lesson, made from its page's article; no more than fit into an hour."""
    return at_most(MOST, list(_slides(lesson, article, part)))


def _slides(lesson: Lesson, article: Element, part: str) -> Iterator[Slide]:
    section, ended = "", False
    tried, question = False, html_tree.first(article, "question")
    yield Slide(
        "opening",
        f"{part} · Lesson {lesson.number}",
        Markup.escape(lesson.title),
        Markup(html_tree.inner(question)),
    )
    for piece in pieces(article):
        kinds = html_tree.classes(piece)
        if piece.tag == "h2":
            section, ended = html_tree.text(piece), piece.get("id") == "takeaway"
        elif ended and piece.tag == "p":
            yield _takeaway(piece, section)
            ended = False
        elif piece.tag == "figure":
            yield from _figure(piece, section)
        elif "case" in kinds:
            yield from _case(piece)
        elif kinds & {"rule", "property"}:
            yield _rule(piece, section, "rule" if "rule" in kinds else "property")
        elif "breaks" in kinds:
            yield _breaks(piece)
        elif "exercise" in kinds and not tried and html_tree.find(piece, "answer"):
            yield _exercise(piece)
            tried = True


def at_most(most: int, slides: list[Slide]) -> list[Slide]:
    """At most this many slides. The kinds in SPARED_FIRST are left out first, beginning with the last slide
    of a kind; the picture that opens the lesson always stays."""
    opening_picture = next((slide for slide in slides if slide.kind == "picture"), None)
    for kind in SPARED_FIRST:
        for slide in reversed(slides[:]):
            if len(slides) > most and slide.kind == kind and slide is not opening_picture:
                slides = [other for other in slides if other is not slide]
    return slides


# -- each kind -----------------------------------------------------------------------------------------------
def _html(elements: Iterable[Element]) -> Markup:
    return Markup("".join(html_tree.html(element) for element in elements))


def _title(box: Element) -> Markup:
    words = html_tree.inner(html_tree.first(box, "admonition-title")).removeprefix("Rule: ").strip()
    return Markup(words[:1].upper() + words[1:])


def _inside(box: Element) -> list[Element]:
    """The contents of a box below its title."""
    return [child for child in box if "admonition-title" not in html_tree.classes(child)]


def _led(blocks: Iterable[Element], most: int) -> tuple[list[Element], list[Element]]:
    """The part of these blocks that is put on a slide, and the rest, for the notes."""
    shown, said = [], []
    for block in blocks:
        if said or html_tree.text(block).startswith(DOMAIN):
            said.append(block)
        elif block.tag in FREE:
            shown.append(block)
            most -= COUNTED
        else:
            lead, rest = parted(block, most) if most > 0 else (None, block)
            shown += [lead] if lead is not None else []
            said += [rest] if rest is not None else []
            most -= words(lead) if lead is not None else 0
    return shown, said


def _case(box: Element) -> Iterator[Slide]:
    """The slides of the case: as many paragraphs on a slide as can be read from the back row. Text in
    brackets goes into the notes."""
    blocks = _inside(box)
    aside = [block for block in blocks if html_tree.text(block).startswith("(")]
    groups: list[list[Element]] = []
    for block in blocks:
        if block in aside:
            continue
        count = sum(words(one) for one in groups[-1]) if groups else 0
        leads_on = bool(groups) and html_tree.text(groups[-1][-1]).endswith(":")
        if groups and (leads_on or words(block) <= ALONG or count + words(block) <= OF_A_CASE):
            groups[-1].append(block)
        else:
            groups.append([block])
    for group in groups:
        notes = _html(aside) if group is groups[-1] else Markup()
        yield Slide("case", html_tree.text(box[0]), body=_html(group), notes=notes)


def _rule(box: Element, section: str, kind: str) -> Slide:
    shown, said = _led(_inside(box), ON_A_SLIDE)
    return Slide(kind, section, _title(box), _html(shown), notes=_html(said))


def _breaks(box: Element) -> Slide:
    """The slide about what goes wrong and how to see it; what to do about it is in the speaker's notes."""
    seen, done = Element("ul"), Element("ul")
    for paragraph in box.iter("p"):
        at = next((at for at, one in enumerate(paragraph) if html_tree.text(one) == RESPONSE), None)
        if at is None:
            continue
        told, rest = _item(list(paragraph)[:at]), None
        if words(told) > OF_A_SYMPTOM:
            told, rest = _shortened(told)
        response = _item([paragraph[0], *list(paragraph)[at:]])
        if rest is not None:
            response.insert(1, rest)
        seen.append(told)
        done.append(response)
    return Slide("breaks", "", _title(box), _html([seen]), notes=_html([done]))


def _shortened(told: Element) -> tuple[Element, Element]:
    """The name of what breaks and its symptom, cut to the room on the slide; and the part that was cut."""
    at = next((at for at, one in enumerate(told) if html_tree.text(one) == SYMPTOM), 1)
    before = _named("span", _item(list(told)[1:at]))
    before.text, told[0].tail = told[0].tail, " "
    lead, rest = parted(_item([told[0], *list(told)[at:]]), OF_A_SYMPTOM)
    if rest is not None:
        before.append(_named("span", rest))
    return lead, before


def _item(children: Iterable[Element]) -> Element:
    item = Element("li")
    item.extend(children)
    return item


def _named(tag: str, element: Element) -> Element:
    element.tag = tag
    return element


def _exercise(box: Element) -> Slide:
    """The first exercise, for pairs, and the numbers that it asks for."""
    asked = []
    for form in html_tree.find(box, "answer"):
        line = Element("p")
        line.text = f"{html_tree.text(html_tree.first(form, 'answer-asked'))}: "
        number = Element("strong")
        number.text = form.get("data-shown")
        line.append(number)
        asked.append(line)
    question = [
        one for one in _inside(box) if one.tag != "details" and "answers" not in html_tree.classes(one)
    ]
    shown, said = _led(question, 2 * ON_A_SLIDE)
    return Slide("exercise", "In pairs", _title(box), _html(shown), reveal=_html(asked), notes=_html(said))


def _takeaway(paragraph: Element, section: str) -> Slide:
    return Slide("takeaway", section, body=Markup(html_tree.inner(paragraph)))


def _figure(figure: Element, section: str) -> Iterator[Slide]:
    if "data-widget" in figure.attrib:
        yield from _widget(figure, section)
    elif captions := list(figure.iter("figcaption")):
        caption = captions[0]
        lead, rest = parted(caption, 0)
        kind = "trace" if "trace" in html_tree.classes(figure) else "picture"
        figure = _copy(figure)
        html_tree.remove(figure, lambda one: one.tag == "figcaption")
        notes = Markup(f"<p>{html_tree.inner(rest)}</p>") if rest is not None else Markup()
        yield Slide(kind, section, Markup(html_tree.inner(lead)), _html([figure]), notes=notes)


def _widget(figure: Element, section: str) -> Iterator[Slide]:
    """A poll, if the figure asks for a prediction, and the figure in the state that shows what is right."""
    state = _first_state(figure)
    if polls := html_tree.find(figure, "widget-predict"):
        yield _poll(polls[0], section)
        state |= json.loads(polls[0].get("data-seen", "{}")).get("state", {})
    slug = figure.attrib["data-widget"]
    widget = all_widgets()[slug]()
    widget.set_state(state)
    query = urlencode({f"{slug}.{name}": text for name, text in state.items()})
    address = f"{slug}/" + (f"?{query}" if query else "")
    summary = widget.shown()["summary"]
    yield Slide("figure", section, Markup.escape(widget.question), figure=address, summary=summary)


def _first_state(figure: Element) -> dict[str, str]:
    """The controls that a lesson's fence sets, in the form of an address's query."""
    slug, initial = figure.attrib["data-widget"], json.loads(figure.get("data-initial", "{}"))
    widget = all_widgets()[slug]()
    widget.set_raw(initial)
    return {name: widget.controls()[name].write(getattr(widget, name)) for name in initial}


def _poll(box: Element, section: str) -> Slide:
    question = html_tree.first(box, "widget-predict-question")
    html_tree.remove(question, lambda one: one.tag == "strong" and html_tree.text(one) == "Predict first.")
    buttons = [button for button in box.iter("button") if "data-answer" in button.attrib]
    marks = [button.get("data-answer") for button in buttons]
    why = html_tree.first(box, "widget-why")
    for told in ("data-said-and-true", "data-verdict", "data-gone-to"):
        html_tree.remove(why, lambda one, told=told: told in one.attrib)
    number, (told, rest) = box.get("data-shown", ""), parted(_named("p", _stripped(why)), OF_AN_ANSWER)
    right = Markup(f'<p class="slide-right">{Markup.escape(number)}</p>') if number else Markup()
    return Slide(
        "poll",
        section,
        body=Markup(html_tree.inner(question).strip()),
        answers=tuple(Markup(html_tree.inner(button)) for button in buttons),
        right=marks.index("right") if buttons else -1,
        reveal=right + _html([told]),
        notes=_html([rest] if rest is not None else []),
    )


def _stripped(element: Element) -> Element:
    """The element without its attributes and without leading space."""
    element.attrib, element.text = {}, (element.text or "").lstrip()
    return element


def _copy(element: Element) -> Element:
    return html_tree.parse(html_tree.html(element))
