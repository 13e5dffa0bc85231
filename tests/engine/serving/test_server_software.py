"""The time that serving programs add to a model's steps; fitted times come from runs that are not used to
judge the engine."""

import math
from dataclasses import replace

import numpy as np
import pytest

import engine
from engine import catalog, validation
from engine.calibration import launch_costs
from engine.catalog.software import ServingSoftware
from engine.one_gpu import capture
from engine.serving import inference, server_software
from engine.serving.inference import Serving
from engine.step import layout
from tests.said import refused

LLAMA = catalog.model("llama3-8b")
H100 = layout.machine(catalog.gpu("h100-sxm"))
NARROW = layout.machine(catalog.gpu("h100-sxm"), "fp8")
PLAIN = ServingSoftware("plain", "a plain program", "serving")


def served(at=H100, model=LLAMA, **asked):
    return inference.infer(model, at, Serving(**{"prompt": 1024, "output": 128} | asked))


def fitting(start: str) -> list[dict]:
    """The cases on which something was fitted and whose id begins with ``start``."""
    return [case for case in validation.load() if case["id"].startswith(start) and case["fitted"] is True]


def missing_s(case: dict, by: ServingSoftware) -> float:
    """The time by which a measured run was longer than the engine's run with this software."""
    at = layout.machine(catalog.gpu(case["gpu"]), case["precision"])
    said = inference.infer(validation.model_of(case), at, Serving(**case["serving"]))
    return case["measured"]["latency_s"] - server_software.run_by(by, said).latency_s


def test_a_plain_program_adds_nothing():
    said = served(tp=2, batch=4)
    assert server_software.run_by(PLAIN, said) == said


def test_what_lies_between_two_steps_comes_once_a_token():
    said, by = served(batch=4), replace(PLAIN, between_s=1e-3)
    assert server_software.run_by(by, said).latency_s - said.latency_s == pytest.approx(128 * 1e-3)


def test_what_a_request_takes_comes_once():
    said, by = served(batch=4), replace(PLAIN, request_s=0.1)
    assert server_software.run_by(by, said).latency_s - said.latency_s == pytest.approx(0.1)


def test_casting_costs_four_kernels_a_layer_and_nothing_in_16_bits():
    by = replace(PLAIN, casts=True)
    said = served(NARROW)
    more_s = server_software.run_by(by, said).decode.total_s - said.decode.total_s
    one_s = NARROW.chip.quantise.launch_s
    assert more_s == pytest.approx(4 * LLAMA.depth * one_s, rel=0.01)
    assert server_software.run_by(by, served()) == served()
    assert server_software.casts_s(served(NARROW, tp=2), 4096) < server_software.casts_s(
        said, 4096
    )  # the parts are narrower


def test_one_launcher_delays_every_all_reduce_by_a_launch_for_each_gpu():
    by, said = replace(PLAIN, one_launcher=True), served(tp=8)
    more_s = server_software.run_by(by, said).decode.communication_s - said.decode.communication_s
    assert more_s == pytest.approx(2 * LLAMA.depth * 8 * launch_costs.LAUNCH_FOR_ANOTHER_S)
    assert server_software.run_by(by, served(tp=1)) == served(tp=1)


def test_beyond_the_graph_python_sets_the_pace_where_the_gpu_is_faster():
    by = replace(PLAIN, captured_tokens=8192.0)
    long = served(prompt=10240)
    issue_s = LLAMA.depth * capture.kernels_per_layer("eager") * launch_costs.ISSUE_S
    assert server_software.run_by(by, long).decode.total_s == pytest.approx(issue_s)
    assert server_software.run_by(by, long).prefill == long.prefill
    assert server_software.run_by(by, served(prompt=8000)) == served(prompt=8000)
    slow = served(prompt=10240, model=catalog.model("llama3-70b"))
    assert server_software.run_by(by, slow) == slow


def test_the_count_of_eager_kernels_is_the_recorded_one():
    assert capture.kernels_per_layer("eager") == server_software.EAGER_LAYER


def test_the_last_token_of_a_prompt_alone_costs_a_decode_step():
    by, said = replace(PLAIN, last_alone=True), served()
    step_s = inference.decode_step(LLAMA, H100, 1, 1, 1024).total_s
    assert server_software.run_by(by, said).ttft_s == pytest.approx(said.ttft_s + step_s)
    assert server_software.run_by(by, served(prompt=1)) == served(prompt=1)


