"""A reader without a browser: Bokeh's protocol over a real websocket, used as the page's live.js does, and
little else.

It is light, so that a hundred of them on the server's machine leave most of it to the server.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from urllib.parse import urlencode

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClientConnection, WebSocketClosedError, websocket_connect


class Lost(Exception):
    """The server closed the socket."""


class Reader:
    """One open page: ``await open(address)``, then ``await ask(slug, values)`` returns what the widget
    shows."""

    def __init__(self, name: str, at: str | None = None):
        """``at`` is the address that a proxy would name, for a server that believes one (COURSE_PROXY)."""
        self.name, self.numbers = name, itertools.count(1)
        self.headers = {"X-Real-IP": at} if at else {}
        self.socket: WebSocketClientConnection | None = None

    async def open(self, address: str, origin: str | None = None) -> None:
        query = urlencode({"page": self.name})
        found = await AsyncHTTPClient().fetch(f"{address}live/token?{query}", headers=self.headers)
        token = found.body.decode()
        url = f"{address.replace('http', 'ws', 1)}live/ws?{query}"
        request = HTTPRequest(url, headers={"Origin": origin or address.rstrip("/")} | self.headers)
        # read as it comes, as browsers do: whoever leaves a message unread answers no ping either
        self.heard: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self.socket = await websocket_connect(
            request, subprotocols=["bokeh", token], on_message_callback=self.heard.put_nowait
        )
        self.socket.protocol.set_nodelay(True)  # as browsers do
        assert (await self.message())["msgtype"] == "ACK"
        await self.send("PULL-DOC-REQ", {})
        self.model = self.content["doc"]["roots"][0]["id"] if await self.message() else None

    async def send(self, kind: str, content: dict) -> None:
        try:
            for part in ({"msgid": f"{self.name}-{time.monotonic_ns()}", "msgtype": kind}, {}, content):
                await self.socket.write_message(json.dumps(part))
        except WebSocketClosedError:
            raise Lost(self.name) from None

    async def fragment(self):
        found = await self.heard.get()
        if found is None:
            raise Lost(f"{self.name}: closed with {self.socket.close_code} {self.socket.close_reason or ''}")
        return found

    async def message(self) -> dict:
        """The header of the next message; its content and buffers are kept in ``content`` and ``buffers``."""
        header = json.loads(await self.fragment())
        await self.fragment()
        self.content = json.loads(await self.fragment())
        self.buffers = {
            json.loads(await self.fragment())["id"]: await self.fragment()
            for _ in range(header.get("num_buffers", 0))
        }
        return header

    async def ask(self, slug: str, values: dict, wait_s: float = 30.0):
        """The answer in the protocol's form; it has the question's number."""
        number = next(self.numbers)
        question = {"number": number, "widget": slug, "values": values}
        await self.send(
            "PATCH-DOC",
            {
                "events": [
                    {
                        "kind": "ModelChanged",
                        "model": {"id": self.model},
                        "attr": "question",
                        "new": plain_map(question),
                    }
                ]
            },
        )
        async with asyncio.timeout(wait_s):
            while True:
                if (await self.message())["msgtype"] != "PATCH-DOC":
                    continue
                for event in self.content["events"]:
                    answer = entries(event["new"])
                    if answer["number"] == number:
                        return answer

    def close(self) -> None:
        if self.socket:
            self.socket.close()


def plain_map(value):
    """A dict as Bokeh's serializer writes it."""
    if isinstance(value, dict):
        return {"type": "map", "entries": [[key, plain_map(inner)] for key, inner in value.items()]}
    return value


def entries(value) -> dict:
    """A map of Bokeh's protocol as a dict."""
    return dict(value["entries"]) if value.get("type") == "map" else value
