"""z = x + y, a block of elements for each program."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(z_ptr + offsets, x + y, mask=inside)


def add(x, y, block=1024):
    z = torch.empty_like(x)
    programs = triton.cdiv(x.numel(), block)
    add_kernel[(programs,)](x, y, z, x.numel(), BLOCK=block)
    return z
# --8<-- [end:kernel]
