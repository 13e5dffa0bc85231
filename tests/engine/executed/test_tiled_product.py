"""A product tile by tile: it is the product, and reads what can be counted by hand."""

import numpy as np
import pytest

from engine.executed import tiled_product

RANDOM = np.random.default_rng(0)


def test_by_hand():
    """8 × 6 by 6 × 4 in tiles of 4 × 2, three along k at a time: four tiles, each of which reads 4 × 6 of a
    and 6 × 2 of b."""
    a, b = RANDOM.normal(size=(8, 6)), RANDOM.normal(size=(6, 4))
    result, read = tiled_product.product(a, b, 4, 2, 3)
    np.testing.assert_allclose(result, a @ b, rtol=1e-12)
    assert read == 4 * (4 * 6 + 6 * 2)


@pytest.mark.parametrize("blocks", [(4, 4, 4), (7, 3, 5), (16, 16, 16)])
def test_a_mask_reads_nothing(blocks):
    """Sizes that divide by nothing: each row of a is read once for each column of tiles, and no more."""
    a, b = RANDOM.normal(size=(13, 11)), RANDOM.normal(size=(11, 9))
    result, read = tiled_product.product(a, b, *blocks)
    np.testing.assert_allclose(result, a @ b, rtol=1e-12)
    assert read == 13 * 11 * -(-9 // blocks[1]) + 11 * 9 * -(-13 // blocks[0])


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="block_k"):
        tiled_product.product(np.ones((2, 2)), np.ones((2, 2)), 1, 1, 0)
