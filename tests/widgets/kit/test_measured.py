"""Measured points in the figures: each in the states that it was measured in and in no other, where its
number says, with the engine's own error, and counted in words."""

import re
from functools import cache

import numpy as np
import pytest

from engine.base import units
from engine.catalog import hardware
from tests import states
from tests.cases import in_one_test
from tests.said import lacks
from widgets.kit.measured import NONE, Dots
from widgets.kit.widget import all_widgets

FIGURES = {slug: cls for slug, cls in sorted(all_widgets().items()) if cls.methods("measured_by")}
ELEVEN = [
    "alltoall_cost",
    "collective_cost",
    "ddp_scaling",
    "decode_latency",
    "deployment_planner",
    "layout_planner",
    "pipeline_timeline",
    "roofline",
    "serving_frontier",
    "topology_placement",
    "tp_scaling",
]

# What each figure's state is, in the words of a point's conditions: (present value, share that it may be
# off). Said here once more, so that a figure that forgot a condition is found.
PRESENT = {
    "alltoall_cost": lambda w: {
        "model": (w.model.key, 0),
        "node": (w.machine.key, 0),
        "way": (w.way.key, 0),
        "fp8": (float(w.fp8), 0),
        "tokens": (w.tokens, 0.1),
    },
    "collective_cost": lambda w: {
        "operation": (w.operation.key, 0),
        "ranks": (w.ranks, 0),
        "link_bytes_per_s": (w.link_bytes_per_s, 0.01),
    },
    "ddp_scaling": lambda w: {
        "gpu": (w.gpu.key, 0),
        "size": (w.size, 0.15),
        "step_tokens": (w.step_tokens, 0.3),
    },
    "decode_latency": lambda w: {
        "model": (w.model.key, 0),
        "gpu": (w.gpu.key, 0),
        "batch": (w.batch, 0.1),
        "weights": (w.weights.bytes, 0),
        "cache": (w.cache, 0),
    },
    "deployment_planner": lambda w: {
        "model": (w.model.key, 0),
        "gpu": (w.gpu.key, 0),
        "weights": (w.weights.bytes, 0),
        "prompt": (w.prompt, 0.1),
        "output": (w.answer, 0.1),
    },
    "layout_planner": lambda w: {
        "model": (w.model.key, 0),
        "gpu": (w.gpu.key, 0),
        "gpus": (w.gpus, 0),
        "batch_tokens": (w.batch_tokens, 0),
        "seq": (w.seq, 0),
        "recipe": (w.counted_recipe().key, 0),
        "narrow": (w.precision.narrow, 0),
    },
    "pipeline_timeline": lambda w: {
        "schedule": (w.schedule.key, 0),
        "stages": (w.stages, 0),
        "micro_batches": (w.micro_batches, 0.1),
        "chunks": (w.chunks, 0.25),
    },
    "roofline": lambda w: {"gpu": (w.gpu.key, 0), "precision": (hardware.PRECISIONS[int(w.precision)], 0)},
    "serving_frontier": lambda w: {
        "model": (w.model.key, 0),
        "gpu": (w.gpu.key, 0),
        "weights": (w.weights.bytes, 0),
        "cache": (w.cache, 0),
        "prompt": (w.prompt, 0.1),
        "output": (w.output, 0.1),
    },
    "topology_placement": lambda w: {
        "gpu": (w.machine.gpu.key, 0),
        "ranks": (float(w.sizes().tp), 0),
        "bytes": (8192 * w.model.hidden * 2, 0),
    },
    "tp_scaling": lambda w: {
        "gpu": (w.gpu.key, 0),
        "bytes": (w.batch * w.seq * w.hidden * 2, 0.05),
        "hidden": (w.hidden, 0),
        "seq": (w.seq, 0),
        "ffn_ratio": (w.ffn_ratio, 0),
        "matrices": (w.mlp, 0),
        "kv_share": (w.kv_share, 0),
    },
}
NODE_OF = {"h100-sxm": "dgx-h100", "a100-80": "dgx-a100", "b200": "dgx-b200"}
BYTES = {2.0: "bf16", 1.0: "fp8", 0.5: "int4"}


