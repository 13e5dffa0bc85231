"""The Model Context Protocol over standard input and output: JSON-RPC 2.0, a message a line. Tools are all
that is offered; a client sees no prompt, no resource, and is asked for nothing.

Bounded on every side: a line, an answer, the calls that wait, and the seconds that one may take.
"""

from __future__ import annotations

import json
import queue
import sys
import time
from collections import deque
from threading import Thread
from typing import Any, BinaryIO, NamedTuple

from course.agent import tools
from course.agent.apart import Apart
from engine.base import edition

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # of the protocol, the newest first
LONGEST_LINE = 4_000_000  # bytes
MOST_WAITING = 16  # calls
PATIENCE_S = 60.0  # for one answer
NAME = "system-ml"
SAYS = (
    "Numbers about training and serving large models: time and memory of a step, the fastest layout, a "
    "server's latencies, the cheapest deployment, what a launch file asks for, collectives, goodput, cost. "
    "Estimates have an 80 % band and name what they extrapolate. SI units; bandwidths are one way; the unit "
    "is in a field's name (_s, _bytes, _bytes_per_s). Ask `models` and `gpus` for keys, `lessons` for an "
    "explanation."
)
PARSE, INVALID, NO_METHOD, BAD_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603


class Running(NamedTuple):
    """A call that is being answered: its id, and until when."""

    id: Any
    until: float


class Server:
    """Reads messages, answers them in order, and gives up a call that takes too long or is cancelled."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, patience_s: float = PATIENCE_S) -> None:
        self.source, self.sink, self.patience_s = source, sink, patience_s
        self.events: queue.Queue[tuple[str, Any]] = queue.Queue(MOST_WAITING * 4)
        self.waiting: deque[tuple[Any, str, Any]] = deque()  # (id, tool, arguments)
        self.running: Running | None = None
        self.apart: Apart | None = None
        self.ended = False  # no more messages come

    # -- what happens ----------------------------------------------------------------------------------------
    def run(self) -> None:
        """Answer until standard input ends and every call is answered."""
        Thread(target=self._read, daemon=True).start()
        try:
            while not (self.ended and self.running is None):
                self._next()
        finally:
            self._give_up()

    def _next(self) -> None:
        left = None if self.running is None else max(0.0, self.running.until - time.monotonic())
        try:
            kind, what = self.events.get(timeout=left)
        except queue.Empty:
            self._answer_running(
                failed(
                    f"no answer within {self.patience_s:g} s; ask for less, such as fewer GPUs or fixed axes"
                )
            )
            self._give_up()
        else:
            if kind == "line":
                self._line(what)
            elif kind == "end":
                self.ended = True
            else:
                self._answered(*what)
        self._start()

    def _read(self) -> None:
        """A thread: hand on each line; of one that is too long, only that it was."""
        while line := self.source.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = self.source.readline(LONGEST_LINE)
                self.events.put(("line", None))
            elif line.strip():
                self.events.put(("line", line))
        self.events.put(("end", None))

    def _start(self) -> None:
        """Begin the call that has waited longest, if none is being answered."""
        if self.running is None and self.waiting:
            identity, name, given = self.waiting.popleft()
            self.apart = self.apart or Apart(lambda own, said: self.events.put(("said", (own, said))))
            self.running = Running(identity, time.monotonic() + self.patience_s)
            self.apart.ask(name, given)

    def _answered(self, own: Apart, said: tuple | None) -> None:
        """The other process has said something, or has ended. One that was given up counts no more."""
        if own is not self.apart:
            return
        if said is None:
            self.apart = None
            self._answer_running(failed("the call ended without an answer; perhaps it took too much memory"))
        elif said[0] == "refused":
            self._answer_running(failed(said[1]))
        else:
            self._answer_running(answer(*said[1:]))

    def _answer_running(self, result: dict) -> None:
        if self.running is not None:
            self._send({"id": self.running.id, "result": result})
        self.running = None

    def _give_up(self) -> None:
        if self.apart:
            self.apart.end()
        self.apart = None

    # -- messages --------------------------------------------------------------------------------------------
    def _line(self, line: bytes | None) -> None:
        if line is None:
            self._fault(None, INVALID, f"a message may have at most {LONGEST_LINE} bytes")
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._fault(None, PARSE, "a message must be one line of JSON")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._fault(None, INVALID, "a message must be a JSON-RPC 2.0 object")
            return
        identity, method, given = message.get("id"), message.get("method"), message.get("params", {})
        if method is None:  # a response: nothing was asked
            return
        if "id" not in message:
            if method == "notifications/cancelled" and isinstance(given, dict):
                self._cancel(given.get("requestId"))
            return
        if isinstance(identity, bool) or not isinstance(identity, (str, int)):
            self._fault(None, INVALID, "id must be a text or a whole number")
        elif not isinstance(given, dict):
            self._fault(identity, BAD_PARAMS, "params must be an object")
        else:
            self._request(identity, method, given)

    def _request(self, identity: Any, method: Any, given: dict) -> None:
        if method == "initialize":
            self._send({"id": identity, "result": greeting(given)})
        elif method == "ping":
            self._send({"id": identity, "result": {}})
        elif method == "tools/list":
            self._send(
                {"id": identity, "result": {"tools": [tool.listed() for tool in tools.tools().values()]}}
            )
        elif method != "tools/call":
            self._fault(identity, NO_METHOD, "there is no such method; offered are tools/list and tools/call")
        elif not isinstance(given.get("name"), str) or given["name"] not in tools.tools():
            self._fault(identity, BAD_PARAMS, f"name must be one of {', '.join(tools.tools())}")
        elif len(self.waiting) >= MOST_WAITING:
            self._send(
                {"id": identity, "result": failed(f"{MOST_WAITING} calls wait already; ask again later")}
            )
        else:
            self.waiting.append((identity, given["name"], given.get("arguments", {})))

    def _cancel(self, identity: Any) -> None:
        """A call that is cancelled gets no answer, as the protocol asks."""
        self.waiting = deque(one for one in self.waiting if one[0] != identity)
        if self.running is not None and self.running.id == identity:
            self.running = None
            self._give_up()

    def _fault(self, identity: Any, code: int, words: str) -> None:
        self._send({"id": identity, "error": {"code": code, "message": words}})

    def _send(self, message: dict) -> None:
        line = json.dumps(
            {"jsonrpc": "2.0", **message}, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        self.sink.write(line.encode("utf-8", "replace") + b"\n")
        self.sink.flush()


def greeting(given: dict) -> dict:
    """The answer to ``initialize``: the client's version of the protocol if it is known here, or else the
    newest."""
    wanted = given.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": NAME, "title": "System ML", "version": edition.version()},
        "instructions": SAYS,
    }


def answer(text: str, data: dict) -> dict:
    """A tool's result: a table for people, and the same as data."""
    size = len(text) + len(json.dumps(data, ensure_ascii=False, allow_nan=False))
    if size > tools.LARGEST_ANSWER:
        return failed(
            f"the answer has {size} characters, more than {tools.LARGEST_ANSWER}; ask for fewer rows"
        )
    return {"content": [{"type": "text", "text": text}], "structuredContent": data, "isError": False}


def failed(words: str) -> dict:
    """A tool's result that says why there is none."""
    return {"content": [{"type": "text", "text": words}], "isError": True}


def serve() -> None:
    """Answer on standard input and output until the input ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing that is printed may get between the messages
    try:
        Server(source, sink).run()
    except (BrokenPipeError, KeyboardInterrupt):  # whoever asked is gone
        sys.stdout = None
