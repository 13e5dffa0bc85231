"""The time that serving programs add to a model's steps; fitted times come from runs that are not used to
judge the engine."""

import math
from dataclasses import replace

import numpy as np
import pytest

import engine
from engine import catalog, validation
from engine.calibration import bands, launch_costs
from engine.catalog.software import ServingSoftware
from engine.mechanism.shape import shape
from engine.one_gpu import capture
from engine.serving import divided, inference, server_software
from engine.serving.inference import Serving
from engine.step import layout
from engine.validation import served_steps
from tests.said import refused

LLAMA = catalog.model("llama3-8b")
H100 = layout.machine(catalog.gpu("h100-sxm"))
NARROW = layout.machine(catalog.gpu("h100-sxm"), "fp8")
PLAIN = ServingSoftware("plain", "a plain program", "serving")


def served(at=H100, model=LLAMA, **asked):
    return inference.infer(model, at, Serving(**{"prompt": 1024, "output": 128} | asked))


def named(said, by=PLAIN):
    """The same answer, said to be this program's."""
    return replace(said, software=by.key)


def fitting(start: str) -> list[dict]:
    """The cases on which something was fitted and whose id begins with ``start``."""
    return [case for case in validation.load() if case["id"].startswith(start) and case["fitted"] is True]


def missing_s(case: dict, by: ServingSoftware) -> float:
    """The time by which a measured run was longer than the engine's run with this software."""
    at = layout.machine(catalog.gpu(case["gpu"]), case["precision"])
    said = inference.infer(validation.model_of(case), at, Serving(**case["serving"]))
    return case["measured"]["latency_s"] - server_software.run_by(by, said).latency_s


def test_a_plain_program_adds_nothing_but_its_name():
    said = served(tp=2, batch=4)
    assert server_software.run_by(PLAIN, said) == named(said)


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
    assert server_software.run_by(by, served()) == named(served())
    assert server_software.casts_s(served(NARROW, tp=2), 4096) < server_software.casts_s(
        said, 4096
    )  # the parts are narrower


def test_one_launcher_delays_every_all_reduce_by_a_launch_for_each_gpu():
    by, said = replace(PLAIN, one_launcher=True), served(tp=8)
    more_s = server_software.run_by(by, said).decode.communication_s - said.decode.communication_s
    assert more_s == pytest.approx(2 * LLAMA.depth * 8 * launch_costs.LAUNCH_FOR_ANOTHER_S)
    assert server_software.run_by(by, served(tp=1)) == named(served(tp=1))


def test_beyond_the_graph_python_sets_the_pace_where_the_gpu_is_faster():
    by = replace(PLAIN, captured_tokens=8192.0)
    long = served(prompt=10240)
    issue_s = LLAMA.depth * capture.kernels_per_layer("eager") * launch_costs.ISSUE_S
    assert server_software.run_by(by, long).decode.total_s == pytest.approx(issue_s)
    assert server_software.run_by(by, long).prefill == long.prefill
    assert server_software.run_by(by, served(prompt=8000)) == named(served(prompt=8000))
    slow = served(prompt=10240, model=catalog.model("llama3-70b"))
    assert server_software.run_by(by, slow) == named(slow)


def test_the_count_of_eager_kernels_is_the_recorded_one():
    assert capture.kernels_per_layer("eager") == server_software.EAGER_LAYER


def test_the_last_token_of_a_prompt_alone_costs_a_decode_step():
    by, said = replace(PLAIN, last_alone=True), served()
    step_s = inference.decode_step(LLAMA, H100, 1, 1, 1024).total_s
    assert server_software.run_by(by, said).ttft_s == pytest.approx(said.ttft_s + step_s)
    assert server_software.run_by(by, served(prompt=1)) == named(served(prompt=1))


def test_what_a_program_does_to_a_pipeline_is_not_known():
    said = served()
    asked = replace(said, serving=replace(said.serving, pp=2))
    with refused("pp must be 1"):
        server_software.run_by(PLAIN, asked)


def test_each_token_that_is_written_has_its_logits_sorted():
    by, said = replace(PLAIN, token_s=1e-4), served(batch=8)
    ran = server_software.run_by(by, said)
    assert ran.decode.total_s - said.decode.total_s == pytest.approx(8 * 1e-4)
    assert ran.prefill.total_s - said.prefill.total_s == pytest.approx(
        8 * 1e-4
    )  # not each token that is read
    assert ran.prefill_one.total_s - said.prefill_one.total_s == pytest.approx(1e-4)


