"""Tiled attention: bytes by hand and by the executed run, the published figures, and the sweep that the page
shows."""

from dataclasses import replace

import numpy as np
import pytest

from engine import catalog, validation
from engine.executed import flash_attention, ring_attention
from engine.executed.flash_attention import KEYS_OUTSIDE, ORDERS, QUERIES_OUTSIDE
from engine.mechanism import context_parallel, matmul, online_softmax
from tests.cases import in_one_test

H100 = catalog.gpu("h100-sxm")


def random_head(tokens, dim, seed=0):
    return np.random.default_rng(seed).standard_normal((3, tokens, dim))


@pytest.mark.parametrize(
    ("sram_bytes", "head_dim", "rows"),
    [
        (233472, 128, 224),  # 116,736 values / 512 = 228, whole sixteens
        (233472, 64, 448),  # / 256 = 456
        (167936, 64, 320),  # 83,968 / 256 = 328
        (16384, 1024, 2),  # 8,192 / 4,096: under a tensor core's sixteen
        (2048, 1024, 1),
    ],
)
def test_a_tile_is_a_quarter_of_the_sram(sram_bytes, head_dim, rows):
    assert flash_attention.tile_rows(sram_bytes, head_dim) == rows


def test_a_tile_of_16_rows_or_more_is_a_multiple_of_16():
    assert [flash_attention.tile_rows(rows * 4 * 64 * 2, 64) for rows in (15, 16, 50)] == [15, 16, 48]


@pytest.mark.parametrize(
    ("rows", "head_dim", "inner", "scores"),
    [
        (
            224,
            128,
            128,
            224 * 128 * 4,
        ),  # 112 KiB of fp32: as many values as a tile of Q, half the bytes of 228 KiB
        (448, 64, 64, 448 * 64 * 4),  # the same 112 KiB; 448 × 448 would be 784
        (112, 256, 112, 112 * 112 * 4),
    ],
)
def test_the_inner_tile_has_at_most_d_rows(rows, head_dim, inner, scores):
    assert flash_attention.inner_rows(rows, head_dim) == inner
    assert flash_attention.score_bytes(rows, head_dim) == scores <= flash_attention.REGISTER_FILE_BYTES


def test_scores_of_a_tile_fit_the_registers_whatever_the_head():
    """B · min(B, d) fp32 values are at most M/4 of them: with M values of two bytes, half the SRAM's
    bytes."""
    for gpu in ("a100-80", "h100-sxm", "b200"):
        sram = catalog.gpu(gpu).smem_bytes_per_sm
        for dim in (16, 64, 96, 128, 256, 1024):
            held = flash_attention.score_bytes(flash_attention.tile_rows(sram, dim), dim)
            assert held <= sram / 2 < flash_attention.REGISTER_FILE_BYTES


def test_a_whole_row_at_a_time_reads_keys_and_values_for_every_query():
    """Rows of scores do fit: but with one query in SRAM, K and V pass N times, (2 + 2N) · Nd values; worse
    than standard."""
    assert (
        flash_attention.tiled_bytes(1024, 64, 1)
        == 2 * 65536 * (2 + 2 * 1024)
        > 10 * flash_attention.standard_bytes(1024, 64)
    )


def test_bytes_by_hand():
    """N 1,024, d 64: Nd is 65,536 and N² 1,048,576 values of two bytes."""
    assert flash_attention.standard_bytes(1024, 64) == 2 * (4 * 65536 + 4 * 1048576)
    assert flash_attention.tiled_bytes(1024, 64, 256) == 2 * 65536 * (2 + 2 * 4)
    assert flash_attention.tiled_bytes(1024, 64, 256, KEYS_OUTSIDE) == 2 * 65536 * (2 + 3 * 4)
    assert flash_attention.tiled_bytes(1024, 64, 1024) == flash_attention.once_bytes(1024, 64) == 8 * 65536
    assert flash_attention.flops(1024, 64) == 4 * 1048576 * 64


