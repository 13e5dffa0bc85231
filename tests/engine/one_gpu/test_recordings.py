"""Recordings are found by name."""

from engine.one_gpu import recordings
from tests.said import refused


def test_a_recording_that_is_not_there_is_named_beside_those_that_are():
    with refused("name must be one of", "triton_tiles", "'triton_tails'"):
        recordings.load("triton_tails")
    assert recordings.load("triton_tiles")["versions"]
