"""What only a machine with PyTorch can test. That it was left out is said once, at the end
(tests/conftest.py)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MISSING = "PyTorch and Triton are not installed"


def needed(name: str = "torch"):
    """The module; the test that asks for it is skipped where it is not installed."""
    return pytest.importorskip(name, reason=MISSING)


def interpreted(module: str):
    """What a module prints as JSON where Triton interprets its kernels: in a process of its own, because
    Triton decides on import whether it does."""
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
