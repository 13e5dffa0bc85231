"""The closed forms of expert parallelism, compared with sums by hand, with the papers, and with runs executed
on ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import catalog
from engine.calibration import exchange, known
from engine.mechanism import compute, experts, interconnect, matmul
from engine.mechanism.shape import shape
from tests.said import refused

V3, MIXTRAL = catalog.model("deepseek-v3"), catalog.model("mixtral-8x7b")
H100 = experts.ExpertNode.of(catalog.node("dgx-h100"))
H800 = experts.ExpertNode.of(catalog.node("h800-8"))
RACK = experts.ExpertNode.of(catalog.node("gb200-nvl72"))
BARE = interconnect.plain(gpus_per_node=8.0, link_bytes_per_s=450e9, nic_bytes_per_s=50e9)


# -- load ----------------------------------------------------------------------------------------------------
def test_a_latent_narrows_what_is_sent_and_what_each_expert_reads():
    """Nemotron 3 Super projects 4,096 values to 1,024: a quarter of the bytes on the wires, and the time of
    the experts at that width, the shared one at the whole width, and two dense products."""
    model = catalog.model("nemotron-3-super")
    whole = experts.ExpertSizes(model.experts, model.top_k, model.hidden, model.expert_ffn, model.gated)
    found, wide = (experts.layer(each, 4096, 8, H100, 1, False, False) for each in (model, whole))
    assert model.expert_hidden == 1024 and V3.expert_hidden == V3.hidden
    start_s = experts.exchange_s(0.0, 1.0, 2.0, experts.copies(22, 512, 8, 8, 1, False), 8, 8, H100.net)
    assert found.dispatch_s - start_s == pytest.approx((wide.dispatch_s - start_s) / 4, rel=0.05)
    local = model.experts / 8
    rows = experts.mean_rows(4096, model.top_k, local)
    assert found.experts_s == pytest.approx(
        experts.experts_s(rows, local, 1024, model.expert_ffn, 0.0, H100.wide)
        + experts.shared_s(4096, 4096, model.shared_experts * model.shared_ffn, 0.0, H100.wide)
        + experts.projections_s(4096, 4096, 1024, H100.wide)
    )


def test_capacity_by_hand():
    assert experts.mean_rows(512, 2, 8) == 128
    assert experts.capacity_rows(512, 2, 8, 1.25) == 160
    assert experts.capacity_rows(512, 2, 8, 1.0) == 128  # whole: nothing is rounded up
    assert experts.capacity_rows(512, 1, 64, 1.1) == 9  # 8.8


# -- arithmetic ----------------------------------------------------------------------------------------------
def test_flops_of_an_expert():
    """Mixtral: 3 matrices of 4,096 by 14,336, two FLOPs for each weight and row."""
    assert experts.expert_flops(1, 4096, 14336, 1) == 2 * 3 * 4096 * 14336
    assert experts.expert_flops(10, 100, 400, 0) == 10 * 2 * 2 * 100 * 400


def test_few_rows_for_each_expert_waste_the_gpu():
    """One wave of tiles is as long as a full one: 32 experts of 16 rows take no less than 32 of 128 rows,
    within what memory asks; and reading their weights takes the larger part of it."""
    at = H100.wide
    few, many = (experts.experts_s(rows, 32, 7168, 2048, 1, at) for rows in (16, 128))
    weights_s = 32 * 3 * 7168 * 2048 * 2 / at.experts.memory_bytes_per_s
    assert few > weights_s and many < 3 * few
    shares = [
        experts.share_of_peak(rows, 32, 7168, 2048, 1, experts.experts_s(rows, 32, 7168, 2048, 1, at), 989e12)
        for rows in (16, 128, 1024)
    ]
    assert shares[0] < 0.05 and shares[0] < shares[1] < shares[2] < 0.6


def test_with_less_than_a_row_for_each_only_some_experts_work():
    at = H100.wide
    half = experts.experts_s(0.5, 32, 7168, 2048, 1, at)
    idle_s = 16 * at.experts.expert_s  # those without a row are looked at all the same
    assert half == pytest.approx(experts.experts_s(1.0, 16, 7168, 2048, 1, at) + idle_s)


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_experts_are_costed_as_the_whole_model_costs_them(precision):
    """Mixtral's experts over 8 ranks; a training step casts its operands beside that."""
    at = matmul.chip(catalog.gpu("h100-sxm"), precision)
    layer = compute.layer(
        shape(MIXTRAL), 4096.0, 4096.0, 1.0, 1.0, 8.0, 1.0, 1.0, flash=True, fused=True, at=at
    )
    casts_s = compute.cast_s(8192.0, 4096.0, at) + compute.cast_s(8192.0, 14336.0, at)
    assert (casts_s > 0) == (precision == "fp8")
    assert layer.experts_s == pytest.approx(experts.experts_s(8192.0, 1.0, 4096, 14336, 1, at) + casts_s)


