"""prefill_decode: what is drawn is the run, the three ways differ as they should, and the break-it state says
so."""

import itertools

import numpy as np
import pytest

from engine.serving import latencies, steady_state
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.serving.prefill_decode import COUNTED_REQUESTS, SHOWN, PrefillDecode

READER = Reader(PrefillDecode)
widget, met = READER.widget, READER.met


def test_the_bars_are_the_first_requests_after_the_warm_up_in_order():
    made = widget()
    bars, run = made.shown()["parts"]["requests"], made.run()
    came = run["came_s"][:SHOWN]
    np.testing.assert_allclose(bars["left"], came - came[0])
    assert (np.diff(bars["left"]) > 0).all() and came[0] > 5  # the 80 before it take ten seconds
    order = ("left", "prefill", "spoke", "moved", "right")
    assert all((bars[a] <= bars[b]).all() for a, b in itertools.pairwise(order))
    assert len(run["last_s"]) == COUNTED_REQUESTS and (run["last_s"] > 0).all()


def test_nothing_is_moved_unless_the_pools_are_apart():
    for mode, moves in (("prefill_first", False), ("chunked", False), ("disaggregated", True)):
        bars = widget(mode=mode).shown()["parts"]["requests"]
        assert (bars["moved"] > bars["spoke"]).any() == moves


def test_chunks_shorten_the_pauses_and_pools_apart_end_them():
    """At the default's traffic half of the readers meet a pause of a whole prompt; 512-token chunks leave one
    of a chunk; alone, what remains is a cache on its way and one step."""
    pause = {
        mode: made.median_pause(made.run())
        for mode in ("prefill_first", "chunked", "disaggregated")
        for made in [widget(mode=mode)]
    }
    assert pause["disaggregated"] < pause["chunked"] < pause["prefill_first"] / 5
    costs = widget().costs()
    chunk_s = np.interp(512, costs.rows, costs.rows_s)
    assert chunk_s < pause["chunked"] < 1.5 * chunk_s


def test_moving_a_cache_takes_its_bytes_over_the_wire():
    """2,000 tokens alike of 327,680 B and one more: 0.656 GB, 52.5 ms at 12.5 GB/s where no one else is on
    the wire."""
    made = widget(mode="disaggregated", wire=12.5e9, spread=0, rate=0.2)
    assert made.moving_s() == pytest.approx(2001 * 327_680 / 12.5e9)


def test_the_wire_that_eats_the_saving():
    assert "wire_too_narrow" in met(mode="disaggregated", wire=1.25e9)
    assert "wire_too_narrow" not in met(mode="disaggregated")
    assert "wire_too_narrow" not in met(mode="chunked", wire=1.25e9)


def test_too_much_traffic_says_so_and_shows_no_number_of_it():
    assert "overloaded" in met(rate=200) and not met(rate=16) & {"overloaded", "near_the_limit"}
    assert met(rate=24) >= {"near_the_limit"} and "overloaded" not in met(rate=24)
    shown = READER.readouts(rate=40)
    assert {shown[name] for name in ("first_median", "first_most", "each_most", "pause", "meet")} == {
        "not settled"
    }
    said = READER.shown(rate=40)["summary"]
    assert not lacks(said, "Llama 3 70B", "prompts first", "40 requests", "28.3", "411 ms")


@pytest.mark.parametrize(("rate", "share"), [(8, 1.0), (20, 0.82), (24, 0.0)])
def test_the_figure_shows_the_steady_state(rate, share):
    """Over its seeds, what long runs have (lesson 12's table); from an idle start it was nearly all of the
    requests at every rate."""
    met_in = [widget(rate=rate, seed=seed).attained() for seed in range(12)]
    assert np.mean(met_in) == pytest.approx(share, abs=0.15)


def test_the_default_run_is_near_a_long_one():
    made = widget()
    long = steady_state.settle(
        made.steps(), made.traffic()._replace(requests=8000), made.service(0), 1.0, (0.05,), longest=1
    )
    felt = made.felt()
    for found, known in (
        (latencies.percentile(felt.ttft_s, 0.5), long.ttft_s),
        (latencies.percentile(felt.ttft_s, 0.9), long.ttft_most_s),
        (latencies.percentile(felt.tpot_s, 0.9), long.tpot_most_s),
        (latencies.percentile(felt.pause_s, 0.5), long.pause_s),
    ):
        assert found == pytest.approx(known.value, rel=0.08)  # of 160 requests


def test_the_first_token_s_percentiles_are_numpy_s():
    made = widget()
    run = made.run()
    waits = run["first_s"] - run["came_s"]
    assert latencies.percentile(latencies.felt(run).ttft_s, 0.9) == pytest.approx(np.percentile(waits, 90))
    assert made.shown()["readouts"]["first_median"]["text"] == f"{np.percentile(waits, 50) * 1e3:.0f} ms"


def test_no_more_replicas_prefill_than_leave_one_to_decode():
    made = widget(mode="disaggregated", replicas=2, prefillers=9)
    assert made.front() == 1 and made.decoders() == 1
    calm = widget(mode="disaggregated", replicas=2, prefillers=9, rate=2)
    assert not lacks(calm.shown()["summary"], "1 replica to prefill", "1 to decode")


def test_a_request_says_how_it_fared():
    said = widget().hints()["requests"]
    assert len(said) == SHOWN and said[11].startswith("Request 12: ") and "cache on the wire 0 s" in said[11]
