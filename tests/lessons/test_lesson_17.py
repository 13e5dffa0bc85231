"""Lesson 17: numbers worked by hand, snippets that are the kernels that run, words that agree with the
engine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.one_gpu import recordings, tile_order, tiling
from engine.one_gpu.tiling import Tile
from tests import machine
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

ROOT = Path(__file__).resolve().parents[2]
LESSON = Lesson("17-triton.md")
H100 = tiling.chip("h100-sxm")
TILE = Tile(128.0, 256.0, 64.0, 3.0, 8.0)

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "timed_s(2048) | µs": "107 µs",  # 2·2048·4096²/643e12
    "timed_s(2176) | µs": "151 µs",  # 2·2176·4096²/484e12
    "tile_more_measured | %": "41.2 %",
    "single_numbers | TFLOP/s": "4.9 TFLOP/s",  # half a FLOP for each of 9.8e12 bytes
    "32768 / (8 * 32)": "128",
    "first_wave(group=1)": "90",  # Triton's tutorial 03
    "first_wave(group=3)": "54",
    "(h100.smem_bytes - 1024) | KiB": "227 KiB",  # CUDA programming guide
    "(a100.smem_bytes - 1024) | KiB": "163 KiB",
    "tiling.smem_bytes(large._replace(stages=6), h100)": "288 KiB",  # 6 · 48
    "tiling.programs(m=2176, n=4096": "272",  # 17 · 16
    "tiling.last_wave_tiles(count=272, multiprocessors=132)": "8",
    "tiling.resident(tile(block_m=64, block_n=64, block_k=32, warps=4)": "8",  # 65536/(64 · 128)
    "tiling.masked_share(m=1025, n=1024, block_m=128, block_n=128)": "11 %",  # 127/1152
    "tiling.masked_share(m=1025, n=1025, block_m=128, block_n=128)": "21 %",  # 1 − (1025/1152)²
    "(132 * 256 / 128)**0.5": "16.2",
    "tiling.step_s(large, h100) | ns": "697 ns",  # 2·128·256·64 / (794e12/132)
    "hbm_bytes_per_s * h100.load_s": "6.93 kB",  # 2.48e12 · 358e-9 / 128
    "128 * (64 + 32) * 2": "24.6 kB",
    "tile=tile(block_m=64, block_n=32))": "128",  # 4,096 / 32
    "programs(m=64, n=4096, tile=large)": "16",  # 4,096 / 256
    "64 * 384 * 2 | KiB": "48 KiB",
    "128 * np.floor(396 / 16)": "3,072",
    "4096**2 * 2 | MB": "33.6 MB",
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_a_prediction_is_right_where_the_engine_says_so():
    assert LESSON.right("program_blocks") == 2
    bytes_s = 4096**2 * 2 / 2.9e12  # of the weights out of HBM, which no tile spares
    assert LESSON.truth("tile_tuner") == pytest.approx(0.85 * 2 * 64 * 4096**2 / bytes_s, rel=0.03)


# -- the snippets --------------------------------------------------------------------------------------------
def test_each_kernel_is_shown_out_of_the_file_that_runs():
    shown = re.findall(r'^--8<-- "(.+)"$', "\n".join(LESSON.code("python")), re.MULTILINE)
    files = [name.split(":")[0] for name in shown]
    once = list(dict.fromkeys(files))
    assert once == [f"kernels/{name}.py" for name in ("vector_add", "softmax", "matmul", "persistent")]
    assert files.count("kernels/matmul.py") == 3
    for name in shown:
        path, section = name.split(":")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"[start:{section}]" in text and f"[end:{section}]" in text


def test_the_autotuner_is_made_as_printed():
    """Under the interpreter, in a process of its own: it is made, not run."""
    machine.torch("triton")
    [code] = [code for code in LESSON.code("python") if "--8<--" not in code]
    done = subprocess.run(
        [sys.executable, "-c", code + "\nassert len(tuned.configs) == 3"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stderr


# -- what the words claim ------------------------------------------------------------------------------------
def test_one_token_more_is_half_as_long_again():
    before, after = (tiling.times(m, 4096.0, 4096.0, TILE, H100).total_s for m in (2048.0, 2049.0))
    assert after / before == pytest.approx(1.5)


def test_a_long_thin_tile_is_worth_less_than_its_short_side():
    assert all(tiling.intensity(Tile(64.0, long, 64.0, 3.0, 8.0)) < 64 for long in (64.0, 256.0, 65536.0))


def test_the_best_group_is_where_a_wave_is_square_in_elements():
    moved = {
        group: tiling.hbm_bytes(16384.0, 16384.0, 16384.0, TILE, H100, group)
        for group in (1.0, 4.0, 8.0, 16.0, 32.0)
    }
    assert min(moved, key=moved.get) == 16
    # by hand: 8192/132 waves of (16·128 + ceil(132/16)·256)·16384 elements, and C once; 1e-9: the same terms
    # in one order
    wave = (16 * 128 + 9 * 256) * 16384 * 2
    assert moved[16.0] == pytest.approx(8192 / 132 * wave + 16384**2 * 2, rel=1e-9)


def test_two_stages_are_enough_for_the_decode_step():
    """As the last exercise says; with a single one they are not."""
    one, two, five = (
        tiling.times(64.0, 4096.0, 4096.0, Tile(64.0, 32.0, 128.0, s, 4.0), H100) for s in (1.0, 2.0, 5.0)
    )
    assert two.total_s == two.hbm_s == five.total_s < one.total_s


def test_registers_are_the_sums_and_so_many_more():
    """30 to 92, and only the tile of 256 × 256 spills."""
    rows = recordings.load("triton_tiles")["tiles"]["h100-sxm"]
    more = [row["registers"] - tiling.sums(Tile(*(row[name] for name in Tile._fields))) for row in rows[:-1]]
    assert min(more) == 30 and max(more) == 92
    assert [row["spilled_bytes"] > 0 for row in rows] == [False] * (len(rows) - 1) + [True]


def test_no_tile_of_the_table_lives_on_hbm_and_small_ones_not_on_l2():
    worth = tiling.intensity(Tile(256.0, 256.0, 64.0, 3.0, 8.0))
    assert worth * H100.hbm_bytes_per_s < 0.5 * H100.flops_per_s
    assert tiling.intensity(Tile(64.0, 64.0, 32.0, 4.0, 4.0)) * H100.l2_bytes_per_s < 0.5 * H100.flops_per_s


def test_a_softmax_holds_a_row_of_32768_and_first_spills_at_twice_that():
    """As compiled: eight warps hold 32,768 values, and at 65,536 more warps help first."""
    rows = {(row["columns"], row["warps"]): row for row in recordings.load("triton_kernels")["softmax"]}
    assert rows[32768, 8]["spilled_bytes"] == 0 and rows[32768, 8]["registers"] < 255
    assert rows[65536, 8]["spilled_bytes"] > rows[65536, 32]["spilled_bytes"] > 0


def test_the_softmax_kernels_offsets_are_wide():
    """Logits of 32,768 tokens over 128,256 words have more than 2^31 elements."""
    assert 32768 * 128256 > 2**31 and recordings.load("triton_kernels")["softmax_offset_bits"] == 64


def test_the_printed_loops_are_those_that_triton_makes():
    """The two listings, a word for each load, product and store, and a dot for each loop around it."""

    def read(listing):
        lines = [line.split("#")[0] for line in listing.splitlines()]
        return [
            "." * ((len(line) - len(line.lstrip())) // 4) + word
            for line in lines
            for word in re.findall(r"\b(?:for|load|product|store)\b", line)
        ]

    found = recordings.load("triton_kernels")
    plain, flattened = LESSON.code("text")
    assert read(plain) == found["persistent"]["course"]
    alone = found["flattened"]["course"]
    assert alone[:2] == ["for", ".store"]  # the branch for a k of 0, which has nothing to load
    assert read(flattened) == alone[2:]
    assert found["flattened"]["spilled_bytes"] == 0


def test_each_rung_of_the_ladder_lifts_one_limit():
    """As the words below the table say: L2's, HBM's, the waiting; the lowest counts."""
    naive, small, large, grouped, piped, _ = (limits for _, limits, _ in LESSON.value("rungs"))
    assert naive["total_s"] == LESSON.value("single_numbers") < small["l2_s"] / 50
    assert large["l2_s"] > 2 * small["l2_s"] == pytest.approx(2 * small["total_s"])
    assert grouped["hbm_s"] > 3 * large["hbm_s"] and grouped["total_s"] == large["total_s"]
    assert large["latency_s"] == large["total_s"] < large["hbm_s"] < piped["total_s"]
    assert piped["latency_s"] > 5 * grouped["latency_s"] and piped["total_s"] == piped["arithmetic_s"]


def test_one_stage_leaves_the_tensor_cores_idle_for_a_third():
    """358 ns of 358 + 697."""
    step_s = tiling.step_s(TILE, H100)
    assert H100.load_s / (H100.load_s + step_s) == pytest.approx(1 / 3, abs=0.01)


def test_a_descriptors_copies_replace_every_load_by_threads():
    found = recordings.load("triton_kernels")["persistent"]
    assert found["by_descriptor"] > 0 == found["by_thread"] and found["spilled_bytes"] == 0


def test_no_published_triton_kernel_reaches_the_estimate_and_a_library_nearly_does():
    """The estimate is a ceiling: half of it in 2023, nine tenths by persistent kernels, 98 % by CUTLASS."""
    shares = {
        name: [row[4] / tiling.flops_per_s(*map(float, row[1:4]), TILE, H100)]
        for row in LESSON.value("published")
        for name in [row[0] + f" {row[3]}"]
    }
    assert all(share < 1 for [share] in shares.values())
    [half, _] = [share for name, [share] in shares.items() if name.startswith("Triton, September")]
    assert 0.4 < half < 0.5
    persistent = [share for name, [share] in shares.items() if "TMA" in name or "same" in name]
    assert len(persistent) == 3 and all(0.85 < share < 0.95 for share in persistent)
    assert shares["CUTLASS, power boosted, He 8192"][0] > 0.97


def test_row_major_order_is_bound_by_hbm_where_c_is_wide():
    for m, n, k in ((16384.0, 16384.0, 16384.0), (2048.0, 28672.0, 4096.0)):
        rows, grouped = (tiling.times(m, n, k, TILE, H100, group) for group in (1.0, 16.0))
        assert tiling.bound(rows) == 3 and tiling.bound(grouped) == 0


def test_no_known_tile_is_faster_than_the_one_with_an_eighth_of_the_warps():
    assert tiling.occupancy(TILE, H100) == 1 / 8
    shape = (4096.0, 4096.0, 4096.0)
    best = tiling.best(*shape, H100)
    assert tiling.flops_per_s(*shape, best, H100) == tiling.flops_per_s(*shape, TILE, H100)


def test_a_square_wave_reads_least():
    """W = 36 over 18 × 18 tiles: groups of 6, as the square root says."""
    reads = {group: tile_order.run(18, 18, 18, group, 36, 1000, 36)["read"] for group in (1, 2, 3, 6, 9, 18)}
    assert min(reads, key=reads.get) == 6 and reads[6] == 12 * 18


def test_another_tile_does_not_help_3200_tokens():
    best = tiling.best(3200.0, 4096.0, 4096.0, H100)
    assert tiling.flops_per_s(3200.0, 4096.0, 4096.0, best, H100) == pytest.approx(
        tiling.flops_per_s(3200.0, 4096.0, 4096.0, TILE, H100), rel=0.01
    )
