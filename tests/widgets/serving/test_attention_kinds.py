"""attention_kinds: caches, states and arithmetic worked by hand, where curves end, and where a state
outweighs a short cache."""

import numpy as np
import pytest

from tests.cases import in_one_test
from tests.widgets.reading import Reader
from widgets.serving.attention_kinds import CONTEXTS, KINDS, AttentionKinds

READER = Reader(AttentionKinds)
shown, met = READER.shown, READER.met
ORDER = list(KINDS)


def readouts(**texts) -> dict:
    return {name: one["text"] for name, one in shown(**texts)["readouts"].items()}


def test_what_a_user_keeps_by_hand():
    """Qwen3.5: 15 layers of 2 heads of 256 take 30,720 B a token; 45 layers of 64 heads keep 128 x 128 values
    of 4 B each, and 3 inputs of a convolution over 12,288 channels in 16 bits: 192 MB."""
    states = 45 * (64 * 128 * 128 * 4 + 3 * 12288 * 2)
    assert states == 192_061_440
    assert readouts(context=8192)["kept"] == "444 MB"  # 192.06 + 8,192 x 30,720 B = 251.66
    assert readouts(context=8192, model="qwen3-235b-a22b")["kept"] == "1.58 GB"  # 94 x 2 x 4 x 128 x 2 B


def test_what_a_token_computes_by_hand():
    """DeepSeek-V3 absorbed: 61 layers x 128 heads x 2 x (576 + 512) a token before."""
    flops = 61 * 128 * 2 * 1088 * 8192
    assert readouts(context=8192, model="deepseek-v3")["computed"] == f"{flops / 1e9:.0f} GFLOP"


@in_one_test("context", [256, 1024, 1186, 1188, 4096, 2**20])
def test_a_state_outweighs_a_cache_up_to_where_the_mark_is(context):
    """192,061,440 B / (192,512 - 30,720 B) = 1,187 tokens."""
    assert ("state_outweighs" in met(context=context)) == (context < 1187)
    assert shown(context=context)["parts"]["equal"]["x"] == pytest.approx(1187.09, rel=1e-4)


@in_one_test("users", [1, 32, 1024])
@in_one_test("model", ORDER)
def test_a_curve_of_time_ends_where_its_users_no_longer_fit(users, model):
    curves = shown(measure="time", users=users)["parts"]["curves"]
    end = curves[f"x{ORDER.index(model)}"][-1]
    if end < CONTEXTS[-1]:
        after = CONTEXTS[np.flatnonzero(end < CONTEXTS)[0]]
        assert readouts(users=users, model=model, context=int(after) + 1)["step"] == "does not fit"
    assert readouts(users=users, model=model, context=int(end))["step"] != "does not fit"


@in_one_test("measure", ["cache", "flops", "time"])
def test_a_mark_lies_on_its_curve(measure):
    parts = shown(measure=measure, context=16384, users=1)["parts"]
    assert CONTEXTS[18] == pytest.approx(16384)
    for i in range(6):
        assert parts["marks"]["y"][i] == pytest.approx(parts["curves"][f"y{i}"][18])


def test_an_indexer_saves_arithmetic_and_no_memory():
    plain, indexed = (readouts(model=key) for key in ("deepseek-v3", "deepseek-v3.2"))
    assert (plain["kept"], indexed["kept"]) == ("9.21 GB", "11.3 GB")
    assert (plain["computed"], indexed["computed"]) == ("2.23 TFLOP", "166 GFLOP")
