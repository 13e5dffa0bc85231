"""The catalogue's small tables against what their sources print:
engine/validation/published/catalog/tables.json."""

import json
import re

import pytest

from engine import catalog
from engine.calibration import known, products
from engine.mechanism import hierarchy, matmul
from engine.one_gpu import dispatch, tiling
from engine.validation import CASES
from tests.cases import in_one_test

PRINTED = json.loads((CASES / "catalog" / "tables.json").read_text(encoding="utf-8"))
BEST = [
    (precision, key, tflops)
    for precision in ("bf16", "fp8")
    for key, tflops in PRINTED["best_matrix_products"][precision].items()
]


SLOWER_IN_THE_TABLES = ("b200", "gb200")


@in_one_test("precision, key, tflops", BEST)
def test_the_best_matrix_product_is_the_measured_one(precision, key, tflops):
    """To half of the share's last digit: the sweep's, or the fitted products' where those are slower."""
    peak = getattr(catalog.gpu(key), f"{precision}_flops_per_s")
    best = tflops * 1e12
    if key in SLOWER_IN_THE_TABLES:
        rates = known.gemm(key, precision).rates
        fitted = [
            2 * side**3 / products.gemm_s(side, side, side, rates) for side in (4096.0, 8192.0, 16384.0)
        ]
        assert max(fitted) < 0.95 * best
        best = max(fitted)
    assert matmul.achievable_share(catalog.gpu(key), precision) == pytest.approx(best / peak, abs=0.0006)


@pytest.mark.parametrize(
    ("key", "sibling", "precisions"),
    [
        ("a100-40", "a100-80", ["bf16"]),
        ("a800", "a100-80", ["bf16"]),
        ("h800", "h100-sxm", ["bf16", "fp8"]),
        ("h200", "h100-sxm", ["bf16"]),
    ],
)
def test_what_was_not_measured_is_its_siblings(key, sibling, precisions):
    for precision in precisions:
        assert matmul.achievable_share(catalog.gpu(key), precision) == matmul.achievable_share(
            catalog.gpu(sibling), precision
        )


@pytest.mark.parametrize(
    ("precision", "middle"), [("bf16", 0.803), ("fp16", 0.803), ("fp8", 0.734), ("fp4", 0.734)]
)
def test_a_chip_that_nobody_measured_has_the_median(precision, middle):
    """By hand: of 14 shares in bf16 the eighth smallest, of 7 in fp8 the fourth."""
    assert matmul.achievable_share(catalog.gpu("l40s"), precision) == middle


@pytest.mark.parametrize(
    ("key", "side_m", "side_n", "side_k", "seconds", "pieces"),
    [
        ("tpu-v5e", 8192, 8192, 8192, 6.047147869830951e-3, 1),
        ("tpu-v6e", 8192, 8192, 8192, 1510.94375e-6, 1),
        ("tpu-v7", 16384, 8192, 8192, 1974.62545e-6, 2),
    ],
)
def test_a_tpu_has_the_best_product_that_somebody_timed(key, side_m, side_n, side_k, seconds, pieces):
    """By hand from the printed times; half a chip was timed of a v7."""
    tpu = catalog.gpu(key)
    rate = pieces * 2 * side_m * side_n * side_k / seconds
    assert matmul.achievable_share(tpu, "bf16") == pytest.approx(rate / tpu.bf16_flops_per_s, abs=0.0006)


def test_tpus_and_gpus_stand_for_their_own_kin():
    """Of three TPUs the middle one; 8 bits were timed on none of them, so there the GPUs' median stays."""
    assert matmul.achievable_share(catalog.gpu("tpu-v4"), "bf16") == 0.923
    assert matmul.achievable_share(catalog.gpu("tpu-v7"), "fp8") == 0.734


