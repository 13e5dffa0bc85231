"""make load: a hundred readers drag twice a second, first against one ``panel serve``, then against nginx and
several of them.

    python -m bench.load [--readers 100] [--seconds 20] [--processes 2] [--write]

Each reader has a lesson open on its own socket (bench/reader.py) and drags one slider of one of its widgets;
a few real browsers do the same meanwhile. The clients run on the same machine and take their share of it.
``--write`` writes the results to bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tornado.httpclient import AsyncHTTPClient

from bench import servers, tally
from bench.reader import Reader
from course import browsers
from tests.browser import hands
from widgets.kit.widget import all_widgets

PERIOD_S = 0.5
BROWSERS = 3
NO_LIMITS = {
    "limit_conn ": "# limit_conn ",
    "limit_req ": "# limit_req ",
}  # all readers come from one address

# In a page: set a slider to this many of its stops, twice a second; returns the milliseconds from each move
# to the frame that shows it.
DRAG = """async ([slug, moves, period]) => {
  const figure = document.querySelector(`figure[data-widget="${slug}"]`);
  const slider = figure.querySelector("[data-control] input[type=range]");
  const found = [], low = +slider.min, high = +slider.max;
  const painted = () => new Promise(done => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  for (let i = 0; i < moves; i++) {
    const began = performance.now();
    const shown = new Promise(done => figure.addEventListener("widget-shown", done, { once: true }));
    slider.value = low + (i * 7) % (high - low);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await shown;
    await painted();
    found.push(performance.now() - began);
    await new Promise(done => setTimeout(done, Math.max(0, period - (performance.now() - began))));
  }
  return found;
}"""


@dataclass
class Found:
    """The results of a run of readers; times in seconds."""

    waits_s: list[float] = field(default_factory=list)
    opening_s: list[float] = field(default_factory=list)
    in_browsers_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    answers: int = 0  # including those to the widgets of a lesson that was just opened


# -- the readers ---------------------------------------------------------------------------------------------
@cache
def asking() -> list[str]:
    """The widgets that query Python when they are served."""
    return [slug for slug, cls in all_widgets().items() if not cls.in_page]


@cache
def lessons() -> dict[str, list[str]]:
    """Address of each numbered lesson -> the widgets on its page that Python answers for."""
    found = {
        address: [slug for slug in slugs if slug in asking()] for address, slugs in hands.lessons().items()
    }
    return {address: slugs for address, slugs in found.items() if slugs and address[:1].isdigit()}


@cache
def home(slug: str) -> dict:
    """The initial state of a widget."""
    return all_widgets()[slug]().raw_state()


@cache
def sliders(slug: str) -> list[tuple[str, list[float]]]:
    """Name and stops of a widget's visible sliders."""
    controls = all_widgets()[slug].controls().values()
    return [
        (c.name, c.grid.tolist())
        for c in controls
        if c.kind in ("number", "player") and not getattr(c, "more", False)
    ]


def states_of(slug: str, own: bool, chance: random.Random):
    """The endless sequence of states that one reader's drags go through; ``own``: starting where no other
    reader starts."""
    found = sliders(slug)
    state = home(slug) | ({name: chance.choice(stops) for name, stops in found} if own else {})
    name, stops = chance.choice(found)
    place = chance.randrange(len(stops))
    while True:
        place = (place + chance.choice((-2, -1, 1, 2))) % len(stops)
        yield state | {name: stops[place]}


async def read(
    address: str, number: int, until: float, own: bool, found: Found, apart: bool = False
) -> Reader | None:
    """One reader: open a lesson, let each widget query once as its page does, then drag until the time is
    over. ``apart`` has each come from an address of its own."""
    at = f"198.51.{number // 250}.{1 + number % 250}" if apart else None
    chance, reader = random.Random(number), Reader(f"{number}-{time.monotonic_ns()}", at)
    lesson, slugs = chance.choice(list(lessons().items()))
    try:
        began = time.perf_counter()
        await AsyncHTTPClient().fetch(f"{address}{lesson}")
        await reader.open(address)
        for slug in slugs:
            await asked(reader, slug, home(slug), found)
        found.opening_s.append(time.perf_counter() - began)
        states = states_of(slug := chance.choice([slug for slug in slugs if sliders(slug)]), own, chance)
        await asyncio.sleep(chance.random() * PERIOD_S)
        while time.perf_counter() < until:
            began = time.perf_counter()
            await asked(reader, slug, next(states), found)
            found.waits_s.append(time.perf_counter() - began)
            await asyncio.sleep(max(0.0, PERIOD_S - (time.perf_counter() - began)))
    except Exception as error:  # whatever goes wrong for a reader is what this measures
        found.errors.append(f"{lesson}: {error!r}")
    return reader


async def asked(reader: Reader, slug: str, state: dict, found: Found) -> None:
    """Ask a question as a reader would, and count the answer; ValueError if it is refused."""
    answer = await reader.ask(slug, state)
    if "refused" in answer:
        raise ValueError(f"{slug} refused: {answer['refused']}")
    found.answers += 1


async def browse(address: str, seconds: float, found: Found) -> None:
    """A few real browsers' pages, dragging as the readers do."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=browsers.find(playwright.chromium.executable_path, whole=True),
            args=browsers.ARGUMENTS,
        )

        async def one(lesson: str, slug: str) -> None:
            page = await (await browser.new_context()).new_page()
            await page.add_init_script(hands.NOT_COVERED)
            page.on("pageerror", lambda error: found.errors.append(f"browser: {error}"))
            await page.goto(f"{address}{lesson}")
            await page.wait_for_selector(f"figure[data-widget={slug}][data-state=live]", timeout=60_000)
            waits_ms = await page.evaluate(DRAG, [slug, int(seconds / PERIOD_S / 2), 1e3 * PERIOD_S])
            found.in_browsers_s += [1e-3 * wait for wait in waits_ms]

        with_sliders = [
            (lesson, slug) for lesson, slugs in lessons().items() for slug in slugs[:1] if sliders(slug)
        ]
        try:
            await asyncio.gather(*(one(*place) for place in with_sliders[:BROWSERS]))
        except Exception as error:
            found.errors.append(f"browser: {error!r}")
        await browser.close()


async def drive(
    address: str, readers: int, seconds: float, own: bool = False, browsers: bool = True, apart: bool = False
) -> tuple[Found, list]:
    """All readers, arriving over five seconds, each dragging until the end; their sockets are still open
    afterwards."""
    found, began = Found(), time.perf_counter()
    AsyncHTTPClient.configure(None, max_clients=readers + 10)

    async def arrive(number: int):
        await asyncio.sleep(5.0 * number / readers)
        return await read(address, number, began + 5.0 + seconds, own, found, apart)

    jobs = [arrive(number) for number in range(readers)]
    done = await asyncio.gather(*jobs, *([browse(address, seconds, found)] if browsers else []))
    return found, [reader for reader in done if reader]


# -- the servers' resources ----------------------------------------------------------------------------------
def cpu_s(processes) -> float:
    """Seconds of processor time that the processes have taken so far."""
    fields = [
        Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split() for process in processes
    ]
    return sum(int(user) + int(system) for *_, user, system in (found[:13] for found in fields)) / os.sysconf(
        "SC_CLK_TCK"
    )


async def settled(processes, seconds: float = 25.0) -> int:
    """Resident bytes once sessions are discarded, and the server has given back what only readers need, which
    it does some seconds after the last one has left."""
    await asyncio.sleep(seconds)
    return servers.resident_bytes(processes)


def times(waits_s: list[float]) -> str:
    """Median, 95th and 99th percentile of some waits, in ms."""
    if len(waits_s) < 2:
        return "none"
    cuts = statistics.quantiles(waits_s, n=100)
    return f"{1e3 * cuts[49]:.0f} / {1e3 * cuts[94]:.0f} / {1e3 * cuts[98]:.0f}"


async def run(
    name: str, address: str, processes, options, own: bool = False, hostile: bool = False
) -> list[str]:
    """One row of the table: the results of a run with this many readers, beside a ``hostile`` one."""
    warm, left = await drive(address, 20, 1.0, browsers=False)
    for reader in left:
        reader.close()
    before = await settled(processes)
    took_s = cpu_s(processes)
    with beside(address, hostile):
        found, left = await drive(address, options.readers, options.seconds, own, apart=hostile)
    took_s = cpu_s(processes) - took_s
    peak = servers.resident_bytes(processes)
    for reader in left:
        reader.close()
    after = await settled(processes)
    for error in (warm.errors + found.errors)[:5]:
        print(f"  {name}: {error}")
    return [
        name,
        f"{len(found.waits_s) / (options.seconds + 2.5):.0f}",
        times(found.waits_s),
        times(found.in_browsers_s),
        times(found.opening_s),
        str(len(found.errors)),
        f"{1e3 * took_s / max(found.answers, 1):.1f}",
        f"{before / 1e6:.0f} / {peak / 1e6:.0f} / {after / 1e6:.0f}",
        f"{(peak - before) / 1e6 / options.readers:.2f}",
    ]


@contextlib.contextmanager
def beside(address: str, hostile: bool):
    """A hostile reader, in a process of its own (bench/hostile.py), or nobody."""
    command = [sys.executable, "-m", "bench.hostile", address, "7200"]
    loud = subprocess.Popen(command, cwd=servers.ROOT, stderr=subprocess.DEVNULL) if hostile else None
    try:
        yield
    finally:
        if loud:
            loud.terminate()
            loud.wait()


async def costs(address: str, process) -> str:
    """The time of one answer without other load: for a new state, and for the same one again."""
    reader, found, words = Reader("alone"), Found(), []
    await reader.open(address)
    asked_for = [
        (slug, home(slug) | {name: stop})
        for slug in asking()
        for name, stops in sliders(slug)[:1]
        for stop in stops[:: len(stops) // 6 + 1]
    ]
    for name, times_over in (("a new state", 1), ("one that was asked for before", 4)):
        took_s, waits_s = cpu_s([process]), []
        for slug, state in asked_for * times_over:
            began = time.perf_counter()
            await asked(reader, slug, state, found)
            waits_s.append(time.perf_counter() - began)
        took_s = (cpu_s([process]) - took_s) / len(waits_s)
        words.append(
            f"{name}: {1e3 * took_s:.1f} ms of processor time, {1e3 * statistics.median(waits_s):.1f} ms "
            "until it is there"
        )
    reader.close()
    return "; ".join(words)


async def opened_and_closed(address: str, processes, visits: int) -> float:
    """Bytes left after this many lessons were opened, dragged in once and closed."""

    async def visit(number: int) -> None:
        reader = await read(address, number, 0.0, False, Found())
        reader.close()

    for number in range(20):
        await visit(number)
    before = await settled(processes)
    for start in range(0, visits, 10):
        await asyncio.gather(*(visit(number) for number in range(start, start + 10)))
    return await settled(processes) - before


async def requests_per_s(address: str, seconds: float = 4.0, at_once: int = 32) -> float:
    """Requests for pages of a lesson, its scripts and its styles, over kept-alive connections, compressed as
    the host sends them."""
    paths = [
        "01-why-distributed/",
        "assets/widget/view.js",
        "assets/widgets/memory_stack.js",
        "assets/css/lesson.css",
    ]
    host, port = re.match(r"http://([\w.]+):(\d+)/", address).groups()
    count, until = 0, time.perf_counter() + seconds

    async def client() -> None:
        nonlocal count
        reader, writer = await asyncio.open_connection(host, int(port))
        while time.perf_counter() < until:
            path = paths[count % len(paths)]
            writer.write(
                f"GET /{path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept-Encoding: gzip\r\n\r\n".encode()
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            assert " 200 " in head.split("\r\n")[0], head
            if length := re.search(r"content-length: (\d+)", head):
                await reader.readexactly(int(length[1]))
            else:
                while size := int(await reader.readline(), 16):
                    await reader.readexactly(size + 2)
                await reader.readexactly(2)
            count += 1
            if "connection: close" in head:  # nginx closes a connection after a thousand requests
                writer.close()
                reader, writer = await asyncio.open_connection(host, int(port))
        writer.close()

    await asyncio.gather(*(client() for _ in range(at_once)))
    return count / seconds


# -- the report ----------------------------------------------------------------------------------------------
HEAD = [
    "",
    "updates/s",
    "drag → update, ms: p50 / p95 / p99",
    "the same in browsers, to the paint",
    "lesson open, ms",
    "errors",
    "CPU ms an answer",
    "memory, MB: before / with all / after",
    "MB a reader",
]


async def measure(options) -> str:
    """The whole report: one process, then several behind nginx."""
    rows = []
    if options.hostile:
        for hostile in (False, True):
            with servers.served(COURSE_PROXY="1", COURSE_PAGES_EACH="100") as (address, process):
                name = "beside a hostile reader" if hostile else "alone"
                rows.append(await run(name, address, [process], options, hostile=hostile))
        return "\n".join(" | ".join(row) for row in [HEAD, *rows])
    with servers.served() as (address, process):
        alone = await costs(address, process)
        rows.append(await run("one process", address, [process], options))
        left = await opened_and_closed(address, [process], options.visits)
        by_python = await requests_per_s(address)
    with servers.served() as (address, process):
        rows.append(await run("one process, every state new", address, [process], options, own=True))
    with servers.served(COURSE_PROXY="1", COURSE_PAGES_EACH="100") as (address, process):
        rows.append(await run("one process, hostile reader", address, [process], options, hostile=True))
    with servers.behind_nginx(options.processes, NO_LIMITS) as (address, processes):
        rows.append(await run(f"nginx, {options.processes} processes", address, processes, options))
        marked = await requests_per_s(address)
    with servers.behind_nginx(0, NO_LIMITS) as (address, _):
        files = await requests_per_s(address)
    table = "\n".join("| " + " | ".join(row) + " |" for row in [HEAD, ["--"] * len(HEAD), *rows])
    return (
        f"{options.readers} readers and {BROWSERS} browsers, each dragging twice a second for "
        f"{options.seconds:.0f} s; "
        f"servers and clients on one machine.\n\n{table}\n\n"
        f"One reader of one process, over all widgets: {alone}.\n\n"
        f"After {options.visits} lessons were opened and closed again, {left / 1e6:.1f} MB were left in one "
        "process.\n\n"
        "A lesson's page and three of its files, 32 connections of a client in Python, requests a second: "
        f"{files:,.0f} "
        f"from nginx with the static site, {marked:,.0f} from nginx before Python, {by_python:,.0f} from "
        "one `panel serve`.\n"
    )


def main() -> None:
    """Run the load that the command line describes, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=2, help="panel serve processes behind nginx")
    parser.add_argument(
        "--visits", type=int, default=200, help="lessons opened and closed for the memory figure"
    )
    parser.add_argument("--hostile", action="store_true", help="only readers alone, and beside a hostile one")
    parser.add_argument("--write", action="store_true", help="write the figures to bench/RESULTS.md")
    options = parser.parse_args()
    text = asyncio.run(measure(options))
    text = f"`make load`, {tally.circumstances()}.\n\n{text}"
    print(text)
    if options.write:
        tally.write("Load", text)


if __name__ == "__main__":
    main()
