"""The rule of tokens: by hand, and held against the step that ``layout.estimate`` counts kernel by kernel."""

import pytest

from engine import catalog
from engine.catalog import models
from engine.mechanism import flops, hiding, matmul, walls
from engine.rules import replicas_held
from engine.step import layout
from tests.cases import in_one_test

H100 = catalog.gpu("h100-sxm")


def test_by_hand():
    """4e14/50e9 = 8,000 tokens, times 7/8 among eight; fp32 gradients double it, experts by P/P_active."""
    assert hiding.tokens_to_hide(8, 50e9, 4e14) == pytest.approx(7000)
    assert hiding.tokens_to_hide(8, 50e9, 4e14, gradient_bytes=4) == pytest.approx(14000)
    assert hiding.tokens_to_hide(8, 50e9, 4e14, params_per_active=3) == pytest.approx(21000)
    assert hiding.tokens_to_hide(1, 50e9, 4e14) == 0


@pytest.mark.parametrize("params", [1e8, 7e10])
def test_at_the_rule_the_bytes_take_as_long_as_the_backward_pass(params):
    tokens = hiding.tokens_to_hide(64, 50e9, 4e14)
    assert flops.backward_flops(params, tokens) / 4e14 == pytest.approx(walls.allreduce_s(params, 64, 50e9))


def test_a_pass_lasts_as_long_as_the_wire_is_busy():
    """1e9 parameters: 4e9 FLOPs a token at 4e14 a second are 10 µs; the bytes alone give the rule again."""
    assert hiding.tokens_lasting(0.05, 1e9, 4e14) == pytest.approx(5000)
    wire_s = walls.allreduce_s(7e10, 64, 50e9)
    assert hiding.tokens_lasting(wire_s, 7e10, 4e14) == pytest.approx(hiding.tokens_to_hide(64, 50e9, 4e14))


def test_the_rate_is_that_of_the_chip_in_an_estimate():
    for gpu in (H100, catalog.gpu("b200"), catalog.gpu("a100-80")):
        assert matmul.product_flops_per_s(gpu) == layout.machine(gpu).chip.matmul_flops_per_s
    assert matmul.product_flops_per_s(H100) / H100.bf16_flops_per_s == pytest.approx(0.65, abs=0.01)


# -- against the estimate ------------------------------------------------------------------------------------
def against_the_estimate(model, gpu, card_bytes_per_s: float, ranks: int) -> float:
    """The rule's tokens over those of the estimate."""
    machine = gpu.key, card_bytes_per_s
    rule = replicas_held.hiding_tokens(model, machine, ranks)
    return rule / replicas_held.fewest_tokens(model, replicas_held.at(machine), ranks)


MACHINES = replicas_held.MACHINES


@in_one_test("key, card_bytes_per_s", MACHINES)
def test_it_holds_in_its_domain(key, card_bytes_per_s):
    assert 8 * card_bytes_per_s < catalog.gpu(key).link_bytes_per_s
    found = {}
    for name in ("llama3-8b", "llama3-70b", "gpt3-175b", "llama3.1-405b"):
        model = catalog.model(name)
        assert models.parameters(model) >= hiding.FEWEST_PARAMS
        for ranks in (hiding.FEWEST_RANKS, 64, hiding.MOST_RANKS):
            found[name, ranks] = against_the_estimate(model, catalog.gpu(key), card_bytes_per_s, ranks)
    assert all(abs(ratio - 1) <= hiding.ERROR for ratio in found.values()), found


def test_its_error_is_no_larger_than_it_must_be():
    """The worst case is there: half of the printed error would be a promise that is not kept."""
    worst = against_the_estimate(catalog.model("llama3-8b"), catalog.gpu("h200"), 50e9, hiding.MOST_RANKS)
    assert hiding.ERROR / 2 < abs(worst - 1) <= hiding.ERROR


@pytest.mark.parametrize("name", ["mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b"])
def test_with_experts_it_asks_for_enough(name):
    """Grouped products are slower and long sequences have more attention, so fewer tokens would do "
    "as well."""
    for key, card_bytes_per_s in MACHINES:
        ratio = against_the_estimate(catalog.model(name), catalog.gpu(key), card_bytes_per_s, 64)
        assert 1 - hiding.ERROR <= ratio <= hiding.MOST_WITH_EXPERTS, (key, ratio)


def test_outside_its_domain_it_fails_as_its_words_say():
    """A small model on thousands of GPUs has start-ups to hide as well; a slow card leaves time to "
    "attention."""
    assert against_the_estimate(catalog.model("llama3.2-1b"), H100, 50e9, 4096) < 0.6
    assert against_the_estimate(catalog.model("llama3.2-1b"), H100, 12.5e9 / 8, 64) > 1.6


@pytest.mark.parametrize(
    "bad", [dict(ranks=1.5), dict(wire_bytes_per_s=0.0), dict(flops_per_s=-1.0), dict(params_per_active=0.0)]
)
def test_what_cannot_be_is_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        hiding.tokens_to_hide(**{**dict(ranks=8, wire_bytes_per_s=5e10, flops_per_s=4e14), **bad})
