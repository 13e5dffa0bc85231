"""The command line: its contract of flags, keys and exit codes, in one process and a few times in its own."""

import contextlib
import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from argparse import SUPPRESS
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine
from engine import catalog
from engine.__main__ import COMMANDS, main
from engine.arguments import EXAMPLES_OF, parser
from tests.cases import in_one_test

ROOT = Path(__file__).resolve().parents[2]
ESTIMATE = (
    "estimate --model llama3.1-405b --gpu h100-sxm --gpus 16384 --tp 8 --pp 16 --cp 1 --ep 1 --zero 1 "
    "--micro-batch 1 --global-batch 2048 --seq 8192 --recompute none --schedule interleaved --interleave 4"
)
PLAN = "plan --model llama3-70b --gpu h100-sxm --gpus 512 --global-batch 1024 --seq 8192 --top 5"
INFER = (
    "infer --model llama3-70b --gpu h100-sxm --tp 8 --batch 32 --prompt 1024 --output 128 --precision bf16"
)
DEPLOY = "deploy --model llama3.1-8b --gpu h100-sxm --per-s 4 --prompt 1000 --ttft-s 1 --tpot-s 0.03 --top 2"
COLLECTIVE = "collective --op all_reduce --gpu h100-sxm --ranks 16 --bytes 1073741824"
ALL = [
    ESTIMATE,
    PLAN,
    INFER,
    DEPLOY,
    COLLECTIVE,
    "goodput --gpus 16384",
    "cost --gpu h100-sxm --gpus 8 --hours 10",
    "models",
    "gpus",
    "recipes",
    "nodes",
    "fabrics",
    "validate",
]


def call(line: str, capsys) -> tuple[int, str, str]:
    try:
        status = main(shlex.split(line))
    except SystemExit as left:
        status = left.code
    out, err = capsys.readouterr()
    return status, out, err


def answer(line: str, capsys):
    status, out, err = call(f"{line} --json", capsys)
    assert (status, err) == (0, "")
    return json.loads(out)


def test_estimate_gives_the_keys_of_the_contract(capsys):
    result = answer(ESTIMATE, capsys)
    for key in (
        "parameters",
        "step_s",
        "tokens_per_s",
        "model_flops_per_gpu_per_s",
        "mfu",
        "hfu",
        "fits",
        "binding",
        "gpu_hours_per_trillion_tokens",
    ):
        assert key in result
    assert set(result["memory_bytes"]) >= {
        "weights",
        "gradients",
        "optimizer",
        "activations",
        "total",
        "capacity",
    }
    assert set(result["time_s"]) >= {
        "compute",
        "tensor",
        "pipeline_bubble",
        "context",
        "expert",
        "data_exposed",
        "optimizer",
        "other",
    }
    assert result["parameters"] == 405_853_388_800 and result["layout"]["dp"] == 128
    assert sum(result["time_s"].values()) == pytest.approx(result["step_s"])
    assert result["tokens_per_s"] == pytest.approx(2048 * 8192 / result["step_s"])


def test_plan_within_constraints_and_beside_a_layout_of_ones_own(capsys):
    found = answer(
        f"{PLAN} --framework megatron --tp 4-8 --most-chunks 4 --recompute none "
        '--beside "--tp 8 --pp 4 --schedule 1f1b"',
        capsys,
    )
    assert found["within"] == "Megatron Core 0.15, tp 4 to 8, at most 4 chunks a stage, recompute none"
    best, mine = found["best"], found["beside"]
    assert 4 <= best["layout"]["tp"] <= 8 and best["layout"]["interleave"] <= 4
    assert mine["layout"]["tp"] == 8 and mine["layout"]["pp"] == 4
    assert sum(mine["more_time_s"].values()) == pytest.approx(mine["step_s"] - best["step_s"])
    assert mine["slower_by"] == pytest.approx(mine["step_s"] / best["step_s"] - 1.0)


