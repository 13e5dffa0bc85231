"""What every answer of a course's host should say beside the page itself: written once, for each way of serving.

- ``panel serve``: ``of(path, versioned)`` (widgets/kit/serve.py)
- nginx: ``build/headers.conf``, included by deploy/nginx/nginx.conf
- hosts that read a ``_headers`` file (Netlify, Cloudflare Pages): ``build/static/_headers``
- hosts that take no headers at all (GitHub Pages): a meta element in each page, which can carry the content policy but
  neither frame-ancestors nor the rest

The pages need nothing from anyone else and hold no script of their own, so only files of the own origin may run. Styles
may stand in attributes: pages set a figure's height and BokehJS places its layers by them. Lessons are framed by nobody
else; a widget's own page is there to be embedded.
"""

from __future__ import annotations

import re

from widgets.kit.widget import all_widgets

POLICY = "; ".join((
    "default-src 'self'", "object-src 'none'",     # Firefox fetches the next lesson ahead, which no other directive allows
    "script-src 'self'", "style-src 'self' 'unsafe-inline'", "img-src 'self' data: blob:", "font-src 'self'",
    "connect-src 'self'", "worker-src 'self'", "frame-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'"))
FRAMED_BY_NOBODY = "frame-ancestors 'self'"
ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=(), fullscreen=(self), clipboard-write=(self)",
}
KEPT = "public, max-age=31536000, immutable"       # its address changes with its contents
ASKED_AGAIN = "no-cache"                           # kept too, but asked after: an answer of 200 bytes when it is the same
HASHED = r"assets/(javascripts|stylesheets)/.*\.[0-9a-f]{8}\.min\.(js|css)$"

META = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'


def _own_pages() -> str:
    """A regular expression for the folders of the widgets' own pages."""
    return f"({'|'.join(all_widgets())})/"


def nginx() -> str:
    """The headers as nginx takes them, for the http block: a location with an add_header of its own would lose them."""
    lines = ["# Written by site/build.py from widgets/kit/headers.py.",
             f'map $uri $course_framing {{ default "; {FRAMED_BY_NOBODY}"; ~/{_own_pages()} ""; }}',
             f'map "$uri?$args" $course_caching {{ default "{ASKED_AGAIN}"; ~^/live/ ""; "~\\?v=" "{KEPT}"; '
             f'"~{HASHED[:-1]}\\?" "{KEPT}"; }}']
    for name, value in ALWAYS.items():
        framing = "$course_framing" if value == POLICY else ""
        lines += [f'add_header {name} "{value}{framing}" always;', f"proxy_hide_header {name};     # said here once"]
    return "\n".join([*lines, "add_header Cache-Control $course_caching;\n"])


def of(path: str, versioned: bool) -> dict[str, str]:
    """The headers of the answer to a path, as in ``01-why-distributed/``; ``versioned``: its address ends in ?v=…"""
    found = dict(ALWAYS)
    if not re.match(_own_pages(), path):
        found["Content-Security-Policy"] += f"; {FRAMED_BY_NOBODY}"
    return found | {"Cache-Control": KEPT if versioned or re.search(HASHED, path) else ASKED_AGAIN}


def underscore(pages: list[str]) -> str:
    """The headers as a ``_headers`` file, given the folders of all pages. A second policy narrows the first, so that
    framing is forbidden page by page rather than allowed."""
    rules = {"/*": ALWAYS, "/assets/javascripts/*": {"Cache-Control": KEPT}, "/assets/stylesheets/*": {"Cache-Control": KEPT}}
    for page in pages:
        if page.strip("/") not in all_widgets():
            rules[page] = {"Content-Security-Policy": FRAMED_BY_NOBODY}
    return "".join(f"{path}\n" + "".join(f"  {name}: {value}\n" for name, value in headers.items())
                   for path, headers in rules.items())
