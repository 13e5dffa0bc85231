"""The memory budget of one GPU: its parts against memory's own formulas, the wall, the slider and the ways
back."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import catalog
from engine.catalog import models, recipes
from engine.mechanism import budget, memory
from engine.mechanism.adapters import BASE_BYTES, Adapter
from engine.mechanism.memory import FULL, NO_RECOMPUTE, SELECTIVE

H100 = catalog.gpu("h100-sxm")
ADAM = catalog.recipe("bf16-adam")
GPT3, LLAMA8 = catalog.model("gpt3-6.7b"), catalog.model("llama3-8b")
any_model = st.sampled_from(list(catalog.all_models().values()))
any_recipe = st.sampled_from(list(catalog.uniform_recipes().values()))
any_batch = st.tuples(st.integers(1, 10**5), st.integers(1, 64), st.sampled_from((0, 1, 2)), st.booleans())


def parts(model=LLAMA8, recipe=ADAM, seq=8192, micro_batch=1, recompute=NO_RECOMPUTE, flash=1):
    return budget.parts_bytes(models.parameters(model), model, recipe, seq, micro_batch, recompute, flash)


def changes(model=LLAMA8, recipe=ADAM, seq=8192, micro_batch=1, recompute=NO_RECOMPUTE, flash=1):
    return budget.totals_after_one_change(
        models.parameters(model), model, recipe, seq, micro_batch, recompute, flash
    )


def test_parts_are_memorys_own():
    found = dict(zip(budget.PARTS, parts()))
    state = memory.state_slabs(models.parameters(LLAMA8), ADAM)
    assert found["framework"] == memory.FRAMEWORK_BYTES
    assert [found["weights"], found["gradients"]] == list(state[:2])
    assert found["optimizer"] == pytest.approx(sum(state[2:]))
    assert found["activations"] == pytest.approx(memory.activation_bytes(LLAMA8, 8192, 1))
    assert found["transient"] == memory.logits_peak_bytes(LLAMA8, 8192, 1)


def test_full_recompute_has_the_larger_of_logits_and_one_layer():
    """6.7B at 2,048 tokens without FlashAttention: a layer is 34·s·h + 5·a·s² = 0.96 GB, the logits 1.03
    GB."""
    layer = 34 * 2048 * 4096 + 5 * 32 * 2048**2
    assert parts(GPT3, seq=2048, recompute=FULL, flash=0)[5] == 10 * 2048 * 50257 > layer
    layer = 34 * 4096 * 4096 + 5 * 32 * 4096**2
    assert (
        parts(GPT3, seq=4096, recompute=FULL, flash=0)[5] == pytest.approx(layer)
        and layer > 10 * 4096 * 50257
    )
    args = (models.parameters(GPT3), GPT3, ADAM)
    assert not budget.rebuilds_most(*args, 2048, 1, FULL, 0) and budget.rebuilds_most(*args, 4096, 1, FULL, 0)


def test_selective_recompute_rebuilds_the_scores_of_one_layer():
    """5·a·s² at 8,192 tokens is 10.7 GB, more than the logits; with FlashAttention there are no scores."""
    assert parts(GPT3, seq=8192, recompute=SELECTIVE, flash=0)[5] == pytest.approx(5 * 32 * 8192**2)
    assert parts(GPT3, seq=8192, recompute=SELECTIVE, flash=1)[5] == 10 * 8192 * 50257
    assert not budget.rebuilds_most(models.parameters(GPT3), GPT3, ADAM, 8192, 1, NO_RECOMPUTE, 0)


def test_fp32_doubles_what_is_kept_but_for_the_masks():
    """Of Korthikanti's 34 + 5·a·s/h, 32 + 4·a·s/h are 2-byte values and 2 + a·s/h masks: in fp32 66 +
    9·a·s/h."""
    fp32 = catalog.recipe("fp32-adam")
    assert parts(LLAMA8, fp32)[4] == pytest.approx(2 * parts(LLAMA8)[4]), "trained without dropout"
    scores = GPT3.heads * 2048 / GPT3.hidden
    assert parts(GPT3, fp32, 2048, flash=0)[4] / parts(GPT3, ADAM, 2048, flash=0)[4] == pytest.approx(
        (66 + 9 * scores) / (34 + 5 * scores)
    )
    assert parts(GPT3, fp32, 2048)[4] == pytest.approx(66 / 34 * parts(GPT3, ADAM, 2048)[4])


def test_the_first_over_is_where_the_running_sum_passes():
    class Gpu:
        hbm_bytes = 10e9

    assert budget.first_over(np.array([2e9, 2e9, 2e9, 2e9, 1e9, 1e9]), Gpu) == -1, "10 of 10 GB fit"
    assert budget.first_over(np.array([2e9, 2e9, 2e9, 2e9, 1e9, 1.1e9]), Gpu) == 5
    assert budget.first_over(np.array([2e9, 9e9, 2e9, 2e9, 1e9, 1e9]), Gpu) == 1


def test_the_slider_at_the_wall():
    """An 8B's state passes 80 GB by itself; a 1B's does not, and then it is the batch or the sequence."""
    small = catalog.model("llama3.2-1b")

    def slider(model, seq, batch):
        case = dict(seq=seq, micro_batch=batch)
        at = budget.slider_at_wall(parts(model, **case), changes(model, **case), H100)
        return budget.SLIDERS[at] if at >= 0 else None

    assert slider(LLAMA8, 1024, 1) == "model size"
    assert slider(small, 2048, 1) is None
    assert slider(small, 4096, 32) == "micro-batch"
    assert slider(small, 65536, 1) == "sequence"


def test_the_cheapest_cure_comes_first():
    small = catalog.model("llama3.2-1b")

    def cure(**case):
        at = budget.cheapest_cure(changes(small, **case), H100)
        return budget.CHANGES[at] if at >= 0 else None

    assert cure(seq=16384, flash=0) == "FlashAttention"
    assert cure(seq=4096, micro_batch=32) == "micro-batch of 1"
    assert budget.cheapest_cure(changes(catalog.model("llama3-70b")), H100) == -1


@settings(deadline=None)  # the first example reads the catalogue
@given(any_model, any_recipe, any_batch)
def test_no_change_costs_more(model, recipe, batch):
    total = parts(model, recipe, *batch).sum()
    assert (changes(model, recipe, *batch) <= total * (1 + 1e-12)).all()


@settings(deadline=None)  # the first example reads the catalogue
@given(any_model, any_recipe, any_batch)
def test_parts_are_finite_and_add_up(model, recipe, batch):
    found = parts(model, recipe, *batch)
    assert np.isfinite(found).all() and (found > 0).all() and found.shape == (6,)
    assert budget.total_bytes(models.parameters(model), model, recipe, *batch) == pytest.approx(found.sum())


@settings(deadline=None)
@given(any_model, any_recipe, any_batch)
def test_the_ranks_hold_the_state_beside_what_stays_whole(model, recipe, batch):
    found = parts(model, recipe, *batch)
    state, rest, ranks = found[1:4].sum(), found[0] + found[4:].sum(), budget.minimum_ranks(found, H100)
    if ranks == 0:
        assert rest >= H100.hbm_bytes
    else:
        assert state / ranks + rest <= H100.hbm_bytes * (1 + 1e-9)
        assert ranks == 1 or state / (ranks - 1) + rest > H100.hbm_bytes


def test_minimum_ranks_by_hand():
    """48 of state, 2 + 44 + 21 that stay whole: 13 GB are left of 80, so 48/13 = 3.7. With 80 whole, no
    number."""
    assert budget.minimum_ranks(np.array([2, 6, 6, 36, 44, 21]) * 1e9, H100) == 4
    assert budget.minimum_ranks(np.array([2, 6, 6, 36, 44, 34]) * 1e9, H100) == 0
    assert budget.minimum_ranks(np.array([2, 6, 6, 36, 10, 20]) * 1e9, H100) == 1


def test_a_sweep_is_one_call():
    seq = np.array([1024, 8192, 65536])
    found = parts(seq=seq)
    assert found.shape == (3, 6) and np.allclose(found[1], parts())
    assert budget.first_over(found, H100).shape == (3,)
    assert budget.cheapest_cure(changes(seq=seq), H100).shape == (3,)


def test_precision_of_one_recipe_and_moments_of_another():
    mixed = recipes.combined(catalog.recipe("fp32-adam"), catalog.recipe("adam-8bit"))
    assert (mixed.weight_bytes, mixed.gradient_bytes, mixed.master_bytes) == (4, 4, 0)
    assert mixed.momentum_bytes == mixed.variance_bytes == 1.002
    assert (mixed.activation_bytes, mixed.logit_bytes) == (4, 8)
    assert (ADAM.activation_bytes, ADAM.logit_bytes) == (2, 10)
    assert recipes.combined(ADAM, ADAM).bytes_per_param == 16


@pytest.mark.parametrize(
    ("name", "value"), [("seq", 0), ("micro_batch", 1.5), ("recompute", 3), ("flash", float("nan"))]
)
def test_bad_input_is_named(name, value):
    with pytest.raises(ValueError, match=name):
        parts(**{name: value})


def test_a_cure_is_not_looked_for_among_figures_that_cannot_be():
    with pytest.raises(ValueError, match="totals"):
        budget.cheapest_cure(-changes(), H100)
    with pytest.raises(ValueError, match="hbm_bytes"):
        budget.cheapest_cure(changes(), replace(H100, hbm_bytes=0.0))


def test_an_adapter_leaves_frozen_weights_and_the_state_of_its_own():
    """8B at rank 16: seven matrices of a layer have r·(k + n) more values, 41.9M in all. The frozen 6.98B in
    matrices take 2 bytes, or half a byte and its scales; embedding, output layer and norms take 2 either
    way."""
    sides = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336)
    trained = 16 * 32 * sides
    layers = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    for base, each in (("bf16", 2.0), ("nf4-double", BASE_BYTES["nf4-double"])):
        found = tuned(base)
        rest = models.parameters(LLAMA8) - layers
        assert found[1] == pytest.approx(layers * each + 2 * rest + 2 * trained)
        assert found[2:4] == pytest.approx([2 * trained, 12 * trained])
    assert found[0] == parts()[0] and found[5] == parts()[5]


def test_frozen_layers_keep_what_trained_ones_do_and_16_values_for_each_matrix():
    """Each A needs the input of its matrix for its own gradient, so with an adapter on all of them nothing is
    saved; x·A are 16 values of two bytes, for seven matrices in 32 layers."""
    assert tuned()[4] - parts()[4] == pytest.approx(8192 * 32 * 7 * 16 * 2)
    assert tuned(recompute=FULL)[4] == parts(recompute=FULL)[4]


@pytest.mark.parametrize("base", [None, "bf16", "nf4-double"])
def test_the_budget_of_a_fine_tune_is_the_step_s(base):
    """State to the byte; what a batch leaves behind is counted more roughly here."""
    adapter = base and Adapter(16, base=base)
    job = engine.Job(1, 4096, adapter=adapter)
    found = engine.estimate(LLAMA8, H100, job, engine.Layout(gpus=1, zero=0, recompute="full")).memory_bytes
    own = budget.parts_bytes(models.parameters(LLAMA8), LLAMA8, ADAM, 4096, 1, FULL, 1, adapter)
    assert own[1:4] == pytest.approx([found["weights"], found["gradients"], found["optimizer"]])
    assert own.sum() == pytest.approx(found["total"], rel=0.05)


def tuned(base="bf16", recompute=NO_RECOMPUTE):
    return budget.parts_bytes(
        models.parameters(LLAMA8), LLAMA8, ADAM, 8192, 1, recompute, 1, Adapter(16, base=base)
    )
