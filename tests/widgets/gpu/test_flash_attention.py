"""The sweep's picture: numbers of the executed run, tiles by the real SRAM, bytes by the model."""

import numpy as np
import pytest

from engine.executed import flash_attention, ring_attention
from engine.mechanism import online_softmax
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.gpu.flash_attention import ORDERS, TOKENS, FlashAttention

shown = Reader(FlashAttention).shown


def test_the_default_by_hand():
    """8,192 tokens, 32 heads of 128, 228 KiB: tiles of 224, 37 of them; (2 + 74) · Nd and 4·Nd + 4·N² values.
    17.4 GB at 2.48 TB/s are 7.04 ms; 1.1 TFLOP at 572 TFLOP/s are 1.93, and blocks that
    start 0.06 beside a launch."""
    found = shown()
    nd, n2 = 32 * 8192 * 128 * 2, 32 * 8192**2 * 2
    texts = {key: each["text"] for key, each in found["readouts"].items()}
    assert (
        texts["tile_side"] == "224 × 128"
        and texts["tiles_move"].startswith("5.1 GB")
        and 76 * nd == pytest.approx(5.1e9, rel=1e-3)
    )
    assert texts["standard_moves"] == "17.4 GB, 7.04 ms" and 4 * (nd + n2) == pytest.approx(17.4e9, rel=3e-3)
    assert texts["hbm_sends"].startswith("268 MB") and 4 * nd == pytest.approx(268e6, rel=2e-3)  # one wave
    assert texts["saved"] == "65×" and texts["arithmetic"] == "2 ms"
    assert found["ends"]["play"] == 24  # of 64 a token: three of twelve queries, two keys
    assert not any(regime["met"] for regime in found["regimes"].values())


@pytest.mark.parametrize("order", ORDERS)
def test_the_numbers_in_the_table_are_those_of_the_executed_run(order):
    q, k, v = (matrix[0] for matrix in ring_attention.example(1, TOKENS))
    query_rows, key_rows = (3, 2) if order == "queries" else (2, 3)
    run = flash_attention.tiled(q, k, v, query_rows, key_rows, ORDERS[order][1])
    for state in (0, 1, 6, 24):
        table, part = shown(order=order, play=state)["parts"]["running"], run.states[state]
        for row in range(TOKENS):
            if part.total[row] == 0:
                assert str(table["l"][row]) == "–"
                continue
            assert float(str(table["l"][row])) == pytest.approx(part.total[row], abs=0.005)
            assert float(str(table["out"][row])) == pytest.approx(
                online_softmax.output(part)[row, 0], abs=0.005
            )
            assert float(str(table["m"][row]).replace("−", "-")) == part.maximum[row]


def test_standard_attention_s_time_is_of_its_bytes_alone():
    """d 800: 4Nd + 4N² values of 32 heads, 18.9 GB at 2.48 TB/s."""
    assert shown(head_dim=800)["readouts"]["standard_moves"]["text"] == "18.9 GB, 7.61 ms"


def test_only_queries_that_have_begun_are_off():
    assert [shown(play=state)["readouts"]["off"]["text"] for state in (0, 6)] == ["–", "under 10⁻¹⁴"]
    assert shown(play=7)["readouts"]["off"]["text"] != "under 10⁻¹⁴"


def test_a_block_takes_no_more_sram_than_its_gpu_has():
    """An A100 has 164 KiB: 160 rows of 128 values, where an H100 has room for 224."""
    assert shown(gpu="a100-80")["readouts"]["tile_side"]["text"] == "160 × 128"
    assert shown(gpu="b200")["readouts"]["tile_side"]["text"] == "224 × 128"
    assert shown(sram=65536)["readouts"]["tile_side"]["text"] == "64 × 64"
    tiles = [shown(gpu=gpu)["parts"]["traffic"]["bytes"][2] for gpu in ("a100-80", "h100-sxm")]
    assert tiles[0] > 1.3 * tiles[1]


@in_one_test("head_dim, steps", [(16, 12), (64, 24), (96, 36), (128, 24), (192, 36), (320, 144), (1024, 144)])
def test_wider_heads_leave_smaller_tiles_and_every_sweep_ends_at_full_attention(head_dim, steps):
    found = shown(head_dim=head_dim, play=144)
    assert found["ends"]["play"] == steps
    assert found["readouts"]["off"]["text"] == "under 10⁻¹⁴"
    table = found["parts"]["running"]
    assert [str(text) for text in table["out"]] == [str(text) for text in table["full"]]
    assert np.count_nonzero(np.asarray(found["parts"]["scores"]["tint"]) > 0.5) == 1


def test_each_regime_where_it_belongs():
    assert (
        shown(head_dim=256)["regimes"]["too_wide"]["met"] and shown(sram=49152)["regimes"]["too_wide"]["met"]
    )
    narrow = shown(head_dim=64)["regimes"]
    assert narrow["compute_bound"]["met"] and not narrow["too_wide"]["met"]


def test_one_ratio_is_said_and_it_is_that_of_what_hbm_moves():
    page = shown()
    bars = page["parts"]["traffic"]
    assert bars["bytes"][0] / bars["bytes"][1] == pytest.approx(65, rel=0.01)
    assert bars["text"][1].endswith(": 65× less") and "3.42" not in str(page)
    assert not lacks(bars["text"][2], "5.1 GB", "L2", "4.83 GB")
    assert shown(order="keys")["parts"]["traffic"]["text"][2].endswith("all of it from HBM")


def test_the_bars_are_as_long_as_their_bytes():
    """Standard attention moves 1 + N/d times each matrix once, whatever the length."""
    for state in ({}, {"seq": 1024, "head_dim": 64}, {"head_dim": 512}):
        bars = shown(**state)["parts"]["traffic"]
        assert bars["right"] / bars["right"].max() == pytest.approx(bars["bytes"] / bars["bytes"].max())
    assert shown(seq=1024)["parts"]["traffic"]["bytes"][:2] == pytest.approx(32 * 2**20 * np.array([9, 1]))
