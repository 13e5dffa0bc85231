"""Whatever is pasted, the answer is a report with a line for each fault. Nothing hangs, and only a wrong
argument raises an error."""

import json
import random
import time

import pytest

import engine
from engine.frameworks import settings
from engine.launch import shown, verdict
from engine.launch.texts import Fault
from tests.cases import in_one_test
from tests.engine.launch.test_containers import CHART, COMPOSE, DEPLOYMENT, DOCKER, GROUP, JOB, SGLANG, TASK
from tests.engine.launch.test_verdict import BRIDGE, DS, FSDP, MEGATRON, RUN, TITAN, TRAINER, VLLM

CONTAINERS = (DOCKER, SGLANG, COMPOSE, DEPLOYMENT, GROUP, JOB, CHART, TASK)
GOOD = (MEGATRON, TITAN, DS, RUN, FSDP, TRAINER, BRIDGE, VLLM, *CONTAINERS)
AT_MOST_S = 15.0  # of the processor, for one text: quadratic work on the longest would take minutes


def answered(texts, gpus=None) -> verdict.Report:
    """The report, after checking what holds for every report: each fault is one line, and it can be printed
    and sent."""
    began = time.process_time()
    report = engine.check_launch(texts, "h100-sxm", gpus)
    assert time.process_time() - began < AT_MOST_S
    for fault in report.faults:
        assert (
            isinstance(fault, Fault)
            and str(fault).strip()
            and "\n" not in str(fault)
            and len(str(fault)) < 600
        )
    assert all(line == line.rstrip("\n") for line in shown.lines(report))
    json.dumps(report.as_dict(), allow_nan=False)
    return report