def test_compiled_steps_are_those_printed():
    steps = catalog.compiled_steps()
    for key, milliseconds in PRINTED["compiled_ms"].items():
        if key != "source":
            assert [steps[key].eager_s, steps[key].compiled_s] == pytest.approx(
                [t / 1e3 for t in milliseconds]
            )
    ((key, rates),) = [(k, v) for k, v in PRINTED["compiled_tokens_per_s"].items() if k != "source"]
    found = [steps[key].eager_s, steps[key].compiled_s]
    assert found == pytest.approx([2 * 8192 / rate for rate in rates], rel=1e-4)
    assert {key: step.cold_s for key, step in steps.items() if step.cold_s} == {
        key: seconds for key, seconds in PRINTED["cold_s"].items() if key != "source"
    }


def test_interruptions_are_as_far_apart_as_reported():
    printed, found = PRINTED["interruptions"], catalog.all_interruptions()
    for key, (days, count) in printed["days_and_count"].items():
        assert found[key].mtbf_s == pytest.approx(days * 86400 / count, abs=0.5)
    for key, hours in printed["hours"].items():
        assert found[key].mtbf_s == hours * 3600
    assert {key: each.gpus for key, each in found.items()} == printed["gpus"]


def test_runs_took_the_hours_reported():
    printed, found = PRINTED["runs"], catalog.all_runs()
    assert {key: run.gpu_hours for key, run in found.items()} == {
        k: sum(v) for k, v in printed["gpu_hours"].items()
    }
    assert {key: run.gpus for key, run in found.items()} == printed["gpus"]


def test_launches_took_what_the_log_says():
    log = {float(side): us * 1e-6 for side, us in PRINTED["launches_us"].items() if side != "source"}
    found = dispatch.cited()["dgxc"]
    assert dict(zip(found["sides"], found["seconds"])) == pytest.approx(log)


def test_latencies_and_rates_on_the_chip_are_those_measured():
    for key, chip in hierarchy.hierarchies().items():
        assert [chip.smem_clocks, chip.l2_clocks, chip.hbm_clocks] == PRINTED["latencies_clocks"][key]
        assert chip.l2_bytes_per_s == pytest.approx(PRINTED["l2_tb_per_s"][key] * 1e12)


def test_each_gpu_has_a_drive_on_four_lanes_of_pcie_4():
    """16 GT/s on 4 lanes with 128 of 130 bits are 7.88 GB/s; Samsung prints 6.9 for its PM9A3. A NAND read
    takes 50 to 100 µs."""
    for chip in hierarchy.hierarchies().values():
        assert chip.storage_bytes_per_s == 6.9e9 < 4 * 16e9 / 8 * 128 / 130
        assert 50e-6 <= chip.storage_latency_s <= 100e-6


def test_a_host_s_memory_is_that_of_its_channels():
    """Two CPUs of eight channels of 8 bytes each, at the rate that DDR's name says, for eight GPUs."""
    named = {
        key: re.search(r"two .* \(eight channels of DDR\d-(\d+) each\) for eight GPUs", host.source)
        for key, host in catalog.all_hosts().items()
    }
    assert len([found for found in named.values() if found]) >= 3
    for key, found in named.items():
        if found:
            shared = 2 * 8 * 8 * float(found[1]) * 1e6 / 8
            assert catalog.all_hosts()[key].memory_bytes_per_s == pytest.approx(shared), key


def test_a_port_carries_what_its_name_says():
    """Gb/s over eight; of several ports together. Latencies are NCCL's for the kind of wire, or a torus's
    microsecond; of a network 2.7 µs for small and 4 µs for medium messages (LL and LL128 in tuning.cc)."""
    ports = 0
    for link in catalog.all_links().values():
        several, one = re.match(r"(\d+) × (\d+) GbE", link.name), re.search(r"(\d+) Gb/s", link.name)
        if several or one:
            gbit_per_s = int(several[1]) * int(several[2]) if several else int(one[1])
            assert link.bytes_per_s == gbit_per_s * 1e9 / 8
            ports += 1
        kind = next(
            (
                kind
                for kind in ("PCIe", "NVLink", "NeuronLink", "Infinity", "ICI")
                if link.name.startswith(kind)
            ),
            "port",
        )
        kind = "NVLink" if kind == "ICI" and not link.axes else kind  # no torus: costed as a switch
        assert link.latency_s == {"PCIe": 5.7e-6, "ICI": 1e-6, "port": 9.6e-6}.get(kind, 3.4e-6)
        assert link.marketing_bytes_per_s in (link.bytes_per_s, 2 * link.bytes_per_s)
        assert link.short_s in (0.0, 2.7e-6) or link.full_s  # of which a whole run was found
        assert link.middle_s == (4e-6 if link.short_s == 2.7e-6 else 0.0)
    assert ports == 26