def test_what_people_type_is_read(capsys):
    """1GiB, allreduce, 17.6 days, 8k and milliseconds; a misspelt flag is the message."""
    asked = "collective --op {} --gpu h100-sxm --ranks 16 --bytes {} --json"
    assert call(asked.format("allreduce", "1GiB"), capsys) == call(asked.format("all_reduce", 2**30), capsys)
    assert answer('cost --gpu H100 --gpus 8 --hours "17.6 days"', capsys)["hours"] == pytest.approx(17.6 * 24)
    assert answer(PLAN.replace("--seq 8192", "--seq 8k"), capsys)["best"] == answer(PLAN, capsys)["best"]
    for line, said in (
        ("plan --modle llama3.1-8b", "there is no flag --modle; did you mean --model?"),
        ("plan --batch 64", "there is no flag --batch; did you mean --global-batch or --micro-batch?"),
        (asked.format("all_reduce", "lots"), "must be a number, such as 1e9, 512MB or 1GiB; got 'lots'"),
    ):
        status, out, err = call(line, capsys)
        assert status == 2 and not out and said in err and err.count("\n") == 1


def test_a_plan_is_exported_as_a_file_and_only_where_it_fits(capsys):
    status, out, err = call(f"{PLAN} --export megatron", capsys)
    assert status == 0 and out.startswith("export CUDA_DEVICE_MAX_CONNECTIONS=1\nARGS=(\n")
    assert out.rstrip().endswith(")")
    assert "fp32 gradients (18 bytes a parameter)" in err and "slower_by" not in out
    status, out, err = call(
        "plan --model llama3.1-405b --gpu H100 --gpus 8 --global-batch 64 --seq 8k --export megatron", capsys
    )
    assert status == 2 and not out and "nothing fits on 8 of these GPUs, so nothing is written" in err


def test_plan_tries_copies_of_the_state_where_it_is_asked_to(capsys):
    one, several = answer(PLAN, capsys), answer(f"{PLAN} --hsdp", capsys)
    assert several["layouts"] > one["layouts"] and several["best"]["step_s"] <= one["best"]["step_s"]


def test_plan_gives_winner_and_losers(capsys):
    result = answer(PLAN, capsys)
    assert result["best"]["fits"] and len(result["runners_up"]) == 4 and result["layouts"] > 10_000
    assert all(other["slower_by"] >= 0 and other["lost_by"] for other in result["runners_up"])
    best = result["best"]
    flags = " ".join(
        f"--{key.replace('_', '-')} {value}" for key, value in best["layout"].items() if key != "dp"
    )
    same = answer(f"{PLAN.replace('plan', 'estimate').replace('--top 5', '')} {flags}", capsys)
    assert same["step_s"] == best["step_s"] and same == best


def test_infer_and_collective_give_the_keys_of_the_contract(capsys):
    result = answer(INFER, capsys)
    assert set(result) >= {
        "ttft_s",
        "time_per_output_token_s",
        "tokens_per_s_per_gpu",
        "kv_bytes_per_token",
        "largest_batch",
    }
    result = answer(COLLECTIVE, capsys)
    assert {"time_s", "algorithm_bandwidth", "bus_bandwidth", "algorithm"} <= set(result)
    assert result["bus_bandwidth"] == pytest.approx(result["algorithm_bandwidth"] * 2 * 15 / 16)
    assert result["algorithm_bandwidth"] == pytest.approx(2**30 / result["time_s"])


@pytest.mark.parametrize("line", ALL, ids=lambda line: line.split()[0])
def test_tables_by_default_and_json_on_demand(line, capsys):
    status, out, err = call(line, capsys)
    assert status == 0 and err == "" and out.strip()
    with pytest.raises(json.JSONDecodeError):
        json.loads(out)
    assert answer(line, capsys)


