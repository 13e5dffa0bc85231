"""Tries the oldest library versions that pyproject.toml allows: python tests/floors.py, or make floors.

uv resolves and installs them into a separate folder. Then the site is built with them, and the tests are run
that a library could break, so that a lower bound that is too low is noticed.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = [
    "tests/course",
    "tests/widgets/foundations",
    "tests/widgets/kit",
    "tests/engine/base",
    "tests/engine/catalog",
    "tests/browser/test_text_of_numbers.py",
]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        lowest, python = Path(folder, "lowest.txt"), Path(folder, "venv", "bin", "python")
        uv = [sys.executable, "-m", "uv"]
        project = [str(ROOT / "pyproject.toml"), "--extra", "test", "--python-version", "3.11"]
        run(*uv, "pip", "compile", "--quiet", "--resolution", "lowest-direct", *project, "-o", str(lowest))
        print(lowest.read_text(encoding="utf-8"), flush=True)
        run(*uv, "venv", "--quiet", "--python", sys.executable, str(python.parents[1]))
        install = [*uv, "pip", "install", "--quiet", "--python", str(python)]
        run(*install, "-r", str(lowest))
        run(*install, "--no-deps", "--editable", str(ROOT))
        run(str(python), "-m", "course.build")
        run(str(python), "-m", "pytest", *TESTS)
    return 0


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    if done.returncode:
        sys.exit(f"floors: {' '.join(command[:6])} … ended with {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
