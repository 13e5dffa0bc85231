"""A hostile reader: what a stranger's program may do to the served course, each thing as often as it can.

    ATTACKS     name -> coroutine(address), each harmless to a server that keeps its limits

``Stranger`` speaks HTTP and websockets by hand, so that it can break their rules: answer no ping, send half a
request, or a frame that never ends. bench/load.py lets all of them loose beside friendly readers, and
tests/browser/test_hostile.py asks what each has done.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import random
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urlparse

from bench.reader import plain_map

AT = "203.0.113.66"  # its address, where the server believes a proxy
TEXT, BINARY, CONTINUED, PING = 1, 2, 0, 9
FAR = 10**10  # an expiry in three centuries


class Stranger:
    """One connection."""

    def __init__(self, address: str, at: str | None = None) -> None:
        place = urlparse(address)
        self.host, self.port, self.origin, self.at = place.hostname, place.port, address.rstrip("/"), at or AT
        self.status = self.model = None

    async def connect(self) -> Stranger:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        return self

    def head(self, path: str, *lines: str, verb: str = "GET") -> bytes:
        """A request without its last empty line."""
        own = (f"Host: {self.host}:{self.port}", f"X-Real-IP: {self.at}", *lines)
        return "\r\n".join((f"{verb} {path} HTTP/1.1", *own, "")).encode()

    async def get(self, path: str) -> bytes:
        """The body of a page; its status is kept."""
        await self.connect()
        self.writer.write(self.head(path, "Connection: close") + b"\r\n")
        answer = await self.reader.read()
        self.writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        self.status = int(head.split()[1]) if head else 0
        return body

    async def open(self, token: str | None = None) -> Stranger:
        """A websocket under this token, else under a new one of the server's; its status is kept."""
        if token is None:
            token = (await Stranger(self.origin, self.at).get("/live/token")).decode()
        await self.connect()
        key = base64.b64encode(os.urandom(16)).decode()
        upgrade = (
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Protocol: bokeh, {token}",
            f"Origin: {self.origin}",
        )
        self.writer.write(self.head("/live/ws", *upgrade) + b"\r\n")
        head = await self.reader.readuntil(b"\r\n\r\n")
        self.status = int(head.split()[1])
        return self

    async def greet(self) -> Stranger:
        """Read the greeting, and ask for the document as a page does."""
        await self.message()
        await self.say("PULL-DOC-REQ", {})
        self.model = re.search(r'"roots":\[\{.*?"id":"(\w+)"', (await self.message())[2])[1]
        return self

    async def frame(self, payload: str | bytes, kind: int = TEXT, last: bool = True) -> None:
        """Send a frame, and wait until the machine has taken it."""
        data = payload.encode() if isinstance(payload, str) else payload
        size = len(data)
        head = bytes([kind | (0x80 if last else 0)])
        if size < 126:
            head += bytes([0x80 | size])
        else:
            head += bytes([0x80 | 126]) + size.to_bytes(2) if size < 2**16 else b"\xff" + size.to_bytes(8)
        self.writer.write(head + bytes(4) + data)  # a mask of zeros changes nothing
        await self.writer.drain()

    async def say(self, kind: str, content, **header) -> None:
        """A message of Bokeh's protocol."""
        for part in ({"msgid": "1", "msgtype": kind} | header, {}, content):
            await self.frame(json.dumps(part))

    async def ask(self, slug: str, values: dict, number: int = 1) -> None:
        """A question, as a page asks it."""
        new = plain_map({"number": number, "widget": slug, "values": values})
        change = {"kind": "ModelChanged", "model": {"id": self.model}, "attr": "question", "new": new}
        await self.say("PATCH-DOC", {"events": [change]})

    async def hear(self) -> tuple[int, bytes]:
        """Kind and payload of the next frame."""
        kind, size = await self.reader.readexactly(2)
        if size > 125:
            size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8))
        return kind & 15, await self.reader.readexactly(size)

    async def message(self) -> list[str]:
        """The next three texts; pings are not answered."""
        found = []
        while len(found) < 3:
            kind, payload = await self.hear()
            if kind == TEXT:
                found.append(payload.decode())
        return found

    async def is_let_go(self, wait_s: float) -> bool:
        """Whether the server ends the connection within this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                with contextlib.suppress(asyncio.IncompleteReadError, OSError):
                    while (await self.hear())[0] != 8:
                        pass
                return True
        return False

    def leave(self) -> None:
        self.writer.close()


@contextlib.asynccontextmanager
async def page(address: str) -> AsyncIterator[Stranger]:
    """An open page, as far as the server knows."""
    one = await (await Stranger(address).open()).greet()
    try:
        yield one
    finally:
        one.leave()


# -- the grammar ---------------------------------------------------------------------------------------------
NUMBERS = (0, -1, 1, 10**9, 10**30, 0.5, 1e300, -1e308, True, None)


def value(chance: random.Random, depth: int = 3):
    """What Bokeh reads as a value of a property, its objects included."""
    kind = chance.randrange(13 if depth else 2)
    inner = lambda: value(chance, depth - 1)
    return (
        lambda: chance.choice(NUMBERS),
        lambda: chance.choice(("", "memory_stack", "p1001", "x" * chance.choice((10, 5000)))),
        lambda: [inner() for _ in range(chance.randrange(4))],
        lambda: {"type": "map", "entries": [[inner(), inner()] for _ in range(chance.randrange(4))]},
        lambda: {"type": "number", "value": chance.choice(("nan", "+inf", "1", []))},
        lambda: {"type": "set", "entries": [inner()]},
        lambda: {"type": "slice", "start": inner(), "stop": inner(), "step": inner()},
        lambda: {"type": "bytes", "data": chance.choice(("AAAA", {"id": "b1"}, inner()))},
        lambda: {"type": "symbol", "name": chance.choice(("numpy", "x"))},
        lambda: {"type": "value", "value": inner()},
        lambda: {
            "type": "object",
            "name": chance.choice(("Plot", "ColumnDataSource", "CustomJS", "Div", "widgets.kit.X")),
            "id": chance.choice(("p1001", "x9")),
            "attributes": {chance.choice(("data", "text", "tags", "code")): inner()},
        },
        lambda: {
            "type": "ndarray",
            "array": chance.choice(({"type": "bytes", "data": "AAAA"}, inner())),
            "dtype": chance.choice(("float64", "object", "int32")),
            "shape": [chance.choice((1, -1, 10**9))],
            "order": "little",
        },
        lambda: {"id": chance.choice(("p1001", "x9"))},
    )[kind]()


def event(chance: random.Random, model: str | None) -> dict:
    """One event of a patch, of any kind that Bokeh knows."""
    me = {"id": chance.choice((model, model, "p1001", "x9"))}
    inner = lambda: value(chance)
    return chance.choice(
        (
            {"kind": "RootAdded", "model": inner()},
            {"kind": "RootRemoved", "model": me},
            {"kind": "TitleChanged", "title": inner()},
            {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": inner()},
            {"kind": "ColumnDataChanged", "model": me, "attr": "question", "data": inner(), "cols": inner()},
            {
                "kind": "ColumnsStreamed",
                "model": me,
                "attr": "question",
                "data": inner(),
                "rollover": inner(),
            },
            {"kind": "ColumnsPatched", "model": me, "attr": "question", "patches": inner()},
            {"kind": "ModelChanged", "model": me, "attr": "answer", "new": inner()},
            {"kind": "ModelChanged", "model": me, "attr": "tags", "new": inner()},
            {"kind": "ModelChanged", "model": me, "attr": "js_event_callbacks", "new": inner()},
            {"kind": "ModelChanged", "model": me, "attr": "question", "new": inner()},
        )
    )


def frames(chance: random.Random, model: str | None) -> list[tuple[int, str | bytes]]:
    """A message by the grammar of Bokeh's protocol, or one that breaks it."""
    header = {
        "msgid": chance.choice(("1", "x" * 5000, 7, None)),
        "msgtype": chance.choice(
            ("PATCH-DOC",) * 5 + ("PUSH-DOC", "PULL-DOC-REQ", "SERVER-INFO-REQ", "ACK", "OK", "ERROR", "x", 3)
        ),
    }
    if chance.random() < 0.3:
        header["num_buffers"] = chance.choice((0, 1, 3, 10**9, -1, "2", 1e300))
    content = {"events": [event(chance, model) for _ in range(chance.choice((0, 1, 1, 1, 3, 300)))]}
    if header["msgtype"] == "PUSH-DOC":
        content = {"doc": {"roots": [value(chance)], "title": "x", "version": "3.9.2"}}
    parts = [json.dumps(part) for part in (header, chance.choice(({}, {}, [], value(chance))), content)]
    if chance.random() < 0.2:
        parts[chance.randrange(3)] = chance.choice(("[" * 30_000, "{" * 9, "null", '{"a":' * 9_000, "1e999"))
    found = [(TEXT, part) for part in parts]
    for number in range(chance.choice((0, 0, 0, 2))):
        found += [(TEXT, json.dumps({"id": f"b{number}"})), (BINARY, bytes(chance.choice((8, 60_000))))]
    return found


