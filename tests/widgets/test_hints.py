"""What a mark says when a reader points at it, held against sums that can be done by hand."""

import re

import numpy as np

from engine.executed import tensor
from tests.said import lacks
from widgets.kit.widget import all_widgets


def hints(slug: str, **controls) -> dict:
    widget = all_widgets()[slug]()
    widget.set_state({name: str(value) for name, value in controls.items()})
    return widget.hints()


def said(texts: list[str]) -> list[str]:
    return [text for text in texts if text]


def test_a_slab_says_what_of_it_is_past_the_hbm():
    weights, gradients, *_ = hints("memory_stack", size="70e9", gpu="h100-sxm")["slabs"]
    assert not lacks(weights, "Weights", "140 GB", "2 B for each parameter", "60 GB", "past", "H100 SXM")
    assert not lacks(gradients, "140 GB", "2 B for each parameter", "all of it", "past", "H100 SXM")
    variance = hints("memory_stack", size="1e9")["slabs"][4]
    assert not lacks(variance, "Variance", "4 GB", "4 B for each parameter") and lacks(variance, "past")


def test_the_memory_wall_says_shares_of_the_total_and_what_a_change_leaves():
    over, fitting = hints("memory_wall"), hints("memory_wall", recompute="full")
    assert not lacks(over["parts"][1], "Weights", "6 GB", "5.22 %")
    assert not lacks(over["parts"][6], "total", "115 GB", "1.44×")
    assert not lacks(over["changes"][0], "FlashAttention", "115 GB", "34.9 GB", "past", "nothing")
    left = re.search(r"[\d.]+ GB", over["changes"][2])[0]
    assert not lacks(over["changes"][2], "Full checkpointing", "within")
    assert not lacks(fitting["parts"][6], "total", left)


def test_a_wall_says_the_largest_model_that_clears_it():
    texts = hints("three_walls", size="70e9")["bars"]
    for text in texts:
        filled, unit, largest = re.search(
            r": ([\d.]+)(×| % of) what .* up to (\S+) parameters", text
        ).groups()
        ratio = float(filled) * {"×": 1.0, " % of": 0.01}[unit]
        size = float(largest[:-1]) * {"B": 1e9, "T": 1e12}[largest[-1]]
        assert np.isclose(ratio * size, 70e9, rtol=0.01), text


def test_ranks_divide_the_arithmetic_and_meet_the_nodes_edge():
    texts = hints("tp_scaling", per_node=8)
    assert texts["times"][0].startswith("One rank: ") and texts["times"][0].endswith("an efficiency of 100 %")
    one, two = (float(re.search(r"([\d.]+) ms of arithmetic", text)[1]) for text in texts["times"][:2])
    assert np.isclose(one / two, 2, rtol=0.01)
    where = [re.search(r"in (one node|several nodes)", text)[1] for text in texts["sent"]]
    assert where == ["one node"] * 3 + ["several nodes"] * 3


def test_a_ring_ends_with_every_sum_everywhere_and_says_it_once_for_each_cell():
    for ranks, part in ((4, "numbers"), (8, "cells")):
        texts = hints("ring_allreduce", ranks=ranks, play=2 * (ranks - 1), size="1e9")
        other = {"numbers": "cells", "cells": "numbers"}[part]
        assert not said(texts[other]), "cells that are not on this picture speak"
        assert len(said(texts[part])) == ranks**2
        assert all(f"the sum over {ranks} ranks" in text for text in said(texts[part]))
        carried = {text.rsplit(" ", 2)[-2] for text in said(texts["messages_of_the_step"])}
        assert carried == {f"{2 * (ranks - 1) / ranks:.3g}"}
    before = hints("ring_allreduce", ranks=4, play=0)
    assert all(text.endswith(", its own") for text in said(before["numbers"]))
    assert not lacks(before["messages_of_the_step"][0], "Rank 0", "its own", "0 B")


def test_a_piece_of_work_says_its_share_of_the_peak_and_the_ridge_its_place():
    texts = hints("roofline", batch=32)
    decode = ("Decode", "32 users", "32 FLOP/B", "HBM", "107 TFLOP/s", "10.8 %")
    assert not lacks(texts["work"][1], *decode)
    assert not lacks(texts["memory_roof"][1], "Ridge", "295 FLOP/B")  # 989 TFLOP/s over 3.35 TB/s


def test_only_visible_numbers_of_the_split_product_speak():
    x, a, b = (np.array(matrix, dtype=float) for matrix in tensor.EXAMPLE)
    uncut = hints("tensor_split", play=0)
    spoken = {name for name, texts in uncut.items() if said(texts)}
    assert spoken == {"weights_a", "weights_b", "dense", "cost"}
    assert uncut["weights_a"][1].replace("−", "-") == f"A, row 1, column 2: {a[0, 1]:g}"
    done = hints("tensor_split", ranks=4, play=5)
    assert done["weights_a"][1].replace("−", "-") == f"A on rank 1, row 1, column 2: {a[0, 1]:g}"
    result = [float(text.rsplit(" ", 1)[1].replace("−", "-")) for text in done["joined"]]
    np.testing.assert_array_equal(result, (np.maximum(x @ a, 0) @ b).ravel())


def test_tiles_say_how_many_multiprocessors_the_last_wave_leaves_busy():
    texts = hints("tile_tuner", m=2048, n=4096, block_m=128, block_n=256)
    of_2048_rows = next(text for text in texts["curve"] if text.startswith("2,048 rows"))
    assert not lacks(of_2048_rows, "256 tiles", "124 of 132 multiprocessors", "last wave")  # 2·132 − 8
    assert not lacks(texts["gauges"][2], "Last wave", "124 of 132 multiprocessors", "93.9 %")
    assert not said(texts["measured"])
    refused = hints("tile_tuner", block_m=256, block_n=256, block_k=128, stages=6)
    assert "(it does not launch)" in refused["here"][0] and "(it does not launch)" in refused["curve"][0]


def test_each_gpu_has_a_place_of_its_own_on_the_axes():
    texts = hints("topology_placement", nodes=8, gpus_per_node=8, tp=8, pp=2, innermost="tp")
    at_nine = ("GPU 9", "node 1", "tensor rank 1", "expert rank 0", "data rank 1", "pipeline stage 0")
    assert not lacks(texts["ranks"][9], *at_nine)
    places = {text.split(": ")[1] for text in texts["ranks"][:64]}
    assert len(places) == 64
    assert texts["wires"][0].endswith(", 0 % for tensor parallelism")
    assert texts["bars"][1] == ""  # a dense model has no experts, and so no bar
    spread = hints(
        "topology_placement",
        model="mixtral-8x22b",
        nodes=8,
        gpus_per_node=8,
        tp=1,
        ep=8,
        pp=2,
        innermost="ep",
    )
    # the tenth of 32 data ranks: the second expert rank of the second copy
    spread_nine = ("GPU 9", "node 1", "tensor rank 0", "expert rank 1", "data rank 9", "pipeline stage 0")
    assert not lacks(spread["ranks"][9], *spread_nine)
    assert spread["bars"][2].startswith("Data, 32 ranks")
