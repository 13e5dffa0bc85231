"""What programs do beside the model: software.toml, and the runs and readers that name its entries."""

from dataclasses import fields, replace

import pytest

import engine
from engine import catalog, validation
from engine.catalog.software import CHOICES, TrainingSoftware, change, switches
from engine.validation import runs, served_steps
from tests.said import refused

STARTED_FROM = {
    "modern",
    "megatron-core",
    "torchtitan",
    "trainer",
    "torchtune",
    "automodel",
}  # by a Job that says nothing, and by readers


def test_a_job_has_at_most_eight_fields():
    assert len(fields(engine.Job)) <= 8


def test_every_published_run_names_its_program():
    steps = [case for case in validation.load() if case["kind"] == "step"]
    assert len(steps) > 300
    for case in steps:
        by = catalog.training_software(case["job"]["software"])
        assert all(getattr(by, name) != value for name, value in case["job"].get("with", {}).items()), case[
            "id"
        ]


def test_every_program_is_that_of_a_run_or_a_reader():
    cases = validation.load()
    named = {case["job"]["software"] for case in cases if case["kind"] == "step"}
    named |= {case["software"] for case in cases if case.get("software")}
    named.add(served_steps.PROGRAM)  # whose rows are kept nowhere
    assert named | set(runs.PROGRAMS.values()) | STARTED_FROM == set(catalog.all_software())


def test_every_program_has_its_source_and_the_day_it_was_looked_up():
    assert all(each.source and each.checked for each in catalog.all_software().values())


def test_a_job_takes_a_key_an_entry_or_one_that_was_changed():
    entry = engine.software("megatron-core-0.8")
    mine = replace(entry, loss="fused")
    assert engine.Job(8, 8, software="megatron-core-0.8") == engine.Job(8, 8, software=entry)
    assert engine.Job(8, 8, software=mine).software == engine.software("megatron-core-0.8", loss="fused")
    assert engine.Job(8, 8).software == engine.software("modern")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: engine.software("megatron-core-0.9"), ("software", "megatron-core-0.8")),
        (lambda: engine.Job(8, 8, software="vllm-0"), ("software", "trains", "vllm-0")),
        (lambda: engine.Job(8, 8, software=4), ("software", "trains", "4")),
        (lambda: catalog.serving_software("modern"), ("software", "serves", "modern")),
        (lambda: engine.software("modern", flash=True), ("flash", "attention")),
        (lambda: engine.software("modern", key="mine"), ("no field", "key")),
        (
            lambda: engine.software("modern", overlaps="tensor+data"),
            ("overlaps", "data+tensor", "tensor+data"),
        ),
        (lambda: engine.software("modern", sequence_parallel="yes"), ("sequence_parallel", "yes")),
        (lambda: engine.software("modern", loss_chunks=0), ("loss_chunks", "1", "0")),
        (lambda: change("loss"), ("FIELD=VALUE", "loss")),
        (lambda: change("flash=on"), ("FIELD=VALUE", "attention", "flash")),
        (lambda: change("zero_nics=few"), ("zero_nics", "number", "few")),
        (lambda: change("gathers_again=maybe"), ("gathers_again", "on", "maybe")),
    ],
)
def test_what_no_program_has_is_refused(ask, words):
    with refused(*words):
        ask()


def test_each_switch_says_what_it_means_and_what_it_may_be():
    said = TrainingSoftware.__doc__
    assert all(f"- ``{name}``" in said or name == "loss_chunks" for name in switches())
    for name, allowed in CHOICES.items():
        assert all(change(f"{name}={value}") == (name, value) for value in allowed)
        assert isinstance(engine.software("modern", **{name: allowed[-1]}), TrainingSoftware)


@pytest.mark.parametrize("name", [name for name in CHOICES if name != "reshards"])
def test_every_choice_moves_some_estimate(name):
    """Each value gives another step time or memory than the value before it, or is refused, somewhere.
    ``reshards`` says which ZeRO stage a reader takes. What concerns whole matrices is asked with Muon."""
    cases = [
        ("llama3.1-8b", "h100-sxm", "bf16", engine.Layout(16, tp=2, cp=2, zero=3)),
        ("llama3.1-8b", "a100-80", "bf16", engine.Layout(64, tp=4, pp=4, zero=1)),
        ("gpt-oss-120b", "b200", "fp8", engine.Layout(64, ep=32)),
    ]

    recipe = engine.recipe("muon" if name in ("matrices", "orthogonal") else "bf16-adam")

    def answers(value):
        for model, gpu, precision, layout in cases:
            job = engine.Job(1024, 8192, recipe, engine.software("modern", **{name: value}))
            try:
                found = engine.estimate(model, engine.Machine.of(gpu, precision), job, layout)
            except ValueError:
                yield "refused"
            else:
                yield found.step_s, found.terms.total_bytes

    found = [tuple(answers(value)) for value in CHOICES[name]]
    assert len(set(found)) == len(found)
