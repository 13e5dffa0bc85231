"""Attention of one head without its score matrix: a block of queries a program, a running softmax over the keys."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, tokens, scale,
                     DIM: tl.constexpr, BLOCK_Q: tl.constexpr,
                     BLOCK_K: tl.constexpr):
    dims = tl.arange(0, DIM)[None, :]
    queries = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    mine = (queries < tokens)[:, None]
    q = tl.load(q_ptr + queries[:, None] * DIM + dims, mask=mine, other=0.0)
    largest = tl.full((BLOCK_Q,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK_Q,), tl.float32)
    total = tl.zeros((BLOCK_Q, DIM), tl.float32)
    for start in range(0, tokens, BLOCK_K):
        keys = start + tl.arange(0, BLOCK_K)
        left = (keys < tokens)[:, None]
        k = tl.load(k_ptr + keys[:, None] * DIM + dims, mask=left, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * DIM + dims, mask=left, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where((keys < tokens)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        kept, exps = tl.exp(largest - new), tl.exp(scores - new[:, None])
        weight = weight * kept + tl.sum(exps, axis=1)
        total = tl.dot(exps.to(v.dtype), v, total * kept[:, None])
        largest = new
    out = total / weight[:, None]
    tl.store(out_ptr + queries[:, None] * DIM + dims,
             out.to(out_ptr.dtype.element_ty), mask=mine)


def attention(q, k, v, block_q=64, block_k=64):
    tokens, dim = q.shape
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(tokens, block_q),)](q, k, v, out, tokens, dim**-0.5, DIM=dim, BLOCK_Q=block_q,
                                                      BLOCK_K=block_k)
    return out
