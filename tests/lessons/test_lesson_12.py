"""Lesson 12 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the engine."""

import numpy as np
import pytest

from engine import catalog, inference, layout, serving, serving_events
from tests.engine.test_serving_events import run
from tests.lessons.reading import Lesson
from widgets.kit import prose
from widgets.prefill_decode import REQUESTS, WHOLE_PROMPTS, PrefillDecode

LESSON = Lesson("12-disaggregated-serving.md")
H100, LLAMA = layout.machine(catalog.gpu("h100-sxm")), catalog.model("llama3-70b")
PREFILL = 'inference.prefill(model("llama3-70b"), layout.machine(gpu("h100-sxm")), 4, 1, 2000).total_s'

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    'gpu("h100-sxm").bf16_flops_per_s / gpu("h100-sxm").hbm_bytes_per_s': "295 FLOP/B",          # 989 / 3.35
    'gpu("a100-80").bf16_flops_per_s / gpu("a100-80").hbm_bytes_per_s': "153 FLOP/B",            # 312 / 2.04
    'decoding.token_bytes(model("llama3-70b")) | kB': "328 kB",                                  # 2 · 80 · 8 · 128 · 2
    'decoding.user_bytes(model("llama3-70b"), 2000) | MB': "655 MB",
    'decoding.user_bytes(model("opt-66b"), 512) | GB': "1.21 GB",                                # 2 · 64 · 9,216 · 2 · 512
    'decoding.user_bytes(model("opt-66b"), 512) / 2 ** 30': "1.13",
    "serving.prefill_share(1 / 5.6, 1 / 10)": "64.1 %",                                          # 10 / 15.6
    "np.exp(0.6 ** 2)": "1.4×",                                                                  # 1 + (e^0.36 − 1)
    "608e9 / 86400 / 73.7e3": "95.5",
    "168e9 / 86400 / 14.8e3": "131",
    "608 / 73.7 / (608 / 73.7 + 168 / 14.8)": "42.1 %",
    'decoding.token_bytes(model("deepseek-v3")) | kB': "70.3 kB",                                # 61 · (512 + 64) · 2
    '73.7e3 * decoding.token_bytes(model("deepseek-v3")) | GB/s': "5.18 GB/s",
    "round(14.8e3 / 21 / 8)": "88",
    'decoding.user_bytes(model("deepseek-v3"), 4989)': "30.9 GB",                                # 88.1 · 4,989 · 70,272
    '10 * decoding.user_bytes(model("opt-66b"), 512) * 8 / 1e9': "96.6",
    '10 * decoding.user_bytes(model("opt-66b"), 512) * 8 / 2 ** 30': "90",                       # DistServe's
    'serving.wire_rate(decoding.user_bytes(model("llama3-70b"), 2000, 1.0)': "3.81",             # 1.25e9 / 327.68e6
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_its_figures_in_order():
    assert LESSON.widgets() == ["prefill_decode", "pool_ratio"]


def test_predictions_are_right_where_the_engine_says_so():
    found = dict(zip(LESSON.widgets(), LESSON.right_answers()))
    assert {name: eval(right, prose.namespace()) for name, right in found.items()} == {"prefill_decode": 1, "pool_ratio": 2}


def test_the_opening_case_is_the_figure_at_rest():
    """The same run: what the case says, the readouts say."""
    shown = PrefillDecode().shown()["readouts"]
    assert f"serving.Traffic({REQUESTS}, 8, 2000, 200, 0.6, 0.6, 1), serving.Service(0, 6, 3, {WHOLE_PROMPTS})" in LESSON.text
    for part, readout in ((".ttft_most_s", "first_most"), (".tpot_most_s", "each_most"), (".pause_median_s", "pause")):
        assert LESSON.shows(part) == shown[readout]["text"]
    assert shown["meet"]["text"] == "100 %"


def trials(mode, rate, prefillers=3, budget=WHOLE_PROMPTS):
    return serving.trials(LLAMA, H100, 4, serving.Traffic(240, rate, 2000, 200, 0.6, 0.6, 1),
                          serving.Service(serving.MODES[mode], 6, prefillers, budget), 1.0, (0.05, 0.025))


