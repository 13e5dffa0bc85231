"""When torch.compile pays: hand-worked runs first, then the closed form against the run itself and the
recording."""

import numpy as np
import pytest

from engine.one_gpu import compilation, recordings
from engine.one_gpu.compilation import AUTOMATIC, OFF, ON
from tests.cases import in_one_test

MODES = {"automatic": AUTOMATIC, "off": OFF, "on": ON}


def test_one_shape_by_hand():
    """60 s to compile, 58.8 ms against 18.7 ms: 40.1 ms saved a step, 60 / 0.0401 = 1,496.3 steps; 22 s:
    548.6."""
    assert compilation.break_even_steps(1, OFF, 60.0, 0.0588, 0.0187) == 1497
    assert compilation.break_even_steps(1, OFF, 22.0, 0.0588, 0.0187) == 549
    assert compilation.total_s(1000, 1, OFF, 60.0, 0.0588, 0.0187) == pytest.approx(60 + 18.7)
    assert compilation.speed_up(1000, 1, OFF, 60.0, 0.0588, 0.0187) == pytest.approx(58.8 / 78.7)


@in_one_test(
    "shapes, dynamic, made",
    [
        (1, OFF, 1),
        (6, OFF, 6),
        (8, OFF, 8),
        (9, OFF, 8),
        (500, OFF, 8),
        (1, AUTOMATIC, 1),
        (2, AUTOMATIC, 2),
        (500, AUTOMATIC, 2),
        (1, ON, 1),
        (500, ON, 1),
    ],
)
def test_graphs(shapes, dynamic, made):
    assert compilation.graphs(shapes, dynamic) == made


def test_a_limit_of_one_holds_for_automatic_too():
    assert compilation.graphs(5, AUTOMATIC, 1) == 1
    assert compilation.kinds(10, 5, AUTOMATIC, 1) == (2, 0, 8)


def test_kinds_by_hand():
    """12 shapes, 30 steps, off: two rounds with 8 compiled of 12, then 6 more, all compiled: 22 and 8."""
    assert compilation.kinds(30, 12, OFF) == (22, 0, 8)
    assert compilation.kinds(30, 12, AUTOMATIC) == (
        1,
        29,
        0,
    )  # from the second step on the open graph serves all
    assert compilation.kinds(30, 1, AUTOMATIC) == (30, 0, 0)
    assert compilation.kinds(30, 12, ON) == (0, 30, 0)
    assert compilation.eager_share(12, OFF) == pytest.approx(4 / 12)


def test_automatic_by_hand():
    """Two compilations of 60 s; then each step takes 18.7 · 1.05 = 19.635 ms: 120 s / 39.165 ms = 3,063.96
    steps."""
    assert compilation.saving_s(6, AUTOMATIC, 0.0588, 0.0187, 1.05) == pytest.approx(0.039165)
    assert compilation.break_even_steps(6, AUTOMATIC, 60.0, 0.0588, 0.0187, 1.05) == 3064


def executed(steps, shapes, dynamic, compile_s, eager_s, compiled_s, any_size, limit):
    """The run, step by step, with a cache of graphs as Dynamo keeps one."""
    made, total_s = [], 0.0
    for step in range(steps):
        shape = step % shapes
        if shape not in made and "any" not in made and len(made) < limit:
            made.append("any" if dynamic == ON or (dynamic == AUTOMATIC and made) else shape)
            total_s += compile_s
        if "any" in made:  # the newest graph is tried first
            total_s += compiled_s * any_size
        elif shape in made:
            total_s += compiled_s
        else:
            total_s += eager_s
    return total_s


@in_one_test("shapes", [1, 2, 3, 8, 9, 14])
@in_one_test("dynamic", MODES.values())
@in_one_test("limit", [1, 2, 8])
def test_the_closed_form_is_the_run(shapes, dynamic, limit):
    for steps in (0, 1, 2, 5, 8, 9, 13, 14, 15, 100):
        costs = (3.0, 0.05, 0.02, 1.1, limit)
        assert compilation.total_s(steps, shapes, dynamic, *costs) == pytest.approx(
            executed(steps, shapes, dynamic, *costs)
        )


@in_one_test("shapes, dynamic", [(1, OFF), (6, OFF), (14, OFF), (6, AUTOMATIC), (50, AUTOMATIC), (6, ON)])
def test_before_break_even_eager_is_ahead_and_after_it_behind(shapes, dynamic):
    """To within one round of the shapes, whose steps are not alike."""
    costs = (60.0, 0.0588, 0.0187, 1.05)
    at = compilation.break_even_steps(shapes, dynamic, *costs)
    assert compilation.speed_up(at - shapes - 1, shapes, dynamic, *costs) < 1
    assert compilation.speed_up(at + shapes, shapes, dynamic, *costs) >= 1


