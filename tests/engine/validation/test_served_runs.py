"""Servers under load: what the engine computes for them, which rows are refused, and how the others are
summarised."""

import csv

import numpy as np
import pytest

from engine import catalog
from engine.mechanism.shape import shape
from engine.serving import decoding, step_costs
from engine.step import layout
from engine.validation import accuracy, runs, served_runs

MLPERF = dict(
    family="A benchmark", model="llama2-70b", gpu="h200", accelerators="8", precision="fp8",
    scenario="server", prompt_tokens_mean="", output_tokens_mean="293", concurrency="",
    tokens_per_s="32000", tpot_p50_s="0.15", note="",
)  # fmt: skip
LOOP = MLPERF | dict(
    family="A loop", model="minimax-m2.5", scenario=served_runs.CLOSED, prompt_tokens_mean="1024",
    output_tokens_mean="128", concurrency="32", tokens_per_s="800", tpot_p50_s="",
)  # fmt: skip


def written(folder, *rows):
    with (folder / served_runs.TABLE).open("w", newline="") as file:
        lines = csv.DictWriter(file, list(MLPERF))
        lines.writeheader()
        lines.writerows(rows)
    return folder


def test_a_fleet_is_asked_at_the_time_of_a_token_that_was_measured():
    """Of every degree the most users whose tokens come in time, and the degree that brings most."""
    at = layout.machine(catalog.gpu("h200"), "fp8")
    best = 0.0
    for tp in (1, 2, 4, 8):
        for users in decoding.USERS:
            one = decoding.steady(catalog.model("llama2-70b"), at, tp, users, 294.0, 293.0, 1.0, 1.0)
            if one.token_s <= 0.15:
                best = max(best, float(one.tokens_per_s_per_gpu))
    assert served_runs.predicted(MLPERF) == pytest.approx(8 * best)
    assert served_runs.predicted(MLPERF | dict(tpot_p50_s="")) > served_runs.predicted(MLPERF)


def test_a_loop_writes_its_clients_tokens_in_a_step_with_a_share_of_a_prompt():
    """32 clients, answers of 128 tokens: 32 / 127 prompts of 1,024 tokens come in each step."""
    at = layout.machine(catalog.gpu("h200"), "fp8")
    costs = step_costs.costs(served_runs.MINIMAX, at, 8, 1024, context=1088)
    joining = 32 / 127
    step_s = (
        np.interp(32 + joining * 1024, costs.rows, costs.rows_s)
        + joining * 1024**2 / 2 * costs.pair_s
        + 32 * 1088 * costs.cached_s
    )
    assert served_runs.predicted(LOOP) == pytest.approx(joining / step_s * 128, rel=0.01)
    spread = LOOP | dict(note="attention data parallel over 8, experts over 8")
    assert served_runs.predicted(spread) != served_runs.predicted(LOOP)


def test_fewer_clients_than_gpus_leave_some_gpus_without_any():
    """Eight clients have a GPU each; four have as much for each of them, and half as much together."""
    spread = LOOP | dict(note="attention data parallel over 8, experts over 8")
    eight, four = (served_runs.predicted(spread | dict(concurrency=clients)) for clients in ("8", "4"))
    assert four == pytest.approx(eight / 2)


def test_the_mixture_has_the_parameters_that_its_name_says():
    """230 billion, 10 of them for a token (MiniMax-M2.5), which leaves out one of the two embeddings."""
    size = shape(served_runs.MINIMAX)
    assert size.total_params == pytest.approx(230e9, rel=0.01)
    assert size.active_params - size.embedding_params == pytest.approx(10e9, rel=0.06)


def test_rows_are_judged_summed_up_and_refused_with_a_reason(tmp_path):
    rows = (
        MLPERF,
        MLPERF | dict(tokens_per_s="16000"),
        LOOP,
        MLPERF | dict(gpu="b60"),
        MLPERF | dict(model="x"),
    )
    found, refused = served_runs.read(written(tmp_path, *rows))
    assert len(found) == 3 and refused == {
        "gpu b60": 1,
        "model x: the lengths of its prompts are not stated": 1,
    }
    assert found[0].ratio == pytest.approx(32000 / served_runs.predicted(MLPERF)) == 2 * found[1].ratio
    assert found[0].rested < found[0].ratio  # faster products, so less is missing
    said = served_runs.summaries(found, runs.summary)
    assert said["A benchmark, h200, server"]["runs"] == 2 and set(said) == {each.name for each in found}
    errors = [1 / each.ratio - 1 for each in found[:2]]
    assert said["A benchmark, h200, server"]["mean_signed"] == pytest.approx(np.mean(errors), abs=1e-4)


def test_without_the_table_it_says_which_is_missing(tmp_path):
    with pytest.raises(ValueError, match=r"must hold serving_runs\.csv"):
        served_runs.read(tmp_path)


def test_what_the_page_says_of_the_causes():
    """Clocks are counted: of the gap on H100s they would explain another tenth, on H200s a fifth or so."""
    found = {each.name: each for each in accuracy.servers()}

    def explained(gpu):
        rows = [each for name, each in found.items() if f", {gpu}, " in name and "MLPerf" in name]
        return np.mean([1 - each.rested_signed / each.mean_signed for each in rows])

    assert 0.05 < explained("h100-sxm") < 0.15 and 0.15 < explained("h200") < 0.3
    fours = [each for name, each in found.items() if ", b200, " in name]
    assert all(each.mean_signed < -0.3 for each in fours)
    (mixture,) = [each for name, each in found.items() if "minimax" in name]
    assert 0.8 < mixture.mean_signed < 1.3
