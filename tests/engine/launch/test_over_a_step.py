"""The allocator's view of a launch: the estimate's bytes, in the order of the schedule, through the allocator
that lesson 13 executes."""

import pytest

import engine
from engine.frameworks.registry import frameworks
from engine.launch import over_a_step
from engine.launch.verdict import GIB, check_launch
from engine.mechanism.memory import FRAMEWORK_BYTES
from engine.validation import launch_cases
from tests.cases import in_one_test
from tests.engine.launch.test_verdict import MEGATRON

CASES = {
    name: check_launch(case["texts"], launch_cases.gpu_of(case), case["gpus"], ())
    for name, case in launch_cases.cases().items()
}
TRAINED = {name: report for name, report in CASES.items() if report.estimate}


@in_one_test("name", TRAINED)
def test_it_stays_within_the_estimate_and_between_its_own_bounds(name):
    """The estimate adds what is never there at once: a layer that is rebuilt, and the logits."""
    report = TRAINED[name]
    found = over_a_step.of_report(report)
    theirs = report.total_bytes - FRAMEWORK_BYTES
    there = report.capacity_bytes - FRAMEWORK_BYTES
    assert 0.8 * theirs < found.peak_bytes <= 1.02 * theirs
    assert found.peak_bytes <= found.reserved_bytes
    # without pressure nothing is given back, and what Adam takes in one piece may not fit in between
    assert found.expandable_bytes <= 1.1 * found.reserved_bytes
    assert found.peak_bytes > there if found.failed else found.reserved_bytes <= there
    last, first = found.moments[-1], found.moments[0]
    assert last.what == "optimizer" and last.allocated_bytes < max(m.allocated_bytes for m in found.moments)
    assert first.what == "forward 1"


def test_a_stage_goes_up_through_its_warm_up_and_down_to_its_state():
    report = TRAINED["bloom-176b"]
    found = over_a_step.of_report(report)
    names = [moment.what.split(" ")[0] for moment in found.moments]
    stages = report.estimate.layout.pp
    assert names[:stages] == ["forward"] * stages and names[stages] == "backward"  # the first stage of 1F1B
    ends = [moment.allocated_bytes for moment in found.moments]
    assert ends[:stages] == sorted(ends[:stages]) and found.drawn < found.micro_batches


def test_batches_of_varying_length_fragment_more_than_those_of_one():
    texts = launch_cases.cases()["llama-7b-v100-zero3"]["texts"]
    estimate = engine.check_launch(texts, "v100", 8).estimate
    varied, even = (over_a_step.of(estimate, frameworks()[name]) for name in ("hugging_face", "torchtitan"))
    assert varied.varied and not even.varied
    assert varied.wasted_bytes >= even.wasted_bytes
    assert "differ in length" in over_a_step.words(varied, 30 * GIB)


def test_an_unfused_loss_without_room_is_said_to_fragment():
    """Without expandable segments, which torchtitan's launcher turns on: then it does not. torchtitan's log
    gives the most that PyTorch reserved, which is a twelfth more than ours. It was closer as long as its file
    was read as recomputing every second layer; it recomputes operators, which keeps less."""
    report = TRAINED["titan-8b-8"]
    said = over_a_step.words(
        over_a_step.of(report.estimate, frameworks()["deepspeed"]), report.capacity_bytes
    )
    assert "fragments" in said and "expandable_segments:True" in said
    as_launched = over_a_step.of_report(report)
    assert "makes PyTorch's segments expandable" in over_a_step.words(as_launched, report.capacity_bytes)
    published = launch_cases.cases()["titan-8b-8"]["memory_gib"] * GIB
    assert published / as_launched.reserved_bytes == pytest.approx(1.08, abs=0.02)


def test_a_server_has_no_step_and_two_ways_at_once_no_single_stage():
    assert over_a_step.of_report(CASES["vllm-8b-h100"]) is None
    assert over_a_step.of_report(engine.check_launch(MEGATRON, "h100-sxm")) is not None


def test_other_models_leave_less_to_a_step():
    """verl's engine keeps its CUDA context while it sleeps, and the reference an eighth of its weights."""
    text = (
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_prompt_length=512 "
        "data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct "
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 actor_rollout_ref.actor.use_kl_loss=True "
        "trainer.n_gpus_per_node=8 trainer.nnodes=1"
    )
    report = engine.check_launch(text, "h100-sxm")
    found = over_a_step.of_report(report)
    assert found is not None and report.parts is not None
    assert found.beside_bytes == pytest.approx(FRAMEWORK_BYTES + 1e9 + report.parts["reference"])


def test_tensors_that_would_fit_but_for_the_pieces_between_them():
    """Eight H200 train an adapter of DoRA on a 70B: the report says "close", and its batches differ."""
    case = launch_cases.strangers()["llamafactory-llama3.3-70b-dora-zero3-8xh200"]
    report = check_launch(case["texts"], case["gpu"], case["gpus"], ())
    found = over_a_step.of_report(report)
    assert found is not None and report.close and found.failed
    assert found.peak_bytes < report.capacity_bytes - found.beside_bytes < found.reserved_bytes
    said = over_a_step.words(found, report.capacity_bytes)
    assert "in pieces in which nothing fits" in said and "expandable_segments:True would reserve" in said
