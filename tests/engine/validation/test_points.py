"""The published points that figures draw: each with its source, its error the engine's own, and strictly
read."""

import math
import re

import pytest

from engine import catalog, validation
from engine.base import units
from engine.validation import points
from tests.cases import in_one_test

EVERY = [point for figure in points.figures() for point in points.points(figure)]
PUBLISHED = {case["id"]: case for case in validation.load()}


@in_one_test("figure", points.figures())
def test_a_figure_has_a_few_points_each_once(figure):
    found = points.points(figure)
    assert 1 <= len(found) <= 20
    assert len({(point.what, point.where) for point in found}) == len(found)


@in_one_test("point", EVERY, ids=lambda point: point.id)
def test_every_point_can_be_looked_up(point):
    source = point.source
    assert source.name and source.title and source.version
    assert source.address.startswith("https://") and point.where
    assert point.measured > 0 and point.ours > 0 and point.at


@in_one_test("point", EVERY, ids=lambda point: point.id)
def test_the_error_in_words_is_the_engine_s(point):
    """Asked anew, past everything that is kept."""
    asked = points._predict(point.case)
    if point.quantity == "token_s":
        ours = point.case["serving"]["batch"] / asked["tokens_per_s_per_gpu"] / point.case["serving"]["tp"]
    else:
        ours = asked[point.quantity]
    assert point.ours == pytest.approx(ours, rel=1e-12)
    error = ours / point.measured - 1
    share = units.human(abs(error), "percent", 2)
    is_time = point.quantity not in ("flops_per_s", "tokens_per_s_per_gpu", "share")
    low, high = ("fast", "slow") if is_time else ("low", "high")
    assert point.off == ("exact" if abs(error) < 5e-4 else f"{share} {low if error < 0 else high}")
    assert (
        point.said(point.measured) in point.told
        and point.said(ours) in point.told
        and point.off in point.told
    )


def test_a_point_of_a_published_case_has_its_number_and_its_error():
    """The same row of the page *Validation*."""
    named = [point for point in EVERY if point.case.get("id") in PUBLISHED]
    assert len(named) > 40
    for point in named:
        case = PUBLISHED[point.case["id"]]
        quantity, measured = next(iter(case["measured"].items()))
        row = validation.row(case["id"])
        if point.quantity == quantity:
            assert (point.measured, point.ours) == (measured, pytest.approx(row.predicted))
        else:  # a rate that is drawn as the time that follows: the errors turn round
            assert point.error == pytest.approx(1 / (1 + row.error) - 1), point.id


def test_deepep_s_times_follow_from_its_bandwidths():
    """On 8 ranks each of 4,096 tokens is a row of 7,168 values for each rank that holds one of its 8 experts
    of 256: there in 8 bits with 56 scales, back in 16."""
    found = {point.id: point for point in points.points("alltoall_cost")}["deepep_v1_8"]
    there, back = 4096 * (7168 + 7168 / 128 * 4) / 153e9, 4096 * 7168 * 2 / 158e9
    ranks = 8 * (1 - math.comb(256 - 32, 8) / math.comb(256, 8))
    assert found.measured == pytest.approx(ranks * (there + back), rel=1e-3)


def test_llama_3_s_time_does_the_flops_that_were_printed():
    """400 TFLOP/s on 16,384 GPUs, for 2,048 sequences of 8,192 tokens with causal attention."""
    found = next(p for p in points.points("layout_planner") if p.id == "llama3_405b_t4_16384_cp1")
    tokens, params = 2048 * 8192, 405.8e9
    attention = 6 * 126 * 8192 * 16384  # of a token: half of the sequence is seen
    assert found.measured == pytest.approx(tokens * (6 * params + attention) / (16384 * 400e12), rel=0.02)


def test_deepseek_s_own_day_of_service():
    """A node of eight H800s wrote 14,800 tokens a second and read 73,700: we say less of the one and more of
    the other, neither by a factor of two."""
    assert 0.6 < points.deepseek_writes() < 1.0 < points.deepseek_reads() < 1.9


