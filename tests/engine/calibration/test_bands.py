"""Which runs the band of an answer is taken from."""

import pytest

from engine.calibration import bands


@pytest.mark.parametrize(
    ("gpu", "moe", "kind"),
    [
        ("h100-sxm", False, "hopper dense"),
        ("h100-sxm", True, "hopper moe"),
        ("b200", True, "blackwell moe"),
        ("mi300x", False, "all"),
    ],
)
def test_a_step_has_the_band_of_its_generation_and_kind_of_model(gpu, moe, kind):
    entry = bands.runs()["band"]["step"][kind]
    assert bands.step(gpu, moe) == (entry["low"], entry["high"])
