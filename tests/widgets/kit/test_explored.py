"""An estimate as a small figure: its bars add up, and say what the estimate says."""

import re

import pytest

import engine
from engine.base import units
from widgets.kit.explored import explore

JOB = engine.Job(global_batch=512, seq=8192)
CASES = {
    "in the node": ("llama3-70b", engine.Layout(gpus=256, tp=8, pp=4)),
    "beyond it": ("llama3-70b", engine.Layout(gpus=256, tp=16, pp=4)),
    "too large": ("llama3-70b", engine.Layout(gpus=8, tp=8)),
    "experts": ("mixtral-8x7b", engine.Layout(gpus=64, tp=2, ep=8)),
}


@pytest.fixture(params=CASES)
def found(request):
    model, layout = CASES[request.param]
    return engine.estimate(model, "h100-sxm", JOB, layout)


def test_the_terms_fill_the_bar_of_the_step(found):
    pieces = explore(found).time()
    assert sum(each.share for each in pieces) == pytest.approx(1.0)
    assert [each.size for each in pieces] == [
        units.human(seconds, "seconds") for seconds in found.time_s.values() if seconds
    ]


def test_the_parts_fill_as_much_as_the_gpu_is_asked_for(found):
    held = found.memory_bytes
    share = sum(each.share for each in explore(found).memory())
    assert share == pytest.approx(min(1.0, held["total"] / held["capacity"]))
    assert ("does not fit" in str(explore(found))) == (not found.fits)


def test_tensor_traffic_has_the_colour_of_its_wire():
    def colour(layout):
        estimate = engine.estimate("llama3-70b", "h100-sxm", JOB, layout)
        return {each.name: each.colour for each in explore(estimate).time()}["tensor traffic"]

    assert colour(engine.Layout(gpus=256, tp=8, pp=4)) == "link"
    assert colour(engine.Layout(gpus=256, tp=16, pp=4)) == "network"


def test_what_a_notebook_shows_asks_nothing_of_a_network(found):
    html = explore(found)._repr_html_()
    assert not re.search(r"https?:|src=|url\(|<script", html)
    assert all(each.name in html and each.size in html for each in explore(found).time())


def test_only_an_estimate_is_explored():
    with pytest.raises(ValueError, match=r"estimate must be what engine\.estimate gives, got str"):
        explore("llama3-70b")
