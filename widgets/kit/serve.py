"""Routes that let ``panel serve`` give out the built course beside the live session, from one origin.

Every page is the static one plus a single line that says where Python answers.
"""

from __future__ import annotations

import re
from pathlib import Path

from bokeh.util.token import generate_jwt_token, generate_session_id
from tornado.web import RequestHandler, StaticFileHandler

SITE = Path(__file__).resolve().parents[2] / "build" / "static"


class Token(RequestHandler):
    """A fresh session's token for the page that asks."""

    def get(self):
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(generate_jwt_token(generate_session_id()))


class Sitemap(RequestHandler):
    """The sitemap with this server's address for the one the build was told: instant navigation goes by it, port and all."""

    def get(self):
        text = (SITE / "sitemap.xml").read_text(encoding="utf-8")
        home = min(re.findall("<loc>(.*?)</loc>", text), key=len)
        self.set_header("Content-Type", "application/xml; charset=utf-8")
        self.finish(text.replace(home, f"{self.request.protocol}://{self.request.host}/"))


class Course(StaticFileHandler):
    """The static site; its pages learn here that a server stands behind them."""

    def initialize(self):
        super().initialize(str(SITE), default_filename="index.html")

    async def get(self, path, include_body=True):
        self.path = self.parse_url_path(path)
        page = self.validate_absolute_path(self.root, self.get_absolute_path(self.root, self.path))
        if page is None:  # a folder without its slash: tornado has sent the reader on
            return
        if not page.endswith(".html"):
            return await super().get(path, include_body)
        depth = len(Path(page).parent.relative_to(SITE).parts)
        mark = f'<meta name="course-server" content="{"../" * depth or "./"}"></head>'
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-cache")
        self.finish(Path(page).read_text(encoding="utf-8").replace("</head>", mark, 1) if include_body else "")

    def compute_etag(self):
        return super().compute_etag() if getattr(self, "absolute_path", None) else None

    def head(self, path):
        return self.get(path, include_body=False)

    def write_error(self, status_code, **kwargs):
        missing = SITE / "404.html"
        if status_code == 404 and missing.is_file():
            return self.finish(missing.read_text(encoding="utf-8"))
        super().write_error(status_code, **kwargs)


ROUTES = [(r"/live/token", Token), (r"/sitemap.xml", Sitemap), (r"/(.*)", Course)]

