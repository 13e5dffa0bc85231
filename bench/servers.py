"""The three things that are compared: the static files, the served course, the idiomatic Panel app."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(port: int, process: subprocess.Popen) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            raise RuntimeError(f"the server stopped with exit code {process.returncode}")
        time.sleep(0.1)
    raise RuntimeError("the server did not answer in 30 s")


@contextlib.contextmanager
def running(*command: str):
    """Run a server whose command names its port as {port}; gives (address, process)."""
    port = free_port()
    process = subprocess.Popen([part.format(port=port) for part in command], cwd=ROOT, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        _wait(port, process)
        yield f"http://localhost:{port}/", process
    finally:
        process.terminate()
        process.wait()


def static():
    return running(sys.executable, "-m", "http.server", "{port}", "--directory", "build/static")


def served():
    return running(sys.executable, "-m", "panel", "serve", "site/live.py", "--plugins", "widgets.kit.serve", "--port", "{port}",
                   "--unused-session-lifetime", "1000", "--check-unused-sessions", "1000", "--log-level", "error")


def idiomatic():
    return running(sys.executable, "-m", "panel", "serve", "bench/panel_app.py", "--port", "{port}", "--log-level", "error")
