"""The commands of a deployment: only flags that the programs have, and read back they are the same
deployment."""

import itertools
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import catalog
from engine.frameworks.registry import servers as programs
from engine.frameworks.servers import command
from engine.frameworks.trtllm import IN_FP8
from engine.launch import reading as readings
from engine.launch.commands import commands
from engine.launch.verdict import check_launch
from engine.serving.deployment import Deployment, Limits, Load, finder
from engine.serving.deployment.found import Measured
from engine.serving.drafts import Drafts
from engine.serving.replica import Replica
from engine.step.layout import Machine
from tests.said import refused

PROGRAMS = tuple(programs())
KNOWN = tomllib.loads((Path(__file__).parent / "server_flags.toml").read_text(encoding="utf-8"))


WHOLE = [Replica(tp, pp) for tp in (1, 2, 4, 8) for pp in (1, 2)]
SPREAD = [Replica(1, 1, 4), Replica(2, 1, 4), Replica(1, 1, 8)]


@st.composite
def planned(draw):
    """Any deployment that the search may return."""
    model = draw(st.sampled_from(["llama3-70b", "llama3.1-8b", "qwen3-32b", "mixtral-8x7b"]))
    spread = model.startswith("mixtral") and draw(st.booleans())
    kinds = SPREAD if spread else WHOLE
    prefill = draw(st.integers(1 if spread else 0, 7))
    replica = draw(st.sampled_from(kinds))
    front = draw(st.sampled_from([None, *kinds])) if prefill else None
    return Deployment(
        model,
        "h100-sxm",
        replica,
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
        front if front != replica else None,
    )


def planned_of(model: str, weights: str) -> Deployment:
    """A deployment of a model of the catalogue."""
    return Deployment(
        *(model, "h100-sxm", Replica(8), 2, 0, weights, "bf16", 2048, 64, None, 4096),
        *(Load(1), Limits(1.0, 0.05), Measured(0.5, 0.01, 0.03, 0.001, 0.02, 1000)),
        *(10.0, 200.0, 3.0, "capacity", ()),
    )


OF_A_SHELL = ("#", "for ", "done", "wait", "if ", "fi")
OF_A_PROCESS = re.compile(
    r"(CUDA_VISIBLE_DEVICES|VLLM_NIXL_SIDE_CHANNEL_PORT|VLLM_NIXL_SIDE_CHANNEL_HOST"
    r"|SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK)=(\$\(\([^)]*\)\)|\$\{[^}]*\}|[^\s$])+\s+"
)


def lines(text: str) -> list[str]:
    """The commands, each on one line, without what lets several run beside each other."""
    whole = [OF_A_PROCESS.sub("", line).strip() for line in text.replace("\\\n", " ").splitlines()]
    return [line.removesuffix(" &") for line in whole if line and not line.startswith(OF_A_SHELL)]


def pools(of: Deployment) -> list[tuple[int, Replica]]:
    """Replicas and kind of each pool."""
    if not of.apart:
        return [(of.replicas, of.replica)]
    return [(of.prefill_replicas, of.reads), (of.decode_replicas, of.replica)]


def servers(text: str, program: str) -> list[str]:
    """The commands of the pools. A worker of Dynamo hands its flags on to vLLM, but for its role; its front
    end has a command of its own."""
    found = lines(text)
    if program != "dynamo":
        return found
    assert found[0].startswith("python -m dynamo.frontend --router-mode ")
    worker = (
        r"python -m dynamo\.vllm --model (\S+)(?: --disaggregation-mode \w+)?(?: --discovery-backend file)?"
    )
    assert all(re.match(worker, line) for line in found[1:])
    return [re.sub(worker, r"vllm serve \1", line) for line in found[1:]]


@pytest.mark.parametrize("program", PROGRAMS)
@given(planned())
@settings(max_examples=120, deadline=None)
def test_every_flag_is_one_that_the_program_has(program, of):
    known = KNOWN[program]
    for line in lines(commands(of, program)):
        words = shlex.split(line.replace("${LATER:+", "").replace("}", ""))
        for word, value in zip(words, [*words[1:], ""]):
            if word.startswith("--"):
                assert word in known["flags"], word
                assert value in known.get("choices", {}).get(word, [value])


