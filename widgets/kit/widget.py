"""The base class of all widgets: written once, live with Python behind it and compiled for the page without.

A widget declares controls, then methods: ``@part`` gives columns of numbers for one data source, ``@readout`` a short
formatted value, ``@regime`` a condition with the words to show when it holds, ``summary`` one sentence that says what is
seen, and ``figure`` draws glyphs once over the parts' sources. It computes nothing itself: methods call the engine.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache, cached_property, wraps
from typing import NamedTuple

import numpy as np
import param

from engine import check
from widgets.kit import javascript, tabulate
from widgets.kit.controls import BadValue, Control
from widgets.kit.symbolic import Graph, NotTraceable, Symbol


def part(*controls, tabulated=False, shown=True):
    """Columns of numbers for the data source of the method's name; depends on the named controls and no others.

    ``tabulated``: the method executes an algorithm that cannot be traced; it is run at every stop of its controls.
    ``shown=False``: the columns are places on the picture, of no use to a reader who opens the data or takes the CSV.
    """
    def mark(method):
        method = param.depends(*controls)(method)
        method.part_of, method.tabulated, method.part_shown = controls, tabulated, shown
        return executed(*controls)(method) if tabulated else method
    return mark


def executed(*controls):
    """Columns of numbers from an algorithm that is run at every stop of the named controls, for parts and words to read.

    It is not drawn itself. Where it is traced, shorter runs are padded: give columns of one length if parts read them.
    """
    def mark(method):
        method.table_of = controls
        return method
    return mark


def once(method):
    """Asked of the engine once for each state, however many parts and words need it."""
    @wraps(method)
    def asked(self):
        if isinstance(self, Trace):         # there equal steps are one step anyway
            return method(self)
        showing = self.__dict__.get("_showing", {})     # while everything is shown, the state stands still
        if method.__name__ not in showing:
            showing[method.__name__] = of_state(self)
        return showing[method.__name__]

    def of_state(self):
        state, kept = tuple(self.raw_state().values()), self.__dict__.setdefault("_asked", {})
        if kept.get(method.__name__, (None,))[0] != state:
            kept[method.__name__] = state, method(self)
        return kept[method.__name__][1]
    return asked


def readout(label, help="", given=False):
    """A short value with a label. The method returns a text, or (text, alarm) with the condition that colours it.

    ``given``: it is what the reader is given to work with, and stands in a table above the controls.
    """
    def mark(method):
        method.readout_label, method.readout_help, method.readout_given = label, help, given
        return method
    return mark


def regime(target=False):
    """A state of affairs worth naming. The method returns (condition, words). ``target``: it is the one to *break it* by."""
    def mark(method):
        method.regime_target = target
        return method
    return mark


def hint(part):
    """What each mark of a part says under the pointer: a text for each row (``phrase``, ``select``, ``show`` on columns).

    The part's marks are found by its columns left, right, bottom and top, or by x and y. The texts are made on the page,
    when a pointer asks for them, so that a drag does not wait for them.
    """
    def mark(method):
        method.hint_of = part
        return method
    return mark


def document(label, file):
    """A text to take along, such as another program's settings: shown under its label, to be copied or saved as a file."""
    def mark(method):
        method.document_label, method.document_file = label, file
        return method
    return mark


def action(label, columns):
    """Something that only Python can do, such as to measure this machine: a button where the page is served, else nothing.

    The method is given the seconds it may take at most (RuntimeError, with words for the reader, when it cannot) and
    runs in a thread of its own, so it reads no controls. It returns {"columns": … for the source of its name, which is
    empty until then, "ranges": what the axes must reach, "words": a sentence}.
    """
    def mark(method):
        method.action_label, method.action_columns = label, columns
        return method
    return mark


