"""A torch.profiler trace as lanes: for each thread or stream the name, start and duration of every event.

Names are the profiler's own. A lane is a thread, or a stream of a GPU; gloo's worker threads share one lane,
because it is random which of them runs a collective. Times are in microseconds from the first event.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from torch.profiler import ProfilerActivity, profile

STEPS = 15  # the number of profiled steps
ON_THE_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
ON_THE_CPU = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")


def fastest(step: Callable[[], None], activities: list[ProfilerActivity], keep: Callable[[str], bool] = bool):
    """The lanes of the shortest of STEPS profiled steps, the one least disturbed by other work on the
    machine."""
    seen = []
    for _ in range(STEPS):
        with profile(activities=activities) as profiler:
            step()
        seen.append(lanes(profiler, keep))
    return min(
        seen, key=lambda found: max(start + took for lane in found for _, start, took in lane["events"])
    )


def lanes(profiler: profile, keep: Callable[[str], bool] = bool) -> list[dict]:
    """The lanes of a finished profile, with the thread that began first on top; only events whose name passes
    ``keep``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    wanted = [one for one in events if one.get("ph") == "X" and _lane(one) and keep(one["name"])]
    wanted.sort(key=lambda one: (one["ts"], -one["dur"]))
    first, found = wanted[0]["ts"], {}
    for one in wanted:
        row = [one["name"], round(one["ts"] - first, 1), round(one["dur"], 1)]
        found.setdefault(_lane(one), []).append(row)
    return [{"lane": _named(lane, list(found)), "events": rows} for lane, rows in found.items()]


def _lane(event: dict) -> tuple | None:
    """The lane that an event belongs to."""
    kind = event.get("cat")
    if kind in ON_THE_GPU:
        return ("stream", event["args"]["stream"])
    if kind in ON_THE_CPU:
        return ("gloo",) if event["name"].startswith("gloo:") else ("thread", event["tid"])
    return None


def _named(lane: tuple, all_lanes: list[tuple]) -> str:
    """A name that does not change from run to run, unlike a thread's number."""
    if lane[0] == "stream":
        return f"stream {lane[1]}"
    if lane[0] == "gloo":
        return "gloo thread"
    threads = [other for other in all_lanes if other[0] == "thread"]
    return "CPU thread" + (f" {threads.index(lane) + 1}" if len(threads) > 1 else "")
