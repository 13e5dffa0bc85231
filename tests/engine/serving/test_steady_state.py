"""The steady state: queues that are solved in closed form, what can be served at all, and errors that are as
large as they say."""

import numpy as np
import pytest

from engine import catalog
from engine.serving import (
    equilibrium,
    events,
    latencies,
    phases,
    queues,
    steady_state,
    step_costs,
    under_traffic,
)
from engine.serving.under_traffic import Service, Traffic
from engine.step.layout import machine

STEPS = step_costs.costs(catalog.model("llama3-70b"), machine(catalog.gpu("h100-sxm")), 4, prompt=2048)
SERVICE_S = 0.05
ALIKE = Traffic(60_000, 1.0, 100, 1, seed=3)  # prompts of 100 tokens, answered with a single one
PLANS = {
    "first": Service(0, 6, 3, 8192),
    "chunks": Service(1, 6, 3, 512),
    "long chunks": Service(1, 6, 3, 2048),
    "3:3": Service(2, 6, 3, 8192),
    "4:2": Service(2, 6, 4, 8192),
    "5:1": Service(2, 6, 5, 8192),
}


def clerk(most_tokens=1e9):
    """A replica whose only cost is a time in proportion to the tokens of a prompt."""
    return step_costs.Costs(np.array([1e-9, 100.0]), np.array([1e-12, SERVICE_S]), 0.0, 0.0, most_tokens, 1.0)


def waits(traffic, service):
    columns = steady_state.requests_of(clerk(), traffic, service)
    wait = columns["started"] - columns["came"]
    return wait[int(steady_state.WARM_UP * len(wait)) :]


# -- queues solved in closed form ----------------------------------------------------------------------------
@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_prompts_alike_wait_as_m_d_1_says(load):
    """ρ·S/(2·(1 − ρ)) (Pollaczek, Khinchine), within the run's own error."""
    found = steady_state.known(waits(ALIKE._replace(per_s=load / SERVICE_S), Service(0, 1, budget=100)))
    by_hand = load * SERVICE_S / (2 * (1 - load))
    assert abs(found.value - by_hand) < 1.5 * found.error < 0.15 * by_hand


@pytest.mark.parametrize("load", [0.4, 0.7])
def test_prompts_not_alike_wait_as_m_g_1_says(load):
    """λ·E[S²]/(2·(1 − ρ)) with the lengths' own moments, which is 1 + c² times M/D/1."""
    traffic = ALIKE._replace(prompt=1000, prompt_spread=0.6)
    mean, square = (equilibrium.moment(1000, 0.6, power) for power in (1.0, 2.0))
    mean_s, square_s = mean * SERVICE_S / 100, square * (SERVICE_S / 100) ** 2
    traffic = traffic._replace(per_s=load / mean_s)
    found = steady_state.known(waits(traffic, Service(0, 1, budget=1)))
    by_hand = traffic.per_s * square_s / (2 * (1 - load))
    assert abs(found.value - by_hand) < 1.5 * found.error < 0.25 * by_hand
    assert square_s / mean_s**2 == pytest.approx(np.exp(0.6**2), rel=0.03)


def m_d_c_wait_s(per_s, service_s, servers, most=400):
    """Crommelin 1932: whoever is in service leaves within S, so the number present changes over S by Poisson
    arrivals less those in service; its stationary mean gives the wait by Little's law."""
    arrived = per_s * service_s
    logs = np.arange(most) * np.log(arrived) - arrived - np.cumsum(np.log(np.maximum(1, np.arange(most))))
    poisson = np.exp(logs)
    move = np.zeros((most, most))
    for present in range(most):
        stay = max(0, present - servers)
        move[present, stay:] = poisson[: most - stay]
    share = np.full(most, 1 / most)
    for _ in range(20):
        move = move @ move
    share = share @ move
    share /= share.sum()
    return share @ np.arange(most) / per_s - service_s


