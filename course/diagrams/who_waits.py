"""The first microseconds of a decode step, launched kernel by kernel and replayed from a graph: which of CPU
and GPU waits for the other."""

from __future__ import annotations

from course.drawing.picture import Picture
from engine import catalog
from engine.base import units
from engine.calibration import launch_costs
from engine.one_gpu import capture
from engine.step import layout

MODEL, GPU = "llama3-8b", "h100-sxm"
SPAN_S = 250e-6
HIGH = 22.0
WAYS = (("eager: the CPU launches each kernel", 0), ("captured: one launch for all of them", 1))


def played(captured: int) -> dict:
    """A decode step for one sequence, with the times of its first kernels."""
    model = catalog.model(MODEL)
    found = capture.kernels(
        "eager", model, layout.machine(catalog.gpu(GPU)), tp=1.0, batch=1.0, context=1024.0
    )
    return capture.run(found, model.depth, launch_costs.ISSUE_S, captured, shown=2)


def draw(width: float) -> Picture:
    name = catalog.model(MODEL).name
    picture = Picture(
        f"The first {units.human(SPAN_S, 'seconds')} of a token of {name}, eager and from a captured graph.",
        "Two pairs of lanes on one axis of time: what the CPU launches, and what the GPU runs. White in a "
        "lane is waiting.",
        width,
    )
    left = 40.0
    scale = (width - left) / SPAN_S
    y, told = 0.0, []
    for words, captured in WAYS:
        run = played(captured)
        whole = f"a token takes {units.human(float(run['total_s']), 'seconds')}"
        picture.text(0, y + 9, words, bold=True)
        picture.text(width, y + 9 if picture.wide else y + 26, whole, anchor="end")
        y += 22 if picture.wide else 38
        issues = (
            [(0.0, float(run["issued_s"][0]))] if captured else list(zip(run["began_s"], run["issued_s"]))
        )
        for lane, look, spans in (
            ("CPU", "other-step", issues),
            ("GPU", "compute", list(zip(run["start_s"], run["end_s"]))),
        ):
            picture.text(0, y + HIGH / 2, lane, ink="ink-soft")
            picture.box(left, y, width - left, HIGH, "idle", lane=lane, captured=captured)
            for start, end in spans:
                if start < SPAN_S:
                    stop = min(end, SPAN_S)
                    picture.box(
                        left + start * scale,
                        y,
                        (stop - start) * scale,
                        HIGH,
                        look,
                        lane=lane,
                        captured=captured,
                    )
            y += HIGH + 5
        told.append(f"{words}: {whole}")
        y += 14
    picture.tell(*told, "CPU above, GPU below")
    return picture
