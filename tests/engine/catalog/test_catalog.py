"""The catalogue: complete, sourced, consistent with itself, and its models exact."""

import json
import re
from statistics import median

import numpy as np
import pytest

from engine import catalog, validation
from engine.catalog import hardware, models, naming
from engine.catalog.recipes import Recipe
from engine.mechanism import memory
from tests.cases import in_one_test
from tests.said import refused

PUBLISHED = validation.CASES / "catalog" / "hardware.json"
PRINTED = json.loads(PUBLISHED.read_text(encoding="utf-8"))
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
EVERYTHING = [
    (kind, key, thing)
    for kind in ("gpus", "models", "recipes", "links", "nodes", "prices")
    for key, thing in getattr(catalog, f"all_{kind}")().items()
]


def test_is_as_wide_as_the_course_promises():
    assert len(catalog.all_gpus()) >= 25
    assert len(catalog.all_models()) >= 35
    for key in [
        "v100",
        "a100-40",
        "a100-80",
        "a800",
        "h100-sxm",
        "h100-pcie",
        "h800",
        "h200",
        "gh200",
        "b200",
        "gb200",
        "b300",
        "gb300",
        "l4",
        "l40s",
        "a10g",
        "rtx3090",
        "rtx4090",
        "rtx5090",
        "mi250x",
        "mi300x",
        "mi325x",
        "mi355x",
        "tpu-v4",
        "tpu-v5e",
        "tpu-v5p",
        "tpu-v6e",
        "gaudi2",
        "gaudi3",
        "vr200",
        "rtx-pro-6000",
        "rtx-a6000",
        "rtx-6000-ada",
        "l40",
        "h20-141",
        "h200-nvl",
        "mi455x",
        "tpu-8t",
        "tpu-8i",
        "trainium3",
        "gb10",
        "m3-ultra",
    ]:
        assert catalog.gpu(key).key == key


@in_one_test("kind, key, thing", EVERYTHING, ids=lambda v: v if isinstance(v, str) else "")
def test_every_entry_says_where_its_figures_are_from(kind, key, thing):
    assert thing.key == key
    assert len(thing.source) >= 8


@in_one_test("kind, key, thing", EVERYTHING, ids=lambda v: v if isinstance(v, str) else "")
def test_every_entry_has_the_day_of_its_check_or_says_what_is_not_confirmed(kind, key, thing):
    """One or the other: a date beside an open doubt would pass the doubt off as checked."""
    doubt = re.search(r"not confirmed: \S.{3,}", thing.note)
    assert bool(doubt) == (thing.checked == "")
    assert DATE.fullmatch(thing.checked) or doubt


def test_tables_are_read_once():
    assert catalog.all_gpus() is catalog.all_gpus()
    assert catalog.model("gpt2") is catalog.model("gpt2")


@pytest.mark.parametrize(
    ("find", "word"),
    [
        (catalog.gpu, "h100"),
        (catalog.model, "llama"),
        (catalog.recipe, "adam"),
        (catalog.link, "nvlink"),
        (catalog.node, "dgx"),
    ],
)
def test_an_unknown_key_is_named_with_near_ones(find, word):
    with pytest.raises(ValueError, match=rf"near: .*{word}.*; got '{word}-99'"):
        find(word + "-99")


def test_where_no_key_is_near_the_first_eight_are_named():
    eight = ", ".join(list(catalog.all_gpus())[:8])
    with pytest.raises(ValueError, match=rf"near: {eight}\); got '\?'"):
        catalog.gpu("?")


# -- GPUs ----------------------------------------------------------------------------------------------------
@in_one_test("gpu", catalog.all_gpus().values(), ids=lambda g: g.key)
def test_gpu_figures_are_of_the_right_size(gpu):
    assert 15e9 <= gpu.hbm_bytes <= 512e9 and 2017 <= gpu.year <= int(gpu.checked[:4] or 2026)
    assert 0.2e12 < gpu.hbm_bytes_per_s <= (8e12 if gpu.year < 2026 else 24e12)
    assert gpu.link_marketing_bytes_per_s == pytest.approx(2 * gpu.link_bytes_per_s)
    assert gpu.nic_bytes_per_s <= gpu.link_bytes_per_s < gpu.hbm_bytes_per_s
    alone = gpu.nic_bytes_per_s == gpu.link_bytes_per_s  # its network stands for a link
    assert not alone or (gpu.gpus_per_node == 1 and gpu.link_name.startswith("none"))
    assert (hardware.peaks_with_fallback(gpu) > 0).all()
    assert gpu.reported_bytes == 0 or 0.96 <= gpu.reported_bytes / gpu.hbm_bytes <= 1.09


