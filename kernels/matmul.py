"""C = A·B in tiles, in groups of rows, with bias and GELU in the epilogue where they are wanted."""

import torch
import triton
import triton.language as tl


# --8<-- [start:order]
@triton.jit
def tile_of(program, tiles_m, tiles_n, GROUP: tl.constexpr):
    in_group = GROUP * tiles_n
    first_m = program // in_group * GROUP
    height = min(tiles_m - first_m, GROUP)  # the last may be lower
    place = program % in_group
    return first_m + place % height, place // height
# --8<-- [end:order]


# --8<-- [start:pointers]
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, bias_ptr, m, n, k,
                  stride_a, stride_b, stride_c,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
                  BIAS_GELU: tl.constexpr):
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M),
                             tl.cdiv(n, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_block = a_ptr + rows[:, None] * stride_a + inner[None, :]
    b_block = b_ptr + inner[:, None] * stride_b + columns[None, :]
    # --8<-- [end:pointers]
    # --8<-- [start:loop]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        left = start + inner < k
        a_inside = (rows < m)[:, None] & left[None, :]
        b_inside = left[:, None] & (columns < n)[None, :]
        a = tl.load(a_block, mask=a_inside, other=0.0)
        b = tl.load(b_block, mask=b_inside, other=0.0)
        total = tl.dot(a, b, total)
        a_block += BLOCK_K
        b_block += BLOCK_K * stride_b
    # --8<-- [end:loop]
    # --8<-- [start:epilogue]
    if BIAS_GELU:
        bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0)
        total += bias[None, :]
        total *= 0.5 * (1.0 + tl.erf(total * 0.7071067811865476))
    c_block = c_ptr + rows[:, None] * stride_c + columns[None, :]
    tl.store(c_block, total.to(c_ptr.dtype.element_ty),
             mask=(rows < m)[:, None] & (columns < n)[None, :])
    # --8<-- [end:epilogue]


# --8<-- [start:launch]
def matmul(a, b, bias=None, block_m=128, block_n=256, block_k=64, group=8,
           warps=8, stages=3):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    programs = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    matmul_kernel[(programs,)](
        a, b, c, a if bias is None else bias, m, n, k,
        a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=group,
        BIAS_GELU=bias is not None, num_warps=warps, num_stages=stages)
    return c
# --8<-- [end:launch]
