"""Rubbish for what reads what people write: the planner and the search for a deployment, files of models, a
lesson's fences and the Python beside it. Each is an answer, or a refusal in words."""

from __future__ import annotations

import json
import math
import re
from random import Random

import engine
from course import lesson_code
from course.fences import widget as widget_fence
from course.lesson_code import CodeFault
from course.lessons import LessonFault
from tests.conftest import ROOT
from tests.fuzz.cases import anything, cases, changed, text

LONGEST = 2000  # characters of a refusal


def refusal(ask, *given, **named) -> str | None:
    """What is said where it is refused; None where it is answered."""
    try:
        ask(*given, **named)
    except (ValueError, LessonFault, CodeFault) as error:
        said = str(error)
        assert 0 < len(said) < LONGEST, said[:300]
        return said
    return None


# -- the planner and the search for a deployment -------------------------------------------------------------
KEYS = ("llama3-8b", "mixtral-8x7b", "gpt2")
GPUS = ("h100-sxm", "a100-80", "4090")


def value(random: Random, good):
    """A good value, or anything."""
    kind = random.random()
    if kind < 0.88:
        return good
    if kind < 0.95:
        return random.choice(
            (0, -1, 1, 0.5, 7, 10**9, 10**30, 1e300, math.nan, math.inf, "8", True, None, [1], {})
        )
    return anything(random)


def planned(random: Random) -> dict:
    return {
        "model": value(random, random.choice(KEYS)),
        "machine": value(random, random.choice(GPUS)),
        "job": (value(random, 2 ** random.randrange(12)), value(random, 2 ** random.randrange(7, 16))),
        "gpus": value(random, 2 ** random.randrange(8)),
        "top": value(random, random.randrange(1, 6)),
        "framework": value(random, random.choice(("", "any", "megatron", "fsdp"))),
        "hsdp": value(random, random.random() < 0.3),
        "within": {random.choice(("tp", "pp", "ep")): value(random, (1, 4))},
    }


def plan(job, within, **more) -> None:
    found = engine.plan(job=engine.Job(*job), within=engine.Constraints(**within), **more)
    assert math.isfinite(found.best.step_s) and found.best.step_s > 0


def test_a_plan_is_made_or_refused():
    given = cases(planned, 200)
    refused = [refusal(plan, **each) for each in given]
    assert None in refused and any(refused)


def deployed(random: Random) -> dict:
    return {
        "model": value(random, random.choice(KEYS)),
        "machine": value(random, random.choice(GPUS)),
        "load": tuple(
            value(random, good) for good in (random.uniform(0.1, 9), random.randrange(1, 4000), 64)
        ),
        "limits": tuple(value(random, random.choice((0.02, 0.1, 1.0, 5.0))) for _ in range(2)),
        "gpus": value(random, None),
        "caches": value(random, ("bf16",)),
        "pools": value(random, False),
        "drafts": value(random, ()),
        "dollars_per_gpu_hour": value(random, None),
        "top": value(random, 1),
    }


def deploy(load, limits, **more) -> None:
    found = engine.deploy(load=engine.Load(*load), limits=engine.Limits(*limits), **more)
    assert math.isfinite(found.best.dollars_per_million)


def test_a_deployment_is_found_or_refused():
    given = cases(deployed, 200)
    refused = [refusal(deploy, **each) for each in given]
    assert None in refused and any(refused)


# -- files of models -----------------------------------------------------------------------------------------
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
MORE = (
    "num_local_experts",
    "num_experts_per_tok",
    "sliding_window",
    "layer_types",
    "quantization_config",
    "text_config",
)


def config(random: Random) -> str:
    made = json.dumps(changed(random, CONFIG, [*CONFIG, *MORE]))
    return made if random.random() < 0.8 else made[: random.randrange(len(made))] + text(random)


def test_a_config_json_is_read_or_refused(tmp_path):
    file = tmp_path / "config.json"
    refused = []
    for one in cases(config, 300):
        file.write_text(one, encoding="utf-8", errors="replace")
        refused.append(refusal(engine.model, str(file)))
    assert any(refused)


ENTRY = (ROOT / "engine" / "catalog" / "models.toml").read_text(encoding="utf-8")
TABLES = [f"[{part}" for part in re.split(r"^\[", ENTRY, flags=re.MULTILINE)[1:]]


def entry(random: Random) -> str:
    """An entry of the catalogue with lines that are missing, doubled or spoilt."""
    lines = random.choice(TABLES).splitlines()
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(lines))
        name = lines[at].partition("=")[0]
        lines[at : at + 1] = random.choice(
            (
                [],
                [lines[at]] * 2,
                [f"{name}= {json.dumps(anything(random))}"],
                [f"{name}= {random.choice(('nan', 'inf', '-1', '1e30', '10', '[]', 'true', '{}'))}"],
                [text(random)],
            )
        )
        lines = lines or [""]
    return "\n".join(lines)


def test_a_toml_of_a_model_is_read_or_refused(tmp_path):
    file, refused = tmp_path / "mine.toml", []
    for one in cases(entry, 300):
        file.write_text(one, encoding="utf-8", errors="replace")
        refused.append(refusal(engine.model, str(file)))
    assert any(refused)


# -- lessons -------------------------------------------------------------------------------------------------
LESSONS = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "lessons").glob("[01]*.md")))
FENCES = re.findall(r"^``` (\w+)\n(.*?)^```$", LESSONS, re.DOTALL | re.MULTILINE)
OF_WIDGETS = [source for name, source in FENCES if name == "widget"]


def fence(random: Random) -> str:
    """A figure's fence out of a lesson, spoilt."""
    lines = random.choice(OF_WIDGETS).splitlines()
    for _ in range(random.randrange(1, 3)):
        at = random.randrange(len(lines))
        key = lines[at].partition(":")[0]
        lines[at] = random.choice(
            (f"{key}: {text(random)}", text(random), f"{key}: {anything(random)}", lines[at] * 2)
        )
    return "\n".join(lines)


def test_a_fence_is_shown_or_refused():
    refused = [refusal(widget_fence.render, one) for one in cases(fence, 200)]
    assert any(refused)


NUMBERS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "lessons").glob("[01]*.py"))]
NUMBERS = sorted(NUMBERS, key=len)[:6]  # each is parsed as a whole


def module(random: Random) -> str:
    """The Python beside a lesson, with a line that is missing, cut or spoilt."""
    lines = random.choice(NUMBERS).splitlines()
    at = random.randrange(len(lines))
    cut = lines[at][: random.randrange(len(lines[at]) + 1)]
    lines[at : at + 1] = random.choice(([], [cut], [cut + text(random)], [lines[at]] * 2))
    return "\n".join(lines)


def test_the_python_beside_a_lesson_is_read_or_refused():
    refused = [refusal(lesson_code.contents, one) for one in cases(module, 300)]
    assert None in refused and any(refused)
