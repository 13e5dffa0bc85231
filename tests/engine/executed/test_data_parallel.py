"""Data parallel: the rules by hand, closed forms against the event simulation, limits, and bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.base.units import MIB
from engine.catalog import models
from engine.executed import data_parallel as dp
from engine.mechanism import collectives, hiding
from engine.mechanism.timeline import Task, simulate
from tests.cases import in_one_test


def simulated_uniform(backward_s, ranks, wire, alpha, gradient, bucket, first):
    """Gradients that become ready evenly over time, simulated as events: one piece of the backward pass per
    bucket."""
    count = int(dp.bucket_count(gradient, bucket, first))
    edges = [0.0] + [float(dp.filled_bytes(k, gradient, bucket, first)) for k in range(count)]
    tasks = []
    for k in range(count):
        size = edges[k + 1] - edges[k]
        tasks += [
            Task(f"b{k}", "compute", backward_s * size / gradient),
            Task(
                f"r{k}", "network", float(collectives.ring_all_reduce_s(size, ranks, wire, alpha)), (f"b{k}",)
            ),
        ]
    return simulate(tasks), count


# -- the rule of tokens --------------------------------------------------------------------------------------
def test_a_step_crosses_at_the_rule():
    """Without latency and with tiny buckets, exactly at the rule nothing but the last bucket sticks out."""
    tokens = hiding.tokens_to_hide(64, 50e9, 4e14)
    at, below = (
        dp.step(8e9, share * tokens, 64, 4e14, 50e9, 0.0, bucket_bytes=1e6, first_bucket_bytes=1e6)
        for share in (1.0, 0.5)
    )
    assert at.communication_s == pytest.approx(at.backward_s)
    assert at.exposed_s == pytest.approx(2 * 63 / 64 * 1e6 / 50e9)
    assert below.exposed_s == pytest.approx(below.communication_s - below.backward_s, rel=1e-3)


# -- buckets -------------------------------------------------------------------------------------------------
def test_buckets_by_hand():
    """100 MiB: 1 and then 99/25 = 3.96, so four more; the last holds 24."""
    assert dp.bucket_count(100 * MIB) == 5
    edges = dp.filled_bytes(np.arange(-1, 5), 100 * MIB) / MIB
    assert np.array_equal(edges, [0, 1, 26, 51, 76, 100])


def test_a_timeline_by_hand():
    """Gradient 8, buckets of 4, first 4; backward 8 s: full at 4 and 8. Two ranks, alpha 1, W 1: 2 + 4 = 6 s
    each. First 4 to 10, second (full at 8) 10 to 16: exposed 8."""
    at = dict(
        backward_s=8.0,
        ranks=2,
        wire_bytes_per_s=1.0,
        alpha_s=1.0,
        gradient_bytes=8.0,
        bucket_bytes=4.0,
        first_bucket_bytes=4.0,
    )
    index = np.arange(2)
    assert np.array_equal(dp.bucket_end_s(index, **at), [10, 16])


@settings(max_examples=150, deadline=None)
@given(
    backward_s=st.floats(1e-4, 10),
    ranks=st.integers(1, 4096),
    wire=st.floats(1e9, 1e12),
    alpha=st.floats(0, 1e-4),
    gradient=st.floats(1e5, 4e8),
    bucket=st.floats(4e6, 1e9),
    first=st.floats(1e5, 1e9),
)
def test_closed_forms_equal_the_simulation(backward_s, ranks, wire, alpha, gradient, bucket, first):
    line, count = simulated_uniform(backward_s, ranks, wire, alpha, gradient, bucket, first)
    at = (backward_s, ranks, wire, alpha, gradient, bucket, first)
    index = np.arange(count)
    assert dp.bucket_end_s(index, *at) == pytest.approx([line.ends(f"r{k}") for k in index], rel=1e-9)
    exposed = dp.bucket_end_s(count - 1.0, *at) - backward_s
    assert exposed == pytest.approx(line.total_s - line.ends(f"b{count - 1}"), abs=1e-9 * line.total_s)


def test_the_best_bucket_by_hand_and_by_search():
    """16 GB, 64 ranks, 10 µs, 50 GB/s: sqrt(16e9·63·1e-5·50e9) = 710 MB; and no bucket on a grid has less of
    both."""
    best = dp.best_bucket_bytes(16e9, 64, 50e9, 1e-5)
    assert best == pytest.approx(7.0993e8, rel=1e-4)
    sizes = np.geomspace(1e6, 16e9, 4001)
    overhead = 16e9 / sizes * 2 * 63 * 1e-5 + 2 * sizes / 50e9
    assert sizes[overhead.argmin()] == pytest.approx(best, rel=5e-3)


def test_the_best_bucket_is_near_the_best_of_the_whole_step():
    """Where both streams are as long, the step at the rule is within 2 % of the best one of any bucket."""

    def step_s(bucket):
        return dp.step(8e9, 8000, 64, 4e14, 50e9, 1e-5, bucket, dp.FIRST_BUCKET_BYTES).step_s

    best = dp.best_bucket_bytes(16e9, 64, 50e9, 1e-5)
    assert step_s(best) <= 1.02 * min(step_s(bucket) for bucket in np.geomspace(1e6, 16e9, 200))
    assert step_s(25 * MIB) > 1.3 * step_s(best)


@in_one_test("ranks, alpha_s", [(64, 0.0), (1, 1e-5)])
@in_one_test("backward_s", [0.1, 0.64, 2.0])
def test_without_start_ups_the_smallest_bucket_is_best(ranks, alpha_s, backward_s):
    assert dp.best_bucket_bytes(16e9, ranks, 50e9, alpha_s, backward_s) == 0.0


@pytest.mark.parametrize("backward_s", [0.1, 0.4, 0.64, 0.8, 2.0])
def test_the_best_bucket_knows_how_long_the_backward_pass_is(backward_s):
    """16 GB need 0.64 s. Of whole numbers of equal buckets, sent one after the other, none ends much earlier
    than the rule's, for passes shorter and longer than the bytes."""

    def exposed_s(count):
        size = 16e9 / count
        each_s = 2 * 63 * 1e-5 + 2 * size / 50e9
        ends_s = 0.0
        for full in range(1, count + 1):
            ends_s = max(ends_s, full / count * backward_s) + each_s
        return ends_s - backward_s

    best = dp.best_bucket_bytes(16e9, 64, 50e9, 1e-5, backward_s)
    least = min(exposed_s(count) for count in range(1, 3000))
    assert exposed_s(round(16e9 / best)) <= least + 0.005 * backward_s


