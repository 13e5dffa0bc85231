"""Serves the built course with Python behind its widgets: finds a free port, prints the address, and runs the
plain command

    panel serve site/live.py --plugins widgets.kit.server.plugin --port PORT

With --watch it builds what changes and makes open pages reload (course/watch.py).
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def is_free(port: int) -> bool:
    """Whether nobody listens on this port, neither on IPv4 nor on IPv6."""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                if probe.connect_ex((host, port)) == 0:
                    return False
        except OSError:  # no IPv6 on this machine
            continue
    return True


def free_port(wanted: int) -> int:
    for port in range(wanted, min(wanted + 100, 65536)):
        if is_free(port):
            if port != wanted:
                print(f"Port {wanted} is taken; using {port}.")
            return port
    sys.exit(f"No free port from {wanted} to {wanted + 99}; name another with PORT=.")


def arguments(port: int) -> list[str]:
    """The arguments for `panel`."""
    here = [f"--allow-websocket-origin={name}:{port}" for name in ("localhost", "127.0.0.1")]
    unused = ["--unused-session-lifetime=5000", "--check-unused-sessions=5000"]
    plugin = ["--plugins", "widgets.kit.server.plugin"]
    return ["serve", "site/live.py", *plugin, f"--port={port}", *here, *unused, "--log-level=warning"]


def start(port: int) -> subprocess.Popen:
    # this process handles Ctrl-C and ends the server silently
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.Popen([sys.executable, "-m", "panel", *arguments(port)], cwd=ROOT)
    finally:
        signal.signal(signal.SIGINT, heard)


def wait_until_up(port: int, exit_code: Callable[[], int | None]) -> None:
    while is_free(port):
        if (code := exit_code()) is not None:
            sys.exit(f"The server stopped at once, with exit code {code}.")
        time.sleep(0.1)


def serve(port: int) -> None:
    server = start(port)
    try:
        wait_until_up(port, server.poll)
        announce(port)
        server.wait()
    finally:
        server.terminate()
        server.wait()


def serve_and_watch(port: int) -> None:
    from course import watch  # noqa: PLC0415  needs watchfiles, which only developers of the course have

    def opened(server) -> None:
        wait_until_up(port, lambda: server.exitcode)
        announce(port)

    watch.watch(arguments(port), opened)


def announce(port: int) -> None:
    print(f"The course is open on http://localhost:{port}/  (Ctrl-C stops it)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=5006, help="the port to try first (default 5006)")
    parser.add_argument("--watch", action="store_true", help="build what changes, and reload open pages")
    options = parser.parse_args()
    if not 1 <= options.port <= 65535:
        parser.error(f"--port must be from 1 to 65535, got {options.port}")
    port = free_port(options.port)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.suppress(KeyboardInterrupt):
        serve_and_watch(port) if options.watch else serve(port)


if __name__ == "__main__":
    main()