@in_one_test("gpu", catalog.all_gpus().values(), ids=lambda g: g.key)
def test_gpu_agrees_with_its_usual_node(gpu):
    node = catalog.node_of(gpu.key)
    assert node.gpus == gpu.gpus_per_node
    assert node.link.bytes_per_s == gpu.link_bytes_per_s
    assert node.nic_bytes_per_s_per_gpu == pytest.approx(gpu.nic_bytes_per_s, rel=0.01)


# 2 FLOPs × FMAs per tensor core and clock × cores × clock (arithmetic of the whitepapers)
@pytest.mark.parametrize(
    ("key", "fma", "cores", "mhz"),
    [
        ("h100-sxm", 512, 528, 1830),
        ("a100-80", 256, 432, 1410),
        ("mi300x", 256, 1216, 2100),
        ("mi250x", 128, 880, 1700),
    ],
)
def test_peak_is_what_the_tensor_cores_can_do(key, fma, cores, mhz):
    assert catalog.gpu(key).bf16_flops_per_s == pytest.approx(2 * fma * cores * mhz * 1e6, rel=2e-3)


# of the vendors that publish rates of matrix units with the same ratio between formats on all of a generation
GPUS_WITH_A_LADDER = [g for g in catalog.all_gpus().values() if g.vendor in ("NVIDIA", "AMD")]
GEFORCE, WITHOUT_INT8 = ("rtx3090", "rtx4090", "rtx5090"), ("b300", "gb300", "vr200")
INT8_AS_16_BITS = ("mi250x", "mi455x")


@in_one_test("gpu", GPUS_WITH_A_LADDER, ids=lambda g: g.key)
def test_each_narrower_format_is_twice_as_fast(gpu):
    """To 2 %: datasheets round. GeForce's int8 adds up in 32 bits at the rate of fp8 with 16, MI250X knows no
    faster format than 16 bits, the B300 gave its int8 units away, and Rubin's fp8 has half the rate of its
    fp4."""
    half = gpu.fp16_flops_per_s
    assert gpu.bf16_flops_per_s in (0, half)
    assert gpu.tf32_flops_per_s == 0 or gpu.tf32_flops_per_s == pytest.approx(half / 2, rel=0.02)
    eight = gpu.fp4_flops_per_s / 2 if gpu.key == "vr200" else 2 * half
    assert gpu.fp8_flops_per_s == 0 or gpu.fp8_flops_per_s == pytest.approx(eight, rel=0.02)
    if gpu.int8_flops_per_s and gpu.key not in WITHOUT_INT8:
        times = 4 if gpu.key in GEFORCE else 1 if gpu.key in INT8_AS_16_BITS else 2
        assert gpu.int8_flops_per_s == pytest.approx(times * half, rel=0.02)


def test_gaudi_3_has_a_quarter_of_its_bf16_in_wider_formats_and_in_fp16():
    gaudi = catalog.gpu("gaudi3")
    quarter = pytest.approx(gaudi.bf16_flops_per_s / 4, rel=1e-3)
    assert gaudi.tf32_flops_per_s == quarter and gaudi.fp16_flops_per_s == quarter


@in_one_test(
    "key, precision, pflops, hbm_gb, tb_per_s, mib",
    [
        ("tpu-v7", "fp8", 4.614, 192, 7.37, 128),
        ("tpu-8t", "fp4", 12.6, 216, 6.5, 128),
        ("tpu-8i", "fp4", 10.1, 288, 8.6, 384),
    ],
)
def test_a_tpu_is_as_announced(key, precision, pflops, hbm_gb, tb_per_s, mib):
    """Google's blog and SemiAnalysis, April 2026."""
    tpu = catalog.gpu(key)
    assert getattr(tpu, f"{precision}_flops_per_s") == pflops * 1e15
    assert (tpu.hbm_bytes, tpu.l2_bytes) == (hbm_gb * 1e9, mib * 2**20)
    assert tpu.hbm_bytes_per_s == pytest.approx(tb_per_s * 1e12, rel=0.005)


