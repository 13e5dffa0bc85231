"""A run of requests: what is conserved, what pools apart trade, and what is refused."""

import numpy as np
import pytest

from engine import catalog
from engine.serving import events, latencies, step_costs, under_traffic
from engine.serving.under_traffic import Service, Traffic
from engine.step.layout import machine

H100, LLAMA = machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")
STEPS = step_costs.costs(LLAMA, H100, 4, prompt=2048)


def test_a_run_conserves_tokens_and_says_who_was_busy():
    traffic = Traffic(200, 6.0, 1500, 200, 0.6, 0.6, seed=2)
    service = Service(under_traffic.MODES["prefill_first"], 4, warm=False)
    columns = under_traffic.run(STEPS, traffic, service)
    served = columns["last_s"][:200]
    assert (served > 0).all() and columns["put_out"][:200].sum() == 0
    busy, end = columns["busy_s"][:4], served.max()
    assert (busy <= end + 1).all() and np.isnan(columns["busy_s"][4:]).all()  # the last step may go beyond
    came, prompts, _ = events.drawn(800, 6.0, 1500, 0.6, 200, 0.6, 2)
    least = sum(np.interp(p, STEPS.rows, STEPS.rows_s) for at, p in zip(came, prompts) if at <= end)
    assert columns["prefilling_s"][:4].sum() == pytest.approx(
        least, rel=0.15
    )  # prompts that share a step pay once


def test_disaggregation_trades_first_tokens_for_steady_ones():
    """DistServe's point (arXiv:2401.09670 section 3): decoding alone has no pauses; and a third of the GPUs
    left for prompts answer later."""
    traffic = Traffic(200, 9.0, 2000, 150, 0.5, 0.5, seed=1)
    together, apart = (
        under_traffic.run(STEPS, traffic, Service(under_traffic.MODES[mode], 6, 2))
        for mode in ("prefill_first", "disaggregated")
    )
    one, two = latencies.felt(together), latencies.felt(apart)
    assert latencies.percentile(two.pause_s, 0.5) < latencies.percentile(one.pause_s, 0.5) / 2
    assert latencies.percentile(two.ttft_s, 0.9) > latencies.percentile(one.ttft_s, 0.9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"requests": 241}, "requests must be"),
        ({"per_s": 0}, "per_s must be"),
        ({"prompt": -1}, "prompt must be"),
        ({"prompt_spread": -1}, "prompt_spread must be"),
    ],
)
def test_bad_traffic_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        under_traffic.run(STEPS, Traffic(10, 1.0, 100, 10)._replace(**change), Service(0, 1))


def test_pools_apart_are_asked_for_by_name_and_by_number():
    """How many instances prefill is not guessed."""
    with pytest.raises(ValueError, match="prefill_instances must be"):
        under_traffic.run(STEPS, Traffic(10, 1.0, 100, 10), Service(under_traffic.MODES["disaggregated"], 2))


def test_pools_apart_need_one_of_each():
    with pytest.raises(ValueError, match="prefill_instances must be"):
        under_traffic.run(
            STEPS, Traffic(10, 1.0, 100, 10), Service(under_traffic.MODES["disaggregated"], 2, 2)
        )
