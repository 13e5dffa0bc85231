"""The three things that are compared: the static files, the served course, and the idiomatic Panel app."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def free_port() -> int:
    """A port on which nobody listens."""
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


def resident_bytes(processes) -> int:
    """The memory that some processes use together."""
    status = [Path(f"/proc/{process.pid}/status").read_text() for process in processes]
    return sum(int(re.search(r"VmRSS:\s+(\d+)", text)[1]) * 1024 for text in status)


@contextlib.contextmanager
def running(*command: str, port: int | None = None, env: dict[str, str] | None = None):
    """Run a server whose command contains its port as {port}; yields (address, process)."""
    port = port or free_port()
    process = subprocess.Popen(
        [part.format(port=port) for part in command],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | (env or {}),
    )
    try:
        _wait(port, process)
        yield f"http://localhost:{port}/", process
    finally:
        process.terminate()
        process.wait()


def static():
    """The built site, handed out by Python's own server."""
    return running(sys.executable, "-m", "http.server", "{port}", "--directory", "build/static")


SERVE = (
    sys.executable,
    "-m",
    "panel",
    "serve",
    "site/live.py",
    "--plugins",
    "widgets.kit.server.plugin",
    "--port",
    "{port}",
    "--unused-session-lifetime",
    "1000",
    "--check-unused-sessions",
    "1000",
    "--log-level",
    "error",
)


ALL_OF_ONE = {"COURSE_PAGES_EACH": "500"}  # readers of a test or of a measurement come from one address


def served(**env: str):
    """The built site with Python behind its figures."""
    return running(*SERVE, env=ALL_OF_ONE | env)


@contextlib.contextmanager
def behind_nginx(processes: int = 2, limits: dict[str, str] | None = None):
    """nginx with the shipped configuration in front of this many Python processes, or in front of the files
    alone if there are none. ``limits`` replaces some of its words. Yields (address, the processes)."""
    nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if not nginx:
        raise FileNotFoundError("nginx is not installed: apt-get install nginx-light (or brew install nginx)")
    with contextlib.ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        port, ports = free_port(), [free_port() for _ in range(processes)]
        lay_out(folder, port, ports)
        for file in folder.glob("*.conf"):
            text = file.read_text()
            for word, other in (limits or {}).items():
                text = text.replace(word, other)
            file.write_text(text)
        origin = {"BOKEH_ALLOW_WS_ORIGIN": f"localhost:{port}", "COURSE_PROXY": "1"} | ALL_OF_ONE
        pythons = [opened.enter_context(running(*SERVE, port=one, env=origin))[1] for one in ports]
        opened.enter_context(running(nginx, "-p", str(folder), "-c", "nginx.conf", port=port))
        yield f"http://localhost:{port}/", pythons


def lay_out(folder: Path, port: int, ports: list[int]) -> None:
    """The folder that nginx is started in: deploy/nginx with these ports, the compressed site, its
    headers."""
    shutil.copytree(ROOT / "deploy" / "nginx", folder, dirs_exist_ok=True)
    shutil.copy(ROOT / "build" / "headers.conf", folder)
    shutil.copytree(ROOT / "build" / "static", folder / "static")
    packing = re.search(r"^find .*$", (ROOT / "deploy" / "README.md").read_text(), re.MULTILINE)[0]
    subprocess.run(packing.replace("gzip -9", "gzip -1"), shell=True, cwd=folder, check=True)
    (folder / "tmp").mkdir()
    site = (folder / ("site.conf" if ports else "static.conf")).read_text()
    if ports:
        line = re.search(r" *server 127\.0\.0\.1:5011(.*)\n", site)[0]
        site = re.sub(
            r"( *server 127\.0\.0\.1:\d+.*\n)+",
            "".join(line.replace("5011", str(one)) for one in ports),
            site,
        )
    (folder / "site.conf").write_text(site.replace("listen 8080", f"listen 127.0.0.1:{port}"))


def idiomatic():
    """The ordinary Panel app that serves as a yardstick."""
    return running(
        sys.executable,
        "-m",
        "panel",
        "serve",
        "bench/panel_app.py",
        "--port",
        "{port}",
        "--log-level",
        "error",
    )
