"""One open page with Python behind it. Its document holds one small model, so a session costs little to keep."""

from __future__ import annotations

from threading import Lock, Thread

from bokeh.core.properties import Any
from bokeh.model import DataModel

from widgets.kit.answers import Answers, packed

LONGEST_ACTION_S = 20.0
ANSWERS = Answers()
ACTING = Lock()  # one action at a time on this machine: two measurements would measure each other


class Conversation(DataModel):
    """``question``: {number, widget, values} from the page, or {number, widget, action}.

    ``answer``: {number, text, numbers} (what is shown, or what an action gave) or {number, refused} from Python.
    """

    question = Any(default={})
    answer = Any(default={})


class Session:
    """Answers a page's questions with the widgets' own methods."""

    def __init__(self, document):
        self.document = document
        self.model = Conversation()
        self.model.on_change("question", self.answer)
        document.add_root(self.model)

    def answer(self, _attribute, _old, question) -> None:
        try:
            if "action" in question:
                return self.act(ANSWERS.widget(question["widget"]), question["action"], question["number"])
            shown = ANSWERS.shown(question["widget"], question["values"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            self.model.answer = {"number": question.get("number", 0), "refused": str(error)}
            return
        self.model.answer = {"number": question["number"], **shown._asdict()}

    def act(self, widget, name: str, number: int) -> None:
        """Start one of the widget's actions in a thread; the answer follows, and other questions go on meanwhile."""
        method = widget.methods("action_label")[name]
        if not ACTING.acquire(blocking=False):
            busy = "Another reader's run is not over yet. Try again in a few seconds."
            self.model.answer = {"number": number, "refused": busy}
            return

        def work():
            try:
                answer = {"number": number, **packed(method(widget, LONGEST_ACTION_S))._asdict()}
            except Exception as error:  # whatever it was, the page waits for an answer
                answer = {"number": number, "refused": str(error)}
            finally:
                ACTING.release()
            self.document.add_next_tick_callback(lambda: setattr(self.model, "answer", answer))

        Thread(target=work, daemon=True).start()
