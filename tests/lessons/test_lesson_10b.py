"""The second page of lesson 10: its numbers are those worked by hand, its snippets run as printed, and its
words agree with the engine."""

import numpy as np
import pytest

from engine import catalog
from engine.catalog import models
from engine.mechanism import cost, reliability
from tests import machine
from tests.cases import in_one_test
from tests.lessons import programs
from tests.lessons.reading import Lesson

LESSON = Lesson("10b-the-long-run.md")
YOUNG = "young_s(checkpoint_s=60) | min"

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "reliability.LLAMA3_FAILURES_PER_GPU_S * units.YEAR": "0.173",  # 419 / 16,384 / 54 · 365.25
    "1 / reliability.LLAMA3_FAILURES_PER_GPU_S": "5.8 years",
    "M | h": "3.09 h",
    YOUNG: "19.3 min",  # √(120 · 11,135) = 1,156 s
    "reliability.wasted_share(": "15.8 %",  # 5.19 + 5.19 + 5.39
    "checkpoint_bytes | TB": "5.68 TB",
    "checkpoint_bytes / 2e12 | s": "2.84 s",
    "16384 * (1 - 0.8)": "3,277",
    "16384 * 54 / 6": "147,456",
    "1 / 16 | %": "6.25 %",
    "dollars(gpus=512, seconds=21 * 86400)": "$852k",
    "dollars(gpus=512, seconds=86400)": "$40.6k",
    "lasts_s(budget=1e6, gpus=512)": "24.7 days",
    "mtbf_s(24576)": "2.06 h",
    "600 / (1 - 0.85)": "1.1 h",
    "mtbf_s(1024)": "49.5 h",
    "failures_per_gpu_s=opt_failures": "44 min",  # 12 h · 992 / 16,384
    "np.exp(-86400 / M)": "0.04 %",  # e^-7.76
    "(2 - 2**0.5) * young_s": "11.3 min",  # 0.586 of 19.3 min
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.truth("goodput") == pytest.approx(np.sqrt(2 * 60 * 16 * 3.09 * 3600), rel=0.03)
    assert LESSON.truth("budget_guard") == 30.84e6
    assert LESSON.value("blamed_rightly()") == pytest.approx(1 / 16, abs=0.05)  # by lot, one of sixteen
    assert LESSON.right("incident_room") == 0


# -- what the words claim ------------------------------------------------------------------------------------
def best(checkpoint_s, mtbf_s, restart_s):
    """The useful share at the best interval."""
    return reliability.useful_share(
        reliability.best_interval_s(checkpoint_s, mtbf_s), checkpoint_s, mtbf_s, restart_s
    )


@in_one_test("mtbf_s", [2 * 3600.0, 86400.0, 10 * 86400.0])
@in_one_test("checkpoint_s", [2.0, 10.0, 60.0])
@in_one_test("times", [0.25, 0.5, 0.7, 1.0, 3.0])
def test_the_rule_says_which_of_the_two_to_halve(checkpoint_s, mtbf_s, times):
    """While failures are rare, held against the exact shares; a tenth beside the line either may be right."""
    restart_s = times * reliability.best_interval_s(checkpoint_s, mtbf_s)
    faster_restart = best(checkpoint_s, mtbf_s, restart_s / 2)
    faster_writing = best(checkpoint_s / 2, mtbf_s, restart_s)
    assert (faster_restart > faster_writing) == (times > 2 - np.sqrt(2))


def test_the_exercise_agrees_with_the_rule():
    mtbf_s = reliability.mean_time_between_failures_s(24576)
    assert 0.58 * reliability.young_interval_s(30, mtbf_s) > 300
    assert best(15, mtbf_s, 300) > best(30, mtbf_s, 150)


def test_in_the_envelope_most_of_what_is_lost_is_the_restart():
    mtbf_s = reliability.mean_time_between_failures_s(16384)
    write_s = 14 * models.parameters(catalog.model("llama3.1-405b")) / 2e12
    found = reliability.shares(reliability.best_interval_s(write_s, mtbf_s), write_s, mtbf_s, 600.0)
    assert found[3] / (1 - found[0]) == pytest.approx(0.71, abs=0.005)
    assert LESSON.shows("lost_to_restart") == "71 %"


