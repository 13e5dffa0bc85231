"""Pictures in a training job: the tower's arithmetic and memory by hand, and what a step makes of them."""

import pytest

import engine
from engine import catalog
from engine.mechanism import matmul, seeing
from engine.mechanism.shape import shape
from tests.said import refused

VL = catalog.model(
    "qwen3-vl-8b"
)  # 27 layers of 1,152, an MLP of 4,304, patches of 16 × 16, four of them a token
ONE = engine.Pictures(each=1, pixels=1024 * 1024)
TRAINED = engine.Pictures(each=1, pixels=1024 * 1024, trained=True)
H100 = matmul.chip(catalog.gpu("h100-sxm"))
LAYER = 4 * 1152**2 + 2 * 1152 * 4304
LAYOUT = engine.Layout(gpus=64, zero=3)


def test_a_picture_of_a_megapixel_is_1024_tokens():
    assert ONE.tokens(VL) == 1024
    assert VL.tower.patches(1024 * 1024) == 4096
    assert catalog.model("gemma4-31b").tower.tokens(9 * 256.0 * 280) == 280  # all that it makes of a picture


def test_flops_by_hand():
    """Each of 4,096 patches meets all weights and all patches, in 27 layers."""
    forward = 27 * 4096 * (2 * LAYER + 4 * 4096 * 1152)
    assert seeing.flops_per_sequence(VL, ONE) == forward
    assert seeing.flops_per_sequence(VL, TRAINED) == 3 * forward
    assert seeing.flops_per_sequence(VL, engine.Pictures(3, 1024 * 1024)) == 3 * forward


def test_a_tower_takes_its_flops_at_a_rate_that_products_reach():
    found = seeing.tower_s(shape(VL), ONE, 8.0, H100)
    least = 8 * seeing.flops_per_sequence(VL, ONE) / 989e12
    assert 1.3 * least < found.forward_s < 3.5 * least and found.backward_s == 0
    trained = seeing.tower_s(shape(VL), TRAINED, 8.0, H100)
    assert trained.forward_s == found.forward_s
    assert 1.8 * found.forward_s < trained.backward_s < 2.6 * found.forward_s


def test_memory_by_hand():
    """A layer keeps for each patch sixteen times its width and four times the MLP's; a frozen tower one
    layer's."""
    a_layer = 4096 * (16 * 1152 + 4 * 4304)
    assert seeing.kept_bytes(shape(VL), TRAINED, 2.0) == 2 * 27 * a_layer
    assert seeing.kept_bytes(shape(VL), ONE, 2.0) == 2 * a_layer


@pytest.mark.parametrize("pictures", [ONE, TRAINED])
def test_a_step_adds_the_tower_to_each_micro_batch_and_to_memory(pictures):
    job, seen = engine.Job(64, 8192), engine.Job(64, 8192, pictures=pictures)
    without, found = (engine.estimate(VL, "h100-sxm", each, LAYOUT) for each in (job, seen))
    tower = seeing.tower_s(shape(VL), pictures, 1.0, H100)
    assert found.step_s - without.step_s >= 0.98 * sum(tower)
    state = 16.0 * VL.extra_params / 64 if pictures.trained else 2.0 * VL.extra_params / 64
    more = found.terms.total_bytes - without.terms.total_bytes
    assert more == pytest.approx(seeing.kept_bytes(shape(VL), pictures, 1.0) + state, rel=0.02)
    assert "pictures" in found.extrapolates and "pictures" not in without.extrapolates
    flops = seeing.flops_per_sequence(VL, pictures) * 64
    assert found.model_flops_per_gpu_per_s() * found.step_s * 64 == pytest.approx(
        without.model_flops_per_gpu_per_s() * without.step_s * 64 + flops
    )


def test_a_plan_leaves_each_gpu_the_whole_tower():
    best = engine.plan(VL, "h100-sxm", engine.Job(64, 8192, pictures=TRAINED), gpus=64).best
    assert (best.layout.tp, best.layout.pp, best.layout.cp) == (1, 1, 1)


def test_what_has_no_place_is_refused():
    def step(model="qwen3-vl-8b", pictures=ONE, **layout):
        job = engine.Job(64, 8192, pictures=pictures)
        return engine.estimate(model, "h100-sxm", job, engine.Layout(gpus=64, **layout))

    for axis in ("tp", "pp", "cp"):
        with refused(f"{axis} must be 1 with pictures", "got 2"):
            step(**{axis: 2})
    with refused("pictures must be None for Llama 3 8B", "no tower"):
        step("llama3-8b")
    with refused("each must be", "8,192 of a sequence", "got 9 of 1,024 tokens"):
        step(pictures=engine.Pictures(9, 1024 * 1024))
    with refused("each must be greater than 0, got 0"):
        engine.Pictures(0, 1024)
    with refused("pictures must be an engine.Pictures", "got 3"):
        engine.Job(64, 8192, pictures=3)