def test_slower_code_never_pays():
    assert not compilation.pays(1, OFF, 0.6373, 0.6738)
    assert compilation.pays(1, OFF, 0.0588, 0.0187)


def test_code_for_any_size_is_as_fast_unless_something_else_is_said():
    """A tenth slower, 0.95 s, it saves nothing against 0.9 s of eager code; as fast, 0.864 s, it does."""
    assert compilation.pays(6, ON, 0.9, 0.864) and not compilation.pays(6, ON, 0.9, 0.864, 1.1)
    assert compilation.saving_s(6, ON, 0.9, 0.864) == pytest.approx(0.036)
    assert compilation.break_even_steps(6, ON, 3.6, 0.9, 0.864) == 100
    assert compilation.total_s(100, 6, ON, 3.6, 0.9, 0.864) == pytest.approx(3.6 + 86.4)
    assert compilation.speed_up(1e9, 6, ON, 3.6, 0.9, 0.864) == pytest.approx(0.9 / 0.864, rel=1e-6)


def test_it_broadcasts():
    steps = np.array([10.0, 1000.0, 1e6])
    total = compilation.total_s(steps, 14, OFF, 60.0, 0.0588, 0.0187)
    assert total == pytest.approx([compilation.total_s(s, 14, OFF, 60.0, 0.0588, 0.0187) for s in steps])


def test_a_break_by_hand():
    """67.1 MB written and read at 3.35 TB/s is 40.06 µs of GPU; two launches of 5 µs and 20 µs of guards: 30
    of CPU."""
    assert compilation.break_gpu_s(4096 * 8192 * 2, 3.35e12) == pytest.approx(40.06e-6, rel=1e-3)
    assert compilation.break_cpu_s(2, 5e-6, 20e-6) == pytest.approx(30e-6)


@pytest.mark.parametrize("wrong", [dict(shapes=0), dict(shapes=1.5), dict(limit=0), dict(dynamic=7)])
def test_bad_input_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        compilation.graphs(**dict(shapes=4, dynamic=OFF, limit=8) | wrong)


# -- the recording -------------------------------------------------------------------------------------------
def test_the_limit_is_that_of_the_recorded_release():
    assert recordings.load("graph_breaks")["recompile_limit"] == compilation.RECOMPILE_LIMIT


@in_one_test("key", ["lengths", "number"])
@in_one_test("mode", MODES)
def test_dynamo_compiled_as_often_as_the_model_says(key, mode):
    shapes = 10 if key == "lengths" else 12  # the last two lengths came before
    for call in range(1, 11):
        assert compilation.recorded(key, "graphs", dynamic=mode, call=call) == compilation.compiled_after(
            call, shapes, MODES[mode]
        )


def test_past_the_limit_a_known_length_keeps_its_graph_and_a_new_one_runs_eagerly():
    calls = compilation.run("lengths", dynamic="off")["calls"]
    assert [len(call["ran"]) for call in calls] == [1] * 8 + [0, 0, 1, 0]


def test_once_there_is_a_graph_for_any_length_it_serves_the_first_length_too():
    """Call 11 has the length of call 1 again."""
    assert [call["ran"] for call in compilation.run("lengths")["calls"]] == [[0]] + [[1]] * 11


def test_a_loop_with_a_break_leaves_its_own_frame_only():
    """The if and what it guards run eagerly; the layer that the loop calls is one graph, run three times."""
    call = compilation.run("layers")["calls"][0]
    assert call["ran"] == [0, 0, 0] and call["compiled"] == [0]
    assert (call["in_graphs"], call["ops"]) == (9, 15)  # matmul, gelu, layer_norm; max and >


def test_examples_reach_from_whole_to_nothing():
    keys = [each["key"] for each in recordings.load("graph_breaks")["examples"]]
    assert len(keys) >= 8
    assert compilation.recorded("mlp", "ran") == 1 and compilation.recorded("helper", "ran") == 4
    assert compilation.recorded("loops", "ran") == 0 and compilation.recorded("loops", "in_graphs") == 0


def test_every_mend_is_one_graph_compiled_once():
    for each in recordings.load("graph_breaks")["examples"]:
        if "mended" in each:
            assert compilation.recorded(each["key"], "graphs", "mended", call=12) == 1, each["key"]
            assert compilation.recorded(each["key"], "breaks", "mended") == 0
            for call in compilation.run(each["key"], "mended")["calls"]:
                assert len(call["ran"]) == 1 and call["in_graphs"] == call["ops"]


def test_nothing_recorded_differs_from_run_to_run():
    text = str(recordings.load("graph_breaks"))
    assert " at 0x" not in text and "/tmp" not in text and "/work" not in text
