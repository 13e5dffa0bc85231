"""What a stranger's program may send to the served course: an answer in words, and the others do not
notice."""

import asyncio
import json
from urllib.request import urlopen

import pytest
from bokeh.document import Document
from tornado.websocket import WebSocketClosedError, websocket_connect

from bench.reader import plain_map
from tests.browser.server import run
from tests.fuzz.cases import anything, cases, changed, text
from widgets.kit.server.session import ANSWERS, LONGEST_REFUSAL, Session
from widgets.kit.widget import all_widgets

WIDGETS = all_widgets()
QUICK = (
    "collective_cost",
    "memory_stack",
    "roofline",
)  # widgets that answer at once: a few cases are good questions
TOO_LONG = 21 * 2**20  # characters of a message


def good(random) -> dict:
    slug = random.choice(QUICK)
    return {"number": random.randrange(1000), "widget": slug, "values": WIDGETS[slug]().raw_state()}


def question(random):
    """A good question with something wrong in it, or another thing altogether."""
    if random.random() < 0.15:
        return anything(random)
    asked = good(random)
    what = random.random()
    if what < 0.4:
        asked["values"] = changed(random, asked["values"], list(asked["values"]))
    elif what < 0.5:
        asked["widget"] = random.choice((random.choice(list(WIDGETS)), text(random)))
    elif what < 0.6:
        asked["action"] = anything(random)
    else:
        asked = changed(random, asked, list(asked))
    return asked


def test_any_question_is_answered():
    document = Document()
    session = Session(document)
    for asked in cases(question, 1500):
        session.model.answer = {}
        session.answer("question", None, asked)
        answer = session.model.answer
        assert set(answer) in ({"number", "text", "numbers"}, {"number", "refused"}), asked
        assert isinstance(answer["number"], int) and len(answer.get("refused", "")) <= LONGEST_REFUSAL, asked
    session.answer("question", None, {"number": 5, "widget": "memory_stack", "values": {}})
    assert session.model.answer["number"] == 5 and "of training state" in session.model.answer["text"]
    assert ANSWERS.bytes <= ANSWERS.most_bytes


@pytest.mark.parametrize(
    "values",
    [
        {"gpu": -1},
        {"gpu": 10**9},
        {"gpu": 0.5},
        {"gpu": float("inf")},
        {"gpu": "0"},
        {"gpu": None},
        {"size": float("nan")},
        {"size": [1]},
        {"no_such": 1},
        [1],
        "values",
        None,
    ],
)
def test_a_value_that_no_page_sends_is_refused(values):
    session = Session(Document())
    session.answer("question", None, {"number": 7, "widget": "memory_stack", "values": values})
    assert session.model.answer["number"] == 7 and "refused" in session.model.answer


# -- over the wire -------------------------------------------------------------------------------------------
class Wire:
    """A websocket to the course, spoken by hand: Bokeh's messages are three texts, a header, metadata and
    content."""

    def __init__(self, address: str):
        self.address = address

    async def __aenter__(self):
        token = urlopen(f"{self.address}live/token").read().decode()
        self.socket = await websocket_connect(
            f"{self.address}live/ws".replace("http", "ws"),
            subprotocols=["bokeh", token],
            max_message_size=64 * 2**20,
        )
        await self.read("ACK")
        await self.send("PULL-DOC-REQ", {})
        self.model = (await self.read("PULL-DOC-REPLY"))["doc"]["roots"][0]["id"]
        return self

    async def __aexit__(self, *failure):
        self.socket.close()

    async def send(self, kind: str, content) -> None:
        for part in ({"msgid": "1000", "msgtype": kind}, {}, content):
            await self.socket.write_message(json.dumps(part))

    async def read(self, kind: str):
        """The content of the next message of a kind."""
        while True:
            header, _, content = [await asyncio.wait_for(self.socket.read_message(), 30) for _ in range(3)]
            header = json.loads(header)
            for _ in range(2 * header.get("num_buffers", 0)):
                await self.socket.read_message()
            if header["msgtype"] == kind:
                return json.loads(content)

    async def ask(self, asked) -> str:
        change = {
            "kind": "ModelChanged",
            "model": {"id": self.model},
            "attr": "question",
            "new": plain_map(asked),
        }
        await self.send("PATCH-DOC", {"events": [change]})
        return json.dumps(await self.read("PATCH-DOC"))


def patch(random):
    """The content of a patch, right in form here and there."""
    change = {
        "kind": random.choice(
            ("ModelChanged", "RootAdded", "ColumnDataChanged", "MessageSent", "TitleChanged", text(random))
        ),
        "model": random.choice(({"id": "p1001"}, anything(random))),
        "attr": random.choice(("question", "answer", text(random))),
        "new": random.choice((question(random), anything(random))),
    }
    return random.choice(
        ({"events": [changed(random, change, list(change))]}, {"events": anything(random)}, anything(random))
    )


def frames(random) -> list:
    """A few websocket frames that the server cannot understand."""
    kinds = ("PATCH-DOC", "PULL-DOC-REQ", "PUSH-DOC", "SERVER-INFO-REQ", "ACK", "OK", "ERROR", text(random))
    if random.random() < 0.5:
        return [
            json.dumps({"msgid": random.choice(("1", text(random))), "msgtype": random.choice(kinds)}),
            "{}",
            json.dumps(patch(random)),
        ]
    return [
        random.choice(
            (text(random), json.dumps(anything(random)), random.randbytes(random.randrange(200)), "[" * 5000)
        )
        for _ in range(random.randrange(1, 5))
    ]


async def throw(address: str, messages: list[list]) -> None:
    """Sends each of them on a separate socket, and waits until the server answers or closes the
    connection."""
    for frames in messages:
        async with Wire(address) as wire:
            try:
                for frame in frames:
                    await wire.socket.write_message(frame, binary=isinstance(frame, bytes))
                await asyncio.wait_for(wire.socket.read_message(), 0.05)
            except (WebSocketClosedError, TimeoutError):
                pass


def test_garbage_on_the_wire_disturbs_nobody(served):
    async def meanwhile():
        async with Wire(served) as other:
            asked = {"widget": "memory_stack", "values": {}}
            before = await other.ask({"number": 1} | asked)
            await throw(served, cases(frames, 40))
            await throw(served, [["x" * TOO_LONG]])
            return before, await other.ask({"number": 2} | asked)

    for answer in run(meanwhile()):
        assert "of training state" in answer
