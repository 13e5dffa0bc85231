"""Lesson 04 has the parts of a lesson, its numbers are those worked by hand, and its words agree with the engine."""

import numpy as np
import pytest

from engine import catalog, collectives, data_parallel, flops, hardware, memory, models, units
from tests.lessons.reading import Lesson
from widgets.kit import prose

LESSON = Lesson("04-data-parallel.md")
H100, LLAMA_8B, SMALL = catalog.gpu("h100-sxm"), catalog.model("llama3-8b"), catalog.model("llama3.2-3b")
SPEED = hardware.achieved_flops_per_s(H100, 0.4)

# worked by hand: a part of the expression -> what the reader must see
BY_HAND = {
    "data_parallel.gradient_bytes(70e9) | GB": "140 GB",
    "collectives.ring_all_reduce_s(data_parallel.gradient_bytes(70e9), 10**6": "2.8 s",      # 280 / 100
    "flops.training_flops(70e9, 8192) | FLOP": "3.44e15 FLOP",
    "flops.training_flops(70e9, 8192) / 0.4e15": "8.6 s",
    'model("llama3-8b")), 15e12), 1': "57.9 years",                                  # 6 · 8.03e9 · 15e12 / 3.956e14
    "(4 + 2) / 2": "3",
    "(100 * 4 + 300 * 2) / 400": "2.5",
    "data_parallel.tokens_to_hide(10**6, 100e9, 1e15) | tokens": "4k tokens",        # 4e14 / 1e11
    "data_parallel.tokens_to_hide(10**6, 100e9, 1e15) / 8192 | %": "48.8 %",
    "data_parallel.useful_share(4, 1)": "20 %",
    "data_parallel.steps_of_least(4, 1)": "1.25×",
    "data_parallel.critical_batch_tokens(3.0)": "1.07M tokens",
    "data_parallel.critical_batch_tokens(2.0)": "7.37M tokens",
    "np.sqrt(63 / 6)": "3.2×",
    "data_parallel.start_ups_s(162": "196 ms",                                       # 162 · 126 · 9.6 µs
    "data_parallel.start_ups_s(21": "25.4 ms",
    'link("ib-ndr").latency_s) | MiB': "665 MiB",
    "models.embedding_parameters(": "1.05 GB",                                       # 128,256 · 4,096 · 2
    "data_parallel.useful_share(512 * 8192": "48.8 %",
    "memory.state_bytes(3e9)": "48 GB",
    "data_parallel.deviations_of_slowest(8)": "1.43",                                # the quantile at 7.625/8.25
    "data_parallel.deviations_of_slowest(1024)": "3.23",                             # … at 1,023.625/1,024.25
    'link("nvlink4").latency_s | µs': "3.4 µs",
    'link("nvlink4").bytes_per_s, link("nvlink4").latency_s) | MB': "415 MB",        # √(16.06e9 · 7 · 3.4e-6 · 450e9)
    "1.1 * 0.5 / data_parallel.slowest_s(1024": "3.3 %",
    "1.1 * 0.5 / data_parallel.slowest_s(8": "6.9 %",
    "0.01 * data_parallel.deviations_of_slowest(1024)": "3.2 %",
    'flops.training_flops(models.parameters(model("llama3.2-1b")), 8192) | TFLOP': "60.7 TFLOP",
    'gradient_bytes(models.parameters(model("llama3.2-1b"))), 128': "24.5 ms",       # 127/64 · 2.47 / 200
    "data_parallel.start_ups_s(49, 128, link(": "119 ms",                            # 49 · 254 · 9.6 µs
    "data_parallel.start_ups_s(49, 128, data_parallel.tree": "6.59 ms",              # 49 · 14 · 9.6 µs
    'model("llama3.2-1b")), 9e12), 128': "48.4 days",
    "walls.break_even_tokens_per_gpu(10**6, 100e9, 1e15) | tokens": "2.67k tokens",  # two thirds of 4,000
    "100e9 * walls.break_even": "32.6 GB/s",
    'gpu("b200").bf16_flops_per_s / gpu("h100-sxm")': "2.28×",                       # 2,250 / 989
    '2 * models.layer_parameters(model("llama3-70b"))': "1.71 GB",
    "data_parallel.slowest_s(1024, 0.5, 0.01) | ms": "532 ms",
    "walls.gpus_past(": "363",
    "data_parallel.batch_tokens(384, 8192)": "3.15M tokens",
    'memory.state_bytes(models.parameters(model("llama3.2-3b"))) | GB': "51.4 GB",
}


@pytest.mark.parametrize("part, seen", BY_HAND.items())
def test_the_numbers_are_those_worked_by_hand(part, seen):
    assert LESSON.shows(part) == seen


def test_its_widgets_stand_in_this_order():
    assert LESSON.widgets() == ["ddp_overlap", "ddp_scaling"]


def test_a_prediction_is_right_where_the_engine_says_so():
    assert [eval(right, prose.namespace()) for right in LESSON.right_answers()] == [0, 1]


def test_every_snippet_is_python():
    assert LESSON.code("python")
    for code in LESSON.code("python"):
        compile(code, "lesson 04", "exec")


