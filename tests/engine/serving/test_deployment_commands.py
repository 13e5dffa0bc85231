"""The commands of a deployment: only flags that the programs have, and read back they are the same
deployment."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.launch import frameworks
from engine.launch.verdict import check_launch
from engine.serving import deployment_commands, deployments
from engine.serving.deployment import Deployment, Limits, Load, Measured
from engine.serving.deployment_commands import PROGRAMS
from engine.serving.drafts import Drafts
from engine.step.layout import Machine

KNOWN = tomllib.loads((Path(__file__).parent / "server_flags.toml").read_text(encoding="utf-8"))


@st.composite
def planned(draw):
    """Any deployment that the search may return."""
    prefill = draw(st.integers(0, 7))
    tp = draw(st.sampled_from([1, 2, 4, 8]))
    prefill_tp = draw(st.sampled_from([0, 1, 2, 4, 8])) if prefill else 0
    return Deployment(
        draw(st.sampled_from(["llama3-70b", "llama3.1-8b", "qwen3-32b", "mixtral-8x7b"])),
        "h100-sxm",
        tp,
        prefill + draw(st.integers(1, 20)),
        prefill,
        draw(st.sampled_from(["bf16", "fp8", "int4"])),
        draw(st.sampled_from(["bf16", "fp8"])),
        draw(st.sampled_from([256, 1024, 8192])),
        draw(st.sampled_from([8, 64, 1024])),
        draw(st.sampled_from([None, Drafts(3, 0.7, 0.001)])),
        draw(st.integers(1, 32)) * 256,
        Load(draw(st.floats(0.1, 1000.0)), prefix_share=draw(st.sampled_from([0.0, 0.5]))),
        Limits(1.0, 0.05),
        Measured(0.5, 0.01, 0.03, 0.001, 0.02, 1000),
        10.0,
        200.0,
        3.0,
        "capacity",
        (),
        0.0,
        prefill_tp if prefill_tp != tp else 0,
    )


def lines(text: str) -> list[str]:
    """The commands, each on one line."""
    whole = text.replace("\\\n", " ")
    return [line for line in whole.splitlines() if line and not line.startswith("#")]


def pools(of: Deployment) -> list[tuple[int, int]]:
    """Replicas and degree of each pool."""
    if not of.apart:
        return [(of.replicas, of.tp)]
    return [(of.prefill_replicas, of.prefill_tp or of.tp), (of.decode_replicas, of.tp)]


def servers(text: str, program: str) -> list[str]:
    """The commands of the pools. A worker of Dynamo hands its flags on to vLLM, but for its role; its front
    end has a command of its own."""
    found = lines(text)
    if program != "dynamo":
        return found
    assert found[0].startswith("python -m dynamo.frontend --router-mode ")
    worker = r"python -m dynamo\.vllm --model (\S+)(?: --disaggregation-mode \w+)?"
    assert all(re.match(worker, line) for line in found[1:])
    return [re.sub(worker, r"vllm serve \1", line) for line in found[1:]]


@pytest.mark.parametrize("program", PROGRAMS)
@given(planned())
@settings(max_examples=120, deadline=None)
def test_every_flag_is_one_that_the_program_has(program, of):
    known = KNOWN[program]
    for line in lines(deployment_commands.commands(of, program)):
        words = shlex.split(line)
        for word, value in zip(words, [*words[1:], ""]):
            if word.startswith("--"):
                assert word in known["flags"], word
                assert value in known.get("choices", {}).get(word, [value])


def test_every_known_flag_can_be_written():
    """The list holds nothing that no export uses."""
    for program, known in KNOWN.items():
        text = ""
        for prefill in (0, 1):
            for weights in ("bf16", "fp8"):
                for share in (0.0, 0.5):
                    text += deployment_commands.commands(
                        Deployment(
                            *("llama3-70b", "h100-sxm", 2, 3, prefill, weights, "fp8", 512, 64, None, 4096),
                            *(Load(1, prefix_share=share), Limits(1.0, 0.05)),
                            *(Measured(0.5, 0.01, 0.03, 0.001, 0.02, 1000), 10.0, 200.0, 3.0, "capacity", ()),
                        ),
                        program,
                    )
        assert not [flag for flag in known["flags"] if f"{flag} " not in f"{text} ".replace("\n", " ")]


@pytest.mark.parametrize("program", PROGRAMS)
@given(planned())
@settings(max_examples=120, deadline=None)
def test_what_is_read_back_is_the_same_deployment(program, of):
    """All that a program has flags for. TensorRT-LLM and Dynamo start replicas one by one, and the first has
    no flag for the format of the cache: a comment says how many, and which."""
    text = deployment_commands.commands(of, program)
    commands = servers(text, program)
    assert len(commands) == len(pools(of))
    for line, (replicas, tp) in zip(commands, pools(of)):
        reading = frameworks.read(line, None)
        assert reading.launch is not None and not reading.faults, [str(fault) for fault in reading.faults]
        launch, server = reading.launch, reading.launch.server
        assert (
            launch.framework == ("vllm" if program == "dynamo" else program)
            and launch.model.key == of.model
            and not launch.refused
        )
        assert (server.tp, server.pp, server.chunk, server.longest) == (tp, 1, of.chunk, of.longest)
        assert (server.weight_precision or "bf16") == of.weights
        if program == "trtllm":
            assert server.requests == of.largest_batch and server.replicas == 1
            assert f"# {replicas} times, on {tp} GPUs each" in text
            assert of.kv_precision == "bf16" or "dtype: fp8" in text
            continue
        if program == "dynamo":
            assert f"# {replicas} times, on {tp} GPUs each" in text and server.replicas == 1
            assert (server.requests, server.kv_precision) == (of.largest_batch, of.kv_precision)
            continue
        each = server.requests // replicas if program == "sglang" else server.requests
        assert (server.replicas, each, server.kv_precision) == (replicas, of.largest_batch, of.kv_precision)
        assert launch.gpus == replicas * tp


@given(planned())
@settings(max_examples=60, deadline=None)
def test_what_has_no_flag_is_a_comment(of):
    for program in PROGRAMS:
        told = [line for line in deployment_commands.commands(of, program).splitlines() if line[0] == "#"]
        words = " ".join(told)
        assert ("drafted tokens" in words) == (of.drafts is not None)
        assert ("4 bits" in words) == (of.weights == "int4")
        assert not of.apart or "router" in words or "disaggregated" in words or program == "dynamo"
        assert ("etcd" in words) == (program == "dynamo")


@given(planned())
@settings(max_examples=5, deadline=None)
def test_a_name_of_ones_own_and_an_unknown_program(of):
    assert "vllm serve mine/model " in deployment_commands.commands(of, "vllm", "mine/model")
    with pytest.raises(ValueError, match="program must be one of vllm, sglang, trtllm, dynamo; got 'tgi'"):
        deployment_commands.commands(of, "tgi")


def test_the_cheapest_deployment_is_one_that_check_says_fits():
    """The two rooms agree on memory: what is planned can be launched, on as many GPUs."""
    load = Load(8, 1500, 200, 0.5, 0.5)
    best = deployments.deploy(
        catalog.model("llama3-70b"), Machine.of("h100-sxm"), load, Limits(1.0, 0.05), top=1
    ).best
    for program in PROGRAMS:
        for line in servers(deployment_commands.commands(best, program), program):
            report = check_launch(line, gpu="h100-sxm")
            assert report.verdict == "fits", (program, report.verdict)
            assert report.launch.precision == best.weights
