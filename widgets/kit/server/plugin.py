"""Lets ``panel serve`` serve the built course beside the live session, from one origin.

Every page is the static one plus a single line that says where Python answers. Files are cached, compressed.
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
from typing import Any, NamedTuple
from urllib.parse import quote

import bokeh
from bokeh.server.urls import per_app_patterns
from bokeh.server.views.ws import WSHandler
from bokeh.util.token import generate_jwt_token, generate_session_id
from tornado.web import HTTPError, RequestHandler

from widgets.kit.page import headers
from widgets.kit.server import reload

SITE = Path(__file__).resolve().parents[3] / "build" / "static"
MOST_PAGES = int(
    os.environ.get("COURSE_PAGES", 500)
)  # open at once in this process; deploy/README.md says why
TYPES = {".js": "text/javascript", ".table": "application/octet-stream", ".woff2": "font/woff2"}
PACKED_ALREADY = {".woff2", ".png", ".gz", ".pdf"}


class Brief(logging.Filter):
    """Logs malformed input as one short line, not as a traceback that repeats it."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            said = record.getMessage()
        except Exception:  # Bokeh cannot print every message that it receives
            said = str(record.msg)
        record.msg, record.args, record.exc_info = (
            said[:200].encode("ascii", "backslashreplace").decode(),
            (),
            None,
        )
        return True


for name in ("bokeh.server.views.ws", "bokeh.server.protocol_handler"):
    logging.getLogger(name).addFilter(Brief())


# -- requests of the pages -----------------------------------------------------------------------------------
class Socket(WSHandler):
    """Bokeh's websocket, made faster and limited."""

    pages: set[Socket] = set()

    @property
    def max_message_size(self) -> int:
        """A request has a few hundred bytes."""
        return 64 * 1024

    def open(self) -> None:
        if full():
            return self.close(1013, "too many readers")
        if not self.pages:
            # everything created before the first reader stays, so the garbage collector need not inspect it
            # after each page that closes
            gc.freeze()
        self.pages.add(self)
        self.set_nodelay(True)  # otherwise TCP delays a message's small pieces, 40 ms per answer
        super().open()

    def on_close(self) -> None:
        self.pages.discard(self)
        super().on_close()


def full() -> bool:
    return len(Socket.pages) >= MOST_PAGES


class Uncached(RequestHandler):
    """A line of text that must not be cached, because the next request gets another one."""

    def set_default_headers(self) -> None:
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Type", "text/plain; charset=utf-8")


class Token(Uncached):
    """A new session's token for the page that asks."""

    def get(self) -> None:
        if full():
            self.set_status(503)
            self.set_header("Retry-After", "30")
            self.finish("too many readers")
            return
        self.finish(generate_jwt_token(generate_session_id()))


class Health(Uncached):
    """For health probes: this process answers."""

    def get(self) -> None:
        self.finish("well")


# -- the pages -----------------------------------------------------------------------------------------------
class Stored(NamedTuple):
    kind: str
    body: bytes
    packed: bool
    etag: str


@lru_cache(maxsize=600)
def stored(file: Path, _changed_ns: int) -> Stored:
    """A file of the site in the form in which it is sent."""
    body = file.read_bytes()
    if file.suffix == ".html":
        up = "../" * len(file.parent.relative_to(SITE).parts) or "./"
        mark = f'<meta name="course-server" content="{up}">' + (reload.script(SITE, up) if reload.ON else "")
        body = body.replace(b"</head>", f"{mark}</head>".encode(), 1)
    kind = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    packed = file.suffix not in PACKED_ALREADY
    etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    return Stored(
        f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
        gzip.compress(body, 6) if packed else body,
        packed,
        etag,
    )


def present(file: Path) -> Stored:
    """The stored answer for a file in its current state."""
    return stored(file, max(file.stat().st_mtime_ns, reload.newest(SITE)))


def file_at(path: str) -> Path:
    """The file that an address refers to, or a 404: nothing outside the site, no folder without a page, no
    hidden name."""
    try:
        file = (SITE / path).resolve()
        if file.is_dir():
            file /= "index.html"
        if file.is_file() and file.is_relative_to(SITE) and not file.name.startswith("_"):
            return file
    except (OSError, ValueError):  # a name that is too long, or contains a null byte
        pass
    raise HTTPError(404)


class Course(RequestHandler):
    """The static site; its pages are told here that a server is available."""

    def get(self, path: str) -> None:
        file = file_at(path)
        if (
            file.name == "index.html" and path and not path.endswith(("/", "index.html"))
        ):  # a folder without its slash
            query = f"?{self.request.query}" if self.request.query else ""
            return self.redirect(f"{quote(path.rsplit('/', 1)[-1])}/{query}", permanent=True)
        self.send(present(file), path)

    head = get  # tornado omits the body

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

    def compute_etag(self) -> str | None:
        return getattr(self, "etag", None)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        missing = SITE / "404.html"
        if status_code == 404 and missing.is_file():
            return self.send(present(missing), "404.html")
        super().write_error(status_code, **kwargs)


class Sitemap(RequestHandler):
    """The sitemap with this server's address instead of the one given to the build, because instant
    navigation compares addresses including the port."""

    def get(self) -> None:
        text = (SITE / "sitemap.xml").read_text(encoding="utf-8")
        home = min(re.findall("<loc>(.*?)</loc>", text), key=len)
        self.set_header("Content-Type", "application/xml; charset=utf-8")
        self.finish(text.replace(home, f"{self.request.protocol}://{self.request.host}/"))


def only_the_socket(patterns: list[tuple]) -> list[tuple[str, type[RequestHandler]]]:
    """Keeps one of the routes that Bokeh has for an application, that to its socket, with our handler. The
    pages that Bokeh would serve are not the course's, so an unknown list of routes stops the server."""
    sockets = [
        path for path, handler, *_ in patterns if isinstance(handler, type) and issubclass(handler, WSHandler)
    ]
    if len(sockets) != 1:
        raise RuntimeError(
            f"Bokeh {bokeh.__version__} has {len(sockets)} websockets among its per_app_patterns, not one: "
            f"{patterns}. The course needs bokeh>=3.9.1,<3.10; docs/bokeh.md says how to upgrade."
        )
    return [(sockets[0], Socket)]


per_app_patterns[:] = only_the_socket(per_app_patterns)
ROUTES = [
    (r"/live/token", Token),
    (r"/live/health", Health),
    (r"/sitemap.xml", Sitemap),
    *reload.routes(SITE),
    (r"/(.*)", Course),
]
