"""What a link, a field or a file may bring to a page: nothing throws, nothing runs, nothing hangs, and Python
reads the same."""

import json

from engine.base import typed
from engine.catalog import config_json
from tests.browser.hands import Hand
from tests.engine.catalog.test_config_json import FILES
from tests.fuzz.cases import NASTY, NUMBERS, anything, anything_typed, cases, changed, text
from widgets.kit.controls import BadValue
from widgets.kit.widget import all_widgets

LONGEST_MS = (
    250  # for one text, on a machine that is busy with other things; those that once hung took 25 seconds
)
PARSE = """async calls => {
  const { parse } = await import("/assets/widget/typed.js");
  return timed(calls, ([text, unit, label]) => {
    const { value, half, digits, bare, refused } = parse(text, unit, label);
    return [value, half, digits, bare, refused];
  });
}"""
LINK = """async ([slug, calls]) => {
  const [{ widget }, { read }, { fromAddress }] = [await import(`/assets/widgets/${slug}.js`), await import("/assets/widget/controls.js"),
                                                   await import("/assets/widget/state.js")];
  return timed(calls, ([name, text]) => {
    const given = fromAddress(slug, `?${slug}.${encodeURIComponent(name)}=${encodeURIComponent(text)}`)[name];
    return read(widget.controls.find(control => control.name === name), given);
  });
}"""
FILE = """async texts => {
  const [{ widget }, { read }] = [await import("/assets/widgets/layout_planner.js"), await import("/assets/widget/intake.js")];
  return timed(texts, text => read(widget.intake, widget.readFile, text));
}"""
TIMED = """window.timed = (calls, run) => {
  let slowest = [0, ""];
  const lasts = call => { const began = performance.now(); run(call); return performance.now() - began; };
  const answers = calls.map(call => {
    const began = performance.now(), answer = run(call);
    let took = performance.now() - began;
    for (let again = 0; again < 3 && took > 100; again++) took = Math.min(took, lasts(call));  // a busy machine pauses a page
    if (took > slowest[0]) slowest = [took, JSON.stringify(call).slice(0, 80)];
    return answer;
  });
  return JSON.stringify({ answers, slowest });
}"""


def in_page(script, code: str, argument, longest_ms: float = LONGEST_MS) -> list:
    """The answers of the page's own function; none may have taken long."""
    script.evaluate(f"() => {{ {TIMED} }}")
    found = json.loads(script.evaluate(code, argument), parse_int=float)
    assert found["slowest"][0] < longest_ms, found["slowest"]
    return found["answers"]


# -- fields --------------------------------------------------------------------------------------------------
def test_typed_quantities_are_read_alike(script):
    """To the last bit, and refused in the same words."""
    calls = anything_typed(4000)
    differing = [
        (given, page, ours)
        for given, page in zip(calls, in_page(script, PARSE, calls), strict=True)
        if page != (ours := list(typed.parse(*given)))
    ]
    assert differing == []
    assert sum(typed.parse(*call).value is not None for call in calls) > len(calls) / 5


# -- links ---------------------------------------------------------------------------------------------------
def link(random) -> tuple[str, str, str]:
    slug = random.choice(("layout_planner", "float_explorer", "pipeline_timeline", "kv_cache"))
    control = random.choice(list(all_widgets()[slug].controls().values()))
    near = [control.write(control.default), *getattr(control, "keys", ()), "on", "off", "1", "0"]
    return (
        slug,
        control.name,
        random.choice((text(random), random.choice(near), random.choice(near) + random.choice(NASTY))),
    )


def test_links_are_read_alike_or_refused(script):
    """Whatever the page takes from a link, Python takes too, as the same value."""
    calls, taken = cases(link, 4000), 0
    for slug in {call[0] for call in calls}:
        own = [call[1:] for call in calls if call[0] == slug]
        controls = all_widgets()[slug].controls()
        for (name, given), page in zip(own, in_page(script, LINK, [slug, own]), strict=True):
            if page is None:
                continue
            taken += 1
            assert controls[name].raw(controls[name].read(given)) == page, (slug, name, given)
    assert taken > len(calls) / 10


def test_a_switch_takes_no_name_that_every_object_has(script):
    names = ["__proto__", "constructor", "toString", "valueOf", "hasOwnProperty"]
    assert in_page(script, LINK, ["layout_planner", [["tied", name] for name in names]]) == [None] * len(
        names
    )


