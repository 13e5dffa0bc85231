"""What only a machine with PyTorch can test. That it was left out is said once, at the end
(tests/conftest.py)."""

import pytest

MISSING = "PyTorch and Triton are not installed"


def needed(name: str = "torch"):
    """The module; the test that asks for it is skipped where it is not installed."""
    return pytest.importorskip(name, reason=MISSING)
