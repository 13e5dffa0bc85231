"""The base class of all widgets: written once, live with Python behind it and compiled for a page without.

A widget declares controls, then methods: ``@part`` returns columns of numbers for one data source,
``@readout`` a short formatted value, ``@regime`` a condition with the words to show when it holds,
``summary`` one sentence that describes the picture, and ``figure`` draws glyphs once over the parts' sources.
Formulas belong to the engine: methods call it, and at most add, subtract, multiply and divide its results.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import param
from panel.viewable import Viewable, Viewer
from param.parameterized import batch_call_watchers

from engine.base import check
from widgets.kit import panel
from widgets.kit.compiler import tables, writer
from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.refusal import NotTranslatable, begins, place
from widgets.kit.compiler.symbols import Symbol, given_column
from widgets.kit.controls import BadValue, Choice, Control, is_reference

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure

PARTS = Path(__file__).resolve().parents[1]  # the folders of widgets, one for each part of the course

Method = TypeVar("Method", bound=Callable[..., Any])
Value = TypeVar("Value")


def part(*controls: str, tabulated: bool = False, shown: bool = True) -> Callable[[Method], Method]:
    """Columns of numbers for the data source with the method's name; depends on the named controls and no
    others.

    ``tabulated``: the method executes an algorithm that cannot be traced, so it is run at every stop of its
    controls. ``shown=False``: the columns are positions on the picture, of no use to a reader who opens the
    data or takes the CSV.
    """

    def mark(method):
        marked: Any = param.depends(*controls)(method)
        marked.part_of, marked.tabulated, marked.part_shown = controls, tabulated, shown
        return executed(*controls)(marked) if tabulated else marked

    return mark


def executed(*controls: str) -> Callable[[Method], Method]:
    """Columns of numbers from an algorithm that is run at every stop of the named controls, for parts and
    texts to read.

    It is not drawn itself. In a compiled widget shorter runs are padded, so return columns of equal length if
    parts read them.
    """

    def mark(method):
        method.table_of = controls
        return method

    return mark


def once(method: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """A method that is evaluated once per state, however many parts and texts need it."""

    @wraps(method)
    def asked(self):
        if isinstance(self, Trace):  # in a trace equal steps are one step anyway
            return method(self)
        known = self._answers()
        if method.__name__ not in known:
            known[method.__name__] = method(self)
        return known[method.__name__]

    return asked


def readout(
    label: str, help: str = "", given: bool = False, rest: bool = False
) -> Callable[[Method], Method]:
    """A short value with a label. The method returns a text, or (text, alarm) with the condition that marks
    it where the target is met.

    ``given``: the value is part of the task that the reader is given, and is shown in a table above the
    picture. ``rest``: the value is one of many further numbers, which are shown in a folded table.
    """

    def mark(method):
        method.readout_label, method.readout_help = label, help
        method.readout_given, method.readout_rest = given, rest
        return method

    return mark


def regime(target: bool = False) -> Callable[[Method], Method]:
    """A situation worth naming. The method returns (condition, words). ``target``: the situation is the one
    that *break it* asks the reader to find."""

    def mark(method):
        method.regime_target = target
        return method

    return mark


def hint(part: str) -> Callable[[Method], Method]:
    """The text of each mark of a part under the pointer, one per row (``phrase``, ``select``, ``show`` on
    columns).

    The part's marks are found by its columns left, right, bottom and top, or by x and y. The page makes the
    texts only when a pointer needs them, so that a drag does not wait for them.
    """

    def mark(method):
        method.hint_of = part
        return method

    return mark


def document(label: str, file: str, unfolded: bool = False) -> Callable[[Method], Method]:
    """A text that the reader may copy or save as a file, such as another program's settings. It is shown
    under its label, and not at all while it is empty. ``unfolded``: it is to be read at once."""

    def mark(method):
        method.document_label, method.document_file = label, file
        method.document_unfolded = unfolded
        return method

    return mark


def action(label: str, columns: tuple[str, str, str]) -> Callable[[Method], Method]:
    """Something that only Python can do, such as measuring this machine: a button where the page is served,
    otherwise nothing.

    The method gets the longest time it may take in seconds (RuntimeError, with words for the reader, if it
    cannot) and runs in a separate thread, so it must not read controls. It returns {"columns": … for the
    source of its name, which is empty until then, "ranges": what the axes must include, "words": a sentence}.
    """

    def mark(method):
        method.action_label, method.action_columns = label, columns
        return method

    return mark


class Widget(Viewer):
    """Subclasses set the texts below; the module's name is the slug.

    A widget is a component of Panel's: ``Roofline(model="llama3-8b", batch=64)`` stands in any app, and is
    served by ``panel serve`` on its file. ``live`` has what it shows, as parameters and sources.
    """

    question = ""  # the figure's title
    assumptions = ""  # the caption: what the model behind the picture assumes
    formula = ""  # Markdown with $…$, shown on demand
    break_it = ""  # the invitation to find the state in which the strategy fails
    presets: dict[str, dict] = {}
    drag: dict[
        str, tuple
    ] = {}  # {"x": (control, change per pixel), "y": …}: dragging the picture moves controls
    intake = None  # an Intake: a file of the reader's from which controls are set
    sections: tuple = ()  # folds that are open: the widget is a form, and these are its sections
    paper = None  # {"name", "seed": control, "done": switch, …}: papers to draw, hand in, keep (paper.js)
    in_page = False  # computed in the page even if Python serves it: long algorithms are faster there
    # {name: resting value}: columns that a script of the page hands over (view.give), for programs to read
    given: dict[str, tuple[float, ...]] = {}
    on_phone = ""  # the control that a phone shows unfolded, if that is not the first slider
    tap: dict[
        str, str
    ] = {}  # {part: choice control}: a click picks the nearest point, or column if the part has no y
    # {part: (number control, number control)}: a mark that is dragged onto another sets both to their rows
    carry: dict[str, tuple[str, str]] = {}
    # parts whose marks are pressed, with a pointer, a finger or Enter: each sets the controls that the part's
    # columns name, ``sets_stage_1`` the control ``stage_1``
    press: tuple[str, ...] = ()
    opens: tuple[str, str] | None = None  # (puzzle, part): the part's orders can be opened there as code
    lights: dict[str, Any] = {}  # name -> Light: what a sentence can highlight besides each part (guide.py)
    tour: tuple = ()  # Steps: a sentence and a state each (guide.py)

    def __init_subclass__(cls, **settings: Any) -> None:
        """Refuses a control that would hide what every widget has under this name."""
        super().__init_subclass__(**settings)
        for name, control in vars(cls).items():
            if isinstance(control, Control) and hasattr(Widget, name):
                raise TypeError(
                    f"{cls.__name__}: a control needs another name than {name!r}, which every widget has"
                )

    def __init__(self, **values: Any) -> None:
        """Controls by name; a choice takes one of its keys, or the thing itself. Instead of a value it can be
        another component or parameter, whose value it then follows."""
        unknown = [name for name in values if name not in self.controls() and name != "name"]
        if unknown:
            known = ", ".join(self.controls())
            raise TypeError(f"{type(self).__name__} has no control {unknown[0]!r}; it has {known}")
        super().__init__(**{name: self._taken(name, value) for name, value in values.items()})

    def _taken(self, name: str, value: Any) -> Any:
        control = self.controls().get(name)
        if control is None or is_reference(value):
            return value
        chosen = isinstance(control, Choice) and any(value is each for each in control.options)
        return value if chosen else control.read(value)

    def __panel__(self) -> Viewable:
        return panel.view(self)

    @cached_property
    def live(self) -> panel.Live:
        """What the widget shows now, as an object that follows its changes."""
        return panel.live(self)

    @classmethod
    def serve_as(cls, module: str) -> None:
        """Shows the widget if ``panel serve`` runs its file, which then has a module name that Panel made
        up."""
        if module.startswith("bokeh_app_"):
            [known] = [each for each in all_widgets().values() if each.__name__ == cls.__name__]
            known().servable(title=known.question)

    @classmethod
    def slug(cls) -> str:
        """The name of the widget's module, by which pages and links know it."""
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
        """Name -> method for the methods with this decorator, in the order of declaration."""
        return {name: getattr(cls, name) for name in cls._marked(mark)}

    @classmethod
    @cache
    def _marked(cls, mark: str) -> tuple[str, ...]:
        found = (name for base in reversed(cls.__mro__) for name, m in vars(base).items() if hasattr(m, mark))
        return tuple(dict.fromkeys(found))

    def summary(self) -> str:
        """One sentence that describes the picture in this state."""
        raise NotImplementedError("a widget needs a method 'summary'")

    def ranges(self) -> dict:
        """Range name -> [start, end] for axes that should move once a drag ends; during a drag they stay."""
        return {}

    def ends(self) -> dict:
        """Player name -> the last frame of its run, if that depends on the other controls."""
        return {}

    def figure(self, sources: dict[str, ColumnDataSource]) -> figure:
        """The figure, whose glyphs draw the parts' sources."""
        raise NotImplementedError("a widget needs a method 'figure'")

    # -- state -----------------------------------------------------------------------------------------------
    def set_state(self, texts: dict) -> None:
        """Set controls from texts, as in a fence or a link; BadValue names the one that does not fit."""
        controls = self.controls()
        for name in texts:
            if name not in controls:
                raise BadValue(f"{self.slug()} has no control {name!r}; it has {', '.join(controls)}")
        self.param.update(**{name: controls[name].read(raw) for name, raw in texts.items()})

    def set_raw(self, values: dict) -> None:
        """Set controls from what the page stores (numbers, indices), clipped to the bounds."""
        controls = self.controls()
        checked = {}
        for name, value in values.items():
            control = controls[name]
            checked[name] = control.at(value) if isinstance(control, Choice) else control.read(value)
        # as param.update, which would first collect how to undo the change: that takes longer than most
        # figures
        with batch_call_watchers(self):
            for name, value in checked.items():
                if getattr(self, name) != value:
                    setattr(self, name, value)

    def raw_state(self) -> dict:
        """Name -> value as the page stores it, for each control."""
        return {name: control.raw(getattr(self, name)) for name, control in self.controls().items()}

    # -- what is shown ---------------------------------------------------------------------------------------
    def _answers(self) -> dict:
        """The results of the methods that are evaluated ``once``, in this state, by name."""
        if "_resting" in self.__dict__:
            return self._resting
        state = tuple(self.raw_state().values())
        if self.__dict__.get("_known", (None,))[0] != state:
            self._known = state, {}
        return self._known[1]

    @contextmanager
    def _rests(self) -> Iterator[None]:
        """Inside this block the state does not change, so no method has to check whether it did."""
        with check.trusted():
            self._resting = self._answers()
            try:
                yield
            finally:
                del self._resting

    def shown(self) -> dict:
        """Everything the widget shows for its current state, as plain values."""
        with self._rests():
            return _shown(type(self), self)

    def hints(self) -> dict:
        """Part -> the texts of its marks."""
        with self._rests():
            return _hints(type(self), self)


