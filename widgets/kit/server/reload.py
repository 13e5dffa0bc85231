"""While someone works on the course (``make dev``), an open page reloads itself when it has been rebuilt.

``COURSE_RELOAD`` switches this on; only course/watch.py sets it. The script is added when a page is sent, so
the built site does not contain it.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from tornado.ioloop import PeriodicCallback
from tornado.web import RequestHandler
from tornado.websocket import WebSocketHandler

ON = bool(os.environ.get("COURSE_RELOAD"))
STARTED = str(time.time_ns())  # a new server means new Python behind the widgets
EVERY_MS = 150


def times(site: Path) -> dict[str, int]:
    """Name -> time of publication, for each page and for the scripts and styles that all pages share.

    A widget's own module is not included: its address is written in the pages that show it, and changes with
    it."""
    shared = [site / "assets" / "widgets" / "shared.js"]
    for folder in ("css", "js", "widget"):
        shared += (site / "assets" / folder).rglob("*")
    files = [path for path in (*site.rglob("*.html"), *shared) if path.is_file()]
    return {path.relative_to(site).as_posix(): path.stat().st_ctime_ns for path in files}


def newest(site: Path) -> int:
    """The latest time of publication (``times``); a constant if nobody is watching."""
    return max(times(site).values(), default=0) if ON else 0


def script(site: Path, up: str) -> str:
    """The script element for a page that lies ``up`` folders below the root."""
    address = f"{up}live/reload.js?since={newest(site)}&server={STARTED}"
    return f'<script type="module" src="{address}"></script>'


def routes(site: Path) -> list[tuple]:
    """The routes of the script and of its socket; none unless somebody works on the course."""
    if not ON:
        return []
    return [(r"/live/reload\.js", Script), (r"/live/changes", Changes, {"site": site})]


class Script(RequestHandler):
    """The script that reloads an open page."""

    def get(self) -> None:
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.finish(Path(__file__).with_suffix(".js").read_bytes())


class Changes(WebSocketHandler):
    """Tells a page which server this is, and about each file that was written after the page was sent."""

    def initialize(self, site: Path) -> None:
        self.site = site

    def open(self, *args: str, **kwargs: str) -> None:
        self.since = int(self.get_query_argument("since"))
        self.tell([])
        self.looking = PeriodicCallback(self.look, EVERY_MS)
        self.looking.start()

    def look(self) -> None:
        """Tell the page which files have been written since it was last told."""
        found = times(self.site)
        changed = [name for name, when in found.items() if when > self.since]
        if changed:
            self.since = max(found.values())
            self.tell(changed)

    def tell(self, changed: list[str]) -> None:
        """Send the page a message: which server this is, and the files that changed."""
        self.write_message(json.dumps({"server": STARTED, "since": str(self.since), "changed": changed}))

    def on_close(self) -> None:
        if hasattr(self, "looking"):
            self.looking.stop()
