"""What PyTorch's allocator notes while the training steps of record/training_steps.py run on a GPU: the
history that `torch.cuda.memory._record_memory_history` keeps and pytorch.org/memory_viz draws.

It runs in a process of its own, in which no library has asked for memory yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from measure._gpu import apart

STEPS, LENGTH = 2, 8192
PHASES = ("forward", "backward", "optimizer", "zero_grad")
NOTED = ("alloc", "free_completed", "segment_alloc")
FRAMES = 3  # the innermost ones of a stack


def measure(device: str, quick: bool) -> dict:
    """Tokens of a sequence, and the history; a CPU has none."""
    found = {} if device == "cpu" else apart(__name__, "history()")
    return {"length": LENGTH} | found


def history() -> dict:
    """`events`: n + 1 when block n is allocated, -(n + 1) when it is freed; `ends`: the number of events
    after the set-up and after each phase of each step; `segments`: before which event the driver allocated
    how many bytes; `at_peak`: blocks of a gigabyte or more that are in use at the last step's peak, and the
    code that requested them."""
    import torch

    torch.cuda.memory._record_memory_history(stacks="python")
    marks = list(run_steps())
    trace = noted()[: marks[-1]]  # the model goes after that
    numbers: dict[int, int] = {}  # of the blocks that are out, by address
    found: dict = {"phases": PHASES, "bytes": [], "events": [], "segments": [], "ends": []}
    asked: list[list[str]] = []
    for index, event in enumerate(trace):
        found["ends"] += [len(found["events"])] * marks.count(index)
        if event["action"] == "segment_alloc":
            found["segments"].append([len(found["events"]), event["size"]])
        elif event["action"] == "alloc":
            found["bytes"].append(event["size"])
            asked.append(stack(event))
            numbers[event["addr"]] = len(found["bytes"])
            found["events"].append(len(found["bytes"]))
        elif event["addr"] in numbers:
            found["events"].append(-numbers.pop(event["addr"]))
    found["ends"] += [len(found["events"])] * marks.count(len(trace))
    return found | {"at_peak": at_peak(found, asked)}


def noted() -> list[dict]:
    """The events of the allocator's history that are kept."""
    import torch

    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    if any(event["action"] == "segment_free" for event in trace):
        raise ValueError("a segment went back to the driver: the history does not say what is reserved")
    return [event for event in trace if event["action"] in NOTED]


def run_steps() -> Iterator[int]:
    """Run the steps; yields the number of events at the end of the set-up and of each phase."""
    import torch

    from record.training_steps import BATCH, VOCABULARY, Decoder, in_bf16

    with torch.device("cuda"):
        model = in_bf16(Decoder)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    yield len(noted())
    for _ in range(STEPS):
        tokens, targets = (
            torch.zeros(BATCH, LENGTH, dtype=torch.long, device="cuda").random_(VOCABULARY) for _ in range(2)
        )
        loss = model(tokens, targets)
        yield len(noted())
        loss.backward()
        yield len(noted())
        optimizer.step()
        yield len(noted())
        optimizer.zero_grad()
        del tokens, targets, loss
        yield len(noted())


def stack(event: dict) -> list[str]:
    """The stack of a request, innermost frame first, as `file:line function`."""
    frames = [each for each in event.get("frames", []) if "memory_history" not in each["filename"]]
    return [f"{Path(each['filename']).name}:{each['line']} {each['name']}" for each in frames[:FRAMES]]


def at_peak(found: dict, asked: list[list[str]]) -> list[dict]:
    """The large blocks that are in use at the fullest moment of the last step."""
    out: set[int] = set()
    total, peak, held = 0, 0, set()
    for index, event in enumerate(found["events"]):
        (out.add if event > 0 else out.discard)(abs(event))
        total += found["bytes"][abs(event) - 1] * (1 if event > 0 else -1)
        if index >= found["ends"][-1 - len(PHASES)] and total > peak:
            peak, held = total, set(out)
    large = [n for n in sorted(held) if found["bytes"][n - 1] >= 1e9]
    return [{"block": n, "bytes": found["bytes"][n - 1], "asked_by": asked[n - 1]} for n in large]