def _readout(value) -> dict:
    text, alarm = value if isinstance(value, tuple) else (value, False)
    return {"text": text, "alarm": alarm}


def _rows(view, columns: dict) -> dict:
    """The columns without the rows at their end for which an algorithm had no numbers; columns have room for
    the most rows."""
    if isinstance(view, Trace):
        return writer.Rows(columns) if view._may_end_early() else columns
    lists = {name: column for name, column in columns.items() if np.ndim(column)}
    numbers = [
        np.asarray(column, dtype=float)
        for column in lists.values()
        if np.asarray(column).dtype.kind not in "US"
    ]
    if not any(np.isnan(column[-1:]).any() for column in numbers):
        return columns
    length = min(map(len, lists.values()))
    known = ~np.any([np.isnan(column[:length]) for column in numbers], axis=0)
    last = np.max(np.flatnonzero(known), initial=-1) + 1
    return columns | {name: column[:last] for name, column in lists.items()}


def _ends(view) -> dict:
    """Where each player's run ends; a method of this name that means something else is a slip."""
    ends = view.ends()
    if not isinstance(ends, dict):
        raise TypeError(
            "ends() gives each player's last frame, by name; what gives something else needs another name"
        )
    return ends


def _hints(cls, view) -> dict:
    said = {method.hint_of: getattr(view, name)() for name, method in cls.methods("hint_of").items()}
    dots = {name: method.measured_by.hints(view) for name, method in cls.methods("measured_by").items()}
    return said | dots