@in_one_test("order", ORDERS)
@in_one_test("tokens, dim, rows", [(12, 4, 3), (12, 4, 5), (16, 8, 16), (24, 3, 1), (31, 5, 8)])
def test_the_run_moves_what_the_formula_says_and_ends_at_full_attention(tokens, dim, rows, order):
    run = flash_attention.tiled(*random_head(tokens, dim), rows, rows, order)
    assert 2 * run.values_moved == flash_attention.tiled_bytes(tokens, dim, rows, order)
    assert (
        np.abs(run.result - run.dense).max() < 1e-14 > run.differences[-1]
    )  # some sums of ten doubles near one
    assert len(run.states) == len(run.tiles) + 1 == (-(-tokens // rows)) ** 2 + 1
    assert run.differences[0] == 0  # no query has begun


def test_only_queries_that_have_begun_count_as_off():
    """Four tiles of queries, four of keys. Queries outside: the first tile of them is done after four steps,
    alone."""
    off = flash_attention.tiled(*random_head(12, 4), 3, 3).differences
    assert off[1] > 0.01 and off[4] < 1e-14 < off[5]
    off = flash_attention.tiled(*random_head(12, 4), 3, 3, KEYS_OUTSIDE).differences
    assert min(off[1:13]) > 0.01 and off[16] < 1e-14


def test_queries_and_keys_may_have_tiles_of_their_own():
    """Queries outside: how often K and V pass depends on the tile of queries alone."""
    head = random_head(24, 4)
    moved = [flash_attention.tiled(*head, 6, keys).values_moved for keys in (2, 3, 24)]
    assert {2 * values for values in moved} == {flash_attention.tiled_bytes(24, 4, 6)}


def test_what_it_is_held_against_is_attention():
    """The dense result beside a softmax written out."""
    q, k, v = random_head(9, 4)
    weights = np.exp(q @ k.T / 2)
    expected = weights / weights.sum(axis=1, keepdims=True) @ v
    np.testing.assert_allclose(flash_attention.tiled(q, k, v, 4, 4).dense, expected, rtol=1e-12)


def test_hbm_sends_keys_and_values_once_for_each_wave():
    """1,024 tokens in tiles of 64 are 16 blocks. On 16 multiprocessors one wave: each matrix once. On 6 three
    waves: 2 + 6 of Nd values. With the keys outside nothing is shared."""
    nd = 2 * 1024 * 64
    assert flash_attention.from_hbm_bytes(1024, 64, 64, 16) == flash_attention.once_bytes(1024, 64) == 4 * nd
    assert flash_attention.from_hbm_bytes(1024, 64, 64, 6) == 8 * nd
    assert flash_attention.from_hbm_bytes(1024, 64, 64, 1) == flash_attention.tiled_bytes(1024, 64, 64)
    alone = flash_attention.from_hbm_bytes(1024, 64, 64, 16, KEYS_OUTSIDE)
    assert alone == flash_attention.tiled_bytes(1024, 64, 64, KEYS_OUTSIDE)


def test_theorem_2():
    """Tiled traffic grows with N² and d² and falls with M: in the limit 8·N²d²/M values; tiles win while 2d²
    < M."""
    seq, sram = 2.0**20, 2.0**17  # 65,536 values
    for dim, rows in ((32, 512), (64, 256), (128, 128)):
        assert flash_attention.tile_rows(sram, dim) == rows
        assert flash_attention.tiled_bytes(seq, dim, rows) == pytest.approx(
            2 * 8 * seq**2 * dim**2 / 2**16, rel=1e-2
        )
    wins = {
        dim: flash_attention.tiled_bytes(seq, dim, flash_attention.tile_rows(sram, dim))
        < flash_attention.standard_bytes(seq, dim)
        for dim in (64, 160, 192, 256)
    }
    assert wins == {64: True, 160: True, 192: False, 256: False}  # d² < 32,768: d up to 181


def test_figure_2_of_the_paper():
    """GPT-2 medium: 1,024 tokens, 16 heads of 64, batch 64, forward and backward: 40.3 GB and 4.4 GB (Figure
    2, left).

    By hand: one N² of all heads is 2.147 GB, one Nd 0.134 GB. Standard with an added mask and dropout: 18 and
    12 of them. Tiles of 256 keys as Algorithms 1 and 4 are printed: 38 Nd, 5.10 GB; the kernel skips first
    reads, so it moves less.
    """
    heads = 64 * 16
    standard = heads * flash_attention.standard_training_bytes(1024, 64, masks=1, dropouts=1)
    tiled = heads * flash_attention.tiled_training_bytes(1024, 64, 256)
    assert standard == heads * 2 * (18 * 1024**2 + 12 * 1024 * 64) and tiled == heads * 2 * 38 * 1024 * 64
    assert standard == pytest.approx(40.3e9, rel=0.01)
    assert tiled == pytest.approx(4.4e9, rel=0.17) and tiled > 4.4e9
    assert standard / tiled == pytest.approx(40.3 / 4.4, rel=0.15)


def test_times():
    """H100, 8,192 tokens, 32 heads of 128: 1.1 TFLOP at the measured rate, and a little for its blocks."""
    at = matmul.chip(H100)
    rate = context_parallel.flash_flops_per_s(H100, 128.0)
    took_s = flash_attention.tiled_arithmetic_s(8192.0, 128.0, 32.0, at)
    assert 1.0 < took_s / (32 * 4 * 8192**2 * 128 / rate) < 1.1
    moved = flash_attention.standard_bytes(8192, 128) * 32
    assert flash_attention.standard_s(8192, 128, 32, at) >= moved / H100.hbm_bytes_per_s
    assert matmul.stream_s(2e9, at) == pytest.approx(2e9 / (0.74 * 3.35e12))


def test_the_measured_rates_stand_in_the_published_cases():
    """FlashAttention-3 on H100 at 16,384 tokens, forward, no mask: what the lesson quotes, and how near the
    model is to it in a burst."""
    measured = {64: 497e12, 128: 648e12, 256: 756e12}
    at = replace(matmul.chip(H100), attention=matmul.burst_attention(H100))
    for dim, rate in measured.items():
        ours = (
            flash_attention.flops(16384, dim)
            / flash_attention.tiled_arithmetic_s(16384.0, float(dim), 32.0, at)
            * 32
        )
        assert ours == pytest.approx(rate, rel=0.12)  # none of them fitted it
        assert ours == pytest.approx(validation.row(f"fa3_h100_d{dim}_noncausal_16384").predicted, rel=0.01)
        assert validation.row(f"fa3_h100_d{dim}_noncausal_16384").measured == rate


# -- the sweeps that the page shows --------------------------------------------------------------------------
SIDES = (1, 2, 3, 4, 6, 12)


def swept():
    return flash_attention.sweeps(*(matrix[0] for matrix in ring_attention.example(1, 12)), SIDES)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (3, 2), (4, 4), (12, 1), (12, 12)])
