"""The kernels that lesson 17 shows are Triton: run on the CPU by Triton's own interpreter, against numpy."""

from pathlib import Path

import pytest

from tests import machine

ROOT = Path(__file__).resolve().parents[2]
# fp32 sums of 45 products of normal numbers, each rounded to 2^-24 of at most about 30; the others sum less
CLOSE = 1e-5


@pytest.fixture(scope="module")
def differences():
    machine.torch("triton")
    return machine.interpreted("kernels")


@pytest.mark.parametrize(
    "kernel",
    [
        "add",
        "softmax",
        "linear_gelu",
        "attention",
        "softmax's gradient",
        "persistent",
        "matmul, groups of 1",
        "matmul, groups of 2",
        "matmul, groups of 3",
    ],
)
def test_a_kernel_gives_numpys_result_on_ragged_sizes(kernel, differences):
    assert differences[kernel] < CLOSE