@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("spread", [0.0, 0.6])
def test_one_in_ten_waits_as_long_as_the_rule_says(load, spread):
    mean_s = equilibrium.moment(100, spread, 1.0) * SERVICE_S / 100
    traffic = ALIKE._replace(prompt_spread=spread, per_s=load / mean_s)
    executed = np.percentile(waits(traffic, Service(0, 1, budget=1)), 90)
    assert queues.wait_within_s(load / mean_s, mean_s, 0.1, spread) == pytest.approx(executed, rel=0.13)


def test_a_rate_within_a_target_meets_it():
    per_s = queues.prefill_rate_within(0.15, 1.0, 0.1, 0.6)
    assert 0.15 + queues.wait_within_s(per_s, 0.15, 0.1, 0.6) == pytest.approx(1.0)
    assert per_s < queues.prefill_rate_within(0.15, 1.0) < queues.prefill_rate(0.15, 1.0)
    assert queues.prefill_rate_within(0.5, 0.4) == 0


def test_the_hand_s_own_m_d_1_is_m_d_c_with_one():
    assert m_d_c_wait_s(16.0, SERVICE_S, 1) == pytest.approx(0.8 * SERVICE_S / 0.4, rel=1e-6)


@pytest.mark.parametrize(("servers", "load"), [(2, 0.8), (3, 0.9), (6, 0.8)])
def test_one_queue_for_several_waits_as_m_d_c_says(servers, load):
    traffic = ALIKE._replace(per_s=servers * load / SERVICE_S)
    found = steady_state.known(waits(traffic, Service(0, servers, budget=100, one_queue=True)))
    by_hand = m_d_c_wait_s(traffic.per_s, SERVICE_S, servers)
    assert abs(found.value - by_hand) < 1.5 * found.error < 0.25 * by_hand


def test_one_queue_waits_less_than_a_queue_for_each():
    """Nobody stands behind a long prompt while another replica is idle."""
    traffic = Traffic(20_000, 3 * 0.85 / (SERVICE_S * 11.97), 1000, 1, 0.6, seed=2)
    one, each = (waits(traffic, Service(0, 3, budget=1, one_queue=shared)).mean() for shared in (True, False))
    assert one < each


# -- what can be served --------------------------------------------------------------------------------------
@pytest.mark.parametrize("plan", PLANS)
def test_a_queue_that_never_runs_empty_is_served_as_fast_as_the_closed_form_says(plan):
    """8,000 requests at once; counted from the time that 40 % are done until 70 % are, when as many wait."""
    traffic, service = Traffic(8000, 1e5, 2000, 200, 0.6, 0.6, seed=1), PLANS[plan]._replace(warm=False)
    last = np.sort(steady_state.requests_of(STEPS, traffic, service)["last"])
    begin, end = 3200, 5600
    served = (end - begin) / (last[end] - last[begin])
    assert steady_state.can_serve_per_s(STEPS, traffic, PLANS[plan]) == pytest.approx(served, rel=0.08)


def test_past_what_can_be_served_each_second_adds_load_less_one():
    traffic = Traffic(6000, 24.0, 2000, 200, 0.6, 0.6, seed=1)
    found = steady_state.settle(STEPS, traffic, PLANS["3:3"], 1.0, (0.05,))
    assert not found.steady and found.met is None and found.load == pytest.approx(1.28, abs=0.05)
    columns = steady_state.requests_of(STEPS, traffic, PLANS["3:3"])
    slope = np.polyfit(columns["came"], columns["first"] - columns["came"], 1)[0]
    assert found.falls_behind == pytest.approx(slope, rel=0.1)


def test_a_wire_can_be_what_falls_behind():
    traffic = Traffic(100, 8.0, 2000, 200, 0.6, 0.6)
    narrow = PLANS["3:3"]._replace(wire_bytes_per_s=1.25e9)
    mean = equilibrium.moment(2000, 0.6, 1.0)
    by_hand = 3 * 1.25e9 / ((mean + 1) * 327_680)
    assert steady_state.can_serve_per_s(STEPS, traffic, narrow) == pytest.approx(by_hand)