# -- what it does --------------------------------------------------------------------------------------------
async def models(address: str) -> None:
    """Four patches of 60 kB with 700 new models each."""
    new = {"type": "object", "name": "Range1d"}
    events = [{"kind": "RootAdded", "model": new | {"id": f"r{i}"}} for i in range(700)]
    async with page(address) as one:
        for _ in range(4):
            await one.say("PATCH-DOC", {"events": events})
        await one.is_let_go(20)


async def buffers(address: str, most_bytes: int = 400 * 2**20) -> None:
    """A message that announces a billion buffers, and some of them."""
    async with page(address) as one:
        await one.say("PATCH-DOC", {"events": []}, num_buffers=10**9)
        for number in range(most_bytes // 60_000):
            await one.frame(json.dumps({"id": f"{number}"}))
            await one.frame(bytes(60_000), BINARY)


async def endless(address: str) -> None:
    """A frame that goes on and on."""
    async with page(address) as one:
        await one.frame("x" * 60_000, last=False)
        for _ in range(2000):
            await one.frame("x" * 60_000, CONTINUED, last=False)


async def headers_only(address: str) -> None:
    """First parts of messages, as long as they may be, from many sockets."""

    async def begin() -> None:
        async with page(address) as one:
            await one.frame("x" * 60_000)
            await one.is_let_go(3)

    await asyncio.gather(*(begin() for _ in range(50)), return_exceptions=True)


def token(session: str, **more) -> str:
    """A token as Bokeh writes it, signed by nobody."""
    payload = {"session_id": session, "session_expiry": FAR} | more
    return base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")


def forged() -> list[str]:
    """Tokens that no server signed."""
    bomb = base64.urlsafe_b64encode(zlib.compress(b'{"a":"' + b"x" * 10**7 + b'"}', 9)).decode().rstrip("=")
    return [
        token("mine"),
        token("mine.mine"),
        token("mine") + "." + "A" * 43,
        token("mine", __bk__zlib_=bomb),
        base64.urlsafe_b64encode(b"[" * 3000).decode().rstrip("="),
        "x",
        "..",
        "A" * 9000,
    ]


async def forgery(address: str) -> None:
    """A socket under each of them."""
    for one in forged():
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            stranger = await Stranger(address).open(one)
            await stranger.is_let_go(2)
            stranger.leave()


async def all_pages(address: str, most: int = 600, stay_s: float = 5.0) -> int:
    """As many pages as it is given, none of which answers a ping; returns how many it was given."""
    taken = []
    try:
        for start in range(0, most, 20):
            found = await asyncio.gather(
                *(Stranger(address).open() for _ in range(20)), return_exceptions=True
            )
            found = [one for one in found if isinstance(one, Stranger)]
            greeted = await asyncio.gather(*(one.greet() for one in found), return_exceptions=True)
            taken += [one for one, how in zip(found, greeted) if not isinstance(how, BaseException)]
            if len(taken) < start:  # no more are to be had
                break
        await asyncio.sleep(stay_s)
        return len(taken)
    finally:
        for one in taken:
            one.leave()


async def visits(address: str, most: int = 600) -> int:
    """Pages opened and closed as fast as it can; returns how many were opened."""

    async def visit() -> bool:
        one = await Stranger(address).open()
        try:
            return (await one.hear())[0] == TEXT  # a greeting, not a refusal
        finally:
            one.leave()

    opened = 0
    for _ in range(most // 20):
        found = await asyncio.gather(*(visit() for _ in range(20)), return_exceptions=True)
        opened += sum(one is True for one in found)
    return opened


async def slow(address: str, most: int = 500, seconds: float = 40.0) -> int:
    """Connections that send a byte of a request each second; returns how many were left at the end."""
    path = f"GET /{'x' * 8000}"
    taken = [
        one
        for one in await asyncio.gather(
            *(Stranger(address).connect() for _ in range(most)), return_exceptions=True
        )
        if isinstance(one, Stranger)
    ]
    for place in range(int(seconds)):
        for one in taken:
            with contextlib.suppress(OSError):
                one.writer.write(path[place].encode())
        await asyncio.sleep(1)
    left = sum(not (one.reader.at_eof() or one.writer.is_closing()) for one in taken)
    for one in taken:
        one.leave()
    return left


async def bodies(address: str) -> None:
    """Requests with large bodies, which nobody asked for."""
    for size in (10**5, 9 * 10**7, 2 * 10**10):
        one = await Stranger(address).connect()
        one.writer.write(one.head("/live/token", f"Content-Length: {size}", verb="POST") + b"\r\n")
        with contextlib.suppress(OSError):
            for _ in range(min(size, 10**8) // 10**5):
                one.writer.write(bytes(10**5))
                await one.writer.drain()
        one.leave()


async def flood(address: str, pages: int = 20, seconds: float = 10.0) -> None:
    """New states of a figure, asked for as fast as they are answered and faster."""

    async def one(number: int) -> None:
        async with page(address) as own:
            for count in itertools.count():
                await own.ask("memory_stack", {"size": 1e9 * (1 + (number * 7919 + count) % 100_000 / 1e3)})
                await own.message()

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(one(number) for number in range(pages)), return_exceptions=True)


async def deaf(address: str, pages: int = 20, seconds: float = 10.0) -> None:
    """Questions without end, whose answers it does not read."""

    async def one() -> None:
        async with page(address) as own:
            while True:
                await own.ask("validation_scatter", {})

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(one() for _ in range(pages)), return_exceptions=True)


async def gibberish(address: str, count: int = 200, seed: int = 1) -> None:
    """Messages by the grammar above, each on a page of its own."""
    chance = random.Random(seed)
    for _ in range(count):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TypeError):
            async with page(address) as one:
                for kind, payload in frames(chance, one.model):
                    await one.frame(payload, kind)
                await one.is_let_go(0.02)


