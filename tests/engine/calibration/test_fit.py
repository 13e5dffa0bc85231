"""The fit finds the constants that tables were made from, and says where a table is not one."""

import csv
import re
from itertools import product

import numpy as np
import pytest

from engine.calibration import known
from engine.calibration.fit import judge, report, tables
from engine.calibration.fit.__main__ import main
from engine.calibration.fit.kinds import KINDS
from engine.calibration.fit.solver import SearchStart, fit, rounded
from tests.said import refused

KIND = {kind.name: kind for kind in KINDS}
SYSTEM = "h100_sxm"
GPU = "h100-sxm"

GEMM = dict(ceiling=0.8, memory=0.85, launch_s=3e-6, rows=40.0, wave=0.2, ramp=150.0, slowing=0.1)
DECODE = dict(memory=0.9, arithmetic=0.25, launch_s=11e-6, block_s=3e-6, ramp_s=6e-6, join_s=2e-6, warm=1.5)
PREFILL = dict(
    share_64=0.5, share_128=0.65, share_256=0.72, share_512=0.72, memory=0.8, write=0.4, launch_s=10e-6,
    block_s=2e-6, ramp_s=8e-6,
)  # fmt: skip
LATENT = dict(arithmetic=0.6, memory=0.9, launch_s=13e-6, block_s=5e-6, ramp_s=6e-6)
EXPERTS = dict(
    ceiling=0.7, memory=0.9, permute=0.5, token=0.8, launch_s=25e-6, expert_s=5e-8, pace_s=2e-9, padding=1.0
)
COLLECTIVE = dict(
    start_s=5e-6, hop_s=0.8e-6, direct_s=1.6e-6, middle_s=0.3e-6, middle=0.5, late_s=4e-6, late_direct_s=5e-6,
    low=0.04, direct_low=0.03, reduce_2=0.6, reduce_4=0.8, reduce_8=1.0, gather_2=0.5, gather_4=0.65,
    gather_8=0.8, direct_2=0.55, direct_4=0.6, direct_8=0.65,
)  # fmt: skip
QUANTISE = dict(launch_s=9e-6, memory=0.6, warm=0.5)
MAPPED = dict(start_s=2.7e-6, rank_s=0.1e-6, second_s=4e-6, one_shot=0.6, two_shot=0.5)
DISPATCH = dict(start_s=12e-6, row_s=1e-9, link=0.5)
COMBINE = dict(start_s=14e-6, row_s=2e-9, link=0.6)
SEND = dict(start_s=7e-6, late_s=5e-6, bytes_per_s=3e11)


def grid(**columns) -> list[dict]:
    return [dict(zip(columns, values)) for values in product(*columns.values())]


SIZES = [2**n for n in range(9, 30)]
ROWS = {
    "gemm": grid(
        framework=["trtllm"], dtype=["bf16"], m=[1, 16, 64, 200, 512, 1500, 4096, 16384],
        n=[256, 1024, 4096, 9000, 28672], k=[128, 1024, 4096, 16384, 51200], amax_s=[0], cast_s=[0],
    ),
    "prefill": grid(
        kernel=["flash_attn_fa3"], heads=[4, 32], kv_heads=[4], head_dim=[64, 128, 256],
        window_tokens=[0, 128], batch=[1, 8, 64], tokens=[16, 100, 512, 2000, 4096, 16384], kv_dtype=["bf16"],
    ),
    "decode": grid(
        kernel=["flash_attn_fa3"], heads=[8, 64], kv_heads=[1, 8], head_dim=[64, 128], window_tokens=[0, 128],
        batch=[1, 16, 128, 1024], kv_tokens=[2, 64, 200, 1024, 8192, 65536], kv_dtype=["bf16"],
    ),
    "latent": grid(
        phase=["prefill"], heads=[8, 32, 128], batch=[1, 8, 64], tokens=[64, 256, 1024, 4096, 16384],
        kv_dtype=["bf16"],
    ),
    "experts": grid(
        dtype=["bf16"], kernel=["cutlass"], gated=[1], routing=["balanced"],
        tokens=[1, 16, 128, 1024, 8192, 32768],
        hidden=[2048, 7168], ffn=[768, 2048, 8192], experts=[64, 256], tp=[1], ep=[1, 8, 32],
    ),
    "collective": grid(
        source=["aiconfigurator"], op=["all_reduce", "all_gather", "reduce_scatter", "all_to_all"],
        ranks=[2, 4, 8], nodes=[1], bytes=SIZES, main=[1],
    ),
    "mapped_all_reduce": grid(framework=["vllm 1"], graph=[1], ranks=[2, 4, 8], bytes=SIZES[:15]),
    "send": grid(nodes=[1], bytes=SIZES),
    "dispatch": grid(
        library=["deepep (sglang 0.5.12)"], mode=["low_latency"], ranks=[8], nodes=[1], hidden=[2048, 7168],
        tokens_per_rank=[1, 4, 16, 64, 256, 1024], top_k=[2, 8], experts=[128, 256], sms=[0],
        dispatch_s=[1e-5], combine_s=[1e-5], dispatch_dtype=["fp8"],
    ),
}  # fmt: skip
TRUTH = {
    "gemm": GEMM, "prefill": PREFILL, "decode": DECODE, "latent": LATENT, "experts": EXPERTS,
    "collective": COLLECTIVE, "mapped_all_reduce": MAPPED, "send": SEND,
    "dispatch": DISPATCH, "combine": COMBINE,
}  # fmt: skip


