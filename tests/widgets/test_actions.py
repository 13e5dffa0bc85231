"""What only Python can do: run in a thread, one at a time, answered when done; nothing of it on a page
without a server."""

import json
import threading

from course import widget_html
from widgets.foundations.roofline import Roofline
from widgets.kit.drawing.figure import sources
from widgets.kit.server import session


class Document:
    """Runs callbacks at once, and lets a test wait for them."""

    def __init__(self):
        self.answered = threading.Event()

    def add_root(self, model):
        pass

    def add_next_tick_callback(self, callback):
        callback()
        self.answered.set()


def ask(page, number, **question):
    page.model.question = {"number": number, "widget": "roofline", **question}
    return page.model.answer


def test_an_action_answers_later_and_other_questions_meanwhile(monkeypatch):
    go, document = threading.Event(), Document()
    monkeypatch.setattr(Roofline, "this_machine", _slow(go))
    page, other = session.Session(document), session.Session(Document())
    assert ask(page, 1, action="this_machine") == {}
    assert "text" in ask(page, 2, values={"batch": 64})
    assert "another reader" in ask(other, 1, action="this_machine")["refused"].lower()
    go.set()
    assert document.answered.wait(5)
    assert page.model.answer["number"] == 1 and json.loads(page.model.answer["text"]) == {
        "words": "done in 20 s at most"
    }


def test_an_action_that_fails_says_so_and_frees_the_place(monkeypatch):
    for error in (RuntimeError("no time"), ZeroDivisionError("a bug")):
        document = Document()
        monkeypatch.setattr(Roofline, "this_machine", _failing(error))
        page = session.Session(document)
        ask(page, 1, action="this_machine")
        assert document.answered.wait(5)
        assert page.model.answer == {"number": 1, "refused": str(error)}


def test_an_unknown_action_is_refused():
    assert "refused" in ask(session.Session(Document()), 1, action="rm")


def test_without_a_server_there_is_no_button_and_nothing_drawn():
    html = str(widget_html.figure(Roofline(), "w-roofline"))
    assert '<p class="widget-action" hidden>' in html
    assert sources(Roofline())["this_machine"].data == {"x": [], "y": [], "name": []}


def _slow(go):
    def this_machine(self, longest_s):
        go.wait(5)
        return {"words": f"done in {longest_s:g} s at most"}

    return _marked(this_machine)


def _failing(error):
    def this_machine(self, longest_s):
        raise error

    return _marked(this_machine)


def _marked(method):
    method.action_label, method.action_columns = "Measure", ("x",)
    return method
