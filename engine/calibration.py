"""Every efficiency constant of the engine, in one place, each with what it was fitted on.

Twelve numbers, each physical, none for a model, a row or a cluster. What is known of one chip by measurement (its best
matrix product) is data, and stands in ``catalog/achievable.toml`` with its source. The rows that fitted a constant are
marked ``fitted`` in the published cases; ``python -m engine validate`` reports them apart from the others.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Calibration:
    """The constants; a test may pass its own to see what each one moves."""

    # Matrix products. A training step sustains this share of the best product of a sweep (clock and power under load).
    # Fitted on: Korthikanti Table 5 (selective rows), DGXC Llama 3.1 8B bf16.
    matmul_sustained: float = 0.88
    # Loading the first tiles and writing the result cost as much as this many steps along k.
    # Fitted on: Korthikanti Table 5 (22B against 1T), Megatron SC21 Table 1.
    matmul_ramp_k: float = 128.0
    # Fused attention reaches this share of the chip's peak for wide heads ...
    # Fitted on: FlashAttention-3 on H100, head dimensions 64 and 128, not causal, 16k.
    attention_share: float = 0.85
    # ... times d / (d + this): the softmax of a score costs as much as this many steps along the head dimension.
    # Fitted on: the same two rows.
    attention_softmax_d: float = 40.0
    # Streaming kernels (norms, activations, optimizer) reach this share of the HBM bandwidth.
    # Fitted on: Korthikanti Table 4 (with and without sequence parallelism).
    memory_share: float = 0.80
    # No kernel takes less than this, from one launch to the next.
    # Fitted on: kernel launch overheads (3.8 µs asynchronous), small llm-foundry models.
    launch_s: float = 4.0e-6
    # A ring inside a node carries this share of the one-way link bandwidth.
    # Fitted on: 16 GiB all_reduce on 8 A100 and on 8 H200 with NCCL's ring.
    link_share: float = 0.80
    # Through NICs a ring carries this share of their line rate.
    # Fitted on: GTC24 table, DGX H100 with 8 x 400 Gb/s.
    network_share: float = 0.93
    # AllReduce in the switch (NVLS): each GPU sends its buffer once, at this share of the one-way link bandwidth.
    # Fitted on: 16 GiB on 8 H200 and 8 GiB on 8 B200.
    switch_share: float = 0.57
    # One hop of a collective inside a node, and one through the network.
    # Fitted on: nccl-tests on 8 H100, 64 KiB to 64 MiB; the network hop from NCCL's own tables (LL128).
    link_hop_s: float = 0.6e-6
    network_hop_s: float = 4.0e-6
    # Starting a collective that is already queued on the GPU.
    # Fitted on: nccl-tests on 8 H100, 8 B to 512 KiB.
    collective_start_s: float = 9.0e-6


DEFAULT = Calibration()


def names() -> list[str]:
    """The constants by name, in the order above."""
    return [field.name for field in fields(Calibration)]
