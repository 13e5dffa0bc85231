"""What strategies spend: bars of the engine's loads, the way from plain data parallelism, and the wire that
binds."""

import json
import re

import numpy as np
import pytest

from course.widget_html import rich
from engine.__main__ import main
from engine.step import strategy
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.composition.strategy_triangle import (
    COLUMNS,
    END,
    MODELS,
    NAMES,
    REACH,
    REFUSED,
    RESOURCES,
    RESPONSES,
    StrategyTriangle,
)

read = Reader(StrategyTriangle)


def row(key, **state):
    columns = read.part("rows", **state)
    return {name: column[strategy.KEYS.index(key)] for name, column in columns.items()}


def bar(key, resource, **state):
    columns = read.part("bars", **state)
    at = RESOURCES.index(resource) * len(NAMES) + strategy.KEYS.index(key)
    return {name: column[at] for name, column in columns.items()}


def test_the_first_state_shows_every_trade():
    """Eight H100s: plain data parallelism does not fit, the pipeline idles, and tensor parallelism buys 133
    GB with a second of wire."""
    spent = {key: [row(key)[resource] for resource in RESOURCES] for key in ("dp", "pp", "tp")}
    assert [int(np.argmax(spent[key])) for key in spent] == [0, 1, 2]
    assert row("dp")["HBM"] > 1 > row("fsdp")["HBM"]
    assert not lacks(read.text("against"), "133 GB", "914 ms")
    assert not lacks(read.shown()["summary"], "Tensor parallelism", "133 GB")
    assert not read.met()


def test_the_fastest_step_stands_on_top_and_what_cannot_be_built_at_the_bottom():
    rows = read.part("rows")
    order = [strategy.KEYS[i] for i in np.argsort(-rows["y"])]
    assert order[-1] == "ep" and rows["refused"][strategy.KEYS.index("ep")].startswith(
        "cannot be built: it has no"
    )
    times = [row(key)["step_s"] for key in order[:-1]]
    assert times == sorted(times) and sorted(rows["y"]) == [i + 0.5 for i in range(len(NAMES))]


@in_one_test("preset", StrategyTriangle.presets)
def test_a_larger_number_is_never_drawn_shorter(preset):
    """Solid and hatched pieces together are as long as the load says, up to a break that carries the
    number."""
    shown = read.shown(**StrategyTriangle.presets[preset])["parts"]
    rows, bars, past = shown["rows"], shown["bars"], shown["past"]
    for axis, resource in enumerate(RESOURCES):
        its = slice(axis * len(NAMES), (axis + 1) * len(NAMES))
        end = bars["wide_right"][its].copy()
        if resource != "compute":
            of = slice(len(NAMES)) if resource == "HBM" else slice(len(NAMES), None)
            end = np.maximum(end, past["wide_right"][of])
            if resource == "interconnect":
                chosen = shown["band"]["y"] == rows["y"]
                end = np.maximum(end, np.where(chosen, shown["unhidden"]["wide_right"], -9))
        length = (end - COLUMNS[axis]) / REACH["wide"] * END
        assert length == pytest.approx(np.minimum(rows[resource], END))
        torn = [bool(sign) for sign in bars["torn"][its]]
        assert torn == list(rows[resource] > END)
        assert all(text for text, there in zip(bars["amount"][its], rows["step"]) if there)


def test_only_the_chosen_strategys_transfers_are_red():
    """Out of the node tensor and context parallelism both pass the arithmetic; the chosen one is the find."""
    state = {"gpus": "16"}
    assert row("tp", **state)["interconnect"] > 1 and row("cp", **state)["interconnect"] > 1
    shown = read.shown(**state)["parts"]
    seen = shown["past"]["wide_left"][len(NAMES) :] > 0
    assert [key for key, there in zip(strategy.KEYS, seen) if there] == ["cp"]
    assert shown["unhidden"]["wide_right"] > shown["unhidden"]["wide_left"] > 0
    assert read.part("unhidden")["wide_left"] < 0


def test_the_line_under_a_bar_reaches_to_plain_data_parallelism():
    trade = read.part("trade")
    assert trade["wide_end"][0] < trade["wide_start"][0] and trade["wide_end"][2] > trade["wide_start"][2]
    assert (
        max(read.part("trade", strategy="dp")["wide_start"]) < 0
        and max(read.part("trade", strategy="ep")["wide_end"]) < 0
    )


