"""What readers notice of a run, and how many of them within the targets."""

import numpy as np
import pytest

from engine import catalog
from engine.serving import latencies, step_costs, under_traffic
from engine.serving.under_traffic import Service, Traffic
from engine.step.layout import machine
from tests.said import refused

H100, LLAMA = machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")
STEPS = step_costs.costs(LLAMA, H100, 4, prompt=2048)


def test_targets_are_met_by_all_by_some_and_by_none():
    columns = under_traffic.run(STEPS, Traffic(100, 4.0, 1000, 100, 0.5, 0.5), Service(0, 2))
    felt = latencies.felt(columns)
    middle = latencies.percentile(felt.ttft_s, 0.5)
    assert latencies.attained(felt, 1e9, 1e9, 100) == 1 and latencies.attained(felt, 1e-9, 1e9, 100) == 0
    assert latencies.attained(felt, middle, 1e9, 100) == pytest.approx(0.5, abs=0.02)


def test_an_attainment_is_of_some_requests():
    with refused("requests", "greater than 0"):
        latencies.attained(latencies.Felt(*np.ones((3, 0))), 1.0, 1.0, 0)
    for ttft_s, tpot_s, named in ((0.0, 1.0, "ttft_s"), (1.0, 0.0, "tpot_s")):
        with refused(named, "greater than 0"):
            latencies.attained(latencies.Felt(*np.ones((3, 2))), ttft_s, tpot_s, 2)


def test_a_single_token_has_no_time_between_tokens_and_a_refused_request_nothing():
    columns = {
        name: np.array(values)
        for name, values in {
            "came_s": [0.0, 1.0, 2.0],
            "first_s": [0.5, 2.0, -1.0],
            "last_s": [0.5, 5.0, -1.0],
            "output": [1.0, 4.0, 9.0],
            "pause_s": [0.0, 1.5, -1.0],
        }.items()
    }
    felt = latencies.felt(columns)
    assert (felt.ttft_s.tolist(), felt.tpot_s.tolist(), felt.pause_s.tolist()) == (
        [0.5, 1, -1],
        [-1, 1, -1],
        [-1, 1.5, -1],
    )
