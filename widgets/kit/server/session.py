"""One open page with Python behind it. Its document holds a single small model, so a session is cheap to
keep."""

from __future__ import annotations

import logging
from threading import Lock, Thread
from time import monotonic
from typing import Any

from bokeh.core import properties
from bokeh.document import Document
from bokeh.model import DataModel

from widgets.kit.server.answer_cache import Answers, packed
from widgets.kit.server.peers import PEERS
from widgets.kit.widget import Widget

LONGEST_ACTION_S = 20.0
LONGEST_REFUSAL = 200  # characters, because the input may be arbitrarily long
ANSWERS = Answers()
LOG = logging.getLogger(__name__)
PATIENCE_S = 60.0


class Actions:
    """Who may run an action. One runs at a time, because two measurements would disturb each other. Whoever
    ran the last one lets others go first who were refused meanwhile."""

    def __init__(self) -> None:
        self.lock, self.last = Lock(), None
        self.refused_s: dict[object, float] = {}

    def refusal(self, peer: object) -> str | None:
        """Why this peer has to wait; None if it is its turn, which ends with ``over``."""
        now = monotonic()
        self.refused_s = {one: when for one, when in self.refused_s.items() if now - when < PATIENCE_S}
        if not self.lock.acquire(blocking=False):
            self.refused_s[peer] = now
            return "Another reader's run is not over yet. Try again in a few seconds."
        self.refused_s.pop(peer, None)
        if peer is self.last and self.refused_s:
            self.lock.release()
            return "You ran this last, and another reader is waiting. Try again in a minute."
        self.last = peer
        return None

    def over(self) -> None:
        """The run is over."""
        self.lock.release()


ACTIONS = Actions()


class Conversation(DataModel):
    """``question``: {number, widget, values} from the page, or {number, widget, action}.

    ``answer``: {number, text, numbers} (what is shown, or what an action gave) or {number, refused} from
    Python.
    """

    question = properties.Any(default={})
    answer = properties.Any(default={})


class Session:
    """Answers a page's requests with the widgets' own methods."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.model: Any = Conversation()  # Bokeh declares no type for the values of properties
        self.model.on_change("question", self.answer)
        document.add_root(self.model)
        context: Any = getattr(document, "session_context", None)  # none in a test
        self.peer = PEERS.at(context.request.remote_ip or "") if context and context.request else self

    def answer(self, _attribute: str, _old: Any, question: Any) -> None:
        """Answer a page, or anyone else who has found the socket: whatever was sent, there is an answer and
        the session keeps working."""
        number = _number(question)
        try:
            if "action" in question:
                self.act(ANSWERS.widget(question["widget"]), question["action"], number)
                return
            self.model.answer = {
                "number": number,
                **ANSWERS.shown(question["widget"], question["values"])._asdict(),
            }
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            self.refuse(number, f"not a question of these pages: {error}")
        except Exception:  # our own fault: it is logged, and the page must not wait forever
            LOG.exception("no answer to %.300r", question)
            self.refuse(number, "it cannot be computed")

    def refuse(self, number: int, why: str) -> None:
        """Answer a request with the reason why there is no answer."""
        self.model.answer = {"number": number, "refused": why[:LONGEST_REFUSAL]}

    def act(self, widget: Widget, name: str, number: int) -> None:
        """Start one of the widget's actions in a thread; its answer follows later, and other requests are
        served meanwhile."""
        method = widget.methods("action_label")[name]
        if why := ACTIONS.refusal(self.peer):
            self.refuse(number, why)
            return

        def work():
            try:
                answer = {"number": number, **packed(method(widget, LONGEST_ACTION_S))._asdict()}
            except Exception as error:  # whatever it was, the page is waiting for an answer
                answer = {"number": number, "refused": str(error)}
            finally:
                ACTIONS.over()
            self.document.add_next_tick_callback(lambda: setattr(self.model, "answer", answer))

        Thread(target=work, daemon=True).start()


def _number(question) -> int:
    """The request's number, by which the page recognizes the answer; 0 if there is none."""
    number = question.get("number") if isinstance(question, dict) else None
    return number if isinstance(number, int) and abs(number) < 2**53 else 0
