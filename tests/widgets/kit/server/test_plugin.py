"""Where the served course reaches into Bokeh's server and Bokeh's JSON: it works with the pinned version, and
says so where another one is different."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

# in a process of its own: the plugin changes Bokeh's list for good
IN_A_FRESH_PYTHON = """
import json
import panel.io.server  # which puts routes of its own among them, before the plugin is asked for
from bokeh.server import tornado, urls
from bokeh.server.views.doc_handler import DocHandler
{before}
from widgets.kit.server import plugin
print(json.dumps([[path, handler.__name__] for path, handler in tornado.per_app_patterns]))
"""


def imported(before: str) -> subprocess.CompletedProcess:
    code = IN_A_FRESH_PYTHON.format(before=before)
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_of_the_application_only_the_socket_is_reached():
    done = imported("")
    assert json.loads(done.stdout) == [["/ws", "Socket"]], done.stderr


@pytest.mark.parametrize(
    "before",
    [
        'urls.per_app_patterns[:] = [("/", DocHandler)]',
        "urls.per_app_patterns += urls.per_app_patterns",
        "urls.per_app_patterns.clear()",
    ],
)
def test_routes_that_are_not_understood_stop_the_server(before):
    done = imported(before)
    assert done.returncode == 1 and done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert "per_app_patterns" in last and "docs/bokeh.md" in last


def test_routes_with_settings_are_understood():
    """As Bokeh's type of the list allows; none has any today."""
    done = imported("urls.per_app_patterns[:] = [(*route, {}) for route in urls.per_app_patterns]")
    assert json.loads(done.stdout) == [["/ws", "Socket"]], done.stderr


def test_a_page_gets_no_models_of_panels():
    """Where Panel is imported, Bokeh's JSON describes its models too."""
    code = """
import panel
from bokeh.embed import json_item
from bokeh.plotting import figure
from widgets.kit.page import module
from widgets.kit.widget import all_widgets
ours, _ = module._picture(all_widgets()["memory_stack"])
print("defs" in json_item(figure())["doc"], "defs" in ours["doc"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr
