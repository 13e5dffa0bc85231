"""The course with Python behind it, as the README says to start it; it can be killed and started again on its
port."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

from tests.conftest import ROOT


def run(coroutine):
    """Runs it in a thread of its own: Playwright keeps a loop running in a test's."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


class Server:
    def __init__(self, port: int | None = None):
        self.port = port or self.free_port()
        self.address = f"http://localhost:{self.port}/"
        self.process = None
        # a pipe that nobody reads would fill and stop the server
        self.said = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the server

    @staticmethod
    def free_port() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "panel",
            "serve",
            "site/live.py",
            "--plugins",
            "widgets.kit.server.plugin",
            "--port",
            str(self.port),
            "--log-level",
            "warning",
        ]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ, stdout=subprocess.DEVNULL, stderr=self.said
        )
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log()
            try:
                urlopen(f"{self.address}live/token", timeout=5).read()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("the server did not come up within 60 s")

    def log(self) -> str:
        """What the server has said."""
        self.said.seek(0)
        return self.said.read().decode(errors="replace")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
