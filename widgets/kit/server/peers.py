"""Who is connected: what one address may hold at once, so that it leaves room for the others.

An address is that of the connection or, where ``COURSE_PROXY`` says that a proxy stands before this process,
the one that the proxy names (``X-Real-IP``, else the last of ``X-Forwarded-For``). Of IPv6 it is the
network, because one line of a household has 2⁶⁴ addresses.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
from typing import Any
from weakref import WeakValueDictionary

from tornado.httpserver import HTTPServer

PROXY = os.environ.get("COURSE_PROXY", "") not in ("", "0")
MOST_PAGES = int(
    os.environ.get("COURSE_PAGES", "500")
)  # open at once in this process; deploy/README.md says why
MOST_OF_ONE = int(os.environ.get("COURSE_PAGES_EACH", "100"))  # of these, from one address
MOST_CONNECTIONS = 10 * MOST_OF_ONE  # a browser opens six for a page's files
LINGER_S = 10.0  # a session outlives its page by as much at most, and its place with it
IDLE_S = 20.0  # for a request to be sent, or for the next one on the same connection
BODY_BYTES = 1024  # readers only ask


class Peer:
    """One address, while anything of it is here."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pages = self.connections = 0
        self.lock = asyncio.Lock()

    async def turn(self) -> None:
        """Wait until it is this address's turn. One thing of an address is begun in each round of the event
        loop, so however much it asks, each other address waits for one thing of it at a time."""
        async with self.lock:
            await asyncio.sleep(0)


class Peers:
    """All addresses of which something is here, and the pages that they have open."""

    def __init__(self, most: int = MOST_PAGES, most_of_one: int = MOST_OF_ONE) -> None:
        self.most, self.most_of_one, self.pages = most, most_of_one, 0
        self.known: WeakValueDictionary[str, Peer] = WeakValueDictionary()

    def at(self, address: str) -> Peer:
        """The peer at an address."""
        name = network(address)
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = Peer(name)
        return found

    def refusal(self, peer: Peer) -> str | None:
        """Why this peer gets no further page; None if it does."""
        if self.pages >= self.most:
            return "too many readers"
        return "too many pages from one address" if peer.pages >= self.most_of_one else None

    def opened(self, peer: Peer) -> None:
        """A page of this peer takes a place."""
        self.pages += 1
        peer.pages += 1

    def closed(self, peer: Peer) -> None:
        """A page of this peer has gone. Its place is free for others at once, and for the same address when
        its session is over: else one that opens and closes would fill the memory with sessions."""
        self.pages -= 1
        asyncio.get_running_loop().call_later(LINGER_S, self.gone, peer)

    def gone(self, peer: Peer) -> None:
        """The session of a closed page is over."""
        peer.pages -= 1


def network(address: str) -> str:
    """The address, or the network of an address of IPv6."""
    try:
        found = ipaddress.ip_address(address.split("%", 1)[0])
    except ValueError:  # a socket of Unix has none
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


PEERS = Peers()


class Doors(HTTPServer):
    """Tornado's server, which would wait an hour for a request's next byte and take a body of 100 MB."""

    def initialize(self, *args: Any, **settings: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        settings |= {
            "idle_connection_timeout": IDLE_S,
            "body_timeout": IDLE_S,
            "max_body_size": BODY_BYTES,
            "max_header_size": 16 * 1024,
            "xheaders": PROXY,
        }
        super().initialize(*args, **settings)
        self.held: dict[Any, Peer] = {}

    def handle_stream(self, stream: Any, address: tuple) -> None:
        """Take a connection, unless its address has too many; a proxy's are the proxy's to count."""
        peer = PEERS.at(str(address[0]) if address else "")
        if peer.connections >= MOST_CONNECTIONS and not PROXY:
            stream.close()
            return
        peer.connections += 1
        self.held[stream] = peer
        super().handle_stream(stream, address)

    def on_close(self, server_conn: Any) -> None:
        super().on_close(server_conn)
        self.held.pop(server_conn.stream).connections -= 1
