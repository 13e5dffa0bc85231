"""python forked.py RANKS SCRIPT [ARGUMENT ...]: runs a lesson's program as torchrun would, on so many ranks
of this machine, which are forks of one process that has imported PyTorch: that costs more than most programs.

Each lesson's program also runs under torchrun itself, once."""

import importlib
import os
import re
import runpy
import socket
import sys
from pathlib import Path


def as_rank(rank: int, ranks: int, script: str, port: int) -> None:
    """Runs the script to its end; the interpreter's own end, which gloo may abort, is torchrun's to show."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
    os.environ |= {"LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    runpy.run_path(script, run_name="__main__")


def forked(rank: int, ranks: int, script: str, port: int) -> int:
    if child := os.fork():
        return child
    status = 1
    try:
        as_rank(rank, ranks, script, port)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def import_of_pytorch(script: str) -> None:
    """The modules of PyTorch that the script imports at its top."""
    for name in re.findall(r"^(?:import|from) (torch[\w.]*)", Path(script).read_text(encoding="utf-8"), re.M):
        importlib.import_module(name)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    count, program = int(sys.argv[1]), sys.argv[2]
    sys.argv[:] = sys.argv[2:]
    sys.path.insert(0, os.getcwd())
    import_of_pytorch(program)
    port = free_port()
    children = [forked(rank, count, program, port) for rank in range(count)]
    ends = [os.waitpid(child, 0)[1] for child in children]
    sys.exit(any(ends))
