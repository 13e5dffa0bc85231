"""nginx as it is shipped, with its limits exceeded: whoever asks for too much is told so, the next one is not, and
who is slow is let go."""

from __future__ import annotations

import asyncio
import contextlib
import re

import pytest

from bench import hostile, servers
from bench.hostile import Stranger
from tests import machine
from tests.browser.server import run
from tests.conftest import ROOT

SMALL = {
    "course_connections 800": "course_connections 20",
    "rate=400r/s": "rate=5r/s",
    "burst=4000": "burst=20",
}


@pytest.fixture(scope="module")
def gate(site):
    """The address of nginx before one process, with smaller numbers, so that it takes less to exceed them."""
    machine.nginx()
    with servers.behind_nginx(1, SMALL) as (address, _):
        yield address


async def asked(address: str, path: str, count: int) -> list[int]:
    """The answers to as many requests at once."""

    async def one() -> int:
        stranger = Stranger(address)
        await stranger.get(path)
        return stranger.status or 0

    return await asyncio.gather(*(one() for _ in range(count)))


def test_the_shipped_numbers_are_those_that_are_made_smaller():
    text = "".join(path.read_text() for path in (ROOT / "deploy" / "nginx").glob("*.conf"))
    assert all(word in text for word in SMALL)


def test_tokens_are_given_only_so_fast(gate):
    found = run(asked(gate, "/live/token", 260))
    assert (
        set(found) == {200, 429} and found.count(200) <= 240
    )  # two hundred at once, ten a second after that


def test_pages_are_sent_only_so_fast(gate):
    found = run(asked(gate, "/", 60))
    assert 429 in found and 200 in found


def test_connections_of_one_address_are_counted(gate):
    async def meet():
        held = []
        try:
            for _ in range(30):
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    held.append(await Stranger(gate).open("x"))
            return [one.status for one in held]
        finally:
            for one in held:
                one.leave()

    run(asyncio.sleep(6))  # what came before is over, for the limits of speed
    assert 429 in run(meet())


def test_who_is_slow_is_let_go(gate):
    assert run(hostile.slow(gate, 20, 20.0)) == 0


def test_what_a_browser_is_told_of_a_file_is_its_type(gate):
    run(asyncio.sleep(5))
    types = {".webp": "image/webp", ".svg": "image/svg+xml", ".woff2": "font/woff2", ".js": "text/javascript"}
    folder = ROOT / "build" / "static"
    for suffix, kind in types.items():
        path = next(folder.rglob(f"*{suffix}"), None)
        if path is None:
            continue

        async def head(path=path) -> bytes:
            one = await Stranger(gate).connect()
            one.writer.write(
                one.head("/" + path.relative_to(folder).as_posix(), "Connection: close", verb="HEAD")
                + b"\r\n"
            )
            return await one.reader.read()

        assert f"content-type: {kind}".encode() in run(head()).lower()


def test_over_tls_browsers_are_told_to_come_by_tls_alone():
    text = (ROOT / "deploy" / "nginx" / "nginx.conf").read_text()
    assert re.search(r"map \$https \$course_strict \{ default \"\"; on \"max-age=31536000\"; \}", text)
    assert "add_header Strict-Transport-Security $course_strict always;" in text
