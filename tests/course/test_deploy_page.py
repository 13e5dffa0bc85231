"""The page that plans deployments: its translated modules give the same answers as Python, and quickly."""

import math
import random

import numpy as np
import pytest

from bench import processor
from course.fences import deploy
from course.strict_yaml import Refused
from engine import api
from engine.launch import deploy_page as page
from engine.serving.deployment import Limits, Load
from engine.validation import accuracy, points
from tests import states
from tests.conftest import ROOT
from tests.widgets.kit.compiler.test_in_page import differences, in_node

QUICK_MS, TIMES = 200, 4
TOUCHING = 1e-9  # a simulated figure adds up thousands of steps


def presets() -> dict[str, dict]:
    """The questions of the page's own presets."""
    text = (ROOT / "lessons" / "deploy.md").read_text(encoding="utf-8")
    source = text.split("``` deploy\n")[1].split("```")[0]
    return {title: deploy.asked(state) for title, state in deploy.presets(source).items()}


def drawn(count: int) -> dict[str, dict]:
    """Random questions of all sizes, many of which have no answer."""
    dice, found = random.Random(25), {}
    for i in range(count):
        found[f"random {i}"] = {
            "model": dice.choice(
                ["llama3.1-8b", "qwen3-32b", "mixtral-8x7b", "deepseek-v3", "llama3.1-405b"]
            ),
            "gpu": dice.choice(["h100-sxm", "h200", "a100-80", "b200", "mi300x", "rtx4090"]),
            "per_s": round(10 ** dice.uniform(-1, 1.7), 2),
            "prompt": float(round(10 ** dice.uniform(1.5, 4))),
            "output": float(round(10 ** dice.uniform(0, 3))),
            "prompt_spread": dice.choice([0.0, 0.4, 0.8]),
            "output_spread": dice.choice([0.0, 0.6]),
            "prefix_share": dice.choice([0.0, 0.5, 0.9]),
            "ttft_s": round(10 ** dice.uniform(-1, 1), 3),
            "tpot_s": round(10 ** dice.uniform(-2, -0.7), 4),
            "share": dice.choice([0.5, 0.9, 0.99]),
            "formats": dice.choice(["", "bf16", "fp8"]),
            "caches": dice.choice(["bf16", ""]),
            "pools": dice.choice(["", "one"]),
            "dollars_per_gpu_hour": dice.choice(["", 2.0]),
        }
    return found


WRONG = {
    "spread": ({"prompt_spread": 3.0}, "prompt_spread"),
    "half a token": ({"prompt": 10.5}, "prompt"),
    "past the context": ({"model": "llama3-70b", "prompt": 9000.0}, "prompt"),
    "no number of GPUs": ({"ttft_s": 0.001}, "ttft_s"),
    "a token too fast": ({"tpot_s": 1e-5}, "tpot_s"),
    "no price": ({"gpu": "l4"}, "dollars_per_gpu_hour"),
    "too large": (
        {"model": "llama3.1-405b", "gpu": "rtx4090", "formats": "bf16", "dollars_per_gpu_hour": 1.0},
        "model",
    ),
    "share": ({"share": 1.0}, "share"),
    "more than anybody": ({"per_s": 1e300}, "per_s"),
}


@pytest.fixture(scope="module")
def answered(tmp_path_factory, site):
    """The questions with the page's answers, by name; and the time of each preset, over a few repetitions."""
    starts = presets()
    wrong = {name: next(iter(starts.values())) | change for name, (change, _) in WRONG.items()}
    jobs = dict(states.daily([*starts.items()])) | dict(states.daily([*drawn(6).items()], 3)) | wrong
    again = [
        {**asked, "ttft_s": asked["ttft_s"] * (1 + i / 1000), "steps": ["expected"]}
        for i in range(1, TIMES + 1)
        for asked in starts.values()
    ]
    found = in_node([*jobs.values(), *again], tmp_path_factory.mktemp("page"), site, "deploy")
    took = [each["took_ms"]["expected"] for each in found[len(jobs) :]]
    return dict(zip(jobs, zip(jobs.values(), found))), np.reshape(took, (TIMES, len(starts)))


def test_the_page_says_what_python_says(answered):
    served = 0
    for name, (asked, mine) in answered[0].items():
        for step in ("expected", "others", "simulated"):
            theirs = getattr(page, step)(asked)
            off = differences(mine[step], theirs, within=TOUCHING, least=1.0)
            assert not off, (name, step, off[:5])
        served += not mine["simulated"]["refused"]
    assert served > len(answered[0].keys() & presets().keys())


def test_what_no_deployment_serves_is_said_at_its_field_in_the_words_of_the_engine(answered):
    for name, (_, field) in WRONG.items():
        asked, mine = answered[0][name]
        assert mine["expected"]["field"] == field, (name, mine["expected"])
    asked, mine = answered[0]["no number of GPUs"]
    load = Load(**{each: int(asked[each]) if each in page.WHOLE else asked[each] for each in page.LOAD})
    limits = {each: asked[each] for each in page.LIMITS if asked[each] != ""}
    with pytest.raises(ValueError, match="would help") as refused:
        api.deploy(asked["model"], asked["gpu"], load, Limits(**limits))
    assert mine["simulated"]["refused"] == str(refused.value)