def test_a_fleet_on_which_a_model_does_not_fit_writes_nothing():
    """405 billion weights in 16 bits are more than the memory of eight H100s, however they are split."""
    case = dict(
        catalog_model="llama3.1-405b", gpu="h100-sxm", precision="bf16", fleet=8, prompt=1000, output=100,
        kv_bytes=2.0, weight_bytes=2.0, token_s=1.0,
    )  # fmt: skip
    assert points.frontier(case)["tokens_per_s_per_gpu"] == 0
    assert points.frontier(case | {"catalog_model": "llama3-70b"})["tokens_per_s_per_gpu"] > 100


def test_weak_scaling_is_the_steps_inverse():
    found = next(p for p in points.points("ddp_scaling") if p.id == "dgxc_llama31_8b_2504_bf16_128_of_8")
    assert found.measured == pytest.approx(12.27 / 12.33)


def test_a_matrix_product_s_rate_is_its_flops_over_its_time():
    for point in points.points("roofline"):
        time_s = float(re.search(r"([\d.]+(?:e\+\d+)?) µs$", point.where)[1]) * 1e-6
        size = [point.case[name] for name in "mnk"]
        assert point.measured == pytest.approx(2 * math.prod(size) / time_s, rel=1e-4), point.id


def test_conditions_are_those_of_the_case():
    """What a point is shown for is what its case was run with."""
    names = {"gpu": "gpu", "ranks": "ranks", "bytes": "bytes", "tp": "tp", "batch": "batch"}
    for point in EVERY:
        for condition, name in names.items():
            if condition in point.at and name in point.case and point.id != "megatron_v2_dp_128_of_1":
                assert point.at[condition] == point.case[name], (point.id, condition)
        if point.case["kind"] == "step" and "gpus" in point.at:
            layout, job = point.case["layout"], point.case["job"]
            assert point.at["gpus"] == layout["gpus"] and point.at["seq"] == job["seq"]
            assert point.at["batch_tokens"] == job["global_batch"] * job["seq"]
            assert point.at["narrow"] == float(point.case.get("precision") == "fp8")
            assert point.at["recipe"] == point.case.get("recipe", "bf16-adam")
            shape = point.case["model"]
            for key in point.at["model"]:
                model = catalog.model(key)
                assert (model.depth, model.hidden) == (shape["layers"], shape["hidden"]), (point.id, key)


# -- bad input -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("before", "after", "line", "complaint"),
    [
        ('source = "dgxc"', 'source = "hearsay"', 23, "source must be"),
        (
            'operation = "all_reduce", ranks = 8',
            'operation = "all_reduce", rank = 8',
            23,
            "at must be a table with no keys but",
        ),
        ('case = "allreduce_8xh100_nccltests_16384"', 'case = "mine"', 23, "case must be"),
        ('where = "nccl', 'were = "nccl', 23, "has no key 'were'"),
        ('what = "AllReduce', 'what = 3 # "', 23, "what must be a text in quotes"),
        ('version = "841f', 'edition = "841f', 4, "has no key 'edition'"),
    ],
)
def test_a_slip_in_a_file_is_one_line_with_its_place(tmp_path, before, after, line, complaint):
    text = (points.FIGURES / "collective_cost.toml").read_text(encoding="utf-8")
    assert before in text
    (tmp_path / "spoilt.toml").write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(complaint)) as error:
        points.read(tmp_path / "spoilt.toml")
    said = str(error.value)
    place = re.match(r".*spoilt\.toml:(\d+): ", said)
    assert place and abs(int(place[1]) - line) < 8 and "\n" not in said


def test_an_unknown_kind_and_an_unknown_file_say_what_there_is(tmp_path):
    text = (points.FIGURES / "roofline.toml").read_text(encoding="utf-8")
    (tmp_path / "spoilt.toml").write_text(
        text.replace('kind = "product"', 'kind = "guess"', 1), encoding="utf-8"
    )
    with pytest.raises(ValueError, match=r"spoilt\.toml:\d+: .* must name a case, or be of a kind: product"):
        points.read(tmp_path / "spoilt.toml")
    with pytest.raises(ValueError, match="figure must be"):
        points.points("no_such_figure")


def test_nothing_of_them_stands_among_the_rows_of_validation():
    """They are drawn, not counted: the means of the page *Validation* are of its own cases."""
    assert not {row.case for row in validation.validate().compared} - set(PUBLISHED)
