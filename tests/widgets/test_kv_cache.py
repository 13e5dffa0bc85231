"""kv_cache: bytes and users worked by hand, and where its regimes begin."""

import pytest

from tests.widgets.reading import Reader
from widgets.kv_cache import ROWS, KvCache


READER = Reader(KvCache)
shown, met = READER.shown, READER.met


def test_the_default_by_hand():
    """2·80·8·128·2 = 327,680 B a token, 2.68 GB for 8,192; (78 − 17.64) GB over 336 MB a user and GPU: 179."""
    page = shown()
    texts = {name: readout["text"] for name, readout in page["readouts"].items()}
    assert (texts["token"], texts["user"], texts["fitting"], texts["weight"]) == ("328 kB", "2.68 GB", "179", "17.6 GB")
    assert texts["shared"] == "8×" and not met()


def test_each_row_changes_one_thing():
    fit = [int(label.split()[0].replace(",", "")) for label in shown()["parts"]["labels"]["label"]]
    by_row = dict(zip(ROWS, fit))
    assert by_row["fp8 cache"] == 359 and by_row["4-bit cache"] == 719     # half and a quarter of the bytes
    assert by_row["fp8 weights"] == 205                                    # 8.7 GB more room over 336 MB
    assert by_row["twice the GPUs"] == 206                                 # eight heads do not divide by sixteen
    assert by_row["no shared heads"] == 22                                 # 60.4 GB over 2.68


def test_a_cache_already_narrow_has_nothing_to_gain():
    rows = shown(cache="int4", weights="int4")["parts"]["caches"]["right"]
    assert rows[:4] == pytest.approx([rows[0]] * 4)


def test_where_the_cache_ends():
    assert met(users=179) == set() and met(users=180) == {"exhausted"}
    assert met(gpus=1) == {"no_room"}


def test_a_latent_cache_is_whole_on_every_rank():
    """DeepSeek-V3 keeps 576 values in 61 layers: 70,272 B a token, on each of the ranks."""
    page = shown(model="deepseek-v3", gpu="h200", gpus=16, weights="fp8", users=1, context=4096)
    one = page["parts"]["caches"]["right"][0] - page["parts"]["weights_held"]["right"][0]
    assert page["readouts"]["token"]["text"] == "70.3 kB" and one == pytest.approx(70_272 * 4096)


def test_the_hints_say_what_a_bar_is():
    hints = KvCache().hints()
    assert hints["weights_held"][0] == "weights: 17.6 GB on each GPU"
    assert hints["caches"][0] == "as it is: 336 MB for each user on each GPU; 179 would fit"
