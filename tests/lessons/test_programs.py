"""What counts as an end of a lesson's program, when torchrun says that it failed."""

import pytest

from tests import machine
from tests.lessons import programs

ABORTED = "terminate called without an active exception"


def failed(*codes: int) -> str:
    return "\n".join(f"  exitcode  : {code} (pid: 7)" for code in codes)


@pytest.mark.parametrize(
    ("returncode", "errors", "well"),
    [
        (0, "", True),
        (1, f"{ABORTED}\n{failed(-6, -15, -15)}", True),
        (1, f"{ABORTED}\n{failed(-6, 1)}", False),
        (1, failed(-6, -15), False),
        (1, ABORTED, False),
        (1, f'{ABORTED}\n  File "train.py", line 3, in main\n{failed(-6, -15)}', False),
    ],
)
def test_only_an_abort_after_the_last_line_is_forgiven(returncode, errors, well):
    assert programs.did_all_its_work(returncode, errors) is well


def test_a_program_that_fails_is_not_forgiven(tmp_path):
    machine.torch()
    (tmp_path / "train.py").write_text("import os\nprint('begun')\nos.abort()\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        programs.ran(tmp_path, "$ torchrun --nproc-per-node 1 train.py")


def test_a_program_that_fails_on_one_rank_fails_where_ranks_are_forked(tmp_path):
    machine.torch()
    written = (
        "import os, sys\nprint(os.environ['RANK'], *sys.argv[1:])\nassert os.environ['RANK'] != '1', 'no'\n"
    )
    (tmp_path / "train.py").write_text(written, encoding="utf-8")
    assert programs.ran_forked(tmp_path, "$ torchrun --nproc-per-node 1 train.py 5") == ["0 5"]
    with pytest.raises(AssertionError, match="no"):
        programs.ran_forked(tmp_path, "$ torchrun --nproc-per-node 2 train.py 5")