@pytest.mark.parametrize(
    "line", [PLAN, DEPLOY, "models", "gpus", "recipes", "nodes", "fabrics", "validate --by group", "puzzle"]
)
def test_rows_come_as_csv_too(line, capsys):
    status, out, err = call(f"{line} --csv", capsys)
    assert (status, err) == (0, "")
    rows, found = list(csv.DictReader(io.StringIO(out))), answer(line, capsys)
    if isinstance(found, dict):
        found = found["rows"] if "rows" in found else [found["best"], *found["runners_up"]]
    assert len(rows) == len(found) > 1 and all(None not in row for row in rows)
    for name in {"error", "gpus", "year", "bytes_per_param", "nics", "latency_s"} & set(found[0]):
        assert [float(row[name]) for row in rows] == [each[name] for each in found]
    for name in {"key", "case", "puzzle", "title"} & set(found[0]):
        assert [row[name] for row in rows] == [each[name] for each in found]


def test_csv_has_a_column_for_each_part_of_what_is_nested(capsys):
    _, out, _ = call(f"{PLAN} --csv", capsys)
    [best, *_] = csv.DictReader(io.StringIO(out))
    found = answer(PLAN, capsys)["best"]
    assert float(best["memory_bytes.total"]) == found["memory_bytes"]["total"]
    assert best["fits"] == "true"
    assert [float(best[f"band_s.{end}"]) for end in ("low", "high")] == found["band_s"]
    _, out, _ = call("validate --by axis --csv", capsys)
    assert out.startswith("runs_of,axis,runs,")


def test_the_catalogue_is_whole(capsys):
    for name, known in (("models", catalog.all_models()), ("gpus", catalog.all_gpus())):
        assert {row["key"] for row in answer(name, capsys)} == set(known)


def test_the_budget_guard_refuses(capsys):
    """307,200 dollars against 300,000: 2.4 % over, exit status 3, and the bill is printed all the same."""
    line = "cost --gpu h100-sxm --gpus {} --hours 100 --price 3 --budget 300000"
    status, out, err = call(line.format(1024) + " --json", capsys)
    result = json.loads(out)
    assert (
        status == 3 and not result["within_budget"] and result["over_budget_dollars"] == pytest.approx(7200)
    )
    assert err == "refused: $7.2k (2.4 %) over the budget of $300k\n"
    status, out, err = call(line.format(1000) + " --json", capsys)
    assert (status, err) == (0, "") and json.loads(out)["within_budget"]


def test_a_budget_next_to_nothing_is_over_by_no_number_of_percent(capsys):
    """10⁸ dollars are more times 10⁻³⁰² than a number can say."""
    line = "cost --gpu h100-sxm --gpus 10000000 --hours 10 --price 1 --budget 1e-302 --json"
    status, out, err = call(line, capsys)
    assert status == 3 and json.loads(out)["over_budget_dollars"] == 1e8
    assert err.startswith("refused: $") and err.count("\n") == 1 and "%" not in err


def test_deploy_says_what_the_api_says(capsys):
    result = answer(DEPLOY, capsys)
    load, limits = engine.Load(per_s=4, prompt=1000), engine.Limits(ttft_s=1.0, tpot_s=0.03)
    asked = engine.deploy("llama3.1-8b", "h100-sxm", load, limits, top=2).as_dict()
    assert result["best"] == asked["best"] and result["runners_up"] == asked["runners_up"]
    assert len(result["runners_up"]) == 1 and "commands" not in result


def test_deploy_takes_agents_sessions_whose_hit_rate_is_a_result(capsys):
    """10 turns come to 10 requests for each session; what the caches hold is said by tier, at most all but
    what is new."""
    line = "deploy --model llama3.1-8b --gpu H100 --per-s 1 --prompt 2k --turns 10 --system 8k --added 1k "
    line += "--ttft-s 2 --tpot-s 40ms --formats fp8 --one-pool --host-bytes 200GB --host-bytes-per-s 20GB/s"
    found = answer(line, capsys)
    assert found["held_share"] == pytest.approx(sum(found["held_on"].values()))
    assert 0.5 < found["held_share"] <= found["held_at_most"] + 0.01 and found["fetched_s"] >= 0.0
    assert set(found["held_on"]) == {"device", "host"} and found["device_tokens"] > 0