def test_the_envelope_has_one_count_of_days_of_failures_and_of_dollars():
    """72.5 days on 16,384 GPUs: a failure every 3.09 h of them, and $3 an hour with a tenth on top."""
    days = float(LESSON.shows("run_days_s").removesuffix(" days"))
    hours = LESSON.value("gpu_hours")
    assert hours == pytest.approx(16384 * 24 * days, rel=1e-3)
    assert LESSON.shows("run_days_s / M") == "563" and days == pytest.approx(72.5, abs=0.05)
    assert LESSON.shows("bill_405b") == f"${1.1 * 3 * hours / 1e6:.3g}M"
    assert LESSON.shows("published_bill") == "$102M"  # 30.84M hours, as budget_guard has them


def test_llama_s_own_settings_give_the_published_goodput_and_a_minute_does_not():
    """Meta reports over 90 % (arXiv:2407.21783, section 3.3.4)."""
    mtbf_s = reliability.mean_time_between_failures_s(16384)
    assert best(60, mtbf_s, 600) == pytest.approx(0.85, abs=0.005)
    assert reliability.useful_share(240, 3, mtbf_s, 600) == pytest.approx(0.926, abs=5e-4)
    assert LESSON.value("useful_405b") > 0.9


def test_the_goodput_of_the_envelope_is_over_90_percent_and_is_what_the_money_is_divided_by():
    mtbf_s = reliability.mean_time_between_failures_s(16384)
    write_s = 14 * models.parameters(catalog.model("llama3.1-405b")) / 2e12
    best = reliability.best_interval_s(write_s, mtbf_s)
    assert reliability.useful_share(best, write_s, mtbf_s, 600) == pytest.approx(0.926, abs=5e-4)


def test_twice_the_gpus_cost_the_same():
    """At equal MFU and goodput the bill has no GPUs in it."""
    assert cost.run_dollars(cost.gpu_hours(512, 100), 3) == cost.run_dollars(cost.gpu_hours(1024, 50), 3)


def test_the_designs_percentage_is_what_the_interval_leaves():
    mtbf_s = reliability.mean_time_between_failures_s(1024)
    useful = reliability.useful_share(reliability.best_interval_s(60, mtbf_s), 60, mtbf_s, 600)
    assert useful == pytest.approx(0.971, abs=5e-4)


# -- what two GPUs should have in common ---------------------------------------------------------------------
# Rank 1 computes one wrong number. Plain replicas differ in their weights then; ZeRO's weights, which an
# owner hands out, are equal although they are wrong, and gradients of the same sequences differ.
CORRUPTED = """
dist.init_process_group("gloo")
rank = dist.get_rank()
right = torch.ones(4, dtype=torch.bfloat16)
broken = right.clone()
broken[2] += 0.5 * rank
owned = broken.clone()
dist.broadcast(owned, src=1)
found = [replicas_agree([it], None) for it in (right, broken, owned, broken * 2)]
if rank == 0:
    print(*found, owned.equal(right))
dist.destroy_process_group()
"""


def launched(program: str, folder, ranks: int) -> list[str]:
    """What this program prints on so many ranks of this machine."""
    (folder / "check.py").write_text(program, encoding="utf-8")
    return programs.ran_forked(folder, f"torchrun --nproc-per-node {ranks} check.py")


def test_weights_from_an_owner_agree_though_they_are_wrong_and_gradients_do_not(tmp_path):
    machine.torch()
    [check] = [block for block in LESSON.code("python") if "def replicas_agree" in block]
    assert launched(check + CORRUPTED, tmp_path, ranks=2) == ["True False True False False"]


TIMED = """
dist.init_process_group("gloo")
print(slow_ranks([1.0, 1.02, 1.25][dist.get_rank()], device="cpu"), flush=True)
dist.destroy_process_group()
"""


def test_the_straggler_is_named_on_every_rank(tmp_path):
    machine.torch()
    [code] = [block for block in LESSON.code("python") if "def slow_ranks" in block]
    assert "".join(launched(code + TIMED, tmp_path, ranks=3)) == 3 * "[2]"


def test_the_formula_of_the_run_gives_the_opening_case_s_days():
    """With attention: 6PD alone would give 3.5 % fewer."""
    peaks = LESSON.value('16384 * gpu("h100-sxm").bf16_flops_per_s * meta.rules.mfu()')
    seconds = LESSON.value("15.6e12 / meta.rules.tokens_per_s")
    assert LESSON.value("6 * 15.6e12 * counted_405b") / peaks == pytest.approx(seconds, rel=1e-3)