@in_one_test(
    "texts, words",
    [
        ("x" * 10_000_000, "this one has 10,000,000: nothing of it was read"),
        ("\x7fELF\x02\x01\x01\0\0\0", "this is not a text"),
        ("", "this text is empty"),
        ("hello, will it fit?", "nothing here launches anything that is known"),
        (
            '{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 128}',
            "a config.json alone launches nothing",
        ),
        (MEGATRON + VLLM, "these texts are for 2 frameworks: Megatron-LM (pasted:"),
        ([MEGATRON, TITAN, VLLM], "these texts are for 3 frameworks"),
        (f"{TITAN}\n{MEGATRON}\n{VLLM}\n", "these texts are for 3 frameworks: "),
        (
            f"```\n{VLLM}\n```\nand\n```toml\n{TITAN}```\n",
            "for 2 frameworks: vLLM (pasted:2), torchtitan (pasted:6)",
        ),
        ('{"zero_optimization": {"stage": 2}', "pasted:1: not JSON: a bracket is never closed"),
        ({"ds.json": DS}, "no model is named: give model_name_or_path, or its config.json"),
        ("vllm serve nobody/knows-this-7b", "model 'knows-this-7b' is not in the catalogue"),
        (MEGATRON.replace("--hidden-size 8192", ""), "the model needs --hidden-size"),
        (
            MEGATRON.replace("--hidden-size 8192", "--hidden-size 8190"),
            "must be a multiple of the 64 attention heads",
        ),
        (
            MEGATRON.replace("--hidden-size 8192", "--hidden-size wide"),
            "hidden-size must be a whole number of at least 0, got 'wide'",
        ),
        (MEGATRON.replace("groups 8", "groups 7"), "kv_heads"),
        (MEGATRON.replace("NNODES=8", "NNODES=9999999"), "GPUs, where at most 1,000,000 can be"),
        (
            MEGATRON.replace("--bf16", "--bf16 --bf16 --seq-length 4096"),
            "seq-length 8192 replaces seq-length 4096 of line",
        ),
        ("[a]\n[b]\nc = 1\n", "a TOML text of no framework that is known here"),
        ([VLLM, VLLM.replace("14B", "32B")], "2 servers are started here"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "texts",
)
def test_what_is_wrong_is_said_in_a_line(texts, words):
    report = answered(texts)
    assert any(words in str(fault) for fault in report.faults), [str(f) for f in report.faults]


def test_a_flag_that_nobody_knows_is_listed_with_its_line():
    report = answered(
        MEGATRON.replace("--bf16", "--bf16\n  --frobnicate 7\n  --pipeline-model-paralel-size 4")
    )
    why = {one.key: (one.line, one.why) for one in report.ignored}
    assert why["frobnicate"] == (15, settings.NOT_READ)
    words = "pipeline-model-paralel-size is not known, did you mean pipeline-model-parallel-size?"
    assert words in str(report.faults[0]) and "pipeline-model-paralel-size" not in why
    assert words in shown.lines(report)[0]  # above the verdict, which is without it


@in_one_test(
    "arguments, words",
    [
        ((7,), "texts must be a text"),
        (([b"x"],), "texts must be a text"),
        ((VLLM, "no-such-gpu"), "gpu must be a key of the catalogue"),
        ((VLLM, 7), "gpu must be an engine.Machine"),
        ((VLLM, None, 0), "gpus must be a whole number"),
        ((VLLM, None, 2.5), "gpus must be a whole number"),
    ],
)
def test_a_wrong_argument_is_a_value_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        engine.check_launch(*arguments)


# -- rubbish ------------------------------------------------------------------------------------------------
PIECES = (
    "\n",
    "\\\n",
    "'",
    '"',
    "$",
    "${",
    "}",
    "$((",
    "))",
    "`",
    "(",
    ")",
    "[",
    "]",
    "{",
    "=",
    "==",
    "<<EOF\n",
    "#",
    "--",
    "-",
    ": ",
    ",",
    "\t",
    "\r\n",
    "0",
    "-1",
    "1e9",
    "999999999999999999999",
    "nan",
    "true",
    "auto",
    "null",
    "é",
    "\u202e",
    "*",
    "|",
    "&&",
    "%",
    "--tensor-model-parallel-size",
    "zero_optimization",
    "&a ",
    "*a",
    "<<: *a\n",
    "- ",
    "\n---\n",
    "|\n",
    ">-\n",
    "$(X)",
    "${X:-2}",
    "  image: vllm/vllm-openai\n",
    "```\n",
    "x" * 300,
)


def spoilt(rng: random.Random, good: tuple[str, ...] = GOOD) -> str:
    """A good text with some of it cut, doubled, moved, or replaced."""
    text = rng.choice(good)
    for _ in range(rng.randrange(1, 8)):
        a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        b = min(b, a + rng.choice((1, 3, 20, 200)))
        what = rng.random()
        if what < 0.3:
            text = text[:a] + text[b:]
        elif what < 0.7:
            text = text[:a] + rng.choice(PIECES) + text[a if what < 0.5 else b :]
        elif what < 0.85:
            text = text[:a] + text[a:b] * rng.randrange(2, 5) + text[b:]
        else:
            words = text.split(" ")
            rng.shuffle(words)
            text = " ".join(words)
        text = text or "x"
    return text


def texts(rng: random.Random):
    """One spoilt text, or several."""
    if rng.random() < 0.7:
        return spoilt(rng)
    return {f"file {n}": spoilt(rng) for n in range(rng.randrange(2, 4))}


@pytest.mark.parametrize("seed", range(10))
def test_no_text_breaks_it(seed):
    rng = random.Random(seed)
    for _ in range(30):
        answered(texts(rng), rng.choice((None, None, 1, 8, 7)))


def test_large_texts_do_not_hang():
    for text in (
        "[a]\nb = [\n" + "1,\n" * 200_000,
        "{" * 100_000,
        "- " * 200_000,
        "a:\n" * 100_000,
        '"' * 200_000,
        "\\\n" * 200_000,
        "#\n" * 300_000,
        "$A" * 100_000,
        "(" * 200_000,
        "A=(" * 100_000,
        "--x " * 200_000,
        "<<E\n" * 50_000,
        "vllm serve " + "--tp 2 " * 50_000,
        '{"a":' * 50_000,
        "x: {" * 50_000,
        "`" * 200_001,
        "$((" * 60_000,
        "services:\n" + "  a: {image: vllm/vllm-openai, command: [--model, a/b]}\n" * 3500,
        "services:\n  a:\n    image: x\n    command: |\n" + "      vllm serve a/b\n" * 9000,
        "services:\n  a:\n    image: x\n    command: " + "$X " * 60_000,
        "kind: Pod\nspec:\n  containers:\n"
        + "  - {image: x, command: [bash, -c, 'vllm serve a/b']}\n" * 3500,
        "docker run " + "-v a:b " * 25_000 + "x vllm serve a/b",
        "docker run x bash -c '" + "vllm serve a/b; " * 12_000 + "'",
        "bash -c " * 25_000,
        "docker run " * 18_000,
        "kind: ConfigMap\ndata:\n" + "  a.sh: docker run x vllm serve a/b\n" * 5000,
    ):
        answered(text)