# -- distance ------------------------------------------------------------------------------------------------
def test_distinct_groups_by_hand():
    assert experts.distinct_groups(2, 4, 2) == pytest.approx(2 * (1 - 2 / 4 * 1 / 3))
    assert experts.distinct_groups(1, 64, 8) == pytest.approx(1)
    assert experts.distinct_groups(8, 8, 8) == pytest.approx(8)
    assert experts.distinct_groups(8, 64, 1) == pytest.approx(1)


def test_plain_copies_are_those_of_an_all_to_all():
    """64 ranks on 8 nodes: 7 of 64 choices find another GPU of the node, 56 another node."""
    at = experts.copies(8, 256, 64, 8, 8, False)
    assert at == pytest.approx((8 * 7 / 64, 8 * 56 / 64))


@given(st.sampled_from([1, 2, 4, 8, 16, 64]), st.floats(1, 1e6))
def test_a_plain_exchange_is_interconnect_s_all_to_all(ep, tokens):
    per_node = min(ep, 8)
    ours = experts.exchange_s(
        tokens, 4096, 2.0, experts.copies(2, 64, ep, per_node, 64, False), ep, per_node, H100.net
    )
    assert ours == pytest.approx(interconnect.all_to_all_s(tokens * 2 * 4096 * 2, ep, per_node, H100.net))


def test_once_for_each_node_and_four_of_eight_nodes():
    """At most 4 · 7/8 = 3.5 copies leave for other nodes, where 8 choices would send 7."""
    limited = experts.copies(8, 256, 64, 8, 4, True)
    unlimited = experts.copies(8, 256, 64, 8, 8, True)
    assert limited.nic == pytest.approx(3.5)
    assert unlimited.nic == pytest.approx(
        7 / 8 * 8 * (1 - np.prod([(224 - j) / (256 - j) for j in range(8)]))
    )
    assert limited.nic < unlimited.nic < 7


def test_a_limit_alone_saves_nothing():
    assert experts.copies(8, 256, 64, 8, 4, False) == experts.copies(8, 256, 64, 8, 8, False)


def test_thirteen_experts_cost_what_eight_do():
    """arXiv:2412.19437, section 3.2.2: with NVLink at 160 GB/s and InfiniBand at 50, a token may meet 3.2
    experts on each of its 4 nodes, 13 in all, before NVLink takes longer. Two on one GPU share a row here: it
    takes some more."""
    for top_k, keeps_up in ((8, True), (13, True), (20, False)):
        at = experts.copies(top_k, 256, 64, 8, 4, True)
        assert (at.link / 160e9 < at.nic / 50e9) == keeps_up


def test_decoding_by_the_published_arithmetic():
    """arXiv:2505.09343, section 2.3.2: 32 tokens a GPU, one expert a GPU, 9 experts each, 7,000 values, 1
    byte there and 2 back, 50 GB/s: 120.96 µs for both AllToAlls."""
    at = experts.Copies(0.0, 9.0)
    both_s = sum(experts.exchange_s(32, 7000, size, at, 256, 8, BARE) for size in (1.0, 2.0))
    assert both_s == pytest.approx(120.96e-6)


def test_the_width_that_hides_the_wires():
    """2/3 · 7/8 · 989e12/50e9 = 11,538; inside the node 2/3 · 7/8 · 989e12/450e9 = 1,282."""
    assert experts.hiding_width(7 / 8, 989e12, 50e9) == pytest.approx(11538, rel=1e-4)
    assert experts.hiding_width(7 / 8, 989e12, 450e9) == pytest.approx(1282, rel=1e-3)


@given(st.floats(1e2, 1e6), st.integers(1, 16), st.floats(512, 16384), st.floats(0.1, 1))
def test_at_the_hiding_width_both_take_equally_long_whatever_else(tokens, top_k, hidden, share):
    width = experts.hiding_width(share, 989e12, 50e9)
    compute_s = experts.expert_flops(tokens * top_k, hidden, width, 1) / 989e12
    both_s = 2 * experts.exchange_s(tokens, hidden, 2.0, experts.Copies(0.0, share * top_k), 64, 8, BARE)
    assert both_s == pytest.approx(compute_s)


# -- a layer -------------------------------------------------------------------------------------------------
def total_wires_s(found):
    return found.dispatch_s + found.combine_s


def test_one_rank_sends_nothing():
    found = experts.layer(V3, 4096, 1, H100, 8, False, False)
    assert total_wires_s(found) == 0 and found.experts_s > 0


def test_the_edge_of_the_node_costs_nearly_four_times():
    inside, outside = (total_wires_s(experts.layer(V3, 4096, ep, H100, 32, False, False)) for ep in (8, 16))
    assert outside / inside == pytest.approx(
        (1 / 2 / 46) / (7 / 8 / 301), rel=0.02
    )  # GB/s, an AllToAll's inside
    arithmetic = experts.layer(V3, 4096, 16, H100, 32, False, False).experts_s
    assert inside < arithmetic < outside


def test_a_rack_has_no_edge_at_eight():
    assert (
        total_wires_s(experts.layer(V3, 4096, 64, RACK, 32, False, False))
        < experts.layer(V3, 4096, 64, RACK, 32, False, False).experts_s
    )


