"""Lesson 14 has the parts of a lesson, its numbers are those worked by hand, and its code runs."""

import contextlib
import io
import re

import numpy as np
import pytest

from engine.executed import rounded_training
from engine.mechanism import precision
from tests import machine
from tests.cases import in_one_test
from tests.lessons.reading import Lesson

LESSON = Lesson("14-mixed-precision.md")

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "memory.weight_bytes(params=7e9": "28 GB",
    "precision.BF16.epsilon / 2 | %": "0.391 %",  # 2^-8
    "stall_distance(precision.BF16.epsilon, rate=0.01)": "0.391",  # 2^-8 / 0.01
    "precision.FP16.half_gap_at_one": "4.88·10⁻⁴",  # 2^-11
    "precision.FP16.smallest / 2": "2.98·10⁻⁸",  # 2^-25
    "0.31 / (0.31 + 0.053)": "85.4 %",
    "precision.BF16.round(1 + 0.003)": "1",  # under 2^-8 upwards
    "precision.BF16.round(1 - 0.003)": "0.9961",  # over 2^-9 downwards: 1 - 2^-8
    "largest_octave(steps=2000)": "4.3",  # 3.6 · (6.81 - 5.61)
    "4.79 / 4.06))": "1.15×",  # 1 / (0.15 + 0.85 / 1.18)
    "8 - deepseek.momentum_bytes": "4 B",
    "bf16-adam-fp32-grads": "18 B",
    "params | params": "406B",
    "precision.BF16.gap(256)": "2",
    "precision.BF16.gap(0.02) | real": "1.22·10⁻⁴",  # 2^-13
    "frozen(rate=8e-5, kept=precision.BF16)": "11.8 %",  # |z| > 1.5625
    "frozen(rate=8e-7, kept=precision.BF16)": "99 %",  # |z| > 0.0122
    "precision.BF16.encode(0.3)": "16,026",  # 125 · 128 + 26
    "precision.E4M3.round(0.3) / 0.3": "4.17 %",  # 0.3125
    "1 / 2001": "0.05 %",
    "scaler_loop": "17",  # 8 + 19,992 // 2,001
    "master_bytes / 16384 | MB": "99.1 MB",
}


@in_one_test("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_its_parts():
    assert LESSON.places_in_order() and LESSON.every_widget_asks_first() and LESSON.every_exercise_is_solved()
    assert (
        len(LESSON.exercises()) >= 4
        and "Design" in LESSON.exercises()[-1]
        and LESSON.sentences("Takeaway") == 2
    )


def test_predictions_are_right_where_the_engine_says_so():
    assert LESSON.right("float_explorer") == 2
    assert LESSON.truth("lost_updates") == 1.0
    assert LESSON.truth("loss_scaling") == pytest.approx(0.595, abs=0.001)


def test_its_code_runs_and_says_what_it_says():
    machine.torch()
    for code in LESSON.code("python"):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, LESSON.name, "exec"), {})
        expected = re.findall(r"print\(.*\)\s+# (.+)", code)
        assert said.getvalue().split("\n")[:-1] == expected


# -- what the words claim ------------------------------------------------------------------------------------
def test_autocast_on_cuda_is_not_claimed_of_the_cpu():
    """The lesson's lists are of CUDA; the code beside them runs on the CPU, where a softmax stays narrow."""
    torch = machine.torch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.softmax(torch.nn.Linear(4, 4)(torch.randn(2, 4)), -1).dtype == torch.bfloat16


def test_autocast_s_lists_are_said_to_be_cuda_s():
    assert "On CUDA, matrix products" in LESSON.text


def movement(optimizer, unscale_first):
    """How far 200 steps move a layer's weights when its gradients come times 65,536 and are clipped to a norm
    of 1."""
    torch = machine.torch()
    torch.manual_seed(0)
    layer = torch.nn.Linear(64, 64)
    begun, steps = layer.weight.detach().clone(), optimizer(layer.parameters())
    for _ in range(200):
        steps.zero_grad()
        (layer(torch.randn(32, 64)).square().mean() * 65536).backward()
        for part in ("unscale", "clip") if unscale_first else ("clip", "unscale"):
            if part == "clip":
                torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            else:
                for weight in layer.parameters():
                    weight.grad /= 65536
        steps.step()
    return (layer.weight - begun).abs().mean().item()


def test_clipping_before_unscaling_stops_sgd_and_not_adam():
    torch = machine.torch()
    sgd, adam = (
        [movement(made, first) for first in (True, False)]
        for made in (lambda p: torch.optim.SGD(p, lr=0.1), lambda p: torch.optim.AdamW(p, lr=1e-3))
    )
    assert sgd[1] < sgd[0] / 1000 and adam[1] == pytest.approx(adam[0], rel=0.3)


def test_the_scaler_ends_four_octaves_under_what_a_typical_step_would_bear():
    multibox = rounded_training.MULTIBOX_MEDIAN, rounded_training.MULTIBOX_SPREAD
    assert (
        rounded_training.dynamic_scale(*multibox, 65504.0, rounded_training.FIRST_SCALE, 2000, 1)["last"]
        == 20
    )
    assert rounded_training.scaled(*multibox, 1.0, 5, 10, 65504.0, 1)["best"] == 24


def test_a_product_of_two_bf16_numbers_is_exact_in_fp32():
    draws = np.random.default_rng(1).random((1000, 2))
    for a, b in ((precision.BF16.round(x), precision.BF16.round(y)) for x, y in draws.tolist()):
        assert precision.FP32.round(a * b) == a * b


def test_outliers_do_little_up_to_ten_thousand_and_ruin_the_tensor_beyond():
    errors = [rounded_training.outlier_test(size, 4096)[0] for size in (10, 1e4, 1e5)]
    assert errors[1] < 1.1 * errors[0] and errors[2] > 4 * errors[0]


def test_a_count_in_bf16_stops_at_256():
    count = 0.0
    for _ in range(1000):
        count = precision.BF16.round(count + 1)
    assert count == 256


@pytest.mark.parametrize(("weights", "share"), [(4096, 0.96), (10**6, 0.604)])
def test_adam_does_notice_a_scale_that_was_never_taken_off(weights, share):
    """By hand: 1/(65,536·√N) against 1e-8, 2.38e-7 and 1.53e-8. Then PyTorch itself, its scaler and Adam on
    gradients of one size."""
    assert rounded_training.unscaled_step_share(weights) == pytest.approx(share, abs=0.002)
    torch = machine.torch()
    w = torch.zeros(weights, requires_grad=True)
    optimizer, scaler = torch.optim.Adam([w], lr=1e-3), torch.amp.GradScaler("cpu")
    scaler.scale(w.sum()).backward()
    torch.nn.utils.clip_grad_norm_([w], 1.0)
    scaler.step(optimizer)
    assert w.abs().mean().item() / 1e-3 == pytest.approx(share, abs=0.003)
