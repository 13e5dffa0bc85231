"""A step with an optimizer of whole matrices: its memory, its time, and what programs refuse."""

import pytest

import engine
from engine import catalog
from engine.catalog import models, recipes
from engine.mechanism import optimizers, sharding
from engine.step import search
from engine.step.layout import Job, Layout, Machine, estimate, machine
from tests.said import lacks, refused

LLAMA, DEEPSEEK = catalog.model("llama3.1-8b"), catalog.model("deepseek-v3")
MUON, ADAM = catalog.recipe("muon"), catalog.recipe("bf16-adam")
H100 = machine(catalog.gpu("h100-sxm"))


def of(recipe, layout, model=LLAMA, batch=64, at=H100, **software):
    return estimate(model, at, Job(batch, 8192, recipe, engine.software("modern", **software)), layout)


def held(recipe, layout, **software):
    return of(recipe, layout, **software).memory_bytes["optimizer"]


# -- memory --------------------------------------------------------------------------------------------------
def test_muon_saves_four_bytes_for_each_parameter_in_a_matrix():
    """On one GPU 12 bytes for 8.03B become 8 for the 6.98B in matrices. Eight ranks share both alike."""
    saved = 4 * optimizers.managed_params(LLAMA)
    one, eight = (held(ADAM, Layout(n)) - held(MUON, Layout(n)) for n in (1, 8))
    assert one == pytest.approx(saved) and eight == pytest.approx(saved / 8)
    assert held(MUON, Layout(8, zero=0)) == pytest.approx(held(MUON, Layout(1)))


def test_many_ranks_do_not_divide_a_matrix():
    """512 ranks: Adam's state goes on shrinking, but one rank has a whole matrix of 4,096 × 14,336."""
    assert held(MUON, Layout(512), batch=512) > 8 * 4096 * 14336
    assert held(ADAM, Layout(512), batch=512) < 8 * 4096 * 14336


def held_of(recipe, layout):
    return of(recipe, layout, DEEPSEEK, 15360).memory_bytes["optimizer"]


def test_pipelines_and_experts_share_as_before():
    """DeepSeek-V3 on 16 stages without ZeRO: master copy and momentum are two thirds of Adam's 12 bytes."""
    layout = Layout(2048, pp=16, ep=64, zero=0)
    assert held_of(MUON, layout) == pytest.approx(held_of(ADAM, layout) * 2 / 3, rel=0.02)


def test_recipes_combine():
    """Kimi K2 with MXFP8: weights of one recipe, moments and matrices of the other."""
    both = recipes.combined(catalog.recipe("mxfp8"), MUON)
    assert both.matrices == MUON.matrices and both.sent_weight_bytes == 1.03125
    assert of(both, Layout(8), at=machine(catalog.gpu("h100-sxm"), "fp8")).memory_bytes["weights"] == (
        2.0625 * models.parameters(LLAMA)
    )


# -- time ----------------------------------------------------------------------------------------------------
def test_an_update_by_hand():
    """Eight ranks of Llama 3.1 8B at the rate of large products: 32 · 20.8 TFLOP / 8 are 83 TFLOP, to which
    comes a pass over the state."""
    layer = sum(
        one.count * optimizers.newton_schulz_flops(*one[:2]) for one in optimizers.matrices(LLAMA).all
    )
    assert layer == pytest.approx(20.8e12, rel=0.01)
    passes = of(ADAM, Layout(8)).terms.optimizer_s
    found = of(MUON, Layout(8)).terms.optimizer_s - passes
    assert found == pytest.approx(32 * layer / 8 / H100.chip.matmul_flops_per_s, rel=0.1)


def test_without_zero_every_rank_computes_everything():
    alone, shared = (of(MUON, Layout(8, zero=zero)).terms.optimizer_s for zero in (0, 1))
    assert alone == pytest.approx(8 * shared, rel=0.01)


def test_nothing_but_the_optimizer_takes_longer():
    """Whole matrices cross the wires as Adam's parts do."""
    muon, adam = (of(recipe, Layout(64, tp=2, pp=2)).time_s for recipe in (MUON, ADAM))
    assert {name for name in muon if muon[name] != adam[name]} == {"optimizer"}


def test_tensor_ranks_repeat_the_work_unless_told_otherwise():
    """Eight tensor ranks, one data rank: blockwise does the least and is another update, distributed squares
    on every rank, duplicated does everything on each."""
    layout = Layout(8, tp=8, zero=0)
    blockwise, distributed, duplicated = (
        of(MUON, layout, orthogonal=mode).terms.optimizer_s
        for mode in ("blockwise", "distributed", "duplicated")
    )
    assert blockwise < distributed < duplicated
    assert duplicated > of(MUON, Layout(8, zero=0)).terms.optimizer_s * 0.95