def test_readouts_are_the_command_lines_figures(capsys):
    main(
        [
            "estimate",
            "--model",
            "llama3.1-8b",
            "--gpu",
            "h100-sxm",
            "--gpus",
            "8",
            "--tp",
            "8",
            "--zero",
            "0",
            "--global-batch",
            "32",
            "--seq",
            "4096",
            "--json",
        ]
    )
    known = json.loads(capsys.readouterr().out)
    assert bar("tp", "HBM")["amount"].split()[0] == f"{known['memory_bytes']['total'] / 1e9:.3g}"
    assert row("tp")["step"].split()[0] == f"{known['step_s']:.3g}"


@pytest.mark.parametrize(
    "state", [{"gpus": "16"}, {"strategy": "fsdp", "seq": "1024"}, {"strategy": "fsdp", "gpu": "l40s"}]
)
def test_the_wire_binds_where_the_figure_says_that_it_can(state):
    assert "wires_bind" in read.met(**state)


def test_from_one_node_to_two_its_wires_take_twice_as_long():
    near, far = (row("tp", gpus=gpus) for gpus in ("8", "16"))
    assert far["interconnect"] > 2 * near["interconnect"]
    assert far["step_s"] > 1.5 * near["step_s"]


def test_memory_and_what_cannot_be_built_are_said():
    assert read.met(strategy="dp") == {"does_not_fit"}
    assert read.met(gpus="64") == {"cannot_be_built"} and read.text("against", gpus="64") == "cannot be built"
    assert bar("tp", "HBM", gpus="64")["amount"] == "" and "heads" in read.shown(gpus="64")["summary"]
    assert read.met(strategy="ep") == {"cannot_be_built"}
    assert "cannot_be_built" not in read.met(strategy="ep", model="mixtral-8x7b")


def test_what_the_formula_reckons_is_what_the_figure_shows():
    """The rates and parts under the figure lead to its two numbers: an ideal step of 1.43 s, wires busy for
    68.2 % of it."""
    text = " ".join(re.sub(r"<[^>]+>", "", str(rich(StrategyTriangle.formula))).split())
    parts_s = [float(found) for found in re.findall(r"(?:are|add) ([\d.]+) s\b", text)]
    assert len(parts_s) == 2 and f"{sum(parts_s):.2f} s" == "1.43 s" and read.text("ideal") == "1.43 s"
    piece_s = 7 / 8 * 4096 * 4096 * 2 / 365e9  # as eight H100 gather, with seven steps and a start
    gather_s = 4.79e-6 + 7 * 4.83e-6 + piece_s
    assert 32 * 32 * 8 * gather_s / sum(parts_s) == pytest.approx(
        row("tp")["interconnect"], rel=0.005
    )  # parts: three digits
    assert f"{100 * row('tp')['interconnect']:.1f} % of" in text


def test_every_strategy_has_its_words():
    assert len(NAMES) == len(RESPONSES) == len(REFUSED)
    for key in strategy.KEYS:
        name = strategy.STRATEGIES[strategy.KEYS.index(key)].name
        assert read.shown(strategy=key)["summary"].lower().startswith(name.lower())


def test_the_smallest_model_needs_none_of_it():
    """A billion parameters fit with plain data parallelism, whose wires are all but idle: the first answer is
    the best."""
    assert "llama3.2-1b" in MODELS and row("dp", model="llama3.2-1b")["HBM"] < 1
    assert row("dp", model="llama3.2-1b")["interconnect"] < 0.1


def test_the_last_row_says_how_the_chosen_one_differs_from_plain_data_parallelism():
    found, loads = read.part("trade"), {key: row(key) for key in ("dp", "tp")}
    more = loads["tp"]["interconnect"] - loads["dp"]["interconnect"]
    assert found["amount"][0] == "−133 GB" and found["amount"][2] == f"+{100 * more:.3g} points"
    assert found["of"] == ["", "of the ideal step", "of the ideal step"]
    assert found["who"][0] == "Tensor parallelism,"
    for none in ("dp", "ep"):
        assert not any(read.part("trade", strategy=none)["amount"]), none


def test_the_usable_memory_is_said_beside_what_is_sold():
    """80 GiB less what CUDA keeps, so that 84.8 GB on a card of "80 GB" are no error."""
    assert not lacks(read.part("capacity")["wide_name"], "84.8 GB", "80 GB")
