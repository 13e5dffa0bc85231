"""layout_planner: the mesh names each axis' own wire, what is cut is said, and the lines of advice stand where they hold."""

import numpy as np
import pytest

from engine import planner
from widgets.kit.widget import all_widgets

WIDGET = all_widgets()["layout_planner"]
NOTHING = "nothing to send"


def at(preset=None, **state):
    """The widget in a state."""
    widget = WIDGET()
    widget.set_state({name: str(value) for name, value in ((WIDGET.presets[preset] if preset else {}) | state).items()})
    return widget


def regimes(widget) -> dict:
    return {name: regime["text"] for name, regime in widget.shown()["regimes"].items() if regime["met"]}


@pytest.mark.parametrize("axes, per_node, wires", [
    ((1, 4, 8, 16), 8, [1, 1, 0, 2]),       # context 8 fills a node of eight, so that data neighbours stand in others
    ((2, 4, 8, 8), 8, [1, 1, 1, 0]),        # two tensor ranks in it: a context group takes two nodes
    ((8, 1, 1, 1), 8, [2, 2, 2, 0]), ((1, 1, 1, 8), 8, [2, 0, 2, 2]), ((8, 9, 1, 1), 72, [0, 2, 2, 0])])
def test_each_axis_has_its_own_wire(axes, per_node, wires):
    tp, pp, cp, dp = (np.array([float(axis)]) for axis in axes)
    case = planner.Case(*[None] * 8)._replace(wires=type("Wires", (), {"gpus_per_node": per_node}))
    layouts = planner.Layouts(*[[1.0]] * 11)._replace(tp=tp, pp=pp, cp=cp, dp=dp)
    assert [float(way) for way in planner.crosses(case, layouts)] == wires


def test_the_mesh_says_it_row_by_row():
    """The default: tensor 1, pipeline 4, context 8, data 16 on nodes of eight."""
    assert at().mesh()["label"] == [
        "Pipeline 4: across nodes", "in each stage data 16: across nodes", "in each replica context 8: in the node",
        f"for each of its pieces tensor 1: {NOTHING}"]
    assert [set(getattr(at(), part)()["wire"]) for part in ("stages", "replicas", "pieces", "shards")] == [
        {"across nodes"}, {"across nodes"}, {"in the node"}, {"one"}]


def test_a_row_that_is_cut_says_so():
    mesh = at("DeepSeek-V3 on 2,048 H800").mesh()
    assert mesh["label"][1] == "in each stage data 256: across nodes, 48 of 256 drawn"
    assert mesh["short"][1] == "DP 256 across nodes, 48 of 256 drawn" and "drawn" not in "".join(mesh["label"][2:])


def test_why_a_tenth_takes_much_of_what_is_nearly_all():
    """At 93 % arithmetic a tenth would take 1.11 times, if nothing came out from behind it."""
    widget = at("DeepSeek-V3 on 2,048 H800")
    assert widget.outcome().needed[0] > 1.5 and "of expert traffic no longer hide" in regimes(widget)["hidden_traffic"]
    assert "of data traffic no longer hide" in regimes(at())["hidden_traffic"]
    assert "hidden_traffic" not in regimes(at("8B on one node"))


def test_what_is_left_of_the_memory_is_said_where_it_is_little():
    widget = at("8B on one node")
    left = float(planner.headroom(widget.case(), widget.outcome()))
    assert 0 < left < 0.03 * 80e9 and "873 MB of 80 GB left" in regimes(widget)["tight"]
    assert "tight" not in regimes(at()) and "tight" not in regimes(at("405B on one node"))
