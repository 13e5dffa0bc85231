"""The training steps of record/training_steps.py on a GPU: what PyTorch's own allocator allocates and
reserves in each, for lengths as lesson 15's figure draws them, with plain and with expandable segments.

Each run is a process of its own, since the allocator takes its setting when CUDA starts.
"""

from __future__ import annotations

from measure._gpu import apart

STEPS = 12
LENGTH = 1024
RUNS = [
    {"spread": spread, "seed": seed, "expandable": expandable}
    for spread, seed in ((0.0, 8), (0.5, 8), (0.5, 3), (0.9, 8))
    for expandable in (0, 1)
]


def measure(device: str, quick: bool) -> dict:
    """Each run's settings and its steps; the rehearsal on a CPU draws the lengths only."""
    runs = RUNS[:2] if quick else RUNS
    return {"length": LENGTH, "runs": [run | {"steps": steps_apart(run, device)} for run in runs]}


def steps_apart(run: dict, device: str) -> list[dict]:
    """The steps of a run in a process of their own, because the allocator reads its settings only once."""
    setting = f"expandable_segments:{bool(run['expandable'])}"
    return apart(__name__, f"steps({run!r}, {device!r})", PYTORCH_CUDA_ALLOC_CONF=setting)


def steps(run: dict, device: str) -> list[dict]:
    """Tokens of each step, and the most that was allocated and reserved in it."""
    from engine.one_gpu.allocator_replay import length_of_step

    lengths = [length_of_step(step, LENGTH, run["spread"], run["seed"]) for step in range(1, STEPS + 1)]
    if device == "cpu":
        return [{"tokens": length} for length in lengths]
    import torch

    from record.training_steps import BATCH, VOCABULARY, Decoder, in_bf16

    with torch.device(device):
        model = in_bf16(Decoder)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    found = []
    for length in lengths:
        torch.cuda.reset_peak_memory_stats()
        tokens, targets = torch.randint(VOCABULARY, (2, BATCH, length), device=device)
        model(tokens, targets).backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        seen = torch.cuda.memory_stats()
        found.append(
            {
                "tokens": length,
                "allocated_bytes": seen["allocated_bytes.all.peak"],
                "reserved_bytes": seen["reserved_bytes.all.peak"],
                "segments": seen["segment.all.peak"],
                "mallocs": seen["num_device_alloc"],
                "retries": seen["num_alloc_retries"],
            }
        )
    return found
