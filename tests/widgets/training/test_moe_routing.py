"""moe_routing by hand: what stands on each expert, what is dropped, and who waits for whom."""

import numpy as np
import pytest

from engine.executed import routing
from engine.mechanism import experts
from tests import states
from tests.widgets.reading import Reader
from widgets.training.moe_routing import MoeRouting

READER = Reader(MoeRouting)
shown, part, met, text = READER.shown, READER.part, READER.met, READER.text


LOAD = routing.route(8, 2, 0.8, 1, routing.OFF, 0)["load"][:8]


def test_bars_are_the_queues_over_their_mean_and_red_beyond_the_capacity():
    bars = part("bars")
    assert bars["top"] == pytest.approx(LOAD / 128) and bars["kept"] == pytest.approx(
        np.minimum(LOAD, 160) / 128
    )
    assert bars["over"].tolist() == (LOAD > 160).astype(float).tolist() and sum(bars["over"]) == 2
    assert bars["amount"] == [f"{count:.0f}" for count in LOAD] and bars["name"][7] == "8"


@pytest.mark.parametrize(("experts_", "count"), [("8", 8), ("64", 64)])
def test_as_many_bars_and_lines_as_there_are_experts_and_choices(experts_, count):
    parts = shown(experts=experts_, top_k=3)["parts"]
    assert len(parts["bars"]["top"]) == count and len(parts["lines"]["from"]) == 64 * 3
    assert (parts["bars"]["right"][:-1] <= parts["bars"]["left"][1:]).all()


def test_lines_end_at_their_experts_and_late_ones_are_dropped():
    lines, bars = part("lines"), part("bars")
    assert set(np.round(lines["to"], 9)) <= set(np.round(bars["middle"], 9))
    dropped = np.flatnonzero(lines["dropped"])
    assert dropped.size and (lines["kept"][dropped] == 0).all()
    assert lines["from"][dropped].min() > 0.4, "queues fill before half of the tokens have come, not before"


def test_what_is_dropped_is_counted():
    share = np.maximum(LOAD - 160, 0).sum() / 1024
    assert text("lost") == f"{100 * share:.3g} %"


def test_the_fullest_gpu_sets_the_time_and_the_average_one_waits():
    times = part("times", capacity_factor=4.0)
    assert (
        times["computed"][0] == pytest.approx(times["waited"][0])
        and times["computed"][1] < times["waited"][1]
    )
    assert (times["end"] == 1).all() and times["wire"] == ["link", "link"]
    wide, narrow = times["computed"] - times["sent"]
    assert narrow / wide == pytest.approx(128 / LOAD.max(), rel=0.03), "whole tiles make up the difference"
    assert part("times", experts="64")["wire"] == ["network", "network"]


def test_an_even_router_takes_the_even_time():
    assert text("layer_time", skew=0, capacity_factor=1.0) == pytest.approx(text("even_time"))


def test_balancing_evens_the_load():
    assert float(text("loss")) > 1.2 > 1.05 > float(text("loss", balancing="loss"))
    for way in ("loss", "bias"):
        assert float(text("most", balancing=way).split("×")[0]) < 1.3
    assert text("lost", balancing="loss") == "0 %"


def test_the_target_is_found_by_skew_and_by_capacity():
    assert met() == set()
    assert met(skew=1.5) == {"overflow"} and met(capacity_factor=0.5) == {"overflow"}
    assert met(skew=1.5, capacity_factor=4.0) == {"straggler"}


def test_few_tokens_starve_the_experts():
    assert "starved" in met(tokens=16) and "starved" not in met(tokens=16384)


def test_a_mark_says_what_it_is():
    widget = MoeRouting()
    asked = LOAD[0]
    assert (
        widget.hints()["bars"][0]
        == f"expert 1: {asked:.0f} tokens choose it, {asked - 160:.0f} of them are dropped"
    )
    assert widget.hints()["bars"][7].endswith(" 0 of them are dropped")


def test_presets_say_what_they_are():
    found = dict(zip(MoeRouting.presets, states.presets(MoeRouting)))
    assert found["2 of 8 experts"] == states.default(MoeRouting)
    for name, preset in MoeRouting.presets.items():
        widget = MoeRouting()
        widget.set_state(preset)
        if " of " in name:
            top_k, total = [int(word) for word in name.replace(",", "").split() if word.isdigit()][:2]
            assert (widget.top_k, widget.experts) == (top_k, total)
        if widget.model.name in name:
            assert (widget.model.top_k, widget.model.experts) == (widget.top_k, widget.experts)


def test_the_layer_is_the_engine_s():
    widget = MoeRouting()
    most, _ = routing.worked(LOAD, 160, 8)
    block = experts.block(widget.model, 8, 2)
    assert widget.layer_s() == pytest.approx(
        sum(experts.layer(block, 4096, 8, widget.machine, 8, False, False, most))
    )


def test_what_is_dropped_and_how_long_the_average_waits_stand_at_their_marks():
    assert part("drop")["text"] == f"{text('lost')} of all choices are dropped"
    assert part("drop", capacity_factor=4)["text"] == "nothing is dropped"
    times, idle = part("times"), part("idle")
    waits = times["waited"][1] - times["computed"][1]
    assert idle["wide"] == f"idle {100 * waits:.0f} %" and idle["narrow"] == f"{100 * waits:.0f} %"
    assert times["computed"][1] < idle["x"] < times["waited"][1]
    assert part("idle", skew=0, balancing="loss")["narrow"] == ""
