"""Large dataclasses that are hashed once."""

from dataclasses import fields, replace

import numpy as np
import pytest

from engine import catalog
from engine.mechanism import matmul
from engine.mechanism.interconnect import wires

GPU = catalog.gpu("h100-sxm")


@pytest.mark.parametrize("made", [matmul.chip(GPU), wires(GPU)], ids=["chip", "wires"])
def test_every_number_has_a_say_in_the_hash(made):
    same = replace(made)
    assert same is not made and same == made and hash(same) == hash(made)
    changed = 0
    for field in fields(made):
        value = getattr(made, field.name)
        if field.init and isinstance(value, float):
            other = replace(made, **{field.name: value + 1.0})
            assert other != made and hash(other) != hash(made), field.name
            changed += 1
    assert changed


def test_one_array_among_the_numbers_leaves_it_without_a_hash():
    chip = replace(matmul.chip(GPU), memory_bytes_per_s=np.array([1e12, 2e12]))
    with pytest.raises(TypeError, match="unhashable type"):
        hash(chip)


def test_a_number_deep_inside_counts_too():
    chip = matmul.chip(GPU)
    other = replace(chip, product=replace(chip.product, ramp=chip.product.ramp + 1.0))
    assert hash(other) != hash(chip)