def _shown(cls, view) -> dict:
    return {
        "parts": {name: _rows(view, getattr(view, name)()) for name in cls.methods("part_of")},
        "readouts": {name: _readout(getattr(view, name)()) for name in cls.methods("readout_label")},
        "regimes": {
            name: dict(zip(("met", "text"), getattr(view, name)())) for name in cls.methods("regime_target")
        },
        "documents": {name: getattr(view, name)() for name in cls.methods("document_label")},
        "ranges": view.ranges(),
        "ends": _ends(view),
        "summary": view.summary(),
        **_measured(cls, view),
    }


def _measured(cls, view) -> dict:
    """The words beside the switch of a figure's measured points, and whether it has nothing to switch."""
    shared = [method.measured_by for method in cls.methods("measured_by").values()]
    return {"measured": shared[0].words(view, cls), "unmeasured": shared[0].count(view) < 1} if shared else {}


MISSING = object()


class Trace:
    """Takes the place of ``self`` while a widget is compiled: its controls are symbols, its methods the
    widget's own."""

    def __init__(self, cls: type[Widget], graph: Graph) -> None:
        self._cls, self._graph, self._used = cls, graph, set()

    def _may_end_early(self) -> bool:
        """Whether columns may have fewer rows than there is room for: an algorithm's, or those of a padded
        table."""
        return any(node.op in ("program", "sweep") for node in self._graph.nodes) or any(
            np.isnan(table).any() for table in self._graph.tables
        )

    def __getattr__(self, name: str) -> Any:
        if name in self._cls.controls():
            self._used.add(name)
            return self._cls.controls()[name].symbol(self._graph)
        if name in self._cls.given:
            return given_column(self._graph, name, self._cls.given[name])
        found: Any = next((vars(base)[name] for base in self._cls.__mro__ if name in vars(base)), MISSING)
        if found is MISSING:
            raise AttributeError(f"{place()}: {self._cls.__name__} has no {name!r}; {self._names()}")
        if hasattr(found, "table_of"):
            return lambda: tables.symbols(self._cls, name, self._graph, self._used)
        if isinstance(found, (property, cached_property)):
            return found.__get__(self) if isinstance(found, property) else found.func(self)
        if inspect.isfunction(found) and found.__code__.co_argcount == 1:
            return lambda: self._once(name, found)
        return found.__get__(self, self._cls) if hasattr(found, "__get__") else found

    def _names(self) -> str:
        """The attributes that can be read of the widget, for a message about a misspelt one."""
        own = [name for name in dir(self._cls) if name not in dir(Widget) and not name.startswith("_")]
        methods = [name for name in own if name not in self._cls.controls()]
        return f"its controls are {', '.join(self._cls.controls())}; it also has {', '.join(methods)}"

    def _once(self, name, method):
        """The result of a method without arguments, which is always the same, so that it is traced only
        once."""
        if name not in self._graph.results:
            view = Trace(self._cls, self._graph)
            self._graph.results[name] = method(view), view._used
        result, used = self._graph.results[name]
        self._used |= used
        return result


