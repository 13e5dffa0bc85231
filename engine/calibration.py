"""Every efficiency constant of the engine, in one place, each with what it was fitted on.

Twelve numbers, each physical, none for a model, a row or a cluster. Ten are fitted; two (a launch, a hop through the
network) are taken as others measured them. Two more fitted numbers stand where they are used, since they are no rates:
``step.FLAT_BUFFERS_BYTES`` of older software's memory, and ``validation.TORCH_CALL_S`` of one benchmark. What is known
of one chip by measurement (its best matrix product) is data, and stands in ``catalog/achievable.toml`` with its source.

The rows that fitted a constant are marked ``fitted`` in the published cases; ``python -m engine validate`` reports them
apart from the others. All were fitted together by least squares of the logarithms, each group of rows weighing the
same, and then rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Calibration:
    """The constants; a test may pass its own to see what each one moves."""

    # Matrix products. A training step sustains this share of the best product of a sweep …
    # Fitted on: Korthikanti Table 5 (two rows), Megatron SC21 (four), Llama 3 Table 4 (one), H100 recipes (nine).
    matmul_sustained: float = 0.85
    # … times its peak per watt (TFLOP/s) to minus this power: clocks fall where the arithmetic is dense for the power.
    # Fitted on: the same rows and two on GB200, one on V100, side by side.
    matmul_power: float = 0.15
    # Fused attention reaches this share of the chip's peak for wide heads …
    # Fitted on: FlashAttention-3 on H100, head dimensions 64 and 128, not causal, 16,384 tokens.
    attention_share: float = 0.85
    # … times d / (d + this): the softmax of a score costs as much as this many steps along the head dimension.
    # Fitted on: the same two rows.
    attention_softmax_d: float = 40.0
    # Kernels between the products (norms, activations, the optimizer) and decoding reach this share of the HBM
    # bandwidth. Fitted on: the training rows above, within what streaming kernels measure (0.74 to 0.94).
    memory_share: float = 0.75
    # No kernel takes less than this, from one launch to the next.
    # Measured, not fitted: 20 short kernels launched asynchronously (NVIDIA, "Getting started with CUDA graphs").
    launch_s: float = 3.8e-6
    # A ring inside a node carries this share of the one-way link bandwidth.
    # Fitted on: 16 GiB on 8 A100 and on 8 H200 with NCCL's ring.
    link_share: float = 0.82
    # Through NICs a ring carries this share of their line rate.
    # Fitted on: NVIDIA's table for nodes of DGX H100 with 8 × 400 Gb/s.
    network_share: float = 0.92
    # AllReduce in the switch (NVLS): each GPU sends its buffer once, at this share of the one-way link bandwidth.
    # Fitted on: nccl-tests on 8 H100 and 8 GiB on 8 B200.
    switch_share: float = 0.60
    # One hop of a collective inside a node.
    # Fitted on: nccl-tests on 8 H100, 64 KiB to 64 MiB.
    link_hop_s: float = 1.0e-6
    # One hop of a collective through the network.
    # Measured, not fitted: NCCL's own hardware latency of a ring over the network with its LL protocol (tuning.cc).
    network_hop_s: float = 2.7e-6
    # Starting a collective that is already queued on the GPU.
    # Fitted on: the same nccl-tests rows.
    collective_start_s: float = 10.0e-6


DEFAULT = Calibration()


def names() -> list[str]:
    """The constants by name, in the order above."""
    return [field.name for field in fields(Calibration)]
