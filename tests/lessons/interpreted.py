"""What lesson 17 says of Triton, run under its interpreter on the CPU: prints what was found, as JSON.
test_claims_triton.py starts it in a process of its own, since Triton decides on import whether it
interprets."""

import contextlib
import io
import json

import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources

from kernels.softmax import Softmax


@triton.jit
def narrow_and_wide(out, stride):
    row = tl.program_id(0) + 40_000
    tl.store(out, (row * stride).to(tl.int64))
    tl.store(out + 1, row.to(tl.int64) * stride)


@triton.jit
def ones(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), 1.0)


@triton.jit
def told(out):
    offsets = tl.arange(0, 4)
    print("seen", offsets)
    tl.store(out + offsets, offsets)


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
    else:
        tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def block_of(a_ptr, rows, columns, out, BLOCK: tl.constexpr):
    matrix = tl.make_tensor_descriptor(a_ptr, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    places = tl.arange(0, BLOCK)
    tl.store(out + places[:, None] * BLOCK + places[None, :], matrix.load([0, 0]))


def error_of(run) -> str:
    try:
        run()
    except Exception as error:  # the interpreter wraps whatever a kernel raises
        return str(error)
    return ""


def offsets() -> list[int]:
    out = torch.zeros(2, dtype=torch.int64)
    narrow_and_wide[(1,)](out, 60_000)
    return out.tolist()


def printed() -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        told[(1,)](torch.zeros(4))
    return said.getvalue()


def written(masked: bool) -> int:
    """Of a view of five numbers in sixteen, blocks of four: how many of the sixteen are written."""
    whole = torch.zeros(16)
    copy[(2,)](torch.ones(16), whole[:5], 5, BLOCK=4, MASKED=masked)
    return int(whole.sum())


def beyond_a_matrix() -> float:
    """A block of 16 by 16 out of a matrix of 8 by 8 ones: the sum of all that was loaded."""
    out = torch.zeros(16, 16)
    block_of[(1,)](torch.ones(8, 8), 8, 8, out, BLOCK=16)
    return out.sum().item()


def tuned() -> list:
    """How many times a candidate was timed after each of three calls, and the best block; the second
    candidate does not fit."""
    timed = []

    def clock(run, quantiles):
        run()
        timed.append(None)
        if len(timed) % 3 == 2:
            raise OutOfResources(1, 0, "shared memory")
        return [float(len(timed))] * 3

    configs = [triton.Config({"BLOCK": block}) for block in (8, 16, 32)]
    kernel = triton.autotune(configs=configs, key=["n"], do_bench=clock)(copy)
    grids, counts = [], []
    for n in (5, 5, 7):

        def grid(at, n=n):
            grids.append(at["BLOCK"])
            return (triton.cdiv(n, at["BLOCK"]),)

        kernel[grid](torch.ones(64), torch.zeros(64), n, MASKED=True)
        counts.append(len(timed))
    return [counts, kernel.best_config.kwargs["BLOCK"], sorted(set(grids))]


if __name__ == "__main__":
    x = torch.randn(4, 10, dtype=torch.float64, requires_grad=True)
    print(
        json.dumps(
            {
                "offsets": offsets(),
                "block of 100": error_of(lambda: ones[(1,)](torch.zeros(128), BLOCK=100)),
                "printed": printed(),
                "written": [written(True), written(False)],
                "gradcheck": torch.autograd.gradcheck(Softmax.apply, (x,)),
                "beyond": beyond_a_matrix(),
                "rows of 20 bytes": error_of(
                    lambda: block_of[(1,)](torch.ones(8, 5), 8, 5, torch.zeros(16, 16), BLOCK=16)
                ),
                "tuned": tuned(),
            }
        )
    )