def test_a_long_text_of_digits_is_refused_at_once(script):
    """Patterns that try every way to part a row of digits once took 25 seconds over this link."""
    texts = [
        "1" * 100_000 + "x",
        "1" * 100_000,
        "1" + " " * 100_000 + "x",
        "1," * 50_000,
        "." * 100_000,
        "1e" + "1" * 100_000,
    ]
    assert in_page(script, LINK, ["layout_planner", [["gpus", text] for text in texts]]) == [None] * len(
        texts
    )
    for value, *_, refused in in_page(script, PARSE, [[each, "count", ""] for each in texts]):
        assert value is None and "only the first 80 characters" in refused


def test_bad_links_in_python_are_refused_in_words():
    widgets = {
        slug: all_widgets()[slug]()
        for slug in ("layout_planner", "float_explorer", "pipeline_timeline", "kv_cache")
    }
    for slug, name, given in cases(link, 1000):
        try:
            widgets[slug].set_state({name: given})
            fault = name
        except BadValue as refused:
            fault = str(refused)
        assert name in fault
        widgets[slug].raw_state()


def query(random) -> str:
    """A query as somebody might paste it: cut, doubled, wrongly encoded, or very long."""
    names = [
        *all_widgets()["tp_scaling"].controls(),
        "no_such",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "tp_scaling",
        "<b>",
    ]
    pairs = [
        f"tp_scaling.{random.choice(names)}={random.choice((*NUMBERS, *NASTY, '%zz', '%E0%A4%A', '%00'))}"
        for _ in range(random.choice((1, 2, 5, 60)))
    ]
    return "&".join(pairs).replace("#", "%23")[: random.choice((40, 4000, 30_000))]


def test_a_page_opens_under_any_query(visit, static):
    """The widget lives, says what it does not take in a few words, and runs nothing of it."""
    window = visit()
    window.forgive("favicon.svg net::ERR_ABORTED")  # a reload comes before it
    many = "&".join(f"tp_scaling.c{i}=1" for i in range(1000))
    for asked in [*cases(query, 6), many]:
        page = window.go(f"{static}tp_scaling/")
        page.evaluate("query => history.replaceState(null, '', `?${query}`)", asked)
        page.reload()
        hand = Hand(page, "tp_scaling")
        assert len(hand.note().text_content()) < 600, asked
        assert page.evaluate("typeof hacked") == "undefined"


# -- files ---------------------------------------------------------------------------------------------------
def config(random) -> str:
    """A published config.json with something wrong in it, in its values or in its text."""
    keys = (*config_json.KEYS, config_json.INNER)
    written = json.dumps(
        changed(random, random.choice(list(FILES.values())), keys), ensure_ascii=random.random() < 0.5
    )
    what = random.random()
    if what < 0.6:
        return written
    if what < 0.9:
        at, length = random.randrange(len(written)), random.randrange(6)
        return (
            written[:at] + random.choice(("", ",", "}", "NaN", "\\", text(random))) + written[at + length :]
        )
    return random.choice((text(random), json.dumps(anything(random))))


def reading(given: str) -> dict:
    """What Python says of a file, in the page's form."""
    try:
        return {"values": config_json.read(given)}
    except ValueError as refused:
        return {"refused": str(refused)}


def comparable(answer: dict) -> dict:
    """An answer without the wrong value that it repeats, because Python writes 1e-07 and JavaScript 1e-7."""
    return {"refused": answer["refused"].split(", got ")[0]} if "refused" in answer else answer


def test_config_files_are_read_alike(script):
    texts = cases(config, 1500)
    for given, page in zip(texts, in_page(script, FILE, texts), strict=True):
        assert comparable(page) == comparable(reading(given)), given
        assert len(page.get("refused", "")) < 400, given


def test_a_bomb_is_refused_in_words(script):
    """Nested deeply or very long: refused by both, whatever the words. At some depth Python reads what it
    cannot write again."""
    deep = "[" * 20_000 + "]" * 20_000
    bombs = [
        deep,
        f'{{"hidden_size": {deep}}}',
        '{"text_config":' * 5000 + "1" + "}" * 5000,
        f'{{"text_config": {deep}}}',
        "[" * 900_000,
        '{"a": "' + "x" * 10_000_000 + '"}',
        "9" * 900_000,
        *(f'{{"hidden_size": {"[" * depth + "]" * depth}}}' for depth in range(850, 1000, 4)),
    ]
    for page, given in zip(in_page(script, FILE, bombs, 5000), bombs, strict=True):
        assert set(page) == set(reading(given)) == {"refused"} and len(page["refused"]) < 400
