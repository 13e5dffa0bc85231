"""Two lanes and a queue, by hand; and what a real PyTorch keeps against the paper that counts it."""

import numpy as np
import pytest

from engine import catalog
from engine.calibration import known, launch_costs
from engine.calibration.products import gemm_s
from engine.mechanism import matmul
from engine.one_gpu import dispatch
from tests.cases import in_one_test

I, G = 10e-6, 4e-6


def lanes(ops, issue_s, gpu_s, every=0, queue=1024):
    return dispatch.run(ops, issue_s, gpu_s, every, queue)


def test_small_kernels_wait_for_the_cpu():
    """Three operators, 10 µs to issue, 4 µs to run: kernels end at 14, 24 and 34."""
    found = lanes(3, I, G)
    assert found["end_s"][:3] == pytest.approx([14e-6, 24e-6, 34e-6])
    assert found["gpu_idle_s"] == pytest.approx(10e-6 + 6e-6 + 6e-6)
    assert found["cpu_waits_s"] == 0 and found["most_queued"] == 1


def test_large_kernels_queue_up():
    """Three operators, 4 µs to issue, 10 to run: launched at 4, 8, 12; they run from 4 to 34 without a
    gap."""
    found = lanes(3, G, I)
    assert found["launched_s"][:3] == pytest.approx([4e-6, 8e-6, 12e-6])
    assert found["start_s"][:3] == pytest.approx([4e-6, 14e-6, 24e-6])
    assert found["total_s"] == pytest.approx(34e-6) and found["most_queued"] == 3


def test_a_full_queue_holds_the_cpu():
    """Room for two: the third launch waits until the first kernel has ended, at 14."""
    found = lanes(4, G, I, queue=2)
    assert found["launched_s"][:4] == pytest.approx([4e-6, 8e-6, 14e-6, 24e-6])
    assert found["total_s"] == pytest.approx(44e-6)  # the GPU did not notice
    assert found["cpu_waits_s"] == pytest.approx(2e-6 + 6e-6)


def test_a_synchronization_after_each_operator_adds_the_two():
    found = lanes(5, I, G, every=1)
    assert found["total_s"] == pytest.approx(5 * (I + G))
    assert found["cpu_waits_s"] == pytest.approx(5 * G)


@in_one_test("every", [0, 1, 3, 7, 20])
@in_one_test("issue_s, gpu_s", [(I, G), (G, I), (I, I)])
def test_the_rule_is_what_the_lanes_do(every, issue_s, gpu_s):
    assert dispatch.step_s(20, issue_s, gpu_s, every) == pytest.approx(
        lanes(20, issue_s, gpu_s, every)["total_s"]
    )


@pytest.mark.parametrize(("every", "pace_s"), [(0, 10e-6), (1, 14e-6), (4, 11e-6)])
def test_the_pace_of_one_operator(every, pace_s):
    """10 µs and 4 µs: the slower alone, the sum when each is read, a quarter of the shorter when each fourth
    is."""
    assert (
        dispatch.pace_s(I, G, every) == pytest.approx(pace_s) == pytest.approx(dispatch.pace_s(G, I, every))
    )
    assert dispatch.step_s(4000, I, G, every) / 4000 == pytest.approx(pace_s, rel=1e-3)


def test_a_faster_gpu_gives_nothing_to_small_operators():
    """1,000 operators at 10 µs: twice the GPU saves half of one kernel."""
    assert dispatch.step_s(1000, I, G) - dispatch.step_s(1000, I, G / 2) == pytest.approx(2e-6)


def test_where_the_gpu_covers_the_cpu():
    """H100: 10 µs move 10e-6 · 0.74 · 3.35e12 = 25 MB, of 6 bytes a value: 4.13 million; 10 µs are 7.9 GFLOP:
    n = 1582."""
    h100 = catalog.gpu("h100-sxm")
    assert dispatch.covering_add(I, h100.hbm_bytes_per_s) == pytest.approx(4.13e6, rel=0.01)
    assert dispatch.covering_matmul(I, h100.bf16_flops_per_s) == pytest.approx(1582, rel=0.01)
    for kind in (dispatch.ADD, dispatch.MATMUL):
        side = dispatch.covering_side(kind, I, h100.bf16_flops_per_s, h100.hbm_bytes_per_s)
        assert dispatch.op_s(kind, side, h100.bf16_flops_per_s, h100.hbm_bytes_per_s) == pytest.approx(
            I, rel=1e-9
        )


def test_the_roofline_is_no_second_price_of_a_product():
    """It says by how much it is below the fitted one, and its share of the peak is the best product's."""
    h100, rates = catalog.gpu("h100-sxm"), known.gemm("h100-sxm", "bf16").rates
    assert abs(dispatch.MATMUL_SHARE - matmul.achievable_share(h100, "bf16")) < 0.005
    for side, least, most in (
        (1024.0, -0.63, -0.55),
        (2048.0, -0.185, -0.15),
        (4096.0, -0.02, 0.02),
        (8192.0, -0.02, 0.02),
    ):
        said = dispatch.matmul_s(side, h100.bf16_flops_per_s, h100.hbm_bytes_per_s)
        assert least < said / gemm_s(side, side, side, rates) - 1 < most


def test_an_operator_is_never_shorter_than_the_shortest_kernel():
    sides = np.geomspace(1, 20000, 30)
    for kind in (dispatch.ADD, dispatch.MATMUL):
        times = dispatch.op_s(kind, sides, 1e15, 3e12)
        assert times[0] == launch_costs.SHORTEST_S and np.all(np.diff(times) >= 0)


def test_products_and_additions_that_were_timed_are_told_apart():
    """NVIDIA's log is of products alone. Of a product of sides n a kernel takes 2n³ FLOPs, and of a matrix
    that is added to itself it reads n² values of 2 bytes and writes as many; an H200 has 989 TFLOP/s and 4.8
    TB/s at the most."""
    assert "products, NVIDIA's sample log" in {one.who for one in dispatch.timed("matmul")}
    assert {one.who for one in dispatch.timed("add")} == {"measured"}
    for kind, least_s in (("matmul", lambda n: 2 * n**3 / 989e12), ("add", lambda n: 4 * n**2 / 4.8e12)):
        largest = [one for one in dispatch.timed(kind) if one.kernel_s and one.side == 8192]
        assert largest and all(1 < one.kernel_s / least_s(8192) < 2.5 for one in largest)


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="values"):
        dispatch.add_s(0.0, 3e12)
    with pytest.raises(ValueError, match="issue_s"):
        dispatch.covering_matmul(-1.0, 1e15)