def test_the_head_promises_the_releases_that_were_read():
    """Each flag stands in the first release and in the last, with its place in both."""
    for program, known in KNOWN.items():
        text = commands(planned_of("llama3-70b", "bf16"), program).splitlines()[1]
        assert f"({known['releases']}):" in text if known["releases"] else "(" not in text
        ends = [part.rsplit(".", 1)[0] for part in next(iter(known["flags"].values()))]
        for flag, places in known["flags"].items():
            assert [part.rsplit(".", 1)[0] for part in places] == ends, flag
            assert all(re.fullmatch(r"[\w/]+\.py(:\d+)?", place) for place in places.values()), flag
        for end in known["releases"].split(" to "):
            assert not end or any(part.startswith(end) for part in next(iter(known["flags"].values())))


def test_every_known_flag_can_be_written():
    """The list holds nothing that no export uses."""
    for program, known in KNOWN.items():
        text = ""
        for prefill, weights, share, replica in itertools.product(
            (0, 1), ("bf16", "fp8"), (0.0, 0.5), (Replica(2, 2), Replica(8, 2), Replica(2), Replica(1, 1, 32))
        ):
            if prefill or replica.dp == 1:
                text += commands(
                    Deployment(
                        *(
                            "qwen3-235b-a22b",
                            "h100-sxm",
                            replica,
                            3,
                            prefill,
                            weights,
                            "fp8",
                            512,
                            64,
                            None,
                            4096,
                        ),
                        *(Load(1, prefix_share=share), Limits(1.0, 0.05)),
                        *(Measured(0.5, 0.01, 0.03, 0.001, 0.02, 1000), 10.0, 200.0, 3.0, "capacity", ()),
                    ),
                    program,
                )
        assert not [flag for flag in known["flags"] if f"{flag} " not in f"{text} ".replace("\n", " ")]


def stored(of: Deployment, program: str) -> str:
    """The name of a checkpoint, where the public one is in another format."""
    named = {"int4": "AWQ", "fp8": "FP8" if program == "trtllm" else ""}.get(of.weights, "")
    return f"{catalog.model(of.model).checkpoint}-{named}" if named else ""


def limits(of: Deployment, one: Replica, program: str, writes: bool) -> tuple[int, int]:
    """Requests at once and tokens of a step of one batch, as the program's own code lets them be: vLLM takes
    no more requests than tokens (config/scheduler.py:331 of 0.33), and low-latency kernels as many as they
    have buffers for."""
    requests, chunk = of.largest_batch, of.chunk
    if program in ("vllm", "dynamo"):
        if writes:
            chunk = max(256 if one.dp > 1 else chunk, requests * one.pp)
        return min(requests * one.pp, chunk) // one.pp, chunk
    return requests, chunk


