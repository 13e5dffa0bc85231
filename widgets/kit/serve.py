"""What lets ``panel serve`` give out the built course beside the live session, from one origin.

Every page is the static one plus a single line that says where Python answers. What was read is kept, packed.
"""

from __future__ import annotations

import gc
import gzip
import hashlib
import logging
import mimetypes
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from bokeh.server.urls import per_app_patterns
from bokeh.server.views.ws import WSHandler
from bokeh.util.token import generate_jwt_token, generate_session_id
from tornado.web import HTTPError, RequestHandler

from widgets.kit import headers

SITE = Path(__file__).resolve().parents[2] / "build" / "static"
MOST_PAGES = int(os.environ.get("COURSE_PAGES", 500))     # open at once in this process; deploy/README.md says why
TYPES = {".js": "text/javascript", ".table": "application/octet-stream", ".woff2": "font/woff2"}
PACKED_ALREADY = {".woff2", ".png", ".gz", ".pdf"}


class Brief(logging.Filter):
    """What a stranger's garbage gets in the log: one short line, not a traceback with the garbage in it."""

    def filter(self, record):
        try:
            said = record.getMessage()
        except Exception:       # Bokeh cannot print every message that it was sent
            said = str(record.msg)
        record.msg, record.args, record.exc_info = said[:200].encode("ascii", "backslashreplace").decode(), (), None
        return True


for name in ("bokeh.server.views.ws", "bokeh.server.protocol_handler"):
    logging.getLogger(name).addFilter(Brief())


# -- the pages' questions ------------------------------------------------------------------------------------------------
class Socket(WSHandler):
    """Bokeh's websocket, quicker and with limits."""

    max_message_size = 64 * 1024        # a question has some hundred bytes
    pages: set[Socket] = set()

    def open(self):
        if full():
            return self.close(1013, "too many readers")
        if not self.pages:
            gc.freeze()     # all that stands before a reader comes will stay: no need to look at it after each page that leaves
        self.pages.add(self)
        self.set_nodelay(True)      # else TCP holds a message's small pieces back, 40 ms for an answer
        super().open()

    def on_close(self):
        self.pages.discard(self)
        super().on_close()


def full() -> bool:
    return len(Socket.pages) >= MOST_PAGES


class Said(RequestHandler):
    """A line of text that is true only now."""

    def set_default_headers(self):
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Type", "text/plain; charset=utf-8")


class Token(Said):
    """A fresh session's token for the page that asks."""

    def get(self):
        if full():
            self.set_status(503)
            self.set_header("Retry-After", "30")
            return self.finish("too many readers")
        self.finish(generate_jwt_token(generate_session_id()))


class Health(Said):
    """For probes: this process answers."""

    def get(self):
        self.finish("well")


# -- the pages -----------------------------------------------------------------------------------------------------------
class Stored(NamedTuple):
    kind: str
    body: bytes
    packed: bool
    etag: str


@lru_cache(maxsize=600)
def stored(file: Path, _changed_ns: int) -> Stored:
    """A file of the site as it is sent."""
    body = file.read_bytes()
    if file.suffix == ".html":
        depth = len(file.parent.relative_to(SITE).parts)
        mark = f'<meta name="course-server" content="{"../" * depth or "./"}"></head>'
        body = body.replace(b"</head>", mark.encode(), 1)
    kind = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    packed = file.suffix not in PACKED_ALREADY
    etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    return Stored(f"{kind}; charset=utf-8" if kind.startswith("text/") else kind, gzip.compress(body, 6) if packed else body, packed, etag)


def file_at(path: str) -> Path:
    """The file that an address means, or a 404: nothing outside the site, no folder without a page, no hidden name."""
    try:
        file = (SITE / path).resolve()
        if file.is_dir():
            file /= "index.html"
        if file.is_file() and file.is_relative_to(SITE) and not file.name.startswith("_"):
            return file
    except (OSError, ValueError):       # a name too long, or with a null in it
        pass
    raise HTTPError(404)


class Course(RequestHandler):
    """The static site; its pages learn here that a server stands behind them."""

    def get(self, path: str):
        file = file_at(path)
        if file.name == "index.html" and path and not path.endswith(("/", "index.html")):     # a folder without its slash
            query = f"?{self.request.query}" if self.request.query else ""
            return self.redirect(f"{quote(path.rsplit('/', 1)[-1])}/{query}", permanent=True)
        self.send(stored(file, file.stat().st_mtime_ns), path)

    head = get      # tornado leaves the body out

    def send(self, found: Stored, path: str) -> None:
        for name, value in headers.of(path, versioned="v" in self.request.query_arguments).items():
            self.set_header(name, value)
        self.set_header("Content-Type", found.kind)
        self.set_header("Vary", "Accept-Encoding")
        self.etag = found.etag
        unpack = found.packed and "gzip" not in self.request.headers.get("Accept-Encoding", "")
        if found.packed and not unpack:
            self.set_header("Content-Encoding", "gzip")
        self.finish(gzip.decompress(found.body) if unpack else found.body)

    def compute_etag(self):
        return getattr(self, "etag", None)

    def write_error(self, status_code, **kwargs):
        missing = SITE / "404.html"
        if status_code == 404 and missing.is_file():
            return self.send(stored(missing, missing.stat().st_mtime_ns), "404.html")
        super().write_error(status_code, **kwargs)


class Sitemap(RequestHandler):
    """The sitemap with this server's address for the one the build was told: instant navigation goes by it, port and all."""

    def get(self):
        text = (SITE / "sitemap.xml").read_text(encoding="utf-8")
        home = min(re.findall("<loc>(.*?)</loc>", text), key=len)
        self.set_header("Content-Type", "application/xml; charset=utf-8")
        self.finish(text.replace(home, f"{self.request.protocol}://{self.request.host}/"))


# of the application itself only its socket is reached: the pages that Bokeh would make of it are not the course's
per_app_patterns[:] = [(path, Socket) for path, handler in per_app_patterns if issubclass(handler, WSHandler)]
ROUTES = [(r"/live/token", Token), (r"/live/health", Health), (r"/sitemap.xml", Sitemap), (r"/(.*)", Course)]