def test_the_page_answers_each_preset_in_half_of_200_ms(answered):
    """Of the processor's time, times as slow as the processor is just now; `python -m bench pages` looks at
    the clock."""
    took = np.min(answered[1], axis=0)
    assert np.all(took < QUICK_MS / 2 * processor.slowness()), took


def test_a_preset_s_answer_is_that_of_engine_deploy():
    asked = presets()["Chat with a 70B"]
    load = Load(20, 1000, 300, 0.6, 0.6)
    found = api.deploy("llama3.1-70b", "h100-sxm", load, Limits(1.0, 0.05), top=page.KINDS)
    mine = page.simulated(asked)["found"]
    assert [one["split"] for one in mine] == [one.split for one in (found.best, *found.runners_up)]
    assert mine[0]["perUser"] == found.best.tokens_per_s_per_user
    assert found.best.binding == "capacity" and mine[0]["binds"].startswith("what they can serve at all")


def test_the_frontier_is_what_no_deployment_within_the_limits_beats():
    for asked in presets().values():
        all_of = page.others(asked)
        user, gpu = np.array(all_of["user"]), np.array(all_of["gpu"])
        within, best = np.array(all_of["within"]), np.array(all_of["best"])
        assert np.any(best) and not np.any(best & ~within)
        for i in np.flatnonzero(best):
            assert not np.any(within & (user > user[i]) & (gpu > gpu[i]))
        for i in np.flatnonzero(within & ~best):
            assert np.any(best & (user >= user[i]) & (gpu >= gpu[i]))
        first = page.expected(asked)["best"]
        assert first["gpus"] == min(np.array(all_of["gpus"])[within])


def test_where_we_agree_with_published_servers_and_where_not():
    """As the page says in words, beside the numbers that it computes."""
    found = {point.id: point.ours / point.measured for point in points.points("deployments")}
    few = [ratio for name, ratio in found.items() if "tp8_8" in name or "h200_tp4_8" in name]
    assert len(few) == 3 and all(1 < ratio < 1.15 for ratio in few)
    shares = points.shares("deployments")
    assert len(shares) == 11 and 0.7 < shares[0] < 0.75 and 1.1 < shares[-1] < 1.15
    assert found["inferencemax_b200_tp1_32_8192"] == min(found.values()) and np.median(shares) > 0.8
    nvidia, amd = accuracy.shares("h100-sxm", "h200"), accuracy.shares("mi300x")
    assert len(nvidia) == 5 and nvidia[0] > 0.7 and nvidia[-1] < 0.85
    assert len(amd) == 3 and 0.7 < amd[0] < 1 < amd[-1] < 1.15


def test_the_pages_shares_are_those_of_validation_s_table():
    found = [row for row in accuracy.servers() if row.family.startswith("MLPerf")]
    assert len({row.key for row in found}) >= 6
    for row in found:
        assert 1 + row.mean_signed in accuracy.shares(row.key)


def test_spread_experts_bring_what_sglang_and_deepseek_published():
    """The step within a twentieth; a day's mean of both pools, night included, within a fifth."""
    found = {point.id: point.error for point in points.points("spread_experts")}
    assert abs(found["sglang_ep72_decode"]) < 0.05 and 0 < found["deepseek_a_day"] < 0.2


def test_the_planner_counts_on_less_than_deepseek_s_day_brought():
    """Requests at random times need spare GPUs: within a quarter of the mean of the day, at the speed for a
    user that theirs had, with the experts spread over some nodes."""
    found = page.expected(presets()["As DeepSeek serves V3"])["best"]
    assert 0.75 < found["perGpu"] / 1071.91 < 1 and 20 < found["perUser"] < 27
    assert "EP" in found["split"] and found["seats"] == "on each GPU"


def test_published_points_have_both_speeds_and_a_source():
    found = deploy.published()
    assert any(one["source"] == "InferenceMAX" for one in found) and not any(
        "bf16" in one["differs"] for one in found
    )
    assert all(one["ours"].startswith("We say ") for one in found)
    assert {"MLPerf inference 5.1", "gpt-fast"} <= {one["source"] for one in found}
    day = next(one for one in found if one["source"] == "DeepSeek's own service")
    assert day["gpus"] == pytest.approx(168e9 / 86400 / 226.75 / 8, rel=1e-5) and day["gpu"] == "h800"
    assert 20 < day["user"] < 22 and day["load"] == "" and "deepseek-v3" in day["models"]
    interactive = next(one for one in found if one["gpu"] == "h200" and "34.8 ms" in one["what"])
    assert math.isclose(interactive["user"], 1 / 0.0348419) and interactive["gpus"] == 2452.74
    assert "llama3.1-70b" in interactive["models"] and "llama3.1-8b" not in interactive["models"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("A: {model: llama3.1-8b}", "names a model, a gpu"),
        ("A: {model: llama3.1-8b, gpu: h100-sxm, rate: 3}", "rate"),
        ("A: {model: llama3.1-8b, gpu: h100-sxm, per_s: many}", "per_s must be a number"),
        ("A: {model: llama3.1-8b, gpu: h100-sxm, tpot_s: 1 us}", "no answer: tpot_s must be at least"),
        ("A: 3", "a preset is a line"),
    ],
)
def test_a_preset_without_an_answer_stops_the_build(source, words):
    with pytest.raises(Refused, match=words):
        deploy.presets(source)