def test_deploy_writes_the_commands_of_a_row(capsys):
    status, out, err = call(f"{DEPLOY} --export sglang --row 2 --one-pool --formats fp8", capsys)
    assert status == 0 and "The cheapest, and the cheapest of other kinds:" in err  # what is no script
    assert "dollars_per_million" in err and "considered" not in out
    assert "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B" in out
    assert answer(f"{DEPLOY} --export vllm", capsys)["commands"].count("vllm serve") == 1
    for bad in ("--export vllm --row 3", "--export tgi", "--formats fp3", "--prefix-share 1"):
        status, out, err = call(f"{DEPLOY} {bad}", capsys)
        assert status == 2 and not out and err.count("\n") == 1, bad


def test_a_run_begins_with_the_sentence_that_prices_it(capsys):
    status, out, _ = call("cost --gpu h100-sxm --gpus 512 --hours 504 --price 3 --overhead 0.1", capsys)
    assert status == 0 and out.splitlines()[0] == (
        "This run takes 512 H100 SXM for 21 days, 258,048 GPU-hours at $3 and 10 % on top: $852k."
    )
    assert "$852k" in out.split("\n", 1)[1] and "This run" not in out.split("\n", 1)[1]
    _, out, _ = call("cost --help", capsys)
    assert "exit status 3" in " ".join(out.split())


def test_cost_by_tokens(capsys):
    by_tokens = answer("cost --gpu h100-sxm --model llama3-70b --tokens 15e12 --mfu 0.4 --gpus 1024", capsys)
    assert by_tokens["hours"] == pytest.approx(6 * 70.55e9 * 15e12 / (989e12 * 0.4) / 3600 / 1024, rel=0.001)


def test_goodput_to_first_order_and_at_any_rate(capsys):
    """Llama 3's rate: 15.8 % wasted to first order at Young's interval, 14.7 % with failures counted at any
    time."""
    result = answer("goodput --gpus 16384", capsys)
    assert result["goodput"] == pytest.approx(0.842, abs=1e-3) and result["useful_share"] == pytest.approx(
        0.853, abs=1e-3
    )
    assert result["best_interval_s"] == pytest.approx(1116, rel=1e-3) and result[
        "interval_s"
    ] == pytest.approx(1156, rel=1e-3)
    hopeless = answer("goodput --gpus 1000000 --checkpoint-s 3000 --restart-s 3000", capsys)
    assert hopeless["goodput"] == 0 and 0 < hopeless["useful_share"] < 1e-9