@in_one_test(
    "key, precision, flops",
    [
        ("tpu-v4", "bf16", 1.1e18),
        ("tpu-v6e", "bf16", 234.9e15),
        ("tpu-v7", "fp8", 42.5e18),
        ("tpu-8t", "fp4", 121e18),
    ],
)
def test_a_pod_of_tpus_has_the_peak_that_google_prints(key, precision, flops):
    tpu = catalog.gpu(key)
    assert tpu.gpus_per_node * getattr(tpu, f"{precision}_flops_per_s") == pytest.approx(flops, rel=0.03)


@in_one_test("gpu", [g for g in catalog.all_gpus().values() if g.key.startswith("tpu")], ids=lambda g: g.key)
def test_fp32_is_a_sixth_of_a_tpu_s_bf16(gpu):
    """XLA makes an fp32 product of six in bf16."""
    assert gpu.fp32_flops_per_s == pytest.approx(gpu.bf16_flops_per_s / 6, rel=2e-3)


# KiB of an SM, by compute capability: CUDA C++ programming guide, technical specifications
@pytest.mark.parametrize(
    ("kib", "keys"),
    [
        (96, "v100-16 v100"),
        (64, "t4"),
        (164, "a100-40 a100-80 a100-pcie a800 a30"),
        (100, "a10g a40 rtx3090 rtx-a6000 l4 l20 l40 l40s rtx4090 rtx-6000-ada rtx5090 rtx-pro-6000 gb10"),
        (228, "h100-sxm h100-pcie h100-nvl h800 h20 h20-141 h200 h200-nvl gh200 b200 gb200 b300 gb300"),
    ],
)
def test_shared_memory_is_that_of_the_compute_capability(kib, keys):
    assert {key: catalog.gpu(key).smem_bytes_per_sm for key in keys.split()} == dict.fromkeys(
        keys.split(), kib * 1024
    )


@in_one_test("gpu", catalog.all_gpus().values(), ids=lambda g: g.key)
def test_what_is_inferred_is_a_figure_that_the_entry_has(gpu):
    assert len(set(gpu.inferred)) == len(gpu.inferred)
    assert set(gpu.inferred) <= set(hardware.FIGURES)
    assert all(getattr(gpu, name) for name in gpu.inferred)
    assert gpu.inferred or gpu.checked, "an entry that is not confirmed says which figures are not"


@in_one_test("gpu", catalog.all_gpus().values(), ids=lambda g: g.key)
def test_a_nic_is_as_sure_as_the_usual_node(gpu):
    wires = {"nic_bytes_per_s", "link_bytes_per_s"} & set(gpu.inferred)
    assert catalog.node_of(gpu.key).checked or wires, "the node's wires are not confirmed"


# 1,024 FLOPs a clock and SM is what the tensor cores of these generations do with sums in fp32
@pytest.mark.parametrize(
    ("key", "ghz"),
    [("rtx-a6000", 1.8), ("a40", 1.74), ("rtx-6000-ada", 2.505), ("gb10", 2.418), ("rtx-pro-6000", 2.617)],
)
def test_a_derived_peak_is_the_clock_times_the_units(key, ghz):
    gpu = catalog.gpu(key)
    assert gpu.bf16_flops_per_s == pytest.approx(gpu.sms * 1024 * ghz * 1e9, rel=2e-3)
    assert "bf16_flops_per_s" in gpu.inferred


