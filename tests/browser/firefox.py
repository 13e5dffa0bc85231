"""A Firefox as Debian ships it, driven by WebDriver BiDi over its own websocket: just what the tests need of
it.

Playwright's Firefox is a build of its own; what readers have, and what CI can install, is this one.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from threading import Thread

from tornado.websocket import websocket_connect

from tests import machine
from tests.browser.hands import NOT_COVERED

LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
PREFERENCES = {  # asks nobody on its own, says nothing on its own
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "browser.safebrowsing.update.enabled": False,
    "toolkit.telemetry.enabled": False,
    "services.settings.server": "",
    "network.dns.disabled": False,
    "remote.active-protocols": 1,
    "browser.startup.page": 0,
}


class Refused(Exception):
    """What Firefox says about a command that failed."""


class Firefox:
    """One headless Firefox with a fresh profile; ``open`` gives its tabs."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="course-firefox-")
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()
        ]
        Path(self.profile, "user.js").write_text("\n".join(lines), encoding="utf-8")
        command = [
            machine.firefox(),
            "--headless",
            "--no-remote",
            "--profile",
            self.profile,
            "--remote-debugging-port",
            "0",
        ]
        quiet = os.environ | {
            "MOZ_CRASHREPORTER_DISABLE": "1",
            "HOME": self.profile,
            "MOZ_DISABLE_CONTENT_SANDBOX": "1",
        }
        self.process = subprocess.Popen(
            command, env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.numbers, self.faults = itertools.count(1), []
        self.loop = asyncio.new_event_loop()
        Thread(
            target=self.loop.run_forever, daemon=True
        ).start()  # Playwright has a loop of its own in the tests' thread
        self.socket = self.wait(websocket_connect, f"{self.address()}/session", max_message_size=64 * 2**20)
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded", "network.fetchError"])

    def address(self) -> str:
        for line in self.process.stderr:
            if found := LISTENING.search(line):
                return found[1]
        raise Refused("Firefox ended before it listened")

    def wait(self, call, *given, **named):
        """What comes of an asynchronous call, within a minute."""

        async def made():
            return await asyncio.wait_for(call(*given, **named), 60)

        return asyncio.run_coroutine_threadsafe(made(), self.loop).result()

    def call(self, method: str, **params) -> dict:
        """The result of one command; events that come before it are noted."""
        number = next(self.numbers)
        self.wait(self.socket.write_message, json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self.wait(self.socket.read_message))
            if message.get("type") == "event":
                self.note(message["method"], message["params"])
            elif message.get("id") == number:
                if message["type"] == "error":
                    raise Refused(f"{method}: {message['error']}: {message['message']}")
                return message["result"]

    def note(self, event: str, params: dict) -> None:
        if event == "log.entryAdded" and params["level"] in ("error", "warn"):
            self.faults.append(f"{params['level']}: {params['text']}")
        elif event == "network.fetchError":
            self.faults.append(f"request failed: {params['request']['url']} {params['errorText']}")

    def open(self, width: int = 1280, height: int = 900) -> Tab:
        return Tab(self, width, height)

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.stderr.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        shutil.rmtree(self.profile, ignore_errors=True)


class Tab:
    """One tab: go somewhere, ask its page, use mouse and keys on it, look at it."""

    def __init__(self, firefox: Firefox, width: int, height: int):
        self.firefox = firefox
        self.context = firefox.call("browsingContext.create", type="tab")["context"]
        self.firefox.call(
            "script.addPreloadScript",
            functionDeclaration=f"() => {{ {NOT_COVERED} }}",
            contexts=[self.context],
        )
        self.resize(width, height)

    def resize(self, width: int, height: int) -> None:
        self.firefox.call(
            "browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height}
        )

    def go(self, url: str) -> None:
        self.firefox.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def ask(self, code: str, *given):
        """What a function of the page's gives for these arguments, by way of JSON."""
        function = f"async () => JSON.stringify(await ({code})(...{json.dumps(given)})) ?? 'null'"
        answer = self.firefox.call(
            "script.callFunction",
            functionDeclaration=function,
            target={"context": self.context},
            awaitPromise=True,
        )
        if answer["type"] == "exception":
            raise Refused(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def until(self, code: str, *given, seconds: float = 20.0):
        """Waits until a function of the page's gives something true."""
        end = time.monotonic() + seconds
        while not (found := self.ask(code, *given)):
            assert time.monotonic() < end, f"never true within {seconds:.0f} s: {code} {given}"
            time.sleep(0.05)
        return found

    def act(self, kind: str, *actions: dict) -> None:
        source = {"type": kind, "id": kind, "actions": list(actions)}
        if kind == "pointer":
            source["parameters"] = {"pointerType": "mouse"}
        self.firefox.call("input.performActions", context=self.context, actions=[source])

    def drag(self, x: float, y: float, to_x: float) -> None:
        """Takes the mouse from one place to another along a line, the button down."""
        move = [
            {"type": "pointerMove", "x": round(x + (to_x - x) * share), "y": round(y), "duration": 30}
            for share in (0.3, 0.7, 1)
        ]
        self.act(
            "pointer",
            {"type": "pointerMove", "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            *move,
            {"type": "pointerUp", "button": 0},
        )

    def press(self, key: str) -> None:
        self.act("key", {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key})

    def picture(self) -> bytes:
        """The visible part of the page as PNG."""
        shot = self.firefox.call("browsingContext.captureScreenshot", context=self.context)
        return base64.b64decode(shot["data"])

    def close(self) -> None:
        self.firefox.call("browsingContext.close", context=self.context)
