"""Promises on pauses: what is proposed for a limit on the longest pause keeps it in a long run with other
requests, and of deployments that cost the same the one that does not pause is taken."""

import math
from dataclasses import replace

import numpy as np
import pytest

from engine import catalog
from engine.serving import steady_state
from engine.serving.deployment import Limits, Load, finder, rehearsal
from engine.serving.deployment.rehearsal import Fleet
from engine.step.layout import Machine
from tests.cases import in_one_test

LLAMA, H100 = catalog.model("llama3-70b"), Machine.of("h100-sxm")
OPENING = Load(8, 2000, 200, 0.6, 0.6)  # the load that lesson 12 opens with
REQUESTS = 20_000


def best(limits):
    return finder.deploy(LLAMA, H100, OPENING, limits, formats=("bf16",), top=1).best


def fleet_of(one) -> Fleet:
    """The deployment as it is simulated."""
    kinds = {
        (each.replica, each.weights, each.only): each
        for each in finder.kinds(LLAMA, H100, OPENING, (one.weights,), (one.kv_precision,))
    }
    writes = kinds[one.replica, one.weights, ""]
    reads = kinds[one.reads, one.weights, ""]
    units = math.gcd(one.prefill_replicas, one.decode_replicas)
    return Fleet(
        *(writes.costs, units, one.prefill_replicas // units, one.decode_replicas // units),
        *(
            one.chunk,
            one.largest_batch,
            min(writes.wire_bytes_per_s, reads.wire_bytes_per_s),
            None,
            reads.costs,
        ),
    )


@pytest.mark.parametrize("pause_s", [0.025, 0.03, 0.05, 0.1])
def test_the_opening_load_keeps_its_promises_in_a_long_run(pause_s):
    limits = Limits(1.0, 0.05, pause_s=pause_s)
    one = best(limits)
    felt = rehearsal.run(fleet_of(one), OPENING, limits, REQUESTS, seed=11)
    assert felt.requests >= (1 - steady_state.WARM_UP) * REQUESTS
    assert one.felt.pause_s <= pause_s and felt.pause_s <= pause_s
    assert felt.ttft_s <= limits.ttft_s and felt.tpot_s <= limits.tpot_s
    assert felt.kept == pytest.approx(one.felt.kept, abs=0.02) and felt.kept >= limits.share


def test_without_a_limit_no_chunk_pauses_that_costs_the_same():
    """Three replicas keep both promises with chunks of 512 and of 8,192 tokens; the larger stop everybody."""
    limits = Limits(1.0, 0.05)
    one = best(limits)
    large = replace(one, chunk=8192)
    felt = rehearsal.run(fleet_of(large), OPENING, limits, REQUESTS, seed=11)
    assert felt.ttft_s <= limits.ttft_s and felt.tpot_s <= limits.tpot_s  # the promises that it was chosen by
    assert one.chunk < large.chunk and one.gpus == large.gpus
    assert felt.pause_s > 5 * one.felt.pause_s and one.felt.pause_s < 1.1 * limits.tpot_s


def test_a_tighter_limit_never_costs_less():
    gpus = [best(Limits(1.0, 0.05, pause_s=pause)).gpus for pause in (1.0, 0.1, 0.05, 0.03, 0.025)]
    assert gpus == sorted(gpus)


@in_one_test("first, token, pause", [(1.0, 0.05, 1e9), (0.3, 0.02, 0.04), (0.5, 0.05, 0.4)])
def test_goodput_is_the_share_of_requests_that_kept_every_promise(first, token, pause):
    limits = Limits(first, token, pause_s=pause)
    fleet = fleet_of(best(Limits(1.0, 0.05)))
    felt = rehearsal.run(fleet, OPENING, limits, 2000)
    each = [
        rehearsal.run(fleet, OPENING, replace(limits, **dict.fromkeys(others, 1000000000.0)), 2000).kept
        for others in (("ttft_s", "tpot_s"), ("ttft_s", "pause_s"), ("tpot_s", "pause_s"))
    ]
    assert max(0.0, sum(each) - 2.0) - 1e-9 <= felt.kept <= min(each) + 1e-9


def test_a_pause_that_nothing_keeps_is_refused_by_name():
    with pytest.raises(ValueError, match="pause_s must be at least"):
        best(Limits(1.0, 0.05, pause_s=0.002))
    with pytest.raises(ValueError, match="pause_s"):
        Limits(1.0, 0.05, pause_s=0.0)


def test_the_closed_form_of_a_pause_is_near_what_is_simulated():
    """It chooses what is worth simulating: within a third for every chunk of the opening load."""
    search = finder.prepared(LLAMA, H100, OPENING, Limits(2.0, 0.1), ("bf16",), ("bf16",), True, (), None)
    one, ratios = best(Limits(1.0, 0.05)), []
    for chunk in finder.CHUNKS[1:]:
        felt = rehearsal.run(fleet_of(replace(one, chunk=chunk)), OPENING, Limits(1.0, 0.05), 4000)
        plans = search.plans
        [plan] = np.nonzero(
            (plans.budget == chunk)
            & (plans.prefillers == 0)
            & np.array([search.tables[i].replica == one.replica for i in plans.table])
        )[0].tolist()
        ratios.append(float(search.judged(plan, one.replicas).pause_s[0]) / felt.pause_s)
    assert all(2 / 3 < ratio < 3 / 2 for ratio in ratios), ratios
