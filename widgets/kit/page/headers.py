"""The HTTP headers that a host of the course should send with every answer: written once, for each way of
serving.

- ``panel serve``: ``of(path, versioned)`` (widgets/kit/server/pages.py)
- nginx: ``build/headers.conf``, included by deploy/nginx/nginx.conf
- hosts that read a ``_headers`` file (Netlify, Cloudflare Pages): ``build/static/_headers``
- hosts that take no headers at all (GitHub Pages): a meta element in each page, which can carry the content
  policy but neither frame-ancestors nor the rest

The pages need nothing from other hosts and contain no inline script, so only files of the same origin may
run. Inline styles are allowed, because pages set a figure's height and BokehJS positions its layers with
them. Lessons must not be framed by other sites; a widget's own page may be embedded.
"""

from __future__ import annotations

import base64
import hashlib
import re

from widgets.kit.widget import all_widgets

POLICY = "; ".join(
    (
        "default-src 'self'",
        "object-src 'none'",  # Firefox prefetches the next lesson, which no other directive allows
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "frame-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
# The frame in which a reader's Python runs (assets/puzzle). Brython writes JavaScript and evaluates it, which
# the pages may not do. This frame may, but its origin is opaque (``sandbox``), and it cannot send requests to
# anybody: not even a script of the own origin may be loaded, because ``import()`` of one would carry out what
# is written in its address. So the frame's only script stands in it, and the policy names its digest.
FRAME = "assets/puzzle/frame.html"
IN_THE_FRAME = """
// Starts a worker from the texts that the page hands in, and passes messages on.
let worker = null;
addEventListener("message", ({ source, data }) => {
  if (source !== parent) return;
  if (!data.texts) return worker?.postMessage(data);
  worker = new Worker(URL.createObjectURL(new Blob(data.texts, { type: "text/javascript" })));
  worker.onmessage = ({ data: said }) => parent.postMessage(said, "*");
  worker.onerror = () => parent.postMessage({ failed: true, secret: data.secret }, "*");
  worker.postMessage({ puzzle: data.puzzle, secret: data.secret });
});
parent.postMessage({ open: true }, "*");
"""
DIGEST = base64.b64encode(hashlib.sha256(IN_THE_FRAME.encode()).digest()).decode()
OF_THE_FRAME = "; ".join(
    (
        "default-src 'none'",
        f"script-src 'sha256-{DIGEST}' 'unsafe-eval' blob:",
        "worker-src blob:",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
FRAMED_BY_NOBODY = "frame-ancestors 'self'"
ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=(), fullscreen=(self), "
    "clipboard-write=(self)",
}
KEPT = "public, max-age=31536000, immutable"  # the address changes with the contents
ASKED_AGAIN = "no-cache"  # cached, but revalidated: an answer of 200 bytes if unchanged
HASHED = r"assets/(javascripts|stylesheets)/.*\.[0-9a-f]{8}\.min\.(js|css)$"

META = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'


def _own_pages() -> str:
    """A regular expression for the folders of the widgets' own pages."""
    return f"({'|'.join(all_widgets())})/"


def frame() -> str:
    """The page of the frame, with its policy."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{OF_THE_FRAME}">\n'
        "<title>Where a reader's Python runs</title>\n"
        f"<script>{IN_THE_FRAME}</script>\n</head>\n</html>\n"
    )


def nginx() -> str:
    """The headers in nginx's syntax, for the http block, because a location with its own add_header would
    lose them."""
    lines = [
        "# Written by course/build.py from widgets/kit/page/headers.py.",
        f'map $uri $course_policy {{ default "{POLICY}"; ~/{re.escape(FRAME)}$ "{OF_THE_FRAME}"; }}',
        f'map $uri $course_framing {{ default "; {FRAMED_BY_NOBODY}"; ~/{_own_pages()} ""; }}',
        (
            f'map "$uri?$args" $course_caching {{ default "{ASKED_AGAIN}"; ~^/live/ ""; "~\\?v=" "{KEPT}"; '
            f'"~{HASHED[:-1]}\\?" "{KEPT}"; }}'
        ),
    ]
    for name, value in ALWAYS.items():
        sent = "$course_policy$course_framing" if value == POLICY else value
        lines += [f'add_header {name} "{sent}" always;', f"proxy_hide_header {name};     # said here once"]
    return "\n".join([*lines, "add_header Cache-Control $course_caching;\n"])


def of(path: str, versioned: bool) -> dict[str, str]:
    """The headers of the answer to a path, as in ``01-why-distributed/``. ``versioned`` says that its
    address ends in ``?v=`` and a version."""
    found = dict(ALWAYS)
    if path == FRAME:
        found["Content-Security-Policy"] = OF_THE_FRAME
    if not re.match(_own_pages(), path):
        found["Content-Security-Policy"] += f"; {FRAMED_BY_NOBODY}"
    return found | {"Cache-Control": KEPT if versioned or re.search(HASHED, path) else ASKED_AGAIN}


def _rule(page: str) -> str:
    """The rule for a page's folder: the folder itself, or a pattern with ``:page``, which stands for any
    name. Hosts accept about a hundred rules (Cloudflare Pages), so all figures share one, and so do all
    decks."""
    inner = re.sub(r"^/[^/]+/(?=[^/])", "/:page/", page)  # /04-data-parallel/slides/ -> /:page/slides/
    return "/:page/" if page.strip("/") in all_widgets() else inner


def underscore(pages: list[str]) -> str:
    """The headers as a ``_headers`` file, given the folders of all pages. If several rules match a page, all
    of their policies hold, so a second one can only narrow the first. Therefore a page that must not be
    framed has an additional rule, after the one for any page; and no rule is for all files, because the
    policy of the puzzles' frame allows more."""
    framed = f"; {FRAMED_BY_NOBODY}"
    rules = {
        "/*": {name: value for name, value in ALWAYS.items() if value != POLICY},
        "/assets/javascripts/*": {
            "Cache-Control": KEPT,
            "Content-Security-Policy": POLICY,
        },  # a worker has one too
        "/assets/stylesheets/*": {"Cache-Control": KEPT},
        f"/{FRAME}": {"Content-Security-Policy": OF_THE_FRAME + framed},
        "/:page/": {"Content-Security-Policy": POLICY},
    }
    for rule in dict.fromkeys(map(_rule, pages)):
        rules.setdefault(rule, {"Content-Security-Policy": POLICY + framed})
    return "".join(
        f"{path}\n" + "".join(f"  {name}: {value}\n" for name, value in headers.items())
        for path, headers in rules.items()
    )
