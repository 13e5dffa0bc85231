"""A sweep finds what trying every combination one by one finds, row by row and in groups."""

import itertools

import numpy as np

from engine.base.sweep import sweep


def test_a_sweep_is_every_combination_tried_one_by_one():
    rows, dimensions = (
        {"x": [1.0, 2.0, 7.0, np.nan]},
        [{"y": (3.0, 4.0)}, {"z": (0.5, 2.0, 2.5), "w": (1.0, 0.0, 1.0)}],
    )

    def measure(point):
        return [point["x"] != point["y"] + 3.0, point["w"] > 0.0], {
            "near": (abs(point["x"] - point["y"] * point["z"]), point["x"] > 1.0)
        }

    near = sweep(rows, dimensions, measure)["near"]
    for i, x in enumerate(rows["x"][:3]):
        tried = [
            (abs(x - y * z), cell)
            for cell, (y, (z, w)) in enumerate(itertools.product((3.0, 4.0), zip(*dimensions[1].values())))
            if x != y + 3 and w > 0 and x > 1
        ]
        assert near.count[i] == len(tried)
        expected = min(tried, default=(np.nan, np.nan))
        np.testing.assert_array_equal((near.cost[i], near.cell[i]), expected)
    assert np.isnan(near.cost[3]) and near.count[0] == 0


def test_a_contest_in_groups_cuts_across_the_rows():
    """The products of 1, 2 and 4 with 3 and 5, by whether they are odd: (3, 5), (6, 10), (12, 20). The even
    one nearest to 11 is in row 1, cell 1, before row 2, cell 0; the odd one in row 0, cell 1."""

    def measure(point):
        product = point["x"] * point["y"]
        return [], {"near": (abs(product - 11.0), product < 20.0, product % 2.0, 3)}

    near = sweep({"x": [1.0, 2.0, 4.0]}, [{"y": (3.0, 5.0)}], measure)["near"]
    np.testing.assert_array_equal(near, [[1, 6, np.nan], [1, 0, np.nan], [1, 1, np.nan], [3, 2, 0]])