def test_a_single_token_asks_for_no_decode_step():
    """One replica of 50 ms a prompt, whatever the mode."""
    for mode in (0, 1):
        can = steady_state.can_serve_per_s(clerk(), ALIKE, Service(mode, 1, budget=100))
        assert can == pytest.approx(1 / SERVICE_S)


def test_the_moments_are_those_of_the_lengths_drawn():
    for spread in (0.0, 0.6, 1.2):
        drawn = np.array(events.lengths(60_000, 2000, spread, 5), float)
        for power in (1.0, 2.0):
            assert equilibrium.moment(2000, spread, power) == pytest.approx(np.mean(drawn**power), rel=0.03)


# -- the error of a run --------------------------------------------------------------------------------------
def test_nineteen_of_twenty_intervals_hold_the_truth():
    """Also where neighbours hang together: an autoregressive series with 0.9 of the value before."""
    rng = np.random.default_rng(0)
    for memory in (0.0, 0.9):
        held = 0
        for _ in range(300):
            noise = rng.standard_normal(2000)
            series = np.zeros(2000)
            for i in range(1, 2000):
                series[i] = memory * series[i - 1] + noise[i]
            found = steady_state.known(series)
            held += abs(found.value) <= found.error
        assert 0.91 < held / 300 < 0.985


def test_nan_is_nobody():
    values = np.arange(100.0)
    with_holes = np.insert(values, 50, [np.nan] * 10)
    assert steady_state.known(with_holes) == steady_state.known(values)
    with pytest.raises(ValueError, match="values must have at least 40"):
        steady_state.known(np.arange(30.0))


def test_a_run_is_doubled_until_it_is_sure_or_too_long():
    traffic = Traffic(500, 16.0, 2000, 200, 0.6, 0.6, seed=1)
    rough, fine = (
        steady_state.settle(STEPS, traffic, PLANS["first"], 1.0, (0.04,), within=within, longest=8000)
        for within in (0.5, 0.03)
    )
    assert rough.requests == 400 < fine.requests and fine.met[0].error < rough.met[0].error
    short = steady_state.settle(STEPS, traffic, PLANS["3:3"], 1.0, (0.05,), within=1e-6, longest=1000)
    assert short.requests == 800


def test_a_run_begins_as_it_goes_on_and_ends():
    """Twenty runs of 240 requests, 80 of them dropped, as on a page, have the steady state's mean; begun
    idle, a run has many more within the target."""
    traffic = Traffic(240, 24.0, 2000, 200, 0.6, 0.6)
    found = steady_state.settle(
        STEPS, traffic._replace(requests=16_000), PLANS["first"], 1.0, (0.06,), longest=1
    )
    met = []
    for seed in range(20):
        felt = latencies.felt(
            phases.since(under_traffic.run(STEPS, traffic._replace(seed=seed), PLANS["first"]), 80, 240)
        )
        met.append(latencies.attained(felt, 1.0, 0.06, 160))
    assert np.mean(met) == pytest.approx(found.met[0].value, abs=0.08)
    idle = steady_state.requests_of(STEPS, traffic, PLANS["first"]._replace(warm=False))
    first_s, token_s, _ = steady_state.felt_in(idle)
    assert np.mean((first_s < 1) & (token_s < 0.06)) > found.met[0].value + 0.3


@pytest.mark.parametrize("per_s", [8.0, 16.0, 20.0])
@pytest.mark.parametrize("plan", ["first", "chunks", "4:2"])
def test_as_many_answers_are_under_way_as_the_equilibrium_says(plan, per_s):
    """Little's law on a run: arrivals a second times the seconds from first token to last."""
    traffic, service = Traffic(3000, per_s, 2000, 200, 0.6, 0.6, seed=1), PLANS[plan]
    columns = steady_state.requests_of(STEPS, traffic, service)
    lives_s = np.mean(columns["last"] - columns["first"])
    assert under_traffic.underway(STEPS, traffic, service) == pytest.approx(per_s * lives_s, rel=0.15)
