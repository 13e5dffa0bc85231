"""What times a GPU runs: rehearsed on the CPU, where its figures mean nothing but must be figures."""

import json
import math

import pytest

from engine.one_gpu import measurements
from measure import __main__ as measure
from tests import machine


def figures(found) -> list[float]:
    if isinstance(found, dict):
        return [each for value in found.values() for each in figures(value)]
    if isinstance(found, list):
        return [each for value in found for each in figures(value)]
    return [found] if isinstance(found, (int, float)) else []


@pytest.mark.parametrize("subject", measure.subjects())
def test_a_subject_gives_figures(subject, capsys):
    machine.torch()
    assert measure.main([subject, "--device", "cpu", "--quick"]) == 0
    found = figures(json.loads(capsys.readouterr().out))
    assert found and all(math.isfinite(each) and each >= 0 for each in found)


def test_a_machine_without_a_gpu_is_told_so(capsys):
    torch = machine.torch()
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert measure.main([]) == 1
    assert "no NVIDIA GPU" in capsys.readouterr().err


def test_shipped_measurements_name_their_device_and_day():
    for device, found in measurements.devices().items():
        assert device and found["date"] and found["versions"]["torch"]
        assert set(found) - {"device", "date", "versions"} <= set(measure.subjects())
