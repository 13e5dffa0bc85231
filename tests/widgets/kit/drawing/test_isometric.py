"""The geometry of the cube: views worked by hand, order by depth, labels apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.kit.drawing import isometric

ORIGIN, FIRST, SECOND, THIRD = (
    np.zeros(3),
    np.array([1.0, 0, 0]),
    np.array([0, 1.0, 0]),
    np.array([0, 0, 1.0]),
)
turns, tilts = st.floats(0, 90), st.floats(0, 90)


def axes(turn, tilt):
    """What each axis becomes on the page: (right, up, toward the eye)."""
    start = np.array(isometric.project(ORIGIN, turn, tilt))
    return [np.array(isometric.project(end, turn, tilt)) - start for end in (FIRST, SECOND, THIRD)]


@pytest.mark.parametrize(
    ("turn", "tilt", "first", "second", "third"),
    [
        (0, 0, (0, 0, -1), (1, 0, 0), (0, 1, 0)),
        (90, 0, (1, 0, 0), (0, 0, 1), (0, 1, 0)),
        (0, 90, (0, 1, 0), (1, 0, 0), (0, 0, 1)),
    ],
)
def test_views_along_the_axes(turn, tilt, first, second, third):
    assert np.allclose(axes(turn, tilt), (first, second, third))


def test_the_isometric_view_shows_all_axes_equally_long():
    lengths = [np.hypot(axis[0], axis[1]) for axis in axes(45, np.degrees(np.arcsin(1 / np.sqrt(3))))]
    assert np.allclose(lengths, np.sqrt(2 / 3))


@given(turns, tilts)
def test_a_turn_keeps_lengths_and_right_angles(turn, tilt):
    matrix = np.array(axes(turn, tilt))
    assert np.allclose(matrix @ matrix.T, np.eye(3))


@given(turns, tilts)
def test_floor_and_back_walls_lie_behind_every_point(turn, tilt):
    """Seen from the eye, the foot of a stem and the back walls are never before the point they belong to."""
    point = np.array([0.3, 0.6, 0.8])
    toward = isometric.project(point, turn, tilt)[2]
    for behind in (point * [1, 1, 0], point * [1, 0, 1], np.array([1, 0.6, 0.8])):
        assert isometric.project(behind, turn, tilt)[2] <= toward + 1e-12


def test_the_farthest_is_drawn_first_and_ties_keep_their_order():
    assert isometric.back_to_front(np.array([0.2, -1.0, 0.9, 0.2])).tolist() == [1, 0, 3, 2]


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12).map(np.array))
def test_back_to_front_is_an_order(toward):
    order = isometric.back_to_front(toward)
    assert sorted(order) == list(range(len(toward)))
    assert (np.diff(toward[order]) >= 0).all()


def test_logarithmic_places():
    assert np.allclose(
        isometric.log_share(np.array([0.0, 1e-3, 1e-1, 1.0, 1e2, 1e9]), 1e-3, 1e2), [0, 0, 0.4, 0.6, 1, 1]
    )


def test_labels_that_overlap_are_pushed_apart_and_others_stay():
    x, y = np.array([0.0, 0.1, 3.0]), np.array([0.0, 0.0, 0.02])
    placed = isometric.apart(x, y, width=1.0, height=0.2)
    assert abs(placed[1] - placed[0]) >= 0.2 * 0.99
    assert placed[2] == 0.02 and placed[0] + placed[1] == pytest.approx(0)


def test_a_box_has_twelve_edges_of_its_size():
    edges = isometric.box(0.6)
    assert edges.shape == (12, 2, 3)
    assert np.allclose(np.linalg.norm(edges[:, 0] - edges[:, 1], axis=1), 0.6)


def test_drop_lines_lead_from_the_point_to_where_it_is_read():
    lines = isometric.drop_lines(np.array([0.2, 0.5, 0.7]))
    assert (lines[0][0] == lines[3][0]).all() and (lines[0][0] == [0.2, 0.5, 0.7]).all()
    assert [line[1].tolist() for line in lines[[1, 2, 4]]] == [[0.2, 1, 0], [0, 0.5, 0], [0, 0, 0.7]]
    assert all(np.count_nonzero(line[0] != line[1]) == 1 for line in lines), "each runs along one axis"
