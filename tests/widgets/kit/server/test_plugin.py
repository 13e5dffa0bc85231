"""Where the served course reaches into Bokeh's server and Bokeh's JSON: it works with the pinned version, and
says so where another one is different."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

# the plugin changes Bokeh's list for good: each way in a fork of a process that has imported Panel
IN_A_FRESH_PYTHON = """
import json, os, sys
import panel.io.server  # which puts routes of its own among them, before the plugin is asked for
from bokeh.server import tornado, urls
from bokeh.server.views.doc_handler import DocHandler
import engine.base.built
for number, before in enumerate(json.loads(sys.argv[1])):
    if not os.fork():
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{sys.argv[2]}/{number}.{name}", os.O_CREAT | os.O_WRONLY), descriptor)
        exec(before)
        from widgets.kit.server import plugin
        print(json.dumps([[path, handler.__name__] for path, handler in tornado.per_app_patterns]))
        sys.exit()
    ended = os.waitstatus_to_exitcode(os.wait()[1])
    open(f"{sys.argv[2]}/{number}.end", "w").write(str(ended))
"""
# how another Bokeh may hold its routes -> whether they are still understood
WAYS = {
    "": True,
    "urls.per_app_patterns[:] = [(*route, {}) for route in urls.per_app_patterns]": True,
    'urls.per_app_patterns[:] = [("/", DocHandler)]': False,
    "urls.per_app_patterns += urls.per_app_patterns": False,
    "urls.per_app_patterns.clear()": False,
}


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, tuple[str, ...]]:
    """What is printed, what is complained of, and how it ends, where Bokeh's routes were changed so."""
    folder = tmp_path_factory.mktemp("routes")
    command = [sys.executable, "-c", IN_A_FRESH_PYTHON, json.dumps(list(WAYS)), str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    kinds = ("out", "err", "end")
    return {
        way: tuple((folder / f"{number}.{kind}").read_text(encoding="utf-8") for kind in kinds)
        for number, way in enumerate(WAYS)
    }


@pytest.mark.parametrize("way", [way for way, understood in WAYS.items() if understood])
def test_of_the_application_only_the_socket_is_reached(said, way):
    """Also where routes have settings, as Bokeh's type of the list allows; none has any today."""
    printed, complained, _ = said[way]
    assert json.loads(printed) == [["/ws", "Socket"]], complained


@pytest.mark.parametrize("way", [way for way, understood in WAYS.items() if not understood])
def test_routes_that_are_not_understood_stop_the_server(said, way):
    printed, complained, ended = said[way]
    assert ended == "1" and printed == ""
    last = complained.strip().splitlines()[-1]
    assert "per_app_patterns" in last and "docs/bokeh.md" in last


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