def test_a_pass_as_long_as_the_bytes_has_the_short_rule_and_a_tiny_one_a_single_bucket():
    assert dp.best_bucket_bytes(16e9, 64, 50e9, 1e-5, 0.64) == pytest.approx(7.0993e8, rel=1e-4)
    assert dp.best_bucket_bytes(16e9, 64, 50e9, 1e-5, 1e-6) == pytest.approx(16e9)
    assert dp.best_bucket_bytes(16e9, 64, 400e9, 1e-5, 0.64) < 50e6


def test_pytorchs_rule_of_whole_tensors():
    """A bucket closes once it has reached its cap: 1 by the first 2, 25 by 10 + 20, one large tensor, the
    rest."""
    assert dp.bucket_ends([2, 10, 20, 100, 3], 25, 1) == [0, 2, 3, 4]


def known(found, name):
    return found[name][~np.isnan(found[name])].tolist()


def test_a_step_of_whole_tensors_by_hand():
    """Forward 3 s; output layer, layers 2 and 1 of 2, 4 and 4 bytes in 10 s; then an embedding of 2 bytes.
    Buckets of 4, the first of 1, so that each is alone; 1 s + 1 s/byte. The third is full at 13, the second
    ends at 14."""
    found = dp.overlap(3.0, 10.0, 2, [4.0], 2.0, 2.0, 2.0, 1.0, 1.0, 4.0, 1.0, dp.NOT_OWN)
    assert known(found, "layer") == [dp.FORWARD_PASS, 3, 2, 1]
    assert known(found, "layer_start_s") == [0, 3, 5, 9] and known(found, "layer_end_s") == [3, 5, 9, 13]
    assert known(found, "layer_s") == [3, 2, 4, 4]
    assert known(found, "bucket_bytes") == [2, 4, 4, 2] and known(found, "bucket_layer") == [
        3,
        2,
        1,
        dp.EMBEDDING,
    ]
    assert known(found, "bucket_full_s") == [5, 9, 13, 13] and known(found, "bucket_waits_s") == [0, 0, 1, 6]
    assert known(found, "bucket_start_s") == [5, 9, 14, 19] and known(found, "bucket_end_s") == [
        8,
        14,
        19,
        22,
    ]
    assert [found[name] for name in ("buckets", "wire_s", "compute_s", "exposed_s", "step_s")] == [
        4,
        16,
        13,
        9,
        22,
    ]