def test_a_model_of_ones_own(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(
        "layers = 80\nhidden = 8192\nheads = 64\nkv_heads = 8\nhead_dim = 128\nffn = 28672\nvocab = 128256\n",
        encoding="utf-8",
    )
    rest = "--gpu h100-sxm --gpus 512 --tp 8 --pp 4 --global-batch 1024 --seq 8192"
    mine = answer(f"estimate --model-file {file} {rest}", capsys)
    known = answer(f"estimate --model llama3-70b {rest}", capsys)
    assert (
        mine["step_s"] == known["step_s"]
        and mine["parameters"] == known["parameters"]
        and mine["model"] == "mine"
    )


EXPERTS = (
    "estimate --model gpt-oss-120b --gpu b200 --gpus 64 --ep 32 --micro-batch 4 --global-batch 1280 "
    "--seq 4096 --precision fp8"
)


@pytest.mark.parametrize(
    ("flag", "field"),
    [
        ("--with launches=python", dict(launches="python")),
        ("--with experts=operators", dict(experts="operators")),
        ("--with zero_sums=whole --with overlaps=", dict(zero_sums="whole", overlaps="")),
        ("--with zero_nics=0.5 --with overlaps=", dict(zero_nics=0.5, overlaps="")),
        ("--with attention=fused-8bit", dict(attention="fused-8bit")),
        ("--with overlaps=data+experts", dict(overlaps="data+experts")),
        ("--with gathers_again=on --with loss_chunks=4", dict(gathers_again=True, loss_chunks=4)),
        ("--software megatron-core --with dispatch=choice", dict(dispatch="choice", overlaps="")),
    ],
)
def test_what_software_does_around_experts(flag, field, capsys):
    asked = ("gpt-oss-120b", engine.Machine.of("b200", "fp8"))
    job = engine.Job(1280, 4096, software=engine.software("modern", **field))
    layout = engine.Layout(64, ep=32, micro_batch=4)
    assert answer(f"{EXPERTS} {flag}", capsys)["step_s"] == engine.estimate(*asked, job, layout).step_s


def test_software_of_a_time(capsys):
    """Korthikanti et al., Table 5, 22B: 1.10 s with sequence parallelism and selective recomputation, 1.42 s
    with neither."""
    line = (
        "estimate --model megatron-22b --gpu a100-80 --gpus 8 --tp 8 --zero 0 --micro-batch 4 "
        "--global-batch 4 "
        "--seq 2048 --software megatron-lm-2022"
    )
    assert answer(f"{line} --recompute selective", capsys)["step_s"] == pytest.approx(1.10, rel=0.09)
    assert answer(f"{line} --recompute full --with sequence_parallel=off", capsys)["step_s"] == pytest.approx(
        1.42, rel=0.09
    )
    unfused = answer(f"{line.replace('--software megatron-lm-2022', '')} --recompute selective", capsys)[
        "step_s"
    ]
    fused = answer(f"{line.replace('megatron-lm-2022', 'modern')} --recompute selective", capsys)["step_s"]
    assert fused < unfused == answer(f"{line} --recompute selective", capsys)["step_s"]
    assert (
        answer(
            f"{line.replace('--software megatron-lm-2022', '--with attention=fused')} --recompute selective",
            capsys,
        )["step_s"]
        == fused
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            ESTIMATE.replace("--tp 8", "--tp 7"),
            "tp must divide the 128 attention heads, got 7; nearest legal: 4 and 8",
        ),
        (ESTIMATE.replace("16384", "100"), "gpus must be at least tp × pp × cp"),
        (ESTIMATE.replace("2048", "2049"), "global_batch must be a multiple of dp = 128"),
        (ESTIMATE.replace("llama3.1-405b", "llama9"), "model must be a key of the catalogue (near:"),
        (ESTIMATE.replace("h100-sxm", "h1000"), "gpu must be a key of the catalogue (near:"),
        (ESTIMATE.replace("--zero 1", "--zero 5"), "zero must be one of 0, 1, 2, 3; got 5"),
        (ESTIMATE.replace("--seq 8192", "--seq 0"), "seq must be a whole number of at least 1, got 0"),
        (ESTIMATE + " --oversubscription nan", "oversubscription must be a number"),
        (ESTIMATE + " --nic-bytes-per-s -1", "nic_bytes_per_s must be greater than 0"),
        (ESTIMATE + " --recipe gold", "recipe must be a key of the catalogue"),
        (ESTIMATE.replace("--gpus 16384", "--gpus many"), "argument --gpus: invalid int value: 'many'"),
        ("estimate --gpu h100-sxm", "the following arguments are required"),
        (
            "estimate --model-file /nowhere.toml --gpu h100-sxm --gpus 1 --global-batch 1 --seq 1",
            "model file must be a readable",
        ),
        (PLAN.replace("--top 5", "--top 0"), "top must be a whole number"),
        (INFER.replace("--batch 32", "--batch -1"), "batch must be a whole number"),
        (INFER.replace("bf16", "fp4"), "precision must be one of"),
        (DEPLOY.replace("0.03", "0.0001"), "tpot_s must be at least 0.0"),
        (COLLECTIVE.replace("--ranks 16", "--ranks 1"), "ranks must be a whole number of at least 2, got 1"),
        (COLLECTIVE.replace("all_reduce", "all_gossip"), "op must be one of all_reduce"),
        (COLLECTIVE.replace("1073741824", "0"), "bytes must be greater than 0"),
        (COLLECTIVE + " --per-node 9", "per_node must be at most"),
        ("goodput --gpus 0", "gpus must be a whole number"),
        ("cost --gpu h100-sxm", "cost needs --hours"),
        ("validate --cases /nowhere", "cases must be a directory"),
        ("fly", "invalid choice: 'fly'"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_two(line, words, capsys):
    status, out, err = call(line, capsys)
    assert status == 2 and out == ""
    assert words in err and err.count("\n") == 1 and "Traceback" not in err


NASTY = [
    "0",
    "-1",
    "1",
    "2",
    "7",
    "8",
    "1000000",
    "1" + "0" * 30,
    "1" + "0" * 400,
    "1e300",
    "1e-300",
    "nan",
    "inf",
    "-inf",
    "abc",
    "",
    "none",
    "fp8",
    "4294967296",
    "0.5",
]


@in_one_test("name", list(COMMANDS))
def test_what_an_option_is_when_it_is_not_given_stands_in_its_help(name):
    """At the end of it and in parentheses. A word says what no number, or 0, is taken for."""
    for option in parser("").commands.choices[name]._actions:
        if option.default == SUPPRESS or not option.option_strings:
            continue
        said = re.search(r"\(([^()]*)\)$", option.help or "")
        default = ",".join(option.default) if isinstance(option.default, tuple) else option.default
        if isinstance(default, str):
            assert said and said[1] == default, option
        elif default:
            assert said and float(said[1].split(",")[0]) == default, option
        elif said:
            assert not re.fullmatch(r"[\d.]+", said[1]) or float(said[1]) == default, option


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(
        [
            ESTIMATE,
            PLAN.replace("512", "16"),
            INFER,
            DEPLOY,
            COLLECTIVE,
            "goodput --gpus 16 --checkpoint-s 10",
            "cost --gpu h100-sxm --gpus 8 --hours 10 --price 2 --budget 100",
        ]
    ),
    st.data(),
)
def test_no_argument_breaks_it(line, data):
    """Any value in any place: an answer without NaN or infinity, or one line and exit status 2."""
    words = line.split()
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(
            st.sampled_from([i for i, word in enumerate(words) if i and words[i - 1].startswith("--")])
        )
        words[place] = data.draw(st.sampled_from(NASTY))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main([*words, "--json"])
        except SystemExit as left:
            status = left.code
    if status == 2:
        assert out.getvalue() == "" and err.getvalue().count("\n") == 1
    else:
        assert status in (0, 3) and err.getvalue().count("\n") == (status == 3)
        json.loads(out.getvalue(), parse_constant=lambda constant: pytest.fail(constant))


def test_in_a_process_of_its_own():
    own = dict(cwd=ROOT, capture_output=True, text=True)
    done = subprocess.run([sys.executable, "-m", "engine", *ESTIMATE.split(), "--json"], **own)
    assert done.returncode == 0 and done.stderr == "" and json.loads(done.stdout)["step_s"] > 0
    done = subprocess.run([sys.executable, "-m", "engine", "estimate", "--tp", "x"], **own)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    done = subprocess.run(f"{sys.executable} -m engine models | head -1", shell=True, **own)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("key")


# -- check -------------------------------------------------------------------------------------------------
SERVER = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192\n"


def test_check_prints_the_report_and_its_status_says_whether_it_runs(tmp_path, capsys):
    file = tmp_path / "run.sh"
    file.write_text(SERVER, encoding="utf-8")
    status, out, err = call(f"check {file} --gpu h100-sxm", capsys)
    assert (
        status == 0 and err == "" and "fits, with room for" in out and f"{file}:1: max-model-len 8192" in out
    )
    found = answer(f"check {file} --gpu h100-sxm", capsys)
    assert found["verdict"] == "fits" and found["cache_tokens"] > 100_000 and found["read"][0]["line"] == 1
    status, out, err = call(f"check {file} --gpu t4", capsys)
    assert status == 3 and err.count("\n") == 1 and "does not fit" in err and "No available memory" in out


def test_check_s_bad_files_are_a_line(tmp_path, capsys):
    for name, data in (
        ("a.bin", bytes(range(256)) * 40),
        ("b.sh", b"echo hello\n"),
        ("c.sh", b"x" * 5_000_000),
    ):
        file = tmp_path / name
        file.write_bytes(data)
        status, out, err = call(f"check {file}", capsys)
        assert status == 5 and err.startswith("Cannot say") and err.count("\n") == 1 and name in err
    status, out, err = call(f"check {tmp_path}/nothing.sh", capsys)
    assert status == 2 and out == "" and "No such file" in err


def test_check_takes_a_gpu_of_one_s_own(tmp_path, capsys):
    file, own = tmp_path / "run.sh", tmp_path / "own.toml"
    file.write_text(SERVER.replace("8B", "70B"), encoding="utf-8")
    own.write_text('like = "h100-sxm"\nname = "Ours"\nhbm_bytes = 288e9\n', encoding="utf-8")
    assert call(f"check {file} --gpu h100-sxm", capsys)[0] == 3
    status, out, _ = call(f"check {file} --gpu-file {own}", capsys)
    assert status == 0 and "Outside of all measured runs: gpu" in out
    own.write_text("hbm_bytes = -1\n", encoding="utf-8")
    status, out, err = call(f"check {file} --gpu-file {own}", capsys)
    assert status == 2 and out == "" and "hbm_bytes must be" in err and "own.toml:1" in err


def test_a_gpu_and_a_model_of_one_s_own_need_a_file_each_and_no_edit(tmp_path, capsys):
    """Twice an H100's arithmetic and memory bandwidth halve the time of a step that sends nothing, and its
    node is as large as the file says."""
    twice, model = tmp_path / "twice.toml", tmp_path / "config.json"
    twice.write_text(
        'like = "h100-sxm"\nname = "Twice"\nbf16_flops_per_s = 1.978e15\nhbm_bytes_per_s = 6.7e12\n'
    )
    model.write_text(
        '{"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 16,'
        ' "num_key_value_heads": 4, "intermediate_size": 8192, "vocab_size": 32000}'
    )
    asked = f"--model-file {model} --gpus 1 --global-batch 4 --seq 4096 --micro-batch 4 --zero 0"
    usual = answer(f"estimate {asked} --gpu h100-sxm", capsys)
    faster = answer(f"estimate {asked} --gpu-file {twice}", capsys)
    assert usual["step_s"] / faster["step_s"] == pytest.approx(2.0, rel=0.02)
    found = answer(
        f"plan --model-file {model} --gpu-file {twice} --gpus 8 --global-batch 64 --seq 4096", capsys
    )
    assert found["best"]["fits"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_to_which_nobody_writes_is_not_waited_for(tmp_path, monkeypatch):
    from engine import __main__ as command

    monkeypatch.setattr(command, "PATIENCE_S", 0.2)
    pipe = tmp_path / "launch.sh"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="nobody wrote to it"):
        command._texts([str(pipe)])
    writer = Thread(target=pipe.write_text, args=("vllm serve x",))
    monkeypatch.setattr(command, "PATIENCE_S", 60.0)
    writer.start()
    assert command._texts([str(pipe)]) == {str(pipe): "vllm serve x"}
    writer.join()


# -- calibrate ---------------------------------------------------------------------------------------------
def test_calibrate_compares_a_log_keeps_the_run_and_the_next_estimate_takes_it_into_account(tmp_path, capsys):
    launch, log, profile = tmp_path / "run.sh", tmp_path / "train.log", tmp_path / "cluster.toml"
    launch.write_text("tune run --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full\n")
    step_s = answer(f"check {launch} --gpu h100-sxm", capsys)["step_s"]
    bars = [f" {i}%|█ | {i}/60 [00:{i:02}<01:12,  {1.3 * step_s:.3f}s/it]" for i in range(1, 40)]
    log.write_text("\r".join(bars))
    found = answer(f"calibrate {launch} --gpu h100-sxm --log {log} --into {profile}", capsys)
    assert found["step"]["ratio"] == pytest.approx(1.3, abs=0.01) and not found["step"]["inside"]
    assert found["profile_runs"] == 1 and found["terms"]
    after = answer(f"check {launch} --gpu h100-sxm --profile {profile}", capsys)
    once = after["calibrated"]["step_s"]
    assert after["step_s"] == step_s < once
    found = answer(f"calibrate {launch} --gpu h100-sxm --log {log} --into {profile}", capsys)
    assert found["profile_runs"] == 2
    after = answer(f"check {launch} --gpu h100-sxm --profile {profile}", capsys)
    assert after["step_s"] == step_s and once < after["calibrated"]["step_s"] < 1.3 * step_s
    _, out, _ = call(f"check {launch} --gpu h100-sxm --profile {profile}", capsys)
    assert "Calibrated by 2 runs of your own" in out
    job = "--model llama3.1-8b --gpu h100-sxm --gpus 8 --global-batch 64 --seq 4096"
    assert answer(f"plan {job} --profile {profile}", capsys)["calibrated"]["runs"] == 0  # another program


@pytest.mark.parametrize("more", ["", "--memory-bytes 5e10 --into {}/x.toml", "--step-s 0"])
def test_calibrate_without_a_time_is_a_line(more, tmp_path, capsys):
    launch = tmp_path / "run.sh"
    launch.write_text("tune run --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full\n")
    status, out, err = call(f"calibrate {launch} --gpu h100-sxm {more.format(tmp_path)}", capsys)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "x.toml").exists()


