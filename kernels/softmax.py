"""The softmax of each row and its gradient, a row for each program: read once, written once."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # row * stride may pass 2^31
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=inside,
                other=-float("inf"))
    weights = tl.exp(x - tl.max(x, axis=0))
    y = weights / tl.sum(weights, axis=0)
    tl.store(y_ptr + row * stride + offsets, y, mask=inside)


def softmax(x, warps=8):
    rows, columns = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, y, columns, x.stride(0), BLOCK=block,
                            num_warps=warps)
    return y
# --8<-- [end:kernel]


# --8<-- [start:backward]
@triton.jit
def softmax_backward_kernel(y_ptr, dy_ptr, dx_ptr, columns, stride,
                            BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    at = row * stride + offsets
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    dy = tl.load(dy_ptr + at, mask=inside, other=0.0)
    dx = y * (dy - tl.sum(y * dy, axis=0))
    tl.store(dx_ptr + at, dx, mask=inside)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = softmax(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        [y] = ctx.saved_tensors
        dy, dx = dy.contiguous(), torch.empty_like(y)
        block = triton.next_power_of_2(y.shape[1])
        softmax_backward_kernel[(len(y),)](
            y, dy, dx, y.shape[1], y.stride(0), BLOCK=block, num_warps=8)
        return dx
# --8<-- [end:backward]
