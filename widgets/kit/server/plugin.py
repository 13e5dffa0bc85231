"""Lets ``panel serve`` serve the built course beside the live session, from one origin.

Every page is the static one (pages.py) plus a single line that says where Python answers.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import secrets
from collections.abc import Awaitable

import bokeh
import bokeh.server.server
from bokeh.server.urls import per_app_patterns
from bokeh.server.views.ws import WSHandler
from bokeh.settings import settings
from bokeh.util.token import check_token_signature, generate_jwt_token, generate_session_id, get_session_id
from panel.io.server import ComponentResourceHandler
from tornado.ioloop import IOLoop
from tornado.web import RequestHandler

from engine.base.built import SITE
from widgets.kit.server import gate, reload
from widgets.kit.server.pages import Course, Sitemap, stored
from widgets.kit.server.peers import PEERS, Doors, Peer
from widgets.kit.server.session import ANSWERS

SECRET = settings.secret_key_bytes() or secrets.token_bytes(32)  # processes may share one: BOKEH_SECRET_KEY
TOKEN_S = 60  # from the token to the socket
PING_S = 12.0  # a peer that does not answer a ping is gone after two of these and five seconds
IDLE_S = (
    30.0  # without any reader, until what only readers need is given back; Bokeh discards sessions before
)


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
    """Bokeh's websocket, made faster, and closed to all but the pages (``gate``)."""

    sessions: set[str] = set()  # of the open sockets
    peer: Peer | None = None  # once it has a place

    async def prepare(self) -> None:
        peer = PEERS.at(self.request.remote_ip or "")
        await peer.turn()
        if why := PEERS.refusal(peer):
            self.set_status(503)
            self.finish(why)

    @property
    def max_message_size(self) -> int:
        """Of a frame; ``gate`` counts the frames of a message."""
        return gate.MOST_BYTES

    @property
    def ping_interval(self) -> float:
        return PING_S

    @property
    def ping_timeout(self) -> float:
        return PING_S

    def open(self) -> None:
        peer, session = PEERS.at(self.request.remote_ip or ""), signed_session(self._token)
        if why := PEERS.refusal(peer):
            self.close(1013, why)
        elif session is None or session in self.sessions:
            self.close(1008, "not a token of this server, or one that is in use")
        else:
            if not self.sessions:
                # everything created before the first reader stays, so the garbage collector need not inspect
                # it after each page that closes; garbage of earlier readers would stay, too
                gc.collect()
                gc.freeze()
            self.peer, self.session, self.gate = peer, session, gate.Gate()
            self.sessions.add(session)
            PEERS.opened(peer)
            self.set_nodelay(True)  # otherwise TCP delays a message's small pieces, 40 ms per answer
            super().open()

    async def on_message(self, fragment: str | bytes) -> None:
        if self.peer is None:  # refused; what it still sends is not read
            return
        try:
            whole = self.gate.take(fragment, self.own_model())
        except gate.NotOurs as why:
            self.leave()
            self.close(1008, str(why))
            return
        if whole:
            await self.peer.turn()
            for part in whole:
                await super().on_message(part)

    def own_model(self) -> str | None:
        """The id of this page's model; None before the session is open, and after it."""
        session = self.connection and self.connection._session
        return session.document.roots[0].id if session and not session.destroyed else None

    def leave(self) -> None:
        """Give the place back."""
        if self.peer:
            self.sessions.discard(self.session)
            PEERS.closed(self.peer)
            self.peer = None
            if not self.sessions:
                IOLoop.current().call_later(IDLE_S, rest)

    def on_close(self) -> None:
        self.leave()
        super().on_close()


def rest() -> None:
    """Give the machine back what only readers need, if there still is none."""
    if Socket.sessions:
        return
    ANSWERS.forget()
    stored.cache_clear()
    gc.collect()
    with contextlib.suppress(
        AttributeError, OSError, TypeError
    ):  # only glibc keeps what is freed, and has this
        ctypes.CDLL(None).malloc_trim(0)


def signed_session(token: str | None) -> str | None:
    """The session of a token that this server signed; Bokeh then looks whether it has expired."""
    try:
        if token and check_token_signature(token, SECRET, True):
            return get_session_id(token)
    except Exception:  # Bokeh decodes a token before it looks at the signature
        pass
    return None


class Uncached(RequestHandler):
    """A line of text that must not be cached, because the next request gets another one."""

    def set_default_headers(self) -> None:
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Type", "text/plain; charset=utf-8")


class Token(Uncached):
    """A new session's token for the page that asks."""

    async def get(self) -> None:
        peer = PEERS.at(self.request.remote_ip or "")
        await peer.turn()
        if why := PEERS.refusal(peer):
            self.set_status(503)
            self.set_header("Retry-After", "30")
            self.finish(why)
            return
        session = generate_session_id(SECRET, True)
        self.finish(generate_jwt_token(session, SECRET, True, expiration=TOKEN_S))


class Health(Uncached):
    """For a probe that asks whether this process works, however busy it is."""

    def get(self) -> None:
        self.finish("well")


class Ready(Uncached):
    """For a probe that asks whether a new reader should be sent here: not to a process that is full."""

    def get(self) -> None:
        if PEERS.pages >= PEERS.most:
            self.set_status(503)
        self.finish("full" if PEERS.pages >= PEERS.most else "ready")


class Served(Course):
    """The site, whose pages are told here that a server is available."""

    live = True

    def prepare(self) -> Awaitable[None]:
        return PEERS.at(self.request.remote_ip or "").turn()


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


def take_more_connections() -> None:
    """Let this process have as many open files as the machine allows it; often it starts with 1024."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource  # noqa: PLC0415

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


take_more_connections()
bokeh.server.server.HTTPServer = Doors  # pyright: ignore[reportPrivateImportUsage]
per_app_patterns[:] = only_the_socket(per_app_patterns)
for verb in ("get", "head"):
    setattr(ComponentResourceHandler, verb, of_the_site)
ROUTES = [
    (r"/live/token", Token),
    (r"/live/health", Health),
    (r"/live/ready", Ready),
    (r"/sitemap.xml", Sitemap),
    *reload.routes(SITE),
    (r"/(.*)", Served),
]
