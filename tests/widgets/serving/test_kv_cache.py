"""kv_cache: bytes and users worked by hand, bars that are cards, and where its regimes begin."""

import pytest

from engine.mechanism import memory
from tests import states
from tests.cases import in_one_test
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.serving.kv_cache import BARS, ROWS, KvCache

READER = Reader(KvCache)
shown, met = READER.shown, READER.met


def fit(**texts) -> dict:
    """The users that fit, by the name of the row."""
    return dict(zip(ROWS, shown(**texts)["parts"]["caches"]["users"]))


def test_the_default_by_hand():
    """2·80·8·128·2 = 327,680 B a token, 2.68 GB for 8,192; (78 − 17.64) GB over 336 MB a user and GPU:
    179."""
    page = shown()
    texts = {name: readout["text"] for name, readout in page["readouts"].items()}
    assert texts == {"token": "328 kB", "user": "2.68 GB", "shared": "8×"} and not met()
    assert not lacks(page["parts"]["heading"]["card"], "HBM", "8 H100 SXM", "85.5 GB", "78 GB")
    assert page["parts"]["labels"]["label"][0] == "179"
    assert page["parts"]["weights_held"]["right"][0] == pytest.approx(17.64e9, rel=1e-3)


def test_each_row_changes_one_thing():
    by_row = fit()
    assert by_row["fp8 cache"] == 359 and by_row["4-bit cache"] == 719  # half and a quarter of the bytes
    assert by_row["fp8 weights"] == 205  # 8.7 GB more room over 336 MB
    assert by_row["twice the GPUs"] == 206  # eight heads do not divide by sixteen
    assert by_row["no shared heads"] == 22  # 60.4 GB over 2.68


def test_a_cache_already_narrow_has_nothing_to_gain():
    users = [*fit(cache="int4", weights="int4").values()]
    assert users[:4] == [users[0]] * 4


EACH_STATE = [
    states.default(KvCache),
    *states.ends_of_the_main_slider(KvCache),
    *states.presets(KvCache),
    *states.scattered(KvCache, 60),
]


@in_one_test("state", EACH_STATE)
def test_a_card_is_never_fuller_than_it_is_and_a_longer_bar_holds_more(state):
    """Weights and users end to end, inside the card; where weights alone are too large, a break says so."""
    widget = KvCache()
    widget.set_raw(state)
    parts, hbm = widget.shown()["parts"], memory.card_bytes(widget.gpu)
    weights, users = parts["weights_held"], parts["caches"]
    assert (users["left"] == weights["right"]).all() and (users["right"] <= hbm).all()
    whole = widget.rooms()
    assert [bool(sign) for sign in weights["torn"]] == (whole.weights_bytes > hbm).tolist()
    held = whole.weights_bytes <= hbm
    assert (users["right"] - users["left"])[held] == pytest.approx(
        (whole.users * whole.user_bytes)[held], abs=hbm * 1e-9
    )


@in_one_test("state", EACH_STATE)
def test_the_line_is_at_the_users_asked_for_on_the_cards_that_hold_them(state):
    widget = KvCache()
    widget.set_raw(state)
    parts = widget.shown()["parts"]
    x, users = parts["asked"]["x"], parts["caches"]
    assert ((x > 0) == (users["users"] >= widget.users)).all()
    assert (x <= users["right"] * (1 + 1e-9)).all()


def test_each_cell_is_a_user():
    """179 users in columns of 4: 44 and one of 3. 43 gaps between whole columns and one before the last,
    three level ones over the whole columns, two in the last."""
    gaps = shown()["parts"]["gaps"]
    seen = gaps["x0"] > 0
    upright = seen & (gaps["x0"] == gaps["x1"])
    foot, head = BARS["bottom"][0], BARS["top"][0]
    own = (gaps["y0"] >= foot) & (gaps["y1"] <= head)
    assert (upright & own).sum() == 44 and (seen & ~upright & own).sum() == 5


def test_where_thousands_fit_a_cell_is_several_users():
    many = KvCache()
    many.set_state({"context": 256})
    assert many.users_of_a_cell() == 100 and KvCache().users_of_a_cell() == 1


def test_where_the_cache_ends():
    assert met(users=179) == set() and met(users=180) == {"exhausted"}
    assert met(gpus=1) == {"no_room"}


def test_a_latent_cache_is_whole_on_every_rank():
    """DeepSeek-V3 keeps 576 values in 61 layers: 70,272 B a token, on each of the ranks."""
    page = shown(model="deepseek-v3", gpu="h200", gpus=16, weights="fp8", users=1, context=4096)
    one = page["parts"]["asked"]["x"][0] - page["parts"]["weights_held"]["right"][0]
    assert page["readouts"]["token"]["text"] == "70.3 kB" and one == pytest.approx(70_272 * 4096)


def test_the_hints_say_what_a_bar_is():
    hints = KvCache().hints()
    assert not lacks(hints["weights_held"][0], "weights", "17.6 GB")
    assert not lacks(hints["caches"][0], "336 MB", "179")
