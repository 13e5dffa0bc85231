"""One open page with Python behind it. Its document holds one small model, so a session costs little to keep."""

from __future__ import annotations

from threading import Lock, Thread

import numpy as np
from bokeh.core.properties import Any
from bokeh.model import DataModel

from widgets.kit.widget import all_widgets


LONGEST_ACTION_S = 20.0
ACTING = Lock()  # one action at a time on this machine: two measurements would measure each other


class Conversation(DataModel):
    """``question``: {number, widget, values} from the page, or {number, widget, action}.

    ``answer``: {number, shown}, {number, acted} or {number, refused} from Python.
    """

    question = Any(default={})
    answer = Any(default={})


class Session:
    """Answers a page's questions with the widgets' own methods."""

    def __init__(self, document):
        self.widgets, self.document = {}, document
        self.model = Conversation()
        self.model.on_change("question", self.answer)
        document.add_root(self.model)

    def widget(self, slug: str):
        """The page's instance of a widget, made when it is first asked for."""
        if slug not in self.widgets:
            self.widgets[slug] = all_widgets()[slug]()
        return self.widgets[slug]

    def answer(self, _attribute, _old, question) -> None:
        try:
            widget = self.widget(question["widget"])
            if "action" in question:
                return self.act(widget, question["action"], question["number"])
            widget.set_raw(question["values"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            self.model.answer = {"number": question.get("number", 0), "refused": str(error)}
            return
        self.model.answer = {"number": question["number"], "shown": plain(widget.shown())}

    def act(self, widget, name: str, number: int) -> None:
        """Start one of the widget's actions in a thread; the answer follows, and other questions go on meanwhile."""
        method = widget.methods("action_label")[name]
        if not ACTING.acquire(blocking=False):
            busy = "Another reader's run is not over yet. Try again in a few seconds."
            self.model.answer = {"number": number, "refused": busy}
            return

        def work():
            try:
                answer = {"number": number, "acted": plain(method(widget, LONGEST_ACTION_S))}
            except Exception as error:  # whatever it was, the page waits for an answer
                answer = {"number": number, "refused": str(error)}
            finally:
                ACTING.release()
            self.document.add_next_tick_callback(lambda: setattr(self.model, "answer", answer))

        Thread(target=work, daemon=True).start()


def plain(value):
    """Values as Bokeh's protocol carries them: arrays stay binary, numpy's own scalars become Python's."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist() if value.ndim == 0 or value.dtype.kind not in "fi" else np.ascontiguousarray(value, dtype=float)
    return value