def test_a_step_of_whole_tensors_is_the_same_with_names():
    """The bare scheduler's lanes against Timeline's."""
    found = dp.overlap(3.0, 10.0, 2, [4.0], 2.0, 2.0, 2.0, 1.0, 1.0, 4.0, 1.0, dp.NOT_OWN)
    passes = [Task(f"b{i}", "compute", length) for i, length in enumerate([2.0, 4.0, 4.0])]
    sums = [
        Task(f"r{i}", "network", size + 1, (f"b{min(i, 2)}",)) for i, size in enumerate([2.0, 4.0, 4.0, 2.0])
    ]
    named = simulate([Task("f", "compute", 3.0), *passes, *sums])
    assert [span.start_s for span in named.spans("network")] == known(found, "bucket_start_s")
    assert named.exposed_s("network", "compute") == found["exposed_s"]


def test_whole_tensors_meet_the_closed_form_where_they_are_equal_and_many():
    """80 layers of one tensor, no vocabulary; buckets of four layers, the first of one."""
    layer = 2e9 / 80
    closed = dp.step(1e9, 4000, 16, 4e14, 50e9, 5e-6, bucket_bytes=4 * layer, first_bucket_bytes=layer)
    wire = (
        collectives.ring_all_reduce_s(0.0, 16, 50e9, 5e-6),
        collectives.ring_all_reduce_s(1.0, 16, 50e9, 0.0),
    )
    found = dp.overlap(
        closed.forward_s, closed.backward_s, 80, [layer], 0.0, 0.0, 0.0, *wire, 4 * layer, layer, dp.NOT_OWN
    )
    assert found["step_s"] == pytest.approx(closed.step_s, rel=1e-9)
    assert found["wire_s"] == pytest.approx(closed.communication_s, rel=1e-9)


def test_the_tensors_of_a_layer_by_hand():
    """Llama 3 8B: 14336·4096 three times, 4096², 1024·4096 twice, 4096², two norms; GPT-2 has no gate."""
    mlp, wide, narrow = 14336 * 4096, 4096 * 4096, 1024 * 4096
    llama = models.layer_tensors(catalog.model("llama3-8b"))
    assert llama.tolist() == [mlp, mlp, mlp, wide, narrow, narrow, wide, 8192]
    gpt2 = models.layer_tensors(catalog.model("gpt2"))
    assert gpt2[2] == 0 and gpt2.sum() == models.layer_parameters(catalog.model("gpt2"))


@pytest.mark.parametrize("key", ["gpt2-xl", "llama3.2-1b", "llama3-8b", "llama3-70b"])
def test_a_models_buckets_hold_its_whole_gradient(key):
    """2 bytes for each parameter; the largest model fills its lanes but does not overfill them."""
    model = catalog.model(key)
    found = dp.simulate_step(model, 8192, 64, 4e14, 50e9, 1e-5, bucket_bytes=1.0, first_bucket_bytes=1.0)
    assert np.nansum(found["bucket_bytes"]) == pytest.approx(2 * models.parameters(model), rel=1e-12)
    assert found["compute_s"] == pytest.approx(6 * models.parameters(model) * 8192 / 4e14, rel=1e-9)
    assert np.nansum(found["layer_s"]) == pytest.approx(found["compute_s"], rel=1e-9)


def test_the_70b_step_of_the_lesson():
    """C = 1e15 at 40 %: 6·70.6e9·8192/4e14 = 8.67 s; two ranks send the whole 141 GB once: 1.41 s at 100
    GB/s, hidden but for what comes last: the embedding's 2.1 GB and the first layer's query matrix, 22.4
    ms."""
    found = dp.simulate_step(catalog.model("llama3-70b"), 8192, 2, 4e14, 100e9, 0.0)
    assert found["compute_s"] == pytest.approx(8.67, abs=0.01) and found["wire_s"] == pytest.approx(
        1.41, abs=0.01
    )
    assert found["exposed_s"] == pytest.approx((128256 * 8192 + 8192**2) * 2 / 100e9, rel=1e-4)


# -- the step ------------------------------------------------------------------------------------------------
def test_one_rank_sends_nothing():
    alone = dp.step(8e9, 8192, 1, 4e14, 50e9, 1e-5)
    assert alone.communication_s == 0 and alone.exposed_s == 0
    assert alone.step_s == pytest.approx(6 * 8e9 * 8192 / 4e14)


