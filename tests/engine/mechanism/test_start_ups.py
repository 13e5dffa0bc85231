"""One α per kind of hop: it is the calibration's, and the textbook ring with it stays within its stated error
of the fitted collectives and of a measured log."""

from pathlib import Path

import numpy as np
import pytest

from engine import catalog
from engine.calibration import known
from engine.mechanism import collectives, hierarchy, interconnect, start_ups
from tests.cases import in_one_test

DGX = catalog.node("dgx-h100")
NVLINK, CARD = catalog.link("nvlink4"), catalog.link("ib-ndr")
NET = interconnect.wires(DGX.gpu)
SIZES = np.geomspace(1e3, 1e11, 65)
GROUPS = (8, 16, 24, 64, 256, 1024, 4096)
LOG_H100 = {2**16: 19.54e-6, 2**20: 27.37e-6, 2**24: 123.8e-6, 2**26: 324.7e-6, 2**30: 4029.4e-6}


def test_the_start_up_of_a_hop_is_the_one_that_the_fitted_collectives_charge():
    assert start_ups.hop_s(NVLINK) == NET.box.hop_s == known.collective("h100-sxm").rates.hop_s
    assert start_ups.hop_s(CARD) == NET.network.short_s == 2.7e-6
    assert start_ups.start_s(DGX.gpu) == NET.start_s
    assert start_ups.hop_s(NVLINK) < start_ups.hop_s(CARD) < CARD.latency_s


def test_a_network_that_was_measured_has_its_own():
    assert start_ups.hop_s(catalog.link("roce-200")) == 50e-6


@in_one_test("wire", catalog.all_links().values(), ids=lambda wire: wire.key)
def test_every_wire_of_the_catalogue_has_one(wire):
    """From a PCIe box's fifth of a message to a network that starts late."""
    assert 0.5e-6 < start_ups.hop_s(wire) <= 70e-6


@pytest.mark.parametrize("key", ["a100-80", "b200", "gb200", "gb300"])
def test_a_link_takes_the_constants_of_a_box_that_was_measured_with_it(key):
    link = catalog.usual_link(catalog.gpu(key))
    measured = {known.collective(gpu).rates.hop_s for gpu in ("a100-80", "b200", "gb200", "gb300")}
    assert start_ups.hop_s(link) in measured


@pytest.mark.parametrize("key", ["pcie6", "nvlink-c2c-5", "nvlink-c2c-6"])
def test_a_link_that_joins_no_two_gpus_has_nccl_s_start_up(key):
    link = catalog.link(key)
    assert start_ups.hop_s(link) == link.latency_s and start_ups.measured_on(link) == "NCCL"


def test_hops_of_a_ring_by_hand():
    """64 GPUs in nodes of eight: 56 hops inside and 7 between; 56 · 0.757 + 7 · 2.7 µs over 63."""
    assert collectives.ring_hops(64, 8) == (56, 7)
    assert collectives.ring_hops(8, 8) == (7, 0) and collectives.ring_hops(12, 8) == (10, 1)
    mean = (56 * start_ups.hop_s(NVLINK) + 7 * 2.7e-6) / 63
    assert start_ups.mean_hop_s(DGX, 64.0) == pytest.approx(mean) == pytest.approx(0.97e-6, rel=0.01)
    assert start_ups.mean_hop_s(DGX, 8.0) == start_ups.hop_s(NVLINK)
    assert start_ups.mean_hop_s(DGX, 2.0**20) == pytest.approx(start_ups.mean_hop_s(DGX), rel=1e-4)
    assert start_ups.mean_hop_s(DGX) == pytest.approx(1e-6, rel=0.01)
    assert start_ups.ring_hop_s(1, 8, 1e-6, 1e-6) == 0


@in_one_test("ranks", GROUPS)
def test_the_fitted_ring_takes_between_once_and_twice_the_textbooks(ranks):
    """Over all sizes and groups of the domain; and both ends of the range are reached."""
    size = SIZES if ranks != 24 else SIZES[::4]
    ours = start_ups.ring_through_s(size, float(ranks), DGX) + start_ups.start_s(DGX.gpu)
    ratio = interconnect.ring_s(size, float(ranks), 8.0, NET) / ours
    low, high = start_ups.RING_OFF
    assert low <= ratio.min() + 1e-9 and ratio.max() <= high
    assert ratio.max() > 1.7 and min(ratio[0], ratio[-1]) < 1.25


