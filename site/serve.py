"""Serve the built course with Python behind its widgets: finds a free port, says where, and runs the plain command

    panel serve site/live.py --plugins widgets.kit.serve --port PORT

With --watch it rebuilds and restarts when a file changes.
"""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WATCHED = ("engine", "widgets", "lessons", "site", "tests/published", "mkdocs.yml")


def is_free(port: int) -> bool:
    """Nobody listens on this port, neither on IPv4 nor on IPv6."""
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


def start(port: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "panel", "serve", "site/live.py", "--plugins", "widgets.kit.serve", "--port", str(port),
               "--allow-websocket-origin", f"localhost:{port}", "--allow-websocket-origin", f"127.0.0.1:{port}",
               "--unused-session-lifetime", "5000", "--check-unused-sessions", "5000", "--log-level", "warning"]
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)    # Ctrl-C is for this process, which ends the server without a word
    try:
        return subprocess.Popen(command, cwd=ROOT)
    finally:
        signal.signal(signal.SIGINT, heard)


def wait_until_up(port: int, server: subprocess.Popen) -> None:
    while is_free(port):
        if server.poll() is not None:
            sys.exit(f"The server stopped at once, with exit code {server.returncode}.")
        time.sleep(0.1)


def newest() -> float:
    """When a watched file last changed."""
    files = [path for name in WATCHED for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))]
    return max(path.stat().st_mtime for path in files if path.is_file() and "__pycache__" not in path.parts and path.name != "tokens.css")


def watch(port: int, server: subprocess.Popen) -> None:
    seen = newest()
    while server.poll() is None:
        time.sleep(0.5)
        if newest() > seen:
            seen = newest()
            built = subprocess.run([sys.executable, "site/build.py"], cwd=ROOT)
            if built.returncode == 0:
                server.terminate()
                server.wait()
                server = start(port)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=5006, help="the port to try first (default 5006)")
    parser.add_argument("--watch", action="store_true", help="rebuild and restart when a file changes")
    options = parser.parse_args()
    if not 1 <= options.port <= 65535:
        parser.error(f"--port must be from 1 to 65535, got {options.port}")
    port = free_port(options.port)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = start(port)
    try:
        wait_until_up(port, server)
        print(f"The course is open on http://localhost:{port}/  (Ctrl-C stops it)", flush=True)
        watch(port, server) if options.watch else server.wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
