"""One open page with Python behind it. Its document holds one small model, so a session costs little to keep."""

from __future__ import annotations

import logging
from threading import Lock, Thread

from bokeh.core.properties import Any
from bokeh.model import DataModel

from widgets.kit.answers import Answers, packed

LONGEST_ACTION_S = 20.0
LONGEST_REFUSAL = 200     # characters: what was sent may be as long as it likes
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
        """Answer a page, or whoever else has found the socket: whatever was sent, words come back and the session stays well."""
        number = _number(question)
        try:
            if "action" in question:
                return self.act(ANSWERS.widget(question["widget"]), question["action"], number)
            self.model.answer = {"number": number, **ANSWERS.shown(question["widget"], question["values"])._asdict()}
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            self.refuse(number, f"not a question of these pages: {error}")
        except Exception:  # a fault of ours: the log has it, and the page need not wait for ever
            logging.exception("no answer to %.300r", question)
            self.refuse(number, "it cannot be computed")

    def refuse(self, number: int, why: str) -> None:
        self.model.answer = {"number": number, "refused": why[:LONGEST_REFUSAL]}

    def act(self, widget, name: str, number: int) -> None:
        """Start one of the widget's actions in a thread; the answer follows, and other questions go on meanwhile."""
        method = widget.methods("action_label")[name]
        if not ACTING.acquire(blocking=False):
            return self.refuse(number, "Another reader's run is not over yet. Try again in a few seconds.")

        def work():
            try:
                answer = {"number": number, **packed(method(widget, LONGEST_ACTION_S))._asdict()}
            except Exception as error:  # whatever it was, the page waits for an answer
                answer = {"number": number, "refused": str(error)}
            finally:
                ACTING.release()
            self.document.add_next_tick_callback(lambda: setattr(self.model, "answer", answer))

        Thread(target=work, daemon=True).start()


def _number(question) -> int:
    """The question's number, by which the page knows the answer again; 0 where there is none."""
    number = question.get("number") if isinstance(question, dict) else None
    return number if isinstance(number, int) and abs(number) < 2**53 else 0