class Widget(param.Parameterized):
    """Subclasses set the texts below; their module's name is the slug."""

    question = ""        # the figure's title
    assumptions = ""     # the caption: what the model behind the picture takes for granted
    formula = ""         # Markdown with $…$, shown on demand
    break_it = ""        # the invitation to find the regime in which the strategy fails
    presets: dict[str, dict] = {}
    drag: dict[str, tuple] = {}   # {"x": (control, change per pixel), "y": …}: dragging the picture moves controls
    intake = None        # an Intake: a file of the reader's from which controls are taken
    sections: tuple = ()          # folds that stand open: the widget is a form, and these are its parts
    paper = None                  # {"seed": control, "done": switch, …}: papers to draw, hand in and keep (paper.js)
    in_page = False               # an algorithm of thousands of rounds: the page runs it, several times as fast, served or not
    tap: dict[str, str] = {}      # {part: choice control}: a click picks the nearest point, or column if the part has no y

    @classmethod
    def slug(cls) -> str:
        return cls.__module__.rsplit(".", 1)[-1]

    @classmethod
    @cache
    def controls(cls) -> dict[str, Control]:
        """Name -> control, in the order in which the class declares them."""
        found = {name: p for name, p in cls.param.objects(instance=False).items() if isinstance(p, Control)}
        order = [name for base in reversed(cls.__mro__) for name in vars(base)]
        return dict(sorted(found.items(), key=lambda item: order.index(item[0])))

    @classmethod
    def methods(cls, mark: str) -> dict:
        """Name -> method for those that a decorator marked, in the order of declaration."""
        return {name: m for base in reversed(cls.__mro__) for name, m in vars(base).items() if hasattr(m, mark)}

    def summary(self) -> str:
        raise NotImplementedError

    def ranges(self) -> dict:
        """Range name -> [start, end] for axes with a better home once the hand rests; while it drags they stay."""
        return {}

    def ends(self) -> dict:
        """Player name -> the last frame of its run, where that depends on the other controls."""
        return {}

    def figure(self, sources):
        raise NotImplementedError

    # -- state ------------------------------------------------------------------------------------------------------
    def set_state(self, texts: dict) -> None:
        """Set controls from texts, as they stand in a fence or a link; BadValue names the one that does not fit."""
        controls = self.controls()
        for name, raw in texts.items():
            if name not in controls:
                raise BadValue(f"{self.slug()} has no control {name!r}; it has {', '.join(controls)}")
        self.param.update(**{name: controls[name].read(raw) for name, raw in texts.items()})

    def set_raw(self, values: dict) -> None:
        """Set controls from what the page holds (numbers, indices), held to the bounds."""
        controls = self.controls()
        checked = {}
        for name, value in values.items():
            control = controls[name]
            checked[name] = control.at(value) if control.kind == "choice" else control.read(value)
        self.param.update(**checked)

    def raw_state(self) -> dict:
        return {name: control.raw(getattr(self, name)) for name, control in self.controls().items()}

    # -- what is shown ----------------------------------------------------------------------------------------------
    def shown(self) -> dict:
        """Everything the widget shows for its present state, as plain values."""
        with check.trusted():
            self._showing = {}
            try:
                return _shown(type(self), self)
            finally:
                del self._showing

    def hints(self) -> dict:
        """Part -> what each of its marks says."""
        with check.trusted():
            return _hints(type(self), self)


def _readout(value) -> dict:
    text, alarm = value if isinstance(value, tuple) else (value, False)
    return {"text": text, "alarm": alarm}


def _rows(view, columns: dict) -> dict:
    """Without the rows at the end that an algorithm had no number for; it has a place for as many as there can be."""
    if isinstance(view, Trace):
        return javascript.Rows(columns) if view._may_end_early() else columns
    lists = {name: column for name, column in columns.items() if np.ndim(column)}
    numbers = [np.asarray(column, dtype=float) for column in lists.values() if np.asarray(column).dtype.kind not in "US"]
    if not any(np.isnan(column[-1:]).any() for column in numbers):
        return columns
    length = min(map(len, lists.values()))
    known = ~np.any([np.isnan(column[:length]) for column in numbers], axis=0)
    last = np.max(np.flatnonzero(known), initial=-1) + 1
    return columns | {name: column[:last] for name, column in lists.items()}


