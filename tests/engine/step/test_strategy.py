"""Strategies one at a time: loads worked by hand, the estimate's own figures, and what each is known to
spend."""

import numpy as np
import pytest

from engine import catalog
from engine.base import check
from engine.mechanism import memory
from engine.step import strategy
from engine.step.layout import Job, default_recipe, estimate, machine
from engine.step.strategy import KEYS, STRATEGIES

H100 = machine(catalog.gpu("h100-sxm"))
MODEL = catalog.model("llama3.1-8b")
JOBS = [
    ("llama3.1-8b", "h100-sxm", 8, 4, 4096),
    ("llama3.1-8b", "l40s", 16, 1, 1024),
    ("llama3.1-70b", "b200", 64, 2, 8192),
    ("mixtral-8x7b", "h100-sxm", 32, 4, 4096),
    ("qwen3-30b-a3b", "mi300x", 16, 3, 2048),
]


def costs(model=MODEL, at=H100, gpus=8, sequences=4, seq=4096):
    return strategy.costs(model, at.chip, at.wires, default_recipe(), gpus, sequences, seq)


def of(key, column):
    return column[KEYS.index(key)]


@pytest.mark.parametrize(("name", "gpu", "gpus", "sequences", "seq"), JOBS)
def test_they_are_the_estimates_of_their_layouts(name, gpu, gpus, sequences, seq):
    """Bytes, seconds and legality of every strategy are those that ``python -m engine estimate`` prints for
    its layout."""
    model, at = catalog.model(name), machine(catalog.gpu(gpu))
    found = costs(model, at, gpus, sequences, seq)
    job = Job(gpus * sequences, seq)
    for each, *row in zip(STRATEGIES, found.possible, found.total_bytes, found.step_s, found.exposed_s):
        possible, total_bytes, step_s, exposed_s = row
        try:
            known = estimate(model, at, job, strategy.layout(each, model, gpus))
        except ValueError:
            assert not possible, each.key
            continue
        if each.cuts == "ep" and not model.experts:
            assert not possible
            continue
        times = known.time_s
        assert possible, each.key
        assert total_bytes == pytest.approx(
            known.terms.total_bytes, rel=1e-12
        )  # the same sums, in another order
        assert step_s == pytest.approx(known.step_s, rel=1e-12)
        waited = sum(times[term] for term in ("tensor", "context", "expert", "data_exposed", "other"))
        assert exposed_s == pytest.approx(waited, rel=1e-9, abs=1e-12)


def test_loads_by_hand():
    """8.03e9 parameters on 8 H100s: plain data parallelism holds 16 bytes of each, 128.5 GB, and activations.
    Its AllReduce moves 2·(7/8)·16.06 GB at the 462 GB/s that eight H100 reach with their switch, 60.9 ms;
    FSDP 3·(7/8)·16.06 GB at 365 GB/s for each of four micro-batches, 462 ms. What starting them takes comes
    on top: one here, 32 × 3 × 4 there."""
    found = costs()
    assert of("dp", found.total_bytes) - of("zero1", found.total_bytes) == pytest.approx(
        8.03e9 * 12 * 7 / 8, rel=1e-3
    )
    assert 0.0608 < of("dp", found.wire_s) < 0.0608 * 1.05
    assert 0.4615 < of("fsdp", found.wire_s) < 0.4615 * 1.2
    six_nd = 6 * 8.03e9 * 4 * 4096 / 989e12
    assert six_nd < found.ideal_s < 2 * six_nd  # the ideal is a real GPU's: between all and half of its peak
    loads = strategy.loads(found, 80e9)
    assert of("dp", loads)[0] == pytest.approx(of("dp", found.total_bytes) / 80e9)
    assert of("fsdp", loads)[2] == pytest.approx(of("fsdp", found.wire_s) / found.ideal_s)


def test_the_pipeline_pays_its_bubble_and_recomputation_a_forward_pass():
    """1F1B with p = 8 and m = 32 micro-batches idles (p − 1)/m = 0.219 of the work; a second forward pass is
    one part in three of forward and backward."""
    found = costs(seq=4096)
    bubble = 7 / 32
    assert of("pp", found.extra_s) > bubble * found.ideal_s
    again = of("recompute", found.extra_s) - of("dp", found.extra_s)
    assert again / found.ideal_s == pytest.approx(1 / 3, abs=0.04)  # the output layer is not computed again


def test_each_spends_most_where_its_lesson_says():
    loads = strategy.loads(costs(), 80e9)
    most = dict(zip(KEYS, np.argmax(loads, axis=1)))
    assert (most["dp"], most["zero1"], most["pp"], most["tp"]) == (0, 0, 1, 2)
    assert of("fsdp", loads)[0] < of("zero1", loads)[0] < of("dp", loads)[0]


def test_wires_are_never_busy_for_less_than_the_step_waits_for_them():
    for name, gpu, gpus, sequences, seq in JOBS:
        found = costs(catalog.model(name), machine(catalog.gpu(gpu)), gpus, sequences, seq)
        assert (found.wire_s >= found.exposed_s * (1 - 1e-9) - 1e-12)[found.possible].all(), name


def test_tensor_parallelism_out_of_the_node_passes_the_arithmetic():
    inside, outside = (costs(gpus=gpus) for gpus in (8, 16))
    assert of("tp", inside.wire_s) < inside.ideal_s and of("tp", outside.wire_s) > 1.9 * outside.ideal_s


def test_what_cannot_be_built_asks_for_nothing():
    """Llama 3.1 8B has 32 heads and 32 layers and no experts; a sequence of 1,024 does not fall into 2 ×
    1,024 pieces."""
    assert dict(zip(KEYS, costs(gpus=64).possible)) == {key: key not in ("tp", "pp", "ep") for key in KEYS}
    assert not of("cp", costs(gpus=1024, seq=1024).possible)
    found = costs(gpus=64)
    assert (strategy.loads(found, 80e9)[~found.possible] == 0).all()


def test_trades_are_differences_from_plain_data_parallelism():
    """FSDP pays wires, recomputation and the pipeline pay compute; ZeRO-1 a hundredth of the step, because
    its ReduceScatter and AllGather do without the sums in the switch that an AllReduce has."""
    found = costs()
    trade = strategy.trades(found)
    assert of("dp", trade.saved_bytes) == of("dp", trade.paid_s) == 0
    assert (
        of("fsdp", trade.saved_bytes) == of("dp", found.total_bytes) - of("fsdp", found.total_bytes) > 100e9
    )
    assert of("fsdp", trade.paid_s) == of("fsdp", found.wire_s) - of("dp", found.wire_s)
    assert [bool(of(key, trade.in_wires)) for key in ("fsdp", "tp", "pp", "recompute")] == [
        True,
        True,
        False,
        False,
    ]
    assert of("zero1", trade.paid_s) == pytest.approx(0.011 * of("dp", found.step_s), rel=0.2)
    assert not of("fsdp", trade.is_little)


def test_one_strategy_s_loads_for_prose():
    assert np.array_equal(
        strategy.loads_of("tp", MODEL, H100, 8, 4, 4096),
        of("tp", strategy.loads(costs(), memory.capacity_bytes(H100.gpu))),
    )
    with pytest.raises(ValueError, match="key"):
        strategy.loads_of("dp2", MODEL, H100, 8, 4, 4096)


@pytest.mark.parametrize(
    "wrong", [{"gpus": 0}, {"gpus": 2.5}, {"sequences": 0}, {"seq": -1}, {"seq": float("nan")}]
)
def test_bad_input_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        costs(**wrong)
    assert not check.is_trusted()