@pytest.mark.parametrize("program", PROGRAMS)
@given(planned())
@settings(max_examples=120, deadline=None)
def test_what_is_read_back_is_the_same_deployment(program, of):
    """All that a program has flags for. TensorRT-LLM and Dynamo start replicas one by one, and the first has
    no flag for the format of the cache: a comment says how many, and which."""
    text = commands(of, program, stored(of, program))
    started = servers(text, program)
    assert len(started) == len(pools(of))
    for line, (replicas, one) in zip(started, pools(of)):
        reading = readings.read(line, None)
        assert reading.launch is not None and not reading.faults, [str(fault) for fault in reading.faults]
        launch, server = reading.launch, reading.launch.server
        here = min(replicas, max(1, 8 // one.gpus))
        nodes = -(-replicas // here)
        several = nodes > 1 and one.gpus <= 8
        assert (f"# on each of {nodes} nodes of 8 GPUs" in text) == several or len(started) > 1
        assert (
            launch.framework == ("vllm" if program == "dynamo" else program)
            and launch.model.key == of.model
            and not launch.refused
        )
        requests, chunk = limits(of, one, program, line == started[-1] and of.apart)
        assert (server.pp, server.chunk, server.longest) == (one.pp, chunk, of.longest)
        assert (server.weight_precision or "bf16") == of.weights
        if program == "trtllm" or program == "dynamo" or one.dp > 1:
            count = f"{here} times, on {one.gpus} GPUs each" if here > 1 else f"once, on {one.gpus} GPUs,"
            if one.gpus > 8:
                times = f"{replicas} times, each" if replicas > 1 else "once,"
                count = f"{times} on {one.gpus // 8} nodes of 8 GPUs,"
            assert f"# {count}" in text and server.replicas == 1
        if program == "trtllm":
            assert (server.requests, server.tp) == (of.largest_batch, one.tp * one.dp)
            assert of.kv_precision == "bf16" or "dtype: fp8" in text
            assert ("enable_attention_dp: true" in text) == (of.replica.dp > 1)
            continue
        assert (server.tp, server.dp, server.kv_precision) == (one.tp, one.dp, of.kv_precision)
        if program == "dynamo" or one.dp > 1:
            each, together = server.requests // one.pp, one.gpus
        else:
            assert server.replicas == here
            each = server.requests // one.pp // (here if program == "sglang" else 1)
            together = here * one.gpus
        assert (each, launch.gpus) == (requests, together)


@given(planned())
@settings(max_examples=60, deadline=None)
def test_what_has_no_flag_is_a_comment(of):
    for program in PROGRAMS:
        told = [line for line in commands(of, program).splitlines() if line[0] == "#"]
        words = " ".join(told)
        assert ("drafted tokens" in words) == (of.drafts is not None)
        assert ("4 bits" in words) == (of.weights == "int4")
        assert not of.apart or "router" in words or "disaggregated" in words or program == "dynamo"
        assert ("etcd" in words) == (program == "dynamo" and of.gpus > 8)


@given(planned())
@settings(max_examples=60, deadline=None)
def test_the_checkpoint_is_one_that_there_is_and_chats(of):
    model = catalog.model(of.model)
    public = model.chat or model.checkpoint
    for program in PROGRAMS:
        text = commands(of, program)
        name = re.search(r"(serve|--model|--model-path) (\S+)", " ".join(servers(text, program))).group(2)
        if of.weights == "int4" or (program == "trtllm" and of.weights == "fp8"):
            assert name == '"${CHECKPOINT:?name' or name in IN_FP8[public].values()
        else:
            assert name == public
        assert (f"# {public} is gated: ask for access" in text) == (model.access == "gated")
        assert "name your checkpoint" not in text
        assert "is gated" not in commands(of, program, "mine/model")


@given(planned())
@settings(max_examples=60, deadline=None)
def test_no_two_processes_of_a_node_share_a_port_or_a_gpu(of):
    """Bash itself says what each process gets: the programs are replaced by one that prints it."""
    for program in PROGRAMS:
        text = commands(of, program, "mine/model")
        for pool in ("prefill", "decode"):
            told = processes(text, pool)
            gpus = [gpu for devices, _ in told for gpu in devices.split(",") if devices]
            ports = [port for _, port in told if port]
            assert len(set(gpus)) == len(gpus) and len(set(ports)) == len(ports)
            assert all(0 <= int(gpu) < 8 for gpu in gpus)
            started = "POOL" in text or len(told) > 1
            assert not started or program == "dynamo" or len(ports) == len(told)


def processes(text: str, pool: str) -> list[tuple[str, str]]:
    """The GPUs and the port of each process that a script starts on a node of a pool."""
    told = 'echo "START ${CUDA_VISIBLE_DEVICES:-} $*"'
    fakes = "".join(f"{name}() {{ {told}; }}\n" for name in ("vllm", "python", "trtllm-serve"))
    done = subprocess.run(
        ["bash", "-c", fakes + text],
        env={"POOL": pool, "HERE": "10.0.0.2", "FIRST": "10.0.0.1", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    found = []
    for line in done.stdout.splitlines():
        if "dynamo.frontend" not in line:
            devices = re.match(r"START ([\d,]*) ", line).group(1)
            port = re.search(r"--port (\d+)", line)
            found.append((devices, port.group(1) if port else ""))
    return found


def test_a_line_of_a_command_has_100_columns_with_the_stroke_at_its_end():
    """90 columns, a space, a flag of seven and the two of the stroke are a hundred; a flag of eight is on the
    next line."""
    start = "y" * 90
    assert command([("--short",)], start) == [f"{start} --short"]
    assert command([("--longer",)], start) == [f"{start} \\", "  --longer"]


def test_a_model_without_a_public_checkpoint_is_to_be_named():
    of = planned_of("palm-62b", "bf16")
    for program in PROGRAMS:
        text = commands(of, program)
        assert "# name your checkpoint: palm-62b is" in text and "is gated" not in text


def test_a_checkpoint_that_comes_in_4_bits_takes_no_flag_for_them():
    """vLLM reads MXFP4 from the checkpoint's own configuration; awq_marlin would be refused."""
    for program in PROGRAMS:
        text = commands(planned_of("gpt-oss-120b", "int4"), program)
        assert "openai/gpt-oss-120b " in text and "in 4 bits as it comes" in text
        assert "--quantization" not in text and "-AWQ" not in text


def test_a_checkpoint_that_comes_in_8_bits_takes_no_flag_for_them_and_is_not_served_in_others():
    for program in PROGRAMS:
        text = commands(planned_of("deepseek-v3", "fp8"), program)
        assert "deepseek-ai/DeepSeek-V3 " in text and "--quantization" not in text
        assert "${CHECKPOINT:?name a checkpoint in 16 bits}" in commands(
            planned_of("deepseek-v3", "bf16"), program
        )


def test_each_checkpoint_is_read_back_as_its_model():
    models = catalog.all_models().values()
    public = [model for model in models if model.checkpoint]
    assert len(public) > 60 and all(model.access in ("", "gated") for model in models)
    for model in public:
        assert catalog.model_key(model.checkpoint) == model.key
        assert not model.chat or catalog.model_key(model.chat) == model.key
        assert re.fullmatch(r"[\w-]+/[\w.-]+", model.checkpoint)
        if not model.counted_params:  # of those, nobody has looked it up
            assert (model.access == "gated") == model.checkpoint.startswith(
                ("meta-llama/", "google/", "mistralai/")
            )


@given(planned())
@settings(max_examples=5, deadline=None)
def test_a_name_of_ones_own_and_an_unknown_program(of):
    assert "vllm serve mine/model " in commands(of, "vllm", "mine/model")
    with refused("program", "vllm, sglang, trtllm, dynamo", "'tgi'"):
        commands(of, "tgi")


def test_the_cheapest_deployment_is_one_that_check_says_fits():
    """The two rooms agree on memory: what is planned can be launched, on as many GPUs."""
    load = Load(8, 1500, 200, 0.5, 0.5)
    best = finder.deploy(
        catalog.model("llama3-70b"), Machine.of("h100-sxm"), load, Limits(1.0, 0.05), top=1
    ).best
    for program in PROGRAMS:
        for line in servers(commands(best, program, stored(best, program)), program):
            report = check_launch(line, gpu="h100-sxm")
            assert report.verdict == "fits", (program, report.verdict)
            assert report.launch.precision == best.weights


def test_experts_on_many_gpus_are_what_check_says_fits():
    """DeepSeek-V3 with its experts over 16 GPUs and more: as one copy on each GPU it would not fit at all."""
    load = Load(50, 2000, 300, 0.6, 0.6)
    best = finder.deploy(
        catalog.model("deepseek-v3"), Machine.of("h100-sxm"), load, Limits(3.0, 0.1), formats=("fp8",), top=1
    ).best
    assert best.replica.dp > 8
    for program in ("vllm", "sglang", "dynamo"):
        for line in servers(commands(best, program), program):
            report = check_launch(line, gpu="h100-sxm")
            assert (report.verdict, report.launch.server.dp > 1) == ("fits", True), (program, report.verdict)
    alone = check_launch("vllm serve deepseek-ai/DeepSeek-V3 --tensor-parallel-size 1", gpu="h100-sxm")
    assert alone.verdict != "fits"