@pytest.mark.parametrize("parts", [dict(pp=2), dict(dp=2)])
def test_what_a_program_does_is_known_of_one_tensor_group(parts):
    """No pipeline and no group of experts was measured."""
    said = served()
    asked = replace(said, serving=replace(said.serving, **parts))
    with refused("pp and dp must be 1"):
        server_software.run_by(PLAIN, asked)


def test_an_unknown_program_is_refused():
    with refused("software", "faster-transformer"):
        server_software.run_by("vllm-9", served())


def test_the_interface_names_a_program():
    asked = {"tp": 2, "prompt": 1024, "output": 128}
    said = engine.serve("llama3-8b", "h100-sxm", software="vllm-0", **asked)
    assert said == server_software.run_by("vllm-0", engine.serve("llama3-8b", "h100-sxm", **asked))
    with refused("pp", "dp", "1", "software"):
        engine.serve("llama3-8b", "h100-sxm", pp=2, batch=2, software="vllm-0")


# -- the fitted times ----------------------------------------------------------------------------------------
def test_what_faster_transformer_does_between_tokens_is_read_off_its_models_for_one_gpu():
    """At one and two users, from the two lengths of each, so that what a request takes once drops out."""
    shipped = catalog.serving_software("faster-transformer")
    by = replace(shipped, between_s=0.0)
    found = {
        (c["id"].split("_")[1], c["serving"]["batch"], c["serving"]["output"]): c for c in fitting("ft_")
    }
    each = [
        (missing_s(found[model, users, 32], by) - missing_s(found[model, users, 8], by)) / 24
        for model in ("6.7b", "1.3b", "350m")
        for users in (1, 2)
    ]
    assert float(np.median(each)) == pytest.approx(shipped.between_s, abs=0.1e-3)
    assert max(each) < 2 * min(each)


def test_what_a_request_takes_on_triton_is_read_off_gpt_89b():
    shipped = catalog.serving_software("faster-transformer-on-triton")
    by = replace(shipped, request_s=0.0)
    each = [missing_s(case, by) for case in fitting("ft_89b")]
    assert len(each) == 4
    assert float(np.median(each)) == pytest.approx(shipped.request_s, abs=2e-3)
    users = {(c["serving"]["batch"], c["serving"]["output"]): missing_s(c, by) for c in fitting("ft_89b")}
    for few in (1, 2):  # a time of the request and not of its steps: as long for 8 tokens as for 32
        assert users[few, 32] == pytest.approx(users[few, 8], rel=0.1)


def test_what_vllm_does_between_tokens_is_read_off_qwen():
    """From 512 tokens on, where a tenth of a second is nothing."""
    shipped = catalog.serving_software("vllm-0")
    by = replace(shipped, between_s=0.0)
    cases = [case for case in fitting("vllm072_qwen") if case["serving"]["output"] >= 512]
    assert len(cases) == 4 * 2 * 3
    each = [missing_s(case, by) / case["serving"]["output"] for case in cases]
    assert float(np.median(each)) == pytest.approx(shipped.between_s, abs=0.05e-3)


def test_no_fitted_time_belongs_to_a_run_that_judges():
    judged = {case["id"] for case in validation.load() if "software" in case and not case["fitted"]}
    fitted = {case["id"] for case in validation.load() if "software" in case and case["fitted"]}
    assert len(judged) == 10 + 15 + 20 + 96 + 6 and not judged & fitted
    assert not any(
        name.startswith(("ft_89b", "ft_6.7b", "ft_1.3b", "ft_350m", "vllm072_qwen")) for name in judged
    )


@pytest.mark.parametrize("key", catalog.serving_programs())
def test_every_program_is_better_met_with_what_it_does(key):
    """On the rows that fitted nothing."""
    cases = [case for case in validation.load() if case.get("software") == key and not case["fitted"]]
    plain = [row.error for case in cases for row in validation.rows_of(case | {"software": None})]
    said = [row.error for case in cases for row in validation.rows_of(case)]
    assert np.mean(np.abs(said)) < 0.75 * np.mean(np.abs(plain))
    assert np.mean(np.abs(said)) < 0.12 and math.isfinite(max(said))