def test_sorting_takes_as_long_as_a_vocabulary_is_large():
    """Llama 3.1 has 128,256 words, at 0.5 ns each 64 µs a token that is written."""
    said = served(batch=8)
    assert said.model.vocab == 128256
    ran = server_software.run_by(replace(PLAIN, logit_s=0.5e-9), said)
    assert ran.decode.total_s - said.decode.total_s == pytest.approx(8 * 128256 * 0.5e-9)
    assert ran.prefill_one.total_s - said.prefill_one.total_s == pytest.approx(128256 * 0.5e-9)


def test_groups_that_share_experts_write_their_tokens_at_once():
    asked = dict(tp=1, dp=8, batch=80, prompt=512, output=128)
    plain = engine.serve("qwen3-235b-a22b", "h200", **asked)
    ran = server_software.run_by(replace(PLAIN, token_s=1e-4), plain)
    assert ran.decode.total_s - plain.decode.total_s == pytest.approx(10 * 1e-4)


QWEN = catalog.model("qwen3-235b-a22b")  # 94 layers of 128 experts


def test_whole_experts_are_cut_coarsely_where_a_step_has_more_tokens_than_a_rank_has_experts():
    by = replace(PLAIN, coarse_experts=1.5)
    for batch, is_coarse in ((16, False), (17, True)):
        said = divided.infer(QWEN, H100, Serving(tp=8, ep=8, batch=batch, prompt=512, output=128))
        [part] = shape(QWEN).routed
        layer_s = inference.kept_whole_s(part, 1.0 * batch, 8.0, 2.0, H100.chip)
        more_s = server_software.run_by(by, said).decode.total_s - said.decode.total_s
        assert more_s == pytest.approx(is_coarse * 94 * 0.5 * layer_s, abs=1e-9)
    cut = divided.infer(QWEN, H100, Serving(tp=8, batch=64, prompt=512, output=128))
    assert server_software.run_by(by, cut).decode.total_s == pytest.approx(cut.decode.total_s)


def test_each_layer_of_experts_has_kernels_of_its_own():
    by, said = replace(PLAIN, expert_layer_s=1e-5), served(model=QWEN, tp=8)
    assert server_software.run_by(by, said).decode.total_s - said.decode.total_s == pytest.approx(94e-5)


def test_an_unknown_program_is_refused():
    with refused("software", "faster-transformer"):
        server_software.run_by("vllm-9", served())


def test_the_interface_names_a_program():
    asked = {"tp": 2, "prompt": 1024, "output": 128}
    said = engine.serve("llama3-8b", "h100-sxm", software="vllm-0", **asked)
    assert said == server_software.run_by("vllm-0", engine.serve("llama3-8b", "h100-sxm", **asked))
    with refused("pp", "1", "software"):
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


MEASURED = [key for key in catalog.serving_programs() if key != served_steps.PROGRAM]


@pytest.mark.parametrize("key", MEASURED)
def test_every_program_is_better_met_with_what_it_does(key):
    """On the rows that fitted nothing."""
    cases = [case for case in validation.load() if case.get("software") == key and not case["fitted"]]
    plain = [row.error for case in cases for row in validation.rows_of(case | {"software": None})]
    said = [row.error for case in cases for row in validation.rows_of(case)]
    assert np.mean(np.abs(said)) < 0.75 * np.mean(np.abs(plain))
    assert np.mean(np.abs(said)) < 0.12 and math.isfinite(max(said))


def test_vllm_of_2025_is_met_on_models_that_fitted_none_of_its_times():
    """Its rows are kept nowhere, the summaries of ``make calibrate`` are. Bare kernels are far too fast."""
    kinds = bands.runs()["band"]["latency"]
    for experts, most in ((False, 0.14), (True, 0.1)):
        entry = kinds[inference.server_kind(served_steps.PROGRAM, experts)]
        assert entry["runs"] > 60 and entry["mean_error"] < most
    assert bands.runs()["band"][bands.BARE]["all"]["mean_signed"] < -0.25


def test_vllms_times_are_those_that_all_rows_fit():
    by, found = served_steps.program(), bands.runs()["program"][served_steps.PROGRAM]
    for name, value in found.items():
        assert getattr(by, name) == pytest.approx(value, rel=0.02), name
