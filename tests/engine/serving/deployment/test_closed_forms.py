"""The closed forms one by one, by hand; test_finder.py holds what they come to against a simulation."""

import math

import numpy as np
import pytest

from engine.serving.deployment import Deployment, Limits, Load
from engine.serving.deployment.closed_forms import Unit, no_room, prompt_s
from engine.serving.deployment.columns import Asked, Judged, Tables, idle_units
from engine.serving.deployment.found import Measured
from engine.serving.deployment.frontier import _unbeaten as unbeaten
from engine.serving.replica import Replica

# a step of 1 row takes a ms, one of 100 rows 100 ms, and each further row 10 ms
TABLES = Tables(np.array([1.0, 100.0, 200.0]), np.array([0.001, 0.1, 1.1]), *np.zeros((4, 1)))
UNIT = Unit(
    table=0, front=0, apart=False, budget=100.0, lines=1.0, to_decode=1.0, to_prefill=1.0, fresh=1000.0,
    pair_s=0.0, pairs_s=0.5, cached_s=0.0, width=1.0, draft_s=0.0, gain=1.0, steps=10.0,
)  # fmt: skip


def test_a_prompt_takes_the_rows_that_the_answers_leave():
    """Twenty answers leave 80 rows of 100: a prompt of 1,000 tokens is in 12.5 steps, each longer by 100 − 20
    ms; half a second of attention comes on top."""
    assert prompt_s(20.0, 0.02, UNIT, TABLES) == pytest.approx(12.5 * 0.08 + 0.5)


def test_who_waits_for_room():
    """One place, taken half of the time, and so an answer waits half of the time; it becomes free every 4
    s."""
    asked = dict(batch=1.0, running=0.5, each_s=1.0, steps=2.0)
    assert no_room(patience_s=4.0, **asked) == pytest.approx(0.5 * math.exp(-1))
    assert no_room(patience_s=0.0, **asked) == no_room(patience_s=-3.0, **asked) == pytest.approx(0.5)


def test_a_load_of_next_to_nothing_takes_one_unit():
    alone = Judged(True, 1.0, 1.0, 1.0, 0.01, 64.0, 0.02, 1.0)

    def units(per_s: float) -> float:
        ask = Asked(per_s, 1.0, 0.05, 1e9, 64.0, 1000.0, 1100.0, 200.0, *np.ones((3, 1)), 1000.0, 1e6, 5e5)
        return float(idle_units(ask, alone))

    assert units(1e-9) == 1 and units(1.0) > 1


def test_points_that_no_other_is_right_of_and_above():
    x, y = np.array([2.0, 1.0, 3.0, 2.0, 4.0]), np.array([1.0, 3.0, 1.5, 2.0, 9.0])
    within = np.array([True, True, True, True, False])  # one that does not count hides none
    assert unbeaten(x, y, within).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("ttft_s", "tpot_s", "sure"),
    [(1.0, 0.05, True), (0.5, 0.05, False), (1.0, 0.03, False), (0.5, 0.03, False)],
)
def test_a_deployment_is_sure_where_both_limits_hold_at_the_slow_end(ttft_s, tpot_s, sure):
    """0.5 s and 30 ms were simulated; at the slow end of the band either is more."""
    one = Deployment(
        *("llama3.1-8b", "h100-sxm", Replica(8), 2, 0, "bf16", "bf16", 2048, 64, None, 4096),
        *(Load(1), Limits(ttft_s, tpot_s), Measured(0.5, 0.01, 0.03, 0.001, 0.02, 1000)),
        *(10.0, 200.0, 3.0, "capacity", ()),
    )
    assert 1 < one.band_s["ttft_s"][1] / 0.5 < 1.6
    assert one.sure == sure
