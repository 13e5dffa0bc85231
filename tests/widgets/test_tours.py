"""Tours: each sentence is true in its state, and no number in it was typed by hand."""

import itertools
import re

import numpy as np
import pytest

from engine.base import check
from engine.catalog import models
from engine.mechanism import walls
from engine.serving import latencies
from tests import states
from widgets.kit import guide
from widgets.kit.widget import all_widgets

TOURS = {slug: cls for slug, cls in all_widgets().items() if cls.tour}
NAMES = {"1F1B", "ZB-H1"}  # words with a digit that are no number
HARD = {
    "pipeline_timeline",
    "ring_allreduce",
    "ring_attention",
    "moe_routing",
    "regime_cube",
    "layout_planner",
    "flash_attention",
    "prefill_decode",
}


def test_the_hard_figures_have_a_tour():
    assert set(TOURS) >= HARD


@pytest.mark.parametrize("slug", TOURS)
def test_no_number_of_a_tour_is_typed_by_hand(slug):
    for step in TOURS[slug].tour:
        typed = set(re.findall(r"[\w-]*\d[\w-]*", re.sub(r"\{\w+\}", "", step.words)))
        assert typed <= NAMES, f"{typed - NAMES} in {step.words!r}: say it by a readout, a control or a text"


@pytest.mark.parametrize("slug", TOURS)
def test_each_sentence_says_what_the_widget_says_in_its_state(slug):
    cls = TOURS[slug]
    told = guide.tour(cls)
    assert len(told) == len(cls.tour)
    for step, made in zip(cls.tour, told):
        widget = cls()
        widget.set_state(made.state)
        shown = widget.shown()
        assert made.sentence[-1] == "." and "{" not in made.sentence
        for name in re.findall(r"\{(\w+)\}", step.words):
            if name in shown["readouts"]:
                assert shown["readouts"][name]["text"] in made.sentence
            elif name in cls.controls():
                control = cls.controls()[name]
                assert guide.setting(control, widget.raw_state()[name]) in made.sentence
            else:
                assert getattr(widget, name)() in made.sentence
        assert not step.light or step.light in guide.lights(cls)


@pytest.mark.parametrize("slug", TOURS)
def test_no_two_neighbouring_steps_are_the_same(slug):
    told = guide.tour(TOURS[slug])
    assert all((a.state, a.light) != (b.state, b.light) for a, b in itertools.pairwise(told))
    assert all(states.shown(TOURS[slug], **raw(TOURS[slug], step.state)) for step in told)


def raw(cls, texts: dict) -> dict:
    widget = cls()
    widget.set_state(texts)
    return widget.raw_state()


# -- what the sentences claim beyond their numbers -----------------------------------------------------------
def steps(slug: str) -> list:
    """The widget as each step of its tour has it."""
    made = []
    for step in guide.tour(TOURS[slug]):
        widget = TOURS[slug]()
        widget.set_state(step.state)
        made.append(widget)
    return made


@pytest.fixture(autouse=True)
def trusted():
    with check.trusted():
        yield


def met(widget) -> set[str]:
    return {name for name, regime in widget.shown()["regimes"].items() if regime["met"]}


def test_the_pipeline_waits_and_holds_as_its_tour_says():
    all_of = steps("pipeline_timeline")
    one, gpipe, more, interleaved, zero, starved = (step.found() for step in all_of)
    held = [step.most_held() for step in all_of]
    assert 0 < one["bubble"] == pytest.approx(gpipe["bubble"])
    assert np.nanmin(gpipe["held"]) == held[1] == all_of[1].micro_batches > held[0]
    assert more["bubble"] * more["step_s"] == pytest.approx(one["bubble"] * one["step_s"])
    assert held[2] == held[0] and more["bubble"] < one["bubble"]
    assert interleaved["bubble"] < one["bubble"] and held[3] > held[0]
    assert zero["bubble"] < one["bubble"] and held[4] <= held[0]
    assert len(all_of[4].weights()["x"]) > 0
    assert "starved" in met(all_of[5]) and starved["bubble"] > max(one["bubble"], more["bubble"])


