"""The activation figure: Korthikanti's bars, what sequence and context parallelism divide, and the wall at 128k."""

import numpy as np
import pytest

from tests.widgets.reading import Reader
from widgets.activation_sharding import PARTS, ActivationSharding


shown = Reader(ActivationSharding).shown


def bars(found):
    """[part, bar] in bytes."""
    return np.reshape(found["parts"]["parts"]["bytes"], (len(PARTS), 6))


GPT3 = ActivationSharding.presets["GPT-3, 2k, as in 2022"]


def test_gpt3_has_the_terms_of_table_2():
    """GPT-3, s = 2048, t = 8 (arXiv:2205.05198): sbh = 25.2 MB; 10, 24/8 and 80/8 of it under TP, 114/8 with SP."""
    sbh = 2048 * 12288
    assert bars(shown(**GPT3)).T / sbh == pytest.approx(np.array([
        [10, 1, 2, 10], [10 / 8, 1, 2, 10], [10, 1, 2, 0], [10 / 8, 1, 2, 0], [2, 0, 0, 0], [2 / 8, 0, 0, 0]]))


def test_the_default_by_hand():
    """Llama 405B, 8,192 tokens, t = 8. Inputs and norms 8h = 131,072 bytes a token, attention 2·136·256/8 = 8,704, MLP
    6·53248/8 = 39,936: 179,712 a token under TP, 65,024 with SP; 80 GB over 126 layers are 635 MB."""
    found = shown()
    assert found["readouts"]["tensor_alone"] == {"text": "1.47 GB", "alarm": True}
    assert found["readouts"]["with_sequence"]["text"] == "533 MB"
    assert found["readouts"]["whole"]["text"] == "67.1 GB"              # 126 · 533 MB
    assert found["parts"]["limit"]["hbm_for_a_layer"] == pytest.approx(635e6, rel=1e-3)
    assert found["regimes"]["whole_part"]["met"] and not found["regimes"]["wall"]["met"]


def test_128k_without_context_parallelism_is_the_wall_and_16_ranks_take_it_down():
    alone, cut = shown(seq=131072), shown(seq=131072, context="16")
    assert alone["regimes"]["wall"]["met"] and not cut["regimes"]["wall"]["met"]
    assert alone["readouts"]["needed"]["text"] == "at least 14"         # 16 · 83.9 %
    assert (bars(alone)[:3] == 16 * bars(cut)[:3]).all()
    assert bars(cut)[:3] == pytest.approx(bars(shown())[:3]), "16 times the tokens on 16 ranks are the same tokens each"


def test_scores_grow_with_the_square_and_the_rest_does_not():
    one, two = bars(shown(seq=8192)), bars(shown(seq=16384))
    assert (two[3, :2] == 4 * one[3, :2]).all() and (two[:3] == 2 * one[:3]).all()


def test_a_bar_that_leaves_the_picture_is_cut_and_says_so():
    found = shown(seq=131072)
    totals, edge = found["parts"]["totals"], found["ranges"]["y"][1]
    assert totals["text"][0].startswith("▲") and not totals["text"][2].startswith("▲")
    assert max(found["parts"]["parts"]["top"]) < 0.9 * edge


def test_red_is_what_of_the_chosen_bars_is_over():
    over = shown(seq=131072, kept="full")["parts"]["over"]
    assert (over["right"] > over["left"]).tolist() == [False] * 4 + [True, False]


def test_full_recompute_costs_a_third_of_the_layers():
    """GPT-3's vocabulary is computed once: 33 % but for it."""
    assert shown(**GPT3 | {"kept": "full"})["readouts"]["again"]["text"] == "33.2 %"
    assert shown(**GPT3)["readouts"]["again"]["text"] == "0 %"


def test_the_hints_say_what_a_slab_is():
    """Of Llama 405B's layer: 131,072 bytes for each of 8,192 tokens."""
    assert ActivationSharding().hints()["parts"][2] == "inputs, norms: 1.07 GB a layer, tensor parallel, no scores"