def _hints(cls, view) -> dict:
    return {method.hint_of: getattr(view, name)() for name, method in cls.methods("hint_of").items()}


def _shown(cls, view) -> dict:
    return {
        "parts": {name: _rows(view, getattr(view, name)()) for name in cls.methods("part_of")},
        "readouts": {name: _readout(getattr(view, name)()) for name in cls.methods("readout_label")},
        "regimes": {name: dict(zip(("met", "text"), getattr(view, name)())) for name in cls.methods("regime_target")},
        "documents": {name: getattr(view, name)() for name in cls.methods("document_label")},
        "ranges": view.ranges(),
        "ends": view.ends(),
        "summary": view.summary(),
    }


class Trace:
    """Stands for ``self`` while a widget is compiled: its controls are symbols, its methods the widget's own."""

    def __init__(self, cls, graph: Graph):
        self._cls, self._graph, self._used = cls, graph, set()

    def _may_end_early(self) -> bool:
        """Whether columns may have fewer rows than there is room for: an algorithm's, or those of a padded table."""
        return (any(node.op in ("program", "sweep") for node in self._graph.nodes)
                or any(np.isnan(table).any() for table in self._graph.tables))

    def __getattr__(self, name):
        if name in self._cls.controls():
            self._used.add(name)
            return self._cls.controls()[name].symbol(self._graph)
        found = next(vars(base)[name] for base in self._cls.__mro__ if name in vars(base))
        if hasattr(found, "table_of"):
            return lambda: tabulate.symbols(self._cls, name, self._graph, self._used)
        if isinstance(found, (property, cached_property)):
            return (found.fget if isinstance(found, property) else found.func)(self)
        if inspect.isfunction(found) and found.__code__.co_argcount == 1:
            return lambda: self._once(name, found)
        return found.__get__(self, self._cls) if hasattr(found, "__get__") else found

    def _once(self, name, method):
        """What a method without arguments gives: the same each time it is asked for, so it is traced once."""
        if name not in self._graph.results:
            view = Trace(self._cls, self._graph)
            self._graph.results[name] = method(view), view._used
        result, used = self._graph.results[name]
        self._used |= used
        return result


class Compiled(NamedTuple):
    """JavaScript that gives everything the widget shows from the values of its controls, the same for what its marks say
    under the pointer, and the tables that both read."""

    shown: str
    hints: str
    table: np.ndarray


@cache
def compile_widget(cls) -> Compiled:
    """The widget as a page without Python needs it."""
    graph = Graph()
    with check.trusted(), np.errstate(all="ignore"):
        for name, method in cls.methods("part_of").items():
            view = Trace(cls, graph)
            getattr(view, name)()
            if view._used != set(method.part_of):
                raise NotTraceable(f"{cls.slug()}.{name} declares the controls {sorted(method.part_of)} "
                                   f"but reads {sorted(view._used)}")
        shown, hints = _shown(cls, Trace(cls, graph)), _hints(cls, Trace(cls, graph))
    return Compiled(javascript.function(graph, shown), javascript.function(graph, hints),
                    np.concatenate([np.zeros(0), *(t.ravel() for t in graph.tables)]))


@cache
def all_widgets() -> dict[str, type[Widget]]:
    """Slug -> class, for every module in widgets/: putting a file there is all it takes."""
    import widgets
    found = {}
    for module in pkgutil.iter_modules(widgets.__path__):
        if not module.ispkg:
            contents = vars(importlib.import_module(f"widgets.{module.name}")).values()
            for cls in contents:
                if isinstance(cls, type) and issubclass(cls, Widget) and cls.__module__ == f"widgets.{module.name}":
                    found[module.name] = cls
    return found


__all__ = ["Symbol", "Widget", "action", "all_widgets", "compile_widget", "document", "executed", "hint", "once", "part", "readout",
           "regime"]