@pytest.mark.parametrize(("key", "generation"), [("pcie3", 3), ("pcie4", 4), ("pcie5", 5)])
def test_sixteen_lanes_of_pcie(key, generation):
    """8 GT/s a lane in the third generation, twice as much in each after it, 128 of 130 bits; eight lanes are
    half of it, and the sixth generation's flits of 256 bytes leave 242 for data."""
    assert catalog.link("pcie5-x8").bytes_per_s == catalog.link("pcie5").bytes_per_s / 2
    assert catalog.link("pcie6").bytes_per_s == pytest.approx(16 * 64e9 / 8 * 242 / 256, rel=2e-3)
    assert catalog.link(key).bytes_per_s == pytest.approx(
        16 * 8e9 / 8 * 2 ** (generation - 3) * 128 / 130, rel=2e-3
    )


@in_one_test(
    "key, links, rate",
    [
        ("if-mi250x", 7, 50e9),
        ("if-mi300x", 7, 64e9),
        ("if-mi350x", 7, 76.8e9),
        ("nvlink2", 6, 25e9),
        ("nvlink3", 12, 25e9),
        ("nvlink4", 18, 25e9),
        ("nvlink5", 18, 50e9),
        ("nvlink6", 36, 50e9),
    ],
)
def test_a_fabric_is_so_many_links(key, links, rate):
    assert catalog.link(key).bytes_per_s == pytest.approx(links * rate)


def test_in_a_mesh_each_gpu_has_wires_to_all_others_of_its_node():
    """AMD's boards of eight, and Intel's, whose 21 ports are three to each of seven."""
    meshes = {node.link.key: (node.gpus, node.link.peers) for node in catalog.all_nodes().values()}
    eight = {"if-mi300x", "if-mi350x", "gaudi2-mesh", "gaudi3-mesh"}
    assert {key: found for key, found in meshes.items() if found[1]} == dict.fromkeys(eight, (8, 7))


def test_products_are_those_that_were_timed():
    product = next(product for product in tiling.products() if product.name == "torch.compile, max-autotune")
    m, n, k, tflops = PRINTED["products"]["h100-sxm"]
    assert (product.m, product.n, product.k, product.flops_per_s) == (m, n, k, pytest.approx(tflops * 1e12))


@in_one_test(
    "key, printed",
    [
        ("bf16-adam", (2, 2, 4, 4, 4)),
        ("bf16-adam-fp32-grads", (2, 4, 4, 4, 4)),
        ("bf16-adam-two-grads", (2, 6, 4, 4, 4)),
        ("fp32-adam", (4, 4, 0, 4, 4)),
        ("adam-8bit", (2, 2, 4, 1.002, 1.002)),
        ("adafactor", (2, 2, 4, 0, 0.002)),
        ("sgd-momentum", (2, 2, 4, 4, 0)),
        ("fp8-te", (4, 4, 0, 4, 4)),
        ("fp8-deepseek-v3", (1, 6, 4, 2, 2)),
        ("fp8-lm", (1, 3, 2, 1, 2)),
        ("fp8-nanotron", (1, 5, 2, 1, 1)),
    ],
)
def test_bytes_of_weight_gradient_master_momentum_and_variance(key, printed):
    """8-bit states carry an absolute maximum of 4 bytes for each block of 2,048 values: 0.002 bytes a
    value."""
    found = catalog.recipe(key)
    assert (
        found.weight_bytes,
        found.gradient_bytes,
        found.master_bytes,
        found.momentum_bytes,
        found.variance_bytes,
    ) == printed