# -- names of GPUs -------------------------------------------------------------------------------------------
@in_one_test(
    "said, key",
    [
        ("h100-sxm", "h100-sxm"),
        ("H100", "h100-sxm"),
        ("h100 sxm", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("nvidia-h100-80gb", "h100-sxm"),
        ("p5.48xlarge", "h100-sxm"),
        ("ml.p5.48xlarge", "h100-sxm"),
        ("Standard_ND96isr_H100_v5", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("a100", "a100-80"),
        ("A100-SXM4-80GB", "a100-80"),
        ("NVIDIA A100-SXM4-40GB", "a100-40"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie"),
        ("4090", "rtx4090"),
        ("RTX 4090", "rtx4090"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA H200", "h200"),
        ("H200 NVL", "h200-nvl"),
        ("NVIDIA H20-3e", "h20-141"),
        ("B200", "b200"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("Rubin", "vr200"),
        ("L40S", "l40s"),
        ("g6e.12xlarge", "l40s"),
        ("A6000", "rtx-a6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("DGX Spark", "gb10"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("Tesla T4", "t4"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("TPU v5e", "tpu-v5e"),
        ("TPU v5 lite", "tpu-v5e"),
        ("TPU 8t", "tpu-8t"),
        ("trn2.48xlarge", "trainium2"),
        ("Gaudi 3", "gaudi3"),
        ("Apple M3 Ultra", "m3-ultra"),
    ],
)
def test_a_gpu_is_found_by_what_it_is_called(said, key):
    assert catalog.gpu(said).key == key


@in_one_test("gpu", catalog.all_gpus().values(), ids=lambda g: g.key)
def test_a_name_stands_for_one_gpu(gpu):
    for said in (gpu.key, gpu.name, *gpu.also):
        taken = [
            other.key
            for other in catalog.all_gpus().values()
            for name in (other.key, other.name, *other.also)
            if naming.plain(name) == naming.plain(said)
        ]
        assert set(taken) == {gpu.key} and catalog.gpu(said) is gpu
    assert len({naming.plain(said) for said in (gpu.key, *gpu.also)}) == 1 + len(gpu.also), "said twice"


@pytest.mark.parametrize(
    ("said", "suggested"),
    [
        ("rtx", "rtx3090, rtx4090, rtx5090, rtx-a6000"),
        ("TPU 8", "tpu-8t, tpu-8i"),
        ("A10", "a100-40, a100-80, a100-pcie, a10g"),
        ("H100s", "h100-sxm"),
        ("mi3", "mi300x, mi325x, mi350x, mi355x"),
    ],
)
def test_of_an_unknown_gpu_those_that_begin_so_come_first(said, suggested):
    with pytest.raises(ValueError, match=rf"near: {suggested}[,)].*got '{said}'"):
        catalog.gpu(said)


@pytest.mark.parametrize("said", ["", "nvidia", "xlarge", " - "])
def test_a_name_without_a_telling_word_is_no_gpu(said):
    with pytest.raises(ValueError, match="gpu must be a key"):
        catalog.gpu(said)


def test_an_entry_with_names_can_be_hashed():
    """What is computed of a GPU is remembered by the GPU."""
    gpu = catalog.gpu("h100-sxm")
    assert isinstance(gpu.also, tuple) and isinstance(gpu.inferred, tuple) and hash(gpu)


def test_where_several_have_a_name_the_result_says_which_it_is():
    assert (catalog.gpu("A100").name, catalog.gpu("H100").name) == ("A100 SXM 80 GB", "H100 SXM")


def test_a_peak_the_chip_lacks_is_refused_and_named():
    a100 = catalog.gpu("a100-80")
    assert a100.peak_flops_per_s("bf16") == 312e12
    with refused("precision", "fp32, tf32, bf16, fp16, int8 on A100", "'fp8'"):
        a100.peak_flops_per_s("fp8")
    with pytest.raises(ValueError, match="'hbm_bytes'"):
        a100.peak_flops_per_s("hbm_bytes")


def test_at_an_mfu_a_gpu_reaches_this_share_of_its_peak():
    """40 % of an H100's 989 TFLOP/s; an A100 has no fp8, and computes it in bf16."""
    assert hardware.achieved_flops_per_s(catalog.gpu("h100-sxm"), 0.4) == pytest.approx(395.6e12)
    assert hardware.achieved_flops_per_s(catalog.gpu("a100-80"), 0.5, "fp8") == pytest.approx(156e12)


def test_fallback_is_the_next_wider_format_and_says_so():
    v100, a100 = catalog.gpu("v100"), catalog.gpu("a100-80")
    assert hardware.peak_with_fallback(v100, "bf16") == 125e12
    assert hardware.peak_with_fallback(a100, "fp4") == 312e12
    assert hardware.peak_with_fallback(catalog.gpu("tpu-v7"), "int8") == 2307e12
    assert hardware.peak_with_fallback(a100, "int8") == 624e12
    assert np.allclose(hardware.peaks_with_fallback(a100) / 1e12, [19.5, 156, 312, 312, 312, 624, 312])
    used = [hardware.PRECISIONS[i] for i in hardware.used_precisions(a100)]
    assert used == ["fp32", "tf32", "bf16", "fp16", "bf16", "int8", "bf16"]


def test_models_taken_together_give_what_each_gives():
    keys = ["gpt2-xl", "llama3.1-70b", "mixtral-8x7b", "deepseek-v3", "gemma3-27b"]
    together = catalog.models_together(keys)
    for function in (models.parameters, models.active_parameters, lambda m: memory.kv_bytes(m, 8192)):
        assert np.allclose(function(together), [function(catalog.model(key)) for key in keys], rtol=1e-15)


# -- against what others printed -----------------------------------------------------------------------------
def agrees(value: float, printed: str) -> bool:
    """Whether ``value`` rounds to what is printed: '1.94e12' stands for 1.935e12 to 1.945e12, '50 MiB' for
    itself."""
    if printed.endswith(" MiB"):
        return value == float(printed[:-4]) * 2**20
    mantissa, _, exponent = printed.partition("e")
    half = 0.5 * 10.0 ** -len(mantissa.partition(".")[2])
    return abs(value / 10.0 ** int(exponent or 0) - float(mantissa)) <= half * (1 + 1e-9)


@in_one_test("row", PRINTED["gpus"]["rows"] + PRINTED["techpowerup"]["rows"], ids=lambda row: row["id"])
def test_gpu_agrees_with_the_published_tables(row):
    gpu = catalog.gpu(row["gpu"])
    assert {
        f: getattr(gpu, f) for f, text in row["printed"].items() if not agrees(getattr(gpu, f), text)
    } == {}


@pytest.mark.parametrize(
    "row", [r for r in PRINTED["gpus"]["rows"] if "differs" in r], ids=lambda row: row["gpu"]
)
def test_where_we_differ_from_the_tables_we_still_do_and_say_why(row):
    for field, doubt in row["differs"].items():
        assert (
            not agrees(getattr(catalog.gpu(row["gpu"]), field), doubt["printed"]) and len(doubt["why"]) > 20
        )


@in_one_test("row", PRINTED["links"]["rows"], ids=lambda row: row["link"])
def test_link_agrees_with_the_published_tables(row):
    link = catalog.link(row["link"])
    assert {
        f: getattr(link, f) for f, text in row["printed"].items() if not agrees(getattr(link, f), text)
    } == {}


@in_one_test("row", PRINTED["prices"]["rows"], ids=lambda row: row["price"])
def test_price_is_the_one_that_was_quoted(row):
    price = catalog.all_prices()[row["price"]]
    assert price.dollars_per_hour == pytest.approx(row["dollars_per_hour"], abs=0.005)
    assert price.date == row["date"]


def test_agreement_is_to_the_last_printed_digit():
    assert agrees(1.935e12, "1.94e12") and not agrees(1.93e12, "1.94e12")
    assert agrees(50 * 2**20, "50 MiB") and not agrees(50e6, "50 MiB")
    assert agrees(108, "108") and not agrees(109, "108")


# -- nodes and prices ----------------------------------------------------------------------------------------
def test_eight_nodes_of_eight_h100_hold_5_tb():
    cluster = catalog.cluster("dgx-h100", 8)
    assert cluster.gpus == 64
    assert cluster.hbm_bytes == 64 * 80e9


def test_nics_are_shared_by_the_node():
    assert catalog.node("dgx-h100").nic_bytes_per_s_per_gpu == 50e9
    assert catalog.node("aws-p4d").nic_bytes_per_s_per_gpu == 6.25e9
    assert catalog.node("dgx-h100").outgoing_bytes_per_s == 400e9


def test_price_is_the_latest_known_and_names_those_it_has():
    of_it = [p for p in catalog.all_prices().values() if p.gpu == "h100-sxm"]
    found = catalog.price("h100-sxm")
    assert found.date == max(p.date for p in of_it if p.terms == "on demand") and found.terms == "on demand"
    assert {p.terms for p in of_it} == {"on demand", "spot", "contract"}
    assert catalog.price("h100-sxm", "Silicon Data SDH100RT").terms == "spot"
    assert catalog.price("H100") is found
    assert catalog.price("h100-sxm", "AWS p5.48xlarge on demand").dollars_per_hour == 12.29
    with pytest.raises(ValueError, match=r"known price .*a100-80.*got 'gaudi2'"):
        catalog.price("gaudi2")
    for price in catalog.all_prices().values():
        assert price.gpu in catalog.all_gpus() and re.fullmatch(r"\d{4}-\d{2}", price.date)
        assert price.terms in ("on demand", "spot", "contract")


@in_one_test(
    "price", [p for p in catalog.all_prices().values() if p.terms != "on demand"], ids=lambda p: p.key
)
def test_what_may_be_taken_back_or_binds_for_a_year_costs_less(price):
    """Than the middle of what was asked in the same year for the same GPU on demand."""
    asked = [p for p in catalog.all_prices().values() if p.gpu == price.gpu and p.terms == "on demand"]
    same_year = [p.dollars_per_hour for p in asked if p.date[:4] == price.date[:4]]
    assert price.dollars_per_hour < median(same_year)


# -- models --------------------------------------------------------------------------------------------------
@in_one_test("model", catalog.all_models().values(), ids=lambda m: m.key)
def test_parameters_match_the_published_count(model):
    """That of the model's own class where there is one: makers round, and leave out towers."""
    if model.counted_params:
        assert models.parameters(model) == pytest.approx(model.counted_params, rel=2e-4)
        assert models.parameters(model) == pytest.approx(model.published_params, rel=0.15)
    else:
        assert models.parameters(model) == pytest.approx(model.published_params, rel=5e-3)


def test_most_counts_are_exact_to_the_last_parameter():
    exact = [m.key for m in catalog.all_models().values() if models.parameters(m) == m.published_params]
    assert len(exact) >= 50
    assert {"gpt2", "bloom-176b", "llama3.1-405b", "mixtral-8x22b", "deepseek-v3", "qwen3-235b-a22b"} <= set(
        exact
    )


WITH_ACTIVE = [m for m in catalog.all_models().values() if m.experts and m.published_active_params]


@in_one_test("model", WITH_ACTIVE, ids=lambda m: m.key)
def test_active_parameters_match_with_or_without_embedding_and_head(model):
    """Makers count one or the other, and round 3.5 billion to 3."""
    active, head = models.active_parameters(model), models.head_parameters(model)
    counts = np.array([active, active - models.embedding_parameters(model)])
    counts = np.append(counts, counts - head) / model.published_active_params
    rounded = 0.5e9 / model.published_active_params if model.counted_params else 0.0
    assert np.min(abs(counts - 1)) < max(0.026, rounded)


@in_one_test("model", catalog.all_models().values(), ids=lambda m: m.key)
def test_shapes_are_sound(model):
    active, total = models.active_parameters(model), models.parameters(model) - model.extra_params
    assert active < total if model.experts else active == total
    assert models.dense_layers(model) + models.moe_layers(model) == model.depth
    assert model.heads % model.kv_heads == 0
    assert all(group.count > 0 and (not group.window or group.window.tokens > 0) for group in model.layers)
    assert (model.ffn > 0) == any(group.mlp.width > 0 for group in model.layers if not group.mlp.routed)


def test_a_tiny_gpt_counted_by_hand():
    """2 layers of width 4, vocabulary 10, 3 positions, biases and LayerNorms, output tied to the input."""
    tiny = models.described(
        key="tiny",
        name="tiny",
        layers=2,
        hidden=4,
        heads=2,
        kv_heads=2,
        head_dim=2,
        ffn=16,
        vocab=10,
        gated=False,
        tied=True,
        max_positions=3,
        biases=True,
        norm_bias=True,
    )
    embedding = 10 * 4 + 3 * 4
    attention = 4 * 12 + 12 + 4 * 4 + 4
    mlp = 4 * 16 + 16 + 16 * 4 + 4
    norms = 2 * (4 + 4)
    assert models.parameters(tiny) == embedding + 2 * (attention + mlp + norms) + (4 + 4)


def test_latent_attention_counted_by_hand():
    """DeepSeek-V3's attention: 187.1 million weights a layer (arXiv:2412.19437 section 4.2's dimensions)."""
    v3 = catalog.model("deepseek-v3")
    query = 7168 * 1536 + 1536 * 128 * 192
    latent = 7168 * (512 + 64) + 512 * 128 * (128 + 128)
    assert models.attention_matrices(v3) == query + latent + 128 * 128 * 7168


@pytest.mark.parametrize("params", [1e9, 7e9, 70e9, 405e9])
def test_typical_shape_has_the_parameters_asked_for(params):
    shape = models.typical(params)
    assert models.layer_parameters(shape) * shape.depth == pytest.approx(params, rel=2e-3)
    assert shape.heads * shape.head_dim == pytest.approx(shape.hidden)


def test_typical_shape_is_near_real_ones():
    assert models.typical(175e9).depth == pytest.approx(96, rel=0.02)
    assert models.typical(175e9).hidden == pytest.approx(12288, rel=0.02)


def test_models_of_a_family_have_its_norms():
    """The first Gemma alone had two norms a layer, and the larger Qwen 2.5 add 1e-5 where others add 1e-6.
    Since 2025 makers change them from one model to the next; these are held by the counts alone."""
    found = {}
    for model in (model for model in catalog.all_models().values() if not model.counted_params):
        found.setdefault((model.family, "bias"), set()).add(model.norm_bias)
        if model.family != "Qwen":
            found.setdefault((model.family, "epsilon"), set()).add(model.small_epsilon)
        if not (model.family == "Gemma" and model.year == 2024 and model.norms == 2):
            found.setdefault((model.family, "norms"), set()).add(model.norms)
    assert [family for family, values in found.items() if len(values) > 1] == []


def test_bad_shapes_are_refused_by_name():
    shape = dict(key="x", name="x", layers=2, hidden=4, heads=2, kv_heads=2, head_dim=2, ffn=16, vocab=10)
    for name, value in {
        "layers": 0,
        "hidden": -4,
        "heads": 1.5,
        "vocab": float("nan"),
        "ffn": "wide",
        "gated": 2,
    }.items():
        with pytest.raises(ValueError, match=f"{name} must be .*got"):
            models.described(**{**shape, name: value})


# -- models of one's own -------------------------------------------------------------------------------------
def test_own_model_from_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("layers = 2\nhidden = 4\nheads = 2\nkv_heads = 1\nhead_dim = 2\nffn = 8\nvocab = 10\n")
    assert catalog.model_from_file(path).key == "mine"
    path.write_text("[own]\n" + path.read_text())
    assert catalog.model_from_file(path) == models.described(
        key="own", name="own", layers=2, hidden=4, heads=2, kv_heads=1, head_dim=2, ffn=8, vocab=10
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("layers = 2", ("mine.toml:1: 'mine' is missing hidden, vocab, heads",)),
        ("layers = [", ("mine.toml:1: this is not TOML: Invalid value, in 'layers = ['",)),
        ("colour = 3", ("mine.toml:1: 'mine' has no key 'colour'", "name, layers, hidden")),
        (
            "layers = 'x'\nhidden=4\nheads=2\nkv_heads=1\nhead_dim=2\nffn=8\nvocab=10",
            ("mine.toml:1: 'mine': layers", "0", "'x'"),
        ),
    ],
)
def test_a_bad_model_file_is_refused_with_the_reason(tmp_path, text, complaint):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with refused(*complaint):
        catalog.model_from_file(path)


def test_own_model_from_the_config_json_of_a_checkpoint(tmp_path):
    path = tmp_path / "tiny-llama" / "config.json"
    path.parent.mkdir()
    path.write_text(
        '{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,'
        ' "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 1024,'
        ' "max_position_embeddings": 64}'
    )
    found = catalog.model_from_file(path)
    assert (found.key, found.depth, found.hidden, found.max_context) == ("tiny-llama", 2, 256, 64)
    # of each layer attention's four matrices, three of the MLP, two norms; embedding, output layer, last norm
    layer = 2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512 + 2 * 256
    assert models.parameters(found) == 2 * layer + 2 * 1024 * 256 + 256
    path.write_text("{")
    with pytest.raises(ValueError, match="JSON"):
        catalog.model_from_file(path)


def test_a_missing_model_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.toml"):
        catalog.model_from_file(tmp_path / "nowhere.toml")


# -- recipes -------------------------------------------------------------------------------------------------
@in_one_test(
    "key, total",
    [
        ("bf16-adam", 16),
        ("bf16-adam-fp32-grads", 18),
        ("bf16-adam-two-grads", 20),
        ("fp32-adam", 16),
        ("adam-8bit", 10),
        ("adafactor", 8),
        ("sgd-momentum", 12),
        ("fp8-te", 16),
        ("fp8-deepseek-v3", 15),
        ("fp8-lm", 9),
        ("fp8-nanotron", 10),
        ("lion", 12),
        ("adamw-8bit", 8 + 2 * (1 + 4 / 256)),
        ("mxfp8", 2 * (1 + 1 / 32) + 14),
        ("nvfp4", 2 * (1 / 2 + 1 / 16) + 14),
    ],
)
def test_bytes_per_parameter_of_the_recipes(key, total):
    assert catalog.recipe(key).bytes_per_param == pytest.approx(total, abs=0.005)


@in_one_test(
    "key, gradient, added_up",
    [
        ("bf16-adam", 2, 0),
        ("bf16-adam-two-grads", 2, 4),
        ("fp8-te", 4, 0),
        ("fp8-deepseek-v3", 2, 4),
        ("fp8-lm", 1, 2),
        ("fp8-nanotron", 1, 4),
    ],
)
def test_gradients_and_the_sums_they_are_added_to_are_told_apart(key, gradient, added_up):
    """The columns "Gradients" and "Accumulated gradients" of the Ultra-Scale Playbook's fp8 table."""
    found = catalog.recipe(key)
    assert (found.gradient_bytes - found.gradient_sum_bytes, found.gradient_sum_bytes) == (gradient, added_up)


def test_adam_state_is_12_bytes_and_16_with_weight_and_gradient():
    adam = catalog.recipe("bf16-adam")
    assert (adam.optimizer_bytes, adam.bytes_per_param) == (12, 16)


def test_a_choice_among_recipes_offers_those_of_any_model():
    """Not Muon, Shampoo and SOAP, whose bytes depend on a model's matrices, nor NVFP4, which is not timed."""
    left_out = set(catalog.all_recipes()) - set(catalog.uniform_recipes())
    assert left_out == {"muon", "muon-fp32-grads", "shampoo", "soap", "nvfp4"}
    assert {catalog.recipe(key).matrices.steps for key in ("muon", "muon-fp32-grads")} == {5}


@in_one_test("recipe", catalog.all_recipes().values(), ids=lambda recipe: recipe.key)
def test_a_weight_stands_somewhere_in_32_bits(recipe):
    """As it is, or as a master copy. FP8-LM and the Ultra-Scale Playbook keep a master of 16 bits."""
    if recipe.weight_bytes == 4:
        assert recipe.master_bytes == 0
    else:
        assert recipe.master_bytes == (2 if recipe.key in ("fp8-lm", "fp8-nanotron") else 4)
    if recipe.matrices:  # and AdamW for the rest, in fp32
        assert (recipe.momentum_bytes, recipe.variance_bytes) == (4, 4)


def test_what_is_sent_of_a_weight():
    """At most 16 bits of it, unless the recipe says that less is sent than kept."""
    sent = {
        key: catalog.recipe(key).sent_weight_bytes for key in ("fp32-adam", "bf16-adam", "fp8-lm", "mxfp8")
    }
    assert sent == {"fp32-adam": 2.0, "bf16-adam": 2.0, "fp8-lm": 1.0, "mxfp8": 1.03125}


def test_a_recipe_adds_up():
    recipe = Recipe("k", "n", "bf16", 1, 2, 3, 4, 5)
    assert recipe.optimizer_bytes == 12 and recipe.bytes_per_param == 15


@in_one_test(
    "name, value, complaint",
    [
        ("kv_heads", 3, ("kv_heads", "1, 2, 4", "3")),
        ("gated", "yes", ("gated", "'yes'")),
        ("windowed_layers", 3, ("windowed_layers", "layers (2)", "3")),
        ("first_dense_layers", 3, ("first_dense_layers", "layers (2)", "3")),
        ("top_k", 2, ("top_k", "experts (0)", "2")),
        ("kv_lora", 512, ("nope_dim", "1", "kv_lora", "0")),
    ],
)
def test_inconsistent_shapes_are_refused(name, value, complaint):
    shape = dict(key="x", name="x", layers=2, hidden=8, heads=4, kv_heads=2, head_dim=2, ffn=16, vocab=10)
    with refused(*complaint):
        models.described(**{**shape, name: value})


def test_the_four_numbers_every_reader_memorises():
    h100 = catalog.gpu("h100-sxm")
    assert h100.link_marketing_bytes_per_s == 900e9 and h100.link_bytes_per_s == 450e9
    assert h100.nic_bytes_per_s == 50e9
    assert h100.hbm_bytes_per_s == pytest.approx(3e12, rel=0.15)
    assert h100.bf16_flops_per_s == pytest.approx(1e15, rel=0.02)
    assert h100.link_bytes_per_s / h100.nic_bytes_per_s == 9  # not 18: like for like


def test_the_oldest_check_is_no_later_than_any():
    days = [entry.checked for entry in catalog.all_gpus().values() if entry.checked]
    assert catalog.oldest_check() <= min(days)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", catalog.oldest_check())
