"""The triangle: dots of the engine's loads, the arrow from plain data parallelism, and the wire that binds."""

import json
import re

import numpy as np
import pytest

from engine import strategy
from engine.__main__ import main
from tests.widgets.reading import Reader
from widgets.kit import triangle
from widgets.kit.cluster import OUT_OF_SIGHT
from widgets.kit.markup import rich
from widgets.strategy_triangle import MODELS, NAMES, REFUSED, RESPONSES, StrategyTriangle

read = Reader(StrategyTriangle)


def dot(key, **state):
    columns = read.part("dots", **state)
    return {name: column[strategy.KEYS.index(key)] for name, column in columns.items()}


def test_a_mark_that_spends_on_one_thing_alone_stands_in_its_corner():
    x, y = triangle.place(np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1 / 3, 1 / 3, 1 / 3], [0, 0, 0]]))
    assert np.allclose(np.stack([x, y], axis=1)[:3], triangle.CORNERS)
    assert np.allclose([x[3], y[3]], triangle.CORNERS.mean(axis=0)) and x[4] == OUT_OF_SIGHT
    sides = [np.hypot(*(end - start)) for start, end in triangle.EDGES]
    assert np.allclose(sides, 2.0, atol=1e-3)


def test_the_first_state_shows_all_three_corners_and_the_trade():
    """Eight H100s: data parallelism is near HBM and does not fit; tensor parallelism buys 133 GB with a second of wire."""
    assert [dot(key)["most"] for key in ("dp", "pp", "tp")] == ["HBM", "compute", "interconnect"]
    assert dot("dp")["fits"] == "over" and dot("tp")["fits"] == dot("fsdp")["fits"] == "fits"
    assert read.text("against") == "saves 133 GB, pays 1.1 s of wire"
    assert not read.met()
    arrow = read.part("trade")
    assert arrow["x1"] > arrow["x0"] and arrow["y1"] < arrow["y0"]          # to the right and down


def test_readouts_are_the_command_lines_figures(capsys):
    main("estimate --model llama3.1-8b --gpu h100-sxm --gpus 8 --tp 8 --zero 0 --global-batch 32 --seq 4096 --json".split())
    known = json.loads(capsys.readouterr().out)
    assert read.text("hbm").split()[0] == f"{known['memory_bytes']['total'] / 1e9:.3g}"
    assert read.text("step").split()[0] == f"{known['step_s']:.3g}"


@pytest.mark.parametrize("state", [{"gpus": "16"}, {"strategy": "fsdp", "seq": "1024"}, {"strategy": "fsdp", "gpu": "l40s"}])
def test_the_wire_binds_where_the_figure_says_that_it_can(state):
    assert "wires_bind" in read.met(**state)


def test_from_one_node_to_two_the_dot_leaps_towards_its_corner():
    near, far = (dot("tp", gpus=gpus) for gpus in ("8", "16"))
    assert far["x"] > near["x"] and far["y"] < near["y"] and far["interconnect"] > 2 * near["interconnect"]


def test_memory_and_what_cannot_be_built_are_said():
    assert read.met(strategy="dp") == {"does_not_fit"}
    assert read.met(gpus="64") == {"cannot_be_built"} and read.text("hbm", gpus="64") == "cannot be built"
    assert dot("tp", gpus="64")["x"] == OUT_OF_SIGHT
    assert read.met(strategy="ep") == {"cannot_be_built"}
    assert "cannot_be_built" not in read.met(strategy="ep", model="mixtral-8x7b")


def test_what_the_formula_reckons_is_what_the_figure_shows():
    """The rates and parts under the figure lead to its two numbers: an ideal step of 1.43 s, wires busy for 82.4 % of it."""
    text = " ".join(re.sub(r"<[^>]+>", "", str(rich(StrategyTriangle.formula))).split())
    parts_s = [float(found) for found in re.findall(r"(?:are|add) ([\d.]+) s\b", text)]
    assert len(parts_s) == 2 and f"{sum(parts_s):.2f} s" == "1.43 s" and read.text("step").endswith("ideal 1.43 s")
    piece_s = 7 / 8 * 4096 * 4096 * 2 / (0.82 * 450e9)
    gather_s = (7e-6 ** 0.5 + piece_s ** 0.5) ** 2 + 10e-6          # lesson 02's pipelined ring, and its start
    assert 32 * 32 * 8 * gather_s / sum(parts_s) == pytest.approx(dot("tp")["interconnect"], rel=0.005)   # parts: three digits
    assert f"{100 * dot('tp')['interconnect']:.1f} % of" in text


def test_every_strategy_has_its_words():
    assert len(NAMES) == len(RESPONSES) == len(REFUSED)
    for key in strategy.KEYS:
        assert read.shown(strategy=key)["summary"].startswith("On 8 × H100 SXM, ")


def test_the_smallest_model_needs_none_of_it():
    """A billion parameters fit with plain data parallelism, whose wires are all but idle: the first answer is the best."""
    assert "llama3.2-1b" in MODELS and dot("dp", model="llama3.2-1b")["fits"] == "fits"
    assert dot("dp", model="llama3.2-1b")["interconnect"] < 0.1


@pytest.mark.parametrize("preset", StrategyTriangle.presets)
def test_names_never_meet(preset):
    """Two names whose columns overlap stand at least a line of 13 px apart: 0.06 of the picture's unit, which is 200 px and more,
    and on a phone 0.1 of 130 px."""
    columns = read.part("names", **StrategyTriangle.presets[preset])
    for start, at, line in (("start", "at", 0.06), ("close", "close_at", 0.1)):
        seen = [i for i, x in enumerate(columns["x"]) if x != OUT_OF_SIGHT]
        for i in seen:
            for j in seen[:seen.index(i)]:
                beside = abs(columns[start][i] - columns[start][j]) > 0.55
                assert beside or abs(columns[at][i] - columns[at][j]) > line, (NAMES[i], NAMES[j])
