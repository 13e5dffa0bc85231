"""python forked.py '[[FOLDER, RANKS, SCRIPT, ARGUMENT ...], ...]': runs lessons' programs as torchrun would,
one after the other, each on so many ranks of this machine, which are forks of one process that has imported
PyTorch: that costs more than most programs.

Each lesson's program also runs under torchrun itself, that of lesson 04 each time."""

import importlib
import json
import os
import re
import runpy
import socket
import sys
from pathlib import Path

END = "\f"  # a line that follows what each prints


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
    """The modules of PyTorch that the script imports at its top, and what DDP and FSDP import on every rank
    for themselves, which takes each a second."""
    found = re.findall(
        r"^(?:import|from) (torch[\w.]*)", Path(script).read_text(encoding="utf-8"), re.MULTILINE
    )
    for name in [*found, "torch._dynamo"] if found else []:
        importlib.import_module(name)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(folder: str, ranks: int, *arguments: str) -> bool:
    """Whether the program ends well on every rank."""
    sys.argv[:] = arguments
    os.chdir(folder)
    sys.path[0] = folder
    port = free_port()
    children = [forked(rank, ranks, arguments[0], port) for rank in range(ranks)]
    ends = [os.waitpid(child, 0)[1] for child in children]
    return not any(ends)


if __name__ == "__main__":
    for folder, ranks, *arguments in json.loads(sys.argv[1]):
        import_of_pytorch(f"{folder}/{arguments[0]}")
        if not run(folder, ranks, *arguments):
            sys.exit(1)
        print(END, flush=True)