def test_four_things_to_read_off():
    """Both cures end the pauses; the loose target is met by all but 3 : 3 at the higher rate, the tight one by pools alone, of
    the right split."""
    plans = {(name, rate): trials(mode, rate, prefillers, budget) for rate in (8, 16) for name, mode, prefillers, budget in (
        ("first", "prefill_first", 3, WHOLE_PROMPTS), ("chunks", "chunked", 3, 512), ("3:3", "disaggregated", 3, WHOLE_PROMPTS),
        ("4:2", "disaggregated", 4, WHOLE_PROMPTS), ("5:1", "disaggregated", 5, WHOLE_PROMPTS))}
    for rate in (8, 16):
        for name in ("chunks", "3:3", "4:2", "5:1"):
            assert plans[name, rate].felt.pause_median_s < plans["first", rate].felt.pause_median_s / 5
    loose = {plan: found.met[0] for plan, found in plans.items()}
    assert loose.pop(("3:3", 16)) < 0.9 and min(loose.values()) > 0.95
    tight = {plan: found.met[1] for plan, found in plans.items()}
    assert max(tight[name, rate] for name in ("first", "chunks", "5:1") for rate in (8, 16)) < 0.7
    assert tight["4:2", 8] > 0.95 and tight["3:3", 8] > 0.95 and tight["4:2", 16] > 0.75


def test_three_readers_are_not_enough_at_the_higher_rate():
    mean = round(2000 * np.exp(0.6**2 / 2))
    assert 16 / 3 * inference.prefill(LLAMA, H100, 4, 1, mean).total_s > 1


def test_the_wait_s_knee_is_where_it_says():
    """Shorter than S up to two thirds; then twice as long with each halving of the rest; and ten per cent more traffic at
    85 % make first tokens twice as late."""
    def wait(load):
        return serving.m_d_1_wait_s(load, 1.0)
    assert wait(2 / 3) == pytest.approx(1.0) and wait(0.9) / wait(0.8) > 2 and wait(0.95) / wait(0.9) > 2
    assert (1 + wait(0.85 * 1.1)) / (1 + wait(0.85)) == pytest.approx(2, rel=0.15)


def test_near_the_knee_one_in_ten_waits_more_than_twice_the_mean():
    """Executed, at ρ = 0.9; an exponential wait would make it ln 10 = 2.3."""
    count, service_s = 50_000, 0.05
    came = serving_events.arrivals(count, 0.9 / service_s, 5)
    wait_s = run(came, [100] * count, [1] * count, budget=100, rows=[1, 100], rows_s=[0.001, service_s])["started"] - came
    assert 2 < np.percentile(wait_s, 90) / wait_s.mean() < 3


def test_deepseek_s_day_adds_up():
    nodes = 608e9 / 86400 / 73.7e3 + 168e9 / 86400 / 14.8e3
    assert nodes == pytest.approx(226.75, rel=1e-3)              # the page rounds its rates to three digits


def test_the_designs_prompts_are_longer_than_the_token_they_want():
    chunk_s = serving.whole_or_in_chunks_s(serving.costs(LLAMA, H100, 4, 2048), 512, 512)
    assert 0.03 < chunk_s < inference.prefill(LLAMA, H100, 4, 1, 6000).total_s
    found = serving.bargain(LLAMA, H100, 4, 6000, 400, 2.0, 0.03, 16)
    assert found.apart_per_s > 1.5 * found.sharing_per_s


def test_no_prompt_of_4000_tokens_meets_a_quarter_of_a_second():
    prompt_s = inference.prefill(LLAMA, H100, 4, 1, 4000).total_s
    assert prompt_s > 0.25 and serving.prefill_rate(prompt_s, 0.25) == 0
    assert np.diff([serving.prefill_rate(eval(PREFILL, prose.namespace()), t) for t in (0.25, 0.5, 1.0)])[0] > 1.5
