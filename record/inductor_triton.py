"""The Triton kernel that Inductor writes for lesson 18's SiLU of the gate times the up-projection.

Inductor's Triton backend, on a machine without a GPU: tensors are on the CPU, and the code is generated and
not compiled, because nothing has to run. Of the code, the kernel is kept, without its decorators.
"""

from __future__ import annotations

from unittest import mock

import torch
from torch import _inductor as inductor
from torch._inductor.async_compile import AsyncCompile

from record.inductor_code import WIDTH, gated

RUNS_ON = ("torch", "triton")


def generated() -> list[str]:
    """The source of each Triton kernel that Inductor writes for it."""
    sources: list[str] = []

    def keep(name: str, source: str, **_: object) -> mock.MagicMock:
        sources.append(source)
        return mock.MagicMock()

    settings = {"force_disable_caches": True, "cpu_backend": "triton"}
    uncompiled = mock.patch.object(AsyncCompile, "triton", side_effect=keep)
    no_driver = mock.patch("torch.utils._triton.triton_hash_with_backend", return_value="")
    gate, up = (torch.ones(WIDTH, dtype=torch.bfloat16) for _ in range(2))
    with torch.no_grad(), inductor.config.patch(settings), uncompiled, no_driver:
        torch._dynamo.reset()
        torch.compile(gated)(gate, up)
    return sources


def kernel(source: str) -> list[str]:
    """The lines of a kernel, from its name on."""
    return source.partition("@triton.jit\n")[2].rstrip().splitlines()


def record() -> dict:
    """The recording, as its JSON file holds it."""
    [source] = generated()
    return {"kernel": kernel(source)}