def test_the_ring_sums_and_sends_as_its_tour_says():
    first, sending, half, whole, eight, single = steps("ring_allreduce")
    everything = [step.shown() for step in (first, sending, half, whole, eight, single)]
    said = [{name: each["text"] for name, each in shown["readouts"].items()} for shown in everything]

    def shares(shown) -> np.ndarray:
        """[rank, chunk]: the share of the ranks that each cell sums."""
        cells = shown["parts"]["cells"]
        side = int(np.sqrt(len(cells["share"])))
        return np.reshape(cells["share"], (side, side))[:4, :4]

    assert np.all(shares(everything[0]) == 0.25) and said[0]["busiest"] == "0 B"
    assert (
        said[1]["busy"] == "4 of 4" and (np.array(everything[1]["parts"]["messages"]["seen"]) > 0).sum() == 4
    )
    assert half.moment() == half.steps() / 2 and np.all((shares(everything[2]) == 1).sum(axis=1) == 1)
    assert np.all(shares(everything[3]) == 1) and said[3]["busiest"] == said[3]["idlest"] == said[3]["least"]
    assert eight.moment() == eight.steps() > whole.steps()
    assert whole.busiest_bytes() < eight.busiest_bytes() < 2 * eight.size
    assert said[5]["busy"].startswith("1 of") and single.time_s() > whole.time_s()


def test_the_ring_of_attention_works_and_waits_as_its_tour_says():
    begun, one, done, contiguous, zigzag, short = steps("ring_attention")
    assert begun.state() == 0 and one.state() == 1 and one.way() > 0
    assert done.done() and done.difference() < 1e-14 < one.difference()
    lane = contiguous.shown()["parts"]["lanes"]
    waits = np.reshape(lane["waits"], (8, 8))[:4, :4]
    assert waits[0].sum() >= 2 and waits[3].sum() == 0 and contiguous.busy_share() < 0.7
    assert zigzag.busy_share() > 0.95 and zigzag.total_s() < contiguous.total_s()
    assert short.message_s() > short.busiest_s(1)


def test_the_experts_drop_and_wait_as_their_tour_says():
    even, skewed, kept, loss, bias = steps("moe_routing")
    assert even.imbalance() < 1.2 < skewed.capacity_factor < skewed.imbalance()
    assert even.dropped() < skewed.dropped() and skewed.dropped() > 0.1
    assert kept.dropped() == 0 and kept.layer_s() > 1.5 * kept.even_s()
    assert loss.imbalance() < skewed.imbalance() and loss.dropped() < skewed.dropped()
    assert bias.imbalance() == pytest.approx(loss.imbalance(), rel=0.1)


def test_the_walls_stand_where_the_cube_s_tour_says():
    compute, memory, network, faster, serving, chats = (all_of := steps("regime_cube"))
    binding = [int(walls.binding_load(step.chosen())) for step in all_of]
    assert binding == [1, 0, 2, 2, 2, 1]
    assert models.parameters(memory.in_focus()) > 4 * models.active_parameters(memory.in_focus())
    assert network.chosen()[1] < compute.chosen()[1] / 10
    assert faster.chosen()[2] > 10 * network.chosen()[2]
    assert chats.context < serving.context and chats.batch > serving.batch


def test_the_planner_finds_what_its_tour_says():
    best, times, lean, many, few = steps("layout_planner")
    found = [step.outcome() for step in (best, times, lean, many, few)]

    def arithmetic(outcome) -> float:
        return outcome.times_s[0][0] / outcome.step_s[0]

    assert arithmetic(found[1]) > 0.9 and np.all(found[1].slower_by[1:5] >= 0)
    assert found[2].found.fitting / found[2].found.legal < found[0].found.fitting / found[0].found.legal
    assert found[3].step_s[0] < found[0].step_s[0]
    assert found[3].mfu[0] < found[0].mfu[0] and arithmetic(found[3]) < arithmetic(found[0])
    assert few.none_fits() and not few.none_legal()
    assert found[4].total_bytes[0] > few.cluster().hbm_bytes


def test_the_tiles_do_what_their_tour_says():
    scores, held, running, done, long, wide = steps("flash_attention")
    assert [step.state() for step in (scores, held, running)] == [0, 1, 9]
    assert done.state() == done.steps() and done.difference() < 1e-14 < running.difference()
    assert done.tiled(done.seq) < done.standard(done.seq)
    grown = (long.seq / done.seq) ** 2
    for moved in ("standard", "tiled"):
        assert getattr(long, moved)(long.seq) == pytest.approx(
            grown * getattr(done, moved)(done.seq), rel=0.05
        )
    assert long.tiled(long.seq) < long.standard(long.seq) and wide.moves_more()


def test_requests_wait_as_their_tour_says():
    first, chunks, apart, narrow = steps("prefill_decode")
    pause = [float(step.median_pause(step.run())) for step in (first, chunks, apart, narrow)]
    spoken = [float(latencies.percentile(step.felt().ttft_s, 0.5)) for step in (first, chunks)]
    assert "stalled" in met(first) and pause[1] < pause[0] / 2 and spoken[1] > spoken[0]
    assert pause[2] < pause[0] and apart.moving_s() > 0
    assert met(narrow) >= {"wire_too_narrow", "overloaded"} and narrow.can_serve() < narrow.rate
