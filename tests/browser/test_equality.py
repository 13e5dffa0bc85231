"""The page without Python shows what Python shows: every widget's built module, run in a browser, against the
engine.

The modules are the files that the site gives out, so a file changed by hand, or left over from older sources,
fails here.
"""

import json
from pathlib import Path

import bokeh
import numpy as np
import pytest

from course import lessons
from tests import states
from tests.conftest import ROOT
from widgets.kit.drawing.scripts import SCRIPTS
from widgets.kit.page import module
from widgets.kit.widget import all_widgets

WIDGETS = sorted(all_widgets())
AT_ONCE = (
    20  # states in one message: a schedule of thousands of blocks, hundreds of times, is too long for one
)
SLOW = ("deployment_planner", "layout_planner", "prefill_decode")  # asked in fewer states, if not EVERY=1
SPEAKS = 5  # of so many states beyond the presets one is asked for its hints, which take longer than the rest
COMPUTE = """async ([slug, states]) => {
  const { widget } = await import(`/assets/widgets/${slug}.js`);
  const table = widget.table ? await (await fetch(`/assets/widgets/${slug}.table`)).arrayBuffer() : null;
  const numbers = table && new Float64Array(table);
  const compute = widget.compute ?? widget.reading(numbers);
  const plain = (key, value) => ArrayBuffer.isView(value) ? [...value]
    : typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  return JSON.stringify(states.map(([state, speaks]) =>
    ({...compute(state), hints: speaks ? compute.later(state) : {}})), plain);
}"""
ABOUT = """async slug => {
  const { compute, reading, ...about } = (await import(`/assets/widgets/${slug}.js`)).widget;
  return about;
}"""


def in_python(cls, values: dict, speaks: bool) -> dict:
    widget = cls()
    widget.set_raw(values)
    return widget.shown() | {"hints": widget.hints() if speaks else {}}


def flat(column) -> list:
    """A column as a list of plain texts or numbers."""
    return column if isinstance(column, list) else np.atleast_1d(np.asarray(column)).tolist()


def trimmed(column: list) -> list:
    """A column of a table without the padding that makes its rows equally long."""
    while column and column[-1] in ("NaN", ""):
        column = column[:-1]
    return column


def differences(cls, page: dict, python: dict) -> list[str]:
    """In words, everything in which two accounts of what is shown differ; numbers may differ in their last
    bits."""
    found = []

    def texts(name, ours, theirs):
        if ours != theirs:
            found.append(f"{name}: the page says {ours!r}, Python {theirs!r}")

    def numbers(name, ours, theirs):
        ours, theirs = flat(ours), flat(theirs)
        if ours == theirs:  # to the last bit, and so finite: the page gives what is not as a text
            return
        ours, theirs = np.array(ours, dtype=float), np.array(theirs, dtype=float)
        if not np.isfinite(theirs).all():  # a widget has no nonsense to show, whichever way
            found.append(f"{name}: Python gives {theirs}")
        elif ours.shape != theirs.shape or not np.allclose(
            ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max(initial=0)
        ):
            found.append(f"{name}: the page has {ours}, Python {theirs}")

    for group in ("parts", "readouts", "regimes", "documents", "ranges", "ends", "hints"):
        texts(f"the names of the {group}", sorted(page[group]), sorted(python[group]))
    methods = cls.methods("part_of")
    for part, columns in python["parts"].items():
        texts(f"the columns of {part}", sorted(page["parts"][part]), sorted(columns))
        for name, column in columns.items():
            ours, theirs = flat(page["parts"][part][name]), flat(column)
            if methods[part].tabulated:
                ours, theirs = trimmed(ours), trimmed(theirs)
            compare = texts if theirs and isinstance(theirs[0], str) else numbers
            compare(f"{part}.{name}", ours, theirs)
    for part, said in python["hints"].items():
        rows = len(flat(next(iter(python["parts"][part].values()))))
        texts(f"what {part} says", page["hints"][part][:rows], said[:rows])
    for name, readout in python["readouts"].items():
        texts(f"readout {name}", page["readouts"][name]["text"], readout["text"])
        texts(f"alarm of {name}", bool(page["readouts"][name]["alarm"]), bool(readout["alarm"]))
    for name, regime in python["regimes"].items():
        texts(f"regime {name} met", bool(page["regimes"][name]["met"]), bool(regime["met"]))
        texts(f"regime {name}", page["regimes"][name]["text"], regime["text"])
    for name, text in python["documents"].items():
        texts(f"document {name}", page["documents"][name], text)
    for name, ends in python["ranges"].items():
        numbers(f"range {name}", page["ranges"][name], ends)
    for name, end in python["ends"].items():
        numbers(f"the last frame of {name}", page["ends"][name], end)
    texts("summary", page["summary"], python["summary"])
    texts("what is measured", page.get("measured"), python.get("measured"))
    texts("nothing is measured", bool(page.get("unmeasured")), bool(python.get("unmeasured")))
    return found


