"""Dimensions of the cost model: run on quantities that carry their units, its functions give the units that
they name."""

from types import SimpleNamespace

import pint
import pytest

from engine.base import check
from engine.mechanism import collectives, interconnect, matmul, pipeline, reliability, sharding
from tests.cases import in_one_test

unit = pint.UnitRegistry()
for name in ("flop", "param"):
    unit.define(f"{name} = [{name}]")
BYTE, SECOND, RATE = unit.byte, unit.second, unit.byte / unit.second
NET = interconnect.plain(8.0, 369e9 * RATE, 46e9 * RATE, 1e-6 * SECOND, 3e-6 * SECOND, 1e-5 * SECOND)
RECIPE = SimpleNamespace(gradient_bytes=2.0 * BYTE, weight_bytes=2.0 * BYTE, optimizer_bytes=12.0 * BYTE)
CHIP = SimpleNamespace(memory_bytes_per_s=2.5e12 * RATE)

CASES = {
    "textbook ring": lambda: collectives.ring_all_reduce_s(1e9 * BYTE, 8, 4e11 * RATE, 1e-6 * SECOND),
    "textbook tree": lambda: collectives.halving_doubling_all_reduce_s(
        1e9 * BYTE, 8, 4e11 * RATE, 1e-6 * SECOND
    ),
    "pipelined": lambda: collectives.pipelined_s(1e-6 * SECOND, 1e-3 * SECOND),
    "optimizer": lambda: sharding.optimizer_s(1e9, RECIPE, 2.5e12 * RATE),
    "streaming kernel": lambda: matmul.stream_s(1e9 * BYTE, CHIP),
    "bubble": lambda: (
        pipeline.bubble_s(8.0, 1.0, 1.0 * SECOND, 2.0 * SECOND, 1.0 * SECOND, pipeline.SCHEDULES["1f1b"])
        + 0.0 * SECOND
    ),
    "best interval": lambda: reliability.young_interval_s(60.0 * SECOND, 11000.0 * SECOND),
    "time between failures": lambda: reliability.mean_time_between_failures_s(16384, 1e-9 / SECOND),
}


@in_one_test("case", CASES)
def test_seconds_come_out(case):
    with check.trusted():
        value = CASES[case]()
    assert value.check("[time]") and value.to("s").magnitude > 0


def test_bus_bandwidth_is_bytes_per_second():
    with check.trusted():
        bandwidth = collectives.bus_bandwidth("all_reduce", 8, 1e9 * BYTE, 0.01 * SECOND)
    assert bandwidth.to("byte/s").magnitude == pytest.approx(1.75e11)
