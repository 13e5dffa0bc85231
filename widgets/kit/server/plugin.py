"""Lets ``panel serve`` serve the built course beside the live session, from one origin.

Every page is the static one (pages.py) plus a single line that says where Python answers.
"""

from __future__ import annotations

import gc
import logging
import os

import bokeh
from bokeh.server.urls import per_app_patterns
from bokeh.server.views.ws import WSHandler
from bokeh.util.token import generate_jwt_token, generate_session_id
from panel.io.server import ComponentResourceHandler
from tornado.web import RequestHandler

from engine.base.built import SITE
from widgets.kit.server import reload
from widgets.kit.server.pages import Course, Sitemap

MOST_PAGES = int(
    os.environ.get("COURSE_PAGES", "500")
)  # open at once in this process; deploy/README.md says why


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
            self.close(1013, "too many readers")
            return
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
    """Whether as many pages are open as this process takes."""
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
    """An answer for health probes, which shows that this process works."""

    def get(self) -> None:
        self.finish("well")


class Served(Course):
    """The site, whose pages are told here that a server is available."""

    live = True


def only_the_socket(patterns: list[tuple]) -> list[tuple[str, type[RequestHandler]]]:
    """Of the routes that Bokeh has for an application, keeps only the one to its socket, with our handler.
    The pages that Bokeh would serve are not the course's; so if Bokeh's list of routes is not the expected
    one, the server stops."""
    sockets = [
        path for path, handler, *_ in patterns if isinstance(handler, type) and issubclass(handler, WSHandler)
    ]
    if len(sockets) != 1:
        raise RuntimeError(
            f"Bokeh {bokeh.__version__} has {len(sockets)} websockets among its per_app_patterns, not one: "
            f"{patterns}. The course needs bokeh>=3.9.1,<3.10; docs/bokeh.md says how to upgrade."
        )
    return [(sockets[0], Socket)]


def of_the_site(handler: RequestHandler, path: str) -> None:
    """Answers what lies below components/ with the site's page of that name. Panel's route to it comes before
    all others, and would import whatever module an address names."""
    handler.__class__ = Served
    handler.get(f"components/{path}")


per_app_patterns[:] = only_the_socket(per_app_patterns)
for verb in ("get", "head"):
    setattr(ComponentResourceHandler, verb, of_the_site)
ROUTES = [
    (r"/live/token", Token),
    (r"/live/health", Health),
    (r"/sitemap.xml", Sitemap),
    *reload.routes(SITE),
    (r"/(.*)", Served),
]
