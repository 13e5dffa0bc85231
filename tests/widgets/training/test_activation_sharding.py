"""The activation figure: Korthikanti's bars, what sequence and context parallelism divide, and the wall at
128k."""

import numpy as np
import pytest

from tests import states
from tests.said import lacks
from tests.widgets.reading import Reader
from widgets.training.activation_sharding import KEPT, ActivationSharding

shown = Reader(ActivationSharding).shown


def bars(**texts):
    """[part, bar] in bytes: without and with sequence parallelism for each of what may be kept."""
    of_each = [
        np.reshape(shown(**texts | {"kept": kept})["parts"]["parts"]["bytes"], (2, 4)) for kept in KEPT
    ]
    return np.concatenate(of_each).T


GPT3 = ActivationSharding.presets["GPT-3, 2,048 tokens, as in 2022"]


def test_gpt3_has_the_terms_of_table_2():
    """GPT-3, s = 2048, t = 8 (arXiv:2205.05198): sbh = 25.2 MB; 10, 24/8 and 80/8 of it under TP, 114/8 with
    SP."""
    sbh = 2048 * 12288
    assert bars(**GPT3).T / sbh == pytest.approx(
        np.array(
            [
                [10, 1, 2, 10],
                [10 / 8, 1, 2, 10],
                [10, 1, 2, 0],
                [10 / 8, 1, 2, 0],
                [2, 0, 0, 0],
                [2 / 8, 0, 0, 0],
            ]
        )
    )


def test_the_default_by_hand():
    """Llama 405B, 8,192 tokens, t = 8. Inputs and norms 8h = 131,072 bytes a token, attention 2·136·256/8 =
    8,704, MLP 6·53248/8 = 39,936: 179,712 a token under TP, 65,024 with SP; 80 GB over 126 layers are 635
    MB."""
    found = shown()
    assert found["readouts"]["tensor_alone"] == {"text": "1.47 GB", "alarm": True}
    assert found["parts"]["layer"]["short"][2:4] == ["1.47 GB", "533 MB"]
    assert found["readouts"]["whole"]["text"] == "67.1 GB"  # 126 · 533 MB
    assert found["parts"]["limit"]["hbm_for_a_layer"] == pytest.approx(635e6, rel=1e-3)
    assert found["regimes"]["whole_part"]["met"] and not found["regimes"]["wall"]["met"]


def test_128k_without_context_parallelism_is_the_wall_and_16_ranks_take_it_down():
    alone, cut = shown(seq=131072), shown(seq=131072, context="16")
    assert alone["regimes"]["wall"]["met"] and not cut["regimes"]["wall"]["met"]
    assert "14 context ranks or more" in alone["regimes"]["wall"]["text"]  # 16 · 83.9 %
    assert (bars(seq=131072)[:3] == 16 * bars(seq=131072, context="16")[:3]).all()
    assert bars(seq=131072, context="16")[:3] == pytest.approx(bars()[:3]), (
        "16 times the tokens on 16 ranks are the same tokens each"
    )


def test_scores_grow_with_the_square_and_the_rest_does_not():
    one, two = bars(seq=8192), bars(seq=16384)
    assert (two[3, :2] == 4 * one[3, :2]).all() and (two[:3] == 2 * one[:3]).all()


@pytest.mark.parametrize(
    "state", [*states.presets(ActivationSharding), *states.scattered(ActivationSharding, 60)]
)
def test_every_mark_is_on_the_axis_and_a_longer_bar_is_more(state):
    widget = ActivationSharding()
    widget.set_raw(state)
    page = widget.shown()
    low, high = page["ranges"]["x"]
    marks = np.append(page["parts"]["layer"]["x"], page["parts"]["limit"]["hbm_for_a_layer"])
    assert (marks >= 3 * low).all() and (marks <= high / 3).all()
    parts = page["parts"]["parts"]
    lengths = parts["right"] - parts["left"]
    assert lengths * np.sum(parts["bytes"][:4]) == pytest.approx(parts["bytes"])


def test_full_recompute_costs_a_third_of_the_layers():
    """GPT-3's vocabulary is computed once: 33 % but for it."""
    assert shown(**GPT3 | {"kept": "full"})["readouts"]["again"]["text"] == "33.2 %"
    assert shown(**GPT3)["readouts"]["again"]["text"] == "0 %"


def test_the_hints_say_what_a_mark_is():
    """Of Llama 405B's layer: 131,072 bytes for each of 8,192 tokens."""
    hints = ActivationSharding().hints()
    assert not lacks(hints["parts"][0], "inputs", "norms", "1.07 GB", "tensor parallel")
    assert not lacks(hints["layer"][3], "533 MB", "sequence parallel", "all but the scores")
