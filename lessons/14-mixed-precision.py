"""The numbers of lesson 14, Mixed precision."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from engine.catalog import gpu, model, models, recipe
from engine.executed import rounded_training
from engine.mechanism import memory, precision
from engine.mechanism.precision import Format

h100 = gpu("h100-sxm")  # an H100
params = models.parameters(model("llama3.1-405b"))  # the parameters of Llama 3.1 405B
master_bytes = memory.weight_bytes(params, bytes_per_param=4)  # its master weights in fp32
deepseek = recipe("fp8-deepseek-v3")  # what DeepSeek-V3 kept for each parameter
# 1.0 in bf16, with its first exponent bit flipped
flipped = precision.explored(
    1.0, 2.0**14, precision.BF16.exponent_bits, precision.BF16.mantissa_bits, precision.BF16.largest, 1
)


def descent(rate: float, steps: int) -> dict[str, Any]:
    """A bf16 weight on its way from 1 to 2, in each of the ways to keep it."""
    return rounded_training.trained(
        precision.BF16.exponent_bits, precision.BF16.mantissa_bits, rate, steps, 1
    )


def lost_share(scale: float) -> float:
    """The share of the figure's gradients that fp16 loses at a loss scale."""
    return rounded_training.scaled(
        rounded_training.MULTIBOX_MEDIAN,
        rounded_training.MULTIBOX_SPREAD,
        scale,
        precision.FP16.exponent_bits,
        precision.FP16.mantissa_bits,
        precision.FP16.largest,
        1,
    )["shares"][0]


def largest_octave(steps: int) -> float:
    """Where the largest gradient of so many steps lies, in octaves above the median."""
    return rounded_training.MULTIBOX_SPREAD * rounded_training.upper_quantile(
        1 / steps / rounded_training.VALUES
    )


def summed(bits: int, block: int) -> dict[str, float]:
    """The sum of 4,096 products of bf16 numbers, by the bits of the sum and the length of its blocks."""
    return rounded_training.gathered(4096, precision.BF16.mantissa_bits, bits, block, 1)


def operand_bytes(kind: str) -> float:
    """Two factors and the product, each 8,192 by 8,192."""
    return 8192**2 * (2 * memory.BYTES_PER_VALUE[kind] + np.maximum(memory.BYTES_PER_VALUE[kind], 2))


def frozen(rate: float, kept: Format) -> float:
    """The share of weights, normal with deviation 0.02, that an update of this size does not move."""
    return rounded_training.share_lost(rate=rate, deviation=0.02, number_format=kept)


# the loop of the exercise, with the largest gradient always at the same place
scaler_loop = rounded_training.dynamic_scale(
    7.5, 1e-6, precision.FP16.largest, rounded_training.FIRST_SCALE, 2000, 1
)


def sum_off_by(bits: int, block: int) -> float:
    """How far that sum is from the exact one."""
    found = summed(bits, block)
    return abs(found["total"] / found["exact"] - 1)


def in_mx(size: float) -> tuple[float, float]:
    """The error of normal values beside one of this size, and the share lost, with MX's scale for 32."""
    return rounded_training.outlier_test(size, block=32, power_of_two=True)


def four_bits(name: str, on: str, mxfp8: int, nvfp4: int, key: str) -> SimpleNamespace:
    """A training in MXFP8 and in NVFP4, tokens a second and GPU: its gain, and the share that it tells of."""
    ratio = gpu(key).peak_flops_per_s("fp4") / gpu(key).peak_flops_per_s("fp8")
    return SimpleNamespace(
        model=name,
        on=on,
        mxfp8=mxfp8,
        nvfp4=nvfp4,
        gain=nvfp4 / mxfp8,
        ratio=ratio,
        least_share=(1 - mxfp8 / nvfp4) / (1 - 1 / ratio),
    )


# what was measured, Megatron-Bridge, releases 26.04 and 26.06
FOUR_BITS = (
    four_bits("Llama 3.1 405B", "256 GB300", 952, 1413, "gb300"),
    four_bits("Llama 3.1 405B", "256 GB200", 783, 1166, "gb200"),
    four_bits("Llama 3 70B", "64 GB300", 4864, 7296, "gb300"),
    four_bits("Llama 3 70B", "64 GB200", 3712, 4864, "gb200"),
    four_bits("Nemotron 3 Super", "64 GB300", 9652, 9900, "gb300"),
)
NVFP4_BYTES = 0.5 + 1 / 16  # four bits, and a byte of scale for 16 values
qat_recovers = (11.878 - 9.859) / (11.878 - 8.905)  # of the perplexity that rounding lost, torchao's table

# -- what single sentences say -------------------------------------------------------------------------------
# how far short of its target the descent in bf16 stops
stops_short = rounded_training.stall_distance(precision.BF16.epsilon, rate=0.01)
# octaves from the largest gradient of one step to that of 2,000
octaves_above = largest_octave(steps=2000) - largest_octave(steps=1)
# the peak of an H100 in TF32 over that in fp32
tf32_gain = h100.peak_flops_per_s("tf32") / h100.peak_flops_per_s("fp32")
# the largest exponent of a weight that an update of 3·10⁻⁴ moves
largest_exponent = np.floor(np.log2(3e-4)) + 8
smaller_exponent = np.floor(np.log2(3e-5)) + 8  # the same for an update of 3·10⁻⁵
# weights that an update of 3·10⁻⁵ moves lie below this
smaller_moves_below = 2.0 ** (np.floor(np.log2(3e-5)) + 9)
