"""Training in blocks of 8 and 4 bits, against published tables."""

import pytest

from engine import catalog
from engine.mechanism import block_formats, sharding


@pytest.mark.parametrize(("key", "each"), [("mxfp8", 1.03125), ("nvfp4", 0.5625), ("mxfp4", 0.53125)])
def test_bytes_of_a_value_with_its_scale(key, each):
    assert block_formats.value_bytes(*block_formats.BLOCKS[key]) == each


@pytest.mark.parametrize(("key", "sent"), [("bf16-adam", 6.0), ("mxfp8", 4.0625), ("nvfp4", 3.125)])
def test_bytes_on_the_wire_for_a_micro_batch(key, sent):
    """Megatron-LM's table for generalized tensor parallelism: 6, 4.06 and 3.125 bytes a parameter."""
    recipe = catalog.recipe(key)
    weight, gradient = sharding.weight_bytes(recipe), sharding.gradient_bytes(recipe)
    assert block_formats.micro_batch_bytes(weight, gradient) == sent


@pytest.mark.parametrize("key", ["mxfp8", "nvfp4"])
def test_recipes_keep_a_weight_by_rows_and_by_columns(key):
    recipe = catalog.recipe(key)
    assert recipe.gathered_bytes == block_formats.value_bytes(*block_formats.BLOCKS[key])
    assert recipe.weight_bytes == 2 * recipe.gathered_bytes


@pytest.mark.parametrize(
    ("before", "after", "gpu", "share"),
    [
        (783, 1166, "gb200", 0.66),  # Llama 3.1 405B on 256
        (952, 1413, "gb300", 0.49),
        (3712, 4864, "gb200", 0.47),  # Llama 3 70B on 64
        (4864, 7296, "gb300", 0.50),
        (9652, 9900, "gb300", 0.04),  # Nemotron 3 Super on 64
    ],
)
def test_why_four_bits_gain_much_or_nothing(before, after, gpu, share):
    """Tokens a second and GPU in MXFP8 and NVFP4 (Megatron-Bridge 26.04 and 26.06): the time that became
    faster by the ratio of the peaks, 2 on GB200 and 3 on GB300."""
    chip = catalog.gpu(gpu)
    faster = chip.fp4_flops_per_s / chip.fp8_flops_per_s
    assert faster == pytest.approx({"gb200": 2, "gb300": 3}[gpu], rel=0.05)
    found = block_formats.narrowed_share(after / before, faster)
    assert found == pytest.approx(share, abs=0.02)
    assert block_formats.gain(found, faster) == pytest.approx(after / before)


def test_a_step_that_is_all_products_gains_all():
    assert block_formats.gain(1.0, 2.0) == 2.0 and block_formats.gain(0.0, 2.0) == 1.0
