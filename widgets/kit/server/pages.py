"""The files of the built course as a server sends them: cached, compressed, with the headers of all hosts."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bokeh.server.util import check_allowlist
from bokeh.settings import settings
from tornado.web import HTTPError, RequestHandler

from engine.base.built import SITE, TYPES
from widgets.kit.page import headers
from widgets.kit.server import reload

PACKED_ALREADY = {".woff2", ".png", ".gz", ".pdf", ".whl"}


class Stored(NamedTuple):
    """A file as it is sent: its media type, its bytes, whether they are packed by gzip, and its tag."""

    kind: str
    body: bytes
    packed: bool
    etag: str


@lru_cache(maxsize=600)
def stored(file: Path, live: bool, _changed_ns: int) -> Stored:
    """A file of the site in the form in which it is sent."""
    body = file.read_bytes()
    if live and file.suffix == ".html":
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


def present(file: Path, live: bool) -> Stored:
    """The stored answer for a file in its current state."""
    return stored(file, live, max(file.stat().st_mtime_ns, reload.newest(SITE)))


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
    """A file of the static site."""

    live = False  # whether pages are told that Python answers

    def get(self, path: str) -> None:
        file = file_at(path)
        if (
            file.name == "index.html" and path and not path.endswith(("/", "index.html"))
        ):  # a folder without its slash
            query = f"?{self.request.query}" if self.request.query else ""
            self.redirect(f"{quote(path.rsplit('/', 1)[-1])}/{query}", permanent=True)
        else:
            self.send(present(file, self.live), path)

    head = get  # tornado omits the body

    def send(self, found: Stored, path: str) -> None:
        """Answer with a file and its headers."""
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
            self.send(present(missing, self.live), "404.html")
        else:
            super().write_error(status_code, **kwargs)


class Sitemap(RequestHandler):
    """The sitemap with this server's address instead of the one given to the build, because instant
    navigation compares addresses including the port."""

    def get(self) -> None:
        text = (SITE / "sitemap.xml").read_text(encoding="utf-8")
        if is_ours(self.request.host, self.application):
            home = min(re.findall("<loc>(.*?)</loc>", text), key=len)
            text = text.replace(home, f"{self.request.protocol}://{self.request.host}/")
        self.set_header("Content-Type", "application/xml; charset=utf-8")
        self.finish(text)


def is_ours(host: str, application: Any) -> bool:
    """Whether this is a name under which readers reach this server: one whose pages may open a socket, or the
    machine itself where no socket is served. Anything else that a request claims is not repeated to it."""
    if named := settings.allowed_ws_origin() or getattr(application, "websocket_origins", None):
        return check_allowlist(host.lower(), list(named))
    return re.fullmatch(r"(localhost|127\.0\.0\.1)(:\d{1,5})?", host) is not None


ROUTES = [(r"/sitemap.xml", Sitemap), (r"/(.*)", Course)]  # of a server without Python behind its pages