class Compiled(NamedTuple):
    """JavaScript that computes everything the widget shows from the values of its controls, and in ``later``
    the texts of its marks; and the tables that it reads."""

    function: str
    table: np.ndarray


@cache
def compile_widget(cls: type[Widget]) -> Compiled:
    """The widget in the form that a page without Python needs."""
    graph = Graph()
    with check.trusted(), np.errstate(all="ignore"):
        for name, method in cls.methods("part_of").items():
            view = Trace(cls, graph)
            getattr(view, name)()
            if view._used != set(method.part_of):
                raise NotTranslatable(
                    f"{begins(method)}: {cls.slug()}.{name} declares the controls {sorted(method.part_of)} "
                    f"but reads {sorted(view._used)}"
                )
        shown, hints = _shown(cls, Trace(cls, graph)), _hints(cls, Trace(cls, graph))
    return Compiled(
        writer.function(graph, shown, later=hints),
        np.concatenate([np.zeros(0), *(t.ravel() for t in graph.tables)]),
    )


@cache
def all_widgets() -> dict[str, type[Widget]]:
    """Slug -> class, for every module in a part's folder of widgets/; a new file needs no further
    registration."""
    found = {}
    for module in pkgutil.walk_packages([str(PARTS)], "widgets."):
        if module.ispkg or module.name.startswith("widgets.kit."):
            continue
        for cls in vars(importlib.import_module(module.name)).values():
            if isinstance(cls, type) and issubclass(cls, Widget) and cls.__module__ == module.name:
                if cls.slug() in found:
                    raise ImportError(
                        f"two widgets are called {cls.slug()}: {found[cls.slug()].__module__} and "
                        f"{module.name}"
                    )
                found[cls.slug()] = cls
    return dict(sorted(found.items()))


__all__ = [
    "Symbol",
    "Widget",
    "action",
    "all_widgets",
    "compile_widget",
    "document",
    "executed",
    "hint",
    "once",
    "part",
    "readout",
    "regime",
]