def controls(slug: str, at: dict) -> dict:
    """The texts of a state that a point was measured in."""
    at = at | {name: value[0] for name, value in at.items() if isinstance(value, list)}
    widths = {name: BYTES[at[name]] for name in ("weights", "cache") if name in at}
    own = {
        "alltoall_cost": lambda: {"machine": at["node"], "fp8": "on" if at["fp8"] else "off"},
        "collective_cost": lambda: {"per_node": 8},
        "deployment_planner": lambda: {"answer": at["output"]},
        "layout_planner": lambda: {"precision": "fp8" if at["narrow"] else "bf16"},
        "decode_latency": lambda: {"tp": f"{at['tp']}", "context": max(256, at["context"])},
        "roofline": lambda: {"dots": "on"},
        "pipeline_timeline": lambda: {"chunks": min(at.get("chunks", 1), 4)},
        "topology_placement": lambda: {
            "machine": NODE_OF[at["gpu"]],
            "tp": f"{at['ranks']}",
            "model": {2**26: "llama3-8b", 2**27: "llama3-70b"}.get(at["bytes"]),
        },
        "tp_scaling": lambda: (
            {"hidden": at.get("hidden", at["bytes"] // 2**14), "batch": at.get("batch", 1)}
            | ({"mlp": "plain", "kv_share": "full"} if "matrices" in at else {})
        ),
    }.get(slug, dict)()
    names = all_widgets()[slug].controls()
    plain = {name: value for name, value in at.items() if name in names and name not in ("kv_share", "base")}
    found = plain | widths | own
    return {name: found[name] for name in names if name in found and found[name] is not None}


def part_name(cls) -> str:
    return next(iter(cls.methods("measured_by")))


def points_of(cls):
    return cls.methods("measured_by")[part_name(cls)].measured_by.points.all


@cache
def in_its_state(slug: str, row: int):
    """A figure in the state that a point was measured in, or None where the figure has no such state."""
    cls = FIGURES[slug]
    texts = controls(slug, points_of(cls)[row].at)
    if slug == "topology_placement" and "model" not in texts:
        return None  # none of its models sums such a buffer
    widget = cls()
    widget.set_state(texts)
    return widget


def rows(slug: str) -> list[int]:
    return [row for row in range(len(points_of(FIGURES[slug]))) if in_its_state(slug, row)]


def cases():
    return [(slug, row) for slug in FIGURES for row in rows(slug)]


@cache
def tried(slug: str) -> list[tuple]:
    """A figure in states of all kinds, and what it shows there: presets, random ones, and those in which
    points were measured and their neighbours."""
    cls, found = FIGURES[slug], []
    for raw in [states.default(cls), *states.presets(cls), *states.scattered(cls, 8)]:
        widget = cls()
        widget.set_raw(raw)
        found.append(widget)
    for row in states.daily(rows(slug)[::5]):
        at = in_its_state(slug, row).raw_state()
        found.append(in_its_state(slug, row))
        for name, control in list(cls.controls().items())[:12]:
            for value in states.some(states.values_of(control), 3):
                widget = cls()
                widget.set_raw(at | {name: value})
                found.append(widget)
    return [(widget, widget.shown()) for widget in found]


def test_the_eleven_figures_that_promise_it_have_measured_points():
    assert list(FIGURES) == ELEVEN == sorted(PRESENT)
    for cls in FIGURES.values():
        assert isinstance(cls.controls()["dots"], Dots) and len(cls.methods("measured_by")) == 1


@in_one_test("slug, row", cases(), ids=lambda value: str(value))
def test_a_point_is_seen_in_the_state_in_which_it_was_measured(slug, row):
    widget, point = in_its_state(slug, row), points_of(FIGURES[slug])[row]
    part, said = (
        widget.shown()["parts"][part_name(type(widget))],
        widget.hints()[part_name(type(widget))][row],
    )
    assert part["seen"][row] == 1, point.told
    assert said.startswith(point.told) and said.endswith(f"Source: {point.source.name}, {point.where}.")
    assert part["measured"][row] == point.measured and part["ours"][row] == point.ours


@in_one_test("slug", FIGURES)
def test_most_points_have_a_state(slug):
    """Only the figure of placement shares its points with another, which has models for all of them."""
    assert len(rows(slug)) >= (5 if slug == "topology_placement" else len(points_of(FIGURES[slug])))


@pytest.mark.parametrize("slug", FIGURES)
def test_no_point_is_seen_in_a_state_that_contradicts_it(slug):
    cls, seen = FIGURES[slug], 0
    for widget, all_of_it in tried(slug):
        part, now = all_of_it["parts"][part_name(cls)], PRESENT[slug](widget)
        for point, shown in zip(points_of(cls), part["seen"]):
            if not shown:
                continue
            seen += 1
            for name, (present, off) in now.items():
                if name not in point.at:
                    continue
                at = point.at[name]
                if isinstance(present, str):
                    assert present in (at if isinstance(at, list) else [at]), (point.told, name, present)
                else:
                    assert abs(present - at) <= (off + 1e-9) * at, (point.told, name, present)
    assert seen, "no state shows a point: nothing was tested"


@pytest.mark.parametrize(
    ("slug", "at", "said"),
    [
        ("alltoall_cost", {"ep": "8", "fp8": "on", "tokens": 1000}, "Each GPU sent 1,024 tokens."),
        ("ddp_scaling", {"size": 8e9, "step_tokens": 120000}, "Each GPU took 131,072 tokens."),
        ("decode_latency", {"gpu": "a100-80", "batch": 1}, "Its context held 105 tokens."),
        ("pipeline_timeline", {"stages": 12, "micro_batches": 60}, "It had 64 micro-batches."),
        ("tp_scaling", {"hidden": 8192, "seq": 8000}, "Its messages held 134 MB."),
        (
            "serving_frontier",
            {"gpu": "h200", "weights": "fp8", "cache": "fp8", "prompt": 294, "output": 293},
            "It ran on 8 GPUs.",
        ),
    ],
)
def test_where_it_differs_from_the_state_the_hint_says_so(slug, at, said):
    """A number that is near, but not the same, is named."""
    widget = FIGURES[slug]()
    widget.set_state(at)
    name = part_name(FIGURES[slug])
    seen = np.flatnonzero(widget.shown()["parts"][name]["seen"])
    told = [widget.hints()[name][row] for row in seen]
    assert told and any(said in each for each in told), told


@pytest.mark.parametrize("slug", FIGURES)
def test_a_dot_stands_as_far_from_ours_as_its_error_says(slug):
    """Along the axis of its quantity; what lies past the picture's edge is drawn at it."""
    for row in rows(slug)[::2]:
        part = in_its_state(slug, row).shown()["parts"][part_name(FIGURES[slug])]
        x, y, ours_x, ours_y = (float(part[name][row]) for name in ("x", "y", "ours_x", "ours_y"))
        assert x == ours_x or y == ours_y
        ratio = (y / ours_y if x == ours_x else x / ours_x) if (x, y) != (ours_x, ours_y) else 1.0
        true = float(part["measured"][row] / part["ours"][row])
        edge = slug == "pipeline_timeline" and x == 1.25
        assert edge or ratio == pytest.approx(true, rel=1e-6), points_of(FIGURES[slug])[row].told


@pytest.mark.parametrize("slug", FIGURES)
def test_count_and_median_are_said(slug):
    cls, with_points = FIGURES[slug], 0
    for widget, shown in tried(slug):
        if not widget.dots:
            continue
        part = shown["parts"][part_name(cls)]
        off = [abs(point.error) for point, seen in zip(points_of(cls), part["seen"]) if seen]
        if not off:
            assert shown["measured"].startswith(NONE) and shown["unmeasured"]
            [named] = re.findall("try “(.+)”", shown["measured"])  # every figure leads to some
            there = cls()
            there.set_state(cls.presets[named])
            assert not there.shown()["unmeasured"]
            continue
        with_points += 1
        assert not shown["unmeasured"]
        median = units.human(float(np.median(off)), "percent", 2)
        many = f"{len(off)} published point{'s' if len(off) > 1 else ''}"
        assert shown["measured"].startswith(f"{many}; the engine is {median} off")
        assert ("in the median" in shown["measured"]) == (len(off) > 1)
        assert "measured point" not in shown["summary"]  # the line beside the switch says it
    assert with_points


NAMES_THEM = re.compile(r"([;,] )?○ [^']*?measured")


@pytest.mark.parametrize("slug", FIGURES)
def test_the_switch_hides_all_of_them_and_says_how_many(slug):
    widget = type(in_its_state(slug, rows(slug)[0]))()
    widget.set_raw(in_its_state(slug, rows(slug)[0]).raw_state())
    on = widget.shown()
    widget.dots = False
    off = widget.shown()
    name = part_name(type(widget))
    assert on["parts"][name]["seen"].any() and not off["parts"][name]["seen"].any()
    assert re.fullmatch(r"\d+ published points? hidden", off["measured"]) and not off["unmeasured"]
    assert off["summary"] == on["summary"]
    visible = {part: columns for part, columns in on["parts"].items() if part not in (name, "measured_row")}
    for part, columns in visible.items():  # nothing else changes, but for the words that name them
        assert str(off["parts"][part]) == NAMES_THEM.sub("", str(columns)), part


@pytest.mark.parametrize("slug", FIGURES)
def test_the_page_needs_no_prediction_of_its_own(slug, site):
    """Published numbers and errors are compiled as constants: a drag only asks which of them fit."""
    compiled = (site / "assets" / "widgets" / f"{slug}.js").read_text(encoding="utf-8")
    for point in points_of(FIGURES[slug])[:3]:
        assert point.told.replace('"', '\\"') in compiled


def test_in_collective_cost_the_bus_bandwidth_is_that_of_nccl_tests():
    """8 H100: 17.2 GB in 62.648 ms, printed as 479.9 GB/s, more than the link's 450: the switch adds up."""
    widget = FIGURES["collective_cost"]()
    widget.set_state({"ranks": 8, "per_node": 8, "view": "bandwidth"})
    part = widget.shown()["parts"]["points"]
    assert part["y"][np.argmax(part["x"])] == pytest.approx(479.9e9, rel=1e-4)


def test_the_planner_names_the_measured_layout_beside_its_own():
    shown = FIGURES["layout_planner"]().shown()
    measured = shown["parts"]["measured_row"]["text"]
    assert not lacks(measured, "Measured", "14.7 s", "Llama 3.1 70B", "512 H100", "TP 4")
    alone = FIGURES["layout_planner"]()
    alone.set_state({"gpus": 256})
    assert alone.shown()["parts"]["measured_row"]["text"] == ""


def test_in_the_planner_s_cloud_a_measured_layout_is_above_its_memory():
    """Its time is measured, its memory is what the engine says of the layout that ran."""
    widget = FIGURES["layout_planner"]()
    dots = widget.shown()["parts"]["published"]
    row = int(np.argmax(dots["seen"]))
    point = points_of(FIGURES["layout_planner"])[row]
    assert dots["x"][row] * widget.case().hbm_bytes == pytest.approx(point.total_bytes)
    assert dots["y"][row] * widget.unit_s() == pytest.approx(point.measured)
    assert 20e9 < point.total_bytes < widget.case().hbm_bytes
