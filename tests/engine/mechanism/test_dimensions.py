"""Dimensions: the same functions, run on quantities that carry their units, give the units that they name."""

from dataclasses import replace
from types import SimpleNamespace

import pint

from engine import catalog
from engine.base import check
from engine.mechanism import cost, flops, hiding, memory, roofline, walls
from tests.cases import in_one_test

unit = pint.UnitRegistry()
for name in ("flop", "param", "token", "dollar"):
    unit.define(f"{name} = [{name}]")
BYTE, SECOND, FLOP, GPU_HOUR = unit.byte, unit.second, unit.flop, 1.0
PARAMS = 70e9 * unit.param
PEAK, WIRE = 989e12 * FLOP / SECOND, 50e9 * BYTE / SECOND
GPU = SimpleNamespace(hbm_bytes=80e9 * BYTE)


class Bytes(SimpleNamespace):
    """A recipe's bytes of a parameter, which all parameters take."""

    matrices = None


RECIPE = Bytes(
    **{
        f"{slab}_bytes": n * BYTE / unit.param
        for slab, n in dict(weight=2, gradient=2, master=4, momentum=4, variance=4).items()
    }
)
WORK = 1e24 * FLOP
INTENSITY = 100 * FLOP / BYTE

CASES = {
    "state": (lambda: memory.state_bytes(PARAMS, RECIPE), BYTE),
    "sharded state": (lambda: memory.sharded_state_bytes(PARAMS, RECIPE, 64, 3), BYTE),
    "weights": (lambda: memory.weight_bytes(PARAMS, 2 * BYTE / unit.param), BYTE),
    "against HBM": (lambda: memory.against_hbm(1e12 * BYTE, GPU, 8), unit.dimensionless),
    "minimum GPUs": (lambda: memory.minimum_gpus(1e12 * BYTE, GPU, 1e9 * BYTE), unit.dimensionless),
    "kv cache": (lambda: memory.kv_bytes(catalog.model("llama3-8b"), 1000, 2, 2 * BYTE), BYTE),
    "logits": (
        lambda: memory.logits_peak_bytes(catalog.model("llama3-8b"), 1000, 1, bytes_per_logit=10 * BYTE),
        BYTE,
    ),
    "run time": (lambda: flops.run_time_s(WORK, 1024, PEAK, 0.4), SECOND),
    "mfu": (lambda: flops.mfu(WORK, 1e6 * SECOND, 1024, PEAK), unit.dimensionless),
    "hfu": (lambda: flops.hfu(WORK, 1e6 * SECOND, 1024, PEAK), unit.dimensionless),
    "training flops": (lambda: flops.training_flops(PARAMS, 1e12 * unit.token), unit.param * unit.token),
    "ridge": (lambda: roofline.ridge_flops_per_byte(PEAK, WIRE), FLOP / BYTE),
    "attainable": (lambda: roofline.attainable_flops_per_s(INTENSITY, PEAK, WIRE), FLOP / SECOND),
    "ceilings": (
        lambda: roofline.ceilings_flops_per_s(INTENSITY, INTENSITY, PEAK, WIRE, WIRE),
        FLOP / SECOND,
    ),
    "step wall": (lambda: walls.step_ratio(1e9, 1e6, 8, 1e15 / SECOND, 0.4, 10 * SECOND), unit.dimensionless),
    "deadline wall": (
        lambda: walls.deadline_ratio(1e9, 1e12, 8, 1e15 / SECOND, 0.4, 1e6 * SECOND),
        unit.dimensionless,
    ),
    "memory wall": (lambda: walls.memory_ratio(PARAMS, GPU, 8, RECIPE), unit.dimensionless),
    "allreduce bytes": (lambda: walls.allreduce_bytes_sent(PARAMS, 8, 2 * BYTE / unit.param), BYTE),
    "allreduce time": (lambda: walls.allreduce_s(PARAMS, 8, WIRE, 2 * BYTE / unit.param), SECOND),
    "tokens to hide": (
        lambda: (
            hiding.tokens_to_hide(8, WIRE, PEAK, 2 * BYTE / unit.param) / (4 * FLOP / unit.param / unit.token)
        ),
        unit.token,
    ),
    "bill": (lambda: cost.run_dollars(1e6 * unit.hour, 3 * unit.dollar / unit.hour), unit.dollar),
    "over budget": (lambda: cost.over_budget_dollars(3e6 * unit.dollar, 1e6 * unit.dollar), unit.dollar),
}


@in_one_test("case", CASES)
def test_result_carries_the_unit_it_names(case):
    run, expected = CASES[case]
    with check.trusted():
        result = run()
    assert unit.Quantity(result).is_compatible_with(expected), f"{case}: {result} is not in {expected}"


def gpu_with_units():
    plain = catalog.gpu("h100-sxm")
    peaks = ("fp32_flops_per_s", "fp16_flops_per_s", "bf16_flops_per_s")
    rates = {name: getattr(plain, name) / SECOND for name in peaks}
    wires = {
        name: getattr(plain, name) * BYTE / SECOND
        for name in ("nic_bytes_per_s", "link_bytes_per_s", "hbm_bytes_per_s")
    }
    return replace(plain, hbm_bytes=plain.hbm_bytes * BYTE, **rates, **wires)


def test_loads_are_shares_of_what_there_is():
    model, gpu = catalog.model("mixtral-8x7b"), gpu_with_units()
    per_param = Bytes(**{name: value * unit.param for name, value in vars(RECIPE).items()})
    with check.trusted():
        training = walls.training_loads(model, gpu, 8, 1e6, 10 * SECOND, per_param)
        serving = walls.serving_loads(model, gpu, 8, 16, 1000, 0.05 * SECOND, 2 * BYTE, 2 * BYTE)
    assert training.dimensionless and serving.dimensionless


def test_a_wrong_dimension_is_caught():
    """The check can fail: a bandwidth where a peak belongs does not give seconds."""
    with check.trusted():
        assert not flops.run_time_s(WORK, 8, WIRE, 0.4).is_compatible_with(SECOND)
