"""C = A·B with as many programs as there are multiprocessors: each takes tile after tile, and loads them by descriptor."""

import torch
import triton
import triton.language as tl

from kernels.matmul import tile_of


# --8<-- [start:kernel]
@triton.jit
def persistent_kernel(a_ptr, b_ptr, c_ptr, m, n, k, PROGRAMS: tl.constexpr,
                      BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                      BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
                      FLATTEN: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS,
                         flatten=FLATTEN):
        tile_m, tile_n = tile_of(tile, tiles_m, tiles_n, GROUP)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for inner in range(0, k, BLOCK_K):
            total = tl.dot(a.load([row, inner]), b.load([inner, column]), total)
        c.store([row, column], total.to(c_ptr.dtype.element_ty))
# --8<-- [end:kernel]


# --8<-- [start:launch]
def in_memory(size, alignment, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


def matmul(a, b, programs=132, block_m=128, block_n=256, block_k=64,
           group=8, flatten=False, warps=8, stages=3):
    (m, k), n = a.shape, b.shape[1]  # rows of whole 16 bytes
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    if a.is_cuda:  # a place for the descriptors
        triton.set_allocator(in_memory)
    persistent_kernel[(programs,)](
        a, b, c, m, n, k, PROGRAMS=programs, BLOCK_M=block_m,
        BLOCK_N=block_n, BLOCK_K=block_k, GROUP=group, FLATTEN=flatten,
        num_warps=warps, num_stages=stages)
    return c
# --8<-- [end:launch]
