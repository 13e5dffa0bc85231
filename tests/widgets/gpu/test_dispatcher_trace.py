"""dispatcher_trace: it draws what was recorded, step by step."""

from decimal import Decimal

import numpy as np

from engine import catalog
from engine.one_gpu import traces
from tests.cases import in_one_test
from tests.widgets.reading import Reader
from widgets.gpu.dispatcher_trace import CASES, MODES, DispatcherTrace

READER = Reader(DispatcherTrace)
shown, met = READER.shown, READER.met


@in_one_test("case", CASES)
@in_one_test("mode", MODES)
def test_at_the_end_it_has_counted_the_whole_trace(case, mode):
    page, counts = shown(call=case, mode=mode), traces.counts(case, True, mode)
    for readout, what in (("operators", "operators"), ("graph", "nodes")):
        assert page["readouts"][readout]["text"] == str(counts[what])
    marks = page["parts"]["visits"]
    assert page["readouts"]["hops"]["text"] == (
        f"{counts['visits']} ({counts['composites']} ring{'' if counts['composites'] == 1 else 's'})"
    )
    assert (
        np.sum(marks["seen"]) == counts["visits"]
        and np.sum(marks["seen"] - marks["solid"]) == counts["composites"]
    )
    assert page["ends"]["play"] == len(
        traces.recordings.load("dispatch")["traces"][traces.name(case, True, mode)]["events"]
    )


def test_a_step_shows_one_more_event():
    """linear in fp32: its own visit, then t at three keys, then t's node, then addmm."""

    def seen(play, part):
        return int(np.sum(shown(autocast="off", play=str(play))["parts"][part]["seen"]))

    assert [seen(play, "visits") for play in range(7)] == [0, 1, 2, 3, 4, 4, 5]
    assert [seen(play, "nodes") for play in range(7)] == [0, 0, 0, 0, 0, 1, 1]


def test_the_default_keeps_what_the_hand_says():
    """bf16: copies of x (8192 · 4096) and w (4096 · 14336), and the GELU's input (8192 · 14336)."""
    kept = 2 * (8192 * 4096 + 4096 * 14336 + 8192 * 14336)
    assert kept == traces.kept_bytes("linear_gelu", True, "grad", 8192, catalog.model("llama3-8b"))
    assert shown()["readouts"]["keeps"]["text"] == "419 MB"


@in_one_test("tokens", [128, 1000, 8192, 20_000, 131_072])
@in_one_test("case", ["linear_gelu", "attention", "layer_norm"])
def test_what_the_operators_keep_adds_up_to_the_heading_as_it_is_printed(case, tokens):
    """8,192 tokens: 184.5 and 234.9 MB are 419.4, and neither 185 + 235 nor 184 + 235 may stand under 420."""
    parts = shown(call=case, tokens=str(tokens))["parts"]
    scale = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}

    def read(text):
        number, unit = text.split()
        return Decimal(number.replace(",", "")) * Decimal(scale[unit])

    rows = [text for text, seen in zip(parts["kept_rows"]["text"], parts["kept_rows"]["seen"]) if seen]
    said = parts["kept_in_all"]["narrow"].removeprefix("keeps ")
    number = Decimal(said.split()[0].replace(",", ""))
    step = Decimal(scale[said.split()[1]]) * Decimal(10) ** number.as_tuple().exponent
    assert abs(sum(map(read, rows)) - read(said)) < step / 2


def test_written_out_attention_outgrows_a_gpu_and_the_fused_one_does_not():
    assert met(call="attention", autocast="off", tokens="26000") == {"outgrown"}
    assert met(call="attention", tokens="21000") == {"outgrown"}  # 6 bytes a score under autocast
    assert not met(call="attention", autocast="off", tokens="24000") and not met(
        call="attention", tokens="20000"
    )
    assert met(call="sdpa", tokens="131072") == {"answered"} and not met(call="sdpa", tokens="20000")
    assert not met(call="matmul", tokens="131072")


def test_without_gradients_nothing_is_kept():
    assert met(mode="no_grad") == met(mode="inference") == {"nothing_kept"}