def test_gate_and_up_as_one_matrix_cost_experts_more():
    """2,048 × 7,168 twice, or 4,096 × 7,168: by their FLOPs 2.25 times as much for gate and up."""
    two = 2 * optimizers.newton_schulz_flops(2048, 7168)
    assert optimizers.newton_schulz_flops(4096, 7168) / two == pytest.approx(2.25, abs=0.01)
    layout = Layout(2048, pp=16, ep=64)
    apart, joined = (
        of(MUON, layout, DEEPSEEK, 15360, joins_gate=joined).terms.optimizer_s for joined in (False, True)
    )
    assert joined > apart


def test_fsdp_gathers_parts_of_matrices_to_update_them():
    """torchtitan: the state stays cut in equal parts under ZeRO 3, and momentum and update cross wires."""
    layout, by = Layout(64, zero=3), engine.software("torchtitan")
    found = estimate(LLAMA, H100, Job(64, 8192, MUON, by), layout)
    total, managed = models.parameters(LLAMA), optimizers.managed_params(LLAMA)
    assert found.memory_bytes["optimizer"] == pytest.approx((12 * total - 4 * managed) / 64)
    assert found.terms.optimizer_s > sharding.optimizer_s(total / 64, MUON, H100.chip.memory_bytes_per_s)


def test_the_time_is_explained():
    because = of(MUON, Layout(8)).as_dict()["exposed_because"]["optimizer"]
    assert not lacks(because, "matrices")
    assert "matrices" not in of(ADAM, Layout(8)).as_dict()["exposed_because"]["optimizer"]


# -- what is refused -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("layout", "software", "words"),
    [
        (Layout(64, zero=2), "megatron-core", ("zero", "muon", "megatron-core", "FSDP")),
        (Layout(64, zero=3), "modern", ("zero", "muon", "3")),
        (Layout(64, zero=1, shard=8), "megatron-core", ("shard", "muon", "8")),
        (Layout(64, tp=2, zero=3), "torchtitan", ("tp", "torchtitan", "2")),
        (Layout(64), "llama3", ("software", "llama3", "muon")),
        (Layout(64, offload="optimizer"), "modern", ("offload", "optimizer")),
    ],
)
def test_what_a_program_refuses(layout, software, words):
    with refused(*words):
        estimate(LLAMA, H100, Job(64, 8192, MUON, catalog.training_software(software)), layout)


def test_sixteen_bits_must_be_bf16():
    with refused("precision", "fp16", "muon"):
        of(MUON, Layout(8), at=Machine.of("a100-80", "fp16"))


@pytest.mark.parametrize(
    ("key", "words"), [("soap", "eigenvectors"), ("shampoo", "roots"), ("nvfp4", "16 or 8 bits")]
)
def test_what_cannot_be_timed_is_refused(key, words):
    recipe = catalog.recipe(key)
    with refused("recipe", key, words):
        of(recipe, Layout(8))
    with refused("recipe", key, words):
        engine.plan(LLAMA, H100, Job(64, 8192, recipe), gpus=8)


# -- the search ----------------------------------------------------------------------------------------------
def test_a_search_finds_what_an_estimate_gives_and_nothing_that_it_refuses():
    found = engine.plan(LLAMA, H100, Job(64, 8192, MUON), gpus=16)
    for best in (found.best, *found.runners_up):
        assert best.layout.zero <= 1 and best.layout.shard == 0
        again = estimate(LLAMA, H100, Job(64, 8192, MUON), best.layout)
        assert again.terms == best.terms
    adam = engine.plan(LLAMA, H100, Job(64, 8192), gpus=16)
    assert found.layouts < adam.layouts


def test_torchtitan_searches_without_tensor_parallelism():
    found = engine.plan(LLAMA, H100, Job(64, 8192, MUON, engine.software("torchtitan")), gpus=16)
    assert {each.layout.tp for each in (found.best, *found.runners_up)} == {1}


def test_arrays_and_single_numbers_give_the_same():
    """The search's times, by which it ranks layouts, are those of ``estimate``."""
    job, seen = Job(64, 8192, MUON), []
    search.plan(
        LLAMA,
        H100,
        job,
        8,
        seen=lambda block, seconds, held, legal: seen.append((block, seconds, held, legal)),
    )
    checked = 0
    for block, seconds, held_bytes, legal in seen:
        times = seconds.reshape(-1, len(block.rows))
        some, allowed = held_bytes.reshape(times.shape), legal.reshape(times.shape)
        for cell, row in list(zip(*allowed.nonzero()))[::97]:
            one = estimate(LLAMA, H100, job, block.layout(row, int(cell)))
            assert one.step_s == pytest.approx(times[cell, row], rel=1e-12)
            assert one.terms.total_bytes == pytest.approx(some[cell, row], rel=1e-12)
            checked += 1
    assert checked > 5
