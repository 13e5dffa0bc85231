"""Serves the built course with Python behind its widgets: takes a free port, prints the address, and runs a
plain command of Panel's.

    panel serve site/live.py --plugins widgets.kit.server.plugin --port PORT

With --static, or where Panel is not installed, it hands out the files alone, and the widgets compute in the
page. With --watch it builds what changes and makes open pages reload (course/watch.py).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from engine.arguments import Parser, refused
from engine.base import edition, extras
from engine.base.bar import Bar
from engine.base.built import IN_WHEEL, LIVE, ROOT, SITE, TYPES

PORT = 5006  # the first to try, if none is named
TRIED = 100
# a separate process group: Ctrl-C in a Windows console then reaches only this process, which ends the server
APART = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
NOT_BUILT = (
    "this installation does not have the built course; install a wheel made with `make wheel`"
    if IN_WHEEL or not (ROOT / "mkdocs.yml").is_file()
    else f"the course is not built in {SITE.parent}; `make serve` builds and serves it"
)


def is_free(port: int) -> bool:
    """True if no program listens on this port, neither on IPv4 nor on IPv6."""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.settimeout(1.0)  # Windows would try for two
                if probe.connect_ex((host, port)) == 0:
                    return False
        except OSError:  # no IPv6 on this machine
            continue
    return True


def port_of(named: int | None) -> int:
    """The named port, if it is free; without a named port, the first free one."""
    if named is None:
        for port in range(PORT, PORT + TRIED):
            if is_free(port):
                if port != PORT:
                    print(f"Port {PORT} is taken; using {port}.")
                return port
        raise ValueError(f"no port from {PORT} to {PORT + TRIED - 1} is free; name another with --port")
    if not 1 <= named <= 65535:
        raise ValueError(f"--port must be from 1 to 65535, got {named}")
    if not is_free(named):
        raise ValueError(f"port {named} is in use; without --port the next free one is taken")
    return named


# -- with Python behind the widgets --------------------------------------------------------------------------
def arguments(port: int) -> list[str]:
    """The arguments for `panel`."""
    here = [f"--allow-websocket-origin={name}:{port}" for name in ("localhost", "127.0.0.1")]
    unused = ["--unused-session-lifetime=5000", "--check-unused-sessions=5000"]
    plugin = ["--plugins", "widgets.kit.server.plugin"]
    script = LIVE.relative_to(ROOT).as_posix()
    return ["serve", script, *plugin, f"--port={port}", *here, *unused, "--log-level=warning"]


def start(port: int) -> subprocess.Popen:
    """Start the server as a process of its own."""
    # this process handles Ctrl-C and ends the server silently
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        command = [sys.executable, "-m", "panel", *arguments(port)]
        return subprocess.Popen(command, cwd=ROOT, creationflags=APART)
    finally:
        signal.signal(signal.SIGINT, heard)


def wait_until_up(port: int, exit_code: Callable[[], int | None]) -> None:
    """Return once the server answers at its port; ValueError if it stops before that."""
    with Bar("Starting Python behind the figures"):
        while is_free(port):
            if (code := exit_code()) is not None:
                raise ValueError(f"the server stopped at once, with exit code {code}")
            time.sleep(0.1)


def serve(port: int) -> None:
    """Serve the course with Python behind its figures, until Ctrl-C."""
    server = start(port)
    try:
        wait_until_up(port, server.poll)
        announce(port)
        while server.poll() is None:  # in Windows, Ctrl-C does not interrupt a wait() without end
            time.sleep(0.5)
    finally:
        server.terminate()
        server.wait()


def serve_and_watch(port: int) -> None:
    """Serve the course, and build what changes, until Ctrl-C."""
    try:
        from course import watch  # noqa: PLC0415  needs watchfiles, which only developers of the course have
    except ModuleNotFoundError as missing:
        raise ValueError(f"--watch needs {missing.name}, which `make dev` installs") from None

    def opened(server) -> None:
        wait_until_up(port, lambda: server.exitcode)
        announce(port)

    watch.watch(arguments(port), opened)


# -- the files alone -----------------------------------------------------------------------------------------
async def hand_out(port: int) -> None:
    """Serve the files alone, without Python behind the figures."""
    from tornado.web import Application  # noqa: PLC0415  takes a second that the other ways need not wait for

    from widgets.kit.server import pages  # noqa: PLC0415

    logging.getLogger("tornado.access").setLevel(logging.ERROR)  # a missing page is not worth a message
    Application(pages.ROUTES).listen(port, "localhost")
    announce(port)
    await asyncio.Event().wait()


class Files(SimpleHTTPRequestHandler):
    """The files of the course by the standard library alone, for an installation without Panel."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | TYPES  # type: ignore[assignment]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as http.server calls it
        """Say nothing."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with the course's own page where an address leads nowhere."""
        missing = SITE / "404.html"
        if code != HTTPStatus.NOT_FOUND or not missing.is_file():
            super().send_error(code, message, explain)
            return
        body = missing.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def hand_out_alone(port: int) -> None:
    """Serve the files where Panel and what it needs are not installed."""
    print(
        "The figures compute in the page. Python would answer behind them after: "
        f'pip install "{edition.DISTRIBUTION}[widgets]"'
    )
    with ThreadingHTTPServer(("localhost", port), partial(Files, directory=str(SITE))) as server:
        announce(port)
        server.serve_forever()


def announce(port: int) -> None:
    """Print the address at which the course is open."""
    print(f"The course is open on http://localhost:{port}/  (Ctrl-C stops it)", flush=True)


# -- the command ---------------------------------------------------------------------------------------------
def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add this command's flags to a parser."""
    parser.add_argument("--port", type=int, help=f"the port to listen on (the first free one from {PORT})")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--static", action="store_true", help="the files alone: the widgets compute in the page")
    way.add_argument("--watch", action="store_true", help="in a clone: build what changes, reload open pages")


def run(options: argparse.Namespace) -> None:
    """Serve until interrupted; ValueError if serving is impossible, Missing if it needs an extra."""
    if not (SITE / "index.html").is_file():
        raise ValueError(NOT_BUILT)
    if options.watch:
        extras.need("widgets")
    if options.watch and IN_WHEEL:
        raise ValueError("--watch needs a clone of the course, with its lessons")
    if options.watch and not hasattr(os, "fork"):
        raise ValueError("--watch forks processes, which this system cannot; without it the course is served")
    port = port_of(options.port)
    for name in ("SIGTERM", "SIGBREAK"):  # the second is how Windows asks politely
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: sys.exit(0))
    with contextlib.suppress(KeyboardInterrupt):
        if extras.lacks("widgets"):
            hand_out_alone(port)
        elif options.static:
            asyncio.run(hand_out(port))
        else:
            serve_and_watch(port) if options.watch else serve(port)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = Parser(prog="python -m course.serve", description=(__doc__ or "").splitlines()[0])
    add_flags(parser)
    try:
        run(parser.parse_args(arguments))
    except (ValueError, extras.Missing) as error:
        return refused(parser.prog, error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
