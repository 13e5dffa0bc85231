"""One open page with Python behind it. Its document holds one small model, so a session costs little to keep."""

from __future__ import annotations

import numpy as np
from bokeh.core.properties import Any
from bokeh.model import DataModel

from widgets.kit.widget import all_widgets


class Conversation(DataModel):
    """``question``: {number, widget, values} from the page. ``answer``: {number, shown} from Python."""

    question = Any(default={})
    answer = Any(default={})


class Session:
    """Answers a page's questions with the widgets' own methods."""

    def __init__(self, document):
        self.widgets = {}
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
            widget.set_raw(question["values"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            self.model.answer = {"number": question.get("number", 0), "refused": str(error)}
            return
        self.model.answer = {"number": question["number"], "shown": plain(widget.shown())}


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
