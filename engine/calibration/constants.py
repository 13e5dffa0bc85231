"""Every efficiency constant of the engine, in one place, each with what it was fitted on.

There are five numbers, each with a physical meaning, none specific to a model, a row or a cluster. Four are
fitted; one (a launch) is taken from others' measurements. Products, attention, experts and collectives inside
a box are fitted on separate measurements, chip by chip (``products``, ``attention``, ``grouped``,
``exchange``, ``fitted.toml``); α of a network hop comes from the catalogue, by link. Four more fitted numbers
are kept where they are used because they are not rates: ``step.FLAT_BUFFERS_BYTES``, memory of older
software, ``step.COPYING_SLOWS``, what overlap does not hide, ``launch_costs.EXPERT_KERNELS``, launches of a
layer of experts, and ``validation.TORCH_CALL_S``, of one benchmark. Two more, ``matmul.SERVER_MULTIPLIES``
and ``matmul.CLOCKS``, were counted in measurements and not fitted to times. The best matrix product measured
on each chip is data, with its source in ``catalog/achievable.toml``.

The rows that a constant was fitted on are marked ``fitted`` in the published cases, and ``python -m engine
validate`` reports them separately. The first three are fitted together, by least squares of the logarithms,
each group of steps with the same weight: ``engine/validation/fitted_steps.py`` (part of ``make calibrate``)
finds their optimum and writes it here. ``network_share`` is set by hand, on one row.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from engine.calibration import launch_costs


@dataclass(frozen=True)
class Calibration:
    """The constants; a test may pass its own to see the effect of each."""

    # Matrix products. A training step sustains this share of the best product of a sweep …
    # Fitted on: Korthikanti Table 5 (two rows), Megatron SC21 (four), Llama 3 Table 4 (one), H100 recipes
    # (nine).
    matmul_sustained: float = 0.853
    # … times its peak per watt (TFLOP/s) to minus this power: clocks fall where the arithmetic is dense for
    # the power. Fitted on: the same rows and two on GB200, one on V100 (all nineteen fit all three).
    matmul_power: float = 0.147
    # Kernels between the products (norms, activations, the optimizer) reach this share of the HBM bandwidth.
    # Fitted on: the training rows above, but no lower than the slowest streaming kernel measured (they reach
    # 0.74 to 0.94); the rows alone would fit a smaller share.
    memory_share: float = 0.74
    # No kernel takes less of the GPU than this from one start to the next, 3.8 µs.
    # Measured, not fitted: 20 short kernels launched asynchronously (NVIDIA, "Getting started with CUDA
    # graphs"). In a graph it would be 3.4.
    launch_s: float = launch_costs.SHORT_KERNEL_S + launch_costs.STREAM_GAP_S
    # A ring through NICs reaches this share of their line rate.
    # Fitted on: NVIDIA's table for nodes of DGX H100 with 8 × 400 Gb/s.
    network_share: float = 0.92


DEFAULT = Calibration()


def names() -> list[str]:
    """The constants by name, in the order of the class."""
    return [field.name for field in fields(Calibration)]