def test_accumulation_pays_the_wire_once():
    once, four = (dp.step(8e9, 2000, 64, 4e14, 12.5e9, 1e-5, micro_batches=count) for count in (1, 4))
    assert four.exposed_s == once.exposed_s and four.communication_s == once.communication_s
    assert four.step_s == pytest.approx(4 * (once.forward_s + once.backward_s) + once.exposed_s)


@settings(max_examples=60, deadline=None)
@given(
    ranks=st.integers(1, 10**5),
    tokens=st.floats(1, 1e6),
    wire=st.floats(1e8, 1e12),
    alpha=st.floats(0, 1e-3),
    bucket=st.floats(1e5, 1e11),
    params=st.floats(1e6, 1e13),
)
def test_a_step_is_finite_and_no_shorter_than_either_stream(ranks, tokens, wire, alpha, bucket, params):
    step = dp.step(params, tokens, ranks, 4e14, wire, alpha, bucket)
    assert np.isfinite(step).all() and min(step) >= 0
    assert step.step_s >= max(step.forward_s + step.backward_s, step.communication_s) * (1 - 1e-9)
    assert step.exposed_s <= step.communication_s * (1 + 1e-9) + 1e-9 * step.step_s


# -- batch and stragglers ------------------------------------------------------------------------------------
@given(batch=st.floats(1, 1e9), critical=st.floats(1, 1e9))
def test_steps_and_samples_trade(batch, critical):
    """(S/S_min − 1)(E/E_min − 1) = 1, and E = B·S with E_min = B_crit·S_min."""
    steps, samples = dp.steps_of_least(batch, critical), dp.samples_of_least(batch, critical)
    assert samples == pytest.approx(batch / critical * steps)
    assert 1 / dp.useful_share(batch, critical) == pytest.approx(samples)


def test_at_the_critical_batch_both_are_doubled():
    assert dp.steps_of_least(4e6, 4e6) == dp.samples_of_least(4e6, 4e6) == 2


def test_the_critical_batch_grows_as_the_loss_falls():
    """2e8 / 2^4.762 = 7.4 million tokens at a loss of 2 nats; 2e8 / 3^4.762 = 1.07 million at 3."""
    assert dp.critical_batch_tokens(2.0) == pytest.approx(7.37e6, rel=2e-3)
    with pytest.raises(ValueError, match="loss_nats"):
        dp.critical_batch_tokens(0.0)
    assert dp.critical_batch_tokens(3.0) == pytest.approx(1.07e6, rel=5e-3)


@in_one_test("ranks", [1, 2, 3, 8, 64, 1024, 65536])
def test_the_slowest_against_the_integral(ranks):
    """E[max] = ∫ x·N·φ(x)·Φ(x)^(N−1) dx, by the trapezoid rule."""
    x = np.linspace(-10, 12, 200001)
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    below = np.minimum(np.cumsum(density) * (x[1] - x[0]), 1.0)
    expected = np.sum(x * ranks * density * below ** (ranks - 1)) * (x[1] - x[0])
    assert dp.deviations_of_slowest(ranks) == pytest.approx(expected, abs=0.03)


def test_the_slowest_by_hand():
    """Two of them: 1/√π = 0.56 deviations above the mean."""
    assert dp.slowest_s(2, 1.0, 0.1) == pytest.approx(1.056, abs=0.003) and dp.slowest_s(1, 1.0, 0.1) == 1.0


# -- more ranks ----------------------------------------------------------------------------------------------
def test_the_shares_by_hand():
    """100 s of arithmetic, 20 exposed; two ranks with 10 % deviation: 0.56 above; at the critical batch half
    counts."""
    found = dp.shares(dp.DataParallelStep(40.0, 60.0, 30.0, 20.0, 120.0), 4e6, 2, 4e6, 0.1)
    whole = 100 + 5.6 + 20
    assert found == pytest.approx(
        (50 / whole, 50 / whole, 20 / whole, 5.6 / whole), abs=3e-3
    )  # 0.03 of the quantile
    assert sum(found) == pytest.approx(1) and found.computing == pytest.approx(100 / whole, abs=3e-3)


