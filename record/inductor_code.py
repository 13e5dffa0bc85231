"""The kernel that Inductor writes for the middle of lesson 18's MLP, SiLU of the gate times the
up-projection.

Inductor's CPU backend writes C++; it is generated and not compiled, because nothing has to run. Of the code,
the loop is kept, without its casts and braces, which say nothing that a reader misses.
"""

from __future__ import annotations

import re
from unittest import mock

import torch
import torch.nn.functional as F
from torch import _inductor as inductor
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.utils import run_and_get_code

RUNS_ON = ("torch",)
WIDTH = 2048
CAST = re.compile(r"(?:static_cast<\w+>|\bfloat|decltype\(\w+\))\(([^()]*)\)")
NAME = re.compile(r"^(cpp_fused\w+) = ", re.MULTILINE)


def gated(gate, up):
    """The activation of a gated MLP."""
    return F.silu(gate) * up


def generated() -> str:
    """The code that Inductor writes for it."""
    settings = {"force_disable_caches": True, "cpp.simdlen": 1, "cpp.threads": 1}
    uncompiled = mock.patch.object(AsyncCompile, "cpp_pybinding", return_value=lambda *_: None)
    with torch.no_grad(), inductor.config.patch(settings), uncompiled:
        torch._dynamo.reset()
        _, [code] = run_and_get_code(torch.compile(gated), torch.ones(WIDTH), torch.ones(WIDTH))
    return code


def loop(code: str) -> list[str]:
    """The lines of the loop over elements, from its head to its store."""
    lines = [line.strip() for line in code.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.startswith("for("))
    last = next(i for i, line in enumerate(lines) if line.startswith("out_ptr0["))
    return [CAST.sub(r"\1", line) for line in lines[first : last + 1] if line not in "{}"]


def record() -> dict:
    """The recording, as its JSON file holds it."""
    code = generated()
    return {"kernels": NAME.findall(code), "loop": loop(code)}