# -- what the words claim --------------------------------------------------------------------------------------------
def exposed_s(bucket_mib: float) -> float:
    found = data_parallel.simulate_step(LLAMA_8B, 8192, 64, SPEED, 50e9, 9.6e-6, bucket_mib * units.MIB)
    return found["exposed_s"]


def test_the_snippets_division_gives_the_mean_over_all_tokens():
    """Sums of losses over ranks of unlike tokens, each divided by the mean count, then by the ranks."""
    losses, tokens = np.array([400.0, 600.0]), np.array([100.0, 300.0])
    assert np.mean(losses / (tokens.sum() / len(tokens))) == pytest.approx(losses.sum() / tokens.sum()) == 2.5


def test_the_parameters_cancel():
    """At exactly the rule's tokens a model of any size sends as long as it goes back."""
    tokens = data_parallel.tokens_to_hide(64, 50e9, H100.bf16_flops_per_s, 0.4)
    for params in (1e9, 70e9):
        at = data_parallel.step(params, tokens, 64, SPEED, 50e9, 0.0)
        assert at.communication_s == pytest.approx(at.backward_s)


def test_accumulation_leaves_the_exposed_time_and_shrinks_its_share():
    steps = [data_parallel.step(8e9, 2048, 64, SPEED, 12.5e9, 0.0, micro_batches=count) for count in (1, 64)]
    assert steps[0].exposed_s == steps[1].exposed_s
    assert steps[1].exposed_s / steps[1].step_s < 0.15 < 0.9 < steps[0].exposed_s / steps[0].step_s


def test_an_always_slow_rank_costs_a_tenth_alone_and_less_where_others_are_late_too():
    slow_s = 0.5 / 0.9
    for ranks in (8, 1024):
        assert 1 - data_parallel.slowest_s(ranks, 0.5, 0.0) / slow_s == pytest.approx(0.1)
        assert 1 - data_parallel.slowest_s(ranks, 0.5, 0.01) / slow_s < 0.09


def test_a_ring_inside_the_node_needs_770_tokens_and_one_of_eight_cards_nine_times_as_many():
    """0.4 · 989e12 · 7/8 over 450 and 50 GB/s."""
    tokens = [data_parallel.tokens_to_hide(8, wire, H100.bf16_flops_per_s) for wire in (450e9, 50e9)]
    assert tokens == pytest.approx([769, 6923], abs=1)


def test_the_optimum_of_buckets_is_flat_and_twenty_times_off_is_not():
    best = exposed_s(640)
    assert exposed_s(250) == pytest.approx(best, rel=0.05) and exposed_s(25) > 2.5 * best and exposed_s(8000) > 4 * best


def test_the_embedding_is_more_than_half_of_what_stays_exposed():
    alone = collectives.ring_all_reduce_s(2 * models.embedding_parameters(LLAMA_8B), 64, 50e9, 9.6e-6)
    assert 0.5 < alone / exposed_s(640) < 1


def test_the_envelopes_tokens_are_thirteen_times_the_rules():
    a100 = catalog.gpu("a100-80")
    needed = data_parallel.tokens_to_hide(128, catalog.node("dgx-a100").outgoing_bytes_per_s, a100.bf16_flops_per_s)
    assert 8192 / needed == pytest.approx(13, abs=0.5)


def test_its_buckets_are_49():
    found = data_parallel.simulate_step(catalog.model("llama3.2-1b"), 8192, 128, 1e14, 200e9, 9.6e-6)
    assert found["buckets"] == 49


def test_five_layers_of_70b_are_near_the_best_ring_bucket_of_1024():
    gradient = data_parallel.gradient_bytes(models.parameters(catalog.model("llama3-70b")))
    layer = 2 * models.layer_parameters(catalog.model("llama3-70b"))
    assert data_parallel.best_bucket_bytes(gradient, 1024, 50e9, 9.6e-6) / layer == pytest.approx(4.9, abs=0.1)
    assert data_parallel.best_bucket_bytes(gradient, 128, 50e9, 9.6e-6) / layer == pytest.approx(1.7, abs=0.05)


# -- the design ------------------------------------------------------------------------------------------------------
def days(cards: int) -> float:
    """The design's run: 384 GPUs, 8,192 tokens each, buckets of 256 MiB, trees."""
    step = data_parallel.simulate_step(SMALL, 8192, 384, SPEED, cards * 50e9, data_parallel.tree_alpha_s(384, 9.6e-6),
                                       256 * units.MIB)
    return 9e12 / (384 * 8192) * step["step_s"] / units.DAY


def test_one_card_misses_the_fortnight_and_two_make_it():
    assert days(1) > 14 > days(2) > days(4)


def test_the_design_just_fits_and_with_recomputation_easily():
    state = (memory.state_bytes(models.parameters(SMALL)) + memory.FRAMEWORK_BYTES
             + memory.output_layer_bytes(SMALL, 8192, 1))
    whole = state + memory.activation_bytes(SMALL, 8192, 1)
    assert 0.95 * H100.hbm_bytes < whole < H100.hbm_bytes
    assert state + memory.activation_bytes(SMALL, 8192, 1, recompute=2) < 0.75 * H100.hbm_bytes
    work = flops.training_flops(models.parameters(SMALL), 9e12)
    assert flops.run_time_s(work, 363, H100.bf16_flops_per_s, 0.4) < 14 * units.DAY
    assert 384 * 8192 < 4e6
