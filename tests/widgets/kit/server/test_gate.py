"""What passes a page's socket: a pull, and a change of the page's own question; of all else nothing."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import hostile
from bench.reader import plain_map
from tests.fuzz.cases import anything, cases
from widgets.kit.server import gate
from widgets.kit.server.gate import Gate, NotOurs
from widgets.kit.widget import all_widgets

MODEL = "p1042"
HEADER = {"msgid": "1", "msgtype": gate.PATCH}


def change(new, **more) -> dict:
    event = {"kind": "ModelChanged", "model": {"id": MODEL}, "attr": "question", "new": new}
    return {"events": [event | more]}


def sent(content, header=HEADER, metadata="{}", gate=None) -> bool:
    """Whether a message passes, as a whole and at its last frame."""
    gate, parts = gate or Gate(), (header, metadata, content)
    texts = [part if isinstance(part, str) else json.dumps(part) for part in parts]
    try:
        passed = [gate.take(text, MODEL) for text in texts]
    except NotOurs:
        return False
    assert passed == [[], [], texts]
    return True


def question(**more) -> dict:
    return plain_map({"number": 1, "widget": "memory_stack", "values": {"size": 7e9}} | more)


@pytest.mark.parametrize("slug", list(all_widgets()))
def test_what_a_page_asks_passes(slug):
    assert sent(change(question(widget=slug, values=all_widgets()[slug]().raw_state())))


def test_a_pull_passes_once():
    one = Gate()
    assert sent({}, HEADER | {"msgtype": gate.PULL}, gate=one) and sent(change(question()), gate=one)
    assert not sent({}, HEADER | {"msgtype": gate.PULL}, gate=one)


BAD = {
    "another property": change(question(), attr="answer"),
    "another model": change(question(), model={"id": "p1001"}),
    "the model with more": change(question(), model={"id": MODEL, "attributes": {}}),
    "an event with more": change(question(), setter="x"),
    "two events": {"events": change(question())["events"] * 2},
    "no event": {"events": []},
    "more than events": change(question()) | {"references": []},
    "a new model": {
        "events": [{"kind": "RootAdded", "model": {"type": "object", "name": "Plot", "id": "x"}}]
    },
    "an object": change({"type": "object", "name": "Plot", "id": "x"}),
    "an object within": change(question(widget={"type": "object", "name": "Plot", "id": "x"})),
    "an object among the values": change(question(values={"size": {"type": "ndarray"}})),
    "a list": change(question(values={"size": [1] * 9})),
    "deep values": change(question(values={"size": {"a": {}}})),
    "a plain dict": change({"number": 1}),
    "long text": change(question(widget="x" * 300)),
    "many values": change(question(values={f"v{i}": 1 for i in range(200)})),
    "the content of a pull": {},
}


@pytest.mark.parametrize("name", BAD)
def test_nothing_else_passes(name):
    assert not sent(BAD[name])


@pytest.mark.parametrize(
    "header",
    [
        {"num_buffers": 1},
        {"num_buffers": 10**9},
        {"num_buffers": "0"},
        {"num_buffers": None},
        {"msgtype": "PUSH-DOC"},
        {"msgtype": "SERVER-INFO-REQ"},
        {"msgtype": ["PATCH-DOC"]},
        {"msgid": 1},
        {"msgid": "x" * 999},
        {"more": 1},
    ],
)
def test_a_header_is_an_id_and_a_kind(header):
    assert not sent(change(question()), HEADER | header)


@pytest.mark.parametrize("part", ["null", "[]", "3", "", "[" * 30_000, '{"a":' * 9000, "1e999"])
def test_a_part_that_is_not_an_object_is_refused(part):
    assert not sent(part) and not sent(change(question()), part)
    assert not sent(change(question()), metadata=part)


def test_a_message_is_counted_whole():
    one = Gate()
    one.take("x" * 60_000, MODEL)
    with pytest.raises(NotOurs, match="65536"):
        one.take("x" * 6_000, MODEL)
    with pytest.raises(NotOurs, match="text"):
        Gate().take(b"{}", MODEL)
    with pytest.raises(NotOurs, match="open"):
        Gate().take("{}", None)


@given(seed=st.integers(0, 10**9))
def test_by_the_grammar_of_the_protocol_only_flat_questions_pass(seed):
    parts = hostile.frames(Random(seed), MODEL)
    one = Gate()
    try:
        passed = [whole for kind, part in parts if (whole := one.take(part, MODEL))]
    except NotOurs:
        return
    for header, _, content in passed:
        kind = json.loads(header)["msgtype"]
        assert kind == gate.PULL or ('"attr": "question"' in content and '"type": "object"' not in content)


def content(random):
    return change(anything(random)) if random.random() < 0.5 else anything(random)


def test_anything_else_is_refused_in_words():
    for one in cases(content, 500):
        assert not sent(one) or one["events"][0]["new"]["type"] == "map", one
