"""A model of one's own: what contradicts itself is refused in words, or fitted to the nearest that can be."""

import contextlib
import itertools
from dataclasses import replace

import numpy as np
import pytest

from engine import catalog
from engine.base import check
from engine.catalog import models
from engine.catalog.config_json import BOUNDS
from engine.catalog.models import AT_MOST, LATENT, sizes_of
from engine.mechanism.scaled_chip import scaled_chip
from engine.serving import inference
from engine.step import own
from engine.step.layout import Job, Layout, Machine, estimate, machine

OPTION = own.model_options()[0]


def numbers(model) -> dict:
    """The fields of a model that a page has controls for."""
    sizes = sizes_of(model) | {"vocab": model.vocab}
    return {name: sizes[name] for name in BOUNDS}


FIELDS = {name: max(number, BOUNDS[name][0]) for name, number in numbers(OPTION.model).items()}
H100 = machine(catalog.gpu("h100-sxm"))
ENDS = [*itertools.product(BOUNDS, (0, 1))]


def at_ends(*moved) -> dict:
    """The fields with some of them at one of their ends."""
    return FIELDS | {name: BOUNDS[name][end] for name, end in moved}


@pytest.mark.parametrize(("name", "most"), AT_MOST.items())
def test_a_contradiction_is_refused_even_where_checks_are_off(name, most):
    with check.trusted(), pytest.raises(ValueError, match=f"{name} must be at most {most} .3., got 4"):
        own.model(
            OPTION, FIELDS | {"layers": 8, "heads": 8, "experts": 8, "kv_heads": 1} | {most: 3, name: 4}
        )


@pytest.mark.parametrize("name", LATENT)
@pytest.mark.parametrize("precaution", [contextlib.nullcontext, check.trusted])
def test_a_latent_head_without_a_width_is_refused(name, precaution):
    """With both widths 0 its arithmetic is 0, and an estimate would divide by it."""
    with precaution(), pytest.raises(ValueError, match=f"{name} must be at least 1 where kv_lora is above 0"):
        own.model(OPTION, FIELDS | {"kv_lora": 512, name: 0})


def test_fields_at_any_of_their_ends_are_estimated_and_served():
    """All of them at once, where contradictions have been taken out."""
    random = np.random.default_rng(0)
    for _ in range(300):
        fields = own.fitted({name: float(random.choice(ends)) for name, ends in BOUNDS.items()})
        model = own.model(OPTION, fields)
        found = estimate(model, H100, Job(8, 4096), Layout(8))
        prefill = inference.prefill(model, H100, tp=1, batch=1, prompt=2000)
        decode = inference.decode_step(model, H100, tp=1, batch=4, context=2000)
        for seconds in (found.step_s, prefill.total_s, decode.total_s):
            assert 0 < seconds < np.inf, fields


def test_any_two_fields_at_their_ends_are_estimated_or_refused_in_words():
    refused = 0
    for moved in itertools.combinations(ENDS, 2):
        fields, why = at_ends(*moved), ""
        try:
            model = own.model(OPTION, fields)
        except ValueError as fault:
            why = str(fault)
        if why:
            refused += 1
            name = why.split()[0]
            assert name in dict(moved) or AT_MOST.get(name) in dict(moved), (moved, why)
            model = own.model(OPTION, own.fitted(fields))
        found = estimate(model, H100, Job(8, 4096), Layout(8))
        assert 0 < found.step_s < np.inf and 0 < found.terms.total_bytes < np.inf, moved
        assert all(seconds >= 0 for seconds in found.time_s.values()), moved
    assert refused


def test_what_can_be_is_left_as_it_is():
    for model in filter(models.in_short_keys, catalog.all_models().values()):
        fields = numbers(model)
        assert own.fitted(fields) == fields, model.key


MOST = int(BOUNDS["heads"][1])  # an even number


@pytest.mark.parametrize(
    ("heads", "asked", "got"),
    [
        (32, 8, 8),
        (32, 9, 8),
        (30, 8, 6),
        (7, 256, 7),
        (7, 6, 1),
        (MOST, MOST, MOST),
        (MOST, MOST - 1, MOST // 2),
    ],
)
def test_key_heads_divide_the_heads(heads, asked, got):
    assert own.fitted(FIELDS | {"heads": heads, "kv_heads": asked})["kv_heads"] == got


def test_an_own_gpu_is_as_fast_as_its_figures_say_whoever_makes_the_machine():
    """Twice the arithmetic and twice the bandwidth are twice every rate, not a point farther along the rates
    that were timed on the GPU whose key it has."""
    like = catalog.gpu("h100-sxm")
    twice = replace(
        like, bf16_flops_per_s=2 * like.bf16_flops_per_s, hbm_bytes_per_s=2 * like.hbm_bytes_per_s
    )
    found = Machine.of(twice)
    assert found.chip == scaled_chip(machine(like).chip, faster=2.0, wider=2.0) and found.gpu == twice
    assert found == own.machine(twice) and Machine.of(like) == machine(like)
    assert Machine.of(twice, gpus_per_node=4, oversubscription=2.0).wires == (
        machine(like, gpus_per_node=4, oversubscription=2.0).wires
    )


def test_an_own_gpu_says_which_one_it_is_like():
    with pytest.raises(ValueError, match="the key of a GPU of the catalogue that it is like, got 'mine'"):
        Machine.of(replace(catalog.gpu("h100-sxm"), key="mine"))


def test_a_machine_may_name_the_kind_of_its_nic():
    """EFA's start-ups in place of InfiniBand's; the rate stays what it was said to be."""
    plain, cloud = Machine.of("h100-sxm"), Machine.of("h100-sxm", nic="efa-100")
    assert cloud.wires.network.long_s == catalog.link("efa-100").full_s == 55e-6
    assert cloud.wires.nic_bytes_per_s == plain.wires.nic_bytes_per_s
    assert cloud.wires.box == plain.wires.box
    with pytest.raises(ValueError, match="efa-100"):
        Machine.of("h100-sxm", nic="efa-1000")