def test_the_columns_are_those_of_the_run(order, outer, inner):
    query_rows, key_rows = (outer, inner) if order == QUERIES_OUTSIDE else (inner, outer)
    found, run = (
        swept(),
        flash_attention.tiled(*(m[0] for m in ring_attention.example(1, 12)), query_rows, key_rows, order),
    )
    number = found.run(order, found.side_of(outer), found.side_of(inner))
    for state, part in enumerate(run.states):
        rows = found.rows(found.starts[int(number)], state).astype(int)
        np.testing.assert_array_equal(found.total[rows], part.total)
        np.testing.assert_array_equal(found.output[rows], online_softmax.output(part)[:, 0])
        assert found.differences[int(found.difference_starts[int(number)]) + state] == run.differences[state]


@pytest.mark.parametrize(("tokens", "side"), [(0.3, 1), (1, 1), (3.5, 3), (5.9, 4), (7, 6), (40, 12)])
def test_the_side_that_fits(tokens, side):
    assert SIDES[int(swept().side_of(tokens))] == side


@pytest.mark.parametrize("order", ORDERS)
def test_steps_and_places_are_one_another_s_inverse_and_the_run_s(order):
    """Outer tiles of three, inner ones of two: four and six."""
    query_rows, key_rows = (3, 2) if order == QUERIES_OUTSIDE else (2, 3)
    run = flash_attention.tiled(*random_head(12, 4), query_rows, key_rows, order)
    assert len(run.tiles) == 24
    for step, (query, key) in enumerate(run.tiles):
        assert flash_attention.swept(6, order, float(step)) == (query, key)
        assert flash_attention.step_of(query, key, 6, order) == step


@in_one_test(
    "call, named",
    [
        (lambda: flash_attention.tile_rows(0, 64), "sram_bytes"),
        (lambda: flash_attention.standard_bytes(-1, 64), "seq"),
        (lambda: flash_attention.tiled_bytes(1024, 64, 0), "rows"),
        (lambda: flash_attention.flops(10, float("nan")), "head_dim"),
        (lambda: flash_attention.tiled(*random_head(4, 2), 0, 1), "query_rows"),
        (lambda: flash_attention.tiled(*random_head(4, 2), 1, 1, 7), "order"),
        (lambda: flash_attention.standard_training_bytes(8, 8, masks=-1), "masks"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_it_broadcasts():
    seq = np.array([1024.0, 2048.0])
    for found in (
        flash_attention.standard_bytes(seq, 64),
        flash_attention.tiled_bytes(seq, 64, 256, QUERIES_OUTSIDE),
        flash_attention.tiled_training_bytes(seq, 64, 256),
    ):
        assert found.shape == (2,) and found[1] > found[0]


def test_written_out_it_is_the_same_attention_and_moves_what_the_closed_form_says():
    q, k, v = random_head(24, 4)
    result, moved = flash_attention.written_out(q, k, v)
    np.testing.assert_allclose(result, flash_attention.tiled(q, k, v, 6, 6).dense, rtol=1e-12)
    assert moved == 4 * 24 * 4 + 4 * 24 * 24 == flash_attention.standard_bytes(24, 4, value_bytes=1)