async def pulls(address: str) -> None:
    """The document, again and again."""
    async with page(address) as one:
        for _ in range(2000):
            await one.say("PULL-DOC-REQ", {})


async def requests(address: str, at_once: int = 50, seconds: float = 5.0) -> None:
    """Pages and tokens, as fast as they come."""

    async def one() -> None:
        while True:
            await Stranger(address).get(
                random.choice(("/live/token", "/01-why-distributed/", "/no-such-page"))
            )

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(one() for _ in range(at_once)), return_exceptions=True)


ATTACKS: dict[str, Callable[[str], Awaitable[object]]] = {
    attack.__name__: attack
    for attack in (
        models,
        buffers,
        endless,
        headers_only,
        forgery,
        all_pages,
        visits,
        slow,
        bodies,
        flood,
        deaf,
        gibberish,
        pulls,
        requests,
    )
}


async def once(name: str, address: str, seconds: float) -> None:
    """One of the attacks, ended after this time; that the server refuses it is not an error."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError, TypeError, IndexError):
        async with asyncio.timeout(seconds):
            await ATTACKS[name](address)


async def all_at_once(address: str, seconds: float) -> None:
    """All of them together, each again when it is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds

    async def again(name: str) -> None:
        while (left := until - loop.time()) > 0:
            await once(name, address, left)
            await asyncio.sleep(0.05)

    await asyncio.gather(*(again(name) for name in ATTACKS))


if __name__ == "__main__":  # apart from the friendly readers, whose waits it must not lengthen
    import sys

    given = sys.argv[3:]
    ATTACKS = {name: attack for name, attack in ATTACKS.items() if name in given or not given}
    asyncio.run(all_at_once(sys.argv[1], float(sys.argv[2])))