def numbers_shown(cls, state) -> int:
    parts = in_python(cls, state, speaks=False)["parts"]
    return sum(np.size(column) for part in parts.values() for column in part.values())


@pytest.mark.parametrize("slug", WIDGETS)
def test_the_page_computes_what_python_computes(script, slug):
    cls = all_widgets()[slug]
    tried, wrong = states.sample(cls), []
    if np.mean([numbers_shown(cls, state) for state in tried[-5:]]) > 4000:
        tried = tried[::4]  # a picture of thousands of blocks is compared in fewer states
    first = 1 + len(cls.presets)
    tried = [*tried[:first], *states.daily(tried[first:], 4 if slug in SLOW else 3)]
    asked = [(state, place < first or place % SPEAKS == 0) for place, state in enumerate(tried)]
    for begin in range(0, len(tried), AT_ONCE):
        some = asked[begin : begin + AT_ONCE]
        on_page = json.loads(script.evaluate(COMPUTE, [slug, some]))
        wrong += [
            f"at {state}: {fault}"
            for (state, speaks), shown in zip(some, on_page, strict=True)
            for fault in differences(cls, shown, in_python(cls, state, speaks))
        ]
    assert not wrong, f"{len(wrong)} differences, the first of them:\n" + "\n".join(wrong[:5])


@pytest.mark.parametrize("slug", WIDGETS)
def test_the_page_knows_the_same_controls_presets_and_targets(script, slug):
    cls = all_widgets()[slug]
    about = script.evaluate(ABOUT, slug)
    assert about["controls"] == json.loads(
        json.dumps([control.describe() for control in cls.controls().values()])
    )
    home = states.default(cls)
    assert [home | preset for preset in about["presets"].values()] == states.presets(cls)
    assert about["targets"] == [name for name, m in cls.methods("regime_target").items() if m.regime_target]


def test_the_built_scripts_are_those_of_the_sources(site):
    """To the letter (the widgets' own: tests/widgets/test_contract.py)."""
    addresses = {lesson.number: lesson.name for lesson in lessons.numbered()}
    assert (site / "assets" / "widgets" / "shared.js").read_bytes() == module.shared(addresses).encode()
    theme = ROOT / "site" / "theme" / "assets"
    for path in (*theme.glob("widget/*.js"), *theme.glob("js/*.js"), *theme.glob("css/*.css")):
        assert (site / "assets" / path.relative_to(theme)).read_bytes() == path.read_bytes(), (
            f"{path.name} was changed"
        )
    for name, path in SCRIPTS.items():
        assert (site / "assets" / "widget" / name).read_bytes() == path.read_bytes(), f"{name} was changed"
    library = Path(bokeh.__file__).parent / "server" / "static" / "js" / "bokeh.min.js"
    assert (site / "assets" / "bokeh.min.js").read_bytes() == library.read_bytes()


def test_every_built_module_belongs_to_a_widget(site):
    assert {path.stem for path in (site / "assets" / "widgets").glob("*.js")} == {
        "shared",
        "answers",
        *WIDGETS,
    }