def test_wide_experts_hide_what_narrow_ones_do_not():
    mixtral, v3 = (experts.layer(model, 4096, 8, H100, 1, False, False) for model in (MIXTRAL, V3))
    assert total_wires_s(mixtral) < 0.1 * mixtral.experts_s < total_wires_s(v3)


def test_the_fullest_gpu_takes_proportionally_longer():
    even, uneven = (experts.layer(MIXTRAL, 8192, 8, H100, 1, False, False, ratio) for ratio in (1.0, 2.0))
    assert uneven.experts_s / even.experts_s == pytest.approx(2, rel=0.02)  # whole tiles
    assert uneven.combine_s / even.combine_s == pytest.approx(2, rel=0.1)  # less the start


@pytest.mark.parametrize(
    ("ep", "dispatch_bytes_per_s", "combine_bytes_per_s", "tolerance"),
    [
        (8, 153e9, 158e9, 0.2),
        (16, 43e9, 43e9, 0.2),  # NVLink is the limit: our share of its rate is that of rings
        (32, 58e9, 57e9, 0.07),
        (64, 51e9, 50e9, 0.05),
    ],
)  # the card is the limit
def test_deepep_s_measured_times(ep, dispatch_bytes_per_s, combine_bytes_per_s, tolerance):
    """DeepEP docs/legacy.md: H800, 4,096 tokens of 7,168, top-4 groups, top-8, FP8 there and bf16 back. What
    it counts is in its test_internode.py: a row for each node visited, its own too (for each GPU in
    test_intranode.py), with a scale of 4 bytes for 128 values."""
    rows = experts.visited(8, 256, ep, 8, 4) * 4096 * 7168
    found = experts.layer(V3, 4096, ep, H800, 4, True, True)
    assert found.dispatch_s == pytest.approx(rows * (1 + 4 / 128) / dispatch_bytes_per_s, rel=tolerance)
    assert found.combine_s == pytest.approx(rows * 2 / combine_bytes_per_s, rel=tolerance)


def test_what_a_rank_holds():
    """58 layers · 256 experts · 3 · 7,168 · 2,048 weights of 2 bytes: 1,308 GB; a 64th of it on 64 ranks."""
    assert experts.held_bytes(V3, 1) == 58 * 256 * 3 * 7168 * 2048 * 2
    assert experts.held_bytes(V3, 64) == pytest.approx(20.4e9, rel=2e-3)


@given(
    st.floats(1, 1e5),
    st.sampled_from([2**i for i in range(9)]),
    st.integers(1, 32),
    st.booleans(),
    st.booleans(),
)
def test_a_layer_is_finite_positive_and_longer_with_more_tokens(tokens, ep, limit, once, fp8):
    one, two = (experts.layer(V3, n, ep, H100, limit, once, fp8) for n in (tokens, 2 * tokens))
    assert all(np.isfinite(v) and v >= 0 for v in one) and sum(two) >= sum(one)


def test_a_sweep_is_one_call():
    eps = np.array([1.0, 8.0, 64.0])
    together = experts.layer(V3, 4096, eps, H100, 4, True, True)
    for i, ep in enumerate(eps):
        alone = experts.layer(V3, 4096, ep, H100, 4, True, True)
        assert [column[i] for column in together] == pytest.approx([float(value) for value in alone])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: experts.capacity_rows(512, 2, 8, 0), ("capacity_factor", "0")),
        (lambda: experts.mean_rows(512, 2.5, 8), ("top_k",)),
        (lambda: experts.distinct_groups(100, 256, 8), ("top_k", "1", "64")),
        (lambda: experts.hiding_width(-1, 1e12, 1e9), ("copies_per_choice", "0")),
        (lambda: experts.held_bytes(V3, 0), ("ep",)),
    ],
)
def test_bad_input_is_named(call, words):
    with refused(*words):
        call()


@pytest.mark.parametrize(
    ("gpu", "ranks", "least", "most"),
    [("h100-sxm", 8, 1.35, 1.5), ("b200", 8, 1.65, 2.0), ("gb200", 4, 1.1, 1.3), ("gb300", 4, 1.05, 1.25)],
)
def test_the_one_price_of_tokens_against_deepep_in_one_box(gpu, ranks, least, most):
    """Nothing asks the fit of DeepEP's kernels. The price that everything asks is this many times as long for
    4,096 tokens and more of DeepSeek-V3's, sent in 8 bits and returned in 16."""
    net = interconnect.wires(catalog.gpu(gpu))
    sent = experts.copies(8, 256, ranks, ranks, 1.0, True)
    there, back = (
        known.known("dispatch", "normal", gpu).rates,
        known.known("combine", "normal.combine", gpu).rates,
    )
    for tokens in (4096.0, 16384.0):
        ours = sum(
            experts.exchange_s(tokens, 7168, size, sent, ranks, ranks, net)
            for size in (experts.FP8_BYTES, experts.TOKEN_BYTES)
        )
        theirs = sum(exchange.rows_s(tokens * sent.link, 7168, rates) for rates in (there, back))
        assert least < ours / theirs < most