@given(
    ranks=st.integers(1, 10**5),
    tokens=st.floats(1, 1e6),
    critical=st.floats(1e3, 1e9),
    spread=st.floats(0, 0.3),
)
def test_the_shares_add_up_and_progress_stays_below_its_ceiling(ranks, tokens, critical, spread):
    at = dp.step(8e9, tokens, ranks, 4e14, 50e9, 1e-5)
    found = dp.shares(at, ranks * tokens, ranks, critical, spread)
    assert sum(found) == pytest.approx(1) and min(found) >= -1e-12
    alone = dp.useful_share(tokens, critical)
    assert dp.progress(found.useful, ranks, alone) <= min(ranks, dp.most_progress(critical, tokens)) * (
        1 + 1e-9
    )


def test_the_ceiling_of_progress_by_hand():
    """A batch of 8,000 on one rank, 4 million critical: 501 times at most, half of it (nearly) with 500
    ranks."""
    assert dp.most_progress(4e6, 8000) == 501 and dp.ranks_at(4e6, 8000) == 500
    assert dp.progress(dp.useful_share(4e6, 4e6), 500, dp.useful_share(8000, 4e6)) == pytest.approx(
        501 / 2, rel=1e-9
    )


@in_one_test("ranks", [1, 2, 3, 8, 1024, 1000])
def test_the_trees_start_ups_stand_in_for_the_rings(ranks):
    rings = collectives.ring_all_reduce_s(0, ranks, 50e9, dp.tree_alpha_s(ranks, 1e-5))
    assert rings == pytest.approx(collectives.tree_all_reduce_s(0, ranks, 50e9, 1e-5))


# -- bad input -----------------------------------------------------------------------------------------------
GOOD = dict(
    params=8e9,
    micro_batch_tokens=4096,
    ranks=8,
    flops_per_s=4e14,
    wire_bytes_per_s=50e9,
    alpha_s=1e-5,
    bucket_bytes=1e6,
    first_bucket_bytes=1e6,
    bytes_per_gradient=2.0,
    micro_batches=1,
)


@in_one_test("bad", [float("nan"), float("inf"), -1, "seven"], ids=str)
@in_one_test("name", GOOD)
def test_bad_numbers_are_refused(name, bad):
    with pytest.raises(ValueError, match="must be"):
        dp.step(**{**GOOD, name: bad})


def test_a_simulated_step_refuses_nonsense():
    for bad in (dict(flops_per_s=0.0), dict(bucket_bytes=-1.0), dict(ranks=0), dict(tokens=float("nan"))):
        good = dict(tokens=8192, ranks=64, flops_per_s=4e14, wire_bytes_per_s=50e9, alpha_s=1e-5)
        with pytest.raises(ValueError, match="must be"):
            dp.simulate_step(catalog.model("gpt2"), **{**good, **bad})
    with pytest.raises(ValueError, match="experts must be"):
        dp.simulate_step(catalog.model("mixtral-8x7b"), **good)
    with pytest.raises(ValueError, match="layer of overlap must have at most 84"):
        dp.simulate_step(catalog.model("llama3.1-405b"), **good)


# -- PyTorch's own choice ------------------------------------------------------------------------------------
@pytest.mark.parametrize("cap_mib", [None, 1, 25, 96, 400])
def test_the_first_bucket_is_as_large_as_pytorch_makes_it(cap_mib):
    """Small only if bucket_cap_mb is left alone: to PyTorch a 25 said aloud is no default; here it is."""
    from tests import machine

    machine.torch()
    from torch.nn.parallel import distributed

    theirs = distributed._BucketCapacityConfig.create(cap_mib, None, use_python_reducer=False)
    ours = dp.first_or_default(None, dp.BUCKET_BYTES if cap_mib is None else cap_mib * MIB)
    assert theirs.bucket_bytes_cap == (dp.BUCKET_BYTES if cap_mib is None else cap_mib * MIB)
    assert ours == (dp.FIRST_BUCKET_BYTES if cap_mib == 25 else theirs.first_bucket_bytes_cap)
    assert dp.first_or_default(7.0, 96 * MIB) == 7.0


def test_a_chosen_bucket_size_holds_for_the_first_bucket_too():
    assert dp.bucket_count(100 * MIB, 50 * MIB) == 2 and dp.bucket_count(100 * MIB) == 5
    assert dp.filled_bytes(0, 100 * MIB, 50 * MIB) == 50 * MIB
    model = catalog.model("llama3.2-1b")
    chosen = dp.simulate_step(model, 8192, 64, 4e14, 50e9, 1e-5, bucket_bytes=96 * MIB)
    assert chosen["bucket_bytes"][0] >= 96 * MIB