ROWS["combine"] = ROWS["dispatch"]


def columns_of(kind: str) -> dict[str, list]:
    rows = ROWS[kind]
    if kind == "experts":
        for row in rows:
            pairs = row["tokens"] * 8 / row["ep"]
            row["local_rows"], row["touched_experts"] = pairs, min(pairs, row["experts"] / row["ep"])
    return {name: [row[name] for row in rows] for name in rows[0]}


def timed(kind: str) -> dict[str, list]:
    """The rows of a kind with the times that its constants give."""
    columns = columns_of(kind)
    rule = tables.TABLES[KIND[kind].table]
    rows = tables.Rows(
        {
            name: np.array([str(v) for v in values], dtype=object)
            if rule[name].words is not None
            else np.array(values, dtype=float)
            for name, values in columns.items()
        }
    )
    sheet, key = known.sheet(GPU), KIND[kind].keys(rows)[0]
    seconds = KIND[kind].predict(rows, known.BUILDERS[kind](TRUTH[kind], sheet, key), sheet)
    return columns | {"time_s": list(seconds), "system": [SYSTEM] * len(seconds)}


def write(path, columns: dict[str, list]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(columns)
        lines.writerows(zip(*columns.values()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables for one GPU, computed from constants that the test knows."""
    place = tmp_path_factory.mktemp("measurements")
    for kind in TRUTH:
        columns = timed(kind)
        if kind in ("dispatch", "combine"):  # two times of one table
            there, back = timed("dispatch")["time_s"], timed("combine")["time_s"]
            columns |= {"dispatch_s": there, "combine_s": back}
        if kind == "gemm":  # and a table of casts within it: fp8, whose scale and cast are measured apart
            n = len(columns["m"])
            m, k = (np.array(columns[name], dtype=float) for name in "mk")
            sheet = known.sheet(GPU)
            rows = tables.Rows({"m": m, "k": k})
            cast = KIND["quantise"].predict(rows, known.quantise_rates(QUANTISE, sheet, ""), sheet)
            fp8 = {name: list(values) for name, values in columns.items()}
            fp8 |= {"dtype": ["fp8"] * n, "amax_s": list(cast * 0.75), "cast_s": list(cast * 0.25)}
            fp8["time_s"] = [t + c for t, c in zip(columns["time_s"], cast)]
            columns = {name: values + fp8[name] for name, values in columns.items()}
        write(place / KIND[kind].table, columns)
    return place


@pytest.fixture(scope="module")
def found(folder):
    return judge.all_kinds(folder)


@pytest.mark.parametrize("kind", [*TRUTH, "quantise"])
def test_the_fit_recovers_what_the_tables_were_made_from(found, kind):
    """The times to 2 % on rows that were held out, and the constants that they hang on to 10 %."""
    held = [
        row["ratio"]
        for row in found.judged
        if row["kind"] == kind and row["way"] == "own" and row["key"] != "fp8"
    ]
    assert len(held) > 5
    assert np.median(np.abs(np.log(held))) < 0.02, kind
    got = next(c[GPU] for key, c in found.constants[kind].items() if key != "fp8")
    truth = TRUTH.get(kind, QUANTISE)
    named = ("ceiling", "memory", "launch_s", "start_s", "bytes_per_s", "share_128")
    firm = [name for name in truth if name in named or name.startswith(("reduce", "gather"))]
    assert firm
    for name in firm:
        assert got[name] == pytest.approx(truth[name], rel=0.1), (kind, name)


def test_the_same_tables_give_the_same_digits(folder, found, tmp_path, capsys):
    assert report.toml({"constants": judge.all_kinds(folder).constants}, "") == report.toml(
        {"constants": found.constants}, ""
    )
    assert main([str(folder), "--into", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"fitted.toml", "residuals.toml"}
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split("  ")[-1].strip() == "band covers" and {len(row) for row in rows} == {len(head)}
    assert {row.split()[0] for row in rows} == set(found.constants)


def test_a_constant_is_told_no_finer_than_its_grain():
    """Times of well under a nanosecond a row move in the fifth digit with the processor's instructions."""
    assert rounded(9.0166e-11, 1e-12) == rounded(9.0159e-11, 1e-12) == 9e-11
    assert rounded(2.26149e-9, 1e-12) == rounded(2.26149e-9) == 2.261e-9
    assert [kind.starts["row_s"].grain for kind in KINDS if "row_s" in kind.starts] == [1e-12, 1e-12]
    got = fit(
        lambda c: c["slope"] * np.ones(9), np.full(9, 0.123456), {"slope": SearchStart(1.0, 0.01, 9.0, 0.01)}
    )
    assert got == {"slope": 0.12}


def test_rows_that_fit_nothing_are_the_same_shapes_on_every_system():
    rows = tables.Rows({"m": np.array([1.0, 2.0, 1.0, 2.0]), "n": np.full(4, 8.0), "k": np.full(4, 16.0)})
    part = judge.tenths(rows, ("m", "n", "k"))
    assert part[0] == part[2] and part[1] == part[3]
    many = tables.Rows({"m": np.arange(5000.0), "n": np.full(5000, 8.0)})
    share = np.mean(judge.tenths(many, ("m", "n")) < judge.FIT)
    assert share == pytest.approx(judge.FIT / 10, abs=0.03)


def test_what_is_measured_apart_is_taken_off_fp8_of_the_first_library_alone():
    columns = dict(time_s=[10e-6, 10e-6, 10e-6, 4e-6], amax_s=[3e-6] * 4, cast_s=[2e-6, 2e-6, 2e-6, np.nan])
    words = dict(dtype=["fp8", "bf16", "fp8", "fp8"], framework=["trtllm", "trtllm", "sglang", "trtllm"])
    rows = tables.Rows({name: np.array(values) for name, values in (columns | words).items()})
    assert KIND["gemm"].time(rows) == pytest.approx([5e-6, 10e-6, 10e-6, 1e-6])


def test_messages_have_constants_of_their_own_between_two_nodes():
    assert list(KIND["send"].keys(tables.Rows({"nodes": np.array([1.0, 2.0])}))) == ["one node", "two nodes"]


def test_collectives_are_reported_by_the_class_of_their_bytes():
    sizes = tables.Rows({"bytes": np.array([512.0, 8192.0, 8193.0, 2.0**20 - 1, 2.0**20, 2.0**26, 2.0**28])})
    words = ["to 8192", "to 8192", "to 131072", "to 1.04858e+06", "to 1.67772e+07", "to 1.34218e+08", "above"]
    assert list(KIND["collective"].axes["bytes"](sizes)) == words


def test_a_band_leaves_out_a_tenth_of_its_rows_at_either_end_and_says_how_often_it_held():
    """Of 19 rows the second from either end, ⌊0.1 · 20⌋; of those that it has not seen, two of
    four lie within."""
    assert report._quantiles(np.arange(19.0, 0.0, -1.0)) == [2.0, 18.0]
    row = dict(key="bf16", gpu=GPU, size="small", above=True, part=judge.BAND)
    unseen = [row | {"ratio": ratio} for ratio in (1.0, 2.0, 18.0, 19.0)]
    seen = [row | {"ratio": 100.0, "part": judge.BAND - 1}]
    said = report.summary(unseen + seen, {"all": [2.0, 18.0]})
    assert said["coverage"] == 0.5 and said["rows"] == 5


@pytest.mark.parametrize(("first", "second"), [(1e-3, 1.0), (1.0, 1e-3)])
def test_of_two_starts_the_one_that_fits_better_counts(first, second):
    """From 0.001 the slope has no effect, and its fit stays where it began."""
    x = np.linspace(1.0, 10.0, 50)
    got = fit(
        lambda c: np.maximum(c["slope"] * x, 0.5),
        3.0 * x,
        {"slope": SearchStart(first, 1e-4, 100.0)},
        also_from={"slope": second},
    )
    assert got["slope"] == pytest.approx(3.0, rel=0.01)


def test_far_rows_do_not_bend_a_fit():
    x = np.linspace(1.0, 10.0, 50)
    y = 3.0 * x
    y[::10] *= 8.0  # a library that picked a poor kernel, now and then
    got = fit(lambda c: c["slope"] * x, y, {"slope": SearchStart(1.0, 0.1, 100.0)})
    assert got["slope"] == pytest.approx(3.0, rel=0.01)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("h100_sxm", "h101", 1), "gemm.csv:2: system must be one of a100_sxm"),
        (lambda text: text.replace("bf16", "int3", 1), "gemm.csv:2: dtype must be one of bf16"),
        (lambda text: text.replace("framework,", "framewrok,", 1), "gemm.csv:1: the header must name"),
        (
            lambda text: text.replace(",256,", ",-256,", 1),
            "gemm.csv:2: n must be a number above 0; got '-256'",
        ),
        (lambda text: text.replace(",256,", ",nan,", 1), "gemm.csv:2: n must be a number above 0; got 'nan'"),
        (
            lambda text: text.replace(",256,", ",wide,", 1),
            "gemm.csv:2: n must be a number above 0; got 'wide'",
        ),
        (lambda text: "\n".join(text.splitlines()[:3]) + ",7", "gemm.csv:3: a row must have 9 cells; got 10"),
        (lambda text: text.splitlines()[0], "gemm.csv:2: a table must have at least one row"),
        (lambda text: "", "gemm.csv:1: the header must name"),
    ],
)
def test_a_malformed_table_is_refused_with_its_line(folder, tmp_path, capsys, change, said):
    text = (folder / "gemm.csv").read_text(encoding="utf-8")
    (tmp_path / "gemm.csv").write_text(change(text), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(said)):
        tables.read(tmp_path, "gemm.csv")
    assert main([str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


def test_a_missing_table_is_named(tmp_path):
    with refused("gemm.csv"):
        tables.read(tmp_path, "gemm.csv")


def test_what_no_row_speaks_of_is_held_and_not_invented():
    """Heads of 128 alone say nothing about others; four GPUs say nothing about eight."""
    attention = tables.Rows({"head_dim": np.array([128.0, 128.0])})
    assert judge._absent(KIND["prefill"], attention) == {"share_64", "share_256", "share_512"}
    assert judge._filled({"share_128": 0.6}) == {f"share_{w}": 0.6 for w in judge.WIDTHS}
    assert judge._absent(KIND["collective"], tables.Rows({"ranks": np.array([2.0, 4.0])})) == {
        "reduce_8",
        "gather_8",
        "direct_8",
    }
    assert judge._filled({"reduce_4": 0.7})["reduce_8"] == 0.7
    a100 = known.fitted()["constants"]["prefill"]["flash_attn.bf16"]["a100-80"]
    assert a100["share_64"] == a100["share_128"] == a100["share_256"]