@pytest.mark.parametrize("ranks", [8, 16, 32])
def test_half_the_textbooks_ring_is_as_near_to_the_fitted_gather(ranks):
    """Up to 32 GPUs; beyond, PAT takes fewer hops for a small buffer."""
    ours = start_ups.ring_through_s(SIZES, float(ranks), DGX) / 2 + start_ups.start_s(DGX.gpu)
    ratio = interconnect.all_gather_s(SIZES, float(ranks), 8.0, NET) / ours
    assert ratio.min() > 0.99 and ratio.max() <= start_ups.RING_OFF[1]


@in_one_test("ranks", GROUPS)
def test_nccl_is_never_slower_than_its_ring_and_a_tree_is_quicker_for_small_buffers(ranks):
    ours = start_ups.ring_through_s(SIZES, float(ranks), DGX) + start_ups.start_s(DGX.gpu)
    ratio = interconnect.all_reduce_s(SIZES, float(ranks), 8.0, NET) / ours
    assert ratio.max() <= start_ups.RING_OFF[1]
    assert (ratio[0] < 0.7) == (ranks >= 64)


@pytest.mark.parametrize(("size", "measured_s"), LOG_H100.items())
def test_the_measured_log_is_as_near_as_the_fitted_ring(size, measured_s):
    """AllReduce on eight H100s (NVIDIA/dgxc-benchmarking), where the switch sums large buffers."""
    ours = start_ups.ring_through_s(float(size), 8.0, DGX) + start_ups.start_s(DGX.gpu)
    assert 0.9 < measured_s / ours < start_ups.RING_OFF[1]


def test_the_bulk_protocols_start_ups_would_be_five_times_too_slow():
    """What a course that charges 9.6 µs for each of a ring's hops through whole nodes says of a small one."""
    bulk = collectives.ring_all_reduce_s(1e3, 64, 400e9, CARD.latency_s) + start_ups.start_s(DGX.gpu)
    assert bulk / interconnect.ring_s(1e3, 64.0, 8.0, NET) > 5


@in_one_test("wire", catalog.all_links().values(), ids=lambda wire: wire.key)
def test_bulk_data_starts_no_earlier_than_a_small_message(wire):
    """A table had 50 µs for RoCE's small messages and 9.6 for its bulk data."""
    assert start_ups.bulk_hop_s(wire) >= start_ups.hop_s(wire)


def test_every_alpha_says_where_it_is_from():
    found = {key: start_ups.measured_on(wire) for key, wire in catalog.all_links().items()}
    assert all(found.values())
    assert (found["nvlink4"], found["ib-ndr"], found["roce-200"]) == ("H100 SXM", "NCCL", "nccl-tests")
    assert found["pcie3"] == found["pcie5"] != found["pcie4"]


def test_the_pyramid_has_the_same_two():
    alpha = dict(zip(hierarchy.LEVELS, hierarchy.alpha_s(hierarchy.hierarchies()["h100-sxm"])))
    assert (alpha["link"], alpha["network"]) == (start_ups.hop_s(NVLINK), start_ups.hop_s(CARD))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: collectives.ring_hops(2.5, 8), "ranks must be a whole number"),
        (lambda: start_ups.ring_hop_s(8, 8, -1e-6, 1e-6), "link_hop_s must be at least 0"),
    ],
)
def test_bad_input_is_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()


ROOT = Path(__file__).resolve().parents[3]
BULK = {  # where a wire's latency for bulk data is meant, and named so
    "lessons/08-sequence-and-context.py",  # a block of keys and values, sent by itself
    "widgets/training/ring_attention.py",
}


def test_no_lesson_and_no_figure_has_a_start_up_of_its_own():
    """Who charges a ring's hop asks start_ups: a wire's own latency is that of the protocol for bulk data."""
    files = [*ROOT.glob("lessons/*"), *ROOT.glob("widgets/**/*.py"), *ROOT.glob("course/**/*.py")]
    found = {
        str(path.relative_to(ROOT)) for path in files if ".latency_s" in path.read_text(encoding="utf-8")
    }
    assert len(files) > 100 and found == BULK