# -- --help ------------------------------------------------------------------------------------------------
MINE = {
    "train.sh": "deepspeed --num_gpus 1 train.py --model_name_or_path Qwen/Qwen2.5-0.5B --bf16 True "
    "--per_device_train_batch_size 1 --max_seq_length 1024 "
    "--deepspeed ds.json\n",
    "ds.json": '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}',
    "serve.sh": SERVER,
    "config.json": '{"model_type": "llama", "num_hidden_layers": 8, "hidden_size": 1024, "vocab_size": 32000,'
    '"num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2816}',
}


@pytest.mark.parametrize("name", list(COMMANDS))
def test_each_example_of_a_help_runs(name, tmp_path, monkeypatch, capsys):
    """As it stands there, in a folder that has the files which it names."""
    monkeypatch.chdir(tmp_path)
    for file, text in MINE.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    top = parser("", "system-ml")
    said = top.commands.choices[name].format_help()
    assert max(len(line) for line in said.splitlines()) <= 80 and "Exit status: 0" in said
    shown = " ".join(said.split("examples:")[1].split("Exit status")[0].split())
    lines = [line.strip() for line in shown.split("system-ml ") if line]
    assert lines == [" ".join(f"{name} {one}".split()) for one in EXAMPLES_OF[name]]
    for line in lines:
        status = main(shlex.split(line))
        assert status == 0, (line, capsys.readouterr().err)


def test_a_verdict_has_a_colour_in_a_terminal_alone(tmp_path, monkeypatch, capsys):
    file = tmp_path / "run.sh"
    file.write_text(SERVER, encoding="utf-8")
    for gpu, verdict, status in (("h100-sxm", "fits", 32), ("t4", "does not fit", 31)):
        assert "\x1b" not in "".join(call(f"check {file} --gpu {gpu}", capsys)[1:])
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        assert f": \x1b[1;{status}m{verdict}\x1b[0m" in call(f"check {file} --gpu {gpu}", capsys)[1]
        assert "\x1b" not in call(f"check {file} --gpu {gpu} --json", capsys)[1]
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in call(f"check {file} --gpu {gpu}", capsys)[1]
        monkeypatch.undo()
